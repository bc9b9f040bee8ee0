//! One request from start to finish in its slot: pass it to h2, send its body, judge its response. Part of [`Engine`],
//! whose event loop is in `http2`.

use super::Engine;
use super::connection::{Connection, Room};
use super::requests::Next;
use super::stream::{Doing, StreamStep, Upload};
use crate::exchange::BACK_OFF_NS;
use crate::tally::Failure;
use crate::timers::Due;
use bytes::Bytes;
use h2::Reason;
use loadline_base::error::{Error, Result};

/// How much of a long body is passed to h2 per call: several frames, but no more than fits in a pipe.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum resends before a request counts as reset. A server that sends GOAWAY after a thousand requests, as
/// nginx does, returns pending requests once. If it returns them more often, it accepts fewer than it announced.
const RETURNS_MAX: u32 = 3;

impl Engine<'_> {
    pub(super) fn begin(&mut self, slot: u32, intended_ns: u64, now_ns: u64) -> Result<()> {
        let place = slot / self.streams;
        self.places[place as usize].offered -= 1;
        let at = &mut self.slots[slot as usize];
        self.course.tally.begun(intended_ns, at.free_ns, now_ns);
        at.begin(intended_ns, now_ns);
        let next = self.requests.next()?;
        (at.under_way.request, at.number, at.connection) = (next.index, next.number, u32::MAX);
        self.start(slot, next, now_ns)
    }

    /// Passes a request to h2, on a new connection if necessary.
    fn start(&mut self, slot: u32, next: Next, now_ns: u64) -> Result<()> {
        let Some(index) = self.connection_for(slot, now_ns)? else { return Ok(()) };
        let Some(connection) = &mut self.connections[index as usize] else { return Ok(()) };
        let bodiless = next.body.is_empty() && next.long_bytes == 0;
        let sent = connection.send(next.head, bodiless);
        let (response, mut stream) = sent.map_err(|error| Error::bug(format!("h2 refused a request: {error}")))?;
        connection.streams += 1;
        let at = &mut self.slots[slot as usize];
        at.connection = index;
        at.under_way.connected_ns = connection.connected_ns;
        at.doing = Doing::Waiting(response);
        if next.long_bytes > 0 {
            at.upload = Some(Upload { stream, sent: 0, whole: next.long_bytes });
            self.upload(slot)?;
        } else if !bodiless {
            // The body is in memory anyway, so h2 may hold it until the server accepts it. If the stream is over, the
            // stream reports that.
            let _ = stream.send_data(next.body, true);
        }
        self.mark_dirty(index);
        // After the first poll, h2 rings the slot's bell when there is news.
        self.advance(slot, now_ns)
    }

    /// Restarts requests that were sent back, if their places have room.
    pub(super) fn start_again(&mut self, now_ns: u64) -> Result<()> {
        for _ in 0..self.sent_back.len() {
            let Some(slot) = self.sent_back.pop_front() else { break };
            // It may have timed out in the meantime.
            if !matches!(self.slots[slot as usize].doing, Doing::Beginning) {
                continue;
            }
            if self.may_begin(slot / self.streams, now_ns) {
                let at = &self.slots[slot as usize];
                let next = self.requests.again(at.under_way.request, at.number)?;
                self.start(slot, next, now_ns)?;
            } else {
                self.sent_back.push_back(slot);
            }
        }
        Ok(())
    }

    /// The connection for the slot's request, a new one if necessary; `None` if the request has failed.
    fn connection_for(&mut self, slot: u32, now_ns: u64) -> Result<Option<u32>> {
        let place = slot / self.streams;
        if let Some(index) = self.places[place as usize].connection {
            match self.connections[index as usize].as_mut().map(|connection| connection.room()) {
                Some(Room::Some | Room::None) => return Ok(Some(index)),
                Some(Room::NeverAgain) | None => self.retire(index),
            }
        }
        let link = match self.dialler.dial()? {
            Ok(link) => link,
            Err(trouble) => {
                let failure = self.course.failure_of(trouble, false, false);
                self.fail(slot, failure, now_ns);
                return Ok(None);
            }
        };
        let mut connection = Connection::new(link, place, slot)
            .map(Box::new)
            .ok_or_else(|| Error::bug("h2 did not start a connection immediately"))?;
        connection.promised = self.streams - 1;
        self.promised += u64::from(connection.promised);
        let index = self.vacant.pop().unwrap_or(self.connections.len() as u32);
        match self.connections.get_mut(index as usize) {
            Some(vacant) => *vacant = Some(connection),
            None => self.connections.push(Some(connection)),
        }
        self.places[place as usize].connection = Some(index);
        Ok(Some(index))
    }

    /// Handles a place's slots whose bells rang.
    pub(super) fn answer_bells(&mut self, place: u32) -> Result<()> {
        for word in 0..self.places[place as usize].bells.words() {
            let mut rang = self.places[place as usize].bells.take(word);
            while rang != 0 {
                let slot = place * self.streams + (word * 64) as u32 + rang.trailing_zeros();
                rang &= rang - 1;
                let now_ns = self.course.clock.now_ns();
                self.advance(slot, now_ns)?;
            }
        }
        Ok(())
    }

    /// Continues a request as far as possible now.
    fn advance(&mut self, slot: u32, now_ns: u64) -> Result<()> {
        if self.slots[slot as usize].upload.is_some() {
            self.upload(slot)?;
        }
        loop {
            let at = &mut self.slots[slot as usize];
            let wanted = &self.requests.get(at.under_way.request).wanted;
            match at.step(wanted) {
                StreamStep::Pending => return Ok(()),
                StreamStep::Head => self.head_came(slot, now_ns),
                StreamStep::Piece => {}
                StreamStep::Done => {
                    self.head_came(slot, now_ns);
                    self.answered(slot, now_ns);
                    return Ok(());
                }
                StreamStep::Failed(error) if is_sent_back(&error) && at.returns < RETURNS_MAX => {
                    self.leave(slot);
                    self.slots[slot as usize].send_back();
                    self.sent_back.push_back(slot);
                    return Ok(());
                }
                StreamStep::Failed(error) => {
                    self.fail(slot, failure(&error), now_ns);
                    return Ok(());
                }
            }
        }
    }

    #[inline]
    fn head_came(&mut self, slot: u32, now_ns: u64) {
        let at = &mut self.slots[slot as usize];
        if at.under_way.first_byte_ns == 0 && self.course.tally.rows.wanted() {
            at.under_way.first_byte_ns = now_ns;
        }
    }

    /// Sends as much of a long body as the server accepts.
    fn upload(&mut self, slot: u32) -> Result<()> {
        let at = &mut self.slots[slot as usize];
        loop {
            let capacity = at.capacity(PIECE_BYTES);
            let (Some(upload), Some(long)) = (&mut at.upload, &self.requests.get(at.under_way.request).long) else {
                return Ok(());
            };
            if capacity == 0 {
                return Ok(());
            }
            let piece = long.piece(upload.sent, &mut self.block)?;
            let piece = Bytes::copy_from_slice(&piece[..piece.len().min(capacity)]);
            upload.sent += piece.len() as u64;
            let last = upload.sent == upload.whole;
            // A stream that accepts no more data has a response, or an error that says why.
            if upload.stream.send_data(piece, last).is_err() || last {
                at.upload = None;
                return Ok(());
            }
        }
    }

    /// Judges a complete response and frees its slot.
    fn answered(&mut self, slot: u32, now_ns: u64) {
        let at = &mut self.slots[slot as usize];
        let ended = at.ended(slot / self.streams, now_ns);
        let failure = self.requests.get(at.under_way.request).wanted.judge(&at.answer);
        self.end(slot);
        self.course.answered(ended, failure);
        if self.course.think_ns > 0 {
            self.timers.set(now_ns + self.course.think_ns, slot as usize, Due::Free);
        } else {
            self.release(slot, now_ns);
        }
    }

    /// Ends the request in flight in a slot, if any; resets its stream if still open.
    pub(super) fn fail(&mut self, slot: u32, failure: Failure, now_ns: u64) {
        let place = slot / self.streams;
        let at = &mut self.slots[slot as usize];
        if !at.is_busy() {
            return;
        }
        let ended = at.ended(place, now_ns);
        self.end(slot);
        self.course.tally.failed(failure, ended);
        if self.course.backs_off(failure, self.slots.len()) {
            // The place's other slots do not try in the meantime.
            self.places[place as usize].rest_until_ns = now_ns + BACK_OFF_NS;
            self.timers.set(now_ns + BACK_OFF_NS, slot as usize, Due::Free);
        } else {
            self.release(slot, now_ns);
        }
    }

    /// Ends a slot's request; h2's message about it is sent to the server soon.
    fn end(&mut self, slot: u32) {
        self.leave(slot);
        self.slots[slot as usize].end();
    }

    /// Removes a slot's stream from the count of its connection.
    fn leave(&mut self, slot: u32) {
        let index = self.slots[slot as usize].connection;
        if let Some(connection) = self.connections.get_mut(index as usize).and_then(Option::as_mut) {
            connection.streams -= 1;
            self.mark_dirty(index);
        }
    }

    /// Ends a request that has taken too long. Its connection continues, unless the server has never sent anything on
    /// it.
    pub(super) fn time_out(&mut self, slot: u32, now_ns: u64) {
        let index = self.slots[slot as usize].connection;
        let connection = self.connections.get(index as usize).and_then(Option::as_ref);
        let silent = connection.is_some_and(|connection| !connection.heard);
        self.fail(slot, Failure::Timeout, now_ns);
        if silent {
            self.lose(index, Failure::Timeout);
        }
    }
}

/// Whether the server has announced that it did not process the request (RFC 9113, section 6.8). This is an orderly
/// end, not a failure: the request is resent, timed from its first start.
fn is_sent_back(error: &h2::Error) -> bool {
    error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}

/// Maps an h2 error to a request's failure. It is a reset if I/O failed or the server sent RST_STREAM or GOAWAY.
/// Otherwise h2 itself ended the request, because the response was not HTTP/2.
pub(super) fn failure(error: &h2::Error) -> Failure {
    if error.is_io() || error.is_remote() { Failure::Reset } else { Failure::Protocol }
}
