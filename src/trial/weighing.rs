//! One weighing of a running JVM, outside any trial: what `loadline account` does.

use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::record::{Jvm, Mark};

/// How a running JVM is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighing {
    /// Whether its threads may be held for some milliseconds, so that nothing moves while it is read.
    pub stop: bool,
}

/// What a weighing yields.
#[derive(Debug)]
pub struct Weighed {
    /// What the JVM says of itself.
    pub jvm: Jvm,
    /// Its command line.
    pub command: Vec<String>,
    /// The mark `now`, with its account.
    pub mark: Mark,
    /// Reasons to distrust it.
    pub doubts: Vec<Doubt>,
}

impl Weighing {
    /// Weighs the process `pid`, without a collection and without a trim.
    ///
    /// # Errors
    /// `Request` where `pid` is no JVM, Loadline itself, or gone; `Machine` where the permission is missing.
    pub fn take(self, pid: u32, _clock: &Clock) -> Result<Weighed> {
        Err(Error::bug(format!("weighing {pid} is not there yet")))
    }
}
