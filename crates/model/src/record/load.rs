//! Records of `loadline load`: conditions, phases, a time series, thresholds. Phases have the same form as in a trial.

pub use crate::load::Row;

use super::{DoubtRecord, Machine, PhaseRecord, Quantiles};
use serde::{Deserialize, Serialize};

/// Schema of the output of `loadline load --json`.
pub const LOAD_SCHEMA: &str = "loadline.load/1";

/// The document of `loadline load --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = LOAD_SCHEMA)))]
    pub schema: String,
    /// Conditions that held for every phase.
    pub conditions: LoadConditions,
    /// The phases, in the order they ran; an interrupted one is the last. `subject` has no figures: the server is not
    /// weighed.
    pub phases: Vec<PhaseRecord>,
    /// Intervals of about a second, in time order.
    pub timeline: Vec<Second>,
    /// Conditions that had to hold, with the verdict in each measured phase.
    pub thresholds: Vec<ThresholdRecord>,
    /// Whether the offered rate was achieved and the generator was not the bottleneck; `null` if this was not
    /// requested.
    pub strict: Option<bool>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Reasons to distrust its numbers.
    pub doubts: Vec<DoubtRecord>,
}

/// Conditions that held for every phase of `loadline load`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadConditions {
    /// Version of Loadline.
    pub loadline: String,
    /// The URL under load, as given.
    pub url: String,
    /// The address that received the load: `127.0.0.1:8080` or `unix:PATH`.
    pub address: String,
    /// When it began: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: String,
    /// The machine that generated the load, and how busy it was before.
    pub machine: Machine,
    /// CPUs of the generator's threads; `null` if not pinned.
    pub load_cpus: Option<Vec<u32>>,
    /// Number of generator threads.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub threads: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// The command that repeats it.
    pub command: String,
    /// Load plan in words, one line per phase.
    pub load: Vec<String>,
}

/// About a second of a phase under load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Second {
    /// Name of the phase.
    pub phase: String,
    /// Its start, in seconds since the start of the first phase.
    pub at_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Number of correct responses.
    pub ok: u64,
    /// Number of failed requests.
    pub failed: u64,
    /// Correct responses per second.
    pub achieved_per_s: f64,
    /// Bytes of responses received.
    pub received_bytes: u64,
    /// Open connections at its end.
    pub open_connections: u64,
    /// Requests that waited for a connection at its end; `null` in a closed model.
    pub queue: Option<u64>,
    /// Service times of the responses that arrived in it; `null` if none arrived.
    pub service_ms: Option<Quantiles>,
    /// Response times of these responses; `null` in a closed model.
    pub response_ms: Option<Quantiles>,
}

/// A condition and its result for a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThresholdRecord {
    /// The condition as given, but in its simplest form: `p99<50ms`.
    pub condition: String,
    /// Name of the phase.
    pub phase: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// The measured value: a time in ms, a 0–1 share, or a number; `null` if it was not measured.
    pub value: Option<f64>,
    /// The measured value in the condition's unit.
    pub shown: Option<String>,
}

/// Whether a threshold holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The condition holds.
    Holds,
    /// The condition does not hold.
    Fails,
    /// The figure of the condition was not measured.
    Unknown,
}
