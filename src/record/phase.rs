//! What one phase leaves behind: how much was asked, what was answered, how long it took, what it cost.

pub use crate::load::Failures;
pub use crate::load::external::{Reported, Times, Timing, Tool};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One phase of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// As the scenario names it.
    pub name: String,
    /// `closed` or `open`; `driver` where another program drove, `idle` where nothing is sent.
    pub model: String,
    /// Seconds from the command's start to the phase's.
    pub at_s: f64,
    /// How long it took, to the last answer.
    pub seconds: f64,
    /// Started; `ok` + `failed`.
    pub requests: u64,
    /// Answered correctly.
    pub ok: u64,
    /// The others, by kind.
    pub failed: Failures,
    /// What the plan asked; `null` in a closed model.
    pub offered_per_s: Option<f64>,
    /// Correct answers over `seconds`.
    pub achieved_per_s: f64,
    /// From the intended start to the last byte; `null` in a closed model, where there is none.
    pub response_ms: Option<Quantiles>,
    /// From the actual start to the last byte.
    pub service_ms: Option<Quantiles>,
    /// The load generator itself.
    pub generator: Option<Generator>,
    /// The program that drove the load instead of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// The subject in this phase.
    pub subject: SubjectWork,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// The statuses behind `failed.status`, with how often each came.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong_statuses: BTreeMap<u16, u64>,
}

/// Quantiles in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// Longest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// The load generator's view of itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the generator's thread per request.
    pub cpu_us_per_request: f64,
    /// CPU time over elapsed time.
    pub cpu_share: f64,
    /// 99th percentile of actual − intended start; `null` in a closed model.
    pub lag_ms_p99: Option<f64>,
    /// Connections opened, reconnections included.
    pub connections_opened: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

/// An outside program that drove a phase. The counts of the phase are those it told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DriverRecord {
    /// The line `sh -c` was given.
    pub command: String,
    /// `None` where it did not end by itself.
    pub exit_code: Option<i32>,
    /// CPU time it used, all processes that ended.
    pub cpu_s: Option<f64>,
    /// The file in the trial's folder with all it printed.
    pub log: Option<String>,
    /// What it told; `None` where it could not be read, and then the counts of the phase are 0 for want of any.
    pub reported: Option<Reported>,
}

/// The subject in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SubjectWork {
    /// CPU time used, all threads.
    pub cpu_s: Option<f64>,
    /// Collections, pauses of concurrent collectors included.
    pub gc_count: Option<u64>,
    /// Time in them.
    pub gc_ms: Option<f64>,
    /// Highest RSS on the timeline.
    pub rss_bytes_max: Option<u64>,
}
