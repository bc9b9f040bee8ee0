//! The requests of a phase as bytes. Constant parts are encoded once; placeholders are filled in per request. Bodies
//! too large to keep in memory are generated or read piece by piece during sending.

use super::schedule::Share;
use super::template::{Template, decimal};
use super::wanted::Wanted;
use crate::work::{Body, Method, Request, Work};
use loadline_base::bounded;
use loadline_base::error::{Error, Result};
use loadline_base::numbers::SplitMix64;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Headers that the engine writes itself, because framing and persistence depend on them.
const OWN_HEADERS: [&str; 4] = ["Content-Length", "Connection", "Transfer-Encoding", "Expect"];
/// Bodies up to this size are stored with their head, so that one send covers both.
const BODY_KEPT_MAX: u64 = 1 << 20;
/// Larger generated bodies repeat a block of this size; files are read in pieces of this size.
const BLOCK_BYTES: usize = 256 * 1024;

/// The requests of a phase, and the choice of the next one.
#[derive(Debug)]
pub(super) struct Messages {
    all: Vec<Message>,
    order: RequestOrder,
    scratch: Vec<u8>,
}

/// The order of the requests and their numbers, the same for every protocol.
#[derive(Debug)]
pub(super) struct RequestOrder {
    /// Cumulative weights.
    weights: Vec<u64>,
    choice: SplitMix64,
    /// Random numbers for the placeholders.
    pub(super) filling: SplitMix64,
    sequence: u64,
    step: u64,
}

impl RequestOrder {
    /// Uses the sequence numbers of one share.
    pub(super) fn new(work: &Work, seed: u64, share: Share) -> Self {
        let mut sum = 0;
        let weights = work.requests().map(|request| {
            sum += u64::from(request.weight);
            sum
        });
        // Threads must not draw the same numbers.
        let seed = seed ^ share.index.rotate_left(32);
        Self {
            weights: weights.collect(),
            choice: SplitMix64::new(seed),
            filling: SplitMix64::new(!seed),
            sequence: share.index,
            step: share.count,
        }
    }

    /// The index of the next request, drawn by weight, and its number. Every request is counted, even if it does not
    /// use the number.
    #[inline]
    pub(super) fn next(&mut self) -> (usize, u64) {
        let number = self.sequence;
        self.sequence = number.wrapping_add(self.step);
        (if self.weights.len() == 1 { 0 } else { self.draw() }, number)
    }

    fn draw(&mut self) -> usize {
        let drawn = self.choice.below(self.weights.last().copied().unwrap_or(1));
        self.weights.partition_point(|sum| *sum <= drawn)
    }
}

#[derive(Debug)]
pub(super) struct Message {
    front: Front,
    long: Option<Long>,
    /// The criteria for a correct response.
    pub(super) wanted: Wanted,
    /// Whether the body waits for `100 Continue`.
    pub(super) waits: bool,
}

/// The head and, unless it is long, the body.
#[derive(Debug)]
enum Front {
    Fixed { bytes: Vec<u8>, head: usize },
    Filled { head: Template, body: Option<Template>, fixed_body: Vec<u8> },
}

/// A body that is not kept in memory.
#[derive(Debug)]
pub(super) struct Long {
    pub(super) bytes: u64,
    source: BodySource,
}

#[derive(Debug)]
enum BodySource {
    Block(Vec<u8>),
    File { path: PathBuf, file: File },
}

/// The sizes of a request being sent, which may differ between requests.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Extent {
    pub(super) head: u64,
    /// Bytes of head and body.
    pub(super) whole: u64,
}

impl Messages {
    /// Encodes the requests of `work`, numbered for a share. Errors: the body's file cannot be read, or the path or a
    /// header is not allowed in a request.
    pub(super) fn encode(work: &Work, host: &str, seed: u64, share: Share) -> Result<Self> {
        let all =
            work.requests().map(|request| Message::encode(work, request, host, seed)).collect::<Result<Vec<_>>>()?;
        Ok(Self { all, order: RequestOrder::new(work, seed, share), scratch: Vec::new() })
    }

    /// The index of the next request, drawn by weight; its bytes go to `own` if they vary.
    #[inline]
    pub(super) fn next(&mut self, own: &mut Vec<u8>) -> (u32, Extent) {
        let (index, number) = self.order.next();
        let message = &self.all[index];
        let long = message.long.as_ref().map_or(0, |long| long.bytes);
        let (head, whole) = match &message.front {
            Front::Fixed { bytes, head } => (*head, bytes.len()),
            Front::Filled { .. } => {
                let head = message.fill(own, &mut self.scratch, number, &mut self.order.filling);
                (head, own.len())
            }
        };
        (index as u32, Extent { head: head as u64, whole: whole as u64 + long })
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &Message {
        &self.all[index as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the bytes of any request vary.
    pub(super) fn have_placeholders(&self) -> bool {
        self.all.iter().any(|message| matches!(message.front, Front::Filled { .. }))
    }

    /// The longest head and body sent in one piece: data that fits in a segment is never delayed.
    pub(super) fn longest(&self) -> usize {
        self.all.iter().map(Message::longest).max().unwrap_or(0)
    }
}

impl Message {
    fn encode(work: &Work, request: &Request, host: &str, seed: u64) -> Result<Self> {
        let (body, filled, long) = body_of(request, seed)?;
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method.as_str(), request.path);
        check_path(&request.path)?;
        if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {host}\r\n");
        }
        for (name, value) in &request.headers {
            check_header(name, value)?;
            head += &format!("{name}: {value}\r\n");
        }
        if !work.keep_alive {
            head += "Connection: close\r\n";
        }
        if request.expect_continue {
            head += "Expect: 100-continue\r\n";
        }
        let length = body.len() as u64 + long.as_ref().map_or(0, |long| long.bytes);
        if filled.is_none() {
            if tells_length(request.method, length) {
                head += &format!("Content-Length: {length}\r\n");
            }
            head += "\r\n";
        }
        let template = Template::parse(&head)?;
        let front = if template.is_fixed() && filled.is_none() {
            let mut bytes = head.into_bytes();
            let head = bytes.len();
            bytes.extend_from_slice(&body);
            Front::Fixed { bytes, head }
        } else {
            Front::Filled { head: template, body: filled, fixed_body: body }
        };
        Ok(Self { front, long, wanted: Wanted::of(work, request), waits: request.expect_continue })
    }

    /// Fills in the placeholders; returns the length of the head.
    fn fill(&self, own: &mut Vec<u8>, scratch: &mut Vec<u8>, sequence: u64, random: &mut SplitMix64) -> usize {
        own.clear();
        let Front::Filled { head, body, fixed_body } = &self.front else { return 0 };
        head.fill(own, sequence, random);
        let Some(body) = body else {
            let length = own.len();
            own.extend_from_slice(fixed_body);
            return length;
        };
        scratch.clear();
        body.fill(scratch, sequence, random);
        own.extend_from_slice(b"Content-Length: ");
        decimal(own, scratch.len() as u64);
        own.extend_from_slice(b"\r\n\r\n");
        let length = own.len();
        own.extend_from_slice(scratch);
        length
    }

    /// The next available bytes from `sent`: all the rest, or a piece of a long body, possibly in `block`. Empty at the
    /// end. Errors: the body's file can no longer be read, or has become shorter.
    #[inline]
    pub(super) fn piece<'a>(&'a self, own: &'a [u8], sent: u64, block: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let front = match &self.front {
            Front::Fixed { bytes, .. } => bytes,
            Front::Filled { .. } => own,
        };
        match front.get(sent as usize..) {
            Some(left) if !left.is_empty() => Ok(left),
            _ => match &self.long {
                Some(long) => long.piece(sent - front.len() as u64, block),
                None => Ok(&[]),
            },
        }
    }

    fn longest(&self) -> usize {
        match &self.front {
            Front::Fixed { bytes, .. } if self.long.is_none() => bytes.len(),
            _ => usize::MAX,
        }
    }
}

impl Long {
    /// The next available bytes from `offset`; empty at the end. Errors: the file can no longer be read, or has become
    /// shorter.
    #[cold]
    pub(super) fn piece<'a>(&'a self, offset: u64, block: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let left = self.bytes.saturating_sub(offset);
        match &self.source {
            BodySource::Block(bytes) => {
                let from = (offset % bytes.len() as u64) as usize;
                let piece = &bytes[from..];
                Ok(&piece[..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))])
            }
            BodySource::File { path, file } => {
                block.resize(BLOCK_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX)), 0);
                if block.is_empty() {
                    return Ok(&[]);
                }
                match file.read_at(block, offset) {
                    Ok(0) => Err(Error::request(format!("{} shrank while it was being sent", path.display()))),
                    Ok(read) => Ok(&block[..read]),
                    Err(cause) => Err(Error::io("read", path, &cause)),
                }
            }
        }
    }
}

/// The stored body, its template if it has placeholders, and the body that is not stored.
pub(super) fn body_of(request: &Request, seed: u64) -> Result<(Vec<u8>, Option<Template>, Option<Long>)> {
    let block = |bytes: u64, block: Vec<u8>| Long { bytes, source: BodySource::Block(block) };
    Ok(match &request.body {
        Body::None => (Vec::new(), None, None),
        Body::Generated(size) if size.0 > BODY_KEPT_MAX => {
            (Vec::new(), None, Some(block(size.0, text(BLOCK_BYTES, seed))))
        }
        Body::Zero(size) if size.0 > BODY_KEPT_MAX => (Vec::new(), None, Some(block(size.0, vec![0; BLOCK_BYTES]))),
        Body::Generated(size) => (text(size.0 as usize, seed), None, None),
        Body::Zero(size) => (vec![0; size.0 as usize], None, None),
        Body::Text(text) => {
            let template = Template::parse(text)?;
            match template.is_fixed() {
                true => (text.clone().into_bytes(), None, None),
                false => (Vec::new(), Some(template), None),
            }
        }
        Body::File(path) => file_body(path)?,
    })
}

fn file_body(path: &Path) -> Result<(Vec<u8>, Option<Template>, Option<Long>)> {
    let failed = |cause: std::io::Error| {
        Error::request(format!("cannot read the body {}: {}", path.display(), loadline_base::error::plain(&cause)))
            .hint("specify a file that exists and is readable")
    };
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_file() && meta.len() > BODY_KEPT_MAX {
        let source = BodySource::File { path: path.to_owned(), file };
        return Ok((Vec::new(), None, Some(Long { bytes: meta.len(), source })));
    }
    Ok((bounded::bytes_of(file, BODY_KEPT_MAX).map_err(failed)?, None, None))
}

/// Printable text that does not compress well: 64 letters, ten per random number.
fn text(length: usize, seed: u64) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = SplitMix64::new(seed);
    let mut bytes = Vec::with_capacity(length + 9);
    while bytes.len() < length {
        let drawn = random.next();
        bytes.extend((0..10).map(|i| LETTERS[(drawn >> (6 * i)) as usize & 63]));
    }
    bytes.truncate(length);
    bytes
}

/// Whether a request states the length of its body.
pub(super) fn tells_length(method: Method, length: u64) -> bool {
    !matches!(method, Method::Get | Method::Head | Method::Options) || length > 0
}

pub(super) fn check_path(path: &str) -> Result<()> {
    let sound = |literal: &[u8]| literal.iter().all(u8::is_ascii_graphic);
    if path.starts_with('/') && Template::parse(path)?.literals().all(sound) {
        return Ok(());
    }
    Err(Error::request(format!("`{path}` is not valid in a request line"))
        .hint("start the path with `/` and percent-encode special characters (%XX)"))
}

pub(super) fn check_header(name: &str, value: &str) -> Result<()> {
    if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(Error::request(format!("Loadline sets the header `{name}` itself"))
            .hint("remove it; use the options for body, keep-alive, or expect-continue"));
    }
    let sound = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    if sound && !value.contains(['\r', '\n', '\0']) {
        return Ok(());
    }
    Err(Error::request(format!("`{}: {}` is not a valid header", name.escape_debug(), value.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Until;
    use loadline_base::units::Bytes;

    fn work(method: Method, headers: &[(&str, &str)], body: Body, keep_alive: bool) -> Work {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let request = Request { headers, body, ..Request::new(method, "/a?b") };
        Work { keep_alive, ..Work::closed(request, 1, Until::Requests(1)) }
    }

    fn encode(work: &Work, host: &str) -> Result<Messages> {
        Messages::encode(work, host, 7, Share::WHOLE)
    }

    /// The next request, byte for byte, with its extent.
    fn next(messages: &mut Messages) -> (String, Extent) {
        let (mut own, mut block, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let (index, extent) = messages.next(&mut own);
        loop {
            let piece = messages.get(index).piece(&own, whole.len() as u64, &mut block).unwrap();
            if piece.is_empty() {
                break;
            }
            // Behaves like a kernel that accepts only part of the data.
            let taken = piece.len().min(100_000);
            let piece = piece[..taken].to_vec();
            whole.extend_from_slice(&piece);
        }
        assert_eq!(extent.whole, whole.len() as u64);
        (String::from_utf8(whole).unwrap(), extent)
    }

    fn encoded(work: &Work) -> String {
        let (text, extent) = next(&mut encode(work, "h:1").unwrap());
        assert_eq!(text.find("\r\n\r\n").unwrap() as u64 + 4, extent.head);
        text
    }

    #[test]
    fn request_heads_follow_body_and_connection() {
        let get = work(Method::Get, &[("X-A", "b c")], Body::None, true);
        assert_eq!(encoded(&get), "GET /a?b HTTP/1.1\r\nHost: h:1\r\nX-A: b c\r\n\r\n");
        let head = work(Method::Head, &[], Body::None, true);
        assert_eq!(encoded(&head), "HEAD /a?b HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let post = work(Method::Post, &[("host", "other")], Body::None, false);
        assert_eq!(
            encoded(&post),
            "POST /a?b HTTP/1.1\r\nhost: other\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let put = encoded(&work(Method::Put, &[], Body::Generated(Bytes(25)), true));
        let (head, body) = put.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with("Content-Length: 25"), "{head}");
        assert_eq!(body.len(), 25);
        assert_eq!(put, encoded(&work(Method::Put, &[], Body::Generated(Bytes(25)), true)), "equal seeds, equal text");
        assert_ne!(text(25, 1), text(25, 2));
        assert!(encoded(&work(Method::Put, &[], Body::Zero(Bytes(3)), true)).ends_with("\r\n\r\n\0\0\0"));
    }

    #[test]
    fn placeholders_are_filled_per_request() {
        let mut filled = work(Method::Post, &[("Id", "{seq}")], Body::Text("<{seq}{seq}>".to_owned()), true);
        filled.request.path = "/{rand 5 5}/{seq}".to_owned();
        filled.request.expect_continue = true;
        let mut messages = encode(&filled, "h").unwrap();
        for sequence in [0, 1] {
            let (text, extent) = next(&mut messages);
            let head = format!(
                "POST /5/{sequence} HTTP/1.1\r\nHost: h\r\nId: {sequence}\r\nExpect: 100-continue\r\n\
                 Content-Length: 4\r\n\r\n"
            );
            assert_eq!(text, format!("{head}<{sequence}{sequence}>"));
            assert_eq!(extent.head, head.len() as u64);
        }
        let mut second = Messages::encode(&filled, "h", 7, Share { index: 1, count: 3 }).unwrap();
        assert!(next(&mut second).0.contains("Id: 1\r\n") && next(&mut second).0.contains("Id: 4\r\n"));
    }

    #[test]
    fn requests_are_drawn_by_weight() {
        let mut mix = work(Method::Get, &[], Body::None, true);
        mix.request.weight = 3;
        mix.others = vec![Request::new(Method::Get, "/other")];
        let mut messages = encode(&mix, "h").unwrap();
        let others = (0..10_000).filter(|_| messages.next(&mut Vec::new()).0 == 1).count();
        // Five standard deviations of a binomial with p = 0.25.
        assert!((2280..2720).contains(&others), "{others}");
    }

    #[test]
    fn long_bodies_are_generated_or_read_in_pieces() {
        let size = 3 * BODY_KEPT_MAX + 17;
        let generated = encoded(&work(Method::Put, &[], Body::Generated(Bytes(size)), true));
        let body = generated.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.len() as u64, size);
        assert_eq!(body[..BLOCK_BYTES], body[BLOCK_BYTES..2 * BLOCK_BYTES]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("body");
        std::fs::write(&path, body).unwrap();
        let from_file = encoded(&work(Method::Put, &[], Body::File(path.clone()), true));
        assert!(from_file == generated, "the file's content is sent unchanged");
        let mut messages = encode(&work(Method::Put, &[], Body::File(path.clone()), true), "h").unwrap();
        let (index, extent) = messages.next(&mut Vec::new());
        std::fs::write(&path, "short").unwrap();
        let mut block = Vec::new();
        let error = messages.get(index).piece(&[], extent.head + 100, &mut block).unwrap_err();
        assert!(error.what.contains("shrank"), "{error}");
    }

    #[test]
    fn bodies_come_from_files_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("body");
        let put = work(Method::Put, &[], Body::File(path.clone()), true);
        let error = encode(&put, "h").unwrap_err();
        assert!(error.what.contains(path.to_str().unwrap()), "{error}");
        std::fs::write(&path, "contents {seq}").unwrap();
        assert!(encoded(&put).ends_with("\r\n\r\ncontents {seq}"));
    }

    #[test]
    fn invalid_requests_are_rejected() {
        for (name, value) in [("connection", "close"), ("A", "b\r\nC: d"), ("", "x"), ("a b", "x"), ("expect", "x")] {
            assert!(encode(&work(Method::Get, &[(name, value)], Body::None, true), "h").is_err(), "{name}");
        }
        let mut odd = work(Method::Get, &[], Body::None, true);
        for path in ["", "a", "/a b", "/\u{fc}", "/\r\n", "/{rand 2 1}"] {
            odd.request.path = path.to_owned();
            assert!(encode(&odd, "h").is_err(), "{path}");
        }
    }
}
