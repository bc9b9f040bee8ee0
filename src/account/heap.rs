//! Splits the Java heap's row into what holds objects and what does not.

use super::ledger::{Account, Holding};
use super::owner::Owner;

/// Divides the Java heap: `used` resident bytes hold objects, all reachable where `live`; the rest is free-committed.
pub fn split_heap(account: &mut Account, used: u64, live: bool) {
    let Some(at) = account.holdings.iter().position(|holding| holding.owner == Owner::JavaHeap) else { return };
    let heap = account.holdings.remove(at);
    let owner = if live { Owner::JavaHeapLive } else { Owner::JavaHeapUsed };
    let rss = used.min(heap.rss);
    let part = |whole: u64| match heap.rss {
        0 => 0,
        all => u64::try_from(u128::from(whole) * u128::from(rss) / u128::from(all)).unwrap_or(0),
    };
    let (pss, swap) = (part(heap.pss), part(heap.swap));
    let used = Holding { owner, rss, pss, swap, detail: heap.detail };
    let free = Holding {
        owner: Owner::JavaHeapFree,
        rss: heap.rss - rss,
        pss: heap.pss - pss,
        swap: heap.swap - swap,
        detail: Vec::new(),
    };
    account.holdings.extend([used, free]);
    account.holdings.retain(|holding| holding.rss > 0 || holding.swap > 0);
    account.holdings.sort_by_key(|holding| holding.owner);
}
