//! Rows of single requests: all of them up to a limit, then a uniform sample, which bounds memory. Failed ones may be
//! kept separately, because a few of them would be lost among many others.

use super::outcome::Row;
use loadline_base::numbers::SplitMix64;

#[derive(Debug)]
pub(super) struct Rows {
    all: Reservoir,
    /// `None` if failed requests are among the others.
    failed: Option<Reservoir>,
}

impl Rows {
    pub(super) fn new(max: usize, seed: u64) -> Self {
        Self { all: Reservoir::new(max, seed), failed: None }
    }

    /// Failed requests get their own limit, unless it is 0.
    pub(super) fn with_failed_apart(mut self, max: usize, seed: u64) -> Self {
        self.failed = (max > 0).then(|| Reservoir::new(max, seed));
        self
    }

    #[inline]
    pub(super) fn wanted(&self) -> bool {
        self.all.max > 0 || self.failed.is_some()
    }

    /// Counts a correct response; calls `row` only if the row is kept.
    #[inline]
    pub(super) fn answered(&mut self, row: impl FnOnce() -> Row) {
        self.all.offer(row);
    }

    #[inline]
    pub(super) fn failed(&mut self, row: impl FnOnce() -> Row) {
        self.failed.as_mut().unwrap_or(&mut self.all).offer(row);
    }

    /// The kept rows, by start.
    pub(super) fn finish(self) -> Vec<Row> {
        let mut kept = self.all.kept;
        kept.extend(self.failed.into_iter().flat_map(|failed| failed.kept));
        kept.sort_unstable_by_key(|row| (row.started_ns, row.ended_ns));
        kept
    }
}

/// Keeps each row with the same probability (reservoir sampling, algorithm L: Li, "Reservoir-sampling algorithms of
/// time complexity O(n(1 + log(N/n)))", ACM TOMS 20, 1994). Only kept rows draw random numbers; every other row costs
/// one decrement.
#[derive(Debug)]
struct Reservoir {
    kept: Vec<Row>,
    max: usize,
    /// Rows to skip before the next one that is kept.
    skip: u64,
    /// Li's W: the largest of the random keys that the kept rows would have.
    largest_key: f64,
    random: SplitMix64,
}

impl Reservoir {
    fn new(max: usize, seed: u64) -> Self {
        let skip = if max == 0 { u64::MAX } else { 0 };
        Self { kept: Vec::new(), max, skip, largest_key: 1.0, random: SplitMix64::new(seed) }
    }

    #[inline]
    fn offer(&mut self, row: impl FnOnce() -> Row) {
        match self.skip {
            0 => self.keep(row()),
            // No phase has 2^64 rows: with a limit of 0, none is kept.
            skip => self.skip = skip - 1,
        }
    }

    #[inline(never)]
    fn keep(&mut self, row: Row) {
        if self.kept.len() < self.max {
            self.kept.push(row);
        } else {
            let place = self.random.below(self.max as u64) as usize;
            if let Some(kept) = self.kept.get_mut(place) {
                *kept = row;
            }
        }
        if self.kept.len() == self.max {
            // exp(-E/n) with exponential E is the n-th root of a uniform number.
            self.largest_key *= (-self.random.exponential() / self.max as f64).exp();
            // Saturates once no more rows can be kept.
            self.skip = (self.random.exponential() / -(-self.largest_key).ln_1p()) as u64;
        }
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
            request: Some(0),
            connection: Some(0),
            status: 200,
            failure: None,
        }
    }

    fn kept(max: usize, offered: u64, seed: u64) -> Vec<Row> {
        let mut rows = Rows::new(max, seed);
        (0..offered).for_each(|number| rows.answered(|| row(number)));
        rows.finish()
    }

    #[test]
    fn all_rows_are_kept_up_to_the_limit_then_sampled() {
        assert_eq!(kept(1000, 1000, 1), (0..1000).map(row).collect::<Vec<_>>());
        let sample = kept(1000, 100_000, 1);
        assert_eq!(sample.len(), 1000);
        let early = sample.iter().filter(|row| row.started_ns < 50_000).count();
        // Five standard deviations of a binomial with p = 0.5.
        assert!((420..580).contains(&early), "{early}");
        assert!(sample.windows(2).all(|pair| pair[0].started_ns < pair[1].started_ns));
    }

    #[test]
    fn each_row_is_kept_equally_often() {
        let mut counts = [0u32; 10];
        for seed in 0..20_000 {
            for row in kept(3, 10, seed * 7919) {
                counts[row.started_ns as usize] += 1;
            }
        }
        // 6,000 each; five standard deviations of a binomial with p = 0.3.
        assert!(counts.iter().all(|count| (5675..6325).contains(count)), "{counts:?}");
    }

    #[test]
    fn separately_kept_failures_take_no_room_from_others() {
        let mut rows = Rows::new(100, 1).with_failed_apart(10, 2);
        for number in 0..100_000 {
            match number % 20_000 {
                7 => rows.failed(|| Row { failure: Some("reset"), ..row(number) }),
                _ => rows.answered(|| row(number)),
            }
        }
        let kept = rows.finish();
        let failed: Vec<u64> = kept.iter().filter(|row| row.failure.is_some()).map(|row| row.started_ns).collect();
        assert_eq!(failed, [7, 20_007, 40_007, 60_007, 80_007]);
        assert_eq!(kept.len(), 105);
        assert!(kept.is_sorted_by_key(|row| row.started_ns));
    }

    #[test]
    fn a_row_limit_of_zero_keeps_no_rows() {
        let mut rows = Rows::new(0, 1);
        assert!(!rows.wanted());
        rows.answered(|| unreachable!("no row is made"));
        assert_eq!(rows.finish(), []);
        let mut failed = Rows::new(0, 1).with_failed_apart(1, 1);
        failed.answered(|| unreachable!("no row is made"));
        failed.failed(|| row(1));
        assert_eq!(failed.finish(), [row(1)]);
    }
}
