//! A HotSpot JVM generated from a plan of arbitrary bytes, with the layouts of `vmStructs.cpp`, `threadSMR.cpp`,
//! `classLoaderData.cpp`, and `fieldInfo.hpp` (JDK 11–27); for tests and fuzzing only. The expected values are recorded
//! while the memory is written.
//!
//! | file | what it generates |
//! |---|---|
//! | [`tables`] | rows of names |
//! | [`threads`] | a JVM whose threads allocate, start, and end while they are read |
//! | [`classes`] | loaders, classes, fields, mirrors, and objects |

pub(crate) mod classes;
pub(crate) mod tables;
pub(crate) mod threads;

#[cfg(test)]
mod classes_tests;
#[cfg(test)]
mod netty_pools_tests;
#[cfg(test)]
mod tables_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads_tests;

use super::super::memory::Memory;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) const PAGE: u64 = 4096;
/// The address at which placement starts.
const FIRST: u64 = 0x7f10_0000_0000;
/// The size of a word change in the input.
const CHANGE_BYTES: usize = 8;

/// The bytes of a plan, followed by zeros.
#[derive(Debug, Clone)]
pub(crate) struct PlanBytes<'a>(std::slice::Iter<'a, u8>);

impl<'a> PlanBytes<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next().map_or(0, |byte| u64::from(*byte))
    }

    fn pair(&mut self) -> u64 {
        self.next() << 8 | self.next()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}

/// Pages by address, zero unless written; an address without a page cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct MadeUpMemory {
    pub(crate) pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    /// Addresses that cannot be read, whatever was written there.
    pub(crate) hole: Range<u64>,
    /// The simulated machine's page size; the pages above are parts of its pages.
    page: u64,
    next: u64,
    asked: Cell<u64>,
}

impl Default for MadeUpMemory {
    fn default() -> Self {
        Self::from(FIRST)
    }
}

impl Memory for MadeUpMemory {
    fn page(&self) -> u64 {
        self.page
    }

    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.asked.set(self.asked.get() + into.len() as u64);
        let (mut at, mut into) = (at, into);
        while !into.is_empty() {
            let (start, inside) = (at & !(PAGE - 1), (at % PAGE) as usize);
            let len = into.len().min(PAGE as usize - inside);
            let Some(last) = at.checked_add(len as u64 - 1) else { return false };
            let in_hole = !self.hole.is_empty() && at < self.hole.end && self.hole.start <= last;
            let Some(page) = self.pages.get(&start).filter(|_| !in_hole) else { return false };
            let (now, later) = into.split_at_mut(len);
            now.copy_from_slice(&page[inside..inside + len]);
            (at, into) = match last.checked_add(1) {
                Some(next) => (next, later),
                None => return later.is_empty(),
            };
        }
        true
    }
}

impl MadeUpMemory {
    /// Memory in which placement starts at this address.
    fn from(first: u64) -> Self {
        Self { pages: BTreeMap::new(), hole: 0..0, page: PAGE, next: first, asked: Cell::new(0) }
    }

    /// Returns the address of this many free bytes, at a multiple of `step`.
    pub(super) fn place(&mut self, len: u64, step: u64) -> u64 {
        let at = self.next.next_multiple_of(step);
        self.next = at + len;
        // All of it is readable, including bytes that are never written.
        for page in (at & !(PAGE - 1)..at + len).step_by(PAGE as usize) {
            self.part(page);
        }
        at
    }

    fn part(&mut self, start: u64) -> &mut [u8; PAGE as usize] {
        self.pages.entry(start).or_insert_with(|| Box::new([0; PAGE as usize]))
    }

    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let inside = (at % PAGE) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE as usize - inside));
            self.part(at & !(PAGE - 1))[inside..inside + now.len()].copy_from_slice(now);
            (at, rest) = (at.wrapping_add(now.len() as u64), later);
        }
    }

    pub(crate) fn word(&mut self, at: u64, word: u64) {
        self.put(at, &word.to_le_bytes());
    }

    /// Writes eight-byte words starting at this address.
    #[cfg(test)]
    pub(crate) fn words(&mut self, at: u64, words: &[u64]) {
        words.iter().zip((at..).step_by(8)).for_each(|(word, at)| self.word(at, *word));
    }

    pub(super) fn half(&mut self, at: u64, half: u32) {
        self.put(at, &half.to_le_bytes());
    }

    /// Simulates larger pages, each present if a part of it was.
    #[cfg(test)]
    pub(crate) fn with_pages_of(mut self, page: u64) -> Self {
        let whole = |start: &u64| (start & !(page - 1)..).step_by(PAGE as usize).take((page / PAGE) as usize);
        let parts: Vec<u64> = self.pages.keys().flat_map(whole).collect();
        parts.into_iter().for_each(|start| _ = self.part(start));
        Self { page, ..self }
    }

    #[cfg(test)]
    #[track_caller]
    pub(crate) fn each_is_refused<T, E>(&self, changes: &[(&str, u64, u64)], read: impl Fn(&Self) -> Result<T, E>) {
        for (what, at, word) in changes {
            let mut made = self.clone();
            made.word(*at, *word);
            assert!(read(&made).is_err(), "{what}");
        }
    }

    /// Places a zero-terminated string somewhere.
    pub(crate) fn write_text(&mut self, text: &str) -> u64 {
        let at = self.place(text.len() as u64 + 1, 1);
        self.put(at, text.as_bytes());
        at
    }

    /// Bytes requested so far, readable or not.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// Changes words in this memory; returns whether there were any changes.
    pub(super) fn damage(&mut self, changes: &[u8]) -> bool {
        let pages: Vec<u64> = self.pages.keys().copied().collect();
        let mut plan = PlanBytes::of(changes.get(..changes.len() / CHANGE_BYTES * CHANGE_BYTES).unwrap_or_default());
        let changed = !plan.is_over();
        while !plan.is_over() {
            let mut place = || pages[plan.next() as usize % pages.len()] + plan.pair() % PAGE / 8 * 8;
            let (at, there) = (place(), place());
            let (kind, number) = (plan.next(), plan.next());
            let word = match kind % 8 {
                0 => number,
                1 => number << 8 | kind,
                2..4 => there,
                4 => u64::MAX - number,
                5 => u64::MAX << (number % 64),
                6 => 1 << (number % 64),
                _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            };
            self.word(at, word);
        }
        changed
    }
}

/// Tries the inputs that fuzzing found or starts with, truncated at every seventh byte; returns them.
#[cfg(test)]
pub(crate) fn corpus(name: &str, check: fn(&[u8])) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for seed in &seeds {
        (0..seed.len()).step_by(7).chain([seed.len()]).for_each(|cut| check(&seed[..cut]));
    }
    seeds
}

/// An input's two halves: a plan, and the changes to its result.
fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    input.split_at(input.len().div_ceil(2))
}
