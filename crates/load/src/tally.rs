//! Counts while a phase runs: each request ends here, once, as correct or as one kind of failure.

use super::outcome::{Failures, GiveUp, Interval, Row};
use super::rows::Rows;
use crate::work::Condition;
use hdrhistogram::Histogram;
use loadline_base::error::{Error, Result};
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
    Check,
    Tls,
    Unanswered,
}

impl Failure {
    /// Describes what happened, as the end of a sentence.
    fn sentence(self) -> String {
        match self {
            Self::Status(status) => format!("was answered with status {status}"),
            Self::Short => "got a short answer".to_owned(),
            Self::Refused => "was refused a connection".to_owned(),
            Self::Reset => "lost its connection".to_owned(),
            Self::Timeout => "timed out".to_owned(),
            Self::Ports => "found no free local port".to_owned(),
            Self::Protocol => "got what is no HTTP answer".to_owned(),
            Self::Check => "failed a check of its answer".to_owned(),
            Self::Tls => "got no TLS session".to_owned(),
            Self::Unanswered => "had no answer at the end".to_owned(),
        }
    }

    /// As in [`Failures::kinds`].
    fn kind(self) -> &'static str {
        let mut one = Failures::default();
        *one.of(self) = 1;
        one.kinds().into_iter().find(|(_, count)| *count > 0).map_or("", |(kind, _)| kind)
    }
}

/// How late a request may start or be answered is not bounded by the timeout; a day is as good as never.
const DAY_NS: u64 = 86_400_000_000_000;

/// Counts while a phase runs.
pub(super) struct Tally {
    pub(super) ok: u64,
    pub(super) failures: Failures,
    pub(super) wrong_statuses: BTreeMap<u16, u64>,
    pub(super) by_request: Vec<(u64, u64)>,
    /// Requests that came due and never began.
    pub(super) never_begun: u64,
    pub(super) connections_opened: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) rate_ok: u64,
    pub(super) queued: u64,
    pub(super) last_end_ns: u64,
    pub(super) failures_in_a_row: u64,
    /// Ages of the requests that were not answered.
    pub(super) unanswered: Histogram<u64>,
    /// The first words of TLS about a failure.
    pub(super) tls_trouble: Option<String>,
    pub(super) rows: Rows,
    /// The intervals handed out so far, merged.
    pub(super) total: Histogram<u64>,
    /// Response time and schedule lag; only in an open model.
    pub(super) open: Option<OpenTimes>,
    /// The interval under way: the only histogram the hot path touches in a closed model.
    interval: Histogram<u64>,
    interval_start_ns: u64,
    interval_ok: u64,
    interval_failed: u64,
    interval_received: u64,
    rate_end_ns: u64,
    /// Since when requests are begun without a correct answer to any; `u64::MAX` right after one.
    waiting_since_ns: u64,
    pub(super) last_failure: Option<Failure>,
}

/// The times that only an open model has.
pub(super) struct OpenTimes {
    /// Response time.
    pub(super) response: Histogram<u64>,
    /// Schedule lag.
    pub(super) lag: Histogram<u64>,
    interval: Histogram<u64>,
    interval_offered: u64,
}

/// The entry of the plan and the connection of a request that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestOrigin {
    /// Its number in the plan.
    pub(super) request: u32,
    /// The number of its connection.
    pub(super) connection: u32,
}

/// One request that ended. All moments in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinishedRequest {
    pub(super) intended_ns: u64,
    pub(super) started_ns: u64,
    pub(super) connected_ns: u64,
    pub(super) first_byte_ns: u64,
    pub(super) ended_ns: u64,
    /// Which request of the plan, on which connection; `None` where it never began.
    pub(super) place: Option<RequestOrigin>,
    pub(super) status: u16,
    pub(super) body_bytes: u64,
}

/// The state of the engine at the end of an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) ns: u64,
    pub(super) open_connections: u64,
    pub(super) queue: u64,
    /// Requests offered since the phase began; `None` in a closed model.
    pub(super) offered: Option<u64>,
}

impl Tally {
    /// `requests` are in the plan.
    pub(super) fn new(requests: usize, rows: Rows) -> Result<Self> {
        let total = histogram()?;
        Ok(Self {
            ok: 0,
            failures: Failures::default(),
            wrong_statuses: BTreeMap::new(),
            by_request: vec![(0, 0); requests],
            never_begun: 0,
            connections_opened: 0,
            bytes_sent: 0,
            bytes_received: 0,
            rate_ok: 0,
            queued: 0,
            last_end_ns: 0,
            failures_in_a_row: 0,
            unanswered: histogram()?,
            tls_trouble: None,
            rows,
            interval: total.clone(),
            open: None,
            total,
            interval_start_ns: 0,
            interval_ok: 0,
            interval_failed: 0,
            interval_received: 0,
            rate_end_ns: u64::MAX,
            waiting_since_ns: u64::MAX,
            last_failure: None,
        })
    }

    /// Counts from `start_ns`; answers after `rate_end_ns` are left out of the rate.
    pub(super) fn start(&mut self, start_ns: u64, rate_end_ns: u64) {
        (self.last_end_ns, self.interval_start_ns, self.rate_end_ns) = (start_ns, start_ns, rate_end_ns);
    }

    /// Keeps response time and lag as well.
    pub(super) fn with_open_model(mut self) -> Result<Self> {
        let response = histogram()?;
        let (lag, interval) = (response.clone(), response.clone());
        self.open = Some(OpenTimes { response, lag, interval, interval_offered: 0 });
        Ok(self)
    }

    /// A request begins on a connection that is free since `free_ns`.
    #[inline]
    pub(super) fn begun(&mut self, intended_ns: u64, free_ns: u64, now_ns: u64) {
        if let Some(open) = &mut self.open {
            self.queued += u64::from(free_ns > intended_ns);
            record(&mut open.lag, now_ns.saturating_sub(intended_ns.max(free_ns)));
        }
        self.waiting_since_ns = self.waiting_since_ns.min(now_ns);
    }

    /// A correct answer within the timeout.
    #[inline]
    pub(super) fn answered(&mut self, ended: FinishedRequest) {
        record(&mut self.interval, ended.ended_ns - ended.started_ns);
        if let Some(open) = &mut self.open {
            record(&mut open.interval, ended.ended_ns.saturating_sub(ended.intended_ns));
        }
        self.ok += 1;
        self.interval_ok += 1;
        self.rate_ok += u64::from(ended.ended_ns <= self.rate_end_ns);
        self.failures_in_a_row = 0;
        self.waiting_since_ns = u64::MAX;
        self.last_end_ns = ended.ended_ns;
        if let Some((ok, _)) = self.of_request(&ended) {
            *ok += 1;
        }
        self.rows.answered(|| row(&ended, None));
    }

    /// Returns the counters of a request of the plan. A request that never began was not drawn yet, so it has none.
    #[inline]
    fn of_request(&mut self, ended: &FinishedRequest) -> Option<&mut (u64, u64)> {
        self.by_request.get_mut(ended.place?.request as usize)
    }

    /// A failure of TLS; its first words are kept.
    pub(super) fn tls_failed(&mut self, words: String) -> Failure {
        self.tls_trouble.get_or_insert(words);
        Failure::Tls
    }

    pub(super) fn failed(&mut self, failure: Failure, ended: FinishedRequest) {
        *self.failures.of(failure) += 1;
        match failure {
            Failure::Status(status) => *self.wrong_statuses.entry(status).or_default() += 1,
            Failure::Unanswered => {
                record(&mut self.unanswered, ended.ended_ns.saturating_sub(ended.intended_ns));
            }
            _ => {}
        }
        self.interval_failed += 1;
        self.failures_in_a_row += 1;
        self.last_failure = Some(failure);
        self.last_end_ns = ended.ended_ns;
        self.never_begun += u64::from(ended.place.is_none());
        if let Some((_, failed)) = self.of_request(&ended) {
            *failed += 1;
        }
        self.rows.failed(|| row(&ended, Some(failure.kind())));
    }

    /// Why going on is hopeless, if it is.
    pub(super) fn hopeless(&self, bounds: &GiveUp, now_ns: u64) -> Option<String> {
        let words = || self.tls_trouble.as_ref().map_or(String::new(), |words| format!(": {words}"));
        let last = || match self.last_failure {
            Some(Failure::Tls) => format!("; the last {}{}", Failure::Tls.sentence(), words()),
            Some(failure) => format!("; the last {}", failure.sentence()),
            None => String::new(),
        };
        if self.failures_in_a_row >= bounds.failures_in_a_row {
            return Some(format!("{} requests in a row failed{}", self.failures_in_a_row, last()));
        }
        let silence_ns = now_ns.saturating_sub(self.waiting_since_ns);
        if silence_ns < bounds.silence_ns {
            return None;
        }
        Some(format!("no correct answer for {:.1} s{}", silence_ns as f64 / 1e9, last()))
    }

    /// Hands out the interval under way, merges it into the total and begins the next. The first of the stop
    /// conditions that held over it, in words.
    pub(super) fn end_interval(
        &mut self,
        now: Now,
        stop: &[Condition],
        on_interval: &mut dyn FnMut(Interval<'_>),
    ) -> Result<Option<String>> {
        let offered_before = self.open.as_ref().map_or(0, |open| open.interval_offered);
        let interval = Interval {
            start_ns: self.interval_start_ns,
            end_ns: now.ns,
            service: &self.interval,
            response: self.open.as_ref().map(|open| &open.interval),
            ok: self.interval_ok,
            failed: self.interval_failed,
            offered: now.offered.map(|offered| offered.saturating_sub(offered_before)),
            bytes_received: self.bytes_received - self.interval_received,
            open_connections: now.open_connections,
            queue: now.queue,
        };
        let met = interval.met(stop);
        on_interval(interval);
        let differ = |cause| Error::bug(format!("histograms of one phase differ: {cause}"));
        self.total.add(&self.interval).map_err(differ)?;
        self.interval.reset();
        if let Some(open) = &mut self.open {
            open.response.add(&open.interval).map_err(differ)?;
            open.interval.reset();
            open.interval_offered = now.offered.unwrap_or(0);
        }
        (self.interval_ok, self.interval_failed, self.interval_start_ns) = (0, 0, now.ns);
        self.interval_received = self.bytes_received;
        Ok(met)
    }
}

fn row(ended: &FinishedRequest, failure: Option<&'static str>) -> Row {
    let FinishedRequest { intended_ns, started_ns, connected_ns, first_byte_ns, ended_ns, .. } = *ended;
    Row {
        intended_ns,
        started_ns,
        connected_ns: connected_ns.clamp(started_ns, ended_ns),
        first_byte_ns: if first_byte_ns == 0 { ended_ns } else { first_byte_ns.min(ended_ns) },
        ended_ns,
        body_bytes: ended.body_bytes,
        request: ended.place.map(|place| place.request),
        connection: ended.place.map(|place| place.connection),
        status: ended.status,
        failure,
    }
}

/// A histogram of nanoseconds with three significant digits, which grows with its largest value: room for a timeout or
/// a day would be resident from the beginning, a quarter of a MiB each.
fn histogram() -> Result<Histogram<u64>> {
    Histogram::new(3).map_err(|cause| Error::bug(format!("no histogram of nanoseconds: {cause}")))
}

/// A histogram that grows has room for every time up to a day.
#[inline]
fn record(histogram: &mut Histogram<u64>, ns: u64) {
    let _ = histogram.record(ns.min(DAY_NS));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(start_ns: u64, rate_end_ns: u64) -> Tally {
        let mut tally = Tally::new(1, Rows::new(0, 1)).unwrap();
        tally.start(start_ns, rate_end_ns);
        tally
    }

    fn ended(started_ns: u64, ended_ns: u64) -> FinishedRequest {
        FinishedRequest {
            intended_ns: started_ns,
            started_ns,
            connected_ns: 0,
            first_byte_ns: 0,
            ended_ns,
            place: Some(RequestOrigin { request: 0, connection: 0 }),
            status: 200,
            body_bytes: 0,
        }
    }

    fn at(ns: u64) -> Now {
        Now { ns, open_connections: 1, queue: 0, offered: None }
    }

    #[test]
    fn intervals_leave_no_gap_and_add_up_to_the_total() {
        let mut tally = tally(100, u64::MAX);
        let mut merged = tally.total.clone();
        let mut spans = Vec::new();
        for round in 1..=3u64 {
            for n in 1..=round * 10 {
                tally.answered(ended(0, n * 777));
            }
            tally.failed(Failure::Short, ended(0, 1));
            tally
                .end_interval(at(1000 * round), &[], &mut |interval| {
                    merged.add(interval.service).unwrap();
                    spans.push((interval.start_ns, interval.end_ns, interval.ok, interval.failed));
                })
                .unwrap();
        }
        assert_eq!(spans, [(100, 1000, 10, 1), (1000, 2000, 20, 1), (2000, 3000, 30, 1)]);
        assert_eq!(merged, tally.total);
        assert_eq!(tally.total.len(), tally.ok);
        assert_eq!(tally.by_request, [(60, 3)]);
    }

    #[test]
    fn answers_after_the_planned_end_count_but_not_for_the_rate() {
        let mut tally = tally(0, 1000);
        tally.answered(ended(0, 1000));
        tally.answered(ended(900, 1001));
        assert_eq!((tally.ok, tally.rate_ok), (2, 1));
    }

    #[test]
    fn hopeless_after_failures_in_a_row_or_silence_and_a_correct_answer_resets_both() {
        let bounds = GiveUp { failures_in_a_row: 3, silence_ns: 1000 };
        let mut tally = tally(0, u64::MAX);
        tally.failed(Failure::Status(503), ended(0, 1));
        tally.failed(Failure::Status(404), ended(0, 2));
        assert_eq!(tally.hopeless(&bounds, 3), None);
        tally.answered(ended(3, 500));
        assert_eq!(tally.hopeless(&bounds, 9999), None, "nothing was asked since");
        tally.begun(500, 500, 500);
        tally.failed(Failure::Short, ended(500, 501));
        assert_eq!(tally.hopeless(&bounds, 1499), None);
        assert_eq!(tally.hopeless(&bounds, 1500).unwrap(), "no correct answer for 0.0 s; the last got a short answer");
        tally.failed(Failure::Refused, ended(500, 502));
        tally.failed(Failure::Status(503), ended(500, 503));
        assert_eq!(
            tally.hopeless(&bounds, 504).unwrap(),
            "3 requests in a row failed; the last was answered with status 503"
        );
        assert_eq!(tally.failures.total(), 5);
        assert_eq!(tally.wrong_statuses, BTreeMap::from([(404, 1), (503, 2)]));
    }

    #[test]
    fn response_time_runs_from_the_intended_start_and_lag_is_not_waiting() {
        let mut tally = tally(0, u64::MAX).with_open_model().unwrap();
        tally.begun(100, 450, 500);
        tally.answered(FinishedRequest { intended_ns: 100, ..ended(500, 600) });
        let mut response = 0;
        tally.end_interval(at(600), &[], &mut |interval| response = interval.response.unwrap().max()).unwrap();
        let open = tally.open.unwrap();
        assert_eq!((tally.total.max(), response, open.response.max()), (100, 500, 500));
        assert_eq!((open.lag.max(), tally.queued), (50, 1), "the connection was free for 50 ns only");
    }

    #[test]
    fn stop_conditions_are_judged_over_whole_intervals() {
        let stop = ["failed>10%".parse().unwrap()];
        let mut tally = tally(0, u64::MAX);
        tally.failed(Failure::Check, ended(0, 1));
        assert_eq!(tally.end_interval(at(1000), &stop, &mut |_| {}).unwrap(), None, "too short");
        tally.failed(Failure::Check, ended(0, 1));
        tally.answered(ended(0, 1));
        let met = tally.end_interval(at(1_000_001_000), &stop, &mut |_| {}).unwrap().unwrap();
        assert_eq!(met, "the stop condition failed>10% held (50 %)");
        assert_eq!(tally.end_interval(at(2_000_001_000), &stop, &mut |_| {}).unwrap(), None);
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
