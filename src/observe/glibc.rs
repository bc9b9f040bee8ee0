//! The heaps of glibc's malloc, walked from outside (glibc 2.27–2.42, x86-64 and other 64-bit little-endian; layouts
//! from `malloc/arena.c` and `malloc/malloc.c`: `heap_info`, `malloc_state`, `malloc_chunk`).
//!
//! Nothing is assumed: a heap counts only when its header, its arena and the arena's sum of heaps agree. A chunk that
//! makes no sense ends the walk of its heap, and that heap counts as not walked. Only present pages are read.

use super::memory::Memory;
use super::nmt_header;
use super::pagemap::Run;
use super::pages::Pages;
use std::ops::AddAssign;

/// `HEAP_MAX_SIZE`: heaps other than the main one are aligned to this and no larger.
pub const HEAP_MAX: u64 = 64 << 20;
/// Offset of `top` in `malloc_state` (2.27 and newer).
const TOP: u64 = 0x60;
/// Offset of `system_mem` in `malloc_state`.
const SYSTEM_MEM: u64 = 0x888;
/// Size of `malloc_state`.
const STATE: u64 = 0x898;
/// Sizes of `heap_info`: until 2.34, and from 2.35 on.
const HEADERS: [u64; 2] = [0x20, 0x30];
/// `PREV_INUSE`, `IS_MMAPPED`, `NON_MAIN_ARENA`.
const FLAGS: u64 = 7;
const PREV_INUSE: u64 = 1;
const IS_MMAPPED: u64 = 2;
/// Smallest chunk.
const MINSIZE: u64 = 32;
/// `sizeof (struct malloc_chunk)`, which a trim leaves at the start of a free chunk.
const CHUNK_STRUCT: u64 = 0x30;
const IMPOSSIBLE: &str = "a chunk with an impossible size";

/// Bytes of chunks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chunks {
    /// How many.
    pub count: u64,
    /// Bytes of the chunks with their headers, resident or not.
    pub bytes: u64,
    /// Bytes that HotSpot asked for, without any header; 0 for chunks of other libraries.
    pub asked: u64,
    /// Of `bytes`, on pages that are present.
    pub resident: u64,
    /// Of `bytes`, on pages that are swapped out.
    pub swapped: u64,
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
pub struct Candidate {
    /// First address.
    pub start: u64,
    /// First address behind what is mapped for reading and writing.
    pub end: u64,
    /// The heap of the main arena, `[heap]`.
    pub main: bool,
    /// Pages of the stretch that are present or swapped.
    pub runs: Vec<Run>,
}

/// A heap with the arena it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heap {
    /// Index into the candidates.
    index: usize,
    /// Address of the arena's `malloc_state`; 0 for the main arena, which lies in the C library.
    arena: u64,
    /// `heap_info.size`.
    size: u64,
    /// Address of its first chunk.
    first: u64,
    /// The arena's `top` chunk.
    top: u64,
}

/// What a walk through one heap found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapWalk {
    /// Index of the candidate.
    pub index: usize,
    /// Address of its arena; 0 for the main arena.
    pub arena: u64,
    /// Taken from the system for this heap.
    pub system: u64,
    /// Chunks in use without an NMT header, with what glibc needs for itself.
    pub live: Chunks,
    /// Chunks in use with an NMT header, by NMT's number of the tag.
    pub tagged: Vec<(u8, Chunks)>,
    /// Free chunks with the top, and pages behind the top.
    pub free: Chunks,
    /// Resident bytes that `malloc_trim(0)` would give back.
    pub trimmable: u64,
}

/// A heap that could not be walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkError {
    /// Index of the candidate.
    pub index: usize,
    /// Where it stopped.
    pub at: u64,
    /// Why.
    pub why: &'static str,
}

/// What a walk through all candidates found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// Heaps that were walked to their end.
    pub heaps: Vec<HeapWalk>,
    /// Heaps that could not be.
    pub errors: Vec<WalkError>,
    /// Candidates that are no heaps of glibc.
    pub others: Vec<usize>,
    /// Why no heap was walked, where the layout is not one of those known.
    pub unknown_layout: Option<String>,
}

/// What one candidate turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walked {
    /// A heap that was walked to its end.
    Whole(HeapWalk),
    /// A heap that could not be.
    Broken(WalkError),
    /// No heap of glibc.
    NoHeap,
}

/// Walks all heaps among the candidates.
pub fn walk(memory: &dyn Memory, candidates: &[Candidate]) -> Walk {
    let header = layout(memory, candidates);
    let walked = (0..candidates.len()).map(|index| walk_one(memory, candidates, header, index));
    conclude(memory, candidates, walked.collect())
}

/// Walks one candidate. `header` is what [`layout`] said; the runs of this candidate and of its arena's own heap
/// ([`arena_base`]) must be of this moment.
pub fn walk_one(memory: &dyn Memory, candidates: &[Candidate], header: Option<u64>, index: usize) -> Walked {
    let candidate = &candidates[index];
    let heap = match header {
        _ if candidate.main => {
            let size = candidate.end.saturating_sub(candidate.start);
            Some(Heap { index, arena: 0, size, first: candidate.start, top: 0 })
        }
        Some(header) => match heap_of(memory, candidates, header, index) {
            Ok(heap) => heap,
            Err((at, why)) => return Walked::Broken(WalkError { index, at, why }),
        },
        None => None,
    };
    match heap.map(|heap| Walker::new(memory, candidate, heap).run()) {
        Some(Ok(walked)) => Walked::Whole(walked),
        Some(Err((at, why))) => Walked::Broken(WalkError { index, at, why }),
        None => Walked::NoHeap,
    }
}

/// The first address of the heap that holds the state of this candidate's arena, if it is a heap.
pub fn arena_base(memory: &dyn Memory, candidate: &Candidate) -> Option<u64> {
    header_words(memory, candidate).map(|[arena, ..]| arena & !(HEAP_MAX - 1))
}

/// How much of this candidate is accessible by its own account (`heap_info.mprotect_size`), if it is a heap.
pub fn accessible(memory: &dyn Memory, candidate: &Candidate) -> Option<u64> {
    header_words(memory, candidate).map(|[_, _, size, accessible]| accessible.max(size).min(HEAP_MAX))
}

/// Puts together what was found of each candidate, in their order, and checks that the layout is a known one.
pub fn conclude(memory: &dyn Memory, candidates: &[Candidate], walked: Vec<Walked>) -> Walk {
    let mut found = Walk::default();
    for (index, one) in walked.into_iter().enumerate() {
        match one {
            Walked::Whole(heap) => found.heaps.push(heap),
            Walked::Broken(error) => found.errors.push(error),
            Walked::NoHeap => found.others.push(index),
        }
    }
    check_sums(memory, &mut found, candidates);
    found
}

/// The size of `heap_info` in this glibc: the one by which a heap at least points to itself as an arena.
pub fn layout(memory: &dyn Memory, candidates: &[Candidate]) -> Option<u64> {
    let votes = |header: u64| {
        let points_to_itself = |candidate: &&Candidate| {
            let points = |[arena, ..]: [u64; 4]| arena.checked_sub(header) == Some(candidate.start);
            !candidate.main && header_words(memory, candidate).is_some_and(points)
        };
        candidates.iter().filter(points_to_itself).count()
    };
    HEADERS.into_iter().map(|header| (votes(header), header)).filter(|(votes, _)| *votes > 0).max().map(|(_, h)| h)
}

/// `ar_ptr`, `prev`, `size`, `mprotect_size` of a heap whose first page is present.
fn header_words(memory: &dyn Memory, candidate: &Candidate) -> Option<[u64; 4]> {
    let first = candidate.runs.first().filter(|run| run.start == candidate.start && !run.swapped)?;
    let mut bytes = [0; 32];
    (first.size() >= 32 && memory.read(candidate.start, &mut bytes)).then_some(())?;
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}

/// The candidate as a heap, if its header points to an arena; an error where it does and makes no sense otherwise.
fn heap_of(memory: &dyn Memory, candidates: &[Candidate], header: u64, index: usize) -> Result<Option<Heap>, Stop> {
    let candidate = &candidates[index];
    let Some([arena, _, size, _]) = header_words(memory, candidate) else { return Ok(None) };
    let base = arena & !(HEAP_MAX - 1);
    let owner = candidates.iter().find(|owner| owner.start == base && !owner.main);
    let is_arena = owner.and_then(|owner| header_words(memory, owner)).is_some_and(|[own, ..]| own == arena);
    if arena != base + header || !is_arena {
        return Ok(None);
    }
    let room = candidate.end.saturating_sub(candidate.start);
    let top = word(memory, owner, arena + TOP).filter(|_| size > header && size <= room);
    let top = top.ok_or((candidate.start, "a heap with an impossible header"))?;
    // In an arena's own heap the state stands between header and chunks, whose contents are aligned to 16 bytes.
    let first = if base == candidate.start { (arena + STATE).next_multiple_of(16) } else { candidate.start + header };
    Ok(Some(Heap { index, arena, size, first, top }))
}

/// A word of an arena's state, which lies in the first pages of its own heap.
fn word(memory: &dyn Memory, owner: Option<&Candidate>, at: u64) -> Option<u64> {
    let present = owner?.runs.iter().any(|run| !run.swapped && run.start <= at && run.end.saturating_sub(at) >= 8);
    let mut bytes = [0; 8];
    (present && memory.read(at, &mut bytes)).then(|| u64::from_le_bytes(bytes))
}

/// `system_mem` of each arena must be the sum of its heaps' sizes; where it is for none, the layout is another one.
fn check_sums(memory: &dyn Memory, found: &mut Walk, candidates: &[Candidate]) {
    let mut arenas: Vec<u64> = found.heaps.iter().map(|heap| heap.arena).filter(|arena| *arena != 0).collect();
    arenas.sort_unstable();
    arenas.dedup();
    let agrees = |arena: &&u64| {
        let owner = candidates.iter().find(|owner| owner.start == **arena & !(HEAP_MAX - 1));
        let own = found.heaps.iter().filter(|heap| heap.arena == **arena);
        let sum = own.fold(0, |sum: u64, heap| sum.saturating_add(heap.system));
        word(memory, owner, **arena + SYSTEM_MEM).is_some_and(|system| system == sum)
    };
    let agreeing = arenas.iter().filter(agrees).count();
    // An arena with a broken heap cannot agree; one caught in the middle of growing may not.
    let known = arenas.is_empty() || agreeing > 0;
    let nothing_walked = found.heaps.is_empty() && !found.errors.is_empty();
    if !known || nothing_walked {
        let why = "the heaps of malloc do not have the layout of glibc 2.27 to 2.42".to_owned();
        found.unknown_layout = Some(why);
        let walked = found.heaps.drain(..).map(|heap| heap.index);
        found.errors.extend(walked.map(|index| WalkError {
            index,
            at: candidates[index].start,
            why: "unknown layout",
        }));
    }
}

/// A walk through the chunks of one heap.
struct Walker<'a> {
    pages: Pages<'a>,
    heap: Heap,
    /// First address behind the heap's chunks.
    end: u64,
    /// First address behind what is accessible.
    mapped_end: u64,
    found: HeapWalk,
    tagged: Box<[Chunks; 256]>,
}

type Stop = (u64, &'static str);

impl<'a> Walker<'a> {
    fn new(memory: &'a dyn Memory, candidate: &'a Candidate, heap: Heap) -> Self {
        let found = HeapWalk {
            index: heap.index,
            arena: heap.arena,
            system: heap.size,
            live: Chunks::default(),
            tagged: Vec::new(),
            free: Chunks::default(),
            trimmable: 0,
        };
        Self {
            pages: Pages::new(memory, &candidate.runs),
            heap,
            end: candidate.start.saturating_add(heap.size),
            mapped_end: candidate.end,
            found,
            tagged: Box::new([Chunks::default(); 256]),
        }
    }

    fn run(mut self) -> Result<HeapWalk, Stop> {
        let start = self.pages.start(self.heap.first);
        // The size in a header may be shorter than the header.
        if self.heap.first >= self.end {
            return Err((self.heap.first, "a heap without room for a chunk"));
        }
        let own = self.split(start, self.heap.first, 0);
        self.found.live += Chunks { count: 0, ..own };
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

    /// A heap that was left for a new one ends with two headers of no chunks, 16 and 0 bytes; the main one, where
    /// something else took the memory behind it, with two of 16.
    fn is_fence(&mut self, at: u64, size: u64) -> bool {
        match (self.end - at, size & !FLAGS) {
            (0x20, 0x10) => self.size_at(at + 0x10).is_ok_and(|next| next & !FLAGS <= 0x10),
            (0x10, 0 | 0x10) => true,
            _ => false,
        }
    }

    fn split(&mut self, start: u64, end: u64, asked: u64) -> Chunks {
        let (resident, swapped) = self.pages.backed(start, end);
        Chunks { count: 1, bytes: end.saturating_sub(start), asked, resident, swapped }
    }

    fn live(&mut self, at: u64, next: u64) {
        let unit = self.pages.unit(at.saturating_add(16));
        let tag = unit.and_then(|(low, high)| nmt_header::tag(low, high, next - at));
        let chunks = self.split(at, next, tag.map_or(0, |tag| tag.asked));
        match tag {
            Some(tag) => self.tagged[usize::from(tag.number)] += chunks,
            None => self.found.live += chunks,
        }
    }

    /// A free chunk: its size stands again at its end, in the next chunk's `prev_size`.
    fn free(&mut self, at: u64, next: u64) -> Result<(), Stop> {
        let foot = self.pages.unit(next).ok_or((next, "a chunk on a page that is not present"))?.0;
        if foot != next - at {
            return Err((at, "a free chunk whose two sizes differ"));
        }
        let chunks = self.split(at, next, 0);
        self.found.free += chunks;
        let first = Pages::boundary(at.saturating_add(CHUNK_STRUCT));
        let last = next & !(Pages::PAGE - 1);
        // `mtrim` counts whole pages from the first boundary on.
        self.trim(first, last);
        Ok(())
    }

    /// Counts the resident bytes of `[start, end)` among those that a trim gives back.
    fn trim(&mut self, start: u64, end: u64) {
        if start < end {
            let gone = self.pages.backed_apart(start, end).0;
            self.found.trimmable = self.found.trimmable.saturating_add(gone);
        }
    }

    /// The last chunk, of which a trim gives back whole pages in the main arena only (`systrim`).
    fn top(&mut self, at: u64) {
        let chunks = self.split(at, self.mapped_end.max(self.end), 0);
        self.found.free += chunks;
        if self.heap.arena == 0 {
            self.trim(Pages::boundary(at.saturating_add(MINSIZE + 1)), self.end);
        }
    }

    /// What follows the last chunk of a heap that was left.
    fn rest(&mut self, at: u64) {
        let chunks = self.split(at, self.mapped_end.max(self.end), 0);
        self.found.free += Chunks { count: 0, ..chunks };
    }
}

/// A chunk with a mapping of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MmappedChunk {
    /// First address.
    pub start: u64,
    /// First address behind.
    pub end: u64,
    /// NMT's number of its tag and what was asked for, where it has NMT's header.
    pub tag: Option<nmt_header::Tag>,
}

/// The chunks with mappings of their own in `[start, end)`, anonymous memory that nobody else owns. A chunk begins at
/// the start of a page with `prev_size` 0 and its size in whole pages with the flag `IS_MMAPPED`.
pub fn mmapped(memory: &dyn Memory, start: u64, end: u64, runs: &[Run]) -> Vec<MmappedChunk> {
    let mut pages = Pages::new(memory, runs);
    let mut found = Vec::new();
    let mut at = start;
    while at < end {
        let Some(next) = pages.next_present(at).filter(|next| *next < end) else { break };
        at = next;
        let size = pages.unit(at).filter(|(prev, size)| *prev == 0 && size & FLAGS == IS_MMAPPED).map(|unit| unit.1);
        let size = size.map(|size| size & !FLAGS).filter(|size| size % Pages::PAGE == 0 && *size > 0);
        match size.filter(|size| *size <= end - at) {
            Some(size) => {
                let tag =
                    pages.unit(at.saturating_add(16)).and_then(|(low, high)| nmt_header::tag_loose(low, high, size));
                found.push(MmappedChunk { start: at, end: at + size, tag });
                at += size;
            }
            None => at = at.saturating_add(Pages::PAGE),
        }
    }
    found
}

#[cfg(test)]
#[path = "glibc_tests.rs"]
mod tests;
