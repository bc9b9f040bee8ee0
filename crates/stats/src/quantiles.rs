//! Quantiles of the two distributions that intervals are built from.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The standard normal distribution at `z`.
pub fn normal(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Returns the point at which the standard normal distribution reaches `p`, which lies between 0 and 1. In the tails it
/// is exact to about 10⁻¹¹, however small `p` is.
pub fn normal_inverse(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// How many standard errors to each side an interval of this confidence reaches, for an estimate from `values`
/// values: Student's t with one degree of freedom less. Infinite below two values.
pub fn student(confidence: f64, values: usize) -> f64 {
    student_beyond((1.0 - confidence) / 2.0, values.saturating_sub(1))
}

/// The point that Student's t with so many degrees of freedom exceeds with this chance. Infinite without any freedom.
pub fn student_beyond(chance: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| -t.inverse_cdf(chance))
}
