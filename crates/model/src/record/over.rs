//! Load lines at each value of one setting, side by side.

use super::FindRecord;
use serde::{Deserialize, Serialize};

/// A search at each value of one setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverRecord {
    /// The setting, such as `cpu_limit`.
    pub axis: String,
    /// A line for each value, in the order in which they were given.
    pub lines: Vec<LineOver>,
}

/// The search at one value, and what a request costs at the line that it found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineOver {
    /// The value; also the name of its archive in the folder of all.
    pub value: String,
    /// The result of its search; `null` where no trial was made.
    pub find: Option<FindRecord>,
    /// CPU seconds of a request: the median of the trials that held at the line. `null` where that is not known.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub cpu_per_request_s: Option<f64>,
    /// The share of the periods of these trials in which a CPU limit held the subject back; `null` without a limit.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub throttled_share: Option<f64>,
    /// Seconds until the subject was ready in these trials: the median.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub ready_s: Option<f64>,
    /// What ended the search before it had a result; empty where nothing did.
    pub why: String,
}
