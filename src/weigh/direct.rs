//! Direct memory on the timeline: a thread queries Native Memory Tracking's `Other` category once a second, which is
//! the memory from `Unsafe.allocateMemory`: direct buffers. Used only if the JVM's own counters are not readable from
//! outside ([`super::direct_reader`]).

use crate::clock::Clock;
use crate::observe::attach::Attach;
use crate::observe::nmt::NativeMemory;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A query takes 0.03 to 0.7 ms and needs no safepoint: once a second, less than a thousandth of a CPU.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The JVM answers after its current pause; a mark waits at most about this long for a running query.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Stop after this many consecutive failures.
const FAILURES_MAX: u32 = 3;

/// The value in the last reply, taken once, so that a sample contains only fresh data.
#[derive(Debug, Default)]
pub(crate) struct Latest(Mutex<Option<u64>>);

impl Latest {
    fn put(&self, bytes: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
    }

    /// The value in a reply since the last call, if any.
    pub(crate) fn take(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The querying thread; stops on drop.
pub(crate) struct DirectMemory {
    stop: Arc<AtomicBool>,
    gate: Gate,
    thread: Option<JoinHandle<()>>,
}

/// Held during a query, and by a mark, which must not be disturbed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<()>>);

impl Gate {
    /// Waits for a running query; blocks new ones while the guard is held.
    pub(crate) fn close(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirectMemory {
    /// Queries until the JVM no longer answers or this is dropped.
    pub(crate) fn start(attach: Arc<Attach>, clock: Clock, to: Arc<Latest>) -> Self {
        let ask = move || ask(&attach);
        Self::start_with(ask, ASK_EVERY, clock, to)
    }

    fn start_with(
        mut ask: impl FnMut() -> Option<u64> + Send + 'static,
        every: Duration,
        clock: Clock,
        to: Arc<Latest>,
    ) -> Self {
        let (stop, gate) = (Arc::new(AtomicBool::new(false)), Gate::default());
        let (in_thread, gate_in_thread) = (Arc::clone(&stop), gate.clone());
        let thread = std::thread::spawn(move || {
            let mut failures = 0;
            let mut due_ns = clock.now_ns();
            while !in_thread.load(Ordering::Relaxed) && failures < FAILURES_MAX {
                let left_ns = due_ns.saturating_sub(clock.now_ns());
                if left_ns > 0 {
                    // May wake up spuriously, or to stop.
                    clock.park(Duration::from_nanos(left_ns));
                    continue;
                }
                let answer = {
                    let _closed = gate_in_thread.close();
                    ask()
                };
                failures = if answer.is_some() { 0 } else { failures + 1 };
                if let Some(bytes) = answer {
                    to.put(bytes);
                }
                due_ns = clock.now_ns() + every.as_nanos() as u64;
            }
        });
        Self { stop, gate, thread: Some(thread) }
    }

    pub(crate) fn gate(&self) -> Gate {
        self.gate.clone()
    }
}

impl Drop for DirectMemory {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in the thread costs only the direct memory line.
            let _ = thread.join();
        }
    }
}

fn ask(attach: &Attach) -> Option<u64> {
    let reply = attach.jcmd_within("VM.native_memory summary scale=KB", ANSWER_WITHIN).ok()?;
    let memory = NativeMemory::parse(&reply.value).ok()?;
    // The JVM omits empty categories.
    Some(memory.category("Other").map_or(0, |other| other.amount.committed.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Waits for a condition that becomes true soon.
    fn soon(what: impl Fn() -> bool) {
        for _ in 0..2000 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the condition did not hold in time");
    }

    #[test]
    fn a_reply_is_taken_once() {
        let latest = Latest::default();
        assert_eq!(latest.take(), None);
        latest.put(0);
        assert_eq!((latest.take(), latest.take()), (Some(0), None));
    }

    #[test]
    fn a_silent_jvm_is_given_up_and_one_reply_resets_this() {
        let (asked, latest) = (Arc::new(AtomicU32::new(0)), Arc::new(Latest::default()));
        let count = Arc::clone(&asked);
        let ask = move || (count.fetch_add(1, Ordering::Relaxed) == 1).then_some(7);
        let direct = DirectMemory::start_with(ask, Duration::from_millis(1), Clock::start(), Arc::clone(&latest));
        soon(|| direct.thread.as_ref().is_some_and(JoinHandle::is_finished));
        // One failure, one reply, three failures.
        assert_eq!(asked.load(Ordering::Relaxed), 5);
        assert_eq!(latest.take(), Some(7));
    }

    #[test]
    fn queries_pause_during_a_mark_and_end_after_dropping() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let ask = move || Some(u64::from(count.fetch_add(1, Ordering::Relaxed)));
        let direct = DirectMemory::start_with(ask, Duration::from_millis(1), Clock::start(), Arc::default());
        soon(|| asked.load(Ordering::Relaxed) > 2);
        let gate = direct.gate();
        {
            let _closed = gate.close();
            let before = asked.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(asked.load(Ordering::Relaxed), before);
        }
        let before = asked.load(Ordering::Relaxed);
        soon(|| asked.load(Ordering::Relaxed) > before);
        drop(direct);
    }
}
