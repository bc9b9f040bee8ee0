//! The page of searches over the values of a setting, such as memory against CPU for a CPU limit.

use super::cells::mib;
use super::facts;
use super::find::percent;
use super::{Sources, finished};
use crate::page::{Depth, Page, Part, Section, Topic, Verdict};
use crate::record::{LineOver, OverRecord};
use crate::table::Table;
use crate::units::{Bytes, per_second, trimmed};
use crate::words::{Standing, dash, sentence, word_of};

/// The page of several searches, which replaces the page of trials.
pub(super) fn page(of: Sources<'_>, over: &OverRecord, depth: Depth) -> Page {
    let failed = over.lines.iter().filter_map(failure);
    let verdicts: Vec<Verdict> = answer(over).into_iter().chain(failed).collect();
    let sections = vec![
        Section::new(Topic::Answer, "", [Part::Verdicts(verdicts)]).id("verdict"),
        Section::new(Topic::Answer, format!("load lines over {}", over.axis), [Part::Table(table(over))]).id("over"),
        facts::section(of.document, None),
    ];
    finished(of, &format!("load lines over {} found", over.axis), sections, depth)
}

/// `cpu_limit=500m: set 128.0 MiB with -Xmx24m.`
fn answer(over: &OverRecord) -> Vec<Verdict> {
    let told = |line: &LineOver| {
        let find = line.find.as_ref().filter(|find| find.outcome.is_found())?;
        let rate = find.rate.as_ref().map(|rate| format!("up to {}/s", per_second(rate.rate_per_s)));
        let limit = find.limit_bytes.map(|limit| format!("set the limit to {}", Bytes(limit)));
        let what = rate.or(limit)?;
        let heap = find.heap_bytes.map(|heap| format!(" with -Xmx{}", Bytes(heap).java())).unwrap_or_default();
        Some(Verdict::told(format!("{}={}: {what}{heap}.", over.axis, line.value)))
    };
    over.lines.iter().filter_map(told).collect()
}

fn failure(line: &LineOver) -> Option<Verdict> {
    let text = match &line.find {
        Some(find) if find.outcome.is_found() => return None,
        _ if !line.why.is_empty() => line.why.clone(),
        Some(find) => find.text.clone(),
        None => "nothing was measured".to_owned(),
    };
    Some(Verdict { standing: Standing::Fail, ..Verdict::told(format!("{}: {}", line.value, sentence(&text))) })
}

fn table(over: &OverRecord) -> Table {
    let row = |of: &LineOver| {
        let find = of.find.as_ref();
        let line = find.and_then(|find| find.line.as_ref());
        let rate = find.and_then(|find| find.rate.as_ref()).map(|rate| per_second(rate.rate_per_s));
        let number = |value: Option<f64>, scale: f64, digits| value.map_or_else(dash, |of| trimmed(of * scale, digits));
        vec![
            of.value.clone(),
            rate.unwrap_or_else(|| mib(find.and_then(|find| find.limit_bytes))),
            mib(line.map(|line| line.limit_bytes)),
            mib(line.and_then(|line| line.heap_bytes)),
            number(of.cpu_per_request_s, 1e6, 0),
            of.throttled_share.map_or_else(dash, percent),
            number(of.ready_s, 1.0, 1),
            find.map_or_else(dash, |find| word_of(find.outcome)),
        ]
    };
    let is_rate = over.lines.iter().any(|of| of.find.as_ref().is_some_and(|find| find.rate.is_some()));
    let answer = if is_rate { "rate/s" } else { "to set" };
    let head = [&over.axis, answer, "line", "heap", "us/request", "throttled", "ready s", "outcome"];
    let notes = [
        "Memory in MiB. to set: the load line plus headroom.",
        "CPU time per request, startup time, and throttling are from the trials that passed at the load line.",
    ];
    Table::new("", head, over.lines.iter().map(row)).worded(1, 1).noted(notes.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Document, FindOutcome, FindRecord, LineRecord};
    use crate::{render, summarize};

    const MIB: u64 = 1 << 20;

    fn line(value: &str, limit: u64, ready_s: f64) -> LineOver {
        let line = Some(LineRecord { limit_bytes: limit * MIB, heap_bytes: Some(24 * MIB), ..LineRecord::default() });
        let outcome = FindOutcome::Found;
        let find = FindRecord { line, outcome, limit_bytes: Some((limit + 10) * MIB), ..FindRecord::default() };
        let (cpu, throttled_share) = (Some(0.00021), Some(0.125));
        let (value, why) = (value.to_owned(), String::new());
        LineOver { value, find: Some(find), cpu_per_request_s: cpu, throttled_share, ready_s: Some(ready_s), why }
    }

    #[test]
    fn each_value_has_a_row_and_values_without_a_line_a_reason() {
        let why = "the server was not ready after 60 s: a CPU limit of 20m throttled it in 99% of periods".to_owned();
        let failed = LineOver { value: "20m".to_owned(), why, ..LineOver::default() };
        let lines = vec![failed, line("500m", 118, 2.25), line("1", 107, 1.1)];
        let over = Some(OverRecord { axis: "cpu_limit".to_owned(), lines });
        let document = Document { over, ..Document::default() };
        insta::assert_snapshot!(render(&summarize(&document, &[], Depth::default())));
    }
}
