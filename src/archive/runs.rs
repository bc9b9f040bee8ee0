//! Runs below folders: archives, and files that `--json` printed, each read on its own so that thousands fit in memory.

use super::{Archive, is_one, read};
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::record::{Conditions, Document, RESULT_SCHEMA, Trial};
use crate::scenario::Scenario;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// More than any user reads at once: one run a night for thirteen years.
const RUNS_MAX: usize = 5_000;
/// Folders below a folder: a year, a month, a branch, a run, and two more.
const DEPTH_MAX: usize = 6;
/// A document of a hundred trials with accounts has some 10 MB.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;
/// A document says at its beginning what it is.
const BEGINNING: u64 = 200;

/// A run that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFile {
    /// Its folder or file, as it was named, or through the folder that it lies in.
    pub path: PathBuf,
    /// Its kind.
    pub kind: RunKind,
}

/// The kind of file or folder that a run lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// The folder of an archive.
    Archive,
    /// A file with the result document.
    Document,
}

/// The data that a run left.
#[derive(Debug, Clone)]
pub struct RunRead {
    /// The conditions of every trial.
    pub conditions: Conditions,
    /// The scenario that was asked for; `None` for a document, which has the figures of its trials.
    pub scenario: Option<Box<Scenario>>,
    /// In the order they ran.
    pub trials: Vec<Trial>,
    /// The parts that an archive lacks, in words.
    pub missing: Vec<String>,
}

/// Every archive and every result document below these folders, each once, in the same order whatever theirs. A folder
/// or file that is named is taken for one, whatever is in it.
///
/// # Errors
/// `Request` where one of them is not there, where a file is no result document, or where there are too many; `Machine`
/// where a folder cannot be listed.
pub fn run_files(places: &[PathBuf]) -> Result<Vec<RunFile>> {
    let mut found = BTreeMap::new();
    for place in places {
        let about = std::fs::metadata(place).map_err(|cause| {
            Error::request(format!("cannot read {}: {}", place.display(), plain(&cause)))
                .hint("give the folder of an archive, or one in which archives lie")
        })?;
        if !about.is_dir() {
            take(&mut found, place.clone(), RunKind::Document)?;
            continue;
        }
        // A folder that was named may not be listed: then nothing of it is known.
        std::fs::read_dir(place).map_err(|cause| Error::io("list", place, &cause))?;
        look(&mut found, place, DEPTH_MAX)?;
    }
    Ok(found.into_values().collect())
}

/// Runs by what they are on the disk.
type RunFiles = BTreeMap<PathBuf, RunFile>;

fn take(found: &mut RunFiles, path: PathBuf, kind: RunKind) -> Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    found.entry(real).or_insert(RunFile { path, kind });
    match found.len() > RUNS_MAX {
        true => Err(Error::request(format!("there are more than {RUNS_MAX} archives"))
            .hint("give folders with fewer of them, such as those of a year")),
        false => Ok(()),
    }
}

/// Finds the runs in a folder. Links below it are not followed: they may lead in circles. Folders in an archive belong
/// to it.
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

/// Whether a file is named as JSON and begins as a result document does.
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
    /// Reads it, without what `result::read` computes.
    ///
    /// # Errors
    /// `Request` where it cannot be read, is damaged or of another version.
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
        Error::request(format!("{} {what}", path.display()))
            .hint("give a file that `--json` printed, or the folder of an archive")
    };
    let bytes = bounded::bytes(path, DOCUMENT_BYTES_MAX)
        .map_err(|cause| refuse(format!("cannot be read: {}", plain(&cause))))?;
    parse(&bytes).map_err(refuse)
}

/// Parses a document. The error omits the name of the file, which comes before it.
fn parse(bytes: &[u8]) -> Result<RunRead, String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|cause| format!("is damaged: {cause}"))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(RESULT_SCHEMA) => {}
        Some(other) => {
            return Err(format!("has the schema `{}`; this Loadline reads `{RESULT_SCHEMA}`", other.escape_debug()));
        }
        None => return Err("is no result document: it has no `schema`".to_owned()),
    }
    let document: Document = serde_json::from_slice(bytes).map_err(|cause| format!("is damaged: {cause}"))?;
    match document.archives.is_empty() {
        true => {
            let Document { conditions, trials, .. } = document;
            Ok(RunRead { conditions, scenario: None, trials, missing: Vec::new() })
        }
        false => Err("compares several archives; give these".to_owned()),
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
    fn archives_and_documents_are_found_once_and_nothing_else() {
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
    fn what_is_no_result_is_named() {
        let why = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(why("").starts_with("is damaged: EOF"));
        assert_eq!(why("[]"), "is no result document: it has no `schema`");
        assert_eq!(
            why("{\"schema\": \"loadline.result/9\\u001b\"}"),
            "has the schema `loadline.result/9\\u{1b}`; this Loadline reads `loadline.result/2`"
        );
        assert!(why("{\"schema\": \"loadline.result/2\"}").starts_with("is damaged: missing field"));
    }
}
