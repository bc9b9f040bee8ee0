//! Netty's pools in words: a cell per chunk, cached and used buffers, and why chunks linger.

use super::cells::{mib, size, sum};
use crate::page::{Facts, Part};
use crate::record::{
    Mark, NettyAllocator, NettyArena, NettyCache, NettyChunk, NettyKind, NettyLibrary, NettyList, NettyMemory,
    NettyPools, Trial, each_once,
};
use crate::table::Table;
use crate::units::{Bytes, Growth, grouped, milliseconds, several};
use crate::words::{dash, name_of};
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// Characters for a chunk's usage from empty to full, in tenths.
const SHADES: [char; 10] = ['_', '.', ':', '~', '=', '+', '*', '#', '%', '@'];
/// Cells per line.
const CELLS: usize = 20;
/// Maximum cells per arena and mark, and maximum arenas, on a page; the JSON document has all of them.
const CELLS_MAX: usize = 400;
const ARENAS_MAX: usize = 64;
/// A chunk lingers if cached buffers account for at least this share of its used memory: without them, it could be
/// returned. The rest of its used memory is in pages of small buffers, of which an arena keeps one per size.
const CAUSE_MIN: f64 = 0.9;
/// Maximum number of cached buffer sizes listed.
const SIZES_MAX: usize = 5;
/// As of this release, a JVM warns about agents loaded at run time.
const WARNS_FROM: u32 = 21;

/// A chunk's usage: 0 for empty, 9 for full, in tenths.
fn shade(chunk: &NettyChunk) -> usize {
    let used = u128::from(chunk.used_bytes());
    match (used, u128::from(chunk.bytes)) {
        (0, _) | (_, 0) => 0,
        (used, all) if used >= all => 9,
        (used, all) => 1 + (used * 8 / all) as usize,
    }
}

pub(super) fn pools(pools: &NettyPools, release: Option<u32>) -> Part {
    let mut blocks = Vec::new();
    if pools.libraries.is_empty() {
        blocks.push(Part::Text("Netty is not loaded in this JVM, shaded or otherwise.".to_owned()));
    }
    for library in &pools.libraries {
        blocks.push(Part::Facts(library_facts(library, pools)));
        for allocator in &library.allocators {
            blocks.push(allocator_blocks(allocator));
        }
    }
    blocks.push(Part::Facts(own_facts(pools, release)));
    Part::under("Netty's pools", blocks)
}

fn library_facts(library: &NettyLibrary, pools: &NettyPools) -> Vec<(String, String)> {
    let version = library.version.as_deref().unwrap_or("of unknown version");
    let loops = match (library.event_loops, library.event_loops_read) {
        (all, read) if all == read => several(all, "event loop"),
        (all, read) => format!("{read} of {all} event loops responded"),
    };
    let netty = format!("{version} as {}, {loops}, {}", library.package, several(library.channels, "channel"));
    let own = library.direct_used_bytes.map(|used| format!("{} according to Netty's counter", Bytes(used)));
    let own = own.unwrap_or_else(|| "not counted by Netty".to_owned());
    let jdk = &pools.jdk_direct;
    let buffers = jdk.buffers.map_or_else(dash, grouped);
    let jdk = format!("{} in {buffers} buffers according to the JDK's", size(jdk.reserved_bytes));
    let most = library.direct_max_bytes.or(pools.jdk_direct.max_bytes);
    vec![("netty".to_owned(), netty), ("direct".to_owned(), format!("{own}, {jdk}; the limit is {}", size(most)))]
}

/// The agent's cost to the JVM, and the data that it could not read.
fn own_facts(pools: &NettyPools, release: Option<u32>) -> Vec<(String, String)> {
    let cost = &pools.agent;
    let [took, held] = [cost.took_ms, cost.loop_ms_max].map(milliseconds);
    let mut text = format!("{took} ms, during which event loops were blocked for at most {held} ms");
    if let Some(bytes) = cost.rss_bytes {
        text.push_str(&format!(", RSS {} MiB", Growth(bytes)));
    }
    if let Some(classes) = cost.classes_loaded.filter(|classes| *classes > 0) {
        text.push_str(&format!(", {classes} classes loaded"));
    }
    if cost.attached && release.is_some_and(|release| release >= WARNS_FROM) {
        text.push_str(
            "; this JVM prints a warning about it to stderr unless it runs with \
             -XX:+EnableDynamicAgentLoading",
        );
    }
    let mut facts = Facts::default();
    facts.add("agent", text);
    facts.list("not read", pools.unread.clone());
    facts.0
}

fn allocator_blocks(allocator: &NettyAllocator) -> Part {
    let class = allocator.class.rsplit('.').next().unwrap_or_default();
    let found = allocator.found_by.join(", ");
    let [direct, heap] = [NettyMemory::Direct, NettyMemory::Heap].map(|memory| size(used(allocator, memory)));
    let mut text = format!("direct {direct}, heap {heap} in use");
    if let Some(pinned) = allocator.pinned_direct_bytes {
        text.push_str(&format!("; {} of the direct memory is handed out", Bytes(pinned)));
    }
    if let (Some(all), Some(read)) = (allocator.thread_caches, allocator.thread_caches_read) {
        text.push_str(&format!("; {read} of {all} thread caches read"));
    }
    let mut blocks = vec![Part::Facts(vec![(name_of(allocator.kind), text)])];
    let shown: Vec<&NettyArena> = allocator.arenas.iter().filter(|arena| holds(arena)).collect();
    let tables = [arenas(allocator, &shown), cached_sizes(allocator)];
    blocks.extend(tables.into_iter().filter_map(Table::filled).map(Part::Table));
    blocks.extend(why(allocator).map(Part::Text));
    Part::under(format!("{class} ({found})"), blocks)
}

/// An allocator's memory of one kind: from its metric or, in versions without it, from its chunks.
fn used(allocator: &NettyAllocator, memory: NettyMemory) -> Option<u64> {
    let metric = match memory {
        NettyMemory::Direct => allocator.used_direct_bytes,
        NettyMemory::Heap => allocator.used_heap_bytes,
    };
    let chunks = allocator.arenas.iter().filter(|arena| arena.memory == memory).flat_map(|arena| &arena.chunks);
    metric.or_else(|| (!allocator.arenas.is_empty()).then(|| total(chunks, |chunk| chunk.bytes)))
}

fn holds(arena: &NettyArena) -> bool {
    !arena.chunks.is_empty() || arena.huge_bytes.unwrap_or(0) > 0 || arena.unreached_bytes.unwrap_or(0) > 0
}

/// The sum of a number over these chunks.
fn total<'a>(chunks: impl IntoIterator<Item = &'a NettyChunk>, what: fn(&NettyChunk) -> u64) -> u64 {
    sum(chunks.into_iter().map(what))
}

fn cell_lines(chunks: &[NettyChunk]) -> Vec<String> {
    chunks.chunks(CELLS).map(|line| line.iter().map(|chunk| SHADES[shade(chunk)]).collect()).collect()
}

/// A row per arena, and further rows for cells if it has many chunks.
fn arenas(allocator: &NettyAllocator, shown: &[&NettyArena]) -> Table {
    let mut rows = Vec::new();
    for arena in shown {
        let chunks = &arena.chunks;
        let mut lines = cell_lines(chunks).into_iter();
        let pinned = chunks.iter().try_fold(0, |sum: u64, chunk| Some(sum.saturating_add(chunk.pinned_bytes?)));
        let cached = (allocator.kind == NettyKind::Pooled).then(|| total(chunks, |chunk| chunk.cached_bytes));
        rows.push(vec![
            format!("{} {}", name_of(arena.memory), arena.index),
            chunks.len().to_string(),
            mib(total(chunks, |chunk| chunk.bytes)),
            mib(total(chunks, NettyChunk::used_bytes)),
            mib(cached),
            mib(pinned.filter(|_| !chunks.is_empty())),
            mib(arena.huge_bytes),
            lines.next().unwrap_or_default(),
        ]);
        rows.extend(lines.map(|line| [vec![String::new(); 7], vec![line]].concat()));
    }
    let mut notes = vec![cells_note()];
    if let Some(bytes) = allocator.chunk_bytes {
        notes.push(format!("A chunk is {}.", Bytes(bytes)));
    }
    let unreached = sum(shown.iter().filter_map(|arena| arena.unreached_bytes));
    if unreached > 0 {
        notes.push(format!("Another {} is in chunks that only their own buffers reference.", Bytes(unreached)));
    }
    let head = ["arena", "chunks", "size", "used", "cached", "handed out", "huge", "usage of each chunk"];
    Table::new("arenas, MiB", head, rows).worded(1, 1).noted(notes)
}

/// Cached buffers by size; the sizes with the most bytes come first.
fn cached_sizes(allocator: &NettyAllocator) -> Table {
    let mut sizes: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
    for NettyCache { buffer_bytes, buffers, bytes, .. } in &allocator.caches {
        let entry = sizes.entry(*buffer_bytes).or_default();
        *entry = (entry.0 + 1, entry.1.saturating_add(*buffers), entry.2.saturating_add(*bytes));
    }
    let mut sizes: Vec<_> = sizes.into_iter().collect();
    sizes.order_by_key(|(size, (_, _, bytes))| (std::cmp::Reverse(*bytes), *size));
    let row = |(size, (caches, buffers, bytes)): &(u64, (u64, u64, u64))| {
        vec![plain_size(*size), caches.to_string(), grouped(*buffers), mib(*bytes)]
    };
    let all = format!("Thread caches keep {} of freed buffers in total.", Bytes(in_caches(allocator)));
    let more = sizes.len().saturating_sub(SIZES_MAX);
    let more = (more > 0).then(|| format!("{more} more sizes are in the document (--json)."));
    let head = ["buffer size", "caches", "buffers", "MiB"];
    Table::new("thread caches", head, sizes.iter().take(SIZES_MAX).map(row)).noted([all].into_iter().chain(more))
}

/// `32 KiB`, `512 B`.
fn plain_size(bytes: u64) -> String {
    match bytes {
        _ if bytes < 1024 => format!("{bytes} B"),
        _ if bytes < 1 << 20 => format!("{} KiB", bytes / 1024),
        _ => Bytes(bytes).to_string(),
    }
}

/// Why nearly empty chunks are not returned, if the evidence shows it: thread caches hold nearly all of their used
/// memory. One such chunk per arena is normal, because an arena keeps its first chunk.
fn lingering(allocator: &NettyAllocator) -> Option<String> {
    let lingers = |chunk: &NettyChunk| {
        let used = chunk.used_bytes();
        used > 0 && chunk.kept_bytes as f64 >= CAUSE_MIN * used as f64
    };
    let arenas = allocator.arenas.iter().filter(|arena| arena.chunks.iter().any(lingers)).count();
    let all: Vec<&NettyChunk> = allocator.arenas.iter().flat_map(|arena| &arena.chunks).collect();
    let held: Vec<&NettyChunk> = all.iter().copied().filter(|chunk| lingers(chunk)).collect();
    if held.len() <= arenas {
        return None;
    }
    let of = |what: fn(&NettyChunk) -> u64| total(held.iter().copied(), what);
    let (bytes, used, kept) = (of(|chunk| chunk.bytes), of(NettyChunk::used_bytes), of(|chunk| chunk.kept_bytes));
    let percent = |part: u64, of: u64| format!("{:.0}%", part as f64 / of.max(1) as f64 * 100.0);
    let largest = allocator.caches.iter().map(|cache| cache.buffer_bytes).max().unwrap_or(0);
    Some(because_of_caches(&format!(
        "nothing else holds {} of the {} chunks ({} in total). {} ({}) of that is in use; {} ({}) of the memory in \
            use belongs to {} freed buffers of up to {}, in the caches of {}",
        held.len(),
        all.len(),
        Bytes(bytes),
        Bytes(used),
        percent(used, bytes),
        Bytes(kept),
        percent(kept, used),
        grouped(of(|chunk| chunk.cached_buffers)),
        plain_size(largest),
        threads(allocator),
    )))
}

fn threads(allocator: &NettyAllocator) -> String {
    several(each_once(allocator.caches.iter().map(|cache| cache.thread.as_str())).len() as u64, "thread")
}

fn because_of_caches(evidence: &str) -> String {
    format!(
        "Chunks linger because small freed buffers stay in thread caches: {evidence}. A chunk is released only \
         when nothing in it is in use. Try -Dio.netty.allocator.normalCacheSize=0 and \
         -Dio.netty.allocator.smallCacheSize=0, which add lock contention."
    )
}

/// The explanation from [`lingering`], derived from sums, for versions of Netty that do not report a cached buffer's
/// chunk.
fn lingering_in_sum(allocator: &NettyAllocator) -> Option<String> {
    let chunks: Vec<&NettyChunk> = allocator.arenas.iter().flat_map(|arena| &arena.chunks).collect();
    let arenas = allocator.arenas.iter().filter(|arena| !arena.chunks.is_empty()).count();
    let used = total(chunks.iter().copied(), NettyChunk::used_bytes);
    let cached = in_caches(allocator);
    let told = chunks.iter().any(|chunk| chunk.kept_bytes > 0);
    if told || used == 0 || (cached as f64) < CAUSE_MIN * used as f64 || chunks.len() <= arenas {
        return None;
    }
    let [size, used, cached] = [total(chunks.iter().copied(), |chunk| chunk.bytes), used, cached].map(Bytes);
    let (chunks, threads) = (several(chunks.len() as u64, "chunk"), threads(allocator));
    Some(because_of_caches(&format!(
        "{chunks} with {size} in total have {used} in use, and {cached} is in the caches of {threads}"
    )))
}

fn in_caches(allocator: &NettyAllocator) -> u64 {
    sum(allocator.caches.iter().map(|cache| cache.bytes))
}

/// Empty chunks that are never returned. An arena frees a chunk when it becomes empty and moves down to `q000`; an
/// empty chunk left in a higher list was forgotten.
fn stranded(allocator: &NettyAllocator) -> Option<String> {
    use NettyList::{Q025, Q050, Q075, Q100};
    let chunks = allocator.arenas.iter().flat_map(|arena| &arena.chunks);
    let is_above = |chunk: &NettyChunk| matches!(chunk.list, Q025 | Q050 | Q075 | Q100);
    let forgotten = |chunk: &&NettyChunk| chunk.free_bytes == Some(chunk.bytes) && is_above(chunk);
    let found: Vec<&NettyChunk> = chunks.filter(forgotten).collect();
    let lists: Vec<String> = found.iter().map(|chunk| name_of(chunk.list)).collect();
    let lists = each_once(lists.iter().map(String::as_str)).join(", ");
    let (chunks, size) = (several(found.len() as u64, "chunk"), Bytes(total(found.iter().copied(), |of| of.bytes)));
    (!found.is_empty()).then(|| {
        format!(
            "Empty but kept: {chunks} with {size} in total, in the list {lists}. Netty should have released them \
             when they became empty; 4.1.0.CR3 is known to leak them. Try a newer Netty."
        )
    })
}

/// Why chunks stay, if the evidence shows it.
fn why(allocator: &NettyAllocator) -> impl Iterator<Item = String> {
    let pooled = Some(allocator).filter(|of| of.kind == NettyKind::Pooled);
    [lingering, lingering_in_sum, stranded].into_iter().filter_map(move |reason| reason(pooled?))
}

/// The pools at a trial's marks: a row per mark, and the last available explanation.
pub(super) fn of_trial(trial: &Trial) -> Vec<Part> {
    let marks = with_pools(trial);
    let Some((_, last)) = marks.last() else { return Vec::new() };
    let rows = marks.iter().map(|(mark, pools)| {
        let [name, rss] = [mark.name.clone(), mib(mark.rss_bytes)];
        [vec![name], totals(pools), vec![rss]].concat()
    });
    let took = marks.iter().map(|(_, pools)| pools.agent.took_ms).fold(0.0, f64::max);
    let mut notes = vec![format!(
        "Direct memory comes from the JDK's counter, or from Netty's if that is larger. A listing took at most {} ms.",
        milliseconds(took)
    )];
    notes.extend(last.unread.iter().map(|what| format!("Not read: {what}.")));
    let head = ["mark", "arenas", "chunks", "size", "used", "cached", "handed out", "direct", "RSS"];
    let mut blocks = vec![Part::Table(Table::new("Netty's pools, MiB", head, rows).noted(notes))];
    blocks.extend(explanations(trial).into_iter().map(Part::Text));
    blocks
}

fn with_pools(trial: &Trial) -> Vec<(&Mark, &NettyPools)> {
    trial.marks.iter().filter_map(|mark| Some((mark, mark.netty.as_ref()?))).collect()
}

/// Identifies an arena throughout a trial: its allocator's class and ID, its kind of memory, and its number.
type ArenaKey<'a> = (&'a str, &'a str, NettyMemory, u64);

/// Every arena with chunks, at every mark: one character per chunk, with sums.
pub(super) fn chunks(trial: &Trial) -> Option<Table> {
    let marks = with_pools(trial);
    let filled = marks.iter().flat_map(|(_, pools)| placed(pools)).filter(|(_, arena)| !arena.chunks.is_empty());
    let places = each_once(filled.map(|(place, _)| place));
    let row = |place: &ArenaKey<'_>| {
        let (class, _, memory, index) = place;
        let name = format!("{} {index} of {}", name_of(memory), class.rsplit('.').next().unwrap_or_default());
        let found = |pools: &NettyPools| placed(pools).find(|(other, _)| other == place).map(|(_, arena)| strip(arena));
        let strips = marks.iter().map(|(_, pools)| found(pools).unwrap_or_else(dash));
        std::iter::once(name).chain(strips).collect::<Vec<String>>()
    };
    let left_out = places.len().saturating_sub(ARENAS_MAX);
    let more = (left_out > 0).then(|| format!("{left_out} more arenas are in the JSON document."));
    let head = std::iter::once("arena").chain(marks.iter().map(|(mark, _)| mark.name.as_str()));
    let table = Table::new("chunks of each arena, MiB", head, places.iter().take(ARENAS_MAX).map(row));
    table.worded(1, marks.len()).noted([cells_note()].into_iter().chain(more)).filled()
}

fn placed(pools: &NettyPools) -> impl Iterator<Item = (ArenaKey<'_>, &NettyArena)> {
    let allocators = pools.libraries.iter().flat_map(|library| &library.allocators);
    allocators.flat_map(|allocator| {
        let place = |arena: &NettyArena| (&*allocator.class, &*allocator.id, arena.memory, arena.index);
        allocator.arenas.iter().map(move |arena| (place(arena), arena))
    })
}

/// `_=@, 3 chunks, 24.0 of 48.0 used, 8.0 by caches`.
fn strip(arena: &NettyArena) -> String {
    let of = |what: fn(&NettyChunk) -> u64| total(&arena.chunks, what);
    let (bytes, used, kept) = (of(|chunk| chunk.bytes), of(NettyChunk::used_bytes), of(|chunk| chunk.kept_bytes));
    let (drawn, more) = arena.chunks.split_at(arena.chunks.len().min(CELLS_MAX));
    let lines = cell_lines(drawn);
    let more = if more.is_empty() { String::new() } else { format!("; {} cells are not shown", more.len()) };
    let by_caches = if kept > 0 { format!(", {} by caches", mib(kept)) } else { String::new() };
    let chunks = several(arena.chunks.len() as u64, "chunk");
    let sums = format!("{chunks}, {} of {} used{by_caches}{more}", mib(used), mib(bytes));
    if lines.is_empty() { dash() } else { format!("{} {sums}", lines.join(" ")) }
}

/// The legend of the characters.
fn cells_note() -> String {
    format!("Each cell is a chunk: _ empty, {} tenths used, @ full.", String::from_iter(&SHADES[1..9]))
}

/// Why chunks stay, from the last mark that shows it.
fn explanations(trial: &Trial) -> Vec<String> {
    let of_mark = |mark: &Mark| -> Vec<String> {
        let libraries = mark.netty.iter().flat_map(|pools| &pools.libraries);
        let said = libraries.flat_map(|library| &library.allocators).flat_map(why);
        said.map(|text| format!("At mark {}: {text}", mark.name)).collect()
    };
    trial.marks.iter().rev().map(of_mark).find(|said| !said.is_empty()).unwrap_or_default()
}

/// A mark's totals as cells: arenas, chunks, then sizes.
fn totals(pools: &NettyPools) -> Vec<String> {
    let allocators: Vec<&NettyAllocator> = pools.libraries.iter().flat_map(|library| &library.allocators).collect();
    let arenas: Vec<&NettyArena> =
        allocators.iter().flat_map(|allocator| &allocator.arenas).filter(|arena| holds(arena)).collect();
    let of = |what: fn(&NettyChunk) -> u64| total(arenas.iter().flat_map(|arena| &arena.chunks), what);
    let pinned = allocators.iter().filter_map(|of| of.pinned_direct_bytes).reduce(u64::saturating_add);
    let chunks: usize = arenas.iter().map(|arena| arena.chunks.len()).sum();
    // Some versions of Netty do not report a cached buffer's chunk.
    let cached = of(|chunk| chunk.cached_bytes).max(sum(allocators.iter().map(|allocator| in_caches(allocator))));
    let sizes =
        [Some(of(|chunk| chunk.bytes)), Some(of(NettyChunk::used_bytes)), Some(cached), pinned, direct_bytes(pools)];
    [arenas.len(), chunks].map(|count| count.to_string()).into_iter().chain(sizes.map(mib)).collect()
}

/// A JVM's direct memory: the JDK's count, plus Netty's if Netty bypasses the JDK.
///
/// Whether Netty bypasses the JDK depends on both versions. If the JDK's counter may include Netty's memory, this
/// assumes that it does. The error is at most the smaller of the two.
fn direct_bytes(pools: &NettyPools) -> Option<u64> {
    let own = pools.libraries.iter().filter_map(|library| library.direct_used_bytes);
    let own = own.reduce(u64::saturating_add);
    match (pools.jdk_direct.reserved_bytes, own) {
        (Some(jdk), Some(own)) if jdk >= own => Some(jdk),
        (Some(jdk), Some(own)) => Some(jdk.saturating_add(own)),
        (jdk, own) => jdk.or(own),
    }
}

#[cfg(test)]
#[path = "netty_tests.rs"]
mod tests;
