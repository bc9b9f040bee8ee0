//! The page of an account: why RSS exceeds the heap, what owns it, how much could be returned, and how much is charged.

use super::cells::{account_of, mib, rounds_to_none, sum};
use super::details::{Detail, details, remainders};
use super::doubts::doubts;
use super::facts::jvm_text;
use super::findings::Findings;
use super::netty::pools;
use super::{charged, explanation, flags, inside, next};
use crate::owner::{self, Owner, is_heap, label};
use crate::page::{Depth, Facts, Page, Part, Section, Topic};
use crate::record::{
    AccountDocument, AccountRecord, ChargeKind, ChargeRecord, ChargeRow, DirectRecord, FlagsRecord, MallocRecord, Mark,
    OwnerRecord, ToldBy, ToldRecord,
};
use crate::table::Table;
use crate::units::{Bytes, grouped, milliseconds, several};
use crate::words::dash;
use loadline_base::order::Order as _;
use loadline_jvm::account::Reason;

/// Owners named in the sentence.
const LARGEST: usize = 3;
/// Above this share of RSS, the addresses of unexplained pages are always shown.
const UNEXPLAINED_SHARE_MAX: f64 = 0.005;
/// The kernel charges threads in batches, so a smaller difference need not belong to another process.
const UNSEEN_MIN: i64 = 1 << 20;
/// At most two lines of a command; the JSON document has all of it.
const COMMAND_CHARS_MAX: usize = 130;

/// The page of a running JVM's account, with the requested details.
pub fn summarize_account(document: &AccountDocument, asked: &[Detail]) -> Page {
    page_of_account(document, asked, Depth::default())
}

/// The page of an account; `depth` requests charts and full lists.
pub(crate) fn page_of_account(document: &AccountDocument, asked: &[Detail], depth: Depth) -> Page {
    let mark = &document.mark;
    let mut sections = vec![Section::new(Topic::Conditions, "conditions", [Part::Facts(facts(document))])];
    let mut parts = Vec::new();
    match account_of(mark) {
        Some(account) => {
            sections.extend(in_short(document, account, depth));
            sections.push(Section::titled(Topic::Memory, "memory", [Part::Table(owners(account))]));
            let beside = [Part::Facts(beside(document, account))];
            sections.push(Section::new(Topic::Memory, "reclaimable memory and cgroup charge", beside));
            sections.extend(mark.charge.as_ref().and_then(charged::section));
            let findings = Findings {
                found: &document.findings,
                ruled_out: &document.ruled_out,
                explained: document.explanation.iter().map(|found| ("", found)).collect(),
                named: false,
                first: !depth.whole,
                open: open(document).map(|open| open.told(document)),
                compared: 0,
                rss_bytes: mark.rss_bytes,
            };
            sections.push(findings.section(depth));
            let share = account.unexplained_bytes as f64 / account.total_bytes.max(1) as f64;
            if share > UNEXPLAINED_SHARE_MAX || asked.contains(&Detail::Region) {
                parts.extend(remainders(account).map(Part::Table));
            }
            parts.extend(asked.iter().map(|detail| details(account, document, *detail)));
        }
        None => {
            let pss = mark.pss_bytes.map_or("unknown".to_owned(), |pss| Bytes(pss).to_string());
            let text = format!("RSS is {}, PSS {pss}; its owners could not be read.", Bytes(mark.rss_bytes));
            sections.push(Section::new(Topic::Answer, "", [Part::Text(text)]));
        }
    }
    parts.extend(asked_for(document));
    sections.push(Section::titled(Topic::Details, "details", parts));
    sections.push(doubts(&document.doubts));
    Page::new(format!("{}, weighed by loadline {}", which(document), document.loadline), sections)
}

/// The answer and the next command. A recording's result precedes the account, although the account was taken first.
fn in_short(document: &AccountDocument, account: &AccountRecord, depth: Depth) -> Vec<Section> {
    let answered = Part::Text(answer(account));
    let Some(found) = &document.explanation else {
        return vec![Section::new(Topic::Answer, "summary", [answered, next::of_account(document)])];
    };
    // A recording that missed most of the memory has no cause to show first.
    let largest = explanation::largest(found, Some(&document.mark)).filter(|_| next::again(document).is_none());
    let growth = explanation::growth_unmeasured(document.jvm.pid);
    let told = largest.into_iter().chain(explanation::heap_unseen(document)).chain([growth]).map(Part::Text);
    vec![
        Section::new(Topic::Answer, "summary", told.chain([next::of_recorded(document)])),
        explanation::section(found, Some(&document.mark), 0, depth),
        Section::new(Topic::Answer, "weighed before the recording", [answered]),
    ]
}

/// A large owner that neither a finding nor a recording explains.
fn open(document: &AccountDocument) -> Option<next::OpenOwner> {
    let account = document.mark.account.as_ref().filter(|_| document.explanation.is_none())?;
    next::open(account, &document.findings)
}

/// Identifies the process: `pid 4711, app.jar`.
pub(super) fn which(document: &AccountDocument) -> String {
    let name = document.identity.as_ref().map_or(String::new(), |of| format!(", {}", of.name));
    format!("pid {}{name}", document.jvm.pid)
}

/// The data requested after the measurement: live objects, a heap dump, Netty's pools.
pub(super) fn asked_for(document: &AccountDocument) -> Vec<Part> {
    let mark = &document.mark;
    let objects = document.objects.iter();
    let objects = objects.map(|found| Part::Table(inside::objects(found, "the earlier account", mark.heap.used_bytes)));
    let pools = mark.netty.iter().map(|found| pools(found, release(document)));
    objects.chain(document.heap_dump.as_ref().map(inside::dump)).chain(pools).collect()
}

/// The feature release: 17 in `17.0.15+6`.
fn release(document: &AccountDocument) -> Option<u32> {
    let version = document.jvm.version.as_deref()?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

// ---- Before the table ----

fn facts(document: &AccountDocument) -> Vec<(String, String)> {
    let (mark, account) = (&document.mark, document.mark.account.as_ref());
    let mut facts = Facts::default();
    facts.add("jvm", jvm_text(&document.jvm));
    let [used, committed] = [mark.heap.used_bytes, mark.heap.committed_bytes].map(mib);
    let most = mark.heap.max_bytes.map_or_else(String::new, |most| format!(", maximum {}", mib(most)));
    let left = mark.heap.left_by_gc_bytes.filter(|left| *left > 0);
    let left = left.map_or_else(String::new, |left| format!("; {} used after the last GC", mib(left)));
    facts.add("heap", format!("{used} MiB used of {committed} committed{most}{left}"));
    facts.add("direct", mark.direct.as_ref().map(direct_text));
    let malloc = account.and_then(|account| account.malloc.as_ref());
    facts.add("malloc", malloc.map(malloc_text).or(document.jvm.allocator.clone()));
    let deaf = document.flags.as_ref().is_some_and(FlagsRecord::disables_attaching);
    let deaf = if deaf { "; attaching is disabled (`-XX:+DisableAttachMechanism`)" } else { "" };
    let told = account.and_then(|account| account.told.as_ref());
    facts.add("source", told.map(|told| format!("{}{deaf}", told_text(told))));
    facts.add("flags", document.flags.as_ref().map(flags::text));
    facts.add("command", shortened(&crate::scenario::shell_words(&document.subject_command)));
    facts.add("limit", mark.charge.as_ref().map(limit_text));
    facts.0
}

/// The source of the JVM's memory layout: its tables, or a command.
fn told_text(told: &ToldRecord) -> String {
    match (told.by, told.why.as_str()) {
        (ToldBy::Tables, "") => "the JVM's own tables, read from outside".to_owned(),
        (ToldBy::Tables, why) => format!("the JVM's own tables, incomplete ({why})"),
        (ToldBy::Attach, "") => "output of JVM commands (`jcmd`)".to_owned(),
        (ToldBy::Attach, why) => format!("output of JVM commands (`jcmd`); {why}"),
        (ToldBy::Counters, "") => "JVM counters and kernel data only".to_owned(),
        (ToldBy::Counters, why) => format!("JVM counters and kernel data only; {why}"),
    }
}

/// Direct memory with its ceiling, Netty's direct memory, and mapped files.
pub(super) fn direct_text(direct: &DirectRecord) -> String {
    let mut text = format!("{} MiB in {} buffers", mib(direct.reserved_bytes), grouped(direct.buffers));
    if let Some(most) = direct.max_bytes {
        text.push_str(&format!(", maximum {}", mib(most)));
    }
    if let Some(netty) = direct.netty_bytes {
        text.push_str(&format!("; {} by Netty, bypassing the JDK", mib(netty)));
    }
    if direct.mapped_buffers > 0 {
        let (mapped, files) = (mib(direct.mapped_bytes), several(direct.mapped_buffers, "mapped file"));
        text.push_str(&format!("; {mapped} in {files}"));
    }
    text
}

fn malloc_text(malloc: &MallocRecord) -> String {
    let (parts, heap) = match malloc.groups {
        Some(groups) => (several(groups, "group"), "group"),
        None => (several(malloc.arenas, "arena"), "heap"),
    };
    let mut text = format!(
        "{}: {} MiB in allocated chunks, {} in free chunks, {parts}",
        malloc.allocator,
        mib(malloc.live_bytes),
        mib(malloc.free_bytes),
    );
    if malloc.walk_errors > 0 {
        text.push_str(&format!(", {} could not be read completely", several(malloc.walk_errors, heap)));
    }
    text
}

fn limit_text(charge: &ChargeRecord) -> String {
    let place = format!("cgroup {}, {}", charge.version, charge.cgroup);
    match charge.limit_bytes {
        Some(limit) => format!(
            "{}, {} charged ({place})",
            Bytes(limit),
            share(charge.usage_bytes, limit).map_or("an unknown share".to_owned(), |share| format!("{share}%"))
        ),
        None => format!("none ({place})"),
    }
}

/// The start of a command line, in whole words unless the first one is too long.
fn shortened(command: &str) -> String {
    let Some((end, _)) = command.char_indices().nth(COMMAND_CHARS_MAX) else { return command.to_owned() };
    let kept = &command[..end];
    format!("{} ... (--json)", kept.rsplit_once(' ').map_or(kept, |(words, _)| words))
}

/// A sentence on why RSS exceeds the heap, and one that names the largest owners.
pub(super) fn answer(account: &AccountRecord) -> String {
    let heap = account.heap_bytes();
    let total = account.total_bytes;
    let ratio = total as f64 / heap.max(1) as f64;
    let mut text = format!("RSS is {}, ", Bytes(total));
    let times = if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") };
    match (rounds_to_none(heap), ratio) {
        (true, _) if account.would_return.gc_reason == Reason::NotAsked.name() => {
            text.push_str("but the Java heap could not be located in it.");
        }
        (true, _) => text.push_str("and none of it is Java heap."),
        (_, ..1.05) => text.push_str(&format!("and nearly all of it is Java heap ({}).", mib(heap))),
        _ => text.push_str(&format!("{times} times the resident Java heap ({}).", Bytes(heap))),
    }
    let mut outside: Vec<&OwnerRecord> = account.owners.iter().filter(|owner| !is_heap(&owner.name)).collect();
    outside.retain(|owner| !rounds_to_none(owner.rss_bytes));
    outside.largest_first(|owner| owner.rss_bytes);
    outside.truncate(LARGEST);
    let named = |(index, owner): (usize, &&OwnerRecord)| {
        let unit = if index == 0 { " MiB" } else { "" };
        let why = if owner.name == Owner::MallocRetained.name() { why_retained(account) } else { String::new() };
        format!("{} {}{unit}{why}", label(&owner.name), mib(owner.rss_bytes))
    };
    if !outside.is_empty() {
        let list: Vec<String> = outside.iter().enumerate().map(named).collect();
        text.push_str(&format!(" Largest owners outside the heap: {}.", list.join(", ")));
    }
    text
}

fn why_retained(account: &AccountRecord) -> String {
    let keeper = account.malloc.as_ref().map_or("malloc", |malloc| malloc.allocator.as_str());
    format!(" (freed by the program, kept by {keeper})")
}

// ---- The table ----

#[derive(Debug, Clone, PartialEq, Default)]
struct Row {
    name: String,
    what: &'static str,
    rss_bytes: u64,
    pss_bytes: u64,
    swap_bytes: u64,
}

impl Row {
    fn sum(owners: &[&OwnerRecord]) -> Self {
        let of = |size: fn(&OwnerRecord) -> u64| sum(owners.iter().map(|owner| size(owner)));
        let (rss_bytes, pss_bytes) = (of(|owner| owner.rss_bytes), of(|owner| owner.pss_bytes));
        Self { rss_bytes, pss_bytes, swap_bytes: of(|owner| owner.swap_bytes), ..Self::default() }
    }
}

/// The owners as rows in account order. Owners that would print as 0.0 share a row, so that the rows add up to RSS.
/// `unexplained` always has its own row.
fn rows(account: &AccountRecord) -> Vec<Row> {
    let row = |owner: &OwnerRecord| Row {
        name: label(&owner.name).to_owned(),
        what: owner::what(&owner.name),
        ..Row::sum(std::slice::from_ref(&owner))
    };
    let (last, owned): (Vec<_>, Vec<_>) =
        account.owners.iter().partition(|owner| owner.name == Owner::Unexplained.name());
    let small = |owner: &&OwnerRecord| rounds_to_none(owner.rss_bytes) && rounds_to_none(owner.swap_bytes);
    let (small, shown): (Vec<_>, Vec<_>) = owned.into_iter().partition(small);
    let mut rows: Vec<Row> = shown.into_iter().map(row).collect();
    let together = Row::sum(&small);
    match small.as_slice() {
        _ if together.rss_bytes == 0 => {}
        [one] => rows.push(row(one)),
        several => {
            let name = format!("{} smaller owners", several.len());
            rows.push(Row { name, what: "under 0.05 MiB each", ..together });
        }
    }
    let none = OwnerRecord {
        name: Owner::Unexplained.name().to_owned(),
        rss_bytes: account.unexplained_bytes,
        pss_bytes: account.unexplained_bytes,
        ..OwnerRecord::default()
    };
    rows.push(row(last.first().copied().unwrap_or(&none)));
    rows
}

pub(super) fn owners(account: &AccountRecord) -> Table {
    let rows = rows(account);
    let swap = sum(rows.iter().map(|row| row.swap_bytes));
    let (rss_bytes, pss_bytes) = (account.total_bytes, account.pss_bytes);
    let total = Row { name: "RSS".to_owned(), what: "", rss_bytes, pss_bytes, swap_bytes: swap };
    let swapped = !rounds_to_none(swap);
    let head = match swapped {
        // Swap replaces the share columns.
        true => ["owner", "RSS", "PSS", "swap", "what it is"],
        false => ["owner", "RSS", "PSS", "%", "what it is"],
    };
    let line = |row: &Row| {
        let third = match swapped {
            true => mib(row.swap_bytes),
            false => share(row.rss_bytes, account.total_bytes).unwrap_or_else(dash),
        };
        vec![row.name.clone(), mib(row.rss_bytes), mib(row.pss_bytes), third, row.what.to_owned()]
    };
    let title = if swapped { "account, MiB" } else { "account, MiB and % of RSS" };
    let shared = (!rounds_to_none(rss_bytes.abs_diff(pss_bytes)))
        .then(|| "PSS splits each shared page among its processes; RSS counts it in full.".to_owned());
    let table = Table::new(title, head, rows.iter().chain([&total]).map(line)).worded(1, 1);
    table.noted(shared.into_iter().chain([cost(account)]))
}

/// The effect of the measurement on the JVM.
fn cost(account: &AccountRecord) -> String {
    let added = account.observer_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let added = match (added, &account.told) {
        (None | Some(0), Some(ToldRecord { by: ToldBy::Tables, .. })) => {
            "Loadline did not attach to the JVM and added no memory to it. ".to_owned()
        }
        (Some(bytes), _) => format!("Weighing added at most {} to the RSS above. ", Bytes(bytes)),
        (None, _) => String::new(),
    };
    let took = milliseconds(account.took_ms);
    let reading = if account.took_ms < 1e3 { format!("{took} ms") } else { format!("{:.1} s", account.took_ms / 1e3) };
    match account.pause_ms {
        Some(pause) => {
            let pause = milliseconds(pause);
            format!("{added}Reading took {took} ms, including {pause} ms with the JVM's threads paused.")
        }
        None => format!("{added}The JVM kept running while it was read ({reading}), so some rows may be inconsistent."),
    }
}

// ---- After the table ----

fn beside(document: &AccountDocument, account: &AccountRecord) -> Vec<(String, String)> {
    let (mark, trimmed) = (&document.mark, next::trim(document.jvm.pid));
    // A heap dump and a count of live objects both begin with a full collection.
    let dumped = document.explanation.iter().filter_map(|found| found.heap.as_ref()).map(|heap| heap.live_bytes);
    let live = document.objects.iter().map(|objects| objects.total.bytes).chain(dumped).next();
    let would = &account.would_return;
    let because = |why: &str| if why.is_empty() { String::new() } else { format!(": {why}") };
    let gc = match (would.gc_bytes, would.gc_grown_bytes) {
        (Some(0), Some(grown)) if !rounds_to_none(grown) => {
            format!("would return nothing and increase RSS by {}{}", Bytes(grown), because(&would.gc_why))
        }
        (Some(bytes), _) if rounds_to_none(bytes) => format!("would return nothing{}", because(&would.gc_why)),
        (Some(bytes), _) => format!("would return {}{}", Bytes(bytes), because(&would.gc_why)),
        (None, _) => match live {
            Some(live) => format!("the full GC of this run left {} of live objects", Bytes(live)),
            None => format!("unknown{}", because(&would.gc_why)),
        },
    };
    let trim = match would.trim_bytes {
        Some(0) if !would.trim_why.is_empty() => format!("would return nothing{}", because(&would.trim_why)),
        Some(bytes) => format!("would return {}; run {trimmed}", Bytes(bytes)),
        None if document.bundle.is_some() && next::trims(document) => {
            format!("unknown; in the container, run {trimmed}, which prints how much it released")
        }
        None => format!("unknown{}", because(&would.trim_why)),
    };
    let mut facts = Facts::default();
    facts.add("full GC", gc);
    facts.add("trim", trim);
    facts.add("charge", mark.charge.as_ref().map(|charge| charge_text(mark, charge)));
    facts.0
}

/// The charge by kind, and why it differs from RSS.
fn charge_text(mark: &Mark, charge: &ChargeRecord) -> String {
    let kinds = [
        ("anon", Some(charge.anon_bytes)),
        ("file", Some(charge.file_bytes)),
        ("shmem", Some(charge.shmem_bytes)),
        ("kernel", charge.kernel_bytes),
    ];
    let known = || kinds.into_iter().filter_map(|(kind, bytes)| Some((kind, bytes?)));
    let parts: Vec<String> = known().map(|(kind, bytes)| format!("{kind} {}", mib(bytes))).collect();
    let mut text = format!("{} = {}", Bytes(charge.usage_bytes), parts.join(" + "));
    let listed = sum(known().map(|(_, bytes)| bytes));
    let rest = charge.usage_bytes.abs_diff(listed);
    if !rounds_to_none(rest) {
        let sign = if charge.usage_bytes > listed { '+' } else { '-' };
        text.push_str(&format!(" {sign} rest {}", mib(rest)));
    }
    text.push_str(&match charge.processes {
        0 | 1 => format!(". {}.", why_charge_differs(mark, charge)),
        n => format!(". The charge covers all {n} processes in the cgroup."),
    });
    text
}

/// Compares RSS with the charge of a cgroup that has no other processes.
fn why_charge_differs(mark: &Mark, charge: &ChargeRecord) -> String {
    let difference = charge.usage_bytes.abs_diff(mark.rss_bytes);
    let more = if charge.usage_bytes > mark.rss_bytes { "more" } else { "less" };
    let text = match rounds_to_none(difference) {
        true => "The charge equals RSS".to_owned(),
        false => format!("The charge is {} {more} than RSS", Bytes(difference)),
    };
    let cached = charge.file_bytes.saturating_add(charge.shmem_bytes);
    let mapped = mark.file_bytes.filter(|mapped| !rounds_to_none(mapped.abs_diff(cached)));
    let mapped = mapped.map(|mapped| match (mapped > cached, Bytes(mapped.abs_diff(cached))) {
        (true, size) => format!("{size} of file pages is charged to other cgroups, which read them first"),
        (false, size) => format!("{size} is page cache that the JVM does not map"),
    });
    let kernel = charge.kernel_bytes.filter(|kernel| !rounds_to_none(*kernel));
    let kernel = kernel.map(|kernel| format!("{} is kernel memory, which RSS does not count", Bytes(kernel)));
    let is_unseen = |row: &&ChargeRow| row.kind == ChargeKind::Anonymous && row.pid.is_none();
    let unseen = charge.rows.iter().find(is_unseen).filter(|row| row.bytes >= UNSEEN_MIN);
    let unseen = unseen.map(|row| {
        let bytes = Bytes(row.bytes.unsigned_abs());
        format!("{bytes} of anonymous memory belongs to processes not visible from here, so the cgroup may be shared")
    });
    let reasons: Vec<String> = mapped.into_iter().chain(kernel).chain(unseen).collect();
    if reasons.is_empty() { text } else { format!("{text}: {}", reasons.join(", and ")) }
}

// ---- Numbers ----

/// A percentage with one decimal; `None` if the whole is 0.
fn share(part: u64, of: u64) -> Option<String> {
    (of > 0).then(|| format!("{:.1}", part as f64 / of as f64 * 100.0))
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
