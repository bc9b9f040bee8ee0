//! `loadline find`: the load line, the smallest memory limit at which the target still holds, proved by trials.

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
    /// A scenario file, a jar, or the archive of a run; omit it if a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | ARCHIVE")]
    scenario: Option<PathBuf>,
    /// The configuration to search, where the scenario has several
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    #[command(flatten)]
    searching: FindSettings,
    /// Find the line at each value, as in `cpu_limit=250m,500m,1`; any axis of `compare --vary`
    #[arg(long, help_heading = "Searching", value_name = "AXIS=VALUE,VALUE", value_parser = variation)]
    over: Option<(String, Vec<String>)>,
    /// Continue the search of this archive, with its own options; only `--minutes` and `--trials-max` may be new
    #[arg(long, help_heading = "Searching", value_name = "ARCHIVE")]
    #[arg(conflicts_with_all = ["scenario", "command", "only", "over"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
    /// The server, if there is no scenario: a `java` command line, or arguments of the image. `{port}` stands for a
    /// free port
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

/// Options of other verbs that would be without effect on a search: an error says what a search has instead.
pub(super) fn refused() -> [Arg; 6] {
    let target = "a search asks for a `--target`; budgets are for `weigh`, `run` and `compare`";
    let trials = "a search makes the trials it needs: see `--proofs` and `--trials-max`";
    let marks = "a search weighs once; `weigh`, `run` and `compare` do at marks";
    refusing(target, "a search has no baseline; `compare` has one", trials, marks)
}

/// Finds the load line.
pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let mut session = Session::of(&verb.options, call)?;
    if let Some(archive) = &verb.resume {
        return resume(&session, archive, verb.searching);
    }
    let Verb { scenario, only, options, command, .. } = &verb;
    let asked = ServerArguments { scenario: scenario.as_deref(), only, options, command }.asked(&mut session)?;
    let Some(ServerScenario { mut scenario, is_of_file }) = asked else {
        return Err(Error::request("find the load line of what?")
            .hint("give a scenario, or `--rate`, `--target` and a jar, or a command after `--`"));
    };
    if !is_of_file && options.asked.trial.rest.is_none() {
        // The user did not ask for it, and it says nothing about a limit.
        scenario.load.drop_last_rest();
    }
    if let Some(over) = verb.over {
        let one = scenario.configurations.get(..1).unwrap_or_default();
        let mut varied = vary(std::slice::from_ref(&over), one, Path::new(""), &session.releases())?;
        // A value is known by what was typed; `jdk=found` stands for several.
        if varied.len() == over.1.len() {
            varied.iter_mut().zip(&over.1).for_each(|(one, value)| one.name = plain_name(value));
        }
        return self::over(&session, &over.0, scenario, varied, &verb.searching);
    }
    search::settle(&mut scenario, verb.searching)?;
    begin(&session, scenario)
}

/// Searches the line of each configuration, and shows them side by side. A value at which the server cannot run has its
/// row with the reason; the same command goes on with what an interrupted one left in its folder.
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
    // Before the first trial, every request is known to be right.
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
            // The next value may do better.
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

/// The error, and the first line of its context.
fn in_one_line(error: &Error) -> String {
    let context = error.context.first().map(|context| format!("; {context}"));
    format!("{}{}", error.what, context.unwrap_or_default())
}

/// Goes on with the search of an archive, in the same archive.
fn resume(session: &Session, path: &Path, bounds: FindSettings) -> Result<Code> {
    let archive = result::read(path)?;
    if !result::is_search(&archive.trials) {
        return Err(Error::request(format!("{} holds no search", path.display()))
            .hint("`loadline find` makes one; `loadline report ARCHIVE` shows what is there"));
    }
    let mut scenario = archive.scenario.clone();
    scenario.find.apply(bounds);
    scenario.validate()?;
    search::check(&scenario)?;
    search(session, Underway::resume(session, path, archive, scenario)?)
}

/// Searches, in an archive of its own.
fn begin(session: &Session, scenario: Scenario) -> Result<Code> {
    let mut live = session.live();
    let prepared = session.prepare(&scenario, &mut live)?;
    if !scenario.budgets.is_empty() {
        live.progress.step("the budgets of the scenario are not asked: a search asks whether its target holds");
    }
    let scenario = prepared.scenario;
    let conditions = session.conditions(&scenario);
    let store = Archived::create(&session.folder(&scenario), &conditions, &scenario, live)?;
    search(session, Underway { scenario, conditions, trials: Vec::new(), store })
}

/// Searches, then reports the result. Measured trials are kept and shown, however the search ends.
fn search(session: &Session, mut underway: Underway) -> Result<Code> {
    let done = make(session, &mut underway);
    let found = result::of_search(&underway.conditions, &underway.scenario, &underway.trials);
    session.conclude("find", underway.store, done, &found)?;
    Ok(Code::of(found.find.as_ref().is_some_and(|find| find.outcome.is_found())))
}

/// Searches the line of a scenario as part of something else that shows what was found: in an archive of its own, or in
/// the one that lies there already, where that asks the same.
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

/// An archive for this search, with the trials that it has already.
fn open(
    session: &Session,
    scenario: &Scenario,
    folder: &Path,
    trials: &mut Vec<Trial>,
) -> Result<(Conditions, Archived<Live>)> {
    let mut live = session.live();
    if !archive::remove_unbegun(folder)? {
        // Measured trials are never removed: an archive that cannot be read or continued is an error.
        let archive = result::read(folder)?;
        if archive.scenario != *scenario {
            return Err(Error::request(format!("{} holds a search of another scenario", folder.display()))
                .hint("move it away, and give the command again"));
        }
        *trials = archive.trials;
        live.progress.step(&going_on(trials));
        return Ok((archive.conditions, Archived::reopen(folder, trials.len() as u32, live)?));
    }
    let conditions = session.conditions(scenario);
    let store = Archived::create(folder, &conditions, scenario, live)?;
    Ok((conditions, store))
}

/// Makes the trials that the search asks for.
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
