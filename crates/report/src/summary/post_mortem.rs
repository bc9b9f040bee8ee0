//! The page of a JVM that ended: the cause, its last memory, what grew, and the memory it would have needed.

use super::cells::mib;
use super::watch::{PARTS_NOTE, by_owner, charged, grown, part_name, told, weighed};
use crate::chart::last_hours;
use crate::owner::{self, Owner};
use crate::page::{Literal, Page, Part, Section, Topic};
use crate::record::{DeathCause, EndKind, PostMortem, WatchChange, WatchPart};
use crate::table::Table;
use crate::units::{Bytes, roughly, several, utc};
use crate::words::dash;

/// Memory retained by malloc is reported above this fraction of the limit (reciprocal).
const RETAINED_PART: u64 = 20;

/// The page on how a JVM ended.
pub fn summarize_post_mortem(of: &PostMortem) -> Page {
    let held = if of.course.parts.is_empty() { by_owner("memory at the end, MiB", &of.owners) } else { parts(of) };
    let mut memory = vec![Part::Table(held)];
    memory.extend(of.account.iter().flat_map(|account| weighed(account, 0, "before the end")));
    memory.extend(Part::Table(by_account(of)).filled());
    let title = "accounts on record".to_owned();
    let accounts = Part::Literal(Literal { title, lines: of.accounts.clone() });
    let spoilt = format!("the history has {} that are damaged and were ignored", several(of.spoilt, "record"));
    let sections = [
        Section::new(Topic::Answer, "", [Part::Text(answer(of)), facts(of)]),
        Section::titled(Topic::Course, "last hours", last_hours(of).map(Part::figure)),
        Section::titled(Topic::Memory, "memory", memory),
        Section::titled(Topic::Details, "accounts", accounts.filled()),
        Section::new(Topic::Doubts, "", (of.spoilt > 0).then(|| Part::Doubts(vec![(spoilt, String::new())]))),
    ];
    Page::new(format!("{}, post-mortem by loadline {}", of.name, of.loadline), sections)
}

/// Each part's final size, and its change over each known time span.
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
    let head = ["".to_owned(), "at end".to_owned()].into_iter().chain(over).chain(["cap".to_owned()]);
    let title = "memory at the end and its growth before that, MiB";
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
        (EndKind::Unseen, _) => {
            "`loadline watch` did not see the JVM exit: the JVM is still running, or `loadline watch` stopped first."
                .to_owned()
        }
        (EndKind::Ended, _) => "The JVM exited, and no OOM kill was recorded.".to_owned(),
        (EndKind::Killed, Some("")) => {
            format!("The kernel killed the JVM because the machine ran out of memory ({}).", of.source)
        }
        (EndKind::Killed, Some(cgroup)) => {
            format!("The kernel killed the JVM at the {limit} limit of {cgroup} ({}).", of.source)
        }
        (EndKind::Killed, None) => format!("The kernel killed the JVM because memory ran out ({}).", of.source),
    };
    let cause = match of.cause {
        DeathCause::None => far_from_limit(of),
        DeathCause::Leak => {
            format!("It {}. Treat that as a leak: a larger limit only delays the failure.", told(&of.growth))
        }
        DeathCause::Ceilings => match of.ceilings_bytes {
            Some(ceilings) => format!(
                "There was no leak, because its live heap did not grow. But its settings allow {}, and the limit is \
                 {limit}. Cap the heap and direct memory, or raise the limit.",
                Bytes(ceilings)
            ),
            None => format!("There was no leak, but no setting caps its memory, and the limit is {limit}."),
        },
        DeathCause::Native => "No JVM setting limits the part that grew, mostly malloc memory used by native code or \
             by the JVM itself. It was observed too briefly to tell a leak from a burst."
            .to_owned(),
        DeathCause::OtherProcesses => {
            let sizes = of.charge.as_ref().map_or([0; 2], |charge| [charge.others_bytes, charge.jvm_bytes]);
            let [others, jvm] = sizes.map(Bytes);
            format!(
                "In the last sample, other processes in its cgroup held {others} and the JVM {jvm}. No JVM setting \
                 limits the larger part. Run fewer helper processes at once, or raise the limit by their size."
            )
        }
        DeathCause::Unknown => "The JVM's samples do not explain why it came so close to its limit; `loadline \
                                post-mortem` names every process of the cgroup."
            .to_owned(),
    };
    let near = of.cause != DeathCause::None;
    let grew = of.grew.as_ref().filter(|_| near).map(|change| {
        let by = Bytes(change.after_bytes.saturating_sub(change.before_bytes));
        format!(" In the last {}, {} grew by {by}.", roughly(change.over_s as f64), told_part(&change.name))
    });
    let retained = of.account.as_ref().filter(|_| near).map_or(0, |account| {
        let free = account.owners.iter().find(|own| own.name == Owner::MallocRetained.name());
        free.map_or(0, |own| own.bytes)
    });
    let retained = (retained > of.limit_bytes / RETAINED_PART).then(|| {
        format!(" malloc still held {} that the program had freed (`loadline tune`, docs/memory.md).", Bytes(retained))
    });
    let least = if of.cause == DeathCause::Ceilings { "about" } else { "at least" };
    let needed =
        of.needed_bytes.filter(|_| near).map(|bytes| format!(" The JVM would have needed {least} {}.", Bytes(bytes)));
    let more: String = [grew, retained, needed].into_iter().flatten().collect();
    format!("{ended} {cause}{more}")
}

/// How far the JVM stayed below its limit; a charge at the limit may be page cache, which does not cause kills.
fn far_from_limit(of: &PostMortem) -> String {
    let kept = of.last.unreclaimable_bytes.unwrap_or(0);
    match of.last.charge_bytes.filter(|charge| of.limit_bytes > 0 && *charge >= of.limit_bytes / 10 * 9) {
        Some(charge) => format!(
            "Its cgroup was charged {} of {}, but only {} of that could not be reclaimed. The rest was page cache, \
             which the kernel reclaims before an OOM kill.",
            Bytes(charge),
            Bytes(of.limit_bytes),
            Bytes(kept)
        ),
        None => "The JVM was not near its limit.".to_owned(),
    }
}

fn told_part(name: &str) -> &str {
    match name {
        "heap" => "its live heap",
        "rest" => "memory outside the JVM's known parts",
        other => other,
    }
}

fn facts(of: &PostMortem) -> Part {
    let version = of.version.as_deref().unwrap_or("of an unknown version");
    let collector = of.collector.as_deref().unwrap_or("an unknown collector");
    let started = utc(of.started_unix_s as f64);
    let killed = of.killed_anon_bytes.map(|bytes| format!("{} anonymous, according to the kernel log", Bytes(bytes)));
    let own = [
        ("jvm", format!("pid {}, {version}, {collector}", of.pid)),
        ("ran", of.ran.clone()),
        ("lifetime", format!("from {started} for {}", roughly(of.age_s))),
        ("verdict", told(&of.growth)),
        ("at the kill", killed.unwrap_or_default()),
    ];
    Part::facts(own.into_iter().chain(of.charge.iter().flat_map(charged)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::WatchSample;

    #[test]
    fn a_charge_at_the_limit_is_not_described_as_far_below_it() {
        let of = |charge_mib: u64| PostMortem {
            limit_bytes: 84 << 20,
            last: WatchSample {
                charge_bytes: Some(charge_mib << 20),
                unreclaimable_bytes: Some(60 << 20),
                ..WatchSample::default()
            },
            ..PostMortem::default()
        };
        let full = answer(&of(84));
        assert!(full.contains("charged 84.0 MiB of 84.0 MiB, but only 60.0 MiB of that could not"), "{full}");
        assert!(answer(&of(62)).ends_with("The JVM was not near its limit."));
    }
}
