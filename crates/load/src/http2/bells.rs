//! Wakers that set a bit for each task to poll again, for manually polled tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Wake, Waker};

/// One bit per task. Atomic because a [`Waker`] must be, though only one thread rings and listens.
#[derive(Debug)]
pub(super) struct Bells(Box<[AtomicU64]>);

#[derive(Debug)]
struct Bell {
    bells: Arc<Bells>,
    number: usize,
}

impl Bells {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()))
    }

    /// Creates the waker that rings for a task; called once per task.
    pub(super) fn waker(self: &Arc<Self>, number: usize) -> Waker {
        Waker::from(Arc::new(Bell { bells: Arc::clone(self), number }))
    }

    /// The number of 64-bit words.
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// The bits of a word that rang since the last call.
    #[inline]
    pub(super) fn take(&self, word: usize) -> u64 {
        // A load costs less than a swap, and usually no bell rang.
        match self.0.get(word) {
            Some(word) if word.load(Relaxed) != 0 => word.swap(0, Relaxed),
            _ => 0,
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(word) = self.bells.0.get(self.number / 64) {
            word.fetch_or(1 << (self.number % 64), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_its_own_bit_and_rings_once() {
        let bells = Bells::new(70);
        let wakers: Vec<Waker> = (0..70).map(|number| bells.waker(number)).collect();
        wakers[0].wake_by_ref();
        bells.waker(69).wake();
        wakers[69].wake_by_ref();
        assert_eq!((bells.words(), bells.take(0), bells.take(1)), (2, 1, 1 << 5));
        assert_eq!((bells.take(0), bells.take(1), bells.take(2)), (0, 0, 0));
    }
}
