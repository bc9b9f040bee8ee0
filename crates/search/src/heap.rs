//! The search for the heap: the smallest one that meets the target under an ample limit, and its direct memory. If a
//! heap fails before the subject is ready, startups without load find the smallest heap with which the subject starts.
//! Only then is load sent again.

use super::answers::{answers, counted};
use super::cause::{collects, is_short};
use super::edge::{self, Answer, EdgeStep, Patience};
use super::grid::Grid;
use super::needs::Needs;
use super::pace::is_hurried;
use super::spec::SearchSpec;
use crate::doubt::{Doubt, MemoryPool};
use crate::record::{FailureCause, ProbeRecord, ProbeStage, ProbeVerdict, Trial};
use crate::units::MIB;

/// The smallest heap that HotSpot accepts.
const HEAP_MIN: u64 = 2 * MIB;
/// The heap needs no confirmation: the limit is confirmed with this heap.
const HEAP_PROOFS: u32 = 1;
/// A heap search that needs more trials has no edge.
const HEAP_ANSWERS_MAX: u32 = 14;
/// The live set is measured, so the smallest heap is close to it.
const HEAP_STRIDE: i32 = 1;
/// A subject that does not start even with slightly more heap holds something else during startup. Startups are also
/// quick.
const START_STRIDE: i32 = 4;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HeapStanding {
    pub(super) step: EdgeStep,
    /// Whether the next trial is a startup without load.
    pub(super) alone: bool,
    /// The direct memory that goes with the heap.
    pub(super) direct: Option<u64>,
    /// The distance between heaps.
    pub(super) unit: u64,
}

/// The state of the heap search after these trials.
pub(super) fn heap_standing(spec: &SearchSpec, trials: &[Trial], needs: &Needs) -> HeapStanding {
    let unit = heap_unit(spec, needs);
    let direct = direct(spec, trials, needs);
    let standing = |step, alone| HeapStanding { step, alone, direct, unit };
    let grid = Grid::by_amount(needs.heap_guess(), HEAP_MIN, spec.limit_max, unit);
    let hurried = is_hurried(spec, trials);
    let patience = Patience { proofs: HEAP_PROOFS, answers_max: HEAP_ANSWERS_MAX, first_stride: HEAP_STRIDE, hurried };
    let of_direct = |_: &Trial, probe: &ProbeRecord| probe.heap_bytes.filter(|_| probe.direct_bytes == direct);
    let loaded = answers(trials, ProbeStage::Heap, of_direct, |_| None);
    if !spec.starts_alone || !counted(trials, ProbeStage::Heap).any(|(trial, _)| trial.ready_s.is_none()) {
        return standing(edge::next(&grid, &patience, &loaded), false);
    }
    let patience = Patience { first_stride: START_STRIDE, ..patience };
    match edge::next(&grid, &patience, &starts(trials)) {
        // No smaller heap starts at all, so load is sent only to this one and larger ones.
        EdgeStep::Found { value, .. } => {
            let grid = Grid::by_amount(value, value, spec.limit_max, unit);
            let at_least: Vec<Answer> = loaded.into_iter().filter(|answer| answer.value >= value).collect();
            standing(edge::next(&grid, &patience, &at_least), false)
        }
        step => standing(step, true),
    }
}

/// The heaps with which the subject became ready, with and without load.
fn starts(trials: &[Trial]) -> Vec<Answer> {
    let answer = |trial: &Trial| {
        let probe = trial.probe.as_ref().filter(|probe| probe.verdict != ProbeVerdict::Discarded)?;
        let held = match probe.stage {
            ProbeStage::HeapStart => probe.verdict == ProbeVerdict::Holds,
            ProbeStage::Heap => trial.ready_s.is_some(),
            _ => return None,
        };
        Some(Answer { value: probe.heap_bytes?, held, strained: !held && is_short(probe.cause), room: None })
    };
    trials.iter().filter_map(answer).collect()
}

/// A heap step is about as large as a limit step: anything finer would be lost in it.
fn heap_unit(spec: &SearchSpec, needs: &Needs) -> u64 {
    let limit = needs.limit_guess(Some(needs.heap_guess())) as f64;
    ((limit * spec.step / MIB as f64).floor() as u64).max(1) * MIB
}

/// The direct memory to give with the heap; `None` leaves it to the JVM. By default, HotSpot allows as much direct
/// memory as heap, so a small heap also reduces direct memory. If a collection leaves more direct memory than that,
/// direct memory gets its own ceiling from the first heap on, starting with the smallest ceiling. The ceiling rises
/// when a trial needs more. A ceiling given by the configuration is kept.
fn direct(spec: &SearchSpec, trials: &[Trial], needs: &Needs) -> Option<u64> {
    let ceilings = needs.direct_ceilings();
    let lacks = |least: &u64| !spec.direct_given && *least > needs.heap_guess();
    let mut given = ceilings.first().copied().filter(lacks);
    let of_heap = |probe: &ProbeRecord| matches!(probe.stage, ProbeStage::Heap | ProbeStage::Limit);
    let counts = |probe: &ProbeRecord| of_heap(probe) && probe.verdict != ProbeVerdict::Discarded;
    for trial in trials {
        let Some(probe) = trial.probe.as_ref().filter(|probe| counts(probe)) else { continue };
        given = probe.direct_bytes;
        if !spec.direct_given && wants_direct(trial, probe, ceilings.last().copied()) {
            let was = given.or(probe.heap_bytes).unwrap_or(0);
            let all = [needs.direct_max()];
            given = ceilings.iter().chain(&all).copied().find(|ceiling| *ceiling > was).or(given);
        }
    }
    given
}

/// Whether a trial failed for lack of direct memory. Either the JVM reported it, or a ceiling below the largest was set
/// and the JVM collected so much that the ceiling may be the cause.
fn wants_direct(trial: &Trial, probe: &ProbeRecord, most: Option<u64>) -> bool {
    let ran_out = ran_out_of_direct(trial);
    let may_ask = probe.stage == ProbeStage::Heap && probe.direct_bytes.is_some() && probe.direct_bytes < most;
    let of_heap = probe.cause == Some(FailureCause::OutOfMemoryError) && !ran_out;
    probe.verdict == ProbeVerdict::Fails && !of_heap && (ran_out || may_ask && collects(trial))
}

pub(super) fn ran_out_of_direct(trial: &Trial) -> bool {
    let is_direct = |doubt: &Doubt| matches!(doubt, Doubt::OutOfMemoryError { pool: MemoryPool::DirectMemory, .. });
    trial.doubts.iter().any(|of| is_direct(&of.doubt))
}
