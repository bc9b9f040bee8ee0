//! The answers from a stage's trials: values, and whether they held.

use super::cause::is_short;
use super::edge::Answer;
use crate::record::{ProbeRecord, ProbeStage, ProbeVerdict, Trial};

pub(super) fn counted(trials: &[Trial], stage: ProbeStage) -> impl Iterator<Item = (&Trial, &ProbeRecord)> {
    let of = trials.iter().filter_map(|trial| Some((trial, trial.probe.as_ref()?)));
    of.filter(move |(_, probe)| probe.stage == stage && probe.verdict != ProbeVerdict::Discarded)
}

/// The answers from a stage: the value of each trial that counts, and how many steps lower the edge is assumed to be.
pub(super) fn answers(
    trials: &[Trial],
    stage: ProbeStage,
    value: impl Fn(&Trial, &ProbeRecord) -> Option<u64>,
    room: impl Fn(&Trial) -> Option<i32>,
) -> Vec<Answer> {
    let answer = |(trial, probe): (&Trial, &ProbeRecord)| {
        let held = probe.verdict == ProbeVerdict::Holds;
        let (strained, room) = (is_short(probe.cause), room(trial).filter(|_| held));
        Some(Answer { value: value(trial, probe)?, held, strained, room })
    };
    counted(trials, stage).filter_map(answer).collect()
}
