//! Finds the field offsets of glibc's arenas in the arenas themselves, without a table of versions.
//!
//! `malloc_state` changed in 2.27 (`have_fastchunks`) and 2.43 (no fast bins), `heap_info` in 2.35 (`pagesize`). In all
//! versions, `ar_ptr`, `prev`, `size`, and `mprotect_size` come first in `heap_info`, and an arena's state follows its
//! own `heap_info`. An arena's `top` is the chunk that ends with the newest heap, and the state ends with `system_mem`
//! and `max_system_mem` (glibc 2.27–2.43, malloc/arena.c and malloc/malloc.c).

use super::glibc::HeapCandidate;
use super::memory::{Memory, words};

/// `HEAP_MAX_SIZE`: heaps other than the main one are aligned to it and no larger.
pub const HEAP_MAX: u64 = 64 << 20;
/// The number of bytes searched for the fields of a state, which has 0x898 in glibc 2.42.
const STATE_MAX: usize = 0xc00;
/// The longest plausible `heap_info`.
const HEADER_MAX: u64 = 0x100;
/// Maximum number of arenas read; the first two that agree are enough.
const ARENAS_MAX: usize = 8;
/// `PREV_INUSE`, `IS_MMAPPED`, `NON_MAIN_ARENA`.
pub(super) const FLAGS: u64 = 7;
pub(super) const PREV_INUSE: u64 = 1;

/// Offsets and sizes in glibc's structures, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// `sizeof (heap_info)`.
    pub(super) header: u64,
    /// Offset of `top` in `malloc_state`.
    pub(super) top: u64,
    /// Offset of `system_mem` in `malloc_state`; `max_system_mem` follows and is its last field.
    pub(super) system: u64,
}

impl Layout {
    /// `sizeof (malloc_state)`.
    pub(super) fn state(self) -> u64 {
        self.system + 16
    }

    /// Finds the layout that the candidates' arenas share; `None` if there are no arenas, or no layout is plausible.
    pub fn find(memory: &dyn Memory, candidates: &[HeapCandidate]) -> Option<Self> {
        let own = candidates.iter().filter(|candidate| own_header(memory, candidate).is_some());
        let mut found: Vec<Self> = Vec::new();
        for layout in own.take(ARENAS_MAX).filter_map(|arena| of_arena(memory, candidates, arena)) {
            if found.contains(&layout) {
                return Some(layout);
            }
            found.push(layout);
        }
        found.into_iter().next()
    }
}

/// `ar_ptr`, `prev`, `size`, `mprotect_size` of a heap whose first page is present.
pub(super) fn header_words(memory: &dyn Memory, candidate: &HeapCandidate) -> Option<[u64; 4]> {
    let first = candidate.runs.first().filter(|run| run.start == candidate.start && !run.swapped)?;
    let mut bytes = [0; 32];
    (first.size() >= 32 && memory.read(candidate.start, &mut bytes)).then_some(())?;
    let mut words = words(&bytes);
    Some([words.next()?, words.next()?, words.next()?, words.next()?])
}

/// The length of `heap_info` in a heap that contains its own arena: the arena's state follows directly.
pub(super) fn own_header(memory: &dyn Memory, candidate: &HeapCandidate) -> Option<u64> {
    let [arena, before, size, _] = header_words(memory, candidate).filter(|_| !candidate.main)?;
    let header = arena.checked_sub(candidate.start)?;
    let plausible = (32..=HEADER_MAX).contains(&header) && header.is_multiple_of(16);
    (plausible && before == 0 && size > header && size <= HEAP_MAX).then_some(header)
}

fn of_arena(memory: &dyn Memory, candidates: &[HeapCandidate], own: &HeapCandidate) -> Option<Layout> {
    let header = own_header(memory, own)?;
    let arena = own.start + header;
    let size_of_own = |candidate: &HeapCandidate| {
        let words = header_words(memory, candidate).filter(|words| words[0] == arena && !candidate.main)?;
        Some(words[2])
    };
    let sized = candidates.iter().map(|candidate| (candidate, size_of_own(candidate)));
    let heaps: Vec<(&HeapCandidate, u64)> = sized.filter_map(|(heap, size)| Some((heap, size?))).collect();
    let words = state_words(memory, own, arena)?;
    let is_top = |at: &u64| {
        let heap = heaps.iter().find(|(heap, size)| heap.start < *at && at.wrapping_sub(heap.start) < *size);
        heap.is_some_and(|(heap, size)| {
            let size_of_chunk = present_word(memory, heap, at.saturating_add(8));
            let behind = size_of_chunk.and_then(|word| at.checked_add(word & !FLAGS));
            at.is_multiple_of(16) && behind == heap.start.checked_add(*size)
        })
    };
    let sum = heaps.iter().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size));
    let top = words.iter().position(is_top)?;
    let system = (top + 1..words.len() - 1).find(|at| words[*at] == sum && words[at + 1] >= sum)?;
    Some(Layout { header, top: 8 * top as u64, system: 8 * system as u64 })
}

/// The words of an arena's state, as far as they are on the first pages of its heap.
fn state_words(memory: &dyn Memory, own: &HeapCandidate, arena: u64) -> Option<Vec<u64>> {
    let run = own.runs.first().filter(|run| !run.swapped && run.start <= arena)?;
    let len = usize::try_from(run.end.checked_sub(arena)?).ok()?.min(STATE_MAX) / 8 * 8;
    let mut bytes = vec![0; len];
    (len > 8 && memory.read(arena, &mut bytes)).then_some(())?;
    Some(words(&bytes).collect())
}

pub(super) fn present_word(memory: &dyn Memory, candidate: &HeapCandidate, at: u64) -> Option<u64> {
    let holds = |run: &&super::pagemap::Run| !run.swapped && run.start <= at && run.end.saturating_sub(at) >= 8;
    candidate.runs.iter().find(holds)?;
    memory.u64(at)
}
