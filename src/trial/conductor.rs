//! The order of a trial: start, ready, mark, warm-up, mark, load, mark, rest, mark, collect, mark, end.

use super::driving::Told;
use super::event::{Event, Sink};
use super::guard::Watch;
use super::tools::Tools;
use super::{cgroup_record, doubts, ending, files};
use crate::clock::{Clock, seconds_since};
use crate::doubt::{Doubt, MemoryPool};
use crate::error::{Error, Result};
use crate::load::Outcome;
use crate::observe::agent::Standing;
use crate::record::{ImageRecord, Missed, Sample, Trial};
use crate::scenario::{Kind, Look, MarkPoint, Netty, Nmt, Processes, TrialPlan};
use crate::subject::{Container, CpuPlan, Launch, OptionsPassed, Place, ReadyInfo, Running, WorkFolder};
use crate::subject::{check_port_free, cpus, free_ports, image, jdk, launch};
use crate::weigh::{DirectMemory, ProcessTree, Sampler, Sources, Watched};
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

/// Runs one trial from the start of the subject to its end. The subject has ended when this returns. What the trial was
/// for, and that it is finished, is said by whoever asked for it.
pub fn conduct(plan: &TrialPlan, tools: &Tools<'_>, sink: &mut dyn Sink) -> Conducted {
    let mut trial = Trial::new(&plan.configuration.name, plan.block, plan.index);
    trial.repeats = plan.repeats;
    trial.env = Some(plan.configuration.env_shown());
    trial.limit_bytes = plan.configuration.limit.map(|limit| limit.0);
    let error = run(plan, tools, &mut trial, sink).err().map(|error| {
        let number = plan.index + 1;
        error.at(format!("configuration: {}, trial {number}", plan.configuration.name))
    });
    ending::classify(&mut trial, error.as_ref());
    Conducted { trial, error }
}

fn run(plan: &TrialPlan, tools: &Tools<'_>, trial: &mut Trial, sink: &mut dyn Sink) -> Result<()> {
    let cpu_plan = CpuPlan::new(&plan.configuration.cpus, &plan.load_cpus, &tools.spawner.cpus)?;
    let needs_work = launch::needs_work(&plan.subject, &plan.configuration);
    // Whatever ends this function, what is left of it is removed; after the subject, which is younger.
    let work = needs_work.then(WorkFolder::create).transpose()?;
    // A folder apart: what the subject finds in its own is its own.
    let wants_agent = plan.configuration.netty == Netty::Listed && plan.look == Look::Full;
    let agent_folder = wants_agent.then(WorkFolder::create).transpose()?;
    let agent = agent_folder.as_ref().map(agent_in).transpose()?;
    let launch = prepare(
        plan,
        tools,
        &Given { cpus: &cpu_plan, work: work.as_ref().map(WorkFolder::path), agent: agent.as_ref() },
    )?;
    launch.ports.from(launch.port).try_for_each(|port| check_port_free(&launch.host, port))?;
    cpus::pin_this_thread(cpu_plan.load.as_deref().unwrap_or(&tools.spawner.cpus))?;
    trial.command.clone_from(&launch.argv);
    trial.image = launch.container.as_ref().map(|container| image_record(container, plan));
    (trial.subject_cpus, trial.load_cpus) = (cpu_plan.subject.clone(), cpu_plan.load.clone());
    sink.take(&Event::Starting { configuration: &plan.configuration.name, command: &launch.argv });
    let log = sink.log();
    let mut running = tools.spawner.start(&launch, log.as_deref())?;
    let mut found = doubts::of_machine(tools.machine, cpu_plan.shared() && plan.load.is_driven());
    let done = weigh(Parts { plan, tools, trial, running: &mut running, doubts: &mut found, sink }, agent);
    cgroup_record::complete(trial, &running, &tools.clock);
    found.extend(running.output().out_of_memory_error().map(|error| {
        let pool = MemoryPool::named_in(&error);
        Doubt::OutOfMemoryError { error, pool }
    }));
    found.extend(running.output().log_trouble().map(|trouble| Doubt::LogIncomplete { why: trouble.what }));
    let ended = running.end(plan.subject.end_within.0);
    if let Some(work) = work {
        let folder = work.path().display().to_string();
        found.extend(work.remove().map(|why| Doubt::WorkFolderLeft { folder, why }));
    }
    found.extend(doubts::of_trial(trial));
    found.iter().for_each(|doubt| sink.take(&Event::Doubted(doubt)));
    trial.doubts = found.into_iter().map(Into::into).collect();
    let left = ended.left;
    trial.end = Some(ending::record(ended));
    match left {
        0 => done,
        n => Err(Error::machine(format!("{n} processes of the subject could not be killed"))),
    }
}

/// The image of a trial, and what of it wins over the options it is given.
fn image_record(container: &Container, plan: &TrialPlan) -> ImageRecord {
    let image = &container.image;
    let arguments = [&plan.subject.command[..], &plan.configuration.args[..]].concat();
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

/// What a command line is made of beside its plan.
struct Given<'a> {
    cpus: &'a CpuPlan,
    work: Option<&'a Path>,
    agent: Option<&'a Standing>,
}

/// The command line of this trial.
fn prepare(plan: &TrialPlan, tools: &Tools<'_>, given: &Given<'_>) -> Result<Launch> {
    let (subject, mut configuration) = (&plan.subject, plan.configuration.clone());
    configuration.jvm.extend(given.agent.map(Standing::option));
    let chosen = jdk::choose_for(subject, configuration.jdk.as_ref(), tools.jdks, tools.clock)?;
    let port = match subject.port {
        Some(port) => port,
        None => free_ports(&subject.host, subject.ports.count)?,
    };
    let image = subject.image.as_ref().map(|image| image::find(&image.name, tools.clock)).transpose()?;
    let place = Place { port, work: given.work, cpus: given.cpus, jdk: chosen.as_ref(), image: image.as_ref() };
    let mut launch = Launch::new(subject, &configuration, &place)?;
    // Loadline pins itself; a subject that is not pinned must not inherit that.
    launch.cpus.get_or_insert_with(|| tools.spawner.cpus.clone());
    launch.ready_status = plan.load.ready_status(&subject.ready);
    launch.reads = plan.load.has_own_work();
    launch.phases = plan.load.own_works().filter_map(|own| own.pattern.clone()).collect();
    Ok(launch)
}

/// What a trial under way is made of.
struct Parts<'a> {
    plan: &'a TrialPlan,
    tools: &'a Tools<'a>,
    trial: &'a mut Trial,
    running: &'a mut Running,
    doubts: &'a mut Vec<Doubt>,
    sink: &'a mut dyn Sink,
}

/// All that happens between the start of the command and its end.
fn weigh(parts: Parts<'_>, agent: Option<Standing>) -> Result<()> {
    let tools = parts.tools;
    let ready = parts.running.wait_ready(parts.plan.subject.ready_within.0, &|| tools.interrupted())?;
    parts.trial.ready_s = Some(ready.took.as_secs_f64());
    parts.sink.take(&Event::Ready { pid: ready.pid, after: ready.took });
    let mut trialling = Trialling::begin(parts, &ready)?;
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
    pub(super) plan: &'a TrialPlan,
    pub(super) tools: &'a Tools<'a>,
    pub(super) trial: &'a mut Trial,
    pub(super) running: &'a mut Running,
    pub(super) doubts: &'a mut Vec<Doubt>,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) watched: Watched,
    /// The other processes of the subject, where all are weighed.
    pub(super) others: Option<ProcessTree>,
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
    /// What made going on hopeless, once something has.
    pub(super) hopeless: Option<Missed>,
    /// The C allocator as the last mark saw it.
    pub(super) allocator: Option<String>,
    /// Markers of the subject that were looked at.
    pub(super) markers_taken: usize,
}

impl<'a> Trialling<'a> {
    fn begin(parts: Parts<'a>, ready: &ReadyInfo) -> Result<Self> {
        let Parts { plan, tools, trial, running, doubts, sink } = parts;
        let own_cgroup = running.cgroup().is_some();
        let subject = &plan.subject;
        let watched = Watched::open(ready.pid, own_cgroup, subject.kind, tools.clock, doubts)?;
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
            hz: plan.sample_hz,
            clock: tools.clock,
        };
        let sampler = Some(Sampler::start(sources, sender.clone(), Message::Sample));
        Ok(Self {
            plan,
            tools,
            trial,
            running,
            doubts,
            sink,
            watched,
            others: all.then(|| ProcessTree::new(ready.pid, subject.kind, tools.clock)),
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
        let plan = self.plan;
        let last_work = plan.load.last_work();
        self.mark(MarkPoint::Start);
        match (plan.subject.kind, self.plan.look) {
            (Kind::Jvm, Look::Full) => {
                self.identify();
                self.watch_direct();
            }
            (Kind::Jvm, Look::Outside) => self.describe(),
            (Kind::Native, _) => {}
        }
        self.pass_ready_marker();
        for (index, phase) in plan.load.iter().enumerate() {
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
        if plan.load.rests() {
            self.mark(MarkPoint::Rested);
        }
        self.mark(MarkPoint::Collected);
        self.mark(MarkPoint::Trimmed);
        self.alive_at_the_end()
    }

    /// What the JVM is and whether it does as it was told. After the first mark, so that asking is not in it.
    fn identify(&mut self) {
        self.watched.attach(&mut self.trial.observer, self.doubts);
        let options = self.plan.configuration.jvm_options();
        let complaints = self.running.output().complaints();
        let identity = self.watched.identify(&options, &complaints, self.doubts);
        if let Some(flags) = &identity.flags {
            self.doubts.extend(doubts::of_limit(self.plan.configuration.limit, &self.trial.command, flags));
        }
        let mut jvm = identity.jvm;
        jvm.options_through = through(&self.running.launch().options_passed);
        jvm.allocator.clone_from(&self.allocator);
        let cpus = self.subject_cpus();
        let asked = [&options[..], &self.trial.command[..]].concat();
        self.doubts.extend(doubts::of_collector(&jvm, &asked, cpus, self.tools.machine.cores));
        self.trial.jvm = Some(jvm);
    }

    /// What can be told of the JVM without a word to it.
    fn describe(&mut self) {
        let options = self.plan.configuration.jvm_options();
        let complaints = self.running.output().complaints();
        let mut jvm = self.watched.describe_unasked(&options, &complaints, self.doubts);
        jvm.options_through = through(&self.running.launch().options_passed);
        self.trial.jvm = Some(jvm);
    }

    /// What the load has left in the cgroup and in the hands of the subject; noted once.
    fn note_load(&mut self) {
        if self.trial.cgroup.is_none() {
            self.trial.cgroup = cgroup_record::take(self.running, self.anon_bytes_max, &self.tools.clock);
        }
        if self.plan.list_files && self.trial.files.is_empty() {
            let pids: Vec<u32> = self.running.processes().iter().map(|process| process.pid).collect();
            let layers = self.running.layers();
            self.trial.files = match &layers {
                None => files::held(&pids, &self.tools.clock),
                Some(layers) => files::held_in(&pids, layers, &self.tools.clock),
            };
        }
    }

    /// Whether the phase under way has become hopeless.
    pub(super) fn is_hopeless(&mut self) -> bool {
        self.look_for_hope();
        self.hopeless.is_some()
    }

    /// Notes what makes going on hopeless, the first time that anything does.
    pub(super) fn look_for_hope(&mut self) {
        if let (None, Some(watch)) = (&self.hopeless, &self.watch) {
            self.hopeless = watch.hopeless(self.tools.clock.now_ns());
        }
    }

    /// Why a phase was cut short: the reason behind it, where there is one.
    pub(super) fn why_cut_short(&self, told: String) -> String {
        match &self.hopeless {
            _ if self.tools.interrupted() => "it was interrupted".to_owned(),
            _ if self.has_died() => "the subject died".to_owned(),
            Some(missed) => format!("hopeless: {}", missed.text),
            None => told,
        }
    }

    /// Puts direct memory on the timeline, where Native Memory Tracking knows it.
    fn watch_direct(&mut self) {
        let attached = self.watched.attached().filter(|_| self.plan.configuration.nmt == Nmt::Summary);
        if let (Some(attach), Some(sampler)) = (attached, &self.sampler) {
            self.direct = Some(DirectMemory::start(attach, self.tools.clock, sampler.direct()));
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
        let place = match self.plan.look {
            Look::Full => "at the last mark",
            Look::Outside => "after the last phase",
        };
        match self.death() {
            Some(error) if error.hint.is_none() && self.plan.load.has_own_work() => {
                Err(error.at(place).hint(ending::LET_IT_WAIT))
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
                self.sink.take(&Event::Interval {
                    phase: phase.unwrap_or("load"),
                    service: &interval.service,
                    response: interval.response.as_ref(),
                    start: self.tools.clock.since_epoch(interval.start_ns),
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
        self.sink.take(&Event::Sample { phase, sample });
    }

    /// Ends the sampling, passes on what is left, and notes what weighing cost.
    fn finish(&mut self) {
        self.trial.hopeless = self.hopeless.take();
        self.direct = None;
        let cost = self.sampler.take().map(Sampler::stop).unwrap_or_default();
        self.pass_on_all(None);
        self.note_load();
        let observer = &mut self.trial.observer;
        observer.samples = cost.samples;
        observer.sample_us_mean = (cost.samples > 0).then(|| cost.ns as f64 / 1e3 / cost.samples as f64);
        observer.own_rss_bytes_peak = own_rss_peak(&self.tools.clock);
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
