//! Every captured text goes through its parser, and its key values are checked. A truncated or corrupted copy never
//! panics. README.md describes how the samples were made.
#![expect(clippy::unwrap_used, reason = "a sample that does not parse must fail its test")]

mod drivers;
mod mangled;
#[path = "../shared/nmt_detail.rs"]
mod nmt_detail;
mod ranges;

use loadline::kernel::cgroup::{Cgroup, CgroupVersion};
use loadline::kernel::process::{Stat, Statm, Status};
use loadline::observe::cgroup::MemoryCgroup;
use loadline::observe::heap_info::{Collector, HeapInfo};
use loadline::observe::hsperfdata::Counters;
use loadline::observe::maps::{self, Allocator};
use loadline::observe::nmt::NativeMemory;
use loadline::observe::smaps::{self, Smaps};
use loadline::observe::vm_flags::{FlagDifference, Flags, differences};
use loadline::observe::vm_version::VmVersion;
use loadline::units::{Bytes, Growth};
use std::path::PathBuf;

const JDKS: [u32; 4] = [11, 17, 21, 25];
const COLLECTORS: [Collector; 6] =
    [Collector::Serial, Collector::Parallel, Collector::G1, Collector::Z, Collector::Shenandoah, Collector::Epsilon];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap()
}

fn between(low: Bytes, value: Bytes, high: Bytes, what: &str) {
    assert!(low <= value && value <= high, "{what}: {value}, expected {low} to {high}");
}

#[test]
fn heap_info_of_every_collector_is_parsed() {
    for jdk in JDKS {
        for collector in COLLECTORS {
            let name = format!("{jdk}/heap_info-{}.txt", collector.title().to_lowercase());
            let heap = HeapInfo::parse(&text(&name)).unwrap();
            assert_eq!((heap.collector, heap.capacity_max), (collector, Bytes::mib(64)), "{name}");
            // `Sample` holds 4 MB; Epsilon never frees the 20 MB of garbage.
            let most = if collector == Collector::Epsilon { 32 } else { 12 };
            between(Bytes::mib(4), heap.used, Bytes::mib(most), &name);
            let least = if collector == Collector::G1 { 12 } else { 64 };
            between(Bytes::mib(least), heap.committed, Bytes::mib(64), &name);
            assert_eq!(heap.metaspace.is_some(), jdk < 25, "{name}");
            if let Some(metaspace) = heap.metaspace {
                assert!(metaspace.used <= metaspace.committed && metaspace.committed <= metaspace.reserved);
            }
            // ZGC on 11 has no compressed class pointers.
            assert_eq!(heap.class_space.is_some(), jdk < 25 && !(jdk == 11 && collector == Collector::Z), "{name}");
        }
    }
}

#[test]
fn hsperfdata_of_every_collector_is_parsed() {
    for jdk in JDKS {
        for collector in COLLECTORS {
            let name = format!("{jdk}/hsperfdata-{}.bin", collector.title().to_lowercase());
            let counters = Counters::parse(&bytes(&name)).unwrap();
            let heap =
                HeapInfo::parse(&text(&format!("{jdk}/heap_info-{}.txt", collector.title().to_lowercase()))).unwrap();
            let sample = counters.sample();
            // Taken just before `heap_info`; ZGC and Shenandoah return memory in between.
            assert_eq!(sample.heap_committed, heap.committed, "{name}");
            between(Bytes::mib(4), sample.heap_used, Bytes(heap.used.0 + (6 << 20)), &name);
            assert!(sample.metaspace_used > Bytes::kib(50) && sample.metaspace_used < sample.metaspace_committed);
            assert!(sample.threads >= 5 && sample.classes >= 400, "{name}: {sample:?}");
            check_collections(&name, jdk, collector, &counters);
            assert_eq!(counters.attach_supported(), Some(true));
            assert_eq!(counters.number("no.such.counter"), None);
            assert!(counters.names().count() > 100);
            check_identity(jdk, &counters);
        }
    }
}

fn check_collections(name: &str, jdk: u32, collector: Collector, counters: &Counters) {
    let collections = counters.collections();
    let kinds: usize = match (collector, jdk) {
        (Collector::Epsilon, _) | (Collector::Z, 11) => 0,
        (Collector::Z, 17 | 21) => 1,
        (Collector::G1, _) => 3,
        _ => 2,
    };
    assert_eq!(collections.len(), kinds, "{name}: {collections:?}");
    let (count, time) = collections.iter().fold((0, 0), |sum, one| (sum.0 + one.count, sum.1 + one.time.as_nanos()));
    let total = counters.sample().gc;
    let counted = (kinds > 0).then_some((count, time));
    assert_eq!(total.map(|total| (total.count, u128::from(total.ns))), counted, "{name}");
    assert!(count >= 1 || kinds == 0, "{name}: {collections:?}");
    assert!(time < 1_000_000_000 && collections.iter().all(|one| !one.name.is_empty()), "{name}: {collections:?}");
}

fn check_identity(jdk: u32, counters: &Counters) {
    let identity = counters.identity();
    assert!(identity.java_version.unwrap().starts_with(&jdk.to_string()));
    assert!(identity.vm_name.unwrap().contains("64-Bit Server VM"));
    assert!(identity.java_home.unwrap().starts_with(&format!("/opt/jdk-{jdk}")));
    assert!(identity.vm_args.unwrap().starts_with("-Xmx64m -XX:+UnlockExperimentalVMOptions"));
    assert_eq!((identity.command.as_deref(), identity.vm_flags), (Some("Sample"), None));
    assert!(identity.vendor.is_some() && identity.vm_version.is_some());
}

#[test]
fn native_memory_summaries_are_parsed() {
    for jdk in JDKS {
        let nmt = NativeMemory::parse(&text(&format!("{jdk}/nmt_summary.txt"))).unwrap();
        let heap = nmt.category("Java Heap").unwrap();
        assert_eq!((heap.amount.reserved, heap.mmap_committed), (Bytes::mib(64), Bytes::mib(64)), "{jdk}");
        assert_eq!(nmt.total.committed_growth, None);
        let thread = nmt.category("Thread").unwrap();
        assert!(thread.count.unwrap() >= 10 && thread.mmap_committed > Bytes::kib(500), "{thread:?}");
        assert!(nmt.category("Class").unwrap().count.unwrap() > 400);
        let symbol = nmt.category("Symbol").unwrap();
        assert!(symbol.malloc > Bytes::kib(500) && symbol.nmt_arena > Bytes::kib(100), "{symbol:?}");
        // The JVM counts bytes, prints KiB, and omits smaller values.
        let committed: u64 = nmt.categories.iter().map(|category| category.amount.committed.0).sum();
        assert!(committed.abs_diff(nmt.total.committed.0) < 40 << 10, "{jdk}: {committed} {:?}", nmt.total);
        for category in &nmt.categories {
            let parts = category.malloc.0 + category.mmap_committed.0 + category.nmt_arena.0;
            // This category has a special part, `tracking overhead`.
            let own = category.name == "Native Memory Tracking";
            assert!(own || parts.abs_diff(category.amount.committed.0) <= 4 << 10, "{jdk}: {category:?}");
        }
    }
}

#[test]
fn native_memory_growth_is_parsed() {
    for jdk in JDKS {
        let nmt = NativeMemory::parse(&text(&format!("{jdk}/nmt_diff.txt"))).unwrap();
        let Growth(total) = nmt.total.committed_growth.unwrap();
        let sum: i64 = nmt.categories.iter().filter_map(|category| category.amount.committed_growth).map(|g| g.0).sum();
        assert!((total - sum).abs() <= 8 << 10, "{jdk}: {total} {sum}");
        assert_eq!(nmt.category("Java Heap").unwrap().amount.committed_growth, None);
        assert!(nmt.category("Native Memory Tracking").is_some());
        let off = NativeMemory::parse(&text(&format!("{jdk}/nmt_off.txt"))).unwrap_err();
        assert!(off.why.contains("-XX:NativeMemoryTracking=summary"));
    }
}

#[test]
fn versions() {
    for jdk in JDKS {
        let version = VmVersion::parse(&text(&format!("{jdk}/vm_version.txt"))).unwrap();
        assert_eq!((version.feature, version.name.as_str()), (jdk, "OpenJDK 64-Bit Server VM"));
        assert!(version.version.starts_with(&version.jdk), "{version:?}");
    }
}

#[test]
fn flags_given_and_in_force_are_compared() {
    for jdk in JDKS {
        let flags = Flags::parse(&text(&format!("{jdk}/vm_flags.txt")));
        assert_eq!(flags.get("MaxHeapSize"), Some("67108864"));
        assert_eq!(flags.get("UseSerialGC"), Some("true"));
        assert!(flags.list.len() > 10);

        let in_force = Flags::parse(&text(&format!("{jdk}/vm_flags-asked.txt")));
        let asked =
            ["-Xmx64m", "-XX:+UseParallelGC", "-Xmx7m", "-Xss300k", "-XX:MaxRAMPercentage=75", "-XX:+UseBiasedLocking"];
        let asked = asked.map(str::to_owned);
        let rounded = FlagDifference { asked: "-Xmx7m".into(), in_force: Some("-XX:MaxHeapSize=8388608".into()) };
        let ignored = FlagDifference { asked: "-XX:+UseBiasedLocking".into(), in_force: None };
        let expect = if jdk < 21 { vec![rounded] } else { vec![rounded, ignored] };
        assert_eq!(differences(&asked, &in_force), expect, "{jdk}");
    }
}

#[test]
fn mappings_and_their_sizes_are_parsed() {
    for jdk in JDKS {
        let smaps = Smaps::parse(&text(&format!("{jdk}/smaps.txt")));
        assert_eq!(smaps.mappings.len(), 40);
        let libjvm = maps::libjvm(smaps.maps()).unwrap();
        assert_eq!(libjvm, format!("/opt/jdk-{jdk}/lib/server/libjvm.so"));
        assert_eq!(smaps.allocator(), Allocator::Glibc);
        let total = smaps.total();
        for one in &smaps.mappings {
            let weight = one.weight;
            assert!(weight.rss <= one.mapping.size() && weight.pss <= weight.rss && weight.anonymous <= weight.rss);
            let parts = [weight.shared_clean, weight.shared_dirty, weight.private_clean, weight.private_dirty];
            assert_eq!(parts.iter().map(|part| part.0).sum::<u64>(), weight.rss.0, "{one:?}");
        }
        let all = smaps::parse_rollup(&text(&format!("{jdk}/smaps_rollup.txt"))).unwrap();
        assert!(total.rss < all.rss && all.pss <= all.rss && all.private_dirty > Bytes::mib(10), "{all:?}");
        between(Bytes::mib(25), all.rss, Bytes::mib(80), "rss");
    }
}

#[test]
fn processes() {
    for jdk in JDKS {
        let status = Status::parse(&text(&format!("{jdk}/status.txt"))).unwrap();
        between(Bytes::mib(25), status.rss, status.rss_peak, "rss");
        assert_eq!(status.rss.0, status.rss_anon.0 + status.rss_file.0 + status.rss_shmem.0);
        assert!(status.threads > 10 && status.swap == Bytes(0) && status.catches(3) && !status.catches(9));
        let stat = Stat::parse(&text(&format!("{jdk}/stat.txt")), 100).unwrap();
        assert_eq!((stat.comm.as_str(), stat.has_ended()), ("java", false));
        assert!(stat.start_ticks > 0 && stat.cpu().as_millis() > 0);
        let statm = Statm::parse(&text(&format!("{jdk}/statm.txt")), Bytes::kib(4)).unwrap();
        assert!(statm.resident.0.abs_diff(status.rss.0) < 4 << 20 && statm.shared < statm.resident);
    }
}

#[test]
fn memory_cgroups_are_read() {
    let open =
        |version, name| MemoryCgroup::open(Cgroup { version, folder: folder().join(name), mount: folder() }).unwrap();
    let clock = loadline::clock::Clock::start();

    let v1 = open(CgroupVersion::V1, "cgroup-v1").read(&clock).unwrap().value;
    assert_eq!((v1.limit, v1.events.oom_kills), (None, 0));
    assert!(v1.peak.unwrap() >= v1.usage && v1.charge.anon > Bytes(0) && v1.charge.file > Bytes(0));
    assert!(v1.charge.anon.0 + v1.charge.file.0 + v1.charge.shmem.0 <= v1.usage.0 + (4 << 20));

    let v2 = open(CgroupVersion::V2, "cgroup-v2").read(&clock).unwrap().value;
    assert_eq!((v2.usage, v2.peak, v2.high), (Bytes::mib(32), Some(Bytes::mib(48)), None));
    assert_eq!(v2.limit.unwrap().bytes, Bytes::mib(64));
    assert_eq!((v2.events.oom_kills, v2.events.at_limit), (1, 123));
    assert_eq!((v2.charge.anon, v2.charge.file, v2.charge.shmem), (Bytes::mib(20), Bytes::mib(7), Bytes::mib(1)));
    assert_eq!((v2.charge.kernel, v2.charge.file_refaults, v2.swap), (Some(Bytes::mib(4)), 4711, Some(Bytes(0))));
    assert_eq!(v2.pressure.unwrap().some.as_micros(), 1_234_567);
}
