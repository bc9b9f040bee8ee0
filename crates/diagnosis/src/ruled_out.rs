//! Causes that were considered, and what speaks against them.

use super::facts::Facts;
use super::{classes, compilers, direct, heap, malloc, native};
use crate::record::{FindingRecord, RuledOutRecord};
use crate::units::Bytes;

/// The kind of a finding, and what speaks against that cause in words; `None` where no evidence does.
type Against = (&'static str, fn(&Facts) -> Option<String>);

const AGAINST: &[Against] = &[
    ("native_held_by_garbage", native::spared),
    ("direct_memory_waits", direct::spared),
    ("compiler_peak", compilers::small),
    ("metaspace_keeps_growing", classes::metaspace_stands),
    ("malloc_retained", malloc::of_compilers),
    ("heap_far_above_live", heap::mostly_live),
];

/// Causes that the evidence of this JVM speaks against; none of those that were found.
pub(super) fn by_evidence(facts: &Facts, found: &[FindingRecord]) -> Vec<RuledOutRecord> {
    let found: Vec<String> = found.iter().map(|one| one.finding.kind()).collect();
    let against = AGAINST.iter().filter(|(kind, _)| !found.iter().any(|found| found == kind));
    against.filter_map(|(kind, why)| Some(record((*kind).to_owned(), why(facts)?))).collect()
}

/// Rules out a habit of nearly every JVM, because the cause that was found weighs more.
pub(super) fn outweighed(one: &FindingRecord, heaviest: u64) -> RuledOutRecord {
    let text = format!("{}; the cause that was found accounts for {}", one.text, Bytes(heaviest));
    record(one.finding.kind(), text)
}

fn record(kind: String, text: String) -> RuledOutRecord {
    RuledOutRecord { kind, of: None, text }
}

/// The kinds that evidence may speak against.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    AGAINST.iter().map(|(kind, _)| *kind)
}
