//! What a reader wants to know first, in sentences: what failed, what is better, what cannot be told.

use super::tables::prose;
use crate::record::{
    BudgetRecord, BudgetVerdict, ComparisonRecord, DifferenceVerdict, Document, FindOutcome, FindRecord, Trial,
    TuneOutcome, TuneRecord, Unit, tells_nothing,
};
use crate::report::chart::{candidates, judged, judged_text, least_text, metric_words, value_text, verdict_class};
use crate::report::markup::{Attribute, Markup, shortened};
use crate::report::quantity::Estimate;
use crate::report::summary::{find as told, tune_answer};
use crate::report::words::{outcome_words, verdict_word};
use crate::scenario::MarkPoint;
use crate::units::{grouped, milliseconds, several};

/// Names in a sentence.
const NAME_CHARS: usize = 60;
/// Reasons in a sentence.
const WHY_CHARS: usize = 400;
/// Sentences at the head of the page; the sections below have all.
const SENTENCES_MAX: usize = 24;

/// A sentence with its verdict.
struct Sentence {
    class: &'static str,
    /// A shape for the verdict, so that it can be read without colour.
    sign: &'static str,
    badge: String,
    /// What it is about, set off from the rest.
    about: String,
    text: String,
}

/// The sentences at the head of the page: failures, budgets, comparisons and, where there are none, the weights.
pub(super) fn write(out: &mut Markup, document: &Document) {
    let of_find = document.find.iter().map(|find| of_find(find, &document.trials));
    let of_tune = document.tune.iter().map(|tune| of_tune(tune, &document.conditions.scenario));
    let mut sentences: Vec<Sentence> = of_tune.chain(of_find).chain(failures(&document.trials)).collect();
    let mut budgets: Vec<&BudgetRecord> = document.budgets.iter().collect();
    budgets.sort_by_key(|budget| budget_order(budget.verdict));
    let (failed, others): (Vec<_>, Vec<_>) =
        budgets.into_iter().partition(|budget| budget.verdict == BudgetVerdict::Fail);
    sentences.extend(failed.into_iter().map(of_budget));
    for candidate in candidates(document) {
        let rows = judged(document, candidate);
        match tells_nothing(&rows) {
            true => sentences.extend(of_undecided(&rows)),
            false => sentences.extend(rows.into_iter().map(of_comparison)),
        }
    }
    sentences.extend(others.into_iter().map(of_budget));
    if document.comparisons.is_empty() {
        let searched = document.find.is_some() || document.tune.is_some();
        let weighed = |trial: &&Trial| !searched || told::is_reference(trial);
        sentences.extend(document.trials.iter().filter(weighed).filter_map(of_trial));
    }
    let left_out = sentences.len().saturating_sub(SENTENCES_MAX);
    out.element("ul", &[("class", &"verdicts large")], |out| {
        for sentence in sentences.iter().take(SENTENCES_MAX) {
            out.element("li", &[], |out| write_sentence(out, sentence)).line();
        }
    });
    if left_out > 0 {
        out.words("p", &[("class", &"soft")], format!("{left_out} more stand in the sections below."));
    }
    if sentences.is_empty() {
        out.words("p", &[], "No trial came so far that anything could be said.");
    }
}

fn write_sentence(out: &mut Markup, sentence: &Sentence) {
    badge(out, sentence.class, sentence.sign, &sentence.badge);
    out.element("span", &[], |out| {
        out.words("b", &[], shortened(&sentence.about, NAME_CHARS * 3)).text(" ");
        prose(out, &shortened(&sentence.text, WHY_CHARS * 2));
    });
}

/// A verdict as a word with its shape and colour.
pub(super) fn badge(out: &mut Markup, class: &str, sign: &str, text: &str) {
    let class = format!("badge {class}");
    let attributes: [Attribute<'_>; 2] = [("class", &class), ("data-sign", &sign)];
    out.words("span", &attributes, text);
}

fn failures(trials: &[Trial]) -> Vec<Sentence> {
    let failed = trials.iter().filter(|trial| trial.is_failed());
    let sentence = |trial: &Trial| Sentence {
        class: "fail",
        sign: "\u{2715}",
        badge: outcome_words(trial.outcome).0.to_owned(),
        about: format!("{}, trial {}:", shortened(&trial.configuration, NAME_CHARS), trial.index + 1),
        text: shortened(trial.why.as_deref().unwrap_or("the reason is not known"), WHY_CHARS),
    };
    failed.map(sentence).collect()
}

/// The answer of a search.
fn of_find(find: &FindRecord, trials: &[Trial]) -> Sentence {
    let (class, sign, badge) = match find.outcome {
        FindOutcome::Found => ("pass", "\u{2713}", told::what_was_sought(find)),
        FindOutcome::AtLowerBound => ("pass", "\u{2713}", "held"),
        FindOutcome::NotHeld | FindOutcome::Never => ("fail", "\u{2715}", "not held"),
        FindOutcome::GivenUp => ("undecided", "?", "no line"),
    };
    let about = format!("{}:", shortened(&find.configuration, NAME_CHARS));
    Sentence { class, sign, badge: badge.to_owned(), about, text: told::told(find, trials) }
}

/// The answer of a tuning.
fn of_tune(tune: &TuneRecord, scenario: &str) -> Sentence {
    let (class, sign, badge) = match tune.outcome {
        TuneOutcome::Proved => ("pass", "\u{2713}", "tuned"),
        TuneOutcome::NothingProved => ("undecided", "?", "nothing proved"),
        TuneOutcome::NotHeld => ("fail", "\u{2715}", "not held"),
        TuneOutcome::Planned => ("v-same", "\u{25a0}", "planned"),
        TuneOutcome::GivenUp => ("undecided", "?", "no answer"),
    };
    let about = format!("{}:", shortened(scenario, NAME_CHARS));
    Sentence { class, sign, badge: badge.to_owned(), about, text: tune_answer::told(tune) }
}

/// Failing ones first.
pub(super) fn budget_order(verdict: BudgetVerdict) -> u8 {
    match verdict {
        BudgetVerdict::Fail => 0,
        BudgetVerdict::Undecided => 1,
        BudgetVerdict::Pass => 2,
    }
}

/// Class, shape and word of a budget's verdict.
pub(super) fn budget_words(verdict: BudgetVerdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        BudgetVerdict::Fail => ("fail", "\u{2715}", "broken"),
        BudgetVerdict::Undecided => ("undecided", "?", "undecided"),
        BudgetVerdict::Pass => ("pass", "\u{2713}", "kept"),
    }
}

fn of_budget(budget: &BudgetRecord) -> Sentence {
    let (class, sign, word) = budget_words(budget.verdict);
    Sentence {
        class,
        sign,
        badge: word.to_owned(),
        about: format!(
            "{}, {}:",
            shortened(&budget.expression, NAME_CHARS),
            shortened(&budget.configuration, NAME_CHARS)
        ),
        text: budget.why.clone(),
    }
}

/// A value of a budget with its interval.
pub(super) fn budget_value(budget: &BudgetRecord) -> String {
    Estimate::of_budget(budget).map_or("not measured".to_owned(), |estimate| estimate.wide().to_string())
}

/// The sign of a verdict: the shape that its chart has.
pub(super) fn sign(verdict: DifferenceVerdict) -> &'static str {
    match verdict {
        DifferenceVerdict::Better => "\u{25b2}",
        DifferenceVerdict::Worse => "\u{25bc}",
        DifferenceVerdict::Equivalent => "\u{25a0}",
        DifferenceVerdict::CannotTell => "\u{25cb}",
    }
}

/// One sentence for a candidate of which nothing can be told.
fn of_undecided(rows: &[&ComparisonRecord]) -> Option<Sentence> {
    let first = rows.first()?;
    let metrics: Vec<String> = rows.iter().map(|row| metric_words(&row.metric)).collect();
    let needed = rows.iter().map(|row| row.blocks_needed).collect::<Option<Vec<u32>>>();
    let blocks = undecided(first.blocks, "none of it", needed.and_then(|needed| needed.into_iter().max()));
    Some(Sentence { text: format!("{}; {blocks}", metrics.join(", ")), ..of_comparison(first) })
}

/// `2 blocks do not decide it, about 9 would`.
fn undecided(blocks: u32, what: &str, needed: Option<u32>) -> String {
    let verb = match (what, blocks) {
        ("it", 1) => "does not decide",
        ("it", _) => "do not decide",
        (_, 1) => "decides",
        _ => "decide",
    };
    let needed = needed.map_or(String::new(), |needed| format!(", about {needed} would"));
    format!("{} {verb} {what}{needed}", several(u64::from(blocks), "block"))
}

fn of_comparison(comparison: &ComparisonRecord) -> Sentence {
    let candidate = shortened(&comparison.candidate, NAME_CHARS);
    let baseline = shortened(&comparison.baseline, NAME_CHARS);
    let (metric, difference) = (metric_words(&comparison.metric), judged_text(comparison));
    let (link, more) = match comparison.verdict {
        DifferenceVerdict::Better => ("is better than", String::new()),
        DifferenceVerdict::Worse => ("is worse than", String::new()),
        DifferenceVerdict::Equivalent => {
            ("is as good as", format!(", less than the {} that matter", least_text(comparison)))
        }
        DifferenceVerdict::CannotTell => {
            ("against", format!("; {}", undecided(comparison.blocks, "it", comparison.blocks_needed)))
        }
    };
    Sentence {
        class: verdict_class(comparison.verdict),
        sign: sign(comparison.verdict),
        badge: verdict_word(comparison.verdict).to_owned(),
        about: format!("{candidate} {link} {baseline}:"),
        text: format!("{metric} {difference}{more}"),
    }
}

/// The weight of a trial and what it carried.
fn of_trial(trial: &Trial) -> Option<Sentence> {
    let text = weight(trial)?;
    Some(Sentence {
        class: "v-same",
        sign: "\u{25a0}",
        badge: "weighed".to_owned(),
        about: format!("{}, trial {}:", shortened(&trial.configuration, NAME_CHARS), trial.index + 1),
        text,
    })
}

/// RSS at the mark `loaded` (the last mark where there is none), rate and p99 of the last phase that worked.
pub(super) fn weight(trial: &Trial) -> Option<String> {
    let mark = trial.at(MarkPoint::Loaded).or(trial.marks.last())?;
    let (word, bytes) = mark.weight();
    let mut parts = vec![format!("{word} {} {}", value_text(Unit::Bytes, bytes as f64), shortened(&mark.name, 30))];
    if let Some(phase) = trial.phases.iter().rev().find(|phase| phase.works() && phase.is_counted()) {
        let what = if phase.is_own() { "operations" } else { "requests" };
        parts.push(format!("{} {what}/s", grouped(phase.achieved_per_s.round().max(0.0) as u64)));
        parts.extend(phase.usual_ms().map(|times| format!("p99 {} ms", milliseconds(times.p99))));
        if phase.failed.total() > 0 {
            parts.push(format!("{} failed", grouped(phase.failed.total())));
        }
    }
    Some(parts.join(", "))
}
