//! Converts an account to its record.

use crate::account::{Account, Owner, Prediction, Region, Remainder};
use crate::kernel::mapping::Mapping;
use crate::observe::glibc::{self, Walk};
use crate::observe::mallocng;
use crate::observe::smaps::Smaps;
use crate::record::{
    AccountRecord, DetailRecord, MallocRecord, OwnerRecord, RegionRecord, RemainderRecord, ShareRecord, WouldReturn,
};
use loadline_jvm::accounting::Accounted;
use std::collections::BTreeSet;

/// Maximum number of stretches without an owner to list.
const REMAINDERS_MAX: usize = 20;

/// The account's record; `regions` adds every mapping.
pub(crate) fn record(accounted: &Accounted, regions: bool) -> AccountRecord {
    let (account, seen) = (&accounted.account, &accounted.seen);
    let remainders = account.remainders.iter().take(REMAINDERS_MAX);
    AccountRecord {
        total_bytes: account.rss,
        pss_bytes: account.pss,
        owners: owners(account),
        unexplained_bytes: account.rss_of(Owner::Unexplained),
        unexplained: remainders.map(|remainder| describe(remainder, account, &seen.smaps)).collect(),
        would_return: would_return(&accounted.gc, &accounted.trim),
        malloc: match (&seen.walk, &seen.musl) {
            (_, Some(Ok(walk))) => Some(musl(walk, accounted)),
            (walk, _) => walk.as_ref().map(|walk| malloc(walk, accounted)),
        },
        regions: regions.then(|| account.regions.iter().map(|region| describe_region(region, &seen.smaps)).collect()),
        threads: None,
        pause_ms: accounted.pause.map(|pause| pause.as_secs_f64() * 1e3),
        took_ms: accounted.took.as_secs_f64() * 1e3,
        observer_bytes: None,
        told: None,
    }
}

fn owners(account: &Account) -> Vec<OwnerRecord> {
    let owner = |holding: &crate::account::Holding| OwnerRecord {
        name: holding.owner.name().to_owned(),
        rss_bytes: holding.rss,
        pss_bytes: holding.pss,
        swap_bytes: holding.swap,
        detail: holding
            .detail
            .iter()
            .filter(|detail| detail.rss > 0 || detail.allocated.is_some())
            .map(|detail| DetailRecord {
                kind: detail.kind.to_owned(),
                name: detail.name.clone(),
                count: detail.count,
                rss_bytes: detail.rss,
                allocated_bytes: detail.allocated,
            })
            .collect(),
    };
    account.holdings.iter().filter(|holding| holding.rss > 0 || holding.swap > 0).map(owner).collect()
}

fn would_return(gc: &Prediction, trim: &Prediction) -> WouldReturn {
    WouldReturn {
        gc_bytes: gc.bytes,
        gc_grown_bytes: gc.grown,
        gc_reason: gc.reason.name().to_owned(),
        gc_why: gc.why.clone(),
        trim_bytes: trim.bytes,
        trim_why: trim.why.clone(),
    }
}

fn malloc(walk: &Walk, accounted: &Accounted) -> MallocRecord {
    let mut record = MallocRecord { walk_errors: walk.errors.len() as u64, ..mmapped(accounted) };
    let mut arenas: Vec<u64> = walk.heaps.iter().map(|heap| heap.arena).collect();
    arenas.sort_unstable();
    arenas.dedup();
    record.arenas = arenas.len() as u64;
    for heap in &walk.heaps {
        record.system_bytes += heap.system;
        record.live_bytes += heap.live.bytes + heap.tagged.iter().map(|(_, chunks)| chunks.bytes).sum::<u64>();
        record.free_bytes += heap.free.bytes;
        record.tagged |= !heap.tagged.is_empty();
    }
    let counts = walk.heaps.iter().flat_map(|heap| heap.tagged.iter().map(|(_, chunks)| chunks).chain([&heap.live]));
    record.live_chunks = Some(counts.map(|chunks| chunks.count).sum());
    record
}

/// Resident bytes of free and used chunks in the JIT compiler threads' arenas; `compilers` has the words around each
/// one's variables. `None` if no compiler has an arena with a known address (the main arena has none). Also `None` if
/// all arenas with an address are compilers', because they then cannot be distinguished.
pub(super) fn arenas_of_compilers(accounted: &Accounted, compilers: &[Vec<u64>]) -> Option<(u64, u64)> {
    let heaps = &accounted.seen.walk.as_ref()?.heaps;
    let arenas: BTreeSet<u64> = heaps.iter().map(|heap| heap.arena).filter(|arena| *arena != 0).collect();
    let theirs: BTreeSet<u64> = glibc::arenas_of_threads(compilers, &arenas).into_iter().collect();
    let own = || heaps.iter().filter(|heap| theirs.contains(&heap.arena));
    let live = own().flat_map(|heap| heap.tagged.iter().map(|(_, chunks)| chunks).chain([&heap.live]));
    let sum = |sum: u64, bytes: u64| sum.saturating_add(bytes);
    (!theirs.is_empty() && theirs != arenas)
        .then(|| (own().map(|heap| heap.free.resident).fold(0, sum), live.map(|chunks| chunks.resident).fold(0, sum)))
}

fn musl(walk: &mallocng::Walk, accounted: &Accounted) -> MallocRecord {
    let (live, free) = (walk.live(), walk.free());
    let record = mmapped(accounted);
    MallocRecord {
        walk_errors: walk.broken.len() as u64,
        system_bytes: walk.system(),
        live_bytes: live.bytes,
        free_bytes: free.bytes,
        tagged: record.tagged || walk.groups.iter().any(|group| !group.tagged.is_empty()),
        groups: Some(walk.group_count()),
        live_chunks: Some(live.count),
        asked_bytes: Some(walk.asked.bytes),
        free_pages_bytes: Some(walk.free_pages()),
        lazy_free_bytes: Some(lazy_free(walk, &accounted.seen.smaps)),
        ..record
    }
}

/// Bytes that the kernel may reclaim from mappings with groups.
fn lazy_free(walk: &mallocng::Walk, smaps: &Smaps) -> u64 {
    let holds_group = |mapping: &Mapping| {
        let first = walk.groups.partition_point(|group| group.end <= mapping.start);
        walk.groups.get(first).is_some_and(|group| group.start < mapping.end)
    };
    smaps.mappings.iter().filter(|of| holds_group(&of.mapping)).map(|of| of.weight.lazy_free.0).sum()
}

/// The allocator, and its directly mapped chunks.
fn mmapped(accounted: &Accounted) -> MallocRecord {
    let mut record = MallocRecord {
        allocator: accounted.seen.allocator.map_or("unknown", |allocator| allocator.name()).to_owned(),
        ..MallocRecord::default()
    };
    for chunk in accounted.seen.chunks.values().flatten() {
        record.mmapped_bytes += chunk.end - chunk.start;
        record.mmapped_chunks += 1;
        record.tagged |= chunk.tag.is_some();
    }
    record
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn describe_region(region: &Region, smaps: &Smaps) -> RegionRecord {
    let weighed = &smaps.mappings[region.index];
    let (mapping, weight) = (&weighed.mapping, &weighed.weight);
    let share = |(owner, rss): &(Owner, u64)| ShareRecord { name: owner.name().to_owned(), rss_bytes: *rss };
    RegionRecord {
        start: hex(mapping.start),
        end: hex(mapping.end),
        perms: mapping.perms.to_string(),
        path: mapping.path.to_string(),
        rss_bytes: weight.rss.0,
        pss_bytes: weight.pss.0,
        swap_bytes: weight.swap.0,
        owners: region.shares.iter().map(share).collect(),
    }
}

/// A stretch without an owner, with its neighbors.
fn describe(remainder: &Remainder, account: &Account, smaps: &Smaps) -> RemainderRecord {
    let neighbour = |index: Option<usize>, touches: fn(&Mapping, &Remainder) -> bool| {
        let Some(mapping) = index.and_then(|index| smaps.mappings.get(index)).map(|weighed| &weighed.mapping) else {
            return "nothing".to_owned();
        };
        let owner = account
            .regions
            .iter()
            .find(|region| Some(region.index) == index)
            .and_then(|region| region.shares.first().map(|(owner, _)| owner.name().to_owned()));
        let what = match (&mapping.path, owner) {
            (path, _) if !path.is_empty() => {
                mapping.file().map_or(path.to_string(), |_| mapping.file_name().to_owned())
            }
            (_, Some(owner)) => owner,
            (_, None) => format!("{} {}", mapping.perms, mapping.size()),
        };
        if touches(mapping, remainder) { what } else { format!("a gap, then {what}") }
    };
    let mapping = &smaps.mappings[remainder.index].mapping;
    let before = if remainder.start > mapping.start { Some(remainder.index) } else { remainder.index.checked_sub(1) };
    let behind = if remainder.end < mapping.end { remainder.index } else { remainder.index + 1 };
    RemainderRecord {
        start: hex(remainder.start),
        end: hex(remainder.end),
        perms: mapping.perms.to_string(),
        rss_bytes: remainder.rss,
        pid: None,
        before: neighbour(before, |mapping, remainder| mapping.end >= remainder.start),
        behind: neighbour(Some(behind), |mapping, remainder| mapping.start <= remainder.end),
    }
}
