//! Amounts of a metric in its unit: as typed by the user, or the default least difference that matters.

use crate::record::{LeastRecord, Unit};
use crate::scenario::{Amount, Compare};
use crate::units::Bytes;

/// A mebibyte: the RSS of a fresh JVM varies by this much between starts, and it costs users nothing.
const LEAST_BYTES: f64 = (1 << 20) as f64;
/// The share that practitioners regard as noise: 2%.
const LEAST_RELATIVE: f64 = 0.02;
/// More than the difference in bytes per request between most warmed-up JVMs of one server.
const LEAST_ALLOCATED: f64 = 0.01;
/// A tenth of a percentage point, for shares of requests or time: ratios of tiny shares are meaningless.
const LEAST_SHARE: f64 = 0.001;
/// One thread, one collection.
const LEAST_COUNT: f64 = 1.0;
/// The difference in elasticity when the same program is measured again.
const LEAST_RATIO: f64 = 0.03;

/// Parses an amount in a metric's unit, or as a share of it. Errors: how to write an amount of this unit.
pub(super) fn least_of(amount: Amount, unit: Unit) -> Result<LeastRecord, String> {
    match (amount, unit) {
        (Amount::Share(share), Unit::Share) => Ok(LeastRecord::Absolute(share)),
        (Amount::Share(share), _) => Ok(LeastRecord::Relative(share)),
        _ => absolute(amount, unit).map(LeastRecord::Absolute),
    }
}

/// Parses an amount in a metric's unit. Errors: how to write an amount of this unit.
pub(super) fn absolute(amount: Amount, unit: Unit) -> Result<f64, String> {
    match (amount, unit) {
        (Amount::Size(Bytes(bytes)), Unit::Bytes | Unit::BytesPer | Unit::BytesPerRequest | Unit::BytesPerSecond) => {
            Ok(bytes as f64)
        }
        (Amount::Time(span), Unit::Milliseconds) => Ok(span.as_s() * 1000.0),
        (Amount::Time(span), Unit::Seconds) => Ok(span.as_s()),
        (Amount::Share(share), Unit::Share | Unit::Ratio) => Ok(share),
        // Unlike `Amount::Size`, a number of bytes can have a fraction.
        (
            Amount::Number(number),
            Unit::Count | Unit::PerSecond | Unit::BytesPer | Unit::BytesPerRequest | Unit::BytesPerSecond | Unit::Ratio,
        ) => Ok(number),
        // 0 needs no unit.
        (Amount::Number(0.0), _) => Ok(0.0),
        _ => Err(format!("it is measured {}, so `{amount}` does not apply", written(unit))),
    }
}

fn written(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "in bytes (`60MiB`)",
        Unit::PerSecond => "per second (`1000`)",
        Unit::Milliseconds => "as a time (`20ms`)",
        Unit::Seconds => "as a time (`300ms`)",
        Unit::Share => "as a share (`0.1%`)",
        Unit::Count => "as a number (`30`)",
        Unit::BytesPer => "in bytes (`500B`)",
        Unit::BytesPerRequest => "in bytes per request (`48KiB`)",
        Unit::BytesPerSecond => "in bytes per second (`200MiB`)",
        Unit::Ratio => "as a number (`0.7`)",
    }
}

/// Whether a word names this metric or its family: `p99` fits `p99.steady`, `malloc` fits `malloc.live.loaded`.
pub fn fits(word: &str, metric: &str) -> bool {
    metric.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The least difference of a metric that matters: the requested amount if it fits the unit, otherwise the default.
pub(super) fn least(metric: &str, unit: Unit, asked: &Compare) -> LeastRecord {
    let fitting = asked.least.iter().filter(|(word, _)| fits(word, metric));
    fitting.map(|(_, amount)| least_of(*amount, unit)).find_map(Result::ok).unwrap_or(match unit {
        Unit::Bytes => LeastRecord::Absolute(LEAST_BYTES),
        Unit::Share => LeastRecord::Absolute(LEAST_SHARE),
        Unit::Count => LeastRecord::Absolute(LEAST_COUNT),
        Unit::Ratio => LeastRecord::Absolute(LEAST_RATIO),
        Unit::BytesPerRequest => LeastRecord::Relative(LEAST_ALLOCATED),
        Unit::PerSecond | Unit::Milliseconds | Unit::Seconds | Unit::BytesPer | Unit::BytesPerSecond => {
            LeastRecord::Relative(LEAST_RELATIVE)
        }
    })
}

/// A least difference in the metric's unit, for values around `centre`.
pub(super) fn least_at(least: LeastRecord, centre: f64) -> f64 {
    match least {
        LeastRecord::Absolute(amount) => amount,
        LeastRecord::Relative(share) => share * centre.abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_fits_its_unit_or_the_error_shows_how() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        assert_eq!(absolute(amount("1MiB"), Unit::Bytes), Ok(1_048_576.0));
        assert_eq!(absolute(amount("20ms"), Unit::Milliseconds), Ok(20.0));
        assert_eq!(absolute(amount("20ms"), Unit::Seconds), Ok(0.02));
        assert_eq!(absolute(amount("0.1%"), Unit::Share), Ok(0.001));
        assert_eq!(absolute(amount("10000"), Unit::PerSecond), Ok(10_000.0));
        assert_eq!(absolute(amount("0"), Unit::Share), Ok(0.0));
        assert_eq!(
            absolute(amount("20ms"), Unit::Bytes).unwrap_err(),
            "it is measured in bytes (`60MiB`), so `20ms` does not apply"
        );
        assert!(absolute(amount("99%"), Unit::PerSecond).unwrap_err().contains("per second"));
        assert!(absolute(amount("60MiB"), Unit::Milliseconds).unwrap_err().contains("`20ms`"));
        assert_eq!(least_of(amount("2%"), Unit::Bytes), Ok(LeastRecord::Relative(0.02)));
        assert_eq!(least_of(amount("2%"), Unit::Share), Ok(LeastRecord::Absolute(0.02)));
    }

    #[test]
    fn a_family_name_matches_all_its_metrics() {
        for (word, metric) in [("rss", "rss.loaded"), ("rss.loaded", "rss.loaded"), ("malloc", "malloc.live.loaded")] {
            assert!(fits(word, metric), "{word}, {metric}");
        }
        for (word, metric) in [("rss", "rss_peak"), ("rss.load", "rss.loaded"), ("p99", "response.p99.steady")] {
            assert!(!fits(word, metric), "{word}, {metric}");
        }
    }
}
