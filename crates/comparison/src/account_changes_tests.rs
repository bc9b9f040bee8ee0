//! Changes between two generated accounts.

use super::*;
use crate::record::{DetailRecord, OwnerRecord};
use proptest::prelude::*;

fn part(kind: &str, name: &str, count: u64, rss_bytes: u64) -> DetailRecord {
    DetailRecord { kind: kind.to_owned(), name: name.to_owned(), count, rss_bytes, allocated_bytes: None }
}

fn account(owners: Vec<(&str, u64, Vec<DetailRecord>)>) -> AccountRecord {
    let owner = |(name, rss_bytes, detail): (&str, u64, Vec<DetailRecord>)| OwnerRecord {
        name: name.to_owned(),
        rss_bytes,
        detail,
        ..OwnerRecord::default()
    };
    AccountRecord { owners: owners.into_iter().map(owner).collect(), ..AccountRecord::default() }
}

fn stacks(threads: &[(&str, u64, u64)]) -> AccountRecord {
    let detail = threads.iter().map(|(name, count, rss)| part("thread", name, *count, *rss)).collect();
    account(vec![("thread_stacks", 0, detail)])
}

#[test]
fn owners_are_in_account_order_and_mark_unknown_values() {
    let then = account(vec![("malloc.unsplit", 70, vec![]), ("java_heap.used", 10, vec![])]);
    let now = account(vec![("malloc.live", 50, vec![]), ("java_heap.used", 30, vec![]), ("later", 1, vec![])]);
    let changes = owner_changes(&then, &now);
    let told: Vec<_> =
        changes.iter().map(|row| (row.name.as_str(), row.then_bytes, row.now_bytes, row.growth_bytes)).collect();
    assert_eq!(
        told,
        [
            ("java_heap.used", Some(10), Some(30), Some(20)),
            ("malloc.live", None, Some(50), None),
            ("malloc.unsplit", Some(70), Some(0), Some(-70)),
            ("later", Some(0), Some(1), Some(1)),
            ("unexplained", Some(0), Some(0), Some(0)),
        ]
    );
}

#[test]
fn threads_that_differ_only_in_numbers_form_a_pool() {
    let then = stacks(&[("exec-1", 1, 10), ("exec-22", 1, 10), ("GC Thread#0", 1, 5), ("main", 1, 7)]);
    let now = stacks(&[("exec-1", 1, 10), ("exec-3", 2, 40), ("GC Thread#0", 1, 6), ("main", 1, 7), ("é٣", 1, 1)]);
    let changes = part_changes(&then, &now);
    let told: Vec<_> = changes
        .iter()
        .map(|part| (part.name.as_str(), part.then_count, part.now_count, part.then_bytes, part.growth_bytes))
        .collect();
    assert_eq!(
        told,
        [("exec-*", 2, 3, 20, 30), ("GC Thread#0", 1, 1, 5, 1), ("é٣", 0, 1, 0, 1)],
        "the only thread of a pool keeps its name, and an unchanged thread is omitted"
    );
}

#[test]
fn files_of_two_owners_and_tags_are_separate() {
    let tag = |count, bytes| DetailRecord { allocated_bytes: Some(bytes), ..part("tag", "Class", count, 0) };
    let then = account(vec![("libraries", 9, vec![part("file", "/a1", 1, 9)]), ("malloc.live", 0, vec![tag(3, 30)])]);
    let now = account(vec![("mapped_files", 9, vec![part("file", "/a1", 1, 9)]), ("malloc.live", 0, vec![])]);
    let changes = part_changes(&then, &now);
    let told: Vec<_> =
        changes.iter().map(|part| (part.owner.as_str(), part.name.as_str(), part.growth_bytes)).collect();
    assert_eq!(told, [("libraries", "/a1", -9), ("mapped_files", "/a1", 9), ("malloc.live", "Class", 0)]);
    assert_eq!((changes[2].then_allocated_bytes, changes[2].now_allocated_bytes), (Some(30), Some(0)));
    assert_eq!(changes[0].then_allocated_bytes, None);
}

proptest! {
    #[test]
    fn part_changes_add_up_to_the_total_change(
        then in proptest::collection::vec(("(pool-)?[0-9]{0,2}[ab]?[0-9]{0,2}", 0u64..5, 0u64..1000), 0..20),
        now in proptest::collection::vec(("(pool-)?[0-9]{0,2}[ab]?[0-9]{0,2}", 0u64..5, 0u64..1000), 0..20),
    ) {
        let of = |rows: &[(String, u64, u64)]| {
            stacks(&rows.iter().map(|(name, count, rss)| (name.as_str(), *count, *rss)).collect::<Vec<_>>())
        };
        let total = |rows: &[(String, u64, u64)]| rows.iter().map(|(.., rss)| *rss as i64).sum::<i64>();
        let changes = part_changes(&of(&then), &of(&now));
        prop_assert_eq!(changes.iter().map(|part| part.growth_bytes).sum::<i64>(), total(&now) - total(&then));
        let names: Vec<&str> = changes.iter().map(|part| part.name.as_str()).collect();
        let once: std::collections::BTreeSet<_> = names.iter().collect();
        prop_assert_eq!(once.len(), names.len());
        prop_assert!(part_changes(&of(&now), &of(&now)).is_empty());
    }

    #[test]
    fn account_changes_accept_any_sizes(then in any::<u64>(), now in any::<u64>(), count in any::<u64>()) {
        let of = |bytes| stacks(&[("a", count, bytes), ("a", count, bytes)]);
        for part in part_changes(&of(then), &of(now)) {
            prop_assert_eq!(part.growth_bytes > 0, part.now_bytes > part.then_bytes);
        }
        owner_changes(&account(vec![("cds", then, vec![])]), &account(vec![("cds", now, vec![])]));
    }
}
