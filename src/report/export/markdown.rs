//! Markdown for a README, a pull request, an issue: the verdict first, then tables, conditions, doubts.
//! Foreign text stands in code spans or as character references, so that no renderer takes it for markup.

mod comment;
mod escape;
mod fleet;
mod found;
mod history;
mod tables;
mod tuned;
mod verdict;

pub use comment::{Unchanged, comment};
pub use fleet::fleet_markdown;
pub use history::history_markdown;

use super::metric_name::is_headline;
use crate::record::{Document, DoubtRecord, FindingRecord, MetricRecord, Trial};
use crate::report::summary::tried::is_answer;
use crate::report::summary::{host_text, more_findings, shown_findings, told_finding};
use crate::units::several;
use escape::{code, prose, sentence};
use std::fmt;
use tables::{budget_table, comparison_tables, metric_table};

/// What is said of a document, for any page that is Markdown.
pub(super) struct Page {
    /// What came of it: a paragraph.
    pub verdict: String,
    /// Tables, conditions, doubts.
    pub sections: Vec<Section>,
    /// What only some want to see: a title and its blocks.
    pub details: Vec<(String, String)>,
}

/// A part of a page with a heading.
pub(super) struct Section {
    pub title: String,
    /// Ends with a newline.
    pub text: String,
    /// Whether the section may be closed until somebody opens it.
    pub may_fold: bool,
}

impl Section {
    fn open(title: impl Into<String>, text: String) -> Self {
        Self { title: title.into(), text, may_fold: false }
    }

    fn folding(title: &str, text: String) -> Self {
        Self { may_fold: true, ..Self::open(title, text) }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "### {}\n\n{}", self.title, self.text)
    }
}

/// The result for a page of Markdown. Headings begin at the third level, so that it fits below others.
pub fn markdown(document: &Document) -> String {
    let page = page(document);
    let mut out = format!("{}\n", page.verdict);
    out.extend(page.sections.iter().map(|section| format!("\n{section}")));
    for (title, block) in &page.details {
        out.push_str(&folded(title, block));
    }
    out
}

/// A part that is closed until somebody opens it; `title` is our own text.
pub(super) fn folded(title: &str, block: &str) -> String {
    // The empty lines make what stands between them Markdown again.
    format!("\n<details>\n<summary>{title}</summary>\n\n{block}\n</details>\n")
}

pub(super) fn page(document: &Document) -> Page {
    let mut sections: Vec<Section> = tuned::sections(document);
    sections.extend(found::section(document));
    sections.extend(comparison_tables(document, true));
    // The trials of a search or of a tuning differ on purpose: their medians are of nothing.
    let searched = document.find.is_some() || document.tune.is_some();
    if document.comparisons.is_empty() && !searched {
        sections.extend(metric_table(document, is_headline).map(|table| Section::open("Metrics", table)));
    }
    sections.extend(budget_table(document).map(|table| Section::open("Budgets", table)));
    sections.extend(failed_trials(document));
    sections.push(conditions(document));
    sections.extend(findings(document));
    sections.extend(doubts(document));
    let mut details = tuned::details(document);
    let more = comparison_tables(document, false);
    if !more.is_empty() {
        let tables: Vec<String> = more.iter().map(Section::to_string).collect();
        details.push(("Further comparisons".to_owned(), tables.join("\n")));
    }
    let shown = |metric: &MetricRecord| document.comparisons.is_empty() && is_headline(metric);
    details.extend(found::trials(document).map(|table| ("Trials of the search".to_owned(), table)));
    if !searched && !document.metrics.iter().all(shown) {
        details.extend(metric_table(document, |_| true).map(|table| ("All metrics".to_owned(), table)));
    }
    Page { verdict: verdict::of(document), sections, details }
}

fn failed_trials(document: &Document) -> Option<Section> {
    let failed = document.trials.iter().filter(|trial| trial.is_failed());
    let lines: String = failed
        .map(|trial| {
            let why = trial.why.as_deref().unwrap_or("it did not complete");
            format!("- trial {} of {}: {}\n", trial.index + 1, code(&trial.configuration), sentence(why))
        })
        .collect();
    (!lines.is_empty()).then(|| Section::open("Trials that failed", lines))
}

fn conditions(document: &Document) -> Section {
    let of = &document.conditions;
    let mut lines = vec![
        format!("loadline {}, scenario {}, {}", prose(&of.loadline), code(&of.scenario), prose(&of.started)),
        prose(&host_text(&of.machine)),
    ];
    lines.extend(of.load.iter().map(|line| prose(line)));
    for name in document.configurations() {
        lines.push(configuration(name, document));
    }
    let disturbed = document.blocks.iter().filter(|block| block.disturbed.is_some());
    lines.extend(disturbed.map(|block| {
        let used = if block.used { "counts" } else { "does not count" };
        format!("block {} {used}: {}", block.block + 1, sentence(block.disturbed.as_deref().unwrap_or_default()))
    }));
    lines.push(format!("seed {}; repeat with {}", of.seed, code(&of.command)));
    Section::folding("Conditions", lines.iter().map(|line| format!("- {line}\n")).collect())
}

/// How often a configuration ran, and in which JVM.
fn configuration(name: &str, document: &Document) -> String {
    let trials: Vec<&Trial> = document.trials.iter().filter(|trial| trial.configuration == name).collect();
    let mut text = format!("{}: {}", code(name), several(trials.len() as u64, "trial"));
    let Some(jvm) = trials.iter().find_map(|trial| trial.jvm.as_ref()) else { return text };
    for known in [&jvm.name, &jvm.version].into_iter().flatten() {
        text.push_str(&format!(", {}", prose(known)));
    }
    text.extend(jvm.collector.iter().map(|collector| format!(", {} GC", prose(collector))));
    if !jvm.options.is_empty() {
        text.push_str(&format!(", {}", code(&jvm.options.join(" "))));
    }
    text
}

/// Every doubt once, however many trials share it.
pub(super) fn all_doubts(document: &Document) -> Vec<(&DoubtRecord, usize)> {
    let mut found: Vec<(&DoubtRecord, usize)> = Vec::new();
    let told = |trial: &'_ Trial, of: &DoubtRecord| !is_answer(trial, &of.doubt);
    let of_trials = document.trials.iter().flat_map(|trial| trial.doubts.iter().filter(move |of| told(trial, of)));
    for doubt in document.doubts.iter().chain(of_trials) {
        match found.iter_mut().find(|(known, _)| known.text == doubt.text) {
            Some((_, count)) => *count += 1,
            None => found.push((doubt, 1)),
        }
    }
    found
}

fn findings(document: &Document) -> Option<Section> {
    let line =
        |found: &FindingRecord| format!("- {}. Next: {}\n", sentence(&told_finding(found)), sentence(&found.next));
    let shown = shown_findings(&document.findings);
    let more = more_findings(&document.findings, &shown).map(|more| format!("\n{more}\n"));
    let lines: String = shown.into_iter().map(line).chain(more).collect();
    (!lines.is_empty()).then(|| Section::open("Findings", lines))
}

fn doubts(document: &Document) -> Option<Section> {
    let lines: String = all_doubts(document)
        .into_iter()
        .map(|(doubt, count)| {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            format!("- {}{times}. Next: {}\n", sentence(&doubt.text), sentence(&doubt.next))
        })
        .collect();
    (!lines.is_empty()).then(|| Section::folding("Doubts", lines))
}

/// Medians of the used values of a configuration are shown with how many there were.
pub(super) fn used(metric: &MetricRecord) -> usize {
    metric.values.iter().filter(|value| value.used).count()
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;

    #[test]
    fn a_comparison_reads_from_the_verdict_down() {
        insta::assert_snapshot!(markdown(&samples::compared()));
    }

    #[test]
    fn a_failure_comes_before_the_numbers() {
        insta::assert_snapshot!(markdown(&samples::failing()));
    }

    #[test]
    fn nothing_measured_is_said() {
        let text = markdown(&samples::empty());
        assert!(text.starts_with("Nothing was measured.\n"), "{text}");
        assert!(!text.contains("### Metrics"));
    }

    #[test]
    fn hostile_text_makes_no_markup() {
        let text = markdown(&samples::hostile());
        consumers::check_markdown(&text);
        assert!(!text.contains('\u{1b}'));
        assert!(text.lines().all(|line| line.len() < 40_000));
    }
}
