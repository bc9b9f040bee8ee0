//! k6 0.4x to 2.x: the forms of its final summary, and its JSON if a script or `--summary-export=/dev/stdout` prints
//! it. k6 prints percentiles such as `p(99)` and `p(99.9)` only if `summaryTrendStats` lists them.
//!
//! ```text
//!     http_req_duration..............: avg=449.18µs med=189.71µs max=16.37ms p(90)=568.6µs  p(99)=6.18ms
//!       { expected_response:true }...: avg=450.7µs  med=190.18µs max=16.37ms p(90)=571.24µs p(99)=6.21ms
//!     http_req_failed................: 19.99% 3988 out of 19942
//!     http_reqs......................: 19942  9969.839361/s
//! ```
//!
//! Before 1.0, k6 printed failed requests as `20.00% ✓ 6565 ✗ 26259`: the number after the check mark counts them.
//! Times cover only responses with an expected status, and start with the first byte sent. They include neither
//! connecting nor waiting for a free virtual user at a given arrival rate.

use super::json::{amount, last_object};
use super::quantity::{count, ms, number};
use super::{Reported, Times, Tool, lines};
use crate::Failures;
use serde_json::Value;

const DURATION: &str = "http_req_duration";
const EXPECTED: &str = "http_req_duration{expected_response:true}";

pub(super) fn read(text: &str) -> Option<Reported> {
    last_object(text, |document| new_document(document).or_else(|| old_document(document))).or_else(|| summary(text))
}

/// Combines the values that every form contains. If `per_s` is missing or 0, the duration is unknown.
fn reported(requests: u64, failed: Option<u64>, per_s: Option<f64>) -> Reported {
    let mut reported = Reported::new(Tool::K6, requests);
    reported.failed = failed.map(|failed| Failures { other: failed.min(requests), ..Failures::default() });
    reported.requests_per_s = per_s;
    reported.seconds = per_s.filter(|rate| *rate > 0.0).map(|rate| requests as f64 / rate);
    reported
}

/// Chooses the times to report. If no response was as expected, the zeros that k6 prints mean nothing.
fn times_of(all: Option<Times>, expected: Option<Times>, failed: Option<u64>) -> Times {
    expected.or(all.filter(|_| failed == Some(0))).unwrap_or_default()
}

fn set(times: &mut Times, statistic: &str, ms: f64) {
    match statistic {
        "avg" => times.mean = Some(ms),
        "med" => times.p50 = Some(ms),
        "max" => times.max = Some(ms),
        other => {
            let percent = other.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
            if let Some(percent) = percent.or(other.strip_prefix('p')).and_then(number) {
                times.set(percent, ms);
            }
        }
    }
}

fn summary(text: &str) -> Option<Reported> {
    let all: Vec<&str> = lines(text).collect();
    // With several scenarios or groups, the totals come first; without these headings, there is one alphabetical list.
    let heading = all.iter().rposition(|line| line.contains("TOTAL RESULTS"));
    let first = || all.iter().rposition(|line| named(line) == Some("data_received"));
    let report = &all[heading.or_else(first).unwrap_or(0)..];
    let at = |name: &str| report.iter().position(|line| named(line) == Some(name));
    let mut words = value(report[at("http_reqs")?]).split_whitespace();
    let (requests, rate) = (count(words.next()?)?, words.next()?.strip_suffix("/s")?);
    let failed = at("http_req_failed").and_then(|at| failed(value(report[at]), requests));
    let mut reported = reported(requests, failed, number(rate));
    let duration = at(DURATION);
    let parts =
        duration.map_or(&[][..], |at| &report[at + 1..]).iter().take_while(|line| unmarked(line).starts_with('{'));
    let expected = parts.into_iter().find(|line| unmarked(line).starts_with("{ expected_response:true }"));
    reported.times_ms = times_of(duration.map(|at| trend(report[at])), expected.map(|line| trend(line)), failed);
    Some(reported)
}

/// The name before the dots of `http_reqs......: 19942  9969.839361/s`.
fn named(line: &str) -> Option<&str> {
    Some(unmarked(line).split_once("..")?.0)
}

/// Removes a threshold's mark, which came before the name until 1.0.
fn unmarked(line: &str) -> &str {
    line.trim_start_matches([' ', '✓', '✗'])
}

/// Returns the value after the dots.
fn value(line: &str) -> &str {
    line.split_once("..: ").or_else(|| line.split_once(".: ")).map_or("", |(_, value)| value)
}

/// `19.99% 3988 out of 19942`, or `20.00% ✓ 6565 ✗ 26259`.
fn failed(value: &str, requests: u64) -> Option<u64> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let (failed, all) = match words[..] {
        [_, failed, "out", "of", all] => (count(failed)?, count(all)?),
        [_, "✓", failed, "✗", others] => (count(failed)?, count(failed)? + count(others)?),
        _ => return None,
    };
    (all == requests).then_some(failed)
}

fn trend(line: &str) -> Times {
    let mut times = Times::default();
    for word in value(line).split_whitespace() {
        if let Some((statistic, Some(ms))) = word.split_once('=').map(|(name, time)| (name, ms(time))) {
            set(&mut times, statistic, ms);
        }
    }
    times
}

/// Reads the input of `handleSummary` (`metrics.NAME.values`) and the output of `--summary-export` (`metrics.NAME`).
fn old_document(document: &Value) -> Option<Reported> {
    let metrics = document.get("metrics")?;
    let values = |name: &str| metrics.get(name).map(|metric| metric.get("values").unwrap_or(metric));
    let number_of = |name: &str, key: &str| values(name).and_then(|values| values.get(key));
    let requests = number_of("http_reqs", "count")?.as_u64()?;
    let failed = number_of("http_req_failed", "passes").and_then(Value::as_u64);
    let mut reported = reported(requests, failed, number_of("http_reqs", "rate").and_then(amount));
    reported.received_bytes = number_of("data_received", "count").and_then(Value::as_u64);
    reported.times_ms = times_of(values(DURATION).map(statistics), values(EXPECTED).map(statistics), failed);
    Some(reported)
}

/// `--new-machine-readable-summary`: `{"results": {"metrics": [{"name": …, "values": {…}}]}}`.
fn new_document(document: &Value) -> Option<Reported> {
    let metrics = document.pointer("/results/metrics")?.as_array()?;
    let values = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.get("name").and_then(Value::as_str) == Some(name))?;
        metric.get("values")
    };
    let requests = values("http_reqs")?.get("count")?.as_u64()?;
    let failed = values("http_req_failed").and_then(|values| values.get("matches")).and_then(Value::as_u64);
    let seconds = document.pointer("/config/duration").and_then(amount).filter(|seconds| *seconds > 0.0);
    let mut reported = reported(requests, failed, seconds.map(|seconds| requests as f64 / seconds));
    reported.received_bytes = values("data_received").and_then(|values| values.get("count")).and_then(Value::as_u64);
    reported.times_ms = times_of(values(DURATION).map(statistics), values(EXPECTED).map(statistics), failed);
    Some(reported)
}

/// Milliseconds by the name of the statistic.
fn statistics(values: &Value) -> Times {
    let mut times = Times::default();
    for (statistic, value) in values.as_object().into_iter().flatten() {
        if let Some(ms) = amount(value) {
            set(&mut times, statistic, ms);
        }
    }
    times
}
