//! Watching: JVMs come and go, each is sampled, kept, and judged from time to time. What is looked at is a [`World`],
//! so that years of fifty JVMs pass in seconds in tests.

use super::account::{self, accounts_beside, file_name, was_asked};
use super::bounds::Bounds;
use super::course::course;
use super::history::{Aside, History, Past, SAMPLES_OF_CELL};
use super::kept::{End, Kept};
use super::lives;
use super::name::without_number;
use super::settling::Settling;
use super::shown::{by_counters, shown};
use super::verdicts::{PACE_CELLS, Precedents, Verdicts, is_near, judge, near_limit};
use super::when_weighed::{Attaching, Weighed, WhenWeighed};
use super::world::{Found, Id, Look, World};
use crate::growth::{Ladder, STEP};
use crate::record::{GrowthWord, Happened, WatchCourse, WatchEvent, WatchedJvm, WhyWeighed};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// How it is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct How {
    /// Between two samples, in milliseconds.
    pub every_ms: u64,
    /// Where histories and accounts are kept.
    pub folder: PathBuf,
    /// When one is weighed.
    pub weighing: WhenWeighed,
    /// Whether what is seen is kept.
    pub histories: Histories,
}

/// What is done with histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Histories {
    /// What is seen is kept.
    Written,
    /// What another watch keeps is judged.
    Read,
}

/// All JVMs that are watched.
pub struct Watching<W> {
    /// What is watched.
    pub world: W,
    how: How,
    ladder: Ladder,
    jvms: BTreeMap<Id, One>,
    /// `None` where nothing is kept, or there can be no thread: then the kernel brings histories to the disk.
    settling: Option<Settling>,
    hidden: u64,
    turns: u64,
    /// A JVM that does not answer takes seconds: only one is asked in a turn, so that the others are seen.
    asked_this_turn: bool,
}

/// One of them.
struct One {
    path: PathBuf,
    kept: Kept,
    history: Option<History>,
    /// Samples that were taken while there was no history, and those whose loss was told.
    unkept: u64,
    lost_told: u64,
    shown: WatchedJvm,
    bounds: Bounds,
    /// What its life before says.
    precedents: Precedents,
    weighed: Weighed,
    /// What was told of it once and is not told again.
    told: BTreeSet<String>,
    /// The ten-minute cell of the last judgement.
    judged: Option<u64>,
    rose: bool,
    /// Whether it is still to be asked.
    asked: Attaching,
}

/// Turns between two looks for new JVMs that are never missed for longer.
const FIND_EVERY: u64 = 3;
/// Samples between two tries to open a history that could not be opened.
const TRY_AGAIN_EVERY: u64 = 30;

impl<W: World> Watching<W> {
    /// Nothing yet of this world.
    pub fn new(world: W, how: How) -> Self {
        let settling = (how.histories == Histories::Written).then(|| Settling::start(File::sync_data).ok()).flatten();
        Self {
            world,
            how,
            ladder: Ladder::default(),
            jvms: BTreeMap::new(),
            settling,
            hidden: 0,
            turns: 0,
            asked_this_turn: false,
        }
    }

    /// All JVMs as they stand, by name.
    pub fn jvms(&self) -> Vec<&WatchedJvm> {
        let mut jvms: Vec<&WatchedJvm> = self.jvms.values().map(|one| &one.shown).collect();
        jvms.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
        jvms
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.jvms.is_empty()
    }

    /// The histories that are written.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        self.jvms.values().map(|one| one.path.clone()).collect()
    }

    /// Processes that could not be looked into.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    /// Looks at all of them once.
    pub fn turn(&mut self) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        if self.turns.is_multiple_of(FIND_EVERY) {
            self.find(&mut events);
        }
        self.turns += 1;
        self.asked_this_turn = false;
        let ids: Vec<Id> = self.jvms.keys().copied().collect();
        for id in ids {
            match self.world.look(id) {
                Some(look) => self.take(id, &look, &mut events),
                None => self.end(id, &mut events),
            }
        }
        self.settle(&mut events);
        events
    }

    fn find(&mut self, events: &mut Vec<WatchEvent>) {
        let (ids, hidden) = self.world.ids();
        self.hidden = hidden;
        let known: BTreeSet<Id> = self.jvms.keys().copied().collect();
        // One that was started anew takes the name of the one that has gone.
        for id in known.difference(&ids) {
            self.end(*id, events);
        }
        let mut came = Vec::new();
        for id in ids.difference(&known) {
            let Some(mut found) = self.world.open(*id) else { continue };
            found.kept.every_ms = self.how.every_ms;
            came.push((lives::own(&self.how.folder, &found.kept), *id, found));
        }
        // Who had a name before this watch began keeps it; the others take what is left.
        came.sort_by_key(|(own, ..)| own.is_none());
        for (own, id, found) in came {
            self.begin(own, id, found, events);
        }
    }

    /// Watches one that came; `own` is its history, where there is one.
    fn begin(&mut self, own: Option<(PathBuf, Kept)>, id: Id, mut found: Found, events: &mut Vec<WatchEvent>) {
        let had = own.as_ref().map(|(_, kept)| &kept.name).filter(|name| is_numbered(name, &found.kept.name));
        let had = had.filter(|name| !self.is_taken(name)).cloned();
        let name = had.unwrap_or_else(|| self.own_name(&found.kept.name));
        found.kept.name.clone_from(&name);
        let path = match own {
            // The clock may have been set since: files of one life go by one start.
            Some((path, there)) => {
                found.kept.started_unix_s = there.started_unix_s;
                path
            }
            None => self.how.folder.join(found.kept.file_name()),
        };
        let one = One::new(found, path, &self.how, events);
        events.push(WatchEvent { name, what: Happened::Appeared(id.pid) });
        self.jvms.insert(id, one);
    }

    fn is_taken(&self, name: &str) -> bool {
        self.jvms.values().any(|one| one.shown.name == name)
    }

    /// The name, with a number where another JVM that runs has it.
    fn own_name(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !self.is_taken(name)).unwrap_or_else(|| name.to_owned())
    }

    fn end(&mut self, id: Id, events: &mut Vec<WatchEvent>) {
        let Some(mut one) = self.jvms.remove(&id) else { return };
        let killed = self.world.close(id);
        let was_killed = killed.is_some();
        let end = End { age_ms: (one.shown.age_s * 1e3) as u64, killed };
        if let Some(Err(why)) = one.history.as_mut().map(|history| history.end(end)) {
            one.fail(format!("its history: {why}"), events);
        }
        if let Some((settling, file)) = self.settling.as_ref().zip(one.history.as_ref().and_then(History::due)) {
            // One that finds no place is brought to the disk by the kernel.
            settling.offer(id, file);
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
        if one.asked == Attaching::Once && !std::mem::replace(&mut self.asked_this_turn, true) {
            one.asked = Attaching::Never;
            let path = file_name(&one.path, look.sample.age_ms, &WhyWeighed::FirstSight);
            let done = self.world.weigh(id, WhyWeighed::FirstSight, &path);
            one.weighed(WhyWeighed::FirstSight, path, done, events);
        }
        if let Some(due) = one.weighed.due(&self.how.weighing, look, &one.shown.growth) {
            let path = file_name(&one.path, look.sample.age_ms, &due);
            let done = self.world.weigh(id, due, &path);
            one.weighed.tried(due, look.sample.age_ms, done.is_ok());
            one.weighed(due, path, done, events);
        }
    }

    /// What the parts of the JVM of this pid were over time, in so many stretches at most; `None` where none has it, or
    /// nothing is kept of it.
    pub fn course(&self, pid: u32, stretches: usize) -> Option<WatchCourse> {
        let one = self.jvms.values().find(|one| one.shown.pid == pid)?;
        one.past().ok().map(|past| course(&past, &one.bounds, stretches))
    }

    /// Has histories brought to the disk, where they are due.
    fn settle(&mut self, events: &mut Vec<WatchEvent>) {
        let Some(settling) = &self.settling else { return };
        for (id, why) in settling.failed() {
            if let Some(one) = self.jvms.get_mut(&id) {
                one.fail(format!("its history, on its way to the disk: {why}"), events);
            }
        }
        for (id, one) in &mut self.jvms {
            let Some(history) = &mut one.history else { continue };
            if history.due().is_some_and(|file| settling.offer(*id, file)) {
                history.settled();
            }
        }
    }
}

/// Whether this is the name, or the name with a number, as [`Watching::own_name`] makes it.
fn is_numbered(name: &str, plain: &str) -> bool {
    name == plain || without_number(name) == Some(plain)
}

impl One {
    fn new(found: Found, path: PathBuf, how: &How, events: &mut Vec<WatchEvent>) -> Self {
        let Found { kept, labels, unreadable } = found;
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
            precedents: lives::before(&how.folder, &kept).as_ref().map(Precedents::of).unwrap_or_default(),
            kept,
            weighed: Weighed::default(),
            told: BTreeSet::new(),
            judged: None,
            rose: false,
            asked: Attaching::Never,
        };
        if how.histories == Histories::Written {
            one.open(events);
        }
        let accounts = accounts_beside(&one.path);
        one.shown.account = accounts.last().and_then(account::read);
        one.weighed = Weighed::of(&accounts);
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
                    self.fail(format!("its history in {path}: {why}; that was moved to {to}"), events);
                }
                self.history = Some(history);
            }
            Err(why) => self.fail(format!("its history in {}: {why}", self.path.display()), events),
        }
    }

    /// Tells what failed, once.
    fn fail(&mut self, why: String, events: &mut Vec<WatchEvent>) {
        if self.told.insert(why.clone()) {
            events.push(self.event(Happened::Failed(why)));
        }
    }

    fn see(&mut self, look: &Look) {
        self.bounds = look.bounds;
        self.shown.limit = Some(look.limit.clone());
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
                self.fail(format!("its history is written again; {lost} samples were lost so far"), events);
            }
            Ok(_) => {}
            Err(why) => self.fail(format!("its history: {why}"), events),
        }
    }

    /// Whether it is to be judged: half an hour of ten-minute cells has passed.
    fn is_due(&mut self, every_ms: u64, look: &Look) -> bool {
        let cell = look.sample.age_ms / every_ms / SAMPLES_OF_CELL;
        let due = self.judged.is_none_or(|judged| cell >= judged + STEP as u64);
        if due {
            // Judgements fall on the same cells whoever watches, and since when.
            self.judged = Some(cell - cell % STEP as u64);
        }
        due
    }

    /// Judges whether its limit is near, and nothing else: that may be at each look.
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

    /// Tells an account that was taken, or why there is none.
    fn weighed(&mut self, why: WhyWeighed, path: PathBuf, done: Result<(), String>, events: &mut Vec<WatchEvent>) {
        match (done, why) {
            (Ok(()), _) => {
                self.shown.account = accounts_beside(&self.path).last().and_then(account::read);
                events.push(self.event(Happened::Weighed(why, path)));
            }
            (Err(cause), WhyWeighed::FirstSight) => self.fail(format!("it was asked, and {cause}"), events),
            (Err(cause), _) => self.fail(format!("weighing it: {cause}"), events),
        }
    }

    fn judge(&mut self, ladder: &Ladder, events: &mut Vec<WatchEvent>) {
        let past = match self.past() {
            Ok(past) => past,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                self.shown.growth.unsure = "nothing was kept of it yet".to_owned();
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
