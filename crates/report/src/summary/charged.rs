//! What a container is charged for, by owner, and how much of it the kernel would take back before it kills.

use super::cells::{beginning, rounds_to_none};
use super::doubts::doubts;
use super::facts::machine_text;
use super::next;
use crate::page::{Facts, Page, Part, Section, Topic};
use crate::record::{ChargeDocument, ChargeKind, ChargeRecord, ChargeRow};
use crate::table::Table;
use crate::units::{Bytes, grouped, several};
use crate::words::word_of;
use loadline_base::order::Order as _;

/// Rows of a kind that are shown; smaller ones share a row.
const ROWS_MAX: usize = 8;
const OWNER_CHARS: usize = 28;
/// Owners named in the sentence.
const LARGEST: usize = 3;

/// Summarizes what a container is charged for.
pub fn summarize_charge(document: &ChargeDocument) -> Page {
    let charge = &document.charge;
    let next = document.jvms.first().map(next::of_charged);
    let mut sections = vec![
        Section::new(Topic::Answer, "", [Part::Text(answer(charge))].into_iter().chain(next)),
        Section::new(Topic::Conditions, "conditions", [Part::Facts(conditions(document))]),
    ];
    sections.extend(section(charge));
    sections.push(doubts(&document.doubts));
    Page::new(format!("{}, weighed by loadline {}", charge.cgroup, document.loadline), sections)
}

/// The charge, the limit, and the largest owners.
fn answer(charge: &ChargeRecord) -> String {
    let limit = match charge.limit_bytes {
        Some(limit) => format!(" of {} allowed", Bytes(limit)),
        None => ", without a limit".to_owned(),
    };
    let rows = shown(&charge.rows);
    let mut largest: Vec<&ChargeRow> = rows.iter().filter(|row| row.bytes > 0).collect();
    largest.largest_first(|row| row.bytes);
    let kind = |row: &ChargeRow| match row.kind {
        ChargeKind::PageCache | ChargeKind::Kernel => format!("{}, ", word_of(row.kind)),
        _ => String::new(),
    };
    let named = largest.iter().take(LARGEST).map(|row| format!("{}{} ({} MiB)", kind(row), row.owner, mib(row.bytes)));
    let kept = format!("; {} of them cannot be reclaimed", mib(kept_bytes(charge)));
    let named = named.collect::<Vec<_>>().join(", ");
    format!("{} are charged{limit}{kept}. Largest: {named}.", Bytes(charge.usage_bytes))
}

/// The part that the kernel cannot take back.
fn kept_bytes(charge: &ChargeRecord) -> i64 {
    charge.rows.iter().filter(|row| !row.reclaimable).map(|row| row.bytes).sum()
}

fn conditions(document: &ChargeDocument) -> Vec<(String, String)> {
    let charge = &document.charge;
    let mut facts = Facts::default();
    let place = charge.limit_cgroup.as_ref().map(|above| format!(", the limit is that of {above}")).unwrap_or_default();
    facts.add("cgroup", format!("{} ({}){place}", charge.cgroup, charge.version));
    facts.add("processes", grouped(charge.processes));
    let jvms: Vec<String> = document.jvms.iter().map(|jvm| format!("pid {}, {}", jvm.pid, jvm.name)).collect();
    facts.list("JVMs", jvms);
    facts.add("peak", document.peak_bytes.map(|bytes| Bytes(bytes).to_string()));
    let killed = (document.oom_kills > 0).then(|| several(document.oom_kills, "process"));
    facts.add("killed", killed.map(|killed| format!("{killed} so far, for lack of memory")));
    facts.add("machine", machine_text(&document.machine));
    facts.0
}

/// The rows, the part that kills, and the numbers that others show; `None` where the owners were not read.
pub(super) fn section(charge: &ChargeRecord) -> Option<Section> {
    let table = Part::Table(table(charge)?);
    Some(Section::titled(Topic::Memory, "charge", [table, Part::Facts(facts(charge))]))
}

/// The rows of a charge; `None` where its owners were not read.
fn table(charge: &ChargeRecord) -> Option<Table> {
    let unread = (charge.unread_processes > 0).then(|| {
        format!("{} could not be read: run as root to see what they hold.", several(charge.unread_processes, "process"))
    });
    let table = table_of(&charge.rows, Some(charge.usage_bytes), "what the container is charged for, MiB")?;
    Some(table.noted(unread))
}

/// These rows with their sum; `None` without any.
pub(super) fn table_of(rows: &[ChargeRow], sum_bytes: Option<u64>, title: &str) -> Option<Table> {
    let line = |row: &ChargeRow| {
        let reclaimable = if row.reclaimable { "yes" } else { "no" };
        vec![row.owner.clone(), mib(row.bytes), word_of(row.kind), reclaimable.to_owned()]
    };
    let rows = shown(rows);
    let total = sum_bytes.filter(|_| !rows.is_empty());
    let total = total.map(|bytes| vec!["charge".to_owned(), mib(signed(bytes)), String::new(), String::new()]);
    let head = ["owner", "charged", "kind", "reclaimable"];
    Table::new(title, head, rows.iter().map(line).chain(total)).worded(1, 2).filled()
}

/// The part that kills, and the numbers that others show of the same cgroup.
fn facts(charge: &ChargeRecord) -> Vec<(String, String)> {
    let kept = kept_bytes(charge);
    let taken = charge.rows.iter().map(|row| row.bytes).sum::<i64>() - kept;
    let mut facts = Facts::default();
    if !charge.rows.is_empty() {
        facts.add("kept", format!("{} MiB: only this part gets the container killed", mib(kept)));
        let dirty = charge.dirty_file_bytes.filter(|bytes| !rounds_to_none(*bytes));
        let dirty = dirty.map(|bytes| format!("; {} of it after it is on the disk", Bytes(bytes)));
        let taken = format!("{} MiB: the kernel takes it before it kills{}", mib(taken), dirty.unwrap_or_default());
        facts.add("reclaimed", taken);
    }
    let working = charge.working_set_bytes().map(Bytes);
    let working = working.map(|bytes| format!("working set {bytes}: the charge without page cache not used lately"));
    facts.add("Kubernetes", working);
    let swap = charge.swap_bytes.filter(|bytes| !rounds_to_none(*bytes));
    facts.add("swap", swap.map(|bytes| format!("{}, not part of the charge", Bytes(bytes))));
    facts.0
}

/// The rows to show: processes of one command share one, and so do the smallest of a kind.
fn shown(rows: &[ChargeRow]) -> Vec<ChargeRow> {
    rows.chunk_by(|one, next| one.kind == next.kind).flat_map(|kind| few(by_command(kind))).collect()
}

/// Processes of one command in one row, with their number; files with theirs.
fn by_command(rows: &[ChargeRow]) -> Vec<ChargeRow> {
    let mut sums: Vec<(ChargeRow, u64)> = Vec::new();
    for row in rows {
        let same = |(of, _): &&mut (ChargeRow, u64)| row.pid.is_some() && of.pid.is_some() && of.owner == row.owner;
        match sums.iter_mut().find(same) {
            Some((of, processes)) => {
                of.bytes += row.bytes;
                *processes += 1;
            }
            None => sums.push((row.clone(), 1)),
        }
    }
    let named = |(row, processes): (ChargeRow, u64)| {
        let more = match (row.pid, row.files) {
            (Some(_), _) if processes > 1 => format!(", {} processes", grouped(processes)),
            (Some(pid), _) => format!(", pid {pid}"),
            (None, 0) => String::new(),
            (None, files) if row.deleted > 0 => {
                format!(": {}, {} deleted but open", several(files, "file"), grouped(row.deleted))
            }
            (None, files) => format!(": {}", several(files, "file")),
        };
        ChargeRow { owner: format!("{}{more}", beginning(&row.owner, OWNER_CHARS)), ..row }
    };
    let mut rows: Vec<ChargeRow> = sums.into_iter().map(named).collect();
    rows.largest_first(|row| row.bytes.unsigned_abs());
    rows
}

/// The largest of a kind, and the sum of the others.
fn few(rows: Vec<ChargeRow>) -> Vec<ChargeRow> {
    let is_shown = |place: usize, row: &ChargeRow| place < ROWS_MAX && !rounds_to_none(row.bytes.unsigned_abs());
    let count = rows.iter().enumerate().take_while(|(place, row)| is_shown(*place, row)).count();
    let (shown, small) = rows.split_at(count);
    let bytes: i64 = small.iter().map(|row| row.bytes).sum();
    let together = small.first().filter(|_| !rounds_to_none(bytes.unsigned_abs())).map(|first| ChargeRow {
        owner: format!("{} smaller", grouped(small.len() as u64)),
        bytes,
        reclaimable: small.iter().all(|row| row.reclaimable),
        kind: first.kind,
        ..ChargeRow::default()
    });
    shown.iter().cloned().chain(together).collect()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn mib(bytes: i64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1u32 << 20))
}
