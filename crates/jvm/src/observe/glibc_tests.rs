//! Heaps of glibc made up byte by byte, as `malloc/arena.c` and `malloc/malloc.c` of 2.31, 2.36 and 2.43 lay them out,
//! and walked. The expected result of a walk comes from the plan they were made by, not from their bytes.
//!
//! The first law is that of [`Made::read`]: a page that is not present is never asked for.

use super::super::hotspot::made_up::MadeUpMemory;
use super::super::nmt_header::Tag;
use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const PAGE: u64 = 4096;
/// How glibc 2.31, 2.36 and 2.43 lay out an arena, and a layout that no glibc has yet.
const SHAPES: [Layout; 4] = [
    Layout { header: 0x20, top: 0x60, system: 0x888 },
    Layout { header: 0x30, top: 0x60, system: 0x888 },
    Layout { header: 0x30, top: 0x8, system: 0x830 },
    Layout { header: 0x40, top: 0x18, system: 0xa00 },
];
const OF_2_36: Layout = SHAPES[1];

/// The address where the heaps of threads begin; each is at a multiple of 64 MiB.
const BASE: u64 = 0x7f00_0000_0000;
const STEP: u64 = 64 << 20;
const IN_USE_BEFORE: u64 = 1;
const OF_MMAP: u64 = 2;
const OF_THREAD: u64 = 4;

/// The kind of a stretch of a made-up heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkKind {
    /// Headers of heap and arena.
    Own,
    Live,
    /// With NMT's header: number and bytes asked for.
    Tagged(u8, u64),
    Free,
    Top,
    /// Fenceposts, and what is mapped behind the heap.
    Rest,
}

/// One mapping.
#[derive(Clone)]
struct Piece {
    start: u64,
    /// `heap_info.size`; what is mapped can be longer.
    size: u64,
    /// 0 for `[heap]`.
    arena: u64,
    shape: Layout,
    bytes: Vec<u8>,
    /// The address of the next chunk.
    at: u64,
    /// The size of the chunk before, where that is free.
    free_before: Option<u64>,
    stretches: Vec<(u64, u64, ChunkKind)>,
}

/// Without its bytes.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{:#x} of {:#x}, arena {:#x}:", self.start, self.size, self.bytes.len(), self.arena)?;
        self.stretches.iter().try_for_each(|(start, end, kind)| write!(f, " {start:#x}+{:#x} {kind:?}", end - start))
    }
}

impl Piece {
    fn plain(start: u64, mapped: u64) -> Self {
        let bytes = vec![0; mapped as usize];
        let shape = OF_2_36;
        Self { start, size: mapped, arena: 0, shape, bytes, at: start, free_before: None, stretches: Vec::new() }
    }

    /// A heap with its arena, that heap's first.
    fn arena(start: u64, shape: Layout, size: u64) -> Self {
        let mut part = Self::further(start, shape, start + shape.header, 0, size);
        part.at = (part.at + shape.system + 16).next_multiple_of(16);
        part.stretches = vec![(start, part.at, ChunkKind::Own)];
        part
    }

    /// A further heap of an arena.
    fn further(start: u64, shape: Layout, arena: u64, before: u64, size: u64) -> Self {
        let head = shape.header;
        let mut part = Self { size, arena, shape, ..Self::plain(start, size) };
        for (n, word) in [arena, before, size, size, PAGE].into_iter().take(head as usize / 8).enumerate() {
            part.put(start + 8 * n as u64, word);
        }
        part.at = start + head;
        part.stretches = vec![(start, part.at, ChunkKind::Own)];
        part
    }

    fn put(&mut self, at: u64, word: u64) {
        let from = (at - self.start) as usize;
        self.bytes[from..from + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn end(&self) -> u64 {
        self.start + self.size
    }

    fn mapped_end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// A header of `size` bytes, whatever follows.
    fn head(&mut self, size: u64) {
        let of_thread = if self.arena == 0 { 0 } else { OF_THREAD };
        let before = if self.free_before.is_some() { 0 } else { IN_USE_BEFORE };
        if let Some(foot) = self.free_before {
            self.put(self.at, foot);
        }
        self.put(self.at + 8, size | of_thread | before);
    }

    fn chunk(&mut self, size: u64, kind: ChunkKind) {
        self.head(size);
        self.stretches.push((self.at, self.at + size, kind));
        self.free_before = (kind == ChunkKind::Free).then_some(size);
        self.at += size;
    }

    fn live(&mut self, size: u64) -> &mut Self {
        self.chunk(size, ChunkKind::Live);
        self
    }

    fn free(&mut self, size: u64) -> &mut Self {
        self.chunk(size, ChunkKind::Free);
        self
    }

    /// Adds the chunk that HotSpot gets for `asked` bytes while it tracks native memory.
    fn tagged(&mut self, number: u8, asked: u64) -> &mut Self {
        let at = self.at;
        // 16 bytes of NMT before and 2 behind, 8 of glibc, rounded up.
        self.chunk((asked + 26).next_multiple_of(16).max(32), ChunkKind::Tagged(number, asked));
        self.put(at + 16, asked);
        self.put(at + 24, 0xE99E << 48 | u64::from(number) << 32 | 0x1234);
        self
    }

    /// The rest is the top chunk.
    fn top(&mut self) -> u64 {
        let top = self.at;
        self.head(self.end() - top);
        self.stretches.push((top, self.mapped_end(), ChunkKind::Top));
        top
    }

    /// The heap is left for a new one (`sysmalloc`): the rest of its top, if it is `freed`, and two fenceposts.
    fn leave(&mut self, freed: bool) -> &mut Self {
        let fences = self.end() - 32;
        if self.at < fences {
            self.chunk(fences - self.at, if freed { ChunkKind::Free } else { ChunkKind::Live });
        }
        self.head(16);
        self.put(fences + 24, IN_USE_BEFORE);
        self.stretches.push((fences, self.mapped_end(), ChunkKind::Rest));
        self
    }

    /// Maps more memory behind the heap.
    fn mapped(mut self, more: u64) -> Self {
        self.bytes.resize(self.bytes.len() + more as usize, 0);
        self
    }
}

/// Memory with its pages. Those of no kind are present.
#[derive(Debug, Clone, Default)]
struct MadeHeap {
    parts: Vec<Piece>,
    absent: BTreeSet<u64>,
    swapped: BTreeSet<u64>,
}

impl Memory for MadeHeap {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let end = at + into.len() as u64;
        let pages = (at / PAGE..end.div_ceil(PAGE)).map(|page| page * PAGE);
        for page in pages {
            assert!(self.is_present(page), "the absent page {page:#x} was read");
        }
        let part = self.parts.iter().find(|part| part.start <= at && end <= part.mapped_end());
        let Some(part) = part else { panic!("{at:#x} to {end:#x} is not mapped as one") };
        into.copy_from_slice(&part.bytes[(at - part.start) as usize..(end - part.start) as usize]);
        true
    }
}

#[test]
fn a_mapped_chunk_takes_whole_pages_of_any_size() {
    for page in [4 << 10, 16 << 10, 64 << 10] {
        let found = |size: u64| {
            let mut memory = MadeUpMemory::default();
            memory.put(page, &vec![0; 8 * page as usize]);
            memory.word(page + 8, size | IS_MMAPPED);
            let runs = [Run { start: page, end: 9 * page, swapped: false }];
            let found = mmapped(&memory.with_pages_of(page), page, 9 * page, &runs);
            found.iter().map(|chunk| (chunk.start, chunk.end)).collect::<Vec<_>>()
        };
        assert_eq!(found(3 * page), [(page, 4 * page)]);
        assert_eq!(found(3 * page + page / 2), []);
    }
}

/// Walks all heaps among the candidates.
fn walk(memory: &dyn Memory, candidates: &[HeapCandidate]) -> Walk {
    let layout = Layout::find(memory, candidates);
    let walked = (0..candidates.len()).map(|index| walk_one(memory, candidates, layout, index));
    conclude(memory, candidates, layout, walked.collect())
}

impl MadeHeap {
    fn of(parts: impl IntoIterator<Item = Piece>) -> Self {
        Self { parts: parts.into_iter().collect(), ..Self::default() }
    }

    /// Writes what an arena knows of itself: its top, and its sum of heaps.
    fn arena_knows(&mut self, arena: u64, top: u64) {
        let system = self.parts.iter().filter(|part| part.arena == arena).map(|part| part.size).sum();
        let own = self.parts.iter_mut().find(|part| part.start == arena / STEP * STEP).unwrap();
        own.put(arena + own.shape.top, top);
        own.put(arena + own.shape.system, system);
        own.put(arena + own.shape.system + 8, system);
    }

    fn is_present(&self, page: u64) -> bool {
        !self.absent.contains(&page) && !self.swapped.contains(&page)
    }

    fn runs(&self, part: &Piece) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for start in (part.start..part.mapped_end()).step_by(PAGE as usize) {
            let swapped = self.swapped.contains(&start);
            let end = (start + PAGE).min(part.mapped_end());
            match runs.last_mut() {
                _ if self.absent.contains(&start) => {}
                Some(last) if last.end == start && last.swapped == swapped => last.end = end,
                _ => runs.push(Run { start, end, swapped }),
            }
        }
        runs
    }

    fn candidates(&self) -> Vec<HeapCandidate> {
        let candidate = |part: &Piece| HeapCandidate {
            start: part.start,
            end: part.mapped_end(),
            main: part.start < BASE,
            runs: self.runs(part),
        };
        self.parts.iter().map(candidate).collect()
    }

    /// Walks, and fails where that takes too long.
    fn walk(&self) -> Walk {
        let made = self.clone();
        bounded(move || walk(&made, &made.candidates()))
    }

    /// Present and swapped bytes of a range, page by page.
    fn backed(&self, start: u64, end: u64) -> (u64, u64) {
        let (mut present, mut swapped) = (0, 0);
        for page in (start / PAGE * PAGE..end).step_by(PAGE as usize) {
            let bytes = (page + PAGE).min(end) - page.max(start);
            match page {
                page if self.is_present(page) => present += bytes,
                page if self.swapped.contains(&page) => swapped += bytes,
                _ => {}
            }
        }
        (present, swapped)
    }

    /// Returns the bytes of a stretch that `mtrim` and `systrim` let go of, by glibc's own formulas.
    fn trimmable(&self, part: &Piece, (start, end, kind): (u64, u64, ChunkKind)) -> u64 {
        let psm1 = PAGE - 1;
        match kind {
            ChunkKind::Free if end - start > psm1 + 0x30 => {
                let aligned = (start + 0x30 + psm1) & !psm1;
                self.backed(aligned, aligned + ((end - aligned) & !psm1)).0
            }
            ChunkKind::Top if part.arena == 0 && part.end() - start > 33 => {
                let extra = (part.end() - start - 33) & !psm1;
                self.backed(part.end() - extra, part.end()).0
            }
            _ => 0,
        }
    }

    /// Returns the expected walk of the heap with this index.
    fn expected(&self, index: usize) -> HeapWalk {
        let part = &self.parts[index];
        let (mut live, mut free, mut trimmable) = (Chunks::default(), Chunks::default(), 0);
        let mut tagged: BTreeMap<u8, Chunks> = BTreeMap::new();
        for stretch in &part.stretches {
            let (start, end, kind) = *stretch;
            let (resident, swapped) = self.backed(start, end);
            let count = u64::from(!matches!(kind, ChunkKind::Own | ChunkKind::Rest));
            let asked = if let ChunkKind::Tagged(_, asked) = kind { asked } else { 0 };
            let chunks = Chunks { count, bytes: end - start, asked, resident, swapped };
            match kind {
                ChunkKind::Own | ChunkKind::Live => live += chunks,
                ChunkKind::Tagged(number, _) => *tagged.entry(number).or_default() += chunks,
                ChunkKind::Free | ChunkKind::Top | ChunkKind::Rest => free += chunks,
            }
            trimmable += self.trimmable(part, *stretch);
        }
        let (tagged, arena) = (tagged.into_iter().collect(), part.arena);
        HeapWalk { index, arena, system: part.size, live, tagged, free, trimmable }
    }
}

/// Returns the result of a piece of work; panics if it does not end in time.
fn bounded<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    let worker = std::thread::spawn(move || send.send(work()));
    match receive.recv_timeout(Duration::from_secs(10)) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => panic!("no end"),
        Err(RecvTimeoutError::Disconnected) => std::panic::resume_unwind(worker.join().unwrap_err()),
    }
}

/// An arena with one heap of 132 KiB of all kinds of chunks.
fn one_arena(shape: Layout, start: u64) -> MadeHeap {
    let mut part = Piece::arena(start, shape, 33 * PAGE).mapped(2 * PAGE);
    part.live(0x290).tagged(5, 100).free(0x40).live(0x20).free(5 * PAGE).tagged(5, 9 * PAGE).tagged(11, 1).live(0x90);
    let (arena, top) = (part.arena, part.top());
    let mut made = MadeHeap::of([part]);
    made.arena_knows(arena, top);
    made
}

/// The heap is the first of the C library: `[heap]`.
fn main_heap() -> Piece {
    let mut part = Piece::plain(0x55_0000_7000, 64 * PAGE);
    part.live(0x290).tagged(7, 3000).live(2 * PAGE).free(3 * PAGE).tagged(9, 10).free(0x30).live(0x1000);
    part.top();
    part
}

/// An arena with three heaps, of which the first two were left.
fn three_heaps(shape: Layout) -> MadeHeap {
    let head = shape.header;
    let mut first = Piece::arena(BASE, shape, 16 * PAGE);
    first.tagged(3, 40_000).live(0x50).leave(true);
    let mut second = Piece::further(BASE + 3 * STEP, shape, BASE + head, BASE, 8 * PAGE);
    second.live(0x100).free(2 * PAGE).tagged(3, 500).leave(false);
    let mut third = Piece::further(BASE + STEP, shape, BASE + head, BASE + 3 * STEP, 33 * PAGE);
    third.live(0x4000).tagged(4, 77).free(0x5000).live(0x20);
    let top = third.top();
    let mut made = MadeHeap::of([first, third, second]);
    made.arena_knows(BASE + head, top);
    made
}

#[track_caller]
fn walks_exactly(made: &MadeHeap) {
    let found = made.walk();
    assert_eq!((&found.unknown_layout, &found.errors, &found.others), (&None, &Vec::new(), &Vec::new()));
    assert_eq!(found.heaps.len(), made.parts.len());
    for (index, heap) in found.heaps.iter().enumerate() {
        assert_eq!(*heap, made.expected(index));
    }
}

#[test]
fn an_arena_is_walked_to_its_top() {
    for shape in SHAPES {
        let made = one_arena(shape, BASE);
        walks_exactly(&made);
        let found = made.expected(0);
        // So that the plan is not empty of what it is for.
        assert_eq!(
            found.tagged.iter().map(|(tag, chunks)| (*tag, chunks.count)).collect::<Vec<_>>(),
            [(5, 2), (11, 1)]
        );
        assert_eq!((found.live.count, found.free.count, found.trimmable), (3, 3, 4 * PAGE));
        assert_eq!(found.tagged[0].1.asked, 100 + 9 * PAGE);
    }
}

#[test]
fn the_main_heap_needs_no_arena_beside_it() {
    let mut made = MadeHeap::of([main_heap()]);
    walks_exactly(&made);
    assert!(made.expected(0).trimmable > 50 * PAGE, "the top of the main arena can be trimmed");
    for page in 30..60 {
        made.absent.insert(0x55_0000_7000 + page * PAGE);
    }
    walks_exactly(&made);
    made.parts.extend(one_arena(OF_2_36, BASE).parts);
    walks_exactly(&made);
}

#[test]
fn heaps_of_one_arena_end_at_their_fenceposts() {
    SHAPES.into_iter().map(three_heaps).for_each(|made| walks_exactly(&made));
}

#[test]
fn pages_inside_chunks_may_be_absent_or_swapped() {
    for shape in SHAPES {
        let mut made = one_arena(shape, BASE);
        for (start, end, _) in made.parts[0].stretches.clone() {
            let inside: Vec<u64> = ((start + 32).next_multiple_of(PAGE)..end / PAGE * PAGE).step_by(4096).collect();
            made.absent.extend(inside.iter().step_by(2));
            made.swapped.extend(inside.iter().skip(1).step_by(2));
        }
        assert!(made.absent.len() > 5 && made.swapped.len() > 5);
        walks_exactly(&made);
    }
}

#[test]
fn a_chunk_whose_header_is_absent_ends_the_walk() {
    let mut made = one_arena(OF_2_36, BASE);
    made.parts.extend(one_arena(OF_2_36, BASE + STEP).parts);
    // The page with the free chunk's end and the next chunk's header.
    let (_, at, _) = made.parts[0].stretches[5];
    made.swapped.insert(at / PAGE * PAGE);
    let found = made.walk();
    assert_eq!(found.errors.iter().map(|error| (error.index, error.at)).collect::<Vec<_>>(), [(0, at)]);
    assert_eq!((found.heaps.len(), &found.unknown_layout), (1, &None));
    assert_eq!(found.heaps[0], made.expected(1));
}

#[test]
fn a_heap_whose_header_is_absent_is_no_heap() {
    let mut made = one_arena(SHAPES[0], BASE);
    made.parts.extend(one_arena(SHAPES[0], BASE + STEP).parts);
    made.absent.insert(BASE);
    let found = made.walk();
    assert_eq!((found.heaps.len(), found.others, found.errors.len()), (1, vec![0], 0));
    made.swapped.insert(BASE + STEP);
    assert_eq!(made.walk().others, [0, 1]);
}

#[test]
fn sums_must_agree_for_one_arena_at_least() {
    let mut made = one_arena(OF_2_36, BASE);
    made.parts[0].put(BASE + 0x30 + OF_2_36.system, 34 * PAGE);
    let alone = made.walk();
    assert!(alone.unknown_layout.is_some() && alone.heaps.is_empty(), "{alone:?}");
    assert_eq!(alone.errors.len(), 1);
    // An arena that was caught while it grew, and another that was not.
    made.parts.extend(one_arena(OF_2_36, BASE + STEP).parts);
    let beside = made.walk();
    assert_eq!((beside.unknown_layout, beside.heaps.len()), (None, 2));
}

#[test]
fn an_unknown_layout_is_said_to_be_one() {
    // A state with more words behind its sums puts the first chunk elsewhere.
    let mut part = Piece::arena(BASE, OF_2_36, 33 * PAGE);
    part.at += 0x40;
    part.live(0x290).free(0x400).live(0x20);
    let (arena, top) = (part.arena, part.top());
    let mut made = MadeHeap::of([part]);
    made.arena_knows(arena, top);
    let found = made.walk();
    assert!(found.unknown_layout.is_some() && found.heaps.is_empty(), "{found:?}");
    assert_eq!(found.errors.iter().map(|error| error.index).collect::<Vec<_>>(), [0]);
    // An arena that knows no top: a heap that cannot be split, and is malloc's all the same.
    let other = MadeHeap::of([Piece::arena(BASE, OF_2_36, 33 * PAGE)]).walk();
    assert_eq!((other.others, other.heaps.len(), other.errors.len()), (Vec::new(), 0, 1));
    // Memory that merely begins where a heap might.
    assert_eq!(MadeHeap::of([Piece::plain(BASE, 9 * PAGE)]).walk().others, [0]);
}

/// A false end must not hide the rest: zeros in the middle are no fenceposts.
#[test]
fn zeros_in_the_middle_are_no_end() {
    for size in [0, 0x10] {
        let mut made = one_arena(OF_2_36, BASE);
        made.parts.extend(one_arena(OF_2_36, BASE + STEP).parts);
        let (_, at, _) = made.parts[0].stretches[4];
        made.parts[0].put(at + 8, size | IN_USE_BEFORE);
        made.parts[0].put(at + 24, 0);
        let found = made.walk();
        assert_eq!(found.errors.iter().map(|error| error.at).collect::<Vec<_>>(), [at], "{size:#x}");
    }
}

/// A size that would lead backwards must not be followed.
#[test]
fn sizes_do_not_wrap() {
    for size in [0u64.wrapping_sub(0x20), 0u64.wrapping_sub(0x1000), 1 << 63, u64::MAX - 15] {
        let mut made = one_arena(OF_2_36, BASE);
        let (_, at, _) = made.parts[0].stretches[6];
        made.parts[0].put(at + 8, size | OF_THREAD | IN_USE_BEFORE);
        assert_eq!(made.walk().errors.iter().map(|error| error.at).collect::<Vec<_>>(), [at], "{size:#x}");
    }
}

#[test]
fn chunks_with_mappings_of_their_own_are_found_among_other_pages() {
    let mut part = Piece::plain(BASE + 0x7000, 64 * PAGE);
    let at = |page: u64| BASE + 0x7000 + page * PAGE;
    let chunk = |part: &mut Piece, page: u64, pages: u64| part.put(at(page) + 8, (pages * PAGE) | OF_MMAP);
    (0..20).step_by(8).for_each(|n| part.put(at(2) + n, 0xabcd));
    chunk(&mut part, 3, 10);
    chunk(&mut part, 13, 33);
    part.put(at(13) + 16, 33 * PAGE - 4000);
    part.put(at(13) + 24, 0xE99E << 48 | 12 << 32);
    // The search skips the inside of a chunk. A size that is longer than the surroundings does not belong to a chunk.
    chunk(&mut part, 5, 1);
    chunk(&mut part, 50, 30);
    chunk(&mut part, 60, 1);
    chunk(&mut part, 63, 1);
    let mut made = MadeHeap::of([part]);
    made.absent.extend([at(0), at(1), at(7), at(8), at(47), at(61), at(62)]);
    made.swapped.extend([at(9), at(48)]);
    let runs = made.runs(&made.parts[0]);
    let found = mmapped(&made, at(0), at(64), &runs);
    let tag = Some(Tag { number: 12, asked: 33 * PAGE - 4000 });
    let expect = [(at(3), at(13), None), (at(13), at(46), tag), (at(60), at(61), None), (at(63), at(64), None)];
    assert_eq!(found.iter().map(|chunk| (chunk.start, chunk.end, chunk.tag)).collect::<Vec<_>>(), expect);
    // Behind the range, present or not, chunks are not its own.
    assert_eq!(mmapped(&made, at(0), at(3), &runs), []);
    assert_eq!(mmapped(&made, at(46), at(60), &runs), []);
    assert_eq!(mmapped(&made, at(4), at(5), &runs), []);
    // Nothing of the range is present: the chunk behind it must not be taken, nor its length wrap.
    assert_eq!(mmapped(&made, at(47), at(48), &runs), []);
    assert_eq!(mmapped(&made, at(61), at(62), &runs), []);
    made.absent.extend([at(3), at(13), at(60), at(63)]);
    assert_eq!(mmapped(&made, at(0), at(64), &made.runs(&made.parts[0])).len(), 1, "the one at page 5");
}

/// glibc 2.43 leaves 16 bytes behind the size of a chunk out; memory with an alignment of its own begins behind the
/// start of its mapping.
#[test]
fn chunks_of_newer_libraries_and_aligned_ones_are_found() {
    let at = |page: u64| BASE + 0x7000 + page * PAGE;
    let mut part = Piece::plain(at(0), 64 * PAGE);
    let mut chunk = |offset: u64, page: u64, pages: u64, left_out: u64| {
        part.put(at(page) + offset, offset);
        part.put(at(page) + offset + 8, (pages * PAGE - offset - left_out) | OF_MMAP);
    };
    // Four behind each other: of 2.43, and of 2.36; each once more 0x40 bytes behind its start.
    chunk(0, 0, 4, 16);
    chunk(0, 4, 3, 0);
    chunk(0x40, 7, 5, 16);
    chunk(0x40, 12, 2, 0);
    // Behind a gap, a chunk that begins two pages behind its start, of which the first is absent.
    chunk(2 * PAGE, 20, 9, 16);
    // In the middle of other memory nothing begins but at the start of a page.
    chunk(0x40, 41, 2, 16);
    let mut made = MadeHeap::of([part]);
    made.absent.extend((14..22).chain(30..40).map(at));
    let runs = made.runs(&made.parts[0]);
    let found = mmapped(&made, at(0), at(64), &runs);
    let expect = [(0, 4), (4, 7), (7, 12), (12, 14), (20, 29)].map(|(start, end)| (at(start), at(end)));
    assert_eq!(found.iter().map(|chunk| (chunk.start, chunk.end)).collect::<Vec<_>>(), expect);
}

/// One step in filling a heap: a kind and a size.
fn steps() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0u8..8, prop_oneof![0u64..64, 64u64..4000, 4000u64..60_000]), 0..60)
}

fn fill(part: &mut Piece, steps: &[(u8, u64)]) {
    for (kind, bytes) in steps {
        let size = (bytes + 32).next_multiple_of(16);
        // Room for the chunk, a top or two fenceposts; two free neighbours would be one.
        if part.at + size + 128 > part.end() {
            continue;
        }
        match kind {
            0..3 => part.live(size),
            3 | 4 if part.free_before.is_none() => part.free(size),
            _ => part.tagged(kind * 3, *bytes),
        };
    }
}

/// Some arenas, some of several heaps, one main heap.
fn made() -> impl Strategy<Value = MadeHeap> {
    let arena = (prop::collection::vec((steps(), 2u64..60, 0u64..4), 1..4), any::<bool>());
    (0..SHAPES.len(), steps(), prop::collection::vec(arena, 0..3)).prop_map(|(shape, main, arenas)| {
        let shape = SHAPES[shape];
        let head = shape.header;
        let mut part = Piece::plain(0x55_0000_7000, 40 * PAGE);
        fill(&mut part, &main);
        part.top();
        let (mut made, mut start) = (MadeHeap::of([part]), BASE);
        for (heaps, freed) in arenas {
            let (arena, mut before, count) = (start + head, 0, heaps.len());
            for (n, (steps, pages, more)) in heaps.into_iter().enumerate() {
                let size = pages * PAGE;
                let part = if n == 0 {
                    Piece::arena(start, shape, size)
                } else {
                    Piece::further(start, shape, arena, before, size)
                };
                let mut part = part.mapped(more * PAGE);
                fill(&mut part, &steps);
                let top = if n + 1 == count { part.top() } else { 0 };
                if top == 0 {
                    part.leave(freed && part.free_before.is_none());
                }
                made.parts.push(part);
                made.arena_knows(arena, top);
                (before, start) = (start, start + STEP);
            }
        }
        made
    })
}

/// Changes of bytes: which mapping, where as a share of its length, and what word is put there.
fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, f64, u64)>> {
    let word = prop_oneof![
        any::<u64>(),
        (0u64..0x200).prop_map(|back| 0u64.wrapping_sub(back)),
        0u64..0x100,
        (0u64..0x8000).prop_map(|size| size & !15 | 1),
        Just(1 << 63),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0.0..1.0, word), 0..12)
}

/// Shares of all pages that are made absent, or swapped.
fn gaps() -> impl Strategy<Value = Vec<(prop::sample::Index, f64, bool)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0.0..1.0, any::<bool>()), 0..40)
}

fn tear(made: &mut MadeHeap, gaps: &[(prop::sample::Index, f64, bool)], keep: impl Fn(&Piece, u64) -> bool) {
    for (pick, share, swapped) in gaps {
        let part = pick.get(&made.parts);
        let page = part.start + (part.bytes.len() as f64 * share) as u64 / PAGE * PAGE;
        if !keep(part, page) && made.is_present(page) {
            if *swapped { &mut made.swapped } else { &mut made.absent }.insert(page);
        }
    }
}

/// Whether a walk cannot do without the page: it holds a header.
fn holds_header(part: &Piece, page: u64) -> bool {
    let within = |at: u64| page <= at && at < page + PAGE;
    let start = |(start, _, kind): &(u64, u64, ChunkKind)| {
        within(*start) || matches!(kind, ChunkKind::Tagged(..) | ChunkKind::Rest) && within(start + 16)
    };
    part.stretches.iter().any(start)
}

/// Checks the laws of any walk, whatever was walked.
fn laws(made: &MadeHeap, found: &Walk) -> Result<(), TestCaseError> {
    let mut indices: Vec<usize> = found.heaps.iter().map(|heap| heap.index).collect();
    indices.extend(found.errors.iter().map(|error| error.index).chain(found.others.iter().copied()));
    indices.sort_unstable();
    prop_assert_eq!(indices, (0..made.parts.len()).collect::<Vec<_>>(), "each mapping is one thing");
    for heap in &found.heaps {
        let part = &made.parts[heap.index];
        let mut sum = heap.live;
        sum += heap.free;
        heap.tagged.iter().for_each(|(_, chunks)| sum += *chunks);
        let (present, swapped) = made.backed(part.start, part.mapped_end());
        prop_assert_eq!(sum.bytes, part.bytes.len() as u64);
        prop_assert_eq!((sum.resident, sum.swapped), (present, swapped));
        prop_assert!(heap.trimmable <= heap.free.resident);
        prop_assert!(sum.count <= sum.bytes / 16);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_heap_is_found_exactly(made in made(), gaps in gaps()) {
        let mut made = made;
        tear(&mut made, &gaps, holds_header);
        walks_exactly(&made);
    }

    /// Any page may be absent, and any word may be another one.
    #[test]
    fn mangled_heaps_keep_the_laws(made in made(), changes in changes(), gaps in gaps(), ends in (0.0..1.0, 0.0..1.0)) {
        let mut made = made;
        for (pick, share, word) in changes {
            let count = made.parts.len();
            let part = &mut made.parts[pick.index(count)];
            // Every other one hits a field that matters: a size, or a word of a header.
            let at = match (share * 1000.0) as usize % 2 {
                0 => part.start + (part.bytes.len() as f64 * share) as u64 / 8 * 8,
                _ => part.stretches[(part.stretches.len() as f64 * share) as usize].0 + 8,
            };
            if at + 8 <= part.mapped_end() {
                part.put(at, word);
            }
        }
        tear(&mut made, &gaps, |_, _| false);
        laws(&made, &made.walk())?;
        for part in &made.parts {
            let page = |share: f64| part.start + (part.bytes.len() as f64 * share) as u64 / PAGE * PAGE;
            let (start, end) = (page(ends.0), page(ends.1));
            let (made, runs) = (made.clone(), made.runs(part));
            let found = bounded(move || mmapped(&made, start, end, &runs));
            prop_assert!(found.iter().all(|chunk| start <= chunk.start && chunk.start < chunk.end && chunk.end <= end));
            prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }

    /// Runs that no kernel would report, at addresses that no process has.
    #[test]
    fn absurd_candidates_break_nothing(
        candidates in prop::collection::vec((address(), address(), any::<bool>(), absurd_runs()), 0..6),
        words in prop::collection::vec(address(), 1..16),
    ) {
        let candidate = |(start, end, main, runs): (u64, u64, bool, Vec<Run>)| {
            let (start, end) = (start.min(end), start.max(end).max(1));
            HeapCandidate { start: start.min(end - 1), end, main, runs }
        };
        let candidates: Vec<HeapCandidate> = candidates.into_iter().map(candidate).collect();
        bounded(move || {
            let repeated = Repeated(words, Cell::new(40));
            walk(&repeated, &candidates);
            for candidate in &candidates {
                repeated.1.set(10);
                // The range is scanned page by page if the runs say that all of it is present.
                let end = candidate.end.min(candidate.start.saturating_add(1 << 20));
                mmapped(&repeated, candidate.start, end, &candidate.runs);
            }
        });
    }
}

/// Addresses as they are, and at the ends of what there is.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..0x20_0000).prop_map(|back| u64::MAX - back),
        0u64..0x20_0000,
        (0u64..0x2000).prop_map(|more| BASE + more * 0x1000),
        (0u64..4).prop_map(|n| BASE + n * STEP),
        (0u64..4, 0..SHAPES.len()).prop_map(|(n, shape)| BASE + n * STEP + SHAPES[shape].header),
        (0u64..3).prop_map(|n| 0u64.wrapping_sub((n + 1) * STEP)),
    ]
}

fn absurd_runs() -> impl Strategy<Value = Vec<Run>> {
    let run = (address(), address(), any::<bool>()).prop_map(|(start, end, swapped)| Run { start, end, swapped });
    prop::collection::vec(run, 0..12)
}

/// Memory that is mapped everywhere and repeats the same words, until the allowed number of reads is used up.
struct Repeated(Vec<u64>, Cell<usize>);

impl Memory for Repeated {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.1.set(self.1.get().saturating_sub(1));
        for (n, byte) in into.iter_mut().enumerate() {
            let at = at.wrapping_add(n as u64);
            *byte = self.0[(at / 8) as usize % self.0.len()].to_le_bytes()[(at % 8) as usize];
        }
        self.1.get() > 0
    }
}

#[test]
fn the_arena_of_a_thread_is_at_the_same_place_of_each() {
    let arenas = BTreeSet::from([BASE + 0x30, BASE + STEP + 0x30]);
    let [first, second] = [BASE + 0x30, BASE + STEP + 0x30];
    // One has an address on its stack, one has the header of a heap behind it, one allocates from the main arena.
    let threads = [vec![second, 7, first, 0, 0, 0], vec![0, 7, second, 0, 0, first], vec![first, 7, 1, 0, 0, 0]];
    assert_eq!(arenas_of_threads(&threads, &arenas), [first, second]);
    assert_eq!(arenas_of_threads(&threads[1..2], &arenas), [second], "the nearest to the middle");
    assert!(arenas_of_threads(&[vec![1, 2]], &arenas).is_empty());
    assert!(arenas_of_threads(&[], &arenas).is_empty());
}
