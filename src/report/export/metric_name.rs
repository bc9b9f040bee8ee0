//! The parts of a metric's name: what is measured, and the mark or phase at which (`malloc.retained.loaded`).

use crate::comparison::split;
use crate::record::{Document, MetricRecord, Unit};
use crate::scenario::{MarkPoint, WARMUP};

/// Metrics that a person looks at first, by the part before their mark or phase; the others are details.
const HEADLINES: [&str; 9] = ["rss", "rss_peak", "charge", "rate", "p50", "p99", "failed", "cpu_per_1000", "start_up"];

/// `rss.loaded` is `rss` at `loaded`; `start_up` has no place. The name of a phase may have dots.
pub(super) fn parts(metric: &str) -> (&str, Option<&str>) {
    let (what, place) = split(metric);
    (what, (!place.is_empty()).then_some(place))
}

/// Whether it belongs in the short table: one of the first metrics, of weight at the end of the load only, or a figure
/// that the scenario asked for.
pub(super) fn is_headline(record: &MetricRecord) -> bool {
    record.unit.is_of_figures() || is_first(&record.metric)
}

fn is_first(metric: &str) -> bool {
    let (what, place) = parts(metric);
    let weight = matches!(what, "rss" | "charge");
    HEADLINES.contains(&what) && place != Some(WARMUP) && (!weight || place == Some(MarkPoint::Loaded.word()))
}

/// The rate of the principal phase: of the last that is no warm-up, or of the last at all.
pub(super) fn principal_rate(document: &Document) -> Option<&str> {
    let is_rate = |metric: &&MetricRecord| metric.unit == Unit::PerSecond && parts(&metric.metric).0 == "rate";
    let mut rates = document.metrics.iter().filter(is_rate).rev();
    let last = rates.clone().next();
    rates.find(|metric| parts(&metric.metric).1 != Some(WARMUP)).or(last).map(|metric| metric.metric.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_parts() {
        assert_eq!(parts("malloc.retained.loaded"), ("malloc.retained", Some("loaded")));
        assert_eq!(parts("rate.first.half"), ("rate", Some("first.half")));
        assert_eq!(parts("response.p99.steady"), ("response.p99", Some("steady")));
        assert_eq!(parts("rss_max.steady"), ("rss_max", Some("steady")));
        assert_eq!(parts("start_up"), ("start_up", None));
        assert_eq!(parts(""), ("", None));
    }

    #[test]
    fn headlines_are_few() {
        for metric in ["rss.loaded", "rss_peak", "rate.steady", "p99.spike", "start_up", "cpu_per_1000.steady"] {
            assert!(is_first(metric), "{metric}");
        }
        for metric in ["rss.warm", "malloc.retained.loaded", "rate.warmup", "pss.loaded", ""] {
            assert!(!is_first(metric), "{metric}");
        }
    }
}
