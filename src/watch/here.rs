//! The JVMs of this machine, as they are.

use super::bounds::Bounds;
use super::column::Column;
use super::kept::{Kept, KilledBy};
use super::kills::Kills;
use super::name::{Name, Place, pods};
use super::sample::Sample;
use super::world::{Found, Id, Look, World};
use crate::clock::Clock;
use crate::kernel::machine::boot_id;
use crate::kernel::oom::OutOf;
use crate::kernel::process::Stat;
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::jvms::Finder;
use crate::observe::kernel_log;
use crate::observe::machine::Machine;
use crate::observe::procfs::Process;
use crate::record::{WatchLabel, WatchLimit, WhyWeighed};
use crate::units::Bytes;
use crate::weigh::{Outside, Seen, harmless};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of the kubelet's links to the logs of containers.
const POD_LINKS: &str = "/var/log/containers";

/// A line for each hierarchy, with a path of at most 4,096 bytes each.
const MEMBERSHIP_BYTES_MAX: u64 = 64 << 10;
/// Of what it runs.
const COMMAND_CHARS_MAX: usize = 500;
/// One that was found so young may not have all its tables yet, and is opened when it is found the next time.
const YOUNG: Duration = Duration::from_secs(5);

/// Which JVMs are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// Every JVM that can be seen.
    All,
    /// Those of these process ids.
    Pids(Vec<u32>),
    /// Those in the memory cgroup of this path below the mount, and in those below it.
    Cgroup(String),
    /// Those of a service of systemd: the system's, or this user's.
    Unit(String),
}

/// Weighs a JVM into a file; what the caller does with the account is not known here.
pub(super) type WeighInto = Box<dyn FnMut(u32, WhyWeighed, &Path) -> Result<(), String>>;

/// This machine.
pub struct Here {
    which: Which,
    clock: Clock,
    finder: Finder,
    open: BTreeMap<Id, Eyes>,
    /// JVMs that are not meant, with what the kernel says of their cgroups: until that changes they are not looked at.
    strangers: BTreeMap<Id, Vec<u8>>,
    memory: Bytes,
    boot_id: Option<String>,
    weigh: WeighInto,
}

/// The sources of one JVM, and what is remembered from look to look.
struct Eyes {
    outside: Outside,
    floor: HeapFloor,
    /// Kills in its cgroup up to the last look.
    oom_kills: Kills,
}

/// What the last collection of the old generation left.
#[derive(Debug, Default)]
struct HeapFloor {
    collections: Option<u64>,
    least: Option<u64>,
}

impl HeapFloor {
    /// The least that was in use since the last old collection; `None` before one was seen to end.
    fn after(&mut self, collections: Option<u64>, used: u64) -> Option<u64> {
        let ended = self.collections.zip(collections).is_some_and(|(before, now)| now > before);
        self.collections = collections;
        self.least = if ended { Some(used) } else { self.least.map(|least| least.min(used)) };
        self.least
    }
}

impl Here {
    /// Watches these; `weigh` is called for an account.
    pub fn new(which: Which, clock: Clock, weigh: WeighInto) -> Self {
        let memory = Machine::read().memory.unwrap_or_default();
        let (finder, open, strangers) = (Finder::default(), BTreeMap::new(), BTreeMap::new());
        Self { which, clock, finder, open, strangers, memory, boot_id: boot_id(), weigh }
    }

    /// Whether a JVM is meant, by the name of its cgroup.
    fn is_meant(&self, cgroup: &str) -> bool {
        match &self.which {
            Which::All | Which::Pids(_) => true,
            Which::Cgroup(path) => Path::new(cgroup).starts_with(PathBuf::from("/").join(path.trim_start_matches('/'))),
            Which::Unit(unit) => Place::of(cgroup).is_unit(unit, rustix::process::geteuid().as_raw()),
        }
    }

    /// Whether one that was found is none that is meant, and remembers it; costs two small files.
    fn is_stranger(&mut self, id: Id) -> bool {
        if matches!(self.which, Which::All | Which::Pids(_)) {
            return false;
        }
        let Some(membership) = membership(id.pid) else { return false };
        let cgroup = Process::open(id.pid).ok().and_then(|process| MemoryCgroup::of(&process).ok());
        let is_stranger = !self.is_meant(&cgroup.map(|cgroup| cgroup.name()).unwrap_or_default());
        if is_stranger {
            self.strangers.insert(id, membership);
        }
        is_stranger
    }

    /// Without those that were not meant when they were looked at, and have stayed in their cgroups since.
    fn without_strangers(&mut self, ids: BTreeSet<Id>) -> BTreeSet<Id> {
        self.strangers.retain(|id, before| ids.contains(id) && membership(id.pid).as_ref() == Some(before));
        ids.into_iter().filter(|id| !self.strangers.contains_key(id)).collect()
    }

    fn found(&self, id: Id, outside: &Outside) -> Found {
        let cgroup = outside.cgroup().map(|cgroup| cgroup.name());
        let place = Place::of(cgroup.as_deref().unwrap_or("/"));
        let pods = if matches!(place, Place::Kubernetes { .. }) { pods(Path::new(POD_LINKS)) } else { BTreeMap::new() };
        let name = Name::of(&place, &outside.name, &pods);
        let age_s = outside.age(&self.clock).as_secs_f64();
        let identity = &outside.identity;
        let kept = Kept {
            name: name.text,
            pid: id.pid,
            started_unix_s: (self.clock.unix_s() - age_s).max(0.0).round() as u64,
            started_ticks: outside.start_ticks(),
            boot_id: self.boot_id.clone(),
            every_ms: 0,
            version: identity.vm_version.as_deref().map(|version| harmless(version, COMMAND_CHARS_MAX)),
            collector: outside.collector.map(str::to_owned),
            command: harmless(identity.command.as_deref().unwrap_or_default(), COMMAND_CHARS_MAX),
            cgroup,
            bounds: Bounds::of(self.memory, &outside.ceilings),
            ..Kept::default()
        };
        let label = |(name, value): (&str, String)| WatchLabel { name: name.to_owned(), value };
        let unreadable = outside.missing.iter().map(ToString::to_string).collect();
        Found { kept, labels: name.labels.into_iter().map(label).collect(), unreadable }
    }
}

impl World for Here {
    fn ids(&mut self) -> (BTreeSet<Id>, u64) {
        let id = |pid: u32| Some(Id { pid, start_ticks: Stat::of(pid).filter(Stat::lives)?.start_ticks });
        if let Which::Pids(pids) = &self.which {
            return (pids.iter().copied().filter_map(id).collect(), 0);
        }
        let found = self.finder.find();
        let ids = self.without_strangers(found.pids.into_iter().filter_map(id).collect());
        (ids, found.hidden.len() as u64)
    }

    fn open(&mut self, id: Id) -> Option<Found> {
        if self.is_stranger(id) {
            return None;
        }
        let outside =
            Outside::open(id.pid, &self.clock).ok().filter(|outside| outside.start_ticks() == id.start_ticks)?;
        let is_asked_for = matches!(self.which, Which::Pids(_));
        if !is_asked_for && !outside.missing.is_empty() && outside.age(&self.clock) < YOUNG {
            return None;
        }
        let found = self.found(id, &outside);
        self.open.insert(id, Eyes { outside, floor: HeapFloor::default(), oom_kills: Kills::default() });
        Some(found)
    }

    fn look(&mut self, id: Id) -> Option<Look> {
        let began_ns = self.clock.now_ns();
        let eyes = self.open.get_mut(&id)?;
        let age = eyes.outside.age(&self.clock);
        let seen = eyes.outside.look(&self.clock)?;
        eyes.oom_kills.saw(seen.cgroup.as_ref().map(|cgroup| cgroup.events.oom_kills), self.clock.now());
        let mut sample = Sample::at(age.as_millis() as u64);
        let limit = seen.limit().filter(|limit| limit.bytes < self.memory);
        let limit = limit.map_or(WatchLimit { bytes: self.memory.0, cgroup: String::new() }, |limit| WatchLimit {
            bytes: limit.bytes.0,
            cgroup: limit.folder.display().to_string(),
        });
        let bounds = Bounds::of(Bytes(limit.bytes), &eyes.outside.ceilings);
        fill(&mut sample, &seen, &bounds, &mut eyes.floor);
        Some(Look { sample, bounds, limit, took_ns: self.clock.now_ns().saturating_sub(began_ns) })
    }

    fn close(&mut self, id: Id) -> Option<KilledBy> {
        let eyes = self.open.remove(&id)?;
        let now = eyes.outside.cgroup().and_then(|cgroup| cgroup.cgroup().oom_kills());
        let counted = eyes.oom_kills.may_be_its_own(now, self.clock.now());
        match kernel_log::killed(id.pid) {
            // The log also has kills of earlier processes of this pid.
            Ok(Some(kill)) if counted || now.is_none() => {
                let cgroup = match kill.of {
                    Some(OutOf::Cgroup(cgroup)) => Some(cgroup),
                    Some(OutOf::Machine) => Some(String::new()),
                    None => None,
                };
                let anon_bytes = kill.anon.map(|anon| anon.0);
                Some(KilledBy { cgroup, anon_bytes, source: "kernel log".to_owned() })
            }
            _ if counted => {
                let limit = eyes.outside.cgroup().and_then(|cgroup| cgroup.cgroup().limit());
                let cgroup = limit.map(|limit| limit.folder.display().to_string());
                Some(KilledBy { cgroup, anon_bytes: None, source: "memory events".to_owned() })
            }
            _ => None,
        }
    }

    fn weigh(&mut self, id: Id, why: WhyWeighed, into: &Path) -> Result<(), String> {
        (self.weigh)(id.pid, why, into)
    }
}

/// What the kernel says of the cgroups of a process; `None` once it has gone.
fn membership(pid: u32) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/cgroup")).ok()?.take(MEMBERSHIP_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

fn fill(sample: &mut Sample, seen: &Seen, bounds: &Bounds, floor: &mut HeapFloor) {
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
        set(Column::Charge, Some(cgroup.usage.0));
        set(Column::AtLimit, Some(cgroup.events.at_limit));
        set(Column::OomKills, Some(cgroup.events.oom_kills));
        // Without a limit the cgroup is none of the JVM's own: it may be that of all processes.
        if seen.limit().is_some_and(|limit| limit.bytes.0 == bounds.memory) {
            set(Column::ChargeAnon, Some(cgroup.charge.anon.0 + cgroup.charge.shmem.0));
            set(Column::ChargeKernel, cgroup.charge.kernel.map(|kernel| kernel.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn a_heap_has_a_floor_once_an_old_collection_ended() {
        let mut floor = HeapFloor::default();
        let seen = [(Some(3), 90), (Some(3), 80), (Some(4), 40), (Some(4), 60), (Some(4), 35), (Some(5), 50)];
        let floors = seen.map(|(collections, used)| floor.after(collections, used));
        assert_eq!(floors, [None, None, Some(40), Some(40), Some(35), Some(50)]);
        assert_eq!(HeapFloor::default().after(None, 10), None, "a collector that counts none");
    }

    fn here(which: Which) -> Here {
        Here::new(which, Clock::start(), Box::new(|_, _, _| Ok(())))
    }

    /// A process that waits for its input to end; with what names it for good.
    #[expect(clippy::disallowed_methods, reason = "any process will do")]
    fn waiting() -> (Child, Id) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let start_ticks = Stat::of(child.id()).unwrap().start_ticks;
        let id = Id { pid: child.id(), start_ticks };
        (child, id)
    }

    #[test]
    fn a_process_that_ends_between_two_looks_is_seen_no_more() {
        let (mut child, id) = waiting();
        let mut here = here(Which::Pids(vec![id.pid]));
        let earlier = Id { start_ticks: id.start_ticks - 1, ..id };
        assert!(here.open(earlier).is_none(), "another process of this pid");
        assert!(here.look(earlier).is_none());
        assert_eq!(here.ids(), (BTreeSet::from([id]), 0));
        let found = here.open(id).unwrap();
        assert!(!found.unreadable.is_empty(), "it is no JVM: {found:?}");
        assert!(found.kept.bounds.memory > 0 && found.kept.started_ticks == id.start_ticks);
        assert!(here.look(id).unwrap().sample.get(Column::RssAnon).is_some());
        child.kill().unwrap();
        // A zombie holds nothing any more, and is none once it was waited for.
        wait_until_ended(id);
        assert!(here.look(id).is_none(), "a zombie");
        child.wait().unwrap();
        assert!(here.look(id).is_none() && here.open(id).is_none());
        assert_eq!(here.ids(), (BTreeSet::new(), 0));
        assert_eq!((here.close(id), here.open.len()), (None, 0));
        assert_eq!(here.close(id), None, "once more");
    }

    fn wait_until_ended(id: Id) {
        let clock = Clock::start();
        while Stat::of(id.pid).is_some_and(|stat| stat.lives()) {
            assert!(clock.now() < Duration::from_secs(60), "{id:?} goes on after SIGKILL");
            clock.sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_not_meant_is_opened_once_and_not_at_each_find() {
        let (mut child, id) = waiting();
        let mut here = here(Which::Unit("nobody.service".to_owned()));
        assert!(here.open(id).is_none() && here.open.is_empty());
        let ids = BTreeSet::from([id]);
        for _ in 0..3 {
            assert!(here.without_strangers(ids.clone()).is_empty(), "it is known");
        }
        // It moves to another cgroup, and is looked at again.
        here.strangers.insert(id, b"0::/elsewhere\n".to_vec());
        assert_eq!(here.without_strangers(ids.clone()), ids);
        assert!(here.open(id).is_none());
        // It ends, and nothing is kept of it.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(here.without_strangers(BTreeSet::new()).is_empty() && here.strangers.is_empty());
    }
}
