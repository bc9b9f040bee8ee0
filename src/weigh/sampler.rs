//! The timeline: a thread that samples cheap sources at 10–100 Hz during a trial.

use super::compilations::Compilations;
use super::direct::Latest;
use super::direct_reader::{DirectReader, DirectTimeline};
use super::tree_samples::{self, Group, Members, TreeSamples};
use crate::clock::{Clock, seconds_since};
use crate::load::Control;
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::hotspot::compiling::Compilers;
use crate::observe::hotspot::threads::Threads;
use crate::observe::hsperfdata::HsPerf;
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::record::{CompilationRecord, Sample};
use crate::scenario::{Asking, Kind};
use loadline_jvm::accounting::Allocation;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running sampler; stops on drop.
pub(crate) struct Sampler {
    shared: Arc<SamplerState>,
    thread: Option<JoinHandle<Cost>>,
}

#[derive(Default)]
struct SamplerState {
    stop: AtomicBool,
    /// The load of the current phase, whose counts are added to samples.
    load: Mutex<Option<Arc<Control>>>,
    direct: Arc<Latest>,
}

/// The cost of sampling, and results that span several samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cost {
    pub(crate) samples: u64,
    pub(crate) ns: u64,
    /// Compilations during which RSS grew, largest growth first.
    pub(crate) compilations: Vec<CompilationRecord>,
}

/// The sampler's own handles, not shared with marks.
pub(crate) struct Sources {
    pub(crate) pid: u32,
    pub(crate) kind: Kind,
    /// How to find the subject's other processes, if they are measured too.
    pub(crate) members: Option<Members>,
    pub(crate) own_cgroup: bool,
    pub(crate) origin_ns: u64,
    pub(crate) hz: u32,
    /// When to attach for data that may be readable from outside the JVM.
    pub(crate) asking: Asking,
    pub(crate) clock: Clock,
}

/// Readers of the serving JVM's tables.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// Allocation counters; `None` if unknown.
    pub(crate) threads: Option<Threads>,
    /// Direct memory; `None` if unreadable.
    pub(crate) direct: Option<DirectReader>,
    /// The compilers' tasks; `None` if unreadable.
    pub(crate) compilers: Option<Compilers>,
}

/// The interval between readings of the JVM's counters: those of 200 threads take 0.1 ms.
const INSIDE_EVERY_NS: u64 = 1_000_000_000;

impl Sampler {
    /// Starts sampling; sends `wrap(sample)` until the process is gone or this is dropped.
    pub(crate) fn start<M: Send + 'static>(
        sources: Sources,
        inside: Inside,
        to: Sender<M>,
        wrap: impl Fn(Sample) -> M + Send + 'static,
    ) -> Self {
        let shared = Arc::new(SamplerState::default());
        let in_thread = Arc::clone(&shared);
        let thread =
            std::thread::spawn(move || run(&sources, inside, &in_thread, |sample| to.send(wrap(sample)).is_ok()));
        Self { shared, thread: Some(thread) }
    }

    /// Sets the load whose counts are added to samples.
    pub(crate) fn watch(&self, load: Option<Arc<Control>>) {
        *self.shared.load.lock().unwrap_or_else(PoisonError::into_inner) = load;
    }

    /// Where to put replies about direct memory.
    pub(crate) fn direct(&self) -> Arc<Latest> {
        Arc::clone(&self.shared.direct)
    }

    pub(crate) fn stop(mut self) -> Cost {
        self.halt()
    }

    fn halt(&mut self) -> Cost {
        self.shared.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Cost::default() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.halt();
    }
}

fn run(sources: &Sources, inside: Inside, shared: &SamplerState, send: impl FnMut(Sample) -> bool) -> Cost {
    let clock = sources.clock;
    let Ok(process) = Process::open(sources.pid) else { return Cost::default() };
    let mut counters = if sources.kind == Kind::Jvm { HsPerf::open(&process, &clock).ok() } else { None };
    let group = sources.members.map(|members| Group { members, main: sources.pid, kind: sources.kind });
    let mut beside = group.map(|group| TreeSamples::new(group, clock));
    let cgroup = sources.own_cgroup.then(|| MemoryCgroup::of(&process).ok()).flatten();
    let mut allocation = inside.threads.and_then(|threads| Allocation::open(&process, threads).ok());
    let direct = inside.direct.and_then(|reader| {
        let memory = ProcessMemory::open(&process).ok()?;
        Some(DirectTimeline::open(memory, reader, &clock))
    });
    let (mut direct, mut inside_due_ns) = (direct, 0);
    let mut compilations = inside.compilers.and_then(|compilers| Compilations::open(&process, compilers));
    let take = || {
        let begin_ns = clock.now_ns();
        let (mut sample, gc) = tree_samples::read(&process, counters.as_mut(), &clock)?;
        (sample.gc_count, sample.gc_ms) = gc.map(|gc| (gc.count, gc.ns as f64 / 1e6)).unzip();
        sample.charge_bytes = cgroup.as_ref().and_then(|cgroup| cgroup.usage(&clock).ok()).map(|usage| usage.value.0);
        sample.at_s = seconds_since(sources.origin_ns, begin_ns);
        if let Some(beside) = &mut beside {
            beside.add_to(&mut sample, &process);
        }
        if let Some(load) = shared.load.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            (sample.ok, sample.failed) = (load.ok(), load.failed());
        }
        if let Some(compilations) = &mut compilations {
            if begin_ns >= inside_due_ns {
                compilations.look(&process);
            }
            compilations.sample(sample.at_s, sample.rss_bytes);
        }
        sample.direct_bytes = shared.direct.take();
        if begin_ns >= inside_due_ns {
            inside_due_ns = begin_ns + INSIDE_EVERY_NS;
            sample.direct_bytes =
                direct.as_mut().and_then(|direct| direct.bytes(&process, &clock)).or(sample.direct_bytes);
            sample.allocated_bytes = allocation.as_mut().and_then(Allocation::so_far).map(|so_far| so_far.bytes);
        }
        Some(sample)
    };
    let cost = repeat(sources.hz, clock, &shared.stop, take, send);
    Cost { compilations: compilations.map(Compilations::finish).unwrap_or_default(), ..cost }
}

/// Samples at this frequency until stopped, sampling fails, or the receiver is gone.
fn repeat(
    hz: u32,
    clock: Clock,
    stop: &AtomicBool,
    mut take: impl FnMut() -> Option<Sample>,
    mut send: impl FnMut(Sample) -> bool,
) -> Cost {
    let mut cost = Cost::default();
    let period_ns = 1_000_000_000 / u64::from(hz.max(1));
    let mut due_ns = clock.now_ns();
    while !stop.load(Ordering::Relaxed) {
        let begin_ns = clock.now_ns();
        let Some(sample) = take() else { break };
        cost.samples += 1;
        cost.ns += clock.now_ns() - begin_ns;
        if !send(sample) {
            break;
        }
        // A late sample does not speed up the next ones: missed periods are skipped.
        due_ns = (due_ns + period_ns).max(clock.now_ns());
        clock.park(Duration::from_nanos(due_ns.saturating_sub(clock.now_ns())));
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start times of samples in ms. `took_ms` has the duration of each sample, and their number.
    fn times(hz: u32, took_ms: &[u64]) -> (Vec<u64>, Cost) {
        let (clock, stop) = (Clock::made_up(), AtomicBool::new(false));
        let (mut begun_ms, mut took) = (Vec::new(), took_ms.iter());
        let take = || {
            let sample = Sample { at_s: clock.now_s(), ..Sample::default() };
            clock.sleep(Duration::from_millis(*took.next()?));
            Some(sample)
        };
        let send = |sample: Sample| {
            begun_ms.push((sample.at_s * 1e3).round() as u64);
            true
        };
        let cost = repeat(hz, clock, &stop, take, send);
        (begun_ms, cost)
    }

    #[test]
    fn samples_keep_their_rhythm_and_their_cost_is_counted() {
        let (begun_ms, cost) = times(10, &[0, 1, 99, 5]);
        assert_eq!(begun_ms, [0, 100, 200, 300]);
        assert_eq!((cost.samples, cost.ns), (4, 105_000_000));
    }

    #[test]
    fn missed_periods_are_skipped() {
        // 1.05 s are ten periods: the next sample follows immediately, then the rhythm continues.
        let (begun_ms, _) = times(10, &[0, 1050, 0, 0, 0]);
        assert_eq!(begun_ms, [0, 100, 1150, 1250, 1350]);
        let (begun_ms, _) = times(10, &[0, 550, 0, 0, 0]);
        assert_eq!(begun_ms, [0, 100, 650, 750, 850], "a missed period is not made up for");
    }

    #[test]
    fn sampling_ends_with_the_process_the_listener_or_a_stop() {
        assert_eq!(times(10, &[]).1.samples, 0);
        let (clock, stop) = (Clock::made_up(), AtomicBool::new(false));
        let sample = || Some(Sample::default());
        assert_eq!(repeat(10, clock, &stop, sample, |_| false).samples, 1);
        let stops = |sample: Sample| {
            stop.store(sample.rss_bytes == 0, Ordering::Relaxed);
            true
        };
        assert_eq!(repeat(10, clock, &stop, sample, stops).samples, 1);
        assert_eq!(clock.now(), Duration::from_millis(100), "the last period is awaited unless the thread is unparked");
    }

    #[test]
    fn only_a_living_process_is_sampled() {
        let sources = |pid| Sources {
            pid,
            kind: Kind::Native,
            members: None,
            own_cgroup: false,
            origin_ns: 0,
            hz: 10,
            asking: Asking::default(),
            clock: Clock::made_up(),
        };
        let (shared, mut rss_bytes) = (SamplerState::default(), 0);
        let cost = run(&sources(std::process::id()), Inside::default(), &shared, |sample| {
            rss_bytes = sample.rss_bytes;
            false
        });
        assert!(cost.samples == 1 && rss_bytes > 0);
        assert_eq!(run(&sources(u32::MAX), Inside::default(), &shared, |_| true).samples, 0);
    }
}
