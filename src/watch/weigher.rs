//! Weighing beside the watching: one JVM at a time, in the order in which that was due. One that takes long, or never
//! comes back, keeps no other from being watched.

use super::world::{Id, Weighed};
use crate::record::WhyWeighed;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};

/// JVMs that wait to be weighed at most.
const WAITING_MAX: usize = 16;

/// Weighs a JVM into a file; what the caller does with the account is not known here.
pub(super) type WeighInto = Box<dyn FnMut(u32, WhyWeighed, &Path) -> Result<(), String> + Send>;

type Due = (Id, WhyWeighed, PathBuf);

/// The thread that weighs.
#[derive(Debug)]
pub(super) struct Weigher {
    due: SyncSender<Due>,
    done: Receiver<Weighed>,
}

impl Weigher {
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(mut weigh: WeighInto) -> io::Result<Self> {
        let (due, given) = sync_channel::<Due>(WAITING_MAX);
        let (tell, done) = channel();
        let go = move || {
            for (id, why, into) in given {
                let done = weigh(id.pid, why, &into);
                if tell.send(Weighed { id, why, into, done }).is_err() {
                    // Nobody to tell: the watch has ended.
                    return;
                }
            }
        };
        std::thread::Builder::new().name("weighing".to_owned()).spawn(go)?;
        Ok(Self { due, done })
    }

    /// Queues a JVM to be weighed.
    ///
    /// # Errors
    /// If too many wait.
    pub(super) fn offer(&self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String> {
        self.due.try_send((id, why, into.to_owned())).map_err(|refused| match refused {
            TrySendError::Full(_) => format!("{WAITING_MAX} others wait to be weighed"),
            TrySendError::Disconnected(_) => "what weighs has ended".to_owned(),
        })
    }

    /// Returns the weighings that ended since the last call.
    pub(super) fn done(&self) -> impl Iterator<Item = Weighed> {
        self.done.try_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_stuck_keeps_nobody_and_those_behind_it_are_bounded() {
        let (go, wait) = channel::<()>();
        let weigher = Weigher::start(Box::new(move |pid, _, _| {
            wait.recv().map_err(|_| format!("{pid} ends"))?;
            Ok(())
        }));
        let weigher = weigher.unwrap();
        let offer = |pid| weigher.offer(Id { pid, start_ticks: 1 }, WhyWeighed::Time, Path::new("/account"));
        let refused = (0..100).map(offer).filter(Result::is_err).count();
        assert!((100 - WAITING_MAX - 1..=100 - WAITING_MAX).contains(&refused), "{refused}");
        assert_eq!(weigher.done().count(), 0);
        go.send(()).unwrap();
        let first = weigher.done.recv().unwrap();
        assert_eq!((first.id.pid, first.done), (0, Ok(())));
        drop(go);
        assert_eq!(weigher.done.recv().unwrap().done, Err("1 ends".to_owned()));
    }
}
