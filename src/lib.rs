//! Loadline weighs a JVM server under load and says where every megabyte sits.
//!
//! The modules stand in the order of the data; `tests/tidy.rs` holds who may use whom.

pub mod bounded;
pub mod clock;
pub mod doubt;
pub mod error;
pub mod kernel;
pub mod numbers;
pub mod owner;
pub mod tls;
pub mod units;

pub mod scenario;

pub mod load;
pub mod observe;
pub mod subject;

pub mod beginning;

pub mod account;
pub mod doctor;
pub mod record;
pub mod remedy;

pub mod growth;

pub mod archive;
pub mod comparison;
pub mod findings;
pub mod fleet;

pub mod weigh;

pub mod watch;

pub mod trial;

pub mod series;

pub mod result;

pub mod work;

pub mod report;

pub mod cli;

#[cfg(test)]
mod schemas;
#[cfg(test)]
#[path = "../tests/shared/skipping.rs"]
mod skipping;
#[cfg(test)]
mod whole_entries;
#[cfg(test)]
mod whole_fleets;
#[cfg(test)]
mod whole_runs;
