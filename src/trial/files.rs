//! The files that a subject's processes have mapped or open. Their pages are charged to the subject's cgroup or to
//! another one.

use crate::clock::Clock;
use crate::kernel::mapping::DELETED;
use crate::observe::procfs::Process;
use crate::observe::{maps, open_files};
use crate::subject::container_files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More than a JDK and an application use.
const FILES_MAX: usize = 4096;
/// Not on disk.
const KERNEL_FOLDERS: [&str; 3] = ["/proc/", "/sys/", "/dev/"];
/// Each JVM has a file in this directory, which it deletes at exit.
const COUNTERS_FOLDER: &str = "/hsperfdata_";

/// Absolute paths of regular files that can be opened from here, sorted.
pub(super) fn held(pids: &[u32], clock: &Clock) -> Vec<String> {
    named(pids, clock).into_iter().filter(|path| Path::new(path).is_file()).take(FILES_MAX).collect()
}

/// Like `held`, for processes in a container with these layers.
pub(super) fn held_in(pids: &[u32], layers: &[PathBuf], clock: &Clock) -> Vec<String> {
    let outside = named(pids, clock).into_iter().flat_map(|path| container_files::outside(&path, layers));
    let found: BTreeSet<String> = outside.filter_map(|path| path.into_os_string().into_string().ok()).collect();
    found.into_iter().take(FILES_MAX).collect()
}

/// Names of files that processes hold, as the processes see them.
fn named(pids: &[u32], clock: &Clock) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for process in pids.iter().filter_map(|pid| Process::open(*pid).ok()) {
        let mapped = maps::read(&process, clock).map(|maps| maps.value).unwrap_or_default();
        let open = open_files::read(&process, clock).map(|files| files.value).unwrap_or_default();
        let paths = mapped.into_iter().map(|mapping| mapping.path.to_string());
        let paths = paths.chain(open.into_iter().filter_map(|path| path.into_os_string().into_string().ok()));
        found.extend(paths.filter(|path| may_lie_on_disk(path)));
        if found.len() >= FILES_MAX {
            break;
        }
    }
    found
}

fn may_lie_on_disk(path: &str) -> bool {
    path.starts_with('/')
        && !path.ends_with(DELETED)
        && !path.contains(COUNTERS_FOLDER)
        && !KERNEL_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_files_are_skipped() {
        for path in ["/opt/jdk/lib/modules", "/srv/my app/app.jar"] {
            assert!(may_lie_on_disk(path), "{path}");
        }
        for path in [
            "",
            "[heap]",
            "anon_inode:[eventpoll]",
            "/memfd:java_heap (deleted)",
            "/dev/zero",
            "/proc/4711/maps",
            "/tmp/hsperfdata_app/4711",
        ] {
            assert!(!may_lie_on_disk(path), "{path}");
        }
    }

    #[test]
    fn files_held_by_this_process_are_found_once_and_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("held");
        let twice = [std::fs::File::create(&path).unwrap(), std::fs::File::open(&path).unwrap()];
        let own = std::process::id();
        let found = held(&[own, own, u32::MAX], &Clock::start());
        drop(twice);
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        assert!(found.contains(&path.to_string_lossy().into_owned()), "{found:?}");
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert!(found.contains(&program.to_string_lossy().into_owned()), "{found:?}");
    }
}
