//! Direct memory as the JDK itself counts it (`java.nio.Bits`, JDK 11–27), and the buffers of mapped files
//! (`sun.nio.ch.FileChannelImpl`): the values of `BufferPoolMXBean`, without asking the JVM. Memory allocated past the
//! JDK is not in it: `Arena.ofShared`, `Unsafe.allocateMemory`, and Netty if it counts for itself, which is reported
//! separately.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::SOURCE;
use super::classes::{Field, NewestClasses};
use super::objects::Objects;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const BITS: &str = "java/nio/Bits";
const ATOMIC: &str = "java/util/concurrent/atomic/AtomicLong";
/// The counters, by the names they have from JDK 9 on.
const RESERVED: &str = "RESERVED_MEMORY";
const COUNT: &str = "COUNT";
const MAX: &str = "MAX_MEMORY";
/// The classes that count the buffers of mapped files: one until JDK 13, two since, three in later ones.
const UNMAPPERS: [&str; 3] = [
    "sun/nio/ch/FileChannelImpl$Unmapper",
    "sun/nio/ch/FileChannelImpl$DefaultUnmapper",
    "sun/nio/ch/FileChannelImpl$SyncUnmapper",
];

/// All classes of the JDK that are looked for: those that count, and the class of counters that are objects.
const COUNTING: [&str; 5] = [BITS, ATOMIC, UNMAPPERS[0], UNMAPPERS[1], UNMAPPERS[2]];

/// Netty's, wherever a jar may have moved it.
const NETTY: &str = "netty/util/internal/PlatformDependent";
const NETTY_COUNTER: &str = "DIRECT_MEMORY_COUNTER";
/// Copies of Netty in one JVM that are looked at.
const NETTY_MAX: usize = 16;

/// Direct memory: buffers outside the Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DirectRecord {
    /// Bytes that direct buffers have reserved, alignment included, by the JDK's counter.
    pub reserved_bytes: u64,
    /// How many direct buffers there are.
    pub buffers: u64,
    /// Bytes that Netty has allocated past the JDK; `null` if it leaves counting to the JDK.
    pub netty_bytes: Option<u64>,
    /// Whether Netty is there, whoever counts what it allocates.
    #[serde(default)]
    pub netty_loaded: bool,
    /// The limit of what the JDK reserves, `-XX:MaxDirectMemorySize` or the heap's; `null` before the first buffer.
    pub max_bytes: Option<u64>,
    /// Buffers of mapped files, resident or not.
    pub mapped_bytes: u64,
    /// How many buffers of mapped files there are.
    pub mapped_buffers: u64,
}

impl DirectRecord {
    /// All that is known to be direct memory.
    pub fn bytes(&self) -> u64 {
        self.reserved_bytes.saturating_add(self.netty_bytes.unwrap_or(0))
    }
}

/// A counter of a class.
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
    /// The loaded classes of the JDK that count.
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
    /// Those of the JVM whose objects are read so; none is found before the first look.
    pub fn of(objects: Objects) -> Self {
        let (seen, classes, netty) = Default::default();
        Self { objects, seen, classes, netty, bits: None, mapped: Vec::new(), value: None }
    }

    /// Whether a look has come to its end.
    pub fn have_looked(&self) -> bool {
        self.value.is_some()
    }

    /// Looks for the classes that count, among those that were loaded since it last looked.
    ///
    /// # Errors
    /// If classes cannot be read, or count in another way.
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
            (None, true) => Err(Unavailable::new(SOURCE, format!("`{BITS}` does not count in a known way"))),
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

    /// Reads the current counts.
    ///
    /// # Errors
    /// If no look has come to its end yet, or if a collector moves one of the objects at this moment; soon it will not.
    pub fn read(&self, memory: &dyn Memory) -> Result<DirectRecord, Unavailable> {
        let mut direct = DirectRecord::default();
        let value = self.value.as_ref().ok_or_else(|| Unavailable::new(SOURCE, format!("`{ATOMIC}` is not known")))?;
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
