//! The load engine. It knows nothing about JVMs.
//!
//! [`drive`] runs one phase on the calling thread with its own connections, epoll, request bytes, and histograms,
//! sharing only the counters of a [`Control`]; [`drive_threads`] runs it on several threads. A request costs one send,
//! one recv, and its share of an `epoll_wait`. `schedule` decides when and `message` what to send; `wanted` decides
//! which responses are correct. `engine` loops; `exchange` takes a request through a `connection` and its `link` to its
//! `response`; `course` follows the phase, `tally` counts, and `outcome` is the result. `external` parses other tools'
//! reports.

mod chunked;
mod connection;
mod course;
mod engine;
mod exchange;
pub mod external;
pub mod files;
mod http2;
mod link;
mod message;
mod outcome;
#[cfg(any(test, fuzzing))]
#[path = "tests/reference.rs"]
mod reference;
mod response;
mod rows;
mod schedule;
#[cfg(test)]
mod scripted;
mod tally;
mod template;
#[cfg(test)]
mod tests;
mod threads;
mod timers;
mod tls;
mod turn;
mod wanted;
pub mod work;

pub use outcome::{End, Failures, GiveUp, Interval, Outcome, Row};
pub use threads::drive_threads;

use loadline_base::clock::Clock;
use loadline_base::error::Result;
use rustix::thread;
use schedule::Share;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use work::{Protocol, Tls, Work};

/// One phase of load on one server.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// The requests, their schedule, and the criteria for a correct response.
    pub work: Work,
    /// Seeds bodies, placeholders, the choice among requests, and random arrivals.
    pub seed: u64,
    /// When to end early.
    pub give_up: GiveUp,
    /// Keep at most this many [`Row`]s: all, or a uniform sample if there are more. 0 keeps none and costs nothing.
    pub rows_max: usize,
    /// Keep at most this many failed requests separately: all, or a uniform sample. 0 leaves them among the others.
    pub rows_failed_max: usize,
}

/// A server to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The address on which the server listens.
    pub address: Address,
    /// The value of the header `Host`, such as `localhost:8080`.
    pub host: String,
    /// TLS settings; `None` for plaintext.
    pub tls: Option<Tls>,
}

impl Target {
    /// A plaintext TCP server.
    pub fn plain(address: SocketAddr, host: impl Into<String>) -> Self {
        Self { address: Address::Tcp(address), host: host.into(), tls: None }
    }
}

/// An address on which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Stops a phase and watches it from other threads.
///
/// Controls one phase at a time; the counters are at most one turn of the engine (50 ms when idle) old.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    ok: AtomicU64,
    failed: AtomicU64,
    open_connections: AtomicU64,
}

impl Control {
    /// Ends the phase within 100 ms, and every later one under this control immediately.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether the phase was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Correct responses so far.
    pub fn ok(&self) -> u64 {
        self.ok.load(Relaxed)
    }

    /// Failed requests so far.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Currently established connections.
    pub fn open_connections(&self) -> u64 {
        self.open_connections.load(Relaxed)
    }

    /// There is a single writer, so plain stores are enough.
    fn publish(&self, ok: u64, failed: u64, open_connections: u64) {
        self.ok.store(ok, Relaxed);
        self.failed.store(failed, Relaxed);
        self.open_connections.store(open_connections, Relaxed);
    }
}

/// Runs the phase to completion on the calling thread, which the caller may have pinned.
///
/// `on_interval` is called on this thread about once a second and once at the end; the load waits while it runs. At a
/// planned end, requests in flight or due may finish, but for no longer than the drain. Fails only if the whole
/// phase is impossible: the body cannot be read, the request cannot be written, epoll or sockets are unavailable, or
/// there are fewer file descriptors than connections. Anything that the server does is recorded in the [`Outcome`].
pub fn drive(plan: &Plan, clock: Clock, control: &Control, on_interval: &mut dyn FnMut(&Interval)) -> Result<Outcome> {
    drive_share(plan, Share::WHOLE, clock, control, &|| clock.now_ns(), on_interval)
}

/// `start` is called once, when the engine is ready, and returns the time at which the phase begins, so preparation
/// does not count as lag. It is called even if the engine cannot begin, because other threads wait for it.
fn drive_share(
    plan: &Plan,
    share: Share,
    clock: Clock,
    control: &Control,
    start: &dyn Fn() -> u64,
    on_interval: &mut dyn FnMut(&Interval),
) -> Result<Outcome> {
    let _punctual = Punctual::begin();
    match plan.work.protocol {
        Protocol::Http1 => {
            let (engine, start_ns) = (engine::Engine::new(plan, share, clock, control), start());
            engine?.run(start_ns, on_interval)
        }
        Protocol::Http2 { .. } => {
            let (engine, start_ns) = (http2::Engine::new(plan, share, clock, control), start());
            engine?.run(start_ns, on_interval)
        }
    }
}

/// Makes the kernel end this thread's waits on time: by default it delays them by up to 50 µs, to wake up less often
/// (prctl(2), PR_SET_TIMERSLACK). Dropping it restores the thread's slack.
struct Punctual {
    before_ns: Option<NonZeroU64>,
}

impl Punctual {
    fn begin() -> Self {
        let before_ns = thread::current_timer_slack().ok().and_then(NonZeroU64::new);
        // If the kernel refuses, starts are late by the slack, and the lag shows it.
        let _ = thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        Self { before_ns }
    }
}

impl Drop for Punctual {
    fn drop(&mut self) {
        let _ = thread::set_current_timer_slack(self.before_ns);
    }
}

/// For `fuzz/`: panics if parsing this input (cuts and a response) gives different results whole, in pieces, or with
/// `reference`.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_response(input: &[u8]) {
    reference::check(input);
}
