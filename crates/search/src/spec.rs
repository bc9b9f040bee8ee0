//! The settings of a search: its unknowns and its bounds.

use crate::record::Unknowns;
use crate::scenario::RamShare;

/// The unknowns and the bounds of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchSpec {
    /// The unknowns.
    pub unknowns: Unknowns,
    /// The relative step at which to stop.
    pub step: f64,
    /// Trials in a row that must hold.
    pub proofs: u32,
    /// The smallest limit to try, in bytes; the usual one where `None`.
    pub limit_min: Option<u64>,
    /// The limit at which memory is no concern, in bytes; no larger one is asked.
    pub limit_max: u64,
    /// The rate of the measured phase to begin with, where rates are searched.
    pub rate_per_s: Option<f64>,
    /// The one limit to prove, in bytes, where none is searched for.
    pub prove: Option<u64>,
    /// The share that is added to line and heap in what is to be set.
    pub headroom: f64,
    /// Seconds of the longer load under which what is to be set is tested once more; `None` leaves that test out.
    pub soak_s: Option<f64>,
    /// Trials after which the search ends.
    pub trials_max: u32,
    /// Seconds after which no smaller value is tried.
    pub seconds_max: Option<f64>,
    /// Whether the warm line is searched, too.
    pub warm: bool,
    /// Whether a start without load can be told from one that is not ready.
    pub starts_alone: bool,
    /// Whether the configuration has a ceiling of direct memory.
    pub direct_given: bool,
    /// The shares of a limit that the JVM takes as its heap where it chooses that by the limit.
    pub ram_share: RamShare,
}
