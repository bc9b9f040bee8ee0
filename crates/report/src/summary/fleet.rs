//! The page of a fleet: services with their line and current limit, services without an answer and what they need, and
//! the possible savings. All fleet reports use these values.

use super::cells::{beginning, end, mib, signed};
use super::doubts::doubts;
use super::next;
use super::summarize;
use super::watch::{columns, sparks};
use crate::page::{Depth, Page, Part, Section, Topic, Verdict};
use crate::record::{DoubtRecord, FleetDocument, LineVerdict, NodeRecord, ServiceRecord};
use crate::screen::Glyphs;
use crate::table::Table;
use crate::units::{Bytes, grouped, several};
use crate::words::{NONE, dash, word_of};
use loadline_base::order::Order as _;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Columns of printed output.
const WIDTH: usize = 80;
/// Longest name; service names differ at their ends.
const NAME_CHARS: usize = 26;
/// The longest trend, which is a month of nights, and the shortest.
const TREND_CHARS: (usize, usize) = (31, 6);
/// Maximum doubts and names shown; the document has all of them.
const TOLD_MAX: usize = 20;
const MODEL_CHARS: usize = 34;
const KERNEL_CHARS: usize = 22;
const GIB: u64 = 1 << 30;

/// The page of a fleet; trends need glyphs.
pub fn summarize_fleet(document: &FleetDocument, glyphs: Glyphs, depth: Depth) -> Page {
    let name = &document.plan.name;
    let compared = document.comparison.as_deref().map(|comparison| summarize(comparison, &[], depth));
    let Page { title, sections } = compared.unwrap_or_default();
    let number = document.services.len() as u64;
    let plan = facts(document);
    let mut all = Vec::new();
    let title = if number > 0 {
        let failing = failing(document).into_iter().map(Verdict::failing);
        let verdicts = failing.chain([Verdict::told(to_win(document))]).collect();
        let answer = std::iter::once(Part::Verdicts(verdicts)).chain(next::of_fleet(document));
        all.push(Section::new(Topic::Answer, "", answer));
        all.push(Section::new(Topic::Conditions, "the plan", [plan]));
        let tables = Part::Orders(tables(document, glyphs, depth.whole));
        all.push(Section::titled(Topic::Answer, "services", [tables]).id("services"));
        all.extend(sections);
        format!("{name}: {}", several(number, "service"))
    } else {
        let heading = format!("{name}, by nodes");
        all.extend(sections);
        all.push(Section::new(Topic::Conditions, if title.is_empty() { "the plan" } else { &heading }, [plan]));
        if title.is_empty() { heading } else { title }
    };
    let unanswered = Part::Doubts(unanswered(document)).filled();
    all.push(Section::new(Topic::Answer, "no result", unanswered));
    all.push(Section::titled(Topic::Conditions, "nodes", [Part::Table(nodes(&document.nodes))]));
    // A comparison may already have a section with the usual ID.
    all.push(doubts(&all_doubts(document)).id("doubts-of-all"));
    Page::new(title, all)
}

/// The services in each order; HTML has room for full names.
fn tables(document: &FleetDocument, glyphs: Glyphs, whole: bool) -> Vec<(&'static str, Table)> {
    let table = |(word, of): (&'static str, Vec<&ServiceRecord>)| {
        let mut table = services(&of, glyphs);
        if whole {
            table.rows.iter_mut().zip(&of).for_each(|(row, of)| row[0] = of.name.as_str().into());
        }
        (word, table)
    };
    orders(document).into_iter().map(table).collect()
}

/// The services that need action: too little in production, or a target that no limit meets.
fn failing(document: &FleetDocument) -> Vec<String> {
    let fails = |of: &&ServiceRecord| of.wasted_bytes.is_some_and(|wasted| wasted < 0) || fails(of);
    let all: Vec<&ServiceRecord> = by_waste(document).into_iter().filter(fails).collect();
    let told = all.iter().take(TOLD_MAX).map(|of| format!("{}: {}", of.name, of.text));
    let more = all.len().saturating_sub(TOLD_MAX) as u64;
    let more = (more > 0).then(|| format!("and {} more (see the table)", several(more, "service")));
    told.chain(more).collect()
}

/// Whether the target is missed with any limit, or with the current one.
fn fails(of: &ServiceRecord) -> bool {
    of.verdict == LineVerdict::NotHeld || of.is_below_line()
}

/// The services that lack the most memory first, then the most wasteful, then the unknown ones.
pub(crate) fn by_waste(document: &FleetDocument) -> Vec<&ServiceRecord> {
    let order = |of: &ServiceRecord| match of.wasted_bytes {
        Some(wasted @ ..0) => (0, wasted),
        Some(wasted) => (1, -wasted),
        None => (2, 0),
    };
    ordered(&document.services, |of| (order(of), of.index))
}

fn orders(document: &FleetDocument) -> Vec<(&'static str, Vec<&ServiceRecord>)> {
    let by =
        |key: &dyn Fn(&ServiceRecord) -> Option<u64>| ordered(&document.services, |of| (Reverse(key(of)), of.index));
    let verdict = |of: &&ServiceRecord| ALL.iter().rev().position(|verdict| *verdict == of.verdict);
    vec![
        ("wasted", by_waste(document)),
        ("service", ordered(&document.services, |of| of.name.clone())),
        ("line", by(&|of| of.line.as_ref().map(|line| line.limit_bytes))),
        ("declared", by(&|of| of.declared_bytes)),
        ("verdict", ordered(&document.services, |of| (verdict(of), of.index))),
    ]
}

/// The services sorted by a key.
fn ordered<K: Ord>(services: &[ServiceRecord], key: impl Fn(&&ServiceRecord) -> K) -> Vec<&ServiceRecord> {
    let mut services: Vec<&ServiceRecord> = services.iter().collect();
    services.order_by_key(key);
    services
}

/// Every verdict on a line.
pub(crate) const ALL: [LineVerdict; 9] = [
    LineVerdict::Proved,
    LineVerdict::First,
    LineVerdict::Same,
    LineVerdict::Lower,
    LineVerdict::Higher,
    LineVerdict::Unknown,
    LineVerdict::Missing,
    LineVerdict::Failed,
    LineVerdict::NotHeld,
];

fn word(verdict: LineVerdict) -> String {
    match verdict {
        LineVerdict::Proved => "passed".to_owned(),
        LineVerdict::NotHeld => "missed".to_owned(),
        verdict => word_of(verdict),
    }
}

/// A row per service, in this order.
fn services(of: &[&ServiceRecord], glyphs: Glyphs) -> Table {
    let row = |of: &&ServiceRecord| {
        let line = of.line.as_ref().map(|line| line.limit_bytes);
        let wasted = of.wasted_bytes.map_or_else(dash, |wasted| signed(wasted, mib));
        let cpu = if of.other_cpu { "*" } else { "" };
        let verdict = format!("{}{cpu}", word(of.verdict));
        vec![end(&of.name, NAME_CHARS), mib(line), mib(of.last_bytes), mib(of.declared_bytes), wasted, verdict]
    };
    let head = ["service", "line", "last", "declared", "wasted", "verdict"];
    let mut table = Table::new("load lines, MiB", head, of.iter().map(row)).worded(1, 1);
    let has_past = of.iter().any(|of| !of.past.is_empty());
    if glyphs == Glyphs::Blocks && has_past {
        let room = WIDTH.saturating_sub(columns(&table) + 2).clamp(TREND_CHARS.1, TREND_CHARS.0);
        table.head.push("trend".to_owned());
        table.words = 2;
        table.rows.iter_mut().zip(of).for_each(|(row, of)| row.push(trend(of, room, glyphs).into()));
    }
    let other = of.iter().any(|of| of.other_cpu).then_some(" *: found on a different CPU model than last time.");
    let note = "wasted: the declared limit minus the limit to set (the load line plus headroom).";
    table.noted([format!("{note}{}", other.unwrap_or_default())])
}

/// The lines of recent nights and tonight.
fn trend(of: &ServiceRecord, width: usize, glyphs: Glyphs) -> String {
    let now = of.line.as_ref().map(|line| line.limit_bytes);
    let nights: Vec<Option<u64>> = of.past.iter().map(|past| Some(past.limit_bytes)).chain([now]).collect();
    let latest = &nights[nights.len().saturating_sub(width)..];
    if of.past.is_empty() { String::new() } else { sparks(latest, width, glyphs.all()) }
}

fn facts(document: &FleetDocument) -> Part {
    let (plan, standing) = (&document.plan, &document.standing);
    let made = format!("made {} by loadline {}, {}", plan.made, plan.loadline, plan.hash.get(..12).unwrap_or_default());
    let count = |indexes: &[u32], what: &str| (!indexes.is_empty()).then(|| format!("{} {what}", indexes.len()));
    let mut entries =
        vec![format!("{} of {} have a result", grouped(standing.answered.into()), grouped(plan.entries.into()))];
    entries.extend(count(&standing.missing, "missing"));
    entries.extend(count(&standing.failed, "failed"));
    entries.extend(count(&standing.double, "duplicate (the first result counts)"));
    let nodes = several(document.nodes.len() as u64, "node");
    let nodes = format!("{nodes}, {:.1} node-hours", document.node_seconds / 3600.0);
    Part::facts([("plan", made), ("entries", entries.join(", ")), ("nodes", nodes)])
}

/// The services without an answer, with what to do.
pub fn unanswered(document: &FleetDocument) -> Vec<(String, String)> {
    let standing = &document.standing;
    let service = |index: &u32| document.services.iter().find(|of| of.index == *index);
    let mut told = Vec::new();
    if !standing.missing.is_empty() {
        let mut names: Vec<&str> = standing.missing.iter().filter_map(service).map(|of| of.name.as_str()).collect();
        let more = names.len().saturating_sub(TOLD_MAX);
        names.truncate(TOLD_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) };
        let indexes = ranges(&standing.missing);
        let again = format!("restart {indexes}; `loadline work` skips completed entries");
        told.push((format!("no result yet: {indexes}{names}"), again));
    }
    let failed = |index: &u32| match service(index) {
        Some(of) => (format!("{} ({index}): {}", of.name, of.text), next(of.verdict).to_owned()),
        None => (format!("entry {index} ended without a result"), next(LineVerdict::Failed).to_owned()),
    };
    told.extend(standing.failed.iter().map(failed));
    let is_open = |of: &&ServiceRecord| of.verdict == LineVerdict::Unknown && !standing.failed.contains(&of.index);
    let open = document.services.iter().filter(is_open);
    told.extend(open.map(|of| (format!("{} ({}): {}", of.name, of.index, of.text), GAVE_UP.to_owned())));
    told
}

const GAVE_UP: &str = "allow more trials (`find.trials_max`), or check its node for other load";

fn next(verdict: LineVerdict) -> &'static str {
    match verdict {
        LineVerdict::Unknown => {
            "allow more minutes in a new plan, or run it again with another `--out` and merge both results"
        }
        _ => {
            "fix the reported problem, run it again with another `--out`, and merge both results; `loadline doctor` \
                shows what the node is missing"
        }
    }
}

/// Ascending numbers in the syntax of engines: `4,17,209-212`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let shown = runs.filter_map(|run| match run {
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
        [] => None,
    });
    shown.collect::<Vec<_>>().join(",")
}

/// Groups nodes with the same machine.
fn nodes(nodes: &[NodeRecord]) -> Table {
    let mut kinds: BTreeMap<[String; 4], Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let machine = &node.machine;
        let model = machine.cpu_model.as_deref().unwrap_or(NONE);
        let (model, kernel) = (beginning(model, MODEL_CHARS), beginning(&machine.kernel, KERNEL_CHARS));
        let kind = [node.cpus.to_string(), model, kernel, machine.cgroup.clone()];
        kinds.entry(kind).or_default().push(&node.name);
    }
    let row = |(kind, names): (&[String; 4], &Vec<&str>)| {
        let name = match names.as_slice() {
            [one] => end(one, NAME_CHARS),
            all => several(all.len() as u64, "node"),
        };
        std::iter::once(name).chain(kind.clone()).collect::<Vec<_>>()
    };
    Table::new("nodes", ["nodes", "CPUs", "model", "kernel", "cgroup"], kinds.iter().map(row)).worded(1, 3)
}

/// The plan's doubts, then the services' doubts with names.
fn all_doubts(document: &FleetDocument) -> Vec<DoubtRecord> {
    let of_service = |of: &ServiceRecord| {
        let named = |doubt: &DoubtRecord| DoubtRecord { text: format!("{}: {}", of.name, doubt.text), ..doubt.clone() };
        of.doubts.iter().map(named).collect::<Vec<_>>()
    };
    let mut all: Vec<DoubtRecord> = document.services.iter().flat_map(of_service).collect();
    // Groups doubts with the same next step.
    all.order_by(|one, other| one.next.cmp(&other.next));
    all.splice(0..0, document.doubts.iter().cloned());
    let more = all.len().saturating_sub(TOLD_MAX);
    all.truncate(TOLD_MAX);
    if let Some(last) = all.last_mut().filter(|_| more > 0) {
        last.text = format!("{} (and {more} more doubts in the document)", last.text);
    }
    all
}

/// The possible saving: `12 services could save 3.4 GiB in total`.
fn to_win(document: &FleetDocument) -> String {
    let winning = document.services.iter().filter(|of| of.wasted_bytes.is_some_and(|wasted| wasted > 0)).count() as u64;
    let bytes = document.wasted_bytes;
    let size = if bytes < GIB { Bytes(bytes).to_string() } else { format!("{:.1} GiB", bytes as f64 / GIB as f64) };
    match winning {
        0 => "no savings: no service is known to have more memory than it needs".to_owned(),
        _ => format!("{} could save {size} in total", several(winning, "service")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet_sample;
    use crate::terminal::render;

    #[test]
    fn a_fleet_is_ordered_from_insufficient_limits_to_savings() {
        insta::assert_snapshot!(render(&summarize_fleet(&fleet_sample::fleet(), Glyphs::Blocks, Depth::default())));
    }

    #[test]
    fn an_ascii_fleet_table_has_no_trend() {
        let (_, table) = tables(&fleet_sample::fleet(), Glyphs::Ascii, false).remove(0);
        assert_eq!(table.head, ["service", "line", "last", "declared", "wasted", "verdict"]);
        assert!(table.rows.iter().all(|row| row.iter().all(|cell| cell.to_string().is_ascii())));
    }

    #[test]
    fn the_table_fits_its_terminal() {
        let mut document = fleet_sample::fleet();
        for of in &mut document.services {
            of.name = format!("{}{}", of.name, "-of-the-northern-region");
            of.past = (0..30).map(|at| crate::scenario::PastLine { at: String::new(), limit_bytes: at }).collect();
        }
        let text = render(&summarize_fleet(&document, Glyphs::Blocks, Depth::default()));
        let wide = text.lines().find(|line| line.chars().count() > WIDTH);
        assert_eq!(wide, None);
    }

    #[test]
    fn every_order_has_every_service_once() {
        let document = fleet_sample::fleet();
        let orders = orders(&document);
        for (word, order) in &orders {
            let mut indexes: Vec<u32> = order.iter().map(|of| of.index).collect();
            indexes.sort_unstable();
            assert_eq!(indexes, (0..11).collect::<Vec<_>>(), "{word}");
        }
        let names = |at: usize| orders[at].1.iter().map(|of| &of.name[..1]).collect::<String>();
        let orders = [0, 1, 2, 4].map(names);
        assert_eq!(orders, ["efdcabghijk", "abcdefghijk", "fecadbghijk", "gijkhedcbaf"]);
    }

    #[test]
    fn indexes_are_printed_as_ranges_for_schedulers() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[0, 1, 4, 17, 18, 19, u32::MAX]), "0-1,4,17-19,4294967295");
    }

    #[test]
    fn possible_savings_have_a_suitable_unit() {
        let of = |bytes: u64| to_win(&FleetDocument { wasted_bytes: bytes, ..fleet_sample::fleet() });
        assert_eq!(of(3 << 30), "3 services could save 3.0 GiB in total");
        assert_eq!(of(96 << 20), "3 services could save 96.0 MiB in total");
        let nothing = FleetDocument { services: Vec::new(), wasted_bytes: 0, ..fleet_sample::fleet() };
        assert_eq!(to_win(&nothing), "no savings: no service is known to have more memory than it needs");
    }
}
