//! The traces that a container or a JVM leaves when it ends, beside the kernel's log: counts of its cgroup, the JVM's
//! error file, the log of its collector, the status that a container runtime keeps. A text is known by its form.

mod container;
mod fatal_error;
mod gc_log;
mod memory_events;

use crate::record::Trace;

/// The traces in a text; `None` for any other text, such as the kernel's log. The status of a pod has one for each
/// container that ended, so it may have none.
pub fn read(text: &str) -> Option<Vec<Trace>> {
    let one = || fatal_error::read(text).or_else(|| memory_events::read(text)).or_else(|| gc_log::read(text));
    container::read(text).or_else(|| one().map(|trace| vec![trace]))
}

#[cfg(test)]
mod tests;
