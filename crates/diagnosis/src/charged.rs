//! Kernel caches charged to a container: file names and file pages. Both are reclaimable: the kernel drops them before
//! it kills a process, so a limit need not include them.

use super::facts::{Facts, share, sum};
use super::found::{file_name, found, listed};
use crate::record::{ChargeRecord, Finding, FindingRecord, Mark};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped};
use loadline_base::order::Order as _;

/// Starting any program leaves up to this much, or this share of RSS.
const BYTES_MIN: u64 = 16 << 20;
const SHARE_MIN: f64 = 0.1;
/// The size of a cached name (`struct dentry` of Linux 4 to 6, x86-64 and aarch64).
const DENTRY_BYTES: u64 = 192;
/// The minimum share of a charge's growth that must be traced to its cause.
const SEEN_SHARE_MIN: f64 = 0.5;
const FILES_MAX: usize = 3;

/// The charge of the subject's cgroup, its own or shared.
fn charge(mark: &Mark) -> Option<&ChargeRecord> {
    mark.charge.as_ref().or(mark.beside.shared_charge.as_ref())
}

/// The first mark and the mark that is judged, if the same cgroup was charged at both.
fn span<'a>(facts: &Facts<'a>) -> Option<(&'a Mark, &'a Mark)> {
    let first = facts.at(MarkPoint::Start)?;
    let (last, _) = facts.weighed()?;
    (charge(first)?.cgroup == charge(last)?.cgroup).then_some((first, last))
}

/// A note if other processes share the charge.
fn others(mark: &Mark) -> &'static str {
    match mark.charge {
        Some(_) => "",
        None => " (for the whole cgroup, which other processes share)",
    }
}

/// The kernel caches every requested path name, even of missing files. Source: kernel
/// `Documentation/admin-guide/sysctl/fs.rst`, memory.stat (`slab_reclaimable`); druid #7508 (`File.exists` on a new
/// name each time), lxc #3143; measured: 480,000 names, 90 MiB.
pub(super) fn names(facts: &Facts) -> Option<FindingRecord> {
    let (first, last) = span(facts)?;
    let kernel_bytes = charge(last)?.kernel_bytes?.saturating_sub(charge(first)?.kernel_bytes?);
    let (before, now) = (first.beside.dentries?, last.beside.dentries?);
    let (names, missing) = (now.all.saturating_sub(before.all), now.negative.saturating_sub(before.negative));
    let seen = names.saturating_mul(DENTRY_BYTES);
    let is_seen = share(seen, kernel_bytes) >= SEEN_SHARE_MIN;
    if kernel_bytes < BYTES_MIN || share(kernel_bytes, facts.rss()) < SHARE_MIN || !is_seen {
        return None;
    }
    let of = match share(missing, names) >= SEEN_SHARE_MIN {
        true => format!("{} of them for files that do not exist (negative dentries)", grouped(missing)),
        false => "for files that were created, opened, or listed".to_owned(),
    };
    let (grown, others, more) = (Bytes(kernel_bytes), others(last), grouped(names));
    let text = format!(
        "kernel memory grew by {grown}{others}: the kernel now caches {more} more file names (dentries), {of}. \
         The container is charged for them, but they do not show up in RSS"
    );
    let next = "the kernel reclaims these before it kills anything, so the limit does not have to cover them: alert \
         on the working set instead. To reduce them, look up fewer distinct paths: cache failed lookups, reuse file \
         names, and keep temporary files in one directory. No JVM flag changes this";
    let finding = Finding::KernelRemembersNames { kernel_bytes, names, missing };
    Some(FindingRecord { costs_bytes: kernel_bytes, ..found(finding, text, next) })
}

/// Files written by the JVM, such as logs, stay in its container's page cache. Source: kernel memory.stat (`file`),
/// kubernetes #43916, cadvisor #2604 (page cache counted as used); measured: a log of 117 MiB.
pub(super) fn page_cache(facts: &Facts) -> Option<FindingRecord> {
    let (first, last) = span(facts)?;
    let cached = charge(last)?.file_bytes.saturating_sub(charge(first)?.file_bytes);
    let mut files = last.beside.disk_files.clone();
    for file in &mut files {
        let before = first.beside.disk_files.iter().find(|known| known.path == file.path);
        file.bytes = file.bytes.saturating_sub(before.map_or(0, |before| before.bytes));
    }
    files.retain(|file| file.bytes > 0);
    files.largest_first(|file| file.bytes);
    let written = sum(files.iter().map(|file| file.bytes));
    let bytes = cached.min(written);
    if bytes < BYTES_MIN || share(bytes, facts.rss()) < SHARE_MIN || share(bytes, cached) < SEEN_SHARE_MIN {
        return None;
    }
    files.truncate(FILES_MAX);
    let list = listed(&files, |file| format!("`{}` +{}", file_name(&file.path), Bytes(file.bytes)));
    let (grown, others) = (Bytes(cached), others(last));
    let text = format!(
        "the page cache grew by {grown}{others} because the JVM wrote to files it has open: {list}. The container \
         is charged for it, but it does not show up in RSS"
    );
    let next = "the kernel drops these pages before it kills anything, so the limit does not have to cover them: alert \
         on the working set (usage minus inactive file pages) instead. To reduce them, write less, or rotate and \
         delete files sooner. No JVM flag changes this";
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::PageCacheOfFiles { bytes, files }, text, next) })
}
