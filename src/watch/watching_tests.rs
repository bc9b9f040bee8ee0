//! Watching simulated machines.

use super::column::Column;
use super::history::{Past, Tier};
use super::made_up::{JvmScript, MIB, MadeUpMachine, STEADY, how, soak, turned};
use super::watching::Watching;
use super::when_weighed::WhenWeighed;
use crate::record::{GrowthWord, Happened, WatchEvent, WhyWeighed};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn watched(
    world: MadeUpMachine,
    weighing: WhenWeighed,
    turns: u64,
) -> (Vec<WatchEvent>, Watching<MadeUpMachine>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut watching = Watching::new(world, how(folder.path(), weighing));
    (turned(&mut watching, 0..turns), watching, folder)
}

/// A JVM whose direct memory grows by 200 MiB an hour.
const FAST: JvmScript = JvmScript { name: "fast", leak: Some((Column::Direct, 200.0)), ..STEADY };

/// Failure messages.
fn failed(told: &[WatchEvent]) -> Vec<&str> {
    told.iter()
        .filter_map(|event| if let Happened::Failed(why) = &event.what { Some(&why[..]) } else { None })
        .collect()
}

/// How many times a limit was reported to be near.
fn near(told: &[WatchEvent]) -> usize {
    told.iter().filter(|event| matches!(event.what, Happened::NearLimit { .. })).count()
}

/// A directory's files, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn samples(file: &Path) -> usize {
    Past::read(file).unwrap().cells(Tier::Samples).len()
}

fn is_alarm(event: &WatchEvent) -> bool {
    matches!(&event.what, Happened::Verdict(growth) if growth.verdict == GrowthWord::Grows)
}

#[test]
fn a_leak_is_named_with_its_owner_and_steady_memory_is_not() {
    let leaking = |name, column| JvmScript { name, leak: Some((column, 10.0)), ..STEADY };
    let jvms = [STEADY, leaking("heap", Column::HeapFloor), leaking("direct", Column::Direct)];
    // In two days, each leak grows by 480 MiB: the limit leaves 600 MiB, but the heap's maximum leaves only 412.
    let (_, mut watching, _folder) = watched(MadeUpMachine::of(&jvms), WhenWeighed::default(), 0);
    let mut told = Vec::new();
    for hour in 0..48 {
        told.extend(turned(&mut watching, 360 * hour..360 * (hour + 1)).into_iter().map(|event| (hour, event)));
    }
    let alarms = told.iter().filter(|(_, event)| is_alarm(event));
    let grown: BTreeMap<&str, u64> = alarms.map(|(hour, event)| (event.name.as_str(), *hour)).collect();
    assert_eq!(grown.keys().copied().collect::<Vec<_>>(), ["direct", "heap"], "{told:?}");
    let risen = told.iter().find_map(|(hour, event)| {
        matches!(event, WatchEvent { name, what: Happened::Rises(_) } if name == "direct").then_some(*hour)
    });
    assert!(risen.is_some_and(|hour| hour < grown["direct"]), "the hint precedes the alarm: {risen:?}, {grown:?}");
    for jvm in watching.jvms() {
        let grows = jvm.name != "steady";
        let word = if grows { GrowthWord::Grows } else { GrowthWord::Steady };
        assert_eq!(jvm.growth.verdict, word, "{jvm:?}");
        assert_eq!(jvm.growth.owner.as_deref(), grows.then_some(jvm.name.as_str()));
        if grows {
            let slope = jvm.growth.bytes_per_hour.unwrap() / MIB as f64;
            assert!((9.0..11.0).contains(&slope), "the slope is {slope} MiB/h, but the leak grows by 10 MiB/h");
        }
    }
}

#[test]
fn a_slowly_filling_heap_is_not_a_leak_if_it_fits_the_limit() {
    let fills = JvmScript { name: "fills", leak: Some((Column::HeapUsed, 5.0)), ..STEADY };
    for (limit, words) in [(1024, [GrowthWord::Warming; 2]), (800, [GrowthWord::Warming, GrowthWord::Grows])] {
        let world = MadeUpMachine { limit: limit * MIB, ..MadeUpMachine::of(&[fills]) };
        let (told, watching, _folder) = watched(world, WhenWeighed::default(), 66 * 360);
        let growth = &watching.jvms()[0].growth;
        assert!(words.contains(&growth.verdict), "{growth:?}");
        assert_eq!(told.iter().any(is_alarm), limit == 800, "{told:?}");
        let date = growth.limit_in_s.is_some();
        assert_eq!(date, limit == 800, "growth that levels off has no predicted date: {growth:?}");
    }
}

#[test]
fn jvms_come_and_go_and_keep_their_names() {
    let life = |from, until| JvmScript { name: "shop", from, until, ..STEADY };
    let (told, watching, folder) =
        watched(MadeUpMachine::of(&[life(0, 30), life(12, 60), life(33, u64::MAX)]), WhenWeighed::default(), 90);
    let names: Vec<String> = told
        .iter()
        .filter_map(|WatchEvent { name, what }| match what {
            Happened::Appeared(pid) => Some(format!("+{name} {pid}")),
            Happened::Ended(pid) => Some(format!("-{name} {pid}")),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["+shop 0", "+shop#2 1", "-shop 0", "+shop 2", "-shop#2 1"]);
    assert_eq!(watching.jvms().len(), 1);
    assert_eq!(files(folder.path()).len(), 3, "histories of ended JVMs are kept");
}

#[test]
fn accounts_are_taken_before_a_kill_but_not_too_often() {
    let (told, watching, _folder) = watched(MadeUpMachine::of(&[STEADY, FAST]), WhenWeighed::the_kill(), 3 * 360);
    let weighed: Vec<WhyWeighed> = told
        .iter()
        .filter_map(|event| match event {
            WatchEvent { name, what: Happened::Weighed(why, _) } => {
                assert_eq!(name, "fast");
                Some(*why)
            }
            _ => None,
        })
        .collect();
    assert_eq!(weighed, [WhyWeighed::AtPercent(66), WhyWeighed::AtPercent(75), WhyWeighed::AtPercent(90)]);
    assert_eq!(watching.world.weighed.len(), 3);
    assert_eq!(near(&told), 1, "{told:?}");
}

#[test]
fn an_unwritable_directory_is_reported_once_and_watching_continues() {
    let mut watching =
        Watching::new(MadeUpMachine::of(&[STEADY]), how(Path::new("/proc/nowhere"), WhenWeighed::default()));
    let told = turned(&mut watching, 0..50);
    assert_eq!(failed(&told).len(), 1, "{told:?}");
    assert!(watching.jvms()[0].now.rss_anon_bytes.is_some());
}

/// The names of new JVMs, with pids.
fn came(events: &[WatchEvent]) -> Vec<String> {
    let name = |WatchEvent { name, what }: &WatchEvent| match what {
        Happened::Appeared(pid) => Some(format!("{name} {pid}")),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

#[test]
fn setting_the_clock_keeps_histories_and_names() {
    let folder = tempfile::tempdir().unwrap();
    // The second has a lower pid, so that a new watch finds it first.
    let shop = |pid, from| JvmScript { name: "shop", from, pid: Some(pid), ..STEADY };
    for (at, wall_s) in [1_000_000, 1_010_800, 989_200, 1_000_001].into_iter().enumerate() {
        let world = MadeUpMachine { wall_s, ..MadeUpMachine::of(&[shop(9, 0), shop(4, 12)]) };
        let begins = 30 * at as u64;
        let told = turned(&mut Watching::new(world, how(folder.path(), WhenWeighed::default())), begins..begins + 30);
        let mut names = came(&told);
        names.sort();
        assert_eq!(names, ["shop 9", "shop#2 4"], "names must not change at {wall_s}: {told:?}");
        assert_eq!(failed(&told), [""; 0]);
    }
    let kept: Vec<usize> = files(folder.path()).iter().map(|file| samples(file)).collect();
    assert_eq!(kept, [120, 108], "both histories contain every sample");
}

#[test]
fn a_name_that_ends_with_a_digit_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    // The same process has a different name the second time, for example because its unit was renamed.
    for (name, own) in [("shop2", "shop2"), ("shop", "shop"), ("shop2", "shop2")] {
        let world = MadeUpMachine::of(&[JvmScript { name, ..STEADY }]);
        let mut watching = Watching::new(world, how(folder.path(), WhenWeighed::default()));
        assert_eq!(came(&watching.turn()), [format!("{own} 0")]);
    }
}

#[test]
fn a_history_from_a_later_version_is_reported_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steady.1000000.0.history");
    std::fs::write(&file, b"loadline.history/2\n\0 and what it knows").unwrap();
    let mut watching = Watching::new(MadeUpMachine::of(&[STEADY]), how(folder.path(), WhenWeighed::default()));
    let told = watching.turn();
    assert!(failed(&told)[0].contains("steady.1000000.0.history.aside-1"), "{told:?}");
    assert_eq!(samples(&file), 1);
    let aside = std::fs::read(folder.path().join("steady.1000000.0.history.aside-1")).unwrap();
    assert!(aside.ends_with(b"what it knows"));
}

#[test]
fn a_reused_pid_is_another_jvm() {
    let life = |name, from, until| JvmScript { name, from, until, pid: Some(7), ..STEADY };
    // The second starts in the turn in which the first ends, so only its start time distinguishes it.
    let (told, watching, folder) =
        watched(MadeUpMachine::of(&[life("shop", 0, 31), life("bank", 31, u64::MAX)]), WhenWeighed::default(), 60);
    assert_eq!(came(&told), ["shop 7", "bank 7"]);
    assert!(told.iter().any(|event| event.name == "shop" && event.what == Happened::Ended(7)), "{told:?}");
    assert_eq!(watching.jvms().iter().map(|jvm| jvm.name.as_str()).collect::<Vec<_>>(), ["bank"]);
    for file in files(folder.path()) {
        let past = Past::read(&file).unwrap();
        let (name, count) = (past.kept.name.as_str(), past.cells(Tier::Samples).len());
        assert!(matches!((name, count), ("shop", 31) | ("bank", 27..=29)), "{name}: {count}");
    }
}

/// A suspended machine: no JVM aged, but the next reading shows the elapsed time.
#[test]
fn a_gap_of_hours_is_not_reported_as_growth() {
    let jvm = JvmScript { name: "direct", leak: Some((Column::Direct, 10.0)), ..STEADY };
    let folder = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    for turns in [0..8 * 360, 20 * 360..21 * 360] {
        let mut watching = Watching::new(MadeUpMachine::of(&[STEADY, jvm]), how(folder.path(), WhenWeighed::default()));
        told.extend(turned(&mut watching, turns));
        let steady = watching.jvms().into_iter().find(|jvm| jvm.name == "steady").unwrap();
        assert!(steady.growth.bytes_per_hour.is_none() && steady.samples_lost == 0, "{steady:?}");
    }
    assert_eq!(came(&told), ["steady 0", "direct 1", "steady 0", "direct 1"], "{told:?}");
    let [_, steady] = files(folder.path()).try_into().unwrap();
    let past = Past::read(&steady).unwrap();
    let cells: Vec<u64> = past.cells(Tier::TenMinutes).iter().map(|cell| cell.number).collect();
    assert_eq!(cells, (0..48).chain(120..126).collect::<Vec<_>>());
}

#[test]
fn a_history_that_cannot_begin_is_retried_and_losses_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("histories");
    let mut watching = Watching::new(MadeUpMachine::of(&[STEADY]), how(&below, WhenWeighed::default()));
    let mut told = turned(&mut watching, 0..40);
    std::fs::create_dir(&below).unwrap();
    told.extend(turned(&mut watching, 40..100));
    let lost = watching.jvms()[0].samples_lost;
    assert!((40..=70).contains(&lost), "{lost}");
    let failed = failed(&told);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[1].contains(&format!("{lost} samples lost so far")), "{failed:?}");
    assert_eq!(samples(&files(&below)[0]) as u64 + lost, 100);
}

#[test]
fn a_nearby_limit_is_reported_once() {
    let told = |jvm| watched(MadeUpMachine::of(&[jvm]), WhenWeighed::default(), 3 * 360).0;
    assert_eq!((near(&told(FAST)), near(&told(STEADY))), (1, 0));
}

#[test]
fn all_samples_of_fifty_jvms_are_kept() {
    soak(200);
}

#[test]
fn a_failed_machine_reading_changes_nothing_and_is_reported_once() {
    let world = MadeUpMachine { fails: 30..60, ..MadeUpMachine::of(&[STEADY, JvmScript { name: "other", ..STEADY }]) };
    let (events, watching, folder) = watched(world, WhenWeighed::default(), 90);
    assert_eq!(came(&events), ["steady 0", "other 1"], "{events:?}");
    assert!(!events.iter().any(|event| matches!(event.what, Happened::Ended(_) | Happened::Killed(_))), "{events:?}");
    let [failed] = failed(&events)[..] else { panic!("{events:?}") };
    assert!(failed.contains("open files"), "{failed}");
    assert_eq!((watching.finds_failed, watching.turns), (10, 90));
    assert!(watching.jvms().iter().all(|jvm| jvm.samples == 90), "every turn has a sample of each JVM");
    for file in files(folder.path()) {
        assert_eq!(Past::read(&file).unwrap().kept.end, None);
    }
}

#[test]
fn two_thousand_jvms_with_one_name_quickly_get_unique_names() {
    let jvms: Vec<JvmScript> = (0..2000).map(|_| JvmScript { name: "crowd", ..STEADY }).collect();
    let (_, watching, _folder) = watched(MadeUpMachine::of(&jvms), WhenWeighed::default(), 1);
    let names: BTreeSet<&str> = watching.jvms().iter().map(|jvm| jvm.name.as_str()).collect();
    assert_eq!((names.len(), names.contains("crowd"), names.contains("crowd#2000")), (2000, true, true));
}

#[test]
fn an_interrupted_account_is_not_retried_immediately() {
    // A machine on which no account ever completes, for example because it kills that process.
    let folder = tempfile::tempdir().unwrap();
    let mut watching = Watching::new(MadeUpMachine::of(&[FAST]), how(folder.path(), WhenWeighed::the_kill()));
    let mut turn = 0;
    while watching.world.weighed.is_empty() {
        turned(&mut watching, turn..turn + 1);
        watching.world.weighed_now.clear();
        turn += 1;
    }
    let accounts = files(folder.path()).into_iter().filter(|path| path.to_string_lossy().ends_with(".account.json"));
    let [attempt] = accounts.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(std::fs::metadata(&attempt).unwrap().len(), 0, "an empty file precedes the account");
    turned(&mut watching, turn..turn + 3);
    assert_eq!(watching.world.weighed.len(), 1, "an interrupted account is not retried in the next turns");
}
