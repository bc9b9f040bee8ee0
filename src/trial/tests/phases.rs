//! Phases of work, rest, and a driver: their records, what ends them early, and the guard.

use super::super::made_up::{Answers, Drives};
use super::*;
use crate::error::Error;
use crate::record::{Model, Unit};
use crate::scenario::{Guard, Late, PhaseGuard, Time};
use crate::subject::Exit;
use crate::units::{MIB, Millicpus};
use std::time::Duration;

const DRIVEN: &str = "\n  - steady: {driver: 'wrk {url}/', within: 5s}\n";

fn answering(change: impl FnOnce(&mut Answers)) -> Script {
    let mut script = Script::default();
    change(&mut script.answers);
    script
}

fn cut_short(made: &MadeTrial) -> Vec<Option<&str>> {
    made.trial.phases.iter().map(|phase| phase.cut_short.as_deref()).collect()
}

/// An error's full text, for searching.
fn told(made: &MadeTrial) -> String {
    format!("{:?}", made.error)
}

#[test]
fn a_phase_records_load_subject_and_its_own_peak() {
    let script = Script { settles: ms(1), ..Script::default() };
    let mut plan = TrialPlan { marks: vec![MarkPoint::Loaded], ..plan(LOAD) };
    plan.load.0[1].mark = PhaseMark::Collected;
    let made = made(script, &plan);
    let [warmup, steady, rest] = made.trial.phases.as_slice() else { panic!("{:?}", phases(&made)) };
    assert_eq!((steady.requests, steady.ok, steady.seconds), (300, 300, 4.0));
    assert_eq!((steady.model, rest.model), (Model::Closed, Model::Idle));
    assert_eq!((rest.requests, rest.seconds), (0, 1.0));
    assert_eq!(warmup.at_s, 0.505, "the warm-up starts after 0.5 s of startup and the identification");
    assert!((steady.subject.cpu_s.unwrap() - 2.0).abs() < 1e-6, "the subject uses half a core for 4 s");
    let split = steady.subject.cpu_by_purpose.unwrap();
    assert_eq!([split.jit_s, split.gc_s, split.vm_s], [0.001, 0.004, 0.0], "its threads were read once in 4 s");
    assert!((split.app_s + 0.005 - 2.0).abs() < 1e-6, "the four purposes add up to the CPU time");
    assert_eq!((steady.subject.gc_count, steady.subject.gc_ms.map(f64::round)), (Some(4), Some(40.0)));
    // Collected after the work, so the rest counts only its own.
    assert_eq!(steady.subject.rss_bytes_max, Some(150 * MIB));
    assert_eq!(rest.subject.rss_bytes_max, Some(100 * MIB));
    assert_eq!(made.trial.rss_bytes_peak, Some(150 * MIB));
    let of = |name: &str| made.samples.iter().filter(|(phase, _)| phase == name).count();
    assert_eq!((of("warmup"), of("steady"), of("rest")), (20, 40, 10));
}

#[test]
fn cpu_throttling_is_recorded_and_raises_a_doubt() {
    let mut plan = plan(LOAD);
    assert!(made(Script::default(), &plan).trial.phases.iter().all(|phase| phase.subject.throttling.is_none()));
    plan.configuration.cpu_limit = Some(Millicpus(500));
    let made = made(Script::default(), &plan);
    let throttling = made.trial.phases[1].subject.throttling.unwrap();
    assert_eq!((throttling.periods, throttling.throttled_periods, throttling.throttled_s), (40, 20, 1.0));
    assert_eq!((made.trial.cpu_limit_millicpus, made.trial.phases[1].throttled_share()), (Some(500), Some(0.5)));
    let doubts: Vec<_> = made.trial.doubts.iter().filter(|of| of.text.contains("limit of")).collect();
    // Neither in the warm-up nor in the rest.
    assert_eq!(doubts.len(), 1, "{doubts:?}");
    let text = "in steady, the CPU limit of 0.50 CPUs throttled the server in 50% of the periods";
    assert_eq!(doubts[0].text, text);
}

#[test]
fn a_phase_cut_short_is_explained() {
    let gives_up = answering(|answers| answers.gives_up = Some((ms(1200), "no successful response for 1.0 s")));
    let by_load = made(gives_up.clone(), &plan(LOAD));
    assert_eq!(cut_short(&by_load)[..2], [Some("no successful response for 1.0 s"); 2]);
    let interrupted = made(Script::default().with(ms(3000), Happening::Interrupt), &plan(LOAD));
    assert_eq!(cut_short(&interrupted), [None, Some("it was interrupted")]);
    let died = made(Script::default().with(ms(3000), Happening::Dies(Exit::Code(1))), &plan(LOAD));
    assert_eq!((cut_short(&died), kind(&died)), (vec![None, Some("the server died")], Some(ErrorKind::Subject)));
    // A subject that dies while the load gives up is the cause.
    let both = made(gives_up.with(ms(1000), Happening::Dies(Exit::Code(1))), &plan(LOAD));
    assert_eq!(cut_short(&both), [Some("the server died")]);
}

#[test]
fn a_phase_without_correct_responses_ends_the_trial() {
    let none = answering(|answers| answers.per_s = (0, 10));
    let made = made(none.with(ms(900), Happening::Prints("it does not feel well")), &plan(LOAD));
    assert_eq!(phases(&made), ["warmup"]);
    assert_eq!(what(&made), "none of 10 requests in phase warmup succeeded: 10 timed out");
    let error = made.error.as_ref().unwrap();
    assert_eq!(error.said, ["it does not feel well"]);
    assert_eq!(made.trial.outcome, Outcome::SubjectFailed);
    let nothing = super::made(answering(|answers| answers.per_s = (0, 0)), &plan(LOAD));
    assert_eq!(what(&nothing), "the server did not respond in phase warmup");
}

#[test]
fn tls_errors_are_reported_once() {
    let trouble = |told| {
        let failing = |answers: &mut Answers| {
            answers.per_s = (0, 10);
            answers.tls = Some(("certificate expired", told));
            answers.gives_up = Some((ms(1500), "the last had no TLS session: certificate expired"));
        };
        self::told(&made(answering(failing), &plan(LOAD))).matches("certificate expired").count()
    };
    assert_eq!((trouble(true), trouble(false)), (1, 2));
}

#[test]
fn a_broken_engine_ends_the_trial_and_keeps_earlier_results() {
    let plan = TrialPlan { marks: vec![MarkPoint::Start], ..plan(LOAD) };
    let broken = answering(|answers| answers.error = Some(Error::machine("too few file descriptors")));
    let made = made(broken, &plan);
    assert_eq!((what(&made), kind(&made)), ("too few file descriptors", Some(ErrorKind::Machine)));
    assert!(told(&made).contains("in phase warmup"));
    assert_eq!((marks(&made), made.trial.outcome), (vec!["start"], Outcome::Aborted));
}

#[test]
fn waiting_for_a_stuck_engine_has_a_time_limit() {
    let stuck = answering(|answers| answers.stops_within = None);
    let made = made(stuck.with(ms(3000), Happening::Dies(Exit::Code(1))), &plan(LOAD));
    assert_eq!(what(&made), "the load engine did not stop on request");
    assert!((ms(13_000)..ms(13_200)).contains(&made.took), "{:?}", made.took);
    assert_eq!(phases(&made), ["warmup"]);
}

#[test]
fn results_sent_after_a_stop_still_count() {
    let slow = answering(|answers| answers.stops_within = Some(ms(2500)));
    let made = made(slow.with(ms(3700), Happening::Interrupt), &plan(LOAD));
    assert_eq!(kind(&made), Some(ErrorKind::Interrupted));
    let steady = &made.trial.phases[1];
    assert_eq!((steady.ok, steady.cut_short.as_deref()), (300, Some("it was interrupted")));
    assert!((steady.seconds - 3.7).abs() < 0.1, "{}", steady.seconds);
}

#[test]
fn rest_ends_early_on_a_death_or_interruption() {
    let rest = "\n  - steady: {closed: {connections: 2, duration: 2s}, get: /}\n  - rest: {idle: 60s}\n";
    for happening in [Happening::Interrupt, Happening::Dies(Exit::Code(0)), Happening::LosesGuardian] {
        let made = made(Script::default().with(ms(9000), happening), &plan(rest));
        let seconds = made.trial.phases[1].seconds;
        assert!((6.4..6.6).contains(&seconds), "{seconds}");
        assert!(made.error.is_some());
    }
}

#[test]
fn a_warm_up_ends_when_the_subject_is_warm() {
    let load = "\n  - warmup: {same: steady, until: steady}\
                \n  - steady: {closed: {connections: 2, duration: 2s}, get: /}\n";
    let warm = made(Script::default(), &plan(load));
    let [warmup, steady] = warm.trial.phases.as_slice() else { panic!("{:?}", phases(&warm)) };
    assert!((8.0..8.6).contains(&warmup.seconds), "the warm-up ends after four stretches of 2 s: {}", warmup.seconds);
    assert_eq!((warmup.steady, warmup.cut_short.as_deref(), steady.steady), (Some(true), None, None));
    assert_eq!(warm.trial.outcome, Outcome::Completed);
    // Ten responses in a second show nothing before 5 s have passed.
    let idle = made(
        answering(|answers| answers.per_s = (1, 0)),
        &plan(&load.replace("until: steady", "until: steady, within: 20s")),
    );
    let warmup = &idle.trial.phases[0];
    assert_eq!((warmup.seconds.round(), warmup.steady), (20.0, None));
    let doubt = doubt(&idle, |doubt| matches!(doubt, Doubt::NeverWarm { .. })).unwrap().text();
    assert_eq!(
        doubt,
        "the server was not warm after 20 s of warm-up: too few responses or no CPU times to \
        judge by"
    );
    let interrupted = made(Script::default().with(ms(3000), Happening::Interrupt), &plan(load));
    assert_eq!(cut_short(&interrupted), [Some("it was interrupted")]);
}

// ---- The guard ----

fn guarded(bound: PhaseGuard) -> TrialPlan {
    TrialPlan { guard: Guard { phases: vec![PhaseGuard { name: "steady".to_owned(), ..bound }] }, ..plan(LOAD) }
}

#[test]
fn each_bound_of_the_guard_ends_a_trial_early() {
    let late = Late { bound_ms: 50.0, time: Time::Usual, requests_max: 5 };
    let cases = [
        (PhaseGuard { late: vec![late], ..PhaseGuard::default() }, Unit::Count, 1.0),
        (PhaseGuard { failed_max: Some(30), ..PhaseGuard::default() }, Unit::Count, 2.0),
        (PhaseGuard { rate_min_per_s: Some(500.0), ..PhaseGuard::default() }, Unit::PerSecond, 3.0),
        (PhaseGuard { seconds_max: Some(2.5), ..PhaseGuard::default() }, Unit::Seconds, 2.5),
    ];
    for (bound, unit, after_s) in cases {
        let ill = answering(|answers| (answers.per_s, answers.service_ms) = ((100, 20), 400));
        let made = made(ill, &guarded(bound.clone()));
        let trial = &made.trial;
        let missed = trial.hopeless.as_ref().unwrap_or_else(|| panic!("{bound:?}"));
        assert_eq!((missed.unit, phases(&made)), (unit, vec!["warmup", "steady"]), "{bound:?}");
        assert_eq!(what(&made), format!("the trial was stopped early: {}", missed.text));
        assert_eq!(trial.outcome, Outcome::SubjectFailed);
        let steady = &trial.phases[1];
        assert_eq!(steady.cut_short.as_deref(), Some(format!("stopped early: {}", missed.text).as_str()));
        let seconds = steady.seconds;
        assert!((after_s..after_s + 0.2).contains(&seconds), "{bound:?}: {seconds}");
        // The same bounds do not affect a healthy server.
        let well = super::made(Script { answers: Script::default().answers, ..Script::default() }, &guarded(bound));
        assert_eq!(well.trial.hopeless.is_some(), unit == Unit::PerSecond || unit == Unit::Seconds);
    }
}

#[test]
fn the_first_hopeless_reason_is_recorded() {
    let late = Late { bound_ms: 50.0, time: Time::Usual, requests_max: 5 };
    let bound = PhaseGuard { late: vec![late], failed_max: Some(30), ..PhaseGuard::default() };
    let mut ill = answering(|answers| (answers.per_s, answers.service_ms) = ((100, 20), 400));
    // Stopped after the first second because of late responses; by the third, 40 have failed, too.
    ill.answers.stops_within = Some(ms(2500));
    let made = made(ill, &guarded(bound));
    assert_eq!(made.trial.hopeless.as_ref().unwrap().metric, "service.steady");
    assert_eq!(made.trial.phases[1].failed.total(), 60);
}

// ---- External drivers ----

fn driven(drives: Drives) -> MadeTrial {
    made(Script { drives, ..Script::default() }, &plan(DRIVEN))
}

#[test]
fn a_successful_driver_is_a_phase() {
    let made = driven(Script::default().drives);
    assert_eq!(kind(&made), None);
    let steady = &made.trial.phases[0];
    let driver = steady.driver.as_ref().unwrap();
    assert_eq!((driver.command.as_str(), driver.exit_code), ("wrk http://127.0.0.1:8080/", Some(0)));
    assert_eq!((driver.cpu_s, steady.model), (Some(0.25), Model::Driver));
    assert!((1.5..1.6).contains(&steady.seconds), "{}", steady.seconds);
    assert!(doubt(&made, |doubt| matches!(doubt, Doubt::DriverNotRead { .. })).is_some(), "no result was printed");
}

#[test]
fn a_failed_driver_is_an_error_with_its_last_lines() {
    let of = |exit, left| driven(Drives { exit, left, text: "first\n\nlast\n", ..Script::default().drives });
    let cases = [
        (Some(Exit::Code(127)), 0, "the driver's command was not found: exit code 127"),
        (Some(Exit::Code(126)), 0, "the driver's command cannot be executed: exit code 126"),
        (Some(Exit::Code(3)), 0, "the driver failed: exit code 3"),
        (None, 0, "the driver's guardian process was killed, and the driver with it"),
        (Some(Exit::Code(0)), 2, "2 driver processes could not be killed"),
    ];
    for (exit, left, expected) in cases {
        let made = of(exit, left);
        assert_eq!((what(&made), phases(&made)), (expected, vec!["steady"]));
        assert_eq!(made.error.as_ref().unwrap().said, ["first", "last"]);
        assert_eq!(made.calls.iter().filter(|call| *call == "driver ended").count(), 1);
    }
}

#[test]
fn a_slow_or_surviving_driver_is_ended() {
    let endless = Drives { ends: None, ..Script::default().drives };
    let made = driven(endless.clone());
    assert_eq!(what(&made), "the driver did not finish within 5s");
    assert_eq!(cut_short(&made), [Some("the driver did not finish within 5s")]);
    let cases = [
        (Happening::Interrupt, "it was interrupted", ErrorKind::Interrupted),
        (Happening::Dies(Exit::Code(1)), "the server died", ErrorKind::Subject),
    ];
    for (happening, why, error) in cases {
        let script = Script { drives: endless.clone(), ..Script::default() }.with(ms(2000), happening);
        let made = super::made(script, &plan(DRIVEN));
        assert_eq!((cut_short(&made), kind(&made)), (vec![Some(why)], Some(error)));
        assert_eq!(made.calls.iter().filter(|call| *call == "driver ended").count(), 1);
        assert!(made.took < ms(2000) + Duration::from_secs(1), "{:?}", made.took);
    }
}
