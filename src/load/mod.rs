//! The load engine. Knows no JVM.
//!
//! [`drive`] runs one phase on the calling thread: its own connections, epoll, request bytes and histogram, nothing
//! shared but the counters of a [`Control`]. A request costs one send, one recv and its share of an `epoll_wait`.
//! `schedule` says when, `request` what; `engine` loops; `exchange` takes one request through a `connection` to its
//! `response`; `tally` counts, and `outcome` is what it came to. `external` reads what other load tools say.

mod chunked;
mod connection;
mod engine;
mod exchange;
pub mod external;
mod outcome;
mod request;
mod response;
mod schedule;
#[cfg(test)]
mod scripted;
mod tally;
#[cfg(test)]
mod tests;

pub use outcome::{End, Failures, GiveUp, Interval, Outcome};

use crate::clock::Clock;
use crate::error::Result;
use crate::scenario::Work;
use schedule::Arrivals;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// One phase of load on one server.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to connect, IPv4 or IPv6.
    pub address: SocketAddr,
    /// The value of the header `Host`, such as `localhost:8080`.
    pub host: String,
    /// What is sent, when, and what counts as a correct answer.
    pub work: Work,
    /// Seeds a generated body.
    pub seed: u64,
    /// When to end early.
    pub give_up: GiveUp,
}

/// Stops a phase and watches it from other threads.
///
/// Holds one phase at a time; the counters are at most one turn of the engine (50 ms when idle) old.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    ok: AtomicU64,
    failed: AtomicU64,
    open_connections: AtomicU64,
}

impl Control {
    /// Ends the phase within 100 ms, and each later one under this control at once.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Correct answers so far.
    pub fn ok(&self) -> u64 {
        self.ok.load(Relaxed)
    }

    /// Failed requests so far.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Established connections now.
    pub fn open_connections(&self) -> u64 {
        self.open_connections.load(Relaxed)
    }

    /// One writer, so plain stores do.
    fn publish(&self, ok: u64, failed: u64, open_connections: u64) {
        self.ok.store(ok, Relaxed);
        self.failed.store(failed, Relaxed);
        self.open_connections.store(open_connections, Relaxed);
    }
}

/// Runs the phase to its end on the calling thread, which the caller may have pinned.
///
/// `on_interval` is called on this thread about once a second and once at the end; what it spends, the load waits.
/// A planned end lets the requests under way come to theirs, for at most the timeout.
///
/// # Errors
/// Only what makes the whole phase impossible: the body cannot be read, the request cannot be written, no epoll or
/// sockets, fewer file descriptors than connections. Whatever the server does is in the [`Outcome`].
pub fn drive(
    plan: &Plan,
    clock: Clock,
    control: &Control,
    on_interval: &mut dyn FnMut(Interval<'_>),
) -> Result<Outcome> {
    let request = request::encode(&plan.work, &plan.host, plan.seed)?;
    let arrivals = Arrivals::of(&plan.work.schedule, clock.now_ns());
    engine::Engine::new(plan, request, arrivals, clock, control)?.run(on_interval)
}
