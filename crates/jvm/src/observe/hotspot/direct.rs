//! Direct memory as the JDK itself counts it (`java.nio.Bits`, JDK 11–27), and the buffers of mapped files
//! (`sun.nio.ch.FileChannelImpl`): the values of `BufferPoolMXBean`, without asking the JVM. Allocations that bypass
//! the JDK are not included: `Arena.ofShared`, `Unsafe.allocateMemory`, and Netty if it does its own counting, which is
//! reported separately.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::SOURCE;
use super::classes::{Field, NewestClasses};
use super::objects::Objects;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const BITS: &str = "java/nio/Bits";
const ATOMIC: &str = "java/util/concurrent/atomic/AtomicLong";
/// The counters' names since JDK 9.
const RESERVED: &str = "RESERVED_MEMORY";
const COUNT: &str = "COUNT";
const MAX: &str = "MAX_MEMORY";
/// The classes that count the buffers of mapped files: one until JDK 13, then two, later three.
const UNMAPPERS: [&str; 3] = [
    "sun/nio/ch/FileChannelImpl$Unmapper",
    "sun/nio/ch/FileChannelImpl$DefaultUnmapper",
    "sun/nio/ch/FileChannelImpl$SyncUnmapper",
];

/// All JDK classes to find: those with counters, and the class of counters that are objects.
const COUNTING: [&str; 5] = [BITS, ATOMIC, UNMAPPERS[0], UNMAPPERS[1], UNMAPPERS[2]];

/// Netty's class, even if a jar has relocated it.
const NETTY: &str = "netty/util/internal/PlatformDependent";
const NETTY_COUNTER: &str = "DIRECT_MEMORY_COUNTER";
/// Maximum number of copies of Netty read in one JVM.
const NETTY_MAX: usize = 16;

/// Direct memory: buffers outside the Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DirectRecord {
    /// Direct memory reserved by the JDK's counter, including alignment.
    pub reserved_bytes: u64,
    /// Number of direct buffers.
    pub buffers: u64,
    /// Direct memory that Netty allocated outside the JDK's limit; `null` if Netty leaves counting to the JDK.
    pub netty_bytes: Option<u64>,
    /// Whether Netty is loaded, even if it does not count its allocations.
    #[serde(default)]
    pub netty_loaded: bool,
    /// Limit on the JDK's reservations: `-XX:MaxDirectMemorySize`, or the maximum heap size; `null` before the first
    /// buffer.
    pub max_bytes: Option<u64>,
    /// Size of mapped file buffers, resident or not.
    pub mapped_bytes: u64,
    /// Number of mapped file buffers.
    pub mapped_buffers: u64,
}

impl DirectRecord {
    /// All known direct memory.
    pub fn bytes(&self) -> u64 {
        self.reserved_bytes.saturating_add(self.netty_bytes.unwrap_or(0))
    }
}

#[derive(Debug)]
struct Counter {
    class: u64,
    field: Field,
}

/// The counters of one JVM. A class that is not loaded yet has counted nothing.
#[derive(Debug)]
pub struct DirectCounters {
    objects: Objects,
    seen: NewestClasses,
    /// The loaded JDK classes that count.
    classes: BTreeMap<&'static str, u64>,
    /// Netty's counters, by class, each with its loader; old versions, such as 4.1.0, have none.
    netty: BTreeMap<u64, (u64, Option<Field>)>,
    bits: Option<Bits>,
    mapped: Vec<(Counter, Counter)>,
    /// The number within a counter that is an object.
    value: Option<Counter>,
}

#[derive(Debug)]
struct Bits {
    reserved: Counter,
    count: Counter,
    max: Counter,
}

impl DirectCounters {
    /// The counters for a JVM with this object layout; none is found before the first search.
    pub fn of(objects: Objects) -> Self {
        let (seen, classes, netty) = Default::default();
        Self { objects, seen, classes, netty, bits: None, mapped: Vec::new(), value: None }
    }

    /// Whether a search has finished.
    pub fn have_looked(&self) -> bool {
        self.value.is_some()
    }

    /// Searches the classes loaded since the last call. Fails if classes cannot be read, or their counters are
    /// different.
    pub fn look(&mut self, memory: &dyn Memory) -> Result<(), Unavailable> {
        let Self { objects, seen, classes, netty, .. } = self;
        let (known, all) = (classes.len(), objects.classes());
        all.walk_new(memory, seen, |loader, class| {
            let Some(name) = all.name_of(memory, class) else { return };
            if let Some(name) = COUNTING.into_iter().find(|counting| name.is(memory, counting)) {
                classes.entry(name).or_insert(class);
            } else if netty.len() < NETTY_MAX && name.ends_with(memory, NETTY) {
                netty.insert(class, (loader, all.field(memory, class, NETTY_COUNTER)));
            }
        })?;
        netty.retain(|_, (loader, _)| seen.has(*loader));
        if classes.len() != known {
            self.find(memory);
        }
        match (&self.bits, self.classes.contains_key(BITS)) {
            (None, true) => Err(Unavailable::new(SOURCE, format!("`{BITS}` has an unknown layout"))),
            _ => Ok(()),
        }
    }

    /// Finds the counters of the JDK's classes.
    fn find(&mut self, memory: &dyn Memory) {
        let counter = |class: &str, name: &str| {
            let class = *self.classes.get(class)?;
            Some(Counter { class, field: self.objects.classes().field(memory, class, name)? })
        };
        let bits = || {
            let (reserved, count) = (counter(BITS, RESERVED)?, counter(BITS, COUNT)?);
            Some(Bits { reserved, count, max: counter(BITS, MAX)? })
        };
        let mapped = UNMAPPERS.iter().filter_map(|class| {
            Some((counter(class, "totalCapacity").or_else(|| counter(class, "totalSize"))?, counter(class, "count")?))
        });
        (self.bits, self.mapped, self.value) = (bits(), mapped.collect(), counter(ATOMIC, "value"));
    }

    /// Reads the current counts. Fails if no search has finished yet, or if a collector is moving one of the objects; a
    /// retry will succeed.
    pub fn read(&self, memory: &dyn Memory) -> Result<DirectRecord, Unavailable> {
        let mut direct = DirectRecord::default();
        let value =
            self.value.as_ref().ok_or_else(|| Unavailable::new(SOURCE, format!("`{ATOMIC}` has an unknown layout")))?;
        let within =
            |class: u64, field: &Field| self.objects.number_within(memory, (class, field), (value.class, &value.field));
        let number = |counter: &Counter| self.objects.number(memory, counter.class, &counter.field);
        if let Some(Bits { reserved, count, max }) = &self.bits {
            direct.reserved_bytes = within(reserved.class, &reserved.field)?;
            direct.buffers = within(count.class, &count.field)?;
            direct.max_bytes = Some(number(max)?);
        }
        direct.netty_loaded = !self.netty.is_empty();
        let counters = self.netty.iter().filter_map(|(class, (_, field))| Some((class, field.as_ref()?)));
        for (class, field) in counters {
            if self.objects.refers(memory, *class, field)? {
                let before = direct.netty_bytes.unwrap_or(0);
                direct.netty_bytes = Some(before.saturating_add(within(*class, field)?));
            }
        }
        for (bytes, count) in &self.mapped {
            direct.mapped_bytes = direct.mapped_bytes.saturating_add(number(bytes)?);
            direct.mapped_buffers = direct.mapped_buffers.saturating_add(number(count)?);
        }
        Ok(direct)
    }
}
