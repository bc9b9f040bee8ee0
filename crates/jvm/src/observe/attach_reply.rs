//! Reads the reply to an attach command as it arrives, 64 KiB at a time, with no other work between reads. The JVM may
//! send the reply while the command runs (JDK 25) and then blocks until it is read, even in a safepoint.
//!
//! A late or oversized reply ends the connection, not the JVM: its next write fails, it drops the rest, and it listens
//! again.

use loadline_base::clock::Clock;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The largest known reply, `Thread.print` of 10,000 threads, is about 10 MiB.
pub(super) const REPLY_BYTES_MAX: usize = 64 << 20;
/// Empties the JVM's socket buffer (208 KiB) in a few reads, and is small compared to a CPU cache.
const READ_BYTES: usize = 64 << 10;

/// When to stop waiting for a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) end: Duration,
    /// The time from the request to `end`, for the message.
    pub(super) within: Duration,
    pub(super) clock: Clock,
}

/// Reads up to the end of the stream. Fails if the reply is late or larger than [`REPLY_BYTES_MAX`].
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
            return Err(io::Error::other(format!("the response is larger than {} MiB", REPLY_BYTES_MAX >> 20)));
        }
    }
}

fn late(deadline: Deadline, bytes: usize) -> io::Error {
    let seconds = deadline.within.as_secs_f64();
    let why = match bytes {
        0 => format!("no response within {seconds} s"),
        _ => format!("the response did not end within {seconds} s, after {bytes} bytes"),
    };
    io::Error::new(io::ErrorKind::TimedOut, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::thread::{JoinHandle, sleep, spawn};

    /// Far longer than any of these tests.
    const LONG: Duration = Duration::from_secs(60);
    const BRIEF: Duration = Duration::from_millis(200);

    /// Runs a simulated JVM on its end of the connection; returns the reply as read, and the JVM's thread.
    fn answered<T: Send + 'static>(
        within: Duration,
        jvm: impl FnOnce(UnixStream) -> T + Send + 'static,
    ) -> (io::Result<Vec<u8>>, JoinHandle<T>) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let jvm = spawn(move || jvm(theirs));
        let clock = Clock::start();
        let read = drain(&mut ours, Deadline { end: clock.now() + within, within, clock });
        // Our end of the connection closes here.
        (read, jvm)
    }

    /// Writes until the connection is closed; returns the number of bytes.
    fn write_on(mut stream: UnixStream, piece: &[u8], pause: Duration) -> usize {
        let mut written = 0;
        while stream.write_all(piece).is_ok() {
            written += piece.len();
            sleep(pause);
        }
        written
    }

    #[test]
    fn a_reply_in_pieces_is_read_completely() {
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
    fn a_large_reply_in_single_words_is_read_completely() {
        let (read, jvm) = answered(LONG, |mut stream| {
            (0..100_000).for_each(|_| stream.write_all(b"0x00007f ").unwrap());
        });
        assert_eq!(read.unwrap().len(), 900_000);
        jvm.join().unwrap();
    }

    #[test]
    fn an_endless_reply_is_abandoned_and_the_jvm_continues() {
        for pause in [Duration::ZERO, Duration::from_millis(1)] {
            let (read, jvm) = answered(BRIEF, move |stream| write_on(stream, b"word ", pause));
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
            // It ends because its writes fail.
            jvm.join().unwrap();
        }
    }

    #[test]
    fn an_oversized_reply_is_abandoned_and_the_jvm_continues() {
        let (read, jvm) = answered(LONG, |stream| write_on(stream, &[b'x'; 1 << 20], Duration::ZERO));
        assert_eq!(read.unwrap_err().to_string(), "the response is larger than 64 MiB");
        assert!(jvm.join().unwrap() >= REPLY_BYTES_MAX);
    }

    #[test]
    fn a_stalled_reply_is_abandoned() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let clock = Clock::start();
        for (sent, why) in
            [("", "no response within 0.2 s"), ("0\nhalf", "the response did not end within 0.2 s, after 6 bytes")]
        {
            theirs.write_all(sent.as_bytes()).unwrap();
            let deadline = Deadline { end: clock.now() + BRIEF, within: BRIEF, clock };
            assert_eq!(drain(&mut ours, deadline).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn a_short_reply_is_returned_as_received() {
        for sent in ["", "0", "0\nhalf"] {
            let (read, jvm) = answered(LONG, move |mut stream| stream.write_all(sent.as_bytes()).unwrap());
            assert_eq!(read.unwrap(), sent.as_bytes());
            jvm.join().unwrap();
        }
    }
}
