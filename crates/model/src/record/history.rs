//! A subject's history, as printed by `loadline history --json`.

use super::{Better, DifferenceVerdict, Unit};
use serde::{Deserialize, Serialize};

/// Schema of a history.
pub const HISTORY_SCHEMA: &str = "loadline.history/1";

/// Selected metrics over archives, with their changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HistoryDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = HISTORY_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline that made it.
    pub loadline: String,
    /// The archives that make up one point.
    pub by: HistoryBy,
    /// The key that orders the points.
    pub order: HistoryOrder,
    /// One series for each configuration of each scenario, by name.
    pub series: Vec<SeriesRecord>,
    /// Items that were left out, with the reason, one sentence each.
    pub left_out: Vec<String>,
}

/// The archives that make up one point of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HistoryBy {
    /// Each archive is one point.
    #[value(help = "One point per archive")]
    Date,
    /// One point per commit and set of conditions.
    Commit,
    /// One point per build and set of conditions.
    Build,
}

/// The key that orders points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HistoryOrder {
    /// The start of the first archive of each point.
    Date,
    /// A given list of commits.
    Commits,
}

/// The history of one configuration of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesRecord {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the configuration.
    pub configuration: String,
    /// The points, oldest first.
    pub points: Vec<PointRecord>,
    /// The metrics, in the requested order.
    pub metrics: Vec<MetricHistory>,
    /// Requested metrics that none of its trials has, one sentence each.
    pub refused: Vec<String>,
}

/// A point of a history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PointRecord {
    /// The abbreviated commit hash, the build, or the date.
    pub name: String,
    /// The commit that was weighed; `null` if the archive does not name it.
    pub commit: Option<String>,
    /// Text after the commit's hash in the list of commits; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The build; `null` if the archive does not name it.
    pub build: Option<String>,
    /// When its first archive was started: UTC, ISO 8601, as in the archive.
    pub started: String,
    /// The archives that it consists of.
    pub archives: Vec<String>,
    /// Number of valid trials.
    pub trials: u32,
    /// Conditions other than the subject that differ from the previous point, as `what: before | now`; empty if none is
    /// known to differ.
    pub conditions_changed: Vec<String>,
}

/// The history of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricHistory {
    /// Full name of the metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether lower or higher is better.
    pub better: Better,
    /// One value per point; `null` if none of its trials has the metric.
    pub values: Vec<Option<PointValue>>,
    /// Standard deviation of a trial, in the metric's unit: between trials of a point or between neighboring points,
    /// whichever is larger; `null` if there are too few.
    pub noise: Option<f64>,
    /// Changes from one point to the next, in order.
    pub changes: Vec<ChangeRecord>,
    /// Stretches of linear rise or fall, in order.
    pub trends: Vec<TrendRecord>,
}

/// A metric at a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PointValue {
    /// Center of its trials' values.
    pub centre: f64,
    /// Lower end of its 95% confidence interval; `null` with fewer than three trials.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Number of trials behind it.
    pub trials: u32,
}

/// A change from one point to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRecord {
    /// Index of the first point after the change.
    pub point: u32,
    /// Lowest plausible index of this first point, given the variation in the values.
    pub point_first: u32,
    /// Highest plausible index.
    pub point_last: u32,
    /// After minus before, in the metric's unit.
    pub difference: f64,
    /// Lower end of its interval, after linear trends on either side are removed.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Whether it is better or worse.
    pub verdict: DifferenceVerdict,
    /// Trials before it that were compared.
    pub trials_before: u32,
    /// Trials after it that were compared.
    pub trials_after: u32,
    /// Conditions other than the subject that changed between these points; if there are any, no commit is blamed.
    pub conditions_changed: Vec<String>,
    /// Account owners that also changed, largest difference first.
    pub owners: Vec<OwnerMove>,
}

/// Growth of an account owner across a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerMove {
    /// Name of the owner, such as `metaspace`.
    pub owner: String,
    /// After minus before, in bytes.
    pub bytes: f64,
    /// Lower end of its 95% confidence interval, in bytes.
    pub bytes_low: f64,
    /// Upper end of the interval, in bytes.
    pub bytes_high: f64,
}

/// A stretch in which a metric rises or falls linearly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrendRecord {
    /// Index of its first point.
    pub point_first: u32,
    /// Index of its last point.
    pub point_last: u32,
    /// Change from the first point to the last, in the metric's unit.
    pub difference: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Whether it is better or worse.
    pub verdict: DifferenceVerdict,
    /// Conditions other than the subject that changed during the stretch.
    pub conditions_changed: Vec<String>,
    /// Account owners that also changed, from the first half to the second.
    pub owners: Vec<OwnerMove>,
}
