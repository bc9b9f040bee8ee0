//! The loop: free connections ask for arrivals, events move requests on (`exchange`), a check every few milliseconds
//! finds timeouts. Edge-triggered, one registration for each connection, no allocation and no `epoll_ctl` per request.

use super::connection::{self, Connection, Doing};
use super::outcome::{End, Interval, Outcome};
use super::response::Heads;
use super::schedule::{Arrival, Arrivals, nanoseconds};
use super::tally::{Failure, Tally};
use super::{Control, Plan};
use crate::clock::Clock;
use crate::error::{Error, Result};
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::collections::VecDeque;

/// Events taken from the kernel at once. More would make the last of a batch wait for the first.
const EVENTS_PER_TURN: usize = 256;
/// Requests begun before answers are looked at again, so that opening thousands of connections does not delay the
/// reading of the first answers.
const BEGUN_PER_TURN: usize = 64;
/// Half of the promise that a stop is heard within 100 ms.
const TURN_NS_MAX: u64 = 50_000_000;
/// The longest pause between checks for timeouts; an eighth of a shorter timeout, but not below 1 ms.
const CHECK_NS_MAX: u64 = 100_000_000;
const CHECK_NS_MIN: u64 = 1_000_000;
/// The length of an interval.
const INTERVAL_NS: u64 = 1_000_000_000;
/// One read takes at most this; a shorter one means that the socket is empty.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// The smallest segment that IPv4 hosts agree on. The only request of a connection is never delayed below it.
const SEGMENT_BYTES_MIN: usize = 536;

/// One phase under way.
pub(super) struct Engine<'a> {
    pub(super) plan: &'a Plan,
    pub(super) clock: Clock,
    pub(super) control: &'a Control,
    pub(super) address: SocketAddrAny,
    pub(super) request: Vec<u8>,
    pub(super) undelayed: bool,
    pub(super) timeout_ns: u64,
    pub(super) arrivals: Arrivals,
    pub(super) epoll: OwnedFd,
    pub(super) connections: Vec<Connection>,
    /// Indices of connections without a request.
    pub(super) free: Vec<usize>,
    /// Indices of connections that wait before they try again, with the end of the wait, ascending.
    pub(super) resting: VecDeque<(u64, usize)>,
    /// Requests under way.
    pub(super) busy: u64,
    pub(super) open_connections: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) heads: Heads,
    pub(super) tally: Tally,
    pub(super) start_ns: u64,
    pub(super) next_check_ns: u64,
    pub(super) next_interval_ns: u64,
}

/// What to do after requests were begun.
enum Turn {
    /// Wait for events, at most until this moment.
    Until(u64),
    /// All requests have ended and none will begin.
    Over,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        request: Vec<u8>,
        arrivals: Arrivals,
        clock: Clock,
        control: &'a Control,
    ) -> Result<Self> {
        let wanted = u64::from(plan.work.schedule.connections()).min(arrivals.requests_max()).max(1);
        connection::check_descriptors(wanted)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(no_epoll)?;
        let timeout_ns = nanoseconds(plan.work.timeout.0);
        let start_ns = clock.now_ns();
        let tally = Tally::new(start_ns, arrivals.end_ns(), timeout_ns, arrivals.is_open())?;
        Ok(Self {
            plan,
            clock,
            control,
            address: match &plan.target.address {
                super::Address::Tcp(address) => SocketAddrAny::from(*address),
                super::Address::Unix(_) => return Err(Error::request("no Unix sockets yet")),
            },
            undelayed: plan.work.keep_alive || request.len() > SEGMENT_BYTES_MIN,
            request,
            timeout_ns,
            arrivals,
            epoll,
            connections: (0..wanted).map(|_| Connection::default()).collect(),
            // Taken from the end, so that the first connection comes first.
            free: (0..wanted as usize).rev().collect(),
            resting: VecDeque::new(),
            busy: 0,
            open_connections: 0,
            buffer: vec![0; READ_BYTES],
            heads: Heads::default(),
            tally,
            start_ns,
            next_check_ns: start_ns,
            next_interval_ns: start_ns + INTERVAL_NS,
        })
    }

    /// Runs the phase to its end.
    pub(super) fn run(mut self, on_interval: &mut dyn FnMut(Interval<'_>)) -> Result<Outcome> {
        let cpu_before_ns = thread_cpu_ns();
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        let ended = loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= self.next_check_ns {
                self.check(now_ns);
            }
            if now_ns >= self.next_interval_ns {
                self.tally.end_interval(now_ns, on_interval)?;
                self.next_interval_ns = now_ns + INTERVAL_NS;
            }
            self.control.publish(self.tally.ok, self.tally.failures.total(), self.open_connections);
            if self.control.is_stopped() {
                break End::Stopped;
            }
            let until_ns = match self.begin_due(now_ns)? {
                Turn::Until(ns) => ns,
                Turn::Over => break End::Done,
            };
            if let Some(why) = self.tally.hopeless(&self.plan.give_up, now_ns) {
                break End::GaveUp(why);
            }
            self.wait(&mut events, until_ns)?;
            for event in events.drain(..) {
                self.handle(event)?;
            }
        };
        self.control.publish(self.tally.ok, self.tally.failures.total(), 0);
        self.tally.end_interval(self.clock.now_ns(), on_interval)?;
        self.outcome(ended, thread_cpu_ns().saturating_sub(cpu_before_ns))
    }

    fn outcome(self, ended: End, cpu_ns: u64) -> Result<Outcome> {
        let tally = self.tally;
        let elapsed_ns = match ended {
            End::Done => tally.last_end_ns - self.start_ns,
            // Waiting in vain is part of the phase.
            End::Stopped | End::GaveUp(_) | End::Met(_) => self.clock.now_ns() - self.start_ns,
        };
        let rate_span_ns = match (self.arrivals.end_ns(), &ended) {
            (u64::MAX, _) => elapsed_ns,
            (end_ns, End::Done) => end_ns - self.start_ns,
            (end_ns, _) => elapsed_ns.min(end_ns.saturating_sub(self.start_ns)),
        };
        Ok(Outcome {
            start_ns: self.start_ns,
            elapsed_ns,
            requests: tally.ok + tally.failures.total(),
            ok: tally.ok,
            failures: tally.failures,
            rate_ok: tally.rate_ok,
            rate_span_ns,
            service: tally.total,
            response: tally.response,
            lag: None,
            offered: None,
            queued: 0,
            queue_max: 0,
            unanswered: Histogram::new(3).map_err(|e| Error::bug(e.to_string()))?,
            in_flight: self.busy,
            connections_asked: self.connections.len() as u64,
            connections_opened: tally.connections_opened,
            connections_open_max: 0,
            by_request: Vec::new(),
            rows: Vec::new(),
            backend: "http/1.1".to_owned(),
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            wrong_statuses: tally.wrong_statuses,
            ended,
            cpu_ns,
            threads: 1,
        })
    }

    /// Fails the requests that have taken too long. A scan instead of a timer for each request: 10,000 connections
    /// take tens of microseconds, ten times a second.
    fn check(&mut self, now_ns: u64) {
        self.next_check_ns = now_ns + (self.timeout_ns / 8).clamp(CHECK_NS_MIN, CHECK_NS_MAX);
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if connection.doing != Doing::Nothing && now_ns.saturating_sub(connection.started_ns) > self.timeout_ns {
                self.fail(index, Failure::Timeout, now_ns);
            }
        }
    }

    /// Gives free connections the requests that are due.
    fn begin_due(&mut self, mut now_ns: u64) -> Result<Turn> {
        while self.resting.front().is_some_and(|&(until_ns, _)| until_ns <= now_ns) {
            self.free.extend(self.resting.pop_front().map(|(_, index)| index));
        }
        let rested_ns = self.resting.front().map_or(u64::MAX, |&(until_ns, _)| until_ns);
        for _ in 0..BEGUN_PER_TURN {
            let Some(&index) = self.free.last() else { return Ok(Turn::Until(rested_ns)) };
            match self.arrivals.next(now_ns) {
                Arrival::Due { intended_ns } => {
                    self.free.pop();
                    self.begin(index, intended_ns, now_ns)?;
                }
                Arrival::At(ns) => return Ok(Turn::Until(ns.min(rested_ns))),
                Arrival::Done if self.busy == 0 => return Ok(Turn::Over),
                Arrival::Done => return Ok(Turn::Until(u64::MAX)),
            }
            now_ns = self.clock.now_ns();
        }
        Ok(Turn::Until(now_ns))
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>, until_ns: u64) -> Result<()> {
        let now_ns = self.clock.now_ns();
        let until_ns = until_ns.min(self.next_check_ns).min(self.next_interval_ns).min(now_ns + TURN_NS_MAX);
        let pause_ns = until_ns.saturating_sub(now_ns);
        // Below TURN_NS_MAX, so no second is full.
        let timeout = Timespec { tv_sec: 0, tv_nsec: pause_ns as _ };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(no_epoll(errno)),
        }
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a failing epoll says about the machine.
pub(super) fn no_epoll(errno: Errno) -> Error {
    let error = Error::machine(format!("epoll failed: {}", crate::error::plain(&errno.into())));
    match errno {
        Errno::MFILE | Errno::NFILE => error.hint("raise the limit of file descriptors with `ulimit -n N`"),
        Errno::NOSPC => error.hint("raise `fs.epoll.max_user_watches` with sysctl"),
        _ => error,
    }
}
