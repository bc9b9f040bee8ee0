//! CPU limits on real servers: the time used, the JVM's reaction, the message if a limit is too low, and load lines at
//! several limits.

use crate::deaths::limits_work;
use crate::invocation::{Call, Ran, newest};
use loadline_test_support::{long_tests_run, record};

/// A server that uses all available CPU time under this limit.
fn saturated(release: u32, limit: &str) -> Call {
    let call = Call::verb("weigh --json -d 3s --warmup 1s --rest 0 -c 4 --heap 24m");
    let call = call.with("--url http://127.0.0.1:{port}/").of_jdk(release).with("--cpu-limit").with(limit);
    call.subject("Appetite", "{port} live=1 churn=1024").alone()
}

/// Whether this machine supports CPU limits; records a skip if not.
fn quotas_work(ran: &Ran) -> bool {
    let refused = ran.code() == Some(4) && ran.stderr.contains("cannot set a limit of");
    if refused {
        record("cgroups with CPU time", "no CPU limit can be set here");
    }
    !refused
}

#[test]
fn a_subject_stays_within_its_cpu_quota_and_the_jvm_sees_it() {
    for release in newest() {
        let ran = saturated(release, "500m").run();
        if !quotas_work(&ran) {
            return;
        }
        let document = ran.expect(0).document();
        let trial = &document.trials[0];
        // The JVM counts half a processor as one, and on one processor it chooses Serial.
        assert_eq!(trial.jvm.as_ref().unwrap().collector.as_deref(), Some("Serial"));
        let steady = trial.phases.iter().find(|phase| phase.name == "steady").unwrap();
        let used = steady.subject.cpu_s.unwrap() / steady.seconds;
        let throttling = steady.subject.throttling.unwrap();
        println!("JDK {release}: {used:.4} of a core, {throttling:?}");
        // Unused time of a period carries over to the next, but no more than one period's time.
        assert!(used <= 0.5 + 0.1 / steady.seconds, "{used}");
        assert!(throttling.periods > 0 && throttling.throttled_periods <= throttling.periods, "{throttling:?}");
        assert!(throttling.throttled_s > 0.0, "{throttling:?}");
        let split = steady.subject.cpu_by_purpose.unwrap();
        let sum = split.app_s + split.jit_s + split.gc_s + split.vm_s;
        assert!((sum - steady.subject.cpu_s.unwrap()).abs() < 0.05, "{split:?} of {:?}", steady.subject.cpu_s);
        assert!(split.app_s > split.vm_s, "{split:?}");
    }
}

#[test]
fn a_cpu_quota_too_small_to_start_is_named() {
    for release in newest() {
        let ran = saturated(release, "10m").with("--ready-within 3s").run();
        if !quotas_work(&ran) {
            return;
        }
        let ran = ran.expect(3);
        assert!(ran.stderr.contains("its CPU limit of 0.01 CPUs throttled it"), "{}", ran.stderr);
        assert!(ran.stderr.contains("raise the CPU limit"), "{}", ran.stderr);
    }
}

#[test]
fn the_load_line_is_found_for_several_cpu_quotas() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    for release in newest() {
        let asked = "find --json --rate 20 -d 1s --warmup 300ms -c 4 --gc serial --no-warm --proofs 1 --step 10% \
                     --soak 3s --heap 24m --limit-max 512m --target failed==0 --over cpu_limit=10m,500m,1 \
                     --ready-within 5s";
        let call = Call::verb(asked).with("--url http://127.0.0.1:{port}/").archiving().of_jdk(release);
        let ran = call.subject("Appetite", "{port} live=8").alone().run().expect(1);
        let over = ran.document().over.unwrap();
        let values: Vec<(&str, bool)> =
            over.lines.iter().map(|of| (of.value.as_str(), of.cpu_per_request_s.is_some())).collect();
        assert_eq!(values, [("10m", false), ("500m", true), ("1", true)], "{over:?}");
        assert!(over.lines[0].why.contains("throttled it"), "{over:?}");
        assert!(over.lines[1..].iter().all(|of| of.find.as_ref().unwrap().outcome.is_found()), "{over:?}");
        // Each value has its own archive, from which the same command continues.
        let again = Call::verb("report --json").with_argument(&ran.archive.join("500m")).run().expect(0);
        assert_eq!(again.document().find, over.lines[1].find);
    }
}
