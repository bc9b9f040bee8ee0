//! Ranges of addresses as the JVM tells them: `VM.info`, `VM.metaspace vslist`, `VM.native_memory detail`.

use super::{COLLECTORS, JDKS, between, text};
use loadline::observe::heap_info::{Collector, HeapInfo};
use loadline::observe::metaspace_nodes::{self, MetaspaceNode};
use loadline::observe::nmt_detail;
use loadline::observe::vm_info::{JvmRange, Purpose, VmInfo};
use loadline::units::Bytes;

/// Where a heap of 64 MiB with compressed oops ends up: right below 4 GiB.
const HEAP: (u64, u64) = (0xfc00_0000, 0x1_0000_0000);

/// Each JDK with each collector, and its `VM.info`.
fn replies() -> impl Iterator<Item = (u32, Collector, String)> {
    let pairs = JDKS.into_iter().flat_map(|jdk| COLLECTORS.map(|collector| (jdk, collector)));
    pairs.map(|(jdk, collector)| (jdk, collector, text(&format!("{jdk}/vm_info-{}.txt", collector.name()))))
}

fn of(info: &VmInfo, purpose: Purpose) -> Vec<&JvmRange> {
    info.ranges.iter().filter(|range| range.purpose == purpose).collect()
}

fn size(ranges: &[&JvmRange]) -> Bytes {
    Bytes(ranges.iter().map(|range| range.end - range.start).sum())
}

#[test]
fn the_heap_and_what_is_used_of_it() {
    for (jdk, collector, reply) in replies() {
        let what = format!("{jdk} {}", collector.name());
        let info = VmInfo::parse(&reply).unwrap();
        let heap = of(&info, Purpose::JavaHeap);
        if collector == Collector::Z {
            assert_eq!((info.heap_reserved, heap.len(), info.used_ranges.len()), (None, 0, 0), "{what}");
            continue;
        }
        assert_eq!((info.heap_reserved, size(&heap)), (Some(HEAP), Bytes::mib(64)), "{what}");
        assert!(info.used_ranges.iter().all(|used| HEAP.0 <= used.0 && used.0 < used.1 && used.1 <= HEAP.1), "{what}");
        assert!(info.used_ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{what}: {:?}", info.used_ranges);
        // The same reply tells the sum, before the table and in KiB; G1 leaves out what is still being filled.
        let used = HeapInfo::parse(&reply).unwrap().used;
        let sum: u64 = info.used_ranges.iter().map(|used| used.1 - used.0).sum();
        let apart = if matches!(collector, Collector::G1) { 2 << 20 } else { 4 << 10 };
        assert!(sum.abs_diff(used.0) <= apart, "{what}: {} {used}", Bytes(sum));
    }
}

#[test]
fn ranges_outside_the_heap() {
    for (jdk, collector, reply) in replies() {
        let what = format!("{jdk} {}", collector.name());
        let info = VmInfo::parse(&reply).unwrap();
        assert!(info.ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{what}: {:?}", info.ranges);

        let code = of(&info, Purpose::CodeCache);
        let names: Vec<_> = code.iter().map(|range| range.name.as_str()).collect();
        assert_eq!(names.len(), 3, "{what}");
        assert!(["non-nmethods", "profiled nmethods", "non-profiled nmethods"].iter().all(|name| names.contains(name)));
        // On JDK 25 the profiled one has a page more.
        between(Bytes::mib(240), size(&code), Bytes((240 << 20) + 4096), &what);
        for heap in code {
            let committed = heap.committed_end.unwrap() - heap.start;
            assert!((2 << 20..=4 << 20).contains(&committed), "{what}: {heap:?}");
        }

        // ZGC on 11 works without compressed class pointers.
        let class_space = if (jdk, collector) == (11, Collector::Z) { Bytes(0) } else { Bytes::mib(1024) };
        assert_eq!(size(&of(&info, Purpose::ClassSpace)), class_space, "{what}");
        // The jlinked runtimes have no archive.
        let cds = of(&info, Purpose::Cds);
        assert_eq!(cds.len(), usize::from(matches!(jdk, 17 | 25)), "{what}");
        assert!(cds.iter().all(|range| range.end - range.start > 8 << 20), "{what}: {cds:?}");
        assert_eq!(size(&of(&info, Purpose::PollingPage)), Bytes::kib(8), "{what}");
        assert_eq!(of(&info, Purpose::Metaspace).len(), 0);
    }
}

#[test]
fn side_tables_of_collectors() {
    for (jdk, collector, reply) in replies() {
        let info = VmInfo::parse(&reply).unwrap();
        // Names, and sizes in KiB: a bit for 8 bytes in a bitmap, a byte for 512 in a card table.
        let expect: &[(&str, u64)] = match (collector, jdk) {
            (Collector::Serial, _) => &[("card table", 128)],
            (Collector::Parallel, 25) => &[("card table", 128), ("marking bits (begin)", 1024)],
            (Collector::Parallel, _) => {
                &[("card table", 128), ("marking bits (begin)", 1024), ("marking bits (end)", 1024)]
            }
            (Collector::G1, 11 | 17) => {
                &[("card table", 128), ("marking bits (next)", 1024), ("marking bits (prev)", 1024)]
            }
            (Collector::G1, _) => &[("card table", 128), ("marking bits", 1024)],
            // A byte for each 256 KiB below 4 GiB.
            (Collector::Shenandoah, _) => &[("collection set map", 16)],
            (Collector::Z | Collector::Epsilon, _) => &[],
        };
        let tables = of(&info, Purpose::GcTable);
        // Up to JDK 21 the card tables of Serial and Parallel have a page more.
        let guard = if matches!(collector, Collector::Serial | Collector::Parallel) && jdk < 25 { 4 } else { 0 };
        let kib =
            |range: &JvmRange| ((range.end - range.start) >> 10) - if range.name == "card table" { guard } else { 0 };
        let mut found: Vec<_> = tables.iter().map(|range| (range.name.as_str(), kib(range))).collect();
        found.sort_unstable();
        assert_eq!(found, expect, "{jdk} {}", collector.name());
    }
}

#[test]
fn geometry_and_the_c_library() {
    for (jdk, collector, reply) in replies() {
        let what = format!("{jdk} {}", collector.name());
        let info = VmInfo::parse(&reply).unwrap();
        let geometry = info.collector_geometry;
        let region = match collector {
            Collector::G1 => Some(Bytes::mib(1)),
            Collector::Shenandoah => Some(Bytes::kib(256)),
            _ => None,
        };
        assert_eq!(geometry.region_size, region, "{what}");
        let cards = match collector {
            Collector::Serial | Collector::Parallel | Collector::G1 => jdk >= 21,
            Collector::Shenandoah => jdk == 25,
            _ => false,
        };
        assert_eq!(geometry.card_size, cards.then_some(Bytes(512)), "{what}");
        let told = jdk > 11;
        assert_eq!(geometry.capacity_max, told.then_some(Bytes::mib(64)), "{what}");
        assert_eq!(geometry.capacity_initial, told.then_some(Bytes::mib(64)), "{what}");
        assert_eq!(geometry.capacity_min.is_some(), told, "{what}");

        assert_eq!(info.libc.as_deref(), Some("glibc 2.36 NPTL 2.36"), "{what}");
        let (outstanding, retained) = info.c_heap.unwrap();
        between(Bytes::mib(1), outstanding, Bytes::mib(32), &what);
        assert_eq!(retained.is_some(), jdk > 11, "{what}");
        assert!(retained.is_none_or(|bytes| Bytes(0) < bytes && bytes < Bytes::mib(8)), "{what}");
    }
}

#[test]
fn nodes_of_metaspace() {
    for jdk in JDKS {
        for collector in ["serial", "g1"] {
            let what = format!("{jdk} {collector}");
            let nodes = metaspace_nodes::parse(&text(&format!("{jdk}/vslist-{collector}.txt"))).unwrap();
            // Of the same JVM, a moment before.
            let reply = text(&format!("{jdk}/vm_info-{collector}.txt"));
            let (info, heap) = (VmInfo::parse(&reply).unwrap(), HeapInfo::parse(&reply).unwrap());
            let (class, other): (Vec<MetaspaceNode>, Vec<_>) = nodes.iter().partition(|node| node.class_space);
            let committed = |nodes: &[MetaspaceNode]| Bytes(nodes.iter().map(|node| node.committed.0).sum());
            let reserved = |nodes: &[MetaspaceNode]| Bytes(nodes.iter().map(|node| node.end - node.start).sum());

            assert_eq!((class.len(), other.len()), (1, 1), "{what}");
            let space = of(&info, Purpose::ClassSpace)[0];
            assert_eq!((space.start, space.end), (class[0].start, class[0].end), "{what}");
            assert_eq!(reserved(&other), Bytes::mib(if jdk == 11 { 8 } else { 64 }), "{what}");
            assert!(info.ranges.iter().all(|range| other[0].end <= range.start || range.end <= other[0].start));
            assert!(committed(&other) >= Bytes::kib(128) && committed(&class) >= Bytes::kib(64), "{what}");
            if let (Some(metaspace), Some(space)) = (heap.metaspace, heap.class_space) {
                assert_eq!((committed(&nodes), reserved(&nodes)), (metaspace.committed, metaspace.reserved), "{what}");
                assert_eq!(committed(&class), space.committed, "{what}");
            }
        }
    }
}

#[test]
fn native_memory_in_detail() {
    for jdk in JDKS {
        let ranges = nmt_detail::ranges(&text(&format!("{jdk}/nmt_detail.txt")));
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{jdk}: {ranges:?}");
        let size = |category: &str| {
            Bytes(ranges.iter().filter(|range| range.2 == category).map(|range| range.1 - range.0).sum())
        };
        assert!(ranges.contains(&(HEAP.0, HEAP.1, "Java Heap".to_owned())), "{jdk}");
        // As `VmInfo` takes the polling page to be.
        assert_eq!((size("Java Heap"), size("Safepoint")), (Bytes::mib(64), Bytes::kib(8)), "{jdk}");
        let class = if jdk == 11 { Bytes::mib(1024 + 8) } else { Bytes::mib(1024) };
        assert_eq!((size("Class"), size("Metaspace")), (class, Bytes::mib(if jdk == 11 { 0 } else { 64 })), "{jdk}");
        between(Bytes::mib(240), size("Code"), Bytes::mib(242), &jdk.to_string());
        let threads = ranges.iter().filter(|range| range.2 == "Thread Stack").count();
        assert!(threads >= 10 && size("Thread Stack") == Bytes::mib(threads as u64), "{jdk}: {threads}");
    }
}
