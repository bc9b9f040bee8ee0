//! Self-driven subjects: markers that are awaited, late, wrong, or missing, and a death between markers.

use super::*;
use crate::scenario::Ready;
use crate::subject::Exit;

/// Three markers, two phases.
const OWN: &str = "\n  - work: {phases: [empty, full, done], within: 10s}\n";
const WAITS: [&str; 3] =
    ["loadline: phase=empty wait=1", "loadline: phase=full wait=1 n=5", "loadline: phase=done wait=1"];

fn own() -> TrialPlan {
    TrialPlan { marks: Vec::new(), ..plan(OWN) }
}

/// Waits at each marker, and works for a second after each.
fn waiting() -> Script {
    let then = |line| vec![(ms(900), Happening::Prints("loadline: ops=90 s=0.5")), (ms(1000), Happening::Prints(line))];
    Script { on_go: vec![then(WAITS[1]), then(WAITS[2])], ..Script::default() }
        .with(ms(800), Happening::Prints(WAITS[0]))
}

fn not_awaited(made: &MadeTrial) -> Option<Vec<String>> {
    let found = doubt(made, |doubt| matches!(doubt, Doubt::MarkersNotAwaited { .. }));
    found.map(|doubt| if let Doubt::MarkersNotAwaited { marks, .. } = doubt { marks.clone() } else { Vec::new() })
}

#[test]
fn a_waiting_subject_is_measured_and_resumed_at_each_marker() {
    let made = made(waiting(), &own());
    assert_eq!(
        (kind(&made), marks(&made), phases(&made)),
        (None, vec!["empty", "full", "done"], vec!["empty", "full"])
    );
    let of = |call: &str| made.calls.iter().filter(|known| *known == call).count();
    assert_eq!(of("go"), 2, "the subject is not resumed at its last marker");
    assert_eq!(not_awaited(&made), None);
    let [empty, full] = made.trial.phases.as_slice() else { panic!() };
    assert_eq!((empty.ok, empty.achieved_per_s, full.counters.get("n")), (90, 180.0, Some(&5.0)));
    assert!((empty.seconds - 1.0).abs() < 0.03, "{}", empty.seconds);
    assert_eq!(made.trial.marks[1].counters.get("n"), Some(&5.0));
}

#[test]
fn a_subject_that_does_not_wait_raises_a_doubt() {
    let script =
        [(800, "empty"), (1800, "full"), (2800, "done")].into_iter().fold(Script::default(), |script, (at, _)| {
            let line = ["loadline: phase=empty", "loadline: phase=full", "loadline: phase=done"][(at / 1000) as usize];
            script.with(ms(at), Happening::Prints(line))
        });
    let made = made(script.clone(), &own());
    assert_eq!((kind(&made), phases(&made)), (None, vec!["empty", "full"]));
    assert_eq!(not_awaited(&made), Some(owned(&["empty", "full"])), "the last mark needs no wait, so it is not listed");
    assert!(!made.calls.iter().any(|call| call == "go"));
    let from_outside = TrialPlan { look: Look::Outside, ..own() };
    let outside = super::made(script, &from_outside);
    assert_eq!((not_awaited(&outside), phases(&outside), marks(&outside).len()), (None, vec!["empty", "full"], 0));
}

#[test]
fn a_marker_that_is_not_due_ends_the_trial() {
    let first = |line| Script { on_go: vec![vec![(ms(500), Happening::Prints(line))]], ..waiting() };
    let cases = [
        (first("loadline: phase=done"), "the program printed the marker `done`, but `full` was expected"),
        (first("loadline: phase=empty"), "the program printed the marker `empty` twice"),
        (first("loadline: phase=other"), "the program printed the marker `other`, which is not in `phases`"),
    ];
    for (script, expected) in cases {
        let made = made(script, &own());
        assert_eq!((what(&made), kind(&made)), (expected, Some(ErrorKind::Subject)));
        let expected_marks = vec!["empty", "loaded"];
        assert_eq!((marks(&made), phases(&made)), (expected_marks, vec!["empty"]), "earlier results are kept");
        assert_eq!(made.trial.phases[0].cut_short.as_deref(), Some(expected));
    }
}

#[test]
fn waiting_for_a_missing_marker_has_a_time_limit() {
    let script = Script { on_go: Vec::new(), ..waiting() };
    let made = made(script, &own());
    let expected = "the program did not print the marker `loadline: phase=full` within 10s";
    assert_eq!((what(&made), phases(&made)), (expected, vec!["empty"]));
    assert!((10.0..10.1).contains(&made.trial.phases[0].seconds));
    let never = super::made(Script::default(), &own());
    assert_eq!(what(&never), "the program did not print the marker `loadline: phase=empty` within 10s");
    assert!(format!("{:?}", never.error).contains("before its first marker"));
}

#[test]
fn a_death_before_a_marker_keeps_the_last_counts() {
    let last = vec![(ms(400), Happening::Prints("loadline: ops=7 s=0.1")), (ms(400), Happening::Dies(Exit::Code(0)))];
    let made = made(Script { on_go: vec![last], ..waiting() }, &own());
    assert_eq!((what(&made), made.trial.outcome), ("the server died: exit code 0", Outcome::SubjectFailed));
    let error = made.error.as_ref().unwrap();
    assert!(error.hint.as_deref().unwrap().starts_with("it exited on its own"), "{error:?}");
    let empty = &made.trial.phases[0];
    assert_eq!((empty.ok, empty.cut_short.as_deref()), (7, Some("the server died")));
}

#[test]
fn an_interruption_between_markers_keeps_the_phase() {
    let made = made(waiting().with(ms(1500), Happening::Interrupt), &own());
    assert_eq!((kind(&made), marks(&made)), (Some(ErrorKind::Interrupted), vec!["empty", "loaded"]));
    assert_eq!(made.trial.phases[0].cut_short.as_deref(), Some("it was interrupted"));
}

#[test]
fn a_phase_whose_operations_all_failed_ends_the_trial() {
    let failing =
        vec![(ms(500), Happening::Prints("loadline: ops=40 fail=40")), (ms(1000), Happening::Prints(WAITS[1]))];
    let made = made(Script { on_go: vec![failing], ..waiting() }, &own());
    assert_eq!(what(&made), "all 40 operations that the program counted in phase empty failed");
}

#[test]
fn a_readiness_marker_is_not_a_phase_marker() {
    let mut plan = own();
    plan.subject.ready = Ready::Phase("up".to_owned());
    let goes = vec![(ms(300), Happening::Prints(WAITS[0]))];
    let script = Script { happenings: Vec::new(), on_go: [vec![goes], waiting().on_go].concat(), ..waiting() };
    let made = made(script.with(ms(400), Happening::Prints("loadline: phase=up wait=1")), &plan);
    assert_eq!((kind(&made), marks(&made)), (None, vec!["empty", "full", "done"]));
    assert_eq!(made.calls.iter().filter(|call| *call == "go").count(), 3);
}

#[test]
fn a_subject_that_ends_before_its_mark_gets_a_hint_to_wait() {
    let ends = vec![(ms(1000), Happening::Prints("loadline: phase=done")), (ms(1005), Happening::Dies(Exit::Code(0)))];
    let mut script = waiting();
    script.on_go[1] = ends;
    let made = made(script, &own());
    assert_eq!(marks(&made), ["empty", "full"]);
    let hint = made.error.as_ref().unwrap().hint.clone().unwrap();
    assert!(hint.starts_with("have it wait at its last marker"), "{hint}");
}
