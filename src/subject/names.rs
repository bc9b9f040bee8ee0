//! Names of what Loadline makes and a Loadline that was killed may leave behind: cgroups, containers, steps of Slurm.

use super::processes::Process;
use std::sync::atomic::{AtomicU32, Ordering};

/// How they begin; Loadline's pid and a number follow.
const PREFIX: &str = "loadline-";

/// A name that nothing else on this machine has.
pub(super) fn new() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{PREFIX}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Whether the Loadline that made what has this name is gone.
pub(super) fn is_left_behind(name: &str) -> bool {
    maker(name).is_some_and(|pid| Process::read(pid).is_none())
}

/// The pid of the Loadline that made it.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let names = ["loadline-42-7", "loadline-x-1", "other", "loadline-", "loadline-7"];
        assert_eq!(names.map(maker), [Some(42), None, None, None, Some(7)]);
    }

    #[test]
    fn no_two_are_alike_and_ours_are_not_left_behind() {
        let names = [new(), new()];
        assert_ne!(names[0], names[1]);
        assert!(!names.iter().any(|name| is_left_behind(name)));
        // One more than Linux ever gives (PID_MAX_LIMIT is 4,194,304).
        assert!(is_left_behind("loadline-999999999-0"));
    }
}
