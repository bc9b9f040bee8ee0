//! Seeded random numbers: the order of blocks and the bootstrap's resamples are reproducible.

use loadline_base::numbers::SplitMix64;

/// Random numbers from this seed. `stream` separates the numbers drawn for different purposes.
pub fn stream(seed: u64, stream: u64) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new(seed).next() ^ SplitMix64::new(stream).next())
}
