//! Simulations with fixed seeds: how often intervals contain the true value, verdicts are wrong, and differences are
//! found. A debug build simulates less and tolerates more; a release build tests the documented rates.

use super::simulated::{self, Effect, Spread, normal, uniform, with_effects, with_noise};
use super::*;
use crate::numbers::SplitMix64;
use crate::record::{BudgetVerdict, ComparisonRecord, DifferenceVerdict, MetricRecord};
use crate::scenario::Compare;
use loadline_stats::interval::{Resamples, Sample};
use loadline_stats::random;
use loadline_test_support::long_tests_run;

const SLOW: bool = cfg!(debug_assertions);
/// The number of samples per number of values and kind of noise.
const SAMPLES: usize = if SLOW { 60 } else { 1_500 };
const VALUES: &[usize] = if SLOW { &[5, 10] } else { &[5, 6, 8, 10, 20] };
const COMPARISONS: u64 = if SLOW { 8 } else { 200 };
/// The share of intervals that must contain the true value.
const COVERED: std::ops::RangeInclusive<f64> = if SLOW { 0.88..=1.0 } else { 0.93..=0.97 };

#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Lognormal with σ = 0.5: skewness 1.75.
    Skewed,
    /// Student's t with three degrees of freedom: one value in 20 is beyond three.
    HeavyTailed,
    Uniform,
}

/// All kinds; the last one has short tails.
const NOISES: [Noise; 4] = [Noise::Normal, Noise::Skewed, Noise::HeavyTailed, Noise::Uniform];

fn drawn(noise: Noise, random: &mut SplitMix64) -> f64 {
    match noise {
        Noise::Normal => normal(random),
        Noise::Skewed => (0.5 * normal(random)).exp(),
        Noise::Uniform => uniform(random),
        Noise::HeavyTailed => {
            let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
            normal(random) / (squares / 3.0).sqrt()
        }
    }
}

/// The true value of the estimate: the median of the means of two values.
fn truth(noise: Noise) -> f64 {
    match noise {
        Noise::Normal | Noise::HeavyTailed => 0.0,
        Noise::Uniform => 0.5,
        Noise::Skewed => {
            let mut random = random::stream(99, 0);
            let mut means: Vec<f64> =
                (0..200_000).map(|_| (drawn(noise, &mut random) + drawn(noise, &mut random)) / 2.0).collect();
            means.sort_unstable_by(f64::total_cmp);
            means[means.len() / 2]
        }
    }
}

/// The share of samples whose interval contains the true value.
fn coverage(
    of: Sample,
    values: usize,
    confidence: f64,
    truth: f64,
    mut sample: impl FnMut(&mut SplitMix64) -> f64,
) -> f64 {
    let mut resamples = Resamples::new(1, if SLOW { 300 } else { 1_000 });
    let mut random = random::stream(2, values as u64);
    let holds = |_: &usize| {
        let values: Vec<f64> = (0..values).map(|_| sample(&mut random)).collect();
        let (low, high) = resamples.one_sample(of, &values, confidence).unwrap().ends.unwrap();
        (low..=high).contains(&truth)
    };
    (0..SAMPLES).filter(holds).count() as f64 / SAMPLES as f64
}

/// Asserts that enough intervals contain the true value, for each noise and number of values.
fn check(what: &str, noises: &[Noise], covered: impl Fn(Noise, usize) -> f64, allowed: impl Fn(Noise, f64) -> bool) {
    let mut found = Vec::new();
    for noise in noises.iter().copied() {
        for values in VALUES.iter().copied() {
            let covered = covered(noise, values);
            found.push(format!("{noise:?} {values}: {:.2}%", covered * 100.0));
            assert!(allowed(noise, covered), "{what}: {found:?}");
        }
    }
    println!("{what}: {found:?}");
}

#[test]
fn intervals_of_differences_contain_the_truth() {
    let covered = |noise, values| {
        coverage(Sample::Differences, values, 0.95, 0.7, |random| 0.7 + drawn(noise, random) - drawn(noise, random))
    };
    check("differences", &NOISES, covered, |noise, covered| {
        // Sums of uniform noise are still short-tailed, so the intervals are conservative.
        let wider = if matches!(noise, Noise::Uniform) { 0.005 } else { 0.0 };
        (*COVERED.start()..=*COVERED.end() + wider).contains(&covered)
    });
}

#[test]
fn intervals_of_values_contain_the_truth() {
    if !long_tests_run() {
        return;
    }
    let covered = |noise, values| coverage(Sample::Values, values, 0.95, truth(noise), |random| drawn(noise, random));
    check("values", &NOISES, covered, |_, covered| COVERED.contains(&covered));
}

/// The corrected confidence of a family of five, and of a hundred details.
#[test]
fn corrected_intervals_contain_the_truth() {
    if !long_tests_run() {
        return;
    }
    for (confidence, least) in [(0.99, 0.975), (0.9995, 0.9965)] {
        let covered = |noise, values| {
            coverage(Sample::Differences, values, confidence, 0.0, |random| drawn(noise, random) - drawn(noise, random))
        };
        let least = if SLOW { 0.9 } else { least };
        check(&format!("at {confidence}"), &NOISES[..3], covered, |_, covered| covered >= least);
    }
}

/// Drift shared by all trials of a block cancels, regardless of its size and direction.
#[test]
fn drift_cancels_within_blocks() {
    let names = ["rss.loaded"];
    let mut held = 0;
    for seed in 0..COMPARISONS {
        let mut trials = with_effects(10, &[("a", Effect::default()), ("b", Effect { rss_mib: 2.0, cpu: 0.0 })], seed);
        for trial in &mut trials {
            let drift = u64::from(trial.block) * (50 << 20);
            trial.marks.iter_mut().for_each(|mark| mark.rss_bytes += drift);
        }
        let compared = only(&names, &compare(&only_of(&names, &lean(trials)), &asking(&names), seed));
        let (low, high) = (compared[0].low.unwrap(), compared[0].high.unwrap());
        held += usize::from((low..=high).contains(&2_097_152.0));
        assert!(high - low < 8.0 * 1_048_576.0, "the interval must not include the drift");
    }
    assert!(held as f64 >= 0.9 * COMPARISONS as f64, "{held} of {COMPARISONS}");
}

/// Removes data that these simulations do not use, for speed.
fn lean(mut trials: Vec<crate::record::Trial>) -> Vec<crate::record::Trial> {
    for trial in &mut trials {
        trial.marks.retain(|mark| mark.name == "loaded");
        trial.phases.retain(|phase| phase.name == "steady");
    }
    trials
}

fn asking(names: &[&str]) -> Compare {
    Compare { metrics: names.iter().map(|name| (*name).to_owned()).collect(), ..Compare::default() }
}

/// Only these metrics, because each interval costs time.
fn only_of(names: &[&str], trials: &[crate::record::Trial]) -> Vec<MetricRecord> {
    super::metrics::measured(trials, &AB.map(str::to_owned), &|metric| names.contains(&metric))
}

fn only(names: &[&str], compared: &[ComparisonRecord]) -> Vec<ComparisonRecord> {
    compared.iter().filter(|record| names.contains(&record.metric.as_str())).cloned().collect()
}

/// The first is the baseline.
const AB: [&str; 2] = ["a", "b"];
const USUAL: [&str; 3] = ["rss.loaded", "rate.steady", "cpu_per_1000.steady"];

/// How often each metric got one of these verdicts in simulated comparisons of `blocks` blocks. The metrics are
/// corrected as one family.
fn called<const N: usize>(
    metrics: [&str; N],
    spread: Spread,
    blocks: u32,
    effect: Effect,
    verdicts: &[DifferenceVerdict],
) -> [u64; N] {
    let mut calls = [0; N];
    for seed in 0..COMPARISONS {
        let trials = with_noise(spread, blocks, &[("a", Effect::default()), ("b", effect)], 1_000 + seed);
        let measured = only_of(&metrics, &lean(trials));
        let compared = compare(&measured, &asking(&metrics), seed);
        for (name, calls) in metrics.iter().zip(&mut calls) {
            let record = compared.iter().find(|record| record.metric == *name).unwrap();
            assert!(record.primary);
            *calls += u64::from(verdicts.contains(&record.verdict));
        }
    }
    calls
}

#[test]
fn a_configuration_rarely_differs_from_itself() {
    if !long_tests_run() {
        return;
    }
    let different = [DifferenceVerdict::Better, DifferenceVerdict::Worse];
    for spread in [simulated::USUAL, simulated::OPEN, simulated::CLOSED] {
        for blocks in if SLOW { &[5][..] } else { &[3, 5, 10] } {
            let blocks = *blocks;
            let calls = called(USUAL, spread, blocks, Effect::default(), &different);
            println!("A/A, {spread:?}, {blocks} blocks: {calls:?} of {COMPARISONS}");
            let allowed = if SLOW { 2.0 } else { 0.05 * COMPARISONS as f64 };
            assert!(calls.iter().sum::<u64>() as f64 <= allowed, "{blocks} blocks: {calls:?}");
        }
    }
}

/// With the noise of a server at a constant rate, ten blocks find 3% more CPU per request and 2 MiB more in use, in
/// nine of ten comparisons. They do not find the 2 MiB in RSS: retained malloc memory varies more between JVMs.
#[test]
fn blocks_find_three_percent_and_two_mebibytes() {
    if !long_tests_run() {
        return;
    }
    let effect = Effect { rss_mib: 2.0, cpu: 0.03 };
    let asked = ["rss.loaded", "rss_in_use.loaded", "rate.steady", "cpu_per_1000.steady"];
    for (name, spread) in [("open", simulated::OPEN), ("closed", simulated::CLOSED), ("usual", simulated::USUAL)] {
        for blocks in if SLOW { &[10][..] } else { &[5, 10, 20] } {
            let [rss, in_use, _, cpu] = called(asked, spread, *blocks, effect, &[DifferenceVerdict::Worse]);
            println!("power, {name}, {blocks} blocks: RSS {rss}, in use {in_use}, CPU {cpu} of {COMPARISONS}");
            let least = if SLOW { 0.5 } else { 0.9 } * COMPARISONS as f64;
            assert!(*blocks < 10 || in_use as f64 >= least, "only {in_use} comparisons found 2 MiB in use");
            assert!(*blocks < 10 || name != "open" || cpu as f64 >= least, "CPU {cpu}");
        }
    }
}

/// After little work, malloc retains little, and RSS itself shows 2 MiB if it is the only judged metric.
#[test]
fn ten_blocks_find_two_mebibytes_of_rss_after_little_work() {
    let effect = Effect { rss_mib: 2.0, cpu: 0.0 };
    let [rss] = called(["rss.loaded"], simulated::LITTLE, 10, effect, &[DifferenceVerdict::Worse]);
    println!("power, little work, 10 blocks, one metric: RSS {rss} of {COMPARISONS}");
    assert!(rss as f64 >= if SLOW { 0.5 } else { 0.9 } * COMPARISONS as f64, "{rss}");
}

#[test]
fn budgets_never_fail_against_themselves() {
    let budgets: Vec<crate::scenario::Budget> =
        ["rss.loaded<=+2%", "rss.loaded<=+0%", "cpu_per_1000<=+2%", "cpu_per_1000<=+0%"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
    let mut verdicts = [0u64; 3];
    for blocks in if SLOW { &[1, 3][..] } else { &[1, 3, 10] } {
        let blocks = *blocks;
        for seed in 0..COMPARISONS {
            let of = |seed| only_of(&USUAL, &lean(with_effects(blocks, &[("a", Effect::default())], seed)));
            let (before, after) = (of(2 * seed), of(2 * seed + 1));
            for record in judge_budgets(&budgets, &["a".to_owned()], &after, Some(&before), &Compare::default(), seed) {
                verdicts[record.verdict as usize] += 1;
                assert_ne!(record.verdict, BudgetVerdict::Fail, "{blocks} blocks, seed {seed}: {record:?}");
            }
        }
        println!("budgets A/A, {blocks} trials and fewer: pass, fail, undecided {verdicts:?}");
    }
}

/// A build fails on budgets that it exceeds: ten trials each, 8 MiB more than allowed.
#[test]
fn exceeded_budgets_fail() {
    let budgets = ["rss.loaded<=+2MiB".parse().unwrap(), "rss.loaded<=66MiB".parse().unwrap()];
    for seed in 0..COMPARISONS / 4 {
        let of = |rss_mib, seed| only_of(&USUAL, &lean(with_effects(10, &[("a", Effect { rss_mib, cpu: 0.0 })], seed)));
        let judged = judge_budgets(
            &budgets,
            &["a".to_owned()],
            &of(10.0, 2 * seed),
            Some(&of(0.0, 2 * seed + 1)),
            &Compare::default(),
            1,
        );
        assert!(judged.iter().all(|record| record.verdict == BudgetVerdict::Fail), "{judged:?}");
    }
}

/// A comparison of a full matrix: 8 candidates, about 160 metrics, 30 blocks. The test counts the results.
#[test]
fn a_large_comparison_is_complete() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let trials = trials_with_many_owners(if SLOW { 3 } else { 30 }, &names);
    let metrics = metrics(&trials);
    let compared = compare(&metrics, &Compare::default(), 1);
    assert!(compared.len() > 8 * 140, "{}", compared.len());
}

fn trials_with_many_owners(blocks: u32, names: &[&str]) -> Vec<crate::record::Trial> {
    let mut trials = simulated::trials(blocks, names, 1);
    for trial in &mut trials {
        for mark in &mut trial.marks {
            let account = mark.account.as_mut().unwrap();
            for number in 0..40u64 {
                let mut owner = account.owners[0].clone();
                owner.name = format!("owner{number}");
                owner.rss_bytes += u64::from(trial.index) * (number + 1);
                account.owners.push(owner);
            }
        }
    }
    trials
}

/// A configuration against itself, checked after each block from the 5th to the 30th until the verdict is certain.
#[test]
fn repeated_checks_are_rarely_wrong() {
    if !long_tests_run() {
        return;
    }
    use super::differences::each;
    use super::verdict::{Scale, judge};
    let runs = if SLOW { 4 } else { 300 };
    let looks = if SLOW { 5..=8 } else { 5..=30 };
    let (mut wrong, mut sure, mut blocks) = (0, 0, 0);
    let mut resamples = Resamples::new(1, if SLOW { 300 } else { 1_000 });
    let mut random = random::stream(3, 0);
    for _ in 0..runs {
        // Three metrics whose differences have a standard deviation of 1.41 and a least difference of 1.
        let values: Vec<[f64; 3]> =
            (0..30).map(|_| [(); 3].map(|()| normal(&mut random) - normal(&mut random))).collect();
        let verdict = |metric: usize, count: usize, resamples: &mut Resamples| {
            let values: Vec<f64> = values[..count].iter().map(|block| block[metric]).collect();
            let estimate = resamples.one_sample(Sample::Differences, &values, each(0.95, 3)).unwrap();
            judge(&Scale { estimate, least: 1.0 }, crate::record::Better::Lower, count)
        };
        let decided = looks.clone().find_map(|count| {
            let verdicts = [0, 1, 2].map(|metric| verdict(metric, count, &mut resamples));
            (!verdicts.contains(&DifferenceVerdict::CannotTell)).then_some((count, verdicts))
        });
        if let Some((count, verdicts)) = decided {
            (sure, blocks) = (sure + 1, blocks + count);
            wrong += usize::from(verdicts.iter().any(|verdict| *verdict != DifferenceVerdict::Equivalent));
        }
    }
    println!("until sure: {wrong} wrong, {sure} sure of {runs}, {blocks} blocks");
    assert!(wrong as f64 <= 0.05 * f64::from(runs), "{wrong}");
}
