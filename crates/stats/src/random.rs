//! Random numbers from a seed: the order of blocks and the resamples of the bootstrap can be drawn again.

use loadline_base::numbers::SplitMix64;

/// Numbers of this seed; `stream` tells apart what is drawn from it for different ends.
pub fn stream(seed: u64, stream: u64) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new(seed).next() ^ SplitMix64::new(stream).next())
}
