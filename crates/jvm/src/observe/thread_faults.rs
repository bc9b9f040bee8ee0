//! Page faults of single threads (`/proc/PID/task/TID/stat`, man proc_pid_stat): who touched a page that was not there.
//! Some 15 µs a thread, nothing in the process; open to every user.

use super::Unavailable;
use super::procfs::Process;

/// A thread and its faults so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFaults {
    /// Thread id, as seen from here.
    pub tid: u32,
    /// The name that the kernel keeps of the thread, at most 15 bytes.
    pub name: String,
    /// Faults with and without a disk, since the thread was started.
    pub faults: u64,
}

/// The faults of all threads.
///
/// # Errors
/// Fails if the process has gone.
pub fn all(process: &Process) -> Result<Vec<ThreadFaults>, Unavailable> {
    Ok(process.threads()?.into_iter().filter_map(|tid| of(process, tid)).collect())
}

/// The faults of one thread; `None` if the process has no such thread, or no longer.
pub fn of(process: &Process, tid: u32) -> Option<ThreadFaults> {
    let stat = process.thread_stat(tid, 1)?;
    Some(ThreadFaults { tid, name: stat.comm, faults: stat.minor_faults.saturating_add(stat.major_faults) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_touches_pages_has_faults_and_the_others_do_not() {
        let (tid_to, tid_from) = std::sync::mpsc::channel();
        let (go_to, go_from) = std::sync::mpsc::channel::<()>();
        let touches = std::thread::Builder::new().name("touches".to_owned()).spawn(move || {
            tid_to.send(rustix::thread::gettid().as_raw_pid().cast_unsigned()).unwrap();
            go_from.recv().unwrap();
            // So much that malloc takes it from the kernel again and never from a heap whose pages others have touched.
            let pages = std::hint::black_box(vec![1_u8; 40 << 20]);
            tid_to.send(0).unwrap();
            go_from.recv().unwrap();
            drop(pages);
        });
        let process = Process::open(std::process::id()).unwrap();
        let tid = tid_from.recv().unwrap();
        let before = of(&process, tid).unwrap();
        go_to.send(()).unwrap();
        tid_from.recv().unwrap();
        let after = all(&process).unwrap().into_iter().find(|thread| thread.tid == tid).unwrap();
        assert_eq!(after.name, "touches");
        // Fewer than its pages only where they are huge.
        assert!(after.faults > before.faults, "{before:?}, {after:?}");
        go_to.send(()).unwrap();
        touches.unwrap().join().unwrap();
    }

    #[test]
    fn a_thread_of_another_process_is_none_of_this_one() {
        let parent = rustix::process::getppid().unwrap().as_raw_pid().cast_unsigned();
        assert_eq!(of(&Process::open(std::process::id()).unwrap(), parent), None);
    }
}
