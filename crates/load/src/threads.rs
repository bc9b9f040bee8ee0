//! One phase on several threads that share nothing: each has its part of the connections and arrivals. Their intervals
//! and outcomes are merged; histograms merge exactly.

use super::outcome::{End, Interval, Outcome};
use super::schedule::Share;
use super::{Control, Plan, drive, drive_share};
use crate::work::Condition;
use hdrhistogram::Histogram;
use loadline_base::clock::Clock;
use loadline_base::error::{Error, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often the threads' counters are summed up and a stop is passed on.
const LOOK_EVERY: Duration = Duration::from_millis(20);

enum ThreadReport {
    Interval { number: u64, last: bool, interval: Box<Interval> },
    Done(Box<Result<Outcome>>),
}

/// Runs the phase on `threads` threads, each pinned to the next of `cpus`, cyclically. Runs it on the calling thread if
/// there is only one thread and no CPU is given.
///
/// Otherwise like [`drive`](super::drive). Starts no more threads than connections. Errors: as for
/// [`drive`](super::drive); the first thread that cannot continue stops the others.
pub fn drive_threads(
    plan: &Plan,
    clock: Clock,
    control: &Control,
    threads: u32,
    cpus: &[u32],
    on_interval: &mut dyn FnMut(&Interval),
) -> Result<Outcome> {
    let threads = threads.min(plan.work.schedule.connections_max()).max(1);
    if threads == 1 && cpus.is_empty() {
        return drive(plan, clock, control, on_interval);
    }
    let controls: Vec<Control> = (0..threads).map(|_| Control::default()).collect();
    let together = Together::new(threads, clock);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for (index, own) in controls.iter().enumerate() {
            let share = Share { index: index as u64, count: u64::from(threads) };
            let cpu = cpus.get(index % cpus.len().max(1)).copied();
            let (sender, together) = (sender.clone(), &together);
            scope.spawn(move || run(plan, share, cpu, own, together, &sender));
        }
        drop(sender);
        Merger::new(control, &controls, &plan.work.stop).collect(&receiver, on_interval)
    })
}

/// The common start of several threads, which comes when all are ready.
struct Together {
    threads: u32,
    clock: Clock,
    /// The number of ready threads, and the start once all are ready.
    ready: Mutex<(u32, Option<u64>)>,
    all: Condvar,
}

/// A panicked thread is never ready; the others do not wait for it forever.
const READY_WITHIN: Duration = Duration::from_secs(60);

impl Together {
    fn new(threads: u32, clock: Clock) -> Self {
        Self { threads, clock, ready: Mutex::new((0, None)), all: Condvar::new() }
    }

    /// Waits for the others; returns the common start.
    fn start_ns(&self) -> u64 {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.0 += 1;
        if ready.0 < self.threads {
            let waited = self.all.wait_timeout_while(ready, READY_WITHIN, |(_, start)| start.is_none());
            ready = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let start_ns = *ready.1.get_or_insert_with(|| self.clock.now_ns());
        self.all.notify_all();
        start_ns
    }
}

fn run(
    plan: &Plan,
    share: Share,
    cpu: Option<u32>,
    control: &Control,
    together: &Together,
    sender: &Sender<ThreadReport>,
) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // Fails if the CPU is gone: the thread then runs on any allowed one.
        let _ = sched_setaffinity(None, &set);
    }
    let mut held: Option<(u64, Box<Interval>)> = None;
    let mut number = 0;
    let outcome = drive_share(plan, share, together.clock, control, &|| together.start_ns(), &mut |interval| {
        // An interval turns out to be the last only when no other follows.
        if let Some((number, interval)) = held.take() {
            let _ = sender.send(ThreadReport::Interval { number, last: false, interval });
        }
        held = Some((number, Box::new(interval.clone())));
        number += 1;
    });
    if let Some((number, interval)) = held {
        let _ = sender.send(ThreadReport::Interval { number, last: true, interval });
    }
    // Fails only if the receiver is gone, and then the outcome is not needed.
    let _ = sender.send(ThreadReport::Done(Box::new(outcome)));
}

struct Merger<'a> {
    whole: &'a Control,
    parts: &'a [Control],
    stop: &'a [Condition],
    met: Option<String>,
    /// Intervals that some threads have not delivered yet, with the number of deliveries.
    open: BTreeMap<u64, (usize, Box<Interval>)>,
    outcome: Option<Outcome>,
    trouble: Option<Error>,
    done: usize,
}

impl<'a> Merger<'a> {
    fn new(whole: &'a Control, parts: &'a [Control], stop: &'a [Condition]) -> Self {
        Self { whole, parts, stop, met: None, open: BTreeMap::new(), outcome: None, trouble: None, done: 0 }
    }

    fn collect(mut self, receiver: &Receiver<ThreadReport>, on_interval: &mut dyn FnMut(&Interval)) -> Result<Outcome> {
        while self.done < self.parts.len() {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(message) => self.take(message, on_interval)?,
                Err(RecvTimeoutError::Timeout) => {}
                // A panicked thread sends nothing; the scope propagates its panic.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.publish();
        }
        for (_, interval) in std::mem::take(&mut self.open).into_values() {
            on_interval(&interval);
        }
        match (self.trouble, self.outcome) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(mut outcome)) => {
                if let Some(met) = self.met.filter(|_| outcome.ended == End::Stopped) {
                    outcome.ended = End::Met(met);
                }
                outcome.rows.sort_by_key(|row| (row.started_ns, row.ended_ns));
                Ok(outcome)
            }
            (None, None) => Err(Error::bug("no load engine thread finished")),
        }
    }

    fn publish(&self) {
        let sum = |count: fn(&Control) -> u64| self.parts.iter().map(count).sum();
        self.whole.publish(sum(Control::ok), sum(Control::failed), sum(Control::open_connections));
        if self.whole.is_stopped() {
            self.parts.iter().for_each(Control::stop);
        }
    }

    fn take(&mut self, message: ThreadReport, on_interval: &mut dyn FnMut(&Interval)) -> Result<()> {
        match message {
            ThreadReport::Interval { number, last, interval } => {
                // The partial interval at the end joins the last full interval that is still open, or stays separate.
                let number =
                    if last { number.min(self.open.keys().next_back().map_or(number, |n| *n)) } else { number };
                match self.open.get_mut(&number) {
                    Some((delivered, sum)) => {
                        *delivered += usize::from(!last);
                        join(sum, &interval)?;
                    }
                    None => {
                        self.open.insert(number, (usize::from(!last), interval));
                    }
                }
                self.hand_out_complete(on_interval);
            }
            ThreadReport::Done(outcome) => {
                self.done += 1;
                self.finish(*outcome)?;
            }
        }
        Ok(())
    }

    /// A thread has finished. If it gave up, met a stop condition, or could not continue, it ends the phase for all.
    fn finish(&mut self, outcome: Result<Outcome>) -> Result<()> {
        let early = !matches!(&outcome, Ok(Outcome { ended: End::Done, .. }));
        match (outcome, &mut self.outcome) {
            (Err(error), _) => drop(self.trouble.get_or_insert(error)),
            (Ok(outcome), None) => self.outcome = Some(outcome),
            (Ok(outcome), Some(sum)) => add(sum, outcome)?,
        }
        if early {
            self.parts.iter().for_each(Control::stop);
        }
        Ok(())
    }

    /// Reports, in order, the intervals that all threads have delivered.
    fn hand_out_complete(&mut self, on_interval: &mut dyn FnMut(&Interval)) {
        while let Some(entry) = self.open.first_entry().filter(|entry| entry.get().0 == self.parts.len()) {
            let interval = entry.remove().1;
            let met = interval.met(self.stop);
            on_interval(&interval);
            if met.is_some() && self.met.is_none() {
                self.met = met;
                self.parts.iter().for_each(Control::stop);
            }
        }
    }
}

fn merge(sum: &mut Histogram<u64>, other: &Histogram<u64>) -> Result<()> {
    sum.add(other).map_err(|cause| Error::bug(format!("histograms of two threads differ: {cause}")))
}

fn merge_some(sum: &mut Option<Histogram<u64>>, other: Option<&Histogram<u64>>) -> Result<()> {
    match (sum, other) {
        (Some(sum), Some(other)) => merge(sum, other),
        _ => Ok(()),
    }
}

/// Adds one thread's interval to another's.
fn join(sum: &mut Interval, other: &Interval) -> Result<()> {
    sum.start_ns = sum.start_ns.min(other.start_ns);
    sum.end_ns = sum.end_ns.max(other.end_ns);
    merge(&mut sum.service, &other.service)?;
    merge_some(&mut sum.response, other.response.as_ref())?;
    sum.ok += other.ok;
    sum.failed += other.failed;
    sum.offered = sum.offered.zip(other.offered).map(|(a, b)| a + b);
    sum.bytes_received += other.bytes_received;
    sum.open_connections += other.open_connections;
    sum.queue += other.queue;
    Ok(())
}

/// Adds one thread's outcome to another's.
fn add(sum: &mut Outcome, other: Outcome) -> Result<()> {
    sum.start_ns = sum.start_ns.min(other.start_ns);
    sum.elapsed_ns = sum.elapsed_ns.max(other.elapsed_ns);
    sum.requests += other.requests;
    sum.ok += other.ok;
    sum.failures += other.failures;
    sum.rate_ok += other.rate_ok;
    sum.rate_span_ns = sum.rate_span_ns.max(other.rate_span_ns);
    merge(&mut sum.service, &other.service)?;
    merge_some(&mut sum.response, other.response.as_ref())?;
    merge_some(&mut sum.lag, other.lag.as_ref())?;
    sum.offered = sum.offered.zip(other.offered).map(|(a, b)| a + b);
    sum.queued += other.queued;
    // An upper bound: two threads' queues need not be longest at the same moment.
    sum.queue_max += other.queue_max;
    merge(&mut sum.unanswered, &other.unanswered)?;
    sum.in_flight += other.in_flight;
    sum.connections_asked += other.connections_asked;
    sum.connections_opened += other.connections_opened;
    sum.connections_open_max += other.connections_open_max;
    for (into, from) in sum.by_request.iter_mut().zip(&other.by_request) {
        (into.0, into.1) = (into.0 + from.0, into.1 + from.1);
    }
    sum.never_begun += other.never_begun;
    sum.rows.extend(other.rows);
    sum.tls_trouble = sum.tls_trouble.take().or(other.tls_trouble);
    sum.bytes_sent += other.bytes_sent;
    sum.bytes_received += other.bytes_received;
    for (status, count) in other.wrong_statuses {
        *sum.wrong_statuses.entry(status).or_default() += count;
    }
    if matches!(sum.ended, End::Done | End::Stopped) && other.ended != End::Done {
        (sum.ended, sum.tls_told) = (other.ended, other.tls_told);
    }
    sum.cpu_ns += other.cpu_ns;
    sum.threads += other.threads;
    Ok(())
}
