//! Verdicts on a JVM's history: on its memory relative to the limit, and on each part that can grow independently.

use super::bounds::Bounds;
use super::cell::Cell;
use super::column::Column;
use super::history::{Past, Tier};
use super::sample::{Sample, unreclaimable};
use super::shown::THREAD_BYTES;
use crate::growth::{Floors, Judgement, Ladder, Precedent, Unsure};
use crate::record::{GrowthRecord, GrowthWord, ThingRecord};
use crate::units::{Bytes, roughly, several};
use std::collections::BTreeMap;

/// Headroom below this share of the limit is checked every minute.
const NEAR_SHARE: f64 = 0.1;
/// The number of recent minutes whose pace then counts; the limit is near if headroom would run out within the hour.
pub(super) const PACE_CELLS: usize = 15;
const GONE_WITHIN_SAMPLES: f64 = 360.0;
/// The seconds of an hour, which has six ten-minute cells.
const SECONDS_OF_HOUR: f64 = 3600.0;

loadline_base::named! {
    /// Something that is judged.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Thing,
    /// As in documents and labels.
    fn name {
        /// Unreclaimable memory: anonymous memory, and the kernel's memory for it.
        Memory = "memory",
        /// The heap that old collections leave.
        Heap = "heap",
        /// Classes and the data that belongs to them.
        Metaspace = "metaspace",
        /// Buffers outside the heap, according to the JVM's own counters.
        Direct = "direct",
        /// Stacks and other thread memory.
        Threads = "threads",
        /// All other anonymous memory: mostly malloc's.
        Rest = "rest",
    }
}

impl Thing {
    /// Its own bound; `None` if it has none, or it is unknown.
    pub(super) fn bound(self, bounds: &Bounds) -> Option<u64> {
        match self {
            Self::Memory => Some(bounds.memory),
            Self::Heap => bounds.heap,
            Self::Metaspace => bounds.metaspace,
            Self::Direct => bounds.direct,
            Self::Threads | Self::Rest => None,
        }
    }

    /// Its minimum in a cell.
    pub(super) fn floor(self, cell: &Cell) -> Option<u64> {
        let least = |column| cell.least(column);
        match self {
            Self::Memory => unreclaimable(least),
            Self::Heap => least(Column::HeapFloor),
            Self::Metaspace => least(Column::MetaspaceCommitted),
            Self::Direct => least(Column::Direct),
            Self::Threads => Some(least(Column::Threads)? * THREAD_BYTES),
            Self::Rest => {
                let known = [Column::HeapCommitted, Column::MetaspaceCommitted, Column::Direct];
                let known: u64 = known.into_iter().map(|column| cell.most(column).unwrap_or(0)).sum();
                Some(least(Column::RssAnon)?.saturating_sub(known + least(Column::Threads).unwrap_or(0) * THREAD_BYTES))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Verdicts {
    /// The verdict on the JVM: that of its memory, or of the part that reaches its bound first.
    pub growth: GrowthRecord,
    pub things: Vec<ThingRecord>,
}

/// A life's complete ten-minute cells, with gaps where there are no samples.
struct Dense<'a> {
    first: u64,
    cells: Vec<Option<&'a Cell>>,
    last: &'a Cell,
}

impl<'a> Dense<'a> {
    fn of(past: &'a Past) -> Option<Self> {
        let cells = past.cells(Tier::TenMinutes);
        let (first, last) = (cells.first()?.number, cells.last()?);
        let mut dense = vec![None; (last.number - first + 1) as usize];
        cells.iter().for_each(|cell| dense[(cell.number - first) as usize] = Some(cell));
        // An incomplete cell is not a floor yet.
        dense.pop();
        Some(Self { first, cells: dense, last })
    }

    fn floors(&self, thing: Thing) -> Vec<f64> {
        let floor =
            |cell: &Option<&Cell>| cell.and_then(|cell| thing.floor(cell)).map_or(f64::NAN, |bytes| bytes as f64);
        self.cells.iter().map(floor).collect()
    }
}

/// Precedents from the previous life with the same name.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Precedents(BTreeMap<Thing, Precedent>);

impl Precedents {
    pub(super) fn of(past: &Past) -> Self {
        let Some(dense) = Dense::of(past) else { return Self::default() };
        let of = |thing: Thing| {
            let values = dense.floors(thing);
            let floors = Floors { values: &values, age: dense.first as usize, collections: None };
            (thing, Precedent::of(&floors))
        };
        Self(Thing::ALL.into_iter().map(of).collect())
    }
}

/// Judges a JVM's history, given precedents.
pub(super) fn judge(ladder: &Ladder, past: &Past, bounds: &Bounds, precedents: &Precedents) -> Verdicts {
    let Some(dense) = Dense::of(past) else { return Verdicts::default() };
    let memory_now = Thing::Memory.floor(dense.last).unwrap_or(0);
    let judged = |thing: Thing| {
        let now = thing.floor(dense.last)?;
        // A part without its own bound can grow until all memory is used.
        let room = now + bounds.memory.saturating_sub(memory_now);
        let limit = thing.bound(bounds).map_or(room, |own| own.min(room.max(now)));
        let values = dense.floors(thing);
        let collections = (thing == Thing::Heap).then(|| collections(&dense.cells));
        let floors = Floors { values: &values, age: dense.first as usize, collections: collections.as_deref() };
        let judgement = ladder.over(floors, precedents.0.get(&thing)).at(values.len(), limit as f64);
        let growth = told(&judgement, past.cell_s(Tier::TenMinutes));
        Some(ThingRecord { name: thing.name().to_owned(), bytes: now, limit_bytes: limit, growth })
    };
    let mut things: Vec<ThingRecord> = Thing::ALL.into_iter().filter_map(judged).collect();
    if let Some(heap) = bounds.heap.filter(|heap| is_filling_its_heap(&things, &dense, *heap, past)) {
        let memory = things.iter_mut().filter(|thing| is_memory(thing));
        memory.for_each(|memory| memory.growth = only_heap(&memory.growth, heap));
    }
    let mut growth = overall(&things);
    growth.near_limit = near_limit(past, bounds);
    Verdicts { growth, things }
}

fn is_memory(thing: &ThingRecord) -> bool {
    thing.name == Thing::Memory.name()
}

fn rises(thing: &ThingRecord) -> bool {
    thing.growth.bytes_per_hour.is_some()
}

/// Whether memory rises but none of its parts does, so the rise is heap used for the first time, and the whole heap
/// fits into the limit. At any time in the window, the remaining growth is at most the heap's maximum minus its highest
/// use so far, because used heap was touched before.
fn is_filling_its_heap(things: &[ThingRecord], dense: &Dense, heap: u64, past: &Past) -> bool {
    let (memory, mut parts) =
        (things.iter().find(|thing| is_memory(thing)), things.iter().filter(|one| !is_memory(one)));
    let Some(memory) = memory.filter(|memory| rises(memory) && !parts.any(rises)) else { return false };
    let window = memory.growth.window_s.unwrap_or(0.0) / past.cell_s(Tier::TenMinutes);
    let begin = dense.cells.len().saturating_sub(window as usize);
    let mut touched = 0;
    let most = |(at, cell): (usize, &Option<&Cell>)| {
        let cell = (*cell)?;
        touched = cell.most(Column::HeapUsed).unwrap_or(0).max(touched);
        let most = Thing::Memory.floor(cell)? + heap.saturating_sub(touched);
        (at >= begin).then_some(most)
    };
    dense.cells.iter().enumerate().filter_map(most).min().is_some_and(|most| most < memory.limit_bytes)
}

/// A rise that ends when all of the heap has been used.
fn only_heap(growth: &GrowthRecord, heap: u64) -> GrowthRecord {
    let unsure =
        format!("the heap is filling for the first time, and its maximum of {} fits within the limit", Bytes(heap));
    GrowthRecord {
        verdict: GrowthWord::Warming,
        bytes_per_hour_low: None,
        bytes_per_hour_high: None,
        limit_in_s: None,
        limit_in_s_latest: None,
        unsure,
        ..growth.clone()
    }
}

/// Old collections that ended in each cell.
fn collections(dense: &[Option<&Cell>]) -> Vec<u32> {
    let mut before = None;
    let ended = |cell: &Option<&Cell>| {
        let Some(now) = cell.and_then(|cell| cell.most(Column::OldCollections)) else { return 0 };
        let since = now.saturating_sub(before.unwrap_or(now));
        before = Some(now);
        since.try_into().unwrap_or(u32::MAX)
    };
    dense.iter().map(ended).collect()
}

/// Converts a judgment to seconds and words.
fn told(judgement: &Judgement, cell_s: f64) -> GrowthRecord {
    // Slopes refer to ten-minute cells; with shorter cells, they are proportionally steeper.
    let faster = SECONDS_OF_HOUR / (crate::growth::HOUR as f64 * cell_s);
    let mut record = GrowthRecord { verdict: judgement.verdict, ..GrowthRecord::default() };
    if let Some(hint) = judgement.hint {
        record.bytes_per_hour = Some(hint.slope * faster);
        record.window_s = Some(hint.window as f64 * cell_s);
        record.limit_in_s = Some(hint.rest * cell_s);
    }
    if let Some(growth) = judgement.growth {
        record.bytes_per_hour = Some(growth.slope * faster);
        record.bytes_per_hour_low = Some(growth.low * faster);
        record.bytes_per_hour_high = Some(growth.high * faster);
        record.window_s = Some(growth.window as f64 * cell_s);
        record.limit_in_s = Some(growth.projection.earliest * cell_s);
        record.limit_in_s_latest = growth.projection.latest.map(|latest| latest * cell_s);
    }
    record.unsure = judgement.unsure.map(|unsure| why(unsure, cell_s)).unwrap_or_default();
    record
}

fn why(unsure: Unsure, cell_s: f64) -> String {
    match unsure {
        Unsure::Young { seen, grows, steady } => {
            let left = |cells: usize| roughly(cells.saturating_sub(seen).max(1) as f64 * cell_s);
            let growth = match seen < grows {
                true => format!("growth can be detected in {}", left(grows)),
                false => format!("no lasting growth for {}", roughly(seen as f64 * cell_s)),
            };
            format!("{growth}, and a steady state can be confirmed in {}", left(steady))
        }
        Unsure::Collections { seen, needed } => {
            format!("only {} so far, and a verdict needs {needed}", several(seen.into(), "old GC"))
        }
        Unsure::Gaps => "samples are missing".to_owned(),
        Unsure::Moves { bytes } => format!("it varies by {} without a trend", Bytes(bytes as u64)),
    }
}

/// The JVM grows (or rises) if any part does; the part that reaches its bound first decides. Otherwise, its memory
/// decides.
fn overall(things: &[ThingRecord]) -> GrowthRecord {
    let soonest = |thing: &&ThingRecord| thing.growth.limit_in_s.map_or(u64::MAX, |seconds| (seconds * 1e3) as u64);
    let of = |word| things.iter().filter(move |thing| thing.growth.verdict == word);
    let growing = of(GrowthWord::Grows).min_by_key(soonest);
    let rising = of(GrowthWord::Warming).filter(|thing| rises(thing)).min_by_key(soonest);
    let memory = things.iter().find(|thing| is_memory(thing));
    let Some(first) = growing.or(rising).or(memory) else { return GrowthRecord::default() };
    let slope = |thing: &&ThingRecord| thing.growth.bytes_per_hour.map_or(0, |slope| slope as u64);
    let parts = things.iter().filter(|thing| !is_memory(thing) && rises(thing));
    let owner = if is_memory(first) { parts.max_by_key(slope) } else { Some(first) };
    let owner = first.growth.bytes_per_hour.and(owner).map(|thing| thing.name.clone());
    GrowthRecord { owner, ..first.growth.clone() }
}

/// Whether headroom is small enough to check every minute.
pub(super) fn is_near(sample: &Sample, bounds: &Bounds) -> bool {
    unreclaimable(|column| sample.get(column)).is_some_and(|held| leaves_little(held, bounds.memory))
}

/// Whether less than a tenth of the limit is free.
pub(super) fn leaves_little(held: u64, limit: u64) -> bool {
    (limit.saturating_sub(held) as f64) < NEAR_SHARE * limit as f64
}

/// Whether headroom is small and, at the pace of the last few minutes, will run out within the hour. This reacts
/// faster than any trend.
pub(super) fn near_limit(past: &Past, bounds: &Bounds) -> bool {
    let minutes = past.cells(Tier::Minutes);
    let recent = &minutes[minutes.len().saturating_sub(PACE_CELLS)..];
    let floors: Vec<f64> = recent.iter().filter_map(|cell| Some(Thing::Memory.floor(cell)? as f64)).collect();
    let Some(now) = past.cells(Tier::Samples).last().and_then(|cell| Thing::Memory.floor(cell)) else { return false };
    let headroom = bounds.memory.saturating_sub(now) as f64;
    if !leaves_little(now, bounds.memory) || floors.len() < PACE_CELLS {
        return false;
    }
    let a_sample = crate::growth::median_slope(&floors) / (past.cell_s(Tier::Minutes) / past.cell_s(Tier::Samples));
    a_sample > 0.0 && headroom / a_sample <= GONE_WITHIN_SAMPLES
}
