//! The soak: a last trial with the recommended limit and heap, under a longer load than the trials that found them. A
//! JVM's own memory and many caches grow for longer than those trials last.

use super::answers::{answers, counted};
use super::cause::is_of_heap;
use super::edge::{self, EdgeStep, Patience};
use super::grid::Grid;
use super::spec::SearchSpec;
use crate::record::{ProbeRecord, ProbeStage, ProbeVerdict, SoakRecord, Trial, to_set};
use crate::units::MIB;

/// After a limit fails or a heap is too small, the next one is this much larger: the smallest working heap has no
/// room for longer-lived objects.
const STEP: f64 = 1.1;
const HEAP_STEP: f64 = 1.25;
/// If this many trials fail, memory grows with the load.
const ANSWERS_MAX: u32 = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Soak {
    /// The next limit, or the one that held.
    pub(super) step: EdgeStep,
    /// The heap that goes with it, in bytes; `None` if the search sets none.
    pub(super) heap: Option<u64>,
}

/// The state of the soak for this line, in bytes, and for the heap with which it was found. The limit grows with the
/// heap, byte for byte.
pub(super) fn standing(spec: &SearchSpec, trials: &[Trial], line: u64, heap: Option<u64>) -> Soak {
    let (limit, heap) = to_set(line, heap, spec.headroom);
    let own = || counted(trials, ProbeStage::Soak);
    let was_small = |probe: &ProbeRecord| was_small(heap, probe);
    let too_small = own().filter(|(_, probe)| was_small(probe)).count() as u32;
    let grown = |heap: u64| ((heap as f64 * HEAP_STEP.powi(too_small as i32) / MIB as f64).ceil() as u64) * MIB;
    let more = |to: Option<u64>| to.zip(heap).map_or(0, |(to, from)| to.saturating_sub(from));
    // A limit that rose only because the heap did says nothing about the limit.
    let value = |trial: &Trial, probe: &ProbeRecord| {
        trial.limit_bytes.filter(|_| !was_small(probe)).map(|limit| limit.saturating_sub(more(probe.heap_bytes)))
    };
    let grid = Grid::by_ratio(limit, limit, spec.limit_max, STEP, MIB);
    let answers_max = ANSWERS_MAX.saturating_sub(too_small);
    let patience = Patience { proofs: 1, answers_max, first_stride: 1, hurried: false };
    let answers = answers(trials, ProbeStage::Soak, value, |_| None);
    let heap = heap.map(grown);
    let more = more(heap);
    let step = match edge::next(&grid, &patience, &answers) {
        EdgeStep::Probe { .. } if answers_max == 0 => EdgeStep::Never { value: limit + more },
        EdgeStep::Probe { value, stage } => EdgeStep::Probe { value: (value + more).min(spec.limit_max), stage },
        EdgeStep::Found { value, held, proof, below } => EdgeStep::Found { value: value + more, held, proof, below },
        EdgeStep::GivenUp { held } => EdgeStep::GivenUp { held: held.map(|value| value + more) },
        EdgeStep::Never { value } => EdgeStep::Never { value: value + more },
    };
    Soak { step, heap }
}

/// Whether a trial failed because this heap, set by the search, was too small.
fn was_small(heap: Option<u64>, probe: &ProbeRecord) -> bool {
    heap.is_some() && is_of_heap(probe)
}

/// The limit to set after a soak; `None` if no limit passed it.
///
/// If a limit failed the soak, the one that passed is only one step larger than the need under the longer load, so the
/// headroom is added to it again.
pub(super) fn limit_to_set(spec: &SearchSpec, soak: &SoakRecord, trials: &[Trial]) -> Option<u64> {
    let limit = soak.limit_bytes?;
    let failed = |(_, probe): (&Trial, &ProbeRecord)| {
        probe.verdict == ProbeVerdict::Fails && !was_small(probe.heap_bytes, probe)
    };
    match counted(trials, ProbeStage::Soak).any(failed) {
        true => Some(to_set(limit, None, spec.headroom).0.min(spec.limit_max).max(limit)),
        false => Some(limit),
    }
}

/// The result of the soak; `None` while it continues.
pub(super) fn record(soak: Option<Soak>, trials: &[Trial]) -> Option<SoakRecord> {
    let limit_bytes = match soak?.step {
        EdgeStep::Probe { .. } => return None,
        EdgeStep::Found { value, .. } => Some(value),
        EdgeStep::GivenUp { held } => held,
        EdgeStep::Never { .. } => None,
    };
    let own = || counted(trials, ProbeStage::Soak);
    let held = own().filter(|(trial, probe)| probe.verdict == ProbeVerdict::Holds && trial.limit_bytes == limit_bytes);
    let failed = || own().filter(|(_, probe)| probe.verdict == ProbeVerdict::Fails);
    Some(SoakRecord {
        limit_bytes,
        heap_bytes: held.last().filter(|_| limit_bytes.is_some()).and_then(|(_, probe)| probe.heap_bytes),
        seconds: own().map(|(trial, _)| trial.measured_s()).fold(0.0, f64::max),
        failed_bytes: failed().filter_map(|(trial, _)| trial.limit_bytes).collect(),
        why: failed().last().map(|(_, probe)| probe.why.clone()).unwrap_or_default(),
    })
}
