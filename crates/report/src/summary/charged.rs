//! A container's charge by owner, and how much of it the kernel would reclaim before a kill.

use super::cells::{beginning, end, rounds_to_none, share};
use super::doubts::doubts;
use super::facts::machine_text;
use super::next;
use crate::page::{Facts, Page, Part, Section, Topic};
use crate::record::{CachedFileRecord, ChargeDocument, ChargeKind, ChargeRecord, ChargeRow};
use crate::table::Table;
use crate::units::{Bytes, grouped, several};
use crate::words::word_of;
use loadline_base::order::Order as _;
use loadline_jvm::observe::charged::by_command;

/// Rows per kind; smaller ones share a row.
const ROWS_MAX: usize = 8;
const OWNER_CHARS: usize = 28;
/// Characters shown of a path; its end is more informative.
const PATH_CHARS: usize = 56;
/// Files with less page cache are omitted.
const CACHED_BYTES_MIN: u64 = 1 << 20;
/// A smaller row of memory that the kernel does not list needs no explanation.
const UNLISTED_BYTES_MIN: u64 = 1 << 20;
const UNLISTED_NOTE: &str = "Not listed by the kernel: pages charged in advance for each CPU, and changes since \
                             `memory.stat` was last updated.";
/// Owners named in the sentence.
const LARGEST: usize = 3;
/// A charge above this share of the limit is near it.
const NEAR_SHARE: f64 = 0.9;

/// The page of a container's charge.
pub fn summarize_charge(document: &ChargeDocument) -> Page {
    let charge = &document.charge;
    let next = match document.jvms.first() {
        Some(jvm) => Some(next::of_charged(jvm)),
        None => (!has_processes(charge)).then(next::of_dead),
    };
    let mut sections = vec![
        Section::new(Topic::Answer, "", [Part::Text(answer(document))].into_iter().chain(next)),
        Section::new(Topic::Conditions, "conditions", [Part::Facts(conditions(document))]),
    ];
    sections.extend(section(charge));
    sections.push(doubts(&document.doubts));
    Page::new(format!("{}, weighed by loadline {}", charge.cgroup, document.loadline), sections)
}

/// How near the limit is, the largest owners, and the memory without an owner.
fn answer(document: &ChargeDocument) -> String {
    let charge = &document.charge;
    let kept = charge.kept_bytes().unwrap_or(0);
    let killed = (document.oom_kills > 0)
        .then(|| format!(" The OOM killer has killed {} in it.", several(document.oom_kills, "process")));
    let verdict = match charge.limit_bytes {
        _ if !has_processes(charge) => "No process is left",
        Some(limit) if kept as f64 >= limit as f64 * NEAR_SHARE => "The cgroup is near its limit",
        Some(_) => "The cgroup is not near its limit",
        None => "The cgroup has no limit",
    };
    let (of, left) = match charge.limit_bytes {
        Some(limit) => {
            let of = format!(" of {} ({})", Bytes(limit), share(Some(kept), Some(limit)));
            (of, format!(", which leaves {}", Bytes(limit.saturating_sub(kept))))
        }
        None => Default::default(),
    };
    let rows = shown(&charge.rows);
    let mut largest: Vec<&ChargeRow> = rows.iter().filter(|row| row.bytes > 0).collect();
    largest.largest_first(|row| row.bytes);
    let owner = |row: &ChargeRow| match row.kind {
        ChargeKind::PageCache | ChargeKind::Kernel => format!("{} ({})", word_of(row.kind), row.owner),
        _ => row.owner.clone(),
    };
    let named = largest.iter().take(LARGEST).map(|row| format!("{} MiB for {}", mib(row.bytes), owner(row)));
    let named: Vec<String> = named.collect();
    let named = match named.split_last() {
        Some((last, others @ [_, ..])) => format!("{}, and {last}", others.join(", ")),
        _ => named.concat(),
    };
    let is_unowned =
        |row: &&ChargeRow| row.kind == ChargeKind::Rest || row.kind == ChargeKind::Anonymous && row.pid.is_none();
    let unowned = charge.rows.iter().filter(is_unowned).map(|row| row.bytes.unsigned_abs()).sum();
    format!(
        "{verdict}: {}{of} cannot be reclaimed{left}.{} The charge is {}. Its largest parts are {named}. {} has no \
         known owner.",
        Bytes(kept),
        killed.unwrap_or_default(),
        Bytes(charge.usage_bytes),
        Bytes(unowned)
    )
}

fn has_processes(charge: &ChargeRecord) -> bool {
    charge.rows.iter().any(|row| row.pid.is_some())
}

fn conditions(document: &ChargeDocument) -> Vec<(String, String)> {
    let charge = &document.charge;
    let mut facts = Facts::default();
    let place = charge.limit_cgroup.as_ref().map(|above| format!(", limit set on {above}")).unwrap_or_default();
    facts.add("cgroup", format!("{} ({}){place}", charge.cgroup, charge.version));
    facts.add("processes", grouped(charge.processes));
    let jvms: Vec<String> = document.jvms.iter().map(|jvm| format!("pid {}, {}", jvm.pid, jvm.name)).collect();
    facts.list("JVMs", jvms);
    facts.add("peak", document.peak_bytes.map(|bytes| format!("charge of {}", Bytes(bytes))));
    let killed = (document.oom_kills > 0).then(|| several(document.oom_kills, "process"));
    facts.add("killed", killed.map(|killed| format!("{killed} so far, by the OOM killer")));
    facts.add("machine", machine_text(&document.machine));
    facts.0
}

/// The rows, the unreclaimable part, and other tools' numbers; `None` if the owners were not read.
pub(super) fn section(charge: &ChargeRecord) -> Option<Section> {
    let tables = [table(charge)?].into_iter().chain(cached_files(charge)).map(Part::Table);
    Some(Section::titled(Topic::Memory, "charge", tables.chain([Part::Facts(facts(charge))])))
}

/// The rows of a charge; `None` if its owners were not read.
fn table(charge: &ChargeRecord) -> Option<Table> {
    let unread = (charge.unread_processes > 0).then(|| {
        format!(
            "{} could not be read; Loadline needs root access for that.",
            several(charge.unread_processes, "process")
        )
    });
    // The cgroup may be that of a login session or of the whole machine.
    let title = match charge.processes {
        0 | 1 => "container charge by owner, MiB".to_owned(),
        n => format!("charge of the cgroup's {} processes by owner, MiB", grouped(n)),
    };
    Some(table_of(&charge.rows, Some(charge.usage_bytes), &title)?.noted(unread))
}

/// Files in the page cache; `None` if all are below one megabyte.
fn cached_files(charge: &ChargeRecord) -> Option<Table> {
    let files = charge.cached_files.iter().filter(|file| file.bytes >= CACHED_BYTES_MIN).take(ROWS_MAX);
    let line = |file: &CachedFileRecord| {
        vec![end(&file.path, PATH_CHARS), mib(Bytes(file.bytes).signed()), mib(Bytes(file.dirty_bytes).signed())]
    };
    let table = Table::new("page cache of open and mapped files, MiB", ["file", "cached", "dirty"], files.map(line));
    let note = "The kernel charges each page to the container that read it first, which may be another container.";
    Some(table.filled()?.noted([note.to_owned()]))
}

/// These rows with their sum; `None` if there are none.
pub(super) fn table_of(rows: &[ChargeRow], sum_bytes: Option<u64>, title: &str) -> Option<Table> {
    let line = |row: &ChargeRow| {
        let reclaimable = if row.reclaimable { "yes" } else { "no" };
        vec![row.owner.clone(), mib(row.bytes), word_of(row.kind), reclaimable.to_owned()]
    };
    let rows = shown(rows);
    let total = sum_bytes.filter(|_| !rows.is_empty());
    let total = total.map(|bytes| vec!["charge".to_owned(), mib(Bytes(bytes).signed()), String::new(), String::new()]);
    let head = ["owner", "charged", "kind", "reclaimable"];
    let unlisted = |row: &ChargeRow| row.kind == ChargeKind::Rest && row.bytes.unsigned_abs() >= UNLISTED_BYTES_MIN;
    let note = rows.iter().any(unlisted).then(|| UNLISTED_NOTE.to_owned());
    Some(Table::new(title, head, rows.iter().map(line).chain(total)).worded(1, 2).filled()?.noted(note))
}

/// The unreclaimable part, and other tools' numbers for the same cgroup.
fn facts(charge: &ChargeRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    if let Some(kept) = charge.kept_bytes().map(|kept| Bytes(kept).signed()) {
        let taken = charge.rows.iter().map(|row| row.bytes).sum::<i64>() - kept;
        facts.add("kept", format!("{} MiB: only this part can cause an OOM kill", mib(kept)));
        let dirty = charge.dirty_file_bytes.filter(|bytes| !rounds_to_none(*bytes));
        let dirty = dirty.map(|bytes| format!("; {} of it must be written to disk first", Bytes(bytes)));
        let taken =
            format!("{} MiB: the kernel reclaims this before an OOM kill{}", mib(taken), dirty.unwrap_or_default());
        facts.add("reclaimed", taken);
    }
    let working = charge.working_set_bytes().map(Bytes);
    let working = working.map(|bytes| format!("working set {bytes}: the charge minus inactive page cache"));
    facts.add("Kubernetes", working);
    let swap = charge.swap_bytes.filter(|bytes| !rounds_to_none(*bytes));
    let slabs = charge.machine_slabs.iter().take(LARGEST).map(|slab| format!("{} {}", slab.name, Bytes(slab.bytes)));
    let slabs = slabs.collect::<Vec<_>>().join(", ");
    let of_machine =
        (!slabs.is_empty()).then(|| format!("{slabs}: kernel caches for the whole machine, not just this cgroup"));
    facts.add("slab", of_machine);
    facts.add("swap", swap.map(|bytes| format!("{}, not part of the charge", Bytes(bytes))));
    facts.0
}

/// The rows to show: processes with one command share a row, as do the smallest of a kind.
fn shown(rows: &[ChargeRow]) -> Vec<ChargeRow> {
    rows.chunk_by(|one, next| one.kind == next.kind).flat_map(|kind| few(named(kind))).collect()
}

/// Groups processes by command, with their number; the same for files.
fn named(rows: &[ChargeRow]) -> Vec<ChargeRow> {
    let named = |(row, processes): (ChargeRow, u64)| {
        let more = match (row.pid, row.files) {
            (Some(_), _) if processes > 1 => format!(" ({} processes)", grouped(processes)),
            (Some(pid), _) => format!(" (pid {pid})"),
            (None, 0) => String::new(),
            (None, files) if row.deleted > 0 => {
                format!(" ({}, {} deleted but open)", several(files, "file"), grouped(row.deleted))
            }
            (None, files) => format!(" ({})", several(files, "file")),
        };
        ChargeRow { owner: format!("{}{more}", beginning(&row.owner, OWNER_CHARS)), ..row }
    };
    by_command(rows).into_iter().map(named).collect()
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

fn mib(bytes: i64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1u32 << 20))
}
