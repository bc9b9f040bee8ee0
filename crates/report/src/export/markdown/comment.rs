//! A pull request comment: the page reduced to the parts that need attention. It has the verdicts; the metrics that are
//! worse, better, or over budget; the owners of the difference; differing conditions; and the command to repeat it. Two
//! hidden markers give the scenario and the verdict to the program that posts the comment; Loadline does not post it.

mod command;
mod marker;

use super::super::inert::clipped;
use super::escape::{code, sentence};
use super::print::printed;
use crate::page::{Depth, Page, Part, Section, Topic};
use crate::record::{BudgetVerdict, DifferenceVerdict, Document, FindOutcome, TuneOutcome};
use crate::summary::tune_answer::told_each;
use crate::summary::{DIFFERING, is_of_baseline_archive, summarize};
use crate::table::Cell;
use crate::units::several;
use crate::words::{Standing, name_of, pairs};
use marker::marker;
use serde::Serialize;

/// GitHub rejects comments above 65,536 characters; the rest is for additions by the posting program.
const CHARACTERS_MAX: usize = 65_000;
/// Room for the note about omitted rows.
const NOTE_CHARACTERS: usize = 200;
/// A longer command is too long to copy.
const COMMAND_CHARACTERS: usize = 2_000;
/// Verdicts at the top.
const VERDICTS_MAX: usize = 5;

/// The comment if nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// Empty, so that nothing is posted.
    Silent,
    /// A sentence saying that nothing changed.
    Told,
}

/// The verdict in the comment's second line; later variants take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Unchanged,
    Better,
    Worse,
    Broken,
    Failed,
}

/// The comment, at most 65,000 characters; empty if nothing changed and `unchanged` requests silence.
pub fn comment(document: &Document, unchanged: Unchanged) -> String {
    // A failed trial of the baseline archive was not caused by this change.
    let is_old = |name: &str| is_of_baseline_archive(document, name);
    let trials = document.trials.iter().filter(|trial| !(trial.is_failed() && is_old(&trial.configuration)));
    let document = &Document { trials: trials.cloned().collect(), ..document.clone() };
    let change = change(document);
    if change == Change::Unchanged && unchanged == Unchanged::Silent {
        return String::new();
    }
    let page = summarize(document, &[], Depth::default());
    let begin = format!(
        "{}\n<!-- loadline-verdict: {} -->\n{}\n",
        marker(&document.conditions.scenario),
        name_of(change),
        top(document, &page)
    );
    // The block is one line that begins with `$`, so its content cannot end it.
    let command = clipped(&command::shorter(&document.conditions.command), COMMAND_CHARACTERS);
    let end = format!("\nRepeat it with:\n\n```console\n$ {command}\n```\n");
    assembled(begin, &printed(&filtered(page), |_| false), &end)
}

fn change(document: &Document) -> Change {
    let find = document.find.as_ref().map(|find| find.outcome);
    let tune = document.tune.as_ref().map(|tune| tune.outcome);
    let not_held =
        matches!(find, Some(FindOutcome::NotHeld | FindOutcome::Never)) || tune == Some(TuneOutcome::NotHeld);
    // In a search or tuning, a failed trial is a result.
    let searched = find.is_some() || tune.is_some();
    let any = |verdict| document.comparisons.iter().any(|of| of.primary && of.verdict == verdict);
    match () {
        () if !searched && document.trials.iter().any(|trial| trial.is_failed()) => Change::Failed,
        () if not_held || document.budgets.iter().any(|of| of.verdict == BudgetVerdict::Fail) => Change::Broken,
        () if any(DifferenceVerdict::Worse) => Change::Worse,
        () if any(DifferenceVerdict::Better) => Change::Better,
        () => Change::Unchanged,
    }
}

/// The first line: the page's verdicts or answer, then the owners of the difference.
fn top(document: &Document, page: &Page) -> String {
    if let Some(tune) = &document.tune {
        return told_each(tune).iter().map(|text| sentence(text)).collect::<Vec<_>>().join(" ");
    }
    let answers = document.find.is_some();
    let judged = page.verdicts().filter(|of| answers || is_of_change(of.standing));
    let mut said: Vec<String> = judged.map(|of| ended(sentence(&of.sentence()))).collect();
    if said.is_empty() {
        return self::unchanged(document);
    }
    let more = said.len().saturating_sub(VERDICTS_MAX) as u64;
    said.truncate(VERDICTS_MAX);
    said.extend((more > 0).then(|| format!("And {} more.", several(more, "verdict"))));
    // As on the page, the answer precedes memory.
    said.extend(held(page));
    said.join(" ")
}

/// The owners of the first difference in memory.
fn held(page: &Page) -> Option<String> {
    let memory = page.sections.iter().find(|of| of.topic == Topic::Memory && of.id == "memory")?;
    match memory.parts.first()? {
        Part::Text(text) => Some(sentence(text)),
        _ => None,
    }
}

/// Ensures a final period.
fn ended(text: String) -> String {
    if text.ends_with('.') { text } else { text + "." }
}

/// The sentence saying that nothing changed, with the number of comparisons.
fn unchanged(document: &Document) -> String {
    let pairs = pairs(document, true);
    let metrics = |verdict| pairs.iter().flat_map(|pair| &pair.rows).filter(|row| row.verdict == verdict).count();
    let budgets = |verdict| document.budgets.iter().filter(|of| of.verdict == verdict).count();
    let counts = [
        (metrics(DifferenceVerdict::Equivalent), "metric", "equivalent"),
        (budgets(BudgetVerdict::Pass), "budget", "met"),
        (metrics(DifferenceVerdict::CannotTell), "metric", "undecided"),
        (budgets(BudgetVerdict::Undecided), "budget", "undecided"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let said: Vec<String> = counts.map(|(count, what, how)| format!("{} {how}", several(count as u64, what))).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    let undecided = pairs.iter().flat_map(|pair| &pair.rows).filter(|row| row.verdict == DifferenceVerdict::CannotTell);
    let needed = undecided.filter_map(|row| row.blocks_needed).max().map(|blocks| several(u64::from(blocks), "block"));
    let needed = needed.map_or(String::new(), |blocks| format!(" Settling this would take about {blocks} in total."));
    match pairs.first() {
        Some(pair) => format!("No clear change from {}{said}.{needed}", code(pair.baseline)),
        None if document.budgets.is_empty() => "Nothing was compared, and no budget was set.".to_owned(),
        None => format!("No budget was exceeded{said}."),
    }
}

fn filtered(page: Page) -> Page {
    let compares = page.sections.iter().any(|of| of.id == "comparison");
    let of_changes = |mut of: Section| {
        of.parts = of.parts.into_iter().filter_map(changed).collect();
        of
    };
    let kept = page.sections.into_iter().filter_map(|of| match (of.topic, of.id.as_str()) {
        (Topic::Answer, "comparison" | "budgets") => Some(of_changes(of)),
        (Topic::Answer, "code") if compares => Some(of),
        (Topic::Memory, _) if compares => {
            // The top already has this section's sentences.
            let tables = of.parts.iter().filter(|part| matches!(part, Part::Table(_))).cloned();
            Some(Section { parts: tables.collect(), ..of.clone() })
        }
        (Topic::Conditions, _) => {
            let differing =
                of.parts.into_iter().filter(|part| matches!(part, Part::Section(of) if of.heading == DIFFERING));
            Some(Section::new(Topic::Conditions, "", differing))
        }
        _ => None,
    });
    Page::new("", kept)
}

/// A table reduced to rows with a change.
fn changed(part: Part) -> Option<Part> {
    let Part::Table(mut table) = part else { return None };
    let is_change = |cell: &Cell| matches!(cell, Cell::Verdict(standing, _) if is_of_change(*standing));
    table.rows.retain(|row| row.first().is_some_and(is_change));
    Part::Table(table).filled()
}

fn is_of_change(standing: Standing) -> bool {
    matches!(standing, Standing::Fail | Standing::Worse | Standing::Better)
}

/// Joins the parts; truncates the body at whole lines if necessary, but never the end.
fn assembled(begin: String, body: &str, end: &str) -> String {
    let length = |text: &str| text.chars().count();
    let mut out = begin;
    let mut room = CHARACTERS_MAX.saturating_sub(length(&out) + length(end) + NOTE_CHARACTERS);
    let mut left_out = 0u64;
    for line in body.split_inclusive('\n') {
        // After the first line that does not fit, all others are omitted too: a shorter one would lack context.
        if left_out > 0 || length(line) > room {
            left_out += u64::from(line.starts_with(['|', '-'])).max(u64::from(left_out == 0));
            continue;
        }
        room -= length(line);
        out.push_str(line);
    }
    if left_out > 0 {
        let rows = several(left_out, "row");
        out.push_str(&format!("\n{rows} more rows did not fit in the comment; `loadline report` shows them all.\n"));
    }
    out + end
}

#[cfg(test)]
#[path = "comment/tests.rs"]
mod tests;
