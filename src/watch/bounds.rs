//! The bounds of a JVM.

use crate::units::Bytes;
use crate::weigh::Ceilings;
use serde::{Deserialize, Serialize};

/// The bounds of a JVM and its parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The smallest limit on the path, or the machine's memory.
    pub memory: u64,
    /// The bound of the heap, as of metaspace and direct memory below; `None` if it has no bound, or the bound is not
    /// known.
    pub heap: Option<u64>,
    /// See `heap`.
    pub metaspace: Option<u64>,
    /// See `heap`.
    pub direct: Option<u64>,
}

impl Bounds {
    /// Takes the bounds of the parts from the flags of a JVM, and `memory` as the bound of all that it holds.
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
