//! Reads JDK Flight Recorder recordings, format 2, with any types that they describe.
//!
//! A recording is a sequence of chunks. A chunk is a header of 68 bytes and events, each preceded by its size; events
//! of type 0 and 1 are the types and the constant pools. The header is completed last: in a truncated recording, it has
//! neither the chunk's size nor the offsets of the tables.
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
/// The JDK writes at most one checkpoint per second.
const CHECKPOINTS_MAX: usize = 1 << 20;
/// Size and type of an event.
const EVENT_HEAD_BYTES: u64 = 18;

#[derive(Debug)]
pub(crate) struct Chunk {
    /// The offset of its first byte in the file.
    pub(crate) start: u64,
    /// The offset after its last byte.
    pub(crate) end: u64,
    /// When it began, in nanoseconds since 1970.
    pub(crate) start_ns: u64,
    pub(crate) start_ticks: u64,
    pub(crate) ticks_per_second: u64,
    pub(crate) types: Types,
    pub(crate) tables: Tables,
    pub(crate) damage: Vec<Damage>,
    /// Whether the file ends before the chunk, or the chunk was never completed.
    pub(crate) cut: bool,
    events_end: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: u64,
    pub(crate) why: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) of: u64,
    pub(crate) start: u64,
    size: u64,
}

impl Chunk {
    /// Reads the header, types, and tables of the chunk at `start` in a file of `len` bytes. Fails if no chunk begins
    /// there, or the file cannot be read.
    pub(crate) fn open(input: &mut Input<'_>, start: u64, len: u64) -> InputResult<Self> {
        input.enter(start, len.saturating_sub(start).min(HEADER_BYTES))?;
        if input.fixed(4)? != MAGIC {
            return Err(Fault::Damage("no chunk begins here"));
        }
        let (major, _minor) = (input.fixed(2)?, input.fixed(2)?);
        if !(1..=2).contains(&major) {
            return Err(Fault::Damage("its format is not version 2"));
        }
        let (size, checkpoint, metadata) = (input.fixed(8)?, input.fixed(8)?, input.fixed(8)?);
        let (start_ns, _duration_ns) = (input.fixed(8)?, input.fixed(8)?);
        let (start_ticks, ticks_per_second, features) = (input.fixed(8)?, input.fixed(8)?, input.fixed(4)?);
        if features & COMPRESSED == 0 {
            return Err(Fault::Damage("its integers are not compressed"));
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

    /// Reads the head of each event, because tables may be anywhere and the header may be wrong about them.
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

    /// Records damage in the bytes; an I/O error ends the reading.
    fn note(&mut self, at: u64, fault: Fault) -> InputResult<()> {
        match fault {
            Fault::Io(_) => Err(fault),
            Fault::Damage(why) => {
                self.damage.push(Damage { at, why });
                Ok(())
            }
        }
    }

    /// The event at a position; `None` at the end of the chunk.
    fn event(&self, input: &mut Input<'_>, at: u64) -> InputResult<Option<Event>> {
        if at >= self.end {
            return Ok(None);
        }
        input.enter(at, (self.end - at).min(EVENT_HEAD_BYTES))?;
        let size = input.integer()?;
        let of = input.integer()?;
        if size < 2 || at + size.min(self.end) > self.end {
            return Err(Fault::Damage(if self.cut { "the file ends here" } else { "an event has an impossible size" }));
        }
        Ok(Some(Event { of, start: at, size }))
    }

    /// Positions the input after the size and type of an event.
    fn go_to(&self, input: &mut Input<'_>, event: Event) -> InputResult<()> {
        input.enter(event.start, event.size)?;
        let _ = (input.integer()?, input.integer()?);
        Ok(())
    }

    /// Visits all events except types and tables, with the input after the size and type of each. Damage within one
    /// event does not affect the others: `each` returns it as an error, and the first error is kept.
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
