//! The events of a series of trials, as they happen. Progress, log and archive are sinks of this one stream.

use crate::doubt::Doubt;
use crate::record::{IntervalTimes, Mark, PhaseRecord, Row, Sample, Trial};
use crate::scenario::TrialPlan;
use std::path::PathBuf;
use std::time::Duration;

/// A receiver of events.
pub trait Sink {
    /// Takes in what has happened.
    fn receive(&mut self, event: &Event<'_>);

    /// The file for the output of the subject of the trial under way; `None` where it is not kept.
    fn log(&self) -> Option<PathBuf> {
        None
    }

    /// The name of the folder of the trial under way; `None` where nothing is kept.
    fn folder(&self) -> Option<String> {
        None
    }
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something that is done between trials, in words.
    Note(&'a str),
    /// Something between trials that a user should look at.
    Warning(&'a str),
    /// A trial is about to be made.
    TrialStarted(&'a TrialPlan),
    /// The command is about to be started.
    Starting {
        /// Name of the configuration.
        configuration: &'a str,
        /// The command as started.
        command: &'a [String],
    },
    /// The subject is ready.
    Ready {
        /// Process id of the JVM.
        pid: u32,
        /// Since the start of the command.
        after: Duration,
    },
    /// A phase begins.
    PhaseStarted {
        /// Name of the phase.
        name: &'a str,
        /// Its work, in words.
        description: String,
    },
    /// About a second of a phase of work.
    Interval {
        /// Name of the phase.
        phase: &'a str,
        /// Its times.
        times: IntervalTimes<'a>,
    },
    /// A sample of the timeline.
    Sample {
        /// Name of the running phase, where one runs.
        phase: Option<&'a str>,
        /// The sample.
        sample: &'a Sample,
    },
    /// A phase ended.
    PhaseEnded(&'a PhaseRecord),
    /// Single requests of a phase of work that ended: all of them, or a fair sample.
    Requests {
        /// The phase.
        phase: &'a PhaseRecord,
        /// By start; times on the clock.
        rows: &'a [Row],
        /// The start of the command, on the same clock.
        origin_ns: u64,
    },
    /// The subject was weighed.
    Marked(&'a Mark),
    /// Something makes a number doubtful.
    Doubted(&'a Doubt),
    /// A trial is over, however it ended, and its record complete.
    TrialFinished(&'a Trial),
}
