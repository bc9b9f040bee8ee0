//! The tools of a trial, whatever its plan.

use crate::clock::Clock;
use crate::record::Machine;
use crate::subject::{FoundJdk, Spawner};
use std::sync::atomic::{AtomicBool, Ordering};

/// The tools that all trials of a series share.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    /// Time.
    pub clock: Clock,
    /// Starts processes.
    pub spawner: &'a Spawner,
    /// The JDKs of this machine.
    pub jdks: &'a [FoundJdk],
    /// The machine as it was before the first trial.
    pub machine: &'a Machine,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
}

impl Tools<'_> {
    /// Whether the user wants to stop.
    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
