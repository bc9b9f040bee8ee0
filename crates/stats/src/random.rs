//! Random numbers from a seed: the order of blocks and the resamples of the bootstrap can be drawn again.

use loadline_base::numbers::SplitMix64;

/// Random numbers of a seed, for one end of several.
#[derive(Debug, Clone, Copy)]
pub struct Random(SplitMix64);

impl Random {
    /// Numbers of this seed; `stream` tells apart what is drawn from it for different ends.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(SplitMix64::new(SplitMix64::new(seed).next() ^ SplitMix64::new(stream).next()))
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "numbers without an end are no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }
}
