//! Direct memory as the JDK itself counts it (`java.nio.Bits`, JDK 11–25), and the buffers of mapped files
//! (`sun.nio.ch.FileChannelImpl`): what `BufferPoolMXBean` says, without asking. What goes past the JDK is not in it:
//! `Arena.ofShared`, `Unsafe.allocateMemory`, and Netty where it counts for itself, which stands beside it.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::SOURCE;
use super::classes::Field;
use super::classes::Walk;
use super::objects::Objects;
use std::collections::BTreeMap;

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

/// Netty's, wherever a jar may have moved it.
const NETTY: &str = "netty/util/internal/PlatformDependent";
const NETTY_COUNTER: &str = "DIRECT_MEMORY_COUNTER";
/// Copies of Netty in one JVM that are looked at.
const NETTY_MAX: usize = 16;

/// Direct memory, by the JDK's counters and Netty's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direct {
    /// Bytes that direct buffers have reserved, with what aligns them.
    pub reserved_bytes: u64,
    /// How many direct buffers there are.
    pub buffers: u64,
    /// What Netty has allocated past the JDK, by its own counters; `None` where it leaves counting to the JDK.
    pub netty_bytes: Option<u64>,
    /// The limit: `-XX:MaxDirectMemorySize`, or the heap's.
    pub max_bytes: Option<u64>,
    /// Bytes of the buffers of mapped files, resident or not.
    pub mapped_bytes: u64,
    /// How many such buffers there are.
    pub mapped_buffers: u64,
}

impl Direct {
    /// All that is known to be direct memory.
    pub fn bytes(&self) -> u64 {
        self.reserved_bytes.saturating_add(self.netty_bytes.unwrap_or(0))
    }
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
    netty: Vec<Counter>,
    /// The number within a counter that is an object.
    value: Option<Counter>,
}

#[derive(Debug, Clone)]
struct Bits {
    reserved: Counter,
    count: Counter,
    max: Counter,
}

impl DirectCounters {
    /// Looks for the classes that count, among all that are loaded.
    ///
    /// # Errors
    /// Where classes cannot be read, or count in another way.
    pub fn find(objects: &Objects, memory: &dyn Memory) -> Result<Self, Unavailable> {
        let (mut found, mut netty): (BTreeMap<String, u64>, Vec<u64>) = Default::default();
        objects.classes().walk(memory, |_, class| {
            match objects.classes().name(memory, class) {
                Some(name) if name == BITS || name == ATOMIC || UNMAPPERS.contains(&name.as_str()) => {
                    found.entry(name).or_insert(class);
                }
                Some(name) if name.ends_with(NETTY) && netty.len() < NETTY_MAX => netty.push(class),
                _ => {}
            }
            Walk::On
        })?;
        let field =
            |class: u64, name: &str| Some(Counter { class, field: objects.classes().field(memory, class, name)? });
        let counter = |class: &str, name: &str| field(*found.get(class)?, name);
        let bits = match found.contains_key(BITS) {
            false => None,
            true => Some(
                (|| {
                    Some(Bits {
                        reserved: counter(BITS, RESERVED)?,
                        count: counter(BITS, COUNT)?,
                        max: counter(BITS, MAX)?,
                    })
                })()
                .ok_or_else(|| Unavailable::new(SOURCE, format!("`{BITS}` does not count in a known way")))?,
            ),
        };
        let mapped = UNMAPPERS.iter().filter_map(|class| {
            Some((counter(class, "totalCapacity").or_else(|| counter(class, "totalSize"))?, counter(class, "count")?))
        });
        let mapped = mapped.collect();
        let netty = netty.into_iter().filter_map(|class| field(class, NETTY_COUNTER)).collect();
        Ok(Self { objects: objects.clone(), bits, mapped, netty, value: counter(ATOMIC, "value") })
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
        if let (Some(Bits { reserved, count, max }), Some(value)) = (&self.bits, &self.value) {
            let within = |counter| self.within(memory, counter, value);
            (direct.reserved_bytes, direct.buffers) = (within(reserved)?, within(count)?);
            direct.max_bytes = Some(self.number(memory, max)?);
        }
        for (counter, value) in self.netty.iter().zip(self.value.iter().cycle()) {
            if self.objects.refers(memory, counter.class, &counter.field)? {
                *direct.netty_bytes.get_or_insert(0) += self.within(memory, counter, value)?;
            }
        }
        for (bytes, count) in &self.mapped {
            direct.mapped_bytes += self.number(memory, bytes)?;
            direct.mapped_buffers += self.number(memory, count)?;
        }
        Ok(direct)
    }

    fn within(&self, memory: &dyn Memory, counter: &Counter, value: &Counter) -> Result<u64, Unavailable> {
        self.objects.number_within(memory, (counter.class, &counter.field), (value.class, &value.field))
    }

    fn number(&self, memory: &dyn Memory, counter: &Counter) -> Result<u64, Unavailable> {
        self.objects.number(memory, counter.class, &counter.field)
    }
}
