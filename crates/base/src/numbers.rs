//! Plain numbers: the median, and seeded random numbers.

/// The middle value, or the mean of the two middle ones; `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    // Both values are halved first, so the mean of two very large numbers does not overflow.
    Some(if sorted.len() % 2 == 1 { upper } else { sorted[middle - 1] / 2.0 + upper / 2.0 })
}

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits per step, and any seed will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is not an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0. Uses multiplication instead of a remainder: the bias is below 2⁻³² for
    /// any bound below 2³², far below what a load could show.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform number of at least 0 and below 1, in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An approximately standard normal value: the sum of twelve uniform values, minus its mean.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A gap of a Poisson process with one event per unit: exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        // 53 bits in (0, 1]: the logarithm is finite.
        let unit = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -unit.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[9.0, 1.0, 2.0])], [None, Some(3.0), Some(2.0)]);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn numbers_are_reproducible_in_range_and_spread() {
        let mut random = SplitMix64::new(1);
        let mut again = SplitMix64::new(1);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            let drawn = random.below(10);
            assert_eq!(drawn, again.below(10));
            counts[drawn as usize] += 1;
        }
        // Five standard deviations of a binomial with p = 0.1.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn exponential_gaps_have_mean_and_deviation_one() {
        let mut random = SplitMix64::new(7);
        let gaps: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (variance.sqrt() - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
