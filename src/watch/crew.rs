//! Workers for reads that may never return: a hung file system below a process's root blocks its reader forever. Such a
//! read occupies one worker; the caller continues without it, and other workers do the rest.

use crate::clock::Clock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Active workers if none is stuck; the others replace stuck ones.
const ACTIVE: usize = 4;
/// With this many stuck workers, no new work begins …
pub(super) const STUCK_MAX: usize = 8;
/// … because this is the maximum number of workers.
const WORKERS_MAX: usize = ACTIVE + STUCK_MAX;
const STACK_BYTES: usize = 512 << 10;

type BoxedJob<T> = Box<dyn FnOnce() -> T + Send>;

/// Workers; `K` identifies a job, `T` is its result.
pub(super) struct Crew<K, T> {
    shared: Arc<SharedCrew<K, T>>,
}

/// The state of the jobs after a wait.
#[derive(Debug)]
pub(super) struct Gathered<K, T> {
    /// Finished jobs; `None` for a job that panicked.
    pub done: Vec<(K, Option<T>)>,
    /// Jobs that exceeded their time; a later wait may find them finished.
    pub late: Vec<K>,
    /// Jobs that never began.
    pub unbegun: Vec<K>,
}

struct SharedCrew<K, T> {
    state: Mutex<CrewState<K, T>>,
    work: Condvar,
    done: Condvar,
    clock: Clock,
}

struct CrewState<K, T> {
    queue: VecDeque<(K, BoxedJob<T>)>,
    running: Vec<RunningJob<K>>,
    done: Vec<(K, Option<T>)>,
    workers: usize,
    over: bool,
}

struct RunningJob<K> {
    key: K,
    since: Duration,
    late: bool,
}

impl<K: Copy + PartialEq + Send + 'static, T: Send + 'static> Crew<K, T> {
    pub(super) fn new(clock: Clock) -> Self {
        let state =
            CrewState { queue: VecDeque::new(), running: Vec::new(), done: Vec::new(), workers: 0, over: false };
        let shared = SharedCrew { state: Mutex::new(state), work: Condvar::new(), done: Condvar::new(), clock };
        Self { shared: Arc::new(shared) }
    }

    /// Queues a job.
    pub(super) fn give(&self, key: K, job: impl FnOnce() -> T + Send + 'static) {
        self.shared.lock().queue.push_back((key, Box::new(job)));
    }

    pub(super) fn stuck(&self) -> usize {
        self.shared.lock().late()
    }

    /// Whether the maximum number of workers is stuck.
    pub(super) fn is_blind(&self) -> bool {
        self.stuck() >= WORKERS_MAX
    }

    /// Waits until all jobs are finished or late, each after `patience`, for at most `within`. Jobs that have not begun
    /// by then are withdrawn.
    pub(super) fn gather(&self, patience: Duration, within: Duration) -> Gathered<K, T> {
        let clock = self.shared.clock;
        let until = clock.now() + within;
        let mut late = Vec::new();
        let mut state = self.shared.lock();
        loop {
            let now = clock.now();
            for running in state.running.iter_mut().filter(|one| !one.late && now >= one.since + patience) {
                running.late = true;
                late.push(running.key);
            }
            self.staff(&mut state);
            let next = state.running.iter().filter(|one| !one.late).map(|one| one.since + patience).min();
            let is_idle = state.queue.is_empty() && next.is_none();
            if is_idle || state.workers == state.late() || now >= until {
                break;
            }
            // Jobs that begin during the wait become late no earlier than this.
            let wait = next.unwrap_or(now + patience).min(until).saturating_sub(now);
            state = self.shared.done.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        let unbegun = state.queue.drain(..).map(|(key, _)| key).collect();
        Gathered { done: std::mem::take(&mut state.done), late, unbegun }
    }

    /// Ensures that there are workers for queued jobs.
    fn staff(&self, state: &mut CrewState<K, T>) {
        while state.workers < state.wanted() {
            let shared = Arc::clone(&self.shared);
            let worker = std::thread::Builder::new().name("looking".to_owned()).stack_size(STACK_BYTES);
            if worker.spawn(move || shared.work()).is_err() {
                // If no thread can be started, the existing ones continue.
                break;
            }
            state.workers += 1;
        }
        self.shared.work.notify_all();
    }
}

impl<K, T> Drop for Crew<K, T> {
    fn drop(&mut self) {
        // Dropping does not wait for a stuck worker.
        self.shared.lock().over = true;
        self.shared.work.notify_all();
    }
}

impl<K, T> SharedCrew<K, T> {
    fn lock(&self) -> MutexGuard<'_, CrewState<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + PartialEq, T> SharedCrew<K, T> {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.over || state.workers > ACTIVE + state.late() {
                state.workers -= 1;
                return;
            }
            let Some((key, job)) = state.queue.pop_front() else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.running.push(RunningJob { key, since: self.clock.now(), late: false });
            drop(state);
            // A panic reports itself.
            let done = catch_unwind(AssertUnwindSafe(job)).ok();
            state = self.lock();
            state.running.retain(|one| one.key != key);
            state.done.push((key, done));
            self.done.notify_one();
        }
    }
}

impl<K, T> CrewState<K, T> {
    fn late(&self) -> usize {
        self.running.iter().filter(|one| one.late).count()
    }

    fn wanted(&self) -> usize {
        let at_work = self.running.len() - self.late();
        (self.late() + ACTIVE.min(at_work + self.queue.len())).min(WORKERS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    const LONG: Duration = Duration::from_secs(60);
    /// More than a short job takes on a busy machine.
    const SHORT: Duration = Duration::from_millis(300);

    /// A job that runs until the sender is used or dropped.
    fn hang(crew: &Crew<u32, u32>, key: u32) -> Sender<()> {
        let (go, wait) = channel::<()>();
        crew.give(key, move || {
            let _ = wait.recv();
            key
        });
        go
    }

    #[test]
    fn work_is_done_and_panics_are_reported() {
        let crew = Crew::new(Clock::start());
        (0..100).for_each(|key| crew.give(key, move || if key == 50 { panic!("simulated") } else { 2 * key }));
        let Gathered { mut done, late, unbegun } = crew.gather(LONG, LONG);
        done.sort();
        let expect: Vec<(u32, Option<u32>)> = (0..100).map(|key| (key, (key != 50).then_some(2 * key))).collect();
        assert_eq!((done, late, unbegun), (expect, vec![], vec![]));
    }

    #[test]
    fn stuck_work_does_not_delay_others_and_is_collected_later() {
        let crew = Crew::new(Clock::start());
        let hanging: Vec<_> = (0..STUCK_MAX as u32).map(|key| hang(&crew, key)).collect();
        (100..200).for_each(|key| crew.give(key, move || key));
        let Gathered { done, mut late, unbegun } = crew.gather(SHORT, LONG);
        late.sort_unstable();
        assert_eq!((done.len(), late, unbegun), (100, (0..STUCK_MAX as u32).collect(), vec![]));
        assert_eq!(crew.stuck(), STUCK_MAX);
        // Later waits ignore stuck jobs, and finish immediately.
        crew.give(300, || 300);
        assert_eq!(crew.gather(LONG, LONG).done, [(300, Some(300))]);
        drop(hanging);
        let mut back = Vec::new();
        while back.len() < STUCK_MAX {
            crew.give(400, || 400);
            back.extend(crew.gather(LONG, LONG).done.into_iter().filter(|(key, _)| *key != 400));
        }
        assert_eq!(crew.stuck(), 0);
        assert!(crew.shared.lock().workers <= WORKERS_MAX);
    }

    #[test]
    fn workers_are_limited_and_unstarted_work_is_returned() {
        let crew = Crew::new(Clock::start());
        let hanging: Vec<_> = (0..2 * WORKERS_MAX as u32).map(|key| hang(&crew, key)).collect();
        let Gathered { done, late, unbegun } = crew.gather(SHORT, LONG);
        assert_eq!((done.len(), late.len(), unbegun.len()), (0, WORKERS_MAX, WORKERS_MAX));
        crew.give(999, || 999);
        assert_eq!(crew.gather(LONG, LONG).unbegun, [999], "without free workers, the job is returned immediately");
        drop(hanging);
    }

    #[test]
    fn waits_end_at_their_time_limit() {
        let crew = Crew::new(Clock::start());
        let hanging: Vec<_> = (0..20).map(|key| hang(&crew, key)).collect();
        crew.staff(&mut crew.shared.lock());
        // All jobs that can begin have begun, so a busy machine does not affect the result.
        let have_begun = || crew.shared.lock().running.len() >= ACTIVE;
        assert!(Clock::start().wait_until(LONG, Duration::from_millis(1), have_begun), "too few jobs have started");
        let Gathered { late, unbegun, .. } = crew.gather(LONG, SHORT);
        assert_eq!((late.len(), unbegun), (0, (ACTIVE as u32..20).collect()));
        drop(hanging);
    }
}
