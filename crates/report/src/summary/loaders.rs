//! Class loaders: by type for one account, and over a trial's marks if classes came or went.

use super::cells::{beginning, end, mib, rounds_to_none, signed};
use crate::page::Part;
use crate::record::{LoaderChange, LoaderSum, LoaderType, LoadersRecord, Mark, Trial};
use crate::table::Table;
use crate::units::{Bytes, Growth, grouped};
use crate::words::gathered;
use loadline_base::order::Order as _;

/// If no more than this many classes changed between two marks, they are not reported: a few always load late.
const CLASSES_MIN: u64 = 50;
/// A type with unchanged loaders and fewer loaded classes is not reported.
const LATE_CLASSES: u64 = 10;
/// Maximum number of types reported per span.
const TYPES_MAX: usize = 3;
/// Maximum number of types reported for one account.
const ROWS_MAX: usize = 40;
/// Room in characters for names next to numbers.
const NAME_MAX: usize = 30;
const MARK_MAX: usize = 14;
const TYPE_MAX: usize = 36;

/// An account's loaders by type, or why they are missing.
pub(super) fn by_type(mark: &Mark) -> Part {
    let Some(loaders) = &mark.loaders else {
        return Part::Text("The class loaders are unknown: the JVM did not report them.".to_owned());
    };
    let row = |name: String, of: &LoaderSum| {
        let counts = [of.loaders, of.classes, of.hidden_classes].map(grouped);
        [vec![name], counts.to_vec(), [of.taken_bytes, of.used_bytes].map(mib).to_vec()].concat()
    };
    let living = loaders.types.iter().filter(|of| of.now.loaders > 0);
    let mut rows: Vec<Vec<String>> =
        living.clone().take(ROWS_MAX).map(|of| row(end(&of.name, TYPE_MAX), &of.now)).collect();
    let left = loaders.types_left_out + (living.count().saturating_sub(ROWS_MAX)) as u64;
    rows.push(row("all".to_owned(), &loaders.total));
    let head = ["class loader", "loaders", "classes", "hidden", "taken", "used"];
    let title = "metaspace and class space by class loader, MiB";
    let more = (left > 0).then(|| format!("and {} more types (--json)", grouped(left)));
    let counted = mark.classes.map(|classes| {
        let (loaded, shared, unloaded) = (grouped(classes.loaded), grouped(classes.shared), grouped(classes.unloaded));
        format!(
            "{loaded} classes are loaded, and {unloaded} have been unloaded. The CDS archive supplied {shared} of all \
                classes so far. Loaders count array classes too."
        )
    });
    let taken = "Taken: the total size of a loader's chunks, resident or not. Classes from the CDS archive take none."
        .to_owned();
    Part::Table(Table::new(title, head, rows).noted(more.into_iter().chain(counted).chain([taken])))
}

/// Changes from mark to mark, if more than [`CLASSES_MIN`] classes came or went.
pub(crate) fn of_trial(trial: &Trial) -> Option<Table> {
    let spans = trial.marks.windows(2).filter(|pair| moved(&pair[0], &pair[1]) > CLASSES_MIN);
    let rows = spans.flat_map(|pair| rows_of(&pair[1]));
    let head = ["until", "class loader", "new", "gone", "classes", "MiB"];
    Table::new("class loaders, from mark to mark", head, rows).worded(2, 0).noted(in_all(trial)).filled()
}

/// How many classes came or went, according to the source that saw more.
fn moved(from: &Mark, to: &Mark) -> u64 {
    let counted = from.classes.zip(to.classes).map_or(0, |(from, to)| to.loaded.abs_diff(from.loaded));
    let change = to.loaders.as_ref().and_then(|loaders| loaders.change);
    counted.max(change.map_or(0, |change| change.added.classes.max(change.ended.classes)))
}

/// The types that changed most up to this mark, and a row for the others.
fn rows_of(mark: &Mark) -> Vec<Vec<String>> {
    let Some(LoadersRecord { change: Some(all), types, .. }) = &mark.loaders else { return Vec::new() };
    let mut changed: Vec<(&LoaderType, LoaderChange)> =
        types.iter().filter_map(|of| Some((of, of.change?))).filter(|(_, change)| is_shown(change)).collect();
    changed.largest_first(|(_, change)| weight(change));
    let row = |name: String, change: &LoaderChange| {
        let (new, gone) = (grouped(change.added.loaders), grouped(change.ended.loaders));
        let classes = signed(change.classes_growth(), grouped);
        vec![beginning(&mark.name, MARK_MAX), name, new, gone, classes, Growth(change.taken_bytes_growth()).to_string()]
    };
    let mut rows: Vec<Vec<String>> =
        changed.iter().take(TYPES_MAX).map(|(of, change)| row(end(brief(&of.name), NAME_MAX), change)).collect();
    if changed.len() > TYPES_MAX {
        rows.push(row("all loaders".to_owned(), all));
    }
    rows
}

/// Whether a change exceeds the few classes that a loader always loads late.
fn is_shown(change: &LoaderChange) -> bool {
    let loaders = change.added.loaders.max(change.ended.loaders);
    let classes = change.classes_growth().unsigned_abs();
    loaders > 0 || classes >= LATE_CLASSES || !rounds_to_none(change.taken_bytes_growth().unsigned_abs())
}

/// A change's sort key: the largest number of bytes or classes that were added or removed.
fn weight(change: &LoaderChange) -> u64 {
    let bytes = change.added.taken_bytes.max(change.ended.taken_bytes);
    let kept = change.kept_taken_bytes_growth.unsigned_abs();
    let classes = change.added.classes.max(change.ended.classes).max(change.kept_classes_growth.unsigned_abs());
    bytes.max(kept).max(classes)
}

/// Growth since the first mark, for types with more loaders now.
fn in_all(trial: &Trial) -> Option<String> {
    let with = || trial.marks.iter().filter(|mark| mark.loaders.is_some());
    let (first, last) = (with().next()?, with().next_back()?);
    let types = with().skip(1).flat_map(|mark| mark.loaders.iter().flat_map(|loaders| &loaders.types));
    let changes = types.map(|of| (of.name.as_str(), of.change.unwrap_or_default()));
    let changes = gathered(changes, |one, other| one == other).into_iter();
    let sum = |all: Vec<LoaderChange>| all.into_iter().fold(LoaderChange::default(), LoaderChange::plus);
    let mut sums: Vec<(&str, LoaderChange)> = changes.map(|(name, all)| (name, sum(all))).collect();
    sums.retain(|(_, change)| change.loaders_growth() > 0);
    sums.largest_first(|(_, change)| change.taken_bytes_growth());
    let told = |(name, change): &(&str, LoaderChange)| {
        let loaders = grouped(change.loaders_growth().unsigned_abs());
        let classes = signed(change.classes_growth(), grouped);
        let size = Bytes(change.taken_bytes_growth().max(0) as u64);
        format!("{loaders} more {}, {classes} classes, {size}", end(brief(name), NAME_MAX))
    };
    let parts: Vec<String> = sums.iter().take(TYPES_MAX).map(told).collect();
    (!parts.is_empty()).then(|| format!("From {} to {}, in total: {}.", first.name, last.name, parts.join("; ")))
}

/// A class without its packages.
fn brief(name: &str) -> &str {
    name.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or(name)
}

#[cfg(test)]
#[path = "loaders_tests.rs"]
mod tests;
