//! Properties of a comparison that hold for all values.

use super::differences::compare;
use crate::record::{Better, ComparisonRecord, DifferenceVerdict, MetricRecord, Unit, ValueRecord};
use crate::scenario::Compare;
use loadline_stats::interval::{Resamples, Sample};
use proptest::prelude::*;

fn metric(name: &str, unit: Unit, configuration: &str, values: &[f64]) -> MetricRecord {
    let value = |(place, value): (usize, &f64)| ValueRecord {
        trial: place as u32,
        block: place as u32,
        value: *value,
        used: true,
    };
    let better = if unit == Unit::PerSecond { Better::Higher } else { Better::Lower };
    MetricRecord {
        values: values.iter().enumerate().map(value).collect(),
        median: super::metrics::median(values),
        ..super::catalogue::without_values(name.to_owned(), unit, better, configuration)
    }
}

/// Candidate `b` against baseline `a`, or vice versa.
fn compared(unit: Unit, a: &[f64], b: &[f64], baseline: &str) -> ComparisonRecord {
    let metrics = [metric("m", unit, "a", a), metric("m", unit, "b", b)];
    let asked = Compare { baseline: Some(baseline.to_owned()), metrics: vec!["m".to_owned()], ..Compare::default() };
    compare(&metrics, &asked, 5).swap_remove(0)
}

fn mirrored(verdict: DifferenceVerdict) -> DifferenceVerdict {
    match verdict {
        DifferenceVerdict::Better => DifferenceVerdict::Worse,
        DifferenceVerdict::Worse => DifferenceVerdict::Better,
        same => same,
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1e-9)
}

fn positive() -> impl Strategy<Value = Vec<(f64, f64)>> {
    proptest::collection::vec((50.0..150.0f64, 50.0..150.0f64), 1..12)
}

fn any_values() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(-1e6..1e6f64, 3..12)
}

/// Laws need every value, but not many resamples.
fn few() -> Resamples {
    Resamples::new(3, 200)
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(debug_assertions) { 8 } else { 100 }, ..ProptestConfig::default() }
}

fn units() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![Unit::Bytes, Unit::PerSecond, Unit::Seconds])
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn swapping_baseline_and_candidate_mirrors_the_result(pairs in positive(), unit in units()) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (there, back) = (compared(unit, &a, &b, "a"), compared(unit, &a, &b, "b"));
        prop_assert_eq!(there.difference, -back.difference);
        prop_assert_eq!(there.low, back.high.map(|high| -high));
        prop_assert_eq!(there.high, back.low.map(|low| -low));
        prop_assert!(close(there.ratio.unwrap() * back.ratio.unwrap(), 1.0));
        if let (Some(low), Some(high)) = (there.ratio_low, back.ratio_high) {
            prop_assert!(close(low * high, 1.0));
        }
        prop_assert_eq!(there.verdict, mirrored(back.verdict));
        prop_assert_eq!(there.blocks_needed, back.blocks_needed);
    }

    #[test]
    fn an_interval_shifts_and_scales_with_its_values(
        values in any_values(),
        shift in -1e6..1e6f64,
        scale in 0.01..100.0f64,
    ) {
        let before = few().one_sample(Sample::Values, &values, 0.95).unwrap();
        let moved: Vec<f64> = values.iter().map(|value| value * scale + shift).collect();
        let after = few().one_sample(Sample::Values, &moved, 0.95).unwrap();
        let expected = |value: f64| value * scale + shift;
        let near = |one: f64, other: f64| (one - other).abs() < 1e-6 * (1.0 + scale) * 1e3;
        let ((low, high), (moved_low, moved_high)) = (before.ends.unwrap(), after.ends.unwrap());
        prop_assert!(near(after.centre, expected(before.centre)));
        prop_assert!(near(moved_low, expected(low)) && near(moved_high, expected(high)), "{:?} {:?}", before, after);
    }

    #[test]
    fn an_interval_contains_its_center_and_grows_with_confidence(values in any_values()) {
        let mut last = (0.0, 0.0);
        for confidence in [0.5, 0.8, 0.95, 0.99, 0.99999] {
            let estimate = few().one_sample(Sample::Values, &values, confidence).unwrap();
            let (low, high) = estimate.ends.unwrap();
            prop_assert!(low <= estimate.centre && estimate.centre <= high);
            prop_assert!(confidence < 0.81 || (low <= last.0 && high >= last.1), "{:?} {:?}", last, (low, high));
            last = (low, high);
        }
    }

    /// As the candidate gets better, the verdict never gets worse.
    #[test]
    fn a_better_candidate_never_gets_a_worse_verdict(
        pairs in proptest::collection::vec((95.0..105.0f64, 95.0..105.0f64), 3..12),
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let rank = |shift: i32| {
            let b: Vec<f64> = b.iter().map(|value| (value + f64::from(shift)) * 1_048_576.0).collect();
            let a: Vec<f64> = a.iter().map(|value| value * 1_048_576.0).collect();
            match compared(Unit::Bytes, &a, &b, "a").verdict {
                DifferenceVerdict::Better => 0,
                DifferenceVerdict::CannotTell | DifferenceVerdict::Equivalent => 1,
                DifferenceVerdict::Worse => 2,
            }
        };
        let ranks: Vec<i32> = (-40..=40).step_by(10).map(rank).collect();
        prop_assert!(ranks.is_sorted(), "{:?}", ranks);
    }

    #[test]
    fn swapping_two_samples_mirrors_their_center(a in any_values(), b in any_values()) {
        let (there, back) = (few().two_samples(&a, &b, 0.95).unwrap(), few().two_samples(&b, &a, 0.95).unwrap());
        prop_assert_eq!(there.centre, -back.centre);
        let (low, high) = there.ends.unwrap();
        prop_assert!(low <= there.centre && there.centre <= high);
    }
}

#[test]
fn extreme_values_can_be_compared() {
    for values in [vec![0.0; 6], vec![f64::MAX; 4], vec![f64::MIN_POSITIVE; 5], vec![1.0, f64::MAX, 0.0, 2.0, 3.0]] {
        let record = compared(Unit::Seconds, &values, &values, "a");
        assert_eq!(record.difference, 0.0);
        assert_eq!(record.verdict, DifferenceVerdict::Equivalent, "{record:?}");
    }
    let record = compared(Unit::Seconds, &[0.0; 6], &[1.0; 6], "a");
    assert_eq!((record.ratio, record.verdict), (None, DifferenceVerdict::Worse));
}

#[test]
fn one_or_two_blocks_give_no_verdict() {
    for blocks in 1..3 {
        let record = compared(Unit::Bytes, &vec![1e6; blocks], &vec![9e9; blocks], "a");
        assert_eq!((record.low, record.ratio_low, record.verdict), (None, None, DifferenceVerdict::CannotTell));
        assert_eq!(record.blocks, blocks as u32);
    }
}

#[test]
fn the_family_determines_each_confidence() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0];
    let mut metrics = Vec::new();
    for name in ["x", "y", "z", "w", "v"] {
        for configuration in ["a", "b", "c"] {
            metrics.push(metric(name, Unit::Seconds, configuration, &values));
        }
    }
    metrics.sort_by(|one, other| one.configuration.cmp(&other.configuration));
    let asked = Compare { metrics: vec!["z".to_owned()], ..Compare::default() };
    let compared = compare(&metrics, &asked, 1);
    assert_eq!(compared.len(), 10);
    for record in &compared {
        let family = if record.primary { 2.0 } else { 8.0 };
        assert!((record.confidence_each - (1.0 - 0.05 / family)).abs() < 1e-12);
        assert_eq!((record.confidence, record.primary), (0.95, record.metric == "z"));
        assert_eq!(record.baseline, "a");
    }
    assert!(compared[0].primary && compared[1].primary && !compared[2].primary);
}

#[test]
fn a_comparison_plan_lists_invalid_settings() {
    let metrics =
        [metric("rss.loaded", Unit::Bytes, "g1", &[1.0; 3]), metric("rss.loaded", Unit::Bytes, "zgc", &[1.0; 3])];
    let asked = Compare {
        baseline: Some("zgb".to_owned()),
        metrics: vec!["rss.loaded".to_owned(), "rss.loadde".to_owned()],
        least: vec![
            ("rss".to_owned(), "5ms".parse().unwrap()),
            ("p99".to_owned(), "5ms".parse().unwrap()),
            ("rss.loaded".to_owned(), "1MiB".parse().unwrap()),
        ],
        ..Compare::default()
    };
    let plan = super::plan(&metrics, &asked);
    assert_eq!((plan.baseline, plan.judged), (None, vec!["rss.loaded".to_owned()]));
    let refused = ["`zgc`", "`rss.loaded`", "`60MiB`", "does not apply to any"];
    assert_eq!(plan.refused.len(), refused.len());
    for (why, piece) in plan.refused.iter().zip(refused) {
        assert!(why.contains(piece), "{why}");
    }
    assert_eq!(compare(&metrics, &asked, 1), []);
}

/// Excludes values of blocks that do not count, and blocks that only one configuration has.
#[test]
fn only_counting_common_blocks_are_compared() {
    let mut metrics = [
        metric("m", Unit::Seconds, "a", &[1.0, 2.0, 3.0, 4.0, 99.0]),
        metric("m", Unit::Seconds, "b", &[2.0, 3.0, 4.0, 99.0]),
    ];
    metrics[0].values[3].used = false;
    metrics[1].values[3].used = false;
    let asked = Compare { metrics: vec!["m".to_owned()], ..Compare::default() };
    let record = compare(&metrics, &asked, 1).swap_remove(0);
    assert_eq!((record.blocks, record.difference), (3, 1.0));
}
