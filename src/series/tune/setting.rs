//! Candidates and settings: a change that a tuning can make, and changes that it makes together.

use crate::diagnosis::remedy::{Group, Offered};
use crate::owner::Owner;
use crate::scenario::Change;
use std::cmp::Ordering;
use std::ops::Deref;

/// A row in the table of offered remedies; candidates sort in table order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'o> {
    row: usize,
    offered: &'o Offered,
}

impl<'o> Candidate<'o> {
    /// Every row, including remedies that cannot be tried.
    pub(super) fn all(offered: &'o [Offered]) -> impl Iterator<Item = Self> {
        offered.iter().enumerate().map(|(row, offered)| Self { row, offered })
    }

    /// The changes that apply it; empty if it cannot be tried.
    pub(super) fn changes(self) -> &'o [Change] {
        self.offered.offer.as_ref().map_or(&[] as &[Change], |offer| offer.changes.as_slice())
    }

    /// The changes for the training run that creates its archive; empty if it needs none.
    pub(super) fn training(self) -> &'o [Change] {
        self.offered.offer.as_ref().map_or(&[] as &[Change], |offer| offer.training.as_slice())
    }

    /// Its maximum saving in bytes; `None` if it cannot be tried or has no known bound.
    pub(super) fn bound(self) -> Option<u64> {
        self.offered.offer.as_ref().ok()?.gain_bytes_max
    }

    /// Like `bound`, as a sort key.
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

/// Candidates that are applied together, in table order, with at most one level per group. The empty setting is the
/// unchanged subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Setting<'o>(Vec<Candidate<'o>>);

impl<'o> Setting<'o> {
    pub(super) fn new(candidates: impl IntoIterator<Item = Candidate<'o>>) -> Self {
        let mut candidates: Vec<Candidate<'_>> = candidates.into_iter().collect();
        candidates.sort_unstable();
        candidates.dedup();
        Self(candidates)
    }

    pub(super) fn candidates(&self) -> impl DoubleEndedIterator<Item = Candidate<'o>> {
        self.0.iter().copied()
    }

    pub(super) fn is_as_it_is(&self) -> bool {
        self.0.is_empty()
    }

    /// The candidate of a setting that has only one.
    pub(super) fn only(&self) -> Option<Candidate<'o>> {
        if let [only] = self.0.as_slice() { Some(*only) } else { None }
    }

    pub(super) fn has(&self, candidate: Candidate<'_>) -> bool {
        self.0.contains(&candidate)
    }

    /// The level set for a group, if any.
    pub(super) fn level_of(&self, group: Group) -> Option<Candidate<'o>> {
        self.candidates().find(|candidate| candidate.group == group)
    }

    /// A copy with this candidate, which replaces another level of its group.
    pub(super) fn with(&self, candidate: Candidate<'o>) -> Self {
        let others = self.candidates().filter(|other| other.group != candidate.group);
        Self::new(others.chain([candidate]))
    }

    /// A copy without this candidate.
    pub(super) fn without(&self, candidate: Candidate<'_>) -> Self {
        Self::new(self.candidates().filter(|other| *other != candidate))
    }

    /// Two halves; the first is never empty.
    pub(super) fn halves(&self) -> (Self, Self) {
        let (first, second) = self.0.split_at(self.0.len().div_ceil(2));
        (Self(first.to_vec()), Self(second.to_vec()))
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self::new(self.candidates().chain(other.candidates()))
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.candidates().map(|candidate| candidate.id.clone()).collect()
    }

    /// The changes that apply it. The later of two direct-memory ceilings applies, as in the JVM.
    pub(super) fn changes(&self) -> Vec<Change> {
        let changes: Vec<Change> = self.candidates().flat_map(Candidate::changes).cloned().collect();
        let bounds_direct = |change: &Change| matches!(change, Change::DirectMax(_));
        let last = changes.iter().rposition(bounds_direct);
        let numbered = changes.into_iter().enumerate();
        numbered.filter(|(at, change)| !bounds_direct(change) || Some(*at) == last).map(|(_, change)| change).collect()
    }

    /// Whether another of its candidates affects an owner that this one affects.
    pub(super) fn shares_owners(&self, candidate: Candidate<'_>) -> bool {
        let shares = |other: Candidate<'_>| other.owners.iter().any(|owner| candidate.owners.contains(owner));
        self.candidates().any(|other| other != candidate && shares(other))
    }

    /// The distinct owners that its candidates affect.
    pub(super) fn owners(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = self.candidates().flat_map(|candidate| candidate.owners.clone()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}
