//! Records of JVMs that are watched: plain values, and the document of `loadline watch --once --json`.

use super::Machine;
pub use crate::growth::Verdict as GrowthWord;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Schema of the document that `loadline watch --json` prints.
pub const WATCH_SCHEMA: &str = "loadline.watch/1";
/// The most owners that a watch reports for one JVM; it reports the rest of them as one. Fifty JVMs then make a
/// thousand series, which is what a node may have.
pub const WATCH_OWNERS_MAX: usize = 20;

/// All JVMs that are watched, at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchDocument {
    /// `loadline.watch/1`.
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When, in UTC.
    pub taken: String,
    /// The command as typed.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// Milliseconds between two samples.
    pub every_ms: u64,
    /// Each JVM, by its name.
    pub jvms: Vec<WatchedJvm>,
    /// Processes that could not be looked into.
    pub hidden: u64,
    /// JVMs that are more than can be watched at once.
    pub left_out: u64,
    /// Processes that are set aside because they do not answer in time.
    pub set_aside: u64,
    /// Turns that have ended since this watch began.
    pub turns: u64,
    /// Looks for JVMs that failed since this watch began, and changed nothing.
    pub finds_failed: u64,
}

/// One JVM.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchedJvm {
    /// Its name to whoever runs it: pod and container, unit, else its main class; the same after a restart.
    pub name: String,
    /// The parts of its name, as labels of a metric.
    pub labels: Vec<WatchLabel>,
    /// Process id, as seen from here.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// `25.0.3+9`; `null` where it does not say.
    pub version: Option<String>,
    /// `G1`; `null` where it is not known.
    pub collector: Option<String>,
    /// How old it is, in seconds.
    pub age_s: f64,
    /// Its state at the last look.
    pub now: WatchSample,
    /// The limit that bounds it.
    pub limit: Option<WatchLimit>,
    /// Its growth over time.
    pub growth: GrowthRecord,
    /// The same of each thing that is judged by itself.
    pub things: Vec<ThingRecord>,
    /// Bytes that it holds by owner now, the largest first, as far as counters tell.
    pub owners: Vec<WatchOwner>,
    /// Bytes that it held by owner when it was weighed last; `null` where it was not.
    pub account: Option<WatchAccount>,
    /// How its parts came to be what they are; `null` in metrics and on the screen of several.
    pub course: Option<WatchCourse>,
    /// Parts of it that could not be read, and why.
    pub unreadable: Vec<String>,
    /// Why the last turn saw nothing of it; `null` where it did.
    pub set_aside: Option<String>,
    /// Samples taken of it since this watch began.
    pub samples: u64,
    /// Samples of which no record could be kept, as on a disk that was full for long.
    pub samples_lost: u64,
    /// Milliseconds that all samples of it took.
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

/// The state of a JVM at one moment; `null` for what could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchSample {
    /// Resident anonymous memory.
    pub rss_anon_bytes: Option<u64>,
    /// Resident pages of files.
    pub rss_file_bytes: Option<u64>,
    /// Resident pages of shared memory, of which ZGC makes its heap.
    pub rss_shmem_bytes: Option<u64>,
    /// Bytes in swap.
    pub swap_bytes: Option<u64>,
    /// Java heap in use, as of the last collection.
    pub heap_used_bytes: Option<u64>,
    /// Java heap promised.
    pub heap_committed_bytes: Option<u64>,
    /// Heap bytes that the last collection of the old generation left.
    pub heap_floor_bytes: Option<u64>,
    /// The most the heap may grow to.
    pub heap_max_bytes: Option<u64>,
    /// Metaspace promised, with the class space.
    pub metaspace_bytes: Option<u64>,
    /// Direct memory.
    pub direct_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Classes loaded.
    pub classes: Option<u64>,
    /// Charged to its cgroup.
    pub charge_bytes: Option<u64>,
    /// Part of the charge that no reclaim takes back: anonymous memory and what the kernel holds for it. Without a
    /// charge: resident anonymous and shared memory of the JVM, and its swap.
    pub unreclaimable_bytes: Option<u64>,
    /// Milliseconds of all collections so far.
    pub gc_ms: Option<u64>,
    /// Milliseconds of CPU time so far.
    pub cpu_ms: Option<u64>,
    /// Bytes allocated in the heap so far.
    pub allocated_bytes: Option<u64>,
    /// Charges that met the limit so far.
    pub at_limit: Option<u64>,
    /// Processes of the cgroup that the kernel killed so far.
    pub oom_kills: Option<u64>,
}

/// The smallest limit on the path of a JVM's cgroup, or the machine's memory where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchLimit {
    /// The most that may be charged.
    pub bytes: u64,
    /// The cgroup that has it; empty for the machine.
    pub cgroup: String,
}

/// The growth of one thing over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GrowthRecord {
    /// The word.
    pub verdict: GrowthWord,
    /// Which thing grows most, as in `things`, where one does.
    pub owner: Option<String>,
    /// Bytes an hour, where it grows or rises: the estimate and the ends of its interval (95 %).
    pub bytes_per_hour: Option<f64>,
    /// The lower end; `null` where there is only a hint.
    pub bytes_per_hour_low: Option<f64>,
    /// The upper end.
    pub bytes_per_hour_high: Option<f64>,
    /// Over how many seconds it was seen.
    pub window_s: Option<f64>,
    /// Seconds to the limit: not before, with 95 % confidence; of a hint at this pace.
    pub limit_in_s: Option<f64>,
    /// Not after; `null` where the slope may be nothing, or there is only a hint.
    pub limit_in_s_latest: Option<f64>,
    /// Why nothing can be told; empty otherwise.
    pub unsure: String,
    /// Whether nearly all is used and the rest is gone within the hour at the pace of the last minutes.
    pub near_limit: bool,
}

/// One thing that is judged by itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThingRecord {
    /// `memory`, `heap`, `metaspace`, `direct`, `threads`, `rest`.
    pub name: String,
    /// Bytes that it held at the last look.
    pub bytes: u64,
    /// Its bound.
    pub limit_bytes: u64,
    /// Its growth over time.
    pub growth: GrowthRecord,
}

/// Bytes that an owner holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchOwner {
    /// Its name, as in `docs/memory.md`.
    pub name: String,
    /// Resident bytes.
    pub bytes: u64,
}

/// The result of weighing a JVM that is watched.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchAccount {
    /// How old the JVM was then, in seconds.
    pub at_age_s: f64,
    /// How long ago that was, in seconds.
    pub age_s: f64,
    /// Resident memory then.
    pub total_bytes: u64,
    /// At most 20 owners, the largest first; all others are the last one, `other`.
    pub owners: Vec<WatchOwner>,
    /// Categories of its Native Memory Tracking with what they had committed, as many, where it was asked and tracks.
    pub nmt: Vec<WatchOwner>,
    /// Whether the JVM was asked for it (`--attach once`).
    pub asked: bool,
    /// The whole account.
    pub file: String,
}

/// How the parts of a JVM came to be what they are, from its history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchCourse {
    /// How old the JVM was at the beginning of `values`, in seconds.
    pub from_age_s: f64,
    /// How long each of `values` is, in seconds.
    pub step_s: f64,
    /// Each part.
    pub parts: Vec<WatchPart>,
    /// The limit of each stretch.
    pub limit_bytes: Vec<Option<u64>>,
}

/// One part of a JVM's memory over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchPart {
    /// `memory`, `heap`, `heap_floor`, `metaspace`, `direct`, `threads`, `rest`, `files`.
    pub name: String,
    /// Bytes that it held at the last look.
    pub bytes: Option<u64>,
    /// Its bound, if it has one of its own.
    pub bound_bytes: Option<u64>,
    /// How it changed, for each time that its history reaches back.
    pub changes: Vec<WatchChange>,
    /// Bytes that it held, stretch by stretch; `null` where nothing was seen.
    pub values: Vec<Option<u64>>,
}

/// Something that happened to a JVM that is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// Its name.
    pub name: String,
    /// The event.
    pub what: Happened,
}

/// How often lives of one name ended since the watch began, or in the hour before where none lives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchEnds {
    /// The name.
    pub name: String,
    /// Killed by the kernel for want of memory.
    pub killed: u64,
    /// In any other way.
    pub other: u64,
}

/// An event of a JVM.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// It is watched from now on, under this pid.
    Appeared(u32),
    /// The process of this pid has gone.
    Ended(u32),
    /// The kernel killed the process of this pid for want of memory.
    Killed(u32),
    /// The verdict on its growth over time changed.
    Verdict(GrowthRecord),
    /// It grew, and does so no more.
    GrowsNoMore(GrowthRecord),
    /// It began to rise.
    Rises(GrowthRecord),
    /// Its limit is near, and reached within the hour at this pace.
    NearLimit {
        /// The headroom left, in bytes.
        headroom_bytes: u64,
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// It was weighed into this file.
    Weighed(WhyWeighed, PathBuf),
    /// Something could not be done; told once.
    Failed(String),
}

/// Why a JVM that is watched was weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyWeighed {
    /// It reached this share of its limit.
    AtPercent(u64),
    /// It grows.
    Growth,
    /// It was time, as asked.
    Time,
    /// It was seen for the first time and asked, as asked for.
    FirstSight,
}

/// Schema of the document that `loadline watch --post-mortem --json` prints.
pub const POST_MORTEM_SCHEMA: &str = "loadline.post_mortem/1";

/// Facts known of a life that ended.
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
    /// Process id that it had.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// The main class or archive that it ran, with its arguments.
    pub ran: String,
    /// `25.0.3+9`; `null` where it did not say.
    pub version: Option<String>,
    /// `G1`; `null` where it is not known.
    pub collector: Option<String>,
    /// How old it was at its last sample, in seconds.
    pub age_s: f64,
    /// Whether its end was seen.
    pub end: EndKind,
    /// The cgroup whose limit killed it; empty for the machine, `null` where that is not known.
    pub killed_by: Option<String>,
    /// The source that reports the kill: `kernel log` or `memory events`; empty where it was not killed.
    pub source: String,
    /// Its state at the last sample.
    pub last: WatchSample,
    /// The same by owner, as far as counters tell.
    pub owners: Vec<WatchOwner>,
    /// The limit that bounded it.
    pub limit_bytes: u64,
    /// Its growth over time, at its end.
    pub growth: GrowthRecord,
    /// Changes of its parts over the last ten minutes, hour and day, and since it was first seen where that is less.
    pub changes: Vec<WatchChange>,
    /// The size that its parts might have grown to, in bytes; `null` where nothing bounds the heap. Metaspace without a
    /// bound counts as it last was.
    pub ceilings_bytes: Option<u64>,
    /// Why it met its limit.
    pub cause: DeathCause,
    /// Memory that it would have needed to live on, in bytes: 1.1 times the most it held, or its ceilings where they
    /// are the cause; `null` where it grew without bound.
    pub needed_bytes: Option<u64>,
    /// Accounts that were taken of it.
    pub accounts: Vec<String>,
    /// How old it was at each of them, in seconds.
    pub weighed_at_s: Vec<f64>,
    /// The last of them by owner; its age counts from the last sample.
    pub account: Option<WatchAccount>,
    /// How its owners changed from the first of them to the last, where there are two.
    pub by_account: Vec<WatchChange>,
    /// Anonymous memory at the kill, by the kernel's log.
    pub killed_anon_bytes: Option<u64>,
    /// How its parts came to be what they were.
    pub course: WatchCourse,
    /// The part that grew most over the longest time known, where it grew by a tenth of the limit.
    pub grew: Option<WatchChange>,
    /// Records of its history that were cut or spoilt.
    pub spoilt: u64,
}

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// Nobody saw it: it lives, or the watch ended before.
    #[default]
    Unseen,
    /// It ended, and not for want of memory.
    Ended,
    /// The kernel killed it for want of memory.
    Killed,
}

/// The cause that brought a life to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeathCause {
    /// It was not near its limit.
    #[default]
    None,
    /// Something grew without bound.
    Leak,
    /// Nothing leaked: what the JVM may take, by its own settings, is more than the limit.
    Ceilings,
    /// Memory grew that no setting of the JVM bounds, mostly malloc's; seen too briefly to tell a leak from a burst.
    Native,
    /// It was near its limit, and why cannot be told.
    Unknown,
}

/// A change over a time before the end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchChange {
    /// Over how many seconds.
    pub over_s: u64,
    /// As in [`WatchPart`].
    pub name: String,
    /// Bytes then and at the end.
    pub before_bytes: u64,
    /// At the end.
    pub after_bytes: u64,
}
