//! Turns what a walk through musl's malloc found into parts of the account.

use super::claims::Claim;
use super::ledger::LedgerEntry;
use super::malloc::parts;
use super::plan::Segment;
use super::tags::TagNames;
use crate::observe::glibc::Chunks;
use crate::observe::mallocng::Walk;
use std::collections::BTreeMap;

/// All ranges that belong to malloc, in address order.
pub(super) fn ranges(walk: &Walk) -> Vec<(u64, u64)> {
    let groups = walk.groups.iter().map(|group| (group.start, group.end));
    let areas = walk.areas.iter().copied();
    let mmapped = walk.mmapped.iter().map(|chunk| (chunk.start, chunk.end));
    let broken = walk.broken.iter().map(|group| (group.start, group.end));
    let mut ranges: Vec<(u64, u64)> = groups.chain(areas).chain(mmapped).chain(broken).collect();
    ranges.sort_unstable();
    ranges
}

/// Returns the parts of a segment that are malloc's, and their ranges in address order. `unsplit` makes a claim of a
/// range that could not be walked; `backed` returns the resident and the swapped bytes of a range.
pub(super) fn segment_parts(
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
    let tagged: Vec<(u8, Chunks)> = tagged.into_iter().collect();
    let mut found = match taken.is_empty() {
        true => Vec::new(),
        false => parts(&live, tagged.iter(), &free, (segment.start, segment.end), names),
    };
    for group in walk.broken.iter().filter(|group| inside(group.start, group.end)) {
        found.push(LedgerEntry::of(&unsplit(group.start, group.end), backed(group.start, group.end)));
        taken.push((group.start, group.end));
    }
    taken.sort_unstable();
    (found, taken)
}
