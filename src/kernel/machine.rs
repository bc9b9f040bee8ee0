//! The machine: `/proc/stat`, `/proc/meminfo`, `/proc/loadavg`, `/proc/uptime`, `/proc/vmstat` (man proc_stat and so
//! on), `/proc/pressure/*` (kernel `Documentation/accounting/psi.rst`) and a few settings.

use super::process::ticks_per_s;
use super::text::{between, keyed, keyed_number, read, size};
use crate::units::Bytes;
use std::time::Duration;

/// Time of all CPUs since boot, guests included in `busy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// Running something: user, nice, system, interrupts.
    pub busy: Duration,
    /// Nothing to do, or waiting for a disk.
    pub idle: Duration,
    /// Ready to run while the hypervisor ran something else.
    pub steal: Duration,
}

impl CpuTimes {
    /// Reads `/proc/stat`. For a sampler.
    pub fn read() -> Option<Self> {
        Self::parse(&read("/proc/stat").ok()?, ticks_per_s())
    }

    /// `cpu  70107 5937 16428 256891 760 0 1704 66 0 0`: user, nice, system, idle, iowait, irq, softirq, steal (ticks).
    pub fn parse(text: &str, ticks_per_s: u64) -> Option<Self> {
        let ticks: Vec<u64> = text
            .lines()
            .find_map(|line| line.strip_prefix("cpu "))?
            .split_ascii_whitespace()
            .map_while(|f| f.parse().ok())
            .collect();
        let time = |fields: &[usize]| {
            let sum = fields.iter().try_fold(0u64, |sum, n| sum.checked_add(*ticks.get(*n)?))?;
            Some(Duration::from_millis(sum.checked_mul(1000)?.checked_div(ticks_per_s)?))
        };
        Some(Self { busy: time(&[0, 1, 2, 5, 6])?, idle: time(&[3, 4])?, steal: time(&[7])? })
    }

    /// What passed since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// Share of all CPU time (0–1) that the hypervisor took away. Of a difference, see [`CpuTimes::since`].
    pub fn share_stolen(&self) -> f64 {
        let all = self.busy + self.idle + self.steal;
        if all.is_zero() { 0.0 } else { self.steal.as_secs_f64() / all.as_secs_f64() }
    }
}

/// Stalls on one resource: the share of time in which some task, or every one, waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Time in which at least one task waited, so far.
    pub some: Duration,
    /// Time in which all tasks waited, so far; zero where the kernel does not say.
    pub full: Duration,
}

impl Pressure {
    /// Reads the stalls of all programs on a resource (`cpu`, `memory`) since boot; `None` on a kernel without PSI.
    pub fn read(resource: &str) -> Option<Self> {
        Self::parse(&read(format!("/proc/pressure/{resource}")).ok()?)
    }

    /// Lines of `some avg10=0.15 avg60=5.14 avg300=18.15 total=193315332` (microseconds).
    pub fn parse(text: &str) -> Option<Self> {
        let total = |kind| between(keyed(text, kind)?, "total=", &[' ']).and_then(|n| n.parse().ok());
        let full = total("full").map(Duration::from_micros).unwrap_or_default();
        Some(Self { some: Duration::from_micros(total("some")?), full })
    }

    /// What passed since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self { some: self.some.saturating_sub(before.some), full: self.full.saturating_sub(before.full) }
    }
}

/// Memory of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemInfo {
    /// All memory.
    pub total: Bytes,
    /// What could be had without swapping.
    pub available: Bytes,
    /// Swap space.
    pub swap_total: Bytes,
    /// Swap space in use.
    pub swap_used: Bytes,
}

impl MemInfo {
    /// Reads `/proc/meminfo`.
    pub fn read() -> Option<Self> {
        Self::parse(&read("/proc/meminfo").ok()?)
    }

    /// Lines of `MemTotal:       24684092 kB`.
    pub fn parse(text: &str) -> Option<Self> {
        let sized = |key| keyed(text, key).and_then(size);
        let (swap_total, swap_free) = (sized("SwapTotal").unwrap_or_default(), sized("SwapFree").unwrap_or_default());
        let swap_used = Bytes(swap_total.0.saturating_sub(swap_free.0));
        Some(Self { total: sized("MemTotal")?, available: sized("MemAvailable")?, swap_total, swap_used })
    }
}

/// Tasks running or waiting for a disk, averaged over 1, 5 and 15 minutes: `0.34 1.30 1.02 2/87 24440`.
pub fn parse_loadavg(text: &str) -> Option<[f64; 3]> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
    Some([fields.next()??, fields.next()??, fields.next()??])
}

/// Time since boot: `13620.51 22511.06`, in seconds.
pub fn uptime() -> Option<Duration> {
    let text = read("/proc/uptime").ok()?;
    Duration::try_from_secs_f64(text.split(' ').next()?.parse().ok()?).ok()
}

/// The random name of this boot: `3f0c…-…`, 36 characters (man proc_sys_kernel, `random/boot_id`).
pub fn boot_id() -> Option<String> {
    let text = read("/proc/sys/kernel/random/boot_id").ok()?;
    let id = text.trim();
    (!id.is_empty() && id.len() <= 64 && id.chars().all(|c| c.is_ascii_graphic())).then(|| id.to_owned())
}

/// Processes that were killed for want of memory since boot, in all cgroups: `oom_kill 3` (Linux 4.13 and later).
pub fn oom_kills() -> Option<u64> {
    keyed_number(&read("/proc/vmstat").ok()?, "oom_kill")
}

/// CPUs that are online, and 0 where that is not said.
pub fn cpus_online() -> usize {
    read("/sys/devices/system/cpu/online").map_or(0, |text| count_list(&text))
}

/// How many numbers a list such as `0-3,8` has.
fn count_list(text: &str) -> usize {
    let span = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (last.checked_sub(first)?).checked_add(1)
    };
    text.trim().split(',').filter_map(span).fold(0, usize::saturating_add)
}

/// The word in brackets: `always [madvise] never`.
pub fn parse_choice(text: &str) -> Option<&str> {
    between(text, "[", &[']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_difference() {
        let parse = |text| CpuTimes::parse(text, 100).unwrap();
        let before = parse("cpu  0 0 0 0 0 0 0 0 0 0\n");
        let passed = parse("cpu  300 0 100 500 0 0 0 100 0 0\ncpu0 1 2\n").since(&before);
        assert!((passed.share_stolen() - 0.1).abs() < 1e-9);
        assert_eq!(before.since(&passed).share_stolen(), 0.0);
    }

    #[test]
    fn pressure_memory_and_choices() {
        let text =
            "some avg10=0.15 avg60=5.14 avg300=18.15 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let expect = Pressure { some: Duration::from_micros(1500), full: Duration::from_micros(7) };
        assert_eq!(Pressure::parse(text), Some(expect));
        let memory = MemInfo::parse("MemTotal: 9 kB\nMemAvailable: 8 kB\nSwapTotal: 7 kB\nSwapFree: 5 kB\n").unwrap();
        assert_eq!((memory.total, memory.swap_used), (Bytes::kib(9), Bytes::kib(2)));
        assert_eq!(parse_loadavg("0.34 1.30 1.02 2/87 24440"), Some([0.34, 1.30, 1.02]));
        assert_eq!(parse_choice("always [madvise] never\n"), Some("madvise"));
    }

    #[test]
    fn lists_of_cpus() {
        for (text, count) in [("0-3,8\n", 5), ("0\n", 1), ("", 0), ("3-1", 0)] {
            assert_eq!(count_list(text), count, "{text}");
        }
    }

    #[test]
    fn this_machine_answers() {
        assert!(uptime().unwrap() > Duration::ZERO && cpus_online() > 0);
        assert_eq!(boot_id().map(|id| id.len()), Some(36));
        assert!(MemInfo::read().unwrap().total > Bytes::mib(64) && CpuTimes::read().unwrap().busy > Duration::ZERO);
    }
}
