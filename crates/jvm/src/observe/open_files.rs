//! `/proc/PID/fd` (man proc_pid_fd): the regular files that a process has open, each named by a link such as
//! `5 -> /opt/app/lib/app.jar`. Pipes, sockets and devices are left out, and so is what was deleted.

use super::memory_files::{MEMFD, Measured, measured, places_of};
use super::procfs::Process;
use super::{Read, Reading};
use loadline_base::clock::Clock;
use loadline_base::order::Order as _;
use rustix::fs::{AtFlags, FileType, statat};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;

/// More than any limit on descriptors that servers are given.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// The paths of the open files, as named in the process's own mount namespace; one that is open twice is named twice.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<PathBuf>> {
    Reading::take(clock, || {
        Ok(process.numbers_in("fd")?.take(DESCRIPTORS_MAX).filter_map(|number| regular(process, number)).collect())
    })
}

/// The path of a descriptor. `None` where it is no regular file, was deleted, or was closed meanwhile.
fn regular(process: &Process, number: u32) -> Option<PathBuf> {
    let link = format!("fd/{number}");
    // `statat` follows the link to the open file itself, even if another file is at its path now.
    let seen = statat(process.folder(), &link, AtFlags::empty()).ok()?;
    let is_kept = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile && seen.st_nlink > 0;
    is_kept.then(|| process.link(&link).ok()).flatten().filter(|path| path.is_absolute())
}

/// A file on a disk that a process has open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskFileRecord {
    /// The file, as the process sees it.
    pub path: String,
    /// Bytes that it occupies on its disk.
    pub bytes: u64,
}

/// The open files that are not in memory, the largest first, at most so many; one that is open twice comes once, one
/// that was deleted with ` (deleted)` behind its path.
///
/// # Errors
/// Fails if the descriptors or the mounts of the process cannot be read.
pub fn largest(process: &Process, clock: &Clock, most: usize) -> Read<Vec<DiskFileRecord>> {
    Reading::take(clock, || {
        let (in_memory, mut seen) = (places_of(process)?, HashSet::new());
        let on_disk = measured(process)?.filter(|file| file.bytes > 0 && !in_memory.contains_key(&file.device));
        let mut found: Vec<Measured> = on_disk.filter(|file| seen.insert((file.device, file.inode))).collect();
        found.largest_first(|file| file.bytes);
        let named = |file: Measured| {
            let path = process.link(&file.link()).ok()?.display().to_string();
            let is_kept = path.starts_with('/') && !path.starts_with(MEMFD);
            is_kept.then_some(DiskFileRecord { path, bytes: file.bytes })
        };
        Ok(found.into_iter().filter_map(named).take(most).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_open_file_of_a_disk_comes_first_and_once() {
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
    fn regular_files_are_found_and_nothing_else() {
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
