//! The numbered values that a search can try: equal steps of a ratio (limits) or of an amount (heaps). Every question
//! uses one of them, so repeated questions have the same value.

/// Byte values by number; the search begins at number 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grid {
    start: f64,
    kind: GridSpacing,
    /// Values are multiples of this.
    grain: u64,
    low: i32,
    high: i32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum GridSpacing {
    /// Powers of a ratio times `value`, which has this `number`. Below the number `knee`, powers would be less than a
    /// grain apart, so values are spaced by a grain.
    Ratio {
        ratio: f64,
        knee: i32,
        number: i32,
        value: f64,
    },
    Amount(f64),
}

impl GridSpacing {
    fn by_ratio(start: f64, ratio: f64, grain: f64) -> Self {
        if ratio.is_nan() || ratio <= 1.0 {
            return Self::Ratio { ratio: 1.0, knee: i32::MIN, number: 0, value: start };
        }
        // From this value on, a step is at least a grain.
        let least = grain / (ratio - 1.0);
        if start >= least {
            let knee = ((least / start).ln() / ratio.ln()).ceil() as i32;
            return Self::Ratio { ratio, knee, number: 0, value: start };
        }
        let knee = ((least - start) / grain).ceil() as i32;
        Self::Ratio { ratio, knee, number: knee, value: start + f64::from(knee) * grain }
    }

    /// The exact value of a number, for a ratio.
    fn power(self, number: i32, grain: f64) -> f64 {
        let Self::Ratio { ratio, knee, number: of, value } = self else { return 0.0 };
        let above = value * ratio.powi(number.max(knee).saturating_sub(of));
        above - (f64::from(knee) - f64::from(number)).max(0.0) * grain
    }

    /// The number of a value, for a ratio.
    fn steps(self, to: f64, grain: f64) -> f64 {
        let Self::Ratio { ratio, knee, number, value } = self else { return 0.0 };
        let at_knee = self.power(knee, grain);
        match to >= at_knee {
            true => f64::from(number) + (to / value).ln() / ratio.ln(),
            false => f64::from(knee) - (at_knee - to) / grain,
        }
    }
}

impl Grid {
    /// Values spaced by a ratio (`1.02` for 2%), or by a grain if that is more, from `low` to `high` bytes, inclusive.
    ///
    /// `start` is clamped to these bounds. A ratio of 1 or less, or reversed bounds, leaves a single value.
    pub(super) fn by_ratio(start: u64, low: u64, high: u64, ratio: f64, grain: u64) -> Self {
        let (low, high) = (low.max(1), high.max(low.max(1)));
        let start = start.clamp(low, high) as f64;
        // A bound that is on the grid must remain on it after rounding.
        let grain = grain.max(1);
        let kind = GridSpacing::by_ratio(start, ratio, grain as f64);
        let steps = |to: u64| if ratio > 1.0 { kind.steps(to as f64, grain as f64) } else { 0.0 };
        Self { start, kind, grain, ..Self::within(steps(low), steps(high)) }
    }

    /// Values spaced by an amount of bytes, from `low` to `high`, inclusive.
    pub(super) fn by_amount(start: u64, low: u64, high: u64, amount: u64) -> Self {
        let (amount, high) = (amount.max(1), high.max(low));
        let start = start.clamp(low, high);
        let steps = |to: u64| (to as f64 - start as f64) / amount as f64;
        Self {
            start: start as f64,
            kind: GridSpacing::Amount(amount as f64),
            grain: 1,
            ..Self::within(steps(low), steps(high))
        }
    }

    fn within(low: f64, high: f64) -> Self {
        const NEARLY: f64 = 1e-6;
        let (low, high) = ((low - NEARLY).ceil() as i32, (high + NEARLY).floor() as i32);
        Self { start: 0.0, kind: GridSpacing::Amount(0.0), grain: 1, low: low.min(0), high: high.max(0) }
    }

    pub(super) fn low(&self) -> i32 {
        self.low
    }

    pub(super) fn high(&self) -> i32 {
        self.high
    }

    /// The value of a number, in bytes: whole grains, at least one.
    pub(super) fn value(&self, number: i32) -> u64 {
        let exact = match self.kind {
            GridSpacing::Ratio { .. } => self.kind.power(number, self.grain as f64),
            GridSpacing::Amount(amount) => self.start + amount * f64::from(number),
        };
        let grains = (exact / self.grain as f64).round().max(1.0);
        (grains as u64).saturating_mul(self.grain)
    }

    /// The number of the nearest value; exact for a value of the grid.
    pub(super) fn number(&self, value: u64) -> i32 {
        let (mut low, mut high) = (self.low, self.high);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.value(middle) <= value { low = middle } else { high = middle }
        }
        if self.value(high).abs_diff(value) < self.value(low).abs_diff(value) { high } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MIB;
    use proptest::prelude::*;

    #[test]
    fn values_are_a_step_apart() {
        let grid = Grid::by_ratio(100 * MIB, 50 * MIB, 200 * MIB, 1.02, 4096);
        assert_eq!(grid.value(0), 100 * MIB);
        assert!((grid.value(1) as f64 / grid.value(0) as f64 - 1.02).abs() < 1e-4);
        assert!(grid.value(grid.low()) >= 50 * MIB && grid.value(grid.low()) < 51 * MIB);
        assert!(grid.value(grid.high()) <= 200 * MIB && grid.value(grid.high()) > 196 * MIB);
        let heaps = Grid::by_amount(8 * MIB, 2 * MIB, 20 * MIB, MIB);
        assert_eq!((heaps.low(), heaps.high(), heaps.value(-1)), (-6, 12, 7 * MIB));
    }

    fn all(grid: &Grid) -> Vec<(i32, u64)> {
        (grid.low()..=grid.high()).map(|number| (number, grid.value(number))).collect()
    }

    #[test]
    fn bounds_that_match_a_step_are_values() {
        assert_eq!(all(&Grid::by_ratio(400, 100, 1600, 2.0, 1)), [(-2, 100), (-1, 200), (0, 400), (1, 800), (2, 1600)]);
        assert_eq!(all(&Grid::by_ratio(400, 101, 1599, 2.0, 1)), [(-1, 200), (0, 400), (1, 800)]);
        assert_eq!(all(&Grid::by_amount(10, 4, 19, 3)), [(-2, 4), (-1, 7), (0, 10), (1, 13), (2, 16), (3, 19)]);
        assert_eq!(all(&Grid::by_amount(10, 5, 18, 3)), [(-1, 7), (0, 10), (1, 13), (2, 16)]);
        // A start outside the bounds is clamped.
        assert_eq!(all(&Grid::by_amount(2, 4, 8, 2)), [(0, 4), (1, 6), (2, 8)]);
        assert_eq!(all(&Grid::by_ratio(9000, 100, 400, 2.0, 1)), [(-2, 100), (-1, 200), (0, 400)]);
        // No step, or reversed bounds: a single value.
        assert_eq!(all(&Grid::by_ratio(400, 100, 1600, 1.0, 1)), [(0, 400)]);
        assert_eq!(all(&Grid::by_ratio(400, 300, 200, 2.0, 1)), [(0, 300)]);
        assert_eq!(all(&Grid::by_amount(7, 9, 5, 1)), [(0, 9)]);
        assert_eq!(all(&Grid::by_amount(7, 6, 8, 0)), [(-1, 6), (0, 7), (1, 8)]);
    }

    #[test]
    fn values_are_whole_grains_and_the_nearest_has_its_number() {
        let grid = Grid::by_ratio(1000, 100, 10_000, 1.5, 256);
        assert!(all(&grid).iter().all(|(_, value)| value % 256 == 0 && *value > 0));
        assert_eq!(grid.value(0), 1024, "values are rounded, not truncated");
        assert_eq!(Grid::by_ratio(10, 1, 100, 2.0, 4096).value(0), 4096, "a value is at least one grain");
        let plain = Grid::by_amount(100, 50, 200, 10);
        assert_eq!([104, 106, 105, 0, 999].map(|value| plain.number(value)), [0, 1, 0, -5, 10]);
        assert_eq!(Grid::by_amount(100, 50, 104, 10).number(104), 0);
    }

    #[test]
    fn a_step_is_at_least_a_grain() {
        let of = |start: u64| Grid::by_ratio(start * MIB, 16 * MIB, 400 * MIB, 1.02, MIB);
        for grid in [of(16), of(30), of(49), of(51), of(100), of(400)] {
            let values: Vec<u64> = all(&grid).iter().map(|(_, value)| *value).collect();
            assert!(values.windows(2).all(|two| two[0] < two[1]), "{values:?}");
            assert_eq!((values[0], grid.value(0) % MIB), (16 * MIB, 0));
            assert!(all(&grid).iter().all(|(number, value)| grid.number(*value) == *number));
        }
        assert_eq!((of(30).value(0), of(30).value(1), of(100).value(0)), (30 * MIB, 31 * MIB, 100 * MIB));
        assert_eq!(of(100).value(1), 102 * MIB);
    }

    proptest! {
        #[test]
        fn values_and_numbers_round_trip(start in 1u64..1 << 40, below in 1.0f64..8.0, above in 1.0f64..8.0,
                                           step in 0.005f64..0.5) {
            let (low, high) = ((start as f64 / below) as u64, (start as f64 * above) as u64);
            // The grain is smaller than the step, because otherwise two numbers would share a value.
            let grid = Grid::by_ratio(start, low, high, 1.0 + step, 1);
            for number in [grid.low(), grid.low() / 2, 0, grid.high() / 2, grid.high()] {
                let value = grid.value(number);
                prop_assert_eq!(grid.value(grid.number(value)), value);
                prop_assert!(value + 1 >= low && value <= high + 1);
            }
        }

        #[test]
        fn a_grid_with_any_bounds_does_not_panic(start: u64, low: u64, high: u64, ratio: f64, amount: u64, asked: u64) {
            for grid in [Grid::by_ratio(start, low, high, ratio, 4096), Grid::by_amount(start, low, high, amount)] {
                prop_assert!(grid.low() <= 0 && grid.high() >= 0);
                grid.value(grid.number(asked));
            }
        }
    }
}
