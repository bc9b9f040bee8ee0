//! The in-memory files that a process has open: on tmpfs (`/dev/shm`, an `emptyDir` with medium Memory), from
//! `memfd_create`, on ramfs and hugetlbfs. They are charged to the container whose process wrote them, cannot be
//! reclaimed without swap, and are not in the RSS unless mapped. Sources: `/proc/PID/fd`, `/proc/PID/mountinfo`,
//! `statx(2)`; tmpfs(5).

use super::procfs::Process;
use super::{Read, Reading, Unavailable, maps};
use crate::kernel::mounts;
use loadline_base::clock::Clock;
use loadline_base::order::Order as _;
use rustix::fs::{AtFlags, FileType, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of descriptors checked, at about 2 µs each.
const DESCRIPTORS_MAX: usize = 100_000;
/// The unit of `st_blocks`, regardless of the file system (stat(3type)).
const BLOCK: u64 = 512;
/// Maximum size of a copied process's lists of open files, with a line of `ls -l` or `stat` per file.
const COPIED_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of descriptors in all processes together.
const DESCRIPTORS_MAX_OF_ALL: usize = 1 << 20;
/// Enough for `mountinfo` of a node with thousands of containers.
const MOUNTS_BYTES_MAX: u64 = 4 << 20;
/// File systems that keep data in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];
/// Link targets of files from `memfd_create(2)`: `/memfd:NAME (deleted)`.
pub(super) const MEMFD: &str = "/memfd:";

/// In-memory files of one mount point that a process has open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryFilesRecord {
    /// Mount point, as the process sees it; `memfd` for anonymous files.
    pub place: String,
    /// Number of files.
    pub files: u64,
    /// Number of these files that are deleted but still open.
    pub deleted: u64,
    /// Size in memory.
    pub bytes: u64,
}

/// The open in-memory files that are not mapped, by location, largest sum first. A file that is open twice counts once.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<MemoryFilesRecord>> {
    Reading::take(clock, || {
        let mut sums = Sums::default();
        // Mapped files, such as ZGC's heap, are already in the RSS.
        let mapped: HashSet<u64> = maps::read(process, clock)?.value.into_iter().map(|mapping| mapping.inode).collect();
        sums.add(&OpenFiles::of(process)?, |file| !mapped.contains(&file.inode));
        Ok(sums.records())
    })
}

/// The open in-memory files of several processes, mapped or not, by location, largest sum first. A file that several
/// processes have open counts once.
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
    pub(super) fn of(process: &'p Process) -> Result<Self, Unavailable> {
        Self::with(process, mountinfo(process)?, DESCRIPTORS_MAX)
    }

    /// Reads files of several processes, skipping unreadable ones. Processes in one mount namespace share the list of
    /// mounts, because the kernel takes 0.1 ms to produce it.
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
        let mut left = DESCRIPTORS_MAX_OF_ALL;
        let with = |process| {
            let open = Self::with(process, mounts(process)?, left.min(DESCRIPTORS_MAX)).ok()?;
            left -= open.files.len();
            Some(open)
        };
        processes.iter().filter_map(with).collect()
    }

    fn with(process: &'p Process, mountinfo: Arc<str>, most: usize) -> Result<Self, Unavailable> {
        let files = if process.is_copied() {
            copied(process, most)
        } else {
            let numbers = process.numbers_in("fd")?.take(most);
            numbers.filter_map(|number| Measured::at(process, format!("fd/{number}"))).collect()
        };
        Ok(Self { process, files, mountinfo })
    }

    /// The mount points of in-memory file systems, by device.
    pub(super) fn in_memory(&self) -> BTreeMap<(u32, u32), String> {
        self.places(&IN_MEMORY)
    }

    /// The mount points of file systems of these kinds, by device.
    pub(super) fn places(&self, kinds: &[&str]) -> BTreeMap<(u32, u32), String> {
        places(&self.mountinfo, kinds)
    }
}

/// In-memory files by location, each counted once.
#[derive(Default)]
struct Sums {
    seen: HashSet<((u32, u32), u64)>,
    found: BTreeMap<String, MemoryFilesRecord>,
}

impl Sums {
    fn add(&mut self, of: &OpenFiles<'_>, is_wanted: impl Fn(&Measured) -> bool) {
        let places = of.in_memory();
        for file in of.files.iter().filter(|file| is_wanted(file)) {
            let name = || file.name(of.process);
            // No directory lists such a file, so the link of a file with a name need not be read.
            let unmounted = || file.links == 0 && name().is_ok_and(|path| path.to_string_lossy().starts_with(MEMFD));
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

/// The regular files that a copied process had open, from the output of `ls -l` and `stat` for its descriptors.
fn copied(process: &Process, most: usize) -> Vec<Measured> {
    let [names, stats] = ["fd.names", "fd.stat"].map(|of| process.text_below(of, COPIED_BYTES_MAX).unwrap_or_default());
    // `lr-x------ 1 app app 64 Nov 29 07:00 5 -> /dev/shm/a (deleted)`
    let named = names.lines().filter_map(|line| {
        let (of_link, name) = line.split_once(" -> ")?;
        Some((of_link.rsplit(' ').next()?, name))
    });
    let named: HashMap<&str, &str> = named.collect();
    let file = |line: &str| {
        // `81a4 27 1058 256000 0 /proc/7/fd/5`
        let mut words = line.splitn(6, ' ');
        let mode = u32::from_str_radix(words.next()?, 16).ok()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let [device, inode, blocks, links] = [number()?, number()?, number()?, number()?];
        let descriptor = words.next()?.rsplit('/').next()?;
        let is_regular = FileType::from_raw_mode(mode) == FileType::RegularFile;
        is_regular.then(|| Measured {
            link: format!("fd/{descriptor}"),
            name: Some(named.get(descriptor).map(PathBuf::from).unwrap_or_default()),
            device: (rustix::fs::major(device), rustix::fs::minor(device)),
            inode,
            bytes: blocks.saturating_mul(BLOCK),
            links: u32::try_from(links).unwrap_or(u32::MAX),
        })
    };
    stats.lines().take(most).filter_map(file).collect()
}

/// A regular file that a process has open, with its size.
pub(super) struct Measured {
    link: String,
    /// Its name, if the process is a copy, which has no links.
    name: Option<PathBuf>,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    pub(super) bytes: u64,
    /// Number of directories that list it.
    links: u32,
}

impl Measured {
    /// The file that a link in a process's directory leads to; `None` if it is not a regular file, or was closed in the
    /// meantime. Does not query the server of a network file system (`AT_STATX_DONT_SYNC`), which may be down.
    pub(super) fn at(process: &Process, link: String) -> Option<Self> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BLOCKS | StatxFlags::NLINK;
        let seen = statx(process.folder(), &link, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
        let is_regular = FileType::from_raw_mode(seen.stx_mode.into()) == FileType::RegularFile;
        let (device, bytes) = ((seen.stx_dev_major, seen.stx_dev_minor), seen.stx_blocks.saturating_mul(BLOCK));
        is_regular.then_some(Self { link, name: None, device, inode: seen.stx_ino, bytes, links: seen.stx_nlink })
    }

    pub(super) fn name(&self, process: &Process) -> io::Result<PathBuf> {
        self.name.clone().map_or_else(|| process.link(&self.link), Ok)
    }

    pub(super) fn link(&self) -> &str {
        &self.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn in_memory_file_systems_are_recognized() {
        let text = "22 21 0:5 / /dev rw - devtmpfs dev rw\n30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw\n\
            31 22 0:26 / /huge\\040pages rw - hugetlbfs none rw\n40 21 254:1 / / rw - ext4 /dev/vda rw\n1 2 x - tmpfs";
        let found: Vec<_> = places(text, &IN_MEMORY).into_iter().collect();
        assert_eq!(found, [((0, 25), "/dev/shm".to_owned()), ((0, 26), "/huge pages".to_owned())]);
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert!(places(&text[..end], &IN_MEMORY).len() <= 2);
        }
    }

    #[test]
    fn files_of_a_copied_process_come_from_its_lists() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join("7")).unwrap();
            std::fs::write(folder.path().join("7").join(name), text).unwrap();
        };
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        [("stat", own.as_str()), ("status", ""), ("maps", "")].into_iter().for_each(|(name, text)| write(name, text));
        write("mountinfo", "30 22 0:27 / /spool rw - tmpfs tmpfs rw\n40 21 254:1 / / rw - ext4 /dev/vda rw\n");
        let names = "total 0\nlrwx------ 1 a a 64 Nov 29 07:00 4 -> /spool/x (deleted)\n\
            lrwx------ 1 a a 64 Nov 29 07:00 6 -> /memfd:a b (deleted)\n\
            lrwx------ 1 a a 64 Nov 29 07:00 8 -> /var/log\n";
        let stats = "81a4 27 10 128000 0 /proc/7/fd/4\n81a4 27 10 128000 0 /proc/7/fd/5\n81a4 1 11 2048 0 /proc/7/fd/6\n\
            1180 12 12 0 1 /proc/7/fd/7\n81a4 65025 13 8 1 /proc/7/fd/8\n";
        write("fd.names", names);
        write("fd.stat", stats);
        let process = Process::open_copy(7, folder.path()).unwrap();
        let places = || read(&process, &Clock::start()).map(|found| found.value).unwrap_or_default();
        let of = |place: &str, bytes: u64| {
            let place = place.to_owned();
            MemoryFilesRecord { place, files: 1, deleted: 1, bytes }
        };
        assert_eq!(places(), [of("/spool", 65_536_000), of("memfd", 1 << 20)]);
        let disk = crate::observe::open_files::largest(&process, &Clock::start(), 9).unwrap().value;
        assert_eq!(disk.iter().map(|file| (file.path.as_str(), file.bytes)).collect::<Vec<_>>(), [("/var/log", 4096)]);
        for end in 0..stats.len() {
            write("fd.stat", &stats[..end]);
            assert!(places().len() <= 2);
        }
        write("fd.stat", "81a4 18446744073709551615 1 18446744073709551615 0 x\n-1 -1 -1 -1 -1 -1\n");
        assert!(places().is_empty());
    }

    #[test]
    fn an_open_deleted_memory_file_counts_once() {
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
