//! Traces that a container or JVM leaves behind when it ends, besides the kernel's log: cgroup counters, the JVM's
//! error file, the collector's log, and the container runtime's status. Each is recognized by its form.

mod container;
mod fatal_error;
mod gc_log;
mod memory_events;

use crate::record::Trace;

/// The traces in `text`; `None` for any other text, such as the kernel's log. A pod's status has one per ended
/// container, and possibly none.
pub fn read(text: &str) -> Option<Vec<Trace>> {
    let one = || fatal_error::read(text).or_else(|| memory_events::read(text)).or_else(|| gc_log::read(text));
    container::read(text).or_else(|| one().map(|trace| vec![trace]))
}

#[cfg(test)]
mod tests;
