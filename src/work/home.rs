//! The results of an entry, `OUT/index-NNNNNN/`: a directory for each attempt with a result, including its archives,
//! and `result.json`, the result that counts.
//!
//! An attempt stays separate until it is done; then its directory is renamed into place. After that, a link publishes
//! its result, so that only one of two simultaneous results gets the name. This also works on NFS, where a rename would
//! let the second one win, and an exchange (`RENAME_EXCHANGE`) is rejected.
//!
//! A result replaces another one only if it outweighs it, or if the other one is damaged; a result with an answer
//! outweighs one without. The replacement is a rename, so a reader sees one complete result or the other.

use super::aside::{self, Aside};
use crate::archive::{ENTRY_BYTES_MAX, ENTRY_RESULT};
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::fleet::{folder_of, outweighs};
use crate::record::{EntryResult, FLEET_ENTRY_SCHEMA};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The prefix of attempt directories.
const TRY: &str = "try-";

/// The location of an entry's results.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    plan: String,
    index: u32,
}

/// Whose result counts.
#[derive(Debug, PartialEq)]
pub(super) enum Put {
    /// This worker's.
    Ours,
    /// A faster worker's.
    Theirs(Box<EntryResult>),
}

enum ResultFile {
    Nothing,
    /// Truncated or damaged, because its writer was killed.
    Damaged,
    Result(Box<EntryResult>),
}

impl Home {
    pub(super) fn new(out: &Path, plan: &str, index: u32) -> Self {
        Self { folder: out.join(folder_of(index)), plan: plan.to_owned(), index }
    }

    /// The result that counts, if any. Errors: `Request` if it has a different plan or version; `Machine` if it cannot
    /// be read.
    pub(super) fn standing(&self) -> Result<Option<EntryResult>> {
        if let ResultFile::Result(standing) = self.read(&self.folder.join(ENTRY_RESULT))? {
            return Ok(Some(*standing));
        }
        // A worker may have been killed just before its last step.
        for path in self.tries() {
            if let ResultFile::Result(whole) = self.read(&path)?
                && fs::hard_link(&path, self.folder.join(ENTRY_RESULT)).is_ok()
            {
                return Ok(Some(*whole));
            }
        }
        Ok(None)
    }

    fn tries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_try = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(TRY);
        let mut tries: Vec<_> = entries.filter(is_try).map(|entry| entry.path().join(ENTRY_RESULT)).collect();
        tries.sort();
        tries
    }

    fn read(&self, path: &Path) -> Result<ResultFile> {
        let text = match bounded::bytes(path, ENTRY_BYTES_MAX) {
            Ok(text) => text,
            Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(ResultFile::Nothing);
            }
            Err(cause) => return Err(Error::io("read", path, &cause)),
        };
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(&text) else { return Ok(ResultFile::Damaged) };
        let refuse = |what: String| {
            let error = Error::request(what).at(path.display().to_string());
            Err(error.hint("choose another directory with `--out DIR`; each directory is for the results of one plan"))
        };
        match (value["schema"].as_str(), value["plan"].as_str(), value["index"].as_u64()) {
            (Some(FLEET_ENTRY_SCHEMA), Some(plan), Some(index)) => {
                if plan != self.plan {
                    return refuse("the directory is for a different plan".to_owned());
                }
                if index != u64::from(self.index) {
                    return refuse(format!("the directory is for entry {index}"));
                }
            }
            (Some(other), ..) if other != FLEET_ENTRY_SCHEMA => {
                return refuse(format!(
                    "the result has the schema `{other}`; this release uses `{FLEET_ENTRY_SCHEMA}`"
                ));
            }
            _ => return Ok(ResultFile::Damaged),
        }
        Ok(serde_json::from_slice(&text).map_or(ResultFile::Damaged, |result| ResultFile::Result(Box::new(result))))
    }

    /// The path of an archive in this worker's attempt, relative to the entry's directory.
    pub(super) fn archive(aside: &Aside, name: &str) -> String {
        format!("{TRY}{}/{name}", aside.worker())
    }

    /// Moves a result into place with all its files. This worker's result is deleted only if another worker was faster,
    /// so measured trials survive a full disk or a temporarily unavailable file server. Errors: `Machine` if it cannot
    /// be written. An attempt that is in place counts as soon as a worker looks again; one that is still separate is
    /// left for the entry's next worker.
    pub(super) fn put(&self, aside: Aside, result: &EntryResult) -> Result<Put> {
        let own = self.folder.join(format!("{TRY}{}", aside.worker()));
        if let Err(error) = self.move_in(&aside, &own, result) {
            let (path, measured) = (aside.path().to_owned(), aside.holds_trials());
            if measured {
                aside.leave()
            } else {
                aside.remove()
            }
            // Succeeds only if the directory is empty.
            let _ = fs::remove_dir(&self.folder);
            return Err(if measured { error.at(format!("the measurements are in {}", path.display())) } else { error });
        }
        match self.name(&own, result) {
            Ok(Put::Ours) => {
                sync(&self.folder);
                Ok(Put::Ours)
            }
            Ok(Put::Theirs(theirs)) => {
                // Leftover files do no harm.
                let _ = fs::remove_dir_all(&own);
                Ok(Put::Theirs(theirs))
            }
            Err(error) => Err(error.at(format!("the measurements are in {}", own.display()))),
        }
    }

    /// Turns the private directory into an attempt with its result, synced to disk before the rename.
    fn move_in(&self, aside: &Aside, own: &Path, result: &EntryResult) -> Result<()> {
        let path = aside.path().join(ENTRY_RESULT);
        let fails = |cause: &std::io::Error| Error::io("write", &path, cause);
        let mut text = serde_json::to_vec_pretty(result)
            .map_err(|cause| Error::bug(format!("cannot encode a result: {cause}")))?;
        text.push(b'\n');
        let mut file = File::create(&path).map_err(|cause| fails(&cause))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(|cause| fails(&cause))?;
        fs::create_dir_all(&self.folder).map_err(|cause| Error::io("create", &self.folder, &cause))?;
        fs::rename(aside.path(), own).map_err(|cause| Error::io("rename", aside.path(), &cause))?;
        // Last, because no worker resumes a directory without its claim.
        aside::settled(own);
        sync(&self.folder);
        Ok(())
    }

    /// Publishes an attempt's result, unless one of the same weight exists.
    fn name(&self, own: &Path, result: &EntryResult) -> Result<Put> {
        let (from, to) = (own.join(ENTRY_RESULT), self.folder.join(ENTRY_RESULT));
        match fs::hard_link(&from, &to) {
            Ok(()) => return Ok(Put::Ours),
            // The link may have succeeded although the file server's reply was lost, another worker may have been
            // faster, or the file system may lack links; then the first check decides.
            Err(cause) if cause.kind() == ErrorKind::StorageFull => return Err(Error::io("link", &to, &cause)),
            Err(_) => {}
        }
        match self.read(&to)? {
            ResultFile::Result(standing) if *standing == *result => Ok(Put::Ours),
            ResultFile::Result(standing) if !outweighs(result.outcome, standing.outcome) => Ok(Put::Theirs(standing)),
            ResultFile::Result(_) | ResultFile::Damaged | ResultFile::Nothing => fs::rename(&from, &to)
                .map(|()| Put::Ours)
                .map_err(|cause| Error::machine(format!("cannot write {}: {}", to.display(), plain(&cause)))),
        }
    }
}

/// Syncing a directory makes its names durable; file systems without this call do so automatically.
fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}
