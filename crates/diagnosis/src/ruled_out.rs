//! Causes that were considered, and the evidence against them.

use super::facts::Facts;
use super::{classes, compilers, direct, heap, malloc, native};
use crate::record::{FindingRecord, RuledOutRecord};

/// A finding's kind, and a function that describes the evidence against that cause, if any.
type Against = (&'static str, fn(&Facts) -> Option<String>);

const AGAINST: &[Against] = &[
    ("native_held_by_garbage", native::spared),
    ("direct_memory_waits", direct::spared),
    ("compiler_peak", compilers::small),
    ("metaspace_keeps_growing", classes::metaspace_stands),
    ("malloc_retained", malloc::of_compilers),
    ("heap_far_above_live", heap::mostly_live),
];

/// Causes ruled out by evidence, except those that were found.
pub(super) fn by_evidence(facts: &Facts, found: &[FindingRecord]) -> Vec<RuledOutRecord> {
    let found: Vec<String> = found.iter().map(|one| one.finding.kind()).collect();
    let against = AGAINST.iter().filter(|(kind, _)| !found.iter().any(|found| found == kind));
    against
        .filter_map(|(kind, why)| Some(RuledOutRecord { kind: (*kind).to_owned(), of: None, text: why(facts)? }))
        .collect()
}

/// The kinds that evidence can rule out.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    AGAINST.iter().map(|(kind, _)| *kind)
}
