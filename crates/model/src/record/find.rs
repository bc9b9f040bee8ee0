//! Records of a search for the load line: the purpose of each trial, and the result of all trials together.

pub use crate::scenario::Pages;

use super::Unit;
use crate::units::MIB;
use serde::{Deserialize, Serialize};

/// The page of most machines.
const PAGE: u64 = 4096;

/// A number that a target requires and that a trial did not meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Missed {
    /// The metric with its phase, such as `p99.steady`; for a trial that was stopped early, `response`, `service`,
    /// `rate` or `failed` with its phase.
    pub metric: String,
    /// Unit of both numbers.
    pub unit: Unit,
    /// The measured value.
    pub value: f64,
    /// The bound to reach, or not to exceed.
    pub bound: f64,
    /// The same in words.
    pub text: String,
}

impl Missed {
    /// The metric without its phase.
    pub fn family(&self) -> &str {
        self.metric.split_once('.').map_or(&self.metric, |(family, _)| family)
    }
}

/// The purpose and the result of one trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeRecord {
    /// The part of the search.
    pub stage: ProbeStage,
    /// The maximum heap (`-Xmx`) that the search set; `null` if it is fixed or left to the JVM.
    pub heap_bytes: Option<u64>,
    /// The maximum direct memory (`-XX:MaxDirectMemorySize`) that the search set in addition to the heap; `null` if the
    /// JVM derives it from the heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// Rate of the measured phase, in requests per second; absent if it is the planned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Whether file pages of the JDK and the application were charged to this trial, or were already charged elsewhere.
    pub pages: Pages,
    /// Whether the target held.
    pub verdict: ProbeVerdict,
    /// The missed targets, with the numbers; or the reason why the trial was discarded.
    #[serde(default)]
    pub why: Vec<String>,
    /// The numbers behind `why`, if it is about numbers.
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
    /// Seconds from the preparation of its file pages to the end of its subject.
    #[serde(default)]
    pub seconds: f64,
}

impl ProbeRecord {
    /// Whether the search set this heap with this direct memory.
    pub fn gave(&self, heap: Option<u64>, direct: Option<u64>) -> bool {
        (self.heap_bytes, self.direct_bytes) == (heap, direct)
    }
}

/// Classes that rules of thumb count, loaded or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassesRecord {
    /// Classes in the runtime image of the JDK.
    pub jdk: u64,
    /// Classes in the jars that the subject had open and in the folders of its class path.
    pub application: u64,
}

/// A part of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeStage {
    /// The single trial with ample memory.
    Reference,
    /// Search for the smallest heap with which the subject becomes ready at all: a start without load.
    HeapStart,
    /// Search for the smallest heap.
    Heap,
    /// Search for the smallest limit, including proofs.
    Limit,
    /// Search for the smallest limit on a host with a warm page cache.
    Warm,
    /// Test of the limit and the heap to set, under a longer load.
    Soak,
    /// Search for the highest rate.
    Rate,
}

/// Whether a trial held its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeVerdict {
    /// The target held.
    Holds,
    /// The target did not hold.
    Fails,
    /// The machine disturbed the trial. It is void and is repeated.
    Discarded,
}

/// The first failure when memory is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The kernel killed a process of the subject.
    OomKill,
    /// The JVM exhausted one of its own pools.
    OutOfMemoryError,
    /// The JVM refused to start, or did not become ready in time.
    Start,
    /// The subject ended by itself.
    Died,
    /// Garbage collections took the time.
    Collections,
    /// File pages were repeatedly dropped and read again.
    FilePages,
    /// Times exceeded the target, for no observed reason.
    Times,
    /// The subject gave fewer answers than the target requires, for no observed reason.
    Rate,
    /// Requests failed.
    Failures,
    /// Another condition of the target failed.
    Other,
}

/// Counters of the memory cgroup of a trial, at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CgroupRecord {
    /// The limit.
    pub limit_bytes: u64,
    /// The granularity of limits, if it is larger than a page: 1 MiB in a Slurm step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grain_bytes: Option<u64>,
    /// Page size, if it is not 4 KiB; the unit of faults and refaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u64>,
    /// The largest charge; `null` on v2 before Linux 5.19.
    pub peak_bytes: Option<u64>,
    /// The largest anonymous part of the charge on the timeline, plus kernel and shared memory.
    pub anon_peak_bytes: Option<u64>,
    /// File pages charged at the end of the load.
    pub file_bytes: Option<u64>,
    /// Charges that hit the limit and had to reclaim first.
    pub limit_hits: u64,
    /// Page faults that needed a disk (major faults).
    pub major_faults: u64,
    /// File pages that were read again soon after they were dropped.
    pub file_refaults: u64,
    /// Processes killed for lack of memory.
    pub oom_kills: u64,
    /// File pages that the subject had mapped but that were charged elsewhere, at the end of the load.
    pub foreign_file_bytes: Option<u64>,
}

impl CgroupRecord {
    /// The size of a page on the machine of the trial, in bytes.
    pub fn page(&self) -> u64 {
        self.page_bytes.unwrap_or(PAGE)
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindRecord {
    /// The configuration searched.
    pub configuration: String,
    /// Conditions that had to hold, in their simplest form.
    pub target: Vec<String>,
    /// The unknowns that were varied.
    pub unknowns: Unknowns,
    /// The relative step at which the search stopped, such as 0.02.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub step: f64,
    /// Consecutive trials that had to hold, including the one by which the search chose the value.
    pub proofs: u32,
    /// How the search ended.
    pub outcome: FindOutcome,
    /// The result in one sentence, with the numbers.
    pub text: String,
    /// Index of the trial with ample memory; `null` if none held.
    pub reference: Option<u32>,
    /// The load line with a cold page cache; `null` if none was found.
    pub line: Option<LineRecord>,
    /// The load line with a warm page cache; `null` if it was not found or not searched for.
    pub warm: Option<LineRecord>,
    /// The point beyond which more memory saves no more CPU, if it is not the line itself.
    pub knee: Option<KneeRecord>,
    /// The test of the values to set under a longer load; `null` if there was none, or it has not ended.
    #[serde(default)]
    pub soak: Option<SoakRecord>,
    /// The safety margin added to the line, as a share such as 0.1.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub headroom: f64,
    /// The limit to set: the line plus its headroom, in whole MiB; `null` if there is no line.
    pub limit_bytes: Option<u64>,
    /// The heap to set: the heap of the line plus the same headroom, in whole MiB; `null` if the search set none.
    #[serde(default)]
    pub heap_bytes: Option<u64>,
    /// JVM options to set with it.
    pub options: Vec<String>,
    /// JVM options that set the same heap as a share of that limit instead of `-Xmx`; empty if no heap was set.
    #[serde(default)]
    pub share_options: Vec<String>,
    /// Limits that other sizing methods would have required.
    pub others: Vec<RuleRecord>,
    /// The single limit to prove, if none was searched for.
    #[serde(default)]
    pub prove_bytes: Option<u64>,
    /// The highest rate that held, if it was searched for.
    pub rate: Option<RateRecord>,
    /// Trials run, including those that do not count.
    pub trials: u32,
    /// Seconds from the start of the first trial to the end of the last, without pauses.
    pub seconds: f64,
    /// Whether the time given ended the search before every smaller limit was tried.
    #[serde(default)]
    pub cut_short: bool,
}

/// The test of a limit and a heap under a load longer than that of the search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SoakRecord {
    /// The limit that held, which is the one to set; `null` if none held.
    pub limit_bytes: Option<u64>,
    /// The heap of that trial; `null` if the search set none.
    pub heap_bytes: Option<u64>,
    /// Duration of the load in seconds.
    pub seconds: f64,
    /// Limits that failed, in the order of trials.
    pub failed_bytes: Vec<u64>,
    /// Why the last of them failed.
    pub why: Vec<String>,
}

/// The limit and the heap to set for a line: each plus the headroom, in whole MiB, since people write whole MiB. The
/// limit has room for all of the heap.
pub fn to_set(line_bytes: u64, heap_bytes: Option<u64>, headroom: f64) -> (u64, Option<u64>) {
    // 10 % more than 100 MiB is 110.00000000000001 in binary, and 110 MiB is meant.
    const NEARLY: f64 = 1e-9;
    let with =
        |bytes: u64| (((bytes as f64 * (1.0 + headroom)) / MIB as f64 - NEARLY).ceil() as u64).saturating_mul(MIB);
    let heap = heap_bytes.map(with);
    let more = heap.zip(heap_bytes).map_or(0, |(set, was)| set.saturating_sub(was));
    (with(line_bytes).max(whole(line_bytes.saturating_add(more))), heap)
}

/// The heap for a live set: room for as much again, or for a second of allocation if that is more, in whole MiB.
///
/// Sources: a third of the heap is young by default (`NewRatio`, JDK 11 to 27), so a live set of half the heap leaves a
/// quarter of the old generation free. A second of allocation makes a young collection a second, a few milliseconds.
pub fn heap_with_room(live_bytes: u64, allocated_per_s: Option<f64>) -> u64 {
    // Less saves little, and a small server needs it while it starts.
    const LEAST: u64 = 8 * MIB;
    let second = allocated_per_s.map_or(0, |per_s| per_s.max(0.0) as u64);
    whole(live_bytes.saturating_add(live_bytes.max(second))).max(LEAST)
}

/// Whole MiB, rounded up.
pub fn whole(bytes: u64) -> u64 {
    bytes.div_ceil(MIB).saturating_mul(MIB)
}

/// The unknowns that a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknowns {
    /// The maximum heap, then the limit.
    #[default]
    HeapAndLimit,
    /// The limit, with a heap that the configuration sets.
    Limit,
    /// The limit, from which the JVM derives its heap.
    AsIs,
    /// The rate, with a given limit.
    Rate,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindOutcome {
    /// A line was found, and the step below it failed.
    Found,
    /// The target held at the smallest limit to be tried.
    AtLowerBound,
    /// A line was found, but no value to set held under a longer load.
    Grows,
    /// The target did not hold even with ample memory.
    NotHeld,
    /// The target held with ample memory, but at no limit to be tried.
    Never,
    /// The search ended without an answer: its trials or its time were used up, or it was interrupted.
    #[default]
    GivenUp,
}

impl FindOutcome {
    /// Whether there is a line or a rate to rely on.
    pub fn is_found(self) -> bool {
        matches!(self, Self::Found | Self::AtLowerBound)
    }
}

/// The smallest limit at which the target held every time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineRecord {
    /// The limit.
    pub limit_bytes: u64,
    /// The maximum heap that goes with it; `null` if the configuration set it or the JVM chose it.
    pub heap_bytes: Option<u64>,
    /// The direct memory that goes with it; `null` if the JVM derives it from the heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// Consecutive trials that held at this limit.
    pub held: u32,
    /// How it was proved; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Upper bound of the share of starts that fail, 0–1, with 95 % confidence.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share_max: f64,
    /// The next smaller limit, which failed; `null` if none was tried.
    pub below_bytes: Option<u64>,
    /// The cause of failure at the next smaller limit; `null` if none was tried.
    pub cause: Option<FailureCause>,
    /// The same in words, with the numbers.
    pub cause_text: Vec<String>,
    /// Width of the edge between failing and holding, as a share: how far the highest failed limit is above the lowest
    /// that held.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub edge_width: f64,
}

impl LineRecord {
    /// Trials that count at this limit, the failed ones included.
    pub fn tried(&self) -> u32 {
        self.proof.map_or(self.held, |proof| proof.tried)
    }
}

impl RateRecord {
    /// Trials that count at this rate, the failed ones included.
    pub fn tried(&self) -> u32 {
        self.proof.map_or(self.held, |proof| proof.tried)
    }
}

/// The trials that prove a value, and those that do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofRecord {
    /// Trials that count at this value, the failed ones included.
    pub tried: u32,
    /// The number of these trials by which the search chose the value; they prove nothing. 0 if the value was given.
    pub choosing: u32,
    /// Values that were put to proof in turn, this one last; at least 1.
    pub candidates: u32,
}

/// The point beyond which more memory saves no more CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KneeRecord {
    /// The maximum heap.
    pub heap_bytes: u64,
    /// The line plus the increase in heap. No trial at this limit proved it.
    pub limit_bytes: u64,
    /// CPU per request at the knee, divided by that at the line.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub cpu_ratio: f64,
}

/// The limit that a rule of thumb would have required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleRecord {
    /// Name of the rule.
    pub name: String,
    /// The limit that the rule requires for the heap found.
    pub limit_bytes: u64,
    /// The calculation with its terms.
    pub how: String,
}

/// The highest rate that a limit sustains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateRecord {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Consecutive trials that held at this rate.
    pub held: u32,
    /// How it was proved; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Upper bound of the share of trials at this rate that fail, 0–1, with 95 % confidence; `null` in documents of
    /// earlier versions.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share_max: Option<f64>,
    /// The next higher rate, which failed; `null` if none was tried.
    pub above_per_s: Option<f64>,
    /// The cause of failure at that rate, in words.
    pub cause_text: Vec<String>,
}
