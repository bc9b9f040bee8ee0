//! Numbers and names as the report prints them: a metric's words, a value with its unit, a difference with its sign.

use crate::owner::label;
use crate::record::{Better, ComparisonRecord, Document, LeastRecord, Unit, each_once};
use crate::report::quantity;
use crate::units::milliseconds;

/// Names of files and ids are no longer than this.
const SLUG_CHARS: usize = 40;
/// Bytes of a MiB.
pub(crate) const MIB: f64 = crate::units::MIB as f64;

/// The words for a metric: `rss.loaded` is `RSS loaded`, `p99.steady` is `p99 steady`.
pub(crate) fn metric_words(metric: &str) -> String {
    // Only the last part is a mark or a phase; owners have a point in their names.
    let (head, place) = metric.rsplit_once('.').unwrap_or((metric, ""));
    if let Some(words) = known_words(metric) {
        return words.to_owned();
    }
    let words = match head.split_once('.') {
        Some(("response", quantile)) => format!("response time, {}", known_words(quantile).unwrap_or(quantile)),
        Some(("service", quantile)) => format!("service time, {}", known_words(quantile).unwrap_or(quantile)),
        _ => known_words(head).unwrap_or_else(|| label(head)).to_owned(),
    };
    if place.is_empty() { words } else { format!("{words} {place}") }
}

/// The words for a family of metrics; `None` where its name says it.
fn known_words(head: &str) -> Option<&'static str> {
    Some(match head {
        "rss" => "RSS",
        "rss_in_use" => "RSS in use",
        "pss" => "PSS",
        "anon" => "anonymous pages",
        "file" => "pages of files",
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
        "gc_ms" => "time in GC",
        "gc_count" => "collections",
        "gc_share" => "share of time in GC",
        "start_up" => "start-up",
        _ => return None,
    })
}

/// A value with its unit.
pub(crate) fn value_text(unit: Unit, value: f64) -> String {
    minus(&quantity::shown(unit, Some(value)))
}

/// The sign that is as wide as a plus.
fn minus(text: &str) -> String {
    text.strip_prefix('-').filter(|rest| !rest.is_empty()).map_or(text.to_owned(), |rest| format!("\u{2212}{rest}"))
}

/// An estimate with its unit and, in its unit, the ends of its interval: `−12.3 MiB (−14.9 … −9.8)`.
fn estimate_text(unit: Unit, estimate: f64, ends: Option<(f64, f64)>) -> String {
    let (low, high) = ends.unwrap_or((estimate, estimate));
    // One unit for all three: shorter times than a second are told in ms.
    let small = [estimate, low, high].into_iter().all(|value| value.abs() < 1.0);
    let (unit, factor) = if unit == Unit::Seconds && small { (Unit::Milliseconds, 1e3) } else { (unit, 1.0) };
    let told = |value: f64| match unit {
        Unit::Seconds => seconds(value),
        _ => minus(&quantity::signed(unit, Some(value * factor))),
    };
    let text = told(estimate);
    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '\u{2212}' | '-');
    let behind = text.trim_start_matches(number).to_owned();
    let bare = |value: f64| {
        let text = told(value);
        text.strip_suffix(behind.as_str()).map(str::to_owned).unwrap_or(text)
    };
    match ends {
        Some((low, high)) => format!("{text} ({} \u{2026} {})", bare(low), bare(high)),
        None => text,
    }
}

/// A difference in seconds, however small.
fn seconds(value: f64) -> String {
    let sign = if value < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{} s", milliseconds(value.abs()))
}

/// What was judged, with its interval: the difference, or the change where the least that matters is a share.
pub(crate) fn judged_text(comparison: &ComparisonRecord) -> String {
    match (comparison.least, comparison.ratio) {
        (LeastRecord::Relative(_), Some(ratio)) => {
            let ends = comparison.ratio_low.zip(comparison.ratio_high);
            let percent = |ratio: f64| minus(&quantity::change(Some(ratio)));
            let bare = |ratio: f64| percent(ratio).trim_end_matches(" %").to_owned();
            match ends {
                Some((low, high)) => format!("{} ({} \u{2026} {})", percent(ratio), bare(low), bare(high)),
                None => percent(ratio),
            }
        }
        _ => estimate_text(comparison.unit, comparison.difference, comparison.low.zip(comparison.high)),
    }
}

/// The same difference in the other way, without its interval: as a change, or in the metric's unit.
pub(crate) fn also_text(comparison: &ComparisonRecord) -> String {
    match (comparison.least, comparison.ratio) {
        (LeastRecord::Relative(_), Some(_)) => estimate_text(comparison.unit, comparison.difference, None),
        (_, ratio) => minus(&quantity::change(ratio)),
    }
}

/// The least difference that matters: `1.0 MiB`, `2 %`.
pub(crate) fn least_text(comparison: &ComparisonRecord) -> String {
    match comparison.least {
        LeastRecord::Absolute(value) => value_text(comparison.unit, value),
        LeastRecord::Relative(share) => {
            let text = format!("{:.2}", share * 100.0);
            format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// What an axis of this unit up to this value divides by, and how it is called.
pub(crate) fn axis_unit(unit: Unit, largest: f64) -> (f64, &'static str) {
    match unit {
        Unit::Bytes => (MIB, " MiB"),
        Unit::PerSecond => (1.0, "/s"),
        Unit::Milliseconds => (1.0, " ms"),
        Unit::Seconds if largest < 1.0 => (1e-3, " ms"),
        Unit::Seconds => (1.0, " s"),
        Unit::Share => (0.01, " %"),
        Unit::BytesPer => (1.0, " B"),
        Unit::Count | Unit::Ratio => (1.0, ""),
    }
}

/// Configurations in the order of the metrics or, where there are none, of the trials; a baseline is the first.
pub(crate) fn configurations(document: &Document) -> Vec<&str> {
    let baseline = document.comparisons.first().map(|comparison| comparison.baseline.as_str());
    each_once(baseline.into_iter().chain(document.configurations()))
}

/// Unit and direction of a metric, if any configuration has it.
pub(crate) fn kind_of(document: &Document, metric: &str) -> Option<(Unit, Better)> {
    document.metrics.iter().find(|record| record.metric == metric).map(|record| (record.unit, record.better))
}

/// A word for names of files and ids: of `a-z`, `0-9` and `-`; not empty.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() >= SLUG_CHARS {
            break;
        }
    }
    let out = out.trim_matches('-');
    if out.is_empty() { "unnamed".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_words() {
        for (metric, words) in [
            ("rss.loaded", "RSS loaded"),
            ("p99.steady", "p99 steady"),
            ("malloc.retained.loaded", "malloc retained loaded"),
            ("start_up", "start-up"),
            ("response.p999.steady", "response time, p99.9 steady"),
            ("cpu_per_1000.steady", "CPU per 1,000 requests steady"),
            ("new.one", "new one"),
        ] {
            assert_eq!(metric_words(metric), words);
        }
    }

    #[test]
    fn an_interval_is_told_in_the_unit_of_its_estimate() {
        for (unit, estimate, ends, expect) in [
            (Unit::Bytes, -12.3 * MIB, Some((-14.9 * MIB, -9.8 * MIB)), "−12.3 MiB (−14.9 … −9.8)"),
            (Unit::Seconds, 0.001, Some((-0.002, 0.004)), "+1.00 ms (−2.00 … +4.00)"),
            (Unit::Seconds, 0.5, Some((-0.25, 1.5)), "+0.500 s (−0.250 … +1.50)"),
            (Unit::PerSecond, -18.6, Some((-130.0, 93.0)), "−18.6/s (−130 … +93)"),
            (Unit::Bytes, 10.0, None, "0.0 MiB"),
        ] {
            assert_eq!(estimate_text(unit, estimate, ends), expect);
        }
        assert_eq!(value_text(Unit::PerSecond, 9321.4), "9,321/s");
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(slug("../G1 & <Serial>"), "g1-serial");
        assert_eq!(slug("負荷"), "unnamed");
        assert!(slug(&"x".repeat(10_000)).len() <= SLUG_CHARS);
    }
}
