//! A HotSpot made up byte by byte from a plan that is any bytes, as `vmStructs.cpp`, `threadSMR.cpp`,
//! `classLoaderData.cpp` and `fieldInfo.hpp` (JDK 11–27) lay it out; for tests and fuzzing only. The values that a
//! reader has to find are kept while the memory is written.
//!
//! | file | what it makes up |
//! |---|---|
//! | [`tables`] | rows of names |
//! | [`threads`] | a JVM whose threads allocate, begin and end while they are read |
//! | [`classes`] | loaders, classes, fields, mirrors and objects |

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
/// The address from which things are put one behind the other.
const FIRST: u64 = 0x7f10_0000_0000;
/// A change of a word, as an input has it.
const CHANGE_BYTES: usize = 8;

/// Bytes of a plan, one after the other, and zeros behind them.
#[derive(Debug, Clone)]
pub(crate) struct PlanBytes<'a>(std::slice::Iter<'a, u8>);

impl<'a> PlanBytes<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next().map_or(0, |byte| u64::from(*byte))
    }

    /// Two bytes.
    fn pair(&mut self) -> u64 {
        self.next() << 8 | self.next()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}

/// Pages by their addresses, zero where nothing was written; what is on no page cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct MadeUpMemory {
    pub(crate) pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    /// Addresses that cannot be read, whatever was written there.
    pub(crate) hole: Range<u64>,
    /// The size of a page of the machine that it is of: those above are parts of it.
    page: u64,
    /// The address of the next thing.
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
    /// One in which things are put from this address on.
    fn from(first: u64) -> Self {
        Self { pages: BTreeMap::new(), hole: 0..0, page: PAGE, next: first, asked: Cell::new(0) }
    }

    /// The address of so many bytes that are free, at a multiple of `step`.
    pub(super) fn place(&mut self, len: u64, step: u64) -> u64 {
        let at = self.next.next_multiple_of(step);
        self.next = at + len;
        // All of it can be read, including bytes that are never written.
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

    /// Words of eight bytes, from this address on.
    #[cfg(test)]
    pub(crate) fn words(&mut self, at: u64, words: &[u64]) {
        words.iter().zip((at..).step_by(8)).for_each(|(word, at)| self.word(at, *word));
    }

    pub(super) fn half(&mut self, at: u64, half: u32) {
        self.put(at, &half.to_le_bytes());
    }

    /// The same on a machine with larger pages, each of which is there where a part of it was.
    #[cfg(test)]
    pub(crate) fn with_pages_of(mut self, page: u64) -> Self {
        let whole = |start: &u64| (start & !(page - 1)..).step_by(PAGE as usize).take((page / PAGE) as usize);
        let parts: Vec<u64> = self.pages.keys().flat_map(whole).collect();
        parts.into_iter().for_each(|start| _ = self.part(start));
        Self { page, ..self }
    }

    /// Each of these changes of one word makes what is read an error.
    #[cfg(test)]
    #[track_caller]
    pub(crate) fn each_is_refused<T, E>(&self, changes: &[(&str, u64, u64)], read: impl Fn(&Self) -> Result<T, E>) {
        for (what, at, word) in changes {
            let mut made = self.clone();
            made.word(*at, *word);
            assert!(read(&made).is_err(), "{what}");
        }
    }

    /// Puts a text somewhere, with its zero byte.
    pub(crate) fn write_text(&mut self, text: &str) -> u64 {
        let at = self.place(text.len() as u64 + 1, 1);
        self.put(at, text.as_bytes());
        at
    }

    /// Bytes that were asked for so far, whether they could be read or not.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// Changes words of it; whether there were any to change.
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

/// Tries the inputs that fuzzing found, or begins with, cut at every seventh byte; returns them.
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

/// An input's two halves: a plan, and what is changed of what it makes up.
fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    input.split_at(input.len().div_ceil(2))
}
