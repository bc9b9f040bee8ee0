//! `loadline find`: the load line, the smallest memory limit at which the target still holds, proved by trials.

use super::args_find::Find as Verb;
use super::exit::Code;
use super::live::Live;
use super::run;
use super::session::{Interrupt, Session, is_interrupted};
use crate::archive::Archive;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::record::{Conditions, FindOutcome, Trial};
use crate::result;
use crate::scenario::{Scenario, Searching};
use crate::series::search::{self, Search};
use crate::series::{self, Archived, Local};
use std::path::Path;

/// Finds the load line.
pub(super) fn find(verb: Verb, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let session = Session::new(verb.options.output.clone(), typed, clock, interrupt);
    let session = session.rebuilding(verb.options.asked.subject.rebuild);
    if let Some(archive) = &verb.resume {
        return resume(&session, archive);
    }
    let only_image = verb.scenario.is_none() && verb.options.asked.subject.image.is_some();
    let mut scenario = match (&verb.scenario, verb.command.is_empty() && !only_image) {
        (Some(scenario), true) => {
            let mut asked = run::load(scenario, &session.releases())?;
            asked.select(&verb.only)?;
            asked.change(&verb.options.asked)?;
            asked
        }
        (None, false) => {
            let mut asked = Scenario::of_command(&verb.command, &verb.options.asked)?;
            if verb.options.asked.trial.rest.is_none() {
                // Nobody asked for it, and it says nothing of a limit.
                asked.load.drop_last_rest();
            }
            asked
        }
        _ => {
            return Err(Error::request("find the load line of what?")
                .hint("give a scenario, or `--rate`, `--target` and a command after `--`"));
        }
    };
    search::settle(&mut scenario, &verb.searching)?;
    begin(&session, scenario)
}

/// Goes on with the search of an archive, in the same archive.
fn resume(session: &Session, path: &Path) -> Result<Code> {
    let archive = result::read(path)?;
    if !result::is_search(&archive.trials) {
        return Err(Error::request(format!("{} holds no search", path.display()))
            .hint("`loadline find` makes one; `loadline report ARCHIVE` shows what is there"));
    }
    search::check(&archive.scenario)?;
    go_on(session, path, archive)
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
    search(session, &Searched { conditions, scenario }, Vec::new(), store)
}

/// Goes on after the trials of an archive, in the same archive.
fn go_on(session: &Session, path: &Path, archive: Archive) -> Result<Code> {
    let mut live = session.live();
    let scenario = session.prepare(&archive.scenario, &mut live)?.scenario;
    let trials = archive.trials;
    live.progress.step(&format!("going on after {} trials", trials.len()));
    let store = Archived::reopen(path, trials.len() as u32, live)?;
    search(session, &Searched { conditions: archive.conditions, scenario }, trials, store)
}

/// What is searched, and under which conditions.
struct Searched {
    conditions: Conditions,
    scenario: Scenario,
}

/// Searches, then says what was found. What was measured is kept and shown, however the search ends.
fn search(session: &Session, searched: &Searched, mut trials: Vec<Trial>, mut store: Archived<Live>) -> Result<Code> {
    let Searched { conditions, scenario } = searched;
    let done = make(session, searched, &mut trials, &mut store);
    let found = result::of_search(conditions, scenario, &trials);
    let interrupted = is_interrupted(&done);
    let mut ended = session.finish(store, interrupted, &found)?;
    if interrupted {
        ended.progress.step(&format!("`loadline find --resume {}` goes on", ended.folder.display()));
    }
    done?;
    ended.kept?;
    let outcome = found.find.as_ref().map(|find| find.outcome);
    Ok(match outcome {
        Some(FindOutcome::Found | FindOutcome::AtLowerBound) => Code::Yes,
        _ => Code::No,
    })
}

/// Searches the line of a scenario in an archive of its own, as part of something else that shows what was found.
pub(super) fn line(session: &Session, scenario: &Scenario, folder: &Path) -> Result<()> {
    let mut scenario = scenario.clone();
    search::settle(&mut scenario, &Searching::default())?;
    let conditions = session.conditions(&scenario);
    let mut store = Archived::create(folder, &conditions, &scenario, session.live())?;
    let done = make(session, &Searched { conditions, scenario }, &mut Vec::new(), &mut store);
    let (kept, _) = store.close(is_interrupted(&done));
    done.and(kept)
}

/// Makes the trials that the search asks for.
fn make(session: &Session, searched: &Searched, trials: &mut Vec<Trial>, store: &mut Archived<Live>) -> Result<()> {
    let Searched { conditions, scenario } = searched;
    let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
    let limit_max =
        Search::limit_max_of(trials).map_or_else(|| series::room(scenario, configuration, session.clock), Ok)?;
    let strategy = Search::new(scenario, limit_max)?;
    let tools = session.tools(&conditions.machine);
    let mut local = Local::paging(tools, scenario, configuration, trials, store.folder().to_owned())?;
    series::run(&strategy, &mut local, store, trials).map(drop)
}
