//! The two-step verdict on a difference, and the number of blocks that would decide an open one.

use super::amounts::least_at;
use crate::record::{Better, DifferenceVerdict, LeastRecord};
use loadline_stats::interval::Estimate;
use loadline_stats::quantiles::student;

/// Fewer blocks say too little about how much a difference varies, even if it is the same in all of them.
const SPREAD_BLOCKS_MIN: usize = 5;
/// Maximum number of blocks in a forecast: with a JVM per trial, they take hours.
const BLOCKS_FORESEEN: usize = 200;

/// A difference on the scale on which it is judged: the metric's, or the logarithm of the ratio. 0 means no change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) estimate: Estimate,
    /// The least difference that matters, on the same scale.
    pub(super) least: f64,
}

impl Scale {
    /// Judges by the ratio if the least difference is a share and a ratio exists. Otherwise, the share refers to the
    /// larger of the two medians, whichever is the baseline.
    pub(super) fn of(difference: Estimate, ratio: Option<Estimate>, least: LeastRecord, medians: [f64; 2]) -> Self {
        match (least, ratio) {
            (LeastRecord::Relative(share), Some(ratio)) => Self { estimate: ratio, least: share.ln_1p() },
            _ => {
                let [one, other] = medians.map(f64::abs);
                Self { estimate: difference, least: least_at(least, one.max(other)) }
            }
        }
    }
}

/// Better or worse if the interval excludes zero and the estimate reaches the least difference that matters. Equivalent
/// if the whole interval is within that least difference.
pub(super) fn judge(scale: &Scale, better: Better, blocks: usize) -> DifferenceVerdict {
    let Estimate { centre, ends: Some((low, high)) } = scale.estimate else { return DifferenceVerdict::CannotTell };
    let no_spread = low == high && centre != 0.0 && blocks < SPREAD_BLOCKS_MIN;
    if no_spread || !low.is_finite() || !high.is_finite() {
        return DifferenceVerdict::CannotTell;
    }
    let excludes_no_change = low > 0.0 || high < 0.0;
    if excludes_no_change && centre.abs() >= scale.least {
        return match (centre > 0.0, better) {
            (true, Better::Higher) | (false, Better::Lower) => DifferenceVerdict::Better,
            (true, Better::Lower) | (false, Better::Higher) => DifferenceVerdict::Worse,
        };
    }
    match -scale.least <= low && high <= scale.least {
        true => DifferenceVerdict::Equivalent,
        false => DifferenceVerdict::CannotTell,
    }
}

/// How many blocks in total would probably decide an open verdict, if the estimate stays the same. The interval shrinks
/// with √n, and with Student's t. `None` if the verdict is decided, or there is no interval to extrapolate from. Also
/// `None` if it would take more than [`BLOCKS_FORESEEN`], because the estimate is close to the least difference.
pub(super) fn blocks_needed(scale: &Scale, blocks: usize, confidence: f64) -> Option<u32> {
    let Estimate { centre, ends: Some((low, high)) } = scale.estimate else { return None };
    if judge(scale, Better::Lower, blocks) != DifferenceVerdict::CannotTell {
        return None;
    }
    if low == high {
        return Some(SPREAD_BLOCKS_MIN as u32);
    }
    settled_at([low, centre, high], blocks, confidence, |[low, centre, high], more| {
        let foreseen = Scale { estimate: Estimate { centre, ends: Some((low, high)) }, least: scale.least };
        judge(&foreseen, Better::Lower, more) != DifferenceVerdict::CannotTell
    })
}

/// The first number of blocks at which `decides`, if the center stays and the interval shrinks with √n and Student's
/// t. `None` if that takes more than [`BLOCKS_FORESEEN`].
pub(super) fn settled_at(
    [low, centre, high]: [f64; 3],
    blocks: usize,
    confidence: f64,
    decides: impl Fn([f64; 3], usize) -> bool,
) -> Option<u32> {
    let is_decided = |more: &usize| {
        let t = student(confidence, *more) / student(confidence, blocks);
        let by = t * (blocks as f64 / *more as f64).sqrt();
        decides([centre - by * (centre - low), centre, centre + by * (high - centre)], *more)
    };
    (blocks + 1..=BLOCKS_FORESEEN).find(is_decided).map(|more| more as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use DifferenceVerdict::{Better as Improved, CannotTell, Equivalent, Worse};

    fn scale(low: f64, centre: f64, high: f64) -> Scale {
        Scale { estimate: Estimate { centre, ends: Some((low, high)) }, least: 1.0 }
    }

    #[test]
    fn a_verdict_needs_a_certain_and_relevant_difference() {
        let check = |low, centre, high, expect| {
            assert_eq!(judge(&scale(low, centre, high), Better::Lower, 10), expect, "{low} {centre} {high}");
        };
        check(1.0, 2.0, 3.0, Worse);
        check(-3.0, -2.0, -1.0, Improved);
        check(0.1, 1.0, 1.9, Worse);
        // Certain, but too small to matter; and large, but not certain.
        check(0.1, 0.5, 0.9, Equivalent);
        check(0.1, 0.9, 1.7, CannotTell);
        check(-0.1, 2.0, 4.1, CannotTell);
        check(0.0, 2.0, 4.0, CannotTell);
        check(-1.0, 0.0, 1.0, Equivalent);
        check(-1.01, 0.0, 1.0, CannotTell);
        assert_eq!(judge(&scale(1.0, 2.0, 3.0), Better::Higher, 10), Improved);
    }

    #[test]
    fn few_equal_differences_give_no_verdict() {
        assert_eq!(judge(&scale(2.0, 2.0, 2.0), Better::Lower, 4), CannotTell);
        assert_eq!(judge(&scale(2.0, 2.0, 2.0), Better::Lower, 5), Worse);
        assert_eq!(judge(&scale(0.0, 0.0, 0.0), Better::Lower, 3), Equivalent);
        assert_eq!(blocks_needed(&scale(2.0, 2.0, 2.0), 3, 0.95), Some(5));
        let unknown = Scale { estimate: Estimate { centre: 5.0, ends: None }, least: 1.0 };
        assert_eq!((judge(&unknown, Better::Lower, 2), blocks_needed(&unknown, 2, 0.95)), (CannotTell, None));
    }

    /// The half-width of 4 must fall below 2: four times as many blocks, or slightly fewer, because t falls too.
    #[test]
    fn needed_blocks_follow_from_the_interval() {
        assert_eq!(blocks_needed(&scale(-2.0, 2.0, 6.0), 5, 0.95), Some(13));
        assert_eq!(blocks_needed(&scale(-4.0, 0.0, 4.0), 5, 0.95), Some(43));
        assert_eq!(blocks_needed(&scale(1.0, 2.0, 3.0), 5, 0.95), None);
        // Certain, and just below the least difference that matters: no number of blocks would decide it.
        assert_eq!(blocks_needed(&scale(0.0, 0.99, 1.98), 5, 0.95), None);
    }
}
