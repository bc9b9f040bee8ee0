//! Diagnoses of trials or of an account, with the numbers that show them.

use super::{
    CompilationRecord, DiskFileRecord, LiveClassRecord, LoaderSum, MemoryFilesRecord, NettyChunksRecord, ProcessRecord,
    StaticCollectionRecord, ThreadValuesRecord,
};
use crate::scenario::Change;
use loadline_base::order::Order as _;
use serde::{Deserialize, Serialize};

/// A diagnosis with its evidence and wording, so that readers need not know every kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRecord {
    /// The diagnosis with its evidence.
    pub finding: Finding,
    /// The trials that show it; absent in the document of `loadline account`.
    #[serde(flatten)]
    pub of: Option<OfTrials>,
    /// The observation in words.
    pub text: String,
    /// One thing to do.
    pub next: String,
    /// Resident bytes that it costs now; 0 for a risk that costs none yet.
    #[serde(default)]
    pub costs_bytes: u64,
    /// Upper bound of the possible reduction of resident memory; `null` if no bound is known.
    #[serde(default)]
    pub gain_bytes_max: Option<u64>,
    /// Changes to apply, in the order to try them; empty if only people can act or a user's setting is in the way.
    #[serde(default)]
    pub remedies: Vec<Change>,
}

/// The trials that show a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfTrials {
    /// The configuration.
    pub configuration: String,
    /// Index of the trial that the numbers come from.
    pub trial: u32,
    /// Number of trials of the configuration that show it.
    pub trials_alike: u32,
}

impl FindingRecord {
    /// The upper bound of the possible reduction of resident memory, or else the cost of the finding.
    pub fn worth_bytes(&self) -> u64 {
        self.gain_bytes_max.unwrap_or(self.costs_bytes)
    }

    /// Its configuration; empty for a finding of an account.
    pub fn configuration(&self) -> &str {
        self.of.as_ref().map_or("", |of| of.configuration.as_str())
    }
}

/// A cause that was considered, with the evidence against it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuledOutRecord {
    /// The kind of the finding that would name the cause, such as `malloc_retained`.
    pub kind: String,
    /// The trials of the evidence; absent in the document of `loadline account`.
    #[serde(flatten)]
    pub of: Option<OfTrials>,
    /// The evidence against it in words.
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
        /// The compared spans, in time order; each has about the same number of new loaders per request.
        spans: Vec<LoaderSpan>,
        /// Loaders of this type alive after a full collection; `null` if there was none after the spans.
        live_after_gc: Option<LoaderSum>,
    },
    /// Equal loads keep adding class metadata, in any loader.
    MetaspaceKeepsGrowing {
        /// The compared spans, in time order; each grew by about the same amount per request.
        spans: Vec<GrowthSpan>,
        /// Whether a full collection freed less than half of it; `false` if there was none.
        kept_by_gc: bool,
    },
    /// Chunks that the program freed but malloc keeps.
    MallocRetained {
        /// Resident bytes in them.
        retained_bytes: u64,
        /// Bytes that a trim would return; `null` if they cannot be predicted.
        trim_bytes: Option<u64>,
        /// Arenas of glibc; 0 for an allocator without them.
        arenas: u64,
        /// The allocator.
        allocator: String,
    },
    /// Direct buffers that are, or may be, unreachable. Only a collection frees them, and none comes.
    DirectMemoryWaits {
        /// Bytes that direct buffers have reserved.
        direct_bytes: u64,
        /// Number of buffers.
        buffers: u64,
        /// Part of it that a full collection left; `null` without one.
        left_by_gc_bytes: Option<u64>,
        /// The most that they may reserve; `null` if unknown.
        ceiling_bytes: Option<u64>,
        /// Collections so far; `null` if they are not counted.
        collections: Option<u64>,
    },
    /// Native memory whose Java owners are garbage: a full collection freed it, and collections are too rare.
    NativeHeldByGarbage {
        /// Resident bytes that the full collection freed.
        freed_bytes: u64,
        /// The same by owner, largest first.
        owners: Vec<OwnerFreed>,
        /// Collections before it; `null` if they are not counted.
        collections: Option<u64>,
    },
    /// Direct memory that survives a full collection because something refers to it.
    DirectMemoryLives {
        /// Bytes that direct buffers have reserved under load.
        direct_bytes: u64,
        /// Number of buffers.
        buffers: u64,
        /// Bytes that a full collection left; `null` without one.
        left_by_gc_bytes: Option<u64>,
        /// Its holder.
        holder: DirectHolder,
    },
    /// Memory that a library mapped itself, outside the JVM and malloc.
    LibraryMemory {
        /// Resident bytes.
        bytes: u64,
        /// The library that holds most of it, with its allocator if known.
        library: String,
    },
    /// G1 keeps objects of half a region or more in their own regions, and the ends of these regions stay empty.
    HumongousTails {
        /// Objects of that size.
        objects: u64,
        /// Bytes of the objects.
        object_bytes: u64,
        /// Bytes of regions after these objects, which nothing else can use.
        tail_bytes: u64,
        /// Size of a region.
        region_bytes: u64,
    },
    /// Many class loaders of one type with one or two classes each; their number takes up the metaspace.
    LoadersMany {
        /// Class of the loaders.
        loader: String,
        /// The live loaders.
        now: LoaderSum,
        /// Number of them that were added during the last phase of load; `null` if unknown.
        came_last: Option<u64>,
    },
    /// Much of the heap is live, and static fields keep large collections.
    HeapHeldByStatics {
        /// Heap bytes that a full collection left.
        live_bytes: u64,
        /// The largest collections.
        holders: Vec<StaticCollectionRecord>,
    },
    /// Much of the heap is live and held by `ThreadLocal` variables.
    HeapHeldByThreadLocals {
        /// Heap bytes that a full collection left.
        live_bytes: u64,
        /// Objects that the variables hold.
        values: ThreadValuesRecord,
    },
    /// Virtual threads are parked, with their stacks in the heap.
    VirtualThreadsParked {
        /// Number of parked virtual threads.
        threads: u64,
        /// Bytes of their stacks.
        stack_bytes: u64,
        /// Heap bytes that a full collection left.
        live_bytes: u64,
    },
    /// Objects wait for their finalizer and keep the objects they refer to alive.
    FinalizersWait {
        /// Number of objects whose finalizer has not run.
        waiting: u64,
        /// Heap bytes that a full collection left.
        live_bytes: u64,
        /// The heaviest classes.
        classes: Vec<LiveClassRecord>,
    },
    /// Most of RSS is live heap, and its holder was not found.
    HeapLives {
        /// Heap bytes that a full collection left.
        live_bytes: u64,
        /// The heaviest classes.
        classes: Vec<LiveClassRecord>,
    },
    /// The program, or one of its libraries, allocated native memory that no collection frees.
    NativeMemoryLives {
        /// Growth since the start of the load, after a full collection.
        bytes: u64,
        /// The same by owner, largest first.
        owners: Vec<OwnerFreed>,
        /// Its source, if known.
        by: NativeHolder,
    },
    /// Files that the program mapped are resident.
    MappedFiles {
        /// Their resident pages.
        bytes: u64,
        /// The largest files, with their resident size.
        files: Vec<DiskFileRecord>,
    },
    /// A loader gained very many classes while the subject worked: they are generated at run time.
    ClassesGenerated {
        /// Class of the loader.
        loader: String,
        /// Growth in classes of all loaders.
        classes: u64,
        /// Growth of their metadata.
        bytes: u64,
    },
    /// Direct memory is at its ceiling.
    DirectMemoryAtCeiling {
        /// Bytes that direct buffers have reserved.
        direct_bytes: u64,
        /// The most that they may reserve.
        ceiling_bytes: u64,
        /// Why nothing was freed.
        cause: CeilingCause,
        /// The error that the subject printed; `null` if it printed none.
        error: Option<String>,
    },
    /// The heap was exhausted.
    HeapExhausted {
        /// The error that the subject printed.
        error: String,
        /// Maximum heap size; `null` if unknown.
        max_bytes: Option<u64>,
    },
    /// `-XX:MaxRAMPercentage` has no effect with so little memory.
    HeapShareUnheeded {
        /// The memory that the JVM sees.
        memory_bytes: u64,
        /// The heap that the JVM chose.
        heap_bytes_max: u64,
        /// The requested heap.
        asked_bytes: u64,
    },
    /// Threads of one pool were added while the subject worked, hardly work and do not end.
    ThreadsPileUp {
        /// The pool.
        pool: IdlePool,
        /// Growth in the number of all threads.
        grown: u64,
    },
    /// One JIT compilation takes much memory, which malloc keeps afterwards.
    CompilerPeak {
        /// Peak bytes that it took.
        bytes: u64,
        /// The largest compilation of that method.
        compilation: CompilationRecord,
    },
    /// Processes that the JVM started and that are charged to the same container.
    ChildProcesses {
        /// Total bytes that they hold, with shared pages divided among sharers.
        bytes: u64,
        /// The processes by program name, largest sum first.
        programs: Vec<ChildProgram>,
    },
    /// In-memory files (tmpfs, memfd, huge pages) that the JVM has open: charged to its container, but not part of its
    /// RSS.
    FilesInMemory {
        /// Bytes of all of them.
        bytes: u64,
        /// The files by location, largest first.
        places: Vec<MemoryFilesRecord>,
    },
    /// The kernel caches file names (dentries) for the container: kernel memory, which is not part of RSS.
    KernelRemembersNames {
        /// Growth of the cgroup's kernel memory while the subject worked.
        kernel_bytes: u64,
        /// Growth in file names cached on the machine.
        names: u64,
        /// Part of `names` that are names of files that do not exist.
        missing: u64,
    },
    /// Files that the JVM has written are in the page cache of its container: charged, not part of RSS, reclaimable.
    PageCacheOfFiles {
        /// Growth of the cgroup's page cache.
        bytes: u64,
        /// The open files that grew most, with their growth.
        files: Vec<DiskFileRecord>,
    },
    /// Netty holds chunks of which little is handed out.
    NettyChunksFree {
        /// Direct memory that the allocator holds.
        held_bytes: u64,
        /// Part of it in buffers that are handed out.
        handed_out_bytes: u64,
        /// Class of the allocator.
        allocator: String,
    },
    /// Heap that is committed and resident but holds no objects.
    HeapFree {
        /// Size of this heap.
        free_bytes: u64,
        /// All committed heap; `null` if unknown.
        committed_bytes: Option<u64>,
        /// Whether the subject rested before it was weighed.
        rested: bool,
    },
    /// The resident heap is far larger than the live set.
    HeapFarAboveLive {
        /// Resident heap.
        heap_bytes: u64,
        /// Bytes of the live set, or an upper bound of it.
        live_bytes: u64,
        /// How the live set is known.
        live_by: LiveBy,
        /// Maximum heap size; `null` if unknown.
        max_bytes: Option<u64>,
    },
    /// The tables of G1 are large compared with a small heap.
    G1OnSmallHeap {
        /// Resident bytes of the tables.
        tables_bytes: u64,
        /// Resident heap.
        heap_bytes: u64,
    },
    /// The JVM chose Serial by itself, and collections take much time under load.
    SerialUnasked {
        /// Time in collections divided by the time of the load, 0–1.
        gc_share: f64,
        /// CPUs that the subject may use; `null` if it is not pinned.
        cpus: Option<u64>,
    },
    /// Compiled code and the memory of the compilers are large.
    CodeLarge {
        /// Resident bytes of the code cache.
        code_bytes: u64,
        /// Bytes of malloc that compilers hold; `null` without Native Memory Tracking.
        compiler_bytes: Option<u64>,
    },
    /// Pools with many threads that hardly worked.
    ThreadsIdle {
        /// The pools, the largest stacks first.
        pools: Vec<IdlePool>,
    },
    /// The JVM runs without a class archive that it could map.
    CdsMissing {
        /// Why it runs without one.
        cause: CdsCause,
    },
    /// Observers that watch the JVM from inside.
    ObserversOn {
        /// The observers.
        observers: Vec<ObserverOn>,
    },
    /// Memory in transparent huge pages, each of which is resident as a whole.
    HugePages {
        /// Size of this memory.
        huge_bytes: u64,
        /// Whether the JVM was asked to use them (`-XX:+UseTransparentHugePages`).
        asked: bool,
    },
    /// The ceilings of everything that may grow add up to more than the limit.
    CeilingsAboveLimit {
        /// The limit.
        limit_bytes: u64,
        /// Sum of the ceilings.
        ceilings_bytes: u64,
        /// The ceilings, largest first.
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
    /// Whether it is about a future risk, and so is reported whatever it weighs now.
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

    /// Whether the finding is true of nearly every JVM. Such a finding says little next to a cause of the same weight.
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

    /// Its kind, as a document has it: `malloc_retained`.
    pub fn kind(&self) -> String {
        let document = serde_json::to_value(self).unwrap_or_default();
        document.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
    }

    /// Whether both are the same diagnosis of the same thing, with any numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::LoadersKeepComing { loader: one, .. }, Self::LoadersKeepComing { loader: other, .. })
            | (Self::LoadersMany { loader: one, .. }, Self::LoadersMany { loader: other, .. }) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Loaders that a stretch between two marks added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoaderSpan {
    /// The mark at its start.
    pub from: String,
    /// The mark at its end.
    pub to: String,
    /// Requests answered correctly in between, or the work that the subject counted as done.
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
    /// Requests answered correctly in between, or the work that the subject counted as done.
    pub ok: u64,
    /// The growth.
    pub growth_bytes: u64,
}

/// Bytes of an owner: freed by a full collection, or grown since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerFreed {
    /// The owner's name.
    pub owner: String,
    /// Bytes that the collection freed, or growth since the start.
    pub bytes: u64,
}

/// The holder of live direct memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum DirectHolder {
    /// For each thread, the JDK keeps the buffer of its largest channel read or write (`sun.nio.ch.Util`).
    ThreadCaches {
        /// Bytes in these buffers.
        bytes: u64,
        /// Threads that have such a buffer.
        threads: u64,
        /// The largest buffer.
        largest_bytes: u64,
        /// The pool that most of these threads belong to; the kernel may truncate its name.
        pool: Option<String>,
        /// Bytes of them that malloc is expected to keep once the JDK frees them after each use.
        #[serde(default)]
        malloc_keeps_bytes: u64,
    },
    /// Netty's allocators.
    Netty {
        /// Bytes that Netty counts.
        bytes: u64,
        /// The chunks that hold most of them; absent if they could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunks: Option<NettyChunksRecord>,
        /// Whether the chunks were read after the load, so that no request was in flight.
        #[serde(default)]
        rested: bool,
    },
    /// The program itself, or one of its libraries.
    Program,
}

/// The source of live native memory.
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
    /// `-XX:+DisableExplicitGC` suppresses the collection that the JDK requests at the ceiling.
    CollectionsDisabled,
    /// The buffers are alive.
    Alive,
    /// Unknown.
    Unknown,
}

/// Processes of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChildProgram {
    /// The program, at most 15 bytes: the kernel's name for it.
    pub name: String,
    /// Number of running processes.
    pub processes: u64,
    /// Total bytes that they hold.
    pub bytes: u64,
}

impl ChildProgram {
    /// These processes by program, the largest first.
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
    /// It is the heap that a full collection left.
    FullCollection,
    /// It is at most the heap that the last collection of any kind left.
    LastCollection,
}

/// A pool of threads that hardly worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdlePool {
    /// Their name with `*` for the numbers that differ.
    pub name: String,
    /// Number of live threads.
    pub threads: u64,
    /// Resident pages of their stacks.
    pub stack_bytes: u64,
    /// CPUs that they used in total, on average: over the load of a trial, else since the JVM started.
    pub cpus: f64,
}

/// Why there is no class archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum CdsCause {
    /// It was switched off.
    SwitchedOff,
    /// The JDK has no archive that fits.
    NoArchive,
    /// An archive was given but is not mapped.
    NotMapped {
        /// The archive as given.
        file: String,
    },
}

/// An observer that watches a JVM from inside, with its measured weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObserverOn {
    /// The observer: `NMT`, `JMX`, `JFR`, or an agent with its file.
    pub what: String,
    /// The least that it weighs; `null` if it was never measured.
    pub bytes_min: Option<u64>,
    /// The most that it weighs.
    pub bytes_max: Option<u64>,
}

/// A ceiling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// The part that it bounds.
    pub what: String,
    /// The size that this part may grow to.
    pub bytes: u64,
}

/// Why a JVM does not see its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnseenCause {
    /// `-XX:-UseContainerSupport`.
    SwitchedOff,
    /// The JVM predates its support of cgroups v2.
    BeforeCgroupV2,
    /// `-XX:MaxRAM` names more memory than the limit.
    MaxRam,
    /// The JVM looks for controllers in `/proc/cgroups`, which does not list them on this kernel.
    ControllersUnlisted,
    /// The limit belongs to an ancestor cgroup, where this release does not look.
    LimitAbove,
    /// The JVM took neither this limit nor the machine's memory: the limit was different when it started.
    LimitChanged,
    /// No known cause explains it.
    Unknown,
}

/// An option that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleFlag {
    /// The option as typed.
    pub option: String,
    /// Why it has no effect.
    pub cause: IdleCause,
    /// The option that overrides it, or the collector in force instead; empty if there is none.
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
    /// It is for another collector.
    OtherCollector,
    /// It is the default.
    Default,
}
