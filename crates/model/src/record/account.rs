//! An account as recorded: owners of resident pages, details, and memory that could be returned.

use super::threads::ThreadRecord;
#[cfg(test)]
use loadline_jvm::account::Reason;
use serde::{Deserialize, Serialize};

/// Schema of the output of `loadline account --json`.
pub const ACCOUNT_SCHEMA: &str = "loadline.account/1";

/// The owners of the resident pages of a process. Their RSS, including `unexplained`, adds up to `total_bytes`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AccountRecord {
    /// RSS of the process, summed over its mappings; exactly the sum of the owners.
    pub total_bytes: u64,
    /// PSS of the process: RSS with each shared page divided among the processes that share it.
    pub pss_bytes: u64,
    /// Owners with resident or swapped pages, in account order.
    pub owners: Vec<OwnerRecord>,
    /// RSS without an owner; also the last row of `owners` if it is not 0.
    pub unexplained_bytes: u64,
    /// Ranges of unexplained pages, largest first.
    pub unexplained: Vec<RemainderRecord>,
    /// Predicted memory that could be returned to the system.
    pub would_return: WouldReturn,
    /// The C allocator's heaps; `null` if they were not walked.
    pub malloc: Option<MallocRecord>,
    /// All mappings with resident or swapped pages, in address order; only in the output of `loadline account`.
    pub regions: Option<Vec<RegionRecord>>,
    /// All live threads, largest allocation first; only in the output of `loadline account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<ThreadRecord>>,
    /// Longest pause of all threads; `null` if they were not paused.
    pub pause_ms: Option<f64>,
    /// Time from the first read to the last.
    pub took_ms: f64,
    /// Upper bound on the RSS that the measurement itself has added so far, included in the owners: pages that the
    /// JVM's attach threads touched for the first time; `null` if unknown.
    pub observer_bytes: Option<i64>,
    /// The source of the JVM's memory layout; `null` in older records and for a process that is not a JVM.
    pub told: Option<ToldRecord>,
}

impl AccountRecord {
    /// An account with only these owners, in resident bytes.
    pub fn holding<'n>(owners: impl IntoIterator<Item = (&'n str, u64)>) -> Self {
        let owner = |(name, rss_bytes): (&str, u64)| {
            let name = name.to_owned();
            OwnerRecord { name, rss_bytes, ..OwnerRecord::default() }
        };
        Self { owners: owners.into_iter().map(owner).collect(), ..Self::default() }
    }

    /// Resident bytes of the Java heap, including free memory and garbage.
    pub fn heap_bytes(&self) -> u64 {
        let heap = self.owners.iter().filter(|owner| loadline_jvm::owner::is_heap(&owner.name));
        heap.map(|owner| owner.rss_bytes).fold(0, u64::saturating_add)
    }

    /// The owners outside the Java heap.
    pub fn outside_heap(&self) -> impl Iterator<Item = &OwnerRecord> {
        self.owners.iter().filter(|owner| !loadline_jvm::owner::is_heap(&owner.name))
    }

    /// An owner's resident bytes; 0 if it is not listed.
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
    /// How the layout was read.
    pub by: ToldBy,
    /// Facts missing from the JVM's tables, which were queried from the JVM instead or are unknown; empty if none.
    pub why: String,
}

/// The source of the JVM's memory layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// HotSpot's self-describing tables, read from outside the JVM without querying it.
    #[default]
    Tables,
    /// The JVM itself, over its attach socket.
    Attach,
    /// Only the JVM's counters and the kernel, which locate at most the heap; the JVM did not respond.
    Counters,
}

/// An owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OwnerRecord {
    /// Name, as in `docs/memory.md`: `java_heap.used`, `cds`, `malloc.retained`, `unexplained`; later versions may add
    /// names.
    pub name: String,
    /// Resident memory.
    pub rss_bytes: u64,
    /// PSS: resident memory, with shared pages divided among the processes that share them.
    pub pss_bytes: u64,
    /// Swapped-out memory.
    pub swap_bytes: u64,
    /// Parts, largest first: threads, files, NMT tags, code heaps, tables. They can add up to less than the owner.
    pub detail: Vec<DetailRecord>,
}

/// A part of an owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DetailRecord {
    /// `thread`, `file`, `tag`, `code_heap`, `table`, or `node`; later versions may add kinds.
    pub kind: String,
    /// Thread name, file path, or NMT tag.
    pub name: String,
    /// Number of threads with this name or chunks with this tag; otherwise 1.
    pub count: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Requested bytes, resident or not, if known (malloc chunks).
    pub allocated_bytes: Option<u64>,
}

/// A range of resident memory without an owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemainderRecord {
    /// First address, `0x…`.
    pub start: String,
    /// First address after it, `0x…`.
    pub end: String,
    /// Permissions, such as `rw-p`.
    pub perms: String,
    /// Unexplained resident memory in it.
    pub rss_bytes: u64,
    /// Process with these addresses, if the subject has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Owner or name of the memory directly before it in the address space.
    pub before: String,
    /// Owner or name of the memory directly after it.
    pub behind: String,
}

/// Predicted memory that could be returned to the system.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WouldReturn {
    /// Memory returned by a full GC; `null` if unpredictable.
    pub gc_bytes: Option<u64>,
    /// Growth of RSS instead, because objects move to untouched pages; `null` if `gc_bytes` is `null`.
    pub gc_grown_bytes: Option<u64>,
    /// Reason for the amount, or why it is unknown: `keeps`, `shrinks`, `not_collected`, …; empty in older records.
    #[cfg_attr(test, schemars(extend("enum" = reasons())))]
    pub gc_reason: String,
    /// In words.
    pub gc_why: String,
    /// Memory returned by `System.trim_native_heap` (JDK 17 and newer) or `malloc_trim`; `null` if it cannot be
    /// predicted.
    pub trim_bytes: Option<u64>,
    /// Why `trim_bytes` is unknown, or 0 on musl; otherwise empty.
    pub trim_why: String,
}

/// The possible values of `gc_reason`; empty in older records.
#[cfg(test)]
fn reasons() -> Vec<&'static str> {
    std::iter::once("").chain(Reason::ALL.map(Reason::name)).collect()
}

/// Heaps of the C allocator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MallocRecord {
    /// `glibc`, `jemalloc`, `mimalloc`, `tcmalloc`, or `musl`.
    pub allocator: String,
    /// Number of arenas walked.
    pub arenas: u64,
    /// Resident bytes of free chunks in the arenas of the JIT compiler threads; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers_retained_bytes: Option<u64>,
    /// Resident bytes of chunks in use in the compilers' arenas; absent if unknown, and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers_live_bytes: Option<u64>,
    /// Memory obtained from the system for arenas, resident or not (`system` in `malloc_info`).
    pub system_bytes: u64,
    /// Size of chunks in use, resident or not.
    pub live_bytes: u64,
    /// Size of free chunks, resident or not.
    pub free_bytes: u64,
    /// Size of separately mapped chunks.
    pub mmapped_bytes: u64,
    /// Number of separately mapped chunks.
    pub mmapped_chunks: u64,
    /// Whether NMT headers identify the live chunks.
    pub tagged: bool,
    /// Number of heaps or musl groups that could not be walked to the end; they count as `malloc.unsplit`.
    pub walk_errors: u64,
    /// Number of musl groups walked, including nested ones; `null` for other allocators.
    pub groups: Option<u64>,
    /// Number of chunks in use, excluding separately mapped ones; `null` in older records.
    pub live_chunks: Option<u64>,
    /// Requested size of chunks in use, including separately mapped ones; `null` unless the allocator keeps exact
    /// sizes, as only musl does.
    pub asked_bytes: Option<u64>,
    /// Resident bytes of pages entirely within free musl chunks; `null` for other allocators.
    pub free_pages_bytes: Option<u64>,
    /// Resident bytes that musl (up to 1.2.3) released with `MADV_FREE`, which stay resident until memory is short;
    /// `null` for other allocators.
    pub lazy_free_bytes: Option<u64>,
    /// Environment variables that tune the C allocator, such as `MALLOC_ARENA_MAX=1`; `null` if the environment was not
    /// read.
    pub settings: Option<Vec<String>>,
}

/// A mapping with resident or swapped pages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionRecord {
    /// First address, `0x…`.
    pub start: String,
    /// First address after it, `0x…`.
    pub end: String,
    /// Permissions, such as `rw-p`.
    pub perms: String,
    /// File path, a name in brackets, or empty.
    pub path: String,
    /// Resident memory.
    pub rss_bytes: u64,
    /// PSS: resident memory, with shared pages divided among the processes that share them.
    pub pss_bytes: u64,
    /// Swapped-out memory.
    pub swap_bytes: u64,
    /// Owners and their shares.
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
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = ACCOUNT_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When it was taken: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub taken: String,
    /// The command that repeats it.
    pub command: String,
    /// The bundle of `loadline capture` that it was read from; absent if the JVM itself was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The machine and how busy it was.
    pub machine: super::Machine,
    /// Facts about the JVM.
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
    /// Every flag in effect; absent if the flags could not be read from outside the JVM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<super::FlagsRecord>,
    /// The live objects by class, if requested; counted after the weighing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<super::ObjectsRecord>,
    /// Heap dump, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<super::HeapDumpRecord>,
    /// The code and objects that hold the memory, if requested; recorded after the weighing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<super::ExplanationRecord>,
    /// The findings, most worthwhile first; empty in older documents.
    #[serde(default)]
    pub findings: Vec<super::FindingRecord>,
    /// Causes that were considered, with the evidence against them.
    #[serde(default)]
    pub ruled_out: Vec<super::RuledOutRecord>,
    /// Reasons to distrust it.
    pub doubts: Vec<super::DoubtRecord>,
}
