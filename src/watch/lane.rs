//! Background work, one item at a time and in order. A slow or hung item does not stop the watch: sampling does not
//! wait for accounts or disks.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::Builder;

/// A worker thread that receives `G` and reports `D`.
#[derive(Debug)]
pub(super) struct Lane<G, D> {
    given: SyncSender<G>,
    done: Receiver<D>,
}

impl<G: Send + 'static, D: Send + 'static> Lane<G, D> {
    /// Starts the thread. The queue holds this many items.
    pub(super) fn start(
        thread: Builder,
        waiting_max: usize,
        mut work: impl FnMut(G) -> Option<D> + Send + 'static,
    ) -> io::Result<Self> {
        let (given, pieces) = sync_channel(waiting_max);
        let (tell, done) = channel();
        let go = move || {
            for piece in pieces {
                // The receiver is gone, so the watch has ended.
                if work(piece).is_some_and(|done| tell.send(done).is_err()) {
                    return;
                }
            }
        };
        thread.spawn(go)?;
        Ok(Self { given, done })
    }

    /// Queues an item. Fails if the queue is full or the thread is gone.
    pub(super) fn offer(&self, piece: G) -> Result<(), TrySendError<G>> {
        self.given.try_send(piece)
    }

    /// The results since the last call.
    pub(super) fn done(&self) -> impl Iterator<Item = D> {
        self.done.try_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_lane_runs_one_piece_at_a_time_without_delaying_callers() {
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
        // The first two items report nothing; all later reports arrive, in order.
        go.send(()).unwrap();
        go.send(()).unwrap();
        drop(go);
        let told: Vec<usize> = (0..taken - 2).map(|_| lane.done.recv().unwrap()).collect();
        assert!(told.is_sorted() && told[0] == 2, "{told:?}");
    }
}
