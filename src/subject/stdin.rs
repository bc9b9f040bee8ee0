//! The standard input of a subject. A subject that waits at its markers gets a pipe, by which Loadline lets it go on.
//! All others get an empty stdin, as servers do.
//!
//! The read end goes to the guardian as its standard output, which the guardian does not use otherwise, and from there
//! to the launcher. Standard streams are the only descriptors that outlive an exec without further ado.

use crate::error::{Error, Result, plain};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;

/// The line that lets it go on.
const GO: &[u8] = b"go\n";

/// The end that is written. Dropping it ends the subject's stdin.
#[derive(Debug)]
pub(super) struct Stdin {
    pipe: PipeWriter,
}

impl Stdin {
    /// Opens a pipe and returns its read end, and this one. Writing never blocks, whether or not the subject reads.
    ///
    /// # Errors
    /// `Machine` where no pipe can be opened.
    pub(super) fn open() -> Result<(PipeReader, Self)> {
        let failed = |cause: std::io::Error| Error::machine(format!("cannot open a pipe: {}", plain(&cause)));
        let (read, pipe) = std::io::pipe().map_err(failed)?;
        let flags = rustix::fs::fcntl_getfl(pipe.as_fd()).map_err(|cause| failed(cause.into()))?;
        rustix::fs::fcntl_setfl(pipe.as_fd(), flags | rustix::fs::OFlags::NONBLOCK)
            .map_err(|cause| failed(cause.into()))?;
        Ok((read, Self { pipe }))
    }

    /// Tells it to go on. A subject that has closed its stdin, or never reads and so left it full, does not need it.
    pub(super) fn go(&mut self) {
        let _ = self.pipe.write_all(GO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn telling_one_that_never_reads_does_not_block() {
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
    fn telling_one_that_closed_it_is_no_harm() {
        let (read, mut stdin) = Stdin::open().unwrap();
        drop(read);
        stdin.go();
    }
}
