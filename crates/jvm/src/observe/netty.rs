//! The report of the agent (`java/agent`) on Netty's buffer pools (4.1.0.CR3 to 4.2), one JSON document:
//!
//! ```text
//! {"libraries":[{"package":"io.netty","version":"4.1.140.Final","allocators":[{"kind":"pooled","arenas":[…]}]}]}
//! ```
//!
//! The report comes from a foreign process: its size is limited, control characters are removed from its text, and its
//! numbers are taken at face value.

use super::Unavailable;
use serde::{Deserialize, Serialize};

const SOURCE: &str = "Netty";
/// 50,000 chunks, the agent's maximum, are about 10 MiB.
pub const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Class and thread names are shorter; longer ones are truncated.
const TEXT_CHARS_MAX: usize = 200;
/// The agent's own maximum for all lists; a longer report is not ours.
const ROWS_MAX: usize = 100_000;

/// Pools of all copies of Netty in a JVM.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyPools {
    /// Loaded copies of Netty; several if it is shaded or loaded more than once.
    pub libraries: Vec<NettyLibrary>,
    /// Direct memory that the JDK counts against `-XX:MaxDirectMemorySize`; Netty can allocate outside it.
    pub jdk_direct: JdkDirect,
    /// Overhead of the agent.
    pub agent: AgentCost,
    /// Unreadable parts, in words.
    pub unread: Vec<String>,
}

/// Direct memory by the JDK's count; Netty can allocate outside it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct JdkDirect {
    /// Size reserved by direct buffers; `null` if unreadable.
    pub reserved_bytes: Option<u64>,
    /// Number of buffers.
    pub buffers: Option<u64>,
    /// The limit.
    pub max_bytes: Option<u64>,
}

/// Overhead of the agent that reads Netty's pools.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct AgentCost {
    /// Format version of the agent's report.
    pub version: u64,
    /// Time from request to report, inside the JVM.
    pub took_ms: f64,
    /// Longest time an event loop was blocked.
    pub loop_ms_max: f64,
    /// Classes that the JVM loaded during the report.
    pub classes_loaded: Option<u64>,
    /// RSS after the report minus RSS before it; `null` if not measured.
    pub rss_bytes: Option<i64>,
    /// Whether the agent was loaded into the running JVM rather than at startup.
    pub attached: bool,
}

/// A copy of Netty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyLibrary {
    /// `io.netty`, or its shaded name.
    pub package: String,
    /// Version, such as `4.1.140.Final`; `null` if its jar does not contain it.
    pub version: Option<String>,
    /// Number of running event loops.
    pub event_loops: u64,
    /// Number of event loops that were read.
    pub event_loops_read: u64,
    /// Number of channels registered with the event loops that were read.
    pub channels: u64,
    /// Direct memory by Netty's own counter; `null` if it leaves counting to the JDK.
    pub direct_used_bytes: Option<u64>,
    /// Netty's limit on direct memory.
    pub direct_max_bytes: Option<u64>,
    /// Allocators found.
    pub allocators: Vec<NettyAllocator>,
}

/// One allocator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyAllocator {
    /// Class of the allocator.
    pub class: String,
    /// Distinguishes allocators of one class within a JVM.
    pub id: String,
    /// How it manages chunks.
    pub kind: NettyKind,
    /// `event loops` (their channels or caches use it), `default`, `static`.
    pub found_by: Vec<String>,
    /// Direct memory held, by the allocator's own metric; `null` if it has none.
    pub used_direct_bytes: Option<u64>,
    /// Heap memory held, by the allocator's own metric; `null` if it has none.
    pub used_heap_bytes: Option<u64>,
    /// Direct memory in allocated buffers; `null` if Netty does not count it.
    pub pinned_direct_bytes: Option<u64>,
    /// Heap memory in allocated buffers.
    pub pinned_heap_bytes: Option<u64>,
    /// Number of thread caches, by Netty's count.
    pub thread_caches: Option<u64>,
    /// Number of thread caches read, which are those of event loops.
    pub thread_caches_read: Option<u64>,
    /// Chunk size.
    pub chunk_bytes: Option<u64>,
    /// Arenas; an adaptive allocator has one for each kind of memory.
    pub arenas: Vec<NettyArena>,
    /// Buffers in thread caches, by thread and buffer size.
    pub caches: Vec<NettyCache>,
}

/// How an allocator manages chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyKind {
    /// Arenas allocate parts of chunks; thread caches keep freed parts.
    Pooled,
    /// Chunk sizes follow recent buffer sizes.
    Adaptive,
    /// No chunks.
    Unpooled,
    /// A third-party allocator.
    #[default]
    #[serde(other)]
    Other,
}

/// Kind of memory of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyMemory {
    /// Direct memory.
    #[default]
    Direct,
    /// Arrays in the Java heap.
    Heap,
}

/// State of a chunk in its allocator: an arena's list by fill level, or, in an adaptive allocator, its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyList {
    /// Less than a quarter full; kept when it becomes empty.
    #[serde(rename = "qInit")]
    QInit,
    /// Up to half full; released when it becomes empty.
    Q000,
    /// At least a quarter full.
    Q025,
    /// At least half full.
    Q050,
    /// At least three quarters full.
    Q075,
    /// Full.
    Q100,
    /// Buffers are allocated from it.
    Current,
    /// Next to allocate buffers from.
    Next,
    /// Waiting for its buffers to be freed.
    Reuse,
    /// A list in an unknown version of Netty.
    #[default]
    #[serde(other)]
    Other,
}

/// Which of a thread's caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyCacheKind {
    /// The cache of buffers below 512 bytes, in versions that have it.
    Tiny,
    /// The cache of buffers below a page.
    Small,
    /// The cache of buffers of whole pages.
    #[default]
    Normal,
}

/// An arena.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyArena {
    /// Kind of memory of its chunks.
    pub memory: NettyMemory,
    /// Index among the arenas of its kind of memory.
    pub index: u64,
    /// Number of threads whose cache belongs to it.
    pub thread_caches: Option<u64>,
    /// Size of chunks and huge buffers.
    pub active_bytes: Option<u64>,
    /// Size of buffers larger than a chunk, which are not pooled.
    pub huge_bytes: Option<u64>,
    /// Allocations by size; a cached buffer counts as active.
    pub allocations: NettyAllocations,
    /// All chunks, list by list.
    pub chunks: Vec<NettyChunk>,
    /// Size of an adaptive allocator's chunks that are reachable only through their buffers.
    pub unreached_bytes: Option<u64>,
}

/// Allocations by size; a cached buffer counts as active.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyAllocations {
    /// Below a page.
    pub small: NettyAllocated,
    /// Pages of a chunk.
    pub normal: NettyAllocated,
    /// Larger than a chunk.
    pub huge: NettyAllocated,
}

/// Allocations of one size.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyAllocated {
    /// Number made so far.
    pub made: Option<u64>,
    /// Number not yet returned to the arena.
    pub active: Option<u64>,
}

/// A chunk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyChunk {
    /// The list that contains it.
    pub list: NettyList,
    /// Usage by Netty's count; at least 1 if anything is used.
    pub usage_percent: Option<u64>,
    /// Size of the chunk.
    pub bytes: u64,
    /// Size available for allocation; `null` if unknown.
    pub free_bytes: Option<u64>,
    /// Size of allocated buffers; `null` if Netty does not count it.
    pub pinned_bytes: Option<u64>,
    /// Number of its free buffers in thread caches.
    pub cached_buffers: u64,
    /// Size of these buffers.
    pub cached_bytes: u64,
    /// Size of the pages that these buffers keep in use; a page shared by small buffers counts once, in full.
    pub kept_bytes: u64,
}

impl NettyChunk {
    /// Returns the bytes that are not free, or 0 if that is unknown.
    pub fn used_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.free_bytes.unwrap_or(self.bytes))
    }
}

/// Free buffers of one size in a thread's cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyCache {
    /// Name of the thread.
    pub thread: String,
    /// Index of their arena.
    pub arena: u64,
    /// Which of the thread's caches it is.
    pub kind: NettyCacheKind,
    /// Size of one buffer.
    pub buffer_bytes: u64,
    /// Number of buffers.
    pub buffers: u64,
    /// Total size of the buffers.
    pub bytes: u64,
}

/// Parses the agent's report. Fails if the text is not such a document, or is too large.
pub fn parse(text: &str) -> Result<NettyPools, Unavailable> {
    if text.len() as u64 > REPORT_BYTES_MAX {
        return Err(Unavailable::new(SOURCE, "the agent's report is larger than 16 MiB"));
    }
    let mut pools: NettyPools = serde_json::from_str(text)
        .map_err(|cause| Unavailable::new(SOURCE, format!("this is not a report from the agent: {}", said(&cause))))?;
    let allocators = pools.libraries.iter().flat_map(|library| &library.allocators);
    let rows =
        allocators.map(|one| one.caches.len() + one.arenas.iter().map(|arena| arena.chunks.len()).sum::<usize>());
    if rows.sum::<usize>() > ROWS_MAX {
        return Err(Unavailable::new(SOURCE, format!("the agent's report has more than {ROWS_MAX} chunks and caches")));
    }
    clean_all(&mut pools);
    Ok(pools)
}

/// Cleans every string in a report.
fn clean_all(pools: &mut NettyPools) {
    pools.unread.iter_mut().for_each(clean);
    for library in &mut pools.libraries {
        clean(&mut library.package);
        library.version.iter_mut().for_each(clean);
        for allocator in &mut library.allocators {
            clean(&mut allocator.class);
            clean(&mut allocator.id);
            allocator.found_by.iter_mut().for_each(clean);
            allocator.caches.iter_mut().for_each(|cache| clean(&mut cache.thread));
        }
    }
}

/// Describes what is wrong with a report; cleaned, because it quotes from the report.
fn said(cause: &serde_json::Error) -> String {
    let mut text = cause.to_string();
    clean(&mut text);
    text
}

/// Removes characters that would move a cursor or break the line.
fn clean(text: &mut String) {
    if text.chars().count() > TEXT_CHARS_MAX || text.contains(char::is_control) {
        let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        *text = text.chars().take(TEXT_CHARS_MAX).map(plain).collect();
    }
}

#[cfg(test)]
#[path = "netty_tests.rs"]
mod tests;
