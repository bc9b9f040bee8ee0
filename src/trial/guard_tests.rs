//! The guard on simulated seconds: each bound separately, and no trial that could pass is stopped.

use super::*;
use crate::record::Unit;
use crate::scenario::{Arrivals, Late, Method, Pool, Rate, Request, Schedule, Spacing};
use crate::units::Span;
use proptest::collection::vec;
use proptest::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;

/// The `nth` second of a phase with these response times, in ms.
fn second(nth: u64, times_ms: &[f64]) -> Interval {
    Interval {
        start_ns: nth * SECOND_NS,
        end_ns: (nth + 1) * SECOND_NS,
        service: histogram(times_ms),
        response: None,
        ok: times_ms.len() as u64,
        failed: 0,
        offered: None,
        bytes_received: 0,
        open_connections: 1,
        queue: 0,
    }
}

fn histogram(times_ms: &[f64]) -> Histogram<u64> {
    let mut times = Histogram::new_with_bounds(1, 100 * SECOND_NS, 3).unwrap();
    times_ms.iter().for_each(|ms| times.record((ms * 1e6) as u64).unwrap());
    times
}

fn watch(guard: PhaseGuard, work: Option<&Work>) -> Watch {
    let guard = Guard { phases: vec![PhaseGuard { name: "steady".to_owned(), ..guard }] };
    assert!(Watch::begin(&guard, "warmup", work, 0).is_none());
    Watch::begin(&guard, "steady", work, 0).unwrap()
}

fn late(bound_ms: f64, requests_max: u64, time: Time) -> PhaseGuard {
    PhaseGuard { late: vec![Late { bound_ms, time, requests_max }], ..PhaseGuard::default() }
}

fn at_least(rate_per_s: f64) -> PhaseGuard {
    PhaseGuard { rate_min_per_s: Some(rate_per_s), ..PhaseGuard::default() }
}

fn closed(until: Until) -> Work {
    Work::closed(Request::new(Method::Get, "/"), 10, until)
}

fn open(until: Until) -> Work {
    let arrivals = Arrivals::Rate { rate: Rate::Constant(10.0), spacing: Spacing::Even, until };
    Work { schedule: Schedule::Open { arrivals, pool: Pool::fixed(10) }, ..closed(until) }
}

/// The watch's reason to stop after the last of these seconds.
fn after(watch: &mut Watch, seconds: impl IntoIterator<Item = Interval>) -> Option<String> {
    let mut end_ns = 0;
    for second in seconds {
        watch.add(&second);
        end_ns = second.end_ns;
    }
    watch.hopeless(end_ns).map(|missed| missed.text)
}

#[test]
fn a_phase_without_bounds_is_not_watched() {
    assert!(Watch::begin(&Guard::default(), "steady", None, 0).is_none());
    let mut free = watch(PhaseGuard::default(), None);
    let slow = (0..100).map(|nth| Interval { failed: 1000, ..second(nth, &[9000.0]) });
    assert_eq!(after(&mut free, slow), None);
}

#[test]
fn late_responses_are_counted_over_the_entire_phase() {
    let mut watch = watch(late(50.0, 2, Time::Usual), None);
    assert_eq!(after(&mut watch, [second(0, &[10.0, 60.0]), second(1, &[49.0, 70.0])]), None);
    let why = after(&mut watch, [second(2, &[1.0, 51.0])]).unwrap();
    assert_eq!(
        why,
        "service.steady: 3 responses took longer than 50.0 ms; the target allows at most 2 in the \
         whole phase"
    );
}

#[test]
fn times_equal_to_the_bound_within_precision_are_not_late() {
    let mut watch = watch(late(50.0, 0, Time::Usual), None);
    assert_eq!(after(&mut watch, [second(0, &[50.0, 50.002, 49.99])]), None);
    assert!(after(&mut watch, [second(1, &[50.1])]).is_some());
}

#[test]
fn the_response_time_is_used_if_available_and_requested() {
    let with_response = || Interval { response: Some(histogram(&[900.0])), ..second(0, &[1.0]) };
    let why = |time| after(&mut watch(late(50.0, 0, time), None), [with_response()]);
    assert_eq!(
        why(Time::Usual).unwrap(),
        "response.steady: 1 response took longer than 50.0 ms; the target allows at most 0 in the whole phase"
    );
    assert!(why(Time::Response).is_some());
    assert_eq!(why(Time::Service), None);
    // A closed model only has service times.
    let mut in_closed = watch(late(50.0, 0, Time::Response), None);
    assert!(after(&mut in_closed, [second(0, &[60.0])]).unwrap().starts_with("service.steady"));
}

#[test]
fn failures_are_counted_over_the_entire_phase() {
    let guard = PhaseGuard { failed_max: Some(3), ..PhaseGuard::default() };
    let mut watch = watch(guard, None);
    let failing = |nth, failed| Interval { failed, ..second(nth, &[1.0]) };
    assert_eq!(after(&mut watch, [failing(0, 1), failing(1, 2)]), None);
    let why = after(&mut watch, [failing(2, 1)]).unwrap();
    assert_eq!(why, "failed.steady: 4 requests failed; the target allows at most 3 in the whole phase");
}

#[test]
fn a_rate_is_judged_over_three_seconds() {
    let mut watch = watch(at_least(10.0), None);
    let of = |nth, count| second(nth, &[1.0].repeat(count));
    assert_eq!(after(&mut watch, [of(0, 0), of(1, 0)]), None, "two seconds are too short to judge a rate");
    let why = after(&mut watch, [of(2, 12)]).unwrap();
    assert_eq!(
        why,
        "rate.steady: only 4 successful responses per second in the last 3.0 s, fewer than the required 10"
    );
    assert!(after(&mut watch, [of(3, 12)]).is_some());
    assert_eq!(after(&mut watch, [of(4, 12)]), None, "the window excludes the first two seconds");
    assert_eq!(after(&mut watch, [of(5, 18), of(6, 0)]), None, "the average over the window is 10 per second");
}

#[test]
fn a_rate_is_not_judged_after_all_requests_were_sent() {
    let of = |nth, count| second(nth, &[1.0].repeat(count));
    let by_time = closed(Until::Elapsed(Span::seconds(5)));
    let full = || (0..5).map(move |nth| of(nth, 20));
    let mut watched = watch(at_least(10.0), Some(&by_time));
    assert_eq!(after(&mut watched, full().chain((5..9).map(|nth| of(nth, 0)))), None);
    // 10 connections handle the last of 100 requests.
    let by_count = closed(Until::Requests(100));
    let mut watched = watch(at_least(10.0), Some(&by_count));
    assert_eq!(after(&mut watched, full().take(4).chain([of(4, 15), of(5, 1), of(6, 1), of(7, 1)])), None);
    let mut watched = watch(at_least(10.0), Some(&by_count));
    assert!(after(&mut watched, [of(0, 20), of(1, 5), of(2, 1)]).is_some(), "74 requests remain to be sent");
}

#[test]
fn an_open_plan_is_judged_by_its_offered_rate() {
    let of = |nth, count, offered| Interval { offered: Some(offered), ..second(nth, &[1.0].repeat(count)) };
    let ten_seconds = open(Until::Elapsed(Span::seconds(10)));
    let mut watched = watch(at_least(5.0), Some(&ten_seconds));
    let seconds = [of(0, 10, 10), of(1, 0, 10), of(2, 1, 10)];
    assert!(after(&mut watched, seconds).is_some());
    let forty = open(Until::Requests(40));
    let mut watched = watch(at_least(5.0), Some(&forty));
    let drain = (0..4).map(|nth| of(nth, 9, 10)).chain((4..9).map(|nth| of(nth, 0, 0)));
    assert_eq!(after(&mut watched, drain), None);
}

#[test]
fn a_phase_that_exceeds_its_time_is_hopeless() {
    let guard = PhaseGuard { seconds_max: Some(2.5), ..PhaseGuard::default() };
    let mut watch = watch(guard, None);
    watch.add(&second(0, &[1.0, 2.0]));
    assert_eq!(watch.hopeless(5 * SECOND_NS / 2), None);
    let missed = watch.hopeless(5 * SECOND_NS / 2 + 1).unwrap();
    assert_eq!((missed.metric.as_str(), missed.unit, missed.bound), ("rate.steady", Unit::Seconds, 2.5));
    let why = &missed.text;
    assert_eq!(why, "rate.steady: only 2 successful responses in 2.5 s, the phase's maximum length");
    assert_eq!(ended_early(&missed).what, format!("the trial was stopped early: {why}"));
}

#[test]
fn the_first_hopeless_reason_is_kept() {
    let bounds = PhaseGuard { name: "steady".to_owned(), failed_max: Some(3), ..late(50.0, 0, Time::Usual) };
    let mut guarding = Guarding::default();
    guarding.begin(&Guard { phases: vec![bounds] }, "steady", None, 0);
    assert_eq!(guarding.check(0), None);
    guarding.add(&second(0, &[60.0]));
    let first = guarding.check(SECOND_NS).cloned();
    assert_eq!(first.as_ref().map(|missed| missed.metric.as_str()), Some("service.steady"));
    guarding.add(&Interval { failed: 9, ..second(1, &[]) });
    assert_eq!(guarding.check(2 * SECOND_NS).cloned(), first);
    guarding.end();
    assert_eq!(guarding.hopeless().cloned(), first);
}

proptest! {
    /// A watch's memory does not grow with its phase, and late responses are counted exactly.
    #[test]
    fn a_guard_counts_exactly_in_constant_memory(seconds in vec(vec(0_u64..200, 0..30), 1..40)) {
        let guard = PhaseGuard { rate_min_per_s: Some(0.0), ..late(100.0, u64::MAX, Time::Usual) };
        let mut watch = watch(guard, None);
        for (nth, times) in seconds.iter().enumerate() {
            // No time is in the bound's histogram bucket.
            let times: Vec<f64> = times.iter().map(|ms| *ms as f64 + 0.5).collect();
            watch.add(&second(nth as u64, &times));
            prop_assert!(watch.recent.len() <= 4);
        }
        let all = seconds.iter().flatten();
        prop_assert_eq!(watch.late[0], all.clone().filter(|ms| **ms >= 100).count() as u64);
        prop_assert_eq!((watch.ok, watch.hopeless(u64::MAX)), (all.count() as u64, None));
    }
}
