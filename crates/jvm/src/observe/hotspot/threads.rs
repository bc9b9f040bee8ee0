//! The bytes that threads have allocated in the Java heap since the JVM began, as the JVM itself counts them
//! (`Thread::cooked_allocated_bytes`, `ThreadService::exited_allocated_bytes`): the sum of ended threads, and for each
//! live one its counter and the used part of its TLAB. The rest of a TLAB that is given up is not in it.
//!
//! The JVM runs on meanwhile. The sum of ended threads is read first and last. The list of threads is read in between,
//! before and after the counters: a freed list may come back at its address with other threads. A reading during which
//! any of it changed is thrown away. One error is left: at the moment when a TLAB is given up, the JVM itself may count
//! it twice or not at all. The error is at most that TLAB, in less than 2 of 10,000 readings.

use super::super::Unavailable;
use super::super::memory::{Memory, words};
use super::objects::Objects;
use super::{SOURCE, Tables};

/// As many threads as a process may have on most machines (`threads-max`), and more than any JVM bears.
const THREADS_MAX: usize = 100_000;
/// Bytes of all counters together: those of 20,000 threads, which have some 400 bytes each.
const COUNTERS_BYTES_ALL_MAX: usize = 8 << 20;
/// Counters are read in pieces of so much.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes copied for one reading, however often it is torn.
const COPIED_BYTES_MAX: usize = 32 << 20;
/// Buffers for more threads than this are given back after a reading.
const THREADS_KEPT: usize = 4096;
/// A reading is torn where threads begin and end: some 5 % of them at a thousand a second, 18 in a row at the most.
const TRIES: usize = 50;
/// No TLAB is as large (`-XX:+UseLargePages` with ZGC has some of 64 MiB).
const TLAB_MAX: u64 = 4 << 30;
/// A thread's counters and its TLAB's bounds lie side by side, within its first few hundred bytes.
const COUNTERS_BYTES_MAX: usize = 4096;
/// 1 EiB: no thread comes that far.
const ALLOCATED_MAX: u64 = 1 << 60;

/// The addresses and offsets by which the counters of threads are read.
#[derive(Debug, Clone)]
pub struct Threads {
    list_at: u64,
    list_length: u64,
    list_threads: u64,
    exited_at: Option<u64>,
    /// Offset in a thread of the first byte that is read, and how many are read.
    first: u64,
    len: usize,
    /// Offsets within these bytes.
    allocated: usize,
    tlab_start: usize,
    tlab_top: usize,
    /// Offsets in a thread of the address of its `OSThread`, and in that of the id that the kernel knows.
    os_thread: u64,
    thread_id: u64,
}

/// Bytes that a thread has allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadAllocated {
    /// The thread's id in the JVM's own pid namespace; `None` for a thread that had not begun.
    pub tid: Option<u32>,
    /// Bytes since it began.
    pub bytes: u64,
}

/// Bytes allocated up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocated {
    /// Bytes of all threads, including those that ended if they are known.
    pub bytes: u64,
    /// Whether `bytes` lack what threads had allocated when they ended.
    pub ended: EndedThreads,
}

/// Whether what ended threads have allocated is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedThreads {
    /// It is.
    Counted,
    /// The JVM does not say: its library was stripped, or is older than 11.0.23 or 17.0.11.
    Unknown,
}

/// Buffers of a reading, used again.
#[derive(Debug, Default)]
struct Buffers {
    list: Vec<u8>,
    list_behind: Vec<u8>,
    addresses: Vec<u64>,
    counters: Vec<u8>,
    living: Vec<Living>,
    /// Bytes copied for this reading so far.
    copied: usize,
}

/// A thread on the list.
#[derive(Debug, Clone, Copy)]
struct Living {
    thread: u64,
    bytes: u64,
}

/// Reads one JVM again and again; nothing is allocated on the way but where there are more threads than before, or
/// thousands.
#[derive(Debug)]
pub struct ThreadReader {
    threads: Threads,
    buffers: Buffers,
    /// The most that was read: a thread that is off the list and not yet among the ended ones is missing for a moment.
    most: u64,
}

impl Threads {
    /// Looks up the counters of this JVM. `exited_at` is the address of the sum of ended threads, if there is one.
    ///
    /// # Errors
    /// If it does not describe one of them.
    pub fn of(tables: &Tables, exited_at: Option<u64>) -> Result<Self, Unavailable> {
        let offset = |fields: &[&str]| tables.offset(fields);
        let tlab = offset(&["Thread::_tlab"])?;
        let allocated = offset(&["Thread::_allocated_bytes"])?;
        let start = tlab + offset(&["ThreadLocalAllocBuffer::_start"])?;
        let top = tlab + offset(&["ThreadLocalAllocBuffer::_top"])?;
        let first = allocated.min(start).min(top);
        let inside = |at: u64| (at - first) as usize;
        let len = inside(allocated.max(start).max(top)) + 8;
        if len > COUNTERS_BYTES_MAX {
            return Err(Unavailable::new(SOURCE, "the counters of its threads are not in a known form"));
        }
        Ok(Self {
            list_at: tables.address(&["ThreadsSMRSupport::_java_thread_list"])?,
            list_length: offset(&["ThreadsList::_length"])?,
            list_threads: offset(&["ThreadsList::_threads"])?,
            exited_at,
            first,
            len,
            allocated: inside(allocated),
            tlab_start: inside(start),
            tlab_top: inside(top),
            // From JDK 21 on it is a field of all threads.
            os_thread: offset(&["Thread::_osthread", "JavaThread::_osthread"])?,
            thread_id: offset(&["OSThread::_thread_id"])?,
        })
    }

    /// The id of a thread in the JVM's own pid namespace; `None` for one that had not begun.
    pub(super) fn tid(&self, memory: &dyn Memory, thread: u64) -> Option<u32> {
        let os_thread = memory.u64(thread.checked_add(self.os_thread)?).filter(|at| *at != 0)?;
        memory.u32(os_thread.checked_add(self.thread_id)?).filter(|tid| *tid != 0)
    }

    /// Reads the addresses of the threads on the list now; `None` if it cannot be read, or has too many.
    pub(super) fn addresses(&self, memory: &dyn Memory) -> Option<Vec<u64>> {
        let head = memory.u64(self.list_at)?;
        let length = self.length(memory, head).filter(|length| *length <= THREADS_MAX)?;
        let mut list = Vec::new();
        self.list(memory, head, length, &mut list)?;
        Some(words(&list).collect())
    }

    /// The live threads, at most so many, each with its object (`java.lang.Thread`) at the moment when it is asked for.
    ///
    /// # Errors
    /// If this JVM does not describe its threads, or their list cannot be read.
    pub(super) fn with_objects(
        memory: &dyn Memory,
        tables: &Tables,
        objects: &Objects,
        most: usize,
    ) -> Result<impl Iterator<Item = (u64, u64)>, Unavailable> {
        let object_at = tables.offset(&["JavaThread::_threadObj"])?;
        let threads = Self::of(tables, None)?.addresses(memory);
        let threads = threads.ok_or_else(|| Unavailable::new(SOURCE, "its list of threads could not be read"))?;
        let object = move |thread: u64| objects.of_handle(memory, memory.u64(thread.checked_add(object_at)?)?);
        Ok(threads.into_iter().take(most).filter_map(move |thread| Some((thread, object(thread)?))))
    }

    /// Begins to read.
    pub fn reader(self) -> ThreadReader {
        ThreadReader { threads: self, buffers: Buffers::default(), most: 0 }
    }

    /// Reads the bytes that ended threads have allocated; 0 if that is unknown.
    fn exited(&self, memory: &dyn Memory) -> Option<u64> {
        self.exited_at.map_or(Some(0), |at| memory.u64(at))
    }

    /// How many threads are on the list.
    fn length(&self, memory: &dyn Memory, list: u64) -> Option<usize> {
        memory.u32(list.checked_add(self.list_length)?).map(|length| length as usize)
    }

    /// Whether the counters of so many threads are more than is read.
    fn are_too_many(&self, threads: usize) -> bool {
        threads > THREADS_MAX || threads * self.len > COUNTERS_BYTES_ALL_MAX
    }

    /// So many threads of the list, as bytes.
    fn list(&self, memory: &dyn Memory, list: u64, length: usize, into: &mut Vec<u8>) -> Option<()> {
        let threads = memory.u64(list.checked_add(self.list_threads)?)?;
        into.resize(8 * length, 0);
        (into.is_empty() || memory.read(threads, into)).then_some(())
    }

    /// Returns the bytes that one thread has allocated, by its counters.
    fn allocated(&self, counters: &[u8]) -> Option<u64> {
        let word = |at: usize| counters.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let (counted, start, top) = (word(self.allocated)?, word(self.tlab_start)?, word(self.tlab_top)?);
        let used = if start == 0 { 0 } else { top.saturating_sub(start) };
        (counted < ALLOCATED_MAX && used < TLAB_MAX).then_some(counted + used)
    }
}

impl ThreadReader {
    /// Reads the bytes allocated so far, in 15 µs for 16 threads, 90 µs for 200.
    ///
    /// # Errors
    /// If the JVM has gone, has more threads than are read, or they begin and end faster than they can be read.
    pub fn read(&mut self, memory: &dyn Memory) -> Result<Allocated, Unavailable> {
        let sum =
            |exited: u64, living: &[Living]| living.iter().try_fold(exited, |sum, one| sum.checked_add(one.bytes));
        let bytes = self.tried(memory, sum)?;
        self.most = self.most.max(bytes);
        let ended = if self.threads.exited_at.is_some() { EndedThreads::Counted } else { EndedThreads::Unknown };
        Ok(Allocated { bytes: self.most, ended })
    }

    /// Reads the bytes that each live thread has allocated, in no order.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn by_thread(&mut self, memory: &dyn Memory) -> Result<Vec<ThreadAllocated>, Unavailable> {
        let threads = self.threads.clone();
        let tid = |thread: u64| threads.tid(memory, thread);
        let each = |_, living: &[Living]| {
            Some(living.iter().map(|one| ThreadAllocated { tid: tid(one.thread), bytes: one.bytes }).collect())
        };
        self.tried(memory, each)
    }

    /// The first reading that is whole.
    fn tried<T>(&mut self, memory: &dyn Memory, of: impl Fn(u64, &[Living]) -> Option<T>) -> Result<T, Unavailable> {
        self.buffers.copied = 0;
        let mut tries = 0..TRIES;
        let read = loop {
            if tries.next().is_none() || self.buffers.copied > COPIED_BYTES_MAX {
                let why = "its list of threads changed each time it was read, or could not be read";
                break Err(Unavailable::early(SOURCE, why));
            }
            if let Some(read) = self.once(memory, &of) {
                break read;
            }
        };
        if self.buffers.addresses.capacity() > THREADS_KEPT {
            self.buffers = Buffers::default();
        }
        read
    }

    /// Applies `of` to the bytes of ended threads and of the living ones, if neither changed meanwhile.
    ///
    /// # Errors
    /// If there are too many to read them at any time.
    fn once<T>(
        &mut self,
        memory: &dyn Memory,
        of: impl Fn(u64, &[Living]) -> Option<T>,
    ) -> Option<Result<T, Unavailable>> {
        let Self { threads, buffers, .. } = self;
        let Buffers { list, list_behind, addresses, counters, living, copied } = buffers;
        let exited = threads.exited(memory)?;
        let head = memory.u64(threads.list_at)?;
        let length = threads.length(memory, head)?;
        if threads.are_too_many(length) {
            // A list that was freed meanwhile may have any length.
            let is_so = memory.u64(threads.list_at)? == head && threads.length(memory, head)? == length;
            return is_so.then(|| Err(too_many(length)));
        }
        threads.list(memory, head, length, list)?;
        addresses.clear();
        for thread in words(list) {
            addresses.push(thread.checked_add(threads.first)?);
        }
        living.clear();
        *copied += length * (8 + threads.len);
        for addresses in addresses.chunks(PIECE_BYTES / threads.len) {
            counters.resize(addresses.len() * threads.len, 0);
            memory.read_each(addresses, counters).then_some(())?;
            for (at, counters) in addresses.iter().zip(counters.chunks_exact(threads.len)) {
                living.push(Living { thread: at - threads.first, bytes: threads.allocated(counters)? });
            }
        }
        let read = of(exited, living)?;
        // Twice: a list that was freed before its length was read may be the current one again by now.
        let is_current = || Some(memory.u64(threads.list_at)? == head);
        let was_current = is_current()?;
        let is_as_long = threads.length(memory, head)? == length;
        threads.list(memory, head, length, list_behind)?;
        let unchanged = was_current && is_as_long && is_current()? && list == list_behind;
        (unchanged && threads.exited(memory)? == exited).then_some(Ok(read))
    }
}

fn too_many(threads: usize) -> Unavailable {
    let most = COUNTERS_BYTES_ALL_MAX >> 20;
    let why =
        format!("its list has {threads} threads: {THREADS_MAX} are read at most, or {most} MiB of their counters");
    Unavailable::new(SOURCE, why)
}
