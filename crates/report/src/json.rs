//! The documents of `--json`, described by `docs/results.schema.json`, `docs/account.schema.json`,
//! `docs/accounts.schema.json`, `docs/account-changes.schema.json`, and `docs/load.schema.json`.

use serde::Serialize;

/// An indented document with a final newline.
pub fn document(document: &impl Serialize) -> String {
    // Plain values with string keys always serialize; a failure would be visible as an empty document.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
