//! A series that is thinned while it grows, so that memory is bounded whatever its length.

use std::num::NonZeroUsize;

/// Values in order; neighbours are joined when there are too many.
#[derive(Debug)]
pub(super) struct Thinned<T> {
    kept: Vec<T>,
    /// Values joined into each of `kept`, but for the last.
    group: u64,
    /// Values in the last of `kept`.
    filled: u64,
    kept_max: NonZeroUsize,
    /// Joins the second, later value into the first.
    join: fn(&mut T, T),
}

impl<T> Thinned<T> {
    /// Never holds more than `kept_max` (at least 2).
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
            // An odd one out at the end is half full.
            self.filled = if even { self.group } else { self.group / 2 };
            return self.push(value);
        }
        self.kept.push(value);
        self.filled = 1;
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// How many values were joined into each.
    pub(super) fn group(&self) -> u64 {
        self.group
    }

    /// At most `max` (at least 1), each of equally many values but for the last.
    pub(super) fn finish(self, max: usize) -> Vec<T> {
        let times = self.kept.len().div_ceil(max.max(1)).max(1);
        joined(self.kept, times, self.join)
    }
}

/// Each `times` neighbours joined.
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

    /// First, last, count and highest of what was joined.
    type Span = (u64, u64, u64, u64);

    fn join(into: &mut Span, later: Span) {
        *into = (into.0, later.1, into.2 + later.2, into.3.max(later.3));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_out_of_order(
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
            // All but the last stand for equally many.
            if let [first, .., _] = spans.as_slice() {
                prop_assert!(spans[..spans.len() - 1].iter().all(|span| span.2 == first.2), "{spans:?}");
            }
        }
    }

    #[test]
    fn few_values_stay_as_they_are() {
        let mut thinned = Thinned::new(4, join);
        (0..4).for_each(|n| thinned.push((n, n, 1, n)));
        assert_eq!((thinned.group(), thinned.finish(4)), (1, (0..4).map(|n| (n, n, 1, n)).collect()));
    }
}
