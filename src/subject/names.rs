//! Names of cgroups, containers, and Slurm steps, which identify leftovers of a killed Loadline.
//!
//! `loadline-PID-BOOT-NAMESPACE-RANDOM`, such as `loadline-4711-3f2a91c07b5e4d18-4026531836-9c0d41f2a7b3e586`. A pid is
//! unique only within a pid namespace of one boot, and several of these can share a container daemon or a cgroup file
//! system.

use crate::kernel::machine::boot_id;
use rustix::process::test_kill_process;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Followed by Loadline's pid.
const PREFIX: &str = "loadline-";
/// The suffix of the cgroup that Loadline itself moves into; see `limit`.
const HOME: &str = "-home";
/// Digits of the boot ID that distinguish any two boots: 60 random bits.
const BOOT_DIGITS: usize = 16;
/// Used if the kernel does not report the boot or the namespace.
const UNKNOWN: &str = "unknown-0";

/// A globally unique name.
pub(super) fn new() -> String {
    let place = place().unwrap_or_else(|| UNKNOWN.to_owned());
    format!("{PREFIX}{}-{place}-{}", std::process::id(), random())
}

/// The name of the cgroup that this process moves into; constant per process.
pub(super) fn home() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| new() + HOME)
}

/// 16 random hex digits that other users cannot predict.
pub(crate) fn random() -> String {
    // The standard library derives the seed of each such state from the kernel's random numbers.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Whether a Loadline of this boot and pid namespace created the item and is gone.
pub(super) fn is_left_behind(name: &str) -> bool {
    name.starts_with(PREFIX) && place().is_some_and(|place| maker(name, &place).is_some_and(is_gone))
}

/// Like `is_left_behind`, for a cgroup that a Loadline moved into.
pub(super) fn is_home_left_behind(name: &str) -> bool {
    name.strip_suffix(HOME).is_some_and(is_left_behind)
}

/// This boot and this pid namespace: `3f2a91c07b5e4d18-4026531836`.
fn place() -> Option<String> {
    let boot: String = boot_id()?.chars().filter(char::is_ascii_hexdigit).take(BOOT_DIGITS).collect();
    // The link's target is the namespace, whose inode is its number.
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{boot}-{namespace}"))
}

/// The pid of the Loadline that created it, if in this place.
fn maker(name: &str, place: &str) -> Option<i32> {
    let (pid, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let random = rest.strip_prefix(place)?.strip_prefix('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    pid.parse().ok().filter(|pid| is_random && *pid > 0)
}

/// Asks the kernel, because `/proc` can hide other users' processes (`hidepid`).
fn is_gone(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// The name of a leftover in this place, for tests.
#[cfg(test)]
pub(super) fn left_behind() -> String {
    // More than Linux ever assigns (PID_MAX_LIMIT is 4,194,304).
    format!("{PREFIX}999999999-{}-0123456789abcdef", place().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creators_pid_is_known_only_in_its_own_boot_and_namespace() {
        let check = |name: &str, pid| assert_eq!(maker(name, "3f2a-17"), pid, "{name}");
        check("loadline-42-3f2a-17-0123456789abcdef", Some(42));
        check("loadline-42-3f2a-18-0123456789abcdef", None);
        check("loadline-42-3f2b-17-0123456789abcdef", None);
        check("loadline-42-3f2a-17-0123456789abcdef-home", None);
        check("loadline-42-3f2a-17-0", None);
        // Names from earlier releases do not contain a place.
        check("loadline-42-7", None);
        check("loadline-0-3f2a-17-0123456789abcdef", None);
        check("loadline--1-3f2a-17-0123456789abcdef", None);
        check("other", None);
    }

    #[test]
    fn names_are_unique_and_ours_are_not_abandoned() {
        let names = [new(), new()];
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| maker(name, &place().unwrap()) == Some(std::process::id() as i32)));
        assert!(!names.iter().any(|name| is_left_behind(name)));
        assert_eq!(home(), home());
        assert!(!is_home_left_behind(home()) && !is_left_behind(home()));
    }

    #[test]
    fn names_are_abandoned_only_in_the_same_boot_and_namespace() {
        let left = left_behind();
        assert!(is_left_behind(&left) && is_home_left_behind(&format!("{left}-home")));
        let own = place().unwrap();
        let (boot, namespace) = own.split_once('-').unwrap();
        assert!(!is_left_behind(&left.replace(boot, "ffffffffffffffff")));
        assert!(!is_left_behind(&left.replace(namespace, "1")));
        assert!(!is_left_behind("loadline-999999999-0"));
        // Another user's process exists even if it is hidden.
        assert!(!is_gone(1));
    }
}
