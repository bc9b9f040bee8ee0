//! Doubts about the node that executes a plan's entry. In JSON, they are among the other doubts, identified by kind.

use crate::units::{Bytes, several};
use serde::{Deserialize, Serialize};

doubts! {
    /// A reason to distrust what a node measured.
    Place {
        /// Other programs used the entry's CPUs just before it began.
        NodeBusy {
            /// How many cores they used.
            busy_cores: f64,
            /// CPUs available to the entry.
            cpus: u32,
        } => format!("the node was busy: just before this entry, other programs used {busy_cores:.2} of its {cpus} \
             CPUs"),
            "give each entry its own node (`--exclusive` under Slurm, anti-affinity in Kubernetes)";
        /// The entry had only part of its machine, and other programs may have used the rest.
        NodeShared {
            /// CPUs available to the entry.
            cpus: u32,
            /// Online CPUs of the machine.
            online: u32,
        } => format!("the node was shared: the entry had {cpus} of {online} CPUs, and other programs may have \
             used the rest"),
            "give it the whole node (`--exclusive`, or request all CPUs): caches and memory are shared, too";
        /// The kernel throttled the entry's processes because their cgroup had used up its CPU quota.
        NodeThrottled {
            /// How many times.
            times: u64,
        } => {
            let times = several(*times, "time");
            format!("the node throttled this entry: its cgroup was throttled {times}")
        },
            "set the CPU request equal to the limit, in whole CPUs, or set no CPU limit; throttling makes the times \
             longer";
        /// Some of the machine's memory was swapped out.
        NodeSwapped {
            /// Increase in used swap by the end.
            swap_bytes: u64,
        } => format!("the node ran out of memory: {} was swapped out while the entry ran", Bytes(*swap_bytes)),
            "plan fewer pods for the node, or turn off its swap (`swapoff -a`)";
    }
}
