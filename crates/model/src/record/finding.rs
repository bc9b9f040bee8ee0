//! Diagnoses of trials or an account, with supporting numbers.

use super::{
    CompilationRecord, DiskFileRecord, LiveClassRecord, LoaderSum, MemoryFilesRecord, NettyChunksRecord, ProcessRecord,
    StaticCollectionRecord, ThreadValuesRecord,
};
use crate::scenario::Change;
use loadline_base::order::Order as _;
use serde::{Deserialize, Serialize};

/// A diagnosis with its evidence, and text for readers that do not know its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRecord {
    /// The diagnosis with its evidence.
    pub finding: Finding,
    /// The trials that show it; absent in the document of `loadline account`.
    #[serde(flatten)]
    pub of: Option<OfTrials>,
    /// Explanation in words.
    pub text: String,
    /// The next step.
    pub next: String,
    /// Current cost in resident bytes; 0 for a risk.
    #[serde(default)]
    pub costs_bytes: u64,
    /// Upper bound on the possible savings in resident memory; `null` if unknown.
    #[serde(default)]
    pub gain_bytes_max: Option<u64>,
    /// Changes to try, in order; empty if the fix is manual or conflicts with a user's setting.
    #[serde(default)]
    pub remedies: Vec<Change>,
}

/// The trials that show a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfTrials {
    /// The configuration.
    pub configuration: String,
    /// Index of the trial with these numbers.
    pub trial: u32,
    /// Number of the configuration's trials that show it.
    pub trials_alike: u32,
}

impl FindingRecord {
    /// The maximum reduction of resident memory, or else the finding's weight.
    pub fn worth_bytes(&self) -> u64 {
        self.gain_bytes_max.unwrap_or(self.costs_bytes)
    }

    /// Its configuration; empty for an account's finding.
    pub fn configuration(&self) -> &str {
        self.of.as_ref().map_or("", |of| of.configuration.as_str())
    }
}

/// A cause that was considered, with the evidence against it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuledOutRecord {
    /// Kind of the finding for this cause, such as `malloc_retained`.
    pub kind: String,
    /// The trials of the evidence; absent in the document of `loadline account`.
    #[serde(flatten)]
    pub of: Option<OfTrials>,
    /// Evidence against it, in words.
    pub text: String,
}

/// A diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// Equal loads keep adding class loaders of one type.
    LoadersKeepComing {
        /// Class of the loaders.
        loader: String,
        /// Compared spans, in time order; each added about the same number of loaders per request.
        spans: Vec<LoaderSpan>,
        /// Live loaders of this type after a full GC; `null` if no full GC followed the spans.
        live_after_gc: Option<LoaderSum>,
    },
    /// Equal loads keep adding class metadata, in any loader.
    MetaspaceKeepsGrowing {
        /// Compared spans, in time order; each grew by about the same amount per request.
        spans: Vec<GrowthSpan>,
        /// Whether a full GC freed less than half the growth; `false` without a full GC.
        kept_by_gc: bool,
    },
    /// Chunks that the program freed but malloc keeps.
    MallocRetained {
        /// Resident bytes of free chunks.
        retained_bytes: u64,
        /// Size that a trim would return; `null` if unpredictable.
        trim_bytes: Option<u64>,
        /// Number of glibc arenas; 0 for other allocators.
        arenas: u64,
        /// The allocator.
        allocator: String,
    },
    /// Direct buffers that are, or may be, unreachable. Only a GC frees them, and none runs.
    DirectMemoryWaits {
        /// Direct memory reserved.
        direct_bytes: u64,
        /// Number of buffers.
        buffers: u64,
        /// Part of it left by a full GC; `null` without one.
        left_by_gc_bytes: Option<u64>,
        /// Maximum that buffers can reserve; `null` if unknown.
        ceiling_bytes: Option<u64>,
        /// Number of GCs so far; `null` if not counted.
        collections: Option<u64>,
    },
    /// Native memory whose Java owners are garbage: a full GC freed it, and GCs are too rare.
    NativeHeldByGarbage {
        /// Resident bytes freed by the full GC.
        freed_bytes: u64,
        /// By owner, largest first.
        owners: Vec<OwnerFreed>,
        /// Number of earlier GCs; `null` if not counted.
        collections: Option<u64>,
    },
    /// Direct memory that survives a full GC because something still references it.
    DirectMemoryLives {
        /// Direct memory reserved under load.
        direct_bytes: u64,
        /// Number of buffers.
        buffers: u64,
        /// Size left by a full GC; `null` without one.
        left_by_gc_bytes: Option<u64>,
        /// Its holder.
        holder: DirectHolder,
    },
    /// Memory that a library mapped itself, outside the JVM and malloc.
    LibraryMemory {
        /// Resident bytes.
        bytes: u64,
        /// Library that holds most of it, with its allocator if known.
        library: String,
    },
    /// G1 keeps objects of half a region or more in their own regions, and the ends of these regions stay empty.
    HumongousTails {
        /// Number of such objects.
        objects: u64,
        /// Size of the objects.
        object_bytes: u64,
        /// Unusable space after these objects in their regions.
        tail_bytes: u64,
        /// Size of a region.
        region_bytes: u64,
    },
    /// Many class loaders of one type with one or two classes each; together, they take up the metaspace.
    LoadersMany {
        /// Class of the loaders.
        loader: String,
        /// The live loaders.
        now: LoaderSum,
        /// Number added during the last load phase; `null` if unknown.
        came_last: Option<u64>,
    },
    /// Much of the heap is live, and static fields keep large collections.
    HeapHeldByStatics {
        /// Heap bytes left by a full GC.
        live_bytes: u64,
        /// The largest collections.
        holders: Vec<StaticCollectionRecord>,
    },
    /// Much of the heap is live and held by `ThreadLocal` variables.
    HeapHeldByThreadLocals {
        /// Heap bytes left by a full GC.
        live_bytes: u64,
        /// Objects held by the variables.
        values: ThreadValuesRecord,
    },
    /// Virtual threads are parked, with their stacks in the heap.
    VirtualThreadsParked {
        /// Number of parked virtual threads.
        threads: u64,
        /// Size of their stacks.
        stack_bytes: u64,
        /// Heap bytes left by a full GC.
        live_bytes: u64,
    },
    /// Objects wait for their finalizer and keep the objects they refer to alive.
    FinalizersWait {
        /// Number of objects waiting for their finalizer.
        waiting: u64,
        /// Heap bytes left by a full GC.
        live_bytes: u64,
        /// The largest classes.
        classes: Vec<LiveClassRecord>,
    },
    /// Most of RSS is live heap, and its holder was not found.
    HeapLives {
        /// Heap bytes left by a full GC.
        live_bytes: u64,
        /// The largest classes.
        classes: Vec<LiveClassRecord>,
    },
    /// The program, or one of its libraries, allocated native memory that no GC frees.
    NativeMemoryLives {
        /// Growth since the start of the load, after a full GC.
        bytes: u64,
        /// By owner, largest first.
        owners: Vec<OwnerFreed>,
        /// Its source, if known.
        by: NativeHolder,
    },
    /// Files that the program mapped are resident.
    MappedFiles {
        /// Their resident pages.
        bytes: u64,
        /// Largest files, by resident size.
        files: Vec<DiskFileRecord>,
    },
    /// A loader gained many classes while the subject worked: they are generated at run time.
    ClassesGenerated {
        /// Class of the loader.
        loader: String,
        /// Growth in the number of classes, across all loaders.
        classes: u64,
        /// Growth of class metadata.
        bytes: u64,
    },
    /// Direct memory is at its ceiling.
    DirectMemoryAtCeiling {
        /// Direct memory reserved.
        direct_bytes: u64,
        /// Maximum that buffers can reserve.
        ceiling_bytes: u64,
        /// Why nothing was freed.
        cause: CeilingCause,
        /// Error printed by the subject; `null` if none.
        error: Option<String>,
    },
    /// The heap was exhausted.
    HeapExhausted {
        /// Error printed by the subject.
        error: String,
        /// Maximum heap size; `null` if unknown.
        max_bytes: Option<u64>,
    },
    /// `-XX:MaxRAMPercentage` has no effect with so little memory.
    HeapShareUnheeded {
        /// Memory that the JVM detected.
        memory_bytes: u64,
        /// Heap size chosen by the JVM.
        heap_bytes_max: u64,
        /// Requested heap size.
        asked_bytes: u64,
    },
    /// Threads of one pool were added while the subject worked; they are almost idle and do not exit.
    ThreadsPileUp {
        /// The pool.
        pool: IdlePool,
        /// Growth in the total number of threads.
        grown: u64,
    },
    /// One JIT compilation uses a lot of memory, which malloc keeps afterward.
    CompilerPeak {
        /// Peak size.
        bytes: u64,
        /// Largest compilation of the method.
        compilation: CompilationRecord,
    },
    /// Processes that the JVM started and that are charged to the same container.
    ChildProcesses {
        /// Total PSS.
        bytes: u64,
        /// Processes by program name, largest total first.
        programs: Vec<ChildProgram>,
    },
    /// In-memory files (tmpfs, memfd, huge pages) that the JVM has open: charged to its container, but not part of its
    /// RSS.
    FilesInMemory {
        /// Total size.
        bytes: u64,
        /// Files by mount point, largest first.
        places: Vec<MemoryFilesRecord>,
    },
    /// The kernel caches file names (dentries) for the container: kernel memory, which is not part of RSS.
    KernelRemembersNames {
        /// Growth of the cgroup's kernel memory under load.
        kernel_bytes: u64,
        /// Growth in the number of file names cached on the machine.
        names: u64,
        /// Part of `names` for files that do not exist (negative dentries).
        missing: u64,
    },
    /// Files that the JVM has written are in the page cache of its container: charged, not part of RSS, reclaimable.
    PageCacheOfFiles {
        /// Growth of the cgroup's page cache.
        bytes: u64,
        /// Open files that grew most, with their growth.
        files: Vec<DiskFileRecord>,
    },
    /// Netty holds chunks that are mostly free.
    NettyChunksFree {
        /// Direct memory held by the allocator.
        held_bytes: u64,
        /// Part of it in allocated buffers.
        handed_out_bytes: u64,
        /// Class of the allocator.
        allocator: String,
    },
    /// Heap that is committed and resident but holds no objects.
    HeapFree {
        /// Size of the free heap.
        free_bytes: u64,
        /// Committed heap; `null` if unknown.
        committed_bytes: Option<u64>,
        /// Whether the subject was idle before the measurement.
        rested: bool,
    },
    /// The resident heap is far larger than the live set.
    HeapFarAboveLive {
        /// Resident heap.
        heap_bytes: u64,
        /// Live set, or an upper bound on it.
        live_bytes: u64,
        /// How the live set is known.
        live_by: LiveBy,
        /// Maximum heap size; `null` if unknown.
        max_bytes: Option<u64>,
    },
    /// G1's tables are large compared with a small heap.
    G1OnSmallHeap {
        /// Resident bytes of the tables.
        tables_bytes: u64,
        /// Resident heap.
        heap_bytes: u64,
    },
    /// The JVM chose Serial on its own, and GCs take a lot of time under load.
    SerialUnasked {
        /// Share of the load time spent in GC, 0–1.
        gc_share: f64,
        /// Number of CPUs available to the subject; `null` if not pinned.
        cpus: Option<u64>,
    },
    /// Compiled code and the memory of the compilers are large.
    CodeLarge {
        /// Resident bytes of the code cache.
        code_bytes: u64,
        /// Malloc memory held by the compilers; `null` without Native Memory Tracking.
        compiler_bytes: Option<u64>,
    },
    /// Pools with many threads that were almost idle.
    ThreadsIdle {
        /// Pools, largest stacks first.
        pools: Vec<IdlePool>,
    },
    /// The JVM runs without a mapped class archive.
    CdsMissing {
        /// Why it runs without an archive.
        cause: CdsCause,
    },
    /// Observers that watch the JVM from inside.
    ObserversOn {
        /// The observers.
        observers: Vec<ObserverOn>,
    },
    /// Memory in transparent huge pages, each of which is resident as a whole.
    HugePages {
        /// Memory in huge pages.
        huge_bytes: u64,
        /// Whether the JVM was set to use them (`-XX:+UseTransparentHugePages`).
        asked: bool,
    },
    /// The ceilings of everything that can grow add up to more than the limit.
    CeilingsAboveLimit {
        /// The limit.
        limit_bytes: u64,
        /// Sum of the ceilings.
        ceilings_bytes: u64,
        /// Ceilings, largest first.
        ceilings: Vec<Ceiling>,
    },
    /// The JVM chose its heap as if there were no limit or a different one.
    LimitNotSeen {
        /// The limit.
        limit_bytes: u64,
        /// Maximum heap size.
        heap_bytes_max: u64,
        /// Why the JVM did not see the limit.
        cause: UnseenCause,
    },
    /// Options that were set but have no effect.
    FlagsIdle {
        /// The options.
        flags: Vec<IdleFlag>,
    },
}

impl Finding {
    /// Whether it is a future risk, which is reported regardless of its current weight.
    pub fn is_risk(&self) -> bool {
        matches!(
            self,
            Self::LoadersKeepComing { .. }
                | Self::MetaspaceKeepsGrowing { .. }
                | Self::SerialUnasked { .. }
                | Self::CeilingsAboveLimit { .. }
                | Self::LimitNotSeen { .. }
                | Self::FlagsIdle { .. }
                | Self::HumongousTails { .. }
                | Self::HeapShareUnheeded { .. }
                | Self::HeapExhausted { .. }
                | Self::DirectMemoryAtCeiling { .. }
        )
    }

    /// Whether it is true of nearly every JVM, and therefore says less than a cause of the same weight.
    pub fn is_habit(&self) -> bool {
        matches!(
            self,
            Self::MallocRetained { .. }
                | Self::HeapFree { .. }
                | Self::HeapFarAboveLive { .. }
                | Self::G1OnSmallHeap { .. }
                | Self::CodeLarge { .. }
                | Self::ThreadsIdle { .. }
                | Self::CdsMissing { .. }
        )
    }

    /// Its kind as in documents: `malloc_retained`.
    pub fn kind(&self) -> String {
        let document = serde_json::to_value(self).unwrap_or_default();
        document.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
    }

    /// Whether both are the same diagnosis, possibly with different numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::LoadersKeepComing { loader: one, .. }, Self::LoadersKeepComing { loader: other, .. })
            | (Self::LoadersMany { loader: one, .. }, Self::LoadersMany { loader: other, .. }) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Loaders added between two marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoaderSpan {
    /// The mark at its start.
    pub from: String,
    /// The mark at its end.
    pub to: String,
    /// Correct responses in between, or work that the subject counted as done.
    pub ok: u64,
    /// New loaders of the type.
    pub added: LoaderSum,
    /// Loaders that no longer exist.
    pub ended: LoaderSum,
}

/// Growth between two marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrowthSpan {
    /// The mark at its start.
    pub from: String,
    /// The mark at its end.
    pub to: String,
    /// Correct responses in between, or work that the subject counted as done.
    pub ok: u64,
    /// The growth.
    pub growth_bytes: u64,
}

/// Change of an owner: freed by a full GC, or grown since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerFreed {
    /// The owner's name.
    pub owner: String,
    /// Size freed by the GC, or growth since the start.
    pub bytes: u64,
}

/// What holds live direct memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum DirectHolder {
    /// For each thread, the JDK keeps the buffer of its largest channel read or write (`sun.nio.ch.Util`).
    ThreadCaches {
        /// Total size of these buffers.
        bytes: u64,
        /// Number of threads with such a buffer.
        threads: u64,
        /// Size of the largest buffer.
        largest_bytes: u64,
        /// Pool of most of these threads; the kernel may truncate its name.
        pool: Option<String>,
        /// Expected size that malloc retains if the JDK frees these buffers after each use.
        #[serde(default)]
        malloc_keeps_bytes: u64,
    },
    /// Netty's allocators.
    Netty {
        /// Direct memory by Netty's own count.
        bytes: u64,
        /// Chunks that hold most of it; absent if they could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunks: Option<NettyChunksRecord>,
        /// Whether the chunks were read after the load, with no request in flight.
        #[serde(default)]
        rested: bool,
    },
    /// The program itself, or one of its libraries.
    Program,
}

/// What holds live native memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum NativeHolder {
    /// Arenas of the foreign memory API (JDK 22 and newer) that were not closed.
    ForeignArenas {
        /// Number of live arenas.
        arenas: u64,
    },
    /// Compressors and decompressors of zlib.
    Zlib {
        /// Number of live objects.
        objects: u64,
    },
    /// A library outside the JDK.
    Library {
        /// Its file.
        name: String,
    },
    /// Unknown: `Unsafe.allocateMemory`, or native code.
    Unknown,
}

/// Why direct memory at its ceiling is not freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CeilingCause {
    /// `-XX:+DisableExplicitGC` suppresses the GC that the JDK requests at the ceiling.
    CollectionsDisabled,
    /// The buffers are live.
    Alive,
    /// Unknown.
    Unknown,
}

/// Processes of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChildProgram {
    /// Kernel name of the program, at most 15 bytes.
    pub name: String,
    /// Number of running processes.
    pub processes: u64,
    /// Total size.
    pub bytes: u64,
}

impl ChildProgram {
    /// These processes by program, largest first.
    pub fn of(processes: &[ProcessRecord]) -> Vec<Self> {
        let mut programs: Vec<Self> = Vec::new();
        for process in processes {
            match programs.iter_mut().find(|program| program.name == process.name) {
                Some(program) => {
                    program.processes += 1;
                    program.bytes = program.bytes.saturating_add(process.bytes());
                }
                None => programs.push(Self { name: process.name.clone(), processes: 1, bytes: process.bytes() }),
            }
        }
        programs.largest_first(|program| program.bytes);
        programs
    }
}

/// How the live set is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LiveBy {
    /// Heap left by a full GC.
    FullCollection,
    /// Upper bound: heap left by the last GC of any kind.
    LastCollection,
}

/// A pool of mostly idle threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdlePool {
    /// Thread name with `*` for varying numbers.
    pub name: String,
    /// Number of live threads.
    pub threads: u64,
    /// Resident size of their stacks.
    pub stack_bytes: u64,
    /// Average number of CPUs used by all of them, during the load of a trial or since the JVM started.
    pub cpus: f64,
}

/// Why the JVM runs without a CDS archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum CdsCause {
    /// It was switched off.
    SwitchedOff,
    /// The JDK has no archive that fits.
    NoArchive,
    /// An archive was specified but is not mapped.
    NotMapped {
        /// Archive path as specified.
        file: String,
    },
}

/// An observer inside the JVM, with its measured memory cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObserverOn {
    /// `NMT`, `JMX`, `JFR`, or an agent with its file.
    pub what: String,
    /// Minimum memory cost; `null` if never measured.
    pub bytes_min: Option<u64>,
    /// Maximum memory cost.
    pub bytes_max: Option<u64>,
}

/// An upper bound on one part of the JVM's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// The bounded part.
    pub what: String,
    /// Maximum size of this part.
    pub bytes: u64,
}

/// Why a JVM does not see its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnseenCause {
    /// `-XX:-UseContainerSupport`.
    SwitchedOff,
    /// The JVM is too old to support cgroup v2.
    BeforeCgroupV2,
    /// `-XX:MaxRAM` is larger than the limit.
    MaxRam,
    /// The JVM relies on `/proc/cgroups`, which does not list the controllers on this kernel.
    ControllersUnlisted,
    /// The limit is set on an ancestor cgroup, which this release ignores.
    LimitAbove,
    /// The limit was different when the JVM started.
    LimitChanged,
    /// No known cause explains it.
    Unknown,
}

/// An option that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleFlag {
    /// The option as given.
    pub option: String,
    /// Why it has no effect.
    pub cause: IdleCause,
    /// Option that overrides it, or the collector in effect; empty if there is none.
    pub by: String,
}

/// Why an option has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IdleCause {
    /// This JVM does not have it.
    Unknown,
    /// Another option overrides it.
    Overridden,
    /// It applies to another collector.
    OtherCollector,
    /// It is the default.
    Default,
}
