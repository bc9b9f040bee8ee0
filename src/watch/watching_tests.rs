//! Watching made-up machines: JVMs come, grow, are weighed and go, over days that pass in an instant.

use super::bounds::Bounds;
use super::column::Column;
use super::history::{Past, Tier};
use super::kept::{Kept, KilledBy};
use super::sample::Sample;
use super::watching::{Histories, How, Watching};
use super::when_weighed::WhenWeighed;
use super::world::{Found, Id, Look, Looked, Opened, There, Weighed, World};
use crate::kernel::process::Status;
use crate::numbers::SplitMix64;
use crate::record::{GrowthWord, Happened, WatchEvent, WatchLimit, WhyWeighed};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const MIB: u64 = 1 << 20;

/// The behaviour of a made-up JVM.
#[derive(Debug, Clone, Copy)]
struct Jvm {
    name: &'static str,
    /// Turns of its life.
    from: u64,
    until: u64,
    /// The column that leaks, and its rate in MiB an hour.
    leak: Option<(Column, f64)>,
    /// Its pid, where that is not its place in the list.
    pid: Option<u32>,
}

/// A machine of them; its time passes with its turns, ten seconds each.
struct MadeUp {
    jvms: Vec<Jvm>,
    turn: u64,
    random: SplitMix64,
    limit: u64,
    weighed: Vec<(u32, u64)>,
    weighed_now: Vec<Weighed>,
    /// Turns at which the machine cannot be looked at.
    fails: std::ops::Range<u64>,
    /// The time of the wall clock at the first turn, in seconds.
    wall_s: u64,
}

impl MadeUp {
    fn of(jvms: &[Jvm]) -> Self {
        let (jvms, random) = (jvms.to_vec(), SplitMix64::new(3));
        Self {
            jvms,
            turn: 0,
            random,
            limit: 1024 * MIB,
            weighed: Vec::new(),
            weighed_now: Vec::new(),
            fails: 0..0,
            wall_s: 1_000_000,
        }
    }

    /// Those that run, by what names them for good.
    fn running(&self) -> impl Iterator<Item = (Id, Jvm)> {
        let id = |(at, jvm): (usize, &Jvm)| Id { pid: jvm.pid.unwrap_or(at as u32), start_ticks: jvm.from };
        let all = self.jvms.iter().enumerate().map(move |(at, jvm)| (id((at, jvm)), *jvm));
        all.filter(|(_, jvm)| (jvm.from..jvm.until).contains(&self.turn))
    }

    fn jvm(&self, id: Id) -> Option<Jvm> {
        self.running().find(|(running, _)| *running == id).map(|(_, jvm)| jvm)
    }
}

impl World for MadeUp {
    fn there(&mut self) -> std::io::Result<There> {
        if self.fails.contains(&self.turn) {
            return Err(std::io::Error::other("Too many open files"));
        }
        Ok(There { ids: self.running().map(|(id, _)| id).collect(), ..There::default() })
    }

    fn open(&mut self, ids: &BTreeSet<Id>) -> Vec<(Id, Opened)> {
        let opened = |id: &Id| self.found(*id).map_or(Opened::Not, |found| Opened::Found(Box::new(found)));
        ids.iter().map(|id| (*id, opened(id))).collect()
    }

    fn look(&mut self, ids: &[Id]) -> Vec<(Id, Looked)> {
        ids.iter().map(|id| (*id, self.look_at(*id).map_or(Looked::Gone, Looked::Seen))).collect()
    }

    fn close(&mut self, _: Id) -> Option<KilledBy> {
        None
    }

    fn forget(&mut self, _: Id) {}

    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String> {
        self.weighed.push((id.pid, self.turn));
        self.weighed_now.push(Weighed { id, why, into: into.to_owned(), done: Ok(()) });
        Ok(())
    }

    fn weighed(&mut self) -> Vec<Weighed> {
        std::mem::take(&mut self.weighed_now)
    }

    fn set_aside(&self) -> u64 {
        0
    }

    fn is_blind(&self) -> bool {
        false
    }
}

impl MadeUp {
    fn found(&self, id: Id) -> Option<Found> {
        let jvm = self.jvm(id)?;
        let started_unix_s = self.wall_s + 10 * jvm.from;
        let (name, started_ticks) = (jvm.name.to_owned(), id.start_ticks);
        let kept = Kept { name, pid: id.pid, started_ticks, started_unix_s, ..Kept::default() };
        Some(Found { kept, ..Found::default() })
    }

    fn look_at(&mut self, id: Id) -> Option<Look> {
        let jvm = self.jvm(id)?;
        let turns = self.turn - jvm.from;
        let hours = turns as f64 / 360.0;
        let leaked = |column| match jvm.leak {
            Some((leaks, slope)) if leaks == column => (slope * hours * MIB as f64) as u64,
            _ => 0,
        };
        let mut sample = Sample::at(turns * 10_000);
        let noise = self.random.below(2 * MIB);
        let parts = [Column::HeapFloor, Column::MetaspaceCommitted, Column::Direct, Column::HeapUsed];
        let all: u64 = parts.into_iter().map(leaked).sum();
        sample.set(Column::HeapFloor, 100 * MIB + noise / 4 + leaked(Column::HeapFloor));
        // This heap was promised at the start and is used bit by bit.
        let fills = jvm.leak.is_some_and(|(leaks, _)| leaks == Column::HeapUsed);
        let heap = if fills { 700 * MIB } else { 512 * MIB };
        sample.set(Column::HeapUsed, 290 * MIB);
        sample.set(Column::HeapCommitted, if fills { heap } else { 300 * MIB });
        sample.set(Column::MetaspaceCommitted, 60 * MIB + leaked(Column::MetaspaceCommitted));
        sample.set(Column::Direct, 20 * MIB + leaked(Column::Direct));
        sample.set(Column::OldCollections, turns / 180);
        sample.set(Column::Threads, 40);
        sample.set(Column::RssAnon, 420 * MIB + noise + all);
        let bounds = Bounds { memory: self.limit, heap: Some(heap), ..Bounds::default() };
        let limit = WatchLimit { bytes: self.limit, cgroup: "/shop".to_owned() };
        Some(Look { sample, bounds, limit, took_ns: 60_000 })
    }
}

/// Returns the events of so many turns, with the hour of each.
fn watched(
    world: MadeUp,
    weighing: WhenWeighed,
    turns: u64,
) -> (Vec<(u64, WatchEvent)>, Watching<MadeUp>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let how = How { every_ms: 10_000, folder: folder.path().to_owned(), weighing, histories: Histories::Written };
    let mut watching = Watching::new(world, how);
    let mut told = Vec::new();
    for turn in 0..turns {
        watching.world.turn = turn;
        told.extend(watching.turn().into_iter().map(|event| (turn / 360, event)));
    }
    (told, watching, folder)
}

const STEADY: Jvm = Jvm { name: "steady", from: 0, until: u64::MAX, leak: None, pid: None };

#[test]
fn a_leak_is_named_with_its_owner_and_one_that_is_steady_is_not() {
    let leaking = |name, column| Jvm { name, leak: Some((column, 10.0)), ..STEADY };
    let jvms = [STEADY, leaking("heap", Column::HeapFloor), leaking("direct", Column::Direct)];
    // Two days: 480 of the 600 MiB that are left are gone, and of the heap 480 of 412.
    let (told, watching, _folder) = watched(MadeUp::of(&jvms), WhenWeighed::default(), 48 * 360);
    let grown: BTreeMap<&str, u64> = told
        .iter()
        .filter_map(|(hour, event)| match event {
            WatchEvent { name, what: Happened::Verdict(growth) } if growth.verdict == GrowthWord::Grows => {
                Some((name.as_str(), *hour))
            }
            _ => None,
        })
        .collect();
    assert_eq!(grown.keys().copied().collect::<Vec<_>>(), ["direct", "heap"], "{told:?}");
    let risen = told.iter().find_map(|(hour, event)| {
        matches!(event, WatchEvent { name, what: Happened::Rises(_) } if name == "direct").then_some(*hour)
    });
    assert!(risen.is_some_and(|hour| hour < grown["direct"]), "a hint comes before the alarm: {risen:?}, {grown:?}");
    for jvm in watching.jvms() {
        let grows = jvm.name != "steady";
        let word = if grows { GrowthWord::Grows } else { GrowthWord::Steady };
        assert_eq!(jvm.growth.verdict, word, "{jvm:?}");
        assert_eq!(jvm.growth.owner.as_deref(), grows.then_some(jvm.name.as_str()));
        if grows {
            let slope = jvm.growth.bytes_per_hour.unwrap() / MIB as f64;
            assert!((9.0..11.0).contains(&slope), "{slope} MiB/h of 10");
        }
    }
}

#[test]
fn a_heap_that_is_used_bit_by_bit_is_no_leak_where_all_of_it_fits() {
    let fills = Jvm { name: "fills", leak: Some((Column::HeapUsed, 5.0)), ..STEADY };
    for (limit, words) in [(1024, [GrowthWord::Warming; 2]), (800, [GrowthWord::Warming, GrowthWord::Grows])] {
        let world = MadeUp { limit: limit * MIB, ..MadeUp::of(&[fills]) };
        let (told, watching, _folder) = watched(world, WhenWeighed::default(), 66 * 360);
        let growth = &watching.jvms()[0].growth;
        assert!(words.contains(&growth.verdict), "{growth:?}");
        let alarms = told.iter().filter(
            |(_, event)| matches!(&event.what, Happened::Verdict(growth) if growth.verdict == GrowthWord::Grows),
        );
        assert_eq!(alarms.count() > 0, limit == 800, "{told:?}");
        let date = growth.limit_in_s.is_some();
        assert_eq!(date, limit == 800, "what ends by itself has no date: {growth:?}");
    }
}

#[test]
fn jvms_come_and_go_and_keep_their_names() {
    let life = |from, until| Jvm { name: "shop", from, until, ..STEADY };
    let (told, watching, folder) =
        watched(MadeUp::of(&[life(0, 30), life(12, 60), life(33, u64::MAX)]), WhenWeighed::default(), 90);
    let names: Vec<String> = told
        .iter()
        .filter_map(|(_, WatchEvent { name, what })| match what {
            Happened::Appeared(pid) => Some(format!("+{name} {pid}")),
            Happened::Ended(pid) => Some(format!("-{name} {pid}")),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["+shop 0", "+shop#2 1", "-shop 0", "+shop 2", "-shop#2 1"]);
    assert_eq!(watching.jvms().len(), 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "what ended is kept");
}

#[test]
fn it_is_weighed_before_it_is_killed_and_not_too_often() {
    let fast = Jvm { name: "fast", leak: Some((Column::Direct, 200.0)), ..STEADY };
    let (told, watching, _folder) = watched(MadeUp::of(&[STEADY, fast]), WhenWeighed::the_kill(), 3 * 360);
    let weighed: Vec<WhyWeighed> = told
        .iter()
        .filter_map(|(_, event)| match event {
            WatchEvent { name, what: Happened::Weighed(why, _) } => {
                assert_eq!(name, "fast");
                Some(*why)
            }
            _ => None,
        })
        .collect();
    assert_eq!(weighed, [WhyWeighed::AtPercent(66), WhyWeighed::AtPercent(75), WhyWeighed::AtPercent(90)]);
    assert_eq!(watching.world.weighed.len(), 3);
    let near = told.iter().filter(|(_, event)| matches!(event.what, Happened::NearLimit { .. })).count();
    assert_eq!(near, 1, "{told:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told_once_and_watching_goes_on() {
    let how = How {
        every_ms: 10_000,
        folder: "/proc/nowhere".into(),
        weighing: WhenWeighed::default(),
        histories: Histories::Written,
    };
    let mut watching = Watching::new(MadeUp::of(&[STEADY]), how);
    let told: Vec<WatchEvent> = (0..50)
        .flat_map(|turn| {
            watching.world.turn = turn;
            watching.turn()
        })
        .collect();
    assert_eq!(told.iter().filter(|event| matches!(event.what, Happened::Failed(_))).count(), 1, "{told:?}");
    assert!(watching.jvms()[0].now.rss_anon_bytes.is_some());
}

/// The names under which JVMs came, with their pids.
fn came(events: &[WatchEvent]) -> Vec<String> {
    let name = |WatchEvent { name, what }: &WatchEvent| match what {
        Happened::Appeared(pid) => Some(format!("{name} {pid}")),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

#[test]
fn a_clock_that_is_set_parts_no_history_and_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let how = How {
        every_ms: 10_000,
        folder: folder.path().to_owned(),
        weighing: WhenWeighed::default(),
        histories: Histories::Written,
    };
    // The pid of the second is lower, so that it is found first by who begins to watch now.
    let shop = |pid, from| Jvm { name: "shop", from, pid: Some(pid), ..STEADY };
    let mut turn = 0;
    for wall_s in [1_000_000, 1_010_800, 989_200, 1_000_001] {
        let mut watching = Watching::new(MadeUp::of(&[shop(9, 0), shop(4, 12)]), how.clone());
        watching.world.wall_s = wall_s;
        let mut told = Vec::new();
        for _ in 0..30 {
            watching.world.turn = turn;
            told.extend(watching.turn());
            turn += 1;
        }
        let mut names = came(&told);
        names.sort();
        assert_eq!(names, ["shop 9", "shop#2 4"], "at {wall_s}: {told:?}");
        assert!(!told.iter().any(|event| matches!(event.what, Happened::Failed(_))), "{told:?}");
    }
    let mut files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    let samples = files.iter().map(|file| Past::read(file).unwrap().cells(Tier::Samples).len());
    assert_eq!(samples.collect::<Vec<_>>(), [120, 108], "none was lost");
}

#[test]
fn digits_without_a_hash_are_no_number_of_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let how = How {
        every_ms: 10_000,
        folder: folder.path().to_owned(),
        weighing: WhenWeighed::default(),
        histories: Histories::Written,
    };
    // The same process is called otherwise the second time: its unit was renamed, say.
    for (name, own) in [("shop2", "shop2"), ("shop", "shop"), ("shop2", "shop2")] {
        let mut watching = Watching::new(MadeUp::of(&[Jvm { name, ..STEADY }]), how.clone());
        assert_eq!(came(&watching.turn()), [format!("{own} 0")]);
    }
}

#[test]
fn a_history_of_a_later_version_is_told_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steady.1000000.0.history");
    std::fs::write(&file, b"loadline.history/2\n\0 and what it knows").unwrap();
    let how = How {
        every_ms: 10_000,
        folder: folder.path().to_owned(),
        weighing: WhenWeighed::default(),
        histories: Histories::Written,
    };
    let mut watching = Watching::new(MadeUp::of(&[STEADY]), how);
    let told = watching.turn();
    let failed = told.iter().find_map(|event| match &event.what {
        Happened::Failed(why) => Some(why.clone()),
        _ => None,
    });
    assert!(failed.is_some_and(|why| why.contains("steady.1000000.0.history.aside-1")), "{told:?}");
    assert_eq!(Past::read(&file).unwrap().cells(Tier::Samples).len(), 1);
    let aside = std::fs::read(folder.path().join("steady.1000000.0.history.aside-1")).unwrap();
    assert!(aside.ends_with(b"what it knows"));
}

#[test]
fn a_pid_that_is_used_again_is_another_jvm() {
    let life = |name, from, until| Jvm { name, from, until, pid: Some(7), ..STEADY };
    // The second begins within the same turn as the first ends: nothing but its start tells it apart.
    let (told, watching, folder) =
        watched(MadeUp::of(&[life("shop", 0, 31), life("bank", 31, u64::MAX)]), WhenWeighed::default(), 60);
    let told: Vec<WatchEvent> = told.into_iter().map(|(_, event)| event).collect();
    assert_eq!(came(&told), ["shop 7", "bank 7"]);
    assert!(told.iter().any(|event| event.name == "shop" && event.what == Happened::Ended(7)), "{told:?}");
    assert_eq!(watching.jvms().iter().map(|jvm| jvm.name.as_str()).collect::<Vec<_>>(), ["bank"]);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let past = Past::read(&file.unwrap().path()).unwrap();
        let samples = past.cells(Tier::Samples);
        let (name, count) = (past.kept.name.as_str(), samples.len());
        assert!(matches!((name, count), ("shop", 31) | ("bank", 27..=29)), "{name}: {count}");
    }
}

/// A made-up machine that was suspended: no JVM became older, and whoever looks again sees by how much the machine did.
#[test]
fn a_gap_of_hours_is_a_gap_and_no_growth() {
    let jvm = Jvm { name: "direct", leak: Some((Column::Direct, 10.0)), ..STEADY };
    let folder = tempfile::tempdir().unwrap();
    let how = How {
        every_ms: 10_000,
        folder: folder.path().to_owned(),
        weighing: WhenWeighed::default(),
        histories: Histories::Written,
    };
    let mut told = Vec::new();
    for turns in [0..8 * 360, 20 * 360..21 * 360] {
        let mut watching = Watching::new(MadeUp::of(&[STEADY, jvm]), how.clone());
        for turn in turns {
            watching.world.turn = turn;
            told.extend(watching.turn());
        }
        let steady = watching.jvms().into_iter().find(|jvm| jvm.name == "steady").unwrap();
        assert!(steady.growth.bytes_per_hour.is_none() && steady.samples_lost == 0, "{steady:?}");
    }
    assert_eq!(came(&told), ["steady 0", "direct 1", "steady 0", "direct 1"], "{told:?}");
    let file = std::fs::read_dir(folder.path())
        .unwrap()
        .find(|file| file.as_ref().is_ok_and(|file| file.file_name().to_string_lossy().starts_with("steady")));
    let past = Past::read(&file.unwrap().unwrap().path()).unwrap();
    let cells: Vec<u64> = past.cells(Tier::TenMinutes).iter().map(|cell| cell.number).collect();
    assert_eq!(cells, (0..48).chain(120..126).collect::<Vec<_>>());
}

#[test]
fn a_history_that_cannot_be_begun_is_begun_later_and_what_was_lost_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("histories");
    let how = How {
        every_ms: 10_000,
        folder: below.clone(),
        weighing: WhenWeighed::default(),
        histories: Histories::Written,
    };
    let mut watching = Watching::new(MadeUp::of(&[STEADY]), how);
    let mut told = Vec::new();
    for turn in 0..100 {
        if turn == 40 {
            std::fs::create_dir(&below).unwrap();
        }
        watching.world.turn = turn;
        told.extend(watching.turn());
    }
    let jvm = watching.jvms()[0].clone();
    assert!((40..=70).contains(&jvm.samples_lost), "{jvm:?}");
    let failed: Vec<&String> = told
        .iter()
        .filter_map(|event| match &event.what {
            Happened::Failed(why) => Some(why),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[1].contains(&format!("{} samples were lost", jvm.samples_lost)), "{failed:?}");
    let file = std::fs::read_dir(&below).unwrap().next().unwrap().unwrap();
    let kept = Past::read(&file.path()).unwrap().cells(Tier::Samples).len() as u64;
    assert_eq!(kept + jvm.samples_lost, 100);
}

#[test]
fn a_limit_that_is_near_is_told_once() {
    let fast = Jvm { name: "fast", leak: Some((Column::Direct, 200.0)), ..STEADY };
    let near = |jvm| {
        let (told, ..) = watched(MadeUp::of(&[jvm]), WhenWeighed::default(), 3 * 360);
        told.iter().filter(|(_, event)| matches!(event.what, Happened::NearLimit { .. })).count()
    };
    assert_eq!((near(fast), near(STEADY)), (1, 0));
}

/// Fifty JVMs, some of which end and are started again, so many turns of ten seconds. Returns how many samples were
/// taken, and what was held when a tenth was done and at the end, in KiB.
fn soak(turns: u64) -> (u64, [u64; 2]) {
    // One in five lives for a fifth of the time, and another takes its name and its pid.
    let short = |number: u32, life: u64| Jvm {
        name: "short",
        from: life * turns / 4 + u64::from(number),
        until: life * turns / 4 + turns / 5,
        leak: Some((Column::Direct, 1.0)),
        pid: Some(1000 + number),
    };
    let steady = (0..40).map(|number| Jvm { pid: Some(number), ..STEADY });
    let lives: Vec<Jvm> =
        steady.chain((0..10).flat_map(|number| (0..4).map(move |life| short(number, life)))).collect();
    let folder = tempfile::tempdir().unwrap();
    let (every_ms, weighing) = (10_000, WhenWeighed::the_kill());
    let how = How { every_ms, folder: folder.path().to_owned(), weighing, histories: Histories::Written };
    let mut watching = Watching::new(MadeUp::of(&lives), how);
    let (mut held, mut seen) = ([0; 2], 0);
    for turn in 0..turns {
        watching.world.turn = turn;
        let events = watching.turn();
        assert!(!events.iter().any(|event| matches!(event.what, Happened::Failed(_))), "{events:?}");
        assert!(watching.jvms().iter().all(|jvm| jvm.samples_lost == 0));
        seen += watching.jvms().len() as u64;
        if turn == turns / 10 {
            held[0] = Status::own().unwrap().rss.0 >> 10;
        }
    }
    held[1] = Status::own().unwrap().rss.0 >> 10;
    let mut kept = 0;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        assert!(path.metadata().unwrap().len() <= 2 << 20, "{}", path.display());
        let past = Past::read(&path).unwrap();
        assert_eq!(past.spoilt, 0);
        // Each sample is in one cell of ten minutes, all of which are still there.
        kept += past.cells(Tier::TenMinutes).iter().map(|cell| u64::from(cell.samples)).sum::<u64>();
    }
    assert_eq!(kept, seen, "each sample that was taken is in the histories");
    (seen, held)
}

#[test]
fn no_sample_of_fifty_jvms_is_lost() {
    soak(200);
}

/// A million samples: the whole of the soak, for `bench/watch.sh`. Alone in its process, since what that holds counts.
#[test]
#[ignore = "some minutes without optimisation, and alone in its process; bench/watch.sh runs it"]
fn a_million_samples_of_fifty_jvms_leave_memory_flat() {
    let began = crate::clock::Clock::start();
    let (samples, [early, late]) = soak(22_000);
    let seconds = began.now().as_secs_f64();
    println!(
        "| soak: {samples} samples of 50 JVMs in {seconds:.1} s, RSS {early} KiB after a tenth, {late} at the end |"
    );
    assert!(samples >= 1_000_000, "{samples}");
    assert!(late <= early + 4096, "{early} KiB, and {late} KiB at the end");
}

#[test]
fn a_failed_look_at_the_machine_changes_nothing_and_is_told_once() {
    let world = MadeUp { fails: 30..60, ..MadeUp::of(&[STEADY, Jvm { name: "other", ..STEADY }]) };
    let (told, watching, folder) = watched(world, WhenWeighed::default(), 90);
    let events: Vec<WatchEvent> = told.into_iter().map(|(_, event)| event).collect();
    assert_eq!(came(&events), ["steady 0", "other 1"], "{events:?}");
    assert!(!events.iter().any(|event| matches!(event.what, Happened::Ended(_) | Happened::Killed(_))), "{events:?}");
    let failed =
        events.iter().filter(|event| matches!(&event.what, Happened::Failed(why) if why.contains("open files")));
    assert_eq!((failed.count(), watching.finds_failed(), watching.turns()), (1, 10, 90));
    assert!(watching.jvms().iter().all(|jvm| jvm.samples == 90), "they were looked at all the time");
    for file in std::fs::read_dir(folder.path()).unwrap() {
        assert_eq!(Past::read(&file.unwrap().path()).unwrap().kept.end, None);
    }
}

#[test]
fn two_thousand_of_one_name_have_names_of_their_own_within_seconds() {
    let jvms: Vec<Jvm> = (0..2000).map(|_| Jvm { name: "crowd", ..STEADY }).collect();
    let (_, watching, _folder) = watched(MadeUp::of(&jvms), WhenWeighed::default(), 1);
    let names: BTreeSet<&str> = watching.jvms().iter().map(|jvm| jvm.name.as_str()).collect();
    assert_eq!((names.len(), names.contains("crowd"), names.contains("crowd#2000")), (2000, true, true));
}

#[test]
fn a_weighing_that_was_cut_off_is_not_begun_again_at_once() {
    // A machine on which nothing is ever weighed to its end, as where that kills who weighs.
    let folder = tempfile::tempdir().unwrap();
    let fast = Jvm { name: "fast", leak: Some((Column::Direct, 200.0)), ..STEADY };
    let how = How {
        every_ms: 10_000,
        folder: folder.path().to_owned(),
        weighing: WhenWeighed::the_kill(),
        histories: Histories::Written,
    };
    let mut watching = Watching::new(MadeUp::of(&[fast]), how);
    let mut turn = 0;
    while watching.world.weighed.is_empty() {
        watching.world.turn = turn;
        watching.turn();
        watching.world.weighed_now.clear();
        turn += 1;
    }
    let accounts = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.to_string_lossy().ends_with(".account.json")).collect::<Vec<_>>()
    };
    let [attempt] = accounts().try_into().unwrap();
    assert_eq!(std::fs::metadata(&attempt).unwrap().len(), 0, "it is there before the weighing begins");
    for _ in 0..3 {
        watching.world.turn = turn;
        watching.turn();
        turn += 1;
    }
    assert_eq!(watching.world.weighed.len(), 1, "it is not begun twice");
}
