//! One phase of a trial: load on its own thread, or rest, with resource usage before and after.

use super::description::describe;
use super::doubts::{self, Beside};
use super::engine_thread::{LOOK_EVERY, STOPPED_WITHIN};
use super::event::Event;
use super::trialling::Trialling;
use super::usage::{Spent, Usage};
use super::warming::Warming;
use super::work_record::record_work;
use super::{ending, guard};
use crate::clock::seconds_since;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::kernel::cpu_cgroup::Throttled;
use crate::load::{Address, Control, End, GiveUp, Outcome, Plan, Target};
use crate::record::{Model, PhaseRecord, Row, SubjectWork};
use crate::scenario::{Phase, Work, bracketed};
use crate::units::{Millicpus, Span};
use crate::weigh::Used;
use std::sync::Arc;
use std::time::Duration;

/// Rows kept per phase: as many dots as a plot can show. They take less than 1 MB of memory, and half of that on disk.
const ROWS_MAX: usize = 5000;
/// Failed requests kept in addition, so that a few among a million are visible.
const ROWS_FAILED_MAX: usize = 1000;

/// The result of a phase, before resource usage is added.
pub(super) struct Ran {
    pub(super) record: PhaseRecord,
    /// CPU time of an external driver.
    pub(super) outside_cpu: Duration,
    /// Its error, unless the subject or the user caused it.
    pub(super) error: Option<Error>,
    pub(super) doubts: Vec<Doubt>,
    /// Individual requests.
    rows: Vec<Row>,
    /// The TLS error, if nothing else reports it.
    tls: Option<String>,
}

impl Ran {
    pub(super) fn new(record: PhaseRecord) -> Self {
        Self { record, outside_cpu: Duration::ZERO, error: None, doubts: Vec::new(), rows: Vec::new(), tls: None }
    }
}

impl Trialling<'_> {
    /// Runs a phase with `run`, measures resources before and after, and records it. `work` is the load engine's work.
    /// Errors: `Interrupted`; `Subject` if the subject died or no response was correct; errors of `run`.
    pub(super) fn load_phase(
        &mut self,
        phase: &Phase,
        work: Option<&Work>,
        run: &dyn Fn(&mut Self) -> Result<Ran>,
    ) -> Result<()> {
        // Samples of the previous mark do not belong to this phase.
        self.pass_on_all(None);
        self.notes.sink.receive(&Event::PhaseStarted { name: &phase.name, description: describe(phase) });
        self.peaks.rss_bytes_max = 0;
        self.peaks.allocated.clear();
        let before = self.snapshot();
        self.guard.begin(&self.plan.guard, &phase.name, work, before.spent.at_ns);
        let ran = run(self);
        self.guard.end();
        let mut ran = ran?;
        let after = self.snapshot();
        let mut record = std::mem::take(&mut ran.record);
        record.name.clone_from(&phase.name);
        record.at_s = self.seconds(before.spent.at_ns);
        if work.is_none() {
            record.seconds = seconds_since(before.spent.at_ns, after.spent.at_ns);
        }
        record.cut_short = record.cut_short.map(|told| self.why_cut_short(told));
        let usage = self.used_in(&mut record, &before, &after);
        self.notes.sink.receive(&Event::PhaseEnded(&record));
        // After the phase's last reading, so that its figures exclude the writing.
        if !ran.rows.is_empty() {
            let origin_ns = self.origin_ns();
            self.notes.sink.receive(&Event::Requests { phase: &record, rows: &ran.rows, origin_ns });
        }
        if phase.kind.works() {
            self.notes.doubts.extend(doubts::not_warm(&record, &self.peaks.allocated));
            self.doubt_phase(&record, &Usage { ours: usage.ours + ran.outside_cpu, ..usage });
            let ports = if self.plan.subject.socket.is_none() { self.stage.world.ports() } else { None };
            let loopback = self.address.ip().is_loopback();
            self.notes.doubts.extend(ports.and_then(|ports| doubts::of_ports(&record, &ports, loopback)));
        }
        self.notes.doubts.append(&mut ran.doubts);
        let in_phase = |error: Error| Err(error.at(format!("in phase {}", phase.name)));
        let verdict = match (self.death().or(ran.error), self.guard.hopeless()) {
            _ if self.stage.interrupted() => in_phase(Error::interrupted()),
            (Some(error), _) => in_phase(error),
            (None, Some(missed)) => in_phase(guard::ended_early(missed)),
            (None, None) if record.is_counted() && record.ok == 0 => {
                Err(ending::no_answer_of_subject(&record, ran.tls.as_deref(), self.subject))
            }
            (None, None) => Ok(()),
        };
        self.notes.trial.phases.push(record);
        verdict
    }

    /// Adds the subject's usage to a phase's record; returns the usage of all programs.
    pub(super) fn used_in(&self, record: &mut PhaseRecord, before: &Snapshot, after: &Snapshot) -> Usage {
        let used = after.subject.since(&before.subject);
        record.subject = SubjectWork {
            cpu_s: used.cpu.map(|cpu| cpu.as_secs_f64()),
            cpu_by_purpose: used.cpu_by_purpose(),
            gc_count: used.gc.map(|gc| gc.count),
            gc_ms: used.gc.map(|gc| gc.ns as f64 / 1e6),
            rss_bytes_max: Some(self.peaks.rss_bytes_max).filter(|bytes| *bytes > 0),
            allocated_bytes: used.allocated.map(|allocated| allocated.bytes),
            allocated_by: used.allocated.map(|allocated| allocated.by),
            allocated_idle_bytes: None,
            throttling: after.throttled.zip(before.throttled).map(|(after, before)| after.since(before).into()),
        };
        let usage = after.spent.since(&before.spent);
        Usage {
            ours: usage.ours + used.cpu.unwrap_or_default(),
            memory_stalled: usage.memory_stalled.filter(|_| self.plan.configuration.limit.is_none()),
            ..usage
        }
    }

    pub(super) fn doubt_phase(&mut self, record: &PhaseRecord, usage: &Usage) {
        let limit = self.plan.configuration.cpu_limit;
        let cpus = limit.map_or(f64::INFINITY, Millicpus::as_cpus).min(self.subject_cpus() as f64);
        self.notes.doubts.extend(doubts::of_phase(record, usage, Beside::Subject { cpus }));
        self.notes.doubts.extend(limit.and_then(|limit| doubts::throttled(record, limit)));
    }

    /// Runs the load engine and handles all other messages. Errors: the error that makes the whole phase
    /// impossible.
    pub(super) fn work(&mut self, phase: &Phase, work: &Work) -> Result<Ran> {
        let name = &phase.name;
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
        self.reports.begin_load(plan, Arc::clone(&control));
        self.warming = phase.is_warmup().then(|| Warming::new(phase.until_steady));
        let is_last = self.plan.load.iter().rfind(|phase| phase.kind.works()).is_some_and(|last| last.name == *name);
        self.live_due = self.plan.live_every.filter(|_| is_last).map(|every| self.stage.clock.now() + every.0);
        let outcome = self.attend(name, &control);
        let warming = self.warming.take();
        let outcome = outcome?;
        self.reports.end_load();
        let mut outcome = outcome.map_err(|error| error.at(format!("in phase {name}")))?;
        if outcome.ended == End::Stopped && warming.as_ref().is_some_and(Warming::is_over) {
            outcome.ended = End::Done;
        }
        let rows = std::mem::take(&mut outcome.rows);
        let tls = outcome.tls_untold().map(str::to_owned);
        let mut record = record_work(&outcome, work);
        record.steady = warming.as_ref().and_then(Warming::is_steady);
        let doubts = warming.and_then(|warming| doubts::never_warm(&record, &warming)).into_iter().collect();
        Ok(Ran { rows, tls, doubts, ..Ran::new(record) })
    }

    /// Waits for the load's last message. Stops the load on an interrupt, the subject's death, or the guard's request,
    /// and a warm-up when the subject is warm. Errors: `Bug` if the last message does not arrive.
    fn attend(&mut self, name: &str, control: &Control) -> Result<Result<Outcome>> {
        let mut give_up_ns = u64::MAX;
        loop {
            if let Some(outcome) = self.next_message(Some(name), LOOK_EVERY) {
                return Ok(outcome);
            }
            self.mark_live();
            let now_ns = self.stage.clock.now_ns();
            let is_over = self.stage.interrupted()
                || self.has_died()
                || self.is_hopeless()
                || self.warming.as_ref().is_some_and(Warming::is_over);
            if !control.is_stopped() && is_over {
                control.stop();
                give_up_ns = now_ns + STOPPED_WITHIN.as_nanos() as u64;
            }
            if now_ns > give_up_ns {
                return Err(Error::bug("the load engine did not stop on request"));
            }
        }
    }

    /// Waits for the span, or until the user interrupts or the subject dies.
    pub(super) fn rest(&mut self, name: &str, span: Span) -> Ran {
        let end = self.stage.clock.now() + span.0;
        loop {
            let left = end.saturating_sub(self.stage.clock.now());
            if left.is_zero() || self.has_died() || self.stage.interrupted() {
                return Ran::new(PhaseRecord { model: Model::Idle, ..PhaseRecord::default() });
            }
            self.next_message(Some(name), LOOK_EVERY.min(left));
        }
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        let (spent, throttled) = (self.stage.world.spent(), self.subject.throttled());
        Snapshot { spent, throttled, subject: self.scales.used(&|| self.subject.processes(), self.notes.doubts) }
    }
}

/// Resource usage of subject, load, and machine at one point in time.
pub(super) struct Snapshot {
    spent: Spent,
    throttled: Option<Throttled>,
    subject: Used,
}
