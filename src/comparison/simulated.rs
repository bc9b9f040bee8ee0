//! Trials for tests: made up, with noise of a known size.

use super::random::Random;
use crate::record::{AccountRecord, Mark, Outcome, OwnerRecord, PhaseRecord, Quantiles, SubjectWork, Trial};

/// Standard deviation of RSS from trial to trial, MiB; measured: 1.07 (`bench/results/2026-11-21-compare.md`).
pub(super) const RSS_NOISE_MIB: f64 = 1.0;
/// Standard deviation of CPU per request from trial to trial, of its level: that of a server warmed for long. Measured
/// after 1 to 3 s of warm-up: 6.6 to 8.6 %.
pub(super) const CPU_NOISE: f64 = 0.015;
/// Standard deviation of what all trials of a block share, in units of the noise of one trial.
pub(super) const BLOCK_DRIFT: f64 = 1.0;
/// Level of RSS, MiB.
pub(super) const RSS_MIB: f64 = 64.0;

/// Uniform between 0 and 1, neither included.
pub(super) fn uniform(random: &mut Random) -> f64 {
    ((random.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard normal, after Box and Muller.
pub(super) fn normal(random: &mut Random) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// By how much a configuration differs from the level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effect {
    pub(super) rss_mib: f64,
    /// As a share: 0.03 is 3 % more.
    pub(super) cpu: f64,
}

/// Blocks of these configurations, all alike.
pub(super) fn trials(blocks: u32, names: &[&str], seed: u64) -> Vec<Trial> {
    let alike: Vec<(&str, Effect)> = names.iter().map(|name| (*name, Effect::default())).collect();
    with_effects(blocks, &alike, seed)
}

/// Blocks of configurations that differ.
pub(super) fn with_effects(blocks: u32, configurations: &[(&str, Effect)], seed: u64) -> Vec<Trial> {
    let mut random = Random::new(seed, 0);
    let mut trials = Vec::new();
    for block in 0..blocks {
        let drift = [normal(&mut random) * BLOCK_DRIFT, normal(&mut random) * BLOCK_DRIFT];
        for place in super::order(seed, block, configurations.len()) {
            let (name, effect) = configurations[place];
            let mut noise = || normal(&mut random);
            let rss = RSS_MIB + effect.rss_mib + RSS_NOISE_MIB * (drift[0] + noise());
            let peak = rss + 2.0 + (RSS_NOISE_MIB * noise()).abs();
            let cpu = (1.0 + effect.cpu) * (1.0 + CPU_NOISE * (drift[1] + noise()));
            let rate = 5_000.0 * (1.0 + 0.02 * noise());
            let p99 = 8.0 * (1.0 + 0.05 * noise());
            let start_up = 0.4 * (1.0 + 0.03 * noise());
            let index = trials.len() as u32;
            trials.push(trial(Trial::new(name, block, index), [rss, peak, cpu, rate, p99, start_up]));
        }
    }
    trials
}

fn trial(mut trial: Trial, [rss, peak, cpu, rate, p99, start_up]: [f64; 6]) -> Trial {
    let bytes = |mib: f64| (mib * 1_048_576.0) as u64;
    let owner =
        |name: &str, mib: f64| OwnerRecord { name: name.to_owned(), rss_bytes: bytes(mib), ..OwnerRecord::default() };
    let mark = |name: &str, mib: f64| Mark {
        name: name.to_owned(),
        rss_bytes: bytes(mib),
        account: Some(AccountRecord {
            owners: vec![owner("java_heap.used", mib / 2.0), owner("malloc.retained", mib / 8.0), owner("cds", 13.0)],
            ..AccountRecord::default()
        }),
        ..Mark::default()
    };
    let phase = |name: &str| PhaseRecord {
        name: name.to_owned(),
        model: "closed".to_owned(),
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
