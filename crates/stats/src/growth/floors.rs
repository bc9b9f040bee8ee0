//! Floors: the minimum of each cell, and data computed from them once for all windows.

use super::{DAY, HOUR};
use std::collections::VecDeque;

/// The bytes held by one owner, cell by cell.
#[derive(Debug, Clone, Copy)]
pub struct Floors<'a> {
    /// The minimum of each cell in bytes, oldest first. For a heap, the bytes used after the last old-generation
    /// collection. `NaN` if the cell has no sample.
    pub values: &'a [f64],
    /// The JVM's age in cells at the start of `values`.
    pub age: usize,
    /// Number of old-generation collections that ended in each cell, if the value comes from the last collection.
    pub collections: Option<&'a [u32]>,
}

/// Cells after JVM startup that are not judged.
pub(super) const WARM_UP: usize = 3;
/// Number of initial cells for which the daily pattern cannot be removed. Removing it takes three days, each with the
/// half day after it.
pub(super) const SEASONED: usize = 3 * DAY + DAY / 2;
/// Number of past days compared at the same time of day.
const DAYS: usize = 7;

/// The minimum of each cell and the `size - 1` cells before it; infinite if none of them has samples.
pub fn trailing_minima(values: &[f64], size: usize) -> Vec<f64> {
    let mut rising: VecDeque<usize> = VecDeque::with_capacity(size + 1);
    (0..values.len())
        .map(|at| {
            if !values[at].is_nan() {
                while rising.back().is_some_and(|last| values[*last] >= values[at]) {
                    rising.pop_back();
                }
                rising.push_back(at);
            }
            while rising.front().is_some_and(|first| first + size <= at) {
                rising.pop_front();
            }
            rising.front().map_or(f64::INFINITY, |least| values[*least])
        })
        .collect()
}

/// The largest drop of `minima` below an earlier one, up to each cell. Ignores minima before `since`.
pub(super) fn deepest_falls(minima: &[f64], since: usize) -> Vec<f64> {
    let (mut peak, mut deepest) = (f64::NEG_INFINITY, 0.0_f64);
    let fall = |(at, least): (usize, &f64)| {
        if at >= since && least.is_finite() {
            peak = peak.max(*least);
            deepest = deepest.max(peak - least);
        }
        deepest
    };
    minima.iter().enumerate().map(fall).collect()
}

/// Values minus the usual effect of the time of day: the median deviation of the last seven days from their mean. `NaN`
/// before there are three such days. A day's mean is centered, so it is known half a day later. Only earlier days are
/// used, so the result contains no future data.
pub(super) fn deseasoned(values: &[f64]) -> Vec<f64> {
    let deviations = deviations(values);
    let usual = |at: usize| {
        let mut same_time = [0.0; DAYS];
        let mut known = 0;
        for day in 1..=DAYS {
            let Some(before) = at.checked_sub(day * DAY) else { break };
            if !deviations[before].is_nan() {
                same_time[known] = deviations[before];
                known += 1;
            }
        }
        loadline_base::numbers::median(&same_time[..known])
    };
    let flat =
        |at: usize| if at < SEASONED { f64::NAN } else { usual(at).map_or(f64::NAN, |usual| values[at] - usual) };
    (0..values.len()).map(flat).collect()
}

/// The deviation of each value from the mean of the day around it; `NaN` if part of that day is missing.
fn deviations(values: &[f64]) -> Vec<f64> {
    let half = DAY / 2;
    let (mut sum, mut unseen) = (0.0, 0_usize);
    let mut deviations = vec![f64::NAN; values.len()];
    let mut add = |value: f64, sign: f64, unseen: &mut usize| {
        if value.is_nan() {
            *unseen = if sign > 0.0 { *unseen + 1 } else { *unseen - 1 };
        } else {
            sum += sign * value;
        }
        sum
    };
    for end in 0..values.len() {
        let mut total = add(values[end], 1.0, &mut unseen);
        if end >= DAY {
            total = add(values[end - DAY], -1.0, &mut unseen);
        }
        if end + 1 >= DAY && unseen == 0 {
            let middle = end + 1 - half;
            deviations[middle] = values[middle] - total / DAY as f64;
        }
    }
    deviations
}

impl Floors<'_> {
    /// The JVM's age in hours after the first `cells` of these cells, if each lasts ten minutes.
    pub(super) fn age_hours(&self, cells: usize) -> f64 {
        (self.age + cells) as f64 / HOUR as f64
    }
}
