//! Laws of the verdict: it uses no future data, is invariant to an offset, and tolerates gaps and odd numbers.

use crate::lives::{Dice, TUNED, life};
use loadline_stats::growth::{DAY, Floors, HOUR, Judgement, Ladder, STEP, Unsure, Verdict};
use proptest::prelude::*;

const MIB: f64 = 1024.0 * 1024.0;

fn judged(values: &[f64], age: usize, limit: f64) -> Judgement {
    Ladder::default().over(Floors { values, age, collections: None }, None).at(values.len(), limit)
}

/// This many floors of a line, in MiB and MiB per hour, with a little noise in a fixed pattern.
fn line(count: usize, from: f64, slope: f64) -> Vec<f64> {
    (0..count).map(|at| (from + slope * at as f64 / HOUR as f64 + 0.01 * (at * 7 % 5) as f64) * MIB).collect()
}

#[test]
fn a_line_grows_and_reaches_its_limit_as_projected() {
    // 10 MiB an hour for three days: 720 MiB, and 300 more until the limit.
    let floors = line(3 * DAY, 500.0, 10.0);
    let judgement = judged(&floors, 0, 1520.0 * MIB);
    assert_eq!(judgement.verdict, Verdict::Grows);
    let growth = judgement.growth.unwrap();
    assert!((growth.slope / MIB - 10.0).abs() < 0.05, "{growth:?}");
    let hours = |cells: f64| cells / HOUR as f64;
    let (soonest, latest) = (hours(growth.projection.earliest), hours(growth.projection.latest.unwrap()));
    assert!(soonest <= 30.0 && latest >= 30.0 && latest - soonest < 2.0, "{soonest} to {latest} h, not 30 h");
}

#[test]
fn growth_is_reported_only_if_the_limit_is_near() {
    let floors = line(2 * DAY, 500.0, 2.0);
    let judgement = judged(&floors, 0, 4096.0 * MIB);
    assert_eq!((judgement.verdict, judgement.growth), (Verdict::Warming, None));
    let hint = judgement.hint.unwrap();
    assert!((hint.slope / MIB - 2.0).abs() < 0.05, "{hint:?}");
}

#[test]
fn a_flat_series_is_steady_only_after_a_day() {
    let floors = line(3 * DAY, 500.0, 0.0);
    assert_eq!(judged(&floors, 0, 1024.0 * MIB).verdict, Verdict::Steady);
    assert_eq!(judged(&floors[..HOUR], 0, 1024.0 * MIB).verdict, Verdict::Warming);
    let half = judged(&floors[..DAY / 2], 0, 1024.0 * MIB);
    let Some(Unsure::Young { seen, steady, .. }) = half.unsure else { panic!("{half:?}") };
    assert_eq!((half.verdict, seen), (Verdict::CannotTell, DAY / 2));
    assert_ne!(judged(&floors[..steady - 1], 0, 1024.0 * MIB).verdict, Verdict::Steady, "it came too soon");
    assert_eq!(judged(&floors[..steady], 0, 1024.0 * MIB).verdict, Verdict::Steady, "it came too late");
}

#[test]
fn a_young_jvm_predicts_when_growth_can_be_detected() {
    // The line reaches its limit after 4.5 hours.
    let (floors, limit) = (line(DAY, 500.0, 60.0), 770.0 * MIB);
    let young = judged(&floors[..1], 0, limit);
    let Some(Unsure::Young { grows, .. }) = young.unsure else { panic!("{young:?}") };
    assert_ne!(judged(&floors[..grows - 1], 0, limit).verdict, Verdict::Grows);
    assert_eq!(judged(&floors[..grows], 0, limit).verdict, Verdict::Grows);
}

#[test]
fn growth_of_a_heap_with_rare_old_collections_is_undecided() {
    let values = line(2 * DAY, 500.0, 10.0);
    let mut collections = vec![0; values.len()];
    (collections[10], collections[200]) = (1, 1);
    let floors = Floors { values: &values, age: 0, collections: Some(&collections) };
    let judgement = Ladder::default().over(floors, None).at(values.len(), 1280.0 * MIB);
    assert_eq!(judgement.verdict, Verdict::CannotTell);
    assert!(matches!(judgement.unsure, Some(Unsure::Collections { needed: 4, .. })), "{judgement:?}");
}

#[test]
fn a_series_without_data_gets_no_verdict() {
    let gaps = judged(&[f64::NAN; 500], 0, MIB);
    assert_eq!((gaps.verdict, gaps.unsure), (Verdict::CannotTell, Some(Unsure::Gaps)));
    assert_eq!(judged(&[], 0, MIB).verdict, Verdict::Warming, "a JVM that has just started is still warming up");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn later_values_do_not_change_earlier_verdicts(
        seed in any::<u64>(),
        kind in 0..TUNED.len(),
        cut in 200_usize..1400,
    ) {
        let life = life(&mut Dice::of(&[seed]), &mut Dice::of(&[seed, 1]), TUNED[kind], 10);
        let collections = life.collections.as_deref();
        let cut = cut.min(life.floors.len());
        let ladder = Ladder::default();
        let whole = ladder.over(Floors { values: &life.floors, age: 0, collections }, None);
        let until = Floors { values: &life.floors[..cut], age: 0, collections: collections.map(|all| &all[..cut]) };
        let until = ladder.over(until, None);
        for back in 0..4 {
            let at = cut - back * STEP;
            prop_assert_eq!(whole.at(at, life.limit), until.at(at, life.limit));
        }
    }

    #[test]
    fn an_offset_does_not_change_the_slope(seed in any::<u64>(), offset in 0.0..4096.0_f64) {
        let life = life(&mut Dice::of(&[seed]), &mut Dice::of(&[seed, 1]), "ar", 8);
        let leaking: Vec<f64> = life.floors.iter().zip(0..).map(|(floor, at)| floor + f64::from(at) * MIB).collect();
        let shifted: Vec<f64> = leaking.iter().map(|floor| floor + offset * MIB).collect();
        let room = 300.0 * MIB;
        let one = judged(&leaking, 0, leaking[leaking.len() - 1] + room);
        let other = judged(&shifted, 0, shifted[shifted.len() - 1] + room);
        prop_assert_eq!(one.hint.is_some(), other.hint.is_some());
        if let Some((one, other)) = one.hint.zip(other.hint) {
            prop_assert!((one.slope - other.slope).abs() <= 1e-6 * one.slope.abs() + 1.0);
        }
    }

    #[test]
    fn any_numbers_with_gaps_get_a_verdict(
        values in prop::collection::vec(prop_oneof![4 => 0.0..1e12_f64, 1 => Just(f64::NAN)], 0..900),
        age in 0_usize..5000,
        limit in 0.0..1e13_f64,
    ) {
        let judgement = judged(&values, age, limit);
        prop_assert_eq!(judgement.growth.is_some(), judgement.verdict == Verdict::Grows);
        prop_assert_eq!(judgement.unsure.is_some(), judgement.verdict == Verdict::CannotTell);
    }
}
