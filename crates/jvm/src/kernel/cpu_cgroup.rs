//! CPU figures of cgroups: their limit, how many times it throttled their processes (kernel `scheduler/sched-bwc.rst`
//! for v1, `cgroup-v2.rst`), and whether they have exclusive CPUs (`cpuset`). v1 has a hierarchy per controller.

use super::cgroup::{CPU, Cgroup, CgroupVersion, below_root, mount_of};
use super::text::{keyed_number, read};
use loadline_base::units::Millicpus;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many times and how long a cgroup's limit throttled its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttled {
    /// Periods with something to run.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled: u64,
    /// Throttled time, summed over CPUs.
    pub time: Duration,
}

impl Throttled {
    /// Reads the figures of a cgroup and its nested cgroups; `None` if it has none.
    pub fn of(cgroup: &Cgroup) -> Option<Self> {
        Self::parse(&cgroup.text("cpu.stat")?, cgroup.version)
    }

    /// Parses `cpu.stat`; v2 has other lines before these.
    ///
    /// ```text
    /// nr_periods 310              nr_periods 310
    /// nr_throttled 118            nr_throttled 118
    /// throttled_time 4210000000   throttled_usec 4210000
    /// ```
    pub fn parse(text: &str, version: CgroupVersion) -> Option<Self> {
        let number = |key| keyed_number(text, key);
        let time = match version {
            CgroupVersion::V1 => Duration::from_nanos(number("throttled_time")?),
            CgroupVersion::V2 => Duration::from_micros(number("throttled_usec")?),
        };
        Some(Self { periods: number("nr_periods")?, throttled: number("nr_throttled")?, time })
    }

    /// The difference from earlier figures of the same cgroup.
    pub fn since(self, before: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            time: self.time.saturating_sub(before.time),
        }
    }
}

/// A cgroup's own CPU limit, in whole thousandths of a CPU; `None` if it has none.
///
/// v1 has `cpu.cfs_quota_us` (`50000`, or `-1`) and `cpu.cfs_period_us`. v2 has both in `cpu.max` (`50000 100000`, or
/// `max 100000`).
pub fn limit(cgroup: &Cgroup) -> Option<Millicpus> {
    let text = match cgroup.version {
        CgroupVersion::V1 => format!("{} {}", cgroup.text("cpu.cfs_quota_us")?, cgroup.text("cpu.cfs_period_us")?),
        CgroupVersion::V2 => cgroup.text("cpu.max")?,
    };
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Millicpus(quota.checked_mul(1000)?.checked_div(period)?))
}

/// How many times this process was throttled because its cgroup or one above had used up its CPU quota: the largest
/// count among them. `None` if none of them keeps a count.
pub fn throttled() -> Option<u64> {
    let counted = |folder: &PathBuf| keyed_number(&read(folder.join("cpu.stat")).ok()?, "nr_throttled");
    folders(CPU).iter().filter_map(counted).max()
}

/// Whether this process's cgroup has exclusive CPUs. The outermost cgroup has all CPUs, so its setting means nothing.
pub fn has_own_cpus() -> bool {
    let mut folders = folders("cpuset");
    folders.pop();
    folders.iter().any(|folder| is_exclusive(folder))
}

/// `cpuset.cpu_exclusive` on v1 is 0 or 1; `cpuset.cpus.partition` on v2 is `member`, `root`, or `isolated`, followed
/// by ` invalid (…)` if the kernel could not grant it.
fn is_exclusive(folder: &Path) -> bool {
    let text = |file: &str| read(folder.join(file)).unwrap_or_default();
    text("cpuset.cpu_exclusive").trim() == "1" || ["root", "isolated"].contains(&text("cpuset.cpus.partition").trim())
}

/// The cgroups of this process in a controller's hierarchy, from its own up to the mount point.
fn folders(controller: &str) -> Vec<PathBuf> {
    let (Ok(mountinfo), Ok(membership)) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup")) else {
        return Vec::new();
    };
    folders_in(&mountinfo, &membership, controller)
}

/// ```text
/// 35 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
/// 4:cpu,cpuacct:/docker/8aa91f81
/// ```
fn folders_in(mountinfo: &str, membership: &str, controller: &str) -> Vec<PathBuf> {
    let Some((version, mount)) = mount_of(mountinfo, controller, |_| true) else { return Vec::new() };
    // In a container, the name may be that of an invisible cgroup on the host; its own is then the mount point.
    let below = below_root(membership, version, controller, &mount.root).unwrap_or(Path::new(""));
    let own = mount.point.join(below);
    own.ancestors().take_while(|folder| folder.starts_with(&mount.point)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /c rw - tmpfs tmpfs rw\n35 31 0:32 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      36 31 0:33 / /c/cpuset rw - cgroup cgroup rw,cpuset\n41 31 0:38 / /c/unified rw - cgroup2 cgroup2 rw";
    const V2: &str = "30 23 0:27 / /c rw - cgroup2 cgroup2 rw";

    #[test]
    fn cgroups_are_listed_up_to_the_mount_point() {
        let check = |mountinfo: &str, membership: &str, controller: &str, expect: &[&str]| {
            let expect: Vec<PathBuf> = expect.iter().map(PathBuf::from).collect();
            assert_eq!(folders_in(mountinfo, membership, controller), expect, "{controller} {membership}");
        };
        let v1 = "5:cpuset:/\n4:cpu,cpuacct:/a/b\n0::/x";
        check(V1, v1, "cpu", &["/c/cpu/a/b", "/c/cpu/a", "/c/cpu"]);
        check(V1, v1, "cpuset", &["/c/cpuset"]);
        check(V2, "0::/a", "cpu", &["/c/a", "/c"]);
        check(V2, "0::/../a", "cpu", &["/c"]);
        check(&V2.replace(" / ", " /pod "), "0::/pod/x", "cpu", &["/c/x", "/c"]);
        check(&V2.replace(" / ", " /pod "), "0::/elsewhere", "cpu", &["/c"]);
        check("", "0::/", "cpu", &[]);
    }

    #[test]
    fn both_versions_report_limits_and_throttling() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        let of = |version| Cgroup { version, folder: folder.path().into(), mount: folder.path().into() };
        let limits = || [CgroupVersion::V1, CgroupVersion::V2].map(|version| limit(&of(version)).map(|limit| limit.0));
        assert_eq!(limits(), [None, None]);
        write("cpu.cfs_period_us", "100000\n");
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.max", "max 100000\n");
        assert_eq!(limits(), [None, None]);
        write("cpu.cfs_quota_us", "150000\n");
        write("cpu.max", "5000 10000\n");
        assert_eq!(limits(), [Some(1500), Some(500)]);
        write("cpu.max", "5000 0\n");
        assert_eq!(limits()[1], None);
        let throttled = |version, text: &str| {
            write("cpu.stat", text);
            Throttled::of(&of(version))
        };
        let expect = Throttled { periods: 310, throttled: 118, time: Duration::from_millis(4210) };
        let v1 = "nr_periods 310\nnr_throttled 118\nthrottled_time 4210000000\n";
        assert_eq!(throttled(CgroupVersion::V1, v1), Some(expect));
        let v2 = "usage_usec 900\nuser_usec 800\nsystem_usec 100\nnr_periods 310\nnr_throttled 118\nthrottled_usec 4210000\n";
        assert_eq!(throttled(CgroupVersion::V2, v2), Some(expect));
        // Without the controller, v2 reports only CPU usage.
        assert_eq!(throttled(CgroupVersion::V2, "usage_usec 900\n"), None);
        let later = Throttled { periods: 320, throttled: 123, time: Duration::from_millis(4310) };
        let since = Throttled { periods: 10, throttled: 5, time: Duration::from_millis(100) };
        assert_eq!(later.since(expect), since);
    }

    #[test]
    fn both_versions_report_exclusive_cpus() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        assert!(!is_exclusive(folder.path()));
        for (file, text, expect) in [
            ("cpuset.cpus.partition", "member\n", false),
            ("cpuset.cpus.partition", "root invalid (Parent is not a partition root)\n", false),
            ("cpuset.cpus.partition", "isolated\n", true),
            ("cpuset.cpus.partition", "member\n", false),
            ("cpuset.cpu_exclusive", "0\n", false),
            ("cpuset.cpu_exclusive", "1\n", true),
        ] {
            write(file, text);
            assert_eq!(is_exclusive(folder.path()), expect, "{file}: {text}");
        }
    }
}
