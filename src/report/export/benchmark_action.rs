//! The custom format of github-action-benchmark: a list of numbers, of which one file holds those that are better
//! smaller (`customSmallerIsBetter`) and another those that are better bigger (`customBiggerIsBetter`).
//!
//! A sample of the shape: `[{"name": "g1/rss.loaded", "unit": "MiB", "value": 62.0, "range": "± 1.86", "extra": "…"}]`.

use super::inert::{clipped, visible};
use super::metric_name::is_tracked;
use crate::record::{Better, Document, MetricRecord, Unit};
use crate::units::{MIB, several, trimmed};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a chart has room for.
const NAME_MAX: usize = 300;

/// Which of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkActionFile {
    /// For `customSmallerIsBetter`.
    Smaller,
    /// For `customBiggerIsBetter`.
    Bigger,
}

/// A number with a chart of its own.
#[derive(Debug, Serialize)]
struct Item {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// The numbers of one of the files.
pub fn benchmark_action(document: &Document, file: BenchmarkActionFile) -> String {
    let better = match file {
        BenchmarkActionFile::Smaller => Better::Lower,
        BenchmarkActionFile::Bigger => Better::Higher,
    };
    let wanted = |of: &&MetricRecord| of.better == better && of.median.is_finite() && is_tracked(of);
    let mut names = BTreeSet::new();
    let items: Vec<Item> = document.metrics.iter().filter(wanted).map(|of| item(document, of, &mut names)).collect();
    // Plain values with string keys cannot fail to encode; an empty file would be the visible sign.
    serde_json::to_string_pretty(&items).unwrap_or_default() + "\n"
}

fn item(document: &Document, of: &MetricRecord, names: &mut BTreeSet<String>) -> Item {
    let (unit, scale) = unit(of.unit);
    let half = of.low.zip(of.high).map(|(low, high)| (high - low) / 2.0 * scale).filter(|half| half.is_finite());
    let range = half.map(|half| format!("± {}", trimmed(half, 3)));
    let trials = of.values.iter().filter(|value| value.used).count();
    let mut extra = several(trials as u64, "trial");
    let own = document.trials.iter().filter(|trial| trial.configuration == of.configuration);
    if let Some(jvm) = own.filter_map(|trial| trial.jvm.as_ref()).next() {
        let known = [jvm.collector.as_deref(), jvm.version.as_deref()].into_iter().flatten().map(visible);
        extra.push_str(&format!("\n{}", known.collect::<Vec<_>>().join(" ")));
    }
    Item { name: unused(names, &of.configuration, &of.metric), unit, value: of.median * scale, range, extra }
}

/// The name of a chart; one that is taken gets a number.
fn unused(names: &mut BTreeSet<String>, configuration: &str, metric: &str) -> String {
    let name = clipped(&format!("{configuration}/{metric}"), NAME_MAX);
    let numbered = (2..=names.len() + 2).map(|number| format!("{name} ({number})"));
    let mut all = std::iter::once(name.clone()).chain(numbered);
    let free = all.find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(free.clone());
    free
}

/// What a reader of a chart expects, and what our numbers are multiplied with.
fn unit(unit: Unit) -> (&'static str, f64) {
    let mib = 1.0 / MIB as f64;
    match unit {
        Unit::Bytes => ("MiB", mib),
        Unit::BytesPerSecond => ("MiB/s", mib),
        Unit::PerSecond => ("requests/s", 1.0),
        Unit::Milliseconds => ("ms", 1.0),
        Unit::Seconds => ("s", 1.0),
        Unit::Share => ("%", 100.0),
        Unit::Count => ("count", 1.0),
        Unit::BytesPer => ("B", 1.0),
        Unit::BytesPerRequest => ("B/request", 1.0),
        Unit::Ratio => ("ratio", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;

    fn items(document: &Document) -> [Vec<consumers::Charted>; 2] {
        [BenchmarkActionFile::Smaller, BenchmarkActionFile::Bigger]
            .map(|file| consumers::check_benchmark_action(&benchmark_action(document, file)))
    }

    #[test]
    fn smaller_and_bigger_is_better_stand_apart() {
        let [smaller, bigger] = items(&samples::compared());
        let names: Vec<&str> = bigger.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["serial/rate.steady", "g1/rate.steady"]);
        let weight = smaller.iter().find(|item| item.name == "g1/rss.loaded").unwrap();
        assert_eq!((weight.unit.as_str(), weight.value, weight.range.as_deref()), ("MiB", 62.0, Some("± 1.86")));
        assert_eq!(weight.extra.as_deref(), Some("3 trials\nSerial 17.0.15+6-Debian-1deb12u1"));
        assert!(smaller.iter().all(|item| !item.name.contains("rate.")));
    }

    #[test]
    fn what_was_not_measured_is_not_there() {
        let [smaller, bigger] = items(&samples::failing());
        assert_eq!((smaller.len(), smaller[0].range.as_deref(), bigger.len()), (1, None, 0));
        assert_eq!(benchmark_action(&samples::empty(), BenchmarkActionFile::Bigger), "[]\n");
    }

    #[test]
    fn hostile_names_stay_apart() {
        let mut document = samples::hostile();
        document.metrics.iter_mut().for_each(|of| of.unit = Unit::Ratio);
        items(&document).iter().for_each(|items| assert!(!items.is_empty()));
    }
}
