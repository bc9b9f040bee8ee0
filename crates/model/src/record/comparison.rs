//! Results over all trials: every metric of every trial, differences with intervals and verdicts, and budgets. All are
//! computed only from the trials, so an archive can reproduce a report.

use serde::{Deserialize, Serialize};

/// Which direction is better for a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower is better: sizes, times, CPU, failures.
    Lower,
    /// Higher is better: rates.
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
    /// Ratio of two numbers of the same unit; can be below 0 or above 1.
    Ratio,
}

impl Unit {
    /// Whether only derived figures use it.
    pub fn is_of_figures(self) -> bool {
        matches!(self, Self::BytesPer | Self::Ratio)
    }
}

/// A metric of one configuration, with its value in each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricRecord {
    /// Name, such as `rss.loaded`, `malloc.retained.loaded`, `p99.steady`, `cpu_per_1000.steady`, `start_up`.
    pub metric: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether lower or higher is better.
    pub better: Better,
    /// Name of the configuration.
    pub configuration: String,
    /// Values, in trial order.
    pub values: Vec<ValueRecord>,
    /// Median of the values.
    pub median: f64,
    /// Lower end of the confidence interval of the center of the values; `null` with fewer than three trials.
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
    /// Whether it is used; false if its block was disturbed and repeated.
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
    /// Any difference is smaller than the smallest that matters.
    Equivalent,
    /// The trials are inconclusive.
    CannotTell,
}

/// A metric of a candidate against the same metric of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparisonRecord {
    /// Name of the metric, as in [`MetricRecord`].
    pub metric: String,
    /// Unit of `difference`, `low`, and `high`.
    pub unit: Unit,
    /// Whether lower or higher is better.
    pub better: Better,
    /// Name of the baseline configuration.
    pub baseline: String,
    /// Name of the candidate configuration.
    pub candidate: String,
    /// Whether the metric was requested. The others form a separate family.
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
    /// Joint confidence of its family of intervals, 0–1.
    pub confidence: f64,
    /// Confidence of this interval alone, corrected for the size of its family, 0–1.
    pub confidence_each: f64,
    /// Smallest difference that matters, as requested: in the metric's unit, or as a share of the baseline.
    pub least: LeastRecord,
    /// The verdict on the difference.
    pub verdict: DifferenceVerdict,
    /// Number of blocks compared.
    pub blocks: u32,
    /// Total number of blocks that would probably decide it; `null` if it is decided or cannot be predicted.
    pub blocks_needed: Option<u32>,
}

/// The smallest difference that matters.
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
    /// How other activity on the machine disturbed the block; `null` if nothing did.
    pub disturbed: Option<String>,
    /// Index of the disturbed block that it repeats.
    pub repeats: Option<u32>,
    /// Whether its values are used.
    pub used: bool,
}

/// Two metrics, with a point for each configuration.
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
    /// Met.
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
    /// Budget as written, such as `rss.loaded<=60MiB`.
    pub expression: String,
    /// Name of the configuration.
    pub configuration: String,
    /// The metric's full name; `null` if no metric has this name.
    pub metric: Option<String>,
    /// Unit of the numbers; `null` if nothing was measured.
    pub unit: Option<Unit>,
    /// Center of the values; for a budget against a baseline, the change, in the metric's unit or as a ratio minus 1.
    pub value: Option<f64>,
    /// Median of the measured values, in the metric's unit.
    #[serde(default)]
    pub measured: Option<f64>,
    /// Median of the baseline's values; `null` if the bound is not on a change.
    #[serde(default)]
    pub before: Option<f64>,
    /// Lower end of the judged interval.
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
    /// Number of trials or blocks used.
    pub trials: u32,
    /// How many trials in total would probably settle an undecided budget; `null` if settled or unpredictable.
    #[serde(default)]
    pub trials_needed: Option<u32>,
    /// The verdict on the budget.
    pub verdict: BudgetVerdict,
    /// The reason, in one sentence.
    pub why: String,
}

/// The differences that answer the question: the effects of axes, averaged over the other axes, or else those of all
/// pairs.
pub fn answering<R: AsRef<[ComparisonRecord]>>(effects: R, pairs: impl FnOnce() -> R) -> R {
    if effects.as_ref().is_empty() { pairs() } else { effects }
}

/// Whether a candidate has several judged differences that are all inconclusive.
pub fn tells_nothing(judged: &[&ComparisonRecord]) -> bool {
    judged.len() > 1 && judged.iter().all(|of| of.verdict == DifferenceVerdict::CannotTell)
}
