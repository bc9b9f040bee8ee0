//! Records of watched JVMs, and the document of `loadline watch --once --json`.

use super::Machine;
pub use crate::growth::Verdict as GrowthWord;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Schema of the output of `loadline watch --json`.
pub const WATCH_SCHEMA: &str = "loadline.watch/1";
/// Maximum owners reported per JVM; the rest are combined. Fifty JVMs then have a thousand series, a reasonable number
/// per node.
pub const WATCH_OWNERS_MAX: usize = 20;

/// All watched JVMs, at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchDocument {
    /// `loadline.watch/1`.
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When it was taken, in UTC.
    pub taken: String,
    /// The command as typed.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// Milliseconds between two samples.
    pub every_ms: u64,
    /// The JVMs, by name.
    pub jvms: Vec<WatchedJvm>,
    /// Processes that could not be inspected.
    pub hidden: u64,
    /// JVMs beyond the number that can be watched at once.
    pub left_out: u64,
    /// Processes that are set aside because they do not respond in time.
    pub set_aside: u64,
    /// Sampling rounds completed since this watch began.
    pub turns: u64,
    /// Scans for JVMs that failed since this watch began; a failed scan changes nothing.
    pub finds_failed: u64,
}

/// One JVM.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchedJvm {
    /// Its operational name: pod and container, unit, or else its main class; the same after a restart.
    pub name: String,
    /// The parts of its name, as labels of a metric.
    pub labels: Vec<WatchLabel>,
    /// Process ID, as seen by Loadline.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// Its version, such as `25.0.3+9`; `null` if it does not report one.
    pub version: Option<String>,
    /// Its collector, such as `G1`; `null` if unknown.
    pub collector: Option<String>,
    /// Its age in seconds.
    pub age_s: f64,
    /// Its state at the last sample.
    pub now: WatchSample,
    /// The limit that bounds it.
    pub limit: Option<WatchLimit>,
    /// The charge of its cgroup by holder; `null` if no limit bounds the cgroup.
    pub charge: Option<WatchCharge>,
    /// Its growth over time.
    pub growth: GrowthRecord,
    /// Growth of each quantity that is judged separately.
    pub things: Vec<ThingRecord>,
    /// Its current memory by owner, largest first, if counters show it.
    pub owners: Vec<WatchOwner>,
    /// Its memory by owner when it was last weighed; `null` if it was never weighed.
    pub account: Option<WatchAccount>,
    /// The development of its parts over time; `null` in metrics and on the screen of several JVMs.
    pub course: Option<WatchCourse>,
    /// Parts of it that could not be read, and why.
    pub unreadable: Vec<String>,
    /// Why the last round got no data from it; `null` if it got some.
    pub set_aside: Option<String>,
    /// Number of its samples since this watch began.
    pub samples: u64,
    /// Samples that could not be recorded, for example because the disk stayed full.
    pub samples_lost: u64,
    /// Total time spent sampling it.
    pub sampling_ms: f64,
}

/// A label and its value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchLabel {
    /// `namespace`, `pod`, `container`, `container_id`, `unit`, `main`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The state of a JVM at one moment; a value is `null` if it could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchSample {
    /// Resident anonymous memory.
    pub rss_anon_bytes: Option<u64>,
    /// Resident pages of files.
    pub rss_file_bytes: Option<u64>,
    /// Resident pages of shared memory, which ZGC uses for its heap.
    pub rss_shmem_bytes: Option<u64>,
    /// Bytes in swap.
    pub swap_bytes: Option<u64>,
    /// Java heap in use, as of the last GC.
    pub heap_used_bytes: Option<u64>,
    /// Committed Java heap.
    pub heap_committed_bytes: Option<u64>,
    /// Heap bytes left by the last old GC.
    pub heap_floor_bytes: Option<u64>,
    /// Maximum heap size.
    pub heap_max_bytes: Option<u64>,
    /// Committed metaspace, including the class space.
    pub metaspace_bytes: Option<u64>,
    /// Direct memory.
    pub direct_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Classes loaded.
    pub classes: Option<u64>,
    /// Memory charged to its cgroup.
    pub charge_bytes: Option<u64>,
    /// Part of the charge that cannot be reclaimed: anonymous and kernel memory. Without a charge: resident anonymous
    /// and shared memory of the JVM, and its swap.
    pub unreclaimable_bytes: Option<u64>,
    /// Milliseconds spent in GC so far.
    pub gc_ms: Option<u64>,
    /// Milliseconds of CPU time so far.
    pub cpu_ms: Option<u64>,
    /// Bytes allocated in the heap so far.
    pub allocated_bytes: Option<u64>,
    /// Charges that hit the limit so far.
    pub at_limit: Option<u64>,
    /// Processes of the cgroup that the kernel killed so far.
    pub oom_kills: Option<u64>,
}

/// Smallest limit of a JVM's cgroup and its ancestors, or the machine's memory if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchLimit {
    /// The maximum that may be charged.
    pub bytes: u64,
    /// The cgroup that sets it; empty for the machine.
    pub cgroup: String,
}

/// The charge of a JVM's cgroup at one moment, by holder. The kernel compares this charge with the limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchCharge {
    /// The whole charge.
    pub bytes: u64,
    /// The charge without inactive page cache: the `working_set` of Kubernetes.
    pub working_set_bytes: u64,
    /// Part of the charge that cannot be reclaimed.
    pub unreclaimable_bytes: u64,
    /// Anonymous and shared memory of the JVM.
    pub jvm_bytes: u64,
    /// Anonymous memory of all other processes; pages that several share count once for each.
    pub others_bytes: u64,
    /// The other processes by command, at most five, largest first.
    pub others: Vec<WatchProcesses>,
}

impl WatchCharge {
    /// The unreclaimable part that no process holds: memory-backed files, and kernel memory.
    pub fn rest_bytes(&self) -> u64 {
        self.unreclaimable_bytes.saturating_sub(self.jvm_bytes).saturating_sub(self.others_bytes)
    }
}

/// Processes of one command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchProcesses {
    /// The beginning of the command.
    pub command: String,
    /// Number of these processes.
    pub processes: u64,
    /// Their anonymous memory.
    pub bytes: u64,
}

/// The growth of one quantity over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GrowthRecord {
    /// The verdict.
    pub verdict: GrowthWord,
    /// The quantity that grows most, as in `things`, if any grows.
    pub owner: Option<String>,
    /// Estimated growth in bytes per hour, if it grows or rises.
    pub bytes_per_hour: Option<f64>,
    /// Lower end of its 95% confidence interval, in bytes per hour; `null` if there is only a hint.
    pub bytes_per_hour_low: Option<f64>,
    /// Upper end of the interval, in bytes per hour.
    pub bytes_per_hour_high: Option<f64>,
    /// Seconds over which the growth was observed.
    pub window_s: Option<f64>,
    /// Earliest time to the limit, in seconds, with 95% confidence; for a hint, the time at this pace.
    pub limit_in_s: Option<f64>,
    /// Latest time to the limit, in seconds; `null` if the slope may be zero, or there is only a hint.
    pub limit_in_s_latest: Option<f64>,
    /// Why there is no clear verdict, and what is needed for one; empty otherwise.
    pub unsure: String,
    /// Whether less than a tenth of the limit is left and will run out within an hour at the pace of the last 15
    /// minutes.
    pub near_limit: bool,
}

impl GrowthRecord {
    /// Whether it is too early or too unclear for a verdict.
    pub fn is_open(&self) -> bool {
        let youth = self.verdict == GrowthWord::Warming && self.bytes_per_hour.is_none();
        self.verdict == GrowthWord::CannotTell || youth
    }
}

/// One quantity that is judged separately.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThingRecord {
    /// `memory`, `heap`, `metaspace`, `direct`, `threads`, `rest`.
    pub name: String,
    /// Size at the last sample.
    pub bytes: u64,
    /// Its bound.
    pub limit_bytes: u64,
    /// Its growth over time.
    pub growth: GrowthRecord,
}

/// Memory of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchOwner {
    /// Its name, as in `docs/memory.md`.
    pub name: String,
    /// Resident bytes.
    pub bytes: u64,
}

/// The result of weighing a watched JVM.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchAccount {
    /// Age of the JVM then, in seconds.
    pub at_age_s: f64,
    /// Time since then, in seconds.
    pub age_s: f64,
    /// Resident memory then.
    pub total_bytes: u64,
    /// At most 20 owners, largest first; the last one, `other`, is the sum of the rest.
    pub owners: Vec<WatchOwner>,
    /// Committed bytes of its Native Memory Tracking categories, at most 20 as well; only if the JVM was queried and
    /// NMT is on.
    pub nmt: Vec<WatchOwner>,
    /// Whether the JVM was queried for it (`--attach once`).
    pub asked: bool,
    /// File with the complete account.
    pub file: String,
}

/// The development of the parts of a JVM over time, from its history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchCourse {
    /// Age of the JVM at the beginning of `values`, in seconds.
    pub from_age_s: f64,
    /// Duration of each of `values`, in seconds.
    pub step_s: f64,
    /// The parts.
    pub parts: Vec<WatchPart>,
    /// The limit in each stretch.
    pub limit_bytes: Vec<Option<u64>>,
}

/// One part of a JVM's memory over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchPart {
    /// `memory`, `java_heap`, `heap` (left by old GCs), `metaspace`, `direct`, `threads`, `rest`, `files`.
    pub name: String,
    /// Size at the last sample.
    pub bytes: Option<u64>,
    /// Its own bound, if it has one.
    pub bound_bytes: Option<u64>,
    /// Its changes, for each time span that its history covers.
    pub changes: Vec<WatchChange>,
    /// Its maximum size in each stretch; `null` if nothing was observed.
    pub values: Vec<Option<u64>>,
}

/// An event of a watched JVM.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// Its name.
    pub name: String,
    /// The event.
    pub what: Happened,
}

/// The number of JVMs with one name that exited since the watch began; a name without a live JVM is dropped after an
/// hour.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchEnds {
    /// The name.
    pub name: String,
    /// OOM kills.
    pub killed: u64,
    /// Other ends.
    pub other: u64,
}

/// An event of a JVM.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// The process with this pid is now watched.
    Appeared(u32),
    /// The process with this pid exited.
    Ended(u32),
    /// The process with this pid was OOM-killed.
    Killed(u32),
    /// Its growth verdict changed.
    Verdict(GrowthRecord),
    /// It stopped growing.
    GrowsNoMore(GrowthRecord),
    /// It began to rise.
    Rises(GrowthRecord),
    /// Its limit is near, and will be reached within the hour at this pace.
    NearLimit {
        /// The remaining headroom, in bytes.
        headroom_bytes: u64,
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// Its account was written to this file.
    Weighed(WhyWeighed, PathBuf),
    /// An operation failed; reported once.
    Failed(String),
}

/// Why a watched JVM's account was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyWeighed {
    /// It reached this share of its limit.
    AtPercent(u64),
    /// It grows.
    Growth,
    /// It was due on schedule.
    Time,
    /// It was first seen, and attaching was requested.
    FirstSight,
}

/// Schema of the output of `loadline watch --post-mortem --json`.
pub const POST_MORTEM_SCHEMA: &str = "loadline.post_mortem/1";

/// Facts about a JVM that ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PostMortem {
    /// `loadline.post_mortem/1`.
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// The command as typed.
    pub command: String,
    /// Its name.
    pub name: String,
    /// Its process ID.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// The main class or archive that it ran, with its arguments.
    pub ran: String,
    /// Its version, such as `25.0.3+9`; `null` if it did not report one.
    pub version: Option<String>,
    /// Its collector, such as `G1`; `null` if unknown.
    pub collector: Option<String>,
    /// Its age at its last sample, in seconds.
    pub age_s: f64,
    /// How it ended.
    pub end: EndKind,
    /// The cgroup whose limit killed it; empty for the machine, `null` if unknown.
    pub killed_by: Option<String>,
    /// The source that reports the kill: `kernel log` or `memory events`; empty if it was not killed.
    pub source: String,
    /// Its state at the last sample.
    pub last: WatchSample,
    /// Its bytes by owner at the last sample, as far as counters show.
    pub owners: Vec<WatchOwner>,
    /// The charge of its cgroup by holder at the last sample; `null` if no limit bounded it, or its end was not
    /// observed.
    pub charge: Option<WatchCharge>,
    /// The limit that bounded it.
    pub limit_bytes: u64,
    /// Its growth over time, at its end.
    pub growth: GrowthRecord,
    /// Changes of its parts over the last ten minutes, hour, and day, and since it was first seen if that is less.
    pub changes: Vec<WatchChange>,
    /// The size that its parts could have grown to, in bytes; `null` if nothing bounds the heap. Metaspace without a
    /// bound counts at its last size.
    pub ceilings_bytes: Option<u64>,
    /// Why it reached its limit.
    pub cause: DeathCause,
    /// Memory that it would have needed to survive, in bytes: 1.1 times its maximum, or its ceilings if they are the
    /// cause; `null` if it grew without bound.
    pub needed_bytes: Option<u64>,
    /// Files with its accounts.
    pub accounts: Vec<String>,
    /// Its age at each of them, in seconds.
    pub weighed_at_s: Vec<f64>,
    /// The last account by owner; its age counts from the last sample.
    pub account: Option<WatchAccount>,
    /// Changes of its owners from the first account to the last, if there are two.
    pub by_account: Vec<WatchChange>,
    /// Anonymous memory at the kill, from the kernel log.
    pub killed_anon_bytes: Option<u64>,
    /// The development of its parts over time.
    pub course: WatchCourse,
    /// The part that grew most over the longest time known, if it grew by at least a tenth of the limit.
    pub grew: Option<WatchChange>,
    /// Truncated or corrupt records of its history.
    pub spoilt: u64,
}

/// How a JVM ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// Its exit was not observed: it is still running, or the watch ended first.
    #[default]
    Unseen,
    /// It exited, but not because of memory.
    Ended,
    /// The OOM killer killed it.
    Killed,
}

/// Why a JVM reached its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeathCause {
    /// It was not near its limit.
    #[default]
    None,
    /// Something grew without bound.
    Leak,
    /// Other processes of its cgroup held more than the JVM.
    OtherProcesses,
    /// Nothing leaked: the JVM's own settings allow more memory than the limit.
    Ceilings,
    /// The memory that grew is not limited by any JVM setting and is mostly malloc's; it was observed too briefly to
    /// tell a leak from a burst.
    Native,
    /// It was near its limit, for an unknown reason.
    Unknown,
}

/// A change over a time span before the end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchChange {
    /// Length of the time span, in seconds.
    pub over_s: u64,
    /// Name of the part, as in [`WatchPart`], or of the owner in `by_account`.
    pub name: String,
    /// Bytes at the start of the time span.
    pub before_bytes: u64,
    /// Bytes at its end.
    pub after_bytes: u64,
}
