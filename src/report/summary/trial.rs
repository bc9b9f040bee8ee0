//! What to say of one trial: its conditions, then its tables, then its doubts.

use super::block::Block;
use super::doubts::doubts;
use super::facts::trial_facts;
use super::journey::journey;
use super::netty;
use super::numbers::{by_category, load, weights};
use super::{inside, loaders};
use crate::record::Trial;

/// Heading, conditions, tables and doubts of a trial; its number is told where there are `several`.
pub(super) fn of_trial(trial: &Trial, several: bool) -> Vec<Block> {
    let name = if several {
        format!("{} (trial {})", trial.configuration, trial.index + 1)
    } else {
        trial.configuration.clone()
    };
    let mut blocks = vec![Block::Heading(name), Block::Facts(trial_facts(trial))];
    if !trial.marks.is_empty() {
        blocks.push(Block::Table(weights(trial)));
    }
    blocks.extend(journey(trial));
    blocks.extend(loaders::of_trial(trial).map(Block::Table));
    blocks.extend(inside::of_trial(trial).map(Block::Table));
    blocks.extend(trial.heap_dump.as_ref().map(inside::dump));
    if !trial.phases.is_empty() {
        blocks.push(Block::Table(load(trial)));
    }
    blocks.extend(by_category(trial).map(Block::Table));
    blocks.extend(netty::of_trial(trial));
    blocks.extend(doubts(&trial.doubts));
    blocks
}
