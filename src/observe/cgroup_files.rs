//! Parsers of the files of memory cgroups, v1 (kernel `Documentation/admin-guide/cgroup-v1/memory.rst`) and v2
//! (`cgroup-v2.rst`), of `/proc/PID/cgroup` (man 7 cgroups) and of `/proc/self/mountinfo` (man proc_pid_mountinfo).

use crate::kernel::text::{keyed_number, size};
use crate::units::Bytes;
use std::path::{Path, PathBuf};

/// The two generations of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all.
    V2,
}

impl Version {
    /// The name in documents and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// A limit: `max` on v2, the largest signed number rounded down to a page on v1, mean none.
pub fn parse_limit(text: &str) -> Option<Bytes> {
    size(text).filter(|limit| limit.0 < 1 << 60)
}

/// What the charge of a cgroup and those below it consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    /// Pages of no file.
    pub anon: Bytes,
    /// Page cache, without shared memory.
    pub file: Bytes,
    /// Of the page cache, pages mapped by a process.
    pub file_mapped: Bytes,
    /// Shared memory and tmpfs.
    pub shmem: Bytes,
    /// The kernel's own: page tables, stacks, slab; `None` where the file does not say (v1 keeps it elsewhere).
    pub kernel: Option<Bytes>,
    /// File pages that came back soon after they were dropped, so far: thrashing.
    pub file_refaults: u64,
    /// Page faults that needed a disk, so far.
    pub major_faults: u64,
}

impl Charge {
    /// Parses `memory.stat`.
    pub fn parse(text: &str, version: Version) -> Option<Self> {
        match version {
            Version::V1 => Self::v1(text),
            Version::V2 => Self::v2(text),
        }
    }

    /// Lines of `total_rss 2379776`, bytes; those without `total_` leave out the cgroups below.
    fn v1(text: &str) -> Option<Self> {
        let number = |key| keyed_number(text, key);
        let refaults = number("total_workingset_refault_file").or_else(|| number("total_workingset_refault"));
        let shmem = number("total_shmem").unwrap_or(0);
        Some(Self {
            anon: Bytes(number("total_rss")?),
            file: Bytes(number("total_cache")?.saturating_sub(shmem)),
            file_mapped: Bytes(number("total_mapped_file").unwrap_or(0)),
            shmem: Bytes(shmem),
            kernel: None,
            file_refaults: refaults.unwrap_or(0),
            major_faults: number("total_pgmajfault").unwrap_or(0),
        })
    }

    /// Lines of `anon 2379776`, bytes; `file` counts shared memory in.
    fn v2(text: &str) -> Option<Self> {
        let number = |key| keyed_number(text, key);
        // `kernel` since 5.18; before, its parts.
        let parts = ["kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "slab"];
        let kernel = number("kernel")
            .unwrap_or_else(|| parts.iter().filter_map(|part| number(part)).fold(0, u64::saturating_add));
        let shmem = number("shmem").unwrap_or(0);
        Some(Self {
            anon: Bytes(number("anon")?),
            file: Bytes(number("file")?.saturating_sub(shmem)),
            file_mapped: Bytes(number("file_mapped").unwrap_or(0)),
            shmem: Bytes(shmem),
            kernel: Some(Bytes(kernel)),
            file_refaults: number("workingset_refault_file").or_else(|| number("workingset_refault")).unwrap_or(0),
            major_faults: number("pgmajfault").unwrap_or(0),
        })
    }
}

/// The cgroup of the memory controller, from `/proc/PID/cgroup`.
///
/// ```text
/// 4:memory:/docker/8aa91f81
/// 0::/system.slice/app.service
/// ```
pub fn parse_membership(text: &str, version: Version) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = match version {
            Version::V1 => controllers.split(',').any(|name| name == "memory"),
            Version::V2 => number == "0" && controllers.is_empty(),
        };
        fits.then(|| PathBuf::from(path))
    })
}

/// Where a hierarchy is mounted, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The cgroup shown at the mount point, as seen from our cgroup namespace.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
}

impl Mount {
    /// The mount with the memory controller of this version, from `/proc/self/mountinfo`:
    ///
    /// ```text
    /// 14 35 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
    /// 41 38 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
    /// ```
    pub fn parse(text: &str, version: Version) -> Option<Self> {
        text.lines().find_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut kind = right.split(' ');
            let (fs_type, options) = (kind.next()?, kind.nth(1)?);
            let fits = match version {
                Version::V1 => fs_type == "cgroup" && options.split(',').any(|name| name == "memory"),
                Version::V2 => fs_type == "cgroup2",
            };
            let mut fields = left.split(' ').skip(3);
            let (root, point) = (fields.next()?, fields.next()?);
            fits.then(|| Self { root: unescape(root), point: unescape(point) })
        })
    }

    /// The folder of a cgroup named in `/proc/PID/cgroup`, unless it lies outside of what is mounted.
    pub fn folder(&self, cgroup: &Path) -> Option<PathBuf> {
        let below = cgroup.strip_prefix(&self.root).ok()?;
        let inside = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        inside.then(|| self.point.join(below))
    }
}

/// mountinfo writes a space as `\040`.
fn unescape(text: &str) -> PathBuf {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(parse_limit("max\n"), None);
        assert_eq!(parse_limit("9223372036854771712\n"), None);
        assert_eq!(parse_limit("67108864\n"), Some(Bytes::mib(64)));
    }

    #[test]
    fn folders_follow_the_mount_root() {
        let mount = |root: &str| Mount { root: root.into(), point: "/sys/fs/cgroup".into() };
        for (root, cgroup, folder) in [
            ("/", "/a/b", Some("/sys/fs/cgroup/a/b")),
            ("/docker/1", "/docker/1", Some("/sys/fs/cgroup/")),
            ("/docker/1", "/docker/1/x", Some("/sys/fs/cgroup/x")),
            ("/docker/1", "/docker/2", None),
            ("/", "/../2", None),
        ] {
            assert_eq!(mount(root).folder(Path::new(cgroup)), folder.map(PathBuf::from), "{root} {cgroup}");
        }
    }
}
