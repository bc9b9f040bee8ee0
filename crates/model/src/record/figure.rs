//! A figure derived from a trial's marks, with the points used or the reason why it is missing.

use super::Unit;
use serde::{Deserialize, Serialize};

/// How a figure is derived from marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// (spike − valley) / (spike − base).
    Elasticity,
    /// Slope of a least-squares line.
    Slope,
}

/// A figure of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureRecord {
    /// Name in the scenario and of the metric.
    pub name: String,
    /// How it is derived from marks.
    pub kind: FigureKind,
    /// Underlying quantity, such as `rss`.
    pub of: String,
    /// Counter of a slope; `null` for an elasticity.
    pub per: Option<String>,
    /// Value in `unit`; `null` if it cannot be derived.
    pub value: Option<f64>,
    /// Unit of `value` and `standard_error`.
    #[cfg_attr(test, schemars(extend("enum" = ["bytes_per", "ratio"])))]
    pub unit: Unit,
    /// The share that could be returned, as given in the scenario; `null` if not given.
    pub ideal: Option<f64>,
    /// Standard error of a slope within this trial; `null` with fewer than three points.
    pub standard_error: Option<f64>,
    /// Marks of the points, in order.
    pub marks: Vec<String>,
    /// Underlying points: for a slope, the count and `of`; for an elasticity, seconds since the start of the command
    /// and `of`, at base, spike, and valley.
    pub points: Vec<(f64, f64)>,
    /// Why there is no value; `null` if there is one.
    pub why: Option<String>,
}
