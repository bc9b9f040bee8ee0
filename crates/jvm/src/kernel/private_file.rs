//! Files that only this user may read, because they contain server output and command lines, possibly with passwords. A
//! umask can only restrict these modes further.
//!
//! In a directory that others can write to, a name may already be taken by a link that leads elsewhere, or by a pipe on
//! which `open` blocks forever.

use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// A pipe without a reader, or a missing device, must not block `open`.
const AT_ONCE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Options for writing: no link is followed, and a new file is private to this user.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE_MODE).custom_flags(AT_ONCE.union(OFlags::NOFOLLOW).bits() as i32);
    options
}

/// Creates or truncates a regular file. Fails if it cannot be written, or the name belongs to something else.
pub fn create(path: &Path) -> io::Result<File> {
    plain(options().create(true).truncate(true).open(path)?)
}

/// Writes a file atomically: first as `part`, which is then renamed. Fails if it cannot be written, and then removes
/// `part`.
pub fn replace(path: &Path, part: &Path, bytes: &[u8]) -> io::Result<()> {
    // An interrupted call may have left `part`. If it cannot be removed, the next line fails and reports that.
    let _ = std::fs::remove_file(part);
    let mut file = options().create_new(true).open(part)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(part, path));
    written.inspect_err(|_| {
        // The earlier error is the one to report.
        let _ = std::fs::remove_file(part);
    })
}

/// Creates a directory that the user chose, with its parents, or uses the existing one, even through a link. Fails if
/// it cannot be created, or the name belongs to something else.
pub fn create_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a directory whose name Loadline chose, or uses the existing one, unless it is a link. Fails if it cannot be
/// created, or the name belongs to something else.
pub fn create_folder(path: &Path) -> io::Result<()> {
    create_folders(path)?;
    match std::fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("it is a symbolic link, which can point anywhere")),
    }
}

/// Opens a regular file for reading, even through a link. Fails if it cannot be read, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    plain(OpenOptions::new().read(true).custom_flags(AT_ONCE.bits() as i32).open(path)?)
}

fn plain(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn created_files_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        create_folders(&below).unwrap();
        create_folder(&below).unwrap();
        let file = below.join("file");
        create(&file).unwrap().write_all(b"old").unwrap();
        replace(&file, &below.join("part"), b"new").unwrap();
        for (path, at_most) in [(folder.path().join("a"), 0o700), (below, 0o700), (file.clone(), 0o600)] {
            assert_eq!(mode(&path) & !at_most, 0, "{}", path.display());
        }
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_taken_name_is_not_followed_and_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "dear").unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        symlink(at("victim"), at("link")).unwrap();
        symlink(at("elsewhere"), at("folder")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        for name in ["link", "pipe"] {
            assert!(create(&at(name)).is_err(), "{name}");
        }
        assert!(open(&at("pipe")).is_err() && open(&at("link")).is_ok() && open(&at("elsewhere")).is_err());
        assert!(create_folder(&at("folder")).is_err() && create_folders(&at("folder")).is_ok());
        // The new file replaces whatever has its name, including a leftover part.
        replace(&at("link"), &at("pipe"), b"new").unwrap();
        assert_eq!(["victim", "link"].map(|name| fs::read(at(name)).unwrap()), [&b"dear"[..], b"new"]);
        assert!(!at("pipe").exists());
    }
}
