//! A JVM's account in words: invariants on synthetic records, and sentences selected by numbers.

use super::*;
use crate::export::samples::{account, weighed as document};
use crate::record::{
    ExplanationRecord, Finding, FindingRecord, FlagOrigin, FlagRecord, HeldHeapRecord, HolderRecord, SiteRecord,
};
use crate::render;
use crate::scenario::{Change, Gc};
use crate::units::MIB;
use proptest::prelude::*;

/// The text of one fact.
fn charge(change: impl Fn(&mut Mark, &mut ChargeRecord)) -> String {
    let mut mark = document().mark;
    let mut charge = mark.charge.clone().unwrap();
    change(&mut mark, &mut charge);
    charge_text(&mark, &charge)
}

/// The amount that a full GC or a trim would return.
fn returned(document: &AccountDocument, by: &str) -> String {
    let facts = beside(document, document.mark.account.as_ref().unwrap());
    facts.into_iter().find(|(name, _)| name == by).unwrap().1
}

#[test]
fn the_effect_of_a_full_gc_is_unknown_without_a_prediction() {
    let mut document = document();
    let would = &mut document.mark.account.as_mut().unwrap().would_return;
    (would.gc_bytes, would.gc_grown_bytes, would.gc_why) = (None, None, "no collection yet".to_owned());
    document.findings.clear();
    (document.objects, document.explanation) = (None, None);
    assert_eq!(returned(&document, "full GC"), "unknown: no collection yet");
}

/// A holder of 26 MiB outranks collector tables of 3 MiB, but not tables of 30.
#[test]
fn the_next_step_addresses_the_larger_of_holder_and_finding() {
    let next_of = |tables_bytes: u64| {
        let mut document = document();
        let holder = HolderRecord { retained_bytes: 26 * MIB, ..HolderRecord::default() };
        let heap = HeldHeapRecord { live_bytes: 27 * MIB, holders: vec![holder], ..HeldHeapRecord::default() };
        document.explanation = Some(ExplanationRecord { heap: Some(heap), ..ExplanationRecord::default() });
        document.findings = vec![FindingRecord {
            finding: Finding::HeapFree { free_bytes: tables_bytes, committed_bytes: None, rested: false },
            of: None,
            text: String::new(),
            next: String::new(),
            costs_bytes: tables_bytes,
            gain_bytes_max: None,
            remedies: vec![Change::Gc(Gc::Serial)],
        }];
        let Part::Text(text) = next::of_recorded(&document) else { panic!("the next step must be text") };
        text
    };
    assert!(next_of(3 * MIB).starts_with("Next: change the code that fills it"), "{}", next_of(3 * MIB));
    assert!(next_of(30 * MIB).ends_with("tries `-XX:+UseSerialGC` and shows what it saves."));
}

#[test]
fn a_bundle_suggests_no_command_that_needs_the_jvm() {
    let owners = [("malloc.unsplit", 278 * MIB), ("metaspace", 40 * MIB)];
    let mut document = document();
    let pid = document.jvm.pid;
    (document.bundle, document.jvm.allocator) = (Some("b.tar".to_owned()), Some("glibc".to_owned()));
    document.findings.clear();
    let mut told = |owners: &[(&str, u64)]| {
        document.mark.account = Some(account(owners));
        let would = &mut document.mark.account.as_mut().unwrap().would_return;
        *would = crate::record::WouldReturn { gc_reason: Reason::NotAsked.name().to_owned(), ..Default::default() };
        let text = render(&summarize_account(&document, &[Detail::Tag]));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = told(&owners);
    let trim = format!("in the container, run {}", next::trim(pid));
    assert!(text.contains("No known cause explains the 278.0 MiB of malloc (not split)."), "{text}");
    assert!(text.contains(&format!("trim unknown; {trim}, which prints how much it released")), "{text}");
    assert!(text.contains("`loadline account --from LATER --against b.tar`"), "{text}");
    assert!(!text.contains("loadline explain") && !text.contains("loadline watch"), "{text}");
    assert!(text.contains("but the Java heap could not be located in it"), "{text}");
    let text = told(&owners[1..]);
    assert!(text.contains("`loadline account --from b.tar --by loader` shows which loader"), "{text}");
}

#[test]
fn owners_that_round_to_zero_share_a_row() {
    let shown = rows(&account(&[("java_heap.used", 3 * MIB), ("malloc.mmapped", 20_000), ("malloc.unsplit", 30_000)]));
    let names: Vec<(&str, u64)> = shown.iter().map(|row| (row.name.as_str(), row.rss_bytes)).collect();
    assert_eq!(names, [("Java heap, used", 3 * MIB), ("2 smaller owners", 50_000), ("unexplained", 0)]);
    let alone = rows(&account(&[("metaspace", MIB), ("malloc.mmapped", 20_000)]));
    assert_eq!(alone[1].name, "malloc mmapped");
}

#[test]
fn the_summary_sentence_matches_the_numbers() {
    let check = |heap: u64, others: u64, text: &str| {
        let said = answer(&account(&[("java_heap.used", heap), ("metaspace", others)]));
        assert!(said.starts_with(text), "{said}");
    };
    check(
        0,
        4 * MIB,
        "RSS is 4.0 MiB, and none of it is Java heap. Largest owners outside the heap: metaspace 4.0 \
         MiB.",
    );
    check(100 * MIB, MIB, "RSS is 101.0 MiB, and nearly all of it is Java heap (100.0).");
    check(10 * MIB, 9 * MIB, "RSS is 19.0 MiB, 1.9 times the resident Java heap (10.0 MiB).");
    check(MIB, 49 * MIB, "RSS is 50.0 MiB, 50 times the resident Java heap (1.0 MiB).");
}

#[test]
fn retained_malloc_names_who_freed_and_keeps_it() {
    let said = answer(document().mark.account.as_ref().unwrap());
    let retained = "malloc retained 17.2 MiB (freed by the program, kept by glibc), metaspace";
    assert!(said.contains(retained), "{said}");
    let mut untrimmed = account(&[("malloc.retained", 2 * MIB)]);
    untrimmed.would_return = crate::record::WouldReturn::default();
    assert!(answer(&untrimmed).ends_with("2.0 MiB (freed by the program, kept by malloc)."));
}

#[test]
fn an_account_on_musl_has_groups_and_no_trim() {
    let mut document = document();
    let account = document.mark.account.as_mut().unwrap();
    let malloc = account.malloc.as_mut().unwrap();
    (malloc.allocator, malloc.groups, malloc.walk_errors) = ("musl".to_owned(), Some(1), 2);
    (account.would_return.trim_bytes, account.would_return.trim_why) = (Some(0), "musl has no trim".to_owned());
    assert!(answer(account).contains("kept by musl), "), "{}", answer(account));
    let malloc = malloc_text(document.mark.account.as_ref().unwrap().malloc.as_ref().unwrap());
    assert!(malloc.ends_with("in free chunks, 1 group, 2 groups could not be read completely"), "{malloc}");
    assert_eq!(returned(&document, "trim"), "would return nothing: musl has no trim");
}

#[test]
fn the_charge_of_a_shared_cgroup_covers_all_its_processes() {
    let text = charge(|_, charge| charge.processes = 3);
    assert!(text.ends_with("The charge covers all 3 processes in the cgroup."), "{text}");
}

#[test]
fn the_charge_explains_its_difference_from_rss() {
    let less = charge(|mark, charge| {
        mark.file_bytes = Some(40 * MIB);
        mark.rss_bytes = 200 * MIB;
        (charge.usage_bytes, charge.anon_bytes, charge.file_bytes) = (165 * MIB, 160 * MIB, 5 * MIB);
        charge.kernel_bytes = None;
    });
    assert_eq!(
        less,
        "165.0 MiB = anon 160.0 + file 5.0 + shmem 0.0. The charge is 35.0 MiB less than RSS: 35.0 MiB of file pages \
         is charged to other cgroups, which read them first."
    );
    let rest = charge(|mark, charge| {
        mark.file_bytes = None;
        charge.usage_bytes += MIB;
        charge.kernel_bytes = Some(0);
    });
    assert!(rest.contains(" + kernel 0.0 + rest 12.1. The charge is 24.4 MiB more than RSS."), "{rest}");
}

#[test]
fn swap_replaces_the_share_column() {
    let mut swapped = document();
    swapped.mark.account.as_mut().unwrap().owners[0].swap_bytes = 30 * MIB;
    let text = render(&summarize_account(&swapped, &[]));
    assert!(text.contains("owner") && text.contains("swap what it is") || text.contains("swap  what it is"), "{text}");
    assert!(!text.contains("% of RSS"));
}

#[test]
fn rss_and_pss_are_shown_without_an_account() {
    let mut document = document();
    document.mark.account = None;
    let text = render(&summarize_account(&document, &[Detail::Thread]));
    assert!(text.contains("RSS is 157.8 MiB, PSS 153.5 MiB; its owners could not be read."), "{text}");
    assert!(text.contains("\ndoubts\n"));
}

#[test]
fn threads_of_older_documents_are_listed_by_name() {
    let mut document = document();
    let told = |document: &AccountDocument| render(&summarize_account(document, &[Detail::Thread]));
    let text = told(&document);
    assert!(text.contains("allocated MiB") && !text.contains("stacks by thread"), "{text}");
    document.mark.account.as_mut().unwrap().threads = None;
    let text = told(&document);
    assert!(text.contains("stacks by thread, resident KiB") && !text.contains("allocated MiB"), "{text}");
}

#[test]
fn an_account_shows_flag_origins_and_a_disabled_attach_mechanism() {
    let mut document = document();
    let words = |document: &AccountDocument| {
        let text = render(&summarize_account(document, &[]));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let set = "flags 4 of 6 are set: 2 on the command line, 1 in the environment, 1 by the JVM (--by flag)";
    assert!(words(&document).contains(set) && !words(&document).contains("attached"), "{}", words(&document));
    document.mark.account.as_mut().unwrap().told = Some(ToldRecord::default());
    let flags = document.flags.as_mut().unwrap();
    (flags.set[0].name, flags.set[0].value) = ("DisableAttachMechanism".to_owned(), "true".to_owned());
    assert!(words(&document).contains("attaching is disabled (`-XX:+DisableAttachMechanism`)"));
}

#[test]
fn malloc_by_tag_needs_tags() {
    let mut document = document();
    document.mark.account.as_mut().unwrap().malloc.as_mut().unwrap().tagged = false;
    let text = render(&summarize_account(&document, &[Detail::Tag]));
    assert!(text.contains("NMT is off: start the JVM with -XX:NativeMemoryTracking=summary"), "{text}");
}

/// An account with mostly used chunks, without a finding.
fn in_use() -> AccountDocument {
    let mut document = document();
    document.mark.account = Some(account(&[("java_heap.used", 48 * MIB), ("malloc.live", 278 * MIB)]));
    document.findings.clear();
    document
}

#[test]
fn a_large_owner_without_a_finding_suggests_explain() {
    let told = |document: &AccountDocument| {
        render(&summarize_account(document, &[])).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut document = in_use();
    let pid = document.jvm.pid;
    let next = format!("`loadline explain {pid} --for 30s` shows which code holds the 278.0 MiB of malloc live.");
    let text = told(&document);
    assert!(text.contains(&format!("Next: {next}")), "{text}");
    assert!(text.contains("No known cause explains the 278.0 MiB of malloc live."), "{text}");
    document.mark.account = Some(account(&[("java_heap.used", 48 * MIB), ("malloc.live", 12 * MIB)]));
    let text = told(&document);
    assert!(text.contains("loadline watch") && text.contains("Nothing: no known cause"), "{text}");
}

#[test]
fn a_recording_precedes_the_earlier_account() {
    let mut document = in_use();
    let site = SiteRecord {
        owner: "malloc.live".to_owned(),
        kind: "zlib".to_owned(),
        site: "Pages.pack(Pages.java:15)".to_owned(),
        loaded_bytes: 307 * MIB,
        peak_bytes: 307 * MIB,
        allocations: 9_602,
        ..SiteRecord::default()
    };
    let small = SiteRecord { loaded_bytes: 2 * MIB, ..site.clone() };
    let heap = Some(HeldHeapRecord::default());
    let found =
        |site| Some(ExplanationRecord { sites: vec![site], heap: heap.clone(), ..ExplanationRecord::default() });
    document.explanation = found(site);
    let young = FlagRecord { name: "MaxNewSize".to_owned(), value: "1".to_owned(), origin: FlagOrigin::CommandLine };
    document.flags.as_mut().unwrap().set.push(young);
    insta::assert_snapshot!(head(&document));
    document.explanation = found(small);
    insta::assert_snapshot!(head(&document));
}

/// The text before the table.
fn head(document: &AccountDocument) -> String {
    let text = render(&summarize_account(document, &[]));
    text.split("\naccount,").next().unwrap().to_owned()
}

/// Every owner, and an unknown one.
fn names() -> impl Iterator<Item = &'static str> {
    ["later_owner"].into_iter().chain(Owner::ALL.map(Owner::name))
}

/// Accounts of some owners, with sizes from zero to many gigabytes, in pages.
fn records() -> impl Strategy<Value = AccountRecord> {
    let pages = prop_oneof![Just(0u64), 0u64..20, 0u64..100_000, 0u64..10_000_000];
    let sizes = proptest::collection::vec((proptest::bool::ANY, pages), names().count());
    sizes.prop_map(|sizes| {
        let held = sizes.into_iter().zip(names()).filter(|((present, _), _)| *present);
        account(&held.map(|((_, pages), name)| (name, pages * 4096)).collect::<Vec<_>>())
    })
}

proptest! {
    #[test]
    fn the_rows_add_up_to_the_rss(record in records()) {
        let shown = rows(&record);
        prop_assert_eq!(shown.iter().map(|row| row.rss_bytes).sum::<u64>(), record.total_bytes);
        prop_assert_eq!(shown.iter().filter(|row| row.name == Owner::Unexplained.name()).count(), 1);
        prop_assert!(owners(&record).rows.len() <= names().count() + 1);
    }

    #[test]
    fn any_account_fits_80_columns(record in records()) {
        let mut document = document();
        document.mark.account = Some(record);
        for line in render(&summarize_account(&document, &[Detail::Region])).lines() {
            prop_assert!(crate::width::width(line) <= 80, "{}", line);
        }
    }
}
