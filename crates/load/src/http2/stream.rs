//! A slot for one request at a time on an HTTP/2 connection: the request in flight and its response so far.

use crate::connection::UnderWay;
use crate::outcome::Row;
use crate::response::ResponseFacts;
use crate::wanted::{Search, Wanted};
use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::{HeaderName, HeaderValue};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The current activity of a slot.
#[derive(Debug, Default)]
pub(super) enum Doing {
    /// Free for a request.
    #[default]
    Nothing,
    /// Begun, but not passed to h2: about to be, or sent back after a GOAWAY.
    Beginning,
    /// Waiting for the response head.
    Waiting(ResponseFuture),
    Reading(RecvStream),
}

/// A long body that is being sent.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) stream: SendStream<Bytes>,
    pub(super) sent: u64,
    pub(super) whole: u64,
}

/// Holds one request at a time. Its stream comes and goes; the slot stays.
#[derive(Debug)]
pub(super) struct Slot {
    /// Rings when h2 has something for the stream.
    waker: Waker,
    pub(super) doing: Doing,
    pub(super) upload: Option<Upload>,
    /// The connection of the request in flight.
    pub(super) connection: u32,
    pub(super) under_way: UnderWay,
    /// Number of the request in the phase.
    pub(super) number: u64,
    /// How many times the request was sent back.
    pub(super) returns: u32,
    /// When the slot became free; 0 before its first request.
    pub(super) free_ns: u64,
    /// The response so far; its status is 0 before the head.
    pub(super) answer: ResponseFacts,
    search: Search,
}

/// The progress of a response.
#[derive(Debug)]
pub(super) enum StreamStep {
    /// Nothing more for now.
    Pending,
    Head,
    /// A piece of the body arrived.
    Piece,
    /// The response is complete.
    Done,
    /// The response will not be completed.
    Failed(h2::Error),
}

impl Slot {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            waker,
            doing: Doing::Nothing,
            upload: None,
            connection: 0,
            under_way: UnderWay::default(),
            number: 0,
            returns: 0,
            free_ns: 0,
            answer: ResponseFacts::default(),
            search: Search::default(),
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, intended_ns: u64, started_ns: u64) {
        self.doing = Doing::Beginning;
        self.under_way.begin(intended_ns, started_ns);
        self.returns = 0;
        self.answer = ResponseFacts::default();
    }

    /// Drops the stream but keeps the request, which must be resent on another connection.
    pub(super) fn send_back(&mut self) {
        self.doing = Doing::Beginning;
        self.upload = None;
        self.connection = u32::MAX;
        self.returns += 1;
    }

    /// Drops the request in flight. This resets a stream that is still open (`CANCEL`).
    #[inline]
    pub(super) fn end(&mut self) {
        self.doing = Doing::Nothing;
        self.upload = None;
    }

    pub(super) fn ended(&self, place: u32, now_ns: u64) -> Row {
        Row { status: self.answer.status, body_bytes: self.answer.body_bytes, ..self.under_way.ended(place, now_ns) }
    }

    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.doing, Doing::Nothing)
    }

    /// Takes the received part of the response, one step at a time.
    #[inline]
    pub(super) fn step(&mut self, wanted: &Wanted) -> StreamStep {
        let mut context = Context::from_waker(&self.waker);
        match &mut self.doing {
            Doing::Nothing | Doing::Beginning => StreamStep::Pending,
            Doing::Waiting(response) => match Pin::new(response).poll(&mut context) {
                Poll::Pending => StreamStep::Pending,
                Poll::Ready(Err(error)) => StreamStep::Failed(error),
                Poll::Ready(Ok(response)) => {
                    let pair = |(name, value)| (HeaderName::as_str(name).as_bytes(), HeaderValue::as_bytes(value));
                    let headers = || response.headers().iter().map(pair);
                    self.answer.status = response.status().as_u16();
                    self.answer.fits = !wanted.names_headers() || wanted.finds_among(headers);
                    self.search.begin();
                    let body = response.into_body();
                    let whole = body.is_end_stream();
                    self.doing = Doing::Reading(body);
                    if whole { self.done(wanted) } else { StreamStep::Head }
                }
            },
            Doing::Reading(body) => match body.poll_data(&mut context) {
                Poll::Pending => StreamStep::Pending,
                Poll::Ready(Some(Err(error))) => StreamStep::Failed(error),
                // Trailers, if any, have arrived too.
                Poll::Ready(None) => self.done(wanted),
                Poll::Ready(Some(Ok(piece))) => {
                    // An error means that the stream is over; the next step reports that.
                    let _ = body.flow_control().release_capacity(piece.len());
                    self.answer.body_bytes += piece.len() as u64;
                    if let Some(text) = &wanted.body {
                        self.search.look(text, &piece);
                    }
                    StreamStep::Piece
                }
            },
        }
    }

    fn done(&mut self, wanted: &Wanted) -> StreamStep {
        self.answer.fits &= wanted.body.is_none() || self.search.found();
        StreamStep::Done
    }

    /// How many bytes of the upload may be sent now, within the server's windows and h2's buffer. 0 if the stream
    /// waits, or the server does not want the rest.
    pub(super) fn capacity(&mut self, piece_max: usize) -> usize {
        let Some(upload) = &mut self.upload else { return 0 };
        let left = usize::try_from(upload.whole - upload.sent).unwrap_or(usize::MAX);
        upload.stream.reserve_capacity(left.min(piece_max));
        let mut context = Context::from_waker(&self.waker);
        loop {
            match upload.stream.capacity() {
                0 => match upload.stream.poll_capacity(&mut context) {
                    Poll::Ready(Some(Ok(_))) => {}
                    // The response contains the reason.
                    Poll::Ready(Some(Err(_)) | None) | Poll::Pending => return 0,
                },
                capacity => return capacity.min(left),
            }
        }
    }
}
