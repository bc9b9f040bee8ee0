//! What a subject is known to take must be what is weighed and timed.

use crate::invocation::{Call, mark, phase, releases};
use crate::truth::truth;
use loadline::record::Trial;

/// Of one weighed 20 ms server; stops the test where a figure is impossible.
fn median_ms(release: u32, connections: u32) -> f64 {
    let requests = u64::from(connections) * 12;
    let call = Call::on(release).alone().with(&format!("-n {requests}")).with(&format!("--connections {connections}"));
    let ran = call.subject("Answers20Ms", "{port}").run().expect(0);
    let trial = ran.trial();
    let steady = phase(&trial, "steady");
    assert_eq!((steady.ok, steady.requests), (requests, requests));
    let times = steady.service_ms.unwrap();
    let answer_ms = truth("Answers20Ms", "answer_ms") as f64;
    let ordered = [answer_ms, times.p50, times.p90, times.p99, times.p999, times.max];
    assert!(ordered.is_sorted(), "{times:?}");
    // Each connection waits for its answer before it asks again.
    assert!(steady.achieved_per_s <= f64::from(connections) * 1000.0 / answer_ms, "{steady:?}");
    times.p50
}

#[test]
fn an_answer_of_20_ms_takes_20_ms() {
    for release in releases() {
        for connections in [1, 5, 25] {
            // Never earlier, by what `median_ms` asserts; later only where others keep the machine busy.
            let mut medians = vec![median_ms(release, connections)];
            while medians.len() < 3 && medians.last().is_some_and(|ms| *ms >= 30.0) {
                medians.push(median_ms(release, connections));
            }
            // Four times the truth is no busy machine any more.
            assert!(medians.iter().any(|ms| *ms < 80.0), "JDK {release}, {connections} connections: {medians:?}");
            println!("JDK {release}, {connections} connections: {medians:?} ms");
        }
    }
}

#[test]
fn a_heap_of_64_mib_is_found() {
    let held = truth("Holds64MiB", "heap_bytes");
    for release in releases() {
        for gc in ["serial", "g1", "parallel"] {
            let call = Call::on(release).with("--heap 160m").with(&format!("--gc {gc}"));
            let trial = call.subject("Holds64MiB", "{port}").run().expect(0).trial();
            let collected = mark(&trial, "collected");
            let live = collected.heap.live_bytes.unwrap();
            assert!((held..held + (6 << 20)).contains(&live), "JDK {release}, {gc}: {live}");
            for mark in &trial.marks {
                let heap = mark.heap;
                let (used, committed) = (heap.used_bytes.unwrap(), heap.committed_bytes.unwrap());
                assert!(held <= used && used <= committed, "JDK {release}, {gc}: {mark:?}");
                assert!(mark.rss_bytes > held && mark.pss_bytes.unwrap() <= mark.rss_bytes, "{mark:?}");
                assert!(heap.live_bytes.is_none() || mark.name == "collected", "{mark:?}");
            }
        }
    }
}

/// Start mark of a subject whose count of threads depends on nothing but itself.
fn threads_at_start(release: u32, subject: &str, arguments: &str) -> u64 {
    let call = Call::on(release).with("--gc serial").with("--jvm -XX:-UseDynamicNumberOfCompilerThreads");
    let trial = call.with("-n 1").with("--connections 1").subject(subject, arguments).run().expect(0).trial();
    mark(&trial, "start").threads.unwrap()
}

#[test]
fn threads_are_counted() {
    let extra = truth("Threads64", "threads_extra");
    for release in releases() {
        let without = threads_at_start(release, "AnswersStatus", "{port} 204");
        let with = threads_at_start(release, "Threads64", "{port}");
        assert_eq!(with - without, extra, "JDK {release}: {with} and {without}");
    }
}

/// What `NativeHungry` holds more at its start mark than without its appetite: resident bytes.
fn native_bytes_more(release: u32, count: u64) -> u64 {
    let weigh = |count: u64| -> Trial {
        let call = Call::on(release).with("--heap 64m").with("--gc serial").with("-n 25");
        call.subject("NativeHungry", &format!("{{port}} {count}")).run().expect(0).trial()
    };
    let (with, without) = (weigh(count), weigh(0));
    let (with, without) = (mark(&with, "start"), mark(&without, "start"));
    assert_eq!(with.heap.committed_bytes, without.heap.committed_bytes);
    let difference = with.heap.used_bytes.unwrap().abs_diff(without.heap.used_bytes.unwrap());
    assert!(difference < 2 << 20, "JDK {release}: {difference}");
    with.rss_bytes.saturating_sub(without.rss_bytes)
}

#[test]
fn native_memory_is_in_the_weight_and_not_in_the_heap() {
    let (count, each) = (48, truth("NativeHungry", "direct_bytes_per_mib"));
    for release in releases() {
        // Two fresh JVMs differ by a MiB or two of their own, on a busy machine now and then by more: never each time.
        let expected = (count - 3) * each..(count + 8) * each;
        let mut seen = vec![native_bytes_more(release, count)];
        while seen.len() < 4 && !expected.contains(seen.last().unwrap_or(&0)) {
            seen.push(native_bytes_more(release, count));
        }
        assert!(seen.last().is_some_and(|more| expected.contains(more)), "JDK {release}: {seen:?}");
    }
}

#[test]
fn direct_memory_is_on_the_timeline_where_the_jvm_tracks_it() {
    let (count, each) = (24, truth("NativeHungry", "direct_bytes_per_mib"));
    let held = count * each..(count + 1) * each;
    for release in releases() {
        let call = || Call::on(release).with("--heap 64m").with("-n 25").with("--rest 2500ms");
        let hungry = |call: Call| call.subject("NativeHungry", &format!("{{port}} {count}")).run().expect(0);
        let tracked = hungry(call().with("--nmt summary")).timeline();
        let seen: Vec<(f64, u64)> = tracked.iter().filter_map(|at| Some((at.at_s, at.direct_bytes?))).collect();
        assert!(seen.iter().all(|(_, bytes)| held.contains(bytes)), "JDK {release}: {seen:?}");
        // At once after the first mark, and then once a second.
        assert!((2..=tracked.len() / 5).contains(&seen.len()), "JDK {release}: {seen:?}");
        assert!(seen.windows(2).all(|pair| pair[1].0 - pair[0].0 > 0.85), "JDK {release}: {seen:?}");
        let untracked = hungry(call().without("--rest")).timeline();
        assert!(untracked.iter().all(|at| at.direct_bytes.is_none()));
    }
}

#[test]
fn a_stall_is_in_the_longest_time_and_not_in_the_median() {
    let stall_ms = truth("Stalls", "stall_ms") as f64;
    for release in releases() {
        let call = Call::on(release).with("--connections 5").with("--warmup 100").with("-n 400");
        let trial = call.subject("Stalls", "{port} 200").run().expect(0).trial();
        let (warmup, steady) = (phase(&trial, "warmup"), phase(&trial, "steady"));
        assert_eq!((warmup.ok, steady.ok), (100, 400));
        let times = steady.service_ms.unwrap();
        assert!(times.max >= stall_ms && times.p50 < stall_ms / 2.0, "JDK {release}: {times:?}");
        assert!(steady.seconds * 1000.0 >= stall_ms, "JDK {release}: {steady:?}");
    }
}

/// What Loadline adds to a JVM by asking it, as it tells in a trial.
fn attach_bytes(release: u32) -> i64 {
    let call = Call::on(release).with("--connections 25").with("-n 2000").with("--sample-hz 10");
    let observer = call.subject("DemoServer", "{port}").run().expect(0).trial().observer;
    println!("JDK {release}: {observer:?}");
    assert!(observer.own_rss_bytes_peak.unwrap() <= 20 << 20, "{observer:?}");
    assert!(observer.samples > 0 && observer.attach_ms.is_some(), "{observer:?}");
    observer.attach_rss_bytes.unwrap()
}

#[test]
fn what_loadline_itself_takes_is_within_its_promise() {
    for release in releases() {
        // What the JVM does of its own accord meanwhile counts as well, so it is the least that tells.
        let mut seen = vec![attach_bytes(release)];
        while seen.len() < 5 && !seen.last().is_some_and(|bytes| (0..=300_000).contains(bytes)) {
            seen.push(attach_bytes(release));
        }
        assert!(seen.last().is_some_and(|bytes| (0..=300_000).contains(bytes)), "JDK {release}: {seen:?}");
    }
}
