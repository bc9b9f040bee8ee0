//! The JVMs of this machine. A [`Crew`] does all work that a process can delay or block forever. A JVM that does not
//! respond in time is set aside, and the others are read.

use super::bounds::Bounds;
use super::column::Column;
use super::crew::{Crew, Gathered, STUCK_MAX};
use super::kept::{Kept, KilledBy};
use super::kills::Kills;
use super::lane::Lane;
use super::name::{JvmEnvironment, Name};
use super::sample::Sample;
use super::world::{DiscoveredJvm, Id, Look, Looked, Opened, There, WeighingOutcome, World};
use crate::clock::Clock;
use crate::kernel::machine::boot_id;
use crate::kernel::oom::OutOf;
use crate::kernel::process::{Stat, ticks_per_s};
use crate::observe::cgroup::{CgroupMemory, MemoryCgroup};
use crate::observe::charged::{ChargeRow, by_command};
use crate::observe::jvms::{Finder, Mapped, ProcessCandidate};
use crate::observe::kernel_log::KernelLog;
use crate::observe::machine::Machine;
use crate::observe::procfs::Process;
use crate::record::{WatchCharge, WatchLabel, WatchLimit, WatchProcesses, WhyWeighed};
use crate::units::Bytes;
use crate::weigh::container::pods;
use crate::weigh::{Outside, OutsideReading};
use loadline_base::order::Order as _;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::TrySendError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// One line per hierarchy, with a path of at most 4,096 bytes.
const MEMBERSHIP_BYTES_MAX: u64 = 64 << 10;
/// A younger JVM may not have all its tables; it is opened again when it is found again.
const YOUNG: Duration = Duration::from_secs(5);

/// The JVMs to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All visible JVMs.
    All,
    /// JVMs with these pids.
    Pids(Vec<u32>),
    /// JVMs in the memory cgroup with this path below the mount, or below that cgroup.
    Cgroup(String),
    /// JVMs of a systemd service: the system's or this user's.
    Unit(String),
}

/// How long to wait for reads that a JVM blocks.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Per JVM; the largest one observed takes 50 ms the first time, and 2 ms later.
    one: Duration,
    /// For all JVMs, even if some are stuck.
    all: Duration,
    /// JVMs opened per turn.
    opened: usize,
}

const SHORT: Patience = Patience { one: Duration::from_millis(300), all: Duration::from_secs(1), opened: 128 };
/// The patience if nothing else is being read.
const LONG: Patience = Patience { one: Duration::from_secs(10), all: Duration::from_secs(30), opened: usize::MAX };
/// The maximum number of JVMs. A Kubernetes node has 110 pods.
const JVMS_MAX: usize = 400;
/// Open files per JVM: its directory, status, stat, memory, counters, cgroup, history, and one to spare.
const FILES_OF_JVM: u64 = 8;
/// Files that are always open, or open briefly.
const FILES_SPARE: u64 = 60;
/// The maximum pause, in turns, of a JVM that was repeatedly late.
const REST_MAX: u32 = 256;
/// Helper process commands in a history, whose page has room for only a few.
const COMMANDS_MAX: usize = 5;
/// The maximum number of JVMs that wait for an account.
const WEIGHINGS_MAX: usize = 16;

/// Writes a JVM's account to a file.
pub(super) type WeighInto = Box<dyn FnMut(u32, WhyWeighed, &Path) -> Result<(), String> + Send>;

/// This machine.
pub struct Here {
    clock: Clock,
    about: Arc<About>,
    finder: Finder,
    crew: Crew<Task, Done>,
    /// The thread that takes accounts, or the reason why it could not be started.
    weigher: Result<Lane<(Id, WhyWeighed, PathBuf), WeighingOutcome>, String>,
    patience: Patience,
    jvms_max: usize,
    open: BTreeMap<Id, OpenJvm>,
    late: BTreeMap<Task, Late>,
    /// Whether there was no time to check all due processes.
    is_behind: bool,
    /// JVMs that were not selected, with the kernel's text about their cgroups: they are skipped until it changes.
    strangers: BTreeMap<Id, Vec<u8>>,
    opened: Vec<(Id, Opened)>,
    looked: Vec<(Id, Looked)>,
    /// `None` if it is not readable.
    kernel_log: Option<KernelLog>,
}

/// The context of every job.
struct About {
    which: Which,
    clock: Clock,
    memory: Bytes,
    boot_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Map(ProcessCandidate),
    Open(Id),
    Look(Id),
}

/// The result of a job.
enum Done {
    Mapped(Mapped),
    Opened(Option<Box<(ProcHandles, DiscoveredJvm)>>),
    Stranger(Vec<u8>),
    Looked { looked: Looked, took: Duration },
}

/// An open JVM. A worker that reads it holds the lock, forever if it is stuck.
struct OpenJvm {
    handles: Arc<Mutex<ProcHandles>>,
    /// The duration of the last read; the fastest JVMs are read first.
    cost: Duration,
}

/// The pause after a late job: 0 turns the first time, then 1, 3, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Late {
    /// Whether a worker is busy with it.
    out: bool,
    times: u32,
    left: u32,
}

impl Late {
    fn again(&mut self) {
        self.times += 1;
        self.left = (1u32 << (self.times - 1).min(31)).min(REST_MAX) - 1;
    }

    /// Whether to try it now.
    fn is_due(&mut self) -> bool {
        if self.out {
            return false;
        }
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }
}

/// A JVM's sources, and state kept between reads.
struct ProcHandles {
    outside: Outside,
    floor: HeapFloor,
    /// Kills in its cgroup up to the last reading.
    oom_kills: Kills,
}

/// The minimum heap in use since the last old collection.
#[derive(Debug, Default)]
struct HeapFloor {
    collections: Option<u64>,
    least: Option<u64>,
}

impl HeapFloor {
    /// The minimum heap in use since the last old collection; `None` before a collection was observed.
    fn after(&mut self, collections: Option<u64>, used: u64) -> Option<u64> {
        let ended = self.collections.zip(collections).is_some_and(|(before, now)| now > before);
        self.collections = collections;
        self.least = if ended { Some(used) } else { self.least.map(|least| least.min(used)) };
        self.least
    }
}

impl Here {
    /// Watches the selected JVMs; takes accounts with `weigh`.
    pub fn new(which: Which, clock: Clock, mut weigh: WeighInto) -> Self {
        let memory = Machine::read().memory.unwrap_or_default();
        let files = descriptors(FILES_SPARE + FILES_OF_JVM * JVMS_MAX as u64);
        let weigher = Lane::start(Builder::new().name("weighing".to_owned()), WEIGHINGS_MAX, move |due| {
            let (id, why, into): (Id, WhyWeighed, PathBuf) = due;
            let done = weigh(id.pid, why, &into);
            Some(WeighingOutcome { id, why, into, done })
        });
        let jvms_max = (files.saturating_sub(FILES_SPARE) / FILES_OF_JVM).clamp(1, JVMS_MAX as u64) as usize;
        Self {
            clock,
            about: Arc::new(About { which, clock, memory, boot_id: boot_id() }),
            finder: Finder::default(),
            crew: Crew::new(clock),
            weigher: weigher.map_err(|cause| format!("cannot start a thread for it: {cause}")),
            patience: SHORT,
            jvms_max,
            open: BTreeMap::new(),
            late: BTreeMap::new(),
            is_behind: false,
            strangers: BTreeMap::new(),
            opened: Vec::new(),
            looked: Vec::new(),
            kernel_log: KernelLog::open().ok(),
        }
    }

    /// A variant for a single turn, which waits as long as necessary.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { patience: LONG, ..self }
    }

    /// Skips JVMs that were not selected and have not changed their cgroups since.
    fn without_strangers(&mut self, ids: BTreeSet<Id>) -> BTreeSet<Id> {
        self.strangers.retain(|id, before| ids.contains(id) && membership(id.pid).as_ref() == Some(before));
        ids.into_iter().filter(|id| !self.strangers.contains_key(id)).collect()
    }

    /// Reads the mappings of the remaining processes.
    fn map(&mut self) -> io::Result<()> {
        let due = self.finder.begin()?;
        self.is_behind = false;
        self.late.retain(|task, late| late.out || !matches!(task, Task::Map(of) if due.binary_search(of).is_err()));
        for candidate in due {
            if self.is_due(Task::Map(candidate)) {
                self.give(Task::Map(candidate), move || Done::Mapped(candidate.look()));
            }
        }
        self.gather();
        Ok(())
    }

    /// Whether to try it now: no worker is busy with it, and it is not paused.
    fn is_due(&mut self, task: Task) -> bool {
        self.late.get_mut(&task).is_none_or(Late::is_due)
    }

    fn give(&mut self, task: Task, job: impl FnOnce() -> Done + Send + 'static) {
        self.late.entry(task).or_default().out = true;
        self.crew.give(task, job);
    }

    fn was_late(&self, task: Task) -> bool {
        self.late.get(&task).is_some_and(|late| late.times > 0)
    }

    /// Waits for jobs and collects their results.
    fn gather(&mut self) {
        let Gathered { done, late, unbegun } = self.crew.gather(self.patience.one, self.patience.all);
        for task in unbegun {
            self.is_behind |= matches!(task, Task::Map(_));
            self.returned(task);
        }
        for task in late {
            // If the JVM has been closed, its state is dropped.
            if let Some(late) = self.late.get_mut(&task) {
                late.again();
            }
        }
        for (task, done) in done {
            self.take(task, done);
        }
    }

    /// The worker has returned; a late job keeps its pause.
    fn returned(&mut self, task: Task) {
        if let Some(late) = self.late.get_mut(&task) {
            late.out = false;
        }
    }

    fn take(&mut self, task: Task, done: Option<Done>) {
        self.returned(task);
        match (task, done) {
            (Task::Map(candidate), done) => {
                // If Loadline panics on a process, that process cannot be watched.
                let mapped = if let Some(Done::Mapped(mapped)) = done { mapped } else { Mapped::Other };
                self.late.remove(&task);
                self.finder.saw(candidate, mapped);
            }
            (Task::Look(id), Some(Done::Looked { looked, took })) => {
                if took < self.patience.one {
                    self.late.remove(&task);
                }
                if let Some(known) = self.open.get_mut(&id) {
                    known.cost = took;
                    self.looked.push((id, looked));
                }
            }
            (Task::Look(id), _) => self.looked.push((id, Looked::Unseen("Loadline failed to sample it".to_owned()))),
            (Task::Open(id), Some(Done::Opened(Some(opened)))) => {
                let (handles, found) = *opened;
                self.late.remove(&task);
                self.open.insert(id, OpenJvm { handles: Arc::new(Mutex::new(handles)), cost: Duration::ZERO });
                self.opened.push((id, Opened::Found(Box::new(found))));
            }
            (Task::Open(id), done) => {
                if let Some(Done::Stranger(membership)) = done {
                    self.strangers.insert(id, membership);
                }
                self.opened.push((id, Opened::Not));
            }
        }
    }

    /// The message about an unresponsive JVM.
    fn aside(&self) -> String {
        let one = self.patience.one.as_millis();
        format!("it did not respond within {one} ms; Loadline retries it at growing intervals")
    }
}

impl About {
    /// Whether a JVM is selected, judging by its cgroup.
    fn is_meant(&self, cgroup: &str) -> bool {
        match &self.which {
            Which::All | Which::Pids(_) => true,
            Which::Cgroup(path) => Path::new(cgroup).starts_with(PathBuf::from("/").join(path.trim_start_matches('/'))),
            Which::Unit(unit) => JvmEnvironment::of(cgroup).is_unit(unit, rustix::process::geteuid().as_raw()),
        }
    }

    /// The kernel's text about the cgroups of an unselected JVM; requires reading two small files.
    fn stranger(&self, id: Id) -> Option<Vec<u8>> {
        if matches!(self.which, Which::All | Which::Pids(_)) {
            return None;
        }
        let membership = membership(id.pid)?;
        let cgroup = Process::open(id.pid).ok().and_then(|process| MemoryCgroup::of(&process).ok());
        (!self.is_meant(&cgroup.map(|cgroup| cgroup.name()).unwrap_or_default())).then_some(membership)
    }

    fn open(&self, id: Id) -> Done {
        if let Some(membership) = self.stranger(id) {
            return Done::Stranger(membership);
        }
        let outside = Outside::open(id.pid, &self.clock).ok();
        let Some(outside) = outside.filter(|outside| outside.start_ticks() == id.start_ticks) else {
            return Done::Opened(None);
        };
        let is_asked_for = matches!(self.which, Which::Pids(_));
        if !is_asked_for && !outside.missing.is_empty() && outside.age(&self.clock) < YOUNG {
            return Done::Opened(None);
        }
        let found = self.found(id, &outside);
        let handles = ProcHandles { outside, floor: HeapFloor::default(), oom_kills: Kills::default() };
        Done::Opened(Some(Box::new((handles, found))))
    }

    fn found(&self, id: Id, outside: &Outside) -> DiscoveredJvm {
        let cgroup = outside.cgroup().map(|cgroup| cgroup.name());
        let place = JvmEnvironment::of(cgroup.as_deref().unwrap_or("/"));
        let pods = if matches!(place, JvmEnvironment::Kubernetes { .. }) { pods() } else { BTreeMap::new() };
        let name = Name::of(&place, &outside.name, &pods);
        let age_s = outside.age(&self.clock).as_secs_f64();
        let kept = Kept {
            name: name.text,
            pid: id.pid,
            started_unix_s: (self.clock.unix_s() - age_s).max(0.0).round() as u64,
            started_ticks: outside.start_ticks(),
            boot_id: self.boot_id.clone(),
            every_ms: 0,
            version: outside.vm_version.clone(),
            collector: outside.collector.map(str::to_owned),
            command: outside.command.clone().unwrap_or_default(),
            cgroup,
            bounds: Bounds::of(self.memory, &outside.ceilings),
            ..Kept::default()
        };
        let label = |(name, value): (&str, String)| WatchLabel { name: name.to_owned(), value };
        let unreadable = outside.missing.iter().map(ToString::to_string).collect();
        DiscoveredJvm { kept, labels: name.labels.into_iter().map(label).collect(), unreadable }
    }

    fn look(&self, handles: &mut ProcHandles) -> Looked {
        let began_ns = self.clock.now_ns();
        let age = handles.outside.age(&self.clock);
        let Some(seen) = handles.outside.read(&self.clock) else {
            let unseen = || Looked::Unseen("its status cannot be read".to_owned());
            return if handles.outside.has_gone() { Looked::Gone } else { unseen() };
        };
        handles.oom_kills.saw(seen.cgroup.as_ref().map(|cgroup| cgroup.events.oom_kills), self.clock.now());
        let mut sample = Sample::at(age.as_millis() as u64);
        let limit = seen.limit().filter(|limit| limit.bytes < self.memory);
        let limit = limit.map_or(WatchLimit { bytes: self.memory.0, cgroup: String::new() }, |limit| WatchLimit {
            bytes: limit.bytes.0,
            cgroup: limit.folder.display().to_string(),
        });
        let bounds = Bounds::of(Bytes(limit.bytes), &handles.outside.ceilings);
        fill(&mut sample, &seen, &bounds, &mut handles.floor);
        let charge = own_charge(&seen, &bounds).map(|memory| {
            let jvm_bytes = (seen.rss_anon.0).saturating_add(seen.rss_shmem.0);
            by_holder(memory, jvm_bytes, &handles.outside.others(&self.clock))
        });
        let took_ns = self.clock.now_ns().saturating_sub(began_ns);
        Looked::Seen(Box::new(Look { sample, bounds, limit, charge, took_ns }))
    }
}

impl World for Here {
    fn there(&mut self) -> io::Result<There> {
        // Reads a little each turn, so that little is left when a JVM ends.
        self.kernel_log.take_if(|log| log.advance().is_err());
        let id = |pid: u32| -> io::Result<Option<Id>> {
            let stat = match std::fs::read(format!("/proc/{pid}/stat")) {
                Ok(stat) => stat,
                Err(cause) if has_gone(&cause) => return Ok(None),
                Err(cause) => return Err(cause),
            };
            let stat = Stat::parse(&String::from_utf8_lossy(&stat), ticks_per_s()).filter(Stat::lives);
            Ok(stat.map(|stat| Id { pid, start_ticks: stat.start_ticks }))
        };
        let some = |pids: &mut dyn Iterator<Item = u32>| -> io::Result<BTreeSet<Id>> {
            pids.filter_map(|pid| id(pid).transpose()).collect()
        };
        let about = Arc::clone(&self.about);
        if let Which::Pids(pids) = &about.which {
            return Ok(There { ids: some(&mut pids.iter().copied())?, ..There::default() });
        }
        self.map()?;
        let found = self.finder.pids();
        let ids = some(&mut found.pids.into_iter())?;
        let ids = self.without_strangers(ids);
        let (ids, left_out) = fair(ids, self.jvms_max, membership);
        self.late.retain(|task, late| late.out || !matches!(task, Task::Open(id) if !ids.contains(id)));
        Ok(There { ids, hidden: found.hidden.len() as u64, left_out, is_behind: self.is_behind })
    }

    fn open(&mut self, ids: &BTreeSet<Id>) -> Vec<(Id, Opened)> {
        let mut given = 0;
        // Opening a JVM can block a worker forever, so stop at this many blocked workers.
        let may_open = self.crew.stuck() < STUCK_MAX;
        for id in ids.iter().copied() {
            let may_open = may_open && given < self.patience.opened && !self.open.contains_key(&id);
            if may_open && self.is_due(Task::Open(id)) {
                given += 1;
                let about = Arc::clone(&self.about);
                self.give(Task::Open(id), move || about.open(id));
            }
        }
        self.gather();
        let opened = std::mem::take(&mut self.opened);
        with_others(opened, ids, |id| {
            if self.was_late(Task::Open(id)) { Opened::Aside(self.aside()) } else { Opened::Later }
        })
    }

    fn look(&mut self, ids: &[Id]) -> Vec<(Id, Looked)> {
        let known = ids.iter().filter_map(|id| Some((self.open.get(id)?.cost, *id)));
        let mut known: Vec<(Duration, Id)> = known.collect();
        known.sort();
        for (_, id) in known {
            let Some(handles) = self.open.get(&id).map(|known| Arc::clone(&known.handles)) else { continue };
            if !self.is_due(Task::Look(id)) {
                continue;
            }
            let (about, clock) = (Arc::clone(&self.about), self.clock);
            self.give(Task::Look(id), move || {
                let began = clock.now();
                let looked = about.look(&mut handles.lock().unwrap_or_else(PoisonError::into_inner));
                Done::Looked { looked, took: clock.now().saturating_sub(began) }
            });
        }
        self.gather();
        let looked = std::mem::take(&mut self.looked);
        with_others(looked, ids, |id| {
            let was_late = self.was_late(Task::Look(id));
            Looked::Unseen(if was_late { self.aside() } else { "there was no time left to sample it".to_owned() })
        })
    }

    fn close(&mut self, id: Id) -> Option<KilledBy> {
        let known = self.open.remove(&id)?;
        self.late.remove(&Task::Look(id));
        // A stuck worker holds the lock forever.
        let handles = known.handles.try_lock().ok()?;
        let now = handles.outside.cgroup().and_then(|cgroup| cgroup.cgroup().oom_kills());
        let counted = handles.oom_kills.may_be_its_own(now, self.clock.now());
        match self.kernel_log.as_mut().and_then(|log| log.killed(id.pid).ok()?) {
            // The log also contains kills of earlier processes with this pid.
            Some(kill) if counted || now.is_none() => {
                let cgroup = match kill.of {
                    Some(OutOf::Cgroup(cgroup)) => Some(cgroup),
                    Some(OutOf::Machine) => Some(String::new()),
                    None => None,
                };
                let anon_bytes = kill.anon.map(|anon| anon.0);
                Some(KilledBy { cgroup, anon_bytes, source: "kernel log".to_owned() })
            }
            _ if counted => {
                let limit = handles.outside.cgroup().and_then(|cgroup| cgroup.cgroup().limit());
                let cgroup = limit.map(|limit| limit.folder.display().to_string());
                Some(KilledBy { cgroup, anon_bytes: None, source: "memory events".to_owned() })
            }
            _ => None,
        }
    }

    fn forget(&mut self, id: Id) {
        self.open.remove(&id);
        self.late.remove(&Task::Look(id));
    }

    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String> {
        let weigher = self.weigher.as_ref().map_err(Clone::clone)?;
        weigher.offer((id, why, into.to_owned())).map_err(|refused| match refused {
            TrySendError::Full(_) => format!("{WEIGHINGS_MAX} other accounts are waiting"),
            TrySendError::Disconnected(_) => "the weighing thread has exited".to_owned(),
        })
    }

    fn weighed(&mut self) -> Vec<WeighingOutcome> {
        self.weigher.iter().flat_map(Lane::done).collect()
    }

    fn set_aside(&self) -> u64 {
        self.late.values().filter(|late| late.times > 0).count() as u64
    }

    fn is_blind(&self) -> bool {
        self.crew.is_blind()
    }
}

/// Appends `rest` to the completed ones.
fn with_others<'a, T>(
    mut done: Vec<(Id, T)>,
    of: impl IntoIterator<Item = &'a Id>,
    rest: impl Fn(Id) -> T,
) -> Vec<(Id, T)> {
    let ids: BTreeSet<Id> = done.iter().map(|(id, _)| *id).collect();
    done.extend(of.into_iter().filter(|id| !ids.contains(id)).map(|id| (*id, rest(*id))));
    done
}

/// Raises the soft limit of descriptors to `wanted`, up to the hard limit; returns the limit in effect.
fn descriptors(wanted: u64) -> u64 {
    let limits = getrlimit(Resource::Nofile);
    let now = limits.current.unwrap_or(u64::MAX);
    let wanted = limits.maximum.map_or(wanted, |hard| wanted.min(hard));
    let raised = Rlimit { current: Some(wanted), maximum: limits.maximum };
    if wanted > now && setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { now }
}

/// Splits the JVMs into those to watch and those to leave out. Round-robin over cgroups, oldest first, so that
/// thousands of processes in one container do not displace other containers.
fn fair(ids: BTreeSet<Id>, most: usize, cgroup: impl Fn(u32) -> Option<Vec<u8>>) -> (BTreeSet<Id>, BTreeSet<Id>) {
    if ids.len() <= most {
        return (ids, BTreeSet::new());
    }
    let mut of_cgroups: BTreeMap<Option<Vec<u8>>, Vec<Id>> = BTreeMap::new();
    ids.into_iter().for_each(|id| of_cgroups.entry(cgroup(id.pid)).or_default().push(id));
    let mut ranked: Vec<(usize, u64, Id)> = Vec::new();
    for mut ids in of_cgroups.into_values() {
        ids.order_by_key(|id| (id.start_ticks, id.pid));
        ranked.extend(ids.into_iter().enumerate().map(|(rank, id)| (rank, id.start_ticks, id)));
    }
    ranked.sort();
    let left_out = ranked.split_off(most);
    let ids = |ranked: Vec<(usize, u64, Id)>| ranked.into_iter().map(|(.., id)| id).collect();
    (ids(ranked), ids(left_out))
}

/// Whether reading a process failed because it is gone.
fn has_gone(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::NotFound || cause.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// The kernel's text about a process's cgroups; `None` if the process is gone.
fn membership(pid: u32) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/cgroup")).ok()?.take(MEMBERSHIP_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

fn fill(sample: &mut Sample, seen: &OutsideReading, bounds: &Bounds, floor: &mut HeapFloor) {
    let mut set = |column, value: Option<u64>| {
        if let Some(value) = value {
            sample.set(column, value);
        }
    };
    set(Column::RssAnon, Some(seen.rss_anon.0));
    set(Column::RssFile, Some(seen.rss_file.0));
    set(Column::RssShmem, Some(seen.rss_shmem.0));
    set(Column::Swap, Some(seen.swap.0));
    set(Column::Threads, Some(seen.threads));
    set(Column::CpuTime, seen.cpu.map(|cpu| cpu.as_millis() as u64));
    if let Some(jvm) = &seen.jvm {
        set(Column::HeapUsed, Some(jvm.heap_used.0));
        set(Column::HeapCommitted, Some(jvm.heap_committed.0));
        set(Column::HeapFloor, floor.after(jvm.old_collections, jvm.heap_used.0));
        set(Column::MetaspaceUsed, Some(jvm.metaspace_used.0));
        set(Column::MetaspaceCommitted, Some(jvm.metaspace_committed.0));
        set(Column::Classes, Some(jvm.classes));
        set(Column::OldCollections, jvm.old_collections);
        set(Column::GcTime, jvm.gc.map(|gc| gc.ns / 1_000_000));
    }
    set(Column::HeapMax, bounds.heap);
    set(Column::Direct, seen.direct_bytes);
    set(Column::Allocated, seen.allocated_bytes);
    set(Column::Limit, Some(bounds.memory));
    if let Some(cgroup) = &seen.cgroup {
        set(Column::AtLimit, Some(cgroup.events.at_limit));
        set(Column::OomKills, Some(cgroup.events.oom_kills));
        if is_whole(seen, cgroup) {
            set(Column::Charge, Some(cgroup.usage.0));
        }
    }
    if let Some(CgroupMemory { charge, .. }) = own_charge(seen, bounds) {
        set(Column::ChargeAnon, Some(charge.anon.0 + charge.shmem.0));
        set(Column::ChargeKernel, charge.kernel.map(|kernel| kernel.0));
    }
}

/// If the kernel kills a JVM between the two reads, most of its memory is gone at the second.
fn is_whole(seen: &OutsideReading, cgroup: &CgroupMemory) -> bool {
    cgroup.charge.anon.0 + cgroup.charge.shmem.0 >= seen.rss_anon.0 / 4 * 3
}

/// The charge that the limit bounds. Without a limit, the cgroup may contain unrelated processes.
fn own_charge<'a>(seen: &'a OutsideReading, bounds: &Bounds) -> Option<&'a CgroupMemory> {
    let is_limited = seen.limit().is_some_and(|limit| limit.bytes.0 == bounds.memory);
    seen.cgroup.as_ref().filter(|cgroup| is_limited && is_whole(seen, cgroup))
}

fn by_holder(memory: &CgroupMemory, jvm_bytes: u64, others: &[ChargeRow]) -> WatchCharge {
    let bytes = |row: &ChargeRow| row.bytes.unsigned_abs();
    let of_command =
        |(row, processes): (ChargeRow, u64)| WatchProcesses { processes, bytes: bytes(&row), command: row.owner };
    let charge = &memory.charge;
    WatchCharge {
        bytes: memory.usage.0,
        working_set_bytes: memory.usage.0.saturating_sub(charge.file_inactive.0),
        unreclaimable_bytes: charge.anon.0 + charge.shmem.0 + charge.kernel.unwrap_or_default().0,
        jvm_bytes,
        others_bytes: others.iter().map(bytes).fold(0, u64::saturating_add),
        others: by_command(others).into_iter().take(COMMANDS_MAX).map(of_command).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::charge::Charge;
    use crate::observe::cgroup::Events;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn a_charge_is_split_by_kind_and_helpers_by_command() {
        let charge = Charge { anon: Bytes::mib(210), file_inactive: Bytes::mib(5), ..Charge::default() };
        let (usage, events) = (Bytes::mib(220), Events::default());
        let (peak, limit, high, swap, pressure) = (None, None, None, None, None);
        let memory = CgroupMemory { usage, peak, limit, high, swap, charge, events, pressure };
        let helper = |(pid, owner): (u32, &str)| ChargeRow {
            owner: owner.to_owned(),
            bytes: 40 << 20,
            pid: Some(pid),
            ..ChargeRow::default()
        };
        let others: Vec<ChargeRow> = [(7, "tail -c 9"), (8, "sh run.sh"), (9, "tail -c 9")].map(helper).into();
        let told = by_holder(&memory, 50 << 20, &others);
        assert_eq!((told.jvm_bytes >> 20, told.others_bytes >> 20, told.rest_bytes() >> 20), (50, 120, 40));
        assert_eq!((told.bytes >> 20, told.working_set_bytes >> 20), (220, 215));
        let commands: Vec<_> = told.others.iter().map(|of| (of.command.as_str(), of.processes)).collect();
        assert_eq!(commands, [("tail -c 9", 2), ("sh run.sh", 1)]);
    }

    #[test]
    fn a_heap_has_a_floor_after_an_old_collection() {
        let mut floor = HeapFloor::default();
        let seen = [(Some(3), 90), (Some(3), 80), (Some(4), 40), (Some(4), 60), (Some(4), 35), (Some(5), 50)];
        let floors = seen.map(|(collections, used)| floor.after(collections, used));
        assert_eq!(floors, [None, None, Some(40), Some(40), Some(35), Some(50)]);
        assert_eq!(HeapFloor::default().after(None, 10), None, "old collections are not counted");
    }

    fn here(which: Which) -> Here {
        Here::new(which, Clock::start(), Box::new(|_, _, _| Ok(())))
    }

    /// A process that waits for the end of its input, with its unique ID.
    #[expect(clippy::disallowed_methods, reason = "any process will do")]
    fn waiting() -> (Child, Id) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let start_ticks = Stat::of(child.id()).unwrap().start_ticks;
        let id = Id { pid: child.id(), start_ticks };
        (child, id)
    }

    fn waited(is_over: impl FnMut() -> bool) -> bool {
        Clock::start().wait_until(Duration::from_secs(60), Duration::from_millis(1), is_over)
    }

    /// Opens a JVM, if possible.
    fn opened(here: &mut Here, id: Id) -> Option<DiscoveredJvm> {
        let opened = here.open(&BTreeSet::from([id]));
        opened.into_iter().find_map(|(_, opened)| if let Opened::Found(found) = opened { Some(*found) } else { None })
    }

    fn looked(here: &mut Here, id: Id) -> Looked {
        here.look(&[id]).pop().unwrap().1
    }

    #[test]
    fn a_process_that_ends_between_readings_is_dropped() {
        let (mut child, id) = waiting();
        let mut here = here(Which::Pids(vec![id.pid]));
        let earlier = Id { start_ticks: id.start_ticks - 1, ..id };
        assert!(opened(&mut here, earlier).is_none(), "a pid that now belongs to another process is not opened");
        assert!(!matches!(looked(&mut here, earlier), Looked::Seen(_)));
        assert_eq!(here.there().unwrap().ids, BTreeSet::from([id]));
        let found = opened(&mut here, id).unwrap();
        assert!(!found.unreadable.is_empty(), "a process that is not a JVM has unreadable parts: {found:?}");
        assert!(found.kept.bounds.memory > 0 && found.kept.started_ticks == id.start_ticks);
        let Looked::Seen(look) = looked(&mut here, id) else { panic!("a running process must be seen") };
        assert!(look.sample.get(Column::RssAnon).is_some());
        child.kill().unwrap();
        // A zombie holds no memory; once it is reaped, it is gone.
        assert!(waited(|| !Stat::of(id.pid).is_some_and(|stat| stat.lives())), "{id:?} still runs after SIGKILL");
        assert_eq!(looked(&mut here, id), Looked::Gone, "a zombie counts as gone");
        child.wait().unwrap();
        assert!(looked(&mut here, id) == Looked::Gone && opened(&mut here, id).is_none());
        assert_eq!(here.there().unwrap(), There::default());
        assert_eq!((here.close(id), here.open.len()), (None, 0));
        assert_eq!(here.close(id), None, "a second close has no effect");
    }

    #[test]
    fn a_stuck_reading_is_abandoned_and_accepted_later() {
        let (mut stuck, stuck_id) = waiting();
        let (mut other, other_id) = waiting();
        let mut here = here(Which::Pids(vec![stuck_id.pid, other_id.pid]));
        let ids = [stuck_id, other_id];
        here.open(&BTreeSet::from(ids));
        assert_eq!(here.open.len(), 2);
        // Simulates counters on a hung file system: every read blocks.
        let handles = Arc::clone(&here.open[&stuck_id].handles);
        let hangs = handles.lock().unwrap();
        for turn in 0..3 {
            let began = here.clock.now();
            let looked: BTreeMap<Id, Looked> = here.look(&ids).into_iter().collect();
            assert!(matches!(looked[&other_id], Looked::Seen(_)), "{looked:?}");
            assert!(matches!(&looked[&stuck_id], Looked::Unseen(why) if why.contains("300 ms")), "{looked:?}");
            assert!(turn == 0 || here.clock.now() - began < Duration::from_millis(290), "it was waited for again");
        }
        assert_eq!((here.set_aside(), here.crew.stuck(), here.is_blind()), (1, 1, false));
        // The hang ends, but no turn waits for the stuck worker.
        drop(hangs);
        let is_seen = |(id, looked): &(Id, Looked)| *id == stuck_id && matches!(looked, Looked::Seen(_));
        assert!(waited(|| here.look(&ids).iter().any(is_seen)), "a process that responds again is seen again");
        let hangs = handles.lock().unwrap();
        here.look(&ids);
        assert_eq!(here.close(stuck_id), None);
        drop(hangs);
        [&mut stuck, &mut other].into_iter().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
    }

    #[test]
    fn a_repeatedly_late_reading_backs_off() {
        let mut late = Late::default();
        let mut tries = Vec::new();
        for turn in 0..600 {
            if late.is_due() {
                tries.push(turn);
                late.again();
            }
        }
        assert_eq!(tries, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]);
        assert!(!Late { out: true, ..Late::default() }.is_due());
    }

    #[test]
    fn each_cgroup_has_a_watched_jvm_before_any_has_two() {
        let id = |pid: u32| Id { pid, start_ticks: u64::from(pid) };
        // 2,000 from one container start first, followed by three others.
        let ids: BTreeSet<Id> = (1..=2000).chain([3001, 3002, 3003]).map(id).collect();
        let cgroup = |pid: u32| Some(if pid <= 2000 { b"/crowd".to_vec() } else { pid.to_string().into_bytes() });
        let (watched, left_out) = fair(ids.clone(), 400, cgroup);
        assert_eq!((watched.len(), left_out.len()), (400, 1603));
        assert!([3001, 3002, 3003].into_iter().all(|pid| watched.contains(&id(pid))));
        assert!(watched.contains(&id(397)) && left_out.contains(&id(398)), "it keeps its oldest processes");
        assert_eq!(fair(ids.clone(), 2003, cgroup), (ids, BTreeSet::new()));
    }

    #[test]
    fn processes_not_selected_are_opened_only_once() {
        let (mut child, id) = waiting();
        let mut here = here(Which::Unit("nobody.service".to_owned()));
        assert!(opened(&mut here, id).is_none() && here.open.is_empty());
        let ids = BTreeSet::from([id]);
        for _ in 0..3 {
            assert!(here.without_strangers(ids.clone()).is_empty(), "a known non-JVM is skipped");
        }
        // It moves to another cgroup, so it is read again.
        here.strangers.insert(id, b"0::/elsewhere\n".to_vec());
        assert_eq!(here.without_strangers(ids.clone()), ids);
        assert!(opened(&mut here, id).is_none());
        // After its end, no state is left.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(here.without_strangers(BTreeSet::new()).is_empty() && here.strangers.is_empty());
    }
}
