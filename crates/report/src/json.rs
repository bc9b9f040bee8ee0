//! The documents of `--json`. Each kind of document has a schema in `docs/`, such as `docs/results.schema.json` and
//! `docs/account.schema.json`.

use serde::Serialize;

/// An indented document with a final newline.
pub fn document(document: &impl Serialize) -> String {
    // Plain values with string keys always serialize; a failure would be visible as an empty document.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
