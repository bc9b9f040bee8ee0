//! Complete trials in a simulated world: the conductor's order, and that a trial ends and keeps its measurements,
//! whatever happens. No processes, no waiting.

mod endings;
mod failed;
mod inside;
mod law;
mod marks;
mod own;
mod phases;

use super::made_up::{Happening, MadeTrial, PID, Script, carry_out_in, ms};
use crate::doubt::Doubt;
use crate::error::ErrorKind;
use crate::record::Outcome;
use crate::scenario::{Kind, Look, MarkPoint, PhaseMark, TrialPlan, parse};
use std::path::Path;

/// A warm-up of 2 s, work of 4 s, rest of 1 s.
const LOAD: &str = "\n  - warmup: {closed: {connections: 2, duration: 2s}, get: /}\
                    \n  - steady: {closed: {connections: 2, duration: 4s}, get: /}\n  - rest: {idle: 1s}\n";

fn plan(load: &str) -> TrialPlan {
    let text = format!(
        "name: x\nsubject: {{command: [java, '{{jvm}}', -jar, x.jar, '{{port}}'], ready: {{http: /, within: 60s}}}}\n\
         load:{load}"
    );
    let scenario = parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    TrialPlan::of(&scenario, &scenario.configurations[0])
}

fn marks(made: &MadeTrial) -> Vec<&str> {
    made.trial.marks.iter().map(|mark| mark.name.as_str()).collect()
}

fn phases(made: &MadeTrial) -> Vec<&str> {
    made.trial.phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn doubt(made: &MadeTrial, is: impl Fn(&Doubt) -> bool) -> Option<&Doubt> {
    made.trial.doubts.iter().map(|doubt| &doubt.doubt).find(|doubt| is(doubt))
}

fn kind(made: &MadeTrial) -> Option<ErrorKind> {
    made.error.as_ref().map(|error| error.kind)
}

fn what(made: &MadeTrial) -> &str {
    made.error.as_ref().map_or("", |error| error.what.as_str())
}

/// Invariants of every trial with a started subject.
fn check(made: &MadeTrial) {
    let count = |what: &str| made.calls.iter().filter(|call| *call == what).count();
    assert_eq!((count("start"), count("end")), (1, 1), "{:?}", made.calls);
    assert!(count("timeline ended") <= 1, "{:?}", made.calls);
    let trial = &made.trial;
    assert!(trial.end.is_some());
    assert_eq!(made.error.is_none(), trial.outcome == Outcome::Completed);
    // The sink received the record's marks.
    let told = |what: &str| -> Vec<String> {
        made.events.iter().filter_map(|event| event.strip_prefix(what)).map(str::to_owned).collect()
    };
    assert_eq!((told("mark "), told("end ")), (owned(&marks(made)), owned(&phases(made))));
    assert_eq!(told("doubt ").len(), trial.doubts.len());
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn made(script: Script, plan: &TrialPlan) -> MadeTrial {
    let made = carry_out_in(script, plan);
    check(&made);
    made
}

#[test]
fn a_trial_performs_its_steps_in_order() {
    let plan = TrialPlan { marks: MarkPoint::ALL.to_vec(), ..plan(LOAD) };
    let made = made(Script::default(), &plan);
    assert_eq!(kind(&made), None);
    let expected = [
        "start",
        "weigh start",
        "identify",
        "load",
        "load ended",
        "weigh warm",
        "load",
        "load ended",
        "weigh loaded",
        "weigh rested",
        "GC.run",
        "weigh collected",
        "System.trim_native_heap",
        "weigh trimmed",
        "timeline ended",
        "end",
    ];
    assert_eq!(made.calls, expected);
    assert_eq!(phases(&made), ["warmup", "steady", "rest"]);
    let seconds = |name: &str| made.events.iter().filter(|event| **event == format!("second of {name}")).count();
    assert_eq!(
        (seconds("warmup"), seconds("steady"), seconds("rest")),
        (1, 3, 0),
        "the last second ends with its phase"
    );
    let trial = &made.trial;
    assert_eq!((trial.ready_s, trial.jvm.as_ref().map(|jvm| jvm.pid)), (Some(0.5), Some(PID)));
    assert_eq!(trial.jvm.as_ref().unwrap().allocator.as_deref(), Some("glibc"), "the first mark reads it");
    assert_eq!((trial.observer.attach_ms, trial.observer.samples), (Some(1.5), made.samples.len() as u64));
    assert!(made.samples.windows(2).all(|pair| pair[0].1.at_s < pair[1].1.at_s));
}

#[test]
fn every_choice_of_marks_is_taken_exactly_in_order() {
    for chosen in 0..1 << MarkPoint::ALL.len() {
        let chosen = |(index, point)| (chosen >> index & 1 == 1).then_some(point);
        let points: Vec<MarkPoint> = MarkPoint::ALL.into_iter().enumerate().filter_map(chosen).collect();
        for load in [LOAD, &LOAD[..LOAD.find("\n  - rest").unwrap()]] {
            let rests = load.contains("rest");
            let plan = TrialPlan { marks: points.clone(), ..plan(&format!("{load}\n")) };
            let made = made(Script::default(), &plan);
            let expected = points.iter().filter(|point| rests || **point != MarkPoint::Rested);
            assert_eq!(marks(&made), expected.map(|point| point.word()).collect::<Vec<_>>());
            assert_eq!(kind(&made), None);
        }
    }
}

#[test]
fn a_phase_with_its_own_mark_ends_with_it() {
    let mut plan = TrialPlan { marks: vec![MarkPoint::Loaded], ..plan(LOAD) };
    (plan.load.0[0].mark, plan.load.0[1].mark) = (PhaseMark::AsItIs, PhaseMark::Collected);
    let made = made(Script::default(), &plan);
    assert_eq!(marks(&made), ["warmup", "steady", "loaded"]);
    let live = |index: usize| made.trial.marks[index].heap.live_bytes;
    assert_eq!((live(0), live(1).is_some(), live(2)), (None, true, None), "{:?}", made.calls);
}

#[test]
fn an_outside_look_makes_no_marks_and_sends_no_commands() {
    let mut plan = TrialPlan { look: Look::Outside, marks: MarkPoint::ALL.to_vec(), ..plan(LOAD) };
    plan.load.0[1].mark = PhaseMark::Collected;
    let made = made(Script::default(), &plan);
    assert_eq!(made.calls, ["start", "describe", "load", "load ended", "load", "load ended", "timeline ended", "end"]);
    assert!(made.trial.jvm.is_some() && made.error.is_none());
}

#[test]
fn a_native_program_is_not_asked_for_its_identity() {
    let mut plan = TrialPlan { marks: vec![MarkPoint::Loaded], ..plan(LOAD) };
    plan.subject.kind = Kind::Native;
    let made = made(Script::default(), &plan);
    assert!(!made.calls.iter().any(|call| call == "identify" || call == "describe"), "{:?}", made.calls);
    assert_eq!((made.trial.jvm.is_none(), marks(&made)), (true, vec!["loaded"]));
}

#[test]
fn measuring_one_of_several_processes_raises_a_doubt() {
    let mut plan = plan(LOAD);
    let script = Script { others: vec![5, 6], ..Script::default() };
    let one = made(script.clone(), &plan);
    let expected = Doubt::SeveralJvms { pid: PID, others: vec![5, 6] };
    assert_eq!(doubt(&one, |doubt| matches!(doubt, Doubt::SeveralJvms { .. })), Some(&expected));
    plan.subject.kind = Kind::Native;
    assert!(doubt(&made(script.clone(), &plan), |doubt| matches!(doubt, Doubt::SeveralProcesses { .. })).is_some());
    plan.subject.processes = crate::scenario::Processes::All;
    assert!(doubt(&made(script, &plan), |doubt| matches!(doubt, Doubt::SeveralProcesses { .. })).is_none());
    plan.subject.processes = crate::scenario::Processes::default();
    assert!(doubt(&made(Script::default(), &plan), |doubt| matches!(doubt, Doubt::SeveralProcesses { .. })).is_none());
}

#[test]
fn an_interruption_at_any_time_keeps_measurements() {
    let plan = TrialPlan { marks: MarkPoint::ALL.to_vec(), ..plan(LOAD) };
    let whole = made(Script::default(), &plan);
    let end_ms = whole.took.as_millis() as u64;
    // Once the subject is asked to end, nothing can be interrupted.
    for at_ms in (0..end_ms - 41).step_by(37) {
        let script = Script::default().with(ms(at_ms), Happening::Interrupt);
        let made = made(script, &plan);
        let trial = &made.trial;
        assert_eq!((kind(&made), trial.outcome), (Some(ErrorKind::Interrupted), Outcome::Aborted), "at {at_ms} ms");
        assert!(made.took <= ms(at_ms) + ms(300), "at {at_ms} ms: {:?}", made.took);
        let before = |at_s: f64| at_s * 1e3 < at_ms as f64;
        let kept = whole.trial.marks.iter().filter(|mark| before(mark.at_s + 0.031)).count();
        assert!(trial.marks.len() >= kept, "at {at_ms} ms: {:?}", marks(&made));
        assert_eq!(trial.marks[..kept], whole.trial.marks[..kept]);
        let whole_phases = &whole.trial.phases;
        let ended = whole_phases.iter().filter(|phase| before(phase.at_s + phase.seconds)).count();
        assert_eq!(trial.phases[..ended], whole_phases[..ended], "at {at_ms} ms");
        let cut: Vec<_> = trial.phases[ended..].iter().filter_map(|phase| phase.cut_short.as_deref()).collect();
        assert!(cut.iter().all(|why| *why == "it was interrupted"), "{cut:?}");
    }
}

#[test]
fn a_failed_trial_names_its_configuration_and_reason() {
    let script = Script { ready: None, ..Script::default() };
    let made = made(script, &TrialPlan { index: 2, ..plan(LOAD) });
    let error = made.error.as_ref().unwrap();
    assert_eq!(error.what, "the server was not ready in time");
    assert!(format!("{error:?}").contains("configuration: default, trial 3"), "{error:?}");
    assert_eq!(made.trial.why.as_deref(), Some("the server was not ready in time"));
    assert_eq!((made.calls, made.took), (owned(&["start", "end"]), ms(60_040)));
}
