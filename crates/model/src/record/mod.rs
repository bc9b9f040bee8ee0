//! Records of a trial, as plain values: the shapes of the result document and of the archive. Everything that reports,
//! comparisons and findings know about a trial. Fields may be added, never renamed.

mod account;
mod accounts;
mod advice;
mod charge;
mod circumstances;
mod classes;
mod comparison;
mod evidence;
mod explanation;
mod figure;
mod find;
mod finding;
mod flags;
mod fleet;
mod history;
mod load;
mod objects;
mod oom;
mod over;
mod phase;
mod pool_names;
mod threads;
mod tune;
mod watch;

pub use account::*;
pub use accounts::*;
pub use advice::*;
pub use charge::*;
pub use circumstances::*;
pub use classes::*;
pub use comparison::*;
pub use evidence::*;
pub use explanation::*;
pub use figure::*;
pub use find::*;
pub use finding::*;
pub use flags::*;
pub use fleet::*;
pub use history::*;
pub use load::*;
pub use objects::*;
pub use oom::*;
pub use over::*;
pub use phase::*;
pub use pool_names::*;
pub use threads::*;
pub use tune::*;
pub use watch::*;

pub use crate::scenario::Model;

pub use crate::observe::charged::{ChargeKind, ChargeRow, SlabRecord};
pub use crate::observe::code_heaps::CodeHeapRecord;
pub use crate::observe::hotspot::direct::DirectRecord;
pub use crate::observe::hotspot::heap::HumongousRecord;
pub use crate::observe::hotspot::netty_pools::NettyChunksRecord;
pub use crate::observe::hotspot::statics::StaticCollectionRecord;
pub use crate::observe::hotspot::thread_buffers::ThreadBuffersRecord;
pub use crate::observe::hotspot::thread_values::ThreadValuesRecord;
pub use crate::observe::memory_files::MemoryFilesRecord;
pub use crate::observe::netty::{
    AgentCost, JdkDirect, NettyAllocated, NettyAllocations, NettyAllocator, NettyArena, NettyCache, NettyCacheKind,
    NettyChunk, NettyKind, NettyLibrary, NettyList, NettyMemory, NettyPools,
};
pub use crate::observe::open_files::{CachedFileRecord, DiskFileRecord};

use crate::doubt::Doubt;
use crate::scenario::{Gc, MarkPoint};
use crate::units::Millicpus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a subject ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The subject ended when asked to.
    AsAsked,
    /// The subject was killed because it did not end within its time.
    KilledAfterTerm,
    /// The subject had ended before it was asked.
    ByItself,
    /// The kernel killed a process of the subject because its cgroup was full.
    OomKill,
    /// The subject ended by itself after a `java.lang.OutOfMemoryError`.
    OutOfMemoryError,
    /// The guardian was killed, and the subject with it.
    GuardianLost,
}

/// Schema of the result document (`--json`).
pub const RESULT_SCHEMA: &str = "loadline.result/2";

/// The result document: what `--json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// The type of this document and the version of its format.
    #[cfg_attr(test, schemars(extend("const" = RESULT_SCHEMA)))]
    pub schema: String,
    /// Conditions of every trial; if archives are compared, of the trials of the first archive.
    pub conditions: Conditions,
    /// The compared archives, baseline first, or the archives of the nodes that ran blocks of one comparison. Empty if
    /// all trials come from one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveRecord>,
    /// The trials, in the order they ran.
    pub trials: Vec<Trial>,
    /// Every metric of every configuration, in the order of configurations.
    #[serde(default)]
    pub metrics: Vec<MetricRecord>,
    /// The blocks and what disturbed them; empty if there is only one configuration and one trial.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
    /// Each candidate against the baseline; empty with fewer than two configurations.
    pub comparisons: Vec<ComparisonRecord>,
    /// Weight against speed; empty with fewer than two configurations.
    #[serde(default)]
    pub pareto: Vec<ParetoRecord>,
    /// Reasons to distrust the comparisons.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
    /// The result of a search for the load line; `null` unless there was one.
    #[serde(default)]
    pub find: Option<FindRecord>,
    /// The results of searches at each value of one setting; absent unless there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverRecord>,
    /// The result of tuning; absent unless there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune: Option<TuneRecord>,
    /// Diagnoses with their evidence; empty if there are none.
    pub findings: Vec<FindingRecord>,
    /// Causes that were considered, with the evidence against them.
    #[serde(default)]
    pub ruled_out: Vec<RuledOutRecord>,
    /// Budgets with their verdicts; empty if none were given.
    pub budgets: Vec<BudgetRecord>,
}

impl Document {
    /// Names of the configurations in the order of the metrics or, without metrics, of the trials.
    pub fn configurations(&self) -> Vec<&str> {
        let of_metrics = self.metrics.iter().map(|metric| metric.configuration.as_str());
        each_once(of_metrics.chain(self.trials.iter().map(|trial| trial.configuration.as_str())))
    }
}

/// Each thing once, in the order of its first occurrence.
pub fn each_once<T: PartialEq>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for thing in things {
        if !found.contains(&thing) {
            found.push(thing);
        }
    }
    found
}

/// Conditions that held for every trial of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Version of Loadline.
    pub loadline: String,
    /// Name of the scenario.
    pub scenario: String,
    /// When the run began: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: String,
    /// The machine and how busy it was before the first trial.
    pub machine: Machine,
    /// Seed of all random draws.
    pub seed: u64,
    /// The command that repeats the run.
    pub command: String,
    /// The load plan in words, one line for each phase.
    pub load: Vec<String>,
    /// Optional configurations that could not run here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutRecord>,
    /// The commit and the build of the subject that was weighed; absent if neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRecord>,
}

/// The commit and the build of the subject that was weighed. Loadline does not check for files changed since the
/// commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceRecord {
    /// The commit; `null` if unknown.
    pub commit: Option<String>,
    /// The source of the commit: `--commit`, `git` for the HEAD of the working folder, or the name of a CI variable.
    pub commit_from: Option<String>,
    /// The build; `null` if unknown.
    pub build: Option<String>,
    /// The source of the build: `--build`, or the name of a CI variable.
    pub build_from: Option<String>,
}

/// One of several archives in a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArchiveRecord {
    /// The name that its configurations are named after; if nodes ran blocks of one comparison, the node's entry.
    pub name: String,
    /// Index of its first trial in the result. Its trials run up to the first trial of the next archive.
    pub index_from: u32,
    /// Conditions that held for each of its trials.
    pub conditions: Conditions,
}

/// A configuration that was not run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutRecord {
    /// Its name.
    pub configuration: String,
    /// The requirement that is not met here.
    pub why: String,
}

/// The machine and how busy it was before the first trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// CPUs online.
    pub cores: u32,
    /// Model of the first CPU, as the kernel reports it; absent if it reports none, and in older archives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// The cgroup version that has the memory controller: `v1`, `v2` or `none`.
    #[cfg_attr(test, schemars(extend("enum" = ["v1", "v2", "none"])))]
    pub cgroup: String,
    /// Load average over the last minute when the run began.
    pub load_average_1m: Option<f64>,
    /// `always`, `madvise` or `never`.
    #[cfg_attr(test, schemars(extend("enum" = ["always", "madvise", "never", null])))]
    pub transparent_huge_pages: Option<String>,
    /// Swap in use on the machine.
    pub swap_used_bytes: Option<u64>,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All phases and marks were done.
    Completed,
    /// The subject did not start, died or answered wrongly.
    SubjectFailed,
    /// The subject was killed for memory.
    Killed,
    /// Loadline was interrupted or could not go on.
    #[default]
    Aborted,
}

/// One fresh JVM from start to end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trial {
    /// Name of the configuration.
    pub configuration: String,
    /// Index of the repetition of all configurations, from 0.
    pub block: u32,
    /// Position in the run, from 0.
    pub index: u32,
    /// The block that this trial's block repeats because the machine disturbed it; absent if it repeats none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not complete; `null` if it did.
    pub why: Option<String>,
    /// The missed number that made further running pointless, if the trial was stopped early for that reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopeless: Option<Missed>,
    /// The phase that failed or was interrupted; absent if there was none. The marks after it show how it left the
    /// subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<FailedIn>,
    /// The command as started.
    pub command: Vec<String>,
    /// The container image it ran in; absent if it ran in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRecord>,
    /// SHA-256 over the contents of the files that its plan names, as they were before the first trial: code, scripts,
    /// bodies, schedules, certificates. Neither the JDK nor an image is hashed. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Environment variables that the configuration adds; `null` if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Facts about the JVM; `null` if none were found.
    pub jvm: Option<Jvm>,
    /// The memory limit, if one was set.
    pub limit_bytes: Option<u64>,
    /// The CPU limit in thousandths of a CPU; absent if none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millicpus: Option<u64>,
    /// CPUs that the subject is pinned to; `null` if it is not pinned.
    pub subject_cpus: Option<Vec<u32>>,
    /// CPUs that Loadline is pinned to; `null` if it is not pinned.
    pub load_cpus: Option<Vec<u32>>,
    /// Seconds from the start of the command to the first sign of readiness.
    pub ready_s: Option<f64>,
    /// Weighings, in time order.
    pub marks: Vec<Mark>,
    /// Stretches of load and rest, in time order.
    pub phases: Vec<PhaseRecord>,
    /// Figures that the scenario derives from the marks; recomputed for every document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRecord>,
    /// Counters of its memory cgroup, if it had its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupRecord>,
    /// Its purpose in a search for the load line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeRecord>,
    /// Its purpose in a tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<TuneTrialRecord>,
    /// Absolute paths of files that the subject had mapped or open; only in a search for the load line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Live heap objects of the serving process after all measurements, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsRecord>,
    /// The heap dump, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<HeapDumpRecord>,
    /// The code that holds the memory, if that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationRecord>,
    /// JIT compilations during which RSS grew, largest growth first; absent if there were none or they could not be
    /// observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compilations: Vec<CompilationRecord>,
    /// Highest RSS seen: the kernel's high-water mark (VmHWM) at the last weighing, or a later sample above it.
    pub rss_bytes_peak: Option<u64>,
    /// How the subject ended; `null` if it was never started.
    pub end: Option<End>,
    /// The cost that weighing itself puts on the subject.
    pub observer: Observer,
    /// Reasons to distrust its numbers.
    pub doubts: Vec<DoubtRecord>,
    /// The folder of the timeline, histograms and log, relative to the archive.
    pub folder: Option<String>,
}

/// A phase that failed or was interrupted. The trial's `why` gives the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailedIn {
    /// Its name.
    pub phase: String,
    /// The last lines that the subject had printed by then, oldest first.
    pub last_lines: Vec<String>,
}

/// Facts found about the JVM.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Jvm {
    /// Process id, in Loadline's pid namespace.
    pub pid: u32,
    /// Version as the JVM reports it, e.g. `17.0.15+6-Debian-1deb12u1`.
    pub version: Option<String>,
    /// Name and vendor, e.g. `OpenJDK 64-Bit Server VM`.
    pub name: Option<String>,
    /// The executable.
    pub java: Option<String>,
    /// Its main class or archive by its own counters, however it was started: `app.jar`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The collector in force: Serial, G1, Parallel, Z, Shenandoah, Epsilon or CMS.
    pub collector: Option<String>,
    /// Options that the configuration sets.
    pub options: Vec<String>,
    /// How they reached the JVM: `none_needed`, `command_line`, `placeholder`, or the name of an environment variable
    /// such as `JDK_JAVA_OPTIONS`.
    pub options_through: String,
    /// Flags in force that differ from their defaults, in `-XX:` form. `null` if they could not be read from outside
    /// and the JVM was not, or could not be, asked.
    pub flags: Option<Vec<String>>,
    /// The same flags with their origins, plus the flags at their default that findings and remedies use. Absent if
    /// they could not be read from outside, and in an account, whose `flags` has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags_kept: Option<FlagsRecord>,
    /// The C allocator.
    pub allocator: Option<String>,
}

impl Jvm {
    /// The release, as numbers: 17, 0, 15 of `17.0.15+6`; 8, 0, 372 of `25.372-b07`, which is JDK 8.
    pub fn release(&self) -> Option<[u64; 3]> {
        let version = self.version.as_deref()?;
        let mut numbers = version.split(['.', '+', '-', '_']).map_while(|part| part.parse().ok());
        let [first, second, third] = [(); 3].map(|()| numbers.next().unwrap_or(0));
        let is_8 = first == 25 && version.split(['+', '-']).nth(1).is_some_and(|build| build.starts_with('b'));
        (first > 0).then_some(if is_8 { [8, 0, second] } else { [first, second, third] })
    }
}

/// A weighing at a moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mark {
    /// `start`, `warm`, `loaded`, `rested`, `collected`, `trimmed` or a phase marker; `now` in `loadline account`.
    pub name: String,
    /// Seconds since the command was started.
    pub at_s: f64,
    /// Resident memory, with shared pages in full.
    pub rss_bytes: u64,
    /// Resident memory, with shared pages divided among sharers.
    pub pss_bytes: Option<u64>,
    /// Anonymous part of RSS.
    pub anon_bytes: Option<u64>,
    /// File-backed part of RSS, including shared memory.
    pub file_bytes: Option<u64>,
    /// Bytes charged to the subject's memory cgroup; only if it has its own cgroup.
    pub charge_bytes: Option<u64>,
    /// The charge by kind; `null` if it was not read. A shared cgroup is charged for all its processes.
    #[serde(default)]
    pub charge: Option<ChargeRecord>,
    /// Swapped-out memory.
    pub swap_bytes: Option<u64>,
    /// Threads, as counted by the kernel.
    pub threads: Option<u64>,
    /// The Java heap.
    pub heap: Heap,
    /// Native Memory Tracking, if it is on.
    pub nmt: Option<NmtRecord>,
    /// The owners of the resident pages; `null` if they could not be determined.
    pub account: Option<AccountRecord>,
    /// Direct memory, as the JDK and Netty count it; `null` if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectRecord>,
    /// How long the weighing took.
    pub took_ms: f64,
    /// Counts of loaded classes; absent if the JVM's counters cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassCounts>,
    /// Their class loaders; absent if the JVM was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaders: Option<LoadersRecord>,
    /// The code cache by segment; absent if the JVM was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeHeapRecord>,
    /// Threads by pool, the largest stacks first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<ThreadPoolRecord>,
    /// Netty's buffer pools, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty: Option<NettyPools>,
    /// Numbers that the subject reported with this phase marker, such as the number of its instances.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// Memory that the JVM causes outside its RSS; absent if none was found or looked for.
    #[serde(default, skip_serializing_if = "BesideRecord::is_empty")]
    pub beside: BesideRecord,
    /// Direct memory that the JDK keeps for each thread; absent if there is none or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_buffers: Option<ThreadBuffersRecord>,
    /// Chunks of Netty's pools, read from outside; absent if there are none or direct memory is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty_chunks: Option<NettyChunksRecord>,
    /// The largest Java collections that static fields refer to; only after a full collection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_collections: Vec<StaticCollectionRecord>,
    /// Heap that thread-local variables hold, after a full collection; absent if none holds much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_values: Option<ThreadValuesRecord>,
    /// The classes that make up most of the live heap, and those that reveal a cause; absent if little is live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_classes: Vec<LiveClassRecord>,
    /// The processes that form the subject, if all of them are weighed; the serving one comes first. All other figures
    /// are sums over them: `rss_bytes` counts a page that n processes share n times, `pss_bytes` once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessRecord>,
}

impl Mark {
    /// All memory known to be direct memory. The JDK counts the buffers that it keeps for threads up to about JDK 23.
    /// Later JDKs take them from malloc directly (`sun.nio.ch.Util`, JDK 25), and no counter has them.
    pub fn direct_bytes(&self) -> u64 {
        let counted = self.direct.unwrap_or_default();
        let kept = self.thread_buffers.map_or(0, |buffers| buffers.bytes);
        counted.bytes().saturating_add(if kept > counted.reserved_bytes { kept } else { 0 })
    }

    /// Returns the weight of the subject with its name: RSS, or PSS if several processes form it. Their summed RSS
    /// counts a shared page once per process.
    pub fn weight(&self) -> (&'static str, u64) {
        match self.pss_bytes.filter(|_| !self.processes.is_empty()) {
            Some(pss_bytes) => ("PSS", pss_bytes),
            None => ("RSS", self.rss_bytes),
        }
    }
}

/// One of the processes that form a subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessRecord {
    /// Process id, in Loadline's pid namespace.
    pub pid: u32,
    /// The program it runs, at most 15 bytes: the kernel's name for it.
    pub name: String,
    /// Resident memory, with shared pages in full.
    pub rss_bytes: u64,
    /// Resident memory, with shared pages divided among sharers.
    pub pss_bytes: Option<u64>,
}

impl ProcessRecord {
    /// Its PSS, or its RSS where that is not known.
    pub fn bytes(&self) -> u64 {
        self.pss_bytes.unwrap_or(self.rss_bytes)
    }
}

/// Memory that a JVM causes outside its RSS and that is charged to its container.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BesideRecord {
    /// Its live descendant processes that are not weighed, largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ProcessRecord>,
    /// In-memory files that it has open, by location, largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MemoryFilesRecord>,
    /// The largest on-disk files that it has open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_files: Vec<DiskFileRecord>,
    /// File names that the kernel caches (dentries); absent if the kernel does not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dentries: Option<DentriesRecord>,
    /// The charge of the cgroup that it shares with other processes; absent if it has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_charge: Option<ChargeRecord>,
}

impl BesideRecord {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        let no_files = self.files.is_empty() && self.disk_files.is_empty();
        self.children.is_empty() && no_files && self.dentries.is_none() && self.shared_charge.is_none()
    }
}

/// File names that the kernel caches (dentries), for the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DentriesRecord {
    /// All dentries.
    pub all: u64,
    /// Negative dentries: names of files that do not exist.
    pub negative: u64,
}

/// Live objects of a class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LiveClassRecord {
    /// Class name as the JVM spells it: `[B` is `byte[]`.
    pub class: String,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of these objects, in bytes.
    pub bytes: u64,
}

/// A JIT compilation, as seen in samples of the timeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompilationRecord {
    /// The method, such as `com.example.Scores::of`.
    pub method: String,
    /// Compilation tier: 1 to 3 is C1, 4 is C2.
    pub tier: u32,
    /// When it was first seen, in seconds since the command was started.
    pub at_s: f64,
    /// Seconds from the first sample that shows it to the last.
    pub seconds: f64,
    /// RSS growth during that time, whatever caused it.
    pub rss_growth_bytes: u64,
}

/// The Java heap at a mark.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Heap {
    /// Heap in use: live objects and garbage.
    pub used_bytes: Option<u64>,
    /// Committed heap; not necessarily resident.
    pub committed_bytes: Option<u64>,
    /// Live set; known only after a full collection, so only at the mark `collected`.
    pub live_bytes: Option<u64>,
    /// Maximum heap size.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Heap in use after the last collection, by the JVM's counters: an upper bound of the live set then. Absent before
    /// the first collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_by_gc_bytes: Option<u64>,
    /// Collections so far, of all kinds; absent if the JVM does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// Collections of the old generation among them; absent in older records, and as `collections`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_collections: Option<u64>,
    /// Humongous objects, which have their own regions; absent without G1 and if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub humongous: Option<HumongousRecord>,
}

/// Native Memory Tracking at a mark.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NmtRecord {
    /// Committed memory of all categories; not necessarily resident.
    pub total_committed_bytes: u64,
    /// Reserved address space.
    pub total_reserved_bytes: u64,
    /// Growth of committed memory since the first mark; `null` at the first mark and if the JVM reports no change.
    pub total_growth_bytes: Option<i64>,
    /// Categories in the JVM's own order and spelling.
    pub categories: Vec<NmtCategory>,
}

/// One category of Native Memory Tracking.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NmtCategory {
    /// Name as the JVM spells it.
    pub name: String,
    /// Committed memory.
    pub committed_bytes: u64,
    /// Reserved address space.
    pub reserved_bytes: u64,
    /// Growth of committed memory since the first mark; `null` at the first mark and if the JVM reports no change.
    pub growth_bytes: Option<i64>,
}

/// The cost that weighing puts on the subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Observer {
    /// Upper bound of the RSS that attaching has added so far: pages that the JVM's answering threads touched for the
    /// first time. No other part of weighing adds to the subject.
    pub attach_rss_bytes: Option<i64>,
    /// How long the attach handshake took.
    pub attach_ms: Option<f64>,
    /// Timeline samples taken.
    pub samples: u64,
    /// Mean CPU time that Loadline spent on one sample.
    pub sample_us_mean: Option<f64>,
    /// Loadline's own peak RSS so far.
    pub own_rss_bytes_peak: Option<u64>,
}

/// How the subject ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct End {
    /// Why it ended.
    pub cause: EndCause,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Signal, if one ended it.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub signal: Option<i32>,
    /// The same in words.
    pub text: String,
    /// Its last lines, oldest first.
    pub last_lines: Vec<String>,
}

/// A doubt with its wording, so that readers need not know every kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoubtRecord {
    /// The doubt with its values.
    #[serde(flatten)]
    pub doubt: Doubt,
    /// The observation in words.
    pub text: String,
    /// One thing to do.
    pub next: String,
}

impl From<Doubt> for DoubtRecord {
    fn from(doubt: Doubt) -> Self {
        Self { text: doubt.text(), next: doubt.next().to_owned(), doubt }
    }
}

/// One sample of the timeline; a line of `timeline.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the command was started.
    pub at_s: f64,
    /// Resident memory, from `statm`; the sum if several processes form the subject.
    pub rss_bytes: u64,
    /// Resident memory, with shared pages divided among sharers; present in about one sample a second, if several
    /// processes form the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// Anonymous part of RSS.
    pub anon_bytes: Option<u64>,
    /// Bytes that the memory cgroup counts, if the subject has one of its own.
    pub charge_bytes: Option<u64>,
    /// Threads, as counted by the kernel.
    pub threads: Option<u64>,
    /// Heap in use as of the last collection (HotSpot updates it only then).
    pub heap_used_bytes: Option<u64>,
    /// Committed heap.
    pub heap_committed_bytes: Option<u64>,
    /// Metaspace used by class metadata.
    pub metaspace_used_bytes: Option<u64>,
    /// Direct memory as the JDK and Netty count it; otherwise committed `Other` of Native Memory Tracking, if NMT is on
    /// and the JVM can be asked. Present in about one sample a second.
    #[serde(default)]
    pub direct_bytes: Option<u64>,
    /// Allocated in the Java heap by all threads since the JVM started; present in about one sample a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// Collections so far.
    pub gc_count: Option<u64>,
    /// Time in collections so far.
    pub gc_ms: Option<f64>,
    /// Correct answers of the running phase so far.
    pub ok: u64,
    /// Failed requests of the running phase so far.
    pub failed: u64,
}

/// A container image that a subject ran in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImageRecord {
    /// Its name as requested.
    pub name: String,
    /// The digest of its contents, as the tool prints it.
    pub id: String,
    /// The tool that ran it: `podman` or `docker`.
    #[cfg_attr(test, schemars(extend("enum" = ["podman", "docker"])))]
    pub tool: String,
    /// The image's own `JAVA_TOOL_OPTIONS`, which precede the options of a trial; absent if it sets none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_options: String,
    /// Heap options that the image sets itself and that override `JAVA_TOOL_OPTIONS`; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_options: Vec<String>,
}

impl Trial {
    /// The phases measured under load: requests were sent, and the phase is not the warm-up.
    pub fn measured_phases(&self) -> impl Iterator<Item = &PhaseRecord> {
        self.phases.iter().filter(|phase| phase.is_sent() && !phase.is_warmup())
    }

    /// The collector that the JVM chose only because it saw few CPUs.
    pub fn collector_by_cpus(&self) -> Option<Gc> {
        self.doubts.iter().find_map(|of| match &of.doubt {
            Doubt::CollectorByCpus { collector, .. } => collector.parse().ok(),
            _ => None,
        })
    }

    /// How long these phases lasted together, in seconds.
    pub fn measured_s(&self) -> f64 {
        self.measured_phases().map(|phase| phase.seconds).sum()
    }

    /// A trial of which nothing is known yet.
    pub fn new(configuration: &str, block: u32, index: u32) -> Self {
        Self { configuration: configuration.to_owned(), block, index, ..Self::default() }
    }

    /// The CPU limit, if one was set.
    pub fn cpu_limit(&self) -> Option<Millicpus> {
        self.cpu_limit_millicpus.map(Millicpus)
    }

    /// Whether it failed to serve its purpose. A failure in a search for the load line or in a tuning is an answer, so
    /// it does not count.
    pub fn is_failed(&self) -> bool {
        match self.outcome {
            Outcome::Completed => false,
            Outcome::Aborted => true,
            Outcome::SubjectFailed | Outcome::Killed => self.probe.is_none() && self.tuned.is_none(),
        }
    }

    /// Returns the last lines of a subject that failed: by the end of the failed phase, or else by its own end.
    pub fn last_words(&self) -> &[String] {
        let at_the_end = || self.end.as_ref().map(|end| &end.last_lines);
        match self.outcome {
            Outcome::SubjectFailed | Outcome::Killed => {
                let of_phase = self.failed_in.as_ref().map(|failed| &failed.last_lines);
                of_phase.or_else(at_the_end).map_or(&[], Vec::as_slice)
            }
            Outcome::Completed | Outcome::Aborted => &[],
        }
    }

    /// Whether its target held, if it was judged: in a search and in a tuning.
    pub fn verdict(&self) -> Option<ProbeVerdict> {
        let of_search = self.probe.as_ref().map(|probe| probe.verdict);
        of_search.or(self.tuned.as_ref().map(|tuned| tuned.verdict))
    }

    /// The heavier of its marks loaded and rested.
    pub fn heaviest(&self) -> Option<&Mark> {
        let marks = [MarkPoint::Loaded, MarkPoint::Rested].into_iter().filter_map(|point| self.at(point));
        marks.max_by_key(|mark| mark.weight().1)
    }

    /// The mark of this name.
    pub fn mark(&self, name: &str) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.name == name)
    }

    /// The largest heap that its own command or options set, in bytes; `None` if the JVM chose it, or that is unknown.
    pub fn heap_typed(&self) -> Option<u64> {
        let set = &self.jvm.as_ref()?.flags_kept.as_ref()?.set;
        let flag = set.iter().find(|flag| flag.name == "MaxHeapSize" && flag.origin != FlagOrigin::Ergonomic)?;
        flag.value.parse().ok()
    }

    /// The usual mark of this moment.
    pub fn at(&self, point: MarkPoint) -> Option<&Mark> {
        self.mark(point.word())
    }
}
