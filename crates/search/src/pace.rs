//! The time of a search: how much is used, and whether the rest is needed for the confirmation.

use super::spec::SearchSpec;
use crate::error::{Error, Result};
use crate::record::{ProbeStage, Trial};
use crate::scenario::{PhaseKind, Scenario, WARMUP};

/// Whether the remaining time is needed to confirm the value that held.
pub(super) fn is_hurried(spec: &SearchSpec, trials: &[Trial]) -> bool {
    spec.seconds_max.is_some_and(|most| spent_s(trials) + confirmation_s(spec, trials) > most)
}

/// Trials before the confirmation: one with ample memory, one for a heap, and one that selects a limit.
const CHOOSING: u32 = 3;

/// The minimum seconds of a search after its first trial, and how they add up.
pub fn least_s(spec: &SearchSpec, first: &Trial) -> (f64, String) {
    let each = length_s(first);
    let seconds = each * f64::from(CHOOSING) + confirmation_s(spec, std::slice::from_ref(first));
    let soak = spec.soak_s.map_or(String::new(), |soak_s| format!(", and the soak takes {:.0} s", soak_s + each));
    let (proofs, minutes) = (spec.proofs, seconds / 60.0);
    let each = format!("{CHOOSING} trials to choose a limit and {proofs} to confirm it take {each:.0} s each");
    (seconds, format!("{each}{soak}: {minutes:.1} minutes in total"))
}

/// Rejects a time that is too short for the planned load alone. The warm-up may end early, so it does not count.
///
/// # Errors
/// `Request`, with the smallest time that might suffice.
pub(super) fn check_minutes(scenario: &Scenario) -> Result<()> {
    let find = &scenario.find;
    let Some(minutes) = find.minutes.filter(|_| find.prove.is_none() && !find.max_rate) else { return Ok(()) };
    let measured = scenario.load.iter().filter(|phase| phase.name != WARMUP).filter_map(|phase| match &phase.kind {
        PhaseKind::Work(work) => work.schedule.seconds(),
        PhaseKind::Idle(_) | PhaseKind::Driver(_) | PhaseKind::Own(_) => None,
    });
    let (each, soak) = (measured.sum::<f64>(), find.soak.as_s());
    let trials = CHOOSING + find.proofs;
    let least = (each * f64::from(trials) + soak) / 60.0;
    if least <= minutes {
        return Ok(());
    }
    let soak = if soak > 0.0 { format!(" and a soak of {soak:.0} s") } else { String::new() };
    Err(Error::request(format!(
        "`--minutes {minutes}` is too short: a search needs at least {trials} trials of {each:.0} s{soak}"
    ))
    .hint(format!("use at least `--minutes {:.0}`, or shorten the load with `--duration`", least.ceil())))
}

/// The factor by which a search may take longer because limits fail their confirmation.
const OVERDUE: f64 = 1.5;

/// Whether so much extra time has passed that nothing more is tried.
pub(super) fn is_overdue(spec: &SearchSpec, trials: &[Trial]) -> bool {
    spec.seconds_max.is_some_and(|most| spent_s(trials) > OVERDUE * most)
}

pub(super) fn spent_s(trials: &[Trial]) -> f64 {
    trials.iter().map(length_s).sum()
}

/// Seconds for confirming a limit, including the soak, judging by the longest trial without it.
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
