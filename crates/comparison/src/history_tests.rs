//! Simulated histories: how often a change is falsely reported, how reliably and where a change is found,
//! and how slow growth is reported. `docs/history.md` has more simulation results.

use super::super::simulated::{normal, uniform};
use super::*;
use crate::units::MIB;
use loadline_stats::random;
use loadline_test_support::all_simulations_run;

const SLOW: bool = cfg!(debug_assertions);
/// Histories of each kind without a change; these are judged quickly.
const STILL: u64 = if SLOW { 200 } else { 2_000 };

/// Histories of each kind with a change; `LOADLINE_SIMULATIONS=all` requests all of them.
fn moved() -> u64 {
    match (SLOW, all_simulations_run()) {
        (true, _) => 12,
        (false, true) => 500,
        (false, false) => 100,
    }
}

/// Metrics followed together, as by default.
const FAMILY: usize = 4;
const LEVEL_MIB: f64 = 180.0;

/// How a simulated history varies, in MiB.
#[derive(Debug, Clone, Copy)]
struct HistoryModel {
    commits: usize,
    trials: usize,
    /// Standard deviation between trials.
    noise: f64,
    /// Standard deviation of the noise shared by a commit's trials.
    shared: f64,
    /// The share of trials that are `FAR_MIB` higher.
    far: f64,
}

const FAR_MIB: f64 = 10.0;
const USUAL: HistoryModel = HistoryModel { commits: 30, trials: 3, noise: 2.0, shared: 0.0, far: 0.0 };

/// A history whose commits are this much above the level.
fn history(kind: HistoryModel, seed: u64, above_mib: &dyn Fn(usize) -> f64) -> Vec<Vec<f64>> {
    let mut random = random::stream(seed, 7);
    let mut commit = |at: usize| {
        let shared = kind.shared * normal(&mut random);
        let mut trial = || {
            let far = if uniform(&mut random) < kind.far { FAR_MIB } else { 0.0 };
            (LEVEL_MIB + above_mib(at) + shared + kind.noise * normal(&mut random) + far) * MIB as f64
        };
        (0..kind.trials).map(|_| trial()).collect()
    };
    (0..kind.commits).map(&mut commit).collect()
}

fn told(values: &[Vec<f64>], family: usize) -> Moves {
    let of = Followed { metric: "rss.loaded", unit: Unit::Bytes, better: Better::Lower, values };
    moves(&of, family, &Compare::default(), 1)
}

/// The share of histories of four metrics that falsely report a change.
fn false_share(kind: HistoryModel) -> f64 {
    let any = |history_: u64| {
        let metric = |of: u64| told(&history(kind, history_ * 16 + of, &|_| 0.0), FAMILY);
        (0..FAMILY as u64).map(metric).any(|moves| !moves.shifts.is_empty() || !moves.trends.is_empty())
    };
    let share = (0..STILL).filter(|history| any(*history)).count() as f64 / STILL as f64;
    println!("{kind:?}: {:.2}% of histories report a change, although there is none", share * 100.0);
    share
}

#[test]
fn a_history_without_changes_reports_none() {
    let kinds = [
        USUAL,
        HistoryModel { noise: 1.0, ..USUAL },
        HistoryModel { trials: 5, ..USUAL },
        HistoryModel { trials: 1, ..USUAL },
        HistoryModel { commits: 5, ..USUAL },
        HistoryModel { commits: 12, ..USUAL },
        HistoryModel { commits: 100, ..USUAL },
        HistoryModel { shared: 1.0, noise: 1.0, ..USUAL },
        HistoryModel { shared: 2.0, noise: 0.5, ..USUAL },
        HistoryModel { far: 0.05, ..USUAL },
    ];
    for kind in kinds {
        let most = if SLOW { 0.07 } else { 0.05 };
        let share = false_share(kind);
        assert!(share <= most, "{kind:?}: {share}");
    }
}

/// Shares of histories that report exactly one change: in the right place, and at most one commit away from it.
fn found(kind: HistoryModel, by_mib: f64, at: usize) -> (f64, f64) {
    let (mut right, mut near) = (0, 0);
    let histories = moved();
    for seed in 0..histories {
        let moves = told(&history(kind, 90_000 + seed, &|commit| if commit >= at { by_mib } else { 0.0 }), FAMILY);
        let [shift] = moves.shifts.as_slice() else { continue };
        let sound = shift.ends.0 < shift.difference && shift.difference < shift.ends.1;
        assert!(sound && shift.within.0 <= shift.at && shift.at <= shift.within.1, "{shift:?}");
        right += u32::from(shift.at == at && moves.trends.is_empty());
        near += u32::from(shift.at.abs_diff(at) <= 1 && moves.trends.is_empty());
    }
    let share = |count: u32| f64::from(count) / histories as f64;
    println!(
        "{kind:?}, {by_mib} MiB at {at}: {:.1}% there, {:.1}% within one commit",
        share(right) * 1e2,
        share(near) * 1e2
    );
    (share(right), share(near))
}

#[test]
fn a_change_is_found_in_its_place() {
    let check = |kind: HistoryModel, by_mib: f64, at: usize, least: f64| {
        let (_, near) = found(kind, by_mib, at);
        // With few histories, one more may be missed by chance.
        let least = if SLOW { least - 0.15 } else { least };
        assert!(near >= least, "{kind:?}, {by_mib} at {at}: {near}");
    };
    check(USUAL, 8.0, 15, 0.98);
    check(USUAL, 8.0, 3, 0.98);
    check(USUAL, 8.0, 28, 0.85);
    // Three trials after a change do not always decide it: Student's t with two degrees of freedom is wide.
    check(USUAL, 8.0, 29, 0.35);
    check(USUAL, -8.0, 15, 0.98);
    check(USUAL, 4.0, 15, 0.60);
    check(HistoryModel { trials: 5, ..USUAL }, 8.0, 29, 0.85);
    // In a short history, the noise is estimated from few trials, and a break costs more.
    check(HistoryModel { commits: 8, ..USUAL }, 8.0, 4, 0.70);
    check(HistoryModel { shared: 1.0, noise: 1.0, ..USUAL }, 8.0, 15, 0.95);
}

#[test]
fn slow_growth_is_reported_as_growth() {
    let (mut trend, mut shifts) = (0, 0);
    let mut by = Vec::new();
    let count = moved() as u32;
    for seed in 0..u64::from(count) {
        let moves = told(&history(USUAL, 50_000 + seed, &|commit| 0.3 * commit as f64), FAMILY);
        match moves.trends.as_slice() {
            [one] => {
                trend += 1;
                by.push(one.difference / MIB as f64);
                assert_eq!(one.verdict, DifferenceVerdict::Worse);
            }
            _ => shifts += u32::from(!moves.shifts.is_empty()),
        }
    }
    println!("of {count} slow growths {trend} a trend, {shifts} steps, median {:?} MiB", numbers::median(&by));
    let most = if SLOW { 1 } else { count / 100 };
    assert!(trend + shifts + most >= count, "{trend} {shifts}");
    assert!(trend >= count / 2 && numbers::median(&by).is_some_and(|by| (by - 8.7).abs() < 1.5), "{trend} {by:?}");
}

#[test]
fn a_step_during_slow_growth_has_its_own_size() {
    let kind = HistoryModel { noise: 0.5, trials: 5, ..USUAL };
    let above = |commit: usize| 0.3 * commit as f64 + if commit >= 18 { 8.0 } else { 0.0 };
    let moves = told(&history(kind, 5, &above), FAMILY);
    let [shift] = moves.shifts.as_slice() else { panic!("{moves:?}") };
    assert_eq!((shift.at, shift.within, moves.trends.len()), (18, (18, 18), 2), "{moves:?}");
    let (low, high) = shift.ends;
    assert!(low / (MIB as f64) < 8.3 && high / (MIB as f64) > 7.7, "{shift:?}");
}

#[test]
fn a_history_with_too_little_data_reports_no_change() {
    let mib = |all: &[&[f64]]| -> Vec<Vec<f64>> {
        all.iter().map(|values| values.iter().map(|value| value * MIB as f64).collect()).collect()
    };
    let nothing = |values: &[&[f64]]| {
        let moves = told(&mib(values), 1);
        assert!(moves.shifts.is_empty() && moves.trends.is_empty(), "{values:?}: {moves:?}");
    };
    nothing(&[]);
    nothing(&[&[1.0]]);
    nothing(&[&[1.0], &[9.0]]);
    nothing(&[&[1.0, 1.1, 1.2]]);
    nothing(&[&[], &[], &[]]);
    nothing(&[&[1.0], &[1.0], &[1.0], &[9.0], &[9.0], &[9.0]]);
    nothing(&[&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0]]);
    nothing(&[&[f64::MAX, f64::MAX], &[f64::MAX, f64::MAX], &[1.0, 1.0]]);
    // The least difference also applies to size: this change is certain, but too small to matter.
    nothing(&[[&[1.0, 1.001, 0.999][..]; 9], [&[1.5, 1.501, 1.499][..]; 9]].concat());
}

#[test]
fn points_without_a_value_are_skipped() {
    let mut values = history(HistoryModel { noise: 0.3, ..USUAL }, 3, &|commit| if commit >= 20 { 8.0 } else { 0.0 });
    for at in [0, 1, 19, 29] {
        values[at].clear();
    }
    let moves = told(&values, 1);
    let [shift] = moves.shifts.as_slice() else { panic!("{moves:?}") };
    assert_eq!((shift.at, shift.compared), (20, [2, 20, 29]));
    let noise = moves.noise.unwrap() / MIB as f64;
    assert!((0.2..0.4).contains(&noise), "{noise}");
}

#[test]
fn thousands_of_points_are_judged() {
    let kind = HistoryModel { commits: if SLOW { 400 } else { 2_000 }, noise: 1.0, ..USUAL };
    let at = kind.commits / 3;
    let moves = told(&history(kind, 4, &|commit| if commit >= at { 4.0 } else { 0.0 }), FAMILY);
    assert!(moves.shifts.len() == 1 && moves.shifts[0].at.abs_diff(at) <= 1, "{moves:?}");
}
