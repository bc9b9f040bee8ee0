//! The result document: `docs/results.schema.json` describes it.

use crate::record::{Conditions, Document, RESULT_SCHEMA, Trial};

/// The result document of a run, indented, with a newline at its end.
pub fn document(conditions: &Conditions, trials: &[Trial]) -> String {
    let document = Document {
        schema: RESULT_SCHEMA.to_owned(),
        conditions: conditions.clone(),
        trials: trials.to_vec(),
        comparisons: Vec::new(),
        find: None,
        findings: Vec::new(),
        budgets: Vec::new(),
    };
    // Plain values with string keys cannot fail to encode; an empty document would be the visible sign.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}
