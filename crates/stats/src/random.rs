//! Random numbers from a seed: the order of blocks and the resamples of the bootstrap can be drawn again.

use loadline_base::numbers::SplitMix64;

/// Random numbers of this seed. `stream` separates the numbers drawn for different purposes.
pub fn stream(seed: u64, stream: u64) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new(seed).next() ^ SplitMix64::new(stream).next())
}
