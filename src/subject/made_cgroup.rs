//! Cgroups for subjects: created near Loadline's own, removed at the end, and swept after a Loadline was killed.

use super::names::{self, is_home_left_behind, is_left_behind};
use super::own_cgroup;
use super::processes::{self, Process};
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::kernel::cgroup::{self, Cgroup, CgroupVersion, below};
use rustix::fs::{Access, access};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The kernel releases a cgroup only after its last process is reaped and its pages are handed over.
const REMOVE_WITHIN: Duration = Duration::from_secs(5);
/// For processes in a killed Loadline's cgroup; one in uninterruptible sleep can take seconds to die.
const KILL_WITHIN: Duration = Duration::from_secs(5);
/// The interval between attempts to remove.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// The result of trying one place, with the reason for a failure.
pub(super) type Attempt<T> = std::result::Result<T, String>;

#[derive(Debug)]
pub(super) struct MadeCgroup {
    pub(super) cgroup: Cgroup,
    clock: Clock,
}

impl MadeCgroup {
    /// Creates a cgroup with the controller as close to Loadline's own as possible, and sets the limit. Errors:
    /// `cannot`, with the reason for each place, if all fail.
    pub(super) fn create<T>(
        controller: &'static str,
        clock: Clock,
        cannot: Error,
        set: impl Fn(&Cgroup) -> Attempt<T>,
    ) -> Result<(Self, T)> {
        let own = own_cgroup::of_process(std::process::id(), controller)?;
        let mut refusals = Vec::new();
        for parent in own_cgroup::candidates(&own) {
            sweep(&parent.folder, clock);
            // Dropping the cgroup on failure removes its directory.
            let made = Self::make(&parent, controller, clock);
            match made.and_then(|made| set(&made.cgroup).map(|set| (made, set))) {
                Ok(made) => return Ok(made),
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(refusals.into_iter().fold(cannot, Error::at))
    }

    fn make(parent: &Cgroup, controller: &str, clock: Clock) -> Attempt<Self> {
        if parent.version == CgroupVersion::V2 {
            enable(parent, controller)?;
        }
        let folder = parent.folder.join(names::new());
        fs::create_dir(&folder).map_err(|cause| format!("{}: {}", parent.folder.display(), plain(&cause)))?;
        Ok(Self { cgroup: Cgroup { folder, ..parent.clone() }, clock })
    }
}

impl Drop for MadeCgroup {
    fn drop(&mut self) {
        remove(&self.cgroup.folder, self.clock);
    }
}

pub(super) fn write_and_read(file: &Path, text: &str) -> Attempt<String> {
    let refuse = |cause: io::Error| format!("{}: {}", file.display(), plain(&cause));
    fs::write(file, text).map_err(refuse)?;
    fs::read_to_string(file).map_err(refuse)
}

/// Enables a controller for the children of a v2 cgroup.
pub(super) fn enable(parent: &Cgroup, controller: &str) -> Attempt<()> {
    let refuse = |why: String| Err(format!("{}: {why}", parent.folder.display()));
    let has = |file| parent.text(file).is_some_and(|text| cgroup::names(&text, controller));
    if access(parent.folder.join("cgroup.procs"), Access::WRITE_OK).is_err() {
        return refuse("no permission to move a process into it".to_owned());
    }
    if has("cgroup.subtree_control") {
        return Ok(());
    }
    if !has("cgroup.controllers") {
        return refuse(format!("the {controller} controller is not delegated to it"));
    }
    let ask = || fs::write(parent.folder.join("cgroup.subtree_control"), format!("+{controller}"));
    let asked = match ask() {
        Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy && move_ourselves_down(parent) => ask(),
        asked => asked,
    };
    match asked {
        Ok(()) => Ok(()),
        Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy => {
            refuse("other processes run in it, so it cannot have children with limits".to_owned())
        }
        Err(cause) => refuse(plain(&cause)),
    }
}

/// A v2 cgroup whose children have limits must not contain processes. If it contains only Loadline's, moves them to a
/// child; its directory disappears with the scope or container.
fn move_ourselves_down(parent: &Cgroup) -> bool {
    let members = parent.pids();
    let mut ours: HashSet<u32> = processes::descendants(std::process::id()).iter().map(|p| p.pid).collect();
    ours.insert(std::process::id());
    let home = parent.folder.join(names::home());
    !members.is_empty()
        && members.iter().all(|pid| ours.contains(pid))
        && fs::create_dir(&home).is_ok()
        && members.iter().all(|pid| fs::write(home.join("cgroup.procs"), pid.to_string()).is_ok())
}

/// Removes a cgroup and its descendants, waiting until the kernel releases them.
pub(super) fn remove(cgroup: &Path, clock: Clock) {
    // If this fails, the next Loadline removes it.
    clock.wait_until(REMOVE_WITHIN, TRY_AGAIN_AFTER, || {
        // One pass, deepest first; busy cgroups wait for the next pass.
        for child in below(cgroup).iter().rev() {
            let _ = fs::remove_dir(child);
        }
        !fs::remove_dir(cgroup).is_err_and(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
    });
}

/// Removes cgroups of Loadlines that were killed with their guardians, and kills the processes in them.
fn sweep(parent: &Path, clock: Clock) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (name, folder) = (entry.file_name(), entry.path());
        if name.to_str().is_some_and(is_home_left_behind) {
            // Another program may have started its processes, so they and the cgroup stay.
            let _ = fs::remove_dir(&folder);
        } else if name.to_str().is_some_and(is_left_behind) && kill_members(&folder, clock) {
            remove(&folder, clock);
        }
    }
}

/// Kills all processes in a cgroup and its descendants. Returns whether none is left.
fn kill_members(cgroup: &Path, clock: Clock) -> bool {
    // This Loadline may itself be part of the leftover subject.
    if pids_of(cgroup).any(|pid| pid == std::process::id()) {
        return false;
    }
    // Linux 5.14 and later, on v2.
    let _ = File::options().write(true).open(cgroup.join("cgroup.kill")).and_then(|mut file| file.write_all(b"1"));
    processes::kill_all(|| members(cgroup), clock, KILL_WITHIN) == 0
}

/// The live processes of a cgroup and its descendants.
fn members(cgroup: &Path) -> Vec<Process> {
    let mut found: Vec<Process> = pids_of(cgroup).filter_map(Process::read).filter(|found| found.lives).collect();
    // A process may end and its pid be reused before it is read; the pid is then no longer listed.
    let listed: HashSet<u32> = pids_of(cgroup).collect();
    found.retain(|found| listed.contains(&found.pid));
    found
}

fn pids_of(cgroup: &Path) -> impl Iterator<Item = u32> {
    let folders = [cgroup.to_owned()].into_iter().chain(below(cgroup));
    let texts = folders.filter_map(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
    texts.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cgroup::CPU;

    #[test]
    fn removing_an_abandoned_cgroup_spares_our_own_process() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        fs::create_dir(folder.path().join("below")).unwrap();
        // A pid that Linux never assigns, and this process.
        fs::write(folder.path().join("cgroup.procs"), "999999999\n").unwrap();
        fs::write(folder.path().join("below/cgroup.procs"), format!("0\n{own}\n")).unwrap();
        assert_eq!(members(folder.path()).iter().map(|found| found.pid).collect::<Vec<_>>(), [own]);
        assert!(!kill_members(folder.path(), Clock::start()));
        fs::write(folder.path().join("below/cgroup.procs"), "").unwrap();
        assert!(kill_members(folder.path(), Clock::start()));
    }

    #[test]
    fn only_cgroups_of_ended_loadlines_on_this_machine_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let left = names::left_behind();
        let names = [left.clone(), format!("{left}-home"), names::new(), "loadline-999999999-0".to_owned()];
        let folders = names.map(|name| parent.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        // Processes in a home cgroup are not killed.
        fs::write(folders[1].join("cgroup.procs"), "1\n").unwrap();
        sweep(parent.path(), Clock::start());
        assert_eq!(folders.map(|folder| folder.exists()), [false, true, true, true]);
    }

    #[test]
    fn v2_children_get_delegated_controllers() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let parent = Cgroup { version: CgroupVersion::V2, folder: folder.path().into(), mount: folder.path().into() };
        let refusal = || enable(&parent, CPU).unwrap_err();
        assert!(refusal().ends_with(": no permission to move a process into it"), "{}", refusal());
        write("cgroup.procs", "");
        write("cgroup.controllers", "memory pids\n");
        assert!(refusal().ends_with(": the cpu controller is not delegated to it"), "{}", refusal());
        write("cgroup.controllers", "cpu memory pids\n");
        assert_eq!(enable(&parent, CPU), Ok(()));
        assert_eq!(parent.text("cgroup.subtree_control").unwrap(), "+cpu");
    }
}
