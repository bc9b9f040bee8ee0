//! Each planted cause is the first finding, with its owner and amount, and the remedy for that cause.

use crate::deaths::limits_work;
use crate::invocation::{Call, mark, newest};
use crate::truth::truth;
use loadline::record::{ChargeKind, ChargeRecord, DirectHolder, Finding, FindingRecord, Trial};

const MIB: u64 = 1 << 20;

/// The charge of a subject with this planted cause, below its limit.
fn charged(release: u32, cause: &str) -> ChargeRecord {
    let call = Call::on(release).with("-n 200").with("--rest 1").with("--warmup 50").with("--limit 512m");
    let ran = call.with_jvm("-Xmx64m -XX:+UseSerialGC").subject("Plants", &format!("{{port}} {cause}")).run().expect(0);
    mark(&ran.trial(), "loaded").charge.clone().expect("a subject with a limit has its own cgroup")
}

/// The findings for a subject with this planted cause, and its trial.
fn weighed(release: u32, options: &str, cause: &str) -> (Vec<FindingRecord>, Trial) {
    let call = Call::on(release).with("-n 200").with("--rest 1").with("--warmup 50").with_jvm(options);
    let ran = call.subject("Plants", &format!("{{port}} {cause}")).run().expect(0);
    let mut document = ran.document();
    for found in &document.findings {
        println!("JDK {release}, {cause}: {} -> {}", found.text, found.next);
    }
    (document.findings.clone(), document.trials.remove(0))
}

/// The first finding, and its first remedy.
#[track_caller]
fn first(found: &[FindingRecord]) -> (&Finding, String) {
    let first = found.first().expect("the planted cause must give a finding");
    (&first.finding, first.remedies.first().map(|change| change.typed().join(" ")).unwrap_or_default())
}

fn near(bytes: u64, truth: u64) -> bool {
    bytes.abs_diff(truth) <= truth / 10
}

/// Arenas are proposed only for memory retained outside the compilers' arenas.
#[track_caller]
fn no_habit(found: &[FindingRecord]) {
    assert!(!found.iter().any(|one| matches!(one.finding, Finding::MallocRetained { .. })), "{found:?}");
}

#[test]
fn a_charge_has_rows_for_jvm_children_and_files() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        for cause in ["children", "files"] {
            let charge = charged(release, cause);
            println!("JDK {release}, {cause}: {charge:#?}");
            assert_eq!(charge.rows.iter().map(|row| row.bytes).sum::<i64>(), charge.usage_bytes as i64);
            let of = |kind: ChargeKind, owner: &'static str| {
                charge.rows.iter().filter(move |row| row.kind == kind && row.owner.starts_with(owner))
            };
            assert_eq!(of(ChargeKind::Anonymous, "java").count(), 1);
            let children: Vec<u64> = of(ChargeKind::Anonymous, "tail").map(|row| row.bytes as u64).collect();
            let files: Vec<_> = of(ChargeKind::MemoryFiles, "/dev/shm").collect();
            if cause == "children" {
                assert_eq!(children.len() as u64, truth("Plants", "children"));
                assert!(children.iter().all(|bytes| near(*bytes, truth("Plants", "child_bytes"))), "{children:?}");
            } else {
                assert_eq!(files.len(), 1);
                assert_eq!(files[0].bytes as u64, truth("Plants", "file_bytes"));
                assert_eq!((files[0].files, files[0].deleted), (truth("Plants", "files"), truth("Plants", "files")));
            }
        }
    }
}

#[test]
fn child_processes_and_memory_files_are_found() {
    for release in newest() {
        let (found, trial) = weighed(release, "-Xmx64m -XX:+UseSerialGC", "children");
        let (Finding::ChildProcesses { bytes, programs }, cure) = first(&found) else { panic!("{found:?}") };
        let planted = truth("Plants", "children") * truth("Plants", "child_bytes");
        assert!(near(*bytes, planted) && programs[0].name == "tail" && programs[0].processes == 3, "{programs:?}");
        assert_eq!(cure, "", "no JVM flag limits a child process");
        assert_eq!(mark(&trial, "loaded").beside.children.len(), 3);
        no_habit(&found);

        let (found, trial) = weighed(release, "-Xmx64m -XX:+UseSerialGC", "files");
        let (Finding::FilesInMemory { bytes, places }, _) = first(&found) else { panic!("{found:?}") };
        assert_eq!((*bytes, places[0].place.as_str()), (truth("Plants", "file_bytes"), "/dev/shm"));
        assert_eq!((places[0].files, places[0].deleted), (truth("Plants", "files"), truth("Plants", "files")));
        assert_eq!(mark(&trial, "loaded").beside.children, []);
        no_habit(&found);
    }
}

#[test]
fn holders_of_direct_memory_are_named() {
    for release in newest() {
        let (found, trial) = weighed(release, "-Xmx96m -XX:+UseSerialGC", "channels");
        let (Finding::DirectMemoryLives { holder, .. }, cure) = first(&found) else { panic!("{found:?}") };
        let DirectHolder::ThreadCaches { bytes, threads, largest_bytes, pool, .. } = holder else {
            panic!("{holder:?}")
        };
        // The HTTP server's threads cache small buffers, too.
        let readers = truth("Plants", "channel_threads");
        assert!((readers..readers + 4).contains(threads) && *largest_bytes == 2 * MIB, "{holder:?}");
        assert!(*bytes >= truth("Plants", "channel_bytes") && pool.as_deref() == Some("reader-*"), "{holder:?}");
        assert_eq!(cure, "-Djdk.nio.maxCachedBufferSize=262144");
        // JDK 25 does not count it.
        let row = mark(&trial, "loaded").account.as_ref().unwrap().holds("malloc.direct");
        assert!(near(row, truth("Plants", "channel_bytes")), "{row}");

        let (found, _) = weighed(release, "-Xmx96m -XX:+UseSerialGC", "buffers");
        let (Finding::DirectMemoryLives { holder, direct_bytes, .. }, cure) = first(&found) else {
            panic!("{found:?}")
        };
        assert!(near(*direct_bytes, truth("Plants", "buffer_bytes")), "{direct_bytes}");
        assert_eq!((holder, cure.as_str()), (&DirectHolder::Program, ""), "a ceiling does not reduce live buffers");
    }
}

#[test]
fn native_memory_held_by_garbage_and_by_live_objects_differ() {
    for release in newest() {
        let (found, _) = weighed(release, "-Xmx160m -Xmn128m -XX:+UseSerialGC", "garbage");
        let (Finding::NativeHeldByGarbage { freed_bytes, owners, collections }, _) = first(&found) else {
            panic!("{found:?}")
        };
        // For each deflater, zlib requests 262 KiB and writes to most of it.
        let asked = truth("Plants", "deflaters") * (262 << 10);
        assert!(*freed_bytes > asked / 2 && *freed_bytes <= asked, "{freed_bytes}");
        assert!(owners[0].owner.starts_with("malloc.") && *collections == Some(0), "{owners:?}");
        no_habit(&found);
    }
}

#[test]
fn humongous_objects_and_statics_in_the_heap_are_named() {
    for release in newest() {
        let g1 = "-Xmx256m -XX:+UseG1GC -XX:G1HeapRegionSize=1m";
        let (found, trial) = weighed(release, g1, "humongous");
        let read = mark(&trial, "loaded").heap.humongous.unwrap();
        let planted = truth("Plants", "humongous_bytes");
        assert!((planted..planted + 4 * MIB).contains(&read.object_bytes), "{read:?}");
        assert!((63 * MIB..68 * MIB).contains(&read.tail_bytes) && read.region_bytes == MIB, "{read:?}");
        assert!(found.iter().any(|one| matches!(one.finding, Finding::HumongousTails { .. })), "{found:?}");

        let (found, _) = weighed(release, "-Xmx160m -XX:+UseSerialGC", "statics");
        let (Finding::HeapHeldByStatics { holders, .. }, cure) = first(&found) else { panic!("{found:?}") };
        let field = format!("{}.{}", holders[0].class, holders[0].field);
        assert_eq!(
            (field.as_str(), holders[0].entries),
            ("loadline.subjects.Plants.sessions", truth("Plants", "entries"))
        );
        assert_eq!(cure, "", "a larger heap cures nothing");
    }
}

#[test]
fn holders_of_large_objects_are_named() {
    for release in newest() {
        let (found, trial) = weighed(release, "-Xmx160m -XX:+UseSerialGC", "locals");
        let (Finding::HeapHeldByThreadLocals { values, .. }, cure) = first(&found) else { panic!("{found:?}") };
        assert!(near(values.bytes, truth("Plants", "local_bytes")), "{values:?}");
        assert_eq!((values.threads, values.class.as_str()), (truth("Plants", "local_threads"), "[B"));
        assert_eq!(cure, "", "a larger heap cures nothing");
        // The kernel keeps 15 bytes of a name.
        let pools = &mark(&trial, "loaded").pools;
        assert!(pools.iter().any(|pool| pool.name == "report-renderer-of-pages-*"), "{pools:?}");

        let (found, _) = weighed(release, "-Xmx160m -XX:+UseSerialGC", "carts");
        let (Finding::HeapHeldByStatics { holders, .. }, _) = first(&found) else { panic!("{found:?}") };
        let planted = (truth("Plants", "carts"), "carts");
        assert_eq!((holders[0].entries, holders[0].field.as_str()), planted);
        assert!(near(holders[0].bytes, truth("Plants", "cart_bytes")), "{holders:?}");

        let (found, _) = weighed(release, "-Xmx160m -XX:+UseSerialGC", "field");
        let (Finding::HeapLives { classes, live_bytes }, _) = first(&found) else { panic!("{found:?}") };
        assert!(near(*live_bytes, truth("Plants", "cart_bytes")) && classes[0].class == "[B", "{classes:?}");
        no_habit(&found);
    }
}
