//! `loadline tune`: tries remedies under load, keeps those that help, and confirms them.

use super::exit::Code;
use super::find;
use super::one_server::{ServerArguments, ServerScenario, Underway, refusing};
use super::session::{Call, RunOptions, Session};
use crate::error::{Error, Result};
use crate::record::TuneOutcome;
use crate::report::{print, render, summarize_remedies};
use crate::result;
use crate::scenario::{Change, Scenario, TuneSettings};
use crate::series::tune::{self, Tuner};
use crate::series::{self, Archived, Local};
use crate::subject::allocators;
use clap::{Arg, Parser};
use std::path::{Path, PathBuf};

/// `loadline tune`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Scenario file or jar; omit if a command follows `--`
    #[arg(value_name = "SCENARIO | JAR")]
    scenario: Option<PathBuf>,
    /// Configuration to tune, if the scenario has several
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    #[command(flatten)]
    tuning: TuneSettings,
    /// Measure the unchanged server, and print which remedies would be tried and why
    #[arg(long, help_heading = "Tuning")]
    dry_run: bool,
    /// List all known remedies, with their costs and sources
    #[arg(long, help_heading = "Tuning", conflicts_with_all = ["scenario", "command", "only", "resume"])]
    list: bool,
    /// Continue tuning in this archive; only `--minutes` and `--trials-max` can change
    #[arg(long, help_heading = "Tuning", value_name = "ARCHIVE")]
    #[arg(conflicts_with_all = ["scenario", "command", "only"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
    /// Command that starts the server, without a scenario; with `--image`, its arguments. `{port}` expands to a free
    /// port
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  loadline tune --rate 200 --url 'http://127.0.0.1:{port}/' -- java -jar app.jar '{port}'
  loadline tune --rate 200 --target 'p99<50ms' --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline tune app.loadline.yaml --dry-run
  loadline tune app.loadline.yaml --try env.MALLOC_ARENA_MAX=2 --try -Dserver.tomcat.threads.max=50
  loadline tune --list";

/// Other verbs' options that a tuning does not have; the error names the alternative.
pub(super) fn refused() -> [Arg; 6] {
    let target = "tuning uses a `--target`; budgets are for `weigh`, `run`, and `compare`";
    let trials = "tuning decides the number of trials itself: see `--trials-max` and `--minutes`";
    let marks = "tuning chooses its marks itself; `--marks` is for `weigh`, `run`, and `compare`";
    refusing(target, "the baseline of a tuning run is the unchanged server", trials, marks)
}

/// Tunes a server.
pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    if verb.list {
        print(&render(&summarize_remedies()))?;
        return Ok(Code::Yes);
    }
    let mut session = Session::of(&verb.options, call)?;
    if let Some(archive) = &verb.resume {
        return resume(&session, archive, verb.tuning, verb.dry_run);
    }
    let Verb { scenario, only, options, command, .. } = &verb;
    let check = |mut scenario: Scenario| tune::settle(&mut scenario, verb.tuning.clone());
    let asked = ServerArguments { scenario: scenario.as_deref(), only, options, command, check: &check };
    let asked = asked.asked(&mut session)?;
    let Some(ServerScenario { mut scenario, .. }) = asked else {
        return Err(Error::request("nothing to tune").hint(
            "specify a scenario, a jar, or `--url` and a command after `--`; `--list` shows the known remedies",
        ));
    };
    tune::settle(&mut scenario, verb.tuning)?;
    if scenario.subject.image.is_none() {
        scenario.tune.allocators = allocators::installed();
        check_preloads(&scenario)?;
    }
    begin(&session, scenario, verb.dry_run)
}

/// Rejects a missing library, for which the loader would only print a line on stderr. Errors: `Request`, naming the
/// library.
fn check_preloads(scenario: &Scenario) -> Result<()> {
    let variables = scenario.tune.tries.iter().filter_map(|tried| match &tried.change {
        Change::Env(variables) => Some(variables),
        _ => None,
    });
    let mut preloads = variables.flatten().filter(|(name, _)| name == "LD_PRELOAD");
    let is_absent = |library: &str| library.contains('/') && !Path::new(library).is_file();
    match preloads.find(|(_, libraries)| libraries.split([':', ' ']).any(is_absent)) {
        Some((_, library)) => Err(Error::request(format!("the library `{library}` to preload does not exist"))
            .hint("install it, or specify its path")),
        None => Ok(()),
    }
}

/// Resumes the tuning in an archive.
fn resume(session: &Session, path: &Path, bounds: TuneSettings, dry_run: bool) -> Result<Code> {
    let archive = result::read(path)?;
    if !result::is_tuning(&archive.trials) {
        return Err(Error::request(format!("{} contains no tuning run", path.display()))
            .hint("`loadline tune` creates one; `loadline report ARCHIVE` shows the contents of an archive"));
    }
    let mut scenario = archive.scenario.clone();
    scenario.tune.apply(bounds);
    scenario.validate()?;
    tune::check(&scenario)?;
    make(session, Underway::resume(session, path, archive, scenario)?, dry_run)
}

/// Tunes in a new archive.
fn begin(session: &Session, scenario: Scenario, dry_run: bool) -> Result<Code> {
    let mut live = session.live();
    let mut scenario = session.prepare(&scenario, &mut live)?.scenario;
    let conditions = session.conditions(&scenario);
    let folder = session.folder(&scenario);
    if scenario.subject.image.is_none() {
        let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
        scenario.tune.scratch = Some(absolute.display().to_string());
    }
    let store = Archived::create(&folder, &conditions, &scenario, live)?;
    make(session, Underway { scenario, conditions, trials: Vec::new(), store }, dry_run)
}

/// Tunes and reports the result. Completed trials are kept and shown even after an error.
fn make(session: &Session, underway: Underway, dry_run: bool) -> Result<Code> {
    let Underway { scenario, conditions, mut trials, mut store } = underway;
    let strategy = Tuner::new(&scenario)?;
    if dry_run && trials.is_empty() {
        let baseline = strategy.baseline();
        session.live().progress.step(&format!(
            "a dry run starts the unchanged server {} times, which takes at least {}",
            baseline.trials(),
            baseline.span()
        ));
    }
    let strategy = if dry_run { strategy.dry() } else { strategy };
    let mut local = Local::new(session.tools(&conditions.machine));
    let mut done = series::run(&strategy, &mut local, &mut store, &mut trials).map(drop);
    let mut tuned = result::of_tuning(&conditions, &scenario, &trials);
    let folder = store.folder().to_owned();
    if done.is_ok() && scenario.tune.find && !dry_run {
        let proved = tuned.tune.as_ref().filter(|of| of.outcome == TuneOutcome::Proved);
        let changes = proved.map(|of| of.changes.clone());
        let mut lines = tune::lines(&scenario, changes.as_deref()).into_iter();
        done = lines.try_for_each(|(name, scenario)| find::line(session, &scenario, &folder.join(name)).ended);
    }
    result::add_lines(&mut tuned, &folder);
    session.conclude("tune", store, done, &tuned)?;
    let outcome = tuned.tune.as_ref().map(|of| of.outcome);
    Ok(Code::of(matches!(outcome, Some(TuneOutcome::Proved | TuneOutcome::Planned))))
}
