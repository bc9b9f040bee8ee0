//! What is watched, as it is seen from here: a machine with JVMs that come and go.

use super::bounds::Bounds;
use super::kept::{Kept, KilledBy};
use super::sample::Sample;
use crate::record::{WatchLabel, WatchLimit, WhyWeighed};
use std::collections::BTreeSet;
use std::path::Path;

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
pub struct Found {
    /// What its history says of it.
    pub kept: Kept,
    /// Parts of its name.
    pub labels: Vec<WatchLabel>,
    /// What could not be opened of it, and why.
    pub unreadable: Vec<String>,
}

/// What one look at a JVM saw.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// What it held.
    pub sample: Sample,
    /// What bounds it and its parts.
    pub bounds: Bounds,
    /// Whose limit that is.
    pub limit: WatchLimit,
    /// What the look took, in nanoseconds.
    pub took_ns: u64,
}

/// What is watched: this machine, or a made-up one.
pub trait World {
    /// The JVMs that are there now, and how many processes could not be looked into.
    fn ids(&mut self) -> (BTreeSet<Id>, u64);
    /// Opens one that was not there before; `None` where it has gone again.
    fn open(&mut self, id: Id) -> Option<Found>;
    /// Looks at one; `None` once it has gone.
    fn look(&mut self, id: Id) -> Option<Look>;
    /// Forgets one that has gone; says by whom it was killed, where the kernel did so for want of memory.
    fn close(&mut self, id: Id) -> Option<KilledBy>;
    /// Weighs one for this reason, and keeps the account in this file; at first sight it is asked, and not held.
    ///
    /// # Errors
    /// Why it could not be weighed.
    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String>;
}
