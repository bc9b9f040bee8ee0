//! Quantiles of the two distributions that intervals are built from.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The standard normal distribution at `z`.
pub fn normal(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Returns the point at which the standard normal distribution reaches `p`, which lies between 0 and 1. For a tail it
/// is exact to about 10⁻¹¹ however small `p` is.
pub fn normal_inverse(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// How many standard errors to each side an interval of this confidence reaches, for an estimate from `values`
/// values: Student's t with one degree of freedom less. Infinite below two values.
pub fn student(confidence: f64, values: usize) -> f64 {
    let freedom = values.saturating_sub(1) as f64;
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(t) => -t.inverse_cdf((1.0 - confidence) / 2.0),
        Err(_) => f64::INFINITY,
    }
}
