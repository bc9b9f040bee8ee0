//! The cgroup of Loadline itself: those of subjects are made in it, or as near to it as may be.

use super::names;
use crate::error::{Error, Result};
use crate::kernel::cgroup::{Cgroup, Hierarchy, MEMORY};
use crate::kernel::text;

/// The cgroup of a process in the hierarchy of a controller; where it cannot be seen from here, that at the mount
/// point.
///
/// # Errors
/// `Machine` where nothing can be limited.
pub(super) fn of_process(pid: u32, controller: &'static str) -> Result<Cgroup> {
    let hierarchy = Hierarchy::find(controller).map_err(|cause| Error::io("read", "/proc/self/mountinfo", &cause))?;
    let hierarchy = hierarchy.ok_or_else(|| {
        let (what, key) = match controller {
            MEMORY => ("no memory cgroup is mounted, so no memory limit can be set", "limit"),
            _ => ("no cpu cgroup is mounted, so no CPU limit can be set", "cpu_limit"),
        };
        Error::machine(what).hint(format!("mount cgroup v2 at /sys/fs/cgroup, or leave `{key}` out"))
    })?;
    let path = format!("/proc/{pid}/cgroup");
    let membership = text::read(&path).map_err(|cause| Error::io("read", &path, &cause))?;
    let found = hierarchy.cgroup_of(pid, &membership);
    Ok(seen_from_above(found.unwrap_or_else(|| hierarchy.cgroup(hierarchy.mount.clone())), names::home()))
}

/// The parent cgroup, if this one is the child into which Loadline moved to make room for the cgroups of subjects.
/// Those are made as siblings of that child, so that they never nest deeper.
fn seen_from_above(mut cgroup: Cgroup, home: &str) -> Cgroup {
    if cgroup.folder.file_name().is_some_and(|name| name == home) {
        cgroup.folder.pop();
    }
    cgroup
}

/// Cgroups in which that of a subject may be made: our own, the one above, the one at the mount point.
pub(super) fn candidates(own: &Cgroup) -> Vec<Cgroup> {
    let top = Cgroup { folder: own.mount.clone(), ..own.clone() };
    let mut candidates: Vec<Cgroup> = [own.clone()].into_iter().chain(own.parent()).chain([top]).collect();
    candidates.dedup();
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cgroup::CgroupVersion;

    fn at(folder: &str) -> Cgroup {
        Cgroup { version: CgroupVersion::V2, folder: folder.into(), mount: "/sys/fs/cgroup".into() }
    }

    #[test]
    fn who_moved_down_once_does_not_move_deeper() {
        let seen = |folder| seen_from_above(at(folder), "loadline-7-home");
        assert_eq!(seen("/sys/fs/cgroup/scope/loadline-7-home"), at("/sys/fs/cgroup/scope"));
        assert_eq!(seen("/sys/fs/cgroup/scope/loadline-8-home"), at("/sys/fs/cgroup/scope/loadline-8-home"));
    }

    #[test]
    fn the_nearest_candidate_comes_first_and_none_twice() {
        let folders = |folder| candidates(&at(folder)).into_iter().map(|cgroup| cgroup.folder).collect::<Vec<_>>();
        let expect = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(std::path::PathBuf::from);
        assert_eq!(folders("/sys/fs/cgroup/a/b"), expect);
        assert_eq!(folders("/sys/fs/cgroup"), expect[2..]);
    }
}
