//! A JVM whose threads allocate, start, and end during reading: it takes up to three steps before each read. An ending
//! thread is first removed from the list and then added to the exited ones, under one lock as in HotSpot
//! (`Threads::remove`). Lists and threads are freed, overwritten, and reused immediately. A thread's counters and TLAB
//! change in one step, because no reader can observe the moment between.

use super::super::super::memory::Memory;
use super::super::tables::Tables;
use super::super::threads::{EndedThreads, ThreadAllocated, ThreadReader, Threads};
use super::tables::{Says, describe};
use super::{MadeUpMemory, PlanBytes, halves};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Few slots for threads and their lists, so they are soon reused.
const PLACES: usize = 6;
const LISTS: usize = 3;
const THREAD_BYTES: u64 = 512;
/// The words that overwrite freed memory.
const POISON: [u64; 4] = [0xf1f1_f1f1_f1f1_f1f1, 0, 0x3fff_ffff, u64::MAX];

/// Field offsets, and addresses of static fields.
#[derive(Debug, Clone, Copy)]
struct ThreadLayout {
    head: u64,
    exited: u64,
    length: u64,
    threads: u64,
    allocated: u64,
    start: u64,
    top: u64,
    os_thread: u64,
    id: u64,
}

#[derive(Debug, Clone, Copy)]
struct Living {
    place: usize,
    tid: Option<u32>,
    counted: u64,
    tlab_start: u64,
    tlab_top: u64,
}

impl Living {
    fn bytes(self) -> u64 {
        self.counted + self.tlab_top - self.tlab_start
    }
}

/// The JVM's current state and its next steps.
#[derive(Debug, Clone)]
struct SimulatedJvm<'p> {
    memory: MadeUpMemory,
    layout: ThreadLayout,
    plan: PlanBytes<'p>,
    places: Vec<u64>,
    lists: Vec<u64>,
    current: usize,
    living: Vec<Living>,
    /// A thread that is off the list but not yet counted as exited.
    leaving: Option<Living>,
    exited: u64,
    ended: EndedThreads,
    begun: u32,
    /// The minimum and maximum sum of listed and ended threads since the last read.
    seen: (u64, u64),
    /// Bytes of each thread listed since then: the minimum and the current value.
    each: BTreeMap<u32, (u64, u64)>,
}

impl<'p> SimulatedJvm<'p> {
    fn of(mut plan: PlanBytes<'p>) -> (Self, Threads) {
        let mut memory = MadeUpMemory::default();
        let spread = plan.next();
        let far = spread % 5 * 8;
        let layout = ThreadLayout {
            head: memory.place(8, 8),
            exited: memory.place(8, 8),
            length: far,
            threads: far + 8,
            // Counters before or after the TLAB.
            allocated: if spread.is_multiple_of(2) { 64 + far } else { 200 + far },
            start: 16 + spread % 3 * 8,
            top: 48,
            os_thread: 300 + far,
            id: 8 + far,
        };
        let tlab = 100;
        let rows = [
            ("Thread::_tlab", Says::Offset(tlab)),
            ("Thread::_allocated_bytes", Says::Offset(layout.allocated)),
            ("ThreadLocalAllocBuffer::_start", Says::Offset(layout.start)),
            ("ThreadLocalAllocBuffer::_top", Says::Offset(layout.top)),
            ("ThreadsSMRSupport::_java_thread_list", Says::Address(layout.head)),
            ("ThreadsList::_length", Says::Offset(layout.length)),
            ("ThreadsList::_threads", Says::Offset(layout.threads)),
            ("JavaThread::_osthread", Says::Offset(layout.os_thread)),
            ("OSThread::_thread_id", Says::Offset(layout.id)),
        ];
        let exported = describe(&mut memory, &rows, spread);
        let layout = ThreadLayout { start: tlab + layout.start, top: tlab + layout.top, ..layout };
        let tables = Tables::read(&memory, exported).unwrap_or_else(|why| panic!("{why}"));
        let ended = if spread % 4 == 3 { EndedThreads::Unknown } else { EndedThreads::Counted };
        let exited_at = (ended == EndedThreads::Counted).then_some(layout.exited);
        let threads = Threads::of(&tables, exited_at).unwrap_or_else(|why| panic!("{why}"));
        let places = (0..PLACES).map(|_| memory.place(2 * THREAD_BYTES, 8)).collect();
        let lists = (0..LISTS).map(|_| memory.place(64 + 8 * PLACES as u64, 8)).collect();
        let mut jvm = Self {
            memory,
            layout,
            plan,
            places,
            lists,
            current: 0,
            living: Vec::new(),
            leaving: None,
            exited: 0,
            ended,
            begun: 0,
            seen: (0, 0),
            each: BTreeMap::new(),
        };
        jvm.publish();
        for _ in 0..spread % 4 {
            jvm.begin();
        }
        (jvm, threads)
    }

    /// Adds up the bytes of the list and the ended threads.
    fn sum(&self) -> u64 {
        let exited = if self.ended == EndedThreads::Counted { self.exited } else { 0 };
        exited + self.living.iter().map(|one| one.bytes()).sum::<u64>()
    }

    /// Starts recording.
    fn look(&mut self) {
        self.seen = (self.sum(), self.sum());
        self.each = self.living.iter().filter_map(|one| Some((one.tid?, (one.bytes(), one.bytes())))).collect();
    }

    fn note(&mut self) {
        let sum = self.sum();
        self.seen = (self.seen.0.min(sum), self.seen.1.max(sum));
        for one in &self.living {
            let Some(tid) = one.tid else { continue };
            self.each.entry(tid).or_insert((one.bytes(), 0)).1 = one.bytes();
        }
    }

    /// Takes the steps between two reads: none, or up to three.
    fn go_on(&mut self) {
        for _ in 0..self.plan.next().saturating_sub(0x80) % 4 {
            let (kind, number) = (self.plan.next(), self.plan.next());
            match kind % 8 {
                0 => self.begin(),
                1 | 2 => self.end(number as usize),
                _ => self.allocate(kind, number),
            }
            self.note();
        }
    }

    fn allocate(&mut self, kind: u64, number: u64) {
        let count = self.living.len();
        let Some(one) = self.living.get_mut(number as usize % count.max(1)) else { return };
        match kind % 3 {
            // Beyond the TLAB, or within it.
            0 => one.counted += number << (kind % 32),
            1 if one.tlab_start != 0 => one.tlab_top += 8 * number,
            // A new TLAB: the used part of the old one is counted.
            _ => {
                let start = (kind + 1) << 24;
                (one.counted, one.tlab_start, one.tlab_top) = (one.bytes(), start, start + 8 * number);
            }
        }
        let one = *one;
        self.write(one);
    }

    fn write(&mut self, one: Living) {
        let (at, layout) = (self.places[one.place], self.layout);
        self.memory.word(at + layout.allocated, one.counted);
        self.memory.word(at + layout.start, one.tlab_start);
        self.memory.word(at + layout.top, one.tlab_top);
        // The `OSThread`, with the kernel's thread id, follows it.
        self.memory.word(at + layout.os_thread, if one.tid.is_some() { at + THREAD_BYTES } else { 0 });
        self.memory.half(at + THREAD_BYTES + layout.id, one.tid.unwrap_or(0));
    }

    fn begin(&mut self) {
        self.leave();
        let place = (0..PLACES).find(|place| self.living.iter().all(|one| one.place != *place));
        let Some(place) = place else { return };
        self.begun += 1;
        let tid = Some(self.begun).filter(|n| n % 7 != 0);
        let one = Living { place, tid, counted: 0, tlab_start: 0, tlab_top: 0 };
        self.write(one);
        self.living.push(one);
        self.publish();
    }

    /// A thread that has allocated something leaves the list; one that has not has never run.
    fn end(&mut self, n: usize) {
        self.leave();
        let n = n % self.living.len().max(1);
        if self.living.get(n).is_some_and(|one| one.bytes() > 0) {
            self.leaving = Some(self.living.remove(n));
            self.publish();
        }
    }

    /// Adds the bytes of a removed thread to those of exited threads, and frees its memory.
    fn leave(&mut self) {
        let Some(one) = self.leaving.take() else { return };
        self.exited += one.bytes();
        self.memory.word(self.layout.exited, self.exited);
        if self.ended == EndedThreads::Counted {
            let at = self.places[one.place];
            self.poison(at, 2 * THREAD_BYTES);
        }
    }

    fn poison(&mut self, at: u64, len: u64) {
        let with = POISON[self.plan.next() as usize % POISON.len()];
        (at..at + len).step_by(8).for_each(|at| self.memory.word(at, with));
    }

    /// Replaces the list with a new one and frees the old one.
    fn publish(&mut self) {
        let (old, layout) = (self.lists[self.current], self.layout);
        self.current = (self.current + 1) % self.lists.len();
        let list = self.lists[self.current];
        self.memory.half(list + layout.length, self.living.len() as u32);
        self.memory.word(list + layout.threads, list + 64);
        for (n, one) in (0..).zip(self.living.clone()) {
            self.memory.word(list + 64 + 8 * n, self.places[one.place]);
        }
        self.memory.word(layout.head, list);
        if self.plan.next().is_multiple_of(2) {
            self.poison(old, 64 + 8 * PLACES as u64);
        }
    }
}

/// Advances one step per read.
struct LiveMemory<'p>(RefCell<SimulatedJvm<'p>>);

impl Memory for LiveMemory<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let mut jvm = self.0.borrow_mut();
        jvm.go_on();
        jvm.memory.read(at, into)
    }
}

/// Checks that a reading is within the JVM's minimum and maximum during it, and not below the previous reading. An
/// error is acceptable only if the plan continues.
fn read(live: &LiveMemory, reader: &mut ThreadReader, before: u64) -> u64 {
    live.0.borrow_mut().look();
    let was_over = live.0.borrow().plan.is_over();
    let read = reader.read(live);
    let jvm = live.0.borrow();
    let (least, most) = match jvm.ended {
        EndedThreads::Counted => (jvm.seen.0.max(before), jvm.seen.1.max(before)),
        // An old address may belong to another thread, on a list that also reused its address: this cannot be detected.
        EndedThreads::Unknown => (before, jvm.sum() + jvm.exited + jvm.leaving.map_or(0, Living::bytes)),
    };
    match read {
        Ok(read) => {
            assert_eq!(read.ended, jvm.ended);
            assert!((least..=most).contains(&read.bytes), "{} is not in {least}..={most}", read.bytes);
            read.bytes
        }
        Err(why) => {
            assert!(!was_over, "{why}");
            before
        }
    }
}

/// Each thread has a value from some moment during the reading, and no thread is mistaken for another.
fn read_each(live: &LiveMemory, reader: &mut ThreadReader) {
    live.0.borrow_mut().look();
    let was_over = live.0.borrow().plan.is_over();
    let read = reader.by_thread(live);
    let jvm = live.0.borrow();
    let Ok(read) = read else { return assert!(!was_over) };
    let known: Vec<(u32, u64)> = read.iter().filter_map(|one| Some((one.tid?, one.bytes))).collect();
    let mut tids: Vec<u32> = known.iter().map(|(tid, _)| *tid).collect();
    tids.sort_unstable();
    assert!(tids.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
    for (tid, bytes) in known.iter().filter(|_| jvm.ended == EndedThreads::Counted) {
        let (least, most) = jvm.each.get(tid).copied().unwrap_or((1, 0));
        assert!((least..=most).contains(bytes), "{tid}: {bytes} is not in {least}..={most}");
    }
}

/// For fuzzing and tests: reads a JVM whose steps come from the first half of the input; panics if a sum never existed.
/// Repeats this with words of its memory changed by the second half: reading must end.
pub(crate) fn check(input: &[u8]) {
    // 50 tries with two lists of 100,000 threads each, and the little of them that is readable.
    const ASKED_MAX: u64 = 8 * 50 * (2 * 800_000 + (1 << 20));
    let (plan, changes) = halves(input);
    let (jvm, threads) = SimulatedJvm::of(PlanBytes::of(plan));
    let (live, mut reader) = (LiveMemory(RefCell::new(jvm.clone())), threads.clone().reader());
    let mut before = 0;
    while !live.0.borrow().plan.is_over() {
        before = read(&live, &mut reader, before);
        read_each(&live, &mut reader);
    }
    live.0.borrow_mut().leave();
    before = read(&live, &mut reader, before);
    let (jvm_now, each) = (live.0.borrow(), reader.by_thread(&live.0.borrow().memory));
    let sum = |each: Vec<ThreadAllocated>| each.iter().map(|one| one.bytes).sum::<u64>();
    assert_eq!(each.map(sum), Ok(jvm_now.living.iter().map(|one| one.bytes()).sum()));
    assert!(jvm_now.ended == EndedThreads::Unknown || before == jvm_now.sum());
    damaged(jvm, threads, changes, ASKED_MAX);
}

fn damaged(mut jvm: SimulatedJvm, threads: Threads, changes: &[u8], asked_max: u64) {
    let before = jvm.memory.asked();
    if !jvm.memory.damage(changes) {
        return;
    }
    let (live, mut reader) = (LiveMemory(RefCell::new(jvm)), threads.reader());
    let mut last = 0;
    for _ in 0..4 {
        if let Ok(read) = reader.read(&live) {
            assert!(read.bytes >= last);
            last = read.bytes;
        }
        let _ = reader.by_thread(&live);
    }
    let asked = live.0.borrow().memory.asked() - before;
    assert!(asked < asked_max, "{asked} bytes");
}
