//! Direct memory of a JVM by the counters of the JDK and of Netty, read from outside, at marks and once a second.

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

/// A collector that moves the counters has done so within a few of these …
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// … and is not waited for longer than a tenth of a second.
const TRIES: usize = 20;
/// Reads for one look at the classes of a JVM: those of 300,000 classes.
const READS_MAX: u64 = 24 << 20;
/// New classes are looked through again after so long, and then after twice as long each time.
const LOOK_AGAIN_NS: u64 = 1_000_000_000;

/// The counters of one JVM: marks and the timeline look for them and read them, and none looks for what another found.
#[derive(Debug, Clone)]
pub(crate) struct DirectReader(Arc<Mutex<DirectCounters>>);

impl DirectReader {
    /// A reader for the JVM whose objects are these.
    pub(crate) fn of(objects: Objects) -> Self {
        Self(Arc::new(Mutex::new(DirectCounters::of(objects))))
    }

    /// Direct memory now.
    ///
    /// # Errors
    /// If it cannot be read, or a collector moves the counters at each try.
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

/// Direct memory on the timeline.
#[derive(Debug)]
pub(crate) struct DirectTimeline {
    reader: DirectReader,
    memory: ProcessMemory,
    look_due_ns: u64,
    look_after_ns: u64,
}

impl DirectTimeline {
    pub(crate) fn open(memory: ProcessMemory, reader: DirectReader, clock: &Clock) -> Self {
        // The first look of all, at every class, is that of the first mark: the subject serves no load meanwhile.
        Self { reader, memory, look_due_ns: clock.now_ns() + LOOK_AGAIN_NS, look_after_ns: LOOK_AGAIN_NS }
    }

    /// Bytes of direct memory now; `None` where they cannot be read at this moment, or a mark reads them.
    pub(crate) fn bytes(&mut self, process: &Process, clock: &Clock) -> Option<u64> {
        let mut counters = self.reader.0.try_lock().ok()?;
        let now_ns = clock.now_ns();
        if now_ns >= self.look_due_ns {
            self.look_due_ns = now_ns + self.look_after_ns;
            self.look_after_ns *= 2;
            // New classes are in the memory of the JVM: only the first reading needs to know its other mappings.
            let maps =
                if counters.have_looked() { Vec::new() } else { maps::read_of_tables(process, clock).ok()?.value };
            let _ = counters.look(&Untouched::open(process, &maps).ok()?.within(READS_MAX));
        }
        counters.read(&self.memory).ok().map(|direct| direct.bytes())
    }
}
