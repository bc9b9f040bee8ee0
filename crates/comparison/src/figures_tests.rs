//! Laws of figures on generated marks: their values, invariance, rejection, and how often a slope's interval contains
//! the true value.

use super::super::simulated::{normal, uniform};
use super::super::{judge_budgets, metrics, possible, resolve};
use super::*;
use crate::record::{AccountRecord, BudgetVerdict, Heap};
use crate::scenario::{Budget, Compare};
use loadline_stats::random;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLOW: bool = cfg!(debug_assertions);
/// The number of simulated comparisons.
const SIMULATED: u32 = if SLOW { 60 } else { 1_000 };
/// The share of intervals that must contain the true value.
const COVERED: std::ops::RangeInclusive<f64> = if SLOW { 0.86..=1.0 } else { 0.93..=0.98 };

fn elastic() -> Derived {
    let [base, spike, valley] = ["empty", "spike", "valley"].map(str::to_owned);
    let way = Derivation::Elasticity { base, spike, valley, ideal: Some(0.8) };
    Derived { name: "elasticity".to_owned(), of: "rss".to_owned(), way }
}

fn per_instance(marks: &[&str]) -> Derived {
    let marks = marks.iter().map(|mark| (*mark).to_owned()).collect();
    let way = Derivation::Slope { per: "instances".to_owned(), marks };
    Derived { name: "bytes_per_instance".to_owned(), of: "heap_live".to_owned(), way }
}

fn trial(index: u32, marks: Vec<Mark>) -> Trial {
    Trial { outcome: Outcome::Completed, marks, ..Trial::new("a", index, index) }
}

fn weighing(name: &str, rss_bytes: u64) -> Mark {
    Mark { name: name.to_owned(), rss_bytes, ..Mark::default() }
}

/// A mark after a collection, with this many instances.
fn counting(name: &str, count: f64, live: u64) -> Mark {
    Mark {
        name: name.to_owned(),
        heap: Heap { live_bytes: Some(live), ..Heap::default() },
        counters: BTreeMap::from([("instances".to_owned(), count)]),
        ..Mark::default()
    }
}

fn counted(points: &[(f64, u64)]) -> Trial {
    let marks = points.iter().enumerate().map(|(at, (count, live))| counting(&format!("m{at}"), *count, *live));
    trial(0, marks.collect())
}

fn one(asked: Derived, trial: &Trial) -> FigureRecord {
    figures(&[asked], trial).remove(0)
}

fn elasticity_of([base, spike, valley]: [u64; 3]) -> Result<f64, String> {
    let marks = vec![weighing("empty", base), weighing("spike", spike), weighing("valley", valley)];
    let record = one(elastic(), &trial(0, marks));
    record.value.ok_or_else(|| record.why.unwrap_or_default())
}

fn slope_of(points: &[(f64, u64)]) -> FigureRecord {
    one(per_instance(&[]), &counted(points))
}

fn refused(record: &FigureRecord, pieces: &[&str]) {
    let why = record.why.as_deref().unwrap_or_else(|| panic!("the figure must be refused: {record:?}"));
    assert_eq!(record.value, None);
    for piece in pieces {
        assert!(why.contains(piece), "`{why}` lacks `{piece}`");
    }
}

#[test]
fn elasticity_is_the_freed_share_of_added_memory() {
    assert_eq!(elasticity_of([10, 50, 10]), Ok(1.0));
    assert_eq!(elasticity_of([10, 50, 50]), Ok(0.0));
    assert_eq!(elasticity_of([0, 100, 23]), Ok(0.77));
    assert_eq!(elasticity_of([10, 50, 70]), Ok(-0.5), "memory that keeps growing has a negative elasticity");
    assert_eq!(elasticity_of([20, 40, 10]), Ok(1.5), "more memory was freed than added");
}

#[test]
fn an_elasticity_without_added_memory_is_refused() {
    let why = elasticity_of([50 << 20, 40 << 20, 30 << 20]).unwrap_err();
    assert_eq!(why, "`rss` did not rise: 40.0 MiB at `spike`, 50.0 MiB at `empty`");
    assert!(elasticity_of([5, 5, 1]).is_err());
    let record = one(elastic(), &trial(0, vec![weighing("empty", 1), weighing("spike", 2)]));
    refused(&record, &["mark `valley` was not reached"]);
    let of = Derived { of: "pss".to_owned(), ..elastic() };
    refused(&one(of, &trial(0, vec![weighing("empty", 1)])), &["`pss` is unknown at `empty`", "smaps_rollup"]);
}

#[test]
fn a_figure_lists_its_inputs() {
    let record = one(elastic(), &trial(0, vec![weighing("empty", 1), weighing("spike", 5), weighing("valley", 3)]));
    assert_eq!(record.points.iter().map(|(_, y)| *y).collect::<Vec<_>>(), [1.0, 5.0, 3.0]);
    assert_eq!((record.marks.join(" ").as_str(), record.ideal), ("empty spike valley", Some(0.8)));
    let record = slope_of(&[(0.0, 10), (10.0, 110), (20.0, 210)]);
    assert_eq!(record.points, [(0.0, 10.0), (10.0, 110.0), (20.0, 210.0)]);
    assert_eq!(
        (record.value, record.standard_error, record.per.as_deref()),
        (Some(10.0), Some(0.0), Some("instances"))
    );
    assert_eq!(figures(&[elastic()], &Trial::new("a", 0, 0)), [], "a trial that did not complete has no figures");
}

#[test]
fn figures_can_use_owners() {
    let mark = |name: &str, malloc: u64| Mark {
        account: Some(AccountRecord::holding([("malloc.live", malloc)])),
        ..weighing(name, 1)
    };
    let of = Derived { of: "malloc.live".to_owned(), ..elastic() };
    let marks = vec![mark("empty", 100), mark("spike", 200), mark("valley", 150)];
    assert_eq!(one(of.clone(), &trial(0, marks)).value, Some(0.5));
    let without = vec![weighing("empty", 1), weighing("spike", 2), weighing("valley", 1)];
    refused(&one(of, &trial(0, without)), &["`malloc.live` is unknown at `empty`"]);
}

#[test]
fn a_slope_within_drift_is_refused() {
    // Marks with equal counts drift by 40 KiB; the change over the range is 20 KiB.
    let drifting = [(1_000.0, 1 << 20), (1_000.0, (1 << 20) + (40 << 10)), (10_000.0, (1 << 20) + (40 << 10))];
    let record = slope_of(&drifting);
    refused(
        &record,
        &["within drift", "20.0 KiB over 1,000 to 10,000", "and by 40.0 KiB between marks with the same count, 1,000"],
    );
    assert_eq!(record.points.len(), 3, "the points are recorded anyway");
    // With one point per count, the change is compared with the error of the line.
    refused(&slope_of(&[(1.0, 100), (2.0, 180), (3.0, 90), (4.0, 190)]), &["3 standard errors", "4 points"]);
    refused(&slope_of(&[(1.0, 100), (2.0, 100), (3.0, 100)]), &["within drift", "does not change over 1 to 3"]);
    refused(&slope_of(&[(1.0, 100), (2.0, 100)]), &["does not change over 1 to 2"]);
    // The same noise over a wide range is a slope.
    let wide = slope_of(&[(1.0, 100), (1.0, 140), (1_000.0, 100_120), (1_000.0, 100_100)]);
    assert!((99.0..101.0).contains(&wide.value.unwrap()), "{wide:?}");
}

#[test]
fn a_slope_needs_two_different_counts() {
    refused(&slope_of(&[]), &["no mark has the counter `instances`"]);
    refused(&slope_of(&[(5.0, 10)]), &["two different `instances` counts, but all are 5 at `m0`"]);
    refused(&slope_of(&[(5.0, 10), (5.0, 20)]), &["all are 5 at `m0` and `m1`"]);
    let two = slope_of(&[(5.0, 10), (7.0, 20)]);
    assert_eq!((two.value, two.standard_error), (Some(5.0), None));
    // Marks read before a collection, and counts that are not numbers, are skipped.
    let mut some = counted(&[(5.0, 10), (7.0, 20), (f64::NAN, 99), (9.0, 99)]);
    some.marks[3].heap.live_bytes = None;
    assert_eq!(one(per_instance(&[]), &some).value, Some(5.0));
    some.marks.iter_mut().for_each(|mark| mark.heap.live_bytes = None);
    refused(&one(per_instance(&[]), &some), &["`heap_live` is unknown at `m0`, `m1` and `m3`", "a full GC"]);
}

#[test]
fn named_marks_are_required() {
    let mut of = counted(&[(1.0, 10), (2.0, 20), (3.0, 1_000_000)]);
    assert_eq!(one(per_instance(&["m0", "m1"]), &of).value, Some(10.0));
    refused(&one(per_instance(&["m0", "m9"]), &of), &["mark `m9` was not reached"]);
    of.marks[1].counters.clear();
    refused(&one(per_instance(&["m0", "m1"]), &of), &["mark `m1` has no counter `instances`"]);
    of.marks[0].heap.live_bytes = None;
    refused(&one(per_instance(&["m0", "m2"]), &of), &["unknown at `m0`"]);
}

#[test]
fn unusable_counts_are_refused() {
    let far = slope_of(&[(-f64::MAX, 1), (f64::MAX, 2)]);
    refused(&far, &["too close together, or too large"]);
    let near = slope_of(&[(0.0, 0), (f64::MIN_POSITIVE, 1 << 60)]);
    refused(&near, &["too close"]);
}

proptest! {
    #[test]
    fn a_slope_is_exact_on_a_line_with_any_offset(
        slope in 1u32..5_000,
        base in 0u64..(1 << 40),
        offset in 0u32..1_000_000,
        counts in prop::collection::btree_set(0u32..1_000_000, 2..8),
    ) {
        let line = |offset: u32, base: u64| -> Vec<(f64, u64)> {
            counts.iter().map(|n| (f64::from(n + offset), base + u64::from(*n) * u64::from(slope))).collect()
        };
        let near = |record: &FigureRecord| {
            let value = record.value.unwrap_or_else(|| panic!("{record:?}"));
            (value / f64::from(slope) - 1.0).abs() < 1e-6
        };
        prop_assert!(near(&slope_of(&line(0, base))));
        prop_assert!(near(&slope_of(&line(offset, 0))));
        // The order of the marks does not matter.
        let mut turned = line(offset, base);
        turned.reverse();
        prop_assert!(near(&slope_of(&turned)));
    }

    #[test]
    fn an_elasticity_is_invariant_to_scale_and_offset(
        base in 0u64..(1 << 30),
        added in 1u64..(1 << 30),
        valley in 0u64..(1 << 31),
        scale in 1u64..1_000,
    ) {
        let plain = elasticity_of([base, base + added, valley]).unwrap();
        let scaled = elasticity_of([base * scale, (base + added) * scale, valley * scale]).unwrap();
        let shifted = elasticity_of([base + (1 << 40), base + added + (1 << 40), valley + (1 << 40)]).unwrap();
        prop_assert!((plain - scaled).abs() <= 1e-9 * plain.abs().max(1.0));
        prop_assert_eq!(plain, shifted);
        prop_assert!(plain <= 1.0 || valley < base);
        prop_assert!(plain >= 0.0 || valley > base + added);
    }

    #[test]
    fn a_figure_with_missing_marks_has_a_value_or_an_explanation(
        points in prop::collection::vec((any::<f64>(), any::<u64>()), 0..6),
    ) {
        let record = slope_of(&points);
        prop_assert!(record.value.is_none_or(f64::is_finite));
        prop_assert!(record.value.is_some() != record.why.is_some());
    }
}

#[test]
fn figures_are_metrics() {
    let asked = [elastic(), per_instance(&[])];
    let trials: Vec<Trial> = (0..5u32)
        .map(|index| {
            let mut marks = vec![weighing("empty", 100), weighing("spike", 200), weighing("valley", 120)];
            marks.extend([counting("small", 0.0, 1_000), counting("large", 100.0, 47_600 + u64::from(index) * 10)]);
            let mut trial = trial(index, marks);
            trial.figures = figures(&asked, &trial);
            trial
        })
        .collect();
    let found = metrics(&trials);
    let of = |name: &str| found.iter().find(|metric| metric.metric == name).unwrap();
    assert_eq!((of("elasticity").unit, of("elasticity").better), (Unit::Ratio, Better::Higher));
    let slope = of("bytes_per_instance");
    assert_eq!((slope.unit, slope.better, slope.values.len()), (Unit::BytesPer, Better::Lower, 5));
    assert!(slope.low.unwrap() < 466.2 && slope.high.unwrap() > 466.2 && slope.median == 466.2, "{slope:?}");
    let judged = |budget: &str| {
        let budget: Budget = budget.parse().unwrap();
        judge_budgets(&[budget], &["a".to_owned()], &found, None, &Compare::default(), 1)[0].verdict
    };
    assert_eq!(judged("bytes_per_instance<=500B"), BudgetVerdict::Pass);
    assert_eq!(judged("bytes_per_instance<=460.5"), BudgetVerdict::Fail);
    assert_eq!(judged("bytes_per_instance<=466.2"), BudgetVerdict::Undecided);
    assert_eq!(judged("elasticity>=0.7"), BudgetVerdict::Pass);
    assert_eq!(judged("elasticity>=90%"), BudgetVerdict::Fail);
    // A budget from the archive keeps its meaning.
    assert_eq!(judged(&"bytes_per_instance<=500B".parse::<Budget>().unwrap().to_string()), BudgetVerdict::Pass);
}

#[test]
fn figures_are_checked_in_advance() {
    let asked = [elastic(), per_instance(&[])];
    let names = possible(&["start"], &[], &asked);
    assert_eq!(resolve("bytes_per_instance", &names), Ok("bytes_per_instance".to_owned()));
    assert!(resolve("bytes_per_instence", &names).unwrap_err().contains("did you mean `bytes_per_instance`?"));
    assert!(resolve("elasticity", &possible(&["start"], &[], &[])).unwrap_err().contains("under `figures`"));
    let marks = ["empty", "spike", "valley"];
    assert_eq!(check_figures(&asked, &marks), Ok(()));
    let check = |figure: Derived, pieces: &[&str]| {
        let why = check_figures(&[figure], &marks).unwrap_err();
        assert!(pieces.iter().all(|piece| why.contains(piece)), "{why}");
    };
    let of = |of: &str, figure: Derived| Derived { of: of.to_owned(), ..figure };
    check(Derived { name: "rss".to_owned(), ..elastic() }, &["the figure `rss`", "already named `rss`"]);
    check(of("rsss", elastic()), &["did you mean `rss`?"]);
    check(of("rate", elastic()), &["not measured at marks"]);
    check(of("threads", per_instance(&[])), &["not measured in bytes"]);
    assert_eq!(check_figures(&[of("threads", elastic()), of("malloc.live", elastic())], &marks), Ok(()));
    check(per_instance(&["empty", "peak"]), &["no mark is named `peak`", "`empty`, `spike` and `valley`"]);
    assert!(check_figures(&[per_instance(&[])], &["empty"]).unwrap_err().contains("two or more marks"));
}

#[test]
fn a_refusal_names_its_configuration() {
    let mut some = counted(&[(5.0, 10)]);
    some.figures = figures(&[per_instance(&[])], &some);
    let mut other = counted(&[(5.0, 10), (7.0, 20)]);
    other.configuration = "b".to_owned();
    other.figures = figures(&[per_instance(&[])], &other);
    let trials = [some.clone(), some, other];
    let why = refusal(&trials, "bytes_per_instance", Some("a")).unwrap();
    assert!(why.starts_with("`bytes_per_instance` could not be computed in all 2 trials: a slope needs two"), "{why}");
    assert_eq!(refusal(&trials, "bytes_per_instance", Some("b")), None);
    assert_eq!(refusal(&trials, "bytes_per_instance", None), None);
    assert_eq!(refusal(&trials, "rss.loaded", None), None);
}

/// Trials of a subject with 466 bytes per instance. Each trial has its own level and slope, and each mark drifts.
fn simulated(seed: u64, counts: &[f64]) -> Vec<Trial> {
    let mut random = random::stream(3, seed);
    let asked = [per_instance(&[])];
    let trial = |index: u32| {
        let level = 8e6 + 2e5 * normal(&mut random);
        let slope = 466.0 + 4.0 * normal(&mut random);
        let marks = counts.iter().enumerate().map(|(at, count)| {
            let live = level + slope * count + 3e4 * (2.0 * uniform(&mut random) - 1.0);
            counting(&format!("m{at}"), *count, live as u64)
        });
        let mut trial = trial(index, marks.collect());
        trial.figures = figures(&asked, &trial);
        trial
    };
    (0..5).map(trial).collect()
}

#[test]
fn a_slopes_interval_contains_the_truth() {
    for counts in [&[1_000.0, 10_000.0][..], &[0.0, 2_500.0, 5_000.0, 10_000.0], &[0.0, 0.0, 10_000.0, 10_000.0]] {
        let holds = |seed: &u32| {
            let metrics = metrics(&simulated(u64::from(*seed), counts));
            let slope = metrics.iter().find(|metric| metric.metric == "bytes_per_instance").unwrap();
            assert_eq!(slope.values.len(), 5, "a trial with a clear slope must not be refused");
            (slope.low.unwrap()..=slope.high.unwrap()).contains(&466.0)
        };
        let covered = (0..SIMULATED).filter(holds).count() as f64 / f64::from(SIMULATED);
        println!("{} marks: {:.1}%", counts.len(), covered * 100.0);
        assert!(COVERED.contains(&covered), "{counts:?}: {covered}");
    }
}

/// Without a slope, most trials report none. With only two marks, a trial cannot recognize noise: the interval decides.
#[test]
fn a_slope_within_noise_is_usually_refused() {
    let mut random = random::stream(4, 0);
    let mut found = [0.0; 2];
    for _ in 0..1_000 {
        for (at, counts) in
            [&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..], &[1.0, 1.0, 1.0, 6.0, 6.0, 6.0]].into_iter().enumerate()
        {
            let points: Vec<(f64, u64)> =
                counts.iter().map(|count| (*count, (1e7 + 1e5 * normal(&mut random)) as u64)).collect();
            found[at] += if slope_of(&points).value.is_some() { 1e-3 } else { 0.0 };
        }
    }
    println!("slopes found in noise: {found:?}");
    // Expected: 4.0% exceed three standard errors (four degrees of freedom); 7.5% exceed the range of three values.
    assert!((0.02..0.06).contains(&found[0]) && (0.03..0.12).contains(&found[1]), "{found:?}");
}
