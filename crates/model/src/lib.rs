//! The data types shared by all of Loadline: scenarios and settings, trial plans, records of measurements, and doubts,
//! with their JSON or YAML forms.
//!
//! This crate does no I/O: it reads no files, starts no processes, and uses no clock.

use loadline_base::{error, units};
use loadline_jvm::observe;
use loadline_load as load;
use loadline_stats::growth;

pub mod doubt;
pub mod record;
pub mod scenario;

#[cfg(test)]
mod schemas;
