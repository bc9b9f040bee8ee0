//! This program once more, in a process of its own: for work that may take more memory or time than its caller has. The
//! process dies with its caller.

use super::program;
use crate::clock::Clock;
use rustix::process::{Resource, Rlimit, Signal, getppid, setrlimit};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The message of Rust before it ends a process that gets no memory.
const NO_MEMORY: &str = "memory allocation of";

/// Runs this program with these arguments to its end, or kills it after `within`.
///
/// # Errors
/// The last line that it printed to stderr, or how it ended without one.
pub(crate) fn run(arguments: &[&str], clock: Clock, within: Duration) -> Result<(), String> {
    let done = program::run(Path::new("/proc/self/exe"), arguments, clock, within);
    let printed = done.map_err(|cause| format!("Loadline cannot be started once more: {cause}"))?;
    if !printed.is_good() && printed.errors.contains(NO_MEMORY) {
        return Err("it takes more memory than it may here".to_owned());
    }
    printed.good().map(drop)
}

/// Bounds this process, which was started by [`run`]: it gets no more memory than this. The kernel ends it first where
/// a cgroup has none left, and it ends with its caller.
///
/// # Errors
/// If one of these cannot be set.
pub(crate) fn bound(data_bytes: u64) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|parent| parent.is_init()) {
        return Err(io::Error::other("whoever started it has ended"));
    }
    let bound = |bytes: u64| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Data, bound(data_bytes))?;
    setrlimit(Resource::Core, bound(0))?;
    std::fs::write("/proc/self/oom_score_adj", "1000")
}
