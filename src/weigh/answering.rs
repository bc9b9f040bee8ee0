//! The memory that answering has made resident in a JVM, apart from that of the JVM's own work meanwhile. (A compiler
//! at work takes a MiB in the time of a question.) The two are told apart by the threads whose page faults made it
//! resident.
//!
//! Three threads of HotSpot answer (JDK 11–25). `Signal Dispatcher` takes the SIGQUIT and starts `Attach Listener`,
//! which does what a question asks; `VM Thread` does what needs a safepoint. A fault of theirs makes one page resident,
//! or none.
//!
//! For file pages only, the kernel maps neighbours as well. Those of the libraries that answering runs are counted too,
//! whichever thread touched them. So the sum is an upper bound of what answering added, unless a huge page was among
//! it. Library code that a full collection or a trim runs is work that was asked for, and not in the sum.

use crate::clock::Clock;
use crate::kernel::process::page_size;
use crate::observe::maps;
use crate::observe::pagemap::{self, PageMap};
use crate::observe::procfs::Process;
use crate::observe::thread_stats::{self, ThreadStat};
use loadline_jvm::purpose::{VM_THREAD, is_named};
use std::cell::Cell;

/// Threads that do nothing else but answer. [`VM_THREAD`] collects too, with some collectors: only what it does during
/// a question is counted.
const ANSWERING: [&str; 2] = ["Signal Dispatcher", "Attach Listener"];
/// The libraries that answer: HotSpot and the C library (`libc.so.6`, `libc-2.31.so`, `ld-musl-x86_64.so.1`).
const LIBRARIES: [&str; 4] = ["libjvm.so", "libc.so", "libc-2.", "ld-musl-"];

/// Counts from before the first question on.
#[derive(Debug)]
pub(crate) struct Answering {
    /// The threads that answer, with their faults before; of one that did not live yet, none.
    threads: Vec<ThreadStat>,
    vm_thread: Option<u32>,
    /// Faults of that one during questions.
    vm_thread_faults: Cell<u64>,
    libraries: Libraries,
}

/// Resident pages of [`LIBRARIES`], in bytes.
#[derive(Debug, Clone, Copy)]
enum Libraries {
    /// Before the first question; `None` where its pages may not be read.
    Before(Option<u64>),
    /// By what it grew up to the first weighing, or to the first command that has the JVM work: later questions run
    /// what is mapped already.
    Grown(u64),
}

impl Answering {
    /// Begins to count; `None` where threads cannot be read.
    pub(crate) fn begin(process: &Process, clock: &Clock) -> Option<Self> {
        let mut threads = thread_stats::all(process).ok()?;
        let vm_thread = threads.iter().find(|thread| thread.name == VM_THREAD).map(|thread| thread.tid);
        threads.retain(answers);
        let libraries = Libraries::Before(resident(process, clock));
        Some(Self { threads, vm_thread, vm_thread_faults: Cell::new(0), libraries })
    }

    /// Adds the threads that were started to answer, also by a JVM that was too slow to answer in time.
    fn add_started(&mut self, process: &Process) {
        for thread in thread_stats::all(process).unwrap_or_default() {
            if answers(&thread) && self.threads.iter().all(|known| known.tid != thread.tid) {
                self.threads.push(ThreadStat { faults: 0, ..thread });
            }
        }
    }

    /// Asks what the VM thread answers.
    pub(crate) fn in_safepoint<T>(&self, process: &Process, ask: impl FnOnce() -> T) -> T {
        let faults = || thread_stats::faults(process, self.vm_thread?);
        let before = faults();
        let answer = ask();
        let more = faults().zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
        self.vm_thread_faults.set(self.vm_thread_faults.get() + more);
        answer
    }

    /// Counts the libraries up to now and no further.
    pub(crate) fn count_libraries(&mut self, process: &Process, clock: &Clock) -> u64 {
        let grown = match self.libraries {
            Libraries::Grown(bytes) => bytes,
            Libraries::Before(before) => {
                resident(process, clock).zip(before).map_or(0, |(after, before)| after.saturating_sub(before))
            }
        };
        self.libraries = Libraries::Grown(grown);
        grown
    }

    /// The most that was added so far, in bytes.
    pub(crate) fn bytes(&mut self, process: &Process, clock: &Clock) -> u64 {
        // Listing threads costs 15 µs for each: only until both are known.
        if self.threads.len() < ANSWERING.len() {
            self.add_started(process);
        }
        let grown = self.count_libraries(process, clock);
        let more = |thread: &ThreadStat| {
            thread_stats::faults(process, thread.tid).map_or(0, |now| now.saturating_sub(thread.faults))
        };
        let faults = self.threads.iter().map(more).sum::<u64>() + self.vm_thread_faults.get();
        faults.saturating_mul(page_size().0).saturating_add(grown)
    }
}

fn answers(thread: &ThreadStat) -> bool {
    ANSWERING.iter().any(|name| is_named(&thread.name, name))
}

fn resident(process: &Process, clock: &Clock) -> Option<u64> {
    let maps = maps::read(process, clock).ok()?.value;
    let mut pages = PageMap::open(process).ok()?;
    let mut bytes = 0;
    let runs_answers = |name: &str| LIBRARIES.iter().any(|library| name.starts_with(library));
    for mapping in maps.iter().filter(|mapping| runs_answers(mapping.file_name())) {
        let runs = pages.list(mapping.start, mapping.end).ok()?;
        bytes += pagemap::sum(runs.iter(), mapping.start, mapping.end).0;
    }
    Some(bytes)
}
