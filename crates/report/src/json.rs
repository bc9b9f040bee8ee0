//! The documents of `--json`: `docs/results.schema.json`, `docs/account.schema.json`, `docs/accounts.schema.json`,
//! `docs/account-changes.schema.json` and `docs/load.schema.json` describe them.

use serde::Serialize;

/// A document, indented, with a newline at its end.
pub fn document(document: &impl Serialize) -> String {
    // Plain values with string keys cannot fail to encode; an empty document would be the visible sign.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
