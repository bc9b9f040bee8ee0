//! When a trial of a search is hopeless, judging by its target and the trial with ample memory.

use crate::comparison::{speaks_of, split};
use crate::record::{PhaseRecord, Trial};
use crate::scenario::{
    Amount, Budget, Figure, Guard, Late, Limit, LoadPlan, Phase, PhaseGuard, Relation, Statistic, Until,
};
use std::time::Duration;

/// After this multiple of the time taken with ample memory, no target can be met.
const LONGER: f64 = 4.0;
/// Added to each bound, so that short phases survive a hiccup.
const LONGER_S: f64 = 5.0;
/// If an open model falls below this share of the offered rate, it gets no time to recover.
const OPEN_RATE_SHARE: f64 = 0.5;
/// A closed model is judged by its overall rate; this is far below any such target.
const CLOSED_RATE_SHARE: f64 = 0.25;
/// Margin over the number of late responses that the target allows: the last interval may have been counted twice.
const LATE_MARGIN: f64 = 1.1;
const LATE_MORE: u64 = 2;
/// A startup that takes this many times as long as with ample memory is hopeless.
const START_LONGER: f64 = 5.0;
/// Minimum time for a startup.
const START_MIN: Duration = Duration::from_secs(10);
/// The same two values for a startup without load.
const START_ALONE_LONGER: f64 = 3.0;
const START_ALONE_MIN: Duration = Duration::from_secs(5);

/// The guard that ends a trial with this load early.
pub fn guard(load: &LoadPlan, target: &[Budget], reference: &Trial) -> Guard {
    let phases = load.iter().filter(|phase| phase.kind.works());
    let same = |name: &str| reference.phases.iter().find(|phase| phase.name == name);
    let as_long = |phase: &Phase| Some(lasting(same(&phase.name)?, phase));
    let of = |name: &str, before: &PhaseRecord| PhaseGuard {
        name: name.to_owned(),
        seconds_max: Some(before.seconds * LONGER + LONGER_S),
        late: target.iter().filter_map(|budget| late(budget, before)).collect(),
        failed_max: target.iter().filter_map(|budget| failed_max(budget, before)).min(),
        rate_min_per_s: rate_min_per_s(target, before),
    };
    Guard { phases: phases.filter_map(|phase| Some(of(&phase.name, &as_long(phase)?))).collect() }
}

/// The record of a phase in the first trial, scaled to the planned length if that is longer.
fn lasting(before: &PhaseRecord, planned: &Phase) -> PhaseRecord {
    let until = planned.kind.work().and_then(|work| work.schedule.until());
    let Some(Until::Elapsed(span)) = until.filter(|_| !planned.is_warmup()) else { return before.clone() };
    let longer = (span.as_s() / before.seconds.max(f64::MIN_POSITIVE)).max(1.0);
    let requests = (before.requests as f64 * longer).round() as u64;
    PhaseRecord { seconds: before.seconds * longer, requests, ..before.clone() }
}

/// How long a startup may take, given the usual time allowed.
pub fn ready_within(usual: Duration, reference: &Trial) -> Duration {
    longer(START_LONGER, START_MIN, usual, reference)
}

/// The same for a startup without load and with file pages in memory: three times its duration without them.
pub fn ready_alone_within(usual: Duration, reference: &Trial) -> Duration {
    longer(START_ALONE_LONGER, START_ALONE_MIN, usual, reference)
}

fn longer(times: f64, least: Duration, usual: Duration, reference: &Trial) -> Duration {
    reference.ready_s.map_or(usual, |ready_s| Duration::from_secs_f64(ready_s * times).max(least)).min(usual)
}

fn late(budget: &Budget, before: &PhaseRecord) -> Option<Late> {
    let Limit::Absolute(Amount::Time(bound)) = budget.limit else { return None };
    if !speaks_of(budget, before) || !matches!(budget.relation, Relation::Less | Relation::AtMost) {
        return None;
    }
    let Figure::Time(time, statistic) = Figure::of(split(&budget.metric).0)? else { return None };
    let share = match statistic {
        Statistic::Quantile(thousandths) => f64::from(1000 - thousandths) / 1000.0,
        Statistic::Max => 0.0,
        Statistic::Mean => return None,
    };
    let allowed = (before.requests as f64 * share * LATE_MARGIN).ceil() as u64;
    Some(Late { bound_ms: bound.as_s() * 1e3, time, requests_max: allowed + if share > 0.0 { LATE_MORE } else { 0 } })
}

fn failed_max(budget: &Budget, before: &PhaseRecord) -> Option<u64> {
    if split(&budget.metric).0 != "failed" || !speaks_of(budget, before) {
        return None;
    }
    match (budget.relation, budget.limit) {
        (Relation::Equal | Relation::AtMost | Relation::Less, Limit::Absolute(Amount::Number(0.0))) => Some(0),
        (Relation::AtMost | Relation::Less, Limit::Absolute(Amount::Share(share))) => {
            Some((before.requests as f64 * share).ceil() as u64)
        }
        _ => None,
    }
}

fn rate_min_per_s(target: &[Budget], before: &PhaseRecord) -> Option<f64> {
    let asked =
        |family: &str| target.iter().any(|budget| split(&budget.metric).0 == family && speaks_of(budget, before));
    match before.offered_per_s {
        Some(offered) => Some(offered * OPEN_RATE_SHARE),
        None if asked("rate") => Some(before.achieved_per_s * CLOSED_RATE_SHARE),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Time;

    fn before() -> PhaseRecord {
        PhaseRecord {
            name: "steady".to_owned(),
            seconds: 10.0,
            requests: 2000,
            offered_per_s: Some(200.0),
            achieved_per_s: 199.0,
            ..PhaseRecord::default()
        }
    }

    fn budget(text: &str) -> Budget {
        text.parse().unwrap()
    }

    #[test]
    fn a_start_gets_five_times_its_duration_up_to_the_usual_limit() {
        let of = |ready_s, usual: u64| {
            let reference = Trial { ready_s, ..Trial::new("a", 0, 0) };
            ready_within(Duration::from_secs(usual), &reference).as_secs_f64()
        };
        assert_eq!([of(Some(4.0), 60), of(Some(0.4), 60), of(Some(40.0), 60)], [20.0, 10.0, 60.0]);
        assert_eq!([of(None, 60), of(Some(0.4), 5)], [60.0, 5.0]);
    }

    #[test]
    fn the_share_that_may_be_late_follows_from_the_quantile() {
        let late = |text: &str| {
            let of = late(&budget(text), &before())?;
            Some((of.bound_ms, of.time, of.requests_max))
        };
        assert_eq!(late("p50<=20ms"), Some((20.0, Time::Usual, 1102)));
        assert_eq!(late("p90<20ms"), Some((20.0, Time::Usual, 223)));
        assert_eq!(late("response.p99<20ms"), Some((20.0, Time::Response, 24)));
        assert_eq!(late("service.p999<1s"), Some((1000.0, Time::Service, 5)));
        assert_eq!(late("max<1s"), Some((1000.0, Time::Usual, 0)));
        assert_eq!(late("service.max<=1s"), Some((1000.0, Time::Service, 0)));
        assert_eq!(late("p99.steady<20ms"), Some((20.0, Time::Usual, 24)));
        for none in ["p99.spike<20ms", "p99>20ms", "mean<20ms", "rate>=90%", "p99<=+5%"] {
            assert_eq!(late(none), None, "{none}");
        }
        let warmup = PhaseRecord { name: "warmup".to_owned(), ..before() };
        assert!(super::late(&budget("p99<20ms"), &warmup).is_none(), "a warm-up is guarded only if it is named");
        assert!(super::late(&budget("p99.warmup<20ms"), &warmup).is_some(), "a named warm-up is guarded");
        assert_eq!(failed_max(&budget("failed==0"), &warmup), Some(0));
    }

    #[test]
    fn allowed_failures_follow_from_the_relation() {
        let failed = |text: &str| failed_max(&budget(text), &before());
        assert_eq!([failed("failed==0"), failed("failed<=0"), failed("failed<0.01%")], [Some(0), Some(0), Some(1)]);
        assert_eq!([failed("failed<=1%"), failed("failed<0.1%")], [Some(20), Some(2)]);
        for none in ["failed.spike==0", "p99<20ms", "failed>=0", "failed>1%", "failed<=3"] {
            assert_eq!(failed(none), None, "{none}");
        }
    }

    /// Covers each phase with load that the reference trial had; if there are several targets, the strictest applies.
    #[test]
    fn a_phase_is_guarded_by_the_reference_trial() {
        let text = "name: x\nsubject: {command: [java, -jar, x.jar]}\nconfigurations: {a: {}}\nload:\n  \
                    - steady: {constant: {rate: 200, duration: 10s}, get: /}\n  - rest: {idle: 5s}\n  \
                    - new: {constant: {rate: 200, duration: 10s}, get: /}\n";
        let scenario = crate::scenario::parse(text, std::path::Path::new("/x"), &[17]).unwrap();
        let rest = PhaseRecord { name: "rest".to_owned(), seconds: 5.0, ..PhaseRecord::default() };
        let reference = Trial { phases: vec![before(), rest], ..Trial::new("a", 0, 0) };
        let target = ["p99<50ms", "max<2s", "failed<1%", "failed<0.1%"].map(budget);
        let of = |load: &LoadPlan| guard(load, &target, &reference);
        let guard = of(&scenario.load);
        let [only] = guard.phases.as_slice() else { panic!("{guard:?}") };
        assert_eq!((only.name.as_str(), only.seconds_max, only.failed_max), ("steady", Some(45.0), Some(2)));
        assert_eq!((only.late.len(), only.rate_min_per_s), (2, Some(100.0)));
        // A phase that lasts six times as long may have six times as many late responses and failures.
        let mut steady = LoadPlan(vec![scenario.load[0].clone()]);
        assert!(steady.prolong(crate::units::Span::seconds(60)));
        let longer = of(&steady).phases.remove(0);
        assert_eq!(
            (longer.seconds_max, longer.failed_max, longer.rate_min_per_s),
            (Some(245.0), Some(12), Some(100.0))
        );
        assert!(longer.late[0].requests_max > only.late[0].requests_max, "{longer:?}");
    }

    #[test]
    fn a_rate_fails_below_a_share_of_the_offered_or_reference_rate() {
        assert_eq!(rate_min_per_s(&[], &before()), Some(100.0));
        let closed = PhaseRecord { offered_per_s: None, ..before() };
        assert_eq!(rate_min_per_s(&[], &closed), None);
        assert_eq!(rate_min_per_s(&[budget("rate>=90%")], &closed), Some(199.0 * CLOSED_RATE_SHARE));
    }
}
