//! The bytes that a JVM's threads have allocated in its heap so far: by its counters, read from outside, or else by its
//! answer when asked.

use crate::observe::hotspot::threads::{Allocated, EndedThreads, ThreadReader, Threads};
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::observe::{Unavailable, thread_print};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The source of a count of heap allocation, the best one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllocatedBy {
    /// The JVM's own counters, to the byte.
    AllThreads,
    /// The counters of threads that live; what others allocated before they ended is not in it.
    LivingThreads,
    /// The reply to `Thread.print -e` for threads that live, within 10 %.
    ThreadPrint,
}

/// Bytes up to a moment, and who counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatedSoFar {
    /// Allocated so far.
    pub bytes: u64,
    /// The source of the count.
    pub by: AllocatedBy,
}

impl AllocatedSoFar {
    /// Returns the bytes allocated since an earlier moment; `None` if they were counted in another way then.
    pub fn since(self, before: Self) -> Option<Self> {
        let bytes = self.bytes.saturating_sub(before.bytes);
        (self.by == before.by).then_some(Self { bytes, by: self.by })
    }
}

/// The counters of a JVM, read from outside.
#[derive(Debug)]
pub struct Allocation {
    memory: ProcessMemory,
    threads: Threads,
    reader: ThreadReader,
}

impl Allocation {
    /// Reads these counters from now on.
    pub fn open(process: &Process, threads: Threads) -> Result<Self, Unavailable> {
        let reader = threads.clone().reader();
        Ok(Self { memory: ProcessMemory::open(process)?, threads, reader })
    }

    /// The memory that the counters are in.
    pub fn memory(&self) -> ProcessMemory {
        self.memory.clone()
    }

    /// Returns the bytes that each living thread has allocated, by its id in the JVM's own pid namespace.
    pub fn by_thread(&mut self) -> BTreeMap<u32, u64> {
        let threads = self.reader.by_thread(&self.memory).unwrap_or_default();
        threads.into_iter().filter_map(|thread| Some((thread.tid?, thread.bytes))).collect()
    }

    /// Returns the place of the counters.
    pub fn threads(&self) -> Threads {
        self.threads.clone()
    }

    /// Why the counters cannot be read, now or later.
    pub fn refusal(&mut self) -> Option<Unavailable> {
        self.reader.read(&self.memory).err().filter(|why| !why.is_early)
    }

    /// Returns the bytes allocated so far; `None` if they cannot be read at this moment.
    pub fn so_far(&mut self) -> Option<AllocatedSoFar> {
        let Allocated { bytes, ended, .. } = self.reader.read(&self.memory).ok()?;
        let by = match ended {
            EndedThreads::Counted => AllocatedBy::AllThreads,
            EndedThreads::Unknown => AllocatedBy::LivingThreads,
        };
        Some(AllocatedSoFar { bytes, by })
    }
}

/// The same as the JVM tells it; `None` where it does not.
pub fn told(ask: impl Fn(&str) -> Option<Result<String, String>>) -> Option<AllocatedSoFar> {
    let bytes = thread_print::allocated(&ask("Thread.print -e")?.ok()?)?;
    Some(AllocatedSoFar { bytes, by: AllocatedBy::ThreadPrint })
}
