//! Runs async-profiler on a JVM and reads its recording: bytes by call site, by owner, at the end and at the peak.
//!
//! This crate must not know a load, a trial or a report. It starts no process: who starts a JVM adds the option that
//! [`agent::Launch`] gives.

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
