//! Doubts about the node that does an entry of a plan. In JSON they stand among the others, told apart by their kind.

use crate::units::{Bytes, grouped};
use serde::{Deserialize, Serialize};

/// A reason to distrust what a node measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Place {
    /// Others ran on the CPUs of the entry just before it began.
    NodeBusy {
        /// How many cores they used.
        busy_cores: f64,
        /// CPUs that the entry was allowed.
        cpus: u32,
    },
    /// The entry had a part of its machine, and nothing says that the rest was not used by others.
    NodeShared {
        /// CPUs that the entry was allowed.
        cpus: u32,
        /// CPUs that the machine has.
        online: u32,
    },
    /// The kernel held its processes back, because their cgroup had used up its share of CPU.
    NodeThrottled {
        /// How often.
        times: u64,
    },
    /// Memory of the machine went to swap meanwhile.
    NodeSwapped {
        /// By how much more was in swap at the end.
        swap_bytes: u64,
    },
}

impl Place {
    /// Returns what was seen, in one sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Self::NodeBusy { busy_cores, cpus } => {
                format!("the node was busy: just before, others used {busy_cores:.2} of the {cpus} CPUs of this entry")
            }
            Self::NodeShared { cpus, online } => {
                format!("the node was shared: the entry had {cpus} of {online} CPUs, and others may have had the rest")
            }
            Self::NodeThrottled { times } => {
                let times = grouped(*times);
                format!("the node held back its CPUs: the cgroup of this entry was throttled {times} times")
            }
            Self::NodeSwapped { swap_bytes } => {
                format!("the node ran out of memory: {} of it went to swap meanwhile", Bytes(*swap_bytes))
            }
        }
    }

    /// One thing to do about it.
    pub(super) fn next(&self) -> &'static str {
        match self {
            Self::NodeBusy { .. } => {
                "give an entry a node of its own (`--exclusive` under Slurm, anti-affinity in Kubernetes), and nothing \
                 else"
            }
            Self::NodeShared { .. } => {
                "give it the whole node (`--exclusive`, all CPUs as requests): caches and memory are shared, too"
            }
            Self::NodeThrottled { .. } => {
                "give whole CPUs, as request and as limit alike, or no limit of CPU; times are longer than on a server"
            }
            Self::NodeSwapped { .. } => "plan fewer pods for the node, or turn swap off there (`swapoff -a`)",
        }
    }
}
