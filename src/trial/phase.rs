//! One phase of a trial: the load on a thread of its own, or rest, with the resources of both sides before and after.

use super::conductor::{Message, Trialling};
use super::description::{bracketed, describe};
use super::doubts::Beside;
use super::driving::{Driving, LOOK_EVERY, STOPPED_WITHIN};
use super::event::Event;
use super::guard::{self, Watch};
use super::usage::{Spent, Usage};
use super::work_record::record_work;
use super::{doubts, ending};
use crate::clock::seconds_since;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::kernel::ports::Ports;
use crate::load::{Address, Control, GiveUp, Outcome, Plan, Target};
use crate::observe::hsperfdata::GcTotal;
use crate::record::{Model, PhaseRecord, Row, SubjectWork};
use crate::scenario::{Phase, PhaseKind, Work};
use crate::units::Span;
use crate::weigh::Used;
use std::sync::Arc;
use std::time::Duration;

/// Rows kept of each phase: as many dots as a picture can show. Under 1 MB of Loadline's memory, half of it on disk.
const ROWS_MAX: usize = 5000;
/// Failed requests kept beside them, so that a few among a million are seen.
const ROWS_FAILED_MAX: usize = 1000;

/// What came of a phase, before the resources are added to its record.
pub(super) struct Ran {
    pub(super) record: PhaseRecord,
    /// CPU time of an outside driver.
    pub(super) outside_cpu: Duration,
    /// Why it failed, unless the subject or the user is the reason.
    pub(super) error: Option<Error>,
    pub(super) doubts: Vec<Doubt>,
    /// Single requests.
    rows: Vec<Row>,
}

impl Ran {
    pub(super) fn new(record: PhaseRecord) -> Self {
        Self { record, outside_cpu: Duration::ZERO, error: None, doubts: Vec::new(), rows: Vec::new() }
    }
}

impl Trialling<'_> {
    /// Runs a phase to its end and records it.
    ///
    /// # Errors
    /// `Interrupted`; `Subject` where the subject died or not one answer was correct.
    pub(super) fn phase(&mut self, phase: &Phase) -> Result<()> {
        if let PhaseKind::Own(own) = &phase.kind {
            return self.own_work(phase, own);
        }
        let description = describe(phase);
        self.sink.take(&Event::PhaseStarted { name: &phase.name, description });
        self.rss_bytes_max = 0;
        let before = self.snapshot();
        let work = if let PhaseKind::Work(work) = &phase.kind { Some(work) } else { None };
        self.begin_watch(&phase.name, work, before.spent.at_ns);
        let mut ran = match &phase.kind {
            PhaseKind::Work(work) => {
                let mut outcome = self.work(&phase.name, work)?;
                let rows = std::mem::take(&mut outcome.rows);
                Ran { rows, ..Ran::new(record_work(&outcome, work)) }
            }
            PhaseKind::Driver(driver) => self.driver(&phase.name, driver)?,
            PhaseKind::Idle(span) => self.rest(&phase.name, *span),
            PhaseKind::Own(_) => return Err(Error::bug("the subject's own work is no phase of ours")),
        };
        self.watch = None;
        let after = self.snapshot();
        let mut record = std::mem::take(&mut ran.record);
        record.name.clone_from(&phase.name);
        record.at_s = seconds_since(self.origin_ns, before.spent.at_ns);
        if !matches!(phase.kind, PhaseKind::Work(_)) {
            record.seconds = seconds_since(before.spent.at_ns, after.spent.at_ns);
        }
        record.subject = after.subject_since(&before);
        record.subject.rss_bytes_max = (self.rss_bytes_max > 0).then_some(self.rss_bytes_max);
        let interrupted = self.tools.interrupted();
        record.cut_short = record.cut_short.map(|told| self.why_cut_short(told));
        self.sink.take(&Event::PhaseEnded(&record));
        // After the last reading of the phase, so that writing them is in none of its figures.
        if !ran.rows.is_empty() {
            self.sink.take(&Event::Requests { phase: &record, rows: &ran.rows, origin_ns: self.origin_ns });
        }
        if phase.kind.works() {
            let mut usage = after.usage_since(&before);
            usage.ours += ran.outside_cpu;
            usage.memory_stalled = usage.memory_stalled.filter(|_| self.plan.configuration.limit.is_none());
            self.doubts.extend(doubts::of_phase(&record, &usage, Beside::Subject { cpus: self.subject_cpus() }));
            let ports = if self.plan.subject.socket.is_none() { Ports::read() } else { None };
            let loopback = self.address.ip().is_loopback();
            self.doubts.extend(ports.and_then(|ports| doubts::of_ports(&record, &ports, loopback)));
        }
        self.doubts.append(&mut ran.doubts);
        let in_phase = |error: Error| error.at(format!("in phase {}", phase.name));
        let verdict = match (self.death(), ran.error) {
            _ if interrupted => Err(in_phase(Error::interrupted())),
            (Some(error), _) => Err(in_phase(error)),
            (None, Some(error)) => Err(in_phase(error)),
            (None, None) => match &self.hopeless {
                Some(missed) => Err(in_phase(guard::ended_early(missed))),
                None if record.is_counted() && record.ok == 0 => {
                    Err(ending::no_answer_of_subject(&record, self.running))
                }
                None => Ok(()),
            },
        };
        self.trial.phases.push(record);
        verdict
    }

    /// Drives the load on a thread and looks after everything else meanwhile.
    fn work(&mut self, name: &str, work: &Work) -> Result<Outcome> {
        let subject = &self.plan.subject;
        let plan = Plan {
            target: Target {
                address: subject.socket.clone().map_or(Address::Tcp(self.address), Address::Unix),
                host: format!("{}:{}", bracketed(&subject.host), self.address.port()),
                tls: subject.tls.clone(),
            },
            work: work.clone(),
            seed: self.plan.seed,
            give_up: GiveUp::for_work(work),
            rows_max: ROWS_MAX,
            rows_failed_max: ROWS_FAILED_MAX,
        };
        let control = Arc::new(Control::default());
        self.watch_load(Some(Arc::clone(&control)));
        let driving = Driving { plan, clock: self.tools.clock, control: Arc::clone(&control), threads: 1, cpus: None };
        let sender = self.sender.clone();
        // The conductor waits for this thread; if it is gone, nobody wants what is told.
        let thread = driving.start(move |told| drop(sender.send(Message::Load(told))));
        let outcome = self.attend(name, &control);
        self.watch_load(None);
        if thread.join().is_err() {
            return Err(Error::bug("the load engine panicked"));
        }
        outcome
    }

    fn watch_load(&self, control: Option<Arc<Control>>) {
        if let Some(sampler) = &self.sampler {
            sampler.watch(control);
        }
    }

    /// Watches a phase from now on, where it is guarded.
    pub(super) fn begin_watch(&mut self, phase: &str, work: Option<&Work>, began_ns: u64) {
        self.watch = Watch::begin(&self.plan.guard, phase, work, began_ns);
    }

    /// Waits for the load; stops it when the user, the subject's death or the guard says so.
    fn attend(&mut self, name: &str, control: &Control) -> Result<Outcome> {
        let mut give_up_ns = u64::MAX;
        loop {
            if let Some(outcome) = self.next_message(Some(name), LOOK_EVERY) {
                return outcome.map_err(|error| error.at(format!("in phase {name}")));
            }
            let now_ns = self.tools.clock.now_ns();
            if !control.is_stopped() && (self.tools.interrupted() || self.has_died() || self.is_hopeless()) {
                control.stop();
                give_up_ns = now_ns + STOPPED_WITHIN.as_nanos() as u64;
            }
            if now_ns > give_up_ns {
                return Err(Error::bug("the load engine did not stop when it was told to"));
            }
        }
    }

    /// Waits for the end of the span, or until the user or the subject's death ends it.
    fn rest(&mut self, name: &str, span: Span) -> Ran {
        let end_ns = self.tools.clock.now_ns() + span.0.as_nanos() as u64;
        loop {
            let left_ns = end_ns.saturating_sub(self.tools.clock.now_ns());
            if left_ns == 0 || self.has_died() || self.tools.interrupted() {
                return Ran::new(PhaseRecord { model: Model::Idle, ..PhaseRecord::default() });
            }
            self.next_message(Some(name), LOOK_EVERY.min(Duration::from_nanos(left_ns)));
        }
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        let clock = self.tools.clock;
        let watched = &mut self.watched;
        let jvm = watched.counters.as_mut().and_then(|counters| counters.sample(&clock).ok()).map(|r| r.value);
        Snapshot {
            spent: Spent::now(clock),
            subject_cpu: watched.process.cpu_time(&clock),
            gc: jvm.and_then(|jvm| jvm.gc),
            others: self.used_by_others(),
        }
    }
}

/// The resources of both sides at a moment.
pub(super) struct Snapshot {
    spent: Spent,
    subject_cpu: Option<Duration>,
    gc: Option<GcTotal>,
    /// What the other processes of the subject have used, where all are weighed.
    others: Used,
}

impl Snapshot {
    pub(super) fn subject_since(&self, before: &Self) -> SubjectWork {
        let own = self.gc.zip(before.gc).map(|(after, before)| GcTotal {
            count: after.count.saturating_sub(before.count),
            ns: after.ns.saturating_sub(before.ns),
        });
        let gc = match (own, self.others.since(&before.others).1) {
            (Some(own), Some(more)) => Some(GcTotal { count: own.count + more.count, ns: own.ns + more.ns }),
            (own, more) => own.or(more),
        };
        SubjectWork {
            cpu_s: self.subject_cpu_since(before).map(|cpu| cpu.as_secs_f64()),
            gc_count: gc.map(|gc| gc.count),
            gc_ms: gc.map(|gc| gc.ns as f64 / 1e6),
            rss_bytes_max: None,
        }
    }

    fn subject_cpu_since(&self, before: &Self) -> Option<Duration> {
        let own = self.subject_cpu.zip(before.subject_cpu).map(|(after, before)| after.saturating_sub(before));
        own.map(|own| own + self.others.since(&before.others).0)
    }

    pub(super) fn usage_since(&self, before: &Self) -> Usage {
        let subject = self.subject_cpu_since(before).unwrap_or_default();
        let usage = self.spent.since(&before.spent);
        Usage { ours: usage.ours + subject, ..usage }
    }
}
