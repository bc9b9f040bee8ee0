//! A process's small files: `/proc/PID/{statm,status,stat,schedstat}` (man proc_pid_statm, proc_pid_status,
//! proc_pid_stat; kernel 4.5 and later), `cmdline`, and `environ`.

use super::text::{keyed_all, numbers, read, size};
use loadline_base::units::Bytes;
use std::time::Duration;

/// Sizes from the page tables' counters; may lag by a few pages per thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statm {
    /// Address space.
    pub size: Bytes,
    /// Resident pages, with shared ones counted in full.
    pub resident: Bytes,
    /// Resident pages of files and shared memory.
    pub shared: Bytes,
}

impl Statm {
    /// `632468 14857 5009 1 0 26305 0` (pages).
    pub fn parse(text: &str, page: Bytes) -> Option<Self> {
        let mut sizes = numbers::<u64>(text).map_while(|pages| pages.checked_mul(page.0).map(Bytes));
        Some(Self { size: sizes.next()?, resident: sizes.next()?, shared: sizes.next()? })
    }
}

/// Memory, identity, caught signals, and capabilities of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Resident pages, with shared ones counted in full.
    pub rss: Bytes,
    /// The largest RSS so far.
    pub rss_peak: Bytes,
    /// Resident anonymous pages.
    pub rss_anon: Bytes,
    /// Resident pages of files.
    pub rss_file: Bytes,
    /// Resident pages of shared memory.
    pub rss_shmem: Bytes,
    /// Pages in swap.
    pub swap: Bytes,
    /// Threads.
    pub threads: u64,
    /// Effective user, as Loadline sees it.
    pub euid: u32,
    /// Effective group, as Loadline sees it.
    pub egid: u32,
    /// The process id, as Loadline sees it; differs from a thread's id unless it is the first thread.
    pub tgid: u32,
    /// The process's id in its own pid namespace.
    pub ns_pid: u32,
    /// The tracing thread, as Loadline sees it.
    pub tracer: Option<u32>,
    /// Bit n−1: a handler is installed for signal n.
    pub signals_caught: u64,
    /// Bit n: capability n (`linux/capability.h`) is in effect.
    pub capabilities: u64,
}

impl Status {
    /// Reads the status of this process.
    pub fn own() -> Option<Self> {
        Self::parse(&read("/proc/self/status").ok()?)
    }

    /// Parses lines such as `VmRSS:    59428 kB`. `None` for text without memory lines (a zombie) or truncated text.
    pub fn parse(text: &str) -> Option<Self> {
        let values = keyed_all(text);
        let value = |key: &str| values.get(key).copied();
        let sized = |key: &str| value(key).and_then(size);
        let id = |text: &str| text.parse::<u32>().ok();
        // The second of real, effective, saved, and file system id.
        let effective = |key: &str| value(key)?.split_ascii_whitespace().nth(1).and_then(id);
        let mask = |key: &str| u64::from_str_radix(value(key)?, 16).ok();
        let innermost = value("NSpid").and_then(|ids| ids.rsplit(['\t', ' ']).next().and_then(id));
        Some(Self {
            rss: sized("VmRSS")?,
            rss_peak: sized("VmHWM")?,
            rss_anon: sized("RssAnon").unwrap_or_default(),
            rss_file: sized("RssFile").unwrap_or_default(),
            rss_shmem: sized("RssShmem").unwrap_or_default(),
            swap: sized("VmSwap").unwrap_or_default(),
            threads: value("Threads")?.parse().ok()?,
            euid: effective("Uid")?,
            egid: effective("Gid")?,
            tgid: value("Tgid").or(value("Pid")).and_then(id)?,
            ns_pid: innermost.or(value("Pid").and_then(id))?,
            tracer: value("TracerPid").and_then(id).filter(|id| *id != 0),
            signals_caught: mask("SigCgt")?,
            capabilities: mask("CapEff").unwrap_or_default(),
        })
    }

    /// Whether a handler is installed for this signal number.
    pub fn catches(&self, signal: u32) -> bool {
        (1..=64).contains(&signal) && self.signals_caught >> (signal - 1) & 1 == 1
    }

    /// Whether a capability is in effect, by its number.
    pub fn is_capable(&self, number: u32) -> bool {
        number < 64 && self.capabilities >> number & 1 == 1
    }
}

/// Flag of a task that has begun to exit (include/linux/sched.h).
const PF_EXITING: u64 = 0x4;

/// State, parent, CPU time, and start of a process or thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its id.
    pub pid: u32,
    /// Name of the program file, at most 15 bytes; may contain spaces and parentheses.
    pub comm: String,
    /// `R`, `S`, `D`, `T` (stopped), `t` (traced), `Z` (zombie), `X` …
    pub state: char,
    /// The parent's pid.
    pub parent: u32,
    /// The session's id.
    pub session: u32,
    /// Whether its first thread has begun to exit, which may take a second while the kernel frees its memory.
    pub is_ending: bool,
    /// Page faults that needed no disk I/O.
    pub minor_faults: u64,
    /// Page faults that needed disk I/O.
    pub major_faults: u64,
    /// User CPU time of all threads, including ended ones.
    pub user: Duration,
    /// Kernel CPU time of all threads, including ended ones.
    pub system: Duration,
    /// CPU time of exited children that were waited for, and of their children.
    pub children: Duration,
    /// Threads of the process.
    pub threads: u64,
    /// Clock ticks between boot and start; with the pid, identifies a process uniquely.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads the `stat` of a process; `None` when the process is gone.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&read(format!("/proc/{pid}/stat")).ok()?, ticks_per_s())
    }

    /// `12864 (java) S 11740 11734 5548 0 -1 4194304 10321 0 0 0 3 2 0 0 20 0 15 0 125590 …` (times in ticks).
    pub fn parse(text: &str, ticks_per_s: u64) -> Option<Self> {
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let comm = text.get(open + 1..close)?.to_owned();
        // Field n of the man page is at index n − 3 after the name.
        let fields: Vec<&str> = text[close + 1..].split_ascii_whitespace().take(20).collect();
        let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
        let time = |n| Some(Duration::from_millis(number(n)?.checked_mul(1000)?.checked_div(ticks_per_s)?));
        Some(Self {
            pid: text[..open].trim().parse().ok()?,
            comm,
            state: fields.first()?.chars().next()?,
            parent: number(4)? as u32,
            session: number(6)? as u32,
            is_ending: number(9)? & PF_EXITING != 0,
            minor_faults: number(10)?,
            major_faults: number(12)?,
            user: time(14)?,
            system: time(15)?,
            children: time(16)?.checked_add(time(17)?)?,
            threads: number(20)?,
            start_ticks: number(22)?,
        })
    }

    /// CPU time of all threads, including ended ones.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// All page faults, with and without disk I/O.
    pub fn faults(&self) -> u64 {
        self.minor_faults.saturating_add(self.major_faults)
    }

    /// Whether it is a zombie or dead. A process counts as ended once its first thread has: from then on its memory
    /// cannot be read, even if other threads are still running.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether any thread of the process is still alive.
    pub fn lives(&self) -> bool {
        !self.has_ended() || self.threads > 1
    }
}

/// CPU time from a thread's `schedstat`, `310085 4711 12`: ns on a CPU, ns in a queue for one, time slices
/// (Documentation/scheduler/sched-stats.rst). `None` if the kernel does not count it, which shows as `0 0 0`.
pub fn schedstat_cpu(text: &str) -> Option<Duration> {
    let mut counts = numbers::<u64>(text);
    let (ns, _, slices) = (counts.next()?, counts.next()?, counts.next()?);
    (slices > 0).then(|| Duration::from_nanos(ns))
}

/// The age of a process that started this many clock ticks after boot, including time suspended. `None` if the kernel
/// does not report the uptime.
pub fn age(start_ticks: u64) -> Option<Duration> {
    let started = Duration::try_from_secs_f64(start_ticks as f64 / ticks_per_s() as f64).ok()?;
    Some(super::machine::uptime()?.saturating_sub(started))
}

/// Clock ticks per second, the unit in `stat`.
pub fn ticks_per_s() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Size of a page on this machine.
pub fn page_size() -> Bytes {
    Bytes(rustix::param::page_size() as u64)
}

/// The zero-terminated strings of `cmdline` or `environ`, without empty ones.
pub fn strings(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.split('\0').filter(|string| !string.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_parentheses_and_spaces() {
        let text = "7 (a) b (c) R 1 7 7 0 -1 0 8 0 3 0 150 50 30 12 20 0 1 0 99 0";
        let stat = Stat::parse(text, 100).unwrap();
        assert_eq!((stat.comm.as_str(), stat.state, stat.start_ticks), ("a) b (c", 'R', 99));
        assert_eq!((stat.pid, stat.parent, stat.session, stat.threads), (7, 1, 7, 1));
        assert_eq!((stat.cpu(), stat.minor_faults, stat.major_faults), (Duration::from_secs(2), 8, 3));
        assert_eq!(stat.children, Duration::from_millis(420));
        let ended = |state: &str, threads: &str| {
            let text = text.replace(" R ", state).replace(" 20 0 1 0 99", &format!(" 20 0 {threads} 0 99"));
            let stat = Stat::parse(&text, 100).unwrap();
            (stat.has_ended(), stat.lives())
        };
        let ended = [ended(" T ", "1"), ended(" Z ", "1"), ended(" Z ", "2")];
        assert_eq!(ended, [(false, true), (true, false), (true, true)]);
        let ending = ["4194304", "4195340"].map(|flags| text.replace("-1 0 8", &format!("-1 {flags} 8")));
        assert_eq!(ending.map(|text| Stat::parse(&text, 100).unwrap().is_ending), [false, true]);
    }

    #[test]
    fn schedstat_without_accounting_gives_no_cpu_time() {
        assert_eq!(schedstat_cpu("310085 4711 12\n"), Some(Duration::from_nanos(310_085)));
        assert_eq!(["0 0 0\n", "", "310085", "a b c", "-1 0 3"].map(schedstat_cpu), [None; 5]);
    }

    #[test]
    fn the_last_namespace_pid_counts() {
        let text = "Pid:\t900\nUid:\t0\t1000\t0\t0\nGid:\t0\t1001\t0\t0\nNSpid:\t900\t7\nVmHWM:\t9 kB\nVmRSS:\t8 kB\nThreads:\t1\nSigCgt:\t0000000000000004\nCapEff:\t0000000000080000\n";
        let status = Status::parse(text).unwrap();
        assert_eq!((status.ns_pid, status.euid, status.egid), (7, 1000, 1001));
        assert!(status.catches(3) && !status.catches(2) && !status.catches(0) && !status.catches(65));
        assert!(status.is_capable(19) && !status.is_capable(18) && !status.is_capable(64));
    }

    #[test]
    fn strings_are_zero_terminated() {
        assert_eq!(strings(b"java\0-cp\0\0a b\0"), ["java", "-cp", "a b"]);
        assert_eq!(strings(b"java"), ["java"]);
        assert!(strings(b"").is_empty());
        assert_eq!(Stat::of(std::process::id()).unwrap().pid, std::process::id());
    }
}
