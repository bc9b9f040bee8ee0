//! The page of a machine's JVMs: one row per JVM, memory by group of owners, and unreadable JVMs.

use super::cells::{beginning, end, mib, rounds_to_none, sum};
use super::doubts::{doubts, merged};
use super::facts::host_text;
use super::next;
use crate::comparison::group_pss_bytes;
use crate::owner::Group;
use crate::page::{Page, Part, Section, Topic};
use crate::record::{AccountDocument, AccountRecord, AccountsDocument, ChargeRecord, DoubtRecord, UnreadRecord};
use crate::table::Table;
use crate::units::{Bytes, milliseconds, several};
use crate::words::dash;

/// Room in characters for names next to each table's numbers.
const NAME_MAX: usize = 19;
const NAME_BESIDE_GROUPS_MAX: usize = 18;
/// The values of `--sort` for owner groups, in the order of [`Group::ALL`].
const GROUPS: [&str; Group::ALL.len()] = ["heap", "classes", "malloc", "retained", "files", "rest"];

type Row<'a> = (&'a AccountDocument, &'a AccountRecord);

/// The page of all JVMs on a machine.
pub fn summarize_accounts(document: &AccountsDocument) -> Page {
    let rows: Vec<Row<'_>> = document.accounts.iter().filter_map(|of| Some((of, of.mark.account.as_ref()?))).collect();
    let largest = rows.iter().max_by_key(|(_, account)| account.pss_bytes).map(|(of, _)| next::of_accounts(of.jvm.pid));
    let none = (rows.is_empty() && document.unread.is_empty()).then_some("No HotSpot JVM is running on this machine.");
    let of_rows = |table: Table| Some(Part::Table(table)).filter(|_| !rows.is_empty());
    let sections = [
        Section::new(Topic::Answer, "", none.map(|none| Part::Text(none.to_owned())).into_iter().chain(largest)),
        Section::titled(Topic::Answer, "all JVMs", of_rows(sizes(document, &rows))),
        Section::titled(Topic::Memory, "memory", of_rows(groups(&rows))),
        Section::new(Topic::Details, "not read", Part::Facts(unread(document)).filled()),
        Section::new(Topic::Conditions, "conditions", [Part::facts([("machine", host_text(&document.machine))])]),
        doubts(&doubts_of_all(&document.accounts)),
    ];
    Page::new(format!("{}, weighed by loadline {}", jvms(rows.len()), document.loadline), sections)
}

/// JVMs without an account, and the number of unreadable processes.
fn unread(document: &AccountsDocument) -> Vec<(String, String)> {
    let told = |one: &UnreadRecord| (format!("pid {}", one.pid), format!("{}: {}", one.name, one.why));
    let hidden = (document.hidden > 0).then(|| {
        let processes = several(document.hidden, "other process");
        let text = format!(
            "{processes} that Loadline cannot read; it recognizes a JVM among them only if the \
            executable is named `java`"
        );
        ("hidden".to_owned(), text)
    });
    document.unread.iter().map(told).chain(hidden).collect()
}

fn jvms(number: usize) -> String {
    several(number as u64, "JVM")
}

fn name(document: &AccountDocument, most: usize) -> String {
    document.identity.as_ref().map_or_else(dash, |of| end(&of.name, most))
}

/// `17.0.15` in `17.0.15+6-Debian`; JDK 8 reports `25.412-b08` for update 412.
fn jdk(document: &AccountDocument) -> String {
    let Some(version) = document.jvm.version.as_deref() else { return dash() };
    let known = match (version.split_once('+'), version.strip_prefix("25.").and_then(|rest| rest.split_once("-b"))) {
        (Some((release, _)), _) => release.to_owned(),
        (None, Some((update, _))) => format!("8u{update}"),
        (None, None) => version.to_owned(),
    };
    beginning(&known, 9)
}

fn sizes(document: &AccountsDocument, rows: &[Row<'_>]) -> Table {
    // Without a limit, the cgroup may contain all processes.
    let charge = |of: &AccountDocument| {
        of.mark.charge.as_ref().and_then(|charge| Some((charge.usage_bytes, charge.limit_bytes?)))
    };
    let row = |(of, account): &Row<'_>| {
        let would = &account.would_return;
        let (charged, limit) = charge(of).unzip();
        let sizes = [Some(account.pss_bytes), charged, limit, would.gc_bytes, would.trim_bytes].map(mib);
        [of.jvm.pid.to_string(), name(of, NAME_MAX), jdk(of)].into_iter().chain(sizes).collect::<Vec<String>>()
    };
    let sums = [
        Some(document.pss_bytes),
        None,
        None,
        total(rows, |account| account.would_return.gc_bytes),
        total(rows, |account| account.would_return.trim_bytes),
    ];
    let last = ["sum".to_owned(), jvms(rows.len()), String::new()].into_iter().chain(sums.map(mib)).collect();
    let head = ["pid", "name", "JDK", "PSS", "charge", "limit", "full GC", "trim"];
    let table = Table::new(
        "PSS, cgroup charge and limit, and reclaimable memory, MiB",
        head,
        rows.iter().map(row).chain([last]),
    );
    table.worded(2, 0).noted(notes(document, rows))
}

/// The sum of a size over all JVMs; `None` if any is unknown.
fn total(rows: &[Row<'_>], of: impl Fn(&AccountRecord) -> Option<u64>) -> Option<u64> {
    rows.iter().try_fold(0, |sum: u64, (_, account)| Some(sum.saturating_add(of(account)?)))
}

/// Notes that explain the numbers, and the effect of measuring.
fn notes(document: &AccountsDocument, rows: &[Row<'_>]) -> Vec<String> {
    let mut notes = vec![format!(
        "PSS splits each shared page among its processes. RSS counts it in full for each of them, {} in total.",
        Bytes(document.rss_bytes)
    )];
    let shares = |charge: &ChargeRecord| charge.limit_bytes.is_some() && charge.processes > 1;
    if rows.iter().any(|(of, _)| of.mark.charge.as_ref().is_some_and(shares)) {
        notes.push("The charge and the limit apply to the whole cgroup, which may include other processes.".to_owned());
    }
    let pause = rows.iter().filter_map(|(_, account)| account.pause_ms).reduce(f64::max);
    let took: f64 = rows.iter().map(|(of, _)| of.mark.took_ms).sum();
    let added = sum(rows.iter().filter_map(|(_, account)| u64::try_from(account.observer_bytes?).ok()));
    let stood = match pause {
        Some(pause) => format!("each JVM's threads were paused for at most {} ms", milliseconds(pause)),
        None => "no threads were paused".to_owned(),
    };
    let added = match rounds_to_none(added) {
        true => "no memory".to_owned(),
        false => format!("at most {} in total", Bytes(added)),
    };
    notes.push(format!("Weighing them one at a time took {} ms and added {added}; {stood}.", milliseconds(took)));
    notes
}

/// The JVMs' PSS by owner group.
fn groups(rows: &[Row<'_>]) -> Table {
    let group = |account: &AccountRecord| Group::ALL.map(|(group, ..)| group_pss_bytes(account, group));
    let row = |(of, account): &Row<'_>| {
        let lead = [of.jvm.pid.to_string(), name(of, NAME_BESIDE_GROUPS_MAX)];
        lead.into_iter().chain(group(account).map(mib)).collect::<Vec<String>>()
    };
    let sums = Group::ALL.map(|(group, ..)| total(rows, |account| group_pss_bytes(account, group)));
    let last = ["sum".to_owned(), jvms(rows.len())].into_iter().chain(sums.map(mib)).collect();
    let head = ["pid", "name"].into_iter().chain(GROUPS);
    let words: Vec<String> = GROUPS.iter().zip(Group::ALL).map(|(word, (.., of))| format!("{word}: {of}")).collect();
    Table::new("PSS by owner, MiB", head, rows.iter().map(row).chain([last]))
        .worded(2, 0)
        .noted([format!("{}.", words.join("; "))])
}

fn doubts_of_all(accounts: &[AccountDocument]) -> Vec<DoubtRecord> {
    let of_account =
        |of: &AccountDocument| of.doubts.iter().map(|doubt| (of.jvm.pid, doubt.clone())).collect::<Vec<_>>();
    let told = |(doubt, pids): (DoubtRecord, Vec<u32>)| {
        let too = match pids.len() - 1 {
            0 => String::new(),
            1 => " (also for 1 other JVM)".to_owned(),
            others => format!(" (also for {others} other JVMs)"),
        };
        DoubtRecord { text: format!("pid {}: {}{too}", pids[0], doubt.text), ..doubt }
    };
    merged(accounts.iter().flat_map(of_account)).into_iter().map(told).collect()
}
