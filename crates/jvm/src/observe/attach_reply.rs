//! Reads the answer to an attach command as it comes: 64 KiB at a time, and nothing else is done between two reads, for
//! a JVM may print the answer while the command runs (JDK 25) and then waits for its reader, wherever it is.
//!
//! An answer that is late or too large ends the connection, not the JVM: its next write fails, it leaves out the rest
//! and listens again.

use loadline_base::clock::Clock;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The largest answer known, `Thread.print` of 10,000 threads, is about 10 MiB.
pub(super) const REPLY_BYTES_MAX: usize = 64 << 20;
/// Several times what a socket of the JVM holds (208 KiB) in few reads, and a small part of a processor's cache.
const READ_BYTES: usize = 64 << 10;

/// Until when a reply is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) end: Duration,
    /// The time from the question to `end`, for the message.
    pub(super) within: Duration,
    pub(super) clock: Clock,
}

/// Reads up to the end of the stream.
///
/// # Errors
/// Fails if the reply is late or larger than [`REPLY_BYTES_MAX`].
pub(super) fn drain(stream: &mut UnixStream, deadline: Deadline) -> io::Result<Vec<u8>> {
    let mut reply = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let left = deadline.end.saturating_sub(deadline.clock.now());
        if left.is_zero() {
            return Err(late(deadline, reply.len()));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(reply),
            Ok(n) => reply.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(late(deadline, reply.len())),
            Err(e) => return Err(e),
        }
        if reply.len() > REPLY_BYTES_MAX {
            return Err(io::Error::other(format!("the answer is larger than {} MiB", REPLY_BYTES_MAX >> 20)));
        }
    }
}

fn late(deadline: Deadline, bytes: usize) -> io::Error {
    let seconds = deadline.within.as_secs_f64();
    let why = match bytes {
        0 => format!("no answer within {seconds} s"),
        _ => format!("the answer did not end within {seconds} s, after {bytes} bytes"),
    };
    io::Error::new(io::ErrorKind::TimedOut, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::thread::{JoinHandle, sleep, spawn};

    /// Far more than any test here takes.
    const LONG: Duration = Duration::from_secs(60);
    const BRIEF: Duration = Duration::from_millis(200);

    /// Runs a made-up JVM on its end of the connection; returns the answer as it was read, and the JVM's thread.
    fn answered<T: Send + 'static>(
        within: Duration,
        jvm: impl FnOnce(UnixStream) -> T + Send + 'static,
    ) -> (io::Result<Vec<u8>>, JoinHandle<T>) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let jvm = spawn(move || jvm(theirs));
        let clock = Clock::start();
        let read = drain(&mut ours, Deadline { end: clock.now() + within, within, clock });
        // Our end of the connection is closed here.
        (read, jvm)
    }

    /// Writes until the connection is gone; how much.
    fn write_on(mut stream: UnixStream, piece: &[u8], pause: Duration) -> usize {
        let mut written = 0;
        while stream.write_all(piece).is_ok() {
            written += piece.len();
            sleep(pause);
        }
        written
    }

    #[test]
    fn an_answer_in_pieces_is_read_whole() {
        let (read, jvm) = answered(LONG, |mut stream| {
            for piece in ["0", "\n", "Java ", "HotSpot", "\n"] {
                stream.write_all(piece.as_bytes()).unwrap();
                sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(read.unwrap(), b"0\nJava HotSpot\n");
        jvm.join().unwrap();
    }

    #[test]
    fn a_large_answer_in_single_words_is_read_whole() {
        let (read, jvm) = answered(LONG, |mut stream| {
            (0..100_000).for_each(|_| stream.write_all(b"0x00007f ").unwrap());
        });
        assert_eq!(read.unwrap().len(), 900_000);
        jvm.join().unwrap();
    }

    #[test]
    fn one_that_never_ends_is_given_up_and_the_jvm_goes_on() {
        for pause in [Duration::ZERO, Duration::from_millis(1)] {
            let (read, jvm) = answered(BRIEF, move |stream| write_on(stream, b"word ", pause));
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
            // It ends because its writes fail.
            jvm.join().unwrap();
        }
    }

    #[test]
    fn one_that_is_too_large_is_given_up_and_the_jvm_goes_on() {
        let (read, jvm) = answered(LONG, |stream| write_on(stream, &[b'x'; 1 << 20], Duration::ZERO));
        assert_eq!(read.unwrap_err().to_string(), "the answer is larger than 64 MiB");
        assert!(jvm.join().unwrap() >= REPLY_BYTES_MAX);
    }

    #[test]
    fn one_that_stops_in_the_middle_is_given_up() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let clock = Clock::start();
        for (sent, why) in
            [("", "no answer within 0.2 s"), ("0\nhalf", "the answer did not end within 0.2 s, after 6 bytes")]
        {
            theirs.write_all(sent.as_bytes()).unwrap();
            let deadline = Deadline { end: clock.now() + BRIEF, within: BRIEF, clock };
            assert_eq!(drain(&mut ours, deadline).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn one_that_ends_early_is_what_came() {
        for sent in ["", "0", "0\nhalf"] {
            let (read, jvm) = answered(LONG, move |mut stream| stream.write_all(sent.as_bytes()).unwrap());
            assert_eq!(read.unwrap(), sent.as_bytes());
            jvm.join().unwrap();
        }
    }
}
