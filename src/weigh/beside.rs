//! Memory attributable to a process but outside its RSS: child processes, and open memory-backed files.

use super::watched::{Watched, charge};
use crate::kernel::machine::Dentries;
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::procfs::Process;
use crate::observe::{memory_files, open_files, smaps};
use crate::record::{BesideRecord, ChargeRecord, DentriesRecord, DiskFileRecord, ProcessRecord};
use crate::subject::processes::descendants;
use loadline_base::order::Order as _;

/// PSS is read for this many of the largest children; each 40 MiB costs 1 ms.
const ROLLUPS_MAX: usize = 32;
const CHILDREN_MAX: usize = 200;
/// The maximum number of file locations listed.
const PLACES_MAX: usize = 20;
const DISK_FILES_MAX: usize = 10;

/// Reads a process's memory outside its RSS; omits unreadable parts.
pub(super) fn look(watched: &Watched) -> BesideRecord {
    let files = memory_files::read(&watched.process, &watched.clock).map(|files| files.value).unwrap_or_default();
    let files = files.into_iter().take(PLACES_MAX).collect();
    let open = BesideRecord { files, disk_files: disk_files(watched), ..BesideRecord::default() };
    if watched.process.is_copied() {
        return open;
    }
    BesideRecord {
        children: children(watched),
        dentries: Dentries::read().map(|read| DentriesRecord { all: read.all, negative: read.negative }),
        shared_charge: shared_charge(watched),
        ..open
    }
}

/// The largest open files on disk.
fn disk_files(watched: &Watched) -> Vec<DiskFileRecord> {
    let found = open_files::largest(&watched.process, &watched.clock, DISK_FILES_MAX);
    found.map(|found| found.value).unwrap_or_default()
}

/// The charge of a shared cgroup.
fn shared_charge(watched: &Watched) -> Option<ChargeRecord> {
    if watched.cgroup.is_some() {
        return None;
    }
    charge(&MemoryCgroup::of(&watched.process).ok()?, &watched.clock)
}

/// The live child processes, largest first.
fn children(watched: &Watched) -> Vec<ProcessRecord> {
    let clock = &watched.clock;
    let weigh = |child: crate::subject::processes::Process| {
        let process = Process::open(child.pid).ok()?;
        let rss_bytes = process.statm(clock).ok()?.value.resident.0;
        Some((process, ProcessRecord { pid: child.pid, name: child.name, rss_bytes, pss_bytes: None }))
    };
    let mut all: Vec<_> = descendants(watched.process.pid()).into_iter().filter_map(weigh).collect();
    all.largest_first(|(_, record)| record.rss_bytes);
    all.truncate(CHILDREN_MAX);
    for (process, record) in all.iter_mut().take(ROLLUPS_MAX) {
        record.pss_bytes = smaps::read_rollup(process, clock).ok().map(|rollup| rollup.value.pss.0);
    }
    all.into_iter().map(|(_, record)| record).collect()
}
