//! Numbers and names as printed in a report: metric names, values with units, signed differences.

use crate::comparison::split;
use crate::owner::label;
use crate::quantity::{Estimate, Quantity};
use crate::record::{Better, ComparisonRecord, Document, LeastRecord, Unit, each_once};
use crate::units::trimmed;
use crate::words::{self, dash};

/// Maximum length of file names and IDs.
const SLUG_CHARS: usize = 40;
pub(crate) const MIB: f64 = crate::units::MIB as f64;

/// A metric in words: `rss.loaded` is `RSS loaded`, `p99.steady` is `p99 steady`.
pub(crate) fn metric_words(metric: &str) -> String {
    let (head, place) = split(metric);
    let words = match head.split_once('.') {
        Some(("response", quantile)) => format!("response time, {}", known_words(quantile).unwrap_or(quantile)),
        Some(("service", quantile)) => format!("service time, {}", known_words(quantile).unwrap_or(quantile)),
        _ => known_words(head).unwrap_or_else(|| label(head)).to_owned(),
    };
    if place.is_empty() { words } else { format!("{words} {place}") }
}

/// A metric family in words; `None` if its name suffices.
fn known_words(head: &str) -> Option<&'static str> {
    Some(match head {
        "rss" => "RSS",
        "rss_in_use" => "RSS in use",
        "pss" => "PSS",
        "anon" => "anonymous pages",
        "file" => "file pages",
        "rss_peak" => "peak RSS",
        "rss_max" => "highest RSS",
        "heap_used" => "heap used",
        "heap_committed" => "heap committed",
        "heap_live" => "live set",
        "nmt_committed" => "NMT committed",
        "rate" => "requests per second",
        "p999" => "p99.9",
        "max" => "longest time",
        "mean" => "mean time",
        "failed" => "failed requests",
        "cpu_per_1000" => "CPU per 1,000 requests",
        "cpu_without_jit_per_1000" => "CPU without JIT per 1,000 requests",
        "cpu_app_per_1000" => "application's CPU per 1,000 requests",
        "cpu_jit_per_1000" => "JIT's CPU per 1,000 requests",
        "cpu_gc_per_1000" => "GC's CPU per 1,000 requests",
        "alloc_per_request" => "allocated per request",
        "alloc_rate" => "allocated per second",
        "gc_ms" => "time in GC",
        "gc_count" => "GCs",
        "gc_share" => "share of time in GC",
        "throttled" => "share of periods throttled",
        "start_up" => "startup",
        _ => return None,
    })
}

pub(crate) fn value_text(unit: Unit, value: f64) -> String {
    Quantity::new(unit, value).wide().to_string()
}

/// The judged value with its interval: the difference, or the change if the least relevant difference is a share.
pub(crate) fn judged_text(comparison: &ComparisonRecord) -> String {
    Estimate::judged(comparison).wide().to_string()
}

/// The difference in the form that [`judged_text`] does not use, without its interval: as a change, or in the metric's
/// unit.
pub(crate) fn also_text(comparison: &ComparisonRecord) -> String {
    match (comparison.least, comparison.ratio) {
        (LeastRecord::Relative(_), Some(_)) => {
            Quantity::new(comparison.unit, comparison.difference).difference().wide().to_string()
        }
        (_, Some(ratio)) => Estimate::change(ratio - 1.0, None).difference().wide().to_string(),
        (_, None) => dash(),
    }
}

/// The least relevant difference: `1.0 MiB`, `2%`.
pub(crate) fn least_text(comparison: &ComparisonRecord) -> String {
    match comparison.least {
        LeastRecord::Absolute(value) => value_text(comparison.unit, value),
        LeastRecord::Relative(share) => format!("{}%", trimmed(share * 100.0, 2)),
    }
}

/// Configurations in the order of metrics, or else of trials; baselines first.
pub(crate) fn configurations(document: &Document) -> Vec<&str> {
    let baseline = document.comparisons.first().map(|comparison| comparison.baseline.as_str());
    each_once(baseline.into_iter().chain(document.configurations()))
}

/// A metric's unit and direction, if any configuration has it.
pub(crate) fn kind_of(document: &Document, metric: &str) -> Option<(Unit, Better)> {
    document.metrics.iter().find(|record| record.metric == metric).map(|record| (record.unit, record.better))
}

/// A nonempty word of `a-z`, `0-9`, and `-` for file names and IDs.
pub(crate) fn slug(text: &str) -> String {
    words::slug(text, SLUG_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_readable_labels() {
        for (metric, words) in [
            ("rss.loaded", "RSS loaded"),
            ("p99.steady", "p99 steady"),
            ("malloc.retained.loaded", "malloc retained loaded"),
            ("start_up", "startup"),
            ("response.p999.steady", "response time, p99.9 steady"),
            ("cpu_per_1000.steady", "CPU per 1,000 requests steady"),
            ("new.one", "new one"),
            ("rate.first.half", "requests per second first.half"),
        ] {
            assert_eq!(metric_words(metric), words);
        }
    }

    #[test]
    fn plot_file_names_are_safe() {
        assert_eq!(slug("../G1 & <Serial>"), "g1-serial");
        assert_eq!(slug("負荷"), "unnamed");
        assert!(slug(&"x".repeat(10_000)).len() <= SLUG_CHARS);
    }
}
