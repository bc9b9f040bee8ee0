//! Quantiles of the two distributions used for intervals.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The standard normal cumulative distribution at `z`.
pub fn normal(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Returns the `p`-quantile of the standard normal distribution, with `p` between 0 and 1. In the tails it is accurate
/// to about 10⁻¹¹, however small `p` is.
pub fn normal_inverse(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// How many standard errors an interval with this confidence extends to each side, for an estimate from `values`
/// values: Student's t with `values - 1` degrees of freedom. Infinite for fewer than two values.
pub fn student(confidence: f64, values: usize) -> f64 {
    student_beyond((1.0 - confidence) / 2.0, values.saturating_sub(1))
}

/// The point that Student's t exceeds with probability `chance`. Infinite for 0 degrees of freedom.
pub fn student_beyond(chance: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| -t.inverse_cdf(chance))
}
