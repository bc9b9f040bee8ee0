//! Loadline's own directories for files that a JVM loads or writes: mode 0700, removed with their contents.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prevents other users from putting a library, a jar, or a link into the directory.
const PRIVATE: Mode = Mode::RWXU;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A user id and a group id.
pub type FileOwner = (u32, u32);

/// The user and group of this process.
pub fn own_user() -> FileOwner {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Opens a directory in which other directories can then be created. Fails if it cannot be read, or is not a directory.
pub fn open_above(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?)
}

/// A directory with files of known names.
#[derive(Debug)]
pub struct OwnFolder {
    above: OwnedFd,
    itself: OwnedFd,
    name: String,
    path: PathBuf,
    files: &'static [&'static str],
    /// User and group of the files.
    owner: FileOwner,
}

impl OwnFolder {
    /// A new directory with this name in another, whose path is `path`. Fails if the name is taken, or the directory
    /// cannot be created.
    pub fn create(
        above: &OwnedFd,
        (name, path): (&str, &Path),
        files: &'static [&'static str],
        owner: FileOwner,
    ) -> io::Result<Self> {
        rustix::fs::mkdirat(above, name, PRIVATE)?;
        Self::open(above, (name, path), files, owner)
    }

    /// The directory with this name in another. Takes over a leftover one, if no other user can have created it and no
    /// running Loadline holds it. `owner` becomes the owner of the directory and its files. Fails if the directory
    /// belongs to someone else, or cannot be created.
    pub fn taken(
        above: &OwnedFd,
        (name, path): (&str, &Path),
        files: &'static [&'static str],
        owner: FileOwner,
    ) -> io::Result<Self> {
        match rustix::fs::mkdirat(above, name, PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause.into()),
        }
        let mut folder = Self::open(above, (name, path), &[], owner)?;
        // The lock is released when this process ends, however it ends.
        rustix::fs::flock(&folder.itself, FlockOperation::NonBlockingLockExclusive).map_err(|cause| match cause {
            Errno::WOULDBLOCK => io::Error::other("another Loadline process is using this directory"),
            cause => cause.into(),
        })?;
        // Set only now: an earlier failure would remove the other process's files.
        folder.files = files;
        folder.clear();
        Ok(folder)
    }

    fn open(
        above: &OwnedFd,
        (name, path): (&str, &Path),
        files: &'static [&'static str],
        owner: FileOwner,
    ) -> io::Result<Self> {
        let itself = rustix::fs::openat(above, name, FOLDER, Mode::empty())?;
        let found = rustix::fs::fstat(&itself)?;
        let own = [owner.0, own_user().0].contains(&found.st_uid);
        if !own || Mode::from_raw_mode(found.st_mode) != PRIVATE {
            return Err(io::Error::other(format!(
                "the directory {name}, owned by user {}, is in the way",
                found.st_uid
            )));
        }
        give(&itself, owner)?;
        Ok(Self { above: above.try_clone()?, itself, name: name.to_owned(), path: path.join(name), files, owner })
    }

    /// Its path in the mount namespace of its JVM.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file. Fails if the name exists, or the file cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.itself, name, flags, Mode::RUSR | Mode::WUSR)?;
        give(&file, self.owner)?;
        File::from(file).write_all(bytes)
    }

    /// Opens a file that a JVM has written. Fails if it does not exist, or is not a regular file.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.itself, name, flags, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Removes a file; ignores a missing one.
    pub fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.itself, name, AtFlags::empty());
    }

    fn clear(&self) {
        self.files.iter().for_each(|name| self.remove(name));
    }
}

impl AsFd for OwnFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.itself.as_fd()
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        self.clear();
        // A directory with someone else's files stays.
        let _ = rustix::fs::unlinkat(&self.above, self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

/// Gives a file to its owner, unless it already belongs to that user.
fn give(file: &OwnedFd, owner: FileOwner) -> io::Result<()> {
    let found = rustix::fs::fstat(file)?;
    if (found.st_uid, found.st_gid) != owner {
        rustix::fs::fchown(file, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_writable_by_others_is_rejected() {
        let above = tempfile::tempdir().unwrap();
        let descriptor = open_above(above.path()).unwrap();
        let taken = || OwnFolder::taken(&descriptor, ("x", above.path()), &["a"], own_user());
        let text = |folder: &OwnFolder| folder.file("a").and_then(io::read_to_string).ok();
        std::fs::create_dir(above.path().join("x")).unwrap();
        std::fs::set_permissions(above.path().join("x"), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(taken().unwrap_err().to_string().contains("is in the way"));
        std::fs::set_permissions(above.path().join("x"), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::write(above.path().join("x/a"), "left behind").unwrap();
        let folder = taken().unwrap();
        assert_eq!(text(&folder), None);
        folder.write("a", b"mine").unwrap();
        assert!(folder.write("a", b"again").is_err());
        let why = taken().unwrap_err().to_string();
        assert_eq!(
            (why.as_str(), text(&folder).as_deref()),
            ("another Loadline process is using this directory", Some("mine"))
        );
        std::fs::write(above.path().join("x/b"), "of somebody").unwrap();
        drop(folder);
        assert!(!above.path().join("x/a").exists() && above.path().join("x/b").exists());
    }

    #[test]
    fn only_regular_files_are_read() {
        let above = tempfile::tempdir().unwrap();
        let descriptor = open_above(above.path()).unwrap();
        let folder = OwnFolder::create(&descriptor, ("x", above.path()), &["a", "fifo"], own_user()).unwrap();
        std::os::unix::fs::symlink("/proc/self/status", folder.path().join("a")).unwrap();
        rustix::fs::mknodat(&folder, "fifo", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(folder.file("a").is_err() && folder.file("fifo").is_err());
        drop(folder);
        assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 0);
    }
}
