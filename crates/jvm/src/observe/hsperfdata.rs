//! hsperfdata: about 190 counters that HotSpot keeps in a file that it maps (JDK 11–27; also shown by `jcmd PID
//! PerfCounter.print`). The file is read with `pread` rather than mapped, so truncation causes an error instead of a
//! SIGBUS.
//!
//! The counters depend on the collector (captured from 11, 17, 21, 25):
//! - Heap: `sun.gc.generation.N.capacity` adds up to the committed heap for every collector (Serial, Parallel, G1,
//!   generational ZGC: 0 and 1; ZGC before 25, Shenandoah, Epsilon: only 1 is used). The spaces' `used` adds up to the
//!   used heap as of the last collection (seen on 25; on 11, 17, and 21 the captured Eden agreed with `GC.heap_info`).
//! - Collections: `sun.gc.collector.N.{name,invocations,time}`; none for Epsilon, or for ZGC on 11. Times are pauses;
//!   no counter covers the concurrent work of ZGC and Shenandoah.
//! - Not included: code cache, direct buffers, addresses.

use super::hsperfdata_find;
use super::hsperfdata_format::{CounterLayout, Slot};
use super::memory::PAGE_MIN;
use super::procfs::{Process, read_from_start};
use super::{Read, Reading, Unavailable};
use loadline_base::clock::Clock;
use loadline_base::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::time::Duration;

pub(super) const SOURCE: &str = "hsperfdata";
/// Maximum size read. `-XX:PerfDataMemorySize` is 32 KiB by default, rounded up to a page.
const FILE_MAX: usize = 1 << 20;
/// Maximum number of generations and collectors in a JVM.
const PARTS_MAX: usize = 4;
/// Eden and two survivor spaces.
const SPACES_MAX: usize = 3;

/// A buffer for a larger file is freed after each reading.
const BUFFER_KEPT: usize = 128 << 10;

/// The counters of one JVM, open for repeated reads.
#[derive(Debug)]
pub struct HsPerf {
    file: File,
    buffer: Vec<u8>,
    /// How much of the file is read.
    len: usize,
    /// Without names: a sample uses `slots`.
    layout: CounterLayout,
    slots: SampleSlots,
}

/// The values that a sampler reads at 10–100 Hz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JvmSample {
    /// Java heap in use as of the last collection; see above.
    pub heap_used: Bytes,
    /// Committed Java heap.
    pub heap_committed: Bytes,
    /// Metaspace in use, including class space.
    pub metaspace_used: Bytes,
    /// Committed metaspace, including class space.
    pub metaspace_committed: Bytes,
    /// Collections so far; `None` if the collector does not count them: Epsilon, and ZGC on JDK 11.
    pub gc: Option<GcTotal>,
    /// Old-generation collections so far, after each of which all used memory is live; `None` as for `gc`.
    pub old_collections: Option<u64>,
    /// Live Java threads.
    pub threads: u64,
    /// Currently loaded classes, including those from the CDS archive.
    pub classes: u64,
    /// Machine code compiled so far, including discarded code (`sun.ci.nmethodCodeSize`).
    pub compiled: Bytes,
}

/// Totals over all kinds of collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcTotal {
    /// Number of collections so far (pauses, for ZGC and Shenandoah).
    pub count: u64,
    /// Their total time so far, in nanoseconds.
    pub ns: u64,
}

/// Counts of classes, from the JVM's own counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ClassCounts {
    /// Currently loaded, including those from the shared CDS archive.
    pub loaded: u64,
    /// Loaded from the CDS archive so far, including those unloaded since.
    pub shared: u64,
    /// Unloaded so far.
    pub unloaded: u64,
}

/// The sizes of the Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeapSizes {
    /// Reserved address space: the sum of the generations, and the largest one, because G1 counts the heap in each.
    pub reserved: [u64; 2],
    /// The committed part.
    pub committed: u64,
}

/// One kind of collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcCounter {
    /// `Serial young collection pauses`, on JDK 11 `Copy` …
    pub name: String,
    /// Number so far.
    pub count: u64,
    /// Total time so far.
    pub time: Duration,
}

/// The identity that a JVM reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JvmIdentity {
    /// `17.0.15`
    pub java_version: Option<String>,
    /// `17.0.15+6-Debian-1deb12u1`
    pub vm_version: Option<String>,
    /// `OpenJDK 64-Bit Server VM`
    pub vm_name: Option<String>,
    /// `Debian`, `Eclipse Adoptium` …
    pub vendor: Option<String>,
    /// Path in the JVM's mount namespace.
    pub java_home: Option<String>,
    /// JVM options from the command line, `JAVA_TOOL_OPTIONS`, and similar variables.
    pub vm_args: Option<String>,
    /// Options from `.hotspotrc` and `-XX:Flags=FILE`.
    pub vm_flags: Option<String>,
    /// Main class or archive, with its arguments.
    pub command: Option<String>,
}

/// A copy of all counters at one moment.
#[derive(Debug, Clone)]
pub struct Counters {
    bytes: Vec<u8>,
    layout: CounterLayout,
}

impl HsPerf {
    /// Finds and opens the counters of a JVM.
    pub fn open(process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        let status = process.status(clock)?.value;
        let file = hsperfdata_find::open(process, &status, clock)?;
        let len = file.metadata().map_or(FILE_MAX, |about| about.len() as usize).min(FILE_MAX);
        let mut buffer = vec![0; len];
        let bytes = read_from_start(&file, &mut buffer).map_err(Unavailable::io(SOURCE))?;
        let layout = CounterLayout::parse(bytes)?;
        let slots = SampleSlots::of(&layout, bytes);
        let mut counters = Self { file, buffer, len, layout: layout.nameless(), slots };
        counters.give_back();
        Ok(counters)
    }

    /// Reads the few counters that a sampler needs. Allocates only if the JVM has added counters since the last call,
    /// or the file is larger than any so far.
    pub fn sample(&mut self, clock: &Clock) -> Read<JvmSample> {
        self.read(clock, |counters, bytes| Ok(counters.slots.sample(&counters.layout, bytes)))
    }

    /// Reads all counters.
    pub fn counters(&mut self, clock: &Clock) -> Read<Counters> {
        self.read(clock, |_, bytes| Counters::parse(bytes))
    }

    fn read<T>(&mut self, clock: &Clock, of: impl FnOnce(&Self, &[u8]) -> Result<T, Unavailable>) -> Read<T> {
        Reading::take(clock, || {
            let end = self.refresh()?;
            let read = of(self, &self.buffer[..end]);
            self.give_back();
            read
        })
    }

    fn give_back(&mut self) {
        if self.len > BUFFER_KEPT {
            self.buffer = Vec::new();
        }
    }

    /// Reads the file again; returns its size.
    fn refresh(&mut self) -> Result<usize, Unavailable> {
        self.buffer.resize(self.len, 0);
        let bytes = read_from_start(&self.file, &mut self.buffer).map_err(Unavailable::io(SOURCE))?;
        if self.layout.count_in(bytes) != Some(self.layout.count) {
            let layout = CounterLayout::parse(bytes)?;
            self.slots = SampleSlots::of(&layout, bytes);
            self.layout = layout.nameless();
        }
        Ok(bytes.len())
    }
}

impl Counters {
    /// Parses the bytes of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unavailable> {
        Ok(Self { layout: CounterLayout::parse(bytes)?, bytes: bytes.to_vec() })
    }

    /// A number by its counter's name.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.layout.number(&self.bytes, self.layout.slot(name)?)
    }

    /// A string by its counter's name.
    pub fn text(&self, name: &str) -> Option<String> {
        self.layout.text(&self.bytes, self.layout.slot(name)?)
    }

    /// The names of all counters, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.layout.slots.iter().map(|(name, _)| name.as_str())
    }

    /// The few values that a sampler needs.
    pub fn sample(&self) -> JvmSample {
        SampleSlots::of(&self.layout, &self.bytes).sample(&self.layout, &self.bytes)
    }

    /// The sizes of the heap.
    pub fn heap_sizes(&self) -> HeapSizes {
        let most = (0..PARTS_MAX).filter_map(|n| self.number(&format!("sun.gc.generation.{n}.maxCapacity")));
        let most: Vec<u64> = most.map(|bytes| bytes.max(0) as u64 & !(PAGE_MIN - 1)).collect();
        let sum = most.iter().copied().fold(0, u64::saturating_add);
        let reserved = [sum, most.iter().copied().max().unwrap_or(0)];
        HeapSizes { reserved, committed: self.sample().heap_committed.0 }
    }

    /// Collections so far, one entry per kind.
    pub fn collections(&self) -> Vec<GcCounter> {
        let tick = tick_ns(&self.layout, &self.bytes);
        let one = |n| {
            let part = |key: &str| format!("sun.gc.collector.{n}.{key}");
            let ticks = self.number(&part("time"))?.max(0) as f64;
            Some(GcCounter {
                name: self.text(&part("name"))?,
                count: self.number(&part("invocations"))?.max(0) as u64,
                time: Duration::from_nanos((ticks * tick) as u64),
            })
        };
        (0..PARTS_MAX).filter_map(one).collect()
    }

    /// From the counters `java.cls.*`; `None` if the JVM does not count classes.
    pub fn classes(&self) -> Option<ClassCounts> {
        let number = |name: &str| self.number(&format!("java.cls.{name}")).map(|count| count.max(0) as u64);
        let shared = number("sharedLoadedClasses").unwrap_or(0);
        let unloaded =
            number("unloadedClasses").unwrap_or(0).saturating_add(number("sharedUnloadedClasses").unwrap_or(0));
        let loaded = number("loadedClasses")?.saturating_add(shared).saturating_sub(unloaded);
        Some(ClassCounts { loaded, shared, unloaded })
    }

    /// The feature release: 17 for `17.0.15`.
    pub fn release(&self) -> Option<u32> {
        let version = self.text("java.property.java.version")?;
        version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }

    /// Version, options, and command.
    pub fn identity(&self) -> JvmIdentity {
        let text = |name| self.text(name).filter(|text| !text.is_empty());
        JvmIdentity {
            java_version: text("java.property.java.version"),
            vm_version: text("java.property.java.vm.version"),
            vm_name: text("java.property.java.vm.name"),
            vendor: text("java.property.java.vm.vendor"),
            java_home: text("java.property.java.home"),
            vm_args: text("java.rt.vmArgs"),
            vm_flags: text("java.rt.vmFlags"),
            command: text("sun.rt.javaCommand"),
        }
    }

    /// Whether the JVM lets tools attach; `None` until it has reported that.
    pub fn attach_supported(&self) -> Option<bool> {
        self.text("sun.rt.jvmCapabilities")?.chars().next().map(|first| first == '1')
    }
}

/// Nanoseconds per tick of the JVM's clock.
fn tick_ns(layout: &CounterLayout, bytes: &[u8]) -> f64 {
    let frequency = layout.slot("sun.os.hrt.frequency").and_then(|slot| layout.number(bytes, slot));
    1e9 / frequency.filter(|per_s| *per_s > 0).unwrap_or(1_000_000_000) as f64
}

/// Determines which counters count old-generation collections. A collector with one generation counts all of its own.
///
/// ```text
/// 0 Serial young collection pauses    1 Serial full collection pauses                                    JDK 17–25
/// 0 G1 young collection pauses        1 G1 full collection pauses        2 G1 stop-the-world phases
/// 0 ZGC minor collection pauses       1 ZGC major collection pauses
/// 0 Copy                              1 MSC                                                              JDK 11
/// ```
fn old_count(layout: &CounterLayout, bytes: &[u8]) -> Vec<(Slot, u64)> {
    let part = |n: usize, key: &str| layout.slot(&format!("sun.gc.collector.{n}.{key}"));
    let old = |n: usize| {
        let (slot, name) = (part(n, "invocations")?, part(n, "name")?);
        // A concurrent cycle of G1 has two pauses, `Remark` and `Cleanup`.
        let marks = layout.text(bytes, name).is_some_and(|name| name.contains("stop-the-world phases"));
        Some((slot, if marks { 2 } else { 1 }))
    };
    let of_generations: Vec<_> = (1..PARTS_MAX).filter_map(old).collect();
    if of_generations.is_empty() { old(0).into_iter().collect() } else { of_generations }
}

#[derive(Debug, Default)]
struct SampleSlots {
    heap_used: Vec<Slot>,
    heap_committed: Vec<Slot>,
    metaspace_used: Vec<Slot>,
    metaspace_committed: Vec<Slot>,
    gc_count: Vec<Slot>,
    gc_ticks: Vec<Slot>,
    /// The counters of old-generation collections, each with the number of pauses of one collection.
    old_count: Vec<(Slot, u64)>,
    threads: Vec<Slot>,
    classes_in: Vec<Slot>,
    classes_out: Vec<Slot>,
    compiled: Vec<Slot>,
    tick_ns: f64,
}

impl SampleSlots {
    fn of(layout: &CounterLayout, bytes: &[u8]) -> Self {
        let slots = |names: &[&str]| names.iter().filter_map(|name| layout.slot(name)).collect();
        let parts = |first: &str, last: &str| {
            (0..PARTS_MAX).filter_map(|n| layout.slot(&format!("{first}.{n}.{last}"))).collect::<Vec<_>>()
        };
        Self {
            heap_used: (0..SPACES_MAX).flat_map(|n| parts("sun.gc.generation", &format!("space.{n}.used"))).collect(),
            heap_committed: parts("sun.gc.generation", "capacity"),
            metaspace_used: slots(&["sun.gc.metaspace.used"]),
            metaspace_committed: slots(&["sun.gc.metaspace.capacity"]),
            gc_count: parts("sun.gc.collector", "invocations"),
            gc_ticks: parts("sun.gc.collector", "time"),
            old_count: old_count(layout, bytes),
            threads: slots(&["java.threads.live"]),
            classes_in: slots(&["java.cls.loadedClasses", "java.cls.sharedLoadedClasses"]),
            classes_out: slots(&["java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses"]),
            compiled: slots(&["sun.ci.nmethodCodeSize"]),
            tick_ns: tick_ns(layout, bytes),
        }
    }

    fn sample(&self, layout: &CounterLayout, bytes: &[u8]) -> JvmSample {
        let number = |slot: &Slot| layout.number(bytes, *slot).unwrap_or(0).max(0) as u64;
        let sum = |slots: &[Slot]| slots.iter().map(number).fold(0, u64::saturating_add);
        JvmSample {
            heap_used: Bytes(sum(&self.heap_used)),
            // Up to JDK 21, G1 adds a few bytes to each capacity to keep jstat from dividing by zero.
            heap_committed: Bytes(sum(&self.heap_committed) & !(PAGE_MIN - 1)),
            metaspace_used: Bytes(sum(&self.metaspace_used)),
            metaspace_committed: Bytes(sum(&self.metaspace_committed)),
            gc: (!self.gc_count.is_empty()).then(|| GcTotal {
                count: sum(&self.gc_count),
                ns: (sum(&self.gc_ticks) as f64 * self.tick_ns) as u64,
            }),
            old_collections: (!self.gc_count.is_empty()).then(|| {
                self.old_count.iter().map(|(slot, pauses)| number(slot) / pauses).fold(0, u64::saturating_add)
            }),
            threads: sum(&self.threads),
            classes: sum(&self.classes_in).saturating_sub(sum(&self.classes_out)),
            compiled: Bytes(sum(&self.compiled)),
        }
    }
}
