//! The sections of the page, in its order.

use super::tables::{facts, figure, folded, lines, prose, scrolling, section, table};
use super::{pools, verdicts};
use crate::record::{BlockRecord, BudgetRecord, ComparisonRecord, Document, DoubtRecord, Evidence, Outcome, Trial};
use crate::report::chart::{self, Figure};
use crate::report::markup::{Attribute, Markup, shortened};
use crate::report::quantity::budget_number;
use crate::report::summary::tried::{is_answer, trial_text};
use crate::report::summary::{
    Table, by_category, configurations, figures, growth_notes, live_objects, load, loaders, shared_facts, thread_pools,
    told_finding, trial_facts, weights,
};
use crate::report::words::{outcome_words, verdict_word};

/// Names in headings.
const NAME_CHARS: usize = 80;
/// Names of metrics that are not broken.
const METRIC_CHARS: usize = 36;
/// Doubts told; hundreds of them would say the same.
const DOUBTS_MAX: usize = 200;
/// A doubt's words.
const DOUBT_CHARS: usize = 2000;
/// Trials beyond this size of the page get tables only: some eighty long trials.
const CHARTS_BYTES_MAX: usize = 8 << 20;
/// Last lines of a subject that are shown.
const LINES_MAX: usize = 40;

/// What the sections are made of.
pub(super) struct Sections<'a> {
    pub(super) document: &'a Document,
    pub(super) evidence: &'a [Evidence],
    pub(super) missing: &'a [String],
}

/// Whether anything is doubtful.
pub(super) fn has_doubts(document: &Document) -> bool {
    !document.doubts.is_empty() || document.trials.iter().any(|trial| !trial.doubts.is_empty())
}

impl Sections<'_> {
    pub(super) fn conditions(&self, out: &mut Markup) {
        let conditions = &self.document.conditions;
        facts(out, &shared_facts(conditions));
        out.words("p", &[("class", &"soft")], "This repeats it:");
        lines(out, std::iter::once(&conditions.command));
        if let Some(what) = configurations(self.document, &chart::configurations(self.document)) {
            out.words("h3", &[], &what.title);
            table(out, &what);
        }
        for what in self.missing {
            out.words("p", &[], format!("Missing: {}", shortened(what, DOUBT_CHARS)));
        }
    }

    pub(super) fn comparison(&self, out: &mut Markup) {
        let dots = chart::dots(self.document);
        if self.document.comparisons.is_empty() && dots.is_empty() {
            return;
        }
        section(out, "comparison", "Comparison", |out| {
            for (candidate, forest) in chart::candidates(self.document).into_iter().zip(chart::forests(self.document)) {
                let rows = chart::judged(self.document, candidate);
                verdict_table(out, &rows);
                figure(out, &forest);
            }
            if !dots.is_empty() {
                out.words("h3", &[], "Every trial");
                out.element("div", &[("class", &"pair")], |out| dots.iter().for_each(|one| figure(out, one)));
            }
            self.blocks(out);
        });
    }

    fn blocks(&self, out: &mut Markup) {
        let blocks = &self.document.blocks;
        if blocks.len() < 2 {
            return;
        }
        let disturbed = blocks.iter().filter(|block| block.disturbed.is_some()).count();
        let row = |block: &BlockRecord| {
            vec![
                (block.block + 1).to_string(),
                block.order.iter().map(|name| shortened(name, NAME_CHARS)).collect::<Vec<_>>().join(", "),
                block.disturbed.clone().unwrap_or("-".to_owned()),
                block.repeats.map_or("-".to_owned(), |repeated| (repeated + 1).to_string()),
                if block.used { "yes" } else { "no" }.to_owned(),
            ]
        };
        let head = ["block", "order", "disturbed by", "repeats block", "counts"];
        let title = format!("{} blocks, {disturbed} of them disturbed", blocks.len());
        folded(out, &Table::new(title, head, blocks.iter().map(row)).worded(1, 4));
    }

    pub(super) fn pareto(&self, out: &mut Markup) {
        let figures = chart::paretos(self.document);
        if !figures.is_empty() {
            section(out, "pareto", "Weight against speed", |out| {
                out.element("div", &[("class", &"pair")], |out| figures.iter().for_each(|one| figure(out, one)));
            });
        }
    }

    pub(super) fn figures(&self, out: &mut Markup) {
        if let Some(figures) = figures(self.document) {
            section(out, "figures", "Figures derived from marks", |out| table(out, &figures));
        }
    }

    pub(super) fn budgets(&self, out: &mut Markup) {
        if self.document.budgets.is_empty() {
            return;
        }
        let mut budgets: Vec<&BudgetRecord> = self.document.budgets.iter().collect();
        budgets.sort_by_key(|budget| verdicts::budget_order(budget.verdict));
        let row = |budget: &&BudgetRecord| {
            let (_, sign, word) = verdicts::budget_words(budget.verdict);
            vec![
                format!("{sign} {word}"),
                budget.expression.clone(),
                budget.configuration.clone(),
                verdicts::budget_value(budget),
                budget_number(budget, budget.bound),
                budget.trials.to_string(),
                budget.why.clone(),
            ]
        };
        let head = ["verdict", "budget", "configuration", "measured (interval)", "bound", "rests on", "why"];
        section(out, "budgets", "Budgets", |out| {
            table(out, &Table::new("Budgets", head, budgets.iter().map(row)).worded(3, 1));
        });
    }

    /// What trials show to be wrong; nothing where they show nothing.
    fn findings(&self, out: &mut Markup) {
        if self.document.findings.is_empty() {
            return;
        }
        section(out, "findings", "Findings", |out| {
            out.element("ul", &[("class", &"doubts")], |out| {
                for found in &self.document.findings {
                    out.element("li", &[], |out| {
                        prose(out, &shortened(&told_finding(found), DOUBT_CHARS));
                        out.element("div", &[("class", &"next soft")], |out| {
                            prose(out, &shortened(&found.next, DOUBT_CHARS));
                        });
                    })
                    .line();
                }
            });
        });
    }

    pub(super) fn doubts(&self, out: &mut Markup) {
        self.findings(out);
        if !has_doubts(self.document) {
            return;
        }
        // The same doubt of several trials is said once.
        let mut told: Vec<(&DoubtRecord, Vec<u32>)> =
            self.document.doubts.iter().map(|doubt| (doubt, Vec::new())).collect();
        for trial in &self.document.trials {
            for doubt in trial.doubts.iter().filter(|of| !is_answer(trial, &of.doubt)) {
                let same = |(other, trials): &(&DoubtRecord, Vec<u32>)| !trials.is_empty() && other.text == doubt.text;
                match told.iter().position(same) {
                    Some(at) => told[at].1.push(trial.index + 1),
                    None if told.len() < DOUBTS_MAX => told.push((doubt, vec![trial.index + 1])),
                    None => {}
                }
            }
        }
        section(out, "doubts", "Doubts", |out| {
            out.element("ul", &[("class", &"doubts")], |out| {
                for (doubt, trials) in &told {
                    let of = match trials.as_slice() {
                        [] => String::new(),
                        [one] => format!("Trial {one}: "),
                        [first @ .., last] => {
                            let first = first.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                            format!("Trials {first} and {last}: ")
                        }
                    };
                    out.element("li", &[], |out| {
                        prose(out.text(of), &shortened(&doubt.text, DOUBT_CHARS));
                        out.element("div", &[("class", &"next soft")], |out| {
                            prose(out, &shortened(&doubt.next, DOUBT_CHARS));
                        });
                    });
                }
            });
        });
    }

    pub(super) fn spectra(&self, out: &mut Markup) {
        let figures = chart::spectra(self.document, self.evidence);
        if !figures.is_empty() {
            section(out, "spectra", "Times by percentile", |out| {
                figures.iter().for_each(|one| figure(out, one));
            });
        }
    }

    pub(super) fn trials(&self, out: &mut Markup) {
        let (before, mut left_out) = (out.as_str().len(), 0);
        for (at, trial) in self.document.trials.iter().enumerate() {
            let evidence = self.evidence.iter().find(|evidence| evidence.trial == trial.index);
            let room = out.as_str().len() - before < CHARTS_BYTES_MAX;
            let figures = if room { chart::of_trial(trial, evidence) } else { Vec::new() };
            left_out += u32::from(!room);
            trial_section(out, trial, evidence, &figures, at == 0);
        }
        if self.document.trials.is_empty() {
            out.words("p", &[], "There is none.");
        }
        if left_out > 0 {
            let what = format!("The charts of {left_out} trials are left out, so that the page stays small; ");
            prose(out, &format!("{what}`loadline report --plot` draws them."));
        }
    }

    pub(super) fn details(&self, out: &mut Markup) {
        if self.document.comparisons.len() < 2 {
            return;
        }
        section(out, "details", "All metrics", |out| {
            for candidate in chart::candidates(self.document) {
                let of = self.document.comparisons.iter().filter(|comparison| comparison.candidate == candidate);
                let rows: Vec<_> = of.collect();
                let title = format!("{} metrics of {}", rows.len(), shortened(candidate, NAME_CHARS));
                folded(out, &chart::forest_table(&rows, &title));
            }
        });
    }
}

/// Comparisons as a table that begins with the verdict, in a word, a shape and a colour.
fn verdict_table(out: &mut Markup, rows: &[&ComparisonRecord]) {
    let baseline = rows.first().map_or(String::new(), |first| shortened(&first.baseline, NAME_CHARS));
    let candidate = rows.first().map_or(String::new(), |first| shortened(&first.candidate, NAME_CHARS));
    out.words("h3", &[], format!("{candidate} against {baseline}"));
    let head = |out: &mut Markup| {
        out.words("th", &[("scope", &"col")], "verdict").words("th", &[("scope", &"col")], "metric");
        for head in [&baseline, &candidate, "difference (interval)", "also", "blocks"] {
            out.words("th", &[("scope", &"col"), ("class", &"n")], head);
        }
    };
    scrolling(out, "Verdicts", &[], head, |out| {
        for row in rows {
            out.element("tr", &[], |out| verdict_cells(out, row));
        }
    });
}

fn verdict_cells(out: &mut Markup, row: &ComparisonRecord) {
    out.element("td", &[], |out| {
        let class = chart::verdict_class(row.verdict);
        verdicts::badge(out, class, verdicts::sign(row.verdict), verdict_word(row.verdict));
    });
    let metric = shortened(&chart::metric_words(&row.metric), NAME_CHARS);
    let class = if metric.chars().count() <= METRIC_CHARS { "brief" } else { "" };
    out.words("th", &[("scope", &"row"), ("class", &class)], metric);
    let [before, after] = [row.baseline_median, row.candidate_median].map(|value| chart::value_text(row.unit, value));
    for cell in [before, after, chart::judged_text(row), chart::also_text(row), row.blocks.to_string()] {
        out.words("td", &[("class", &"n")], cell);
    }
}

fn trial_section(out: &mut Markup, trial: &Trial, evidence: Option<&Evidence>, figures: &[Figure], open: bool) {
    let id = format!("trial-{}", trial.index + 1);
    let mut attributes: Vec<Attribute<'_>> = vec![("class", &"trial"), ("id", &id)];
    if open {
        attributes.push(("open", &""));
    }
    out.line().element("details", &attributes, |out| {
        out.element("summary", &[], |out| {
            let name = format!("Trial {}: {}", trial.index + 1, shortened(&trial.configuration, NAME_CHARS));
            out.words("b", &[], name);
            if trial.outcome != Outcome::Completed {
                verdicts::badge(out, "fail", "\u{2715}", outcome_words(trial.outcome).0);
                out.text(" ");
            }
            let weight = verdicts::weight(trial).unwrap_or("no mark was reached".to_owned());
            // A trial of a search is told by what it was for, and is not asked for its weight; one of a tuning is.
            let weight = match trial_text(trial) {
                Some(text) if trial.tuned.is_some() => format!("{text}; {weight}"),
                text => text.unwrap_or(weight),
            };
            out.words("span", &[("class", &"soft")], format!("block {}. {weight}", trial.block + 1));
        });
        figures.iter().for_each(|one| figure(out, one));
        for note in growth_notes(trial) {
            out.words("p", &[("class", &"notes")], note);
        }
        for what in evidence.iter().flat_map(|evidence| &evidence.missing) {
            out.words("p", &[], format!("Missing: {}", shortened(what, DOUBT_CHARS)));
        }
        trial_tables(out, trial);
    });
}

fn trial_tables(out: &mut Markup, trial: &Trial) {
    let titled = |out: &mut Markup, title: &str, one: &Table| {
        out.words("h3", &[], title);
        table(out, one);
    };
    if !trial.marks.is_empty() {
        titled(out, "Marks, MiB", &weights(trial));
    }
    if !trial.phases.is_empty() {
        titled(out, "Phases, times in ms", &load(trial));
    }
    if let Some(loaders) = loaders(trial) {
        titled(out, "Class loaders, from mark to mark", &loaders);
    }
    if let Some(objects) = live_objects(trial) {
        titled(out, "Live objects by class", &objects);
    }
    pools::write(out, trial);
    if let Some(threads) = thread_pools(trial) {
        folded(out, &threads);
    }
    if let Some(native) = by_category(trial) {
        folded(out, &Table { title: "Native memory by category, committed KiB".to_owned(), ..native });
    }
    out.words("h3", &[], "Conditions of this trial");
    facts(out, &trial_facts(trial));
    let flags = trial.jvm.as_ref().and_then(|jvm| jvm.flags.as_ref()).filter(|flags| !flags.is_empty());
    if let Some(flags) = flags {
        out.element("details", &[], |out| {
            out.words("summary", &[], format!("All {} flags in force that differ from their defaults", flags.len()));
            lines(out, flags.iter().take(1000));
        });
    }
    let last = trial.end.as_ref().map(|end| end.last_lines.as_slice()).unwrap_or_default();
    if !last.is_empty() {
        out.element("details", &[], |out| {
            out.words("summary", &[], "Its last lines");
            lines(out, last.iter().skip(last.len().saturating_sub(LINES_MAX)));
        });
    }
}
