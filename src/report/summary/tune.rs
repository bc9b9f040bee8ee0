//! What to say of a tuning: the answer, what it changes, what became of every remedy, and how the answer was come by.
//! Says what the record says and judges nothing.

use super::block::{Block, Depth, Table};
use super::cells::{NONE, beginning};
use super::comparison;
use super::doubts::{doubts, doubts_of_trials};
use super::facts::{repeatable_facts, trial_facts};
use super::find::{percent, span};
use super::trial::of_trial;
use super::tune_answer::{
    AS_IS, answer, as_is_trial, cost_words, gains_told, limits, objective_words, of_a_request, told,
};
use super::tune_request::request;
use crate::owner::label;
use crate::record::{
    ComparisonRecord, Document, Fate, ImageRecord, OwnerGain, PhaseRate, PriceClass, RemedyRecord, SettingRecord,
    TuneOutcome, TuneRecord, TuneStage, Unit, each_once,
};
use crate::report::quantity::{Estimate, change, shown};
use crate::report::snippets::{self, Snippet};
use crate::report::words::verdict_word;
use crate::scenario::shell_words;
use crate::units::{MIB, per_second, several};

/// Owners on a screen.
const OWNERS_MAX: usize = 6;
/// Changes of owners that print as 0.0 are of none.
const OWNER_BYTES_MIN: f64 = 0.05 * MIB as f64;
/// Longest text of a remedy's options where they stand beside other words.
const OPTIONS_CHARS: usize = 160;
/// Longest reason on a screen: a message of a JVM, but not its whole output.
const WHY_CHARS: usize = 400;
/// Names that leave room for numbers in 80 columns.
const METRIC_CHARS: usize = 16;
const IDS_CHARS: usize = 27;

/// Of what the search weighed.
pub(in crate::report) const NO_PROOF: &str = "By the search's own trials, which chose among them: that is no proof.";

/// What to say of a tuning, in place of what is said of trials.
pub(super) fn blocks(document: &Document, tune: &TuneRecord, depth: Depth) -> Vec<Block> {
    let (conditions, trials) = (&document.conditions, &document.trials);
    let is_answered = is_answered(tune.outcome);
    let mut failing: Vec<String> = (!is_answered).then(|| told(tune)).into_iter().collect();
    failing.extend(comparison::failing(&document.budgets));
    let mut blocks = vec![Block::Failing(failing)];
    let what = if tune.outcome == TuneOutcome::Planned { "a plan to tune it" } else { "tuned" };
    blocks.push(Block::Heading(format!("{}, {what} by loadline {}", conditions.scenario, conditions.loadline)));
    let answer = answer(tune);
    if is_answered && answer.is_empty() {
        blocks.push(Block::Text(told(tune)));
    }
    blocks.push(Block::Facts(answer));
    blocks.extend(gains(tune).map(Block::Table));
    blocks.extend(owners(tune, OWNERS_MAX).map(Block::Table));
    blocks.extend(headed("remedies", fates(tune)));
    blocks.extend(front(tune));
    blocks.extend(headed(how_heading(tune.outcome), method(tune)));
    if depth.details {
        blocks.extend(path(tune, IDS_CHARS).map(Block::Table));
    }
    if let Some(trial) = as_is_trial(trials) {
        let heading = format!("{AS_IS} (trial {})", trial.index + 1);
        blocks.extend(headed(&heading, trial_facts(trial)));
    }
    blocks.extend(headed("conditions", repeatable_facts(conditions)));
    if depth.each {
        trials.iter().for_each(|trial| blocks.extend(of_trial(trial, true)));
    }
    let literal = |Snippet { name, lines }: Snippet| Block::Literal { title: name, lines };
    blocks.extend(snippets_of(document, tune).into_iter().map(literal));
    if let Some(text) = request(document, tune) {
        blocks.extend([Block::Heading("for a change request".to_owned()), Block::Text(text.join(" "))]);
    }
    blocks.extend(comparison::budgets(&document.budgets));
    blocks.extend(all_doubts(document, tune));
    blocks
}

/// The doubts of the answer, then those of the document and of its trials.
fn all_doubts(document: &Document, tune: &TuneRecord) -> Vec<Block> {
    let mut all = document.doubts.clone();
    all.extend(doubts_of_trials(&document.trials));
    let mut found = doubts(&all);
    if !tune.doubts.is_empty() {
        let own: Vec<(String, String)> = tune.doubts.iter().map(|text| (text.clone(), String::new())).collect();
        match found.last_mut() {
            Some(Block::Doubts(list)) => drop(list.splice(0..0, own)),
            _ => found = vec![Block::Heading("doubts".to_owned()), Block::Doubts(own)],
        }
    }
    found
}

/// What to paste, for each kind of host.
pub(in crate::report) fn snippets_of(document: &Document, tune: &TuneRecord) -> Vec<Snippet> {
    let trial = as_is_trial(&document.trials);
    let command: &[String] = trial.map_or(&[], |trial| &trial.command);
    let image: Option<&ImageRecord> = trial.and_then(|trial| trial.image.as_ref());
    snippets::of_tuning(tune, command, image)
}

/// Whether a tuning said what it was asked.
fn is_answered(outcome: TuneOutcome) -> bool {
    match outcome {
        TuneOutcome::Proved | TuneOutcome::Planned => true,
        TuneOutcome::NothingProved | TuneOutcome::NotHeld | TuneOutcome::GivenUp => false,
    }
}

/// Facts under a heading; nothing where there are none.
fn headed(heading: &str, facts: Vec<(String, String)>) -> Vec<Block> {
    match facts.is_empty() {
        true => Vec::new(),
        false => vec![Block::Heading(heading.to_owned()), Block::Facts(facts)],
    }
}

// ---- What it changes ----

/// Every metric of the confirmation; `None` where nothing was proved.
pub(in crate::report) fn gains(tune: &TuneRecord) -> Option<Table> {
    let all = gains_told(tune);
    let first = all.first()?;
    let row = |(at, gain): (usize, &&ComparisonRecord)| {
        let words = cost_words(gain, &all);
        let gain = &of_a_request(gain);
        let judged = Estimate::judged(gain);
        let what = if at == 0 { objective_words(tune.objective).0.to_owned() } else { words };
        let [before, after] = [gain.baseline_median, gain.candidate_median].map(|value| shown(gain.unit, Some(value)));
        vec![
            verdict_word(gain.verdict).to_owned(),
            beginning(&what, METRIC_CHARS),
            before,
            after,
            judged.centre.to_string(),
            judged.interval(),
        ]
    };
    let together = match first.confidence_each > first.confidence {
        true => format!(" ({} each)", percent(first.confidence_each)),
        false => String::new(),
    };
    let note = format!(
        "Medians; intervals of the difference within blocks, which hold together with {} confidence{together}.",
        percent(first.confidence)
    );
    let head = ["verdict", "metric", AS_IS, "tuned", "difference", "interval"];
    let table = Table::new("what it changes, by the confirmation alone", head, all.iter().enumerate().map(row));
    Some(table.worded(2, 0).noted([note]))
}

/// Who holds less, largest change first; what the rest hold in one row. `None` where nothing was proved.
pub(in crate::report) fn owners(tune: &TuneRecord, most: usize) -> Option<Table> {
    let moved = |gain: &OwnerGain| (gain.before_bytes - gain.after_bytes).abs();
    let mut sorted: Vec<&OwnerGain> = tune.owners.iter().collect();
    sorted.sort_by(|left, right| moved(right).total_cmp(&moved(left)));
    let changed = sorted.iter().take(most).take_while(|gain| moved(gain) >= OWNER_BYTES_MIN).count();
    let (shown_ones, rest) = sorted.split_at(changed);
    let row = |name: String, before: f64, after: f64| {
        vec![name, mib(Some(before)), mib(Some(after)), signed_mib(after - before)]
    };
    let named = |gain: &&OwnerGain| row(beginning(label(&gain.owner), IDS_CHARS), gain.before_bytes, gain.after_bytes);
    let mut rows: Vec<Vec<String>> = shown_ones.iter().map(named).collect();
    if !rest.is_empty() {
        let sum = |of: fn(&OwnerGain) -> f64| rest.iter().map(|gain| of(gain)).sum::<f64>();
        let name = format!("the other {}", several(rest.len() as u64, "owner"));
        rows.push(row(name, sum(|gain| gain.before_bytes), sum(|gain| gain.after_bytes)));
    }
    (!rows.is_empty()).then(|| Table::new("by owner, MiB", ["owner", AS_IS, "tuned", "change"], rows))
}

/// MiB without their unit; a dash for what is no number.
fn mib(bytes: Option<f64>) -> String {
    let known = bytes.filter(|bytes| bytes.is_finite());
    known.map_or_else(|| NONE.to_owned(), |bytes| format!("{:.1}", bytes / MIB as f64))
}

/// [`mib`] of a difference, with its sign unless it prints as none.
fn signed_mib(bytes: f64) -> String {
    match mib(Some(bytes)) {
        text if text == mib(Some(0.0)) || text == mib(Some(-0.0)) => mib(Some(0.0)),
        text if bytes > 0.0 && bytes.is_finite() => format!("+{text}"),
        text => text,
    }
}

// ---- The remedies ----

/// Every fate in the order in which they are told, with its word and what it means.
pub(in crate::report) const FATES: [(Fate, &str, &str); 10] = [
    (Fate::Kept, "kept", "it is part of the answer"),
    (Fate::NotConfirmed, "unproved", "it was part of a set that was not confirmed"),
    (Fate::TooCostly, "too costly", "it saves memory, at more than the price"),
    (Fate::NotMissed, "not missed", "it saved something alone, and nothing beside the others"),
    (Fate::NoEffect, "no effect", "it was tried and saved less than what matters"),
    (Fate::Harmful, "harmful", "memory grew, or the target broke"),
    (Fate::Refused, "refused", "the server did not start with it"),
    (Fate::NotInForce, "ignored", "the process did not have it, although it was set"),
    (Fate::Planned, "to try", "it would be tried next"),
    (Fate::NotTried, "not tried", "it was not tried"),
];

/// The word for a fate.
pub(in crate::report) fn fate_word(fate: Fate) -> &'static str {
    FATES.iter().find(|of| of.0 == fate).map_or(NONE, |of| of.1)
}

/// What a remedy may cost, in words.
pub(in crate::report) fn price_words(price: PriceClass) -> &'static str {
    match price {
        PriceClass::Free => "free",
        PriceClass::Cpu => "may cost CPU",
        PriceClass::Program => "changes the program",
    }
}

/// What became of every remedy: a fact for each fate, those with the same why in one line.
fn fates(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    for (fate, word, _) in FATES {
        let lines = match fate {
            Fate::NotTried => not_tried(tune),
            Fate::Planned => ranked(tune, fate).into_iter().map(planned_text).collect(),
            _ => ranked(tune, fate).into_iter().map(|of| remedy_text(of, fate)).collect::<Vec<_>>(),
        };
        let word = match (fate, tune.outcome) {
            (Fate::NotTried, TuneOutcome::Planned) => "left out",
            _ => word,
        };
        let labels = std::iter::once(word).chain(std::iter::repeat(""));
        facts.extend(labels.zip(lines).map(|(label, line)| (label.to_owned(), line)));
    }
    facts
}

/// The remedies of a fate: what could be saved first, else what was saved, the largest first.
fn ranked(tune: &TuneRecord, fate: Fate) -> Vec<&RemedyRecord> {
    let weight = |of: &RemedyRecord| match fate {
        Fate::Planned => of.gain_bytes_max.map_or(-1.0, |bytes| bytes as f64),
        _ => of.saved_bytes.filter(|bytes| bytes.is_finite()).map_or(-1.0, f64::abs),
    };
    let mut found: Vec<&RemedyRecord> = tune.remedies.iter().filter(|of| of.fate == fate).collect();
    found.sort_by(|left, right| weight(right).total_cmp(&weight(left)));
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

/// A kept remedy says what it saved; any other one says why, which has its numbers.
fn remedy_text(of: &RemedyRecord, fate: Fate) -> String {
    let numbers = numbers(of);
    let why = match fate {
        Fate::Kept if !numbers.is_empty() => numbers,
        _ if of.why.is_empty() => numbers,
        _ => beginning(&of.why, WHY_CHARS),
    };
    if why.is_empty() { named(of) } else { format!("{}: {why}", named(of)) }
}

/// `saved 95.4 MiB, CPU per request -0.1 %`.
fn numbers(of: &RemedyRecord) -> String {
    let saved = of.saved_bytes.map(|bytes| {
        let size = shown(Unit::Bytes, Some(bytes.abs()));
        if bytes < 0.0 { format!("{size} more") } else { format!("saved {size}") }
    });
    let cpu = of.cpu_ratio.map(|ratio| format!("CPU per request {}", change(Some(ratio))));
    saved.into_iter().chain(cpu).collect::<Vec<_>>().join(", ")
}

fn planned_text(of: &RemedyRecord) -> String {
    let bound = of.gain_bytes_max.map_or_else(
        || "no bound is known".to_owned(),
        |bytes| format!("{} at most", shown(Unit::Bytes, Some(bytes as f64))),
    );
    let what = if of.what.is_empty() { String::new() } else { format!("{}; ", of.what) };
    format!("{}: {what}{bound}, {}", named(of), price_words(of.price))
}

/// Every remedy and what became of it, in the order of the table, for a page with room.
pub(in crate::report) fn remedies(tune: &TuneRecord) -> Option<Table> {
    let row = |of: &RemedyRecord| {
        let dash = |text: String| if text.is_empty() { NONE.to_owned() } else { text };
        vec![
            of.id.clone(),
            fate_word(of.fate).to_owned(),
            dash(shell_words(&of.options)),
            mib(of.gain_bytes_max.map(|bytes| bytes as f64)),
            mib(of.saved_bytes),
            change(of.cpu_ratio),
            dash(of.why.clone()),
            of.what.clone(),
            price_words(of.price).to_owned(),
        ]
    };
    let head = ["remedy", "fate", "set", "at most", "saved", "CPU per request", "why", "what it does", "price"];
    let seen = FATES.iter().filter(|(fate, ..)| tune.remedies.iter().any(|of| of.fate == *fate));
    let fates: Vec<String> = seen.map(|(_, word, meaning)| format!("{word}: {meaning}")).collect();
    let notes = [
        format!("{}.", fates.join("; ")),
        "at most: by the account as it is. saved: beside the others of its time, by the owners that it moves; from \
         the search, so not proved by itself."
            .to_owned(),
    ];
    let table = || Table::new("Remedies, MiB", head, tune.remedies.iter().map(row)).worded(3, 3).noted(notes);
    (!tune.remedies.is_empty()).then(table)
}

// ---- Memory against CPU ----

/// The least memory at each price. A front of one setting is none.
fn front(tune: &TuneRecord) -> Vec<Block> {
    if tune.front.len() < 2 {
        return Vec::new();
    }
    let as_is = tune.as_is.as_ref().and_then(|of| of.bytes);
    let fact = |of: &SettingRecord| {
        let label = match (of.remedies.is_empty(), of.cpu_ratio) {
            (true, _) => AS_IS.to_owned(),
            (false, Some(ratio)) => change(Some(ratio)),
            (false, None) => NONE.to_owned(),
        };
        (label, setting_text(of, as_is, tune))
    };
    let mut blocks = headed("least memory at each price, in CPU per request", tune.front.iter().map(fact).collect());
    blocks.push(Block::Text(NO_PROOF.to_owned()));
    blocks
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

// ---- How it was come by ----

fn how_heading(outcome: TuneOutcome) -> &'static str {
    match outcome {
        TuneOutcome::Proved => "how it was found",
        TuneOutcome::Planned => "what is asked",
        TuneOutcome::NothingProved | TuneOutcome::NotHeld | TuneOutcome::GivenUp => "what was asked",
    }
}

/// What was asked, what was not confirmed, how noisy it is, what was spent.
pub(in crate::report) fn method(tune: &TuneRecord) -> Vec<(String, String)> {
    let (_, objective) = objective_words(tune.objective);
    let mut facts = vec![("objective".to_owned(), objective.to_owned())];
    let mut fact = |label: &str, text: String| facts.push((label.to_owned(), text));
    fact("price", format!("at most {} of CPU per request", percent(tune.price)));
    if !tune.target.is_empty() {
        fact("target", tune.target.join(", "));
    }
    if !tune.rates.is_empty() {
        let rate = |of: &PhaseRate| format!("{} {}/s", of.phase, per_second(of.rate_per_s));
        let rates: Vec<String> = tune.rates.iter().map(rate).collect();
        fact("load", format!("{}, a constant rate in place of a closed model", rates.join(", ")));
    }
    for (at, of) in tune.confirmations.iter().filter(|of| !of.confirmed).enumerate() {
        let ids: Vec<String> = of.remedies.iter().map(|id| shortened_id(id)).collect();
        let blocks = several(u64::from(of.blocks), "block");
        let why = if of.why.is_empty() { String::new() } else { format!(": {}", beginning(&of.why, WHY_CHARS)) };
        fact(if at == 0 { "refuted" } else { "" }, format!("{}, after {blocks}{why}", ids.join(", ")));
    }
    if let Some(noise) = tune.noise {
        let cpu = noise.cpu.map_or(String::new(), |cpu| format!(" and {} of CPU per request", percent(cpu)));
        let size = shown(Unit::Bytes, Some(noise.bytes));
        fact("noise", format!("fresh processes differ by {size}{cpu} (standard deviation of a trial)"));
    }
    if tune.outcome != TuneOutcome::Proved
        && let Some(text) = tune.lines.as_ref().and_then(limits)
    {
        fact("limit", text);
    }
    let spent = format!("{}, {}", several(u64::from(tune.trials), "trial"), span(tune.seconds));
    let apart = if tune.lines.is_some() { ", those of the limits apart" } else { "" };
    fact("spent", format!("{spent}{apart}"));
    facts
}

/// The word for a part of a tuning.
pub(in crate::report) fn stage_words(stage: TuneStage) -> &'static str {
    match stage {
        TuneStage::Reference => "reference",
        TuneStage::Baseline => AS_IS,
        TuneStage::Bundle => "bundle",
        TuneStage::LeaveOut => "leave out",
        TuneStage::Race => "race",
        TuneStage::Training => "training",
        TuneStage::Confirmation => "confirmation",
    }
}

/// What was weighed on the way; ids of remedies are cut at so many characters.
pub(in crate::report) fn path(tune: &TuneRecord, ids_chars: usize) -> Option<Table> {
    let row = |(at, of): (usize, &SettingRecord)| {
        let ids = if of.remedies.is_empty() { AS_IS.to_owned() } else { of.remedies.join(", ") };
        vec![
            (at + 1).to_string(),
            stage_words(of.stage).to_owned(),
            beginning(&ids, ids_chars),
            of.trials.to_string(),
            mib(of.bytes),
            change(of.cpu_ratio),
            if of.holds { "yes" } else { "no" }.to_owned(),
        ]
    };
    let head = ["#", "for", "with", "trials", "MiB", "CPU", "held"];
    let what = objective_words(tune.objective).0;
    let title = format!("path of the search, {what} and CPU per request against {AS_IS}");
    let table = || Table::new(title, head, tune.path.iter().enumerate().map(row)).worded(3, 1);
    (!tune.path.is_empty()).then(table)
}

/// The table of [`path`] with what is set and what was missed, for a page with room.
pub(in crate::report) fn path_told(tune: &TuneRecord) -> Option<Table> {
    let mut table = path(tune, usize::MAX)?;
    table.head.extend(["set", "missed"].map(str::to_owned));
    for (row, of) in table.rows.iter_mut().zip(&tune.path) {
        let dash = |text: String| if text.is_empty() { NONE.to_owned() } else { text };
        row.extend([dash(shell_words(&of.options)), dash(of.why.join("; "))]);
    }
    table.words += 2;
    Some(table)
}

#[cfg(test)]
#[path = "tune_tests.rs"]
mod tests;
