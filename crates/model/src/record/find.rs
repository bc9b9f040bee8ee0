//! Records of a search for the load line: the purpose of each trial, and the overall result.

pub use crate::scenario::Pages;

use super::Unit;
use crate::units::MIB;
use serde::{Deserialize, Serialize};

/// The page size of most machines.
const PAGE: u64 = 4096;

/// A condition of the target that a trial missed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Missed {
    /// Metric with its phase, such as `p99.steady`; for a trial stopped early, `response`, `service`, `rate`, or
    /// `failed` with its phase.
    pub metric: String,
    /// Unit of both numbers.
    pub unit: Unit,
    /// The measured value.
    pub value: f64,
    /// The bound to reach, or not to exceed.
    pub bound: f64,
    /// In words.
    pub text: String,
}

impl Missed {
    /// The metric without its phase.
    pub fn family(&self) -> &str {
        self.metric.split_once('.').map_or(&self.metric, |(family, _)| family)
    }
}

/// Purpose and result of one trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeRecord {
    /// Stage of the search.
    pub stage: ProbeStage,
    /// Maximum heap (`-Xmx`) set by the search; `null` if fixed or left to the JVM.
    pub heap_bytes: Option<u64>,
    /// Maximum direct memory (`-XX:MaxDirectMemorySize`) set by the search; `null` if the JVM derives it from the heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// Rate of the measured phase; absent if it is the planned rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Whether file pages of the JDK and the application were charged to this trial or already charged elsewhere.
    pub pages: Pages,
    /// Whether the target was met.
    pub verdict: ProbeVerdict,
    /// Missed targets with numbers, or the reason why the trial was discarded.
    #[serde(default)]
    pub why: Vec<String>,
    /// Missed conditions behind `why`, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// The cause of failure, if it failed.
    #[serde(default)]
    pub cause: Option<FailureCause>,
    /// Classes of the JDK and the application; only in the first trial, if they could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassesRecord>,
    /// Kernel read-ahead on the disk of the JDK; only in the first trial, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_bytes: Option<u64>,
    /// Seconds from the preparation of file pages to the end of the subject.
    #[serde(default)]
    pub seconds: f64,
}

impl ProbeRecord {
    /// Whether the search set this heap and direct memory.
    pub fn gave(&self, heap: Option<u64>, direct: Option<u64>) -> bool {
        (self.heap_bytes, self.direct_bytes) == (heap, direct)
    }
}

/// Heuristic counts of classes, loaded or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassesRecord {
    /// Classes in the JDK's runtime image.
    pub jdk: u64,
    /// Classes in the jars that the subject had open and in the directories of its class path.
    pub application: u64,
}

/// A stage of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeStage {
    /// One trial with ample memory.
    Reference,
    /// Search for the smallest heap that lets the subject become ready, without load.
    HeapStart,
    /// Search for the smallest heap.
    Heap,
    /// Search for the smallest limit, and its confirmation.
    Limit,
    /// Search for the smallest limit on a host with a warm page cache.
    Warm,
    /// Test of the recommended limit and heap under a longer load.
    Soak,
    /// Search for the highest rate.
    Rate,
}

/// Whether a trial met its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeVerdict {
    /// The target was met.
    Holds,
    /// The target was missed.
    Fails,
    /// The machine disturbed the trial, which is repeated.
    Discarded,
}

/// What fails first when memory is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The kernel killed a process of the subject.
    OomKill,
    /// The JVM exhausted one of its own pools.
    OutOfMemoryError,
    /// The JVM did not start, or was not ready in time.
    Start,
    /// The subject exited on its own.
    Died,
    /// GCs took too much time.
    Collections,
    /// File pages were repeatedly reclaimed and read again.
    FilePages,
    /// Times exceeded the target without an observed cause.
    Times,
    /// The rate missed the target without an observed cause.
    Rate,
    /// Requests failed.
    Failures,
    /// Another condition of the target failed.
    Other,
}

/// Counters of a trial's memory cgroup at the end of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CgroupRecord {
    /// The limit.
    pub limit_bytes: u64,
    /// Granularity of limits, if larger than a page: 1 MiB in a Slurm step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grain_bytes: Option<u64>,
    /// Page size if not 4 KiB; the unit of faults and refaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u64>,
    /// Peak charge; `null` on v2 before Linux 5.19.
    pub peak_bytes: Option<u64>,
    /// Peak of anonymous memory on the timeline, plus kernel and shared memory.
    pub anon_peak_bytes: Option<u64>,
    /// Charged file pages at the end of the load.
    pub file_bytes: Option<u64>,
    /// Charges that hit the limit and had to reclaim memory.
    pub limit_hits: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// File pages that were read again soon after reclaim (refaults).
    pub file_refaults: u64,
    /// Processes killed by the OOM killer.
    pub oom_kills: u64,
    /// File pages mapped by the subject but charged to another cgroup, at the end of the load.
    pub foreign_file_bytes: Option<u64>,
}

impl CgroupRecord {
    /// The page size of the trial's machine, in bytes.
    pub fn page(&self) -> u64 {
        self.page_bytes.unwrap_or(PAGE)
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindRecord {
    /// Name of the configuration.
    pub configuration: String,
    /// Conditions that had to hold, in normalized form.
    pub target: Vec<String>,
    /// What the search varied.
    pub unknowns: Unknowns,
    /// Relative step at which the search stopped, such as 0.02.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub step: f64,
    /// Consecutive trials that had to pass, including the one that chose the value.
    pub proofs: u32,
    /// How the search ended.
    pub outcome: FindOutcome,
    /// Result in one sentence, with numbers.
    pub text: String,
    /// Index of the trial with ample memory; `null` if it did not pass.
    pub reference: Option<u32>,
    /// Load line with a cold page cache; `null` if not found.
    pub line: Option<LineRecord>,
    /// Load line with a warm page cache; `null` if not found or not searched for.
    pub warm: Option<LineRecord>,
    /// Point beyond which more memory saves no more CPU, if not the line itself.
    pub knee: Option<KneeRecord>,
    /// Test of the recommended values under a longer load; `null` if skipped or unfinished.
    #[serde(default)]
    pub soak: Option<SoakRecord>,
    /// Safety margin added to the line, as a share such as 0.1.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub headroom: f64,
    /// Recommended limit: the line plus headroom, in whole MiB; `null` if there is no line.
    pub limit_bytes: Option<u64>,
    /// Recommended heap: the heap of the line plus headroom, in whole MiB; `null` if the search set none.
    #[serde(default)]
    pub heap_bytes: Option<u64>,
    /// JVM options to set with the limit.
    pub options: Vec<String>,
    /// JVM options that set the same heap as a share of the limit instead of `-Xmx`; empty if no heap was set.
    #[serde(default)]
    pub share_options: Vec<String>,
    /// Limits that other sizing rules would require.
    pub others: Vec<RuleRecord>,
    /// The single limit to test, if given instead of a search.
    #[serde(default)]
    pub prove_bytes: Option<u64>,
    /// Highest rate that passed, if searched for.
    pub rate: Option<RateRecord>,
    /// Number of trials, including discarded ones.
    pub trials: u32,
    /// Seconds from the start of the first trial to the end of the last, without interruptions.
    pub seconds: f64,
    /// Whether the time budget ended the search before all smaller limits were tried.
    #[serde(default)]
    pub cut_short: bool,
}

/// Test of a limit and heap under a longer load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SoakRecord {
    /// Limit that passed; `null` if none did. It is the recommended one unless a smaller limit failed; then the
    /// recommended one has headroom above it.
    pub limit_bytes: Option<u64>,
    /// Heap of that trial; `null` if the search set none.
    pub heap_bytes: Option<u64>,
    /// Duration of the load.
    pub seconds: f64,
    /// Limits that failed, in trial order.
    pub failed_bytes: Vec<u64>,
    /// Why the last one failed.
    pub why: Vec<String>,
}

/// The limit and heap to set for a line: each plus headroom, in whole MiB, as users write them. The limit has room for
/// the whole heap.
pub fn to_set(line_bytes: u64, heap_bytes: Option<u64>, headroom: f64) -> (u64, Option<u64>) {
    // 100 MiB plus 10% is 110.00000000000001 in binary, but should be 110 MiB.
    const NEARLY: f64 = 1e-9;
    let with =
        |bytes: u64| (((bytes as f64 * (1.0 + headroom)) / MIB as f64 - NEARLY).ceil() as u64).saturating_mul(MIB);
    let heap = heap_bytes.map(with);
    let more = heap.zip(heap_bytes).map_or(0, |(set, was)| set.saturating_sub(was));
    (with(line_bytes).max(whole(line_bytes.saturating_add(more))), heap)
}

/// The heap for a live set: twice its size, or with room for a second of allocation if that is more, in whole MiB.
///
/// Sources: a third of the heap is young by default (`NewRatio`, JDK 11 to 27), so a live set of half the heap leaves a
/// quarter of the old generation free. Room for a second of allocation means one young collection per second, which
/// takes a few milliseconds.
pub fn heap_with_room(live_bytes: u64, allocated_per_s: Option<f64>) -> u64 {
    // A smaller heap saves little, and even a small server needs this much at startup.
    const LEAST: u64 = 8 * MIB;
    let second = allocated_per_s.map_or(0, |per_s| per_s.max(0.0) as u64);
    whole(live_bytes.saturating_add(live_bytes.max(second))).max(LEAST)
}

/// Rounds up to whole MiB.
pub fn whole(bytes: u64) -> u64 {
    bytes.div_ceil(MIB).saturating_mul(MIB)
}

/// What a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknowns {
    /// The maximum heap, then the limit.
    #[default]
    HeapAndLimit,
    /// The limit, with the heap size set by the configuration.
    Limit,
    /// The limit, from which the JVM derives its heap size.
    AsIs,
    /// The rate, with a given limit.
    Rate,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindOutcome {
    /// A line was found, and the next smaller limit failed.
    Found,
    /// The target was met at the smallest limit allowed.
    AtLowerBound,
    /// A line was found, but no recommended limit passed under a longer load.
    Grows,
    /// The target was missed even with ample memory.
    NotHeld,
    /// The target was met with ample memory, but not at any smaller limit.
    Never,
    /// The search ended without a result: it ran out of trials or time, or was interrupted.
    #[default]
    GivenUp,
}

impl FindOutcome {
    /// Whether there is a reliable line or rate.
    pub fn is_found(self) -> bool {
        matches!(self, Self::Found | Self::AtLowerBound)
    }
}

/// The smallest limit at which the target was met every time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineRecord {
    /// The limit.
    pub limit_bytes: u64,
    /// Maximum heap at this limit; `null` if set by the configuration or chosen by the JVM.
    pub heap_bytes: Option<u64>,
    /// Maximum direct memory at this limit; `null` if the JVM derives it from the heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// Consecutive trials that passed at this limit.
    pub held: u32,
    /// How it was confirmed; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Upper bound on the share of failing starts, 0–1, with 95% confidence.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share_max: f64,
    /// Next smaller limit, which failed; `null` if none was tried.
    pub below_bytes: Option<u64>,
    /// Cause of failure at the next smaller limit; `null` if none was tried.
    pub cause: Option<FailureCause>,
    /// In words, with numbers.
    pub cause_text: Vec<String>,
    /// How far the highest limit that failed is above the lowest that passed, as a share.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub edge_width: f64,
}

impl LineRecord {
    /// Valid trials at this limit, including failed ones.
    pub fn tried(&self) -> u32 {
        self.proof.map_or(self.held, |proof| proof.tried)
    }
}

impl RateRecord {
    /// Valid trials at this rate, including failed ones.
    pub fn tried(&self) -> u32 {
        self.proof.map_or(self.held, |proof| proof.tried)
    }
}

/// The trials that confirm a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofRecord {
    /// Number of valid trials at this value, including failed ones.
    pub tried: u32,
    /// Number of these trials that chose the value and so do not confirm it; 0 if the value was given.
    pub choosing: u32,
    /// Number of values tested for confirmation, this one last; at least 1.
    pub candidates: u32,
}

/// The point beyond which more memory saves no more CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KneeRecord {
    /// The maximum heap.
    pub heap_bytes: u64,
    /// The line plus the increase in heap; not tested by a trial.
    pub limit_bytes: u64,
    /// CPU per request at the knee, divided by that at the line.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub cpu_ratio: f64,
}

/// The limit that a rule of thumb would require.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleRecord {
    /// Name of the rule.
    pub name: String,
    /// The limit that the rule requires for the heap found.
    pub limit_bytes: u64,
    /// The calculation.
    pub how: String,
}

/// The highest rate that a limit sustains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateRecord {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Consecutive trials that passed at this rate.
    pub held: u32,
    /// How it was confirmed; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Upper bound on the share of failing trials at this rate, 0–1, with 95% confidence; `null` in documents of
    /// earlier versions.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share_max: Option<f64>,
    /// Next higher rate, which failed; `null` if none was tried.
    pub above_per_s: Option<f64>,
    /// Cause of failure at that rate, in words.
    pub cause_text: Vec<String>,
}
