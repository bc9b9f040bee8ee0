//! Simulated trials for tests, with noise of a known spread.

use crate::numbers::SplitMix64;
use crate::record::{AccountRecord, Mark, Model, Outcome, PhaseRecord, Quantiles, SubjectWork, Trial};
use loadline_stats::random;

/// Standard deviations between trials, normal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) retained_mib: f64,
    /// The spread of RSS without retained memory.
    pub(super) in_use_mib: f64,
    /// The spread of CPU per request, as a share.
    pub(super) cpu: f64,
}

/// Measured on a small server at a constant rate, after 800,000 requests (`bench/results/2026-11-21-compare.md`).
pub(super) const OPEN: Spread = Spread { retained_mib: 2.3, in_use_mib: 0.37, cpu: 0.0068 };
/// Measured on the same server in a closed model, after 20 s.
pub(super) const CLOSED: Spread = Spread { retained_mib: 2.4, in_use_mib: 0.33, cpu: 0.0275 };
/// Measured on the same server after 30,000 requests of warm-up and 30,000 more: 1.07 MiB of RSS in total. CPU per
/// request includes compilation.
pub(super) const LITTLE: Spread = Spread { retained_mib: 1.0, in_use_mib: 0.4, cpu: 0.086 };
/// CPU between [`OPEN`] and [`CLOSED`], with little retained: 1 MiB of RSS in total, as measured after 60,000 requests.
pub(super) const USUAL: Spread = Spread { retained_mib: 0.92, in_use_mib: 0.4, cpu: 0.015 };
/// Standard deviation of the drift shared by all trials of a block, in units of the noise of one trial.
pub(super) const BLOCK_DRIFT: f64 = 1.0;
/// Level of RSS, and of the malloc memory retained in it, in MiB.
pub(super) const RSS_MIB: f64 = 64.0;
const RETAINED_MIB: f64 = 18.0;

/// Uniform between 0 and 1, exclusive.
pub(super) fn uniform(random: &mut SplitMix64) -> f64 {
    ((random.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard normal, after Box and Muller.
pub(super) fn normal(random: &mut SplitMix64) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// A configuration's difference from the level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effect {
    pub(super) rss_mib: f64,
    /// As a share: 0.03 is 3% more.
    pub(super) cpu: f64,
}

/// Blocks of identical configurations.
pub(super) fn trials(blocks: u32, names: &[&str], seed: u64) -> Vec<Trial> {
    let alike: Vec<(&str, Effect)> = names.iter().map(|name| (*name, Effect::default())).collect();
    with_effects(blocks, &alike, seed)
}

/// Blocks of configurations that differ, with the usual noise.
pub(super) fn with_effects(blocks: u32, configurations: &[(&str, Effect)], seed: u64) -> Vec<Trial> {
    with_noise(USUAL, blocks, configurations, seed)
}

pub(super) fn with_noise(spread: Spread, blocks: u32, configurations: &[(&str, Effect)], seed: u64) -> Vec<Trial> {
    let mut random = random::stream(seed, 0);
    let mut trials = Vec::new();
    for block in 0..blocks {
        let drift = [normal(&mut random) * BLOCK_DRIFT, normal(&mut random) * BLOCK_DRIFT];
        for place in super::order(seed, block, configurations.len()) {
            let (name, effect) = configurations[place];
            let mut noise = || normal(&mut random);
            let in_use = RSS_MIB - RETAINED_MIB + effect.rss_mib + spread.in_use_mib * (drift[0] + noise());
            let retained = (RETAINED_MIB + spread.retained_mib * noise()).max(0.0);
            let rss = in_use + retained;
            let peak = rss + 2.0 + (spread.retained_mib * noise()).abs();
            let cpu = (1.0 + effect.cpu) * (1.0 + spread.cpu * (drift[1] + noise()));
            let rate = 5_000.0 * (1.0 + 0.02 * noise());
            let p99 = 8.0 * (1.0 + 0.05 * noise());
            let start_up = 0.4 * (1.0 + 0.03 * noise());
            let index = trials.len() as u32;
            trials.push(trial(Trial::new(name, block, index), [rss, retained, peak, cpu, rate, p99, start_up]));
        }
    }
    trials
}

fn trial(mut trial: Trial, [rss, retained, peak, cpu, rate, p99, start_up]: [f64; 7]) -> Trial {
    let bytes = |mib: f64| (mib * 1_048_576.0) as u64;
    let mark = |name: &str, mib: f64| {
        let owners = [("java_heap.used", mib / 2.0), ("malloc.retained", retained), ("cds", 13.0)];
        let account = Some(AccountRecord::holding(owners.map(|(name, mib)| (name, bytes(mib)))));
        Mark { name: name.to_owned(), rss_bytes: bytes(mib), account, ..Mark::default() }
    };
    let phase = |name: &str| PhaseRecord {
        name: name.to_owned(),
        model: Model::Closed,
        seconds: 10.0,
        requests: 50_000,
        ok: 50_000,
        achieved_per_s: rate,
        service_ms: Some(Quantiles { p50: p99 / 4.0, p99, max: p99 * 3.0, mean: p99 / 3.0, ..Quantiles::default() }),
        subject: SubjectWork {
            cpu_s: Some(cpu * 10.0),
            gc_count: Some(3),
            gc_ms: Some(20.0),
            rss_bytes_max: Some(bytes(peak)),
            ..SubjectWork::default()
        },
        ..PhaseRecord::default()
    };
    trial.outcome = Outcome::Completed;
    trial.marks = vec![mark("start", rss / 2.0), mark("warm", rss - 4.0), mark("loaded", rss)];
    trial.phases = vec![phase("warmup"), phase("steady")];
    trial.rss_bytes_peak = Some(bytes(peak));
    trial.ready_s = Some(start_up);
    trial
}
