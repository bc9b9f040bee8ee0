//! The course of a search. It begins with one trial with ample memory. Then come the smallest heap, the smallest limit
//! with that heap and its confirmation, the limit on a host that already has the file pages in memory, and a longer
//! load with the recommended settings. The trials so far determine the next step.

use super::answers::{answers, counted};
use super::cause::{is_of_heap, room};
use super::edge::{self, EdgeStep, Patience, Stage};
use super::grid::Grid;
use super::heap::{heap_standing, ran_out_of_direct};
use super::needs::Needs;
use super::pace::{is_hurried, is_overdue};
use super::ruling::Ruling;
use super::soak::{self, Soak};
use super::spec::SearchSpec;
use crate::record::{Pages, ProbeRecord, ProbeStage, ProbeVerdict, Trial, Unknowns};
use crate::units::MIB;

/// Below this, not even an idle JVM starts.
const LIMIT_MIN: u64 = 16 * MIB;
/// The warm line is secondary: it must hold this often, or as often as the cold one if that is less.
const WARM_PROOFS: u32 = 2;
/// If a trial with the same heap supports the guess, the guess is a step or two from the edge; any other guess is
/// further away.
const SHOWN_STRIDE: i32 = 1;
const LIMIT_STRIDE: i32 = 2;

/// The value searched for is the time between two requests: as with a limit, smaller is harder.
const RATE_SCALE: f64 = 1e12;
/// Rates above this multiple of the given rate, or below this fraction of it, are not tried.
const RATE_FACTOR: f64 = 1000.0;

/// A trial to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt {
    /// The part of the search that it belongs to.
    pub stage: ProbeStage,
    /// The purpose of its result; `None` for the first trial.
    pub purpose: Option<Stage>,
    /// The maximum heap to give, in bytes; `None` if it is fixed or left to the JVM.
    pub heap: Option<u64>,
    /// The direct memory to give with the heap, in bytes; `None` if the JVM derives it from the heap.
    pub direct: Option<u64>,
    /// The limit, in bytes.
    pub limit: u64,
    /// Which cgroup is charged for file pages.
    pub pages: Pages,
    /// The rate of the measured phase, per second; `None` for the planned rate.
    pub rate_per_s: Option<f64>,
}

impl Attempt {
    /// The first trial of a part of the search: at this limit, with its own file pages, and no other settings.
    pub(super) fn first(stage: ProbeStage, limit: u64) -> Self {
        Self { stage, purpose: None, heap: None, direct: None, limit, pages: Pages::Cold, rate_per_s: None }
    }

    /// The record of its trial, with this ruling; omits data about the machine.
    pub fn ruled(&self, ruling: Ruling) -> ProbeRecord {
        let Ruling { verdict, why, missed, cause } = ruling;
        ProbeRecord {
            stage: self.stage,
            heap_bytes: self.heap,
            direct_bytes: self.direct,
            rate_per_s: self.rate_per_s,
            pages: self.pages,
            verdict,
            why,
            missed,
            cause,
            classes: None,
            read_ahead_bytes: None,
            seconds: 0.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SearchState<'a> {
    /// The trial with ample memory.
    pub(super) reference: Option<&'a Trial>,
    /// The heap that goes with the limit.
    pub(super) heap: Option<u64>,
    /// The direct memory that goes with the heap.
    pub(super) direct: Option<u64>,
    /// The step of each part of the search; `None` if it has not begun.
    pub(super) heap_step: Option<EdgeStep>,
    /// Whether the next heap trial is a startup without load.
    pub(super) alone: bool,
    pub(super) limit_step: Option<EdgeStep>,
    pub(super) warm_step: Option<EdgeStep>,
    pub(super) soak: Option<Soak>,
}

/// The next trial after these, in the order in which they ran; `None` if the search is complete.
pub fn next(spec: &SearchSpec, trials: &[Trial]) -> Option<Attempt> {
    if trials.len() as u32 >= spec.trials_max || is_overdue(spec, trials) {
        return None;
    }
    if spec.unknowns == Unknowns::Rate {
        return next_rate(spec, trials);
    }
    let standing = standing(spec, trials);
    let attempt = |stage, step: Option<EdgeStep>, pages| {
        let EdgeStep::Probe { value, stage: purpose } = step? else { return None };
        let (heap, limit) = match stage {
            ProbeStage::Heap | ProbeStage::HeapStart => (Some(value), spec.limit_max),
            ProbeStage::Soak => (standing.soak.and_then(|soak| soak.heap), value),
            _ => (standing.heap, value),
        };
        let (purpose, direct) = (Some(purpose), standing.direct);
        Some(Attempt { purpose, heap, direct, pages, ..Attempt::first(stage, limit) })
    };
    if standing.reference.is_none() {
        let asked = counted(trials, ProbeStage::Reference).next().is_some();
        return (!asked).then(|| Attempt::first(ProbeStage::Reference, spec.limit_max));
    }
    let (of_heap, pages) =
        if standing.alone { (ProbeStage::HeapStart, Pages::Warm) } else { (ProbeStage::Heap, Pages::Cold) };
    attempt(of_heap, standing.heap_step, pages)
        .or_else(|| attempt(ProbeStage::Limit, standing.limit_step, Pages::Cold))
        .or_else(|| attempt(ProbeStage::Warm, standing.warm_step, Pages::Warm))
        .or_else(|| attempt(ProbeStage::Soak, standing.soak.map(|soak| soak.step), Pages::Cold))
}

fn next_rate(spec: &SearchSpec, trials: &[Trial]) -> Option<Attempt> {
    let EdgeStep::Probe { value, stage } = rate_step(spec, trials)? else { return None };
    let (purpose, rate_per_s) = (Some(stage), Some(RATE_SCALE / value as f64));
    Some(Attempt { purpose, rate_per_s, ..Attempt::first(ProbeStage::Rate, spec.limit_max) })
}

/// The step of the search for a rate; its values are times between requests.
pub(super) fn rate_step(spec: &SearchSpec, trials: &[Trial]) -> Option<EdgeStep> {
    let between = |rate: f64| (RATE_SCALE / rate.max(1e-6)) as u64;
    let start = spec.rate_per_s?;
    let (low, high) = (between(start * RATE_FACTOR), between(start / RATE_FACTOR));
    let grid = Grid::by_ratio(between(start), low, high, 1.0 + spec.step, 1);
    let patience = patience(spec, spec.proofs);
    let answers = answers(trials, ProbeStage::Rate, |_, probe| probe.rate_per_s.map(between), |_| None);
    Some(edge::next(&grid, &patience, &answers))
}

/// The rate represented by a value of [`rate_step`], per second.
pub(super) fn rate_of(value: u64) -> f64 {
    RATE_SCALE / value.max(1) as f64
}

pub(super) fn standing<'a>(spec: &SearchSpec, trials: &'a [Trial]) -> SearchState<'a> {
    let reference = counted(trials, ProbeStage::Reference).find(|(_, probe)| probe.verdict == ProbeVerdict::Holds);
    let Some((reference, needs)) = reference.and_then(|(trial, _)| Some((trial, Needs::of(trial)?))) else {
        return SearchState::default();
    };
    let mut standing = SearchState { reference: Some(reference), ..SearchState::default() };
    if spec.unknowns == Unknowns::HeapAndLimit {
        let of_heap = heap_standing(spec, trials, &needs);
        (standing.heap_step, standing.alone, standing.direct) = (Some(of_heap.step), of_heap.alone, of_heap.direct);
        let EdgeStep::Found { value, .. } = of_heap.step else { return standing };
        standing.heap = Some(value + of_heap.unit * too_small(trials, of_heap.direct));
    }
    let (heap, direct) = (standing.heap, standing.direct);
    let of_heap = |trial: &Trial, probe: &ProbeRecord| trial.limit_bytes.filter(|_| probe.gave(heap, direct));
    let own = counted(trials, ProbeStage::Heap)
        .filter(|(_, probe)| probe.verdict == ProbeVerdict::Holds && probe.gave(heap, direct));
    let shown = own.filter_map(|(trial, _)| Needs::of(trial)).last().map(|own| own.with_files_of(&needs));
    let asked = trials.iter().find_map(|trial| {
        let of = trial.probe.as_ref().filter(|probe| probe.stage == ProbeStage::Limit);
        of_heap(trial, of?)
    });
    let grain = grain(spec, reference);
    let grid = limit_grid(spec, &limit_guesses(spec, &needs, heap, shown), asked, grain);
    let first_stride = if shown.is_some() { SHOWN_STRIDE } else { LIMIT_STRIDE };
    let patience = |proofs| Patience { hurried: is_hurried(spec, trials), ..patience(spec, proofs) };
    let of_limit = Patience { first_stride, ..patience(spec.proofs) };
    let of_limit_room = |trial: &Trial| room(trial, reference, needs.file, spec.step);
    let step = edge::next(&grid, &of_limit, &answers(trials, ProbeStage::Limit, of_heap, of_limit_room));
    standing.limit_step = Some(step);
    let EdgeStep::Found { value, .. } = step else { return standing };
    if spec.warm && spec.prove.is_none() {
        let grid = warm_grid(spec, trials, value, heap, grain);
        let patience = patience(spec.proofs.min(WARM_PROOFS));
        standing.warm_step = Some(edge::next(&grid, &patience, &answers(trials, ProbeStage::Warm, of_heap, |_| None)));
    }
    standing.soak = (spec.soak_s.is_some() && spec.prove.is_none()).then(|| soak::standing(spec, trials, value, heap));
    standing
}

fn patience(spec: &SearchSpec, proofs: u32) -> Patience {
    Patience { proofs, answers_max: spec.trials_max, first_stride: LIMIT_STRIDE, hurried: false }
}

/// How often a limit failed with this direct memory because the heap was too small. The next larger heap is then tried.
fn too_small(trials: &[Trial], direct: Option<u64>) -> u64 {
    let fails = |(trial, probe): &(&Trial, &ProbeRecord)| {
        is_of_heap(probe) && probe.direct_bytes == direct && !ran_out_of_direct(trial)
    };
    counted(trials, ProbeStage::Limit).filter(fails).count() as u64
}

/// Guesses of the limit, from the memory in the heap's own trial if there is one, otherwise in the trial with ample
/// memory. The first guess is the best one; the others are those of earlier releases.
fn limit_guesses(spec: &SearchSpec, needs: &Needs, heap: Option<u64>, shown: Option<Needs>) -> Vec<u64> {
    match (shown, spec.prove) {
        (_, Some(only)) => vec![only],
        (Some(shown), _) => vec![shown.limit_guess(None)],
        (None, _) if spec.unknowns == Unknowns::AsIs => {
            vec![needs.limit_guess_as_is(spec.ram_share), needs.limit_guess(None)]
        }
        (None, _) => vec![needs.limit_guess(heap)],
    }
}

/// Limits are multiples of this many bytes, as observed in the first trial, so that different limits remain different
/// when they are set. A limit to confirm is tried unchanged, although it may be rounded down when it is set.
fn grain(spec: &SearchSpec, reference: &Trial) -> u64 {
    let cgroup = reference.cgroup.unwrap_or_default();
    cgroup.grain_bytes.filter(|_| spec.prove.is_none()).unwrap_or_default().max(cgroup.page())
}

/// The limits to try, one step apart. They begin with a guess, or with the first limit tried if no guess matches it, so
/// they always include the limits already tried.
fn limit_grid(spec: &SearchSpec, guesses: &[u64], asked: Option<u64>, grain: u64) -> Grid {
    let (low, high) = spec.prove.map_or((limit_min(spec), spec.limit_max), |only| (only, only));
    let from = |start: u64| Grid::by_ratio(start, low, high - high % grain, 1.0 + spec.step, grain);
    let began = |grid: &Grid| asked.is_none_or(|asked| grid.value(0) == asked);
    let fallback = asked.or(guesses.first().copied()).unwrap_or(high);
    guesses.iter().map(|guess| from(*guess)).find(began).unwrap_or_else(|| from(fallback))
}

/// Limits for the warm line, which is never above the cold one. They begin at the memory used apart from file pages.
fn warm_grid(spec: &SearchSpec, trials: &[Trial], line: u64, heap: Option<u64>, grain: u64) -> Grid {
    let at_line = counted(trials, ProbeStage::Limit)
        .filter(|(trial, probe)| trial.limit_bytes == Some(line) && probe.heap_bytes == heap);
    let anon = at_line.filter_map(|(trial, _)| trial.cgroup?.anon_peak_bytes).max().unwrap_or(line);
    Grid::by_ratio(anon.min(line), limit_min(spec), line, 1.0 + spec.step, grain)
}

fn limit_min(spec: &SearchSpec) -> u64 {
    spec.limit_min.unwrap_or(LIMIT_MIN)
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
