//! Reads recordings of JDK Flight Recorder, format 2, of whatever types they describe.
//!
//! A recording is a row of chunks. A chunk is a header of 68 bytes and events, each with its size first; the events of
//! type 0 and 1 are the types and the constant pools. The header is complete when the chunk is: that of a recording
//! that was cut off says neither its size nor where the tables are.
//!
//! ```text
//! "FLR\0" 2.0  size  checkpoint-at  metadata-at  start-ns  duration-ns  start-ticks  ticks-per-second  features
//! ```

mod input;
#[cfg(test)]
pub(crate) mod made_up;
mod metadata;
mod plan;
mod tables;

pub(crate) use input::{Fault, Input, InputResult, RecordingFile, Text};
pub(crate) use metadata::Types;
pub(crate) use plan::{Plan, Value};
pub(crate) use tables::{RawFrame, Tables};

/// `FLR` and a zero byte.
const MAGIC: u64 = u32::from_be_bytes(*b"FLR\0") as u64;
const HEADER_BYTES: u64 = 68;
const METADATA: u64 = 0;
const CHECKPOINT: u64 = 1;
/// Integers are compressed. No writer leaves them uncompressed.
const COMPRESSED: u64 = 1;
/// The JDK writes a checkpoint a second or less.
const CHECKPOINTS_MAX: usize = 1 << 20;
/// Size and type of an event.
const EVENT_HEAD_BYTES: u64 = 18;

/// One chunk, with its types and tables.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Its first byte in the file.
    pub(crate) start: u64,
    /// Behind its last byte.
    pub(crate) end: u64,
    /// When it began, in nanoseconds since 1970.
    pub(crate) start_ns: u64,
    pub(crate) start_ticks: u64,
    pub(crate) ticks_per_second: u64,
    pub(crate) types: Types,
    pub(crate) tables: Tables,
    /// The damage that was found in it.
    pub(crate) damage: Vec<Damage>,
    /// Whether the file ends before the chunk does, or the chunk was never completed.
    pub(crate) cut: bool,
    /// Behind the last event that is whole.
    events_end: u64,
}

/// Damage at a byte of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: u64,
    pub(crate) why: &'static str,
}

/// The type, place and size of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) of: u64,
    pub(crate) start: u64,
    size: u64,
}

impl Chunk {
    /// Reads the header, the types and the tables of the chunk at `start` of a file of `len` bytes.
    ///
    /// # Errors
    /// If no chunk begins there, or the file cannot be read.
    pub(crate) fn open(input: &mut Input<'_>, start: u64, len: u64) -> InputResult<Self> {
        input.enter(start, len.saturating_sub(start).min(HEADER_BYTES))?;
        if input.fixed(4)? != MAGIC {
            return Err(Fault::Damage("no chunk of a recording begins here"));
        }
        let (major, _minor) = (input.fixed(2)?, input.fixed(2)?);
        if !(1..=2).contains(&major) {
            return Err(Fault::Damage("a recording of another version than 2"));
        }
        let (size, checkpoint, metadata) = (input.fixed(8)?, input.fixed(8)?, input.fixed(8)?);
        let (start_ns, _duration_ns) = (input.fixed(8)?, input.fixed(8)?);
        let (start_ticks, ticks_per_second, features) = (input.fixed(8)?, input.fixed(8)?, input.fixed(4)?);
        if features & COMPRESSED == 0 {
            return Err(Fault::Damage("a recording without compressed integers"));
        }
        let end = start.saturating_add(size).min(len);
        let unfinished = size < HEADER_BYTES || checkpoint == 0 || metadata == 0;
        let end = if size < HEADER_BYTES { len } else { end };
        let mut chunk = Self {
            start,
            end,
            start_ns,
            start_ticks,
            ticks_per_second,
            types: Types::default(),
            tables: Tables::default(),
            damage: Vec::new(),
            cut: unfinished || start.saturating_add(size) > len,
            events_end: end,
        };
        chunk.read_tables(input)?;
        Ok(chunk)
    }

    /// Looks at the head of each event: tables may lie anywhere, and what the header says of them may be wrong.
    fn read_tables(&mut self, input: &mut Input<'_>) -> InputResult<()> {
        let (mut metadata, mut checkpoints) = (None, Vec::new());
        let mut at = self.start + HEADER_BYTES;
        loop {
            match self.event(input, at) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    match event.of {
                        METADATA => metadata = Some(event),
                        CHECKPOINT if checkpoints.len() < CHECKPOINTS_MAX => checkpoints.push(event),
                        _ => {}
                    }
                    at = event.start + event.size;
                }
                Err(fault) => {
                    self.note(at, fault)?;
                    break;
                }
            }
        }
        self.events_end = at.min(self.end);
        let Some(metadata) = metadata else { return Ok(()) };
        self.go_to(input, metadata)?;
        match Types::read(input) {
            Ok(types) => self.types = types,
            Err(fault) => return self.note(metadata.start, fault),
        }
        for checkpoint in checkpoints {
            self.go_to(input, checkpoint)?;
            let read = self.tables.read(&self.types, input);
            read.or_else(|fault| self.note(checkpoint.start, fault))?;
        }
        Ok(())
    }

    /// Keeps what is wrong with the bytes; an error of the file itself ends the reading.
    fn note(&mut self, at: u64, fault: Fault) -> InputResult<()> {
        match fault {
            Fault::Io(_) => Err(fault),
            Fault::Damage(why) => {
                self.damage.push(Damage { at, why });
                Ok(())
            }
        }
    }

    /// The event that begins at a position; `None` at the end of the chunk.
    fn event(&self, input: &mut Input<'_>, at: u64) -> InputResult<Option<Event>> {
        if at >= self.end {
            return Ok(None);
        }
        input.enter(at, (self.end - at).min(EVENT_HEAD_BYTES))?;
        let size = input.integer()?;
        let of = input.integer()?;
        if size < 2 || at + size.min(self.end) > self.end {
            return Err(Fault::Damage(if self.cut { "the file ends here" } else { "an event of an impossible size" }));
        }
        Ok(Some(Event { of, start: at, size }))
    }

    /// Places the input behind size and type of an event.
    fn go_to(&self, input: &mut Input<'_>, event: Event) -> InputResult<()> {
        input.enter(event.start, event.size)?;
        let _ = (input.integer()?, input.integer()?);
        Ok(())
    }

    /// Goes over all events but those of types and tables, with the input behind size and type of each. A fault within
    /// one event does not affect the others: `each` returns it as an error, and the first is kept.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn events(
        &mut self,
        input: &mut Input<'_>,
        mut each: impl FnMut(&Self, Event, &mut Input<'_>) -> InputResult<()>,
    ) -> InputResult<u64> {
        let (mut at, mut damaged) = (self.start + HEADER_BYTES, 0);
        while at < self.events_end {
            let Ok(Some(event)) = self.event(input, at) else { break };
            at = event.start + event.size;
            if event.of == METADATA || event.of == CHECKPOINT {
                continue;
            }
            self.go_to(input, event)?;
            match each(self, event, input) {
                Ok(()) => {}
                Err(fault) => {
                    damaged += 1;
                    if damaged == 1 {
                        self.note(event.start, fault)?;
                    } else if let Fault::Io(_) = fault {
                        return Err(fault);
                    }
                }
            }
        }
        Ok(damaged)
    }
}
