//! Reads the counts of an encoded histogram (HdrHistogram V2, compressed, base64) without building it: a ten-minute log
//! has a thousand histograms. Sizes are bounded, whatever a damaged histogram claims.
//!
//! Format: HdrHistogram `EncodableHistogram` and `ZigZagEncoding` (LEB128-64b9B). Big-endian: cookie, length, then,
//! compressed with zlib: cookie, length, normalizing offset, significant digits, lowest, highest, ratio, and the counts
//! of all slots in order. A negative count, -n, represents n empty slots.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Decompress, FlushDecompress, Status};

/// The upper half of the lowest byte may contain a word size; the other bits are fixed.
const COOKIE_MASK: u32 = 0xffff_ff0f;
const COOKIE_COMPRESSED: u32 = 0x1c84_9304;
const COOKIE_PLAIN: u32 = 0x1c84_9303;
const HEAD_BYTES: usize = 40;
/// With three digits, a day in nanoseconds has 38,000 slots of at most nine bytes.
const INFLATED_BYTES_MAX: usize = 1 << 20;
/// Sums of values below this cannot overflow.
const VALUE_BITS_MAX: u32 = 62;

/// Decodes histograms with reused buffers.
pub(super) struct Decoder {
    compressed: Vec<u8>,
    inflated: Vec<u8>,
    inflate: Decompress,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { compressed: Vec::new(), inflated: Vec::with_capacity(16 << 10), inflate: Decompress::new(true) }
    }

    /// Calls `each` with the lowest value and the count of every nonempty slot, ascending. Returns `None` for damaged
    /// text, possibly after some calls.
    pub(super) fn decode(&mut self, text: &str, each: &mut dyn FnMut(u64, u64)) -> Option<()> {
        self.compressed.clear();
        STANDARD.decode_vec(text, &mut self.compressed).ok()?;
        let length = u32_at(&self.compressed, 4)? as usize;
        if u32_at(&self.compressed, 0)? & COOKIE_MASK != COOKIE_COMPRESSED & COOKIE_MASK {
            return None;
        }
        inflate(&mut self.inflate, self.compressed.get(8..)?.get(..length)?, &mut self.inflated)?;
        let head = self.inflated.get(..HEAD_BYTES)?;
        let ratio = f64::from_bits(u64_at(head, 32)?);
        let plain = u32_at(head, 0)? & COOKIE_MASK == COOKIE_PLAIN & COOKIE_MASK;
        if !plain || u32_at(head, 8)? != 0 || ratio != 1.0 {
            return None;
        }
        let slots = Slots::new(u32_at(head, 12)?, u64_at(head, 16)?)?;
        let counts = self.inflated.get(HEAD_BYTES..)?.get(..u32_at(head, 4)? as usize)?;
        slots.walk(counts, each)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// `None` if it is damaged or too large.
fn inflate(inflate: &mut Decompress, from: &[u8], to: &mut Vec<u8>) -> Option<()> {
    inflate.reset(true);
    to.clear();
    loop {
        let used = usize::try_from(inflate.total_in()).ok()?;
        let before = (inflate.total_in(), inflate.total_out());
        match inflate.decompress_vec(from.get(used..)?, to, FlushDecompress::Finish).ok()? {
            Status::StreamEnd => return Some(()),
            _ if to.len() >= INFLATED_BYTES_MAX => return None,
            // Progress stopped with room left: the end is missing.
            _ if to.len() < to.capacity() && before == (inflate.total_in(), inflate.total_out()) => return None,
            _ => to.reserve(to.capacity().max(1 << 10)),
        }
    }
}

/// A histogram's value ranges: buckets that double in width, each with the same number of slots.
struct Slots {
    /// Bits of the smallest nonzero value.
    unit_bits: u32,
    half_bits: u32,
}

impl Slots {
    fn new(digits: u32, lowest: u64) -> Option<Self> {
        if digits > 5 || lowest == 0 {
            return None;
        }
        // Up to 2 * 10^digits, each unit has its own slot.
        let slots: u64 = (2 * 10u64.pow(digits)).next_power_of_two();
        Some(Self { unit_bits: lowest.ilog2(), half_bits: slots.ilog2() - 1 })
    }

    /// The lowest value of a slot.
    fn value(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_bits;
        let (bucket, within) = match index >> self.half_bits {
            0 => (0, index),
            n => (n - 1, (index & (half - 1)) + half),
        };
        let shift = u32::try_from(bucket).ok()?.checked_add(self.unit_bits)?;
        (shift + self.half_bits < VALUE_BITS_MAX).then(|| within << shift)
    }

    fn walk(&self, mut counts: &[u8], each: &mut dyn FnMut(u64, u64)) -> Option<()> {
        let mut index = 0u64;
        while !counts.is_empty() {
            let number = varint(&mut counts)?;
            // ZigZag: the lowest bit is the sign.
            let half = number >> 1;
            match number & 1 {
                0 if half == 0 => index += 1,
                0 => {
                    each(self.value(index)?, half);
                    index += 1;
                }
                _ => index = index.checked_add(half + 1)?,
            }
        }
        Some(())
    }
}

/// LEB128 of at most nine bytes; the last one has eight bits.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some(value | u64::from(*first) << 56);
        }
        value |= u64::from(first & 0x7f) << (7 * place);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
    use proptest::prelude::*;

    fn encoded(histogram: &Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).unwrap();
        STANDARD.encode(bytes)
    }

    fn decoded(text: &str) -> Option<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        Decoder::new().decode(text, &mut |value, count| found.push((value, count)))?;
        Some(found)
    }

    proptest! {
        #[test]
        fn decoded_counts_match_the_histogram(
            values in prop::collection::vec((0u64..40, 1u64..1_000_000), 0..200), digits in 1u8..5, low in 1u64..2000,
        ) {
            let mut histogram = Histogram::<u64>::new_with_bounds(low, 1 << 45, digits).unwrap();
            for (bits, count) in values {
                histogram.record_n((1 << bits) + count, count).unwrap();
            }
            let lowest = |value| histogram.lowest_equivalent(value);
            let expect: Vec<_> =
                histogram.iter_recorded().map(|at| (lowest(at.value_iterated_to()), at.count_at_value())).collect();
            prop_assert_eq!(decoded(&encoded(&histogram)), Some(expect));
        }

        #[test]
        fn a_damaged_histogram_does_not_panic_and_a_truncated_one_is_rejected(at in 0usize..400, byte in any::<u8>()) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            (1..200u64).for_each(|n| histogram.record(n * n * 1000).unwrap());
            let mut bytes = STANDARD.decode(encoded(&histogram)).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = decoded(&STANDARD.encode(&bytes));
            bytes.truncate(at);
            prop_assert_eq!(decoded(&STANDARD.encode(&bytes)), None);
        }
    }

    #[test]
    fn one_decoder_reads_several_histograms() {
        let mut decoder = Decoder::new();
        for count in [1u64, 1000, 3] {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            (0..count).for_each(|n| histogram.record(1 + n * n * 977).unwrap());
            let mut total = 0;
            decoder.decode(&encoded(&histogram), &mut |_, count| total += count).unwrap();
            assert_eq!(total, count);
            assert_eq!(decoder.decode("AAAA", &mut |_, _| {}), None);
        }
        assert_eq!(decoded(&encoded(&Histogram::new(3).unwrap())), Some(vec![]));
    }
}
