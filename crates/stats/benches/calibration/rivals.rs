//! Common trend tests, run on the same lives as the ladder: a least-squares trend with its test, Prometheus'
//! `predict_linear` gated at 70% of the limit, Mann-Kendall, and its form for autocorrelated values (Hamed and Rao
//! 1998). Each judges once an hour. An alarm takes three positive judgments in a row, or two for `predict_linear`.

use crate::lives::Life;
use loadline_base::numbers::median;
use loadline_stats::growth::{DAY, HOUR, fitted, trailing_minima};
use loadline_stats::quantiles::student_beyond;

/// Cells per floor, and floors in a window of 24 h.
const SIZE: usize = 3;
const COUNT: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rival {
    LeastSquares,
    PredictSixHours,
    PredictADay,
    MannKendall,
    HamedRao,
}

pub(crate) const RIVALS: [(Rival, &str); 5] = [
    (Rival::LeastSquares, "least squares, p < 0.001"),
    (Rival::PredictSixHours, "predict_linear 6 h, > 70%"),
    (Rival::PredictADay, "predict_linear 24 h, > 70%"),
    (Rival::MannKendall, "Mann-Kendall"),
    (Rival::HamedRao, "Hamed-Rao"),
];

impl Rival {
    /// The cells after which it raises an alarm.
    pub(crate) fn alarms(self, life: &Life) -> Vec<usize> {
        let minima = trailing_minima(&life.floors, SIZE);
        let needed = if matches!(self, Self::PredictSixHours | Self::PredictADay) { 2 } else { 3 };
        let (mut row, mut alarms) = (0, Vec::new());
        for cells in (HOUR..=life.floors.len()).step_by(HOUR) {
            row = if self.sees(life, &minima, cells) { row + 1 } else { 0 };
            if row >= needed {
                alarms.push(cells);
            }
        }
        alarms
    }

    fn sees(self, life: &Life, minima: &[f64], cells: usize) -> bool {
        match self {
            Self::PredictSixHours => predicts(life, cells, 6 * HOUR, 24 * HOUR),
            Self::PredictADay => predicts(life, cells, DAY, 7 * DAY),
            _ if cells < COUNT * SIZE + SIZE => false,
            Self::LeastSquares => least_squares(life, &window(minima, cells)),
            Self::MannKendall => mann_kendall(life, &window(minima, cells), false),
            Self::HamedRao => mann_kendall(life, &window(minima, cells), true),
        }
    }
}

fn window(minima: &[f64], cells: usize) -> Vec<f64> {
    (0..COUNT).map(|at| minima[cells - 1 - SIZE * (COUNT - 1 - at)]).collect()
}

/// Whether a slope in bytes per hour matters: at least a MiB a day, and in a week, 5% of the limit or the remaining
/// headroom.
fn matters(slope: f64, life: &Life, level: f64) -> bool {
    let week = slope * 168.0;
    slope * 24.0 >= 1024.0 * 1024.0 && (week >= 0.05 * life.limit || week >= life.limit - level)
}

fn least_squares(life: &Life, floors: &[f64]) -> bool {
    let (slope, error) = fitted(floors);
    slope / error > student_beyond(0.001, floors.len() - 2) && matters(slope * 2.0, life, floors[floors.len() - 1])
}

fn predicts(life: &Life, cells: usize, over: usize, ahead: usize) -> bool {
    let Some(begin) = cells.checked_sub(over) else { return false };
    let values = &life.floors[begin..cells];
    let mean = values.iter().sum::<f64>() / over as f64;
    let (slope, _) = fitted(values);
    let end = mean + slope * (over as f64 - 1.0) / 2.0;
    end + slope * ahead as f64 > life.limit && life.floors[cells - 1] > 0.7 * life.limit
}

fn mann_kendall(life: &Life, floors: &[f64], corrected: bool) -> bool {
    let count = floors.len() as f64;
    let mut slopes = Vec::new();
    for (at, early) in floors.iter().enumerate() {
        slopes.extend((1..).zip(&floors[at + 1..]).map(|(gap, late)| (late - early) / f64::from(gap)));
    }
    let slope = median(&slopes).unwrap_or(0.0);
    if !matters(slope * 2.0, life, floors[floors.len() - 1]) {
        return false;
    }
    let mut score = 0.0;
    for (at, early) in floors.iter().enumerate() {
        score += floors[at + 1..]
            .iter()
            .map(|late| (late - early).signum() * f64::from(u8::from(late != early)))
            .sum::<f64>();
    }
    let mut variance = count * (count - 1.0) * (2.0 * count + 5.0) / 18.0;
    if corrected {
        variance *= dependence(floors, slope).max(0.05);
    }
    (score - score.signum()) / variance.sqrt() > 3.09
}

/// The factor by which autocorrelation inflates the variance of the score. It comes from the autocorrelation of the
/// residuals' ranks, counting only what exceeds chance at the 5% level.
fn dependence(floors: &[f64], slope: f64) -> f64 {
    let count = floors.len();
    let left: Vec<f64> = floors.iter().enumerate().map(|(at, floor)| floor - slope * at as f64).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| left[*a].total_cmp(&left[*b]));
    let mut ranks = vec![0.0; count];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank as f64 - (count as f64 - 1.0) / 2.0;
    }
    let with_itself: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let at_lag = |lag: usize| ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum::<f64>() / with_itself;
    let n = count as f64;
    let weight = |lag: usize| {
        let k = lag as f64;
        (n - k) * (n - k - 1.0) * (n - k - 2.0) * 2.0 / (n * (n - 1.0) * (n - 2.0))
    };
    let beyond = |lag: usize| Some(at_lag(lag)).filter(|rho| rho.abs() > 1.96 / n.sqrt()).unwrap_or(0.0);
    1.0 + (1..count - 2).map(|lag| weight(lag) * beyond(lag)).sum::<f64>()
}
