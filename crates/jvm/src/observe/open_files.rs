//! `/proc/PID/fd` (man proc_pid_fd): the regular files that a process has open, each named by a link such as
//! `5 -> /opt/app/lib/app.jar`. Pipes, sockets and devices are left out, and so is what was deleted.

use super::procfs::Process;
use super::{Read, Reading, Unavailable};
use loadline_base::clock::Clock;
use rustix::fs::{AtFlags, FileType, statat};
use std::path::PathBuf;

/// More than any limit on descriptors that servers are given.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// The paths of the open files, as named in the process's own mount namespace; one that is open twice is named twice.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<PathBuf>> {
    Reading::take(clock, || {
        let numbers = process.numbers_in("fd").map_err(|e| Unavailable::io("fd", &e))?;
        Ok(numbers.take(DESCRIPTORS_MAX).filter_map(|number| regular(process, number)).collect())
    })
}

/// The path of a descriptor. `None` where it is no regular file, was deleted, or was closed meanwhile.
fn regular(process: &Process, number: u32) -> Option<PathBuf> {
    let link = format!("fd/{number}");
    // `statat` follows the link to the open file itself, whatever stands at its path now.
    let seen = statat(process.folder(), &link, AtFlags::empty()).ok()?;
    let is_kept = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile && seen.st_nlink > 0;
    is_kept.then(|| process.link(&link).ok()).flatten().filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

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
