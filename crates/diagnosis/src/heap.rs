//! The Java heap: what is free and resident, what no live object needs, and a heap that was exhausted.

use super::facts::{Facts, holds, share};
use super::found::{first, found};
use super::{ceilings, live};
use crate::doubt::MemoryPool;
use crate::owner::Owner;
use crate::record::{Finding, FindingRecord, LiveBy, Mark, allocated_per_s_max, heap_with_room, whole};
use crate::remedy::changes::{NARROW_RATIOS, collect_each, jvm};
use crate::scenario::{Change, MarkPoint};
use crate::units::Bytes;

/// Less of RSS is not worth a change of when the heap shrinks.
const FREE_SHARE_MIN: f64 = 0.05;
/// Heaps of small servers are some times as large as what lives, and little is to gain there.
const GAIN_SHARE_MIN: f64 = 0.05;
/// So many times the live set is far above it.
const FAR_TIMES: u64 = 4;
/// Collectors whose counters after a collection are of all that it left; those of a generational ZGC are of the old
/// generation alone.
const COUNT_WHAT_IS_LEFT: [&str; 3] = ["Serial", "Parallel", "G1"];

/// Heap is resident and holds no object after a rest. In an account: as far as a full collection would return it.
/// Source: JEP 346 (G1, JDK 12: `G1PeriodicGCInterval`). The man page of `java` 25 recommends ratios of 5 and 10 and
/// `-ShrinkHeapInSteps` for footprint. In vcell #1899 one full GC brought 1,934 to 1,032 MiB. From 26 on G1 heeds no
/// ratio (JDK-8238687). Such ratios under spikes ran out of memory (quarkus #39084), so a spike belongs to the trial.
pub(super) fn free(facts: &Facts) -> Option<FindingRecord> {
    let at_rest = facts.at(MarkPoint::Rested).and_then(|mark| Some((mark, mark.account.as_ref()?)));
    let rested = at_rest.is_some();
    let weighed = || facts.weighed().filter(|_| facts.phases.is_empty());
    let (mark, account) = at_rest.filter(|(mark, _)| mark.processes.is_empty()).or_else(weighed)?;
    let free_bytes = holds(account, Owner::JavaHeapFree);
    let gain = if rested { free_bytes } else { account.would_return.gc_bytes.unwrap_or(0).min(free_bytes) };
    if share(gain, account.total_bytes) < FREE_SHARE_MIN {
        return None;
    }
    let fixed = fixed_by(facts, mark.heap.committed_bytes);
    let remedies = if fixed.is_some() { Vec::new() } else { remedies(facts) };
    let moment = if rested { " after the rest" } else { "" };
    let of = mark.heap.committed_bytes.map(|bytes| format!("of {} of Java heap committed, ", Bytes(bytes)));
    let of = of.unwrap_or_else(|| "of the Java heap ".to_owned());
    let text = format!("{of}{} are resident and hold no object{moment}", Bytes(free_bytes));
    let next = match (fixed, first(&remedies)) {
        (Some(option), _) => format!("your own `{option}` keeps it; the collector gives back only what lies above"),
        (None, Some(first)) => {
            format!("try `{first}`, with a spike in the load: a heap that shrinks has to grow again")
        }
        (None, None) => "a lower `-Xmx` bounds it; this collector has no option that gives it back sooner".to_owned(),
    };
    let finding = Finding::HeapFree { free_bytes, committed_bytes: mark.heap.committed_bytes, rested };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: free_bytes, gain_bytes_max: Some(gain), remedies, ..found })
}

/// The option of the user that keeps the heap as large as it is.
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

/// The heap is far larger than what lives in it. Source: measured, and `loadline find`, which searches the heap: the
/// database of 1,413 MiB carried the same load in 506 with a heap of 121 MiB. The live set is that of a full collection
/// or at most what the last one left (`sun.gc.generation.*`, JDK 11–25).
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
        LiveBy::FullCollection => format!("only {} are live", Bytes(live_bytes)),
        LiveBy::LastCollection => format!("the last collection left {}", Bytes(live_bytes)),
    };
    let max_bytes = mark.heap.max_bytes;
    let most = max_bytes.map(|bytes| format!("; it may grow to {}", Bytes(bytes))).unwrap_or_default();
    let text = format!("{} of Java heap are resident, but {lives}{most}", Bytes(heap_bytes));
    let remedies = ceiling(facts, level);
    let next = match first(&remedies) {
        Some(first) => format!("try `{first}`; `loadline find` finds the smallest that holds"),
        None => "lower the maximum heap that you set; `loadline find` finds the smallest that holds".to_owned(),
    };
    let finding = Finding::HeapFarAboveLive { heap_bytes, live_bytes, live_by, max_bytes };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: heap_bytes, gain_bytes_max: Some(gain), remedies, ..found })
}

/// Speaks against it: much of the heap lives.
pub(super) fn mostly_live(facts: &Facts) -> Option<String> {
    let (mark, account) = facts.weighed()?;
    let (heap_bytes, (live_bytes, live_by)) = (account.heap_bytes(), live_set(facts, mark)?);
    let matters = share(heap_bytes, account.total_bytes) >= GAIN_SHARE_MIN;
    let by = match live_by {
        LiveBy::FullCollection => "a full GC left",
        LiveBy::LastCollection => "the last collection left",
    };
    let is_live = heap_bytes < live_bytes.saturating_mul(FAR_TIMES);
    // Objects take room that need not be resident: the tails of humongous ones were never touched.
    let (heap, live) = (Bytes(heap_bytes), Bytes(live_bytes.min(heap_bytes)));
    (matters && is_live)
        .then(|| format!("{by} {live} of the {heap} of Java heap: a smaller heap would have little room"))
}

/// The live set, and what told it.
fn live_set(facts: &Facts, mark: &Mark) -> Option<(u64, LiveBy)> {
    let by_full = facts.live_after_gc().map(|live| (live, LiveBy::FullCollection));
    let tells = COUNT_WHAT_IS_LEFT.contains(&facts.collector());
    let left = mark.heap.left_by_gc_bytes.filter(|left| tells && *left > 0);
    by_full.or_else(|| left.map(|left| (left, LiveBy::LastCollection)))
}

/// A ceiling for a heap that no option bounds. Direct memory takes its ceiling from the heap's. If twice the direct
/// buffers would not fit under that, direct memory gets a ceiling of its own.
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

/// The JVM's messages about a full heap (JDK 11–27).
const OF_HEAP: [&str; 3] = ["Java heap space", "GC overhead limit exceeded", "Requested array size exceeds"];

/// The subject printed an `OutOfMemoryError` of the heap, even if every request failed. If static fields hold the live
/// heap, or the JVM did not heed `-XX:MaxRAMPercentage`, the finding about that replaces this one.
pub(super) fn exhausted(facts: &Facts) -> Option<FindingRecord> {
    let error = facts.error_of(MemoryPool::Other)?;
    let is_told = ceilings::share_unheeded(facts).is_some() || live::statics(facts).is_some();
    if is_told || !OF_HEAP.iter().any(|sign| error.contains(sign)) {
        return None;
    }
    let max_bytes = facts.heap_max().filter(|bytes| *bytes > 0);
    let of = max_bytes.map(|bytes| format!(", which may become {}", Bytes(bytes))).unwrap_or_default();
    let text = format!("the heap{of}, was exhausted: the subject printed `{error}`");
    let next = "see what fills it (`-XX:+HeapDumpOnOutOfMemoryError`): what grows without a bound fills any heap; \
        where all of it is needed, raise `-Xmx`, and the limit with it";
    Some(found(Finding::HeapExhausted { error, max_bytes }, text, next))
}
