//! Changes in a metric between the points of a history: steps and linear rises.
//!
//! There are two stages, as for a verdict. First, `segments` places breaks that minimize the noise of the centers. The
//! price of a break is derived from how many breaks chance may produce across all metrics. Then each break is
//! confirmed by comparing the trials on either side, as when comparing archives. A break is kept if the later trials
//! are better or worse. `docs/history.md` has simulation results for both stages.

use super::amounts::least;
use super::differences::{each, estimates_apart};
use super::metrics::median;
use super::verdict::{Scale, judge};
use crate::numbers;
use crate::record::{Better, DifferenceVerdict, LeastRecord, Unit};
use crate::scenario::Compare;
use loadline_stats::centre::Walsh;
use loadline_stats::interval::{Estimate, Resamples, Sample};
use loadline_stats::segments::{Course, Stretch, WeightedPoint};

/// The share of histories that may show a break without a real change, given normal noise, for all metrics together.
const FALSE_SHARE: f64 = 0.05;
/// With at least this many differences between neighbors, they show how much points vary beyond their trials.
const NEIGHBOURS_MIN: usize = 5;
/// Half of all standard normal values are within this distance of 0.
const QUARTILE: f64 = 0.674_49;
/// Standard errors by which two estimates of the same variance may differ.
const BY_CHANCE: f64 = 2.0;
/// A break may also be at any position whose misfit is larger by at most this: 95% of squared standard normal values
/// are smaller.
const ELSEWHERE: f64 = 3.84;
/// Resamples for judged metrics, and for the many metrics that are only displayed.
const RESAMPLES: usize = 10_000;
const RESAMPLES_SHOWN: usize = 500;

/// A metric of a history: its values at each point, in point order.
#[derive(Debug, Clone)]
pub struct Followed<'a> {
    /// Full name.
    pub metric: &'a str,
    /// The unit of the values.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The trials' values at each point; empty if no trial has the metric.
    pub values: &'a [Vec<f64>],
}

/// A change from one point to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Shift {
    /// The first point after the change.
    pub at: usize,
    /// The earliest and latest point that can be the first after the change.
    pub within: (usize, usize),
    /// After minus before, in the metric's unit.
    pub difference: f64,
    /// The ends of its interval.
    pub ends: (f64, f64),
    /// Whether it is better or worse.
    pub verdict: DifferenceVerdict,
    /// The compared points: the first one before the change, the first one after it, and the end of those after it.
    pub compared: [usize; 3],
}

/// A stretch in which a metric rises or falls linearly.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// Its first point.
    pub first: usize,
    /// Its last point.
    pub last: usize,
    /// The change from its first to its last point, in the metric's unit.
    pub difference: f64,
    /// Ends of its interval.
    pub ends: (f64, f64),
    /// Whether it is better or worse.
    pub verdict: DifferenceVerdict,
}

/// The changes of a metric over a history.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moves {
    /// Steps, in order.
    pub shifts: Vec<Shift>,
    /// Linear rises and falls, in order.
    pub trends: Vec<Trend>,
    /// Standard deviation between trials, in the metric's unit; `None` if there are too few trials.
    pub noise: Option<f64>,
}

/// Finds the changes of a metric, one of `family` metrics that are followed together.
pub fn moves(of: &Followed<'_>, family: usize, asked: &Compare, seed: u64) -> Moves {
    // The indices of the points that have values.
    let places: Vec<usize> = (0..of.values.len()).filter(|place| !of.values[*place].is_empty()).collect();
    let values: Vec<&[f64]> = places.iter().map(|place| of.values[*place].as_slice()).collect();
    let centres: Vec<f64> = values.iter().map(|values| centre(values)).collect();
    let Some(noise) = TrialNoise::of(&values, &centres) else { return Moves::default() };
    let weighed = |(values, centre): (&&[f64], &f64)| WeightedPoint {
        value: *centre,
        weight: values.len() as f64 / noise.deviation.powi(2),
    };
    let points: Vec<WeightedPoint> = values.iter().zip(&centres).map(weighed).collect();
    let price = noise.price(values.len(), family);
    let course = Course::of(&points);
    let least = least(of.metric, of.unit, asked);
    let judging = Judging { of, values, course, points, price, least, confidence: asked.confidence, seed };
    let (stretches, shifts, trends) = judging.confirmed();
    let place = |at: usize| places[at];
    let shift = |(at, shift): (usize, Estimated)| {
        let [before, behind] = [&stretches[at], &stretches[at + 1]];
        let within = judging.elsewhere(before, behind);
        Shift {
            at: place(behind.from),
            within: (place(within.0), place(within.1)),
            difference: shift.centre,
            ends: shift.ends,
            verdict: shift.verdict,
            compared: [place(before.from), place(behind.from), place(behind.to - 1) + 1],
        }
    };
    let trend = |(at, trend): (usize, Estimated)| Trend {
        first: place(stretches[at].from),
        last: place(stretches[at].to - 1),
        difference: trend.centre,
        ends: trend.ends,
        verdict: trend.verdict,
    };
    Moves {
        shifts: shifts.into_iter().map(shift).collect(),
        trends: trends.into_iter().map(trend).collect(),
        noise: Some(noise.deviation),
    }
}

/// How much higher values are after a change than before, with an interval at a comparison's confidence. `None` if
/// there are too few values.
pub fn apart(before: &[f64], behind: &[f64], seed: u64) -> Option<(f64, (f64, f64))> {
    let estimate = Resamples::new(seed, RESAMPLES_SHOWN).two_samples(before, behind, Compare::CONFIDENCE)?;
    Some((estimate.centre, estimate.ends?))
}

/// The center of a point's values, with the ends of its interval if there are at least three values.
pub fn centred(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    let mut resamples = Resamples::new(0, RESAMPLES_SHOWN);
    let estimate = resamples.one_sample(Sample::Values, values, Compare::CONFIDENCE)?;
    Some((estimate.centre, estimate.ends))
}

fn centre(values: &[f64]) -> f64 {
    Walsh::of(values).centre()
}

#[derive(Debug, Clone, Copy)]
struct TrialNoise {
    /// The standard deviation of one trial, including the noise shared by the trials of its point.
    deviation: f64,
    /// Its degrees of freedom.
    freedom: f64,
}

impl TrialNoise {
    /// The larger of two spreads: between the trials of a point, and between neighboring points, because days and
    /// machines differ too. The second is a median, so breaks do not affect it.
    fn of(values: &[&[f64]], centres: &[f64]) -> Option<Self> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares = |values: &&[f64]| -> f64 {
            let mean = mean(values);
            values.iter().map(|value| (value - mean).powi(2)).sum()
        };
        let freedom: usize = values.iter().map(|values| values.len() - 1).sum();
        let within = (freedom > 1).then(|| Self {
            deviation: (values.iter().map(squares).sum::<f64>() / freedom as f64).sqrt(),
            freedom: freedom as f64,
        });
        let ends = values.windows(2).zip(centres.windows(2));
        let steps: Vec<f64> = ends
            .map(|(values, centres)| {
                let share = 1.0 / values[0].len() as f64 + 1.0 / values[1].len() as f64;
                (centres[1] - centres[0]).abs() / share.sqrt()
            })
            .collect();
        let between = (steps.len() >= NEIGHBOURS_MIN).then(|| numbers::median(&steps)).flatten();
        // A median counts for about a third of its values: its efficiency is 37%, and neighboring steps share a point.
        let between =
            between.map(|step| Self { deviation: step / QUARTILE, freedom: (steps.len() as f64 / 3.0).max(2.0) });
        let found = match (within, between) {
            (Some(within), Some(between)) => Some(within.with(between)),
            (one, other) => one.or(other),
        }?;
        // Counts might not vary at all. A difference below the precision of a double is not noise.
        let size = centres.iter().fold(0.0f64, |most, centre| most.max(centre.abs()));
        let deviation = found.deviation.max(size * 1e-9).max(f64::MIN_POSITIVE.sqrt());
        deviation.is_finite().then_some(Self { deviation, ..found })
    }

    /// Returns the larger of the two. If neighbors differ only by the noise of trials, both measure the same noise.
    fn with(self, between: Self) -> Self {
        let by_chance = 1.0 + BY_CHANCE * (2.0 / self.freedom + 2.0 / between.freedom).sqrt();
        let ratio = (between.deviation / self.deviation.max(f64::MIN_POSITIVE)).powi(2);
        let freedom = if ratio > by_chance { between.freedom } else { self.freedom + between.freedom };
        Self { deviation: self.deviation.max(between.deviation), freedom }
    }

    /// Returns the price of a break: the minimum reduction of misfit, in squares of the noise. It is a squared normal
    /// value that no position of any metric exceeds by chance, except in [`FALSE_SHARE`] of histories. If the noise is
    /// estimated from few differences, the price is higher, just as Student's t is wider.
    fn price(&self, points: usize, family: usize) -> f64 {
        let chances = (points.max(2) * family.max(1)) as f64;
        let normal = 2.0 * (chances / FALSE_SHARE).ln();
        self.freedom * ((normal / self.freedom).exp() - 1.0)
    }
}

#[derive(Debug, Clone, Copy)]
struct Estimated {
    centre: f64,
    ends: (f64, f64),
    verdict: DifferenceVerdict,
}

struct Judging<'a> {
    of: &'a Followed<'a>,
    values: Vec<&'a [f64]>,
    course: Course,
    points: Vec<WeightedPoint>,
    price: f64,
    least: LeastRecord,
    confidence: f64,
    seed: u64,
}

/// Judged differences, each with the index of its stretch or of the previous one.
type Judged = Vec<(usize, Estimated)>;

impl Judging<'_> {
    /// The stretches that differ from their neighbors, the differences between them, and the rises.
    fn confirmed(&self) -> (Vec<Stretch>, Judged, Judged) {
        let mut stretches = self.course.stretches(self.price);
        let mut resamples = Resamples::new(self.seed, RESAMPLES);
        loop {
            let confidence = each(self.confidence, stretches.len().saturating_sub(1));
            let mut trends = Vec::new();
            let mut levelled = None;
            for (at, stretch) in stretches.iter().enumerate().filter(|(_, stretch)| stretch.rises()) {
                match self.rise(stretch, &mut resamples) {
                    Some(rise) => trends.push((at, rise)),
                    None => levelled = Some(at),
                }
            }
            if let Some(at) = levelled {
                let Stretch { from, to, .. } = stretches[at];
                stretches[at] = self.course.fitted(from, to, false);
                continue;
            }
            let mut shifts = Vec::new();
            // The smallest step among the unconfirmed breaks.
            let mut weakest: Option<(f64, usize)> = None;
            for (at, pair) in stretches.windows(2).enumerate() {
                match self.shift(&pair[0], &pair[1], confidence, &mut resamples) {
                    Some(shift) => shifts.push((at, shift)),
                    // A line may begin or end in a bend without a step.
                    None if pair[0].rises() || pair[1].rises() => {}
                    None => {
                        let step = (pair[1].start - pair[0].start).abs();
                        weakest = Some(weakest.map_or((step, at), |one| if step < one.0 { (step, at) } else { one }));
                    }
                }
            }
            let Some((_, at)) = weakest else { return (stretches, shifts, trends) };
            let joined = self.course.best(stretches[at].from, stretches[at + 1].to, self.price);
            stretches.splice(at..=at + 1, [joined]);
        }
    }

    /// All values of these points, minus the stretch's rise from `place` to each point.
    fn flattened(&self, stretch: &Stretch, place: f64) -> Vec<f64> {
        let flat = |at: usize| {
            let by = stretch.slope * (at as f64 - place);
            self.values[at].iter().map(move |value| value - by)
        };
        stretch.range().flat_map(flat).collect()
    }

    /// Judges the values on either side as in a comparison of archives; `None` if undecided.
    fn judged(&self, before: &[f64], behind: &[f64], confidence: f64, resamples: &mut Resamples) -> Option<Estimated> {
        let (difference, ratio) = estimates_apart(before, behind, confidence, resamples);
        let difference = difference?;
        let medians = [before, behind].map(median);
        let scale = Scale::of(difference, ratio, self.least, medians);
        let verdict = judge(&scale, self.of.better, before.len().min(behind.len()));
        let Estimate { centre, ends } = difference;
        let decided = matches!(verdict, DifferenceVerdict::Better | DifferenceVerdict::Worse);
        ends.filter(|_| decided).map(|ends| Estimated { centre, ends, verdict })
    }

    fn shift(
        &self,
        before: &Stretch,
        behind: &Stretch,
        confidence: f64,
        resamples: &mut Resamples,
    ) -> Option<Estimated> {
        let place = behind.from as f64 - 0.5;
        let [before, behind] = [before, behind].map(|stretch| self.flattened(stretch, place));
        self.judged(&before, &behind, confidence, resamples)
    }

    /// Compares the halves of a stretch. On a line, the halves differ by half as much as the ends.
    fn rise(&self, stretch: &Stretch, resamples: &mut Resamples) -> Option<Estimated> {
        let points = stretch.to - stretch.from;
        let middle = stretch.from + points / 2;
        let all = |from: usize, to: usize| -> Vec<f64> { self.values[from..to].concat() };
        let (before, behind) = (all(stretch.from, middle), all(middle, stretch.to));
        let halves = self.judged(&before, &behind, self.confidence, resamples)?;
        let by = (points - 1) as f64 / (points as f64 / 2.0);
        let (low, high) = halves.ends;
        Some(Estimated { centre: by * halves.centre, ends: (by * low, by * high), ..halves })
    }

    /// The first and last possible position of the break between two stretches.
    fn elsewhere(&self, before: &Stretch, behind: &Stretch) -> (usize, usize) {
        let misfit = |stretch: &Stretch, at: usize| {
            let WeightedPoint { value, weight } = self.points[at];
            weight * (value - stretch.at(at as f64)).powi(2)
        };
        // The extra cost of moving the points in between to the other side.
        let moved = |at: usize| misfit(behind, at) - misfit(before, at);
        let (mut first, mut cost) = (behind.from, 0.0);
        for at in (before.from + 1..behind.from).rev() {
            cost += moved(at);
            if cost <= ELSEWHERE {
                first = at;
            }
        }
        let (mut last, mut cost) = (behind.from, 0.0);
        for at in behind.from..behind.to - 1 {
            cost -= moved(at);
            if cost <= ELSEWHERE {
                last = at + 1;
            }
        }
        (first, last)
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
