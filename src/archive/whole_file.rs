//! A file that grows by whole pieces: a piece is there as a whole or not at all, so that a full disk is left as full as
//! it was, and the piece can be tried again.

use crate::error::{Error, Result};
use crate::kernel::private_file;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::PathBuf;

/// The file, with the length of its whole pieces.
#[derive(Debug)]
pub(super) struct WholeFile {
    path: PathBuf,
    file: File,
    whole_bytes: u64,
}

impl WholeFile {
    /// Creates the file for this user alone, or empties it.
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let file = private_file::create(&path).map_err(|cause| Error::io("create", &path, &cause))?;
        Ok(Self::begin(path, file))
    }

    /// Begins in an empty file.
    pub(super) fn begin(path: PathBuf, file: File) -> Self {
        Self { path, file, whole_bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole_bytes == 0
    }

    /// Appends what `write` writes. A cut piece that cannot be undone stays, and readers pass over it.
    pub(super) fn append(&mut self, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
        let done = match write(&self.file) {
            Ok(()) => self.file.stream_position().map(|end| self.whole_bytes = end),
            Err(cause) => self.cut().and(Err(cause)),
        };
        done.map_err(|cause| self.error(&cause))
    }

    /// Removes all pieces.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.whole_bytes = 0;
        self.cut()
    }

    /// The error of a write that failed.
    pub(super) fn error(&self, cause: &io::Error) -> Error {
        Error::io("write", &self.path, cause)
    }

    fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.whole_bytes)?;
        (&self.file).seek(SeekFrom::Start(self.whole_bytes)).map(drop)
    }
}
