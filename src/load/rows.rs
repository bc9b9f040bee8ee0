//! Rows of single requests: all of them up to a bound, a fair sample beyond, so that memory stays bounded.

use super::outcome::Row;
use super::random::SplitMix64;

/// Keeps each row it was offered with the same probability (reservoir sampling, Vitter 1985, algorithm R).
#[derive(Debug)]
pub(super) struct Rows {
    kept: Vec<Row>,
    max: usize,
    offered: u64,
    random: SplitMix64,
}

impl Rows {
    pub(super) fn new(max: usize, seed: u64) -> Self {
        Self { kept: Vec::new(), max, offered: 0, random: SplitMix64::new(seed) }
    }

    /// Whether any are kept.
    #[inline]
    pub(super) fn wanted(&self) -> bool {
        self.max > 0
    }

    pub(super) fn offer(&mut self, row: Row) {
        self.offered += 1;
        if self.kept.len() < self.max {
            self.kept.push(row);
            return;
        }
        let place = self.random.below(self.offered);
        if let Some(kept) = usize::try_from(place).ok().and_then(|place| self.kept.get_mut(place)) {
            *kept = row;
        }
    }

    /// The rows that were kept, by start.
    pub(super) fn finish(mut self) -> Vec<Row> {
        self.kept.sort_by_key(|row| (row.started_ns, row.ended_ns));
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> Row {
        Row {
            intended_ns: number,
            started_ns: number,
            connected_ns: number,
            first_byte_ns: number,
            ended_ns: number,
            body_bytes: 0,
            request: 0,
            connection: 0,
            status: 200,
            failure: None,
        }
    }

    #[test]
    fn all_are_kept_up_to_the_bound_and_a_fair_sample_beyond() {
        let kept = |n: u64| {
            let mut rows = Rows::new(1000, 1);
            (0..n).for_each(|number| rows.offer(row(number)));
            rows.finish()
        };
        assert_eq!(kept(1000), (0..1000).map(row).collect::<Vec<_>>());
        let sample = kept(100_000);
        assert_eq!(sample.len(), 1000);
        let early = sample.iter().filter(|row| row.started_ns < 50_000).count();
        // Five standard deviations of a binomial with p = 0.5.
        assert!((420..580).contains(&early), "{early}");
        assert!(sample.windows(2).all(|pair| pair[0].started_ns < pair[1].started_ns));
    }
}
