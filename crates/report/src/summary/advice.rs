//! Sizing advice: what to set, the arithmetic, the observed data, and the command that tests it.

use super::cells::{beginning, mib, rounds_to_none, size};
use super::facts::host_text;
use super::find::ways;
use crate::owner::label;
use crate::page::{Facts, Literal, Page, Part, Section, Topic, Verdict};
use crate::record::{AdviceConfidence, AdviceDocument, AdvicePart, AdviceRecord, AdviceRow, UnreadRecord, VpaRecord};
use crate::table::Table;
use crate::units::{Bytes, several};
use crate::words::{dash, word_of};

/// Room for names next to numbers, in characters.
const NAME_MAX: usize = 26;

/// The page of advice: in full for one JVM, a row each for several.
pub fn summarize_advice(document: &AdviceDocument) -> Page {
    let advice = &document.advice;
    let mut sections = match advice.as_slice() {
        [] => {
            vec![Section::new(Topic::Answer, "", [Part::Text("No HotSpot JVM is running on this machine.".to_owned())])]
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
    Page::new(format!("{whose}, advice by loadline {}", document.loadline), sections)
}

/// How to complete a command whose load is unknown.
const PLACEHOLDERS: &str = "RATE is your peak rate in requests per second, and URL is the page to load. If the port is \
     in use, write `{port}` in its place, both in URL and in the command. Without `--target`, every request must \
     succeed; you can add a target such as `--target 'p99<50ms'`.";

/// The sentence, its confidence, the numbers, and their sum.
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
    let answer =
        format!("Set the limit to {} with {set} (untested, {} confidence).", Bytes(limit), word_of(advice.confidence));
    let prove = Literal { title: "next: test it under load".to_owned(), lines: vec![advice.prove.clone()] };
    let placeholders = advice.prove.contains(" --url URL ").then(|| Part::Text(PLACEHOLDERS.to_owned()));
    let of_vpa = advice.vpa.as_ref().map(|vpa| Part::Text(beside(vpa, limit)));
    let answer = [Part::Verdicts(vec![Verdict::told(answer)])]
        .into_iter()
        .chain(of_vpa)
        .chain([Part::Literal(prove)])
        .chain(placeholders);
    vec![
        Section::new(Topic::Answer, "", answer),
        Section::new(Topic::Answer, "what to set", [Part::Facts(facts(advice))]),
        Section::titled(Topic::Memory, "arithmetic", [Part::Table(arithmetic(&advice.rows, limit))]),
        Section::titled(Topic::Details, "other ways", ways(&advice.others, limit, "vs. advice").map(Part::Table)),
    ]
}

fn facts(advice: &AdviceRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    facts.add("now", format!("limit {}, heap up to {}", size(advice.limit_now_bytes), size(advice.heap_max_now_bytes)));
    facts.add("request", advice.request_bytes.map(|bytes| format!("{}, the same as the limit", Bytes(bytes))));
    let shares = advice.share_options.join(" ");
    facts.add("percentage", (!shares.is_empty()).then(|| format!("{shares} instead of -Xmx")));
    let as_is = advice.limit_as_is_bytes.map(Bytes);
    facts.add(
        "same heap",
        as_is.map(|limit| {
            format!(
                "{limit} if you keep the current maximum heap: peak, plus heap growth to its maximum, plus headroom"
            )
        }),
    );
    let without = advice.without.join(" ");
    facts.add(
        "remove",
        (!without.is_empty()).then(|| format!("{without} from the command, because it overrides JAVA_TOOL_OPTIONS")),
    );
    facts.add("data", advice.evidence.clone());
    facts.list("confidence", advice.why.clone());
    facts.0
}

fn arithmetic(rows: &[AdviceRow], limit: u64) -> Table {
    let line = |row: &AdviceRow| vec![part(row), mib(row.seen_bytes), mib(row.growth_bytes), mib(row.bytes)];
    let sum = vec!["limit".to_owned(), dash(), dash(), mib(limit)];
    let head = ["part", "seen", "growth", "counted"];
    let shown = rows.iter().filter(|row| !rounds_to_none(row.bytes));
    let has = |of: fn(&AdviceRow) -> bool, note: &str| rows.iter().any(of).then(|| note.to_owned());
    let notes = [
        Some("The first two rows add up to -Xmx.".to_owned()),
        has(|row| row.growth_bytes.is_some(), "Growth in the second half of the observation counts twice."),
        has(
            |row| row.kind == AdvicePart::AtPeak,
            "Peak: the larger of peak RSS and peak charge, minus reclaimable pages. After the JVM's first two \
             minutes, heap above the new -Xmx does not count.",
        ),
        Some("Mapped files get no headroom, because the kernel can drop their pages.".to_owned()),
    ];
    Table::new("calculation, MiB", head, shown.map(line).chain([sum])).noted(notes.into_iter().flatten())
}

fn part(row: &AdviceRow) -> String {
    let text = match row.kind {
        AdvicePart::LiveSet => "live set, after old GCs",
        AdvicePart::LiveSetAtMost => "heap in use (upper bound)",
        AdvicePart::AllocationRoom => "allocation headroom (seen: MiB/s)",
        AdvicePart::Owner if row.owner == "rest" => "rest, mostly malloc",
        AdvicePart::Owner => label(&row.owner),
        AdvicePart::Kernel => "kernel",
        AdvicePart::KeptPageCache => "page cache, not reclaimable",
        AdvicePart::OtherProcesses => "other processes",
        AdvicePart::AtPeak => "extra at the peak",
        AdvicePart::Headroom => "headroom",
    };
    text.to_owned()
}

/// An autoscaler's recommendation next to the advice, and what each of the two counts.
fn beside(vpa: &VpaRecord, limit: u64) -> String {
    let range = vpa.lower_bytes.zip(vpa.upper_bytes);
    let range = range.map(|(lower, upper)| format!(" ({} to {})", Bytes(lower), Bytes(upper))).unwrap_or_default();
    format!(
        "The VPA {} recommends {}{range} for {}, based on the container's past working set, which includes heap \
         garbage and active page cache. With this -Xmx, the JVM cannot release {}.",
        vpa.name,
        Bytes(vpa.target_bytes),
        vpa.container,
        Bytes(limit)
    )
}

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
            "Low confidence: {} observed too briefly or without an old GC. `loadline watch --all` collects more data.",
            several(low as u64, "JVM")
        )
    });
    let notes = ["Untested. `loadline advise PID` shows the calculation and the command that tests the \
        limit."
        .to_owned()];
    Table::new("what to set, MiB", head, all.iter().map(row))
        .worded(2, 1)
        .noted(notes.into_iter().chain(low).chain(refused))
}
