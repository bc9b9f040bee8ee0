//! Threads by pool: names that differ only in numbers, with their stacks and CPU time.

use crate::observe::thread_stats::ThreadStat;
use crate::record::{AccountRecord, CodeHeapRecord, ThreadPoolRecord, pool_names};
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// Pools listed, largest first; a server has 20 to 60.
const POOLS_MAX: usize = 200;

/// The pools of the live threads, largest stacks first. `allocated` is by thread ID in the process's namespace. Stacks
/// are unknown without an account.
pub(super) fn pools(
    threads: &[ThreadStat],
    allocated: &BTreeMap<u32, u64>,
    account: Option<&AccountRecord>,
) -> Vec<ThreadPoolRecord> {
    let details = account.iter().flat_map(|account| &account.owners).flat_map(|owner| &owner.detail);
    let stacks: Vec<_> = details.filter(|detail| detail.kind == "thread").collect();
    let names = threads.iter().map(|thread| &thread.name).chain(stacks.iter().map(|stack| &stack.name));
    let pool_of = pool_names(names.map(String::as_str));
    let mut pools: BTreeMap<&str, ThreadPoolRecord> = BTreeMap::new();
    for thread in threads {
        let Some(name) = pool_of.get(thread.name.as_str()) else { continue };
        pools.entry(name).or_default().add(&ThreadPoolRecord {
            threads: 1,
            cpu_s: thread.cpu.as_secs_f64(),
            allocated_bytes: allocated.get(&thread.ns_tid).copied(),
            ..ThreadPoolRecord::default()
        });
    }
    for stack in stacks {
        // Omits a pool whose threads have all ended.
        if let Some(pool) = pool_of.get(stack.name.as_str()).and_then(|name| pools.get_mut(name.as_str())) {
            pool.stack_bytes = pool.stack_bytes.saturating_add(stack.rss_bytes);
        }
    }
    let named = |(name, pool): (&str, ThreadPoolRecord)| ThreadPoolRecord { name: name.to_owned(), ..pool };
    let mut listed: Vec<ThreadPoolRecord> = pools.into_iter().map(named).collect();
    listed.order_by(|one, other| other.stack_bytes.cmp(&one.stack_bytes).then(other.cpu_s.total_cmp(&one.cpu_s)));
    listed.truncate(POOLS_MAX);
    listed
}

/// The length of the kernel's thread names (`TASK_COMM_LEN`).
const KERNEL_NAME: usize = 15;

/// Restores the full names of pools whose thread names the kernel truncated, if nearly all threads of a pool have the
/// same pattern.
pub(super) fn name_in_full(pools: &mut [ThreadPoolRecord], threads: &[ThreadStat], full: &BTreeMap<u32, String>) {
    let pool_of = pool_names(threads.iter().map(|thread| thread.name.as_str()));
    let full_pool_of = pool_names(full.values().map(String::as_str));
    for pool in pools {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let of_pool = |thread: &&ThreadStat| {
            thread.name.len() >= KERNEL_NAME && pool_of.get(thread.name.as_str()).is_some_and(|name| *name == pool.name)
        };
        for thread in threads.iter().filter(of_pool) {
            let pattern = full.get(&thread.ns_tid).and_then(|name| full_pool_of.get(name.as_str()));
            if let Some(pattern) = pattern {
                *counts.entry(pattern.as_str()).or_default() += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        if let Some((pattern, _)) = most.filter(|(_, count)| count.saturating_mul(5) >= pool.threads.saturating_mul(4))
        {
            pool.name = pattern.to_owned();
        }
    }
}

/// Adds each item to the one with the same name, or appends it.
pub(super) fn add_each<'a, T: Clone + 'a>(
    sum: &mut Vec<T>,
    more: impl IntoIterator<Item = &'a T>,
    is_same: fn(&T, &T) -> bool,
    add: fn(&mut T, &T),
) {
    for one in more {
        match sum.iter_mut().find(|known| is_same(known, one)) {
            Some(known) => add(known, one),
            None => sum.push(one.clone()),
        }
    }
}

/// Merges the pools of several processes by name.
pub(super) fn together<'a>(parts: impl Iterator<Item = &'a [ThreadPoolRecord]>) -> Vec<ThreadPoolRecord> {
    let mut sum: Vec<ThreadPoolRecord> = Vec::new();
    add_each(&mut sum, parts.flatten(), |one, other| one.name == other.name, ThreadPoolRecord::add);
    sum.largest_first(|pool| pool.stack_bytes);
    sum.truncate(POOLS_MAX);
    sum
}

/// Like [`together`], for code caches.
pub(super) fn code_together<'a>(parts: impl Iterator<Item = &'a [CodeHeapRecord]>) -> Vec<CodeHeapRecord> {
    let mut sum: Vec<CodeHeapRecord> = Vec::new();
    add_each(
        &mut sum,
        parts.flatten(),
        |one, other| one.name == other.name,
        |known, heap| {
            let both = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
            known.reserved_bytes = known.reserved_bytes.saturating_add(heap.reserved_bytes);
            known.committed_bytes = both(known.committed_bytes, heap.committed_bytes);
            known.used_bytes = known.used_bytes.saturating_add(heap.used_bytes);
            known.used_bytes_peak = known.used_bytes_peak.saturating_add(heap.used_bytes_peak);
            known.rss_bytes = both(known.rss_bytes, heap.rss_bytes);
        },
    );
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DetailRecord, OwnerRecord};
    use proptest::prelude::*;
    use std::time::Duration;

    fn thread(name: &str, ms: u64) -> ThreadStat {
        ThreadStat { tid: 1, ns_tid: ms as u32, name: name.to_owned(), cpu: Duration::from_millis(ms), faults: 0 }
    }

    #[test]
    fn thread_names_that_differ_in_numbers_form_one_pool() {
        let stack = |name: &str, rss_bytes| DetailRecord {
            kind: "thread".to_owned(),
            name: name.to_owned(),
            rss_bytes,
            ..DetailRecord::default()
        };
        let detail = vec![stack("pool-1-thread-1", 80), stack("pool-1-thread-2", 90), stack("main", 10)];
        let owner = OwnerRecord { name: "thread_stacks".to_owned(), detail, ..OwnerRecord::default() };
        let account = AccountRecord { owners: vec![owner], ..AccountRecord::default() };
        let threads = [
            thread("main", 500),
            thread("pool-1-thread-1", 10),
            thread("pool-1-thread-2", 20),
            thread("C2 CompilerThre", 70),
        ];
        let found = pools(&threads, &BTreeMap::from([(10, 300), (20, 40), (500, 7), (99, 1)]), Some(&account));
        let rows: Vec<_> = found.iter().map(|pool| (pool.name.as_str(), pool.threads, pool.stack_bytes)).collect();
        assert_eq!(rows, [("pool-1-thread-*", 2, 170), ("main", 1, 10), ("C2 CompilerThre", 1, 0)]);
        let allocated: Vec<_> = found.iter().map(|pool| pool.allocated_bytes).collect();
        assert_eq!(allocated, [Some(340), Some(7), None]);
        assert!((found[0].cpu_s - 0.03).abs() < 1e-9);
    }

    #[test]
    fn names_truncated_by_the_kernel_are_completed() {
        let all: Vec<ThreadStat> = (1..=10).map(|n| thread("order-export-wo", n)).collect();
        let full = |last: &str| -> BTreeMap<u32, String> {
            let name = |n| if n > 7 { format!("{last}{n}") } else { format!("order-export-worker-{n}") };
            (1..=10).map(|n| (n, name(n))).collect()
        };
        let named = |full: &BTreeMap<u32, String>| {
            let mut found = pools(&all, &BTreeMap::new(), None);
            name_in_full(&mut found, &all, full);
            found.remove(0).name
        };
        assert_eq!(named(&full("order-export-worker-")), "order-export-worker-*");
        assert_eq!(named(&full("order-export-workshop-")), "order-export-wo", "two pools share this prefix");
        assert_eq!(named(&BTreeMap::new()), "order-export-wo");
    }

    proptest! {
        #[test]
        fn every_thread_is_in_exactly_one_pool(names in prop::collection::vec("[a-b0-9ü-]{0,6}", 0..40)) {
            let threads: Vec<ThreadStat> = names.iter().map(|name| thread(name, 10)).collect();
            let found = pools(&threads, &BTreeMap::new(), None);
            prop_assert_eq!(found.iter().map(|pool| pool.threads).sum::<u64>(), names.len() as u64);
            for pool in found.iter().filter(|pool| pool.threads == 1) {
                prop_assert!(names.contains(&pool.name));
            }
            prop_assert_eq!(together([found.as_slice(), &found].into_iter()).len(), {
                let mut names: Vec<&str> = found.iter().map(|pool| pool.name.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                names.len()
            });
        }
    }
}
