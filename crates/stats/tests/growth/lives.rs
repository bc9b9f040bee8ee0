//! Simulated lives of JVMs, as ten-minute floors, in MiB inside this module and in bytes outside: kinds without a leak,
//! and leaks on top of them. Every life begins with JVM startup and a warm-up fill of 0.2 to 1 h. It lasts 28 days
//! unless its kind ends sooner. Its limit is 1.15 to 2 times its peak without a leak.

use loadline_base::numbers::SplitMix64;
use loadline_stats::growth::{DAY, HOUR};
use std::f64::consts::TAU;

/// Kinds used to choose the constants.
pub(crate) const TUNED: [&str; 15] = [
    "ar",
    "daily",
    "weekly",
    "saw_seen",
    "saw_hidden",
    "fill_1h",
    "fill_6h",
    "fill_24h",
    "fill_72h",
    "steps",
    "walk",
    "g1",
    "spikes",
    "restarts",
    "mixed",
];
/// Kinds used only to see what goes wrong: fills that begin late, growth that bends but has no ceiling in sight, wide
/// walks, larger steps, days that differ by a third, and high-water marks.
pub(crate) const CHECKED: [&str; 9] = [
    "late_fill_6h",
    "late_fill_24h",
    "late_fill_72h",
    "log_fill",
    "root_fill",
    "wide_walk",
    "big_steps",
    "rough_days",
    "pools",
];

/// Kinds added after all constants were fixed: a line of days that ends, a logarithm that begins late, a fill at
/// startup and a later one, and nightly and weekly batches.
pub(crate) const UNSEEN: [&str; 4] = ["ramp", "late_log", "two_fills", "batches"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leak {
    /// At a constant rate, from JVM startup.
    Start,
    /// At a constant rate, from day seven.
    Middle,
    Load,
    /// Once a day.
    Stairs,
}

#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// Bytes.
    pub(crate) floors: Vec<f64>,
    pub(crate) collections: Option<Vec<u32>>,
    /// The load in each cell, 0 to about 1.
    pub(crate) load: Vec<f64>,
    pub(crate) limit: f64,
    pub(crate) leaks_from: usize,
}

const MIB: f64 = 1024.0 * 1024.0;

/// The source of a life's random numbers.
pub(crate) struct Dice(SplitMix64);

impl Dice {
    pub(crate) fn of(parts: &[u64]) -> Self {
        Self(parts.iter().fold(SplitMix64::new(0), |random, part| {
            let mut random = random;
            SplitMix64::new(random.next() ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        }))
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn happens(&mut self, chance: f64) -> bool {
        self.0.unit() < chance
    }

    /// Values of a first-order autoregressive process.
    fn wander(&mut self, count: usize, keeps: f64, deviation: f64) -> Vec<f64> {
        let step = deviation * (1.0 - keeps * keeps).sqrt();
        let mut at = self.0.normal() * deviation;
        (0..count)
            .map(|_| {
                let value = at;
                at = keeps * at + step * self.0.normal();
                value
            })
            .collect()
    }

    /// The load of each cell over days of varying height.
    fn days(&mut self, count: usize) -> Vec<f64> {
        let [phase, second, other] = [self.between(0.0, TAU), self.between(0.0, 0.4), self.between(0.0, TAU)];
        let heights: Vec<f64> = (0..count / DAY + 2).map(|_| 1.0 + 0.1 * self.0.normal()).collect();
        let of = |at: usize| {
            let turn = TAU * at as f64 / DAY as f64 + phase;
            let shape = 0.5 + 0.5 * (turn.sin() + second * (2.0 * turn + other).sin()) / (1.0 + second);
            let (day, part) = (at / DAY, (at % DAY) as f64 / DAY as f64);
            shape * (heights[day] * (1.0 - part) + heights[day + 1] * part)
        };
        (0..count).map(of).collect()
    }

    /// Office hours with soft edges, and weekends at a third of the load.
    fn weeks(&mut self, count: usize) -> Vec<f64> {
        let shift = self.0.below((7 * DAY) as u64) as usize;
        let of = |at: usize| {
            let at = at + shift;
            let hour = (at % DAY) as f64 / HOUR as f64;
            let office = 1.0 / (1.0 + (-(hour - 8.5) * 1.5).exp()) / (1.0 + ((hour - 18.0) * 1.2).exp());
            (0.1 + 0.9 * office) * if (at / DAY) % 7 >= 5 { 0.3 } else { 1.0 }
        };
        (0..count).map(of).collect()
    }

    /// Memory that rises between collections and drops to the floor at each; returns what is above it, and collections.
    fn saw(&mut self, load: &[f64], hours: (f64, f64), height: f64) -> (Vec<f64>, Vec<u32>) {
        let period = self.log_between(hours.0, hours.1) * HOUR as f64;
        let mean = load.iter().sum::<f64>() / load.len() as f64;
        let (mut filled, mut needed) = (0.0, period * self.between(0.2, 1.0));
        let tooth = |load: &f64| {
            filled += load / mean;
            let full = filled >= needed;
            if full {
                filled = 0.0;
                needed = period * self.between(0.8, 1.2);
            }
            (height * filled / period, u32::from(full))
        };
        load.iter().map(tooth).unzip()
    }

    /// A walk that is reflected at both ends of its range, and takes about `days` days from one to the other.
    fn walk(&mut self, count: usize, half: f64, days: f64) -> Vec<f64> {
        let step = 2.0 * half / (days * DAY as f64).sqrt();
        let mut at = self.between(-half, half);
        (0..count)
            .map(|_| {
                at += self.0.normal() * step;
                let folded = (at + half).rem_euclid(4.0 * half);
                if folded > 2.0 * half { 3.0 * half - folded } else { folded - half }
            })
            .collect()
    }
}

/// A life of a service of this `kind`. `own` draws the properties of the service, `dice` the events of this life.
pub(crate) fn life(own: &mut Dice, dice: &mut Dice, kind: &str, days: usize) -> Life {
    let days = if kind == "restarts" { 1 + dice.0.below(5) as usize } else { days };
    let count = days * DAY;
    let [level, noise] = [own.log_between(300.0, 2048.0), own.log_between(0.5, 20.0)];
    let keeps = match kind {
        "ar" | "daily" | "weekly" | "mixed" | "restarts" => [0.0, 0.5, 0.9, 0.98][own.0.below(4) as usize],
        _ => 0.5,
    };
    let [share, warm] = [own.between(0.1, 0.4), own.between(0.2, 1.0)];
    let mut floors: Vec<f64> = dice.wander(count, keeps, noise);
    for (at, floor) in floors.iter_mut().enumerate() {
        *floor += level * (1.0 - share * (-hours(at) / warm).exp());
    }
    let mut life = Life { floors, collections: None, load: vec![0.5; count], limit: 0.0, leaks_from: 0 };
    let on_top = match kind.split_once("fill_") {
        Some(("", hours)) => filled(count, own, level, 0.0, spoken(hours)),
        Some(("late_", hours)) => {
            let from = dice.between(3.0, 14.0) * 24.0;
            filled(count, own, level, from, spoken(hours))
        }
        _ if UNSEEN.contains(&kind) => unseen(count, (own, dice), kind, level),
        _ => usual(&mut life, (own, dice), kind, level, noise),
    };
    for (floor, top) in life.floors.iter_mut().zip(&on_top) {
        *floor += top;
    }
    settle(&mut life);
    // The recorded load deviates slightly from the load that the memory follows.
    let jitter: Vec<f64> = (0..count).map(|_| 1.0 + 0.05 * dice.0.normal()).collect();
    for (load, jitter) in life.load.iter_mut().zip(jitter) {
        *load = *load * jitter + 0.02;
    }
    let peak = life.floors.iter().copied().fold(0.0, f64::max);
    life.limit = peak * own.between(1.15, 2.0) * MIB;
    life.floors.iter_mut().for_each(|floor| *floor *= MIB);
    life
}

fn hours(cells: usize) -> f64 {
    cells as f64 / HOUR as f64
}

/// `72h` becomes 72.
fn spoken(hours: &str) -> f64 {
    hours.trim_end_matches('h').parse().expect("the name of a kind that fills contains its hours")
}

fn filled(count: usize, own: &mut Dice, level: f64, from: f64, constant: f64) -> Vec<f64> {
    let height = level * own.between(0.1, 0.6);
    (0..count).map(|at| height * (1.0 - (-(hours(at) - from).max(0.0) / constant).exp())).collect()
}

/// The memory on top of the level, for every kind except fills and the kinds added last.
fn usual(life: &mut Life, (own, dice): (&mut Dice, &mut Dice), kind: &str, level: f64, noise: f64) -> Vec<f64> {
    let count = life.floors.len();
    let mut on_top = vec![0.0; count];
    match kind {
        "ar" | "restarts" => {}
        "daily" | "weekly" => {
            life.load = if kind == "daily" { dice.days(count) } else { dice.weeks(count) };
            let height = level * own.between(0.02, 0.15);
            on_top = life.load.iter().map(|load| height * load).collect();
        }
        "saw_seen" | "saw_hidden" => {
            let height = level * own.between(0.05, 0.3);
            let (teeth, collections) = dice.saw(&life.load, (1.0, 12.0), height);
            (on_top, life.collections) = (teeth, (kind == "saw_seen").then_some(collections));
        }
        "g1" => {
            life.load = dice.days(count);
            let height = level * own.between(0.1, 0.4);
            let busy: Vec<f64> = life.load.iter().map(|load| (load + 0.1).max(0.01)).collect();
            let (teeth, collections) = dice.saw(&busy, (2.0, 24.0), height);
            let mut left = level * 0.01 * dice.0.normal();
            for ((top, tooth), ended) in on_top.iter_mut().zip(&teeth).zip(&collections) {
                if *ended > 0 {
                    left = level * 0.01 * dice.0.normal();
                }
                *top = tooth + left;
            }
            life.collections = Some(collections);
        }
        "steps" => steps(dice, &mut on_top, 4.0, (0.01 * level, 0.10 * level), 0.6),
        "big_steps" => {
            steps(dice, &mut on_top, 2.0, (0.05 * level, 0.20 * level), 0.5);
            // Memory cannot fall below a minimum.
            let least = on_top.iter().zip(&life.floors).map(|(top, floor)| top + floor).fold(f64::INFINITY, f64::min);
            let lift = (0.3 * level - least).max(0.0);
            on_top.iter_mut().for_each(|top| *top += lift);
        }
        "walk" => {
            let [half, days] = [level * own.between(0.05, 0.15), own.between(1.0, 7.0)];
            on_top = dice.walk(count, half, days);
        }
        "wide_walk" => {
            let [half, days] = [level * own.between(0.15, 0.3), own.between(1.0, 10.0)];
            on_top = dice.walk(count, half, days);
        }
        "spikes" => {
            let mut left = (0, 0.0);
            for top in &mut on_top {
                if dice.happens(1.0 / DAY as f64) {
                    left = (1 + dice.0.below(6), level * dice.between(0.05, 0.4));
                }
                if left.0 > 0 {
                    *top = left.1;
                    left.0 -= 1;
                }
            }
        }
        _ => on_top = slow(life, (own, dice), kind, level, noise),
    }
    on_top
}

/// The same for kinds that change over weeks.
fn slow(life: &mut Life, (own, dice): (&mut Dice, &mut Dice), kind: &str, level: f64, noise: f64) -> Vec<f64> {
    let count = life.floors.len();
    match kind {
        "log_fill" => {
            let [height, constant] = [level * own.between(0.02, 0.15), own.between(1.0, 24.0)];
            (0..count).map(|at| height * (hours(at) / constant).ln_1p()).collect()
        }
        "root_fill" => {
            let height = level * own.between(0.1, 0.6);
            (0..count).map(|at| height * (at as f64 / count as f64).sqrt()).collect()
        }
        "rough_days" => {
            let each: Vec<f64> = (0..count / DAY + 1).map(|_| 1.0 + 0.33 * dice.0.normal()).collect();
            life.load = dice.days(count).iter().enumerate().map(|(at, load)| load * each[at / DAY]).collect();
            let height = level * own.between(0.05, 0.2);
            let wander = dice.wander(count, 0.98, noise);
            life.load.iter().zip(wander).map(|(load, wander)| height * load + wander).collect()
        }
        "pools" => {
            let [wander, days] = [dice.wander(count, 0.9, 1.0), dice.days(count)];
            let height = level * own.between(0.05, 0.2);
            let mut peak = f64::NEG_INFINITY;
            let highest = |(wander, day): (f64, f64)| {
                peak = peak.max(wander.abs() + day);
                height * peak
            };
            wander.into_iter().zip(days).map(highest).collect()
        }
        "mixed" => {
            life.load = dice.days(count);
            let [height, filled] = [level * own.between(0.02, 0.1), level * own.between(0.05, 0.3)];
            let mut on_top = vec![0.0; count];
            steps(dice, &mut on_top, 7.0, (-0.05 * level, 0.05 * level), 1.0);
            for (at, top) in on_top.iter_mut().enumerate() {
                *top += height * life.load[at] + filled * (1.0 - (-hours(at) / 24.0).exp());
            }
            on_top
        }
        _ => panic!("no life is called {kind}"),
    }
}

/// The same for the kinds added last.
fn unseen(count: usize, (own, dice): (&mut Dice, &mut Dice), kind: &str, level: f64) -> Vec<f64> {
    let from = 24.0 * dice.between(2.0, 14.0);
    let height = level * own.between(0.1, 0.5);
    match kind {
        "ramp" => {
            let lasts = 24.0 * own.between(0.5, 10.0);
            (0..count).map(|at| height * ((hours(at) - from) / lasts).clamp(0.0, 1.0)).collect()
        }
        "late_log" => {
            let constant = own.between(1.0, 24.0);
            let since = |at: usize| (hours(at) - from).max(0.0);
            (0..count).map(|at| 0.2 * height * (since(at) / constant).ln_1p()).collect()
        }
        "two_fills" => {
            let [early, late] = [own.log_between(1.0, 48.0), own.log_between(2.0, 48.0)];
            let filled = |since: f64, constant: f64| 1.0 - (-since.max(0.0) / constant).exp();
            let both = |at: usize| height * (filled(hours(at), early) + filled(hours(at) - from, late)) / 2.0;
            (0..count).map(both).collect()
        }
        "batches" => {
            let [lasts, at] = [own.between(1.0, 6.0), own.between(0.0, 18.0)];
            let batch = |cell: usize| {
                let (day, hour) = (cell / DAY, hours(cell % DAY));
                let runs = (at..at + lasts).contains(&hour);
                if runs { height * if day % 7 == 6 { 1.0 } else { 0.5 } } else { 0.0 }
            };
            (0..count).map(batch).collect()
        }
        _ => panic!("no life is called {kind}"),
    }
}

fn steps(dice: &mut Dice, on_top: &mut [f64], days: f64, height: (f64, f64), up: f64) {
    let mut level = 0.0;
    for top in on_top {
        if dice.happens(1.0 / (days * DAY as f64)) {
            let step = dice.between(height.0, height.1);
            level += if dice.happens(up) { step } else { -step };
        }
        *top += level;
    }
}

/// If collections are counted, each floor keeps the last collection's result until the next collection.
fn settle(life: &mut Life) {
    let Some(collections) = &life.collections else { return };
    let first = collections.iter().position(|ended| *ended > 0).unwrap_or(0);
    let mut held = life.floors[first];
    for (floor, ended) in life.floors.iter_mut().zip(collections) {
        if *ended > 0 {
            held = *floor;
        }
        *floor = held;
    }
}

/// A life that also leaks this many MiB an hour, truncated when it reaches its limit.
pub(crate) fn leaking(
    (own, dice): (&mut Dice, &mut Dice),
    kind: &str,
    leak: Leak,
    mib_an_hour: f64,
    days: usize,
) -> Life {
    let mut life = life(own, dice, kind, days);
    life.leaks_from = if leak == Leak::Middle { 7 * DAY } else { 0 };
    let mean = life.load.iter().sum::<f64>() / life.load.len() as f64;
    let shift = dice.0.unit();
    let (mut worked, mut held) = (0.0, 0.0);
    let mut first_stair = None;
    for at in life.leaks_from..life.floors.len() {
        worked += life.load[at] / mean / HOUR as f64;
        let since = hours(at - life.leaks_from);
        let stair = 24.0 * (since / 24.0 + shift).floor();
        let leaked = match leak {
            Leak::Start | Leak::Middle => since,
            Leak::Load => worked,
            Leak::Stairs => stair - *first_stair.get_or_insert(stair),
        };
        // A collection keeps everything that has leaked so far.
        if life.collections.as_ref().is_none_or(|ended| ended[at] > 0) {
            held = leaked;
        }
        life.floors[at] += mib_an_hour * held * MIB;
    }
    if let Some(end) = life.floors.iter().position(|floor| *floor >= life.limit) {
        let end = end.max(1);
        life.floors.truncate(end);
        life.load.truncate(end);
        if let Some(collections) = &mut life.collections {
            collections.truncate(end);
        }
    }
    life
}

/// A life at 1 of 2 GiB, with noise of this autocorrelation and deviation in MiB, and a leak from day five to day ten.
pub(crate) fn flat(dice: &mut Dice, (keeps, deviation): (f64, f64), mib_an_hour: f64) -> Life {
    let count = 10 * DAY;
    let leaks_from = 5 * DAY;
    let leaked = |at: usize| mib_an_hour * hours(at.saturating_sub(leaks_from));
    let wander = dice.wander(count, keeps, deviation);
    let floors = wander.iter().enumerate().map(|(at, wander)| (1024.0 + wander + leaked(at)) * MIB).collect();
    Life { floors, collections: None, load: vec![0.5; count], limit: 2048.0 * MIB, leaks_from }
}

/// Classes that leak: a small and quiet series with its own ceiling.
pub(crate) fn classes(dice: &mut Dice, mib_an_hour: f64) -> Life {
    let count = 28 * DAY;
    let [level, noise] = [dice.log_between(60.0, 300.0), dice.log_between(0.02, 0.3)];
    let wander = dice.wander(count, 0.9, noise);
    let of = |(at, wander): (usize, f64)| {
        (level * (1.0 - 0.3 * (-hours(at) / 0.5).exp()) + wander + mib_an_hour * hours(at)) * MIB
    };
    let mut floors: Vec<f64> = wander.into_iter().enumerate().map(of).collect();
    let limit = level * dice.between(1.3, 3.0) * MIB;
    if let Some(end) = floors.iter().position(|floor| *floor >= limit) {
        floors.truncate(end.max(1));
    }
    let load = vec![0.5; floors.len()];
    Life { floors, collections: None, load, limit, leaks_from: 0 }
}
