//! Whole searches on made-up servers: what they hold is known, so what the search says can be checked.

use super::*;
use crate::conclude;
use crate::doubt::{Doubt, MemoryPool};
use crate::record::{AccountRecord, CgroupRecord, FailureCause, Heap, Mark, Outcome, PhaseRecord};
use crate::scenario::{Find, RamShare};
use proptest::prelude::*;

/// No server answers more often, per second.
const RATE_MAX: f64 = 4321.0;

/// A server that needs the memory that its fields give.
#[derive(Debug, Clone, Copy)]
struct ServerModel {
    live: u64,
    /// All but heap and files.
    native: u64,
    /// Files it touches.
    file: u64,
    /// The part of them that it cannot do without.
    hot: f64,
    /// The size that its heap grows to where nothing bounds it.
    greed: u64,
    /// Direct memory, part of `native`.
    direct: u64,
    /// Live heap and native memory that come on top under a longer load.
    grows: [u64; 2],
}

impl ServerModel {
    /// The smallest heap: whole MiB, since it is asked in such.
    fn heap_min(&self) -> u64 {
        (self.live * 5 / 4).div_ceil(MIB) * MIB
    }

    /// The smallest limit with a heap of so much, where the file pages are its own.
    fn limit_min(&self, heap: u64) -> u64 {
        self.native + heap.min(self.greed) + (self.file as f64 * self.hot) as u64
    }

    /// The same server after a longer load.
    fn grown(self) -> Self {
        let [live, native] = self.grows;
        Self { live: self.live + live, native: self.native + native, ..self }
    }

    fn trial(&self, attempt: &Attempt) -> Trial {
        if attempt.stage == ProbeStage::Soak && self.grows != [0, 0] {
            return Self { grows: [0, 0], ..self.grown() }.trial(attempt);
        }
        let heap = attempt.heap.unwrap_or(self.greed);
        let heap_max = heap;
        let resident = heap.min(self.greed);
        let anon = self.native + resident;
        let files = if attempt.pages == Pages::Cold { self.file } else { 0 };
        let need = anon + (files as f64 * self.hot) as u64;
        let (holds, cause) = match () {
            () if attempt.rate_per_s.is_some_and(|rate| rate > RATE_MAX) => (false, Some(FailureCause::Rate)),
            () if heap < self.heap_min() => (false, Some(FailureCause::OutOfMemoryError)),
            () if attempt.direct.unwrap_or(heap) < self.direct => (false, Some(FailureCause::OutOfMemoryError)),
            () if attempt.limit < anon => (false, Some(FailureCause::OomKill)),
            () if attempt.limit < need => (false, Some(FailureCause::FilePages)),
            () => (true, None),
        };
        let verdict = if holds { ProbeVerdict::Holds } else { ProbeVerdict::Fails };
        let probe = attempt.ruled(Ruling { verdict, why: Vec::new(), missed: Vec::new(), cause });
        let cgroup = CgroupRecord {
            limit_bytes: attempt.limit,
            anon_peak_bytes: Some(anon.min(attempt.limit)),
            file_bytes: Some(files.min(attempt.limit.saturating_sub(anon))),
            ..CgroupRecord::default()
        };
        let heap =
            Heap { live_bytes: (attempt.stage == ProbeStage::Reference).then_some(self.live), ..Heap::default() };
        let account = Some(AccountRecord::holding([("java_heap.used", resident)]));
        let lacks_direct = attempt.direct.unwrap_or(heap_max) < self.direct;
        let error = "java.lang.OutOfMemoryError: Cannot reserve 1048576 bytes of direct buffer memory".to_owned();
        let doubts = lacks_direct
            .then(|| Doubt::OutOfMemoryError { error, pool: MemoryPool::DirectMemory }.into())
            .into_iter()
            .collect();
        Trial {
            doubts,
            outcome: Outcome::Completed,
            limit_bytes: Some(attempt.limit),
            marks: vec![Mark { name: "collected".to_owned(), heap, account, ..Mark::default() }],
            cgroup: Some(cgroup),
            probe: Some(probe),
            ..Trial::new("a", 0, 0)
        }
    }
}

const COURSE: SearchSpec = SearchSpec {
    unknowns: Unknowns::HeapAndLimit,
    step: 0.02,
    proofs: 5,
    limit_min: None,
    limit_max: 2048 * MIB,
    rate_per_s: None,
    prove: None,
    headroom: 0.1,
    soak_s: None,
    seconds_max: None,
    trials_max: 60,
    warm: false,
    starts_alone: false,
    direct_given: false,
    ram_share: RamShare { small: 0.5, large: 0.25 },
};

fn search(spec: &SearchSpec, server: &ServerModel) -> Vec<Trial> {
    let mut trials = Vec::new();
    while let Some(attempt) = next(spec, &trials) {
        assert!(trials.len() < 60, "it never ends");
        trials.push(server.trial(&attempt));
    }
    trials
}

fn server() -> ServerModel {
    ServerModel {
        live: 20 * MIB,
        native: 60 * MIB,
        file: 50 * MIB,
        hot: 0.55,
        greed: 200 * MIB,
        direct: 0,
        grows: [0, 0],
    }
}

#[test]
fn heap_and_limit_are_found_with_few_trials() {
    let of = server();
    let trials = search(&COURSE, &of);
    let record = conclude(&COURSE, &Find::default(), &trials);
    let line = record.line.unwrap();
    let heap = line.heap_bytes.unwrap();
    assert!((of.heap_min()..of.heap_min() + 2 * MIB).contains(&heap), "{line:?}");
    let truth = of.limit_min(heap);
    assert!(line.limit_bytes >= truth && line.limit_bytes as f64 <= truth as f64 * 1.0201, "{line:?}");
    assert_eq!((line.held, line.cause), (5, Some(FailureCause::FilePages)));
    assert!(trials.len() <= 14, "{}", trials.len());
}

/// With little time the line is a limit that holds as often as any other, and may lie higher.
#[test]
fn little_time_leaves_out_limits_and_never_the_confirmation() {
    // The line lies far below the first guess.
    let of = ServerModel { hot: 0.05, ..server() };
    let search = |spec: &SearchSpec| {
        let mut trials = Vec::new();
        while let Some(attempt) = next(spec, &trials) {
            let mut trial = of.trial(&attempt);
            trial.probe.as_mut().unwrap().seconds = 10.0;
            trials.push(trial);
        }
        trials
    };
    let full = search(&COURSE);
    let line = |spec: &SearchSpec, trials: &[Trial]| {
        let record = conclude(spec, &Find::default(), trials);
        (record.cut_short, record.line.unwrap())
    };
    let (_, best) = line(&COURSE, &full);
    let mut cut = 0;
    for trials_max in 6..20u32 {
        let spec = SearchSpec { seconds_max: Some(f64::from(trials_max) * 10.0), ..COURSE };
        let trials = search(&spec);
        let (is_cut, found) = line(&spec, &trials);
        assert_eq!(found.held, 5);
        // A heap that was not searched to its end may be larger, and the limit with it.
        let truth = of.limit_min(found.heap_bytes.unwrap());
        assert!(found.limit_bytes >= truth && found.limit_bytes >= best.limit_bytes, "{found:?}");
        assert!(trials.len() <= full.len().max(trials_max as usize), "{} of {trials_max}", trials.len());
        assert!(is_cut || found == best, "{trials_max}: {found:?}");
        cut += usize::from(is_cut);
        for known in 0..trials.len() {
            assert!(next(&spec, &trials[..known]).is_some(), "a search goes on from its trials");
        }
    }
    assert!((1..14).contains(&cut), "{cut}");
}

#[test]
fn a_heap_that_is_given_is_not_searched() {
    let of = ServerModel { greed: 64 * MIB, ..server() };
    let spec = SearchSpec { unknowns: Unknowns::Limit, ..COURSE };
    let trials = search(&spec, &of);
    assert!(trials.iter().all(|trial| trial.probe.as_ref().unwrap().heap_bytes.is_none()));
    let line = conclude(&spec, &Find::default(), &trials).line.unwrap();
    let truth = of.limit_min(of.greed);
    assert!(line.limit_bytes >= truth && line.limit_bytes as f64 <= truth as f64 * 1.0201, "{line:?}");
    assert!(trials.len() <= 12, "{}", trials.len());
}

#[test]
fn a_small_heap_takes_no_direct_memory_away() {
    let of = ServerModel { live: 2 * MIB, direct: 50 * MIB, ..server() };
    let trials = search(&COURSE, &of);
    let line = conclude(&COURSE, &Find::default(), &trials).line.unwrap();
    assert_eq!((line.heap_bytes, line.direct_bytes), (Some(of.heap_min()), Some(of.native)));
    assert!(trials.len() <= 14, "{}", trials.len());
}

#[test]
fn a_warm_host_needs_less() {
    let spec = SearchSpec { warm: true, ..COURSE };
    let record = conclude(&spec, &Find::default(), &search(&spec, &server()));
    let (cold, warm) = (record.line.unwrap(), record.warm.unwrap());
    assert!(warm.limit_bytes < cold.limit_bytes && warm.limit_bytes >= 60 * MIB + cold.heap_bytes.unwrap());
    assert_eq!(warm.held, 2);
}

#[test]
fn a_server_that_does_not_even_hold_without_a_limit_is_asked_once() {
    let of = ServerModel { native: 4096 * MIB, ..server() };
    let trials = search(&COURSE, &of);
    assert_eq!(trials.len(), 1);
    let record = conclude(&COURSE, &Find::default(), &trials);
    assert_eq!((record.outcome, record.line), (crate::record::FindOutcome::NotHeld, None));
}

#[test]
fn the_lower_bound_is_said_to_be_one() {
    let spec = SearchSpec { limit_min: Some(512 * MIB), ..COURSE };
    let record = conclude(&spec, &Find::default(), &search(&spec, &server()));
    assert_eq!(record.outcome, crate::record::FindOutcome::AtLowerBound);
    assert_eq!(record.line.unwrap().below_bytes, None);
}

#[test]
fn one_limit_is_proved_or_refuted() {
    let of = ServerModel { greed: 64 * MIB, ..server() };
    let truth = of.limit_min(of.greed);
    let outcome = |limit| {
        let spec = SearchSpec { unknowns: Unknowns::Limit, prove: Some(limit), ..COURSE };
        let trials = search(&spec, &of);
        (trials.len(), conclude(&spec, &Find::default(), &trials).outcome)
    };
    assert_eq!(outcome(truth + MIB), (6, crate::record::FindOutcome::AtLowerBound));
    assert_eq!(outcome(truth - MIB), (2, crate::record::FindOutcome::Never));
}

#[test]
fn the_highest_rate_of_a_limit_is_found() {
    let of = ServerModel { greed: 64 * MIB, ..server() };
    let spec = SearchSpec { unknowns: Unknowns::Rate, rate_per_s: Some(200.0), limit_max: 256 * MIB, ..COURSE };
    let trials = search(&spec, &of);
    let rate = conclude(&spec, &Find::default(), &trials).rate.unwrap();
    assert!(rate.rate_per_s <= RATE_MAX && rate.rate_per_s >= RATE_MAX / 1.021, "{rate:?}");
    assert!(rate.above_per_s.unwrap() > RATE_MAX && rate.held == 5 && trials.len() <= 20, "{rate:?} {}", trials.len());
    // With a limit that is too small, no rate holds.
    let spec = SearchSpec { limit_max: 64 * MIB, ..spec };
    let found = conclude(&spec, &Find::default(), &search(&spec, &of));
    assert_eq!((found.outcome, found.rate), (crate::record::FindOutcome::Never, None));
}

#[test]
fn what_is_to_be_set_is_tested_under_a_longer_load() {
    let spec = SearchSpec { soak_s: Some(60.0), ..COURSE };
    let record = |of: ServerModel| {
        let trials = search(&spec, &of);
        let soaks = trials.iter().filter(|trial| trial.probe.as_ref().unwrap().stage == ProbeStage::Soak).count();
        (conclude(&spec, &Find::default(), &trials), soaks)
    };
    // The headroom is enough: one more trial, and the same answer as without it.
    let (steady, soaks) = record(server());
    let without = conclude(&COURSE, &Find::default(), &search(&COURSE, &server()));
    assert_eq!((steady.limit_bytes, steady.heap_bytes, soaks), (without.limit_bytes, without.heap_bytes, 1));
    assert!(steady.outcome.is_found() && steady.soak.unwrap().failed_bytes.is_empty());
    // Native memory or the live set grows: the answer is one that holds then.
    for grows in [[0, 40 * MIB], [9 * MIB, 0], [4 * MIB, 30 * MIB]] {
        let of = ServerModel { grows, ..server() };
        let (found, soaks) = record(of);
        let (limit, heap) = (found.limit_bytes.unwrap(), found.heap_bytes.unwrap());
        let grown = of.grown();
        assert!(heap >= grown.heap_min() && limit >= grown.limit_min(heap), "{grows:?} {limit} {heap}");
        assert!(limit as f64 <= grown.limit_min(heap) as f64 * 1.25 && (2..=6).contains(&soaks), "{limit} {soaks}");
        assert_eq!(
            found.line.as_ref().map(|line| line.limit_bytes),
            without.line.as_ref().map(|line| line.limit_bytes)
        );
        assert!(found.outcome.is_found());
    }
    // A server that grows without end has no limit to set; the search keeps its line.
    let (leaks, soaks) = record(ServerModel { grows: [0, 4096 * MIB], ..server() });
    assert!(leaks.line.is_some() && leaks.limit_bytes.is_none(), "{leaks:?}");
    assert_eq!(leaks.outcome, crate::record::FindOutcome::Grows);
    assert_eq!((soaks, leaks.soak.unwrap().failed_bytes.len()), (6, 6));
}

#[test]
fn a_search_goes_on_from_its_trials() {
    let trials = search(&COURSE, &server());
    for known in 0..trials.len() {
        let attempt = next(&COURSE, &trials[..known]);
        assert_eq!(attempt.map(|attempt| attempt.limit), trials[known].limit_bytes, "{known}");
    }
}

proptest! {
    #[test]
    fn any_server_has_its_line(live in 1u64..400, native in 20u64..600, file in 5u64..120, hot in 0.1f64..1.0,
                               garbage in 1u64..8) {
        let of = ServerModel {
            live: live * MIB,
            native: native * MIB,
            file: file * MIB,
            hot,
            greed: (live * 5 / 4 + 1) * garbage * MIB,
            direct: 0,
            grows: [0, 0],
        };
        let spec = SearchSpec { limit_max: 8192 * MIB, ..COURSE };
        let trials = search(&spec, &of);
        let line = conclude(&spec, &Find::default(), &trials).line.unwrap();
        let heap = line.heap_bytes.unwrap();
        let truth = of.limit_min(heap);
        prop_assert!(heap >= of.heap_min() && line.limit_bytes >= truth);
        prop_assert!(line.limit_bytes as f64 <= truth as f64 * 1.021, "{line:?} {truth}");
        let least = of.limit_min(of.heap_min());
        prop_assert!(line.limit_bytes as f64 <= least as f64 * 1.045, "{line:?} {least}");
    }
}

#[test]
fn the_least_time_adds_up_in_one_line() {
    let phase = PhaseRecord { seconds: 20.0, ..PhaseRecord::default() };
    let first = Trial { phases: vec![phase], ..Trial::new("a", 0, 0) };
    let (seconds, sum) = crate::least_s(&SearchSpec { proofs: 5, soak_s: Some(60.0), ..COURSE }, &first);
    assert_eq!(seconds, 8.0 * 20.0 + 80.0);
    let told = "3 trials to choose a limit and 5 to confirm it take 20 s each, and the soak 80 s: 4.0 minutes in all";
    assert_eq!(sum, told);
}
