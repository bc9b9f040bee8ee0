//! Walks a jemalloc linked into a library from outside (jemalloc 5.3, 64-bit, 4 KiB pages; layouts from
//! `include/jemalloc/internal/rtree.h`, `edata.h`, and `sc.h`).
//!
//! Symbols are not used, since libraries are stripped and prefix jemalloc's names: the radix tree is recognized by
//! its contents. The root is an array in the library's data, with a pointer to a leaf for each GiB of addresses. A leaf
//! has a word for each page of that GiB, which points to an `edata_t` with the address and size of the page's extent.
//! So each word can be checked against its position. If they agree, this is a jemalloc, and its extents are known
//! exactly.
//!
//! The process keeps running, so a few words may disagree. Only present pages are read.

use super::memory::{Memory, number};
use super::pagemap::{PagesOf, Run};
use super::pointers::{Pointer, words};
use super::ranges::leave_out_overlaps;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
/// Each of the tree's two levels covers this many bits of a page number (`RTREE_NSB` / 2).
const LEVEL_BITS: u32 = 18;
const PAGE_BITS: u32 = 12;
const LEAF_BYTES: u64 = 8 << LEVEL_BITS;
/// Leaves are aligned to cache lines, and `edata_t` to 128 bytes: the bits below contain the page's state.
const LINE: u64 = 64;
const EDATA: u64 = 128;
/// The address bits of a word; the size class is above them.
const ADDRESS: u64 = (1 << 48) - EDATA;
const SIZE: u64 = 0xffff << 48;
/// The bits between a page's state and its address, which are never set.
const UNUSED: u64 = 0x60;
/// The largest plausible size class (`SC_NSIZES` is 232; that number means none).
const SIZES: u64 = 235;
/// Bytes read from an `edata_t`: `e_bits`, `e_addr`, `e_size_esn`.
const HEAD: usize = 24;
/// Fewer matching words may be a coincidence.
const AGREE_MIN: usize = 4;
/// One in this many words may disagree.
const DISAGREE_SHARE: usize = 20;
/// A leaf is abandoned if more words than this do not fit.
const FOREIGN_MAX: usize = 16;
/// Maximum number of extents followed: 12 MiB of their heads.
const EXTENTS_MAX: usize = 1 << 19;

/// A stretch that jemalloc took from the system and has handed out, keeps, or has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Bytes not in use: all of a dirty, muzzy, or retained extent; the free regions of a slab.
    pub free: u64,
}

/// The result of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// In address order, disjoint.
    pub extents: Vec<Extent>,
    /// Whether `free` can be trusted.
    pub split: Split,
}

/// Whether memory in use could be distinguished from free memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// They could be distinguished.
    Known,
    /// The layout of `edata_t` is not that of jemalloc 5.3.
    Unknown,
}

/// A word of a leaf with the contents of its `edata_t`.
#[derive(Debug, Clone, Copy)]
struct Page {
    edata: u64,
    word: u64,
    bits: u64,
    addr: u64,
    size: u64,
}

/// Walks the jemalloc whose root has these pointers, if there is one. `pointers` are the words of a library's data.
pub fn walk(memory: &dyn Memory, pages_of: &mut PagesOf, pointers: &[Pointer]) -> Option<Walk> {
    let mut roots: BTreeMap<u64, Vec<Page>> = BTreeMap::new();
    for pointer in pointers.iter().filter(|pointer| pointer.to.is_multiple_of(LINE)) {
        if let Some((number, pages)) = read_leaf(memory, pages_of, pointer.to)
            && let Some(root) = pointer.at.checked_sub(number * 8)
        {
            roots.entry(root).or_default().extend(pages);
        }
    }
    let pages = roots.into_values().max_by_key(Vec::len)?;
    let extents: BTreeMap<u64, Page> = pages.into_iter().map(|page| (page.edata, page)).collect();
    Some(conclude(extents.values()))
}

/// The leaf at this address: its index in the root, and the matching pages. `None` if there is no leaf.
fn read_leaf(memory: &dyn Memory, pages_of: &mut PagesOf, at: u64) -> Option<(u64, Vec<Page>)> {
    let end = at.checked_add(LEAF_BYTES)?;
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut foreign = 0;
    for mut run in pages_of(at & !(PAGE - 1), end.checked_next_multiple_of(PAGE)?) {
        (run.start, run.end) = (run.start.max(at), run.end.min(end));
        // Piece by piece, because anything other than a leaf is recognized early.
        while run.start < run.end && foreign <= FOREIGN_MAX.max(found.len()) && found.len() < 1 << LEVEL_BITS {
            let mut unbounded = u64::MAX;
            let piece = Run { end: run.end.min(run.start + (64 << 10)), ..run };
            words(memory, &[piece], &mut unbounded, &mut |word| match is_word(word.to) {
                // A page that was returned: no address, and the size class that means none.
                _ if word.to & !SIZE == 0 => {}
                true => found.push(((word.at - at) / 8, word.to)),
                false => foreign += 1,
            });
            run.start = piece.end;
        }
    }
    let few = |disagree: usize, agree: usize| agree >= AGREE_MIN && disagree * DISAGREE_SHARE <= agree;
    few(foreign, found.len()).then_some(())?;
    let heads = read_heads(memory, pages_of, &found)?;
    let page = |(place, word): &(u64, u64)| {
        let [bits, addr, size] = *heads.get(&(word & ADDRESS))?;
        let first = addr >> PAGE_BITS;
        let pages = (size >> PAGE_BITS).max(1);
        let here = first >> LEVEL_BITS << LEVEL_BITS | place;
        let page =
            Page { edata: word & ADDRESS, word: *word, bits, addr: first << PAGE_BITS, size: pages << PAGE_BITS };
        (here.wrapping_sub(first) < pages).then_some((first >> LEVEL_BITS, page))
    };
    let pages: Vec<(u64, Page)> = found.iter().filter_map(page).collect();
    let (number, _) = *pages.first()?;
    let pages: Vec<Page> = pages.into_iter().filter(|(of, _)| *of == number).map(|(_, page)| page).collect();
    few(found.len() - pages.len(), pages.len()).then_some((number, pages))
}

fn is_word(word: u64) -> bool {
    word >> 48 <= SIZES && word & UNUSED == 0 && word & ADDRESS >= PAGE
}

/// Reads the `edata_t` that these words point to, keyed by address; skips those not in memory.
fn read_heads(memory: &dyn Memory, pages_of: &mut PagesOf, found: &[(u64, u64)]) -> Option<BTreeMap<u64, [u64; 3]>> {
    let mut wanted: Vec<u64> = found.iter().map(|(_, word)| word & ADDRESS).collect();
    wanted.sort_unstable();
    wanted.dedup();
    (wanted.len() <= EXTENTS_MAX).then_some(())?;
    let (mut page, mut present) = (0, false);
    wanted.retain(|at| {
        if at & !(PAGE - 1) != page {
            page = at & !(PAGE - 1);
            present = pages_of(page, page + PAGE).iter().any(|run| !run.swapped);
        }
        present
    });
    let mut bytes = vec![0; wanted.len() * HEAD];
    memory.read_each(&wanted, &mut bytes).then_some(())?;
    let heads = bytes.chunks_exact(HEAD).map(|head| [number(&head[..8]), number(&head[8..16]), number(&head[16..])]);
    Some(wanted.into_iter().zip(heads).collect())
}

fn conclude<'p>(pages: impl Iterator<Item = &'p Page>) -> Walk {
    let (mut extents, mut strange): (Vec<Extent>, usize) = (Vec::new(), 0);
    for page in pages {
        let free = free(page).unwrap_or_else(|| {
            strange += 1;
            0
        });
        extents.push(Extent { start: page.addr, end: page.addr.saturating_add(page.size), free });
    }
    let split = if strange * DISAGREE_SHARE <= extents.len() { Split::Known } else { Split::Unknown };
    extents.order_by_key(|extent| (extent.start, extent.end));
    leave_out_overlaps(&mut extents, |extent| (extent.start, extent.end));
    Walk { extents, split }
}

/// The unused bytes of an extent. `None` if its word in the leaf and its `e_bits` disagree. They agree in jemalloc 5.3
/// (`EDATA_BITS_*`: arena 12 bits, slab, committed, pai, zeroed, guarded, state 3, size 8, regions 10; in the leaf:
/// slab, head, state 3). States: 0 active, 1 dirty, 2 muzzy, 3 retained, 4 and 5 in transition.
fn free(page: &Page) -> Option<u64> {
    let field = |from: u32, width: u32| page.bits >> from & ((1 << width) - 1);
    let (slab, state, class, regions) = (field(12, 1), field(17, 3), field(20, 8), field(28, 10));
    (page.word & 1 == slab && page.word >> 2 & 7 == state && state <= 5).then_some(())?;
    match (state, slab) {
        (0, 0) => Some(0),
        (0, _) => {
            let free = regions.checked_mul(class_size(class)?)?;
            (free <= page.size).then_some(free)
        }
        _ => Some(page.size),
    }
}

/// The size of a class (`sz_index2size`): 8, multiples of 16 up to 64, then four per doubling.
fn class_size(class: u64) -> Option<u64> {
    match class {
        0 => Some(8),
        1..=4 => Some(class * 16),
        5..=231 => {
            let (group, step) = ((class - 5) / 4, (class - 5) % 4 + 1);
            Some((64 << group) + step * (16 << group))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::hotspot::made_up::MadeUpMemory;
    use super::*;

    const ROOT: u64 = 0x7f00_0000_0d18;
    const LEAF: u64 = 0x7f10_0000_00c0;
    const EDATAS: u64 = 0x7f20_0000_0000;
    const GIB: u64 = 0x7f83;

    /// A generated jemalloc, and the address of its leaf.
    struct Made(MadeUpMemory, u64);

    impl Made {
        /// An extent of this many pages: state, size class, and free regions of a slab.
        fn extent(&mut self, n: u64, page: u64, pages: u64, state: u64, slab: Option<(u64, u64)>) {
            let edata = EDATAS + n * EDATA;
            let (class, free) = slab.unwrap_or((52, 0));
            let is_slab = u64::from(slab.is_some());
            let addr = (GIB << LEVEL_BITS | page) << PAGE_BITS;
            // jemalloc starts a large allocation at any offset in its first page.
            let begin = if slab.is_some() { addr } else { addr + 0x340 };
            let bits = is_slab << 12 | 1 << 13 | state << 17 | class << 20 | free << 28;
            self.0.words(edata, &[bits, begin, (pages * PAGE) | 7]);
            let word = 232 << 48 | edata | state << 2 | is_slab;
            for place in if slab.is_some() { (page..page + pages).collect() } else { vec![page, page + pages - 1] } {
                self.0.word(self.1 + place * 8, word);
            }
        }

        fn walk(&self) -> Option<Walk> {
            let mut pages_of = |start: u64, end: u64| {
                let pages = self.0.pages.range(start..end).map(|(page, _)| *page);
                pages.map(|start| Run { start, end: start + PAGE, swapped: false }).collect()
            };
            walk(&self.0, &mut pages_of, &[Pointer { at: ROOT + 8 * GIB, to: LEAF }, Pointer { at: 64, to: EDATAS }])
        }
    }

    fn made(leaf: u64) -> Made {
        let mut made = Made(MadeUpMemory::default(), leaf);
        // Leftover words of returned pages.
        made.0.words(leaf + 1000 * 8, &[232 << 48; 100]);
        made.extent(0, 100, 65, 0, None);
        made.extent(1, 200, 2, 0, Some((12, 5)));
        made.extent(2, 300, 10, 1, None);
        made.extent(3, 400, 10, 2, None);
        made.extent(4, 500, 100, 3, None);
        made
    }

    #[test]
    fn extents_are_found_with_their_free_bytes() {
        let walk = made(LEAF).walk().unwrap();
        let found: Vec<_> =
            walk.extents.iter().map(|extent| ((extent.end - extent.start) / PAGE, extent.free)).collect();
        assert_eq!(found, [(65, 0), (2, 5 * 256), (10, 10 * PAGE), (10, 10 * PAGE), (100, 100 * PAGE)]);
        assert_eq!(walk.split, Split::Known);
    }

    #[test]
    fn misplaced_words_are_not_a_leaf() {
        assert_eq!(made(LEAF + 8 * 200).walk(), None);
        let mut full = made(LEAF);
        full.0.words(LEAF + 1000 * 8, &[0x7777_6666_5555_4444; 200]);
        assert_eq!(full.walk(), None, "memory with other words is not a leaf");
    }

    /// jemalloc 5.2 has neither the state in the leaf nor `guarded` in `e_bits`.
    #[test]
    fn extents_in_another_layout_are_not_divided() {
        let mut older = made(LEAF);
        for at in (0..5).map(|n| EDATAS + n * EDATA) {
            let bits = older.0.u64(at).unwrap();
            older.0.word(at, bits ^ 1 << 17);
        }
        let walk = older.walk().unwrap();
        assert_eq!((walk.extents.len(), walk.split), (5, Split::Unknown));
    }

    #[test]
    fn class_sizes_match_jemalloc() {
        let sizes = [0, 1, 4, 5, 8, 12, 28, 36, 52].map(class_size);
        assert_eq!(sizes, [8, 16, 64, 80, 128, 256, 4096, 16 << 10, 256 << 10].map(Some));
        assert_eq!(class_size(232), None);
    }
}
