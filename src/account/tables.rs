//! Ranges that no source names but that their sizes give away: the segment maps of code heaps, tables of the
//! collectors, stacks of threads that have ended.
//!
//! HotSpot reserves such a table in one piece and commits it from its start, so in the mappings it is a readable and
//! writable stretch with an inaccessible one behind it, together as long as the table. Only exact lengths count.

use super::claims::{Claim, Claims};
use super::owner::Owner;
use crate::observe::maps::Mapping;
use std::collections::BTreeSet;

const PAGE: u64 = 4096;
/// The longest guard in front of a stack: HotSpot's zones take 16 to 80 KiB.
const GUARD_MAX: u64 = 128 << 10;

/// A code heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeHeap {
    /// Its name.
    pub name: String,
    /// Bytes reserved.
    pub reserved: u64,
    /// Bytes committed.
    pub committed: u64,
}

/// What the lengths of tables follow from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sizes {
    /// The code heaps; a segment map has a byte for each `CodeCacheSegmentSize` (128, without tiers 64).
    pub code_heaps: Vec<CodeHeap>,
    /// What is committed of the Java heap, and reserved: G1's tables have a byte for each 512, its bitmaps
    /// one for each 64.
    pub heap: Option<(u64, u64)>,
    /// The same of the old generation of Serial or Parallel: a byte for each 512 to find where objects start.
    pub old: Option<(u64, u64)>,
    /// ZGC on JDK 11, which keeps its mark stacks at 0x150000000000.
    pub z_mark_stacks: bool,
}

/// Claims on what only its size gives away. `claims` are those already settled.
pub(super) fn by_size(maps: &[Mapping], claims: &Claims, sizes: &Sizes) -> Vec<Claim> {
    let mut found = Vec::new();
    let tables = gc_tables(sizes);
    for (n, mapping) in maps.iter().enumerate().filter(|(_, mapping)| is_anonymous(mapping)) {
        let next = maps.get(n + 1).filter(|next| next.start == mapping.end && is_inaccessible(next));
        if sizes.z_mark_stacks && mapping.start == 0x1500_0000_0000 {
            found.push(claim(mapping.start, mapping.end, Owner::Gc, "table", "mark stacks"));
        }
        if let Some(next) = next {
            found.extend(segment_map(mapping, next, claims, sizes));
            found.extend(committed_in_part(mapping, next, claims, &tables));
        }
        found.extend(committed_in_full(mapping, claims, &tables));
    }
    found
}

fn claim(start: u64, end: u64, owner: Owner, kind: &'static str, name: &str) -> Claim {
    Claim { start, end, owner, kind, name: name.to_owned() }
}

fn is_anonymous(mapping: &Mapping) -> bool {
    mapping.inode == 0 && mapping.path.is_empty() && mapping.perms == "rw-p"
}

fn is_inaccessible(mapping: &Mapping) -> bool {
    mapping.inode == 0 && mapping.path.is_empty() && mapping.perms.starts_with("---")
}

/// Whether nobody claims any of it yet.
fn is_free(claims: &Claims, start: u64, end: u64) -> bool {
    claims.within(start, end).is_empty()
}

/// The map of a code heap's segments: committed for what is committed of the heap, reserved for all of it.
fn segment_map(mapping: &Mapping, next: &Mapping, claims: &Claims, sizes: &Sizes) -> Option<Claim> {
    let fits = |heap: &&CodeHeap, segment: u64| {
        let reserved = (heap.reserved / segment).next_multiple_of(PAGE);
        let committed = (heap.committed / segment).next_multiple_of(PAGE);
        let start = mapping.end.checked_sub(committed)?;
        let fits = committed > 0 && start >= mapping.start && next.end - start == reserved;
        (fits && is_free(claims, start, mapping.end)).then_some(start)
    };
    sizes.code_heaps.iter().find_map(|heap| {
        let start = [128, 64].into_iter().find_map(|segment| fits(&heap, segment))?;
        Some(claim(start, mapping.end, Owner::CodeCache, "code_heap", &format!("segment map of {}", heap.name)))
    })
}

/// A table of a collector: how much of it is committed, of how much, and what it is.
struct Table {
    committed: u64,
    reserved: u64,
    name: &'static str,
}

fn gc_tables(sizes: &Sizes) -> Vec<Table> {
    let per = |of: Option<(u64, u64)>, each: u64, name| {
        let (committed, reserved) = of?;
        let table = |bytes: u64| (bytes / each).next_multiple_of(PAGE);
        Some(Table { committed: table(committed), reserved: table(reserved), name })
    };
    let tables = [
        per(sizes.heap, 512, "a byte for each 512 of the heap"),
        per(sizes.old, 512, "a byte for each 512 of the old generation"),
        per(sizes.heap, 64, "a byte for each 64 of the heap"),
    ];
    // Shorter ones could be anything.
    tables.into_iter().flatten().filter(|table| table.committed >= 4 * PAGE && table.reserved >= 16 * PAGE).collect()
}

/// A table of which only the first part is committed, and the rest is inaccessible behind it.
fn committed_in_part(mapping: &Mapping, next: &Mapping, claims: &Claims, tables: &[Table]) -> Option<Claim> {
    tables.iter().find_map(|table| {
        let start =
            next.end.checked_sub(table.reserved).filter(|start| (mapping.start..mapping.end).contains(start))?;
        let fits = mapping.end - start == table.committed && is_free(claims, start, mapping.end);
        fits.then(|| claim(start, mapping.end, Owner::Gc, "table", table.name))
    })
}

/// Tables that are committed in full: what nobody claims of the mapping is a whole number of them.
fn committed_in_full(mapping: &Mapping, claims: &Claims, tables: &[Table]) -> Vec<Claim> {
    let mut free = Vec::new();
    let mut at = mapping.start;
    for taken in claims.within(mapping.start, mapping.end) {
        free.push((at, taken.start.max(at)));
        at = taken.end;
    }
    free.push((at, mapping.end));
    let full: Vec<&Table> = tables.iter().filter(|table| table.committed == table.reserved).collect();
    let whole = |(start, end): (u64, u64)| {
        let length = end.saturating_sub(start);
        let fits = |table: &&&Table| length > 0 && length % table.reserved == 0 && length / table.reserved <= 3;
        full.iter().find(fits).map(|table| claim(start, end, Owner::Gc, "table", table.name))
    };
    free.into_iter().filter_map(whole).collect()
}

/// Stacks of threads that have ended, which glibc keeps for new ones: as long as the stack of a thread that lives, with
/// its guard or, where HotSpot has already removed its own, without.
pub(super) fn ended_stacks(maps: &[Mapping], claims: &Claims) -> Vec<Claim> {
    let spans = |n: usize| {
        let mapping = &maps[n];
        let guard = n
            .checked_sub(1)
            .map(|before| &maps[before])
            .filter(|before| before.end == mapping.start && is_inaccessible(before) && before.size().0 <= GUARD_MAX);
        (mapping.size().0 + guard.map_or(0, |guard| guard.size().0), guard.is_some())
    };
    let is_stack = |n: usize| {
        let mapping = &maps[n];
        let inside = claims.within(mapping.start, mapping.end);
        matches!(inside, [one] if one.owner == Owner::ThreadStacks)
    };
    let anonymous: Vec<usize> = (0..maps.len()).filter(|n| is_anonymous(&maps[*n])).collect();
    let known: BTreeSet<u64> = anonymous
        .iter()
        .filter(|n| is_stack(**n))
        .map(|n| spans(*n))
        .filter(|(_, guard)| *guard)
        .map(|(span, _)| span)
        .collect();
    let ended = |n: &&usize| {
        let mapping = &maps[**n];
        let (span, guarded) = spans(**n);
        let whole = |length: u64| {
            known.iter().any(|known| length == *known || guarded && length.checked_sub(PAGE) == Some(*known))
        };
        is_free(claims, mapping.start, mapping.end) && (whole(span) || known.contains(&mapping.size().0))
    };
    let name = "threads that have ended";
    anonymous
        .iter()
        .filter(ended)
        .map(|n| claim(maps[*n].start, maps[*n].end, Owner::ThreadStacks, "thread", name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::maps::parse;

    fn settled(claims: Vec<Claim>) -> Claims {
        Claims::settle(claims)
    }

    /// Lengths as seen on JDK 17 with a code heap of 120,036 KiB, 2.4 MiB of it committed, and a heap of 1 GiB.
    #[test]
    fn tables_are_known_by_their_lengths() {
        let maps = parse(
            "7f0000000000-7f0000005000 rw-p 0 00:00 0\n7f0000005000-7f00000eb000 ---p 0 00:00 0\n\
             7f553b000000-7f553b0bd000 rw-p 0 00:00 0\n7f553b0bd000-7f553b200000 ---p 0 00:00 0\n\
             7f6000000000-7f6000200000 rw-p 0 00:00 0\n7f7000000000-7f7000201000 rw-p 0 00:00 0\n\
             7f8000000000-7f80001f0000 rw-p 0 00:00 0\n7f80001f0000-7f8000200000 ---p 0 00:00 0\n",
        );
        let heap = CodeHeap { name: "profiled nmethods".into(), reserved: 120_036 << 10, committed: 2496 << 10 };
        let sizes = Sizes { code_heaps: vec![heap], heap: Some((378 << 20, 1 << 30)), ..Sizes::default() };
        let found = by_size(&maps, &settled(Vec::new()), &sizes);
        let found: Vec<_> = found.iter().map(|claim| (claim.start, claim.end, claim.owner)).collect();
        let (code, gc) = (Owner::CodeCache, Owner::Gc);
        let expect = [(0x7f00_0000_0000, 0x7f00_0000_5000, code), (0x7f55_3b00_0000, 0x7f55_3b0b_d000, gc)];
        assert_eq!(found, expect);

        let full = Sizes { heap: Some((1 << 30, 1 << 30)), ..Sizes::default() };
        let found = by_size(&maps, &settled(Vec::new()), &full);
        assert_eq!(found.iter().map(|claim| claim.start).collect::<Vec<_>>(), [0x7f60_0000_0000]);
    }

    #[test]
    fn stacks_of_ended_threads_are_as_long_as_those_of_living_ones() {
        let maps = parse(
            "1000-5000 ---p 0 00:00 0\n5000-101000 rw-p 0 00:00 0\n\
             201000-205000 ---p 0 00:00 0\n205000-301000 rw-p 0 00:00 0\n\
             401000-501000 rw-p 0 00:00 0\n601000-604000 rw-p 0 00:00 0\n",
        );
        let living = claim(0x5000, 0x10_1000, Owner::ThreadStacks, "thread", "main");
        let found = ended_stacks(&maps, &settled(vec![living]));
        assert_eq!(found.iter().map(|claim| claim.start).collect::<Vec<_>>(), [0x20_5000, 0x40_1000]);
    }
}
