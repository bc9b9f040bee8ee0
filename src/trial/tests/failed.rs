//! Marks after a failed or interrupted phase.

use super::super::made_up::{Drives, WEIGHING};
use super::*;
use crate::error::Error;
use crate::scenario::{Guard, Objects, PhaseGuard};
use crate::subject::Exit;
use std::path::PathBuf;

const STEADY: &str = "\n  - steady: {closed: {connections: 2, duration: 2s}, get: /}\n  - rest: {idle: 1s}\n";

fn all_marks(load: &str) -> TrialPlan {
    TrialPlan { marks: MarkPoint::ALL.to_vec(), ..plan(load) }
}

/// Every request fails.
fn failing() -> Script {
    let mut script = Script::default();
    script.answers.per_s = (0, 10);
    script
}

fn failed_in(made: &MadeTrial) -> Option<&str> {
    made.trial.failed_in.as_ref().map(|failed| failed.phase.as_str())
}

#[test]
fn a_subject_without_correct_responses_is_measured_and_quoted() {
    let script = failing().with(ms(900), Happening::Prints("no direct memory"));
    for (load, phase) in [(LOAD, "warmup"), (STEADY, "steady")] {
        let made = made(script.clone(), &all_marks(load));
        assert_eq!((kind(&made), failed_in(&made)), (Some(ErrorKind::Subject), Some(phase)));
        assert_eq!(marks(&made), ["start", "loaded", "collected", "trimmed"], "there is no rest after a failure");
        let trial = &made.trial;
        assert_eq!(trial.outcome, Outcome::SubjectFailed);
        assert_eq!(trial.last_words(), ["no direct memory"]);
        assert!(trial.mark("collected").unwrap().heap.live_bytes.is_some());
    }
}

#[test]
fn a_subject_is_measured_after_any_failed_phase() {
    let mut engine = Script::default();
    engine.answers.error = Some(Error::machine("too few file descriptors"));
    let made_by_engine = made(engine, &all_marks(STEADY));
    assert_eq!((kind(&made_by_engine), failed_in(&made_by_engine)), (Some(ErrorKind::Machine), Some("steady")));
    assert_eq!(marks(&made_by_engine), ["start", "loaded", "collected", "trimmed"]);
    assert_eq!(made_by_engine.trial.last_words(), [""; 0], "it is not the server that failed");

    let driven = "\n  - steady: {driver: 'wrk {url}/', within: 5s}\n";
    let drives = Drives { exit: Some(Exit::Code(3)), ..Script::default().drives };
    let made_by_driver = made(Script { drives, ..Script::default() }, &all_marks(driven));
    assert_eq!((kind(&made_by_driver), failed_in(&made_by_driver)), (Some(ErrorKind::Request), Some("steady")));
    assert_eq!(marks(&made_by_driver), ["start", "loaded", "collected", "trimmed"]);

    let own = TrialPlan { marks: Vec::new(), ..plan("\n  - work: {phases: [empty, full], within: 3s}\n") };
    let made_by_itself = made(Script::default().with(ms(900), Happening::Prints("loadline: phase=empty")), &own);
    assert_eq!((failed_in(&made_by_itself), marks(&made_by_itself)), (Some("work"), vec!["empty", "loaded"]));
}

#[test]
fn an_interrupted_subject_is_measured_once_immediately() {
    for (at_ms, phase, expected) in [
        (1500, "warmup", vec!["start", "loaded"]),
        (4000, "steady", vec!["start", "warm", "loaded"]),
        (7000, "rest", vec!["start", "warm", "loaded", "rested"]),
    ] {
        let made = made(Script::default().with(ms(at_ms), Happening::Interrupt), &all_marks(LOAD));
        assert_eq!((kind(&made), failed_in(&made)), (Some(ErrorKind::Interrupted), Some(phase)));
        assert_eq!(marks(&made), expected);
        assert!(made.took < ms(at_ms) + WEIGHING + ms(150), "{:?}", made.took);
    }
}

#[test]
fn dead_hopeless_or_observed_subjects_are_not_measured() {
    let died = made(failing().with(ms(1500), Happening::Dies(Exit::Code(1))), &all_marks(STEADY));
    assert_eq!((marks(&died), failed_in(&died)), (vec!["start"], Some("steady")));
    assert!(doubt(&died, |doubt| matches!(doubt, Doubt::ReadFailed { .. })).is_none(), "the subject was not read");

    let bound = PhaseGuard { name: "steady".to_owned(), failed_max: Some(3), ..PhaseGuard::default() };
    let guarded = TrialPlan { guard: Guard { phases: vec![bound] }, ..all_marks(STEADY) };
    let hopeless = made(failing(), &guarded);
    assert!(hopeless.trial.hopeless.is_some());
    assert_eq!(marks(&hopeless), ["start"]);

    let outside = made(failing(), &TrialPlan { look: Look::Outside, ..all_marks(STEADY) });
    assert_eq!((marks(&outside), failed_in(&outside)), (Vec::<&str>::new(), Some("steady")));
    let chosen = made(failing(), &TrialPlan { marks: vec![MarkPoint::Rested], ..plan(STEADY) });
    assert_eq!(marks(&chosen), [""; 0], "marks that were not requested are not made");
}

#[test]
fn heap_contents_of_a_failed_subject_are_reported() {
    let heap_dump = Some(PathBuf::from("/x/a.hprof"));
    let asking = TrialPlan { objects: Objects::Listed, heap_dump, ..all_marks(STEADY) };
    let trial = carry_out_in(failing(), &asking).trial;
    assert!(trial.objects.is_some() && trial.heap_dump.is_some());
    let interrupted = failing().with(ms(1500), Happening::Interrupt);
    let trial = carry_out_in(interrupted, &asking).trial;
    assert!(trial.objects.is_none() && trial.heap_dump.is_none());
}
