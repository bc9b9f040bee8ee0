//! `loadline compare`: configurations side by side, in blocks of fresh JVMs, or as two archives recorded them.

use super::args::Source;
use super::args_compare::Compare as Verb;
use super::exit::Code;
use super::explain::with_profiler;
use super::exports::Shown;
use super::judging::{code, judgement};
use super::one_server::Typed;
use super::session::{CommandLine, Interrupt, Session};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::result::{self, Merged, Part};
use crate::scenario::{CompareSettings, MarkPoint, Marking, Running, Scenario, ScenarioOptions, vary};
use crate::series::{BLOCKS, Extent};
use clap::Parser;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

pub(super) fn compare(verb: Verb, typed: CommandLine, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let what = || {
        Error::request("compare what?")
            .hint("give a scenario, two archives, or `--vary gc=serial,g1` and a jar, or a command after `--`")
    };
    match (verb.what.as_slice(), verb.command.is_empty() && verb.options.asked.subject.image.is_none()) {
        ([first, second], true) => archives(&verb, first, second, typed.to_string()),
        ([archive], true) if archive.is_dir() => Err(Error::request(format!("{} is a folder", archive.display()))
            .hint("give a second archive to compare it with; `loadline report ARCHIVE` shows one alone")),
        ([] | [_], _) => {
            let mut session = Session::of(&verb.options, typed, clock, interrupt);
            let (scenario, command) = (verb.what.first().map(PathBuf::as_path), verb.command.as_slice());
            let asked = Typed { scenario, only: &[], options: &verb.options, command }.asked(&mut session)?;
            side_by_side(&verb, asked.ok_or_else(what)?.scenario, &session)
        }
        _ => Err(what()),
    }
}

/// Runs what is to be compared.
fn side_by_side(verb: &Verb, mut scenario: Scenario, session: &Session) -> Result<Code> {
    scenario.mark(&verb.marking)?;
    scenario.configurations = vary(&verb.vary, &scenario.configurations, Path::new(""), &session.releases())?;
    scenario.select(&verb.only)?;
    if scenario.trials == 1 && verb.marking.trials.is_none() {
        scenario.trials = BLOCKS;
    }
    let Running { until_sure, repeats } = verb.running;
    scenario.compare.apply(CompareSettings { until_sure, repeats, ..CompareSettings::default() });
    scenario.validate()?;
    if scenario.configurations.len() < 2 {
        return Err(Error::request("there is one configuration, and nothing to compare it with")
            .hint("add `--vary gc=serial,g1`, or a second one to the scenario"));
    }
    if verb.explain {
        scenario.explain(with_profiler(&verb.explaining)?)?;
    }
    let judgement = judgement(&scenario, Some(&verb.comparing), &verb.judging)?;
    announce(&scenario, verb)?;
    session.run(&scenario, &judgement)
}

/// Says how much it will be, and asks where it is much.
fn announce(scenario: &Scenario, verb: &Verb) -> Result<()> {
    let extent = Extent::of(scenario);
    let mut progress = Progress::new(verb.options.output.quiet);
    progress.step(&extent.to_string());
    if verb.yes || !extent.is_long() {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::request(format!("{extent}; too much to begin unasked"))
            .hint("say so with `--yes`, or have fewer configurations (`--only`), blocks (`--trials`) or requests"));
    }
    progress.warn("Begin? [y/N]");
    let mut answer = String::new();
    // An answer that cannot be read is no yes.
    let _ = stdin.lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::request("not begun")),
    }
}

/// With archives nothing runs, so nothing that changes a run may be asked for.
fn refuse_options(verb: &Verb) -> Result<()> {
    #[derive(Parser)]
    struct Untyped {
        #[command(flatten)]
        asked: ScenarioOptions,
        #[command(flatten)]
        marking: Marking,
        #[command(flatten)]
        running: Running,
    }
    let untyped = Untyped::try_parse_from(["loadline"]).map_err(|cause| Error::bug(cause.to_string()))?;
    let same = verb.options.asked == untyped.asked
        && verb.marking == untyped.marking
        && verb.options.output.out.is_none()
        && verb.options.output.source == Source::default()
        && verb.running == untyped.running;
    if same && verb.vary.is_empty() && verb.only.is_empty() && !verb.explain {
        return Ok(());
    }
    Err(Error::request("two archives are compared as they are: nothing runs, and options of a run have no effect")
        .hint("keep only options such as `--metric`, `--least`, `--confidence`, `--budget`, `--html`"))
}

/// Compares what two archives recorded.
fn archives(verb: &Verb, first: &Path, second: &Path, typed: String) -> Result<Code> {
    let output = &verb.options.output;
    output.exports.check(output.json)?;
    refuse_options(verb)?;
    let part = |path: &Path| Ok(Part { path: path.to_owned(), archive: result::read(path)? });
    let merged = Merged::of(vec![part(first)?, part(second)?], typed)?;
    let judgement = judgement(&merged.scenario, Some(&verb.comparing), &verb.judging)?;
    judgement.check_metrics(&merged.scenario, &MarkPoint::ALL)?;
    let document = judgement.of_archives(&merged);
    let folders = [first.to_owned(), second.to_owned()];
    let shown = Shown { document: &document, folders: &folders, missing: &merged.missing, against: None };
    let mut progress = Progress::new(output.quiet);
    shown.show(output.json, output.view, &output.exports, &mut progress)?;
    code(&judgement, &document, &mut progress)
}
