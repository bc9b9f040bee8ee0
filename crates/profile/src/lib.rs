//! Runs async-profiler on a JVM and reads its recording: bytes by call site and owner, at the end and at the peak.
//!
//! This crate must not know about loads, trials, or reports. It starts no processes: callers that start a JVM add the
//! option from [`agent::Launch`].

pub mod agent;
pub mod calls;
mod elf;
mod folder;
mod jfr;
mod ledger;
pub mod library;
pub mod owner;
pub mod recording;
pub mod sites;
pub mod stack;

pub use ledger::Uses;
