//! The Java heap: where it is committed, and its row split into what holds objects and what does not.

use super::close::backed;
use super::evidence::Said;
use super::ledger::{Account, Holding};
use super::tables::is_inaccessible;
use crate::kernel::mapping::Mapping;
use crate::observe::pagemap::Run;
use crate::owner::Owner;
use loadline_base::order::Order as _;

/// Returns the committed ranges of the heap reserved from `start` to `end`, as offsets from its start.
pub(super) fn committed<'a>(maps: impl Iterator<Item = &'a Mapping>, start: u64, end: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    // A heap that ends before it begins comes of a damaged reply of the JVM.
    let within = |mapping: &&Mapping| start < end && mapping.start < end && mapping.end > start;
    for mapping in maps.filter(within).filter(|mapping| !is_inaccessible(mapping)) {
        let run = (mapping.start.max(start) - start, mapping.end.min(end) - start);
        match runs.last_mut() {
            Some(last) if last.1 == run.0 => last.1 = run.1,
            _ => runs.push(run),
        }
    }
    runs
}

/// Resident bytes of the Java heap that hold objects: by addresses where the JVM says where objects lie, else as many
/// as are in use (ZGC, whose heap may be mapped several times: then as many times over). `page` is the size of a page,
/// `rss` and `pss` are the heap's.
pub fn used_resident(said: &Said, runs: &[Run], page: u64, (rss, pss): (u64, u64)) -> Option<u64> {
    let ranges = said.info.as_ref().map(|info| info.used_ranges.as_slice()).unwrap_or_default();
    if !ranges.is_empty() {
        // Objects begin and end within pages, which then are in use as a whole.
        let whole =
            |(start, end): &(u64, u64)| (start & !(page - 1), end.checked_next_multiple_of(page).unwrap_or(u64::MAX));
        let mut at = 0;
        let used = ranges.iter().map(whole).map(|(start, end)| {
            let bytes = backed(runs, start.max(at), end.max(at)).0;
            at = at.max(end);
            bytes
        });
        return Some(used.fold(0, u64::saturating_add));
    }
    Some(share_of(rss, said.heap?.used.0, pss))
}

/// The share of `whole` that `part`, at most all, is of `all`; 0 of none.
pub(super) fn share_of(whole: u64, part: u64, all: u64) -> u64 {
    // Never more than `whole`, which fits.
    u64::try_from(u128::from(whole) * u128::from(part.min(all)) / u128::from(all.max(1))).unwrap_or(whole)
}

/// Divides the Java heap: `used` resident bytes hold objects, all reachable where `live`; the rest is free-committed.
pub fn split_heap(account: &mut Account, used: u64, live: bool) {
    let Some(at) = account.holdings.iter().position(|holding| holding.owner == Owner::JavaHeap) else { return };
    let mut free = account.holdings.remove(at);
    // The details of the whole heap belong to neither of its two halves.
    let used = free.take(if live { Owner::JavaHeapLive } else { Owner::JavaHeapUsed }, used);
    (free.owner, free.detail) = (Owner::JavaHeapFree, Vec::new());
    account.holdings.extend([used, free]);
    account.settle();
}

impl Holding {
    /// Takes up to so many of its resident bytes for another owner, with their share of the rest.
    pub(super) fn take(&mut self, owner: Owner, rss: u64) -> Self {
        let rss = rss.min(self.rss);
        let (pss, swap) = (share_of(self.pss, rss, self.rss), share_of(self.swap, rss, self.rss));
        (self.rss, self.pss, self.swap) = (self.rss - rss, self.pss - pss, self.swap - swap);
        Self { owner, rss, pss, swap, detail: Vec::new() }
    }
}

impl Account {
    /// Leaves out owners that hold nothing any more, and puts the others in order.
    pub(super) fn settle(&mut self) {
        self.holdings.retain(|holding| holding.rss > 0 || holding.pss > 0 || holding.swap > 0);
        self.holdings.order_by_key(|holding| holding.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::addresses::JvmAddresses;

    #[test]
    fn a_page_with_an_object_is_in_use_as_a_whole() {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            let start = 1 << 30;
            let used_ranges = vec![(start + page + 8, start + page + 16), (start + 3 * page, start + 3 * page + 8)];
            let info = JvmAddresses { used_ranges, ..JvmAddresses::default() };
            let said = Said { info: Some(info), ..Said::default() };
            let runs = [Run { start, end: start + 8 * page, swapped: false }];
            assert_eq!(used_resident(&said, &runs, page, (8 * page, 8 * page)), Some(2 * page));
        }
    }
}
