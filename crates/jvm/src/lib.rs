//! Gives each resident page of a running JVM an owner, from outside the JVM: without an agent, JMX, or a restart.
//!
//! `kernel` parses Linux's output, and `observe` reads one data source per file. `account` assigns memory to owners,
//! `owner` names them, and `purpose` classifies threads. `accounting` reads a process in the order that costs it
//! least. This crate must not know about loads, trials, or reports.

pub mod account;
pub mod accounting;
pub mod kernel;
pub mod observe;
pub mod owner;
pub mod purpose;
