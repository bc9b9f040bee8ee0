//! The machine: `/proc/stat`, `/proc/meminfo`, `/proc/loadavg`, `/proc/uptime`, `/proc/vmstat`, `/proc/cpuinfo` (man
//! proc_stat and so on), `/proc/pressure/*` (kernel `Documentation/accounting/psi.rst`), and a few settings.

use super::process::ticks_per_s;
use super::text::{between, keyed, keyed_all, keyed_number, numbers, read, size};
use loadline_base::units::Bytes;
use std::time::Duration;

/// Time spent by all CPUs since boot; `busy` includes guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// Running: user, nice, system, interrupts.
    pub busy: Duration,
    /// Idle, or waiting for a disk.
    pub idle: Duration,
    /// Ready to run while the hypervisor ran something else.
    pub steal: Duration,
}

impl CpuTimes {
    /// Reads `/proc/stat`. For a sampler.
    pub fn read() -> Option<Self> {
        Self::parse(&read("/proc/stat").ok()?, ticks_per_s())
    }

    /// Sums these CPUs only; `None` if one of them is not listed.
    pub fn read_of(cpus: &[u32]) -> Option<Self> {
        Self::parse_of(&read("/proc/stat").ok()?, cpus, ticks_per_s())
    }

    fn parse_of(text: &str, cpus: &[u32], ticks_per_s: u64) -> Option<Self> {
        cpus.iter().try_fold(Self::default(), |sum, cpu| {
            let own = Self::parse_line(text, &format!("cpu{cpu} "), ticks_per_s)?;
            Some(Self { busy: sum.busy + own.busy, idle: sum.idle + own.idle, steal: sum.steal + own.steal })
        })
    }

    /// `cpu  70107 5937 16428 256891 760 0 1704 66 0 0`: user, nice, system, idle, iowait, irq, softirq, steal (ticks).
    pub fn parse(text: &str, ticks_per_s: u64) -> Option<Self> {
        Self::parse_line(text, "cpu ", ticks_per_s)
    }

    fn parse_line(text: &str, name: &str, ticks_per_s: u64) -> Option<Self> {
        let ticks: Vec<u64> = numbers(text.lines().find_map(|line| line.strip_prefix(name))?).collect();
        let time = |fields: &[usize]| {
            let sum = fields.iter().try_fold(0u64, |sum, n| sum.checked_add(*ticks.get(*n)?))?;
            Some(Duration::from_millis(sum.checked_mul(1000)?.checked_div(ticks_per_s)?))
        };
        Some(Self { busy: time(&[0, 1, 2, 5, 6])?, idle: time(&[3, 4])?, steal: time(&[7])? })
    }

    /// Returns the time that passed since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// Share of CPU time (0–1) that the hypervisor took. Meant for a difference: see [`CpuTimes::since`].
    pub fn share_stolen(&self) -> f64 {
        let all = self.busy + self.idle + self.steal;
        if all.is_zero() { 0.0 } else { self.steal.as_secs_f64() / all.as_secs_f64() }
    }
}

/// File names cached by the kernel, machine-wide (`Documentation/admin-guide/sysctl/fs.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dentries {
    /// All cached names.
    pub all: u64,
    /// Names of nonexistent files; 0 before Linux 5.0.
    pub negative: u64,
}

impl Dentries {
    /// Reads `/proc/sys/fs/dentry-state`.
    pub fn read() -> Option<Self> {
        Self::parse(&read("/proc/sys/fs/dentry-state").ok()?)
    }

    /// `455480\t453620\t45\t0\t163137\t0`: all, unused, seconds until reclaim, pages, negative, unused field.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = numbers(text);
        Some(Self { all: numbers.next()?, negative: numbers.nth(3).unwrap_or(0) })
    }
}

/// Stalls on one resource: the time during which some or all tasks waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Time during which at least one task waited.
    pub some: Duration,
    /// Time during which all tasks waited; zero if the kernel does not report it.
    pub full: Duration,
}

impl Pressure {
    /// Reads the machine-wide stalls on a resource (`cpu`, `memory`) since boot; `None` on a kernel without PSI.
    pub fn read(resource: &str) -> Option<Self> {
        Self::parse(&read(format!("/proc/pressure/{resource}")).ok()?)
    }

    /// Parses lines such as `some avg10=0.15 avg60=5.14 avg300=18.15 total=193315332` (microseconds).
    pub fn parse(text: &str) -> Option<Self> {
        let total = |kind| between(keyed(text, kind)?, "total=", &[' ']).and_then(|n| n.parse().ok());
        let full = total("full").map(Duration::from_micros).unwrap_or_default();
        Some(Self { some: Duration::from_micros(total("some")?), full })
    }

    /// Returns the time that passed since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self { some: self.some.saturating_sub(before.some), full: self.full.saturating_sub(before.full) }
    }
}

/// Memory of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemInfo {
    /// All memory.
    pub total: Bytes,
    /// Memory available without swapping.
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

    /// Parses lines such as `MemTotal:       24684092 kB`.
    pub fn parse(text: &str) -> Option<Self> {
        let values = keyed_all(text);
        let sized = |key: &str| values.get(key).and_then(|text| size(text));
        let swap_total = sized("SwapTotal").unwrap_or_default();
        let swap_used = Bytes(swap_total.0.saturating_sub(sized("SwapFree").unwrap_or_default().0));
        Some(Self { total: sized("MemTotal")?, available: sized("MemAvailable")?, swap_total, swap_used })
    }
}

/// Tasks running or waiting for a disk, averaged over 1, 5, and 15 minutes: `0.34 1.30 1.02 2/87 24440`.
pub fn parse_loadavg(text: &str) -> Option<[f64; 3]> {
    let mut loads = numbers(text);
    Some([loads.next()?, loads.next()?, loads.next()?])
}

/// Time since boot: `13620.51 22511.06`, in seconds.
pub fn uptime() -> Option<Duration> {
    let text = read("/proc/uptime").ok()?;
    Duration::try_from_secs_f64(text.split(' ').next()?.parse().ok()?).ok()
}

/// The random ID of this boot: `3f0c…-…`, 36 characters (man proc_sys_kernel, `random/boot_id`).
pub fn boot_id() -> Option<String> {
    let text = read("/proc/sys/kernel/random/boot_id").ok()?;
    let id = text.trim();
    (!id.is_empty() && id.len() <= 64 && id.chars().all(|c| c.is_ascii_graphic())).then(|| id.to_owned())
}

/// Processes OOM-killed since boot, in all cgroups: `oom_kill 3` (Linux 4.13 and later).
pub fn oom_kills() -> Option<u64> {
    keyed_number(&read("/proc/vmstat").ok()?, "oom_kill")
}

/// The CPU model, if the kernel reports it; the first one if they differ.
pub fn cpu_model() -> Option<String> {
    parse_cpu_model(&read("/proc/cpuinfo").ok()?)
}

/// `model name\t: AMD EPYC 7B13` on x86; on ARM, where models have only numbers, implementer and part: `0x41 0xd0c`.
fn parse_cpu_model(text: &str) -> Option<String> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'));
        line.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty())
    };
    let numbers = || Some(format!("{} {}", value("CPU implementer")?, value("CPU part")?));
    value("model name").or_else(|| value("cpu\t")).or_else(numbers)
}

/// Online CPUs; 0 if unknown.
pub fn cpus_online() -> usize {
    read("/sys/devices/system/cpu/online").map_or(0, |text| count_list(&text))
}

/// How many numbers a list such as `0-3,8` contains.
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
    fn dentries_with_and_without_negative_count() {
        let of = |all, negative| Some(Dentries { all, negative });
        assert_eq!(Dentries::parse("455480\t453620\t45\t0\t163137\t0\n"), of(455_480, 163_137));
        assert_eq!(Dentries::parse("88 70 45 0\n"), of(88, 0));
        assert_eq!(Dentries::parse(""), None);
    }

    #[test]
    fn shares_are_computed_from_a_difference() {
        let parse = |text| CpuTimes::parse(text, 100).unwrap();
        let before = parse("cpu  0 0 0 0 0 0 0 0 0 0\n");
        let passed = parse("cpu  300 0 100 500 0 0 0 100 0 0\ncpu0 1 2\n").since(&before);
        assert!((passed.share_stolen() - 0.1).abs() < 1e-9);
        assert_eq!(before.since(&passed).share_stolen(), 0.0);
    }

    #[test]
    fn selected_cpus_are_summed() {
        let text = "cpu  9 9 9 9 0 0 0 0\ncpu0 100 0 0 300 0 0 0 0\ncpu1 5 0 0 5 0 0 0 0\ncpu10 200 0 0 0 0 0 0 100\n";
        let of = |cpus: &[u32]| CpuTimes::parse_of(text, cpus, 100);
        let seconds = |times: CpuTimes| [times.busy, times.idle, times.steal].map(|span| span.as_secs());
        assert_eq!(of(&[0, 10]).map(seconds), Some([3, 3, 1]));
        assert_eq!((of(&[2]), of(&[])), (None, Some(CpuTimes::default())));
    }

    #[test]
    fn cpu_models_are_parsed() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(parse_cpu_model(text).as_deref(), expect, "{text}");
        check(
            "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD  EPYC 7B13\n\nmodel name\t: other\n",
            Some("AMD EPYC 7B13"),
        );
        check("CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n", Some("0x41 0xd0c"));
        check("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", Some("POWER9, altivec supported"));
        check("model name\t:\n", None);
        check("", None);
    }

    #[test]
    fn pressure_memory_load_and_choices_are_parsed() {
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
    fn cpus_in_a_list_are_counted() {
        for (text, count) in [("0-3,8\n", 5), ("0\n", 1), ("", 0), ("3-1", 0)] {
            assert_eq!(count_list(text), count, "{text}");
        }
    }

    #[test]
    fn this_machine_can_be_read() {
        assert!(uptime().unwrap() > Duration::ZERO && cpus_online() > 0);
        assert_eq!(boot_id().map(|id| id.len()), Some(36));
        assert!(MemInfo::read().unwrap().total > Bytes::mib(64) && CpuTimes::read().unwrap().busy > Duration::ZERO);
    }
}
