//! Connects h2, which needs a reader and a writer, to the engine, which reads and writes the link itself. No waker is
//! called: the engine polls h2 after each change of the pipe.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes waiting for the socket before h2 must wait. This is enough for several DATA frames of the usual 16 KiB
/// per send, yet a thousand stuck connections hold only tens of MiB.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// One end is for h2, the other for the engine.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe(Rc<RefCell<Bytes>>);

/// The pending bytes of both directions.
#[derive(Debug, Default)]
struct Bytes {
    /// From the server: lent by the engine, or the rest that h2 did not take.
    inbound: Vec<u8>,
    inbound_from: usize,
    inbound_to: usize,
    /// To the server; the first bytes are already written.
    outbound: Vec<u8>,
    outbound_from: usize,
    /// h2 wanted to write but had to wait.
    refused: bool,
}

impl Pipe {
    /// Lends h2 the first bytes of a buffer until [`Pipe::give_back`]. Nothing may be left over from an earlier buffer.
    pub(super) fn lend(&self, buffer: &mut Vec<u8>, length: usize) {
        let mut bytes = self.0.borrow_mut();
        mem::swap(&mut bytes.inbound, buffer);
        (bytes.inbound_from, bytes.inbound_to) = (0, length);
    }

    /// Returns the buffer and keeps whatever h2 has not read, usually nothing.
    pub(super) fn give_back(&self, buffer: &mut Vec<u8>) {
        let mut bytes = self.0.borrow_mut();
        mem::swap(&mut bytes.inbound, buffer);
        let left = bytes.inbound_from..bytes.inbound_to;
        bytes.inbound.clear();
        bytes.inbound.extend_from_slice(&buffer[left]);
        (bytes.inbound_from, bytes.inbound_to) = (0, bytes.inbound.len());
    }

    /// Whether h2 has left data unread, because it does not read while it cannot write.
    pub(super) fn has_unread(&self) -> bool {
        let bytes = self.0.borrow();
        bytes.inbound_from < bytes.inbound_to
    }

    /// Passes the bytes for the server to `write`, which returns how many it took; returns 0 if there are none.
    pub(super) fn write_out<E>(&self, write: impl FnOnce(&[u8]) -> Result<usize, E>) -> Result<usize, E> {
        let mut bytes = self.0.borrow_mut();
        let written = write(&bytes.outbound[bytes.outbound_from..])?;
        bytes.outbound_from += written;
        if bytes.outbound_from == bytes.outbound.len() {
            bytes.outbound.clear();
            bytes.outbound_from = 0;
        }
        Ok(written)
    }

    /// Whether no bytes are waiting to be sent to the server.
    pub(super) fn is_written(&self) -> bool {
        self.0.borrow().outbound.is_empty()
    }

    /// Whether h2 had to wait and can now continue; true only once per wait.
    pub(super) fn take_room(&self) -> bool {
        let mut bytes = self.0.borrow_mut();
        bytes.outbound.is_empty() && mem::take(&mut bytes.refused)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut bytes = self.0.borrow_mut();
        let left = &bytes.inbound[bytes.inbound_from..bytes.inbound_to];
        if left.is_empty() {
            return Poll::Pending;
        }
        let taken = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..taken]);
        bytes.inbound_from += taken;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut bytes = self.0.borrow_mut();
        // Bytes already written need no room: they leave the buffer with the next send.
        let mut room = WAITING_BYTES_MAX.saturating_sub(bytes.outbound.len());
        let mut taken = 0;
        for buffer in buffers {
            let piece = &buffer[..buffer.len().min(room)];
            bytes.outbound.extend_from_slice(piece);
            taken += piece.len();
            room -= piece.len();
        }
        if taken == 0 && buffers.iter().any(|buffer| !buffer.is_empty()) {
            bytes.refused = true;
            return Poll::Pending;
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::task::Waker;

    fn read(pipe: &Pipe, at_most: usize) -> Option<Vec<u8>> {
        let mut room = vec![0; at_most];
        let mut buffer = ReadBuf::new(&mut room);
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut pipe.clone()).poll_read(&mut context, &mut buffer) {
            Poll::Ready(done) => done.map(|()| Some(buffer.filled().to_vec())).unwrap(),
            Poll::Pending => None,
        }
    }

    fn write(pipe: &Pipe, buffers: &[&[u8]]) -> Option<usize> {
        let buffers: Vec<IoSlice<'_>> = buffers.iter().map(|buffer| IoSlice::new(buffer)).collect();
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut pipe.clone()).poll_write_vectored(&mut context, &buffers) {
            Poll::Ready(written) => Some(written.unwrap()),
            Poll::Pending => None,
        }
    }

    fn drain(pipe: &Pipe, at_most: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        let take = |waiting: &[u8]| {
            sent.extend_from_slice(&waiting[..waiting.len().min(at_most)]);
            Ok::<_, ()>(sent.len())
        };
        pipe.write_out(take).unwrap();
        sent
    }

    #[test]
    fn lent_bytes_are_read_and_the_rest_is_kept() {
        let pipe = Pipe::default();
        let mut buffer = b"0123456789".to_vec();
        assert_eq!(read(&pipe, 4), None);
        pipe.lend(&mut buffer, 8);
        assert_eq!(read(&pipe, 5).unwrap(), b"01234");
        pipe.give_back(&mut buffer);
        assert_eq!(buffer, b"0123456789", "the buffer comes back unchanged");
        assert!(pipe.has_unread());
        assert_eq!(read(&pipe, 5).unwrap(), b"567");
        assert!(!pipe.has_unread());
        assert_eq!(read(&pipe, 5), None, "the end of the received bytes is not the end of the stream");
    }

    #[test]
    fn a_full_pipe_makes_h2_wait_until_it_is_written() {
        let pipe = Pipe::default();
        assert_eq!(write(&pipe, &[b"head", &[b'x'; WAITING_BYTES_MAX]]), Some(WAITING_BYTES_MAX));
        assert_eq!(write(&pipe, &[b"y"]), None);
        assert!(!pipe.take_room() && !pipe.is_written());
        assert_eq!(drain(&pipe, 4), b"head");
        assert!(!pipe.take_room());
        assert_eq!(drain(&pipe, usize::MAX).len(), WAITING_BYTES_MAX - 4);
        assert!(pipe.is_written() && pipe.take_room() && !pipe.take_room());
        assert_eq!(write(&pipe, &[b"y"]), Some(1));
        assert_eq!(write(&pipe, &[b""]), Some(0));
    }

    #[test]
    fn a_failed_write_keeps_the_bytes_in_the_pipe() {
        let pipe = Pipe::default();
        write(&pipe, &[b"ab"]);
        assert_eq!(pipe.write_out(|_| Err::<usize, _>("no")), Err("no"));
        assert_eq!(drain(&pipe, usize::MAX), b"ab");
    }

    proptest! {
        #[test]
        fn every_byte_is_passed_on_exactly_once_in_both_directions(
            steps in prop::collection::vec((0u8..4, 1usize..40_000), 1..60),
        ) {
            let pipe = Pipe::default();
            let stream = |from: usize, length: usize| -> Vec<u8> {
                (from..from + length).map(|n| (n % 251) as u8).collect()
            };
            let (mut lent, mut got, mut written, mut sent) = (0, 0, 0, 0);
            for (step, size) in steps {
                match step {
                    0 if !pipe.has_unread() => {
                        let mut buffer = stream(lent, size);
                        pipe.lend(&mut buffer, size);
                        lent += size;
                        if let Some(piece) = read(&pipe, size / 2 + 1) {
                            prop_assert_eq!(&piece, &stream(got, piece.len()));
                            got += piece.len();
                        }
                        pipe.give_back(&mut buffer);
                    }
                    0 | 1 => if let Some(piece) = read(&pipe, size) {
                        prop_assert_eq!(&piece, &stream(got, piece.len()));
                        got += piece.len();
                    },
                    2 => {
                        let bytes = stream(written, size);
                        let (first, second) = bytes.split_at(size / 3);
                        written += write(&pipe, &[first, second]).unwrap_or(0);
                    }
                    _ => {
                        let piece = drain(&pipe, size);
                        prop_assert_eq!(&piece, &stream(sent, piece.len()));
                        sent += piece.len();
                    }
                }
                prop_assert!(written - sent <= WAITING_BYTES_MAX);
                prop_assert_eq!(pipe.has_unread(), got < lent);
                prop_assert_eq!(pipe.is_written(), sent == written);
            }
        }
    }
}
