//! Reads a text file of the archive line by line in bounded memory, and records unreadable parts.

use crate::bounded;
use crate::error::plain;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Large enough to need few system calls.
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct TextLine<'a> {
    /// Includes the newline.
    pub(super) bytes: &'a [u8],
    /// Starts at 1.
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    bytes_max: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum NextLine {
    /// A complete line, in the buffer.
    Whole,
    /// A line without a newline at its end.
    Cut,
    /// A line longer than any that Loadline writes.
    TooLong,
    End,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R, bytes_max: usize) -> Self {
        Self { input: BufReader::with_capacity(BUFFER_BYTES, input), line: Vec::new(), number: 0, bytes_max }
    }

    fn advance(&mut self) -> io::Result<NextLine> {
        self.line.clear();
        self.number += 1;
        let read = self.input.by_ref().take(self.bytes_max as u64).read_until(b'\n', &mut self.line)?;
        Ok(match self.line.last() {
            None => NextLine::End,
            Some(b'\n') => NextLine::Whole,
            Some(_) if read < self.bytes_max => NextLine::Cut,
            Some(_) => {
                self.skip_line()?;
                NextLine::TooLong
            }
        })
    }

    /// Skips past the next newline.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            let over = end.is_some() || buffer.is_empty();
            self.input.consume(used);
            if over {
                return Ok(());
            }
        }
    }
}

/// Unreadable parts of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gaps {
    file: &'static str,
    unopened: Option<String>,
    damaged: u64,
    damaged_first: u64,
    cut_at: Option<u64>,
    trouble: Option<String>,
}

impl Gaps {
    pub(super) fn of(file: &'static str) -> Self {
        Self { file, unopened: None, damaged: 0, damaged_first: 0, cut_at: None, trouble: None }
    }

    pub(super) fn open(&mut self, path: &Path, bytes_max: usize) -> Option<Lines<File>> {
        match bounded::open(path) {
            Ok(file) => Some(Lines::new(file, bytes_max)),
            Err(cause) => {
                self.unopened = Some(plain(&cause));
                None
            }
        }
    }

    /// The next complete line; records and skips all others.
    pub(super) fn next<'a, R: Read>(&mut self, lines: &'a mut Lines<R>) -> Option<TextLine<'a>> {
        loop {
            match lines.advance() {
                Ok(NextLine::Whole) => break,
                Ok(NextLine::TooLong) => self.damaged(lines.number),
                Ok(NextLine::Cut) => {
                    self.cut_at = Some(lines.number);
                    return None;
                }
                Ok(NextLine::End) => return None,
                Err(cause) => {
                    self.trouble = Some(plain(&cause));
                    return None;
                }
            }
        }
        Some(TextLine { bytes: &lines.line, number: lines.number })
    }

    pub(super) fn damaged(&mut self, number: u64) {
        self.damaged += 1;
        if self.damaged == 1 {
            self.damaged_first = number;
        }
    }

    /// Why the file could not be opened.
    pub(super) fn unopened(&self) -> Option<&str> {
        self.unopened.as_deref()
    }

    /// A description; `None` if everything was read.
    pub(super) fn words(&self) -> Option<String> {
        let mut words = Vec::new();
        words.extend(self.unopened.as_ref().map(|why| format!("it could not be opened: {why}")));
        match self.damaged {
            0 => {}
            1 => words.push(format!("line {} is damaged and was skipped", self.damaged_first)),
            n => {
                words.push(format!("{n} lines are damaged and were skipped; the first is line {}", self.damaged_first))
            }
        }
        words.extend(self.cut_at.map(|line| format!("line {line} is truncated, and nothing follows")));
        words.extend(self.trouble.as_ref().map(|why| format!("the rest could not be read: {why}")));
        (!words.is_empty()).then(|| format!("{}: {}", self.file, words.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of at most 8 bytes, and the description of the rest.
    fn read(text: &[u8]) -> (Vec<String>, Option<String>) {
        let (mut lines, mut gaps) = (Lines::new(text, 8), Gaps::of("x"));
        let mut found = Vec::new();
        while let Some(line) = gaps.next(&mut lines) {
            found.push(format!("{}{}", line.number, String::from_utf8_lossy(line.bytes)));
        }
        (found, gaps.words())
    }

    #[test]
    fn complete_lines_are_read_and_others_reported() {
        assert_eq!(read(b""), (vec![], None));
        assert_eq!(read(b"a\n\nb\n"), (vec!["1a\n".to_owned(), "2\n".to_owned(), "3b\n".to_owned()], None));
        let cut = Some("x: line 2 is truncated, and nothing follows".to_owned());
        assert_eq!(read(b"a\nbc"), (vec!["1a\n".to_owned()], cut));
        let long = Some("x: line 2 is damaged and was skipped".to_owned());
        assert_eq!(read(b"a\n0123456789abcdef\nc\n"), (vec!["1a\n".to_owned(), "3c\n".to_owned()], long));
        assert_eq!(read(b"0123456\n"), (vec!["10123456\n".to_owned()], None));
    }
}
