//! `{work}`: an empty folder for one trial, under the system's temporary folder, removed after the subject's end. A
//! private copy of a JDK lives in one, too.
//!
//! The folder itself is locked (flock(2)) as long as its Loadline lives, however that ends. One that is not locked is a
//! leftover of a Loadline that was killed, in whatever container that ran, and the next start removes it.

use super::names;
use crate::error::{Error, Result, plain};
use crate::locked::Locked;
use rustix::fs::{Mode, OFlags, open};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How the names of all such folders begin.
const PREFIX: &str = "loadline-work-";
/// The temporary folder that is meant for what is large or has to outlive a restart, and so is a disk (FHS 3.0, 5.15).
const LARGE: &str = "/var/tmp";
/// Names tried: a start at the same moment may take a new folder for a leftover.
const NAMES_MAX: u32 = 1000;

/// A folder of one trial. Dropping it removes it.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    /// Locks the folder; closed on exec, so that no subject inherits it.
    _lock: Locked,
    gone: bool,
}

impl WorkFolder {
    /// Creates an empty one that only this user can enter.
    ///
    /// # Errors
    /// If the temporary folder cannot be written.
    pub fn create() -> Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    /// Creates one in another folder than the system's temporary one; [`sweep_in`] finds it there.
    pub(super) fn create_in(parent: &Path) -> Result<Self> {
        for _ in 0..NAMES_MAX {
            // Another user who could foresee the name could take it first.
            let path = parent.join(format!("{PREFIX}{}", names::random()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(cause) => return Err(Error::io("create", &path, &cause).hint("set TMPDIR to another folder")),
            }
            // A start at the same moment may take it for a leftover; then the next name is tried.
            match lock(&path) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock, gone: false }),
                Ok(None) => {}
                Err(cause) => return Err(Error::io("lock", &path, &cause).hint("set TMPDIR to another folder")),
            }
        }
        Err(Error::machine(format!("no name for a folder is left in {}", parent.display()))
            .hint(format!("remove what begins with {PREFIX} there")))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all that is in it. Returns what went wrong, in words.
    pub fn remove(mut self) -> Option<String> {
        self.gone = true;
        std::fs::remove_dir_all(&self.path).err().map(|cause| plain(&cause))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if !self.gone {
            // Something else went wrong before; the next start tries again.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The lock on a folder; `None` where another has it, or it is no longer there.
fn lock(path: &Path) -> io::Result<Option<Locked>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match open(path, flags, Mode::empty()) {
        Ok(folder) => File::from(folder),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(cause) => return Err(cause.into()),
    };
    let folder = match Locked::new(folder) {
        Ok(folder) => folder,
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(cause)) => return Err(cause),
    };
    // The holder of the lock before may have removed the folder.
    let (ours, now) = (folder.metadata()?, std::fs::symlink_metadata(path));
    Ok(now.is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino())).then_some(folder))
}

/// The fate of leftovers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Folders that were removed.
    pub removed: usize,
    /// Folders that could not be removed, with the reason.
    pub left: Vec<(PathBuf, String)>,
}

/// The usual folders for such folders: the temporary folder, then the one for what is large.
pub(super) fn usual_parents() -> Vec<PathBuf> {
    let mut parents = vec![std::env::temp_dir(), PathBuf::from(LARGE)];
    parents.dedup();
    parents
}

/// Removes the folders of this user whose Loadline is gone, from where they are usually made.
pub fn sweep() -> Swept {
    let mut all = Swept::default();
    for parent in usual_parents() {
        let swept = sweep_in(&parent);
        all.removed += swept.removed;
        all.left.extend(swept.left);
    }
    all
}

/// Removes such folders from any other place where one may have been made, such as the one an archive lies in.
pub fn sweep_in(parent: &Path) -> Swept {
    let mut swept = Swept::default();
    // If a temporary folder cannot be read, the code that needs it reports that.
    let Ok(entries) = std::fs::read_dir(parent) else { return swept };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_ours = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        if !is_named || !is_ours() {
            continue;
        }
        let path = entry.path();
        let removed = match lock(&path) {
            Ok(None) => continue,
            Ok(Some(_lock)) => std::fs::remove_dir_all(&path),
            Err(cause) => Err(cause),
        };
        match removed {
            Ok(()) => swept.removed += 1,
            Err(cause) => swept.left.push((path, plain(&cause))),
        }
    }
    swept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_empty_private_and_gone_with_all_that_was_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path();
        let (one, two) = (WorkFolder::create_in(parent).unwrap(), WorkFolder::create_in(parent).unwrap());
        assert_ne!(one.path(), two.path());
        assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 0);
        assert_eq!(std::fs::metadata(one.path()).unwrap().mode() & 0o777, 0o700);
        std::fs::create_dir(one.path().join("sandbox")).unwrap();
        std::fs::write(one.path().join("sandbox/x"), "x").unwrap();
        std::os::unix::fs::symlink(parent, one.path().join("sandbox/up")).unwrap();
        assert_eq!(one.remove(), None);
        assert!(two.path().is_dir(), "a link is removed, not followed");
        drop(two);
        assert_eq!(std::fs::read_dir(parent).unwrap().count(), 0);
    }

    #[test]
    fn what_is_locked_or_not_ours_by_name_stays_and_a_leftover_goes() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path();
        let alive = WorkFolder::create_in(parent).unwrap();
        let leftover = parent.join(format!("{PREFIX}1-0"));
        std::fs::create_dir_all(leftover.join("deep")).unwrap();
        for other in ["loadline-demo-1", "else"] {
            std::fs::create_dir(parent.join(other)).unwrap();
        }
        std::fs::write(parent.join(format!("{PREFIX}file")), "").unwrap();
        std::os::unix::fs::symlink(parent.join("else"), parent.join(format!("{PREFIX}link"))).unwrap();
        assert_eq!(sweep_in(parent), Swept { removed: 1, left: Vec::new() });
        assert!(!leftover.exists() && alive.path().is_dir() && parent.join("else").is_dir());
        assert_eq!(sweep_in(parent), Swept::default());
        drop(alive);
    }

    #[test]
    fn a_folder_that_went_by_itself_is_trouble_but_no_panic() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::create_in(parent.path()).unwrap();
        std::fs::remove_dir(folder.path()).unwrap();
        assert_eq!(folder.remove().as_deref(), Some("No such file or directory"));
        let parent = parent.path().join("none");
        assert!(WorkFolder::create_in(&parent).is_err());
        assert_eq!(sweep_in(&parent), Swept::default());
    }
}
