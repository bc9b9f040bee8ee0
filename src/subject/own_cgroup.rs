//! Loadline's own cgroup; subjects' cgroups are created in it, or as close to it as possible.

use super::names;
use crate::error::{Error, Result};
use crate::kernel::cgroup::{Cgroup, Hierarchy, MEMORY};
use crate::kernel::process::Stat;
use crate::kernel::text;

/// A process's cgroup in a controller's hierarchy, or the one at the mount point if it is not visible from here.
/// Errors: `Machine` if nothing can be limited, or if the process is exiting.
pub(super) fn of_process(pid: u32, controller: &'static str) -> Result<Cgroup> {
    let hierarchy = Hierarchy::find(controller).map_err(|cause| Error::io("read", "/proc/self/mountinfo", &cause))?;
    let hierarchy = hierarchy.ok_or_else(|| {
        let (what, key) = match controller {
            MEMORY => ("no memory cgroup is mounted, so no memory limit can be set", "limit"),
            _ => ("no cpu cgroup is mounted, so no CPU limit can be set", "cpu_limit"),
        };
        Error::machine(what).hint(format!("mount cgroup v2 at /sys/fs/cgroup, or remove `{key}`"))
    })?;
    let path = format!("/proc/{pid}/cgroup");
    let membership = text::read(&path).map_err(|cause| Error::io("read", &path, &cause))?;
    // Read after the membership: a process that is not ending now was not ending then.
    if hierarchy.loses_ending() && Stat::of(pid).is_none_or(|now| now.is_ending) {
        return Err(Error::machine(format!("process {pid} is exiting")).at(path));
    }
    let found = hierarchy.cgroup_of(pid, &membership);
    Ok(seen_from_above(found.unwrap_or_else(|| hierarchy.cgroup(hierarchy.mount.clone())), names::home()))
}

/// The parent, if this cgroup is the child that Loadline moved into to make room for subjects' cgroups. Those become
/// siblings of that child, so that they never nest deeper.
fn seen_from_above(mut cgroup: Cgroup, home: &str) -> Cgroup {
    if cgroup.folder.file_name().is_some_and(|name| name == home) {
        cgroup.folder.pop();
    }
    cgroup
}

/// Candidate parents for a subject's cgroup: Loadline's own, its parent, the one at the mount point.
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
    fn a_process_moves_into_a_child_cgroup_only_once() {
        let seen = |folder| seen_from_above(at(folder), "loadline-7-home");
        assert_eq!(seen("/sys/fs/cgroup/scope/loadline-7-home"), at("/sys/fs/cgroup/scope"));
        assert_eq!(seen("/sys/fs/cgroup/scope/loadline-8-home"), at("/sys/fs/cgroup/scope/loadline-8-home"));
    }

    #[test]
    fn the_nearest_candidate_comes_first_and_each_appears_once() {
        let folders = |folder| candidates(&at(folder)).into_iter().map(|cgroup| cgroup.folder).collect::<Vec<_>>();
        let expect = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(std::path::PathBuf::from);
        assert_eq!(folders("/sys/fs/cgroup/a/b"), expect);
        assert_eq!(folders("/sys/fs/cgroup"), expect[2..]);
    }
}
