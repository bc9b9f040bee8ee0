//! The subject's memory limit: creates, verifies, and removes its cgroup.

use super::keeper::Keeper;
use super::limit_ways;
use super::made_cgroup::{Attempt, MadeCgroup, write_and_read};
use super::own_cgroup;
use super::slurm_step::{Job, Step};
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::kernel::cgroup::{Cgroup, CgroupVersion, Limit, MEMORY};
use crate::kernel::machine::MemInfo;
use crate::kernel::process::page_size;
use crate::units::Bytes;
use std::fs;
use std::path::Path;

/// The limit that [`probe`] sets; any value of at least a page works.
const PROBE_LIMIT: Bytes = Bytes::mib(64);

/// A subject's memory cgroup. Removed on drop if it was created here.
#[derive(Debug)]
pub struct MemoryCgroup {
    /// The cgroup.
    pub cgroup: Cgroup,
    /// The limit that the kernel enforces: the requested one rounded down to pages. `None` if it only counts.
    pub limit: Option<Bytes>,
    /// Set if the cgroup was created here. Otherwise, its creator, such as a container tool, removes it.
    _made: Option<MadeCgroup>,
}

impl MemoryCgroup {
    /// Creates a cgroup with this limit and without swap, and verifies it. Without a limit, the cgroup only counts.
    pub fn create(limit: Option<Bytes>, clock: Clock) -> Result<Self> {
        let cannot = Error::machine(match limit {
            Some(limit) => format!("cannot set a memory limit of {limit}"),
            None => "cannot create a memory cgroup for the server".to_owned(),
        });
        let set = |cgroup: &Cgroup| {
            let set = limit.map(|limit| match cgroup.version {
                CgroupVersion::V1 => set_v1(&cgroup.folder, limit),
                CgroupVersion::V2 => set_v2(&cgroup.folder, limit),
            });
            set.transpose()
        };
        let (made, set) =
            MadeCgroup::create(MEMORY, clock, cannot, set).map_err(|error| error.hint(limit_ways::hint(MEMORY)))?;
        Self { cgroup: made.cgroup.clone(), limit: set, _made: Some(made) }.checked_against_outer(limit)
    }

    /// The cgroup that a keeper created for this process: its own, or the nearest ancestor with a limit if the keeper
    /// sets limits there. Verifies the requested limit and the absence of swap. Errors: `Machine` if they differ.
    pub(super) fn adopt(pid: u32, asked: Option<Bytes>, keeper: &Keeper) -> Result<Self> {
        let own = own_cgroup::of_process(pid, MEMORY)?;
        let Some(asked) = asked else { return Ok(Self { cgroup: own, limit: None, _made: None }) };
        let (word, limit) = (keeper.word(), keeper.limit_set(asked));
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
            return Err(within(Error::machine(format!("the {word} should have a limit of {limit}, but has {other}")))
                .hint(keeper.limit_hint()));
        }
        if has_swap() && may_swap(&cgroup, limit) {
            return Err(within(Error::machine(format!("the {word} can use swap beyond its limit of {limit}")))
                .hint(keeper.swap_hint()));
        }
        Self { cgroup, limit: set.or(Some(limit)), _made: None }.checked_against_outer(Some(limit))
    }

    /// Rejects a limit above an outer cgroup's, because it would have no effect.
    fn checked_against_outer(self, asked: Option<Bytes>) -> Result<Self> {
        if let Some((limit, asked)) = self.limit.zip(asked) {
            check_outer(self.cgroup.parent().and_then(|parent| parent.limit()), limit, asked)
                .map_err(|error| error.at(format!("in {}", self.cgroup.folder.display())))?;
        }
        Ok(self)
    }

    /// Creates a cgroup with this limit. If that fails, returns the keeper that can set the limit: the Slurm of this
    /// job. Fails if there is none, or if the limit would have no effect.
    pub(super) fn create_or_find_keeper(limit: Bytes, clock: Clock) -> Result<(Option<Self>, Option<Keeper>)> {
        let why = match Self::create(Some(limit), clock) {
            Ok(created) => return Ok((Some(created), None)),
            Err(why) => why,
        };
        let job = Job::here().ok_or(why)?;
        check_outer(outer(), limit, limit)?;
        Ok((None, Some(Keeper::Step(Step::new(job)))))
    }

    /// The number of OOM kills in this cgroup and those below it.
    pub fn oom_kills(&self) -> u64 {
        let own = self.cgroup.oom_kills().unwrap_or(0);
        match self.cgroup.version {
            // Each cgroup counts only its own processes.
            CgroupVersion::V1 => own + self.cgroup.below().iter().filter_map(Cgroup::oom_kills).sum::<u64>(),
            CgroupVersion::V2 => own,
        }
    }
}

/// Creates and removes a cgroup with a limit to test whether limits work here. Returns the cgroup in which subjects'
/// cgroups are created.
pub fn probe(clock: Clock) -> Result<Cgroup> {
    let mut parent = MemoryCgroup::create(Some(PROBE_LIMIT), clock)?.cgroup.clone();
    parent.folder.pop();
    Ok(parent)
}

/// Rejects a limit above those of enclosing cgroups.
fn check_outer(outer: Option<Limit>, limit: Bytes, asked: Bytes) -> Result<()> {
    match outer.map(|outer| outer.bytes) {
        Some(outer) if outer < limit => {
            Err(Error::machine(format!("the limit {asked} would have no effect: an outer cgroup allows only {outer}"))
                .hint("choose a limit below that, or run Loadline outside that cgroup"))
        }
        _ => Ok(()),
    }
}

/// Returns the limit that the kernel reports: whole pages, never more than requested.
fn write_and_verify(file: &Path, limit: Bytes) -> Attempt<Bytes> {
    let text = write_and_read(file, &limit.0.to_string())?;
    match text.trim().parse().map(Bytes) {
        Ok(set) if set == whole_pages(limit) => Ok(set),
        _ => Err(format!("{}: wrote {}, but read back {}", file.display(), limit.0, text.trim())),
    }
}

fn set_v1(cgroup: &Path, limit: Bytes) -> Attempt<Bytes> {
    let set = write_and_verify(&cgroup.join(CgroupVersion::V1.limit_file()), limit)?;
    let with_swap = cgroup.join("memory.memsw.limit_in_bytes");
    // On a machine without swap, this limit would only hide how often the other one is reached: the kernel checks this
    // one first, and newer kernels do not count its refusals.
    if has_swap() && with_swap.exists() {
        write_and_verify(&with_swap, limit)?;
    } else {
        // Without swap accounting, this at least prevents swapping below the limit.
        let _ = fs::write(cgroup.join("memory.swappiness"), "0");
    }
    Ok(set)
}

/// Whether the machine has swap; assumed if unknown.
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

/// Whether a cgroup with this limit can have pages in swap. Without swap accounting (v1), it can unless its swappiness
/// is zero.
fn may_swap(cgroup: &Cgroup, limit: Bytes) -> bool {
    let number = |file: &str| cgroup.text(file)?.trim().parse::<u64>().ok();
    match cgroup.version {
        CgroupVersion::V1 => match number("memory.memsw.limit_in_bytes") {
            Some(with_swap) => with_swap > limit.0,
            None => number("memory.swappiness") != Some(0),
        },
        // If the file is missing, the kernel does not support swap.
        CgroupVersion::V2 => cgroup.text("memory.swap.max").is_some_and(|text| text.trim() != "0"),
    }
}

fn whole_pages(limit: Bytes) -> Bytes {
    Bytes(limit.0 - limit.0 % page_size().0)
}

/// The smallest limit among the cgroups that enclose a subject's: a higher limit has no effect.
pub fn outer() -> Option<Limit> {
    own_cgroup::of_process(std::process::id(), MEMORY).ok()?.limit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_the_kernel_changes_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.max");
        assert_eq!(write_and_verify(&file, Bytes::mib(64)), Ok(Bytes::mib(64)));
        // Unlike the kernel, a plain file does not round down to pages.
        let refusal = write_and_verify(&file, Bytes(Bytes::mib(1).0 + 1)).unwrap_err();
        assert!(refusal.ends_with("wrote 1048577, but read back 1048577"), "{refusal}");
    }

    #[test]
    fn allowed_swap_is_detected() {
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
    fn a_memory_limit_probe_leaves_no_cgroup() {
        let clock = Clock::start();
        match MemoryCgroup::create(Some(PROBE_LIMIT), clock) {
            Ok(made) => {
                let path = made.cgroup.folder.clone();
                assert!(path.is_dir());
                assert_eq!((made.limit, made.oom_kills()), (Some(PROBE_LIMIT), 0));
                drop(made);
                assert!(!path.exists());
                assert!(path.starts_with(probe(clock).unwrap().folder));
            }
            Err(error) => loadline_test_support::skip("LOADLINE_LIMITS", &error.what),
        }
    }
}
