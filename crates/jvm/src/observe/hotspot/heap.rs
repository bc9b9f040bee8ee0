//! The Java heap as described by its collector's own structures (Serial, Parallel, G1, Shenandoah, ZGC, Epsilon; JDK
//! 17–27): bounds, spaces, and regions. The values are those of `GC.heap_info` at the same moment. The JVM keeps
//! running, so a reading is rejected unless its bounds are in order, with each top within them.

use super::super::Unavailable;
use super::super::addresses::{JvmAddresses, JvmRange, Purpose};
use super::super::heap_info::{Collector, HeapInfo};
use super::super::memory::Memory;
use super::super::text::ADDRESS_END;
use super::fields::{Fields, VirtualSpace, absurd, unread};
use super::flags::Flags;
use super::objects::Objects;
use super::regions::Regions;
use super::tables::Tables;
use super::{SOURCE, regions};
use crate::kernel::mapping::Mapping;
use loadline_base::units::Bytes;

pub use super::regions::HumongousRecord;

/// One per NUMA node (`ZNUMA`).
const PARTITIONS_MAX: u32 = 1024;

/// The maximum padding of a table row: a cache line.
const ROW_SLACK_MAX: u64 = 128;

/// The heap, and where its objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapRead {
    /// Sizes.
    pub info: HeapInfo,
    /// The addresses of the heap. Empty for ZGC, which maps its heap more than once or anywhere. `ranges` contains the
    /// memory in which Shenandoah describes its regions.
    pub addresses: JvmAddresses,
    /// G1's humongous objects, which have their own regions; `None` for other collectors, or if the JVM does not
    /// describe them.
    pub humongous: Option<HumongousRecord>,
}

/// A space that contains objects from its bottom to its top.
#[derive(Debug, Clone, Copy)]
struct Space {
    bottom: u64,
    top: u64,
    end: u64,
}

/// A generation: its memory, its spaces, and which of those count as used.
struct Generation {
    memory: VirtualSpace,
    spaces: Vec<Space>,
}

const SPACE: [&[&str]; 3] = [
    &["Space::_bottom", "ContiguousSpace::_bottom"],
    &["ContiguousSpace::_top"],
    &["Space::_end", "ContiguousSpace::_end"],
];
const MUTABLE: [&[&str]; 3] = [&["MutableSpace::_bottom"], &["MutableSpace::_top"], &["MutableSpace::_end"]];

/// Reads the heap. `maps` must be current, because it shows what G1 has committed. Fails if the collector is unknown,
/// this JVM does not describe its heap, or its values are inconsistent.
pub fn read(memory: &dyn Memory, tables: &Tables, flags: &Flags, maps: &[Mapping]) -> Result<HeapRead, Unavailable> {
    let fields = Fields { memory, tables };
    let heap = fields.of_class(&["Universe::_collectedHeap"])?;
    let read = match Collector::selected(|flag| flags.is_on(flag) == Some(true)) {
        Some(Collector::Serial) => serial(fields, heap),
        Some(Collector::Parallel) => parallel(fields),
        Some(Collector::G1) => g1(fields, heap, flags, maps),
        Some(Collector::Shenandoah) => shenandoah(fields, heap),
        Some(Collector::Z) => z(fields, heap, flags),
        Some(Collector::Epsilon) => epsilon(fields, heap),
        None => return Err(Unavailable::new(SOURCE, "its collector is unknown")),
    }?;
    plausible(&read).then_some(read).ok_or_else(|| absurd("the heap"))
}

/// Whether used, committed, and maximum are in ascending order, within any known bounds.
fn plausible(heap: &HeapRead) -> bool {
    let HeapInfo { used, committed, capacity_max, .. } = heap.info;
    let JvmAddresses { heap_reserved, used_ranges, .. } = &heap.addresses;
    let bounded = heap_reserved.is_none_or(|(start, end)| {
        let inside = |(bottom, top): &(u64, u64)| start <= *bottom && bottom <= top && *top <= end;
        start < end && end <= ADDRESS_END && capacity_max.0 <= end - start && used_ranges.iter().all(inside)
    });
    bounded && used <= committed && committed <= capacity_max
}

fn space(fields: Fields<'_>, at: u64, [bottom, top, end]: [&[&str]; 3]) -> Result<Space, Unavailable> {
    let space = Space { bottom: fields.word(at, bottom)?, top: fields.word(at, top)?, end: fields.word(at, end)? };
    let ordered = space.bottom <= space.top && space.top <= space.end && space.end <= ADDRESS_END;
    if ordered { Ok(space) } else { Err(absurd("a space of the heap")) }
}

/// The range of the whole heap (`CollectedHeap::_reserved`).
fn reserved(fields: Fields<'_>, heap: u64) -> Result<(u64, u64), Unavailable> {
    let region = fields.place(heap, &["CollectedHeap::_reserved"])?;
    let (start, words) =
        (fields.word(region, &["MemRegion::_start"])?, fields.word(region, &["MemRegion::_word_size"])?);
    let end = words.checked_mul(8).and_then(|bytes| start.checked_add(bytes));
    end.filter(|end| start < *end && *end <= ADDRESS_END).map(|end| (start, end)).ok_or_else(|| absurd("the heap"))
}

impl Generation {
    /// Reads the generation at this address: its memory, and the spaces in the given fields.
    fn read(
        fields: Fields<'_>,
        at: u64,
        memory: VirtualSpace,
        (spaces, form): (&[&str], [&[&str]; 3]),
    ) -> Result<Self, Unavailable> {
        let space = |field: &&str| space(fields, fields.pointer(at, &[*field])?, form);
        Ok(Self { memory, spaces: spaces.iter().map(space).collect::<Result<_, _>>()? })
    }
}

fn serial(fields: Fields<'_>, heap: u64) -> Result<HeapRead, Unavailable> {
    let generation = |names: [&str; 2], spaces: &[&str]| {
        let at = fields.pointer(heap, &names)?;
        let memory = fields.virtual_space(fields.place(at, &["Generation::_virtual_space"])?)?;
        Generation::read(fields, at, memory, (spaces, SPACE))
    };
    let young = generation(
        ["GenCollectedHeap::_young_gen", "SerialHeap::_young_gen"],
        &["DefNewGeneration::_eden_space", "DefNewGeneration::_from_space", "DefNewGeneration::_to_space"],
    )?;
    let old = ["GenCollectedHeap::_old_gen", "SerialHeap::_old_gen"];
    generations(Collector::Serial, young, generation(old, &["TenuredGeneration::_the_space"])?)
}

fn parallel(fields: Fields<'_>) -> Result<HeapRead, Unavailable> {
    let generation = |at: u64, memory: &str, spaces: &[&str]| {
        if at == 0 {
            return Err(unread());
        }
        let memory = fields.pointer(at, &[memory])?;
        let word = |field: &str| fields.word(memory, &[field]);
        let memory = VirtualSpace {
            start: word("PSVirtualSpace::_reserved_low_addr")?,
            low: word("PSVirtualSpace::_committed_low_addr")?,
            high: word("PSVirtualSpace::_committed_high_addr")?,
            end: word("PSVirtualSpace::_reserved_high_addr")?,
        };
        Generation::read(fields, at, memory.plausible()?, (spaces, MUTABLE))
    };
    let young = generation(
        fields.of_class(&["ParallelScavengeHeap::_young_gen"])?,
        "PSYoungGen::_virtual_space",
        &["PSYoungGen::_eden_space", "PSYoungGen::_from_space", "PSYoungGen::_to_space"],
    )?;
    let old = fields.of_class(&["ParallelScavengeHeap::_old_gen"])?;
    let old = generation(old, "PSOldGen::_virtual_space", &["PSOldGen::_object_space"])?;
    generations(Collector::Parallel, young, old)
}

/// Adds up both generations. Objects in the second survivor space, during a collection, do not count as used.
fn generations(collector: Collector, young: Generation, old: Generation) -> Result<HeapRead, Unavailable> {
    let apart = young.memory.end <= old.memory.start || old.memory.end <= young.memory.start;
    let within = |of: &Generation| {
        let fits = |space: &Space| of.memory.low <= space.bottom && space.end <= of.memory.high;
        of.spaces.iter().all(fits)
    };
    if !apart || !within(&young) || !within(&old) {
        return Err(absurd("the heap"));
    }
    let counted = young.spaces.iter().take(2).chain(&old.spaces);
    let used = counted.map(|space| space.top - space.bottom).sum();
    let (committed, most) = (old.memory.committed(), old.memory.reserved());
    let mut read = sizes(collector, used, young.memory.committed() + committed, young.memory.reserved() + most);
    read.info.old = Some((Bytes(committed), Bytes(most)));
    let (start, end) = (young.memory.start.min(old.memory.start), young.memory.end.max(old.memory.end));
    read.addresses.heap_reserved = Some((start, end));
    read.addresses.used_ranges =
        young.spaces.iter().chain(&old.spaces).map(|space| (space.bottom, space.top)).collect();
    Ok(read)
}

fn g1(fields: Fields<'_>, heap: u64, flags: &Flags, maps: &[Mapping]) -> Result<HeapRead, Unavailable> {
    let (start, end) = reserved(fields, heap)?;
    let size = fields.of_class(&["G1HeapRegion::GrainBytes", "HeapRegion::GrainBytes"])?;
    let objects = Objects::of(fields.tables, flags, fields.memory).ok();
    let Regions { used, humongous } = regions::read(fields, objects.as_ref(), heap, (start, end), size)?;
    // Large pages are committed all at once, whatever G1 does with them.
    let large = flags.is_on("UseLargePages") == Some(true) && flags.is_on("UseTransparentHugePages") != Some(true);
    let committed = match large {
        true => regions::monitored(fields, heap)?,
        false => regions::committed(maps, (start, end)),
    };
    if !committed.is_multiple_of(size) {
        return Err(absurd("the committed part of the heap"));
    }
    let mut read = sizes(Collector::G1, used, committed, end - start);
    read.addresses = in_regions((start, end), size);
    Ok(HeapRead { humongous, ..read })
}

fn shenandoah(fields: Fields<'_>, heap: u64) -> Result<HeapRead, Unavailable> {
    // JDK 26 and newer keep the count in the set of free regions, 25 in a generation, older ones in the heap.
    let kept = [
        ("ShenandoahHeap::_free_set", "ShenandoahFreeSet::_total_global_used"),
        ("ShenandoahHeap::_global_generation", "ShenandoahGeneration::_used"),
    ];
    let kept = kept
        .iter()
        .find(|(object, used)| fields.tables.offset(&[object]).is_ok() && fields.tables.offset(&[used]).is_ok());
    let used = match kept {
        Some((object, used)) => fields.word(fields.pointer(heap, &[object])?, &[used])?,
        None => fields.word(heap, &["ShenandoahHeap::_used"])?,
    };
    let committed = fields.word(heap, &["ShenandoahHeap::_committed"])?;
    let size = fields.of_class(&["ShenandoahHeapRegion::RegionSizeBytes"])?;
    let most = fields.word(heap, &["ShenandoahHeap::_num_regions"])?.checked_mul(size);
    let most = most.filter(|_| size > 0).ok_or_else(|| absurd("the heap"))?;
    let mut read = sizes(Collector::Shenandoah, used, committed, most);
    read.addresses = in_regions(reserved(fields, heap)?, size);
    read.addresses.ranges.extend(region_table(fields, heap, most / size));
    Ok(read)
}

fn in_regions(reserved: (u64, u64), size: u64) -> JvmAddresses {
    JvmAddresses { heap_reserved: Some(reserved), region_size: Some(Bytes(size)), ..JvmAddresses::default() }
}

/// Shenandoah stores its region descriptions contiguously, and its heap has a pointer to each. A row has the size of
/// `ShenandoahHeapRegion`, rounded up to cache lines.
fn region_table(fields: Fields<'_>, heap: u64, count: u64) -> Option<JvmRange> {
    let pointers = fields.pointer(heap, &["ShenandoahHeap::_regions"]).ok()?;
    let [first, second] = [0, 8].map(|at| fields.memory.u64(pointers.checked_add(at)?));
    let least = fields.tables.size("ShenandoahHeapRegion").ok()?;
    let row = second?.checked_sub(first?).filter(|row| (least..least + ROW_SLACK_MAX).contains(row))?;
    let (start, end) = (first?, first?.checked_add(row.checked_mul(count)?)?);
    let name = "regions of the heap".to_owned();
    Some(JvmRange { start, end, committed_end: None, purpose: Purpose::GcTable, name })
}

/// ZGC with one or two generations is `Z`; in JDK 21 and 22, non-generational ZGC is `X`.
fn z(fields: Fields<'_>, heap: u64, flags: &Flags) -> Result<HeapRead, Unavailable> {
    let one = flags.is_on("ZGenerational") == Some(false);
    let named = |z: &'static str, x: &'static str| if one { [x] } else { [z] };
    let heap = fields.place(heap, &named("ZCollectedHeap::_heap", "XCollectedHeap::_heap"))?;
    let pages = fields.place(heap, &named("ZHeap::_page_allocator", "XHeap::_page_allocator"))?;
    let word = |z: &'static str, x: &'static str| fields.word(pages, &named(z, x));
    let most = word("ZPageAllocator::_max_capacity", "XPageAllocator::_max_capacity")?;
    let capacity = word("ZPageAllocator::_capacity", "XPageAllocator::_capacity");
    let (used, capacity) = match capacity {
        Ok(capacity) => (word("ZPageAllocator::_used", "XPageAllocator::_used")?, capacity),
        Err(_) => partitions(fields, pages)?,
    };
    Ok(sizes(Collector::Z, used, capacity, most))
}

/// Used and committed bytes of all partitions (JDK 25–27).
fn partitions(fields: Fields<'_>, pages: u64) -> Result<(u64, u64), Unavailable> {
    let count = fields.memory.u32(fields.tables.address(&["ZNUMA::_count"])?).ok_or_else(unread)?;
    let each = fields.place(pages, &["ZPageAllocator::_partitions"])?;
    let (first, size) = (fields.pointer(each, &["ZPerNUMAZPartition::_addr"])?, fields.tables.size("ZPartition")?);
    if !(1..=PARTITIONS_MAX).contains(&count) {
        return Err(absurd("the heap"));
    }
    let mut sums = (0u64, 0u64);
    for n in 0..u64::from(count) {
        let partition = first.checked_add(n * size).ok_or_else(unread)?;
        sums.0 = sums.0.saturating_add(fields.word(partition, &["ZPartition::_used"])?);
        sums.1 = sums.1.saturating_add(fields.word(partition, &["ZPartition::_capacity"])?);
    }
    Ok(sums)
}

fn epsilon(fields: Fields<'_>, heap: u64) -> Result<HeapRead, Unavailable> {
    let objects = space(fields, fields.pointer(heap, &["EpsilonHeap::_space"])?, SPACE)?;
    let memory = fields.virtual_space(fields.place(heap, &["EpsilonHeap::_virtual_space"])?)?;
    let used = objects.top - objects.bottom;
    let mut read = sizes(Collector::Epsilon, used, memory.committed(), memory.reserved());
    read.addresses.heap_reserved = Some((memory.start, memory.end));
    read.addresses.used_ranges = vec![(objects.bottom, objects.top)];
    Ok(read)
}

fn sizes(collector: Collector, used: u64, committed: u64, most: u64) -> HeapRead {
    let (used, committed, capacity_max) = (Bytes(used), Bytes(committed), Bytes(most));
    let info = HeapInfo { collector, used, committed, capacity_max, old: None, metaspace: None, class_space: None };
    HeapRead { info, addresses: JvmAddresses::default(), humongous: None }
}
