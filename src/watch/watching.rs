//! Watches JVMs as they come and go: samples, records, and periodically judges each one. The JVMs are in a [`World`],
//! so tests can run years of fifty JVMs in seconds.

use super::account::{self, AccountFile, accounts_beside, accounts_of, file_name, was_asked};
use super::bounds::Bounds;
use super::course::course;
use super::history::{Aside, History, Past, SAMPLES_OF_CELL};
use super::kept::{End, Kept};
use super::lane::Lane;
use super::lives;
use super::name::without_number;
use super::shown::{by_counters, shown};
use super::verdicts::{PACE_CELLS, Precedents, Verdicts, is_near, judge, near_limit};
use super::when_weighed::{self, Attaching, WhenWeighed};
use super::world::{DiscoveredJvm, Id, Look, Looked, Opened, There, WeighingOutcome, World};
use crate::growth::{Ladder, STEP};
use crate::record::{GrowthWord, Happened, WatchCourse, WatchEvent, WatchedJvm, WhyWeighed};
use crate::units::several;
use loadline_base::order::Order as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::thread::Builder;

/// How to watch.
#[derive(Debug, Clone, PartialEq)]
pub struct How {
    /// The sampling interval in milliseconds.
    pub every_ms: u64,
    /// The directory of histories and accounts.
    pub folder: PathBuf,
    /// When to take accounts.
    pub weighing: WhenWeighed,
    /// Whether to keep samples.
    pub histories: Histories,
}

/// How a watch uses histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Histories {
    /// Writes its own.
    Written,
    /// Judges another watch's.
    Read,
}

type Settling = Lane<(Id, Arc<File>), (Id, io::Error)>;

/// A running watch.
pub struct Watching<W> {
    /// The watched world.
    pub world: W,
    how: How,
    ladder: Ladder,
    jvms: BTreeMap<Id, One>,
    names: BTreeSet<String>,
    /// JVMs that were found but are not open yet.
    newcomers: BTreeSet<Id>,
    /// New JVMs already reported as set aside.
    told: BTreeSet<Id>,
    /// `None` if nothing is kept, or the thread failed to start: then the kernel decides when to sync histories.
    settling: Option<Settling>,
    /// The number of unreadable processes.
    pub hidden: u64,
    /// JVMs beyond the maximum that can be watched.
    pub left_out: u64,
    /// Failed scans for JVMs, which changed nothing.
    pub finds_failed: u64,
    why_failed: Option<String>,
    is_behind: bool,
    /// Completed turns.
    pub turns: u64,
    /// Files created: histories and accounts.
    pub begun: u64,
    /// Attaching to an unresponsive JVM takes seconds, so only one JVM is attached to per turn, and the others are
    /// still sampled.
    asked_this_turn: bool,
}

struct One {
    path: PathBuf,
    kept: Kept,
    history: Option<History>,
    /// Samples without a history, and those whose loss was reported.
    unkept: u64,
    lost_told: u64,
    shown: WatchedJvm,
    bounds: Bounds,
    /// Precedents from its previous life.
    precedents: Precedents,
    weighed: when_weighed::WeighingHistory,
    /// Its age when the current account began.
    weighing: Option<u64>,
    /// Messages that were already reported.
    told: BTreeSet<String>,
    /// The ten-minute cell of the last verdict.
    judged: Option<u64>,
    rose: bool,
    asked: Attaching,
}

/// The maximum number of turns between scans for new JVMs.
const FIND_EVERY: u64 = 3;
/// The maximum number of histories waiting to be synced; others are offered again next turn.
const SETTLING_MAX: usize = 64;
const SETTLING_STACK_BYTES: usize = 64 << 10;
/// Samples between attempts to open a history.
const TRY_AGAIN_EVERY: u64 = 30;

impl<W: World> Watching<W> {
    /// A watch of this world.
    pub fn new(world: W, how: How) -> Self {
        let settling = (how.histories == Histories::Written).then(|| settling().ok()).flatten();
        Self {
            world,
            how,
            ladder: Ladder::default(),
            jvms: BTreeMap::new(),
            names: BTreeSet::new(),
            newcomers: BTreeSet::new(),
            told: BTreeSet::new(),
            settling,
            hidden: 0,
            left_out: 0,
            finds_failed: 0,
            why_failed: None,
            is_behind: false,
            turns: 0,
            begun: 0,
            asked_this_turn: false,
        }
    }

    /// The current state of all JVMs, by name.
    pub fn jvms(&self) -> Vec<&WatchedJvm> {
        let mut jvms: Vec<&WatchedJvm> = self.jvms.values().map(|one| &one.shown).collect();
        jvms.order_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
        jvms
    }

    /// Whether no JVM is watched or being opened.
    pub fn is_empty(&self) -> bool {
        self.jvms.is_empty() && self.newcomers.is_empty()
    }

    /// The histories being written.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        self.jvms.values().map(|one| one.path.clone()).collect()
    }

    /// Reads all JVMs once.
    pub fn turn(&mut self) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        if self.turns.is_multiple_of(FIND_EVERY) || self.is_behind {
            self.find(&mut events);
        }
        self.asked_this_turn = false;
        let ids: Vec<Id> = self.jvms.keys().copied().collect();
        self.look(&ids, &mut events);
        if !self.newcomers.is_empty() {
            let came = self.come(&mut events);
            self.look(&came, &mut events);
        }
        for weighed in self.world.weighed() {
            self.begun += 1;
            if let Some(one) = self.jvms.get_mut(&weighed.id) {
                one.weighed(weighed, &mut events);
            }
        }
        self.settle(&mut events);
        self.turns += 1;
        events
    }

    fn look(&mut self, ids: &[Id], events: &mut Vec<WatchEvent>) {
        for (id, looked) in self.world.look(ids) {
            match looked {
                Looked::Seen(look) => self.take(id, &look, events),
                Looked::Gone => self.end(id, events),
                Looked::Unseen(why) => {
                    if let Some(one) = self.jvms.get_mut(&id) {
                        // A machine that stalls briefly makes many JVMs late once.
                        let is_again = one.shown.set_aside.replace(why.clone()).is_some();
                        if is_again {
                            one.fail(why, events);
                        }
                    }
                }
            }
        }
    }

    fn find(&mut self, events: &mut Vec<WatchEvent>) {
        let There { ids, hidden, left_out, is_behind } = match self.world.there() {
            Ok(there) => there,
            // Assumes that no JVM has come or gone.
            Err(cause) => {
                self.finds_failed += 1;
                let why = format!("cannot list the running JVMs: {cause}");
                if self.why_failed.replace(why.clone()).as_ref() != Some(&why) {
                    events.push(WatchEvent { name: "/proc".to_owned(), what: Happened::Failed(why) });
                }
                return;
            }
        };
        self.why_failed = None;
        self.is_behind = is_behind;
        (self.hidden, self.left_out) = (hidden, left_out.len() as u64);
        let known: BTreeSet<Id> = self.jvms.keys().copied().collect();
        // A restarted JVM takes the name of the one that ended.
        for id in known.difference(&ids) {
            if left_out.contains(id) { self.forget(*id) } else { self.end(*id, events) }
        }
        self.newcomers = ids.difference(&known).copied().collect();
        self.told.retain(|id| self.newcomers.contains(id));
    }

    /// Opens JVMs that were found; returns the ones now watched.
    fn come(&mut self, events: &mut Vec<WatchEvent>) -> Vec<Id> {
        let mut found = Vec::new();
        for (id, opened) in self.world.open(&self.newcomers) {
            match opened {
                Opened::Found(mut one) => {
                    one.kept.every_ms = self.how.every_ms;
                    found.push((id, *one));
                }
                Opened::Not => {}
                Opened::Later => continue,
                Opened::Aside(why) => {
                    if self.told.insert(id) {
                        events.push(WatchEvent { name: format!("pid {}", id.pid), what: Happened::Failed(why) });
                    }
                    continue;
                }
            }
            self.newcomers.remove(&id);
        }
        let own = lives::own(&self.how.folder, &found.iter().map(|(_, found)| &found.kept).collect::<Vec<_>>());
        let mut came: Vec<_> = own.into_iter().zip(found).collect();
        // JVMs that had a name before this watch keep it; the others get the remaining names.
        came.order_by_key(|(own, _)| own.is_none());
        let came: Vec<_> = came.into_iter().map(|(own, (id, found))| (id, self.named(own, found))).collect();
        let kept: Vec<&Kept> = came.iter().map(|(_, (_, found))| &found.kept).collect();
        let before = lives::before(&self.how.folder, &kept, Precedents::of);
        let accounts =
            accounts_of(&self.how.folder, &came.iter().map(|(_, (path, _))| path.as_path()).collect::<Vec<_>>());
        let mut ids = Vec::new();
        for (((id, (path, found)), before), accounts) in came.into_iter().zip(before).zip(accounts) {
            let name = found.kept.name.clone();
            let one = One::new(found, path, (before.unwrap_or_default(), accounts), &self.how, events);
            events.push(WatchEvent { name, what: Happened::Appeared(id.pid) });
            self.jvms.insert(id, one);
            self.begun += 1;
            ids.push(id);
        }
        ids
    }

    /// A new JVM with its name and history path, taken from its existing history `own`, if any.
    fn named(&mut self, own: Option<(PathBuf, Kept)>, mut found: DiscoveredJvm) -> (PathBuf, DiscoveredJvm) {
        let had = own.as_ref().map(|(_, kept)| &kept.name).filter(|name| is_numbered(name, &found.kept.name));
        let had = had.filter(|name| !self.names.contains(*name)).cloned();
        let name = had.unwrap_or_else(|| self.own_name(&found.kept.name));
        self.names.insert(name.clone());
        found.kept.name = name;
        let path = match own {
            // The clock may have been set since; all files of a life use one start.
            Some((path, there)) => {
                found.kept.started_unix_s = there.started_unix_s;
                path
            }
            None => self.how.folder.join(found.kept.file_name()),
        };
        (path, found)
    }

    /// The name, numbered if another running JVM has it.
    fn own_name(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !self.names.contains(name)).unwrap_or_else(|| name.to_owned())
    }

    /// Stops watching a JVM that continues to run, so its history has no end.
    fn forget(&mut self, id: Id) {
        if let Some(one) = self.jvms.remove(&id) {
            self.names.remove(&one.shown.name);
        }
        self.world.forget(id);
    }

    fn end(&mut self, id: Id, events: &mut Vec<WatchEvent>) {
        let Some(mut one) = self.jvms.remove(&id) else { return };
        self.names.remove(&one.shown.name);
        let killed = self.world.close(id);
        let was_killed = killed.is_some();
        let end = End { age_ms: (one.shown.age_s * 1e3) as u64, killed, charge: one.shown.charge.take() };
        if let Some(Err(why)) = one.history.as_mut().map(|history| history.end(end)) {
            one.fail(format!("its history: {why}"), events);
        }
        if let Some((settling, file)) = self.settling.as_ref().zip(one.history.as_ref().and_then(History::due)) {
            // If the queue is full, the kernel syncs it eventually.
            let _ = settling.offer((id, Arc::clone(file)));
        }
        let what = if was_killed { Happened::Killed(id.pid) } else { Happened::Ended(id.pid) };
        events.push(WatchEvent { name: one.shown.name, what });
    }

    fn take(&mut self, id: Id, look: &Look, events: &mut Vec<WatchEvent>) {
        let Some(one) = self.jvms.get_mut(&id) else { return };
        one.see(look);
        if self.how.histories == Histories::Written {
            one.keep(look, events);
        }
        if one.is_due(self.how.every_ms, look) {
            one.judge(&self.ladder, events);
        } else if !one.shown.growth.near_limit && is_near(&look.sample, &look.bounds) {
            one.judge_near(events);
        }
        if self.how.histories == Histories::Read || one.weighing.is_some() {
            return;
        }
        let due = if one.asked == Attaching::Once && !std::mem::replace(&mut self.asked_this_turn, true) {
            one.asked = Attaching::Never;
            let path = file_name(&one.path, look.sample.age_ms, &WhyWeighed::FirstSight);
            Some((WhyWeighed::FirstSight, path))
        } else {
            let due = one.weighed.due(&self.how.weighing, look, &one.shown.growth);
            due.map(|due| (due, file_name(&one.path, look.sample.age_ms, &due)))
        };
        let Some((why, into)) = due else { return };
        one.weighing = Some(look.sample.age_ms);
        // If taking this account kills the watch, the next watch must not retry immediately.
        attempted(&into);
        if let Err(cause) = self.world.weigh(id, why, &into) {
            one.weighed(WeighingOutcome { id, why, into, done: Err(cause) }, events);
        }
    }

    /// The parts over time of the JVM with this pid, in up to `stretches` spans; `None` if there is no such JVM, or it
    /// has no records.
    pub fn course(&self, pid: u32, stretches: usize) -> Option<WatchCourse> {
        let one = self.jvms.values().find(|one| one.shown.pid == pid)?;
        one.past().ok().map(|past| course(&past, &one.bounds, stretches))
    }

    /// Syncs due histories to disk.
    fn settle(&mut self, events: &mut Vec<WatchEvent>) {
        let Some(settling) = &self.settling else { return };
        for (id, why) in settling.done() {
            if let Some(one) = self.jvms.get_mut(&id) {
                one.fail(format!("its history cannot be written yet: {why}"), events);
            }
        }
        for (id, one) in &mut self.jvms {
            let Some(history) = &mut one.history else { continue };
            let Some(file) = history.due() else { continue };
            // If the thread is gone, syncing is skipped.
            if !matches!(settling.offer((*id, Arc::clone(file))), Err(TrySendError::Full(_))) {
                history.settled();
            }
        }
    }
}

/// Starts the thread that syncs histories and reports failures.
fn settling() -> io::Result<Settling> {
    let thread = Builder::new().name("settling".to_owned()).stack_size(SETTLING_STACK_BYTES);
    Lane::start(thread, SETTLING_MAX, |(id, file): (Id, Arc<File>)| file.sync_data().err().map(|why| (id, why)))
}

/// Creates an empty file for a planned account. If that fails, so will the account.
fn attempted(path: &Path) {
    let _ = File::options().write(true).create_new(true).mode(0o600).open(path);
}

/// Deletes the empty file of an account that failed.
fn given_up(path: &Path) {
    if path.metadata().is_ok_and(|about| about.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}

fn is_numbered(name: &str, plain: &str) -> bool {
    name == plain || without_number(name) == Some(plain)
}

impl One {
    /// `before` has data from its previous life, and its accounts so far.
    fn new(
        found: DiscoveredJvm,
        path: PathBuf,
        before: (Precedents, Vec<AccountFile>),
        how: &How,
        events: &mut Vec<WatchEvent>,
    ) -> Self {
        let (precedents, accounts) = before;
        let DiscoveredJvm { kept, labels, unreadable } = found;
        let shown = WatchedJvm {
            name: kept.name.clone(),
            labels,
            pid: kept.pid,
            started_unix_s: kept.started_unix_s,
            version: kept.version.clone(),
            collector: kept.collector.clone(),
            unreadable,
            ..WatchedJvm::default()
        };
        let mut one = Self {
            path,
            history: None,
            unkept: 0,
            lost_told: 0,
            shown,
            bounds: kept.bounds,
            precedents,
            kept,
            weighed: when_weighed::WeighingHistory::of(&accounts),
            weighing: None,
            told: BTreeSet::new(),
            judged: None,
            rose: false,
            asked: Attaching::Never,
        };
        if how.histories == Histories::Written {
            one.open(events);
        }
        one.shown.account = accounts.iter().rev().find_map(account::read);
        if how.histories == Histories::Written && !was_asked(&accounts) {
            one.asked = how.weighing.asked;
        }
        one
    }

    fn open(&mut self, events: &mut Vec<WatchEvent>) {
        match History::open(&self.path, &self.kept) {
            Ok(mut history) => {
                if let Some(Aside { to, why }) = history.aside.take() {
                    let (path, to) = (self.path.display(), to.display());
                    self.fail(format!("its history in {path}: {why}; that file was moved to {to}"), events);
                }
                self.history = Some(history);
            }
            Err(why) => self.fail(format!("its history in {}: {why}", self.path.display()), events),
        }
    }

    /// Reports each failure once.
    fn fail(&mut self, why: String, events: &mut Vec<WatchEvent>) {
        if self.told.insert(why.clone()) {
            events.push(self.event(Happened::Failed(why)));
        }
    }

    fn see(&mut self, look: &Look) {
        self.bounds = look.bounds;
        self.shown.set_aside = None;
        self.shown.limit = Some(look.limit.clone());
        self.shown.charge.clone_from(&look.charge);
        self.shown.now = shown(&look.sample);
        self.shown.age_s = look.sample.age_ms as f64 / 1e3;
        self.shown.samples += 1;
        self.shown.sampling_ms += look.took_ns as f64 / 1e6;
        self.shown.owners = by_counters(&self.shown.now);
        if let Some(account) = &mut self.shown.account {
            account.age_s = (self.shown.age_s - account.at_age_s).max(0.0);
        }
    }

    fn keep(&mut self, look: &Look, events: &mut Vec<WatchEvent>) {
        if self.history.is_none() && self.shown.samples.is_multiple_of(TRY_AGAIN_EVERY) {
            self.open(events);
        }
        let Some(history) = &mut self.history else {
            self.unkept += 1;
            self.shown.samples_lost = self.unkept;
            return;
        };
        let described = history.bound(look.bounds);
        let added = history.add(&look.sample);
        let lost = self.unkept + history.lost();
        self.shown.samples_lost = lost;
        match described.and(added) {
            Ok(_) if lost > self.lost_told => {
                self.lost_told = lost;
                self.fail(format!("writing its history again; {} lost so far", several(lost, "sample")), events);
            }
            Ok(_) => {}
            Err(why) => self.fail(format!("its history: {why}"), events),
        }
    }

    /// Whether a verdict is due: half an hour of ten-minute cells has passed.
    fn is_due(&mut self, every_ms: u64, look: &Look) -> bool {
        let cell = look.sample.age_ms / every_ms / SAMPLES_OF_CELL;
        let due = self.judged.is_none_or(|judged| cell >= judged + STEP as u64);
        if due {
            // Verdicts use the same cells in every watch, whenever it started.
            self.judged = Some(cell - cell % STEP as u64);
        }
        due
    }

    /// Judges only whether the limit is near, which is possible at each reading.
    fn judge_near(&mut self, events: &mut Vec<WatchEvent>) {
        let Some(history) = &self.history else { return };
        match history.lately(PACE_CELLS as u64) {
            Ok(past) if near_limit(&past, &self.bounds) => {
                self.shown.growth.near_limit = true;
                events.push(self.near());
            }
            Ok(_) => {}
            Err(why) => self.fail(format!("its history: {why}"), events),
        }
    }

    fn near(&self) -> WatchEvent {
        let limit_bytes = self.bounds.memory;
        let used = self.shown.now.unreclaimable_bytes.unwrap_or(0);
        self.event(Happened::NearLimit { headroom_bytes: limit_bytes.saturating_sub(used), limit_bytes })
    }

    fn past(&self) -> io::Result<Past> {
        self.history.as_ref().map_or_else(|| Past::read(&self.path), History::past)
    }

    /// Reports a finished account, or why it failed.
    fn weighed(&mut self, weighed: WeighingOutcome, events: &mut Vec<WatchEvent>) {
        let WeighingOutcome { why, into, done, .. } = weighed;
        if let Some(age_ms) = self.weighing.take().filter(|_| why != WhyWeighed::FirstSight) {
            self.weighed.tried(why, age_ms, done.is_ok());
        }
        match (done, why) {
            (Ok(()), _) => {
                self.shown.account = accounts_beside(&self.path).iter().rev().find_map(account::read);
                events.push(self.event(Happened::Weighed(why, into)));
            }
            (Err(cause), WhyWeighed::FirstSight) => self.fail(format!("it was queried, but {cause}"), events),
            (Err(cause), _) => {
                given_up(&into);
                self.fail(format!("weighing it: {cause}"), events);
            }
        }
    }

    fn judge(&mut self, ladder: &Ladder, events: &mut Vec<WatchEvent>) {
        let past = match self.past() {
            Ok(past) => past,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                self.shown.growth.unsure =
                    format!("no history yet; run `loadline watch {}` for at least 4 h", self.shown.pid);
                return;
            }
            Err(why) => return self.fail(format!("its history: {why}"), events),
        };
        let Verdicts { growth, things } = judge(ladder, &past, &self.bounds, &self.precedents);
        let before = std::mem::replace(&mut self.shown.growth, growth.clone());
        self.shown.things = things;
        let was = before.verdict;
        let what = match growth.verdict {
            now if now == was => {
                (growth.bytes_per_hour.is_some() && !self.rose).then(|| Happened::Rises(growth.clone()))
            }
            _ if was == GrowthWord::Grows => Some(Happened::GrowsNoMore(growth.clone())),
            _ => Some(Happened::Verdict(growth.clone())),
        };
        events.extend(what.map(|what| self.event(what)));
        self.rose = growth.bytes_per_hour.is_some();
        if growth.near_limit && !before.near_limit {
            events.push(self.near());
        }
    }

    fn event(&self, what: Happened) -> WatchEvent {
        WatchEvent { name: self.shown.name.clone(), what }
    }
}
