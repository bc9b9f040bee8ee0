//! Decides which malloc heap is walked next, and which ones are walked again.
//!
//! A thread paused inside `malloc` or `free` leaves a temporarily inconsistent heap (`_int_malloc` splits a chunk in
//! several writes; malloc/malloc.c). Such a heap is walked again after its threads have run; one that is inconsistent
//! every time is not a glibc heap.

use crate::observe::glibc::Walked;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum number of times that an inconsistent heap is walked.
const WALKS_MAX: u32 = 4;
/// Threads run for this long before an inconsistent heap is walked again, and four times as long before each further
/// walk. A thread inside `malloc` needs only microseconds to leave it, but may have to wait for a CPU.
pub(super) const RUN_ON: Duration = Duration::from_millis(2);

/// The order in which heaps are walked: each once, then the inconsistent ones.
#[derive(Debug)]
pub(super) struct Turns {
    waiting: VecDeque<usize>,
    /// The number of walks of each heap, and the result of the last one.
    walked: Vec<(u32, Walked)>,
}

impl Turns {
    pub(super) fn of(heaps: usize) -> Self {
        Self { waiting: (0..heaps).collect(), walked: vec![(0, Ok(None)); heaps] }
    }

    /// The heap to walk next; `None` when all are done.
    pub(super) fn next(&self) -> Option<usize> {
        self.waiting.front().copied()
    }

    /// How long threads must run before the next walk: zero, unless that heap was inconsistent before.
    pub(super) fn run_on(&self) -> Duration {
        match self.next().map(|heap| self.walked[heap].0) {
            None | Some(0) => Duration::ZERO,
            Some(walks) => RUN_ON * 4_u32.pow(walks - 1),
        }
    }

    pub(super) fn take(&mut self, found: Walked) {
        let Some(heap) = self.waiting.pop_front() else { return };
        let walks = self.walked[heap].0 + 1;
        if found.is_err() && walks < WALKS_MAX {
            self.waiting.push_back(heap);
        }
        self.walked[heap] = (walks, found);
    }

    /// Returns the result of the last walk of each heap, in their order.
    pub(super) fn finish(self) -> Vec<Walked> {
        self.walked.into_iter().map(|(_, found)| found).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::glibc::WalkError;

    fn broken(index: usize) -> Walked {
        Err(WalkError { index, at: 0x10, why: "a chunk with an impossible size" })
    }

    #[test]
    fn each_heap_has_its_turn_and_inconsistent_ones_are_retried_last() {
        let mut turns = Turns::of(3);
        let mut order = Vec::new();
        while let Some(heap) = turns.next() {
            let first = !order.contains(&heap);
            assert_eq!(turns.run_on() == Duration::ZERO, first, "the threads only run before a retry");
            order.push(heap);
            turns.take(if heap == 1 && first { broken(1) } else { Ok(None) });
        }
        assert_eq!(order, [0, 1, 2, 1]);
        assert_eq!(turns.finish(), [Ok(None), Ok(None), Ok(None)]);
    }

    #[test]
    fn an_always_inconsistent_heap_fails_with_its_address() {
        let mut turns = Turns::of(2);
        let mut waits = Vec::new();
        while let Some(heap) = turns.next() {
            waits.push(turns.run_on().as_millis());
            turns.take(if heap == 0 { broken(0) } else { Ok(None) });
        }
        assert_eq!(waits, [0, 0, 2, 8, 32]);
        assert_eq!(turns.finish(), [broken(0), Ok(None)]);
    }
}
