//! Finds runs below directories: archives, and files printed by `--json`. Each is read separately, so that memory can
//! hold thousands.

use super::{Archive, is_one, read};
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::record::{Conditions, Document, RESULT_SCHEMA, Trial};
use crate::scenario::Scenario;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One run a night for thirteen years.
const RUNS_MAX: usize = 5_000;
/// Directory levels: a year, a month, a branch, a run, and two more.
const DEPTH_MAX: usize = 6;
/// A document of a hundred trials with accounts is about 10 MB.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;
/// A document's schema is within its first bytes.
const BEGINNING: u64 = 200;

/// A run on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFile {
    /// Its directory or file as given, or below a given one.
    pub path: PathBuf,
    /// Its kind.
    pub kind: RunKind,
}

/// How a run is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// An archive directory.
    Archive,
    /// A file with the result document.
    Document,
}

/// The stored data of a run.
#[derive(Debug, Clone)]
pub struct RunRead {
    /// The conditions of all trials.
    pub conditions: Conditions,
    /// The requested scenario; `None` for a document, which contains its trials' figures.
    pub scenario: Option<Box<Scenario>>,
    /// In execution order.
    pub trials: Vec<Trial>,
    /// Missing parts of an archive, described.
    pub missing: Vec<String>,
}

/// Every archive and result document below these directories, once and sorted. A file given explicitly is accepted
/// whatever its content, which [`RunFile::read`] checks. Errors: `Request` if a path does not exist, or there are too
/// many runs; `Machine` if a directory cannot be listed.
pub fn run_files(places: &[PathBuf]) -> Result<Vec<RunFile>> {
    let mut found = BTreeMap::new();
    for place in places {
        let about = std::fs::metadata(place).map_err(|cause| {
            Error::request(format!("cannot read {}: {}", place.display(), plain(&cause)))
                .hint("specify an archive, or a directory of archives")
        })?;
        if !about.is_dir() {
            take(&mut found, place.clone(), RunKind::Document)?;
            continue;
        }
        // An explicitly given directory must be readable.
        std::fs::read_dir(place).map_err(|cause| Error::io("list", place, &cause))?;
        look(&mut found, place, DEPTH_MAX)?;
    }
    Ok(found.into_values().collect())
}

type RunFiles = BTreeMap<PathBuf, RunFile>;

fn take(found: &mut RunFiles, path: PathBuf, kind: RunKind) -> Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    found.entry(real).or_insert(RunFile { path, kind });
    match found.len() > RUNS_MAX {
        true => Err(Error::request(format!("there are more than {RUNS_MAX} archives"))
            .hint("specify directories with fewer archives, such as those from one year")),
        false => Ok(()),
    }
}

/// Finds the runs in a directory. Does not follow links below it, because they can form cycles. Directories in an
/// archive belong to that archive.
fn look(found: &mut RunFiles, folder: &Path, depth: usize) -> Result<()> {
    if is_one(folder) {
        return take(found, folder.to_owned(), RunKind::Archive);
    }
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.order_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_hidden && depth > 0 => look(found, &path, depth - 1)?,
            Ok(kind) if kind.is_file() && is_document(&path) => take(found, path, RunKind::Document)?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether a file is named as JSON and starts like a result document.
fn is_document(path: &Path) -> bool {
    if path.extension().is_none_or(|extension| extension != "json") {
        return false;
    }
    let mut beginning = Vec::new();
    let read = bounded::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    let name = RESULT_SCHEMA.split('/').next().unwrap_or_default();
    read.is_ok() && String::from_utf8_lossy(&beginning).contains(&format!("\"{name}/"))
}

impl RunFile {
    /// Reads the run, without the values that `result::read` computes. Errors: `Request` if it cannot be read, is
    /// damaged, or has a different version.
    pub fn read(&self) -> Result<RunRead> {
        match self.kind {
            RunKind::Archive => read(&self.path).map(RunRead::from),
            RunKind::Document => document(&self.path),
        }
    }
}

impl From<Archive> for RunRead {
    fn from(archive: Archive) -> Self {
        let Archive { conditions, scenario, trials, missing } = archive;
        Self { conditions, scenario: Some(Box::new(scenario)), trials, missing }
    }
}

fn document(path: &Path) -> Result<RunRead> {
    let refuse = |what: String| {
        Error::request(format!("{} {what}", path.display())).hint("specify the output of `--json`, or an archive")
    };
    let bytes = bounded::bytes(path, DOCUMENT_BYTES_MAX)
        .map_err(|cause| refuse(format!("cannot be read: {}", plain(&cause))))?;
    parse(&bytes).map_err(refuse)
}

/// Parses a document. The error omits the file name, which the caller adds.
fn parse(bytes: &[u8]) -> Result<RunRead, String> {
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err("is neither an archive nor a Loadline JSON document".to_owned());
    }
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|cause| format!("is damaged: {cause}"))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(RESULT_SCHEMA) => {}
        Some(other) => {
            return Err(format!("has the schema `{}`; this release reads `{RESULT_SCHEMA}`", other.escape_debug()));
        }
        None => return Err("is not a result document: it has no `schema`".to_owned()),
    }
    let document: Document = serde_json::from_slice(bytes).map_err(|cause| format!("is damaged: {cause}"))?;
    match document.archives.is_empty() {
        true => {
            let Document { conditions, trials, .. } = document;
            Ok(RunRead { conditions, scenario: None, trials, missing: Vec::new() })
        }
        false => Err("compares several archives; specify those archives instead".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::INDEX;
    use super::*;
    use std::fs::{create_dir_all, write};

    fn names(places: &[PathBuf]) -> Vec<String> {
        let name = |file: RunFile| file.path.file_name().unwrap().to_string_lossy().into_owned();
        run_files(places).unwrap().into_iter().map(name).collect()
    }

    #[test]
    fn only_archives_and_documents_are_found_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for archive in ["2026/a", "2026/b", "2026/b/line", ".hidden/c", "1/2/3/4/5/6/7/deep"] {
            create_dir_all(at(archive)).unwrap();
            write(at(archive).join(INDEX), "").unwrap();
        }
        let begins = format!("{{\n  \"schema\": \"{RESULT_SCHEMA}\"");
        write(at("2026/c.json"), &begins).unwrap();
        write(at("2026/c.txt"), &begins).unwrap();
        write(at("2026/package.json"), "{}").unwrap();
        std::os::unix::fs::symlink(folder.path(), at("2026/circle")).unwrap();
        assert_eq!(names(&[folder.path().to_owned()]), ["a", "b", "c.json"]);
        assert_eq!(names(&[at("2026"), folder.path().to_owned(), at("2026/a")]), ["a", "b", "c.json"]);
        assert!(run_files(&[at("absent")]).is_err());
        let cut = run_files(&[at("2026/c.json")]).unwrap()[0].read().unwrap_err();
        assert!(cut.what.contains("c.json is damaged: EOF"), "{}", cut.what);
        assert!(run_files(&[at("2026/package.json")]).unwrap()[0].read().unwrap_err().what.contains("no `schema`"));
    }

    #[test]
    fn invalid_result_files_are_explained() {
        let why = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(why("").starts_with("is damaged: EOF"));
        assert_eq!(why("[]"), "is neither an archive nor a Loadline JSON document");
        assert_eq!(
            why("{\"schema\": \"loadline.result/9\\u001b\"}"),
            "has the schema `loadline.result/9\\u{1b}`; this release reads `loadline.result/2`"
        );
        assert!(why("{\"schema\": \"loadline.result/2\"}").starts_with("is damaged: missing field"));
    }
}
