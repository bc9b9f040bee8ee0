//! Moves bytes between links and h2, and opens and closes connections. Part of [`Engine`], whose event loop is in
//! `http2`.

use super::Engine;
use super::connection::Connection;
use super::exchange::failure;
use crate::connection::LAST_INPUT;
use crate::link::{Read, Trouble};
use crate::tally::Failure;
use crate::timers::Due;
use loadline_base::error::Result;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use std::task::Poll;

/// Maximum reads and writes per connection before other connections get their turn: up to 1 MiB each.
const READS_PER_TURN: usize = 16;
const WRITES_PER_TURN: usize = 16;

impl Engine<'_> {
    pub(super) fn handle(&mut self, event: epoll::Event) -> Result<()> {
        let (index, flags) = (event.data.u64() as u32, event.flags);
        let Some(connection) = self.connection(index) else { return Ok(()) };
        let writable = flags.intersects(EventFlags::OUT | LAST_INPUT);
        if writable && (connection.blocked || !connection.established) {
            self.pump(index)?;
        }
        let Some(connection) = self.connection(index) else { return Ok(()) };
        if flags.intersects(LAST_INPUT) {
            // This edge was the last: a short read does not mean that nothing follows.
            connection.last = true;
        }
        if flags.intersects(EventFlags::IN | LAST_INPUT) {
            self.receive(index)?;
        }
        Ok(())
    }

    #[inline]
    fn connection(&mut self, index: u32) -> Option<&mut Connection> {
        self.connections.get_mut(index as usize)?.as_deref_mut()
    }

    /// Marks the connection for polling or writing before the engine waits for events.
    pub(super) fn mark_dirty(&mut self, index: u32) {
        if let Some(connection) = self.connection(index)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push_back(index);
        }
    }

    /// Polls connections with begun or ended requests, and writes their data.
    pub(super) fn clean(&mut self) -> Result<()> {
        // Connections marked during this loop get their turn after the events.
        for _ in 0..self.dirty.len() {
            let Some(index) = self.dirty.pop_front() else { break };
            if self.connection(index).is_some_and(|connection| connection.dirty) {
                self.pump(index)?;
            }
        }
        Ok(())
    }

    /// Lets h2 and the streams work until nothing is left to do, and writes their output.
    fn pump(&mut self, index: u32) -> Result<()> {
        for _ in 0..WRITES_PER_TURN {
            let Some(connection) = self.connection(index) else { return Ok(()) };
            connection.dirty = false;
            let place = connection.place;
            let polled = connection.poll();
            self.keep_promise(index);
            self.answer_bells(place)?;
            let now_ns = self.course.clock.now_ns();
            self.offer(place, now_ns);
            if !self.free.is_empty() || !self.sent_back.is_empty() {
                self.begin_free(now_ns)?;
            }
            self.write(index)?;
            let Some(connection) = self.connection(index) else { return Ok(()) };
            match polled {
                Poll::Ready(Ok(())) => {
                    self.lose(index, Failure::Reset);
                    return Ok(());
                }
                Poll::Ready(Err(error)) => {
                    self.lose(index, failure(&error));
                    return Ok(());
                }
                Poll::Pending if connection.retiring && connection.streams == 0 => {
                    self.close(index);
                    return Ok(());
                }
                Poll::Pending if !connection.wants_poll() => return self.read_on(index, now_ns),
                Poll::Pending => {}
            }
        }
        self.mark_dirty(index);
        Ok(())
    }

    /// Continues reading in the next turn if h2 has taken the rest.
    fn read_on(&mut self, index: u32, now_ns: u64) -> Result<()> {
        if let Some(connection) = self.connection(index)
            && connection.unread
            && !connection.pipe.has_unread()
        {
            connection.unread = false;
            self.timers.set(now_ns, index as usize, Due::Receive);
        }
        Ok(())
    }

    /// Offers the promised slots of a connection once the server has sent something.
    fn keep_promise(&mut self, index: u32) {
        let Some(connection) = self.connection(index) else { return };
        if connection.heard && connection.promised > 0 {
            let promised = std::mem::take(&mut connection.promised);
            self.promised -= u64::from(promised);
        }
    }

    /// Writes as much pending data as the socket accepts.
    fn write(&mut self, index: u32) -> Result<()> {
        loop {
            let Some(connection) = self.connection(index).filter(|connection| !connection.broken) else {
                return Ok(());
            };
            if !connection.agreed && !self.agree(index) {
                return Ok(());
            }
            let Some(connection) = self.connection(index) else { return Ok(()) };
            match connection.write() {
                Ok(written) => {
                    // Under TLS, accepted bytes may still be pending. Only a write of zero bytes shows that everything
                    // was sent.
                    let done = connection.pipe.is_written() && (written == 0 || !connection.link.is_tls());
                    connection.blocked = false;
                    let first = !connection.established && written > 0;
                    self.course.tally.sum.bytes_sent += written as u64;
                    if first {
                        self.establish(index);
                    }
                    if done {
                        return self.watch(index);
                    }
                }
                // No room yet, not connected yet, or still in the handshake.
                Err(Trouble::Os(Errno::AGAIN)) => {
                    connection.blocked = true;
                    return self.watch(index);
                }
                // The server may have responded before it closed; read that first.
                Err(Trouble::Os(Errno::CONNRESET | Errno::PIPE)) if connection.established => {
                    connection.broken = true;
                    let now_ns = self.course.clock.now_ns();
                    self.timers.set(now_ns, index as usize, Due::Receive);
                    return Ok(());
                }
                Err(trouble) => {
                    self.trouble(index, trouble);
                    return Ok(());
                }
            }
        }
    }

    /// Whether HTTP/2 may start: the TLS handshake has finished and negotiated it. Closes the connection if something
    /// else was negotiated.
    fn agree(&mut self, index: u32) -> bool {
        let Some(connection) = self.connection(index) else { return false };
        let Some((_, protocol)) = connection.link.negotiated() else {
            // The handshake continues; its output goes out with the next flush.
            return true;
        };
        if protocol.as_deref() == Some("h2") {
            connection.agreed = true;
            return true;
        }
        let chose = protocol.unwrap_or_else(|| "nothing".to_owned());
        let failure = self.course.tally.tls_failed(format!("the server does not speak HTTP/2 (it chose {chose})"));
        self.lose(index, failure);
        false
    }

    /// Marks the connection as established, after a first successful write as in HTTP/1.1; over TLS, after its
    /// handshake.
    fn establish(&mut self, index: u32) {
        let now_ns = self.course.clock.now_ns();
        let Some(connection) = self.connections.get_mut(index as usize).and_then(Option::as_mut) else { return };
        connection.established = true;
        connection.connected_ns = now_ns;
        self.slots[connection.leader as usize].under_way.connected_ns = now_ns;
        self.course.opened(&connection.link);
    }

    /// Makes epoll report the events that the connection now waits for.
    fn watch(&mut self, index: u32) -> Result<()> {
        let Some(connection) = self.connections.get_mut(index as usize).and_then(Option::as_mut) else {
            return Ok(());
        };
        let both = connection.blocked || !connection.established;
        connection.watched.raise(both, &self.epoll, &connection.link, u64::from(index))
    }

    /// Reads until the socket is empty, and lets h2 process the data.
    pub(super) fn receive(&mut self, index: u32) -> Result<()> {
        for _ in 0..READS_PER_TURN {
            let Some(connection) = self.connections.get_mut(index as usize).and_then(Option::as_mut) else {
                return Ok(());
            };
            if connection.pipe.has_unread() {
                self.pump(index)?;
                match self.connection(index) {
                    // h2 does not read while it cannot write; the socket signals when it can.
                    Some(connection) if connection.pipe.has_unread() => {
                        connection.unread = true;
                        return Ok(());
                    }
                    _ => continue,
                }
            }
            let to_the_end = connection.broken || connection.last;
            let (length, more) = match connection.link.read(&mut self.buffer, &mut self.raw, usize::MAX) {
                Ok(Read::Bytes { length, more }) => (length, more || to_the_end),
                Ok(Read::Nothing) if connection.broken => return self.stream_ended(index),
                Ok(Read::Nothing) => return Ok(()),
                Ok(Read::End) => return self.stream_ended(index),
                Err(trouble) => {
                    self.trouble(index, trouble);
                    return Ok(());
                }
            };
            self.course.tally.interval.bytes_received += length as u64;
            self.take(index, length)?;
            if !more {
                return Ok(());
            }
        }
        let now_ns = self.course.clock.now_ns();
        self.timers.set(now_ns, index as usize, Due::Receive);
        Ok(())
    }

    /// Passes h2 the first `length` bytes of the buffer; `length` is 0 if a handshake advanced.
    fn take(&mut self, index: u32, length: usize) -> Result<()> {
        let Some(connection) = self.connection(index) else { return Ok(()) };
        if !connection.agreed && !self.agree(index) {
            return Ok(());
        }
        if length == 0 {
            return self.pump(index);
        }
        let Some(connection) = self.connections.get_mut(index as usize).and_then(Option::as_mut) else {
            return Ok(());
        };
        connection.heard = true;
        let pipe = connection.pipe.clone();
        pipe.lend(&mut self.buffer, length);
        let pumped = self.pump(index);
        pipe.give_back(&mut self.buffer);
        pumped
    }

    fn stream_ended(&mut self, index: u32) -> Result<()> {
        let shaking = self.connection(index).is_some_and(|connection| !connection.link.is_ready());
        let failure = self.course.silence(shaking);
        self.lose(index, failure);
        Ok(())
    }

    /// Ends a connection that is no longer usable, and classifies the failure as in HTTP/1.1.
    fn trouble(&mut self, index: u32, trouble: Trouble) {
        let Some(connection) = self.connection(index) else { return };
        let (established, shaking) = (connection.established, !connection.link.is_ready());
        let failure = self.course.failure_of(trouble, established, shaking);
        self.lose(index, failure);
    }

    /// Closes a connection and fails its requests in flight.
    pub(super) fn lose(&mut self, index: u32, failure: Failure) {
        let Some(connection) = self.connection(index) else { return };
        let (place, streams) = (connection.place, connection.streams);
        // The place must be free first, so that a freed slot opens the next connection.
        let closed = self.take_out(index);
        let now_ns = self.course.clock.now_ns();
        if streams > 0 {
            let first = place * self.streams;
            for slot in first..first + self.streams {
                let at = &self.slots[slot as usize];
                if at.is_busy() && at.connection == index {
                    self.fail(slot, failure, now_ns);
                }
            }
        }
        drop(closed);
        self.vacant.push(index);
        self.offer(place, now_ns);
    }

    /// Closes a connection without requests in flight.
    fn close(&mut self, index: u32) {
        self.lose(index, Failure::Reset);
    }

    fn take_out(&mut self, index: u32) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(index as usize)?.take()?;
        self.promised -= u64::from(connection.promised);
        self.course.tally.interval.open_connections -= u64::from(connection.established);
        let place = &mut self.places[connection.place as usize];
        if place.connection == Some(index) {
            place.connection = None;
        }
        Some(connection)
    }

    /// Stops new requests on the connection, which closes when its last stream has ended.
    pub(super) fn retire(&mut self, index: u32) {
        let Some(connection) = self.connection(index) else { return };
        connection.retiring = true;
        let place = connection.place;
        self.places[place as usize].connection = None;
        // The pump closes it, immediately if nothing is in flight.
        self.mark_dirty(index);
    }
}
