//! `loadline compare`: configurations side by side, in blocks of fresh JVMs, or as two archives recorded them.

use super::args::{Marking, Options};
use super::args_compare::{Compare as Verb, Running};
use super::exit::Code;
use super::exports::Shown;
use super::judging::judgement;
use super::options::{change, mark, scenario_of};
use super::preparing::Rebuild;
use super::run;
use super::session::{Interrupt, Session};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::result::{self, Merged, Part};
use crate::scenario::{MarkPoint, PhaseKind, Scenario, vary};
use crate::units::grouped;
use clap::Parser;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// Fewer blocks decide hardly anything; more are a matter of patience.
const BLOCKS: u32 = 5;
/// Longer than this nobody waits without having been asked.
const ASK_MINUTES: f64 = 30.0;
/// More trials than this are asked about, however short they seem.
const ASK_TRIALS: u64 = 60;
/// What a trial takes beside its load: start, marks, end; measured on small servers.
const TRIAL_SECONDS: f64 = 4.0;

pub(super) fn compare(verb: Verb, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let only_image = verb.what.is_empty() && verb.options.subject.image.is_some();
    match (verb.what.as_slice(), verb.command.is_empty() && !only_image) {
        ([first, second], true) => archives(&verb, first, second, typed),
        ([archive], true) if archive.is_dir() => Err(Error::request(format!("{} is a folder", archive.display()))
            .hint("give a second archive to compare it with; `loadline report ARCHIVE` shows one alone")),
        ([scenario], true) => {
            let session = Session::new(verb.options.output.clone(), typed, clock, interrupt);
            let session = session.building(Rebuild::of(&verb.options));
            let mut asked = run::load(scenario, &session.releases())?;
            change(&mut asked, &verb.options)?;
            side_by_side(&verb, asked, &session)
        }
        ([], false) => {
            let session = Session::new(verb.options.output.clone(), typed, clock, interrupt);
            let asked = scenario_of(&verb.command, &verb.options)?;
            side_by_side(&verb, asked, &session)
        }
        _ => Err(Error::request("compare what?")
            .hint("give a scenario, two archives, or `--vary gc=serial,g1` and a command after `--`")),
    }
}

/// Runs what is to be compared.
fn side_by_side(verb: &Verb, mut scenario: Scenario, session: &Session) -> Result<Code> {
    mark(&mut scenario, &verb.marking)?;
    scenario.configurations = vary(&verb.vary, &scenario.configurations, Path::new(""), &session.releases())?;
    run::select(&mut scenario, &verb.only)?;
    if scenario.trials == 1 && verb.marking.trials.is_none() {
        scenario.trials = BLOCKS;
    }
    let Running { until_sure, repeats } = verb.running;
    scenario.compare.until_sure = until_sure.or(scenario.compare.until_sure);
    scenario.compare.repeats = repeats.unwrap_or(scenario.compare.repeats);
    scenario.validate()?;
    if scenario.configurations.len() < 2 {
        return Err(Error::request("there is one configuration, and nothing to compare it with")
            .hint("add `--vary gc=serial,g1`, or a second one to the scenario"));
    }
    let judgement = judgement(&scenario, Some(&verb.comparing), &verb.judging)?;
    announce(&scenario, verb)?;
    session.run(&scenario, &judgement)
}

/// Says how much it will be, and asks where it is much.
fn announce(scenario: &Scenario, verb: &Verb) -> Result<()> {
    let configurations = scenario.configurations.len() as u64;
    let trials = configurations * u64::from(scenario.trials);
    let minutes = trials as f64 * seconds_least(scenario) / 60.0;
    let text = format!(
        "{configurations} configurations in {} blocks: {} trials, at least {}",
        scenario.trials,
        grouped(trials),
        if minutes < 1.0 { "a minute".to_owned() } else { format!("{minutes:.0} minutes") }
    );
    let mut progress = Progress::new(verb.options.output.quiet);
    progress.step(&text);
    if verb.yes || (minutes <= ASK_MINUTES && trials <= ASK_TRIALS) {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::request(format!("{text}; too much to begin unasked"))
            .hint("say so with `--yes`, or have fewer configurations (`--only`), blocks (`--trials`) or requests"));
    }
    progress.warn("Begin? [y/N]");
    let mut answer = String::new();
    // What cannot be read is no yes.
    let _ = stdin.lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::request("not begun")),
    }
}

/// What a trial takes at least: what its phases say of time. Work by requests is as fast as the subject.
fn seconds_least(scenario: &Scenario) -> f64 {
    let of = |kind: &PhaseKind| match kind {
        PhaseKind::Idle(span) => span.as_s(),
        PhaseKind::Work(work) => work.schedule.seconds().unwrap_or(0.0),
        PhaseKind::Driver(_) | PhaseKind::Own(_) => 0.0,
    };
    TRIAL_SECONDS + scenario.load.iter().map(|phase| of(&phase.kind)).sum::<f64>()
}

/// With archives nothing runs, so nothing that changes a run may be asked for.
fn refuse_options(verb: &Verb) -> Result<()> {
    #[derive(Parser)]
    struct Untyped {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        marking: Marking,
        #[command(flatten)]
        running: Running,
    }
    let untyped = Untyped::try_parse_from(["loadline"]).map_err(|cause| Error::bug(cause.to_string()))?;
    let (typed, usual) = (&verb.options, &untyped.options);
    let same = typed.url == usual.url
        && typed.load == usual.load
        && typed.subject == usual.subject
        && typed.trial == usual.trial
        && verb.marking == untyped.marking
        && typed.output.out == usual.output.out
        && verb.running == untyped.running;
    if same && verb.vary.is_empty() && verb.only.is_empty() {
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
    let shown = Shown { document: &document, folders: &folders, missing: &merged.missing };
    shown.show(output.json, output.view, &output.exports, &mut Progress::new(output.quiet))?;
    judgement.passes(&document).map(Code::of)
}
