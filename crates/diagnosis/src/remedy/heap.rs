//! Remedies for the Java heap and for direct memory, which inherits the heap's ceiling by default.

use super::offers::Level;
use super::{Facts, NotOffered, Offer, changes};
use crate::owner::Owner;
use crate::scenario::Change;
use crate::units::{Bytes, MIB};

/// The options that set the heap's ceiling (man java, JDK 11–25).
pub(super) const CEILINGS: &[&str] =
    &["-Xmx", "MaxHeapSize", "MaxRAMPercentage", "MaxRAMFraction", "MaxRAM", "InitialRAMPercentage"];
/// With less direct memory than this, no separate ceiling is needed.
const DIRECT_LEAST: u64 = 16 * MIB;
/// The direct memory allowed under a heap ceiling, relative to the load's maximum.
const DIRECT_ROOM: f64 = 1.5;
/// The room above the live set shrinks by this ratio per level, but not below this many bytes and this share of the
/// live set: an untested load may need more.
const ROOM_RATIO: f64 = 1.3;
const ROOM_MIN: u64 = 4 * MIB;
const ROOM_SHARE_MIN: f64 = 0.25;
/// The heap's initial room in a search, as multiples of the live set and minimum MiB. The first pair for which the heap
/// is large enough applies. With three times the live set, a collector copies little (measured on six servers).
const FIRST_ROOMS: [(f64, u64); 2] = [(3.0, 32), (1.8, 20)];
/// The collection period of an idle G1 in ms, and how often it must fit into the rest for a trial to show its effect.
const PERIOD_MS: u32 = 5_000;
const PERIODS_MIN: f64 = 2.0;

pub(super) const DIRECT: &[Owner] =
    &[Owner::MallocDirect, Owner::MallocMmapped, Owner::MallocLive, Owner::MallocRetained];

/// Heap ceilings between its current size and its live set. The JVM applies the same ceiling to direct memory by
/// default (`VM.maxDirectMemory`, JDK 11–27), so each level sets that above the load's maximum, to test only the heap.
pub(super) fn ceilings(facts: &Facts) -> Result<Vec<Level>, NotOffered> {
    let Some(live) = facts.live else { return Err(NotOffered::Unknown("the live heap")) };
    let held = facts.heap();
    // Garbage keeps its direct memory until a collection, and a smaller heap is collected more often.
    let garbage = facts.direct.saturating_sub(facts.direct_live.unwrap_or(facts.direct));
    let room = whole_mib((facts.direct as f64 * DIRECT_ROOM) as u64);
    let is_free = facts.in_the_way(&["MaxDirectMemorySize"]).is_none();
    let level = |heap: u64| {
        let beside = is_free && facts.direct > DIRECT_LEAST && room > heap;
        let direct = beside.then_some(Change::DirectMax(Bytes(room)));
        let changes = [Change::HeapMax(Bytes(heap))].into_iter().chain(direct).collect();
        Level::of(heap, live, Offer::of(changes, held.saturating_sub(heap) + garbage))
    };
    let mut levels: Vec<Level> = values(live, held).into_iter().map(level).collect();
    // The JVM does not start if the user's initial heap exceeds the ceiling.
    let initial = facts.own(&["-Xms", "InitialHeapSize", "MinHeapSize"]).map(|text| (size(&text), text));
    if let Some((least, text)) = initial.max_by_key(|(size, _)| size.unwrap_or(u64::MAX)) {
        levels.retain(|level| least.is_some_and(|least| least <= level.ceiling.value));
        if levels.is_empty() {
            return Err(NotOffered::Chosen(text));
        }
    }
    let roomy = FIRST_ROOMS.iter().find_map(|(times, mib)| {
        let least = ((live as f64 * times) as u64).max(mib * MIB);
        levels.iter().rposition(|level| level.ceiling.room >= least)
    });
    if let Some(first) = roomy {
        levels[first].is_first = true;
    }
    Ok(levels)
}

/// Direct-memory ceilings between the load's maximum and the amount that a full collection at rest leaves. They are not
/// close to the latter, because running requests need more.
pub(super) fn direct_ceilings(facts: &Facts) -> Result<Vec<Level>, NotOffered> {
    let least = facts.direct_live.unwrap_or(0).saturating_add(DIRECT_LEAST);
    let level = |direct: u64| {
        let offer = Offer::of(vec![Change::DirectMax(Bytes(direct))], facts.direct.saturating_sub(direct));
        Level::of(direct, least, offer)
    };
    Ok(values(least, facts.direct).into_iter().map(level).collect())
}

/// Values between these two, largest first, in whole MiB.
fn values(need: u64, held: u64) -> Vec<u64> {
    let mut room = held.saturating_sub(need) as f64 / ROOM_RATIO;
    let mut values = Vec::new();
    while room >= (need as f64 * ROOM_SHARE_MIN).max(ROOM_MIN as f64) {
        values.push(whole_mib(need + room as u64));
        room /= ROOM_RATIO;
    }
    values.dedup();
    values
}

/// A heap that is resized in small steps. G1 in JDK 26 uses its CPU time instead (JDK-8238687).
pub(super) fn ratios(facts: &Facts) -> Result<Offer, NotOffered> {
    match facts.collector.as_deref() {
        Some("Serial" | "Parallel") => {}
        Some("G1") if facts.release.is_some_and(|[major, ..]| major < 26) => {}
        Some(other) => return Err(NotOffered::NotHere(format!("{other} does not use free ratios to size its heap"))),
        None => return Err(NotOffered::Unknown("the collector")),
    }
    Ok(Offer::of(vec![changes::jvm(changes::NARROW_RATIOS)], facts.heap().saturating_sub(facts.live.unwrap_or(0))))
}

/// Collections of an idle G1 (JEP 346).
pub(super) fn periodic(facts: &Facts) -> Result<Offer, NotOffered> {
    if facts.collector.as_deref() != Some("G1") {
        return Err(NotOffered::NotHere("the collector is not G1".to_owned()));
    }
    let seconds = f64::from(PERIOD_MS) / 1000.0;
    if facts.rest_s < seconds * PERIODS_MIN {
        let needs = seconds * PERIODS_MIN;
        return Err(NotOffered::NotHere(format!(
            "it works only when idle, but `rest` lasts {:.0} s; a `--rest` of {needs:.0} s would show its effect",
            facts.rest_s
        )));
    }
    let change = changes::collect_each(PERIOD_MS);
    Ok(Offer::of(vec![change], facts.heap().saturating_sub(facts.live.unwrap_or(0))))
}

/// Rounds up to multiples of 2 MiB, to which most collectors round a heap; to 8 MiB for larger heaps, because users
/// would not write `-Xmx163m`.
pub(super) fn whole_mib(bytes: u64) -> u64 {
    let step = if bytes < 64 * MIB { 2 * MIB } else { 8 * MIB };
    bytes.div_ceil(step).max(1) * step
}

/// The size in `-Xms64m` or `-XX:InitialHeapSize=64m`.
fn size(text: &str) -> Option<u64> {
    let value = text.rsplit_once('=').map(|(_, value)| value).or_else(|| text.strip_prefix("-Xms"))?;
    value.parse::<Bytes>().ok().map(|bytes| bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::Owner::JavaHeapUsed;

    fn facts(live_mib: u64, held_mib: u64) -> Facts {
        let owners = [(JavaHeapUsed, held_mib * MIB)].into();
        Facts { live: Some(live_mib * MIB), owners, ..Facts::default() }
    }

    #[test]
    fn ceiling_levels_fall_from_held_to_live_memory() {
        for (live, held) in [(1, 40), (12, 90), (100, 1500), (900, 1000), (5, 5_000)] {
            let levels = ceilings(&facts(live, held)).unwrap();
            assert!(levels.is_sorted_by(|loose, tight| loose.ceiling.value > tight.ceiling.value), "{levels:?}");
            assert!(levels.iter().all(|level| (live * MIB..held * MIB).contains(&level.ceiling.value)), "{levels:?}");
            let tightest = levels.last().map(|level| level.ceiling.room / MIB);
            assert!(tightest.is_none_or(|room| room >= (live / 4).max(4)), "{levels:?}");
            let firsts: Vec<u64> = levels.iter().filter(|of| of.is_first).map(|of| of.ceiling.room / MIB).collect();
            let has_room = |room: &u64| *room >= (live * 9 / 5).max(20) && *room <= (live * 5).max(48);
            assert_eq!(firsts.len(), usize::from(live < 900), "{live}");
            assert!(firsts.iter().all(has_room), "{live}: {firsts:?}");
        }
        assert_eq!(ceilings(&facts(50, 40)), Ok(Vec::new()));
    }

    #[test]
    fn ceilings_are_never_below_the_users_initial_heap() {
        let with = |initial: &str| {
            let facts = Facts { words: vec![initial.to_owned()], ..facts(10, 200) };
            ceilings(&facts).map(|levels| levels.iter().all(|level| level.ceiling.value >= 64 * MIB))
        };
        assert_eq!(with("-Xms64m"), Ok(true));
        assert_eq!(with("-Xms1g"), Err(NotOffered::Chosen("-Xms1g".to_owned())));
    }
}
