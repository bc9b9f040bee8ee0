//! Tests each rule on synthetic facts, on both sides of its threshold.

use super::{Diagnosis, flags_kept, of_account, of_trials};
use crate::doubt::{Doubt, MemoryPool};
use crate::record::*;
use crate::scenario::Model;
use serde_json::Value;
use std::collections::BTreeMap;

mod ruled_out;

const MIB: u64 = 1 << 20;

/// A mark with owners in MiB; libjvm gets the rest of the 200 MiB, so 1% of RSS is 2 MiB.
fn mark(name: &str, owners: &[(&str, u64)]) -> Mark {
    let rest = 200 - owners.iter().map(|(_, mib)| mib).sum::<u64>();
    let owners = owners.iter().copied().chain([("libjvm", rest), ("cds", 0)]).map(|(name, mib)| (name, mib * MIB));
    let malloc = Some(MallocRecord { allocator: "glibc".to_owned(), arenas: 8, ..MallocRecord::default() });
    let account = AccountRecord { total_bytes: 200 * MIB, malloc, ..AccountRecord::holding(owners) };
    Mark { name: name.to_owned(), at_s: 60.0, rss_bytes: 200 * MIB, account: Some(account), ..Mark::default() }
}

/// A trial of JDK 21.0.5 with G1 and all flags known.
fn trial(marks: Vec<Mark>) -> Trial {
    let mut defaults: BTreeMap<_, _> = flags_kept().map(|name| (name.to_owned(), "0".to_owned())).collect();
    defaults.insert("NativeMemoryTracking".to_owned(), "off".to_owned());
    let jvm = Jvm {
        version: Some("21.0.5+11".to_owned()),
        collector: Some("G1".to_owned()),
        flags_kept: Some(FlagsRecord { set: Vec::new(), defaults }),
        ..Jvm::default()
    };
    Trial { marks, jvm: Some(jvm), command: vec!["java".to_owned()], ..Trial::new("a", 0, 0) }
}

fn with(trial: &Trial, change: impl FnOnce(&mut Trial)) -> Trial {
    let mut trial = trial.clone();
    change(&mut trial);
    trial
}

fn jvm(trial: &mut Trial) -> &mut Jvm {
    trial.jvm.as_mut().unwrap()
}

fn flags(trial: &mut Trial) -> &mut FlagsRecord {
    jvm(trial).flags_kept.as_mut().unwrap()
}

fn account(mark: &mut Mark) -> &mut AccountRecord {
    mark.account.as_mut().unwrap()
}

fn malloc(mark: &mut Mark) -> &mut MallocRecord {
    account(mark).malloc.as_mut().unwrap()
}

/// A copy with this option in its command line and this flag in effect.
fn typed(trial: &Trial, option: &str, name: &str, value: &str) -> Trial {
    with(trial, |trial| {
        trial.command.push(option.to_owned());
        let flags = flags(trial);
        flags.defaults.remove(name);
        let origin = FlagOrigin::CommandLine;
        flags.set.push(FlagRecord { name: name.to_owned(), value: value.to_owned(), origin });
    })
}

fn kinds(trial: &Trial) -> Vec<String> {
    of_trials(std::slice::from_ref(trial)).findings.iter().map(|found| found.finding.kind()).collect()
}

fn only(trial: &Trial, wanted: &str) -> Option<FindingRecord> {
    of_trials(std::slice::from_ref(trial)).findings.into_iter().find(|found| found.finding.kind() == wanted)
}

fn remedies(found: &Option<FindingRecord>) -> Vec<String> {
    found.iter().flat_map(|found| &found.remedies).map(|change| change.typed().join(" ")).collect()
}

fn gain(found: &Option<FindingRecord>) -> Option<u64> {
    found.as_ref().unwrap().gain_bytes_max
}

fn says(found: &Option<FindingRecord>, parts: &[&str]) {
    let found = found.as_ref().unwrap();
    let said = format!("{} -> {}", found.text, found.next);
    assert!(parts.iter().all(|part| said.contains(part)), "{parts:?} in {said}");
}

fn loaded(owners: &[(&str, u64)]) -> Trial {
    trial(vec![mark("loaded", owners)])
}

#[test]
fn a_small_server_has_no_findings() {
    assert_eq!(kinds(&loaded(&[("java_heap.used", 4), ("malloc.live", 10), ("cds", 13)])), [] as [&str; 0]);
    assert_eq!(kinds(&Trial::default()), [] as [&str; 0]);
    assert_eq!(of_account(&AccountDocument::default()), Diagnosis::default());
}

#[test]
fn retained_malloc_lists_only_remedies_not_yet_set() {
    let found = only(&loaded(&[("malloc.retained", 20)]), "malloc_retained");
    let all = ["MALLOC_ARENA_MAX=1", "-XX:TrimNativeHeapInterval=2000", "MALLOC_TRIM_THRESHOLD_=131072"];
    assert_eq!(remedies(&found), all);
    assert_eq!(gain(&found), Some(18 * MIB));
    says(&found, &["20.0 MiB", "8 arenas", "`MALLOC_ARENA_MAX=1`"]);
    // The maximum gain, 90% of the row, must be at least 1% of RSS.
    assert!(only(&loaded(&[("malloc.retained", 3)]), "malloc_retained").is_some());
    assert!(only(&loaded(&[("malloc.retained", 2)]), "malloc_retained").is_none());
    let of = |change: fn(&mut MallocRecord)| {
        only(&with(&loaded(&[("malloc.retained", 20)]), |trial| change(malloc(&mut trial.marks[0]))), "malloc_retained")
    };
    assert_eq!(remedies(&of(|malloc| malloc.settings = Some(vec!["MALLOC_ARENA_MAX=2".to_owned()]))), all[1..]);
    assert_eq!(remedies(&of(|malloc| malloc.settings = Some(vec!["MALLOC_TOP_PAD_=0".to_owned()]))), all[..2]);
    assert_eq!(remedies(&of(|malloc| malloc.arenas = 1)), all[1..]);
    let musl = of(|malloc| malloc.allocator = "musl".to_owned());
    assert_eq!(remedies(&musl), [] as [&str; 0]);
    says(&musl, &["an image with glibc"]);
}

#[test]
fn a_failed_trial_has_findings_but_a_completed_one_gives_the_numbers() {
    let failed = with(&loaded(&[("malloc.retained", 40)]), |trial| trial.outcome = Outcome::SubjectFailed);
    let well =
        with(&loaded(&[("malloc.retained", 20)]), |trial| (trial.index, trial.outcome) = (1, Outcome::Completed));
    says(&only(&failed, "malloc_retained"), &["40.0 MiB"]);
    let both = of_trials(&[failed, well]).findings.into_iter().find(|found| found.finding.kind() == "malloc_retained");
    says(&both, &["20.0 MiB"]);
    let of = both.unwrap().of.unwrap();
    assert_eq!((of.trial, of.trials_alike), (1, 2));
}

#[test]
fn a_trim_is_proposed_only_if_the_jvm_supports_it() {
    let base = loaded(&[("malloc.retained", 20)]);
    let trim = |trial: &Trial| remedies(&only(trial, "malloc_retained")).into_iter().find(|one| one.contains("Trim"));
    let lacks = with(&base, |trial| _ = flags(trial).defaults.remove("TrimNativeHeapInterval"));
    assert_eq!(trim(&lacks), None);
    assert_eq!(trim(&typed(&base, "-XX:TrimNativeHeapInterval=60000", "TrimNativeHeapInterval", "60000")), None);
    let early = with(&base, |trial| jvm(trial).version = Some("17.0.10+7".to_owned()));
    let unlocked = "-XX:+UnlockExperimentalVMOptions -XX:TrimNativeHeapInterval=2000";
    assert_eq!(trim(&early).as_deref(), Some(unlocked));
}

fn direct(mib: u64) -> Option<DirectRecord> {
    let max_bytes = Some(1024 * MIB);
    Some(DirectRecord { reserved_bytes: mib * MIB, buffers: mib, max_bytes, ..DirectRecord::default() })
}

#[test]
fn direct_memory_freed_by_a_collection_is_a_finding() {
    let of = |loaded: u64, collected: Option<u64>, collections: u64| {
        let mut marks = vec![mark("loaded", &[("malloc.direct", 80)])];
        marks[0].direct = direct(loaded);
        marks[0].heap.collections = Some(collections);
        marks.extend(collected.map(|mib| Mark { direct: direct(mib), ..mark("collected", &[]) }));
        only(&trial(marks), "direct_memory_waits")
    };
    let freed = of(80, Some(10), 99);
    assert_eq!((remedies(&freed), gain(&freed)), (vec!["-XX:MaxDirectMemorySize=20m".into()], Some(70 * MIB)));
    says(&freed, &["80.0 MiB is in 80 direct buffers", "a full GC left 10.0 MiB", "the JVM allows up to 1024.0 MiB"]);
    assert!(of(80, Some(60), 0).is_some() && of(80, Some(61), 0).is_none(), "a quarter must be freed");
    // No collection frees buffers that threads hold.
    let held = |held: u64| {
        let mut one = mark("loaded", &[("malloc.direct", 80)]);
        (one.direct, one.heap.collections) = (direct(80), Some(0));
        one.thread_buffers = Some(ThreadBuffersRecord { bytes: held * MIB, ..ThreadBuffersRecord::default() });
        only(&trial(vec![one]), "direct_memory_waits")
    };
    assert_eq!((held(80), gain(&held(30))), (None, Some(50 * MIB)));
    // Six collections a minute are one per ten seconds.
    assert!(of(80, None, 6).is_some() && of(80, None, 7).is_none());
    assert!(of(9, None, 0).is_none(), "less than 5% of RSS is not reported");
}

#[test]
fn free_heap_after_a_rest_has_collector_specific_remedies() {
    let of = |collector: &str, version: &str, free: u64| {
        let rested = mark("rested", &[("java_heap.free", free), ("java_heap.used", 10)]);
        with(&trial(vec![mark("loaded", &[]), rested]), |trial| {
            let jvm = jvm(trial);
            (jvm.collector, jvm.version) = (Some(collector.to_owned()), Some(version.to_owned()));
        })
    };
    let check = |collector, version, expect: &[&str]| {
        assert_eq!(remedies(&only(&of(collector, version, 40), "heap_free")), expect, "{collector} {version}");
    };
    let narrow = "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20";
    check("G1", "25.0.3+9", &["-XX:G1PeriodicGCInterval=10000", narrow]);
    check("G1", "26+35", &["-XX:G1PeriodicGCInterval=10000"]);
    check("Serial", "17.0.15+6", &[&format!("{narrow} -XX:-ShrinkHeapInSteps")]);
    check("Z", "25.0.3+9", &["-XX:ZUncommitDelay=30"]);
    check("Epsilon", "25.0.3+9", &[]);
    let is_told = |free| only(&of("G1", "25", free), "heap_free").is_some();
    assert!(is_told(10) && !is_told(9), "only 5% of RSS or more is reported");
    let kept = typed(&of("G1", "25", 40), "-Xms2g", "InitialHeapSize", "2147483648");
    let kept = with(&kept, |trial| trial.marks[1].heap.committed_bytes = Some(2048 * MIB));
    says(&only(&kept, "heap_free"), &["your `-Xms` keeps it"]);
}

#[test]
fn a_heap_far_above_the_live_set_gets_a_ceiling_unless_one_is_set() {
    let of = |heap: u64, live: u64| {
        let mut collected = mark("collected", &[]);
        collected.heap.live_bytes = Some(live * MIB);
        trial(vec![mark("loaded", &[("java_heap.used", heap)]), collected])
    };
    let found = only(&of(80, 20), "heap_far_above_live");
    assert_eq!((remedies(&found), gain(&found)), (vec!["-Xmx40m".into()], Some(40 * MIB)));
    assert!(only(&of(79, 20), "heap_far_above_live").is_none());
    assert!(only(&of(18, 2), "heap_far_above_live").is_some() && only(&of(17, 2), "heap_far_above_live").is_none());
    let typed = typed(&of(80, 20), "-Xmx4g", "MaxHeapSize", "4294967296");
    assert_eq!(remedies(&only(&typed, "heap_far_above_live")), [] as [&str; 0]);
    let buffers = with(&of(80, 10), |trial| trial.marks[1].direct = direct(50));
    let both = ["-Xmx20m -XX:MaxDirectMemorySize=100m"];
    assert_eq!(remedies(&only(&buffers, "heap_far_above_live")), both, "buffers take their ceiling from the heap");
    let by_last = with(&loaded(&[("java_heap.used", 80)]), |trial| {
        trial.marks[0].heap.left_by_gc_bytes = Some(20 * MIB);
    });
    says(&only(&by_last, "heap_far_above_live"), &["the last GC left only 20.0 MiB"]);
    let z = with(&by_last, |trial| jvm(trial).collector = Some("Z".to_owned()));
    assert!(only(&z, "heap_far_above_live").is_none(), "ZGC's counters include only the old generation");
}

#[test]
fn a_collector_unsuited_to_its_heap_is_a_finding() {
    let g1 = |heap, tables| loaded(&[("java_heap.used", heap), ("gc", tables)]);
    assert_eq!(remedies(&only(&g1(64, 3), "g1_on_small_heap")), ["-XX:+UseSerialGC"]);
    assert!(only(&g1(64, 2), "g1_on_small_heap").is_none());
    let chosen = typed(&g1(64, 3), "-XX:+UseG1GC", "UseG1GC", "true");
    assert_eq!(remedies(&only(&chosen, "g1_on_small_heap")), [] as [&str; 0]);
    let serial = |gc_ms| {
        with(&loaded(&[]), |trial| {
            jvm(trial).collector = Some("Serial".to_owned());
            let subject = SubjectWork { gc_ms: Some(gc_ms), ..SubjectWork::default() };
            let name = "steady".to_owned();
            trial.phases = vec![PhaseRecord { name, seconds: 10.0, subject, model: Model::Closed, ..<_>::default() }];
        })
    };
    assert_eq!(remedies(&only(&serial(500.0), "serial_unasked")), ["-XX:+UseG1GC", "-XX:+UseParallelGC"]);
    assert!(only(&serial(499.0), "serial_unasked").is_none());
    let chosen = typed(&serial(900.0), "-XX:+UseSerialGC", "UseSerialGC", "true");
    assert!(only(&chosen, "serial_unasked").is_none());
}

#[test]
fn a_large_code_cache_and_missing_cds_are_findings() {
    assert_eq!(remedies(&only(&loaded(&[("code_cache", 20)]), "code_large")), ["-XX:TieredStopAtLevel=1"]);
    assert!(only(&loaded(&[("code_cache", 19)]), "code_large").is_none(), "less than 10% of RSS is not reported");
    let compiling = with(&loaded(&[("code_cache", 20)]), |trial| {
        let category = |name: &str| NmtCategory { name: name.to_owned(), committed_bytes: 7 * MIB, ..<_>::default() };
        let categories = vec![category("Compiler"), category("Code")];
        trial.marks[0].nmt = Some(NmtRecord { categories, ..NmtRecord::default() });
    });
    let found = only(&compiling, "code_large");
    says(&found, &["20.0 MiB, and the compilers hold 7.0 MiB"]);
    assert_eq!(gain(&found), Some(17 * MIB));
    let typed_level = typed(&loaded(&[("code_cache", 40)]), "-XX:TieredStopAtLevel=1", "TieredStopAtLevel", "1");
    assert!(only(&typed_level, "code_large").is_none());
    let base = loaded(&[("metaspace", 12)]);
    says(&only(&base, "cds_missing"), &["has no matching one", "class metadata takes up 12.0 MiB"]);
    let option = |option: &str| with(&base, |trial| trial.command.push(option.to_owned()));
    says(&only(&option("-Xshare:off"), "cds_missing"), &["switched off"]);
    says(&only(&option("-XX:SharedArchiveFile=app.jsa"), "cds_missing"), &["`app.jsa` was specified"]);
    assert!(only(&loaded(&[("metaspace", 12), ("cds", 13)]), "cds_missing").is_none());
}

#[test]
fn growing_metadata_is_a_finding_unless_a_collection_frees_it() {
    let of = |sizes: [u64; 3], collected: Option<u64>| {
        let names = ["start", "warm", "loaded"];
        let at = |(n, mib): (usize, &u64)| Mark { at_s: 10.0 * n as f64, ..mark(names[n], &[("metaspace", *mib)]) };
        let mut marks: Vec<Mark> = sizes.iter().enumerate().map(at).collect();
        marks.extend(collected.map(|mib| Mark { at_s: 40.0, ..mark("collected", &[("metaspace", mib)]) }));
        with(&trial(marks), |trial| {
            let phase = |at_s| PhaseRecord { at_s, ok: 1000, ..PhaseRecord::default() };
            trial.phases = vec![phase(1.0), phase(11.0)];
        })
    };
    let told = |sizes, collected| only(&of(sizes, collected), "metaspace_keeps_growing").is_some();
    assert!(told([10, 20, 30], None) && told([10, 20, 30], Some(25)));
    assert!(!told([10, 20, 30], Some(15)), "growth freed by a collection is not a finding");
    assert!(!told([10, 20, 24], None) && told([10, 20, 25], None), "a request adds as much, within a factor of 2");
}

fn pool(name: &str, threads: u64, stack_bytes: u64, cpu_s: f64) -> ThreadPoolRecord {
    ThreadPoolRecord { name: name.to_owned(), threads, stack_bytes, cpu_s, allocated_bytes: Some(1) }
}

#[test]
fn idle_pools_are_recognized_by_cpu_time() {
    let of = |threads, cpu_s, mib: u64| {
        with(&loaded(&[("thread_stacks", 20)]), |trial| {
            let pool = |name| pool(name, threads, mib * MIB, cpu_s);
            trial.marks[0].pools = vec![pool("http-nio-*"), pool("C2 CompilerThre*")];
        })
    };
    let found = only(&of(200, 6.0, 18), "threads_idle");
    says(&found, &["since the JVM started: 200 of `http-nio-*` with 18.0 MiB of stacks used 0.10 CPUs"]);
    assert!(found.unwrap().remedies.is_empty());
    assert!(only(&of(200, 20.0, 18), "threads_idle").is_none(), "threads with 0.1 s of CPU time each may be in use");
    assert!(only(&of(19, 0.0, 18), "threads_idle").is_none() && only(&of(20, 0.0, 1), "threads_idle").is_none());
}

#[test]
fn idle_threads_are_judged_by_cpu_time_under_load() {
    let of = |before_s: f64| {
        with(&loaded(&[("thread_stacks", 20)]), |trial| {
            let mut before = Mark { at_s: trial.marks[0].at_s - 10.0, ..mark("warm", &[]) };
            before.pools = vec![pool("http-nio-*", 200, 18 * MIB, before_s)];
            trial.marks[0].pools = vec![pool("http-nio-*", 200, 18 * MIB, 60.0)];
            trial.marks.insert(0, before);
            trial.phases = vec![PhaseRecord { seconds: 10.0, model: Model::Closed, ok: 100, ..PhaseRecord::default() }];
        })
    };
    says(&only(&of(59.0), "threads_idle"), &["in the 10 s of load", "used 0.10 CPUs"]);
    assert!(only(&of(0.0), "threads_idle").is_none(), "6 CPUs");
}

#[test]
fn mostly_free_netty_chunks_are_a_finding() {
    let of = |held: u64, out: u64, kind: NettyKind, package: &str| {
        let allocator = NettyAllocator {
            class: "io.netty.buffer.AdaptiveByteBufAllocator".to_owned(),
            kind,
            used_direct_bytes: Some(held * MIB),
            pinned_direct_bytes: Some(out * MIB),
            ..NettyAllocator::default()
        };
        let library =
            NettyLibrary { package: package.to_owned(), allocators: vec![allocator], ..NettyLibrary::default() };
        let pools = NettyPools { libraries: vec![library], ..NettyPools::default() };
        only(&with(&loaded(&[]), |trial| trial.marks[0].netty = Some(pools)), "netty_chunks_free")
    };
    assert_eq!(remedies(&of(32, 15, NettyKind::Adaptive, "io.netty")), ["-Dio.netty.allocator.type=pooled"]);
    assert!(of(32, 16, NettyKind::Adaptive, "io.netty").is_none());
    assert!(remedies(&of(32, 1, NettyKind::Adaptive, "shaded.io.netty")).is_empty(), "it reads a different property");
    assert!(of(32, 1, NettyKind::Pooled, "io.netty").is_some());
}

#[test]
fn observers_are_reported_with_their_cost() {
    let of = |option: &str| only(&with(&loaded(&[]), |trial| trial.command.push(option.to_owned())), "observers_on");
    says(&of("-Dcom.sun.management.jmxremote.port=1"), &["JMX, usually 7.6 to 13.4 MiB"]);
    says(&of("-XX:StartFlightRecording"), &["JFR, usually 21.0 to 34.3 MiB"]);
    assert!(of("-javaagent:/a/apm.jar=x=y").is_none(), "an agent without measured cost is not reported");
    let both = with(&loaded(&[]), |trial| {
        trial.command.extend(["-javaagent:/a/apm.jar=x=y", "-XX:StartFlightRecording"].map(str::to_owned));
    });
    says(&only(&both, "observers_on"), &["`apm.jar`, at an unknown cost"]);
    let nmt = typed(&loaded(&[]), "-XX:NativeMemoryTracking=detail", "NativeMemoryTracking", "detail");
    assert_eq!(remedies(&only(&nmt, "observers_on")), ["-XX:NativeMemoryTracking=off"]);
}

#[test]
fn huge_pages_are_reported_with_the_size_from_the_doubt() {
    let of = |mib: u64| {
        let doubt = Doubt::HugePagesInUse { huge_bytes: mib * MIB };
        only(&with(&loaded(&[]), |trial| trial.doubts = vec![doubt.into()]), "huge_pages")
    };
    assert!(of(2).is_some() && of(1).is_none());
}

/// A trial with a limit and ceilings.
fn limited(limit: u64, heap_max: u64) -> Trial {
    with(&loaded(&[("metaspace", 20), ("cds", 13)]), |trial| {
        trial.limit_bytes = Some(limit * MIB);
        let mark = &mut trial.marks[0];
        (mark.heap.max_bytes, mark.threads) = (Some(heap_max * MIB), Some(60));
        let defaults = &mut flags(trial).defaults;
        let code = (240 * MIB).to_string();
        for (name, value) in [
            ("ReservedCodeCacheSize", code.as_str()),
            ("ThreadStackSize", "1024"),
            ("MaxRAMPercentage", "25.000000"),
            ("MinRAMPercentage", "50.000000"),
        ] {
            defaults.insert(name.to_owned(), value.to_owned());
        }
        defaults.remove("MaxHeapSize");
    })
}

#[test]
fn ceilings_are_compared_with_the_limit() {
    // 2 x heap + 240 + 60 + 20, compared with 1.25 x the limit.
    let of = |heap: u64| {
        let trial = typed(&limited(512, heap), "-Xmx", "MaxHeapSize", &(heap * MIB).to_string());
        only(&trial, "ceilings_above_limit")
    };
    assert!(of(160).is_none());
    let found = of(161);
    says(
        &found,
        &[
            "can grow to 642.0 MiB (",
            "), but the limit is 512.0 MiB",
            "code cache 240.0 MiB",
            "60 stacks \
        60.0 MiB",
        ],
    );
    assert_eq!(remedies(&found), ["-XX:MaxDirectMemorySize=32m"]);
    assert!(only(&with(&limited(512, 400), |trial| trial.limit_bytes = None), "ceilings_above_limit").is_none());
    // A limit found by a search is compared with the same sum, and helpers count.
    let ample = typed(&limited(4096, 100), "-Xmx", "MaxHeapSize", &(100 * MIB).to_string());
    let child = ProcessRecord { rss_bytes: 160 * MIB, ..ProcessRecord::default() };
    let ample =
        with(&ample, |trial| trial.marks.iter_mut().for_each(|mark| mark.beside.children = vec![child.clone()]));
    assert!(only(&ample, "ceilings_above_limit").is_none() && super::ceilings_above(&ample, 4096 * MIB).is_none());
    let above = super::ceilings_above(&ample, 261 * MIB);
    says(
        &above,
        &["can grow to 680.0 MiB (", "), but the limit is 261.0 MiB", "child processes (currently) 160.0 MiB"],
    );
}

#[test]
fn an_unseen_limit_is_a_finding() {
    let of = |limit, heap| only(&limited(limit, heap), "limit_not_seen");
    assert!(of(512, 141).is_none() && of(1024, 282).is_none(), "a quarter of the limit, after rounding");
    assert!(of(200, 100).is_none() && of(200, 111).is_some(), "a default heap may be half of a small limit");
    assert!(of(300, 126).is_none() && of(300, 139).is_some(), "126 MiB is normal under a visible limit of 300 MiB");
    let found = of(1024, 283);
    assert_eq!(remedies(&found), ["-Xmx256m"]);
    says(&found, &["did not size itself to its memory limit", "1024.0 MiB"]);
    assert!(only(&limited(512, 6000), "ceilings_above_limit").is_none(), "the cause is reported as its own finding");
    let off = typed(&limited(512, 6000), "-XX:-UseContainerSupport", "UseContainerSupport", "false");
    says(&only(&off, "limit_not_seen"), &["remove `-XX:-UseContainerSupport`"]);
    let starts = typed(&limited(512, 400), "-Xms400m", "InitialHeapSize", &(400 * MIB).to_string());
    assert!(only(&starts, "limit_not_seen").is_none(), "an initial heap set by the user explains the size");
}

/// A JVM of this version with a heap of up to 6000 MiB under a limit of 512, on cgroup v2.
fn unseen(version: &str, change: impl Fn(&mut ChargeRecord)) -> Trial {
    with(&limited(512, 6000), |trial| {
        jvm(trial).version = Some(version.to_owned());
        let mut charge = ChargeRecord { version: "v2".to_owned(), ..ChargeRecord::default() };
        change(&mut charge);
        trial.marks[0].charge = Some(charge);
    })
}

fn cause(found: &Option<FindingRecord>) -> Option<UnseenCause> {
    match found.as_ref()?.finding {
        Finding::LimitNotSeen { cause, .. } => Some(cause),
        _ => None,
    }
}

#[test]
fn an_unseen_limit_has_the_cause_shown_by_the_evidence() {
    let of = |version, change: fn(&mut ChargeRecord)| only(&unseen(version, change), "limit_not_seen");
    let none: fn(&mut ChargeRecord) = |_| {};
    says(&of("11.0.15+10", none), &["this JDK release does not support cgroup v2"]);
    assert_eq!(cause(&of("17.0.15+6", none)), Some(UnseenCause::Unknown));
    let no_memory: fn(&mut ChargeRecord) = |charge| charge.unlisted = ["cpuset", "memory"].map(str::to_owned).to_vec();
    for version in ["17.0.15+6", "21.0.9+10", "24.0.2+12", "11.0.16+8", "25.372-b07"] {
        let found = of(version, no_memory);
        assert_eq!(cause(&found), Some(UnseenCause::ControllersUnlisted), "{version}");
        says(&found, &["lists no `cpuset`, no `memory` (JDK-8349988)", "21.0.10", "`-Xmx128m`"]);
    }
    for version in ["21.0.10+7", "25+36", "26.0.2+10"] {
        assert_eq!(cause(&of(version, no_memory)), Some(UnseenCause::Unknown), "{version} reads other files");
    }
    let no_cpuset: fn(&mut ChargeRecord) = |charge| charge.unlisted = vec!["cpuset".to_owned()];
    says(&of("17.0.13+11", no_cpuset), &["lists no `cpuset` (JDK-8347129)"]);
    let above: fn(&mut ChargeRecord) = |charge| charge.limit_cgroup = Some("/job".to_owned());
    says(&of("21.0.9+10", above), &["the parent cgroup /job", "JDK-8322420", "JDK 24 or newer"]);
    assert_eq!(cause(&of("24.0.1+9", above)), Some(UnseenCause::Unknown), "it reads parent limits");
    let v1 = only(&unseen("17.0.15+6", |charge| charge.version = "v1".to_owned()), "limit_not_seen");
    assert_eq!(cause(&v1), Some(UnseenCause::Unknown));
    let max = typed(&unseen("17.0.15+6", no_memory), "-XX:MaxRAM=8g", "MaxRAM", &(8192 * MIB).to_string());
    says(&only(&max, "limit_not_seen"), &["to your `-XX:MaxRAM`", "lower it to the limit"]);
}

#[test]
fn an_unseen_limit_is_found_even_if_a_heap_share_is_set() {
    let share = |heap| {
        let trial = with(&limited(512, heap), |trial| {
            let (version, unlisted) = ("v2".to_owned(), vec!["memory".to_owned()]);
            trial.marks[0].charge = Some(ChargeRecord { version, unlisted, ..Default::default() });
        });
        only(&typed(&trial, "-XX:MaxRAMPercentage=75", "MaxRAMPercentage", "75.000000"), "limit_not_seen")
    };
    assert!(share(384).is_none() && share(400).is_none(), "the heap follows the share of the limit");
    let found = share(6000);
    assert_eq!(cause(&found), Some(UnseenCause::ControllersUnlisted));
    assert_eq!(remedies(&found), ["-Xmx384m"]);
}

#[test]
fn an_account_detects_a_limit_changed_after_startup() {
    let of = |heap_mib: u64| {
        let trial = limited(512, heap_mib);
        let mut mark = trial.marks[0].clone();
        let charge = ChargeRecord { version: "v2".to_owned(), limit_bytes: Some(512 * MIB), ..ChargeRecord::default() };
        mark.charge = Some(charge);
        let machine = Machine { memory_bytes: 8192 * MIB, ..Machine::default() };
        let document = AccountDocument { mark, machine, jvm: trial.jvm.unwrap(), ..AccountDocument::default() };
        cause(&of_account(&document).findings.into_iter().find(|found| found.finding.kind() == "limit_not_seen"))
    };
    assert_eq!(of(512), Some(UnseenCause::LimitChanged), "the heap is a quarter of a former limit of 2 GiB");
    assert_eq!(of(2048), Some(UnseenCause::Unknown), "the heap is a quarter of the machine's memory");
    assert_eq!(of(128), None);
}

#[test]
fn options_without_effect_are_listed() {
    let of = |options: &[&str]| {
        let trial = with(&loaded(&[]), |trial| {
            trial.command.extend(options.iter().map(|&one| one.to_owned()));
            flags(trial).defaults.insert("UseG1GC".to_owned(), "true".to_owned());
        });
        only(&trial, "flags_idle").map(|found| found.text).unwrap_or_default()
    };
    assert_eq!(of(&["-Xmx1g", "-cp", "-Xmx2g", "Main", "-XX:+UseTLAB"]), "");
    assert!(of(&["-Xmx1g", "-Xmx2g"]).contains("`-Xmx1g` (overridden by `-Xmx2g`)"));
    assert!(of(&["-Xmx1g", "-XX:MaxRAMPercentage=70"]).contains("`-XX:MaxRAMPercentage=70` (overridden by `-Xmx1g`)"));
    assert!(of(&["-XX:MaxRAMPercentage=25"]).contains("(already the default)"));
    assert!(of(&["-XX:ZUncommitDelay=30"]).contains("`-XX:ZUncommitDelay=30` (the collector is G1)"));
    assert_eq!(of(&["-XX:ZeroAll=30", "-XX:MaxRAMPercentage=26", "-XX:G1ReservePercent=11"]), "");
}

#[test]
fn findings_are_ordered_by_weight_then_risk() {
    let trial = with(&loaded(&[("malloc.retained", 40), ("metaspace", 5)]), |trial| {
        trial.command.extend(["-Xmx1g", "-Xmx2g"].map(str::to_owned));
    });
    assert_eq!(kinds(&trial), ["malloc_retained", "flags_idle", "cds_missing"]);
}

#[test]
fn similar_trials_are_counted_and_starved_trials_excluded() {
    let one = loaded(&[("malloc.retained", 40), ("cds", 9)]);
    let probe = r#"{"stage": "limit", "pages": "cold", "verdict": "holds"}"#;
    let starved = with(&one, |trial| trial.probe = serde_json::from_str(probe).unwrap());
    let other = with(&one, |trial| trial.configuration = "b".to_owned());
    let found = of_trials(&[one.clone(), starved, other, one]).findings;
    let told: Vec<_> = found.iter().map(|found| found.of.clone().unwrap()).collect();
    let counts: Vec<_> = told.iter().map(|of| (of.configuration.as_str(), of.trials_alike)).collect();
    assert_eq!(counts, [("a", 2), ("b", 1)]);
}

#[test]
fn memory_retained_by_compilers_gets_no_arena_remedy() {
    let of = |compilers: u64| {
        let trial = with(&loaded(&[("malloc.retained", 40)]), |trial| {
            malloc(&mut trial.marks[0]).compilers_retained_bytes = Some(compilers * MIB);
        });
        only(&trial, "malloc_retained").is_some()
    };
    assert!(of(0) && of(29) && !of(31) && !of(40), "a quarter of it, and 4% of RSS, must not be the compilers'");
}

/// The marks loaded, rested, and collected, with these owners, and these compiler CPU times at the last two.
fn collected(rested: &[(&str, u64)], after: &[(&str, u64)], compiled_s: [f64; 2]) -> Trial {
    let mut marks = vec![mark("loaded", rested), mark("rested", rested), mark("collected", after)];
    for (mark, cpu_s) in marks[1..].iter_mut().zip(compiled_s) {
        mark.pools = vec![pool("C* CompilerThre", 0, 0, cpu_s)];
    }
    trial(marks)
}

/// The same, but the collection keeps everything and the compilers are idle.
fn kept(owners: &[(&str, u64)]) -> Trial {
    collected(owners, owners, [0.0; 2])
}

#[test]
fn native_memory_freed_by_a_collection_was_held_by_garbage() {
    let held = [("malloc.live", 60), ("malloc.retained", 4)];
    let freed = [("malloc.live", 10), ("malloc.retained", 54)];
    let found = only(&collected(&held, &freed, [1.0, 1.1]), "native_held_by_garbage");
    assert_eq!(gain(&found), Some(50 * MIB));
    assert_eq!(remedies(&found), ["-XX:G1PeriodicGCInterval=2000", "-Xmn8m"]);
    says(&found, &["50.0 MiB", "a full GC freed it", "`close()`"]);
    let typed = typed(&collected(&held, &freed, [1.0, 1.1]), "-Xmn320m", "MaxNewSize", "335544320");
    let found = only(&typed, "native_held_by_garbage");
    says(&found, &["-XX:G1PeriodicGCInterval=2000"]);
    assert_eq!(remedies(&found), ["-XX:G1PeriodicGCInterval=2000", "-Xmn8m"], "the proposed size is below the one set");
    // Memory freed by active compilers is theirs; memory that stays is live; any JVM frees a little.
    assert!(only(&collected(&held, &freed, [1.0, 1.3]), "native_held_by_garbage").is_none());
    assert!(only(&collected(&held, &held, [1.0, 1.0]), "native_held_by_garbage").is_none());
    assert!(only(&collected(&held, &[("malloc.live", 50)], [1.0, 1.0]), "native_held_by_garbage").is_some());
    assert!(only(&collected(&held, &[("malloc.live", 51)], [1.0, 1.0]), "native_held_by_garbage").is_none());
    // The compilers' arenas show what compilers freed, but only partially if other threads share them.
    let in_compilers = |before: u64, after: u64| {
        with(&collected(&held, &freed, [1.0, 1.1]), |trial| {
            for (mark, live) in trial.marks[1..].iter_mut().zip([before, after]) {
                (malloc(mark).arenas, malloc(mark).compilers_live_bytes) = (16, Some(live * MIB));
            }
        })
    };
    assert!(only(&in_compilers(50, 1), "native_held_by_garbage").is_none());
    let shared = only(&in_compilers(7, 1), "native_held_by_garbage");
    assert_eq!(gain(&shared), Some(50 * MIB));
    // HotSpot still caches chunks of compilations, unless they ended long before.
    let mut busy = collected(&held, &freed, [7.0, 7.0]);
    assert!(only(&busy, "native_held_by_garbage").is_none());
    busy.marks[0].pools = busy.marks[1].pools.clone();
    assert!(only(&busy, "native_held_by_garbage").is_none());
    busy.marks[0].at_s -= 5.0;
    assert!(only(&busy, "native_held_by_garbage").is_some());
}

#[test]
fn live_direct_memory_gets_no_ceiling() {
    let of = |left: u64, change: &dyn Fn(&mut Mark)| {
        let direct = |mib: u64| Some(DirectRecord { reserved_bytes: mib * MIB, buffers: 32, ..Default::default() });
        let trial = with(&collected(&[("malloc.direct", 64)], &[("malloc.direct", left)], [0.0; 2]), |trial| {
            trial.marks[0].direct = direct(64);
            trial.marks[2].direct = direct(left);
            change(&mut trial.marks[0]);
        });
        only(&trial, "direct_memory_lives")
    };
    let caches = |mark: &mut Mark| {
        let buffers = ThreadBuffersRecord { threads: 32, buffers: 32, bytes: 64 * MIB, largest_bytes: 2 * MIB };
        mark.thread_buffers = Some(buffers);
        mark.pools = vec![pool("web-*", 32, 0, 0.0)];
    };
    let found = of(64, &caches);
    assert_eq!(remedies(&found), ["-Djdk.nio.maxCachedBufferSize=262144"]);
    assert_eq!(gain(&found), Some(56 * MIB), "32 cached buffers of 256 KiB remain");
    says(&found, &["in 32 direct buffers", "32 threads (such as `web-*`)", "up to 2.0 MiB", "in chunks"]);
    says(&found, &["saves only about 40.0 MiB unless", "`MALLOC_TRIM_THRESHOLD_=131072`, because malloc keeps"]);
    let few = of(64, &|mark| {
        caches(mark);
        malloc(mark).arenas = 4;
    });
    says(&few, &["saves only about 48.0 MiB"]);
    let fixed = of(64, &|mark| {
        caches(mark);
        malloc(mark).settings = Some(vec!["MALLOC_TRIM_THRESHOLD_=131072".to_owned()]);
    });
    assert!(!fixed.unwrap().next.contains("malloc keeps"));
    // JDK 25 does not count them.
    let uncounted = with(&kept(&[("malloc.direct", 64)]), |trial| {
        for mark in &mut trial.marks {
            caches(mark);
            mark.direct = Some(DirectRecord::default());
        }
    });
    let found = only(&uncounted, "direct_memory_lives");
    says(&found, &["64.0 MiB is in 32 direct buffers", "this JDK's counters show none of it"]);
    let netty = of(64, &|mark| {
        let direct = mark.direct.as_mut().unwrap();
        (direct.reserved_bytes, direct.netty_bytes) = (0, Some(64 * MIB));
    });
    says(&netty, &["Netty accounts for 64.0 MiB"]);
    let own = of(64, &|_| ());
    says(&own, &["the program or one of its libraries still references", "would make allocations fail"]);
    assert_eq!((remedies(&netty), remedies(&own)), (Vec::new(), Vec::new()));
    assert!(of(48, &|_| ()).is_some() && of(47, &|_| ()).is_none(), "three quarters must remain");
}

#[test]
fn child_processes_and_memory_files_precede_generic_findings() {
    let child = |name: &str, mib: u64| ProcessRecord {
        name: name.to_owned(),
        rss_bytes: 2 * mib * MIB,
        pss_bytes: Some(mib * MIB),
        ..Default::default()
    };
    let files = |mib: u64| MemoryFilesRecord { place: "/dev/shm".to_owned(), files: 3, deleted: 1, bytes: mib * MIB };
    let of = |children: Vec<ProcessRecord>, files: Vec<MemoryFilesRecord>| {
        with(&loaded(&[("malloc.retained", 12)]), |trial| {
            trial.marks[0].beside = BesideRecord { children, files, ..BesideRecord::default() };
        })
    };
    let helpers = of(vec![child("tail", 40), child("tail", 40), child("sh", 1)], Vec::new());
    assert_eq!(kinds(&helpers), ["child_processes", "malloc_retained"]);
    let found = only(&helpers, "child_processes");
    says(&found, &["81.0 MiB", "2 `tail` (80.0 MiB), 1 `sh`", "plus 27.0 MiB per process"]);
    let spool = of(Vec::new(), vec![files(30)]);
    assert_eq!(kinds(&spool), ["files_in_memory", "malloc_retained"]);
    says(&only(&spool, "files_in_memory"), &["30.0 MiB", "3 files in /dev/shm, 1 of them deleted but still open"]);
    assert_eq!(kinds(&of(vec![child("sh", 3)], vec![files(3)])), ["malloc_retained"]);
}

fn collection(class: &str, field: &str, entries: u64, bytes: u64) -> StaticCollectionRecord {
    let [class, field, collection] = [class, field, "java.util.HashMap"].map(str::to_owned);
    StaticCollectionRecord { class, field, collection, entries, bytes }
}

#[test]
fn humongous_objects_in_the_heap_are_a_finding() {
    let humongous = |tail: u64| {
        with(&loaded(&[("java_heap.used", 120)]), |trial| {
            let heap = &mut trial.marks[0].heap;
            (heap.used_bytes, heap.max_bytes) = (Some(130 * MIB), Some(512 * MIB));
            let (object_bytes, tail_bytes) = (60 * (MIB + 16), tail * MIB);
            heap.humongous = Some(HumongousRecord { objects: 60, object_bytes, tail_bytes, region_bytes: MIB });
        })
    };
    let found = only(&humongous(60), "humongous_tails");
    assert_eq!(remedies(&found), ["-XX:G1HeapRegionSize=4m"]);
    says(&found, &["needs only 70.0 MiB of the 130.0 MiB", "lower `-Xmx`"]);
    let found = found.unwrap();
    assert_eq!(found.costs_bytes, 50 * MIB, "unwritten pages are not resident");
    assert_eq!(found.gain_bytes_max, None, "a heap with the same ceiling fills up again");
    assert!(only(&humongous(13), "humongous_tails").is_some() && only(&humongous(12), "humongous_tails").is_none());
    let statics = |live: u64, entries: u64| {
        with(&collected(&[("java_heap.used", 60)], &[("java_heap.live", 40)], [0.0; 2]), |trial| {
            trial.marks[2].heap.live_bytes = Some(live * MIB);
            trial.marks[2].static_collections = vec![collection("java.io.DeleteOnExitHook", "files", entries, 0)];
        })
    };
    let found = only(&statics(40, 150_000), "heap_held_by_statics");
    says(&found, &["40.0 MiB", "`java.io.DeleteOnExitHook.files` with 150,000 entries", "File.deleteOnExit()"]);
    assert!(only(&statics(29, 150_000), "heap_held_by_statics").is_none(), "less than 15% of RSS is not reported");
    assert!(only(&statics(40, 100_000), "heap_held_by_statics").is_none(), "a tenth of the live set is not enough");
}

fn live_class(class: &str, instances: u64, bytes: u64) -> LiveClassRecord {
    LiveClassRecord { class: class.to_owned(), instances, bytes }
}

/// A heap of 100 MiB with this live set and these classes.
fn alive(live: u64, classes: &[(&str, u64, u64)]) -> Trial {
    with(&collected(&[("java_heap.used", 100)], &[("java_heap.live", live)], [0.0; 2]), |trial| {
        let record = |(class, instances, mib): &(&str, u64, u64)| live_class(class, *instances, mib * MIB);
        trial.marks[2].heap.live_bytes = Some(live * MIB);
        trial.marks[2].live_classes = classes.iter().map(record).collect();
    })
}

#[test]
fn a_static_collection_is_judged_by_its_reachable_bytes() {
    let of = |bytes: u64| {
        with(&alive(80, &[("[B", 900, 70)]), |trial| {
            trial.marks[2].static_collections = vec![collection("a.Carts", "OPEN", 900, bytes * MIB)];
        })
    };
    says(&only(&of(60), "heap_held_by_statics"), &["`a.Carts.OPEN` with 900 entries (at least 60.0 MiB)", "bound"]);
    assert!(only(&of(7), "heap_held_by_statics").is_none(), "a tenth of the live set is not enough");
    assert!(only(&of(60), "heap_lives").is_none() && only(&of(7), "heap_lives").is_some());
}

#[test]
fn a_live_heap_is_attributed_to_threads_finalizers_or_classes() {
    let values = |mib: u64| {
        with(&alive(80, &[("[B", 900, 70)]), |trial| {
            let class = "[B".to_owned();
            let values = ThreadValuesRecord { threads: 32, bytes: mib * MIB, class, largest_bytes: 2 * MIB };
            trial.marks[2].thread_values = Some(values);
        })
    };
    let found = only(&values(64), "heap_held_by_thread_locals");
    says(&found, &["64.0 MiB of the 80.0 MiB", "2.0 MiB for each thread", "`byte[]`", "ThreadLocal.remove()"]);
    assert!(only(&values(23), "heap_held_by_thread_locals").is_none(), "less than 30% of the live set is not reported");

    let parked = |threads: u64, mib: u64| {
        alive(80, &[("jdk.internal.vm.StackChunk", threads, mib), ("java.lang.VirtualThread", threads, 1)])
    };
    let found = only(&parked(20_000, 60), "virtual_threads_parked");
    says(&found, &["20,000 virtual threads are parked", "60.0 MiB of the 80.0 MiB", "Semaphore"]);
    assert_eq!(remedies(&found), [] as [&str; 0]);
    assert!(only(&parked(999, 60), "virtual_threads_parked").is_none(), "they may be current requests");
    assert!(only(&parked(20_000, 20), "virtual_threads_parked").is_none());

    let waiting = |objects: u64| {
        alive(80, &[("[B", objects, 70), ("a.Handle", objects, 1), ("java.lang.ref.Finalizer", objects, 1)])
    };
    let found = only(&waiting(5000), "finalizers_wait");
    says(&found, &["5,000 objects with a finalizer", "5,000 of them instances of `a.Handle`", "replace `finalize()`"]);
    assert!(only(&waiting(900), "finalizers_wait").is_none());

    let found = only(&alive(80, &[("[B", 900, 70)]), "heap_lives");
    says(&found, &["80.0 MiB", "70.0 MiB in 900 of `byte[]`", "heap dump"]);
    assert!(only(&alive(47, &[("[B", 900, 40)]), "heap_lives").is_none(), "a live set of 47 MiB is ordinary");
    assert!(only(&alive(80, &[]), "heap_lives").is_none(), "nothing is reported without a class histogram");
}

/// A trial with growing kernel memory, page cache, and file names.
fn charged(kernel: u64, file: u64, names: u64, written: u64) -> Trial {
    let mark = |name: &str, n: u64| {
        let (kernel_bytes, file_bytes) = (Some(n * kernel * MIB), n * file * MIB);
        let shared_charge = Some(ChargeRecord { kernel_bytes, file_bytes, ..ChargeRecord::default() });
        let dentries = Some(DentriesRecord { all: 9000 + n * names, negative: n * names });
        let log = DiskFileRecord { path: "/logs/app.log".to_owned(), bytes: (1 + n * written) * MIB };
        let beside = BesideRecord { shared_charge, dentries, disk_files: vec![log], ..BesideRecord::default() };
        Mark { beside, ..mark(name, &[]) }
    };
    trial(vec![mark("start", 0), mark("loaded", 1)])
}

#[test]
fn kernel_memory_is_reported_with_its_cause() {
    let found = only(&charged(90, 0, 480_000, 0), "kernel_remembers_names");
    let parts = ["90.0 MiB", "480,000 more file names", "negative dentries", "reclaims these before it kills"];
    says(&found, &parts);
    assert_eq!((remedies(&found), gain(&found)), (vec![], None));
    assert_eq!(kinds(&charged(90, 0, 200_000, 0)), [] as [&str; 0], "names take less than half of it");
    assert_eq!(kinds(&charged(19, 0, 480_000, 0)), [] as [&str; 0], "less than a tenth of RSS is not reported");

    let found = only(&charged(0, 110, 0, 117), "page_cache_of_files");
    says(&found, &["110.0 MiB", "`app.log` +117.0 MiB", "drops these pages before it kills", "rotate"]);
    assert_eq!(kinds(&charged(0, 110, 0, 40)), [] as [&str; 0], "less than half of the page cache was written");
    assert_eq!(kinds(&charged(0, 3, 0, 117)), [] as [&str; 0], "pages that were dropped are not reported");
    let own = with(&charged(0, 110, 0, 117), |trial| {
        for mark in &mut trial.marks {
            mark.charge = mark.beside.shared_charge.take();
        }
    });
    let found = only(&own, "page_cache_of_files");
    assert!(!found.unwrap().text.contains("share"), "a JVM in its own cgroup shares no pages");
}

#[test]
fn direct_memory_at_its_ceiling_is_a_finding_with_a_cause() {
    let of = |mib: u64, left: Option<u64>| {
        let mut trial = kept(&[("malloc.direct", 100)]);
        trial.marks[0].direct = direct(mib).map(|of| DirectRecord { max_bytes: Some(100 * MIB), ..of });
        match left {
            Some(left) => trial.marks[2].direct = direct(left),
            None => trial.marks.truncate(1),
        }
        trial
    };
    let disabled = |trial: &Trial| typed(trial, "-XX:+DisableExplicitGC", "DisableExplicitGC", "true");
    let kind = "direct_memory_at_ceiling";
    let found = only(&disabled(&of(96, None)), kind);
    assert_eq!(remedies(&found)[0], "-XX:-DisableExplicitGC");
    says(&found, &["96.0 MiB", "the cap of 100.0 MiB", "remove `-XX:+DisableExplicitGC`"]);
    assert!(only(&of(96, None), kind).is_none(), "a GC makes room for the next buffer");
    assert!(only(&disabled(&of(84, None)), kind).is_none());
    assert_eq!(remedies(&only(&disabled(&of(96, Some(96))), kind)), ["-XX:MaxDirectMemorySize=200m"], "they are live");
    says(&only(&of(96, Some(90)), kind), &["a full GC does not free them", "lower than what is in use"]);
    let error = || "java.lang.OutOfMemoryError: Cannot reserve 1 bytes of direct buffer memory".to_owned();
    let printed = with(&of(60, None), |trial| {
        trial.doubts = vec![Doubt::OutOfMemoryError { error: error(), pool: MemoryPool::DirectMemory }.into()];
    });
    says(&only(&printed, kind), &["the server printed `java.lang.OutOfMemoryError: Cannot reserve"]);
}

#[test]
fn a_max_ram_share_without_effect_in_little_memory_is_a_finding() {
    let of = |limit: u64, heap: u64, share: &str| {
        only(&typed(&limited(limit, heap), "-XX:MaxRAMPercentage=75", "MaxRAMPercentage", share), "heap_share_unheeded")
    };
    let found = of(200, 97, "75.000000");
    assert_eq!(remedies(&found), ["-XX:MinRAMPercentage=75", "-Xmx150m"]);
    says(&found, &["(75%) has no effect", "only 200.0 MiB", "the heap is 97.0 MiB instead of 150.0 MiB"]);
    assert!(of(512, 384, "75.000000").is_none(), "the flag has an effect at this limit");
    assert!(of(200, 97, "50.000000").is_none(), "both shares are equal, so nothing is ignored");
    assert!(only(&limited(200, 97), "heap_share_unheeded").is_none(), "the user set no share");
    let machine = with(&limited(200, 97), |trial| trial.limit_bytes = None);
    let machine = typed(&machine, "-XX:MaxRAM=200m", "MaxRAM", &(200 * MIB).to_string());
    let machine = typed(&machine, "-XX:MaxRAMPercentage=75", "MaxRAMPercentage", "75.0");
    assert!(only(&machine, "heap_share_unheeded").is_some());
}

#[test]
fn an_exhausted_heap_is_reported_without_a_mark() {
    let of = |error: &str| {
        let doubt = Doubt::OutOfMemoryError { error: error.to_owned(), pool: MemoryPool::Other };
        only(&Trial { doubts: vec![doubt.into()], ..Trial::default() }, "heap_exhausted")
    };
    let found = of("java.lang.OutOfMemoryError: Java heap space");
    says(&found, &["ran out of space", "Java heap space", "HeapDumpOnOutOfMemoryError"]);
    assert!(of("java.lang.OutOfMemoryError: Metaspace").is_none());
}

/// Native memory of which all but 4 MiB came with the load; `collected` changes the mark after a collection.
fn came(mib: u64, collected: impl FnOnce(&mut Mark)) -> Trial {
    with(&kept(&[("malloc.live", mib)]), |trial| {
        trial.marks.insert(0, mark("start", &[("malloc.live", 4)]));
        collected(&mut trial.marks[3]);
    })
}

#[test]
fn lasting_native_memory_is_reported_with_its_allocator() {
    let of = |mib: u64, classes: &[LiveClassRecord]| came(mib, |mark| mark.live_classes = classes.to_vec());
    let arenas = only(&of(104, &[live_class("jdk.internal.foreign.SharedSession", 1200, 1)]), "native_memory_lives");
    says(&arenas, &["100.0 MiB", "1,200 arenas", "close each arena"]);
    assert_eq!(remedies(&arenas), [] as [&str; 0]);
    says(&only(&of(104, &[]), "native_memory_lives"), &["`Unsafe.allocateMemory`"]);
    assert!(only(&of(35, &[]), "native_memory_lives").is_none(), "32 MiB");
    let no_start = with(&of(104, &[]), |trial| drop(trial.marks.remove(0)));
    assert!(only(&no_start, "native_memory_lives").is_none(), "the time of allocation is unknown");
}

fn detail(name: &str, mib: u64) -> DetailRecord {
    DetailRecord { name: name.to_owned(), rss_bytes: mib * MIB, ..DetailRecord::default() }
}

fn in_parts(owner: &str, mib: u64, parts: &[(&str, u64)]) -> Trial {
    with(&loaded(&[(owner, mib)]), |trial| {
        let of = account(&mut trial.marks[0]).owners.iter_mut().find(|of| of.name == owner).unwrap();
        of.detail = parts.iter().map(|(name, mib)| detail(name, *mib)).collect();
    })
}

#[test]
fn native_memory_names_only_the_programs_own_libraries() {
    let of = |files: &[&str]| {
        let trial = came(104, |mark| {
            let (name, detail) = ("libraries".to_owned(), files.iter().map(|name| detail(name, 0)).collect());
            account(mark).owners.push(OwnerRecord { name, detail, ..Default::default() });
        });
        only(&trial, "native_memory_lives").unwrap().text
    };
    let jdk = ["/lib/libc.so.6", "/jdk/lib/libjava.so", "/jdk/lib/libsimdsort.so", "/jdk/lib/server/libjvm.so"];
    assert!(of(&jdk).contains("`Unsafe.allocateMemory`"));
    // glibc before 2.34, and a preloaded allocator.
    let older = ["/lib/libc-2.31.so", "/lib/libpthread-2.31.so", "/lib/libjemalloc.so.2", "/jdk/lib/libjava.so"];
    assert!(of(&older).contains("`Unsafe.allocateMemory`"));
    assert!(of(&[&jdk[..], &["/tmp/librocksdbjni7.so"]].concat()).contains("`librocksdbjni7.so`"));
}

#[test]
fn only_files_mapped_by_the_program_are_reported() {
    let of = |files: &[(&str, u64)]| only(&in_parts("mapped_files", 60, files), "mapped_files");
    let found = of(&[("/jdk/lib/modules", 10), ("/data/a.idx (deleted)", 50), ("/x/nothing", 0)]);
    assert!(!found.as_ref().unwrap().text.contains("nothing"));
    says(&found, &["50.0 MiB of the files", "`a.idx (deleted)` (50.0 MiB)", "drops clean pages before it kills"]);
    assert!(of(&[("/jdk/lib/modules", 30), ("/app/lib/a.jar", 30)]).is_none());
    assert!(of(&[("/data/a.idx", 29)]).is_none(), "less than 15% of RSS is not reported");
}

/// This many loaders of a single type.
fn of_loaders(name: &str, loaders: u64, classes: u64, taken_bytes: u64) -> Option<LoadersRecord> {
    let total = LoaderSum { loaders, classes, taken_bytes, ..LoaderSum::default() };
    let types = vec![LoaderType { name: name.to_owned(), now: total, change: None }];
    Some(LoadersRecord { total, types, ..LoadersRecord::default() })
}

#[test]
fn classes_generated_under_load_are_attributed_to_their_loader() {
    let of = |classes: u64, loaders: u64, mib: u64| {
        let mark = |name: &str, n: u64| {
            let loaders = of_loaders("a.AppLoader", 3 + n * loaders, 1400 + n * classes, n * mib * MIB);
            Mark { loaders, ..mark(name, &[("metaspace", 60)]) }
        };
        only(&trial(vec![mark("start", 0), mark("loaded", 1)]), "classes_generated")
    };
    says(&of(16_800, 0, 60), &["the load added 16,800 classes", "`a.AppLoader`", "60.0 MiB of metaspace"]);
    assert!(of(3999, 0, 60).is_none(), "a few thousand classes are a normal warm-up");
    assert!(of(16_800, 1000, 60).is_none(), "many small loaders have a separate finding");
    assert!(of(16_800, 0, 19).is_none(), "less than a tenth of RSS is not reported");
}

#[test]
fn netty_chunks_are_recognized_by_number_if_counters_are_missing() {
    let of = |chunks: u64, is_loaded: bool| {
        with(&kept(&[("malloc.direct", 150)]), |trial| {
            for mark in &mut trial.marks {
                mark.direct = direct(150);
                let direct = mark.direct.as_mut().unwrap();
                (direct.buffers, direct.netty_loaded, direct.netty_bytes) = (48, is_loaded, None);
            }
            trial.marks[2].live_classes = vec![live_class("io.netty.buffer.PoolChunk", chunks, 1)];
        })
    };
    says(&only(&of(40, true), "direct_memory_lives"), &["Netty accounts for", "never released"]);
    says(&only(&of(10, true), "direct_memory_lives"), &["the program or one of its libraries"]);
    says(&only(&of(40, false), "direct_memory_lives"), &["the program or one of its libraries"]);
}

#[test]
fn full_and_nearly_empty_netty_chunks_are_distinguished() {
    let of = |held: u64, used: u64, handed_out: Option<u64>| NettyChunksRecord {
        package: "io.netty".to_owned(),
        chunks: held / 4,
        full_chunks: 30,
        nearly_empty_chunks: 31,
        held_bytes: held * MIB,
        used_bytes: used * MIB,
        handed_out_bytes: handed_out.map(|mib| mib * MIB),
    };
    let trial = |loaded: Option<NettyChunksRecord>, rested: Option<NettyChunksRecord>| {
        with(&kept(&[("malloc.direct", 128)]), |trial| {
            for mark in &mut trial.marks {
                mark.direct = Some(DirectRecord { netty_bytes: Some(128 * MIB), ..DirectRecord::default() });
            }
            (trial.marks[0].netty_chunks, trial.marks[1].netty_chunks) = (loaded, rested);
        })
    };
    let told = |loaded, rested| only(&trial(loaded, rested), "direct_memory_lives");
    let held = "Netty holds 128.0 MiB in 32 chunks";
    let full = told(Some(of(128, 125, Some(125))), None);
    says(&full, &[held, "30 of them full; 125.0 MiB is in use. These are buffers", "never released, or requests"]);
    says(&full, &["without traffic", "`-Dio.netty.leakDetection.level=paranoid`", "Netty then logs `LEAK`"]);
    let rested = told(Some(of(128, 125, Some(125))), Some(of(128, 120, Some(120))));
    says(&rested, &["120.0 MiB is in use after the load. These are buffers that were never released -> set"]);
    assert_eq!((remedies(&full), gain(&full)), (Vec::new(), None));
    // Running requests held the chunks; later, they are mostly empty.
    let few = told(Some(of(128, 125, Some(125))), Some(of(128, 4, Some(3))));
    says(&few, &[held, "31 of them nearly empty; 3.0 MiB is in use. A few long-lived buffers", "numDirectArenas=1"]);
    assert_eq!(gain(&few), Some(125 * MIB));
    assert_eq!(remedies(&few), ["-Dio.netty.allocator.maxOrder=3"]);
    let caches = told(Some(of(128, 90, Some(3))), None);
    says(&caches, &[held, "3.0 MiB is in use. 87.0 MiB of freed buffers in per-thread caches"]);
    assert_eq!(remedies(&caches), ["-Dio.netty.allocator.normalCacheSize=0 -Dio.netty.allocator.smallCacheSize=0"]);
    // The finding mentions only what this Netty counts. A relocated Netty has its own property names.
    let uncounted = told(None, Some(of(128, 70, None)));
    says(&uncounted, &["70.0 MiB is in use or in per-thread caches"]);
    says(&uncounted, &["never released, or buffers in thread caches"]);
    let shaded = NettyChunksRecord { package: "a.io.netty".to_owned(), ..of(128, 4, Some(3)) };
    assert_eq!(remedies(&told(Some(shaded), None)), ["-Da.io.netty.allocator.maxOrder=3"]);
    let typed = with(&trial(Some(of(128, 4, Some(3))), None), |trial| {
        trial.command.push("-Dio.netty.allocator.maxOrder=9".to_owned());
    });
    assert_eq!(remedies(&only(&typed, "direct_memory_lives")), [] as [&str; 0], "it is already set");
    // Chunks that hold less than half of the memory do not explain it.
    says(&told(Some(of(60, 60, Some(60))), None), &["Netty accounts for 128.0 MiB", "list Netty's pools"]);
    // The JDK counts Netty's buffers in some cases; the chunks show the owner.
    let by_jdk = with(&trial(Some(of(128, 125, Some(125))), None), |trial| {
        trial.marks.iter_mut().for_each(|mark| mark.direct = direct(128));
    });
    says(&only(&by_jdk, "direct_memory_lives"), &[held]);
}

#[test]
fn threads_that_outlive_the_load_are_a_finding() {
    let of = |threads: u64, cpu_s: f64| {
        let mut all = trial(vec![mark("start", &[]), mark("loaded", &[])]);
        (all.marks[0].threads, all.marks[1].threads) = (Some(30), Some(30 + threads));
        all.marks[1].pools = vec![pool("export-*", threads, threads << 15, cpu_s)];
        all
    };
    let found = only(&of(900, 1.0), "threads_pile_up");
    says(&found, &["the load started 900 threads", "`export-*`", "28.1 MiB of stacks", "newFixedThreadPool"]);
    assert!(only(&of(900, 1.0), "threads_idle").is_none(), "the pool is already reported by another finding");
    assert!(only(&of(299, 1.0), "threads_pile_up").is_none() && only(&of(900, 900.0), "threads_pile_up").is_none());
}

#[test]
fn large_compilations_and_many_loaders_are_findings() {
    let of = |growth: u64, kept: u64| {
        with(&loaded(&[("malloc.retained", 100)]), |trial| {
            malloc(&mut trial.marks[0]).compilers_retained_bytes = Some(kept * MIB);
            let (method, rss_growth_bytes) = ("a.Scores::of".to_owned(), growth * MIB);
            trial.compilations = vec![CompilationRecord { method, tier: 4, rss_growth_bytes, ..Default::default() }];
        })
    };
    let found = only(&of(120, 90), "compiler_peak");
    assert_eq!(remedies(&found), ["-XX:CompileCommand=exclude,a.Scores::of", "-XX:TieredStopAtLevel=1"]);
    assert_eq!(gain(&found), Some(90 * MIB), "the gain is limited to what the compilers retained");
    assert!(only(&of(120, 60), "compiler_peak").is_none() && only(&of(60, 120), "compiler_peak").is_none());
    let loaders = |loaders: u64, classes: u64| {
        let trial = with(&loaded(&[("metaspace", 60)]), |trial| {
            trial.marks[0].loaders = of_loaders("x.Defining", loaders, classes, loaders << 14);
        });
        only(&trial, "loaders_many")
    };
    says(&loaders(4800, 4800), &["4,800 class loaders of type `x.Defining`", "75.0 MiB of metaspace"]);
    assert!(loaders(600, 600).is_none(), "less than 5% of RSS is not reported");
    assert!(loaders(4800, 20_000).is_none(), "loaders with many classes are application loaders");
}

#[test]
fn a_library_with_its_own_allocator_is_named() {
    let of = |library: &str, mib: u64| {
        let name = format!("{library} (jemalloc): in use, according to jemalloc");
        only(&in_parts("native", mib, &[(&name, mib)]), "library_memory")
    };
    says(&of("libduck.so", 80), &["80.0 MiB", "`libduck.so (jemalloc)`", "own limit"]);
    says(&of("libduckdb_java.so", 80), &["80.0 MiB", "`SET memory_limit", "No JVM flag"]);
    assert!(of("libduck.so", 9).is_none());
}

#[test]
fn the_documentation_lists_every_kind_of_finding() {
    let page = include_str!("../../../docs/findings.md");
    let schema: Value = serde_json::from_str(include_str!("../../../docs/results.schema.json")).unwrap();
    let kinds = schema["$defs"]["Finding"]["oneOf"].as_array().unwrap();
    assert!(kinds.len() >= 17);
    for of in kinds {
        let kind = of["properties"]["kind"]["const"].as_str().unwrap();
        assert!(page.contains(&format!("| `{kind}` |")), "{kind}");
    }
}
