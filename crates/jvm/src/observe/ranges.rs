//! Lists of address ranges: which ranges overlap, and which gaps they leave.

/// Drops each range that begins before the end of the last one kept. The list is in address order.
pub(super) fn leave_out_overlaps<T>(list: &mut Vec<T>, range: impl Fn(&T) -> (u64, u64)) {
    let mut reached = 0;
    list.retain(|one| {
        let (start, end) = range(one);
        let apart = start >= reached;
        reached = if apart { end } else { reached };
        apart
    });
}

/// The parts of `[start, end)` outside these ranges, which are ordered by their starts.
pub fn gaps(start: u64, end: u64, taken: impl IntoIterator<Item = (u64, u64)>) -> impl Iterator<Item = (u64, u64)> {
    let mut at = start;
    let behind_all = (end, end);
    let gap = move |(from, to): (u64, u64)| {
        let gap = (at, from.min(end));
        at = at.max(to);
        (gap.0 < gap.1).then_some(gap)
    };
    taken.into_iter().chain([behind_all]).filter_map(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_two_overlapping_ranges_is_dropped() {
        let mut list = vec![(10, 20), (15, 35), (20, 30), (40, 41)];
        leave_out_overlaps(&mut list, |range| *range);
        assert_eq!(list, [(10, 20), (20, 30), (40, 41)]);
    }

    #[test]
    fn gaps_are_between_taken_ranges_and_within_bounds() {
        let found = |start, end, taken: &[(u64, u64)]| gaps(start, end, taken.to_vec()).collect::<Vec<_>>();
        assert_eq!(found(10, 50, &[(0, 12), (20, 30), (25, 27), (30, 40), (60, 70)]), [(12, 20), (40, 50)]);
        assert_eq!(found(10, 50, &[]), [(10, 50)]);
        assert_eq!(found(10, 50, &[(5, 60)]), []);
        assert_eq!(found(50, 10, &[(20, 30)]), []);
        assert_eq!(found(0, u64::MAX, &[(8, u64::MAX)]), [(0, 8)]);
    }
}
