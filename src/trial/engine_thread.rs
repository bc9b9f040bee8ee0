//! The load on a thread of its own: the only place that calls the load engine.

use crate::clock::Clock;
use crate::error::{Error, Result};
pub(super) use crate::load::Interval;
use crate::load::{self, Control, Outcome, Plan};
use crate::record::IntervalTimes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a waiting conductor looks after the subject and the user.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A load that was stopped comes back within 100 ms; this bounds the wait for one that does not.
pub(super) const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// The times of an interval, with its place in time by this clock.
pub(super) fn times(of: &Interval, clock: Clock) -> IntervalTimes<'_> {
    IntervalTimes {
        service: &of.service,
        response: of.response.as_ref(),
        start: clock.since_epoch(of.start_ns),
        length: Duration::from_nanos(of.end_ns.saturating_sub(of.start_ns)),
    }
}

/// A message from the thread of a load.
pub(super) enum LoadProgress {
    /// About a second of it.
    Interval(Box<Interval>),
    /// It is over.
    Done(Box<Result<Outcome>>),
}

/// How a plan is driven.
pub(super) struct Driving {
    pub(super) plan: Plan,
    pub(super) clock: Clock,
    pub(super) control: Arc<Control>,
    /// Threads of the engine, at least 1.
    pub(super) threads: u32,
    /// CPUs of the engine; where `None`, those of the calling thread.
    pub(super) cpus: Option<Vec<u32>>,
}

impl Driving {
    /// Starts the load on a thread. The last word of `tell` is [`LoadProgress::Done`], whatever happens.
    pub(super) fn start(self, mut tell: impl FnMut(LoadProgress) + Send + 'static) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let mut tell_interval = |interval: &Interval| {
                tell(LoadProgress::Interval(Box::new(interval.clone())));
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| self.drive(&mut tell_interval)));
            let outcome = outcome.unwrap_or_else(|_| Err(Error::bug("the load engine panicked")));
            tell(LoadProgress::Done(Box::new(outcome)));
        })
    }

    fn drive(&self, on_interval: &mut dyn FnMut(&Interval)) -> Result<Outcome> {
        let cpus = self.cpus.as_deref().unwrap_or_default();
        load::drive_threads(&self.plan, self.clock, &self.control, self.threads, cpus, on_interval)
    }
}
