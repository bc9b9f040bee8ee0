//! One connection slot: its link, its request in flight, and its pace.

use super::link::Link;
use super::message::Extent;
use super::outcome::Row;
use super::response::ResponseReader;
use super::turn::no_epoll;
use crate::work::Pace;
use loadline_base::error::Result;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;

/// The current activity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Doing {
    /// Free for a request; the link may be open.
    #[default]
    Nothing,
    /// Connecting, or the kernel has not accepted the whole request yet.
    Sending,
    /// The head is sent, and the body waits for `100 Continue`.
    Waiting,
    /// Waiting for the response or reading it.
    Receiving,
}

/// Holds one request at a time. The link comes and goes; the slot stays.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) link: Option<Link>,
    pub(super) doing: Doing,
    /// The handshakes have finished: a send has succeeded.
    pub(super) established: bool,
    pub(super) watched: Watched,
    pub(super) under_way: UnderWay,
    pub(super) extent: Extent,
    /// Bytes of the request already sent.
    pub(super) sent: u64,
    /// When the slot became free; 0 before its first request.
    pub(super) free_ns: u64,
    pub(super) reader: ResponseReader,
}

/// A request in flight in a slot, for any protocol.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnderWay {
    /// Index of the request in the plan.
    pub(super) request: u32,
    /// From the plan; equal to `started_ns` in a closed model.
    pub(super) intended_ns: u64,
    /// When it was sent or, on a new connection, when the connect began.
    pub(super) started_ns: u64,
    /// When the connection was established; 0 if it was established before the request.
    pub(super) connected_ns: u64,
    /// When the first bytes of the response arrived; only recorded if rows are wanted, otherwise 0.
    pub(super) first_byte_ns: u64,
}

impl UnderWay {
    #[inline]
    pub(super) fn begin(&mut self, intended_ns: u64, started_ns: u64) {
        *self = Self { intended_ns, started_ns, ..Self::default() };
    }

    /// The row of the request if it ends now on connection `connection`, without a response.
    #[inline]
    pub(super) fn ended(&self, connection: u32, ended_ns: u64) -> Row {
        let Self { request, intended_ns, started_ns, connected_ns, first_byte_ns } = *self;
        Row {
            intended_ns,
            started_ns,
            connected_ns,
            first_byte_ns,
            ended_ns,
            body_bytes: 0,
            request: Some(request),
            connection: Some(connection),
            status: 0,
            failure: None,
        }
    }
}

/// When a slow connection may continue; 0 while it waits for its server, because waiting earns it no credit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Paces {
    pub(super) send_from_ns: u64,
    pub(super) receive_from_ns: u64,
}

/// The events that epoll reports about the socket, always edge-triggered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(super) enum Watched {
    #[default]
    Nothing,
    /// Sufficient while requests fit into the send buffer; saves one event per new connection.
    Input,
    Both,
}

const INPUT: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// The server is done sending; data that it sent earlier may still be unread.
pub(super) const LAST_INPUT: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

impl Watched {
    /// Makes epoll report input, or both input and output, on a link. Does nothing on a reused connection.
    #[inline]
    pub(super) fn raise(&mut self, both: bool, epoll: &OwnedFd, link: &Link, index: u64) -> Result<()> {
        let (wanted, flags) = if both { (Self::Both, INPUT.union(EventFlags::OUT)) } else { (Self::Input, INPUT) };
        if *self >= wanted {
            return Ok(());
        }
        let data = EventData::new_u64(index);
        let done = match std::mem::replace(self, wanted) {
            Self::Nothing => epoll::add(epoll, link, data, flags),
            Self::Input | Self::Both => epoll::modify(epoll, link, data, flags),
        };
        done.map_err(no_epoll)
    }
}

impl Connection {
    #[inline]
    pub(super) fn begin(&mut self, intended_ns: u64, started_ns: u64) {
        self.doing = Doing::Sending;
        self.under_way.begin(intended_ns, started_ns);
        self.sent = 0;
    }

    /// Whether part of the request is, or may be, still to be sent.
    #[inline]
    pub(super) fn is_sending(&self) -> bool {
        matches!(self.doing, Doing::Sending | Doing::Waiting)
    }

    /// How much of the request may be sent now: only the head while the body waits.
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        if self.doing == Doing::Waiting { self.extent.head } else { self.extent.whole }
    }

    /// Closes the link, which also removes it from epoll, and forgets the response in progress. Returns whether the
    /// connection had been established.
    pub(super) fn close(&mut self) -> bool {
        let established = self.established;
        *self = Self { doing: self.doing, under_way: self.under_way, free_ns: self.free_ns, ..Self::default() };
        established
    }
}

/// How many bytes are sent or read at once, and the pause after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Portion {
    pub(super) bytes: usize,
    pub(super) pause_ns: u64,
}

/// Portions to send and to read; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Portions {
    pub(super) send: Option<Portion>,
    pub(super) receive: Option<Portion>,
}

/// A hundred portions per second: a slow peer trickles instead of stuttering.
const PORTIONS_PER_S: u64 = 100;

impl Portions {
    pub(super) fn of(pace: Pace) -> Self {
        let portion = |bytes_per_s: u64| {
            let bytes = (bytes_per_s / PORTIONS_PER_S).max(1);
            let pause_ns = (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1))) as u64;
            Portion { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), pause_ns }
        };
        Self { send: pace.send.map(|bytes| portion(bytes.0)), receive: pace.receive.map(|bytes| portion(bytes.0)) }
    }
}

/// When the next portion may be sent or read. Makes up for late pauses, but by at most a second. `from_ns` is the
/// earliest time for this portion, in ns; 0 means now.
pub(super) fn after_portion(from_ns: u64, now_ns: u64, pause_ns: u64) -> u64 {
    let since_ns = if from_ns == 0 { now_ns } else { from_ns.max(now_ns.saturating_sub(1_000_000_000)) };
    since_ns + pause_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_base::units::Bytes;

    /// With thousands of connections, this is most of the engine's memory.
    #[test]
    fn a_connection_takes_little_memory() {
        assert!(size_of::<Connection>() <= 176, "{} bytes", size_of::<Connection>());
    }

    #[test]
    fn portions_add_up_to_the_pace() {
        for bytes_per_s in [1, 7, 99, 100, 150, 12_345, 10_000_000] {
            let pace = Pace { send: Some(Bytes(bytes_per_s)), receive: None };
            let portion = Portions::of(pace).send.unwrap();
            let per_s = portion.bytes as f64 * 1e9 / portion.pause_ns as f64;
            assert!((per_s / bytes_per_s as f64 - 1.0).abs() < 1e-6, "{bytes_per_s}: {portion:?}");
        }
        assert_eq!(Portions::of(Pace::default()), Portions::default());
    }

    #[test]
    fn late_portions_catch_up_for_at_most_a_second() {
        let s = 1_000_000_000;
        assert_eq!(after_portion(5 * s, 5 * s + 3, 10), 5 * s + 10);
        assert_eq!(after_portion(1, 5 * s, 10), 4 * s + 10);
        assert_eq!(after_portion(0, 5 * s, 10), 5 * s + 10, "there was no delay to make up for");
    }
}
