//! The owners behind a difference: both configurations' accounts, with intervals.

use super::comparison::{brief, unless_vague};
use crate::comparison::split;
use crate::owner::{Owner, is_heap, label};
use crate::page::{Part, Section, Topic};
use crate::quantity::{Estimate, Quantity, signed};
use crate::record::{ComparisonRecord, Document, Unit};
use crate::scenario::MarkPoint;
use crate::table::{Cell, Table};
use crate::words::{Pair, pairs};
use loadline_base::order::Order as _;

/// Maximum number of owners named in the sentence.
const OWNERS_MAX: usize = 4;
/// The share of a difference that counts as most of it.
const MOST: f64 = 0.75;
/// Java heap in a difference is pointed out if it has at least this size and share.
const HEAP_LEAST: f64 = 4.0 * 1024.0 * 1024.0;
const HEAP_SHARE: f64 = 0.3;
/// A load that does not fill such a heap is short.
const SMALL_HEAP: u64 = 64 << 20;
/// Maximum number of uncertain owners shown.
const UNSURE_MAX: usize = 3;
/// Uncertain owners must be at least this share of the change.
const UNSURE_LEAST: f64 = 0.1;

/// Each candidate's memory compared with its baseline's: the owners of the difference, in a sentence and a table.
pub(super) fn section(document: &Document) -> Section {
    let parts = pairs(document, true).iter().flat_map(|pair| of_pair(document, pair)).collect::<Vec<_>>();
    Section::new(Topic::Memory, "memory", parts).id("memory")
}

fn of_pair(document: &Document, pair: &Pair<'_>) -> Vec<Part> {
    let Some(moved) = pair.rows.iter().find(|row| row.unit == Unit::Bytes) else { return Vec::new() };
    let (_, place) = split(&moved.metric);
    let mark = if place.is_empty() { MarkPoint::Loaded.word() } else { place };
    let owners = at(document, pair, mark);
    if owners.is_empty() {
        return Vec::new();
    }
    vec![Part::Text(held(&owners, moved, pair)), Part::Table(table(&owners, moved, pair, mark))]
}

/// Notes on differences that are largely Java heap, which depends on when the collector ran.
pub(super) fn heap_notes(document: &Document) -> Vec<Part> {
    let pairs = pairs(document, true);
    let is_several = pairs.len() > 1;
    let note = |pair: &Pair<'_>| {
        let moved = pair.rows.iter().find(|row| row.unit == Unit::Bytes)?;
        let (_, place) = split(&moved.metric);
        let mark = if place.is_empty() { MarkPoint::Loaded.word() } else { place };
        let heap = at(document, pair, mark).into_iter().filter(|owner| is_heap(split(&owner.metric).0));
        let bytes: f64 = heap.map(|owner| owner.difference).sum();
        let is_much = bytes.abs() >= HEAP_LEAST && bytes.abs() >= HEAP_SHARE * moved.difference.abs();
        is_much.then(|| {
            let bytes = signed(Unit::Bytes, Some(bytes));
            let heaps = document.trials.iter().flat_map(|trial| &trial.marks).filter_map(|mark| mark.heap.max_bytes);
            let next = match heaps.max() {
                Some(..=SMALL_HEAP) => "run a longer load, or give both sides a smaller heap",
                _ => "give both sides a heap that the load fills (`--jvm=-Xmx64m`)",
            };
            let of_pair = is_several.then(|| format!("{} vs. {}: ", pair.candidate, pair.baseline));
            Part::Text(format!(
                "{}{bytes} of the difference in {} is Java heap, which depends on when the collector ran. Unless you \
                 are comparing heaps, {next}.",
                of_pair.unwrap_or_default(),
                moved.metric
            ))
        })
    };
    pairs.iter().filter_map(note).collect()
}

/// `serial vs. g1: rss.loaded +6.0 MiB (+5.2 … +6.9): metaspace +4.1 MiB, malloc retained +1.6 MiB.`
fn held(owners: &[&ComparisonRecord], moved: &ComparisonRecord, pair: &Pair<'_>) -> String {
    // An owner that moved the other way explains why the sum is smaller.
    let sure: Vec<&&ComparisonRecord> = owners.iter().filter(|owner| is_sure(owner)).collect();
    let sum: f64 = sure.iter().map(|owner| owner.difference).sum();
    let named = |owner: &&&ComparisonRecord| {
        format!("{} {}", label(split(&owner.metric).0), signed(owner.unit, Some(owner.difference)))
    };
    let mut said: Vec<String> = sure.iter().take(OWNERS_MAX).map(named).collect();
    match said.len() {
        0 => said.push("no owner's change is certain".to_owned()),
        _ if sum * moved.difference.signum() < MOST * moved.difference.abs() => {
            said.push("the rest is uncertain".to_owned())
        }
        _ => {}
    }
    let estimate = Estimate::new(moved.unit, moved.difference, moved.low.zip(moved.high)).difference();
    format!("{} vs. {}: {} {estimate}: {}.", pair.candidate, pair.baseline, moved.metric, said.join(", "))
}

/// Each owner at a mark on both sides, largest difference first.
fn at<'a>(document: &'a Document, pair: &Pair<'_>, mark: &str) -> Vec<&'a ComparisonRecord> {
    let own = |of: &&ComparisonRecord| {
        let (owner, place) = split(&of.metric);
        let same = of.baseline == pair.baseline && of.candidate == pair.candidate && place == mark;
        // A difference that rounds to 0 does not matter to a reader.
        same && Owner::named(owner).is_some() && Quantity::new(of.unit, of.difference).is_shown()
    };
    let mut found: Vec<&ComparisonRecord> = document.comparisons.iter().filter(own).collect();
    found.order_by(|one, other| other.difference.abs().total_cmp(&one.difference.abs()));
    found
}

/// Owners with a certain difference, then those that may explain the change.
fn table(owners: &[&ComparisonRecord], moved: &ComparisonRecord, pair: &Pair<'_>, mark: &str) -> Table {
    let (sure, unsure): (Vec<_>, Vec<_>) = owners.iter().partition(|of| is_sure(of));
    let matters = |of: &&ComparisonRecord| of.difference.abs() >= UNSURE_LEAST * moved.difference.abs();
    let unsure: Vec<&ComparisonRecord> = unsure.into_iter().filter(matters).take(UNSURE_MAX).collect();
    let note = (!unsure.is_empty()).then(|| "?: the difference is uncertain.".to_owned());
    let row = |of: &&ComparisonRecord| -> Vec<Cell> {
        let estimate = Estimate::new(of.unit, of.difference, of.low.zip(of.high)).difference();
        let [baseline, candidate] =
            [of.baseline_median, of.candidate_median].map(|value| Quantity::new(of.unit, value).into());
        let [difference, interval] = unless_vague(of, estimate);
        let sure = if is_sure(of) { "" } else { "?" };
        vec![label(split(&of.metric).0).into(), baseline, candidate, difference, interval, sure.into()]
    };
    let rows = sure.iter().chain(&unsure).map(row);
    let title = format!("account at {mark}, {} vs. {}", pair.candidate, pair.baseline);
    let [before, after] = brief([pair.baseline, pair.candidate]);
    let head = ["owner", &before, &after, "difference", "interval", ""];
    Table::new(title, head, rows).worded(1, 1).noted(note)
}

/// Whether a difference is certain, however small.
fn is_sure(of: &ComparisonRecord) -> bool {
    of.low.is_some_and(|low| low > 0.0) || of.high.is_some_and(|high| high < 0.0)
}
