//! Direct memory of a JVM by the counters of the JDK and of Netty, read from outside, at marks and once a second.

use super::allocation::Allocation;
use crate::clock::Clock;
use crate::observe::Unavailable;
use crate::observe::hotspot::HotSpot;
use crate::observe::hotspot::direct::{Direct, DirectCounters};
use crate::observe::hotspot::flags::Flags;
use crate::observe::hotspot::objects::Objects;
use crate::observe::hotspot::threads::Threads;
use crate::observe::maps;
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::observe::untouched::Untouched;
use std::time::Duration;

/// A collector that moves the counters has done so within a few of these …
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// … and is not waited for longer than a tenth of a second.
const TRIES: usize = 20;
/// Classes are looked through again after so long, and then after twice as long each time.
const LOOK_AGAIN_NS: u64 = 1_000_000_000;

/// Looks for what the JVM describes of itself, once: its counters of allocation, and how its objects are read, which
/// is `None` where it does not describe all that this takes.
///
/// # Errors
/// Where there are no such counters, or memory may not be read.
pub(crate) fn find(process: &Process, clock: &Clock) -> Result<(Allocation, Option<Objects>), Unavailable> {
    let maps = maps::read(process, clock)?.value;
    let HotSpot { tables, exited_allocated_at, .. } = HotSpot::find(process, &maps)?;
    let allocation = Allocation::open(process, Threads::of(&tables, exited_allocated_at)?)?;
    let memory = Untouched::open(process, &maps)?;
    let objects = Flags::read(&memory, &tables).and_then(|flags| Objects::of(&tables, &flags, &memory));
    Ok((allocation, objects.ok()))
}

/// Direct memory now, with a look through all classes; `None` where it cannot be read.
pub(crate) fn direct(process: &Process, objects: &Objects, clock: &Clock) -> Option<Direct> {
    for _ in 0..TRIES {
        let maps = maps::read(process, clock).ok()?.value;
        let memory = Untouched::open(process, &maps).ok()?;
        match DirectCounters::find(objects, &memory).and_then(|counters| counters.read(&memory)) {
            Ok(direct) => return Some(direct),
            Err(why) if !why.is_early => return None,
            Err(_) => clock.sleep(TRY_AGAIN_AFTER),
        }
    }
    None
}

/// Direct memory on the timeline. Classes are looked through until the JDK's counters are loaded, ever more rarely.
#[derive(Debug)]
pub(crate) struct DirectTimeline {
    objects: Objects,
    memory: ProcessMemory,
    counters: Option<DirectCounters>,
    look_due_ns: u64,
    look_after_ns: u64,
}

impl DirectTimeline {
    pub(crate) fn open(process: &Process, objects: Objects) -> Result<Self, Unavailable> {
        let memory = ProcessMemory::open(process)?;
        Ok(Self { objects, memory, counters: None, look_due_ns: 0, look_after_ns: LOOK_AGAIN_NS })
    }

    /// Bytes of direct memory now; `None` where they cannot be read at this moment.
    pub(crate) fn bytes(&mut self, process: &Process, clock: &Clock) -> Option<u64> {
        let now_ns = clock.now_ns();
        if now_ns >= self.look_due_ns {
            self.look_due_ns = now_ns + self.look_after_ns;
            self.look_after_ns *= 2;
            let maps = maps::read(process, clock).ok()?.value;
            let found = DirectCounters::find(&self.objects, &Untouched::open(process, &maps).ok()?);
            self.counters = found.ok().or(self.counters.take());
        }
        self.counters.as_ref()?.read(&self.memory).ok().map(|direct| direct.bytes())
    }
}
