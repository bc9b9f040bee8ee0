//! The values that all of Loadline speaks of: scenarios and their settings, plans of trials, records of measurements,
//! and doubts about it, each with the JSON or YAML in which it is kept.
//!
//! This crate only computes: it must not read a file, start a process, or look at a clock.

use loadline_base::{error, units};
use loadline_jvm::observe;
use loadline_load as load;
use loadline_stats::growth;

pub mod doubt;
pub mod record;
pub mod scenario;

#[cfg(test)]
mod schemas;
