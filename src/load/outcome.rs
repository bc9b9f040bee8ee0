//! What a phase of load came to: counts by kind, the histogram, why it ended.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Everything one call of [`drive`](super::drive) saw.
///
/// `requests == ok + failures.total()`; requests begun but neither answered nor failed are `in_flight`.
#[derive(Clone)]
pub struct Outcome {
    /// When the first request was begun, on the clock that was given.
    pub start_ns: u64,
    /// From the first start to the end of the last request, the drain after a planned end included.
    pub elapsed_ns: u64,
    /// Requests answered or failed.
    pub requests: u64,
    /// Requests answered correctly: the expected status, complete, within the timeout.
    pub ok: u64,
    /// The others, by kind.
    pub failures: Failures,
    /// Answered correctly within `rate_span_ns`.
    pub rate_ok: u64,
    /// The span of the achieved rate: the planned span where time ends the phase, else `elapsed_ns`.
    /// So the few requests that are still under way at a planned end, however slow, are in the histogram and the
    /// counts but neither raise nor lower the rate.
    pub rate_span_ns: u64,
    /// Service time of correct answers in nanoseconds: from the actual start to the last byte.
    /// The actual start is the first byte sent or, for a request that had to open its connection, the connect.
    /// Three significant digits; none is longer than the timeout.
    pub service: Histogram<u64>,
    /// Response time of correct answers in nanoseconds, from the intended start; only in an open model.
    pub response: Option<Histogram<u64>>,
    /// The largest delay from intended to actual start; 0 in a closed model, where nothing is intended.
    pub lag_ns_max: u64,
    /// Requests under way when it was stopped or given up; 0 otherwise.
    pub in_flight: u64,
    /// Connections established.
    pub connections_opened: u64,
    /// Bytes of requests handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes of answers, heads included.
    pub bytes_received: u64,
    /// The statuses behind `failures.status`, with how often each came.
    pub wrong_statuses: BTreeMap<u16, u64>,
    /// Why it ended.
    pub ended: End,
    /// CPU time of the thread that drove.
    pub cpu_ns: u64,
}

impl Outcome {
    /// Correct answers per second.
    pub fn achieved_per_s(&self) -> f64 {
        match self.rate_span_ns {
            0 => 0.0,
            span_ns => self.rate_ok as f64 * 1e9 / span_ns as f64,
        }
    }
}

/// What matters at a glance: a histogram prints thousands of numbers.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("ended", &self.ended)
            .field("requests", &self.requests)
            .field("ok", &self.ok)
            .field("failures", &self.failures)
            .field("in_flight", &self.in_flight)
            .field("elapsed_ns", &self.elapsed_ns)
            .field("service_ns_max", &self.service.max())
            .field("wrong_statuses", &self.wrong_statuses)
            .finish_non_exhaustive()
    }
}

/// Failed requests by kind; a request fails in one way only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Failures {
    /// Complete answers with another status than the expected one.
    pub status: u64,
    /// Answers that ended before their end.
    pub short: u64,
    /// Connections that were not accepted: refused or unreachable.
    pub refused: u64,
    /// Connections that ended before the first byte of the answer, or were reset at any time.
    /// A server that silently closes a keep-alive connection between two requests counts here too: the request was
    /// sent and got no answer, and repeating it unseen would hide that.
    pub reset: u64,
    /// No complete answer within the timeout, the connect included.
    pub timeout: u64,
    /// No local port was free for the connection.
    pub ports: u64,
    /// What came was no HTTP/1.x answer, or more than its length.
    pub protocol: u64,
    /// Of a kind that was not told: only where an outside tool drove the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Failures {
    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, count)| count).sum()
    }

    /// Kind and count, in the order of the fields.
    pub fn kinds(&self) -> [(&'static str, u64); 8] {
        [
            ("wrong status", self.status),
            ("short", self.short),
            ("refused", self.refused),
            ("reset", self.reset),
            ("timed out", self.timeout),
            ("out of ports", self.ports),
            ("not HTTP", self.protocol),
            ("otherwise", self.other),
        ]
    }

    /// `12 reset, 3 refused`.
    pub fn describe(&self) -> String {
        let parts = self.kinds().into_iter().filter(|(_, count)| *count > 0);
        parts.map(|(kind, count)| format!("{} {kind}", crate::units::grouped(count))).collect::<Vec<_>>().join(", ")
    }
}

/// Why a phase ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All that was planned was done.
    Done,
    /// [`Control::stop`](super::Control::stop) was called.
    Stopped,
    /// To go on was hopeless; the sentence says why.
    GaveUp(String),
}

/// About a second of a phase, handed out while it runs; the last one is shorter.
///
/// The intervals of a phase leave no gap, and their histograms and counts add up to the outcome's.
pub struct Interval<'a> {
    /// Its beginning, on the clock that was given.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// Service time of the correct answers that came in it, in nanoseconds.
    pub service: &'a Histogram<u64>,
    /// Correct answers in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
}

impl fmt::Debug for Interval<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interval {}..{} ns: {} ok, {} failed", self.start_ns, self.end_ns, self.ok, self.failed)
    }
}

/// When going on is hopeless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GiveUp {
    /// This many failures in a row, whatever their kind.
    pub failures_in_a_row: u64,
    /// This long without a correct answer while requests were begun.
    pub silence_ns: u64,
}

impl GiveUp {
    /// No hiccup fails this many requests in a row, and at 10 ms between connects a dead server reaches it in seconds.
    pub const FAILURES_IN_A_ROW_MIN: u64 = 1000;
    /// With many connections one hiccup fails a request on each; four times that is no hiccup.
    pub const FAILURES_PER_CONNECTION: u64 = 4;
    /// One timeout may be the longest pause a healthy server makes; three in a row without one answer are not.
    pub const SILENCE_TIMEOUTS: u64 = 3;

    /// The default bounds.
    pub fn for_work(work: &crate::scenario::Work) -> Self {
        let connections = u64::from(work.schedule.connections());
        Self {
            failures_in_a_row: Self::FAILURES_IN_A_ROW_MIN.max(Self::FAILURES_PER_CONNECTION * connections),
            silence_ns: super::schedule::nanoseconds(work.timeout.0).saturating_mul(Self::SILENCE_TIMEOUTS),
        }
    }
}
