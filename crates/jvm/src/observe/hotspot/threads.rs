//! The bytes that threads have allocated in the Java heap since JVM startup, as the JVM itself counts them
//! (`Thread::cooked_allocated_bytes`, `ThreadService::exited_allocated_bytes`): the total for exited threads, plus each
//! live thread's counter and the used part of its TLAB. The unused rest of a retired TLAB is not included.
//!
//! The JVM keeps running. The total of ended threads is read first and last. The thread list is read before and after
//! the counters, because a freed list may reappear at its address with other threads. If any of it changed, the reading
//! is discarded. One error remains: while a TLAB is being retired, the JVM itself may count it twice or not at all. The
//! error is at most that TLAB, in fewer than 2 of 10,000 readings.

use super::super::Unavailable;
use super::super::memory::{Memory, words};
use super::objects::Objects;
use super::{SOURCE, Tables};

/// The usual limit for a process (`threads-max`), and more than any JVM can handle.
const THREADS_MAX: usize = 100_000;
/// Bytes of all counters: 20,000 threads at about 400 bytes each.
const COUNTERS_BYTES_ALL_MAX: usize = 8 << 20;
/// Counters are read in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum number of bytes copied for one reading, including retries.
const COPIED_BYTES_MAX: usize = 32 << 20;
/// Buffers for more threads than this are freed after a reading.
const THREADS_KEPT: usize = 4096;
/// A reading is torn if threads start or end during it: about 5% of readings at a thousand a second, at most 18 in a
/// row.
const TRIES: usize = 50;
/// No TLAB is this large (with `-XX:+UseLargePages`, ZGC has some of 64 MiB).
const TLAB_MAX: u64 = 4 << 30;
/// A thread's counters and TLAB bounds are next to each other, within its first few hundred bytes.
const COUNTERS_BYTES_MAX: usize = 4096;
/// 1 EiB: no thread allocates this much.
const ALLOCATED_MAX: u64 = 1 << 60;

/// The addresses and offsets for reading thread counters.
#[derive(Debug, Clone)]
pub struct Threads {
    list_at: u64,
    list_length: u64,
    list_threads: u64,
    exited_at: Option<u64>,
    /// Offset in a thread of the first byte read, and the number of bytes.
    first: u64,
    len: usize,
    /// Offsets within these bytes.
    allocated: usize,
    tlab_start: usize,
    tlab_top: usize,
    /// Offsets of the `OSThread` pointer in a thread, and of the kernel's thread id in the `OSThread`.
    os_thread: u64,
    thread_id: u64,
}

/// Bytes allocated by a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadAllocated {
    /// The thread's id in the JVM's own pid namespace; `None` if it has not started.
    pub tid: Option<u32>,
    /// Bytes since it started.
    pub bytes: u64,
}

/// Bytes allocated up to a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocated {
    /// Bytes of all threads, including ended ones if known.
    pub bytes: u64,
    /// Whether `bytes` includes the allocations of ended threads.
    pub ended: EndedThreads,
}

/// Whether the allocations of ended threads are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedThreads {
    /// They are included.
    Counted,
    /// The JVM does not report them: its library is stripped, or older than 11.0.23 or 17.0.11.
    Unknown,
}

/// Reused buffers of a reading.
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

/// Reads one JVM repeatedly; allocates only if there are more threads than before, or thousands.
#[derive(Debug)]
pub struct ThreadReader {
    threads: Threads,
    buffers: Buffers,
    /// The maximum so far: a thread that is off the list and not yet counted as exited is missing for a moment.
    most: u64,
}

impl Threads {
    /// Looks up the counters of this JVM. `exited_at` is the address of the total for terminated threads, if it exists.
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
            return Err(Unavailable::new(SOURCE, "the counters of its threads have an unknown format"));
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
            // As of JDK 21, it is a field of all threads.
            os_thread: offset(&["Thread::_osthread", "JavaThread::_osthread"])?,
            thread_id: offset(&["OSThread::_thread_id"])?,
        })
    }

    /// The id of a thread in the JVM's own pid namespace; `None` if it has not started.
    pub(super) fn tid(&self, memory: &dyn Memory, thread: u64) -> Option<u32> {
        let os_thread = memory.u64(thread.checked_add(self.os_thread)?).filter(|at| *at != 0)?;
        memory.u32(os_thread.checked_add(self.thread_id)?).filter(|tid| *tid != 0)
    }

    /// Reads the addresses of the currently listed threads; `None` if the list cannot be read, or is too long.
    pub(super) fn addresses(&self, memory: &dyn Memory) -> Option<Vec<u64>> {
        let head = memory.u64(self.list_at)?;
        let length = self.length(memory, head).filter(|length| *length <= THREADS_MAX)?;
        let mut list = Vec::new();
        self.list(memory, head, length, &mut list)?;
        Some(words(&list).collect())
    }

    /// At most `most` live threads, each with its `java.lang.Thread` object, which is looked up lazily. Fails if this
    /// JVM does not describe its threads, or their list cannot be read.
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

    /// Starts reading.
    pub fn reader(self) -> ThreadReader {
        ThreadReader { threads: self, buffers: Buffers::default(), most: 0 }
    }

    /// Reads the bytes allocated by ended threads; 0 if unknown.
    fn exited(&self, memory: &dyn Memory) -> Option<u64> {
        self.exited_at.map_or(Some(0), |at| memory.u64(at))
    }

    fn length(&self, memory: &dyn Memory, list: u64) -> Option<usize> {
        memory.u32(list.checked_add(self.list_length)?).map(|length| length as usize)
    }

    fn are_too_many(&self, threads: usize) -> bool {
        threads > THREADS_MAX || threads * self.len > COUNTERS_BYTES_ALL_MAX
    }

    fn list(&self, memory: &dyn Memory, list: u64, length: usize, into: &mut Vec<u8>) -> Option<()> {
        let threads = memory.u64(list.checked_add(self.list_threads)?)?;
        into.resize(8 * length, 0);
        (into.is_empty() || memory.read(threads, into)).then_some(())
    }

    fn allocated(&self, counters: &[u8]) -> Option<u64> {
        let word = |at: usize| counters.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let (counted, start, top) = (word(self.allocated)?, word(self.tlab_start)?, word(self.tlab_top)?);
        let used = if start == 0 { 0 } else { top.saturating_sub(start) };
        (counted < ALLOCATED_MAX && used < TLAB_MAX).then_some(counted + used)
    }
}

impl ThreadReader {
    /// Reads the bytes allocated so far, in 15 µs for 16 threads, 90 µs for 200. Fails if the JVM is gone, has too many
    /// threads, or they start and end faster than they can be read.
    pub fn read(&mut self, memory: &dyn Memory) -> Result<Allocated, Unavailable> {
        let sum =
            |exited: u64, living: &[Living]| living.iter().try_fold(exited, |sum, one| sum.checked_add(one.bytes));
        let bytes = self.tried(memory, sum)?;
        self.most = self.most.max(bytes);
        let ended = if self.threads.exited_at.is_some() { EndedThreads::Counted } else { EndedThreads::Unknown };
        Ok(Allocated { bytes: self.most, ended })
    }

    /// Reads the bytes that each live thread has allocated, unordered.
    pub fn by_thread(&mut self, memory: &dyn Memory) -> Result<Vec<ThreadAllocated>, Unavailable> {
        let threads = self.threads.clone();
        let tid = |thread: u64| threads.tid(memory, thread);
        let each = |_, living: &[Living]| {
            Some(living.iter().map(|one| ThreadAllocated { tid: tid(one.thread), bytes: one.bytes }).collect())
        };
        self.tried(memory, each)
    }

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

    /// Applies `of` to the bytes of ended and live threads, if neither changed in the meantime. Fails if there are too
    /// many threads to read.
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
            // A list freed in the meantime may have any length.
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
        // Checked twice: a list freed before its length was read may be the current one again by now.
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
    let why = format!(
        "it has {threads} threads; Loadline reads at most {THREADS_MAX} of them, or {most} MiB of their \
                 counters"
    );
    Unavailable::new(SOURCE, why)
}
