//! Reads and writes traces of metaspace allocations: block requests, arena deaths, and phases.
//!
//! A file is `METATR1\n` followed by records. Each one starts with a LEB128 number, whose two lowest bits are the kind:
//!
//! | bits | rest | meaning |
//! |---|---|---|
//! | 0 | words | a block of this many 8-byte words, for the current arena |
//! | 1 | arena | this arena becomes the current arena |
//! | 2 | arena | this arena dies with all its blocks; if it was the current arena, there is then no current one |
//! | 3 | n > 0 | a phase starts; its name, which has n bytes, follows |
//! | 3 | 0 | the end; the number of records before it, without those of kind 1, follows in LEB128 |
//!
//! Arenas are numbered from 0, and the lowest unused number is reused, so most blocks take one or two bytes. The
//! reader rejects a file without an end record, because it must have been truncated.

use super::error::{Error, Result};
use std::io::{self, BufRead, Write};

const MAGIC: &[u8; 8] = b"METATR1\n";

/// The size of the largest block, in words: 16 MiB, the size of a JVM's largest metaspace chunk.
pub(crate) const WORDS_MAX: u32 = 1 << 21;
/// The maximum number of live arenas: each belongs to a class loader, and no JVM has a million class loaders.
pub(crate) const ARENAS_MAX: u32 = 1 << 20;
/// The maximum length of a phase name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// An event in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Allocates a block in an arena, which is created with its first block.
    Allocate { arena: u32, words: u32 },
    /// An arena dies, which frees all its blocks.
    Die { arena: u32 },
    /// A phase starts.
    Mark { name: String },
}

/// Whether this is a valid phase name, which can contain ASCII letters, digits, `-`, `_`, and `.`.
pub(crate) fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_good)
}

/// Writes a trace.
pub(crate) struct Writer<W> {
    to: W,
    present: Option<u32>,
    records: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut to: W) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        Ok(Self { to, present: None, records: 0 })
    }

    /// Appends an event. Its values must be within the limits above, because the reader rejects values beyond them.
    pub(crate) fn write(&mut self, event: &Event) -> io::Result<()> {
        self.records += 1;
        match event {
            Event::Allocate { arena, words } => {
                if self.present != Some(*arena) {
                    self.present = Some(*arena);
                    self.number(u64::from(*arena) << 2 | 1)?;
                }
                self.number(u64::from(*words) << 2)
            }
            Event::Die { arena } => {
                self.present = self.present.filter(|present| present != arena);
                self.number(u64::from(*arena) << 2 | 2)
            }
            Event::Mark { name } => {
                self.number((name.len() as u64) << 2 | 3)?;
                self.to.write_all(name.as_bytes())
            }
        }
    }

    /// Writes the end record, without which a trace is incomplete.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.number(3)?;
        self.number(self.records)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn number(&mut self, mut value: u64) -> io::Result<()> {
        let mut bytes = [0; 10];
        let mut length = 0;
        loop {
            let last = value < 0x80;
            bytes[length] = (value & 0x7f) as u8 | if last { 0 } else { 0x80 };
            length += 1;
            value >>= 7;
            if last {
                return self.to.write_all(&bytes[..length]);
            }
        }
    }
}

/// Reads a trace event by event, and rejects anything that the writer cannot produce.
pub(crate) struct Reader<R> {
    from: R,
    present: Option<u32>,
    /// Whether each arena is alive, indexed by arena number. Grows by one entry at a time.
    alive: Vec<bool>,
    records: u64,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(mut from: R) -> Result<Self> {
        let mut magic = [0; MAGIC.len()];
        match from.read_exact(&mut magic) {
            Ok(()) if magic == *MAGIC => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(unreadable(&error)),
            _ => return Err(Error::request("this is not a metaspace trace: it does not start with `METATR1`")),
        }
        Ok(Self { from, present: None, alive: Vec::new(), records: 0, ended: false })
    }

    /// Returns the next event, or `None` after the last one. Fails if the trace is truncated, damaged, or unreadable.
    pub(crate) fn next(&mut self) -> Result<Option<Event>> {
        if self.ended {
            return Ok(None);
        }
        loop {
            let head = self.number()?;
            let rest = head >> 2;
            self.records += u64::from(head & 3 != 1);
            match head & 3 {
                0 => return self.allocation(rest).map(Some),
                1 => self.present = Some(self.arena(rest)?),
                2 => return self.death(rest).map(Some),
                _ if rest == 0 => {
                    self.end()?;
                    return Ok(None);
                }
                _ => return self.mark(rest).map(Some),
            }
        }
    }

    fn allocation(&mut self, words: u64) -> Result<Event> {
        let arena = self.present.ok_or_else(|| self.damaged("a block without an arena"))?;
        let words = u32::try_from(words).ok().filter(|words| (1..=WORDS_MAX).contains(words));
        let words = words.ok_or_else(|| self.damaged("a block of impossible size"))?;
        let index = arena as usize;
        if index == self.alive.len() {
            self.alive.push(true);
        } else {
            self.alive[index] = true;
        }
        Ok(Event::Allocate { arena, words })
    }

    /// Checks an arena number: it must have been seen before, or be the next one.
    fn arena(&self, number: u64) -> Result<u32> {
        let next = self.alive.len().min(ARENAS_MAX as usize - 1) as u64;
        let number = Some(number).filter(|number| *number <= next).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.damaged("an arena number out of sequence"))
    }

    fn death(&mut self, number: u64) -> Result<Event> {
        let arena = self.arena(number)?;
        match self.alive.get_mut(arena as usize) {
            Some(alive) if *alive => *alive = false,
            _ => return Err(self.damaged("the end of an arena that is not alive")),
        }
        // The next block must name its arena again, so that no block is added to a dead arena by mistake.
        self.present = self.present.filter(|present| *present != arena);
        Ok(Event::Die { arena })
    }

    fn mark(&mut self, bytes: u64) -> Result<Event> {
        let length = usize::try_from(bytes).ok().filter(|length| *length <= NAME_BYTES_MAX);
        let mut name = vec![0; length.ok_or_else(|| self.damaged("a phase name that is too long"))?];
        self.from.read_exact(&mut name).map_err(|error| cut_or_unreadable(&error))?;
        match String::from_utf8(name) {
            Ok(name) if is_name(&name) => Ok(Event::Mark { name }),
            _ => Err(self.damaged("an invalid phase name")),
        }
    }

    fn end(&mut self) -> Result<()> {
        let counted = self.number()?;
        if counted != self.records - 1 {
            return Err(self.damaged(&format!("its end record has the wrong record count ({counted})")));
        }
        self.ended = true;
        match self.from.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(self.damaged("there is data after its end record")),
            Err(error) => Err(unreadable(&error)),
        }
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.from.read_exact(&mut byte).map_err(|error| cut_or_unreadable(&error))?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.damaged("a number of more than 64 bits"))
    }

    fn damaged(&self, what: &str) -> Error {
        let error = Error::request(format!("the trace is damaged after record {}: {what}", self.records));
        error.hint("record it again")
    }
}

fn unreadable(error: &io::Error) -> Error {
    Error::io("read", "the trace", error)
}

fn cut_or_unreadable(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::request("the trace is truncated").hint("record it again"),
        _ => unreadable(error),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of a trace with these events.
    pub(crate) fn written(events: &[Event]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        events.iter().for_each(|event| writer.write(event).unwrap());
        writer.finish().unwrap()
    }

    /// Reads all events of a trace, and checks that none follow the end.
    pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Event>> {
        let mut reader = Reader::new(bytes)?;
        let mut events = Vec::new();
        while let Some(event) = reader.next()? {
            events.push(event);
        }
        assert_eq!(reader.next().unwrap(), None);
        Ok(events)
    }

    /// Generates events like a recorder's: arena numbers are dense, and only live arenas die.
    pub(crate) fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
        let sizes = prop_oneof![8 => 1..64u32, 2 => 64..4096u32, 1 => 4096..=65_536u32];
        proptest::collection::vec((0..12u8, any::<u16>(), sizes), 0..most).prop_map(|steps| {
            let (mut alive, mut events) = (Vec::<bool>::new(), Vec::new());
            for (kind, pick, words) in steps {
                let any = usize::from(pick) % (alive.len() + 1);
                match kind {
                    0 => events.push(Event::Mark { name: format!("phase-{pick}") }),
                    1 | 2 if alive.get(any) == Some(&true) => {
                        alive[any] = false;
                        events.push(Event::Die { arena: any as u32 });
                    }
                    _ => {
                        let arena = if kind == 3 { alive.len() } else { any };
                        alive.resize(alive.len().max(arena + 1), true);
                        alive[arena] = true;
                        events.push(Event::Allocate { arena: arena as u32, words });
                    }
                }
            }
            events
        })
    }

    #[test]
    fn the_trace_format_is_unchanged() {
        let events = [
            Event::Mark { name: "empty".into() },
            Event::Allocate { arena: 0, words: 63 },
            Event::Allocate { arena: 0, words: 1 },
            Event::Allocate { arena: 1, words: WORDS_MAX },
            Event::Die { arena: 0 },
        ];
        let expect = b"METATR1\n\x17empty\x01\xfc\x01\x04\x05\x80\x80\x80\x04\x02\x03\x05";
        assert_eq!(written(&events), expect);
        assert_eq!(read(expect).unwrap(), events);
        assert_eq!(read(&written(&[])).unwrap(), []);
    }

    #[test]
    fn an_arena_number_can_be_reused_after_its_end() {
        let block = Event::Allocate { arena: 0, words: 1 };
        let events = [block.clone(), Event::Die { arena: 0 }, block];
        assert_eq!(written(&events), b"METATR1\n\x01\x04\x02\x01\x04\x03\x03");
        assert_eq!(read(&written(&events)).unwrap(), events);
    }

    #[test]
    fn invalid_records_are_rejected() {
        let refuse = |records: &[u8], expect: &str| {
            let error = read(&[MAGIC, records].concat()).unwrap_err();
            assert!(error.what.contains(expect), "{} lacks {expect}", error.what);
        };
        refuse(b"\x04", "a block without an arena");
        refuse(b"\x01\x00", "impossible size");
        refuse(b"\x01\x84\x80\x80\x04", "impossible size");
        refuse(b"\x05", "an arena number out of sequence");
        refuse(b"\xff\xff\xff\xff\x0f", "a phase name that is too long");
        refuse(b"\x02", "the end of an arena that is not alive");
        refuse(b"\x01\x04\x02\x02", "the end of an arena that is not alive");
        refuse(b"\x01\x04\x02\x04", "a block without an arena");
        refuse(b"\x07 ", "an invalid phase name");
        refuse(b"\x07\xff", "an invalid phase name");
        refuse(b"\x03\x01", "wrong record count (1)");
        refuse(b"\x03\x00\x00", "data after its end record");
        refuse(&[0xff; 10], "more than 64 bits");
        assert!(read(b"METATR2\n\x03\x00").unwrap_err().what.contains("not a metaspace trace"));
    }

    proptest! {
        #[test]
        fn a_written_trace_reads_back(events in events(300)) {
            prop_assert_eq!(read(&written(&events)).unwrap(), events);
        }

        #[test]
        fn a_truncated_trace_is_rejected(events in events(60)) {
            let bytes = written(&events);
            for end in 0..bytes.len() {
                prop_assert!(read(&bytes[..end]).is_err(), "truncated to {} of {} bytes", end, bytes.len());
            }
        }

        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&[MAGIC, bytes.as_slice()].concat());
        }
    }
}
