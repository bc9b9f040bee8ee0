//! Estimates with their intervals: bias-corrected and accelerated bootstrap, widened as few values demand.
//!
//! A bootstrap from 5 to 20 values is too narrow, and says nothing about what lies beyond its own extremes. Two things
//! are done about it; `docs/compare.md` has what simulations say of the result:
//!
//! - It is asked only for the interval of 80 %, at percentiles expanded as Hesterberg 2015 (section 3.3) proposes:
//!   Φ(−√(n/(n−1)) · t) instead of Φ(−z), which then BCa shifts (Efron and Tibshirani 1993, section 14.3).
//! - Each half of that interval is stretched to the confidence that is wanted as Student's t with n−1 degrees of
//!   freedom grows from 80 % to it.
//!
//! Exchanging the signs of all values mirrors the result exactly: resamples are drawn by place, not by value, and the
//! upper end is computed as the lower end of the mirrored values.

use super::centre::{Pairs, Walsh};
use super::quantiles::{normal, normal_inverse, student};
use super::random::Random;
use std::collections::BTreeMap;

/// What the bootstrap itself is asked: far enough inside its extremes from 5 values on.
const CORE: f64 = 0.80;
/// Below this many values there is no interval: two values say nearly nothing about a third.
pub(super) const VALUES_MIN: usize = 3;
/// Keeps the acceleration from turning the order of percentiles around where one value lies far out.
const DAMPING_MIN: f64 = 0.1;

/// A centre and the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) centre: f64,
    /// `None` below [`VALUES_MIN`] values.
    pub(super) ends: Option<(f64, f64)>,
}

/// Resamples, drawn once for each number of values and used for every metric.
#[derive(Debug)]
pub(super) struct Resamples {
    seed: u64,
    count: usize,
    drawn: BTreeMap<usize, Vec<u16>>,
}

impl Resamples {
    pub(super) fn new(seed: u64, count: usize) -> Self {
        Self { seed, count, drawn: BTreeMap::new() }
    }

    /// How often each of `values` values occurs, resample after resample.
    fn of(&mut self, values: usize) -> &[u16] {
        let (seed, count) = (self.seed, self.count);
        self.drawn.entry(values).or_insert_with(|| {
            let mut random = Random::new(seed, values as u64);
            let mut occurs = vec![0; values * count];
            for resample in occurs.chunks_exact_mut(values.max(1)) {
                for _ in 0..values {
                    resample[random.below(values)] += 1;
                }
            }
            occurs
        })
    }

    /// The centre of values, with its interval. `None` where there are none.
    pub(super) fn one_sample(&mut self, values: &[f64], confidence: f64) -> Option<Estimate> {
        let values = &thinned(values, Walsh::VALUES_MAX);
        let count = values.len();
        if count == 0 {
            return None;
        }
        let walsh = Walsh::of(values);
        let centre = walsh.centre();
        if count < VALUES_MIN {
            return Some(Estimate { centre, ends: None });
        }
        let resampled = self.of(count).chunks_exact(count).map(|occurs| walsh.centre_of(occurs)).collect();
        let without = leave_one_out(count, |occurs| walsh.centre_of(occurs));
        let bootstrap = Bootstrap::new(resampled, centre, acceleration(&[without]), count);
        Some(Estimate { centre, ends: Some(bootstrap.ends(confidence)) })
    }

    /// By how much the candidate's values lie above those of the baseline: the median of all differences between the
    /// two (Hodges and Lehmann 1963), for samples that are not paired. Its degrees of freedom are those of the smaller
    /// sample, which errs to the wide side.
    pub(super) fn two_samples(&mut self, baseline: &[f64], candidate: &[f64], confidence: f64) -> Option<Estimate> {
        let [baseline, candidate] = [baseline, candidate].map(|values| thinned(values, Pairs::VALUES_MAX));
        let (first, second) = (baseline.len(), candidate.len());
        if first == 0 || second == 0 {
            return None;
        }
        let pairs = Pairs::of(&baseline, &candidate);
        let centre = pairs.centre();
        if first.min(second) < VALUES_MIN {
            return Some(Estimate { centre, ends: None });
        }
        // Drawn as one, so that two samples of equal size are not resampled alike.
        let mut random = Random::new(self.seed, (first as u64) << 32 | second as u64);
        let mut draw = |values: usize| {
            let mut occurs = vec![0; values];
            (0..values).for_each(|_| occurs[random.below(values)] += 1);
            occurs
        };
        let resampled = (0..self.count).map(|_| pairs.centre_of(&draw(first), &draw(second))).collect();
        let (ones, others) = (vec![1; first], vec![1; second]);
        let without_first = leave_one_out(first, |occurs| pairs.centre_of(occurs, &others));
        let without_second = leave_one_out(second, |occurs| pairs.centre_of(&ones, occurs));
        let acceleration = acceleration(&[without_first, without_second]);
        let bootstrap = Bootstrap::new(resampled, centre, acceleration, first.min(second));
        Some(Estimate { centre, ends: Some(bootstrap.ends(confidence)) })
    }
}

/// At most `max` values: beyond, neighbours are averaged, so that time and memory are bounded.
fn thinned(values: &[f64], max: usize) -> Vec<f64> {
    let group = values.len().div_ceil(max).max(1);
    values.chunks(group).map(|group| group.iter().sum::<f64>() / group.len() as f64).collect()
}

/// The estimates without each value in turn.
fn leave_one_out(values: usize, centre_of: impl Fn(&[u16]) -> f64) -> Vec<f64> {
    let mut occurs = vec![1; values];
    let mut without = Vec::with_capacity(values);
    for place in 0..values {
        occurs[place] = 0;
        without.push(centre_of(&occurs));
        occurs[place] = 1;
    }
    without
}

/// The acceleration from the jackknife (Efron and Tibshirani 1993, equation 14.15); several samples add their parts,
/// each weighed by its size (section 14, problem 12). 0 where nothing varies.
fn acceleration(without: &[Vec<f64>]) -> f64 {
    let (mut squares, mut cubes) = (0.0, 0.0);
    for estimates in without {
        let count = estimates.len() as f64;
        let mean = estimates.iter().sum::<f64>() / count;
        // With one sample the weights cancel.
        let influences = estimates.iter().map(|estimate| (count - 1.0) * (mean - estimate) / count);
        for influence in influences {
            squares += influence * influence;
            cubes += influence * influence * influence;
        }
    }
    let scale = squares * squares.sqrt();
    if scale > 0.0 { cubes / (6.0 * scale) } else { 0.0 }
}

/// The estimates of all resamples and what is needed to read an interval from them.
struct Bootstrap {
    /// Ascending.
    estimates: Vec<f64>,
    centre: f64,
    /// In standard deviations: where the centre lies among the estimates.
    bias: f64,
    acceleration: f64,
    values: usize,
}

impl Bootstrap {
    fn new(mut estimates: Vec<f64>, centre: f64, acceleration: f64, values: usize) -> Self {
        estimates.sort_unstable_by(f64::total_cmp);
        let below = estimates.partition_point(|estimate| *estimate < centre);
        let above = estimates.len() - estimates.partition_point(|estimate| *estimate <= centre);
        // Estimates equal to the centre count half to each side. From the smaller side, so that mirrored values give
        // the mirrored bias to the last bit.
        let share = |fewer: usize, more: usize| {
            let count = estimates.len() as f64;
            ((count + fewer as f64 - more as f64) / 2.0 / count).max(0.5 / count)
        };
        let bias = match below.cmp(&above) {
            std::cmp::Ordering::Less => normal_inverse(share(below, above)),
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => -normal_inverse(share(above, below)),
        };
        Self { estimates, centre, bias, acceleration, values }
    }

    fn ends(&self, confidence: f64) -> (f64, f64) {
        let core = CORE.min(confidence);
        let stretch = student(confidence, self.values) / student(core, self.values);
        let mirrored = Self {
            estimates: self.estimates.iter().rev().map(|estimate| -estimate).collect(),
            centre: -self.centre,
            bias: -self.bias,
            acceleration: -self.acceleration,
            values: self.values,
        };
        let (down, up) = (self.reach_down(core), mirrored.reach_down(core));
        (self.centre - stretch * down, self.centre + stretch * up)
    }

    /// From the centre to the lower end of the interval of this confidence.
    fn reach_down(&self, confidence: f64) -> f64 {
        let values = self.values as f64;
        let expanded = (values / (values - 1.0)).sqrt() * student(confidence, self.values);
        let from = self.bias - expanded;
        let percentile = normal(self.bias + from / (1.0 - self.acceleration * from).max(DAMPING_MIN));
        (self.centre - self.at(percentile)).max(0.0)
    }

    /// The estimate at this share of all, between two neighbours where it falls there.
    fn at(&self, share: f64) -> f64 {
        let last = self.estimates.len() - 1;
        let place = (share * (self.estimates.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
        let (before, fraction) = (place as usize, place.fract());
        let (low, high) = (self.estimates[before], self.estimates[(before + 1).min(last)]);
        low + fraction * (high - low)
    }
}
