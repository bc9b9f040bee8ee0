//! Who holds the difference: the owners of the two accounts, each with its interval.

use super::super::super::super::quantity::{Estimate, shown, signed};
use super::super::escape::code;
use super::{Block, Sides};
use crate::comparison::split;
use crate::owner::{Owner, label};
use crate::record::{ComparisonRecord, Document, Unit};
use crate::scenario::MarkPoint;
use crate::units::trimmed;

/// Owners that are not sure are shown up to here.
const UNSURE_MAX: usize = 3;
/// And as far as they are such a share of what changed.
const UNSURE_LEAST: f64 = 0.1;
/// The longest bar.
const BAR: f64 = 12.0;

/// What each owner holds on both sides at a mark, the largest difference first.
pub(super) fn at<'a>(document: &'a Document, sides: &Sides<'_>, mark: &str) -> Vec<&'a ComparisonRecord> {
    let own = |of: &&ComparisonRecord| {
        let (owner, place) = split(&of.metric);
        let pair = of.baseline == sides.baseline.whole && of.candidate == sides.candidate.whole;
        // What rounds to nothing is nothing to a reader.
        pair && place == mark && Owner::named(owner).is_some() && digits(of) != "0.0"
    };
    let mut found: Vec<&ComparisonRecord> = document.comparisons.iter().filter(own).collect();
    found.sort_by(|one, other| other.difference.abs().total_cmp(&one.difference.abs()));
    found
}

/// The mark at which owners are told: that of the metric, or the end of the load.
pub(super) fn mark(row: &ComparisonRecord) -> &str {
    let (_, place) = split(&row.metric);
    if row.unit == Unit::Bytes && !place.is_empty() { place } else { MarkPoint::Loaded.word() }
}

/// Whether a difference is surely one, however small.
pub(super) fn is_sure(of: &ComparisonRecord) -> bool {
    of.low.is_some_and(|low| low > 0.0) || of.high.is_some_and(|high| high < 0.0)
}

/// `+4.1`, in MiB.
pub(super) fn digits(of: &ComparisonRecord) -> String {
    let text = signed(Unit::Bytes, Some(of.difference));
    text.strip_suffix(" MiB").unwrap_or(&text).to_owned()
}

/// The table of owners; `None` where neither account tells any, or memory is not what changed and no owner surely did.
pub(super) fn table(
    document: &Document,
    sides: &Sides<'_>,
    moved: &ComparisonRecord,
    has_several: bool,
) -> Option<Block> {
    let mark = mark(moved);
    // Owners that are not sure explain nothing but what memory does.
    let matters = |of: &&ComparisonRecord| {
        moved.unit == Unit::Bytes && of.difference.abs() >= UNSURE_LEAST * moved.difference.abs()
    };
    let (sure, unsure): (Vec<_>, Vec<_>) = at(document, sides, mark).into_iter().partition(|of| is_sure(of));
    let unsure: Vec<_> = unsure.into_iter().filter(matters).take(UNSURE_MAX).collect();
    let note = if unsure.is_empty() { "" } else { " (`?` where the difference is not sure)" };
    let rows = [sure, unsure].concat();
    let most = rows.iter().map(|of| of.difference.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let whose = if has_several { format!(" of {}", code(sides.candidate.configuration)) } else { String::new() };
    let row = |of: &&ComparisonRecord| {
        let [before, after] = [of.baseline_median, of.candidate_median].map(|held| shown(of.unit, Some(held)));
        let difference = Estimate::new(of.unit, of.difference, of.low.zip(of.high)).difference();
        let length = (of.difference.abs() / most * BAR).round().max(1.0) as usize;
        let bar = match is_sure(of) {
            true if of.difference < 0.0 => "░".repeat(length),
            true => "█".repeat(length),
            false => "?".to_owned(),
        };
        format!("| {} | {before} | {after} | {difference} | {bar} |\n", label(split(&of.metric).0))
    };
    let head = format!(
        "Account{whose} at {}, by owner{note}:\n\n| owner | {} | {} | difference | |\n|:--|--:|--:|--:|:--|\n",
        code(mark),
        code(sides.baseline.name()),
        code(sides.candidate.name())
    );
    let rows: Vec<String> = rows.iter().map(row).collect();
    (!rows.is_empty()).then_some(Block { head, rows })
}

/// What the intervals promise.
pub(super) fn promise(document: &Document, has_owners: bool) -> Option<String> {
    let first = document.comparisons.iter().find(|of| of.primary && of.low.is_some())?;
    let owners = if has_owners { "; owners are estimated one by one, and need not add up to RSS" } else { "" };
    Some(format!("Intervals hold together with {} % confidence{owners}.", trimmed(first.confidence * 100.0, 2)))
}
