//! A trial's sources combined: native memory, collections, timeline, histograms, and RSS according to the kernel and
//! `ps`.

use crate::interval_log::logged;
use crate::invocation::{Call, mark, newest, phase, releases};
use loadline::record::Model;
use loadline_test_support::skip;
use std::process::Command;

/// The JVM sets its baseline shortly after the summary; a compilation may begin or end in between.
const MOMENT_BYTES: i64 = 2 << 20;

#[test]
fn native_memory_growth_matches_the_difference_between_marks() {
    for release in releases() {
        let call = Call::on(release).with("--nmt summary").with("--heap 32m").with("-n 2000");
        let trial = call.subject("DemoServer", "{port}").run().expect(0).trial();
        let (first, later) = trial.marks.split_first().unwrap();
        let first = first.nmt.as_ref().unwrap();
        let heap = first.categories.iter().find(|category| category.name == "Java Heap").unwrap();
        assert_eq!(heap.committed_bytes, 32 << 20);
        assert!(first.categories.len() > 10 && first.total_growth_bytes.is_none(), "{first:?}");
        for mark in later {
            let nmt = mark.nmt.as_ref().unwrap();
            let difference = nmt.total_committed_bytes as i64 - first.total_committed_bytes as i64;
            let growth = nmt.total_growth_bytes.unwrap();
            assert!((growth - difference).abs() <= MOMENT_BYTES, "JDK {release}, mark {}: {nmt:?}", mark.name);
            let sum: u64 = nmt.categories.iter().map(|category| category.committed_bytes).sum();
            let rounding = nmt.categories.len() as u64 * 1024;
            assert!(sum.abs_diff(nmt.total_committed_bytes) <= rounding, "{sum} of {nmt:?}");
            for category in &nmt.categories {
                let before = first.categories.iter().find(|before| before.name == category.name);
                let before = before.map_or(0, |before| before.committed_bytes);
                let difference = category.committed_bytes as i64 - before as i64;
                let growth = category.growth_bytes.unwrap();
                assert!((growth - difference).abs() <= MOMENT_BYTES, "JDK {release}, mark {}: {category:?}", mark.name);
            }
        }
        let ran = Call::on(release).with("-n 50").subject("DemoServer", "{port}").run().expect(0);
        assert!(ran.trial().marks.iter().all(|mark| mark.nmt.is_none()));
    }
}

#[test]
fn collections_are_counted_by_phase() {
    for release in releases() {
        let call = Call::on(release).with("--heap 8m").with("--gc serial").with("-n 4000");
        let ran = call.subject("DemoServer", "{port}").run().expect(0);
        let trial = ran.trial();
        for name in ["warmup", "steady"] {
            let work = phase(&trial, name).subject;
            let (count, ms) = (work.gc_count.unwrap(), work.gc_ms.unwrap());
            assert!(count > 0 && ms > 0.0 && work.cpu_s.unwrap() > 0.0, "JDK {release}, {name}: {work:?}");
            assert!(ms / 1000.0 <= phase(&trial, name).seconds, "JDK {release}, {name}: {work:?}");
        }
        assert_eq!(phase(&trial, "rest").model, Model::Idle);
        let timeline = ran.timeline();
        let counts: Vec<u64> = timeline.iter().map(|sample| sample.gc_count.unwrap()).collect();
        assert!(counts.is_sorted() && counts.last() > counts.first(), "{counts:?}");
    }
}

#[test]
fn the_timeline_agrees_with_the_marks() {
    for release in releases() {
        let call = Call::on(release).with("-n 3000").with("--rest 2s").with("--heap 32m");
        let ran = call.subject("DemoServer", "{port}").run().expect(0);
        let (trial, timeline) = (ran.trial(), ran.timeline());
        let times: Vec<f64> = timeline.iter().map(|sample| sample.at_s).collect();
        assert!(times.is_sorted(), "{times:?}");
        let span_s = mark(&trial, "collected").at_s - mark(&trial, "start").at_s;
        // Half of the requested 10 Hz: a busy machine may delay samples.
        assert!(timeline.len() as f64 >= 5.0 * span_s, "{} samples in {span_s} s", timeline.len());
        assert_eq!(timeline.len() as u64, trial.observer.samples);
        let weights: Vec<u64> = trial.marks.iter().map(|mark| mark.rss_bytes).collect();
        let (least, most) = (weights.iter().min().unwrap() / 2, weights.iter().max().unwrap() * 2);
        for sample in &timeline {
            assert!((least..=most).contains(&sample.rss_bytes), "{sample:?}");
            assert!(sample.threads.is_some() && sample.heap_committed_bytes.is_some(), "{sample:?}");
        }
        let peak = trial.rss_bytes_peak.unwrap();
        assert!(weights.iter().all(|weight| *weight <= peak + (1 << 20)), "{weights:?}, peak {peak}");
        let marks: Vec<f64> = trial.marks.iter().map(|mark| mark.at_s).collect();
        assert!(marks.is_sorted(), "{marks:?}");
    }
}

#[test]
fn the_histograms_contain_every_correct_response() {
    for release in newest() {
        let call =
            Call::on(release).with("--connections 3").with("--warmup 70").with("--duration 2500ms").without("-n");
        let ran = call.subject("Answers20Ms", "{port}").run().expect(0);
        let trial = ran.trial();
        for name in ["warmup", "steady"] {
            assert_eq!(logged(&ran.file("phases.hlog"))[&format!("{name}-service")], phase(&trial, name).ok, "{name}");
        }
        assert!(phase(&trial, "steady").seconds >= 2.5);
    }
}

#[test]
fn histograms_of_a_failed_phase_are_kept() {
    for release in newest() {
        let call = Call::on(release).with("--warmup 100").with("-n 5000").subject("DiesAfter", "{port} 150 7");
        assert_eq!(logged(&call.run().expect(3).file("phases.hlog"))["steady-service"], 49);
    }
}

#[test]
fn rss_matches_the_kernel_and_ps() {
    for release in releases() {
        let call = Call::on(release).with("--rest 1s").with("--heap 32m").subject("DemoServer", "{port}");
        let mut started = call.start();
        started.until_said("  rest: ");
        let pid = started.jvm().pid;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kib = |text: &str| text.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap();
        let of_kernel = kib(status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap()) << 10;
        let ps = Command::new("ps").args(["-o", "rss=", "-p", &pid.to_string()]).output();
        let of_ps = ps.ok().map(|said| kib(&String::from_utf8_lossy(&said.stdout)) << 10);
        if of_ps.is_none() {
            skip("LOADLINE_TOOLS", "there is no ps");
        }
        let ran = started.wait().expect(0);
        let trial = ran.trial();
        assert_eq!(trial.jvm.as_ref().unwrap().pid, pid);
        let rest = phase(&trial, "rest");
        let at_rest = ran.timeline().into_iter().filter(|sample| sample.at_s >= rest.at_s);
        let weighed: Vec<u64> =
            at_rest.map(|sample| sample.rss_bytes).chain([mark(&trial, "rested").rss_bytes]).collect();
        let (least, most) = (weighed.iter().min().unwrap(), weighed.iter().max().unwrap());
        for other in [Some(of_kernel), of_ps].into_iter().flatten() {
            let between = (least - least / 50..=most + most / 50).contains(&other);
            assert!(between, "JDK {release}: {least} to {most}, others see {other}");
        }
    }
}
