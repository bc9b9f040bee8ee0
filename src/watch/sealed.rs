//! A cell as bytes, with a sum by which a record that was cut short is known.
//!
//! ```text
//! number u64 · samples u32 · least 23 × u32 · mean 23 × u32 · most 23 × u32 · CRC-32 of all before it, little-endian
//! ```

use super::cell::Cell;
use super::column::COLUMNS;
use super::sample::Sample;
use flate2::Crc;

/// Bytes of a cell.
pub(super) const CELL_BYTES: usize = 8 + 4 + 3 * 4 * COLUMNS + 4;
/// Bytes of a whole sample.
pub(super) const SAMPLE_BYTES: usize = 8 + 4 * COLUMNS + 4;

pub(super) fn cell_bytes(cell: &Cell) -> [u8; CELL_BYTES] {
    let mut bytes = Writer::<CELL_BYTES>::default();
    bytes.put(&cell.number.to_le_bytes());
    bytes.put(&cell.samples.to_le_bytes());
    for value in cell.parts().into_iter().flatten() {
        bytes.put(&value.to_le_bytes());
    }
    bytes.sealed()
}

/// `None` for what is no whole cell.
pub(super) fn cell(bytes: &[u8]) -> Option<Cell> {
    let mut body = unsealed(bytes, CELL_BYTES)?;
    let (number, samples) = (u64::from_le_bytes(take(&mut body)?), u32::from_le_bytes(take(&mut body)?));
    let parts = [numbers(&mut body)?, numbers(&mut body)?, numbers(&mut body)?];
    (samples > 0).then(|| Cell::of_parts(number, samples, parts))
}

pub(super) fn sample_bytes(sample: &Sample) -> [u8; SAMPLE_BYTES] {
    let mut bytes = Writer::<SAMPLE_BYTES>::default();
    bytes.put(&sample.age_ms.to_le_bytes());
    for value in sample.values() {
        bytes.put(&value.to_le_bytes());
    }
    bytes.sealed()
}

/// `None` for what is no whole sample.
pub(super) fn sample(bytes: &[u8]) -> Option<Sample> {
    let mut body = unsealed(bytes, SAMPLE_BYTES)?;
    let age_ms = u64::from_le_bytes(take(&mut body)?);
    Some(Sample::from_values(age_ms, numbers(&mut body)?))
}

/// The sum that seals these bytes.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Returns the bytes before the sum, if the sum is right.
fn unsealed(bytes: &[u8], length: usize) -> Option<&[u8]> {
    let (body, seal) = bytes.get(..length)?.split_at(length - 4);
    (seal == sum(body).to_le_bytes()).then_some(body)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn numbers(bytes: &mut &[u8]) -> Option<[u32; COLUMNS]> {
    let mut values = [0; COLUMNS];
    let own = take::<{ 4 * COLUMNS }>(bytes)?;
    for (value, bytes) in values.iter_mut().zip(own.chunks_exact(4)) {
        *value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Some(values)
}

struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Default for Writer<N> {
    fn default() -> Self {
        Self { bytes: [0; N], at: 0 }
    }
}

impl<const N: usize> Writer<N> {
    fn put(&mut self, part: &[u8]) {
        self.bytes[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    fn sealed(mut self) -> [u8; N] {
        let sum = sum(&self.bytes[..N - 4]);
        self.bytes[N - 4..].copy_from_slice(&sum.to_le_bytes());
        self.bytes
    }
}
