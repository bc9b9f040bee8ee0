//! Self-driven subjects: awaited markers, permission to continue, and everything that can go wrong in between.

use crate::invocation::{Call, Ran, doubts, mark, mark_names, newest, phase};
use crate::test_subjects::test_subjects;
use crate::truth::truth;
use loadline::doubt::Doubt;
use loadline::record::{EndCause, Model, Outcome, Trial};
use std::collections::BTreeMap;

/// Three markers, then a rest with its own mark.
const SCENARIO: &str = r#"
name: own
subject: {command: [java, "{jvm}", -cp, JAR, loadline.subjects.OwnPhases, WAY]}
configurations: {serial: {heap: 96m, gc: serial, jdk: RELEASE}}
collect: {times: 2, settle: 100ms}
load:
  - churn: {phases: [empty, full, gone], within: 15s, collect: 2, settle: 200ms}
  - calm: {idle: 300ms, mark: collected}
"#;

/// `loadline run` of the subject in this mode, with one change to the scenario.
fn run(release: u32, way: &str, change: (&str, &str)) -> Call {
    let text = SCENARIO.replace("JAR", test_subjects()).replace("WAY", way).replace("RELEASE", &release.to_string());
    assert!(text.contains(change.0), "{change:?}");
    Call::verb("run --json").of_scenario("own", &text.replacen(change.0, change.1, 1))
}

const SAME: (&str, &str) = ("", "");
/// For subjects that never reach a marker.
const SHORT: (&str, &str) = ("within: 15s", "within: 2s");

#[test]
fn the_subject_is_measured_at_its_markers_and_resumed() {
    let truth = |name| truth("OwnPhases", name);
    for release in newest() {
        let ran = run(release, "right", SAME).run().expect(0);
        let trial = ran.trial();
        assert_eq!(trial.outcome, Outcome::Completed);
        let names = ["start", "empty", "full", "gone", "loaded", "calm", "rested", "collected"];
        assert_eq!(mark_names(&trial), names);
        // The last marker ends the work: it is a mark without a phase.
        let phases: Vec<_> = trial.phases.iter().map(|phase| (phase.name.as_str(), phase.model)).collect();
        assert_eq!(phases, [("empty", Model::Subject), ("full", Model::Subject), ("calm", Model::Idle)]);

        // Each mark is measured in exactly this state: after the requested collections, before the subject continued.
        let live = |name| mark(&trial, name).heap.live_bytes.unwrap();
        let held = live("full") - live("empty");
        assert!(held.abs_diff(truth("full_heap_bytes")) < 1 << 20, "{held}");
        assert!(live("gone").abs_diff(live("empty")) < 1 << 20);
        assert!(live("calm").abs_diff(live("collected")) < 1 << 20);
        let instances = |name| mark(&trial, name).counters.get("instances").copied();
        assert_eq!((instances("empty"), instances("full")), (Some(0.0), Some(truth("instances") as f64)));
        assert_eq!(mark(&trial, "start").counters, BTreeMap::new());

        // Work between two markers belongs to the phase that the first one began.
        let empty = phase(&trial, "empty");
        assert_eq!((empty.requests, empty.failed.other), (truth("ops"), truth("fail")));
        assert_eq!(empty.ok, truth("ops") - truth("fail"));
        assert!(empty.achieved_per_s > 0.0 && empty.seconds > 0.0, "{empty:?}");
        assert!(empty.subject.cpu_s.is_some_and(|cpu_s| cpu_s > 0.0), "{empty:?}");
        let named: Vec<_> = empty.by_request.iter().map(|named| (named.request.as_str(), named.ok)).collect();
        assert_eq!(named, [("put", 197), ("get", 100)]);
        assert!((mark(&trial, "empty").at_s..mark(&trial, "full").at_s).contains(&empty.at_s));
        assert_eq!((phase(&trial, "full").requests, phase(&trial, "full").is_counted()), (0, false));
        let failed = |doubt: &Doubt| matches!(doubt, Doubt::OperationsFailed { failed: 3, operations: 300, .. });
        assert!(doubts(&trial, failed), "{:?}", trial.doubts);
        assert!(!doubts(&trial, |doubt| matches!(doubt, Doubt::MarkersNotAwaited { .. })), "{:?}", trial.doubts);
        assert_eq!(ran.archived().trials, [trial]);
        shown(&ran);
    }
}

/// Checks what the screen and the files show.
fn shown(ran: &Ran) {
    let report = |options: &str| {
        let call = Call::verb("report").with_argument(&ran.archive).beside();
        if options.is_empty() { call.run().expect(0) } else { call.with(options).run().expect(0) }
    };
    let screen = report("").stdout;
    // Line breaks are ignored.
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = |text: &str| assert!(words.contains(text), "no `{text}` in\n{screen}");
    says("churn: the program's own work, weighed at empty, full, gone");
    says("calm: idle, 300ms, weighed at its end after full GCs");
    says("The program reported these values at its markers: empty instances=0; full instances=512; gone");
    says("empty, full: the program ran its own workload; requests and rate count its operations");
    says("CPU per operation in empty:");
    says("at full (Java heap +");
    // A value that was not reported is a dash.
    let full = screen.lines().find(|line| line.starts_with("  full  ") && line.contains("-   -")).unwrap();
    assert_eq!(full.split_whitespace().nth(1), Some("-"), "{full}");
    let table = ran.archive.with_file_name("own.csv");
    report(&format!("--csv {}", table.display()));
    let table = std::fs::read_to_string(table).unwrap();
    let has = |metric: &str| table.contains(metric);
    assert!(has(",rss.full,") && has(",heap_live.calm,") && has(",rate.empty,") && !has(",rate.full,"), "{table}");
}

#[test]
fn metrics_and_budgets_can_use_own_marks_and_phases() {
    for release in newest() {
        let budgets = |list: &str| {
            let change = format!("collect: {{times: 2, settle: 100ms}}\nbudgets: [{list}]");
            run(release, "right", ("collect: {times: 2, settle: 100ms}", &change))
        };
        budgets("heap_live.full<=64MiB, rate.empty>=1, rss.calm<=1GiB").run().expect(0);
        budgets("heap_live.full<=16MiB").run().expect(1);
        budgets("rss.ful<=1GiB").run().expect(2).says(&["rss.ful", "rss.empty"]);
        budgets("rate.gone>=1").run().expect(2).says(&["rate.gone"]);
    }
}

#[test]
fn loadline_does_not_wait_for_a_subject_that_does_not_read() {
    for release in newest() {
        // A subject that claims to wait but only sleeps continues during a longer measurement.
        let longer = ("settle: 200ms", "settle: 4s");
        for (way, change) in [("unread", longer), ("closed", SAME), ("late", SAME)] {
            let trial = run(release, way, change).run().expect(0).trial();
            assert_eq!(trial.outcome, Outcome::Completed, "{way}");
            assert_eq!(phase(&trial, "empty").ok, 297, "{way}");
            let unawaited = doubts(&trial, |doubt| matches!(doubt, Doubt::MarkersNotAwaited { .. }));
            assert!(unawaited, "{way}: {:?}", trial.doubts);
        }
    }
}

#[test]
fn markers_in_another_form_are_matched_by_a_pattern() {
    for release in newest() {
        let pattern = ("within: 15s", "within: 15s, pattern: '== ([a-z]+) =='");
        let trial = run(release, "own", pattern).run().expect(0).trial();
        assert_eq!(mark_names(&trial)[1..4], ["empty", "full", "gone"]);
        assert!(mark(&trial, "full").heap.live_bytes.unwrap() > 32 << 20);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::MarkersNotAwaited { .. })), "{:?}", trial.doubts);
    }
}

/// Runs a trial that ends with exit code 3 and this text, but keeps earlier measurements.
fn trouble(release: u32, way: &str, change: (&str, &str), says: &[&str]) -> Trial {
    let ran = run(release, way, change).run().expect(3).says(says);
    let trial = ran.trial();
    assert_eq!(ran.archived().trials, std::slice::from_ref(&trial));
    assert_eq!(trial.outcome, Outcome::SubjectFailed, "{way}");
    assert_eq!(mark_names(&trial)[..2], ["start", "empty"], "{way}");
    assert_eq!(phase(&trial, "empty").requests, 300, "{way}");
    trial
}

#[test]
fn a_marker_that_is_not_due_ends_the_trial() {
    for release in newest() {
        let order = "the order in `phases` is: empty, full, gone";
        let place = "in phase churn, after the marker `empty`";
        let last = "| loadline: ops=100";
        trouble(release, "swapped", SAME, &["the marker `gone`, but `full` was expected", place, last, order]);
        trouble(release, "unknown", SAME, &["the marker `fulll`, which is not in `phases`", place, last, order]);
        trouble(release, "twice", SAME, &["the marker `empty` twice", place, order]);
    }
}

#[test]
fn a_missing_marker_ends_the_trial() {
    for release in newest() {
        let says =
            ["did not print the marker `loadline: phase=full` within 2s", "after the marker `empty`", "`within`"];
        let trial = trouble(release, "silent", SHORT, &says);
        assert!(phase(&trial, "empty").cut_short.as_ref().is_some_and(|why| why.contains("within 2s")));
        let trial =
            trouble(release, "dies", SAME, &["the server died: exit code 7", "before it printed the marker `full`"]);
        assert_eq!(phase(&trial, "empty").cut_short.as_deref(), Some("the server died"));
        trouble(release, "failing", SAME, &["all 300 operations that the program counted in phase empty failed"]);
    }
}

#[test]
fn the_subject_waits_at_its_last_marker_until_all_is_measured() {
    for release in newest() {
        // It would end immediately if told to continue.
        let trial = run(release, "ends", SAME).run().expect(0).trial();
        assert_eq!(mark_names(&trial).last(), Some(&"collected"));
        assert_eq!(trial.end.unwrap().cause, EndCause::AsAsked);
    }
}
