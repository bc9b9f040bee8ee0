//! The account at a moment, as recorded: owners of the resident pages, their details, memory that could be returned.

use super::threads::ThreadRecord;
#[cfg(test)]
use loadline_jvm::account::Reason;
use serde::{Deserialize, Serialize};

/// Schema of the document that `loadline account --json` prints.
pub const ACCOUNT_SCHEMA: &str = "loadline.account/1";

/// The owners of the resident pages of a process. Their RSS, including `unexplained`, adds up to `total_bytes`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AccountRecord {
    /// RSS of the process, as the kernel counts its mappings; the exact sum of the owners.
    pub total_bytes: u64,
    /// The same, with shared pages divided among sharers.
    pub pss_bytes: u64,
    /// Owners that hold something, in the order of the account.
    pub owners: Vec<OwnerRecord>,
    /// RSS without an owner; also the last row of `owners` if it is not 0.
    pub unexplained_bytes: u64,
    /// Stretches of unexplained pages, largest first.
    pub unexplained: Vec<RemainderRecord>,
    /// Memory that could be returned to the system.
    pub would_return: WouldReturn,
    /// The C allocator's heaps; `null` if they were not walked.
    pub malloc: Option<MallocRecord>,
    /// All mappings that hold something, in address order; only in the document of `loadline account`.
    pub regions: Option<Vec<RegionRecord>>,
    /// All live threads, largest allocation first; only in the document of `loadline account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<ThreadRecord>>,
    /// The longest time all threads were paused; `null` if the process was not stopped.
    pub pause_ms: Option<f64>,
    /// Time from the first query to the last.
    pub took_ms: f64,
    /// Upper bound of the RSS that weighing itself has added so far, included in the owners: pages that the JVM's
    /// answering threads touched for the first time. `null` if unknown.
    pub observer_bytes: Option<i64>,
    /// The source of the JVM's memory layout; `null` in older records and for a process that is not a JVM.
    pub told: Option<ToldRecord>,
}

impl AccountRecord {
    /// An account with nothing but these owners, in resident bytes.
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

    /// The owners outside the Java heap.
    pub fn outside_heap(&self) -> impl Iterator<Item = &OwnerRecord> {
        self.owners.iter().filter(|owner| !loadline_jvm::owner::is_heap(&owner.name))
    }

    /// Resident bytes of the owner of this name; 0 if it is not listed.
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
    /// The JVM's own tables, or the JVM itself.
    pub by: ToldBy,
    /// Facts that its tables lack: the JVM was asked for them, or they are unknown if it cannot be asked. Empty
    /// otherwise.
    pub why: String,
}

/// The source of the JVM's memory layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// The tables in which HotSpot describes itself, read from outside; the JVM was not asked.
    #[default]
    Tables,
    /// The JVM, asked through its attach socket.
    Attach,
}

/// One owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OwnerRecord {
    /// Its name, as in `docs/memory.md`: `java_heap.used`, `cds`, `malloc.retained`, `unexplained`; more names are
    /// possible.
    pub name: String,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory, with shared pages divided among sharers.
    pub pss_bytes: u64,
    /// Swapped-out memory.
    pub swap_bytes: u64,
    /// Parts of it, largest first: threads, files, NMT tags, code heaps, tables. May add up to less than the owner.
    pub detail: Vec<DetailRecord>,
}

/// A part of an owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DetailRecord {
    /// The kind of part: `thread`, `file`, `tag`, `code_heap`, `table` or `node`; more kinds are possible.
    pub kind: String,
    /// Name of the thread, path of the file, NMT's name of the tag.
    pub name: String,
    /// Number of threads of this name or chunks of this tag; 1 otherwise.
    pub count: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Requested bytes, resident or not, if known (chunks of malloc).
    pub allocated_bytes: Option<u64>,
}

/// A stretch of resident memory without an owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemainderRecord {
    /// First address, `0x…`.
    pub start: String,
    /// First address after it, `0x…`.
    pub end: String,
    /// Permissions as the kernel writes them: `rw-p`.
    pub perms: String,
    /// Resident and unexplained memory in it.
    pub rss_bytes: u64,
    /// The process whose addresses these are, if several form the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Owner or name of the memory directly before it in the address space.
    pub before: String,
    /// Owner or name of the memory directly after it.
    pub behind: String,
}

/// Predicted memory that could be returned to the system; `null` if it cannot be predicted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WouldReturn {
    /// Memory returned by a full collection; `null` if it cannot be predicted.
    pub gc_bytes: Option<u64>,
    /// Growth of RSS instead, because objects move to pages that are still empty; `null` if `gc_bytes` is `null`.
    pub gc_grown_bytes: Option<u64>,
    /// Why the amount is what it is, or why it is unknown: `keeps`, `shrinks`, `not_collected` …; empty in older
    /// records.
    #[cfg_attr(test, schemars(extend("enum" = reasons())))]
    pub gc_reason: String,
    /// The same in words.
    pub gc_why: String,
    /// Memory returned by `System.trim_native_heap` (JDK 17 and newer) or `malloc_trim`; `null` if it cannot be
    /// predicted.
    pub trim_bytes: Option<u64>,
    /// Why `trim_bytes` is unknown, or nothing on musl; empty if there is nothing to explain.
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
    /// Resident bytes of free chunks in the arenas that the JIT's compiler threads allocate from; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers_retained_bytes: Option<u64>,
    /// Resident bytes of chunks in use in those arenas; `null` as above, and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers_live_bytes: Option<u64>,
    /// Memory taken from the system for arenas, resident or not (`system` in `malloc_info`).
    pub system_bytes: u64,
    /// Bytes in chunks in use, resident or not.
    pub live_bytes: u64,
    /// Bytes in free chunks, resident or not.
    pub free_bytes: u64,
    /// Bytes in chunks with a mapping of their own.
    pub mmapped_bytes: u64,
    /// Chunks with a mapping of their own.
    pub mmapped_chunks: u64,
    /// Whether NMT headers identify the live chunks.
    pub tagged: bool,
    /// Heaps, or groups of musl, that could not be walked to the end; they count as `malloc.unsplit`.
    pub walk_errors: u64,
    /// Groups walked, including nested ones; `null` for allocators other than musl's.
    pub groups: Option<u64>,
    /// Chunks in use, excluding those with a mapping of their own; `null` in older records.
    pub live_chunks: Option<u64>,
    /// Bytes that the program requested in chunks in use, including those with a mapping of their own. `null` if the
    /// allocator keeps only rounded sizes, as all but musl's do.
    pub asked_bytes: Option<u64>,
    /// Resident bytes of pages that lie entirely within free chunks of musl; `null` for other allocators.
    pub free_pages_bytes: Option<u64>,
    /// Resident bytes that `MADV_FREE` (up to musl 1.2.3) gave back in mappings with musl chunks. They count as
    /// resident until memory is short; `null` for other allocators.
    pub lazy_free_bytes: Option<u64>,
    /// Environment variables of the process that tune a C allocator, as set: `MALLOC_ARENA_MAX=1`; `null` if the
    /// environment was not read.
    pub settings: Option<Vec<String>>,
}

/// One mapping that holds something.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionRecord {
    /// First address, `0x…`.
    pub start: String,
    /// First address after it, `0x…`.
    pub end: String,
    /// Permissions as the kernel writes them: `rw-p`.
    pub perms: String,
    /// The file, a name in brackets, or empty.
    pub path: String,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory, with shared pages divided among sharers.
    pub pss_bytes: u64,
    /// Swapped-out memory.
    pub swap_bytes: u64,
    /// Its owners, each with its share.
    pub owners: Vec<ShareRecord>,
}

/// An owner's share of a mapping.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShareRecord {
    /// The owner's name.
    pub name: String,
    /// Resident memory.
    pub rss_bytes: u64,
}

/// The document that `loadline account --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountDocument {
    /// The type of this document and the version of its format.
    #[cfg_attr(test, schemars(extend("const" = ACCOUNT_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When it was taken: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub taken: String,
    /// The command that repeats it.
    pub command: String,
    /// The bundle of `loadline capture` that it was read from; absent where the JVM itself was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The machine and how busy it was.
    pub machine: super::Machine,
    /// Facts found about the JVM.
    pub jvm: super::Jvm,
    /// The command line of the process.
    pub subject_command: Vec<String>,
    /// Identity of the process; absent in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<super::IdentityRecord>,
    /// The weighing, with its account.
    pub mark: super::Mark,
    /// The largest RSS since the start; absent in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes_peak: Option<u64>,
    /// Every flag in force; absent if the flags could not be read from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<super::FlagsRecord>,
    /// The live objects by class, if they were requested; taken after the weighing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<super::ObjectsRecord>,
    /// The heap dump, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<super::HeapDumpRecord>,
    /// The code and the objects that hold the memory, if that was requested; recorded after the weighing.
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
