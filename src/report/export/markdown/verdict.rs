//! What came of it, in a few sentences: failed trials, budgets, then each candidate against its baseline.

use super::super::super::quantity::{change, signed};
use super::super::super::words::{Pair, pairs};
use super::escape::{code, sentence};
use crate::record::{BudgetVerdict, ComparisonRecord, DifferenceVerdict, Document, Outcome, tells_nothing};
use crate::report::summary::find::told;
use crate::report::summary::tune_answer;

/// The first paragraph of a page.
pub(super) fn of(document: &Document) -> String {
    let mut sentences = Vec::new();
    sentences.extend(document.tune.iter().flat_map(tune_answer::told_each).map(|text| sentence(&text)));
    sentences.extend(document.find.iter().map(|find| sentence(&told(find, &document.trials))));
    sentences.extend(failed(document));
    sentences.extend(budgets(document));
    sentences.extend(pairs(document, true).iter().map(difference));
    sentences.extend(document.pareto.iter().flat_map(|of| {
        let dominated = |point: &crate::record::ParetoPoint| {
            let by = point.dominated_by.as_ref()?;
            let (by, it) = (code(by), code(&point.configuration));
            Some(format!("{by} is at least as good as {it} in both {} and {}.", code(&of.x), code(&of.y)))
        };
        of.points.iter().filter_map(dominated).collect::<Vec<_>>()
    }));
    if sentences.is_empty() {
        let measured = document.trials.iter().filter(|trial| trial.outcome == Outcome::Completed).count();
        sentences.push(match measured {
            0 => "Nothing was measured.".to_owned(),
            1 => "One trial; nothing was compared and no budget was given.".to_owned(),
            trials => format!("{trials} trials; nothing was compared and no budget was given."),
        });
    }
    sentences.join(" ")
}

fn failed(document: &Document) -> Option<String> {
    let failed = document.trials.iter().filter(|trial| trial.is_failed()).count();
    (failed > 0).then(|| format!("**{failed} of {} trials did not complete.**", document.trials.len()))
}

fn budgets(document: &Document) -> Option<String> {
    let count = |verdict| document.budgets.iter().filter(|of| of.verdict == verdict).count();
    let (failed, undecided) = (count(BudgetVerdict::Fail), count(BudgetVerdict::Undecided));
    let open = if undecided > 0 { format!(", {undecided} undecided") } else { String::new() };
    match document.budgets.len() {
        0 => None,
        all if failed > 0 => Some(format!("**{failed} of {all} budgets failed{open}.**")),
        all if undecided > 0 => Some(format!("{} of {all} budgets kept{open}.", all - undecided)),
        1 => Some("The budget is kept.".to_owned()),
        all => Some(format!("All {all} budgets are kept.")),
    }
}

/// One sentence for a pair: what is worse first.
fn difference(Pair { candidate, baseline, rows: judged }: &Pair<'_>) -> String {
    let whose = format!("{} against {}", code(candidate), code(baseline));
    if tells_nothing(judged) {
        return format!("{whose}: cannot tell in any of {} metrics.", judged.len());
    }
    let mut parts = Vec::new();
    for (verdict, words, with_size) in [
        (DifferenceVerdict::Worse, "**worse** in", true),
        (DifferenceVerdict::Better, "better in", true),
        (DifferenceVerdict::Equivalent, "equivalent in", false),
        (DifferenceVerdict::CannotTell, "cannot tell in", false),
    ] {
        let rows: Vec<_> = judged.iter().filter(|of| of.verdict == verdict).collect();
        if !rows.is_empty() {
            let names: Vec<String> = rows.iter().map(|row| named(row, with_size)).collect();
            parts.push(format!("{words} {}", names.join(", ")));
        }
    }
    format!("{whose}: {}.", parts.join("; "))
}

/// The estimate never stands without its interval.
fn named(of: &ComparisonRecord, with_size: bool) -> String {
    let name = code(&of.metric);
    match (of.ratio, of.ratio_low, of.ratio_high, of.low, of.high) {
        _ if !with_size => name,
        (Some(_), Some(_), Some(_), _, _) => {
            format!("{name} ({}, {} to {})", change(of.ratio), change(of.ratio_low), change(of.ratio_high))
        }
        (_, _, _, Some(_), Some(_)) => {
            let [estimate, low, high] = [Some(of.difference), of.low, of.high].map(|number| signed(of.unit, number));
            format!("{name} ({estimate}, {low} to {high})")
        }
        _ => name,
    }
}
