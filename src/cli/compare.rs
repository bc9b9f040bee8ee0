//! `loadline compare`: configurations side by side, in blocks of fresh JVMs, or as two archives recorded them.

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
    /// A scenario file, a jar, or two archives; omit it if a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | ARCHIVE ARCHIVE", num_args = 0..=2)]
    what: Vec<PathBuf>,
    /// The axes to vary.
    #[arg(long, value_name = "AXIS=VALUE,VALUE", value_parser = variation, help = what_varies())]
    vary: Vec<(String, Vec<String>)>,
    /// Compare only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Begin without asking, however long it takes
    #[arg(long, short)]
    yes: bool,
    /// Start each configuration once more, under a profiler and with a heap dump, to name the code and the objects
    /// behind the difference
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
    /// The server, if there is no scenario: a `java` command line, or after a jar its own arguments. `{port}` stands
    /// for a free port
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
        "An axis with its values, such as `gc=serial,g1` or `jvm=,-Xss1m` (empty: as given): {all}; may be repeated"
    )
}

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let what = || {
        Error::request("compare what?")
            .hint("give a scenario, two archives, or `--vary gc=serial,g1` and a jar, or a command after `--`")
    };
    match (verb.what.as_slice(), verb.command.is_empty() && verb.options.asked.subject.image.is_none()) {
        ([first, second], true) => archives(&verb, first, second, call.typed.to_string()),
        ([archive], true) if archive.is_dir() => Err(Error::request(format!("{} is a folder", archive.display()))
            .hint("give a second archive to compare it with; `loadline report ARCHIVE` shows one alone")),
        ([] | [_], _) => {
            let mut session = Session::of(&verb.options, call)?;
            let (scenario, command) = (verb.what.first().map(PathBuf::as_path), verb.command.as_slice());
            let asked = ServerArguments { scenario, only: &[], options: &verb.options, command }.asked(&mut session)?;
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
    let BlockOptions { until_sure, repeats } = verb.running;
    scenario.compare.apply(CompareSettings { until_sure, repeats, ..CompareSettings::default() });
    scenario.validate()?;
    if scenario.configurations.len() < 2 {
        return Err(Error::request("there is one configuration, and nothing to compare it with")
            .hint("add `--vary gc=serial,g1`, or a second one to the scenario"));
    }
    if verb.explain {
        scenario.explain(with_profiler(&verb.explaining)?)?;
    }
    let judgement = judgement(&scenario, verb)?;
    announce(&scenario, verb)?;
    session.run(&scenario, &judgement)
}

fn judgement(scenario: &Scenario, verb: &Verb) -> Result<Judgement> {
    Judgement::of(scenario, JudgementSettings { comparing: verb.comparing.clone(), ..verb.judging.clone() })
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
        return Err(Error::request(format!("{extent}; too much to begin without being asked"))
            .hint("confirm with `--yes`, or have fewer configurations (`--only`), blocks (`--trials`) or requests"));
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
    let same = is_untyped(&verb.options.asked)
        && is_untyped(&verb.marking)
        && is_untyped(&verb.running)
        && verb.options.output.out.is_none()
        && verb.options.output.source == RevisionOptions::default();
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
