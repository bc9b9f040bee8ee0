//! Files that one process uses exclusively at a time: flock(2).

use std::fs::{File, TryLockError};
use std::ops::{Deref, DerefMut};

/// A file that is locked until this value is dropped.
///
/// Dropping unlocks the file before closing it. Closing alone would not release the lock, because every process that
/// has the file open shares it. A child process that another thread starts at that moment also has it open, until its
/// `exec`.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Locks a file. Errors: `WouldBlock` if another process holds the lock; `Error` if the file system does not
    /// support locks, as with some NFS mounts.
    pub fn new(file: File) -> Result<Self, TryLockError> {
        file.try_lock().map(|()| Self(file))
    }

    /// Locks a file; uses it unlocked if locks are not supported. `None` if another process holds the lock.
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
    fn a_lock_ends_even_if_another_has_the_file_open() {
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
