//! Doubts about allocation per request. In JSON, they are among the other doubts, identified by kind.

use crate::units::grouped;
use loadline_jvm::accounting::AllocatedBy;
use serde::{Deserialize, Serialize};

/// With fewer responses, half a phase is not enough evidence of allocation per request.
pub const ANSWERS_OF_A_HALF_MIN: u64 = 1000;

doubts! {
    /// A reason to distrust the allocation per request.
    Allocation {
        /// Bytes per request could not be read from outside the JVM.
        AllocationUnread {
            /// The reason.
            why: String,
        } => format!("bytes per request could not be read from outside the JVM: {why}"),
            "run Loadline as the server's user or as root; this requires HotSpot 11.0.23 or newer";
        /// Bytes per request are incomplete or rounded.
        AllocationRough {
            /// The affected phase.
            phase: String,
            /// How allocation was counted.
            by: AllocatedBy,
        } => {
            let why = match by {
                AllocatedBy::ThreadPrint => "the JVM reports them only to within 10%, and only for threads still \
                     alive",
                AllocatedBy::LivingThreads | AllocatedBy::AllThreads => {
                    "it excludes allocations by threads that have since exited"
                }
            };
            format!("bytes per request in {phase} are approximate: {why}")
        },
            "use JDK 17.0.11, 21, or newer, and a libjvm.so that is not stripped";
        /// Requests allocated more or less at the beginning of a phase than at its end: compiled code was not warm.
        AllocationNotWarm {
            /// The affected phase.
            phase: String,
            /// Bytes per request in its first half.
            first_bytes: f64,
            /// Bytes per request in its second half.
            second_bytes: f64,
        } => {
            let change = (second_bytes / first_bytes - 1.0) * 100.0;
            let [first, second] = [first_bytes, second_bytes].map(|bytes| grouped(*bytes as u64));
            format!(
                "{phase} was not warm: {first} B per request in its first half, then {second} B ({change:+.1}%)"
            )
        },
            "warm up longer (`--warmup`), then compare bytes per request";
    }
}
