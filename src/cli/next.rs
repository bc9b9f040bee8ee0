//! Which block runs next: what is planned, then what is undecided, then what the machine disturbed. Bounded by the
//! scenario in each.

use crate::record::BlockRecord;

/// Why a block runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The scenario asks for it.
    Planned,
    /// A judged metric is not decided yet.
    Unsure,
    /// The machine disturbed this block.
    Repeats(u32),
}

impl Next {
    /// The block it repeats.
    pub(super) fn repeats(self) -> Option<u32> {
        match self {
            Self::Repeats(block) => Some(block),
            Self::Planned | Self::Unsure => None,
        }
    }

    /// Where in the run a trial stands, in words; `block` and `index` count from 0.
    pub(super) fn place(self, block: u32, index: u32, bounds: &Bounds) -> String {
        match self {
            Self::Planned => format!("{} of {}", index + 1, bounds.configurations * bounds.planned as usize),
            Self::Unsure => format!("block {}, until it is decided", block + 1),
            Self::Repeats(disturbed) => format!("block {}, repeats block {}", block + 1, disturbed + 1),
        }
    }
}

/// How much may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) configurations: usize,
    /// Blocks that run in any case.
    pub(super) planned: u32,
    /// Blocks at most, without repetitions, where undecided metrics are to be decided.
    pub(super) until_sure: Option<u32>,
    /// Repetitions of disturbed blocks at most.
    pub(super) repeats: u32,
}

/// What was run so far.
pub(super) struct Done<'a> {
    /// Blocks run.
    pub(super) count: u32,
    /// Whether no trial failed.
    pub(super) whole: bool,
    pub(super) blocks: &'a [BlockRecord],
}

/// Why one more block runs, if one does. `sure` is asked only where the answer matters: it takes a comparison.
pub(super) fn next_block(bounds: &Bounds, done: &Done<'_>, sure: impl FnOnce() -> bool) -> Option<Next> {
    if done.count < bounds.planned {
        return Some(Next::Planned);
    }
    // A configuration that fails decides nothing by failing again.
    if !done.whole || bounds.configurations < 2 {
        return None;
    }
    let repeated = done.blocks.iter().filter(|block| block.repeats.is_some()).count() as u32;
    if bounds.until_sure.is_some_and(|most| done.count - repeated < most) && !sure() {
        return Some(Next::Unsure);
    }
    if repeated >= bounds.repeats {
        return None;
    }
    let disturbed = done.blocks.iter().find(|block| block.disturbed.is_some() && block.used)?;
    Some(Next::Repeats(disturbed.block))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { configurations: 2, planned: 3, until_sure: None, repeats: 0 };

    fn block(block: u32) -> BlockRecord {
        BlockRecord { block, order: Vec::new(), disturbed: None, repeats: None, used: true }
    }

    fn disturbed(number: u32) -> BlockRecord {
        BlockRecord { disturbed: Some("steal 4 %".to_owned()), ..block(number) }
    }

    /// Blocks 0, 1, … with what is said of each.
    fn done(blocks: &[BlockRecord]) -> Done<'_> {
        Done { count: blocks.len() as u32, whole: true, blocks }
    }

    fn never() -> bool {
        panic!("nothing is to be decided")
    }

    #[test]
    fn what_is_planned_runs_first() {
        for count in 0..3 {
            let blocks: Vec<BlockRecord> = (0..count).map(disturbed).collect();
            assert_eq!(next_block(&BOUNDS, &done(&blocks), never), Some(Next::Planned));
            // A trial that failed does not keep the others from running.
            assert_eq!(next_block(&BOUNDS, &Done { whole: false, ..done(&blocks) }, never), Some(Next::Planned));
        }
        assert_eq!(next_block(&BOUNDS, &done(&[block(0), block(1), block(2)]), never), None);
    }

    #[test]
    fn until_sure_goes_on_to_its_bound() {
        let mut bounds = BOUNDS;
        bounds.until_sure = Some(5);
        let blocks: Vec<BlockRecord> = (0..5).map(block).collect();
        assert_eq!(next_block(&bounds, &done(&blocks[..3]), || false), Some(Next::Unsure));
        assert_eq!(next_block(&bounds, &done(&blocks[..3]), || true), None);
        assert_eq!(next_block(&bounds, &done(&blocks[..4]), || false), Some(Next::Unsure));
        assert_eq!(next_block(&bounds, &done(&blocks), never), None);
        assert_eq!(next_block(&bounds, &Done { whole: false, ..done(&blocks[..3]) }, never), None);
        bounds.configurations = 1;
        assert_eq!(next_block(&bounds, &done(&blocks[..3]), never), None, "nothing to compare with");
    }

    #[test]
    fn what_was_disturbed_is_repeated_as_often_as_allowed() {
        let mut bounds = BOUNDS;
        let first = [block(0), disturbed(1), disturbed(2)];
        assert_eq!(next_block(&bounds, &done(&first), never), None, "repetitions are to be asked for");
        bounds.repeats = 2;
        assert_eq!(next_block(&bounds, &done(&first), never), Some(Next::Repeats(1)));
        // The repetition is whole, so it counts in place of what it repeats.
        let again = BlockRecord { repeats: Some(1), ..block(3) };
        let second = [block(0), BlockRecord { used: false, ..disturbed(1) }, disturbed(2), again.clone()];
        assert_eq!(next_block(&bounds, &done(&second), never), Some(Next::Repeats(2)));
        // A repetition that was disturbed too is repeated itself, while the bound allows it.
        let noisy = BlockRecord { repeats: Some(1), ..disturbed(3) };
        let third = [block(0), BlockRecord { used: false, ..disturbed(1) }, block(2), noisy.clone()];
        assert_eq!(next_block(&bounds, &done(&third), never), Some(Next::Repeats(3)));
        bounds.repeats = 1;
        assert_eq!(next_block(&bounds, &done(&second), never), None);
    }

    /// A repetition takes nothing from the bound of `until_sure`.
    #[test]
    fn repetitions_are_counted_apart() {
        let mut bounds = BOUNDS;
        bounds.until_sure = Some(4);
        bounds.repeats = 1;
        let again = BlockRecord { repeats: Some(0), ..block(3) };
        let blocks = [BlockRecord { used: false, ..disturbed(0) }, block(1), block(2), again];
        assert_eq!(next_block(&bounds, &done(&blocks), || false), Some(Next::Unsure));
        assert_eq!(next_block(&bounds, &done(&blocks), || true), None);
    }

    #[test]
    fn a_block_says_where_it_stands() {
        assert_eq!(Next::Planned.place(1, 2, &BOUNDS), "3 of 6");
        assert_eq!(Next::Unsure.place(4, 8, &BOUNDS), "block 5, until it is decided");
        assert_eq!(Next::Repeats(1).place(4, 8, &BOUNDS), "block 5, repeats block 2");
    }
}
