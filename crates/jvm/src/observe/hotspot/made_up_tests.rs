//! JVM memory generated word by word, and memory with arbitrary contents. Readers must find what is there, reject
//! contradictions, and terminate.

use super::super::memory::Memory;
use super::super::metaspace_nodes::MetaspaceNode;
use super::flags::{Flag, FlagOrigin, Flags};
use super::made_up::{MadeUpMemory, PAGE};
use super::tables::Tables;
use super::{code, heap, metaspace};
use crate::kernel::mapping::Mapping;
use crate::observe::addresses::JvmAddresses;
use crate::observe::heap_info::Collector;
use loadline_base::units::Bytes;
use proptest::prelude::*;
use std::cell::Cell;

/// Answers each read with one of a few words, chosen by address, or with nothing; counts reads.
struct Anything {
    words: Vec<u64>,
    reads: Cell<u64>,
}

impl Memory for Anything {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + into.len() as u64);
        for (at, byte) in (0..into.len() as u64).map(|n| at.wrapping_add(n)).zip(into.iter_mut()) {
            let word = self.words[(at / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize % self.words.len()];
            *byte = word.to_le_bytes()[(at & 7) as usize];
        }
        !at.is_multiple_of(31)
    }
}

const CONTEXT: u64 = 0x10_0000;
const NODE: u64 = 0x20_0000;
const BITMAP: u64 = 0x30_0000;
const BASE: u64 = 0x7f00_0400_0000;
const NODE_BYTES: u64 = 64 << 20;

/// The variable, context, list, and two nodes of metaspace without a class space.
fn two_nodes() -> MadeUpMemory {
    let mut made = MadeUpMemory::default();
    made.words(CONTEXT, &[0, CONTEXT + 0x100]);
    made.words(CONTEXT + 0x100, &[CONTEXT + 0x400, CONTEXT + 0x200, 0]);
    made.words(CONTEXT + 0x200, &[0, CONTEXT + 0x400, NODE, 0x1_0000_0002, 0, 2 * NODE_BYTES / 8, 5 * 65536 / 8]);
    made.put(CONTEXT + 0x400, b"non-class-space\0");
    for (n, granules) in [(0, 0b111), (1, 0b11)] {
        let (node, base, bitmap) = (NODE + n * 0x100, BASE + n * 2 * NODE_BYTES, BITMAP + n * 0x1000);
        let next = if n == 0 { NODE + 0x100 } else { 0 };
        made.words(node, &[next, base, NODE_BYTES, 0, 0, 0, 1, base, NODE_BYTES / 8, 9, bitmap, NODE_BYTES / 65536]);
        made.words(bitmap, &[0; 16]);
        made.words(bitmap, &[granules]);
    }
    made
}

const VARIABLES: [Option<u64>; 2] = [Some(CONTEXT), Some(CONTEXT + 8)];

#[test]
fn consistent_nodes_are_accepted() {
    let node = |n: u64, granules: u64| MetaspaceNode {
        start: BASE + n * 2 * NODE_BYTES,
        end: BASE + n * 2 * NODE_BYTES + NODE_BYTES,
        committed: Bytes::kib(64 * granules),
        class_space: false,
    };
    assert_eq!(metaspace::nodes(&two_nodes(), VARIABLES), Ok(vec![node(0, 3), node(1, 2)]));
    assert!(metaspace::nodes(&two_nodes(), [None; 2]).is_err_and(|why| !why.is_early), "the library has no symbols");
}

#[test]
fn contradictory_nodes_are_rejected() {
    let changes = [
        ("a circular list", NODE + 0x100, NODE),
        ("another number of nodes", CONTEXT + 0x200 + 24, 3),
        ("an absurd number of nodes", CONTEXT + 0x200 + 24, 0xffff_ffff),
        ("more reserved than the nodes have", CONTEXT + 0x200 + 40, 3 * NODE_BYTES / 8),
        ("less committed than the nodes have", CONTEXT + 0x200 + 48, 4 * 65536 / 8),
        ("a node of another size", NODE + 16, NODE_BYTES + 65536),
        ("a node that spans all memory", NODE + 16, u64::MAX),
        ("a node at the end of memory", NODE + 8, u64::MAX - 65535),
        ("two nodes at one address", NODE + 0x108, BASE),
        ("a bitmap at an unmapped address", NODE + 0x50, 8),
    ];
    two_nodes().each_is_refused(&changes, |made| metaspace::nodes(made, VARIABLES));
    let mut named = two_nodes();
    named.put(CONTEXT + 0x400, b"class-space\0");
    assert!(metaspace::nodes(&named, VARIABLES).is_err(), "a node list with another name is rejected");
}

#[test]
fn nodes_with_an_unreadable_word_are_rejected_or_complete() {
    let mut less = two_nodes();
    let whole = metaspace::nodes(&less, VARIABLES).unwrap();
    let pages: Vec<u64> = less.pages.keys().copied().collect();
    for at in pages.into_iter().flat_map(|page| (page..page + PAGE).step_by(8)) {
        less.hole = at..at + 8;
        let read = metaspace::nodes(&less, VARIABLES);
        assert!(read.is_err() || read.as_ref() == Ok(&whole), "{at:#x}: {read:?}");
    }
}

const CHUNKS: u64 = 0x40_0000;

/// A loader with two chunks, of 4 MiB and 1 KiB, and no class space.
fn one_loader() -> MadeUpMemory {
    let mut made = two_nodes();
    made.words(CONTEXT + 0x110, &[CHUNKS]);
    made.words(CHUNKS + 0x100, &[0, 0, CHUNKS + 0x200, 0]);
    made.words(CHUNKS + 0x200, &[0, CHUNKS, 0, CHUNKS + 0x300, 2]);
    made.words(CHUNKS + 0x300, &[BASE + (4 << 20), 0, 0, 0x102, 0, 0, CHUNKS + 0x400]);
    made.words(CHUNKS + 0x400, &[BASE + (8 << 20), 0, 0, 0x10e, 0, CHUNKS + 0x300, 0]);
    made
}

#[test]
fn loader_chunks_are_checked_against_nodes() {
    let nodes = metaspace::nodes(&two_nodes(), VARIABLES).unwrap();
    let bytes = |made: &MadeUpMemory| {
        let taken = metaspace::Chunks::of(made, VARIABLES, &nodes).of_loader(CHUNKS + 0x100);
        taken.map(|taken| (taken.bytes, taken.used_bytes))
    };
    let mut made = one_loader();
    assert_eq!(bytes(&made), Ok(((4 << 20) + 1024, 0)));
    made.words(CHUNKS + 0x408, &[1024 / 8]);
    assert_eq!(bytes(&made), Ok(((4 << 20) + 1024, 1024)));
    let changes = [
        ("more used than a chunk has", CHUNKS + 0x408, 1024 / 8 + 1),
        ("more used than there is memory", CHUNKS + 0x408, u64::MAX),
        ("chunks in a circle", CHUNKS + 0x430, CHUNKS + 0x300),
        ("one chunk more", CHUNKS + 0x220, 3),
        ("an absurd number of chunks", CHUNKS + 0x220, u64::MAX),
        ("a chunk outside of all nodes", CHUNKS + 0x300, BASE - (4 << 20)),
        ("a misaligned chunk", CHUNKS + 0x300, BASE + (5 << 20)),
        ("a chunk with an invalid level", CHUNKS + 0x318, 0x1ff),
        ("free chunks of another space", CHUNKS + 0x208, CHUNKS + 8),
    ];
    one_loader().each_is_refused(&changes, bytes);
}

/// Returns the fields of G1 and the code cache that JDK 25 describes, with small offsets.
fn tables() -> Tables {
    let offsets = [
        ("CollectedHeap::_reserved", 0),
        ("MemRegion::_start", 0),
        ("MemRegion::_word_size", 8),
        ("G1CollectedHeap::_hrm", 16),
        ("G1HeapRegionManager::_regions", 0),
        ("G1HeapRegionTable::_base", 0),
        ("G1HeapRegionTable::_length", 8),
        ("G1HeapRegion::_bottom", 0),
        ("G1HeapRegion::_end", 8),
        ("G1HeapRegion::_top", 16),
        ("GrowableArrayBase::_len", 0),
        ("GrowableArray<int>::_data", 8),
        ("CodeHeap::_memory", 0),
        ("VirtualSpace::_low_boundary", 0),
        ("VirtualSpace::_low", 8),
        ("VirtualSpace::_high", 16),
        ("VirtualSpace::_high_boundary", 24),
        ("ZCollectedHeap::_heap", 0),
        ("ZHeap::_page_allocator", 0),
        ("ZPageAllocator::_max_capacity", 0),
        ("ZPageAllocator::_partitions", 8),
        ("ZPerNUMAZPartition::_addr", 0),
        ("ZPartition::_used", 0),
        ("ZPartition::_capacity", 8),
        ("EpsilonHeap::_space", 0),
        ("EpsilonHeap::_virtual_space", 16),
        ("ContiguousSpace::_bottom", 0),
        ("ContiguousSpace::_top", 8),
        ("ContiguousSpace::_end", 16),
        ("SerialHeap::_young_gen", 0),
        ("SerialHeap::_old_gen", 8),
        ("Generation::_virtual_space", 32),
        ("DefNewGeneration::_eden_space", 0),
        ("DefNewGeneration::_from_space", 8),
        ("DefNewGeneration::_to_space", 16),
        ("TenuredGeneration::_the_space", 0),
    ];
    let addresses = [
        ("Universe::_collectedHeap", 0x1000),
        ("G1HeapRegion::GrainBytes", 0x1008),
        ("CodeCache::_heaps", 0x1010),
        ("ZNUMA::_count", 0x1018),
    ];
    Tables::made_up(&offsets, &addresses, &[("CodeHeap", 64), ("ZPartition", 16)])
}

fn flags(on: &str) -> Flags {
    let flag = Flag { name: on.to_owned(), value: "true".to_owned(), origin: Some(FlagOrigin::CommandLine) };
    Flags { list: vec![flag] }
}

const REGION: u64 = 1 << 20;
const HEAP: u64 = 0xf000_0000;

/// G1 with four regions: half full, free, full, and never used.
fn g1() -> MadeUpMemory {
    let mut made = MadeUpMemory::default();
    made.words(0x1000, &[0x2000, REGION, 0x5000, 1]);
    made.words(0x2000, &[HEAP, 4 * REGION / 8, 0x3000, 4]);
    made.words(0x3000, &[0x4000, 0x4100, 0x4200, 0]);
    for (n, used) in [(0, REGION / 2), (1, 0), (2, REGION)] {
        let bottom = HEAP + n * REGION;
        made.words(0x4000 + n * 0x100, &[bottom, bottom + REGION, bottom + used]);
    }
    made
}

fn committed(regions: u64) -> Vec<Mapping> {
    let perms = "rw-p".to_owned();
    vec![Mapping { start: HEAP, end: HEAP + regions * REGION, perms: perms.into(), ..Mapping::default() }]
}

/// Shenandoah with 4 regions, described in 320 bytes each, in the units of each release.
#[test]
fn shenandoah_is_read_in_each_release() {
    let of_all = [
        ("CollectedHeap::_reserved", 16),
        ("MemRegion::_start", 0),
        ("MemRegion::_word_size", 8),
        ("ShenandoahHeap::_committed", 32),
        ("ShenandoahHeap::_num_regions", 40),
        ("ShenandoahHeap::_regions", 48),
    ];
    let counts: [&[(&str, u64)]; 3] = [
        &[("ShenandoahHeap::_used", 0)],
        &[("ShenandoahHeap::_global_generation", 8), ("ShenandoahGeneration::_used", 8)],
        &[("ShenandoahHeap::_free_set", 8), ("ShenandoahFreeSet::_total_global_used", 8)],
    ];
    let addresses = [("Universe::_collectedHeap", 0x1000), ("ShenandoahHeapRegion::RegionSizeBytes", 0x1008)];
    let (rows, size) = (0x7f00_0000, [("ShenandoahHeapRegion", 272)]);
    for counted in counts {
        let tables = Tables::made_up(&[&of_all, counted].concat(), &addresses, &size);
        let mut made = MadeUpMemory::default();
        made.words(0x1000, &[0x2000, REGION]);
        made.words(0x2000, &[REGION, 0x3000, HEAP, 4 * REGION / 8, 3 * REGION, 4, 0x4000]);
        made.words(0x3000, &[0, REGION]);
        made.words(0x4000, &[rows, rows + 320]);
        let read = |made: &MadeUpMemory| heap::read(made, &tables, &flags("UseShenandoahGC"), &[]).unwrap();
        let whole = read(&made);
        assert_eq!((whole.info.used.0, whole.info.committed.0), (REGION, 3 * REGION), "{counted:?}");
        assert_eq!(whole.addresses.heap_reserved, Some((HEAP, HEAP + 4 * REGION)));
        let [table] = whole.addresses.ranges.as_slice() else { panic!("{whole:?}") };
        assert_eq!((table.start, table.end), (rows, rows + 4 * 320));
        // Rows that are shorter than their contents, or much longer, do not form a table.
        for apart in [264, 4096] {
            made.words(0x4008, &[rows + apart]);
            assert_eq!(read(&made).addresses.ranges, []);
        }
    }
}

#[test]
fn regions_of_g1_are_added_up() {
    let read = |made: &MadeUpMemory, maps: &[Mapping]| heap::read(made, &tables(), &flags("UseG1GC"), maps);
    let whole = read(&g1(), &committed(3)).unwrap();
    assert_eq!((whole.info.collector, whole.info.used.0), (Collector::G1, REGION / 2 * 3));
    assert_eq!((whole.info.committed.0, whole.info.capacity_max.0), (3 * REGION, 4 * REGION));
    let JvmAddresses { heap_reserved, region_size, .. } = whole.addresses;
    assert_eq!((heap_reserved, region_size), (Some((HEAP, HEAP + 4 * REGION)), Some(Bytes(REGION))));
    assert!(read(&g1(), &committed(1)).is_err(), "a heap with less committed than used memory is rejected");
    let changes = [
        ("a top beyond its region", 0x4010, HEAP + REGION + 8),
        ("a region at another place", 0x4200, HEAP),
        ("more regions than the heap has room for", 0x2018, 5),
        ("an absurd number of regions", 0x2018, u64::MAX),
        ("regions of size zero", 0x1008, 0),
        ("a heap to the end of memory", 0x2008, u64::MAX / 8),
    ];
    g1().each_is_refused(&changes, |made| read(made, &committed(3)));
    assert!(heap::read(&g1(), &tables(), &flags("UseOtherGC"), &[]).is_err_and(|why| !why.is_early));
}

#[test]
fn code_heaps_are_listed_with_their_names() {
    let mut made = MadeUpMemory::default();
    made.words(0x1010, &[0x5000]);
    made.words(0x5000, &[2, 0x5100]);
    made.words(0x5100, &[0x6000, 0x7000]);
    made.words(0x6000, &[0x10_0000, 0x10_0000, 0x14_0000, 0x20_0000, 0, 0x8000, 5, 6]);
    made.words(0x7000, &[0x20_0000, 0x20_0000, 0x20_0000, 0x30_0000, 0x1_0000, 0x1_0040, 5, 6]);
    made.put(0x1_0000, b"CodeHeap\0");
    made.put(0x1_0040, b"CodeHeap 'non-nmethods'\0");
    let heaps = code::heaps(&made, &tables()).unwrap();
    let seen: Vec<_> = heaps.iter().map(|(heap, _)| (heap.name.as_str(), heap.start, heap.committed_end)).collect();
    assert_eq!(seen, [("CodeCache", 0x10_0000, Some(0x14_0000)), ("non-nmethods", 0x20_0000, Some(0x20_0000))]);
    made.words(0x6010, &[0x21_0000]);
    assert!(code::heaps(&made, &tables()).is_err(), "a code heap committed beyond its end is rejected");
    made.words(0x5000, &[u64::MAX]);
    assert!(code::heaps(&made, &tables()).is_err(), "an impossible number of code heaps is rejected");
}

proptest! {
    /// Reading terminates whatever the memory contains, and accepted values are in order.
    #[test]
    fn reading_any_memory_ends(words in prop::collection::vec(
        prop_oneof![
            0u64..16, any::<u64>(), 0x1000u64..0x9000, Just(HEAP), Just(HEAP + REGION), Just(REGION), Just(u64::MAX),
            0u64..1 << 47,
        ],
        1..24,
    )) {
        let memory = Anything { words, reads: Cell::new(0) };
        let tables = tables();
        for collector in ["UseSerialGC", "UseG1GC", "UseZGC", "UseEpsilonGC"] {
            if let Ok(read) = heap::read(&memory, &tables, &flags(collector), &committed(4)) {
                prop_assert!(read.info.used <= read.info.committed && read.info.committed <= read.info.capacity_max);
                prop_assert!(read.addresses.used_ranges.iter().all(|(bottom, top)| bottom <= top));
            }
        }
        for (heap, _) in code::heaps(&memory, &tables).into_iter().flatten() {
            prop_assert!(heap.start < heap.end && heap.committed_end <= Some(heap.end));
        }
        if let Ok(nodes) = metaspace::nodes(&memory, VARIABLES) {
            prop_assert!(nodes.iter().all(|node| node.start < node.end));
            let _ = metaspace::Chunks::of(&memory, VARIABLES, &nodes).of_loader(CHUNKS);
        }
        prop_assert!(memory.reads.get() < 1 << 26, "{} bytes", memory.reads.get());
    }
}
