//! Resources that every trial needs, regardless of its plan.

use crate::clock::Clock;
use crate::record::Machine;
use crate::subject::{FoundJdk, Spawner};
use std::sync::atomic::{AtomicBool, Ordering};

/// The resources shared by all trials of a series.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    /// The clock.
    pub clock: Clock,
    /// Starts processes.
    pub spawner: &'a Spawner,
    /// The JDKs of this machine.
    pub jdks: &'a [FoundJdk],
    /// The machine before the first trial.
    pub machine: &'a Machine,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
}

impl Tools<'_> {
    /// Whether the user interrupted.
    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
