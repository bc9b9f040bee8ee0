//! Records of a trial as plain values: the forms of the result document and the archive, and everything that reports,
//! comparisons, and findings know about a trial. Fields may be added, never renamed.

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
    /// The subject exited when asked to.
    AsAsked,
    /// The subject was killed because it did not exit in time.
    KilledAfterTerm,
    /// The subject exited on its own.
    ByItself,
    /// OOM kill: the cgroup of the subject was full.
    OomKill,
    /// The subject exited after a `java.lang.OutOfMemoryError`.
    OutOfMemoryError,
    /// Loadline's guardian process was killed, and the subject with it.
    GuardianLost,
}

/// Schema of the result document (`--json`).
pub const RESULT_SCHEMA: &str = "loadline.result/2";

/// The result document, which `--json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = RESULT_SCHEMA)))]
    pub schema: String,
    /// Conditions of all trials; in a comparison of archives, those of the first archive.
    pub conditions: Conditions,
    /// Compared archives, baseline first, or archives of the nodes that ran blocks of one comparison. Empty if all
    /// trials come from one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveRecord>,
    /// Trials, in the order they ran.
    pub trials: Vec<Trial>,
    /// Every metric of every configuration, in the order of configurations.
    #[serde(default)]
    pub metrics: Vec<MetricRecord>,
    /// Blocks and their disturbances; empty with a single trial of a single configuration.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
    /// Each candidate against the baseline; empty with fewer than two configurations.
    pub comparisons: Vec<ComparisonRecord>,
    /// The judged metrics by axis, averaged over the other axes; empty unless a matrix with two or more axes ran in
    /// full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<ComparisonRecord>,
    /// Memory vs. speed; empty with fewer than two configurations.
    #[serde(default)]
    pub pareto: Vec<ParetoRecord>,
    /// Reasons to distrust the comparisons.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
    /// Result of a search for the load line; `null` without a search.
    #[serde(default)]
    pub find: Option<FindRecord>,
    /// Results of `--over`, one search for each value of a setting; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverRecord>,
    /// Result of tuning; absent without tuning.
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
    /// Configuration names in the order of metrics, or else of trials.
    pub fn configurations(&self) -> Vec<&str> {
        let of_metrics = self.metrics.iter().map(|metric| metric.configuration.as_str());
        each_once(of_metrics.chain(self.trials.iter().map(|trial| trial.configuration.as_str())))
    }
}

/// Distinct items in order of first occurrence.
pub fn each_once<T: PartialEq>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for thing in things {
        if !found.contains(&thing) {
            found.push(thing);
        }
    }
    found
}

/// Conditions shared by all trials of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Version of Loadline.
    pub loadline: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Start of the run in UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: String,
    /// The machine and its load before the first trial.
    pub machine: Machine,
    /// Seed of all random choices.
    pub seed: u64,
    /// Command that repeats the run.
    pub command: String,
    /// Load plan in words, one line per phase.
    pub load: Vec<String>,
    /// Optional configurations that could not run on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutRecord>,
    /// Commit and build of the subject; absent if neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRecord>,
}

/// Commit and build of the subject. Loadline does not check for uncommitted changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceRecord {
    /// The commit; `null` if unknown.
    pub commit: Option<String>,
    /// Source of `commit`: `--commit`, `git` for the HEAD of the working directory, or the name of a CI variable.
    pub commit_from: Option<String>,
    /// The build; `null` if unknown.
    pub build: Option<String>,
    /// Source of `build`: `--build`, or the name of a CI variable.
    pub build_from: Option<String>,
}

/// One of several archives in a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArchiveRecord {
    /// Name used for its configurations; if nodes ran blocks of one comparison, the node's entry.
    pub name: String,
    /// Index of its first trial in the result; its trials end where the next archive's begin.
    pub index_from: u32,
    /// Conditions of its trials.
    pub conditions: Conditions,
}

/// A configuration that was not run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutRecord {
    /// Its name.
    pub configuration: String,
    /// The unmet requirement.
    pub why: String,
}

/// The machine and its load before the first trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// Number of online CPUs.
    pub cores: u32,
    /// Model of the first CPU; absent if the kernel does not report it, and in older archives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Cgroup version of the memory controller: `v1`, `v2`, or `none`.
    #[cfg_attr(test, schemars(extend("enum" = ["v1", "v2", "none"])))]
    pub cgroup: String,
    /// One-minute load average at the start of the run.
    pub load_average_1m: Option<f64>,
    /// `always`, `madvise`, or `never`.
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
    /// All phases and marks were completed.
    Completed,
    /// The subject did not start, died, or returned wrong responses.
    SubjectFailed,
    /// The subject was OOM-killed.
    Killed,
    /// Loadline was interrupted or could not continue.
    #[default]
    Aborted,
}

/// One fresh JVM from start to finish.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trial {
    /// Name of the configuration.
    pub configuration: String,
    /// Index of the block, from 0.
    pub block: u32,
    /// Position in the run, from 0.
    pub index: u32,
    /// The disturbed block that this trial's block repeats, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not complete; `null` if it completed.
    pub why: Option<String>,
    /// Missed condition that stopped the trial early, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopeless: Option<Missed>,
    /// Phase that failed or was interrupted, if any; later marks show the state of the subject after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<FailedIn>,
    /// Command, as started.
    pub command: Vec<String>,
    /// Container image of the subject, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRecord>,
    /// SHA-256 of the files named in its plan, before the first trial: code, scripts, bodies, schedules, and
    /// certificates, but not the JDK or image. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Environment variables added by the configuration; `null` if not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Facts about the JVM; `null` if there are none.
    pub jvm: Option<Jvm>,
    /// Memory limit, if set.
    pub limit_bytes: Option<u64>,
    /// CPU limit in thousandths of a CPU; absent if none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millicpus: Option<u64>,
    /// CPUs that the subject is pinned to; `null` if it is not pinned.
    pub subject_cpus: Option<Vec<u32>>,
    /// CPUs that Loadline is pinned to; `null` if it is not pinned.
    pub load_cpus: Option<Vec<u32>>,
    /// Seconds from the start of the command until the subject was ready.
    pub ready_s: Option<f64>,
    /// Marks, in time order.
    pub marks: Vec<Mark>,
    /// Phases of load and rest, in time order.
    pub phases: Vec<PhaseRecord>,
    /// Figures that the scenario derives from marks; recomputed for every document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRecord>,
    /// Counters of its memory cgroup; absent if it had none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupRecord>,
    /// Purpose in a search for the load line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeRecord>,
    /// Purpose in tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<TuneTrialRecord>,
    /// Absolute paths of files that the subject had mapped or open; only in a search for the load line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Live heap objects of the serving process after all measurements, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsRecord>,
    /// Heap dump, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<HeapDumpRecord>,
    /// The code that holds the memory, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationRecord>,
    /// JIT compilations during which RSS grew, largest growth first; absent if none were observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compilations: Vec<CompilationRecord>,
    /// Peak RSS: the kernel's high-water mark (VmHWM) at the last mark, or a later sample above it.
    pub rss_bytes_peak: Option<u64>,
    /// How the subject ended; `null` if it was never started.
    pub end: Option<End>,
    /// Measurement overhead on the subject.
    pub observer: Observer,
    /// Reasons to distrust its numbers.
    pub doubts: Vec<DoubtRecord>,
    /// Directory of the timeline, histograms, and log, relative to the archive.
    pub folder: Option<String>,
}

/// A phase that failed or was interrupted. The trial's `why` gives the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailedIn {
    /// Its name.
    pub phase: String,
    /// Last lines of the subject's output up to then, oldest first.
    pub last_lines: Vec<String>,
}

/// Facts about the JVM.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Jvm {
    /// Process ID, in Loadline's pid namespace.
    pub pid: u32,
    /// Version reported by the JVM, such as `17.0.15+6-Debian-1deb12u1`.
    pub version: Option<String>,
    /// Name, such as `OpenJDK 64-Bit Server VM`.
    pub name: Option<String>,
    /// The executable.
    pub java: Option<String>,
    /// Main class or jar according to the JVM's own counters, such as `app.jar`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The collector in effect: Serial, G1, Parallel, Z, Shenandoah, Epsilon, or CMS.
    pub collector: Option<String>,
    /// Options set by the configuration.
    pub options: Vec<String>,
    /// How the options reached the JVM: `none_needed`, `command_line`, `placeholder`, or the name of an environment
    /// variable such as `JDK_JAVA_OPTIONS`.
    pub options_through: String,
    /// Flags in effect that differ from their defaults, in `-XX:` form; `null` if they could neither be read from
    /// outside the JVM nor queried.
    pub flags: Option<Vec<String>>,
    /// These flags with their origins, plus default values that findings and remedies use. Absent if they could not be
    /// read from outside the JVM, and in accounts, where `flags` has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags_kept: Option<FlagsRecord>,
    /// The C allocator.
    pub allocator: Option<String>,
}

impl Jvm {
    /// The release as numbers: 17, 0, 15 for `17.0.15+6`; 8, 0, 372 for `25.372-b07`, which is JDK 8.
    pub fn release(&self) -> Option<[u64; 3]> {
        let version = self.version.as_deref()?;
        let mut numbers = version.split(['.', '+', '-', '_']).map_while(|part| part.parse().ok());
        let [first, second, third] = [(); 3].map(|()| numbers.next().unwrap_or(0));
        let is_8 = first == 25 && version.split(['+', '-']).nth(1).is_some_and(|build| build.starts_with('b'));
        (first > 0).then_some(if is_8 { [8, 0, second] } else { [first, second, third] })
    }
}

/// A full measurement at one moment of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mark {
    /// `start`, `warm`, `loaded`, `rested`, `collected`, `trimmed`, or a phase marker; `now` in `loadline account`.
    pub name: String,
    /// Seconds since the command was started.
    pub at_s: f64,
    /// Resident memory, with shared pages in full.
    pub rss_bytes: u64,
    /// PSS: resident memory, with shared pages divided among the processes that share them.
    pub pss_bytes: Option<u64>,
    /// Anonymous part of RSS.
    pub anon_bytes: Option<u64>,
    /// File-backed part of RSS, including shared memory.
    pub file_bytes: Option<u64>,
    /// Charge of the subject's memory cgroup; only if it has its own.
    pub charge_bytes: Option<u64>,
    /// Charge by kind; `null` if it was not read. In a shared cgroup, it covers all processes.
    #[serde(default)]
    pub charge: Option<ChargeRecord>,
    /// Swapped-out memory.
    pub swap_bytes: Option<u64>,
    /// Number of threads, according to the kernel.
    pub threads: Option<u64>,
    /// The Java heap.
    pub heap: Heap,
    /// Native Memory Tracking, if it is on.
    pub nmt: Option<NmtRecord>,
    /// Owners of the resident pages; `null` if they could not be determined.
    pub account: Option<AccountRecord>,
    /// Direct memory as counted by the JDK and Netty; `null` if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectRecord>,
    /// Duration of the measurement.
    pub took_ms: f64,
    /// Counts of loaded classes; absent if the JVM's counters cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassCounts>,
    /// Class loaders; absent if the JVM was not queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaders: Option<LoadersRecord>,
    /// Code cache by segment; absent if the JVM was not queried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeHeapRecord>,
    /// Threads by pool, largest stacks first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<ThreadPoolRecord>,
    /// Netty's buffer pools, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty: Option<NettyPools>,
    /// Counters that the subject reported with this phase marker.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// Memory outside RSS attributable to the JVM; absent if none was found or measured.
    #[serde(default, skip_serializing_if = "BesideRecord::is_empty")]
    pub beside: BesideRecord,
    /// Direct memory that the JDK caches per thread; absent if there is none or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_buffers: Option<ThreadBuffersRecord>,
    /// Chunks of Netty's pools, read from outside the JVM; absent if there are none, or if direct memory is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty_chunks: Option<NettyChunksRecord>,
    /// Largest Java collections referenced by static fields; only after a full GC.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_collections: Vec<StaticCollectionRecord>,
    /// Heap held by thread-local variables after a full GC; absent if small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_values: Option<ThreadValuesRecord>,
    /// Classes that make up most of the live heap or reveal a cause; absent if little is live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_classes: Vec<LiveClassRecord>,
    /// Processes of the subject if all are measured, the serving one first. All other values are sums over them; a page
    /// shared by n processes counts n times in `rss_bytes` and once in `pss_bytes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessRecord>,
}

impl Mark {
    /// All known direct memory. Up to about JDK 23, the JDK counts the buffers that it caches per thread. Later ones
    /// allocate them directly with malloc (`sun.nio.ch.Util`, JDK 25), without a counter.
    pub fn direct_bytes(&self) -> u64 {
        let counted = self.direct.unwrap_or_default();
        let kept = self.thread_buffers.map_or(0, |buffers| buffers.bytes);
        counted.bytes().saturating_add(if kept > counted.reserved_bytes { kept } else { 0 })
    }

    /// The subject's memory with its name: RSS, or PSS for several processes, whose summed RSS counts shared pages once
    /// per process.
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
    /// Process ID, in Loadline's pid namespace.
    pub pid: u32,
    /// Kernel name of its program, at most 15 bytes.
    pub name: String,
    /// Resident memory, with shared pages in full.
    pub rss_bytes: u64,
    /// PSS: resident memory, with shared pages divided among the processes that share them.
    pub pss_bytes: Option<u64>,
}

impl ProcessRecord {
    /// Its PSS, or RSS if PSS is unknown.
    pub fn bytes(&self) -> u64 {
        self.pss_bytes.unwrap_or(self.rss_bytes)
    }
}

/// Memory outside a JVM's RSS, attributable to the JVM and charged to its container.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BesideRecord {
    /// Live descendant processes that are not measured, largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ProcessRecord>,
    /// In-memory files that it has open, by mount point, largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MemoryFilesRecord>,
    /// Largest on-disk files that it has open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_files: Vec<DiskFileRecord>,
    /// File names cached by the kernel (dentries); absent if the kernel does not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dentries: Option<DentriesRecord>,
    /// Charge of the cgroup that it shares with other processes; absent if it has its own cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_charge: Option<ChargeRecord>,
}

impl BesideRecord {
    /// Whether it contains nothing.
    pub fn is_empty(&self) -> bool {
        let no_files = self.files.is_empty() && self.disk_files.is_empty();
        self.children.is_empty() && no_files && self.dentries.is_none() && self.shared_charge.is_none()
    }
}

/// File names cached by the kernel (dentries), for the whole machine.
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
    /// Class name in the JVM's spelling: `[B` is `byte[]`.
    pub class: String,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of these objects.
    pub bytes: u64,
}

/// A JIT compilation seen in timeline samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompilationRecord {
    /// The method, such as `com.example.Scores::of`.
    pub method: String,
    /// Compilation tier: 1 to 3 for C1, 4 for C2.
    pub tier: u32,
    /// Seconds from the start of the command to the first sample that shows it.
    pub at_s: f64,
    /// Seconds between the first and last sample that show it.
    pub seconds: f64,
    /// RSS growth during the compilation, from any cause.
    pub rss_growth_bytes: u64,
}

/// The Java heap at a mark.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Heap {
    /// Heap in use, including garbage.
    pub used_bytes: Option<u64>,
    /// Committed heap; not necessarily resident.
    pub committed_bytes: Option<u64>,
    /// Live set; only at the mark `collected`, which follows a full GC.
    pub live_bytes: Option<u64>,
    /// Maximum heap size.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Heap in use after the last GC, according to the JVM's counters: an upper bound on the live set at that time.
    /// Absent before the first GC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_by_gc_bytes: Option<u64>,
    /// Number of GCs of all kinds so far; absent if the JVM does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// Number of old GCs among them; absent in older records, or if `collections` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_collections: Option<u64>,
    /// G1's humongous objects; absent if there are none.
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
    /// Name in the JVM's spelling.
    pub name: String,
    /// Committed memory.
    pub committed_bytes: u64,
    /// Reserved address space.
    pub reserved_bytes: u64,
    /// Growth of committed memory since the first mark; `null` at the first mark and if the JVM reports no change.
    pub growth_bytes: Option<i64>,
}

/// Measurement overhead on the subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Observer {
    /// Upper bound on the RSS added by attaching so far: pages that the JVM's attach threads touched for the first
    /// time. Nothing else adds to the subject's RSS.
    pub attach_rss_bytes: Option<i64>,
    /// Duration of the attach handshake.
    pub attach_ms: Option<f64>,
    /// Number of timeline samples.
    pub samples: u64,
    /// Mean CPU time of Loadline per sample.
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
    /// Signal that ended it, if any.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub signal: Option<i32>,
    /// How it ended, in words.
    pub text: String,
    /// Its last lines of output, oldest first.
    pub last_lines: Vec<String>,
}

/// A doubt with its wording, so that readers need not know every kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoubtRecord {
    /// The doubt with its values.
    #[serde(flatten)]
    pub doubt: Doubt,
    /// Explanation in words.
    pub text: String,
    /// The next step.
    pub next: String,
}

impl From<Doubt> for DoubtRecord {
    fn from(doubt: Doubt) -> Self {
        Self { text: doubt.text(), next: doubt.next().to_owned(), doubt }
    }
}

/// A timeline sample: a line of `timeline.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start of the command.
    pub at_s: f64,
    /// Resident memory from `statm`; summed over the subject's processes.
    pub rss_bytes: u64,
    /// Resident memory with shared pages divided among sharers; about once a second, if the subject has several
    /// processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// Anonymous part of RSS.
    pub anon_bytes: Option<u64>,
    /// The memory cgroup's charge, if the subject has its own.
    pub charge_bytes: Option<u64>,
    /// Number of threads, according to the kernel.
    pub threads: Option<u64>,
    /// Heap in use after the last GC, which is when HotSpot updates it.
    pub heap_used_bytes: Option<u64>,
    /// Committed heap.
    pub heap_committed_bytes: Option<u64>,
    /// Metaspace used by class metadata.
    pub metaspace_used_bytes: Option<u64>,
    /// Direct memory counted by the JDK and Netty; otherwise, committed `Other` of Native Memory Tracking if NMT is on
    /// and attaching is possible. About once a second.
    #[serde(default)]
    pub direct_bytes: Option<u64>,
    /// Bytes allocated in the Java heap by all threads since the JVM's start; about once a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// GCs so far.
    pub gc_count: Option<u64>,
    /// Time in GC so far.
    pub gc_ms: Option<f64>,
    /// Correct responses in the current phase so far.
    pub ok: u64,
    /// Failed requests in the current phase so far.
    pub failed: u64,
}

/// Container image of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImageRecord {
    /// Its name as requested.
    pub name: String,
    /// Digest, as printed by the tool.
    pub id: String,
    /// `podman` or `docker`.
    #[cfg_attr(test, schemars(extend("enum" = ["podman", "docker"])))]
    pub tool: String,
    /// `JAVA_TOOL_OPTIONS` set by the image, which precede the options of a trial; absent if it sets none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_options: String,
    /// Heap options of the image that override `JAVA_TOOL_OPTIONS`; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_options: Vec<String>,
}

impl Trial {
    /// The measured phases: those that sent requests, except the warm-up.
    pub fn measured_phases(&self) -> impl Iterator<Item = &PhaseRecord> {
        self.phases.iter().filter(|phase| phase.is_sent() && !phase.is_warmup())
    }

    /// The collector, if the JVM chose it only because it saw few CPUs.
    pub fn collector_by_cpus(&self) -> Option<Gc> {
        self.doubts.iter().find_map(|of| match &of.doubt {
            Doubt::CollectorByCpus { collector, .. } => collector.parse().ok(),
            _ => None,
        })
    }

    /// The time to become ready plus the duration of all phases, in seconds; `None` if it never became ready.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.ready_s? + self.phases.iter().map(|phase| phase.seconds).sum::<f64>())
    }

    /// The total duration of the measured phases, in seconds.
    pub fn measured_s(&self) -> f64 {
        self.measured_phases().map(|phase| phase.seconds).sum()
    }

    /// A trial without any data yet.
    pub fn new(configuration: &str, block: u32, index: u32) -> Self {
        Self { configuration: configuration.to_owned(), block, index, ..Self::default() }
    }

    /// The CPU limit, if any.
    pub fn cpu_limit(&self) -> Option<Millicpus> {
        self.cpu_limit_millicpus.map(Millicpus)
    }

    /// Whether it failed to serve its purpose. A failure in a search or tuning is a result, so it does not count.
    pub fn is_failed(&self) -> bool {
        match self.outcome {
            Outcome::Completed => false,
            Outcome::Aborted => true,
            Outcome::SubjectFailed | Outcome::Killed => self.probe.is_none() && self.tuned.is_none(),
        }
    }

    /// The last lines of a failed subject: at the end of the failed phase, or else at its own end.
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

    /// Whether it met its target, if judged: in a search or tuning.
    pub fn verdict(&self) -> Option<ProbeVerdict> {
        let of_search = self.probe.as_ref().map(|probe| probe.verdict);
        of_search.or(self.tuned.as_ref().map(|tuned| tuned.verdict))
    }

    /// The larger of the marks `loaded` and `rested`.
    pub fn heaviest(&self) -> Option<&Mark> {
        let marks = [MarkPoint::Loaded, MarkPoint::Rested].into_iter().filter_map(|point| self.at(point));
        marks.max_by_key(|mark| mark.weight().1)
    }

    /// The mark with this name.
    pub fn mark(&self, name: &str) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.name == name)
    }

    /// The maximum heap set by its command or options, in bytes; `None` if the JVM chose it, or if unknown.
    pub fn heap_typed(&self) -> Option<u64> {
        let set = &self.jvm.as_ref()?.flags_kept.as_ref()?.set;
        let flag = set.iter().find(|flag| flag.name == "MaxHeapSize" && flag.origin != FlagOrigin::Ergonomic)?;
        flag.value.parse().ok()
    }

    /// The standard mark at this point.
    pub fn at(&self, point: MarkPoint) -> Option<&Mark> {
        self.mark(point.word())
    }
}
