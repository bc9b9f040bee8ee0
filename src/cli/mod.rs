//! The command line (`args`), its verbs (one file each: options and implementation), and the exit code.

mod account;
mod advise;
mod args;
mod capture;
mod compare;
mod console;
mod deadline;
mod demo;
mod doctor;
mod dumps;
mod exit;
mod explain;
mod exports;
mod find;
mod generate;
mod history;
mod init;
mod judging;
mod jvm_options;
mod live;
mod load;
mod merge;
mod of_jar;
mod one_server;
mod plan;
mod post_mortem;
mod report;
mod run;
mod session;
mod supervisor;
mod tune;
mod watch;
mod watch_metrics;
mod weigh;
mod work;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::report::Progress;
use args::Args;
use clap::FromArgMatches;
use exit::Code;
use session::{Call, CommandLine};
use std::ffi::OsString;
use std::process::ExitCode;

/// Parses and executes the command line, prints an error if there is one, and returns the exit code.
///
/// clap prints usage errors, help, and version itself, with exit codes 2 and 0.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let code = call(&arguments);
    // An unparsable command line may be a bisect run, too.
    let is_bisect = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--bisect");
    ExitCode::from(if is_bisect { code.for_bisect() } else { code })
}

fn call(arguments: &[OsString]) -> Code {
    if let [_, word, rest @ ..] = arguments
        && word == watch::WEIGH_APART_WORD
    {
        report_panics();
        return watch::weigh_here(rest);
    }
    let typed = CommandLine::of(arguments);
    let args = args::parser().try_get_matches_from(arguments).and_then(|typed| Args::from_arg_matches(&typed));
    let args = match args {
        Ok(args) => args,
        Err(usage) => {
            let usage = jvm_options::with_tip(usage, arguments);
            let code = if usage.use_stderr() { Code::Request } else { Code::Yes };
            // A closed pipe does not call for another message.
            let _ = usage.print();
            return code;
        }
    };
    report_panics();
    // Unwinding drops the running subject, which ends it.
    match std::panic::catch_unwind(|| dispatch(args, typed)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            complain(&error);
            Code::from(error.kind)
        }
        Err(_) => Code::Bug,
    }
}

/// Reports a panic as a bug, with instructions for reporting it, instead of printing Rust's message.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        console::leave();
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let what = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let version = env!("CARGO_PKG_VERSION");
        complain(
            &Error::bug(format!("a bug in Loadline {version}{place}: {what}"))
                .hint("report this line and the command; completed trials are in the archive"),
        );
    }));
}

fn dispatch(args: Args, typed: CommandLine) -> Result<Code> {
    match args.verb {
        Some(verb) => verb.run(Call { typed, clock: Clock::start() }),
        // clap requires one of the two.
        None => args.generate.map_or(Ok(Code::Request), generate::generate),
    }
}

/// Prints an error without a report sink, which may not exist yet. Ignores a closed pipe.
fn complain(error: &Error) {
    Progress::new(false).warn(&error.to_string());
}
