//! Bencher Metric Format (bencher.dev, `bencher run --adapter json --file FILE`): the measures of each benchmark, each
//! with its value and the ends of its interval.
//!
//! Example: `{"tiny-http/g1": {"rss-loaded": {"value": 65011712.0, "lower_value": 63061360.6, …}}}`.

use super::inert::clipped;
use super::metric_name::{is_tracked, principal_rate};
use crate::comparison::split;
use crate::record::{Document, MetricRecord};
use crate::words::slug;
use serde::Serialize;
use serde_json::{Map, Value};

/// Maximum length of a benchmark's name.
const NAME_MAX: usize = 1_024;
/// Maximum length of a measure's name.
const SLUG_MAX: usize = 64;
/// Nanoseconds, the unit of Bencher's built-in `latency`, per millisecond.
const NANOSECONDS: f64 = 1e6;

#[derive(Debug, Serialize)]
struct Measure {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// A benchmark per configuration with measurements.
pub fn bencher(document: &Document) -> String {
    let mut benchmarks = Map::new();
    for configuration in document.configurations() {
        let own = document.metrics.iter().filter(|of| of.configuration == configuration && is_tracked(of));
        let mut measures = Map::new();
        for metric in own.filter(|of| of.median.is_finite()) {
            let (name, scale) = measure(metric, principal_rate(document));
            let ends = metric.low.zip(metric.high).filter(|(low, high)| low.is_finite() && high.is_finite());
            let (lower_value, upper_value) = ends.map(|(low, high)| (low * scale, high * scale)).unzip();
            let measure = Measure { value: metric.median * scale, lower_value, upper_value };
            // Plain numbers always serialize; a failure would be visible as a missing value.
            measures.insert(unused(&measures, &name, SLUG_MAX), serde_json::to_value(measure).unwrap_or_default());
        }
        if !measures.is_empty() {
            let name = format!("{}/{configuration}", document.conditions.scenario);
            benchmarks.insert(unused(&benchmarks, &name_of(&name), NAME_MAX), Value::Object(measures));
        }
    }
    serde_json::to_string_pretty(&benchmarks).unwrap_or_default() + "\n"
}

/// A measure's name, and the factor for Loadline's numbers. Built-in measures use Bencher's unit.
fn measure(metric: &MetricRecord, principal: Option<&str>) -> (String, f64) {
    let phase = principal.map(|rate| split(rate).1);
    match split(&metric.metric) {
        ("rate", own) if Some(own) == phase => ("throughput".to_owned(), 1.0),
        ("p50", own) if Some(own) == phase => ("latency".to_owned(), NANOSECONDS),
        _ => (slug(&metric.metric, SLUG_MAX), 1.0),
    }
}

/// A benchmark's name, made visible and truncated.
fn name_of(text: &str) -> String {
    let visible = clipped(text, NAME_MAX);
    visible.chars().take(NAME_MAX).collect()
}

/// A name that is not yet in `known`, because truncation can create duplicates.
fn unused(known: &Map<String, Value>, name: &str, characters_max: usize) -> String {
    let numbered = |number: usize| {
        let end = format!("-{number}");
        let room = characters_max - end.len();
        format!("{}{end}", name.chars().take(room).collect::<String>())
    };
    let mut names = std::iter::once(name.to_owned()).chain((2..=known.len() + 2).map(numbered));
    names.find(|name| !known.contains_key(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;

    #[test]
    fn benchmarks_have_the_format_of_bencher() {
        let text = bencher(&samples::compared());
        let benchmarks = consumers::check_bencher(&text);
        assert_eq!(benchmarks.keys().collect::<Vec<_>>(), ["tiny-http/g1", "tiny-http/serial"]);
        let serial = &benchmarks["tiny-http/serial"];
        assert_eq!(serial["rss-loaded"]["value"], 50.0 * samples::MIB);
        assert_eq!(serial["rss-loaded"]["lower_value"], 50.0 * samples::MIB * 0.97);
        assert_eq!(serial["malloc-retained-loaded"]["value"], 10.5 * samples::MIB);
        assert_eq!(serial["throughput"]["value"], 5_000.0);
        assert_eq!(serial["p99-steady"]["value"], 9.5);
        assert!(!serial.contains_key("rate-warmup") && !serial.contains_key("pss-loaded"));
    }

    #[test]
    fn the_median_response_time_is_benchers_latency() {
        let mut document = samples::compared();
        let p50 = |of: &&MetricRecord| of.metric == "p99.steady" && of.configuration == "g1";
        let mut metric = document.metrics.iter().find(p50).unwrap().clone();
        (metric.metric, metric.median) = ("p50.steady".to_owned(), 0.527);
        (metric.low, metric.high) = (None, None);
        document.metrics.push(metric);
        assert_eq!(consumers::check_bencher(&bencher(&document))["tiny-http/g1"]["latency"]["value"], 527_000.0);
    }

    #[test]
    fn bencher_values_without_an_interval_have_no_bounds() {
        let benchmarks = consumers::check_bencher(&bencher(&samples::failing()));
        assert_eq!(benchmarks["tiny-http/serial"]["rss-loaded"].get("lower_value"), None);
        assert_eq!(bencher(&samples::empty()), "{}\n");
    }

    #[test]
    fn hostile_names_stay_distinct_and_short() {
        let mut document = samples::hostile();
        let long = |of: &mut MetricRecord| of.unit = crate::record::Unit::Ratio;
        document.metrics.iter_mut().for_each(long);
        let benchmarks = consumers::check_bencher(&bencher(&document));
        assert_eq!(benchmarks.len(), 2 + samples::hostile_texts().len());
        assert_eq!(slug("A.b..C-", SLUG_MAX), "a-b-c");
        assert_eq!(slug("日本", SLUG_MAX), "unnamed");
    }
}
