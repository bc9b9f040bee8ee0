//! The memory limit of the subject: a cgroup of its own, set, verified, and removed at the end.

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

/// The limit that [`probe`] sets: any value of a page or more would do.
const PROBE_LIMIT: Bytes = Bytes::mib(64);

/// The memory cgroup of one subject. Removed when dropped, if it was made here.
#[derive(Debug)]
pub struct MemoryCgroup {
    /// The cgroup by its folder.
    pub cgroup: Cgroup,
    /// The limit that the kernel enforces: the one asked for, rounded down to pages. `None` if it only counts.
    pub limit: Option<Bytes>,
    /// Set if the cgroup was made here. Otherwise something else, such as a container tool, made it and removes it.
    _made: Option<MadeCgroup>,
}

impl MemoryCgroup {
    /// Makes a cgroup with this limit, without swap, and verifies that the kernel took it. Without a limit it only
    /// counts.
    pub fn create(limit: Option<Bytes>, clock: Clock) -> Result<Self> {
        let cannot = Error::machine(match limit {
            Some(limit) => format!("cannot set a memory limit of {limit}"),
            None => "cannot make a memory cgroup for the subject".to_owned(),
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

    /// The cgroup that somebody else made for this process, its own or the nearest above that has a limit where that is
    /// how limits are set. Verifies that it has the limit that was asked for, and no swap.
    ///
    /// # Errors
    /// `Machine` where it has not.
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
            return Err(within(Error::machine(format!("the {word} was to have a limit of {limit}, but has {other}")))
                .hint(keeper.limit_hint()));
        }
        if has_swap() && may_swap(&cgroup, limit) {
            return Err(within(Error::machine(format!("the {word} may use swap beyond its limit of {limit}")))
                .hint(keeper.swap_hint()));
        }
        Self { cgroup, limit: set.or(Some(limit)), _made: None }.checked_against_outer(Some(limit))
    }

    /// A limit above that of an outer cgroup would never be the one that counts.
    fn checked_against_outer(self, asked: Option<Bytes>) -> Result<Self> {
        if let Some((limit, asked)) = self.limit.zip(asked) {
            check_outer(self.cgroup.parent().and_then(|parent| parent.limit()), limit, asked)
                .map_err(|error| error.at(format!("in {}", self.cgroup.folder.display())))?;
        }
        Ok(self)
    }

    /// Creates a cgroup of ours with this limit. If none can be made, returns the keeper that sets the limit instead:
    /// the Slurm that runs this job.
    ///
    /// # Errors
    /// If there is neither, or the limit would have no effect.
    pub(super) fn create_or_find_keeper(limit: Bytes, clock: Clock) -> Result<(Option<Self>, Option<Keeper>)> {
        let why = match Self::create(Some(limit), clock) {
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

/// Makes, sets and removes a cgroup to see whether limits work here. Returns the one in which those of subjects are
/// made.
///
/// # Errors
/// Says why not, and what to do.
pub fn probe(clock: Clock) -> Result<Cgroup> {
    let mut parent = MemoryCgroup::create(Some(PROBE_LIMIT), clock)?.cgroup.clone();
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

/// Returns what the kernel says it enforces: whole pages, never more than asked.
fn write_and_verify(file: &Path, limit: Bytes) -> Attempt<Bytes> {
    let text = write_and_read(file, &limit.0.to_string())?;
    match text.trim().parse().map(Bytes) {
        Ok(set) if set == whole_pages(limit) => Ok(set),
        _ => Err(format!("{}: wrote {}, but it reads {}", file.display(), limit.0, text.trim())),
    }
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

/// The smallest limit among the cgroups in which that of a subject is made: none above it has an effect.
pub fn outer() -> Option<Limit> {
    own_cgroup::of_process(std::process::id(), MEMORY).ok()?.limit()
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
    fn a_probe_leaves_nothing_behind() {
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
