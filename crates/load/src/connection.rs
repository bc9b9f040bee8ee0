//! One connection slot: its link, the request under way on it, and how fast it may go.

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
    /// Connecting, or the request is not wholly in the kernel's hands.
    Sending,
    /// The head is sent, the body waits for `100 Continue`.
    Waiting,
    /// Waiting for the answer or reading it.
    Receiving,
}

/// A place for one request at a time. The link comes and goes; the slot stays.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) link: Option<Link>,
    pub(super) doing: Doing,
    /// The handshakes are over: a send has succeeded.
    pub(super) established: bool,
    pub(super) watched: Watched,
    pub(super) under_way: UnderWay,
    pub(super) extent: Extent,
    /// Bytes of the request that are on their way.
    pub(super) sent: u64,
    /// Since when it is free; 0 before its first request.
    pub(super) free_ns: u64,
    pub(super) reader: ResponseReader,
}

/// The request under way in a place for one at a time, whatever the protocol.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnderWay {
    /// Index of the request in the plan.
    pub(super) request: u32,
    /// From the plan; equal to `started_ns` in a closed model.
    pub(super) intended_ns: u64,
    /// When it was sent or, on a new connection, the connect began.
    pub(super) started_ns: u64,
    /// When the connection stood; 0 where it stood before.
    pub(super) connected_ns: u64,
    /// When the first bytes of the answer came; only kept where rows are asked for, else 0.
    pub(super) first_byte_ns: u64,
}

impl UnderWay {
    #[inline]
    pub(super) fn begin(&mut self, intended_ns: u64, started_ns: u64) {
        *self = Self { intended_ns, started_ns, ..Self::default() };
    }

    /// The request as it ends now on a connection of this number, without an answer.
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

/// When a slow connection may send and read on; 0 where it waits for its server, so that waiting earns it nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Paces {
    pub(super) send_from_ns: u64,
    pub(super) receive_from_ns: u64,
}

/// The events that epoll reports about the socket, always as edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(super) enum Watched {
    #[default]
    Nothing,
    /// Enough while requests fit the send buffer: saves an event for each new connection.
    Input,
    Both,
}

const INPUT: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// The server is done sending; what it sent before may still be unread.
pub(super) const LAST_INPUT: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

impl Watched {
    /// Makes epoll report input, or both, about a link. Nothing to do on a connection that is used again.
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
    /// Begins a request.
    #[inline]
    pub(super) fn begin(&mut self, intended_ns: u64, started_ns: u64) {
        self.doing = Doing::Sending;
        self.under_way.begin(intended_ns, started_ns);
        self.sent = 0;
    }

    /// Whether part of the request is still to be sent, or may be.
    #[inline]
    pub(super) fn is_sending(&self) -> bool {
        matches!(self.doing, Doing::Sending | Doing::Waiting)
    }

    /// How far the request may be sent now: its head while the body waits.
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        if self.doing == Doing::Waiting { self.extent.head } else { self.extent.whole }
    }

    /// Closes the link, which also takes it out of epoll, and forgets the answer under way.
    /// Tells whether the connection had been established.
    pub(super) fn close(&mut self) -> bool {
        let established = self.established;
        *self = Self { doing: self.doing, under_way: self.under_way, free_ns: self.free_ns, ..Self::default() };
        established
    }
}

/// How many bytes go at once, and how long after them the next may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Portion {
    pub(super) bytes: usize,
    pub(super) pause_ns: u64,
}

/// Portions to send and to read; `None` is as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Portions {
    pub(super) send: Option<Portion>,
    pub(super) receive: Option<Portion>,
}

/// A hundred portions a second: a slow peer trickles, it does not stutter.
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

/// When the next portion may go: the rate is held over pauses that came late, but not caught up for more than a second.
/// `from_ns` is when this portion might have gone, in ns; 0 is now.
pub(super) fn after_portion(from_ns: u64, now_ns: u64, pause_ns: u64) -> u64 {
    let since_ns = if from_ns == 0 { now_ns } else { from_ns.max(now_ns.saturating_sub(1_000_000_000)) };
    since_ns + pause_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_base::units::Bytes;

    /// With thousands of connections this is most of what the engine weighs.
    #[test]
    fn a_connection_is_small() {
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
    fn late_portions_catch_up_for_a_second_at_most() {
        let s = 1_000_000_000;
        assert_eq!(after_portion(5 * s, 5 * s + 3, 10), 5 * s + 10);
        assert_eq!(after_portion(1, 5 * s, 10), 4 * s + 10);
        assert_eq!(after_portion(0, 5 * s, 10), 5 * s + 10, "nothing was owed");
    }
}
