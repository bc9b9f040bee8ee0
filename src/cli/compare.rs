//! `loadline compare`: compares configurations in blocks of fresh JVMs, or two archives.

use super::exit::Code;
use super::explain::with_profiler;
use super::exports::Shown;
use super::judging::code;
use super::one_server::{ServerArguments, variation};
use super::session::{Call, RevisionOptions, RunOptions, Session, is_untyped};
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::result::{self, ArchivePart, Judgement, JudgementSettings, Merged};
use crate::scenario::{BlockOptions, CompareSettings, Explain, MarkPoint, Marking, Scenario, axes, vary};
use crate::series::{BLOCKS, Extent};
use clap::Parser;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

/// `loadline compare`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Scenario file, jar, or two archives; omit if a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | ARCHIVE ARCHIVE", num_args = 0..=2)]
    what: Vec<PathBuf>,
    /// The axes to vary.
    #[arg(long, value_name = "AXIS=VALUE,VALUE", value_parser = variation, help = what_varies())]
    vary: Vec<(String, Vec<String>)>,
    /// Compare only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Start without asking, even if the comparison takes a long time
    #[arg(long, short)]
    yes: bool,
    /// Run each configuration once more with a profiler and a heap dump, to find the code and objects behind the
    /// difference
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    explaining: Explain,
    #[command(flatten)]
    comparing: CompareSettings,
    #[command(flatten)]
    running: BlockOptions,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    marking: Marking,
    #[command(flatten)]
    judging: JudgementSettings,
    /// Command that starts the server, without a scenario; after a jar, its arguments. `{port}` expands to a free port
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  loadline compare app.loadline.yaml
  loadline compare --vary gc=serial,g1 --vary jdk=17,25 --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline compare before/ after/ --html difference.html";

fn what_varies() -> String {
    let all = axes();
    format!(
        "Vary a setting: `gc=serial,g1`, or `jvm=,-Xss1m` with an empty value for unchanged; settings: {all} \
         (repeatable)"
    )
}

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let what = || {
        Error::request("nothing to compare")
            .hint("specify a scenario, two archives, or `--vary gc=serial,g1` and a jar, or a command after `--`")
    };
    match (verb.what.as_slice(), verb.command.is_empty() && verb.options.asked.subject.image.is_none()) {
        ([first, second], true) => archives(&verb, first, second, call.typed.to_string()),
        ([archive], true) if archive.is_dir() => Err(Error::request(format!("{} is a directory", archive.display()))
            .hint("specify a second archive to compare it with; `loadline report ARCHIVE` shows one alone")),
        ([] | [_], _) => {
            let mut session = Session::of(&verb.options, call)?;
            let (scenario, command) = (verb.what.first().map(PathBuf::as_path), verb.command.as_slice());
            let releases = session.releases();
            let check = |scenario: Scenario| {
                let scenario = side_by_side(&verb, scenario, &releases)?;
                judgement(&scenario, &verb)?.check_metrics(&scenario, &scenario.marks)
            };
            let asked = ServerArguments { scenario, only: &[], options: &verb.options, command, check: &check };
            let asked = asked.asked(&mut session)?.ok_or_else(what)?;
            let scenario = side_by_side(&verb, asked.scenario, &releases)?;
            let judgement = judgement(&scenario, &verb)?;
            announce(&scenario, &verb)?;
            session.run(&scenario, &judgement)
        }
        _ => Err(what()),
    }
}

/// The scenario with all configurations to compare.
fn side_by_side(verb: &Verb, mut scenario: Scenario, releases: &[u32]) -> Result<Scenario> {
    scenario.mark(&verb.marking)?;
    scenario.configurations = vary(&verb.vary, &scenario.configurations, Path::new(""), releases)?;
    scenario.select(&verb.only)?;
    if scenario.trials == 1 && verb.marking.trials.is_none() {
        scenario.trials = BLOCKS;
    }
    let BlockOptions { until_sure, repeats } = verb.running;
    scenario.compare.apply(CompareSettings { until_sure, repeats, ..CompareSettings::default() });
    scenario.validate()?;
    if scenario.configurations.len() < 2 {
        return Err(Error::request("there is only one configuration, and nothing to compare it with")
            .hint("add `--vary gc=serial,g1`, or a second configuration to the scenario"));
    }
    if verb.explain {
        scenario.explain(with_profiler(&verb.explaining)?)?;
    }
    Ok(scenario)
}

fn judgement(scenario: &Scenario, verb: &Verb) -> Result<Judgement> {
    Judgement::of(scenario, JudgementSettings { comparing: verb.comparing.clone(), ..verb.judging.clone() })
}

/// Announces the size of the comparison, and asks for consent if it is long.
fn announce(scenario: &Scenario, verb: &Verb) -> Result<()> {
    let extent = Extent::of(scenario);
    let mut progress = Progress::new(verb.options.output.quiet);
    progress.step(&extent.to_string());
    if verb.yes || !extent.is_long() {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::request(format!("{extent}; this requires confirmation"))
            .hint("confirm with `--yes`, or use fewer configurations (`--only`), blocks (`--trials`), or requests"));
    }
    progress.warn("Continue? [y/N]");
    let mut answer = String::new();
    // An unreadable answer is not a yes.
    let _ = stdin.lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::request("not started")),
    }
}

/// Comparing archives runs nothing, so options that change a run are errors.
fn refuse_options(verb: &Verb) -> Result<()> {
    let same = is_untyped(&verb.options.asked)
        && is_untyped(&verb.marking)
        && is_untyped(&verb.running)
        && verb.options.output.out.is_none()
        && verb.options.output.source == RevisionOptions::default();
    if same && verb.vary.is_empty() && verb.only.is_empty() && !verb.explain {
        return Ok(());
    }
    Err(Error::request("comparing two archives runs nothing, so options for a run have no effect")
        .hint("keep only options such as `--metric`, `--least`, `--confidence`, `--budget`, `--html`"))
}

/// Compares two archives.
fn archives(verb: &Verb, first: &Path, second: &Path, typed: String) -> Result<Code> {
    let output = &verb.options.output;
    output.exports.check(output.json)?;
    refuse_options(verb)?;
    let part = |path: &Path| Ok(ArchivePart { path: path.to_owned(), archive: result::read(path)? });
    let merged = Merged::of(vec![part(first)?, part(second)?], typed)?;
    let judgement = judgement(&merged.scenario, verb)?;
    judgement.check_metrics(&merged.scenario, &MarkPoint::ALL)?;
    let document = judgement.of_archives(&merged);
    let folders = [first.to_owned(), second.to_owned()];
    let shown = Shown { document: &document, folders: &folders, missing: &merged.missing, against: None };
    let mut progress = Progress::new(output.quiet);
    shown.show(output.json, output.depth(), &output.exports, &mut progress)?;
    code(&judgement, &document, &mut progress)
}
