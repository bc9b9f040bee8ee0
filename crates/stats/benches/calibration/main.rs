//! The full calibration: how often the growth verdict errs on many simulated lives, compared with common trend tests.
//! `bench/watch.sh` runs it. LOADLINE_LIVES sets the number of lives per kind. LOADLINE_ARCHIVES lists directories of
//! archives, in the same format as PATH.
#![expect(clippy::print_stdout, reason = "the tables are its result")]

#[path = "../../tests/growth/calibration.rs"]
mod calibration;
#[path = "../../tests/growth/lives.rs"]
mod lives;
mod rivals;

use calibration::{History, Rates, Told, alarms, episodes, false_alarms, find, floors, leaks, lives};
use lives::{CHECKED, Dice, Leak, Life, TUNED, UNSEEN, classes, flat};
use loadline_stats::growth::{DAY, HOUR, Ladder, STEP};
use rivals::{RIVALS, Rival};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The full run uses a different seed from the tests'.
const SEED: u64 = 2;

fn rate(rates: &Rates) -> f64 {
    let (count, years) = rates.sums();
    count as f64 / years
}

fn rate_of(rates: &Rates, kind: &str) -> f64 {
    rates.0.get(kind).map_or(f64::NAN, |(count, years)| *count as f64 / years)
}

fn row(told: &Told, name: &str) {
    let Told { found, holds, open, after, left } = told;
    println!("| {name} | {found:.0} | {after:.0} | {left:.0} | {holds:.0} | {open:.0} |");
}

fn main() {
    the_whole_calibration();
    if let Some(archives) = std::env::var_os("LOADLINE_ARCHIVES") {
        real_trials_stretched_in_time(&archives);
    }
}

fn the_whole_calibration() {
    let each: u64 = std::env::var("LOADLINE_LIVES").ok().and_then(|each| each.parse().ok()).unwrap_or(40);
    let groups = |rates: &dyn Fn(&[&str]) -> Rates| [rates(&TUNED), rates(&CHECKED), rates(&UNSEEN)];
    let ladder = |history| groups(&move |kinds| false_alarms(SEED, kinds, each, history));
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
        let cells = groups.each_ref().map(|rates| format!("{:.2} | {:.0}", rate(rates), rates.sums().1));
        println!("| {name} | {} |", cells.join(" | "));
    }
    let names: Vec<&str> = table.iter().map(|row| row.0).collect();
    println!("\n| kind | {} |\n|---|{}", names.join(" | "), "---|".repeat(table.len()));
    for (group, kinds) in [&TUNED[..], &CHECKED, &UNSEEN].into_iter().enumerate() {
        for kind in kinds {
            let rates: Vec<String> = table.iter().map(|row| format!("{:.1}", rate_of(&row.1[group], kind))).collect();
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
                let told = Told::of(&leaks(SEED, leak, slope, each.min(100) / 4 + 1, history));
                row(&told, &format!("{leak:?} {slope}, {history:?}"));
            }
        }
    }
    for slope in [0.02, 0.1, 1.0] {
        let ladder = Ladder::default();
        let dice = |at| Dice::of(&[SEED, 9, (slope * 100.0) as u64, at]);
        let one = |at| find(&ladder, &classes(&mut dice(at), slope), None, slope);
        row(&Told::of(&(0..each).map(one).collect::<Vec<_>>()), &format!("classes {slope}"));
    }
    hints(each);
}

/// How often a hint reports a rise on a flat base soon enough.
fn hints(each: u64) {
    let ladder = Ladder::default();
    println!(
        "\n| noise on a flat base | 1 MiB/h hinted at in 24 h, % | 10 MiB/h in 4 h, % | 10 MiB/h in 8 h, % |\n|---|---|---|---|"
    );
    for (keeps, deviation) in [(0.0, 0.5), (0.0, 2.0), (0.0, 5.0), (0.9, 0.5), (0.9, 2.0), (0.9, 5.0), (0.9, 10.0)] {
        let share = |mib_an_hour: f64, within_hours: usize| {
            let hinted = |at: &u64| {
                let life = flat(&mut Dice::of(&[SEED, 10, *at]), (keeps, deviation), mib_an_hour);
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

/// Anonymous memory of an archived trial, from its `timeline.jsonl`, with each sample repeated for `cells` cells.
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

/// All timelines in a directory tree of archives.
fn timelines(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = |path: PathBuf| match path.is_dir() && depth > 0 {
        true => timelines(&path, depth - 1),
        false => Some(path).filter(|path| path.ends_with("timeline.jsonl")).into_iter().collect(),
    };
    entries.flat_map(below).collect()
}

fn real_trials_stretched_in_time(archives: &OsStr) {
    let ladder = Ladder::default();
    println!(
        "\n| trials of | how many | a sample is | ladder, false alarms | JVM-years | least squares | Mann-Kendall |"
    );
    println!("|---|{}", "---|".repeat(6));
    for folder in std::env::split_paths(archives) {
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
    for (kind, life, _) in lives(SEED, kinds, each, History::None) {
        rates.add(kind, &rival.alarms(&life), &life);
    }
    rates
}
