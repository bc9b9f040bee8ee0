//! When a trial of a search is hopeless: from its target and from the trial in which memory was no concern.

use crate::comparison::split;
use crate::record::{PhaseRecord, Trial};
use crate::scenario::{Amount, Budget, Guard, Late, Limit, LoadPlan, PhaseGuard, Relation, Time};
use std::time::Duration;

/// So many times as long as where memory was no concern: no target is met after that.
const LONGER: f64 = 4.0;
/// What is added, so that short phases have time to stumble.
const LONGER_S: f64 = 5.0;
/// The share of the offered rate below which an open model is not given time to recover.
const OPEN_RATE_SHARE: f64 = 0.5;
/// A closed model is asked for its rate as a whole; this is far below what any such target allows.
const CLOSED_RATE_SHARE: f64 = 0.25;
/// More late answers than the target allows, and some: the last interval may have been counted twice.
const LATE_MARGIN: f64 = 1.1;
const LATE_MORE: u64 = 2;
/// A start that takes so many times as long as where memory was no concern.
const START_LONGER: f64 = 5.0;
/// No start is given less.
const START_MIN: Duration = Duration::from_secs(10);

/// What ends a trial with this load early.
pub(super) fn guard(load: &LoadPlan, target: &[Budget], reference: &Trial) -> Guard {
    let phases = load.iter().filter(|phase| phase.kind.works());
    let same = |name: &str| reference.phases.iter().find(|phase| phase.name == name);
    let of = |name: &str, before: &PhaseRecord| PhaseGuard {
        name: name.to_owned(),
        seconds_max: Some(before.seconds * LONGER + LONGER_S),
        late: target.iter().filter_map(|budget| late(budget, before)).collect(),
        failed_max: target.iter().filter_map(|budget| failed_max(budget, before)).min(),
        rate_min_per_s: rate_min_per_s(target, before),
    };
    Guard { phases: phases.filter_map(|phase| Some(of(&phase.name, same(&phase.name)?))).collect() }
}

/// How long a start may take that may usually take so long.
pub(super) fn ready_within(usual: Duration, reference: &Trial) -> Duration {
    let ready_s = reference.ready_s.unwrap_or(usual.as_secs_f64());
    Duration::from_secs_f64(ready_s * START_LONGER).max(START_MIN).min(usual)
}

/// Whether a target speaks of this phase; the warm-up is only asked for failures.
fn speaks_of(budget: &Budget, phase: &PhaseRecord) -> bool {
    let (family, place) = split(&budget.metric);
    match place {
        "" => !phase.is_warmup() || family == "failed",
        place => place == phase.name,
    }
}

fn late(budget: &Budget, before: &PhaseRecord) -> Option<Late> {
    let Limit::Absolute(Amount::Time(bound)) = budget.limit else { return None };
    if !speaks_of(budget, before) || !matches!(budget.relation, Relation::Less | Relation::AtMost) {
        return None;
    }
    let family = split(&budget.metric).0;
    let (time, quantile) = match family.split_once('.') {
        Some(("response", quantile)) => (Time::Response, quantile),
        Some(("service", quantile)) => (Time::Service, quantile),
        _ => (Time::Usual, family),
    };
    let share = match quantile {
        "p50" => 0.5,
        "p90" => 0.1,
        "p99" => 0.01,
        "p999" => 0.001,
        "max" => 0.0,
        _ => return None,
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

    fn before() -> PhaseRecord {
        let offered_per_s = Some(200.0);
        let name = "steady".to_owned();
        PhaseRecord {
            name,
            seconds: 10.0,
            requests: 2000,
            offered_per_s,
            achieved_per_s: 199.0,
            ..PhaseRecord::default()
        }
    }

    #[test]
    fn a_target_says_what_is_too_late_and_too_little() {
        let budget = |text: &str| text.parse::<Budget>().unwrap();
        let of = late(&budget("p99<50ms"), &before()).unwrap();
        assert_eq!((of.bound_ms, of.requests_max, of.time), (50.0, 24, Time::Usual));
        assert_eq!(late(&budget("service.max<=1s"), &before()).unwrap().requests_max, 0);
        assert!(late(&budget("p99.spike<50ms"), &before()).is_none());
        assert!(late(&budget("mean<50ms"), &before()).is_none());
        assert_eq!(failed_max(&budget("failed==0"), &before()), Some(0));
        assert_eq!(failed_max(&budget("failed<0.1%"), &before()), Some(2));
        assert_eq!(rate_min_per_s(&[], &before()), Some(100.0));
        let closed = PhaseRecord { offered_per_s: None, ..before() };
        assert_eq!(rate_min_per_s(&[], &closed), None);
        assert_eq!(rate_min_per_s(&[budget("rate>=90%")], &closed), Some(199.0 * CLOSED_RATE_SHARE));
    }
}
