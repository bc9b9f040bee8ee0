//! The event loop of HTTP/1.1: free connections ask for arrivals, events advance requests (`exchange`), and periodic
//! checks find timeouts. Epoll is edge-triggered, with one registration per connection. A request needs no allocation
//! and no `epoll_ctl`.

use super::connection::{Connection, Doing, Paces, Portions};
use super::course::PhaseCourse;
use super::link::{self, Dialler, READ_BYTES};
use super::message::Messages;
use super::outcome::{Interval, Outcome};
use super::response::Heads;
use super::schedule::{Arrival, Share};
use super::tally::Failure;
use super::timers::{Due, Timers};
use super::turn::{self, BEGUN_PER_TURN, Turn, Turning, no_epoll};
use super::{Control, Plan};
use loadline_base::clock::Clock;
use loadline_base::error::Result;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;

/// The smallest segment size that IPv4 hosts support. A smaller request, alone on its connection, is never delayed.
const SEGMENT_BYTES_MIN: usize = 536;

/// A phase in progress.
pub(super) struct Engine<'a> {
    pub(super) course: PhaseCourse<'a>,
    pub(super) dialler: Dialler,
    pub(super) messages: Messages,
    pub(super) portions: Portions,
    /// By connection, if any is slow.
    pub(super) paces: Vec<Paces>,
    pub(super) epoll: OwnedFd,
    pub(super) connections: Vec<Connection>,
    pub(super) connections_max: usize,
    /// Indices of connections without a request, longest idle first, so that all are used.
    pub(super) free: VecDeque<usize>,
    pub(super) timers: Timers,
    pub(super) buffer: Vec<u8>,
    /// TLS records before decryption; empty without TLS.
    pub(super) raw: Vec<u8>,
    /// The bytes of the requests in flight, by connection, if they have placeholders; otherwise one empty element.
    pub(super) own: Vec<Vec<u8>>,
    /// A piece of a body sent from a file.
    pub(super) block: Vec<u8>,
    pub(super) heads: Heads,
}

impl<'a> Engine<'a> {
    pub(super) fn new(plan: &'a Plan, share: Share, clock: Clock, control: &'a Control) -> Result<Self> {
        let work = &plan.work;
        let messages = Messages::encode(work, &plan.target.host, plan.seed, share)?;
        let course = PhaseCourse::new(plan, share, messages.len(), clock, control)?;
        let (wanted, connections_max) = course.connections();
        link::check_descriptors(connections_max)?;
        let undelayed = work.keep_alive || plan.target.tls.is_some() || messages.longest() > SEGMENT_BYTES_MIN;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(no_epoll)?;
        Ok(Self {
            course,
            dialler: Dialler::new(&plan.target, work.pace, undelayed, &["http/1.1"])?,
            own: vec![Vec::new(); if messages.have_placeholders() { wanted.max(2) as usize } else { 1 }],
            messages,
            portions: Portions::of(work.pace),
            paces: vec![Paces::default(); if work.pace.is_slow() { wanted as usize } else { 0 }],
            epoll,
            connections: (0..wanted).map(|_| Connection::default()).collect(),
            connections_max: connections_max as usize,
            free: (0..wanted as usize).collect(),
            timers: Timers::default(),
            buffer: vec![0; READ_BYTES],
            raw: if plan.target.tls.is_some() { vec![0; READ_BYTES] } else { Vec::new() },
            block: Vec::new(),
            heads: Heads::default(),
        })
    }

    /// Runs the phase from `start_ns` to completion.
    pub(super) fn run(mut self, start_ns: u64, on_interval: &mut dyn FnMut(&Interval)) -> Result<Outcome> {
        self.course.start(start_ns);
        let ended = turn::run(&mut self, on_interval)?;
        self.course.finish(ended, self.connections.len() as u64, on_interval)
    }

    /// Frees the connection for another request.
    pub(super) fn release(&mut self, index: usize, now_ns: u64) {
        self.connections[index].free_ns = now_ns;
        self.free.push_back(index);
    }

    /// When a request has just ended, begins the next due request before other responses are read. The server gets it
    /// sooner, and one clock reading serves both.
    #[inline]
    fn go_on(&mut self) -> Result<()> {
        let now_ns = self.course.tally.last_end_ns;
        if let Arrival::Due { intended_ns } = self.course.arrivals.next(now_ns)
            && let Some(index) = self.free.pop_front()
        {
            self.begin(index, intended_ns, now_ns)?;
        }
        Ok(())
    }

    fn grow(&mut self) -> usize {
        self.connections.push(Connection::default());
        if self.own.len() > 1 {
            self.own.resize(self.connections.len().max(2), Vec::new());
        }
        if !self.paces.is_empty() {
            self.paces.resize(self.connections.len(), Paces::default());
        }
        self.connections.len() - 1
    }

    /// The time for responses is over: requests in flight or never begun count as unanswered.
    fn give_up_rest(&mut self, now_ns: u64) {
        for index in 0..self.connections.len() {
            if self.connections[index].doing != Doing::Nothing {
                self.fail(index, Failure::Unanswered, now_ns);
            }
        }
        self.course.give_up_queue(now_ns);
    }
}

impl<'a> Turning<'a> for Engine<'a> {
    #[inline]
    fn course(&mut self) -> &mut PhaseCourse<'a> {
        &mut self.course
    }

    /// Fails the requests that have taken too long. A scan replaces per-request timers: for 10,000 connections, it
    /// takes tens of microseconds, ten times a second.
    fn check(&mut self, now_ns: u64) {
        let timeout_ns = self.course.timeout_ns;
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if connection.doing != Doing::Nothing && now_ns.saturating_sub(connection.under_way.started_ns) > timeout_ns
            {
                self.fail(index, Failure::Timeout, now_ns);
            }
        }
    }

    /// Wakes the connections whose timers are due.
    fn wake(&mut self, now_ns: u64) -> Result<()> {
        while let Some((index, due)) = self.timers.pop(now_ns) {
            match due {
                Due::Free => self.release(index, now_ns),
                Due::Send if self.connections[index].is_sending() => self.send(index)?,
                Due::Receive => self.receive(index, false)?,
                Due::Continue => self.stop_waiting(index, now_ns)?,
                Due::Send => {}
            }
        }
        Ok(())
    }

    /// Gives due requests to free connections.
    fn begin_due(&mut self, mut now_ns: u64) -> Result<Turn> {
        if self.course.is_drained(now_ns) {
            self.give_up_rest(now_ns);
            return Ok(Turn::Over);
        }
        for _ in 0..BEGUN_PER_TURN {
            if self.free.is_empty() && self.connections.len() == self.connections_max {
                self.course.watch_queue(now_ns, true);
                // Connections that are only thinking need not wake up if no more arrivals follow.
                if self.course.tally.sum.in_flight == 0 && self.course.arrivals.are_over(now_ns) {
                    return Ok(Turn::Over);
                }
                return Ok(Turn::Until(self.course.end_ns(now_ns)));
            }
            match self.course.arrivals.next(now_ns) {
                Arrival::Due { intended_ns } => {
                    let index = self.free.pop_front().unwrap_or_else(|| self.grow());
                    self.begin(index, intended_ns, now_ns)?;
                }
                none => return Ok(Turn::without(none, &mut self.course, now_ns)),
            }
            now_ns = self.course.clock.now_ns();
        }
        self.course.watch_queue(now_ns, false);
        Ok(Turn::Until(now_ns))
    }

    #[inline]
    fn attend(&mut self, events: &mut Vec<epoll::Event>, until_ns: u64) -> Result<()> {
        let until_ns = until_ns.min(self.timers.next_ns()).min(self.course.next_ns());
        turn::wait(&self.epoll, events, self.course.clock.now_ns(), until_ns)?;
        for event in events.drain(..) {
            let free = self.free.len();
            self.handle(event)?;
            if self.free.len() > free {
                self.go_on()?;
            }
        }
        Ok(())
    }
}
