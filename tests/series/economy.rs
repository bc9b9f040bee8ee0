//! Cost and quality of searches over hundreds of simulated servers of each kind: trials, distance from the smallest
//! limit, and share of lines that are too low.

use crate::made_up::{MadeUpTrials, Mishap, Server, heap_by_limit};
use crate::whole::{scenario, series};
use loadline::numbers::SplitMix64;
use loadline::record::{FindOutcome, ProbeStage, Trial};
use loadline::scenario::Scenario;
use loadline::series::search::{Search, found};
use loadline::units::MIB;
use std::fmt::Write;

const HEAD: &str = "kind               mean   95%  max    heap  minutes    found  within 3%  below     off  excess\n";
const LIMIT_MAX: u64 = 8192 * MIB;
const SEEDS: u64 = 300;
/// One fresh process in twelve needs this many standard deviations more than the mean; at that limit, five of five
/// starts pass two times in three.
const USUAL: f64 = 1.4;

/// Pseudorandom numbers for one world.
struct Draw(SplitMix64);

impl Draw {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    fn mib(&mut self, low: u64, high: u64) -> u64 {
        (low + self.0.below(high - low + 1)) * MIB
    }

    /// A server with a random share of hot files, and an edge that is about a step wide.
    fn server(&mut self) -> Server {
        Server {
            live: self.mib(2, 150),
            slack: self.between(1.02, 1.3),
            native: self.mib(30, 300),
            file: self.mib(30, 90),
            hot: self.between(0.3, 0.8),
            greed: self.mib(300, 1500),
            noise: self.between(0.001, 0.008),
            strain: self.between(0.0, 0.12),
            ..Server::default()
        }
    }
}

/// A kind of server, and how it is searched.
struct ServerKind {
    name: &'static str,
    find: &'static str,
    server: fn(&mut Draw) -> Server,
    /// Percentage of trials that are late without a visible reason, and of disturbed ones.
    mishaps: u64,
}

const KINDS: [ServerKind; 7] = [
    ServerKind { name: "plain", find: "", server: Draw::server, mishaps: 0 },
    ServerKind { name: "heap to start", find: "", server: slow_to_start, mishaps: 0 },
    ServerKind { name: "direct memory", find: "", server: of_direct, mishaps: 0 },
    ServerKind { name: "left to the JVM", find: "as_is: true", server: by_limit, mishaps: 0 },
    ServerKind { name: "wide edge", find: "", server: wide, mishaps: 0 },
    ServerKind { name: "silent", find: "", server: silent, mishaps: 0 },
    ServerKind { name: "mishaps", find: "", server: Draw::server, mishaps: 3 },
];

fn slow_to_start(draw: &mut Draw) -> Server {
    let server = draw.server();
    Server { start: server.live + draw.mib(3, 40), ..server }
}

fn of_direct(draw: &mut Draw) -> Server {
    let server = draw.server();
    let direct = draw.mib(8, 250);
    let direct_greed = (direct as f64 * draw.between(1.0, 6.0)) as u64;
    Server { native: server.native + direct, direct, direct_greed, ..server }
}

fn by_limit(draw: &mut Draw) -> Server {
    // A growing heap is not filled: young and free memory stay proportional to the live set.
    let server = draw.server();
    let greed = (server.live as f64 * draw.between(1.3, 3.0)) as u64;
    Server { by_limit: true, greed, ..server }
}

fn wide(draw: &mut Draw) -> Server {
    Server { noise: draw.between(0.010, 0.020), strain: draw.between(0.05, 0.3), ..draw.server() }
}

fn silent(draw: &mut Draw) -> Server {
    Server { strain: 0.0, ..draw.server() }
}

/// The results for a kind.
#[derive(Default)]
struct Sum {
    searches: u32,
    found: u32,
    trials: Vec<u32>,
    /// Trials about the heap, per search.
    of_heap: Vec<u32>,
    minutes: Vec<f64>,
    /// Lines relative to the limit that a start in twelve exceeds with the same heap, minus 1.
    off: Vec<f64>,
    /// Lines relative to the minimum with the smallest heap and direct memory, minus 1.
    excess: Vec<f64>,
    /// Lines at which every second start fails.
    below: u32,
}

/// A trial's duration in seconds: short if the subject dies or is not ready, or without load.
fn seconds(trial: &Trial) -> f64 {
    match (trial.phases.is_empty(), trial.ready_s) {
        (false, _) => 20.0,
        (true, Some(_)) => 3.0,
        (true, None) => 8.0,
    }
}

/// The median need of a start, and the need that one start in twelve exceeds, with this heap and direct memory.
fn needed(server: &Server, heap: u64, direct: u64) -> (f64, f64) {
    let waiting = server.direct_greed.min(direct).saturating_sub(server.direct);
    let anon = (server.native + waiting + heap.min(server.greed)) as f64;
    let files = server.file as f64 * server.hot;
    (anon + files, anon * (1.0 + USUAL * server.noise) + files)
}

/// The same if the JVM sizes the heap based on the limit: the smallest limit that suffices.
fn needed_by_limit(server: &Server) -> (f64, f64) {
    let smallest = |which: fn((f64, f64)) -> f64| {
        let enough = |limit: &u64| {
            let heap = heap_by_limit(*limit);
            heap >= server.heap_min() && which(needed(server, heap, heap)) <= *limit as f64
        };
        (16 * 8..8192 * 8).map(|part| part * MIB / 8).find(enough).unwrap_or(0) as f64
    };
    (smallest(|of| of.0), smallest(|of| of.1))
}

impl Sum {
    fn add(&mut self, server: &Server, scenario: &Scenario, trials: &[Trial]) {
        let of_heap = |trial: &&Trial| {
            trial.probe.as_ref().is_some_and(|probe| !matches!(probe.stage, ProbeStage::Reference | ProbeStage::Limit))
        };
        let record = found(scenario, trials).unwrap();
        self.searches += 1;
        self.trials.push(trials.len() as u32);
        self.minutes.push(trials.iter().map(seconds).sum::<f64>() / 60.0);
        self.of_heap.push(trials.iter().filter(of_heap).count() as u32);
        let Some(line) = record.line.filter(|_| record.outcome == FindOutcome::Found) else { return };
        self.found += 1;
        let limit = line.limit_bytes as f64;
        let (middle, usual, least) = match line.heap_bytes {
            Some(heap) => {
                let (middle, usual) = needed(server, heap, line.direct_bytes.unwrap_or(heap));
                let smallest = server.heap_min().max(server.heap_to_start());
                (middle, usual, needed(server, smallest, server.direct).1)
            }
            None => {
                let (middle, usual) = needed_by_limit(server);
                (middle, usual, usual)
            }
        };
        self.off.push(limit / usual - 1.0);
        self.excess.push(limit / least - 1.0);
        self.below += u32::from(limit < middle);
    }

    fn row(&self, name: &str) -> String {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let share = |count: usize| 100.0 * count as f64 / self.searches as f64;
        let trials: Vec<f64> = self.trials.iter().map(|of| f64::from(*of)).collect();
        let of_heap: Vec<f64> = self.of_heap.iter().map(|of| f64::from(*of)).collect();
        let mut sorted = self.trials.clone();
        sorted.sort_unstable();
        let most_of = sorted[sorted.len() * 95 / 100];
        format!(
            "{name:<16} {:6.1} {most_of:5} {:4} {:7.1} {:8.1} {:6.1}% {:6.1}% {:6.1}% {:6.1}% {:6.1}%\n",
            mean(&trials),
            sorted[sorted.len() - 1],
            mean(&of_heap),
            mean(&self.minutes),
            share(self.found as usize),
            share(self.off.iter().filter(|off| off.abs() <= 0.03).count()),
            share(self.below as usize),
            100.0 * mean(&self.off),
            100.0 * mean(&self.excess),
        )
    }
}

fn searches(kind: &ServerKind) -> Sum {
    let text = "configurations: {only: {gc: serial}}\ntarget: ['p99<50ms', 'failed==0']";
    let scenario = scenario(&format!("{text}\nfind: {{warm: false, {}}}", kind.find));
    let mut sum = Sum::default();
    for seed in 0..SEEDS {
        let mut draw = Draw(SplitMix64::new(seed));
        let server = (kind.server)(&mut draw);
        let mut made_up = MadeUpTrials { seed, ..MadeUpTrials::of(server.clone()) };
        for index in 1..80 {
            match draw.0.below(100) {
                late if late < kind.mishaps => drop(made_up.mishaps.insert(index, Mishap::Late)),
                noisy if noisy < 2 * kind.mishaps => drop(made_up.mishaps.insert(index, Mishap::NoisyMachine)),
                _ => {}
            }
        }
        let (trials, _, ended) = series(&Search::new(&scenario, LIMIT_MAX).unwrap(), &mut made_up);
        ended.unwrap();
        sum.add(&server, &scenario, &trials);
    }
    sum
}

/// Prints mean, 95th percentile, and maximum of trials, heap trials, and minutes; and the quality of lines.
#[test]
fn searches_take_few_trials_and_are_rarely_wrong() {
    let mut text = String::from(HEAD);
    for kind in &KINDS {
        let sum = searches(kind);
        write!(text, "{}", sum.row(kind.name)).unwrap();
        let mean = f64::from(sum.trials.iter().sum::<u32>()) / f64::from(sum.searches);
        let near = sum.off.iter().filter(|off| off.abs() <= 0.03).count() as f64 / f64::from(sum.searches);
        assert_eq!(sum.found, sum.searches, "{}", kind.name);
        assert!(mean <= 17.0, "{}: {mean} trials", kind.name);
        assert!(f64::from(sum.below) <= 0.01 * f64::from(sum.searches), "{}: {} below the truth", kind.name, sum.below);
        // A random failure in a confirmation refutes the limit.
        assert!(near >= if kind.mishaps > 0 { 0.85 } else { 0.99 }, "{}: a share of {near} is within 3%", kind.name);
    }
    insta::assert_snapshot!(text);
}
