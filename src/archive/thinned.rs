//! A series that is thinned as it grows, so that its memory use is bounded.

use std::num::NonZeroUsize;

/// Ordered values; neighbors are merged when there are too many.
#[derive(Debug)]
pub(super) struct Thinned<T> {
    kept: Vec<T>,
    /// Values merged into each element of `kept` except the last.
    group: u64,
    /// Values merged into the last element of `kept`.
    filled: u64,
    kept_max: NonZeroUsize,
    /// Merges the second, later value into the first.
    join: fn(&mut T, T),
}

impl<T> Thinned<T> {
    /// Holds at most `kept_max` elements (at least 2).
    pub(super) fn new(kept_max: usize, join: fn(&mut T, T)) -> Self {
        let kept_max = NonZeroUsize::MIN.saturating_add(kept_max.max(2) - 1);
        Self { kept: Vec::new(), group: 1, filled: 1, kept_max, join }
    }

    pub(super) fn push(&mut self, value: T) {
        if let Some(last) = self.kept.last_mut().filter(|_| self.filled < self.group) {
            (self.join)(last, value);
            self.filled += 1;
            return;
        }
        if self.kept.len() == self.kept_max.get() {
            let even = self.kept.len().is_multiple_of(2);
            self.kept = joined(std::mem::take(&mut self.kept), 2, self.join);
            self.group *= 2;
            // An unpaired element at the end is half full.
            self.filled = if even { self.group } else { self.group / 2 };
            return self.push(value);
        }
        self.kept.push(value);
        self.filled = 1;
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn group(&self) -> u64 {
        self.group
    }

    /// At most `max` elements (at least 1), each merged from the same number of values, except the last.
    pub(super) fn finish(self, max: usize) -> Vec<T> {
        let times = self.kept.len().div_ceil(max.max(1)).max(1);
        joined(self.kept, times, self.join)
    }
}

/// Merges each group of `times` neighbors.
fn joined<T>(values: Vec<T>, times: usize, join: fn(&mut T, T)) -> Vec<T> {
    let mut fewer: Vec<T> = Vec::with_capacity(values.len().div_ceil(times));
    for (at, value) in values.into_iter().enumerate() {
        match fewer.last_mut().filter(|_| at % times != 0) {
            Some(last) => join(last, value),
            None => fewer.push(value),
        }
    }
    fewer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// First, last, count, and maximum of the merged values.
    type Span = (u64, u64, u64, u64);

    fn join(into: &mut Span, later: Span) {
        *into = (into.0, later.1, into.2 + later.2, into.3.max(later.3));
    }

    proptest! {
        #[test]
        fn thinning_keeps_counts_maximum_and_order(
            values in prop::collection::vec(0u64..1000, 0..500), kept in 2usize..40, max in 1usize..40,
        ) {
            let mut thinned = Thinned::new(kept, join);
            for (at, value) in values.iter().enumerate() {
                thinned.push((at as u64, at as u64, 1, *value));
                prop_assert!(thinned.len() <= kept);
            }
            let spans = thinned.finish(max);
            prop_assert!(spans.len() <= max);
            prop_assert_eq!(spans.iter().map(|span| span.2).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(spans.iter().map(|span| span.3).max(), values.iter().copied().max());
            let mut next = 0;
            for span in &spans {
                prop_assert_eq!((span.0, span.1 + 1 - span.0), (next, span.2));
                next = span.1 + 1;
            }
            // All but the last represent the same number of values.
            if let [first, .., _] = spans.as_slice() {
                prop_assert!(spans[..spans.len() - 1].iter().all(|span| span.2 == first.2), "{spans:?}");
            }
        }
    }

    #[test]
    fn few_values_are_not_thinned() {
        let mut thinned = Thinned::new(4, join);
        (0..4).for_each(|n| thinned.push((n, n, 1, n)));
        assert_eq!((thinned.group(), thinned.finish(4)), (1, (0..4).map(|n| (n, n, 1, n)).collect()));
    }
}
