//! Budgets: they pass or fail only if the whole interval is on one side of the bound. Otherwise, they are undecided.

use super::amounts::{absolute, least, least_at, least_of};
use super::differences::each;
use super::metrics::{configurations_of, find, median, used};
use super::names::resolve;
use super::verdict::settled_at;
use crate::record::{BudgetRecord, BudgetVerdict, LeastRecord, MetricRecord, Unit};
use crate::scenario::{Budget, Compare, Limit, Relation};
use crate::units::{Bytes, milliseconds, per_second, several};
use loadline_stats::interval::{Estimate, Resamples, Sample, VALUES_MIN};

/// The same as for judged metrics of a comparison.
const RESAMPLES: usize = 10_000;
/// The minimum confidence for bounds on a change: users stop trusting builds that fail without cause.
const CHANGE_CONFIDENCE: f64 = 0.995;
/// With at least this many trials, the interval of the center is used; with fewer, the widened range of the values.
const TRIALS_MIN: usize = 5;

/// Whether a budget's bound is comparable with a metric of this unit. Errors: how to write a bound of this unit.
pub fn check_budget(budget: &Budget, unit: Unit) -> Result<(), String> {
    let refuse = |why: String| format!("`{budget}`: {why}");
    match budget.limit {
        Limit::Absolute(amount) => absolute(amount, unit).map(|_| ()).map_err(refuse)?,
        Limit::Change(_, amount) => least_of(amount, unit).map(|_| ()).map_err(refuse)?,
    }
    let exact = matches!(unit, Unit::Count | Unit::Share) && matches!(budget.limit, Limit::Absolute(_));
    match budget.relation {
        Relation::Equal if !exact => {
            Err(refuse("two measured values are never exactly equal; use `<=` or `>=`".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Judges each budget for each configuration, in this order.
///
/// A bound on a change (`<=+2%`) is judged against the baseline's configuration with the same name, or its only one.
/// All budgets together hold with the requested confidence (Bonferroni). A budget fails only if its whole interval is
/// beyond the bound. The change, or its bound, must also reach the least difference that matters.
pub fn judge_budgets(
    budgets: &[Budget],
    configurations: &[String],
    metrics: &[MetricRecord],
    baseline: Option<&[MetricRecord]>,
    asked: &Compare,
    seed: u64,
) -> Vec<BudgetRecord> {
    let family = budgets.len() * configurations.len();
    let confidence = each(asked.confidence, family);
    let change_confidence = each(asked.confidence.max(CHANGE_CONFIDENCE), family);
    let mut court =
        Court { metrics, baseline, asked, confidence, change_confidence, resamples: Resamples::new(seed, RESAMPLES) };
    let mut records = Vec::new();
    for budget in budgets {
        for configuration in configurations {
            records.push(court.judge(budget, configuration));
        }
    }
    records
}

/// The inputs for judging budgets.
struct Court<'a> {
    metrics: &'a [MetricRecord],
    baseline: Option<&'a [MetricRecord]>,
    asked: &'a Compare,
    confidence: f64,
    change_confidence: f64,
    resamples: Resamples,
}

/// A number with its interval and its bound, all on the same scale.
#[derive(Debug, Clone, Copy)]
struct Held {
    value: f64,
    low: f64,
    high: f64,
    bound: f64,
    relative: bool,
    /// A change smaller than this cannot exceed a bound that is itself smaller than this.
    least: f64,
}

impl Court<'_> {
    fn judge(&mut self, budget: &Budget, configuration: &str) -> BudgetRecord {
        let mut record = BudgetRecord {
            expression: budget.to_string(),
            configuration: configuration.to_owned(),
            of_change: matches!(budget.limit, Limit::Change(..)),
            ..BudgetRecord::default()
        };
        match self.held(budget, configuration, &mut record) {
            Err(why) => record.why = why,
            Ok(held) => {
                (record.value, record.bound) = (Some(held.value), Some(held.bound));
                let known = held.low.is_finite() && held.high.is_finite();
                (record.low, record.high) = (Some(held.low).filter(|_| known), Some(held.high).filter(|_| known));
                record.relative = held.relative;
                record.verdict = verdict(budget, &held);
                record.trials_needed = self.trials_needed(budget, &held, &record);
                record.why = why(&record, &held);
            }
        }
        record
    }

    /// Computes the number to compare with the bound. Also fills in the parts of the record that are known at this
    /// point.
    fn held(&mut self, budget: &Budget, configuration: &str, record: &mut BudgetRecord) -> Result<Held, String> {
        let name = resolve(&budget.metric, self.metrics)?;
        record.metric = Some(name.clone());
        let metric = find(self.metrics, &name, configuration)
            .ok_or_else(|| format!("`{name}` was not measured for the configuration `{configuration}`"))?;
        record.unit = Some(metric.unit);
        record.trials = used(metric).len() as u32;
        record.measured = Some(metric.median);
        check_budget(budget, metric.unit)?;
        match budget.limit {
            Limit::Absolute(amount) => Ok(self.centre(metric, absolute(amount, metric.unit)?, budget.relation)),
            Limit::Change(sign, amount) => {
                let baseline = self
                    .baseline
                    .ok_or("there is no baseline to compare with; specify one with `--baseline ARCHIVE`")?;
                let before = match (find(baseline, &name, configuration), configurations_of(baseline).as_slice()) {
                    (Some(before), _) => before,
                    (None, [only]) => {
                        find(baseline, &name, only).ok_or_else(|| format!("the baseline has no `{name}`"))?
                    }
                    (None, _) => return Err(format!("the baseline has no `{name}` for `{configuration}`")),
                };
                let bound = match least_of(amount, metric.unit)? {
                    LeastRecord::Absolute(amount) => LeastRecord::Absolute(sign * amount),
                    LeastRecord::Relative(share) => LeastRecord::Relative(sign * share),
                };
                record.trials = record.trials.min(used(before).len() as u32);
                record.before = Some(before.median);
                self.change(before, metric, bound)
            }
        }
    }

    /// How many trials would probably settle an undecided budget.
    fn trials_needed(&self, budget: &Budget, held: &Held, record: &BudgetRecord) -> Option<u32> {
        let confidence = if record.of_change { self.change_confidence } else { self.confidence };
        let (ends, trials) = ([record.low?, held.value, record.high?], record.trials as usize);
        if record.verdict != BudgetVerdict::Undecided || trials < VALUES_MIN {
            return None;
        }
        let is_settled = |[low, value, high]: [f64; 3], _| {
            verdict(budget, &Held { value, low, high, ..*held }) != BudgetVerdict::Undecided
        };
        settled_at(ends, trials, confidence, is_settled).map(|needed| needed.max(TRIALS_MIN as u32))
    }

    /// The center of a metric's values, with its interval. With few values, the interval is their range, widened by
    /// the least difference that matters to allow for what another trial would have shown.
    fn centre(&mut self, metric: &MetricRecord, bound: f64, relation: Relation) -> Held {
        let values = used(metric);
        let least = least_at(least(&metric.metric, metric.unit, self.asked), median(&values));
        let estimate = self.resamples.one_sample(Sample::Values, &values, self.confidence);
        let Estimate { centre, ends } = estimate.unwrap_or(Estimate { centre: metric.median, ends: None });
        let (lowest, highest) = range(&values, centre);
        let (low, high) = match ends.filter(|_| values.len() >= TRIALS_MIN) {
            // Every trial's value must equal the bound.
            _ if relation == Relation::Equal => (lowest, highest),
            Some(ends) => ends,
            // A share or a count already covers a whole trial. If it were widened, no bound near 0 could be met.
            None if matches!(metric.unit, Unit::Share | Unit::Count) => (lowest, highest),
            None => (lowest - least, highest + least),
        };
        Held { value: centre, low, high, bound, relative: false, least: 0.0 }
    }

    fn change(&mut self, before: &MetricRecord, after: &MetricRecord, bound: LeastRecord) -> Result<Held, String> {
        let least = least(&after.metric, after.unit, self.asked);
        let (before, after) = (used(before), used(after));
        let (LeastRecord::Absolute(limit) | LeastRecord::Relative(limit)) = bound;
        let relative = matches!(bound, LeastRecord::Relative(_));
        if relative && before.iter().chain(&after).any(|value| *value <= 0.0) {
            return Err(
                "a value is 0, so a percentage cannot be computed; write the change in the metric's unit".to_owned()
            );
        }
        let scaled = |values: &[f64]| -> Vec<f64> {
            values.iter().map(|value| if relative { value.ln() } else { *value }).collect()
        };
        let (old, new) = (scaled(&before), scaled(&after));
        let estimate = self.resamples.two_samples(&old, &new, self.change_confidence);
        let Estimate { centre, ends } = estimate.ok_or("the baseline has no usable value")?;
        let level = median(&before);
        let least = match (least, relative) {
            (LeastRecord::Relative(share), true) => share,
            (LeastRecord::Absolute(amount), true) => amount / level.abs(),
            (least, false) => least_at(least, level),
        };
        let back = |change: f64| if relative { change.exp_m1() } else { change };
        // One or two trials do not show how much trials vary, so their interval is unbounded and decides nothing.
        let (low, high) = ends.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        Ok(Held { value: back(centre), low: back(low), high: back(high), bound: limit, relative, least })
    }
}

fn range(values: &[f64], otherwise: f64) -> (f64, f64) {
    let ends = |(low, high): (f64, f64), value: &f64| (low.min(*value), high.max(*value));
    match values {
        [] => (otherwise, otherwise),
        [first, ..] => values.iter().fold((*first, *first), ends),
    }
}

fn verdict(budget: &Budget, held: &Held) -> BudgetVerdict {
    let Held { low, high, bound, .. } = *held;
    let (kept, broken) = match budget.relation {
        Relation::Less => (high < bound, low >= bound),
        Relation::AtMost => (high <= bound, low > bound),
        Relation::Equal => (low == bound && high == bound, low > bound || high < bound),
        Relation::AtLeast => (low >= bound, high < bound),
        Relation::More => (low > bound, high <= bound),
    };
    let matters = bound.abs() >= held.least || held.value.abs() >= held.least;
    match (kept, broken && matters) {
        (true, _) => BudgetVerdict::Pass,
        (_, true) => BudgetVerdict::Fail,
        _ => BudgetVerdict::Undecided,
    }
}

/// `84.0 MiB before, 123.1 MiB now: +46.6% (+26.7% … +47.5%, 5 trials), entirely above +2.0%`.
fn why(record: &BudgetRecord, held: &Held) -> String {
    let amount = |value: f64| {
        let sign = if record.of_change && value >= 0.0 { "+" } else { "" };
        match (record.unit, held.relative) {
            (Some(unit), false) => format!("{sign}{}", shown(unit, value)),
            _ => format!("{sign}{:.1}%", value * 100.0),
        }
    };
    let (low, value, high, bound) = (amount(held.low), amount(held.value), amount(held.high), amount(held.bound));
    let trials = several(u64::from(record.trials), "trial");
    if record.low.is_none() {
        return format!("only {trials} on one side; judging a change requires at least {VALUES_MIN} on each side");
    }
    let levels = record.unit.zip(record.before).zip(record.measured);
    let levels = levels
        .map(|((unit, before), now)| format!("{} before, {} now: ", shown(unit, before), shown(unit, now)))
        .unwrap_or_default();
    let measured = format!("{levels}{value} ({low} … {high}, {trials})");
    let side = match () {
        () if held.low > held.bound => "above",
        () if held.high < held.bound => "below",
        // `<` and `>` exclude the bound itself.
        () => "at or beyond",
    };
    match record.verdict {
        BudgetVerdict::Pass => format!("{measured}, entirely within {bound}"),
        BudgetVerdict::Fail => format!("{measured}, entirely {side} {bound}"),
        BudgetVerdict::Undecided if held.low > held.bound || held.high < held.bound => {
            format!("{measured}: {side} {bound}, but by less than the smallest difference that matters")
        }
        BudgetVerdict::Undecided => {
            let more = record.trials_needed.map_or("more".to_owned(), |needed| format!("about {needed}"));
            format!("{measured}: the interval includes {bound}; {more} trials may settle it")
        }
    }
}

fn shown(unit: Unit, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match unit {
        Unit::Bytes => format!("{sign}{}", Bytes(size as u64)),
        Unit::PerSecond => format!("{sign}{}/s", per_second(size)),
        Unit::Milliseconds => format!("{sign}{} ms", milliseconds(size)),
        Unit::Seconds => format!("{sign}{} ms", milliseconds(size * 1000.0)),
        Unit::Share => format!("{:.3}%", value * 100.0),
        Unit::Count => format!("{value:.1}"),
        Unit::BytesPerRequest if size >= 1024.0 => format!("{:.1} KiB", value / 1024.0),
        Unit::BytesPer | Unit::BytesPerRequest => format!("{value:.1} B"),
        Unit::BytesPerSecond => format!("{sign}{}/s", Bytes(size as u64)),
        Unit::Ratio => format!("{value:.3}"),
    }
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
