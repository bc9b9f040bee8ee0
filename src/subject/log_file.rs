//! A size-limited copy of the subject's output on disk.

use crate::error::{Error, Result};
use crate::kernel::private_file;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// More than any user reads, and small enough for a nearly full disk.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// A log that accepts bytes until it is full or fails.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: Option<File>,
    room: u64,
}

impl LogFile {
    /// Creates or truncates the file, accessible only to this user.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = private_file::create(path).map_err(|cause| Error::io("create", path, &cause))?;
        Ok(Self::of(path, file))
    }

    pub(super) fn of(path: &Path, file: File) -> Self {
        Self { path: path.to_path_buf(), file: Some(file), room: LOG_BYTES_MAX }
    }

    /// Writes what still fits. Returns the first error, then ignores further output.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let fitting = usize::try_from(self.room).map_or(bytes.len(), |room| room.min(bytes.len()));
        self.room -= fitting as u64;
        let mut outcome = file.write_all(&bytes[..fitting]);
        let full = fitting < bytes.len();
        if full && outcome.is_ok() {
            let mib = LOG_BYTES_MAX >> 20;
            outcome = writeln!(file, "\n[loadline: the log ends here, at its maximum of {mib} MiB]");
        }
        if full || outcome.is_err() {
            self.file = None;
        }
        outcome.map_err(|cause| Error::io("write", &self.path, &cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_ends_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = LogFile::create(&path).unwrap();
        log.room = 5;
        for piece in [&b"abc"[..], b"defgh", b"more"] {
            log.write(piece).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "abcde\n[loadline: the log ends here, at its maximum of 64 MiB]\n");
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "only the owner may read a server's output: {mode:o}");
    }

    #[test]
    fn a_missing_log_directory_is_named() {
        let error = LogFile::create(Path::new("/no/such/folder/log")).unwrap_err();
        assert_eq!(error.what, "cannot create /no/such/folder/log: No such file or directory");
    }
}
