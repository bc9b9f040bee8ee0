//! Memory that a process causes and that is in no RSS of it: its children, and files in memory that it has open.

use super::watched::{Watched, charge};
use crate::kernel::machine::Dentries;
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::procfs::Process;
use crate::observe::{memory_files, open_files, smaps};
use crate::record::{BesideRecord, ChargeRecord, DentriesRecord, DiskFileRecord, ProcessRecord};
use crate::subject::processes::descendants;
use loadline_base::order::Order as _;

/// Children whose shared pages are divided among sharers, the largest; a look takes 1 ms for each 40 MiB.
const ROLLUPS_MAX: usize = 32;
/// Children that are listed.
const CHILDREN_MAX: usize = 200;
/// Places of files that are listed.
const PLACES_MAX: usize = 20;
/// Files on disks that are listed.
const DISK_FILES_MAX: usize = 10;

/// Reads the memory that a process causes outside of its RSS; parts that cannot be read are missing.
pub(super) fn look(watched: &Watched) -> BesideRecord {
    if watched.process.is_copied() {
        return BesideRecord::default();
    }
    let files = memory_files::read(&watched.process, &watched.clock).map(|files| files.value).unwrap_or_default();
    BesideRecord {
        children: children(watched),
        files: files.into_iter().take(PLACES_MAX).collect(),
        disk_files: disk_files(watched),
        dentries: Dentries::read().map(|read| DentriesRecord { all: read.all, negative: read.negative }),
        shared_charge: shared_charge(watched),
    }
}

/// The largest open files on disks.
fn disk_files(watched: &Watched) -> Vec<DiskFileRecord> {
    let found = open_files::largest(&watched.process, &watched.clock, DISK_FILES_MAX);
    found.map(|found| found.value).unwrap_or_default()
}

/// The charge of a cgroup that is not the subject's own.
fn shared_charge(watched: &Watched) -> Option<ChargeRecord> {
    if watched.cgroup.is_some() {
        return None;
    }
    charge(&MemoryCgroup::of(&watched.process).ok()?, &watched.clock)
}

/// The living processes below it, the largest first.
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
