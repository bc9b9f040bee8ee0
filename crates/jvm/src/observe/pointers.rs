//! Finds words in a process's memory that point into given stretches: in a library's own data, in what these words
//! point to, and so on. Such a word may be a pointer, or a number by chance, so it is only evidence, which `account`
//! and `weigh` judge. Reads present pages only.

use super::memory::{self, Memory};
use super::pagemap::{PagesOf, Run};
use super::ranges::leave_out_overlaps;
use std::collections::BTreeSet;

/// Bytes per read.
const WINDOW: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Bytes read of a malloc object: `G1CollectedHeap`, HotSpot's longest relevant object, refers to its tables within 1
/// KiB.
pub const OBJECT: u64 = 1024;
/// For a library's longer chunk: async-profiler 4.1 refers to its table of stacks 32 KiB into an object.
pub const OBJECT_LONG: u64 = 64 << 10;
/// Maximum number of objects read per library, and their maximum total size.
const OBJECTS_MAX: usize = 1 << 15;
const OBJECTS_BYTES_MAX: u64 = 32 << 20;

/// A word that may be an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer {
    /// The address of the word.
    pub at: u64,
    /// The address that it points to.
    pub to: u64,
}

/// Disjoint stretches of memory, in address order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// From a list in any order; drops the second of two that overlap.
    pub fn new(mut list: Vec<(u64, u64)>) -> Self {
        list.retain(|(start, end)| start < end);
        list.sort_unstable();
        leave_out_overlaps(&mut list, |range| *range);
        Self(list)
    }

    /// The index of the stretch that contains this address.
    pub fn of(&self, at: u64) -> Option<usize> {
        let n = self.0.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        (at < self.0[n].1).then_some(n)
    }

    /// All stretches.
    pub fn all(&self) -> &[(u64, u64)] {
        &self.0
    }
}

/// Every aligned nonzero word of these runs; `left` bytes may still be read.
pub fn words(memory: &dyn Memory, runs: &[Run], left: &mut u64, each: &mut dyn FnMut(Pointer)) {
    let mut window = vec![0; WINDOW as usize];
    for run in runs.iter().filter(|run| !run.swapped) {
        let mut at = run.start.next_multiple_of(8);
        while at < run.end && *left > 0 {
            let len = (run.end - at).min(WINDOW);
            *left = left.saturating_sub(len);
            let bytes = &mut window[..len as usize];
            if memory.read(at, bytes) {
                let found = memory::words(bytes).zip((at..).step_by(8));
                found.filter(|(to, _)| *to != 0).for_each(|(to, at)| each(Pointer { at, to }));
            }
            at += len;
        }
    }
}

/// The words of objects that `roots` point to, of those that these point to, and so on, `depth` times. Objects are in
/// `heaps`; each is read once, up to `longest` bytes.
pub fn through_objects(
    memory: &dyn Memory,
    pages_of: &mut PagesOf,
    roots: Vec<u64>,
    heaps: &Stretches,
    (depth, longest): (u32, u64),
    each: &mut dyn FnMut(Pointer),
) {
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    let mut left = OBJECTS_BYTES_MAX;
    let mut ahead = roots;
    for _ in 0..depth {
        let mut found = Vec::new();
        for object in std::mem::take(&mut ahead) {
            // malloc chunks are aligned to 16 bytes.
            let start = object & !15;
            let Some(heap) = heaps.of(start).map(|n| heaps.all()[n]) else { continue };
            if seen.len() == OBJECTS_MAX || !seen.insert(start) {
                continue;
            }
            let mut pages_to = |end: u64| pages_of(start & !(PAGE - 1), end.next_multiple_of(PAGE));
            let mut runs = pages_to(start.saturating_add(OBJECT).min(heap.1));
            let end = start.saturating_add(object_size(memory, &runs, start, longest)).min(heap.1);
            if end > start + OBJECT {
                runs = pages_to(end);
            }
            let inside = runs.iter().map(|run| Run { start: run.start.max(start), end: run.end.min(end), ..*run });
            let inside: Vec<Run> = inside.filter(|run| run.start < run.end).collect();
            words(memory, &inside, &mut left, &mut |pointer| {
                each(pointer);
                found.push(pointer.to);
            });
        }
        ahead = found;
    }
}

/// Returns how much of an object to read: its chunk, if the word before it is the size of a glibc chunk. The memory
/// after the chunk is another object with its own pointers.
fn object_size(memory: &dyn Memory, runs: &[Run], start: u64, longest: u64) -> u64 {
    let present = |at: &u64| runs.iter().any(|run| !run.swapped && run.start <= *at && start < run.end);
    let before = start.checked_sub(8).filter(present).and_then(|at| memory.u64(at)).unwrap_or(0);
    let (size, flags) = (before & !7, before & 7);
    // The next chunk records that this one is in use; a random number has no such chunk after it.
    let is_used = || memory.u64(start + size - 8).is_some_and(|next| next & 1 == 1);
    let is_chunk = (32..=longest).contains(&size) && size.is_multiple_of(16) && flags & 2 == 0;
    if is_chunk && (size <= OBJECT || is_used()) { size - 8 } else { OBJECT }
}

#[cfg(test)]
mod tests {
    use super::super::hotspot::made_up::MadeUpMemory;
    use super::*;

    fn made_up(words: &[(u64, u64)]) -> MadeUpMemory {
        let mut memory = MadeUpMemory::default();
        words.iter().for_each(|(at, word)| memory.word(*at, *word));
        memory
    }

    fn present(start: u64, end: u64) -> Vec<Run> {
        vec![Run { start, end, swapped: false }]
    }

    #[test]
    fn overlapping_stretches_are_dropped() {
        let stretches = Stretches::new(vec![(30, 40), (10, 20), (15, 35), (7, 7)]);
        assert_eq!(stretches.all(), [(10, 20), (30, 40)]);
        assert_eq!([9, 10, 19, 20, 39].map(|at| stretches.of(at)), [None, Some(0), Some(0), None, Some(1)]);
    }

    #[test]
    fn objects_are_followed_to_the_given_depth_without_swapped_pages() {
        let memory = made_up(&[(0x1008, 0x2010), (0x2018, 0x3000), (0x3000, 0x9000)]);
        let heaps = Stretches::new(vec![(0x1000, 0x4000)]);
        let found = |depth| {
            let mut found = Vec::new();
            let mut pages = |start: u64, end: u64| present(start, end);
            through_objects(&memory, &mut pages, vec![0x1000], &heaps, (depth, OBJECT), &mut |pointer| {
                found.push(pointer.to);
            });
            found
        };
        assert_eq!(found(1), [0x2010]);
        assert_eq!(found(3), [0x2010, 0x3000, 0x9000]);
        // The words after a glibc chunk belong to another object.
        let memory = made_up(&[(0x1008, 0x31), (0x1018, 0x5000), (0x1038, 0x6000)]);
        let (mut pages, mut of_chunk) = (|start: u64, end: u64| present(start, end), Vec::new());
        through_objects(&memory, &mut pages, vec![0x1010], &heaps, (1, OBJECT), &mut |pointer| {
            of_chunk.push(pointer.to);
        });
        assert_eq!(of_chunk, [0x5000]);
        // A long chunk is read in full only if the next one records that it is in use.
        for (next, expected) in [(0x21, vec![0x7000]), (0x20, vec![])] {
            let memory = made_up(&[(0x1008, 0x1011), (0x1810, 0x7000), (0x2018, next)]);
            let mut of_long = Vec::new();
            through_objects(&memory, &mut pages, vec![0x1010], &heaps, (1, OBJECT_LONG), &mut |pointer| {
                of_long.push(pointer.to);
            });
            assert_eq!(of_long, expected);
        }
        let swapped = [Run { start: 0x1000, end: 0x2000, swapped: true }];
        words(&memory, &swapped, &mut 4096, &mut |_| panic!("a swapped-out page was read"));
    }
}
