//! Loadline measures a JVM server under load and shows what uses its memory.
//!
//! Modules are listed in data-flow order; `tests/tidy.rs` checks which module may use which.

pub use loadline_base::{bounded, clock, error, locked, numbers, units};
pub use loadline_comparison as comparison;
pub use loadline_diagnosis as diagnosis;
pub use loadline_jvm::{account, kernel, observe, owner};
pub use loadline_load::{self as load, files as tls};
pub use loadline_model::{doubt, record, scenario};
pub use loadline_report as report;
pub use loadline_stats::growth;

pub mod subject;

mod detect;
mod doctor;

pub mod archive;
pub mod fleet;

mod weigh;

mod explain;
pub mod watch;

pub mod trial;

pub mod series;

pub mod result;
pub mod work;

pub mod cli;
