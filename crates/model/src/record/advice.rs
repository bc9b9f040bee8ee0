//! Records of sizing advice for JVMs.

use super::{Machine, RuleRecord, UnreadRecord};
use serde::{Deserialize, Serialize};

/// Schema of the output of `loadline advise --json`.
pub const ADVICE_SCHEMA: &str = "loadline.advice/1";

/// The document that `loadline advise --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviceDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = ADVICE_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When it was taken: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub taken: String,
    /// The command that repeats it.
    pub command: String,
    /// The machine and how busy it was.
    pub machine: Machine,
    /// The advice for each JVM, or for each configuration of a run.
    pub advice: Vec<AdviceRecord>,
    /// JVMs that were found but could not be read.
    pub unread: Vec<UnreadRecord>,
}

/// Recommended sizes for a JVM, not confirmed by trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AdviceRecord {
    /// Its name: `namespace/pod/container`, a unit, a main class or archive, or a configuration of a run.
    pub name: String,
    /// Process ID; `null` if it was not running when read.
    pub pid: Option<u32>,
    /// The names of its container, as far as they are known.
    pub place: PlaceRecord,
    /// The container limit to set; `null` if there is no advice.
    pub limit_bytes: Option<u64>,
    /// The memory request to set.
    pub request_bytes: Option<u64>,
    /// The `-Xmx` to set with the limit.
    pub heap_bytes: Option<u64>,
    /// All JVM options to set.
    pub options: Vec<String>,
    /// Words to remove from its command, because they override or contradict options in `JAVA_TOOL_OPTIONS`.
    pub without: Vec<String>,
    /// The same heap as shares of the limit, in place of `-Xmx`.
    pub share_options: Vec<String>,
    /// The limit if the heap keeps its maximum: the peak, the growth of the heap up to its maximum, and headroom.
    pub limit_as_is_bytes: Option<u64>,
    /// The arithmetic: the rows add up to `limit_bytes`.
    pub rows: Vec<AdviceRow>,
    /// The current limit; `null` without one.
    pub limit_now_bytes: Option<u64>,
    /// The current maximum heap size; `null` if unknown.
    pub heap_max_now_bytes: Option<u64>,
    /// Confidence in the advice.
    pub confidence: AdviceConfidence,
    /// The evidence in words: time watched, deployments, peaks, old GCs.
    pub evidence: String,
    /// Why the confidence is not higher.
    pub why: Vec<String>,
    /// Whether trials confirmed it: always false, because only the command in `prove` can confirm it.
    pub proved: bool,
    /// Command that tests it, with placeholders in capitals; empty if there is no advice.
    pub prove: String,
    /// Why there is no advice; `null` if there is one.
    pub refused: Option<String>,
    /// The limits that other rules would set for the same heap.
    pub others: Vec<RuleRecord>,
    /// The recommendation of a VerticalPodAutoscaler for the same container; absent if none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<VpaRecord>,
}

/// The names of a container, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PlaceRecord {
    /// Namespace of the pod.
    pub namespace: Option<String>,
    /// Name of the pod.
    pub pod: Option<String>,
    /// Name of the container within the pod.
    pub container: Option<String>,
    /// The systemd unit.
    pub unit: Option<String>,
}

/// A row of the arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AdviceRow {
    /// The kind of row.
    pub kind: AdvicePart,
    /// The owner's name, as in the account; empty if the kind is enough.
    pub owner: String,
    /// Observed bytes; `null` for a margin.
    pub seen_bytes: Option<u64>,
    /// Growth in the second half of the time watched, which counts twice; `null` if unknown.
    pub growth_bytes: Option<u64>,
    /// Bytes that the limit counts for it.
    pub bytes: u64,
}

/// The kinds of rows, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AdvicePart {
    /// Heap left by the last old GCs.
    LiveSet,
    /// Heap that may be in use if no old GC ran: an upper bound on the live set.
    LiveSetAtMost,
    /// Room to allocate between two GCs, and rounding up to MiB; `seen_bytes`: the most allocated in a second.
    AllocationRoom,
    /// Memory outside the heap, by owner.
    #[default]
    Owner,
    /// Memory of the kernel: page tables, stacks, sockets.
    Kernel,
    /// Page cache that the kernel cannot reclaim: in-memory files, and pages not yet written to disk.
    KeptPageCache,
    /// Anonymous memory of other processes in the container.
    OtherProcesses,
    /// The part of the observed peak that exceeds the sum of the rows above.
    AtPeak,
    /// The added margin, and rounding up to whole MiB.
    Headroom,
}

/// Confidence in the advice, based on how much was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AdviceConfidence {
    /// A single reading, or hours without an old GC.
    #[default]
    Low,
    /// A day with its peak, or a trial under load with a full GC.
    Medium,
    /// A week with old GCs.
    High,
}

/// The recommendation of a VerticalPodAutoscaler for a container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VpaRecord {
    /// Name of the VerticalPodAutoscaler.
    pub name: String,
    /// Name of its workload.
    pub workload: String,
    /// Name of the container.
    pub container: String,
    /// The memory request that it recommends.
    pub target_bytes: u64,
    /// Pods with a smaller request are evicted; `null` if not given.
    pub lower_bytes: Option<u64>,
    /// Pods with a larger request are evicted; `null` if not given.
    pub upper_bytes: Option<u64>,
}
