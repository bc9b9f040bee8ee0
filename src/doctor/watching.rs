//! Which JVMs `loadline watch` can read as this user, and what prevents reading the others: capabilities (man
//! capabilities), Yama, `dmesg_restrict`, `hidepid`.

use super::fact;
use crate::clock::Clock;
use crate::kernel::process::Status;
use crate::observe::hsperfdata::HsPerf;
use crate::observe::jvms::{self, Jvms, ProcessSummary};
use crate::observe::kernel_log::KernelLog;
use crate::observe::machine::Access;
use crate::observe::procfs::Process;

/// JVMs to test and name; the rest are counted.
const TRIED_MAX: usize = 100;
const NAMED_MAX: usize = 5;
/// `linux/capability.h`: number, name, and its use in watching.
const CAPABILITIES: [(u32, &str, &str); 3] = [
    (19, "CAP_SYS_PTRACE", "other users' JVMs and their accounts"),
    (2, "CAP_DAC_READ_SEARCH", "other users' counter files"),
    (34, "CAP_SYSLOG", "kills in the kernel log if `kernel.dmesg_restrict` is 1"),
];

/// Each fact with its state, and one remedy if something is missing.
pub(super) fn facts(clock: Clock) -> Vec<(String, String)> {
    let found = match jvms::find() {
        Ok(found) => found,
        Err(cause) => return vec![fact("JVMs", format!("cannot list /proc: {cause}"))],
    };
    let own = Process::open(std::process::id()).map(|own| Access::to(&own, &clock));
    let mut facts = vec![fact("JVMs", readable(&found, clock)), fact("privileges", capable(Status::own().as_ref()))];
    let sees_all = Status::own().is_some_and(|own| own.is_capable(CAPABILITIES[0].0));
    facts.extend(hidden(&found, sees_all).map(|text| fact("hidden", text)));
    facts.extend(own.ok().map(|access| fact("yama", yama(&access))));
    let restricts = number("/proc/sys/kernel/dmesg_restrict");
    facts.push(fact("OOM kills", kills(KernelLog::open().is_ok(), restricts)));
    facts.push(fact("hidepid", hidepid(&read("/proc/self/mountinfo"))));
    facts
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn number(path: &str) -> Option<u8> {
    read(path).trim().parse().ok()
}

/// Which JVMs are readable, fully or without counters.
fn readable(found: &Jvms, clock: Clock) -> String {
    let whole =
        |jvm: &&ProcessSummary| Process::open(jvm.pid).is_ok_and(|process| HsPerf::open(&process, &clock).is_ok());
    let (whole, part): (Vec<&ProcessSummary>, Vec<&ProcessSummary>) =
        found.known.iter().take(TRIED_MAX).partition(whole);
    let mut said = vec![match found.known.len() {
        0 => "none found that can be read".to_owned(),
        all => format!("{all} found; fully readable: {}", named(&whole)),
    }];
    if !part.is_empty() {
        said.push(format!(
            "no heap and metaspace counters for {}: the JVM runs with `-XX:-UsePerfData`, or CAP_DAC_READ_SEARCH is \
             missing for another user's JVM; `loadline doctor {}` shows which",
            named(&part),
            part[0].pid
        ));
    }
    said.join("; ")
}

fn named(jvms: &[&ProcessSummary]) -> String {
    let names = jvms.iter().take(NAMED_MAX).map(|jvm| format!("pid {} ({})", jvm.pid, jvm.comm));
    let more = jvms.len().saturating_sub(NAMED_MAX);
    let more = (more > 0).then(|| format!("{more} more"));
    match names.chain(more).collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        all => all.join(", "),
    }
}

/// The processes that are not inspectable, if any.
fn hidden(found: &Jvms, sees_all: bool) -> Option<String> {
    let java: Vec<&ProcessSummary> = found.perhaps.iter().collect();
    let todo = match sees_all {
        true => "the kernel or a security module protects them",
        false => {
            "run `watch` as their user, as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH \
             (monitoring/loadline-watch.service)"
        }
    };
    match (java.len(), found.hidden) {
        (0, 0) => None,
        (0, others) => Some(format!("{} cannot be inspected, none named java; {todo}", processes(others, ""))),
        (_, others) => Some(format!(
            "cannot be inspected: {} (named java), and {}; \
            {todo}",
            named(&java),
            processes(others, "other ")
        )),
    }
}

fn processes(number: u64, which: &str) -> String {
    format!("{number} {which}{}", if number == 1 { "process" } else { "processes" })
}

/// Lists the capabilities that a service for all users needs: those in effect and those missing.
fn capable(own: Option<&Status>) -> String {
    let Some(own) = own else { return "unknown: cannot read /proc/self/status".to_owned() };
    let (has, lacks): (Vec<_>, Vec<_>) = CAPABILITIES.iter().partition(|(number, ..)| own.is_capable(*number));
    let has: Vec<&str> = has.iter().map(|(_, name, _)| *name).collect();
    let lacks: Vec<String> = lacks.iter().map(|(_, name, what)| format!("{name} ({what})")).collect();
    match (has.is_empty(), lacks.is_empty()) {
        (_, true) => format!("{}: all JVMs in this PID namespace", has.join(", ")),
        (true, false) => format!("this user's JVMs only; missing: {}", lacks.join(", ")),
        (false, false) => format!("{}; missing: {}", has.join(", "), lacks.join(", ")),
    }
}

/// Whether an account can pause threads.
fn yama(access: &Access) -> String {
    match (access.ptrace_scope, access.cap_sys_ptrace) {
        (None, _) => "not enabled: accounts can pause threads of this user's JVMs".to_owned(),
        (Some(scope @ 3..), _) => format!("ptrace_scope {scope}: no account can pause threads until the next boot"),
        (Some(scope), true) => format!("ptrace_scope {scope}, overridden by CAP_SYS_PTRACE"),
        (Some(0), false) => "ptrace_scope 0: accounts can pause threads of this user's JVMs".to_owned(),
        (Some(scope), false) => format!(
            "ptrace_scope {scope}: `--account` cannot pause threads, so its accounts are less exact; run `sysctl \
             kernel.yama.ptrace_scope=0`, or grant CAP_SYS_PTRACE"
        ),
    }
}

/// The source that shows whether a JVM was OOM-killed.
fn kills(log: bool, restricts: Option<u8>) -> String {
    match (log, restricts) {
        (true, _) => "read from the kernel log, which names the cgroup whose limit was reached".to_owned(),
        (false, Some(1)) => "known only from the JVM's cgroup events, because `kernel.dmesg_restrict` is 1; grant \
            CAP_SYSLOG, or run `sysctl kernel.dmesg_restrict=0`"
            .to_owned(),
        (false, _) => {
            "known only from the JVM's cgroup events, because /dev/kmsg cannot be read; in a container, add that device"
                .to_owned()
        }
    }
}

/// The mount options of `/proc`, from `/proc/self/mountinfo` (man proc_pid_mountinfo): the last mount at a path is the
/// visible one.
///
/// ```text
/// 22 28 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw,hidepid=invisible
/// ```
fn hidepid(mounts: &str) -> String {
    let of_proc = mounts.lines().rev().find(|line| line.split(' ').nth(4) == Some("/proc"));
    let options = of_proc.and_then(|line| line.split_once(" - ")).map_or("", |(_, rest)| rest);
    let value = options.split([' ', ',']).find_map(|option| option.strip_prefix("hidepid="));
    match value {
        None | Some("0" | "off") => "off: /proc shows all users' processes".to_owned(),
        Some(value) => format!(
            "{value}: /proc hides other users' JVMs; run `mount -o remount,hidepid=0 /proc`, or grant CAP_SYS_PTRACE"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidepid_is_read_from_the_visible_mount() {
        let mount = |options: &str| format!("22 28 0:20 / /proc rw,relatime shared:13 - proc proc rw{options}\n");
        assert!(hidepid(&mount("")).starts_with("off"));
        assert!(hidepid(&mount(",hidepid=0")).starts_with("off"));
        assert!(hidepid(&mount(",gid=5,hidepid=invisible")).starts_with("invisible: "));
        assert!(hidepid(&format!("{}{}", mount(",hidepid=2"), mount(""))).starts_with("off"));
        assert!(hidepid("1 1 0:1 / /proc/x rw - proc proc rw,hidepid=2\n").starts_with("off"));
        assert!(hidepid("").starts_with("off"));
        let whole = mount(",hidepid=2");
        (0..whole.len()).for_each(|end| drop(hidepid(&whole[..end])));
    }

    #[test]
    fn each_missing_permission_has_one_remedy() {
        let access =
            |scope, cap_sys_ptrace| Access { pagemap: Ok(()), memory: Ok(()), ptrace_scope: scope, cap_sys_ptrace };
        assert!(yama(&access(Some(1), false)).contains("sysctl kernel.yama.ptrace_scope=0"));
        assert!(yama(&access(Some(1), true)).contains("overridden") && yama(&access(Some(3), true)).contains("boot"));
        assert!(kills(false, Some(1)).contains("CAP_SYSLOG") && kills(false, None).contains("/dev/kmsg"));
        let jvm = |pid| ProcessSummary { pid, comm: "java".to_owned(), arguments: Vec::new() };
        let found = Jvms { perhaps: (1..9).map(jvm).collect(), hidden: 3, ..Jvms::default() };
        let told = hidden(&found, false).unwrap();
        assert!(
            told.contains("pid 5 (java), 3 more (named java), and 3 other processes")
                && told.contains("CAP_SYS_PTRACE"),
            "{told}"
        );
        assert_eq!(hidden(&Jvms::default(), true), None);
    }
}
