//! Combines several processes into one subject: sums their measurements, and merges their accounts by owner. Pure.

use super::loaders::together;
use super::thread_pools::{self, add_each, code_together};
use super::weighing::MarkReading;
use crate::account::{Owner, Reason};
use crate::doubt::Doubt;
use crate::record::{
    AccountRecord, ClassCounts, DetailRecord, DirectRecord, Heap, LoadersRecord, MallocRecord, Mark, NmtCategory,
    NmtRecord, OwnerRecord, ProcessRecord, RemainderRecord, ToldBy, WouldReturn,
};
use loadline_base::order::Order as _;

/// Maximum number of stretches without an owner to list.
const REMAINDERS_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct WeighedProcess {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) is_jvm: bool,
    pub(crate) taken: MarkReading,
}

/// The sum of all measurements; the first is the serving process's. RSS counts shared pages once per process; PSS does
/// not.
pub(crate) fn sum(mut parts: Vec<WeighedProcess>) -> MarkReading {
    let processes = parts.iter().map(WeighedProcess::record).collect();
    let failed = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.taken.failed)).collect();
    let accounts: Option<Vec<(u32, AccountRecord)>> =
        parts.iter_mut().map(|part| Some((part.pid, part.taken.mark.account.take()?))).collect();
    let marks = || parts.iter().map(|part| &part.taken.mark);
    let all = |of: fn(&Mark) -> Option<u64>| marks().map(of).sum::<Option<u64>>();
    // A process that is not a JVM has no Java heap, so this is not a gap.
    let jvms = || parts.iter().filter(|part| part.is_jvm).map(|part| &part.taken.mark);
    let heap = |of: fn(&Heap) -> Option<u64>| {
        if jvms().next().is_none() { None } else { jvms().map(|mark| of(&mark.heap)).sum::<Option<u64>>() }
    };
    let rss_bytes = marks().map(|mark| mark.rss_bytes).sum();
    let mark = Mark {
        rss_bytes,
        pss_bytes: all(|mark| mark.pss_bytes),
        anon_bytes: all(|mark| mark.anon_bytes),
        file_bytes: all(|mark| mark.file_bytes),
        swap_bytes: all(|mark| mark.swap_bytes),
        threads: all(|mark| mark.threads),
        heap: Heap {
            used_bytes: heap(|heap| heap.used_bytes),
            committed_bytes: heap(|heap| heap.committed_bytes),
            live_bytes: heap(|heap| heap.live_bytes),
            max_bytes: heap(|heap| heap.max_bytes),
            ..Heap::default()
        },
        nmt: native_memory(jvms().map(|mark| mark.nmt.as_ref())),
        account: accounts.map(merge),
        direct: direct(jvms().map(|mark| mark.direct)),
        classes: classes(jvms().map(|mark| mark.classes)),
        loaders: loaders(jvms().map(|mark| mark.loaders.as_ref())),
        code: code_together(marks().map(|mark| mark.code.as_slice())),
        pools: thread_pools::together(marks().map(|mark| mark.pools.as_slice())),
        took_ms: marks().map(|mark| mark.took_ms).sum(),
        processes,
        ..Mark::default()
    };
    let Some(first) = parts.into_iter().next() else { return MarkReading { mark, failed, ..MarkReading::default() } };
    let Mark { name, at_s, charge_bytes, charge, counters, .. } = first.taken.mark;
    MarkReading {
        mark: Mark { name, at_s, charge_bytes, charge, counters, ..mark },
        // The kernel's per-process peaks were not simultaneous.
        rss_bytes_peak: Some(rss_bytes),
        failed,
        allocator: first.taken.allocator,
        collector: first.taken.collector,
    }
}

/// A doubt that RSS and PSS are sums, if they differ.
pub(crate) fn doubt(mark: &Mark) -> Option<Doubt> {
    let (processes, rss_bytes, pss_bytes) = (mark.processes.len() as u64, mark.rss_bytes, mark.pss_bytes?);
    (processes > 1 && pss_bytes < rss_bytes).then_some(Doubt::SharedCountedOften { processes, rss_bytes, pss_bytes })
}

impl WeighedProcess {
    fn record(&self) -> ProcessRecord {
        let Mark { rss_bytes, pss_bytes, .. } = self.taken.mark;
        ProcessRecord { pid: self.pid, name: self.name.clone(), rss_bytes, pss_bytes }
    }
}

/// The sum; `None` if any part is missing.
fn native_memory<'a>(parts: impl Iterator<Item = Option<&'a NmtRecord>>) -> Option<NmtRecord> {
    let parts: Vec<&NmtRecord> = parts.collect::<Option<_>>()?;
    let (first, others) = parts.split_first()?;
    let mut sum = (*first).clone();
    for other in others {
        sum.total_committed_bytes += other.total_committed_bytes;
        sum.total_reserved_bytes += other.total_reserved_bytes;
        sum.total_growth_bytes = both(sum.total_growth_bytes, other.total_growth_bytes);
        add_each(&mut sum.categories, &other.categories, |one, other| one.name == other.name, add_category);
    }
    Some(sum)
}

/// The sum of the known values, if any.
fn known<T>(one: Option<T>, other: Option<T>, sum: impl Fn(T, T) -> T) -> Option<T> {
    [one, other].into_iter().flatten().reduce(sum)
}

/// The sum; `None` if any part is missing.
fn classes(parts: impl Iterator<Item = Option<ClassCounts>>) -> Option<ClassCounts> {
    parts.collect::<Option<Vec<_>>>()?.into_iter().reduce(|sum, part| ClassCounts {
        loaded: sum.loaded.saturating_add(part.loaded),
        shared: sum.shared.saturating_add(part.shared),
        unloaded: sum.unloaded.saturating_add(part.unloaded),
    })
}

/// Like [`classes`]; ceilings are added if all have one.
fn direct(parts: impl Iterator<Item = Option<DirectRecord>>) -> Option<DirectRecord> {
    parts.collect::<Option<Vec<_>>>()?.into_iter().reduce(|sum, part| DirectRecord {
        reserved_bytes: sum.reserved_bytes.saturating_add(part.reserved_bytes),
        buffers: sum.buffers.saturating_add(part.buffers),
        netty_bytes: known(sum.netty_bytes, part.netty_bytes, u64::saturating_add),
        netty_loaded: sum.netty_loaded || part.netty_loaded,
        max_bytes: sum.max_bytes.zip(part.max_bytes).map(|(one, other)| one.saturating_add(other)),
        mapped_bytes: sum.mapped_bytes.saturating_add(part.mapped_bytes),
        mapped_buffers: sum.mapped_buffers.saturating_add(part.mapped_buffers),
    })
}

/// Like [`classes`].
fn loaders<'a>(parts: impl Iterator<Item = Option<&'a LoadersRecord>>) -> Option<LoadersRecord> {
    let parts: Vec<&LoadersRecord> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| together(parts.into_iter()))
}

fn add_category(to: &mut NmtCategory, more: &NmtCategory) {
    to.committed_bytes += more.committed_bytes;
    to.reserved_bytes += more.reserved_bytes;
    to.growth_bytes = both(to.growth_bytes, more.growth_bytes);
}

fn both(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    Some(one?.saturating_add(other?))
}

/// Merges the accounts of several processes. Its owners still add up to its RSS and PSS.
fn merge(parts: Vec<(u32, AccountRecord)>) -> AccountRecord {
    let several = parts.len() > 1;
    let mut merged = AccountRecord {
        would_return: would_return(parts.iter().map(|(_, account)| &account.would_return)),
        malloc: malloc(parts.iter().filter_map(|(_, account)| account.malloc.as_ref())),
        ..AccountRecord::default()
    };
    for (pid, account) in parts {
        merged.total_bytes += account.total_bytes;
        merged.pss_bytes += account.pss_bytes;
        merged.unexplained_bytes += account.unexplained_bytes;
        merged.took_ms += account.took_ms;
        merged.pause_ms = known(merged.pause_ms, account.pause_ms, f64::max);
        merged.observer_bytes = known(merged.observer_bytes, account.observer_bytes, i64::saturating_add);
        // For several JVMs, records which one was attached to.
        merged.told = match (merged.told.take(), account.told) {
            (Some(one), Some(other)) if one.by == ToldBy::Tables => Some(other),
            (one, other) => one.or(other),
        };
        let pid = several.then_some(pid);
        merged.unexplained.extend(account.unexplained.into_iter().map(|found| RemainderRecord { pid, ..found }));
        add_each(&mut merged.owners, &account.owners, |one, other| one.name == other.name, add_owner);
    }
    let place = |owner: &OwnerRecord| Owner::ALL.iter().position(|known| known.name() == owner.name);
    merged.owners.order_by_key(place);
    merged.unexplained.largest_first(|found| found.rss_bytes);
    merged.unexplained.truncate(REMAINDERS_MAX);
    merged
}

fn add_owner(to: &mut OwnerRecord, more: &OwnerRecord) {
    to.rss_bytes += more.rss_bytes;
    to.pss_bytes += more.pss_bytes;
    to.swap_bytes += more.swap_bytes;
    let is_same = |one: &DetailRecord, other: &DetailRecord| (&one.kind, &one.name) == (&other.kind, &other.name);
    add_each(&mut to.detail, &more.detail, is_same, add_detail);
    to.detail.largest_first(|detail| detail.rss_bytes);
}

fn add_detail(to: &mut DetailRecord, more: &DetailRecord) {
    to.count += more.count;
    to.rss_bytes += more.rss_bytes;
    to.allocated_bytes = known(to.allocated_bytes, more.allocated_bytes, u64::saturating_add);
}

/// The memory that all would return, if known for each; a process without a Java heap returns none.
fn would_return<'a>(parts: impl Iterator<Item = &'a WouldReturn> + Clone) -> WouldReturn {
    let with_heap = parts.clone().filter(|part| part.gc_reason != Reason::NoJvm.name());
    let gc = total(with_heap.clone().map(|part| (part.gc_bytes, part.gc_why.as_str())));
    let grown = total(with_heap.clone().map(|part| (part.gc_grown_bytes, part.gc_reason.as_str())));
    let ((gc_bytes, gc_why), (gc_grown_bytes, gc_reason)) = match with_heap.count() {
        0 => ((None, super::weighing::NO_JVM.to_owned()), (None, Reason::NoJvm.name().to_owned())),
        _ => (gc, grown),
    };
    let (trim_bytes, trim_why) = total(parts.map(|part| (part.trim_bytes, part.trim_why.as_str())));
    WouldReturn { gc_bytes, gc_grown_bytes, gc_reason, gc_why, trim_bytes, trim_why }
}

/// The sum with the first reason, or the reason why there is no sum.
fn total<'a>(mut parts: impl Iterator<Item = (Option<u64>, &'a str)> + Clone) -> (Option<u64>, String) {
    let reason = parts.clone().map(|(_, why)| why).find(|why| !why.is_empty()).unwrap_or_default();
    match parts.clone().map(|(bytes, _)| bytes).sum::<Option<u64>>() {
        Some(bytes) => (Some(bytes), reason.to_owned()),
        None => (None, parts.find(|(bytes, _)| bytes.is_none()).map_or("", |(_, why)| why).to_owned()),
    }
}

/// The sum over accounts with walked heaps; the others have `malloc.unsplit`.
fn malloc<'a>(parts: impl Iterator<Item = &'a MallocRecord>) -> Option<MallocRecord> {
    parts.cloned().reduce(|mut sum, part| {
        if !sum.allocator.split(", ").any(|known| known == part.allocator) {
            sum.allocator = format!("{}, {}", sum.allocator, part.allocator);
        }
        sum.arenas += part.arenas;
        sum.system_bytes += part.system_bytes;
        sum.live_bytes += part.live_bytes;
        sum.free_bytes += part.free_bytes;
        sum.mmapped_bytes += part.mmapped_bytes;
        sum.mmapped_chunks += part.mmapped_chunks;
        sum.tagged |= part.tagged;
        sum.walk_errors += part.walk_errors;
        // A number specific to an allocator is summed over the processes that use it.
        let add = |sum: &mut Option<u64>, more: Option<u64>| *sum = known(*sum, more, u64::saturating_add);
        add(&mut sum.groups, part.groups);
        add(&mut sum.live_chunks, part.live_chunks);
        add(&mut sum.asked_bytes, part.asked_bytes);
        add(&mut sum.free_pages_bytes, part.free_pages_bytes);
        add(&mut sum.lazy_free_bytes, part.lazy_free_bytes);
        sum
    })
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
