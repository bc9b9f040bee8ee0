//! Parsers for the text that Linux writes about processes, cgroups, mounts, sockets, and the machine; one per format.
//!
//! Each type parses its text, so tests can use captured text; it also reads it if one file contains it. Callers decide
//! when to read, at what cost, and what the values mean. `observe` reads the memory of a process (`smaps`, `pagemap`,
//! stacks).
//!
//! `private_file` creates and opens files that other users can neither read nor redirect with a link.

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
