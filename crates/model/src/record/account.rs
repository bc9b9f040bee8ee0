//! The account at a moment, as recorded: owners of the resident pages, their details, what could come back.

use super::threads::ThreadRecord;
#[cfg(test)]
use loadline_jvm::account::Reason;
use serde::{Deserialize, Serialize};

/// Schema of the document that `loadline account --json` prints.
pub const ACCOUNT_SCHEMA: &str = "loadline.account/1";

/// The owners of the resident pages of a process. Their RSS, with `unexplained` among them, adds up to `total_bytes`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AccountRecord {
    /// RSS of the process as the kernel weighs its mappings; the exact sum of the owners.
    pub total_bytes: u64,
    /// The same, shared pages divided among sharers.
    pub pss_bytes: u64,
    /// Owners that hold something, in the order of the account.
    pub owners: Vec<OwnerRecord>,
    /// RSS without an owner; also the last row of `owners` where it is not 0.
    pub unexplained_bytes: u64,
    /// Stretches of unexplained pages, largest first.
    pub unexplained: Vec<RemainderRecord>,
    /// Memory that could come back to the system.
    pub would_return: WouldReturn,
    /// The C allocator's heaps; `null` where they were not walked.
    pub malloc: Option<MallocRecord>,
    /// All mappings that hold something, in address order; only in the document of `loadline account`.
    pub regions: Option<Vec<RegionRecord>>,
    /// All threads that live, those that allocated most first; only in the document of `loadline account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<ThreadRecord>>,
    /// The longest time all threads were paused; `null` where the process was not stopped.
    pub pause_ms: Option<f64>,
    /// From the first question to the last.
    pub took_ms: f64,
    /// RSS that weighing itself added so far at most, contained in the owners: the pages that the threads of the JVM
    /// which answer touched for the first time; `null` where it is not known.
    pub observer_bytes: Option<i64>,
    /// The source of the JVM's memory layout; `null` in older records and for a process that is no JVM.
    pub told: Option<ToldRecord>,
}

impl AccountRecord {
    /// An account of nothing but what these owners hold, in resident bytes.
    pub fn holding<'n>(owners: impl IntoIterator<Item = (&'n str, u64)>) -> Self {
        let owner = |(name, rss_bytes): (&str, u64)| {
            let name = name.to_owned();
            OwnerRecord { name, rss_bytes, ..OwnerRecord::default() }
        };
        Self { owners: owners.into_iter().map(owner).collect(), ..Self::default() }
    }

    /// Resident bytes of the Java heap, whatever it holds.
    pub fn heap_bytes(&self) -> u64 {
        let heap = self.owners.iter().filter(|owner| loadline_jvm::owner::is_heap(&owner.name));
        heap.map(|owner| owner.rss_bytes).fold(0, u64::saturating_add)
    }

    /// Resident bytes of the owner of this name; 0 of one that it does not list.
    pub fn holds(&self, owner: &str) -> u64 {
        let own = self.owners.iter().filter(|known| known.name == owner);
        own.map(|known| known.rss_bytes).fold(0, u64::saturating_add)
    }
}

/// The source of the JVM's memory layout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToldRecord {
    /// Its own tables, or itself.
    pub by: ToldBy,
    /// Facts that its tables lack: asked of the JVM, or unknown where it cannot be asked; empty otherwise.
    pub why: String,
}

/// The source of the JVM's memory layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// The tables in which HotSpot describes itself, read from outside: nothing was asked of the JVM for it.
    #[default]
    Tables,
    /// The JVM, which was asked by its attach socket.
    Attach,
}

/// One owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OwnerRecord {
    /// Its name, as in `docs/memory.md`: `java_heap.used`, `cds`, `malloc.retained`, `unexplained`; there may be more.
    pub name: String,
    /// Resident.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among sharers.
    pub pss_bytes: u64,
    /// Swapped out.
    pub swap_bytes: u64,
    /// Parts of it, largest first: threads, files, NMT tags, code heaps, tables. May add up to less than the owner.
    pub detail: Vec<DetailRecord>,
}

/// A part of an owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DetailRecord {
    /// The kind of part: `thread`, `file`, `tag`, `code_heap`, `table` or `node`; there may be more.
    pub kind: String,
    /// Name of the thread, path of the file, NMT's name of the tag.
    pub name: String,
    /// How many there are: threads of this name, chunks of this tag; 1 otherwise.
    pub count: u64,
    /// Resident.
    pub rss_bytes: u64,
    /// Asked for, resident or not, where that is known (chunks of malloc).
    pub allocated_bytes: Option<u64>,
}

/// A stretch of resident memory without an owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemainderRecord {
    /// First address, `0x…`.
    pub start: String,
    /// First address behind, `0x…`.
    pub end: String,
    /// As the kernel writes them: `rw-p`.
    pub perms: String,
    /// Resident and unexplained in it.
    pub rss_bytes: u64,
    /// The process whose addresses these are, where several form the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Owner or name of what lies directly before it in the address space.
    pub before: String,
    /// Owner or name of what lies directly behind it.
    pub behind: String,
}

/// Memory that could come back to the system, as predicted; `null` where it cannot be predicted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WouldReturn {
    /// By a full collection; `null` where it cannot be predicted.
    pub gc_bytes: Option<u64>,
    /// By how much RSS grows instead, since objects move to pages that hold nothing yet; `null` where `gc_bytes` is.
    pub gc_grown_bytes: Option<u64>,
    /// Why it is so much, or why it is unknown: `keeps`, `shrinks`, `not_collected` …; empty in older records.
    #[cfg_attr(test, schemars(extend("enum" = reasons())))]
    pub gc_reason: String,
    /// The same in words.
    pub gc_why: String,
    /// By `System.trim_native_heap` (JDK 17 and newer) or `malloc_trim`; `null` where it cannot be predicted.
    pub trim_bytes: Option<u64>,
    /// Why `trim_bytes` is unknown, or nothing on musl; empty where there is nothing to say.
    pub trim_why: String,
}

/// Names in documents of why a collection returns what it does; empty in older records.
#[cfg(test)]
fn reasons() -> Vec<&'static str> {
    std::iter::once("").chain(Reason::ALL.map(Reason::name)).collect()
}

/// The heaps of the C allocator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MallocRecord {
    /// Its name: `glibc`, `jemalloc`, `mimalloc`, `tcmalloc` or `musl`.
    pub allocator: String,
    /// Arenas walked.
    pub arenas: u64,
    /// Resident bytes of free chunks in the arenas that the JIT's compiler threads allocate from; absent where that is
    /// not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers_retained_bytes: Option<u64>,
    /// Resident bytes of chunks in use in those arenas; `null` as above, and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers_live_bytes: Option<u64>,
    /// Taken from the system for arenas, resident or not (what `malloc_info` calls system).
    pub system_bytes: u64,
    /// Bytes in chunks in use, resident or not.
    pub live_bytes: u64,
    /// Bytes in free chunks, resident or not.
    pub free_bytes: u64,
    /// Bytes in chunks with a mapping of their own.
    pub mmapped_bytes: u64,
    /// Chunks with a mapping of their own.
    pub mmapped_chunks: u64,
    /// Whether live chunks are told apart by NMT's headers.
    pub tagged: bool,
    /// Heaps, or groups of musl, that could not be walked to their end; they count as `malloc.unsplit`.
    pub walk_errors: u64,
    /// Groups walked, nested ones too; `null` for an allocator without them, as all but musl's are.
    pub groups: Option<u64>,
    /// Chunks in use, without those mapped alone; `null` in older records.
    pub live_chunks: Option<u64>,
    /// Bytes that the program asked for in chunks in use, those mapped alone included; `null` where the allocator keeps
    /// only rounded sizes, as all but musl's do.
    pub asked_bytes: Option<u64>,
    /// Resident bytes of pages that lie wholly in free chunks of musl; `null` for other allocators.
    pub free_pages_bytes: Option<u64>,
    /// Resident bytes that `MADV_FREE` (up to musl 1.2.3) gave back in mappings with chunks of musl; they count as
    /// resident until memory is short; `null` for other allocators.
    pub lazy_free_bytes: Option<u64>,
    /// Variables of the process's environment that tune a C allocator, as they are set: `MALLOC_ARENA_MAX=1`; `null`
    /// where the environment was not read.
    pub settings: Option<Vec<String>>,
}

/// One mapping that holds something.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionRecord {
    /// First address, `0x…`.
    pub start: String,
    /// First address behind, `0x…`.
    pub end: String,
    /// As the kernel writes them: `rw-p`.
    pub perms: String,
    /// The file, a name in brackets, or empty.
    pub path: String,
    /// Resident.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among sharers.
    pub pss_bytes: u64,
    /// Swapped out.
    pub swap_bytes: u64,
    /// Its owners, each with its part.
    pub owners: Vec<ShareRecord>,
}

/// An owner's part of a mapping.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShareRecord {
    /// The owner's name.
    pub name: String,
    /// Resident.
    pub rss_bytes: u64,
}

/// The charge of a memory cgroup, by kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChargeRecord {
    /// All of it; what the limit is compared with.
    pub usage_bytes: u64,
    /// Pages of no file.
    pub anon_bytes: u64,
    /// Page cache, without shared memory.
    pub file_bytes: u64,
    /// Shared memory and tmpfs.
    pub shmem_bytes: u64,
    /// The kernel's own: page tables, stacks, slab; `null` where the cgroup does not say.
    pub kernel_bytes: Option<u64>,
    /// The smallest limit of this cgroup and those above it; `null` where there is none.
    pub limit_bytes: Option<u64>,
    /// `v1` or `v2`.
    #[cfg_attr(test, schemars(extend("enum" = ["v1", "v2"])))]
    pub version: String,
    /// The cgroup's folder below its mount, such as `/system.slice/app.service`.
    pub cgroup: String,
    /// Processes in it.
    pub processes: u64,
    /// The cgroup above that carries the limit; absent where it is this one, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_cgroup: Option<String>,
    /// On cgroup v2: controllers that `/proc/cgroups` does not list as enabled, of those that JDKs without JDK-8349988
    /// look for there; absent where it lists all of them or cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<String>,
}

/// The document that `loadline account --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountDocument {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = ACCOUNT_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When it was taken: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub taken: String,
    /// The command that repeats it.
    pub command: String,
    /// The machine and how busy it was.
    pub machine: super::Machine,
    /// Facts found about the JVM.
    pub jvm: super::Jvm,
    /// The command line of the process.
    pub subject_command: Vec<String>,
    /// Which process it is; absent in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<super::IdentityRecord>,
    /// The weighing, with its account.
    pub mark: super::Mark,
    /// Every flag in force; absent where they could not be read from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<super::FlagsRecord>,
    /// The live objects by class, where they were asked for; taken after the weighing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<super::ObjectsRecord>,
    /// The heap dump, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<super::HeapDumpRecord>,
    /// Which code and which objects hold the memory, where that was asked for; recorded after the weighing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<super::ExplanationRecord>,
    /// The findings, the most worthwhile first; empty in older documents.
    #[serde(default)]
    pub findings: Vec<super::FindingRecord>,
    /// Causes that were considered, with the evidence against them.
    #[serde(default)]
    pub ruled_out: Vec<super::RuledOutRecord>,
    /// Reasons to distrust it.
    pub doubts: Vec<super::DoubtRecord>,
}
