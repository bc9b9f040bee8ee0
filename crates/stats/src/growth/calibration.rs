//! How often the ladder cries wolf, and how soon it finds a leak, on made-up lives: a small run in tests, the whole by
//! `bench/watch`, which also has the rivals.

use super::lives::{CHECKED, Dice, Leak, Life, TUNED, UNSEEN, classes, flat, leaking, life};
use super::rivals::{RIVALS, Rival};
use super::{DAY, Floors, HOUR, Ladder, Precedent, STEP, Verdict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lives of the whole run are drawn with other seeds than those of the tests.
const TESTS: u64 = 1;
const BENCH: u64 = 2;

fn floors(life: &Life) -> Floors<'_> {
    Floors { values: &life.floors, age: 0, collections: life.collections.as_deref() }
}

/// The cells after which the ladder raises an alarm, judging every half hour, with an earlier life or without.
fn alarms(ladder: &Ladder, life: &Life, before: Option<&Life>) -> Vec<usize> {
    let precedent = before.map(|before| Precedent::of(&floors(before)));
    let judge = ladder.over(floors(life), precedent.as_ref());
    let each = (HOUR..=life.floors.len()).step_by(STEP);
    each.filter(|cells| judge.at(*cells, life.limit).verdict == Verdict::Grows).collect()
}

/// Alarms, each counted once in 24 h.
fn episodes(alarms: &[usize]) -> usize {
    alarms.iter().take(1).count() + alarms.windows(2).filter(|pair| pair[1] - pair[0] > DAY).count()
}

/// `each` lives of a kind, with what is known before them; those that restart get as many more as they are shorter.
fn lives<'a>(
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
struct Rates(BTreeMap<String, (usize, f64)>);

impl Rates {
    fn add(&mut self, kind: &str, alarms: &[usize], life: &Life) {
        let (count, years) = self.0.entry(kind.to_owned()).or_default();
        *count += episodes(alarms);
        *years += life.floors.len() as f64 / DAY as f64 / 365.0;
    }

    fn sums(&self) -> (usize, f64) {
        self.0.values().fold((0, 0.0), |(count, years), (more, over)| (count + more, years + over))
    }

    fn of(&self, kind: &str) -> f64 {
        self.0.get(kind).map_or(f64::NAN, |(count, years)| *count as f64 / years)
    }

    fn rate(&self) -> f64 {
        let (count, years) = self.sums();
        count as f64 / years
    }
}

fn false_alarms(seed: u64, kinds: &[&str], each: u64, history: History) -> Rates {
    let ladder = Ladder::default();
    let mut rates = Rates::default();
    for (kind, life, before) in lives(seed, kinds, each, history) {
        rates.add(kind, &alarms(&ladder, &life, before.as_ref()), &life);
    }
    rates
}

/// What is known when a life is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    None,
    /// An earlier life of the same service.
    LifeBefore,
    /// One that had nothing but noise: the version before lacked what this one has.
    PlainLifeBefore,
}

/// A leak as it was found, or not.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Hours from the leak's start.
    after: Option<f64>,
    /// Hours that were left before the limit; `None` where the life ended before it.
    left: Option<f64>,
    /// Whether the first alarm's interval held the truth, and whether it was open.
    held: Option<bool>,
    open: bool,
}

fn find(ladder: &Ladder, life: &Life, before: Option<&Life>, mib_an_hour: f64) -> Found {
    let precedent = before.map(|before| Precedent::of(&floors(before)));
    let judge = ladder.over(floors(life), precedent.as_ref());
    let end = life.floors.len();
    let first = (HOUR..=end).step_by(STEP).find_map(|cells| {
        let judgement = judge.at(cells, life.limit);
        (cells > life.leaks_from && judgement.verdict == Verdict::Grows)
            .then_some((cells, judgement.growth?.projection))
    });
    let Some((cells, projection)) = first else { return Found { after: None, left: None, held: None, open: false } };
    let hours = |cells: usize| cells as f64 / HOUR as f64;
    let died = !end.is_multiple_of(DAY);
    let left = if died {
        (end - cells) as f64
    } else {
        let last = life.floors[end.saturating_sub(3 * DAY)..].iter().copied().fold(0.0, f64::max);
        (end - cells) as f64 + (life.limit - last).max(0.0) / (mib_an_hour * 1024.0 * 1024.0) * HOUR as f64
    };
    let held = projection.earliest <= left && projection.latest.is_none_or(|latest| left <= latest);
    Found {
        after: Some(hours(cells - life.leaks_from)),
        left: died.then_some(hours(end - cells)),
        held: Some(held),
        open: projection.latest.is_none(),
    }
}

/// Leaks of one form, on every kind they are put on.
fn leaks(seed: u64, leak: Leak, mib_an_hour: f64, each: u64, history: History) -> Vec<Found> {
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
            // The version before did not leak.
            let before = (history == History::LifeBefore).then(|| life(&mut own(), &mut dice(2), &kind, 28));
            find(ladder, &leaking, before.as_ref(), mib_an_hour)
        })
    };
    kinds.into_iter().zip(0..).flat_map(one).collect()
}

/// Leaks as they are told.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// Shares in percent: found; of the found, those whose interval holds the truth, and those without an upper end.
    found: f64,
    holds: f64,
    open: f64,
    /// Median hours to the alarm, where what was missed counts as never, and left before the limit.
    after: f64,
    left: f64,
}

impl Told {
    fn of(leaks: &[Found]) -> Self {
        let seen: Vec<&Found> = leaks.iter().filter(|leak| leak.after.is_some()).collect();
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

    fn row(&self, name: &str) {
        let Self { found, holds, open, after, left } = self;
        println!("| {name} | {found:.0} | {after:.0} | {left:.0} | {holds:.0} | {open:.0} |");
    }
}

#[test]
fn lives_without_a_leak_are_not_called_one() {
    // Some three, two and one years; the whole calibration has the rates. The first of the unseen ones is a straight
    // line that ends: before its end it is a leak for anyone.
    for (kinds, most) in [(&TUNED[..], 0), (&CHECKED[..], 1), (&UNSEEN[1..], 0)] {
        let rates = false_alarms(TESTS, kinds, 3, History::None);
        let (count, years) = rates.sums();
        println!("{count} false alarms in {years:.1} JVM-years");
        assert!(count <= most, "{rates:?}");
    }
}

#[test]
fn leaks_are_found_before_the_limit() {
    let alone = Told::of(&leaks(TESTS, Leak::Middle, 10.0, 2, History::None));
    println!("{alone:?}");
    assert!(alone.found >= 75.0 && alone.left >= 10.0);
    let with = Told::of(&leaks(TESTS, Leak::Middle, 10.0, 2, History::LifeBefore));
    println!("with the life before: {with:?}");
    assert!(with.found >= alone.found && with.after <= alone.after);
}

#[test]
#[ignore = "the whole calibration takes many minutes; bench/watch runs it"]
fn the_whole_calibration() {
    let each: u64 = std::env::var("LOADLINE_LIVES").ok().and_then(|each| each.parse().ok()).unwrap_or(40);
    let groups = |rates: &dyn Fn(&[&str]) -> Rates| [rates(&TUNED), rates(&CHECKED), rates(&UNSEEN)];
    let ladder = |history| groups(&move |kinds| false_alarms(BENCH, kinds, each, history));
    let mut table = vec![
        ("ladder", ladder(History::None)),
        ("with the life before", ladder(History::LifeBefore)),
        ("after a version without it", ladder(History::PlainLifeBefore)),
    ];
    for (rival, name) in RIVALS {
        table.push((name, groups(&|kinds| rival_alarms(rival, kinds, each.min(40)))));
    }
    println!(
        "\n| false alarms per JVM-year | tuned kinds | JVM-years | checked kinds | JVM-years | unseen kinds | JVM-years |"
    );
    println!("|---|{}", "---|".repeat(6));
    for (name, groups) in &table {
        let cells = groups.each_ref().map(|rates| format!("{:.2} | {:.0}", rates.rate(), rates.sums().1));
        println!("| {name} | {} |", cells.join(" | "));
    }
    let names: Vec<&str> = table.iter().map(|row| row.0).collect();
    println!("\n| kind | {} |\n|---|{}", names.join(" | "), "---|".repeat(table.len()));
    for (group, kinds) in [&TUNED[..], &CHECKED, &UNSEEN].into_iter().enumerate() {
        for kind in kinds {
            let rates: Vec<String> = table.iter().map(|row| format!("{:.1}", row.1[group].of(kind))).collect();
            println!("| {kind} | {} |", rates.join(" | "));
        }
    }
    println!(
        "\n| leak, MiB/h | found, % | median hours to the alarm | median hours left | interval holds, % | open, % |"
    );
    println!("|---|{}", "---|".repeat(5));
    for leak in [Leak::Start, Leak::Middle, Leak::Load, Leak::Stairs] {
        for slope in [0.1, 1.0, 10.0, 100.0] {
            for history in [History::None, History::LifeBefore] {
                let told = Told::of(&leaks(BENCH, leak, slope, each.min(100) / 4 + 1, history));
                told.row(&format!("{leak:?} {slope}, {history:?}"));
            }
        }
    }
    for slope in [0.02, 0.1, 1.0] {
        let ladder = Ladder::default();
        let dice = |at| Dice::of(&[BENCH, 9, (slope * 100.0) as u64, at]);
        let one = |at| find(&ladder, &classes(&mut dice(at), slope), None, slope);
        Told::of(&(0..each).map(one).collect::<Vec<_>>()).row(&format!("classes {slope}"));
    }
    hints(each);
}

/// How often a rise on a flat base is hinted at in time.
fn hints(each: u64) {
    let ladder = Ladder::default();
    println!(
        "\n| noise on a flat base | 1 MiB/h hinted at in 24 h, % | 10 MiB/h in 4 h, % | 10 MiB/h in 8 h, % |\n|---|---|---|---|"
    );
    for (keeps, deviation) in [(0.0, 0.5), (0.0, 2.0), (0.0, 5.0), (0.9, 0.5), (0.9, 2.0), (0.9, 5.0), (0.9, 10.0)] {
        let share = |mib_an_hour: f64, within_hours: usize| {
            let hinted = |at: &u64| {
                let life = flat(&mut Dice::of(&[BENCH, 10, *at]), (keeps, deviation), mib_an_hour);
                let judge = ladder.over(floors(&life), None);
                let mut each = (life.leaks_from..=life.leaks_from + within_hours * HOUR).step_by(STEP);
                each.any(|cells| judge.at(cells, life.limit).hint.is_some())
            };
            100.0 * (0..each).filter(hinted).count() as f64 / each as f64
        };
        let (slow, soon, later) = (share(1.0, 24), share(10.0, 4), share(10.0, 8));
        println!("| sd {deviation} MiB, autocorrelation {keeps} | {slow:.0} | {soon:.0} | {later:.0} |");
    }
}

/// Anonymous memory of a trial of an archive, from its `timeline.jsonl`, each sample held for so many cells.
fn stretched(timeline: &Path, cells: usize) -> Option<Life> {
    let text = std::fs::read_to_string(timeline).ok()?;
    let anon = |line: &str| {
        let sample: serde_json::Value = serde_json::from_str(line).ok()?;
        sample["anon_bytes"].as_f64()
    };
    let floors: Vec<f64> = text.lines().filter_map(anon).flat_map(|anon| std::iter::repeat_n(anon, cells)).collect();
    let peak = floors.iter().copied().fold(f64::NAN, f64::max);
    let load = vec![0.5; floors.len()];
    (floors.len() >= DAY / 2).then_some(Life { floors, collections: None, load, limit: 1.15 * peak, leaks_from: 0 })
}

/// All timelines below a folder of archives.
fn timelines(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = |path: PathBuf| match path.is_dir() && depth > 0 {
        true => timelines(&path, depth - 1),
        false => Some(path).filter(|path| path.ends_with("timeline.jsonl")).into_iter().collect(),
    };
    entries.flat_map(below).collect()
}

#[test]
#[ignore = "wants archives of real servers in LOADLINE_ARCHIVES; bench/watch runs it"]
fn real_trials_stretched_in_time() {
    let archives = std::env::var_os("LOADLINE_ARCHIVES").expect("LOADLINE_ARCHIVES names folders, as PATH does");
    let ladder = Ladder::default();
    println!(
        "\n| trials of | how many | a sample is | ladder, false alarms | JVM-years | least squares | Mann-Kendall |"
    );
    println!("|---|{}", "---|".repeat(6));
    for folder in std::env::split_paths(&archives) {
        for cells in [1, 6, 36] {
            let lives: Vec<Life> =
                timelines(&folder, 4).iter().filter_map(|timeline| stretched(timeline, cells)).collect();
            let years: f64 = lives.iter().map(|life| life.floors.len() as f64 / DAY as f64 / 365.0).sum();
            let rival = |which: usize| lives.iter().map(|life| episodes(&RIVALS[which].0.alarms(life))).sum::<usize>();
            let ours: usize = lives.iter().map(|life| episodes(&alarms(&ladder, life, None))).sum();
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let (squares, kendall) = (rival(0), rival(3));
            let minutes = 10 * cells;
            println!("| {name} | {} | {minutes} min | {ours} | {years:.2} | {squares} | {kendall} |", lives.len());
        }
    }
}

fn rival_alarms(rival: Rival, kinds: &[&str], each: u64) -> Rates {
    let mut rates = Rates::default();
    for (kind, life, _) in lives(BENCH, kinds, each, History::None) {
        rates.add(kind, &rival.alarms(&life), &life);
    }
    rates
}
