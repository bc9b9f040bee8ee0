//! The page of a load without a trial: failures, conditions, phases, thresholds.

use super::cells::beginning;
use super::doubts::doubts;
use super::facts::{cpus_text, machine_text};
use super::next;
use crate::doubt::Doubt;
use crate::page::{self, Depth, Facts, Page, Part, Section, Topic};
use crate::record::{Generator, LoadDocument, PhaseRecord, Quantiles, RequestRecord, ThresholdRecord, Verdict};
use crate::table::Table;
use crate::units::{Bytes, grouped, milliseconds, per_second, several};
use crate::words::dash;

/// The longest path that leaves room for its row's numbers.
const NAME_MAX: usize = 44;

/// The page of a load, as detailed as `depth` requests.
pub fn summarize_load(document: &LoadDocument, depth: Depth) -> Page {
    let conditions = &document.conditions;
    let failing: Vec<_> = failing(document).into_iter().map(page::Verdict::failing).collect();
    let next = if failing.is_empty() { next::of_load(document) } else { None };
    let answer = Part::Verdicts(failing.into_iter().chain(answer(document)).collect());
    let mut sections = vec![
        Section::new(Topic::Answer, "", std::iter::once(answer).chain(next)),
        Section::new(Topic::Conditions, "conditions", [Part::Facts(facts(document))]),
    ];
    let phases = document.phases.iter().filter(|phase| phase.works());
    sections.extend(phases.map(|phase| {
        let requests = (!phase.by_request.is_empty()).then(|| requests(phase));
        let tables = times(phase).into_iter().chain(requests).map(Part::Table);
        Section::new(Topic::Load, phase.name.clone(), std::iter::once(Part::Facts(phase_facts(phase))).chain(tables))
    }));
    if !document.thresholds.is_empty() || document.strict.is_some() {
        let verdicts = verdicts(document).into_iter().map(Part::Text);
        sections.push(Section::new(Topic::Answer, "thresholds", verdicts));
    }
    sections.push(doubts(&document.doubts));
    Page::new(format!("{}, load tested by loadline {}", conditions.url, conditions.loadline), sections).within(depth)
}

/// Rate, p99, and failures of the last phase that sent requests.
fn answer(document: &LoadDocument) -> Option<page::Verdict> {
    let phase = document.phases.iter().rfind(|phase| phase.works())?;
    let times = phase.response_ms.as_ref().or(phase.service_ms.as_ref());
    let p99 = times.map(|times| format!("; p99 {} ms", milliseconds(times.p99))).unwrap_or_default();
    Some(page::Verdict::told(format!("{}{p99}; {}", rate(phase), counts(phase))).about(&phase.name))
}

/// The failures. A vanished server and a missed rate come first, because all other figures then describe a different
/// load from the requested one.
fn failing(document: &LoadDocument) -> Vec<String> {
    let is_first = |doubt: &Doubt| matches!(doubt, Doubt::ServerGone { .. } | Doubt::AchievedBelowOffered { .. });
    let first = document.doubts.iter().filter(|doubt| is_first(&doubt.doubt));
    let mut lines: Vec<String> = first.map(|doubt| doubt.text.clone()).collect();
    let failed = document.thresholds.iter().filter(|threshold| threshold.verdict != Verdict::Holds);
    lines.extend(failed.map(|threshold| sentence(threshold, document)));
    if document.interrupted {
        lines.push("interrupted: the numbers cover only the part that ran".to_owned());
    }
    lines
}

fn facts(document: &LoadDocument) -> Vec<(String, String)> {
    let conditions = &document.conditions;
    let mut backends: Vec<&str> = document.phases.iter().filter_map(|phase| phase.backend.as_deref()).collect();
    backends.dedup();
    let mut facts = Facts::default();
    facts.add("server", [&[conditions.address.as_str()], &backends[..]].concat().join(", "));
    facts.list("load", conditions.load.clone());
    facts.add("machine", machine_text(&conditions.machine));
    let load = conditions.machine.load_average_1m;
    facts.add("host load", load.map(|load| format!("{load:.2} before (1-minute average)")));
    let threads = several(u64::from(conditions.threads), "thread");
    let place = conditions.load_cpus.as_deref().map(|cpus| format!("CPU {}", cpus_text(Some(cpus))));
    facts.add("generator", format!("{threads} on {}", place.unwrap_or_else(|| "any CPU".to_owned())));
    facts.add("seed", conditions.seed.to_string());
    facts.add("repeat", conditions.command.clone());
    facts.0
}

fn phase_facts(phase: &PhaseRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    facts.add("requests", counts(phase));
    facts.add("rate", rate(phase));
    facts.add("bytes", phase.generator.as_ref().map(|generator| bytes(phase, generator)));
    let connected = phase.connections.map(|of| [of.asked, of.opened, of.open_max].map(grouped));
    let connected = connected.map(|[asked, opened, most]| {
        format!(
            "{asked} requested, {opened} opened, at most \
        {most} at a time"
        )
    });
    facts.add("connected", connected);
    let queue = phase.queue.map(|queue| match [queue.requests, queue.length_max].map(grouped) {
        _ if queue.requests == 0 => "no request waited for a connection".to_owned(),
        [waited, most] => format!("{waited} requests waited for a connection, at most {most} at a time"),
    });
    facts.add("queue", queue);
    let ages = phase.unanswered_ms.map(|ages| [ages.min, ages.p50, ages.max].map(milliseconds));
    let ages = ages.map(|[min, p50, max]| {
        format!(
            "waiting for {min} to {max} ms when the phase ended (median {p50} \
        ms)"
        )
    });
    facts.add("unanswered", ages);
    facts.add("generator", phase.generator.as_ref().map(generator_text));
    facts.add("ended", phase.cut_short.as_ref().map(|why| format!("early: {why}")));
    facts.0
}

/// `43,120 ok, 6,880 failed: 6,000 timed out, 880 unanswered`.
fn counts(phase: &PhaseRecord) -> String {
    let mut text = format!("{} ok", grouped(phase.ok));
    match phase.failed.total() {
        0 => text.push_str(", none failed"),
        failed => text.push_str(&format!(", {} failed: {}", grouped(failed), phase.failed.describe())),
    }
    if !phase.wrong_statuses.is_empty() {
        let statuses: Vec<_> =
            phase.wrong_statuses.iter().map(|(status, n)| format!("{} x {status}", grouped(*n))).collect();
        text.push_str(&format!(" ({})", statuses.join(", ")));
    }
    if let Some(under_way) = phase.in_flight.filter(|n| *n > 0) {
        text.push_str(&format!(", {} still in progress when it ended", grouped(under_way)));
    }
    text
}

fn rate(phase: &PhaseRecord) -> String {
    let offered = phase.offered_per_s.zip(phase.share_of_offered());
    let offered = offered.map(|(rate, share)| format!(" of {}/s offered ({:.1}%)", per_second(rate), share * 100.0));
    let achieved = per_second(phase.achieved_per_s);
    format!("{achieved}/s{} over {:.1} s", offered.unwrap_or_default(), phase.seconds)
}

fn bytes(phase: &PhaseRecord, generator: &Generator) -> String {
    let per_s = if phase.seconds > 0.0 { generator.received_bytes as f64 / phase.seconds } else { 0.0 };
    let sent = generator.sent_bytes.map(|sent| format!(", sent {}", size(sent))).unwrap_or_default();
    format!("received {} ({}/s){sent}", size(generator.received_bytes), size(per_s.round() as u64))
}

/// Small sums are in KiB, because even many short responses a second add up to less than a MiB.
fn size(bytes: u64) -> String {
    match bytes {
        // 1,023.95 KiB would print as 1,024.0.
        0..1_048_525 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => Bytes(bytes).to_string(),
    }
}

fn generator_text(generator: &Generator) -> String {
    let mut text =
        format!("{:.0}% of its CPU, {:.1} us per request", generator.cpu_share * 100.0, generator.cpu_us_per_request);
    if let (Some(p50), Some(p99), Some(max)) = (generator.lag_ms_p50, generator.lag_ms_p99, generator.lag_ms_max) {
        let [p50, p99, max] = [p50, p99, max].map(milliseconds);
        text.push_str(&format!("; lag p50 {p50} p99 {p99} max {max} ms"));
    }
    text
}

/// Rows for response and service times; a closed model has no intended start.
fn times(phase: &PhaseRecord) -> Option<Table> {
    let row = |name: &str, times: &Quantiles| {
        let optional = |ms: Option<f64>| ms.map_or_else(dash, milliseconds);
        let mut row = vec![name.to_owned(), milliseconds(times.p50), optional(times.p75)];
        row.extend([times.p90, times.p99, times.p999].map(milliseconds));
        row.extend([optional(times.p9999), milliseconds(times.max), milliseconds(times.mean)]);
        row
    };
    let kinds = [("response time", &phase.response_ms), ("service time", &phase.service_ms)];
    let rows = kinds.into_iter().filter_map(|(name, times)| Some(row(name, times.as_ref()?)));
    let note = match phase.is_open() {
        true => "Response time is measured from the intended start, service time from the actual start.",
        false => {
            "Closed model: times are measured from the actual start. A server that stalls gets fewer requests, so \
                its times look better than they are."
        }
    };
    let title = format!("times in ms, {} successful responses", grouped(phase.ok));
    let head = ["", "p50", "p75", "p90", "p99", "p99.9", "p99.99", "max", "mean"];
    Table::new(title, head, rows).noted([note.to_owned()]).filled()
}

fn requests(phase: &PhaseRecord) -> Table {
    let row = |of: &RequestRecord| {
        vec![beginning(&of.request, NAME_MAX), of.weight.to_string(), grouped(of.ok), grouped(of.failed)]
    };
    let never = phase.never_begun.filter(|never| *never > 0);
    let never = never.map(|never| vec!["(never started)".to_owned(), dash(), dash(), grouped(never)]);
    let rows = phase.by_request.iter().map(row).chain(never);
    Table::new("by request", ["request", "weight", "ok", "failed"], rows)
}

fn verdicts(document: &LoadDocument) -> Vec<String> {
    let mut lines: Vec<String> = document.thresholds.iter().map(|threshold| sentence(threshold, document)).collect();
    lines.extend(document.strict.map(|held| match held {
        true => "--strict: met (the offered rate was achieved, and the generator was not the bottleneck)".to_owned(),
        false => "--strict: missed (see the doubts)".to_owned(),
    }));
    lines
}

/// `p99<50ms: met (12.3 ms)`; with the phase if the thresholds apply to several.
fn sentence(threshold: &ThresholdRecord, document: &LoadDocument) -> String {
    let several = document.thresholds.iter().any(|other| other.phase != threshold.phase);
    let phase = if several { format!(" in {}", threshold.phase) } else { String::new() };
    let shown = threshold.shown.as_deref().map(|shown| format!(" ({shown})")).unwrap_or_default();
    let verdict = match threshold.verdict {
        Verdict::Holds => "met",
        Verdict::Fails => "missed",
        Verdict::Unknown => "cannot be judged: it was not measured",
    };
    format!("{}{phase}: {verdict}{shown}", threshold.condition)
}
