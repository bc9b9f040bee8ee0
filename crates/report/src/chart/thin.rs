//! Reduces measured values to the number that a chart can show, without losing peaks.

/// Columns of a chart: about as many as its pixels on a large screen.
pub(crate) const COLUMNS: u32 = 1000;
/// Horizontal positions in a chart: four per column, so that zooming shows more.
pub(crate) const WIDTH: u32 = 4000;

/// A position in a plot: from the left edge in [`WIDTH`] units, from the top in tenths of a pixel.
pub(crate) type Point = (u32, u32);

/// A visually identical line: the first, lowest, highest, and last point of each column, in order. `points` are sorted
/// by x.
pub(crate) fn line(points: &[Point]) -> Vec<Point> {
    let column = |point: &Point| point.0 * COLUMNS / WIDTH;
    let mut kept: Vec<Point> = Vec::new();
    for same in points.chunk_by(|left, right| column(left) == column(right)) {
        let lowest = (0..same.len()).min_by_key(|at| same[*at].1).unwrap_or(0);
        let highest = (0..same.len()).max_by_key(|at| same[*at].1).unwrap_or(0);
        let mut places = vec![0, lowest, highest, same.len() - 1];
        places.sort_unstable();
        places.dedup();
        kept.extend(places.into_iter().map(|at| same[at]));
    }
    kept.dedup();
    straightened(kept)
}

/// Drops points inside horizontal segments.
fn straightened(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        if let [.., first, second] = kept[..]
            && first.1 == second.1
            && second.1 == point.1
            && first.0 <= second.0
            && second.0 <= point.0
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

/// Dots without overlap: one per cell of about a pixel.
pub(crate) fn dots(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = points.map(|(x, y)| (x / 3 * 3, y / 8 * 8)).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// At most `most` evenly spaced values.
pub(crate) fn evenly<T: Copy>(values: &[T], most: usize) -> Vec<T> {
    let every = values.len().div_ceil(most.max(1)).max(1);
    values.iter().step_by(every).copied().collect()
}

/// A run of cells with the same level in a row of a density plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// First column.
    pub(crate) from: u32,
    /// One past the last column.
    pub(crate) to: u32,
    pub(crate) row: u32,
}

/// A density plot: for each level above 0, the runs of cells at that level. Levels are logarithmic, because request
/// counts span powers of ten.
#[derive(Debug, Clone)]
pub(crate) struct Density {
    rows: u32,
    columns: u32,
    counts: Vec<f64>,
}

impl Density {
    pub(crate) fn new(columns: u32, rows: u32) -> Self {
        Self { rows, columns, counts: vec![0.0; columns as usize * rows as usize] }
    }

    /// Spreads `count` evenly over these inclusive ranges of columns and rows.
    pub(crate) fn add(&mut self, (from, to): (u32, u32), (top, bottom): (u32, u32), count: f64) {
        let (to, bottom) = (to.min(self.columns - 1).max(from), bottom.min(self.rows - 1).max(top));
        let share = count / (f64::from(to - from + 1) * f64::from(bottom - top + 1));
        for row in top..=bottom {
            for column in from..=to {
                if let Some(cell) = self.counts.get_mut((row * self.columns + column) as usize) {
                    *cell += share;
                }
            }
        }
    }

    /// The runs of each level, faintest first.
    pub(crate) fn levels(&self, levels: u32) -> Vec<Vec<Stretch>> {
        let largest = self.counts.iter().copied().fold(0.0, f64::max);
        let least = self.counts.iter().copied().filter(|count| *count > 0.0).fold(largest, f64::min);
        // The faintest level includes the rarest cell, so even a single slow response stays visible.
        let span = (largest / least).ln().max(1e-9);
        let level = |count: f64| match count > 0.0 {
            true => 1 + ((count / least).ln() / span * f64::from(levels)).clamp(0.0, f64::from(levels) - 1.0) as u32,
            false => 0,
        };
        let mut found = vec![Vec::new(); levels as usize];
        for row in 0..self.rows {
            let start = (row * self.columns) as usize;
            let cells: Vec<u32> =
                self.counts[start..start + self.columns as usize].iter().map(|count| level(*count)).collect();
            let mut from = 0;
            for same in cells.chunk_by(|left, right| left == right) {
                let to = from + same.len() as u32;
                if same[0] > 0 {
                    found[same[0] as usize - 1].push(Stretch { from, to, row });
                }
                from = to;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_column_keeps_its_ends_and_its_peaks() {
        let points: Vec<Point> = [(0, 50), (0, 10), (1, 90), (2, 60), (3, 55), (400, 7)].to_vec();
        assert_eq!(line(&points), [(0, 50), (0, 10), (1, 90), (3, 55), (400, 7)]);
        let level: Vec<Point> = (0..4000).map(|x| (x, 30)).collect();
        assert_eq!(line(&level), [(0, 30), (3999, 30)]);
    }

    #[test]
    fn stretches_cover_all_counts() {
        let mut density = Density::new(10, 4);
        density.add((0, 4), (1, 1), 500.0);
        density.add((7, 7), (2, 2), 1.0);
        density.add((9, 30), (3, 9), 1.0);
        let levels = density.levels(5);
        assert_eq!(levels[4], [Stretch { from: 0, to: 5, row: 1 }]);
        assert_eq!(levels[0], [Stretch { from: 7, to: 8, row: 2 }, Stretch { from: 9, to: 10, row: 3 }]);
        assert!(Density::new(3, 3).levels(4).iter().all(Vec::is_empty));
    }

    proptest! {
        #[test]
        fn a_thinned_line_is_short_and_keeps_its_extremes(
            ys in prop::collection::vec(0u32..1000, 1..5000)
        ) {
            let points: Vec<Point> =
                ys.iter().enumerate().map(|(at, y)| ((at * 4000 / ys.len()) as u32, *y)).collect();
            let kept = line(&points);
            prop_assert!(kept.len() <= 4 * COLUMNS as usize);
            let extremes = |points: &[Point]| {
                let ys = points.iter().map(|point| point.1);
                (ys.clone().min(), ys.max(), points.first().copied(), points.last().copied())
            };
            prop_assert_eq!(extremes(&kept), extremes(&points));
            prop_assert!(kept.is_sorted_by_key(|point| point.0));
        }

        #[test]
        fn a_density_shows_every_occupied_cell(
            cells in prop::collection::vec((0u32..40, 0u32..20, 1u32..1000), 1..50),
        ) {
            let mut density = Density::new(40, 20);
            for (column, row, count) in &cells {
                density.add((*column, *column), (*row, *row), f64::from(*count));
            }
            let shown: u32 = density.levels(5).iter().flatten().map(|stretch| stretch.to - stretch.from).sum();
            let mut places: Vec<_> = cells.iter().map(|cell| (cell.0, cell.1)).collect();
            places.sort_unstable();
            places.dedup();
            prop_assert_eq!(shown as usize, places.len());
        }
    }
}
