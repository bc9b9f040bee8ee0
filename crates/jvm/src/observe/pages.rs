//! Reads memory forward through its present pages only, with as few reads as possible.

use super::memory::{Memory, words};
use super::pagemap::{self, Run};

/// The longest read.
const WINDOW_MAX: usize = 256 << 10;

/// A view of memory that knows which of its pages are present.
pub(super) struct Pages<'a> {
    memory: &'a dyn Memory,
    runs: &'a [Run],
    page: u64,
    /// The last run used; walks go forward.
    cursor: usize,
    window: Vec<u8>,
    window_start: u64,
    /// Length of the next read: doubles for consecutive reads, so a jump costs one page.
    next_read: usize,
}

impl<'a> Pages<'a> {
    pub(super) fn new(memory: &'a dyn Memory, runs: &'a [Run]) -> Self {
        let page = memory.page();
        Self { memory, runs, page, cursor: 0, window: Vec::new(), window_start: 0, next_read: page as usize }
    }

    pub(super) fn page(&self) -> u64 {
        self.page
    }

    /// The first page boundary at or after `at`, if there is one.
    pub(super) fn boundary(&self, at: u64) -> u64 {
        at.checked_next_multiple_of(self.page).unwrap_or(u64::MAX)
    }

    /// The last page boundary at or before `at`.
    pub(super) fn boundary_before(&self, at: u64) -> u64 {
        at & !(self.page - 1)
    }

    /// The start of the page at `at`, or of the first run if that is later.
    pub(super) fn start(&self, at: u64) -> u64 {
        self.runs.first().map_or(at, |run| run.start.min(at))
    }

    /// The two words at `at`, a multiple of 16; `None` if the page is not present.
    pub(super) fn unit(&mut self, at: u64) -> Option<(u64, u64)> {
        let inside = |start: u64, len: usize| at >= start && (at - start).saturating_add(16) <= len as u64;
        if !inside(self.window_start, self.window.len()) {
            self.fill(at)?;
        }
        let from = usize::try_from(at - self.window_start).ok()?;
        let bytes = self.window.get(from..from + 16)?;
        let mut words = words(bytes);
        Some((words.next()?, words.next()?))
    }

    fn fill(&mut self, at: u64) -> Option<()> {
        self.seek(at);
        let run = self.runs.get(self.cursor).copied().filter(|run| run.start <= at && !run.swapped)?;
        let window_end = self.window_start.saturating_add(self.window.len() as u64);
        let follows = !self.window.is_empty() && at >= self.window_start && at - window_end.min(at) < self.page;
        self.next_read = if follows { (self.next_read * 2).min(WINDOW_MAX) } else { self.page as usize };
        let start = self.boundary_before(at).max(run.start);
        let len = usize::try_from(run.end - start).ok()?.min(self.next_read);
        self.window.resize(len, 0);
        self.window_start = start;
        if !self.memory.read(start, &mut self.window) {
            self.window.clear();
            return None;
        }
        Some(())
    }

    /// Moves the cursor to the first run that ends after `at`.
    fn seek(&mut self, at: u64) {
        if self.cursor > 0 && self.runs[self.cursor - 1].end > at {
            self.cursor = self.runs.partition_point(|run| run.end <= at);
        }
        while self.runs.get(self.cursor).is_some_and(|run| run.end <= at) {
            self.cursor += 1;
        }
    }

    /// Present and swapped bytes of `[start, end)`.
    pub(super) fn backed(&mut self, start: u64, end: u64) -> (u64, u64) {
        self.seek(start);
        self.backed_apart(start, end)
    }

    /// Like [`Pages::backed`], without moving the cursor.
    pub(super) fn backed_apart(&self, start: u64, end: u64) -> (u64, u64) {
        let from = self.cursor - usize::from(self.cursor > 0);
        let near = self.runs[from..].iter().skip_while(|run| run.end <= start);
        pagemap::sum(near, start, end)
    }

    /// The start of the first present page at or after `at`, a multiple of the page size.
    pub(super) fn next_present(&mut self, at: u64) -> Option<u64> {
        self.seek(at);
        let run = self.runs[self.cursor..].iter().find(|run| !run.swapped)?;
        Some(run.start.max(at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::hotspot::made_up::MadeUpMemory;
    use super::super::memory::PAGE_MIN;
    use super::*;
    use std::cell::RefCell;

    const P: u64 = PAGE_MIN;
    /// Pages 1 to 3, swapped 3 to 4, 6 to 7, and 100 to 300.
    const RUNS: [Run; 4] = [run(1, 3, false), run(3, 4, true), run(6, 7, false), run(100, 300, false)];

    const fn run(start: u64, end: u64, swapped: bool) -> Run {
        Run { start: start * P, end: end * P, swapped }
    }

    /// Every word is its own address; records the reads, in pages, and refuses those outside the present runs.
    #[derive(Default)]
    struct Addresses(RefCell<Vec<(u64, u64)>>);

    impl Memory for Addresses {
        fn read(&self, at: u64, into: &mut [u8]) -> bool {
            let end = at + into.len() as u64;
            assert!(RUNS.iter().any(|run| !run.swapped && run.start <= at && end <= run.end), "{at:#x} to {end:#x}");
            self.0.borrow_mut().push((at / P, end / P));
            for (n, word) in into.chunks_exact_mut(8).enumerate() {
                word.copy_from_slice(&(at + 8 * n as u64).to_le_bytes());
            }
            true
        }
    }

    #[test]
    fn backed_counts_to_the_byte_at_the_edges_of_runs() {
        let memory = Addresses::default();
        let mut pages = Pages::new(&memory, &RUNS);
        for (start, end, expect) in [
            (0, P, (0, 0)),
            (0, P + 1, (1, 0)),
            (P - 1, P + 1, (1, 0)),
            (P, 3 * P, (2 * P, 0)),
            (3 * P - 1, 3 * P + 2, (1, 2)),
            (3 * P, 3 * P, (0, 0)),
            (3 * P, 4 * P, (0, P)),
            (4 * P, 6 * P, (0, 0)),
            (7 * P - 16, 7 * P + 16, (16, 0)),
            (0, u64::MAX, (203 * P, P)),
            // A walk may also go back.
            (300 * P, u64::MAX, (0, 0)),
            (2 * P, P, (0, 0)),
            (2 * P, 2 * P + 5, (5, 0)),
        ] {
            assert_eq!(pages.backed(start, end), expect, "{start:#x} to {end:#x}");
        }
        // Looking ahead must not move the cursor.
        pages.backed(P, 2 * P);
        assert_eq!(pages.backed_apart(6 * P, 200 * P), (101 * P, 0));
        assert_eq!(pages.backed_apart(P, 2 * P), (P, 0));
        assert!(memory.0.borrow().is_empty());
    }

    #[test]
    fn next_present_skips_swapped_and_absent_pages() {
        let memory = Addresses::default();
        let mut pages = Pages::new(&memory, &RUNS);
        for (at, next) in [(0, Some(1)), (1, Some(1)), (2, Some(2)), (3, Some(6)), (4, Some(6)), (7, Some(100))] {
            assert_eq!(pages.next_present(at * P), next.map(|page: u64| page * P), "{at}");
        }
        assert_eq!(pages.next_present(299 * P), Some(299 * P));
        assert_eq!(pages.next_present(300 * P), None);
        assert_eq!(pages.next_present(0), Some(P), "the search can go back to the start");
        assert_eq!(Pages::new(&memory, &[]).next_present(0), None);
    }

    #[test]
    fn units_are_read_up_to_the_end_of_a_run() {
        let memory = Addresses::default();
        let mut pages = Pages::new(&memory, &RUNS);
        for at in [P, 3 * P - 16, 6 * P, 7 * P - 16, 100 * P, 300 * P - 16, 2 * P, 150 * P + 4080] {
            assert_eq!(pages.unit(at), Some((at, at + 8)), "{at:#x}");
        }
        for at in [0, P - 16, 3 * P - 8, 3 * P, 4 * P - 16, 4 * P, 6 * P - 16, 7 * P, 300 * P, u64::MAX - 15, u64::MAX]
        {
            assert_eq!(pages.unit(at), None, "{at:#x}");
        }
    }

    #[test]
    fn consecutive_reads_grow() {
        let memory = Addresses::default();
        let mut pages = Pages::new(&memory, &RUNS);
        for page in 100..300 {
            assert_eq!(pages.unit(page * P).map(|unit| unit.0), Some(page * P));
        }
        let expect = [(100, 101), (101, 103), (103, 107), (107, 115), (115, 131), (131, 163), (163, 227), (227, 291)];
        assert_eq!(memory.0.borrow()[..8], expect);
        assert_eq!(memory.0.borrow()[8..], [(291, 300)]);
        assert!(pages.unit(P).is_some());
        assert_eq!(memory.0.borrow().last(), Some(&(1, 2)), "only one page is read after a jump");
    }

    #[test]
    fn boundaries_end_with_the_address_space() {
        let memory = Addresses::default();
        let pages = Pages::new(&memory, &RUNS);
        for (at, boundary) in [(0, 0), (1, P), (P, P), (u64::MAX - P, u64::MAX - P + 1), (u64::MAX - 1, u64::MAX)] {
            assert_eq!(pages.boundary(at), boundary);
        }
    }

    #[test]
    fn large_pages_are_read_and_split_correctly() {
        for page in [16 << 10, 64 << 10] {
            let mut memory = MadeUpMemory::default();
            memory.put(page, &vec![0; 3 * page as usize]);
            let memory = memory.with_pages_of(page);
            let runs = [Run { start: page, end: 4 * page, swapped: false }];
            let mut pages = Pages::new(&memory, &runs);
            assert!(pages.unit(2 * page + 4096).is_some() && pages.unit(3 * page - 16).is_some());
            assert_eq!(memory.asked(), page, "one page is read only once");
            assert_eq!((pages.boundary(page + 1), pages.boundary_before(2 * page - 1)), (2 * page, page));
        }
    }
}
