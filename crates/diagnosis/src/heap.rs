//! The Java heap: resident but free, much larger than the live set, or exhausted.

use super::facts::{Facts, holds, share};
use super::found::{first, found};
use super::{ceilings, live};
use crate::doubt::MemoryPool;
use crate::owner::Owner;
use crate::record::{Finding, FindingRecord, LiveBy, Mark, allocated_per_s_max, heap_with_room, whole};
use crate::remedy::changes::{NARROW_RATIOS, collect_each, jvm};
use crate::scenario::{Change, MarkPoint};
use crate::units::Bytes;

/// For a smaller share of RSS, it is not worth changing when the heap shrinks.
const FREE_SHARE_MIN: f64 = 0.05;
/// Small servers' heaps are several times their live set, with little to gain.
const GAIN_SHARE_MIN: f64 = 0.05;
/// This many times the live set is far above it.
const FAR_TIMES: u64 = 4;
/// Collectors whose counters include everything that a collection left; generational ZGC's counters include only the
/// old generation.
const COUNT_WHAT_IS_LEFT: [&str; 3] = ["Serial", "Parallel", "G1"];

/// After a rest, part of the heap is resident but empty. In an account, this is what a full GC would return, or all
/// of it if unknown. Source: JEP 346 (G1, JDK 12: `G1PeriodicGCInterval`). The man page of `java` 25 recommends ratios
/// of 5 and 10 and `-ShrinkHeapInSteps` for footprint. In vcell #1899, one full GC cut memory from 1,934 to 1,032 MiB.
/// Since JDK 26, G1 ignores ratios (JDK-8238687). Heaps with such ratios ran out of memory under spikes (quarkus
/// #39084), so a trial should include a spike.
pub(super) fn free(facts: &Facts) -> Option<FindingRecord> {
    let at_rest = facts.at(MarkPoint::Rested).and_then(|mark| Some((mark, mark.account.as_ref()?)));
    let rested = at_rest.is_some();
    let weighed = || facts.weighed().filter(|_| facts.phases.is_empty());
    let (mark, account) = at_rest.filter(|(mark, _)| mark.processes.is_empty()).or_else(weighed)?;
    let free_bytes = holds(account, Owner::JavaHeapFree);
    let gain = if rested { Some(free_bytes) } else { account.would_return.gc_bytes.map(|bytes| bytes.min(free_bytes)) };
    if share(gain.unwrap_or(free_bytes), account.total_bytes) < FREE_SHARE_MIN {
        return None;
    }
    let fixed = fixed_by(facts, mark.heap.committed_bytes);
    let remedies = if fixed.is_some() { Vec::new() } else { remedies(facts) };
    let moment = if rested { " after the idle phase" } else { "" };
    let of = mark.heap.committed_bytes.map(|bytes| format!(" of the {} committed Java heap", Bytes(bytes)));
    let of = of.unwrap_or_else(|| " of the Java heap".to_owned());
    let unknown = if gain.is_none() { "; how much of it a full GC would return is unknown" } else { "" };
    let text = format!("{}{of} is resident but holds no objects{moment}{unknown}", Bytes(free_bytes));
    let next = match (fixed, first(&remedies)) {
        (Some(option), _) => format!("your `{option}` keeps it: the collector returns only memory above that size"),
        (None, Some(first)) => {
            format!("try `{first}`, and include a spike in the load, because a shrunken heap must grow again")
        }
        (None, None) => "lower `-Xmx`; this collector has no option that returns memory sooner".to_owned(),
    };
    let finding = Finding::HeapFree { free_bytes, committed_bytes: mark.heap.committed_bytes, rested };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: free_bytes, gain_bytes_max: gain, remedies, ..found })
}

/// The user's option that prevents the heap from shrinking.
fn fixed_by(facts: &Facts, committed: Option<u64>) -> Option<&'static str> {
    let least = ["InitialHeapSize", "MinHeapSize"].into_iter().find(|name| {
        let bytes = facts.flags.number(name).or_else(|| facts.marks.last()?.heap.committed_bytes);
        facts.flags.is_typed(name) && bytes.zip(committed).is_some_and(|(bytes, committed)| bytes >= committed)
    });
    let touched = || facts.flags.is("AlwaysPreTouch", "true").then_some("-XX:+AlwaysPreTouch");
    least.map(|_| "-Xms").or_else(touched)
}

fn remedies(facts: &Facts) -> Vec<Change> {
    let flags = &facts.flags;
    let ratios = flags.is_free("MinHeapFreeRatio") && flags.is_free("MaxHeapFreeRatio");
    let release = facts.release().map_or(0, |[major, ..]| major);
    let mut remedies = Vec::new();
    match facts.collector() {
        "G1" => {
            remedies.extend(flags.has_free("G1PeriodicGCInterval").then(|| collect_each(10_000)));
            remedies.extend((ratios && release < 26).then(|| jvm(NARROW_RATIOS)));
        }
        "Serial" if flags.is_free("ShrinkHeapInSteps") => {
            remedies.extend(ratios.then(|| jvm(NARROW_RATIOS.into_iter().chain(["-XX:-ShrinkHeapInSteps"]))));
        }
        "Serial" | "Parallel" => remedies.extend(ratios.then(|| jvm(NARROW_RATIOS))),
        "Z" if flags.has_free("ZUncommitDelay") => remedies.push(jvm(["-XX:ZUncommitDelay=30"])),
        _ => {}
    }
    remedies
}

/// The heap is far larger than its live set. Source: measured, and `loadline find`, which searches for a heap size: a
/// database that took 1,413 MiB sustained the same load in 506 MiB with a heap of 121 MiB. The live set is from a full
/// collection, or at most what the last collection left (`sun.gc.generation.*`, JDK 11–25).
pub(super) fn far_above_live(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let heap_bytes = account.heap_bytes();
    let (live_bytes, live_by) = live_set(facts, mark)?;
    let level = heap_with_room(live_bytes, allocated_per_s_max(facts.phases));
    let gain = heap_bytes.saturating_sub(level);
    let is_far = heap_bytes >= live_bytes.saturating_mul(FAR_TIMES);
    if !is_far || share(gain, account.total_bytes) < GAIN_SHARE_MIN {
        return None;
    }
    let lives = match live_by {
        LiveBy::FullCollection => format!("only {} is live", Bytes(live_bytes)),
        LiveBy::LastCollection => format!("the last GC left only {}", Bytes(live_bytes)),
    };
    let max_bytes = mark.heap.max_bytes;
    let most = max_bytes.map(|bytes| format!("; it may grow to {}", Bytes(bytes))).unwrap_or_default();
    let text = format!("{} of Java heap is resident, but {lives}{most}", Bytes(heap_bytes));
    let remedies = ceiling(facts, level);
    let next = match first(&remedies) {
        Some(first) => format!("try `{first}`; `loadline find` finds the smallest heap that works"),
        None => "lower the maximum heap; `loadline find` finds the smallest one that works".to_owned(),
    };
    let finding = Finding::HeapFarAboveLive { heap_bytes, live_bytes, live_by, max_bytes };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: heap_bytes, gain_bytes_max: Some(gain), remedies, ..found })
}

/// Evidence against an oversized heap: much of the heap is live.
pub(super) fn mostly_live(facts: &Facts) -> Option<String> {
    let (mark, account) = facts.weighed()?;
    let (heap_bytes, (live_bytes, live_by)) = (account.heap_bytes(), live_set(facts, mark)?);
    let matters = share(heap_bytes, account.total_bytes) >= GAIN_SHARE_MIN;
    let by = match live_by {
        LiveBy::FullCollection => "a full GC left",
        LiveBy::LastCollection => "the last GC left",
    };
    // A heap of twice its live set has enough room (`heap_with_room`).
    let is_live = heap_bytes <= live_bytes.saturating_mul(2);
    // Not all object memory is resident: the tails of humongous objects were never touched.
    let (heap, live) = (Bytes(heap_bytes), Bytes(live_bytes.min(heap_bytes)));
    (matters && is_live)
        .then(|| format!("{by} {live} of the {heap} Java heap, so a smaller heap would leave little headroom"))
}

fn live_set(facts: &Facts, mark: &Mark) -> Option<(u64, LiveBy)> {
    let by_full = facts.live_after_gc().map(|live| (live, LiveBy::FullCollection));
    let tells = COUNT_WHAT_IS_LEFT.contains(&facts.collector());
    let left = mark.heap.left_by_gc_bytes.filter(|left| tells && *left > 0);
    by_full.or_else(|| left.map(|left| (left, LiveBy::LastCollection)))
}

/// A ceiling for a heap without one. Direct memory inherits the heap's ceiling; if twice the direct buffers would not
/// fit, it gets its own ceiling.
fn ceiling(facts: &Facts, level: u64) -> Vec<Change> {
    let flags = &facts.flags;
    let starts_larger = flags.is_typed("InitialHeapSize") || flags.is_typed("MinHeapSize");
    if flags.heap_is_typed() || starts_larger {
        return Vec::new();
    }
    let after_gc = facts.at(MarkPoint::Collected).and_then(|mark| mark.direct);
    let direct = after_gc.or_else(|| facts.weighed()?.0.direct).map_or(0, |direct| direct.bytes());
    let room = whole(direct.saturating_mul(2));
    let options = [Change::HeapMax(Bytes(level)), Change::DirectMax(Bytes(room))];
    match room > level && flags.is_free("MaxDirectMemorySize") {
        true => vec![jvm(options.iter().flat_map(Change::typed))],
        false => options.into_iter().take(1).collect(),
    }
}

/// The JVM's messages for a full heap (JDK 11–27).
const OF_HEAP: [&str; 3] = ["Java heap space", "GC overhead limit exceeded", "Requested array size exceeds"];

/// The subject printed an `OutOfMemoryError` for the heap; requests may all have failed. More specific findings replace
/// this one: static fields hold the live heap, or the JVM ignored `-XX:MaxRAMPercentage`.
pub(super) fn exhausted(facts: &Facts) -> Option<FindingRecord> {
    let error = facts.error_of(MemoryPool::Other)?;
    let is_told = ceilings::share_unheeded(facts).is_some() || live::statics(facts).is_some();
    if is_told || !OF_HEAP.iter().any(|sign| error.contains(sign)) {
        return None;
    }
    let max_bytes = facts.heap_max().filter(|bytes| *bytes > 0);
    let of = max_bytes.map(|bytes| format!(", which may grow to {}", Bytes(bytes))).unwrap_or_default();
    let text = format!("the heap{of} ran out of space: the server printed `{error}`");
    let next = "get a heap dump to see what fills it (`-XX:+HeapDumpOnOutOfMemoryError`). A leak fills a heap of any \
         size; if the program really needs it all, raise `-Xmx` and the limit";
    Some(found(Finding::HeapExhausted { error, max_bytes }, text, next))
}
