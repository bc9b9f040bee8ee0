//! CPU time of single threads (`/proc/PID/task/TID/stat`, man proc_pid_stat), with the name that the kernel keeps of
//! each, at most 15 bytes. Some 15 µs a thread, nothing in the process; open to every user.

use super::Unavailable;
use super::procfs::Process;
use crate::kernel::process::ticks_per_s;
use std::time::Duration;

/// A thread and the CPU time that it has used since it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTime {
    /// Its id, as seen from here.
    pub tid: u32,
    /// Its id in the pid namespace of its process.
    pub ns_tid: u32,
    /// As the kernel keeps it.
    pub name: String,
    /// In user mode and in the kernel, in steps of the kernel's clock, mostly 10 ms.
    pub cpu: Duration,
}

/// The times of all threads that live; those that end meanwhile are left out.
///
/// # Errors
/// Fails if the process has gone.
pub fn all(process: &Process) -> Result<Vec<ThreadTime>, Unavailable> {
    let per_s = ticks_per_s();
    // Ids differ in a pid namespace of its own only, and then those of all threads do.
    let ns_id = |tid: u32| process.thread_status(tid).map(|status| status.ns_pid);
    let is_apart = ns_id(process.pid()).is_some_and(|id| id != process.pid());
    let of = |tid: u32| {
        let stat = process.thread_stat(tid, per_s)?;
        let ns_tid = if is_apart { ns_id(tid)? } else { tid };
        Some(ThreadTime { tid, ns_tid, cpu: stat.cpu(), name: stat.comm })
    };
    Ok(process.threads()?.into_iter().filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_has_used_time() {
        let (stop_to, stop_from) = std::sync::mpsc::channel::<()>();
        let works = std::thread::Builder::new().name("works-1".to_owned()).spawn(move || {
            let mut sum = 0_u64;
            while stop_from.try_recv().is_err() {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        });
        let process = Process::open(std::process::id()).unwrap();
        let threads = || all(&process).unwrap().into_iter();
        // A young thread has no name yet. The test goes on when this one has used a step of the clock, however busy the
        // machine is.
        while !threads().any(|thread| thread.name == "works-1" && !thread.cpu.is_zero()) {
            std::thread::yield_now();
        }
        assert!(threads().all(|thread| thread.ns_tid == thread.tid));
        stop_to.send(()).unwrap();
        works.unwrap().join().unwrap();
    }
}
