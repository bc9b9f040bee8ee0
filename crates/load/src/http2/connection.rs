//! One connection of HTTP/2: a link, the h2 that speaks on it, and the pipe between them.

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

/// The bytes that the server may send before it hears that they were read, on a stream and on the connection. As in
/// h2load, they are so many that flow control never slows a download. Flow control would bound what a slow reader has
/// to keep. This reader keeps nothing, and the TCP window holds back what it cannot take.
const WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Small DATA frames that were read but not yet taken cost of this; h2 takes an empty account for an attack and ends
/// the connection. Its own 25,600 bytes are some hundred frames in one read: a thousand streams have more.
const FRAME_BUDGET_BYTES: usize = 1 << 30;
/// Streams that timed out and how long they are remembered, so that late answers are ignored and not refused: as many
/// as streams on a connection at most, and as long as an answer may reasonably be late.
const RESETS_KEPT: usize = 1000;
const RESETS_KEPT_FOR: Duration = Duration::from_secs(30);

/// Whether a connection takes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Some,
    /// Not before another has ended, or the server has spoken.
    None,
    /// The server said goodbye, or all numbers of streams are used.
    NeverAgain,
}

/// One connection, perhaps still on its way.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) place: u32,
    pub(super) link: Link,
    pub(super) pipe: Pipe,
    sender: SendRequest<Bytes>,
    driver: h2::client::Connection<Pipe, Bytes>,
    bell: Arc<Bells>,
    waker: Waker,
    /// The first slot that uses it: the one whose request opened it.
    pub(super) leader: u32,
    /// A first write went through: the handshakes are over.
    pub(super) established: bool,
    pub(super) connected_ns: u64,
    pub(super) watched: Watched,
    /// The socket took less than there was.
    pub(super) blocked: bool,
    /// A write failed: the engine reads what the server had sent, then closes the connection.
    pub(super) broken: bool,
    /// The server sends nothing more after the bytes that wait to be read: epoll reports no further edge.
    pub(super) last: bool,
    /// The socket may hold more, which was not read because h2 did not take what came before.
    pub(super) unread: bool,
    /// TLS agreed on HTTP/2, or the connection has no TLS.
    pub(super) agreed: bool,
    /// The server has said something.
    pub(super) heard: bool,
    /// No request begins on it any more.
    pub(super) retiring: bool,
    /// Whether the connection is to be polled and written at the next turn.
    pub(super) dirty: bool,
    /// How many requests the server takes at once; 1 before it has said so.
    pub(super) streams_max: u32,
    /// Requests under way.
    pub(super) streams: u32,
    /// Slots that are to be free once the server has spoken.
    pub(super) promised: u32,
}

impl Connection {
    /// Speaks HTTP/2 on a link: preface and settings wait in the pipe. `None` where h2 does not begin at once.
    pub(super) fn new(link: Link, place: u32, leader: u32) -> Option<Self> {
        let pipe = Pipe::default();
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            // One request opens the connection; others begin when the server has said how many it takes. More would
            // be reset by a server that takes fewer.
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

    /// Lets h2 work through what came and make what is to go. Ready when the connection is over.
    #[inline]
    pub(super) fn poll(&mut self) -> Poll<Result<(), h2::Error>> {
        self.bell.take(0);
        let polled = Pin::new(&mut self.driver).poll(&mut Context::from_waker(&self.waker));
        // A server that takes none for now is asked all the same, as its silence must come to an end as a timeout.
        self.streams_max = u32::try_from(self.sender.current_max_send_streams()).unwrap_or(u32::MAX).max(1);
        polled
    }

    /// Whether to poll again: a stream asked for it, or there is room again for what h2 has to write.
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

    /// Hands a request to h2.
    ///
    /// # Errors
    /// The connection is over or going to be.
    #[inline]
    pub(super) fn send(
        &mut self,
        head: http::Request<()>,
        bodiless: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        self.sender.send_request(head, bodiless)
    }

    /// Writes what waits in the pipe, once, as far as the link takes it; 0 where nothing waits.
    ///
    /// # Errors
    /// `AGAIN` where the socket takes nothing for now.
    #[inline]
    pub(super) fn write(&mut self) -> Result<usize, Trouble> {
        let link = &mut self.link;
        self.pipe.write_out(|waiting| if waiting.is_empty() { link.flush().map(|()| 0) } else { link.write(waiting) })
    }
}
