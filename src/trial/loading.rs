//! Load on a running server (`loadline load`), phase by phase, each reported while it runs.

use super::description::describe;
use super::doubts::{self, Beside};
use super::ending;
use super::engine_thread::{self, Driving, LOOK_EVERY, LoadProgress, STOPPED_WITHIN};
use super::reach::Reached;
use super::usage::{Spent, Usage};
use super::work_record::{judge, record_second, record_work};
use crate::clock::{Clock, seconds_since};
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::kernel::ports::Ports;
use crate::load::{Address, Control, GiveUp, Outcome, Plan, Target};
use crate::record::{IntervalTimes, PhaseRecord, Second, ThresholdRecord};
use crate::scenario::{Condition, Model, Phase, PhaseKind, Tls, Work};
use crate::units::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The plan of a load: target, phases, conditions.
#[derive(Debug)]
pub struct Loading<'a> {
    /// The server.
    pub reached: &'a Reached,
    /// The value of the `Host` header.
    pub host: String,
    /// TLS settings, if any.
    pub tls: Option<Tls>,
    /// The phases, in order.
    pub load: &'a [Phase],
    /// Seed of all random choices.
    pub seed: u64,
    /// The clock.
    pub clock: Clock,
    /// Threads of the engine, at least 1.
    pub threads: u32,
    /// CPUs of the engine; `None` leaves them to the kernel.
    pub cpus: Option<Vec<u32>>,
    /// Rows to keep per measured phase.
    pub rows_max: usize,
    /// Conditions on each measured phase.
    pub require: &'a [Condition],
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
}

/// An event during a load.
#[derive(Debug)]
pub enum LoadEvent<'a> {
    /// A phase begins.
    PhaseStarted {
        /// The phase.
        phase: &'a Phase,
        /// A description of its work.
        description: String,
    },
    /// About one second of a work phase.
    Second {
        /// Its figures.
        second: &'a Second,
        /// Its times.
        times: IntervalTimes<'a>,
    },
    /// A phase of work ended.
    PhaseEnded {
        /// The phase.
        phase: &'a Phase,
        /// The engine's results.
        outcome: &'a Outcome,
    },
}

/// The result of a load, however it ended.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In execution order.
    pub phases: Vec<PhaseRecord>,
    /// About a second each.
    pub timeline: Vec<Second>,
    /// The verdict on each condition for each measured phase.
    pub thresholds: Vec<ThresholdRecord>,
    /// Reasons to distrust its numbers.
    pub doubts: Vec<Doubt>,
    /// The error that stopped the load early.
    pub error: Option<Error>,
}

/// Whether a phase's figures are reported: it sends load and is not a warm-up.
pub fn is_measured(phase: &Phase) -> bool {
    phase.kind.works() && !phase.is_warmup()
}

/// State shared by all phases of a load.
struct LoadRun<'a> {
    loading: &'a Loading<'a>,
    control: Arc<Control>,
    origin_ns: u64,
    loaded: Loaded,
    emit: &'a mut dyn FnMut(LoadEvent<'_>),
}

impl Loading<'_> {
    /// Runs the load.
    pub fn run(&self, emit: &mut dyn FnMut(LoadEvent<'_>)) -> Loaded {
        let origin_ns = self.clock.now_ns();
        let mut run = LoadRun { loading: self, control: Arc::default(), origin_ns, loaded: Loaded::default(), emit };
        for phase in self.load {
            if let Err(error) = run.phase(phase) {
                run.loaded.error = Some(error.at(format!("in phase {}", phase.name)));
                break;
            }
        }
        run.loaded
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn plan(&self, phase: &Phase, work: &Work) -> Plan {
        Plan {
            target: Target { address: self.reached.address.clone(), host: self.host.clone(), tls: self.tls.clone() },
            work: work.clone(),
            seed: self.seed,
            give_up: GiveUp::for_work(work),
            rows_max: if is_measured(phase) { self.rows_max } else { 0 },
            rows_failed_max: 0,
        }
    }
}

impl LoadRun<'_> {
    fn phase(&mut self, phase: &Phase) -> Result<()> {
        if phase.until_steady {
            return Err(Error::request(
                "`loadline load` does not see the server's process, so it cannot detect when it is warm",
            )
            .hint("specify a time, `--warmup 30s`, or let `loadline weigh` start the server"));
        }
        (self.emit)(LoadEvent::PhaseStarted { phase, description: describe(phase) });
        match &phase.kind {
            PhaseKind::Idle(span) => self.rest(phase, *span),
            PhaseKind::Work(work) => self.work(phase, work),
            PhaseKind::Driver(_) | PhaseKind::Own(_) => {
                Err(Error::request("`loadline load` runs only the load generator")
                    .hint("remove the phase, or use `loadline run`"))
            }
        }
    }

    fn rest(&mut self, phase: &Phase, span: Span) -> Result<()> {
        let clock = self.loading.clock;
        let start_ns = clock.now_ns();
        let end_ns = start_ns + span.0.as_nanos() as u64;
        loop {
            let left_ns = end_ns.saturating_sub(clock.now_ns());
            if left_ns == 0 || self.loading.interrupted() {
                break;
            }
            self.loading.clock.sleep(LOOK_EVERY.min(Duration::from_nanos(left_ns)));
        }
        self.loaded.phases.push(PhaseRecord {
            name: phase.name.clone(),
            model: Model::Idle,
            at_s: seconds_since(self.origin_ns, start_ns),
            seconds: seconds_since(start_ns, clock.now_ns()),
            ..PhaseRecord::default()
        });
        if self.loading.interrupted() { Err(Error::interrupted()) } else { Ok(()) }
    }

    fn work(&mut self, phase: &Phase, work: &Work) -> Result<()> {
        let (clock, before) = (self.loading.clock, Spent::now(self.loading.clock));
        let outcome = self.drive(phase, work)?;
        // The server may have a limit that is unknown here.
        let usage = Usage { memory_stalled: None, ..Spent::now(clock).since(&before) };
        let mut record = record_work(&outcome, work);
        record.name.clone_from(&phase.name);
        record.at_s = seconds_since(self.origin_ns, before.at_ns);
        let interrupted = self.loading.interrupted();
        if interrupted && record.cut_short.is_some() {
            record.cut_short = Some("it was interrupted".to_owned());
        }
        let beside = if self.loading.reached.here { Beside::ServerHere } else { Beside::Nothing };
        let mut doubted = doubts::of_phase(&record, &usage, beside);
        if let Some(gone) = doubts::server_gone(&record, &self.loaded.timeline) {
            // It explains the failed requests.
            doubted.retain(|doubt| !matches!(doubt, Doubt::LoadFailures { .. }));
            doubted.insert(0, gone);
        }
        self.loaded.doubts.extend(doubted);
        let ports = if self.is_tcp() { Ports::read() } else { None };
        let near = ports.and_then(|ports| doubts::of_ports(&record, &ports, self.loading.reached.loopback));
        self.loaded.doubts.extend(near);
        if is_measured(phase) {
            self.loaded.thresholds.extend(judge(self.loading.require, &phase.name, &outcome));
        }
        (self.emit)(LoadEvent::PhaseEnded { phase, outcome: &outcome });
        let verdict = match interrupted {
            true => Err(Error::interrupted()),
            false if record.ok == 0 => Err(ending::no_answer(&record, outcome.tls_untold())),
            false => Ok(()),
        };
        self.loaded.phases.push(record);
        verdict
    }

    fn is_tcp(&self) -> bool {
        matches!(self.loading.reached.address, Address::Tcp(_))
    }

    /// Drives the load on a thread while checking for an interrupt.
    fn drive(&mut self, phase: &Phase, work: &Work) -> Result<Outcome> {
        let loading = self.loading;
        let driving = Driving {
            plan: loading.plan(phase, work),
            clock: loading.clock,
            control: Arc::clone(&self.control),
            threads: loading.threads,
            cpus: loading.cpus.clone(),
        };
        let (sender, receiver) = channel();
        // If the receiver is gone, nobody needs the messages.
        let thread = driving.start(move |told| drop(sender.send(told)));
        let outcome = self.attend(phase, work.schedule.is_open(), &receiver)?;
        // The thread's last message reported the result.
        let _ = thread.join();
        outcome
    }

    /// Waits for the engine's last message. Errors: `Bug` if it does not arrive.
    fn attend(&mut self, phase: &Phase, open: bool, receiver: &Receiver<LoadProgress>) -> Result<Result<Outcome>> {
        let clock = self.loading.clock;
        let mut give_up_ns = u64::MAX;
        loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(LoadProgress::Done(outcome)) => return Ok(*outcome),
                Ok(LoadProgress::Interval(interval)) => {
                    let second = record_second(&phase.name, open, &interval, self.origin_ns);
                    (self.emit)(LoadEvent::Second { second: &second, times: engine_thread::times(&interval, clock) });
                    self.loaded.timeline.push(second);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::bug("the load engine panicked")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now_ns = clock.now_ns();
            if !self.control.is_stopped() && self.loading.interrupted() {
                self.control.stop();
                give_up_ns = now_ns + STOPPED_WITHIN.as_nanos() as u64;
            }
            if now_ns > give_up_ns {
                return Err(Error::bug("the load engine did not stop on request"));
            }
        }
    }
}
