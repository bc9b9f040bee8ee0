//! The values a search may try, numbered: equal steps of a ratio (limits) or of an amount (heaps).
//! Every question is one of them, so that what was asked twice was asked of the same value.

/// Values of bytes by number; number 0 is where the search begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    start: f64,
    kind: Kind,
    /// Values are multiples of it.
    grain: u64,
    low: i32,
    high: i32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Ratio(f64),
    Amount(f64),
}

impl Grid {
    /// Values a share apart, `1.02` for 2 %, from `low` to `high` bytes, both within.
    ///
    /// `start` is moved into these bounds. A ratio of 1 or less, or bounds the wrong way round, leave one value.
    pub fn by_ratio(start: u64, low: u64, high: u64, ratio: f64, grain: u64) -> Self {
        let (low, high) = (low.max(1), high.max(low.max(1)));
        let start = start.clamp(low, high) as f64;
        // A bound that is a value of the grid is to be one after rounding, too.
        let steps = |to: u64| if ratio > 1.0 { (to as f64 / start).ln() / ratio.ln() } else { 0.0 };
        Self { start, kind: Kind::Ratio(ratio.max(1.0)), grain: grain.max(1), ..Self::within(steps(low), steps(high)) }
    }

    /// Values an amount of bytes apart, from `low` to `high`, both within.
    pub fn by_amount(start: u64, low: u64, high: u64, amount: u64) -> Self {
        let (amount, high) = (amount.max(1), high.max(low));
        let start = start.clamp(low, high);
        let steps = |to: u64| (to as f64 - start as f64) / amount as f64;
        Self {
            start: start as f64,
            kind: Kind::Amount(amount as f64),
            grain: 1,
            ..Self::within(steps(low), steps(high))
        }
    }

    fn within(low: f64, high: f64) -> Self {
        const NEARLY: f64 = 1e-6;
        let (low, high) = ((low - NEARLY).ceil() as i32, (high + NEARLY).floor() as i32);
        Self { start: 0.0, kind: Kind::Ratio(1.0), grain: 1, low: low.min(0), high: high.max(0) }
    }

    /// The number of the smallest value.
    pub fn low(&self) -> i32 {
        self.low
    }

    /// The number of the largest value.
    pub fn high(&self) -> i32 {
        self.high
    }

    /// The value of a number, in bytes: whole grains, never less than one.
    pub fn value(&self, number: i32) -> u64 {
        let exact = match self.kind {
            Kind::Ratio(ratio) => self.start * ratio.powi(number),
            Kind::Amount(amount) => self.start + amount * f64::from(number),
        };
        let grains = (exact / self.grain as f64).round().max(1.0);
        (grains as u64).saturating_mul(self.grain)
    }

    /// The number whose value is nearest to this one; the same again for a value of the grid.
    pub fn number(&self, value: u64) -> i32 {
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

    proptest! {
        #[test]
        fn every_value_has_its_number_back(start in 1u64..1 << 40, below in 1.0f64..8.0, above in 1.0f64..8.0,
                                           step in 0.005f64..0.5) {
            let (low, high) = ((start as f64 / below) as u64, (start as f64 * above) as u64);
            // A grain below the step, or two numbers would share a value.
            let grid = Grid::by_ratio(start, low, high, 1.0 + step, 1);
            for number in [grid.low(), grid.low() / 2, 0, grid.high() / 2, grid.high()] {
                let value = grid.value(number);
                prop_assert_eq!(grid.value(grid.number(value)), value);
                prop_assert!(value + 1 >= low && value <= high + 1);
            }
        }

        #[test]
        fn no_bounds_are_a_panic(start: u64, low: u64, high: u64, ratio: f64, amount: u64, asked: u64) {
            for grid in [Grid::by_ratio(start, low, high, ratio, 4096), Grid::by_amount(start, low, high, amount)] {
                prop_assert!(grid.low() <= 0 && grid.high() >= 0);
                grid.value(grid.number(asked));
            }
        }
    }
}
