//! Files in memory that a process has open: on tmpfs (`/dev/shm`, an `emptyDir` of medium Memory), of `memfd_create`,
//! on ramfs and hugetlbfs. They are charged to the container whose process wrote them, cannot be reclaimed without
//! swap, and are in no RSS unless they are mapped. Sources: `/proc/PID/fd`, `/proc/PID/mountinfo`, `statx(2)`;
//! tmpfs(5).

use super::procfs::Process;
use super::{Read, Reading, Unavailable, maps};
use crate::kernel::mounts;
use loadline_base::clock::Clock;
use loadline_base::order::Order as _;
use rustix::fs::{AtFlags, FileType, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Descriptors that are looked at: a look at each takes some 2 µs.
const DESCRIPTORS_MAX: usize = 100_000;
/// `st_blocks` counts in units of so many bytes, whatever the file system (stat(3type)).
const BLOCK: u64 = 512;
/// `mountinfo` of a node with thousands of containers.
const MOUNTS_BYTES_MAX: u64 = 4 << 20;
/// File systems that keep what is written in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];
/// Links of files without a folder: `/memfd:NAME (deleted)`, from `memfd_create(2)`.
pub(super) const MEMFD: &str = "/memfd:";

/// Files in memory of one place that a process has open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryFilesRecord {
    /// The mount point of the file system, as the process sees it; `memfd` for files that have no place.
    pub place: String,
    /// How many files.
    pub files: u64,
    /// How many of them were deleted: no directory lists them.
    pub deleted: u64,
    /// Bytes that they occupy.
    pub bytes: u64,
}

/// The open files in memory that are not mapped, by place, the largest sum first. A file that is open twice counts
/// once.
///
/// # Errors
/// Fails if the descriptors, the mappings or the mounts of the process cannot be read.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<MemoryFilesRecord>> {
    Reading::take(clock, || {
        let mut sums = Sums::default();
        // Mapped files, such as the heap of ZGC, are in the RSS already.
        let mapped: HashSet<u64> = maps::read(process, clock)?.value.into_iter().map(|mapping| mapping.inode).collect();
        sums.add(&OpenFiles::of(process)?, |file| !mapped.contains(&file.inode));
        Ok(sums.records())
    })
}

/// The open files in memory of several processes, mapped or not, by place, the largest sum first. A file that several
/// have open counts once.
pub(super) fn of_all(files: &[OpenFiles<'_>]) -> Vec<MemoryFilesRecord> {
    let mut sums = Sums::default();
    files.iter().for_each(|files| sums.add(files, |_| true));
    sums.records()
}

/// The regular files that a process has open, and the mounts that it sees.
pub(super) struct OpenFiles<'p> {
    pub(super) process: &'p Process,
    pub(super) files: Vec<Measured>,
    mountinfo: Arc<str>,
}

impl<'p> OpenFiles<'p> {
    /// Reads those of a process, one file for each descriptor.
    ///
    /// # Errors
    /// Fails if its descriptors or its mounts cannot be read.
    pub(super) fn of(process: &'p Process) -> Result<Self, Unavailable> {
        Self::with(process, mountinfo(process)?)
    }

    /// Reads those of several processes, without those that cannot be read. Processes in one mount namespace see the
    /// same mounts, and the kernel takes 0.1 ms to list them.
    pub(super) fn of_each(processes: &'p [Process]) -> Vec<Self> {
        let mut known: HashMap<PathBuf, Arc<str>> = HashMap::new();
        let mut mounts = |process: &Process| {
            let namespace = process.link("ns/mnt").ok();
            match namespace.as_ref().and_then(|namespace| known.get(namespace)) {
                Some(mounts) => Some(Arc::clone(mounts)),
                None => {
                    let mounts = mountinfo(process).ok()?;
                    known.extend(namespace.map(|namespace| (namespace, Arc::clone(&mounts))));
                    Some(mounts)
                }
            }
        };
        processes.iter().filter_map(|process| Self::with(process, mounts(process)?).ok()).collect()
    }

    fn with(process: &'p Process, mountinfo: Arc<str>) -> Result<Self, Unavailable> {
        let numbers = process.numbers_in("fd")?.take(DESCRIPTORS_MAX);
        let files = numbers.filter_map(|number| Measured::at(process, format!("fd/{number}"))).collect();
        Ok(Self { process, files, mountinfo })
    }

    /// The mount points of file systems in memory, by their device.
    pub(super) fn in_memory(&self) -> BTreeMap<(u32, u32), String> {
        self.places(&IN_MEMORY)
    }

    /// The mount points of file systems of these kinds, by their device.
    pub(super) fn places(&self, kinds: &[&str]) -> BTreeMap<(u32, u32), String> {
        places(&self.mountinfo, kinds)
    }
}

/// Files in memory by place, each once.
#[derive(Default)]
struct Sums {
    seen: HashSet<((u32, u32), u64)>,
    found: BTreeMap<String, MemoryFilesRecord>,
}

impl Sums {
    /// Adds the files of a process that are wanted.
    fn add(&mut self, of: &OpenFiles<'_>, is_wanted: impl Fn(&Measured) -> bool) {
        let places = of.in_memory();
        for file in of.files.iter().filter(|file| is_wanted(file)) {
            let link = || of.process.link(file.link());
            // No folder lists it, so a file with a name needs no look at its link.
            let unmounted = || file.links == 0 && link().is_ok_and(|path| path.to_string_lossy().starts_with(MEMFD));
            let place = places.get(&file.device).cloned().or_else(|| unmounted().then(|| "memfd".to_owned()));
            let Some(place) = place else { continue };
            if self.seen.insert((file.device, file.inode)) {
                let sum = self.found.entry(place).or_default();
                sum.files += 1;
                sum.deleted += u64::from(file.links == 0);
                sum.bytes = sum.bytes.saturating_add(file.bytes);
            }
        }
    }

    fn records(self) -> Vec<MemoryFilesRecord> {
        let named = |(place, sum)| MemoryFilesRecord { place, ..sum };
        let mut found: Vec<MemoryFilesRecord> = self.found.into_iter().map(named).filter(|sum| sum.bytes > 0).collect();
        found.largest_first(|sum| sum.bytes);
        found
    }
}

fn mountinfo(process: &Process) -> Result<Arc<str>, Unavailable> {
    let text = process.text_below("mountinfo", MOUNTS_BYTES_MAX).map_err(Unavailable::io("mountinfo"))?;
    Ok(text.into())
}

fn places(mountinfo: &str, kinds: &[&str]) -> BTreeMap<(u32, u32), String> {
    let of = |line: &str| {
        let mount = mounts::Mount::parse(line)?;
        let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        kinds.contains(&mount.kind).then(|| (device, mount.point.display().to_string()))
    };
    mountinfo.lines().filter_map(of).collect()
}

/// A regular file that a process has open, and how large it is.
pub(super) struct Measured {
    link: String,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    /// Bytes that it occupies.
    pub(super) bytes: u64,
    /// How many folders list it.
    links: u32,
}

impl Measured {
    /// The file of a link in the folder of a process; `None` where it is no regular one, or was closed meanwhile. The
    /// look asks no server of a network file system (`AT_STATX_DONT_SYNC`), which may be dead.
    pub(super) fn at(process: &Process, link: String) -> Option<Self> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BLOCKS | StatxFlags::NLINK;
        let seen = statx(process.folder(), &link, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
        let is_regular = FileType::from_raw_mode(seen.stx_mode.into()) == FileType::RegularFile;
        let (device, bytes) = ((seen.stx_dev_major, seen.stx_dev_minor), seen.stx_blocks.saturating_mul(BLOCK));
        is_regular.then_some(Self { link, device, inode: seen.stx_ino, bytes, links: seen.stx_nlink })
    }

    /// Its link in the folder of the process.
    pub(super) fn link(&self) -> &str {
        &self.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn file_systems_in_memory_are_told_from_others() {
        let text = "22 21 0:5 / /dev rw - devtmpfs dev rw\n30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw\n\
            31 22 0:26 / /huge\\040pages rw - hugetlbfs none rw\n40 21 254:1 / / rw - ext4 /dev/vda rw\n1 2 x - tmpfs";
        let found: Vec<_> = places(text, &IN_MEMORY).into_iter().collect();
        assert_eq!(found, [((0, 25), "/dev/shm".to_owned()), ((0, 26), "/huge pages".to_owned())]);
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert!(places(&text[..end], &IN_MEMORY).len() <= 2);
        }
    }

    #[test]
    fn a_deleted_file_of_memory_that_is_open_counts_once_with_its_bytes() {
        let file = rustix::fs::memfd_create("loadline-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = std::fs::File::from(file);
        file.write_all(&vec![1; 3 << 20]).unwrap();
        let twice = file.try_clone().unwrap();
        let own = Process::open(std::process::id()).unwrap();
        let of = |found: Vec<MemoryFilesRecord>| found.into_iter().find(|sum| sum.place == "memfd").unwrap_or_default();
        let before = of(read(&own, &Clock::start()).unwrap().value);
        drop(twice);
        assert!(before.files >= 1 && before.bytes >= 3 << 20, "{before:?}");
        assert_eq!(of(read(&own, &Clock::start()).unwrap().value).bytes, before.bytes);
        drop(file);
        let after = of(read(&own, &Clock::start()).unwrap().value);
        assert_eq!((before.files - after.files, before.bytes - after.bytes), (1, 3 << 20));
    }
}
