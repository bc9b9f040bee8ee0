//! Invariants for arbitrary facts: no panic, nothing below the threshold, no duplicate diagnosis.

use super::facts::least;
use super::{Diagnosis, flags_kept, of_account, of_trials};
use crate::doubt::Doubt;
use crate::owner::Owner;
use crate::record::*;
use proptest::prelude::*;

/// A number as untrusted text may contain it: zero, small, memory-sized, absurd.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..100, (1u64 << 20)..(1 << 34), Just(u64::MAX), any::<u64>()]
}

fn maybe() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(number())
}

/// Command-line words and flag values.
fn word() -> impl Strategy<Value = String> {
    let known = "-Xmx1g -Xms -XX: -XX:+ -XX:= -XX:+UseG1GC -XX:G1=1 -Xshare:off -cp -jar -XX:SharedArchiveFile=a:b \
                 -javaagent: -Dcom.sun.management.jmxremote -XX:MaxRAMPercentage=25 é";
    let known = prop::sample::select(known.split(' ').collect::<Vec<_>>());
    prop_oneof![known.prop_map(str::to_owned), "\\PC{0,12}"]
}

fn flags() -> impl Strategy<Value = FlagsRecord> {
    let name = prop::sample::select(flags_kept().collect::<Vec<_>>());
    let value =
        prop_oneof![number().prop_map(|n| n.to_string()), word(), Just("true".to_owned()), Just("-1e999".into())];
    let origin = prop::sample::select(FlagOrigin::ALL.to_vec());
    let set = (name.clone(), value.clone(), origin);
    let set = set.prop_map(|(name, value, origin)| FlagRecord { name: name.to_owned(), value, origin });
    let defaults = prop::collection::btree_map(name.prop_map(str::to_owned), value, 0..12);
    (prop::collection::vec(set, 0..8), defaults).prop_map(|(set, defaults)| FlagsRecord { set, defaults })
}

fn account() -> impl Strategy<Value = AccountRecord> {
    let owner = (prop::sample::select(Owner::ALL.to_vec()), number());
    let owner = owner.prop_map(|(of, rss_bytes)| {
        let name = of.name().to_owned();
        OwnerRecord { name, rss_bytes, ..OwnerRecord::default() }
    });
    let malloc = (number(), prop::sample::select(vec!["glibc", "musl", "jemalloc"]), word());
    let malloc = malloc.prop_map(|(arenas, name, setting)| MallocRecord {
        allocator: name.to_owned(),
        arenas,
        tagged: arenas % 2 == 0,
        settings: Some(vec![setting]),
        ..MallocRecord::default()
    });
    let parts = (prop::collection::vec(owner, 0..12), prop::option::of(malloc), number(), maybe(), maybe());
    parts.prop_map(|(owners, malloc, total_bytes, trim_bytes, gc_bytes)| {
        let would_return = WouldReturn { trim_bytes, gc_bytes, ..WouldReturn::default() };
        AccountRecord { total_bytes, owners, malloc, would_return, ..AccountRecord::default() }
    })
}

fn mark() -> impl Strategy<Value = Mark> {
    let names = vec!["start", "warm", "loaded", "rested", "collected", "now"];
    let heap = (maybe(), maybe(), maybe(), maybe());
    let pool = (number(), number(), any::<f64>());
    let pools = prop::collection::vec(pool, 0..3);
    let (direct, names) = (prop::option::of((number(), number(), maybe())), prop::sample::select(names));
    let account = prop::option::of(account());
    (names, any::<f64>(), heap, pools, direct, account, maybe()).prop_map(|parts| {
        let (name, at_s, (live_bytes, max_bytes, left_by_gc_bytes, collections), pools, direct, account, threads) =
            parts;
        let pool = |(threads, stack_bytes, cpu_s)| {
            let (name, allocated_bytes) = ("p-*".to_owned(), Some(1));
            ThreadPoolRecord { name, threads, stack_bytes, cpu_s, allocated_bytes }
        };
        let direct = direct.map(|(reserved_bytes, buffers, max_bytes)| {
            let none = DirectRecord::default();
            DirectRecord { reserved_bytes, buffers, max_bytes, ..none }
        });
        let heap = Heap { live_bytes, max_bytes, left_by_gc_bytes, collections, ..Heap::default() };
        let charge = Some(ChargeRecord { limit_bytes: threads, ..ChargeRecord::default() });
        let pools = pools.into_iter().map(pool).collect();
        Mark { name: name.to_owned(), at_s, heap, pools, direct, account, threads, charge, ..Mark::default() }
    })
}

fn jvm() -> impl Strategy<Value = Jvm> {
    let version = prop_oneof![Just("25.0.3+9".to_owned()), Just("25.372-b07".to_owned()), word()];
    let collector = prop::sample::select(vec!["G1", "Serial", "Z", "Parallel", "?"]);
    let spelled = prop::option::of(prop::collection::vec(word(), 0..6));
    (version, collector, prop::option::of(flags()), spelled).prop_map(|(version, collector, flags_kept, flags)| Jvm {
        version: Some(version),
        collector: Some(collector.to_owned()),
        flags_kept,
        flags,
        ..Jvm::default()
    })
}

fn trial() -> impl Strategy<Value = Trial> {
    let phase = (any::<f64>(), number(), any::<f64>(), prop::option::of(any::<f64>()));
    let phase = phase.prop_map(|(at_s, ok, seconds, gc_ms)| {
        let subject = SubjectWork { gc_ms, ..SubjectWork::default() };
        PhaseRecord { at_s, ok, seconds, subject, ..PhaseRecord::default() }
    });
    let lists = (prop::collection::vec(mark(), 0..5), prop::collection::vec(phase, 0..4));
    let command = prop::collection::vec(word(), 0..8);
    (lists, command, jvm(), maybe(), number(), 0..2u32).prop_map(|((marks, phases), command, jvm, limit, huge, of)| {
        let doubts = vec![Doubt::HugePagesInUse { huge_bytes: huge }.into()];
        let name = if of == 0 { "a" } else { "b" };
        Trial { marks, phases, command, jvm: Some(jvm), limit_bytes: limit, doubts, ..Trial::new(name, 0, 0) }
    })
}

fn each_once(found: &[FindingRecord]) -> bool {
    let alike = |one: &FindingRecord, other: &FindingRecord| {
        one.finding.is_like(&other.finding) && one.configuration() == other.configuration()
    };
    found.iter().enumerate().all(|(at, one)| !found[at + 1..].iter().any(|other| alike(one, other)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_trials_give_a_consistent_diagnosis(trials in prop::collection::vec(trial(), 0..3)) {
        let Diagnosis { findings: found, ruled_out } = of_trials(&trials);
        prop_assert!(each_once(&found));
        let shows = |one: &RuledOutRecord, found: &FindingRecord| {
            found.finding.kind() == one.kind && found.configuration() == one.of.as_ref().unwrap().configuration
        };
        for one in &ruled_out {
            prop_assert!(!one.text.is_empty() && !found.iter().any(|found| shows(one, found)), "{one:?}");
        }
        for one in &found {
            // The smallest possible threshold: that of a subject with almost no memory.
            prop_assert!(one.finding.is_risk() || one.worth_bytes() >= least(0), "{one:?}");
            prop_assert!(one.of.as_ref().is_some_and(|of| of.trials_alike >= 1));
            prop_assert!(!one.text.is_empty() && !one.next.is_empty());
            prop_assert!(one.remedies.iter().all(|change| !change.typed().is_empty()));
        }
    }

    #[test]
    fn any_account_gives_a_consistent_diagnosis(
        mark in mark(),
        flags in prop::option::of(flags()),
        jvm in jvm(),
        words in prop::collection::vec(word(), 0..8),
    ) {
        let account = mark.account.as_ref().filter(|account| !account.owners.is_empty());
        let rss = account.map_or(0, |account| account.total_bytes);
        let document = AccountDocument { mark, flags, jvm, subject_command: words, ..AccountDocument::default() };
        let found = of_account(&document).findings;
        prop_assert!(each_once(&found));
        prop_assert!(found.iter().all(|one| one.of.is_none()));
        prop_assert!(found.iter().all(|one| one.finding.is_risk() || one.worth_bytes() >= least(rss)));
    }
}
