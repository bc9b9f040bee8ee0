//! Candidates and settings: what a tuning may set, and what it sets at once.

use crate::diagnosis::remedy::{Group, Offered};
use crate::owner::Owner;
use crate::scenario::Change;
use std::cmp::Ordering;
use std::ops::Deref;

/// A remedy of the table of those offered; candidates are in the order of that table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'o> {
    row: usize,
    offered: &'o Offered,
}

impl<'o> Candidate<'o> {
    /// Every row of the table, those that cannot be tried among them.
    pub(super) fn all(offered: &'o [Offered]) -> impl Iterator<Item = Self> {
        offered.iter().enumerate().map(|(row, offered)| Self { row, offered })
    }

    /// The changes that set it; none where it cannot be tried.
    pub(super) fn changes(self) -> &'o [Change] {
        self.offered.offer.as_ref().map_or(&[] as &[Change], |offer| offer.changes.as_slice())
    }

    /// The changes of a run that makes the archive it needs; none where it needs none.
    pub(super) fn training(self) -> &'o [Change] {
        self.offered.offer.as_ref().map_or(&[] as &[Change], |offer| offer.training.as_slice())
    }

    /// The most that it can save, in bytes; `None` where it cannot be tried, and where no bound is known.
    pub(super) fn bound(self) -> Option<u64> {
        self.offered.offer.as_ref().ok()?.gain_bytes_max
    }

    /// The same, as a number that orders candidates.
    pub(super) fn gain_bytes_max(self) -> u64 {
        self.offered.offer.as_ref().map_or(0, |offer| offer.gain_bytes_max.unwrap_or(u64::MAX))
    }
}

impl Deref for Candidate<'_> {
    type Target = Offered;

    fn deref(&self) -> &Offered {
        self.offered
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row
    }
}

impl Eq for Candidate<'_> {}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.row.cmp(&other.row)
    }
}

/// Candidates that are set at once, in the order of the table, at most one level of each group. The empty setting is
/// the subject as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Setting<'o>(Vec<Candidate<'o>>);

impl<'o> Setting<'o> {
    /// A setting of these candidates.
    pub(super) fn new(candidates: impl IntoIterator<Item = Candidate<'o>>) -> Self {
        let mut candidates: Vec<Candidate<'_>> = candidates.into_iter().collect();
        candidates.sort_unstable();
        candidates.dedup();
        Self(candidates)
    }

    /// Its candidates.
    pub(super) fn candidates(&self) -> impl DoubleEndedIterator<Item = Candidate<'o>> {
        self.0.iter().copied()
    }

    /// Whether nothing is set.
    pub(super) fn is_as_it_is(&self) -> bool {
        self.0.is_empty()
    }

    /// Its candidate, where it has no other.
    pub(super) fn only(&self) -> Option<Candidate<'o>> {
        if let [only] = self.0.as_slice() { Some(*only) } else { None }
    }

    /// Whether it has this candidate.
    pub(super) fn has(&self, candidate: Candidate<'_>) -> bool {
        self.0.contains(&candidate)
    }

    /// The level of a group that is set, if any is.
    pub(super) fn level_of(&self, group: Group) -> Option<Candidate<'o>> {
        self.candidates().find(|candidate| candidate.group == group)
    }

    /// The same with this candidate, in place of another level of its group.
    pub(super) fn with(&self, candidate: Candidate<'o>) -> Self {
        let others = self.candidates().filter(|other| other.group != candidate.group);
        Self::new(others.chain([candidate]))
    }

    /// The same without this candidate.
    pub(super) fn without(&self, candidate: Candidate<'_>) -> Self {
        Self::new(self.candidates().filter(|other| *other != candidate))
    }

    /// Two halves of it, of which the first is never empty.
    pub(super) fn halves(&self) -> (Self, Self) {
        let (first, second) = self.0.split_at(self.0.len().div_ceil(2));
        (Self(first.to_vec()), Self(second.to_vec()))
    }

    /// All candidates of both.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self::new(self.candidates().chain(other.candidates()))
    }

    /// The ids of its candidates.
    pub(super) fn ids(&self) -> Vec<String> {
        self.candidates().map(|candidate| candidate.id.clone()).collect()
    }

    /// The changes that set it. If there are two ceilings of direct memory, the later one holds, as in the JVM.
    pub(super) fn changes(&self) -> Vec<Change> {
        let changes: Vec<Change> = self.candidates().flat_map(Candidate::changes).cloned().collect();
        let bounds_direct = |change: &Change| matches!(change, Change::DirectMax(_));
        let last = changes.iter().rposition(bounds_direct);
        let numbered = changes.into_iter().enumerate();
        numbered.filter(|(at, change)| !bounds_direct(change) || Some(*at) == last).map(|(_, change)| change).collect()
    }

    /// Whether another candidate of it moves pages of an owner that this one moves.
    pub(super) fn shares_owners(&self, candidate: Candidate<'_>) -> bool {
        let shares = |other: Candidate<'_>| other.owners.iter().any(|owner| candidate.owners.contains(owner));
        self.candidates().any(|other| other != candidate && shares(other))
    }

    /// The owners that its candidates move, each once.
    pub(super) fn owners(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = self.candidates().flat_map(|candidate| candidate.owners.clone()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}
