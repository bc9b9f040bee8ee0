//! `loadline find`: the load line, the smallest memory limit at which the target still holds, proved by trials.

use super::args_find::{Find as Verb, Searching};
use super::exit::Code;
use super::found::{self, max_direct, max_heap};
use super::guarding;
use super::options::{change, scenario_of};
use super::paging::Paging;
use super::preparing::{Preparing, Rebuild};
use super::recorded;
use super::ruling::{self, DISCARDED_MAX, Ruling};
use super::run;
use super::session::{Interrupt, Live, Session, machine_now};
use super::store::Store;
use crate::clock::Clock;
use crate::comparison::{self, Judged};
use crate::doubt::Doubt;
use crate::error::{Error, ErrorKind, Result};
use crate::observe::machine;
use crate::record::{Conditions, FindOutcome, Pages, SoughtRecord, SoughtStage, SoughtVerdict, Trial, Unknowns};
use crate::report::Progress;
use crate::scenario::{Budget, Configuration, MarkPoint, PhaseKind, Scenario};
use crate::search::{self, Attempt, Course, Move, Stage};
use crate::subject::{Spawner, jdk};
use crate::trial::{self, Look, Seal, Setup};
use crate::units::{Bytes, Span};
use std::path::Path;
use std::time::Duration;

/// Of the memory that is free, what a trial without a concern for memory may have.
const ROOM_SHARE: f64 = 0.75;
/// A subject that thrashes does not come to its end; it is killed after this.
const END_WITHIN: Duration = Duration::from_secs(2);
/// File pages charged to others, beyond what every program shares (the C library, locales): such a trial did not pay
/// for its JDK.
const FOREIGN_MAX: u64 = 8 << 20;

/// Finds the load line.
pub(super) fn find(verb: Verb, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let session = Session::new(verb.options.output.clone(), typed, clock, interrupt);
    let session = session.building(Rebuild::of(&verb.options));
    if let Some(archive) = &verb.searching.resume {
        return resume(&session, archive);
    }
    let only_image = verb.scenario.is_none() && verb.options.subject.image.is_some();
    let mut scenario = match (&verb.scenario, verb.command.is_empty() && !only_image) {
        (Some(scenario), true) => {
            let mut asked = run::load(scenario, &session.releases())?;
            run::select(&mut asked, &verb.only)?;
            change(&mut asked, &verb.options)?;
            asked
        }
        (None, false) => {
            let mut asked = scenario_of(&verb.command, &verb.options)?;
            if verb.options.trial.rest.is_none() {
                // Nobody asked for it, and it says nothing of a limit.
                drop_last_rest(&mut asked);
            }
            asked
        }
        _ => {
            return Err(Error::request("find the load line of what?")
                .hint("give a scenario, or `--rate`, `--target` and a command after `--`"));
        }
    };
    settle(&mut scenario, &verb.searching)?;
    Search::begin(&session, scenario)
}

/// Goes on with the search of an archive, in the same archive.
fn resume(session: &Session, path: &Path) -> Result<Code> {
    let archive = recorded::read(path)?;
    if !found::is_search(&archive.trials) {
        return Err(Error::request(format!("{} holds no search", path.display()))
            .hint("`loadline find` makes one; `loadline report ARCHIVE` shows what is there"));
    }
    check(&archive.scenario)?;
    Search::go_on(session, path, archive.conditions, archive.scenario, archive.trials)
}

/// Takes what was typed about searching into the scenario, and checks that it can be searched.
fn settle(scenario: &mut Scenario, typed: &Searching) -> Result<()> {
    let find = &mut scenario.find;
    if !typed.target.is_empty() {
        find.target.clone_from(&typed.target);
    }
    find.as_is |= typed.as_is;
    find.step = typed.step.unwrap_or(find.step);
    find.proofs = typed.proofs.unwrap_or(find.proofs);
    find.headroom = typed.headroom.unwrap_or(find.headroom);
    find.limit_min = typed.limit_min.or(find.limit_min);
    find.limit_max = typed.limit_max.or(find.limit_max);
    find.prove = typed.prove.or(find.prove);
    find.max_rate |= typed.max_rate;
    find.trials_max = typed.trials_max.unwrap_or(find.trials_max);
    find.warm &= !typed.no_warm;
    if scenario.find.target.is_empty() {
        scenario.find.target = usual_target(scenario)?;
    }
    // The live set is what the heap is guessed from.
    let wanted = [MarkPoint::Start, MarkPoint::Loaded, MarkPoint::Collected];
    scenario.marks = scenario.marks_possible().into_iter().filter(|mark| wanted.contains(mark)).collect();
    scenario.validate()?;
    check(scenario)
}

/// What is usual for the load: nearly all that is offered, and nothing wrong. A closed model varies by itself.
fn usual_target(scenario: &Scenario) -> Result<Vec<Budget>> {
    let open = |kind: &PhaseKind| matches!(kind, PhaseKind::Work(work) if work.schedule.model() == "open");
    let rate = if scenario.load.iter().any(|phase| open(&phase.kind)) { "rate>=98%" } else { "rate>=90%" };
    [rate, "failed==0"].into_iter().map(|text| text.parse().map_err(Error::bug)).collect()
}

fn check(scenario: &Scenario) -> Result<()> {
    let [configuration] = scenario.configurations.as_slice() else {
        let names: Vec<&str> = scenario.configurations.iter().map(|of| of.name.as_str()).collect();
        return Err(Error::request("a search is of one configuration")
            .hint(format!("choose one of them with `--only`: {}", names.join(", "))));
    };
    let phases = scenario.phases_of_work();
    for target in &scenario.find.target {
        comparison::check_target(target, &phases).map_err(Error::request)?;
    }
    let find = &scenario.find;
    if find.max_rate && (configuration.limit.is_none() || found::base_rate(scenario).is_none()) {
        return Err(Error::request("the highest rate is that of a limit, beginning with a rate")
            .hint("give both: `--limit 128m --rate 200`, or `limit` and an open model in the scenario"));
    }
    let limits = [configuration.limit, find.limit_max].into_iter().flatten();
    if let (Some(heap), Some(limit)) = (configuration.heap, limits.min())
        && heap >= limit
    {
        return Err(Error::request(format!("the heap of {heap} does not fit into the limit of {limit}"))
            .hint("leave `heap` out to have it searched, or raise the limit"));
    }
    if find.as_is && found::unknowns(scenario, configuration) == Unknowns::Limit {
        return Err(Error::request("the heap is given, and was to be left to the JVM")
            .hint("leave out either `--as-is` or the heap (`--heap`, `-Xmx`)"));
    }
    Ok(())
}

fn drop_last_rest(scenario: &mut Scenario) {
    while scenario.load.last().is_some_and(|phase| !phase.kind.works()) {
        scenario.load.pop();
    }
}

/// Raises or lowers the rates of all phases.
fn scale(scenario: &mut Scenario, factor: f64) {
    for phase in &mut scenario.load {
        if let PhaseKind::Work(work) = &mut phase.kind {
            work.schedule.scale(factor);
        }
    }
}

/// A search under way.
struct Search<'a> {
    session: &'a Session,
    scenario: Scenario,
    conditions: Conditions,
    spawner: Spawner,
    course: Course,
    paging: Paging,
    trials: Vec<Trial>,
}

impl<'a> Search<'a> {
    /// Prepares everything, and searches.
    fn begin(session: &'a Session, scenario: Scenario) -> Result<Code> {
        let mut progress = Progress::new(session.output.quiet);
        let (scenario, spawner) = prepare(session, &scenario, &mut progress)?;
        if !scenario.budgets.is_empty() {
            progress.step("the budgets of the scenario are not asked: a search asks whether its target holds");
        }
        let machine = machine_now(session.clock);
        let conditions = session.conditions(&scenario, machine);
        let store = Store::create(&session.folder(&scenario), &conditions, &scenario)?;
        Self::with(session, scenario, conditions, spawner, Vec::new())?.finish(store, &mut progress)
    }

    /// Goes on after these trials, in their archive.
    fn go_on(
        session: &'a Session,
        path: &Path,
        conditions: Conditions,
        scenario: Scenario,
        trials: Vec<Trial>,
    ) -> Result<Code> {
        let mut progress = Progress::new(session.output.quiet);
        let (scenario, spawner) = prepare(session, &scenario, &mut progress)?;
        progress.step(&format!("going on after {} trials", trials.len()));
        let store = Store::reopen(path, trials.len() as u32)?;
        Self::with(session, scenario, conditions, spawner, trials)?.finish(store, &mut progress)
    }

    fn with(
        session: &'a Session,
        scenario: Scenario,
        conditions: Conditions,
        spawner: Spawner,
        trials: Vec<Trial>,
    ) -> Result<Self> {
        let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
        let asked = trials.iter().find_map(|trial| trial.limit_bytes.filter(|_| is_ask(trial)));
        let limit_max = asked.map_or_else(|| room(&scenario, configuration, session.clock), Ok)?;
        let course = found::course(&scenario, configuration, limit_max);
        let mut paging = Paging::of(&scenario, configuration, &session.jdks, session.clock)?;
        trials.iter().for_each(|trial| paging.learn(trial));
        Ok(Self { session, conditions, spawner, course, paging, trials, scenario })
    }

    /// Searches, then says what was found. What was measured is kept and shown, however the search ends.
    fn finish(mut self, mut store: Store, progress: &mut Progress) -> Result<Code> {
        let done = self.trial_by_trial(&mut store, progress);
        let interrupted = matches!(&done, Err(error) if error.kind == ErrorKind::Interrupted);
        let folder = store.folder().to_owned();
        let kept = store.close(interrupted);
        let result = found::document(&self.conditions, &self.scenario, &self.trials);
        self.session.show(&result, &folder, progress)?;
        progress.step(&format!("archive: {}", folder.display()));
        if interrupted {
            progress.step(&format!("`loadline find --resume {}` goes on", folder.display()));
        }
        done?;
        kept?;
        let outcome = result.find.as_ref().map(|find| find.outcome);
        Ok(match outcome {
            Some(FindOutcome::Found | FindOutcome::AtLowerBound) => Code::Yes,
            _ => Code::No,
        })
    }

    fn trial_by_trial(&mut self, store: &mut Store, progress: &mut Progress) -> Result<()> {
        if self.paging.jdk_is_held() {
            self.go_private(store, progress)?;
        }
        while let Move::Try(attempt) = search::next(&self.course, &self.trials) {
            if self.session.interrupt.seen() {
                return Err(Error::interrupted());
            }
            progress.step(&self.announced(&attempt));
            let began_ns = self.session.clock.now_ns();
            self.paging.prepare(attempt.pages, progress);
            let conducted = self.conduct(&attempt, began_ns, store, progress);
            let trial = conducted.trial;
            if let Some(sought) = &trial.sought {
                progress.step(&verdict(sought));
            }
            self.paging.learn(&trial);
            let shared = is_void(&trial) && foreign(&trial) > FOREIGN_MAX;
            self.trials.push(trial);
            self.check_heap(&attempt)?;
            self.check_measured()?;
            match conducted.error {
                Some(error) if error.kind != ErrorKind::Subject => return Err(error),
                // Not even without a concern for memory: what the subject says is the answer.
                Some(error) if attempt.stage == SoughtStage::Ask => return Err(self.of_first_trial(error, &attempt)),
                _ => {}
            }
            if shared {
                self.go_private(store, progress)?;
            }
        }
        Ok(())
    }

    /// The trial in which memory was no concern.
    fn reference(&self) -> Option<&Trial> {
        self.trials.iter().find(|trial| is_ask(trial) && holds(trial))
    }

    /// An error of the first trial: where its limit was too little, that comes before all other advice.
    fn of_first_trial(&self, error: Error, attempt: &Attempt) -> Error {
        if !self.trials.last().is_some_and(ruling::is_short_of_memory) {
            return error;
        }
        let raise = match (self.scenario.find.limit_max, self.scenario.configurations.first()) {
            (None, Some(Configuration { limit: Some(_), .. })) => "raise `--limit`",
            (None, _) => "free some memory of this machine",
            (Some(_), _) => "raise `--limit-max`",
        };
        let limit = Bytes(attempt.limit);
        let hint = format!("memory was to be no concern in the first trial, and {limit} is too little: {raise}");
        Error { hint: Some(hint), ..error }
    }

    /// A heap that the command itself sets cannot be searched: each trial would have the same.
    fn check_heap(&self, attempt: &Attempt) -> Result<()> {
        let doubts = self.trials.last().into_iter().flat_map(|trial| &trial.doubts);
        let changed = doubts.map(|doubt| &doubt.doubt).find_map(|doubt| match doubt {
            Doubt::FlagChanged { asked, in_force } if asked.contains("-Xmx") => Some((asked, in_force)),
            _ => None,
        });
        match changed.filter(|_| attempt.heap.is_some()) {
            Some((asked, in_force)) => Err(Error::request(format!(
                "the subject sets its heap itself, so it cannot be searched: asked {asked}, in force is {in_force}"
            ))
            .hint("leave the heap as it is (`--as-is`), or take the option out of its command")),
            None => Ok(()),
        }
    }

    fn go_private(&mut self, store: &Store, progress: &mut Progress) -> Result<()> {
        let interrupt = &self.session.interrupt;
        self.paging.go_private(store.folder(), &|| interrupt.seen(), progress)
    }

    /// `trial 5, limit: 96.2 MiB with a heap of 8.0 MiB, to bisect`.
    fn announced(&self, attempt: &Attempt) -> String {
        let heap = attempt.heap.map_or_else(String::new, |heap| format!(" with a heap of {}", Bytes(heap)));
        let what = match (attempt.stage, attempt.purpose) {
            (SoughtStage::Ask, _) => "what it needs where memory is no concern",
            (_, Some(Stage::Bracket)) => "to bracket",
            (_, Some(Stage::Bisect)) => "to bisect",
            (_, Some(Stage::Prove)) => "to prove",
            (_, Some(Stage::Recheck)) => "once more",
            (_, None) => "",
        };
        let pages = if attempt.pages == Pages::Warm { ", file pages in memory already" } else { "" };
        if let Some(rate) = attempt.rate_per_s {
            return format!("trial {}, {what}: {rate:.1}/s", self.trials.len() + 1);
        }
        format!("trial {}, {what}: limit {}{heap}{pages}", self.trials.len() + 1, Bytes(attempt.limit))
    }

    fn conduct(
        &self,
        attempt: &Attempt,
        began_ns: u64,
        store: &mut Store,
        progress: &mut Progress,
    ) -> trial::Conducted {
        let index = self.trials.len() as u32;
        let reference = self.reference();
        let mut scenario = self.scenario.clone();
        let ask = attempt.stage == SoughtStage::Ask;
        if let Some(reference) = reference.filter(|_| !ask) {
            drop_last_rest(&mut scenario);
            scenario.subject.end_within = Span(scenario.subject.end_within.0.min(END_WITHIN));
            scenario.subject.ready_within = Span(guarding::ready_within(&scenario, reference));
        }
        if self.paging.private_jdk().is_some() && jdk::java_by_path(&scenario.subject).is_some() {
            // The path that was typed leads to the JDK whose pages others hold.
            scenario.subject.command[0] = "{jdk}".to_owned();
        }
        if let Some((rate, base)) = attempt.rate_per_s.zip(self.course.rate_per_s) {
            scale(&mut scenario, rate / base);
        }
        let configuration = self.configuration(attempt);
        let guard = reference.map(|reference| guarding::guard(&scenario, &scenario.find.target, reference));
        let seal = |trial: &mut Trial| {
            let seconds = self.session.clock.now_ns().saturating_sub(began_ns) as f64 / 1e9;
            trial.sought = Some(SoughtRecord { seconds, ..self.judged(attempt, trial, reference) });
        };
        let (log, folder) = store.begin(index, &configuration.name);
        let setup = Setup {
            scenario: &scenario,
            configuration: &configuration,
            block: 0,
            repeats: None,
            index,
            clock: self.session.clock,
            spawner: &self.spawner,
            jdks: &self.session.jdks,
            machine: &self.conditions.machine,
            log,
            folder,
            interrupt: self.session.interrupt.flag(),
            look: if ask { Look::Full } else { Look::Outside },
            guard: guard.as_ref(),
            seal: Some(Seal(&seal)),
            list_files: ask,
        };
        let mut live = Live::default();
        trial::conduct(&setup, &mut |event| {
            live.show(&event, progress);
            if let Some(trouble) = store.take(&event) {
                progress.warn(&format!("the archive is incomplete from here on: {}", trouble.what));
            }
        })
    }

    /// The configuration with the limit, and the heap, of an attempt.
    fn configuration(&self, attempt: &Attempt) -> Configuration {
        let mut configuration = self.scenario.configurations.first().cloned().unwrap_or_default();
        configuration.limit = Some(Bytes(attempt.limit));
        // Last, so that it wins.
        configuration.jvm.extend(attempt.heap.map(max_heap).into_iter().chain(attempt.direct.map(max_direct)));
        if let Some(jdk) = self.paging.private_jdk() {
            configuration.jdk = Some(jdk);
        }
        configuration
    }

    /// What a trial says of its attempt.
    fn judged(&self, attempt: &Attempt, trial: &Trial, reference: Option<&Trial>) -> SoughtRecord {
        let asks = attempt.stage == SoughtStage::Ask;
        let foreign = Some(foreign(trial)).filter(|foreign| *foreign > FOREIGN_MAX);
        let shared = foreign.filter(|_| attempt.pages == Pages::Cold && self.paging.can_go_private());
        let judged = comparison::judge_target(&self.scenario.find.target, trial, reference);
        let Ruling { verdict, why, broke } = Ruling::of(judged, trial, ruling::discarded(&self.trials), shared);
        SoughtRecord {
            stage: attempt.stage,
            heap_bytes: attempt.heap,
            direct_bytes: attempt.direct,
            rate_per_s: attempt.rate_per_s,
            pages: attempt.pages,
            verdict,
            why,
            broke,
            classes: asks.then(|| self.paging.classes(trial)).flatten(),
            read_ahead_bytes: asks.then(|| self.paging.read_ahead_bytes(trial)).flatten(),
            seconds: 0.0,
        }
    }

    /// Repeating a trial is of no use where its target cannot be measured.
    fn check_measured(&self) -> Result<()> {
        let Some(trial) = self.trials.last().filter(|_| ruling::discarded(&self.trials) > DISCARDED_MAX) else {
            return Ok(());
        };
        match comparison::judge_target(&self.scenario.find.target, trial, self.reference()) {
            Judged::Unmeasured(why) => Err(Error::subject(format!("the target cannot be judged: {why}"))
                .at(format!("discarded: {} trials in a row", ruling::discarded(&self.trials)))
                .hint("search with another target (`--target`)")),
            Judged::Held | Judged::Missed(_) => Ok(()),
        }
    }
}

/// Runs the build steps, and starts nothing else.
fn prepare(session: &Session, scenario: &Scenario, progress: &mut Progress) -> Result<(Scenario, Spawner)> {
    session.output.exports.check(session.output.json)?;
    let spawner = Spawner::new(session.clock);
    let interrupted = || session.interrupt.seen();
    let preparing = Preparing {
        spawner: &spawner,
        jdks: &session.jdks,
        clock: session.clock,
        rebuild: session.rebuild,
        interrupted: &interrupted,
    };
    let prepared = preparing.prepare(scenario, progress)?;
    Ok((prepared.scenario, spawner))
}

/// The limit at which memory is no concern.
fn room(scenario: &Scenario, configuration: &Configuration, clock: Clock) -> Result<u64> {
    let asked = scenario.find.limit_max.or(configuration.limit);
    if let Some(asked) = asked {
        return Ok(asked.0);
    }
    let activity = machine::Activity::read(&clock).map_err(|cause| Error::machine(cause.to_string()))?;
    let free = (activity.value.memory.available.0 as f64 * ROOM_SHARE) as u64;
    Ok(free.min(crate::subject::limit::outer().map_or(u64::MAX, |outer| outer.bytes.0)))
}

fn is_ask(trial: &Trial) -> bool {
    trial.sought.as_ref().is_some_and(|sought| sought.stage == SoughtStage::Ask)
}

fn holds(trial: &Trial) -> bool {
    trial.sought.as_ref().is_some_and(|sought| sought.verdict == SoughtVerdict::Holds)
}

fn foreign(trial: &Trial) -> u64 {
    trial.cgroup.and_then(|cgroup| cgroup.foreign_file_bytes).unwrap_or(0)
}

fn is_void(trial: &Trial) -> bool {
    trial.sought.as_ref().is_some_and(|sought| sought.verdict == SoughtVerdict::Void)
}

/// `  fails: p99.steady was 812 ms, and p99<50ms is asked`.
fn verdict(sought: &SoughtRecord) -> String {
    let why = if sought.why.is_empty() { String::new() } else { format!(": {}", sought.why.join("; ")) };
    match sought.verdict {
        SoughtVerdict::Holds => "  holds".to_owned(),
        SoughtVerdict::Fails => format!("  fails{why}"),
        SoughtVerdict::Void => format!("  does not count{why}"),
    }
}
