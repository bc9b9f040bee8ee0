//! When requests are meant to start. The engine asks one question, [`Arrivals::next`], whenever a connection is free,
//! and does not know the model: an arrival is a function of its index, so those that wait need no queue.

use crate::scenario::{Schedule, Until};

/// The answer to "may a request start now?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Start one, which was meant to start at `intended_ns` (now or earlier).
    Due { intended_ns: u64 },
    /// None before this moment.
    At(u64),
    /// None ever again.
    Done,
}

/// The arrivals of one phase.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    model: Model,
    begun: u64,
    requests_max: u64,
    end_ns: u64,
}

#[derive(Debug, Clone, Copy)]
enum Model {
    /// The next request starts when a connection is free.
    Closed,
    /// A request every `period_ns` from `start_ns`. No scenario asks for it yet; tests hold the engine to it.
    #[cfg(test)]
    Constant { start_ns: u64, period_ns: u64 },
}

impl Arrivals {
    /// The arrivals of a schedule that starts at `start_ns`.
    pub(super) fn of(schedule: &Schedule, start_ns: u64) -> Self {
        let model = match schedule {
            Schedule::Closed { .. } => Model::Closed,
        };
        let (requests_max, end_ns) = match schedule.until() {
            Until::Requests(requests) => (requests, u64::MAX),
            Until::Elapsed(span) => (u64::MAX, start_ns.saturating_add(nanoseconds(span.0))),
        };
        Self { model, begun: 0, requests_max, end_ns }
    }

    #[cfg(test)]
    pub(super) fn constant(start_ns: u64, period_ns: u64, requests_max: u64) -> Self {
        Self { model: Model::Constant { start_ns, period_ns }, begun: 0, requests_max, end_ns: u64::MAX }
    }

    /// Takes the next arrival if it is due.
    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Arrival {
        if self.begun >= self.requests_max {
            return Arrival::Done;
        }
        let intended_ns = match self.model {
            Model::Closed => now_ns,
            #[cfg(test)]
            Model::Constant { start_ns, period_ns } => start_ns + self.begun * period_ns,
        };
        match intended_ns {
            at if at >= self.end_ns => Arrival::Done,
            at if at > now_ns => Arrival::At(at),
            _ => {
                self.begun += 1;
                Arrival::Due { intended_ns }
            }
        }
    }

    /// Whether the plan sets the intended start, so that response time differs from service time.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.model, Model::Closed)
    }

    /// The planned end; `u64::MAX` where a count ends it.
    pub(super) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// No more connections than this are of use.
    pub(super) fn requests_max(&self) -> u64 {
        self.requests_max
    }
}

/// A span in nanoseconds; 584 years at most.
pub(super) fn nanoseconds(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    #[test]
    fn closed_arrivals_are_due_when_asked() {
        let closed = |until| Arrivals::of(&Schedule::Closed { connections: 1, until }, 1000);
        let mut counted = closed(Until::Requests(2));
        assert_eq!(counted.next(1005), Arrival::Due { intended_ns: 1005 });
        assert_eq!(counted.next(1007), Arrival::Due { intended_ns: 1007 });
        assert_eq!(counted.next(1008), Arrival::Done);
        let mut timed = closed(Until::Elapsed(Span::seconds(1)));
        assert_eq!(timed.next(1_000_000_999), Arrival::Due { intended_ns: 1_000_000_999 });
        assert_eq!(timed.next(1_000_001_000), Arrival::Done);
    }

    #[test]
    fn constant_arrivals_keep_their_intended_start_however_late_they_are_asked() {
        let mut constant = Arrivals::constant(100, 10, 3);
        assert_eq!(constant.next(95), Arrival::At(100));
        assert_eq!(constant.next(95), Arrival::At(100), "asking takes nothing");
        assert_eq!(constant.next(500), Arrival::Due { intended_ns: 100 });
        assert_eq!(constant.next(500), Arrival::Due { intended_ns: 110 });
        assert_eq!(constant.next(115), Arrival::At(120));
        assert_eq!(constant.next(120), Arrival::Due { intended_ns: 120 });
        assert_eq!(constant.next(120), Arrival::Done);
    }
}
