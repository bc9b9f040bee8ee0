//! Invariants of the sum: nothing is lost or counted twice, the order does not matter, and a single process is its own
//! sum.

use super::*;
use crate::account::Reason;
use crate::weigh::weighing::NO_JVM;

fn owner(name: &str, rss: u64, detail: &[(&str, u64)]) -> OwnerRecord {
    let detail = detail.iter().map(|(name, rss)| DetailRecord {
        kind: "file".to_owned(),
        name: (*name).to_owned(),
        count: 1,
        rss_bytes: *rss,
        allocated_bytes: None,
    });
    OwnerRecord { name: name.to_owned(), rss_bytes: rss, pss_bytes: rss / 2, swap_bytes: 1, detail: detail.collect() }
}

fn account(owners: Vec<OwnerRecord>, gc_bytes: Option<u64>) -> AccountRecord {
    let remainder = RemainderRecord { rss_bytes: 7, start: "0x1000".to_owned(), ..RemainderRecord::default() };
    AccountRecord {
        total_bytes: owners.iter().map(|owner| owner.rss_bytes).sum(),
        pss_bytes: owners.iter().map(|owner| owner.pss_bytes).sum(),
        unexplained_bytes: 7,
        unexplained: vec![remainder],
        would_return: WouldReturn {
            gc_bytes,
            gc_grown_bytes: gc_bytes.map(|_| 1),
            gc_reason: Reason::Shrinks.name().to_owned(),
            gc_why: "why".to_owned(),
            trim_bytes: Some(3),
            trim_why: String::new(),
        },
        owners,
        pause_ms: Some(1.5),
        took_ms: 2.0,
        observer_bytes: Some(100),
        ..AccountRecord::default()
    }
}

fn part(pid: u32, account: Option<AccountRecord>) -> WeighedProcess {
    let rss_bytes = account.as_ref().map_or(50, |account| account.total_bytes);
    let mark = Mark {
        name: "loaded".to_owned(),
        rss_bytes,
        pss_bytes: Some(rss_bytes / 2),
        anon_bytes: Some(10),
        threads: Some(u64::from(pid)),
        heap: Heap { used_bytes: Some(4), committed_bytes: Some(8), live_bytes: Some(2), ..Heap::default() },
        account,
        took_ms: 3.0,
        ..Mark::default()
    };
    let taken = MarkReading { mark, failed: vec![format!("of {pid}")], ..MarkReading::default() };
    WeighedProcess { pid, name: format!("p{pid}"), is_jvm: true, taken }
}

fn jvm(pid: u32) -> WeighedProcess {
    let files = owner("mapped_files", 40, &[("a.jar", 30), ("b.jar", 10)]);
    part(pid, Some(account(vec![owner("java_heap.used", 60, &[]), files], Some(5))))
}

fn native(pid: u32) -> WeighedProcess {
    let files = owner("mapped_files", 9, &[("a.jar", 1), ("c.so", 8)]);
    let mut account = account(vec![owner("malloc.live", 20, &[]), files], None);
    account.would_return.gc_reason = Reason::NoJvm.name().to_owned();
    account.would_return.gc_why = NO_JVM.to_owned();
    let part = part(pid, Some(account));
    let mark = Mark { heap: Heap::default(), ..part.taken.mark };
    WeighedProcess { is_jvm: false, taken: MarkReading { mark, ..part.taken }, ..part }
}

#[test]
fn summed_owners_add_up_in_account_order() {
    let taken = sum(vec![jvm(1), native(2), jvm(3)]);
    let (mark, account) = (&taken.mark, taken.mark.account.as_ref().unwrap());
    assert_eq!(account.total_bytes, 100 + 29 + 100);
    assert_eq!(mark.rss_bytes, account.total_bytes);
    assert_eq!(account.owners.iter().map(|owner| owner.rss_bytes).sum::<u64>(), account.total_bytes);
    assert_eq!(account.owners.iter().map(|owner| owner.pss_bytes).sum::<u64>(), account.pss_bytes);
    let names: Vec<_> = account.owners.iter().map(|owner| (owner.name.as_str(), owner.rss_bytes)).collect();
    assert_eq!(names, [("java_heap.used", 120), ("mapped_files", 89), ("malloc.live", 20)]);
    let files: Vec<_> =
        account.owners[1].detail.iter().map(|file| (file.name.as_str(), file.count, file.rss_bytes)).collect();
    assert_eq!(files, [("a.jar", 3, 61), ("b.jar", 2, 20), ("c.so", 1, 8)]);
    assert_eq!((account.pause_ms, account.observer_bytes), (Some(1.5), Some(300)));
    assert_eq!(account.unexplained.iter().map(|found| found.pid).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    let pids: Vec<_> = mark.processes.iter().map(|of| (of.pid, of.name.as_str(), of.rss_bytes)).collect();
    assert_eq!(pids, [(1, "p1", 100), (2, "p2", 29), (3, "p3", 100)]);
    assert_eq!((mark.threads, mark.anon_bytes, mark.took_ms), (Some(6), Some(30), 9.0));
    assert_eq!(taken.failed, ["of 1", "of 2", "of 3"]);
}

#[test]
fn only_a_jvm_with_an_unknown_heap_makes_the_sum_unknown() {
    let heap = sum(vec![jvm(1), native(2)]).mark.heap;
    assert_eq!((heap.used_bytes, heap.live_bytes, heap.max_bytes), (Some(4), Some(2), None));
    let mut unasked = jvm(2);
    unasked.taken.mark.heap = Heap::default();
    assert_eq!(sum(vec![jvm(1), unasked]).mark.heap, Heap::default());
    assert_eq!(sum(vec![native(1), native(2)]).mark.heap, Heap::default());
}

#[test]
fn predictions_are_summed_only_if_known_for_each_jvm() {
    let returns = |parts| sum(parts).mark.account.unwrap().would_return;
    let known = returns(vec![jvm(1), native(2), jvm(3)]);
    assert_eq!((known.gc_bytes, known.gc_grown_bytes, known.trim_bytes), (Some(10), Some(2), Some(9)));
    assert_eq!(known.gc_reason, Reason::Shrinks.name());
    let mut unasked = jvm(2);
    let account = unasked.taken.mark.account.as_mut().unwrap();
    (account.would_return.gc_bytes, account.would_return.gc_why) = (None, "it was not asked".to_owned());
    let unknown = returns(vec![jvm(1), unasked]);
    assert_eq!((unknown.gc_bytes, unknown.gc_why.as_str()), (None, "it was not asked"));
    let native = returns(vec![native(1)]);
    assert_eq!((native.gc_reason.as_str(), native.gc_why.as_str()), (Reason::NoJvm.name(), NO_JVM));
}

#[test]
fn the_order_of_summed_processes_does_not_matter() {
    let one = sum(vec![jvm(1), native(2), jvm(3)]).mark.account.unwrap();
    let other = sum(vec![jvm(1), jvm(3), native(2)]).mark.account.unwrap();
    let totals = |account: &AccountRecord| {
        let of = |owner: &OwnerRecord| (owner.name.clone(), owner.rss_bytes, owner.pss_bytes, owner.swap_bytes);
        (account.total_bytes, account.owners.iter().map(of).collect::<Vec<_>>(), account.would_return.clone())
    };
    assert_eq!(totals(&one), totals(&other));
}

#[test]
fn a_sum_of_one_is_unchanged_and_needs_every_account() {
    let alone = sum(vec![jvm(1)]).mark;
    let before = jvm(1).taken.mark;
    assert_eq!(alone.account.unwrap().owners, before.account.unwrap().owners);
    assert_eq!((alone.rss_bytes, alone.pss_bytes, alone.heap), (before.rss_bytes, before.pss_bytes, before.heap));
    assert_eq!(alone.name, "loaded");
    let lacking = sum(vec![jvm(1), part(2, None)]).mark;
    assert_eq!((lacking.rss_bytes, lacking.account, lacking.processes.len()), (150, None, 2));
    assert_eq!(sum(Vec::new()).mark.rss_bytes, 0);
}

#[test]
fn native_memory_is_summed_by_category_and_growth_only_if_complete() {
    let of = |committed, growth| NmtRecord {
        total_committed_bytes: committed,
        total_growth_bytes: growth,
        categories: vec![NmtCategory {
            name: "GC".to_owned(),
            committed_bytes: committed,
            growth_bytes: growth,
            ..NmtCategory::default()
        }],
        ..NmtRecord::default()
    };
    let with = |pid, nmt| {
        let mut part = jvm(pid);
        part.taken.mark.nmt = nmt;
        part
    };
    let sum_of = |one, other| sum(vec![with(1, one), with(2, other), native(3)]).mark.nmt;
    let both = sum_of(Some(of(5, Some(1))), Some(of(7, Some(-3)))).unwrap();
    assert_eq!((both.total_committed_bytes, both.total_growth_bytes), (12, Some(-2)));
    assert_eq!((both.categories.len(), both.categories[0].committed_bytes), (1, 12));
    assert_eq!(sum_of(Some(of(5, Some(1))), Some(of(7, None))).unwrap().total_growth_bytes, None);
    assert_eq!(sum_of(Some(of(5, None)), None), None);
}

#[test]
fn shared_pages_raise_a_doubt_only_with_several_processes() {
    assert!(doubt(&sum(vec![jvm(1), jvm(2)]).mark).is_some());
    assert_eq!(doubt(&sum(vec![jvm(1)]).mark), None);
}

#[test]
fn direct_memory_is_summed_only_if_known_for_each_jvm() {
    let with = |pid, direct| {
        let part = jvm(pid);
        WeighedProcess { taken: MarkReading { mark: Mark { direct, ..part.taken.mark }, ..part.taken }, ..part }
    };
    let direct = |reserved_bytes, netty_bytes| DirectRecord {
        reserved_bytes,
        buffers: 2,
        netty_bytes,
        netty_loaded: netty_bytes.is_some(),
        max_bytes: Some(100),
        mapped_bytes: 1,
        mapped_buffers: 1,
    };
    let of = |parts| sum(parts).mark.direct;
    let all = vec![with(1, Some(direct(10, None))), with(2, Some(direct(30, Some(5)))), native(3)];
    let expect =
        DirectRecord { buffers: 4, max_bytes: Some(200), mapped_bytes: 2, mapped_buffers: 2, ..direct(40, Some(5)) };
    assert_eq!(of(all), Some(expect));
    assert_eq!(of(vec![with(1, Some(direct(10, None))), jvm(2)]), None);
    assert_eq!(of(vec![with(1, Some(direct(10, None)))]), Some(direct(10, None)));
}
