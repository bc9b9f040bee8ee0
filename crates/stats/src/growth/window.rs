//! One window: a few equidistant floors, and their trend.

/// Maximum number of floors in a window.
pub(super) const FLOORS_MAX: usize = 25;

/// The statistics of a window's floors, in bytes and per step between two of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The least-squares slope over its standard error: the trend compared to the scatter.
    pub(super) trend: f64,
    /// The mean step between neighbors over its standard error: are the steps similar?
    pub(super) steps: f64,
    /// How straight the floors are.
    pub(super) halves: Halves,
    /// The larger of the slope's two standard errors.
    pub(super) error: f64,
    pub(super) first: f64,
    pub(super) last: f64,
}

/// Both halves of a window, which share two of its floors. A fill is less steep in the later half.
#[derive(Debug, Clone, Copy)]
pub(super) struct Halves {
    /// The least-squares slopes of the halves and of the whole window.
    early: f64,
    late: f64,
    slope: f64,
    /// The standard error of the difference between the halves.
    error: f64,
    /// Distances between the centers of the halves, and from the first floor to the last.
    apart: f64,
    length: f64,
}

/// An exponential approach to a final level, seen from the end of a window; a straight line has an infinite constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fill {
    pub(super) slope: f64,
    pub(super) constant: f64,
}

impl Window {
    /// Computes the window of at least five floors, oldest first.
    pub(super) fn of(floors: &[f64]) -> Self {
        let count = floors.len();
        let (slope, fit_error) = fitted(floors);
        let mean_step = (floors[count - 1] - floors[0]) / (count - 1) as f64;
        let squares: f64 = floors.windows(2).map(|pair| (pair[1] - pair[0] - mean_step).powi(2)).sum();
        let step_error = (squares / (count - 2) as f64).sqrt() / ((count - 1) as f64).sqrt() + LEAST;
        let half = count / 2 + 1;
        // Both errors are larger in a half, because it has less spread and fewer steps.
        let by_fit = fit_error * (spread(count) / spread(half)).sqrt();
        let by_steps = step_error * ((count - 1) as f64 / (half - 1) as f64).sqrt();
        let halves = Halves {
            early: moment(&floors[..half]) / spread(half),
            late: moment(&floors[count - half..]) / spread(half),
            slope,
            error: by_fit.max(by_steps) * std::f64::consts::SQRT_2,
            apart: (count - half) as f64,
            length: (count - 1) as f64,
        };
        Self {
            trend: slope / fit_error,
            steps: mean_step / step_error,
            halves,
            error: fit_error.max(step_error),
            first: floors[0],
            last: floors[count - 1],
        }
    }

    pub(super) fn rise(&self) -> f64 {
        self.last - self.first
    }
}

impl Halves {
    /// The slope of the later half over that of the earlier one.
    pub(super) fn bend(&self) -> f64 {
        self.late / self.early.max(LEAST)
    }

    /// How much steeper the later half is, in standard errors. A rise that began within the window makes it steeper.
    pub(super) fn steepening(&self) -> f64 {
        (self.late - self.early) / self.error
    }

    /// The fill that bends as much as these floors allow within `errors` standard errors.
    pub(super) fn fill(&self, errors: f64) -> Fill {
        let steepens = self.late - self.early - errors * self.error;
        let ratio = (self.slope + steepens / 2.0) / (self.slope - steepens / 2.0);
        if steepens >= 0.0 {
            return Fill { slope: self.slope, constant: f64::INFINITY };
        }
        if ratio <= 0.0 {
            return Fill { slope: 0.0, constant: LEAST };
        }
        let constant = self.apart / -ratio.ln();
        Fill { slope: self.slope * (-self.length / 2.0 / constant).exp(), constant }
    }
}

impl Fill {
    /// The same fill in cells, with floors `size` cells apart.
    pub(super) fn in_cells(self, size: f64) -> Self {
        Self { slope: self.slope / size, constant: self.constant * size }
    }

    /// Time until the fill has risen by another `bytes`; `None` if it levels off first.
    pub(super) fn until(&self, bytes: f64) -> Option<f64> {
        let share = bytes / (self.slope * self.constant);
        let straight = self.constant.is_infinite();
        if straight { Some(bytes / self.slope) } else { (share < 1.0).then(|| -self.constant * (1.0 - share).ln()) }
    }
}

/// Avoids a division by 0 if memory never moved: a millionth of a byte.
const LEAST: f64 = 1e-6;

/// The least-squares slope, and its standard error.
pub fn fitted(floors: &[f64]) -> (f64, f64) {
    let count = floors.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = floors.iter().sum::<f64>() / count;
    let spread = spread(floors.len());
    let slope = moment(floors) / spread;
    let residual = |(at, floor): (usize, &f64)| (floor - mean - slope * (at as f64 - middle)).powi(2);
    let residuals: f64 = floors.iter().enumerate().map(residual).sum();
    (slope, (residuals / (count - 2.0) / spread).sqrt() + LEAST)
}

/// The sum of the squared distances from the middle.
fn spread(count: usize) -> f64 {
    let count = count as f64;
    count * (count * count - 1.0) / 12.0
}

/// The sum of floors times their distance from the middle. The least-squares slope is proportional to it.
fn moment(floors: &[f64]) -> f64 {
    let middle = (floors.len() as f64 - 1.0) / 2.0;
    floors.iter().enumerate().map(|(at, floor)| (at as f64 - middle) * floor).sum()
}

/// The median slope between two floors (Theil 1950, Sen 1968), per step. Uses only the first 25 floors; `NaN` for fewer
/// than two.
pub fn median_slope(floors: &[f64]) -> f64 {
    let mut slopes = [0.0; FLOORS_MAX * (FLOORS_MAX - 1) / 2];
    let floors = &floors[..floors.len().min(FLOORS_MAX)];
    let mut pairs = 0;
    for (at, early) in floors.iter().enumerate() {
        for (gap, late) in (1..).zip(&floors[at + 1..]) {
            slopes[pairs] = (late - early) / f64::from(gap);
            pairs += 1;
        }
    }
    if pairs == 0 { f64::NAN } else { middle(&mut slopes[..pairs]) }
}

/// The median; reorders the values.
fn middle(values: &mut [f64]) -> f64 {
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if odd { *upper } else { f64::midpoint(below.iter().copied().fold(f64::NEG_INFINITY, f64::max), *upper) }
}
