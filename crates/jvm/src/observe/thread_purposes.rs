//! CPU time of HotSpot's own threads by purpose (`/proc/PID/task/TID/{comm,schedstat}`, man proc_pid_comm). Costs about
//! 4 µs per thread of the process and 10 µs per JVM thread, and nothing in the process; any user can read these files.
//!
//! `/proc` forgets ended threads, and HotSpot ends idle compiler threads (`-XX:+UseDynamicNumberOfCompilerThreads`, the
//! default). Therefore, the last reading of each thread is kept.

use super::procfs::Process;
use crate::purpose::{Purpose, VM_THREAD, is_named};
use std::collections::BTreeMap;
use std::time::Duration;

/// An idle compiler thread waits 5 s before it ends (`CompileQueue::get`, JDK 11–27). Reading at least this often
/// misses none of its time.
pub const READ_EACH: Duration = Duration::from_secs(4);

/// CPU time of the JVM's own threads; the process's remaining CPU time is the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnTimes {
    /// CPU time of the JIT compilers.
    pub jit: Duration,
    /// CPU time of the collector. Without collector threads (Serial), `VM Thread` collects, and its time counts here.
    pub gc: Duration,
    /// CPU time of the JVM's other service threads.
    pub vm: Duration,
}

impl OwnTimes {
    /// The sum of these times and `more`.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self { jit: self.jit + more.jit, gc: self.gc + more.gc, vm: self.vm + more.vm }
    }

    /// The CPU time since an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let more = |now: Duration, then: Duration| now.saturating_sub(then);
        Self { jit: more(self.jit, before.jit), gc: more(self.gc, before.gc), vm: more(self.vm, before.vm) }
    }

    fn add(&mut self, purpose: Purpose, cpu: Duration) {
        match purpose {
            Purpose::Application => {}
            Purpose::Jit => self.jit += cpu,
            Purpose::Gc => self.gc += cpu,
            Purpose::Vm => self.vm += cpu,
        }
    }
}

/// The JVM's own threads, with the last reading of each.
#[derive(Debug, Default)]
pub struct OwnThreads {
    last: BTreeMap<u32, (Purpose, Duration)>,
    ended: OwnTimes,
}

impl OwnThreads {
    /// Reads all live threads; returns their time so far, plus that of known threads that have exited. `None` if the
    /// process is gone, its threads cannot be read, or none is HotSpot's `VM Thread` (a native image or another JVM).
    pub fn read(&mut self, process: &Process) -> Option<OwnTimes> {
        let named: Vec<(u32, String)> =
            process.threads().ok()?.into_iter().filter_map(|tid| Some((tid, process.thread_name(tid)?))).collect();
        self.take(&named, |tid| process.thread_cpu(tid))
    }

    fn take(&mut self, named: &[(u32, String)], cpu: impl Fn(u32) -> Option<Duration>) -> Option<OwnTimes> {
        let collects = named.iter().any(|(_, name)| Purpose::of(name) == Purpose::Gc);
        let purpose = |name: &str| match Purpose::of(name) {
            Purpose::Vm if !collects && is_named(name, VM_THREAD) => Purpose::Gc,
            other => other,
        };
        let own = named.iter().map(|(tid, name)| (*tid, purpose(name))).filter(|(_, of)| *of != Purpose::Application);
        let now: BTreeMap<u32, (Purpose, Duration)> =
            own.filter_map(|(tid, purpose)| Some((tid, (purpose, cpu(tid)?)))).collect();
        for (tid, (purpose, last)) in std::mem::take(&mut self.last) {
            // A lower time than before belongs to a new thread that reuses the id.
            if now.get(&tid).is_none_or(|(of, cpu)| *of != purpose || *cpu < last) {
                self.ended.add(purpose, last);
            }
        }
        self.last = now;
        let mut sum = self.ended;
        self.last.values().for_each(|(purpose, cpu)| sum.add(*purpose, *cpu));
        named.iter().any(|(_, name)| is_named(name, VM_THREAD)).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The jit, gc, and vm times of a reading, in ms.
    fn read(own: &mut OwnThreads, threads: &[(u32, &str, u64)]) -> Option<[u128; 3]> {
        let named: Vec<(u32, String)> = threads.iter().map(|(tid, name, _)| (*tid, (*name).to_owned())).collect();
        let cpu = |tid| threads.iter().find(|(id, ..)| *id == tid).map(|(_, _, cpu)| ms(*cpu));
        own.take(&named, cpu).map(|of| [of.jit, of.gc, of.vm].map(|time| time.as_millis()))
    }

    #[test]
    fn an_ended_compiler_threads_time_is_kept() {
        let mut own = OwnThreads::default();
        let vm = (2, "VM Thread", 5);
        let g1 = (3, "G1 Conc#0", 7);
        assert_eq!(read(&mut own, &[(1, "java", 900), vm, g1, (4, "C2 CompilerThre", 100)]), Some([100, 7, 5]));
        let second = (5, "C2 CompilerThre", 40);
        assert_eq!(read(&mut own, &[vm, g1, (4, "C2 CompilerThre", 130), second]), Some([170, 7, 5]));
        assert_eq!(read(&mut own, &[vm, g1, (4, "C2 CompilerThre", 130)]), Some([170, 7, 5]));
        // Its id now belongs to a thread of the program, then to a newer compiler thread.
        assert_eq!(read(&mut own, &[vm, g1, (4, "C2 CompilerThre", 131), (5, "exec-1", 800)]), Some([171, 7, 5]));
        assert_eq!(read(&mut own, &[vm, g1, (4, "C1 CompilerThre", 1)]), Some([172, 7, 5]));
    }

    #[test]
    fn serial_collects_in_the_vm_thread() {
        let serial = [(1, "main", 9), (2, "VM Thread", 60), (3, "VM Periodic Tas", 4)];
        assert_eq!(read(&mut OwnThreads::default(), &serial), Some([0, 60, 4]));
        let parallel = [serial.as_slice(), &[(4, "GC Thread#0", 30)]].concat();
        assert_eq!(read(&mut OwnThreads::default(), &parallel), Some([0, 30, 64]));
    }

    #[test]
    fn other_processes_have_no_cpu_time_by_purpose() {
        assert_eq!(read(&mut OwnThreads::default(), &[(1, "orders", 9), (2, "GC Thread#0", 1)]), None);
        assert_eq!(read(&mut OwnThreads::default(), &[]), None);
    }

    #[test]
    fn a_thread_is_read_by_name_and_time() {
        let (stop_to, stop_from) = std::sync::mpsc::channel::<()>();
        let works = std::thread::Builder::new().name(VM_THREAD.to_owned()).spawn(move || {
            let mut sum = 0_u64;
            while stop_from.try_recv().is_err() {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        });
        let (mut own, process) = (OwnThreads::default(), Process::open(std::process::id()).unwrap());
        // A new thread has no name yet, and the kernel updates its CPU time only on demand.
        let times = loop {
            match own.read(&process) {
                Some(times) if !times.gc.is_zero() => break times,
                _ => std::thread::yield_now(),
            }
        };
        assert_eq!((times.jit, times.vm), (Duration::ZERO, Duration::ZERO));
        stop_to.send(()).unwrap();
        works.unwrap().join().unwrap();
    }

    proptest! {
        #[test]
        fn cpu_time_by_purpose_never_decreases(
            readings in prop::collection::vec(prop::collection::btree_map(0_u32..6, 0_u64..50, 0..6), 1..12),
        ) {
            let (mut own, mut before) = (OwnThreads::default(), 0);
            for threads in readings {
                let mut threads: Vec<(u32, &str, u64)> =
                    threads.into_iter().map(|(tid, cpu)| (tid, "C1 Comp..hread7", cpu)).collect();
                threads.push((9, "VM Thread", 0));
                let [jit, ..] = read(&mut own, &threads).unwrap();
                prop_assert!(jit >= before, "JIT time decreased from {before} to {jit}");
                before = jit;
            }
        }
    }
}
