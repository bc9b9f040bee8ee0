//! `{work}`: an empty directory for one trial, in the system's temporary directory, removed after the subject's end. A
//! private copy of a JDK uses one, too.
//!
//! The directory is locked (flock(2)) while its Loadline process lives. An unlocked one was left by a killed Loadline,
//! whichever container it ran in, and the next start removes the directory.

use super::names;
use crate::error::{Error, Result, plain};
use crate::locked::Locked;
use rustix::fs::{Mode, OFlags, open};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The prefix of all such directories.
const PREFIX: &str = "loadline-work-";
/// The temporary directory for large or persistent data, and therefore on disk (FHS 3.0, 5.15).
const LARGE: &str = "/var/tmp";
/// The number of names to try: a concurrent start can mistake a new directory for a leftover.
const NAMES_MAX: u32 = 1000;

/// A trial's directory, removed on drop.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    /// The lock on the directory; closed on exec, so that no subject inherits it.
    _lock: Locked,
    gone: bool,
}

impl WorkFolder {
    /// Creates an empty directory that only this user can enter. Fails if the temporary directory is not writable.
    pub fn create() -> Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    /// Creates one outside the system's temporary directory; [`sweep_in`] finds it there.
    pub(super) fn create_in(parent: &Path) -> Result<Self> {
        for _ in 0..NAMES_MAX {
            // A predictable name could be taken by another user first.
            let path = parent.join(format!("{PREFIX}{}", names::random()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(cause) => return Err(Error::io("create", &path, &cause).hint("set TMPDIR to another directory")),
            }
            // A concurrent start may mistake it for a leftover; then the next name is tried.
            match lock(&path) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock, gone: false }),
                Ok(None) => {}
                Err(cause) => return Err(Error::io("lock", &path, &cause).hint("set TMPDIR to another directory")),
            }
        }
        Err(Error::machine(format!("no unused directory name is left in {}", parent.display()))
            .hint(format!("remove its directories whose names start with {PREFIX}")))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with its contents. Returns a description of an error.
    pub fn remove(mut self) -> Option<String> {
        self.gone = true;
        std::fs::remove_dir_all(&self.path).err().map(|cause| plain(&cause))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if !self.gone {
            // This runs after an error, so a failure here is not reported; the next start tries again.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Locks a directory; `None` if another process holds the lock, or the directory is gone.
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
    // The previous owner of the lock may have removed the directory.
    let (ours, now) = (folder.metadata()?, std::fs::symlink_metadata(path));
    Ok(now.is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino())).then_some(folder))
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Directories removed.
    pub removed: usize,
    /// Directories that could not be removed, each with its reason.
    pub left: Vec<(PathBuf, String)>,
}

/// The usual parents: the temporary directory, then the one for large data.
pub(super) fn usual_parents() -> Vec<PathBuf> {
    let mut parents = vec![std::env::temp_dir(), PathBuf::from(LARGE)];
    parents.dedup();
    parents
}

/// Removes this user's directories of dead Loadlines from the usual parents.
pub fn sweep() -> Swept {
    let mut all = Swept::default();
    for parent in usual_parents() {
        let swept = sweep_in(&parent);
        all.removed += swept.removed;
        all.left.extend(swept.left);
    }
    all
}

/// Removes such directories from another parent, such as an archive's.
pub fn sweep_in(parent: &Path) -> Swept {
    let mut swept = Swept::default();
    // If a temporary directory cannot be read, the code that needs it reports that.
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
    fn a_work_directory_is_empty_private_and_removed_with_its_contents() {
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
        assert!(two.path().is_dir(), "the target of a removed link must remain");
        drop(two);
        assert_eq!(std::fs::read_dir(parent).unwrap().count(), 0);
    }

    #[test]
    fn only_unlocked_leftover_work_directories_are_removed() {
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
    fn a_vanished_work_directory_is_reported_without_a_panic() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::create_in(parent.path()).unwrap();
        std::fs::remove_dir(folder.path()).unwrap();
        assert_eq!(folder.remove().as_deref(), Some("No such file or directory"));
        let parent = parent.path().join("none");
        assert!(WorkFolder::create_in(&parent).is_err());
        assert_eq!(sweep_in(&parent), Swept::default());
    }
}
