//! The findings that rules yield.

use crate::record::{Finding, FindingRecord};
use crate::scenario::Change;

/// The weight of a finding and its remedies.
#[derive(Debug, Default)]
pub(super) struct Weight {
    pub(super) costs_bytes: u64,
    pub(super) gain_bytes_max: Option<u64>,
    pub(super) remedies: Vec<Change>,
}

/// A finding that weighs something.
pub(super) fn weight(finding: Finding, text: String, next: String, weighs: Weight) -> FindingRecord {
    let Weight { costs_bytes, gain_bytes_max, remedies } = weighs;
    FindingRecord { finding, of: None, text, next, costs_bytes, gain_bytes_max, remedies }
}

/// A finding that weighs nothing yet.
pub(super) fn risk(finding: Finding, text: String, next: String) -> FindingRecord {
    weight(finding, text, next, Weight::default())
}
