//! Turns the result of a walk through malloc (glibc's or musl's) into parts of the account.

use super::claims::Claim;
use super::ledger::LedgerEntry;
use super::plan::Segment;
use super::tags::TagNames;
use crate::observe::glibc::{Chunks, HeapWalk, MmappedChunk};
use crate::observe::mallocng::Walk;
use crate::owner::Owner;
use std::collections::BTreeMap;

/// The parts of a heap in `range`. Without tags, all live chunks are alike; with tags, untagged chunks were not
/// requested by HotSpot.
pub(super) fn heap_parts(walk: &HeapWalk, range: (u64, u64), names: Option<&TagNames>) -> Vec<LedgerEntry> {
    parts(&walk.live, walk.tagged.iter().copied(), &walk.free, range, names)
}

/// The parts found by a walk: chunks in use, chunks with NMT's header by tag number, and free chunks.
fn parts(
    live: &Chunks,
    tagged: impl IntoIterator<Item = (u8, Chunks)>,
    free: &Chunks,
    range: (u64, u64),
    names: Option<&TagNames>,
) -> Vec<LedgerEntry> {
    let part = |owner, kind, name: &str, chunks: &Chunks, allocated| {
        let claim = Claim::new(range.0, range.1, owner, kind, name);
        LedgerEntry { count: chunks.count, allocated, ..LedgerEntry::of(&claim, (chunks.resident, chunks.swapped)) }
    };
    let untagged = if names.is_some() { Owner::MallocNonHotspot } else { Owner::MallocLive };
    let mut parts = vec![part(untagged, "", "", live, None), part(Owner::MallocRetained, "", "", free, None)];
    parts.extend(tagged.into_iter().map(|(tag, chunks)| match names {
        Some(names) => part(Owner::MallocLive, "tag", &names.name(tag), &chunks, Some(chunks.asked)),
        None => part(Owner::MallocLive, "", "", &chunks, None),
    }));
    parts
}

/// The parts of chunks that have their own mapping; `backed` returns the resident and swapped bytes of a range.
pub(super) fn mmapped_parts(
    chunks: &[MmappedChunk],
    names: Option<&TagNames>,
    mut backed: impl FnMut(u64, u64) -> (u64, u64),
) -> Vec<LedgerEntry> {
    let part = |chunk: &MmappedChunk| {
        let name = match (chunk.tag, names) {
            (Some(tag), Some(names)) => names.name(tag.number),
            (None, Some(_)) => "not HotSpot's".to_owned(),
            (_, None) => String::new(),
        };
        let allocated = names.map(|_| chunk.tag.map_or(chunk.end.saturating_sub(chunk.start), |tag| tag.asked));
        let claim = Claim::new(chunk.start, chunk.end, Owner::MallocMmapped, "tag", &name);
        LedgerEntry { allocated, ..LedgerEntry::of(&claim, backed(chunk.start, chunk.end)) }
    };
    chunks.iter().map(part).collect()
}

/// All ranges that belong to musl's malloc, in address order.
pub(super) fn musl_ranges(walk: &Walk) -> Vec<(u64, u64)> {
    let groups = walk.groups.iter().map(|group| (group.start, group.end));
    let areas = walk.areas.iter().copied();
    let mmapped = walk.mmapped.iter().map(|chunk| (chunk.start, chunk.end));
    let broken = walk.broken.iter().map(|group| (group.start, group.end));
    let mut ranges: Vec<(u64, u64)> = groups.chain(areas).chain(mmapped).chain(broken).collect();
    ranges.sort_unstable();
    ranges
}

/// Returns the parts of a segment that belong to musl's malloc, and their ranges in address order. `unsplit` turns a
/// range that could not be walked into a claim; `backed` returns the resident and swapped bytes of a range.
pub(super) fn musl_parts(
    walk: &Walk,
    segment: &Segment,
    names: Option<&TagNames>,
    unsplit: impl Fn(u64, u64) -> Claim,
    backed: impl Fn(u64, u64) -> (u64, u64),
) -> (Vec<LedgerEntry>, Vec<(u64, u64)>) {
    let inside = |start: u64, end: u64| segment.start <= start && start < end && end <= segment.end;
    let (mut live, mut free, mut tagged) = (Chunks::default(), Chunks::default(), BTreeMap::<u8, Chunks>::new());
    let mut taken = Vec::new();
    let from = walk.groups.partition_point(|group| group.start < segment.start);
    let groups = walk.groups[from..].iter().take_while(|group| group.start < segment.end);
    for group in groups.filter(|group| inside(group.start, group.end)) {
        live += group.live;
        free += group.free;
        for (tag, chunks) in &group.tagged {
            *tagged.entry(*tag).or_default() += *chunks;
        }
        taken.push((group.start, group.end));
    }
    let from = walk.areas.partition_point(|(start, _)| *start < segment.start);
    for (start, end) in walk.areas[from..].iter().copied().take_while(|(start, end)| inside(*start, *end)) {
        let (resident, swapped) = backed(start, end);
        live += Chunks { bytes: end - start, resident, swapped, ..Chunks::default() };
        taken.push((start, end));
    }
    let mut found = match taken.is_empty() {
        true => Vec::new(),
        false => parts(&live, tagged, &free, (segment.start, segment.end), names),
    };
    for group in walk.broken.iter().filter(|group| inside(group.start, group.end)) {
        found.push(LedgerEntry::of(&unsplit(group.start, group.end), backed(group.start, group.end)));
        taken.push((group.start, group.end));
    }
    taken.sort_unstable();
    (found, taken)
}
