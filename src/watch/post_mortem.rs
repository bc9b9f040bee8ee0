//! The post-mortem of a JVM, from its history.

use super::account::{self, accounts_beside};
use super::bounds::Bounds;
use super::column::Column;
use super::course::{changes, course};
use super::history::{Past, Tier};
use super::sample::unreclaimable;
use super::shown::{THREAD_BYTES, by_counters, shown};
use super::verdicts::{Precedents, Thing, judge, leaves_little};
use crate::growth::Ladder;
use crate::record::{DeathCause, EndKind, GrowthWord, PostMortem, WatchChange, WatchOwner};
use loadline_base::order::Order as _;
use std::path::Path;

/// Time spans in its plot.
const STRETCHES: usize = 240;
/// Growth by a smaller share of the limit does not explain reaching it.
const GREW_SHARE: f64 = 0.1;
/// The live set grew if its last third exceeds its first by this factor.
const LIVE_GREW: f64 = 1.1;
/// The minimum number of floors for that verdict.
const LIVE_FLOORS: usize = 6;
/// The suggested limit relative to the peak.
const HEADROOM: f64 = 1.1;
/// The default code cache (`ReservedCodeCacheSize`, JDK 11 to 25).
const CODE_CACHE_BYTES: u64 = 240 << 20;

/// Describes the end, the last memory use, the growth before it, and why the JVM reached its limit.
pub fn post_mortem(past: &Past) -> PostMortem {
    let kept = &past.kept;
    let samples = past.cells(Tier::Samples);
    let last = samples.last();
    let memory = last.and_then(|cell| cell.most(Column::Limit)).unwrap_or(kept.bounds.memory);
    let bounds = Bounds { memory, ..kept.bounds };
    let verdicts = judge(&Ladder::default(), past, &bounds, &Precedents::default());
    let mut told = PostMortem {
        name: kept.name.clone(),
        pid: kept.pid,
        started_unix_s: kept.started_unix_s,
        ran: kept.command.clone(),
        version: kept.version.clone(),
        collector: kept.collector.clone(),
        limit_bytes: memory,
        growth: verdicts.growth,
        spoilt: past.spoilt as u64,
        ..PostMortem::default()
    };
    if let Some(last) = last {
        told.age_s = last.number as f64 * past.cell_s(Tier::Samples);
        told.last = shown(&last.sample());
        told.owners = by_counters(&told.last);
    }
    if let Some(end) = &kept.end {
        told.charge.clone_from(&end.charge);
        told.end = if end.killed.is_some() { EndKind::Killed } else { EndKind::Ended };
        if let Some(killed) = &end.killed {
            told.killed_by.clone_from(&killed.cgroup);
            told.source.clone_from(&killed.source);
            told.killed_anon_bytes = killed.anon_bytes;
        }
    }
    told.changes = changes(past);
    told.course = course(past, &bounds, STRETCHES);
    told.grew = grew(&told.changes, memory);
    told.ceilings_bytes = ceilings(&bounds, &told);
    // A limit that caused a kill was reached, even if no sample shows it.
    let reached = told.killed_by.as_ref().is_some_and(|cgroup| !cgroup.is_empty());
    let held = most_held(past).max(if reached { memory } else { 0 });
    let near = told.end == EndKind::Killed || leaves_little(held, memory);
    let exceeds = told.ceilings_bytes.is_none_or(|ceilings| ceilings > memory);
    let native = told.grew.as_ref().is_some_and(|grew| grew.name == Thing::Rest.name());
    let others = told.charge.as_ref().is_some_and(|charge| charge.others_bytes > charge.jvm_bytes);
    told.cause = match (near, told.growth.verdict) {
        (false, _) => DeathCause::None,
        (true, GrowthWord::Grows) => DeathCause::Leak,
        (true, _) if others => DeathCause::OtherProcesses,
        (true, _) if native => DeathCause::Native,
        (true, _) if exceeds && live_is_flat(past) => DeathCause::Ceilings,
        (true, _) => DeathCause::Unknown,
    };
    if told.cause == DeathCause::Ceilings {
        told.needed_bytes = told.ceilings_bytes;
    } else if told.cause != DeathCause::Leak {
        told.needed_bytes = Some((held as f64 * HEADROOM) as u64);
    }
    told
}

/// Adds the accounts next to its history.
pub fn add_accounts(told: &mut PostMortem, history: &Path) {
    let accounts = accounts_beside(history);
    told.accounts = accounts.iter().map(|account| account.path.display().to_string()).collect();
    told.weighed_at_s = accounts.iter().map(|account| account.age_s as f64).collect();
    told.account = accounts.last().and_then(account::read);
    if let Some(last) = &mut told.account {
        last.age_s = (told.age_s - last.at_age_s).max(0.0);
    }
    let first = accounts.first().filter(|_| accounts.len() > 1).and_then(account::read);
    let Some((first, last)) = first.zip(told.account.as_ref()) else { return };
    let held = |owners: &[WatchOwner], name: &str| {
        owners.iter().find(|owner| owner.name == name).map_or(0, |owner| owner.bytes)
    };
    let gone = first.owners.iter().filter(|owner| held(&last.owners, &owner.name) == 0);
    let change = |owner: &WatchOwner| WatchChange {
        over_s: (last.at_age_s - first.at_age_s) as u64,
        name: owner.name.clone(),
        before_bytes: held(&first.owners, &owner.name),
        after_bytes: held(&last.owners, &owner.name),
    };
    told.by_account = last.owners.iter().chain(gone).map(change).collect();
    told.by_account.largest_first(|change| change.after_bytes as i128 - change.before_bytes as i128);
}

/// The part with the largest growth over the longest known time, if significant; skips parts that contain others.
fn grew(changes: &[WatchChange], limit: u64) -> Option<WatchChange> {
    let longest = changes.iter().map(|change| change.over_s).max()?;
    let by = |change: &&WatchChange| change.after_bytes.saturating_sub(change.before_bytes);
    let whole = [Thing::Memory.name(), "java_heap", "files"];
    let parts = changes.iter().filter(|change| change.over_s == longest && !whole.contains(&change.name.as_str()));
    parts.max_by_key(by).filter(|change| by(change) as f64 >= GREW_SHARE * limit as f64).cloned()
}

/// The maximum unreclaimable memory in all records.
fn most_held(past: &Past) -> u64 {
    let cells = Tier::ALL.into_iter().flat_map(|tier| past.cells(tier));
    cells.filter_map(|cell| unreclaimable(|column| cell.most(column))).max().unwrap_or(0)
}

/// Whether the heap left by old collections has not grown: compares the minima of the first and last third of the last
/// day, or of the last hour for a young JVM.
fn live_is_flat(past: &Past) -> bool {
    let of = |tier| past.cells(tier).iter().filter_map(|cell| cell.least(Column::HeapFloor)).collect::<Vec<u64>>();
    let floors = [Tier::Minutes, Tier::Samples].map(of).into_iter().find(|floors| floors.len() >= LIVE_FLOORS);
    let Some(floors) = floors else { return false };
    let third = floors.len() / 3;
    let least = |of: &[u64]| of.iter().copied().min();
    match (least(&floors[..third]), least(&floors[floors.len() - third..])) {
        (Some(first), Some(last)) => last as f64 <= LIVE_GREW * first as f64,
        _ => false,
    }
}

/// The bytes that the JVM's own settings allow; `None` if its heap's bound is unknown. Unbounded metaspace counts with
/// its current size.
fn ceilings(bounds: &Bounds, told: &PostMortem) -> Option<u64> {
    let direct = bounds.direct.or(bounds.heap);
    let metaspace = bounds.metaspace.or(told.last.metaspace_bytes).unwrap_or(0);
    let threads = told.last.threads.unwrap_or(0).saturating_mul(THREAD_BYTES);
    let parts = [bounds.heap?, direct?, metaspace, CODE_CACHE_BYTES, threads];
    Some(parts.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::WatchCharge;
    use crate::watch::Sample;
    use crate::watch::history::History;
    use crate::watch::kept::{End, Kept, KilledBy};

    const MIB: u64 = 1 << 20;

    /// A life of this many hours in 1 GiB, with an observed end. `held` returns heap and direct memory by hour.
    fn life(hours: u64, heap_max_mib: u64, held: impl Fn(f64) -> (u64, u64), killed: bool) -> PostMortem {
        life_beside(None, hours, heap_max_mib, held, killed)
    }

    /// The same, with the charge at the last reading.
    fn life_beside(
        charge: Option<WatchCharge>,
        hours: u64,
        heap_max_mib: u64,
        held: impl Fn(f64) -> (u64, u64),
        killed: bool,
    ) -> PostMortem {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.history");
        let kept = Kept { name: "shop".to_owned(), pid: 7, every_ms: 10_000, ..Kept::default() };
        let mut history = History::open(&path, &kept).unwrap();
        for turn in 0..hours * 360 {
            let (heap, direct) = held(turn as f64 / 360.0);
            let mut sample = Sample::at(turn * 10_000);
            sample.set(Column::HeapFloor, heap * MIB);
            sample.set(Column::HeapCommitted, heap_max_mib * MIB);
            sample.set(Column::OldCollections, turn / 60);
            sample.set(Column::Direct, direct * MIB);
            sample.set(Column::Threads, 40);
            sample.set(Column::RssAnon, (heap + direct + 200) * MIB);
            sample.set(Column::Limit, 1024 * MIB);
            history.add(&sample).unwrap();
        }
        let by = KilledBy { cgroup: Some("/shop".to_owned()), anon_bytes: None, source: "kernel log".to_owned() };
        let end = End { age_ms: hours * 3_600_000, killed: killed.then_some(by), charge };
        let bounds = Bounds { memory: 1024 * MIB, heap: Some(heap_max_mib * MIB), ..Bounds::default() };
        history.bound(bounds).unwrap();
        history.end(end).unwrap();
        post_mortem(&Past::read(&path).unwrap())
    }

    #[test]
    fn leaks_and_excessive_ceilings_are_distinguished() {
        let leak = life(40, 512, |hour| (100, 20 + (17.0 * hour) as u64), true);
        assert_eq!((leak.end, leak.cause, leak.needed_bytes), (EndKind::Killed, DeathCause::Leak, None), "{leak:#?}");
        assert_eq!(leak.growth.owner.as_deref(), Some("direct"));
        let hour = leak.changes.iter().find(|of| of.over_s == 3600 && of.name == "direct").unwrap();
        assert!((16..=18).contains(&((hour.after_bytes - hour.before_bytes) / MIB)), "{hour:?}");
        // Heap and direct memory may each use 900 MiB; the live set is constant, and a burst of buffers causes the
        // kill.
        let burst = |hour: f64| if hour > 39.9 { (100, 700) } else { (100, 50) };
        let ceilings = life(40, 900, burst, true);
        assert_eq!(
            (ceilings.cause, ceilings.killed_by.as_deref()),
            (DeathCause::Ceilings, Some("/shop")),
            "{ceilings:#?}"
        );
        assert_eq!(ceilings.needed_bytes, ceilings.ceilings_bytes);
        assert!(ceilings.ceilings_bytes.unwrap() > 2000 * MIB);
        let helpers = WatchCharge { jvm_bytes: 300 * MIB, others_bytes: 700 * MIB, ..WatchCharge::default() };
        let beside = life_beside(Some(helpers.clone()), 30, 512, |_| (100, 20), true);
        assert_eq!((beside.cause, beside.charge), (DeathCause::OtherProcesses, Some(helpers)));
        assert!(beside.needed_bytes.unwrap() > 1024 * MIB, "the need exceeds the limit because the limit was reached");
        let calm = life(30, 512, |_| (100, 20), false);
        assert_eq!((calm.end, calm.cause), (EndKind::Ended, DeathCause::None));
    }
}
