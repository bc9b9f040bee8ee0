//! What became of each remedy on the way, and of each attempt to confirm.

use crate::record::Fate;
use std::collections::BTreeMap;

/// What became of a remedy.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What became of it.
    pub fate: Fate,
    /// Why, with the numbers.
    pub why: String,
    /// What it saved in bytes, where it was weighed.
    pub saved: Option<f64>,
    /// CPU time of a request over that as it is, where it was measured.
    pub cpu_ratio: Option<f64>,
}

impl Told {
    pub(super) fn of(fate: Fate, why: &str) -> Self {
        Self { fate, why: why.to_owned(), saved: None, cpu_ratio: None }
    }
}

/// An attempt to confirm a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirming {
    /// Ids of its remedies.
    pub remedies: Vec<String>,
    /// Why it was not confirmed; `None` where it was.
    pub why: Option<String>,
    /// Blocks that were made of it.
    pub blocks: u32,
}

/// What became of each remedy, by its place in what is offered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Story {
    told: BTreeMap<usize, Told>,
    weighed: BTreeMap<usize, (f64, Option<f64>)>,
    /// Levels that took the place of others.
    replaced: BTreeMap<usize, usize>,
    /// Attempts to confirm, in time order.
    pub attempts: Vec<Confirming>,
}

impl Story {
    /// What became of one, in the end.
    pub fn of(&self, place: usize) -> Option<&Told> {
        self.told.get(&place)
    }

    /// What one saved and cost where it was part of the winner, if it was.
    pub fn weighing(&self, place: usize) -> Option<(f64, Option<f64>)> {
        self.weighed.get(&place).copied()
    }

    /// The level in whose place this one came, which then has no fate yet.
    pub(super) fn replaced(&mut self, by: usize) -> Option<usize> {
        let before = self.replaced.remove(&by)?;
        self.told.remove(&before);
        Some(before)
    }

    pub(super) fn replace(&mut self, by: usize, before: usize) {
        _ = self.replaced.insert(by, before);
    }

    pub(super) fn tell(&mut self, place: usize, told: Told) {
        _ = self.told.insert(place, told);
    }

    pub(super) fn is_told(&self, place: usize) -> bool {
        self.told.contains_key(&place)
    }

    pub(super) fn weighed(&mut self, place: usize, saved: f64, cpu_ratio: Option<f64>) {
        _ = self.weighed.insert(place, (saved, cpu_ratio));
    }

    /// What one saved so far; 0 where that is not known.
    pub(super) fn saved(&self, place: usize) -> f64 {
        self.weighed.get(&place).map_or(0.0, |(saved, _)| *saved)
    }

    pub(super) fn attempt(&mut self, remedies: Vec<String>, why: Option<String>, blocks: u32) {
        self.attempts.push(Confirming { remedies, why, blocks });
    }
}
