//! The watched world: a machine with JVMs that come and go.

use super::bounds::Bounds;
use super::kept::{Kept, KilledBy};
use super::sample::Sample;
use crate::record::{WatchCharge, WatchLabel, WatchLimit, WhyWeighed};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Uniquely identifies a process until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Pid in this namespace.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
}

/// A JVM that was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiscoveredJvm {
    /// Its description in the history.
    pub kept: Kept,
    /// Parts of its name.
    pub labels: Vec<WatchLabel>,
    /// Sources that could not be opened, each with its reason.
    pub unreadable: Vec<String>,
}

/// The result of one reading of a JVM.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The sample.
    pub sample: Sample,
    /// The bounds of the JVM and its parts.
    pub bounds: Bounds,
    /// The source of the limit.
    pub limit: WatchLimit,
    /// The charge of its cgroup by holder; `None` without a limit.
    pub charge: Option<WatchCharge>,
    /// The duration of the reading in nanoseconds.
    pub took_ns: u64,
}

/// The JVMs on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct There {
    /// JVMs to watch.
    pub ids: BTreeSet<Id>,
    /// Processes that Loadline has no permission to read.
    pub hidden: u64,
    /// JVMs beyond the maximum that can be watched.
    pub left_out: BTreeSet<Id>,
    /// Whether there was no time to check all processes, so more may be JVMs.
    pub is_behind: bool,
}

/// The outcome of opening a JVM.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// It is open.
    Found(Box<DiscoveredJvm>),
    /// It is gone, or was not selected.
    Not,
    /// It is still being opened, or must wait its turn.
    Later,
    /// It is set aside for this reason: it does not respond in time.
    Aside(String),
}

/// The outcome of an attempt to read a JVM.
#[derive(Debug, Clone, PartialEq)]
pub enum Looked {
    /// It was read.
    Seen(Box<Look>),
    /// It is gone.
    Gone,
    /// It could not be read this time, for this reason.
    Unseen(String),
}

/// A finished account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeighingOutcome {
    /// The JVM.
    pub id: Id,
    /// The reason.
    pub why: WhyWeighed,
    /// The path of the account.
    pub into: PathBuf,
    /// The reason for a failure.
    pub done: Result<(), String>,
}

/// The watched world: this machine or a simulation. No call takes longer than a second or two, whatever a JVM does.
pub trait World {
    /// The current JVMs. If they cannot be listed, fails without a change.
    fn there(&mut self) -> io::Result<There>;
    /// Opens as many of these JVMs as time allows.
    fn open(&mut self, ids: &BTreeSet<Id>) -> Vec<(Id, Opened)>;
    /// Reads these JVMs, fastest first.
    fn look(&mut self, ids: &[Id]) -> Vec<(Id, Looked)>;
    /// Drops a JVM that is gone; returns the cause if it was OOM-killed.
    fn close(&mut self, id: Id) -> Option<KilledBy>;
    /// Drops a JVM that is no longer watched.
    fn forget(&mut self, id: Id);
    /// Starts an account for this reason, into this file; on first sight, attaches to the JVM rather than pausing it.
    /// Fails if that is impossible.
    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String>;
    /// The accounts finished since the last call.
    fn weighed(&mut self) -> Vec<WeighingOutcome>;
    /// Processes set aside because they do not respond in time.
    fn set_aside(&self) -> u64;
    /// Whether nothing can be read because unresponsive processes block every worker.
    fn is_blind(&self) -> bool;
}
