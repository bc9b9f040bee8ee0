//! Checks the invariants on generated JVMs: random plans, the fuzzers' corpus, and inputs near it.

use super::{classes, tables, threads};
use loadline_test_support::all_simulations_run;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The number of inputs near a corpus; they take a few seconds per corpus.
fn mangled_count() -> usize {
    match (cfg!(debug_assertions), all_simulations_run()) {
        (true, _) => 2_000,
        (false, true) => 20_000,
        (false, false) => 4_000,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn tables_from_any_plan_are_read_correctly_or_rejected(input in prop::collection::vec(any::<u8>(), 0..900)) {
        tables::check(&input);
    }

    #[test]
    fn threads_from_any_plan_are_read_correctly_or_rejected(input in prop::collection::vec(any::<u8>(), 0..1500)) {
        threads::check(&input);
    }

    #[test]
    fn classes_from_any_plan_are_read_correctly_or_rejected(input in prop::collection::vec(any::<u8>(), 0..600)) {
        classes::check(&input);
    }
}

/// Overwrites, removes, and inserts bytes, or appends the end of another seed.
fn mangled(seeds: &[Vec<u8>]) -> impl Strategy<Value = Vec<u8>> {
    let change = (0u8..5, any::<prop::sample::Index>(), any::<u8>());
    let (seeds, others) = (seeds.to_vec(), seeds.to_vec());
    (prop::sample::select(seeds), prop::sample::select(others), prop::collection::vec(change, 1..8)).prop_map(
        |(mut input, other, changes)| {
            for (kind, place, byte) in changes {
                let at = place.index(input.len() + 1);
                match kind {
                    0..3 if at < input.len() => input[at] = byte,
                    0..3 => input.push(byte),
                    3 => drop(input.drain(at..(at + usize::from(byte) % 8).min(input.len()))),
                    _ => drop(input.splice(at.., other[at.min(other.len())..].iter().copied())),
                }
            }
            input
        },
    )
}

/// Tries the inputs that fuzzing found or starts with, on every toolchain, and their neighbors; always the same ones.
fn corpus(name: &str, check: fn(&[u8])) {
    let seeds = super::corpus(name, check);
    let (mut runner, near) = (TestRunner::deterministic(), mangled(&seeds));
    for _ in 0..mangled_count() {
        let input = near.new_tree(&mut runner).unwrap().current();
        if std::panic::catch_unwind(|| check(&input)).is_err() {
            panic!("a failure to add to the corpus `{name}`: {}", input.escape_ascii());
        }
    }
}

#[test]
fn tables_from_the_corpus_are_read_correctly_or_rejected() {
    corpus("hotspot_tables", tables::check);
}

#[test]
fn threads_from_the_corpus_are_read_correctly_or_rejected() {
    corpus("hotspot_threads", threads::check);
}

#[test]
fn classes_from_the_corpus_are_read_correctly_or_rejected() {
    corpus("hotspot_classes", classes::check);
}
