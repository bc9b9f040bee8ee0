//! The subject's stdout and stderr: last lines, markers, complaints, and a bounded copy in a file.

use super::complaint::{Complaint, ComplaintKind};
use super::heard::{Heard, Keeps};
use super::lines::Lines;
use super::log_file::LogFile;
use super::marker::Marker;
use super::stack_traces::StackTraces;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::scenario::Ready;
use regex_lite::Regex;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TAIL_LINES: usize = 200;
/// A subject in trouble repeats its complaints.
const COMPLAINTS_MAX: usize = 50;
/// If a subject prints more markers per trial, Loadline cannot measure at each of them.
const MARKERS_MAX: usize = 100_000;
/// Shorter lines contain no complaint or built-in marker.
const SEARCHED_BYTES_MIN: usize = 8;
/// Lines shown with an error.
pub(super) const SAID_LINES: usize = 10;

/// Patterns to watch for.
#[derive(Debug, Default)]
pub struct Watch {
    ready: Option<Regex>,
    phases: Vec<Regex>,
}

impl Watch {
    /// Watches for this readiness check and these additional phase marker patterns.
    pub fn new(ready: &Ready, phases: &[String]) -> Result<Self> {
        let compile = |pattern: &str| {
            Regex::new(pattern)
                .map_err(|cause| Error::request(format!("`{pattern}` is not a regular expression: {cause}")))
        };
        let ready = match ready {
            Ready::Log(pattern) => Some(compile(pattern)?),
            _ => None,
        };
        Ok(Self { ready, phases: phases.iter().map(|pattern| compile(pattern)).collect::<Result<_>>()? })
    }
}

/// The output so far. Clones are cheap because they share it.
#[derive(Debug, Clone)]
pub struct Output {
    heard: Arc<Heard<OutputState>>,
}

#[derive(Debug, Default)]
struct OutputState {
    watch: Watch,
    lines: Lines,
    /// Bytes, because most lines are never read.
    tail: VecDeque<Vec<u8>>,
    bytes: u64,
    markers: Vec<Marker>,
    complaints: Vec<Complaint>,
    traces: StackTraces,
    ready_at: Option<Duration>,
}

impl Output {
    /// Starts reading. Errors: `Machine` if the log or a thread cannot be created.
    pub(super) fn read(
        from: impl Read + Send + 'static,
        watch: Watch,
        log: Option<&Path>,
        clock: Clock,
    ) -> Result<Self> {
        let log = log.map(LogFile::create).transpose()?;
        Ok(Self { heard: Heard::begin(from, OutputState { watch, ..OutputState::default() }, log, clock)? })
    }

    /// The last `count` of the 200 kept lines, oldest first, without newlines and control characters.
    pub fn tail_texts(&self, count: usize) -> Vec<String> {
        let state = self.heard.lock();
        let skipped = state.kept.tail.len().saturating_sub(count);
        state.kept.tail.iter().skip(skipped).map(|line| readable(line)).collect()
    }

    /// Adds the last lines to an error.
    pub fn said_in(&self, error: Error) -> Error {
        error.said(self.tail_texts(SAID_LINES))
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.heard.lock().kept.bytes
    }

    /// The marker at this index, once printed. Lines with only counters are markers, too.
    pub fn marker(&self, index: usize) -> Option<Marker> {
        self.heard.lock().kept.markers.get(index).cloned()
    }

    /// Whether markers were dropped because there were too many.
    pub fn markers_full(&self) -> bool {
        self.heard.lock().kept.markers.len() >= MARKERS_MAX
    }

    /// When a line first matched the readiness pattern.
    pub fn ready_at(&self) -> Option<Duration> {
        self.heard.lock().kept.ready_at
    }

    /// When this phase was first marked.
    pub fn phase_at(&self, name: &str) -> Option<Duration> {
        self.heard
            .lock()
            .kept
            .markers
            .iter()
            .find(|marker| marker.phase.as_deref() == Some(name))
            .map(|marker| marker.at)
    }

    /// The first 50 complaints.
    pub fn complaints(&self) -> Vec<Complaint> {
        self.heard.lock().kept.complaints.clone()
    }

    /// The first line with `java.lang.OutOfMemoryError`.
    pub fn out_of_memory_error(&self) -> Option<String> {
        let state = self.heard.lock();
        let found = state.kept.complaints.iter().find(|complaint| complaint.kind == ComplaintKind::OutOfMemoryError);
        found.map(|complaint| complaint.line.trim().to_owned())
    }

    /// The stack traces so far.
    pub fn stack_traces(&self) -> StackTraces {
        self.heard.lock().kept.traces.clone()
    }

    /// Why the log file is incomplete, apart from its size limit.
    pub fn log_trouble(&self) -> Option<Error> {
        self.heard.lock().log_trouble.clone()
    }

    /// Waits until all output has been read. Returns false on timeout.
    pub(super) fn drain(&self) -> bool {
        self.heard.drain()
    }
}

/// Without colors and control characters, which would disturb a terminal.
pub(super) fn readable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let (mut rest, mut shown) = (text.trim_end_matches('\r'), String::new());
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match after_colour(c, rest) {
            Some(after) => rest = after,
            // Stack traces are indented with tabs.
            None if c == '\t' => shown.push_str("    "),
            None => shown.push(if c.is_control() { '\u{fffd}' } else { c }),
        }
    }
    shown
}

/// The text after a color sequence: `ESC[1;92m`, as loggers write it.
fn after_colour(c: char, rest: &str) -> Option<&str> {
    let parameters = rest.strip_prefix('[').filter(|_| c == '\u{1b}')?;
    parameters.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').strip_prefix('m')
}

impl Keeps for OutputState {
    fn take(&mut self, bytes: &[u8], at: Duration) {
        self.bytes += bytes.len() as u64;
        let mut lines = std::mem::take(&mut self.lines);
        lines.split(bytes, |line| self.take_line(line, at));
        self.lines = lines;
    }

    fn end(&mut self, at: Duration) {
        std::mem::take(&mut self.lines).finish(|line| self.take_line(line, at));
    }
}

impl OutputState {
    fn take_line(&mut self, line: &[u8], at: Duration) {
        let awaited = !self.watch.phases.is_empty() || (self.watch.ready.is_some() && self.ready_at.is_none());
        if awaited || line.len() >= SEARCHED_BYTES_MIN {
            self.search(&String::from_utf8_lossy(line), at);
        }
        self.traces.take_line(line, self.tail.back().map(Vec::as_slice));
        // A full ring recycles its oldest buffer, which avoids an allocation per line.
        let mut kept = match self.tail.len() {
            TAIL_LINES.. => self.tail.pop_front().unwrap_or_default(),
            _ => Vec::new(),
        };
        kept.clear();
        kept.extend_from_slice(line);
        self.tail.push_back(kept);
    }

    fn search(&mut self, line: &str, at: Duration) {
        if self.ready_at.is_none() && self.watch.ready.as_ref().is_some_and(|pattern| pattern.is_match(line)) {
            self.ready_at = Some(at);
        }
        if self.markers.len() < MARKERS_MAX {
            self.markers.extend(Marker::parse(line, &self.watch.phases, at));
        }
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.extend(Complaint::parse(line));
        }
    }
}

/// Output without a process, for tests.
#[cfg(test)]
impl Output {
    pub(crate) fn made_up() -> Self {
        Self { heard: Arc::default() }
    }

    /// Simulates a line read at this time.
    pub(crate) fn say(&self, line: &str, at: Duration) {
        self.heard.lock().kept.take_line(line.as_bytes(), at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: Vec<u8>) -> Output {
        let watch = Watch::new(&Ready::Log("^Started in \\d+".to_owned()), &[]).unwrap();
        let output = Output::read(std::io::Cursor::new(bytes), watch, None, Clock::start()).unwrap();
        assert!(output.drain());
        output
    }

    #[test]
    fn readiness_markers_and_complaints_are_found_in_output() {
        let text =
            "Started in 12 s\nloadline: phase=a x=1\r\njava.lang.OutOfMemoryError: Java heap space\n\tat X\nno end";
        let output = read(text.into());
        assert!(output.ready_at().is_some());
        assert!(output.phase_at("a").is_some());
        assert_eq!(output.marker(0).unwrap().values, [("x".to_owned(), "1".to_owned())]);
        assert_eq!(output.marker(1), None);
        assert_eq!(output.out_of_memory_error().unwrap(), "java.lang.OutOfMemoryError: Java heap space");
        assert_eq!(output.tail_texts(2), ["    at X", "no end"]);
        assert_eq!(output.bytes(), text.len() as u64);
    }

    #[test]
    fn garbage_output_is_sanitized_and_limited() {
        let mut bytes: Vec<u8> = vec![0xff, 0x1b, b'[', b'2', b'J', b'\n'];
        bytes.extend(std::iter::repeat_n(b"line\n", 1000).flatten());
        bytes.extend(std::iter::repeat_n(b'x', 1 << 20));
        let output = read(bytes);
        let tail = output.tail_texts(usize::MAX);
        assert_eq!(tail.len(), TAIL_LINES);
        assert!(tail[TAIL_LINES - 1].len() < 8192);
        assert_eq!(read(vec![0xff, 0x1b, b'[']).tail_texts(1), ["\u{fffd}\u{fffd}["]);
        let coloured = b"[\x1b[1;92mINFO\x1b[0m] \x1b[mready \x1b[2J".to_vec();
        assert_eq!(read(coloured).tail_texts(1), ["[INFO] ready \u{fffd}[2J"]);
    }

    #[test]
    fn a_full_disk_is_reported_and_output_is_still_read() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return loadline_test_support::skip("LOADLINE_MACHINE", "there is no /dev/full");
        }
        let log = LogFile::of(full, std::fs::File::options().write(true).open(full).unwrap());
        let from = std::io::Cursor::new(b"one\ntwo\n");
        let heard = Heard::begin(from, OutputState::default(), Some(log), Clock::start()).unwrap();
        let output = Output { heard };
        assert!(output.drain());
        assert_eq!(output.tail_texts(9), ["one", "two"]);
        assert!(output.log_trouble().unwrap().what.contains("No space left"));
    }

    #[test]
    fn an_invalid_pattern_is_an_invalid_request() {
        assert!(Watch::new(&Ready::Log("(".to_owned()), &[]).is_err());
        assert!(Watch::new(&Ready::Tcp, &["(".to_owned()]).is_err());
    }
}
