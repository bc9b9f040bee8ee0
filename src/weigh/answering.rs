//! The memory that becomes resident in a JVM because it answers diagnostic commands, separated from its other work. (A
//! compiler may use a MiB during a command.) The page faults of each thread distinguish the two.
//!
//! Three HotSpot threads answer (JDK 11–25). `Signal Dispatcher` receives SIGQUIT and starts `Attach Listener`, which
//! executes commands; `VM Thread` executes those that need a safepoint. Each of their faults makes at most one page
//! resident.
//!
//! For file pages, the kernel also maps neighbors. Pages of the libraries involved are therefore counted whichever
//! thread touched them. The sum is an upper bound unless huge pages are involved. Library code run by a requested full
//! collection or trim is not included.

use crate::clock::Clock;
use crate::kernel::process::page_size;
use crate::observe::maps;
use crate::observe::pagemap::{self, PageMap};
use crate::observe::procfs::Process;
use crate::observe::thread_stats::{self, ThreadStat};
use loadline_jvm::purpose::{VM_THREAD, is_named};
use std::cell::Cell;

/// Threads that only answer. [`VM_THREAD`] also collects with some collectors, so only its work during a command
/// counts.
const ANSWERING: [&str; 2] = ["Signal Dispatcher", "Attach Listener"];
/// The libraries involved: HotSpot and the C library (`libc.so.6`, `libc-2.31.so`, `ld-musl-x86_64.so.1`).
const LIBRARIES: [&str; 4] = ["libjvm.so", "libc.so", "libc-2.", "ld-musl-"];

/// Counts from before the first command.
#[derive(Debug)]
pub(crate) struct Answering {
    /// The answering threads with their earlier faults, or none if they did not exist.
    threads: Vec<ThreadStat>,
    vm_thread: Option<u32>,
    /// Faults of that thread during commands.
    vm_thread_faults: Cell<u64>,
    libraries: Libraries,
}

/// Resident pages of [`LIBRARIES`], in bytes.
#[derive(Debug, Clone, Copy)]
enum Libraries {
    /// Before the first command; `None` if unreadable.
    Before(Option<u64>),
    /// Growth up to the first mark, or the first command that makes the JVM work: later commands run code that is
    /// already mapped.
    Grown(u64),
}

impl Answering {
    /// Starts counting; `None` if threads are unreadable.
    pub(crate) fn begin(process: &Process, clock: &Clock) -> Option<Self> {
        let mut threads = thread_stats::all(process).ok()?;
        let vm_thread = threads.iter().find(|thread| thread.name == VM_THREAD).map(|thread| thread.tid);
        threads.retain(answers);
        let libraries = Libraries::Before(resident(process, clock));
        Some(Self { threads, vm_thread, vm_thread_faults: Cell::new(0), libraries })
    }

    /// Adds threads that were started to answer, even by a JVM that was too slow to respond in time.
    fn add_started(&mut self, process: &Process) {
        for thread in thread_stats::all(process).unwrap_or_default() {
            if answers(&thread) && self.threads.iter().all(|known| known.tid != thread.tid) {
                self.threads.push(ThreadStat { faults: 0, ..thread });
            }
        }
    }

    /// Runs a command that the VM thread executes.
    pub(crate) fn in_safepoint<T>(&self, process: &Process, ask: impl FnOnce() -> T) -> T {
        let faults = || thread_stats::faults(process, self.vm_thread?);
        let before = faults();
        let answer = ask();
        let more = faults().zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
        self.vm_thread_faults.set(self.vm_thread_faults.get() + more);
        answer
    }

    /// Stops counting library pages.
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

    /// The upper bound so far, in bytes.
    pub(crate) fn bytes(&mut self, process: &Process, clock: &Clock) -> u64 {
        // Listing threads costs 15 µs each, so stop when both are known.
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
