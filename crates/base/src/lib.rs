//! The vocabulary of Loadline's crates: sizes and spans, errors, the clock, seeded random numbers, bounded reading.
//!
//! This crate must not know a JVM, a load or a result. Only `bounded`, `clock` and `locked` touch the world.

pub mod bounded;
pub mod clock;
pub mod error;
pub mod java_names;
pub mod locked;
pub mod numbers;
pub mod order;
mod schema;
pub mod units;
