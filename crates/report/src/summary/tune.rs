//! The page of a tuning: the answer, its effects, every remedy's fate, and the path to the answer. Shows the record
//! without judging.

use super::cells::beginning;
use super::comparison;
use super::facts::{self, trial_facts};
use super::find::{percent, span};
use super::tune_answer::{
    AS_IS, answer, as_is_trial, blamed, cost_words, gains_told, limits, objective_words, of_a_request, told, unsettled,
};
use super::tune_request::request;
use super::{Sources, each_trial, finished};
use crate::chart::tunes;
use crate::owner::label;
use crate::page::{Depth, Facts, Page, Part, Section, Topic, Verdict};
use crate::quantity::{Quantity, change, shown};
use crate::record::{
    ComparisonRecord, Fate, OwnerGain, PhaseRate, PriceClass, RemedyRecord, SettingRecord, TuneOutcome, TuneRecord,
    TuneStage, Unit, each_once,
};
use crate::scenario::shell_words;
use crate::snippets;
use crate::table::{Cell, Table};
use crate::units::{MIB, per_second, several};
use crate::words::{NONE, Standing, dash, word_of};
use loadline_base::order::Order as _;

/// Maximum number of owners on a screen.
const OWNERS_MAX: usize = 6;
/// Changes in owners that would print as 0.0 are omitted.
const OWNER_BYTES_MIN: f64 = 0.05 * MIB as f64;
/// Longest text of a remedy's options next to other words.
const OPTIONS_CHARS: usize = 160;
/// Longest reason on a screen: enough for a JVM's message, but not its whole output.
const WHY_CHARS: usize = 400;
/// Length of names that leave room for numbers in 80 columns.
const METRIC_CHARS: usize = 16;
const IDS_CHARS: usize = 27;

/// The note about settings measured by the search.
pub(crate) const NO_PROOF: &str = "These values are from the search's own trials, which also chose the settings. \
    They are not confirmed.";

/// The page of a tuning, which replaces the page of trials.
pub(super) fn page(of: Sources<'_>, tune: &TuneRecord, depth: Depth) -> Page {
    let document = of.document;
    let answer = answer(tune);
    let is_told = !is_answered(tune.outcome) || answer.is_empty();
    let mut verdicts: Vec<Verdict> = is_told.then(|| verdict(tune)).into_iter().collect();
    verdicts.extend(comparison::failing(&document.budgets));
    let mut beside = Facts::default();
    beside.add("collector", facts::collector_by_cpus(&document.trials));
    let mut parts = vec![Part::Facts([answer, unsettled(tune), blamed(tune), beside.0].concat())];
    parts.extend(gains(tune).map(Part::Table));
    let as_is = as_is_trial(&document.trials);
    let snippets = snippets::parts(snippets::of_tuning(tune, as_is));
    let request = request(document, tune).map(|text| Part::Text(text.join(" ")));
    let mut how: Vec<Part> = headed(how_heading(tune.outcome), method(tune)).into_iter().collect();
    match depth.whole {
        true => {
            parts.extend(tunes(document).into_iter().map(Part::figure));
            how.extend(remedies(tune).into_iter().chain(path_told(tune)).map(Part::Table));
        }
        false => {
            parts.extend(headed("remedies", fates(tune)));
            parts.extend(front(tune));
            how.extend(path(tune, IDS_CHARS).filter(|_| depth.details).map(Part::Table));
        }
    }
    let mut conditions = facts::section(document, None);
    let of_trial = as_is.map(|trial| (format!("{AS_IS} (trial {})", trial.index + 1), trial_facts(trial)));
    conditions.parts.extend(of_trial.and_then(|(heading, facts)| headed(&heading, facts)));
    let most = if depth.whole { usize::MAX } else { OWNERS_MAX };
    let mut sections = vec![
        Section::new(Topic::Answer, "", Part::Verdicts(verdicts).filled()).id("verdict"),
        Section::titled(Topic::Answer, "tuning", parts).id("tune"),
        Section::titled(Topic::Answer, "settings", snippets),
        Section::new(Topic::Answer, "for a change request", request),
        comparison::budgets(&document.budgets),
        Section::titled(Topic::Memory, "memory", owners(tune, most).map(Part::Table)).id("memory"),
        Section::titled(Topic::Details, "how it was found", how).id("how"),
        conditions,
    ];
    sections.extend(depth.each.then(|| each_trial(of, depth)));
    finished(of, if tune.outcome == TuneOutcome::Planned { "tuning planned" } else { "tuned" }, sections, depth)
}

fn verdict(tune: &TuneRecord) -> Verdict {
    let (standing, word) = match tune.outcome {
        TuneOutcome::Proved => (Standing::Pass, "tuned"),
        TuneOutcome::Unpriced => (Standing::Undecided, "cost not confirmed"),
        TuneOutcome::NothingProved => (Standing::Undecided, "nothing confirmed"),
        TuneOutcome::NotHeld => (Standing::Fail, "target missed"),
        TuneOutcome::Planned => (Standing::Told, "planned"),
        TuneOutcome::GivenUp => (Standing::Undecided, "no result"),
    };
    Verdict::new(standing, word, told(tune))
}

fn is_answered(outcome: TuneOutcome) -> bool {
    matches!(outcome, TuneOutcome::Proved | TuneOutcome::Planned)
}

/// Facts under a heading, if any.
fn headed(heading: &str, facts: Vec<(String, String)>) -> Option<Part> {
    Part::under(heading, Part::Facts(facts).filled()).filled()
}

// ---- What it changes ----

/// Every metric of the confirmation; `None` if nothing was confirmed.
fn gains(tune: &TuneRecord) -> Option<Table> {
    let all = gains_told(tune);
    let first = all.first()?;
    let row = |(at, gain): (usize, &&ComparisonRecord)| {
        let what = if at == 0 { objective_words(tune.objective).0.to_owned() } else { cost_words(gain, &all) };
        comparison::with_medians(&of_a_request(gain), &beginning(&what, METRIC_CHARS)).to_vec()
    };
    let note = format!(
        "Medians. The intervals are for differences within blocks and hold jointly with {}.",
        comparison::confidence(first, 1)
    );
    let head = ["verdict", "metric", AS_IS, "tuned", "difference", "interval"];
    let table = Table::new("what changes (confirmation trials only)", head, all.iter().enumerate().map(row));
    Some(table.worded(2, 0).noted([note]))
}

/// Changed owners, largest change first, and the rest in one row. `None` if nothing was confirmed.
fn owners(tune: &TuneRecord, most: usize) -> Option<Table> {
    let moved = |gain: &OwnerGain| (gain.before_bytes - gain.after_bytes).abs();
    let mut sorted: Vec<&OwnerGain> = tune.owners.iter().collect();
    sorted.order_by(|left, right| moved(right).total_cmp(&moved(left)));
    let changed = sorted.iter().take(most).take_while(|gain| moved(gain) >= OWNER_BYTES_MIN).count();
    let (shown_ones, rest) = sorted.split_at(changed);
    let row = |name: String, before: f64, after: f64| -> Vec<Cell> {
        let change = Quantity::new(Unit::Bytes, after - before).difference().bare();
        vec![name.into(), mib(before), mib(after), change.into()]
    };
    let named = |gain: &&OwnerGain| row(beginning(label(&gain.owner), IDS_CHARS), gain.before_bytes, gain.after_bytes);
    let mut rows: Vec<Vec<Cell>> = shown_ones.iter().map(named).collect();
    if !rest.is_empty() {
        let sum = |of: fn(&OwnerGain) -> f64| rest.iter().map(|gain| of(gain)).sum::<f64>();
        let name = several(rest.len() as u64, "other owner");
        rows.push(row(name, sum(|gain| gain.before_bytes), sum(|gain| gain.after_bytes)));
    }
    Table::new("by owner, MiB", ["owner", AS_IS, "tuned", "change"], rows).filled()
}

/// MiB without the unit; a dash if unknown.
fn mib(bytes: impl Into<Option<f64>>) -> Cell {
    Cell::known(bytes.into().map(|bytes| Quantity::new(Unit::Bytes, bytes).bare()))
}

fn or_dash(text: String) -> Cell {
    if text.is_empty() { NONE.into() } else { text.into() }
}

// ---- The remedies ----

/// Every fate in report order, with its word and meaning.
const FATES: [(Fate, &str, &str); 10] = [
    (Fate::Kept, "kept", "it is part of the result"),
    (Fate::NotConfirmed, "unverified", "it was part of a set that was not confirmed"),
    (Fate::TooCostly, "too costly", "it saves memory, but costs more than the price allows"),
    (Fate::NotMissed, "redundant", "it saved memory on its own, but nothing on top of the others"),
    (Fate::NoEffect, "no effect", "it saved too little to matter"),
    (Fate::Harmful, "harmful", "memory grew, or the target was missed"),
    (Fate::Refused, "refused", "the server did not start with it"),
    (Fate::NotInForce, "ignored", "it was set, but the process did not receive it"),
    (Fate::Planned, "to try", "it would be tried next"),
    (Fate::NotTried, "not tried", "it was not tried"),
];

pub(super) fn price_words(price: PriceClass) -> &'static str {
    match price {
        PriceClass::Free => "free",
        PriceClass::Cpu => "may cost CPU",
        PriceClass::Program => "changes program behavior",
    }
}

/// A fact per fate; remedies with the same reason share a line.
fn fates(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    for (fate, word, _) in FATES {
        let lines = match fate {
            Fate::NotTried => not_tried(tune),
            Fate::Planned => ranked(tune, fate).into_iter().map(planned_text).collect(),
            _ => ranked(tune, fate).into_iter().map(|of| remedy_text(of, fate)).collect::<Vec<_>>(),
        };
        let is_left_out = fate == Fate::NotTried && tune.outcome == TuneOutcome::Planned;
        facts.list(if is_left_out { "left out" } else { word }, lines);
    }
    facts.0
}

/// A fate's remedies, largest saving first: the possible saving if planned, else the actual one.
fn ranked(tune: &TuneRecord, fate: Fate) -> Vec<&RemedyRecord> {
    let weight = |of: &RemedyRecord| match fate {
        Fate::Planned => of.gain_bytes_max.map_or(-1.0, |bytes| bytes as f64),
        _ => of.saved_bytes.filter(|bytes| bytes.is_finite()).map_or(-1.0, f64::abs),
    };
    let mut found: Vec<&RemedyRecord> = tune.remedies.iter().filter(|of| of.fate == fate).collect();
    found.order_by(|left, right| weight(right).total_cmp(&weight(left)));
    found
}

/// Remedies with the same reason share a line.
fn not_tried(tune: &TuneRecord) -> Vec<String> {
    let left_out = || tune.remedies.iter().filter(|of| of.fate == Fate::NotTried);
    let line = |why: &str| {
        let ids: Vec<String> = left_out().filter(|of| of.why == why).map(|of| shortened_id(&of.id)).collect();
        if why.is_empty() { ids.join(", ") } else { format!("{}: {}", ids.join(", "), beginning(why, WHY_CHARS)) }
    };
    each_once(left_out().map(|of| of.why.as_str())).into_iter().map(line).collect()
}

fn shortened_id(id: &str) -> String {
    beginning(id, IDS_CHARS)
}

/// `malloc.arenas (MALLOC_ARENA_MAX=1)`.
fn named(of: &RemedyRecord) -> String {
    match of.options.is_empty() {
        true => shortened_id(&of.id),
        false => format!("{} ({})", shortened_id(&of.id), beginning(&shell_words(&of.options), OPTIONS_CHARS)),
    }
}

/// A remedy's text: its saving if kept, else the reason, which includes numbers.
fn remedy_text(of: &RemedyRecord, fate: Fate) -> String {
    let numbers = numbers(of);
    let why = match fate {
        Fate::Kept if !numbers.is_empty() => numbers,
        _ if of.why.is_empty() => numbers,
        _ => beginning(&of.why, WHY_CHARS),
    };
    if why.is_empty() { named(of) } else { format!("{}: {why}", named(of)) }
}

/// `saved 95.4 MiB, CPU per request -0.1%`.
fn numbers(of: &RemedyRecord) -> String {
    let saved = of.saved_bytes.map(|bytes| {
        let size = shown(Unit::Bytes, Some(bytes.abs()));
        if bytes < 0.0 { format!("{size} more") } else { format!("saved {size}") }
    });
    let cpu = of.cpu_ratio.map(|ratio| format!("CPU per request {}", change(Some(ratio))));
    saved.into_iter().chain(cpu).collect::<Vec<_>>().join(", ")
}

fn planned_text(of: &RemedyRecord) -> String {
    let bound = of.gain_bytes_max.map(|bytes| format!("could save up to {}", shown(Unit::Bytes, Some(bytes as f64))));
    let bound = bound.unwrap_or_else(|| "possible savings unknown".to_owned());
    let what = if of.what.is_empty() { String::new() } else { format!("{}; ", of.what) };
    format!("{}: {what}{bound}, {}", named(of), price_words(of.price))
}

/// Every remedy and its fate, in table order, for wide pages.
fn remedies(tune: &TuneRecord) -> Option<Table> {
    let row = |of: &RemedyRecord| -> Vec<Cell> {
        vec![
            of.id.as_str().into(),
            FATES.iter().find(|(fate, ..)| *fate == of.fate).map_or(NONE, |(_, word, _)| *word).into(),
            or_dash(shell_words(&of.options)),
            mib(of.gain_bytes_max.map(|bytes| bytes as f64)),
            mib(of.saved_bytes),
            change(of.cpu_ratio).into(),
            or_dash(of.why.clone()),
            of.what.as_str().into(),
            price_words(of.price).into(),
        ]
    };
    let head = ["remedy", "fate", "set", "at most", "saved", "CPU per request", "why", "what it does", "cost"];
    let seen = FATES.iter().filter(|(fate, ..)| tune.remedies.iter().any(|of| of.fate == *fate));
    let fates: Vec<String> = seen.map(|(_, word, meaning)| format!("{word}: {meaning}")).collect();
    let notes = [
        format!("{}.", fates.join("; ")),
        "at most: an upper bound from the account before tuning. saved: measured in the search, together with the \
         other settings of that trial; not confirmed on its own."
            .to_owned(),
    ];
    Table::new("every remedy, MiB", head, tune.remedies.iter().map(row)).worded(3, 3).noted(notes).filled()
}

// ---- Memory against CPU ----

/// The least memory at each price; `None` for a front of one setting.
fn front(tune: &TuneRecord) -> Option<Part> {
    if tune.front.len() < 2 {
        return None;
    }
    let as_is = tune.as_is.as_ref().and_then(|of| of.bytes);
    let fact = |of: &SettingRecord| {
        let label = match (of.remedies.is_empty(), of.cpu_ratio) {
            (true, _) => AS_IS.to_owned(),
            (false, Some(ratio)) => change(Some(ratio)),
            (false, None) => dash(),
        };
        (label, setting_text(of, as_is, tune))
    };
    let facts = Part::Facts(tune.front.iter().map(fact).collect());
    let title = "lowest memory at each CPU cost per request";
    Some(Part::under(title, [facts, Part::Text(NO_PROOF.to_owned())]))
}

/// `1000.2 MiB, 412.8 MiB less: MALLOC_ARENA_MAX=1 -Xmx128m (the answer)`.
fn setting_text(of: &SettingRecord, as_is: Option<f64>, tune: &TuneRecord) -> String {
    let mut text = shown(Unit::Bytes, of.bytes);
    if of.remedies.is_empty() {
        return text;
    }
    if let (Some(bytes), Some(before)) = (of.bytes, as_is) {
        let (less, word) = if bytes > before { (bytes - before, "more") } else { (before - bytes, "less") };
        text.push_str(&format!(", {} {word}", shown(Unit::Bytes, Some(less))));
    }
    text.push_str(&format!(": {}", beginning(&shell_words(&of.options), OPTIONS_CHARS)));
    if of.options == tune.answer {
        text.push_str(" (the answer)");
    }
    text
}

// ---- How it was found ----

fn how_heading(outcome: TuneOutcome) -> &'static str {
    match outcome {
        TuneOutcome::Proved | TuneOutcome::Unpriced => "how it was found",
        TuneOutcome::Planned => "request",
        TuneOutcome::NothingProved | TuneOutcome::NotHeld | TuneOutcome::GivenUp => "request",
    }
}

/// The request, unconfirmed parts, noise, and the time and trials used.
fn method(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    facts.add("objective", objective_words(tune.objective).1.to_owned());
    let millicores = tune.price_cpus.map(|cpus| format!(" ({:.0} millicores at this load)", cpus * 1000.0));
    let share = percent(tune.price);
    facts.add("cost limit", format!("at most {share} more CPU per request{}", millicores.unwrap_or_default()));
    facts.add("target", (!tune.target.is_empty()).then(|| tune.target.join(", ")));
    if !tune.rates.is_empty() {
        let rate = |of: &PhaseRate| format!("{} {}/s", of.phase, per_second(of.rate_per_s));
        let rates: Vec<String> = tune.rates.iter().map(rate).collect();
        facts.add("load", format!("{} (a constant rate instead of a closed model)", rates.join(", ")));
    }
    let refuted = tune.confirmations.iter().filter(|of| !of.confirmed).map(|of| {
        let ids: Vec<String> = of.remedies.iter().map(|id| shortened_id(id)).collect();
        let blocks = several(u64::from(of.blocks), "block");
        let why = if of.why.is_empty() { String::new() } else { format!(": {}", beginning(&of.why, WHY_CHARS)) };
        format!("{}, after {blocks}{why}", ids.join(", "))
    });
    facts.list("rejected", refuted);
    let noise = tune.noise.map(|noise| {
        let cpu = noise.cpu.map_or(String::new(), |cpu| format!(" and {} CPU per request", percent(cpu)));
        let size = shown(Unit::Bytes, Some(noise.bytes));
        format!("fresh processes vary by {size}{cpu} (standard deviation per trial)")
    });
    facts.add("noise", noise);
    let lines = tune.lines.as_ref().filter(|_| tune.outcome != TuneOutcome::Proved);
    facts.add("limit", lines.and_then(limits));
    let spent = format!("{} in {}", several(u64::from(tune.trials), "trial"), span(tune.seconds));
    let apart = if tune.lines.is_some() { ", not counting the limit searches" } else { "" };
    facts.add("spent", format!("{spent}{apart}"));
    facts.0
}

/// The settings measured on the way; remedy IDs are truncated to `ids_chars`.
fn path(tune: &TuneRecord, ids_chars: usize) -> Option<Table> {
    let row = |(at, of): (usize, &SettingRecord)| -> Vec<Cell> {
        let stage = if of.stage == TuneStage::Baseline { AS_IS.to_owned() } else { word_of(of.stage) };
        let ids = if of.remedies.is_empty() { AS_IS.to_owned() } else { of.remedies.join(", ") };
        vec![
            (at + 1).to_string().into(),
            stage.into(),
            beginning(&ids, ids_chars).into(),
            of.trials.to_string().into(),
            mib(of.bytes),
            change(of.cpu_ratio).into(),
            if of.holds { "yes" } else { "no" }.into(),
        ]
    };
    let head = ["#", "for", "with", "trials", "MiB", "CPU", "met"];
    let what = objective_words(tune.objective).0;
    let title = format!("search path, {what} and CPU per request relative to {AS_IS}");
    Table::new(title, head, tune.path.iter().enumerate().map(row)).worded(3, 1).filled()
}

/// The table of [`path`] with settings and missed targets, for wide pages.
fn path_told(tune: &TuneRecord) -> Option<Table> {
    let mut table = path(tune, usize::MAX)?;
    table.head.extend(["set", "missed"].map(str::to_owned));
    for (row, of) in table.rows.iter_mut().zip(&tune.path) {
        row.extend([or_dash(shell_words(&of.options)), or_dash(of.why.join("; "))]);
    }
    table.words += 2;
    Some(table)
}

#[cfg(test)]
#[path = "tune_tests.rs"]
mod tests;
