//! Finds the hsperfdata file of a JVM: `/tmp/hsperfdata_USER/NSPID` in its own mount namespace, reached through
//! `/proc/PID/root`, with the pid of its own pid namespace (JDK 11–25; the folder is always `/tmp`).
//!
//! Containers may share one `/tmp` and all have pid 1: the right file is the one whose inode the process has mapped:
//!
//! ```text
//! 7f2f800ac000-7f2f800b4000 rw-s 00000000 fe:00 9986049                    /tmp/hsperfdata_app/13412
//! ```

use super::procfs::{Process, open_below};
use super::{Unavailable, maps};
use crate::clock::Clock;
use crate::kernel::mapping::Mapping;
use crate::kernel::process::Status;
use std::fs::{File, read_dir};
use std::os::unix::fs::MetadataExt;

const SOURCE: &str = "hsperfdata";
/// Folders looked at; more than this many users on one machine is somebody filling `/tmp`.
const FOLDERS_MAX: usize = 1000;

/// Opens the file, or says why there is none.
pub(super) fn open(process: &Process, status: &Status, clock: &Clock) -> Result<File, Unavailable> {
    let mapped = mapped_inode(process, clock)?;
    let candidates = candidates(process, status)?;
    let right = |file: &(File, u64, u32)| mapped.is_none_or(|inode| inode == file.1);
    let mut fitting: Vec<_> = candidates.into_iter().filter(right).collect();
    fitting.sort_by_key(|(_, _, owner)| *owner != status.euid);
    fitting.into_iter().next().map(|(file, _, _)| file).ok_or_else(|| {
        Unavailable::new(SOURCE, format!("no file /tmp/hsperfdata_*/{} that belongs to this process", status.ns_pid))
    })
}

/// The inode of the mapped file; `None` when the mappings cannot be read.
fn mapped_inode(process: &Process, clock: &Clock) -> Result<Option<u64>, Unavailable> {
    let Ok(maps) = maps::read(process, clock) else { return Ok(None) };
    let is_counters = |m: &&Mapping| m.perms.ends_with('s') && m.path.contains("/hsperfdata_");
    match maps.value.iter().find(is_counters) {
        Some(mapping) => Ok(Some(mapping.inode)),
        None if maps::libjvm(&maps.value).is_none() => {
            Err(Unavailable::new(SOURCE, "the process is no HotSpot JVM (yet)"))
        }
        None => Err(Unavailable::new(SOURCE, "off, by `-XX:-UsePerfData` or `-XX:+PerfDisableSharedMem`")),
    }
}

/// Every file with the right name: the file, its inode, its owner.
fn candidates(process: &Process, status: &Status) -> Result<Vec<(File, u64, u32)>, Unavailable> {
    let folders = read_dir(process.path("root/tmp")).map_err(|e| Unavailable::io(SOURCE, &e))?;
    let mut found = Vec::new();
    let names = folders.flatten().filter_map(|folder| folder.file_name().into_string().ok());
    // Only these are counted: sockets of JVMs that were killed stay in `/tmp` by the hundred.
    for name in names.filter(|name| name.starts_with("hsperfdata_")).take(FOLDERS_MAX) {
        let path = format!("root/tmp/{name}/{}", status.ns_pid);
        let Ok(file) = open_below(process.folder(), &path) else { continue };
        if let Ok(about) = file.metadata().map_err(|_| ()) {
            found.extend(about.is_file().then(|| (file, about.ino(), about.uid())));
        }
    }
    Ok(found)
}
