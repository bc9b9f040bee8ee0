//! `loadline explain`: one configuration under load, and once more under a profiler; or a JVM that runs.

use super::account::document;
use super::exit::Code;
use super::one_server::ServerArguments;
use super::session::{Call, Interrupt, RunOptions, Session, is_untyped};
use crate::error::{Error, Result};
use crate::explain::{self, ExplainRequest};
use crate::report::export::Format;
use crate::report::{self, Progress, print, render, summarize_account};
use crate::result::{Judgement, JudgementSettings};
use crate::scenario::{Asking, Explain, Marking};
use crate::series;
use crate::units::{Span, utc};
use crate::weigh::AccountOptions;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `loadline explain`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// A scenario file, a jar, or the process id of a running JVM; omit it if a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | PID")]
    what: Option<PathBuf>,
    /// Explain only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    explain: Explain,
    #[command(flatten)]
    running: RecordingOptions,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    marking: Marking,
    #[command(flatten)]
    judging: JudgementSettings,
    /// The server, if there is no scenario: a `java` command line. `{port}` stands for a free port
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Options for a JVM that runs already.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Explaining")]
pub(super) struct RecordingOptions {
    /// How long to record a running JVM; only what it allocates in that time is explained [default: 60s]
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Let a running JVM write a heap dump as well: a full GC, then a pause while it writes about as much as lives in
    /// its heap
    #[arg(long)]
    objects: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline explain target/app.jar
  loadline explain --url 'http://127.0.0.1:{port}/' --rate 200 -d 20s -- java -jar app.jar '{port}'
  loadline explain app.loadline.yaml --html why.html
  loadline explain 4711 --for 60s --html why.html";

/// How long a JVM that runs is recorded where nothing was typed.
const RECORDED: Duration = Duration::from_secs(60);

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let explain = with_profiler(&verb.explain)?;
    if let Some(pid) = verb.what.as_deref().and_then(pid) {
        return running(pid, &verb, &explain, call);
    }
    if verb.running.span.is_some() || verb.running.objects {
        return Err(Error::request("`--for` and `--objects` are about a JVM that runs, and no process id is given")
            .hint("leave them out: the trial has its own load, and a heap dump at its end"));
    }
    let mut session = Session::of(&verb.options, call)?;
    let (scenario, command) = (verb.what.as_deref(), verb.command.as_slice());
    let asked = ServerArguments { scenario, only: &verb.only, options: &verb.options, command }.asked(&mut session)?;
    let what = || Error::request("explain what?").hint("name a scenario, a jar or a pid, or give a command after `--`");
    let mut scenario = asked.ok_or_else(what)?.scenario;
    scenario.mark(&verb.marking)?;
    scenario.explain(explain)?;
    let judgement = Judgement::of(&scenario, verb.judging)?;
    session.run(&scenario, &judgement)
}

/// The process id that a word is, unless a file has that name.
fn pid(word: &Path) -> Option<u32> {
    word.to_str()?.parse().ok().filter(|_| !word.exists())
}

/// Returns the options with the profiler as an absolute path of a file that is there.
///
/// # Errors
/// `Request` where it is not.
pub(super) fn with_profiler(typed: &Explain) -> Result<Explain> {
    Ok(Explain { profiler: typed.profiler.as_deref().map(absolute).transpose()? })
}

fn absolute(file: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(file).map_err(|cause| Error::io("find", file, &cause))?;
    match path.is_file() {
        true => Ok(path),
        false => Err(Error::request(format!("there is no profiler {}", file.display()))
            .hint("name libasyncProfiler.so, or the jar of tools.profiler:async-profiler")),
    }
}

/// Weighs the JVM first, since the profiler and the dump both change it.
fn running(pid: u32, verb: &Verb, explain: &Explain, Call { typed, clock }: Call) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    refuse_what_has_no_effect(verb)?;
    let output = &verb.options.output;
    output.exports.check(output.json)?;
    let mut talk = Progress::new(output.quiet);
    let (machine, taken) = (series::machine_now(clock), utc(clock.unix_s()));
    let weighed = AccountOptions { stop: true, netty: false, asking: Asking::default() }.weigh(pid, &clock)?;
    let mut document = document(weighed, typed.to_string(), taken, machine);
    let span = verb.running.span.map_or(RECORDED, |span| span.0);
    let asked = ExplainRequest { pid, profiler: explain.profiler.as_deref(), span, heap: verb.running.objects };
    let stop = || interrupt.seen();
    document.explanation = Some(explain::running(&asked, &document.jvm, clock, &stop, &mut |words| talk.step(words))?);
    let written = output.exports.write_texts(|_| report::account_page(&document), &mut talk);
    match (output.json, output.exports.on_stdout()) {
        (true, _) => print(&report::document(&document))?,
        (false, true) => {}
        (false, false) => print(&render(&summarize_account(&document, &[])))?,
    }
    written.map(|()| Code::Yes)
}

/// A JVM that runs gets no command and no load, and has no trials to judge or to export.
fn refuse_what_has_no_effect(verb: &Verb) -> Result<()> {
    if !verb.command.is_empty() {
        return Err(Error::request("a running JVM needs no command").hint("leave out what follows `--`"));
    }
    let keep = "keep `--for`, `--objects`, `--profiler`, `--html`, `--json` and `--quiet`";
    let (options, judging) = (&verb.options, &verb.judging);
    let judges = !judging.budgets.is_empty() || judging.baseline.is_some() || judging.strict || judging.bisect;
    let is_of_trial = !is_untyped(&options.asked) || !is_untyped(&verb.marking);
    if is_of_trial || judges || !verb.only.is_empty() || options.output.out.is_some() {
        return Err(Error::request("options of a trial have no effect on a JVM that runs").hint(keep));
    }
    match options.output.exports.files().find(|(_, format)| *format != Format::Html) {
        Some((_, format)) => {
            let what = format!("`--{}` is for trials, and a JVM that runs makes none", format.word());
            Err(Error::request(what).hint(keep))
        }
        None => Ok(()),
    }
}
