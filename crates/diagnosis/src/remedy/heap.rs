//! Remedies for the Java heap and for direct memory, whose ceiling the heap sets where nobody else does.

use super::{Facts, NotOffered, Offer, changes};
use crate::owner::Owner;
use crate::scenario::Change;
use crate::units::{Bytes, MIB};

/// Whatever sets the ceiling of the heap (man java, JDK 11–25).
pub(super) const CEILINGS: &[&str] =
    &["-Xmx", "MaxHeapSize", "MaxRAMPercentage", "MaxRAMFraction", "MaxRAM", "InitialRAMPercentage"];
/// Below this much, direct memory is nobody's trouble.
const DIRECT_LEAST: u64 = 16 * MIB;
/// The direct memory to allow beside a ceiling of the heap, as a multiple of the most that the load took.
const DIRECT_ROOM: f64 = 1.5;
/// The period after which an idle G1 collects, in ms, and how often it must fit into the rest for a trial to see it.
const PERIOD_MS: u32 = 5_000;
const PERIODS_MIN: f64 = 2.0;

/// Owners of direct memory.
pub(super) const DIRECT: &[Owner] =
    &[Owner::MallocDirect, Owner::MallocMmapped, Owner::MallocLive, Owner::MallocRetained];

/// A ceiling of the heap at so many times what lives in it, and with room for so many MiB of garbage at least. The JVM
/// gives direct memory the same ceiling, unless a flag sets another (`VM.maxDirectMemory`, JDK 11–27). This remedy sets
/// one above all that the load took, so that only the heap is tried.
pub(super) fn ceiling(facts: &Facts, factor: f64, room_mib: u64) -> Result<Offer, NotOffered> {
    let Some(live) = facts.live else { return Err(NotOffered::Unknown("what lives in the heap")) };
    let heap = whole_mib(((live as f64 * factor) as u64).max(live.saturating_add(room_mib * MIB)));
    let mut changes = vec![Change::HeapMax(Bytes(heap))];
    // An initial heap of the user's own above the ceiling keeps the JVM from starting.
    let mut initial = facts.own(&["-Xms", "InitialHeapSize", "MinHeapSize"]);
    if let Some(text) = initial.find(|text| size(text).is_none_or(|bytes| bytes > heap)) {
        return Err(NotOffered::Chosen(text));
    }
    let room = whole_mib((facts.direct as f64 * DIRECT_ROOM) as u64);
    if facts.direct > DIRECT_LEAST && room > heap && facts.in_the_way(&["MaxDirectMemorySize"]).is_none() {
        changes.push(Change::DirectMax(Bytes(room)));
    }
    Ok(Offer::of(changes, facts.heap().saturating_sub(heap)))
}

/// A ceiling of direct memory at this share of the most that the load took of it, and not near what a full collection
/// at rest leaves: requests under way need more than that.
pub(super) fn direct_ceiling(facts: &Facts, share: f64) -> Result<Offer, NotOffered> {
    let least = facts.direct_live.unwrap_or(0).saturating_add(DIRECT_LEAST);
    let direct = whole_mib(((facts.direct as f64 * share) as u64).max(least));
    Ok(Offer::of(vec![Change::DirectMax(Bytes(direct))], facts.direct.saturating_sub(direct)))
}

/// A heap that shrinks and grows in small steps. G1 of JDK 26 sizes itself by its CPU time instead (JDK-8238687).
pub(super) fn ratios(facts: &Facts) -> Result<Offer, NotOffered> {
    match facts.collector.as_deref() {
        Some("Serial" | "Parallel") => {}
        Some("G1") if facts.release.is_some_and(|[major, ..]| major < 26) => {}
        Some(other) => return Err(NotOffered::NotHere(format!("{other} does not size its heap by free ratios"))),
        None => return Err(NotOffered::Unknown("the collector")),
    }
    Ok(Offer::of(vec![changes::jvm(changes::NARROW_RATIOS)], facts.heap().saturating_sub(facts.live.unwrap_or(0))))
}

/// A collection of a G1 at rest (JEP 346).
pub(super) fn periodic(facts: &Facts) -> Result<Offer, NotOffered> {
    if facts.collector.as_deref() != Some("G1") {
        return Err(NotOffered::NotHere("the collector is not G1".to_owned()));
    }
    let seconds = f64::from(PERIOD_MS) / 1000.0;
    if facts.rest_s < seconds * PERIODS_MIN {
        let needs = seconds * PERIODS_MIN;
        return Err(NotOffered::NotHere(format!(
            "it acts at rest, and the rest lasts {:.0} s: one of {needs:.0} s (`--rest`) would show it",
            facts.rest_s
        )));
    }
    let change = changes::collect_each(PERIOD_MS);
    Ok(Offer::of(vec![change], facts.heap().saturating_sub(facts.live.unwrap_or(0))))
}

/// In steps of 2 MiB, to which the JVM rounds a heap with most collectors; larger ones in steps of 8 MiB, since nobody
/// writes `-Xmx163m`.
pub(super) fn whole_mib(bytes: u64) -> u64 {
    let step = if bytes < 64 * MIB { 2 * MIB } else { 8 * MIB };
    bytes.div_ceil(step).max(1) * step
}

/// The size in `-Xms64m` or `-XX:InitialHeapSize=64m`.
fn size(text: &str) -> Option<u64> {
    let value = text.rsplit_once('=').map(|(_, value)| value).or_else(|| text.strip_prefix("-Xms"))?;
    value.parse::<Bytes>().ok().map(|bytes| bytes.0)
}
