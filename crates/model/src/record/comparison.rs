//! Results over all trials: every metric of every trial, differences with their intervals and verdicts, budgets. They
//! are computed from the trials alone, so a report can be made again from an archive.

use serde::{Deserialize, Serialize};

/// The direction in which a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better: sizes, times, CPU, failures.
    Lower,
    /// More is better: rates.
    Higher,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Per second.
    PerSecond,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// A share, 0–1.
    Share,
    /// A count.
    Count,
    /// Bytes per second.
    BytesPerSecond,
    /// Bytes per request.
    BytesPerRequest,
    /// Bytes per unit of the counter of a slope.
    BytesPer,
    /// Ratio of two numbers of the same unit; may be below 0 and above 1.
    Ratio,
}

impl Unit {
    /// Whether only figures use it, which a scenario derives from marks.
    pub fn is_of_figures(self) -> bool {
        matches!(self, Self::BytesPer | Self::Ratio)
    }
}

/// A metric of one configuration: its value in every trial that measured it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricRecord {
    /// Its name, such as `rss.loaded`, `malloc.retained.loaded`, `p99.steady`, `cpu_per_1000.steady`, `start_up`.
    pub metric: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether lower or higher is better.
    pub better: Better,
    /// Name of the configuration.
    pub configuration: String,
    /// Its values, in the order of the trials.
    pub values: Vec<ValueRecord>,
    /// Median of the values.
    pub median: f64,
    /// Lower end of the confidence interval of the centre of the values; `null` with fewer than three trials.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// A metric in one trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ValueRecord {
    /// Index of the trial.
    pub trial: u32,
    /// Its block.
    pub block: u32,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Whether it counts; it does not if its block was disturbed and repeated.
    pub used: bool,
}

/// The verdict on a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// The candidate is better than the baseline.
    Better,
    /// The candidate is worse than the baseline.
    Worse,
    /// The difference, whatever it is, is smaller than the least that matters.
    Equivalent,
    /// The trials do not settle the difference.
    CannotTell,
}

/// A metric of a candidate against the same metric of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparisonRecord {
    /// Name of the metric, as in [`MetricRecord`].
    pub metric: String,
    /// Unit of `difference`, `low` and `high`.
    pub unit: Unit,
    /// Whether lower or higher is better.
    pub better: Better,
    /// The configuration compared against.
    pub baseline: String,
    /// The configuration compared.
    pub candidate: String,
    /// Whether it is a requested metric. The other metrics are details, in a family of their own.
    pub primary: bool,
    /// Median of the baseline's values.
    pub baseline_median: f64,
    /// Median of the candidate's values.
    pub candidate_median: f64,
    /// Candidate divided by baseline: Hodges–Lehmann estimate of the ratio within blocks; `null` if a value is not
    /// positive.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub ratio_low: Option<f64>,
    /// Upper end of the interval.
    pub ratio_high: Option<f64>,
    /// Candidate minus baseline: Hodges–Lehmann estimate of the difference within blocks.
    pub difference: f64,
    /// Lower end of its interval; `null` with fewer than three blocks.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Joint confidence of the whole family of intervals, 0–1.
    pub confidence: f64,
    /// Confidence of this interval alone, after the correction for the size of its family, 0–1.
    pub confidence_each: f64,
    /// The least difference that matters, as requested: in the metric's unit, or as a share of the baseline.
    pub least: LeastRecord,
    /// The verdict on the difference.
    pub verdict: DifferenceVerdict,
    /// Blocks it rests on.
    pub blocks: u32,
    /// Total number of blocks that would probably settle it; `null` if it is settled or cannot be predicted.
    pub blocks_needed: Option<u32>,
}

/// The least difference that matters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LeastRecord {
    /// In the metric's unit.
    Absolute(f64),
    /// A share of the baseline, 0–1; judged on the ratio.
    Relative(f64),
}

/// A block: one trial of each configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockRecord {
    /// Index of the block, from 0.
    pub block: u32,
    /// Configurations in the order they ran.
    pub order: Vec<String>,
    /// The disturbance by the machine; `null` if there was none.
    pub disturbed: Option<String>,
    /// The disturbed block that it repeats.
    pub repeats: Option<u32>,
    /// Whether its values count.
    pub used: bool,
}

/// Two metrics against each other, with a point for each configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParetoRecord {
    /// Name of the first metric.
    pub x: String,
    /// Name of the second metric.
    pub y: String,
    /// The points, in the order of the configurations.
    pub points: Vec<ParetoPoint>,
}

/// The values of two metrics for a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParetoPoint {
    /// Its name.
    pub configuration: String,
    /// Median of the first metric.
    pub x: f64,
    /// Median of the second metric.
    pub y: f64,
    /// A configuration that is at least as good in both metrics and better in one; `null` if there is none.
    pub dominated_by: Option<String>,
}

/// The verdict on a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BudgetVerdict {
    /// Kept.
    Pass,
    /// Exceeded.
    Fail,
    /// Too close to call, or not measured.
    #[default]
    Undecided,
}

/// A budget of one configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BudgetRecord {
    /// The budget as written, such as `rss.loaded<=60MiB`.
    pub expression: String,
    /// The configuration judged.
    pub configuration: String,
    /// The metric's full name; `null` if no metric has this name.
    pub metric: Option<String>,
    /// Unit of the numbers below; `null` if nothing was measured.
    pub unit: Option<Unit>,
    /// The centre of its values; for a budget against a baseline, the change, in its unit or as a ratio minus 1.
    pub value: Option<f64>,
    /// Lower end of the interval that was judged.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The bound in the unit of `value`.
    pub bound: Option<f64>,
    /// Whether `value` and `bound` are shares of the baseline.
    pub relative: bool,
    /// Whether `value` and `bound` are a change against the baseline.
    #[serde(default)]
    pub of_change: bool,
    /// Trials or blocks it rests on.
    pub trials: u32,
    /// The verdict on the budget.
    pub verdict: BudgetVerdict,
    /// Why, in a sentence.
    pub why: String,
}

/// Whether several differences of one candidate have verdicts and all of them are inconclusive.
pub fn tells_nothing(judged: &[&ComparisonRecord]) -> bool {
    judged.len() > 1 && judged.iter().all(|of| of.verdict == DifferenceVerdict::CannotTell)
}
