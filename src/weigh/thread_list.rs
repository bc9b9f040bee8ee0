//! A process's individual threads: memory held, CPU time, and allocation.

use crate::account::Owner;
use crate::observe::thread_stats::ThreadStat;
use crate::record::ThreadRecord;
use loadline_base::order::Order as _;
use loadline_jvm::accounting::Accounted;
use std::collections::BTreeMap;

/// Resident stack bytes by thread ID in this namespace. Omits threads that were running, and those whose stack shares a
/// mapping with another's, as with musl.
pub(super) fn stacks(accounted: &Accounted) -> BTreeMap<u32, u64> {
    let maps = &accounted.seen.smaps.mappings;
    let mut found: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for stack in &accounted.seen.stacks {
        let Some(pointer) = stack.pointer else { continue };
        let at = maps.partition_point(|of| of.mapping.end <= pointer);
        if maps.get(at).is_some_and(|of| of.mapping.start <= pointer) {
            found.entry(at).or_default().push(stack.tid);
        }
    }
    let mut stacks = BTreeMap::new();
    for region in &accounted.account.regions {
        let held = region.shares.iter().find(|(owner, _)| *owner == Owner::ThreadStacks);
        if let (Some([tid]), Some((_, bytes))) = (found.get(&region.index).map(Vec::as_slice), held) {
            stacks.insert(*tid, *bytes);
        }
    }
    stacks
}

/// All live threads, largest allocation first. `allocated` is by thread ID in the process's namespace.
pub(super) fn threads(
    threads: &[ThreadStat],
    allocated: &BTreeMap<u32, u64>,
    stacks: &BTreeMap<u32, u64>,
) -> Vec<ThreadRecord> {
    let record = |thread: &ThreadStat| ThreadRecord {
        tid: thread.tid,
        name: thread.name.clone(),
        stack_bytes: stacks.get(&thread.tid).copied(),
        cpu_s: thread.cpu.as_secs_f64(),
        allocated_bytes: allocated.get(&thread.ns_tid).copied(),
    };
    let mut list: Vec<ThreadRecord> = threads.iter().map(record).collect();
    list.largest_first(|thread| (thread.allocated_bytes, thread.stack_bytes));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_thread_is_matched_by_each_sources_id() {
        let (name, cpu) = ("a".to_owned(), Duration::from_millis(250));
        let thread = |tid, ns_tid| ThreadStat { tid, ns_tid, name: name.clone(), cpu, faults: 0 };
        // In a separate pid namespace, whose IDs belong to other threads here.
        let list = threads(
            &[thread(900, 7), thread(901, 900), thread(902, 8)],
            &BTreeMap::from([(7, 5), (900, 6), (901, 7)]),
            &BTreeMap::from([(900, 4096), (7, 1)]),
        );
        let told: Vec<_> = list.iter().map(|of| (of.tid, of.stack_bytes, of.allocated_bytes)).collect();
        assert_eq!(told, [(901, None, Some(6)), (900, Some(4096), Some(5)), (902, None, None)]);
        assert!(list.iter().all(|of| of.name == "a" && of.cpu_s == 0.25));
    }
}
