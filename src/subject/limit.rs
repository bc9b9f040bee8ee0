//! The memory limit of the subject: a cgroup of its own, set, verified, and removed at the end.

use super::keeper::Keeper;
use super::limit_ways;
use super::names::{self, is_home_left_behind, is_left_behind};
use super::own_cgroup;
use super::processes::{self, Process};
use super::slurm_step::{Job, Step};
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::kernel::cgroup::{Cgroup, CgroupVersion, Limit, below, names_memory};
use crate::kernel::machine::MemInfo;
use crate::kernel::process::page_size;
use crate::units::Bytes;
use rustix::fs::{Access, access};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The kernel lets go of a cgroup only after its last process is reaped and its pages are handed on.
const REMOVE_WITHIN: Duration = Duration::from_secs(5);
/// For the processes in the cgroup of a killed Loadline; one in an uninterruptible sleep can take seconds to die.
const KILL_WITHIN: Duration = Duration::from_secs(5);
/// Between two tries to remove.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// The limit that [`probe`] sets: any value of a page or more would do.
const PROBE_LIMIT: Bytes = Bytes::mib(64);

/// One try in one place; says why not.
type Attempt<T> = std::result::Result<T, String>;

/// The memory cgroup of one subject. Removed when dropped, if it was made here.
#[derive(Debug)]
pub struct MemoryCgroup {
    /// The cgroup by its folder.
    pub cgroup: Cgroup,
    /// The limit that the kernel enforces: the one asked for, rounded down to pages.
    pub limit: Bytes,
    /// Whether somebody else made it, such as a container tool, and removes it.
    adopted: bool,
    clock: Clock,
}

impl MemoryCgroup {
    /// Makes a cgroup with this limit, without swap, and verifies that the kernel took it.
    pub fn create(limit: Bytes, clock: Clock) -> Result<Self> {
        let own = own_cgroup::of_process(std::process::id())?;
        let mut refusals = Vec::new();
        for parent in own_cgroup::candidates(&own) {
            sweep(&parent.folder, clock);
            match make(&parent, limit, clock) {
                Ok(cgroup) => return cgroup.checked_against_outer(limit),
                Err(refusal) => refusals.push(refusal),
            }
        }
        let error = Error::machine(format!("cannot set a memory limit of {limit}"));
        let error = refusals.into_iter().fold(error, Error::at);
        Err(error.hint(limit_ways::hint()))
    }

    /// The cgroup that somebody else made for this process, its own or the nearest above that has a limit where that is
    /// how limits are set. Verifies that it has the limit, and no swap.
    ///
    /// # Errors
    /// `Machine` where it has not.
    pub(super) fn adopt(pid: u32, asked: Bytes, keeper: &Keeper, clock: Clock) -> Result<Self> {
        let (word, limit) = (keeper.word(), keeper.limit_set(asked));
        let own = own_cgroup::of_process(pid)?;
        let has_limit = |cgroup: &Cgroup| matches!(cgroup.own_limit(), Ok(Some(_)));
        let cgroup = match keeper {
            Keeper::Container(_) => own,
            Keeper::Step(_) => std::iter::successors(Some(own.clone()), Cgroup::parent).find(has_limit).unwrap_or(own),
        };
        let within = |error: Error| error.at(format!("in {}", cgroup.folder.display()));
        let set = cgroup.own_limit().map_err(|cause| {
            within(Error::machine(format!("the limit of the {word} cannot be read: {}", plain(&cause))))
        })?;
        if set != Some(whole_pages(limit)) {
            let other = set.map_or_else(|| "none".to_owned(), |set| set.to_string());
            return Err(within(Error::machine(format!("the {word} was to have a limit of {limit}, but has {other}")))
                .hint(keeper.limit_hint()));
        }
        if has_swap() && may_swap(&cgroup, limit) {
            return Err(within(Error::machine(format!("the {word} may use swap beyond its limit of {limit}")))
                .hint(keeper.swap_hint()));
        }
        Self { cgroup, limit: set.unwrap_or(limit), adopted: true, clock }.checked_against_outer(limit)
    }

    /// A limit above that of an outer cgroup would never be the one that counts.
    fn checked_against_outer(self, asked: Bytes) -> Result<Self> {
        check_outer(self.cgroup.parent().and_then(|parent| parent.limit()), self.limit, asked)
            .map_err(|error| error.at(format!("in {}", self.cgroup.folder.display())))?;
        Ok(self)
    }

    /// Creates a cgroup of ours with this limit. If none can be made, returns the keeper that sets the limit instead:
    /// the Slurm that runs this job.
    ///
    /// # Errors
    /// If there is neither, or the limit would have no effect.
    pub(super) fn create_or_find_keeper(limit: Bytes, clock: Clock) -> Result<(Option<Self>, Option<Keeper>)> {
        let why = match Self::create(limit, clock) {
            Ok(created) => return Ok((Some(created), None)),
            Err(why) => why,
        };
        let job = Job::here().ok_or(why)?;
        check_outer(outer(), limit, limit)?;
        Ok((None, Some(Keeper::Step(Step::new(job)))))
    }

    /// How often the kernel killed a process in it, or in one below, for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let own = self.cgroup.oom_kills().unwrap_or(0);
        match self.cgroup.version {
            // Each counts its own processes only.
            CgroupVersion::V1 => own + self.cgroup.below().iter().filter_map(Cgroup::oom_kills).sum::<u64>(),
            CgroupVersion::V2 => own,
        }
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        if !self.adopted {
            remove(&self.cgroup.folder, self.clock);
        }
    }
}

/// Makes, sets and removes a cgroup to see whether limits work here. Returns the one in which those of subjects are
/// made.
///
/// # Errors
/// Says why not, and what to do.
pub fn probe(clock: Clock) -> Result<Cgroup> {
    let mut parent = MemoryCgroup::create(PROBE_LIMIT, clock)?.cgroup.clone();
    parent.folder.pop();
    Ok(parent)
}

/// Refuses a limit that is more than those around it allow.
fn check_outer(outer: Option<Limit>, limit: Bytes, asked: Bytes) -> Result<()> {
    match outer.map(|outer| outer.bytes) {
        Some(outer) if outer < limit => {
            Err(Error::machine(format!("the limit {asked} would have no effect: an outer cgroup allows only {outer}"))
                .hint("choose a limit below that, or run Loadline outside that cgroup"))
        }
        _ => Ok(()),
    }
}

fn make(parent: &Cgroup, limit: Bytes, clock: Clock) -> Attempt<MemoryCgroup> {
    if parent.version == CgroupVersion::V2 {
        enable(parent).map_err(|cause| format!("{}: {cause}", parent.folder.display()))?;
    }
    let folder = parent.folder.join(names::new());
    fs::create_dir(&folder).map_err(|cause| format!("{}: {}", parent.folder.display(), plain(&cause)))?;
    // From here on a failure drops the cgroup, which removes the folder.
    let cgroup = Cgroup { folder, ..parent.clone() };
    let mut made = MemoryCgroup { cgroup, limit, adopted: false, clock };
    made.limit = match parent.version {
        CgroupVersion::V1 => set_v1(&made.cgroup.folder, limit)?,
        CgroupVersion::V2 => set_v2(&made.cgroup.folder, limit)?,
    };
    Ok(made)
}

fn set_v1(cgroup: &Path, limit: Bytes) -> Attempt<Bytes> {
    let set = write_and_verify(&cgroup.join(CgroupVersion::V1.limit_file()), limit)?;
    let with_swap = cgroup.join("memory.memsw.limit_in_bytes");
    // Without swap to be used this limit would only hide how often the other one is met: it is asked first,
    // and newer kernels do not count its refusals.
    if has_swap() && with_swap.exists() {
        write_and_verify(&with_swap, limit)?;
    } else {
        // Without swap accounting at least none is used before the limit is reached.
        let _ = fs::write(cgroup.join("memory.swappiness"), "0");
    }
    Ok(set)
}

/// Whether the machine has any; where it does not say, it may.
pub(super) fn has_swap() -> bool {
    MemInfo::read().is_none_or(|memory| memory.swap_total > Bytes(0))
}

fn set_v2(cgroup: &Path, limit: Bytes) -> Attempt<Bytes> {
    let set = write_and_verify(&cgroup.join(CgroupVersion::V2.limit_file()), limit)?;
    let swap = cgroup.join("memory.swap.max");
    if swap.exists() {
        fs::write(&swap, "0").map_err(|cause| format!("{}: {}", swap.display(), plain(&cause)))?;
    }
    Ok(set)
}

/// Whether a cgroup with this limit may have pages in swap. If swap is not counted (v1 without swap accounting), it
/// may, unless its swappiness is zero.
fn may_swap(cgroup: &Cgroup, limit: Bytes) -> bool {
    let number = |file: &str| cgroup.text(file)?.trim().parse::<u64>().ok();
    match cgroup.version {
        CgroupVersion::V1 => match number("memory.memsw.limit_in_bytes") {
            Some(with_swap) => with_swap > limit.0,
            None => number("memory.swappiness") != Some(0),
        },
        // Without the file the kernel has no swap.
        CgroupVersion::V2 => cgroup.text("memory.swap.max").is_some_and(|text| text.trim() != "0"),
    }
}

/// A limit as the kernel keeps it, in pages.
fn whole_pages(limit: Bytes) -> Bytes {
    Bytes(limit.0 - limit.0 % page_size().0)
}

/// Returns what the kernel says it enforces: whole pages, never more than asked.
fn write_and_verify(file: &Path, limit: Bytes) -> Attempt<Bytes> {
    let refuse = |cause: &io::Error| format!("{}: {}", file.display(), plain(cause));
    fs::write(file, limit.0.to_string()).map_err(|cause| refuse(&cause))?;
    let text = fs::read_to_string(file).map_err(|cause| refuse(&cause))?;
    match text.trim().parse().map(Bytes) {
        Ok(set) if set == whole_pages(limit) => Ok(set),
        _ => Err(format!("{}: wrote {}, but it reads {}", file.display(), limit.0, text.trim())),
    }
}

/// Lets children of a v2 cgroup have the memory controller.
fn enable(parent: &Cgroup) -> Attempt<()> {
    let has_memory = |file| parent.text(file).is_some_and(|text| names_memory(&text));
    if access(parent.folder.join("cgroup.procs"), Access::WRITE_OK).is_err() {
        return Err("no permission to move a process into it".to_owned());
    }
    if has_memory("cgroup.subtree_control") {
        return Ok(());
    }
    if !has_memory("cgroup.controllers") {
        return Err("the memory controller is not delegated to it".to_owned());
    }
    let ask = || fs::write(parent.folder.join("cgroup.subtree_control"), "+memory");
    match ask() {
        Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy && move_ourselves_down(parent) => ask(),
        outcome => outcome,
    }
    .map_err(|cause| match cause.kind() {
        io::ErrorKind::ResourceBusy => "other processes run in it, so it cannot have children with limits".to_owned(),
        _ => plain(&cause),
    })
}

/// A v2 cgroup with children that have limits must hold no processes itself. If it holds nobody but us, we move into a
/// child of it; the folder goes when the scope or container ends.
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

/// The smallest limit among the cgroups in which that of a subject is made: none above it has an effect.
pub fn outer() -> Option<Limit> {
    own_cgroup::of_process(std::process::id()).ok()?.limit()
}

/// Removes a cgroup and those below it, waiting for the kernel to let go of them.
pub(super) fn remove(cgroup: &Path, clock: Clock) {
    // Gone, or beyond us in the end: the next Loadline sweeps it.
    clock.wait_until(REMOVE_WITHIN, TRY_AGAIN_AFTER, || {
        // One round, the deepest first: what is still busy waits for the next.
        for child in below(cgroup).iter().rev() {
            let _ = fs::remove_dir(child);
        }
        !fs::remove_dir(cgroup).is_err_and(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
    });
}

/// Removes cgroups of Loadlines that were killed together with their guardians, and kills what still runs in them.
fn sweep(parent: &Path, clock: Clock) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (name, folder) = (entry.file_name(), entry.path());
        if name.to_str().is_some_and(is_home_left_behind) {
            // Another program may have started the processes in it, so they stay, and with them the cgroup.
            let _ = fs::remove_dir(&folder);
        } else if name.to_str().is_some_and(is_left_behind) && kill_members(&folder, clock) {
            remove(&folder, clock);
        }
    }
}

/// Kills all processes of a cgroup and those below it. Whether none is left.
fn kill_members(cgroup: &Path, clock: Clock) -> bool {
    // This very Loadline may be a part of the subject that was left behind.
    if pids_of(cgroup).any(|pid| pid == std::process::id()) {
        return false;
    }
    // Linux 5.14 has a file for it on v2.
    let _ = File::options().write(true).open(cgroup.join("cgroup.kill")).and_then(|mut file| file.write_all(b"1"));
    processes::kill_all(|| members(cgroup), clock, KILL_WITHIN) == 0
}

/// The living processes of a cgroup and those below it.
fn members(cgroup: &Path) -> Vec<Process> {
    let mut found: Vec<Process> = pids_of(cgroup).filter_map(Process::read).filter(|found| found.lives).collect();
    // If one ended before it was read and another process took its id, the id is no longer listed.
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

    #[test]
    fn what_the_kernel_did_not_take_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.max");
        assert_eq!(write_and_verify(&file, Bytes::mib(64)), Ok(Bytes::mib(64)));
        // A plain file does not round down to pages as the kernel does.
        let refusal = write_and_verify(&file, Bytes(Bytes::mib(1).0 + 1)).unwrap_err();
        assert!(refusal.ends_with("wrote 1048577, but it reads 1048577"), "{refusal}");
    }

    #[test]
    fn what_may_swap_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let swaps = || {
            [CgroupVersion::V1, CgroupVersion::V2].map(|version| {
                let cgroup = Cgroup { version, folder: folder.path().into(), mount: folder.path().into() };
                may_swap(&cgroup, Bytes(4096))
            })
        };
        assert_eq!(swaps(), [true, false]);
        write("memory.swappiness", "0\n");
        write("memory.swap.max", "max\n");
        assert_eq!(swaps(), [false, true]);
        write("memory.memsw.limit_in_bytes", "4096\n");
        write("memory.swap.max", "0\n");
        assert_eq!(swaps(), [false, false]);
        write("memory.memsw.limit_in_bytes", "8192\n");
        assert_eq!(swaps(), [true, false]);
    }

    #[test]
    fn who_is_in_a_cgroup_that_was_left_does_not_kill_itself() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        fs::create_dir(folder.path().join("below")).unwrap();
        // A pid that Linux never gives, and our own.
        fs::write(folder.path().join("cgroup.procs"), "999999999\n").unwrap();
        fs::write(folder.path().join("below/cgroup.procs"), format!("0\n{own}\n")).unwrap();
        assert_eq!(members(folder.path()).iter().map(|found| found.pid).collect::<Vec<_>>(), [own]);
        assert!(!kill_members(folder.path(), Clock::start()));
        fs::write(folder.path().join("below/cgroup.procs"), "").unwrap();
        assert!(kill_members(folder.path(), Clock::start()));
    }

    #[test]
    fn only_cgroups_of_loadlines_of_this_place_that_are_gone_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let left = names::left_behind();
        let names = [left.clone(), format!("{left}-home"), names::new(), "loadline-999999999-0".to_owned()];
        let folders = names.map(|name| parent.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        // The processes of a home are left alone.
        fs::write(folders[1].join("cgroup.procs"), "1\n").unwrap();
        sweep(parent.path(), Clock::start());
        assert_eq!(folders.map(|folder| folder.exists()), [false, true, true, true]);
    }

    #[test]
    fn a_probe_leaves_nothing_behind() {
        let clock = Clock::start();
        match MemoryCgroup::create(PROBE_LIMIT, clock) {
            Ok(made) => {
                let path = made.cgroup.folder.clone();
                assert!(path.is_dir());
                assert_eq!((made.limit, made.oom_kills()), (PROBE_LIMIT, 0));
                drop(made);
                assert!(!path.exists());
                assert!(path.starts_with(probe(clock).unwrap().folder));
            }
            Err(error) => loadline_test_support::skip("LOADLINE_LIMITS", &error.what),
        }
    }
}
