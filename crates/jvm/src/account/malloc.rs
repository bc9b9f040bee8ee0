//! Turns what a walk through malloc's heaps found into parts of the account.

use super::claims::Claim;
use super::ledger::LedgerEntry;
use super::tags::TagNames;
use crate::observe::glibc::{Chunks, HeapWalk, MmappedChunk};
use crate::owner::Owner;

/// The parts of a heap in `range`. Without tags all live chunks are alike; with them, those that carry none were not
/// asked for by HotSpot.
pub(super) fn heap_parts(walk: &HeapWalk, range: (u64, u64), names: Option<&TagNames>) -> Vec<LedgerEntry> {
    parts(&walk.live, walk.tagged.iter(), &walk.free, range, names)
}

/// The parts of what a walk found: chunks in use, those with NMT's header by its number, and free ones.
pub(super) fn parts<'a>(
    live: &Chunks,
    tagged: impl Iterator<Item = &'a (u8, Chunks)>,
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
    parts.extend(tagged.map(|(tag, chunks)| match names {
        Some(names) => part(Owner::MallocLive, "tag", &names.name(*tag), chunks, Some(chunks.asked)),
        None => part(Owner::MallocLive, "", "", chunks, None),
    }));
    parts
}

/// The parts of chunks with a mapping of their own; `backed` says how much of a range is resident and swapped.
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
