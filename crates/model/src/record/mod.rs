//! Records of a trial, as plain values: the shapes of the result document and of the archive.
//! All that reports, comparisons and findings know of a trial. Fields may be added, never renamed.

mod account;
mod accounts;
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
mod over;
mod phase;
mod pool_names;
mod threads;
mod tune;
mod watch;

pub use account::*;
pub use accounts::*;
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
pub use over::*;
pub use phase::*;
pub use pool_names::*;
pub use threads::*;
pub use tune::*;
pub use watch::*;

pub use crate::scenario::Model;

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
pub use crate::observe::open_files::DiskFileRecord;

use crate::doubt::Doubt;
use crate::scenario::MarkPoint;
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
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = RESULT_SCHEMA)))]
    pub schema: String,
    /// Conditions that held for every trial; where archives are compared, for those of the first.
    pub conditions: Conditions,
    /// The archives that are compared, the baseline first, or those of the nodes that made blocks of one comparison;
    /// empty where the trials are of one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveRecord>,
    /// In the order they ran.
    pub trials: Vec<Trial>,
    /// Every metric of every configuration, in the order of configurations.
    #[serde(default)]
    pub metrics: Vec<MetricRecord>,
    /// The blocks and what disturbed them; empty where there is one configuration and one trial.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
    /// Each candidate against the baseline; empty below two configurations.
    pub comparisons: Vec<ComparisonRecord>,
    /// Weight against speed; empty below two configurations.
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
    /// Diagnoses with their evidence; empty where there are none.
    pub findings: Vec<FindingRecord>,
    /// Causes that were considered, with the evidence against them.
    #[serde(default)]
    pub ruled_out: Vec<RuledOutRecord>,
    /// Budgets with their verdicts; empty unless some were given.
    pub budgets: Vec<BudgetRecord>,
}

impl Document {
    /// Names of the configurations in the order of the metrics or, where there are none, of the trials.
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
    /// Seeds everything drawn at random.
    pub seed: u64,
    /// The command that repeats the run.
    pub command: String,
    /// The load plan in words, a line for each phase.
    pub load: Vec<String>,
    /// Optional configurations that could not run here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutRecord>,
    /// Which state of the subject's source was weighed, as far as it is known; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRecord>,
}

/// Which state of the subject's source was weighed. Whether files were changed since the commit is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceRecord {
    /// The commit; `null` where it is not known.
    pub commit: Option<String>,
    /// The source of the commit: `--commit`, `git` for the HEAD of the working folder, or the name of a variable of CI.
    pub commit_from: Option<String>,
    /// The build; `null` where it is not known.
    pub build: Option<String>,
    /// The source of the build: `--build`, or the name of a variable of CI.
    pub build_from: Option<String>,
}

/// One of several archives in a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArchiveRecord {
    /// The name that its configurations are named after; where nodes made blocks of one comparison, the node's entry.
    pub name: String,
    /// Index of its first trial in the result; those up to the first of the next one are its own.
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
    /// The requirement that it lacks.
    pub why: String,
}

/// The machine and how busy it was before the first trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// CPUs online.
    pub cores: u32,
    /// Model of the first CPU, as the kernel tells it; absent where it tells none, and in older archives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// `v1`, `v2` or `none`: where the memory controller is.
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
    /// Which repetition of all configurations, from 0.
    pub block: u32,
    /// Position in the run, from 0.
    pub index: u32,
    /// The block, disturbed by the machine, that this trial's block repeats; absent where it repeats none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, where it did not complete.
    pub why: Option<String>,
    /// The missed number that made going on hopeless, if the trial was given up for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopeless: Option<Missed>,
    /// The phase that failed or was interrupted; absent where none was. The marks after it show how it left the
    /// subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<FailedIn>,
    /// The command as started.
    pub command: Vec<String>,
    /// The container image it ran in; absent where it ran in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRecord>,
    /// SHA-256 over the contents of the files that its plan names, as they were before the first trial: code, scripts,
    /// bodies, schedules, certificates. Neither the JDK nor an image is hashed. Absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Environment that the configuration adds; `null` where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Facts found about the JVM; `null` where none was found.
    pub jvm: Option<Jvm>,
    /// The memory limit, if one was set.
    pub limit_bytes: Option<u64>,
    /// The CPU limit in thousandths of a CPU; absent where none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millicpus: Option<u64>,
    /// CPUs of the subject; `null` where not pinned.
    pub subject_cpus: Option<Vec<u32>>,
    /// CPUs of Loadline; `null` where not pinned.
    pub load_cpus: Option<Vec<u32>>,
    /// From the start of the command to the first sign of readiness.
    pub ready_s: Option<f64>,
    /// Weighings, in time order.
    pub marks: Vec<Mark>,
    /// Stretches of load and rest, in time order.
    pub phases: Vec<PhaseRecord>,
    /// Figures that the scenario derives from the marks; computed from them whenever a document is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRecord>,
    /// Counts of its memory cgroup, if it had one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupRecord>,
    /// Its purpose in a search for the load line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeRecord>,
    /// Its purpose in a tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<TuneTrialRecord>,
    /// Files that the subject had mapped or open, absolute paths, in a search for the load line; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Live objects in the heap after everything was measured, if they were asked for; of the process that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsRecord>,
    /// The heap dump, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<HeapDumpRecord>,
    /// Which code holds the memory, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationRecord>,
    /// Compilations of the JIT during which RSS grew, the largest growth first; absent where there were none, or they
    /// could not be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compilations: Vec<CompilationRecord>,
    /// Highest RSS seen: the kernel's own mark (VmHWM) at the last weighing, or a later sample above it.
    pub rss_bytes_peak: Option<u64>,
    /// How the subject ended; `null` where it was never started.
    pub end: Option<End>,
    /// The cost that weighing itself puts on the subject.
    pub observer: Observer,
    /// Reasons to distrust its numbers.
    pub doubts: Vec<DoubtRecord>,
    /// The folder of the timeline, histograms and log, relative to the archive.
    pub folder: Option<String>,
}

/// A phase that failed or was interrupted. `why` of the trial says why.
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
    /// As the JVM says it, e.g. `17.0.15+6-Debian-1deb12u1`.
    pub version: Option<String>,
    /// Name and vendor, e.g. `OpenJDK 64-Bit Server VM`.
    pub name: Option<String>,
    /// The executable.
    pub java: Option<String>,
    /// The collector in force: Serial, G1, Parallel, Z, Shenandoah, Epsilon or CMS.
    pub collector: Option<String>,
    /// Options asked for by the configuration.
    pub options: Vec<String>,
    /// How they reached the JVM: `none_needed`, `command_line`, `placeholder`, or the name of an environment variable,
    /// `JDK_JAVA_OPTIONS`.
    pub options_through: String,
    /// Flags in force that differ from their defaults, `-XX:` form; `null` where they could not be read from outside
    /// and the JVM was not asked, or could not be.
    pub flags: Option<Vec<String>>,
    /// The same with who set each, and, of the flags at their default, those that findings and remedies look at; absent
    /// where they could not be read from outside, and in an account, whose `flags` are all of them.
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
    /// Resident, shared pages in full.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among sharers.
    pub pss_bytes: Option<u64>,
    /// Anonymous part of RSS.
    pub anon_bytes: Option<u64>,
    /// File-backed part of RSS, shared memory included.
    pub file_bytes: Option<u64>,
    /// Bytes that the memory cgroup counts for the subject; only where it has a cgroup of its own.
    pub charge_bytes: Option<u64>,
    /// The charge by kind; `null` where it was not read. A cgroup shared with others is charged for all of them.
    #[serde(default)]
    pub charge: Option<ChargeRecord>,
    /// Swapped out.
    pub swap_bytes: Option<u64>,
    /// Threads the kernel counts.
    pub threads: Option<u64>,
    /// The Java heap.
    pub heap: Heap,
    /// Native Memory Tracking, where it is on.
    pub nmt: Option<NmtRecord>,
    /// The owners of the resident pages; `null` where they could not be determined.
    pub account: Option<AccountRecord>,
    /// Direct memory, as the JDK and Netty count it; `null` where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectRecord>,
    /// How long the weighing took.
    pub took_ms: f64,
    /// How many classes are loaded; absent where the JVM's counters cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassCounts>,
    /// Their loaders; absent where the JVM was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaders: Option<LoadersRecord>,
    /// The code cache by segment; absent where the JVM was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeHeapRecord>,
    /// Threads by pool, the largest stacks first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<ThreadPoolRecord>,
    /// Netty's buffer pools, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty: Option<NettyPools>,
    /// Numbers that the subject reported with the phase marker of this moment, such as the number of its instances.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// Memory that the JVM causes and that is in no RSS of it; absent where nothing of it was found or looked for.
    #[serde(default, skip_serializing_if = "BesideRecord::is_empty")]
    pub beside: BesideRecord,
    /// Direct memory that the JDK keeps for each thread; absent where there is none, or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_buffers: Option<ThreadBuffersRecord>,
    /// Chunks of Netty's pools, read from outside; absent where there are none, or little direct memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty_chunks: Option<NettyChunksRecord>,
    /// The largest collections that static fields refer to, after a full collection; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_collections: Vec<StaticCollectionRecord>,
    /// Heap that thread-local variables hold, after a full collection; absent where none holds much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_values: Option<ThreadValuesRecord>,
    /// The classes that most of the live heap is of, and those that tell a cause; absent where little is alive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_classes: Vec<LiveClassRecord>,
    /// The processes that form the subject, where all of them are weighed; the one that serves comes first. All other
    /// figures are their sums, so `rss_bytes` counts a page that n of them share n times, `pss_bytes` once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessRecord>,
}

impl Mark {
    /// All that is known to be direct memory. The buffers that the JDK keeps for threads are in its own counter up to
    /// JDK 23 or so; later ones take them from malloc directly (`sun.nio.ch.Util`, JDK 25), and no counter has them.
    pub fn direct_bytes(&self) -> u64 {
        let counted = self.direct.unwrap_or_default();
        let kept = self.thread_buffers.map_or(0, |buffers| buffers.bytes);
        counted.bytes().saturating_add(if kept > counted.reserved_bytes { kept } else { 0 })
    }

    /// Returns the weight of the subject with its name: RSS, or PSS where several processes form it. Their RSS counts
    /// shared pages once for each.
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
    /// Resident, shared pages in full.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among sharers.
    pub pss_bytes: Option<u64>,
}

/// Memory that a JVM causes and that is in no RSS of it, but in the charge of its container.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BesideRecord {
    /// The living processes below it that are not weighed, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ProcessRecord>,
    /// Files in memory that it has open, by place, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MemoryFilesRecord>,
    /// The largest files on disks that it has open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_files: Vec<DiskFileRecord>,
    /// Names of files that the kernel remembers; absent where it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dentries: Option<DentriesRecord>,
    /// The charge of the cgroup that it shares with other processes; absent where it has one of its own.
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

/// Names of files that the kernel remembers (dentries), of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DentriesRecord {
    /// All of them.
    pub all: u64,
    /// Names of files that there are not.
    pub negative: u64,
}

/// Live objects of a class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LiveClassRecord {
    /// As the JVM spells it: `[B` is `byte[]`.
    pub class: String,
    /// How many.
    pub instances: u64,
    /// Bytes of these objects, without those they refer to.
    pub bytes: u64,
}

/// A compilation of the JIT, by samples of the timeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompilationRecord {
    /// The method, `com.example.Scores::of`.
    pub method: String,
    /// 1 to 3: C1; 4: C2.
    pub tier: u32,
    /// When it was first seen, in seconds since the command was started.
    pub at_s: f64,
    /// From the first sample that shows it to the last.
    pub seconds: f64,
    /// By how much RSS grew meanwhile, whatever else grew with it.
    pub rss_growth_bytes: u64,
}

/// The Java heap at a mark.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Heap {
    /// Live objects and garbage.
    pub used_bytes: Option<u64>,
    /// Promised by the kernel, not necessarily resident.
    pub committed_bytes: Option<u64>,
    /// Reachable; known only after a full collection, so only at the mark `collected`.
    pub live_bytes: Option<u64>,
    /// The most it may become.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Bytes left in it by the last collection, by the JVM's counters: no more was live then. Absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_by_gc_bytes: Option<u64>,
    /// Collections so far, of all kinds; absent where the JVM does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// Objects in regions of their own; absent without G1, and where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub humongous: Option<HumongousRecord>,
}

/// Native Memory Tracking at a mark.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NmtRecord {
    /// All categories; committed, not resident.
    pub total_committed_bytes: u64,
    /// Reserved address space.
    pub total_reserved_bytes: u64,
    /// Growth of committed since the first mark; `null` at the first mark and where the JVM shows no change.
    pub total_growth_bytes: Option<i64>,
    /// In the JVM's own order and spelling.
    pub categories: Vec<NmtCategory>,
}

/// One category of Native Memory Tracking.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NmtCategory {
    /// As the JVM spells it.
    pub name: String,
    /// Committed.
    pub committed_bytes: u64,
    /// Reserved.
    pub reserved_bytes: u64,
    /// Growth of committed since the first mark; `null` at the first mark and where the JVM shows no change.
    pub growth_bytes: Option<i64>,
}

/// The cost that weighing puts on the subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Observer {
    /// RSS that attaching and asking, the only part of weighing that adds to the subject, has added so far at most: the
    /// pages that the threads of the JVM which answer touched for the first time.
    pub attach_rss_bytes: Option<i64>,
    /// How long the attach handshake took.
    pub attach_ms: Option<f64>,
    /// Timeline samples taken.
    pub samples: u64,
    /// Mean cost of one, CPU of Loadline.
    pub sample_us_mean: Option<f64>,
    /// Loadline's own peak RSS so far.
    pub own_rss_bytes_peak: Option<u64>,
}

/// How the subject ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct End {
    /// Why.
    pub cause: EndCause,
    /// Exit code, where it exited.
    pub exit_code: Option<i32>,
    /// Signal, where one ended it.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub signal: Option<i32>,
    /// In words.
    pub text: String,
    /// Its last lines, oldest first.
    pub last_lines: Vec<String>,
}

/// A doubt with its words, so that readers need not know every kind.
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
    /// Resident, from `statm`; the sum where several processes form the subject.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among sharers; about one sample a second has it, where several processes form
    /// the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// Anonymous part of RSS.
    pub anon_bytes: Option<u64>,
    /// Bytes that the memory cgroup counts, if the subject has one of its own.
    pub charge_bytes: Option<u64>,
    /// Threads the kernel counts.
    pub threads: Option<u64>,
    /// As of the last collection (HotSpot updates it only then).
    pub heap_used_bytes: Option<u64>,
    /// Promised by the kernel to the heap.
    pub heap_committed_bytes: Option<u64>,
    /// Used by class metadata.
    pub metaspace_used_bytes: Option<u64>,
    /// Direct memory as the JDK and Netty count it, or else `Other` of Native Memory Tracking, committed, where NMT is
    /// on and the JVM can be asked; about one sample a second has it.
    #[serde(default)]
    pub direct_bytes: Option<u64>,
    /// Allocated in the Java heap since the JVM began, by all threads; about one sample a second has it.
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
    /// Its name, as asked for.
    pub name: String,
    /// The digest of what it consists of, as its tool prints it.
    pub id: String,
    /// The tool that ran it: `podman` or `docker`.
    #[cfg_attr(test, schemars(extend("enum" = ["podman", "docker"])))]
    pub tool: String,
    /// Its own `JAVA_TOOL_OPTIONS`, which the options of a trial follow; absent where it sets none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_options: String,
    /// Heap options in its own words that win over `JAVA_TOOL_OPTIONS`; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_options: Vec<String>,
}

impl Trial {
    /// The phases that are measured under load: requests were sent, and not to warm up.
    pub fn measured_phases(&self) -> impl Iterator<Item = &PhaseRecord> {
        self.phases.iter().filter(|phase| phase.is_sent() && !phase.is_warmup())
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

    /// Whether it did not do what it was made for. One that failed in a search for the load line did, and so did one of
    /// a tuning: it is an answer.
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

    /// Whether its target held, where it was judged: in a search and in a tuning.
    pub fn verdict(&self) -> Option<ProbeVerdict> {
        let of_search = self.probe.as_ref().map(|probe| probe.verdict);
        of_search.or(self.tuned.as_ref().map(|tuned| tuned.verdict))
    }

    /// The mark at which it weighed more, of loaded and rested.
    pub fn heaviest(&self) -> Option<&Mark> {
        let marks = [MarkPoint::Loaded, MarkPoint::Rested].into_iter().filter_map(|point| self.at(point));
        marks.max_by_key(|mark| mark.weight().1)
    }

    /// The mark of this name.
    pub fn mark(&self, name: &str) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.name == name)
    }

    /// The usual mark of this moment.
    pub fn at(&self, point: MarkPoint) -> Option<&Mark> {
        self.mark(point.word())
    }
}
