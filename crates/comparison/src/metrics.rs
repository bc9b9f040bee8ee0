//! Turns trials into metrics: every value of every metric of every configuration.

use super::blocks::unused;
use super::catalogue::{FAMILIES, without_values};
use super::figures::better_of;
use super::owners::held;
use crate::numbers;
use crate::record::{Better, MetricRecord, Outcome, Trial, Unit, ValueRecord, each_once};
use crate::scenario::Compare;
use loadline_base::order::Order as _;
use loadline_stats::interval::{Resamples, Sample};

/// For the hundreds of intervals that are only displayed: their ends vary by about 6% of the length.
const RESAMPLES: usize = 500;

type TrialReader = Box<dyn Fn(&Trial) -> Option<f64>>;

/// A metric whose values have not been read yet.
struct MetricReader {
    metric: String,
    unit: Unit,
    better: Better,
    read: TrialReader,
}

/// Every metric of every configuration. Configurations come in the order in which they first ran, which was random.
/// Otherwise like [`metrics_in_order`].
pub fn metrics(trials: &[Trial]) -> Vec<MetricRecord> {
    metrics_in_order(trials, &[])
}

/// Every metric of every configuration, from the completed trials. Configurations come in the given order, which is the
/// scenario's. Any others follow in the order in which they first ran.
///
/// Values of a disturbed block that was repeated are included, but do not count. The interval is that of the center of
/// the other values, at [`Compare::CONFIDENCE`], not corrected for the number of metrics.
pub fn metrics_in_order(trials: &[Trial], order: &[String]) -> Vec<MetricRecord> {
    measured(trials, order, &|_| true)
}

/// Like [`metrics_in_order`], for the metrics whose names `asked` accepts.
pub fn measured(trials: &[Trial], order: &[String], asked: &dyn Fn(&str) -> bool) -> Vec<MetricRecord> {
    let unused = unused(trials);
    let mut completed: Vec<&Trial> = trials.iter().filter(|trial| trial.outcome == Outcome::Completed).collect();
    completed.order_by_key(|trial| trial.index);
    let mut wanted = wanted(&completed);
    wanted.retain(|wanted| asked(&wanted.metric));
    // One seed for all, so that the same trials always give the same interval.
    let mut resamples = Resamples::new(0, RESAMPLES);
    let mut records = Vec::new();
    let ran = configurations(trials);
    let given = order.iter().filter(|name| ran.contains(name)).chain(&ran).map(String::as_str);
    for configuration in in_order(given) {
        let own: Vec<&&Trial> = completed.iter().filter(|trial| trial.configuration == configuration).collect();
        for wanted in &wanted {
            let values: Vec<ValueRecord> = own
                .iter()
                .filter_map(|trial| {
                    let value = (wanted.read)(trial).filter(|value| value.is_finite())?;
                    Some(ValueRecord {
                        trial: trial.index,
                        block: trial.block,
                        value,
                        used: !unused.contains(&trial.block),
                    })
                })
                .collect();
            records.extend(record(wanted, &configuration, values, &mut resamples));
        }
    }
    records
}

/// Names of the configurations in the order in which their trials first ran.
pub(super) fn configurations(trials: &[Trial]) -> Vec<String> {
    in_order(trials.iter().map(|trial| trial.configuration.as_str()))
}

pub(super) fn configurations_of(metrics: &[MetricRecord]) -> Vec<String> {
    in_order(metrics.iter().map(|metric| metric.configuration.as_str()))
}

pub(super) fn names_of(metrics: &[MetricRecord]) -> Vec<String> {
    in_order(metrics.iter().map(|metric| metric.metric.as_str()))
}

pub(super) fn find<'a>(metrics: &'a [MetricRecord], name: &str, configuration: &str) -> Option<&'a MetricRecord> {
    metrics.iter().find(|metric| metric.metric == name && metric.configuration == configuration)
}

/// Each word once, in the order of first occurrence.
pub(super) fn in_order<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    each_once(words).into_iter().map(str::to_owned).collect()
}

pub(super) fn used(record: &MetricRecord) -> Vec<f64> {
    record.values.iter().filter(|value| value.used).map(|value| value.value).collect()
}

/// The middle value; 0 if there are no values.
pub(super) fn median(values: &[f64]) -> f64 {
    numbers::median(values).unwrap_or(0.0)
}

fn record(
    wanted: &MetricReader,
    configuration: &str,
    values: Vec<ValueRecord>,
    resamples: &mut Resamples,
) -> Option<MetricRecord> {
    let MetricReader { metric, unit, better, .. } = wanted;
    let mut record = MetricRecord { values, ..without_values(metric.clone(), *unit, *better, configuration) };
    let used = used(&record);
    let estimate = resamples.one_sample(Sample::Values, &used, Compare::CONFIDENCE)?;
    record.median = median(&used);
    (record.low, record.high) = estimate.ends.unzip();
    Some(record)
}

/// Returns the metrics of these trials, in catalog order and, within a family, in the order of marks and phases.
fn wanted(trials: &[&Trial]) -> Vec<MetricReader> {
    let marks = each_once(trials.iter().flat_map(|trial| &trial.marks).map(|mark| mark.name.as_str()));
    let worked = trials.iter().flat_map(|trial| &trial.phases).filter(|phase| phase.works());
    let phases = each_once(worked.map(|phase| phase.name.as_str()));
    let mut wanted = Vec::new();
    for family in FAMILIES {
        for place in family.places(&marks, &phases) {
            let (metric, place) = (family.at(place), (*place).to_owned());
            let read = Box::new(move |trial: &Trial| family.read(trial, &place));
            wanted.push(MetricReader { metric, unit: family.unit, better: family.better, read });
        }
        // `threads` is the last family of marks. The owners of the accounts follow it.
        if family.name == "threads" {
            wanted.extend(marks.iter().flat_map(|mark| owners(trials, mark)));
        }
    }
    wanted.extend(derived(trials));
    wanted
}

/// Returns the figures that the scenario derives from marks, in its order.
fn derived(trials: &[&Trial]) -> Vec<MetricReader> {
    let all = || trials.iter().flat_map(|trial| &trial.figures);
    let wanted = |name: String| {
        let unit = all().find(|figure| figure.name == name)?.unit;
        let (metric, better) = (name.clone(), better_of(unit));
        let read = move |trial: &Trial| trial.figures.iter().find(|figure| figure.name == name)?.value;
        Some(MetricReader { metric, unit, better, read: Box::new(read) })
    };
    in_order(all().map(|figure| figure.name.as_str())).into_iter().filter_map(wanted).collect()
}

fn owners(trials: &[&Trial], mark: &str) -> Vec<MetricReader> {
    let accounts = trials.iter().filter_map(|trial| trial.mark(mark)?.account.as_ref());
    let owners = in_order(accounts.flat_map(|account| &account.owners).map(|owner| owner.name.as_str()));
    let wanted = |owner: String| {
        let (metric, mark) = (format!("{owner}.{mark}"), mark.to_owned());
        let read = Box::new(move |trial: &Trial| held(trial.mark(&mark)?.account.as_ref()?, &owner));
        MetricReader { metric, unit: Unit::Bytes, better: Better::Lower, read }
    };
    owners.into_iter().map(wanted).collect()
}
