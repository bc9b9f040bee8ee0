//! The subject's other processes on the timeline: found once a second, read at every sample.

use crate::clock::Clock;
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::hsperfdata::{GcTotal, HsPerf};
use crate::observe::procfs::Process;
use crate::observe::smaps::read_rollup;
use crate::record::Sample;
use crate::scenario::Kind;
use crate::subject::processes;
use crate::subject::serving::is_jvm;

/// Scanning all processes of a machine takes a few milliseconds, and PSS makes the kernel walk their pages.
const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// More than any subject has.
const MEMBERS_MAX: usize = 200;

/// How to find a subject's processes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members {
    /// All descendants of this pid, the guardian.
    Below(u32),
    /// All processes in the serving process's memory cgroup.
    OfCgroup,
}

/// The processes of a subject, and its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) members: Members,
    /// The serving process, which is read separately.
    pub(crate) main: u32,
    pub(crate) kind: Kind,
}

/// The processes found by the last scan.
pub(crate) struct TreeSamples {
    group: Group,
    clock: Clock,
    members: Vec<Member>,
    look_due_ns: u64,
    /// Collections of ended JVMs, so that the sum never falls.
    gc_ended: GcTotal,
}

struct Member {
    process: Process,
    counters: Option<HsPerf>,
    gc: Option<GcTotal>,
}

impl TreeSamples {
    pub(crate) fn new(group: Group, clock: Clock) -> Self {
        Self { group, clock, members: Vec::new(), look_due_ns: 0, gc_ended: GcTotal::default() }
    }

    /// Adds all processes to the serving one's sample; once a second, with PSS.
    pub(crate) fn add_to(&mut self, sample: &mut Sample, main: &Process) {
        let now_ns = self.clock.now_ns();
        let looks = now_ns >= self.look_due_ns;
        if looks {
            self.look(main);
            self.look_due_ns = now_ns + LOOK_EVERY_NS;
        }
        let (clock, mut ended) = (self.clock, self.gc_ended);
        self.members.retain_mut(|member| {
            let lives = member.add_to(sample, &clock).is_some();
            if let Some(gc) = member.gc.filter(|_| !lives) {
                (ended.count, ended.ns) = (ended.count + gc.count, ended.ns + gc.ns);
            }
            lives
        });
        self.gc_ended = ended;
        let jvms = self.members.iter().filter_map(|member| member.gc);
        let (count, ns) = jvms.fold((ended.count, ended.ns), |sum, gc| (sum.0 + gc.count, sum.1 + gc.ns));
        if count > 0 || sample.gc_count.is_some() {
            sample.gc_count = Some(sample.gc_count.unwrap_or(0) + count);
            sample.gc_ms = Some(sample.gc_ms.unwrap_or(0.0) + ns as f64 / 1e6);
        }
        if looks {
            let all = std::iter::once(main).chain(self.members.iter().map(|member| &member.process));
            sample.pss_bytes = all.map(|process| Some(read_rollup(process, &clock).ok()?.value.pss.0)).sum();
        }
    }

    fn look(&mut self, main: &Process) {
        let found = match self.group.members {
            Members::Below(guardian) => processes::descendants(guardian),
            Members::OfCgroup => processes::living(MemoryCgroup::of(main).map(|own| own.pids()).unwrap_or_default()),
        };
        for found in found {
            let known = |member: &Member| {
                member.process.pid() == found.pid && member.process.start_ticks() == found.started_ticks
            };
            // A process may have become a JVM.
            if found.pid == self.group.main || self.members.len() >= MEMBERS_MAX {
                continue;
            }
            let counters = |process: &Process| {
                let asks = self.group.kind == Kind::Jvm && is_jvm(found.pid) == Some(true);
                asks.then(|| HsPerf::open(process, &self.clock).ok()).flatten()
            };
            match self.members.iter_mut().find(|member| known(member)) {
                Some(member) if member.counters.is_none() => member.counters = counters(&member.process),
                Some(_) => {}
                None => {
                    let Ok(process) = Process::open(found.pid) else { continue };
                    let counters = counters(&process);
                    self.members.push(Member { process, counters, gc: None });
                }
            }
        }
    }
}

impl Member {
    /// `None` if it is gone.
    fn add_to(&mut self, sample: &mut Sample, clock: &Clock) -> Option<()> {
        let (own, gc) = read(&self.process, self.counters.as_mut(), clock)?;
        let add = |to: &mut Option<u64>, more: Option<u64>| {
            *to = [*to, more].into_iter().flatten().reduce(u64::saturating_add)
        };
        sample.rss_bytes += own.rss_bytes;
        add(&mut sample.anon_bytes, own.anon_bytes);
        add(&mut sample.threads, own.threads);
        add(&mut sample.heap_used_bytes, own.heap_used_bytes);
        add(&mut sample.heap_committed_bytes, own.heap_committed_bytes);
        add(&mut sample.metaspace_used_bytes, own.metaspace_used_bytes);
        self.gc = gc.or(self.gc);
        Some(())
    }
}

/// A process's part of a sample, and its collections; `None` if it is gone.
pub(super) fn read(
    process: &Process,
    counters: Option<&mut HsPerf>,
    clock: &Clock,
) -> Option<(Sample, Option<GcTotal>)> {
    let statm = process.statm(clock).ok()?.value;
    let threads = process.threads_count()?;
    if statm.resident.0 == 0 {
        return None;
    }
    let jvm = counters.and_then(|counters| counters.sample(clock).ok()).map(|reading| reading.value);
    let sample = Sample {
        rss_bytes: statm.resident.0,
        // Both from the same kernel counters.
        anon_bytes: Some(statm.resident.0.saturating_sub(statm.shared.0)),
        threads: Some(threads),
        heap_used_bytes: jvm.map(|jvm| jvm.heap_used.0),
        heap_committed_bytes: jvm.map(|jvm| jvm.heap_committed.0),
        metaspace_used_bytes: jvm.map(|jvm| jvm.metaspace_used.0),
        ..Sample::default()
    };
    Some((sample, jvm.and_then(|jvm| jvm.gc)))
}
