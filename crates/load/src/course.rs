//! One phase on one thread, in any protocol: its arrivals, counts, intervals, and end. The engines query it and report
//! to it; they differ in how they send and receive bytes.

use super::connection::UnderWay;
use super::link::{self, Link, Trouble};
use super::outcome::{End, Interval, Outcome, Row};
use super::rows::Rows;
use super::schedule::{Arrivals, Share, nanoseconds};
use super::tally::{Failure, Tally};
use super::{Control, Plan};
use crate::work::{Protocol, Schedule};
use loadline_base::clock::Clock;
use loadline_base::error::Result;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// The length of an interval.
const INTERVAL_NS: u64 = 1_000_000_000;
/// The longest pause between timeout checks. For shorter timeouts, it is an eighth of the timeout, but at least 1 ms.
const CHECK_NS_MAX: u64 = 100_000_000;
const CHECK_NS_MIN: u64 = 1_000_000;

pub(super) struct PhaseCourse<'a> {
    pub(super) plan: &'a Plan,
    pub(super) clock: Clock,
    pub(super) arrivals: Arrivals,
    pub(super) tally: Tally,
    pub(super) timeout_ns: u64,
    /// How long a connection rests after a response in a closed model (think time).
    pub(super) think_ns: u64,
    control: &'a Control,
    drain_ns: u64,
    /// The end of the drain; `u64::MAX` while unknown, or if a count ends the phase.
    drain_end_ns: u64,
    next_interval_ns: u64,
    next_check_ns: u64,
    share: Share,
    /// The first connection's transport in words (empty without TLS); `None` until it is established.
    over: Option<String>,
    met: Option<String>,
    cpu_before_ns: u64,
}

impl<'a> PhaseCourse<'a> {
    /// Reads the files that the phase needs; [`Course::start`] begins the phase. `requests` is the number of requests
    /// in the plan. Errors: the file of start times cannot be read.
    pub(super) fn new(
        plan: &'a Plan,
        share: Share,
        requests: usize,
        clock: Clock,
        control: &'a Control,
    ) -> Result<Self> {
        let arrivals = Arrivals::of(&plan.work.schedule, plan.seed, share)?;
        let share_of = |max: usize| max.div_ceil(share.count as usize);
        let seed = plan.seed ^ share.index;
        let rows = Rows::new(share_of(plan.rows_max), seed).with_failed_apart(share_of(plan.rows_failed_max), !seed);
        Ok(Self {
            plan,
            clock,
            drain_end_ns: u64::MAX,
            tally: Tally::new(requests, rows, arrivals.is_open())?,
            arrivals,
            timeout_ns: nanoseconds(plan.work.timeout.0),
            think_ns: match plan.work.schedule {
                Schedule::Closed { think, .. } => nanoseconds(think.0),
                Schedule::Open { .. } => 0,
            },
            control,
            drain_ns: nanoseconds(plan.work.drain().0),
            next_interval_ns: u64::MAX,
            next_check_ns: 0,
            share,
            over: None,
            met: None,
            cpu_before_ns: 0,
        })
    }

    /// The initial and maximum number of connections of this thread.
    pub(super) fn connections(&self) -> (u64, u64) {
        let (schedule, requests_max) = (&self.plan.work.schedule, self.arrivals.requests_max());
        let share_of = |connections: u32| self.share.of(u64::from(connections)).min(requests_max);
        let wanted = share_of(schedule.connections()).max(1);
        (wanted, share_of(schedule.connections_max()).max(wanted))
    }

    pub(super) fn start(&mut self, start_ns: u64) {
        self.arrivals.start(start_ns);
        self.tally.start(start_ns, self.arrivals.end_ns());
        if !self.arrivals.is_open() {
            self.drain_end_ns = self.arrivals.end_ns().saturating_add(self.drain_ns);
        }
        self.next_interval_ns = start_ns + INTERVAL_NS;
        self.cpu_before_ns = thread_cpu_ns();
    }

    /// When the engine must return at the latest.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next_interval_ns.min(self.drain_end_ns).min(self.next_check_ns)
    }

    /// Whether it is time to look for requests that have taken too long.
    #[inline]
    pub(super) fn is_check_due(&mut self, now_ns: u64) -> bool {
        let due = now_ns >= self.next_check_ns;
        if due {
            self.next_check_ns = now_ns + (self.timeout_ns / 8).clamp(CHECK_NS_MIN, CHECK_NS_MAX);
        }
        due
    }

    /// Updates intervals and counters; returns the end if something outside the engine ends the phase.
    #[inline]
    pub(super) fn tick(&mut self, now_ns: u64, on_interval: &mut dyn FnMut(&Interval)) -> Result<Option<End>> {
        if now_ns >= self.next_interval_ns {
            self.end_interval(now_ns, on_interval)?;
            self.next_interval_ns = now_ns - (now_ns - self.tally.sum.start_ns) % INTERVAL_NS + INTERVAL_NS;
        }
        let sum = &self.tally.sum;
        self.control.publish(sum.ok, sum.failures.total(), self.tally.interval.open_connections);
        if self.control.is_stopped() {
            return Ok(Some(End::Stopped));
        }
        if let Some(met) = self.met.take() {
            return Ok(Some(End::Met(met)));
        }
        Ok(self.tally.hopeless(&self.plan.give_up, now_ns).map(End::GaveUp))
    }

    /// Counts the waiting arrivals after all possible requests have begun. `exhausted`: no connection is free, so they
    /// wait for one rather than for the engine's next turn.
    #[inline]
    pub(super) fn watch_queue(&mut self, now_ns: u64, exhausted: bool) {
        if !self.arrivals.is_open() {
            return;
        }
        let queue = if exhausted { self.arrivals.waiting(now_ns) } else { 0 };
        self.tally.interval.queue = queue;
        self.tally.sum.queue_max = self.tally.sum.queue_max.max(queue);
        if self.drain_end_ns == u64::MAX
            && let Some(last_ns) = self.arrivals.all_due_at(now_ns)
        {
            self.drain_end_ns = last_ns.saturating_add(self.drain_ns);
        }
    }

    fn end_interval(&mut self, ns: u64, on_interval: &mut dyn FnMut(&Interval)) -> Result<()> {
        // The merged results of several threads are judged elsewhere.
        let stop = if self.share == Share::WHOLE { &self.plan.work.stop[..] } else { &[] };
        self.met = self.tally.end_interval(ns, self.arrivals.offered(ns), stop, on_interval)?;
        Ok(())
    }

    /// The planned end while it is in the future; afterward, `u64::MAX`.
    pub(super) fn end_ns(&self, now_ns: u64) -> u64 {
        let end_ns = self.arrivals.end_ns();
        if end_ns > now_ns { end_ns } else { u64::MAX }
    }

    /// Counts a connection that was established.
    #[inline]
    pub(super) fn opened(&mut self, link: &Link) {
        let (sum, open_connections) = (&mut self.tally.sum, &mut self.tally.interval.open_connections);
        sum.connections_opened += 1;
        *open_connections += 1;
        sum.connections_open_max = sum.connections_open_max.max(*open_connections);
        self.over.get_or_insert_with(|| {
            link.negotiated().map_or_else(String::new, |(version, _)| format!(" over {version}"))
        });
    }

    /// Counts a complete response as late, wrong, or correct.
    #[inline]
    pub(super) fn answered(&mut self, ended: Row, wrong: Option<Failure>) {
        match wrong {
            _ if ended.ended_ns - ended.started_ns > self.timeout_ns => self.tally.failed(Failure::Timeout, ended),
            None => self.tally.answered(ended),
            Some(failure) => self.tally.failed(failure, ended),
        }
    }

    /// Whether a connection backs off before its next request after this failure. If no server listens, every request
    /// would fail immediately. A proxy in front of a dead server accepts connections and then closes them; a full round
    /// of failures reveals this.
    pub(super) fn backs_off(&self, failure: Failure, round: usize) -> bool {
        let nobody_there = self.tally.failures_in_a_row > round as u64;
        nobody_there || matches!(failure, Failure::Refused | Failure::Ports | Failure::Tls)
    }

    /// Maps trouble on a connection to the failure of its request. `established`: the connection already existed;
    /// `shaking`: its TLS handshake is not finished.
    pub(super) fn failure_of(&mut self, trouble: Trouble, established: bool, shaking: bool) -> Failure {
        match trouble {
            Trouble::Tls(words) => self.tally.tls_failed(words),
            // If a handshake began, the server did not refuse the connection.
            Trouble::Os(errno) => match link::failure(errno, established) {
                Failure::Reset if shaking && errno == Errno::CONNRESET => {
                    self.tally.tls_failed("the server reset the connection during the handshake".to_owned())
                }
                failure => failure,
            },
        }
    }

    /// Returns a request's failure if the server closed the connection without sending anything. A server that closes
    /// during the TLS handshake has sent no HTTP.
    pub(super) fn silence(&mut self, shaking: bool) -> Failure {
        if !shaking {
            return Failure::Reset;
        }
        self.tally.tls_failed("the server closed the connection during the handshake".to_owned())
    }

    /// Whether the time for responses is over.
    #[inline]
    pub(super) fn is_drained(&self, now_ns: u64) -> bool {
        now_ns >= self.drain_end_ns
    }

    /// Records the requests that came due but never began, with their ages.
    pub(super) fn give_up_queue(&mut self, now_ns: u64) {
        while let super::schedule::Arrival::Due { intended_ns } = self.arrivals.next(now_ns) {
            let never = UnderWay { intended_ns, started_ns: now_ns, ..UnderWay::default() };
            let never = Row { request: None, connection: None, ..never.ended(0, now_ns) };
            self.tally.failed(Failure::Unanswered, never);
        }
    }

    /// Reports the last interval and totals the phase. `connections_asked` is the number of connections in the plan.
    pub(super) fn finish(
        mut self,
        ended: End,
        connections_asked: u64,
        on_interval: &mut dyn FnMut(&Interval),
    ) -> Result<Outcome> {
        self.control.publish(self.tally.sum.ok, self.tally.sum.failures.total(), 0);
        let now_ns = self.clock.now_ns();
        self.end_interval(now_ns, on_interval)?;
        let mut sum = self.tally.sum;
        sum.elapsed_ns = match ended {
            End::Done => self.tally.last_end_ns.saturating_sub(sum.start_ns),
            // Includes the time spent waiting after the last response.
            End::Stopped | End::GaveUp(_) | End::Met(_) => now_ns - sum.start_ns,
        };
        let planned_ns = self.arrivals.end_ns().saturating_sub(sum.start_ns);
        sum.rate_span_ns = match (self.arrivals.end_ns(), &ended) {
            (u64::MAX, _) => sum.elapsed_ns,
            (_, End::Done) => planned_ns,
            (_, _) => sum.elapsed_ns.min(planned_ns),
        };
        sum.offered = self.arrivals.offered(sum.start_ns.saturating_add(sum.rate_span_ns));
        let backend = match self.plan.work.protocol {
            Protocol::Http1 => "http/1.1",
            // Names the implementation, because it is not the engine's own and the figures depend on it.
            Protocol::Http2 { .. } => "http/2 (h2 crate)",
        };
        sum.backend = backend.to_owned() + &self.over.unwrap_or_default();
        sum.requests = sum.ok + sum.failures.total();
        // An arrival that waited only within one turn of the engine was never counted as waiting.
        sum.queue_max = sum.queue_max.max(sum.queued.min(1));
        sum.connections_asked = connections_asked;
        sum.rows = self.tally.rows.finish();
        sum.tls_told = matches!(ended, End::GaveUp(_)) && self.tally.last_failure == Some(Failure::Tls);
        sum.ended = ended;
        sum.cpu_ns = thread_cpu_ns().saturating_sub(self.cpu_before_ns);
        Ok(sum)
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
