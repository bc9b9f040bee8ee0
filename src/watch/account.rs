//! A watched JVM's accounts, in files next to its history: lists them, and reads the owners of the last one.
//!
//! ```text
//! shop.service.1763890000.4711.0086400.75-percent.account.json      stem of the history, age in seconds, reason
//! ```

use super::lives::{files, in_three};
use crate::kernel::private_file;
use crate::record::{AccountRecord, NmtRecord, WATCH_OWNERS_MAX, WatchAccount, WatchOwner, WhyWeighed};
use loadline_base::order::Order as _;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::DirEntry;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An account of a JVM with ten thousand mappings is about 6 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;
const ENDS: &str = ".account.json";
/// The reason in the name of an account that required attaching.
const ASKED: &str = "asked";
const OTHER: &str = "other";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AccountFile {
    /// The JVM's age in seconds.
    pub age_s: u64,
    /// The reason, as in the file name: `75-percent`, `growth`, `time`, `asked`.
    pub why: String,
    /// Its path.
    pub path: PathBuf,
}

/// The file for an account at this age, next to the history of the same life.
pub(super) fn file_name(history: &Path, age_ms: u64, why: &WhyWeighed) -> PathBuf {
    let why = match why {
        WhyWeighed::AtPercent(percent) => format!("{percent}-percent"),
        WhyWeighed::Growth => "growth".to_owned(),
        WhyWeighed::Time => "time".to_owned(),
        WhyWeighed::FirstSight => ASKED.to_owned(),
    };
    let stem = history.file_stem().unwrap_or_default().to_string_lossy();
    history.with_file_name(format!("{stem}.{:07}.{why}{ENDS}", age_ms / 1000))
}

/// The accounts of the life with this history, oldest first.
pub(super) fn accounts_beside(history: &Path) -> Vec<AccountFile> {
    let folder = history.parent().unwrap_or(Path::new(""));
    accounts_of(folder, &[history]).pop().unwrap_or_default()
}

/// Like `accounts_beside`, for several histories in a directory that is read once.
pub(super) fn accounts_of(folder: &Path, histories: &[&Path]) -> Vec<Vec<AccountFile>> {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let places: HashMap<String, usize> = histories.iter().enumerate().map(|(at, path)| (stem(path), at)).collect();
    let of = |(name, file): (String, DirEntry)| {
        let (stem, age, why) = in_three(name.strip_suffix(ENDS)?)?;
        let file = AccountFile { age_s: age.parse().ok()?, why: why.to_owned(), path: file.path() };
        Some((*places.get(stem)?, file))
    };
    let mut accounts: Vec<Vec<AccountFile>> = histories.iter().map(|_| Vec::new()).collect();
    files(folder).filter_map(of).for_each(|(at, file)| accounts[at].push(file));
    accounts.iter_mut().for_each(|accounts| accounts.sort());
    accounts
}

pub(super) fn is_asked(path: &Path) -> bool {
    path.to_str().and_then(|path| path.strip_suffix(ENDS)).is_some_and(|rest| rest.ends_with(&format!(".{ASKED}")))
}

/// Whether Loadline has attached to the JVM of these accounts before.
pub(super) fn was_asked(accounts: &[AccountFile]) -> bool {
    accounts.iter().any(|account| account.why == ASKED)
}

/// Reads an account's owners; `None` if it cannot be read, or is not an account.
pub(super) fn read(file: &AccountFile) -> Option<WatchAccount> {
    /// The parts of an account to show; the rest is long.
    #[derive(Deserialize)]
    struct Document {
        mark: Mark,
    }
    #[derive(Deserialize)]
    struct Mark {
        account: Option<AccountRecord>,
        nmt: Option<NmtRecord>,
    }
    let mut bytes = Vec::new();
    private_file::open(&file.path).and_then(|of| of.take(FILE_BYTES_MAX).read_to_end(&mut bytes)).ok()?;
    let Document { mark } = serde_json::from_slice(&bytes).ok()?;
    let account = mark.account?;
    let owner = |name: String, bytes: u64| WatchOwner { name, bytes };
    let owners = account.owners.into_iter().map(|own| owner(own.name, own.rss_bytes)).collect();
    let nmt = mark.nmt.into_iter().flat_map(|nmt| nmt.categories).map(|own| owner(own.name, own.committed_bytes));
    Some(WatchAccount {
        at_age_s: file.age_s as f64,
        age_s: 0.0,
        total_bytes: account.total_bytes,
        owners: top(owners, WATCH_OWNERS_MAX),
        nmt: top(nmt.collect(), WATCH_OWNERS_MAX),
        asked: file.why == ASKED,
        file: file.path.display().to_string(),
    })
}

/// The largest `most` owners; if there are more, the last entry is `other`, the sum of the rest.
pub fn top(mut owners: Vec<WatchOwner>, most: usize) -> Vec<WatchOwner> {
    owners.retain(|owner| owner.bytes > 0);
    owners.largest_first(|owner| owner.bytes);
    if owners.len() > most {
        let rest = owners.split_off(most.saturating_sub(1));
        let bytes = rest.iter().fold(0, |sum: u64, owner| sum.saturating_add(owner.bytes));
        owners.push(WatchOwner { name: OTHER.to_owned(), bytes });
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(number: u64) -> Vec<WatchOwner> {
        (1..=number).map(|bytes| WatchOwner { name: format!("o{bytes}"), bytes }).collect()
    }

    #[test]
    fn watched_owners_are_limited_and_keep_their_sum() {
        for number in 0..60 {
            for most in [1, 2, 5, 20] {
                let told = top(owners(number), most);
                assert_eq!(told.len(), most.min(number as usize), "{number} {most}");
                assert_eq!(told.iter().map(|owner| owner.bytes).sum::<u64>(), number * (number + 1) / 2);
                let other = told.iter().filter(|owner| owner.name == OTHER).count();
                assert_eq!(other, usize::from(number as usize > most), "{number} {most}");
            }
        }
        assert_eq!(top(owners(7), 3)[0].name, "o7");
    }

    #[test]
    fn account_files_are_found_by_name_and_read_completely_or_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let account = AccountRecord { total_bytes: 9, ..AccountRecord::default() };
        let text = serde_json::json!({ "schema": "x", "mark": { "account": account } }).to_string();
        let names = ["a.1.7.0000090.growth", "a.1.7.0000008.asked", "a.1.77.0000001.time", "b.1.7.0000002.time"];
        for name in names {
            std::fs::write(path(&format!("{name}.account.json")), &text).unwrap();
        }
        std::fs::write(path("a.1.7.0000100.time.account.part"), &text).unwrap();
        let found = accounts_beside(&path("a.1.7.history"));
        assert_eq!(
            found.iter().map(|of| (of.age_s, of.why.as_str())).collect::<Vec<_>>(),
            [(8, "asked"), (90, "growth")]
        );
        assert!(was_asked(&found) && !was_asked(&found[1..]));
        let told = read(&found[0]).unwrap();
        assert_eq!((told.total_bytes, told.at_age_s, told.asked), (9, 8.0, true));
        for end in 0..text.len() {
            std::fs::write(&found[0].path, &text[..end]).unwrap();
            assert_eq!(read(&found[0]), None, "{end}");
        }
    }
}
