//! Documents with several accounts: those of all JVMs on a machine, and two accounts of one JVM.

use crate::comparison::{self, Column};
use crate::doubt::{Comparing, Doubt};
use crate::error::{Error, Result};
use crate::record::{AccountDocument, AccountRecord, AccountsDocument, CHANGES_SCHEMA, ChangesDocument, DoubtRecord};
use crate::units::{growth, unix_s};

/// Sorts a machine's accounts by a column, and adds the sums.
pub fn ranked(mut document: AccountsDocument, by: Column) -> AccountsDocument {
    comparison::rank(&mut document.accounts, by);
    let sum = |of: fn(&AccountRecord) -> u64| {
        let accounts = document.accounts.iter().filter_map(|document| document.mark.account.as_ref());
        accounts.map(of).fold(0, u64::saturating_add)
    };
    let (pss_bytes, rss_bytes) = (sum(|account| account.pss_bytes), sum(|account| account.total_bytes));
    AccountsDocument { pss_bytes, rss_bytes, ..document }
}

/// The owner of memory that a JVM did not attribute.
const ANONYMOUS: &str = "anonymous";

/// Compares an account with an earlier one. From several earlier accounts, picks the one of the same process, or else
/// of the same pid. Errors: `Request` if there are several but none for this pid, or if the earlier one has no time;
/// `Machine` if this one has no owners.
pub fn changes(earlier: Vec<AccountDocument>, mut now: AccountDocument, command: String) -> Result<ChangesDocument> {
    let mut then = of_the_same(earlier, &now)?;
    if let (Some(before), Some(after)) = (&mut then.mark.account, &mut now.mark.account) {
        let is_split = |of: &AccountRecord| (of.heap_bytes() > 0, of.holds(ANONYMOUS) == 0);
        if is_split(before) != is_split(after) {
            let lacking = if is_split(after) == (true, true) { "earlier" } else { "later" };
            let what = format!(
                "the {lacking} account lacks the output of JVM commands, so the rows of the two accounts are not \
                         comparable"
            );
            return Err(Error::request(what).hint("compare two captures that both have `jcmd` output, or both lack it"));
        }
        comparison::unsplit_alike(before, after);
    }
    let seconds = unix_s(&now.taken).zip(unix_s(&then.taken)).map(|(now, then)| now.saturating_sub(then));
    let Some(seconds) = seconds else {
        let taken = then.taken.escape_debug();
        return Err(Error::request(format!("the earlier account was taken at `{taken}`, which is not a timestamp"))
            .hint("specify the output of `loadline account PID --json`"));
    };
    let (Some(before), Some(after)) = (&then.mark.account, &now.mark.account) else {
        return Err(Error::machine("an account without owners cannot be compared"));
    };
    let differences = differences(&then, &now);
    let mut parts = comparison::part_changes(before, after);
    if let (Some(before), Some(after)) = (&then.mark.loaders, &now.mark.loaders) {
        parts.extend(comparison::loader_changes(before, after));
    }
    if let (Some(before), Some(after)) = (&then.objects, &mut now.objects) {
        after.compare_with(before);
    }
    let doubt = (!differences.is_empty()).then_some(Doubt::from(Comparing::AnotherProcess { differences }));
    Ok(ChangesDocument {
        schema: CHANGES_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        seconds,
        rss_growth_bytes: growth(before.total_bytes, after.total_bytes),
        pss_growth_bytes: growth(before.pss_bytes, after.pss_bytes),
        owners: comparison::owner_changes(before, after),
        parts,
        doubts: doubt.into_iter().map(DoubtRecord::from).collect(),
        then,
        now,
    })
}

fn of_the_same(earlier: Vec<AccountDocument>, now: &AccountDocument) -> Result<AccountDocument> {
    let count = earlier.len();
    let found = match count {
        0 | 1 => None,
        _ => {
            let same = |other: &AccountDocument| other.identity.is_some() && differences(other, now).is_empty();
            let by_pid = |other: &AccountDocument| other.jvm.pid == now.jvm.pid;
            Some(earlier.iter().position(same).or_else(|| earlier.iter().position(by_pid)))
        }
    };
    let place = found.unwrap_or(Some(0));
    place.and_then(|place| earlier.into_iter().nth(place)).ok_or_else(|| {
        Error::request(format!("the file has accounts of {count} JVMs, none of them with pid {}", now.jvm.pid))
            .hint("specify the account of this JVM alone (`loadline account PID --json`)")
    })
}

/// Evidence that two accounts are of different processes; empty if there is none. Pids differ between pid namespaces,
/// so start and command are better evidence.
fn differences(then: &AccountDocument, now: &AccountDocument) -> Vec<String> {
    let mut found = Vec::new();
    let started = |of: &AccountDocument| of.identity.as_ref().map(|of| (of.boot_id.clone(), of.started_ticks));
    let is_same = started(then).is_some_and(|then| then.0.is_some() && Some(then) == started(now));
    if then.jvm.pid != now.jvm.pid && !(is_same && then.subject_command == now.subject_command) {
        found.push(format!("pid {} and {}", then.jvm.pid, now.jvm.pid));
    }
    let when = |started: &Option<String>| match started {
        // The text of a file is untrusted.
        Some(text) if unix_s(text).is_some() => text.clone(),
        _ => "an unknown time".to_owned(),
    };
    match (&then.identity, &now.identity) {
        (Some(then), Some(now)) if then.boot_id != now.boot_id => {
            found.push("the machine was rebooted in between, or it is a different one".to_owned());
        }
        (Some(then), Some(now)) if then.started_ticks != now.started_ticks => {
            let [then, now] = [then, now].map(|of| format!("{} (tick {})", when(&of.started), of.started_ticks));
            found.push(format!("started at {then} and at {now}"));
        }
        (None, Some(own)) if own.started.as_deref().and_then(unix_s) > unix_s(&then.taken) => {
            found.push(format!("started at {}, after the earlier account", when(&own.started)));
        }
        _ => {}
    }
    if then.subject_command != now.subject_command {
        found.push("the command lines differ".to_owned());
    }
    found
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
