//! Replays a trace with an allocation scheme, and pauses at the start of each phase for a measurement.

use super::error::{Error, Result};
use super::trace::{Event, Reader};
use std::io::{self, BufRead, Write};
use std::time::Instant;

/// The maximum number of live bytes; no JVM has that much metadata.
const LIVE_BYTES_MAX: u64 = 16 << 30;
/// The maximum number of bytes read from a reply, whose content does not matter.
const ANSWER_BYTES_MAX: u64 = 4096;

/// An allocation scheme.
pub(crate) trait Scheme {
    /// Allocates a block and writes to all of it, as a JVM does with metadata.
    fn allocate(&mut self, arena: u32, words: u32) -> io::Result<()>;
    /// Frees all blocks of an arena.
    fn die(&mut self, arena: u32) -> io::Result<()>;
    /// Prepares for a measurement.
    fn rest(&mut self);
    /// The scheme's own counters.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// Live memory according to the trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LiveSet {
    bytes_of: Vec<u64>,
    /// The total size of all live blocks, in bytes.
    pub(crate) bytes: u64,
    /// The number of arenas with live blocks.
    pub(crate) arenas: u64,
    /// The number of blocks requested so far.
    pub(crate) blocks: u64,
}

impl LiveSet {
    /// Counts an event. Fails if there is now more live memory than any JVM would use.
    pub(crate) fn take(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Allocate { arena, words } => {
                let index = *arena as usize;
                self.bytes_of.resize(self.bytes_of.len().max(index + 1), 0);
                self.arenas += u64::from(self.bytes_of[index] == 0);
                self.bytes_of[index] += u64::from(*words) * 8;
                self.bytes += u64::from(*words) * 8;
                self.blocks += 1;
            }
            Event::Die { arena } => {
                let bytes = self.bytes_of.get_mut(*arena as usize).map_or(0, std::mem::take);
                self.arenas -= u64::from(bytes > 0);
                self.bytes -= bytes;
            }
            Event::Mark { .. } => {}
        }
        if self.bytes > LIVE_BYTES_MAX {
            let most = LIVE_BYTES_MAX >> 30;
            return Err(Error::request(format!("the trace has over {most} GiB of live data, so it is not from a JVM")));
        }
        Ok(())
    }
}

/// Replays the whole trace. At the start of each phase, writes a marker to `out`, and waits for a line from `answers`
/// or for the end of that input. Fails if the trace is damaged, memory runs out, or the markers cannot be written.
pub(crate) fn replay(
    trace: &mut Reader<impl BufRead>,
    scheme: &mut dyn Scheme,
    (out, answers): (&mut dyn Write, &mut dyn BufRead),
    began: Instant,
) -> Result<()> {
    let mut live = LiveSet::default();
    let mut phase: Option<Started> = None;
    while let Some(event) = trace.next()? {
        live.take(&event)?;
        match &event {
            Event::Allocate { arena, words } => scheme.allocate(*arena, *words).map_err(|error| refused(&error))?,
            Event::Die { arena } => scheme.die(*arena).map_err(|error| refused(&error))?,
            Event::Mark { name } => {
                scheme.rest();
                let text = marker(name, phase.as_ref(), &live, &scheme.counters(), began.elapsed().as_secs_f64());
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| cannot_talk(&error))?;
                wait_for_answer(answers)?;
                phase = Some(Started { blocks: live.blocks, at_s: began.elapsed().as_secs_f64() });
            }
        }
    }
    Ok(())
}

/// The start of a phase.
struct Started {
    blocks: u64,
    at_s: f64,
}

/// A line about the work in the phase that has just ended, if any, and the marker of the next phase.
fn marker(name: &str, ended: Option<&Started>, live: &LiveSet, counters: &[(&str, u64)], now_s: f64) -> String {
    let mut text = String::new();
    if let Some(ended) = ended {
        let (blocks, seconds) = (live.blocks - ended.blocks, now_s - ended.at_s);
        text = format!("loadline: ops={blocks} s={seconds:.6} fail=0 name=allocate\n");
    }
    text += &format!("loadline: phase={name} wait=1 arenas={} live_bytes={}", live.arenas, live.bytes);
    for (name, value) in counters {
        text += &format!(" {name}={value}");
    }
    text + "\n"
}

fn wait_for_answer(answers: &mut dyn BufRead) -> Result<()> {
    let mut answer = Vec::new();
    let read = io::Read::take(answers, ANSWER_BYTES_MAX).read_until(b'\n', &mut answer);
    read.map(|_| ()).map_err(|error| Error::io("read", "the reply", &error))
}

fn refused(error: &io::Error) -> Error {
    Error::io("allocate", "a block", error)
}

fn cannot_talk(error: &io::Error) -> Error {
    Error::io("write", "the marker", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arenas, Mapped};
    use crate::malloc::{Malloc, Trim};
    use crate::native::Header;
    use crate::trace::WORDS_MAX;
    use crate::trace::tests::{events, written};
    use proptest::prelude::*;

    #[expect(clippy::disallowed_methods, reason = "a replay needs its start time")]
    fn now() -> Instant {
        Instant::now()
    }

    fn schemes() -> Vec<Box<dyn Scheme>> {
        let malloc = |header, trim| Box::new(Malloc::new(header, trim)) as Box<dyn Scheme>;
        let mut all: Vec<_> = [Header::Absent, Header::TwoWords]
            .into_iter()
            .flat_map(|header| [malloc(header, Trim::Never), malloc(header, Trim::AtMarks)])
            .collect();
        all.push(Box::new(Arenas::new(Mapped::default())));
        all
    }

    /// A replay's output without the parts that vary: times, and whether a trim had an effect.
    fn played(bytes: &[u8], scheme: &mut dyn Scheme) -> String {
        let mut out = Vec::new();
        let mut trace = Reader::new(bytes).unwrap();
        replay(&mut trace, scheme, (&mut out, &mut io::empty()), now()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let words = |line: &str| {
            let kept = line.split(' ').filter(|word| !word.starts_with("s=") && !word.starts_with("trims="));
            kept.collect::<Vec<_>>().join(" ")
        };
        text.lines().map(words).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn markers_count_live_blocks() {
        let mark = |name: &str| Event::Mark { name: name.into() };
        let trace = written(&[
            Event::Allocate { arena: 0, words: 10 },
            mark("empty"),
            Event::Allocate { arena: 1, words: 2 },
            Event::Allocate { arena: 1, words: 3 },
            mark("spike"),
            Event::Die { arena: 1 },
            mark("valley"),
        ]);
        let expect = "\
            loadline: phase=empty wait=1 arenas=1 live_bytes=80\n\
            loadline: ops=2 fail=0 name=allocate\n\
            loadline: phase=spike wait=1 arenas=2 live_bytes=120\n\
            loadline: ops=0 fail=0 name=allocate\n\
            loadline: phase=valley wait=1 arenas=1 live_bytes=80";
        for mut scheme in schemes().into_iter().take(4) {
            assert_eq!(played(&trace, scheme.as_mut()), expect);
        }
        let arena = played(&trace, &mut Arenas::new(Mapped::default()));
        assert!(arena.ends_with("phase=valley wait=1 arenas=1 live_bytes=80 chunk_bytes=4096 committed_bytes=65536"));
    }

    #[test]
    fn replay_waits_for_a_line_at_each_phase() {
        let mark = |name: &str| Event::Mark { name: name.into() };
        let trace = written(&[mark("a"), mark("b")]);
        let mut answers: &[u8] = b"go\ngo\nleft";
        let streams: (&mut dyn Write, &mut dyn BufRead) = (&mut io::sink(), &mut answers);
        let mut reader = Reader::new(trace.as_slice()).unwrap();
        replay(&mut reader, &mut Malloc::new(Header::Absent, Trim::Never), streams, now()).unwrap();
        assert_eq!(answers, b"left");
    }

    #[test]
    fn a_trace_larger_than_any_jvm_is_rejected() {
        let mut live = LiveSet::default();
        let event = Event::Allocate { arena: 0, words: WORDS_MAX };
        let error = (0..1025).find_map(|_| live.take(&event).err()).unwrap();
        assert!(error.what.contains("16 GiB"), "{}", error.what);
    }

    proptest! {
        // Only a few cases, because each one replays its events twice with five schemes and fills all blocks.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn replays_are_reproducible_and_schemes_count_the_same_blocks(events in events(200)) {
            let trace = written(&events);
            let alive = |text: String| {
                let cut = |line: &str| line.split(" chunk_bytes").next().unwrap_or("").to_owned();
                text.lines().map(cut).collect::<Vec<_>>()
            };
            let expect = alive(played(&trace, schemes()[0].as_mut()));
            for (mut first, mut second) in schemes().into_iter().zip(schemes()) {
                let text = played(&trace, first.as_mut());
                prop_assert_eq!(&text, &played(&trace, second.as_mut()));
                prop_assert_eq!(alive(text), expect.clone());
            }
        }
    }
}
