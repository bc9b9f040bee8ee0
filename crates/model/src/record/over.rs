//! Load lines at each value of one setting, side by side.

use super::FindRecord;
use serde::{Deserialize, Serialize};

/// A search at each value of one setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverRecord {
    /// The setting, such as `cpu_limit`.
    pub axis: String,
    /// A line for each value, in the given order.
    pub lines: Vec<LineOver>,
}

/// The search at one value, and the cost of a request at the line that it found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineOver {
    /// The value; also the name of its archive in the common folder.
    pub value: String,
    /// The result of its search; `null` if no trial was made.
    pub find: Option<FindRecord>,
    /// CPU seconds per request: the median of the trials that held at the line; `null` if unknown.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub cpu_per_request_s: Option<f64>,
    /// The share of the periods of these trials in which a CPU limit throttled the subject; `null` without a limit.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub throttled_share: Option<f64>,
    /// Median seconds until the subject was ready in these trials.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub ready_s: Option<f64>,
    /// Why the search ended before it had a result; empty if it did not.
    pub why: String,
}
