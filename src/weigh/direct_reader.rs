//! A JVM's direct memory from the counters of the JDK and Netty, read from outside, at marks and once a second.

use crate::clock::Clock;
use crate::observe::Unavailable;
use crate::observe::hotspot::direct::DirectCounters;
use crate::observe::hotspot::objects::Objects;
use crate::observe::maps;
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::observe::untouched::Untouched;
use crate::record::DirectRecord;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// If a collector is moving the counters, retry after this time …
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// … up to this many times: a tenth of a second.
const TRIES: usize = 20;
/// Read budget for one scan of a JVM's classes: enough for 300,000.
const READS_MAX: u64 = 24 << 20;
/// New classes are scanned after this time, which doubles each time.
const LOOK_AGAIN_NS: u64 = 1_000_000_000;

/// A JVM's counters, shared by marks and timeline so that each is found only once.
#[derive(Debug, Clone)]
pub(crate) struct DirectReader(Arc<Mutex<DirectCounters>>);

impl DirectReader {
    pub(crate) fn of(objects: Objects) -> Self {
        Self(Arc::new(Mutex::new(DirectCounters::of(objects))))
    }

    /// Current direct memory. Fails if it is unreadable, or if a collector moves the counters during each try.
    pub(crate) fn read(&self, process: &Process, clock: &Clock) -> Result<DirectRecord, Unavailable> {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut tries, mut left) = (0, READS_MAX);
        loop {
            tries += 1;
            let maps = maps::read_of_tables(process, clock)?.value;
            let memory = Untouched::open(process, &maps)?.within(left);
            match counters.look(&memory).and_then(|()| counters.read(&memory)) {
                Err(why) if why.is_early && tries < TRIES => clock.sleep(TRY_AGAIN_AFTER),
                read => return read,
            }
            left = memory.left();
        }
    }
}

#[derive(Debug)]
pub(crate) struct DirectTimeline {
    reader: DirectReader,
    memory: ProcessMemory,
    look_due_ns: u64,
    look_after_ns: u64,
}

impl DirectTimeline {
    pub(crate) fn open(memory: ProcessMemory, reader: DirectReader, clock: &Clock) -> Self {
        // The first full scan of all classes is part of the first mark, when the subject serves no load.
        Self { reader, memory, look_due_ns: clock.now_ns() + LOOK_AGAIN_NS, look_after_ns: LOOK_AGAIN_NS }
    }

    /// Bytes of direct memory now; `None` if currently unreadable, or while a mark reads them.
    pub(crate) fn bytes(&mut self, process: &Process, clock: &Clock) -> Option<u64> {
        let mut counters = self.reader.0.try_lock().ok()?;
        let now_ns = clock.now_ns();
        if now_ns >= self.look_due_ns {
            self.look_due_ns = now_ns + self.look_after_ns;
            self.look_after_ns *= 2;
            // Only the first read needs the other mappings: new classes are in the JVM's own memory.
            let maps =
                if counters.have_looked() { Vec::new() } else { maps::read_of_tables(process, clock).ok()?.value };
            let _ = counters.look(&Untouched::open(process, &maps).ok()?.within(READS_MAX));
        }
        counters.read(&self.memory).ok().map(|direct| direct.bytes())
    }
}
