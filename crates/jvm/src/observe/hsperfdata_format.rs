//! The layout of hsperfdata (`perfMemory.hpp`, `PerfDataBuffer.java`; version 2.0, JDK 5–25): a prologue of 32 bytes,
//! then entries that consist of a 20-byte header, a name, and a value.
//!
//! ```text
//! 0000  ca fe c0 c0 01 02 00 01  88 2d 00 00 00 00 00 00   magic, little endian, 2.0, accessible; used, overflow
//! 0010  f5 47 33 01 00 00 00 00  20 00 00 00 b0 00 00 00   modified; offset of the first entry, number of entries
//! 0020  38 00 00 00 14 00 00 00  00 00 00 00 4a 00 03 03   length, name, vector length, J, flags, unit, variability
//! 0030  30 00 00 00 …                                      offset of the value
//! ```

use super::Unavailable;
use super::hsperfdata::SOURCE;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// No JVM has more than 1,000; a corrupt or hostile count must not cost memory.
const ENTRIES_MAX: i32 = 4_000;

/// The location of a counter's value in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    offset: usize,
    /// Bytes of a string; 0 for a number.
    text_len: usize,
}

/// Names and locations of all counters. Entries are only ever added, so it stays valid while the count is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CounterLayout {
    little_endian: bool,
    /// The number of entries that it was built from.
    pub(super) count: i32,
    pub(super) slots: Vec<(String, Slot)>,
}

/// The JVM is still filling the file.
fn not_yet() -> Unavailable {
    Unavailable::early(SOURCE, "the JVM is still starting")
}

impl CounterLayout {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Unavailable> {
        let head = bytes.first_chunk::<8>().ok_or_else(not_yet)?;
        if head[..4] != MAGIC || head[4] > 1 || head[5] != 2 {
            // The JVM creates the file full of zeros and writes the magic later. Any other file has another format.
            let unknown = || Unavailable::new(SOURCE, "it has an unknown format");
            return Err(if head[..4] == [0; 4] { not_yet() } else { unknown() });
        }
        let mut layout = Self { little_endian: head[4] == 1, count: 0, slots: Vec::new() };
        if head[7] != 1 {
            return Err(not_yet());
        }
        layout.count = layout.count_in(bytes).ok_or_else(not_yet)?;
        let mut at = layout.offset(bytes, 24).ok_or_else(not_yet)?;
        for _ in 0..layout.count.min(ENTRIES_MAX) {
            // A truncated file ends early; the entries before that point are valid.
            let Some((entry, length)) = layout.entry(bytes, at) else { break };
            layout.slots.extend(entry);
            at += length;
        }
        Ok(layout)
    }

    /// Drops the names and locations, which take as much memory as the file.
    pub(super) fn nameless(self) -> Self {
        Self { slots: Vec::new(), ..self }
    }

    /// The number of entries that the prologue currently declares.
    pub(super) fn count_in(&self, bytes: &[u8]) -> Option<i32> {
        Some(self.i32(bytes, 28)?.max(0))
    }

    pub(super) fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    pub(super) fn number(&self, bytes: &[u8], slot: Slot) -> Option<i64> {
        let raw = *bytes.get(slot.offset..)?.first_chunk::<8>()?;
        (slot.text_len == 0).then(|| if self.little_endian { i64::from_le_bytes(raw) } else { i64::from_be_bytes(raw) })
    }

    /// A counter's text, up to its zero byte.
    pub(super) fn text(&self, bytes: &[u8], slot: Slot) -> Option<String> {
        let raw = bytes.get(slot.offset..slot.offset.checked_add(slot.text_len)?)?;
        (slot.text_len > 0).then(|| until_zero(raw))
    }

    /// The entry at an offset, or `None` if its type is unknown, and its length.
    fn entry(&self, bytes: &[u8], at: usize) -> Option<(Option<(String, Slot)>, usize)> {
        let bytes = bytes.get(at..)?;
        let length = self.offset(bytes, 0).filter(|length| *length >= 20)?;
        let (name, text_len, value) = (self.offset(bytes, 4)?, self.offset(bytes, 8)?, self.offset(bytes, 16)?);
        let name = until_zero(bytes.get(name..length)?);
        let slot = Slot { offset: at.checked_add(value)?, text_len };
        let known = matches!((bytes.get(12)?, text_len), (b'J', 0) | (b'B', 1..));
        Some((known.then_some((name, slot)), length))
    }

    fn i32(&self, bytes: &[u8], at: usize) -> Option<i32> {
        let raw = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.little_endian { i32::from_le_bytes(raw) } else { i32::from_be_bytes(raw) })
    }

    fn offset(&self, bytes: &[u8], at: usize) -> Option<usize> {
        usize::try_from(self.i32(bytes, at)?).ok()
    }
}

fn until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One number named `n`, as a big-endian JVM writes it.
    fn big_endian(value: i64) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 0, 2, 0, 1];
        let word = |bytes: &mut Vec<u8>, n: i32| bytes.extend(n.to_be_bytes());
        for n in [72, 0, 0, 0, 32, 1] {
            word(&mut bytes, n);
        }
        for n in [40, 20, 0] {
            word(&mut bytes, n);
        }
        bytes.extend([b'J', 0, 1, 3]);
        word(&mut bytes, 32);
        bytes.extend(*b"n\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend(value.to_be_bytes());
        bytes
    }

    #[test]
    fn big_endian_counters_are_read() {
        let bytes = big_endian(0x0102_0304);
        let layout = CounterLayout::parse(&bytes).unwrap();
        assert_eq!(layout.number(&bytes, layout.slot("n").unwrap()), Some(0x0102_0304));
    }

    #[test]
    fn incomplete_and_invalid_hsperfdata_are_distinguished() {
        let mut bytes = big_endian(7);
        bytes[7] = 0;
        assert_eq!(CounterLayout::parse(&bytes), Err(not_yet()));
        assert_eq!(CounterLayout::parse(&[0; 64]), Err(not_yet()));
        assert!(CounterLayout::parse(b"#!/bin/sh and so on").is_err_and(|why| !why.is_early));
    }

    #[test]
    fn counters_with_any_sizes_offsets_and_counts_do_not_panic() {
        let sound = big_endian(7);
        // Every word of the prologue and of the entry, with every value that might overflow, wrap, or point backward.
        for at in (8..sound.len()).step_by(4) {
            for value in [i32::MIN, -1, 0, 1, 19, 20, 32, 39, 41, 0x7fff_ffe0, i32::MAX] {
                let mut bytes = sound.clone();
                bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
                let Ok(layout) = CounterLayout::parse(&bytes) else { continue };
                for (_, slot) in &layout.slots {
                    let _ = (layout.number(&bytes, *slot), layout.text(&bytes, *slot));
                }
            }
        }
        // As many entries as fit into the largest file that is read.
        let mut bytes = sound[..32].to_vec();
        bytes[28..32].copy_from_slice(&i32::MAX.to_be_bytes());
        while bytes.len() < 1 << 20 {
            bytes.extend(&sound[32..]);
        }
        assert_eq!(CounterLayout::parse(&bytes).unwrap().slots.len(), ENTRIES_MAX as usize);
        for end in 0..sound.len() {
            if let Ok(layout) = CounterLayout::parse(&sound[..end]) {
                assert!(layout.slot("n").and_then(|slot| layout.number(&sound[..end], slot)).is_none(), "{end}");
            }
        }
    }

    #[test]
    fn maximum_counters_do_not_overflow() {
        let mut bytes = include_bytes!("../../../../tests/samples/25/hsperfdata-g1.bin").to_vec();
        let layout = CounterLayout::parse(&bytes).unwrap();
        for value in [i64::MAX, i64::MIN, -1] {
            for (_, slot) in layout.slots.iter().filter(|(_, slot)| slot.text_len == 0) {
                bytes[slot.offset..slot.offset + 8].copy_from_slice(&value.to_le_bytes());
            }
            let counters = crate::observe::hsperfdata::Counters::parse(&bytes).unwrap();
            let sample = counters.sample();
            assert_eq!(sample.heap_used.0 > 0, value > 0, "{sample:?}");
            assert!(counters.classes().is_some() && !counters.collections().is_empty());
        }
    }
}
