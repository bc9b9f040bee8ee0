//! Evidence for pictures from the folder of a trial, thinned on reading to the detail that a picture can show.

use super::{Sample, Timing};

/// Timeline, times and requests of one trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Index of the trial.
    pub trial: u32,
    /// The timeline; if it was thinned, each sample represents several and keeps their highest RSS.
    pub timeline: Vec<Sample>,
    /// The times of answers by interval, in time order.
    pub intervals: Vec<IntervalRecord>,
    /// The times of all answers of each phase.
    pub spectra: Vec<SpectrumRecord>,
    /// Single requests: all, or a fair sample, in order of their start.
    pub requests: Vec<RequestDot>,
    /// Parts that could not be read, with the reason; the rest is complete.
    pub missing: Vec<String>,
}

/// The answers of about a second (of several, if it was thinned).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IntervalRecord {
    /// Name of the phase.
    pub phase: String,
    /// Seconds from the start of the command to the start of the interval.
    pub at_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Correct answers.
    pub ok: u64,
    /// How many answers took how long: upper edge of the class in ms, ascending, and the count in it. Response times in
    /// an open model, service times in a closed one. Classes are a tenth of a decade wide or narrower.
    pub classes: Vec<(f64, u64)>,
}

/// The percentile spectrum of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectrumRecord {
    /// Name of the phase.
    pub phase: String,
    /// The kind of time: one of the times of an answer.
    pub time: Timing,
    /// Quantile (0–1, ascending, denser towards 1) and time in ms.
    pub points: Vec<(f64, f64)>,
    /// Answers in it.
    pub count: u64,
}

/// A request as a dot.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestDot {
    /// Seconds from the command's start to its actual start.
    pub at_s: f64,
    /// Response time in an open model, service time in a closed one.
    pub ms: f64,
    /// Whether it failed.
    pub failed: bool,
}

/// A request as stored in an archive; a line of `requests.csv`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestRow {
    /// Name of the phase.
    pub phase: String,
    /// The number of the request in a mix, from 0; `None` if it never began.
    pub request: Option<u32>,
    /// The number of the connection, from 0; `None` if the request never began.
    pub connection: Option<u32>,
    /// Seconds from the command's start to its intended start.
    pub intended_s: f64,
    /// Seconds from the command's start to its actual start.
    pub started_s: f64,
    /// From the actual start until its connection was open; 0 if it was open before.
    pub connect_ms: f64,
    /// From the actual start to the first bytes of the answer; to the end if none came.
    pub first_byte_ms: f64,
    /// From the actual start to the end.
    pub service_ms: f64,
    /// From the intended start to the end; `None` in a closed model.
    pub response_ms: Option<f64>,
    /// Status; 0 if none came.
    pub status: u16,
    /// Bytes of the answer's body.
    pub body_bytes: u64,
    /// The kind of failure; `None` for a correct answer.
    pub failure: Option<String>,
}
