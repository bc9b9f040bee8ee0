//! Claims on address ranges, made disjoint: where two overlap, the owner that comes first in the account wins.

use crate::observe::ranges::gaps;
use crate::owner::Owner;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// A range of addresses and the owner that claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The owner.
    pub owner: Owner,
    /// The kind of part: `thread`, `code_heap`, `table`, `node`, `file`.
    pub kind: &'static str,
    /// The part's name; empty if it has none.
    pub name: String,
}

impl Claim {
    pub(super) fn new(start: u64, end: u64, owner: Owner, kind: &'static str, name: &str) -> Self {
        Self { start, end, owner, kind, name: name.to_owned() }
    }
}

/// Disjoint claims in address order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    list: Vec<Claim>,
}

impl Claims {
    /// Resolves overlaps: the first owner keeps its range, and later ones keep what remains of theirs. Among claims of
    /// one owner, the first in the list wins.
    pub fn settle(mut claims: Vec<Claim>) -> Self {
        claims.retain(|claim| claim.start < claim.end);
        claims.order_by_key(|claim| claim.owner);
        let mut taken: BTreeMap<u64, Claim> = BTreeMap::new();
        for claim in claims {
            let before = taken.range(..claim.start).next_back();
            let known = before.into_iter().chain(taken.range(claim.start..claim.end));
            let known = known.map(|(_, known)| (known.start, known.end));
            for (start, end) in gaps(claim.start, claim.end, known).collect::<Vec<_>>() {
                taken.insert(start, Claim { start, end, ..claim.clone() });
            }
        }
        Self { list: taken.into_values().collect() }
    }

    /// The claims that overlap `[start, end)`, in address order.
    pub fn within(&self, start: u64, end: u64) -> &[Claim] {
        let from = self.list.partition_point(|claim| claim.end <= start);
        let to = self.list.partition_point(|claim| claim.start < end);
        &self.list[from..to.max(from)]
    }

    /// All claims, in address order.
    pub fn all(&self) -> &[Claim] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(start: u64, end: u64, owner: Owner) -> Claim {
        Claim::new(start, end, owner, "table", "")
    }

    #[test]
    fn the_first_owner_wins_and_later_ones_keep_the_rest() {
        let claims = Claims::settle(vec![
            claim(10, 50, Owner::MappedFiles),
            claim(20, 30, Owner::JavaHeap),
            claim(25, 40, Owner::Cds),
        ]);
        let found: Vec<_> = claims.all().iter().map(|c| (c.start, c.end, c.owner)).collect();
        let (heap, cds, files) = (Owner::JavaHeap, Owner::Cds, Owner::MappedFiles);
        assert_eq!(found, [(10, 20, files), (20, 30, heap), (30, 40, cds), (40, 50, files)]);
        assert_eq!(claims.within(35, 45).len(), 2);
        assert!(claims.within(50, 60).is_empty() && claims.within(0, 10).is_empty());
    }

    proptest! {
        #[test]
        fn settled_claims_cover_each_claimed_byte_once(
            ranges in prop::collection::vec((0u64..300, 0u64..60, 0usize..20), 0..40),
        ) {
            let claimed = |(start, len, owner): &(u64, u64, usize)| claim(*start, start + len, Owner::ALL[*owner]);
            let list: Vec<_> = ranges.iter().map(claimed).collect();
            let settled = Claims::settle(list.clone());
            for at in 0..400 {
                let covers = |claim: &&Claim| claim.start <= at && at < claim.end;
                let owner = list.iter().filter(covers).map(|claim| claim.owner).min();
                let found: Vec<_> = settled.all().iter().filter(covers).map(|claim| claim.owner).collect();
                prop_assert_eq!(found, owner.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
