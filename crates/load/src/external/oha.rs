//! oha 1.x: the text summary and `--output-format json` (`-j` in older versions):
//!
//! ```text
//! Summary:
//!   Success rate: 66.67%
//!   Total:        16706.3160 us
//!   Slowest:      808.6970 us
//!   Average:      250.0205 us
//!   Requests/sec: 17957.2803
//!
//! Response time distribution:
//!   50.00% in 188.6100 us
//!
//! Status code distribution:
//!   [200] 200 responses
//!
//! Error distribution:
//!   [100] connection closed before message completed
//! ```
//!
//! Times cover all responses, regardless of status. oha counts a request that was cut off by the end as neither a
//! success nor a failure; this reader does not count it as a request. With `--latency-correction`, which the text does
//! not show, oha's times begin at the intended start.

use super::json::{amount, last_object};
use super::quantity::{count, ms, number, percent};
use super::{Reported, Times, Tool, after, last_report};
use crate::Failures;
use serde_json::Value;

/// oha's error for a request that was cut off by the end.
const CUT_BY_THE_END: &str = "aborted due to deadline";

pub(super) fn read(text: &str) -> Option<Reported> {
    last_object(text, document).or_else(|| summary(text))
}

/// oha's counts: statuses and errors.
#[derive(Default)]
struct Counts {
    answers: u64,
    failures: Failures,
    cut_by_the_end: u64,
}

impl Counts {
    fn add_status(&mut self, status: u64, n: u64) {
        self.answers += n;
        if status >= 400 {
            self.failures.status += n;
        }
    }

    fn add_error(&mut self, error: &str, n: u64) {
        match error {
            CUT_BY_THE_END => self.cut_by_the_end += n,
            error if error.contains("onnection refused") => self.failures.refused += n,
            error if error.contains("onnection closed") || error.contains("onnection reset") => {
                self.failures.reset += n
            }
            error if error.contains("timeout") || error.contains("timed out") => self.failures.timeout += n,
            _ => self.failures.other += n,
        }
    }

    fn requests(&self) -> u64 {
        self.answers + self.failures.total() - self.failures.status
    }

    /// Whether the counts are complete: they must match the rate times the duration, within rounding.
    fn are_all(&self, per_s: f64, seconds: f64) -> bool {
        let counted = (self.requests() + self.cut_by_the_end) as f64;
        (per_s * seconds - counted).abs() <= 0.5 + counted * 2e-4
    }

    fn reported(&self, per_s: f64, seconds: f64, ms: Times) -> Option<Reported> {
        if !self.are_all(per_s, seconds) {
            return None;
        }
        let (requests_per_s, seconds, failed) = (Some(per_s), Some(seconds), Some(self.failures));
        Some(Reported { failed, seconds, requests_per_s, times_ms: ms, ..Reported::new(Tool::Oha, self.requests()) })
    }
}

fn document(document: &Value) -> Option<Reported> {
    let summary = document.get("summary")?;
    let mut counts = Counts::default();
    for (status, n) in document.get("statusCodeDistribution")?.as_object()? {
        counts.add_status(count(status)?, n.as_u64()?);
    }
    for (error, n) in document.get("errorDistribution")?.as_object()? {
        counts.add_error(error, n.as_u64()?);
    }
    let in_ms = |value: Option<&Value>| value.and_then(amount).map(|seconds| seconds * 1e3);
    let mut times = Times::default();
    for (name, value) in document.get("latencyPercentiles").and_then(Value::as_object).into_iter().flatten() {
        if let (Some(percent), Some(ms)) = (name.strip_prefix('p').and_then(number), in_ms(Some(value))) {
            times.set(percent, ms);
        }
    }
    (times.max, times.mean) = (in_ms(summary.get("slowest")), in_ms(summary.get("average")));
    let (per_s, seconds) = (amount(summary.get("requestsPerSec")?)?, amount(summary.get("total")?)?);
    let mut reported = counts.reported(per_s, seconds, times)?;
    reported.received_bytes = summary.get("totalData").and_then(Value::as_u64);
    Some(reported)
}

fn summary(text: &str) -> Option<Reported> {
    let report = last_report(text, |line| line == "Summary:");
    after(&report, "Success rate:")?;
    let time = |text: &str| ms(&text.replace(' ', ""));
    let (seconds, per_s) = (time(after(&report, "Total:")?)? / 1e3, number(after(&report, "Requests/sec:")?)?);
    let mut counts = Counts::default();
    for line in section(&report, "Status code distribution:")? {
        let (status, n) = line.strip_prefix('[')?.split_once("] ")?;
        counts.add_status(count(status)?, count(n.strip_suffix(" responses")?)?);
    }
    for line in section(&report, "Error distribution:").into_iter().flatten() {
        let (n, error) = line.strip_prefix('[')?.split_once("] ")?;
        counts.add_error(error, count(n)?);
    }
    let mut times = Times::default();
    for line in section(&report, "Response time distribution:").into_iter().flatten() {
        if let Some((Some(share), Some(ms))) = line.split_once(" in ").map(|(share, ms)| (percent(share), time(ms))) {
            times.set(share, ms);
        }
    }
    times.max = after(&report, "Slowest:").and_then(time);
    times.mean = after(&report, "Average:").and_then(time);
    counts.reported(per_s, seconds, times)
}

/// The lines between a heading and the next empty line.
fn section<'a>(report: &'a [&'a str], heading: &str) -> Option<impl Iterator<Item = &'a str>> {
    let at = report.iter().position(|line| *line == heading)?;
    Some(report[at + 1..].iter().map(|line| line.trim()).take_while(|line| !line.is_empty()))
}
