//! What bounds a JVM.

use crate::units::Bytes;
use crate::weigh::Ceilings;
use serde::{Deserialize, Serialize};

/// What bounds a JVM and its parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The smallest limit on the path, or the machine's memory.
    pub memory: u64,
    /// Of the heap, of metaspace, of direct memory; `None` where nothing bounds it, or that is not known.
    pub heap: Option<u64>,
    /// See `heap`.
    pub metaspace: Option<u64>,
    /// See `heap`.
    pub direct: Option<u64>,
}

impl Bounds {
    /// Of a JVM whose flags say so, where all it holds may be `memory`.
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
