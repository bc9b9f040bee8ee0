//! Invariants of every trial: it ends in bounded time, ends its subject once, and keeps all earlier measurements.

use super::super::made_up::JvmReply;
use super::*;
use crate::error::Error;
use crate::subject::Exit;
use crate::units::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

/// Every kind of phase.
const ALL: &str = "\n  - warmup: {closed: {connections: 2, duration: 1s}, get: /}\
                   \n  - work: {phases: [empty, full], within: 3s, collect: 1}\
                   \n  - steady: {driver: 'wrk {url}', within: 4s}\n  - rest: {idle: 1s}\n";

/// The sum of all bounds: readiness, work, markers, driver, rest, settling at six marks, an engine that does not stop,
/// and the subject's end.
const ENDS_WITHIN: Duration = Duration::from_secs(60 + 11 + 6 + 4 + 1 + 6 * 4 + 30);

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => prop_oneof![
            Just("loadline: phase=empty wait=1"),
            Just("loadline: phase=empty"),
            Just("loadline: phase=full"),
            Just("loadline: phase=other"),
            Just("loadline: ops=5 fail=2"),
            Just("java.lang.OutOfMemoryError: Metaspace"),
        ].prop_map(Happening::Prints),
        1 => Just(Happening::Dies(Exit::Code(1))),
        1 => Just(Happening::OomKill),
        1 => Just(Happening::OomKillBeside),
        1 => Just(Happening::LosesGuardian),
        1 => Just(Happening::Interrupt),
    ]
}

fn happenings(until_ms: u64) -> impl Strategy<Value = Vec<(Duration, Happening)>> {
    vec(((0..until_ms).prop_map(ms), happening()), 0..5)
}

prop_compose! {
    fn script()(
        ready in prop_oneof![9 => (0..900u64).prop_map(|at| Some(ms(at))), 1 => Just(None)],
        happenings in happenings(12_000),
        on_go in vec(happenings(3000), 0..4),
        limit in proptest::option::of(Just(Bytes::mib(80))),
        ends_within in proptest::option::of((0..2000u64).prop_map(ms)),
        left in prop_oneof![9 => Just(0usize), 1 => Just(1)],
        settles in prop_oneof![Just(ms(1)), Just(ms(900)), Just(ms(1 << 30))],
        asked in prop_oneof![Just(JvmReply::Obeys), Just(JvmReply::Refuses("no")), Just(JvmReply::IsDeaf)],
        (ok, failed) in (0..50u64, 0..3u64),
        (error, stuck) in (proptest::bool::weighted(0.1), proptest::bool::weighted(0.2)),
        ends in proptest::option::of((0..5000u64).prop_map(ms)),
    ) -> Script {
        let script = Script { ready, happenings, on_go, limit, ends_within, left, ..Script::default() };
        let mut script = Script { settles, asked, ..script };
        script.answers.per_s = (ok, failed);
        script.answers.error = error.then(|| Error::machine("no sockets"));
        script.answers.stops_within = (!stuck).then_some(ms(80));
        script.drives.ends = ends;
        script
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn a_trial_always_ends_and_keeps_its_measurements(script in script(), outside: bool) {
        let look = if outside { Look::Outside } else { Look::Full };
        let plan = TrialPlan { look, marks: MarkPoint::ALL.to_vec(), ..plan(ALL) };
        // `check` asserts that the subject was ended once, and that the record has everything that the sink received.
        let made = made(script.clone(), &plan);
        prop_assert!(made.took <= ENDS_WITHIN, "{:?}", made.took);
        let trial = &made.trial;
        prop_assert!(trial.marks.windows(2).all(|pair| pair[0].at_s <= pair[1].at_s));
        prop_assert!(trial.phases.windows(2).all(|pair| pair[0].at_s <= pair[1].at_s));
        prop_assert!(trial.marks.iter().all(|mark| mark.rss_bytes > 0));
        prop_assert_eq!(trial.observer.samples, made.samples.len() as u64, "every sample was passed to the sink");
        // The same script gives the same record, except for Loadline's own RSS.
        let mut again = super::made(script, &plan).trial;
        again.observer.own_rss_bytes_peak = trial.observer.own_rss_bytes_peak;
        prop_assert_eq!(&again, trial);
    }
}
