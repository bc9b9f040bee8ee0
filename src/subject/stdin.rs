//! The subject's stdin. A subject that waits at its markers gets a pipe through which Loadline lets it continue.
//! Others, such as servers, get an empty stdin.
//!
//! The read end is passed as the guardian's otherwise unused stdout, and from there to the launcher, because only
//! standard streams survive an exec by default.

use crate::error::{Error, Result, plain};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;

/// The line that lets the subject continue.
const GO: &[u8] = b"go\n";

/// The write end. Dropping it closes the subject's stdin.
#[derive(Debug)]
pub(super) struct Stdin {
    pipe: PipeWriter,
}

impl Stdin {
    /// Opens a pipe; returns its read end and `Self`. Writes never block, even if the subject does not read. Errors:
    /// `Machine` if no pipe can be opened.
    pub(super) fn open() -> Result<(PipeReader, Self)> {
        let failed = |cause: std::io::Error| Error::machine(format!("cannot open a pipe: {}", plain(&cause)));
        let (read, pipe) = std::io::pipe().map_err(failed)?;
        let flags = rustix::fs::fcntl_getfl(pipe.as_fd()).map_err(|cause| failed(cause.into()))?;
        rustix::fs::fcntl_setfl(pipe.as_fd(), flags | rustix::fs::OFlags::NONBLOCK)
            .map_err(|cause| failed(cause.into()))?;
        Ok((read, Self { pipe }))
    }

    /// Lets the subject continue. Ignores a subject that closed its stdin, or whose pipe is full because it does not
    /// read.
    pub(super) fn go(&mut self) {
        let _ = self.pipe.write_all(GO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn writing_to_a_subject_that_never_reads_does_not_block() {
        let (mut read, mut stdin) = Stdin::open().unwrap();
        for _ in 0..100_000 {
            stdin.go();
        }
        drop(stdin);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("go\ngo\n"), "{}", text.len());
    }

    #[test]
    fn writing_to_a_closed_stdin_does_not_fail() {
        let (read, mut stdin) = Stdin::open().unwrap();
        drop(read);
        stdin.go();
    }
}
