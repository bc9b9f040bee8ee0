//! Random numbers from a seed: the order of blocks and the resamples of the bootstrap can be drawn again.

/// SplitMix64 (Steele, Lea and Flood 2014): every seed is a good one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random(u64);

impl Random {
    /// Numbers of this seed; `stream` tells apart what is drawn from it for different ends.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed);
        let first = mixed.next();
        Self(first ^ Self(stream).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0. By multiplication: its bias is below 2⁻³² for any bound below 2³².
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
