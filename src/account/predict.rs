//! What a full collection and a trim would give back.

use super::evidence::{Said, Seen};
use crate::observe::heap_info::Collector;
use crate::observe::pagemap::Run;

/// `MaxHeapFreeRatio` unless it was set (JDK 11–25).
const MAX_HEAP_FREE_RATIO: u64 = 70;

/// The least heap that G1 shrinks to unless `-Xms` or `MinHeapSize` says otherwise.
const HEAP_MIN: u64 = 8 << 20;

/// A prediction with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prediction {
    /// Bytes of RSS; `None` where they cannot be told.
    pub bytes: Option<u64>,
    /// Why so, or why unknown; one lower-case sentence without a full stop.
    pub why: String,
}

impl Prediction {
    fn known(bytes: u64, why: impl Into<String>) -> Self {
        Self { bytes: Some(bytes), why: why.into() }
    }

    fn unknown(why: impl Into<String>) -> Self {
        Self { bytes: None, why: why.into() }
    }
}

/// What `malloc_trim(0)` gives back: the whole pages of free chunks in every arena, and of the main arena's top
/// (glibc `mtrim`, `systrim`).
pub fn trim(seen: &Seen) -> Prediction {
    match &seen.walk {
        None => Prediction::unknown("the heaps of malloc could not be read"),
        Some(walk) if walk.heaps.is_empty() => Prediction::unknown("no heap of glibc was found"),
        Some(walk) => {
            let bytes = walk.heaps.iter().map(|heap| heap.trimmable).fold(0, u64::saturating_add);
            match walk.errors.len() {
                0 => Prediction::known(bytes, ""),
                n => Prediction::known(bytes, format!("without {n} heaps that could not be walked")),
            }
        }
    }
}

/// What `GC.run` gives back. `runs` are the resident pages of the Java heap.
///
/// Serial and Parallel keep what they have taken (Serial shrinks in steps, the first of which is none); Z uncommits
/// minutes later. G1 shrinks the heap at once so that at most `MaxHeapFreeRatio` of it is free
/// (`G1CollectedHeap::resize_heap_if_necessary`, JDK 11–25): what lies above goes, and what is live moves to the
/// bottom. Shenandoah uncommits all free regions when it is asked.
pub fn gc(said: &Said, runs: &[Run]) -> Prediction {
    let Some(heap) = said.heap else {
        return Prediction::unknown("the JVM could not be asked for its heap");
    };
    match heap.collector {
        Collector::Serial | Collector::Parallel => {
            Prediction::known(0, format!("{} keeps the memory it has taken", heap.collector.title()))
        }
        Collector::Z => Prediction::known(0, "ZGC gives memory back after `ZUncommitDelay`, 5 minutes by default"),
        Collector::Epsilon => Prediction::known(0, "Epsilon collects nothing"),
        Collector::G1 | Collector::Shenandoah => match said.left_by_last_gc {
            Some(live) => shrunk(said, runs, live, heap.collector),
            None => Prediction::unknown("no counter says what a collection left, or there was none so far"),
        },
    }
}

fn shrunk(said: &Said, runs: &[Run], live: u64, collector: Collector) -> Prediction {
    let info = said.info.as_ref();
    let Some((start, end)) = info.and_then(|info| info.heap_reserved) else {
        return Prediction::unknown("the JVM did not say where its heap is");
    };
    let geometry = info.map(|info| info.collector_geometry).unwrap_or_default();
    let region = geometry.region_size.map_or(1 << 20, |bytes| bytes.0).max(4096);
    let min = said.heap_min.unwrap_or(HEAP_MIN);
    let ratio = said.max_heap_free_ratio.unwrap_or(MAX_HEAP_FREE_RATIO).min(99);
    let keeps = match collector {
        Collector::G1 => u64::try_from(u128::from(live) * 100 / u128::from(100 - ratio)).unwrap_or(u64::MAX),
        _ => live,
    };
    let regions = |bytes: u64| bytes.checked_next_multiple_of(region).unwrap_or(u64::MAX);
    let capacity = regions(keeps.max(min)).min(end.saturating_sub(start));
    let committed = said.heap.map_or(0, |heap| heap.committed.0);
    let resident = |from: u64, to: u64| super::close::backed(runs, from, to).0;
    let before = resident(start, end);
    let after = if capacity >= committed {
        // Nothing shrinks; what is live moves to the bottom, which may touch new pages there.
        before
    } else {
        let bottom = regions(live).min(capacity);
        bottom.saturating_add(resident(start + bottom, start + capacity))
    };
    let why = format!(
        "{} keeps {:.1} MiB for the {:.1} MiB that the last collection left",
        collector.title(),
        capacity as f64 / f64::from(1 << 20),
        live as f64 / f64::from(1 << 20)
    );
    Prediction::known(before.saturating_sub(after), why)
}
