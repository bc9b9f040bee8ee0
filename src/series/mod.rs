//! A series of trials: a strategy chooses the next trial and interprets each result, an executor runs it, and a sink
//! receives the events.
//!
//! The next trial depends only on the trials so far. An interrupted series can therefore resume from its archive, and
//! tests can use simulated servers. To support a new kind of series, add a strategy.

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
    /// Everything that the trial needs.
    pub plan: TrialPlan,
    /// Completes the trial's record.
    pub judge: Box<dyn FnOnce(&mut Made) + 't>,
}

/// A question that trials answer.
pub trait Strategy {
    /// The next trial after these, which are in execution order; `None` if the series is complete.
    fn next<'t>(&'t self, trials: &'t [Trial]) -> Option<NextTrial<'t>>;

    /// Whether to continue after the last of these trials, given the error that stopped it. Returns errors to report
    /// when the series ends. Errors: the error that ends the series.
    fn after(&self, trials: &[Trial], error: Option<Error>) -> Result<Option<Error>>;
}

/// Runs trials.
pub trait Executor {
    /// Runs one trial from start to finish.
    fn conduct(&mut self, plan: &TrialPlan, sink: &mut dyn Sink) -> Made;

    /// Whether to stop before the next trial.
    fn interrupted(&self) -> bool {
        false
    }
}

/// A completed trial, and facts about its execution.
#[derive(Debug)]
pub struct Made {
    /// Everything that was measured.
    pub trial: Trial,
    /// The error that stopped the trial early.
    pub error: Option<Error>,
    /// Duration, from preparing the page cache to the end of the subject.
    pub seconds: f64,
    /// File pages charged to other cgroups although the plan wanted them cold, in bytes; `None` if the next trial could
    /// not do better.
    pub shared_bytes: Option<u64>,
    /// Classes of the JDK and the application, if the plan lists files.
    pub classes: Option<ClassesRecord>,
    /// The kernel's read-ahead on the disk of the JDK, if the plan lists files.
    pub read_ahead_bytes: Option<u64>,
}

impl Made {
    /// A trial with only its record.
    pub fn new(trial: Trial) -> Self {
        Self { trial, error: None, seconds: 0.0, shared_bytes: None, classes: None, read_ahead_bytes: None }
    }
}

/// Runs the trials that a strategy requests, after the existing ones. Returns the errors that the series survived, in
/// trial order. Errors: the error that ended the series early; the completed trials are in `trials`.
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
