//! The one sentence at the top, for who reads no further.

use super::super::super::super::quantity::Estimate;
use super::super::escape::{code, sentence as escaped};
use super::{Changes, Side, owners};
use crate::comparison::split;
use crate::owner::label;
use crate::record::{BudgetRecord, BudgetVerdict, ComparisonRecord, DifferenceVerdict, Unit, each_once};
use crate::report::summary::find::told;
use crate::report::summary::tune_answer;
use crate::units::several;

/// Further metrics named in the sentence; the table has the others.
const NAMED_MAX: usize = 3;
/// Owners named in the sentence.
const OWNERS_MAX: usize = 4;
/// The share of a difference that is most of it.
const MOST: f64 = 0.75;

/// `RSS under load +6.0 MiB (+5.2 … +6.9) against main: metaspace +4.1, malloc retained +1.6.`
pub(super) fn sentence(of: &Changes<'_>) -> String {
    let document = of.document;
    if let Some(find) = &document.find {
        return escaped(&told(find, &document.trials));
    }
    if let Some(tune) = &document.tune {
        return tune_answer::told_each(tune).iter().map(|text| escaped(text)).collect::<Vec<_>>().join(" ");
    }
    let mut parts = Vec::new();
    if let Some(first) = of.failed.first() {
        let why = escaped(first.why.as_deref().unwrap_or("it did not complete"));
        parts.push(format!("{} of {} did not complete: {why}", of.failed.len(), several(of.trials as u64, "trial")));
    }
    parts.extend(of.rows.first().map(|row| difference(of, row)));
    parts.extend(further(of));
    parts.extend(of.broken.first().map(|budget| broken(of, budget)));
    let text = if parts.is_empty() { unchanged(of) } else { parts.join("; ") };
    format!("{text}.")
}

/// The same without a name of anybody's.
pub(super) fn counts(of: &Changes<'_>) -> String {
    let count = |verdict| of.rows.iter().filter(|row| row.verdict == verdict).count();
    format!(
        "{} worse, {} better; {} broken; {} did not complete.",
        several(count(DifferenceVerdict::Worse) as u64, "metric"),
        count(DifferenceVerdict::Better),
        several(of.broken.len() as u64, "budget"),
        several(of.failed.len() as u64, "trial"),
    )
}

/// The change that matters most, and who holds it.
fn difference(of: &Changes<'_>, row: &ComparisonRecord) -> String {
    let Some(sides) = of.sides() else { return String::new() };
    let whose = if of.has_several() { format!("{}: ", code(sides.candidate.configuration)) } else { String::new() };
    // Owners stand behind it, in the same unit.
    let estimate = match row.unit {
        Unit::Bytes => Estimate::new(row.unit, row.difference, row.low.zip(row.high)).difference(),
        _ => Estimate::judged(row),
    };
    let mut text = format!("{whose}{} {estimate} against {}", named(&row.metric), code(sides.baseline.name()));
    if row.unit == Unit::Bytes {
        text.push_str(&held(&owners::at(of.document, &sides, owners::mark(row)), row));
    }
    text
}

/// Who holds it, as far as that is sure: `: metaspace +4.1, malloc retained +1.6`.
fn held(owners: &[&ComparisonRecord], row: &ComparisonRecord) -> String {
    let alike =
        |owner: &&&ComparisonRecord| owners::is_sure(owner) && (owner.difference > 0.0) == (row.difference > 0.0);
    let sure: Vec<&&ComparisonRecord> = owners.iter().filter(alike).collect();
    let sum: f64 = sure.iter().map(|owner| owner.difference).sum();
    let named = |owner: &&&ComparisonRecord| format!("{} {}", label(split(&owner.metric).0), owners::digits(owner));
    let mut said: Vec<String> = sure.iter().take(OWNERS_MAX).map(named).collect();
    match said.len() {
        0 if owners.is_empty() => return String::new(),
        0 => said.push("which owner holds it is not sure".to_owned()),
        _ if sum.abs() < MOST * row.difference.abs() => said.push("the rest not sure".to_owned()),
        _ => {}
    }
    format!(": {}", said.join(", "))
}

/// Metrics in words where they are the usual ones.
fn named(metric: &str) -> String {
    match metric {
        "rss.loaded" => "RSS under load".to_owned(),
        "pss.loaded" => "PSS under load".to_owned(),
        "rss_peak" => "Peak RSS".to_owned(),
        other => code(other),
    }
}

/// What else changed, by name.
fn further(of: &Changes<'_>) -> Vec<String> {
    let part = |(verdict, word): (DifferenceVerdict, &str)| {
        let others = of.rows.iter().skip(1).filter(|row| row.verdict == verdict);
        let mut names: Vec<String> = each_once(others.map(|row| row.metric.as_str())).into_iter().map(code).collect();
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{word} {}{more}", names.join(", ")))
    };
    let words = [(DifferenceVerdict::Worse, "also worse in"), (DifferenceVerdict::Better, "better in")];
    words.into_iter().filter_map(part).collect()
}

fn broken(of: &Changes<'_>, budget: &BudgetRecord) -> String {
    // Behind a difference the table is near enough.
    let measured = Estimate::of_budget(budget).filter(|_| of.rows.is_empty());
    let measured = measured.map(|measured| format!(" with {measured}")).unwrap_or_default();
    let more = match of.broken.len() - 1 {
        0 => String::new(),
        more => format!(" and {} more", several(more as u64, "budget")),
    };
    let whose = code(Side::of(of.document, &budget.configuration).configuration);
    // Behind a difference its owners were named.
    let moved = of.moved().filter(|row| of.rows.is_empty() && row.unit == Unit::Bytes);
    let grown = moved.zip(of.sides()).map(|(row, sides)| {
        let holders = held(&owners::at(of.document, &sides, owners::mark(row)), row);
        let against = format!(" against {}{holders}", code(sides.baseline.name()));
        // A bound on the change has told the change, with the interval that it was judged by.
        if budget.of_change {
            return against;
        }
        let estimate = Estimate::new(row.unit, row.difference, row.low.zip(row.high)).difference();
        format!(", {estimate}{against}")
    });
    let grown = grown.unwrap_or_default();
    format!("{whose} breaks the budget {}{measured}{more}{grown}", code(&budget.expression))
}

/// That nothing changed, and of how much that is said.
fn unchanged(of: &Changes<'_>) -> String {
    let alike = |row: &&ComparisonRecord| row.primary && row.verdict == DifferenceVerdict::Equivalent;
    let alike = of.document.comparisons.iter().filter(alike).count();
    let kept = of.document.budgets.iter().filter(|of| of.verdict == BudgetVerdict::Pass).count();
    let kept = (kept > 0).then(|| format!("{} kept", several(kept as u64, "budget")));
    let alike = (alike > 0).then(|| format!("{} equivalent", several(alike as u64, "metric")));
    let said: Vec<String> = [alike, kept].into_iter().flatten().collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    match of.sides() {
        Some(sides) => format!("Nothing changed for sure against {}{said}", code(sides.baseline.name())),
        None if of.document.budgets.is_empty() => "Nothing was compared, and no budget was given".to_owned(),
        None => format!("No budget is broken{said}"),
    }
}
