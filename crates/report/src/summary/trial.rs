//! One trial: owners of memory, timeline, load, conditions.

use super::cells::told_mark;
use super::facts::trial_facts;
use super::journey::{growth_notes, journey};
use super::netty;
use super::numbers::{by_category, load, weights};
use super::tried::trial_text;
use super::{account_of, charged, explanation, inside, loaders, pools};
use crate::chart;
use crate::owner::Owner;
use crate::page::{Depth, Fold, Literal, Part, Section, Topic, Verdict};
use crate::quantity::shown;
use crate::record::{ChildProgram, Evidence, Mark, Outcome, Trial, Unit};
use crate::units::{Bytes, grouped, milliseconds, several, shortened, without_numbers};
use crate::words::{Standing, gathered, outcome_words};

/// Maximum number of a subject's last lines, and maximum number of flags, that are shown.
const LINES_MAX: usize = 40;
const FLAGS_MAX: usize = 1000;
/// Maximum number of programs named in the answer.
const PROGRAMS_MAX: usize = 4;
/// Maximum length of a reason in a sentence.
const WHY_CHARS: usize = 400;

pub(super) fn sections(trial: &Trial, evidence: Option<&Evidence>, depth: Depth) -> Vec<Section> {
    let [account, timeline, requests] = if depth.whole { chart::of_trial(trial, evidence) } else { [None, None, None] };
    let mut memory: Vec<Part> = (!trial.marks.is_empty()).then(|| Part::Table(weights(trial))).into_iter().collect();
    match account {
        Some(figure) => {
            memory.push(Part::figure(figure));
            memory.extend(growth_notes(trial).into_iter().map(Part::Text));
        }
        None => memory.extend(journey(trial)),
    }
    let charge = told_mark(trial).and_then(|mark| charged::section(mark.charge.as_ref()?));
    memory.extend(charge.map(Part::Section));
    memory.extend(loaders::of_trial(trial).map(Part::Table));
    memory.extend(inside::of_trial(trial).map(Part::Table));
    memory.extend(trial.heap_dump.as_ref().map(inside::dump));
    memory.extend(netty::of_trial(trial));
    if depth.whole {
        memory.extend(owners(trial));
        memory.extend(netty::chunks(trial).map(Part::Table));
        memory.extend(pools::of_trial(trial).map(Part::on_demand));
    }
    memory.extend(by_category(trial).map(Part::on_demand));
    let phases = (!trial.phases.is_empty()).then(|| Part::Table(load(trial)));
    let explanation = explanation::of_trial(trial, depth);
    let measured = [
        Section::titled(Topic::Memory, "memory over time", timeline.map(Part::figure)).id("course"),
        Section::titled(Topic::Memory, "memory", memory).id("memory"),
        Section::titled(Topic::Load, "load", phases.into_iter().chain(requests.map(Part::figure))).id("load"),
    ];
    explanation.into_iter().chain(measured).collect()
}

/// A subject's processes by program.
pub(super) fn of_processes(mark: &Mark) -> Option<String> {
    let count = mark.processes.len() as u64;
    let told = |of: &ChildProgram| match of.processes {
        1 => format!("`{}` {}", of.name, Bytes(of.bytes)),
        several => format!("{} of `{}` {}", grouped(several), of.name, Bytes(of.bytes)),
    };
    let programs: Vec<String> = ChildProgram::of(&mark.processes).iter().take(PROGRAMS_MAX).map(told).collect();
    (count > 1).then(|| format!("The {count} processes hold {}: {}.", Bytes(mark.weight().1), programs.join(", ")))
}

/// The trial's owners with descriptions and what affects them, in a collapsed section.
fn owners(trial: &Trial) -> Option<Part> {
    let accounts: Vec<_> = trial.marks.iter().filter_map(account_of).collect();
    let is_held = |owner: &Owner| accounts.iter().any(|account| account.holds(owner.name()) > 0);
    let of = |owner: Owner| {
        let entry = owner.entry();
        let moved = match entry.moved_by {
            [] => "No option changes it directly.".to_owned(),
            some => format!("Options that change it: {}.", some.join(", ")),
        };
        let text = Part::Text(format!("{}. {moved}", entry.what));
        Part::Section(Section::new(Topic::Memory, entry.label, [text]).folded(Fold::Closed))
    };
    let each = Owner::ALL.into_iter().filter(is_held).map(of);
    let section = Section::new(Topic::Memory, "what each owner is, and what changes it", each).folded(Fold::Closed);
    Part::Section(section).filled()
}

/// Everything about a trial under one heading, for pages that show several trials.
pub(super) fn section(trial: &Trial, evidence: Option<&Evidence>, depth: Depth, fold: Fold) -> Part {
    let mut parts: Vec<Part> = sections(trial, evidence, depth).into_iter().flat_map(|of| of.parts).collect();
    parts.push(Part::under("conditions of this trial", [Part::Facts(trial_facts(trial))]));
    parts.extend(lists(trial, depth));
    let name = format!("{} (trial {})", trial.configuration, trial.index + 1);
    let section = Section::new(Topic::Course, format!("{name}: {}", said(trial)), parts).folded(fold);
    Part::Section(section.id(format!("trial-{}", trial.index + 1)))
}

/// Flags and last lines, if `depth` requests everything.
pub(super) fn lists(trial: &Trial, depth: Depth) -> Vec<Part> {
    let flags = trial.jvm.as_ref().and_then(|jvm| jvm.flags.as_deref()).unwrap_or_default();
    let last = trial.end.as_ref().map(|end| end.last_lines.as_slice()).unwrap_or_default();
    let of_flags = format!("all {} flags in effect that differ from their defaults", flags.len());
    let lists = [
        (of_flags, &flags[..flags.len().min(FLAGS_MAX)]),
        ("its last lines".to_owned(), &last[last.len().saturating_sub(LINES_MAX)..]),
    ];
    let list = |(heading, lines): (String, &[String])| {
        let lines = Part::Literal(Literal { lines: lines.to_vec(), ..Literal::default() });
        Part::Section(Section::new(Topic::Conditions, heading, [lines]).folded(Fold::Closed))
    };
    lists.into_iter().filter(|(_, lines)| depth.whole && !lines.is_empty()).map(list).collect()
}

/// How incomplete trials ended. Similar ends within a configuration are merged, using the wording of the first one.
pub(super) fn failures(trials: &[Trial]) -> Vec<Verdict> {
    let failed = trials.iter().filter(|trial| trial.is_failed()).map(|trial| {
        let why = trial.why.as_deref().unwrap_or("reason unknown");
        ((&trial.configuration, trial.outcome, without_numbers(why)), (trial, why))
    });
    let told = |(_, alike): (_, Vec<(&Trial, &str)>)| {
        let (trial, why) = alike[0];
        let (word, ended) = outcome_words(trial.outcome);
        let others = match alike.len() as u64 - 1 {
            0 => String::new(),
            more => format!(", and {}", several(more, "more trial")),
        };
        let failed = Verdict::new(Standing::Fail, word, format!("{ended}: {}", shortened(why, WHY_CHARS)));
        failed.about(format!("trial {} of {}{others}", trial.index + 1, trial.configuration))
    };
    gathered(failed, |one, other| one == other).into_iter().map(told).collect()
}

pub(super) fn verdict(trial: &Trial) -> Option<Verdict> {
    let text = weight(trial).filter(|_| !trial.is_failed())?;
    Some(Verdict::new(Standing::Told, "weighed", text).about(&trial.configuration))
}

/// Describes a trial: by its purpose in a search, by its memory, or by both in a tuning.
fn said(trial: &Trial) -> String {
    let ended = (trial.outcome != Outcome::Completed && trial.probe.is_none()).then(|| outcome_words(trial.outcome).1);
    let weight = weight(trial).unwrap_or("no mark was reached".to_owned());
    let text = match trial_text(trial) {
        Some(text) if trial.tuned.is_some() => format!("{text}; {weight}"),
        text => text.unwrap_or(weight),
    };
    ended.map_or(text.clone(), |ended| format!("{ended}; {text}"))
}

/// RSS at the answer's mark, rate and p99 of the last work phase.
fn weight(trial: &Trial) -> Option<String> {
    let mark = told_mark(trial)?;
    let (word, bytes) = mark.weight();
    let mut parts = vec![format!("{word} {} {}", shown(Unit::Bytes, Some(bytes as f64)), shortened(&mark.name, 30))];
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
