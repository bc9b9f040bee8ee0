//! How often the ladder raises false alarms, and how soon it finds a leak, on simulated lives: a small run.
//! `benches/calibration` has the full run and the rival tests.

use crate::lives::{Dice, Leak, Life, TUNED, leaking, life};
use loadline_stats::growth::{DAY, Floors, HOUR, Ladder, Precedent, STEP, Verdict};
use std::collections::BTreeMap;

pub(crate) fn floors(life: &Life) -> Floors<'_> {
    Floors { values: &life.floors, age: 0, collections: life.collections.as_deref() }
}

/// The cells after which the ladder raises an alarm, judging every half hour, with or without an earlier life.
pub(crate) fn alarms(ladder: &Ladder, life: &Life, before: Option<&Life>) -> Vec<usize> {
    let precedent = before.map(|before| Precedent::of(&floors(before)));
    let judge = ladder.over(floors(life), precedent.as_ref());
    let each = (HOUR..=life.floors.len()).step_by(STEP);
    each.filter(|cells| judge.at(*cells, life.limit).verdict == Verdict::Grows).collect()
}

/// Alarms, counted at most once per 24 h.
pub(crate) fn episodes(alarms: &[usize]) -> usize {
    alarms.iter().take(1).count() + alarms.windows(2).filter(|pair| pair[1] - pair[0] > DAY).count()
}

/// `each` lives of one kind, with the known earlier life. Lives that restart are shorter, so there are more of them.
pub(crate) fn lives<'a>(
    seed: u64,
    kinds: &'a [&'a str],
    each: u64,
    history: History,
) -> impl Iterator<Item = (&'a str, Life, Option<Life>)> + 'a {
    kinds.iter().zip(0..).flat_map(move |(kind, number)| {
        let many = if *kind == "restarts" { 9 * each } else { each };
        (0..many).map(move |at| {
            let one = |which, kind| {
                life(&mut Dice::of(&[seed, number, at]), &mut Dice::of(&[seed, number, at, which]), kind, 28)
            };
            let before = match history {
                History::None => None,
                History::LifeBefore => Some(one(2, kind)),
                History::PlainLifeBefore => Some(one(2, "ar")),
            };
            (*kind, one(1, kind), before)
        })
    })
}

/// False alarms and JVM-years, by kind.
#[derive(Debug, Default)]
pub(crate) struct Rates(pub(crate) BTreeMap<String, (usize, f64)>);

impl Rates {
    pub(crate) fn add(&mut self, kind: &str, alarms: &[usize], life: &Life) {
        let (count, years) = self.0.entry(kind.to_owned()).or_default();
        *count += episodes(alarms);
        *years += life.floors.len() as f64 / DAY as f64 / 365.0;
    }

    pub(crate) fn sums(&self) -> (usize, f64) {
        self.0.values().fold((0, 0.0), |(count, years), (more, over)| (count + more, years + over))
    }
}

pub(crate) fn false_alarms(seed: u64, kinds: &[&str], each: u64, history: History) -> Rates {
    let ladder = Ladder::default();
    let mut rates = Rates::default();
    for (kind, life, before) in lives(seed, kinds, each, history) {
        rates.add(kind, &alarms(&ladder, &life, before.as_ref()), &life);
    }
    rates
}

/// What is known about earlier lives when a life is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    None,
    /// An earlier life of the same service.
    LifeBefore,
    /// An earlier life with only noise: the previous version lacked what this one has.
    PlainLifeBefore,
}

/// Whether and when a leak was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeakOutcome {
    /// Hours from the leak's start.
    after: Option<f64>,
    /// Hours left before the limit; `None` if the life ended before reaching it.
    left: Option<f64>,
    /// Whether the first alarm's interval contained the truth, and whether it was open.
    held: Option<bool>,
    open: bool,
}

pub(crate) fn find(ladder: &Ladder, life: &Life, before: Option<&Life>, mib_an_hour: f64) -> LeakOutcome {
    let precedent = before.map(|before| Precedent::of(&floors(before)));
    let judge = ladder.over(floors(life), precedent.as_ref());
    let end = life.floors.len();
    let first = (HOUR..=end).step_by(STEP).find_map(|cells| {
        let judgement = judge.at(cells, life.limit);
        (cells > life.leaks_from && judgement.verdict == Verdict::Grows)
            .then_some((cells, judgement.growth?.projection))
    });
    let Some((cells, projection)) = first else {
        return LeakOutcome { after: None, left: None, held: None, open: false };
    };
    let hours = |cells: usize| cells as f64 / HOUR as f64;
    let died = !end.is_multiple_of(DAY);
    let left = if died {
        (end - cells) as f64
    } else {
        let last = life.floors[end.saturating_sub(3 * DAY)..].iter().copied().fold(0.0, f64::max);
        (end - cells) as f64 + (life.limit - last).max(0.0) / (mib_an_hour * 1024.0 * 1024.0) * HOUR as f64
    };
    let held = projection.earliest <= left && projection.latest.is_none_or(|latest| left <= latest);
    LeakOutcome {
        after: Some(hours(cells - life.leaks_from)),
        left: died.then_some(hours(end - cells)),
        held: Some(held),
        open: projection.latest.is_none(),
    }
}

/// Leaks of one form, added to every kind.
pub(crate) fn leaks(seed: u64, leak: Leak, mib_an_hour: f64, each: u64, history: History) -> Vec<LeakOutcome> {
    let ladder = Ladder::default();
    let kinds: Vec<&str> = match leak {
        Leak::Start | Leak::Middle => TUNED.into_iter().filter(|kind| *kind != "restarts").collect(),
        Leak::Load => vec!["daily", "weekly", "g1", "mixed"],
        Leak::Stairs => vec!["ar", "daily", "weekly"],
    };
    let days = if mib_an_hour <= 1.0 { 28 } else { 14 };
    let form = 1_000 + leak as u64 * 10_000 + (mib_an_hour * 10.0) as u64;
    let one = |(kind, number): (&str, u64)| {
        let ladder = &ladder;
        let kind = kind.to_owned();
        (0..each).map(move |at| {
            let own = || Dice::of(&[seed, form, number, at]);
            let dice = |which| Dice::of(&[seed, form, number, at, which]);
            let leaking = leaking((&mut own(), &mut dice(1)), &kind, leak, mib_an_hour, days);
            // The previous version did not leak.
            let before = (history == History::LifeBefore).then(|| life(&mut own(), &mut dice(2), &kind, 28));
            find(ladder, &leaking, before.as_ref(), mib_an_hour)
        })
    };
    kinds.into_iter().zip(0..).flat_map(one).collect()
}

/// The reported figures of a set of leaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// Percentages: leaks found; of those, leaks whose interval contains the truth, and those with an open interval.
    pub(crate) found: f64,
    pub(crate) holds: f64,
    pub(crate) open: f64,
    /// Median hours to the alarm, counting a missed leak as infinite, and median hours left before the limit.
    pub(crate) after: f64,
    pub(crate) left: f64,
}

impl Told {
    pub(crate) fn of(leaks: &[LeakOutcome]) -> Self {
        let seen: Vec<&LeakOutcome> = leaks.iter().filter(|leak| leak.after.is_some()).collect();
        let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        let middle = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Self {
            found: share(seen.len(), leaks.len()),
            holds: share(seen.iter().filter(|leak| leak.held == Some(true)).count(), seen.len()),
            open: share(seen.iter().filter(|leak| leak.open).count(), seen.len()),
            after: middle(leaks.iter().map(|leak| leak.after.unwrap_or(f64::INFINITY)).collect()),
            left: middle(leaks.iter().filter_map(|leak| leak.left).collect()),
        }
    }
}
