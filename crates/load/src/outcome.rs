//! The outcome of a load phase: counts by kind, the histogram, and why it ended.

use super::tally::Failure;
use crate::work::{Condition, Measured, Statistic, Time};
use hdrhistogram::Histogram;
use loadline_base::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// Everything that one call to [`drive`](super::drive) recorded.
///
/// `requests == ok + failures.total()`; requests that began but neither finished nor failed are `in_flight`.
#[derive(Clone)]
pub struct Outcome {
    /// When the first request began, on the given clock.
    pub start_ns: u64,
    /// From the first start to the end of the last request, including the drain after a planned end.
    pub elapsed_ns: u64,
    /// Requests that got a response or failed.
    pub requests: u64,
    /// Correct responses: with the expected status, complete, and within the timeout.
    pub ok: u64,
    /// Failed requests, by kind.
    pub failures: Failures,
    /// Correct responses within `rate_span_ns`.
    pub rate_ok: u64,
    /// The span for the achieved rate: the planned span if time ends the phase, otherwise `elapsed_ns`. The few
    /// requests still in flight at a planned end therefore neither raise nor lower the rate, however slow they are.
    /// They do appear in the histogram and the counts.
    pub rate_span_ns: u64,
    /// Service time of correct responses in nanoseconds: from the actual start to the last byte. The actual start is
    /// the first byte sent or, for a request that had to open its connection, the connect. Three significant digits;
    /// never longer than the timeout.
    pub service: Histogram<u64>,
    /// Response time of correct responses in nanoseconds, from the intended start; only in an open model.
    pub response: Option<Histogram<u64>>,
    /// Schedule lag in nanoseconds of every request begun: from the time it was due and a connection was free to its
    /// actual start. Caused by the generator itself. Only in an open model.
    pub lag: Option<Histogram<u64>>,
    /// Requests that the plan scheduled within `rate_span_ns`; `None` in a closed model.
    pub offered: Option<u64>,
    /// Requests that waited for a free connection, however briefly; 0 in a closed model.
    pub queued: u64,
    /// Maximum number of requests waiting at the same time.
    pub queue_max: u64,
    /// Ages in nanoseconds of the requests counted in `failures.unanswered`: from the intended start to the end of the
    /// drain.
    pub unanswered: Histogram<u64>,
    /// Requests in flight when the phase was stopped or given up; 0 otherwise.
    pub in_flight: u64,
    /// Connections of the plan, including those that a growing pool opened.
    pub connections_asked: u64,
    /// Connections established, including reconnects if requests close their connections.
    pub connections_opened: u64,
    /// Maximum number of connections established at the same time.
    pub connections_open_max: u64,
    /// Correct and failed responses per request of the plan, in its order.
    pub by_request: Vec<(u64, u64)>,
    /// Requests that came due but never began: counted in `failures.unanswered`, but not for any request of the plan.
    pub never_begun: u64,
    /// One row per request, or a uniform sample, by start; empty if none were requested.
    pub rows: Vec<Row>,
    /// The first TLS error in words.
    pub tls_trouble: Option<String>,
    /// Whether `ended` contains the same error.
    pub tls_told: bool,
    /// The protocol stack: `http/1.1`, `http/1.1 over TLSv1.3`, `http/2`, and so on.
    pub backend: String,
    /// Request bytes passed to the kernel.
    pub bytes_sent: u64,
    /// Response bytes, including heads.
    pub bytes_received: u64,
    /// The statuses counted in `failures.status`, each with its count.
    pub wrong_statuses: BTreeMap<u16, u64>,
    /// Why the phase ended.
    pub ended: End,
    /// CPU time of the load threads.
    pub cpu_ns: u64,
    /// Number of load threads.
    pub threads: u32,
}

impl Outcome {
    /// The outcome of a phase with this many requests in its plan, before the first of them begins.
    pub(super) fn new(requests: usize, is_open: bool) -> Result<Self> {
        // Three significant digits; it grows with its largest value, because room for a timeout or a day would be
        // resident from the beginning, a quarter of a MiB each.
        let times = Histogram::new(3).map_err(|cause| Error::bug(format!("cannot create a histogram: {cause}")))?;
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

    /// Returns the first TLS error, unless `ended` already contains it.
    pub fn tls_untold(&self) -> Option<&str> {
        self.tls_trouble.as_deref().filter(|_| !self.tls_told)
    }

    /// Correct responses per second.
    pub fn achieved_per_s(&self) -> f64 {
        match self.rate_span_ns {
            0 => 0.0,
            span_ns => self.rate_ok as f64 * 1e9 / span_ns as f64,
        }
    }
}

/// Prints only the main figures: a histogram prints thousands of numbers.
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

/// Failed requests by kind; each request counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failures {
    /// Complete responses with an unexpected status.
    pub status: u64,
    /// Truncated responses.
    pub short: u64,
    /// Connections refused, or host unreachable.
    pub refused: u64,
    /// Connections closed before the first byte of the response, or reset at any time. This includes keep-alive
    /// connections that the server closed silently between two requests; Loadline does not retry such requests.
    pub reset: u64,
    /// No complete response within the timeout, including connection setup.
    pub timeout: u64,
    /// No local port was free for the connection.
    pub ports: u64,
    /// Responses that were not valid HTTP, or longer than declared.
    pub protocol: u64,
    /// Complete responses that failed a check of length, header, or body.
    #[serde(default)]
    pub check: u64,
    /// TLS handshake failures: certificate, name, version, or alert.
    #[serde(default)]
    pub tls: u64,
    /// Requests of an open model without a response at the end of the drain.
    #[serde(default)]
    pub unanswered: u64,
    /// Failures of unknown kind, if an external tool drove the load or the subject counted its own work.
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

/// A time figure in milliseconds, from its histogram of nanoseconds; `None` if the histogram is empty. The usual time
/// is the response time, if there is one.
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
    /// Everything planned was done.
    Done,
    /// [`Control::stop`](super::Control::stop) was called.
    Stopped,
    /// Continuing was hopeless; the sentence says why.
    GaveUp(String),
    /// A stop condition of the plan held over an interval; the sentence names it and the figure.
    Met(String),
}

/// One request as it happened. All times are on the given clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The intended start; the actual start in a closed model.
    pub intended_ns: u64,
    /// The actual start.
    pub started_ns: u64,
    /// When its connection was established; equal to `started_ns` if it already was.
    pub connected_ns: u64,
    /// When the first bytes of the response arrived; equal to `ended_ns` if there were none.
    pub first_byte_ns: u64,
    /// When the response was complete or the request failed.
    pub ended_ns: u64,
    /// Bytes of the response body.
    pub body_bytes: u64,
    /// Number of the request in the plan, from 0; `None` if it never began.
    pub request: Option<u32>,
    /// Number of the connection, from 0; `None` if it never began.
    pub connection: Option<u32>,
    /// Status; 0 if there was none.
    pub status: u16,
    /// The kind of failure, as in [`Failures::kinds`]; `None` for a correct response.
    pub failure: Option<&'static str>,
}

/// About a second of a phase, lent during the run; the last one is shorter.
///
/// The intervals of a phase leave no gap, and their histograms and counts add up to the outcome's.
#[derive(Clone)]
pub struct Interval {
    /// The beginning of the interval, on the given clock.
    pub start_ns: u64,
    /// The end of the interval.
    pub end_ns: u64,
    /// Service time of the interval's correct responses, in nanoseconds.
    pub service: Histogram<u64>,
    /// Response time of the same responses; `None` in a closed model.
    pub response: Option<Histogram<u64>>,
    /// Correct responses in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that the plan scheduled in it; `None` in a closed model.
    pub offered: Option<u64>,
    /// Response bytes in it, including heads.
    pub bytes_received: u64,
    /// Connections established at its end.
    pub open_connections: u64,
    /// Requests waiting for a connection at its end; 0 in a closed model.
    pub queue: u64,
}

/// Conditions do not apply to shorter intervals: the short end of a phase is not representative.
const JUDGED_NS_MIN: u64 = 500_000_000;

impl Interval {
    /// The first stop condition that holds over it, in words.
    pub(super) fn met(&self, stop: &[Condition]) -> Option<String> {
        if self.end_ns.saturating_sub(self.start_ns) < JUDGED_NS_MIN {
            return None;
        }
        stop.iter().find_map(|condition| {
            let (holds, value) = condition.judge(self)?;
            holds.then(|| format!("the stop condition {condition} was met ({})", condition.show(value)))
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

/// When continuing is hopeless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GiveUp {
    /// Consecutive failures of any kind.
    pub failures_in_a_row: u64,
    /// Time without a correct response while requests were begun.
    pub silence_ns: u64,
}

impl GiveUp {
    /// No hiccup fails this many consecutive requests; a dead server, at 10 ms per connect, does so in seconds.
    pub const FAILURES_IN_A_ROW_MIN: u64 = 1000;
    /// With many connections, one hiccup fails all their requests; four times as many failures are not a hiccup.
    pub const FAILURES_PER_CONNECTION: u64 = 4;
    /// One timeout may be the longest pause of a healthy server; three in a row without any response are not.
    pub const SILENCE_TIMEOUTS: u64 = 3;

    /// The default limits.
    pub fn for_work(work: &crate::work::Work) -> Self {
        let connections = u64::from(work.schedule.connections_max()) * u64::from(work.protocol.streams());
        Self {
            failures_in_a_row: Self::FAILURES_IN_A_ROW_MIN.max(Self::FAILURES_PER_CONNECTION * connections),
            silence_ns: super::schedule::nanoseconds(work.timeout.0).saturating_mul(Self::SILENCE_TIMEOUTS),
        }
    }
}
