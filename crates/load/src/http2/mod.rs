//! The event loop of HTTP/2. A slot is the counterpart of an HTTP/1.1 connection: it holds one request at a time. A
//! connection has as many slots as the plan has streams, if the server accepts that many.
//!
//! h2 implements the protocol, without a runtime and without I/O: `connection` polls it manually, a `pipe` connects it
//! to the link, and `bells` show which streams have news. `exchange` takes requests through their `stream`s; `traffic`
//! reads, writes, and closes connections. Only h2 allocates memory per request.
//!
//! A slot is free only if its stream may open immediately. So if the server accepts fewer streams or has not yet
//! announced its limit, requests wait among the arrivals with their intended start, as for any free connection.

mod bells;
mod connection;
mod exchange;
mod pipe;
mod requests;
#[cfg(test)]
mod scripted;
mod stream;
#[cfg(test)]
mod tests;
mod traffic;

use super::course::PhaseCourse;
use super::link::{self, Dialler, READ_BYTES};
use super::outcome::{Interval, Outcome};
use super::schedule::{Arrival, Share};
use super::tally::Failure;
use super::timers::{Due, Timers};
use super::turn::{self, BEGUN_PER_TURN, Turn, Turning, no_epoll};
use super::{Control, Plan};
use bells::Bells;
use connection::{Connection, Room};
use loadline_base::clock::Clock;
use loadline_base::error::Result;
use requests::{Origin, Requests};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::Arc;
use stream::Slot;

/// A pool does not grow while the connections being opened have slots for all waiting requests. It checks again after
/// this time, about as long as a handshake on one machine.
const GROWN_AGAIN_NS: u64 = 1_000_000;

/// A phase in progress.
pub(super) struct Engine<'a> {
    course: PhaseCourse<'a>,
    dialler: Dialler,
    requests: Requests,
    epoll: OwnedFd,
    /// Slots per place.
    streams: u32,
    places: Vec<ConnectionSlot>,
    places_max: usize,
    /// The slots of a place are adjacent.
    slots: Vec<Slot>,
    connections: Vec<Option<Box<Connection>>>,
    vacant: Vec<u32>,
    /// Slots available for requests, longest idle first, so that all are used.
    free: VecDeque<u32>,
    /// Slots whose requests were sent back and must be resent.
    sent_back: VecDeque<u32>,
    /// Connections to poll and write before waiting for events.
    dirty: VecDeque<u32>,
    /// Slots that become free once their servers have sent something.
    promised: u64,
    timers: Timers,
    buffer: Vec<u8>,
    /// TLS records before decryption; empty without TLS.
    raw: Vec<u8>,
    /// A piece of a body read from a file.
    block: Vec<u8>,
}

/// A place for one connection of the plan. After a GOAWAY, the next connection takes it while the last streams of the
/// old one end.
#[derive(Debug)]
struct ConnectionSlot {
    /// The connection for new requests; `None` if the next request opens one.
    connection: Option<u32>,
    /// Slots that are neither busy nor offered.
    idle: Vec<u32>,
    /// Offered slots.
    offered: u32,
    /// No connection is opened before this time, because the last one was refused.
    rest_until_ns: u64,
    bells: Arc<Bells>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(plan: &'a Plan, share: Share, clock: Clock, control: &'a Control) -> Result<Self> {
        let work = &plan.work;
        let origin = Origin { host: &plan.target.host, over_tls: plan.target.tls.is_some() };
        let requests = Requests::encode(work, origin, plan.seed, share)?;
        let course = PhaseCourse::new(plan, share, requests.len(), clock, control)?;
        let (wanted, places_max) = course.connections();
        // Twice as many if the limit allows it: after a GOAWAY, a connection stays open while its successor opens.
        link::check_descriptors(2 * places_max).or_else(|_| link::check_descriptors(places_max))?;
        let mut engine = Self {
            course,
            dialler: Dialler::new(&plan.target, work.pace, true, &["h2"])?,
            requests,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(no_epoll)?,
            streams: work.protocol.streams().max(1),
            places: Vec::new(),
            places_max: places_max as usize,
            slots: Vec::new(),
            connections: Vec::new(),
            vacant: Vec::new(),
            free: VecDeque::new(),
            sent_back: VecDeque::new(),
            dirty: VecDeque::new(),
            promised: 0,
            timers: Timers::default(),
            buffer: vec![0; READ_BYTES],
            raw: if plan.target.tls.is_some() { vec![0; READ_BYTES] } else { Vec::new() },
            block: Vec::new(),
        };
        for _ in 0..wanted {
            engine.grow();
        }
        Ok(engine)
    }

    /// Adds a place and offers its first slot, marked as free since time 0, so a request never waits for a place that
    /// the engine can still add.
    fn grow(&mut self) {
        let place = self.places.len() as u32;
        let bells = Bells::new(self.streams as usize);
        let first = self.slots.len() as u32;
        self.slots.extend((0..self.streams).map(|number| Slot::new(bells.waker(number as usize))));
        let idle = (first..first + self.streams).rev().collect();
        self.places.push(ConnectionSlot { connection: None, idle, offered: 0, rest_until_ns: 0, bells });
        self.offer(place, 0);
    }

    /// Runs the phase from `start_ns` to completion.
    pub(super) fn run(mut self, start_ns: u64, on_interval: &mut dyn FnMut(&Interval)) -> Result<Outcome> {
        self.course.start(start_ns);
        let ended = turn::run(&mut self, on_interval)?;
        self.course.finish(ended, self.places.len() as u64, on_interval)
    }

    /// Puts a slot whose request has ended back into its place, which offers it again when possible.
    fn release(&mut self, slot: u32, now_ns: u64) {
        let place = slot / self.streams;
        self.places[place as usize].idle.push(slot);
        self.offer(place, now_ns);
    }

    /// Offers the slots of a place whose streams may open immediately: one opens the connection, and the others follow
    /// when the server has announced its limit.
    fn offer(&mut self, place: u32, now_ns: u64) {
        let at = &mut self.places[place as usize];
        let room = match at.connection.and_then(|index| self.connections[index as usize].as_ref()) {
            Some(connection) => connection.streams_max.saturating_sub(connection.streams),
            None => u32::from(now_ns >= at.rest_until_ns),
        };
        while at.offered < room {
            let Some(slot) = at.idle.pop() else { return };
            at.offered += 1;
            self.slots[slot as usize].free_ns = now_ns;
            self.free.push_back(slot);
        }
    }

    /// Whether the first free slot can begin a request; withdraws slots that no longer can.
    fn has_free(&mut self, now_ns: u64) -> bool {
        while let Some(&slot) = self.free.front() {
            if self.may_begin(slot / self.streams, now_ns) {
                return true;
            }
            self.free.pop_front();
            let place = &mut self.places[(slot / self.streams) as usize];
            place.offered -= 1;
            place.idle.push(slot);
        }
        false
    }

    /// Whether a request may begin at a place: its connection has room, or another one can be opened.
    fn may_begin(&mut self, place: u32, now_ns: u64) -> bool {
        let place = &self.places[place as usize];
        match place.connection.and_then(|index| self.connections[index as usize].as_mut()) {
            Some(connection) => connection.room() != Room::None,
            None => now_ns >= place.rest_until_ns,
        }
    }

    /// Gives due requests to free slots.
    fn begin_free(&mut self, mut now_ns: u64) -> Result<Turn> {
        if !self.sent_back.is_empty() {
            self.start_again(now_ns)?;
        }
        for _ in 0..BEGUN_PER_TURN {
            if !self.has_free(now_ns)
                && let Some(turn) = self.wait_for_slots(now_ns)
            {
                return Ok(turn);
            }
            match self.course.arrivals.next(now_ns) {
                Arrival::Due { intended_ns } => {
                    if self.free.is_empty() {
                        self.grow();
                    }
                    if let Some(slot) = self.free.pop_front() {
                        self.begin(slot, intended_ns, now_ns)?;
                    }
                }
                none => return Ok(Turn::without(none, &mut self.course, now_ns)),
            }
            now_ns = self.course.clock.now_ns();
        }
        self.course.watch_queue(now_ns, false);
        Ok(Turn::Until(now_ns))
    }

    /// Returns what to wait for if no slot is free, unless the pool must grow.
    fn wait_for_slots(&mut self, now_ns: u64) -> Option<Turn> {
        let full = self.places.len() == self.places_max;
        let waiting = self.course.arrivals.waiting(now_ns);
        if !full && (waiting == 0 || waiting > self.promised) {
            return None;
        }
        self.course.watch_queue(now_ns, true);
        // Places that are only thinking need not wake up if no more arrivals follow.
        if self.course.tally.sum.in_flight == 0 && self.course.arrivals.are_over(now_ns) {
            return Some(Turn::Over);
        }
        let again_ns = if full { self.course.end_ns(now_ns) } else { now_ns + GROWN_AGAIN_NS };
        Some(Turn::Until(again_ns))
    }
}

impl<'a> Turning<'a> for Engine<'a> {
    #[inline]
    fn course(&mut self) -> &mut PhaseCourse<'a> {
        &mut self.course
    }

    /// Fails the requests that have taken too long, by a scan as in HTTP/1.1.
    fn check(&mut self, now_ns: u64) {
        let timeout_ns = self.course.timeout_ns;
        for number in 0..self.slots.len() {
            let slot = &self.slots[number];
            if slot.is_busy() && now_ns.saturating_sub(slot.under_way.started_ns) > timeout_ns {
                self.time_out(number as u32, now_ns);
            }
        }
    }

    fn wake(&mut self, now_ns: u64) -> Result<()> {
        while let Some((index, due)) = self.timers.pop(now_ns) {
            match due {
                Due::Free => self.release(index as u32, now_ns),
                Due::Receive => self.receive(index as u32)?,
                Due::Send | Due::Continue => {}
            }
        }
        Ok(())
    }

    /// Gives due requests to free slots, or ends the phase.
    fn begin_due(&mut self, now_ns: u64) -> Result<Turn> {
        if self.course.is_drained(now_ns) {
            for slot in 0..self.slots.len() {
                if self.slots[slot].is_busy() {
                    self.fail(slot as u32, Failure::Unanswered, now_ns);
                }
            }
            self.course.give_up_queue(now_ns);
            return Ok(Turn::Over);
        }
        self.begin_free(now_ns)
    }

    fn attend(&mut self, events: &mut Vec<epoll::Event>, until_ns: u64) -> Result<()> {
        self.clean()?;
        // If begun requests left work to do, this turn does not wait, so the next one can do it.
        let until_ns = if self.dirty.is_empty() { until_ns } else { 0 };
        let until_ns = until_ns.min(self.timers.next_ns()).min(self.course.next_ns());
        turn::wait(&self.epoll, events, self.course.clock.now_ns(), until_ns)?;
        for event in events.drain(..) {
            self.handle(event)?;
        }
        Ok(())
    }
}
