//! The history of a subject: what `loadline history --json` prints.

use super::{Better, DifferenceVerdict, Unit};
use serde::{Deserialize, Serialize};

/// Schema of the document of a history.
pub const HISTORY_SCHEMA: &str = "loadline.history/1";

/// Chosen metrics over archives, with what changed when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HistoryDocument {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = HISTORY_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline that made it.
    pub loadline: String,
    /// The archives that make one point.
    pub by: HistoryBy,
    /// The key that orders the points.
    pub order: HistoryOrder,
    /// One for each configuration of each scenario, by name.
    pub series: Vec<SeriesRecord>,
    /// Items that were left out and why, a sentence each.
    pub left_out: Vec<String>,
}

/// The archives that make one point of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HistoryBy {
    /// Each archive is one.
    #[value(help = "Each archive")]
    Date,
    /// All archives of a commit that were made under the same conditions.
    Commit,
    /// All archives of a build that were made under the same conditions.
    Build,
}

/// The key that orders points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HistoryOrder {
    /// When the first archive of each was begun.
    Date,
    /// A list of commits that was given.
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
    /// The oldest first.
    pub points: Vec<PointRecord>,
    /// In the order asked for.
    pub metrics: Vec<MetricHistory>,
    /// Metrics that were asked for and that no trial of it has, a sentence each.
    pub refused: Vec<String>,
}

/// A point of a history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PointRecord {
    /// The commit in short, the build, or the date.
    pub name: String,
    /// The commit that was weighed; `null` where the archive does not say.
    pub commit: Option<String>,
    /// Text behind the commit's hash in the list of commits; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The build; `null` where the archive does not say.
    pub build: Option<String>,
    /// When its first archive was begun: UTC, ISO 8601, as the archive has it.
    pub started: String,
    /// The archives it is made of.
    pub archives: Vec<String>,
    /// Trials that count.
    pub trials: u32,
    /// Conditions other than the subject that differ from the point before, `what: before | now`; empty where none is
    /// known to.
    pub conditions_changed: Vec<String>,
}

/// The history of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricHistory {
    /// Full name.
    pub metric: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which way it is better.
    pub better: Better,
    /// As many as points; `null` where none of its trials has it.
    pub values: Vec<Option<PointValue>>,
    /// Standard deviation of a trial, in the metric's unit: from trial to trial of a point, or what neighbouring points
    /// differ by where that is more; `null` where there are too few.
    pub noise: Option<f64>,
    /// Changes from one point to the next, in their order.
    pub changes: Vec<ChangeRecord>,
    /// Stretches in which it goes one way in a line, in their order.
    pub trends: Vec<TrendRecord>,
}

/// A metric at a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PointValue {
    /// Centre of the values of its trials.
    pub centre: f64,
    /// Ends of its interval of 95 %; `null` below three trials.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
    /// Trials it rests on.
    pub trials: u32,
}

/// A change from one point to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRecord {
    /// Index of the first point behind it.
    pub point: u32,
    /// Index of the first point that may as well be the first behind it, by how much values vary.
    pub point_first: u32,
    /// Index of the last such point.
    pub point_last: u32,
    /// After minus before, in the metric's unit.
    pub difference: f64,
    /// Ends of its interval, after what rose meanwhile is taken out.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Whether it is better or worse.
    pub verdict: DifferenceVerdict,
    /// Trials before it that were compared.
    pub trials_before: u32,
    /// Trials behind it that were compared.
    pub trials_after: u32,
    /// Conditions other than the subject that changed between these points; if there are any, no commit is blamed.
    pub conditions_changed: Vec<String>,
    /// Owners of the account that moved as well, the largest difference first.
    pub owners: Vec<OwnerMove>,
}

/// The growth of an owner of the account across a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerMove {
    /// Name of the owner, such as `metaspace`.
    pub owner: String,
    /// After minus before, in bytes.
    pub bytes: f64,
    /// Ends of its interval of 95 %, in bytes.
    pub bytes_low: f64,
    /// The other end, in bytes.
    pub bytes_high: f64,
}

/// A stretch in which a metric goes one way, in a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrendRecord {
    /// Index of its first point.
    pub point_first: u32,
    /// Index of its last point.
    pub point_last: u32,
    /// From the first to the last, in the metric's unit.
    pub difference: f64,
    /// Ends of its interval.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Whether it is better or worse.
    pub verdict: DifferenceVerdict,
    /// Conditions other than the subject that changed meanwhile.
    pub conditions_changed: Vec<String>,
    /// Owners of the account that moved as well, from the first half to the second.
    pub owners: Vec<OwnerMove>,
}
