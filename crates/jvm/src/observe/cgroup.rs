//! The memory cgroup that a process is charged to, v1 or v2. The charge is not the RSS: file pages are charged to
//! whoever touched them first, and page cache and kernel memory count too.

use super::inside::{self, Inside};
use super::procfs::{Process, read_again};
use super::{Read, Reading, Unavailable};
use crate::kernel::cgroup::{self, Cgroup, CgroupVersion, Hierarchy, Limit, MEMORY, names};
use crate::kernel::charge::Charge;
use crate::kernel::machine::Pressure;
use crate::kernel::text::size;
use loadline_base::clock::Clock;
use loadline_base::units::Bytes;
use rustix::fs::fstatfs;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const SOURCE: &str = "cgroup";
/// No file that lists a process's cgroups is this long.
const PLACE_BYTES_MAX: u64 = 1 << 20;
/// The types that statfs(2) reports for cgroup file systems, v1 and v2 (`linux/magic.h`).
const KINDS: [i64; 2] = [0x0027_e0eb, 0x6367_7270];
/// The files that count refused charges on v1. The limit on memory with swap is checked first. If it is no larger than
/// the memory limit, the second file counts all refusals, except that it stayed at zero on Linux 6.18.
const REFUSALS_V1: [&str; 2] = ["memory.failcnt", "memory.memsw.failcnt"];

/// A memory cgroup, open for repeated reads.
#[derive(Debug)]
pub struct MemoryCgroup {
    cgroup: Cgroup,
    usage: File,
    /// Controllers missing from `/proc/cgroups` as the process sees it.
    unlisted: Vec<&'static str>,
    /// The open mount that the cgroup's paths are relative to, if only its processes see that mount.
    _top: Option<OwnedFd>,
    /// The directory of its processes, if this is a copy.
    copied: Option<PathBuf>,
}

/// A memory cgroup's values at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMemory {
    /// Current charge, including nested cgroups.
    pub usage: Bytes,
    /// The largest charge so far; `None` on v2 before kernel 5.19.
    pub peak: Option<Bytes>,
    /// The smallest limit of this cgroup and those above it.
    pub limit: Option<Limit>,
    /// The charge at which the kernel begins to throttle allocation (this cgroup's `memory.high`, v2).
    pub high: Option<Bytes>,
    /// Swap usage; `None` if swap is not accounted for.
    pub swap: Option<Bytes>,
    /// The parts that make up the charge.
    pub charge: Charge,
    /// OOM kills, and charges that hit the limit.
    pub events: Events,
    /// Memory stalls within the cgroup (v2 with PSI).
    pub pressure: Option<Pressure>,
}

/// Counts since the cgroup was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
    /// OOM-killed processes of the cgroup.
    pub oom_kills: u64,
    /// Charges that hit the limit and had to reclaim first, counted at the cgroup with the limit (including everything
    /// below it). Thousands are normal; millions indicate thrashing.
    pub at_limit: u64,
}

impl MemoryCgroup {
    /// The memory cgroup of a process: as Loadline sees it, or else as the process itself sees it, for instance in
    /// another container of the same pod.
    pub fn of(process: &Process) -> Result<Self, Unavailable> {
        let membership = process.text_below("cgroup", PLACE_BYTES_MAX).map_err(Unavailable::io(SOURCE))?;
        let hierarchy = Hierarchy::find(MEMORY).map_err(Unavailable::io(SOURCE))?;
        // Read after the membership: a process that is not ending now was not ending then.
        if hierarchy.as_ref().is_some_and(Hierarchy::loses_ending) && process.stat_now().is_ok_and(|now| now.is_ending)
        {
            return Err(Unavailable::new(SOURCE, "the process is exiting"));
        }
        let here = hierarchy.as_ref().and_then(|hierarchy| hierarchy.cgroup_of(process.pid(), &membership));
        let none = || match &hierarchy {
            Some(hierarchy) => {
                let why = format!("it is not below {} in Loadline's cgroup namespace", hierarchy.mount.display());
                Unavailable::new(SOURCE, why)
            }
            None => Unavailable::new(SOURCE, "no mount with the memory controller"),
        };
        let seen = match here {
            Some(cgroup) => Self::open(cgroup)?,
            None => Self::seen_by(process, &membership).ok_or_else(none)?,
        };
        Ok(Self { unlisted: unlisted_for(process, seen.cgroup.version), ..seen })
    }

    /// Searches below the process's own root, where a container mounts its cgroup. The root may be hostile: only a
    /// cgroup file system is read, and only a cgroup in it that contains the process.
    fn seen_by(process: &Process, membership: &str) -> Option<Self> {
        let mounts = process.text_below("mountinfo", PLACE_BYTES_MAX).ok()?;
        let controls_memory = |mount: &Path| {
            let file = inside::file(process, &mount.join("cgroup.controllers").display().to_string());
            file.and_then(start_of).is_ok_and(|text| names(&text, MEMORY))
        };
        let theirs = Hierarchy::parse(&mounts, MEMORY, controls_memory)?;
        let top = Inside::folder(process, theirs.mount.to_str()?).ok()?.into_fd();
        if !KINDS.contains(&(fstatfs(&top).ok()?.f_type as i64)) {
            return None;
        }
        let mount = format!("/proc/self/fd/{}", top.as_raw_fd()).into();
        let cgroup = Hierarchy { mount, ..theirs }.cgroup_of(process.pid(), membership)?;
        let opened = Self::open(cgroup).ok()?;
        opened.cgroup.pids().contains(&process.pid()).then_some(Self { _top: Some(top), ..opened })
    }

    /// Opens a known memory cgroup, such as one that was just created.
    pub fn open(cgroup: Cgroup) -> Result<Self, Unavailable> {
        let name = match cgroup.version {
            CgroupVersion::V1 => "memory.usage_in_bytes",
            CgroupVersion::V2 => "memory.current",
        };
        let usage = File::open(cgroup.folder.join(name)).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Unavailable::new(SOURCE, format!("{} has no memory controller", cgroup.folder.display()))
            }
            _ => Unavailable::io(SOURCE)(e),
        })?;
        Ok(Self { cgroup, usage, unlisted: Vec::new(), _top: None, copied: None })
    }

    /// Opens the copy of a memory cgroup: `folder` contains its files, `proc` the copies of its processes.
    pub fn open_copy(folder: &Path, proc: &Path) -> Result<Self, Unavailable> {
        let version = match folder.join("memory.usage_in_bytes").exists() {
            true => CgroupVersion::V1,
            false => CgroupVersion::V2,
        };
        let (folder, mount) = (folder.to_owned(), folder.to_owned());
        Ok(Self { copied: Some(proc.to_owned()), ..Self::open(Cgroup { version, folder, mount })? })
    }

    /// Opens one of the cgroup's processes.
    pub fn process(&self, pid: u32) -> Result<Process, Unavailable> {
        self.copied.as_ref().map_or_else(|| Process::open(pid), |proc| Process::open_copy(pid, proc))
    }

    /// The cgroup with its directory.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// The cgroup's name: its directory below the mount point, or `/` for the mount point itself.
    pub fn name(&self) -> String {
        self.cgroup.name_of(&self.cgroup.folder)
    }

    /// On cgroup v2, the controllers that a JDK looks for in `/proc/cgroups` but the process does not find there; empty
    /// if the cgroup was not opened for a process.
    pub fn unlisted(&self) -> &[&'static str] {
        &self.unlisted
    }

    /// Number of processes in the cgroup, excluding nested cgroups.
    pub fn processes(&self) -> u64 {
        self.cgroup.pids().len() as u64
    }

    /// The visible processes of the cgroup and its nested cgroups.
    pub fn pids(&self) -> Vec<u32> {
        self.cgroup.all_pids()
    }

    /// Current charge, including nested cgroups. For a sampler.
    pub fn usage(&self, clock: &Clock) -> Read<Bytes> {
        read_again::<64, _>(SOURCE, &self.usage, clock, size)
    }

    /// Reads everything, file by file.
    pub fn read(&self, clock: &Clock) -> Read<CgroupMemory> {
        let usage = self.usage(clock)?.value;
        Reading::take(clock, || {
            let limit = self.cgroup.limit();
            let size = |file| self.cgroup.size(file);
            let (peak, swap, high) = match self.cgroup.version {
                CgroupVersion::V1 => ("memory.max_usage_in_bytes", None, None),
                CgroupVersion::V2 => ("memory.peak", size("memory.swap.current"), size("memory.high")),
            };
            let stat = self.cgroup.text("memory.stat");
            let mut charge = stat
                .and_then(|stat| Charge::parse(&stat, self.cgroup.version))
                .ok_or_else(|| Unavailable::new(SOURCE, "memory.stat is missing or has an unknown format"))?;
            charge.kernel = charge.kernel.or_else(|| size("memory.kmem.usage_in_bytes"));
            let swap = swap.or_else(|| Some(Bytes(size("memory.memsw.usage_in_bytes")?.0.saturating_sub(usage.0))));
            let events = self.events(limit.as_ref());
            let pressure = self.cgroup.text("memory.pressure").and_then(|text| Pressure::parse(&text));
            Ok(CgroupMemory { usage, peak: size(peak), limit, high, swap, charge, events, pressure })
        })
    }

    fn events(&self, limit: Option<&Limit>) -> Events {
        let folder = limit.map_or(&self.cgroup.folder, |limit| &limit.folder);
        let limited = Cgroup { folder: folder.clone(), ..self.cgroup.clone() };
        let at_limit = match self.cgroup.version {
            CgroupVersion::V1 => {
                REFUSALS_V1.iter().filter_map(|file| limited.text(file)?.trim().parse::<u64>().ok()).sum()
            }
            CgroupVersion::V2 => limited.number("memory.events", "max").unwrap_or(0),
        };
        Events { oom_kills: self.cgroup.oom_kills().unwrap_or(0), at_limit }
    }
}

/// Lists the controllers that the process itself does not find in `/proc/cgroups`: a container may have its own file in
/// place of the kernel's.
fn unlisted_for(process: &Process, version: CgroupVersion) -> Vec<&'static str> {
    const LISTED: &str = "/proc/cgroups";
    if version == CgroupVersion::V1 {
        return Vec::new();
    }
    let file = inside::file(process, LISTED).or_else(|_| File::open(LISTED));
    file.and_then(start_of).map(|text| cgroup::unlisted(&text)).unwrap_or_default()
}

fn start_of(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(PLACE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn open(version: CgroupVersion, folder: PathBuf, mount: &Path) -> MemoryCgroup {
        MemoryCgroup::open(Cgroup { version, folder, mount: mount.to_path_buf() }).unwrap()
    }

    /// A directory tree as in cgroup v2. The limit is on the parent cgroup, as under Slurm.
    #[test]
    fn a_limit_of_a_parent_cgroup_is_found() {
        let root = tempfile::tempdir().unwrap();
        let job = root.path().join("job");
        let step = job.join("step");
        fs::create_dir_all(&step).unwrap();
        for (folder, name, content) in [
            (&job, "memory.max", "67108864\n"),
            (&job, "memory.events", "low 0\nhigh 0\nmax 42\noom 1\noom_kill 3\n"),
            (&step, "memory.max", "max\n"),
            (&step, "memory.current", "1048576\n"),
            (&step, "memory.peak", "2097152\n"),
            (&step, "memory.stat", "anon 4096\nfile 12288\nkernel 8192\nshmem 4096\npgmajfault 5\n"),
            (&step, "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"),
            (&step, "cgroup.procs", "17\n0\n4711\n"),
        ] {
            fs::write(folder.join(name), content).unwrap();
        }
        let cgroup = open(CgroupVersion::V2, step, root.path());
        let all = cgroup.read(&Clock::start()).unwrap().value;
        assert_eq!((all.usage, all.peak), (Bytes::mib(1), Some(Bytes::mib(2))));
        assert_eq!(all.limit, Some(Limit { bytes: Bytes::mib(64), folder: job }));
        assert_eq!(all.events, Events { oom_kills: 1, at_limit: 42 });
        assert_eq!((cgroup.processes(), cgroup.pids()), (3, vec![17, 4711]));
        assert_eq!((all.charge.file, all.charge.kernel), (Bytes::kib(8), Some(Bytes::kib(8))));
    }

    #[test]
    fn refused_charges_are_counted_with_and_without_swap_accounting() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
        write("memory.usage_in_bytes", "4096\n");
        write("memory.stat", "total_cache 0\ntotal_rss 4096\n");
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        write("memory.failcnt", "3\n");
        let cgroup = open(CgroupVersion::V1, folder.path().into(), folder.path());
        let events = || cgroup.read(&Clock::start()).unwrap().value.events;
        assert_eq!(events(), Events { oom_kills: 2, at_limit: 3 });
        write("memory.memsw.failcnt", "4000\n");
        assert_eq!(events(), Events { oom_kills: 2, at_limit: 4003 });
    }

    #[test]
    fn own_cgroup_is_found_or_its_absence_explained() {
        match MemoryCgroup::of(&Process::open(std::process::id()).unwrap()) {
            Ok(cgroup) => assert!(cgroup.usage(&Clock::start()).is_ok()),
            Err(why) => assert!(!why.why.is_empty()),
        }
    }
}
