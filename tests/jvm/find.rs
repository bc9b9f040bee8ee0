//! The load line of real servers with known memory: found, confirmed, refuted, interrupted, and resumed. Only memory
//! can make them miss their targets, and all bounds are generous: nothing depends on timing.

use crate::deaths::{assert_no_cgroup, limits_work};
use crate::invocation::{Call, Ran, newest, small};
use crate::standing::LaunchPlan;
use loadline::record::{FailureCause, FindOutcome, FindRecord, Outcome, ProbeStage, ProbeVerdict, Trial, Unknowns};
use loadline_test_support::long_tests_run;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// A search with little load, on a server with this much memory.
fn find(release: u32, appetite: &str) -> Call {
    let call =
        Call::verb("find --json --rate 50 -d 1s --warmup 300ms -c 4 --gc serial --no-warm --proofs 2 --step 10%");
    let call = call.with("--soak 3s");
    let call = call.with("--url http://127.0.0.1:{port}/").archiving().of_jdk(release);
    let call = call.with("--target failed==0").with("--jvm -XX:TieredStopAtLevel=1").with("--limit-max 512m");
    call.subject("Appetite", &format!("{{port}} {appetite}")).alone()
}

fn found(ran: &Ran) -> FindRecord {
    ran.document().find.unwrap()
}

fn probe(trial: &Trial) -> (ProbeStage, ProbeVerdict) {
    let probe = trial.probe.as_ref().unwrap();
    (probe.stage, probe.verdict)
}

#[test]
fn heap_and_limit_of_a_known_server_are_found() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    for release in newest() {
        let ran = find(release, "live=32 direct=16").with("--jvm -XX:MaxDirectMemorySize=64m").run().expect(0);
        let document = ran.document();
        let find = found(&ran);
        assert_eq!((find.outcome, find.unknowns), (FindOutcome::Found, Unknowns::HeapAndLimit), "{}", find.text);
        let line = find.line.clone().unwrap();
        // A heap of 32 MiB cannot hold 32 MiB in pieces of 64 KiB, and twice that is plenty.
        let heap = line.heap_bytes.unwrap();
        assert!((33 * MIB..64 * MIB).contains(&heap), "{heap}");
        assert!(line.limit_bytes > heap + 16 * MIB && line.limit_bytes < heap + 120 * MIB, "{line:?}");
        // The limit to set passed for longer, with more heap than the smallest that passed.
        let (soak, set) = (find.soak.clone().unwrap(), find.heap_bytes.unwrap());
        assert!(set > heap && soak.heap_bytes == Some(set) && soak.limit_bytes == find.limit_bytes, "{soak:?}");
        assert!(soak.seconds >= 2.9, "{soak:?}");
        assert_eq!((line.held, find.options.first()), (3, Some(&format!("-Xmx{}m", set / MIB))));
        let below = line.below_bytes.unwrap();
        assert!(below < line.limit_bytes && line.limit_bytes as f64 / below as f64 <= 1.101, "{line:?}");
        assert!(line.cause.is_some() && !line.cause_text.is_empty(), "{line:?}");
        // The heap is at most a step above one that failed, and a heap that is too small fails on its own.
        let of_heap = |stage| matches!(stage, ProbeStage::Heap | ProbeStage::HeapStart);
        let fails = |(stage, verdict)| of_heap(stage) && verdict == ProbeVerdict::Fails;
        let small = document.trials.iter().filter(|trial| fails(probe(trial)));
        let tried: Vec<_> = small.map(|trial| trial.probe.as_ref().unwrap()).collect();
        let cause: Vec<_> = tried.iter().map(|probe| (probe.heap_bytes.unwrap() / MIB, probe.cause)).collect();
        println!("JDK {release}: {} MiB of heap in {}; failed: {cause:?}", heap / MIB, line.limit_bytes);
        let below = tried.iter().filter_map(|probe| probe.heap_bytes).filter(|tried| *tried < heap).max().unwrap();
        assert!(heap - below <= line.limit_bytes / 10 + MIB, "a heap of {heap} passed, and {below} failed");
        let by_itself = |of: &Option<FailureCause>| {
            matches!(of, Some(FailureCause::OutOfMemoryError | FailureCause::Start | FailureCause::Collections))
        };
        assert!(cause.iter().all(|(_, of)| by_itself(of)), "{cause:?}");
        assert!(find.trials <= 20 && find.trials as usize == document.trials.len());
        // Only the first trial attaches to the JVM; the others are read from outside it.
        for (index, trial) in document.trials.iter().enumerate() {
            assert_eq!(trial.marks.is_empty(), index > 0, "{:?}", trial.marks);
            assert!(trial.observer.attach_ms.is_none() || index == 0);
        }
        assert_no_cgroup(&ran);

        // The archive gives the same result without a JVM.
        let again = Call::verb("report --json").with_argument(&ran.archive).run().expect(0);
        assert_eq!(again.document().find, Some(find));
    }
}

#[test]
fn one_limit_is_proved_or_refuted() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        let prove = |limit: &str| find(release, "live=8").with("--heap 24m").with(&format!("--prove {limit}")).run();
        let held = found(&prove("256m").expect(0));
        let line = held.line.unwrap();
        assert_eq!((line.limit_bytes, line.held, line.below_bytes), (256 * MIB, 2, None));
        assert!(held.text.contains("2 of 2 trials in a row passed at 256.0 MiB"), "{}", held.text);
        let ran = prove("32m").expect(1);
        assert_eq!(found(&ran).outcome, FindOutcome::Never);
        assert!(found(&ran).text.contains("the target is missed at 32.0 MiB"), "{}", found(&ran).text);
        assert_no_cgroup(&ran);
    }
}

#[test]
fn an_unattainable_target_is_tried_once() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        let ran = find(release, "live=1").with("--target p50<1us").run().expect(1);
        let find = found(&ran);
        assert_eq!((find.outcome, &find.line), (FindOutcome::NotHeld, &None));
        // A disturbed trial is repeated, and does not count.
        let counts: Vec<_> = ran.document().trials.iter().map(|trial| probe(trial).1).collect();
        let (last, before) = counts.split_last().unwrap();
        assert_eq!(*last, ProbeVerdict::Fails);
        assert!(before.iter().all(|verdict| *verdict == ProbeVerdict::Discarded), "{counts:?}");
        assert!(find.text.contains("even with ample memory: p50.steady was"), "{}", find.text);
    }
}

#[test]
fn unsearchable_requests_are_rejected_before_anything_starts() {
    let refused = |call: Call, said: &[&str]| {
        let ran = call.beside().run().expect(2).says(said);
        assert!(!Path::new(&ran.archive).exists());
    };
    for release in newest() {
        refused(
            find(release, "").with("--heap 1g"),
            &["the heap of 1024.0 MiB does not fit within the limit of 512.0 MiB"],
        );
        refused(find(release, "").with("--heap 64m").with("--as-is"), &["left to the JVM", "--as-is"]);
        refused(find(release, "").with("--target rss.loaded<=60MiB"), &["requires querying the JVM", "from outside"]);
        refused(find(release, "").with("--target p99.spike<1s"), &["no phase is named `spike`"]);
        refused(find(release, "").with("--proofs 0"), &["`find.proofs` is 0"]);
    }
    refused(Call::verb("find"), &["no server to find a limit for"]);
}

#[test]
fn an_interrupted_search_resumes() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    for release in newest() {
        let mut started = find(release, "live=4").with("--heap 16m").start();
        started.until_said("trial 3, ");
        started.signal("INT");
        let ran = started.wait().expect(130).says(&["find --resume"]);
        assert_no_cgroup(&ran);
        let before = ran.archived().trials.len();
        assert!((2..=3).contains(&before), "{before}");
        // An interrupted trial is no evidence about the server, and must not count in a resumed search.
        for trial in ran.archived().trials.iter().filter(|trial| trial.outcome == Outcome::Aborted) {
            assert_eq!(probe(trial).1, ProbeVerdict::Discarded, "{:?}", trial.probe);
        }
        let resumed = Call::verb("find --json --resume").with_argument(&ran.archive).alone().run().expect(0);
        let find = found(&resumed);
        assert_eq!(find.outcome, FindOutcome::Found);
        assert!(find.trials as usize > before);
        let archived = ran.archived();
        assert_eq!(
            (archived.trials.len(), archived.missing.len()),
            (find.trials as usize, 0),
            "{:?}",
            archived.missing
        );
    }
}

#[test]
fn a_jdk_copy_is_removed_after_any_end_of_its_search() {
    if !limits_work() {
        return;
    }
    for release in small() {
        // Holds pages of the JDK, so that a search cannot drop them.
        let holder = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").start("DemoServer", "{port}");
        for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
            let search = || find(release, "live=4").with("--heap 16m").beside();
            let mut started = search().start();
            started.until_said("ready: ");
            let said = started.said();
            let copy = said.split_whitespace().find(|word| word.contains("/loadline-work-")).expect(&said);
            let copy = Path::new(copy)
                .ancestors()
                .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("loadline-work-")));
            let copy = copy.unwrap().to_path_buf();
            assert!(copy.is_dir() && said.contains("other processes hold the JDK's file pages"), "{said}");
            started.signal(signal);
            let ran = started.wait();
            assert_eq!(ran.code(), code, "{}", ran.stderr);
            assert_no_cgroup(&ran);
            if code.is_none() {
                // The killed search cannot remove it, but the next one does.
                assert!(copy.exists(), "the killed search's {} is already gone", copy.display());
                search().with("--trials-max 1").run().expect(1);
            }
            assert!(!copy.exists(), "{signal}: {}", copy.display());
        }
        holder.answers();
    }
}
