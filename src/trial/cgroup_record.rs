//! The record of a subject's memory cgroup: its peak, unreclaimable memory, refaulted pages, and file pages charged to
//! others.

use crate::clock::Clock;
use crate::kernel::process::page_size;
use crate::observe::cgroup::{CgroupMemory, MemoryCgroup};
use crate::observe::procfs::Process;
use crate::observe::smaps::{self, Smaps};
use crate::record::{CgroupRecord, Trial};
use crate::subject::RunningSubject;
use std::collections::BTreeMap;

/// More than any subject has.
const PROCESSES_MAX: usize = 200;

/// Reads the cgroup while the subject runs or after its death; `None` if it has no limit. `anon_bytes_max` is the
/// largest anonymous part of earlier samples. After a death before readiness, the cgroup is gone; only its limit and
/// its kills are known.
pub(super) fn read(running: &dyn RunningSubject, anon_bytes_max: Option<u64>, clock: &Clock) -> Option<CgroupRecord> {
    let (own, limit) = running.cgroup()?;
    let limit = limit?;
    let grain_bytes = running.limit_grain().map(|grain| grain.0);
    let oom_kills = running.oom_kills();
    let page_bytes = Some(page_size().0).filter(|page| *page != CgroupRecord::default().page());
    let told = CgroupRecord { limit_bytes: limit.0, grain_bytes, page_bytes, oom_kills, ..CgroupRecord::default() };
    let Ok(cgroup) = MemoryCgroup::open(own.clone()) else { return Some(told) };
    let Ok(memory) = cgroup.read(clock) else { return Some(told) };
    let mapped = mapped_bytes(&cgroup.pids(), clock);
    Some(record(told, &memory.value, anon_bytes_max, mapped))
}

/// Adds data that only the end of a trial provides.
pub(super) fn complete(trial: &mut Trial, running: &dyn RunningSubject, clock: &Clock) {
    match &mut trial.cgroup {
        Some(record) => record.oom_kills = record.oom_kills.max(running.oom_kills()),
        None => trial.cgroup = read(running, None, clock),
    }
}

/// `told` is known without the cgroup's files; `mapped` are the file pages in the subject's page tables.
fn record(told: CgroupRecord, memory: &CgroupMemory, anon_bytes_max: Option<u64>, mapped: Option<u64>) -> CgroupRecord {
    let charge = &memory.charge;
    let anon = anon_bytes_max.unwrap_or(0).max(charge.anon.0);
    // Without swap, shared memory (a ZGC heap, tmpfs) is as unreclaimable as anonymous pages.
    let kept = charge.kernel.map_or(0, |kernel| kernel.0) + charge.shmem.0;
    CgroupRecord {
        peak_bytes: memory.peak.map(|peak| peak.0),
        anon_peak_bytes: Some(anon.saturating_add(kept)),
        file_bytes: Some(charge.file.0),
        limit_hits: memory.events.at_limit,
        major_faults: charge.major_faults,
        file_refaults: charge.file_refaults,
        oom_kills: told.oom_kills.max(memory.events.oom_kills),
        foreign_file_bytes: mapped.map(|mapped| mapped.saturating_sub(charge.file_mapped.0)),
        ..told
    }
}

/// File pages in these processes' page tables, in bytes; `None` if none is alive.
fn mapped_bytes(pids: &[u32], clock: &Clock) -> Option<u64> {
    let processes: Vec<Process> = pids.iter().take(PROCESSES_MAX).filter_map(|pid| Process::open(*pid).ok()).collect();
    if let [only] = processes.as_slice() {
        let status = only.status(clock).ok()?.value;
        return Some(status.rss_file.0 + status.rss_shmem.0);
    }
    let maps = processes.iter().filter_map(|process| smaps::read(process, clock).ok());
    let each: Vec<Smaps> = maps.map(|smaps| smaps.value).collect();
    (!each.is_empty()).then(|| shared_once(&each))
}

/// The cgroup counts a page once even if several processes map it. The kernel does not identify the pages, so this
/// counts each file's largest part in one process, which is a lower bound.
fn shared_once(each: &[Smaps]) -> u64 {
    let mut largest: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for smaps in each {
        let mut own: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        for weighed in &smaps.mappings {
            let pages = weighed.weight.rss.0.saturating_sub(weighed.weight.anonymous.0);
            *own.entry((&weighed.mapping.path, weighed.mapping.inode)).or_default() += pages;
        }
        for (file, pages) in own {
            let known = largest.entry(file).or_default();
            *known = (*known).max(pages);
        }
    }
    largest.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::charge::Charge;
    use crate::observe::cgroup::Events;
    use crate::units::Bytes;

    fn memory() -> CgroupMemory {
        let charge = Charge {
            anon: Bytes::mib(40),
            file: Bytes::mib(30),
            file_mapped: Bytes::mib(20),
            shmem: Bytes::mib(2),
            kernel: Some(Bytes::mib(3)),
            file_refaults: 70,
            major_faults: 7,
            ..Charge::default()
        };
        let events = Events { oom_kills: 1, at_limit: 900 };
        let (usage, peak) = (Bytes::mib(75), Some(Bytes::mib(80)));
        CgroupMemory { usage, peak, limit: None, high: None, swap: None, charge, events, pressure: None }
    }

    #[test]
    fn unreclaimable_memory_is_the_anonymous_peak_plus_kernel_and_shmem() {
        let told = CgroupRecord { limit_bytes: 80 << 20, ..CgroupRecord::default() };
        let of = |anon_mib: Option<u64>, mapped_mib: Option<u64>| {
            record(told, &memory(), anon_mib.map(|mib| mib << 20), mapped_mib.map(|mib| mib << 20))
        };
        let seen = of(Some(44), Some(26));
        assert_eq!((seen.limit_bytes >> 20, seen.peak_bytes.map(|bytes| bytes >> 20)), (80, Some(80)));
        assert_eq!(seen.anon_peak_bytes, Some((44 + 3 + 2) << 20));
        assert_eq!((seen.file_bytes, seen.foreign_file_bytes), (Some(30 << 20), Some(6 << 20)));
        assert_eq!((seen.limit_hits, seen.major_faults, seen.file_refaults, seen.oom_kills), (900, 7, 70, 1));
        // Pages stay charged after they are unmapped, so they are not foreign.
        assert_eq!(of(None, Some(10)).foreign_file_bytes, Some(0));
        assert_eq!((of(None, None).foreign_file_bytes, of(None, None).anon_peak_bytes), (None, Some(45 << 20)));
    }

    #[test]
    fn a_kill_reported_before_the_cgroup_vanished_is_kept() {
        let told = CgroupRecord { oom_kills: 2, ..CgroupRecord::default() };
        assert_eq!(record(told, &memory(), None, None).oom_kills, 2);
    }

    #[test]
    fn a_file_mapped_by_several_processes_counts_once() {
        let smaps = |libc: u64, rest: &str| {
            let text = format!("10-20 r-xp 00000000 fe:00 7  /lib/libc.so\nRss: {libc} kB\nAnonymous: 4 kB\n{rest}");
            Smaps::parse(&text)
        };
        let heap = "20-30 rw-p 00000000 00:00 0  [heap]\nRss: 900 kB\nAnonymous: 900 kB\n";
        let jar = "30-40 r--s 00000000 fe:00 9  /app.jar\nRss: 50 kB\nAnonymous: 0 kB\n";
        let again = "40-50 r--p 00002000 fe:00 7  /lib/libc.so\nRss: 10 kB\nAnonymous: 0 kB\n";
        assert_eq!(shared_once(&[smaps(104, heap), smaps(64, jar)]), (100 + 50) << 10);
        assert_eq!(shared_once(&[smaps(104, ""), smaps(104, again)]), 110 << 10);
        assert_eq!(shared_once(&[]), 0);
    }

    #[test]
    fn this_process_has_file_pages_mapped() {
        let (own, clock) = (std::process::id(), Clock::start());
        let alone = mapped_bytes(&[own], &clock).unwrap();
        assert!(alone > 64 << 10, "{alone}");
        // An independent source: mapping twice in one process.
        let twice = mapped_bytes(&[own, own], &clock).unwrap();
        assert!(twice.abs_diff(alone) < alone / 2, "{twice} and {alone}");
        assert_eq!(mapped_bytes(&[u32::MAX], &clock), None);
    }
}
