//! The time of a search: what it took, and whether what is left is needed to confirm what held.

use super::spec::SearchSpec;
use crate::record::{ProbeStage, Trial};

/// Whether the time that is left is needed to confirm what held.
pub(super) fn is_hurried(spec: &SearchSpec, trials: &[Trial]) -> bool {
    spec.seconds_max.is_some_and(|most| spent_s(trials) + confirmation_s(spec, trials) > most)
}

/// Trials before the confirmation: with ample memory, of a heap, and one that chooses a limit.
const CHOOSING: u32 = 3;

/// The least seconds that a search takes after its first trial is known, and how they add up.
pub fn least_s(spec: &SearchSpec, first: &Trial) -> (f64, String) {
    let each = length_s(first);
    let seconds = each * f64::from(CHOOSING) + confirmation_s(spec, std::slice::from_ref(first));
    let soak = spec.soak_s.map_or(String::new(), |soak_s| format!(", and the soak {:.0} s", soak_s + each));
    let (proofs, minutes) = (spec.proofs, seconds / 60.0);
    let each = format!("{CHOOSING} trials to choose a limit and {proofs} to confirm it take {each:.0} s each");
    (seconds, format!("{each}{soak}: {minutes:.1} minutes in all"))
}

/// How far limits that fail their confirmation may draw out a search.
const OVERDUE: f64 = 1.5;

/// Whether the time is up by so much that nothing more is tried.
pub(super) fn is_overdue(spec: &SearchSpec, trials: &[Trial]) -> bool {
    spec.seconds_max.is_some_and(|most| spent_s(trials) > OVERDUE * most)
}

/// Seconds that all trials took.
pub(super) fn spent_s(trials: &[Trial]) -> f64 {
    trials.iter().map(length_s).sum()
}

/// Seconds that the confirmation of a limit takes with the soak, by the longest trial without it.
fn confirmation_s(spec: &SearchSpec, trials: &[Trial]) -> f64 {
    let is_soak = |trial: &&Trial| trial.probe.as_ref().is_some_and(|probe| probe.stage == ProbeStage::Soak);
    let each = trials.iter().filter(|trial| !is_soak(trial)).map(length_s).fold(0.0, f64::max);
    each * f64::from(spec.proofs) + spec.soak_s.map_or(0.0, |soak_s| soak_s + each)
}

/// Seconds of the whole trial; in archives that lack it, from the command to the end of the last phase.
fn length_s(trial: &Trial) -> f64 {
    if let Some(seconds) = trial.probe.as_ref().map(|probe| probe.seconds).filter(|seconds| *seconds > 0.0) {
        return seconds;
    }
    let ends = trial.phases.iter().map(|phase| phase.at_s + phase.seconds);
    ends.chain(trial.ready_s).fold(0.0, f64::max)
}
