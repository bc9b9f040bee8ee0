//! A sample for display, with the owners that the JVM's counters reveal.

use super::column::Column;
use super::sample::{Sample, unreclaimable};
use crate::record::{WatchOwner, WatchSample};
use loadline_base::order::Order as _;

/// The assumed memory per thread, without measuring stacks. Idle server threads use about 100 KiB, including malloc and
/// kernel memory (measured; docs/memory.md).
pub(super) const THREAD_BYTES: u64 = 128 << 10;

/// The owners according to the JVM's counters, largest first. Committed heap and metaspace may not be resident, so the
/// sum is capped at all anonymous memory.
pub(super) fn by_counters(now: &WatchSample) -> Vec<WatchOwner> {
    let anon = now.rss_anon_bytes.unwrap_or(0) + now.rss_shmem_bytes.unwrap_or(0);
    let mut left = anon;
    let mut take = |bytes: Option<u64>| {
        let taken = bytes.unwrap_or(0).min(left);
        left -= taken;
        taken
    };
    let metaspace = take(now.metaspace_bytes);
    let direct = take(now.direct_bytes);
    let threads = take(now.threads.map(|threads| threads.saturating_mul(THREAD_BYTES)));
    // Heap comes last, because much of it may be committed but untouched.
    let heap = take(now.heap_committed_bytes);
    let owners =
        [("java_heap", heap), ("metaspace", metaspace), ("direct", direct), ("threads", threads), ("rest", left)];
    let files = [("files", now.rss_file_bytes.unwrap_or(0))];
    let named = |(name, bytes): (&str, u64)| WatchOwner { name: name.to_owned(), bytes };
    let mut owners: Vec<WatchOwner> = owners.into_iter().chain(files).map(named).filter(|one| one.bytes > 0).collect();
    owners.largest_first(|owner| owner.bytes);
    owners
}

pub(super) fn shown(sample: &Sample) -> WatchSample {
    let get = |column| sample.get(column);
    WatchSample {
        rss_anon_bytes: get(Column::RssAnon),
        rss_file_bytes: get(Column::RssFile),
        rss_shmem_bytes: get(Column::RssShmem),
        swap_bytes: get(Column::Swap),
        heap_used_bytes: get(Column::HeapUsed),
        heap_committed_bytes: get(Column::HeapCommitted),
        heap_floor_bytes: get(Column::HeapFloor),
        heap_max_bytes: get(Column::HeapMax),
        metaspace_bytes: get(Column::MetaspaceCommitted),
        direct_bytes: get(Column::Direct),
        threads: get(Column::Threads),
        classes: get(Column::Classes),
        charge_bytes: get(Column::Charge),
        unreclaimable_bytes: unreclaimable(get),
        gc_ms: get(Column::GcTime),
        cpu_ms: get(Column::CpuTime),
        allocated_bytes: get(Column::Allocated),
        at_limit: get(Column::AtLimit),
        oom_kills: get(Column::OomKills),
    }
}
