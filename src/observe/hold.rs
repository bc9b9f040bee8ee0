//! Holds every thread of a process still for some milliseconds (man 2 ptrace: `PTRACE_SEIZE`, `PTRACE_INTERRUPT`).
//!
//! Not by SIGSTOP: that is told to the parent (a shell takes its terminal back), and a Loadline that is killed in
//! between would leave the process stopped for good. A tracer that dies lets its threads go.

use super::Unavailable;
use super::procfs::Process;
use crate::clock::Clock;
use crate::kernel::process::Stat;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::marker::PhantomData;
use std::time::Duration;

const SOURCE: &str = "ptrace";
/// A running thread stops within microseconds; one in an uninterruptible wait may not stop at all.
const STOPS_WITHIN: Duration = Duration::from_millis(50);
/// While threads are seized, others may be started; each round finds the new ones.
const ROUNDS_MAX: usize = 10;

/// A process whose threads stand still until this is dropped.
///
/// If the process ends meanwhile, what is left of it is let go only when the holding thread ends: its parent waits till
/// then. So hold in a thread of its own.
#[derive(Debug)]
pub struct Held {
    threads: Vec<Thread>,
    since_ns: u64,
    clock: Clock,
    /// Only the thread that seized may release.
    not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Thread {
    id: Pid,
    stopped: bool,
    /// A signal that was on its way when the thread stopped, to be delivered at release.
    signal: Option<Signal>,
}

impl Held {
    /// Stops all threads.
    ///
    /// # Errors
    /// Where tracing is not permitted, a debugger is attached, or a thread does not stop; all run on then.
    pub fn all_threads(process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        Self::all_threads_within(STOPS_WITHIN, process, clock)
    }

    fn all_threads_within(limit: Duration, process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        let mut held = Self { threads: Vec::new(), since_ns: clock.now_ns(), clock: *clock, not_send: PhantomData };
        for _ in 0..ROUNDS_MAX {
            match held.seize_new(process)? {
                false if held.threads.is_empty() => return Err(Unavailable::new(SOURCE, "the process has ended")),
                false => return Ok(held),
                true => {}
            }
            held.wait_for_stops(limit)?;
        }
        Err(Unavailable::new(SOURCE, "threads are started faster than they can be held"))
    }

    /// For how long the threads have stood still, from the first one on.
    pub fn lasted(&self) -> Duration {
        Duration::from_nanos(self.clock.now_ns().saturating_sub(self.since_ns))
    }

    /// Seizes and interrupts the threads that are not yet held; whether there were any.
    fn seize_new(&mut self, process: &Process) -> Result<bool, Unavailable> {
        let known = self.threads.len();
        for id in process.threads()? {
            let id = Pid::from_raw(id.cast_signed());
            if self.threads[..known].iter().any(|thread| thread.id == id) {
                continue;
            }
            match ptrace::seize(id, Options::empty()) {
                Ok(()) => self.threads.push(Thread { id, stopped: false, signal: None }),
                // The thread has ended: `task` is no longer listing it, or still is.
                Err(Errno::ESRCH) => {}
                Err(Errno::EPERM) if has_ended(process, id) => {}
                Err(why) => return Err(refused(why)),
            }
        }
        for thread in &self.threads[known..] {
            // A thread that ended meanwhile says so when it is waited for.
            let _ = ptrace::interrupt(thread.id);
        }
        Ok(self.threads.len() > known)
    }

    fn wait_for_stops(&mut self, limit: Duration) -> Result<(), Unavailable> {
        loop {
            let mut gone = false;
            for thread in self.threads.iter_mut().filter(|thread| !thread.stopped) {
                match waitpid(thread.id, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
                    Ok(WaitStatus::StillAlive) => {}
                    Ok(WaitStatus::Stopped(_, signal)) => {
                        thread.stopped = true;
                        thread.signal = Some(signal);
                    }
                    Ok(WaitStatus::PtraceEvent(..)) => thread.stopped = true,
                    _ => gone = true,
                }
                if gone {
                    thread.id = Pid::from_raw(0);
                    break;
                }
            }
            if gone {
                self.threads.retain(|thread| thread.id.as_raw() != 0);
            } else if self.threads.iter().all(|thread| thread.stopped) {
                return Ok(());
            }
            if self.lasted() > limit {
                let why = format!("a thread did not stop within {} ms", limit.as_millis());
                return Err(Unavailable::new(SOURCE, why));
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            if !thread.stopped {
                // Only a stopped thread can be released; one that never stops is let go when this thread ends.
                let status = waitpid(thread.id, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG));
                if let Ok(WaitStatus::Stopped(_, signal)) = status {
                    thread.signal = Some(signal);
                }
            }
            let _ = ptrace::detach(thread.id, thread.signal);
        }
    }
}

/// The kernel refuses to have a dead thread seized as if that were not permitted.
fn has_ended(process: &Process, id: Pid) -> bool {
    let text = process.read_below(&format!("task/{id}/stat"), 2048).unwrap_or_default();
    let stat = Stat::parse(&String::from_utf8_lossy(&text), 1);
    stat.is_none_or(|stat| stat.has_ended())
}

fn refused(why: Errno) -> Unavailable {
    let why = match why {
        Errno::EPERM => "no permission to hold its threads, or a debugger already does".to_owned(),
        other => other.desc().to_owned(),
    };
    Unavailable::new(SOURCE, why)
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
