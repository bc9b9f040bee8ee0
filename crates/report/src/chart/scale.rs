//! Maps values to positions and back to round numbers: linear and logarithmic scales, and axis ticks.

/// Maximum decimals of a tick label.
const DIGITS_MAX: usize = 6;

/// Whether equal distances mean equal differences or equal ratios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    /// Equal differences.
    Linear,
    /// Equal ratios; the range is positive.
    Log,
}

/// An axis's range of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// Value at the start.
    pub(crate) low: f64,
    /// Value at the end; above `low`.
    pub(crate) high: f64,
    /// How values are spaced between them.
    pub(crate) kind: ScaleKind,
}

impl Scale {
    /// From `low` to `high`; makes empty and NaN ranges drawable.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high, kind: ScaleKind::Linear }
    }

    /// From 0 to a round number slightly above the largest value.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let top = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.04 } else { 1.0 };
        let step = nice_step(top / 4.0);
        Self::linear(0.0, (top / step).ceil() * step)
    }

    pub(crate) fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        let high = finite.fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Self::linear(0.0, 1.0);
        }
        let room = if high > low { (high - low) * 0.08 } else { (high.abs() * 0.02).max(0.5) };
        Self::linear(low - room, high + room)
    }

    /// Encloses these positive values, rounded outward to 1, 2, or 5 times a power of ten.
    pub(crate) fn log_around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let low = positive.clone().fold(f64::INFINITY, f64::min);
        let high = positive.fold(0.0, f64::max);
        if low > high {
            return Self { low: 0.1, high: 10.0, kind: ScaleKind::Log };
        }
        let floor = log_steps(low * 0.2, low * 1.000_001).last().copied().unwrap_or(low / 2.0);
        let ceiling = log_steps(high * 0.999_999, high * 5.0).first().copied().unwrap_or(high * 2.0);
        let ceiling = if ceiling > floor { ceiling } else { floor * 10.0 };
        Self { low: floor, high: ceiling, kind: ScaleKind::Log }
    }

    /// The position of a value: 0 at the start, 1 at the end. Clamps values outside; NaN becomes 0.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            ScaleKind::Log => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// About `most` round values inside the range.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        match self.kind {
            ScaleKind::Linear => linear_ticks(self.low, self.high, most),
            ScaleKind::Log => {
                let all = log_steps(self.low, self.high);
                if all.len() <= most {
                    return all;
                }
                let is_decade = |power: f64| (power - power.round()).abs() < 1e-6;
                let decades: Vec<f64> = all.into_iter().filter(|value| is_decade(value.log10())).collect();
                let every = decades.len().div_ceil(most.max(1)).max(1);
                decades.into_iter().step_by(every).collect()
            }
        }
    }
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let step = nice_step((high - low) / most.max(1) as f64);
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    let count = (last - first).clamp(-1.0, 200.0) as i64 + 1;
    // Adding 0 turns a negative zero into zero.
    (0..count).map(|index| (first + index as f64) * step + 0.0).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * 0.999_999).unwrap_or(10.0);
    factor * power
}

/// 1, 2, and 5 of each decade between two positive values.
fn log_steps(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high >= low && high.is_finite()) {
        return Vec::new();
    }
    let from = low.log10().floor().max(-30.0) as i32;
    let to = high.log10().ceil().min(30.0) as i32;
    let all = (from..=to).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)));
    all.filter(|value| *value >= low * 0.999_999 && *value <= high * 1.000_001).collect()
}

/// A tick's label, with enough digits to distinguish it from its neighbors.
pub(crate) fn tick_text(value: f64, ticks: &[f64]) -> String {
    let told = |digits: usize| {
        ticks.iter().all(|tick| {
            let shown: f64 = format!("{tick:.digits$}").parse().unwrap_or(*tick);
            (shown - tick).abs() <= tick.abs() * 1e-6
        })
    };
    let digits = (0..DIGITS_MAX).find(|digits| told(*digits)).unwrap_or(DIGITS_MAX);
    let text = match (digits, value.abs()) {
        (0, whole) => crate::units::grouped(whole.round() as u64),
        // Even if other ticks have decimals, 100 is not printed as 100.00.
        (_, whole) if (value - value.round()).abs() < 1e-9 => crate::units::grouped(whole.round() as u64),
        (_, part) => crate::units::trimmed(part, digits),
    };
    if value < 0.0 { format!("\u{2212}{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(scale: &Scale, most: usize) -> Vec<String> {
        let ticks = scale.ticks(most);
        ticks.iter().map(|tick| tick_text(*tick, &ticks)).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(texts(&Scale::linear(0.0, 97.0), 5), ["0", "20", "40", "60", "80"]);
        assert_eq!(texts(&Scale::linear(-0.3, 0.25), 6), ["−0.3", "−0.2", "−0.1", "0", "0.1", "0.2"]);
        assert_eq!(texts(&Scale::linear(0.0, 12_000.0), 4), ["0", "5,000", "10,000"]);
        assert_eq!(texts(&Scale::log_around([0.3, 40.0].into_iter()), 4), ["1", "10"]);
        assert_eq!(
            texts(&Scale::log_around([0.3, 40.0].into_iter()), 9),
            ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]
        );
    }

    #[test]
    fn ranges_contain_their_values_and_end_at_round_numbers() {
        let scale = Scale::from_zero([61.3].into_iter());
        assert_eq!((scale.low, scale.high), (0.0, 80.0));
        assert_eq!(Scale::from_zero(std::iter::empty()).high, 1.0);
        let log = Scale::log_around([0.2, 5.0].into_iter());
        assert_eq!((log.low, log.high), (0.2, 5.0));
        assert!(log.place(1.0) > 0.49 && log.place(1.0) < 0.51);
    }

    proptest! {
        #[test]
        fn any_values_make_a_scale_with_few_ticks(a in any::<f64>(), b in any::<f64>(), most in 1usize..12) {
            let values = [a, b];
            for scale in [
                Scale::linear(a.clamp(-1e12, 1e12), b.clamp(-1e12, 1e12)),
                Scale::from_zero(values.into_iter().map(|v| v.min(1e15))),
                Scale::around(values.into_iter().map(|v| v.clamp(-1e12, 1e12))),
                Scale::log_around(values.into_iter().map(|v| v.clamp(1e-9, 1e12))),
            ] {
                prop_assert!(scale.low < scale.high, "{:?}", scale);
                let ticks = scale.ticks(most);
                prop_assert!(ticks.len() <= most.max(3) + 2, "{:?} {:?}", scale, ticks);
                for tick in &ticks {
                    prop_assert!((0.0..=1.0).contains(&scale.place(*tick)));
                }
                prop_assert!((0.0..=1.0).contains(&scale.place(a)));
            }
        }

        #[test]
        fn scales_preserve_order(a in -1e6f64..1e6, b in -1e6f64..1e6) {
            let scale = Scale::linear(-1e6, 1e6);
            prop_assert!((a <= b) == (scale.place(a) <= scale.place(b)) || (a - b).abs() < 1e-3);
        }
    }
}
