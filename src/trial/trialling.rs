//! A running trial: its participants, and the state that its marks and phases share. `conductor` runs the steps; `mark`
//! and `inside` implement marks; `phase`, `own`, and `driver` implement phases.

use super::cgroup_record;
use super::ending;
use super::engine_thread::{self, LoadProgress};
use super::event::{Event, Sink};
use super::files;
use super::guard::Guarding;
use super::markers::Markers;
use super::warming::Warming;
use super::world::{Message, Reports, Stage};
use crate::clock::{Clock, seconds_since};
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::load::Outcome;
use crate::observe::agent::SubjectAgent;
use crate::observe::class_histogram::ClassHistogram;
use crate::observe::procfs::Process;
use crate::observe::thread_purposes::READ_EACH;
use crate::record::{Observer, PhaseRecord, Sample, Trial};
use crate::scenario::{Kind, Processes, TrialPlan};
use crate::subject::{ReadyInfo, RunningSubject};
use crate::weigh::{Cost, Members, Scales, Sources};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Data collected in a trial.
pub(super) struct Notes<'a> {
    pub(super) trial: &'a mut Trial,
    pub(super) doubts: &'a mut Vec<Doubt>,
    pub(super) sink: &'a mut dyn Sink,
}

#[derive(Debug, Default)]
pub(super) struct Peaks {
    /// Highest RSS since it was last reset.
    pub(super) rss_bytes_max: u64,
    /// The largest anonymous RSS; `None` before the first sample.
    anon_bytes_max: Option<u64>,
    /// Allocated bytes and correct responses of the current phase, once a second.
    pub(super) allocated: Vec<(u64, u64)>,
}

pub(super) struct Trialling<'a> {
    pub(super) plan: &'a TrialPlan,
    pub(super) stage: Stage<'a>,
    pub(super) notes: Notes<'a>,
    pub(super) subject: &'a mut dyn RunningSubject,
    pub(super) address: SocketAddr,
    pub(super) scales: Box<dyn Scales>,
    pub(super) reports: Box<dyn Reports>,
    pub(super) peaks: Peaks,
    pub(super) guard: Guarding,
    pub(super) markers: Markers,
    /// Readings of the current warm-up.
    pub(super) warming: Option<Warming>,
    /// When the next live-heap mark is due, in a phase with such marks.
    pub(super) live_due: Option<Duration>,
    threads_noted: Duration,
    /// Live objects at the end, if requested.
    pub(super) live: Option<ClassHistogram>,
}

impl<'a> Trialling<'a> {
    /// Opens everything needed to measure a ready subject, and begins its timeline. Errors: `Subject` if it is gone;
    /// `Request` if its host has no address.
    pub(super) fn begin(
        plan: &'a TrialPlan,
        stage: Stage<'a>,
        notes: Notes<'a>,
        subject: &'a mut dyn RunningSubject,
        (ready, agent): (&ReadyInfo, Option<SubjectAgent>),
    ) -> Result<Self> {
        let sources = sources(plan, stage, subject, ready.pid);
        let scales = stage.world.scales(&sources, agent, notes.doubts)?;
        if sources.members.is_none() && !ready.other_pids.is_empty() {
            let (pid, others) = (ready.pid, ready.other_pids.clone());
            notes.doubts.push(match sources.kind {
                Kind::Jvm => Doubt::SeveralJvms { pid, others },
                Kind::Native => Doubt::SeveralProcesses { pid, others },
            });
        }
        let address = match ready.address {
            Some(address) => address,
            None => resolve(&subject.launch().subject.host, subject.launch().port)?,
        };
        let reports = stage.world.reports(sources, scales.inside());
        let (peaks, guard, markers) = Default::default();
        let (threads_noted, warming, live) = (stage.clock.now(), None, None);
        Ok(Self {
            plan,
            stage,
            notes,
            subject,
            address,
            scales,
            reports,
            peaks,
            guard,
            markers,
            warming,
            live_due: None,
            threads_noted,
            live,
        })
    }

    /// Records the cgroup's and the subject's state after the load, once.
    pub(super) fn note_load(&mut self) {
        let (trial, clock) = (&mut *self.notes.trial, &self.stage.clock);
        if trial.cgroup.is_none() {
            trial.cgroup = cgroup_record::read(self.subject, self.peaks.anon_bytes_max, clock);
        }
        if self.plan.list_files && trial.files.is_empty() {
            let pids: Vec<u32> = self.subject.processes().iter().map(|process| process.pid).collect();
            trial.files = match &self.subject.layers() {
                None => files::held(&pids, clock),
                Some(layers) => files::held_in(&pids, layers, clock),
            };
        }
    }

    /// Whether the current phase has become hopeless.
    pub(super) fn is_hopeless(&mut self) -> bool {
        self.guard.check(self.stage.clock.now_ns()).is_some()
    }

    /// Why a phase was cut short: the underlying reason, if known.
    pub(super) fn why_cut_short(&self, told: String) -> String {
        match self.guard.hopeless() {
            _ if self.stage.interrupted() => "it was interrupted".to_owned(),
            _ if self.has_died() => "the server died".to_owned(),
            Some(missed) => format!("stopped early: {}", missed.text),
            None => told,
        }
    }

    pub(super) fn subject_cpus(&self) -> usize {
        self.subject.launch().cpus.as_ref().map_or(1, Vec::len)
    }

    /// The error for a dead subject.
    pub(super) fn death(&self) -> Option<Error> {
        self.has_died().then(|| ending::died(self.subject, self.stage.clock))
    }

    pub(super) fn has_died(&self) -> bool {
        self.subject.lost() || !self.scales.lives()
    }

    /// Waits for a message and forwards it; during a phase, occasionally records the subject's threads. Returns the
    /// load's outcome if that was the message.
    pub(super) fn next_message(&mut self, phase: Option<&str>, within: Duration) -> Option<Result<Outcome>> {
        let message = self.reports.next(within);
        let now = self.stage.clock.now();
        if phase.is_some() && now >= self.threads_noted + READ_EACH {
            self.threads_noted = now;
            self.scales.glance();
        }
        match message? {
            Message::Sample(sample) => {
                self.pass_on(phase, &sample);
                if let Some(warming) = self.warming.as_mut().filter(|warming| warming.is_due(now)) {
                    warming.look(now, self.scales.glance(), sample.ok);
                }
            }
            Message::Load(LoadProgress::Interval(interval)) => {
                self.guard.add(&interval);
                let times = engine_thread::times(&interval, self.stage.clock);
                self.notes.sink.receive(&Event::Interval { phase: phase.unwrap_or("load"), times });
            }
            Message::Load(LoadProgress::Done(outcome)) => return Some(*outcome),
        }
        None
    }

    /// Forwards all pending messages.
    pub(super) fn pass_on_all(&mut self, phase: Option<&str>) {
        while let Some(message) = self.reports.next(Duration::ZERO) {
            if let Message::Sample(sample) = message {
                self.pass_on(phase, &sample);
            }
        }
    }

    fn pass_on(&mut self, phase: Option<&str>, sample: &Sample) {
        let (peaks, trial) = (&mut self.peaks, &mut self.notes.trial);
        peaks.rss_bytes_max = peaks.rss_bytes_max.max(sample.rss_bytes);
        peaks.anon_bytes_max = peaks.anon_bytes_max.max(sample.anon_bytes);
        trial.rss_bytes_peak = trial.rss_bytes_peak.max(Some(sample.rss_bytes));
        peaks.allocated.extend(sample.allocated_bytes.map(|bytes| (bytes, sample.ok)));
        self.notes.sink.receive(&Event::Sample { phase, sample });
    }

    /// Ends the timeline, forwards the rest, and records the cost of measuring. The contents of the heap can be read
    /// now, because no measurement follows.
    pub(super) fn finish(mut self) -> Option<ClassHistogram> {
        let Cost { samples, ns, compilations } = self.reports.end();
        self.notes.trial.compilations = compilations;
        self.pass_on_all(None);
        self.note_load();
        self.notes.trial.hopeless = self.guard.hopeless().cloned();
        subtract_idle(&mut self.notes.trial.phases);
        self.notes.trial.observer = Observer {
            samples,
            sample_us_mean: (samples > 0).then(|| ns as f64 / 1e3 / samples as f64),
            own_rss_bytes_peak: own_rss_peak(&self.stage.clock),
            ..self.scales.observer()
        };
        self.look_inside();
        self.live
    }

    /// Seconds since the start of the command, the origin of all recorded times.
    pub(super) fn seconds(&self, now_ns: u64) -> f64 {
        seconds_since(self.origin_ns(), now_ns)
    }

    /// The start of the command, on the clock.
    pub(super) fn origin_ns(&self) -> u64 {
        self.subject.started_at().as_nanos() as u64
    }
}

/// The data sources for a subject whose serving process is `pid`.
pub(super) fn sources(plan: &TrialPlan, stage: Stage<'_>, subject: &dyn RunningSubject, pid: u32) -> Sources {
    Sources {
        pid,
        kind: plan.subject.kind,
        members: match plan.subject.processes {
            Processes::One => None,
            Processes::All => Some(Members::Below(subject.guardian_pid())),
            Processes::Cgroup => Some(Members::OfCgroup),
        },
        own_cgroup: subject.cgroup().is_some(),
        origin_ns: subject.started_at().as_nanos() as u64,
        hz: plan.sample_hz,
        asking: plan.asking,
        clock: stage.clock,
    }
}

/// The first address of a host, if readiness did not resolve it.
fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| Error::request(format!("`{host}` cannot be resolved")))
}

fn own_rss_peak(clock: &Clock) -> Option<u64> {
    let own = Process::open(std::process::id()).ok()?;
    own.status(clock).ok().map(|status| status.value.rss_peak.0)
}

/// Computes how much of each work phase's allocation also occurs at rest, from the last rest phase's rate.
fn subtract_idle(phases: &mut [PhaseRecord]) {
    let rate = |phase: &PhaseRecord| Some(phase.subject.allocated_bytes? as f64 / phase.seconds);
    let rested = phases.iter().rev().find(|phase| !phase.works() && phase.seconds >= REST_S_MIN);
    let Some(idle_per_s) = rested.and_then(rate) else { return };
    for phase in phases.iter_mut().filter(|phase| phase.works()) {
        let idle = (idle_per_s * phase.seconds) as u64;
        phase.subject.allocated_idle_bytes = phase.subject.allocated_bytes.map(|bytes| bytes.min(idle));
    }
}

/// A shorter rest ends before a server's timers fire.
const REST_S_MIN: f64 = 1.0;
