//! Predicts how much memory a full collection and a trim would free.

use super::close::backed;
use super::evidence::{Explicit, ProcessReadings, Said, Shrinks};
use super::heap::{committed, share_of};
use crate::observe::heap_info::{Collector, HeapInfo};
use crate::observe::maps::Allocator;
use crate::observe::pagemap::Run;
use crate::observe::smaps::Smaps;
use loadline_base::units::Bytes;

const MIB: u64 = 1 << 20;
/// Heap regions are never smaller, except in a damaged reply.
const REGION_MIN: u64 = 4096;

/// The default of `MaxHeapFreeRatio` (JDK 11–25).
const MAX_HEAP_FREE_RATIO: u64 = 70;

/// The smallest heap to which G1 and Shenandoah shrink, unless `-Xms` or `MinHeapSize` says otherwise.
const HEAP_MIN: u64 = 8 * MIB;

/// The default of `NewRatio`: the old generation is this many times as large as the young one.
const NEW_RATIO: u64 = 2;

/// A prediction is made only if the uncertainty of the live set changes it by at most this many bytes or this share.
const UNSURE_BYTES_MAX: u64 = 5 * MIB;
const UNSURE_SHARE_MAX: f64 = 0.15;

/// Bytes that remain live after a small server's startup, in addition to a tenth of those allocated since: 0.8 to 2.4
/// MiB in total on JDK 17 and 25.
const START_LIVE_MAX: u64 = 2 * MIB;

/// A heap that was never collected and uses no more than this is nearly all garbage: 97 to 99% of 20 to 76 MiB in
/// servers on JDK 17 and 25. A larger one may contain loaded data.
const START_USED_MAX: u64 = 80 * MIB;

/// Number of live sets tried between the smallest and the largest possible one.
const LIVE_STEPS: u64 = 8;

/// Why trimming has no effect on musl, and what helps instead.
const NO_TRIM: &str = "musl cannot trim, and it ignores MALLOC_* and -XX:TrimNativeHeapInterval; use an image with \
                       glibc";

loadline_base::named! {
    /// The reason for the amount that a full collection frees, or why that is unknown.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Reason,
    /// The name in documents.
    fn name {
        /// The collector keeps its memory.
        Keeps = "keeps",
        /// The heap shrinks until no more is free than its policy allows.
        Shrinks = "shrinks",
        /// Memory is freed minutes later.
        Later = "later",
        /// The collector collects nothing.
        CollectsNothing = "collects_nothing",
        /// Unknown: the process is not a JVM.
        NoJvm = "no_jvm",
        /// Unknown: the process could not be asked.
        #[default]
        NotAsked = "not_asked",
        /// Unknown: the addresses of the heap, or its resident pages, were not available.
        NoAddresses = "no_addresses",
        /// Unknown: no collection has shown the live set, and the answer depends on it.
        NotCollected = "not_collected",
        /// Unknown: the objects that the last collection left may be garbage by now, and the answer depends on it.
        LiveSetOpen = "live_set_open",
        /// Unknown: an unknown number of classes may be unloaded.
        ClassesOpen = "classes_open",
        /// Unknown: the heap shrinks in an unknown number of steps.
        StepsOpen = "steps_open",
        /// Unknown: the collection would be a concurrent one (`ExplicitGCInvokesConcurrent`).
        Concurrent = "concurrent",
    }
}

/// A prediction with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prediction {
    /// Bytes of RSS freed; `None` if unknown.
    pub bytes: Option<u64>,
    /// Bytes by which RSS grows instead, because objects move to untouched pages; `None` if `bytes` is.
    pub grown: Option<u64>,
    /// Why a full collection frees this much, or why the amount is unknown.
    pub reason: Reason,
    /// The reason in words: one lowercase sentence without a period.
    pub why: String,
}

impl Prediction {
    /// `bytes` is negative if RSS grows.
    fn known(bytes: i64, reason: Reason, why: impl Into<String>) -> Self {
        let (back, grown) = (u64::try_from(bytes).unwrap_or(0), u64::try_from(-bytes).unwrap_or(0));
        Self { bytes: Some(back), grown: Some(grown), reason, why: why.into() }
    }

    fn unknown(reason: Reason, why: impl Into<String>) -> Self {
        Self { reason, why: why.into(), ..Self::default() }
    }
}

/// Predicts the memory that `malloc_trim(0)` frees: whole pages of free chunks in every arena, and of the main arena's
/// top (glibc `mtrim`, `systrim`). musl has no trim (HotSpot's `os::can_trim_native_heap` is false on musl, JDK 17–25).
pub fn trim(seen: &ProcessReadings) -> Prediction {
    let unknown = |why: &str| Prediction::unknown(Reason::NotAsked, why);
    if seen.allocator == Some(Allocator::Musl) {
        return Prediction::known(0, Reason::Keeps, NO_TRIM);
    }
    match &seen.walk {
        None => unknown("malloc's heaps were not read"),
        Some(walk) if walk.heaps.is_empty() => unknown("no glibc heap was found"),
        Some(walk) => {
            let bytes = walk.heaps.iter().map(|heap| heap.trimmable).fold(0, u64::saturating_add);
            let why = match walk.errors.len() {
                0 => String::new(),
                n => format!("excluding {n} heaps that could not be read"),
            };
            Prediction::known(Bytes(bytes).signed(), Reason::Shrinks, why)
        }
    }
}

/// Predicts the memory that `GC.run` frees. `smaps` shows where the Java heap is committed, `runs` lists its resident
/// pages, and `tables` is the resident size of the collector's tables.
///
/// G1 shrinks the heap immediately so that at most `MaxHeapFreeRatio` of it is free
/// (`G1HeapSizingPolicy::full_collection_resize_amount`, JDK 11–25). Shenandoah uncommits all free regions on request.
/// Serial shrinks in steps, the first of which is zero (`TenuredGeneration::compute_new_size`). Parallel does not
/// resize on request. Z uncommits minutes later. In all but Z, objects move to the bottom of a space and may touch
/// pages there for the first time. The first full collection of G1 and Parallel touches their mark bitmaps, and G1's
/// tables shrink with the heap.
pub fn gc(said: &Said, smaps: &Smaps, runs: &[Run], tables: u64) -> Prediction {
    let Some(heap) = said.heap else {
        return Prediction::unknown(Reason::NotAsked, "the JVM could not be queried for its heap");
    };
    match heap.collector {
        Collector::Z => {
            let why = "ZGC returns memory after `ZUncommitDelay`, 5 minutes by default";
            Prediction::known(0, Reason::Later, why)
        }
        Collector::Epsilon => Prediction::known(0, Reason::CollectsNothing, "Epsilon never collects"),
        Collector::G1 if said.sizing.explicit == Explicit::Concurrent => {
            let why =
                "`-XX:+ExplicitGCInvokesConcurrent` makes it a concurrent cycle, which compacts only some regions";
            Prediction::unknown(Reason::Concurrent, why)
        }
        _ if said.unloadable.is_some_and(|bytes| bytes > UNSURE_BYTES_MAX) => {
            let bytes = Bytes(said.unloadable.unwrap_or(0));
            let why = format!(
                "{bytes} of class metadata belongs to loaders that may be garbage; a GC would unload an unknown part \
                 of it"
            );
            Prediction::unknown(Reason::ClassesOpen, why)
        }
        _ => match HeapPages::of(said, &heap, smaps, runs, tables) {
            Some(pages) if !runs.is_empty() => pages.predict(),
            _ => Prediction::unknown(
                Reason::NoAddresses,
                "the location of the heap is unknown, or none of its pages could be read",
            ),
        },
    }
}

/// Live bytes of the heap: minimum, most likely value, maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LiveSet {
    least: u64,
    likely: u64,
    most: u64,
}

impl LiveSet {
    /// Estimates the live set. Bytes left by a full collection were live then; after a young collection, up to half of
    /// them may be garbage in the old generation. Up to a tenth of the bytes allocated since then (or since startup,
    /// if they are few) may be live.
    fn of(said: &Said, used: u64) -> Self {
        match said.left_by_last_gc.map(|left| left.min(used)) {
            Some(left) => Self { least: left / 2, likely: left, most: left + (used - left) / 10 },
            None => {
                let most = if used <= START_USED_MAX { used.min(START_LIVE_MAX + used / 10) } else { used };
                Self { least: 0, likely: most / 2, most }
            }
        }
    }
}

/// The heap's range with its committed and resident parts.
struct HeapPages<'a> {
    said: &'a Said,
    heap: &'a HeapInfo,
    runs: &'a [Run],
    start: u64,
    end: u64,
    region: u64,
    /// Resident bytes of the collector's tables.
    tables: u64,
    /// Committed ranges from the bottom up, without archived objects. Young regions may be far above the others.
    committed: Vec<(u64, u64)>,
    /// Bytes of archived objects, which stay at the top of the reserved range.
    archived: u64,
}

impl<'a> HeapPages<'a> {
    fn of(said: &'a Said, heap: &'a HeapInfo, smaps: &Smaps, runs: &'a [Run], tables: u64) -> Option<Self> {
        let info = said.info.as_ref()?;
        let (start, end) = info.heap_reserved.filter(|(start, end)| start < end)?;
        let region = info.region_size.map_or(MIB, |bytes| bytes.0).max(REGION_MIN);
        let mut committed: Vec<(u64, u64)> = committed(smaps.maps(), start, end);
        for (from, to) in &mut committed {
            (*from, *to) = (start + *from, start + *to);
        }
        let archived = match committed.as_slice() {
            [_, .., (from, to)] if end - to < region => end - (start + (from - start) / region * region),
            _ => 0,
        };
        if archived > 0 {
            committed.pop();
        }
        Some(Self { said, heap, runs, start, end, region, tables, committed, archived })
    }

    /// Resident bytes in the lowest `bytes` of committed memory.
    fn resident_below(&self, bytes: u64) -> u64 {
        let mut left = bytes;
        let parts = self.committed.iter().map(|(from, to)| {
            let taken = left.min(to - from);
            left -= taken;
            self.resident(*from, from + taken)
        });
        parts.sum()
    }

    fn resident(&self, from: u64, to: u64) -> u64 {
        backed(self.runs, from.min(self.end), to.min(self.end)).0
    }

    /// Returns how many bytes become resident when this many bytes of objects move to the bottom of a space.
    fn touched(&self, bottom: u64, bytes: u64) -> u64 {
        bytes.saturating_sub(self.resident(bottom, bottom.saturating_add(bytes)))
    }

    fn predict(&self) -> Prediction {
        let live = LiveSet::of(self.said, self.heap.used.0);
        let likely = self.returned(live.likely);
        let step = (live.most - live.least) / LIVE_STEPS;
        let away = (0..=LIVE_STEPS).map(|n| self.returned(live.least + n * step).abs_diff(likely)).max();
        let most = UNSURE_BYTES_MAX.max((likely.unsigned_abs() as f64 * UNSURE_SHARE_MAX) as u64);
        if away.is_some_and(|away| away > most) {
            return match self.said.left_by_last_gc {
                None => Prediction::unknown(
                    Reason::NotCollected,
                    format!("no GC so far shows how much of the {} in use is live", self.heap.used),
                ),
                Some(left) => Prediction::unknown(
                    Reason::LiveSetOpen,
                    format!("the last GC left {}, some of which may be garbage by now", Bytes(left)),
                ),
            };
        }
        let title = self.heap.collector.title();
        match self.heap.collector {
            Collector::Serial if self.in_steps(live.least) > UNSURE_BYTES_MAX => Prediction::unknown(
                Reason::StepsOpen,
                "Serial shrinks the heap in steps, and the number of steps so far is unknown",
            ),
            Collector::Serial | Collector::Parallel if self.said.sizing.shrinks == Shrinks::InSteps || likely <= 0 => {
                Prediction::known(likely, Reason::Keeps, format!("{title} keeps the memory that it has committed"))
            }
            _ => {
                let capacity = self.capacity(live.likely);
                let why = match capacity < self.heap.committed.0 {
                    true => {
                        let live = Bytes(live.likely);
                        format!("{title} keeps {} committed for about {live} of live objects", Bytes(capacity))
                    }
                    false => format!("{title} keeps all {} committed", self.heap.committed),
                };
                Prediction::known(likely, Reason::Shrinks, why)
            }
        }
    }

    /// Returns the bytes of RSS that are freed with `live` live bytes; negative if RSS grows.
    fn returned(&self, live: u64) -> i64 {
        match self.heap.collector {
            Collector::Serial | Collector::Parallel => {
                let (old, _) = self.old();
                let touched = self.touched(old, live.min(self.old_committed()));
                let shrunk = match (self.heap.collector, self.said.sizing.shrinks) {
                    (Collector::Serial, Shrinks::AtOnce) => self.shrunk_generations(live),
                    _ => 0,
                };
                let marked = if self.heap.collector == Collector::Parallel { self.heap.used.0 } else { 0 };
                Bytes(shrunk).signed() - Bytes(touched).signed() - Bytes(self.marking_bits(marked)).signed()
            }
            collector => {
                let capacity = self.capacity(live).saturating_sub(self.regions(self.archived));
                let bottom = live.saturating_sub(self.archived).min(capacity);
                let shrinks = self.capacity(live) < self.heap.committed.0;
                let above = if shrinks { self.resident_below(u64::MAX) - self.resident_below(capacity) } else { 0 };
                let touched = bottom.saturating_sub(self.resident_below(bottom));
                if collector != Collector::G1 {
                    return Bytes(above).signed() - Bytes(touched).signed();
                }
                let kept = share_of(self.tables, self.capacity(live), self.heap.committed.0);
                Bytes(above + self.tables - kept).signed()
                    - Bytes(touched).signed()
                    - Bytes(self.marking_bits(capacity)).signed()
            }
        }
    }

    /// Bytes that G1 or Shenandoah keep committed, in whole regions.
    fn capacity(&self, live: u64) -> u64 {
        let free = match self.heap.collector {
            Collector::G1 => self.said.sizing.max_free_ratio.unwrap_or(MAX_HEAP_FREE_RATIO).min(99),
            _ => 0,
        };
        let keeps = room_for(self.regions(live), free).max(self.said.sizing.heap_min.unwrap_or(HEAP_MIN));
        self.regions(keeps).min(self.end - self.start).min(self.heap.committed.0)
    }

    fn regions(&self, bytes: u64) -> u64 {
        bytes.checked_next_multiple_of(self.region).unwrap_or(u64::MAX)
    }

    fn old_committed(&self) -> u64 {
        self.heap.old.map_or(0, |(committed, _)| committed.0)
    }

    /// Returns the range of the old generation: above the young one with Serial, below it with Parallel.
    fn old(&self) -> (u64, u64) {
        let reserved = self.heap.old.map_or(0, |(_, reserved)| reserved.0).min(self.end - self.start);
        match self.heap.collector {
            Collector::Serial => (self.end - reserved, self.end),
            _ => (self.start, self.start + reserved),
        }
    }

    /// Resident bytes above the sizes to which Serial would shrink its generations.
    fn shrunk_generations(&self, live: u64) -> u64 {
        let (old, end) = self.old();
        let sizing = &self.said.sizing;
        let ratio = sizing.max_free_ratio.unwrap_or(MAX_HEAP_FREE_RATIO).min(99);
        // JDK 24 and newer have no `OldSize`; the minimum heap minus the minimum young generation replaces it.
        let young_least = sizing.new_size.unwrap_or(0);
        let least = sizing.heap_min.unwrap_or(0).saturating_sub(young_least);
        let least = sizing.old_size.unwrap_or(least);
        let keeps = room_for(live, ratio).max(least).min(self.old_committed());
        let young_committed = self.heap.committed.0.saturating_sub(self.old_committed());
        let young = (keeps / NEW_RATIO).max(young_least).min(young_committed);
        let above_old = self.resident(old.saturating_add(keeps), end);
        let above_young = self.resident(self.start.saturating_add(young), old);
        if keeps < self.old_committed() { above_old.saturating_add(above_young) } else { 0 }
    }

    /// Returns the bytes that one of Serial's steps may free: 0 in the first full collection.
    fn in_steps(&self, live: u64) -> u64 {
        match (self.said.sizing.shrinks, self.said.full_collections) {
            (Shrinks::AtOnce, _) | (_, Some(0)) => 0,
            _ => self.shrunk_generations(live),
        }
    }

    /// Bytes that the first full collection touches to mark this much heap: one bit per 8 bytes.
    fn marking_bits(&self, bytes: u64) -> u64 {
        if self.said.full_collections == Some(0) { bytes / 64 } else { 0 }
    }
}

/// Returns the heap size of which `free` percent is free when `used` bytes are in use.
fn room_for(used: u64, free: u64) -> u64 {
    u64::try_from(u128::from(used) * 100 / u128::from(100 - free.min(99))).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
