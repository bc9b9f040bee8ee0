//! Parses HTTP/1.1 responses fed in arbitrary pieces, storing only an incomplete head. Bodies are counted and searched,
//! not stored. It does no I/O: bytes in, [`Progress`] out.

use super::chunked::{Chunks, Skipped};
use super::wanted::{Search, Wanted};
use httparse::{ParserConfig, Response, Status};
use std::mem::{self, MaybeUninit};

/// A larger head is not a response: servers and proxies limit themselves to 8 to 64 KiB.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers parsed without heap allocation; application servers send 5 to 30.
const HEADERS: usize = 64;
/// Maximum number of headers: a head of the largest size made of 30-byte lines.
const HEADERS_MAX: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ResponseFacts {
    /// The status code, 100–999.
    pub(super) status: u16,
    /// Whether the server allows another request on the connection.
    pub(super) keep_alive: bool,
    /// Bytes of the body, without chunk framing.
    pub(super) body_bytes: u64,
    /// Whether the wanted headers and text are present.
    pub(super) fits: bool,
}

/// The result of feeding a piece of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The response continues.
    More,
    /// The response is complete; this many bytes of the piece do not belong to it.
    Done { answer: ResponseFacts, left: usize },
    /// The bytes are not an HTTP/1.x response.
    Broken,
}

/// What the end of the stream means for the current response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// No byte of the response had arrived.
    Nothing,
    /// The response was truncated.
    Cut,
    /// The end of the stream is the end of this response.
    Done(ResponseFacts),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    status: u16,
    keep_alive: bool,
    body: ParserState,
}

/// Parses heads and remembers the last one: servers repeat the same head, except for the second in `Date`. Comparing
/// instead of parsing saves 3% of the CPU time per request (`perf`, nginx, 25 connections).
#[derive(Debug, Default)]
pub(super) struct Heads {
    last: Vec<u8>,
    meaning: Option<Head>,
}

enum Parsed {
    Complete(Head, usize),
    Partial,
    Broken,
}

impl Heads {
    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Parsed {
        match self.meaning {
            // A complete head ends with an empty line, so equal bytes are the same head, whatever follows.
            Some(head) if bytes.starts_with(&self.last) => Parsed::Complete(head, self.last.len()),
            _ => self.parse_anew(bytes),
        }
    }

    fn parse_anew(&mut self, bytes: &[u8]) -> Parsed {
        let parsed = match parse_head(bytes, &mut [const { MaybeUninit::uninit() }; HEADERS]) {
            Err(httparse::Error::TooManyHeaders) => {
                let mut headers = vec![MaybeUninit::uninit(); HEADERS_MAX];
                parse_head(bytes, &mut headers)
            }
            parsed => parsed,
        };
        match parsed {
            Ok(Status::Complete((_, length))) if length > HEAD_BYTES_MAX => Parsed::Broken,
            Ok(Status::Complete((Some(head), length))) => {
                self.last.clear();
                self.last.extend_from_slice(&bytes[..length]);
                self.meaning = Some(head);
                Parsed::Complete(head, length)
            }
            Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => Parsed::Partial,
            Ok(_) | Err(_) => Parsed::Broken,
        }
    }
}

/// The head at the start of `bytes` (`None` if its headers are contradictory) and its length.
fn parse_head<'a>(
    bytes: &'a [u8],
    headers: &mut [MaybeUninit<httparse::Header<'a>>],
) -> Result<Status<(Option<Head>, usize)>, httparse::Error> {
    let mut response = Response::new(&mut []);
    match ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, headers)? {
        Status::Partial => Ok(Status::Partial),
        Status::Complete(length) => Ok(Status::Complete((understand(&response), length))),
    }
}

/// Status, persistence, and the framing of the body (RFC 9112, section 6.3). `None` if the head is contradictory, has a
/// status below 100, or accepts an upgrade (101), which the engine never requests.
fn understand(response: &Response<'_, '_>) -> Option<Head> {
    let (status, version) = (response.code?, response.version?);
    let (mut length, mut chunked, mut coded, mut close, mut keep) = (None, false, false, false, false);
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let value = decimal(header.value)?;
            if length.is_some_and(|known| known != value) {
                return None;
            }
            length = Some(value);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            chunked = tokens(header.value).last().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
        } else if header.name.eq_ignore_ascii_case("connection") {
            close |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"close"));
            keep |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"keep-alive"));
        }
    }
    let body = match status {
        // 101 accepts an upgrade, which the engine never requests.
        0..=99 | 101 => return None,
        100..=199 | 204 | 304 => ParserState::Length(0),
        _ if chunked => ParserState::Chunked(Chunks::default()),
        _ if coded => ParserState::UntilClose,
        _ => length.map_or(ParserState::UntilClose, ParserState::Length),
    };
    Some(Head { status, keep_alive: !close && (version == 1 || keep), body })
}

/// A number of at most 18 digits, which fits 63 bits.
fn decimal(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// The comma-separated words of a header's value.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// The next part to read: a head, or the rest of a body with one of three framings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ParserState {
    #[default]
    Head,
    /// This many bytes of the body are missing.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// The current response on one connection.
#[derive(Debug, Default)]
pub(super) struct ResponseReader {
    state: ParserState,
    answer: ResponseFacts,
    /// The beginning of a head that arrived in pieces.
    carry: Option<Box<[u8]>>,
    /// A `100 Continue` arrived.
    continued: bool,
    /// For the text that the body must contain, if any.
    search: Option<Box<Search>>,
}

impl ResponseReader {
    /// Takes the next piece, which must not be empty.
    #[inline]
    pub(super) fn feed(&mut self, heads: &mut Heads, wanted: &Wanted, piece: &[u8]) -> Progress {
        let Some(carry) = self.carry.take() else { return self.read(heads, wanted, piece) };
        let mut whole = carry.into_vec();
        whole.extend_from_slice(piece);
        self.read(heads, wanted, &whole)
    }

    /// Returns what the end of the stream means now; drops the current response.
    pub(super) fn end(&mut self, wanted: &Wanted) -> Ending {
        let state = mem::take(&mut self.state);
        match state {
            ParserState::Head if self.carry.take().is_none() => Ending::Nothing,
            ParserState::UntilClose => Ending::Done(self.finished(wanted)),
            ParserState::Head | ParserState::Length(_) | ParserState::Chunked(_) => Ending::Cut,
        }
    }

    /// Whether a `100 Continue` arrived since the last call.
    pub(super) fn take_continued(&mut self) -> bool {
        mem::take(&mut self.continued)
    }

    /// The status of the current response; 0 while its head is incomplete.
    pub(super) fn status(&self) -> u16 {
        if self.state == ParserState::Head { 0 } else { self.answer.status }
    }

    fn read(&mut self, heads: &mut Heads, wanted: &Wanted, mut bytes: &[u8]) -> Progress {
        while self.state == ParserState::Head {
            match heads.parse(bytes) {
                Parsed::Complete(head, length) => {
                    self.begin_body(head, wanted, &bytes[..length]);
                    bytes = &bytes[length..];
                }
                Parsed::Partial => {
                    self.carry = (!bytes.is_empty()).then(|| bytes.into());
                    return Progress::More;
                }
                Parsed::Broken => return Progress::Broken,
            }
        }
        self.read_body(wanted, bytes)
    }

    fn begin_body(&mut self, head: Head, wanted: &Wanted, bytes: &[u8]) {
        // A 1xx response only precedes the real one.
        if head.status < 200 {
            self.continued |= head.status == 100;
            return;
        }
        let fits = !wanted.names_headers() || wanted.finds_headers(bytes);
        self.state = if wanted.bodiless { ParserState::Length(0) } else { head.body };
        // Only a body delimited by the end of the stream closes the connection. A response to HEAD has no body,
        // whatever its head says.
        let keep_alive = head.keep_alive && self.state != ParserState::UntilClose;
        self.answer = ResponseFacts { status: head.status, keep_alive, body_bytes: 0, fits };
        if wanted.body.is_some() {
            self.search.get_or_insert_default().begin();
        }
    }

    fn read_body(&mut self, wanted: &Wanted, bytes: &[u8]) -> Progress {
        let (counted, search) = (&mut self.answer.body_bytes, &mut self.search);
        let mut take = |body: &[u8]| {
            *counted += body.len() as u64;
            if let (Some(text), Some(search)) = (&wanted.body, search.as_mut()) {
                search.look(text, body);
            }
        };
        let left = match &mut self.state {
            ParserState::Head => return Progress::More,
            ParserState::UntilClose => {
                take(bytes);
                return Progress::More;
            }
            ParserState::Length(missing) => {
                let taken = (bytes.len() as u64).min(*missing);
                take(&bytes[..taken as usize]);
                *missing -= taken;
                if *missing > 0 {
                    return Progress::More;
                }
                bytes.len() - taken as usize
            }
            ParserState::Chunked(chunks) => match chunks.skip(bytes, &mut take) {
                Skipped::More => return Progress::More,
                Skipped::Done(left) => left,
                Skipped::Broken => return Progress::Broken,
            },
        };
        self.state = ParserState::Head;
        Progress::Done { answer: self.finished(wanted), left }
    }

    #[inline]
    fn finished(&self, wanted: &Wanted) -> ResponseFacts {
        let mut answer = self.answer;
        answer.fits &= wanted.body.is_none() || self.search.as_ref().is_some_and(|search| search.found());
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{self, StreamVerdict, read};
    use proptest::prelude::*;

    fn whole(stream: &[u8]) -> StreamVerdict {
        let (first, reference) =
            (read(&mut Heads::default(), false, std::iter::once(stream)), reference::judge(stream, false));
        assert!(reference::agree(first, reference), "{first:?}, but the reference says {reference:?}");
        first
    }

    fn check(stream: &str, status: u16, keep_alive: bool, rest: usize, body_bytes: u64) {
        let expected = StreamVerdict::Answer { status, keep_alive, body_bytes, rest };
        assert_eq!(whole(stream.as_bytes()), expected, "{stream}");
        assert_eq!(read(&mut Heads::default(), false, stream.as_bytes().chunks(1)), expected, "bytewise {stream}");
    }

    #[test]
    fn responses_with_every_framing_are_parsed() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, true, 0, 2);
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: x, Close\r\n\r\nhi", 200, false, 0, 2);
        check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, false, 0, 2);
        check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", 200, true, 0, 0);
        check("HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, false, 0, 13);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nlong", 200, false, 0, 4);
        check("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", 204, true, 0, 0);
        check("HTTP/1.1 304 Not Modified\r\n\r\n", 304, true, 0, 0);
        check("HTTP/1.1 204 No\r\nConnection: a, close\r\n\r\nx", 204, false, 1, 0);
        check("HTTP/1.0 200 OK\nContent-Length: 2\n\nhi", 200, false, 0, 2);
        check("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200\r\n\r\nbody", 200, false, 0, 4);
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            204,
            true,
            0,
            0,
        );
        check("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200", 500, true, 12, 2);
        let chunked = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
        check(&format!("{chunked}0\r\n\r\n"), 200, true, 0, 0);
        check(&format!("{chunked}4;q=\"x\"\r\nWiki\r\n00A \r\n0123456789\r\n0\r\nT: r\r\n\r\nmore"), 200, true, 4, 14);
    }

    #[test]
    fn incomplete_responses_are_broken_or_truncated() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for stream in [
            "garbage\r\n\r\n".to_owned(),
            "HTTP/2.0 200 OK\r\n\r\n".to_owned(),
            "HTTP/1.1 101 Switching\r\n\r\n".to_owned(),
            "HTTP/1.1 099 Odd\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999999\r\n\r\n".to_owned(),
            format!("{chunked}\r\n"),
            format!("{chunked}g\r\n"),
            format!("{chunked}1\r\nab\r\n"),
            format!("{chunked}1\n"),
            format!("{chunked}ffffffffffffffff\r\n"),
            format!("{chunked}1;{}", "x".repeat(HEAD_BYTES_MAX + 1)),
            format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_BYTES_MAX)),
            format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX)),
            format!("HTTP/1.1 200 OK\r\n{}\r\n", "a:b\r\n".repeat(HEADERS_MAX + 1)),
        ] {
            assert_eq!(whole(stream.as_bytes()), StreamVerdict::Broken, "{stream:.60}");
        }
        for (stream, expected) in [
            (format!("{chunked}3\r\nab"), StreamVerdict::Cut),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh".to_owned(), StreamVerdict::Cut),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2".to_owned(), StreamVerdict::Headless),
        ] {
            assert_eq!(whole(stream.as_bytes()), expected, "{stream}");
        }
        reference::check(b"H HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
        let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "a:b\r\n".repeat(HEADERS + 1));
        assert!(matches!(whole(many.as_bytes()), StreamVerdict::Answer { .. }));
    }

    #[test]
    fn the_end_of_the_stream_is_classified() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        let mut heads = Heads::default();
        let (mut reader, wanted) = (ResponseReader::default(), Wanted::default());
        assert_eq!(reader.end(&wanted), Ending::Nothing);
        for cut in [1, head.len() - 1, head.len()] {
            assert_eq!(reader.feed(&mut heads, &wanted, &head[..cut]), Progress::More);
            assert_eq!(reader.end(&wanted), Ending::Cut, "{cut}");
            assert_eq!(reader.end(&wanted), Ending::Nothing, "the reader has forgotten the cut response");
        }
    }

    /// Valid responses with every framing.
    fn sound() -> impl Strategy<Value = Vec<u8>> {
        let body = prop::collection::vec(any::<u8>(), 0..300);
        let headers = prop::collection::vec("[A-Za-z-]{1,12}: [ -~]{0,30}\r\n", 0..6).prop_map(|lines| lines.concat());
        (200u16..600, headers, body, 0..3u8, 1usize..50, any::<bool>()).prop_map(
            |(status, headers, body, framing, chunk, announced)| {
                let announcement = if announced { "HTTP/1.1 100 Continue\r\n\r\n" } else { "" };
                let mut stream = format!("{announcement}HTTP/1.1 {status} Reason\r\n{headers}").into_bytes();
                match framing {
                    0 => stream.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes().chain(body)),
                    1 => {
                        stream.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                        for piece in body.chunks(chunk) {
                            stream.extend(format!("{:x}\r\n", piece.len()).bytes());
                            stream.extend(piece.iter().chain(b"\r\n"));
                        }
                        stream.extend(b"0\r\n\r\n");
                    }
                    _ => stream.extend(b"\r\n".iter().chain(&body)),
                }
                stream
            },
        )
    }

    proptest! {
        #[test]
        fn valid_and_mangled_responses_parse_alike_complete_or_in_pieces(
            mut stream in sound(),
            changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..8),
            cuts in any::<u8>(),
        ) {
            for (place, byte) in changes {
                let place = place % stream.len();
                stream[place] = byte;
            }
            reference::check(&[&[b'G', cuts], &stream[..]].concat());
        }

        #[test]
        fn any_bytes_are_parsed_like_the_reference(stream in prop::collection::vec(any::<u8>(), 1..2000)) {
            reference::check(&stream);
        }
    }
}
