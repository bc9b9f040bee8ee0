//! The tables of a Markdown page: comparisons, budgets, metrics.

use super::super::super::quantity::{budget_number, change, shown, signed};
use super::super::super::words::{Pair, name_of, pairs, verdict_word};
use super::escape::{code, sentence};
use super::{Section, used};
use crate::record::{BudgetVerdict, ComparisonRecord, DifferenceVerdict, Document, MetricRecord};
use crate::units::trimmed;

/// A table for each pair of configurations: of what was asked for, or of everything else.
pub(super) fn comparison_tables(document: &Document, primary: bool) -> Vec<Section> {
    let table = |pair: &Pair<'_>| {
        Section::open(format!("{} against {}", code(pair.candidate), code(pair.baseline)), comparison_table(pair))
    };
    pairs(document, primary).iter().map(table).collect()
}

fn comparison_table(Pair { candidate, baseline, rows }: &Pair<'_>) -> String {
    let mut out = format!(
        "| verdict | metric | {} | {} | difference | change | blocks |\n|:--|:--|--:|--:|--:|--:|--:|\n",
        code(baseline),
        code(candidate)
    );
    for of in rows {
        let difference = interval(signed(of.unit, Some(of.difference)), [of.low, of.high], |end| signed(of.unit, end));
        let ratio = interval(change(of.ratio), [of.ratio_low, of.ratio_high], change);
        out.push_str(&format!(
            "| {} | {} | {} | {} | {difference} | {ratio} | {} |\n",
            verdict(of.verdict),
            code(&of.metric),
            shown(of.unit, Some(of.baseline_median)),
            shown(of.unit, Some(of.candidate_median)),
            blocks(of)
        ));
    }
    out.push_str(&confidence(rows));
    out
}

/// An estimate with the ends of its interval behind it, where there is one.
fn interval(estimate: String, ends: [Option<f64>; 2], end: impl Fn(Option<f64>) -> String) -> String {
    match ends {
        [Some(_), Some(_)] => format!("{estimate} ({} to {})", end(ends[0]), end(ends[1])),
        _ => estimate,
    }
}

fn blocks(of: &ComparisonRecord) -> String {
    match of.blocks_needed {
        Some(needed) => format!("{}; about {needed} would decide", of.blocks),
        None => of.blocks.to_string(),
    }
}

fn confidence(rows: &[&ComparisonRecord]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let percent = |share: f64| trimmed(share * 100.0, 2);
    format!(
        "\nDifferences are estimated within blocks; medians are of all trials, so they need not differ by the same. \
         Together the intervals hold with {} % confidence, each alone with {} %.\n",
        percent(first.confidence),
        percent(first.confidence_each)
    )
}

/// A verdict on a difference, in words.
fn verdict(verdict: DifferenceVerdict) -> String {
    let bold = if verdict == DifferenceVerdict::Worse { "**" } else { "" };
    format!("{bold}{}{bold}", verdict_word(verdict))
}

/// Failed budgets first, since these are what somebody has to do something about.
pub(super) fn budget_table(document: &Document) -> Option<String> {
    let mut out = "| verdict | budget | configuration | value | bound | why |\n|:--|:--|:--|--:|--:|:--|\n".to_owned();
    for wanted in [BudgetVerdict::Fail, BudgetVerdict::Undecided, BudgetVerdict::Pass] {
        for of in document.budgets.iter().filter(|of| of.verdict == wanted) {
            let bold = if wanted == BudgetVerdict::Fail { "**" } else { "" };
            let verdict = format!("{bold}{}{bold}", name_of(wanted));
            let value = interval(budget_number(of, of.value), [of.low, of.high], |end| budget_number(of, end));
            out.push_str(&format!(
                "| {verdict} | {} | {} | {value} | {} | {} |\n",
                code(&of.expression),
                code(&of.configuration),
                budget_number(of, of.bound),
                sentence(&of.why)
            ));
        }
    }
    (!document.budgets.is_empty()).then_some(out)
}

/// A row for each metric of each configuration that is wanted.
pub(super) fn metric_table(document: &Document, wanted: impl Fn(&MetricRecord) -> bool) -> Option<String> {
    let rows: Vec<&MetricRecord> = document.metrics.iter().filter(|metric| wanted(metric)).collect();
    let mut out = "| configuration | metric | median | trials |\n|:--|:--|--:|--:|\n".to_owned();
    for of in &rows {
        let median = interval(shown(of.unit, Some(of.median)), [of.low, of.high], |end| shown(of.unit, end));
        out.push_str(&format!("| {} | {} | {median} | {} |\n", code(&of.configuration), code(&of.metric), used(of)));
    }
    (!rows.is_empty()).then_some(out)
}
