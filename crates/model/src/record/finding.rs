//! Diagnoses of trials or of an account, with the numbers that show them.

use super::{
    CompilationRecord, DiskFileRecord, LiveClassRecord, LoaderSum, MemoryFilesRecord, NettyChunksRecord,
    StaticCollectionRecord, ThreadValuesRecord,
};
use crate::scenario::Change;
use serde::{Deserialize, Serialize};

/// A diagnosis with its evidence and its words, so that readers need not know every kind.
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
    /// Resident bytes that it costs now; 0 where a risk costs none yet.
    #[serde(default)]
    pub costs_bytes: u64,
    /// The most that resident memory may become less; `null` where that has no bound that is known.
    #[serde(default)]
    pub gain_bytes_max: Option<u64>,
    /// Changes to set, the first one to try first; empty where only people can act, or a user's setting is in the way.
    #[serde(default)]
    pub remedies: Vec<Change>,
}

/// The trials that show a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfTrials {
    /// The configuration it is of.
    pub configuration: String,
    /// Index of the trial whose numbers these are.
    pub trial: u32,
    /// How many trials of the configuration show it.
    pub trials_alike: u32,
}

impl FindingRecord {
    /// By how much resident memory may become less at most, or else what the finding costs.
    pub fn worth_bytes(&self) -> u64 {
        self.gain_bytes_max.unwrap_or(self.costs_bytes)
    }

    /// The configuration it is of; empty for one of an account.
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
        /// The spans that were compared, in time order; each has about as many new loaders for a request.
        spans: Vec<LoaderSpan>,
        /// Loaders of this type that lived after a full collection; `null` where there was none after the spans.
        live_after_gc: Option<LoaderSum>,
    },
    /// Equal loads keep adding class metadata, by whichever loader.
    MetaspaceKeepsGrowing {
        /// The spans that were compared, in time order; each has grown by about as much for a request.
        spans: Vec<GrowthSpan>,
        /// Whether a full collection took less than half of it away; `false` where there was none.
        kept_by_gc: bool,
    },
    /// Chunks that the program freed and malloc keeps.
    MallocRetained {
        /// Resident bytes in them.
        retained_bytes: u64,
        /// Bytes that a trim would return; `null` where they cannot be predicted.
        trim_bytes: Option<u64>,
        /// Arenas of glibc; 0 for an allocator without them.
        arenas: u64,
        /// The allocator.
        allocator: String,
    },
    /// Direct buffers that nobody refers to any more, or may: only a collection frees them, and none comes.
    DirectMemoryWaits {
        /// Bytes that direct buffers have reserved.
        direct_bytes: u64,
        /// How many there are.
        buffers: u64,
        /// Part of it that a full collection left; `null` without one.
        left_by_gc_bytes: Option<u64>,
        /// The most they may reserve; `null` where it is not known.
        ceiling_bytes: Option<u64>,
        /// Collections so far; `null` where they are not counted.
        collections: Option<u64>,
    },
    /// Native memory whose Java owners are garbage: a full collection freed it, and collections come too seldom.
    NativeHeldByGarbage {
        /// Resident bytes that the full collection freed.
        freed_bytes: u64,
        /// The same by owner, the largest first.
        owners: Vec<OwnerFreed>,
        /// Collections before it; `null` where they are not counted.
        collections: Option<u64>,
    },
    /// Direct memory that a full collection leaves: something refers to it.
    DirectMemoryLives {
        /// Bytes that direct buffers have reserved under load.
        direct_bytes: u64,
        /// How many there are.
        buffers: u64,
        /// Bytes that a full collection left; `null` without one.
        left_by_gc_bytes: Option<u64>,
        /// The holder of it.
        holder: DirectHolder,
    },
    /// Memory that a library mapped itself, outside of the JVM and of malloc.
    LibraryMemory {
        /// Resident bytes.
        bytes: u64,
        /// The library that holds most of it, with its allocator where that is known.
        library: String,
    },
    /// G1 keeps objects of half a region and more in regions of their own, and the ends of these regions stay empty.
    HumongousTails {
        /// Objects of that size.
        objects: u64,
        /// Bytes of the objects.
        object_bytes: u64,
        /// Bytes of regions behind them, which nothing else can use.
        tail_bytes: u64,
        /// Size of a region.
        region_bytes: u64,
    },
    /// Many class loaders of one type with a class or two each: metaspace is held by their number.
    LoadersMany {
        /// Class of the loaders.
        loader: String,
        /// How many live.
        now: LoaderSum,
        /// How many of them came during the last phase of load; `null` where that is not known.
        came_last: Option<u64>,
    },
    /// Much of the heap is alive, and static fields keep large collections.
    HeapHeldByStatics {
        /// Heap bytes that a full collection left.
        live_bytes: u64,
        /// The largest collections.
        holders: Vec<StaticCollectionRecord>,
    },
    /// Much of the heap is alive, and hangs on `ThreadLocal` variables.
    HeapHeldByThreadLocals {
        /// Heap bytes that a full collection left.
        live_bytes: u64,
        /// Objects that the variables hold.
        values: ThreadValuesRecord,
    },
    /// Virtual threads are parked, with their stacks in the heap.
    VirtualThreadsParked {
        /// How many there are.
        threads: u64,
        /// Bytes of their stacks.
        stack_bytes: u64,
        /// Heap bytes that a full collection left.
        live_bytes: u64,
    },
    /// Objects wait for their finalizer and keep what they refer to.
    FinalizersWait {
        /// How many have a finalizer that has not run.
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
    /// The program, or a library of it, allocated native memory, and no collection frees it.
    NativeMemoryLives {
        /// By how much it grew from the start of the load, after a full collection.
        bytes: u64,
        /// The same by owner, the largest first.
        owners: Vec<OwnerFreed>,
        /// The source of it, as far as that is known.
        by: NativeHolder,
    },
    /// Files that the program mapped are resident.
    MappedFiles {
        /// Resident pages of them.
        bytes: u64,
        /// The largest, with what of them is resident.
        files: Vec<DiskFileRecord>,
    },
    /// A loader got very many classes while the subject worked: they are generated at run time.
    ClassesGenerated {
        /// Class of the loader.
        loader: String,
        /// By how many the classes of all loaders grew.
        classes: u64,
        /// By how much their metadata grew.
        bytes: u64,
    },
    /// Direct memory is at its ceiling.
    DirectMemoryAtCeiling {
        /// Bytes that direct buffers have reserved.
        direct_bytes: u64,
        /// The most they may reserve.
        ceiling_bytes: u64,
        /// Why nothing was freed.
        cause: CeilingCause,
        /// The error that the subject printed; `null` where it printed none.
        error: Option<String>,
    },
    /// The heap was exhausted.
    HeapExhausted {
        /// The error that the subject printed.
        error: String,
        /// The most that the heap may become; `null` where it is not known.
        max_bytes: Option<u64>,
    },
    /// `-XX:MaxRAMPercentage` has no effect on so little memory.
    HeapShareUnheeded {
        /// The memory that the JVM sees.
        memory_bytes: u64,
        /// The heap that it took.
        heap_bytes_max: u64,
        /// The heap that was asked for.
        asked_bytes: u64,
    },
    /// Threads of one pool came while the subject worked, do next to nothing and do not end.
    ThreadsPileUp {
        /// The pool.
        pool: IdlePool,
        /// By how much the number of all threads grew.
        grown: u64,
    },
    /// One compilation of the JIT takes much memory, which malloc keeps afterwards.
    CompilerPeak {
        /// Bytes that it took at the most.
        bytes: u64,
        /// The largest compilation of that method.
        compilation: CompilationRecord,
    },
    /// Processes that the JVM started and that the same container pays for.
    ChildProcesses {
        /// Bytes that they hold together, shared pages divided among sharers.
        bytes: u64,
        /// By name, the largest sum first.
        programs: Vec<ChildProgram>,
    },
    /// Files in memory (tmpfs, memfd, huge pages) that the JVM has open: charged to its container, and in no RSS.
    FilesInMemory {
        /// Bytes of all of them.
        bytes: u64,
        /// By place, the largest first.
        places: Vec<MemoryFilesRecord>,
    },
    /// The kernel remembers names of files (dentries) for the container: kernel memory, in no RSS.
    KernelRemembersNames {
        /// By how much kernel memory of the cgroup grew while the subject worked.
        kernel_bytes: u64,
        /// By how many names the machine remembers more.
        names: u64,
        /// How many of them are names of files that there are not.
        missing: u64,
    },
    /// Files that the JVM has written are in the page cache of its container: charged, in no RSS, reclaimable.
    PageCacheOfFiles {
        /// By how much the page cache of the cgroup grew.
        bytes: u64,
        /// The open files that grew most, with their growth.
        files: Vec<DiskFileRecord>,
    },
    /// Chunks that Netty holds, of which little is handed out.
    NettyChunksFree {
        /// Direct memory that the allocator holds.
        held_bytes: u64,
        /// Part of it in buffers that are handed out.
        handed_out_bytes: u64,
        /// Class of the allocator.
        allocator: String,
    },
    /// Heap that is committed and resident, and holds no object.
    HeapFree {
        /// How much.
        free_bytes: u64,
        /// All that is committed; `null` where it is not known.
        committed_bytes: Option<u64>,
        /// Whether the subject rested before it was weighed.
        rested: bool,
    },
    /// Far more of the heap is resident than objects live.
    HeapFarAboveLive {
        /// Heap that is resident.
        heap_bytes: u64,
        /// Bytes of the live set, or an upper bound of it.
        live_bytes: u64,
        /// How that is known.
        live_by: LiveBy,
        /// The most the heap may become; `null` where it is not known.
        max_bytes: Option<u64>,
    },
    /// The tables of G1 weigh much beside a small heap.
    G1OnSmallHeap {
        /// Resident bytes of the tables.
        tables_bytes: u64,
        /// Heap that is resident.
        heap_bytes: u64,
    },
    /// The JVM took Serial by itself, and collections take much time under load.
    SerialUnasked {
        /// Time in collections over the time of the load, 0–1.
        gc_share: f64,
        /// CPUs that the subject may use; `null` where it is not pinned.
        cpus: Option<u64>,
    },
    /// Compiled code, and what compilers hold, weighs much.
    CodeLarge {
        /// Resident bytes of the code cache.
        code_bytes: u64,
        /// Bytes of malloc that compilers hold; `null` without Native Memory Tracking.
        compiler_bytes: Option<u64>,
    },
    /// Pools with many threads that do next to nothing.
    ThreadsIdle {
        /// The pools, the largest stacks first.
        pools: Vec<IdlePool>,
    },
    /// The JVM runs without an archive of classes that it could map.
    CdsMissing {
        /// Why.
        cause: CdsCause,
    },
    /// Observers that watch the JVM from inside.
    ObserversOn {
        /// Each of them.
        observers: Vec<ObserverOn>,
    },
    /// Memory in transparent huge pages, each of which is resident as a whole.
    HugePages {
        /// How much.
        huge_bytes: u64,
        /// Whether the JVM was asked to use them (`-XX:+UseTransparentHugePages`).
        asked: bool,
    },
    /// All that may grow, grown to its ceiling, is more than the limit.
    CeilingsAboveLimit {
        /// The limit.
        limit_bytes: u64,
        /// Sum of the ceilings.
        ceilings_bytes: u64,
        /// Each of them, the largest first.
        ceilings: Vec<Ceiling>,
    },
    /// The JVM chose a heap as if there were no limit, or another one.
    LimitNotSeen {
        /// The limit.
        limit_bytes: u64,
        /// The most that the heap may become.
        heap_bytes_max: u64,
        /// Why.
        cause: UnseenCause,
    },
    /// Options that were set and change nothing.
    FlagsIdle {
        /// Each of them.
        flags: Vec<IdleFlag>,
    },
}

impl Finding {
    /// Whether it is about a risk to come, and so is reported whatever it weighs now.
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

    /// Whether both are the same diagnosis of the same thing, with whatever numbers.
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
    /// The mark before.
    pub from: String,
    /// The mark behind.
    pub to: String,
    /// Requests answered correctly in between, or what the subject counted as done.
    pub ok: u64,
    /// New loaders of the type.
    pub added: LoaderSum,
    /// Those that went.
    pub ended: LoaderSum,
}

/// By how much something grew between two marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrowthSpan {
    /// The mark before.
    pub from: String,
    /// The mark behind.
    pub to: String,
    /// Requests answered correctly in between, or what the subject counted as done.
    pub ok: u64,
    /// The growth.
    pub growth_bytes: u64,
}

/// Bytes of an owner: those that a full collection freed, or those that it grew by since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerFreed {
    /// The owner's name.
    pub owner: String,
    /// Bytes that the collection freed, or growth since the start.
    pub bytes: u64,
}

/// The holder of direct memory that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum DirectHolder {
    /// The JDK keeps for each thread the buffer of its largest read or write of a channel (`sun.nio.ch.Util`).
    ThreadCaches {
        /// Bytes in these buffers.
        bytes: u64,
        /// Threads that have any.
        threads: u64,
        /// The largest buffer.
        largest_bytes: u64,
        /// The pool that most of these threads belong to, as far as the kernel keeps its name.
        pool: Option<String>,
        /// What malloc is expected to keep of them once the JDK frees them after each use.
        #[serde(default)]
        malloc_keeps_bytes: u64,
    },
    /// Netty's allocators.
    Netty {
        /// Bytes that Netty counts.
        bytes: u64,
        /// The chunks that hold most of them; absent where they could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunks: Option<NettyChunksRecord>,
        /// Whether the chunks were read after the load, so that no request was under way.
        #[serde(default)]
        rested: bool,
    },
    /// The program itself, or a library of it.
    Program,
}

/// The source of native memory that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum NativeHolder {
    /// Arenas of the foreign memory API (JDK 22 and newer) that nobody closed.
    ForeignArenas {
        /// How many live.
        arenas: u64,
    },
    /// Compressors and decompressors of zlib.
    Zlib {
        /// How many live.
        objects: u64,
    },
    /// A library that is not of the JDK.
    Library {
        /// Its file.
        name: String,
    },
    /// Not known: `Unsafe.allocateMemory`, or native code.
    Unknown,
}

/// Why direct memory at its ceiling is not freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CeilingCause {
    /// `-XX:+DisableExplicitGC`: the collection that the JDK asks for at the ceiling does not come.
    CollectionsDisabled,
    /// The buffers are alive.
    Alive,
    /// Not known.
    Unknown,
}

/// Children of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChildProgram {
    /// The program, at most 15 bytes: the kernel's name for it.
    pub name: String,
    /// How many run.
    pub processes: u64,
    /// Bytes that they hold together.
    pub bytes: u64,
}

/// How the live set is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LiveBy {
    /// A full collection left it.
    FullCollection,
    /// The last collection, of whatever kind, left as much: no more was live then.
    LastCollection,
}

/// A pool of threads that do next to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdlePool {
    /// Their name with `*` for the numbers that differ.
    pub name: String,
    /// How many live.
    pub threads: u64,
    /// Resident pages of their stacks.
    pub stack_bytes: u64,
    /// CPUs that they used, all together, on average since the JVM began.
    pub cpus: f64,
}

/// Why there is no archive of classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum CdsCause {
    /// It was switched off.
    SwitchedOff,
    /// The JDK has none that fits.
    NoArchive,
    /// One was given, and is not mapped.
    NotMapped {
        /// As it was given.
        file: String,
    },
}

/// An observer that watches a JVM from inside, with its measured weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObserverOn {
    /// Which one: `NMT`, `JMX`, `JFR`, or an agent with its file.
    pub what: String,
    /// The least it weighs; `null` where nobody measured it.
    pub bytes_min: Option<u64>,
    /// The most.
    pub bytes_max: Option<u64>,
}

/// A ceiling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// The part that it bounds.
    pub what: String,
    /// How much it may become.
    pub bytes: u64,
}

/// Why a JVM does not see its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnseenCause {
    /// `-XX:-UseContainerSupport`.
    SwitchedOff,
    /// The JVM is older than its support of cgroups v2.
    BeforeCgroupV2,
    /// `-XX:MaxRAM` names more memory than the limit.
    MaxRam,
    /// The JVM looks for controllers in `/proc/cgroups`, which does not list them on this kernel.
    ControllersUnlisted,
    /// The limit is that of a cgroup above, where this release does not look.
    LimitAbove,
    /// The JVM took neither this limit nor the machine's memory: the limit was another one when it started.
    LimitChanged,
    /// Nothing that is known explains it.
    Unknown,
}

/// An option that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleFlag {
    /// As it was typed.
    pub option: String,
    /// Why it changes nothing.
    pub cause: IdleCause,
    /// The option that wins over it, or the collector in force instead; empty where there is none.
    pub by: String,
}

/// Why an option changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IdleCause {
    /// This JVM does not have it.
    Unknown,
    /// Another option wins over it.
    Overridden,
    /// It is for another collector.
    OtherCollector,
    /// It is the default.
    Default,
}
