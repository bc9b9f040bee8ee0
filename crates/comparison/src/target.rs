//! The targets that must hold during a search: budget expressions, judged on one trial.
//!
//! A family of phases (`p99`) applies to every measured phase, so the worst one counts. `failed` also applies to the
//! warm-up, which has a cold server's first requests. `rate>=98%` is a share of the offered rate. In a closed model, it
//! is a share of the rate that the same phase achieved with ample memory.

use super::amounts::absolute;
use super::catalogue::{ReadAt, family_named, split};
use crate::record::{Missed, Outcome, PhaseRecord, Trial, Unit};
use crate::scenario::{Amount, Budget, Limit};
use crate::units::{Bytes, milliseconds};

/// The family whose bound may be a share of another number.
const RATE: &str = "rate";
/// The family that must also meet its bound in the warm-up.
const FAILED: &str = "failed";

/// Whether a trial met its target.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// The target was met.
    Held,
    /// The target was not met: these numbers were missed.
    Missed(Vec<Missed>),
    /// The trial did not complete, for this reason.
    Ended(String),
    /// The target's metric was not measured, so there is no verdict.
    Unmeasured(String),
}

/// One number that a target refers to.
struct Meant {
    metric: String,
    unit: Unit,
    value: Option<f64>,
}

/// Whether an expression can be a target of phases with these names. Errors: which metrics a target can use, or how to
/// write its bound.
pub fn check_target(target: &Budget, phases: &[&str]) -> Result<(), String> {
    let refuse = |why: String| Err(format!("the target `{target}` cannot be used: {why}"));
    let Limit::Absolute(amount) = target.limit else {
        return refuse("it is relative to a baseline, and a search has none".to_owned());
    };
    let (name, place) = split(&target.metric);
    let Some(family) = family_named(name) else {
        return refuse(format!("there is no metric `{name}` to search with; targets are {}", names()));
    };
    match family.place {
        ReadAt::AtMark(_) => {
            return refuse(format!(
                "measuring `{name}` requires querying the JVM, but a search only reads from outside; targets are {}",
                names()
            ));
        }
        ReadAt::InPhase(_) if !place.is_empty() && !phases.contains(&place) => {
            return refuse(format!("no phase is named `{place}`; the phases are {}", phases.join(", ")));
        }
        ReadAt::InTrial(_) | ReadAt::InPhase(_) => {}
    }
    match (name, amount) {
        (RATE, Amount::Share(_)) => Ok(()),
        _ => absolute(amount, family.unit).map(|_| ()).or_else(refuse),
    }
}

/// Whether a trial met its target. `reference` is the trial with ample memory; that trial itself has no reference.
pub fn judge(target: &[Budget], trial: &Trial, reference: Option<&Trial>) -> Judged {
    if trial.outcome != Outcome::Completed {
        return Judged::Ended(trial.why.clone().unwrap_or_else(|| "it did not finish".to_owned()));
    }
    let (mut missed, mut unmeasured) = (Vec::new(), None);
    for budget in target {
        let Limit::Absolute(amount) = budget.limit else { continue };
        let meant = meant(budget, amount, trial, reference);
        if meant.is_empty() {
            unmeasured.get_or_insert(budget.metric.clone());
        }
        for Meant { metric, unit, value } in meant {
            let Some(value) = value else {
                unmeasured.get_or_insert(metric);
                continue;
            };
            let bound = absolute(amount, unit).unwrap_or(f64::NAN);
            if !budget.relation.holds(value, bound) {
                let text = format!("{metric} was {}, but the target is {budget}", shown(unit, value));
                missed.push(Missed { metric, unit, value, bound, text });
            }
        }
    }
    match unmeasured {
        // One missed number is enough, whatever else happened.
        _ if !missed.is_empty() => Judged::Missed(missed),
        Some(metric) => Judged::Unmeasured(format!("`{metric}` was not measured")),
        None => Judged::Held,
    }
}

/// Whether a target applies to this phase. The warm-up counts only for failures, unless the target names it.
pub fn speaks_of(target: &Budget, phase: &PhaseRecord) -> bool {
    match split(&target.metric) {
        (name, "") => !phase.is_warmup() || name == FAILED,
        (_, place) => phase.name == place,
    }
}

fn meant(budget: &Budget, amount: Amount, trial: &Trial, reference: Option<&Trial>) -> Vec<Meant> {
    let (name, place) = split(&budget.metric);
    let Some(family) = family_named(name) else { return Vec::new() };
    match family.place {
        ReadAt::AtMark(_) => Vec::new(),
        ReadAt::InTrial(read) => vec![Meant { metric: name.to_owned(), unit: family.unit, value: read(trial) }],
        ReadAt::InPhase(read) => {
            let asked = |phase: &&PhaseRecord| (phase.works() || !place.is_empty()) && speaks_of(budget, phase);
            let of = |phase: &PhaseRecord| {
                let metric = format!("{name}.{}", phase.name);
                match (name, amount) {
                    (RATE, Amount::Share(_)) => {
                        Meant { metric, unit: Unit::Share, value: share_of_rate(phase, reference) }
                    }
                    _ => Meant { metric, unit: family.unit, value: read(phase) },
                }
            };
            trial.phases.iter().filter(asked).map(of).collect()
        }
    }
}

/// Returns the share of the offered rate or, if nothing was offered, of the rate that the reference achieved in the
/// same phase. The reference achieves 100% of itself.
fn share_of_rate(phase: &PhaseRecord, reference: Option<&Trial>) -> Option<f64> {
    if let Some(share) = phase.share_of_offered() {
        return Some(share);
    }
    let Some(reference) = reference else { return Some(1.0) };
    let same = reference.phases.iter().find(|of| of.name == phase.name).map(|of| of.achieved_per_s);
    same.filter(|rate| *rate > 0.0).map(|rate| phase.achieved_per_s / rate)
}

fn names() -> &'static str {
    "`p50`, `p90`, `p99`, `p999`, `max`, and `mean` (`p99<50ms`), `rate>=98%`, `failed==0`, `gc_share<10%`, and \
     `start_up<5s`"
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes | Unit::BytesPer | Unit::BytesPerRequest | Unit::BytesPerSecond => {
            Bytes(value.max(0.0) as u64).to_string()
        }
        Unit::Milliseconds => format!("{} ms", milliseconds(value)),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Share => format!("{:.2}%", value * 100.0),
        Unit::PerSecond => format!("{value:.0} per second"),
        Unit::Count | Unit::Ratio => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Failures, Model, Quantiles};

    fn phase(name: &str, p99: f64, achieved_per_s: f64, offered_per_s: Option<f64>) -> PhaseRecord {
        let times = Quantiles { p99, ..Quantiles::default() };
        let model = if offered_per_s.is_some() { Model::Open } else { Model::Closed };
        let response_ms = offered_per_s.is_some().then_some(times);
        PhaseRecord {
            name: name.to_owned(),
            model,
            seconds: 10.0,
            requests: 1000,
            ok: 1000,
            achieved_per_s,
            offered_per_s,
            response_ms,
            service_ms: Some(times),
            ..PhaseRecord::default()
        }
    }

    fn trial(phases: Vec<PhaseRecord>) -> Trial {
        Trial { outcome: Outcome::Completed, ready_s: Some(1.5), phases, ..Trial::new("a", 0, 0) }
    }

    fn check(target: &[&str], trial: &Trial, reference: Option<&Trial>, expect: Result<(), &[&str]>) {
        let target: Vec<Budget> = target.iter().map(|text| text.parse().unwrap()).collect();
        match (judge(&target, trial, reference), expect) {
            (Judged::Held, Ok(())) => {}
            (Judged::Missed(missed), Err(pieces)) => {
                assert_eq!(missed.len(), pieces.len(), "{missed:?}");
                for (missed, piece) in missed.iter().zip(pieces) {
                    assert!(missed.text.contains(piece), "{missed:?}");
                }
            }
            (Judged::Ended(why), Err([piece])) => assert!(why.contains(piece), "{why}"),
            (judged, _) => panic!("{judged:?}"),
        }
    }

    #[test]
    fn the_worst_phase_counts_and_the_warm_up_only_for_failures() {
        let warmup = phase("warmup", 900.0, 50.0, None);
        let steady = phase("steady", 20.0, 200.0, Some(200.0));
        let spike = phase("spike", 70.0, 480.0, Some(500.0));
        let of = trial(vec![warmup.clone(), steady, spike]);
        check(&["p99<100ms"], &of, None, Ok(()));
        check(&["p99<50ms"], &of, None, Err(&["p99.spike was 70"]));
        check(&["p99.steady<50ms"], &of, None, Ok(()));
        check(&["rate>=98%", "p99<50ms"], &of, None, Err(&["rate.spike was 96.00%", "p99.spike"]));
        check(&["start_up<1s"], &of, None, Err(&["start_up was 1.50 s"]));
        let failed = Failures { reset: 1, ..Failures::default() };
        let of = trial(vec![PhaseRecord { failed, ..warmup }]);
        check(&["failed==0"], &of, None, Err(&["failed.warmup was 0.10%"]));
    }

    #[test]
    fn a_closed_rate_is_a_share_of_the_reference() {
        let (reference, slow) =
            (trial(vec![phase("steady", 1.0, 1000.0, None)]), trial(vec![phase("steady", 1.0, 890.0, None)]));
        check(&["rate>=90%"], &reference, None, Ok(()));
        check(&["rate>=90%"], &slow, Some(&reference), Err(&["rate.steady was 89.00%"]));
        check(&["rate>=800"], &slow, Some(&reference), Ok(()));
    }

    #[test]
    fn an_early_end_misses_the_target_with_its_reason() {
        let mut of = trial(Vec::new());
        (of.outcome, of.why) = (Outcome::Killed, Some("the server was killed".to_owned()));
        check(&["p99<50ms"], &of, None, Err(&["the server was killed"]));
        of.outcome = Outcome::Completed;
        let target = ["gc_share<10%".parse().unwrap()];
        assert!(matches!(judge(&target, &of, None), Judged::Unmeasured(_)));
        // A missed target counts, even if other metrics were not measured.
        check(&["gc_share<10%", "start_up<1s"], &of, None, Err(&["start_up was 1.50 s"]));
    }

    #[test]
    fn invalid_targets_are_explained() {
        let check = |text: &str, piece: &str| {
            let why = check_target(&text.parse().unwrap(), &["warmup", "steady"]).unwrap_err();
            assert!(why.contains(piece), "{why}");
        };
        check("rss.loaded<=60MiB", "querying the JVM");
        check("p99<=+2%", "baseline");
        check("p99.spike<50ms", "warmup, steady");
        check("p98<50ms", "no metric");
        check("p99<50MiB", "as a time");
        check("failed<5ms", "as a share");
        for text in ["p99<50ms", "rate>=98%", "rate>=100", "failed==0", "gc_share<10%", "start_up<5s", "p99.steady<1s"]
        {
            check_target(&text.parse().unwrap(), &["warmup", "steady"]).unwrap();
        }
    }
}
