//! Doubts about what is allocated per request. JSON lists them among the other doubts; their kind tells them apart.

use crate::units::grouped;
use loadline_jvm::accounting::AllocatedBy;
use serde::{Deserialize, Serialize};

/// Half a phase with fewer answers says nothing of what its requests allocate.
pub const ANSWERS_OF_A_HALF_MIN: u64 = 1000;

doubts! {
    /// A reason to distrust bytes per request.
    Allocation {
        /// They could not be read from outside.
        AllocationUnread {
            /// Why.
            why: String,
        } => format!("bytes per request were not read from outside: {why}"),
            "run Loadline as the subject's user or as root; HotSpot 11.0.23, 17 and newer have them";
        /// They leave something out, or are rounded.
        AllocationRough {
            /// The phase affected.
            phase: String,
            /// The source that counted them.
            by: AllocatedBy,
        } => {
            let why = match by {
                AllocatedBy::ThreadPrint => "the JVM reports them within 10 %, and of living threads only",
                AllocatedBy::LivingThreads | AllocatedBy::AllThreads => {
                    "what threads that ended had allocated lacks"
                }
            };
            format!("bytes per request of {phase} are rough: {why}")
        },
            "use JDK 17.0.11, 21 or newer, with its libjvm as it was built, not stripped";
        /// Requests of one phase allocated more at its beginning than at its end, or less: compiled code was not warm.
        AllocationNotWarm {
            /// The phase affected.
            phase: String,
            /// Bytes per request in its first half.
            first_bytes: f64,
            /// Bytes per request in its second half.
            second_bytes: f64,
        } => {
            let change = (second_bytes / first_bytes - 1.0) * 100.0;
            let [first, second] = [first_bytes, second_bytes].map(|bytes| grouped(*bytes as u64));
            format!(
                "{phase} was not warm: {first} B per request in its first half, then {second} B ({change:+.1} %)"
            )
        },
            "warm up longer (`--warmup`), then compare bytes per request";
    }
}
