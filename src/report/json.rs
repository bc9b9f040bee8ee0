//! The documents of `--json`: `docs/results.schema.json`, `docs/account.schema.json` and `docs/load.schema.json`
//! describe them.

use crate::record::{AccountDocument, Document, LoadDocument};
use serde::Serialize;

/// The result document, indented, with a newline at its end.
pub fn document(document: &Document) -> String {
    pretty(document)
}

/// The account of a running JVM, indented, with a newline at its end.
pub fn account_document(document: &AccountDocument) -> String {
    pretty(document)
}

/// What a load came to, indented, with a newline at its end.
pub fn load_document(document: &LoadDocument) -> String {
    pretty(document)
}

fn pretty(document: &impl Serialize) -> String {
    // Plain values with string keys cannot fail to encode; an empty document would be the visible sign.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
