//! Who holds the difference: the owners of the two accounts, each with its interval.

use super::super::super::super::quantity::{Estimate, shown, signed};
use super::super::escape::code;
use super::{Block, Sides};
use crate::comparison::split;
use crate::owner::{Owner, label};
use crate::record::{ComparisonRecord, Document, Unit};
use crate::scenario::MarkPoint;
use crate::units::trimmed;

/// Owners of which none is sure are shown up to here.
const UNSURE_MAX: usize = 3;
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
    let all = at(document, sides, mark);
    let sure: Vec<_> = all.iter().copied().filter(|of| is_sure(of)).collect();
    let (rows, title) = match sure.is_empty() {
        false => (sure, "Account"),
        true if moved.unit == Unit::Bytes => {
            (all.into_iter().take(UNSURE_MAX).collect(), "No owner's difference is sure; the largest in the account")
        }
        true => return None,
    };
    let most = rows.iter().map(|of| of.difference.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let whose = if has_several { format!(" of {}", code(sides.candidate.configuration)) } else { String::new() };
    let row = |of: &&ComparisonRecord| {
        let [before, after] = [of.baseline_median, of.candidate_median].map(|held| shown(of.unit, Some(held)));
        let difference = Estimate::new(of.unit, of.difference, of.low.zip(of.high)).difference();
        let fill = if of.difference < 0.0 { "░" } else { "█" };
        let bar = fill.repeat((of.difference.abs() / most * BAR).round().max(1.0) as usize);
        format!("| {} | {before} | {after} | {difference} | {bar} |\n", label(split(&of.metric).0))
    };
    let head = format!(
        "{title}{whose} at {}, by owner:\n\n| owner | {} | {} | difference | |\n|:--|--:|--:|--:|:--|\n",
        code(mark),
        code(sides.baseline.name()),
        code(sides.candidate.name())
    );
    let rows: Vec<String> = rows.iter().map(row).collect();
    (!rows.is_empty()).then_some(Block { head, rows })
}

/// What the intervals promise.
pub(super) fn promise(document: &Document) -> Option<String> {
    let first = document.comparisons.iter().find(|of| of.primary && of.low.is_some())?;
    let percent = trimmed(first.confidence * 100.0, 2);
    Some(format!(
        "Intervals hold together with {percent} % confidence; owners are estimated one by one, and need not \
                  add up to RSS."
    ))
}
