//! The guard of a trial: bounds for each phase, beyond which the target can no longer hold. Pure: the
//! conductor tells of each second of the load, and asks.

use super::engine_thread::Interval;
use crate::clock::seconds_since;
use crate::error::Error;
use crate::record::{Missed, Unit};
use crate::scenario::{Guard, PhaseGuard, Time, Until, Work};
use crate::units::{grouped, milliseconds, per_second, several};
use hdrhistogram::Histogram;
use std::collections::VecDeque;

/// A rate is that of the last three seconds: one collection says nothing. A little less, because intervals of about a
/// second are a little too long or too short.
const RATE_OVER_S: f64 = 2.9;

/// The error that ends a trial for this reason.
pub(super) fn ended_early(hopeless: &Missed) -> Error {
    Error::subject(format!("the trial was ended early: {}", hopeless.text))
}

/// The guard of a trial.
#[derive(Debug, Default)]
pub(super) struct Guarding {
    /// The phase under way, where it has bounds.
    watch: Option<Watch>,
    /// The reason why the trial is hopeless, once there is one.
    hopeless: Option<Missed>,
}

impl Guarding {
    /// A phase begins at this moment of the clock. Without `work`, nothing will be told of its requests, and its length
    /// is all that is judged.
    pub(super) fn begin(&mut self, guard: &Guard, phase: &str, work: Option<&Work>, began_ns: u64) {
        self.watch = Watch::begin(guard, phase, work, began_ns);
    }

    /// The phase is over: time that passes from now on does not count.
    pub(super) fn end(&mut self) {
        self.watch = None;
    }

    /// Takes the next interval into account.
    pub(super) fn add(&mut self, interval: &Interval) {
        self.watch.iter_mut().for_each(|watch| watch.add(interval));
    }

    /// Looks whether the phase has become hopeless; what makes it so, the first time that anything does.
    pub(super) fn check(&mut self, now_ns: u64) -> Option<&Missed> {
        if let (None, Some(watch)) = (&self.hopeless, &self.watch) {
            self.hopeless = watch.hopeless(now_ns);
        }
        self.hopeless()
    }

    /// The reason why the trial is hopeless.
    pub(super) fn hopeless(&self) -> Option<&Missed> {
        self.hopeless.as_ref()
    }
}

/// A phase under guard.
#[derive(Debug)]
struct Watch {
    guard: PhaseGuard,
    plan: LastRequest,
    /// On the clock: when the phase began.
    began_ns: u64,
    /// Late answers so far, for each bound.
    late: Vec<u64>,
    ok: u64,
    failed: u64,
    /// Whether there are response times.
    open: bool,
    /// The last intervals in which the plan sent requests, no more than a rate is judged over.
    recent: VecDeque<RecentSecond>,
}

/// The point at which a plan has sent its last request. After it the load only waits for answers, in which a rate means
/// nothing.
#[derive(Debug, Clone, Copy, Default)]
struct LastRequest {
    seconds: Option<f64>,
    /// Requests of a closed model, whose connections run out of work one after the other.
    requests: Option<u64>,
}

/// About a second of a load.
#[derive(Debug, Clone, Copy)]
struct RecentSecond {
    start_ns: u64,
    end_ns: u64,
    ok: u64,
}

impl Watch {
    /// `None` where the phase has no bounds.
    fn begin(guard: &Guard, phase: &str, work: Option<&Work>, began_ns: u64) -> Option<Self> {
        let guard = guard.phases.iter().find(|guard| guard.name == phase)?.clone();
        let (late, plan) = (vec![0; guard.late.len()], work.map(LastRequest::of).unwrap_or_default());
        Some(Self { guard, plan, began_ns, late, ok: 0, failed: 0, open: false, recent: VecDeque::new() })
    }

    /// Takes the next interval into account.
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

    /// The reason why the trial is hopeless, if there is one.
    fn hopeless(&self, now_ns: u64) -> Option<Missed> {
        self.too_many_failed().or_else(|| self.too_late()).or_else(|| self.too_slow()).or_else(|| self.too_long(now_ns))
    }

    /// The text names the metric, as every text about a target does.
    fn missed(&self, family: &str, unit: Unit, (value, bound): (f64, f64), text: &str) -> Missed {
        let metric = format!("{family}.{}", self.guard.name);
        Missed { text: format!("{metric}: {text}"), metric, unit, value, bound }
    }

    fn too_many_failed(&self) -> Option<Missed> {
        let max = self.guard.failed_max.filter(|max| self.failed > *max)?;
        let text = format!("{} failed, and {} may", several(self.failed, "request"), grouped(max));
        Some(self.missed("failed", Unit::Count, (self.failed as f64, max as f64), &text))
    }

    fn too_late(&self) -> Option<Missed> {
        let (count, late) = self.late.iter().zip(&self.guard.late).find(|(count, late)| **count > late.requests_max)?;
        let time = if self.open && late.time != Time::Service { "response" } else { "service" };
        let (bound, may) = (milliseconds(late.bound_ms), grouped(late.requests_max));
        let text = format!("{} answers took longer than {bound} ms; {may} are allowed", grouped(*count));
        Some(self.missed(time, Unit::Count, (*count as f64, late.requests_max as f64), &text))
    }

    fn too_slow(&self) -> Option<Missed> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        let seconds = seconds_since(first.start_ns, last.end_ns);
        let min = self.guard.rate_min_per_s.filter(|_| seconds >= RATE_OVER_S)?;
        let rate = self.recent.iter().map(|second| second.ok).sum::<u64>() as f64 / seconds;
        (rate < min).then(|| {
            let (shown, asked) = (per_second(rate), per_second(min));
            let text = format!("{shown} correct answers per second in the last {seconds:.1} s; the target is {asked}");
            self.missed("rate", Unit::PerSecond, (rate, min), &text)
        })
    }

    fn too_long(&self, now_ns: u64) -> Option<Missed> {
        let lasted = seconds_since(self.began_ns, now_ns);
        let max = self.guard.seconds_max.filter(|max| lasted > *max)?;
        let text = format!("{} correct answers in {max:.1} s, and it may not last longer", grouped(self.ok));
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

    /// Whether requests were sent throughout an interval, after which so many had ended. In an open model one without
    /// arrivals says nothing.
    fn sends(&self, interval: &Interval, began_ns: u64, ended: u64) -> bool {
        let until_s = seconds_since(began_ns, interval.end_ns);
        self.seconds.is_none_or(|seconds| until_s <= seconds)
            && self.requests.is_none_or(|requests| ended < requests)
            && interval.offered != Some(0)
    }
}

/// How many values lie above the bound. Those that the histogram cannot tell from it do not count: nothing that may
/// hold is given up.
fn later_than(times: &Histogram<u64>, bound_ms: f64) -> u64 {
    let first_ns = times.next_non_equivalent((bound_ms * 1e6) as u64);
    let last_ns = times.max();
    if times.is_empty() || first_ns > last_ns { 0 } else { times.count_between(first_ns, last_ns) }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
