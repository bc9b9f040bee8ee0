//! Finds direct memory among malloc's chunks: as many bytes as the JDK and Netty count, starting with chunks that have
//! their own mappings, as large buffers do.

use super::heap::share_of;
use super::ledger::{Account, Detail};
use crate::owner::Owner;
use loadline_base::order::Order as _;

/// Owners whose chunks may be direct buffers, in the order of the search.
const CHUNKS: [Owner; 4] = [Owner::MallocMmapped, Owner::MallocNonHotspot, Owner::MallocLive, Owner::MallocUnsplit];
/// NMT's tag for direct memory.
const TAG: &str = "Other";

/// Moves up to `bytes` of the chunks in use to direct memory. A buffer that was never written has no pages, so another
/// chunk is counted instead.
pub fn split_direct(account: &mut Account, bytes: u64) {
    for owner in CHUNKS {
        let left = bytes.saturating_sub(account.rss_of(Owner::MallocDirect));
        move_chunks(account, owner, Owner::MallocDirect, left);
    }
}

/// Moves up to `bytes` of one owner's chunks to another owner.
pub(super) fn move_chunks(account: &mut Account, from: Owner, to: Owner, bytes: u64) {
    let Some(chunks) = account.holdings.iter_mut().find(|holding| holding.owner == from) else { return };
    let mut moved = chunks.take(to, bytes);
    let (mut left, mut to_move) = (moved.rss, moved.rss);
    for detail in chunks.detail.iter_mut().filter(|detail| detail.name == TAG) {
        let moved_rss = detail.rss.min(left);
        let [allocated, count] =
            [detail.allocated.unwrap_or(0), detail.count].map(|all| share_of(all, moved_rss, detail.rss));
        let known = detail.allocated.map(|_| allocated);
        moved.detail.push(Detail { rss: moved_rss, allocated: known, count, ..detail.clone() });
        (detail.rss, detail.count, left) = (detail.rss - moved_rss, detail.count - count, left - moved_rss);
        detail.allocated = detail.allocated.map(|all| all - allocated);
    }
    for region in &mut account.regions {
        move_share(&mut region.shares, from, to, &mut to_move);
    }
    match account.holdings.iter_mut().find(|holding| holding.owner == to) {
        Some(known) => {
            (known.rss, known.pss, known.swap) =
                (known.rss + moved.rss, known.pss + moved.pss, known.swap + moved.swap);
            known.detail.append(&mut moved.detail);
        }
        None => account.holdings.push(moved),
    }
    account.settle();
}

/// Moves up to `bytes` of an owner's share of a mapping to another owner.
fn move_share(shares: &mut Vec<(Owner, u64)>, from: Owner, to: Owner, bytes: &mut u64) {
    let Some(share) = shares.iter_mut().find(|share| share.0 == from) else { return };
    let moved = share.1.min(*bytes);
    (share.1, *bytes) = (share.1 - moved, *bytes - moved);
    match shares.iter_mut().find(|share| share.0 == to) {
        _ if moved == 0 => {}
        Some(direct) => direct.1 += moved,
        None => shares.push((to, moved)),
    }
    shares.retain(|share| share.1 > 0);
    shares.largest_first(|share| share.1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Holding, Region};
    use std::collections::BTreeMap;

    #[test]
    fn large_chunks_are_taken_first_up_to_the_available_bytes() {
        let chunks = |owner, rss| Holding { owner, rss, pss: rss / 2, swap: 0, detail: Vec::new() };
        let split = |bytes| {
            let holdings = vec![chunks(Owner::MallocLive, 100), chunks(Owner::MallocMmapped, 40)];
            let shares = holdings.iter().map(|holding| (holding.owner, holding.rss)).collect();
            let regions = vec![Region { index: 0, shares }];
            let mut account = Account { holdings, regions, ..Account::default() };
            split_direct(&mut account, bytes);
            let rows: BTreeMap<Owner, u64> = account.holdings.iter().map(|of| (of.owner, of.rss)).collect();
            assert_eq!(account.regions[0].shares.iter().copied().collect::<BTreeMap<_, _>>(), rows);
            let held = |owner| account.holding(owner).map(|holding| (holding.rss, holding.pss));
            [Owner::MallocDirect, Owner::MallocLive, Owner::MallocMmapped].map(held)
        };
        assert_eq!(split(0), [None, Some((100, 50)), Some((40, 20))]);
        assert_eq!(split(30), [Some((30, 15)), Some((100, 50)), Some((10, 5))]);
        assert_eq!(split(60), [Some((60, 30)), Some((80, 40)), None]);
        assert_eq!(split(500), [Some((140, 70)), None, None]);
        // Direct memory gets its row even if malloc could not be split.
        let mut whole = Account { holdings: vec![chunks(Owner::MallocUnsplit, 50)], ..Account::default() };
        split_direct(&mut whole, 30);
        let rss = [Owner::MallocDirect, Owner::MallocUnsplit].map(|owner| whole.rss_of(owner));
        assert_eq!(rss, [30, 20]);
    }
}
