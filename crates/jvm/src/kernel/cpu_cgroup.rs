//! CPU figures of cgroups: how often their processes were throttled (`cpu.stat`: kernel `scheduler/sched-bwc.rst` for
//! v1, `cgroup-v2.rst`), and whether they have their CPUs to themselves (`cpuset`). v1 has a hierarchy for each
//! controller.

use super::cgroup::{below_root, mount_of};
use super::text::{keyed_number, read};
use std::path::{Path, PathBuf};

/// How often processes of this one's cgroups were held back so far, because a cgroup had used up its share of CPU: the
/// largest number of those from the own one upwards. `None` where none of them counts.
pub fn throttled() -> Option<u64> {
    let counted = |folder: &PathBuf| keyed_number(&read(folder.join("cpu.stat")).ok()?, "nr_throttled");
    folders("cpu").iter().filter_map(counted).max()
}

/// Whether a cgroup says that no other cgroup beside it has its CPUs. The outermost one has them all, which says
/// nothing.
pub fn has_own_cpus() -> bool {
    let mut folders = folders("cpuset");
    folders.pop();
    folders.iter().any(|folder| is_exclusive(folder))
}

/// `cpuset.cpu_exclusive` of v1 is 0 or 1; `cpuset.cpus.partition` of v2 is `member`, `root` or `isolated`, with
/// ` invalid (…)` behind where that could not be had.
fn is_exclusive(folder: &Path) -> bool {
    let text = |file: &str| read(folder.join(file)).unwrap_or_default();
    text("cpuset.cpu_exclusive").trim() == "1" || ["root", "isolated"].contains(&text("cpuset.cpus.partition").trim())
}

/// The cgroups of this process in the hierarchy of a controller, the own one first, the one at the mount point last.
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
    // In a container the name may be that of the host, which is not seen from here: the mount point is the own one.
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
    fn cgroups_are_those_of_the_controller_up_to_the_mount_point() {
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
    fn own_cpus_are_said_by_both_versions() {
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
