//! Numbers and names as the report prints them: a metric's words, a value with its unit, a difference with its sign.

use crate::record::{Better, ComparisonRecord, Document, LeastRecord, Unit};
use crate::report::summary::owners::screen_name;
use crate::units::{grouped, milliseconds, per_second};

/// Names of files and ids are no longer than this.
const SLUG_CHARS: usize = 40;
/// Bytes of a MiB.
pub(crate) const MIB: f64 = (1u64 << 20) as f64;

/// The words for a metric: `rss.loaded` is `RSS loaded`, `p99.steady` is `p99 steady`.
pub(crate) fn metric_words(metric: &str) -> String {
    // Only the last part is a mark or a phase; owners have a point in their names.
    let (head, place) = metric.rsplit_once('.').unwrap_or((metric, ""));
    let known = |head: &str| -> Option<&'static str> {
        Some(match head {
            "rss" => "RSS",
            "pss" => "PSS",
            "peak" | "rss_peak" => "peak RSS",
            "rate" => "requests per second",
            "cpu_per_1000" => "CPU per 1,000 requests",
            "gc_ms" | "gc_time" => "time in GC",
            "gc_count" => "collections",
            "start_up" => "start-up",
            "heap_used" => "heap used",
            "heap_committed" => "heap committed",
            _ => return None,
        })
    };
    if let Some(words) = known(metric) {
        return words.to_owned();
    }
    let words = known(head).unwrap_or_else(|| screen_name(head));
    if place.is_empty() { words.to_owned() } else { format!("{words} {place}") }
}

/// A value with its unit.
pub(crate) fn value_text(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => format!("{} MiB", minus(format!("{:.1}", value / MIB))),
        Unit::PerSecond => format!("{}/s", minus(per_second(value))),
        Unit::Milliseconds => format!("{} ms", sized(value)),
        Unit::Seconds => format!("{} s", sized(value)),
        Unit::Share => format!("{} %", minus(format!("{:.1}", value * 100.0))),
        Unit::Count if value.fract() == 0.0 && value >= 0.0 => grouped(value as u64),
        Unit::Count => sized(value),
    }
}

/// Digits by size, whatever the sign.
fn sized(value: f64) -> String {
    let text = milliseconds(value.abs());
    if value < 0.0 { format!("\u{2212}{text}") } else { text }
}

fn minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.' | ',')) => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// A difference without its unit, with its sign.
fn signed(unit: Unit, value: f64) -> String {
    let text = match unit {
        Unit::Bytes => format!("{:.1}", value.abs() / MIB),
        Unit::Share => format!("{:.1}", value.abs() * 100.0),
        Unit::PerSecond => per_second(value.abs()),
        Unit::Count if value.fract() == 0.0 => grouped(value.abs() as u64),
        _ => milliseconds(value.abs()),
    };
    let none = text.chars().all(|c| matches!(c, '0' | '.' | ','));
    match (none, value < 0.0) {
        (true, _) => text,
        (false, true) => format!("\u{2212}{text}"),
        (false, false) => format!("+{text}"),
    }
}

/// The unit behind a difference.
fn unit_text(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => " MiB",
        Unit::PerSecond => "/s",
        Unit::Milliseconds => " ms",
        Unit::Seconds => " s",
        // A difference of shares is in points, so that it is not taken for a share of the share.
        Unit::Share => " points",
        Unit::Count => "",
    }
}

/// `−12.3 MiB (−14.9 … −9.8)`; without interval where there is none.
pub(crate) fn difference_text(comparison: &ComparisonRecord) -> String {
    let unit = comparison.unit;
    let estimate = format!("{}{}", signed(unit, comparison.difference), unit_text(unit));
    match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => format!("{estimate} ({} \u{2026} {})", signed(unit, low), signed(unit, high)),
        _ => estimate,
    }
}

/// The estimate of the ratio as a change: `−16.7 %`.
pub(crate) fn change_text(ratio: f64) -> String {
    format!("{} %", signed(Unit::Share, ratio - 1.0))
}

/// The least difference that matters: `1.0 MiB`, `2 %`.
pub(crate) fn least_text(comparison: &ComparisonRecord) -> String {
    match comparison.least {
        LeastRecord::Absolute(value) => {
            let text = signed(comparison.unit, value);
            format!("{}{}", text.trim_start_matches(['+', '\u{2212}']), unit_text(comparison.unit))
        }
        LeastRecord::Relative(share) => {
            let text = format!("{:.2}", share * 100.0);
            format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// What an axis of this unit divides by, and how it is called.
pub(crate) fn axis_unit(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Bytes => (MIB, " MiB"),
        Unit::PerSecond => (1.0, "/s"),
        Unit::Milliseconds => (1.0, " ms"),
        Unit::Seconds => (1.0, " s"),
        Unit::Share => (0.01, " %"),
        Unit::Count => (1.0, ""),
    }
}

/// Configurations in the order of the metrics or, where there are none, of the trials; a baseline is the first.
pub(crate) fn configurations(document: &Document) -> Vec<&str> {
    let baseline = document.comparisons.first().map(|comparison| comparison.baseline.as_str());
    let of_metrics = document.metrics.iter().map(|metric| metric.configuration.as_str());
    let of_trials = document.trials.iter().map(|trial| trial.configuration.as_str());
    let mut found: Vec<&str> = Vec::new();
    for name in baseline.into_iter().chain(of_metrics).chain(of_trials) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
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
            ("cpu_per_1000.steady", "CPU per 1,000 requests steady"),
            ("new.one", "new one"),
        ] {
            assert_eq!(metric_words(metric), words);
        }
    }

    #[test]
    fn numbers_have_their_unit_and_differences_a_sign() {
        assert_eq!(value_text(Unit::Bytes, 61.25 * MIB), "61.2 MiB");
        assert_eq!(value_text(Unit::PerSecond, 9321.4), "9,321/s");
        assert_eq!(value_text(Unit::Share, 0.5), "50.0 %");
        assert_eq!(signed(Unit::Bytes, -12.3 * MIB), "−12.3");
        assert_eq!(signed(Unit::Bytes, 10.0), "0.0");
        assert_eq!(signed(Unit::Milliseconds, 0.0421), "+0.042");
        assert_eq!(change_text(0.833), "−16.7 %");
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(slug("../G1 & <Serial>"), "g1-serial");
        assert_eq!(slug("負荷"), "unnamed");
        assert!(slug(&"x".repeat(10_000)).len() <= SLUG_CHARS);
    }
}
