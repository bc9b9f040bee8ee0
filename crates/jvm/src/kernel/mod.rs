//! Parsers for the text that Linux writes about processes, cgroups, mounts, sockets and the machine, each format once.
//!
//! A type parses its text, so that captured texts can be tried, and reads it if one file has it. Callers decide when
//! to read, at what cost, and what the values mean. The memory of a process (`smaps`, `pagemap`, stacks) is read by
//! `observe`.
//!
//! `private_file` creates and opens files so that other users cannot read them, or lead them elsewhere by a link.

pub mod cgroup;
pub mod charge;
pub mod cpu_cgroup;
pub mod machine;
pub mod mapping;
pub mod mounts;
pub mod oom;
pub mod oom_report;
pub mod ports;
pub mod private_file;
pub mod process;
pub mod read_ahead;
pub mod slab;
pub mod sockets;
pub mod text;
