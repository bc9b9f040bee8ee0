//! Serializes a cell with a checksum, which detects torn records.
//!
//! ```text
//! number u64 · samples u32 · least 23 × u32 · mean 23 × u32 · most 23 × u32 · CRC-32 of the rest, little-endian
//! ```

use super::cell::Cell;
use super::column::COLUMNS;
use super::sample::Sample;
use flate2::Crc;

pub(super) const CELL_BYTES: usize = 8 + 4 + 3 * 4 * COLUMNS + 4;
pub(super) const SAMPLE_BYTES: usize = 8 + 4 * COLUMNS + 4;

pub(super) fn cell_bytes(cell: &Cell) -> Vec<u8> {
    let mut bytes = [&cell.number.to_le_bytes()[..], &cell.samples.to_le_bytes()].concat();
    bytes.extend(cell.parts().into_iter().flatten().flat_map(|value| value.to_le_bytes()));
    seal(&mut bytes);
    bytes
}

/// `None` for an invalid cell.
pub(super) fn cell(bytes: &[u8]) -> Option<Cell> {
    let mut body = unsealed(bytes, CELL_BYTES)?;
    let (number, samples) = (u64::from_le_bytes(take(&mut body)?), u32::from_le_bytes(take(&mut body)?));
    let parts = [numbers(&mut body)?, numbers(&mut body)?, numbers(&mut body)?];
    (samples > 0).then(|| Cell::of_parts(number, samples, parts))
}

pub(super) fn sample_bytes(sample: &Sample) -> Vec<u8> {
    let mut bytes = sample.age_ms.to_le_bytes().to_vec();
    bytes.extend(sample.values().iter().flat_map(|value| value.to_le_bytes()));
    seal(&mut bytes);
    bytes
}

/// `None` for an invalid sample.
pub(super) fn sample(bytes: &[u8]) -> Option<Sample> {
    let mut body = unsealed(bytes, SAMPLE_BYTES)?;
    let age_ms = u64::from_le_bytes(take(&mut body)?);
    Some(Sample::from_values(age_ms, numbers(&mut body)?))
}

/// Appends the checksum.
pub(super) fn seal(bytes: &mut Vec<u8>) {
    bytes.extend(sum(bytes).to_le_bytes());
}

pub(super) fn sum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The bytes before the checksum, if it matches.
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
