//! Splits a series of values into stretches that are level or linear, minimizing the remaining noise plus a price per
//! break. Exact, by dynamic programming over all possible splits (Jackson and others 2005, "optimal partitioning").

use std::ops::Range;

/// With fewer points than this, a line is never fitted: two breaks say as much.
const RISING_MIN: usize = 6;

/// A point: its value, and one over the square of its standard error.
#[derive(Debug, Clone, Copy)]
pub struct WeightedPoint {
    /// The value.
    pub value: f64,
    /// One over the square of its standard error.
    pub weight: f64,
}

/// A stretch of points, excluding `to`.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// The first point.
    pub from: usize,
    /// The point after the last.
    pub to: usize,
    /// Rise per point; 0 if it is level.
    pub slope: f64,
    /// The value at the first point.
    pub start: f64,
}

impl Stretch {
    /// Returns the stretch's value at an index, which may be beyond its ends.
    pub fn at(&self, place: f64) -> f64 {
        self.start + self.slope * (place - self.from as f64)
    }

    /// Its points.
    pub fn range(&self) -> Range<usize> {
        self.from..self.to
    }

    /// Whether it is not level.
    pub fn rises(&self) -> bool {
        self.slope != 0.0
    }
}

/// Cumulative sums that determine the misfit of any stretch.
#[derive(Debug, Clone)]
pub struct Course {
    /// Up to each point, and after the last: of weights, and of weights times x, x², y, xy, y².
    sums: Vec<[f64; 6]>,
    /// Subtracted from all values, so that squares of large values do not swamp their differences.
    middle: f64,
}

impl Course {
    /// The sums of these points, which are in order.
    pub fn of(points: &[WeightedPoint]) -> Self {
        let weights: f64 = points.iter().map(|point| point.weight).sum();
        let middle =
            points.iter().map(|point| point.value * point.weight).sum::<f64>() / weights.max(f64::MIN_POSITIVE);
        let mut sums = vec![[0.0; 6]];
        for (place, point) in points.iter().enumerate() {
            let (x, y, w) = (place as f64, point.value - middle, point.weight);
            let terms = [w, w * x, w * x * x, w * y, w * x * y, w * y * y];
            let last = sums[place];
            sums.push(std::array::from_fn(|at| last[at] + terms[at]));
        }
        Self { sums, middle }
    }

    fn points(&self) -> usize {
        self.sums.len() - 1
    }

    fn sum(&self, from: usize, to: usize) -> [f64; 6] {
        std::array::from_fn(|at| self.sums[to][at] - self.sums[from][at])
    }

    /// Returns the misfits of a level and of a line; no line for fewer than [`RISING_MIN`] points.
    fn misfits(&self, from: usize, to: usize) -> (f64, Option<f64>) {
        let [w, wx, wxx, wy, wxy, wyy] = self.sum(from, to);
        let level = (wyy - wy * wy / w).max(0.0);
        let (across, along) = (wxx - wx * wx / w, wxy - wx * wy / w);
        let line = (to - from >= RISING_MIN && across > 0.0).then(|| (level - along * along / across).max(0.0));
        (level, line)
    }

    /// Fits a stretch as a level or as a line.
    pub fn fitted(&self, from: usize, to: usize, rises: bool) -> Stretch {
        let [w, wx, wxx, wy, wxy, _] = self.sum(from, to);
        let across = wxx - wx * wx / w;
        let slope = if rises && across > 0.0 { (wxy - wx * wy / w) / across } else { 0.0 };
        let start = self.middle + wy / w + slope * (from as f64 - wx / w);
        Stretch { from, to, slope, start }
    }

    /// The better of level and line; a line costs the price of one more parameter.
    pub fn best(&self, from: usize, to: usize, price: f64) -> Stretch {
        self.fitted(from, to, self.cost(from, to, price).1)
    }

    /// Returns the misfit of a stretch, including the price if it is a line, and whether it is one.
    fn cost(&self, from: usize, to: usize, price: f64) -> (f64, bool) {
        match self.misfits(from, to) {
            (level, Some(line)) if line + price < level => (line + price, true),
            (level, _) => (level, false),
        }
    }

    /// The stretches with minimal misfit, at this price per break and per line.
    pub fn stretches(&self, price: f64) -> Vec<Stretch> {
        let points = self.points();
        let mut least = vec![(0.0, 0); points + 1];
        for to in 1..=points {
            let with = |from: usize| {
                let (before, _): (f64, usize) = least[from];
                let broken = if from > 0 { price } else { 0.0 };
                (before + broken + self.cost(from, to, price).0, from)
            };
            least[to] = (0..to).map(with).min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((0.0, 0));
        }
        let mut found = Vec::new();
        let mut to = points;
        while to > 0 {
            let from = least[to].1;
            found.push(self.best(from, to, price));
            to = from;
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(values: &[f64], weight: f64) -> Course {
        let points = values.iter().map(|value| WeightedPoint { value: *value, weight });
        Course::of(&points.collect::<Vec<_>>())
    }

    fn found(values: &[f64], price: f64) -> Vec<(usize, usize, f64)> {
        let stretches = course(values, 1.0).stretches(price);
        stretches.iter().map(|of| (of.from, of.to, of.slope)).collect()
    }

    #[test]
    fn levels_and_lines_are_distinguished() {
        assert_eq!(found(&[], 9.0), []);
        assert_eq!(found(&[5.0], 9.0), [(0, 1, 0.0)]);
        assert_eq!(found(&[1.0, 2.0, 1.0, 2.0, 1.0], 9.0), [(0, 5, 0.0)]);
        let step = [[1e9; 7], [1e9 + 8.0; 7]].concat();
        assert_eq!(found(&step, 9.0), [(0, 7, 0.0), (7, 14, 0.0)]);
        let line: Vec<f64> = (0..14).map(f64::from).collect();
        assert_eq!(found(&line, 9.0), [(0, 14, 1.0)]);
        let both = [line.as_slice(), &[40.0; 8]].concat();
        assert_eq!(found(&both, 9.0), [(0, 14, 1.0), (14, 22, 0.0)]);
        let spike = [[0.0; 6].as_slice(), &[20.0], &[0.0; 6]].concat();
        assert_eq!(found(&spike, 9.0), [(0, 6, 0.0), (6, 7, 0.0), (7, 13, 0.0)]);
    }

    #[test]
    fn the_split_has_the_lowest_cost() {
        // Tries every split of eight points into levels.
        let values = [0.0, 0.4, 3.1, 2.9, 3.3, -1.0, -1.2, 5.0];
        let (course, price) = (course(&values, 1.0), 1.5);
        let cost = |stretches: &[(usize, usize)]| -> f64 {
            let each: f64 = stretches.iter().map(|(from, to)| course.cost(*from, *to, price).0).sum();
            each + price * (stretches.len() - 1) as f64
        };
        let all = (0..1u32 << 7).map(|breaks| {
            let ends: Vec<usize> = (1..8).filter(|at| breaks >> (at - 1) & 1 == 1).chain([8]).collect();
            let begins = [0].into_iter().chain(ends.iter().copied());
            cost(&begins.zip(ends.iter().copied()).collect::<Vec<_>>())
        });
        let least = all.min_by(f64::total_cmp).unwrap();
        let stretches: Vec<(usize, usize)> = course.stretches(price).iter().map(|of| (of.from, of.to)).collect();
        assert!((cost(&stretches) - least).abs() < 1e-9, "{stretches:?}");
    }

    #[test]
    fn a_stretch_returns_its_values() {
        let course = course(&[0, 1, 2, 3, 4, 5, 6, 7, 8].map(|at| 100.0 + 2.0 * f64::from(at)), 3.0);
        let line = course.fitted(2, 9, true);
        assert!((line.at(2.0) - 104.0).abs() < 1e-9 && (line.at(11.5) - 123.0).abs() < 1e-9, "{line:?}");
        let level = course.fitted(0, 9, false);
        assert!((level.at(7.0) - 108.0).abs() < 1e-9 && !level.rises());
    }
}
