//! Converts a JVM's metaspace log to a trace. Its memory use depends only on the number of class loaders.

use super::error::{Error, Result};
use super::log::{Lines, LogLine, parse};
use super::trace::{ARENAS_MAX, Event, WORDS_MAX, Writer, is_name};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, BufRead, Write};

/// The maximum number of phases per log; no real experiment has more.
const PHASES_MAX: usize = 1000;

/// A summary of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// The number of requested blocks.
    pub(crate) blocks: u64,
    /// The total size of these blocks, in bytes.
    pub(crate) bytes: u64,
    /// The number of arenas that requested at least one block.
    pub(crate) arenas: u64,
    /// The number of blocks returned before their arena died. The trace omits these returns.
    pub(crate) returned: u64,
    /// The phase names, in order.
    pub(crate) phases: Vec<String>,
}

/// Reads the log and writes the trace. Fails on I/O errors, or if the log contains no allocations.
pub(crate) fn record(log: impl BufRead, to: impl Write) -> Result<Summary> {
    let writer = Writer::new(to).map_err(|error| cannot_write(&error))?;
    let mut recorder =
        Recorder { writer, numbers: HashMap::new(), free: BinaryHeap::new(), summary: Summary::default() };
    let mut lines = Lines::new(log);
    let unreadable = |error: io::Error| Error::io("read", "the log", &error);
    while let Some(line) = lines.next().map_err(unreadable)? {
        if let Some(line) = parse(line) {
            recorder.take(line)?;
        }
    }
    recorder.finish()
}

struct Recorder<W: Write> {
    writer: Writer<W>,
    /// Each live arena's number, by the arena's address.
    numbers: HashMap<u64, u32>,
    /// All unused numbers below `numbers.len() + free.len()`.
    free: BinaryHeap<Reverse<u32>>,
    summary: Summary,
}

impl<W: Write> Recorder<W> {
    fn take(&mut self, line: LogLine) -> Result<()> {
        match line {
            LogLine::Requested { at, words } => match u32::try_from(words) {
                Ok(words) if (1..=WORDS_MAX).contains(&words) => self.allocate(at, words),
                // The JVM itself rejects such a request.
                _ => Ok(()),
            },
            // Any earlier arena at this address is gone, even if the log has no line that says so.
            LogLine::Born { at } | LogLine::Dies { at } => self.die(at),
            LogLine::Returned => {
                self.summary.returned += 1;
                Ok(())
            }
            LogLine::Phase(name) => self.mark(name),
        }
    }

    fn allocate(&mut self, at: u64, words: u32) -> Result<()> {
        let arena = match self.numbers.get(&at) {
            Some(arena) => *arena,
            None => {
                let fresh = self.numbers.len() as u32;
                if fresh >= ARENAS_MAX {
                    return Err(Error::request(format!("the log has more than {ARENAS_MAX} arenas alive at once")));
                }
                let arena = self.free.pop().map_or(fresh, |Reverse(arena)| arena);
                self.numbers.insert(at, arena);
                self.summary.arenas += 1;
                arena
            }
        };
        self.summary.blocks += 1;
        self.summary.bytes += u64::from(words) * 8;
        self.write(&Event::Allocate { arena, words })
    }

    fn die(&mut self, at: u64) -> Result<()> {
        let Some(arena) = self.numbers.remove(&at) else { return Ok(()) };
        self.free.push(Reverse(arena));
        self.write(&Event::Die { arena })
    }

    fn mark(&mut self, name: String) -> Result<()> {
        if !is_name(&name) {
            let hint = "use at most 64 characters: letters, digits, `-`, `_`, and `.`";
            return Err(Error::request(format!("`{name}` is not a valid phase name")).hint(hint));
        }
        if self.summary.phases.len() == PHASES_MAX {
            return Err(Error::request(format!("the log contains more than {PHASES_MAX} phases")));
        }
        self.write(&Event::Mark { name: name.clone() })?;
        self.summary.phases.push(name);
        Ok(())
    }

    fn write(&mut self, event: &Event) -> Result<()> {
        self.writer.write(event).map_err(|error| cannot_write(&error))
    }

    fn finish(self) -> Result<Summary> {
        if self.summary.blocks == 0 {
            let hint = "run JDK 17 or newer with `-Xlog:disable -Xlog:metaspace*=trace:stdout:level`";
            return Err(Error::request("the log contains no metaspace allocations").hint(hint));
        }
        self.writer.finish().map_err(|error| cannot_write(&error))?;
        Ok(self.summary)
    }
}

fn cannot_write(error: &io::Error) -> Error {
    Error::io("write", "the trace", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::read;
    use proptest::prelude::*;

    fn recorded(log: &[u8]) -> Result<(Summary, Vec<Event>)> {
        let mut bytes = Vec::new();
        let summary = record(log, &mut bytes)?;
        Ok((summary, read(&bytes)?))
    }

    #[test]
    fn a_log_becomes_a_trace() {
        let log = "\
[info]  - commit_granule_bytes: 65536.
[debug] Arena @0xa0 (non-class sm): : born.
[trace] Arena @0xa0 (non-class sm): requested 63 words.
[debug] ChkMgr @0xff (non-class-space): requested chunk: pref_level: lv02.
loadline: phase=empty wait=1
[trace] Arena @0xb0 (class sm): requested 2 words.
[trace] Arena @0xa0 (non-class sm): deallocating 0x1, word size: 2.
[debug] Arena @0xa0 (non-class sm): : dies.
[debug] Arena @0xcc (non-class sm): : dies.
[trace] Arena @0xc0 (non-class sm): requested 0 words.
[trace] Arena @0xc0 (non-class sm): requested 3 words.
[debug] Arena @0xb0 (class sm): born.
[trace] Arena @0xb0 (class sm): requested 4 words.
loadline: phase=spike";
        let (summary, events) = recorded(log.as_bytes()).unwrap();
        let mark = |name: &str| Event::Mark { name: name.into() };
        let allocate = |arena, words| Event::Allocate { arena, words };
        let die = |arena| Event::Die { arena };
        let expect = [
            allocate(0, 63),
            mark("empty"),
            allocate(1, 2),
            die(0),
            allocate(0, 3),
            die(1),
            allocate(1, 4),
            mark("spike"),
        ];
        assert_eq!(events, expect);
        let phases = ["empty", "spike"].map(str::to_owned).to_vec();
        assert_eq!(summary, Summary { blocks: 4, bytes: 72 * 8, arenas: 4, returned: 1, phases });
    }

    #[test]
    fn logs_of_real_jvms_are_read() {
        let logs = [
            (include_str!("../../../../tests/samples/17/metaspace_log.txt"), 3),
            (include_str!("../../../../tests/samples/21/metaspace_log.txt"), 3),
            // In JDK 25's log, a block that is returned early looks the same as the unused end of a chunk.
            (include_str!("../../../../tests/samples/25/metaspace_log.txt"), 0),
        ];
        for (log, given_back) in logs {
            let (summary, events) = recorded(log.as_bytes()).unwrap();
            assert_eq!((summary.blocks, summary.arenas, summary.returned), (38, 8, given_back));
            assert_eq!(summary.phases, ["empty", "spike", "valley", "again", "end"]);
            // The boot loader's arena, and the arenas of two clusters with two loaders each.
            let mut alive = std::collections::BTreeSet::new();
            let mut at_marks = Vec::new();
            for event in events {
                match event {
                    Event::Allocate { arena, .. } => _ = alive.insert(arena),
                    Event::Die { arena } => assert!(alive.remove(&arena)),
                    Event::Mark { .. } => at_marks.push(alive.len()),
                }
            }
            assert_eq!(at_marks, [1, 5, 3, 5, 1]);
        }
    }

    #[test]
    fn a_log_without_allocations_is_rejected() {
        let refused = |log: &str| recorded(log.as_bytes()).unwrap_err();
        assert!(refused("").hint.unwrap().contains("-Xlog:metaspace*=trace"));
        assert!(refused("[info][gc] x\nloadline: phase=a\n").what.contains("no metaspace allocation"));
        assert!(refused("loadline: phase=a/b\n").what.contains("`a/b`"));
    }

    /// Generates a realistic log line.
    fn line() -> impl Strategy<Value = String> {
        (0..4u64, 0..70u64, 0..6u8).prop_map(|(at, words, kind)| match kind {
            0 => format!("[debug] Arena @0x{at:x} (non-class sm): : born.\n"),
            1 => format!("[debug] Arena @0x{at:x} (non-class sm): : dies.\n"),
            2 => format!("loadline: phase=p{words}\n"),
            _ => format!("[trace] Arena @0x{at:x} (non-class sm): requested {words} words.\n"),
        })
    }

    proptest! {
        #[test]
        fn every_trace_recorded_can_be_read(lines in proptest::collection::vec(line(), 1..200)) {
            let log = lines.concat() + "[trace] Arena @0x9 (class sm): requested 1 words.";
            let (summary, events) = recorded(log.as_bytes()).unwrap();
            let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
            prop_assert_eq!(count(|event| matches!(event, Event::Allocate { .. })) as u64, summary.blocks);
            prop_assert_eq!(count(|event| matches!(event, Event::Mark { .. })), summary.phases.len());
        }
    }
}
