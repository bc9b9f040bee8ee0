//! Takes numbers and returns verdicts: intervals, change points, and growth. Pure; any randomness is seeded.
//!
//! This crate must not know about metrics, trials, or files.

pub mod centre;
pub mod growth;
pub mod interval;
pub mod quantiles;
pub mod random;
pub mod segments;
