//! Gives each resident page of a running JVM an owner, from outside: without an agent, JMX or a restart.
//!
//! `kernel` parses what Linux writes, `observe` reads one source of truth per file, `account` adds sources up to
//! owners, `owner` names them, `purpose` says what a thread is for, and `accounting` reads a process in the order that
//! costs it least. This crate must not know a load, a trial or a report.

pub mod account;
pub mod accounting;
pub mod kernel;
pub mod observe;
pub mod owner;
pub mod purpose;
