//! A file that is appended in complete pieces. A failed piece is removed, so that it takes up no space on a full disk
//! and can be retried.

use crate::error::{Error, Result};
use crate::kernel::private_file;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::PathBuf;

#[derive(Debug)]
pub(super) struct WholeFile {
    path: PathBuf,
    file: File,
    whole_bytes: u64,
}

impl WholeFile {
    /// Creates or truncates the file, accessible only to this user.
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let file = private_file::create(&path).map_err(|cause| Error::io("create", &path, &cause))?;
        Ok(Self::begin(path, file))
    }

    pub(super) fn begin(path: PathBuf, file: File) -> Self {
        Self { path, file, whole_bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole_bytes == 0
    }

    /// Appends the output of `write`. A partial piece that cannot be removed stays; readers skip it.
    pub(super) fn append(&mut self, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
        let done = match write(&self.file) {
            Ok(()) => self.file.stream_position().map(|end| self.whole_bytes = end),
            Err(cause) => self.cut().and(Err(cause)),
        };
        done.map_err(|cause| self.error(&cause))
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.whole_bytes = 0;
        self.cut()
    }

    pub(super) fn error(&self, cause: &io::Error) -> Error {
        Error::io("write", &self.path, cause)
    }

    fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.whole_bytes)?;
        (&self.file).seek(SeekFrom::Start(self.whole_bytes)).map(drop)
    }
}
