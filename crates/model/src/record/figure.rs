//! A figure derived from the marks of one trial, with the points it rests on or the reason why it is missing.

use super::Unit;
use serde::{Deserialize, Serialize};

/// How a figure follows from the marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// (spike − valley) / (spike − base).
    Elasticity,
    /// The slope of a least-squares line.
    Slope,
}

/// A figure of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureRecord {
    /// Its name in the scenario, which is also the name of the metric.
    pub name: String,
    /// How it follows from the marks.
    pub kind: FigureKind,
    /// The quantity it is derived from, such as `rss`.
    pub of: String,
    /// The counter of a slope; `null` for an elasticity.
    pub per: Option<String>,
    /// Its value in `unit`; `null` if it was refused.
    pub value: Option<f64>,
    /// Unit of `value` and `standard_error`.
    #[cfg_attr(test, schemars(extend("enum" = ["bytes_per", "ratio"])))]
    pub unit: Unit,
    /// The share that could be returned, as given in the scenario; `null` if it gives none.
    pub ideal: Option<f64>,
    /// Standard error of a slope within this trial; `null` with fewer than three points.
    pub standard_error: Option<f64>,
    /// The marks of the points, in their order.
    pub marks: Vec<String>,
    /// The underlying points: for a slope, the count and `of`; for an elasticity, seconds since the command was started
    /// and `of`, at base, spike and valley.
    pub points: Vec<(f64, f64)>,
    /// Why there is no value; `null` if there is one.
    pub why: Option<String>,
}
