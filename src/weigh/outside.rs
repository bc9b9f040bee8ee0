//! A running JVM, read repeatedly at almost no cost: procfs, its counters file, its tables, its cgroup. Does not attach
//! to it or pause it.

use super::direct_reader::{DirectReader, DirectTimeline};
use super::identity::{self, harmless};
use crate::clock::Clock;
use crate::kernel::cgroup::Limit;
use crate::kernel::process::age;
use crate::observe::Unavailable;
use crate::observe::cgroup::{CgroupMemory, MemoryCgroup};
use crate::observe::charged::{self, ChargeRow};
use crate::observe::hotspot::flags::Flags;
use crate::observe::hsperfdata::{HsPerf, JvmSample};
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::units::Bytes;
use loadline_jvm::accounting::Allocation;
use loadline_jvm::accounting::JvmTables;
use std::time::Duration;

/// Characters of text kept while the JVM runs; the text may be 1 MiB long.
const TEXT_CHARS_MAX: usize = 500;

/// A JVM's sources, opened once.
#[derive(Debug)]
pub(crate) struct Outside {
    opened: Duration,
    age_when_opened: Duration,
    process: Process,
    counters: Option<HsPerf>,
    /// When to look again for missing counters.
    backoff: Backoff,
    allocation: Option<Allocation>,
    direct: Option<DirectTimeline>,
    cgroup: Option<MemoryCgroup>,
    /// Bounds of its parts, from its flags.
    pub(crate) ceilings: Ceilings,
    /// The start of its command, and its version.
    pub(crate) command: Option<String>,
    pub(crate) vm_version: Option<String>,
    /// `G1`; `None` if its flags do not show it.
    pub(crate) collector: Option<&'static str>,
    /// Its main class or archive, else the kernel's name for it.
    pub(crate) name: String,
    /// Unreadable sources, each with its reason.
    pub(crate) missing: Vec<Unavailable>,
}

/// Bounds of memory parts; `None` if unbounded or unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ceilings {
    pub(crate) heap: Option<Bytes>,
    pub(crate) direct: Option<Bytes>,
    pub(crate) metaspace: Option<Bytes>,
}

/// A reading from outside the JVM; unreadable values are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OutsideReading {
    pub(crate) rss_anon: Bytes,
    pub(crate) rss_file: Bytes,
    pub(crate) rss_shmem: Bytes,
    pub(crate) swap: Bytes,
    pub(crate) threads: u64,
    pub(crate) cpu: Option<Duration>,
    pub(crate) jvm: Option<JvmSample>,
    pub(crate) direct_bytes: Option<u64>,
    pub(crate) allocated_bytes: Option<u64>,
    pub(crate) cgroup: Option<CgroupMemory>,
}

impl Outside {
    /// Opens the available sources of JVM `pid`.
    pub(crate) fn open(pid: u32, clock: &Clock) -> Result<Self, Unavailable> {
        let process = Process::open(pid)?;
        let mut missing = Vec::new();
        let mut note = |cause: Unavailable| missing.push(cause);
        let mut counters = HsPerf::open(&process, clock).map_err(&mut note).ok();
        let identity = counters.as_mut().and_then(|counters| counters.counters(clock).ok());
        let identity = identity.map(|counters| counters.value.identity()).unwrap_or_default();
        let comm = process.stat(clock).map(|stat| stat.value.comm).unwrap_or_default();
        let arguments = process.cmdline_start().unwrap_or_default();
        let name = identity::name(&arguments, identity.command.as_deref(), &comm);
        let start = |text: Option<String>| text.map(|text| harmless(&text, TEXT_CHARS_MAX));
        let (command, vm_version) = (start(identity.command), start(identity.vm_version));
        let cgroup = MemoryCgroup::of(&process).map_err(&mut note).ok();
        let tables = JvmTables::find(&process, clock).map_err(&mut note).ok();
        let mut allocation = tables.as_ref().and_then(|tables| tables.allocation(&process).map_err(&mut note).ok());
        allocation.as_mut().and_then(Allocation::refusal).into_iter().for_each(&mut note);
        let objects = tables.as_ref().and_then(|tables| tables.objects().cloned().map_err(&mut note).ok());
        let reader = objects.map(DirectReader::of);
        // The first scan covers all classes.
        let first = reader.as_ref().and_then(|reader| reader.read(&process, clock).err());
        first.filter(|why| !why.is_early).into_iter().for_each(&mut note);
        // Both use one descriptor for the same memory.
        let memory = match &allocation {
            Some(allocation) => Some(allocation.memory()),
            None => reader.as_ref().and_then(|_| ProcessMemory::open(&process).map_err(&mut note).ok()),
        };
        let direct = reader.zip(memory).map(|(reader, memory)| DirectTimeline::open(memory, reader, clock));
        let flags = tables.as_ref().and_then(|tables| tables.flags(&process, clock).map_err(&mut note).ok());
        let collector = flags.as_ref().and_then(|flags| flags.changed().collector());
        let ceilings = flags.as_ref().map(Ceilings::of).unwrap_or_default();
        let (opened, age_when_opened) = (clock.now(), age(process.start_ticks()).unwrap_or_default());
        Ok(Self {
            opened,
            age_when_opened,
            process,
            counters,
            backoff: Backoff::default(),
            allocation,
            direct,
            cgroup,
            ceilings,
            command,
            vm_version,
            collector,
            name,
            missing,
        })
    }

    /// When it started, in clock ticks since boot.
    pub(crate) fn start_ticks(&self) -> u64 {
        self.process.start_ticks()
    }

    /// Its age, unaffected by wall-clock changes and system suspends.
    pub(crate) fn age(&self, clock: &Clock) -> Duration {
        self.age_when_opened + clock.now().saturating_sub(self.opened)
    }

    pub(crate) fn cgroup(&self) -> Option<&MemoryCgroup> {
        self.cgroup.as_ref()
    }

    /// The other processes in its cgroup, with their anonymous memory.
    pub(crate) fn others(&self, clock: &Clock) -> Vec<ChargeRow> {
        self.cgroup.as_ref().map(|cgroup| charged::others(cgroup, self.process.pid(), clock)).unwrap_or_default()
    }

    /// Whether the process is gone; false if unknown.
    pub(crate) fn has_gone(&self) -> bool {
        self.process.has_gone()
    }

    /// Reads everything; `None` if the process is gone or unreadable.
    pub(crate) fn read(&mut self, clock: &Clock) -> Option<OutsideReading> {
        let status = self.process.status(clock).ok()?.value;
        // A new JVM creates its counters late, and some JVMs have none.
        if self.counters.is_none() && self.backoff.is_due() {
            self.counters = HsPerf::open(&self.process, clock).ok();
        }
        Some(OutsideReading {
            rss_anon: status.rss_anon,
            rss_file: status.rss_file,
            rss_shmem: status.rss_shmem,
            swap: status.swap,
            threads: status.threads,
            cpu: self.process.cpu_time(clock),
            jvm: self.counters.as_mut().and_then(|counters| counters.sample(clock).ok()).map(|read| read.value),
            direct_bytes: self.direct.as_mut().and_then(|direct| direct.bytes(&self.process, clock)),
            allocated_bytes: self.allocation.as_mut().and_then(Allocation::so_far).map(|so_far| so_far.bytes),
            cgroup: self.cgroup.as_ref().and_then(|cgroup| cgroup.read(clock).ok()).map(|read| read.value),
        })
    }
}

/// Exponential back-off of a failed attempt: retry after one reading, two, four, up to [`Backoff::REST_MAX`].
#[derive(Debug, Default)]
struct Backoff {
    /// Readings until the next attempt.
    left: u32,
    rest: u32,
}

impl Backoff {
    const REST_MAX: u32 = 256;

    /// Whether to try at this reading.
    fn is_due(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.rest = (self.rest * 2).clamp(1, Self::REST_MAX);
        self.left = self.rest;
        true
    }
}

impl OutsideReading {
    /// The smallest limit of the cgroup and those above it.
    pub(crate) fn limit(&self) -> Option<&Limit> {
        self.cgroup.as_ref()?.limit.as_ref()
    }
}

impl Ceilings {
    /// From the flags in effect. `MaxDirectMemorySize` of 0 means the heap's maximum; `MaxMetaspaceSize` of 2⁶⁴ − 1,
    /// rounded down, means unbounded.
    fn of(flags: &Flags) -> Self {
        let bytes = |name: &str| flags.get(name)?.parse().ok().map(Bytes);
        let heap = bytes("MaxHeapSize");
        let direct = bytes("MaxDirectMemorySize").map(|set| if set.0 == 0 { heap } else { Some(set) });
        let metaspace = bytes("MaxMetaspaceSize").filter(|most| most.0 < 1 << 60);
        Self { heap, direct: direct.flatten(), metaspace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_counters_are_searched_with_backoff() {
        let mut backoff = Backoff::default();
        let tries: Vec<u32> = (0..40).filter(|_| backoff.is_due()).collect();
        assert_eq!(tries, [0, 2, 5, 10, 19, 36]);
        let a_day = (0..8640).filter(|_| backoff.is_due()).count();
        assert!((30..45).contains(&a_day), "{a_day} attempts in a day of readings every ten seconds");
    }
}
