//! Files that one process at a time has to itself: flock(2).

use std::fs::{File, TryLockError};
use std::ops::{Deref, DerefMut};

/// A file that others find locked until it is dropped.
///
/// Dropping unlocks the file before it is closed. Closing alone would not release the lock, which belongs to all who
/// have the file open. A child that another thread starts at that moment has it open too, until its `exec`.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Locks a file.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it; `Error` if the file system has no locks, as with some NFS mounts.
    pub fn new(file: File) -> Result<Self, TryLockError> {
        file.try_lock().map(|()| Self(file))
    }

    /// Locks a file. A file that cannot be locked at all is taken unlocked. `None` if another process has the lock.
    pub fn unless_taken(file: File) -> Option<Self> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Ok(()) | Err(TryLockError::Error(_)) => Some(Self(file)),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A file system without locks has no lock to release.
        let _ = self.0.unlock();
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_though_another_has_the_file_open() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let open = || File::options().create(true).truncate(false).write(true).open(&path).unwrap();
        let first = Locked::new(open()).unwrap();
        let as_in_a_child = first.try_clone().unwrap();
        assert!(matches!(Locked::new(open()), Err(TryLockError::WouldBlock)));
        assert!(Locked::unless_taken(open()).is_none());
        drop(first);
        assert!(Locked::unless_taken(open()).is_some());
        drop(as_in_a_child);
    }
}
