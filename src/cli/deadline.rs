//! Ends a run after a given time, as if the user had interrupted it.

use super::session::Interrupt;
use crate::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

/// A deadline, canceled on drop.
pub(super) struct Deadline {
    over: Arc<AtomicBool>,
    off: Arc<AtomicBool>,
    waiting: Option<JoinHandle<()>>,
}

impl Deadline {
    /// Sets `stop` after this time, unless a signal arrived earlier, using a thread that wakes up only once.
    pub(super) fn begin(clock: Clock, after: Duration, signals: &Interrupt, stop: &Interrupt) -> Self {
        let (over, off) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let until = clock.now() + after;
        let (signals, stop) = (signals.clone(), stop.clone());
        let waiting = std::thread::spawn({
            let (over, off) = (Arc::clone(&over), Arc::clone(&off));
            move || {
                loop {
                    let left = until.saturating_sub(clock.now());
                    if off.load(Ordering::Relaxed) {
                        return;
                    }
                    if left.is_zero() {
                        break;
                    }
                    clock.park(left);
                }
                if !signals.seen() {
                    over.store(true, Ordering::Relaxed);
                    stop.flag().store(true, Ordering::Release);
                }
            }
        });
        Self { over, off, waiting: Some(waiting) }
    }

    /// Whether the deadline ended the run.
    pub(super) fn is_over(&self) -> bool {
        // A thread that sees `stop` also sees why it was set.
        fence(Ordering::Acquire);
        self.over.load(Ordering::Relaxed)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.off.store(true, Ordering::Relaxed);
        if let Some(waiting) = self.waiting.take() {
            waiting.thread().unpark();
            let _ = waiting.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_stopped_at_the_deadline_and_not_before() {
        let none = Interrupt::default();
        let (early, late) = (Interrupt::default(), Interrupt::default());
        let far = Deadline::begin(Clock::start(), Duration::from_secs(3600), &none, &late);
        let near = Deadline::begin(Clock::start(), Duration::ZERO, &none, &early);
        // Joined on drop, so it has checked by then.
        let over = Arc::clone(&near.over);
        let clock = Clock::start();
        while !near.is_over() {
            assert!(clock.now() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        drop(near);
        assert!(over.load(Ordering::Relaxed) && early.seen());
        assert!(!far.is_over() && !late.seen());
        drop(far);
        assert!(!late.seen());
    }

    #[test]
    fn a_signal_before_the_deadline_is_the_cause() {
        let (signals, stop) = (Interrupt::default(), Interrupt::default());
        signals.flag().store(true, Ordering::Relaxed);
        let mut deadline = Deadline::begin(Clock::start(), Duration::ZERO, &signals, &stop);
        deadline.waiting.take().unwrap().join().unwrap();
        assert!(!deadline.is_over() && !stop.seen());
    }
}
