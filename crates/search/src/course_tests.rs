//! Whole searches on simulated servers with known memory needs, so the result can be checked. `tests/series` has
//! searches from the scenario to the record, with random failures along the way.

use super::*;
use crate::conclude;
use crate::record::{AccountRecord, CgroupRecord, FailureCause, Heap, Mark, Outcome, PhaseRecord};
use crate::scenario::{Find, RamShare};
use proptest::prelude::*;

/// A server with the memory needs in its fields.
#[derive(Debug, Clone, Copy)]
struct ServerModel {
    live: u64,
    /// Everything except heap and files.
    native: u64,
    file: u64,
    /// The part of its files that it needs.
    hot: f64,
    /// The size that its heap reaches without a limit.
    greed: u64,
    /// Live heap and native memory added by a longer load.
    grows: [u64; 2],
}

impl ServerModel {
    /// The smallest heap in whole MiB, the unit of the search.
    fn heap_min(&self) -> u64 {
        (self.live * 5 / 4).div_ceil(MIB) * MIB
    }

    /// The smallest limit with a heap of this size, with its own file pages.
    fn limit_min(&self, heap: u64) -> u64 {
        self.native + heap.min(self.greed) + (self.file as f64 * self.hot) as u64
    }

    /// The server's needs after a longer load.
    fn grown(self) -> Self {
        let [live, native] = self.grows;
        Self { live: self.live + live, native: self.native + native, ..self }
    }

    fn trial(&self, attempt: &Attempt) -> Trial {
        if attempt.stage == ProbeStage::Soak && self.grows != [0, 0] {
            return Self { grows: [0, 0], ..self.grown() }.trial(attempt);
        }
        let heap = attempt.heap.unwrap_or(self.greed);
        let resident = heap.min(self.greed);
        let anon = self.native + resident;
        let files = if attempt.pages == Pages::Cold { self.file } else { 0 };
        let need = anon + (files as f64 * self.hot) as u64;
        let (holds, cause) = match () {
            () if heap < self.heap_min() => (false, Some(FailureCause::OutOfMemoryError)),
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
        Trial {
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
        assert!(trials.len() < 60, "the search does not end");
        trials.push(server.trial(&attempt));
    }
    trials
}

fn server() -> ServerModel {
    ServerModel { live: 20 * MIB, native: 60 * MIB, file: 50 * MIB, hot: 0.55, greed: 200 * MIB, grows: [0, 0] }
}

/// With little time, the line holds as often as any other, but may be higher.
#[test]
fn a_short_search_tries_fewer_limits_but_confirms_its_line() {
    // The line is far below the first guess.
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
        // A heap that was not fully searched may be larger, and so may the limit.
        let truth = of.limit_min(found.heap_bytes.unwrap());
        assert!(found.limit_bytes >= truth && found.limit_bytes >= best.limit_bytes, "{found:?}");
        assert!(trials.len() <= full.len().max(trials_max as usize), "{} of {trials_max}", trials.len());
        assert!(is_cut || found == best, "{trials_max}: {found:?}");
        cut += usize::from(is_cut);
        for known in 0..trials.len() {
            assert!(next(&spec, &trials[..known]).is_some(), "a resumed search is not over before its last trial");
        }
    }
    assert!((1..14).contains(&cut), "{cut}");
}

#[test]
fn recommended_settings_are_tested_under_a_longer_load() {
    let spec = SearchSpec { soak_s: Some(60.0), ..COURSE };
    let record = |of: ServerModel| {
        let trials = search(&spec, &of);
        let soaks = trials.iter().filter(|trial| trial.probe.as_ref().unwrap().stage == ProbeStage::Soak).count();
        (conclude(&spec, &Find::default(), &trials), soaks)
    };
    // The headroom is enough, so there is one more trial, and the same result as without the soak.
    let (steady, soaks) = record(server());
    let without = conclude(&COURSE, &Find::default(), &search(&COURSE, &server()));
    assert_eq!((steady.limit_bytes, steady.heap_bytes, soaks), (without.limit_bytes, without.heap_bytes, 1));
    assert!(steady.outcome.is_found() && steady.soak.unwrap().failed_bytes.is_empty());
    // If native memory or the live set grows, the result still holds after the growth.
    for grows in [[0, 40 * MIB], [9 * MIB, 0], [4 * MIB, 30 * MIB]] {
        let of = ServerModel { grows, ..server() };
        let (found, soaks) = record(of);
        let (limit, heap) = (found.limit_bytes.unwrap(), found.heap_bytes.unwrap());
        let grown = of.grown();
        assert!(heap >= grown.heap_min() && limit >= grown.limit_min(heap), "{grows:?} {limit} {heap}");
        assert!(limit as f64 <= grown.limit_min(heap) as f64 * 1.36 && (2..=6).contains(&soaks), "{limit} {soaks}");
        let soak = found.soak.as_ref().unwrap();
        let passed = soak.limit_bytes.unwrap();
        let is_small = grows[1] > 0 && soak.failed_bytes.len() > usize::from(grows[0] > 0);
        assert!(
            !is_small || limit >= passed + passed / 10,
            "the passing limit gets its own headroom: {soak:?} {limit}"
        );
        assert_eq!(
            found.line.as_ref().map(|line| line.limit_bytes),
            without.line.as_ref().map(|line| line.limit_bytes)
        );
        assert!(found.outcome.is_found());
    }
    // A server that grows without bound has no limit to set; the search keeps its line.
    let (leaks, soaks) = record(ServerModel { grows: [0, 4096 * MIB], ..server() });
    assert!(leaks.line.is_some() && leaks.limit_bytes.is_none(), "{leaks:?}");
    assert_eq!(leaks.outcome, crate::record::FindOutcome::Grows);
    assert_eq!((soaks, leaks.soak.unwrap().failed_bytes.len()), (6, 6));
}

proptest! {
    #[test]
    fn a_search_finds_the_line_of_any_server(live in 1u64..400, native in 20u64..600, file in 5u64..120,
                               hot in 0.1f64..1.0, garbage in 1u64..8) {
        let of = ServerModel {
            live: live * MIB,
            native: native * MIB,
            file: file * MIB,
            hot,
            greed: (live * 5 / 4 + 1) * garbage * MIB,
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
fn the_minimum_search_time_is_the_sum_of_its_trials() {
    let phase = PhaseRecord { seconds: 20.0, ..PhaseRecord::default() };
    let first = Trial { phases: vec![phase], ..Trial::new("a", 0, 0) };
    let (seconds, sum) = crate::least_s(&SearchSpec { proofs: 5, soak_s: Some(60.0), ..COURSE }, &first);
    assert_eq!(seconds, 8.0 * 20.0 + 80.0);
    let told = "3 trials to choose a limit and 5 to confirm it take 20 s each, and the soak takes 80 s: 4.0 minutes \
        in total";
    assert_eq!(sum, told);
}
