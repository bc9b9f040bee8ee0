//! The events of a series of trials, as they occur. Progress, log, and archive are sinks of this stream.

use crate::doubt::Doubt;
use crate::record::{IntervalTimes, Mark, PhaseRecord, Row, Sample, Trial};
use crate::scenario::TrialPlan;
use std::path::PathBuf;
use std::time::Duration;

/// A receiver of events.
pub trait Sink {
    /// Receives an event.
    fn receive(&mut self, event: &Event<'_>);

    /// The file for the current subject's output; `None` if it is not kept.
    fn log(&self) -> Option<PathBuf> {
        None
    }

    /// The name of the current trial's directory; `None` if nothing is kept.
    fn folder(&self) -> Option<String> {
        None
    }
}

/// An event in a series of trials.
#[derive(Debug)]
pub enum Event<'a> {
    /// An activity between trials.
    Note(&'a str),
    /// A problem between trials.
    Warning(&'a str),
    /// A trial is about to start.
    TrialStarted(&'a TrialPlan),
    /// The command is about to start.
    Starting {
        /// Name of the configuration.
        configuration: &'a str,
        /// Command, as started.
        command: &'a [String],
    },
    /// The subject is ready.
    Ready {
        /// PID of the JVM.
        pid: u32,
        /// Time since the start of the command.
        after: Duration,
    },
    /// A phase begins.
    PhaseStarted {
        /// Name of the phase.
        name: &'a str,
        /// A description of its work.
        description: String,
    },
    /// About one second of a work phase.
    Interval {
        /// Name of the phase.
        phase: &'a str,
        /// Its times.
        times: IntervalTimes<'a>,
    },
    /// A sample of the timeline.
    Sample {
        /// Name of the running phase, if any.
        phase: Option<&'a str>,
        /// The sample.
        sample: &'a Sample,
    },
    /// A phase ended.
    PhaseEnded(&'a PhaseRecord),
    /// All requests of a finished work phase, or a uniform sample.
    Requests {
        /// The phase.
        phase: &'a PhaseRecord,
        /// Sorted by start; times are on the clock.
        rows: &'a [Row],
        /// The start of the command, on the same clock.
        origin_ns: u64,
    },
    /// The subject was weighed.
    Marked(&'a Mark),
    /// A number is doubtful.
    Doubted(&'a Doubt),
    /// A trial has ended, and its record is complete.
    TrialFinished(&'a Trial),
}
