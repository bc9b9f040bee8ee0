//! Ranges that no source names but that their sizes give away: the segment maps of code heaps, tables of the collectors,
//! stacks of threads that have ended.
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

/// The most that may lie before a table in an unclaimed stretch.
const BESIDE_MAX: u64 = 128 << 10;

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
    /// What is committed of the Java heap, and reserved: G1's tables have a byte for each 512, its bitmaps one for each 64.
    pub heap: Option<(u64, u64)>,
    /// The same of the old generation of Serial or Parallel: a byte for each 512 to find where objects start.
    pub old: Option<(u64, u64)>,
    /// How many regions G1's heap may have; `G1FromCardCache` has a row for each.
    pub regions: Option<u64>,
    /// ZGC on JDK 11, which keeps its mark stacks at 0x150000000000.
    pub z_mark_stacks: bool,
}

/// Claims on what only its size gives away. `known` are the claims so far.
///
/// First what an inaccessible stretch behind it confirms, then what fills a stretch between other claims.
pub(super) fn by_size(maps: &[Mapping], known: &[Claim], sizes: &Sizes) -> Vec<Claim> {
    let mut found = Vec::new();
    let claims = Claims::settle(known.to_vec());
    let tables = gc_tables(maps, &claims, sizes);
    let anonymous = || maps.iter().enumerate().filter(|(_, mapping)| is_anonymous(mapping));
    for (n, mapping) in anonymous() {
        if sizes.z_mark_stacks && mapping.start == 0x1500_0000_0000 {
            found.push(claim(mapping.start, mapping.end, Owner::Gc, "table", "mark stacks"));
        }
        if let Some(hole) = maps.get(n + 1).filter(|next| next.start == mapping.end && is_inaccessible(next)) {
            found.extend(segment_map(mapping, hole, &claims, sizes));
            found.extend(committed_in_part([mapping, hole], maps.get(n + 2), &claims, &tables));
        }
    }
    let claims = Claims::settle([known, &found].concat());
    for (_, mapping) in anonymous() {
        found.extend(committed_in_full(mapping, &claims, sizes, &tables));
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
        let fits = committed > 0 && start >= mapping.start && start + reserved == next.end;
        (fits && is_free(claims, start, mapping.end)).then_some(start)
    };
    sizes.code_heaps.iter().find_map(|heap| {
        let start = [128, 64].into_iter().find_map(|segment| fits(&heap, segment))?;
        Some(claim(start, mapping.end, Owner::CodeCache, "code_heap", &format!("segment map of {}", heap.name)))
    })
}

/// A table of a collector.
struct Table {
    /// How much of it is committed.
    committed: u64,
    /// Of how much.
    reserved: u64,
    /// How much is committed from its start on; the rest at its end, for the archived objects at the end of G1's heap.
    first: u64,
    name: &'static str,
}

fn gc_tables(maps: &[Mapping], claims: &Claims, sizes: &Sizes) -> Vec<Table> {
    let per = |of: Option<(u64, u64)>, each: u64, first: Option<u64>, name| {
        let (committed, reserved) = of?;
        let table = |bytes: u64| (bytes / each).checked_next_multiple_of(PAGE);
        let (committed, reserved) = (table(committed)?, table(reserved)?);
        Some(Table { committed, reserved, first: first.unwrap_or(committed).min(committed), name })
    };
    let tables = [
        per(sizes.heap, 512, card_table_first(maps, claims), "a byte for each 512 of the heap"),
        per(sizes.old, 512, None, "a byte for each 512 of the old generation"),
        per(sizes.heap, 64, None, "a byte for each 64 of the heap"),
    ];
    // Shorter ones could be anything.
    let is_long = |table: &Table| table.committed >= 4 * PAGE && table.reserved >= 16 * PAGE;
    tables.into_iter().flatten().filter(is_long).collect()
}

/// How much of the card table, which the JVM names, is committed from its start on.
fn card_table_first(maps: &[Mapping], claims: &Claims) -> Option<u64> {
    let cards = claims.all().iter().find(|claim| claim.name == "card table")?;
    let mapping = maps.iter().find(|mapping| mapping.start <= cards.start && cards.start < mapping.end)?;
    is_anonymous(mapping).then(|| mapping.end.min(cards.end) - cards.start)
}

/// A table that is not committed in full: between or behind its parts lies an inaccessible stretch as long as what is
/// missing.
fn committed_in_part(
    [mapping, hole]: [&Mapping; 2],
    behind: Option<&Mapping>,
    claims: &Claims,
    tables: &[Table],
) -> Vec<Claim> {
    let fits = |table: &&Table| {
        let start = mapping.end.checked_sub(table.first).filter(|start| *start >= mapping.start);
        hole.size().0 == table.reserved - table.committed.min(table.reserved)
            && start.is_some_and(|start| is_free(claims, start, mapping.end))
    };
    let Some(table) = tables.iter().filter(|table| table.committed < table.reserved).find(fits) else {
        return Vec::new();
    };
    let mut found = vec![claim(mapping.end - table.first, mapping.end, Owner::Gc, "table", table.name)];
    let end = hole.end.saturating_add(table.committed - table.first);
    let last = behind.filter(|last| last.start == hole.end && is_anonymous(last) && end <= last.end);
    if last.is_some_and(|_| is_free(claims, hole.end, end)) {
        found.push(claim(hole.end, end, Owner::Gc, "table", table.name));
    }
    found
}

/// Tables that are committed in full: what nobody claims of the mapping is a whole number of them, or ends with them
/// behind some smaller one.
fn committed_in_full(mapping: &Mapping, claims: &Claims, sizes: &Sizes, tables: &[Table]) -> Vec<Claim> {
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
        if length > 0 && from_card_cache(sizes).any(|cache| cache == length) {
            return Some(claim(start, end, Owner::Gc, "table", "cards that were looked at last"));
        }
        let number = |table: &&&Table| length / table.reserved;
        let beside = |table: &&&Table| length % table.reserved;
        let fits = |table: &&&Table| (1..=3).contains(&number(table)) && beside(table) <= BESIDE_MAX;
        let table = full.iter().filter(fits).min_by_key(beside)?;
        Some(claim(end - number(&table) * table.reserved, end, Owner::Gc, "table", table.name))
    };
    free.into_iter().filter_map(whole).collect()
}

/// Lengths that `G1FromCardCache` may have: a pointer and a row of whole 128 bytes for each region, 8 bytes for each
/// worker (JDK 11–25, `Padded2DArray`).
fn from_card_cache(sizes: &Sizes) -> impl Iterator<Item = u64> {
    let regions = sizes.regions.filter(|regions| *regions < 1 << 20);
    let length = move |row: u64| Some((regions? * (8 + row * 128) + 128).next_multiple_of(PAGE));
    (1..=8).filter_map(length)
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
        let whole = |length: u64| known.iter().any(|known| length == *known || guarded && length == known + PAGE);
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
        let found = by_size(&maps, &[], &sizes);
        let found: Vec<_> = found.iter().map(|claim| (claim.start, claim.end, claim.owner)).collect();
        let (code, gc) = (Owner::CodeCache, Owner::Gc);
        let expect = [(0x7f00_0000_0000, 0x7f00_0000_5000, code), (0x7f55_3b00_0000, 0x7f55_3b0b_d000, gc)];
        assert_eq!(found, expect);

        let full = Sizes { heap: Some((1 << 30, 1 << 30)), ..Sizes::default() };
        let found = by_size(&maps, &[], &full);
        assert_eq!(found.iter().map(|claim| claim.start).collect::<Vec<_>>(), [0x7f60_0000_0000, 0x7f70_0000_1000]);
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
