//! `loadline find`: the load line, the smallest memory limit that meets the target, confirmed by trials.

use super::exit::Code;
use super::live::Live;
use super::one_server::{ServerArguments, ServerScenario, Underway, going_on, refusing, variation};
use super::session::{Call, RunOptions, Session, is_interrupted};
use crate::archive;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Conditions, LineOver, OverRecord, Trial};
use crate::result;
use crate::scenario::{Configuration, FindSettings, Scenario, plain_name, vary};
use crate::series::search::{self, Search};
use crate::series::{self, Archived, Local};
use crate::work;
use clap::{Arg, Parser};
use std::path::{Path, PathBuf};

/// `loadline find`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Scenario file, jar, or archive; omit if a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | ARCHIVE")]
    scenario: Option<PathBuf>,
    /// Configuration to search, if the scenario has several
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    #[command(flatten)]
    searching: FindSettings,
    /// Repeat the search for each value: `cpu_limit=250m,500m,1`, or any other setting of `compare --vary`
    #[arg(long, help_heading = "Search", value_name = "AXIS=VALUE,VALUE", value_parser = variation)]
    over: Option<(String, Vec<String>)>,
    /// Continue the search in this archive; only `--minutes` and `--trials-max` can change
    #[arg(long, help_heading = "Search", value_name = "ARCHIVE")]
    #[arg(conflicts_with_all = ["scenario", "command", "only", "over"])]
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
  loadline find --rate 200 --url 'http://127.0.0.1:{port}/' -- java -jar app.jar '{port}'
  loadline find --rate 200 --url http://127.0.0.1:8080/ --image app:1.2
  loadline find app.loadline.yaml --as-is
  loadline find app.loadline.yaml --over cpu_limit=250m,500m,1
  loadline find --resume loadline-archive/app-20260101-120000";

/// Other verbs' options that a search does not have; the error names the alternative.
pub(super) fn refused() -> [Arg; 6] {
    let target = "a search uses a `--target`; budgets are for `weigh`, `run`, and `compare`";
    let trials = "a search decides the number of trials itself: see `--proofs` and `--trials-max`";
    let marks = "marks have no effect on a search; they are for `weigh`, `run`, and `compare`";
    refusing(target, "a search has no baseline; use `compare`", trials, marks)
}

/// Finds the load line.
pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let mut session = Session::of(&verb.options, call)?;
    if let Some(archive) = &verb.resume {
        return resume(&session, archive, verb.searching);
    }
    let Verb { scenario, only, options, command, .. } = &verb;
    let check = |mut scenario: Scenario| search::settle(&mut scenario, verb.searching.clone());
    let asked = ServerArguments { scenario: scenario.as_deref(), only, options, command, check: &check };
    let asked = asked.asked(&mut session)?;
    let Some(ServerScenario { mut scenario, is_of_file }) = asked else {
        return Err(Error::request("no server to find a limit for")
            .hint("specify a scenario, or `--rate` or `--target` with a jar or a command after `--`"));
    };
    if !is_of_file && options.asked.trial.rest.is_none() {
        // The user did not request it, and it reveals nothing about a limit.
        scenario.load.drop_last_rest();
    }
    if let Some(over) = verb.over {
        let one = scenario.configurations.get(..1).unwrap_or_default();
        let mut varied = vary(std::slice::from_ref(&over), one, Path::new(""), &session.releases())?;
        // A value is named as on the command line, but `jdk=found` expands to several.
        if varied.len() == over.1.len() {
            varied.iter_mut().zip(&over.1).for_each(|(one, value)| one.name = plain_name(value));
        }
        return self::over(&session, &over.0, scenario, varied, &verb.searching);
    }
    search::settle(&mut scenario, verb.searching)?;
    begin(&session, scenario)
}

/// Searches for each value's line and shows them side by side. A value that prevents the server from running gets a row
/// with the reason. Repeating the command resumes an interrupted search.
fn over(
    session: &Session,
    axis: &str,
    mut scenario: Scenario,
    varied: Vec<Configuration>,
    asked: &FindSettings,
) -> Result<Code> {
    let of_value = |configuration: Configuration| {
        let value = configuration.name.clone();
        let mut one = Scenario { configurations: vec![configuration], ..scenario.clone() };
        search::settle(&mut one, asked.clone()).map(|()| (value, one))
    };
    // Validates every request before the first trial.
    let each = varied.into_iter().map(of_value).collect::<Result<Vec<_>>>()?;
    scenario.name = format!("{}-over-{axis}", scenario.name);
    let (folder, conditions) = (session.folder(&scenario), session.conditions(&scenario));
    let mut lines = Vec::new();
    let mut done = Ok(());
    for (value, one) in each {
        let one = session.prepare(&one, &mut session.live())?.scenario;
        let searched = line(session, &one, &folder.join(&value));
        let why = searched.ended.as_ref().err().map(in_one_line).unwrap_or_default();
        lines.push(search::line_over(value, searched.find, &searched.trials, why));
        match searched.ended {
            // The next value may work.
            Err(error) if error.kind != ErrorKind::Subject => {
                done = Err(error);
                break;
            }
            _ => {}
        }
    }
    let is_found = |line: &LineOver| line.find.as_ref().is_some_and(|find| find.outcome.is_found());
    let all_found = lines.iter().all(is_found);
    session.present(&result::over(&conditions, OverRecord { axis: axis.to_owned(), lines }), &folder)?;
    done.map(|()| Code::of(all_found))
}

/// The error with the first line of its context.
fn in_one_line(error: &Error) -> String {
    let context = error.context.first().map(|context| format!("; {context}"));
    format!("{}{}", error.what, context.unwrap_or_default())
}

/// Resumes the search in an archive.
fn resume(session: &Session, path: &Path, bounds: FindSettings) -> Result<Code> {
    let archive = result::read(path)?;
    if !result::is_search(&archive.trials) {
        return Err(Error::request(format!("{} contains no search", path.display()))
            .hint("`loadline find` creates one; `loadline report ARCHIVE` shows the contents of an archive"));
    }
    let mut scenario = archive.scenario.clone();
    scenario.find.apply(bounds);
    scenario.validate()?;
    search::check(&scenario)?;
    search(session, Underway::resume(session, path, archive, scenario)?)
}

/// Searches in a new archive.
fn begin(session: &Session, scenario: Scenario) -> Result<Code> {
    let mut live = session.live();
    let prepared = session.prepare(&scenario, &mut live)?;
    if !scenario.budgets.is_empty() {
        live.progress.step("the budgets of the scenario are ignored: a search checks only its target");
    }
    let scenario = prepared.scenario;
    let conditions = session.conditions(&scenario);
    let store = Archived::create(&session.folder(&scenario), &conditions, &scenario, live)?;
    search(session, Underway { scenario, conditions, trials: Vec::new(), store })
}

/// Searches and reports the result. Completed trials are kept and shown even after an error.
fn search(session: &Session, mut underway: Underway) -> Result<Code> {
    let done = make(session, &mut underway);
    let found = result::of_search(&underway.conditions, &underway.scenario, &underway.trials);
    session.conclude("find", underway.store, done, &found)?;
    Ok(Code::of(found.find.as_ref().is_some_and(|find| find.outcome.is_found())))
}

/// Searches for a scenario's line as part of another verb that reports it, in a new archive or in an existing one with
/// the same question.
pub(super) fn line(session: &Session, scenario: &Scenario, folder: &Path) -> work::Searched {
    let (mut scenario, mut trials) = (scenario.clone(), Vec::new());
    let mut search = || {
        search::settle(&mut scenario, FindSettings::default())?;
        let (conditions, store) = open(session, &scenario, folder, &mut trials)?;
        let begun = std::mem::take(&mut trials);
        let mut underway = Underway { scenario: scenario.clone(), conditions, trials: begun, store };
        let done = make(session, &mut underway);
        trials = underway.trials;
        let (kept, _) = underway.store.close(is_interrupted(&done));
        done.and(kept)
    };
    let ended = search();
    work::Searched { find: search::found(&scenario, &trials), trials, ended }
}

/// Opens an archive for this search, with its existing trials.
fn open(
    session: &Session,
    scenario: &Scenario,
    folder: &Path,
    trials: &mut Vec<Trial>,
) -> Result<(Conditions, Archived<Live>)> {
    let mut live = session.live();
    if !archive::remove_unbegun(folder)? {
        // Never deletes completed trials: an archive that cannot be read or continued is an error.
        let archive = result::read(folder)?;
        if archive.scenario != *scenario {
            return Err(Error::request(format!("{} contains a search of a different scenario", folder.display()))
                .hint("move it elsewhere, then repeat the command"));
        }
        *trials = archive.trials;
        live.progress.step(&going_on(trials));
        return Ok((archive.conditions, Archived::reopen(folder, trials.len() as u32, live)?));
    }
    let conditions = session.conditions(scenario);
    let store = Archived::create(folder, &conditions, scenario, live)?;
    Ok((conditions, store))
}

/// Runs the trials that the search requests.
fn make(session: &Session, underway: &mut Underway) -> Result<()> {
    let Underway { scenario, conditions, trials, store } = underway;
    let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
    let limit_max =
        Search::limit_max_of(trials).map_or_else(|| series::room(scenario, configuration, session.clock), Ok)?;
    let strategy = Search::new(scenario, limit_max)?;
    let tools = session.tools(&conditions.machine);
    let mut local = Local::paging(tools, scenario, configuration, trials, store.folder().to_owned())?;
    series::run(&strategy, &mut local, store, trials).map(drop)
}
