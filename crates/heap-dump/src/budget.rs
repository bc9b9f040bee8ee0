//! The memory budget for reading a dump.

use loadline_base::error::{Error, Result};
use loadline_base::units::Bytes;

/// The maximum number of bytes kept in memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Budget(pub(crate) u64);

impl Budget {
    /// Checks that `bytes` fit the budget.
    pub(crate) fn hold(self, bytes: u64) -> Result<()> {
        if bytes <= self.0 {
            return Ok(());
        }
        let (needed, allowed) = (Bytes(bytes), Bytes(self.0));
        let what = format!("reading the heap dump needs at least {needed} of memory, but only {allowed} is allowed");
        Err(Error::machine(what))
    }

    /// How many references fit in addition to `held` bytes and the arrays of `nodes` objects.
    pub(crate) fn references_max(self, held: u64, nodes: u64) -> u64 {
        let left = |per_node: u64| self.0.saturating_sub(held + per_node * nodes);
        // The peaks are while references are reversed (`graph`) and while dominators are computed (`dominators`).
        (left(24) / 8).min(left(32) / 4)
    }

    /// The peak bytes of `nodes` objects, in addition to `held` bytes and without their references.
    pub(crate) fn peak(held: u64, nodes: u64) -> u64 {
        held + 36 * nodes
    }
}
