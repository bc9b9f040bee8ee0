//! The bounds of a JVM.

use crate::units::Bytes;
use crate::weigh::Ceilings;
use serde::{Deserialize, Serialize};

/// The bounds of a JVM and its parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The smallest limit of its cgroup and those above it, or the machine's memory.
    pub memory: u64,
    /// The bound of the heap, like those of metaspace and direct memory below; `None` if there is none or it is
    /// unknown.
    pub heap: Option<u64>,
    /// See `heap`.
    pub metaspace: Option<u64>,
    /// See `heap`.
    pub direct: Option<u64>,
}

impl Bounds {
    /// Derives the parts' bounds from a JVM's flags; `memory` bounds the whole JVM.
    pub(super) fn of(memory: Bytes, ceilings: &Ceilings) -> Self {
        let bytes = |ceiling: Option<Bytes>| ceiling.map(|bytes| bytes.0);
        Self {
            memory: memory.0,
            heap: bytes(ceilings.heap),
            metaspace: bytes(ceilings.metaspace),
            direct: bytes(ceilings.direct),
        }
    }
}
