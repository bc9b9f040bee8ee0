//! What the threads of a JVM have allocated in its heap so far: by its own counters, read from outside, or else as it
//! tells when it is asked.

use crate::observe::hotspot::threads::{Allocated, Ended, Reader, Threads};
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::observe::{Unavailable, thread_print};
use crate::record::AllocatedBy;
use std::collections::BTreeMap;

/// Bytes up to a moment, and who counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllocatedSoFar {
    pub(crate) bytes: u64,
    pub(crate) by: AllocatedBy,
}

impl AllocatedSoFar {
    /// What was allocated since an earlier moment; `None` where it was counted in another way then.
    pub(crate) fn since(self, before: Self) -> Option<Self> {
        let bytes = self.bytes.saturating_sub(before.bytes);
        (self.by == before.by).then_some(Self { bytes, by: self.by })
    }
}

/// The counters of a JVM, read from outside.
#[derive(Debug)]
pub(crate) struct Allocation {
    memory: ProcessMemory,
    threads: Threads,
    reader: Reader,
}

impl Allocation {
    /// Reads these counters from now on.
    pub(crate) fn open(process: &Process, threads: Threads) -> Result<Self, Unavailable> {
        let reader = threads.clone().reader();
        Ok(Self { memory: ProcessMemory::open(process)?, threads, reader })
    }

    /// The memory that the counters are in.
    pub(crate) fn memory(&self) -> ProcessMemory {
        self.memory.clone()
    }

    /// What each thread that lives has allocated, by its id in the JVM's own pid namespace.
    pub(crate) fn by_thread(&mut self) -> BTreeMap<u32, u64> {
        let threads = self.reader.by_thread(&self.memory).unwrap_or_default();
        threads.into_iter().filter_map(|thread| Some((thread.tid?, thread.bytes))).collect()
    }

    /// Where the counters are.
    pub(crate) fn threads(&self) -> Threads {
        self.threads.clone()
    }

    /// What was allocated so far; `None` where it cannot be read at this moment.
    pub(crate) fn so_far(&mut self) -> Option<AllocatedSoFar> {
        let Allocated { bytes, ended, .. } = self.reader.read(&self.memory).ok()?;
        let by = match ended {
            Ended::Counted => AllocatedBy::AllThreads,
            Ended::Unknown => AllocatedBy::LivingThreads,
        };
        Some(AllocatedSoFar { bytes, by })
    }
}

/// The same as the JVM tells it; `None` where it does not.
pub(crate) fn told(ask: impl Fn(&str) -> Option<Result<String, String>>) -> Option<AllocatedSoFar> {
    let bytes = thread_print::allocated(&ask("Thread.print -e")?.ok()?)?;
    Some(AllocatedSoFar { bytes, by: AllocatedBy::ThreadPrint })
}
