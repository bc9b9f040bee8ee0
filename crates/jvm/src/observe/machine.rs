//! The machine that Loadline runs on: its resources, its load, and how much of a process it lets Loadline see. The
//! hostname is omitted on purpose, because archives are shared.

use super::procfs::{Process, open_below};
use super::{Read, Reading, Unavailable, maps};
use crate::kernel::cgroup::{CgroupVersion, Hierarchy, MEMORY};
use crate::kernel::machine::{CpuTimes, MemInfo, Pressure, cpus_online, parse_choice, parse_loadavg};
use crate::kernel::process::{Status, page_size};
use crate::kernel::text;
use loadline_base::clock::Clock;
use loadline_base::units::Bytes;
use std::os::unix::fs::FileExt;

/// Properties of the machine that do not change during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// CPUs online, or those that this process may run on, whichever is more.
    pub cores_online: usize,
    /// Memory of the machine; `None` if the kernel does not report it, for instance without `/proc`.
    pub memory: Option<Bytes>,
    /// Swap space.
    pub swap: Option<Bytes>,
    /// `6.18.44`
    pub kernel: String,
    /// `x86_64`, `aarch64` …
    pub architecture: String,
    /// Size of a page.
    pub page: Bytes,
    /// Transparent huge pages: `always`, `madvise`, or `never`; `None` on a kernel without them.
    pub thp: Option<String>,
    /// The cgroup version that has the memory controller; `None` if none has it, so nothing can be limited.
    pub memory_cgroup: Option<CgroupVersion>,
}

impl Machine {
    /// Queries the kernel. Values that it does not report are zero or `None`.
    pub fn read() -> Self {
        let uname = rustix::system::uname();
        let memory = MemInfo::read();
        let allowed = rustix::thread::sched_getaffinity(None).map_or(0, |set| set.count() as usize);
        Self {
            cores_online: cpus_online().max(allowed),
            memory: memory.map(|memory| memory.total),
            swap: memory.map(|memory| memory.swap_total),
            kernel: uname.release().to_string_lossy().into_owned(),
            architecture: uname.machine().to_string_lossy().into_owned(),
            page: page_size(),
            thp: file("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|t| parse_choice(&t).map(str::to_owned)),
            memory_cgroup: Hierarchy::find(MEMORY).ok().flatten().map(|hierarchy| hierarchy.version),
        }
    }
}

/// How busy the machine is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activity {
    /// Time spent by all CPUs since boot; use the difference of two readings.
    pub cpu: CpuTimes,
    /// Tasks running or waiting for a disk, averaged over 1, 5, and 15 minutes.
    pub load: [f64; 3],
    /// Memory and swap.
    pub memory: MemInfo,
    /// Memory stalls; `None` on a kernel without PSI.
    pub memory_pressure: Option<Pressure>,
}

impl Activity {
    /// Reads everything.
    pub fn read(clock: &Clock) -> Read<Self> {
        let missing = |name| move || Unavailable::new("machine", format!("cannot read /proc/{name}"));
        Reading::take(clock, || {
            Ok(Self {
                cpu: CpuTimes::read().ok_or_else(missing("stat"))?,
                load: file("/proc/loadavg").and_then(|t| parse_loadavg(&t)).ok_or_else(missing("loadavg"))?,
                memory: MemInfo::read().ok_or_else(missing("meminfo"))?,
                memory_pressure: Pressure::read("memory"),
            })
        })
    }
}

/// This user's access to a process; each `Err` contains the reason for refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Which pages are resident.
    pub pagemap: Result<(), Unavailable>,
    /// The contents of its memory.
    pub memory: Result<(), Unavailable>,
    /// Yama's restriction on tracing: 0 same user, 1 own children, 2 `CAP_SYS_PTRACE`, 3 no process; `None` without
    /// Yama.
    pub ptrace_scope: Option<u8>,
    /// Whether Loadline has `CAP_SYS_PTRACE`.
    pub cap_sys_ptrace: bool,
}

impl Access {
    /// Tries each kind of access.
    pub fn to(process: &Process, clock: &Clock) -> Self {
        let stack = maps::read(process, clock)
            .ok()
            .and_then(|maps| maps.value.iter().rev().find(|m| &*m.path == "[stack]").map(|m| m.end));
        // The last page of the stack is always resident: it contains the arguments.
        let at = stack.unwrap_or(page_size().0).saturating_sub(page_size().0);
        Self {
            pagemap: can_read(process, "pagemap", at / page_size().0 * 8),
            memory: can_read(process, "mem", at),
            ptrace_scope: file("/proc/sys/kernel/yama/ptrace_scope").and_then(|text| text.trim().parse().ok()),
            cap_sys_ptrace: Status::own().is_some_and(|own| own.is_capable(CAP_SYS_PTRACE)),
        }
    }
}

/// `linux/capability.h`.
const CAP_SYS_PTRACE: u32 = 19;

fn can_read(process: &Process, name: &'static str, at: u64) -> Result<(), Unavailable> {
    let read = || open_below(process.folder(), name)?.read_exact_at(&mut [0; 8], at);
    read().map_err(Unavailable::io(name))
}

fn file(path: &str) -> Option<String> {
    text::read(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read();
        assert!(machine.cores_online > 0);
        assert!(machine.memory.unwrap() > Bytes::mib(64) && !machine.kernel.is_empty());
        let activity = Activity::read(&Clock::start()).unwrap().value;
        assert!(activity.memory.available <= machine.memory.unwrap());
    }

    #[test]
    fn own_memory_is_readable() {
        let access = Access::to(&Process::open(std::process::id()).unwrap(), &Clock::start());
        assert_eq!((access.pagemap, access.memory), (Ok(()), Ok(())));
    }
}
