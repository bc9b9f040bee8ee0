//! Load lines for each value of a setting.

use super::FindRecord;
use serde::{Deserialize, Serialize};

/// Searches at several values of one setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverRecord {
    /// The setting, such as `cpu_limit`.
    pub axis: String,
    /// A line for each value, in the given order.
    pub lines: Vec<LineOver>,
}

/// The search at one value, and the cost of a request at its line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineOver {
    /// The value, and the name of its archive in the common directory.
    pub value: String,
    /// Result of the search; `null` if no trial ran.
    pub find: Option<FindRecord>,
    /// Median CPU seconds per request in the trials that passed at the line; `null` if unknown.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub cpu_per_request_s: Option<f64>,
    /// Share of CPU periods in which a CPU limit throttled the subject in these trials; `null` without a limit.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub throttled_share: Option<f64>,
    /// Median seconds to readiness in these trials.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub ready_s: Option<f64>,
    /// Why the search ended without a result; otherwise empty.
    pub why: String,
}
