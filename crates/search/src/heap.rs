//! The part of a search that is about the heap: the smallest one with which the target holds where the limit is no
//! concern, and how much direct memory goes with it. A heap that fails before the subject is ready is followed by
//! starts without load, until the smallest is known that it starts with; only then the load is sent again.

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

/// The smallest heap that HotSpot takes.
const HEAP_MIN: u64 = 2 * MIB;
/// A heap is only there to be searched with: the limit is what gets proved, with this heap.
const HEAP_PROOFS: u32 = 1;
/// A search of the heap that needs more trials has no edge.
const HEAP_ANSWERS_MAX: u32 = 14;
/// The live set is measured, so the smallest heap lies next to it.
const HEAP_STRIDE: i32 = 1;
/// A subject that does not start with little more than that holds something else at its start, and starts are quick.
const START_STRIDE: i32 = 4;

/// How far the search for the heap has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HeapStanding {
    /// The next step, or the result.
    pub(super) step: EdgeStep,
    /// Whether what comes next is a start without load.
    pub(super) alone: bool,
    /// The direct memory that goes with the heap.
    pub(super) direct: Option<u64>,
    /// How far heaps lie apart.
    pub(super) unit: u64,
}

/// The state of the search for the heap after these trials.
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
        // No heap below starts at all: the load is sent to it and to larger ones.
        EdgeStep::Found { value, .. } => {
            let grid = Grid::by_amount(value, value, spec.limit_max, unit);
            let at_least: Vec<Answer> = loaded.into_iter().filter(|answer| answer.value >= value).collect();
            standing(edge::next(&grid, &patience, &at_least), false)
        }
        step => standing(step, true),
    }
}

/// With which heaps the subject became ready, with load and without.
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

/// A step of the heap is about as large as one of the limit: finer would be lost in it.
fn heap_unit(spec: &SearchSpec, needs: &Needs) -> u64 {
    let limit = needs.limit_guess(Some(needs.heap_guess())) as f64;
    ((limit * spec.step / MIB as f64).floor() as u64).max(1) * MIB
}

/// The direct memory to give with the heap; `None` leaves it to the JVM. By default HotSpot allows as much direct
/// memory as heap, so a small heap takes away direct memory, too. If a collection leaves more direct memory than that,
/// direct memory gets its own ceiling from the first heap on, the smallest first. The ceiling rises when a trial needs
/// it. A ceiling that the configuration gives stays as it is.
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

/// Whether a trial failed for want of direct memory: the JVM said so, or under a ceiling below the largest it collected
/// so much that the ceiling may have asked for it.
fn wants_direct(trial: &Trial, probe: &ProbeRecord, most: Option<u64>) -> bool {
    let ran_out = ran_out_of_direct(trial);
    let may_ask = probe.stage == ProbeStage::Heap && probe.direct_bytes.is_some() && probe.direct_bytes < most;
    let of_heap = probe.cause == Some(FailureCause::OutOfMemoryError) && !ran_out;
    probe.verdict == ProbeVerdict::Fails && !of_heap && (ran_out || may_ask && collects(trial))
}

/// Whether the JVM said that direct memory ran out.
pub(super) fn ran_out_of_direct(trial: &Trial) -> bool {
    let is_direct = |doubt: &Doubt| matches!(doubt, Doubt::OutOfMemoryError { pool: MemoryPool::DirectMemory, .. });
    trial.doubts.iter().any(|of| is_direct(&of.doubt))
}
