//! The subject's CPU limit: a cgroup quota per 100 ms period (kernel `scheduler/sched-bwc.rst`, `cgroup-v2.rst`), set
//! and verified. On v2, it shares the memory limit's cgroup; on v1, it has its own in another hierarchy.

use super::keeper::Keeper;
use super::limit_ways;
use super::made_cgroup::{Attempt, MadeCgroup, enable, write_and_read};
use super::own_cgroup;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::cgroup::{CPU, Cgroup, CgroupVersion};
use crate::kernel::cpu_cgroup::{self, Throttled};
use crate::units::Millicpus;

/// The limit that [`probe`] sets; it fits every machine.
const PROBE_LIMIT: Millicpus = Millicpus(500);

/// The cgroup that limits a subject's CPU time. Removed on drop if it was created here.
#[derive(Debug)]
pub(super) struct CpuCgroup {
    pub(super) cgroup: Cgroup,
    _made: Option<MadeCgroup>,
}

impl CpuCgroup {
    /// Sets this limit in the memory cgroup if that controls CPU time too, otherwise in a separate one. Errors:
    /// `Machine` if it cannot be set, or would have no effect.
    pub(super) fn create(limit: Millicpus, memory: Option<&Cgroup>, clock: Clock) -> Result<Self> {
        let own = own_cgroup::of_process(std::process::id(), CPU)?;
        let shared = memory.filter(|memory| (memory.version, &memory.mount) == (CgroupVersion::V2, &own.mount));
        let cannot = || Error::machine(format!("cannot set a limit of {limit}"));
        let made = match shared {
            Some(memory) => set_beside_memory(memory, limit)
                .map(|()| Self { cgroup: memory.clone(), _made: None })
                .map_err(|refusal| cannot().at(refusal)),
            None => MadeCgroup::create(CPU, clock, cannot(), |cgroup| set(cgroup, limit))
                .map(|(made, ())| Self { cgroup: made.cgroup.clone(), _made: Some(made) }),
        };
        let made = made.map_err(|error| error.hint(limit_ways::hint(CPU)))?;
        check_outer(&made.cgroup, limit)?;
        Ok(made)
    }

    /// The cgroup in which a container tool limited a process: its own, or the nearest ancestor with a limit. Errors:
    /// `Machine` if the limit differs or is missing.
    pub(super) fn adopt(pid: u32, limit: Millicpus, keeper: &Keeper) -> Result<Self> {
        let own = own_cgroup::of_process(pid, CPU)?;
        let has_limit = |cgroup: &Cgroup| cpu_cgroup::limit(cgroup).is_some();
        let cgroup = std::iter::successors(Some(own.clone()), Cgroup::parent).find(has_limit).unwrap_or(own);
        match cpu_cgroup::limit(&cgroup) {
            Some(set) if set == limit => Ok(Self { cgroup, _made: None }),
            other => {
                let other = other.map_or_else(|| "none".to_owned(), |other| other.to_string());
                let what = format!("the {} should have a limit of {limit}, but has {other}", keeper.word());
                Err(Error::machine(what).at(format!("in {}", cgroup.folder.display())).hint(keeper.limit_hint()))
            }
        }
    }

    /// How much the cgroup has throttled the subject so far.
    pub(super) fn throttled(&self) -> Option<Throttled> {
        Throttled::of(&self.cgroup)
    }
}

/// Creates and removes a cgroup with a limit to test whether CPU limits work here. Returns the cgroup in which
/// subjects' cgroups are created.
pub fn probe(clock: Clock) -> Result<Cgroup> {
    let mut parent = CpuCgroup::create(PROBE_LIMIT, None, clock)?.cgroup.clone();
    parent.folder.pop();
    Ok(parent)
}

fn set_beside_memory(memory: &Cgroup, limit: Millicpus) -> Attempt<()> {
    memory.parent().map_or(Ok(()), |parent| enable(&parent, CPU))?;
    set(memory, limit)
}

/// Sets and verifies the limit.
fn set(cgroup: &Cgroup, limit: Millicpus) -> Attempt<()> {
    let (quota, period) = (limit.quota_us(), Millicpus::PERIOD_US);
    let writes = match cgroup.version {
        CgroupVersion::V1 => {
            vec![("cpu.cfs_period_us", period.to_string()), ("cpu.cfs_quota_us", quota.to_string())]
        }
        CgroupVersion::V2 => vec![("cpu.max", format!("{quota} {period}"))],
    };
    for (file, text) in writes {
        let path = cgroup.folder.join(file);
        let read = write_and_read(&path, &text)?;
        if read.trim() != text {
            return Err(format!("{}: wrote {text}, but read back {}", path.display(), read.trim()));
        }
    }
    Ok(())
}

/// Rejects a limit above those of enclosing cgroups.
fn check_outer(cgroup: &Cgroup, limit: Millicpus) -> Result<()> {
    let above = std::iter::successors(cgroup.parent(), Cgroup::parent);
    match above.filter_map(|above| cpu_cgroup::limit(&above)).min() {
        Some(outer) if outer < limit => Err(Error::machine(format!(
            "the limit of {limit} would have no effect: an outer cgroup allows only {outer}"
        ))
        .at(format!("in {}", cgroup.folder.display()))
        .hint("choose a limit below that, or run Loadline outside that cgroup")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn cgroup(version: CgroupVersion, folder: &Path, mount: &Path) -> Cgroup {
        Cgroup { version, folder: folder.into(), mount: mount.into() }
    }

    #[test]
    fn a_cpu_limit_is_a_quota_per_100_ms() {
        let folder = tempfile::tempdir().unwrap();
        let of = |version| cgroup(version, folder.path(), folder.path());
        let text = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!(set(&of(CgroupVersion::V1), Millicpus(500)), Ok(()));
        assert_eq!((text("cpu.cfs_quota_us"), text("cpu.cfs_period_us")), ("50000".to_owned(), "100000".to_owned()));
        assert_eq!(set(&of(CgroupVersion::V2), Millicpus(1500)), Ok(()));
        assert_eq!(text("cpu.max"), "150000 100000");
        let nowhere = set(&cgroup(CgroupVersion::V2, &folder.path().join("none"), folder.path()), Millicpus(500));
        assert!(nowhere.unwrap_err().ends_with("/none/cpu.max: No such file or directory"));
    }

    #[test]
    fn a_v2_cgroup_has_both_memory_and_cpu_limits() {
        let parent = tempfile::tempdir().unwrap();
        let memory = parent.path().join("loadline-1");
        fs::create_dir(&memory).unwrap();
        fs::write(parent.path().join("cgroup.procs"), "").unwrap();
        fs::write(parent.path().join("cgroup.controllers"), "memory\n").unwrap();
        let memory = cgroup(CgroupVersion::V2, &memory, parent.path());
        let refusal = set_beside_memory(&memory, Millicpus(500)).unwrap_err();
        assert!(refusal.ends_with(": the cpu controller is not delegated to it"), "{refusal}");
        fs::write(parent.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(set_beside_memory(&memory, Millicpus(500)), Ok(()));
        assert_eq!(cpu_cgroup::limit(&memory), Some(Millicpus(500)));
    }

    #[test]
    fn a_cpu_limit_above_an_outer_one_is_rejected() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("cpu.max"), "100000 100000\n").unwrap();
        let own = cgroup(CgroupVersion::V2, &parent.path().join("loadline-1"), parent.path());
        assert!(check_outer(&own, Millicpus(1000)).is_ok());
        let error = check_outer(&own, Millicpus(1500)).unwrap_err();
        let what = "the limit of 1.50 CPUs would have no effect: an outer cgroup allows only 1.00 CPUs";
        assert_eq!(error.what, what);
    }

    #[test]
    fn a_cpu_limit_probe_leaves_no_cgroup() {
        let clock = Clock::start();
        match CpuCgroup::create(PROBE_LIMIT, None, clock) {
            Ok(made) => {
                let folder = made.cgroup.folder.clone();
                assert_eq!(cpu_cgroup::limit(&made.cgroup), Some(PROBE_LIMIT));
                // A period may have passed.
                assert_eq!(made.throttled().map(|counted| counted.throttled), Some(0));
                drop(made);
                assert!(!folder.exists() && folder.starts_with(probe(clock).unwrap().folder));
            }
            Err(error) => loadline_test_support::skip("LOADLINE_LIMITS", &error.what),
        }
    }
}
