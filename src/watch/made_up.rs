//! Simulated machines on which JVMs come, grow, and go, over simulated days. Used by tests, and included by
//! `benches/watch.rs`.

use super::world::{DiscoveredJvm, Id, Look, Looked, Opened, There, WeighingOutcome, World};
use super::{Bounds, Column, Histories, How, Kept, KilledBy, Past, Sample, Tier, Watching, WhenWeighed};
use loadline_base::numbers::SplitMix64;
use loadline_jvm::kernel::process::Status;
use loadline_model::record::{Happened, WatchEvent, WatchLimit, WhyWeighed};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

pub(super) const MIB: u64 = 1 << 20;

/// A JVM of constant size.
pub(super) const STEADY: JvmScript = JvmScript { name: "steady", from: 0, until: u64::MAX, leak: None, pid: None };

#[derive(Debug, Clone, Copy)]
pub(super) struct JvmScript {
    pub(super) name: &'static str,
    /// The turns of its life.
    pub(super) from: u64,
    pub(super) until: u64,
    /// The leaking column, with its rate in MiB per hour.
    pub(super) leak: Option<(Column, f64)>,
    /// Its pid; defaults to its index.
    pub(super) pid: Option<u32>,
}

/// A machine with these JVMs; each turn takes ten seconds.
pub(super) struct MadeUpMachine {
    pub(super) jvms: Vec<JvmScript>,
    pub(super) turn: u64,
    pub(super) random: SplitMix64,
    pub(super) limit: u64,
    pub(super) weighed: Vec<(u32, u64)>,
    pub(super) weighed_now: Vec<WeighingOutcome>,
    /// Turns in which the machine is unreadable.
    pub(super) fails: Range<u64>,
    /// The wall-clock time at the first turn, in seconds.
    pub(super) wall_s: u64,
}

impl MadeUpMachine {
    pub(super) fn of(jvms: &[JvmScript]) -> Self {
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

    /// The running JVMs by unique ID.
    fn running(&self) -> impl Iterator<Item = (Id, JvmScript)> {
        let id = |(at, jvm): (usize, &JvmScript)| Id { pid: jvm.pid.unwrap_or(at as u32), start_ticks: jvm.from };
        let all = self.jvms.iter().enumerate().map(move |(at, jvm)| (id((at, jvm)), *jvm));
        all.filter(|(_, jvm)| (jvm.from..jvm.until).contains(&self.turn))
    }

    fn jvm(&self, id: Id) -> Option<JvmScript> {
        self.running().find(|(running, _)| *running == id).map(|(_, jvm)| jvm)
    }
}

impl World for MadeUpMachine {
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
        ids.iter()
            .map(|id| (*id, self.look_at(*id).map_or(Looked::Gone, |look| Looked::Seen(Box::new(look)))))
            .collect()
    }

    fn close(&mut self, _: Id) -> Option<KilledBy> {
        None
    }

    fn forget(&mut self, _: Id) {}

    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String> {
        self.weighed.push((id.pid, self.turn));
        self.weighed_now.push(WeighingOutcome { id, why, into: into.to_owned(), done: Ok(()) });
        Ok(())
    }

    fn weighed(&mut self) -> Vec<WeighingOutcome> {
        std::mem::take(&mut self.weighed_now)
    }

    fn set_aside(&self) -> u64 {
        0
    }

    fn is_blind(&self) -> bool {
        false
    }
}

impl MadeUpMachine {
    fn found(&self, id: Id) -> Option<DiscoveredJvm> {
        let jvm = self.jvm(id)?;
        let started_unix_s = self.wall_s + 10 * jvm.from;
        let (name, started_ticks) = (jvm.name.to_owned(), id.start_ticks);
        let kept = Kept { name, pid: id.pid, started_ticks, started_unix_s, ..Kept::default() };
        Some(DiscoveredJvm { kept, ..DiscoveredJvm::default() })
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
        // This heap is committed at the start and fills gradually.
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
        Some(Look { sample, bounds, limit, charge: None, took_ns: 60_000 })
    }
}

/// Watches every ten seconds, with histories in this directory.
pub(super) fn how(folder: &Path, weighing: WhenWeighed) -> How {
    How { every_ms: 10_000, folder: folder.to_owned(), weighing, histories: Histories::Written }
}

pub(super) fn turned(watching: &mut Watching<MadeUpMachine>, turns: Range<u64>) -> Vec<WatchEvent> {
    let turn = |turn| {
        watching.world.turn = turn;
        watching.turn()
    };
    turns.flat_map(turn).collect()
}

/// Runs fifty JVMs, some of which end and restart, for this many ten-second turns. Returns the number of samples, and
/// the memory after a tenth of the turns and at the end, in KiB.
pub(super) fn soak(turns: u64) -> (u64, [u64; 2]) {
    // One in five lives for a fifth of the time; then another takes its name and pid.
    let short = |number: u32, life: u64| JvmScript {
        name: "short",
        from: life * turns / 4 + u64::from(number),
        until: life * turns / 4 + turns / 5,
        leak: Some((Column::Direct, 1.0)),
        pid: Some(1000 + number),
    };
    let steady = (0..40).map(|number| JvmScript { pid: Some(number), ..STEADY });
    let lives: Vec<JvmScript> =
        steady.chain((0..10).flat_map(|number| (0..4).map(move |life| short(number, life)))).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut watching = Watching::new(MadeUpMachine::of(&lives), how(folder.path(), WhenWeighed::the_kill()));
    let (mut held, mut seen) = ([0; 2], 0);
    for turn in 0..turns {
        let events = turned(&mut watching, turn..turn + 1);
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
        // Each sample is in one ten-minute cell, and no such cell has been overwritten.
        kept += past.cells(Tier::TenMinutes).iter().map(|cell| u64::from(cell.samples)).sum::<u64>();
    }
    assert_eq!(kept, seen, "each sample that was taken is in the histories");
    (seen, held)
}
