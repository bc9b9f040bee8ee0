//! The account from mark to mark: a table, a chart, what grew, what was returned, and checks of predictions.

use super::cells::{account_of, mib, rounds_to_none, sum, weight_word};
use super::own;
use crate::comparison::told_bytes;
use crate::owner::{Group, Owner, is_heap, label, place};
use crate::page::{Bar, Bars, Part};
use crate::record::{AccountRecord, Trial, WouldReturn, each_once};
use crate::scenario::MarkPoint;
use crate::table::Table;
use crate::units::{Bytes, Growth};
use crate::words::dash;
use loadline_base::order::Order as _;
use std::borrow::Cow;

/// Marks after `start` and `loaded`, with the events that lead to them. `warm` is omitted to fit 80 columns.
pub(super) const LATER: [(&str, &str); 3] = [
    (MarkPoint::Rested.word(), "while idle"),
    (MarkPoint::Collected.word(), "after a full GC"),
    (MarkPoint::Trimmed.word(), "after a trim"),
];
/// The mark of an earlier account.
const THEN: &str = "then";
/// Maximum number of marks in the table if the scenario names its own, to fit 80 columns.
const COLUMNS_MAX: usize = 6;
/// Maximum number of owners named in the sentence about growth.
const GROWN: usize = 4;

/// A trial's accounts in mark order, and the word for their size. With several processes, `rss_bytes` is PSS. If the
/// scenario has its own marks, these replace the usual ones, except for the first and those after a collection.
struct Journey<'a>(Vec<(&'a str, Cow<'a, AccountRecord>)>, &'static str);

/// The table and the chart; empty if no mark has an account.
pub(super) fn journey(trial: &Trial) -> Vec<Part> {
    let journey = Journey::of(trial);
    if journey.0.is_empty() {
        return Vec::new();
    }
    let table = journey.table().noted(growth_notes(trial));
    vec![Part::Table(table), Part::Bars(journey.bars())]
}

/// Two accounts of one process: a table whose last column is the change, and a sentence about the growth.
pub(super) fn between(then: &AccountRecord, now: &AccountRecord) -> (Table, String) {
    let journey = Journey(vec![(THEN, Cow::Borrowed(then)), ("now", Cow::Borrowed(now))], "RSS");
    let cells = |(label, held): (String, Vec<Option<u64>>)| {
        let change = match held.as_slice() {
            [Some(then), Some(now)] => Growth::between(Bytes(*then), Bytes(*now)).to_string(),
            _ => dash(),
        };
        std::iter::once(label).chain(held.into_iter().map(mib)).chain([change]).collect::<Vec<String>>()
    };
    let rows = journey.rows().into_iter().map(cells);
    let table = Table::new("account, RSS MiB", ["owner", "then", "now", "change"], rows);
    (table, journey.grew((THEN, then), ("now", now)))
}

/// Sentences on the growth from mark to mark, and on the accuracy of predictions.
pub(crate) fn growth_notes(trial: &Trial) -> Vec<String> {
    Journey::of(trial).what_grew().into_iter().chain(predictions(trial)).collect()
}

/// Whether the journey reports what the load added, so that no other part needs to.
pub(super) fn tells_growth(trial: &Trial) -> bool {
    Journey::of(trial).what_grew().is_some()
}

impl<'a> Journey<'a> {
    fn of(trial: &'a Trial) -> Self {
        let named: Vec<&str> = match trial.marks.iter().any(|mark| own::is_own(&mark.name)) {
            true => {
                let between = [MarkPoint::Warm, MarkPoint::Loaded, MarkPoint::Rested].map(MarkPoint::word);
                let names = trial.marks.iter().map(|mark| mark.name.as_str());
                own::ends(names.filter(|name| !between.contains(name)).collect(), COLUMNS_MAX)
            }
            false => {
                let first = [MarkPoint::Start, MarkPoint::Loaded].map(MarkPoint::word);
                first.into_iter().chain(LATER.map(|(name, _)| name)).collect()
            }
        };
        let found = |name: &'a str| {
            let mark = trial.mark(name)?;
            let account = account_of(mark)?;
            Some((name, if mark.processes.is_empty() { Cow::Borrowed(account) } else { Cow::Owned(divided(account)) }))
        };
        Self(named.into_iter().filter_map(found).collect(), weight_word(trial))
    }

    /// The owners of all marks in account order, `unexplained` last.
    fn names(&self) -> Vec<&str> {
        let all = self.0.iter().flat_map(|(_, account)| &account.owners).map(|owner| owner.name.as_str());
        let mut names = each_once(all.filter(|name| *name != Owner::Unexplained.name()));
        names.order_by_key(|name| place(name));
        names.push(Owner::Unexplained.name());
        names
    }

    /// Table rows with the bytes in each account: owners, one row for all that would print as 0.0, and the total.
    fn rows(&self) -> Vec<(String, Vec<Option<u64>>)> {
        let line = |label: String, cell: &dyn Fn(&AccountRecord) -> Option<u64>| {
            (label, self.0.iter().map(|(_, account)| cell(account)).collect())
        };
        let is_small = |name: &&str| {
            *name != Owner::Unexplained.name()
                && self.0.iter().all(|(_, account)| rounds_to_none(told_bytes(account, name).unwrap_or(0)))
        };
        let (small, shown): (Vec<&str>, Vec<&str>) = self.names().into_iter().partition(is_small);
        let mut rows: Vec<(String, Vec<Option<u64>>)> =
            shown.iter().map(|name| line(label(name).to_owned(), &|account| told_bytes(account, name))).collect();
        let together = |account: &AccountRecord| Some(sum(small.iter().filter_map(|name| told_bytes(account, name))));
        let name = match small.as_slice() {
            [] => None,
            [one] => Some(label(one).to_owned()),
            several => Some(format!("{} smaller owners", several.len())),
        };
        let before_unexplained = rows.len() - 1;
        rows.splice(before_unexplained..before_unexplained, name.map(|name| line(name, &together)));
        rows.push(line(self.1.to_owned(), &|account| Some(account.total_bytes)));
        rows
    }

    fn table(&self) -> Table {
        let cells = |(label, held): (String, Vec<Option<u64>>)| {
            std::iter::once(label).chain(held.into_iter().map(mib)).collect::<Vec<String>>()
        };
        let head = std::iter::once("owner").chain(self.0.iter().map(|(name, _)| *name));
        Table::new(format!("account, {} MiB", self.1), head, self.rows().into_iter().map(cells))
    }

    fn bars(&self) -> Bars {
        let parts = |account: &AccountRecord| {
            let of = |wanted| account.owners.iter().filter(move |owner| Group::of(&owner.name) == wanted);
            Group::ALL.iter().map(|(wanted, ..)| sum(of(*wanted).map(|owner| owner.rss_bytes))).collect()
        };
        let bar =
            |(name, account): &(&str, Cow<'_, AccountRecord>)| Bar { label: (*name).to_owned(), parts: parts(account) };
        Bars {
            title: format!("{} by owner, MiB", self.1),
            bars: self.0.iter().map(bar).collect(),
            legend: Group::ALL.iter().map(|(_, letter, words)| (*letter, (*words).to_owned())).collect(),
        }
    }

    /// The memory that the load added and its owners, then the change at each later mark.
    fn what_grew(&self) -> Option<String> {
        if self.0.iter().any(|(name, _)| own::is_own(name)) {
            return self.steps();
        }
        let at = |name: &str| self.0.iter().find(|(mark, _)| *mark == name).map(|(_, account)| account.as_ref());
        let (start, loaded) = (at(MarkPoint::Start.word())?, at(MarkPoint::Loaded.word())?);
        let mut text = self.grew((MarkPoint::Start.word(), start), (MarkPoint::Loaded.word(), loaded));
        let mut before = loaded;
        let mut later = Vec::new();
        for (name, what) in LATER {
            if let Some(after) = at(name) {
                let (growth, who) = step(before, after);
                later.push(format!("by {growth} {what}{who}"));
                before = after;
            }
        }
        if !later.is_empty() {
            text.push_str(&format!(" {} then changed {}.", self.1, later.join(", then ")));
        }
        Some(text)
    }

    /// The change between two accounts: the total, the owners that changed, and the rest.
    fn grew(&self, (from, before): (&str, &AccountRecord), (to, after): (&str, &AccountRecord)) -> String {
        let total = Growth::between(Bytes(before.total_bytes), Bytes(after.total_bytes));
        let changed = match is_shown(total) {
            false => "hardly changed".to_owned(),
            true => {
                let verb = if total.0 > 0 { "grew" } else { "shrank" };
                format!("{verb} by {}", Bytes(total.0.unsigned_abs()))
            }
        };
        let grown: Vec<(&str, Growth)> = changes(before, after).into_iter().take(GROWN).collect();
        let rest = Growth(grown.iter().fold(total.0, |rest, (_, growth)| rest.saturating_sub(growth.0)));
        let mut parts: Vec<String> = grown.iter().map(|(name, growth)| format!("{name} {growth}")).collect();
        if is_shown(rest) || parts.is_empty() && is_shown(total) {
            parts.push(format!("everything else {rest}"));
        }
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        let span = if from == THEN { "Since the earlier account,".to_owned() } else { format!("From {from} to {to},") };
        format!("{span} {} {changed}{parts}.", self.1)
    }

    /// The changes from mark to mark, each with the owner that changed most.
    fn steps(&self) -> Option<String> {
        let (first, _) = self.0.first()?;
        let step = |pair: &[(&str, Cow<'_, AccountRecord>)]| {
            let [(_, before), (name, after)] = pair else { return None };
            let (growth, who) = step(before, after);
            Some(format!("{growth} at {name}{who}"))
        };
        let steps: Vec<String> = self.0.windows(2).filter_map(step).collect();
        (!steps.is_empty()).then(|| format!("After {first}, {} changed by {}.", self.1, steps.join(", ")))
    }
}

/// The account with PSS instead of RSS.
fn divided(account: &AccountRecord) -> AccountRecord {
    let mut account = account.clone();
    account.total_bytes = account.pss_bytes;
    for owner in &mut account.owners {
        owner.rss_bytes = owner.pss_bytes;
        if owner.name == Owner::Unexplained.name() {
            account.unexplained_bytes = owner.pss_bytes;
        }
    }
    account
}

/// Whether a change prints as nonzero.
fn is_shown(growth: Growth) -> bool {
    !rounds_to_none(growth.0.unsigned_abs())
}

/// The change of the total, and in parentheses the owner that changed most in that direction.
fn step(before: &AccountRecord, after: &AccountRecord) -> (Growth, String) {
    let growth = Growth::between(Bytes(before.total_bytes), Bytes(after.total_bytes));
    let most = changes(before, after).into_iter().find(|(_, change)| (change.0 < 0) == (growth.0 < 0));
    let most = most.filter(|_| is_shown(growth));
    (growth, most.map_or(String::new(), |(owner, change)| format!(" ({owner} {change})")))
}

/// Owners by change, largest first; the Java heap counts as one owner, because marks split it differently.
fn changes<'a>(before: &'a AccountRecord, after: &'a AccountRecord) -> Vec<(&'a str, Growth)> {
    let name_of = |name: &'a str| label(if is_heap(name) { Owner::JavaHeap.name() } else { name });
    let mut names: Vec<&str> = before.owners.iter().chain(&after.owners).map(|owner| name_of(&owner.name)).collect();
    names.sort_unstable();
    names.dedup();
    let holds = |account: &'a AccountRecord, name: &str| {
        Bytes(sum(account.owners.iter().filter(|owner| name_of(&owner.name) == name).map(|owner| owner.rss_bytes)))
    };
    let mut found: Vec<(&str, Growth)> =
        names.into_iter().map(|name| (name, Growth::between(holds(before, name), holds(after, name)))).collect();
    found.retain(|(_, growth)| is_shown(*growth));
    found.largest_first(|(_, growth)| growth.0.unsigned_abs());
    found
}

/// Compares predicted and actual returned bytes for the full collection and the trim. Also explains a missing
/// prediction for the collection.
fn predictions(trial: &Trial) -> Vec<String> {
    let check = |name: &str, what: &str, predicted: fn(&WouldReturn) -> Option<String>| {
        let at = trial.marks.iter().position(|mark| mark.name == name)?;
        let after = account_of(&trial.marks[at])?;
        let before = trial.marks[..at].last()?.account.as_ref()?;
        let measured = Growth::between(Bytes(before.total_bytes), Bytes(after.total_bytes));
        let predicted = predicted(&before.would_return)?;
        Some(format!("Effect of a {what} on RSS, in MiB: predicted {predicted}, measured {measured}."))
    };
    let gc = check(MarkPoint::Collected.word(), "full GC", gc_prediction);
    let trim = check(MarkPoint::Trimmed.word(), "trim", |would| {
        Some(Growth::between(Bytes(would.trim_bytes?), Bytes(0)).to_string())
    });
    gc.into_iter().chain(trim).collect()
}

/// The prediction for a full collection; `None` in older records.
fn gc_prediction(would: &WouldReturn) -> Option<String> {
    Some(match (would.gc_bytes, would.gc_grown_bytes) {
        (Some(0), Some(grown)) if !rounds_to_none(grown) => Growth::between(Bytes(0), Bytes(grown)).to_string(),
        (Some(bytes), _) => Growth::between(Bytes(bytes), Bytes(0)).to_string(),
        (None, _) if would.gc_reason.is_empty() => return None,
        (None, _) => format!("nothing ({})", would.gc_why),
    })
}

#[cfg(test)]
#[path = "journey_tests.rs"]
mod tests;
