//! The results of an entry, `OUT/index-NNNNNN/`: a folder for each try that came to a result, with its archives, and
//! `result.json`, the result that counts.
//!
//! A try lies aside until it is done, and is then renamed into the folder as a whole. After that, a link puts its
//! result in place. If two come at once, one of them gets the name. This holds on NFS too, where a rename would let the
//! second one win and an exchange (`RENAME_EXCHANGE`) is refused.
//!
//! A result takes the place of another one only if it outweighs it, as an answer outweighs a result without one, or if
//! the other one is damaged. That is a rename, so a reader sees one result or the other, and never half of one or none.

use super::aside::{self, Aside};
use crate::archive::{ENTRY_BYTES_MAX, ENTRY_RESULT};
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::fleet::{folder_of, outweighs};
use crate::record::{EntryResult, FLEET_ENTRY_SCHEMA};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// How the folders of tries begin.
const TRY: &str = "try-";

/// The place of the results of an entry.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    plan: String,
    index: u32,
}

/// Whose result counts.
#[derive(Debug, PartialEq)]
pub(super) enum Put {
    /// The one that was put.
    Ours,
    /// The result of somebody who was faster.
    Theirs(Box<EntryResult>),
}

/// The content of a file of results.
enum ResultFile {
    Nothing,
    /// Cut short or damaged: its writer was stopped by an event that stops everything.
    Damaged,
    Result(Box<EntryResult>),
}

impl Home {
    pub(super) fn new(out: &Path, plan: &str, index: u32) -> Self {
        Self { folder: out.join(folder_of(index)), plan: plan.to_owned(), index }
    }

    /// The result that counts, if there is one.
    ///
    /// # Errors
    /// `Request` where it is of another plan or another version; `Machine` where it cannot be read.
    pub(super) fn standing(&self) -> Result<Option<EntryResult>> {
        if let ResultFile::Result(standing) = self.read(&self.folder.join(ENTRY_RESULT))? {
            return Ok(Some(*standing));
        }
        // A worker that was killed just before its last step.
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
            Err(error.hint("choose another folder with `--out DIR`: one folder has the results of one plan"))
        };
        match (value["schema"].as_str(), value["plan"].as_str(), value["index"].as_u64()) {
            (Some(FLEET_ENTRY_SCHEMA), Some(plan), Some(index)) => {
                if plan != self.plan {
                    return refuse("there is a result of another plan".to_owned());
                }
                if index != u64::from(self.index) {
                    return refuse(format!("there is a result of entry {index}"));
                }
            }
            (Some(other), ..) if other != FLEET_ENTRY_SCHEMA => {
                return refuse(format!("there is `{other}`, and a result of this Loadline is `{FLEET_ENTRY_SCHEMA}`"));
            }
            _ => return Ok(ResultFile::Damaged),
        }
        Ok(serde_json::from_slice(&text).map_or(ResultFile::Damaged, |result| ResultFile::Result(Box::new(result))))
    }

    /// Returns the path of an archive of this worker's try, seen from the folder of the entry.
    pub(super) fn archive(aside: &Aside, name: &str) -> String {
        format!("{TRY}{}/{name}", aside.worker())
    }

    /// Puts a result in place, with all that lies aside. Ours is removed only if somebody was faster:
    /// measured trials outlive a full disk or a file server that is away for a moment.
    ///
    /// # Errors
    /// `Machine` where it cannot be written. A try that has its place counts as soon as somebody looks again; one that
    /// lies aside still is left for the next worker of the entry.
    pub(super) fn put(&self, aside: Aside, result: &EntryResult) -> Result<Put> {
        let own = self.folder.join(format!("{TRY}{}", aside.worker()));
        if let Err(error) = self.move_in(&aside, &own, result) {
            let (path, measured) = (aside.path().to_owned(), aside.holds_trials());
            if measured {
                aside.leave()
            } else {
                aside.remove()
            }
            // This succeeds only if nothing else is in it.
            let _ = fs::remove_dir(&self.folder);
            return Err(if measured {
                error.at(format!("what was measured lies in {}", path.display()))
            } else {
                error
            });
        }
        match self.name(&own, result) {
            Ok(Put::Ours) => {
                sync(&self.folder);
                Ok(Put::Ours)
            }
            Ok(Put::Theirs(theirs)) => {
                // Litter, where it cannot be removed.
                let _ = fs::remove_dir_all(&own);
                Ok(Put::Theirs(theirs))
            }
            Err(error) => Err(error.at(format!("what was measured lies in {}", own.display()))),
        }
    }

    /// Turns the folder aside into a try with its result, on disk before it has that name.
    fn move_in(&self, aside: &Aside, own: &Path, result: &EntryResult) -> Result<()> {
        let path = aside.path().join(ENTRY_RESULT);
        let fails = |cause: &std::io::Error| Error::io("write", &path, cause);
        let mut text =
            serde_json::to_vec_pretty(result).map_err(|cause| Error::bug(format!("a result has no text: {cause}")))?;
        text.push(b'\n');
        let mut file = File::create(&path).map_err(|cause| fails(&cause))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(|cause| fails(&cause))?;
        fs::create_dir_all(&self.folder).map_err(|cause| Error::io("create", &self.folder, &cause))?;
        fs::rename(aside.path(), own).map_err(|cause| Error::io("rename", aside.path(), &cause))?;
        // Only now: no worker resumes a folder without its claim.
        aside::settled(own);
        sync(&self.folder);
        Ok(())
    }

    /// Gives a try's result the name that counts, where no other has it that weighs as much.
    fn name(&self, own: &Path, result: &EntryResult) -> Result<Put> {
        let (from, to) = (own.join(ENTRY_RESULT), self.folder.join(ENTRY_RESULT));
        match fs::hard_link(&from, &to) {
            Ok(()) => return Ok(Put::Ours),
            // Linked after all, and the answer of a file server was lost; or somebody was faster; or a file system
            // without links, on which the first look decides.
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

/// A name is on disk once its folder is; what a file system does not offer it does by itself.
fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}
