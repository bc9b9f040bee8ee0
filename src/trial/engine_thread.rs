//! Runs the load on its own thread. Nothing else calls the load engine.

use crate::clock::Clock;
use crate::error::{Error, Result};
pub(super) use crate::load::Interval;
use crate::load::{self, Control, Outcome, Plan};
use crate::record::IntervalTimes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a waiting conductor checks the subject and the user.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A stopped load returns within 100 ms; this bounds the wait if it does not.
pub(super) const STOPPED_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn times(of: &Interval, clock: Clock) -> IntervalTimes<'_> {
    IntervalTimes {
        service: &of.service,
        response: of.response.as_ref(),
        start: clock.since_epoch(of.start_ns),
        length: Duration::from_nanos(of.end_ns.saturating_sub(of.start_ns)),
    }
}

pub(super) enum LoadProgress {
    /// About one second of load.
    Interval(Box<Interval>),
    /// The load has ended.
    Done(Box<Result<Outcome>>),
}

/// How to drive a plan.
pub(super) struct Driving {
    pub(super) plan: Plan,
    pub(super) clock: Clock,
    pub(super) control: Arc<Control>,
    /// Threads of the engine, at least 1.
    pub(super) threads: u32,
    /// CPUs of the engine; `None` for those of the calling thread.
    pub(super) cpus: Option<Vec<u32>>,
}

impl Driving {
    /// Starts the load on a thread. The last message to `tell` is always [`LoadProgress::Done`].
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
