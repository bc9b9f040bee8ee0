//! Many trials: a strategy chooses the next trial and interprets each result, an executor makes the trials, and a sink
//! receives the events.
//!
//! The next trial follows from the trials so far and from nothing else. So a series that was cut off goes on from its
//! archive, and a series can be tested on simulated servers. To add a way of trying things is to add a strategy.

mod archived;
mod blocks;
mod extent;
mod inputs;
mod local;
mod paging;
mod preparing;
pub mod search;
mod source;
pub(crate) mod tune;

pub use archived::Archived;
pub use blocks::Blocks;
pub use extent::{BLOCKS, Extent};
pub use inputs::KnownFiles;
pub use local::{Local, machine_now, room};
pub use preparing::{HashedBy, PreparedSeries, Preparing, Rebuild, check_certificates};
pub use source::source_of;

use crate::error::{Error, Result};
use crate::record::{ClassesRecord, Trial};
use crate::scenario::TrialPlan;
use crate::trial::{Event, Sink};

/// A trial that a strategy asks for.
pub struct NextTrial<'t> {
    /// All that one trial needs.
    pub plan: TrialPlan,
    /// Completes the record of the trial once it was made.
    pub judge: Box<dyn FnOnce(&mut Made) + 't>,
}

/// A question that trials answer.
pub trait Strategy {
    /// The next trial, after these in the order in which they ran; `None` where all is known that can be.
    fn next<'t>(&'t self, trials: &'t [Trial]) -> Option<NextTrial<'t>>;

    /// Whether the series goes on after the last of these trials, which this error stopped, if any did. An error that
    /// is not an answer in itself is handed back, to be told at the end.
    ///
    /// # Errors
    /// The error that ends the series.
    fn after(&self, trials: &[Trial], error: Option<Error>) -> Result<Option<Error>>;
}

/// The maker of trials.
pub trait Executor {
    /// Makes a trial from its start to its end.
    fn conduct(&mut self, plan: &TrialPlan, sink: &mut dyn Sink) -> Made;

    /// Whether no further trial is wanted.
    fn interrupted(&self) -> bool {
        false
    }
}

/// A trial that was made, and what is known of how.
#[derive(Debug)]
pub struct Made {
    /// All that was measured.
    pub trial: Trial,
    /// The error that stopped it before its plan was done.
    pub error: Option<Error>,
    /// From the preparation of its file pages to the end of its subject.
    pub seconds: f64,
    /// File pages that were charged to others although the plan wanted them cold, in bytes; `None` where the next trial
    /// could not do better.
    pub shared_bytes: Option<u64>,
    /// Classes of the JDK and the application, where the plan lists files.
    pub classes: Option<ClassesRecord>,
    /// How far the kernel reads ahead on the disk of the JDK, where the plan lists files.
    pub read_ahead_bytes: Option<u64>,
}

impl Made {
    /// A trial of which nothing but its record is known.
    pub fn new(trial: Trial) -> Self {
        Self { trial, error: None, seconds: 0.0, shared_bytes: None, classes: None, read_ahead_bytes: None }
    }
}

/// Makes the trials that a strategy asks for, after those that are there already. Errors that the series survived, in
/// the order of their trials.
///
/// # Errors
/// The error that ended the series early; the trials made until then are in `trials`.
pub fn run(
    strategy: &dyn Strategy,
    executor: &mut dyn Executor,
    sink: &mut dyn Sink,
    trials: &mut Vec<Trial>,
) -> Result<Vec<Error>> {
    let mut survived = Vec::new();
    loop {
        let Some(NextTrial { plan, judge }) = strategy.next(trials) else { return Ok(survived) };
        if executor.interrupted() {
            return Err(Error::interrupted());
        }
        sink.receive(&Event::TrialStarted(&plan));
        let mut made = executor.conduct(&plan, sink);
        made.trial.folder = sink.folder();
        made.trial.inputs.clone_from(&plan.configuration.inputs);
        judge(&mut made);
        sink.receive(&Event::TrialFinished(&made.trial));
        trials.push(made.trial);
        survived.extend(strategy.after(trials, made.error)?);
    }
}
