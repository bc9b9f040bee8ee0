//! Pauses every thread of a process for a few milliseconds, about 0.1 ms per thread (man 2 ptrace: `PTRACE_SEIZE`,
//! `PTRACE_INTERRUPT`).
//!
//! SIGSTOP is not an option. The kernel reports it to the parent (a shell takes its terminal back), and if Loadline
//! were killed, the process would stay stopped. When a tracer dies, its threads are released.

use super::Unavailable;
use super::procfs::Process;
use crate::kernel::process::Stat;
use loadline_base::clock::Clock;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::time::Duration;

const SOURCE: &str = "ptrace";
/// A running thread stops within microseconds; one in an uninterruptible wait may never stop.
const STOPS_WITHIN: Duration = Duration::from_millis(50);
/// Threads may start while others are seized; each round finds the new ones.
const ROUNDS_MAX: usize = 10;
/// Attempts are repeated for this long. Another Loadline may pause the process for milliseconds at a time, and on a
/// busy machine, a thread may wait for a CPU longer than a process may be held.
const TRIED_FOR: Duration = Duration::from_secs(3);
/// All threads run for this long between two attempts, plus twice the duration of the attempt.
const BETWEEN: Duration = Duration::from_millis(10);
/// How many times Loadline tries to seize a thread while the kernel refuses without showing a tracer.
const SEIZED_TIMES: usize = 5;

/// A process whose threads are paused until this value is dropped.
///
/// If the process ends in the meantime, it is reaped only after the holding thread ends, and its parent waits until
/// then. So hold it on a separate thread.
#[derive(Debug)]
pub struct Held {
    threads: Vec<Thread>,
    since_ns: u64,
    clock: Clock,
    /// Only the thread that seized the others can release them.
    not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Thread {
    id: Pid,
    stopped: bool,
    /// A signal pending when the thread stopped, to be delivered at release.
    signal: Option<Signal>,
}

impl Thread {
    /// Records whether the thread has stopped; returns false once it has ended.
    fn is_there(&mut self) -> bool {
        if self.stopped {
            return true;
        }
        match waitpid(self.id, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {}
            Ok(WaitStatus::Stopped(_, signal)) => (self.stopped, self.signal) = (true, Some(signal)),
            Ok(WaitStatus::PtraceEvent(..)) => self.stopped = true,
            _ => return false,
        }
        true
    }
}

impl Held {
    /// Pauses all threads. Fails if tracing is not permitted, a debugger stays attached, or a thread does not stop; in
    /// that case, all threads continue.
    pub fn all_threads(process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        process.must_live("ptrace")?;
        let began = clock.now();
        loop {
            let tried = clock.now();
            match Self::all_threads_within(STOPS_WITHIN, process, clock) {
                Err(why) if why.is_early && clock.now() < began + TRIED_FOR => {
                    clock.sleep(BETWEEN + 2 * (clock.now() - tried));
                }
                done => return done,
            }
        }
    }

    fn all_threads_within(limit: Duration, process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        let mut held = Self { threads: Vec::new(), since_ns: clock.now_ns(), clock: *clock, not_send: PhantomData };
        for _ in 0..ROUNDS_MAX {
            match held.seize_new(process)? {
                false if held.threads.is_empty() => return Err(Unavailable::new(SOURCE, "the process has exited")),
                false => return Ok(held),
                true => {}
            }
            if !held.wait_for_stops(limit) {
                return Err(held.late(process, limit));
            }
        }
        Err(Unavailable::new(SOURCE, "threads start faster than Loadline can stop them"))
    }

    /// How long threads have been held, counted from the first one.
    pub fn lasted(&self) -> Duration {
        Duration::from_nanos(self.clock.now_ns().saturating_sub(self.since_ns))
    }

    /// Seizes and interrupts threads that are not yet held; returns whether there were any.
    fn seize_new(&mut self, process: &Process) -> Result<bool, Unavailable> {
        let known = self.threads.len();
        // All held threads wait during this loop: with 10,000 of them, a linear search for each would take 64 ms.
        let held: HashSet<Pid> = self.threads.iter().map(|thread| thread.id).collect();
        for id in process.threads()? {
            let id = Pid::from_raw(id.cast_signed());
            if held.contains(&id) {
                continue;
            }
            match seize(process, id) {
                Ok(()) => self.threads.push(Thread { id, stopped: false, signal: None }),
                // The thread has ended, whether or not `task` still lists it.
                Err((Errno::ESRCH, _)) => {}
                Err((Errno::EPERM, _)) if has_ended(process, id) => {}
                Err((why, tracer)) => return Err(refused(why, tracer)),
            }
        }
        for thread in &self.threads[known..] {
            // If the thread ends in the meantime, waiting for it reports that.
            let _ = ptrace::interrupt(thread.id);
        }
        Ok(self.threads.len() > known)
    }

    /// Whether all threads stop within `limit`.
    fn wait_for_stops(&mut self, limit: Duration) -> bool {
        loop {
            self.threads.retain_mut(Thread::is_there);
            if self.threads.iter().all(|thread| thread.stopped) {
                return true;
            }
            if self.lasted() > limit {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Why an attempt ended: a runnable thread has merely not been given a CPU yet; any other is waiting for a device.
    fn late(&self, process: &Process, limit: Duration) -> Unavailable {
        let mut moving = self.threads.iter().filter(|thread| !thread.stopped);
        let is_early = moving.all(|thread| stat(process, thread.id).is_none_or(|stat| stat.state != 'D'));
        let why = format!("a thread did not stop within {} ms", limit.as_millis());
        Unavailable { is_early, ..Unavailable::new(SOURCE, why) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Only a stopped thread can be released, and an attempt may end before all are stopped.
        for thread in self.threads.iter().filter(|thread| !thread.stopped) {
            let _ = ptrace::interrupt(thread.id);
        }
        let limit = self.lasted() + STOPS_WITHIN;
        let _ = self.wait_for_stops(limit);
        for thread in &self.threads {
            // A thread that is still running is released when this thread ends.
            let _ = ptrace::detach(thread.id, thread.signal);
        }
    }
}

/// The kernel refuses to seize a dead thread with the same error as for missing permission.
fn has_ended(process: &Process, id: Pid) -> bool {
    stat(process, id).is_none_or(|stat| stat.has_ended())
}

fn stat(process: &Process, id: Pid) -> Option<Stat> {
    process.thread_stat(id.as_raw().cast_unsigned())
}

/// Seizes a thread, or returns the error and the tracer, which may have released the thread in the meantime.
fn seize(process: &Process, id: Pid) -> Result<(), (Errno, Option<u32>)> {
    let mut refusal = (Errno::EPERM, None);
    for _ in 0..SEIZED_TIMES {
        let Err(why) = ptrace::seize(id, Options::empty()) else { return Ok(()) };
        refusal = (why, process.thread_status(id.as_raw().cast_unsigned()).and_then(|status| status.tracer));
        if refusal.0 != Errno::EPERM || refusal.1.is_some() {
            break;
        }
    }
    Err(refusal)
}

fn refused(why: Errno, tracer: Option<u32>) -> Unavailable {
    let text = match (why, tracer) {
        (Errno::EPERM, Some(id)) => format!("thread {id} is tracing its threads: a debugger or Loadline"),
        (Errno::EPERM, None) => "no permission to stop its threads".to_owned(),
        (other, _) => other.desc().to_owned(),
    };
    Unavailable { is_early: tracer.is_some(), ..Unavailable::new(SOURCE, text) }
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
