//! Names of what Loadline makes and a Loadline that was killed may leave behind: cgroups, containers, steps of Slurm.
//!
//! `loadline-PID-BOOT-NAMESPACE-RANDOM`, such as `loadline-4711-3f2a91c07b5e4d18-4026531836-9c0d41f2a7b3e586`. A pid
//! names a process only within one pid namespace of one boot, and several of them may share a daemon of containers or a
//! cgroup file system.

use crate::kernel::machine::boot_id;
use rustix::process::test_kill_process;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// How they begin; Loadline's pid follows.
const PREFIX: &str = "loadline-";
/// How the name of the cgroup ends that Loadline itself moves into; see `limit`.
const HOME: &str = "-home";
/// So many digits of a boot's name tell any two boots apart: they are 60 random bits.
const BOOT_DIGITS: usize = 16;
/// If the kernel does not say which boot or which namespace this is.
const UNKNOWN: &str = "unknown-0";

/// A name that nothing else has, here or on another machine.
pub(super) fn new() -> String {
    let place = place().unwrap_or_else(|| UNKNOWN.to_owned());
    format!("{PREFIX}{}-{place}-{}", std::process::id(), random())
}

/// The name of the cgroup that this process moves into, the same each time.
pub(super) fn home() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| new() + HOME)
}

/// 16 random hexadecimal digits, which another user cannot foresee.
pub(crate) fn random() -> String {
    // The standard library keys each such state with numbers that the kernel drew.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Whether a Loadline of this boot and this pid namespace made what has this name, and is gone.
pub(super) fn is_left_behind(name: &str) -> bool {
    name.starts_with(PREFIX) && place().is_some_and(|place| maker(name, &place).is_some_and(is_gone))
}

/// The same of a cgroup that a Loadline moved into.
pub(super) fn is_home_left_behind(name: &str) -> bool {
    name.strip_suffix(HOME).is_some_and(is_left_behind)
}

/// This boot and this pid namespace: `3f2a91c07b5e4d18-4026531836`.
fn place() -> Option<String> {
    let boot: String = boot_id()?.chars().filter(char::is_ascii_hexdigit).take(BOOT_DIGITS).collect();
    // The number of the namespace itself, to which the link leads.
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{boot}-{namespace}"))
}

/// The pid of the Loadline that made it, where it was made in this place.
fn maker(name: &str, place: &str) -> Option<i32> {
    let (pid, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let random = rest.strip_prefix(place)?.strip_prefix('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    pid.parse().ok().filter(|pid| is_random && *pid > 0)
}

/// The kernel is asked and not `/proc`, which may hide the processes of others (`hidepid`).
fn is_gone(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// The name of what a Loadline of this place made and left behind, for tests.
#[cfg(test)]
pub(super) fn left_behind() -> String {
    // One more than Linux ever gives (PID_MAX_LIMIT is 4,194,304).
    format!("{PREFIX}999999999-{}-0123456789abcdef", place().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maker_is_known_in_its_own_place_only() {
        let check = |name: &str, pid| assert_eq!(maker(name, "3f2a-17"), pid, "{name}");
        check("loadline-42-3f2a-17-0123456789abcdef", Some(42));
        check("loadline-42-3f2a-18-0123456789abcdef", None);
        check("loadline-42-3f2b-17-0123456789abcdef", None);
        check("loadline-42-3f2a-17-0123456789abcdef-home", None);
        check("loadline-42-3f2a-17-0", None);
        // Names of earlier releases do not say where they were made.
        check("loadline-42-7", None);
        check("loadline-0-3f2a-17-0123456789abcdef", None);
        check("loadline--1-3f2a-17-0123456789abcdef", None);
        check("other", None);
    }

    #[test]
    fn no_two_are_alike_and_ours_are_not_left_behind() {
        let names = [new(), new()];
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| maker(name, &place().unwrap()) == Some(std::process::id() as i32)));
        assert!(!names.iter().any(|name| is_left_behind(name)));
        assert_eq!(home(), home());
        assert!(!is_home_left_behind(home()) && !is_left_behind(home()));
    }

    #[test]
    fn what_is_left_behind_is_so_only_in_the_same_boot_and_namespace() {
        let left = left_behind();
        assert!(is_left_behind(&left) && is_home_left_behind(&format!("{left}-home")));
        let own = place().unwrap();
        let (boot, namespace) = own.split_once('-').unwrap();
        assert!(!is_left_behind(&left.replace(boot, "ffffffffffffffff")));
        assert!(!is_left_behind(&left.replace(namespace, "1")));
        assert!(!is_left_behind("loadline-999999999-0"));
        // Somebody else's process, which may be hidden, is there all the same.
        assert!(!is_gone(1));
    }
}
