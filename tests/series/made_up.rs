//! A server as a pure function for tests: a trial's results follow from heap, limit, rate, and seed, without processes
//! and clocks.

use loadline::doubt::{Doubt, MemoryPool};
use loadline::error::Error;
use loadline::numbers::SplitMix64;
use loadline::record::{
    AccountRecord, CgroupRecord, ClassesRecord, Conditions, DirectRecord, End, EndCause, Heap, Machine, Mark, Missed,
    Model, Outcome, OwnerRecord, PhaseRecord, Quantiles, SubjectWork, Trial, Unit,
};
use loadline::scenario::{Look, Pages, PhaseKind, Scenario, TrialPlan, parse};
use loadline::series::{Executor, Made};
use loadline::trial::{Event, Sink};
use loadline::units::{Bytes, MIB};
use std::collections::BTreeMap;
use std::path::Path;

/// An ample limit.
pub(crate) const LIMIT_MAX: u64 = 2048 * MIB;
/// p99 of a healthy server, and of an unhealthy one, in ms.
const P99_WELL: f64 = 8.0;
const P99_ILL: f64 = 812.0;
/// The duration of a phase.
const PHASE_S: f64 = 10.0;

/// Ignores all events.
pub(crate) struct Silence;

impl Sink for Silence {
    fn receive(&mut self, _: &Event<'_>) {}
}

/// A scenario with a steady phase.
pub(crate) fn scenario(name: &str, more: &str) -> Scenario {
    let text = format!(
        "name: {name}\nsubject: {{command: [java, '{{jvm}}', -jar, x.jar, '{{port}}']}}\n{more}\n\
         load: [{{steady: {{constant: {{rate: 200, duration: 10s}}, get: /}}}}]\n"
    );
    parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A server's memory and capacity.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) live: u64,
    /// The smallest heap relative to the live set.
    pub(crate) slack: f64,
    /// Everything except heap and files.
    pub(crate) native: u64,
    /// Files that it uses.
    pub(crate) file: u64,
    /// The share of files that it cannot do without.
    pub(crate) hot: f64,
    /// The heap's size without a bound.
    pub(crate) greed: u64,
    /// Direct memory in use; part of `native`.
    pub(crate) direct: u64,
    /// Direct memory without a ceiling, including buffers that wait for a collection.
    pub(crate) direct_greed: u64,
    /// The smallest heap for startup, if that exceeds the load's need.
    pub(crate) start: u64,
    /// Up to this relative distance above the smallest limit, file pages are refaulted.
    pub(crate) strain: f64,
    /// Whether the JVM sizes the heap based on the limit, like HotSpot, unless an option sets it.
    pub(crate) by_limit: bool,
    /// Collection cost: CPU per request grows by this factor times the ratio of live bytes to the heap beyond them.
    pub(crate) churn: f64,
    /// The maximum rate, per second.
    pub(crate) rate_max: f64,
    /// Relative standard deviation between fresh processes, of memory and cost.
    pub(crate) noise: f64,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            live: 20 * MIB,
            slack: 1.25,
            native: 60 * MIB,
            file: 50 * MIB,
            hot: 0.55,
            greed: 200 * MIB,
            direct: 0,
            direct_greed: 0,
            start: 0,
            strain: 0.0,
            by_limit: false,
            churn: 0.0,
            rate_max: 4321.0,
            noise: 0.0,
        }
    }
}

impl Server {
    /// The smallest heap, in whole MiB.
    pub(crate) fn heap_min(&self) -> u64 {
        ((self.live as f64 * self.slack) as u64).div_ceil(MIB) * MIB
    }

    /// The smallest heap with which it becomes ready.
    pub(crate) fn heap_to_start(&self) -> u64 {
        self.start.max(self.live)
    }

    /// The smallest limit with this heap.
    pub(crate) fn limit_min(&self, heap: u64) -> u64 {
        self.native + heap.min(self.greed) + (self.file as f64 * self.hot) as u64
    }
}

/// A random failure in a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mishap {
    /// Other programs use the CPU, and responses are late.
    NoisyMachine,
    /// Responses are late without a visible reason.
    Late,
    /// The load's figures are missing.
    Unmeasured,
    /// The subject dies.
    Dies,
    /// The machine fails, and the trial has no data.
    MachineFails,
    /// The user interrupts.
    Interrupted,
    /// This many bytes of its file pages are charged to others.
    SharedPages(u64),
    /// The guard stops it because of late responses.
    Hopeless,
}

/// The heap that HotSpot chooses: half of a small limit, a quarter of a large one.
pub(crate) fn heap_by_limit(limit: u64) -> u64 {
    (limit / 2).min((limit / 4).max(125 * MIB))
}

/// Simulates trials.
#[derive(Debug, Clone, Default)]
pub(crate) struct MadeUpTrials {
    /// The server per configuration; the default is named "".
    pub(crate) servers: BTreeMap<String, Server>,
    /// Mishaps by trial index.
    pub(crate) mishaps: BTreeMap<u32, Mishap>,
    pub(crate) seed: u64,
    /// All requested plans.
    pub(crate) plans: Vec<TrialPlan>,
}

impl MadeUpTrials {
    pub(crate) fn of(server: Server) -> Self {
        Self { servers: [(String::new(), server)].into(), ..Self::default() }
    }

    pub(crate) fn with(mut self, index: u32, mishap: Mishap) -> Self {
        self.mishaps.insert(index, mishap);
        self
    }

    fn server(&self, name: &str) -> Server {
        self.servers.get(name).or(self.servers.get("")).cloned().unwrap_or_default()
    }

    /// 1 with a fresh process's noise, reproducible for the same trial and seed.
    fn wobble(&self, plan: &TrialPlan, server: &Server) -> f64 {
        let mut random = SplitMix64::new(self.seed ^ (u64::from(plan.index) << 20));
        1.0 + server.noise * random.normal()
    }
}

impl Executor for MadeUpTrials {
    fn conduct(&mut self, plan: &TrialPlan, _sink: &mut dyn Sink) -> Made {
        self.plans.push(plan.clone());
        let server = self.server(&plan.configuration.name);
        let mishap = self.mishaps.get(&plan.index);
        if let Some(error) = match mishap {
            Some(Mishap::MachineFails) => Some(Error::machine("no room for a trial")),
            Some(Mishap::Interrupted) => Some(Error::interrupted()),
            _ => None,
        } {
            let trial = Trial { why: Some(error.what.clone()), ..fresh(plan) };
            return Made { error: Some(error), ..Made::new(trial) };
        }
        let mut made = Making { plan, server: &server, wobble: self.wobble(plan, &server) }.make();
        befall(mishap, &mut made);
        made
    }
}

/// A trial being simulated.
struct Making<'a> {
    plan: &'a TrialPlan,
    server: &'a Server,
    wobble: f64,
}

impl Making<'_> {
    /// An option's value in bytes.
    fn option(&self, name: &str) -> Option<u64> {
        let options = self.plan.configuration.jvm_options();
        options.iter().rev().find_map(|option| option.strip_prefix(name)?.parse::<Bytes>().ok()).map(|bytes| bytes.0)
    }

    fn heap(&self) -> u64 {
        let limit = self.plan.configuration.limit.filter(|_| self.server.by_limit);
        let chosen = limit.map_or(self.server.greed, |limit| heap_by_limit(limit.0));
        self.option("-Xmx").unwrap_or(chosen)
    }

    /// Whether no load is sent.
    fn starts_alone(&self) -> bool {
        self.plan.load.is_empty()
    }

    fn heap_needed(&self) -> u64 {
        let to_start = self.server.heap_to_start();
        if self.starts_alone() { to_start } else { self.server.heap_min().max(to_start) }
    }

    /// The direct-memory ceiling: HotSpot uses the heap's by default.
    fn direct_max(&self) -> u64 {
        self.option("-XX:MaxDirectMemorySize=").unwrap_or(self.heap())
    }

    /// Direct memory if only its own ceiling triggers a collection.
    fn direct_held(&self) -> u64 {
        self.server.direct_greed.min(self.direct_max()).max(self.server.direct)
    }

    /// The `OutOfMemoryError` of a server with too little of a pool, if any.
    fn ran_out(&self) -> Option<Doubt> {
        let (error, pool) = match () {
            () if self.heap() < self.heap_needed() => ("Java heap space", MemoryPool::Other),
            () if self.direct_max() < self.server.direct && !self.starts_alone() => {
                ("Cannot reserve 8192 bytes of direct buffer memory", MemoryPool::DirectMemory)
            }
            () => return None,
        };
        Some(Doubt::OutOfMemoryError { error: format!("java.lang.OutOfMemoryError: {error}"), pool })
    }

    fn make(&self) -> Made {
        let (server, heap) = (self.server, self.heap());
        let resident = heap.min(server.greed);
        let waiting = self.direct_held() - server.direct;
        let anon = ((server.native + waiting + resident) as f64 * self.wobble) as u64;
        let files = if self.plan.pages == Some(Pages::Warm) { 0 } else { server.file };
        let limit = self.plan.configuration.limit.map_or(u64::MAX, |limit| limit.0);
        let listed = self.plan.list_files;
        let mut made = Made {
            seconds: if self.starts_alone() { 3.0 } else { 20.0 },
            classes: listed.then_some(ClassesRecord { jdk: 27_000, application: 3_000 }),
            read_ahead_bytes: listed.then_some(512 << 10),
            ..Made::new(fresh(self.plan))
        };
        let trial = &mut made.trial;
        trial.ready_s = Some(0.4);
        trial.cgroup = self.plan.configuration.limit.map(|limit| CgroupRecord {
            limit_bytes: limit.0,
            peak_bytes: Some((anon + files).min(limit.0)),
            anon_peak_bytes: Some(anon.min(limit.0)),
            file_bytes: Some(files.min(limit.0.saturating_sub(anon))),
            ..CgroupRecord::default()
        });
        trial.rss_bytes_peak = Some(anon + files);
        if let Some(doubt) = self.ran_out() {
            if heap < server.heap_to_start() {
                trial.ready_s = None;
            }
            trial.doubts.push(doubt.into());
            return ended(made, EndCause::OutOfMemoryError, "the server died after an OutOfMemoryError");
        }
        if limit < anon {
            if let Some(cgroup) = &mut trial.cgroup {
                cgroup.oom_kills = 1;
            }
            return ended(made, EndCause::OomKill, "the server was killed because its memory limit was reached");
        }
        let need = anon + (files as f64 * server.hot) as u64;
        let thrashes = limit < need;
        if let Some(cgroup) = trial.cgroup.as_mut() {
            cgroup.file_refaults = self.refaults(limit, need);
        }
        trial.phases = self.phases(if thrashes { P99_ILL } else { P99_WELL });
        if self.plan.look == Look::Full {
            trial.marks = self.plan.marks.iter().map(|mark| self.mark(mark.word(), anon + files, resident)).collect();
        }
        trial.outcome = Outcome::Completed;
        made
    }

    /// Refaulted file pages: as many as a disk can read below the need, fewer with every step above it.
    fn refaults(&self, limit: u64, need: u64) -> u64 {
        const THRASHES: u64 = 100_000;
        let pages = self.server.file as f64 / 4096.0;
        let above = limit as f64 / need as f64 - 1.0;
        match () {
            () if above < 0.0 => THRASHES,
            () if self.server.strain > 0.0 => {
                // Refaults do not stop at the edge. Two steps above it, they are rare, and with more room, rarer still.
                (pages * (20.0 * (-above / 0.006).exp() + 0.3 * (-above / self.server.strain * 3.0).exp())) as u64
            }
            () => 0,
        }
    }

    fn phases(&self, p99: f64) -> Vec<PhaseRecord> {
        let collecting = self.server.churn * self.server.live as f64 / (self.heap() - self.server.live) as f64;
        let works = self.plan.load.iter().filter_map(|phase| match &phase.kind {
            PhaseKind::Work(work) => Some((phase, work)),
            _ => None,
        });
        let of = |rate: Option<f64>| {
            let achieved_per_s = rate.map_or(self.server.rate_max, |rate| rate.min(self.server.rate_max)) / self.wobble;
            let times = Quantiles { p50: p99 / 8.0, p99: p99 * self.wobble, max: p99 * 2.0, ..Quantiles::default() };
            let ok = (achieved_per_s * PHASE_S) as u64;
            PhaseRecord {
                model: if rate.is_some() { Model::Open } else { Model::Closed },
                seconds: PHASE_S,
                requests: ok,
                ok,
                offered_per_s: rate,
                achieved_per_s: if rate.is_some() { achieved_per_s.min(rate.unwrap_or(0.0)) } else { achieved_per_s },
                response_ms: rate.map(|_| times),
                service_ms: Some(times),
                subject: SubjectWork {
                    cpu_s: Some(ok as f64 * 200e-6 * self.wobble * (1.0 + collecting)),
                    gc_count: Some(3),
                    gc_ms: Some(20.0),
                    ..SubjectWork::default()
                },
                ..PhaseRecord::default()
            }
        };
        let named = |(phase, work): (&loadline::scenario::Phase, &loadline::scenario::Work)| PhaseRecord {
            name: phase.name.clone(),
            ..of(work.schedule.rate().map(|rate| rate.max()))
        };
        works.map(named).collect()
    }

    fn mark(&self, name: &str, rss_bytes: u64, resident: u64) -> Mark {
        let owner = OwnerRecord { name: "java_heap.used".to_owned(), rss_bytes: resident, ..OwnerRecord::default() };
        let held = if name == "collected" { self.server.direct } else { self.direct_held() };
        let direct = DirectRecord { reserved_bytes: held, ..DirectRecord::default() };
        Mark {
            name: name.to_owned(),
            rss_bytes,
            direct: Some(direct).filter(|_| held > 0),
            file_bytes: Some(self.server.file),
            heap: Heap { live_bytes: Some(self.server.live), ..Heap::default() },
            account: Some(AccountRecord { owners: vec![owner], ..AccountRecord::default() }),
            ..Mark::default()
        }
    }
}

/// The conditions of a simulated run.
pub(crate) fn conditions(scenario: &Scenario) -> Conditions {
    let machine = Machine {
        cores: 2,
        memory_bytes: 8 << 30,
        kernel: "6.18.0".to_owned(),
        cgroup: "v2".to_owned(),
        ..Machine::default()
    };
    Conditions {
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: scenario.name.clone(),
        started: "2026-11-22T12:00:00Z".to_owned(),
        machine,
        seed: scenario.seed,
        command: "loadline run made-up.loadline.yaml".to_owned(),
        ..Conditions::default()
    }
}

fn fresh(plan: &TrialPlan) -> Trial {
    let limit_bytes = plan.configuration.limit.map(|limit| limit.0);
    Trial { repeats: plan.repeats, limit_bytes, ..Trial::new(&plan.configuration.name, plan.block, plan.index) }
}

/// A trial that ended with its subject before any measurement.
fn ended(made: Made, cause: EndCause, what: &str) -> Made {
    let outcome = if cause == EndCause::OomKill { Outcome::Killed } else { Outcome::SubjectFailed };
    let end = End { cause, exit_code: None, signal: None, text: what.to_owned(), last_lines: Vec::new() };
    let trial = Trial {
        outcome,
        why: Some(what.to_owned()),
        end: Some(end),
        phases: Vec::new(),
        marks: Vec::new(),
        ..made.trial
    };
    Made { error: Some(Error::subject(what)), trial, ..made }
}

fn befall(mishap: Option<&Mishap>, made: &mut Made) {
    let late = |made: &mut Made| {
        for phase in &mut made.trial.phases {
            for times in [&mut phase.response_ms, &mut phase.service_ms].into_iter().flatten() {
                times.p99 = P99_ILL;
            }
        }
    };
    match mishap {
        None | Some(Mishap::MachineFails | Mishap::Interrupted) => {}
        Some(Mishap::Late) => late(made),
        Some(Mishap::NoisyMachine) => {
            late(made);
            let phase = "steady".to_owned();
            let noisy =
                Doubt::NoisyMachine { phase, foreign_cores: Some(0.8), steal_share: 0.0, memory_stall_share: None };
            made.trial.doubts.push(noisy.into());
        }
        Some(Mishap::Unmeasured) => {
            for phase in &mut made.trial.phases {
                (phase.response_ms, phase.service_ms) = (None, None);
            }
        }
        Some(Mishap::Dies) => {
            let gone = std::mem::replace(made, Made::new(Trial::new("", 0, 0)));
            *made = ended(gone, EndCause::ByItself, "the server died: exit code 7");
        }
        Some(Mishap::SharedPages(bytes)) => made.shared_bytes = Some(*bytes),
        Some(Mishap::Hopeless) => {
            let text = "response.steady: 22 answers took longer than 50 ms, and 13 may".to_owned();
            let metric = "response.steady".to_owned();
            let missed = Missed { metric, unit: Unit::Count, value: 22.0, bound: 13.0, text };
            let what = format!("the trial was ended early: {}", missed.text);
            (made.trial.outcome, made.trial.why) = (Outcome::SubjectFailed, Some(what.clone()));
            made.trial.hopeless = Some(missed);
            made.error = Some(Error::subject(what));
        }
    }
}
