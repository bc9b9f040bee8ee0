//! h2load of nghttp2 (1.52, and the additional columns of newer versions):
//!
//! ```text
//! finished in 9.02ms, 887.21 req/s, 89.24KB/s
//! requests: 300 total, 13 started, 8 done, 8 succeeded, 292 failed, 292 errored, 0 timeout
//! status codes: 8 2xx, 0 3xx, 0 4xx, 0 5xx
//! traffic: 824B (824) total, 464B (464) headers (space savings 0.00%), 112B (112) data
//!                      min         max         mean         sd        +/- sd
//! time for request:       69us      4.14ms      2.59ms      2.05ms    62.50%
//! ```
//!
//! h2load counts requests as failed if they never began because a connection was lost, and so does this reader.

use super::quantity::{count, ms, number, seconds};
use super::{Reported, Times, Tool, after, last_report};
use crate::Failures;

pub(super) fn read(text: &str) -> Option<Reported> {
    let report = last_report(text, |line| line.starts_with("finished in "));
    let mut finished = after(&report, "finished in ")?.split(", ");
    let counts = after(&report, "requests:")?;
    let told = |what: &str| {
        let part = counts.split(", ").find_map(|part| part.strip_suffix(what)?.strip_suffix(' '))?;
        count(part.trim())
    };
    let (succeeded, failed, errored, timeout) =
        (told("succeeded")?, told("failed")?, told("errored")?, told("timeout")?);
    let mut reported = Reported::new(Tool::H2load, succeeded + failed);
    reported.failed = Some(Failures {
        status: failed.saturating_sub(errored),
        timeout: timeout.min(errored),
        other: errored.min(failed) - timeout.min(errored).min(failed),
        ..Failures::default()
    });
    reported.seconds = finished.next().and_then(seconds);
    reported.requests_per_s = finished.next().and_then(|rate| number(rate.strip_suffix(" req/s")?));
    reported.received_bytes = after(&report, "traffic:").and_then(|traffic| {
        let (_, exact) = traffic.split_once('(')?;
        count(exact.split_once(") total")?.0)
    });
    if succeeded > 0 {
        reported.times_ms = times(&report);
    }
    Some(reported)
}

/// The row for requests, whose columns are found by the table's header.
fn times(report: &[&str]) -> Times {
    let mut times = Times::default();
    let Some(head) = report.iter().find(|line| line.trim_start().starts_with("min ")) else { return times };
    let row = after(report, "time for request:").or_else(|| after(report, "request  "));
    let cells = row.map(|row| row.trim_start_matches([' ', ':']).split_whitespace()).into_iter().flatten();
    for (column, cell) in head.split_whitespace().zip(cells) {
        match (column, ms(cell)) {
            ("max", time) => times.max = time,
            ("mean", time) => times.mean = time,
            ("median", time) => times.p50 = time,
            ("p90", time) => times.p90 = time,
            ("p99", time) => times.p99 = time,
            _ => {}
        }
    }
    times
}
