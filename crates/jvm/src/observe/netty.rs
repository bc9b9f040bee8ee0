//! The report of the agent (`java/agent`) on Netty's buffer pools (4.1.0.CR3 to 4.2), one JSON document:
//!
//! ```text
//! {"libraries":[{"package":"io.netty","version":"4.1.140.Final","allocators":[{"kind":"pooled","arenas":[…]}]}]}
//! ```
//!
//! The report comes out of a foreign process: its size is bounded, its texts are stripped of control characters, its
//! numbers are believed.

use super::Unavailable;
use serde::{Deserialize, Serialize};

const SOURCE: &str = "Netty";
/// 50,000 chunks, the most the agent reports, are about 10 MiB.
pub const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Class and thread names are shorter; what is longer is cut.
const TEXT_CHARS_MAX: usize = 200;
/// As many lists as the agent may fill; more than this is no report of ours.
const ROWS_MAX: usize = 100_000;

/// The pools of every Netty in a JVM at a moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyPools {
    /// Each Netty that is loaded: several where it is shaded or loaded more than once.
    pub libraries: Vec<NettyLibrary>,
    /// Direct memory that the JDK counts against `-XX:MaxDirectMemorySize`; Netty may allocate past it.
    pub jdk_direct: JdkDirect,
    /// The cost of the agent.
    pub agent: AgentCost,
    /// The parts that could not be read, in words.
    pub unread: Vec<String>,
}

/// Direct memory as the JDK counts it; Netty may allocate past it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct JdkDirect {
    /// Reserved by direct buffers; `null` where it could not be read.
    pub reserved_bytes: Option<u64>,
    /// How many there are.
    pub buffers: Option<u64>,
    /// The limit.
    pub max_bytes: Option<u64>,
}

/// The cost to the subject of reading the pools.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct AgentCost {
    /// Version of the agent's report.
    pub version: u64,
    /// From the question to the report, inside the JVM.
    pub took_ms: f64,
    /// The longest time an event loop was held.
    pub loop_ms_max: f64,
    /// Classes the JVM loaded while the report was made.
    pub classes_loaded: Option<u64>,
    /// RSS after minus before; `null` where it was not measured.
    pub rss_bytes: Option<i64>,
    /// Whether it was loaded into the running JVM, not started with it.
    pub attached: bool,
}

/// One Netty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyLibrary {
    /// `io.netty`, or what it was shaded to.
    pub package: String,
    /// `4.1.140.Final`; `null` where its jar does not say.
    pub version: Option<String>,
    /// Event loops that run.
    pub event_loops: u64,
    /// Event loops that answered.
    pub event_loops_read: u64,
    /// Channels registered with the event loops that answered.
    pub channels: u64,
    /// Direct memory by Netty's own counter; `null` where it leaves counting to the JDK.
    pub direct_used_bytes: Option<u64>,
    /// The limit on direct memory that Netty assumes.
    pub direct_max_bytes: Option<u64>,
    /// Allocators that were found.
    pub allocators: Vec<NettyAllocator>,
}

/// One allocator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyAllocator {
    /// Class of the allocator.
    pub class: String,
    /// Tells allocators of one class apart, within one JVM.
    pub id: String,
    /// The way it handles chunks.
    pub kind: NettyKind,
    /// `event loops` (their channels or caches use it), `default`, `static`.
    pub found_by: Vec<String>,
    /// Direct memory it holds, by its own metric; `null` where it has none.
    pub used_direct_bytes: Option<u64>,
    /// Heap memory it holds, likewise.
    pub used_heap_bytes: Option<u64>,
    /// Direct memory in buffers that are handed out; `null` where Netty does not count it.
    pub pinned_direct_bytes: Option<u64>,
    /// Heap memory likewise.
    pub pinned_heap_bytes: Option<u64>,
    /// Thread caches, as Netty counts them.
    pub thread_caches: Option<u64>,
    /// Thread caches that could be read: those of event loops.
    pub thread_caches_read: Option<u64>,
    /// The size of a chunk.
    pub chunk_bytes: Option<u64>,
    /// The arenas; an adaptive allocator has one for each kind of memory here.
    pub arenas: Vec<NettyArena>,
    /// The buffers that thread caches keep, for each thread and size of buffer.
    pub caches: Vec<NettyCache>,
}

/// The way an allocator handles chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyKind {
    /// Arenas hand out parts of chunks, thread caches keep what is freed.
    Pooled,
    /// Chunks as large as recent buffers suggest.
    Adaptive,
    /// None.
    Unpooled,
    /// An allocator that is none of Netty's own.
    #[default]
    #[serde(other)]
    Other,
}

/// The kind of memory that chunks consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyMemory {
    /// Direct memory.
    #[default]
    Direct,
    /// Arrays of the Java heap.
    Heap,
}

/// The place of a chunk in its allocator: an arena's list of chunks about as full, or, in an adaptive one, its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NettyList {
    /// Below a quarter, and not given back when it gets empty.
    #[serde(rename = "qInit")]
    QInit,
    /// Up to a half; given back when it gets empty.
    Q000,
    /// From a quarter.
    Q025,
    /// From a half.
    Q050,
    /// From three quarters.
    Q075,
    /// Full.
    Q100,
    /// Buffers are taken from it.
    Current,
    /// It is the next to be taken from.
    Next,
    /// It waits for its buffers to be freed.
    Reuse,
    /// A list of a version to come.
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
    /// The kind of memory that its chunks consist of.
    pub memory: NettyMemory,
    /// Among those of its memory.
    pub index: u64,
    /// Threads whose cache belongs to it.
    pub thread_caches: Option<u64>,
    /// Chunks and huge buffers.
    pub active_bytes: Option<u64>,
    /// Buffers larger than a chunk, which are not pooled.
    pub huge_bytes: Option<u64>,
    /// Allocations by size; a cached buffer counts as active.
    pub allocations: NettyAllocations,
    /// Every chunk, list by list.
    pub chunks: Vec<NettyChunk>,
    /// Chunks of an adaptive allocator that only their buffers know.
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
    /// So far.
    pub made: Option<u64>,
    /// Not yet given back to the arena.
    pub active: Option<u64>,
}

/// A chunk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyChunk {
    /// The list it is in.
    pub list: NettyList,
    /// As Netty says it; at least 1 where anything is used.
    pub usage_percent: Option<u64>,
    /// Size of the chunk.
    pub bytes: u64,
    /// The bytes that it could hand out; `null` where they are unknown.
    pub free_bytes: Option<u64>,
    /// In buffers that are handed out; `null` where Netty does not count it.
    pub pinned_bytes: Option<u64>,
    /// Freed buffers of it in thread caches.
    pub cached_buffers: u64,
    /// Bytes of the freed buffers in thread caches.
    pub cached_bytes: u64,
    /// The pages they keep in use: a page that small buffers share counts once, in full.
    pub kept_bytes: u64,
}

impl NettyChunk {
    /// Returns the bytes that are not free, or 0 if that is unknown.
    pub fn used_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.free_bytes.unwrap_or(self.bytes))
    }
}

/// Freed buffers of one size in the cache of one thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NettyCache {
    /// Name of the thread.
    pub thread: String,
    /// Position of their arena in the list of arenas.
    pub arena: u64,
    /// Which of the thread's caches.
    pub kind: NettyCacheKind,
    /// Size of one.
    pub buffer_bytes: u64,
    /// How many.
    pub buffers: u64,
    /// Bytes of all the buffers.
    pub bytes: u64,
}

/// Reads the agent's report.
///
/// # Errors
/// Fails if the text is no such document, or too large for one.
pub fn parse(text: &str) -> Result<NettyPools, Unavailable> {
    if text.len() as u64 > REPORT_BYTES_MAX {
        return Err(Unavailable::new(SOURCE, "the agent's report is larger than 16 MiB"));
    }
    let mut pools: NettyPools = serde_json::from_str(text)
        .map_err(|cause| Unavailable::new(SOURCE, format!("this is not a report of the agent: {}", said(&cause))))?;
    let allocators = pools.libraries.iter().flat_map(|library| &library.allocators);
    let rows =
        allocators.map(|one| one.caches.len() + one.arenas.iter().map(|arena| arena.chunks.len()).sum::<usize>());
    if rows.sum::<usize>() > ROWS_MAX {
        return Err(Unavailable::new(SOURCE, format!("the agent's report has more than {ROWS_MAX} chunks and caches")));
    }
    clean_all(&mut pools);
    Ok(pools)
}

/// Cleans every text of a report.
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

/// Describes what is wrong with a report, cleaned because it quotes from the report.
fn said(cause: &serde_json::Error) -> String {
    let mut text = cause.to_string();
    clean(&mut text);
    text
}

/// Takes from a text what would move a cursor or make a line of many.
fn clean(text: &mut String) {
    if text.chars().count() > TEXT_CHARS_MAX || text.contains(char::is_control) {
        let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        *text = text.chars().take(TEXT_CHARS_MAX).map(plain).collect();
    }
}

#[cfg(test)]
#[path = "netty_tests.rs"]
mod tests;
