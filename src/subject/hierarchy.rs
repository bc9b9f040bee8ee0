//! Where this process stands in the memory cgroup hierarchy, version 1 or 2.
//!
//! `/proc/self/cgroup` has `4:memory:/some/group` (v1) or `0::/some/group` (v2); `/proc/self/mountinfo` (proc(5)) has
//! `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory`.

use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Which interface the memory controller has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupVersion {
    /// `memory.limit_in_bytes`.
    V1,
    /// `memory.max`.
    V2,
}

impl std::fmt::Display for CgroupVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}

/// The child of its cgroup that this process moves into where that must hold none itself; see `limit`.
pub(super) fn home_name() -> String {
    format!("loadline-{}-home", std::process::id())
}

/// The memory hierarchy and our place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub version: CgroupVersion,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The folder of our own cgroup.
    pub own: PathBuf,
}

impl Hierarchy {
    /// Finds it.
    pub(super) fn find() -> Result<Self> {
        Self::of("self")
    }

    /// The place of another process in it.
    pub(super) fn of_process(pid: u32) -> Result<Self> {
        Self::of(&pid.to_string())
    }

    fn of(process: &str) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).map_err(|cause| Error::io("read", path, &cause));
        let (cgroup, mountinfo) = (read(&format!("/proc/{process}/cgroup"))?, read("/proc/self/mountinfo")?);
        let controls_memory = |mount: &Path| {
            let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
            controllers.split_ascii_whitespace().any(|controller| controller == "memory")
        };
        let found = Self::parse(&cgroup, &mountinfo, controls_memory).ok_or_else(|| {
            Error::machine("no memory cgroup is mounted, so no memory limit can be set")
                .hint("mount cgroup v2 at /sys/fs/cgroup, or leave `limit` out")
        })?;
        Ok(found.seen_from_above(&home_name()))
    }

    /// Once we moved into a child of our cgroup to make room for others, our cgroup is still the one above: they are
    /// made there, beside the child, and not ever deeper below it.
    fn seen_from_above(mut self, home: &str) -> Self {
        if self.own.file_name().is_some_and(|name| name == home) {
            self.own.pop();
        }
        self
    }

    fn parse(cgroup: &str, mountinfo: &str, controls_memory: impl Fn(&Path) -> bool) -> Option<Self> {
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let v1 = mounts.iter().find(|mount| mount.kind == "cgroup" && mount.options.split(',').any(|o| o == "memory"));
        let v2 = || mounts.iter().find(|mount| mount.kind == "cgroup2" && controls_memory(&mount.point));
        let (version, mount) = match v1 {
            Some(mount) => (CgroupVersion::V1, mount),
            None => (CgroupVersion::V2, v2()?),
        };
        let own = own_group(cgroup, version).map_or_else(|| mount.point.clone(), |group| mount.folder_of(group));
        Some(Self { version, mount: mount.point.clone(), own })
    }

    /// Cgroups in which a child may be made, the nearest first.
    pub(super) fn candidates(&self) -> Vec<PathBuf> {
        let parent = self.own.parent().filter(|parent| parent.starts_with(&self.mount)).map(Path::to_path_buf);
        let mut candidates = vec![self.own.clone()];
        candidates.extend(parent.into_iter().chain([self.mount.clone()]));
        candidates.dedup();
        candidates
    }
}

/// Our group as `/proc/self/cgroup` names it.
fn own_group(cgroup: &str, version: CgroupVersion) -> Option<&str> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let ours = match version {
            CgroupVersion::V1 => controllers.split(',').any(|controller| controller == "memory"),
            CgroupVersion::V2 => controllers.is_empty(),
        };
        ours.then_some(group)
    })
}

struct Mount<'a> {
    root: &'a str,
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        Some(Self { root, point: PathBuf::from(point.replace("\\040", " ")), kind, options })
    }

    /// The folder of a group. In a container the mount may show only a part of the hierarchy.
    fn folder_of(&self, group: &str) -> PathBuf {
        match Path::new(group).strip_prefix(self.root) {
            Ok(rest) if !group.contains("..") => self.point.join(rest),
            _ => self.point.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const V2_MOUNT: &str = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";

    fn check(cgroup: &str, mountinfo: &str, expect: Option<(CgroupVersion, &str)>) {
        let found = Hierarchy::parse(cgroup, mountinfo, |_| true);
        let found = found.map(|hierarchy| (hierarchy.version, hierarchy.own.display().to_string()));
        assert_eq!(found, expect.map(|(version, own)| (version, own.to_owned())), "{cgroup} {mountinfo}");
    }

    #[test]
    fn finds_our_group_in_either_version() {
        let v1 = "5:devices:/\n4:memory:/a/b\n0::/";
        check(v1, V1_MOUNTS, Some((CgroupVersion::V1, "/sys/fs/cgroup/memory/a/b")));
        check("0::/user.slice/x", V2_MOUNT, Some((CgroupVersion::V2, "/sys/fs/cgroup/user.slice/x")));
        check("0::/../other", V2_MOUNT, Some((CgroupVersion::V2, "/sys/fs/cgroup")));
        let in_container = V2_MOUNT.replace(" / ", " /docker/1 ");
        check("0::/docker/1/x", &in_container, Some((CgroupVersion::V2, "/sys/fs/cgroup/x")));
        check("0::/elsewhere", &in_container, Some((CgroupVersion::V2, "/sys/fs/cgroup")));
        check("", "", None);
        assert_eq!(Hierarchy::parse("0::/", V2_MOUNT, |_| false), None);
    }

    #[test]
    fn who_moved_down_once_does_not_move_deeper() {
        let at = |group| Hierarchy::parse(group, V2_MOUNT, |_| true).unwrap().seen_from_above("loadline-7-home");
        assert_eq!(at("0::/scope/loadline-7-home").own, at("0::/scope").own);
        assert_eq!(at("0::/scope/loadline-8-home").own, PathBuf::from("/sys/fs/cgroup/scope/loadline-8-home"));
    }

    #[test]
    fn the_nearest_candidate_comes_first_and_none_twice() {
        let hierarchy = Hierarchy::parse("0::/a/b", V2_MOUNT, |_| true).unwrap();
        let names: Vec<String> = hierarchy.candidates().iter().map(|path| path.display().to_string()).collect();
        assert_eq!(names, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        let root = Hierarchy::parse("0::/", V2_MOUNT, |_| true).unwrap();
        assert_eq!(root.candidates(), [PathBuf::from("/sys/fs/cgroup")]);
    }
}
