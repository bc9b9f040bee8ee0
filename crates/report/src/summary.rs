//! Builds the page for a result, with the answer first and doubts last. Pure: the same trials give the same text,
//! whether from a fresh run or from an archive.

mod account;
mod advice;
mod cells;
mod changes;
mod charged;
mod comparison;
mod details;
mod doubts;
mod drivers;
mod explanation;
mod facts;
mod figures;
pub(super) mod find;
mod findings;
mod flags;
pub(super) mod fleet;
pub(super) mod history;
mod inside;
mod journey;
mod jvms;
mod loaders;
mod loads;
mod netty;
mod next;
mod numbers;
mod oom;
mod over;
mod own;
mod owners;
mod pools;
mod post_mortem;
mod remedies;
mod sides;
mod trial;
pub(super) mod tried;
pub(super) mod tune;
pub(super) mod tune_answer;
pub(super) mod tune_request;
pub(super) mod watch;

pub(super) use account::page_of_account;
pub use account::summarize_account;
pub use advice::summarize_advice;
pub(super) use cells::{account_of, mib};
pub use changes::summarize_changes;
pub use charged::summarize_charge;
pub use details::Detail;
pub(super) use doubts::by_kind as doubts_by_kind;
pub(super) use facts::DIFFERING;
pub use fleet::{summarize_fleet, unanswered};
pub(super) use history::page_of_history;
pub use history::summarize_history;
pub use jvms::summarize_accounts;
pub use loads::summarize_load;
pub use oom::summarize_oom;
pub use post_mortem::summarize_post_mortem;
pub use remedies::summarize_remedies;
pub(super) use sides::is_of_baseline_archive;
pub use watch::summarize_watch;

use super::chart::{self, Figure};
use super::page::{Depth, Fold, Page, Part, Section, Topic, Verdict};
use crate::record::{Document, Evidence, PhaseRecord, Trial, each_once};
use cells::told_mark;
use figures::figures;
use findings::Findings;
use numbers::side_by_side;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) document: &'a Document,
    /// The charts' data; refers to trials by index.
    pub(super) evidence: &'a [Evidence],
    /// Missing parts of an archive.
    pub(super) missing: &'a [String],
    /// The archive's directory, if known.
    pub(super) archive: Option<&'a Path>,
}

impl<'a> Sources<'a> {
    fn of(&self, trial: &Trial) -> Option<&'a Evidence> {
        self.evidence.iter().find(|evidence| evidence.trial == trial.index)
    }
}

/// Summarizes a result. `missing` names the parts that an archive lacks.
///
/// If several configurations have several trials each, the page shows their comparison; `depth` can request more. The
/// same applies to the trials of searches and tunings.
pub fn summarize(document: &Document, missing: &[String], depth: Depth) -> Page {
    summarize_archived(document, None, missing, depth)
}

/// Like `summarize`; commands to copy name this archive.
pub fn summarize_archived(document: &Document, archive: Option<&Path>, missing: &[String], depth: Depth) -> Page {
    page_of(Sources { document, evidence: &[], missing, archive }, depth).within(depth)
}

/// Like `summarize`, with chart data.
pub(super) fn page_of(of: Sources<'_>, depth: Depth) -> Page {
    let document = of.document;
    let mut page = match (&document.tune, &document.find) {
        (Some(tune), _) => tune::page(of, tune, depth),
        (None, Some(find)) => find::page(of, find, depth),
        (None, None) => match &document.over {
            Some(over) => over::page(of, over, depth),
            None => of_trials(of, depth),
        },
    };
    let of_trials = of.evidence.iter().flat_map(|evidence| {
        evidence.missing.iter().map(|what| Part::Text(format!("trial {}: {what}", evidence.trial + 1)))
    });
    let missing = of.missing.iter().map(|what| Part::Text(what.clone())).chain(of_trials);
    let missing = Section::new(Topic::Doubts, "missing", missing);
    page.sections.extend((!missing.parts.is_empty()).then_some(missing));
    page
}

fn of_trials(of: Sources<'_>, depth: Depth) -> Page {
    let (document, trials) = (of.document, &of.document.trials);
    let compares = comparison::compares(document);
    let alone = trials.first().filter(|_| trials.len() == 1);
    let mut verdicts = trial::failures(trials);
    verdicts.extend(alone.and_then(trial::verdict));
    verdicts.extend(comparison::failing(&document.budgets));
    verdicts.extend(comparison::kept(&document.budgets));
    if compares {
        verdicts.extend(comparison::judged(document));
    }
    if trials.is_empty() {
        verdicts.push(Verdict::told("Nothing was measured."));
    }
    let mut conditions = facts::section(document, alone);
    conditions.parts.extend(alone.into_iter().flat_map(|trial| trial::lists(trial, depth)));
    let table = (!compares && trials.len() > 1).then(|| Part::Table(side_by_side(trials)));
    let mark = alone.and_then(told_mark);
    let in_short = mark.and_then(|mark| trial::of_processes(mark).or_else(|| Some(account::answer(account_of(mark)?))));
    let in_short = in_short.map(Part::Text);
    let found = alone.and_then(|trial| trial.explanation.as_ref());
    let warmed = alone.is_some_and(|trial| trial.phases.iter().any(PhaseRecord::is_warmup));
    let grows = found.and_then(|found| found.live_growth.as_ref()).map(|of| explanation::growth(of, warmed));
    let largest = found.and_then(|found| explanation::largest(found, mark));
    // If there is a leak, the verdict on it comes first.
    let explained: Vec<Part> = grows.into_iter().chain(largest).map(Part::Text).collect();
    let collector = facts::collector_doubt(trials).map(facts::in_words);
    let next = next::of_trials(document, of.archive);
    // If the responsible code is known, the next command precedes the account in words.
    let told = if explained.is_empty() { [in_short, next] } else { [next, in_short] };
    let answer = Part::Verdicts(verdicts).filled().into_iter().chain(explained).chain(collector);
    let notes = compares.then(|| notes(document)).into_iter().flatten();
    let answer = answer.chain(notes).chain(told.into_iter().flatten());
    let mut sections = vec![
        Section::new(Topic::Answer, "", answer).id("verdict"),
        Section::titled(Topic::Answer, "side by side", table),
        Section::titled(Topic::Answer, "figures derived from marks", figures(document).map(Part::Table)).id("figures"),
        comparison::budgets(&document.budgets),
        conditions,
    ];
    if compares {
        sections.splice(1..1, together(document, depth));
        sections.insert(1, Section::new(Topic::Answer, "", next::of_comparison(document)));
        sections.push(owners::section(document));
        sections.extend(explanation::of_comparison(document));
    }
    match alone {
        Some(trial) => sections.extend(trial::sections(trial, of.of(trial), depth)),
        None if !compares || depth.each => sections.push(each_trial(of, depth)),
        None => {}
    }
    sections.extend(depth.details.then(|| comparison::all_metrics(document)));
    finished(of, "weighed", sections, depth)
}

/// The lines below a comparison's verdicts.
fn notes(document: &Document) -> impl Iterator<Item = Part> {
    let said = [
        facts::saturation_doubt(&document.trials).map(facts::in_words),
        comparison::also(document),
        comparison::noise(document),
    ];
    said.into_iter().flatten().chain(owners::heap_notes(document))
}

/// The page with these sections and the common ones; `done` describes what was done with the scenario.
fn finished(of: Sources<'_>, done: &str, mut sections: Vec<Section>, depth: Depth) -> Page {
    let document = of.document;
    let explained =
        document.trials.iter().filter_map(|trial| Some((&*trial.configuration, trial.explanation.as_ref()?)));
    let configurations = each_once(document.trials.iter().map(|trial| trial.configuration.as_str())).len();
    let findings = Findings {
        found: &document.findings,
        ruled_out: &document.ruled_out,
        explained: explained.collect(),
        named: configurations > 1,
        first: !depth.whole && is_weighed_alone(document),
        open: open(document),
        compared: if comparison::compares(document) { configurations } else { 0 },
        rss_bytes: findings::rss_of(&document.trials),
    };
    let code = sections.iter().position(|section| section.id == explanation::ID);
    let behind = usize::from(explanation::outweighs(document));
    sections.insert(code.map_or(sections.len(), |code| code + behind), findings.section(depth));
    sections.push(doubts::section_of(document));
    // Response time spectra, if charts are wanted.
    let spectra = if depth.whole { chart::spectra(document, of.evidence) } else { Vec::new() };
    let spectra = spectra.into_iter().map(Part::figure);
    sections.push(Section::titled(Topic::Load, "times by percentile", spectra).id("spectra"));
    let of = &document.conditions;
    Page::new(format!("{}, {done} by loadline {}", named(document), of.loadline), sections)
}

/// The scenario's name. If it is named after a start script, the program that the script started follows: `start:
/// shop.jar`.
fn named(document: &Document) -> String {
    let name = &document.conditions.scenario;
    let is_script =
        |word: &String| !word.ends_with("java") && Path::new(word).file_stem().is_some_and(|of| of == &**name);
    let first = document.trials.first().filter(|trial| trial.command.iter().take(2).any(is_script));
    let program = first.and_then(|trial| trial.jvm.as_ref()?.program.as_ref());
    program.map_or_else(|| name.clone(), |program| format!("{name}: {program}"))
}

/// The next command for a large owner in the only trial, if nothing explains that owner.
fn open(document: &Document) -> Option<String> {
    let [only] = document.trials.as_slice() else { return None };
    let mark = told_mark(only).filter(|mark| only.explanation.is_none() && mark.processes.is_empty())?;
    let account = account_of(mark)?;
    next::open(account, &document.findings)?.next_trial()
}

fn is_weighed_alone(document: &Document) -> bool {
    let [only] = document.trials.as_slice() else { return false };
    only.marks.iter().any(|mark| mark.account.is_some())
}

/// Every trial, or the first of each configuration; all but the first are collapsed.
fn each_trial(of: Sources<'_>, depth: Depth) -> Section {
    let fold = |at: usize| if at == 0 { Fold::Open } else { Fold::Closed };
    let all = &of.document.trials;
    let is_first = |at: usize, trial: &Trial| all[..at].iter().all(|other| other.configuration != trial.configuration);
    let trials = all.iter().enumerate().filter(|(at, trial)| depth.each || is_first(*at, trial));
    let parts = trials.map(|(at, trial)| trial::section(trial, of.of(trial), depth, fold(at)));
    Section::titled(Topic::Course, "trials", parts).id("trials")
}

/// The sections that compare trials.
fn together(document: &Document, depth: Depth) -> [Section; 2] {
    let pictures = |figures: fn(&Document) -> Vec<Figure>| {
        let figures = if depth.whole { figures(document) } else { Vec::new() };
        figures.into_iter().map(Part::figure)
    };
    let values = (depth.each && !depth.whole).then(|| comparison::every_value(document)).flatten();
    let verdicts = comparison::verdicts(document).into_iter().chain(pictures(chart::forests));
    let pareto = comparison::pareto(document).into_iter().chain(pictures(chart::paretos));
    [
        Section::titled(Topic::Answer, "comparison", verdicts.chain(pictures(chart::dots)).chain(values))
            .id("comparison"),
        Section::titled(Topic::Answer, "memory vs. speed", pareto).id("pareto"),
    ]
}
