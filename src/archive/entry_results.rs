//! The results of a plan's entries: `DIR/…/index-NNNNNN/result.json`. Ignores the archives next to them, and unfinished
//! work, whose directory has a different name until it is complete.

use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::record::{EntryResult, FLEET_ENTRY_SCHEMA};
use crate::units::unix_s;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

pub(crate) const ENTRY_RESULT: &str = "result.json";
const PREFIX: &str = "index-";
/// A result with all of a subject's output takes about 10 KiB.
pub(crate) const ENTRY_BYTES_MAX: u64 = 1 << 20;
/// A plan takes about 2 KiB per entry.
pub const PLAN_BYTES_MAX: u64 = 256 << 20;
/// Directory levels: a night, a node, an index, and as many again.
const DEPTH_MAX: usize = 6;
/// A year; no entry takes longer.
const SECONDS_MAX: f64 = 31_536_000.0;
const PLAN: &str = "plan.jsonl";

/// A directory with a result, or the reason why the result is unreadable.
#[derive(Debug, Clone)]
pub struct EntryFolder {
    /// The directory as given, or below a given one.
    pub path: PathBuf,
    /// The result, or the problem with the file, worded to follow the directory's name.
    pub result: Result<EntryResult, String>,
}

/// Directories with results, by their real path.
type Folders = BTreeMap<PathBuf, EntryFolder>;

/// Reads every result below these directories once, sorted. Errors: `Request` if one is not a directory, `Machine` if
/// it cannot be listed.
pub fn entry_results(folders: &[PathBuf]) -> Result<Vec<EntryFolder>> {
    let mut found = Folders::new();
    for folder in folders {
        let refuse = |what: &str| {
            Error::request(format!("{} {what}", folder.display()))
                .hint("specify a directory written by `loadline work --out`, which contains `index-NNNNNN`")
        };
        let real = folder.canonicalize().map_err(|cause| refuse(&format!("cannot be read: {}", plain(&cause))))?;
        if !real.is_dir() {
            return Err(refuse("is not a directory"));
        }
        match index_of(&real) {
            Some(index) => take(&mut found, real, folder.clone(), index),
            None => {
                let list = std::fs::read_dir(&real).map_err(|cause| Error::io("list", folder, &cause))?;
                list.flatten().for_each(|entry| look(&mut found, &entry, folder, DEPTH_MAX));
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The plan in or next to one of these directories, if any.
pub fn plan_beside(folders: &[PathBuf]) -> Option<PathBuf> {
    let around = |folder: &PathBuf| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let beside = real.parent().map(|parent| parent.join(PLAN));
        [Some(folder.join(PLAN)), beside].into_iter().flatten().find(|path| path.is_file())
    };
    folders.iter().find_map(around)
}

/// The text of a plan. Errors: `Request` if it cannot be read, is not text, or is too large for a plan.
pub fn plan_text(path: &Path) -> Result<String> {
    let refuse =
        |what: String| Error::request(format!("{} {what}", path.display())).hint("`loadline plan` creates a plan");
    let bytes = whole_file(path, PLAN_BYTES_MAX).map_err(refuse)?;
    String::from_utf8(bytes).map_err(|_| refuse("is not a plan: it is not text".to_owned()))
}

/// Finds results in and below a directory entry. Does not follow links, because they can form cycles.
fn look(found: &mut Folders, entry: &DirEntry, within: &Path, depth: usize) {
    let name = entry.file_name();
    if name.to_string_lossy().starts_with('.') || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
        return;
    }
    let (real, path) = (entry.path(), within.join(&name));
    if let Some(index) = index_of(&real) {
        return take(found, real, path, index);
    }
    if depth > 0 {
        // Results in an unreadable directory count as missing.
        let list = std::fs::read_dir(&real).into_iter().flatten().flatten();
        list.for_each(|entry| look(found, &entry, &path, depth - 1));
    }
}

fn take(found: &mut Folders, real: PathBuf, path: PathBuf, index: u32) {
    match found.entry(real) {
        // The first name in sort order wins, so the order of the arguments does not matter.
        Entry::Occupied(mut known) => {
            let known = known.get_mut();
            known.path = path.min(std::mem::take(&mut known.path));
        }
        Entry::Vacant(new) => {
            let file = new.key().join(ENTRY_RESULT);
            let result = match whole_file(&file, ENTRY_BYTES_MAX).and_then(|bytes| parse(&bytes)) {
                Ok(result) if result.index != index => Err(format!("has the result of index {}", result.index)),
                Err(_) if !file.exists() => Err(format!("has no {ENTRY_RESULT}")),
                read => read.map_err(|why| format!("has a {ENTRY_RESULT} that {why}")),
            };
            new.insert(EntryFolder { path, result });
        }
    }
}

/// The index in a directory's name, with at least six digits.
fn index_of(folder: &Path) -> Option<u32> {
    let digits = folder.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// A regular file's content, up to a size limit.
fn whole_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    bounded::bytes(path, bytes_max).map_err(|cause| format!("cannot be read: {}", plain(&cause)))
}

/// Parses a result. The error omits the file name, which the caller adds.
fn parse(bytes: &[u8]) -> Result<EntryResult, String> {
    #[derive(Deserialize)]
    struct Tag {
        schema: String,
    }
    let damaged = |cause: serde_json::Error| match cause.is_eof() {
        true => format!("is truncated: {cause}"),
        false => format!("is damaged: {cause}"),
    };
    let tag: Tag = serde_json::from_slice(bytes).map_err(damaged)?;
    if tag.schema != FLEET_ENTRY_SCHEMA {
        let shown: String = tag.schema.chars().take(60).flat_map(char::escape_debug).collect();
        return Err(format!("is `{shown}`; this release reads `{FLEET_ENTRY_SCHEMA}`"));
    }
    let result: EntryResult = serde_json::from_slice(bytes).map_err(damaged)?;
    if !(0.0..=SECONDS_MAX).contains(&result.seconds) {
        return Err(format!("has an impossible duration of {} s", result.seconds));
    }
    match unix_s(&result.started) {
        Some(_) => Ok(result),
        None => Err("has no start time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EntryOutcome, NodeRecord, Task};
    use proptest::prelude::*;

    fn result(index: u32) -> EntryResult {
        EntryResult {
            schema: FLEET_ENTRY_SCHEMA.to_owned(),
            loadline: "0.1.0".to_owned(),
            plan: "ab".repeat(32),
            index,
            name: "shop".to_owned(),
            task: Task::Prove,
            outcome: EntryOutcome::Answered,
            why: Vec::new(),
            node: NodeRecord::default(),
            started: "2026-11-23T01:00:00Z".to_owned(),
            seconds: 61.5,
            find: None,
            line: None,
            archives: Vec::new(),
            doubts: Vec::new(),
        }
    }

    fn text(result: &EntryResult) -> Vec<u8> {
        serde_json::to_vec_pretty(result).unwrap()
    }

    fn put(place: &Path, name: &str, bytes: &[u8]) {
        loadline_test_support::write(place.join(name), bytes);
    }

    #[test]
    fn only_complete_results_are_found_and_each_once() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        put(at, "index-000000/result.json", &text(&result(0)));
        put(at, "monday/n1/index-000001/result.json", &text(&result(1)));
        put(at, ".index-000002-4711-ab/result.json", &text(&result(2)));
        put(at, ".snapshot/index-000003/result.json", &text(&result(3)));
        put(at, "index-4/result.json", &text(&result(4)));
        put(at, "index-000005/trial-000/index-000006/result.json", &text(&result(6)));
        put(at, "index-000007/result.json", &text(&result(8)));
        put(at, "index-000009/result.json", &[b' '; (ENTRY_BYTES_MAX + 1) as usize]);
        std::os::unix::fs::symlink(at, at.join("monday/again")).unwrap();
        std::fs::create_dir(at.join("index-000010")).unwrap();
        std::fs::create_dir(at.join("index-000011")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at.join("index-000010/result.json")).unwrap();
        let [whole, monday, index] = ["", "monday", "index-000000"].map(|name| at.join(name));
        let found = entry_results(&[whole, monday, index]).unwrap();
        let read: Vec<_> =
            found.iter().filter_map(|of| Some((of.path.clone(), of.result.as_ref().ok()?.index))).collect();
        assert_eq!(read, [(at.join("index-000000"), 0), (at.join("monday/n1/index-000001"), 1)]);
        let why: Vec<&str> = found.iter().filter_map(|of| of.result.as_ref().err().map(String::as_str)).collect();
        let none = "has no result.json";
        let large = "has a result.json that cannot be read: it is larger than 1 MiB";
        assert_eq!(
            why,
            [
                none,
                "has the result of index 8",
                large,
                "has a result.json that cannot be read: it is not a regular file",
                none
            ]
        );
        assert!(entry_results(&[at.join("nowhere")]).unwrap_err().what.contains("cannot be read"));
        assert!(entry_results(&[at.join("index-4/result.json")]).unwrap_err().what.contains("is not a directory"));
    }

    #[test]
    fn a_result_truncated_at_any_byte_is_rejected() {
        let whole = text(&result(3));
        assert_eq!(parse(&whole).unwrap(), result(3));
        for cut in 0..whole.len() {
            let why = parse(&whole[..cut]).unwrap_err();
            assert!(why.starts_with("is truncated: ") || why.starts_with("is damaged: "), "{cut}: {why}");
        }
        let mut changed = whole.clone();
        for at in 0..whole.len() {
            let kept = std::mem::replace(&mut changed[at], b'#');
            let _ = parse(&changed);
            changed[at] = kept;
        }
    }

    #[test]
    fn an_impossible_result_is_rejected() {
        let check = |changed: EntryResult, why: &str| assert_eq!(parse(&text(&changed)).unwrap_err(), why);
        check(EntryResult { seconds: -1.0, ..result(0) }, "has an impossible duration of -1 s");
        check(EntryResult { seconds: 1e300, ..result(0) }, &format!("has an impossible duration of {} s", 1e300));
        check(EntryResult { started: "yesterday".to_owned(), ..result(0) }, "has no start time");
        let other = "is `loadline.fleet-entry/2`; this release reads `loadline.fleet-entry/1`";
        check(EntryResult { schema: "loadline.fleet-entry/2".to_owned(), ..result(0) }, other);
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).unwrap_err().starts_with("is damaged: "));
    }

    #[test]
    fn a_plan_is_found_in_or_next_to_a_directory() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        std::fs::create_dir_all(at.join("a/b")).unwrap();
        let folders = [at.join("a/b"), at.join("a")];
        assert_eq!(plan_beside(&folders), None);
        put(at, "plan.jsonl", b"x");
        let found = plan_beside(&folders).unwrap();
        assert_eq!(found.canonicalize().unwrap(), at.join("plan.jsonl").canonicalize().unwrap());
        put(at, "a/b/plan.jsonl", b"\xff");
        assert_eq!(plan_beside(&folders).unwrap(), at.join("a/b/plan.jsonl"));
        assert!(plan_text(&at.join("a/b/plan.jsonl")).unwrap_err().what.ends_with("is not a plan: it is not text"));
        assert!(plan_text(&at.join("a")).unwrap_err().what.ends_with("Is a directory"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_rejected_as_an_entry_result(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
