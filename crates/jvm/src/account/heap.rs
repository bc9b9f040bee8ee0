//! The Java heap: where it is committed, and how its row splits into memory with and without objects.

use super::close::backed;
use super::evidence::Said;
use super::ledger::{Account, Holding};
use super::tables::is_inaccessible;
use crate::kernel::mapping::Mapping;
use crate::observe::addresses::{JvmAddresses, JvmRange, Purpose};
use crate::observe::hsperfdata::HeapSizes;
use crate::observe::pagemap::Run;
use crate::owner::Owner;
use loadline_base::order::Order as _;

/// Returns the committed ranges of the heap reserved from `start` to `end`, as offsets from its start.
pub(super) fn committed<'a>(maps: impl Iterator<Item = &'a Mapping>, start: u64, end: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    // A heap that ends before it begins comes from a damaged reply.
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

/// Locates the heap by its sizes alone: the only stretch of private memory (or of the class archive in it) whose length
/// is the reserved size and whose accessible part is the committed size. `maps` is in address order.
pub fn located_by_size(maps: &[Mapping], sizes: &HeapSizes) -> Option<JvmAddresses> {
    let is_part = |mapping: &Mapping| mapping.path.is_empty() || mapping.path.ends_with(".jsa");
    let fits = |first: usize, reserved: u64| {
        let start = maps[first].start;
        let end = start.checked_add(reserved)?;
        let last = maps.binary_search_by_key(&end, |mapping| mapping.end).ok().filter(|last| *last >= first)?;
        let stretch = &maps[first..=last];
        let is_whole = stretch.iter().all(is_part) && stretch.windows(2).all(|pair| pair[0].end == pair[1].start);
        let committed: u64 = committed(stretch.iter(), start, end).iter().map(|(from, to)| to - from).sum();
        (is_whole && committed == sizes.committed).then_some((start, end))
    };
    let lengths = sizes.reserved.into_iter().filter(|reserved| *reserved > 0 && sizes.committed > 0);
    let mut found: Vec<_> =
        lengths.flat_map(|reserved| (0..maps.len()).filter_map(move |first| fits(first, reserved))).collect();
    found.dedup();
    let &[(start, end)] = found.as_slice() else { return None };
    let name = String::new();
    let range = JvmRange { start, end, committed_end: None, purpose: Purpose::JavaHeap, name };
    Some(JvmAddresses { ranges: vec![range], heap_reserved: Some((start, end)), ..JvmAddresses::default() })
}

/// Resident bytes of the Java heap that contain objects: by address if the JVM reports where objects are, otherwise as
/// many bytes as are in use. ZGC may map its heap several times, and every mapping is counted. `page` is the page size;
/// `rss` and `pss` are the heap's.
pub fn used_resident(said: &Said, runs: &[Run], page: u64, (rss, pss): (u64, u64)) -> Option<u64> {
    let ranges = said.info.as_ref().map(|info| info.used_ranges.as_slice()).unwrap_or_default();
    if !ranges.is_empty() {
        // Objects begin and end inside pages, and each such page counts in full.
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

/// `whole` times `part / all`, with `part` capped at `all`; 0 if `all` is 0.
pub(super) fn share_of(whole: u64, part: u64, all: u64) -> u64 {
    // At most `whole`, so the result fits.
    u64::try_from(u128::from(whole) * u128::from(part.min(all)) / u128::from(all.max(1))).unwrap_or(whole)
}

/// Splits the heap: `used` resident bytes contain objects, all reachable if `live`; the others are committed but free.
pub fn split_heap(account: &mut Account, used: u64, live: bool) {
    let Some(at) = account.holdings.iter().position(|holding| holding.owner == Owner::JavaHeap) else { return };
    let mut free = account.holdings.remove(at);
    // The details describe the whole heap, so neither half keeps them.
    let used = free.take(if live { Owner::JavaHeapLive } else { Owner::JavaHeapUsed }, used);
    (free.owner, free.detail) = (Owner::JavaHeapFree, Vec::new());
    account.holdings.extend([used, free]);
    account.settle();
}

impl Holding {
    /// Moves up to `rss` resident bytes to another owner, with a proportional share of PSS and swap.
    pub(super) fn take(&mut self, owner: Owner, rss: u64) -> Self {
        let rss = rss.min(self.rss);
        let (pss, swap) = (share_of(self.pss, rss, self.rss), share_of(self.swap, rss, self.rss));
        (self.rss, self.pss, self.swap) = (self.rss - rss, self.pss - pss, self.swap - swap);
        Self { owner, rss, pss, swap, detail: Vec::new() }
    }
}

impl Account {
    /// Drops owners that no longer hold anything, and sorts the rest.
    pub(super) fn settle(&mut self) {
        self.holdings.retain(|holding| holding.rss > 0 || holding.pss > 0 || holding.swap > 0);
        self.holdings.order_by_key(|holding| holding.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping;

    /// JDK 17, G1, `-Xmx256m`: archived objects are mapped into the heap. A malloc heap has the same shape.
    #[test]
    fn an_unreported_heap_is_located_by_both_sizes() {
        let text = "f0000000-f9400000 rw-p 0 00:00 0 \nf9400000-ffe00000 ---p 0 00:00 0 \n\
                    ffe00000-ffe75000 rw-p c77000 fe:00 7 /jdk/lib/server/classes.jsa\nffe75000-100000000 rw-p 0 00:00 0 \n\
                    7f0000000000-7f0000021000 rw-p 0 00:00 0 \n7f0000021000-7f0010000000 ---p 0 00:00 0 \n";
        let maps = mapping::parse(text);
        let located = |maps: &[Mapping], reserved, committed| {
            located_by_size(maps, &HeapSizes { reserved, committed })?.heap_reserved
        };
        let (reserved, committed) = (256 << 20, 150 << 20);
        let heap = Some((0xf000_0000, 0x1_0000_0000));
        assert_eq!(located(&maps, [2 * reserved, reserved], committed), heap, "G1 reports the reserved size twice");
        assert_eq!(located(&maps, [reserved, reserved / 3], committed), heap, "both generations are added up");
        assert_eq!(located(&maps, [reserved; 2], committed + 4096), None);
        assert_eq!(located(&maps, [reserved - 4096; 2], committed), None);
        assert_eq!(located(&maps, [0; 2], 0), None);
        let twice = mapping::parse(&text.replace("0021000", "9600000"));
        assert_eq!(located(&twice, [reserved; 2], committed), None, "two matching ranges are ambiguous");
    }

    #[test]
    fn a_page_with_an_object_counts_in_full() {
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
