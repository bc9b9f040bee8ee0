//! `/proc/PID/fd` (man proc_pid_fd): the regular files that a process has open, each a link such as `5 ->
//! /opt/app/lib/app.jar`. Omits pipes, sockets, devices, and deleted files.

use super::cachestat;
use super::memory_files::{MEMFD, Measured, OpenFiles};
use super::procfs::{Process, open_below};
use super::{Read, Reading, maps};
use loadline_base::clock::Clock;
use loadline_base::order::Order as _;
use rustix::fs::{AtFlags, FileType, statat};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;

/// More than any descriptor limit of a server.
const DESCRIPTORS_MAX: usize = 1 << 20;
/// Maximum number of files whose page cache is queried, at about 5 µs each.
const ASKED_MAX: usize = 4_096;
/// Mappings of smaller processes are not read: that takes 0.1 ms, and hundreds of helpers map the same libraries.
const MAPPING_BYTES_MIN: u64 = 8 << 20;
/// Smaller files are not queried.
const ASKED_BYTES_MIN: u64 = 256 << 10;
/// File systems on a local disk, with a page cache of their own: excludes those of a server, which may be down, and
/// layers above another file system.
const ON_DISK: [&str; 8] = ["ext4", "xfs", "btrfs", "ext3", "ext2", "f2fs", "erofs", "squashfs"];

/// The paths of the open files in the process's own mount namespace; a file that is open twice appears twice.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<PathBuf>> {
    Reading::take(clock, || {
        Ok(process.numbers_in("fd")?.take(DESCRIPTORS_MAX).filter_map(|number| regular(process, number)).collect())
    })
}

/// The path of a descriptor. `None` if it is not a regular file, was deleted, or was closed in the meantime.
fn regular(process: &Process, number: u32) -> Option<PathBuf> {
    let link = format!("fd/{number}");
    // `statat` follows the link to the open file itself, even if another file is at its path now.
    let seen = statat(process.folder(), &link, AtFlags::empty()).ok()?;
    let is_kept = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile && seen.st_nlink > 0;
    is_kept.then(|| process.link(&link).ok()).flatten().filter(|path| path.is_absolute())
}

/// An on-disk file that a process has open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskFileRecord {
    /// Path, as the process sees it.
    pub path: String,
    /// Disk space that it occupies.
    pub bytes: u64,
}

/// The open files that are not in memory, largest first, at most `most`. A file that is open twice appears once, and a
/// deleted one with ` (deleted)` after its path.
pub fn largest(process: &Process, clock: &Clock, most: usize) -> Read<Vec<DiskFileRecord>> {
    Reading::take(clock, || {
        let (open, mut seen) = (OpenFiles::of(process)?, HashSet::new());
        let in_memory = open.in_memory();
        let on_disk = open.files.into_iter().filter(|file| file.bytes > 0 && !in_memory.contains_key(&file.device));
        let mut found: Vec<Measured> = on_disk.filter(|file| seen.insert((file.device, file.inode))).collect();
        found.largest_first(|file| file.bytes);
        let named = |file: Measured| {
            let path = file.name(process).ok()?.display().to_string();
            let is_kept = path.starts_with('/') && !path.starts_with(MEMFD);
            is_kept.then_some(DiskFileRecord { path, bytes: file.bytes })
        };
        Ok(found.into_iter().filter_map(named).take(most).collect())
    })
}

/// A file in the page cache, whichever container is charged for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CachedFileRecord {
    /// Path, as seen by a process that has the file open or mapped.
    pub path: String,
    /// Size of its cached pages.
    pub bytes: u64,
    /// Size of its dirty pages.
    pub dirty_bytes: u64,
}

/// The files on disk that these processes have open or mapped, by size in the page cache, largest first, at most
/// `most`. Skips those for which the kernel does not report it.
pub(super) fn cached(of: &[OpenFiles<'_>], clock: &Clock, most: usize) -> Vec<CachedFileRecord> {
    let (mut seen, mut known, mut found) = (HashSet::new(), HashSet::new(), Vec::new());
    for open in of {
        let (process, on_disk) = (open.process, open.places(&ON_DISK));
        let mapped = mapped(process, &mut known, clock);
        let is_wanted = |file: &&Measured| file.bytes >= ASKED_BYTES_MIN && on_disk.contains_key(&file.device);
        for file in open.files.iter().chain(&mapped).filter(is_wanted) {
            if seen.len() < ASKED_MAX && seen.insert((file.device, file.inode)) {
                let opened = open_below(process.folder(), file.link());
                let cached = opened.ok().and_then(cachestat::of).filter(|cached| cached.bytes.0 > 0);
                found.extend(cached.map(|cached| (cached, process, file.link().to_owned())));
            }
        }
    }
    found.largest_first(|(cached, ..)| cached.bytes);
    let named = |(cached, process, link): (cachestat::Cached, &Process, String)| {
        let path = process.link(&link).ok()?.display().to_string();
        Some(CachedFileRecord { path, bytes: cached.bytes.0, dirty_bytes: cached.dirty.0 })
    };
    found.into_iter().filter_map(named).take(most).collect()
}

/// The files that this process has mapped, except those in `known`. Needs root or CAP_CHECKPOINT_RESTORE.
fn mapped(process: &Process, known: &mut HashSet<u64>, clock: &Clock) -> Vec<Measured> {
    let resident = process.statm(clock).map_or(0, |statm| statm.value.resident.0);
    if resident < MAPPING_BYTES_MIN {
        return Vec::new();
    }
    let mapped = maps::read(process, clock).map(|mapped| mapped.value).unwrap_or_default();
    let news = mapped.iter().filter(|mapping| mapping.path.starts_with('/') && known.insert(mapping.inode));
    news.filter_map(|of| Measured::at(process, format!("map_files/{:x}-{:x}", of.start, of.end))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_disk_file_comes_first_and_once() {
        use std::io::Write;
        let folder = tempfile::tempdir_in(std::env::var("CARGO_MANIFEST_DIR").unwrap()).unwrap();
        let path = |name| folder.path().canonicalize().unwrap().join(name);
        let mut large = std::fs::File::create(path("large.log")).unwrap();
        large.write_all(&vec![7; 48 << 20]).unwrap();
        large.sync_all().unwrap();
        let twice = large.try_clone().unwrap();
        let own = Process::open(std::process::id()).unwrap();
        let found = largest(&own, &Clock::start(), 20).unwrap().value;
        let ours: Vec<_> = found.iter().filter(|file| file.path.ends_with("large.log")).collect();
        assert!(ours.len() == 1 && ours[0].bytes >= 48 << 20, "{found:?}");
        drop((large, twice));
        assert!(largest(&own, &Clock::start(), 0).unwrap().value.is_empty());
    }

    #[test]
    fn only_regular_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().canonicalize().unwrap().join(name);
        let kept = std::fs::File::create(path("kept file")).unwrap();
        let deleted = std::fs::File::create(path("deleted")).unwrap();
        std::fs::remove_file(path("deleted")).unwrap();
        let pipe = std::io::pipe().unwrap();
        let folder_itself = std::fs::File::open(folder.path()).unwrap();
        let own = Process::open(std::process::id()).unwrap();
        let found = read(&own, &Clock::start()).unwrap().value;
        let here: Vec<_> = found.into_iter().filter(|path| path.starts_with(folder.path())).collect();
        assert_eq!(here, [path("kept file")]);
        drop((kept, deleted, pipe, folder_itself));
        let found = read(&own, &Clock::start()).unwrap().value;
        assert!(!found.contains(&path("kept file")));
    }
}
