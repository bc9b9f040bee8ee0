//! One HTTP/2 connection: a link, the h2 session on it, and the pipe between them.

use super::bells::Bells;
use super::pipe::Pipe;
use crate::connection::Watched;
use crate::link::{Link, Trouble};
use crate::response::HEAD_BYTES_MAX;
use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The bytes that the server may send before an acknowledgment, on a stream and on the connection. As in h2load, the
/// window is large enough that flow control never slows a download. Flow control would limit the data that a slow
/// reader must store, but this reader stores nothing, and the TCP window limits the rest.
const WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Small DATA frames that were received but not yet taken use up this budget; h2 treats an empty budget as an attack
/// and ends the connection. Its default of 25,600 bytes covers about a hundred frames per read, but a thousand streams
/// have more.
const FRAME_BUDGET_BYTES: usize = 1 << 30;
/// How many timed-out streams are remembered, and for how long, so that late responses are ignored rather than
/// rejected. No more are kept than a connection has streams, and no longer than a response can reasonably be late.
const RESETS_KEPT: usize = 1000;
const RESETS_KEPT_FOR: Duration = Duration::from_secs(30);

/// Whether a connection accepts a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Some,
    /// Not until another request has ended or the server has sent something.
    None,
    /// The server sent GOAWAY, or all stream ids are used.
    NeverAgain,
}

/// A connection, possibly still being established.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) place: u32,
    pub(super) link: Link,
    pub(super) pipe: Pipe,
    sender: SendRequest<Bytes>,
    driver: h2::client::Connection<Pipe, Bytes>,
    bell: Arc<Bells>,
    waker: Waker,
    /// The first slot that uses it, whose request opened it.
    pub(super) leader: u32,
    /// The handshakes have finished: a first write succeeded.
    pub(super) established: bool,
    pub(super) connected_ns: u64,
    pub(super) watched: Watched,
    /// The socket accepted less than was available.
    pub(super) blocked: bool,
    /// A write failed: the engine reads what the server has sent, then closes the connection.
    pub(super) broken: bool,
    /// The server will send nothing after the unread bytes, and epoll will report no further edge.
    pub(super) last: bool,
    /// The socket may contain more data, not read yet because h2 did not take the earlier data.
    pub(super) unread: bool,
    /// TLS negotiated HTTP/2, or the connection has no TLS.
    pub(super) agreed: bool,
    /// The server has sent something.
    pub(super) heard: bool,
    /// No further request will begin on it.
    pub(super) retiring: bool,
    /// Whether to poll and write the connection in the next turn.
    pub(super) dirty: bool,
    /// Number of concurrent requests that the server accepts; 1 until the server has announced its limit.
    pub(super) streams_max: u32,
    /// Requests in flight.
    pub(super) streams: u32,
    /// Slots that become free once the server has sent something.
    pub(super) promised: u32,
}

impl Connection {
    /// Starts HTTP/2 on a link: preface and settings wait in the pipe. `None` if h2 does not begin immediately.
    pub(super) fn new(link: Link, place: u32, leader: u32) -> Option<Self> {
        let pipe = Pipe::default();
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            // One request opens the connection; others begin once the server has announced its limit. A server with a
            // lower limit would reset the rest.
            .initial_max_send_streams(1)
            .max_concurrent_reset_streams(RESETS_KEPT)
            .reset_stream_duration(RESETS_KEPT_FOR)
            .max_local_error_reset_streams(None)
            .data_frame_budget(FRAME_BUDGET_BYTES);
        let bell = Bells::new(1);
        let waker = bell.waker(0);
        let mut handshake = pin!(builder.handshake(pipe.clone()));
        // h2 only writes, and the pipe has room.
        let Poll::Ready(Ok((sender, driver))) = handshake.as_mut().poll(&mut Context::from_waker(&waker)) else {
            return None;
        };
        Some(Self {
            agreed: !link.is_tls(),
            place,
            link,
            pipe,
            sender,
            driver,
            bell,
            waker,
            leader,
            established: false,
            connected_ns: 0,
            watched: Watched::Nothing,
            blocked: false,
            broken: false,
            last: false,
            unread: false,
            heard: false,
            retiring: false,
            dirty: false,
            streams_max: 1,
            streams: 0,
            promised: 0,
        })
    }

    /// Lets h2 process received data and produce data to send. Ready when the connection is over.
    #[inline]
    pub(super) fn poll(&mut self) -> Poll<Result<(), h2::Error>> {
        self.bell.take(0);
        let polled = Pin::new(&mut self.driver).poll(&mut Context::from_waker(&self.waker));
        // Sends a request even if the server currently accepts none, so that its silence ends in a timeout.
        self.streams_max = u32::try_from(self.sender.current_max_send_streams()).unwrap_or(u32::MAX).max(1);
        polled
    }

    /// Whether to poll again: a stream asked for it, or the pipe has room again for h2's data.
    #[inline]
    pub(super) fn wants_poll(&self) -> bool {
        self.bell.take(0) != 0 || self.pipe.take_room()
    }

    /// Whether a request may begin.
    #[inline]
    pub(super) fn room(&mut self) -> Room {
        match self.sender.poll_ready(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(Ok(())) if self.streams < self.streams_max => Room::Some,
            Poll::Ready(Ok(())) | Poll::Pending => Room::None,
            Poll::Ready(Err(_)) => Room::NeverAgain,
        }
    }

    /// Passes a request to h2. Errors: the connection is over or about to be.
    #[inline]
    pub(super) fn send(
        &mut self,
        head: http::Request<()>,
        bodiless: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        self.sender.send_request(head, bodiless)
    }

    /// Writes as much of the pipe's data as the link takes at once. Returns the bytes written, 0 if the pipe is empty.
    /// Errors: `AGAIN` if the socket currently accepts nothing.
    #[inline]
    pub(super) fn write(&mut self) -> Result<usize, Trouble> {
        let link = &mut self.link;
        self.pipe.write_out(|waiting| if waiting.is_empty() { link.flush().map(|()| 0) } else { link.write(waiting) })
    }
}
