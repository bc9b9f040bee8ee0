//! The memory cgroup a process is charged to, v1 or v2. The charge is not the RSS: file pages are charged to whoever
//! touched them first, and page cache and kernel memory count too.

pub use super::cgroup_files::{Charge, Version};
use super::cgroup_files::{Mount, parse_limit, parse_membership};
use super::procfs::{Process, read_again};
use super::{Read, Reading, Unavailable};
use crate::clock::Clock;
use crate::kernel::machine::Pressure;
use crate::kernel::text::{keyed_number, size};
use crate::units::Bytes;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const SOURCE: &str = "cgroup";
/// Refused charges, v1. A limit on memory with swap is asked first: where it is no larger than the one on memory, all
/// refusals are in the second file, in which Linux 6.18 was seen to count none.
const REFUSALS_V1: [&str; 2] = ["memory.failcnt", "memory.memsw.failcnt"];

/// A memory cgroup, open for repeated reads.
#[derive(Debug)]
pub struct MemoryCgroup {
    version: Version,
    folder: PathBuf,
    mount_point: PathBuf,
    usage: File,
}

/// All of a memory cgroup at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMemory {
    /// Charged now, with the cgroups below.
    pub usage: Bytes,
    /// The largest charge so far; `None` on v2 before kernel 5.19.
    pub peak: Option<Bytes>,
    /// The smallest limit of this cgroup and those above it.
    pub limit: Option<Limit>,
    /// Where the kernel begins to slow down allocation (v2 `memory.high` of this cgroup).
    pub high: Option<Bytes>,
    /// Swapped out; `None` where swap is not accounted.
    pub swap: Option<Bytes>,
    /// What the charge consists of.
    pub charge: Charge,
    /// How often it was refused.
    pub events: Events,
    /// Stalls on memory within the cgroup (v2 with PSI).
    pub pressure: Option<Pressure>,
}

/// A limit and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The most that may be charged.
    pub bytes: Bytes,
    /// The cgroup that carries it: the process's own or one above.
    pub folder: PathBuf,
}

/// Counts since the cgroup was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
    /// Processes of the cgroup killed for memory.
    pub oom_kills: u64,
    /// Charges that met the limit and had to reclaim first, at the cgroup that carries the limit (with what else is
    /// below it). Thousands are normal, millions are thrashing.
    pub at_limit: u64,
}

impl MemoryCgroup {
    /// The memory cgroup of a process.
    pub fn of(process: &Process) -> Result<Self, Unavailable> {
        let membership = process.read_below("cgroup", 1 << 20).map_err(|e| Unavailable::io(SOURCE, &e))?;
        let membership = String::from_utf8_lossy(&membership);
        let mounts = fs::read("/proc/self/mountinfo").map_err(|e| Unavailable::io(SOURCE, &e))?;
        let mounts = String::from_utf8_lossy(&mounts);
        let found = [Version::V1, Version::V2].into_iter().find_map(|version| {
            Some((version, Mount::parse(&mounts, version)?, parse_membership(&membership, version)?))
        });
        let none = || Unavailable::new(SOURCE, "no mount with the memory controller");
        let (version, mount, cgroup) = found.ok_or_else(none)?;
        let folder = folder_of(&mount, &cgroup, process.pid()).ok_or_else(|| {
            let why = format!("{} is not below {} in our cgroup namespace", cgroup.display(), mount.point.display());
            Unavailable::new(SOURCE, why)
        })?;
        Self::open(version, folder, mount.point)
    }

    /// A memory cgroup by its folder, such as one that was just made. Limits above it count up to `mount_point`.
    pub fn open(version: Version, folder: PathBuf, mount_point: PathBuf) -> Result<Self, Unavailable> {
        let name = match version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let usage = File::open(folder.join(name)).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Unavailable::new(SOURCE, format!("{} has no memory controller", folder.display()))
            }
            _ => Unavailable::io(SOURCE, &e),
        })?;
        Ok(Self { version, folder, mount_point, usage })
    }

    /// v1 or v2.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its name: the folder below the mount point, `/` for the mount point itself.
    pub fn name(&self) -> String {
        let below = self.folder.strip_prefix(&self.mount_point).unwrap_or(&self.folder);
        format!("/{}", below.display())
    }

    /// How many processes are in it, without those in cgroups below.
    pub fn processes(&self) -> u64 {
        text(&self.folder, "cgroup.procs").map_or(0, |list| list.lines().count() as u64)
    }

    /// Those of them that can be seen from here; the kernel writes 0 for one in another pid namespace.
    pub fn pids(&self) -> Vec<u32> {
        let list = text(&self.folder, "cgroup.procs").unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok().filter(|pid| *pid > 0)).collect()
    }

    /// Charged now, with the cgroups below. For a sampler.
    pub fn usage(&self, clock: &Clock) -> Read<Bytes> {
        read_again::<64, _>(SOURCE, &self.usage, clock, size)
    }

    /// Everything, read file by file.
    pub fn read(&self, clock: &Clock) -> Read<CgroupMemory> {
        let usage = self.usage(clock)?.value;
        Reading::take(clock, || {
            let limit = self.limit();
            let (peak, swap, high) = match self.version {
                Version::V1 => ("memory.max_usage_in_bytes", None, None),
                Version::V2 => ("memory.peak", self.size("memory.swap.current"), self.size("memory.high")),
            };
            let mut charge = text(&self.folder, "memory.stat")
                .and_then(|stat| Charge::parse(&stat, self.version))
                .ok_or_else(|| Unavailable::new(SOURCE, "memory.stat is missing or not in a known form"))?;
            charge.kernel = charge.kernel.or_else(|| self.size("memory.kmem.usage_in_bytes"));
            let swap =
                swap.or_else(|| Some(Bytes(self.size("memory.memsw.usage_in_bytes")?.0.saturating_sub(usage.0))));
            let events = self.events(limit.as_ref().map_or(&self.folder, |limit| &limit.folder));
            let pressure = text(&self.folder, "memory.pressure").and_then(|text| Pressure::parse(&text));
            Ok(CgroupMemory { usage, peak: self.size(peak), limit, high, swap, charge, events, pressure })
        })
    }

    /// A size; `None` for a missing file and for no limit.
    fn size(&self, name: &str) -> Option<Bytes> {
        parse_limit(&text(&self.folder, name)?)
    }

    /// The smallest limit from this cgroup up to the mount point.
    pub fn limit(&self) -> Option<Limit> {
        let name = match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        let upwards = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.mount_point));
        let limits = upwards
            .filter_map(|folder| Some(Limit { bytes: parse_limit(&text(folder, name)?)?, folder: folder.into() }));
        limits.chain(self.limit_above()).min_by_key(|limit| limit.bytes)
    }

    /// v1 also knows limits above a container's mount point.
    fn limit_above(&self) -> Option<Limit> {
        let stat = text(&self.folder, "memory.stat")?;
        let bytes = keyed_number(&stat, "hierarchical_memory_limit").filter(|limit| *limit < 1 << 60)?;
        Some(Limit { bytes: Bytes(bytes), folder: self.folder.clone() })
    }

    fn events(&self, limited: &Path) -> Events {
        let number =
            |folder: &Path, file, key| text(folder, file).and_then(|text| keyed_number(&text, key)).unwrap_or(0);
        match self.version {
            Version::V1 => Events {
                oom_kills: number(&self.folder, "memory.oom_control", "oom_kill"),
                at_limit: REFUSALS_V1.iter().filter_map(|name| text(limited, name)?.trim().parse::<u64>().ok()).sum(),
            },
            Version::V2 => Events {
                oom_kills: number(&self.folder, "memory.events", "oom_kill"),
                at_limit: number(limited, "memory.events", "max"),
            },
        }
    }
}

/// The folder of a cgroup. In a container whose `/proc` and mounts disagree about the root (v1 without a cgroup
/// namespace, or a bind mount), the mount point itself is right when the process is listed there.
fn folder_of(mount: &Mount, cgroup: &Path, pid: u32) -> Option<PathBuf> {
    let named = mount.folder(cgroup).filter(|folder| folder.is_dir());
    named.or_else(|| {
        let listed = text(&mount.point, "cgroup.procs")?.lines().any(|line| line.parse() == Ok(pid));
        listed.then(|| mount.point.clone())
    })
}

fn text(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files as in cgroup v2: the limit stands above, as under Slurm.
    #[test]
    fn the_smallest_limit_above_counts() {
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
        let cgroup = MemoryCgroup::open(Version::V2, step, root.path().into()).unwrap();
        let all = cgroup.read(&Clock::start()).unwrap().value;
        assert_eq!((all.usage, all.peak), (Bytes::mib(1), Some(Bytes::mib(2))));
        assert_eq!(all.limit, Some(Limit { bytes: Bytes::mib(64), folder: job }));
        assert_eq!(all.events, Events { oom_kills: 1, at_limit: 42 });
        assert_eq!((cgroup.processes(), cgroup.pids()), (3, vec![17, 4711]));
        assert_eq!((all.charge.file, all.charge.kernel), (Bytes::kib(8), Some(Bytes::kib(8))));
    }

    #[test]
    fn refused_charges_are_counted_whether_swap_is_accounted_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
        write("memory.usage_in_bytes", "4096\n");
        write("memory.stat", "total_cache 0\ntotal_rss 4096\n");
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        write("memory.failcnt", "3\n");
        let cgroup = MemoryCgroup::open(Version::V1, folder.path().into(), folder.path().into()).unwrap();
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
