//! Remedies for what malloc keeps.

use super::{Facts, NotOffered, Offer};
use crate::owner::Owner;
use crate::scenario::Change;

/// Beside what would be trimmed, chunks that live in other places after it: what one arena may save of all of them.
const ARENAS_SHARE: f64 = 0.9;

const RETAINED: &[Owner] = &[Owner::MallocRetained, Owner::MallocUnsplit];

/// These changes, which save what glibc retains, or what a trim would return if that is more.
pub(super) fn retained(facts: &Facts, changes: impl Into<Vec<Change>>) -> Result<Offer, NotOffered> {
    let rows = (facts.held_by(RETAINED) as f64 * ARENAS_SHARE) as u64;
    Ok(Offer::of(changes.into(), rows.max(facts.trim.unwrap_or(0))))
}

/// Another allocator, where its library was found.
pub(super) fn preload(facts: &Facts, name: &str) -> Result<Offer, NotOffered> {
    let Some(library) = facts.libraries.iter().find(|library| library.contains(name)) else {
        return Err(NotOffered::NotHere(format!("no library of {name} was found where the loader looks")));
    };
    retained(facts, [Change::Preload(Some(library.clone()))])
}
