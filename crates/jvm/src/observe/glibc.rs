//! Walks the heaps of glibc's malloc from outside (glibc 2.27–2.43, x86-64 and other 64-bit little-endian; layouts from
//! `malloc/arena.c` and `malloc/malloc.c`: `heap_info`, `malloc_state`, `malloc_chunk`).
//!
//! Nothing is assumed: a heap counts only if its header, its arena, and the arena's sum of heaps agree. An implausible
//! chunk ends the walk, and its heap counts as not walked. Only present pages are read. `glibc_layout` finds the
//! offsets of an arena's fields.

use super::glibc_layout::{FLAGS, PREV_INUSE, header_words, own_header, present_word};
use super::memory::Memory;
use super::nmt_header;
use super::pagemap::Run;
use super::pages::Pages;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::AddAssign;

pub use super::glibc_layout::{HEAP_MAX, Layout};

const IS_MMAPPED: u64 = 2;
/// A chunk may end this far before its mapping does: 0 up to glibc 2.42, 16 in 2.43, plus room for later versions.
const TAIL_MAX: u64 = 64;
/// Smallest chunk.
const MINSIZE: u64 = 32;
/// `sizeof (struct malloc_chunk)`, which a trim keeps at the start of a free chunk.
const CHUNK_STRUCT: u64 = 0x30;
const IMPOSSIBLE: &str = "a chunk with an impossible size";
const UNKNOWN_LAYOUT: &str = "an arena with an unknown layout";

/// Bytes of chunks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chunks {
    /// Number of chunks.
    pub count: u64,
    /// Bytes of the chunks including headers, resident or not.
    pub bytes: u64,
    /// Bytes that HotSpot requested, without headers; 0 for other libraries' chunks.
    pub asked: u64,
    /// The part of `bytes` on present pages.
    pub resident: u64,
    /// The part of `bytes` on swapped pages.
    pub swapped: u64,
}

impl Chunks {
    /// The present and swapped bytes of `[start, end)`, before any chunk is counted.
    pub(super) fn within(pages: &mut Pages<'_>, start: u64, end: u64) -> Self {
        let (resident, swapped) = pages.backed(start, end);
        Self { bytes: end.saturating_sub(start), resident, swapped, ..Self::default() }
    }
}

impl AddAssign for Chunks {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.asked = self.asked.saturating_add(other.asked);
        self.resident = self.resident.saturating_add(other.resident);
        self.swapped = self.swapped.saturating_add(other.swapped);
    }
}

/// A stretch of mapped memory that may be a heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapCandidate {
    /// First address.
    pub start: u64,
    /// End address of the readable and writable mapping, exclusive.
    pub end: u64,
    /// Whether it is the main arena's heap, `[heap]`.
    pub main: bool,
    /// Pages of the stretch that are present or swapped.
    pub runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heap {
    /// Index into the candidates.
    index: usize,
    /// Address of the arena's `malloc_state`; 0 for the main arena, whose state is in the C library.
    arena: u64,
    /// `heap_info.size`.
    size: u64,
    /// Address of its first chunk.
    first: u64,
    /// The arena's `top` chunk.
    top: u64,
}

/// The result of walking one heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapWalk {
    /// Index of the candidate.
    pub index: usize,
    /// Address of its arena; 0 for the main arena.
    pub arena: u64,
    /// Bytes taken from the system for this heap.
    pub system: u64,
    /// Chunks in use without an NMT header, including glibc's own overhead.
    pub live: Chunks,
    /// Chunks in use with an NMT header, by NMT's tag number.
    pub tagged: Vec<(u8, Chunks)>,
    /// Free chunks including the top, and pages after the top.
    pub free: Chunks,
    /// Resident bytes that `malloc_trim(0)` would free.
    pub trimmable: u64,
}

/// A heap that could not be walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkError {
    /// Index of the candidate.
    pub index: usize,
    /// The address where the walk stopped.
    pub at: u64,
    /// The reason.
    pub why: &'static str,
}

/// The result of walking all candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// Completely walked heaps.
    pub heaps: Vec<HeapWalk>,
    /// Heaps whose walk failed.
    pub errors: Vec<WalkError>,
    /// Candidates that are not glibc heaps.
    pub others: Vec<usize>,
    /// Why no heap was walked, if the layout is unknown.
    pub unknown_layout: Option<String>,
}

/// The result for one candidate: a completely walked heap; `None` if it is not a glibc heap; an error if its walk
/// failed.
pub type Walked = Result<Option<HeapWalk>, WalkError>;

/// Walks one candidate. `layout` is the result of [`Layout::find`]; the runs of this candidate and of its arena's own
/// heap ([`arena_base`]) must be current.
pub fn walk_one(memory: &dyn Memory, candidates: &[HeapCandidate], layout: Option<Layout>, index: usize) -> Walked {
    let candidate = &candidates[index];
    let heap = if candidate.main {
        let size = candidate.end.saturating_sub(candidate.start);
        Ok(Some(Heap { index, arena: 0, size, first: candidate.start, top: 0 }))
    } else {
        heap_of(memory, candidates, layout, index)
    };
    let walked = heap.and_then(|heap| heap.map(|heap| Walker::new(memory, candidate, heap).run()).transpose());
    walked.map_err(|(at, why)| WalkError { index, at, why })
}

/// The start address of the heap with the state of this candidate's arena, if the candidate is a heap.
pub fn arena_base(memory: &dyn Memory, candidate: &HeapCandidate) -> Option<u64> {
    header_words(memory, candidate).map(|[arena, ..]| arena & !(HEAP_MAX - 1))
}

/// How much of this candidate is accessible according to its header (`heap_info.mprotect_size`), if the candidate is a
/// heap.
pub fn accessible(memory: &dyn Memory, candidate: &HeapCandidate) -> Option<u64> {
    header_words(memory, candidate).map(|[_, _, size, accessible]| accessible.max(size).min(HEAP_MAX))
}

/// Combines the candidates' results, in their order, and checks that the layout is a known one.
pub fn conclude(
    memory: &dyn Memory,
    candidates: &[HeapCandidate],
    layout: Option<Layout>,
    walked: Vec<Walked>,
) -> Walk {
    let mut found = Walk::default();
    for (index, one) in walked.into_iter().enumerate() {
        match one {
            Ok(Some(heap)) => found.heaps.push(heap),
            Ok(None) => found.others.push(index),
            Err(error) => found.errors.push(error),
        }
    }
    check_sums(memory, &mut found, candidates, layout);
    found
}

/// Returns which of these arenas threads allocate from, unordered, one per thread that has one. A thread's variable
/// `thread_arena` (`malloc/arena.c`, glibc 2.27–2.43) is at the same offset in each thread. `threads` has the words
/// around the result of `pthread_self`, which is in their middle. Other words among them can also be arena addresses:
/// values left on the stack, or the header of a heap mapped right after it.
pub fn arenas_of_threads(threads: &[Vec<u64>], arenas: &BTreeSet<u64>) -> Vec<u64> {
    let at = |place: usize| {
        let words = threads.iter().filter_map(move |words| words.get(place).copied());
        words.filter(|word| arenas.contains(word)).collect::<Vec<u64>>()
    };
    let places = threads.iter().map(Vec::len).max().unwrap_or(0);
    let best = (0..places).max_by_key(|place| (at(*place).len(), Reverse(place.abs_diff(places / 2))));
    best.map(at).unwrap_or_default()
}

/// The candidate as a heap, if its header points to an arena; an error if the rest of the header is implausible.
fn heap_of(
    memory: &dyn Memory,
    candidates: &[HeapCandidate],
    layout: Option<Layout>,
    index: usize,
) -> Result<Option<Heap>, Stop> {
    let candidate = &candidates[index];
    let Some([arena, _, size, _]) = header_words(memory, candidate) else { return Ok(None) };
    let base = arena & !(HEAP_MAX - 1);
    let owner = candidates.iter().find(|owner| owner.start == base && !owner.main);
    let header = owner.and_then(|owner| own_header(memory, owner)).filter(|header| base + header == arena);
    let (Some(owner), Some(header)) = (owner, header) else { return Ok(None) };
    let layout = layout.filter(|layout| layout.header == header).ok_or((candidate.start, UNKNOWN_LAYOUT))?;
    let room = candidate.end.saturating_sub(candidate.start);
    let top = present_word(memory, owner, arena + layout.top).filter(|_| size > header && size <= room);
    let top = top.ok_or((candidate.start, "a heap with an impossible header"))?;
    // In an arena's own heap, the state is between the header and the chunks, whose contents are aligned to 16 bytes.
    let own = base == candidate.start;
    let first = if own { (arena + layout.state()).next_multiple_of(16) } else { candidate.start + header };
    Ok(Some(Heap { index, arena, size, first, top }))
}

/// `system_mem` of each arena must be the sum of its heaps' sizes; if it never is, the layout is a different one.
fn check_sums(memory: &dyn Memory, found: &mut Walk, candidates: &[HeapCandidate], layout: Option<Layout>) {
    let mut arenas: Vec<u64> = found.heaps.iter().map(|heap| heap.arena).filter(|arena| *arena != 0).collect();
    arenas.sort_unstable();
    arenas.dedup();
    let agrees = |arena: &&u64| {
        let owner = candidates.iter().find(|owner| owner.start == **arena & !(HEAP_MAX - 1));
        let own = found.heaps.iter().filter(|heap| heap.arena == **arena);
        let sum = own.fold(0, |sum: u64, heap| sum.saturating_add(heap.system));
        let system = owner
            .zip(layout)
            .and_then(|(owner, layout)| present_word(memory, owner, arena.saturating_add(layout.system)));
        system == Some(sum)
    };
    let agreeing = arenas.iter().filter(agrees).count();
    // An arena with a broken heap cannot agree; an arena caught while growing may not.
    let known = arenas.is_empty() || agreeing > 0;
    let nothing_walked = found.heaps.is_empty() && !found.errors.is_empty();
    if !known || nothing_walked {
        found.unknown_layout = Some("malloc's heaps do not have the layout of glibc 2.27 to 2.43".to_owned());
        let walked = found.heaps.drain(..).map(|heap| heap.index);
        found.errors.extend(walked.map(|index| WalkError { index, at: candidates[index].start, why: UNKNOWN_LAYOUT }));
    }
}

/// A walk through one heap's chunks.
struct Walker<'a> {
    pages: Pages<'a>,
    heap: Heap,
    /// End address of the heap's chunks, exclusive.
    end: u64,
    /// End address of the accessible part, exclusive.
    mapped_end: u64,
    found: HeapWalk,
    tagged: Box<[Chunks; 256]>,
}

type Stop = (u64, &'static str);

impl<'a> Walker<'a> {
    fn new(memory: &'a dyn Memory, candidate: &'a HeapCandidate, heap: Heap) -> Self {
        let Heap { index, arena, size: system, .. } = heap;
        Self {
            pages: Pages::new(memory, &candidate.runs),
            heap,
            end: candidate.start.saturating_add(heap.size),
            mapped_end: candidate.end,
            found: HeapWalk { index, arena, system, ..HeapWalk::default() },
            tagged: Box::new([Chunks::default(); 256]),
        }
    }

    fn run(mut self) -> Result<HeapWalk, Stop> {
        let start = self.pages.start(self.heap.first);
        // The size in a header may be shorter than the header.
        if self.heap.first >= self.end {
            return Err((self.heap.first, "a heap without room for a chunk"));
        }
        self.found.live += Chunks::within(&mut self.pages, start, self.heap.first);
        let mut at = self.heap.first;
        let mut size = self.size_at(at)?;
        loop {
            let next = at.checked_add(size & !FLAGS).ok_or((at, IMPOSSIBLE))?;
            if at == self.heap.top || next == self.end {
                self.top(at);
                break;
            }
            if size & !FLAGS < MINSIZE && self.is_fence(at, size) {
                self.rest(at);
                break;
            }
            if size & IS_MMAPPED != 0 || size & !FLAGS < MINSIZE || size & 8 != 0 || next > self.end {
                return Err((at, IMPOSSIBLE));
            }
            let next_size = self.size_at(next)?;
            if next_size & PREV_INUSE != 0 {
                self.live(at, next);
            } else {
                self.free(at, next)?;
            }
            (at, size) = (next, next_size);
        }
        let tagged = self.tagged.iter().enumerate().filter(|(_, chunks)| chunks.count > 0);
        self.found.tagged = tagged.map(|(tag, chunks)| (tag as u8, *chunks)).collect();
        Ok(self.found)
    }

    /// The size field of the chunk at `at`.
    fn size_at(&mut self, at: u64) -> Result<u64, Stop> {
        let unit = self.pages.unit(at).ok_or((at, "a chunk on a page that is not present"))?;
        Ok(unit.1)
    }

    /// A heap abandoned for a new one ends with two empty headers, of 16 and 0 bytes. The main heap ends with two of 16
    /// bytes if something else took the memory after it.
    fn is_fence(&mut self, at: u64, size: u64) -> bool {
        match (self.end - at, size & !FLAGS) {
            (0x20, 0x10) => self.size_at(at + 0x10).is_ok_and(|next| next & !FLAGS <= 0x10),
            (0x10, 0 | 0x10) => true,
            _ => false,
        }
    }

    fn live(&mut self, at: u64, next: u64) {
        let unit = self.pages.unit(at.saturating_add(16));
        let tag = unit.and_then(|(low, high)| nmt_header::tag(low, high, next - at));
        let asked = tag.map_or(0, |tag| tag.asked);
        let chunks = Chunks { count: 1, asked, ..Chunks::within(&mut self.pages, at, next) };
        match tag {
            Some(tag) => self.tagged[usize::from(tag.number)] += chunks,
            None => self.found.live += chunks,
        }
    }

    /// Counts a free chunk. The next chunk's `prev_size` must repeat its size.
    fn free(&mut self, at: u64, next: u64) -> Result<(), Stop> {
        let foot = self.pages.unit(next).ok_or((next, "a chunk on a page that is not present"))?.0;
        if foot != next - at {
            return Err((at, "a free chunk whose two sizes differ"));
        }
        self.found.free += Chunks { count: 1, ..Chunks::within(&mut self.pages, at, next) };
        let first = self.pages.boundary(at.saturating_add(CHUNK_STRUCT));
        let last = self.pages.boundary_before(next);
        // `mtrim` counts whole pages from the first page boundary.
        self.trim(first, last);
        Ok(())
    }

    /// Counts the resident bytes of `[start, end)` as trimmable.
    fn trim(&mut self, start: u64, end: u64) {
        if start < end {
            let gone = self.pages.backed_apart(start, end).0;
            self.found.trimmable = self.found.trimmable.saturating_add(gone);
        }
    }

    /// Counts the top chunk; a trim frees its whole pages only in the main arena (`systrim`).
    fn top(&mut self, at: u64) {
        self.rest(at);
        self.found.free.count += 1;
        if self.heap.arena == 0 {
            self.trim(self.pages.boundary(at.saturating_add(MINSIZE + 1)), self.end);
        }
    }

    /// Counts all memory from here on as free. A heap abandoned by its arena has no memory after its last chunk.
    fn rest(&mut self, at: u64) {
        self.found.free += Chunks::within(&mut self.pages, at, self.mapped_end.max(self.end));
    }
}

/// A chunk with its own mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MmappedChunk {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// NMT's tag number and the requested size, if it has NMT's header.
    pub tag: Option<nmt_header::Tag>,
}

/// The chunks with their own mappings in `[start, end)`, which is anonymous memory without another owner.
///
/// A chunk begins with its distance from the start of its mapping (0 unless over-aligned), and a size with the flag
/// `IS_MMAPPED`. Up to glibc 2.42, the size reaches the end of the mapping; since 2.43, it ends 16 bytes earlier
/// (`mmap_size` in malloc/malloc.c).
pub fn mmapped(memory: &dyn Memory, start: u64, end: u64, runs: &[Run]) -> Vec<MmappedChunk> {
    let mut pages = Pages::new(memory, runs);
    let page = pages.page();
    let mut found: Vec<MmappedChunk> = Vec::new();
    let mut at = start;
    while at < end {
        let Some(next) = pages.next_present(at).filter(|next| *next < end) else { break };
        // A chunk that is not at its mapping's start can only follow another chunk or a gap.
        let begins = next != at || next == start || found.last().is_some_and(|chunk| chunk.end == next);
        let offsets = if begins { page } else { 16 };
        at = next;
        let free = (found.last().map_or(start, |chunk| chunk.end), end);
        let chunk = (0..offsets).step_by(16).find_map(|offset| own_mapping(&mut pages, at, offset, free));
        match chunk {
            Some(chunk) => {
                at = chunk.end;
                found.push(chunk);
            }
            None => at = at.saturating_add(page),
        }
    }
    found
}

/// The chunk with its own mapping that begins at `page + offset`, if there is one within these bounds.
fn own_mapping(pages: &mut Pages<'_>, page: u64, offset: u64, (start, end): (u64, u64)) -> Option<MmappedChunk> {
    let at = page.checked_add(offset)?;
    let (before, size) = pages.unit(at).filter(|(_, size)| size & FLAGS == IS_MMAPPED)?;
    // The lowest bit of the distance is the flag `MMAP_HP` (2.43).
    let mapping = at.checked_sub(before & !1).filter(|mapping| *mapping >= start && before & !1 >= offset)?;
    let (size, last) = (size & !FLAGS, at.checked_add(size & !FLAGS)?);
    let ends = (0..=TAIL_MAX).step_by(16).filter_map(|tail| last.checked_add(tail));
    let whole = pages.page();
    let behind = ends.into_iter().find(|behind| behind.is_multiple_of(whole))?;
    let fits = size > 0 && mapping.is_multiple_of(whole) && behind > page && behind <= end;
    let tag = fits.then(|| pages.unit(at.saturating_add(16))).flatten();
    let tag = tag.and_then(|(low, high)| nmt_header::tag_loose(low, high, size, whole));
    fits.then_some(MmappedChunk { start: mapping, end: behind, tag })
}

#[cfg(test)]
#[path = "glibc_tests.rs"]
mod tests;
