//! Findings, and phrases that they share.

use crate::record::{Finding, FindingRecord};
use crate::scenario::Change;
use crate::units::several;

/// A finding without weight or remedy.
pub(super) fn found(finding: Finding, text: String, next: impl Into<String>) -> FindingRecord {
    let (next, remedies) = (next.into(), Vec::new());
    FindingRecord { finding, of: None, text, next, costs_bytes: 0, gain_bytes_max: None, remedies }
}

/// The first remedy to try, as the user would enter it.
pub(super) fn first(remedies: &[Change]) -> Option<String> {
    remedies.first().map(typed)
}

pub(super) fn typed(change: &Change) -> String {
    change.typed().join(" ")
}

pub(super) fn listed<T>(parts: &[T], told: impl Fn(&T) -> String) -> String {
    parts.iter().map(told).collect::<Vec<_>>().join(", ")
}

/// `; 3 collections so far`; empty if they were not counted.
pub(super) fn so_far(collections: Option<u64>) -> String {
    collections.map(|count| format!("; {} so far", several(count, "collection"))).unwrap_or_default()
}

/// A file name without its directory.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
