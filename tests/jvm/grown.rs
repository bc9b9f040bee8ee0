//! Live objects by class, heap dumps, code cache by segment, and threads by pool, on subjects with declared contents.

use crate::invocation::{Call, newest, releases};
use crate::standing::LaunchPlan;
use crate::truth::truth;
use loadline::record::{ObjectClass, ObjectsRecord};
use std::fs::File;
use std::io::Read;

const REQUESTS: u64 = 200;

fn of<'a>(found: &'a ObjectsRecord, name: &str) -> &'a ObjectClass {
    found.classes.iter().find(|class| class.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn live_objects_are_counted_exactly_after_an_announced_full_gc() {
    let held = truth("Holds64MiB", "heap_bytes");
    for release in releases() {
        let subject = LaunchPlan::on(release, "-Xmx128m -XX:+UseSerialGC").serving("Holds64MiB");
        let ran = subject.account_call("--json --classes").run().expect(0).says(&["live objects: a full GC"]);
        let found = crate::standing::account_of(&ran).objects.unwrap();
        let arrays = of(&found, "[B").now;
        // Strings contain byte arrays too.
        assert!((held..held + (4 << 20)).contains(&arrays.bytes), "JDK {release}: {arrays:?}");
        assert!(arrays.instances >= 1024 && found.total.bytes >= arrays.bytes, "{found:?}");
        assert_eq!(found.at_start, None);
        // Without `--classes`, no collection is requested.
        assert_eq!(subject.document("").objects, None);
    }
}

#[test]
fn growth_is_reported_relative_to_a_fresh_jvm() {
    for release in newest() {
        let call = Call::on(release).with("--classes").with("--marks start,loaded");
        let trial = call.subject("LeaksLoaders", "{port}").run().expect(0).trial();
        let found = trial.objects.as_ref().unwrap();
        let loaders = of(found, "loadline.subjects.ClassFiles");
        // The count covers warm-up and work, plus one readiness check per JVM.
        let (now, start) = (loaders.now.instances, loaders.at_start.unwrap().instances);
        assert!((2 * REQUESTS..=2 * REQUESTS + 1).contains(&now) && start <= 1, "{now}, {start}");
        assert!(found.at_start.unwrap().instances < found.total.instances);
    }
}

#[test]
fn a_heap_dump_is_written_once() {
    for release in newest() {
        let subject = LaunchPlan::on(release, "-Xmx64m").serving("Threads64");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.hprof");
        let call = || subject.account_call("--json --heap-dump").with_argument(&file);
        let ran = call().run().expect(0).says(&["heap dump: a full GC"]);
        let dumped = crate::standing::account_of(&ran).heap_dump.unwrap();
        let mut beginning = [0; 12];
        File::open(&file).unwrap().read_exact(&mut beginning).unwrap();
        assert_eq!((&beginning, dumped.path.as_str()), (b"JAVA PROFILE", file.to_str().unwrap()));
        assert_eq!(dumped.bytes, file.metadata().unwrap().len());
        call().run().expect(2).says(&["already exists"]);
        assert_eq!(dumped.bytes, file.metadata().unwrap().len());
        subject.runs_on();
    }
}

#[test]
fn numbered_threads_of_a_jvm_form_one_pool() {
    let extra = truth("Threads64", "threads_extra");
    for release in releases() {
        let subject = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").serving("Threads64");
        let mark = subject.document("").mark;
        let pool = mark.pools.iter().find(|pool| pool.name == "parked-*").unwrap();
        assert_eq!(pool.threads, extra, "JDK {release}");
        // Each thread has touched some pages of its stack, but not all.
        assert!((extra * 4096..=extra << 20).contains(&pool.stack_bytes), "{pool:?}");
        let all: u64 = mark.pools.iter().map(|pool| pool.threads).sum();
        assert!(all.abs_diff(mark.threads.unwrap()) <= 8, "JDK {release}: {all} of {:?}", mark.threads);
    }
}

#[test]
fn code_cache_segments_match_the_jvms_memory_pools() {
    for release in releases() {
        let plan = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1");
        let (subject, figures) = plan.worked("CodeFiller");
        let used = figures.of("code_used");
        let mark = subject.document("").mark;
        let told: u64 = mark.code.iter().map(|heap| heap.used_bytes).sum();
        // The pools count free blocks differently; nothing is compiled anymore.
        assert!(told.abs_diff(used) <= used / 10, "JDK {release}: found {told}, actual {used}");
        for heap in &mark.code {
            assert!(heap.used_bytes <= heap.used_bytes_peak && heap.used_bytes_peak <= heap.reserved_bytes, "{heap:?}");
            assert!(heap.rss_bytes.unwrap() <= heap.committed_bytes.unwrap(), "{heap:?}");
        }
    }
}
