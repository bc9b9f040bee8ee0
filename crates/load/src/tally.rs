//! Counts during a phase: each request ends in this module exactly once, as correct or as one kind of failure.

use super::outcome::{Failures, GiveUp, Interval, Outcome, Row};
use super::rows::Rows;
use crate::work::Condition;
use hdrhistogram::Histogram;
use loadline_base::error::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Status(u16),
    Short,
    Refused,
    Reset,
    Timeout,
    Ports,
    Protocol,
    Check,
    Tls,
    Unanswered,
}

impl Failure {
    /// Describes the failure, as the end of a sentence.
    fn sentence(self) -> String {
        match self {
            Self::Status(status) => format!("got status {status}"),
            Self::Short => "got a truncated response".to_owned(),
            Self::Refused => "was refused".to_owned(),
            Self::Reset => "lost its connection".to_owned(),
            Self::Timeout => "timed out".to_owned(),
            Self::Ports => "found no free local port".to_owned(),
            Self::Protocol => "got a response that is not HTTP".to_owned(),
            Self::Check => "failed a response check".to_owned(),
            Self::Tls => "failed in the TLS handshake".to_owned(),
            Self::Unanswered => "had no response by the end".to_owned(),
        }
    }

    /// As in [`Failures::kinds`].
    fn kind(self) -> &'static str {
        let mut one = Failures::default();
        *one.of(self) = 1;
        one.kinds().into_iter().find(|(_, count)| *count > 0).map_or("", |(kind, _)| kind)
    }
}

/// The timeout does not limit how late a request starts or finishes; a day is as good as never.
const DAY_NS: u64 = 86_400_000_000_000;

/// Counts during a phase.
pub(super) struct Tally {
    /// The outcome of the phase so far, without the times and received bytes of the current interval.
    pub(super) sum: Outcome,
    /// The current interval, with its current connections and queue. In a closed model, its histogram is the only one
    /// on the hot path.
    pub(super) interval: Interval,
    pub(super) rows: Rows,
    pub(super) last_end_ns: u64,
    pub(super) failures_in_a_row: u64,
    pub(super) last_failure: Option<Failure>,
    rate_end_ns: u64,
    /// When requests began to go without a correct response; `u64::MAX` right after one.
    waiting_since_ns: u64,
}

impl Tally {
    /// `requests` is the number in the plan. Response time and lag are recorded only in an open model.
    pub(super) fn new(requests: usize, rows: Rows, is_open: bool) -> Result<Self> {
        let sum = Outcome::new(requests, is_open)?;
        let interval = Interval {
            start_ns: 0,
            end_ns: 0,
            service: sum.service.clone(),
            response: sum.response.clone(),
            ok: 0,
            failed: 0,
            offered: None,
            bytes_received: 0,
            open_connections: 0,
            queue: 0,
        };
        Ok(Self {
            sum,
            interval,
            rows,
            last_end_ns: 0,
            failures_in_a_row: 0,
            last_failure: None,
            rate_end_ns: u64::MAX,
            waiting_since_ns: u64::MAX,
        })
    }

    /// Counts from `start_ns`; the rate excludes responses after `rate_end_ns`.
    pub(super) fn start(&mut self, start_ns: u64, rate_end_ns: u64) {
        (self.sum.start_ns, self.last_end_ns, self.interval.start_ns) = (start_ns, start_ns, start_ns);
        self.rate_end_ns = rate_end_ns;
    }

    /// A request begins on a connection that has been free since `free_ns`.
    #[inline]
    pub(super) fn begun(&mut self, intended_ns: u64, free_ns: u64, now_ns: u64) {
        if let Some(lag) = &mut self.sum.lag {
            self.sum.queued += u64::from(free_ns > intended_ns);
            record(lag, now_ns.saturating_sub(intended_ns.max(free_ns)));
        }
        self.sum.in_flight += 1;
        self.waiting_since_ns = self.waiting_since_ns.min(now_ns);
    }

    /// A correct response within the timeout.
    #[inline]
    pub(super) fn answered(&mut self, ended: Row) {
        record(&mut self.interval.service, ended.ended_ns - ended.started_ns);
        if let Some(response) = &mut self.interval.response {
            record(response, ended.ended_ns.saturating_sub(ended.intended_ns));
        }
        self.sum.ok += 1;
        self.sum.in_flight -= 1;
        self.interval.ok += 1;
        self.sum.rate_ok += u64::from(ended.ended_ns <= self.rate_end_ns);
        self.failures_in_a_row = 0;
        self.waiting_since_ns = u64::MAX;
        self.last_end_ns = ended.ended_ns;
        if let Some((ok, _)) = self.of_request(&ended) {
            *ok += 1;
        }
        self.rows.answered(|| row(&ended, None));
    }

    /// Returns the counters of a request of the plan. A request that never began was not drawn, so it has none.
    #[inline]
    fn of_request(&mut self, ended: &Row) -> Option<&mut (u64, u64)> {
        self.sum.by_request.get_mut(ended.request? as usize)
    }

    /// A TLS failure; the first message is kept.
    pub(super) fn tls_failed(&mut self, words: String) -> Failure {
        self.sum.tls_trouble.get_or_insert(words);
        Failure::Tls
    }

    pub(super) fn failed(&mut self, failure: Failure, ended: Row) {
        let began = ended.request.is_some();
        let sum = &mut self.sum;
        *sum.failures.of(failure) += 1;
        match failure {
            Failure::Status(status) => *sum.wrong_statuses.entry(status).or_default() += 1,
            Failure::Unanswered => record(&mut sum.unanswered, ended.ended_ns.saturating_sub(ended.intended_ns)),
            _ => {}
        }
        sum.in_flight -= u64::from(began);
        sum.never_begun += u64::from(!began);
        self.interval.failed += 1;
        self.failures_in_a_row += 1;
        self.last_failure = Some(failure);
        self.last_end_ns = ended.ended_ns;
        if let Some((_, failed)) = self.of_request(&ended) {
            *failed += 1;
        }
        self.rows.failed(|| row(&ended, Some(failure.kind())));
    }

    /// Why continuing is hopeless, if it is.
    pub(super) fn hopeless(&self, bounds: &GiveUp, now_ns: u64) -> Option<String> {
        let words = || self.sum.tls_trouble.as_ref().map_or(String::new(), |words| format!(": {words}"));
        let last = || match self.last_failure {
            Some(Failure::Tls) => format!("; the last {}{}", Failure::Tls.sentence(), words()),
            Some(failure) => format!("; the last {}", failure.sentence()),
            None => String::new(),
        };
        if self.failures_in_a_row >= bounds.failures_in_a_row {
            // Names the limit rather than the count: one round over several connections may add several failures.
            return Some(format!("{} requests in a row failed{}", bounds.failures_in_a_row, last()));
        }
        let silence_ns = now_ns.saturating_sub(self.waiting_since_ns);
        if silence_ns < bounds.silence_ns {
            return None;
        }
        Some(format!("no successful response for {:.1} s{}", silence_ns as f64 / 1e9, last()))
    }

    /// Reports the current interval, which ends at `end_ns`, merges it into the sum, and begins the next one. `offered`
    /// is the count since the phase began. Returns the first stop condition that held over the interval, in words.
    pub(super) fn end_interval(
        &mut self,
        end_ns: u64,
        offered: Option<u64>,
        stop: &[Condition],
        on_interval: &mut dyn FnMut(&Interval),
    ) -> Result<Option<String>> {
        let (sum, interval) = (&mut self.sum, &mut self.interval);
        interval.end_ns = end_ns;
        interval.offered = offered.zip(sum.offered).map(|(now, before)| now.saturating_sub(before));
        let met = interval.met(stop);
        on_interval(interval);
        let differ = |cause| Error::bug(format!("histograms of one phase differ: {cause}"));
        sum.service.add(&interval.service).map_err(differ)?;
        interval.service.reset();
        if let (Some(whole), Some(part)) = (&mut sum.response, &mut interval.response) {
            whole.add(&*part).map_err(differ)?;
            part.reset();
        }
        sum.offered = offered;
        sum.bytes_received += interval.bytes_received;
        (interval.ok, interval.failed, interval.bytes_received, interval.start_ns) = (0, 0, 0, end_ns);
        Ok(met)
    }
}

/// The row of a request. Times that never came, which are 0 in the engine, are clamped to the request's own span.
fn row(ended: &Row, failure: Option<&'static str>) -> Row {
    let Row { started_ns, connected_ns, first_byte_ns, ended_ns, .. } = *ended;
    let first_byte_ns = if first_byte_ns == 0 { ended_ns } else { first_byte_ns.min(ended_ns) };
    Row { connected_ns: connected_ns.clamp(started_ns, ended_ns), first_byte_ns, failure, ..*ended }
}

/// A growing histogram has room for every time up to a day.
#[inline]
fn record(histogram: &mut Histogram<u64>, ns: u64) {
    let _ = histogram.record(ns.min(DAY_NS));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(start_ns: u64, rate_end_ns: u64) -> Tally {
        let mut tally = Tally::new(1, Rows::new(0, 1), true).unwrap();
        tally.start(start_ns, rate_end_ns);
        // Tests end requests that they never began, but no more than this many.
        tally.sum.in_flight = 100;
        tally
    }

    fn ended(started_ns: u64, ended_ns: u64) -> Row {
        Row {
            intended_ns: started_ns,
            started_ns,
            connected_ns: 0,
            first_byte_ns: 0,
            ended_ns,
            body_bytes: 0,
            request: Some(0),
            connection: Some(0),
            status: 200,
            failure: None,
        }
    }

    #[test]
    fn intervals_leave_no_gap_and_add_up_to_the_total() {
        let mut tally = tally(100, u64::MAX);
        let mut merged = tally.sum.service.clone();
        let mut spans = Vec::new();
        for round in 1..=3u64 {
            for n in 1..=round * 10 {
                tally.answered(ended(0, n * 777));
            }
            tally.failed(Failure::Short, ended(0, 1));
            tally
                .end_interval(1000 * round, None, &[], &mut |interval| {
                    merged.add(&interval.service).unwrap();
                    spans.push((interval.start_ns, interval.end_ns, interval.ok, interval.failed));
                })
                .unwrap();
        }
        assert_eq!(spans, [(100, 1000, 10, 1), (1000, 2000, 20, 1), (2000, 3000, 30, 1)]);
        assert_eq!(merged, tally.sum.service);
        assert_eq!(tally.sum.service.len(), tally.sum.ok);
        assert_eq!(tally.sum.by_request, [(60, 3)]);
    }

    #[test]
    fn responses_after_the_planned_end_do_not_count_for_the_rate() {
        let mut tally = tally(0, 1000);
        tally.answered(ended(0, 1000));
        tally.answered(ended(900, 1001));
        assert_eq!((tally.sum.ok, tally.sum.rate_ok), (2, 1));
    }

    #[test]
    fn a_phase_is_hopeless_after_failures_or_silence() {
        let bounds = GiveUp { failures_in_a_row: 3, silence_ns: 1000 };
        let mut tally = tally(0, u64::MAX);
        tally.failed(Failure::Status(503), ended(0, 1));
        tally.failed(Failure::Status(404), ended(0, 2));
        assert_eq!(tally.hopeless(&bounds, 3), None);
        tally.answered(ended(3, 500));
        assert_eq!(tally.hopeless(&bounds, 9999), None, "no request has started since the last response");
        tally.begun(500, 500, 500);
        tally.failed(Failure::Short, ended(500, 501));
        assert_eq!(tally.hopeless(&bounds, 1499), None);
        assert_eq!(
            tally.hopeless(&bounds, 1500).unwrap(),
            "no successful response for 0.0 s; the last got a truncated response"
        );
        tally.failed(Failure::Refused, ended(500, 502));
        tally.failed(Failure::Status(503), ended(500, 503));
        assert_eq!(tally.hopeless(&bounds, 504).unwrap(), "3 requests in a row failed; the last got status 503");
        assert_eq!(tally.sum.failures.total(), 5);
        assert_eq!(tally.sum.wrong_statuses, [(404, 1), (503, 2)].into());
    }

    #[test]
    fn response_time_begins_at_the_intended_start_and_lag_excludes_waiting() {
        let mut tally = tally(0, u64::MAX);
        tally.begun(100, 450, 500);
        tally.answered(Row { intended_ns: 100, ..ended(500, 600) });
        let mut response = 0;
        tally
            .end_interval(600, None, &[], &mut |interval| response = interval.response.as_ref().unwrap().max())
            .unwrap();
        let sum = tally.sum;
        assert_eq!((sum.service.max(), response, sum.response.unwrap().max()), (100, 500, 500));
        assert_eq!((sum.lag.unwrap().max(), sum.queued), (50, 1), "lag excludes the wait for a connection");
    }

    #[test]
    fn stop_conditions_are_judged_over_complete_intervals() {
        let stop = ["failed>10%".parse().unwrap()];
        let mut tally = tally(0, u64::MAX);
        tally.failed(Failure::Check, ended(0, 1));
        assert_eq!(tally.end_interval(1000, None, &stop, &mut |_| {}).unwrap(), None, "too short");
        tally.failed(Failure::Check, ended(0, 1));
        tally.answered(ended(0, 1));
        let met = tally.end_interval(1_000_001_000, None, &stop, &mut |_| {}).unwrap().unwrap();
        assert_eq!(met, "the stop condition failed>10% was met (50%)");
        assert_eq!(tally.end_interval(2_000_001_000, None, &stop, &mut |_| {}).unwrap(), None);
    }

    #[test]
    fn kinds_have_the_names_of_the_outcome() {
        for failure in [
            Failure::Status(1),
            Failure::Short,
            Failure::Refused,
            Failure::Reset,
            Failure::Timeout,
            Failure::Ports,
            Failure::Protocol,
            Failure::Check,
            Failure::Tls,
            Failure::Unanswered,
        ] {
            let mut failures = Failures::default();
            *failures.of(failure) += 1;
            assert_eq!(failures.describe(), format!("1 {}", failure.kind()));
        }
    }
}
