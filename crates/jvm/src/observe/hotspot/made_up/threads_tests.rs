//! Corrupt thread lists, and threads at the ends of memory.

use super::super::tables::Tables;
use super::super::threads::{EndedThreads, ThreadAllocated, ThreadReader, Threads};
use super::tables::{Says, describe};
use super::{MadeUpMemory, PAGE};
use crate::observe::memory::Memory;
use std::cell::Cell;

/// The last page of the address space.
const LAST_PAGE: u64 = u64::MAX - (PAGE - 1);
/// The maximum that a thread allocates: one byte less than 1 EiB.
const MOST: u64 = (1 << 60) - 1;
/// Fields of a thread: its TLAB's start and top, its counter, its `OSThread`.
const TLAB_TOP: u64 = 8;
const COUNTER: u64 = 16;
const OS_THREAD: u64 = PAGE + 512;

/// A list of threads at these addresses, none of which is in memory yet.
struct Listed {
    memory: MadeUpMemory,
    tables: Tables,
    /// The list variable, followed by the bytes that ended threads allocated.
    head: u64,
    list: u64,
}

fn listed(threads: &[u64]) -> Listed {
    let mut memory = MadeUpMemory::default();
    let head = memory.place(16, 8);
    let list = memory.place(16 + 8 * threads.len() as u64, 8);
    memory.word(head, list);
    memory.word(list, threads.len() as u64);
    memory.word(list + 8, list + 16);
    for (at, thread) in (list + 16..).step_by(8).zip(threads) {
        memory.word(at, *thread);
    }
    let tables = tables(&mut memory, head, COUNTER);
    Listed { memory, tables, head, list }
}

fn tables(memory: &mut MadeUpMemory, head: u64, counter: u64) -> Tables {
    let rows = [
        ("Thread::_tlab", Says::Offset(0)),
        ("ThreadLocalAllocBuffer::_start", Says::Offset(0)),
        ("ThreadLocalAllocBuffer::_top", Says::Offset(TLAB_TOP)),
        ("Thread::_allocated_bytes", Says::Offset(counter)),
        ("Thread::_osthread", Says::Offset(OS_THREAD)),
        ("OSThread::_thread_id", Says::Offset(0)),
        ("ThreadsSMRSupport::_java_thread_list", Says::Address(head)),
        ("ThreadsList::_length", Says::Offset(0)),
        ("ThreadsList::_threads", Says::Offset(8)),
    ];
    let exported = describe(memory, &rows, 0);
    Tables::read(memory, exported).unwrap()
}

impl Listed {
    fn reader(&self) -> ThreadReader {
        Threads::of(&self.tables, Some(self.head + 8)).unwrap().reader()
    }

    fn sum(&self) -> Option<u64> {
        self.reader().read(&self.memory).ok().map(|read| read.bytes)
    }
}

fn alike(count: u64, counted: u64) -> Listed {
    let first = 0x10_0000;
    let threads: Vec<u64> = (0..count).map(|n| first + n * 2 * PAGE).collect();
    let mut made = listed(&threads);
    for thread in threads {
        made.memory.word(thread + COUNTER, counted);
        made.memory.word(thread + OS_THREAD, 0);
    }
    made
}

#[test]
fn counters_and_tlabs_add_up() {
    let mut made = alike(3, 100);
    made.memory.word(made.head + 8, 7);
    made.memory.word(0x10_0000, 0x5000);
    made.memory.word(0x10_0000 + TLAB_TOP, 0x5040);
    assert_eq!(made.sum(), Some(7 + 300 + 64));
    assert_eq!(
        Threads::of(&made.tables, None).unwrap().reader().read(&made.memory).unwrap().ended,
        EndedThreads::Unknown
    );
    // The bounds of a TLAB while it is replaced.
    made.memory.word(0x10_0000, 0x6000);
    assert_eq!(made.sum(), Some(7 + 300));
    made.memory.word(0x10_0000, 0);
    assert_eq!(made.sum(), Some(7 + 300), "an invalid TLAB is not added");
    assert_eq!(alike(0, 0).sum(), Some(0));
}

#[test]
fn readings_never_decrease() {
    let mut made = alike(2, 100);
    let mut reader = made.reader();
    assert_eq!(reader.read(&made.memory).unwrap().bytes, 200);
    // A thread is off the list, and its bytes are not yet in the sum for exited threads.
    made.memory.word(made.list, 1);
    assert_eq!(reader.read(&made.memory).unwrap().bytes, 200);
    made.memory.word(made.head + 8, 150);
    assert_eq!(reader.read(&made.memory).unwrap().bytes, 250);
}

#[test]
fn impossible_counters_are_rejected() {
    assert_eq!(alike(15, MOST).sum(), Some(15 * MOST));
    assert_eq!(alike(17, MOST).sum(), None, "a sum beyond 64 bits is rejected");
    assert_eq!(alike(1, MOST + 1).sum(), None);
    let mut made = alike(1, 0);
    made.memory.word(made.head + 8, u64::MAX);
    assert_eq!(made.sum(), Some(u64::MAX));
    made.memory.word(0x10_0000 + COUNTER, 1);
    assert_eq!(made.sum(), None, "a sum that overflows with exited threads is rejected");
    let mut made = alike(1, 0);
    made.memory.word(0x10_0000, 8);
    made.memory.word(0x10_0000 + TLAB_TOP, 8 + (4 << 30));
    assert_eq!(made.sum(), None, "a TLAB of 4 GiB is rejected");
    made.memory.word(0x10_0000 + TLAB_TOP, 7 + (4 << 30));
    assert_eq!(made.sum(), Some((4 << 30) - 1));
}

#[test]
fn corrupt_lists_are_rejected() {
    let whole = alike(3, 5);
    assert_eq!(whole.sum(), Some(15));
    let changes: [(&str, u64, u64); 9] = [
        ("no list", whole.head, 0),
        ("a list at the end of memory", whole.head, u64::MAX),
        ("one thread more than any JVM can handle", whole.list, 100_001),
        ("an absurd number of threads", whole.list, u64::MAX),
        ("more threads than are in memory", whole.list, 100_000),
        ("threads at an unmapped address", whole.list + 8, 0),
        ("threads at the end of memory", whole.list + 8, u64::MAX - 7),
        ("a thread that is null", whole.list + 24, 0),
        ("a thread at the end of memory", whole.list + 24, u64::MAX),
    ];
    for (what, at, word) in changes {
        let mut made = alike(3, 5);
        made.memory.word(at, word);
        let before = made.memory.asked();
        assert_eq!((made.sum(), made.reader().by_thread(&made.memory).is_err()), (None, true), "{what}");
        assert!(made.memory.asked() - before < 200 * 800_000, "{what}");
    }
    for at in whole.list..whole.list + 40 {
        let mut made = alike(3, 5);
        made.memory.hole = at..at + 1;
        // The upper half of the word with the length does not belong to the length.
        assert_eq!(made.sum().is_none(), !(whole.list + 4..whole.list + 8).contains(&at), "{at:#x} is unreadable");
    }
}

#[test]
fn threads_at_both_ends_of_memory_are_read() {
    let known = |thread: u64, counter: u64| {
        let mut made = listed(&[thread]);
        made.memory.word(thread.wrapping_add(COUNTER), counter);
        if thread.checked_add(OS_THREAD).is_none() {
            // This would be its `OSThread` if addresses wrapped around.
            made.memory.word(thread.wrapping_add(OS_THREAD), made.list);
        }
        (made.sum(), made.reader().by_thread(&made.memory).ok())
    };
    let without_id = |bytes| Some(vec![ThreadAllocated { tid: None, bytes }]);
    // Its `OSThread` would be beyond the end.
    assert_eq!(known(LAST_PAGE, 9), (Some(9), without_id(9)));
    assert_eq!(known(u64::MAX - 23, 9), (Some(9), without_id(9)), "a counter may end at the last byte of memory");
    assert_eq!(known(u64::MAX - 22, 9), (None, None), "a counter must not extend beyond memory");
    assert_eq!(known(0, 9), (Some(9), without_id(9)));
}

#[test]
fn a_missing_os_thread_has_no_id() {
    for (at, half, tid) in
        [(0x9000, 77, Some(77)), (0x9000, 0, None), (0, 77, None), (u64::MAX - 3, 77, Some(77)), (u64::MAX, 77, None)]
    {
        let mut made = alike(1, 5);
        made.memory.word(0x10_0000 + OS_THREAD, at);
        made.memory.half(at.min(u64::MAX - 3), half);
        let read = made.reader().by_thread(&made.memory);
        assert_eq!(read, Ok(vec![ThreadAllocated { tid, bytes: 5 }]), "{at:#x}");
    }
}

#[test]
fn distant_counters_are_rejected() {
    for (counter, is_known) in [(PAGE - 8, true), (PAGE - 7, false), ((1 << 20) - 1, false)] {
        let mut made = alike(1, 5);
        let tables = tables(&mut made.memory, made.head, counter);
        assert_eq!(Threads::of(&tables, None).is_ok(), is_known, "{counter}");
    }
}

/// Memory in which one byte is wrong after this many reads, and may change with each further one.
struct Changing<'m> {
    memory: &'m MadeUpMemory,
    at: u64,
    after: u64,
    reads: Cell<u64>,
}

impl Memory for Changing<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        let read = self.memory.read(at, into);
        if (at..at.saturating_add(into.len() as u64)).contains(&self.at) && self.reads.get() > self.after {
            into[(self.at - at) as usize] ^= self.reads.get() as u8 | 1;
        }
        read
    }
}

#[test]
fn counters_over_8_mib_are_rejected_immediately() {
    // 24 bytes per thread are read if the fields are adjacent, and 4,096 if they are as far apart as allowed.
    for (counter, most) in [(COUNTER, 100_000), (PAGE - 8, 2_048)] {
        for (count, is_read) in [(most, true), (most + 1, false), (u64::from(u32::MAX), false)] {
            let mut made = listed(&vec![0x10_0000; count.min(most + 1) as usize]);
            made.memory.half(made.list, count as u32);
            made.memory.word(0x10_0000 + counter, 5);
            let tables = tables(&mut made.memory, made.head, counter);
            let (mut reader, before) = (Threads::of(&tables, None).unwrap().reader(), made.memory.asked());
            let (read, asked) = (reader.read(&made.memory), made.memory.asked() - before);
            if is_read {
                assert_eq!(read.map(|read| read.bytes), Ok(5 * most), "{count} threads");
                continue;
            }
            let why = read.unwrap_err();
            assert!(why.why.contains(&format!("{count} threads")) && why.why.contains("8 MiB"), "{why}");
            assert!(!why.is_early && asked < 64, "{asked} bytes were read, which is more than the list header");
            assert_eq!(reader.by_thread(&made.memory), Err(why));
        }
    }
}

#[test]
fn constant_change_is_finally_rejected() {
    let made = alike(3, 5);
    let read = |at: u64, after: u64| {
        let memory = Changing { memory: &made.memory, at, after, reads: Cell::new(0) };
        let read = made.reader().read(&memory).map(|read| read.bytes);
        assert!(memory.reads.get() < 50 * 16, "{} reads of a value that keeps changing", memory.reads.get());
        read
    };
    let steady = read(u64::MAX, 0);
    assert_eq!(steady, Ok(15));
    // The bytes of ended threads, the address of the list, and the threads on it.
    for at in [made.head + 8, made.head, made.list + 16, made.list + 33] {
        for after in 0..4 {
            assert!(read(at, after).is_err_and(|why| why.why.contains("changed")), "{at:#x} after {after}");
        }
    }
}
