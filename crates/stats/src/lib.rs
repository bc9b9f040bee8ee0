//! Numbers in, verdicts out: intervals, change points and growth. Pure, and seeded where chance is used.
//!
//! This crate must not know a metric, a trial or a file.

pub mod centre;
pub mod growth;
pub mod interval;
pub mod quantiles;
pub mod random;
pub mod segments;
