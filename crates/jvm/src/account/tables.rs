//! Ranges that no source reports, identified by their sizes: segment maps of code heaps, the collectors' tables, stacks
//! of ended threads.
//!
//! A table has one byte per fixed number of heap bytes, is reserved in one piece, and is committed where the heap is.
//! So its mappings are a scaled-down copy of the heap's: committed stretches and holes of exact lengths. (The JVM would
//! name some of them in `VM.info`, but that reply permanently costs it 4 to 5 MB.)

use super::claims::{Claim, Claims};
use super::heap::committed;
use crate::kernel::mapping::Mapping;
use crate::observe::addresses::JvmRange;
use crate::observe::ranges::gaps;
use crate::owner::Owner;
use loadline_base::order::Order as _;
use std::collections::BTreeSet;

/// The longest guard below a stack, unless pages are large: HotSpot's zones take 16 to 80 KiB.
const GUARD_MAX: u64 = 128 << 10;
/// The longest guard in pages, if pages are large: red, reserved, and yellow zones, and glibc's own guard.
const GUARD_PAGES_MAX: u64 = 5;
/// The maximum number of bytes that may precede a table in an unclaimed stretch.
const BESIDE_MAX: u64 = 1 << 20;

/// Tables of one length in one collector: G1 up to 17 has a card table, an offset table, and card counts.
const SAME_MAX: u64 = 3;
/// A G1 task queue as a malloc chunk: 2^17 pointers and the chunk's header (JDK 11–25, `TASKQUEUE_SIZE`). One per GC
/// thread is allocated right before the tables, so they are above the tables.
const QUEUE: u64 = (1 << 20) + 4096;
/// Maximum number of queues above one stretch of tables.
const QUEUES_MAX: u64 = 64;
/// Bytes that non-generational ZGC reserves for its mark stacks (`ZMarkStackSpaceLimit`, JDK 15–23).
const Z_MARK_STACKS: u64 = 8 << 30;
/// The address of the mark stacks on JDK 11.
const Z_MARK_STACKS_11: u64 = 0x1500_0000_0000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sizes {
    /// The page size: tables are reserved and committed in whole pages.
    pub(super) page: u64,
    /// The code heaps; a segment map has one byte per `CodeCacheSegmentSize` (128, or 64 without tiers).
    pub(super) code_heaps: Vec<JvmRange>,
    /// The Java heap as reserved: start and end address.
    pub(super) heap: Option<(u64, u64)>,
    /// The old generation of Serial or Parallel: bytes committed and reserved.
    pub(super) old: Option<(u64, u64)>,
    /// Maximum number of regions in G1's heap; `G1FromCardCache` has a row for each.
    pub(super) regions: Option<u64>,
    /// Whether the JDK is 17 or older: its G1 writes an offset for each region that it commits.
    pub(super) offsets_written: bool,
    /// Whether it is Parallel, whose bitmaps and block table are fully committed from the start.
    pub(super) parallel: bool,
    /// Whether it is Serial or Parallel, whose card tables end with a guard page up to JDK 21.
    pub(super) guarded: bool,
    /// Whether the allocator is not glibc's: its mappings may look like a fully committed table.
    pub(super) foreign_malloc: bool,
    /// Whether malloc's chunks are unknown: a chunk may then precede a table or look like one.
    pub(super) unread_malloc: bool,
    /// Whether it is ZGC, whose mark stacks are at 0x150000000000 on JDK 11, and later start an 8 GiB range.
    pub(super) z: bool,
    /// Addresses that HotSpot's own structures refer to; `None` unless libraries other than the JVM's are loaded, whose
    /// mappings may be as long as a table. If set, a table without a hole after it must begin at one of them.
    pub(super) named: Option<BTreeSet<u64>>,
}

/// A table: its length, and where it is committed, as offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    runs: Vec<(u64, u64)>,
    length: u64,
    name: &'static str,
}

impl Table {
    /// A table of `length` bytes with one byte per `each` bytes of something that is committed in `runs`.
    fn of(runs: &[(u64, u64)], length: u64, each: u64, name: &'static str, page: u64) -> Option<Self> {
        let mut smaller: Vec<(u64, u64)> = Vec::new();
        for (start, end) in runs {
            let (start, end) = (start / each / page * page, (end / each).checked_next_multiple_of(page)?);
            match smaller.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(end),
                _ => smaller.push((start, end)),
            }
        }
        let length = (length / each).checked_next_multiple_of(page)?;
        // Shorter lengths also occur in other mappings by chance.
        let long = length >= 8 * page && smaller.iter().map(|(start, end)| end - start).sum::<u64>() >= 4 * page;
        (long && smaller.last()?.1 <= length).then_some(Self { runs: smaller, length, name })
    }

    /// Adds the guard page at the end of the table (card tables of Serial and Parallel up to JDK 21).
    fn guarded(mut self, page: u64) -> Self {
        let end = self.length + page;
        match self.runs.last_mut() {
            Some(last) if last.1 == self.length => last.1 = end,
            _ => self.runs.push((self.length, end)),
        }
        self.length = end;
        self
    }

    fn is_full(&self) -> bool {
        self.runs == [(0, self.length)]
    }
}

/// Claims ranges that are identified only by their sizes. `known` contains the claims so far.
///
/// Tables confirmed by the inaccessible stretch after them come first, then those that fill a stretch between other
/// claims.
pub(super) fn by_size(maps: &[Mapping], known: &[Claim], sizes: &Sizes) -> Vec<Claim> {
    let parted = maps;
    let maps = &joined(parted);
    let mut found = protection_zones(maps, sizes.page);
    let claims = Claims::settle(known.to_vec());
    let tables = gc_tables(maps, sizes);
    let anonymous = || maps.iter().enumerate().filter(|(_, mapping)| is_anonymous(mapping));
    for (n, mapping) in anonymous() {
        let hole = maps.get(n + 1).filter(|next| next.start == mapping.end && is_inaccessible(next));
        let marks = match hole.and_then(|hole| hole.end.checked_sub(Z_MARK_STACKS)) {
            // A thread's stack directly below, which the kernel may show as the same mapping, is claimed already.
            Some(start) if (mapping.start..mapping.end).contains(&start) && is_free(&claims, start, mapping.end) => {
                Some(start)
            }
            _ => Some(mapping.start).filter(|start| *start == Z_MARK_STACKS_11),
        };
        if let Some(start) = marks.filter(|_| sizes.z) {
            found.push(Claim::new(start, mapping.end, Owner::Gc, "table", "mark stacks"));
        }
        if let Some(hole) = hole {
            found.extend(segment_map(mapping, hole, &claims, sizes));
            let laid = tables.iter().find_map(|table| laid_out(&maps[n..], table, &claims));
            found.extend(laid.into_iter().flatten());
        }
    }
    if sizes.foreign_malloc {
        return found;
    }
    let claims = Claims::settle([known, &found].concat());
    let whole = parted.iter().filter(|mapping| is_anonymous(mapping) && is_free(&claims, mapping.start, mapping.end));
    found.extend(whole.filter_map(|mapping| by_regions(mapping.start, mapping.end, sizes)));
    // An unknown chunk may be next to G1's tables in its own mapping. (With another collector, it may be as long as
    // the only guarded table.)
    let is_parted = sizes.unread_malloc && sizes.regions.is_some();
    for maps in [parted, maps].into_iter().skip(usize::from(!is_parted)) {
        let claims = Claims::settle([known, &found].concat());
        let anonymous = maps.iter().filter(|mapping| is_anonymous(mapping));
        found.extend(anonymous.flat_map(|mapping| committed_in_full(mapping, &claims, sizes, &tables)));
    }
    found
}

/// Merges anonymous neighbors: where a table grows and shrinks with the heap, the kernel does not always rejoin
/// mappings. Holes stay separate, because a table ends where one ends.
fn joined(maps: &[Mapping]) -> Vec<Mapping> {
    let mut joined: Vec<Mapping> = Vec::new();
    for mapping in maps {
        let continues = |last: &Mapping| last.end == mapping.start && is_anonymous(last) && is_anonymous(mapping);
        match joined.last_mut().filter(|last| continues(last)) {
            Some(last) => last.end = mapping.end,
            None => joined.push(mapping.clone()),
        }
    }
    joined
}

/// The guard page directly below the class archive, which no compressed class pointer refers to (JDK 24 and newer). It
/// is part of the archive's mapping, and resident if the archive was read into memory.
fn protection_zones(maps: &[Mapping], page: u64) -> Vec<Claim> {
    let zones = maps.windows(2).filter(|pair| {
        let archive = pair[1].file_name().ends_with(".jsa") && pair[0].end == pair[1].start;
        archive && is_inaccessible(&pair[0]) && pair[0].size().0 == page
    });
    zones.map(|pair| Claim::new(pair[0].start, pair[0].end, Owner::Cds, "file", &pair[1].path)).collect()
}

fn is_anonymous(mapping: &Mapping) -> bool {
    mapping.inode == 0 && mapping.path.is_empty() && &*mapping.perms == "rw-p"
}

pub(super) fn is_inaccessible(mapping: &Mapping) -> bool {
    mapping.inode == 0 && mapping.path.is_empty() && mapping.perms.starts_with("---")
}

/// Whether no claim overlaps `[start, end)`.
fn is_free(claims: &Claims, start: u64, end: u64) -> bool {
    claims.within(start, end).is_empty()
}

/// The segment map of a code heap: committed for the committed part of the heap, reserved for all of it.
fn segment_map(mapping: &Mapping, hole: &Mapping, claims: &Claims, sizes: &Sizes) -> Option<Claim> {
    let fits = |heap: &JvmRange, segment: u64| {
        let map_of = |end: u64| (end.checked_sub(heap.start)? / segment).checked_next_multiple_of(sizes.page);
        let (reserved, committed) = (map_of(heap.end)?, map_of(heap.committed_end?)?);
        let start = mapping.end.checked_sub(committed)?;
        let fits = committed > 0 && start >= mapping.start && hole.end.checked_sub(start)? == reserved;
        (fits && is_free(claims, start, mapping.end)).then_some(start)
    };
    sizes.code_heaps.iter().find_map(|heap| {
        let start = [128, 64].into_iter().find_map(|segment| fits(heap, segment))?;
        Some(Claim::new(start, mapping.end, Owner::CodeCache, "code_heap", &format!("segment map of {}", heap.name)))
    })
}

/// The tables that a heap like this may have: card and offset tables (a byte per 512), the bitmaps of G1 and Parallel
/// (a bit per 8 bytes, so a byte per 64; Parallel has two in one piece), and the old generation's offsets.
fn gc_tables(maps: &[Mapping], sizes: &Sizes) -> Vec<Table> {
    const OF_HEAP: [(u64, &str); 3] = [
        (512, "1 byte per 512 bytes of heap"),
        (64, "1 byte per 64 bytes of heap"),
        (32, "1 byte per 32 bytes of heap"),
    ];
    let mut tables = Vec::new();
    if let Some((start, end)) = sizes.heap {
        let length = end.saturating_sub(start);
        let of = |runs: &[(u64, u64)]| OF_HEAP.map(|(each, name)| Table::of(runs, length, each, name, sizes.page));
        let mut where_committed = of(&committed(maps.iter(), start, end));
        if sizes.guarded && !sizes.parallel {
            // Serial marks in object headers and has no bitmaps.
            where_committed[1..].fill(None);
        }
        // The guarded card table comes first, because its hole is as long as the other's.
        tables.extend(where_committed[0].clone().filter(|_| sizes.guarded).map(|of| of.guarded(sizes.page)));
        tables.extend(where_committed.into_iter().flatten());
        tables.extend(of(&[(0, length)]).into_iter().flatten().filter(|_| sizes.parallel));
    }
    if let Some((committed, reserved)) = sizes.old {
        let name = "1 byte per 512 bytes of old generation";
        tables.extend(Table::of(&[(0, committed)], reserved, 512, name, sizes.page));
    }
    tables
}

/// The committed parts of a table whose first part ends with the first of these mappings, if the mappings match the
/// table's layout.
fn laid_out(maps: &[Mapping], table: &Table, claims: &Claims) -> Option<Vec<Claim>> {
    let first = maps.first()?;
    let (_, first_end) = *table.runs.first().filter(|run| run.0 == 0 && run.1 < table.length)?;
    let base = first.end.checked_sub(first_end).filter(|base| *base >= first.start)?;
    let mut found = Vec::new();
    let mut rest = maps;
    for (n, (run_start, run_end)) in table.runs.iter().enumerate() {
        let (start, end) = (base.checked_add(*run_start)?, base.checked_add(*run_end)?);
        let here = rest.first()?;
        let last = n + 1 == table.runs.len();
        // A part ends where its mapping ends, except for the last one if it ends the table.
        let ends = here.end == end || last && *run_end == table.length && here.end >= end;
        let begins = here.start == start || n == 0 && here.start <= start;
        (is_anonymous(here) && begins && ends && is_free(claims, start, end)).then_some(())?;
        found.push(Claim::new(start, end, Owner::Gc, "table", table.name));
        if *run_end < table.length {
            let hole = rest.get(1)?;
            let hole_end = base.checked_add(table.runs.get(n + 1).map_or(table.length, |next| next.0))?;
            // Several parts in the right places are enough evidence; in that case, the last hole may merge with the
            // following stretch.
            let joined = last && n > 0 && hole.end >= hole_end;
            (is_inaccessible(hole) && hole.start == end && (hole.end == hole_end || joined)).then_some(())?;
            rest = &rest[2..];
        }
    }
    Some(found)
}

/// Fully committed tables. An unclaimed part of the mapping consists of whole tables, or ends with them after something
/// smaller.
fn committed_in_full(mapping: &Mapping, claims: &Claims, sizes: &Sizes, tables: &[Table]) -> Vec<Claim> {
    let taken = claims.within(mapping.start, mapping.end).iter().map(|claim| (claim.start, claim.end));
    let mut full: Vec<&Table> = tables.iter().filter(|table| table.is_full()).collect();
    full.order_by_key(|table| table.length);
    full.dedup_by_key(|table| table.length);
    let whole = |(start, end): (u64, u64)| {
        if let Some(named) = &sizes.named {
            return named_in_full(start, end, named, &full, sizes);
        }
        if let Some(table) = by_regions(start, end, sizes) {
            return vec![table];
        }
        if sizes.unread_malloc {
            let queues = if sizes.regions.is_some() { QUEUES_MAX } else { 0 };
            let ends = (0..=queues).map_while(|queues| end.checked_sub(queues * QUEUE).filter(|end| *end > start));
            return ends
                .map(|end| ended_by(start, end, &full, sizes))
                .find(|found| !found.is_empty())
                .unwrap_or_default();
        }
        ended_by(start, end, &full, sizes)
    };
    gaps(mapping.start, mapping.end, taken).flat_map(whole).collect()
}

/// The tables at the end of a stretch. They follow a per-region table or, if malloc's chunks are known, something
/// smaller.
fn ended_by(start: u64, end: u64, full: &[&Table], sizes: &Sizes) -> Vec<Claim> {
    let length = end.saturating_sub(start);
    let taken = longest_sum(full, length);
    let Some(table) = full.iter().rev().find(|table| table.length <= taken) else { return Vec::new() };
    let beside = by_regions(start, end - taken, sizes);
    let beside_max = if sizes.unread_malloc { 0 } else { BESIDE_MAX.min(taken / 2) };
    if beside.is_none() && length - taken > beside_max {
        return Vec::new();
    }
    beside.into_iter().chain([Claim::new(end - taken, end, Owner::Gc, "table", table.name)]).collect()
}

/// The minimum that G1's tables contain, wherever they are: the cards of the committed heap, which G1 clears
/// (`G1CardTableChangedListener`), and the rows of `G1FromCardCache` with a pointer to each (JDK 11–25). Up to JDK 17,
/// G1 also writes the first offset of each region (`reset_bot`) and thus touches a page per region. `None` for other
/// collectors.
pub(super) fn written<'a>(maps: impl Iterator<Item = &'a Mapping>, sizes: &Sizes) -> Option<u64> {
    let (regions, (start, end)) = (sizes.regions?, sizes.heap?);
    let bytes = committed(maps, start, end).iter().map(|(from, to)| to - from).fold(0, u64::saturating_add);
    let region = end.saturating_sub(start).checked_div(regions)?.max(1);
    let offsets = if sizes.offsets_written { (bytes / region).saturating_mul(sizes.page).min(bytes / 512) } else { 0 };
    let rows = regions.checked_mul(8)?.checked_add((bytes / region).checked_mul(128)?)?;
    (bytes / 512).checked_add(offsets)?.checked_add(rows)
}

/// Returns the tables that end a stretch, back to back. Each begins at an address that HotSpot's own structures refer
/// to, and is as long as one of its tables. The bytes before them may be anything.
fn named_in_full(start: u64, end: u64, named: &BTreeSet<u64>, full: &[&Table], sizes: &Sizes) -> Vec<Claim> {
    let mut found: Vec<Claim> = Vec::new();
    let mut behind = end;
    let table = |at: u64, behind: u64| {
        let whole = full.iter().find(|table| at.checked_add(table.length) == Some(behind));
        let whole = whole.map(|table| Claim::new(at, behind, Owner::Gc, "table", table.name));
        whole.or_else(|| by_regions(at, behind, sizes))
    };
    while start < behind
        && let Some(last) = named.range(start..behind).find_map(|at| table(*at, behind))
    {
        behind = last.start;
        found.push(last);
    }
    found
}

/// The largest sum of lengths, each used up to [`SAME_MAX`] times, that fits into `length`.
fn longest_sum(tables: &[&Table], length: u64) -> u64 {
    let Some((table, others)) = tables.split_last() else { return 0 };
    let most = (length / table.length).min(SAME_MAX);
    let sum = |times: u64| times * table.length + longest_sum(others, length - times * table.length);
    (0..=most).map(sum).max().unwrap_or(0)
}

/// A table with one row per heap region, if this stretch is exactly as long as one: `G1FromCardCache` has a pointer and
/// a row per region; the row has 8 bytes per worker, padded to 128 bytes (JDK 11–25, `Padded2DArray`).
fn by_regions(start: u64, end: u64, sizes: &Sizes) -> Option<Claim> {
    let may_begin = sizes.named.as_ref().is_none_or(|named| named.contains(&start));
    let length = end.checked_sub(start).filter(|length| *length > 0 && may_begin)?;
    // The cards of 32 threads take 2 × 128 bytes. An unknown chunk may be as long as a larger table.
    let most = if sizes.unread_malloc { 2 } else { 8 };
    let fits = (1..=most).any(|row| rows(sizes.regions.unwrap_or(0), row, sizes.page) == Some(length));
    fits.then(|| Claim::new(start, end, Owner::Gc, "table", "cards scanned last"))
}

/// The length of `G1FromCardCache` with rows of `row` × 128 bytes; `None` if there are no regions.
fn rows(regions: u64, row: u64, page: u64) -> Option<u64> {
    (1..1 << 20).contains(&regions).then(|| (regions * (8 + row * 128) + 128).next_multiple_of(page))
}

/// Stacks of ended threads, which glibc keeps for new ones: as long as the stack of a living thread, with or without
/// its guard, because HotSpot may already have removed its own. Unless `metaspace_known`, omits any without a guard:
/// it may be part of metaspace, which is committed in multiples of 64 KiB (JDK 16 and newer).
pub(super) fn ended_stacks(maps: &[Mapping], claims: &Claims, page: u64, metaspace_known: bool) -> Vec<Claim> {
    let guard_max = GUARD_MAX.max(GUARD_PAGES_MAX * page);
    let spans = |n: usize| {
        let mapping = &maps[n];
        let is_guard = |before: &Mapping| before.end == mapping.start && is_inaccessible(before);
        let before = n.checked_sub(1).map(|before| &maps[before]);
        let guard = before.filter(|before| is_guard(before) && before.size().0 <= guard_max);
        (mapping.size().0 + guard.map_or(0, |guard| guard.size().0), guard.is_some())
    };
    let is_stack = |n: usize| {
        let mapping = &maps[n];
        let inside = claims.within(mapping.start, mapping.end);
        matches!(inside, [one] if one.owner == Owner::ThreadStacks)
    };
    let anonymous: Vec<usize> = (0..maps.len()).filter(|n| is_anonymous(&maps[*n])).collect();
    let living = anonymous.iter().filter(|n| is_stack(**n)).map(|n| spans(*n));
    let known: BTreeSet<u64> = living.filter(|(_, guarded)| *guarded).map(|(span, _)| span).collect();
    let ended = |n: &&usize| {
        let mapping = &maps[**n];
        let (span, guarded) = spans(**n);
        let whole = |length: u64| {
            known.iter().any(|known| length == *known || guarded && length.checked_sub(page) == Some(*known))
        };
        let fits = whole(span) || known.contains(&mapping.size().0);
        fits && (guarded || metaspace_known) && is_free(claims, mapping.start, mapping.end)
    };
    let name = "threads that have exited";
    let stack = |n: &usize| Claim::new(maps[*n].start, maps[*n].end, Owner::ThreadStacks, "thread", name);
    anonymous.iter().filter(ended).map(stack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::parse;
    use crate::observe::addresses::Purpose;

    /// Only the page size is known.
    fn sizes() -> Sizes {
        Sizes { page: 4096, ..Sizes::default() }
    }

    /// As seen on JDK 17.
    const CODE_RESERVED: u64 = 120_036 << 10;
    const CODE_COMMITTED: u64 = 2496 << 10;

    fn code_heap() -> JvmRange {
        let (end, committed_end, name) = (CODE_RESERVED, Some(CODE_COMMITTED), "all".to_owned());
        JvmRange { start: 0, end, committed_end, purpose: Purpose::CodeCache, name }
    }

    /// A heap reserved at 1 GiB, of this many MiB.
    fn heap(mib: u64) -> Option<(u64, u64)> {
        Some((1 << 30, (1 << 30) + (mib << 20)))
    }

    /// The claims in these mappings if the heap is known.
    fn found(maps: &str, sizes: &Sizes) -> Vec<Claim> {
        let heap = sizes.heap.map(|(start, end)| Claim::new(start, end, Owner::JavaHeap, "", ""));
        by_size(&parse(maps), heap.as_slice(), sizes)
    }

    fn ranges(claims: &[Claim]) -> Vec<(u64, u64)> {
        claims.iter().map(|claim| (claim.start, claim.end)).collect()
    }

    fn starts(claims: &[Claim]) -> Vec<u64> {
        claims.iter().map(|claim| claim.start).collect()
    }

    #[test]
    fn an_inverted_heap_range_has_no_committed_part() {
        let maps = parse("1000-9000 rw-p 0 00:00 0\n");
        assert_eq!(committed(maps.iter(), 0x2000, 0x4000), [(0, 0x2000)]);
        assert_eq!(committed(maps.iter(), 0x4000, 0x2000), []);
        assert_eq!(committed(maps.iter(), 0x2000, 0x2000), []);
    }

    /// Lengths seen on JDK 17 with a code heap of 120,036 KiB (2.4 MiB committed) and a heap of 1 GiB. Of the heap, the
    /// first 370 MiB and, for archived objects, the last 8 MiB are committed.
    #[test]
    fn gc_tables_are_found_by_the_layout_of_the_heap() {
        let maps = "40000000-57200000 rw-p 0 00:00 0\n57200000-7f800000 ---p 0 00:00 0\n7f800000-80000000 rw-p 0 \
             00:00 0\n\
             7f0000000000-7f0000005000 rw-p 0 00:00 0\n7f0000005000-7f00000eb000 ---p 0 00:00 0\n\
             7f553afff000-7f553b0b9000 rw-p 0 00:00 0\n7f553b0b9000-7f553b1fc000 ---p 0 00:00 0\n\
             7f553b1fc000-7f553b2b9000 rw-p 0 00:00 0\n7f553b2b9000-7f553b3fc000 ---p 0 00:00 0\n\
             7f553b3fc000-7f553b400000 rw-p 0 00:00 0\n\
             7f8000000000-7f80000b9000 rw-p 0 00:00 0\n7f80000b9000-7f8000200000 ---p 0 00:00 0\n";
        let found = found(maps, &Sizes { code_heaps: vec![code_heap()], heap: heap(1024), ..sizes() });
        let found: Vec<_> = found.iter().map(|claim| (claim.start, claim.end, claim.owner)).collect();
        let (code, gc) = (Owner::CodeCache, Owner::Gc);
        let expect = [
            (0x7f00_0000_0000, 0x7f00_0000_5000, code),
            (0x7f55_3b00_0000, 0x7f55_3b0b_9000, gc),
            (0x7f55_3b1f_c000, 0x7f55_3b20_0000, gc),
            (0x7f55_3b20_0000, 0x7f55_3b2b_9000, gc),
            (0x7f55_3b3f_c000, 0x7f55_3b40_0000, gc),
        ];
        assert_eq!(found, expect);
    }

    /// A 64 MiB heap whose card table the kernel splits in two, as seen on JDK 25 with Parallel. And a 16 MiB heap with
    /// the smallest tables that are searched for.
    #[test]
    fn adjacent_parts_form_one_table() {
        let sum = |claims: Vec<Claim>| claims.iter().map(|claim| claim.end - claim.start).sum::<u64>();
        let maps = "40000000-44000000 rw-p 0 00:00 0\n7f0000000000-7f0000015000 rw-p 0 00:00 0\n\
                    7f0000015000-7f0000020000 rw-p 0 00:00 0\n";
        assert_eq!(sum(found(maps, &Sizes { heap: heap(64), ..sizes() })), 128 << 10);
        let g1 = Sizes { regions: Some(16), heap: heap(16), ..sizes() };
        let maps = "40000000-41000000 rw-p 0 00:00 0\n7f0000000000-7f0000019000 rw-p 0 00:00 0\n";
        assert_eq!(sum(found(maps, &g1)), 100 << 10, "three tables of 32 KiB and the cards scanned last are found");
    }

    #[test]
    fn mark_stacks_start_at_their_distance_from_the_end_of_the_hole() {
        // A 1 MiB stack is directly below, in its own mapping or in theirs.
        let apart =
            "7f71e2f00000-7f71e3000000 rw-p 00000000 00:00 0 \n7f71e3000000-7f71e5000000 rw-p 00000000 00:00 0 \n";
        let joined = "7f71e2f00000-7f71e5000000 rw-p 00000000 00:00 0 \n";
        for before in [apart, joined] {
            let maps = parse(&format!("{before}7f71e5000000-7f73e3000000 ---p 00000000 00:00 0 \n"));
            let stack = Claim::new(0x7f71_e2f0_0000, 0x7f71_e300_0000, Owner::ThreadStacks, "thread", "main");
            let of = |z| by_size(&maps, std::slice::from_ref(&stack), &Sizes { z, ..sizes() });
            assert_eq!(of(true), [Claim::new(0x7f71_e300_0000, 0x7f71_e500_0000, Owner::Gc, "table", "mark stacks")]);
            assert_eq!(of(false), []);
        }
    }

    #[test]
    fn a_guard_page_belongs_to_the_archive_after_it() {
        let maps = "30000000-30001000 ---p 0 00:00 0\n30001000-30e00000 rw-p 0 00:00 7 /lib/server/classes.jsa\n\
                    50000000-50001000 ---p 0 00:00 0\n";
        let found: Vec<_> = found(maps, &sizes()).iter().map(|claim| (claim.start, claim.owner)).collect();
        assert_eq!(found, [(0x3000_0000, Owner::Cds)]);
    }

    /// A 1 GiB heap with 384 MiB committed, and a code heap: each table and its hole end at a page boundary.
    #[test]
    fn tables_take_whole_pages_of_any_size() {
        for page in [16 << 10, 64 << 10] {
            let map = [CODE_COMMITTED, CODE_RESERVED].map(|bytes| (bytes / 128).next_multiple_of(page));
            let maps = format!(
                "40000000-58000000 rw-p 0 00:00 0\n58000000-80000000 ---p 0 00:00 0\n\
                 7f0000000000-{:x} rw-p 0 00:00 0\n{:x}-{:x} ---p 0 00:00 0\n\
                 7f6000000000-7f60000c0000 rw-p 0 00:00 0\n7f60000c0000-7f6000200000 ---p 0 00:00 0\n\
                 7f7000000000-{:x} rw-p 0 00:00 0\n",
                (0x7f00_0000_0000u64 + map[0]),
                (0x7f00_0000_0000u64 + map[0]),
                (0x7f00_0000_0000u64 + map[1]),
                (0x7f70_0000_0000u64 + (513 * (8 + 128) + 128u64).next_multiple_of(page)),
            );
            let sizes = Sizes { page, code_heaps: vec![code_heap()], heap: heap(1024), regions: Some(513), ..sizes() };
            assert_eq!(starts(&found(&maps, &sizes)), [0x7f00_0000_0000, 0x7f60_0000_0000, 0x7f70_0000_0000], "{page}");
        }
    }

    #[test]
    fn stacks_with_large_page_guards_are_recognized() {
        // HotSpot's red, reserved, and yellow zones, after glibc's guard.
        let maps = "10000-50000 ---p 0 00:00 0\n50000-200000 rw-p 0 00:00 0\n\
                    300000-340000 ---p 0 00:00 0\n340000-4f0000 rw-p 0 00:00 0\n";
        let living = Claim::new(0x5_0000, 0x20_0000, Owner::ThreadStacks, "thread", "main");
        let found = ended_stacks(&parse(maps), &Claims::settle(vec![living]), 64 << 10, true);
        assert_eq!(starts(&found), [0x34_0000]);
    }

    #[test]
    fn a_stretch_ends_with_its_last_full_table() {
        let maps = "40000000-80000000 rw-p 0 00:00 0\n\
                    7f6000000000-7f6000200000 rw-p 0 00:00 0\n7f7000000000-7f7000201000 rw-p 0 00:00 0\n\
                    7f8000000000-7f80001f0000 rw-p 0 00:00 0\n";
        let found = ranges(&found(maps, &Sizes { heap: heap(1024), guarded: true, ..sizes() }));
        assert_eq!(found, [(0x7f60_0000_0000, 0x7f60_0020_0000), (0x7f70_0000_0000, 0x7f70_0020_1000)]);
    }

    /// As seen with DuckDB in a JVM with G1 and a 128 MiB heap: 8 MiB mappings of its jemalloc were as long as tables.
    #[test]
    fn named_ranges_distinguish_tables_from_a_foreign_librarys_memory() {
        let maps = "40000000-48000000 rw-p 0 00:00 0\n7f6000000000-7f6000800000 rw-p 0 00:00 0\n\
                    7f7000000000-7f7000400000 rw-p 0 00:00 0\n7f8000000000-7f8000080000 rw-p 0 00:00 0\n\
                    7f9000000000-7f9000045000 rw-p 0 00:00 0\n";
        let named = [
            0x7f70_0000_0000,
            0x7f70_0020_0000,
            0x7f80_0004_0000,
            0x7f60_0000_1000,
            0x7f90_0000_0000,
            0x7f90_0000_5000,
        ];
        let found = |named: Option<BTreeSet<u64>>| {
            let mut found = ranges(&found(maps, &Sizes { heap: heap(128), regions: Some(128), named, ..sizes() }));
            found.sort_unstable();
            found
        };
        assert!(found(None).iter().any(|(start, _)| *start == 0x7f60_0000_0000), "its length matches a table");
        assert_eq!(found(Some(BTreeSet::new())), []);
        let told = [
            (0x7f70_0000_0000, 0x7f70_0020_0000),
            (0x7f70_0020_0000, 0x7f70_0040_0000),
            (0x7f80_0004_0000, 0x7f80_0008_0000),
            (0x7f90_0000_0000, 0x7f90_0000_5000),
            (0x7f90_0000_5000, 0x7f90_0004_5000),
        ];
        // The first of the two bitmaps is as long as a table of both.
        let both = [&[(0x7f70_0000_0000, 0x7f70_0040_0000)], &told[2..]].concat();
        assert_eq!(found(Some(named.into())), both);
    }

    /// As seen in captures of JDK 25 with G1, two cores, and heaps of 512 and 256 MiB: two task queues end the first
    /// stretch, and malloc chunks begin the others.
    #[test]
    fn task_queues_end_a_stretch_of_tables_if_malloc_is_unread() {
        let unread = |mib, regions| Sizes { heap: heap(mib), regions: Some(regions), unread_malloc: true, ..sizes() };
        let maps = "40000000-60000000 rw-p 0 00:00 0\n7f4fc3442000-7f4fc35f0000 rw-p 0 00:00 0\n\
                    7f4fc35f0000-7f4fc38f2000 rw-p 0 00:00 0\n";
        assert_eq!(ranges(&found(maps, &unread(512, 512))), [(0x7f4f_c35f_0000, 0x7f4f_c36f_0000)]);
        // The cards and the rows of 512 regions: most of the first stretch, after chunks of 364 and 260 KiB.
        assert_eq!(written(parse(maps).iter(), &unread(512, 512)), Some((1 << 20) + 512 * (8 + 128)));
        let older = Sizes { offsets_written: true, ..unread(512, 512) };
        assert_eq!(written(parse(maps).iter(), &older), Some((2 << 20) + 512 * (8 + 128)));
        assert_eq!(written(parse(maps).iter(), &sizes()), None);
        let maps = "40000000-50000000 rw-p 0 00:00 0\n7f0000000000-7f00000dc000 rw-p 0 00:00 0\n\
                    7f03dac28000-7f03daf2a000 rw-p 0 00:00 0\n7f03dca12000-7f03dca53000 rw-p 0 00:00 0\n\
                    7f03dca53000-7f03dca5c000 rw-p 0 00:00 0\n";
        let of_256 = ranges(&found(maps, &unread(256, 256)));
        assert_eq!(of_256, [(0x7f03_dca5_3000, 0x7f03_dca5_c000), (0x7f03_dac2_8000, 0x7f03_dad2_8000)]);
    }

    #[test]
    fn ended_stacks_are_as_long_as_live_ones() {
        let maps = parse(
            "1000-5000 ---p 0 00:00 0\n5000-101000 rw-p 0 00:00 0\n\
             201000-205000 ---p 0 00:00 0\n205000-301000 rw-p 0 00:00 0\n\
             401000-501000 rw-p 0 00:00 0\n601000-604000 rw-p 0 00:00 0\n",
        );
        let living = Claim::new(0x5000, 0x10_1000, Owner::ThreadStacks, "thread", "main");
        let found = |metaspace_known| {
            starts(&ended_stacks(&maps, &Claims::settle(vec![living.clone()]), 4096, metaspace_known))
        };
        assert_eq!(found(true), [0x20_5000, 0x40_1000]);
        assert_eq!(found(false), [0x20_5000]);
    }
}
