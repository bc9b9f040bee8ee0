//! Doubts about the node that does an entry of a plan. JSON lists them among the other doubts; their kind tells them
//! apart.

use crate::units::{Bytes, several};
use serde::{Deserialize, Serialize};

doubts! {
    /// A reason to distrust what a node measured.
    Place {
        /// Others ran on the CPUs of the entry just before it began.
        NodeBusy {
            /// How many cores they used.
            busy_cores: f64,
            /// CPUs that the entry was allowed.
            cpus: u32,
        } => format!("the node was busy: just before, others used {busy_cores:.2} of the {cpus} CPUs of this entry"),
            "give an entry a node of its own (`--exclusive` under Slurm, anti-affinity in Kubernetes), and nothing \
                 else";
        /// The entry had a part of its machine, and nothing says that the rest was not used by others.
        NodeShared {
            /// CPUs that the entry was allowed.
            cpus: u32,
            /// CPUs that the machine has.
            online: u32,
        } => format!("the node was shared: the entry had {cpus} of {online} CPUs, and others may have had the rest"),
            "give it the whole node (`--exclusive`, all CPUs as requests): caches and memory are shared, too";
        /// The kernel held its processes back, because their cgroup had used up its share of CPU.
        NodeThrottled {
            /// How often.
            times: u64,
        } => {
            let times = several(*times, "time");
            format!("the node held back its CPUs: the cgroup of this entry was throttled {times}")
        },
            "give whole CPUs, as request and as limit alike, or no limit of CPU; times are longer than on a server";
        /// Memory of the machine went to swap meanwhile.
        NodeSwapped {
            /// By how much more was in swap at the end.
            swap_bytes: u64,
        } => format!("the node ran out of memory: {} of it went to swap in that time", Bytes(*swap_bytes)),
            "plan fewer pods for the node, or turn swap off there (`swapoff -a`)";
    }
}
