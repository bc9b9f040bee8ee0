//! The guard of a trial: detects a phase that can no longer meet its target. Pure: the conductor reports each second of
//! load.

use super::engine_thread::Interval;
use crate::clock::seconds_since;
use crate::error::Error;
use crate::record::{Missed, Unit};
use crate::scenario::{Guard, PhaseGuard, Time, Until, Work};
use crate::units::{grouped, milliseconds, per_second, several};
use hdrhistogram::Histogram;
use std::collections::VecDeque;

/// The rate covers three seconds, because a single collection is not a failure; slightly less, because intervals vary
/// around one second.
const RATE_OVER_S: f64 = 2.9;

pub(super) fn ended_early(hopeless: &Missed) -> Error {
    Error::subject(format!("the trial was stopped early: {}", hopeless.text))
}

#[derive(Debug, Default)]
pub(super) struct Guarding {
    /// The current phase, if it has bounds.
    watch: Option<Watch>,
    /// Why the trial is hopeless, if it is.
    hopeless: Option<Missed>,
}

impl Guarding {
    /// Starts a phase at this time on the clock. Without `work`, only the duration is judged.
    pub(super) fn begin(&mut self, guard: &Guard, phase: &str, work: Option<&Work>, began_ns: u64) {
        self.watch = Watch::begin(guard, phase, work, began_ns);
    }

    /// Ends the phase; later time does not count.
    pub(super) fn end(&mut self) {
        self.watch = None;
    }

    pub(super) fn add(&mut self, interval: &Interval) {
        self.watch.iter_mut().for_each(|watch| watch.add(interval));
    }

    /// Checks whether the phase has become hopeless; returns the reason the first time.
    pub(super) fn check(&mut self, now_ns: u64) -> Option<&Missed> {
        if let (None, Some(watch)) = (&self.hopeless, &self.watch) {
            self.hopeless = watch.hopeless(now_ns);
        }
        self.hopeless()
    }

    pub(super) fn hopeless(&self) -> Option<&Missed> {
        self.hopeless.as_ref()
    }
}

/// A guarded phase.
#[derive(Debug)]
struct Watch {
    guard: PhaseGuard,
    plan: LastRequest,
    /// When the phase began, on the clock.
    began_ns: u64,
    /// Late responses so far, per bound.
    late: Vec<u64>,
    ok: u64,
    failed: u64,
    /// Whether response times exist.
    open: bool,
    /// The last intervals with requests, enough to judge a rate.
    recent: VecDeque<RecentSecond>,
}

/// When a plan has sent its last request. Afterward, the load only waits for responses, and a rate is meaningless.
#[derive(Debug, Clone, Copy, Default)]
struct LastRequest {
    seconds: Option<f64>,
    /// The request count of a closed model; its connections run out of work one by one.
    requests: Option<u64>,
}

/// About one second of load.
#[derive(Debug, Clone, Copy)]
struct RecentSecond {
    start_ns: u64,
    end_ns: u64,
    ok: u64,
}

impl Watch {
    /// `None` if the phase has no bounds.
    fn begin(guard: &Guard, phase: &str, work: Option<&Work>, began_ns: u64) -> Option<Self> {
        let guard = guard.phases.iter().find(|guard| guard.name == phase)?.clone();
        let (late, plan) = (vec![0; guard.late.len()], work.map(LastRequest::of).unwrap_or_default());
        Some(Self { guard, plan, began_ns, late, ok: 0, failed: 0, open: false, recent: VecDeque::new() })
    }

    fn add(&mut self, interval: &Interval) {
        for (count, late) in self.late.iter_mut().zip(&self.guard.late) {
            let response = interval.response.as_ref().filter(|_| late.time != Time::Service);
            *count += later_than(response.unwrap_or(&interval.service), late.bound_ms);
        }
        self.ok += interval.ok;
        self.failed += interval.failed;
        self.open = interval.response.is_some();
        if !self.plan.sends(interval, self.began_ns, self.ok + self.failed) {
            return self.recent.clear();
        }
        let Interval { start_ns, end_ns, ok, .. } = *interval;
        self.recent.push_back(RecentSecond { start_ns, end_ns, ok });
        while self.recent.get(1).is_some_and(|second| seconds_since(second.start_ns, end_ns) >= RATE_OVER_S) {
            self.recent.pop_front();
        }
    }

    /// Why the trial is hopeless, if it is.
    fn hopeless(&self, now_ns: u64) -> Option<Missed> {
        self.too_many_failed().or_else(|| self.too_late()).or_else(|| self.too_slow()).or_else(|| self.too_long(now_ns))
    }

    /// The text names the metric, like every text about a target.
    fn missed(&self, family: &str, unit: Unit, (value, bound): (f64, f64), text: &str) -> Missed {
        let metric = format!("{family}.{}", self.guard.name);
        Missed { text: format!("{metric}: {text}"), metric, unit, value, bound }
    }

    fn too_many_failed(&self) -> Option<Missed> {
        let max = self.guard.failed_max.filter(|max| self.failed > *max)?;
        let (failed, may) = (several(self.failed, "request"), grouped(max));
        let text = format!("{failed} failed; the target allows at most {may} in the whole phase");
        Some(self.missed("failed", Unit::Count, (self.failed as f64, max as f64), &text))
    }

    fn too_late(&self) -> Option<Missed> {
        let (count, late) = self.late.iter().zip(&self.guard.late).find(|(count, late)| **count > late.requests_max)?;
        let time = if self.open && late.time != Time::Service { "response" } else { "service" };
        let (bound, may) = (milliseconds(late.bound_ms), grouped(late.requests_max));
        let responses = several(*count, "response");
        let text =
            format!("{responses} took longer than {bound} ms; the target allows at most {may} in the whole phase");
        Some(self.missed(time, Unit::Count, (*count as f64, late.requests_max as f64), &text))
    }

    fn too_slow(&self) -> Option<Missed> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        let seconds = seconds_since(first.start_ns, last.end_ns);
        let min = self.guard.rate_min_per_s.filter(|_| seconds >= RATE_OVER_S)?;
        let rate = self.recent.iter().map(|second| second.ok).sum::<u64>() as f64 / seconds;
        (rate < min).then(|| {
            let (shown, asked) = (per_second(rate), per_second(min));
            let text = format!(
                "only {shown} successful responses per second in the last {seconds:.1} s, fewer than the \
                 required {asked}"
            );
            self.missed("rate", Unit::PerSecond, (rate, min), &text)
        })
    }

    fn too_long(&self, now_ns: u64) -> Option<Missed> {
        let lasted = seconds_since(self.began_ns, now_ns);
        let max = self.guard.seconds_max.filter(|max| lasted > *max)?;
        let text = format!("only {} successful responses in {max:.1} s, the phase's maximum length", grouped(self.ok));
        Some(self.missed("rate", Unit::Seconds, (lasted, max), &text))
    }
}

impl LastRequest {
    fn of(work: &Work) -> Self {
        let schedule = &work.schedule;
        let carried = u64::from(schedule.connections_max()) * u64::from(work.protocol.streams());
        let requests = match schedule.until() {
            Some(Until::Requests(requests)) => Some(requests.saturating_sub(carried)),
            _ => None,
        };
        Self { seconds: schedule.seconds(), requests: requests.filter(|_| !schedule.is_open()) }
    }

    /// Whether requests were sent during a whole interval, at whose end `ended` had completed. In an open model, an
    /// interval without arrivals is no evidence.
    fn sends(&self, interval: &Interval, began_ns: u64, ended: u64) -> bool {
        let until_s = seconds_since(began_ns, interval.end_ns);
        self.seconds.is_none_or(|seconds| until_s <= seconds)
            && self.requests.is_none_or(|requests| ended < requests)
            && interval.offered != Some(0)
    }
}

/// The number of values above the bound. Values in the bound's histogram bucket do not count, so that no trial that
/// could pass is stopped.
fn later_than(times: &Histogram<u64>, bound_ms: f64) -> u64 {
    let first_ns = times.next_non_equivalent((bound_ms * 1e6) as u64);
    let last_ns = times.max();
    if times.is_empty() || first_ns > last_ns { 0 } else { times.count_between(first_ns, last_ns) }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
