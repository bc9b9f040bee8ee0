//! The outcome of a phase of load: counts by kind, the histogram, the reason why it ended.

use super::tally::Failure;
use crate::work::{Condition, Measured, Statistic, Time};
use hdrhistogram::Histogram;
use loadline_base::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

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
    /// Failed requests, by kind.
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
    /// Schedule lag in nanoseconds, of every request begun: from the moment at which it was due and a connection was
    /// free for it, to its actual start. The generator's own fault. Only in an open model.
    pub lag: Option<Histogram<u64>>,
    /// Requests the plan wanted to start within `rate_span_ns`; `None` in a closed model.
    pub offered: Option<u64>,
    /// Requests that waited for a free connection, however shortly; 0 in a closed model.
    pub queued: u64,
    /// The most requests that waited at once.
    pub queue_max: u64,
    /// Ages in nanoseconds of the requests behind `failures.unanswered`: from the intended start to the end of the
    /// drain.
    pub unanswered: Histogram<u64>,
    /// Requests under way when it was stopped or given up; 0 otherwise.
    pub in_flight: u64,
    /// Connections that the plan has, those a growing pool came to included.
    pub connections_asked: u64,
    /// Connections established, over and over where requests close them.
    pub connections_opened: u64,
    /// The most that were established at once.
    pub connections_open_max: u64,
    /// Correct and failed answers of each request of the plan, in its order.
    pub by_request: Vec<(u64, u64)>,
    /// Requests that came due and never began: they are in `failures.unanswered`, and of no request of the plan.
    pub never_begun: u64,
    /// One row for each request, or a fair sample of them, by start; empty where none were asked for.
    pub rows: Vec<Row>,
    /// The first TLS error in words.
    pub tls_trouble: Option<String>,
    /// Whether `ended` says the same.
    pub tls_told: bool,
    /// The protocol stack that spoke to the server: `http/1.1`, `http/1.1 over TLSv1.3`, `http/2` and the like.
    pub backend: String,
    /// Bytes of requests handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes of answers, heads included.
    pub bytes_received: u64,
    /// The statuses behind `failures.status`, with how often each came.
    pub wrong_statuses: BTreeMap<u16, u64>,
    /// Why the phase ended.
    pub ended: End,
    /// CPU time of the threads that drove.
    pub cpu_ns: u64,
    /// Threads that drove.
    pub threads: u32,
}

impl Outcome {
    /// The outcome of a phase with so many requests in its plan, before the first of them begins.
    pub(super) fn new(requests: usize, is_open: bool) -> Result<Self> {
        // Three significant digits; it grows with its largest value: room for a timeout or a day would be resident from
        // the beginning, a quarter of a MiB each.
        let times = Histogram::new(3).map_err(|cause| Error::bug(format!("no histogram of nanoseconds: {cause}")))?;
        let of_open_model = is_open.then(|| times.clone());
        Ok(Self {
            start_ns: 0,
            elapsed_ns: 0,
            requests: 0,
            ok: 0,
            failures: Failures::default(),
            rate_ok: 0,
            rate_span_ns: 0,
            service: times.clone(),
            response: of_open_model.clone(),
            lag: of_open_model,
            offered: is_open.then_some(0),
            queued: 0,
            queue_max: 0,
            unanswered: times,
            in_flight: 0,
            connections_asked: 0,
            connections_opened: 0,
            connections_open_max: 0,
            by_request: vec![(0, 0); requests],
            never_begun: 0,
            rows: Vec::new(),
            tls_trouble: None,
            tls_told: false,
            backend: String::new(),
            bytes_sent: 0,
            bytes_received: 0,
            wrong_statuses: BTreeMap::new(),
            ended: End::Done,
            cpu_ns: 0,
            threads: 1,
        })
    }

    /// Returns the offered rate per second; `None` in a closed model.
    pub fn offered_per_s(&self) -> Option<f64> {
        let offered = self.offered?;
        (self.rate_span_ns > 0).then(|| offered as f64 * 1e9 / self.rate_span_ns as f64)
    }

    /// Returns the first TLS error, unless `ended` already says it.
    pub fn tls_untold(&self) -> Option<&str> {
        self.tls_trouble.as_deref().filter(|_| !self.tls_told)
    }

    /// Correct answers per second.
    pub fn achieved_per_s(&self) -> f64 {
        match self.rate_span_ns {
            0 => 0.0,
            span_ns => self.rate_ok as f64 * 1e9 / span_ns as f64,
        }
    }
}

/// Prints only the figures that matter at a glance: a histogram prints thousands of numbers.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failures {
    /// Complete answers with another status than the expected one.
    pub status: u64,
    /// Answers that were cut off.
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
    /// The answer was not HTTP, or was longer than its length.
    pub protocol: u64,
    /// Complete answers that failed a check of length, header or body.
    #[serde(default)]
    pub check: u64,
    /// No TLS session: certificate, name, version, alert.
    #[serde(default)]
    pub tls: u64,
    /// Due in an open model, but without an answer at the end of the drain.
    #[serde(default)]
    pub unanswered: u64,
    /// Failures of unknown kind: only if an outside tool drove the load, or the subject counted its own work.
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
    pub fn kinds(&self) -> [(&'static str, u64); 11] {
        let mut counted = *self;
        counted.counts().map(|(kind, count)| (kind, *count))
    }

    fn counts(&mut self) -> [(&'static str, &mut u64); 11] {
        [
            ("wrong status", &mut self.status),
            ("short", &mut self.short),
            ("refused", &mut self.refused),
            ("reset", &mut self.reset),
            ("timed out", &mut self.timeout),
            ("out of ports", &mut self.ports),
            ("not HTTP", &mut self.protocol),
            ("failed check", &mut self.check),
            ("TLS", &mut self.tls),
            ("unanswered", &mut self.unanswered),
            ("unspecified", &mut self.other),
        ]
    }

    /// The count of a kind.
    pub(super) fn of(&mut self, failure: Failure) -> &mut u64 {
        match failure {
            Failure::Status(_) => &mut self.status,
            Failure::Short => &mut self.short,
            Failure::Refused => &mut self.refused,
            Failure::Reset => &mut self.reset,
            Failure::Timeout => &mut self.timeout,
            Failure::Ports => &mut self.ports,
            Failure::Protocol => &mut self.protocol,
            Failure::Check => &mut self.check,
            Failure::Tls => &mut self.tls,
            Failure::Unanswered => &mut self.unanswered,
        }
    }

    /// `12 reset, 3 refused`.
    pub fn describe(&self) -> String {
        let parts = self.kinds().into_iter().filter(|(_, count)| *count > 0);
        parts
            .map(|(kind, count)| format!("{} {kind}", loadline_base::units::grouped(count)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl AddAssign for Failures {
    fn add_assign(&mut self, more: Self) {
        for ((_, count), (_, more)) in self.counts().into_iter().zip(more.kinds()) {
            *count += more;
        }
    }
}

/// A figure of a time in milliseconds, from its histogram of nanoseconds; `None` where that is empty. Response time is
/// the usual one where there is one.
fn time_ms(
    service: &Histogram<u64>,
    response: Option<&Histogram<u64>>,
    time: Time,
    statistic: Statistic,
) -> Option<f64> {
    let histogram = match time {
        Time::Service => service,
        Time::Response => response?,
        Time::Usual => response.unwrap_or(service),
    };
    let ns = match statistic {
        _ if histogram.is_empty() => return None,
        Statistic::Quantile(thousandths) => histogram.value_at_quantile(f64::from(thousandths) / 1000.0) as f64,
        Statistic::Max => histogram.max() as f64,
        Statistic::Mean => histogram.mean(),
    };
    Some(ns / 1e6)
}

impl Measured for Outcome {
    fn time_ms(&self, time: Time, statistic: Statistic) -> Option<f64> {
        time_ms(&self.service, self.response.as_ref(), time, statistic)
    }

    fn failed_of(&self) -> (u64, u64) {
        (self.failures.total(), self.requests)
    }

    fn rate_of(&self) -> (f64, Option<f64>) {
        (self.achieved_per_s(), self.offered_per_s())
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
    /// A stop condition of the plan held over an interval; the sentence says which, and the figure.
    Met(String),
}

/// One request as it went. All moments are on the clock that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// When the request was meant to start; the actual start in a closed model.
    pub intended_ns: u64,
    /// When the request did start.
    pub started_ns: u64,
    /// When its connection stood; equal to `started_ns` where it stood before.
    pub connected_ns: u64,
    /// When the first bytes of the answer came; equal to `ended_ns` where none came.
    pub first_byte_ns: u64,
    /// When the answer was complete or the request failed.
    pub ended_ns: u64,
    /// Bytes of the answer's body.
    pub body_bytes: u64,
    /// Number of the request in the plan, from 0; `None` where it never began.
    pub request: Option<u32>,
    /// Number of the connection, from 0; `None` where it never began.
    pub connection: Option<u32>,
    /// Status; 0 where none came.
    pub status: u16,
    /// The kind of failure, as in [`Failures::kinds`]; `None` for a correct answer.
    pub failure: Option<&'static str>,
}

/// About a second of a phase, lent while it runs; the last one is shorter.
///
/// The intervals of a phase leave no gap, and their histograms and counts add up to the outcome's.
#[derive(Clone)]
pub struct Interval {
    /// The beginning of the interval, on the clock that was given.
    pub start_ns: u64,
    /// The end of the interval.
    pub end_ns: u64,
    /// Service time of the correct answers that came in it, in nanoseconds.
    pub service: Histogram<u64>,
    /// Response time of the same answers; `None` in a closed model.
    pub response: Option<Histogram<u64>>,
    /// Correct answers in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that the plan wanted to start in it; `None` in a closed model.
    pub offered: Option<u64>,
    /// Bytes of answers in it, heads included.
    pub bytes_received: u64,
    /// Connections established at its end.
    pub open_connections: u64,
    /// Requests that wait for a connection at its end; 0 in a closed model.
    pub queue: u64,
}

/// Shorter intervals are judged by no condition: the rest of a phase says little.
const JUDGED_NS_MIN: u64 = 500_000_000;

impl Interval {
    /// The first of the stop conditions that holds over it, in words.
    pub(super) fn met(&self, stop: &[Condition]) -> Option<String> {
        if self.end_ns.saturating_sub(self.start_ns) < JUDGED_NS_MIN {
            return None;
        }
        stop.iter().find_map(|condition| {
            let (holds, value) = condition.judge(self)?;
            holds.then(|| format!("the stop condition {condition} held ({})", condition.show(value)))
        })
    }
}

impl Measured for Interval {
    fn time_ms(&self, time: Time, statistic: Statistic) -> Option<f64> {
        time_ms(&self.service, self.response.as_ref(), time, statistic)
    }

    fn failed_of(&self) -> (u64, u64) {
        (self.failed, self.ok + self.failed)
    }

    fn rate_of(&self) -> (f64, Option<f64>) {
        let span_s = self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        (self.ok as f64 / span_s, self.offered.map(|offered| offered as f64 / span_s))
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interval {}..{} ns: {} ok, {} failed", self.start_ns, self.end_ns, self.ok, self.failed)
    }
}

/// When going on is hopeless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GiveUp {
    /// Failures in a row, whatever their kind.
    pub failures_in_a_row: u64,
    /// Time without a correct answer while requests were begun.
    pub silence_ns: u64,
}

impl GiveUp {
    /// No hiccup fails this many requests in a row, and at 10 ms between connects a dead server reaches it in seconds.
    pub const FAILURES_IN_A_ROW_MIN: u64 = 1000;
    /// With many connections one hiccup fails all requests on each; four times that is no hiccup.
    pub const FAILURES_PER_CONNECTION: u64 = 4;
    /// One timeout may be the longest pause a healthy server makes; three in a row without one answer are not.
    pub const SILENCE_TIMEOUTS: u64 = 3;

    /// The default bounds.
    pub fn for_work(work: &crate::work::Work) -> Self {
        let connections = u64::from(work.schedule.connections_max()) * u64::from(work.protocol.streams());
        Self {
            failures_in_a_row: Self::FAILURES_IN_A_ROW_MIN.max(Self::FAILURES_PER_CONNECTION * connections),
            silence_ns: super::schedule::nanoseconds(work.timeout.0).saturating_mul(Self::SILENCE_TIMEOUTS),
        }
    }
}
