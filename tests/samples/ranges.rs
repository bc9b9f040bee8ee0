//! Address ranges as reported by the JVM: `GC.heap_info`, `Compiler.codecache` (same lines in `VM.info`), `VM.metaspace
//! vslist`, `VM.native_memory detail`.

use super::{COLLECTORS, JDKS, between, nmt_detail, text};
use loadline::observe::addresses::{JvmAddresses, JvmRange, Purpose};
use loadline::observe::heap_info::{Collector, HeapInfo};
use loadline::observe::metaspace_nodes::{self, MetaspaceNode};
use loadline::units::Bytes;

/// The location of a heap of 64 MiB with compressed oops: right below 4 GiB.
const HEAP: (u64, u64) = (0xfc00_0000, 0x1_0000_0000);

/// Each JDK with each collector, and its reply.
fn replies(command: &str) -> impl Iterator<Item = (u32, Collector, String)> {
    let pairs = JDKS.into_iter().flat_map(|jdk| COLLECTORS.map(|collector| (jdk, collector)));
    pairs.map(move |(jdk, collector)| {
        (jdk, collector, text(&format!("{jdk}/{command}-{}.txt", collector.title().to_lowercase())))
    })
}

fn of(found: &JvmAddresses, purpose: Purpose) -> Vec<&JvmRange> {
    found.ranges.iter().filter(|range| range.purpose == purpose).collect()
}

fn size(ranges: &[&JvmRange]) -> Bytes {
    Bytes(ranges.iter().map(|range| range.end - range.start).sum())
}

#[test]
fn heap_ranges_and_their_used_parts_are_parsed() {
    for (jdk, collector, reply) in replies("heap_info") {
        let what = format!("{jdk} {}", collector.title().to_lowercase());
        let found = JvmAddresses::parse(&reply, 4096);
        if collector == Collector::Z {
            assert!(found.is_err(), "{what}");
            continue;
        }
        let found = found.unwrap();
        assert_eq!((found.heap_reserved, size(&of(&found, Purpose::JavaHeap))), (Some(HEAP), Bytes::mib(64)), "{what}");
        let region = match collector {
            Collector::G1 => Some(Bytes::mib(1)),
            Collector::Shenandoah => Some(Bytes::kib(256)),
            _ => None,
        };
        assert_eq!(found.region_size, region, "{what}");
        if region.is_some() {
            assert_eq!(found.used_ranges, [], "{what}: the reply lists no used ranges");
            continue;
        }
        assert!(found.used_ranges.iter().all(|used| HEAP.0 <= used.0 && used.0 < used.1 && used.1 <= HEAP.1), "{what}");
        assert!(found.used_ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{what}: {:?}", found.used_ranges);
        // The same reply contains the sum in KiB.
        let used = HeapInfo::parse(&reply).unwrap().used;
        let sum: u64 = found.used_ranges.iter().map(|used| used.1 - used.0).sum();
        assert!(sum.abs_diff(used.0) <= 4 << 10, "{what}: {} {used}", Bytes(sum));
    }
}

#[test]
fn shenandoahs_map_has_a_byte_for_each_region_below_the_end_of_the_heap() {
    for (jdk, collector, reply) in replies("heap_info").filter(|(_, collector, _)| *collector != Collector::Z) {
        let found = JvmAddresses::parse(&reply, 4096).unwrap();
        let tables: Vec<_> = of(&found, Purpose::GcTable);
        // A byte per 256 KiB below 4 GiB.
        let expect = if collector == Collector::Shenandoah { Bytes::kib(16) } else { Bytes(0) };
        assert_eq!(size(&tables), expect, "{jdk} {}: {tables:?}", collector.title().to_lowercase());
    }
}

#[test]
fn code_heaps() {
    for (jdk, collector, reply) in replies("vm_info") {
        let what = format!("{jdk} {}", collector.title().to_lowercase());
        let found = JvmAddresses::parse(&reply, 4096).unwrap();
        assert!(found.ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{what}: {:?}", found.ranges);
        let code = of(&found, Purpose::CodeCache);
        let names: Vec<_> = code.iter().map(|range| range.name.as_str()).collect();
        assert_eq!(names.len(), 3, "{what}");
        assert!(["non-nmethods", "profiled nmethods", "non-profiled nmethods"].iter().all(|name| names.contains(name)));
        // On JDK 25, the profiled one has an additional page.
        between(Bytes::mib(240), size(&code), Bytes((240 << 20) + 4096), &what);
        for heap in code {
            let committed = heap.committed_end.unwrap() - heap.start;
            assert!((2 << 20..=4 << 20).contains(&committed), "{what}: {heap:?}");
        }
    }
}

#[test]
fn metaspace_nodes_are_parsed() {
    for jdk in JDKS {
        for collector in ["serial", "g1"] {
            let what = format!("{jdk} {collector}");
            let nodes = metaspace_nodes::parse(&text(&format!("{jdk}/vslist-{collector}.txt"))).unwrap();
            // The same JVM's heap, a moment earlier.
            let heap = HeapInfo::parse(&text(&format!("{jdk}/vm_info-{collector}.txt"))).unwrap();
            let (class, other): (Vec<MetaspaceNode>, Vec<_>) = nodes.iter().partition(|node| node.class_space);
            let committed = |nodes: &[MetaspaceNode]| Bytes(nodes.iter().map(|node| node.committed.0).sum());
            let reserved = |nodes: &[MetaspaceNode]| Bytes(nodes.iter().map(|node| node.end - node.start).sum());

            assert_eq!((class.len(), other.len()), (1, 1), "{what}");
            assert_eq!(reserved(&other), Bytes::mib(if jdk == 11 { 8 } else { 64 }), "{what}");
            assert!(committed(&other) >= Bytes::kib(128) && committed(&class) >= Bytes::kib(64), "{what}");
            if let (Some(metaspace), Some(space)) = (heap.metaspace, heap.class_space) {
                assert_eq!((committed(&nodes), reserved(&nodes)), (metaspace.committed, metaspace.reserved), "{what}");
                assert_eq!(committed(&class), space.committed, "{what}");
            }
        }
    }
}

#[test]
fn detailed_native_memory_is_parsed() {
    for jdk in JDKS {
        let ranges = nmt_detail::ranges(&text(&format!("{jdk}/nmt_detail.txt")));
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{jdk}: {ranges:?}");
        let size = |category: &str| {
            Bytes(ranges.iter().filter(|range| range.2 == category).map(|range| range.1 - range.0).sum())
        };
        assert!(ranges.contains(&(HEAP.0, HEAP.1, "Java Heap".to_owned())), "{jdk}");
        assert_eq!((size("Java Heap"), size("Safepoint")), (Bytes::mib(64), Bytes::kib(8)), "{jdk}");
        let class = if jdk == 11 { Bytes::mib(1024 + 8) } else { Bytes::mib(1024) };
        assert_eq!((size("Class"), size("Metaspace")), (class, Bytes::mib(if jdk == 11 { 0 } else { 64 })), "{jdk}");
        between(Bytes::mib(240), size("Code"), Bytes::mib(242), &jdk.to_string());
        let threads = ranges.iter().filter(|range| range.2 == "Thread Stack").count();
        assert!(threads >= 10 && size("Thread Stack") == Bytes::mib(threads as u64), "{jdk}: {threads}");
    }
}
