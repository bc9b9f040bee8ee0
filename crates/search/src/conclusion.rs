//! Draws the conclusion from all trials of a search.

use super::answers::counted;
use super::course::{SearchState, rate_of, rate_step, standing};
use super::edge::EdgeStep;
use super::pace::{is_overdue, least_s, spent_s};
use super::soak;
use super::spec::SearchSpec;
use crate::numbers::median;
use crate::record::{
    FindOutcome, FindRecord, KneeRecord, LineRecord, ProbeRecord, ProbeStage, ProbeVerdict, ProofRecord, RateRecord,
    SubjectWork, Trial, Unknowns, to_set,
};
use crate::scenario::Find;
use crate::units::{Bytes, several};
use statrs::distribution::{Beta, ContinuousCDF};

/// The confidence of a proof: the probability of at least one failed start if starts fail more often than stated.
pub const PROOF_CONFIDENCE: f64 = 0.95;
/// If CPU is within this factor of its value with ample memory, more memory does not improve it.
const KNEE_RATIO: f64 = 1.05;
/// The line itself is the knee if its extra cost is at most this.
const KNEE_GAIN_MIN: f64 = 1.10;

/// The result of a search for the highest rate.
fn rate(spec: &SearchSpec, trials: &[Trial]) -> Option<RateRecord> {
    let EdgeStep::Found { value, held, proof, below } = rate_step(spec, trials)? else { return None };
    let above_per_s = below.map(rate_of);
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < spec.step / 2.0;
    let broken = counted(trials, ProbeStage::Rate).filter(|(_, probe)| {
        probe.verdict == ProbeVerdict::Fails
            && above_per_s.zip(probe.rate_per_s).is_some_and(|(above, asked)| near(above, asked))
    });
    let cause_text = broken.last().map(|(_, probe)| probe.why.clone()).unwrap_or_default();
    Some(RateRecord {
        rate_per_s: rate_of(value),
        held,
        proof: Some(proof),
        failing_share_max: Some(failing_share_max(held, proof)),
        above_per_s,
        cause_text,
    })
}

/// The conclusion from these trials. `others` and `options` remain empty, because trials alone do not determine them.
pub fn conclude(spec: &SearchSpec, find: &Find, trials: &[Trial]) -> FindRecord {
    let standing = standing(spec, trials);
    let line = line(standing.limit_step, ProbeStage::Limit, &standing, trials);
    let warm = line.as_ref().and_then(|_| self::line(standing.warm_step, ProbeStage::Warm, &standing, trials));
    // A user who names a limit to confirm has already chosen its headroom.
    let headroom = if spec.prove.is_some() { 0.0 } else { find.headroom };
    let soak = soak::record(standing.soak, trials);
    let outcome = match &soak {
        Some(soak) if soak.limit_bytes.is_none() => FindOutcome::Grows,
        _ => outcome(spec, &standing, trials),
    };
    let set = match &soak {
        // Nothing held under the longer load: there is nothing to set.
        Some(soak) => soak::limit_to_set(spec, soak, trials).map(|limit| (limit, soak.heap_bytes)),
        None => line.as_ref().map(|line| to_set(line.limit_bytes, line.heap_bytes, headroom)),
    };
    let configuration = trials.first().map(|trial| trial.configuration.clone()).unwrap_or_default();
    FindRecord {
        text: text(spec, outcome, line.as_ref(), &standing, trials),
        knee: line.as_ref().and_then(|line| knee(line, trials)),
        configuration,
        target: find.target.iter().map(ToString::to_string).collect(),
        unknowns: spec.unknowns,
        step: spec.step,
        proofs: spec.proofs,
        outcome,
        reference: standing.reference.map(|trial| trial.index),
        line,
        warm,
        soak,
        headroom,
        limit_bytes: set.map(|(limit, _)| limit),
        heap_bytes: set.and_then(|(_, heap)| heap),
        options: Vec::new(),
        share_options: Vec::new(),
        others: Vec::new(),
        prove_bytes: spec.prove,
        rate: rate(spec, trials),
        trials: trials.len() as u32,
        seconds: spent_s(trials),
        cut_short: is_cut_short(spec, trials),
    }
}

/// The share of starts that may still fail, with [`PROOF_CONFIDENCE`]: the exact bound of Clopper and Pearson (1934).
/// Every failure counts, but a trial that held counts only if it did not choose the value. If there are several
/// candidates, the one found passed after the others failed. So the k-th candidate may use only 1/2^k of the allowed
/// error, and all of them together stay within it.
pub fn failing_share_max(held: u32, proof: ProofRecord) -> f64 {
    let ProofRecord { tried, choosing, candidates } = proof;
    let (failed, holding) = (tried.saturating_sub(held), held.saturating_sub(choosing));
    let parts = if choosing == 0 { 1.0 } else { 2_f64.powi(candidates.clamp(1, 64) as i32) };
    let wrong = (1.0 - PROOF_CONFIDENCE) / parts;
    match Beta::new(f64::from(failed) + 1.0, f64::from(holding)) {
        _ if failed == 0 && holding > 0 => 1.0 - wrong.powf(1.0 / f64::from(holding)),
        Ok(beta) => beta.inverse_cdf(1.0 - wrong).min(1.0),
        // No trial that held is evidence.
        Err(_) => 1.0,
    }
}

/// `5 of 5 trials in a row`, `5 of 6 trials`.
fn so_often(held: u32, tried: u32) -> String {
    let row = if held == tried { " in a row" } else { "" };
    format!("{held} of {}{row}", several(u64::from(tried), "trial"))
}

/// Whether the search would try smaller values with more time.
fn is_cut_short(spec: &SearchSpec, trials: &[Trial]) -> bool {
    let steps = |spec: &SearchSpec| {
        let standing = standing(spec, trials);
        (standing.heap_step, standing.limit_step)
    };
    spec.seconds_max.is_some() && steps(spec) != steps(&SearchSpec { seconds_max: None, ..*spec })
}

fn outcome(spec: &SearchSpec, standing: &SearchState<'_>, trials: &[Trial]) -> FindOutcome {
    if spec.unknowns == Unknowns::Rate {
        return match rate_step(spec, trials) {
            Some(EdgeStep::Found { .. }) => FindOutcome::Found,
            Some(EdgeStep::Never { .. }) => FindOutcome::Never,
            _ => FindOutcome::GivenUp,
        };
    }
    if standing.reference.is_none() {
        let asked = counted(trials, ProbeStage::Reference).next().is_some();
        return if asked { FindOutcome::NotHeld } else { FindOutcome::GivenUp };
    }
    let steps = [standing.heap_step, standing.limit_step];
    match standing.limit_step {
        Some(EdgeStep::Found { below: None, .. }) => FindOutcome::AtLowerBound,
        Some(EdgeStep::Found { .. }) => FindOutcome::Found,
        _ if steps.iter().flatten().any(|step| matches!(step, EdgeStep::Never { .. })) => FindOutcome::Never,
        _ => FindOutcome::GivenUp,
    }
}

fn line(step: Option<EdgeStep>, stage: ProbeStage, standing: &SearchState<'_>, trials: &[Trial]) -> Option<LineRecord> {
    let EdgeStep::Found { value, held, proof, below } = step? else { return None };
    let own: Vec<(&Trial, &ProbeRecord)> =
        counted(trials, stage).filter(|(_, probe)| probe.gave(standing.heap, standing.direct)).collect();
    let failed = |(_, probe): &&(&Trial, &ProbeRecord)| probe.verdict == ProbeVerdict::Fails;
    let at = |(trial, _): &&(&Trial, &ProbeRecord)| trial.limit_bytes == below;
    let broken = own.iter().filter(failed).rev().find(at).map(|(_, probe)| *probe);
    let limits = |verdict| {
        let of = own.iter().filter(move |(_, probe)| probe.verdict == verdict);
        of.filter_map(|(trial, _)| trial.limit_bytes)
    };
    let (lowest_held, highest_failed) = (limits(ProbeVerdict::Holds).min(), limits(ProbeVerdict::Fails).max());
    let edge_width = match (lowest_held, highest_failed) {
        (Some(held), Some(failed)) if failed >= held => failed as f64 / held as f64 - 1.0,
        _ => 0.0,
    };
    Some(LineRecord {
        limit_bytes: value,
        heap_bytes: standing.heap,
        direct_bytes: standing.direct,
        held,
        proof: Some(proof),
        failing_share_max: failing_share_max(held, proof),
        below_bytes: below.filter(|_| broken.is_some()),
        cause: broken.and_then(|probe| probe.cause),
        cause_text: broken.map(|probe| probe.why.clone()).unwrap_or_default(),
        edge_width,
    })
}

/// The heap beyond which more heap saves no CPU: the smallest one whose CPU per request is close to the reference's.
/// The limit grows with it, byte for byte.
fn knee(line: &LineRecord, trials: &[Trial]) -> Option<KneeRecord> {
    let heap = line.heap_bytes?;
    let held = |stage| counted(trials, stage).filter(|(_, probe)| probe.verdict == ProbeVerdict::Holds);
    let best = held(ProbeStage::Reference).filter_map(|(trial, _)| cpu_per_request(trial)).reduce(f64::min)?;
    let own: Vec<f64> = held(ProbeStage::Limit).filter_map(|(trial, _)| cpu_per_request(trial)).collect();
    let at_line = median(&own)?;
    if at_line / best < KNEE_GAIN_MIN {
        return None;
    }
    let tried = held(ProbeStage::Heap).filter_map(|(trial, probe)| Some((probe.heap_bytes?, cpu_per_request(trial)?)));
    let (heap_bytes, cpu) =
        tried.filter(|(tried, cpu)| *tried > heap && *cpu <= best * KNEE_RATIO).min_by_key(|(tried, _)| *tried)?;
    Some(KneeRecord { heap_bytes, limit_bytes: line.limit_bytes + heap_bytes - heap, cpu_ratio: cpu / at_line })
}

/// The subject's CPU seconds over all measured phases, per correct response.
pub fn cpu_per_request(trial: &Trial) -> Option<f64> {
    per_request(trial, |work| work.cpu_s)
}

/// The same without the JIT's part, if known in all of these phases.
pub fn cpu_without_jit_per_request(trial: &Trial) -> Option<f64> {
    per_request(trial, |work| work.cpu_by_purpose.map(|of| of.without_jit_s()))
}

/// The collector's part of the CPU per request, if known in all of these phases.
pub fn gc_cpu_per_request(trial: &Trial) -> Option<f64> {
    per_request(trial, |work| work.cpu_by_purpose.map(|of| of.gc_s))
}

fn per_request(trial: &Trial, read: fn(&SubjectWork) -> Option<f64>) -> Option<f64> {
    let phases = trial.measured_phases().filter(|phase| phase.ok > 0);
    let (cpu_s, ok) = phases.fold((Some(0.0), 0), |(cpu_s, ok), phase| {
        (cpu_s.zip(read(&phase.subject)).map(|(sum, own)| sum + own), ok + phase.ok)
    });
    cpu_s.filter(|_| ok > 0).map(|cpu_s| cpu_s / ok as f64)
}

fn text(
    spec: &SearchSpec,
    outcome: FindOutcome,
    line: Option<&LineRecord>,
    standing: &SearchState<'_>,
    trials: &[Trial],
) -> String {
    if let Some(rate) = rate(spec, trials) {
        let limit = Bytes(spec.limit_max);
        let held = format!("{} passed at {:.0}/s with {limit}", so_often(rate.held, rate.tried()), rate.rate_per_s);
        return rate
            .above_per_s
            .map_or(held.clone(), |above| format!("{held}; at {above:.0}/s, the target was missed"));
    }
    let why = |stage| counted(trials, stage).last().map(|(_, probe)| probe.why.join("; ")).unwrap_or_default();
    match (outcome, line) {
        (FindOutcome::Found | FindOutcome::AtLowerBound | FindOutcome::Grows, Some(line)) => {
            let heap = line.heap_bytes.map_or_else(String::new, |heap| format!(" with a heap of {}", Bytes(heap)));
            let held = format!("{} passed at {}{heap}", so_often(line.held, line.tried()), Bytes(line.limit_bytes));
            match line.below_bytes {
                Some(below) => format!("{held}; at {}, the target was missed", Bytes(below)),
                None if spec.prove.is_some() => held,
                None => format!("{held}, the smallest allowed limit"),
            }
        }
        (FindOutcome::NotHeld, _) => {
            format!("the target is missed even with ample memory: {}", why(ProbeStage::Reference))
        }
        (FindOutcome::Never, _) if spec.prove.is_some() => {
            let limit = Bytes(spec.prove.unwrap_or_default());
            format!("the target is missed at {limit}: {}", why(ProbeStage::Limit))
        }
        (FindOutcome::Never, _) => {
            let what = if matches!(standing.heap_step, Some(EdgeStep::Never { .. })) { "heap" } else { "limit" };
            format!("the target was met with ample memory, but not at any {what} tried")
        }
        _ => format!("no load line after {}: {}", several(trials.len() as u64, "trial"), unfinished(spec, trials)),
    }
}

/// Why a search ended without a result, and how to continue it.
fn unfinished(spec: &SearchSpec, trials: &[Trial]) -> &'static str {
    let is_too_short = |first: &Trial| spec.seconds_max.is_some_and(|most| least_s(spec, first).0 > most);
    match trials {
        trials if trials.len() as u32 >= spec.trials_max => {
            "`--trials-max` was reached. Continue with `--resume` and a larger `--trials-max`"
        }
        [first] if is_too_short(first) => {
            "`--minutes` is too short for a result. Continue with `--resume` and more minutes"
        }
        trials if is_overdue(spec, trials) => {
            "the time limit was reached. Continue with `--resume` and more \
            `--minutes`"
        }
        _ => "the search was interrupted. Continue with `--resume`",
    }
}

#[cfg(test)]
#[path = "conclusion_tests.rs"]
mod tests;
