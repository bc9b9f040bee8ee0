//! The account from mark to mark, on synthetic trials.

use super::*;
use crate::export::samples;
use crate::record::{Mark, WouldReturn};
use crate::units::MIB;

fn account(owners: &[(&str, u64)]) -> AccountRecord {
    samples::account(&owners.iter().map(|(name, mib)| (*name, mib * MIB)).collect::<Vec<_>>())
}

fn trial(marks: &[(&str, AccountRecord)]) -> Trial {
    let mark = |(name, account): &(&str, AccountRecord)| Mark {
        name: (*name).to_owned(),
        rss_bytes: account.total_bytes,
        account: Some(account.clone()),
        ..Mark::default()
    };
    Trial { marks: marks.iter().map(mark).collect(), ..Trial::new("x", 0, 0) }
}

fn five() -> Trial {
    let mut rested = account(&[("java_heap.used", 6), ("java_heap.free", 4), ("malloc.retained", 9), ("cds", 12)]);
    rested.would_return = WouldReturn { gc_bytes: Some(3 * MIB), ..WouldReturn::default() };
    let mut collected = account(&[("java_heap.live", 2), ("java_heap.free", 4), ("malloc.retained", 9), ("cds", 12)]);
    collected.would_return = WouldReturn { trim_bytes: Some(8 * MIB), ..WouldReturn::default() };
    trial(&[
        ("start", account(&[("java_heap.used", 4), ("cds", 12), ("metaspace", 1)])),
        ("warm", account(&[("java_heap.used", 5), ("cds", 12)])),
        ("loaded", account(&[("java_heap.used", 9), ("java_heap.free", 1), ("malloc.retained", 10), ("cds", 12)])),
        ("rested", rested),
        ("collected", collected),
        ("trimmed", account(&[("java_heap.live", 2), ("java_heap.free", 4), ("malloc.retained", 10), ("cds", 12)])),
    ])
}

#[test]
fn growth_is_attributed_to_owners_and_the_heap_counts_as_one() {
    assert_eq!(
        Journey::of(&five()).what_grew().unwrap(),
        "From start to loaded, RSS grew by 15.0 MiB: malloc retained +10.0, Java heap +6.0, metaspace -1.0. RSS then \
            changed by -1.0 while idle (malloc retained -1.0), then by -4.0 after a full GC (Java heap -4.0), then \
            by +1.0 after a trim (malloc retained +1.0)."
    );
}

#[test]
fn the_remaining_growth_has_its_own_row() {
    let grown = |mib: u64| account(&["cds", "gc", "libjvm", "libraries", "metaspace"].map(|name| (name, mib)));
    let text = Journey::of(&trial(&[("start", grown(1)), ("loaded", grown(2))])).what_grew().unwrap();
    assert!(text.starts_with("From start to loaded, RSS grew by 5.0 MiB: CDS archive +1.0"), "{text}");
    assert!(text.ends_with(", everything else +1.0."), "{text}");
}

#[test]
fn predictions_are_shown_with_measurements() {
    assert_eq!(
        predictions(&five()),
        [
            "Effect of a full GC on RSS, in MiB: predicted -3.0, measured -4.0.",
            "Effect of a trim on RSS, in MiB: predicted -8.0, measured +1.0."
        ]
    );
    assert_eq!(predictions(&trial(&[("collected", account(&[("cds", 1)]))])), [""; 0]);
}

#[test]
fn a_collection_may_increase_rss_or_be_unpredictable() {
    let told = |would_return: WouldReturn| {
        let rested = AccountRecord { would_return, ..account(&[("cds", 12)]) };
        predictions(&trial(&[("rested", rested), ("collected", account(&[("cds", 14)]))]))
    };
    let grown = WouldReturn { gc_bytes: Some(0), gc_grown_bytes: Some(MIB), ..WouldReturn::default() };
    assert_eq!(told(grown), ["Effect of a full GC on RSS, in MiB: predicted +1.0, measured +2.0."]);
    let (gc_reason, gc_why) = ("not_collected".to_owned(), "nobody knows".to_owned());
    let unknown = WouldReturn { gc_reason, gc_why, ..WouldReturn::default() };
    assert_eq!(told(unknown), ["Effect of a full GC on RSS, in MiB: predicted nothing (nobody knows), measured +2.0."]);
}

#[test]
fn parts_that_a_mark_splits_differently_are_dashes() {
    let table = Journey::of(&five()).table();
    assert_eq!(table.head, ["owner", "start", "loaded", "rested", "collected", "trimmed"]);
    let row = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap()[1..].to_vec();
    assert_eq!(row("Java heap, used"), ["4.0", "9.0", "6.0", "-", "-"]);
    assert_eq!(row("Java heap, live"), ["-", "-", "-", "2.0", "2.0"]);
    assert_eq!(row("malloc retained"), ["0.0", "10.0", "9.0", "9.0", "10.0"]);
    assert_eq!(row("unexplained"), ["0.0"; 5]);
    assert_eq!(row("RSS"), ["17.0", "32.0", "31.0", "27.0", "28.0"]);
    assert_eq!(table.rows.last().unwrap()[0], "RSS");
}

#[test]
fn a_bar_covers_its_entire_account() {
    for (bar, (_, account)) in Journey::of(&five()).bars().bars.iter().zip(Journey::of(&five()).0) {
        assert_eq!(bar.parts.iter().sum::<u64>(), account.total_bytes, "{}", bar.label);
        assert_eq!(bar.parts.len(), Group::ALL.len());
    }
}

#[test]
fn a_trial_without_accounts_has_no_journey() {
    let mut trial = five();
    trial.marks.iter_mut().for_each(|mark| mark.account = None);
    assert_eq!(journey(&trial), []);
    // An account without owners shows nothing.
    trial.marks[0].account = Some(AccountRecord { total_bytes: 1, ..AccountRecord::default() });
    assert_eq!(journey(&trial), []);
}
