//! Words shared by several outputs: names as in the result document, verdicts, compared pairs.

use crate::record::{BudgetVerdict, ComparisonRecord, DifferenceVerdict, Document, MetricRecord, Outcome, answering};
use serde::Serialize;

/// All verdicts on a difference, in report order.
pub(crate) const VERDICTS: [DifferenceVerdict; 4] =
    [DifferenceVerdict::Better, DifferenceVerdict::Worse, DifferenceVerdict::Equivalent, DifferenceVerdict::CannotTell];

/// A kind's name in the result document; empty if it has no plain name.
pub(crate) fn name_of(kind: impl Serialize) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// A kind in words: `not held` for `not_held` in the result document.
pub(crate) fn word_of(kind: impl Serialize) -> String {
    name_of(kind).replace('_', " ")
}

/// A missing number.
pub(crate) const NONE: &str = "-";

/// A missing number as a `String`.
pub(crate) fn dash() -> String {
    NONE.to_owned()
}

/// A nonempty name of lowercase letters, digits, and single hyphens, up to `most` characters.
pub(crate) fn slug(text: &str, most: usize) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-");
    slug.truncate(most);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

/// The result of a judgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Measured but not judged.
    Told,
    /// Better than the baseline.
    Better,
    /// Worse than the baseline.
    Worse,
    /// Equivalent to the baseline.
    Equivalent,
    /// The trials are inconclusive.
    CannotTell,
    /// Passed.
    Pass,
    /// Failed.
    Fail,
    /// Requested but undecided.
    Undecided,
}

impl Standing {
    /// The class of its color, and its representations without color: a symbol in text, and a shape in a chart.
    pub(crate) fn look(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Told | Self::Equivalent => ("v-same", "\u{25a0}", 1),
            Self::Better => ("v-better", "\u{25b2}", 3),
            Self::Worse => ("v-worse", "\u{25bc}", 4),
            Self::CannotTell => ("v-open", "\u{25cb}", 0),
            Self::Pass => ("pass", "\u{2713}", 0),
            Self::Fail => ("fail", "\u{2715}", 0),
            Self::Undecided => ("undecided", "?", 0),
        }
    }
}

impl From<DifferenceVerdict> for Standing {
    fn from(verdict: DifferenceVerdict) -> Self {
        match verdict {
            DifferenceVerdict::Better => Self::Better,
            DifferenceVerdict::Worse => Self::Worse,
            DifferenceVerdict::Equivalent => Self::Equivalent,
            DifferenceVerdict::CannotTell => Self::CannotTell,
        }
    }
}

impl From<BudgetVerdict> for Standing {
    fn from(verdict: BudgetVerdict) -> Self {
        match verdict {
            BudgetVerdict::Pass => Self::Pass,
            BudgetVerdict::Fail => Self::Fail,
            BudgetVerdict::Undecided => Self::Undecided,
        }
    }
}

/// A trial's outcome in a word, and as a phrase.
pub(crate) fn outcome_words(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Completed => ("completed", "completed"),
        Outcome::SubjectFailed => ("failed", "the server failed"),
        Outcome::Killed => ("killed", "killed because memory ran out"),
        Outcome::Aborted => ("aborted", "aborted"),
    }
}

pub(crate) fn metric_of<'a>(document: &'a Document, metric: &str, configuration: &str) -> Option<&'a MetricRecord> {
    document.metrics.iter().find(|of| of.metric == metric && of.configuration == configuration)
}

/// The phrase as a sentence, with a capital letter and a period.
pub(crate) fn sentence(phrase: &str) -> String {
    let mut rest = phrase.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if phrase.ends_with('.') || phrase.is_empty() { "" } else { "." };
    format!("{first}{}{end}", rest.as_str())
}

/// A candidate and its baseline, with the compared metrics.
#[derive(Debug, Clone)]
pub(crate) struct Pair<'a> {
    pub(crate) candidate: &'a str,
    pub(crate) baseline: &'a str,
    pub(crate) rows: Vec<&'a ComparisonRecord>,
}

/// Every candidate with its baseline in comparison order: with the judged metrics, or with all others.
pub(crate) fn pairs(document: &Document, judged: bool) -> Vec<Pair<'_>> {
    pairs_of(document.comparisons.iter().filter(|row| row.primary == judged))
}

/// The pairs that answer the question.
pub(crate) fn answering_pairs(document: &Document) -> Vec<Pair<'_>> {
    pairs_of(answering(&document.effects, || &document.comparisons).iter().filter(|row| row.primary))
}

fn pairs_of<'a>(rows: impl Iterator<Item = &'a ComparisonRecord>) -> Vec<Pair<'a>> {
    let rows = rows.map(|row| ([row.candidate.as_str(), row.baseline.as_str()], row));
    let found = gathered(rows, |one, other| one == other).into_iter();
    found.map(|([candidate, baseline], rows)| Pair { candidate, baseline, rows }).collect()
}

/// Values grouped by key, in order of first occurrence; similar keys are merged.
pub(crate) fn gathered<K, V>(all: impl Iterator<Item = (K, V)>, is_alike: impl Fn(&K, &K) -> bool) -> Vec<(K, Vec<V>)> {
    let mut found: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match found.iter_mut().find(|(known, _)| is_alike(known, &key)) {
            Some((_, values)) => values.push(value),
            None => found.push((key, vec![value])),
        }
    }
    found
}
