//! Runs this program in a separate process, for work that may need more memory or time than the caller has. The process
//! dies with its caller.

use super::program;
use crate::clock::Clock;
use rustix::process::{Resource, Rlimit, Signal, getppid, setrlimit};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The message that Rust prints when an allocation fails.
const NO_MEMORY: &str = "memory allocation of";

/// Runs this program to completion, or kills it after `within`. Errors: its last line on stderr, or its exit if there
/// is none.
pub(crate) fn run(arguments: &[&str], clock: Clock, within: Duration) -> Result<(), String> {
    let done = program::run(Path::new("/proc/self/exe"), arguments, clock, within);
    let printed = done.map_err(|cause| format!("Loadline cannot start a second copy of itself: {cause}"))?;
    if !printed.is_good() && printed.errors.contains(NO_MEMORY) {
        return Err("it needs more memory than its limit".to_owned());
    }
    printed.good().map(drop)
}

/// Limits the memory of this process, which [`run`] started, makes it the first choice for the OOM killer, and ties it
/// to its caller. Fails if any of these cannot be set.
pub(crate) fn bound(data_bytes: u64) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|parent| parent.is_init()) {
        return Err(io::Error::other("the process that started it has exited"));
    }
    let bound = |bytes: u64| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Data, bound(data_bytes))?;
    setrlimit(Resource::Core, bound(0))?;
    std::fs::write("/proc/self/oom_score_adj", "1000")
}
