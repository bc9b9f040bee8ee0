//! Histories on their way from the kernel's memory to the disk: one at a time, beside the sampling, which never waits
//! for a disk that is slow or hangs.

use super::world::Id;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

/// Histories that wait at most; one that finds no place is offered again at the next turn.
const WAITING_MAX: usize = 64;
const STACK_BYTES: usize = 64 << 10;

/// Whose history it is, and its file.
type Due = (Id, Arc<File>);

/// The thread that waits for the disk; it ends with what it was given last.
#[derive(Debug)]
pub(super) struct Settling {
    due: SyncSender<Due>,
    failed: Receiver<(Id, io::Error)>,
}

impl Settling {
    /// Starts the thread, which calls `settle` for each file; tests bring a disk of their own.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(settle: impl Fn(&File) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (due, given) = sync_channel::<Due>(WAITING_MAX);
        let (tell, failed): (Sender<_>, _) = channel();
        let go = move || {
            for (id, file) in given {
                // Nobody to tell: the watch has ended.
                if let Err(why) = settle(&file)
                    && tell.send((id, why)).is_err()
                {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("settling".to_owned()).stack_size(STACK_BYTES).spawn(go)?;
        Ok(Self { due, failed })
    }

    /// Takes a history in, where there is a place for it.
    pub(super) fn offer(&self, id: Id, file: &Arc<File>) -> bool {
        // A thread that has gone takes nothing more, and nobody waits for it.
        !matches!(self.due.try_send((id, Arc::clone(file))), Err(TrySendError::Full(_)))
    }

    /// Returns the errors of the disk since the last call.
    pub(super) fn failed(&self) -> impl Iterator<Item = (Id, io::Error)> {
        self.failed.try_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_disk_that_hangs_holds_nobody_up_and_is_asked_for_one_at_a_time() {
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        let (go, wait) = channel::<()>();
        let settling = Settling::start(move |_| {
            assert_eq!(AT_ONCE.fetch_add(1, Ordering::SeqCst), 0);
            let over = wait.recv();
            AT_ONCE.fetch_sub(1, Ordering::SeqCst);
            over.map_err(|_| io::Error::other("it refuses"))
        });
        let (settling, file) = (settling.unwrap(), Arc::new(tempfile::tempfile().unwrap()));
        let id = |pid| Id { pid, start_ticks: 1 };
        let taken = (0..1000).filter(|pid| settling.offer(id(*pid), &file)).count();
        assert!((WAITING_MAX..=WAITING_MAX + 1).contains(&taken), "{taken}");
        assert_eq!(settling.failed().count(), 0);
        // Two are done, and then the disk refuses each: all that was taken is told, in order.
        go.send(()).unwrap();
        go.send(()).unwrap();
        drop(go);
        let refused: Vec<Id> = (0..taken - 2).map(|_| settling.failed.recv().unwrap().0).collect();
        assert!(refused.is_sorted_by_key(|id| id.pid) && refused[0] == id(2), "{refused:?}");
    }
}
