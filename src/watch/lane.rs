//! Work in the background of the watching: one piece at a time, in the order in which it was given. A piece that takes
//! long, or never comes back, does not stop the watching: the sampling waits neither for a weighing nor for a disk.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::Builder;

/// The thread that works: it receives `G`, and reports `D`.
#[derive(Debug)]
pub(super) struct Lane<G, D> {
    given: SyncSender<G>,
    done: Receiver<D>,
}

impl<G: Send + 'static, D: Send + 'static> Lane<G, D> {
    /// Starts the thread, which ends with what it was given last. So many pieces may wait.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        thread: Builder,
        waiting_max: usize,
        mut work: impl FnMut(G) -> Option<D> + Send + 'static,
    ) -> io::Result<Self> {
        let (given, pieces) = sync_channel(waiting_max);
        let (tell, done) = channel();
        let go = move || {
            for piece in pieces {
                // The receiver is gone: the watch has ended.
                if work(piece).is_some_and(|done| tell.send(done).is_err()) {
                    return;
                }
            }
        };
        thread.spawn(go)?;
        Ok(Self { given, done })
    }

    /// Gives it a piece.
    ///
    /// # Errors
    /// If too many wait, or the thread has gone.
    pub(super) fn offer(&self, piece: G) -> Result<(), TrySendError<G>> {
        self.given.try_send(piece)
    }

    /// Returns what was told since the last call.
    pub(super) fn done(&self) -> impl Iterator<Item = D> {
        self.done.try_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn work_that_hangs_holds_nobody_up_and_is_done_one_piece_at_a_time() {
        const WAITING_MAX: usize = 64;
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        let (go, wait) = channel::<()>();
        let lane = Lane::start(Builder::new(), WAITING_MAX, move |piece: usize| {
            assert_eq!(AT_ONCE.fetch_add(1, Ordering::SeqCst), 0);
            let over = wait.recv();
            AT_ONCE.fetch_sub(1, Ordering::SeqCst);
            over.is_err().then_some(piece)
        });
        let lane = lane.unwrap();
        let taken = (0..1000).filter(|piece| lane.offer(*piece).is_ok()).count();
        assert!((WAITING_MAX..=WAITING_MAX + 1).contains(&taken), "{taken}");
        assert_eq!(lane.done().count(), 0);
        // The first two pieces report nothing, and each later piece reports: all of these arrive, in order.
        go.send(()).unwrap();
        go.send(()).unwrap();
        drop(go);
        let told: Vec<usize> = (0..taken - 2).map(|_| lane.done.recv().unwrap()).collect();
        assert!(told.is_sorted() && told[0] == 2, "{told:?}");
    }
}
