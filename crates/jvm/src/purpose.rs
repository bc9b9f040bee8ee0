//! The purpose of a HotSpot thread, from its kernel name of at most 15 bytes (`TASK_COMM_LEN`, man prctl). JDK 11 to 25
//! let the kernel truncate a longer name: `C1 CompilerThre`. JDK 26 and 27 drop its middle: `C1 Comp..hread0`
//! (`os::set_native_thread_name`: `%.7s..%.6s`). The names come from JDK 11, 17, 21, 25, and 27, with all of their
//! collectors.

use Purpose::{Gc, Jit, Vm};

/// The purpose of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// All threads without one of the names below: those of the program and its libraries.
    Application,
    /// Compiles methods.
    Jit,
    /// Collects garbage, concurrently or in a pause.
    Gc,
    /// Serves the JVM itself: safepoints, timers, references, signals.
    Vm,
}

/// The number of bytes that the kernel keeps.
const KEPT: usize = 15;
/// The thread that executes safepoint operations; every HotSpot has it.
pub const VM_THREAD: &str = "VM Thread";

/// Full names, or the common prefix of several threads. Names that the kernel may truncate are given in full.
const NAMES: [(Purpose, &[&str]); 3] = [
    (Jit, &["C1 CompilerThread", "C2 CompilerThread", "JVMCI"]),
    (
        Gc,
        &[
            "GC Thread#",
            "ParGC Thread#",
            "G1 ",
            "CMS ",
            "ZDirector",
            "ZDriver",
            "ZStat",
            "ZUncommitter",
            "ZUnmapper",
            "ZWorker",
            "XDirector",
            "XDriver",
            "XStat",
            "XUncommitter",
            "XUnmapper",
            "XWorker",
            "Shenandoah Control Thread",
            "Shenandoah GC Threads",
            "ShenandoahControlThread",
            "ShenControl",
            "ShenRegulator",
            "ShenUncommit",
            "ShenWorker",
        ],
    ),
    (
        Vm,
        &[
            VM_THREAD,
            "VM Periodic Task Thread",
            "AOTThread",
            "AsyncLog Thread",
            "Attach Listener",
            "Common-Cleaner",
            "Finalizer",
            "JFR ",
            "Monitor Deflation Thread",
            "Native Heap Trimmer",
            "Notification Thread",
            "Reference Handler",
            "RuntimeWorker#",
            "Service Thread",
            "Signal Dispatcher",
            "StrDedup",
            "StringDedupProcessor",
            "StringDedupThread",
            "Sweeper thread",
            "TrainingReplayThread",
        ],
    ),
];

impl Purpose {
    /// Takes a thread's name as the kernel keeps it, in full, or with `*` for the numbers of a pool. A program's thread
    /// with such a name is mistaken for the JVM's.
    pub fn of(name: &str) -> Self {
        // In the name of a pool of both compilers, an asterisk replaces their number.
        let name = &*name.replacen("C*", "C1", 1);
        let known = NAMES.iter().find(|(_, names)| names.iter().any(|known| is_named(name, known)));
        known.map_or(Self::Application, |(purpose, _)| *purpose)
    }
}

/// Whether the kernel's text fits a thread whose name is, or begins with, `known`.
pub fn is_named(kept: &str, known: &str) -> bool {
    let kept = kept.trim_end_matches('*');
    if let Some((head, tail)) = kept.split_once("..").filter(|(head, _)| head.len() == 7) {
        let stem = tail.trim_end_matches(|of: char| of.is_ascii_digit() || "#*".contains(of));
        return known.starts_with(head) && known.ends_with(stem) || known.len() < head.len() && kept.starts_with(known);
    }
    kept.starts_with(known) || kept.len() == KEPT && known.starts_with(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as found in `/proc/PID/task/*/comm`.
    const READ: [(Purpose, &str); 4] = [
        (Jit, "C1 CompilerThre|C2 CompilerThre|C1 Comp..hread0|C2 Comp..read11|JVMCI CompilerT|C2 CompilerThread0"),
        (
            Gc,
            "ParGC Thread#1|GC Thread#0|G1 Conc#0|G1 Main Marker|G1 Refine#0|G1 Service|G1 Young RemSet|G1 Refi..kers#0\
             |G1 Refi..ontrol|CMS Main Thread|ZDirector|ZDriverMajor|ZStat|ZWorkerYoung#0|ZUncommitter#0|XWorker#0\
             |XUnmapper|Shenandoah GC T|Shenandoah Cont|ShenandoahContr|Shenand..eads#0|Shenand..Thread|ShenWorker#0",
        ),
        (
            Vm,
            "VM Thread|VM Periodic Tas|VM Peri..Thread|Monitor Deflati|Monitor..Thread|Signal Dispatch|Signal ..atcher\
             |Reference Handl|Referen..andler|Common-Cleaner|Finalizer|Notification Th|Notific..Thread|Native Heap Tri\
             |Native ..rimmer|RuntimeWorker#0|Service Thread|StrDedup|StringDedupThre|StringD..Thread|Sweeper thread",
        ),
        (
            Purpose::Application,
            "java|main|http-nio-8080-e|http-ni..exec-1|qtp12-34|GC|C1|C1 Compress|VM|VM Threshold..x|Monitor|Shenzhen-1\
             |C1 Comp..ssor-1|Zebra|G1|process reaper|Cleaner-0||..|.......|éééé..é",
        ),
    ];

    #[test]
    fn hotspot_thread_names_have_the_right_purpose() {
        for (purpose, names) in READ {
            for name in names.split('|') {
                assert_eq!(Purpose::of(name), purpose, "{name}");
            }
        }
    }

    #[test]
    fn a_pool_of_compilers_is_recognized() {
        for name in ["C2 CompilerThre*", "C1 Comp..hread*", "C2 CompilerThread*"] {
            assert_eq!(Purpose::of(name), Jit, "{name}");
        }
    }
}
