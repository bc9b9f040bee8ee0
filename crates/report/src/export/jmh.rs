//! The result in JMH's JSON format (`-rf json`, JMH 1.37), for its viewers and the Jenkins plugin. It has an item per
//! configuration and a fork per trial. The rate is the score; all other metrics are secondary.
//!
//! Example: `{"benchmark": "loadline.tiny-http.steady", "mode": "thrpt", "forks": 3, …}`.

use super::metric_name::principal_rate;
use crate::comparison::split;
use crate::record::{Better, Document, MetricRecord, PhaseRecord, Trial, Unit};
use loadline_base::order::Order as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The JMH version with these fields.
const JMH_VERSION: &str = "1.37";
/// The percentiles that JMH reports for a score.
const PERCENTILES: [f64; 10] = [0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 100.0];

/// A benchmark, with fields in JMH's order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    jmh_version: &'static str,
    benchmark: String,
    mode: &'static str,
    threads: u64,
    forks: usize,
    jvm: String,
    jvm_args: Vec<String>,
    jdk_version: String,
    vm_name: String,
    vm_version: String,
    warmup_iterations: u32,
    warmup_time: String,
    warmup_batch_size: u32,
    measurement_iterations: u32,
    measurement_time: String,
    measurement_batch_size: u32,
    params: BTreeMap<&'static str, String>,
    primary_metric: Score,
    secondary_metrics: BTreeMap<String, Score>,
}

/// A metric of a benchmark.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Score {
    score: Number,
    score_error: Number,
    score_confidence: [Number; 2],
    score_percentiles: Percentiles,
    score_unit: &'static str,
    raw_data: Vec<[Number; 1]>,
}

/// A number as JMH writes it: `"NaN"`, `"+INF"`, and `"-INF"` are strings.
#[derive(Debug, Clone, Copy)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_nan() => to.serialize_str("NaN"),
            f64::INFINITY => to.serialize_str("+INF"),
            f64::NEG_INFINITY => to.serialize_str("-INF"),
            number => to.serialize_f64(number),
        }
    }
}

/// The score at each of [`PERCENTILES`], in numeric rather than text order.
#[derive(Debug)]
struct Percentiles([Number; PERCENTILES.len()]);

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(PERCENTILES.iter().map(|percent| format!("{percent:?}")).zip(&self.0))
    }
}

/// An item per configuration with measurements.
pub fn jmh(document: &Document) -> String {
    let items: Vec<Item> = document.configurations().into_iter().filter_map(|name| item(document, name)).collect();
    // Plain values with string keys always serialize; a failure would be visible as an empty file.
    serde_json::to_string_pretty(&items).unwrap_or_default() + "\n"
}

fn item(document: &Document, configuration: &str) -> Option<Item> {
    let metrics: Vec<&MetricRecord> =
        document.metrics.iter().filter(|of| of.configuration == configuration && !values(of).is_empty()).collect();
    let rate = principal_rate(document);
    // Without a load, the score is the first measured metric.
    let primary = *metrics.iter().find(|of| Some(of.metric.as_str()) == rate).or(metrics.first())?;
    let phase = Some(split(&primary.metric).1).filter(|phase| !phase.is_empty()).unwrap_or("weight");
    let trials: Vec<&Trial> = document.trials.iter().filter(|trial| trial.configuration == configuration).collect();
    let measured = trials.iter().find_map(|trial| trial.phases.iter().find(|of| of.name == phase));
    let warmup = trials.iter().find_map(|trial| trial.phases.iter().find(|of| of.is_warmup()));
    let jvm = trials.iter().find_map(|trial| trial.jvm.clone()).unwrap_or_default();
    let version = jvm.version.unwrap_or_else(unknown);
    let others = metrics.iter().filter(|of| of.metric != primary.metric);
    Some(Item {
        jmh_version: JMH_VERSION,
        benchmark: format!("loadline.{}.{}", segment(&document.conditions.scenario), segment(phase)),
        mode: if primary.better == Better::Higher { "thrpt" } else { "avgt" },
        threads: measured.and_then(|of| of.connections).map_or(1, |of| of.asked.max(1)),
        forks: values(primary).len(),
        jvm: jvm.java.unwrap_or_else(unknown),
        jvm_args: jvm.options,
        jdk_version: version.split('+').next().unwrap_or_default().to_owned(),
        vm_name: jvm.name.unwrap_or_else(unknown),
        vm_version: version,
        warmup_iterations: u32::from(warmup.is_some()),
        warmup_time: time(warmup),
        warmup_batch_size: 1,
        measurement_iterations: 1,
        measurement_time: time(measured),
        measurement_batch_size: 1,
        params: BTreeMap::from([("configuration", word(configuration))]),
        primary_metric: score(primary),
        secondary_metrics: others.map(|of| (of.metric.clone(), score(of))).collect(),
    })
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The valid values in trial order.
fn values(of: &MetricRecord) -> Vec<f64> {
    of.values.iter().filter(|value| value.used).map(|value| value.value).collect()
}

/// The score is the median with the result document's interval, because JMH's mean has no robust interval.
fn score(of: &MetricRecord) -> Score {
    let mut sorted = values(of);
    let raw_data = sorted.iter().map(|value| [Number(*value)]).collect();
    sorted.order_by(f64::total_cmp);
    let (low, high) = (of.low.unwrap_or(f64::NAN), of.high.unwrap_or(f64::NAN));
    Score {
        score: Number(of.median),
        score_error: Number((high - low) / 2.0),
        score_confidence: [Number(low), Number(high)],
        score_percentiles: Percentiles(PERCENTILES.map(|percent| Number(percentile(&sorted, percent)))),
        score_unit: unit(of.unit),
        raw_data,
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::PerSecond => "ops/s",
        Unit::Bytes => "B",
        Unit::Milliseconds => "ms",
        Unit::Seconds => "s",
        Unit::Share => "share",
        Unit::Count => "counts",
        Unit::BytesPer => "B",
        Unit::BytesPerRequest => "B/op",
        Unit::BytesPerSecond => "B/s",
        Unit::Ratio => "ratio",
    }
}

/// The percentile by JMH's method: at rank p (n + 1) / 100, interpolated linearly (Hyndman & Fan 1996, type 6).
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return f64::NAN };
    let rank = percent / 100.0 * (sorted.len() as f64 + 1.0);
    let below = rank.floor();
    match (sorted.get(below as usize - usize::from(below >= 1.0)), sorted.get(below as usize)) {
        _ if rank < 1.0 => *first,
        (Some(lower), Some(upper)) => lower + (rank - below) * (upper - lower),
        _ => *last,
    }
}

/// A duration in JMH's format: `30 s`, `5250 ms`; `single-shot` without a phase.
fn time(phase: Option<&PhaseRecord>) -> String {
    let Some(ms) = phase.map(|of| (of.seconds * 1e3).round()).filter(|ms| ms.is_finite()) else {
        return "single-shot".to_owned();
    };
    match ms % 1e3 == 0.0 {
        true => format!("{:.0} s", ms / 1e3),
        false => format!("{ms:.0} ms"),
    }
}

/// A part of a benchmark's name. Viewers split names at dots, and separate parameters at spaces and `=`.
fn segment(text: &str) -> String {
    word(text).replace('.', "_")
}

/// A parameter's value, without the characters at which viewers split names.
fn word(text: &str) -> String {
    let text = crate::units::visible(text);
    let text: String = text.chars().map(|c| if c.is_whitespace() || c == '=' { '_' } else { c }).collect();
    if text.is_empty() { "_".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;

    #[test]
    fn jmh_items_have_the_format_of_jmh() {
        let mut document = samples::compared();
        document.metrics.retain(|of| of.configuration == "g1" && !of.metric.starts_with("malloc"));
        document.metrics.retain(|of| ["rate.steady", "rss.loaded"].contains(&of.metric.as_str()));
        insta::assert_snapshot!(jmh(&document));
    }

    #[test]
    fn every_configuration_is_a_jmh_item() {
        let items = consumers::check_jmh(&jmh(&samples::compared()));
        let names: Vec<_> = items.iter().map(|item| item["params"]["configuration"].as_str().unwrap()).collect();
        assert_eq!(names, ["serial", "g1"]);
        for item in &items {
            assert_eq!(item["benchmark"], "loadline.tiny-http.steady");
            assert_eq!(item["mode"], "thrpt");
            assert_eq!(item["forks"], 3);
            assert_eq!(item["secondaryMetrics"].as_object().unwrap().len(), 9);
        }
    }

    #[test]
    fn the_jmh_error_without_an_interval_is_nan() {
        let items = consumers::check_jmh(&jmh(&samples::failing()));
        assert_eq!(items.len(), 1);
        assert_eq!(items[0]["mode"], "avgt");
        assert_eq!(items[0]["primaryMetric"]["scoreError"], "NaN");
        assert_eq!(items[0]["primaryMetric"]["rawData"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn jmh_output_without_measurements_is_an_empty_list() {
        assert_eq!(jmh(&samples::empty()), "[]\n");
    }

    #[test]
    fn percentiles_match_jmh() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        for (percent, expect) in [(0.0, 1.0), (50.0, 2.5), (30.0, 1.5), (90.0, 4.0), (100.0, 4.0)] {
            assert_eq!(percentile(&sorted, percent), expect, "{percent}");
        }
        assert_eq!(percentile(&[7.0], 50.0), 7.0);
        assert!(percentile(&[], 50.0).is_nan());
    }

    #[test]
    fn durations_are_formatted_like_jmh() {
        let phase = |seconds| PhaseRecord { seconds, ..PhaseRecord::default() };
        assert_eq!(time(Some(&phase(30.0))), "30 s");
        assert_eq!(time(Some(&phase(5.2504))), "5250 ms");
        assert_eq!(time(None), "single-shot");
    }
}
