//! One request from start to finish on one connection: send, receive, judge, continue. The other half of [`Engine`],
//! whose event loop is in `engine`.

use super::connection::{Doing, LAST_INPUT, after_portion};
use super::engine::Engine;
use super::link::{self, Read, Trouble};
use super::outcome::Row;
use super::response::{Ending, Progress, ResponseFacts};
use super::tally::Failure;
use super::timers::Due;
use loadline_base::error::Result;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

/// How long to wait after a refused connection, so a dead server does not cause a busy loop.
pub(super) const BACK_OFF_NS: u64 = 10_000_000;
/// How long a body waits for `100 Continue`; RFC 9110 leaves this to the client, and this is curl's default.
const CONTINUE_NS: u64 = 1_000_000_000;

impl Engine<'_> {
    #[inline]
    pub(super) fn handle(&mut self, event: epoll::Event) -> Result<()> {
        let (index, flags) = (event.data.u64() as usize, event.flags);
        if self.connections[index].is_sending() && flags.intersects(EventFlags::OUT | LAST_INPUT) {
            self.send(index)?;
        }
        if flags.intersects(EventFlags::IN | LAST_INPUT) {
            self.receive(index, flags.intersects(LAST_INPUT))?;
        }
        Ok(())
    }

    /// Begins a request. Dials a new connection if this one is not open.
    #[inline]
    pub(super) fn begin(&mut self, index: usize, intended_ns: u64, now_ns: u64) -> Result<()> {
        // In a pool that can grow, requests never wait.
        let waits = self.connections.len() == self.connections_max;
        let connection = &mut self.connections[index];
        self.course.tally.begun(intended_ns, if waits { connection.free_ns } else { 0 }, now_ns);
        connection.begin(intended_ns, now_ns);
        let place = if self.own.len() > 1 { index } else { 0 };
        (connection.under_way.request, connection.extent) = self.messages.next(&mut self.own[place]);
        if self.messages.get(connection.under_way.request).waits {
            connection.doing = Doing::Waiting;
            self.timers.set(now_ns + CONTINUE_NS, index, Due::Continue);
        }
        if connection.link.is_none() {
            match self.dialler.dial()? {
                Ok(link) => connection.link = Some(link),
                Err(trouble) => {
                    let failure = self.course.failure_of(trouble, false, false);
                    self.fail(index, failure, now_ns);
                    return Ok(());
                }
            }
        }
        if self.portions.send.is_some() {
            self.take_up_pace(index, now_ns);
        }
        // Over loopback, the handshake has finished when connect returns, so the first send usually succeeds too.
        self.send(index)
    }

    /// A slow connection waits out the pause after its last request's last portion. It was not late while it had
    /// nothing to send.
    fn take_up_pace(&mut self, index: usize, now_ns: u64) {
        let from_ns = &mut self.paces[index].send_from_ns;
        if *from_ns > now_ns {
            self.timers.set(*from_ns, index, Due::Send);
        } else {
            *from_ns = 0;
        }
    }

    /// Sends as much of the rest of the request as the kernel accepts.
    #[inline]
    pub(super) fn send(&mut self, index: usize) -> Result<()> {
        loop {
            let connection = &mut self.connections[index];
            let end = connection.sendable();
            let Some(link) = &mut connection.link else { return Ok(()) };
            let message = self.messages.get(connection.under_way.request);
            let own = self.own.get(index).map_or(&[][..], Vec::as_slice);
            let mut piece = message.piece(own, connection.sent, &mut self.block)?;
            let left = end - connection.sent;
            piece = &piece[..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if let Some(portion) = self.portions.send {
                let now_ns = self.course.clock.now_ns();
                if self.paces[index].send_from_ns > now_ns {
                    return self.watch(index);
                }
                piece = &piece[..piece.len().min(portion.bytes)];
            }
            let wrote = if piece.is_empty() { link.flush().map(|()| 0) } else { link.write(piece) };
            match wrote {
                Ok(sent) => {
                    connection.sent += sent as u64;
                    self.course.tally.sum.bytes_sent += sent as u64;
                    if !connection.established {
                        self.establish(index);
                    }
                    if !self.go_on_sending(index, sent) {
                        return self.watch(index);
                    }
                }
                // No room yet, not connected yet, or still in the handshake.
                Err(Trouble::Os(Errno::AGAIN)) => {
                    if self.portions.send.is_some() {
                        self.paces[index].send_from_ns = 0;
                    }
                    return self.watch(index);
                }
                // The server may have responded before it closed, as when it rejects an upload. The rest of the request
                // is lost.
                Err(Trouble::Os(Errno::CONNRESET | Errno::PIPE)) if connection.established => {
                    connection.doing = Doing::Receiving;
                    return self.receive(index, true);
                }
                Err(trouble) => {
                    self.lose(index, trouble);
                    return Ok(());
                }
            }
        }
    }

    /// After a successful write: returns whether there is more to send now.
    #[inline]
    fn go_on_sending(&mut self, index: usize, sent: usize) -> bool {
        let connection = &mut self.connections[index];
        let tls = connection.link.as_ref().is_some_and(link::Link::is_tls);
        let all = connection.sent == connection.sendable() && (!tls || sent == 0);
        if all && connection.doing == Doing::Sending {
            connection.doing = Doing::Receiving;
        }
        if let Some(portion) = self.portions.send
            && sent > 0
        {
            let now_ns = self.course.clock.now_ns();
            let pace = &mut self.paces[index];
            pace.send_from_ns = after_portion(pace.send_from_ns, now_ns, portion.pause_ns);
            if !all {
                self.timers.set(pace.send_from_ns, index, Due::Send);
            }
        }
        !all
    }

    /// Marks the connection as established, after a first successful write.
    fn establish(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.established = true;
        connection.under_way.connected_ns = self.course.clock.now_ns();
        if let Some(link) = &connection.link {
            self.course.opened(link);
        }
    }

    /// Stops waiting: `100 Continue` has arrived, or has not arrived in time.
    pub(super) fn stop_waiting(&mut self, index: usize, now_ns: u64) -> Result<()> {
        let connection = &mut self.connections[index];
        let asked = connection.reader.take_continued() || now_ns >= connection.under_way.started_ns + CONTINUE_NS;
        if connection.doing != Doing::Waiting || !asked {
            return Ok(());
        }
        connection.doing = Doing::Sending;
        if self.portions.send.is_some() {
            self.take_up_pace(index, now_ns);
        }
        self.send(index)
    }

    /// Makes epoll report the events that the connection now waits for.
    #[inline]
    fn watch(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.connections[index];
        let both = connection.doing == Doing::Sending || !connection.established;
        let Some(link) = &connection.link else { return Ok(()) };
        connection.watched.raise(both, &self.epoll, link, index as u64)
    }

    /// Reads until the response is complete or the socket is empty. `to_the_end`: the server has closed, and this edge
    /// was the last, so a short read does not mean that nothing follows.
    pub(super) fn receive(&mut self, index: usize, to_the_end: bool) -> Result<()> {
        loop {
            let connection = &mut self.connections[index];
            let Some(link) = &mut connection.link else { return Ok(()) };
            let mut limit = usize::MAX;
            if let Some(portion) = self.portions.receive {
                let now_ns = self.course.clock.now_ns();
                if self.paces[index].receive_from_ns > now_ns {
                    return Ok(());
                }
                limit = portion.bytes;
            }
            let (length, more) = match link.read(&mut self.buffer, &mut self.raw, limit) {
                Ok(Read::Bytes { length, more }) => {
                    // Needed even after the last bytes: if the end was announced before they were read, only this timer
                    // makes it visible.
                    if let Some(portion) = self.portions.receive {
                        let (pace, now_ns) = (&mut self.paces[index], self.course.clock.now_ns());
                        pace.receive_from_ns = after_portion(pace.receive_from_ns, now_ns, portion.pause_ns);
                        self.timers.set(pace.receive_from_ns, index, Due::Receive);
                    }
                    (length, more || to_the_end)
                }
                Ok(Read::Nothing) => {
                    if self.portions.receive.is_some() {
                        self.paces[index].receive_from_ns = 0;
                    }
                    return Ok(());
                }
                Ok(Read::End) => return self.stream_ended(index),
                Err(trouble) => {
                    self.lose(index, trouble);
                    return Ok(());
                }
            };
            self.course.tally.interval.bytes_received += length as u64;
            if length > 0 {
                if self.take(index, length, to_the_end)? {
                    return Ok(());
                }
            } else if self.connections[index].link.as_ref().is_some_and(link::Link::is_tls) {
                // The handshake may have advanced.
                self.go_on_after_handshake(index)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn go_on_after_handshake(&mut self, index: usize) -> Result<()> {
        let connection = &self.connections[index];
        let ready = connection.link.as_ref().is_some_and(link::Link::is_ready);
        let unsent = connection.sent < connection.sendable();
        if ready && unsent && connection.is_sending() {
            return self.send(index);
        }
        Ok(())
    }

    /// Takes a piece of a response; returns whether the response is finished.
    #[inline]
    fn take(&mut self, index: usize, length: usize, to_the_end: bool) -> Result<bool> {
        let connection = &mut self.connections[index];
        if connection.doing == Doing::Nothing {
            // No request is in flight, so the next response could not be distinguished from this one.
            self.close(index);
            return Ok(true);
        }
        let wanted = &self.messages.get(connection.under_way.request).wanted;
        let progress = connection.reader.feed(&mut self.heads, wanted, &self.buffer[..length]);
        // A response in one piece has one time for its first and last byte, so the clock is read once.
        let in_pieces = matches!(progress, Progress::More);
        if in_pieces && connection.under_way.first_byte_ns == 0 && self.course.tally.rows.wanted() {
            connection.under_way.first_byte_ns = self.course.clock.now_ns();
        }
        match progress {
            Progress::More if connection.doing == Doing::Waiting => {
                let now_ns = self.course.clock.now_ns();
                self.stop_waiting(index, now_ns)?;
                Ok(false)
            }
            Progress::More => Ok(false),
            Progress::Done { answer, left: 0 } => self.answered(index, answer, to_the_end).map(|()| true),
            Progress::Done { .. } | Progress::Broken => {
                self.fail(index, Failure::Protocol, self.course.clock.now_ns());
                Ok(true)
            }
        }
    }

    fn stream_ended(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.connections[index];
        let wanted = &self.messages.get(connection.under_way.request).wanted;
        let shaking = connection.link.as_ref().is_some_and(|link| !link.is_ready());
        let failure = match connection.reader.end(wanted) {
            Ending::Done(answer) => return self.answered(index, answer, true),
            Ending::Nothing => self.course.silence(shaking),
            Ending::Cut => Failure::Short,
        };
        self.fail(index, failure, self.course.clock.now_ns());
        Ok(())
    }

    /// Judges a complete response and lets the connection continue immediately.
    #[inline]
    fn answered(&mut self, index: usize, answer: ResponseFacts, closing: bool) -> Result<()> {
        let now_ns = self.course.clock.now_ns();
        let connection = &mut self.connections[index];
        let ended = connection.under_way.ended(index as u32, now_ns);
        let ended = Row { status: answer.status, body_bytes: answer.body_bytes, ..ended };
        let failure = self.messages.get(connection.under_way.request).wanted.judge(&answer);
        // If the response came before the whole request was sent, the server may no longer be reading.
        let cut = connection.sent < connection.extent.whole;
        connection.doing = Doing::Nothing;
        if closing || cut || !answer.keep_alive || !self.course.plan.work.keep_alive {
            self.close(index);
        }
        self.course.answered(ended, failure);
        if self.course.think_ns > 0 {
            self.timers.set(now_ns + self.course.think_ns, index, Due::Free);
        } else {
            self.release(index, now_ns);
        }
        Ok(())
    }

    /// Ends the request in flight because its connection is no longer usable.
    fn lose(&mut self, index: usize, trouble: Trouble) {
        let connection = &self.connections[index];
        let shaking = connection.link.as_ref().is_some_and(|link| !link.is_ready());
        let failure = self.course.failure_of(trouble, connection.established, shaking);
        self.fail(index, failure, self.course.clock.now_ns());
    }

    /// Ends the request in flight, if any, and closes the connection. It does not continue immediately, so failures
    /// cannot cascade.
    pub(super) fn fail(&mut self, index: usize, failure: Failure, now_ns: u64) {
        let connection = &mut self.connections[index];
        let under_way = connection.doing != Doing::Nothing;
        let ended = connection.under_way.ended(index as u32, now_ns);
        let ended = Row { status: connection.reader.status(), ..ended };
        connection.doing = Doing::Nothing;
        self.close(index);
        if !under_way {
            return;
        }
        self.course.tally.failed(failure, ended);
        if self.course.backs_off(failure, self.connections.len()) {
            self.timers.set(now_ns + BACK_OFF_NS, index, Due::Free);
        } else {
            self.release(index, now_ns);
        }
    }

    fn close(&mut self, index: usize) {
        self.course.tally.interval.open_connections -= u64::from(self.connections[index].close());
    }
}
