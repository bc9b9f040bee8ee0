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
use std::collections::{BTreeMap, HashSet};

/// Descriptors that are looked at: a look at each takes some 2 µs.
const DESCRIPTORS_MAX: usize = 100_000;
/// `mountinfo` of a node with thousands of containers.
pub(super) const MOUNTS_BYTES_MAX: u64 = 4 << 20;
/// File systems that keep what is written in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];
/// Links of files without a folder: `/memfd:NAME (deleted)`, from `memfd_create(2)`.
const MEMFD: &str = "/memfd:";
/// `st_blocks` counts in units of so many bytes, whatever the file system (stat(3type)).
pub(super) const BLOCK: u64 = 512;

/// Open files in memory of one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryFiles {
    /// The mount point, as the process sees it; `memfd` for files that have none.
    pub place: String,
    /// How many files.
    pub files: u64,
    /// How many of them were deleted.
    pub deleted: u64,
    /// Bytes that they occupy.
    pub bytes: u64,
}

/// The open files in memory that are not mapped, by place, the largest sum first. A file that is open twice counts
/// once.
///
/// # Errors
/// Fails if the descriptors, the mappings or the mounts of the process cannot be read.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<MemoryFiles>> {
    Reading::take(clock, || {
        let mountinfo =
            process.read_below("mountinfo", MOUNTS_BYTES_MAX).map_err(|e| Unavailable::io("mountinfo", &e))?;
        let places = places(&String::from_utf8_lossy(&mountinfo));
        let numbers = process.numbers_in("fd").map_err(|e| Unavailable::io("fd", &e))?;
        // Mapped files, such as the heap of ZGC, are in the RSS already.
        let mapped: HashSet<u64> = maps::read(process, clock)?.value.into_iter().map(|mapping| mapping.inode).collect();
        let (mut seen, mut found) = (HashSet::new(), BTreeMap::<String, MemoryFiles>::new());
        for number in numbers.take(DESCRIPTORS_MAX) {
            let Some((place, file)) = open_file(process, number, &places) else { continue };
            if !mapped.contains(&file.inode) && seen.insert((file.device, file.inode)) {
                let sum = found.entry(place).or_default();
                sum.files += 1;
                sum.deleted += u64::from(file.deleted);
                sum.bytes = sum.bytes.saturating_add(file.bytes);
            }
        }
        let named = |(place, sum)| MemoryFiles { place, ..sum };
        let mut found: Vec<MemoryFiles> = found.into_iter().map(named).filter(|sum| sum.bytes > 0).collect();
        found.largest_first(|sum| sum.bytes);
        Ok(found)
    })
}

/// The mount points of file systems in memory, by their device.
pub(super) fn places(mountinfo: &str) -> BTreeMap<(u32, u32), String> {
    let of = |line: &str| {
        let mount = mounts::Mount::parse(line)?;
        let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        IN_MEMORY.contains(&mount.kind).then(|| (device, mount.point.display().to_string()))
    };
    mountinfo.lines().filter_map(of).collect()
}

/// An open file.
struct OpenFile {
    device: (u32, u32),
    inode: u64,
    bytes: u64,
    deleted: bool,
}

/// The file of a descriptor and its place; `None` where it is no regular file in memory, or was closed meanwhile. The
/// look asks no server of a network file system (`AT_STATX_DONT_SYNC`), which may be dead.
fn open_file(process: &Process, number: u32, places: &BTreeMap<(u32, u32), String>) -> Option<(String, OpenFile)> {
    let link = format!("fd/{number}");
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BLOCKS | StatxFlags::NLINK;
    let seen = statx(process.folder(), &link, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
    if FileType::from_raw_mode(seen.stx_mode.into()) != FileType::RegularFile {
        return None;
    }
    let device = (seen.stx_dev_major, seen.stx_dev_minor);
    let unmounted = || process.link(&link).is_ok_and(|path| path.to_string_lossy().starts_with(MEMFD));
    let place = places.get(&device).cloned().or_else(|| unmounted().then(|| "memfd".to_owned()))?;
    let bytes = seen.stx_blocks.saturating_mul(BLOCK);
    Some((place, OpenFile { device, inode: seen.stx_ino, bytes, deleted: seen.stx_nlink == 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn file_systems_in_memory_are_told_from_others() {
        let text = "22 21 0:5 / /dev rw - devtmpfs dev rw\n30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw\n\
            31 22 0:26 / /huge\\040pages rw - hugetlbfs none rw\n40 21 254:1 / / rw - ext4 /dev/vda rw\n1 2 x - tmpfs";
        let found: Vec<_> = places(text).into_iter().collect();
        assert_eq!(found, [((0, 25), "/dev/shm".to_owned()), ((0, 26), "/huge pages".to_owned())]);
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert!(places(&text[..end]).len() <= 2);
        }
    }

    #[test]
    fn a_deleted_file_of_memory_that_is_open_counts_once_with_its_bytes() {
        let file = rustix::fs::memfd_create("loadline-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = std::fs::File::from(file);
        file.write_all(&vec![1; 3 << 20]).unwrap();
        let twice = file.try_clone().unwrap();
        let own = Process::open(std::process::id()).unwrap();
        let of = |found: Vec<MemoryFiles>| found.into_iter().find(|sum| sum.place == "memfd").unwrap_or_default();
        let before = of(read(&own, &Clock::start()).unwrap().value);
        drop(twice);
        assert!(before.files >= 1 && before.bytes >= 3 << 20, "{before:?}");
        assert_eq!(of(read(&own, &Clock::start()).unwrap().value).bytes, before.bytes);
        drop(file);
        let after = of(read(&own, &Clock::start()).unwrap().value);
        assert_eq!((before.files - after.files, before.bytes - after.bytes), (1, 3 << 20));
    }
}
