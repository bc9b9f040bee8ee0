//! The bytes that a JVM's threads have allocated in its heap so far: from its counters, read from outside, or from its
//! reply when asked.

use crate::observe::hotspot::threads::{Allocated, EndedThreads, ThreadReader, Threads};
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::observe::{Unavailable, thread_print};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How heap allocation was counted, most accurate method first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllocatedBy {
    /// The JVM's own counters, exact to the byte.
    AllThreads,
    /// Counters of live threads; they exclude threads that have exited.
    LivingThreads,
    /// `Thread.print -e` for live threads, accurate to within 10%.
    ThreadPrint,
}

/// Bytes allocated up to a moment, with their source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatedSoFar {
    /// Allocated so far.
    pub bytes: u64,
    /// The source of the count.
    pub by: AllocatedBy,
}

impl AllocatedSoFar {
    /// Returns the bytes allocated since an earlier moment; `None` if the source was different then.
    pub fn since(self, before: Self) -> Option<Self> {
        let bytes = self.bytes.saturating_sub(before.bytes);
        (self.by == before.by).then_some(Self { bytes, by: self.by })
    }
}

/// The counters of a JVM, read from outside it.
#[derive(Debug)]
pub struct Allocation {
    memory: ProcessMemory,
    threads: Threads,
    reader: ThreadReader,
}

impl Allocation {
    /// Starts reading these counters.
    pub fn open(process: &Process, threads: Threads) -> Result<Self, Unavailable> {
        let reader = threads.clone().reader();
        Ok(Self { memory: ProcessMemory::open(process)?, threads, reader })
    }

    /// The memory that contains the counters.
    pub fn memory(&self) -> ProcessMemory {
        self.memory.clone()
    }

    /// Returns the bytes allocated by each living thread, keyed by its id in the JVM's own pid namespace.
    pub fn by_thread(&mut self) -> BTreeMap<u32, u64> {
        let threads = self.reader.by_thread(&self.memory).unwrap_or_default();
        threads.into_iter().filter_map(|thread| Some((thread.tid?, thread.bytes))).collect()
    }

    /// Returns the location of the counters.
    pub fn threads(&self) -> Threads {
        self.threads.clone()
    }

    /// Why the counters can be read neither now nor later.
    pub fn refusal(&mut self) -> Option<Unavailable> {
        self.reader.read(&self.memory).err().filter(|why| !why.is_early)
    }

    /// Returns the bytes allocated so far; `None` if they cannot be read right now.
    pub fn so_far(&mut self) -> Option<AllocatedSoFar> {
        let Allocated { bytes, ended, .. } = self.reader.read(&self.memory).ok()?;
        let by = match ended {
            EndedThreads::Counted => AllocatedBy::AllThreads,
            EndedThreads::Unknown => AllocatedBy::LivingThreads,
        };
        Some(AllocatedSoFar { bytes, by })
    }
}

/// The allocated bytes from the JVM's reply; `None` if there is no reply.
pub fn told(ask: impl Fn(&str) -> Option<Result<String, String>>) -> Option<AllocatedSoFar> {
    let bytes = thread_print::allocated(&ask("Thread.print -e")?.ok()?)?;
    Some(AllocatedSoFar { bytes, by: AllocatedBy::ThreadPrint })
}
