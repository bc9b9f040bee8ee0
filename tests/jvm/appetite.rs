//! A subject's known memory and time must match the measurement.

use crate::added::ADDED_BYTES_MIN;
use crate::invocation::{Call, all_releases, mark, newest, phase, releases};
use crate::truth::truth;
use loadline::record::{Mark, Trial};

/// Trials per measurement; the lowest value counts, because other programs only add time, and rarely to all trials.
const TRIALS: usize = 3;

/// Service times of 20 ms servers: the minimum of all requests, and each trial's median.
fn times_ms(release: u32, connections: u32) -> (f64, Vec<f64>) {
    let requests = u64::from(connections) * 12;
    let call = Call::on(release).alone().with(&format!("-n {requests}")).with(&format!("--connections {connections}"));
    let call = call.with("--warmup 25").with("--rest 0").with("--marks start").with(&format!("--trials {TRIALS}"));
    let ran = call.subject("Answers20Ms", "{port}").run().expect(0);
    let trials = ran.document().trials;
    let answer_ms = truth("Answers20Ms", "answer_ms") as f64;
    let median = |trial: &Trial| {
        let steady = phase(trial, "steady");
        assert_eq!((steady.ok, steady.requests), (requests, requests));
        let times = steady.service_ms.unwrap();
        // No response may be early.
        let ordered = [answer_ms, times.p50, times.p90, times.p99, times.p999, times.max];
        assert!(ordered.is_sorted(), "{times:?}");
        // Each connection waits for its response before the next request.
        assert!(steady.achieved_per_s <= f64::from(connections) * 1000.0 / answer_ms, "{steady:?}");
        times.p50
    };
    let evidence = loadline::archive::evidence(&ran.archive, &ran.archived().trials);
    let single: Vec<f64> = evidence.iter().flat_map(|trial| &trial.requests).map(|request| request.ms).collect();
    assert_eq!(single.len() as u64, TRIALS as u64 * (25 + requests));
    (least(&single), trials.iter().map(median).collect())
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn a_response_of_20_ms_takes_20_ms() {
    let answer_ms = truth("Answers20Ms", "answer_ms") as f64;
    for release in newest() {
        for connections in [1, 25] {
            let (single, medians) = times_ms(release, connections);
            println!("JDK {release}, {connections} connections: {single} ms at least, medians {medians:?}");
            assert_eq!(medians.len(), TRIALS);
            // Only scheduling delays responses, but not those to all requests, nor most responses in every trial.
            assert!((answer_ms..answer_ms * 1.25).contains(&single), "the fastest response took {single} ms");
            // Twenty-five threads that wake simultaneously also wait for each other.
            let times = if connections == 1 { 1.5 } else { 3.0 };
            assert!(least(&medians) < answer_ms * times, "{medians:?}");
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

/// The start mark of a subject whose thread count depends only on itself.
fn threads_at_start(release: u32, subject: &str, arguments: &str) -> u64 {
    let call = Call::on(release).with("--gc serial").with("--jvm -XX:-UseDynamicNumberOfCompilerThreads");
    let trial = call.with("-n 1").with("--connections 1").subject(subject, arguments).run().expect(0).trial();
    mark(&trial, "start").threads.unwrap()
}

#[test]
fn extra_threads_are_counted() {
    let extra = truth("Threads64", "threads_extra");
    for release in all_releases() {
        let without = threads_at_start(release, "AnswersStatus", "{port} 204");
        let with = threads_at_start(release, "Threads64", "{port}");
        assert_eq!(with - without, extra, "JDK {release}: {with} and {without}");
    }
}

/// Start marks of `NativeHungry` with this many bytes.
fn starts(release: u32, count: u64) -> Vec<Mark> {
    // Without compilation, there is no compiler memory.
    let call = Call::on(release).with("--heap 64m").with("--gc serial").with("--jvm -Xint").with("-n 1").with("-c 1");
    let call = call.with("--warmup none").with("--rest 0").with("--marks start").with(&format!("--trials {TRIALS}"));
    let trials = call.subject("NativeHungry", &format!("{{port}} {count}")).run().expect(0).document().trials;
    trials.iter().map(|trial| mark(trial, "start").clone()).collect()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    assert_eq!(values.len(), TRIALS);
    values[TRIALS / 2]
}

#[test]
fn native_memory_counts_in_rss_but_not_in_the_heap() {
    let (count, each) = (48, truth("NativeHungry", "direct_bytes_per_mib"));
    for release in all_releases() {
        let (with, without) = (starts(release, count), starts(release, 0));
        let rss = |marks: &[Mark]| marks.iter().map(|mark| mark.rss_bytes).collect::<Vec<_>>();
        let used = |marks: &[Mark]| marks.iter().map(|mark| mark.heap.used_bytes.unwrap()).collect::<Vec<_>>();
        println!("JDK {release}: {:?} with, {:?} without", rss(&with), rss(&without));
        let committed = with.iter().chain(&without).map(|mark| mark.heap.committed_bytes);
        assert!(committed.clone().all(|bytes| bytes.is_some() && bytes == without[0].heap.committed_bytes));
        let difference = median(used(&with)).abs_diff(median(used(&without)));
        assert!(difference < 2 << 20, "JDK {release}: {difference}");
        // A buffer's bookkeeping is less than a page.
        let more = median(rss(&with)) as i64 - median(rss(&without)) as i64;
        let held = (count * each) as i64;
        assert!((held - (1 << 20)..held + (2 << 20)).contains(&more), "JDK {release}: {more}, actually {held}");
    }
}

#[test]
fn direct_memory_is_on_the_timeline() {
    let (count, each) = (24, truth("NativeHungry", "direct_bytes_per_mib"));
    let held = count * each..(count + 1) * each;
    for release in releases() {
        let call = || Call::on(release).with("--heap 64m").with("-n 25").with("--rest 2500ms");
        let timeline =
            |call: Call| call.subject("NativeHungry", &format!("{{port}} {count}")).run().expect(0).timeline();
        for call in [call(), call().with("--nmt summary")] {
            let timeline = timeline(call);
            let seen: Vec<(f64, u64)> = timeline.iter().filter_map(|at| Some((at.at_s, at.direct_bytes?))).collect();
            assert!(seen.iter().all(|(_, bytes)| held.contains(bytes)), "JDK {release}: {seen:?}");
            // At the start, and then once a second.
            assert!((2..=timeline.len() / 5).contains(&seen.len()), "JDK {release}: {seen:?}");
            assert!(seen.windows(2).all(|pair| pair[1].0 - pair[0].0 > 0.85), "JDK {release}: {seen:?}");
        }
    }
}

#[test]
fn a_stall_shows_in_the_maximum_but_not_in_the_median() {
    let stall_ms = truth("Stalls", "stall_ms") as f64;
    for release in newest() {
        let call = Call::on(release).with("--connections 5").with("--warmup 100").with("-n 400");
        let trial = call.subject("Stalls", "{port} 200").run().expect(0).trial();
        let (warmup, steady) = (phase(&trial, "warmup"), phase(&trial, "steady"));
        assert_eq!((warmup.ok, steady.ok), (100, 400));
        let times = steady.service_ms.unwrap();
        // The stall affects one request on each of five connections; there are 400 requests.
        assert!(times.max >= stall_ms && times.p90 < stall_ms / 2.0, "JDK {release}: {times:?}");
        assert!(steady.seconds * 1000.0 >= times.max, "JDK {release}: {steady:?}");
    }
}

/// The maximum for Loadline's own peak. Unoptimized builds need three times as much as a release, whose maximum is half
/// of this; `packaging/try` tests it.
const OWN_BYTES_MAX: u64 = 40 << 20;

/// The maximum for a trial, whose marks only read the JVM's tables. Only the last mark's full collection needs a
/// command.
const ADDED_BYTES_MAX: i64 = 4 * (1 << 20) / 10;

#[test]
fn loadlines_own_overhead_is_within_documented_bounds() {
    for release in releases() {
        let one = || {
            let call = Call::on(release).with("--connections 25").with("-n 2000").with("--sample-hz 10");
            call.subject("DemoServer", "{port}").run().expect(0).trial().observer
        };
        let tries = [one(), one(), one()];
        println!("JDK {release}: {tries:?}");
        for observer in tries {
            let added = observer.attach_rss_bytes.unwrap();
            assert!((ADDED_BYTES_MIN..=ADDED_BYTES_MAX).contains(&added), "JDK {release}: {observer:?}");
            assert!(observer.own_rss_bytes_peak.unwrap() <= OWN_BYTES_MAX, "JDK {release}: {observer:?}");
            assert!(observer.samples > 0 && observer.attach_ms.is_some(), "JDK {release}: {observer:?}");
        }
    }
}
