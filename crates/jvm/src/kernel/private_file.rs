//! Files that only this user may read: they hold what a server printed and what a command line says, passwords too.
//! A umask may take more away from these modes, and gives nothing back.
//!
//! A name in a folder that others can write may be taken already: by a link that leads elsewhere, or by a pipe whose
//! opening never ends.

use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// A pipe that has no other end, and a device that is not there, keep no opening waiting.
const AT_ONCE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// How a file is opened for writing: no link is followed, and a new file is this user's alone.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE_MODE).custom_flags(AT_ONCE.union(OFlags::NOFOLLOW).bits() as i32);
    options
}

/// Creates a plain file, or empties it.
///
/// # Errors
/// If it cannot be written, or the name is taken by something else.
pub fn create(path: &Path) -> io::Result<File> {
    plain(options().create(true).truncate(true).open(path)?)
}

/// Writes a file that other programs see as a whole or not at all: first as `part`, which then takes its name.
///
/// # Errors
/// If it cannot be written; then nothing is left of `part`.
pub fn replace(path: &Path, part: &Path, bytes: &[u8]) -> io::Result<()> {
    // An earlier call may have been killed and left `part`. If it cannot be removed, the next line fails and says so.
    let _ = std::fs::remove_file(part);
    let mut file = options().create_new(true).open(part)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(part, path));
    written.inspect_err(|_| {
        // The error that led here is the one to report.
        let _ = std::fs::remove_file(part);
    })
}

/// Creates a folder that the user chose, with those above it, or takes the one that is there or that a link leads to.
///
/// # Errors
/// If it cannot be created, or something else has its name.
pub fn create_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a folder whose name Loadline chose, or takes the one that is there, unless a link leads to it.
///
/// # Errors
/// If it cannot be created, or something else has its name.
pub fn create_folder(path: &Path) -> io::Result<()> {
    create_folders(path)?;
    match std::fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("it is a link, which may lead anywhere")),
    }
}

/// Opens a plain file for reading, which a link may lead to.
///
/// # Errors
/// If it cannot be read, or is no plain file.
pub fn open(path: &Path) -> io::Result<File> {
    plain(OpenOptions::new().read(true).custom_flags(AT_ONCE.bits() as i32).open(path)?)
}

fn plain(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no plain file")),
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
    fn no_other_user_reads_what_is_created() {
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
    fn a_name_that_is_taken_leads_nowhere_and_does_not_block() {
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
        // The whole file replaces whatever has its name, and a left-over part is replaced as well.
        replace(&at("link"), &at("pipe"), b"new").unwrap();
        assert_eq!(["victim", "link"].map(|name| fs::read(at(name)).unwrap()), [&b"dear"[..], b"new"]);
        assert!(!at("pipe").exists());
    }
}
