//! Counts while a phase runs: each request ends here, once, as correct or as one kind of failure.

use super::outcome::{Failures, GiveUp, Interval};
use crate::error::{Error, Result};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// How one request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Status(u16),
    Short,
    Refused,
    Reset,
    Timeout,
    Ports,
    Protocol,
}

impl Failure {
    /// What happened, as the end of a sentence.
    fn sentence(self) -> String {
        match self {
            Self::Status(status) => format!("was answered with status {status}"),
            Self::Short => "got a short answer".to_owned(),
            Self::Refused => "was refused a connection".to_owned(),
            Self::Reset => "lost its connection".to_owned(),
            Self::Timeout => "timed out".to_owned(),
            Self::Ports => "found no free local port".to_owned(),
            Self::Protocol => "got what is no HTTP/1.1 answer".to_owned(),
        }
    }
}

/// Counts while a phase runs.
pub(super) struct Tally {
    pub(super) ok: u64,
    pub(super) failures: Failures,
    pub(super) wrong_statuses: BTreeMap<u16, u64>,
    pub(super) connections_opened: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) lag_ns_max: u64,
    pub(super) rate_ok: u64,
    pub(super) last_end_ns: u64,
    pub(super) failures_in_a_row: u64,
    pub(super) response: Option<Histogram<u64>>,
    /// The intervals handed out so far, merged.
    pub(super) total: Histogram<u64>,
    /// The interval under way: the only histogram the hot path touches in a closed model.
    interval: Histogram<u64>,
    interval_start_ns: u64,
    interval_ok: u64,
    interval_failed: u64,
    rate_end_ns: u64,
    /// Since when requests are begun without a correct answer to any; `u64::MAX` right after one.
    waiting_since_ns: u64,
    last_failure: Option<Failure>,
}

/// When a request was meant to start, did start, and ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) intended_ns: u64,
    pub(super) started_ns: u64,
    pub(super) ended_ns: u64,
}

impl Tally {
    /// Counts from `start_ns`; answers after `rate_end_ns` are left out of the rate.
    pub(super) fn new(start_ns: u64, rate_end_ns: u64, timeout_ns: u64, open_model: bool) -> Result<Self> {
        let total = histogram(timeout_ns)?;
        Ok(Self {
            ok: 0,
            failures: Failures::default(),
            wrong_statuses: BTreeMap::new(),
            connections_opened: 0,
            bytes_sent: 0,
            bytes_received: 0,
            lag_ns_max: 0,
            rate_ok: 0,
            last_end_ns: start_ns,
            failures_in_a_row: 0,
            // How late a request may start is not bounded by the timeout; a day is as good as never.
            response: if open_model { Some(histogram(86_400_000_000_000)?) } else { None },
            interval: total.clone(),
            total,
            interval_start_ns: start_ns,
            interval_ok: 0,
            interval_failed: 0,
            rate_end_ns,
            waiting_since_ns: u64::MAX,
            last_failure: None,
        })
    }

    /// A request begins.
    #[inline]
    pub(super) fn begun(&mut self, intended_ns: u64, now_ns: u64) {
        self.lag_ns_max = self.lag_ns_max.max(now_ns - intended_ns);
        self.waiting_since_ns = self.waiting_since_ns.min(now_ns);
    }

    /// A correct answer within the timeout.
    #[inline]
    pub(super) fn answered(&mut self, times: Times) {
        self.interval.saturating_record(times.ended_ns - times.started_ns);
        if let Some(response) = &mut self.response {
            response.saturating_record(times.ended_ns.saturating_sub(times.intended_ns));
        }
        self.ok += 1;
        self.interval_ok += 1;
        self.rate_ok += u64::from(times.ended_ns <= self.rate_end_ns);
        self.failures_in_a_row = 0;
        self.waiting_since_ns = u64::MAX;
        self.last_end_ns = times.ended_ns;
    }

    pub(super) fn failed(&mut self, failure: Failure, now_ns: u64) {
        count(&mut self.failures, failure);
        if let Failure::Status(status) = failure {
            *self.wrong_statuses.entry(status).or_default() += 1;
        }
        self.interval_failed += 1;
        self.failures_in_a_row += 1;
        self.last_failure = Some(failure);
        self.last_end_ns = now_ns;
    }

    /// Why going on is hopeless, if it is.
    pub(super) fn hopeless(&self, bounds: &GiveUp, now_ns: u64) -> Option<String> {
        let last = || self.last_failure.map_or(String::new(), |failure| format!("; the last {}", failure.sentence()));
        if self.failures_in_a_row >= bounds.failures_in_a_row {
            return Some(format!("{} requests in a row failed{}", self.failures_in_a_row, last()));
        }
        let silence_ns = now_ns.saturating_sub(self.waiting_since_ns);
        if silence_ns < bounds.silence_ns {
            return None;
        }
        Some(format!("no correct answer for {:.1} s{}", silence_ns as f64 / 1e9, last()))
    }

    /// Hands out the interval under way, merges it into the total and begins the next.
    pub(super) fn end_interval(&mut self, now_ns: u64, on_interval: &mut dyn FnMut(Interval<'_>)) -> Result<()> {
        on_interval(Interval {
            start_ns: self.interval_start_ns,
            end_ns: now_ns,
            service: &self.interval,
            response: None,
            ok: self.interval_ok,
            failed: self.interval_failed,
            bytes_received: 0,
            open_connections: 0,
            queue: 0,
        });
        self.total
            .add(&self.interval)
            .map_err(|cause| Error::bug(format!("histograms of one phase differ: {cause}")))?;
        self.interval.reset();
        (self.interval_ok, self.interval_failed, self.interval_start_ns) = (0, 0, now_ns);
        Ok(())
    }
}

/// Adds one to its kind.
fn count(failures: &mut Failures, failure: Failure) {
    *match failure {
        Failure::Status(_) => &mut failures.status,
        Failure::Short => &mut failures.short,
        Failure::Refused => &mut failures.refused,
        Failure::Reset => &mut failures.reset,
        Failure::Timeout => &mut failures.timeout,
        Failure::Ports => &mut failures.ports,
        Failure::Protocol => &mut failures.protocol,
    } += 1;
}

/// A histogram of nanoseconds up to `max_ns` with three significant digits.
fn histogram(max_ns: u64) -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, max_ns.max(2), 3)
        .map_err(|cause| Error::bug(format!("no histogram up to {max_ns} ns: {cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(started_ns: u64, ended_ns: u64) -> Times {
        Times { intended_ns: started_ns, started_ns, ended_ns }
    }

    #[test]
    fn intervals_leave_no_gap_and_add_up_to_the_total() {
        let mut tally = Tally::new(100, u64::MAX, 1_000_000, false).unwrap();
        let mut merged = tally.total.clone();
        let mut spans = Vec::new();
        for round in 1..=3u64 {
            for n in 1..=round * 10 {
                tally.answered(times(0, n * 777));
            }
            tally.failed(Failure::Short, 1);
            tally
                .end_interval(1000 * round, &mut |interval| {
                    merged.add(interval.service).unwrap();
                    spans.push((interval.start_ns, interval.end_ns, interval.ok, interval.failed));
                })
                .unwrap();
        }
        assert_eq!(spans, [(100, 1000, 10, 1), (1000, 2000, 20, 1), (2000, 3000, 30, 1)]);
        assert_eq!(merged, tally.total);
        assert_eq!(tally.total.len(), tally.ok);
    }

    #[test]
    fn answers_after_the_planned_end_count_but_not_for_the_rate() {
        let mut tally = Tally::new(0, 1000, 1_000_000, false).unwrap();
        tally.answered(times(0, 1000));
        tally.answered(times(900, 1001));
        assert_eq!((tally.ok, tally.rate_ok), (2, 1));
    }

    #[test]
    fn hopeless_after_failures_in_a_row_or_silence_and_a_correct_answer_resets_both() {
        let bounds = GiveUp { failures_in_a_row: 3, silence_ns: 1000 };
        let mut tally = Tally::new(0, u64::MAX, 1_000_000, false).unwrap();
        tally.failed(Failure::Status(503), 1);
        tally.failed(Failure::Status(404), 2);
        assert_eq!(tally.hopeless(&bounds, 3), None);
        tally.answered(times(3, 500));
        assert_eq!(tally.hopeless(&bounds, 9999), None, "nothing was asked since");
        tally.begun(500, 500);
        tally.failed(Failure::Short, 501);
        assert_eq!(tally.hopeless(&bounds, 1499), None);
        assert_eq!(tally.hopeless(&bounds, 1500).unwrap(), "no correct answer for 0.0 s; the last got a short answer");
        tally.failed(Failure::Refused, 502);
        tally.failed(Failure::Status(503), 503);
        assert_eq!(
            tally.hopeless(&bounds, 504).unwrap(),
            "3 requests in a row failed; the last was answered with status 503"
        );
        assert_eq!(tally.failures.total(), 5);
        assert_eq!(tally.wrong_statuses, BTreeMap::from([(404, 1), (503, 2)]));
    }

    #[test]
    fn response_time_runs_from_the_intended_start() {
        let mut tally = Tally::new(0, u64::MAX, 1_000_000, true).unwrap();
        tally.answered(Times { intended_ns: 100, started_ns: 500, ended_ns: 600 });
        tally.end_interval(600, &mut |_| {}).unwrap();
        assert_eq!(tally.total.max(), 100);
        assert_eq!(tally.response.unwrap().max(), 500);
    }
}
