//! What `weigh`, `run` and `demo` share: the conditions, the trials one after another, the archive and the progress as
//! sinks of their events, the summary at the end.

use super::args::Output;
use super::exit::Code;
use super::exports::{Folder, Shown};
use super::judgement::Judgement;
use super::next::{Bounds, Done, next_block};
use super::preparing::{Preparing, Rebuild};
use super::recorded::add_figures;
use super::store::Store;
use crate::clock::Clock;
use crate::comparison;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::cgroup::CgroupVersion;
use crate::observe::machine;
use crate::record::{Conditions, Document, Machine, Trial, Unknowns};
use crate::report::Progress;
use crate::scenario::{Configuration, Scenario};
use crate::subject::jdk::{self, Places};
use crate::subject::{FoundJdk, Spawner};
use crate::trial::{self, Event, Look, Setup};
use crate::units::Bytes;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user asked to stop. The second Ctrl-C ends Loadline at once; the guardian then ends the subject.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to INT, TERM and HUP.
    pub(super) fn listen() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag unset and sets it, the second one ends.
            signal_hook::flag::register_conditional_shutdown(signal, Code::Interrupted as i32, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .map_err(|cause| Error::machine(format!("cannot listen to signals: {cause}")))?;
        }
        Ok(Self(flag))
    }

    /// Set by the first signal.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the first signal came.
    pub(super) fn seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a run needs besides its scenario.
pub(super) struct Session {
    pub(super) clock: Clock,
    pub(super) interrupt: Interrupt,
    pub(super) output: Output,
    typed: String,
    pub(super) jdks: Vec<FoundJdk>,
    pub(super) rebuild: Rebuild,
}

impl Session {
    /// `typed` is the command line that repeats the run.
    pub(super) fn new(output: Output, typed: String, clock: Clock, interrupt: Interrupt) -> Self {
        let jdks = jdk::discover(&Places::usual(), clock);
        Self { clock, interrupt, output, typed, jdks, rebuild: Rebuild::IfChanged }
    }

    /// The same, but build steps run as said.
    pub(super) fn building(self, rebuild: Rebuild) -> Self {
        Self { rebuild, ..self }
    }

    /// Feature releases of the JDKs found, ascending.
    pub(super) fn releases(&self) -> Vec<u32> {
        let mut releases: Vec<u32> = self.jdks.iter().map(|jdk| jdk.release).collect();
        releases.sort_unstable();
        releases.dedup();
        releases
    }

    /// Runs every configuration as often as asked, and reports.
    ///
    /// # Errors
    /// What stopped the run, or the first trial that failed; what was measured is printed and kept before.
    pub(super) fn run(&self, scenario: &Scenario, judgement: &Judgement) -> Result<Code> {
        scenario.validate()?;
        judgement.check_metrics(scenario, &scenario.marks)?;
        Judgement::check_figures(scenario)?;
        self.output.exports.check(self.output.json)?;
        let mut progress = Progress::new(self.output.quiet);
        let spawner = Spawner::new(self.clock);
        let interrupted = || self.interrupt.seen();
        let preparing = Preparing {
            spawner: &spawner,
            jdks: &self.jdks,
            clock: self.clock,
            rebuild: self.rebuild,
            interrupted: &interrupted,
        };
        let prepared = preparing.prepare(scenario, &mut progress)?;
        let scenario = &prepared.scenario;
        let judgement = &judgement.of_those_left(scenario, &mut progress);
        let machine = machine_now(self.clock);
        let conditions = Conditions { left_out: prepared.left_out, ..self.conditions(scenario, machine) };
        let mut store = Store::create(&self.folder(scenario), &conditions, scenario)?;
        let mut trials = Vec::new();
        let asked = Asked { scenario, judgement, machine: &conditions.machine, spawner: &spawner };
        let done = self.all(&asked, &mut store, &mut progress, &mut trials);
        let interrupted = matches!(&done, Err(error) if error.kind == ErrorKind::Interrupted);
        if let Err(error) = &done
            && error.kind == ErrorKind::Request
            && !weighed(&trials)
        {
            // A request that could not be carried out leaves nothing worth keeping.
            store.discard();
            return done.map(|()| Code::Yes);
        }
        let folder = store.folder().to_owned();
        let kept = store.close(interrupted);
        let result = judgement.document(&conditions, &trials);
        self.show(&result, &folder, &mut progress)?;
        progress.step(&format!("archive: {}", folder.display()));
        done?;
        kept?;
        judgement.code(&result)
    }

    /// Runs all blocks. A trial that fails does not keep the others from running.
    fn all(
        &self,
        asked: &Asked<'_>,
        store: &mut Store,
        progress: &mut Progress,
        trials: &mut Vec<Trial>,
    ) -> Result<()> {
        let scenario = asked.scenario;
        let mut failed: Vec<Error> = Vec::new();
        let bounds = bounds(asked);
        let mut block = 0;
        loop {
            let blocks = comparison::blocks(trials);
            let done = Done { count: block, whole: failed.is_empty(), blocks: &blocks };
            let Some(turn) = next_block(&bounds, &done, || asked.judgement.is_sure(trials)) else { break };
            if let Some(disturbed) = turn.repeats().and_then(|at| blocks.get(at as usize)) {
                let words = disturbed.disturbed.as_deref().unwrap_or_default();
                progress.step(&format!("block {} was disturbed: {words}", disturbed.block + 1));
            }
            let order = match scenario.configurations.len() > 1 && asked.judgement.compare().blocks(scenario.trials) > 1
            {
                true => comparison::order(scenario.seed, block, scenario.configurations.len()),
                false => (0..scenario.configurations.len()).collect(),
            };
            for at in order {
                let configuration = &scenario.configurations[at];
                let index = trials.len() as u32;
                progress.step(&format!("{} ({})", configuration.name, turn.place(block, index, &bounds)));
                let place = Place { asked, configuration, block, index, repeats: turn.repeats() };
                let mut conducted = self.one(&place, store, progress);
                add_figures(&mut conducted.trial, &scenario.figures);
                trials.push(conducted.trial);
                match conducted.error {
                    Some(error) if error.kind == ErrorKind::Subject => failed.push(error),
                    Some(error) => return Err(error),
                    None => {}
                }
            }
            block += 1;
        }
        summed_up(failed, trials.len(), progress)
    }

    fn one(&self, place: &Place<'_>, store: &mut Store, progress: &mut Progress) -> trial::Conducted {
        let (log, folder) = store.begin(place.index, &place.configuration.name);
        let setup = Setup {
            scenario: place.asked.scenario,
            configuration: place.configuration,
            block: place.block,
            repeats: place.repeats,
            index: place.index,
            clock: self.clock,
            spawner: place.asked.spawner,
            jdks: &self.jdks,
            machine: place.asked.machine,
            log,
            folder,
            interrupt: self.interrupt.flag(),
            look: Look::Full,
            guard: None,
            seal: None,
            list_files: false,
        };
        let mut live = Live::default();
        trial::conduct(&setup, &mut |event| {
            live.show(&event, progress);
            if let Some(trouble) = store.take(&event) {
                progress.warn(&format!("the archive is incomplete from here on: {}", trouble.what));
            }
        })
    }

    /// What holds for every trial of a run.
    pub(super) fn conditions(&self, scenario: &Scenario, machine: Machine) -> Conditions {
        let load = scenario.load.iter().map(|phase| format!("{}: {}", phase.name, trial::describe(phase)));
        Conditions {
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: scenario.name.clone(),
            started: utc(self.clock, ISO_8601),
            machine,
            seed: scenario.seed,
            command: self.typed.clone(),
            load: load.collect(),
            left_out: Vec::new(),
        }
    }

    /// Where its archive goes.
    pub(super) fn folder(&self, scenario: &Scenario) -> PathBuf {
        let usual = || {
            let name = format!("loadline-archive/{}-{}", scenario.name, utc(self.clock, "%Y%m%d-%H%M%S"));
            // Two runs may begin in one second.
            let mut names = std::iter::once(name.clone()).chain((2..100).map(|n| format!("{name}-{n}")));
            PathBuf::from(names.find(|name| !Path::new(name).exists()).unwrap_or(name))
        };
        self.output.out.clone().unwrap_or_else(usual)
    }

    /// Prints what was measured; nothing where nothing was weighed and no document was asked for.
    pub(super) fn show(&self, result: &Document, folder: &Path, progress: &mut Progress) -> Result<()> {
        let Output { json, view, exports, .. } = &self.output;
        let shown = Shown { document: result, folders: &[Folder::only(folder)], missing: &[] };
        // None of its trials is asked anything: what it found is in the target alone.
        let of_rates = result.find.as_ref().is_some_and(|find| find.unknowns == Unknowns::Rate);
        match *json || of_rates || weighed(&result.trials) {
            true => shown.show(*json, *view, exports, progress),
            false => exports.write(&shown, progress),
        }
    }
}

/// How documents write a moment.
pub(super) const ISO_8601: &str = "%Y-%m-%dT%H:%M:%SZ";

/// When Loadline was started, UTC.
pub(super) fn utc(clock: Clock, format: &str) -> String {
    let now = jiff::Timestamp::from_second(clock.origin_unix_s() as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.strftime(format).to_string()
}

/// What a run is asked to do, and with what.
struct Asked<'a> {
    scenario: &'a Scenario,
    judgement: &'a Judgement,
    machine: &'a Machine,
    spawner: &'a Spawner,
}

/// Which trial of which run.
struct Place<'a> {
    asked: &'a Asked<'a>,
    configuration: &'a Configuration,
    block: u32,
    index: u32,
    repeats: Option<u32>,
}

/// How much may run.
fn bounds(asked: &Asked<'_>) -> Bounds {
    let compare = asked.judgement.compare();
    Bounds {
        configurations: asked.scenario.configurations.len(),
        planned: asked.scenario.trials,
        until_sure: compare.until_sure,
        repeats: compare.repeats,
    }
}

/// Whether anything was measured.
fn weighed(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| !trial.marks.is_empty())
}

/// No error where none failed; that of the only trial; else the first one, the others told before.
fn summed_up(failed: Vec<Error>, total: usize, progress: &mut Progress) -> Result<()> {
    let count = failed.len();
    let mut failed = failed.into_iter();
    let Some(first) = failed.next() else { return Ok(()) };
    for other in failed {
        progress.warn(&other.to_string());
    }
    Err(if total > 1 { first.at(format!("{count} of {total} trials failed")) } else { first })
}

/// The machine as it is now.
pub(super) fn machine_now(clock: Clock) -> Machine {
    let fixed = machine::Machine::read();
    let activity = machine::Activity::read(&clock).ok().map(|reading| reading.value);
    Machine {
        cores: fixed.cores_online as u32,
        memory_bytes: fixed.memory.0,
        kernel: fixed.kernel,
        cgroup: fixed.memory_cgroup.map_or("none", CgroupVersion::name).to_owned(),
        load_average_1m: activity.as_ref().map(|activity| activity.load[0]),
        transparent_huge_pages: fixed.thp,
        swap_used_bytes: activity.map(|activity| activity.memory.swap_used.0),
    }
}

/// Events as progress on the terminal.
#[derive(Default)]
pub(super) struct Live {
    /// Seconds and correct answers at the last sample shown.
    last: Option<(f64, u64)>,
}

impl Live {
    pub(super) fn show(&mut self, event: &Event<'_>, progress: &mut Progress) {
        match event {
            Event::Starting { command, .. } => {
                progress.step(&format!("  start: {}", crate::scenario::shell_words(command)));
            }
            Event::Ready { pid, after } => {
                progress.step(&format!("  ready: pid {pid} after {:.2} s", after.as_secs_f64()))
            }
            Event::PhaseStarted { name, description } => {
                self.last = None;
                progress.step(&format!("  {name}: {description}"));
            }
            Event::Sample { phase: Some(phase), sample } => {
                let (before_s, before) = self.last.unwrap_or((sample.at_s, sample.ok));
                let span_s = sample.at_s - before_s;
                let rate = if span_s > 0.0 { sample.ok.saturating_sub(before) as f64 / span_s } else { 0.0 };
                progress.live(phase, sample.ok, sample.failed, rate, sample.rss_bytes);
                // A rate over a second; each sample would flicker.
                if self.last.is_none() || span_s >= 1.0 {
                    self.last = Some((sample.at_s, sample.ok));
                }
            }
            Event::Marked(mark) => {
                let (word, bytes) = mark.weight();
                progress.step(&format!("  mark {}: {word} {}", mark.name, Bytes(bytes)));
            }
            Event::Sample { .. }
            | Event::Interval { .. }
            | Event::PhaseEnded(_)
            | Event::Requests { .. }
            | Event::Doubted(_)
            | Event::Ended(_) => {}
        }
    }
}
