//! Executes an entry: checks that it is not done yet and that the place is suitable, works, and records the result.

use super::aside::{self, Aside, Claim, Leftovers};
use super::home::{Home, Put};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::fleet::{
    LineConditions, PlaceSeen, Plan, Proof, ServiceVersions, Started, last_of, place_doubts, proof_below, proof_of,
    proved, why_here,
};
use crate::kernel::machine::boot_id;
use crate::kernel::process::page_size;
use crate::record::{
    EntryOutcome, EntryResult, FLEET_ENTRY_SCHEMA, FindRecord, Machine, NodeRecord, Outcome, PlanEntry, Task, Trial,
    Why,
};
use crate::scenario::{Last, Scenario};
use crate::series::PreparedSeries;
use crate::units::utc;
use std::path::Path;

/// Archive names within an entry, by purpose.
const PROOF: &str = "proof";
const BELOW: &str = "below";
const SEARCH: &str = "search";
const BLOCKS: &str = "blocks";

/// A worker's input.
#[derive(Debug)]
pub struct WorkerInput<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The plan's directory, as an absolute path; the plan's relative paths are relative to it.
    pub folder: &'a Path,
    /// The directory of all results.
    pub out: &'a Path,
    /// Which entry, and where.
    pub started: &'a Started,
}

/// Runs an entry's trials, and inspects the place.
pub trait Runner {
    /// Inspects the place before anything runs.
    fn place_before(&self) -> PlaceSeen;

    /// Inspects the place at the end.
    fn place_after(&self) -> PlaceSeen;

    /// The machine's current state.
    fn machine(&self) -> Machine;

    /// Checks that a memory limit can be set. Errors: `Machine`, with the reason.
    fn can_limit(&self) -> Result<()>;

    /// Runs the builds, and hashes the files that trials will read. Errors: `Request` if they differ from the plan's;
    /// otherwise, like [`crate::series::Preparing::prepare`].
    fn prepare(&self, scenario: &Scenario) -> Result<PreparedSeries>;

    /// Reads the properties of the service that only the node knows. Errors: `Request` or `Machine` if its JDK or its
    /// image is not found.
    fn seen(&self, scenario: &Scenario) -> Result<ServiceVersions>;

    /// Searches in an archive; resumes an existing one.
    fn search(&self, scenario: &Scenario, archive: &Path) -> Searched;

    /// Runs blocks of all configurations in a new archive; `first` is the first one's index in the whole comparison.
    fn blocks(&self, prepared: &PreparedSeries, first: u32, archive: &Path) -> Blocks;

    /// Why no more trials should run, if there is a reason.
    fn stopped(&self) -> Option<Stopped>;

    /// Shows a message.
    fn say(&self, words: &str);
}

/// Why an entry ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Its time limit.
    TimeUp,
    /// The engine or the user, so it will be started again.
    Asked,
}

/// The outcome of a search.
#[derive(Debug)]
pub struct Searched {
    /// The combined result of its trials, if there are any.
    pub find: Option<FindRecord>,
    /// All trials, including those of an earlier worker.
    pub trials: Vec<Trial>,
    /// The error that ended it early, if any.
    pub ended: Result<()>,
}

/// The outcome of running blocks.
#[derive(Debug)]
pub struct Blocks {
    /// All trials.
    pub trials: Vec<Trial>,
    /// Errors of individual trials, or the one that ended the blocks early.
    pub ended: Result<Vec<Error>>,
}

/// An entry with a result.
#[derive(Debug)]
pub struct Done {
    /// The one that counts.
    pub result: EntryResult,
    /// The worker that produced it.
    pub by: By,
}

/// Who produced a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// This worker.
    Us,
    /// Another worker, before this one began.
    Earlier,
    /// Another worker, while this one worked.
    Meanwhile,
}

/// Executes an entry unless it is done. Errors: `Request` if the plan, its files, or the results directory are invalid,
/// without recording anything; `Subject` and `Machine` after recording them; `Interrupted`, after which it can be
/// restarted.
pub fn work(asked: &WorkerInput<'_>, runner: &dyn Runner, clock: Clock) -> Result<Done> {
    let entry = asked.plan.entry(asked.started.index)?;
    let home = Home::new(asked.out, &asked.plan.header.hash, entry.index);
    if let Some(result) = home.standing()?
        && result.outcome != EntryOutcome::NodeUnfit
    {
        return Ok(Done { result, by: By::Earlier });
    }
    let boot = boot_id().unwrap_or_default();
    let minutes_max = asked.plan.entries.iter().map(|entry| entry.minutes).fold(0.0, f64::max);
    match aside::sweep(asked.out, &boot, minutes_max, clock) {
        0 => {}
        1 => runner.say("removed 1 directory left by a killed worker"),
        n => runner.say(&format!("removed {n} directories left by killed workers")),
    }
    let mut doing = Doing::new(asked, entry, runner, clock)?;
    let ended = doing.carry_out(&boot);
    doing.finish(&home, ended)
}

/// An entry in progress.
struct Doing<'a> {
    asked: &'a WorkerInput<'a>,
    entry: &'a PlanEntry,
    runner: &'a dyn Runner,
    clock: Clock,
    began_ns: u64,
    before: PlaceSeen,
    node: NodeRecord,
    /// Set when the place was found suitable.
    aside: Option<Aside>,
    prepared: PreparedSeries,
    seen: ServiceVersions,
    task: Task,
    find: Option<FindRecord>,
    archives: Vec<String>,
}

impl<'a> Doing<'a> {
    fn new(asked: &'a WorkerInput<'a>, entry: &'a PlanEntry, runner: &'a dyn Runner, clock: Clock) -> Result<Self> {
        let mut scenario = entry.scenario.clone().put_into(asked.folder);
        match &entry.task {
            Task::Block { count, .. } => (scenario.trials, scenario.compare.until_sure) = (*count, None),
            Task::Prove if entry.last.is_none() => {
                return Err(Error::request(format!("entry {} should confirm a load line, but has none", entry.index))
                    .hint("recreate the plan with `loadline plan`"));
            }
            Task::Prove | Task::Search { .. } => {}
        }
        scenario.validate()?;
        let began_ns = clock.now_ns();
        let before = runner.place_before();
        let node = NodeRecord {
            name: asked.started.node.clone(),
            cpus: before.cpus,
            machine: runner.machine(),
            restarts: asked.started.restarts,
        };
        Ok(Self {
            asked,
            entry,
            runner,
            clock,
            began_ns,
            before,
            node,
            aside: None,
            prepared: PreparedSeries { scenario, left_out: Vec::new() },
            seen: ServiceVersions::default(),
            task: entry.task.clone(),
            find: None,
            archives: Vec::new(),
        })
    }

    fn carry_out(&mut self, boot: &str) -> Result<()> {
        let scenario = &self.prepared.scenario;
        let is_block = matches!(self.task, Task::Block { .. });
        let has_limit = scenario.configurations.iter().any(|configuration| configuration.limit.is_some());
        // The container tool sets an image's limit.
        if (has_limit || !is_block) && scenario.subject.image.is_none() {
            self.runner.can_limit()?;
        }
        self.prepared = self.runner.prepare(scenario)?;
        if !is_block {
            self.seen = self.runner.seen(&self.prepared.scenario)?;
        }
        // All blocks must be from one node and one session.
        let others = if is_block { Leftovers::Remove } else { Leftovers::GoOn };
        let aside = Aside::begin(self.asked.out, &self.claim(boot), &self.node.name, others, self.clock)?;
        if aside.is_resumed() {
            self.runner.say("continuing the work of an earlier worker on this entry");
        }
        self.aside = Some(aside);
        match self.task {
            Task::Search { .. } => self.search(),
            Task::Prove => self.prove(),
            Task::Block { first, .. } => self.blocks(first),
        }
    }

    /// Trials can only be continued by similar ones.
    fn claim(&self, boot: &str) -> Claim {
        let NodeRecord { cpus, machine, .. } = &self.node;
        let seen = [&self.seen.jdk, &self.seen.image_digest].map(|of| of.clone().unwrap_or_default());
        let model = machine.cpu_model.clone().unwrap_or_default();
        let place = [model, cpus.to_string(), machine.kernel.clone(), machine.cgroup.clone()];
        Claim {
            plan: self.asked.plan.header.hash.clone(),
            index: self.entry.index,
            boot: boot.to_owned(),
            on: place.into_iter().chain(seen).collect(),
            minutes: self.entry.minutes,
        }
    }

    fn searched(&mut self, name: &str, scenario: &Scenario) -> Result<Searched> {
        let aside = self.aside.as_ref().ok_or_else(|| Error::bug("a search without a directory"))?;
        self.archives.push(Home::archive(aside, name));
        Ok(self.runner.search(scenario, &aside.path().join(name)))
    }

    fn search(&mut self) -> Result<()> {
        let scenario = self.prepared.scenario.clone();
        let searched = self.searched(SEARCH, &scenario)?;
        self.find = searched.find;
        searched.ended
    }

    fn search_anew(&mut self, why: Why, said: &str) -> Result<()> {
        self.runner.say(&format!("searching again: {said}"));
        self.task = Task::Search { why };
        self.search()
    }

    /// Confirms the last line, and checks whether the step below still fails.
    fn prove(&mut self) -> Result<()> {
        let Some(last) = self.entry.last.clone() else { return Err(Error::bug("no load line to confirm")) };
        match why_here(&last, &self.seen) {
            None => {}
            Some(why) if why == Why::ImageChanged => return self.search_anew(why, "the image changed"),
            Some(why) => return self.search_anew(why, "the JDK changed"),
        }
        let scenario = self.prepared.scenario.clone();
        let proof = self.searched(PROOF, &proof_of(&scenario, &last))?;
        // With too little memory, a subject may die even in the trial with an ample limit.
        let died = matches!(&proof.ended, Err(error) if error.kind == ErrorKind::Subject);
        if !died {
            self.find = proof.find.clone();
            proof.ended?;
        }
        match proof.find.as_ref().map(Proof::of).filter(|_| !died) {
            Some(Proof::Held) => {}
            Some(Proof::Unknown) => return Ok(()),
            Some(Proof::Failed) | None => return self.search_anew(Why::LineFailed, "the load line failed"),
        }
        let Some(found) = proof.find else { return Ok(()) };
        self.below(&scenario, &last, &found)
    }

    /// Tests the step below a confirmed line.
    fn below(&mut self, scenario: &Scenario, last: &Last, proof: &FindRecord) -> Result<()> {
        self.find = Some(proved(proof, last, scenario.find.headroom, None));
        let Some(below) = proof_below(scenario, last, page_size().0) else { return Ok(()) };
        self.runner.say("the load line passed; trying the step below it");
        let tried = self.searched(BELOW, &below)?;
        let found = tried.find.as_ref();
        match tried.ended {
            // The line itself is confirmed, which answers the question.
            Err(error) if error.kind == ErrorKind::Interrupted && self.is_time_up() => return Ok(()),
            Err(error) if error.kind != ErrorKind::Subject => return Err(error),
            Ok(()) if found.is_some_and(|found| Proof::of(found) == Proof::Held) => {
                return self.search_anew(Why::StepBelowHeld, "the step below the load line passed, too");
            }
            Ok(()) | Err(_) => {}
        }
        self.find = Some(proved(proof, last, scenario.find.headroom, found.map(|found| (found, &*tried.trials))));
        Ok(())
    }

    fn blocks(&mut self, first: u32) -> Result<()> {
        let aside = self.aside.as_ref().ok_or_else(|| Error::bug("blocks without a directory"))?;
        self.archives.push(Home::archive(aside, BLOCKS));
        let made = self.runner.blocks(&self.prepared, first, &aside.path().join(BLOCKS));
        let is_measured = made.trials.iter().any(|trial| trial.outcome == Outcome::Completed);
        match made.ended?.into_iter().next() {
            // A failing configuration is a result if others succeed.
            Some(error) if !is_measured => Err(error),
            _ => Ok(()),
        }
    }

    fn is_time_up(&self) -> bool {
        self.runner.stopped() == Some(Stopped::TimeUp)
    }

    /// Records the result, and returns the information for the engine.
    fn finish(mut self, home: &Home, ended: Result<()>) -> Result<Done> {
        let (outcome, error) = match ended {
            Ok(()) => (EntryOutcome::Answered, None),
            Err(error) => match error.kind {
                ErrorKind::Interrupted if self.is_time_up() => (EntryOutcome::OutOfTime, None),
                ErrorKind::Subject => (EntryOutcome::SubjectFailed, Some(error)),
                ErrorKind::Machine => (EntryOutcome::NodeUnfit, Some(error)),
                // Existing trials are kept in any case.
                ErrorKind::Interrupted | ErrorKind::Request | ErrorKind::Bug => {
                    self.aside.into_iter().for_each(Aside::leave);
                    return Err(error);
                }
            },
        };
        let result = self.result(outcome, error.as_ref());
        let put = match self.aside.take().map_or_else(|| self.empty(), Ok) {
            Ok(aside) => home.put(aside, &result),
            Err(cause) => Err(cause),
        };
        match (put, error) {
            (Ok(Put::Theirs(result)), None) => Ok(Done { result: *result, by: By::Meanwhile }),
            (Ok(Put::Theirs(result)), Some(_)) if result.outcome != EntryOutcome::NodeUnfit => {
                Ok(Done { result: *result, by: By::Meanwhile })
            }
            (Ok(Put::Ours), None) => Ok(Done { result, by: By::Us }),
            // A result that is not recorded does not count, so another attempt can produce it.
            (Err(cause), None) => Err(cause),
            (Err(cause), Some(error)) if error.kind == ErrorKind::Subject => {
                Err(cause.at(format!("recording that {}", error.what)))
            }
            (_, Some(error)) => Err(error),
        }
    }

    /// A directory for a result without trials.
    fn empty(&self) -> Result<Aside> {
        let claim = self.claim(&boot_id().unwrap_or_default());
        Aside::begin(self.asked.out, &claim, &self.node.name, Leftovers::Keep, self.clock)
    }

    fn result(&self, outcome: EntryOutcome, error: Option<&Error>) -> EntryResult {
        let now = self.clock.now_ns();
        let known = LineConditions {
            at: utc(self.clock.unix_s()),
            question: self.entry.question.clone(),
            inputs: self.prepared.scenario.configurations.first().and_then(|of| of.inputs.clone()),
            seen: self.seen.clone(),
            cpu_model: self.node.machine.cpu_model.clone(),
        };
        let line = self.find.as_ref().and_then(|find| last_of(find, &self.task, self.entry.last.as_ref(), &known));
        let why = error.map(|error| [std::slice::from_ref(&error.what), &*error.context, &*error.said].concat());
        let doubts = place_doubts(&self.before, &self.runner.place_after());
        EntryResult {
            schema: FLEET_ENTRY_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            plan: self.asked.plan.header.hash.clone(),
            index: self.entry.index,
            name: self.entry.name.clone(),
            task: self.task.clone(),
            outcome,
            why: why.unwrap_or_default(),
            node: self.node.clone(),
            started: utc(self.clock.since_epoch(self.began_ns).as_secs_f64()),
            seconds: crate::clock::seconds_since(self.began_ns, now),
            find: self.find.clone(),
            line,
            archives: self.archives.clone(),
            doubts: doubts.into_iter().map(Into::into).collect(),
        }
    }
}
