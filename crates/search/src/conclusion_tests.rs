//! Conclusions from hand-made trials: lines, knees, headroom, lengths.

use super::super::course::Attempt;
use super::super::edge;
use super::super::ruling::Ruling;
use super::*;
use crate::record::{FailureCause, Model, Pages, PhaseRecord, SubjectWork};
use crate::units::MIB;

fn phase(name: &str, ok: u64, cpu_s: Option<f64>) -> PhaseRecord {
    PhaseRecord {
        name: name.to_owned(),
        model: Model::Open,
        at_s: 2.0,
        seconds: 10.0,
        requests: ok,
        ok,
        subject: SubjectWork { cpu_s, ..SubjectWork::default() },
        ..PhaseRecord::default()
    }
}

/// A probe of a limit and a heap in MiB that took this much CPU for 1,000 requests.
fn probe(stage: ProbeStage, limit: u64, heap: Option<u64>, verdict: ProbeVerdict, cpu_s: f64) -> Trial {
    let fails = verdict == ProbeVerdict::Fails;
    let why = if fails { vec![format!("at {limit}")] } else { Vec::new() };
    let cause = fails.then_some(FailureCause::OomKill);
    let (heap, direct, pages) = (heap.map(|heap| heap * MIB), heap.map(|_| 7), Pages::Cold);
    let attempt = Attempt { stage, purpose: None, heap, direct, limit: limit * MIB, pages, rate_per_s: None };
    let record = attempt.ruled(Ruling { verdict, why, missed: Vec::new(), cause });
    Trial {
        limit_bytes: Some(limit * MIB),
        ready_s: Some(1.0),
        phases: vec![phase("steady", 1000, Some(cpu_s))],
        probe: Some(record),
        ..Trial::new("a", 0, 0)
    }
}

fn standing(heap: Option<u64>) -> SearchState<'static> {
    SearchState { heap: heap.map(|heap| heap * MIB), direct: Some(7), ..SearchState::default() }
}

const HOLDS: ProbeVerdict = ProbeVerdict::Holds;
const FAILS: ProbeVerdict = ProbeVerdict::Fails;

/// A line at 100 MiB with a heap of 30, from these trials.
fn line_of(trials: &[Trial], below: Option<u64>) -> LineRecord {
    let proof = ProofRecord { tried: 5, choosing: 1, candidates: 1 };
    let found = EdgeStep::Found { value: 100 * MIB, held: 5, proof, below: below.map(|below| below * MIB) };
    line(Some(found), ProbeStage::Limit, &standing(Some(30)), trials).unwrap()
}

#[test]
fn a_line_has_the_failures_below_it_with_the_same_heap() {
    let at = |limit, heap, verdict| probe(ProbeStage::Limit, limit, Some(heap), verdict, 1.0);
    let trials = [
        at(98, 25, FAILS),
        at(98, 30, FAILS),
        at(98, 30, HOLDS),
        at(90, 30, FAILS),
        at(100, 30, HOLDS),
        probe(ProbeStage::Warm, 120, Some(30), FAILS, 1.0),
        probe(ProbeStage::Limit, 130, Some(30), ProbeVerdict::Discarded, 1.0),
    ];
    let found = line_of(&trials, Some(98));
    assert_eq!((found.limit_bytes, found.heap_bytes, found.direct_bytes), (100 * MIB, Some(30 * MIB), Some(7)));
    assert_eq!((found.held, found.below_bytes, found.cause), (5, Some(98 * MIB), Some(FailureCause::OomKill)));
    assert_eq!((found.cause_text, found.edge_width), (vec!["at 98".to_owned()], 0.0), "98 failed once and held once");
    // No smaller limit failed, so the result reports no failure.
    let alone = line_of(&trials[4..], Some(98));
    assert_eq!((alone.below_bytes, alone.cause, alone.cause_text.len()), (None, None, 0));
    assert_eq!(line_of(&trials, None).below_bytes, None);
}

#[test]
fn an_edge_extends_to_the_failures_above_held_values() {
    let at = |limit, verdict| probe(ProbeStage::Limit, limit, Some(30), verdict, 1.0);
    assert_eq!(line_of(&[at(100, HOLDS), at(110, FAILS)], Some(98)).edge_width, 110.0 / 100.0 - 1.0);
    assert_eq!(
        line_of(&[at(100, HOLDS), at(104, HOLDS), at(110, FAILS), at(80, FAILS)], None).edge_width,
        110.0 / 100.0 - 1.0
    );
    assert_eq!(line_of(&[at(100, HOLDS), at(99, FAILS)], Some(98)).edge_width, 0.0);
    assert_eq!(line_of(&[at(100, HOLDS)], Some(98)).edge_width, 0.0);
    let nothing = EdgeStep::Never { value: 1 };
    assert_eq!(line(Some(nothing), ProbeStage::Limit, &standing(None), &[]), None);
}

#[test]
fn a_proof_counts_every_failure_but_not_the_selecting_trial() {
    let check = |held, tried, choosing, candidates, share: f64| {
        let bound = failing_share_max(held, ProofRecord { tried, choosing, candidates });
        assert!((bound - share).abs() < 5e-4, "{held} of {tried}, {choosing} chose, {candidates}: {bound}");
    };
    // A limit given by the user: 1 - 0.05^(1/n), so 95% of such servers would have failed at least once.
    check(5, 5, 0, 1, 0.4507);
    check(1, 1, 0, 1, 0.95);
    check(59, 59, 0, 1, 0.0495);
    // One failure among six: the upper bound of Clopper and Pearson.
    check(5, 6, 0, 1, 0.5818);
    // A limit that the search chose: four of the five trials count, at half of the allowed error, then at a quarter.
    check(5, 5, 1, 1, 1.0 - 0.025_f64.powf(0.25));
    check(5, 5, 1, 2, 1.0 - 0.0125_f64.powf(0.25));
    check(5, 6, 1, 1, 0.7164);
    // The only trial that held chose the value, and none confirmed it.
    check(1, 1, 1, 1, 1.0);
    check(0, 0, 0, 0, 1.0);
}

/// Searches on a server whose startup fails with a given probability at each limit. In at most 5% of them, the stated
/// bound may be below the true probability.
#[test]
fn the_bound_holds_in_95_percent_of_searches() {
    const RUNS: u64 = 4000;
    let patience = edge::Patience { proofs: 5, answers_max: 60, first_stride: 2, hurried: false };
    // Each value alone would pass a proof of five about as often as the bound allows.
    for flat in [0.3, 0.45, 0.55, 0.602, 0.67] {
        let (mut wrong, mut found) = (0, 0);
        for seed in 0..RUNS {
            let grid = super::super::grid::Grid::by_amount(100, 90, 130, 1);
            let mut random = crate::numbers::SplitMix64::new(seed);
            let mut answers = Vec::new();
            let end = loop {
                match edge::next(&grid, &patience, &answers) {
                    EdgeStep::Probe { value, .. } => {
                        let held = random.unit() >= flat;
                        answers.push(edge::Answer { value, held, strained: false, room: None });
                    }
                    end => break end,
                }
            };
            if let EdgeStep::Found { held, proof, .. } = end {
                found += 1;
                wrong += u64::from(failing_share_max(held, proof) < flat);
            }
        }
        let share = wrong as f64 / RUNS as f64;
        println!("{flat}: found {found}, wrong {wrong}");
        assert!(share < 0.05, "{flat}: {share}");
    }
}

#[test]
fn headroom_is_rounded_up_to_mebibytes() {
    let limit = |line: u64, headroom| to_set(line, None, headroom).0;
    assert_eq!(limit(100 * MIB, 0.0), 100 * MIB);
    assert_eq!(limit(100 * MIB + 1, 0.0), 101 * MIB);
    assert_eq!(limit(100 * MIB, 0.1), 110 * MIB);
    assert_eq!(limit(100 * MIB, 0.125), 113 * MIB);
    // The headroom also applies to the heap, and the limit includes the larger heap.
    assert_eq!(to_set(100 * MIB, Some(11 * MIB), 0.1), (110 * MIB, Some(13 * MIB)));
    assert_eq!(to_set(100 * MIB, Some(11 * MIB), 0.0), (100 * MIB, Some(11 * MIB)));
    assert_eq!(to_set(20 * MIB, Some(18 * MIB), 0.01), (21 * MIB, Some(19 * MIB)));
}

#[test]
fn a_trials_length_is_recorded_or_derived_from_its_last_phase() {
    let mut trial = probe(ProbeStage::Limit, 100, None, HOLDS, 1.0);
    assert_eq!(spent_s(std::slice::from_ref(&trial)), 12.0);
    trial.phases[0].at_s = 3.0;
    assert_eq!(spent_s(std::slice::from_ref(&trial)), 13.0);
    trial.phases.clear();
    assert_eq!(spent_s(std::slice::from_ref(&trial)), 1.0);
    trial.probe.as_mut().unwrap().seconds = 20.5;
    assert_eq!(spent_s(std::slice::from_ref(&trial)), 20.5);
    assert_eq!(spent_s(&[Trial::new("a", 0, 0)]), 0.0);
}

#[test]
fn cpu_per_request_covers_all_measured_phases() {
    let of = |phases: Vec<PhaseRecord>| cpu_per_request(&Trial { phases, ..Trial::new("a", 0, 0) });
    assert_eq!(of(vec![phase("one", 100, Some(1.0)), phase("two", 300, Some(2.0))]), Some(3.0 / 400.0));
    assert_eq!(of(vec![phase("warmup", 100, Some(9.0)), phase("two", 200, Some(2.0))]), Some(0.01));
    assert_eq!(of(vec![phase("none", 0, Some(9.0)), phase("two", 200, Some(2.0))]), Some(0.01));
    assert_eq!(of(vec![phase("one", 100, None), phase("two", 200, Some(2.0))]), None, "one CPU time is missing");
    let idle = PhaseRecord { model: Model::Idle, ..phase("rest", 10, Some(5.0)) };
    assert_eq!(of(vec![idle, phase("two", 200, Some(2.0))]), Some(0.01));
    assert_eq!(of(vec![phase("none", 0, Some(9.0))]), None);
    assert_eq!(of(Vec::new()), None);
}

/// A knee of these heaps, in MiB and CPU seconds per 1,000 requests, with 1 s when memory is ample.
fn knee_of(at_line: f64, heaps: &[(u64, f64)]) -> Option<(u64, u64, f64)> {
    let mut trials = vec![
        probe(ProbeStage::Reference, 2048, None, HOLDS, 1.0),
        probe(ProbeStage::Limit, 100, Some(30), HOLDS, at_line),
        probe(ProbeStage::Limit, 90, Some(30), FAILS, 9.0),
    ];
    trials.extend(heaps.iter().map(|(heap, cpu_s)| probe(ProbeStage::Heap, 2048, Some(*heap), HOLDS, *cpu_s)));
    let line = line_of(&trials, Some(98));
    knee(&line, &trials).map(|knee| (knee.heap_bytes / MIB, knee.limit_bytes / MIB, knee.cpu_ratio))
}

#[test]
fn a_knee_is_the_smallest_heap_with_near_reference_cpu() {
    let heaps = [(30, 2.0), (60, 1.04), (50, 1.0), (40, 1.06)];
    assert_eq!(knee_of(2.0, &heaps), Some((50, 120, 0.5)));
    assert_eq!(knee_of(2.0, &[(40, 1.05)]), Some((40, 110, 1.05 / 2.0)), "a ratio of exactly 1.05 is close enough");
    assert_eq!(knee_of(2.0, &[(40, 1.0501)]), None);
    assert_eq!(knee_of(2.0, &[(30, 1.0), (20, 1.0)]), None, "there is no trial with a larger heap");
    assert_eq!(knee_of(1.09, &heaps), None, "the heap at the line costs almost no CPU");
    assert!(knee_of(1.11, &heaps).is_some());
    let line = LineRecord { heap_bytes: None, ..line_of(&[], None) };
    assert_eq!(knee(&line, &[]), None);
}
