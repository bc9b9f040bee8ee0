//! Memory read through its present pages only, forwards, with as few reads as possible.

use super::memory::Memory;
use super::pagemap::Run;

/// The longest read.
const WINDOW_MAX: usize = 256 << 10;

/// A view of memory that knows which of its pages are present.
pub(super) struct Pages<'a> {
    memory: &'a dyn Memory,
    runs: &'a [Run],
    /// The run that was used last; walks go forwards.
    cursor: usize,
    window: Vec<u8>,
    window_start: u64,
    /// Length of the next read: doubles while reads follow each other, so that a jump costs one page.
    next_read: usize,
}

impl<'a> Pages<'a> {
    /// Chunks are measured in pages of 4 KiB, which is what x86-64 has; aarch64 with larger ones is not split.
    pub(super) const PAGE: u64 = 4096;

    pub(super) fn new(memory: &'a dyn Memory, runs: &'a [Run]) -> Self {
        Self { memory, runs, cursor: 0, window: Vec::new(), window_start: 0, next_read: Self::PAGE as usize }
    }

    /// The start of the page at `at`, or of the first run if that is later.
    pub(super) fn start(&self, at: u64) -> u64 {
        self.runs.first().map_or(at, |run| run.start.min(at))
    }

    /// The two words at `at`, a multiple of 16; `None` where the page is not present.
    pub(super) fn unit(&mut self, at: u64) -> Option<(u64, u64)> {
        let inside = |start: u64, len: usize| at >= start && at - start + 16 <= len as u64;
        if !inside(self.window_start, self.window.len()) {
            self.fill(at)?;
        }
        let from = usize::try_from(at - self.window_start).ok()?;
        let bytes = self.window.get(from..from + 16)?;
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        Some((word(&bytes[..8])?, word(&bytes[8..])?))
    }

    fn fill(&mut self, at: u64) -> Option<()> {
        let run = self.run_at(at).filter(|run| !run.swapped)?;
        let window_end = self.window_start + self.window.len() as u64;
        let follows = !self.window.is_empty() && at >= self.window_start && at < window_end + Self::PAGE;
        self.next_read = if follows { (self.next_read * 2).min(WINDOW_MAX) } else { Self::PAGE as usize };
        let start = at & !(Self::PAGE - 1);
        let len = usize::try_from(run.end - start).ok()?.min(self.next_read);
        self.window.resize(len, 0);
        self.window_start = start;
        if !self.memory.read(start, &mut self.window) {
            self.window.clear();
            return None;
        }
        Some(())
    }

    /// The run that holds `at`.
    fn run_at(&mut self, at: u64) -> Option<Run> {
        self.seek(at);
        self.runs.get(self.cursor).copied().filter(|run| run.start <= at)
    }

    /// Moves the cursor to the first run that ends behind `at`.
    fn seek(&mut self, at: u64) {
        if self.cursor > 0 && self.runs[self.cursor - 1].end > at {
            self.cursor = self.runs.partition_point(|run| run.end <= at);
        }
        while self.runs.get(self.cursor).is_some_and(|run| run.end <= at) {
            self.cursor += 1;
        }
    }

    /// Bytes of `[start, end)` that are present, and that are swapped.
    pub(super) fn backed(&mut self, start: u64, end: u64) -> (u64, u64) {
        self.seek(start);
        self.backed_apart(start, end)
    }

    /// The same without moving on.
    pub(super) fn backed_apart(&self, start: u64, end: u64) -> (u64, u64) {
        let (mut resident, mut swapped) = (0, 0);
        let from = self.cursor - usize::from(self.cursor > 0);
        for run in self.runs[from..].iter().skip_while(|run| run.end <= start).take_while(|run| run.start < end) {
            let part = run.end.min(end).saturating_sub(run.start.max(start));
            if run.swapped {
                swapped += part;
            } else {
                resident += part;
            }
        }
        (resident, swapped)
    }

    /// The start of the first present page at or behind `at`, a multiple of the page size.
    pub(super) fn next_present(&mut self, at: u64) -> Option<u64> {
        self.seek(at);
        let run = self.runs[self.cursor..].iter().find(|run| !run.swapped)?;
        Some(run.start.max(at))
    }
}
