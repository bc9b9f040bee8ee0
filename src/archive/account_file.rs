//! Accounts in a file: what `loadline account PID --json`, `--all --json` or `--against FILE --json` printed.

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

/// An account of 65,530 mappings has about 40 MB; a file of all JVMs of a machine a hundredth of that for each.
const FILE_BYTES_MAX: u64 = 256 << 20;
const HINT: &str = "give a file that `loadline account PID --json` printed, or a bundle of `loadline capture`";

/// Reads the accounts of a file: one, or those of all JVMs of a machine. If a file compares two, it reads the later.
///
/// # Errors
/// `Request` where the file cannot be read, is no JSON, something else, of another version, or damaged.
pub fn read_accounts(path: &Path) -> Result<Vec<AccountDocument>> {
    let refuse = |what: String| Error::request(format!("{} {what}", path.display())).hint(HINT);
    let bytes = bounded::bytes(path, FILE_BYTES_MAX)
        .map_err(|cause| Error::request(format!("cannot read {}: {}", path.display(), plain(&cause))).hint(HINT))?;
    parse(&bytes).map_err(refuse)
}

/// Writes an account for this user alone, so that the file is there as a whole or not at all.
///
/// # Errors
/// `Machine` where it cannot be written.
pub fn write_account(path: &Path, document: &AccountDocument) -> Result<()> {
    // The name is of this process alone: another one may write the same account at the same time.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let json =
        serde_json::to_vec_pretty(document).map_err(|cause| Error::bug(format!("an account as JSON: {cause}")))?;
    private_file::replace(path, &part, &json).map_err(|cause| Error::io("write", path, &cause))
}

/// The documents that have accounts.
const KNOWN: [&str; 3] = [ACCOUNT_SCHEMA, ACCOUNTS_SCHEMA, CHANGES_SCHEMA];

/// Parses accounts. The error omits the name of the file, which comes before it.
fn parse(bytes: &[u8]) -> Result<Vec<AccountDocument>, String> {
    #[derive(Deserialize)]
    struct Tag {
        schema: Option<serde_json::Value>,
    }
    let tag: Tag = serde_json::from_slice(bytes).map_err(|cause| match cause.classify() {
        Category::Eof if bytes.trim_ascii().is_empty() => "is empty".to_owned(),
        Category::Eof => format!("is cut short: {cause}"),
        Category::Data => "is not a Loadline account: it is JSON, and no object".to_owned(),
        Category::Syntax | Category::Io => format!("is no JSON: {cause}"),
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
        false => Err("has no account that names any owner".to_owned()),
    }
}

fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|cause| format!("is damaged: {cause}"))
}

/// Why a document with this schema is not read.
fn unknown(schema: &str) -> String {
    let of_another_version = |known: &&str| {
        let name = known.rsplit_once('/').map_or(*known, |(name, _)| name);
        schema.rsplit_once('/').is_some_and(|(own, version)| own == name && version.parse::<u32>().is_ok())
    };
    match KNOWN.iter().find(|known| of_another_version(known)) {
        Some(known) => format!("has the schema `{schema}`; this Loadline reads `{known}`"),
        None => format!("is no account: its schema is `{}`", schema.escape_debug()),
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
    fn what_is_no_account_is_named() {
        assert_eq!(why(""), "is empty");
        assert_eq!(why(" \n"), "is empty");
        assert!(why("{\"schema\": \"loadline.acc").starts_with("is cut short: "));
        assert!(why("archive of trials").starts_with("is no JSON: "));
        assert_eq!(why("[]"), "is not a Loadline account: it is JSON, and no object");
        assert_eq!(why("{}"), "is not a Loadline account: it has no `schema`");
        assert_eq!(why("{\"schema\": 1}"), "is not a Loadline account: it has no `schema`");
        assert_eq!(why("{\"schema\": \"loadline.result/2\"}"), "is no account: its schema is `loadline.result/2`");
        assert_eq!(why("{\"schema\": \"\\u001b[2J\"}"), "is no account: its schema is `\\u{1b}[2J`");
        let newer = "has the schema `loadline.account/2`; this Loadline reads `loadline.account/1`";
        assert_eq!(why("{\"schema\": \"loadline.account/2\"}"), newer);
        assert!(why("{\"schema\": \"loadline.account/x\"}").starts_with("is no account: "));
        assert!(why("{\"schema\": \"loadline.account/1\"}").starts_with("is damaged: missing field"));
    }

    /// An account as it was printed, cut at any byte or with one of them changed.
    #[test]
    fn a_damaged_file_is_refused_or_read_and_does_no_harm() {
        let whole = include_bytes!("../../tests/cli/accounts/made-up.json");
        assert_eq!(parse(whole).unwrap().len(), 1);
        let end = whole.trim_ascii().len();
        for cut in (0..end).step_by(31).chain(end - 40..end) {
            let why = parse(&whole[..cut]).unwrap_err();
            // A cut may leave the sign of a number alone.
            let is_cut = why.starts_with("is cut short: ") || why.contains("invalid number");
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
        fn any_bytes_are_refused_and_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
