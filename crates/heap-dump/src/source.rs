//! The dump file, read front to back through one buffer. Nothing else in this crate reads the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The maximum size of one read: a class with 65,535 fields of eight bytes, and its superclasses.
pub(crate) const PIECE_MAX: usize = 1 << 20;

/// A position in a file, with the bytes that follow it.
pub(crate) struct Source<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// The next byte and the end, within `buffer`.
    at: usize,
    filled: usize,
    /// The offset of `buffer` in the file.
    begins: u64,
    length: u64,
}

impl<'a> Source<'a> {
    /// Starts at the beginning. Reads up to `length` even if the file grows in the meantime.
    pub(crate) fn new(file: &'a File, length: u64) -> Self {
        Self { file, buffer: vec![0; PIECE_MAX * 2], at: 0, filled: 0, begins: 0, length }
    }

    /// The offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.begins + self.at as u64
    }

    /// The length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The next `count` bytes; an `UnexpectedEof` error if the file has fewer.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.filled - self.at < count {
            self.fill(count)?;
        }
        self.at += count;
        Ok(&self.buffer[self.at - count..self.at])
    }

    /// Skips forward, at no cost beyond the buffer. The caller has checked that the file is long enough.
    pub(crate) fn skip(&mut self, count: u64) {
        if count <= (self.filled - self.at) as u64 {
            self.at += count as usize;
        } else {
            self.begins = self.position().saturating_add(count);
            (self.at, self.filled) = (0, 0);
        }
    }

    #[cold]
    fn fill(&mut self, count: usize) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.begins += self.at as u64;
        (self.at, self.filled) = (0, self.filled - self.at);
        while self.filled < count {
            let left = self.length.saturating_sub(self.begins + self.filled as u64);
            let room = (self.buffer.len() - self.filled).min(usize::try_from(left).unwrap_or(usize::MAX));
            let read =
                match self.file.read_at(&mut self.buffer[self.filled..][..room], self.begins + self.filled as u64) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read?,
                };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.filled += read;
        }
        Ok(())
    }
}
