//! What happens in a trial, as it happens. Progress, log and archive are sinks of this one stream.

use crate::doubt::Doubt;
use crate::record::{Mark, PhaseRecord, Row, Sample, Trial};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
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
        /// What happens in it, in words.
        description: String,
    },
    /// About a second of a phase of work.
    Interval {
        /// Name of the phase.
        phase: &'a str,
        /// Service times of correct answers, ns.
        service: &'a Histogram<u64>,
        /// Response times of the same answers, ns; `None` in a closed model.
        response: Option<&'a Histogram<u64>>,
        /// Seconds since the Unix epoch.
        start: Duration,
        /// Length.
        length: Duration,
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
    /// The trial is over, however it ended.
    Ended(&'a Trial),
}
