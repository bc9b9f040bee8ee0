//! Remedies for what malloc keeps.

use super::changes;
use super::{Facts, NotOffered, Offer};
use crate::owner::Owner;
use crate::scenario::Change;

/// The size in bytes from which chunks are large: glibc's own value before it adapts it (mallopt(3)).
const THRESHOLD: &str = "131072";
/// Beside what would be trimmed, chunks that live in other places after it: what one arena may save of all of them.
const ARENAS_SHARE: f64 = 0.9;

const RETAINED: &[Owner] = &[Owner::MallocRetained, Owner::MallocUnsplit];

/// Returns how much of glibc's retained memory can be saved, or what a trim would return if that is more.
fn retained(facts: &Facts) -> Result<u64, NotOffered> {
    match facts.allocator.as_deref() {
        Some("glibc") | None => {}
        Some(other) => return Err(NotOffered::Allocator(other.to_owned())),
    }
    let rows = (facts.held_by(RETAINED) as f64 * ARENAS_SHARE) as u64;
    Ok(rows.max(facts.trim.unwrap_or(0)))
}

fn free_of(facts: &Facts, names: &[&str]) -> Result<(), NotOffered> {
    facts.in_the_way(names).map_or(Ok(()), |text| Err(NotOffered::Chosen(text)))
}

/// One arena (mallopt(3), `M_ARENA_MAX`).
pub(super) fn arenas(facts: &Facts) -> Result<Offer, NotOffered> {
    free_of(facts, &["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])?;
    Ok(Offer::of(vec![changes::one_arena()], retained(facts)?))
}

/// A trim now and then; whether the JVM has the flag is asked of itself, because updates of 17 and 21 got it later.
pub(super) fn trim(facts: &Facts) -> Result<Offer, NotOffered> {
    free_of(facts, &["TrimNativeHeapInterval"])?;
    if !facts.has_flag("TrimNativeHeapInterval") {
        return Err(NotOffered::NoFlag("TrimNativeHeapInterval"));
    }
    Ok(Offer::of(vec![changes::trim_often(facts.release)], retained(facts)?))
}

pub(super) fn arenas_and_trim(facts: &Facts) -> Result<Offer, NotOffered> {
    both(arenas(facts)?, trim(facts)?)
}

/// Both thresholds, which also ends that glibc moves them (mallopt(3), `M_MMAP_THRESHOLD`).
pub(super) fn thresholds(facts: &Facts) -> Result<Offer, NotOffered> {
    free_of(facts, &["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])?;
    let pairs =
        ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"].map(|name| (name.to_owned(), THRESHOLD.to_owned()));
    Ok(Offer::of(vec![Change::Env(pairs.to_vec())], retained(facts)?))
}

pub(super) fn thresholds_and_trim(facts: &Facts) -> Result<Offer, NotOffered> {
    both(thresholds(facts)?, trim(facts)?)
}

fn both(one: Offer, other: Offer) -> Result<Offer, NotOffered> {
    Ok(Offer { changes: [one.changes, other.changes].concat(), ..one })
}

/// Another allocator, where its library was found.
pub(super) fn preload(facts: &Facts, name: &str) -> Result<Offer, NotOffered> {
    free_of(facts, &["LD_PRELOAD"])?;
    let bound = retained(facts)?;
    let Some(library) = facts.libraries.iter().find(|library| library.contains(name)) else {
        return Err(NotOffered::NotHere(format!("no library of {name} was found where the loader looks")));
    };
    Ok(Offer::of(vec![Change::Preload(Some(library.clone()))], bound))
}
