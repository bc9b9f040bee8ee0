//! Direct memory as the JDK itself counts it (`java.nio.Bits`, JDK 11–25), and the buffers of mapped files
//! (`sun.nio.ch.FileChannelImpl`): what `BufferPoolMXBean` says, without asking. What goes past the JDK is not in it:
//! `Arena.ofShared`, `Unsafe.allocateMemory`, and Netty where it counts for itself.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::SOURCE;
use super::classes::Field;
use super::objects::Objects;

const BITS: &str = "java/nio/Bits";
const ATOMIC: &str = "java/util/concurrent/atomic/AtomicLong";
/// The counters, by the names they have from JDK 9 on.
const RESERVED: &str = "RESERVED_MEMORY";
const COUNT: &str = "COUNT";
const MAX: &str = "MAX_MEMORY";
/// Who counts the buffers of mapped files: one class until JDK 13, two since, three in later ones.
const UNMAPPERS: [&str; 3] = [
    "sun/nio/ch/FileChannelImpl$Unmapper",
    "sun/nio/ch/FileChannelImpl$DefaultUnmapper",
    "sun/nio/ch/FileChannelImpl$SyncUnmapper",
];

/// Direct memory, by the JDK's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direct {
    /// Bytes that direct buffers have reserved, with what aligns them.
    pub reserved_bytes: u64,
    /// How many direct buffers there are.
    pub buffers: u64,
    /// The limit: `-XX:MaxDirectMemorySize`, or the heap's.
    pub max_bytes: Option<u64>,
    /// Bytes of the buffers of mapped files, resident or not.
    pub mapped_bytes: u64,
    /// How many such buffers there are.
    pub mapped_buffers: u64,
}

/// A counter of a class.
#[derive(Debug, Clone)]
struct Counter {
    class: u64,
    field: Field,
}

/// Where the counters are; what is not loaded yet has counted nothing.
#[derive(Debug, Clone)]
pub struct DirectCounters {
    objects: Objects,
    bits: Option<Bits>,
    mapped: Vec<(Counter, Counter)>,
}

#[derive(Debug, Clone)]
struct Bits {
    reserved: Counter,
    count: Counter,
    max: Counter,
    /// The number within a counter that is an object.
    value: Counter,
}

impl DirectCounters {
    /// Looks for the classes that count, among all that are loaded.
    ///
    /// # Errors
    /// Where classes cannot be read, or count in another way.
    pub fn find(objects: &Objects, memory: &dyn Memory) -> Result<Self, Unavailable> {
        let mut names = vec![BITS, ATOMIC];
        names.extend(UNMAPPERS);
        let found = objects.classes().find(memory, &names)?;
        let counter = |class: &str, name: &str| {
            let class = *found.get(class)?;
            Some(Counter { class, field: objects.classes().field(memory, class, name)? })
        };
        let bits = match found.contains_key(BITS) {
            false => None,
            true => Some(
                (|| {
                    Some(Bits {
                        reserved: counter(BITS, RESERVED)?,
                        count: counter(BITS, COUNT)?,
                        max: counter(BITS, MAX)?,
                        value: counter(ATOMIC, "value")?,
                    })
                })()
                .ok_or_else(|| Unavailable::new(SOURCE, format!("`{BITS}` does not count in a known way")))?,
            ),
        };
        let mapped = UNMAPPERS.iter().filter_map(|class| {
            Some((counter(class, "totalCapacity").or_else(|| counter(class, "totalSize"))?, counter(class, "count")?))
        });
        Ok(Self { objects: objects.clone(), bits, mapped: mapped.collect() })
    }

    /// Whether `java.nio.Bits` was loaded when it was looked for: before the first direct buffer it is not.
    pub fn is_loaded(&self) -> bool {
        self.bits.is_some()
    }

    /// What is counted now.
    ///
    /// # Errors
    /// Where a collector moves one of the objects at this moment; soon it will not.
    pub fn read(&self, memory: &dyn Memory) -> Result<Direct, Unavailable> {
        let mut direct = Direct::default();
        if let Some(Bits { reserved, count, max, value }) = &self.bits {
            let within = |counter: &Counter| {
                self.objects.number_within(memory, (counter.class, &counter.field), (value.class, &value.field))
            };
            (direct.reserved_bytes, direct.buffers) = (within(reserved)?, within(count)?);
            direct.max_bytes = Some(self.number(memory, max)?);
        }
        for (bytes, count) in &self.mapped {
            direct.mapped_bytes += self.number(memory, bytes)?;
            direct.mapped_buffers += self.number(memory, count)?;
        }
        Ok(direct)
    }

    fn number(&self, memory: &dyn Memory, counter: &Counter) -> Result<u64, Unavailable> {
        self.objects.number(memory, counter.class, &counter.field)
    }
}
