//! ApacheBench 2.3:
//!
//! ```text
//! Time taken for tests:   0.018 seconds
//! Complete requests:      500
//! Failed requests:        396
//!    (Connect: 0, Receive: 0, Length: 396, Exceptions: 0)
//! Non-2xx responses:      12
//! Total transferred:      47468 bytes
//! Requests per second:    28156.32 [#/sec] (mean)
//! Percentage of the requests served within a certain time (ms)
//!   50%      0
//!  100%      3 (longest request)
//! ```
//!
//! Times are whole milliseconds, cover all requests, and include the connect. A 0 is below ab's resolution and is not
//! reported as a time. Unless `-l` is set, a response whose length differs from the first one's counts as failed.

use super::quantity::{count, number, percent};
use super::{Reported, Times, Tool, after, last_report};
use crate::Failures;

pub(super) fn read(text: &str) -> Option<Reported> {
    let report = last_report(text, |line| line.starts_with("This is ApacheBench"));
    // This line comes after the optional lines.
    let per_s = number(after(&report, "Requests per second:")?.strip_suffix("[#/sec] (mean)")?.trim())?;
    let complete = count(after(&report, "Complete requests:")?)?;
    Some(Reported {
        requests_per_s: Some(per_s),
        failed: Some(failures(&report, complete)?),
        seconds: after(&report, "Time taken for tests:").and_then(|time| number(time.strip_suffix(" seconds")?)),
        received_bytes: after(&report, "Total transferred:").and_then(|size| count(size.strip_suffix(" bytes")?)),
        times_ms: times(&report),
        ..Reported::new(Tool::Ab, complete)
    })
}

fn failures(report: &[&str], complete: u64) -> Option<Failures> {
    let failed = count(after(report, "Failed requests:")?)?;
    let mut failures = Failures::default();
    if let Some(kinds) = after(report, "(Connect:") {
        for part in format!("Connect: {}", kinds.strip_suffix(')')?).split(", ") {
            let (kind, n) = part.split_once(": ")?;
            match kind {
                "Connect" => failures.refused = count(n)?,
                "Receive" => failures.reset = count(n)?,
                _ => {}
            }
        }
    }
    failures.refused = failures.refused.min(failed);
    failures.reset = failures.reset.min(failed - failures.refused);
    failures.other = failed - failures.refused - failures.reset;
    // Wrong statuses do not count as failed, but a response may have both a different length and a wrong status.
    let wrong = after(report, "Non-2xx responses:").map_or(Some(0), count)?;
    failures.status = wrong.min(complete.saturating_sub(failed));
    Some(failures)
}

fn times(report: &[&str]) -> Times {
    let mut times = Times::default();
    let rows = report.iter().skip_while(|line| !line.starts_with("Percentage of the requests served")).skip(1);
    for line in rows {
        let mut cells = line.split_whitespace();
        let (Some(share), Some(time)) = (cells.next().and_then(percent), cells.next().and_then(number)) else { break };
        if time > 0.0 {
            times.set(share, time);
        }
    }
    // `Total:          1    3   0.4      3       9`: min, mean, standard deviation, median, max.
    let total = after(report, "Total:  ").and_then(|row| number(row.split_whitespace().nth(1)?));
    times.mean = total.filter(|mean| *mean > 0.0);
    times
}
