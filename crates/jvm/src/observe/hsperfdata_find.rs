//! Finds a JVM's hsperfdata file: `/tmp/hsperfdata_USER/NSPID` in its own mount namespace, reached through
//! `/proc/PID/root`, with its pid in its own pid namespace (JDK 11–27; the directory is always `/tmp`).
//!
//! Links below `/tmp` are not followed, whether to directories or to files: HotSpot neither creates nor follows any.
//! Containers may share `/tmp` and all have pid 1, so the right file is the one whose inode the process has mapped:
//!
//! ```text
//! 7f2f800ac000-7f2f800b4000 rw-s 00000000 fe:00 9986049                    /tmp/hsperfdata_app/13412
//! ```

use super::hsperfdata::SOURCE;
use super::inside::Inside;
use super::procfs::{Process, open_below};
use super::{Unavailable, maps};
use crate::kernel::mapping::Mapping;
use crate::kernel::process::Status;
use loadline_base::clock::Clock;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Maximum number of directories read; if a machine has more of them, someone is filling `/tmp`.
const FOLDERS_MAX: usize = 1000;

/// The file's name in the copy of a process.
const COPY: &str = "hsperfdata";

/// Opens the file, or returns why that is not possible.
pub(super) fn open(process: &Process, status: &Status, clock: &Clock) -> Result<File, Unavailable> {
    if process.is_copied() {
        return open_below(process.folder(), COPY).map_err(Unavailable::io(SOURCE));
    }
    let mapped = mapped_inode(process, clock)?;
    let tmp = Inside::folder(process, "/tmp").map_err(Unavailable::io(SOURCE))?;
    let name = status.ns_pid.to_string();
    let candidates = candidates(&tmp, &name).map_err(Unavailable::io(SOURCE))?;
    right(candidates, mapped, status.euid).ok_or_else(|| {
        Unavailable::new(SOURCE, format!("no file /tmp/hsperfdata_*/{} that belongs to this process", status.ns_pid))
    })
}

/// The inode of the mapped file; `None` if the mappings cannot be read.
fn mapped_inode(process: &Process, clock: &Clock) -> Result<Option<u64>, Unavailable> {
    let Ok(maps) = maps::read_of_tables(process, clock) else { return Ok(None) };
    let is_counters = |m: &&Mapping| m.perms.ends_with('s') && m.path.contains("/hsperfdata_");
    match maps.value.iter().find(is_counters) {
        Some(mapping) => Ok(Some(mapping.inode)),
        None if maps::libjvm(&maps.value).is_none() => {
            Err(Unavailable::new(SOURCE, "the process is not a HotSpot JVM (yet)"))
        }
        None => Err(Unavailable::new(SOURCE, "turned off by `-XX:-UsePerfData` or `-XX:+PerfDisableSharedMem`")),
    }
}

/// A file with the right name, its inode, and its owner.
type CandidateFile = (File, u64, u32);

/// Picks the file that the process has mapped. If its mappings cannot be read, only a file of its own user counts,
/// because anyone can create a file with that name.
fn right(candidates: impl IntoIterator<Item = CandidateFile>, mapped: Option<u64>, euid: u32) -> Option<File> {
    let is_own = |owner: u32| owner == euid;
    let fits = |(_, inode, owner): &CandidateFile| mapped.map_or(is_own(*owner), |mapped| mapped == *inode);
    // One at a time, because each holds a descriptor.
    let mut other = None;
    for (file, _, owner) in candidates.into_iter().filter(fits) {
        if is_own(owner) {
            return Some(file);
        }
        other.get_or_insert(file);
    }
    other
}

/// Every file with this name in a user's directory, opened lazily.
fn candidates(tmp: &Inside, name: &str) -> io::Result<impl Iterator<Item = CandidateFile>> {
    // Only these are considered: sockets of killed JVMs accumulate in `/tmp` by the hundreds.
    let folders = tmp.names()?.filter(|name| name.starts_with("hsperfdata_")).take(FOLDERS_MAX);
    let candidate = move |folder: String| {
        let file = tmp.file(&folder, name).ok()?;
        let about = file.metadata().ok()?;
        Some((file, about.ino(), about.uid()))
    };
    Ok(folders.filter_map(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_users_file_counts_only_if_mapped() {
        // Each file is identified by its length.
        let candidate = |inode, owner| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(inode).unwrap();
            (file, inode, owner)
        };
        let picked = |mapped, euid| {
            let file = right([candidate(11, 666), candidate(12, 1000)], mapped, euid);
            file.map(|file| file.metadata().unwrap().len())
        };
        assert_eq!(picked(None, 1000), Some(12), "the process's own file is chosen");
        assert_eq!(picked(None, 1001), None, "no file belongs to this user");
        assert_eq!(picked(Some(13), 1000), None, "the mapped file is not a candidate");
        assert_eq!(picked(Some(11), 1000), Some(11), "a mapped file counts even if the JVM changed its user");
    }
}
