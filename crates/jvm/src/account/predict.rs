//! Predicts how much memory a full collection and a trim would give back.

use super::close::backed;
use super::evidence::{Explicit, ProcessReadings, Said, Shrinks};
use super::heap::{committed, share_of};
use crate::observe::heap_info::{Collector, HeapInfo};
use crate::observe::maps::Allocator;
use crate::observe::pagemap::Run;
use crate::observe::smaps::Smaps;
use loadline_base::units::Bytes;

const MIB: u64 = 1 << 20;
/// No heap region is smaller; a damaged reply may say so.
const REGION_MIN: u64 = 4096;

/// `MaxHeapFreeRatio` unless it was set (JDK 11–25).
const MAX_HEAP_FREE_RATIO: u64 = 70;

/// The least heap that G1 and Shenandoah shrink to unless `-Xms` or `MinHeapSize` says otherwise.
const HEAP_MIN: u64 = 8 * MIB;

/// `NewRatio` unless it was set: the old generation is so many times the young one.
const NEW_RATIO: u64 = 2;

/// A prediction is made if the uncertainty of the live set moves it by no more than this many bytes, or by no more than
/// this share.
const UNSURE_BYTES_MAX: u64 = 5 * MIB;
const UNSURE_SHARE_MAX: f64 = 0.15;

/// Bytes that the start of a small server leaves alive, besides a tenth of those allocated since: 0.8 to 2.4 MiB in all
/// were seen on JDK 17 and 25.
const START_LIVE_MAX: u64 = 2 * MIB;

/// A heap that was never collected and holds no more than this holds little but garbage, 97 to 99 % of 20 to 76 MiB in
/// servers of JDK 17 and 25; a larger one may hold data that was loaded.
const START_USED_MAX: u64 = 80 * MIB;

/// Live sets that are tried between the least and the most there may be.
const LIVE_STEPS: u64 = 8;

/// Why a trim returns nothing on musl, and what helps instead.
const NO_TRIM: &str = "musl has no trim, and MALLOC_* and -XX:TrimNativeHeapInterval do nothing there; \
                       an image with glibc has them";

/// Why a full collection returns what it does, or why that is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reason {
    /// The collector keeps the memory it has taken.
    Keeps,
    /// The heap shrinks to what its policy leaves free.
    Shrinks,
    /// Memory comes back minutes later.
    Later,
    /// The collector collects nothing.
    CollectsNothing,
    /// Unknown: the process is no JVM.
    NoJvm,
    /// Unknown: the process could not be asked.
    #[default]
    NotAsked,
    /// Unknown: the addresses of the heap, or its resident pages, were not available.
    NoAddresses,
    /// Unknown: no collection has shown the live set, and the answer depends on it.
    NotCollected,
    /// Unknown: the objects that the last collection left may be garbage by now, and the answer depends on it.
    LiveSetOpen,
    /// Unknown: classes may be unloaded, and how many is not known.
    ClassesOpen,
    /// Unknown: the heap shrinks in steps, and how many were taken is not known.
    StepsOpen,
    /// Unknown: the collection would be a concurrent one (`ExplicitGCInvokesConcurrent`).
    Concurrent,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 12] = [
        Self::Keeps,
        Self::Shrinks,
        Self::Later,
        Self::CollectsNothing,
        Self::NoJvm,
        Self::NotAsked,
        Self::NoAddresses,
        Self::NotCollected,
        Self::LiveSetOpen,
        Self::ClassesOpen,
        Self::StepsOpen,
        Self::Concurrent,
    ];

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keeps => "keeps",
            Self::Shrinks => "shrinks",
            Self::Later => "later",
            Self::CollectsNothing => "collects_nothing",
            Self::NoJvm => "no_jvm",
            Self::NotAsked => "not_asked",
            Self::NoAddresses => "no_addresses",
            Self::NotCollected => "not_collected",
            Self::LiveSetOpen => "live_set_open",
            Self::ClassesOpen => "classes_open",
            Self::StepsOpen => "steps_open",
            Self::Concurrent => "concurrent",
        }
    }
}

/// A prediction with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prediction {
    /// Bytes of RSS that come back; `None` if unknown.
    pub bytes: Option<u64>,
    /// Bytes by which RSS grows instead, since objects move to pages that hold nothing yet; `None` where `bytes` is.
    pub grown: Option<u64>,
    /// Why so, or why unknown; of a full collection.
    pub reason: Reason,
    /// The reason in words; one lower-case sentence without a full stop.
    pub why: String,
}

impl Prediction {
    /// `bytes` is what comes back, negative where RSS grows.
    fn known(bytes: i64, reason: Reason, why: impl Into<String>) -> Self {
        let (back, grown) = (u64::try_from(bytes).unwrap_or(0), u64::try_from(-bytes).unwrap_or(0));
        Self { bytes: Some(back), grown: Some(grown), reason, why: why.into() }
    }

    fn unknown(reason: Reason, why: impl Into<String>) -> Self {
        Self { reason, why: why.into(), ..Self::default() }
    }
}

/// Predicts what `malloc_trim(0)` gives back: whole pages of free chunks in every arena, and of the main arena's top
/// (glibc `mtrim`, `systrim`). musl has no trim (`os::can_trim_native_heap` of HotSpot, JDK 17–25, is false there).
pub fn trim(seen: &ProcessReadings) -> Prediction {
    let unknown = |why: &str| Prediction::unknown(Reason::NotAsked, why);
    if seen.allocator == Some(Allocator::Musl) {
        return Prediction::known(0, Reason::Keeps, NO_TRIM);
    }
    match &seen.walk {
        None => unknown("the heaps of malloc were not read"),
        Some(walk) if walk.heaps.is_empty() => unknown("no heap of glibc was found"),
        Some(walk) => {
            let bytes = walk.heaps.iter().map(|heap| heap.trimmable).fold(0, u64::saturating_add);
            let why = match walk.errors.len() {
                0 => String::new(),
                n => format!("without {n} heaps that could not be walked"),
            };
            Prediction::known(Bytes(bytes).signed(), Reason::Shrinks, why)
        }
    }
}

/// Predicts what `GC.run` gives back. `smaps` tells where the Java heap is committed, `runs` are its resident pages,
/// and `tables` are the resident bytes of the collector's tables.
///
/// G1 shrinks the heap at once so that at most `MaxHeapFreeRatio` of it is free
/// (`G1HeapSizingPolicy::full_collection_resize_amount`, JDK 11–25). Shenandoah uncommits all free regions on request.
/// Serial shrinks in steps, the first of which is zero (`TenuredGeneration::compute_new_size`). Parallel does not
/// resize on request. Z uncommits minutes later. In all but Z, objects move to the bottom of a space, where they may be
/// the first to touch a page. The first full collection of G1 and Parallel touches their marking bits, and the tables
/// of G1 shrink with the heap.
pub fn gc(said: &Said, smaps: &Smaps, runs: &[Run], tables: u64) -> Prediction {
    let Some(heap) = said.heap else {
        return Prediction::unknown(Reason::NotAsked, "the JVM could not be queried for its heap");
    };
    match heap.collector {
        Collector::Z => {
            let why = "ZGC gives memory back after `ZUncommitDelay`, 5 minutes by default";
            Prediction::known(0, Reason::Later, why)
        }
        Collector::Epsilon => Prediction::known(0, Reason::CollectsNothing, "Epsilon collects nothing"),
        Collector::G1 if said.sizing.explicit == Explicit::Concurrent => {
            let why =
                "`-XX:+ExplicitGCInvokesConcurrent` makes it a concurrent cycle, which compacts some regions only";
            Prediction::unknown(Reason::Concurrent, why)
        }
        _ if said.unloadable.is_some_and(|bytes| bytes > UNSURE_BYTES_MAX) => {
            let bytes = Bytes(said.unloadable.unwrap_or(0));
            let why =
                format!("{bytes} of classes have loaders that may be garbage; how much would be unloaded is unknown");
            Prediction::unknown(Reason::ClassesOpen, why)
        }
        _ => match HeapPages::of(said, &heap, smaps, runs, tables) {
            Some(pages) if !runs.is_empty() => pages.predict(),
            _ => Prediction::unknown(Reason::NoAddresses, "the JVM did not say where its heap is, or no page was read"),
        },
    }
}

/// How many bytes of the heap may be live: at the least, most likely, at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LiveSet {
    least: u64,
    likely: u64,
    most: u64,
}

impl LiveSet {
    /// Estimates the live set. Bytes that a full collection left were live then; after a young one up to half of them
    /// may be garbage in the old generation. Most bytes allocated since then, or since the start if they are few, are
    /// garbage: a tenth may be live.
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

/// The heap's range, with its committed and its resident parts.
struct HeapPages<'a> {
    said: &'a Said,
    heap: &'a HeapInfo,
    runs: &'a [Run],
    start: u64,
    end: u64,
    region: u64,
    /// Resident bytes of the collector's tables.
    tables: u64,
    /// Committed ranges from the bottom up, without archived objects. Young regions may lie far above the others.
    committed: Vec<(u64, u64)>,
    /// Bytes of archived objects, which stay at the top of what is reserved.
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

    /// Resident bytes in the lowest so many bytes of what is committed.
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

    /// Returns the bytes that become resident when this many bytes of objects move to the bottom of a space.
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
                    format!("no collection has shown how much of the {} in use is live", self.heap.used),
                ),
                Some(left) => Prediction::unknown(
                    Reason::LiveSetOpen,
                    format!("the last collection left {}, part of which may be garbage by now", Bytes(left)),
                ),
            };
        }
        let title = self.heap.collector.title();
        match self.heap.collector {
            Collector::Serial if self.in_steps(live.least) > UNSURE_BYTES_MAX => Prediction::unknown(
                Reason::StepsOpen,
                "Serial shrinks in steps, and how many it has taken so far is unknown",
            ),
            Collector::Serial | Collector::Parallel if self.said.sizing.shrinks == Shrinks::InSteps || likely <= 0 => {
                Prediction::known(likely, Reason::Keeps, format!("{title} keeps the memory it has taken"))
            }
            _ => {
                let capacity = self.capacity(live.likely);
                let why = match capacity < self.heap.committed.0 {
                    true => {
                        let live = Bytes(live.likely);
                        format!("{title} keeps {} committed for some {live} of live objects", Bytes(capacity))
                    }
                    false => format!("{title} keeps all {} committed", self.heap.committed),
                };
                Prediction::known(likely, Reason::Shrinks, why)
            }
        }
    }

    /// Returns the bytes of RSS that come back if `live` bytes are live; negative if RSS grows.
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

    /// Bytes that G1 or Shenandoah keep committed; both count in whole regions.
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

    /// Returns the range of the old generation: Serial's lies behind the young one, Parallel's in front of it.
    fn old(&self) -> (u64, u64) {
        let reserved = self.heap.old.map_or(0, |(_, reserved)| reserved.0).min(self.end - self.start);
        match self.heap.collector {
            Collector::Serial => (self.end - reserved, self.end),
            _ => (self.start, self.start + reserved),
        }
    }

    /// Resident bytes above the sizes to which Serial would bring its generations.
    fn shrunk_generations(&self, live: u64) -> u64 {
        let (old, end) = self.old();
        let sizing = &self.said.sizing;
        let ratio = sizing.max_free_ratio.unwrap_or(MAX_HEAP_FREE_RATIO).min(99);
        // JDK 24 and newer have no `OldSize`: the least heap minus the least young generation replaces it.
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

    /// Returns the bytes that a step of Serial may give back: 0 in the first full collection.
    fn in_steps(&self, live: u64) -> u64 {
        match (self.said.sizing.shrinks, self.said.full_collections) {
            (Shrinks::AtOnce, _) | (_, Some(0)) => 0,
            _ => self.shrunk_generations(live),
        }
    }

    /// Bytes that the first full collection touches to mark the objects of so many bytes of heap: a bit for each 8.
    fn marking_bits(&self, bytes: u64) -> u64 {
        if self.said.full_collections == Some(0) { bytes / 64 } else { 0 }
    }
}

/// Returns the size of which `free` percent are free when `used` bytes are in use.
fn room_for(used: u64, free: u64) -> u64 {
    u64::try_from(u128::from(used) * 100 / u128::from(100 - free.min(99))).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
