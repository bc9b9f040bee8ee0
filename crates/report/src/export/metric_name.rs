//! The most important metrics, recognized by the parts of their names.

use crate::comparison::split;
use crate::owner::Owner;
use crate::record::{Document, MetricRecord, Unit};
use crate::scenario::{MarkPoint, WARMUP};

/// The most important metrics, by the part before their mark or phase; others are details.
const HEADLINES: [&str; 10] =
    ["rss", "rss_peak", "charge", "rate", "p50", "p99", "failed", "cpu_per_1000", "alloc_per_request", "start_up"];

/// Whether to track a metric across builds: a headline, an owner under load, or a figure defined by the scenario.
pub(super) fn is_tracked(record: &MetricRecord) -> bool {
    let (what, place) = split(&record.metric);
    let is_owner = place == MarkPoint::Loaded.word() && Owner::named(what).is_some();
    record.unit.is_of_figures() || is_owner || is_first(&record.metric)
}

/// Whether it is one of the most important metrics. Memory counts only at the end of the load.
fn is_first(metric: &str) -> bool {
    let (what, place) = split(metric);
    let weight = matches!(what, "rss" | "charge");
    HEADLINES.contains(&what) && place != WARMUP && (!weight || place == MarkPoint::Loaded.word())
}

/// The rate of the main phase, which is the last one that is not a warm-up, or else simply the last one.
pub(super) fn principal_rate(document: &Document) -> Option<&str> {
    let is_rate = |metric: &&MetricRecord| metric.unit == Unit::PerSecond && split(&metric.metric).0 == "rate";
    let mut rates = document.metrics.iter().filter(is_rate).rev();
    let last = rates.clone().next();
    rates.find(|metric| split(&metric.metric).1 != WARMUP).or(last).map(|metric| metric.metric.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_main_metrics_are_headlines() {
        for metric in ["rss.loaded", "rss_peak", "rate.steady", "p99.spike", "start_up", "cpu_per_1000.steady"] {
            assert!(is_first(metric), "{metric}");
        }
        for metric in ["rss.warm", "malloc.retained.loaded", "rate.warmup", "pss.loaded", ""] {
            assert!(!is_first(metric), "{metric}");
        }
    }
}
