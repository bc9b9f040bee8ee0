//! The order of a trial: start, ready, mark, warm-up, mark, load, mark, rest, mark, collect, mark, end.

use super::direct::DirectMemory;
use super::driving::Told;
use super::event::Event;
use super::guard::Watch;
use super::loading::since_epoch;
use super::others::Others;
use super::sampler::{Sampler, Sources};
use super::setup::{Look, Setup};
use super::watched::Watched;
use super::{cgroup_record, doubts, ending, files, seconds_since};
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::load::Outcome;
use crate::observe::agent::Standing;
use crate::record::{ImageRecord, Sample, Trial};
use crate::scenario::{Kind, MarkPoint, Netty, Nmt, Processes};
use crate::subject::{Container, CpuPlan, Launch, OptionsPassed, Place, ReadyInfo, Running, WorkFolder};
use crate::subject::{check_port_free, cpus, free_ports, image, jdk, launch};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What a trial yields, however it ended.
#[derive(Debug)]
pub struct Conducted {
    /// All that was measured before it ended.
    pub trial: Trial,
    /// What stopped it before its plan was done.
    pub error: Option<Error>,
}

/// Runs one trial from the start of the subject to its end. The subject has ended when this returns.
pub fn conduct(setup: &Setup<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Conducted {
    let mut trial = Trial::new(&setup.configuration.name, setup.block, setup.index);
    trial.folder.clone_from(&setup.folder);
    trial.repeats = setup.repeats;
    trial.env = Some(setup.configuration.env_shown());
    trial.limit_bytes = setup.configuration.limit.map(|limit| limit.0);
    let error = run(setup, &mut trial, emit).err().map(|error| {
        let number = setup.index + 1;
        error.at(format!("configuration: {}, trial {number}", setup.configuration.name))
    });
    ending::classify(&mut trial, error.as_ref());
    if let Some(seal) = setup.seal {
        (seal.0)(&mut trial);
    }
    emit(Event::Ended(&trial));
    Conducted { trial, error }
}

fn run(setup: &Setup<'_>, trial: &mut Trial, emit: &mut dyn FnMut(Event<'_>)) -> Result<()> {
    let plan = CpuPlan::new(&setup.configuration.cpus, &setup.scenario.load_cpus, &setup.spawner.cpus)?;
    let needs_work = launch::needs_work(&setup.scenario.subject, setup.configuration);
    // Whatever ends this function, what is left of it is removed; after the subject, which is younger.
    let work = needs_work.then(WorkFolder::create).transpose()?;
    // A folder apart: what the subject finds in its own is its own.
    let wants_agent = setup.configuration.netty == Netty::Listed && setup.look == Look::Full;
    let agent_folder = wants_agent.then(WorkFolder::create).transpose()?;
    let agent = agent_folder.as_ref().map(agent_in).transpose()?;
    let launch = prepare(setup, &plan, work.as_ref().map(WorkFolder::path), agent.as_ref())?;
    launch.ports.from(launch.port).try_for_each(|port| check_port_free(&launch.host, port))?;
    cpus::pin_this_thread(plan.load.as_deref().unwrap_or(&setup.spawner.cpus))?;
    trial.command.clone_from(&launch.argv);
    trial.image = launch.container.as_ref().map(|container| image_record(container, setup));
    (trial.subject_cpus, trial.load_cpus) = (plan.subject.clone(), plan.load.clone());
    emit(Event::Starting { configuration: &setup.configuration.name, command: &launch.argv });
    let mut running = setup.spawner.start(&launch, setup.log.as_deref())?;
    let mut found = doubts::of_machine(setup.machine, plan.shared() && setup.scenario.is_driven());
    let done = weigh(setup, trial, &mut running, agent, &mut found, emit);
    cgroup_record::complete(trial, &running, &setup.clock);
    found.extend(running.output().out_of_memory_error().map(|error| Doubt::OutOfMemoryError { error }));
    found.extend(running.output().log_trouble().map(|trouble| Doubt::LogIncomplete { why: trouble.what }));
    let ended = running.end(setup.scenario.subject.end_within.0);
    if let Some(work) = work {
        let folder = work.path().display().to_string();
        found.extend(work.remove().map(|why| Doubt::WorkFolderLeft { folder, why }));
    }
    found.extend(doubts::of_trial(trial));
    found.iter().for_each(|doubt| emit(Event::Doubted(doubt)));
    trial.doubts = found.into_iter().map(Into::into).collect();
    let left = ended.left;
    trial.end = Some(ending::record(ended));
    match left {
        0 => done,
        n => Err(Error::machine(format!("{n} processes of the subject could not be killed"))),
    }
}

/// The image of a trial, and what of it wins over the options it is given.
fn image_record(container: &Container, setup: &Setup<'_>) -> ImageRecord {
    let image = &container.image;
    let arguments = [&setup.scenario.subject.command[..], &setup.configuration.args[..]].concat();
    ImageRecord {
        name: image.name.clone(),
        id: image.id.clone(),
        tool: image.tool.tool.word().to_owned(),
        tool_options: image.tool_options().to_owned(),
        heap_options: image.heap_options(&arguments),
    }
}

/// The agent that the subject is started with, in a folder that lives as long as the trial.
fn agent_in(folder: &WorkFolder) -> Result<Standing> {
    let prepared = Standing::prepare(folder.path(), "agent");
    prepared.map_err(|cause| Error::machine(cause.to_string()).hint("leave `netty: true` out of the scenario"))
}

/// The command line of this trial.
fn prepare(setup: &Setup<'_>, plan: &CpuPlan, work: Option<&Path>, agent: Option<&Standing>) -> Result<Launch> {
    let (subject, mut configuration) = (&setup.scenario.subject, setup.configuration.clone());
    configuration.jvm.extend(agent.map(Standing::option));
    let chosen = jdk::choose_for(subject, configuration.jdk.as_ref(), setup.jdks, setup.clock)?;
    let port = match subject.port {
        Some(port) => port,
        None => free_ports(&subject.host, subject.ports.count)?,
    };
    let image = subject.image.as_ref().map(|image| image::find(&image.name, setup.clock)).transpose()?;
    let place = Place { port, work, cpus: plan, jdk: chosen.as_ref(), image: image.as_ref() };
    let mut launch = Launch::new(subject, &configuration, &place)?;
    // Loadline pins itself; a subject that is not pinned must not inherit that.
    launch.cpus.get_or_insert_with(|| setup.spawner.cpus.clone());
    launch.ready_status = setup.scenario.ready_status();
    launch.reads = setup.scenario.has_own_work();
    launch.phases = setup.scenario.own_works().filter_map(|own| own.pattern.clone()).collect();
    Ok(launch)
}

/// All that happens between the start of the command and its end.
fn weigh(
    setup: &Setup<'_>,
    trial: &mut Trial,
    running: &mut Running,
    agent: Option<Standing>,
    found: &mut Vec<Doubt>,
    emit: &mut dyn FnMut(Event<'_>),
) -> Result<()> {
    let ready = running.wait_ready(setup.scenario.subject.ready_within.0, &|| setup.interrupted())?;
    trial.ready_s = Some(ready.took.as_secs_f64());
    emit(Event::Ready { pid: ready.pid, after: ready.took });
    let mut trialling = Trialling::begin(setup, trial, running, found, emit, &ready)?;
    trialling.watched.agent = agent;
    let done = trialling.go_through();
    trialling.finish();
    done
}

/// What arrives from the threads of a trial.
pub(super) enum Message {
    /// From the sampler.
    Sample(Sample),
    /// From the load.
    Load(Told),
}

/// A trial under way.
pub(super) struct Trialling<'a> {
    pub(super) setup: &'a Setup<'a>,
    pub(super) trial: &'a mut Trial,
    pub(super) running: &'a mut Running,
    pub(super) doubts: &'a mut Vec<Doubt>,
    pub(super) emit: &'a mut dyn FnMut(Event<'_>),
    pub(super) watched: Watched,
    /// The other processes of the subject, where all are weighed.
    pub(super) others: Option<Others>,
    /// `None` once it was stopped.
    pub(super) sampler: Option<Sampler>,
    /// `None` before the JVM was attached to, and where it has nothing to say.
    pub(super) direct: Option<DirectMemory>,
    pub(super) sender: Sender<Message>,
    receiver: Receiver<Message>,
    pub(super) address: SocketAddr,
    /// The start of the command: the origin of all times of the record.
    pub(super) origin_ns: u64,
    /// Highest RSS on the timeline since it was last set to 0.
    pub(super) rss_bytes_max: u64,
    /// The largest anonymous part of RSS on the timeline; `None` before its first sample.
    anon_bytes_max: Option<u64>,
    /// The phase under way, where it is guarded.
    pub(super) watch: Option<Watch>,
    /// Why going on became hopeless, once it has.
    pub(super) hopeless: Option<String>,
    /// The C allocator as the last mark saw it.
    pub(super) allocator: Option<String>,
    /// Markers of the subject that were looked at.
    pub(super) markers_taken: usize,
}

impl<'a> Trialling<'a> {
    fn begin(
        setup: &'a Setup<'a>,
        trial: &'a mut Trial,
        running: &'a mut Running,
        doubts: &'a mut Vec<Doubt>,
        emit: &'a mut dyn FnMut(Event<'_>),
        ready: &ReadyInfo,
    ) -> Result<Self> {
        let own_cgroup = running.cgroup().is_some();
        let subject = &setup.scenario.subject;
        let watched = Watched::open(ready.pid, own_cgroup, subject.kind, setup.clock, doubts)?;
        let all = subject.processes == Processes::All;
        if !all && !ready.other_pids.is_empty() {
            let (pid, others) = (ready.pid, ready.other_pids.clone());
            doubts.push(match subject.kind {
                Kind::Jvm => Doubt::SeveralJvms { pid, others },
                Kind::Native => Doubt::SeveralProcesses { pid, others },
            });
        }
        let address = match ready.address {
            Some(address) => address,
            None => resolve(&running.launch().host, running.launch().port)?,
        };
        let origin_ns = running.started_at().as_nanos() as u64;
        let (sender, receiver) = channel();
        let sources = Sources {
            pid: ready.pid,
            kind: subject.kind,
            guardian: all.then(|| running.guardian_pid()),
            own_cgroup,
            origin_ns,
            hz: setup.scenario.sample_hz,
            clock: setup.clock,
        };
        let sampler = Some(Sampler::start(sources, sender.clone(), Message::Sample));
        Ok(Self {
            setup,
            trial,
            running,
            doubts,
            emit,
            watched,
            others: all.then(|| Others::new(ready.pid, subject.kind, setup.clock)),
            sampler,
            direct: None,
            sender,
            receiver,
            address,
            origin_ns,
            rss_bytes_max: 0,
            anon_bytes_max: None,
            watch: None,
            hopeless: None,
            allocator: None,
            markers_taken: 0,
        })
    }

    /// Marks and phases in their order.
    fn go_through(&mut self) -> Result<()> {
        let scenario = self.setup.scenario;
        let last_work = scenario.last_work();
        self.mark(MarkPoint::Start);
        match (scenario.subject.kind, self.setup.look) {
            (Kind::Jvm, Look::Full) => {
                self.identify();
                self.watch_direct();
            }
            (Kind::Jvm, Look::Outside) => self.describe(),
            (Kind::Native, _) => {}
        }
        self.pass_ready_marker();
        for (index, phase) in scenario.load.iter().enumerate() {
            self.phase(phase)?;
            if last_work == Some(index) {
                // Before a mark, which may add to it.
                self.note_load();
            }
            self.mark_of(phase);
            if phase.is_warmup() {
                self.mark(MarkPoint::Warm);
            }
            if last_work == Some(index) {
                self.mark(MarkPoint::Loaded);
            }
        }
        if scenario.rests() {
            self.mark(MarkPoint::Rested);
        }
        self.mark(MarkPoint::Collected);
        self.mark(MarkPoint::Trimmed);
        self.alive_at_the_end()
    }

    /// What the JVM is and whether it does as it was told. After the first mark, so that asking is not in it.
    fn identify(&mut self) {
        self.watched.attach(&mut self.trial.observer, self.doubts);
        let options = self.setup.configuration.jvm_options();
        let complaints = self.running.output().complaints();
        let identity = self.watched.identify(&options, &complaints, self.doubts);
        if let Some(flags) = &identity.flags {
            self.doubts.extend(doubts::of_limit(self.setup.configuration.limit, &self.trial.command, flags));
        }
        let mut jvm = identity.jvm;
        jvm.options_through = through(&self.running.launch().options_passed);
        jvm.allocator.clone_from(&self.allocator);
        let cpus = self.subject_cpus();
        let asked = [&options[..], &self.trial.command[..]].concat();
        self.doubts.extend(doubts::of_collector(&jvm, &asked, cpus, self.setup.machine.cores));
        self.trial.jvm = Some(jvm);
    }

    /// What can be told of the JVM without a word to it.
    fn describe(&mut self) {
        let options = self.setup.configuration.jvm_options();
        let complaints = self.running.output().complaints();
        let mut jvm = self.watched.describe_unasked(&options, &complaints, self.doubts);
        jvm.options_through = through(&self.running.launch().options_passed);
        self.trial.jvm = Some(jvm);
    }

    /// What the load has left in the cgroup and in the hands of the subject; noted once.
    fn note_load(&mut self) {
        if self.trial.cgroup.is_none() {
            self.trial.cgroup = cgroup_record::take(self.running, self.anon_bytes_max, &self.setup.clock);
        }
        if self.setup.list_files && self.trial.files.is_empty() {
            let pids: Vec<u32> = self.running.processes().iter().map(|process| process.pid).collect();
            let layers = self.running.layers();
            self.trial.files = match &layers {
                None => files::held(&pids, &self.setup.clock),
                Some(layers) => files::held_in(&pids, layers, &self.setup.clock),
            };
        }
    }

    /// Whether the phase under way has become hopeless.
    pub(super) fn is_hopeless(&mut self) -> bool {
        if let (None, Some(watch)) = (&self.hopeless, &self.watch) {
            self.hopeless = watch.hopeless(self.setup.clock.now_ns());
        }
        self.hopeless.is_some()
    }

    /// Why a phase was cut short: the reason behind it, where there is one.
    pub(super) fn why_cut_short(&self, told: String) -> String {
        match &self.hopeless {
            _ if self.setup.interrupted() => "it was interrupted".to_owned(),
            _ if self.has_died() => "the subject died".to_owned(),
            Some(why) => format!("hopeless: {why}"),
            None => told,
        }
    }

    /// Puts direct memory on the timeline, where Native Memory Tracking knows it.
    fn watch_direct(&mut self) {
        let attached = self.watched.attached().filter(|_| self.setup.configuration.nmt == Nmt::Summary);
        if let (Some(attach), Some(sampler)) = (attached, &self.sampler) {
            self.direct = Some(DirectMemory::start(attach, self.setup.clock, sampler.direct()));
        }
    }

    /// How many CPUs the subject may use.
    pub(super) fn subject_cpus(&self) -> usize {
        self.running.launch().cpus.as_ref().map_or(1, Vec::len)
    }

    /// The death of the subject, as an error, if it has died.
    pub(super) fn death(&mut self) -> Option<Error> {
        self.has_died().then(|| ending::died(self.running))
    }

    /// Whether the subject or the JVM in it has died.
    pub(super) fn has_died(&self) -> bool {
        self.running.lost() || !self.watched.lives()
    }

    fn alive_at_the_end(&mut self) -> Result<()> {
        let place = match self.setup.look {
            Look::Full => "at the last mark",
            Look::Outside => "after the last phase",
        };
        match self.death() {
            Some(error) if error.hint.is_none() && self.setup.scenario.has_own_work() => {
                Err(error.at(place).hint(super::own::LET_IT_WAIT))
            }
            Some(error) => Err(error.at(place)),
            None => Ok(()),
        }
    }

    /// Waits for a message and passes it on. The outcome of the load, where that was the message.
    pub(super) fn next_message(&mut self, phase: Option<&str>, within: Duration) -> Option<Result<Outcome>> {
        match self.receiver.recv_timeout(within).ok()? {
            Message::Sample(sample) => self.pass_on(phase, &sample),
            Message::Load(Told::Interval(interval)) => {
                self.watch.iter_mut().for_each(|watch| watch.see(&interval));
                (self.emit)(Event::Interval {
                    phase: phase.unwrap_or("load"),
                    service: &interval.service,
                    response: interval.response.as_ref(),
                    start: since_epoch(self.setup.clock, interval.start_ns),
                    length: Duration::from_nanos(interval.end_ns.saturating_sub(interval.start_ns)),
                });
            }
            Message::Load(Told::Done(outcome)) => return Some(*outcome),
        }
        None
    }

    /// Passes on what has come so far.
    pub(super) fn pass_on_all(&mut self, phase: Option<&str>) {
        while let Ok(message) = self.receiver.try_recv() {
            if let Message::Sample(sample) = message {
                self.pass_on(phase, &sample);
            }
        }
    }

    fn pass_on(&mut self, phase: Option<&str>, sample: &Sample) {
        self.rss_bytes_max = self.rss_bytes_max.max(sample.rss_bytes);
        self.trial.rss_bytes_peak = self.trial.rss_bytes_peak.max(Some(sample.rss_bytes));
        self.anon_bytes_max = self.anon_bytes_max.max(sample.anon_bytes);
        (self.emit)(Event::Sample { phase, sample });
    }

    /// Ends the sampling, passes on what is left, and notes what weighing cost.
    fn finish(&mut self) {
        self.direct = None;
        let cost = self.sampler.take().map(Sampler::stop).unwrap_or_default();
        self.pass_on_all(None);
        self.note_load();
        let observer = &mut self.trial.observer;
        observer.samples = cost.samples;
        observer.sample_us_mean = (cost.samples > 0).then(|| cost.ns as f64 / 1e3 / cost.samples as f64);
        observer.own_rss_bytes_peak = own_rss_peak(&self.setup.clock);
    }

    /// Seconds since the start of the command.
    pub(super) fn seconds(&self, now_ns: u64) -> f64 {
        seconds_since(self.origin_ns, now_ns)
    }
}

/// The first address of a host that readiness did not need.
fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| Error::request(format!("`{host}` has no address")))
}

fn through(passed: &OptionsPassed) -> String {
    match passed {
        OptionsPassed::NoneNeeded => "none_needed".to_owned(),
        OptionsPassed::AtPlaceholder => "placeholder".to_owned(),
        OptionsPassed::AfterJava => "command_line".to_owned(),
        OptionsPassed::ByVariable(name) => name.clone(),
    }
}

/// Loadline's own peak RSS.
fn own_rss_peak(clock: &Clock) -> Option<u64> {
    let own = crate::observe::procfs::Process::open(std::process::id()).ok()?;
    own.status(clock).ok().map(|status| status.value.rss_peak.0)
}
