//! A JVM's sizes according to its histories, for sizing advice.

use super::account::{self, accounts_beside};
use super::cell::Cell;
use super::column::Column;
use super::history::{Past, Tier};
use super::kept::Kept;
use super::lives;
use super::name::{JvmEnvironment, Name};
use super::sample::{Sample, unreclaimable};
use super::shown::THREAD_BYTES;
use super::verdicts::{Precedents, judge};
use crate::growth::Ladder;
use crate::record::{GrowthWord, PlaceRecord};
use crate::units::MIB;
use crate::weigh::container::pods;
use loadline_jvm::owner::is_heap;
use loadline_search::{HeapSeen, PartSeen, Seen};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const DAY_S: f64 = 86_400.0;
/// A day's peak counts as near the highest if it is at least this share of it.
const NEAR: f64 = 0.95;
/// A JVM of this age that has collected has filled its young generation.
const FILLED_S: f64 = 120.0;
/// Halves of the time are compared if each has this many cells.
const CELLS_OF_HALF: usize = 3;
/// Parts covered by JVM counters, with owner names.
const PARTS: [(&str, Column); 4] = [
    ("metaspace", Column::MetaspaceCommitted),
    ("thread_stacks", Column::Threads),
    ("mapped_files", Column::RssFile),
    ("malloc.direct", Column::Direct),
];
/// All other anonymous memory.
const REST: &str = "rest";

/// Facts from an account of the JVM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByAccount {
    /// The resident share of its committed heap, 0 to 1.
    pub heap_resident: f64,
}

/// The histories of a name: the requested life, and others in the same directory.
#[derive(Debug)]
pub struct NamedHistories {
    /// The requested life.
    pub kept: Kept,
    pasts: Vec<(PathBuf, Past)>,
}

impl NamedHistories {
    /// Reads the history in this file, and those of other lives with its name in the same directory. Fails if the file
    /// cannot be read, is not a history, or is empty.
    pub fn read(path: &Path) -> io::Result<Self> {
        let own = Past::read(path)?;
        if own.cells(Tier::TenMinutes).is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has no sample yet"));
        }
        let kept = own.kept.clone();
        let others =
            lives::of_name(&kept, path).into_iter().filter_map(|file| Some((file.clone(), Past::read(&file).ok()?)));
        let others = others.filter(|(_, past)| !past.cells(Tier::TenMinutes).is_empty());
        let pasts = std::iter::once((path.to_owned(), own)).chain(others).collect();
        Ok(Self { kept, pasts })
    }

    /// Finds the history of a running process in a watch's directory.
    pub fn of_process(folder: &Path, pid: u32, started_ticks: u64, boot_id: Option<&str>) -> Option<Self> {
        let kept = Kept { pid, started_ticks, boot_id: boot_id.map(str::to_owned), ..Kept::default() };
        let (path, _) = lives::own(folder, &[&kept]).pop()??;
        Self::read(&path).ok()
    }

    /// Combines all histories. An account has more precise owners; then the histories add time, peaks, and growth.
    pub fn seen(&self, by_account: Option<ByAccount>) -> Seen {
        let all = self.pasts.iter().map(|(path, past)| seen(past, path, by_account));
        let mut all = all.reduce(Seen::with).unwrap_or_default();
        // The age is the requested life's.
        all.age_s = self.pasts.first().and_then(|(_, past)| {
            Some((past.cells(Tier::TenMinutes).last()?.number + 1) as f64 * past.cell_s(Tier::TenMinutes))
        });
        all
    }
}

/// A JVM's name by its cgroup, as in a watch, and the names of its container; `main` is its main class or archive.
pub fn place(cgroup: &str, main: &str) -> (String, PlaceRecord) {
    let Name { text, labels } = Name::of(&JvmEnvironment::of(cgroup), main, &pods());
    let label = |name: &str| labels.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let [namespace, pod, container, unit] = ["namespace", "pod", "container", "unit"].map(label);
    (text, PlaceRecord { namespace, pod, container, unit })
}

fn seen(past: &Past, path: &Path, by_account: Option<ByAccount>) -> Seen {
    let cells = past.cells(Tier::TenMinutes);
    let most = |column| cells.iter().filter_map(|cell| cell.most(column)).max();
    let floor = |column| cells.iter().filter_map(|cell| cell.least(column)).max();
    let left = floor(Column::HeapFloor);
    let beside = accounts_beside(path).last().and_then(account::read).filter(|_| by_account.is_none());
    let heap_in_account = beside
        .as_ref()
        .map(|of| of.owners.iter().filter(|owner| is_heap(&owner.name)).map(|owner| owner.bytes).sum::<u64>());
    let touched = touched(past);
    let heap_of = |sample: &Sample| {
        let [used, committed] = [Column::HeapUsed, Column::HeapCommitted].map(|column| sample.get(column).unwrap_or(0));
        match (by_account, heap_in_account) {
            (Some(known), _) => (committed as f64 * known.heap_resident) as u64,
            (None, Some(resident)) => resident.min(committed),
            (None, None) => {
                let before = touched.partition_point(|(end_s, _)| *end_s * 1e3 <= sample.age_ms as f64);
                before.checked_sub(1).map_or(0, |last| touched[last].1).min(committed).max(used)
            }
        }
    };
    let kernel = most(Column::ChargeKernel).unwrap_or(0);
    let peaks: Vec<(u64, u64)> = samples(past).map(|sample| (peak(&sample, kernel), heap_of(&sample))).collect();
    let peak = peaks.iter().map(|(peak, _)| *peak).max().unwrap_or(0);
    let above = peaks.iter().map(|(peak, heap)| peak.saturating_sub(*heap)).max().unwrap_or(0);
    let parts = match (by_account, beside) {
        (Some(_), _) => Vec::new(),
        (None, Some(account)) => {
            let outside = account.owners.into_iter().filter(|owner| !is_heap(&owner.name));
            outside.map(|owner| PartSeen { owner: owner.name, bytes: owner.bytes, growth: None }).collect()
        }
        (None, None) => by_counters(past, heap_of),
    };
    let growth = Seen { parts: growth(past), ..Seen::default() };
    let seen = Seen {
        heap: HeapSeen {
            left: left.or_else(|| floor(Column::HeapUsed)),
            old_collections: left.and_then(|_| most(Column::OldCollections)).unwrap_or(0),
            allocated_per_s: allocated_per_s(past),
            committed: most(Column::HeapCommitted),
            max: past.kept.bounds.heap.or_else(|| most(Column::HeapMax)),
        },
        parts,
        kernel: if kernel > 0 { kernel } else { Seen::kernel_of(most(Column::Threads).unwrap_or(0), peak) },
        others: samples(past).filter_map(|sample| others(&sample)).max().unwrap_or(0),
        spare: most(Column::RssFile).unwrap_or(0),
        peak,
        heap_at_peak: peak - above.min(peak),
        direct: most(Column::Direct).unwrap_or(0),
        watched_s: cells.iter().map(|cell| f64::from(cell.samples)).sum::<f64>() * past.kept.every_ms as f64 / 1e3,
        lives: 1,
        peaks: peak_days(past),
        limit_now: most(Column::ChargeAnon).and_then(|_| cells.last()?.most(Column::Limit)),
        grows: grows(past),
        ..Seen::default()
    };
    seen.with(growth)
}

fn grows(past: &Past) -> bool {
    judge(&Ladder::default(), past, &past.kept.bounds, &Precedents::default()).growth.verdict == GrowthWord::Grows
}

/// The minimum resident heap at the end of each cell, by age in seconds. Used memory stays resident until the heap
/// shrinks: a collection empties the young generation but returns none of it.
fn touched(past: &Past) -> Vec<(f64, u64)> {
    let begin_s = |tier| past.cells(tier).first().map(|cell| cell.number as f64 * past.cell_s(tier));
    let first = past.cells(Tier::Samples).first().filter(|cell| cell.most(Column::GcTime) > Some(0));
    let is_filled = first.is_some() && begin_s(Tier::Samples).is_some_and(|begin_s| begin_s >= FILLED_S);
    let of_first = past.cells(Tier::TenMinutes).first().and_then(|cell| cell.most(Column::HeapUsed));
    let mut resident = of_first.filter(|_| is_filled).unwrap_or(0);
    let mut found = Vec::new();
    let tiers = [(Tier::TenMinutes, Some(Tier::Minutes)), (Tier::Minutes, Some(Tier::Samples)), (Tier::Samples, None)];
    for (tier, finer) in tiers {
        let until_s = finer.and_then(begin_s).unwrap_or(f64::INFINITY);
        let cell_s = past.cell_s(tier);
        for cell in past.cells(tier).iter().take_while(|cell| (cell.number as f64) * cell_s < until_s) {
            let [used, committed] = [cell.most(Column::HeapUsed), cell.least(Column::HeapCommitted)];
            resident = resident.max(used.unwrap_or(0)).min(committed.unwrap_or(0));
            found.push(((cell.number + 1) as f64 * cell_s, resident));
        }
    }
    found
}

/// The samples at each column's maximum, and the last one.
fn samples(past: &Past) -> impl Iterator<Item = Sample> {
    let aged = |cell: &Cell| Sample::from_values((cell.number + 1) * past.kept.every_ms, *cell.sample().values());
    let last = past.cells(Tier::Samples).last().map(aged);
    past.extremes.iter().map(|(_, sample)| *sample).chain(last)
}

/// The larger of the unreclaimable charge, and RSS plus kernel memory.
fn peak(sample: &Sample, kernel: u64) -> u64 {
    let get = |column| sample.get(column).unwrap_or(0);
    let rss = [Column::RssAnon, Column::RssShmem, Column::RssFile, Column::Swap].map(get).iter().sum::<u64>() + kernel;
    rss.max(unreclaimable(|column| sample.get(column)).unwrap_or(0))
}

fn others(sample: &Sample) -> Option<u64> {
    let own = sample.get(Column::RssAnon)? + sample.get(Column::RssShmem).unwrap_or(0);
    Some(sample.get(Column::ChargeAnon)?.saturating_sub(own))
}

fn bytes(column: Column, value: u64) -> u64 {
    if column == Column::Threads { value * THREAD_BYTES } else { value }
}

/// Parts covered by counters, and the rest of anonymous memory.
fn by_counters(past: &Past, heap_of: impl Fn(&Sample) -> u64) -> Vec<PartSeen> {
    let cells = past.cells(Tier::TenMinutes);
    let most = |column| Some(bytes(column, cells.iter().filter_map(|cell| cell.most(column)).max()?));
    let part = |owner: &str, bytes| PartSeen { owner: owner.to_owned(), bytes, growth: None };
    let rest = |sample: Sample| {
        let get = |column| sample.get(column).unwrap_or(0);
        let anon = get(Column::RssAnon) + get(Column::RssShmem) + get(Column::Swap);
        let known =
            [Column::MetaspaceCommitted, Column::Threads, Column::Direct].map(|column| bytes(column, get(column)));
        anon.saturating_sub(heap_of(&sample) + known.iter().sum::<u64>())
    };
    let known = PARTS.iter().filter_map(|(owner, column)| Some(part(owner, most(*column)?)));
    let rest = samples(past).map(rest).max().map(|bytes| part(REST, bytes));
    known.chain(rest).filter(|part| part.bytes > 0).collect()
}

/// Each part's growth from the first half of the time to the second.
fn growth(past: &Past) -> Vec<PartSeen> {
    let tiers = [Tier::TenMinutes, Tier::Minutes, Tier::Samples].map(|tier| past.cells(tier));
    let Some(cells) = tiers.into_iter().find(|cells| cells.len() >= 2 * CELLS_OF_HALF) else { return Vec::new() };
    let (earlier, later) = cells.split_at(cells.len() / 2);
    let most = |cells: &[Cell], column| cells.iter().filter_map(|cell| cell.most(column)).max();
    let grown = |(owner, column): &(&str, Column)| {
        let growth = most(later, *column)?.saturating_sub(most(earlier, *column)?);
        Some(PartSeen { owner: (*owner).to_owned(), bytes: 0, growth: Some(bytes(*column, growth)) })
    };
    PARTS.iter().filter_map(grown).filter(|part| part.growth > Some(0)).collect()
}

/// The maximum allocation rate per second, over cells of any length.
fn allocated_per_s(past: &Past) -> Option<f64> {
    let rate = |tier: Tier, pair: &[Cell]| {
        let [before, after] = pair else { return None };
        let allocated = after.most(Column::Allocated)?.checked_sub(before.most(Column::Allocated)?)?;
        let seconds = (after.number - before.number) as f64 * past.cell_s(tier);
        // The counter has a resolution of 1 MiB.
        Some((allocated + MIB) as f64 / seconds).filter(|_| after.number > before.number)
    };
    let rates =
        Tier::ALL.into_iter().flat_map(|tier| past.cells(tier).windows(2).filter_map(move |pair| rate(tier, pair)));
    rates.reduce(f64::max)
}

/// The number of days with a peak near the highest.
fn peak_days(past: &Past) -> u64 {
    let cell_s = past.cell_s(Tier::TenMinutes);
    let mut days: BTreeMap<u64, u64> = BTreeMap::new();
    for cell in past.cells(Tier::TenMinutes) {
        let day = (cell.number as f64 * cell_s / DAY_S) as u64;
        let held = unreclaimable(|column| cell.most(column)).unwrap_or(0);
        days.entry(day).and_modify(|most| *most = (*most).max(held)).or_insert(held);
    }
    let most = days.values().copied().max().unwrap_or(0);
    days.values().filter(|held| **held as f64 >= NEAR * most as f64).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Bounds;
    use crate::watch::history::History;

    /// A life of this many hours, in a file in this directory. The heap after old collections varies between 40 and 60
    /// MiB.
    fn life(folder: &Path, started: u64, hours: u64, change: impl Fn(u64, &mut Sample)) -> PathBuf {
        let bounds = Bounds { memory: 1 << 30, heap: Some(256 * MIB), ..Bounds::default() };
        let kept = Kept {
            name: "shop.service".to_owned(),
            pid: 4711,
            started_unix_s: started,
            started_ticks: started,
            every_ms: 10_000,
            bounds,
            ..Kept::default()
        };
        let path = folder.join(format!("shop.service.{started}.4711.history"));
        let mut history = History::open(&path, &kept).unwrap();
        for turn in 0..hours * 360 {
            let mut sample = Sample::at(turn * 10_000);
            let set = [
                (Column::RssAnon, 200 * MIB),
                (Column::RssFile, 20 * MIB),
                (Column::HeapUsed, 90 * MIB),
                (Column::HeapCommitted, 128 * MIB),
                (Column::HeapFloor, (40 + turn % 2 + if turn / 360 == 1 { 20 } else { 0 }) * MIB),
                (Column::MetaspaceCommitted, 30 * MIB),
                (Column::Threads, 8),
                (Column::OldCollections, 1 + turn / 100),
                (Column::Allocated, turn * 50 * MIB),
            ];
            set.into_iter().for_each(|(column, value)| sample.set(column, value));
            change(turn, &mut sample);
            history.add(&sample).unwrap();
        }
        path
    }

    #[test]
    fn a_history_shows_live_set_allocation_parts_and_peak() {
        let folder = tempfile::tempdir().unwrap();
        let path = life(folder.path(), 1, 3, |_, _| ());
        let histories = NamedHistories::read(&path).unwrap();
        let seen = histories.seen(None);
        assert_eq!(seen.heap.left, Some(60 * MIB), "the live set is the largest of the ten-minute minima");
        assert_eq!((seen.heap.old_collections, seen.heap.committed), (11, Some(128 * MIB)));
        let rate = seen.heap.allocated_per_s.unwrap() / MIB as f64;
        assert!((5.0..5.2).contains(&rate), "{rate}");
        let bytes = |owner: &str| seen.parts.iter().find(|part| part.owner == owner).map(|part| part.bytes / MIB);
        // 200 minus 90 of heap in use, 30 of metaspace, and 1 of threads.
        assert_eq!(["metaspace", "thread_stacks", "mapped_files", REST].map(bytes), [30, 1, 20, 79].map(Some));
        assert_eq!((seen.peak / MIB, seen.heap_at_peak / MIB), (220, 90));
        assert_eq!((seen.watched_s, seen.lives, seen.peaks, seen.grows), (10_800.0, 1, 1, false));
        // The account adds owners, and that half of the committed heap is resident.
        let known = histories.seen(Some(ByAccount { heap_resident: 0.5 }));
        assert_eq!((known.parts.len(), known.heap_at_peak / MIB), (0, 64));
    }

    #[test]
    fn resident_pages_of_collected_garbage_are_not_malloc() {
        let seen = |committed: fn(u64) -> u64| {
            let folder = tempfile::tempdir().unwrap();
            let path = life(folder.path(), 1, 1, |turn, sample| {
                // RSS peaks while little heap is in use.
                sample.set(Column::RssAnon, (90 + turn.min(22) * 5) * MIB);
                sample.set(Column::HeapUsed, (20 + turn * 7 % 71) * MIB);
                sample.set(Column::HeapCommitted, committed(turn) * MIB);
            });
            let seen = NamedHistories::read(&path).unwrap().seen(None);
            let rest = seen.parts.iter().find(|part| part.owner == REST).unwrap().bytes / MIB;
            (rest, (seen.peak - seen.heap_at_peak) / MIB)
        };
        // 200 minus 90 of heap once in use, 30 of metaspace, and 1 of threads; 20 are files.
        assert_eq!(seen(|_| 128), (79, 130));
        // A shrunken heap has less: 89 were in use since, or 60 are left.
        assert_eq!(seen(|turn| if turn == 19 { 60 } else { 128 }), (80, 131));
        assert_eq!(seen(|turn| if turn == 22 { 60 } else { 128 }), (109, 160));
    }

    #[test]
    fn other_lives_of_the_name_count_and_other_names_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = life(folder.path(), 1, 1, |_, _| ());
        life(folder.path(), 2, 1, |_, sample| sample.set(Column::RssAnon, 300 * MIB));
        std::fs::copy(&path, folder.path().join("other.service.3.9.history")).unwrap();
        std::fs::write(folder.path().join("shop.service.4.9.history"), "no history").unwrap();
        let seen = NamedHistories::read(&path).unwrap().seen(None);
        assert_eq!((seen.lives, seen.watched_s, seen.peak / MIB), (2, 7_200.0, 320));
    }

    #[test]
    fn growth_is_reported_and_an_unknown_live_set_is_an_upper_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = life(folder.path(), 1, 2, |turn, sample| {
            sample.set(Column::MetaspaceCommitted, (30 + if turn >= 360 { 5 } else { 0 }) * MIB);
            sample.set(Column::OldCollections, 0);
            *sample = Sample::from_values(sample.age_ms, without_floor(*sample.values()));
        });
        let seen = NamedHistories::read(&path).unwrap().seen(None);
        let metaspace = seen.parts.iter().find(|part| part.owner == "metaspace").unwrap();
        assert_eq!((metaspace.bytes / MIB, metaspace.growth), (35, Some(5 * MIB)));
        assert_eq!((seen.heap.left, seen.heap.old_collections), (Some(90 * MIB), 0));
    }

    fn without_floor(mut values: [u32; super::super::column::COLUMNS]) -> [u32; super::super::column::COLUMNS] {
        values[Column::HeapFloor as usize] = super::super::sample::UNSEEN;
        values
    }

    #[test]
    fn invalid_histories_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = life(folder.path(), 1, 0, |_, _| ());
        assert!(NamedHistories::read(&path).unwrap_err().to_string().contains("no sample yet"));
        std::fs::write(&path, "").unwrap();
        let why = NamedHistories::read(&path).unwrap_err().to_string();
        assert!(why.contains("does not start with a history header"), "{why}");
        assert!(NamedHistories::read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_leak_is_marked_as_growth() {
        let folder = tempfile::tempdir().unwrap();
        let path = life(folder.path(), 1, 60, |turn, sample| sample.set(Column::RssAnon, 200 * MIB + turn * MIB / 36));
        assert!(NamedHistories::read(&path).unwrap().seen(None).grows);
    }
}
