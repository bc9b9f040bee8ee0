//! Shared parts of the protocols' event loops: the length of a turn, waiting, and what to do when nothing is due.

use super::course::PhaseCourse;
use super::outcome::{End, Interval};
use super::schedule::Arrival;
use loadline_base::error::{Error, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;

/// Events taken from the kernel per call. With more, the last of a batch would wait too long.
const EVENTS_PER_TURN: usize = 256;
/// Requests begun before responses are read again, so that opening thousands of connections does not delay the first
/// responses.
pub(super) const BEGUN_PER_TURN: usize = 256;
/// Half of the guarantee that a stop takes effect within 100 ms.
const TURN_NS_MAX: u64 = 50_000_000;

/// The next step after requests have begun.
pub(super) enum Turn {
    /// Wait for events, at most until this moment.
    Until(u64),
    /// All requests have ended and none will begin.
    Over,
}

impl Turn {
    /// Returns the turn if no arrival is due: until the next arrival or the end.
    pub(super) fn without(arrival: Arrival, course: &mut PhaseCourse<'_>, now_ns: u64) -> Self {
        course.watch_queue(now_ns, false);
        match arrival {
            Arrival::At(ns) => Self::Until(ns),
            Arrival::Done if course.tally.sum.in_flight == 0 => Self::Over,
            Arrival::Done | Arrival::Due { .. } => Self::Until(u64::MAX),
        }
    }
}

/// A protocol's half of the event loop: its work in a turn.
pub(super) trait Turning<'a> {
    fn course(&mut self) -> &mut PhaseCourse<'a>;
    /// Fails the requests that have taken too long.
    fn check(&mut self, now_ns: u64);
    fn wake(&mut self, now_ns: u64) -> Result<()>;
    fn begin_due(&mut self, now_ns: u64) -> Result<Turn>;
    /// Waits for events, at most until this moment, and handles them.
    fn attend(&mut self, events: &mut Vec<epoll::Event>, until_ns: u64) -> Result<()>;
}

/// Loops until the phase is over; returns why it ended.
pub(super) fn run<'a>(engine: &mut impl Turning<'a>, on_interval: &mut dyn FnMut(&Interval)) -> Result<End> {
    let mut events = Vec::with_capacity(EVENTS_PER_TURN);
    loop {
        let now_ns = engine.course().clock.now_ns();
        if engine.course().is_check_due(now_ns) {
            engine.check(now_ns);
        }
        if let Some(end) = engine.course().tick(now_ns, on_interval)? {
            // Responses that have already arrived still count; later ones do not.
            engine.course().arrivals.close();
            engine.attend(&mut events, now_ns)?;
            return Ok(end);
        }
        engine.wake(now_ns)?;
        match engine.begin_due(now_ns)? {
            Turn::Until(ns) => engine.attend(&mut events, ns)?,
            Turn::Over => return Ok(End::Done),
        }
    }
}

/// Waits for events, at most until `until_ns`, and never longer than a turn. Errors: the machine cannot provide epoll.
pub(super) fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, now_ns: u64, until_ns: u64) -> Result<()> {
    let pause_ns = until_ns.saturating_sub(now_ns).min(TURN_NS_MAX);
    // Always less than a second.
    let timeout = Timespec { tv_sec: 0, tv_nsec: pause_ns as _ };
    match epoll::wait(epoll, spare_capacity(events), Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(no_epoll(errno)),
    }
}

/// Returns the machine error for a failed epoll, with a hint if the cause is known.
pub(super) fn no_epoll(errno: Errno) -> Error {
    let error = Error::machine(format!("epoll failed: {}", loadline_base::error::plain(&errno.into())));
    match errno {
        Errno::MFILE | Errno::NFILE => error.hint("raise the file descriptor limit with `ulimit -n N`"),
        Errno::NOSPC => error.hint("raise `fs.epoll.max_user_watches` with sysctl"),
        Errno::NOSYS => error.hint("Loadline needs Linux 5.11 or newer"),
        _ => error,
    }
}
