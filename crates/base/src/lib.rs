//! Basic types for Loadline's crates: sizes and spans, errors, the clock, seeded random numbers, bounded reading.
//!
//! This crate must not know about JVMs, loads, or results. Only `bounded`, `clock`, and `locked` do I/O.

pub mod bounded;
pub mod clock;
pub mod error;
pub mod java_names;
pub mod locked;
mod named;
pub mod numbers;
pub mod order;
mod schema;
pub mod units;
