//! A second parser of HTTP/1.1 responses, to check the first one: the whole stream in one pass, line by line, without
//! state, speed, or shared code. For tests and fuzzing only.
//!
//! If RFC 9112 leaves a choice, both parsers make the same one. A bare LF ends a header line, empty lines before a
//! head are skipped, and a contradictory head or a list of equal lengths (`5, 5`) is not a response.

use super::response::{Ending, HEAD_BYTES_MAX, Heads, Progress, ResponseReader};
use super::wanted::Wanted;
use crate::work::{Method, Request, Until, Work};
use loadline_base::numbers::SplitMix64;

/// Maximum number of random cuts of a stream.
const CUTS_MAX: u64 = 8;
/// Longer streams are not fed byte by byte, because a partial head is parsed again with each byte.
const BYTEWISE_MAX: usize = 600;
/// The characters allowed around a value.
const BLANKS: [char; 2] = [' ', '\t'];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamVerdict {
    /// A complete response, and the number of bytes after it.
    Answer { status: u16, keep_alive: bool, body_bytes: u64, rest: usize },
    /// The head is complete, but the body ends too early.
    Cut,
    /// Never a response, whatever follows.
    Broken,
    /// The head is incomplete, and may never be completed.
    Headless,
}

/// Judges the first response of a stream. `bodiless`: it responds to a HEAD.
pub(super) fn judge(stream: &[u8], bodiless: bool) -> StreamVerdict {
    let Some((lines, body)) = head_of(stream) else { return StreamVerdict::Headless };
    let Some(head) = ReferenceHead::of(&lines).filter(|_| stream.len() - body.len() <= HEAD_BYTES_MAX) else {
        return StreamVerdict::Broken;
    };
    if head.status < 200 {
        return judge(body, bodiless);
    }
    let (body_bytes, rest) = match head.body {
        _ if bodiless => (0, body.len()),
        Length::None => (0, body.len()),
        Length::Bytes(length) if body.len() < length as usize => return StreamVerdict::Cut,
        Length::Bytes(length) => (length, body.len() - length as usize),
        Length::UntilClose => (body.len() as u64, 0),
        Length::Chunks => match chunks(body) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        },
    };
    // Only an existing body can last until the close.
    let keep_alive = head.keep_alive && (bodiless || head.body != Length::UntilClose);
    StreamVerdict::Answer { status: head.status, keep_alive, body_bytes, rest }
}

/// The lines of the head, without their ends, and what follows it; `None` if no empty line ends it.
fn head_of(stream: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (mut lines, mut rest) = (Vec::new(), stream);
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        match (line.is_empty(), lines.is_empty()) {
            (false, _) => lines.push(line),
            (true, false) => return Some((lines, rest)),
            (true, true) => {}
        }
    }
}

/// How a head states the length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    None,
    Bytes(u64),
    Chunks,
    UntilClose,
}

struct ReferenceHead {
    status: u16,
    keep_alive: bool,
    body: Length,
}

impl ReferenceHead {
    /// `None` if it is malformed or contradicts itself.
    fn of(lines: &[&[u8]]) -> Option<Self> {
        let (first, fields) = lines.split_first()?;
        let (minor, status) = status_line(first)?;
        // The limit of the first parser.
        if fields.len() > 2048 {
            return None;
        }
        let fields = fields.iter().map(|line| field(line)).collect::<Option<Vec<_>>>()?;
        let values = |name: &str| -> Vec<&str> {
            fields.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
        };
        let mut lengths = values("content-length").into_iter().map(length).collect::<Option<Vec<_>>>()?;
        lengths.dedup();
        if lengths.len() > 1 || status < 100 || status == 101 {
            return None;
        }
        let codings = values("transfer-encoding").join(",").to_ascii_lowercase();
        let body = if status < 200 || status == 204 || status == 304 {
            Length::None
        } else if codings.rsplit(',').next().is_some_and(|last| last.trim_matches(BLANKS) == "chunked") {
            Length::Chunks
        } else if !values("transfer-encoding").is_empty() {
            Length::UntilClose
        } else {
            lengths.first().map_or(Length::UntilClose, |bytes| Length::Bytes(*bytes))
        };
        let connection = values("connection").join(",").to_ascii_lowercase();
        let says = |option: &str| connection.split(',').any(|word| word.trim_matches(BLANKS) == option);
        let keep_alive = (minor == 1 || says("keep-alive")) && !says("close");
        Some(Self { status, keep_alive, body })
    }
}

/// `HTTP/1.1 200 OK`, with the reason and the space before it optional.
fn status_line(line: &[u8]) -> Option<(u8, u16)> {
    let line = latin(line);
    let rest = line.strip_prefix("HTTP/1.")?;
    let (minor, rest) = rest.split_once(' ')?;
    let (code, reason) = (rest.get(..3)?, rest.get(3..)?);
    let printable = (reason.is_empty() || reason.starts_with(' ')) && reason.chars().all(is_text);
    let minor = ["0", "1"].iter().position(|digit| *digit == minor)?;
    if !printable || !code.chars().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((minor as u8, code.parse().ok()?))
}

/// `Name: value` with the name in lowercase.
fn field(line: &[u8]) -> Option<(String, String)> {
    let line = latin(line);
    let (name, value) = line.split_once(':')?;
    let sound = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
        && value.chars().all(is_text);
    sound.then(|| (name.to_ascii_lowercase(), value.trim_matches(BLANKS).to_owned()))
}

/// Bytes as characters with the same code.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Whether a character is allowed in a value or a reason.
fn is_text(c: char) -> bool {
    c == '\t' || (c >= ' ' && c != '\x7f')
}

/// A length of at most 18 digits.
fn length(text: &str) -> Option<u64> {
    let sound = (1..=18).contains(&text.len()) && text.chars().all(|digit| digit.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}

fn chunks(body: &[u8]) -> Result<(u64, usize), StreamVerdict> {
    let (mut rest, mut total, mut spent) = (body, 0, 0);
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits > 15 {
            return Err(StreamVerdict::Broken);
        }
        let size = u64::from_str_radix(&latin(&rest[..digits]), 16).unwrap_or(0);
        rest = match (&rest[digits..], digits) {
            ([], _) => return Err(StreamVerdict::Cut),
            (_, 0) => return Err(StreamVerdict::Broken),
            (rest @ [b'\r', ..], _) => rest,
            ([b';' | b' ' | b'\t', rest @ ..], _) => {
                let end = rest.iter().position(|byte| *byte == b'\r');
                spent += end.unwrap_or(rest.len());
                bounded(spent)?;
                &rest[end.ok_or(StreamVerdict::Cut)?..]
            }
            _ => return Err(StreamVerdict::Broken),
        };
        rest = line_end(rest)?;
        if size == 0 {
            return trailers(rest, spent).map(|left| (total, left));
        }
        if (rest.len() as u64) < size {
            return Err(StreamVerdict::Cut);
        }
        total += size;
        rest = line_end(&rest[size as usize..])?;
    }
}

/// Returns the number of bytes after the trailers, which end with an empty line.
fn trailers(mut rest: &[u8], mut spent: usize) -> Result<usize, StreamVerdict> {
    while rest.first().is_some_and(|byte| *byte != b'\r') {
        // A line has at least one byte, whatever it is.
        let end = rest.iter().skip(1).position(|byte| *byte == b'\n').map(|end| end + 1);
        spent += end.unwrap_or(rest.len());
        bounded(spent)?;
        rest = &rest[end.ok_or(StreamVerdict::Cut)? + 1..];
    }
    line_end(rest).map(<[u8]>::len)
}

/// Extensions and trailers share one limit.
fn bounded(spent: usize) -> Result<(), StreamVerdict> {
    if spent > HEAD_BYTES_MAX { Err(StreamVerdict::Broken) } else { Ok(()) }
}

/// Returns the bytes after a CRLF.
fn line_end(bytes: &[u8]) -> Result<&[u8], StreamVerdict> {
    match bytes {
        [b'\r', b'\n', rest @ ..] => Ok(rest),
        [] | [b'\r'] => Err(StreamVerdict::Cut),
        _ => Err(StreamVerdict::Broken),
    }
}

pub(super) fn read<'a>(heads: &mut Heads, bodiless: bool, pieces: impl Iterator<Item = &'a [u8]>) -> StreamVerdict {
    let request = Request::new(if bodiless { Method::Head } else { Method::Get }, "/");
    let wanted = Wanted::of(&Work::closed(request.clone(), 1, Until::Requests(1)), &request);
    let mut reader = ResponseReader::default();
    let mut pieces = pieces.filter(|piece| !piece.is_empty());
    let answer = |answer: super::response::ResponseFacts, rest| {
        assert!(answer.fits, "a response without checks always fits");
        let super::response::ResponseFacts { status, keep_alive, body_bytes, .. } = answer;
        StreamVerdict::Answer { status, keep_alive, body_bytes, rest }
    };
    while let Some(piece) = pieces.next() {
        match reader.feed(heads, &wanted, piece) {
            Progress::More => {}
            Progress::Done { answer: said, left } => {
                return answer(said, left + pieces.map(<[u8]>::len).sum::<usize>());
            }
            Progress::Broken => return StreamVerdict::Broken,
        }
    }
    let headless = reader.status() == 0;
    match reader.end(&wanted) {
        Ending::Done(said) => answer(said, 0),
        Ending::Nothing => StreamVerdict::Headless,
        Ending::Cut if headless => StreamVerdict::Headless,
        Ending::Cut => StreamVerdict::Cut,
    }
}

/// Whether both parsers may return these results for one stream.
pub(super) fn agree(first: StreamVerdict, reference: StreamVerdict) -> bool {
    // The first may detect a broken head early.
    first == reference || (reference == StreamVerdict::Headless && first == StreamVerdict::Broken)
}

/// Panics if the two parsers differ, or the first one gives different results in pieces.
///
/// The input's first byte determines whether it responds to a HEAD (`H`), and the second where the stream is cut.
pub(super) fn check(input: &[u8]) {
    let [method, cuts, stream @ ..] = input else { return };
    let (bodiless, mut random) = (*method == b'H', SplitMix64::new(u64::from(*cuts)));
    let reference = judge(stream, bodiless);
    let mut heads = Heads::default();
    let whole = read(&mut heads, bodiless, std::iter::once(stream));
    assert!(agree(whole, reference), "{whole:?}, but the reference says {reference:?}");
    assert_eq!(read(&mut heads, bodiless, std::iter::once(stream)), whole, "a cached head gives the same result");
    let mut cuts: Vec<usize> =
        (0..random.below(CUTS_MAX)).map(|_| random.below(stream.len() as u64 + 1) as usize).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    let pieces = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
    assert_eq!(read(&mut Heads::default(), bodiless, pieces), whole, "cut at {cuts:?}");
    if stream.len() <= BYTEWISE_MAX {
        assert_eq!(read(&mut Heads::default(), bodiless, stream.chunks(1)), whole, "read byte by byte");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    /// Pieces of valid and broken responses.
    const PIECES: [&str; 44] = [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103\r\nLink: <x>\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n",
        "HTTP/1.1 101 Switching\r\n",
        "HTTP/1.1 99",
        "Content-Length: 5\r\n",
        "Content-Length: 5\r\n",
        "Content-Length:\t0\r\n",
        "content-length: 007 \n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 1000000000000000000\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding: gzip , Chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding:\r\n",
        "Connection: close\r\n",
        "Connection: keep-alive, X\r\n",
        "Name: \u{e9}value \t\r\n",
        "Na me: value\r\n",
        ": value\r\n",
        " folded\r\n",
        "\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "\0",
        "5\r\nhello\r\n",
        "5;name=\"value\"\r\nhello\r\n",
        "0A \r\n0123456789\r\n",
        "fffffffffffffff\r\n",
        "10000000000000000\r\n",
        "0\r\n\r\n",
        "0\r\nTrailer: x\r\n\r\n",
        "00;x\r\n\n\r\n",
        "hello",
        "hello world, ",
        "5\r\n",
        "HTTP/1.1 500 Next\r\nContent-Length: 0\r\n\r\n",
    ];

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..12);
        let changes = prop::collection::vec((any::<usize>(), any::<u8>()), 0..3);
        (0..4usize, pieces, changes).prop_map(|(first, pieces, changes)| {
            let mut stream = [PIECES[first], &pieces.concat()].concat().into_bytes();
            for (place, byte) in changes {
                let place = place % stream.len();
                stream[place] = byte;
            }
            stream
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn both_parsers_agree_at_every_cut(stream in stream(), bodiless in any::<bool>()) {
            let reference = judge(&stream, bodiless);
            let whole = read(&mut Heads::default(), bodiless, std::iter::once(&stream[..]));
            prop_assert!(agree(whole, reference), "{:?}, but the reference says {:?}", whole, reference);
            for cut in 0..=stream.len() {
                let (first, second) = stream.split_at(cut);
                let said = read(&mut Heads::default(), bodiless, [first, second].into_iter());
                prop_assert_eq!(said, whole, "cut at {}", cut);
            }
        }
    }

    /// Mutates a seed like a fuzzer: changes bytes, inserts and removes pieces, appends the end of another seed.
    fn mangle(seeds: &[Vec<u8>], random: &mut SplitMix64) -> Vec<u8> {
        let mut pick = |count: usize| random.below(count as u64) as usize;
        let mut input = seeds[pick(seeds.len())].clone();
        for _ in 0..=pick(4) {
            let place = pick(input.len() + 1);
            match pick(5) {
                0 if place < input.len() => input[place] = pick(256) as u8,
                1 => drop(input.splice(place..place, PIECES[pick(PIECES.len())].bytes())),
                2 => drop(input.drain(place..place + pick(input.len() - place + 1))),
                3 => {
                    let other = &seeds[pick(seeds.len())];
                    input.truncate(place);
                    input.extend(&other[pick(other.len())..]);
                }
                _ => {
                    let end = place + pick(input.len() - place + 1);
                    let again = input[place..end].to_vec();
                    drop(input.splice(end..end, again));
                }
            }
        }
        input
    }

    /// The corpus keeps the inputs that fuzzing found, so every toolchain tests them and their neighbors.
    #[test]
    fn the_parsers_agree_on_the_corpus_and_its_neighbors() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/response");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(seeds.len() > 20);
        seeds.iter().for_each(|seed| check(seed));
        let mut random = SplitMix64::new(1);
        // This takes a few seconds in either build profile.
        for _ in 0..if cfg!(debug_assertions) { 20_000 } else { 200_000 } {
            let input = mangle(&seeds, &mut random);
            if let Err(panic) = std::panic::catch_unwind(|| check(&input)) {
                panic!("{panic:?}: add this to the corpus: {}", input.escape_ascii());
            }
        }
    }
}
