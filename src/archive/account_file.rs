//! Account files: the output of `loadline account PID --json`, `--all --json`, or `--against FILE --json`.

use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::kernel::private_file;
use crate::record::{
    ACCOUNT_SCHEMA, ACCOUNTS_SCHEMA, AccountDocument, AccountsDocument, CHANGES_SCHEMA, ChangesDocument,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::path::Path;

/// An account of 65,530 mappings is about 40 MB; a file with all JVMs of a machine takes about 0.4 MB per JVM.
const FILE_BYTES_MAX: u64 = 256 << 20;
const HINT: &str = "specify the output of `loadline account PID --json`, or a bundle from `loadline capture`";

/// Reads the accounts in a file: one, or those of all JVMs of a machine. From a comparison, it reads the later account.
/// Errors: `Request` if the file cannot be read, is not JSON, has a different schema or version, or is damaged.
pub fn read_accounts(path: &Path) -> Result<Vec<AccountDocument>> {
    let refuse = |what: String| Error::request(format!("{} {what}", path.display())).hint(HINT);
    let bytes = bounded::bytes(path, FILE_BYTES_MAX)
        .map_err(|cause| Error::request(format!("cannot read {}: {}", path.display(), plain(&cause))).hint(HINT))?;
    parse(&bytes).map_err(refuse)
}

/// Writes an account atomically, readable only by this user.
pub fn write_account(path: &Path, document: &AccountDocument) -> Result<()> {
    // Unique to this process, because another one may write the same account at the same time.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let json = serde_json::to_vec_pretty(document)
        .map_err(|cause| Error::bug(format!("cannot encode an account: {cause}")))?;
    private_file::replace(path, &part, &json).map_err(|cause| Error::io("write", path, &cause))
}

/// Schemas of documents that contain accounts.
const KNOWN: [&str; 3] = [ACCOUNT_SCHEMA, ACCOUNTS_SCHEMA, CHANGES_SCHEMA];

/// Parses accounts. The error omits the file name, which the caller adds.
fn parse(bytes: &[u8]) -> Result<Vec<AccountDocument>, String> {
    #[derive(Deserialize)]
    struct Tag {
        schema: Option<serde_json::Value>,
    }
    let tag: Tag = serde_json::from_slice(bytes).map_err(|cause| match cause.classify() {
        Category::Eof if bytes.trim_ascii().is_empty() => "is empty".to_owned(),
        Category::Eof => format!("is truncated: {cause}"),
        Category::Data => "is not a Loadline account: its JSON is not an object".to_owned(),
        _ if bytes.starts_with(b"#!") => {
            "is a script; run the script from `loadline capture` next to the JVM to write the bundle".to_owned()
        }
        Category::Syntax | Category::Io => format!("is neither a bundle nor an account in JSON: {cause}"),
    })?;
    let Some(schema) = tag.schema.as_ref().and_then(|schema| schema.as_str()) else {
        return Err("is not a Loadline account: it has no `schema`".to_owned());
    };
    let accounts = match schema {
        ACCOUNT_SCHEMA => vec![whole(bytes)?],
        ACCOUNTS_SCHEMA => whole::<AccountsDocument>(bytes)?.accounts,
        CHANGES_SCHEMA => vec![whole::<ChangesDocument>(bytes)?.now],
        other => return Err(unknown(other)),
    };
    let told = |document: &AccountDocument| document.mark.account.as_ref().is_some_and(|of| !of.owners.is_empty());
    match accounts.iter().any(told) {
        true => Ok(accounts.into_iter().filter(told).collect()),
        false => Err("has no account with owners".to_owned()),
    }
}

fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|cause| format!("is damaged: {cause}"))
}

/// Why a document with this schema is rejected.
fn unknown(schema: &str) -> String {
    let of_another_version = |known: &&str| {
        let name = known.rsplit_once('/').map_or(*known, |(name, _)| name);
        schema.rsplit_once('/').is_some_and(|(own, version)| own == name && version.parse::<u32>().is_ok())
    };
    match KNOWN.iter().find(|known| of_another_version(known)) {
        Some(known) => format!("has the schema `{schema}`; this release reads `{known}`"),
        None => format!("is not an account: its schema is `{}`", schema.escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn why(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn invalid_account_files_are_explained() {
        assert_eq!(why(""), "is empty");
        assert_eq!(why(" \n"), "is empty");
        assert!(why("{\"schema\": \"loadline.acc").starts_with("is truncated: "));
        assert!(why("archive of trials").starts_with("is neither a bundle nor an account in JSON: "));
        assert!(why("#!/bin/sh\nset -u\n").starts_with("is a script; run the script from `loadline capture`"));
        assert_eq!(why("[]"), "is not a Loadline account: its JSON is not an object");
        assert_eq!(why("{}"), "is not a Loadline account: it has no `schema`");
        assert_eq!(why("{\"schema\": 1}"), "is not a Loadline account: it has no `schema`");
        assert_eq!(why("{\"schema\": \"loadline.result/2\"}"), "is not an account: its schema is `loadline.result/2`");
        assert_eq!(why("{\"schema\": \"\\u001b[2J\"}"), "is not an account: its schema is `\\u{1b}[2J`");
        let newer = "has the schema `loadline.account/2`; this release reads `loadline.account/1`";
        assert_eq!(why("{\"schema\": \"loadline.account/2\"}"), newer);
        assert!(why("{\"schema\": \"loadline.account/x\"}").starts_with("is not an account: "));
        assert!(why("{\"schema\": \"loadline.account/1\"}").starts_with("is damaged: missing field"));
    }

    /// A printed account, truncated at every byte, or with one byte changed.
    #[test]
    fn a_damaged_account_is_rejected_or_read_without_harm() {
        let whole = include_bytes!("../../tests/cli/accounts/made-up.json");
        assert_eq!(parse(whole).unwrap().len(), 1);
        let end = whole.trim_ascii().len();
        for cut in (0..end).step_by(31).chain(end - 40..end) {
            let why = parse(&whole[..cut]).unwrap_err();
            // The cut may leave only the sign of a number.
            let is_cut = why.starts_with("is truncated: ") || why.contains("invalid number");
            assert!(why == "is empty" || is_cut, "{cut}: {why}");
        }
        let mut changed = whole.to_vec();
        for at in (0..end).step_by(29) {
            let kept = std::mem::replace(&mut changed[at], b'#');
            let _ = parse(&changed);
            changed[at] = kept;
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_rejected_as_an_account(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
