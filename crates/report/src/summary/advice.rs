//! Advice on sizes: what to set, the arithmetic, how much was seen, and the command that proves it.

use super::cells::{beginning, mib, rounds_to_none, size};
use super::facts::host_text;
use super::find::ways;
use crate::owner::label;
use crate::page::{Facts, Literal, Page, Part, Section, Topic, Verdict};
use crate::record::{AdviceConfidence, AdviceDocument, AdvicePart, AdviceRecord, AdviceRow, UnreadRecord, VpaRecord};
use crate::table::Table;
use crate::units::{Bytes, several};
use crate::words::{dash, word_of};

/// Room in characters for names beside the numbers.
const NAME_MAX: usize = 26;

/// Summarizes advice: in full for one JVM, a row each for several.
pub fn summarize_advice(document: &AdviceDocument) -> Page {
    let advice = &document.advice;
    let mut sections = match advice.as_slice() {
        [] => {
            vec![Section::new(Topic::Answer, "", [Part::Text("No process runs the code of a HotSpot JVM.".to_owned())])]
        }
        [one] => in_full(one),
        all => vec![Section::titled(Topic::Answer, "advice", [Part::Table(table(all))])],
    };
    let unread = |one: &UnreadRecord| (format!("pid {}", one.pid), format!("{}: {}", one.name, one.why));
    let unread: Vec<(String, String)> = document.unread.iter().map(unread).collect();
    sections.push(Section::new(Topic::Details, "not read", Part::Facts(unread).filled()));
    sections.push(Section::new(
        Topic::Conditions,
        "conditions",
        [Part::facts([("machine", host_text(&document.machine))])],
    ));
    let whose = match advice.as_slice() {
        [one] => one.pid.map_or_else(|| one.name.clone(), |pid| format!("{}, pid {pid}", one.name)),
        all => several(all.len() as u64, "JVM"),
    };
    Page::new(format!("{whose}, advised by loadline {}", document.loadline), sections)
}

/// The sentence, how sure it is, the numbers, and their sum.
fn in_full(advice: &AdviceRecord) -> Vec<Section> {
    let (Some(limit), Some(_)) = (advice.limit_bytes, advice.heap_bytes) else {
        let why = advice.refused.as_deref().unwrap_or("nothing is known about it");
        return vec![Section::new(
            Topic::Answer,
            "",
            [Part::Verdicts(vec![Verdict::told(format!("No advice: {why}."))])],
        )];
    };
    let set = advice.options.join(" ");
    let answer = format!("Set {} and {set}: unproved, confidence {}.", Bytes(limit), word_of(advice.confidence));
    let yours = if advice.prove.contains(" --url URL ") { ", with your rate and URL" } else { "" };
    let prove = Literal { title: format!("next: this proves it{yours}"), lines: vec![advice.prove.clone()] };
    let of_vpa = advice.vpa.as_ref().map(|vpa| Part::Text(beside(vpa, limit)));
    let answer = [Part::Verdicts(vec![Verdict::told(answer)])].into_iter().chain(of_vpa).chain([Part::Literal(prove)]);
    vec![
        Section::new(Topic::Answer, "", answer),
        Section::new(Topic::Answer, "what to set", [Part::Facts(facts(advice))]),
        Section::titled(Topic::Memory, "arithmetic", [Part::Table(arithmetic(&advice.rows, limit))]),
        Section::titled(Topic::Details, "other ways", ways(&advice.others, limit, "of this").map(Part::Table)),
    ]
}

fn facts(advice: &AdviceRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    facts.add("now", format!("limit {}, heap up to {}", size(advice.limit_now_bytes), size(advice.heap_max_now_bytes)));
    facts.add("request", advice.request_bytes.map(|bytes| format!("{}, the same as the limit", Bytes(bytes))));
    let shares = advice.share_options.join(" ");
    facts.add("as shares", (!shares.is_empty()).then(|| format!("{shares} in place of -Xmx")));
    let as_is = advice.limit_as_is_bytes.map(Bytes);
    facts.add(
        "as it is",
        as_is.map(|limit| format!("at least {limit} if the heap stays as it is: the peak below, plus headroom")),
    );
    let without = advice.without.join(" ");
    facts.add(
        "remove",
        (!without.is_empty()).then(|| format!("{without} from the command, because it overrides JAVA_TOOL_OPTIONS")),
    );
    facts.add("seen", advice.evidence.clone());
    facts.list("confidence", advice.why.clone());
    facts.0
}

/// The rows with their sum.
fn arithmetic(rows: &[AdviceRow], limit: u64) -> Table {
    let line = |row: &AdviceRow| vec![part(row), mib(row.seen_bytes), mib(row.growth_bytes), mib(row.bytes)];
    let sum = vec!["limit".to_owned(), dash(), dash(), mib(limit)];
    let head = ["part", "seen", "growth", "counted"];
    let shown = rows.iter().filter(|row| !rounds_to_none(row.bytes));
    let has = |of: fn(&AdviceRow) -> bool, note: &str| rows.iter().any(of).then(|| note.to_owned());
    let notes = [
        Some("The first two rows add up to -Xmx.".to_owned()),
        has(|row| row.growth_bytes.is_some(), "Growth in the second half of the time is counted twice."),
        has(
            |row| row.kind == AdvicePart::AtPeak,
            "Peak: the larger of peak RSS and peak charge, without reclaimable pages. It counts without the heap that \
             -Xmx takes away, once the JVM is two minutes old.",
        ),
    ];
    Table::new("the arithmetic, MiB", head, shown.map(line).chain([sum])).noted(notes.into_iter().flatten())
}

fn part(row: &AdviceRow) -> String {
    let text = match row.kind {
        AdvicePart::LiveSet => "live set, after old collections",
        AdvicePart::LiveSetAtMost => "heap in use, an upper bound",
        AdvicePart::AllocationRoom => "room; allocated in a second",
        AdvicePart::Owner if row.owner == "rest" => "rest, mostly malloc",
        AdvicePart::Owner => label(&row.owner),
        AdvicePart::Kernel => "kernel",
        AdvicePart::KeptPageCache => "page cache, not reclaimable",
        AdvicePart::OtherProcesses => "other processes",
        AdvicePart::AtPeak => "more at the peak",
        AdvicePart::Headroom => "headroom",
    };
    text.to_owned()
}

/// The recommendation of an autoscaler beside the advice, with what each counts.
fn beside(vpa: &VpaRecord, limit: u64) -> String {
    let range = vpa.lower_bytes.zip(vpa.upper_bytes);
    let range = range.map(|(lower, upper)| format!(" ({} to {})", Bytes(lower), Bytes(upper))).unwrap_or_default();
    format!(
        "The VPA {} recommends {}{range} for {}: it counts the container's past working set, with garbage of the heap \
         and active page cache. The {} count what the JVM cannot give back under this -Xmx.",
        vpa.name,
        Bytes(vpa.target_bytes),
        vpa.container,
        Bytes(limit)
    )
}

/// A row for each.
fn table(all: &[AdviceRecord]) -> Table {
    let has_vpa = all.iter().any(|one| one.vpa.is_some());
    let row = |one: &AdviceRecord| {
        let pid = one.pid.map_or_else(dash, |pid| pid.to_string());
        let heap = one.heap_bytes.map_or_else(dash, |heap| Bytes(heap).java());
        let vpa = has_vpa.then(|| mib(one.vpa.as_ref().map(|vpa| vpa.target_bytes)));
        let sure = if one.limit_bytes.is_some() { word_of(one.confidence) } else { "no advice".to_owned() };
        let sizes = [mib(one.limit_now_bytes), mib(one.limit_bytes), heap].into_iter().chain(vpa).chain([sure]);
        [pid, beginning(&one.name, NAME_MAX)].into_iter().chain(sizes).collect::<Vec<String>>()
    };
    let vpa = has_vpa.then_some("VPA");
    let head = ["pid", "name", "limit now", "limit", "-Xmx"].into_iter().chain(vpa).chain(["confidence"]);
    let refused = all.iter().filter_map(|one| Some(format!("{}: {}.", one.name, one.refused.as_deref()?)));
    let low = all.iter().filter(|one| one.confidence == AdviceConfidence::Low && one.limit_bytes.is_some()).count();
    let low = (low > 0).then(|| {
        format!(
            "Low: {} seen too briefly, or without an old collection; `loadline watch --all` sees more.",
            several(low as u64, "JVM")
        )
    });
    let notes = ["Unproved. `loadline advise PID` shows the arithmetic and the command that proves it.".to_owned()];
    Table::new("what to set, MiB", head, all.iter().map(row))
        .worded(2, 1)
        .noted(notes.into_iter().chain(low).chain(refused))
}
