//! Folders of Loadline's own for the time of a recording: mode 0700, removed with what is in them.

use loadline_base::error::{Error, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Gid, Mode, OFlags, Uid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// No other user may put a library or a link into it.
const PRIVATE: Mode = Mode::RWXU;
/// Names that are tried: each that is taken belongs to another Loadline.
const TRIES: u32 = 1000;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether a path can be given to a JVM and to async-profiler as it is: an option of the JVM ends at a space in
/// `JAVA_TOOL_OPTIONS`, a library's path at `=`, and an option of async-profiler at a comma; it replaces `%`.
pub(crate) fn is_plain(path: &Path) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@~:".contains(byte);
    path.is_absolute() && path.as_os_str().as_encoded_bytes().iter().all(plain)
}

/// A folder with files of known names.
#[derive(Debug)]
pub(crate) struct Folder {
    above: OwnedFd,
    itself: OwnedFd,
    name: String,
    path: PathBuf,
    /// The names of the files that are removed.
    files: &'static [&'static str],
    /// User and group of the files.
    owner: (u32, u32),
}

impl Folder {
    /// A new folder in the folder for temporary files, or in `/tmp` where that has a name that options cannot have.
    ///
    /// # Errors
    /// If none can be made.
    pub(crate) fn temporary(files: &'static [&'static str]) -> Result<Self> {
        let chosen = std::env::temp_dir();
        let above = if is_plain(&chosen) { chosen } else { PathBuf::from("/tmp") };
        let made = || -> io::Result<Self> {
            let descriptor = rustix::fs::open(&above, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
            let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            for number in 0..TRIES {
                let name = format!("loadline-profiler-{}-{number}", std::process::id());
                match rustix::fs::mkdirat(&descriptor, &name, PRIVATE) {
                    Err(rustix::io::Errno::EXIST) => {}
                    made => {
                        made?;
                        return Self::open(descriptor, name, above.clone(), files, owner);
                    }
                }
            }
            Err(rustix::io::Errno::EXIST.into())
        };
        made().map_err(|cause| Error::io("make a folder in", &above, &cause))
    }

    /// The folder of this name in another. Takes over one that was left behind, if no other user can have made it and
    /// no living Loadline has it. The folder and its files will be `owner`'s.
    pub(crate) fn taken(
        above: &OwnedFd,
        (name, path): (&str, &Path),
        files: &'static [&'static str],
        owner: (u32, u32),
    ) -> io::Result<Self> {
        match rustix::fs::mkdirat(above, name, PRIVATE) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(cause) => return Err(cause.into()),
        }
        let mut folder = Self::open(above.try_clone()?, name.to_owned(), path.to_owned(), &[], owner)?;
        // Ends with this process, however that ends.
        rustix::fs::flock(&folder.itself, FlockOperation::NonBlockingLockExclusive).map_err(|cause| match cause {
            rustix::io::Errno::WOULDBLOCK => io::Error::other("another Loadline has its files there"),
            cause => cause.into(),
        })?;
        // Not before: the files of the other would go when this fails.
        folder.files = files;
        folder.clear();
        Ok(folder)
    }

    fn open(
        above: OwnedFd,
        name: String,
        path: PathBuf,
        files: &'static [&'static str],
        owner: (u32, u32),
    ) -> io::Result<Self> {
        let itself = rustix::fs::openat(&above, &name, FOLDER, Mode::empty())?;
        let found = rustix::fs::fstat(&itself)?;
        let own = [owner.0, rustix::process::geteuid().as_raw()].contains(&found.st_uid);
        if !own || Mode::from_raw_mode(found.st_mode) != PRIVATE {
            return Err(io::Error::other(format!("a folder {name} of user {} is in the way", found.st_uid)));
        }
        if (found.st_uid, found.st_gid) != owner {
            rustix::fs::fchown(&itself, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)))?;
        }
        let path = path.join(&name);
        Ok(Self { above, itself, name, path, files, owner })
    }

    /// Its path, as the JVM that it was made for names it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.itself, name, flags, Mode::RUSR | Mode::WUSR)?;
        let found = rustix::fs::fstat(&file)?;
        if (found.st_uid, found.st_gid) != self.owner {
            rustix::fs::fchown(&file, Some(Uid::from_raw(self.owner.0)), Some(Gid::from_raw(self.owner.1)))?;
        }
        File::from(file).write_all(bytes)
    }

    /// Opens a file that a JVM has written: a plain one.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.itself, name, flags, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(io::Error::other("it is no plain file")),
        }
    }

    /// The first bytes of a file as text; empty if the file is missing or cannot be read.
    pub(crate) fn text(&self, name: &str, bytes_max: u64) -> String {
        let mut bytes = Vec::new();
        let read = self.file(name).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes));
        read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Removes its files; a missing file does not matter.
    fn clear(&self) {
        for name in self.files {
            let _ = rustix::fs::unlinkat(&self.itself, *name, AtFlags::empty());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.clear();
        // A folder with files of somebody else stays.
        let _ = rustix::fs::unlinkat(&self.above, self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

/// Whether anything has this name.
pub(crate) fn exists(path: &Path) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_temporary_folder_is_private_and_goes() {
        let folder = Folder::temporary(&["a"]).unwrap();
        let path = folder.path().to_owned();
        assert!(is_plain(&path), "{}", path.display());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        folder.write("a", b"text").unwrap();
        assert!(folder.write("a", b"again").is_err());
        assert_eq!(folder.text("a", 3), "tex");
        let other = Folder::temporary(&[]).unwrap();
        assert_ne!(other.path(), path);
        drop(folder);
        assert!(!exists(&path));
    }

    #[test]
    fn a_folder_that_others_may_write_is_not_taken() {
        let above = tempfile::tempdir().unwrap();
        let descriptor = rustix::fs::open(above.path(), FOLDER, Mode::empty()).unwrap();
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let taken = || Folder::taken(&descriptor, ("x", above.path()), &["a"], own);
        std::fs::create_dir(above.path().join("x")).unwrap();
        std::fs::set_permissions(above.path().join("x"), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(taken().is_err());
        std::fs::set_permissions(above.path().join("x"), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::write(above.path().join("x/a"), "left behind").unwrap();
        let folder = taken().unwrap();
        assert_eq!(folder.text("a", 10), "");
        folder.write("a", b"mine").unwrap();
        let why = taken().unwrap_err().to_string();
        assert_eq!((why.as_str(), folder.text("a", 10).as_str()), ("another Loadline has its files there", "mine"));
        std::fs::write(above.path().join("x/b"), "of somebody").unwrap();
        drop(folder);
        assert!(exists(&above.path().join("x/b")));
    }

    #[test]
    fn paths_that_options_cannot_have() {
        for plain in ["/tmp/x", "/home/a.b/c_d-e+1/lib.so", "/tmp/x@2"] {
            assert!(is_plain(Path::new(plain)), "{plain}");
        }
        for other in ["tmp", "/a b", "/a,b", "/a=b", "/a%p", "/a\nb", "/ä", "/a'b", "/a\"b", "/a*"] {
            assert!(!is_plain(Path::new(other)), "{other}");
        }
    }
}
