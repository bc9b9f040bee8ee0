//! `loadline explain`: runs one configuration under load, then again with a profiler; or explains a running JVM.

use super::account::document;
use super::exit::Code;
use super::one_server::ServerArguments;
use super::session::{Call, Interrupt, RunOptions, Session, is_untyped};
use crate::error::{Error, Result};
use crate::explain::{self, ExplainRequest};
use crate::report::export::Format;
use crate::report::{self, Progress, print, render, summarize_account};
use crate::result::{Judgement, JudgementSettings};
use crate::scenario::{Asking, Explain, Marking, Scenario};
use crate::series::{self, Extent};
use crate::units::{Span, several, utc};
use crate::weigh::AccountOptions;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `loadline explain`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Scenario file, jar, or PID of a running JVM; omit if a command follows `--`
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
    /// Command that starts the server, without a scenario. `{port}` expands to a free port
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Options for a JVM that is already running.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Profiling")]
pub(super) struct RecordingOptions {
    /// How long to record a running JVM; earlier allocations are not explained [default: 60s]
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Also dump the heap of a running JVM. Forces a full GC, then pauses the JVM while it writes a file about as large
    /// as the live heap
    #[arg(long)]
    objects: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline explain target/app.jar
  loadline explain --url 'http://127.0.0.1:{port}/' --rate 200 -d 20s -- java -jar app.jar '{port}'
  loadline explain app.loadline.yaml --html why.html
  loadline explain 4711 --for 60s --html why.html";

/// The default recording time for a running JVM.
const RECORDED: Duration = Duration::from_secs(60);

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let explain = with_profiler(&verb.explain)?;
    if let Some(pid) = verb.what.as_deref().and_then(pid) {
        return running(pid, &verb, &explain, call);
    }
    if verb.running.span.is_some() || verb.running.objects {
        return Err(Error::request("`--for` and `--objects` apply only to a running JVM, but no process ID was given")
            .hint("remove them: a trial generates its own load and takes a heap dump at the end"));
    }
    let mut session = Session::of(&verb.options, call)?;
    let (scenario, command) = (verb.what.as_deref(), verb.command.as_slice());
    let check = |mut scenario: Scenario| {
        scenario.mark(&verb.marking)?;
        Judgement::of(&scenario, verb.judging.clone()).map(drop)
    };
    let asked = ServerArguments { scenario, only: &verb.only, options: &verb.options, command, check: &check };
    let asked = asked.asked(&mut session)?;
    let what =
        || Error::request("nothing to explain").hint("specify a scenario, jar, or process ID, or a command after `--`");
    let mut scenario = asked.ok_or_else(what)?.scenario;
    scenario.mark(&verb.marking)?;
    let without_lines = explain::warn_without_profiler(explain.profiler.as_deref());
    scenario.explain(explain)?;
    let judgement = Judgement::of(&scenario, verb.judging)?;
    let progress = &mut session.live().progress;
    progress.step(&starts(&scenario));
    without_lines.iter().for_each(|what| progress.step(what));
    session.run(&scenario, &judgement)
}

/// Additional starts to explain a configuration after its measurement.
const FURTHER_STARTS: u32 = 2;

/// Describes the number of starts and their duration.
fn starts(scenario: &Scenario) -> String {
    let all = Extent::of(&Scenario { trials: scenario.trials + FURTHER_STARTS, ..scenario.clone() });
    format!(
        "{} of the server, at least {} in total: to weigh it, to see which code allocates, and to see whether its \
         live heap grows",
        several(all.trials(), "start"),
        all.span()
    )
}

/// The process ID that an argument represents, unless a file has that name.
fn pid(word: &Path) -> Option<u32> {
    word.to_str()?.parse().ok().filter(|_| !word.exists())
}

/// Makes the profiler's path absolute. Errors: `Request` if the file does not exist.
pub(super) fn with_profiler(typed: &Explain) -> Result<Explain> {
    Ok(Explain { profiler: typed.profiler.as_deref().map(absolute).transpose()? })
}

fn absolute(file: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(file).map_err(|cause| Error::io("find", file, &cause))?;
    match path.is_file() {
        true => Ok(path),
        false => Err(Error::request(format!("no profiler found at {}", file.display()))
            .hint("specify libasyncProfiler.so, or the jar of tools.profiler:async-profiler")),
    }
}

/// Measures the JVM first, because the profiler and the dump change it.
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

/// Rejects options for a command, a load, judgments, or exports, which do not apply to a running JVM.
fn refuse_what_has_no_effect(verb: &Verb) -> Result<()> {
    if !verb.command.is_empty() {
        return Err(Error::request("a running JVM needs no command").hint("remove `--` and the command after it"));
    }
    let keep = "keep `--for`, `--objects`, `--profiler`, `--html`, `--json`, and `--quiet`";
    let (options, judging) = (&verb.options, &verb.judging);
    let judges = !judging.budgets.is_empty() || judging.baseline.is_some() || judging.strict || judging.bisect;
    let is_of_trial = !is_untyped(&options.asked) || !is_untyped(&verb.marking);
    if is_of_trial || judges || !verb.only.is_empty() || options.output.out.is_some() {
        return Err(Error::request("options of a trial have no effect on a running JVM").hint(keep));
    }
    match options.output.exports.files().find(|(_, format)| *format != Format::Html) {
        Some((_, format)) => {
            let what = format!("`--{}` needs a trial, and a running JVM has none", format.word());
            Err(Error::request(what).hint(keep))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    #[test]
    fn an_explanation_announces_its_starts_and_duration() {
        let text = "name: x\nsubject: {command: [x], port: 80}\nconfigurations: {a: {}, b: {}}\n\
                    load: [{steady: {closed: {duration: 60s}, get: /}}, {rest: {idle: 5s}}]\n";
        let mut scenario = parse(text, Path::new("."), &[]).unwrap();
        scenario.trials = 1;
        let told = starts(&scenario);
        assert!(told.starts_with("6 starts of the server, at least 6 minutes in total: to weigh it, "), "{told}");
    }
}
