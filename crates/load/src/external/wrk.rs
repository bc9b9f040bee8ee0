//! wrk 4 and wrk2, with and without `--latency`:
//!
//! ```text
//! Running 2s test @ http://127.0.0.1:8080/slow
//!   2 threads and 10 connections
//!   Thread Stats   Avg      Stdev     Max   +/- Stdev
//!     Latency    31.06ms    1.10ms  34.69ms   87.50%
//!     Req/Sec   160.60     19.61   202.00     80.00%
//!   Latency Distribution
//!      50%   30.62ms
//!   640 requests in 2.00s, 64.38KB read
//!   Socket errors: connect 0, read 4, write 0, timeout 1
//!   Non-2xx or 3xx responses: 7
//! Requests/sec:    319.29
//! Transfer/sec:     32.12KB
//! ```
//!
//! Times cover only responses within the timeout. A later response counts as both a request and a timeout; a failed
//! read is not a request. wrk2 measures from the intended start; `-U` adds a second distribution that does not.

use super::quantity::{bytes, count, ms, number, percent, seconds};
use super::{Reported, Times, Timing, Tool, after, last_report};
use crate::Failures;

pub(super) fn read(text: &str) -> Option<Reported> {
    let report = last_report(text, |line| line.starts_with("Running ") && line.contains(" test @ "));
    // The percent sign in the last cell of this row distinguishes wrk from Hyperfoil, which omits it.
    if !after(&report, "Req/Sec")?.ends_with('%') {
        return None;
    }
    // Optional lines come before this one, which is the next line that is always present.
    let per_s = number(after(&report, "Requests/sec:")?)?;
    let (answered, measured, received) = totals(&report)?;
    let corrected = report.iter().any(|line| line.contains("Thread calibration:"));
    let failures = failures(&report, answered, corrected)?;
    let (tool, timing) = if corrected { (Tool::Wrk2, Timing::Response) } else { (Tool::Wrk, Timing::Service) };
    Some(Reported {
        failed: Some(failures.1),
        seconds: Some(measured),
        requests_per_s: Some(per_s),
        received_bytes: received,
        // If no response came within the timeout, wrk prints meaningless zeros.
        times_ms: Some(times(&report)).filter(|times| times.max != Some(0.0)).unwrap_or_default(),
        timing,
        ..Reported::new(tool, answered + failures.0)
    })
}

/// `640 requests in 2.00s, 64.38KB read`.
pub(super) fn totals(report: &[&str]) -> Option<(u64, f64, Option<u64>)> {
    report.iter().find_map(|line| {
        let (requests, rest) = line.trim().split_once(" requests in ")?;
        let (span, received) = rest.split_once(", ")?;
        Some((count(requests)?, seconds(span)?, bytes(received.strip_suffix(" read")?)))
    })
}

/// Failed requests without a response, and all failures by kind. `None` if a line has an unexpected form.
fn failures(report: &[&str], answered: u64, corrected: bool) -> Option<(u64, Failures)> {
    let mut failures = Failures::default();
    if let Some(errors) = after(report, "Socket errors:") {
        for part in errors.split(", ") {
            let (kind, n) = part.split_once(' ')?;
            let n = count(n)?;
            match kind {
                "connect" => failures.refused += n,
                "read" | "write" => failures.reset += n,
                "timeout" => failures.timeout += n,
                _ => return None,
            }
        }
    }
    if let Some(n) = after(report, "Non-2xx or 3xx responses:") {
        failures.status = count(n)?;
    }
    let outside = failures.refused + failures.reset;
    if corrected {
        // wrk2 counts a timeout while the connection is still waiting for its response.
        return Some((outside + failures.timeout, failures));
    }
    // A late response with a wrong status is counted twice; a request fails in only one way.
    failures.status = failures.status.min(answered);
    failures.timeout = failures.timeout.min(answered - failures.status);
    Some((outside, failures))
}

/// Mean and maximum of the table, and the first distribution, if there is one.
pub(super) fn times(report: &[&str]) -> Times {
    let mut times = Times::default();
    if let Some(row) = after(report, "Latency  ")
        && let [mean, _, max, ..] = &cells(row)[..]
    {
        (times.mean, times.max) = (ms(mean), ms(max));
    }
    let rows = report.iter().skip_while(|line| !line.trim_start().starts_with("Latency Distribution")).skip(1);
    for line in rows {
        let [share, time] = &cells(line)[..] else { break };
        if let (Some(share), Some(time)) = (percent(share), ms(time)) {
            times.set(share, time);
        }
    }
    times
}

/// The cells of a row. Hyperfoil puts a space between number and unit; such a unit joins the preceding number.
fn cells(row: &str) -> Vec<String> {
    let mut cells: Vec<String> = Vec::new();
    for word in row.split_whitespace() {
        match cells.last_mut() {
            Some(number) if ["ns", "us", "µs", "μs", "ms", "s"].contains(&word) => number.push_str(word),
            _ => cells.push(word.to_owned()),
        }
    }
    cells
}
