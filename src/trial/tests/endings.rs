//! How trials end: each end of the subject with its record, outcome, and error.

use super::*;
use crate::record::EndCause;
use crate::subject::Exit;
use crate::units::Bytes;

fn ended(script: Script) -> (MadeTrial, EndCause) {
    let made = made(script, &TrialPlan { marks: vec![MarkPoint::Loaded], ..plan(LOAD) });
    let cause = made.trial.end.as_ref().unwrap().cause;
    (made, cause)
}

fn text(made: &MadeTrial) -> &str {
    made.trial.end.as_ref().map_or("", |end| &end.text)
}

#[test]
fn a_subject_that_exits_when_asked_completes_the_trial() {
    let (made, cause) = ended(Script::default());
    assert_eq!((cause, made.trial.outcome), (EndCause::AsAsked, Outcome::Completed));
    assert_eq!(text(&made), "it exited when asked to (exit code 143)");
    let end = made.trial.end.as_ref().unwrap();
    assert_eq!((end.exit_code, end.signal), (Some(143), None));
}

#[test]
fn a_subject_that_ignores_term_is_killed_and_the_trial_completes() {
    let quick = ended(Script::default()).0.took;
    let (made, cause) = ended(Script { ends_within: None, ..Script::default() });
    assert_eq!((cause, made.trial.outcome), (EndCause::KilledAfterTerm, Outcome::Completed));
    assert_eq!(made.took - quick + ms(40), plan(LOAD).subject.end_within.0);
    assert_eq!(made.trial.end.as_ref().unwrap().signal, Some(9));
}

#[test]
fn unkillable_processes_are_a_machine_error() {
    let (made, _) = ended(Script { left: 3, ..Script::default() });
    assert_eq!((kind(&made), made.trial.outcome), (Some(ErrorKind::Machine), Outcome::Aborted));
    assert_eq!(marks(&made), ["loaded"]);
}

#[test]
fn a_subject_that_dies_under_load_is_quoted() {
    let script = Script::default()
        .with(ms(3000), Happening::Prints("Error: cannot go on"))
        .with(ms(3001), Happening::Dies(Exit::Code(3)));
    let (made, cause) = ended(script);
    assert_eq!((cause, made.trial.outcome), (EndCause::ByItself, Outcome::SubjectFailed));
    let error = made.error.as_ref().unwrap();
    assert_eq!(
        (error.what.as_str(), &error.said[..]),
        ("the server died: exit code 3", &owned(&["Error: cannot go on"])[..])
    );
    assert_eq!(made.trial.end.as_ref().unwrap().last_lines, ["Error: cannot go on"]);
    assert_eq!(phases(&made), ["warmup", "steady"]);
}

#[test]
fn an_oom_kill_has_its_own_outcome() {
    let limit = Some(Bytes::mib(80));
    let (made, cause) = ended(Script { limit, ..Script::default() }.with(ms(3000), Happening::OomKill));
    assert_eq!((cause, made.trial.outcome), (EndCause::OomKill, Outcome::Killed));
    let error = made.error.as_ref().unwrap();
    assert_eq!(error.what, "the server was killed because its memory limit was reached: signal 9 (KILL)");
    assert_eq!(error.hint.as_deref(), Some("raise `--limit`, or lower `--heap`"));
    let cgroup = made.trial.cgroup.unwrap();
    assert_eq!((cgroup.limit_bytes, cgroup.oom_kills), (80 << 20, 1));
}

#[test]
fn a_survived_oom_kill_is_counted_but_not_a_failure() {
    let script = Script { limit: Some(Bytes::mib(80)), ..Script::default() };
    let (unharmed, cause) = ended(script.clone());
    assert_eq!((unharmed.trial.cgroup.unwrap().oom_kills, cause), (0, EndCause::AsAsked));
    let (harmed, cause) = ended(script.with(ms(3000), Happening::OomKillBeside));
    assert_eq!((harmed.trial.cgroup.unwrap().oom_kills, cause), (1, EndCause::OomKill));
    assert_eq!((kind(&harmed), harmed.trial.outcome), (None, Outcome::Completed));
    assert!(ended(Script::default()).0.trial.cgroup.is_none(), "without a limit, there is no cgroup record");
}

#[test]
fn an_out_of_memory_error_is_reported_whether_or_not_it_is_fatal() {
    let line = "java.lang.OutOfMemoryError: Java heap space";
    let said = Script::default().with(ms(3000), Happening::Prints(line));
    let is = |doubt: &Doubt| matches!(doubt, Doubt::OutOfMemoryError { error, .. } if error == line);
    let (survived, cause) = ended(said.clone());
    assert_eq!((cause, survived.trial.outcome), (EndCause::AsAsked, Outcome::Completed));
    assert!(doubt(&survived, is).is_some());
    let (died, cause) = ended(said.with(ms(3010), Happening::Dies(Exit::Code(3))));
    assert_eq!((cause, died.trial.outcome), (EndCause::OutOfMemoryError, Outcome::SubjectFailed));
    assert!(doubt(&died, is).is_some());
    let what = &died.error.as_ref().unwrap().what;
    assert_eq!(what, &format!("the server died after `{line}`: exit code 3"));
}

#[test]
fn a_lost_guardian_counts_as_a_death_of_the_subject() {
    let (made, cause) = ended(Script::default().with(ms(3000), Happening::LosesGuardian));
    assert_eq!((cause, made.trial.outcome), (EndCause::GuardianLost, Outcome::SubjectFailed));
    assert_eq!(text(&made), "it was killed along with its guardian (signal 9 (KILL))");
}

#[test]
fn a_death_before_readiness_is_recorded_without_marks() {
    let (made, cause) = ended(Script::default().with(ms(100), Happening::Dies(Exit::Code(1))));
    assert_eq!((cause, made.trial.outcome), (EndCause::ByItself, Outcome::SubjectFailed));
    assert_eq!((made.trial.ready_s, made.samples.len()), (None, 0));
    assert_eq!(made.calls, ["start", "end"]);
}
