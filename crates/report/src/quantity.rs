//! Numbers with units for display. Digits, sign, and unit stay separate until they are printed.

use crate::record::{BudgetRecord, ComparisonRecord, LeastRecord, Unit};
use crate::units::{MIB, grouped, milliseconds, per_second};
use crate::words::dash;
use std::fmt;

/// A number for machines: the shortest text that round-trips; empty without a value.
pub(crate) fn plain(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// A value for display: `60.1 MiB`, `4.21 ms`, `5,000/s`; a dash without a value.
pub(crate) fn shown(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(dash, |value| Quantity::new(unit, value).to_string())
}

/// A signed difference for display: `+12.1 MiB`, `-4.21 ms`, `0.0 MiB`.
pub(crate) fn signed(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(dash, |value| Quantity::new(unit, value).difference().to_string())
}

/// A ratio as a change: `+20.1%`; a dash without a ratio.
pub(crate) fn change(ratio: Option<f64>) -> String {
    signed_percent(ratio.map(|ratio| ratio - 1.0))
}

/// A signed percentage: `+20.1%`.
pub(crate) fn signed_percent(share: Option<f64>) -> String {
    share.map_or_else(dash, |share| Quantity::of(Form::CHANGE, share).difference().to_string())
}

/// A budget's number in the metric's unit; a change, or a share of the baseline, has a sign.
pub(crate) fn budget_number(budget: &BudgetRecord, value: Option<f64>) -> String {
    match budget.unit {
        _ if budget.relative => signed_percent(value),
        Some(unit) if budget.of_change => signed(unit, value),
        Some(unit) => shown(unit, value),
        None => dash(),
    }
}

/// How to print numbers of a unit: scale, digits, and suffix.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// One printed unit, expressed in the metric's unit.
    scale: f64,
    digits: fn(f64) -> String,
    suffix: &'static str,
}

impl Form {
    /// Changes have one decimal place fewer than other shares, because they have intervals.
    const CHANGE: Self = Self { scale: 0.01, digits: one_decimal, suffix: "%" };

    /// A common form for related numbers: seconds are printed in ms if all are below one second.
    fn of(unit: Unit, values: &[f64]) -> Self {
        let (scale, digits, suffix): (f64, fn(f64) -> String, _) = match unit {
            Unit::Bytes => (MIB as f64, one_decimal, " MiB"),
            Unit::PerSecond => (1.0, per_second, "/s"),
            Unit::Milliseconds => (1.0, milliseconds, " ms"),
            Unit::Seconds if values.iter().all(|value| value.abs() < 1.0) => (1e-3, milliseconds, " ms"),
            Unit::Seconds => (1.0, milliseconds, " s"),
            Unit::Share => (0.01, two_decimals, "%"),
            Unit::Count => (1.0, |n| if n.fract() == 0.0 { grouped(n as u64) } else { one_decimal(n) }, ""),
            Unit::BytesPerRequest if values.iter().any(|value| value.abs() >= 1024.0) => (1024.0, tenths, " KiB"),
            Unit::BytesPer | Unit::BytesPerRequest => (1.0, tenths, " B"),
            Unit::BytesPerSecond => (MIB as f64, one_decimal, " MiB/s"),
            Unit::Ratio => (1.0, two_decimals, ""),
        };
        Self { scale, digits, suffix }
    }
}

/// The display unit for numbers up to `largest`, and its size in the metric's unit. An axis and its numbers use the
/// same one.
pub(crate) fn scale(unit: Unit, largest: f64) -> (f64, &'static str) {
    let Form { scale, suffix, .. } = Form::of(unit, &[largest]);
    (scale, suffix)
}

fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

fn two_decimals(number: f64) -> String {
    format!("{number:.2}")
}

/// One decimal and thousands separators: `15,360.5`.
fn tenths(size: f64) -> String {
    let text = format!("{size:.1}");
    let whole = text.split_once('.').and_then(|(whole, tenth)| Some((whole.parse().ok()?, tenth)));
    whole.map_or(text.clone(), |(whole, tenth)| format!("{}.{tenth}", grouped(whole)))
}

/// A number with its unit, or a dash if the number is not finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// Empty for a value that rounds to 0, and for positive values unless they are differences.
    sign: &'static str,
    digits: String,
    unit: &'static str,
    is_above_zero: bool,
}

impl Quantity {
    /// The number without an interval.
    pub(crate) fn new(unit: Unit, value: f64) -> Self {
        Self::of(Form::of(unit, &[value]), value)
    }

    fn of(form: Form, value: f64) -> Self {
        if !value.is_finite() {
            return Self { sign: "", digits: dash(), unit: "", is_above_zero: false };
        }
        let digits = (form.digits)(value.abs() / form.scale);
        let is_zero = !digits.contains(|c: char| matches!(c, '1'..='9'));
        let sign = if value < 0.0 && !is_zero { "-" } else { "" };
        Self { sign, digits, unit: form.suffix, is_above_zero: value > 0.0 && !is_zero }
    }

    /// Adds a plus sign to positive values.
    pub(crate) fn difference(self) -> Self {
        Self { sign: if self.is_above_zero { "+" } else { self.sign }, ..self }
    }

    pub(crate) fn wide(self) -> Self {
        Self { sign: if self.sign == "-" { "\u{2212}" } else { self.sign }, ..self }
    }

    /// Omits the unit, which is in the table's title.
    pub(crate) fn bare(self) -> Self {
        Self { unit: "", ..self }
    }

    /// Whether it prints as anything but 0.
    pub(crate) fn is_shown(&self) -> bool {
        self.digits.contains(|c: char| matches!(c, '1'..='9'))
    }

    /// Sign and digits without the unit.
    fn number(&self) -> String {
        format!("{}{}", self.sign, self.digits)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.sign, self.digits, self.unit)
    }
}

/// An estimate with its interval, in a common unit that is printed once: `-12.3 MiB (-14.9 … -9.8)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub(crate) centre: Quantity,
    ends: Option<[Quantity; 2]>,
}

impl Estimate {
    pub(crate) fn new(unit: Unit, centre: f64, ends: Option<(f64, f64)>) -> Self {
        let (low, high) = ends.unwrap_or((centre, centre));
        Self::of(Form::of(unit, &[centre, low, high]), centre, ends)
    }

    pub(crate) fn change(centre: f64, ends: Option<(f64, f64)>) -> Self {
        Self::of(Form::CHANGE, centre, ends)
    }

    /// The judged value of a comparison: the difference, or the change if the least relevant difference is a share.
    pub(crate) fn judged(comparison: &ComparisonRecord) -> Self {
        let of = match (comparison.least, comparison.ratio) {
            (LeastRecord::Relative(_), Some(ratio)) => {
                let ends = comparison.ratio_low.zip(comparison.ratio_high);
                Self::change(ratio - 1.0, ends.map(|(low, high)| (low - 1.0, high - 1.0)))
            }
            _ => Self::new(comparison.unit, comparison.difference, comparison.low.zip(comparison.high)),
        };
        of.difference()
    }

    fn of(form: Form, centre: f64, ends: Option<(f64, f64)>) -> Self {
        let quantity = |value: f64| Quantity::of(form, value);
        Self { centre: quantity(centre), ends: ends.map(|(low, high)| [low, high].map(quantity)) }
    }

    pub(crate) fn difference(self) -> Self {
        Self { centre: self.centre.difference(), ends: self.ends.map(|ends| ends.map(Quantity::difference)) }
    }

    pub(crate) fn wide(self) -> Self {
        Self { centre: self.centre.wide(), ends: self.ends.map(|ends| ends.map(Quantity::wide)) }
    }

    /// `-14.9 … -9.8`; a dash without an interval.
    pub(crate) fn interval(&self) -> String {
        self.ends.as_ref().map_or_else(dash, |[low, high]| format!("{} … {}", low.number(), high.number()))
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ends {
            Some(_) => write!(f, "{} ({})", self.centre, self.interval()),
            None => write!(f, "{}", self.centre),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_with_their_unit() {
        for (unit, value, expect) in [
            (Unit::Bytes, 63_019_417.0, "60.1 MiB"),
            (Unit::Bytes, -63_019_417.0, "-60.1 MiB"),
            (Unit::PerSecond, 5_000.4, "5,000/s"),
            (Unit::Milliseconds, 4.2149, "4.21 ms"),
            (Unit::Milliseconds, -42.149, "-42.1 ms"),
            (Unit::Seconds, 0.0625, "62.5 ms"),
            (Unit::Seconds, 4.2149, "4.21 s"),
            (Unit::Share, 0.0125, "1.25%"),
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
    fn nonzero_differences_have_a_sign() {
        assert_eq!(signed(Unit::Bytes, Some(12_687_769.6)), "+12.1 MiB");
        assert_eq!(signed(Unit::Milliseconds, Some(-0.5)), "-0.500 ms");
        assert_eq!(signed(Unit::Bytes, Some(-1.0)), "0.0 MiB");
        assert_eq!(signed(Unit::Bytes, None), "-");
        assert_eq!(change(Some(1.2006)), "+20.1%");
        assert_eq!(change(Some(0.9)), "-10.0%");
        assert_eq!(change(Some(1.0)), "0.0%");
        assert_eq!(change(None), "-");
    }

    #[test]
    fn an_interval_has_the_unit_of_its_estimate() {
        let mib = |size: f64| size * MIB as f64;
        for (unit, estimate, ends, expect) in [
            (Unit::Bytes, mib(-12.3), Some((mib(-14.9), mib(-9.8))), "−12.3 MiB (−14.9 … −9.8)"),
            (Unit::Seconds, 0.001, Some((-0.002, 0.004)), "+1.00 ms (−2.00 … +4.00)"),
            (Unit::Seconds, 0.5, Some((-0.25, 1.5)), "+0.500 s (−0.250 … +1.50)"),
            (Unit::PerSecond, -18.6, Some((-130.0, 93.0)), "−18.6/s (−130 … +93)"),
            (Unit::Bytes, 10.0, None, "0.0 MiB"),
        ] {
            assert_eq!(Estimate::new(unit, estimate, ends).difference().wide().to_string(), expect);
        }
        assert_eq!(Estimate::change(-0.05, Some((-0.1, 0.02))).difference().interval(), "-10.0 … +2.0");
    }

    #[test]
    fn plain_numbers_round_trip() {
        for value in [0.1, 1e-9, 63_019_417.0, -2.5] {
            assert_eq!(plain(Some(value)).parse::<f64>().unwrap(), value);
        }
        assert_eq!(plain(Some(f64::INFINITY)), "");
        assert_eq!(plain(None), "");
    }
}
