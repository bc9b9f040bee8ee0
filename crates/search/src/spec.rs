//! The settings of a search: its unknowns and bounds.

use crate::record::Unknowns;
use crate::scenario::RamShare;

/// The unknowns and bounds of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchSpec {
    /// The unknowns.
    pub unknowns: Unknowns,
    /// The relative step at which to stop.
    pub step: f64,
    /// Consecutive trials that must hold.
    pub proofs: u32,
    /// The smallest limit to try, in bytes; `None` for the default.
    pub limit_min: Option<u64>,
    /// The limit with ample memory, in bytes; no larger one is tried.
    pub limit_max: u64,
    /// The initial rate of the measured phase in a search for a rate.
    pub rate_per_s: Option<f64>,
    /// The only limit to confirm, in bytes, if none is searched for.
    pub prove: Option<u64>,
    /// The share added to the line and the heap in the recommended settings.
    pub headroom: f64,
    /// Seconds of the longer load that tests the recommended settings again; `None` skips that test.
    pub soak_s: Option<f64>,
    /// Maximum number of trials.
    pub trials_max: u32,
    /// Seconds after which no smaller value is tried.
    pub seconds_max: Option<f64>,
    /// Whether to search for the warm line too.
    pub warm: bool,
    /// Whether a startup without load shows whether the subject becomes ready.
    pub starts_alone: bool,
    /// Whether the configuration limits direct memory.
    pub direct_given: bool,
    /// The shares of a limit that the JVM uses for its heap if it derives the heap from the limit.
    pub ram_share: RamShare,
}
