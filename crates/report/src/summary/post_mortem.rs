//! The page of a JVM that ended: the cause, its memory at the end, what grew, and the memory it would have needed.

use super::cells::mib;
use super::watch::{PARTS_NOTE, by_owner, charged, grown, part_name, told, weighed};
use crate::chart::last_hours;
use crate::owner::{self, Owner};
use crate::page::{Literal, Page, Part, Section, Topic};
use crate::record::{DeathCause, EndKind, PostMortem, WatchChange, WatchPart};
use crate::table::Table;
use crate::units::{Bytes, roughly, several, utc};
use crate::words::dash;

/// Memory that malloc retained is reported above this part of the limit: its reciprocal.
const RETAINED_PART: u64 = 20;

/// Summarizes the end of a JVM.
pub fn summarize_post_mortem(of: &PostMortem) -> Page {
    let held = if of.course.parts.is_empty() { by_owner("what it held last, MiB", &of.owners) } else { parts(of) };
    let mut memory = vec![Part::Table(held)];
    memory.extend(of.account.iter().flat_map(|account| weighed(account, 0, "before the end")));
    memory.extend(Part::Table(by_account(of)).filled());
    let title = "its accounts".to_owned();
    let accounts = Part::Literal(Literal { title, lines: of.accounts.clone() });
    let spoilt = format!("{} of its history are damaged and do not count", several(of.spoilt, "record"));
    let sections = [
        Section::new(Topic::Answer, "", [Part::Text(answer(of)), facts(of)]),
        Section::titled(Topic::Course, "its last hours", last_hours(of).map(Part::figure)),
        Section::titled(Topic::Memory, "memory", memory),
        Section::titled(Topic::Details, "accounts", accounts.filled()),
        Section::new(Topic::Doubts, "", (of.spoilt > 0).then(|| Part::Doubts(vec![(spoilt, String::new())]))),
    ];
    Page::new(format!("{}, as loadline {} saw it end", of.name, of.loadline), sections)
}

/// Lists the size of each part at the end, and its change over each time known.
fn parts(of: &PostMortem) -> Table {
    let mut spans: Vec<u64> = of.changes.iter().map(|change| change.over_s).collect();
    spans.sort_unstable();
    spans.dedup();
    let row = |part: &WatchPart| {
        let change = |over_s: &u64| {
            let of_part = |change: &&WatchChange| change.over_s == *over_s && change.name == part.name;
            of.changes.iter().find(of_part).map_or_else(dash, grown)
        };
        let [held, bound] = [part.bytes, part.bound_bytes].map(mib);
        let changes = spans.iter().map(change);
        [part_name(&part.name).to_owned(), held].into_iter().chain(changes).chain([bound]).collect()
    };
    let over = spans.iter().map(|span| format!("in {}", roughly(*span as f64)));
    let head = ["".to_owned(), "held".to_owned()].into_iter().chain(over).chain(["bound".to_owned()]);
    let title = "what it held last, and how much that had grown, MiB";
    Table::new(title, head, of.course.parts.iter().map(row)).noted(vec![PARTS_NOTE.to_owned()])
}

fn by_account(of: &PostMortem) -> Table {
    let row = |change: &WatchChange| {
        let sizes = [change.before_bytes, change.after_bytes].map(mib);
        [owner::label(&change.name).to_owned()].into_iter().chain(sizes).chain([grown(change)]).collect()
    };
    let over = of.by_account.first().map_or(0, |change| change.over_s);
    let title = format!("from the first account to the last, {}, MiB", roughly(over as f64));
    Table::new(title, ["owner", "before", "after", "change"], of.by_account.iter().map(row))
}

fn answer(of: &PostMortem) -> String {
    let limit = Bytes(of.limit_bytes);
    let ended = match (of.end, of.killed_by.as_deref()) {
        (EndKind::Unseen, _) => "Its end was not seen: it still runs, or the watch ended first.".to_owned(),
        (EndKind::Ended, _) => "It ended, and the kernel did not kill it for lack of memory.".to_owned(),
        (EndKind::Killed, Some("")) => {
            format!("The kernel killed it because the machine ran out of memory ({}).", of.source)
        }
        (EndKind::Killed, Some(cgroup)) => {
            format!("The kernel killed it at the limit of {limit} of {cgroup} ({}).", of.source)
        }
        (EndKind::Killed, None) => format!("The kernel killed it for lack of memory ({}).", of.source),
    };
    let cause = match of.cause {
        DeathCause::None => "It was not near its limit.".to_owned(),
        DeathCause::Leak => {
            format!("It {}. Treat that as a leak: a larger limit only delays it.", told(&of.growth))
        }
        DeathCause::Ceilings => match of.ceilings_bytes {
            Some(ceilings) => format!(
                "Nothing leaked: its live heap did not grow, but its settings allow {}, and the limit is \
                 {limit}. Bound heap and direct memory, or give it more.",
                Bytes(ceilings)
            ),
            None => format!("Nothing leaked, but nothing bounds its parts either, and the limit is {limit}."),
        },
        DeathCause::Native => "No setting of the JVM bounds the part that grew: mostly memory of malloc, for native \
                               code or for the JVM itself. It was seen too briefly to tell a leak from a burst."
            .to_owned(),
        DeathCause::OtherProcesses => {
            let sizes = of.charge.as_ref().map_or([0; 2], |charge| [charge.others_bytes, charge.jvm_bytes]);
            let [others, jvm] = sizes.map(Bytes);
            format!(
                "At the last sample other processes of its cgroup held {others}, the JVM {jvm}: no setting of the JVM \
                 bounds the larger part. Allow fewer helpers at once, or raise the limit by what they take."
            )
        }
        DeathCause::Unknown => "The samples of the JVM do not explain why it came so close to its limit; `loadline \
                                post-mortem` names every process of the cgroup."
            .to_owned(),
    };
    let near = of.cause != DeathCause::None;
    let grew = of.grew.as_ref().filter(|_| near).map(|change| {
        let by = Bytes(change.after_bytes.saturating_sub(change.before_bytes));
        format!(" In its last {} {} grew by {by}.", roughly(change.over_s as f64), told_part(&change.name))
    });
    let retained = of.account.as_ref().filter(|_| near).map_or(0, |account| {
        let free = account.owners.iter().find(|own| own.name == Owner::MallocRetained.name());
        free.map_or(0, |own| own.bytes)
    });
    let retained = (retained > of.limit_bytes / RETAINED_PART).then(|| {
        format!(" {} of it held nothing: malloc kept them (`loadline tune`, docs/memory.md).", Bytes(retained))
    });
    let least = if of.cause == DeathCause::Ceilings { "some" } else { "at least" };
    let needed =
        of.needed_bytes.filter(|_| near).map(|bytes| format!(" It would have needed {least} {}.", Bytes(bytes)));
    let more: String = [grew, retained, needed].into_iter().flatten().collect();
    format!("{ended} {cause}{more}")
}

/// A part in a sentence.
fn told_part(name: &str) -> &str {
    match name {
        "heap" => "its live heap",
        "rest" => "everything outside of the JVM's own parts",
        other => other,
    }
}

fn facts(of: &PostMortem) -> Part {
    let version = of.version.as_deref().unwrap_or("of an unknown version");
    let collector = of.collector.as_deref().unwrap_or("an unknown collector");
    let started = utc(of.started_unix_s as f64);
    let killed = of.killed_anon_bytes.map(|bytes| format!("{} anonymous, by the kernel's log", Bytes(bytes)));
    let own = [
        ("jvm", format!("pid {}, {version}, {collector}", of.pid)),
        ("ran", of.ran.clone()),
        ("life", format!("from {started} for {}", roughly(of.age_s))),
        ("verdict", told(&of.growth)),
        ("at the kill", killed.unwrap_or_default()),
    ];
    Part::facts(own.into_iter().chain(of.charge.iter().flat_map(charged)))
}
