//! Doubts about what is allocated per request. In JSON they stand among the others, told apart by their kind.

use crate::units::grouped;
use loadline_jvm::accounting::AllocatedBy;
use serde::{Deserialize, Serialize};

/// A reason to distrust bytes per request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Allocation {
    /// They could not be read from outside.
    AllocationUnread {
        /// Why.
        why: String,
    },
    /// They leave something out, or are rounded.
    AllocationRough {
        /// The phase affected.
        phase: String,
        /// The source that counted them.
        by: AllocatedBy,
    },
    /// Requests of one phase allocated more at its beginning than at its end, or less: compiled code was not warm.
    AllocationNotWarm {
        /// The phase affected.
        phase: String,
        /// Bytes per request in its first half.
        first_bytes: f64,
        /// Bytes per request in its second half.
        second_bytes: f64,
    },
}

impl Allocation {
    /// Returns what was seen, in one sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Self::AllocationUnread { why } => format!("bytes per request were not read from outside: {why}"),
            Self::AllocationRough { phase, by } => {
                let why = match by {
                    AllocatedBy::ThreadPrint => "the JVM tells them within 10 %, and of living threads only",
                    AllocatedBy::LivingThreads | AllocatedBy::AllThreads => {
                        "what threads that ended had allocated lacks"
                    }
                };
                format!("bytes per request of {phase} are rough: {why}")
            }
            Self::AllocationNotWarm { phase, first_bytes, second_bytes } => {
                let change = (second_bytes / first_bytes - 1.0) * 100.0;
                let [first, second] = [first_bytes, second_bytes].map(|bytes| grouped(*bytes as u64));
                format!(
                    "{phase} was not warm: {first} B per request in its first half, then {second} B ({change:+.1} %)"
                )
            }
        }
    }

    /// Returns one thing to do about it.
    pub(super) fn next(&self) -> &'static str {
        match self {
            Self::AllocationUnread { .. } => {
                "run Loadline as the subject's user or as root; HotSpot 17 and newer have them"
            }
            Self::AllocationRough { .. } => {
                "use JDK 17.0.11, 21 or newer, with its libjvm as it was built, not stripped"
            }
            Self::AllocationNotWarm { .. } => "warm up longer (`--warmup`), then compare bytes per request",
        }
    }
}
