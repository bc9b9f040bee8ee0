//! Hyperfoil: the output of its `wrk` and `wrk2`, and the statistics of a run as JSON. Based on its sources (0.27).
//!
//! ```text
//!   8000 requests in 10.001s,   2.14MB read
//! Requests/sec: 799.92
//! Transfer/sec: 219.31kB
//! Socket errors: connectionErrors 0, requestTimeouts 3
//! Non-2xx or 3xx responses: 12
//! ```
//!
//! Hyperfoil's times begin at the actual start, even in its open models: waiting for a connection is blocked time. It
//! prints the failure lines last, and only if something failed. Without them, the number of failures is unknown.

use super::json::{amount, last_object};
use super::quantity::{count, number};
use super::{Reported, Tool, after, last_report, wrk};
use crate::Failures;
use serde_json::Value;

pub(super) fn read(text: &str) -> Option<Reported> {
    last_object(text, statistics).or_else(|| wrk_like(text))
}

fn wrk_like(text: &str) -> Option<Reported> {
    let report = last_report(text, |line| line.starts_with("Running ") && line.contains(" test @ "));
    if after(&report, "Req/Sec")?.ends_with('%') {
        return None;
    }
    let per_s = number(after(&report, "Requests/sec:")?)?;
    let (requests, measured, received_bytes) = wrk::totals(&report)?;
    Some(Reported {
        failed: failures(&report),
        seconds: Some(measured),
        requests_per_s: Some(per_s),
        received_bytes,
        times_ms: wrk::times(&report),
        ..Reported::new(Tool::Hyperfoil, requests)
    })
}

fn failures(report: &[&str]) -> Option<Failures> {
    let mut failures = None::<Failures>;
    if let Some(errors) = after(report, "Socket errors:") {
        let (connections, timeouts) = errors.split_once(", ")?;
        let told = failures.get_or_insert_default();
        told.reset = count(connections.strip_prefix("connectionErrors ")?)?;
        told.timeout = count(timeouts.strip_prefix("requestTimeouts ")?)?;
    }
    if let Some(n) = after(report, "Non-2xx or 3xx responses:") {
        failures.get_or_insert_default().status = count(n)?;
    }
    failures
}

/// `{"statistics": [{"phase": …, "summary": {"requestCount": …, "percentileResponseTime": {"50.0": …}}}]}`, in ns.
///
/// Adds up several phases or metrics; their times cannot be added.
fn statistics(document: &Value) -> Option<Reported> {
    let all: Vec<&Value> =
        document.get("statistics")?.as_array()?.iter().filter_map(|one| one.get("summary")).collect();
    let mut reported = Reported::new(Tool::Hyperfoil, 0);
    let mut failures = Failures::default();
    let (mut start, mut end) = (f64::INFINITY, 0f64);
    for summary in &all {
        let told = |key: &str| summary.get(key).and_then(Value::as_u64).unwrap_or(0);
        reported.requests += summary.get("requestCount")?.as_u64()?;
        failures.reset += told("connectionErrors") + told("resetCount") + told("connectFailureCount");
        failures.timeout += told("requestTimeouts") + told("timeouts");
        failures.other += told("internalErrors");
        if let Some(http) = summary.pointer("/extensions/http") {
            let status = |key: &str| http.get(key).and_then(Value::as_u64).unwrap_or(0);
            failures.status += status("status_4xx") + status("status_5xx") + status("status_other");
        }
        start = start.min(amount(summary.get("startTime")?)?);
        end = end.max(amount(summary.get("endTime")?)?);
    }
    let measured = (end - start) / 1e3;
    if all.is_empty() || measured <= 0.0 {
        return None;
    }
    reported.failed = Some(failures);
    reported.seconds = Some(measured);
    reported.requests_per_s = Some(reported.requests as f64 / measured);
    if let [summary] = all[..] {
        let ns = |value: Option<&Value>| value.and_then(amount).map(|ns| ns / 1e6);
        reported.times_ms.mean = ns(summary.get("meanResponseTime"));
        reported.times_ms.max = ns(summary.get("maxResponseTime"));
        for (percent, value) in summary.get("percentileResponseTime").and_then(Value::as_object).into_iter().flatten() {
            if let (Some(percent), Some(ms)) = (number(percent), ns(Some(value))) {
                reported.times_ms.set(percent, ms);
            }
        }
    }
    Some(reported)
}
