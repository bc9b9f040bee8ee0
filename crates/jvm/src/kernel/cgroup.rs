//! Cgroups, v1 (kernel `Documentation/admin-guide/cgroup-v1/memory.rst`) and v2 (`cgroup-v2.rst`): which version has a
//! controller on this machine, which cgroup a process is in (`/proc/PID/cgroup`, man cgroups), and the memory values in
//! its files.

use super::mounts;
use super::text::{keyed_number, read, size};
use loadline_base::units::Bytes;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A limit of this many bytes or more means no limit: v1 writes the largest signed number rounded down to a page.
pub const NO_LIMIT_MIN: u64 = 1 << 60;
/// A subject may create nested cgroups; systemd in a container has four levels.
const DEPTH_MAX: usize = 16;

/// The memory controller.
pub const MEMORY: &str = "memory";
/// The CPU time controller.
pub const CPU: &str = "cpu";

/// The controllers that JDKs look for in `/proc/cgroups` (`CgroupSubsystemFactory::determine_type`, JDK 11 to 24).
const LOOKED_FOR: [&str; 4] = ["cpu", "cpuacct", "cpuset", "memory"];

/// Returns the controllers that JDKs look for in `/proc/cgroups` and that are not listed as enabled. On Linux 6.12 or
/// newer, a kernel without `CONFIG_MEMCG_V1` lists no `memory` even if cgroup v2 has it, and one without
/// `CONFIG_CPUSETS_V1` lists no `cpuset`.
///
/// ```text
/// #subsys_name hierarchy num_cgroups enabled
/// cpu 0 76 1
/// memory 0 76 0
/// ```
pub fn unlisted(cgroups: &str) -> Vec<&'static str> {
    let is_listed = |name: &&str| {
        let mut rows = cgroups.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.any(|row| row.first() == Some(name) && row.get(3) == Some(&"1"))
    };
    LOOKED_FOR.into_iter().filter(|name| !is_listed(name)).collect()
}

loadline_base::named! {
    /// The interface of a controller.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CgroupVersion,
    /// The name in documents and on screen.
    fn name {
        /// One hierarchy per controller.
        V1 = "v1",
        /// One hierarchy for all.
        V2 = "v2",
    }
}

impl CgroupVersion {
    /// The file with the limit of a cgroup.
    pub fn limit_file(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }
}

/// The cgroup hierarchy that has a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The controller.
    pub controller: &'static str,
    /// Its interface.
    pub version: CgroupVersion,
    /// The mount point of the hierarchy.
    pub mount: PathBuf,
    /// The cgroup seen at the mount point, as `/proc/PID/cgroup` would name it; in a container, it may be a nested one.
    pub root: PathBuf,
}

impl Hierarchy {
    /// Finds the hierarchy of this controller; `None` if it has none, so Loadline cannot set limits.
    pub fn find(controller: &'static str) -> io::Result<Option<Self>> {
        let controls = |mount: &Path| read(mount.join("cgroup.controllers")).is_ok_and(|text| names(&text, controller));
        Ok(Self::parse(&read("/proc/self/mountinfo")?, controller, controls))
    }

    /// Parses `/proc/self/mountinfo`. `controls` returns whether a v2 mount point has the controller.
    ///
    /// ```text
    /// 14 35 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
    /// 41 38 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
    /// ```
    pub fn parse(mountinfo: &str, controller: &'static str, controls: impl Fn(&Path) -> bool) -> Option<Self> {
        let (version, mount) = mount_of(mountinfo, controller, controls)?;
        Some(Self { controller, version, mount: mount.point, root: mount.root })
    }

    /// Whether a process that is exiting is listed in the root cgroup instead of its own (`proc_cgroup_show` in
    /// kernel/cgroup/cgroup.c, Linux 6.18).
    pub fn loses_ending(&self) -> bool {
        self.version == CgroupVersion::V1
    }

    /// The directory of the cgroup in a process's `/proc/PID/cgroup`, unless it is outside the mount.
    ///
    /// ```text
    /// 4:memory:/docker/8aa91f81
    /// 0::/system.slice/app.service
    /// ```
    pub fn folder(&self, membership: &str) -> Option<PathBuf> {
        below_root(membership, self.version, self.controller, &self.root).map(|below| self.mount.join(below))
    }

    /// The cgroup of a process, from its `/proc/PID/cgroup`. If a container's `/proc` and mounts disagree about the
    /// root (v1 without a cgroup namespace, or a bind mount), the mount point itself is right, provided that it lists
    /// the process.
    pub fn cgroup_of(&self, pid: u32, membership: &str) -> Option<Cgroup> {
        let named = self.folder(membership).filter(|folder| folder.is_dir()).map(|folder| self.cgroup(folder));
        named.or_else(|| Some(self.cgroup(self.mount.clone())).filter(|top| top.pids().contains(&pid)))
    }

    /// The cgroup with this directory.
    pub fn cgroup(&self, folder: PathBuf) -> Cgroup {
        Cgroup { version: self.version, folder, mount: self.mount.clone() }
    }
}

/// The mount of this controller's hierarchy: v1's, or else v2's if `controls` finds that its mount point has the
/// controller.
pub(super) fn mount_of<'t>(
    mountinfo: &'t str,
    controller: &str,
    controls: impl Fn(&Path) -> bool,
) -> Option<(CgroupVersion, mounts::Mount<'t>)> {
    let mounts = || mounts::parse(mountinfo);
    let v1 = mounts().find(|mount| mount.kind == "cgroup" && mount.options().any(|option| option == controller));
    let v2 = || mounts().find(|mount| mount.kind == "cgroup2" && controls(&mount.point));
    v1.map(|mount| (CgroupVersion::V1, mount)).or_else(|| Some((CgroupVersion::V2, v2()?)))
}

/// The path from the cgroup seen at the mount point to the one that `/proc/PID/cgroup` names for a controller, unless
/// that is outside.
pub(super) fn below_root<'t>(
    membership: &'t str,
    version: CgroupVersion,
    controller: &str,
    root: &Path,
) -> Option<&'t Path> {
    let group = membership.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let fits = match version {
            CgroupVersion::V1 => controllers.split(',').any(|of| of == controller),
            CgroupVersion::V2 => controllers.is_empty(),
        };
        fits.then(|| Path::new(group))
    })?;
    let below = group.strip_prefix(root).ok()?;
    below.components().all(|part| matches!(part, Component::Normal(_))).then_some(below)
}

/// A cgroup, identified by its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Interface of its controllers.
    pub version: CgroupVersion,
    /// The directory with the cgroup's files.
    pub folder: PathBuf,
    /// The mount point of the hierarchy; cgroups above it are not visible.
    pub mount: PathBuf,
}

/// A limit and the cgroup that it is set on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The maximum charge.
    pub bytes: Bytes,
    /// The cgroup with the limit: the one in question, or one above it.
    pub folder: PathBuf,
}

impl Cgroup {
    /// The name of a cgroup in the same hierarchy: its directory below the mount point, or `/` for the mount point
    /// itself.
    pub fn name_of(&self, folder: &Path) -> String {
        format!("/{}", folder.strip_prefix(&self.mount).unwrap_or(folder).display())
    }

    /// The parent cgroup; `None` if it would be above the mount point.
    pub fn parent(&self) -> Option<Self> {
        let parent = self.folder.parent().filter(|parent| parent.starts_with(&self.mount))?;
        Some(Self { folder: parent.to_path_buf(), ..self.clone() })
    }

    /// The text of a file of the cgroup; `None` if the file is missing.
    pub fn text(&self, file: &str) -> Option<String> {
        read(self.folder.join(file)).ok()
    }

    /// A size in a file of the cgroup; `None` if the file is missing or there is no limit.
    pub fn size(&self, file: &str) -> Option<Bytes> {
        parse_limit(&self.text(file)?)
    }

    /// The number after a key in one of the cgroup's files.
    pub fn number(&self, file: &str, key: &str) -> Option<u64> {
        keyed_number(&self.text(file)?, key)
    }

    /// The processes in the cgroup, excluding nested cgroups; 0 for each that is in another pid namespace.
    pub fn pids(&self) -> Vec<u32> {
        self.text("cgroup.procs").unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// The visible processes of the cgroup and its nested cgroups.
    pub fn all_pids(&self) -> Vec<u32> {
        let all = std::iter::once(self.clone()).chain(self.below());
        all.flat_map(|cgroup| cgroup.pids()).filter(|pid| *pid > 0).collect()
    }

    /// The nested cgroups, as from [`below`].
    pub fn below(&self) -> Vec<Self> {
        below(&self.folder).into_iter().map(|folder| Self { folder, ..self.clone() }).collect()
    }

    /// How many times the kernel OOM-killed a process in the cgroup (on v2, also in nested ones); `None` if the cgroup
    /// is gone.
    pub fn oom_kills(&self) -> Option<u64> {
        let file = match self.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        self.number(file, "oom_kill")
    }

    /// Reads the cgroup's own limit; `None` if it has none.
    pub fn own_limit(&self) -> io::Result<Option<Bytes>> {
        Ok(parse_limit(&read(self.folder.join(self.version.limit_file()))?))
    }

    /// The smallest limit of this cgroup and its ancestors. A container cannot see the outer ones, but v1 reports their
    /// limit anyway (`hierarchical_memory_limit`).
    pub fn limit(&self) -> Option<Limit> {
        let upwards = std::iter::successors(Some(self.clone()), Self::parent);
        let limits =
            upwards.filter_map(|cgroup| Some(Limit { bytes: cgroup.own_limit().ok()??, folder: cgroup.folder }));
        let told = self.number("memory.stat", "hierarchical_memory_limit").filter(|limit| *limit < NO_LIMIT_MIN);
        let told = told.map(|bytes| Limit { bytes: Bytes(bytes), folder: self.folder.clone() });
        limits.chain(told).min_by_key(|limit| limit.bytes)
    }
}

/// A limit in bytes, or `max` on v2; `None` if the cgroup has no limit.
pub fn parse_limit(text: &str) -> Option<Bytes> {
    size(text).filter(|limit| limit.0 < NO_LIMIT_MIN)
}

/// The directories of all nested cgroups, parents first, at most 16 levels deep.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let children = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
    };
    let next = |level: &Vec<PathBuf>| level.iter().flat_map(children).collect::<Vec<_>>();
    let levels =
        std::iter::successors(Some(vec![folder.to_owned()]), |level| Some(next(level)).filter(|next| !next.is_empty()));
    levels.skip(1).take(DEPTH_MAX).flatten().collect()
}

/// Whether a controller is among those in `cgroup.controllers` or `cgroup.subtree_control`: `cpu memory pids`.
pub fn names(controllers: &str, controller: &str) -> bool {
    controllers.split_ascii_whitespace().any(|named| named == controller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const V1_MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const V2_MOUNT: &str = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn limits() {
        assert_eq!(parse_limit("max\n"), None);
        assert_eq!(parse_limit("9223372036854771712\n"), None);
        assert_eq!(parse_limit("67108864\n"), Some(Bytes::mib(64)));
    }

    #[test]
    fn unlisted_controllers_are_named() {
        let head = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n";
        let all = "cpuset\t0\t76\t1\ncpu\t0\t76\t1\ncpuacct\t0\t76\t1\nmemory\t0\t76\t1\n";
        assert_eq!(unlisted(&format!("{head}{all}")), [""; 0]);
        // Linux 6.18 without CONFIG_MEMCG_V1 and CONFIG_CPUSETS_V1.
        let new = "cpu\t0\t76\t1\ncpuacct\t0\t76\t1\nblkio\t0\t76\t1\npids\t0\t76\t1\n";
        assert_eq!(unlisted(&format!("{head}{new}")), ["cpuset", "memory"]);
        // `cgroup_disable=memory`.
        assert_eq!(unlisted(&all.replace("memory\t0\t76\t1", "memory\t0\t76\t0")), ["memory"]);
        assert_eq!(unlisted(""), LOOKED_FOR);
    }

    #[test]
    fn the_cgroup_directory_follows_version_and_root() {
        let check = |mountinfo: &str, membership, version, folder: Option<&str>| {
            let hierarchy = Hierarchy::parse(mountinfo, MEMORY, |_| true).unwrap();
            let found = (hierarchy.version, hierarchy.folder(membership));
            assert_eq!(found, (version, folder.map(PathBuf::from)), "{membership} {mountinfo}");
        };
        let v1 = "5:devices:/\n4:memory:/a/b\n0::/";
        check(V1_MOUNTS, v1, CgroupVersion::V1, Some("/sys/fs/cgroup/memory/a/b"));
        let v2 = |mountinfo: &str, membership, folder| check(mountinfo, membership, CgroupVersion::V2, folder);
        v2(V2_MOUNT, "0::/user.slice/x", Some("/sys/fs/cgroup/user.slice/x"));
        v2(V2_MOUNT, "0::/../other", None);
        v2(V2_MOUNT, "", None);
        let in_container = V2_MOUNT.replace(" / ", " /docker/1 ");
        v2(&in_container, "0::/docker/1", Some("/sys/fs/cgroup"));
        v2(&in_container, "0::/docker/1/x", Some("/sys/fs/cgroup/x"));
        v2(&in_container, "0::/docker/2", None);
        assert_eq!(Hierarchy::parse("", MEMORY, |_| true), None);
        assert_eq!(Hierarchy::parse(V2_MOUNT, MEMORY, |_| false), None);
        assert!(names("cpu memory pids\n", MEMORY) && !names("cpu memory_x\n", MEMORY));
    }

    #[test]
    fn a_process_without_a_cgroup_directory_belongs_to_the_mount() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path().to_path_buf();
        let hierarchy = Hierarchy::parse(V2_MOUNT, MEMORY, |_| true).unwrap();
        let hierarchy = Hierarchy { mount: mount.clone(), ..hierarchy };
        assert_eq!(hierarchy.cgroup_of(17, "0::/a"), None);
        fs::write(mount.join("cgroup.procs"), "0\n17\n").unwrap();
        assert_eq!(hierarchy.cgroup_of(17, "0::/a"), Some(hierarchy.cgroup(mount.clone())));
        fs::create_dir(mount.join("a")).unwrap();
        assert_eq!(hierarchy.cgroup_of(17, "0::/a"), Some(hierarchy.cgroup(mount.join("a"))));
    }

    #[test]
    fn the_smallest_limit_of_all_parent_cgroups_applies() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::create_dir_all(top.join("a/b")).unwrap();
        let write = |name: &str, text: &str| fs::write(top.join(name), text).unwrap();
        let limit = |version, mount: &Path| {
            let cgroup = Cgroup { version, folder: top.join("a/b"), mount: mount.to_path_buf() };
            cgroup.limit().map(|limit| (limit.bytes.0, limit.folder))
        };
        write("memory.max", "1000\n");
        write("a/memory.max", "max\n");
        assert_eq!(limit(CgroupVersion::V2, top), Some((1000, top.to_path_buf())));
        assert_eq!(limit(CgroupVersion::V2, &top.join("a")), None);
        write("memory.limit_in_bytes", "9000\n");
        assert_eq!(limit(CgroupVersion::V1, top), Some((9000, top.to_path_buf())));
        // A limit on an outer, invisible cgroup.
        write("a/b/memory.stat", "cache 0\nhierarchical_memory_limit 500\n");
        assert_eq!(limit(CgroupVersion::V1, top), Some((500, top.join("a/b"))));
        write("memory.max", "9223372036854771712\n");
        fs::remove_file(top.join("a/b/memory.stat")).unwrap();
        assert_eq!(limit(CgroupVersion::V2, top), None);
    }

    #[test]
    fn nested_cgroups_come_after_their_parents() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b/c")).unwrap();
        fs::create_dir(top.path().join("d")).unwrap();
        fs::write(top.path().join("a/file"), "").unwrap();
        let found = below(top.path());
        let place = |name: &str| found.iter().position(|path| *path == top.path().join(name)).unwrap();
        assert!(place("a") < place("a/b") && place("a/b") < place("a/b/c") && place("d") < place("a/b"), "{found:?}");
        assert_eq!((found.len(), below(&top.path().join("none"))), (4, Vec::new()));
        fs::create_dir_all(top.path().join("x/".repeat(20))).unwrap();
        assert_eq!(below(top.path()).len(), 4 + 16);
    }

    #[test]
    fn both_versions_count_kills() {
        let folder = tempfile::tempdir().unwrap();
        let of = |version| Cgroup { version, folder: folder.path().into(), mount: folder.path().into() }.oom_kills();
        assert_eq!((of(CgroupVersion::V1), of(CgroupVersion::V2)), (None, None));
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        write("memory.events", "max 9\noom 1\noom_kill 2\noom_group_kill 0\n");
        assert_eq!((of(CgroupVersion::V1), of(CgroupVersion::V2)), (Some(3), Some(2)));
    }
}
