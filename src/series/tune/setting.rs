//! Which remedies are set at once: at most one level of each group.

use crate::owner::Owner;
use crate::remedy::Offered;
use crate::scenario::Change;

/// Remedies that are set at once, by their places in what is offered, ascending; none is as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Setting(Vec<usize>);

impl Setting {
    /// Of these places.
    pub fn of(places: impl IntoIterator<Item = usize>) -> Self {
        let mut places: Vec<usize> = places.into_iter().collect();
        places.sort_unstable();
        places.dedup();
        Self(places)
    }

    /// The places.
    pub fn places(&self) -> &[usize] {
        &self.0
    }

    /// Whether nothing is set.
    pub fn is_as_it_is(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with this one, in place of another level of its group.
    pub fn with(&self, place: usize, offered: &[Offered]) -> Self {
        let others = self.0.iter().copied().filter(|other| offered[*other].group != offered[place].group);
        Self::of(others.chain([place]))
    }

    /// The same without this one.
    pub fn without(&self, place: usize) -> Self {
        Self::of(self.0.iter().copied().filter(|other| *other != place))
    }

    /// Two halves of it, of which the first is never empty.
    pub fn halves(&self) -> (Self, Self) {
        let (first, second) = self.0.split_at(self.0.len().div_ceil(2));
        (Self::of(first.iter().copied()), Self::of(second.iter().copied()))
    }

    /// Both.
    pub fn and(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied())
    }

    /// The ids of its remedies.
    pub fn ids(&self, offered: &[Offered]) -> Vec<String> {
        self.0.iter().map(|place| offered[*place].id.clone()).collect()
    }

    /// What is to be set for it.
    pub fn changes(&self, offered: &[Offered]) -> Vec<Change> {
        let offers = self.0.iter().filter_map(|place| offered[*place].offer.as_ref().ok());
        offers.flat_map(|offer| offer.changes.clone()).collect()
    }

    /// The others of it that move pages of the same owners.
    pub fn sharing(&self, place: usize, offered: &[Offered]) -> Vec<usize> {
        let own = &offered[place].owners;
        let shares = |other: &usize| *other != place && offered[*other].owners.iter().any(|owner| own.contains(owner));
        self.0.iter().copied().filter(shares).collect()
    }

    /// The owners that its remedies move, each once.
    pub fn owners(&self, offered: &[Offered]) -> Vec<Owner> {
        let mut owners: Vec<Owner> = self.0.iter().flat_map(|place| offered[*place].owners.clone()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}
