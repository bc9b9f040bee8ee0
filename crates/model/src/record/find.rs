//! Records of a search for the load line: the purpose of each trial, and the result of all of them together.

pub use crate::scenario::Pages;

use super::Unit;
use crate::units::MIB;
use serde::{Deserialize, Serialize};

/// The page of most machines.
const PAGE: u64 = 4096;

/// A number that a target asks for and a trial did not reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Missed {
    /// The metric with its phase, such as `p99.steady`; of a trial that was given up, `response`, `service`, `rate` or
    /// `failed` with its phase.
    pub metric: String,
    /// Unit of both numbers.
    pub unit: Unit,
    /// The measured value.
    pub value: f64,
    /// The bound to be reached, or not to be exceeded.
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

/// The purpose and the result of a trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeRecord {
    /// Which part of the search.
    pub stage: ProbeStage,
    /// The largest heap (`-Xmx`) that the search gave; `null` where it is fixed or left to the JVM.
    pub heap_bytes: Option<u64>,
    /// The direct memory (`-XX:MaxDirectMemorySize`) that the search gave beside the heap; `null` where the JVM derives
    /// it from the heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// The rate of the measured phase, requests per second; absent where it is as planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Whether file pages of the JDK and the application were charged to this trial, or held by somebody else before.
    pub pages: Pages,
    /// Whether the target held.
    pub verdict: ProbeVerdict,
    /// The missed targets, with the numbers; or the reason why the trial was discarded.
    #[serde(default)]
    pub why: Vec<String>,
    /// The numbers behind `why`, where it is about numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// The cause of failure, where it failed.
    #[serde(default)]
    pub cause: Option<FailureCause>,
    /// Classes of the JDK and the application; only with the first trial, and where they could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassesRecord>,
    /// How far the kernel reads ahead on the disk of the JDK; only with the first trial, and where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_bytes: Option<u64>,
    /// From the preparation of its file pages to the end of its subject.
    #[serde(default)]
    pub seconds: f64,
}

impl ProbeRecord {
    /// Whether the search gave this heap with this direct memory.
    pub fn gave(&self, heap: Option<u64>, direct: Option<u64>) -> bool {
        (self.heap_bytes, self.direct_bytes) == (heap, direct)
    }
}

/// Classes that rules of thumb count, whether they are loaded or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassesRecord {
    /// In the runtime image of the JDK.
    pub jdk: u64,
    /// In the jars that the subject had open, and in the folders of its class path.
    pub application: u64,
}

/// A part of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeStage {
    /// The one trial in which memory is no concern.
    Reference,
    /// For the smallest heap with which the subject becomes ready at all: a start without load.
    HeapStart,
    /// For the smallest heap.
    Heap,
    /// For the smallest limit, proofs included.
    Limit,
    /// For the smallest limit on a host where the file pages are in memory already.
    Warm,
    /// With the limit and the heap to set, under a longer load.
    Soak,
    /// For the highest rate.
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
    /// The machine disturbed the trial, which says nothing and is repeated.
    Discarded,
}

/// The first failure when memory is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The kernel killed a process of the subject.
    OomKill,
    /// The JVM ran out of a pool of its own.
    OutOfMemoryError,
    /// The JVM refused to start, or did not become ready in time.
    Start,
    /// The subject ended by itself.
    Died,
    /// The collector took the time.
    Collections,
    /// File pages were dropped and read again, over and over.
    FilePages,
    /// Times grew beyond the target, for no reason that was seen.
    Times,
    /// Fewer answers than the target asks, for no reason that was seen.
    Rate,
    /// Requests failed.
    Failures,
    /// Something else that the target names.
    Other,
}

/// Counts of the memory cgroup of a trial, at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CgroupRecord {
    /// The limit.
    pub limit_bytes: u64,
    /// The size that limits are multiples of, if that is more than a page: 1 MiB in a step of Slurm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grain_bytes: Option<u64>,
    /// The size of a page, where that is not 4 KiB: what faults and refaults are counted in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u64>,
    /// The largest charge; `null` on v2 before Linux 5.19.
    pub peak_bytes: Option<u64>,
    /// The largest anonymous part of the charge that the timeline saw, with what the kernel itself took.
    pub anon_peak_bytes: Option<u64>,
    /// File pages charged at the end of the load.
    pub file_bytes: Option<u64>,
    /// Charges that met the limit and had to reclaim first.
    pub limit_hits: u64,
    /// Faults that needed a disk.
    pub major_faults: u64,
    /// File pages that came back soon after they were dropped.
    pub file_refaults: u64,
    /// Processes killed for memory.
    pub oom_kills: u64,
    /// File pages that the subject had mapped and somebody else was charged for, at the end of the load.
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
    /// Conditions that had to hold, in their plainest form.
    pub target: Vec<String>,
    /// The unknowns that were varied.
    pub unknowns: Unknowns,
    /// The relative step at which the search stopped, such as 0.02.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub step: f64,
    /// Trials in a row that had to hold, the one by which the search chose the value among them.
    pub proofs: u32,
    /// How the search ended.
    pub outcome: FindOutcome,
    /// In one sentence, with the numbers.
    pub text: String,
    /// Index of the trial in which memory was no concern; `null` where there is none that held.
    pub reference: Option<u32>,
    /// The load line with a cold page cache; `null` where none was found.
    pub line: Option<LineRecord>,
    /// The same on a host where they are in memory already; `null` where it was not found or not searched.
    pub warm: Option<LineRecord>,
    /// The point from which more memory saves no more CPU, if that is not the line itself.
    pub knee: Option<KneeRecord>,
    /// The test of what is to be set under a longer load; `null` where there was none, or it has not ended.
    #[serde(default)]
    pub soak: Option<SoakRecord>,
    /// The safety margin added to the line, as a share such as 0.1.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub headroom: f64,
    /// The limit to set: the line with its headroom, in whole MiB; `null` where there is no line.
    pub limit_bytes: Option<u64>,
    /// The heap to set: that of the line with the same headroom, in whole MiB; `null` where the search gave none.
    #[serde(default)]
    pub heap_bytes: Option<u64>,
    /// JVM options to set with it.
    pub options: Vec<String>,
    /// JVM options that give the same heap as shares of that limit, in place of `-Xmx`; none where no heap was given.
    #[serde(default)]
    pub share_options: Vec<String>,
    /// Limits that other ways to size would have needed.
    pub others: Vec<RuleRecord>,
    /// The one limit that was to be proved, where none was searched for.
    #[serde(default)]
    pub prove_bytes: Option<u64>,
    /// The highest rate held, where that was searched.
    pub rate: Option<RateRecord>,
    /// Trials made, those that do not count included.
    pub trials: u32,
    /// From the first to the end of the last, pauses left out.
    pub seconds: f64,
}

/// The test of a limit and a heap under a load that lasts longer than that of the search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SoakRecord {
    /// The limit that held, which is the one to set; `null` where none held.
    pub limit_bytes: Option<u64>,
    /// The heap of that trial; `null` where the search gave none.
    pub heap_bytes: Option<u64>,
    /// How long the load lasted.
    pub seconds: f64,
    /// Limits that failed, in the order of trials.
    pub failed_bytes: Vec<u64>,
    /// Why the last of them failed.
    pub why: Vec<String>,
}

/// The limit to set for a line, and the heap: each with the headroom, in whole MiB, since that is what people write.
/// The limit has room for all of the heap.
pub fn to_set(line_bytes: u64, heap_bytes: Option<u64>, headroom: f64) -> (u64, Option<u64>) {
    // 10 % more than 100 MiB is 110.00000000000001 in binary, and 110 MiB is meant.
    const NEARLY: f64 = 1e-9;
    let with =
        |bytes: u64| (((bytes as f64 * (1.0 + headroom)) / MIB as f64 - NEARLY).ceil() as u64).saturating_mul(MIB);
    let heap = heap_bytes.map(with);
    let more = heap.zip(heap_bytes).map_or(0, |(set, was)| set.saturating_sub(was));
    (with(line_bytes).max(line_bytes.saturating_add(more).div_ceil(MIB).saturating_mul(MIB)), heap)
}

/// The unknowns that a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknowns {
    /// The largest heap, then the limit.
    #[default]
    HeapAndLimit,
    /// The limit, with a heap that the configuration gives.
    Limit,
    /// The limit, with a heap that the JVM chooses by it.
    AsIs,
    /// The rate, with a limit that is given.
    Rate,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindOutcome {
    /// A line was found, and the step below it failed.
    Found,
    /// The target held at the smallest limit that was to be asked.
    AtLowerBound,
    /// A line was found, and nothing that could be set held a longer load.
    Grows,
    /// The target did not hold where memory was no concern.
    NotHeld,
    /// The target held without a concern for memory, but at no limit that was to be asked.
    Never,
    /// The trials allowed were used up.
    #[default]
    GivenUp,
}

impl FindOutcome {
    /// Whether there is a line to go by, or a rate.
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
    /// The largest heap that goes with it; `null` where the configuration gave it or the JVM chose.
    pub heap_bytes: Option<u64>,
    /// The direct memory that goes with it; `null` where the JVM derives it from the heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// Trials that held at it, in a row.
    pub held: u32,
    /// How it was proved; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// With 95 % confidence a start fails no more often than this.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share_max: f64,
    /// The next smaller limit, which failed; `null` where none was asked.
    pub below_bytes: Option<u64>,
    /// The cause of failure at the next smaller limit; `null` where none was asked.
    pub cause: Option<FailureCause>,
    /// The same in words, with the numbers.
    pub cause_text: Vec<String>,
    /// How far the limits were apart at which trials held once and failed once: the width of the edge, as a share.
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

/// Which trials prove a value, and which do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofRecord {
    /// Trials that count at this value, the failed ones included.
    pub tried: u32,
    /// Trials of these by which the search chose the value: they prove nothing. 0 where the value was given.
    pub choosing: u32,
    /// Values that were put to proof one after the other, of which this is the last; at least 1.
    pub candidates: u32,
}

/// The point from which more memory saves no more CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KneeRecord {
    /// The largest heap.
    pub heap_bytes: u64,
    /// The line, with what this heap is larger. Not proved by trials at this limit.
    pub limit_bytes: u64,
    /// CPU per request there, over that at the line.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub cpu_ratio: f64,
}

/// The limit that a rule of thumb would have asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleRecord {
    /// Which rule.
    pub name: String,
    /// The limit it needs for the heap found.
    pub limit_bytes: u64,
    /// How it comes to that, with its terms.
    pub how: String,
}

/// The highest rate that a limit carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateRecord {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Trials that held at it, in a row.
    pub held: u32,
    /// How it was proved; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// With 95 % confidence a trial at it fails no more often than this; `null` in documents of earlier versions.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share_max: Option<f64>,
    /// The next higher rate, which failed; `null` where none was asked.
    pub above_per_s: Option<f64>,
    /// The cause of failure there.
    pub cause_text: Vec<String>,
}
