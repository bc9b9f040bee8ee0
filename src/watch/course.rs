//! How a JVM's parts develop over time: sizes and changes.

use super::bounds::Bounds;
use super::cell::Cell;
use super::column::Column;
use super::history::{Past, Tier};
use super::sample::Sample;
use super::shown::{by_counters, shown};
use super::verdicts::Thing;
use crate::record::{WatchChange, WatchCourse, WatchPart};

/// The time spans for changes, in seconds.
const BACK_S: [u64; 3] = [600, 3600, 86_400];
/// The parts in document order, named after things and owners.
const PARTS: [&str; 8] = ["memory", "java_heap", HEAP, "metaspace", "direct", "threads", REST, "files"];
/// Memory that counters do not cover, mostly malloc's.
const REST: &str = "rest";
/// The part of `java_heap` that old collections left.
const HEAP: &str = "heap";

/// All parts over time, in up to `stretches` equal spans: over the last hour if there is no more data, otherwise over
/// the last day. Each span shows its maximum, so that short peaks are visible.
pub(super) fn course(past: &Past, bounds: &Bounds, stretches: usize) -> WatchCourse {
    let samples = past.cells(Tier::Samples);
    let Some(last) = samples.last().map(Cell::sample) else { return WatchCourse::default() };
    let seen_longer = past.cells(Tier::Minutes).first().zip(samples.first()).is_some_and(|(minute, sample)| {
        (minute.number + 1) as f64 * past.cell_s(Tier::Minutes) <= sample.number as f64 * past.cell_s(Tier::Samples)
    });
    let tier = if seen_longer { Tier::Minutes } else { Tier::Samples };
    let cells = past.cells(tier);
    let (first, end) = (cells[0].number, cells[cells.len() - 1].number + 1);
    let step = (end - first).div_ceil(stretches.max(1) as u64).max(1);
    let mut most = vec![None; (end - first).div_ceil(step) as usize];
    for cell in cells {
        let stretch: &mut Option<Sample> = &mut most[((cell.number - first) / step) as usize];
        raise(stretch.get_or_insert(Sample::at(0)), cell);
    }
    let part = |name: &str| WatchPart {
        name: name.to_owned(),
        bytes: held(name, &last),
        bound_bytes: match name {
            "java_heap" => bounds.heap,
            // The heap left by old collections has no bound of its own.
            HEAP => None,
            _ => Thing::ALL.into_iter().find(|thing| thing.name() == name).and_then(|thing| thing.bound(bounds)),
        },
        changes: Vec::new(),
        values: most.iter().map(|sample| held(name, sample.as_ref()?)).collect(),
    };
    let mut parts: Vec<WatchPart> = PARTS.into_iter().map(part).collect();
    for change in changes(past) {
        parts.iter_mut().filter(|part| part.name == change.name).for_each(|part| part.changes.push(change.clone()));
    }
    parts.retain(|part| part.name == REST || part.bytes.is_some() || part.values.iter().any(Option::is_some));
    WatchCourse {
        from_age_s: first as f64 * past.cell_s(tier),
        step_s: step as f64 * past.cell_s(tier),
        parts,
        limit_bytes: most.iter().map(|sample| sample.as_ref()?.get(Column::Limit)).collect(),
    }
}

/// Compares each part's latest size with its mean in an earlier cell, and with the first sample if that is less than a
/// day old.
pub(super) fn changes(past: &Past) -> Vec<WatchChange> {
    let Some(last) = past.cells(Tier::Samples).last() else { return Vec::new() };
    let now_s = last.number as f64 * past.cell_s(Tier::Samples);
    let now = last.sample();
    let then = |over_s: u64| Some((over_s, at(past, now_s - over_s as f64)?.sample()));
    let first =
        Tier::ALL.into_iter().filter_map(|tier| Some(past.cells(tier).first()?.number as f64 * past.cell_s(tier)));
    let seen_s = (now_s - first.fold(now_s, f64::min)) as u64;
    let spans = BACK_S.into_iter().filter(|span| *span < seen_s);
    let whole = (1..BACK_S[2]).contains(&seen_s).then_some(seen_s);
    let of = |(over_s, then): (u64, Sample)| {
        let change = move |name: &str| {
            let (before_bytes, after_bytes) = held(name, &then).zip(held(name, &now))?;
            Some(WatchChange { over_s, name: name.to_owned(), before_bytes, after_bytes })
        };
        PARTS.into_iter().filter_map(change).collect::<Vec<_>>()
    };
    spans.chain(whole).filter_map(then).flat_map(of).collect()
}

/// The shortest cell that contains this age.
fn at(past: &Past, age_s: f64) -> Option<&Cell> {
    Tier::ALL.into_iter().find_map(|tier| {
        let number = (age_s / past.cell_s(tier)).floor();
        past.cells(tier).iter().find(|cell| number >= 0.0 && cell.number == number as u64)
    })
}

/// Raises the sample to the cell's maxima.
fn raise(sample: &mut Sample, cell: &Cell) {
    for column in Column::ALL {
        if let Some(most) = cell.most(column).filter(|most| sample.get(column).is_none_or(|seen| seen < *most)) {
            sample.set(column, most);
        }
    }
}

fn held(part: &str, sample: &Sample) -> Option<u64> {
    let seen = shown(sample);
    match part {
        "memory" => seen.unreclaimable_bytes,
        HEAP => seen.heap_floor_bytes,
        _ => {
            seen.rss_anon_bytes?;
            let owners = by_counters(&seen);
            let own = owners.iter().find(|owner| owner.name == part).map(|owner| owner.bytes);
            // Every JVM has a rest; untouched committed heap can hide all of it. Without counters, the other parts are
            // unknown, not zero.
            own.or((part != REST && (seen.heap_committed_bytes.is_some() || part == "files")).then_some(0))
        }
    }
}
