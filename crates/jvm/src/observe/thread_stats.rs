//! Individual threads (`/proc/PID/task/TID/stat`, man proc_pid_stat): CPU time, page faults (which show that a thread
//! touched absent pages), and the kernel's name, at most 15 bytes. Costs about 15 µs per thread, and nothing in the
//! process; any user can read these files.

use super::Unavailable;
use super::procfs::Process;
use std::time::Duration;

/// A thread, and its usage since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadStat {
    /// Its id, as Loadline sees it.
    pub tid: u32,
    /// Its id in the pid namespace of its process.
    pub ns_tid: u32,
    /// Its name, as the kernel keeps it.
    pub name: String,
    /// User and kernel CPU time, in kernel clock ticks, usually of 10 ms.
    pub cpu: Duration,
    /// Page faults with and without disk I/O.
    pub faults: u64,
}

/// All live threads; skips those that end in the meantime.
pub fn all(process: &Process) -> Result<Vec<ThreadStat>, Unavailable> {
    // Ids differ only in a nested pid namespace, and then for all threads.
    let ns_id = |tid: u32| process.thread_status(tid).map(|status| status.ns_pid);
    let is_apart = ns_id(process.pid()).is_some_and(|id| id != process.pid());
    let of = |tid: u32| {
        let stat = process.thread_stat(tid)?;
        let ns_tid = if is_apart { ns_id(tid)? } else { tid };
        Some(ThreadStat { tid, ns_tid, cpu: stat.cpu(), faults: stat.faults(), name: stat.comm })
    };
    Ok(process.threads()?.into_iter().filter_map(of).collect())
}

/// The faults of one thread; `None` if the process does not have it, or no longer does.
pub fn faults(process: &Process, tid: u32) -> Option<u64> {
    process.thread_stat(tid).map(|stat| stat.faults())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_has_used_time() {
        let (stop_to, stop_from) = std::sync::mpsc::channel::<()>();
        let works = std::thread::Builder::new().name("works-1".to_owned()).spawn(move || {
            let mut sum = 0_u64;
            while stop_from.try_recv().is_err() {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        });
        let process = Process::open(std::process::id()).unwrap();
        let threads = || all(&process).unwrap().into_iter();
        // A new thread has no name yet. Waits until it has used a clock tick, however busy the machine is.
        while !threads().any(|thread| thread.name == "works-1" && !thread.cpu.is_zero()) {
            std::thread::yield_now();
        }
        assert!(threads().all(|thread| thread.ns_tid == thread.tid));
        stop_to.send(()).unwrap();
        works.unwrap().join().unwrap();
    }

    #[test]
    fn only_a_thread_that_touches_pages_has_faults() {
        let (tid_to, tid_from) = std::sync::mpsc::channel();
        let (go_to, go_from) = std::sync::mpsc::channel::<()>();
        let touches = std::thread::Builder::new().name("touches".to_owned()).spawn(move || {
            tid_to.send(rustix::thread::gettid().as_raw_pid().cast_unsigned()).unwrap();
            go_from.recv().unwrap();
            // Large enough that malloc maps it freshly, instead of taking it from a heap whose pages are already
            // touched.
            let pages = std::hint::black_box(vec![1_u8; 40 << 20]);
            tid_to.send(0).unwrap();
            go_from.recv().unwrap();
            drop(pages);
        });
        let process = Process::open(std::process::id()).unwrap();
        let tid = tid_from.recv().unwrap();
        let before = faults(&process, tid).unwrap();
        go_to.send(()).unwrap();
        tid_from.recv().unwrap();
        let after = all(&process).unwrap().into_iter().find(|thread| thread.tid == tid).unwrap();
        assert_eq!(after.name, "touches");
        // There are fewer faults than pages only with huge pages.
        assert!(after.faults > before, "{before}, {after:?}");
        go_to.send(()).unwrap();
        touches.unwrap().join().unwrap();
    }

    #[test]
    fn another_processs_thread_is_not_found() {
        let parent = rustix::process::getppid().unwrap().as_raw_pid().cast_unsigned();
        assert_eq!(faults(&Process::open(std::process::id()).unwrap(), parent), None);
    }
}
