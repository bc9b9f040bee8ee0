//! Numbers with their unit, as people read them, and the names of units in files.

use crate::record::Unit;
use crate::units::{grouped, milliseconds, per_second};

const MIB: f64 = crate::units::MIB as f64;

/// As the result document names it.
pub(in crate::report) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::PerSecond => "per_second",
        Unit::Milliseconds => "milliseconds",
        Unit::Seconds => "seconds",
        Unit::Share => "share",
        Unit::Count => "count",
        Unit::BytesPer => "bytes_per",
        Unit::Ratio => "ratio",
    }
}

/// A number for machines: the shortest text that reads back as the same number; empty where there is none.
pub(in crate::report) fn plain(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// A value for people: `60.1 MiB`, `4.21 ms`, `5,000/s`; a dash where there is none.
pub(in crate::report) fn shown(unit: Unit, value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return "-".to_owned() };
    let size = value.abs();
    let text = match unit {
        Unit::Bytes => format!("{:.1} MiB", size / MIB),
        Unit::PerSecond => format!("{}/s", per_second(size)),
        Unit::Milliseconds => format!("{} ms", milliseconds(size)),
        Unit::Seconds if size < 1.0 => format!("{} ms", milliseconds(size * 1e3)),
        Unit::Seconds => format!("{} s", milliseconds(size)),
        Unit::Share => format!("{:.2} %", size * 100.0),
        Unit::Count if size.fract() == 0.0 => grouped(size as u64),
        Unit::Count => format!("{size:.1}"),
        Unit::BytesPer => format!("{} B", tenths(size)),
        Unit::Ratio => format!("{size:.2}"),
    };
    if value < 0.0 && says_something(&text) { format!("-{text}") } else { text }
}

/// One decimal, thousands apart: `15,360.5`.
fn tenths(size: f64) -> String {
    let text = format!("{size:.1}");
    let whole = text.split_once('.').and_then(|(whole, tenth)| Some((whole.parse().ok()?, tenth)));
    whole.map_or(text.clone(), |(whole, tenth)| format!("{}.{tenth}", grouped(whole)))
}

/// A difference for people, always with its sign: `+12.1 MiB`, `-4.21 ms`, `0.0 MiB`.
pub(in crate::report) fn signed(unit: Unit, value: Option<f64>) -> String {
    let text = shown(unit, value);
    if value.is_some_and(|value| value > 0.0) && says_something(&text) { format!("+{text}") } else { text }
}

/// A ratio as a change: `+20.1 %`; a dash where there is none.
pub(in crate::report) fn change(ratio: Option<f64>) -> String {
    signed_percent(ratio.map(|ratio| ratio - 1.0))
}

/// A share of something with its sign: `+20.1 %`.
pub(in crate::report) fn signed_percent(share: Option<f64>) -> String {
    let Some(share) = share.filter(|share| share.is_finite()) else { return "-".to_owned() };
    let text = format!("{:.1} %", share.abs() * 100.0);
    match share {
        _ if !says_something(&text) => text,
        share if share < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

/// What rounds to zero has no sign.
fn says_something(text: &str) -> bool {
    text.contains(|c: char| matches!(c, '1'..='9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_the_rest_of_the_house() {
        for (unit, value, expect) in [
            (Unit::Bytes, 63_019_417.0, "60.1 MiB"),
            (Unit::Bytes, -63_019_417.0, "-60.1 MiB"),
            (Unit::PerSecond, 5_000.4, "5,000/s"),
            (Unit::Milliseconds, 4.2149, "4.21 ms"),
            (Unit::Milliseconds, -42.149, "-42.1 ms"),
            (Unit::Seconds, 0.0625, "62.5 ms"),
            (Unit::Seconds, 4.2149, "4.21 s"),
            (Unit::Share, 0.0125, "1.25 %"),
            (Unit::Count, 50_000.0, "50,000"),
            (Unit::Count, 1.5, "1.5"),
            (Unit::BytesPer, 466.24, "466.2 B"),
            (Unit::BytesPer, -15_360.96, "-15,361.0 B"),
            (Unit::BytesPer, 1e300, &format!("{:.1} B", 1e300)),
            (Unit::Ratio, 0.774, "0.77"),
            (Unit::Ratio, -0.001, "0.00"),
        ] {
            assert_eq!(shown(unit, Some(value)), expect);
        }
        assert_eq!(shown(Unit::Bytes, None), "-");
        assert_eq!(shown(Unit::Bytes, Some(f64::NAN)), "-");
    }

    #[test]
    fn differences_have_a_sign_unless_they_are_nothing() {
        assert_eq!(signed(Unit::Bytes, Some(12_687_769.6)), "+12.1 MiB");
        assert_eq!(signed(Unit::Milliseconds, Some(-0.5)), "-0.500 ms");
        assert_eq!(signed(Unit::Bytes, Some(-1.0)), "0.0 MiB");
        assert_eq!(signed(Unit::Bytes, None), "-");
        assert_eq!(change(Some(1.2006)), "+20.1 %");
        assert_eq!(change(Some(0.9)), "-10.0 %");
        assert_eq!(change(Some(1.0)), "0.0 %");
        assert_eq!(change(None), "-");
    }

    #[test]
    fn numbers_for_machines_read_back() {
        for value in [0.1, 1e-9, 63_019_417.0, -2.5] {
            assert_eq!(plain(Some(value)).parse::<f64>().unwrap(), value);
        }
        assert_eq!(plain(Some(f64::INFINITY)), "");
        assert_eq!(plain(None), "");
    }
}
