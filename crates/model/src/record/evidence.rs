//! A trial's data for plots, thinned to the resolution of a plot while it is read.

use super::{Sample, Timing};

/// A trial's timeline, response times, and requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Index of the trial.
    pub trial: u32,
    /// The timeline; after thinning, a sample represents several and has their highest RSS.
    pub timeline: Vec<Sample>,
    /// Response times by interval, in time order.
    pub intervals: Vec<IntervalRecord>,
    /// Each phase's distribution of response times.
    pub spectra: Vec<SpectrumRecord>,
    /// Individual requests: all or a uniform sample, sorted by start.
    pub requests: Vec<RequestDot>,
    /// Unreadable parts, each with the reason.
    pub missing: Vec<String>,
}

/// The responses of about one second, or of several after thinning.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IntervalRecord {
    /// Name of the phase.
    pub phase: String,
    /// Start of the interval, in seconds from the start of the command.
    pub at_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Correct responses.
    pub ok: u64,
    /// Histogram: each class's upper bound in ms (ascending), and its count. Response times in an open model, service
    /// times in a closed one. A class is at most a tenth of a decade wide.
    pub classes: Vec<(f64, u64)>,
}

/// A phase's percentile spectrum.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectrumRecord {
    /// Name of the phase.
    pub phase: String,
    /// The kind of timing.
    pub time: Timing,
    /// Quantile (0–1, ascending, denser toward 1) and time in ms.
    pub points: Vec<(f64, f64)>,
    /// Number of responses.
    pub count: u64,
}

/// A request as a dot.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestDot {
    /// Actual start, in seconds from the start of the command.
    pub at_s: f64,
    /// Response time in an open model, service time in a closed one.
    pub ms: f64,
    /// Whether it failed.
    pub failed: bool,
}

/// A request as stored in an archive: a row of `requests.csv`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestRow {
    /// Name of the phase.
    pub phase: String,
    /// The request's index in a mix, from 0; `None` if it never began.
    pub request: Option<u32>,
    /// The connection's index, from 0; `None` if the request never began.
    pub connection: Option<u32>,
    /// Intended start, in seconds from the start of the command.
    pub intended_s: f64,
    /// Actual start, in seconds from the start of the command.
    pub started_s: f64,
    /// From the actual start until connected; 0 if already connected.
    pub connect_ms: f64,
    /// From the actual start to the first response bytes, or to the end if there were none.
    pub first_byte_ms: f64,
    /// From the actual start to the end.
    pub service_ms: f64,
    /// From the intended start to the end; `None` in a closed model.
    pub response_ms: Option<f64>,
    /// HTTP status; 0 without a response.
    pub status: u16,
    /// Size of the response body.
    pub body_bytes: u64,
    /// The kind of failure; `None` for a correct response.
    pub failure: Option<String>,
}
