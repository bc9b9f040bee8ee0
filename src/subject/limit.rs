//! The memory limit of the subject: a cgroup of its own, set, verified, and removed at the end.

use super::hierarchy::{CgroupVersion, Hierarchy, home_name};
use super::{limit_ways, processes};
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::kernel::machine::MemInfo;
use crate::units::Bytes;
use rustix::fs::{Access, access};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The kernel lets go of a cgroup only after its last process is reaped and its pages are handed on.
const REMOVE_WITHIN: Duration = Duration::from_secs(5);
/// Between two tries to remove.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// A subject may make cgroups of its own below that; systemd in a container has four levels.
const DEPTH_MAX: u32 = 16;
/// What [`probe`] sets: any value of a page or more would do.
const PROBE_LIMIT: Bytes = Bytes::mib(64);

/// What v1 has for no limit: the largest number of whole pages.
pub(super) const NO_LIMIT_MIN: u64 = 1 << 60;

/// One try in one place; says why not.
type Attempt<T> = std::result::Result<T, String>;

/// The memory cgroup of one subject. Removed when dropped, if it was made here.
#[derive(Debug)]
pub struct MemoryCgroup {
    /// Its folder.
    pub path: PathBuf,
    /// Its interface.
    pub version: CgroupVersion,
    /// What the kernel enforces: the limit asked for, rounded down to pages.
    pub limit: Bytes,
    /// Whether somebody else made it, such as a container tool, and removes it.
    adopted: bool,
    clock: Clock,
}

impl MemoryCgroup {
    /// Makes a cgroup with this limit, without swap, and verifies that the kernel took it.
    pub fn create(limit: Bytes, clock: Clock) -> Result<Self> {
        let hierarchy = Hierarchy::find()?;
        let mut refusals = Vec::new();
        for parent in hierarchy.candidates() {
            sweep(&parent);
            match make(&parent, hierarchy.version, limit, clock) {
                Ok(cgroup) => return cgroup.checked_against_outer(&hierarchy.mount, limit),
                Err(refusal) => refusals.push(refusal),
            }
        }
        let error = Error::machine(format!("cannot set a memory limit of {limit}"));
        let error = refusals.into_iter().fold(error, Error::at);
        Err(error.hint(limit_ways::hint()))
    }

    /// The cgroup that a container tool made for this process. Verifies that it has the limit, and no swap.
    ///
    /// # Errors
    /// `Machine` where it has not.
    pub(super) fn adopt(pid: u32, limit: Bytes, clock: Clock) -> Result<Self> {
        let hierarchy = Hierarchy::of_process(pid)?;
        let (path, version) = (hierarchy.own, hierarchy.version);
        let set = read_limit(&path, version).map_err(|why| {
            Error::machine(format!("the container's limit cannot be read: {why}")).at(format!("in {}", path.display()))
        })?;
        let page = rustix::param::page_size() as u64;
        if set != Some(limit.0 - limit.0 % page) {
            let other = set.map_or_else(|| "none".to_owned(), |set| Bytes(set).to_string());
            return Err(Error::machine(format!("the container was to have a limit of {limit}, but has {other}"))
                .at(format!("in {}", path.display()))
                .hint("its tool cannot set limits here; `podman info` or `docker info` says why"));
        }
        if has_swap() && may_swap(&path, version, limit) {
            return Err(Error::machine(format!("the container may use swap beyond its limit of {limit}"))
                .at(format!("in {}", path.display()))
                .hint("turn swap off (`swapoff -a`): what a limit takes away would only become slow"));
        }
        let cgroup = Self { path, version, limit: Bytes(set.unwrap_or(limit.0)), adopted: true, clock };
        cgroup.checked_against_outer(&hierarchy.mount, limit)
    }

    /// A limit above that of an outer cgroup would never be the one that counts.
    fn checked_against_outer(self, mount: &Path, asked: Bytes) -> Result<Self> {
        match outer_limit(&self.path, self.version, mount) {
            Some(outer) if outer < self.limit => Err(Error::machine(format!(
                "the limit {asked} would have no effect: an outer cgroup allows only {outer}"
            ))
            .at(format!("in {}", self.path.display()))
            .hint("choose a limit below that, or run Loadline outside that cgroup")),
            _ => Ok(self),
        }
    }

    /// How often the kernel killed a process in it for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let file = match self.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        read_value(&self.path.join(file), "oom_kill").unwrap_or(0)
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        if !self.adopted {
            remove(&self.path, self.clock);
        }
    }
}

/// Where a limit can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSpot {
    /// The interface.
    pub version: CgroupVersion,
    /// The cgroup in which those of subjects are made.
    pub parent: PathBuf,
}

/// Makes, sets and removes a cgroup to see whether limits work here.
///
/// # Errors
/// Says why not, and what to do.
pub fn probe(clock: Clock) -> Result<LimitSpot> {
    let cgroup = MemoryCgroup::create(PROBE_LIMIT, clock)?;
    let parent = cgroup.path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(LimitSpot { version: cgroup.version, parent })
}

fn make(parent: &Path, version: CgroupVersion, limit: Bytes, clock: Clock) -> Attempt<MemoryCgroup> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    if version == CgroupVersion::V2 {
        enable(parent).map_err(|cause| format!("{}: {cause}", parent.display()))?;
    }
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = parent.join(format!("loadline-{}-{number}", std::process::id()));
    fs::create_dir(&path).map_err(|cause| format!("{}: {}", parent.display(), plain(&cause)))?;
    // From here on a failure drops the cgroup, which removes the folder.
    let mut cgroup = MemoryCgroup { path, version, limit, adopted: false, clock };
    cgroup.limit = match version {
        CgroupVersion::V1 => set_v1(&cgroup.path, limit)?,
        CgroupVersion::V2 => set_v2(&cgroup.path, limit)?,
    };
    Ok(cgroup)
}

fn set_v1(cgroup: &Path, limit: Bytes) -> Attempt<Bytes> {
    let set = write_and_verify(&cgroup.join("memory.limit_in_bytes"), limit)?;
    let with_swap = cgroup.join("memory.memsw.limit_in_bytes");
    // Where there is none to be used, this limit would only hide how often the other one is met: it is asked first,
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
    let set = write_and_verify(&cgroup.join("memory.max"), limit)?;
    let swap = cgroup.join("memory.swap.max");
    if swap.exists() {
        fs::write(&swap, "0").map_err(|cause| format!("{}: {}", swap.display(), plain(&cause)))?;
    }
    Ok(set)
}

/// The limit of a cgroup, `None` where it has none.
fn read_limit(cgroup: &Path, version: CgroupVersion) -> Attempt<Option<u64>> {
    let file = cgroup.join(match version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    });
    let text = fs::read_to_string(&file).map_err(|cause| format!("{}: {}", file.display(), plain(&cause)))?;
    Ok(text.trim().parse().ok().filter(|limit| *limit < NO_LIMIT_MIN))
}

/// Whether a cgroup with this limit may have pages in swap. Where swap is not counted (v1 without swap accounting) it
/// may, unless it is told to keep away from it.
fn may_swap(cgroup: &Path, version: CgroupVersion, limit: Bytes) -> bool {
    let number = |name: &str| fs::read_to_string(cgroup.join(name)).ok()?.trim().parse::<u64>().ok();
    match version {
        CgroupVersion::V1 => match number("memory.memsw.limit_in_bytes") {
            Some(with_swap) => with_swap > limit.0,
            None => number("memory.swappiness") != Some(0),
        },
        // Without the file the kernel has no swap.
        CgroupVersion::V2 => cgroup.join("memory.swap.max").exists() && number("memory.swap.max") != Some(0),
    }
}

/// Returns what the kernel says it enforces: whole pages, never more than asked.
fn write_and_verify(file: &Path, limit: Bytes) -> Attempt<Bytes> {
    let refuse = |cause: &io::Error| format!("{}: {}", file.display(), plain(cause));
    fs::write(file, limit.0.to_string()).map_err(|cause| refuse(&cause))?;
    let text = fs::read_to_string(file).map_err(|cause| refuse(&cause))?;
    let page = rustix::param::page_size() as u64;
    match text.trim().parse() {
        Ok(set) if set == limit.0 - limit.0 % page => Ok(Bytes(set)),
        _ => Err(format!("{}: wrote {}, but it reads {}", file.display(), limit.0, text.trim())),
    }
}

/// Lets children of a v2 cgroup have the memory controller.
fn enable(parent: &Path) -> Attempt<()> {
    let has_memory = |file| fs::read_to_string(parent.join(file)).is_ok_and(|text| text.contains("memory"));
    if access(parent.join("cgroup.procs"), Access::WRITE_OK).is_err() {
        return Err("no permission to move a process into it".to_owned());
    }
    if has_memory("cgroup.subtree_control") {
        return Ok(());
    }
    if !has_memory("cgroup.controllers") {
        return Err("the memory controller is not delegated to it".to_owned());
    }
    let ask = || fs::write(parent.join("cgroup.subtree_control"), "+memory");
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
fn move_ourselves_down(parent: &Path) -> bool {
    let Ok(members) = fs::read_to_string(parent.join("cgroup.procs")) else { return false };
    let mut ours: HashSet<u32> = processes::descendants(std::process::id()).iter().map(|p| p.pid).collect();
    ours.insert(std::process::id());
    let members: Vec<&str> = members.lines().collect();
    let all_ours = members.iter().all(|pid| pid.parse().is_ok_and(|pid| ours.contains(&pid)));
    let home = parent.join(home_name());
    all_ours
        && !members.is_empty()
        && fs::create_dir(&home).is_ok()
        && members.iter().all(|pid| fs::write(home.join("cgroup.procs"), pid).is_ok())
}

/// The smallest limit among the cgroups in which that of a subject is made: none above it has an effect.
pub fn outer() -> Option<Bytes> {
    let hierarchy = Hierarchy::find().ok()?;
    smallest_limit(&hierarchy.own, hierarchy.version, &hierarchy.mount)
}

/// The smallest limit among the cgroups around this one.
fn outer_limit(cgroup: &Path, version: CgroupVersion, mount: &Path) -> Option<Bytes> {
    smallest_limit(cgroup.parent().filter(|parent| parent.starts_with(mount))?, version, mount)
}

/// The smallest limit of this cgroup and those around it. In a container those further out cannot be seen; v1 tells
/// what they allow all the same.
fn smallest_limit(cgroup: &Path, version: CgroupVersion, mount: &Path) -> Option<Bytes> {
    let file = match version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    };
    let around = cgroup.ancestors().take_while(|around| around.starts_with(mount));
    // "max" on v2 is no number and so no limit.
    let seen = around.filter_map(|around| fs::read_to_string(around.join(file)).ok()?.trim().parse().ok());
    let is_v1 = version == CgroupVersion::V1;
    let told = is_v1.then(|| read_value(&cgroup.join("memory.stat"), "hierarchical_memory_limit"));
    seen.chain(told.flatten()).filter(|limit| *limit < NO_LIMIT_MIN).map(Bytes).min()
}

fn read_value(file: &Path, key: &str) -> Option<u64> {
    parse_value(&fs::read_to_string(file).ok()?, key)
}

/// `oom_kill 1` among lines of `key value`.
fn parse_value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Removes a cgroup and those below it, waiting for the kernel to let go of them.
pub(super) fn remove(cgroup: &Path, clock: Clock) {
    let until = clock.now() + REMOVE_WITHIN;
    loop {
        remove_below(cgroup, DEPTH_MAX);
        match fs::remove_dir(cgroup) {
            Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy && clock.now() < until => {
                std::thread::sleep(TRY_AGAIN_AFTER);
            }
            // Gone, or beyond us: the next Loadline sweeps it.
            _ => return,
        }
    }
}

/// One round: what is still busy waits for the next.
fn remove_below(cgroup: &Path, depth: u32) {
    let children = fs::read_dir(cgroup).into_iter().flatten().flatten();
    for child in children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir())) {
        if depth > 1 {
            remove_below(&child.path(), depth - 1);
        }
        let _ = fs::remove_dir(child.path());
    }
}

/// Removes empty cgroups of Loadlines that were killed together with their guardians.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker =
            name.to_str().and_then(|name| name.strip_prefix("loadline-")?.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|pid| processes::Process::read(pid).is_none()) {
            // One that still holds processes refuses, and stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_oom_kills_of_both_versions() {
        assert_eq!(parse_value("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(parse_value("max 9\noom 1\noom_kill 2\noom_group_kill 0\n", "oom_kill"), Some(2));
        assert_eq!(parse_value("", "oom_kill"), None);
    }

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
    fn the_smallest_outer_limit_counts() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(folder.path().join("memory.max"), "1000\n").unwrap();
        fs::write(folder.path().join("a/memory.max"), "max\n").unwrap();
        assert_eq!(outer_limit(&inner, CgroupVersion::V2, folder.path()), Some(Bytes(1000)));
        assert_eq!(outer_limit(&inner, CgroupVersion::V2, &folder.path().join("a")), None);
        fs::write(folder.path().join("memory.limit_in_bytes"), "9000\n").unwrap();
        assert_eq!(outer_limit(&inner, CgroupVersion::V1, folder.path()), Some(Bytes(9000)));
        // A limit further out than can be seen.
        fs::write(folder.path().join("a/memory.stat"), "cache 0\nhierarchical_memory_limit 500\n").unwrap();
        assert_eq!(outer_limit(&inner, CgroupVersion::V1, folder.path()), Some(Bytes(500)));
        fs::write(folder.path().join("memory.max"), "9223372036854771712\n").unwrap();
        assert_eq!(outer_limit(&inner, CgroupVersion::V2, folder.path()), None);
    }

    #[test]
    fn the_limit_of_a_container_is_read_and_its_swap_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let of = |version| read_limit(folder.path(), version);
        assert!(of(CgroupVersion::V1).unwrap_err().ends_with("No such file or directory"));
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.max", "max\n");
        assert_eq!((of(CgroupVersion::V1), of(CgroupVersion::V2)), (Ok(None), Ok(None)));
        write("memory.max", "4096\n");
        assert_eq!(of(CgroupVersion::V2), Ok(Some(4096)));
        let swaps = |version| may_swap(folder.path(), version, Bytes(4096));
        assert_eq!((swaps(CgroupVersion::V1), swaps(CgroupVersion::V2)), (true, false));
        write("memory.swappiness", "0\n");
        write("memory.swap.max", "max\n");
        assert_eq!((swaps(CgroupVersion::V1), swaps(CgroupVersion::V2)), (false, true));
        write("memory.memsw.limit_in_bytes", "4096\n");
        write("memory.swap.max", "0\n");
        assert_eq!((swaps(CgroupVersion::V1), swaps(CgroupVersion::V2)), (false, false));
        write("memory.memsw.limit_in_bytes", "8192\n");
        assert!(swaps(CgroupVersion::V1));
    }

    #[test]
    fn a_probe_leaves_nothing_behind() {
        let clock = Clock::start();
        match MemoryCgroup::create(PROBE_LIMIT, clock) {
            Ok(cgroup) => {
                let path = cgroup.path.clone();
                assert!(path.is_dir());
                assert_eq!((cgroup.limit, cgroup.oom_kills()), (PROBE_LIMIT, 0));
                drop(cgroup);
                assert!(!path.exists());
                assert!(path.starts_with(probe(clock).unwrap().parent));
            }
            Err(error) => crate::skipping::skip("LOADLINE_LIMITS", &error.what),
        }
    }
}
