//! What makes a trial hopeless: bounds for each phase, beyond which what is searched for can no longer be. Pure: the
//! conductor tells of each second of the load, and asks.

use super::driving::Interval;
use super::seconds_since;
use crate::error::Error;
use crate::record::ENDED_EARLY;
use crate::scenario::{Time, Until, Work};
use crate::units::{grouped, milliseconds, per_second};
use hdrhistogram::Histogram;
use std::collections::VecDeque;

/// A rate is that of the last three seconds: one collection says nothing. A little less, because intervals of about a
/// second are a little too long or too short.
const RATE_OVER_S: f64 = 2.9;

/// Bounds beyond which a trial is ended early.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Guard {
    /// Those of each phase; a phase without bounds is not named.
    pub phases: Vec<PhaseGuard>,
}

/// The bounds of a phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PhaseGuard {
    /// Name of the phase; of a phase in which the subject works by itself, the marker that begins it.
    pub name: String,
    /// The longest that it may last.
    pub seconds_max: Option<f64>,
    /// How many answers may be how late.
    pub late: Vec<Late>,
    /// Requests that may fail.
    pub failed_max: Option<u64>,
    /// The fewest correct answers per second over about 3 s, as long as the plan sends requests.
    pub rate_min_per_s: Option<f64>,
}

/// How many answers may be late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Late {
    /// An answer that took longer is late.
    pub bound_ms: f64,
    /// Which time is meant; service time stands in where there is no response time.
    pub time: Time,
    /// As many may be.
    pub requests_max: u64,
}

/// The error that ends a trial for this reason.
pub(super) fn ended_early(why: &str) -> Error {
    Error::subject(format!("{ENDED_EARLY}{why}"))
}

/// A phase under guard.
#[derive(Debug)]
pub(super) struct Watch {
    guard: PhaseGuard,
    plan: Plan,
    /// On the clock: when the phase began.
    began_ns: u64,
    /// Late answers so far, for each bound.
    late: Vec<u64>,
    ok: u64,
    failed: u64,
    /// Whether there are response times.
    open: bool,
    /// The last intervals in which the plan sent requests, no more than a rate is judged over.
    recent: VecDeque<Second>,
}

/// When a plan has sent its last request. What comes after is waiting for answers, in which a rate means nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Plan {
    seconds: Option<f64>,
    /// Of a closed model, whose connections have nothing left to send one after the other.
    requests: Option<u64>,
}

/// About a second of a load.
#[derive(Debug, Clone, Copy)]
struct Second {
    start_ns: u64,
    end_ns: u64,
    ok: u64,
}

impl Watch {
    /// Of a phase that begins at this moment of the clock; `None` where it has no bounds. Without `work`, nothing will
    /// be told of its requests, and its length is all that is judged.
    pub(super) fn begin(guard: Option<&Guard>, phase: &str, work: Option<&Work>, began_ns: u64) -> Option<Self> {
        let guard = guard?.phases.iter().find(|guard| guard.name == phase)?.clone();
        let (late, plan) = (vec![0; guard.late.len()], work.map(Plan::of).unwrap_or_default());
        Some(Self { guard, plan, began_ns, late, ok: 0, failed: 0, open: false, recent: VecDeque::new() })
    }

    /// Takes the next interval into account.
    pub(super) fn see(&mut self, interval: &Interval) {
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
        self.recent.push_back(Second { start_ns, end_ns, ok });
        while self.recent.get(1).is_some_and(|second| seconds_since(second.start_ns, end_ns) >= RATE_OVER_S) {
            self.recent.pop_front();
        }
    }

    /// Why going on is hopeless, if it is: the metric, what was seen, and what may be.
    pub(super) fn hopeless(&self, now_ns: u64) -> Option<String> {
        self.too_many_failed().or_else(|| self.too_late()).or_else(|| self.too_slow()).or_else(|| self.too_long(now_ns))
    }

    fn too_many_failed(&self) -> Option<String> {
        let max = self.guard.failed_max.filter(|max| self.failed > *max)?;
        let (name, failed) = (&self.guard.name, grouped(self.failed));
        Some(format!("failed.{name}: {failed} requests failed, and {} may", grouped(max)))
    }

    fn too_late(&self) -> Option<String> {
        let (count, late) = self.late.iter().zip(&self.guard.late).find(|(count, late)| **count > late.requests_max)?;
        let time = if self.open && late.time != Time::Service { "response" } else { "service" };
        let (name, count, bound) = (&self.guard.name, grouped(*count), milliseconds(late.bound_ms));
        let may = grouped(late.requests_max);
        Some(format!("{time}.{name}: {count} answers took longer than {bound} ms, and {may} may"))
    }

    fn too_slow(&self) -> Option<String> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        let seconds = seconds_since(first.start_ns, last.end_ns);
        let min = self.guard.rate_min_per_s.filter(|_| seconds >= RATE_OVER_S)?;
        let rate = self.recent.iter().map(|second| second.ok).sum::<u64>() as f64 / seconds;
        let (name, shown) = (&self.guard.name, per_second(rate));
        (rate < min).then(|| {
            let min = per_second(min);
            format!("rate.{name}: {shown} correct answers per second in the last {seconds:.1} s, and {min} are asked")
        })
    }

    fn too_long(&self, now_ns: u64) -> Option<String> {
        let max = self.guard.seconds_max.filter(|max| seconds_since(self.began_ns, now_ns) > *max)?;
        let (name, ok) = (&self.guard.name, grouped(self.ok));
        Some(format!("rate.{name}: {ok} correct answers in {max:.1} s, and it may not last longer"))
    }
}

impl Plan {
    fn of(work: &Work) -> Self {
        let schedule = &work.schedule;
        let carried = u64::from(schedule.connections_max()) * u64::from(work.protocol.streams());
        let requests = match schedule.until() {
            Some(Until::Requests(requests)) => Some(requests.saturating_sub(carried)),
            _ => None,
        };
        Self { seconds: schedule.seconds(), requests: requests.filter(|_| schedule.model() == "closed") }
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
