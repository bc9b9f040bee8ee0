//! One request from its beginning to its end on one connection: send, receive, judge, and on to the next.
//! The other half of [`Engine`], whose loop is in `engine`.

use super::connection::{self, Doing, Opened, Watched};
use super::engine::{Engine, READ_BYTES, no_epoll};
use super::response::{Answer, Ending, Progress};
use super::schedule::Arrival;
use super::tally::{Failure, Times};
use crate::error::Result;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

/// A connection that was not accepted waits this long, so that a dead server is no busy loop.
const BACK_OFF_NS: u64 = 10_000_000;

const INPUT: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
const BOTH: EventFlags = INPUT.union(EventFlags::OUT);
/// The server is done sending; what it sent before may still be unread.
const LAST_INPUT: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

impl Engine<'_> {
    /// Moves on what an event is about.
    #[inline]
    pub(super) fn handle(&mut self, event: epoll::Event) -> Result<()> {
        let (index, flags) = (event.data.u64() as usize, event.flags);
        if self.connections[index].doing == Doing::Sending && flags.intersects(EventFlags::OUT | LAST_INPUT) {
            self.send(index)?;
        }
        if flags.intersects(EventFlags::IN | LAST_INPUT) {
            self.receive(index, flags.intersects(LAST_INPUT))?;
        }
        Ok(())
    }

    /// Begins a request, on a new connection if there is none.
    #[inline]
    pub(super) fn begin(&mut self, index: usize, intended_ns: u64, now_ns: u64) -> Result<()> {
        self.busy += 1;
        self.tally.begun(intended_ns, now_ns);
        let connection = &mut self.connections[index];
        connection.begin(intended_ns, now_ns);
        if connection.socket.is_none() {
            match connection::open(&self.address, self.undelayed)? {
                Opened::Socket(socket) => connection.socket = Some(socket),
                Opened::Failed(failure) => {
                    self.fail(index, failure, now_ns);
                    return Ok(());
                }
            }
        }
        // Over loopback the handshake is over when connect returns, so the first send mostly succeeds as well.
        self.send(index)
    }

    /// Sends what is left of the request, as far as the kernel takes it.
    #[inline]
    fn send(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.connections[index];
        let Some(socket) = &connection.socket else { return Ok(()) };
        match net::send(socket, &self.request[connection.sent..], SendFlags::NOSIGNAL) {
            Ok(sent) => {
                connection.sent += sent;
                self.tally.bytes_sent += sent as u64;
                if connection.sent == self.request.len() {
                    connection.doing = Doing::Receiving;
                }
                if !connection.established {
                    connection.established = true;
                    self.tally.connections_opened += 1;
                    self.open_connections += 1;
                }
                self.watch(index)
            }
            // No room yet, or not connected yet.
            Err(Errno::AGAIN) => self.watch(index),
            // The server may have answered before it closed: a refused upload. The rest of the request is lost.
            Err(Errno::CONNRESET | Errno::PIPE) if connection.established => {
                connection.doing = Doing::Receiving;
                self.receive(index, true)
            }
            Err(errno) => {
                let failure = connection::failure(errno, connection.established);
                self.fail(index, failure, self.clock.now_ns());
                Ok(())
            }
        }
    }

    /// Makes epoll report what the connection now waits for. Nothing to do on a connection that is used again.
    #[inline]
    fn watch(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.connections[index];
        let wanted = if connection.doing == Doing::Sending { Watched::Both } else { Watched::Input };
        let Some(socket) = connection.socket.as_ref().filter(|_| connection.watched < wanted) else { return Ok(()) };
        let data = EventData::new_u64(index as u64);
        let flags = if wanted == Watched::Both { BOTH } else { INPUT };
        let done = match connection.watched {
            Watched::Nothing => epoll::add(&self.epoll, socket, data, flags),
            Watched::Input | Watched::Both => epoll::modify(&self.epoll, socket, data, flags),
        };
        connection.watched = wanted;
        done.map_err(no_epoll)
    }

    /// Reads until the answer is complete or the socket empty. `to_the_end`: the server has closed, and this edge was
    /// the last, so a short read does not mean that nothing follows.
    fn receive(&mut self, index: usize, to_the_end: bool) -> Result<()> {
        loop {
            let connection = &mut self.connections[index];
            let Some(socket) = &connection.socket else { return Ok(()) };
            let piece = match net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return self.stream_ended(index),
                Ok((length, _)) => &self.buffer[..length],
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    let failure = connection::failure(errno, connection.established);
                    self.fail(index, failure, self.clock.now_ns());
                    return Ok(());
                }
            };
            self.tally.bytes_received += piece.len() as u64;
            let empty = piece.len() < READ_BYTES && !to_the_end;
            if connection.doing == Doing::Nothing {
                // Nobody asked; the next answer could not be told from this.
                self.close(index);
                return Ok(());
            }
            match connection.reader.feed(&mut self.heads, piece) {
                Progress::More if empty => return Ok(()),
                Progress::More => {}
                Progress::Done { answer, left: 0 } => return self.answered(index, answer, to_the_end),
                Progress::Done { .. } | Progress::Broken => {
                    self.fail(index, Failure::Protocol, self.clock.now_ns());
                    return Ok(());
                }
            }
        }
    }

    fn stream_ended(&mut self, index: usize) -> Result<()> {
        let ending = self.connections[index].reader.end();
        match ending {
            Ending::Done(answer) => return self.answered(index, answer, true),
            Ending::Nothing => self.fail(index, Failure::Reset, self.clock.now_ns()),
            Ending::Cut => self.fail(index, Failure::Short, self.clock.now_ns()),
        }
        Ok(())
    }

    /// Judges a complete answer and lets the connection go on at once.
    #[inline]
    fn answered(&mut self, index: usize, answer: Answer, closing: bool) -> Result<()> {
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[index];
        let times = Times { intended_ns: connection.intended_ns, started_ns: connection.started_ns, ended_ns: now_ns };
        // An answer before the end of the request leaves a server that still reads, or no longer does.
        let cut = connection.sent < self.request.len();
        connection.doing = Doing::Nothing;
        self.busy -= 1;
        if closing || cut || !answer.keep_alive || !self.plan.work.keep_alive {
            self.close(index);
        }
        if now_ns - times.started_ns > self.timeout_ns {
            self.tally.failed(Failure::Timeout, now_ns);
        } else if self.plan.work.expect.accepts(answer.status) {
            self.tally.answered(times);
        } else {
            self.tally.failed(Failure::Status(answer.status), now_ns);
        }
        match self.arrivals.next(now_ns) {
            Arrival::Due { intended_ns } => self.begin(index, intended_ns, now_ns),
            Arrival::At(_) | Arrival::Done => {
                self.free.push(index);
                Ok(())
            }
        }
    }

    /// Ends the request under way, if there is one, and closes the connection. It does not go on at once, so that
    /// failures cannot chase each other.
    pub(super) fn fail(&mut self, index: usize, failure: Failure, now_ns: u64) {
        let under_way = self.connections[index].doing != Doing::Nothing;
        self.connections[index].doing = Doing::Nothing;
        self.close(index);
        if !under_way {
            return;
        }
        self.busy -= 1;
        self.tally.failed(failure, now_ns);
        // Behind a proxy a dead server accepts and closes; then a whole round of failures tells.
        let nobody_there = self.tally.failures_in_a_row > self.connections.len() as u64;
        if nobody_there || matches!(failure, Failure::Refused | Failure::Ports) {
            self.resting.push_back((now_ns + BACK_OFF_NS, index));
        } else {
            self.free.push(index);
        }
    }

    fn close(&mut self, index: usize) {
        self.open_connections -= u64::from(self.connections[index].close());
    }
}
