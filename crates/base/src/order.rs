//! Sorting with machine code shared by all types.
//!
//! `slice::sort_by` adds about 4 KiB of machine code per type, and most lists here are short.

use std::cmp::{Ordering, Reverse};

/// Stable sorting of a slice, for lists that are short or rarely sorted: a comparison is an indirect call, and each
/// element takes up to 24 bytes during sorting. Code that sorts millions of elements calls `slice::sort_by`.
pub trait Order<T> {
    /// Sorts with a comparison, as `slice::sort_by` does.
    fn order_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);

    /// Sorts by a key, smallest first, as `slice::sort_by_key` does.
    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }

    /// Sorts by a key, largest first; equal elements keep their order.
    fn largest_first<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by_key(|one| Reverse(key(one)));
    }
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        for (one, other) in swaps(self.len(), &|one, other| compare(&self[one], &self[other])) {
            self.swap(one, other);
        }
    }
}

/// The swaps that sort `length` elements, given a comparison of two positions.
fn swaps(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut from: Vec<usize> = (0..length).collect();
    from.sort_by(|one, other| compare(*one, *other));
    let mut swaps = Vec::new();
    // Along each cycle of the permutation, a swap empties a position, and the next swap fills it.
    for start in 0..length {
        let mut at = start;
        while from[at] != start {
            swaps.push((at, from[at]));
            at = std::mem::replace(&mut from[at], at);
        }
        from[at] = at;
    }
    swaps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Order;

    proptest! {
        #[test]
        fn sorting_matches_the_standard_library(list in prop::collection::vec((0_u8..9, any::<u16>()), 0..200)) {
            let (mut ordered, mut sorted) = (list.clone(), list.clone());
            ordered.order_by_key(|of| of.0);
            sorted.sort_by_key(|of| of.0);
            prop_assert_eq!(&ordered, &sorted);
            ordered.largest_first(|of| of.0);
            sorted.sort_by_key(|of| std::cmp::Reverse(of.0));
            prop_assert_eq!(&ordered, &sorted);
            let (mut ordered, mut sorted) = (list.clone(), list);
            ordered.order_by(|one, other| other.1.cmp(&one.1));
            sorted.sort_by_key(|of| std::cmp::Reverse(of.1));
            prop_assert_eq!(ordered, sorted);
        }
    }
}
