//! The world that is watched, as seen from here: a machine with JVMs that come and go.

use super::bounds::Bounds;
use super::kept::{Kept, KilledBy};
use super::sample::Sample;
use crate::record::{WatchCharge, WatchLabel, WatchLimit, WhyWeighed};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A JVM for good: no other process since the machine started has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Process id, as seen from here.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start_ticks: u64,
}

/// A JVM that was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiscoveredJvm {
    /// Its description, as its history keeps it.
    pub kept: Kept,
    /// Parts of its name.
    pub labels: Vec<WatchLabel>,
    /// The sources that could not be opened, and why.
    pub unreadable: Vec<String>,
}

/// The result of one look at a JVM.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The values seen.
    pub sample: Sample,
    /// The bounds of the JVM and its parts.
    pub bounds: Bounds,
    /// Whose limit that is.
    pub limit: WatchLimit,
    /// The charge of its cgroup by holder; `None` where no limit bounds the cgroup.
    pub charge: Option<WatchCharge>,
    /// The time that the look took, in nanoseconds.
    pub took_ns: u64,
}

/// The JVMs that are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct There {
    /// Those that are watched.
    pub ids: BTreeSet<Id>,
    /// Further processes, which may not be looked into.
    pub hidden: u64,
    /// Further JVMs, which are more than can be watched.
    pub left_out: BTreeSet<Id>,
    /// Whether there was no time to look at all processes, so that more of these may be JVMs.
    pub is_behind: bool,
}

/// The outcome of opening a JVM.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// It is open.
    Found(Box<DiscoveredJvm>),
    /// It has gone again, or is not meant.
    Not,
    /// It was not its turn, or it is being opened.
    Later,
    /// It is set aside, and why: it does not answer in time.
    Aside(String),
}

/// The outcome of a look at a JVM.
#[derive(Debug, Clone, PartialEq)]
pub enum Looked {
    /// It was seen.
    Seen(Box<Look>),
    /// It has gone.
    Gone,
    /// Nothing is known of it this time, and why.
    Unseen(String),
}

/// A JVM that was weighed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeighingOutcome {
    /// Which.
    pub id: Id,
    /// Why.
    pub why: WhyWeighed,
    /// The path of its account.
    pub into: PathBuf,
    /// Nothing if the account was taken, or the reason why it was not.
    pub done: Result<(), String>,
}

/// The watched world: this machine, or a made-up one. No call takes longer than a second or two, whatever a JVM does.
pub trait World {
    /// The JVMs that are there now.
    ///
    /// # Errors
    /// If they cannot be listed this time: as far as is known, none has come and none has gone.
    fn there(&mut self) -> io::Result<There>;
    /// Opens those of these for which there is time.
    fn open(&mut self, ids: &BTreeSet<Id>) -> Vec<(Id, Opened)>;
    /// Looks at these, those that take the least time first.
    fn look(&mut self, ids: &[Id]) -> Vec<(Id, Looked)>;
    /// Forgets one that has gone; says by whom it was killed, where the kernel did so for want of memory.
    fn close(&mut self, id: Id) -> Option<KilledBy>;
    /// Forgets one that is watched no longer.
    fn forget(&mut self, id: Id);
    /// Has one weighed for this reason, into this file; at first sight it is asked, and not held.
    ///
    /// # Errors
    /// If it cannot be weighed.
    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String>;
    /// Returns the weighings that ended since the last call.
    fn weighed(&mut self) -> Vec<WeighingOutcome>;
    /// Processes that are set aside, because they do not answer in time.
    fn set_aside(&self) -> u64;
    /// Whether nothing can be looked at, because every worker is kept by a process that does not answer.
    fn is_blind(&self) -> bool;
}
