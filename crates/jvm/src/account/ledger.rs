//! Records what was found in each mapping and closes the account: the weight that the kernel reports for a mapping is
//! divided exactly among its parts, whatever was read.

use super::claims::Claim;
use crate::kernel::mapping::Mapping;
use crate::observe::smaps::{Smaps, WeighedMapping};
use crate::owner::Owner;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// A part found in a mapping, or in a stretch of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its owner, kind, name, and range.
    pub claim: Claim,
    /// Number of items: the chunks of a tag; otherwise 1.
    pub count: u64,
    /// Requested bytes, resident or not, if known.
    pub allocated: Option<u64>,
    /// Bytes on present pages.
    pub resident: u64,
    /// Bytes on pages that are swapped out.
    pub swapped: u64,
}

impl LedgerEntry {
    pub(super) fn of(claim: &Claim, (resident, swapped): (u64, u64)) -> Self {
        // The split of the Java heap says more than its parts would.
        let name = if claim.owner == Owner::JavaHeap { String::new() } else { claim.name.clone() };
        Self { claim: Claim { name, ..*claim }, count: 1, allocated: None, resident, swapped }
    }
}

/// A part of an owner, over all mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Kind of part.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Number of items.
    pub count: u64,
    /// Requested bytes, if known.
    pub allocated: Option<u64>,
    /// Resident bytes.
    pub rss: u64,
}

/// The memory that one owner holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The owner.
    pub owner: Owner,
    /// Resident bytes.
    pub rss: u64,
    /// Resident bytes, with shared pages divided among the processes that share them.
    pub pss: u64,
    /// Swapped bytes.
    pub swap: u64,
    /// Parts of the owner, largest first.
    pub detail: Vec<Detail>,
}

/// A mapping with its owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Index into the mappings.
    pub index: usize,
    /// Owners and their resident bytes, largest first; they add up to the mapping's RSS.
    pub shares: Vec<(Owner, u64)>,
}

/// A stretch without an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remainder {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Index of its mapping.
    pub index: usize,
    /// Resident bytes.
    pub rss: u64,
}

/// A closed account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// RSS in bytes: the sum of the holdings, and of the mappings.
    pub rss: u64,
    /// PSS in bytes, likewise the sum of the holdings, and of the mappings.
    pub pss: u64,
    /// Owners with resident or swapped pages, in account order.
    pub holdings: Vec<Holding>,
    /// Mappings with resident or swapped pages, in address order.
    pub regions: Vec<Region>,
    /// Stretches that no owner claims, largest first.
    pub remainders: Vec<Remainder>,
    /// Bytes by which the parts differ from the kernel's weights, because memory changed during the reading.
    pub moved: u64,
}

impl Account {
    /// The holding of an owner.
    pub fn holding(&self, owner: Owner) -> Option<&Holding> {
        self.holdings.iter().find(|holding| holding.owner == owner)
    }

    /// Resident bytes of an owner.
    pub fn rss_of(&self, owner: Owner) -> u64 {
        self.holding(owner).map_or(0, |holding| holding.rss)
    }

    /// Unexplained bytes in mappings that changed after they were weighed; `now` lists the current mappings. A busy
    /// compiler maps and unmaps chunks within milliseconds, and a chunk that is gone cannot be read.
    pub fn gone(&self, weighed: &Smaps, now: &[Mapping]) -> u64 {
        let stands = |mapping: &Mapping| {
            let at = now.partition_point(|other| other.start < mapping.start);
            now.get(at).is_some_and(|other| (other.start, other.end) == (mapping.start, mapping.end))
        };
        let changed = |index: usize| weighed.mappings.get(index).is_some_and(|weighed| !stands(&weighed.mapping));
        let remainders = self.remainders.iter().filter(|remainder| changed(remainder.index));
        remainders.map(|remainder| remainder.rss).fold(0, u64::saturating_add)
    }
}

/// An account in progress.
#[derive(Debug)]
pub struct Ledger<'a> {
    smaps: &'a Smaps,
    parts: BTreeMap<usize, Vec<LedgerEntry>>,
}

impl<'a> Ledger<'a> {
    /// Starts with the kernel's weights.
    pub fn new(smaps: &'a Smaps) -> Self {
        Self { smaps, parts: BTreeMap::new() }
    }

    /// Records the parts found in the mapping with this index.
    pub fn enter(&mut self, index: usize, parts: impl IntoIterator<Item = LedgerEntry>) {
        self.parts.entry(index).or_default().extend(parts);
    }

    /// Divides every mapping's weight among its parts. A mapping without parts is unexplained.
    pub fn close(self) -> Account {
        let mut account = Account::default();
        let mut books: BTreeMap<Owner, Book> = BTreeMap::new();
        for (index, weighed) in self.smaps.mappings.iter().enumerate() {
            let weight = &weighed.weight;
            if weight.rss.0 == 0 && weight.swap.0 == 0 {
                continue;
            }
            let parts = self.parts.get(&index).map(Vec::as_slice).unwrap_or_default();
            let unowned = [nobodys(weighed)];
            let found = parts.iter().map(|part| part.resident).fold(0, u64::saturating_add);
            // Parts without pages cannot own the weight that the kernel reports.
            let parts = if parts.is_empty() || found == 0 && weight.rss.0 > 0 { &unowned } else { parts };
            add(&mut account.moved, if found == 0 { 0 } else { found.abs_diff(weight.rss.0) });
            add(&mut account.rss, weight.rss.0);
            add(&mut account.pss, weight.pss.0);
            enter_mapping(index, weighed, parts, &mut books, &mut account);
        }
        account.remainders.largest_first(|remainder| remainder.rss);
        account.holdings = books.into_iter().map(|(owner, book)| book.close(owner)).collect();
        account
    }
}

/// Saturates, because the weights of a damaged `smaps` may overflow.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The whole mapping, without an owner.
fn nobodys(weighed: &WeighedMapping) -> LedgerEntry {
    let claim = Claim::new(weighed.mapping.start, weighed.mapping.end, Owner::Unexplained, "", "");
    LedgerEntry::of(&claim, (weighed.weight.rss.0.max(1), weighed.weight.swap.0))
}

fn enter_mapping(
    index: usize,
    weighed: &WeighedMapping,
    parts: &[LedgerEntry],
    books: &mut BTreeMap<Owner, Book>,
    account: &mut Account,
) {
    let resident: Vec<u64> = parts.iter().map(|part| part.resident).collect();
    let swapped: Vec<u64> = parts.iter().map(|part| part.swapped).collect();
    let rss = divide(weighed.weight.rss.0, &resident);
    let pss = divide(weighed.weight.pss.0, &rss);
    let swap = divide(weighed.weight.swap.0, &swapped);
    let mut shares: BTreeMap<Owner, u64> = BTreeMap::new();
    for (n, part) in parts.iter().enumerate() {
        let Claim { start, end, owner, .. } = part.claim;
        let book = books.entry(owner).or_default();
        add(&mut book.rss, rss[n]);
        add(&mut book.pss, pss[n]);
        add(&mut book.swap, swap[n]);
        if !part.claim.name.is_empty() {
            book.detail(part, rss[n]);
        }
        if rss[n] > 0 {
            add(shares.entry(owner).or_default(), rss[n]);
            if owner == Owner::Unexplained {
                account.remainders.push(Remainder { start, end, index, rss: rss[n] });
            }
        }
    }
    let mut shares: Vec<(Owner, u64)> = shares.into_iter().collect();
    shares.largest_first(|(_, rss)| *rss);
    account.regions.push(Region { index, shares });
}

/// Divides a total exactly in proportion to the weights. Without weights, the first part gets all of it.
fn divide(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == u128::from(total) {
        return weights.to_vec();
    }
    let share = |weight: &u64| match sum {
        0 => 0,
        _ => u64::try_from(u128::from(total) * u128::from(*weight) / sum).unwrap_or(0),
    };
    let mut parts: Vec<u64> = weights.iter().map(share).collect();
    let given: u64 = parts.iter().sum();
    let largest = weights.iter().enumerate().max_by_key(|(n, weight)| (**weight, std::cmp::Reverse(*n)));
    if let Some((n, _)) = largest {
        parts[n] += total - given;
    }
    parts
}

/// One owner's holding while its parts are added up.
#[derive(Debug, Default)]
struct Book {
    rss: u64,
    pss: u64,
    swap: u64,
    details: BTreeMap<(&'static str, String), Detail>,
}

impl Book {
    fn detail(&mut self, part: &LedgerEntry, rss: u64) {
        let Claim { kind, name, .. } = &part.claim;
        let new = || Detail { kind, name: name.clone(), count: 0, allocated: None, rss: 0 };
        let detail = self.details.entry((kind, name.clone())).or_insert_with(new);
        add(&mut detail.rss, rss);
        // A file with several mappings, or a stack with two, still counts as one.
        detail.count = if *kind == "tag" { detail.count.saturating_add(part.count) } else { part.count };
        if let Some(bytes) = part.allocated {
            add(detail.allocated.get_or_insert(0), bytes);
        }
    }

    fn close(self, owner: Owner) -> Holding {
        let mut detail: Vec<Detail> = self.details.into_values().collect();
        detail.order_by_key(|detail| (std::cmp::Reverse(detail.rss), std::cmp::Reverse(detail.allocated)));
        Holding { owner, rss: self.rss, pss: self.pss, swap: self.swap, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::parse;
    use proptest::prelude::*;

    const MAPS: &str = "1000-3000 rw-p 0 00:00 0\n5000-9000 rw-p 0 00:00 0\n";

    #[test]
    fn only_changed_mappings_count_as_gone() {
        let weighed = Smaps::parse(&MAPS.replace("00:00 0\n", "00:00 0\nRss: 4 kB\n"));
        let remainder = |index, start, rss| Remainder { start, end: start + rss, index, rss };
        let remainders = vec![remainder(0, 0x1000, 4096), remainder(1, 0x5000, 8192)];
        let account = Account { remainders, ..Account::default() };
        assert_eq!(account.gone(&weighed, &parse(MAPS)), 0);
        assert_eq!(account.gone(&weighed, &parse(&MAPS.replace("9000", "8000"))), 8192);
        assert_eq!(account.gone(&weighed, &[]), 4096 + 8192);
    }

    proptest! {
        #[test]
        fn divided_weights_add_up(total in 0u64..1 << 50, weights in prop::collection::vec(0u64..1 << 50, 1..20)) {
            prop_assert_eq!(divide(total, &weights).iter().sum::<u64>(), total);
        }

        /// The sum is the RSS, however absurd the readings are.
        #[test]
        fn the_sum_is_the_rss(
            weights in prop::collection::vec((0u64..5000, 0u64..5000), 1..12),
            found in prop::collection::vec((0usize..14, 0usize..20, 0u64..1 << 40, any::<bool>()), 0..40),
        ) {
            let text: String = weights.iter().enumerate().map(|(n, (rss, swap))| {
                let (start, pss) = ((n + 1) << 32, rss / 2);
                let mapping = format!("{start:x}-{:x} rw-p 0 00:00 0", start + 4096);
                format!("{mapping}\nRss: {rss} kB\nPss: {pss} kB\nSwap: {swap} kB\n")
            }).collect();
            let smaps = Smaps::parse(&text);
            let mut ledger = Ledger::new(&smaps);
            for (index, owner, resident, named) in found {
                let name = if named { format!("n{owner}") } else { String::new() };
                let claim = Claim::new(0, 1, Owner::ALL[owner], "tag", &name);
                let part = LedgerEntry::of(&claim, (resident, resident / 3));
                ledger.enter(index, [LedgerEntry { allocated: Some(resident), ..part }]);
            }
            let account = ledger.close();
            let rss: u64 = weights.iter().map(|(rss, _)| rss * 1024).sum();
            let swap: u64 = weights.iter().map(|(_, swap)| swap * 1024).sum();
            prop_assert_eq!(account.rss, rss);
            prop_assert_eq!(account.holdings.iter().map(|holding| holding.rss).sum::<u64>(), rss);
            prop_assert_eq!(account.holdings.iter().map(|holding| holding.pss).sum::<u64>(), account.pss);
            prop_assert!(account.holdings.iter().map(|holding| holding.swap).sum::<u64>() <= swap);
            let shares = account.regions.iter().flat_map(|region| region.shares.iter().map(|(_, rss)| rss));
            prop_assert_eq!(shares.sum::<u64>(), rss);
            for holding in &account.holdings {
                prop_assert!(holding.detail.iter().map(|detail| detail.rss).sum::<u64>() <= holding.rss);
            }
        }
    }
}
