//! Parses a JVM's metaspace log: the birth and death of arenas, requested and returned blocks, and phase markers.
//!
//! Samples from JDK 17, 21, and 25 with `-Xlog:disable -Xlog:metaspace*=trace:stdout:level`; JDK 25 writes only one
//! colon before `born`:
//!
//! ```text
//! [debug] Arena @0x00007fe3ec03c0f0 (non-class sm): : born.
//! [trace] Arena @0x00007fe3ec03c0f0 (non-class sm): requested 63 words.
//! [trace] Arena @0x00007fe3ec03c0f0 (non-class sm): deallocating 0x00007fe3d10169b8, word size: 2.
//! [debug] Arena @0x00007fe3ec1f5ea0 (non-class sm): : dies.
//! loadline: phase=spike wait=1
//! ```

use std::io::{self, BufRead};

/// Longer lines are truncated to this length. The longest relevant line is 120 bytes long.
const LINE_BYTES_MAX: usize = 4096;
/// The start of a marker; pairs such as `phase=spike` follow it.
const MARKER: &str = "loadline: ";

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogLine {
    /// An arena was created. Its address, `at`, can be reused later.
    Born { at: u64 },
    /// An arena received a request for this many 8-byte words.
    Requested { at: u64, words: u64 },
    /// A block was returned before its arena died.
    Returned,
    /// An arena died, which freed all its blocks.
    Dies { at: u64 },
    /// The subject started a phase.
    Phase(String),
}

/// Parses a line (without its newline); returns `None` for an irrelevant line.
pub(crate) fn parse(line: &[u8]) -> Option<LogLine> {
    let mut rest = line;
    while rest.first() == Some(&b'[') {
        let close = rest.iter().position(|byte| *byte == b']')?;
        rest = rest[close + 1..].trim_ascii_start();
    }
    if let Some(rest) = rest.strip_prefix(b"Arena @0x") {
        return parse_arena(rest);
    }
    let is_marker = line.windows(MARKER.len()).any(|part| part == MARKER.as_bytes());
    // Only markers are converted to text, because millions of other lines are not markers.
    let text = is_marker.then(|| String::from_utf8_lossy(line))?;
    let mut pairs = text.split_once(MARKER)?.1.split_ascii_whitespace();
    pairs.find_map(|pair| pair.strip_prefix("phase=")).map(|name| LogLine::Phase(name.to_owned()))
}

/// Parses the text after `Arena @0x`.
fn parse_arena(rest: &[u8]) -> Option<LogLine> {
    let digits = rest.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    let at = u64::from_str_radix(std::str::from_utf8(&rest[..digits]).ok()?, 16).ok()?;
    let rest = rest[digits..].strip_prefix(b" (")?;
    // The arena's name is in parentheses, and does not contain any parentheses itself.
    let close = rest.iter().position(|byte| *byte == b')')?;
    let rest = rest[close + 1..].strip_prefix(b": ")?;
    let rest = rest.strip_prefix(b": ").unwrap_or(rest);
    match rest {
        b"born." => return Some(LogLine::Born { at }),
        b"dies." => return Some(LogLine::Dies { at }),
        _ if rest.starts_with(b"deallocating ") => return Some(LogLine::Returned),
        _ => {}
    }
    let words = rest.strip_prefix(b"requested ")?.strip_suffix(b" words.")?;
    if !words.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(LogLine::Requested { at, words: std::str::from_utf8(words).ok()?.parse().ok()? })
}

/// Reads any input line by line, in bounded memory.
pub(crate) struct Lines<R> {
    from: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, line: Vec::with_capacity(LINE_BYTES_MAX) }
    }

    /// Returns the next line without its newline, truncated if it is too long; `None` at the end of the input.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut any = false;
        loop {
            let available = self.from.fill_buf()?;
            if available.is_empty() {
                return Ok(any.then_some(self.line.as_slice()));
            }
            any = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let room = LINE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(self.line.trim_ascii_end()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(line: &str, expect: Option<LogLine>) {
        assert_eq!(parse(line.as_bytes()), expect, "{line}");
    }

    #[test]
    fn arena_allocations_are_read() {
        let at = 0x7fe3;
        check(
            "[trace] Arena @0x00007fe3 (non-class sm): requested 63 words.",
            Some(LogLine::Requested { at, words: 63 }),
        );
        check(
            "[0.1s][trace][metaspace] Arena @0x7fe3 (class sm): requested 1 words.",
            Some(LogLine::Requested { at, words: 1 }),
        );
        check("[debug] Arena @0x00007fe3 (non-class sm): : born.", Some(LogLine::Born { at }));
        check("[debug] Arena @0x00007fe3 (non-class arena): born.", Some(LogLine::Born { at }));
        check("[debug] Arena @0x00007fe3 (non-class arena): : dies.", Some(LogLine::Dies { at }));
        check("[trace] Arena @0x7fe3 (non-class sm): deallocating 0x7f, word size: 2.", Some(LogLine::Returned));
        check("loadline: phase=spike wait=1", Some(LogLine::Phase("spike".into())));
    }

    #[test]
    fn other_log_lines_are_ignored() {
        for line in [
            "",
            "[",
            "[trace",
            "[trace] Arena @0x",
            "[trace] Arena @0x7fe3 (non-class sm): returning 0x1.",
            "[trace] Arena @0x7fe3 (non-class sm): requested -1 words.",
            "[trace] Arena @0x7fe3 (non-class sm): requested +1 words.",
            "[trace] Arena @0x7fe3 (non-class sm): requested 99999999999999999999 words.",
            "[trace] Arena @0x11112222333344445 (non-class sm): requested 1 words.",
            "[debug] ChkMgr @0x1 (non-class-space): requested chunk: pref_level: lv02, max_level: lv14.",
            "[debug] CLMS @0x00007fe3 : dies.",
            "[debug] VsListNode @0x1 base 0x1 : born (word_size 8388608).",
            "loadline: ops=1 s=1",
            "say: Arena @0x7fe3 (non-class sm): requested 1 words.",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn long_lines_are_truncated_and_the_next_one_is_complete() {
        let text = format!("{}\nb\r\n\nc", "a".repeat(3 * LINE_BYTES_MAX));
        for capacity in [1, 7, 100_000] {
            let mut lines = Lines::new(io::BufReader::with_capacity(capacity, text.as_bytes()));
            let mut seen = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                seen.push(line.len());
            }
            assert_eq!(seen, [LINE_BYTES_MAX, 1, 0, 1]);
        }
    }

    proptest! {
        #[test]
        fn any_line_can_be_parsed(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&line);
            parse(&[b"[trace] Arena @0x1 ", line.as_slice()].concat());
            parse(&[b"loadline: ", line.as_slice()].concat());
        }
    }
}
