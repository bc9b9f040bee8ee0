//! The ladder of windows, from two hours to twenty-five days, and the judgment over all of them. The constants were
//! chosen on simulated lives (`lives`). `docs/watch.md` shows the effect of each constant.

use super::floors::{SEASONED, WARM_UP, deepest_falls, deseasoned, trailing_minima};
use super::precedent::{Precedent, Told};
use super::window::{FLOORS_MAX, Halves, Window, median_slope};
use super::{DAY, Floors, Growth, HOUR, Hint, Judgement, Projection, STEP, Unsure, Verdict};
use crate::quantiles::{normal, student_beyond};

/// Cells per floor, and floors per window: 2, 4, 8, 16, 24, 48, and 72 hours, then five to twenty-five days.
pub(super) const RUNGS: [(usize, usize); 15] = [
    (1, 12),
    (2, 12),
    (4, 12),
    (8, 12),
    (12, 12),
    (24, 12),
    (36, 12),
    (DAY, 5),
    (DAY, 6),
    (DAY, 8),
    (DAY, 10),
    (DAY, 12),
    (DAY, 15),
    (DAY, 20),
    (DAY, 25),
];
/// The minimum trend, in standard normal deviations. Student's t requires more, depending on the number of floors.
const TREND: f64 = 3.5;
/// The same for the steps. Steps between days need more, because several deployments may look like a staircase by
/// chance.
const STEPS: f64 = 2.0;
const STEPS_OF_DAYS: f64 = 3.0;
/// A rise must exceed the largest drop on record by this factor.
const FALL: f64 = 1.5;
/// The minimum slope of a window's later half, relative to the earlier one, if the limit is near.
const BEND: f64 = 0.7;
/// The belief in a rise if no earlier life is known for comparison.
const BY_ITSELF: Belief = Belief { near: 0.6, straight: 3.0, errors: 1.5, steepening: 1.0 };
/// The same if an earlier life shows that this is not a fill.
const TOLD: Belief = Belief { near: 1.0, straight: 5.0, errors: 1.25, steepening: 1.5 };
/// The minimum rise in bytes per day that is considered.
const LEAST_A_DAY: f64 = 1024.0 * 1024.0;
/// The rise that matters: this share of the limit within a week, or reaching the limit.
const SHARE_A_WEEK: f64 = 0.05;
/// Old-generation collections that a window needs, if its floors come from them.
const COLLECTIONS: u32 = 4;
/// No window begins before this share of the age: a young JVM may still be filling.
const YOUNG: f64 = 0.1;
/// Number of consecutive judgements for an alarm or a hint.
const IN_A_ROW: usize = 3;

/// How far a rise is extrapolated. There are two ways to accept it. In the first, the limit is near and the later half
/// is about as steep as the earlier one. In the second, even the fill that bends as much as the floors allow exceeds
/// the limit, and the rise did not begin within the window.
#[derive(Debug, Clone, Copy)]
struct Belief {
    /// Maximum distance of the limit in windows: for a rise that does not bend much, and for a straight one.
    near: f64,
    straight: f64,
    /// Standard errors by which a fill may bend more than the floors did.
    errors: f64,
    /// Standard errors by which the later half may be steeper. Beyond that, the rise began within the window.
    steepening: f64,
}

impl Belief {
    /// Whether a window of `cells` cells shows that `bytes` more will follow, at a rate that needs `rest` cells.
    fn holds(&self, halves: &Halves, cells: usize, bytes: f64, rest: f64) -> bool {
        let windows = rest / cells as f64;
        let straight = || halves.steepening() <= self.steepening && halves.fill(self.errors).until(bytes).is_some();
        windows <= self.near && halves.bend() >= BEND || windows <= self.straight && straight()
    }
}

/// The rungs with their requirements; built once.
#[derive(Debug, Clone)]
pub struct Ladder {
    rungs: Vec<Rung>,
}

#[derive(Debug, Clone, Copy)]
struct Rung {
    size: usize,
    count: usize,
    /// Student's t with `count - 2` degrees of freedom at the tails of [`TREND`], of the steps, and of 95%.
    trend: f64,
    steps: f64,
    interval: f64,
}

impl Rung {
    fn new((size, count): (usize, usize)) -> Self {
        let beyond = |tail: f64| student_beyond(tail, count - 2);
        let steps = if size >= DAY { STEPS_OF_DAYS } else { STEPS };
        Self { size, count, trend: beyond(normal(-TREND)), steps: beyond(normal(-steps)), interval: beyond(0.025) }
    }

    fn cells(&self) -> usize {
        self.size * self.count
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Self { rungs: RUNGS.into_iter().map(Rung::new).collect() }
    }
}

impl Ladder {
    /// Computes the data of these floors that every window needs at every moment.
    pub fn over<'a>(&'a self, floors: Floors<'a>, precedent: Option<&'a Precedent>) -> Judge<'a> {
        let count = floors.values.len();
        let season = if count > SEASONED { deseasoned(floors.values) } else { Vec::new() };
        let mut sizes: Vec<usize> = self.rungs.iter().map(|rung| rung.size).collect();
        sizes.dedup();
        let grain = |size: usize| {
            let since = (WARM_UP + size).saturating_sub(floors.age);
            let raw = Grain::new(floors.values, size, since);
            let flat = (size < DAY && !season.is_empty()).then(|| Grain::new(&season, size, SEASONED + size));
            (size, raw, flat)
        };
        let collected = floors.collections.map(|each| {
            let mut sum = 0;
            each.iter().map(|ended| (sum += ended, sum).1).collect()
        });
        Judge { ladder: self, floors, precedent, grains: sizes.into_iter().map(grain).collect(), collected }
    }
}

/// Floors of one size at every cell, and the largest drop up to that cell.
#[derive(Debug)]
struct Grain {
    minima: Vec<f64>,
    falls: Vec<f64>,
}

impl Grain {
    fn new(values: &[f64], size: usize, since: usize) -> Self {
        let minima = trailing_minima(values, size);
        let falls = deepest_falls(&minima, since);
        Self { minima, falls }
    }
}

/// Floors that can be judged as of any moment in their past.
#[derive(Debug)]
pub struct Judge<'a> {
    ladder: &'a Ladder,
    floors: Floors<'a>,
    precedent: Option<&'a Precedent>,
    grains: Vec<(usize, Grain, Option<Grain>)>,
    /// Collections up to each cell.
    collected: Option<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    growth: Option<Growth>,
    rise: Option<Hint>,
    steady: bool,
    windows: usize,
    /// Collections in the longest window, if they were too few.
    rare: Option<u32>,
    /// The range of the longest window's floors.
    span: f64,
}

impl Judge<'_> {
    /// The judgment after the first `cells` cells, for a limit in bytes.
    pub fn at(&self, cells: usize, limit: f64) -> Judgement {
        let cells = cells.min(self.floors.values.len());
        let now = self.moment(cells, limit);
        // Growth implies a rise, so earlier moments are computed only if there is one.
        let before = |steps: usize| Some(self.moment(now.rise.and(cells.checked_sub(steps * STEP))?, limit));
        let before: [Option<Moment>; IN_A_ROW - 1] = std::array::from_fn(|at| before(at + 1));
        let row = |seen: fn(&Moment) -> bool| before.iter().all(|moment| moment.as_ref().is_some_and(seen));
        let growth = now.growth.filter(|_| row(|moment| moment.growth.is_some()));
        let hint = now.rise.filter(|_| row(|moment| moment.rise.is_some()));
        let age = self.floors.age_hours(cells);
        let verdict = match (growth, now.steady, now.rise) {
            (Some(_), _, _) => Verdict::Grows,
            (None, true, _) => Verdict::Steady,
            (None, false, Some(_)) => Verdict::Warming,
            (None, false, None) if age < 4.0 => Verdict::Warming,
            (None, false, None) => Verdict::CannotTell,
        };
        let why = || match now.rare {
            Some(seen) => Unsure::Collections { seen, needed: COLLECTIONS },
            None if cells < DAY => self.young(cells),
            None if now.windows == 0 => Unsure::Gaps,
            None => Unsure::Moves { bytes: now.span },
        };
        let unsure = match verdict {
            Verdict::CannotTell => Some(why()),
            Verdict::Warming if now.rise.is_none() => Some(self.young(cells)),
            Verdict::Warming | Verdict::Steady | Verdict::Grows => None,
        };
        Judgement { verdict, growth, hint, unsure }
    }

    /// The cells seen and the cells needed: the shortest window three times in a row, and a window of a day. Neither
    /// begins in the warm-up or the first tenth of the life.
    fn young(&self, seen: usize) -> Unsure {
        let age = self.floors.age;
        let (size, count) = RUNGS[0];
        let grows = size * count + (IN_A_ROW - 1) * STEP + WARM_UP.saturating_sub(age);
        let tenth = (DAY as f64 / (1.0 - YOUNG)).ceil() as usize;
        Unsure::Young { seen, grows, steady: tenth.saturating_sub(age).max(DAY) }
    }

    fn moment(&self, cells: usize, limit: f64) -> Moment {
        let mut moment = Moment::default();
        for rung in &self.ladder.rungs {
            self.look(rung, cells, limit, &mut moment);
        }
        moment
    }

    /// Adds the result of one window, unless the JVM or its history is too young for it.
    fn look(&self, rung: &Rung, cells: usize, limit: f64, moment: &mut Moment) {
        let Some(begin) = self.begin(rung, cells) else { return };
        if let Some(collected) = &self.collected {
            let seen = collected[cells - 1] - begin.checked_sub(1).map_or(0, |before| collected[before]);
            if seen < COLLECTIONS {
                moment.rare = Some(seen);
                return;
            }
        }
        let Some((grain, floors)) = self.floors_of(rung, begin) else { return };
        let floors = &floors[..rung.count];
        moment.rare = None;
        moment.windows += 1;
        let window = Window::of(floors);
        let size = rung.size as f64;
        let slope = median_slope(floors) / size;
        let error = window.error / size;
        let (low, high) = (slope - rung.interval * error, slope + rung.interval * error);
        let spread = |pick: fn(f64, f64) -> f64, from: f64| floors.iter().copied().fold(from, pick);
        moment.span = spread(f64::max, f64::NEG_INFINITY) - spread(f64::min, f64::INFINITY);
        if rung.cells() >= DAY && self.floors.age_hours(cells) >= 24.0 && !matters(high, limit, window.last) {
            moment.steady = true;
        }
        if window.trend < rung.trend || window.steps < rung.steps || slope * (DAY as f64) < LEAST_A_DAY {
            return;
        }
        let room = (limit - window.last).max(0.0);
        let rest = room / slope;
        let [slope, low, high] = [slope, low, high].map(|a_cell| a_cell * HOUR as f64);
        moment.rise = Some(Hint { slope, low, high, window: rung.cells(), rest });
        let belief = self.belief(rung, &window, cells);
        if window.rise() >= FALL * grain.falls[cells - 1] && belief.holds(&window.halves, rung.cells(), room, rest) {
            let whole_days = rung.cells() >= DAY;
            let fill = whole_days.then(|| window.halves.fill(BY_ITSELF.errors).in_cells(size));
            let a_cell = (low / HOUR as f64, high / HOUR as f64);
            let projection = Projection::of(&self.floors, cells, limit, a_cell, fill);
            moment.growth = Some(Growth { slope, low, high, window: rung.cells(), projection });
        }
    }

    /// Returns the belief in this rise that the earlier life allows.
    fn belief(&self, rung: &Rung, window: &Window, cells: usize) -> Belief {
        let tells = |precedent: &Precedent| precedent.tells(window.rise(), rung.cells(), self.floors.age + cells);
        match self.precedent.map(tells) {
            Some(Told::Never) => TOLD,
            Some(Told::Rose | Told::TooYoung) | None => BY_ITSELF,
        }
    }

    /// Returns the window's first cell among the floors; the warm-up is never inside it.
    fn begin(&self, rung: &Rung, cells: usize) -> Option<usize> {
        let begin = cells.checked_sub(rung.cells())?;
        let age = self.floors.age;
        let young = WARM_UP.max((YOUNG * (age + cells) as f64).ceil() as usize);
        (begin + age >= young).then_some(begin)
    }

    /// The window's floors, without the daily pattern if it can be removed from all of them. `None` if a floor is
    /// missing.
    fn floors_of(&self, rung: &Rung, begin: usize) -> Option<(&Grain, [f64; FLOORS_MAX])> {
        let (_, raw, flat) = self.grains.iter().find(|(size, ..)| *size == rung.size)?;
        let flat = flat.as_ref().filter(|_| begin >= SEASONED);
        let of = |grain: &Grain| {
            let mut floors = [0.0; FLOORS_MAX];
            for (at, floor) in floors[..rung.count].iter_mut().enumerate() {
                *floor = grain.minima[begin + (at + 1) * rung.size - 1];
            }
            floors[..rung.count].iter().all(|floor| floor.is_finite()).then_some(floors)
        };
        flat.and_then(|grain| Some((grain, of(grain)?))).or_else(|| Some((raw, of(raw)?)))
    }
}

/// Whether a slope in bytes per cell matters. It must amount to at least a MiB per day and, within a week, reach a
/// share of the limit or all of the remaining headroom.
fn matters(slope: f64, limit: f64, level: f64) -> bool {
    let week = slope * (7 * DAY) as f64;
    slope * DAY as f64 >= LEAST_A_DAY && (week >= SHARE_A_WEEK * limit || week >= limit - level)
}
