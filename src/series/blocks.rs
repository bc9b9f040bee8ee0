//! Blocks: one fresh trial of each configuration, in random order, repeatedly. Planned blocks run first, then blocks
//! for undecided metrics, then repeats of disturbed blocks. The scenario limits the number of each.

use super::{Made, NextTrial, Strategy};
use crate::comparison;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BlockRecord, ComparisonRecord, DifferenceVerdict, LeastRecord, Trial, answering};
use crate::scenario::{Compare, Scenario, TrialPlan};
use crate::units::roughly;
use loadline_base::order::Order as _;

/// Runs all configurations of a scenario in blocks.
#[derive(Debug)]
pub struct Blocks<'a> {
    scenario: &'a Scenario,
    /// Comparison settings, possibly stricter than the scenario's.
    compare: &'a Compare,
    /// Index of the first block within a comparison that spans several machines.
    first: Option<u32>,
}

/// Why a block runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    /// The scenario asks for it.
    Planned,
    /// A judged metric is not decided yet.
    Unsure,
    /// The machine disturbed this block; the text says how.
    Repeats(u32, String),
}

impl Turn {
    /// Describes a trial's position in the run, and the time left after the first trial. `block` is zero-based.
    fn place(&self, block: u32, before: &[Trial], bounds: &Bounds) -> String {
        match self {
            Self::Planned => {
                let (planned, done) = (bounds.configurations * bounds.planned as usize, before.len());
                let known = comparison::seconds_of_a_trial(before);
                let left = known.map(|seconds| seconds * planned.saturating_sub(done) as f64);
                let left = left.map(|seconds| format!(", about {} left", roughly(seconds))).unwrap_or_default();
                format!("{} of {planned}{left}", done + 1)
            }
            Self::Unsure => format!("block {}, until decided", block + 1),
            Self::Repeats(disturbed, how) => {
                format!("block {}, repeating block {} (disturbed: {how})", block + 1, disturbed + 1)
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    configurations: usize,
    /// Blocks that always run.
    planned: u32,
    /// The maximum number of blocks, excluding repeats, for deciding undecided metrics.
    until_sure: Option<u32>,
    /// The maximum number of repeats of disturbed blocks.
    repeats: u32,
}

/// The blocks so far.
struct Done<'a> {
    /// Blocks run.
    count: u32,
    /// Whether no trial failed.
    whole: bool,
    blocks: &'a [BlockRecord],
}

impl<'a> Blocks<'a> {
    /// Runs these configurations; `compare` says which metrics to decide and what may be repeated.
    pub fn new(scenario: &'a Scenario, compare: &'a Compare) -> Self {
        Self { scenario, compare, first: None }
    }

    /// Like `new`, for the part of a distributed comparison that begins at block `first`. Each part draws its own
    /// orders.
    pub fn of_part(self, first: u32) -> Self {
        Self { first: Some(first), ..self }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            configurations: self.scenario.configurations.len(),
            planned: self.scenario.trials,
            until_sure: self.compare.until_sure,
            repeats: self.compare.repeats,
        }
    }

    /// The reason for the next trial's block, or `None` if the run is complete. Every block has one trial per
    /// configuration.
    fn turn(&self, trials: &[Trial]) -> Option<Turn> {
        let bounds = self.bounds();
        let count = (trials.len() / bounds.configurations.max(1)) as u32;
        let before = &trials[..count as usize * bounds.configurations];
        let blocks = comparison::blocks(before);
        let done = Done { count, whole: !before.iter().any(Trial::is_failed), blocks: &blocks };
        let of_begun = || {
            let repeats = trials.last().and_then(|trial| trial.repeats);
            repeats.map_or(Turn::Unsure, |block| repeat(block, &blocks))
        };
        match before.len() < trials.len() && count >= bounds.planned {
            // A block keeps its reason until it ends.
            true => Some(of_begun()),
            false => next_block(&bounds, &done, || self.is_sure(before)),
        }
    }

    /// The order of configurations in a block. The baseline always runs first in block 0, because every comparison
    /// needs it.
    fn order(&self, block: u32) -> Vec<usize> {
        let configurations = &self.scenario.configurations;
        if !self.compares() {
            return (0..configurations.len()).collect();
        }
        let block = self.first.unwrap_or(0).saturating_add(block);
        let mut order = comparison::order(self.scenario.seed, block, configurations.len());
        if block == 0 {
            let is_baseline = |at: &usize| Some(&configurations[*at].name) == self.compare.baseline.as_ref();
            let baseline = (0..configurations.len()).find(is_baseline).unwrap_or(0);
            order.order_by_key(|at| *at != baseline);
        }
        order
    }

    fn compares(&self) -> bool {
        let is_one_of_many = self.first.is_some() || self.compare.blocks(self.scenario.trials) > 1;
        self.scenario.configurations.len() > 1 && is_one_of_many
    }

    /// Whether a failed trial leaves nothing to compare: the baseline failed, or no candidate became ready in the first
    /// block. More trials would fail too.
    fn is_hopeless(&self, trials: &[Trial]) -> bool {
        let never_ready = |trial: &Trial| trial.is_failed() && trial.ready_s.is_none();
        let is_whole = trials.len() == self.scenario.configurations.len();
        let is_first = trials.len() == 1 || is_whole && trials[1..].iter().all(never_ready);
        self.compares() && self.first.is_none() && is_first
    }

    /// Whether every judged metric is decided, or its interval is narrow enough. Checked only at fixed block counts;
    /// the intervals are corrected for that number of checks.
    fn is_sure(&self, trials: &[Trial]) -> bool {
        let used = comparison::blocks(trials).iter().filter(|block| block.used).count() as u32;
        if !self.compare.looks().contains(&used) {
            return false;
        }
        let names: Vec<String> = self.scenario.configurations.iter().map(|of| of.name.clone()).collect();
        let metrics = comparison::metrics_in_order(trials, &names);
        let (configurations, seed) = (&self.scenario.configurations, self.scenario.seed);
        let effects = comparison::effects(&metrics, configurations, self.compare, seed);
        let answers = answering(effects, || comparison::compare(&metrics, self.compare, seed));
        let mut judged = answers.iter().filter(|row| row.primary).peekable();
        judged.peek().is_some() && judged.all(|row| row.verdict != DifferenceVerdict::CannotTell || is_narrow(row))
    }
}

impl Strategy for Blocks<'_> {
    fn next<'t>(&'t self, trials: &'t [Trial]) -> Option<NextTrial<'t>> {
        let bounds = self.bounds();
        let turn = self.turn(trials)?;
        let (block, within) = (trials.len() / bounds.configurations, trials.len() % bounds.configurations);
        let (block, index) = (block as u32, trials.len() as u32);
        let configuration = &self.scenario.configurations[*self.order(block).get(within)?];
        let repeats = match turn {
            Turn::Repeats(block, _) => Some(block),
            Turn::Planned | Turn::Unsure => None,
        };
        let plan = TrialPlan {
            title: format!("{} ({})", configuration.name, turn.place(block, trials, &bounds)),
            index,
            block,
            repeats,
            ..TrialPlan::of(self.scenario, configuration)
        };
        let judge = |made: &mut Made| {
            if !self.scenario.figures.is_empty() {
                made.trial.figures = comparison::figures(&self.scenario.figures, &made.trial);
            }
        };
        Some(NextTrial { plan, judge: Box::new(judge) })
    }

    /// A failed trial stops the series only if nothing is left to compare.
    fn after(&self, trials: &[Trial], error: Option<Error>) -> Result<Option<Error>> {
        match error {
            Some(error) if error.kind != ErrorKind::Subject => Err(error),
            Some(error) if self.is_hopeless(trials) => Err(error.at("stopped: nothing is left to compare")),
            survived => Ok(survived),
        }
    }
}

/// The reason for another block, if any. Calls `sure` only when needed, because it computes a comparison.
fn next_block(bounds: &Bounds, done: &Done<'_>, sure: impl FnOnce() -> bool) -> Option<Turn> {
    if done.count < bounds.planned {
        return Some(Turn::Planned);
    }
    // Repeating a failing configuration decides nothing.
    if !done.whole || bounds.configurations < 2 {
        return None;
    }
    let repeated = done.blocks.iter().filter(|block| block.repeats.is_some()).count() as u32;
    if bounds.until_sure.is_some_and(|most| done.count - repeated < most) && !sure() {
        return Some(Turn::Unsure);
    }
    if repeated >= bounds.repeats {
        return None;
    }
    let disturbed = done.blocks.iter().find(|block| block.disturbed.is_some() && block.used)?;
    Some(repeat(disturbed.block, done.blocks))
}

fn repeat(block: u32, blocks: &[BlockRecord]) -> Turn {
    let how = blocks.iter().find(|of| of.block == block).and_then(|of| of.disturbed.clone());
    Turn::Repeats(block, how.unwrap_or_default())
}

/// Whether half the interval is no wider than the least difference that matters.
fn is_narrow(row: &ComparisonRecord) -> bool {
    let half = |low: Option<f64>, high: Option<f64>| Some((high? - low?) / 2.0);
    match row.least {
        LeastRecord::Absolute(least) => half(row.low, row.high).is_some_and(|half| half <= least),
        LeastRecord::Relative(least) => half(row.ratio_low, row.ratio_high).is_some_and(|half| half <= least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Better, Outcome, Unit};

    const BOUNDS: Bounds = Bounds { configurations: 2, planned: 3, until_sure: None, repeats: 0 };

    fn block(block: u32) -> BlockRecord {
        BlockRecord { block, order: Vec::new(), disturbed: None, repeats: None, used: true }
    }

    fn disturbed(number: u32) -> BlockRecord {
        BlockRecord { disturbed: Some("steal 4%".to_owned()), ..block(number) }
    }

    /// Blocks 0, 1, … with their records.
    fn done(blocks: &[BlockRecord]) -> Done<'_> {
        Done { count: blocks.len() as u32, whole: true, blocks }
    }

    fn never() -> bool {
        panic!("the verdict must not be requested")
    }

    #[test]
    fn planned_blocks_run_first() {
        for count in 0..3 {
            let blocks: Vec<BlockRecord> = (0..count).map(disturbed).collect();
            assert_eq!(next_block(&BOUNDS, &done(&blocks), never), Some(Turn::Planned));
            // A failed trial does not stop the others.
            assert_eq!(next_block(&BOUNDS, &Done { whole: false, ..done(&blocks) }, never), Some(Turn::Planned));
        }
        assert_eq!(next_block(&BOUNDS, &done(&[block(0), block(1), block(2)]), never), None);
    }

    #[test]
    fn blocks_continue_until_sure_up_to_a_bound() {
        let mut bounds = BOUNDS;
        bounds.until_sure = Some(5);
        let blocks: Vec<BlockRecord> = (0..5).map(block).collect();
        assert_eq!(next_block(&bounds, &done(&blocks[..3]), || false), Some(Turn::Unsure));
        assert_eq!(next_block(&bounds, &done(&blocks[..3]), || true), None);
        assert_eq!(next_block(&bounds, &done(&blocks[..4]), || false), Some(Turn::Unsure));
        assert_eq!(next_block(&bounds, &done(&blocks), never), None);
        assert_eq!(next_block(&bounds, &Done { whole: false, ..done(&blocks[..3]) }, never), None);
        bounds.configurations = 1;
        assert_eq!(next_block(&bounds, &done(&blocks[..3]), never), None, "there is no comparison");
    }

    #[test]
    fn disturbed_blocks_are_repeated_as_often_as_allowed() {
        let mut bounds = BOUNDS;
        let first = [block(0), disturbed(1), disturbed(2)];
        assert_eq!(next_block(&bounds, &done(&first), never), None, "repeats must be requested");
        bounds.repeats = 2;
        assert_eq!(next_block(&bounds, &done(&first), never), Some(Turn::Repeats(1, "steal 4%".to_owned())));
        // The repetition is complete, so it replaces the original block.
        let again = BlockRecord { repeats: Some(1), ..block(3) };
        let second = [block(0), BlockRecord { used: false, ..disturbed(1) }, disturbed(2), again.clone()];
        assert_eq!(next_block(&bounds, &done(&second), never), Some(Turn::Repeats(2, "steal 4%".to_owned())));
        // A disturbed repeat is repeated too, within the limit.
        let noisy = BlockRecord { repeats: Some(1), ..disturbed(3) };
        let third = [block(0), BlockRecord { used: false, ..disturbed(1) }, block(2), noisy.clone()];
        assert_eq!(next_block(&bounds, &done(&third), never), Some(Turn::Repeats(3, "steal 4%".to_owned())));
        bounds.repeats = 1;
        assert_eq!(next_block(&bounds, &done(&second), never), None);
    }

    /// Repeats do not count toward `until_sure`.
    #[test]
    fn repetitions_are_counted_separately() {
        let mut bounds = BOUNDS;
        bounds.until_sure = Some(4);
        bounds.repeats = 1;
        let again = BlockRecord { repeats: Some(0), ..block(3) };
        let blocks = [BlockRecord { used: false, ..disturbed(0) }, block(1), block(2), again];
        assert_eq!(next_block(&bounds, &done(&blocks), || false), Some(Turn::Unsure));
        assert_eq!(next_block(&bounds, &done(&blocks), || true), None);
    }

    /// A comparison whose interval has this half width, in bytes and relative to the baseline.
    fn row(least: LeastRecord, half: Option<f64>) -> ComparisonRecord {
        let share = half.map(|half| half / 1000.0);
        ComparisonRecord {
            least,
            low: half.map(|half| 40.0 - half),
            high: half.map(|half| 40.0 + half),
            ratio_low: share.map(|half| 1.5 - half),
            ratio_high: share.map(|half| 1.5 + half),
            metric: "rss.loaded".to_owned(),
            unit: Unit::Bytes,
            better: Better::Lower,
            baseline: "a".to_owned(),
            candidate: "b".to_owned(),
            primary: true,
            baseline_median: 80.0,
            candidate_median: 120.0,
            ratio: Some(1.5),
            difference: 40.0,
            confidence: 0.95,
            confidence_each: 0.95,
            verdict: DifferenceVerdict::CannotTell,
            blocks: 5,
            blocks_needed: None,
        }
    }

    #[test]
    fn an_interval_is_narrow_if_its_half_width_is_small_enough() {
        assert!(is_narrow(&row(LeastRecord::Absolute(8.0), Some(8.0))));
        assert!(!is_narrow(&row(LeastRecord::Absolute(8.0), Some(8.25))));
        assert!(is_narrow(&row(LeastRecord::Relative(0.125), Some(125.0))));
        assert!(!is_narrow(&row(LeastRecord::Relative(0.125), Some(125.5))));
        assert!(!is_narrow(&row(LeastRecord::Absolute(8.0), None)), "a missing interval is not narrow");
    }

    #[test]
    fn a_block_shows_its_position() {
        let trial = Trial { outcome: Outcome::Completed, ready_s: Some(20.0), ..Trial::new("a", 0, 0) };
        let trials = [trial.clone(), Trial { ready_s: Some(10.0), ..trial }];
        assert_eq!(Turn::Planned.place(0, &[], &BOUNDS), "1 of 6");
        assert_eq!(Turn::Planned.place(0, &trials[..1], &BOUNDS), "2 of 6, about 2 min left");
        assert_eq!(Turn::Planned.place(1, &trials, &BOUNDS), "3 of 6, about 60 s left");
        assert_eq!(Turn::Unsure.place(4, &trials, &BOUNDS), "block 5, until decided");
        assert_eq!(
            Turn::Repeats(1, "steal 4%".to_owned()).place(4, &trials, &BOUNDS),
            "block 5, repeating block 2 (disturbed: steal 4%)"
        );
    }
}
