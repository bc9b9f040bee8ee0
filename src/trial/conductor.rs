//! Runs the steps of a trial: start, ready, mark, warm-up, mark, load, mark, rest, mark, collect, mark, end.

use super::ending::{Conducted, KEPT_LINES};
use super::event::{Event, Sink};
use super::explain::{Again, explain};
use super::here::Here;
use super::inside::{self, Afresh};
use super::tools::Tools;
use super::trialling::{Notes, Trialling};
use super::world::Stage;
use super::{cgroup_record, doubts, ending};
use crate::doubt::{Doubt, MemoryPool};
use crate::error::{Error, Result};
use crate::observe::agent::SubjectAgent;
use crate::record::{FailedIn, ImageRecord, Trial};
use crate::scenario::{Kind, Look, MarkPoint, Netty, Nmt, Phase, PhaseKind, TrialPlan};
use crate::subject::{Container, CpuPlan, FirstAnswer, Launch, LaunchPlace, OptionsPassed, Usual, WorkFolder};
use crate::subject::{check_port_free, cpus, free_ports, image, jdk, launch};
use crate::weigh::Identity;

/// Runs one trial, from the start of the subject to its end. The subject has ended when this returns. The caller emits
/// the events around the trial.
pub fn conduct(plan: &TrialPlan, tools: &Tools<'_>, sink: &mut dyn Sink) -> Conducted {
    let mut conducted = conclude(plan, |trial| run(plan, tools, trial, sink));
    // Explain a configuration only once, no matter how many trials it has.
    let asked = plan.explain.as_ref().filter(|_| plan.block == 0 && plan.repeats.is_none());
    if let Some(asked) = asked.filter(|_| !conducted.trial.marks.is_empty() && !tools.interrupted()) {
        let again: Again<'_> = &mut |plan, sink| conduct(plan, tools, sink);
        conducted.trial.explanation = Some(explain(plan, asked, &conducted.trial, tools.clock, again, sink));
    }
    conducted
}

/// The record of a trial that `run` performs, regardless of its result.
pub(super) fn conclude(plan: &TrialPlan, run: impl FnOnce(&mut Trial) -> Result<()>) -> Conducted {
    let mut trial = Trial::new(&plan.configuration.name, plan.block, plan.index);
    trial.repeats = plan.repeats;
    trial.env = Some(plan.configuration.env_shown());
    trial.limit_bytes = plan.configuration.limit.map(|limit| limit.0);
    trial.cpu_limit_millicpus = plan.configuration.cpu_limit.map(|limit| limit.0);
    let error = run(&mut trial).err().map(|error| {
        let number = plan.index + 1;
        error.at(format!("configuration: {}, trial {number}", plan.configuration.name))
    });
    ending::classify(&mut trial, error.as_ref());
    Conducted { trial, error }
}

/// Prepares everything that the command line needs, and runs the trial here.
fn run(plan: &TrialPlan, tools: &Tools<'_>, trial: &mut Trial, sink: &mut dyn Sink) -> Result<()> {
    let cpu_plan = CpuPlan::new(&plan.configuration.cpus, &plan.load_cpus, &tools.spawner.cpus)?;
    // Separate, because the subject's own directory must contain only its own files.
    let wants_agent = plan.configuration.netty == Netty::Listed && plan.look == Look::Full;
    let agent_folder = wants_agent.then(WorkFolder::create).transpose()?;
    let agent = agent_folder.as_ref().map(agent_in).transpose()?;
    // However this function returns, the rest of the directory is removed after the subject, which is dropped first.
    let (launch, work) = prepare(plan, tools, &cpu_plan, agent.as_ref())?;
    launch.subject.ports.from(launch.port).try_for_each(|port| check_port_free(&launch.subject.host, port))?;
    cpus::pin_this_thread(cpu_plan.load.as_deref().unwrap_or(&tools.spawner.cpus))?;
    (trial.subject_cpus, trial.load_cpus) = (cpu_plan.subject.clone(), cpu_plan.load.clone());
    let stage = Stage {
        world: &Here(tools.spawner),
        clock: tools.clock,
        interrupt: tools.interrupt,
        machine: tools.machine,
        cpus: &tools.spawner.cpus,
    };
    let afresh = || prepare(plan, tools, &cpu_plan, None);
    let shares_cpus = cpu_plan.shared();
    carry_out(stage, plan, PreparedTrial { launch, agent, work, shares_cpus, afresh: Some(&afresh) }, trial, sink)
}

pub(super) struct PreparedTrial<'a> {
    pub(super) launch: Launch,
    /// The agent of the subject, if any.
    pub(super) agent: Option<SubjectAgent>,
    /// The subject's work directory, if any.
    pub(super) work: Option<WorkFolder>,
    /// Whether Loadline's load runs on the subject's CPUs.
    pub(super) shares_cpus: bool,
    /// Builds the same command line again.
    pub(super) afresh: Option<Afresh<'a>>,
}

/// Runs the subject from start to finish.
pub(super) fn carry_out(
    stage: Stage<'_>,
    plan: &TrialPlan,
    prepared: PreparedTrial<'_>,
    trial: &mut Trial,
    sink: &mut dyn Sink,
) -> Result<()> {
    let PreparedTrial { launch, agent, work, shares_cpus, afresh } = prepared;
    trial.command.clone_from(&launch.argv);
    trial.image = launch.container.as_ref().map(|container| image_record(container, plan));
    sink.receive(&Event::Starting { configuration: &plan.configuration.name, command: &launch.argv });
    let log = sink.log();
    let mut running = stage.world.start(&launch, log.as_deref())?;
    let mut found = doubts::of_machine(stage.machine, shares_cpus && plan.load.is_driven());
    let mut live = None;
    let weigh = || {
        let within = plan.subject.ready_within.0;
        let ready =
            running.wait_ready(within, &|| stage.interrupted(), &mut |words| sink.receive(&Event::Note(words)))?;
        trial.ready_s = Some(ready.took.as_secs_f64());
        sink.receive(&Event::Ready { pid: ready.pid, after: ready.took });
        let notes = Notes { trial: &mut *trial, doubts: &mut found, sink: &mut *sink };
        let mut trialling = Trialling::begin(plan, stage, notes, &mut *running, (&ready, agent))?;
        let done = trialling.go_through();
        live = trialling.finish();
        done
    };
    let done = weigh();
    cgroup_record::complete(trial, &*running, &stage.clock);
    found.extend(running.output().out_of_memory_error().map(|error| {
        let pool = MemoryPool::named_in(&error);
        Doubt::OutOfMemoryError { error, pool }
    }));
    found.extend(running.output().log_trouble().map(|trouble| Doubt::LogIncomplete { why: trouble.what }));
    found.extend(doubts::of_stack_traces(running.output().stack_traces()));
    let ended = running.end(plan.subject.end_within.0);
    if let Some(work) = work {
        let folder = work.path().display().to_string();
        found.extend(work.remove().map(|why| Doubt::WorkFolderLeft { folder, why }));
    }
    trial.objects = live.map(|live| inside::objects(stage, plan, (&live, afresh), &mut found, sink));
    found.extend(doubts::of_trial(trial));
    found.iter().for_each(|doubt| sink.receive(&Event::Doubted(doubt)));
    trial.doubts = found.into_iter().map(Into::into).collect();
    let left = ended.left;
    trial.end = Some(ending::record(ended));
    match left {
        0 => done,
        n => Err(Error::machine(format!("{n} server processes could not be killed"))),
    }
}

/// The image of a trial, and the image's settings that override the given options.
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

/// The subject's agent, in a directory that lives as long as the trial.
fn agent_in(folder: &WorkFolder) -> Result<SubjectAgent> {
    let prepared = SubjectAgent::prepare(folder.path(), "agent");
    prepared.map_err(|cause| Error::machine(cause.to_string()).hint("remove `netty: true` from the scenario"))
}

/// The command line of this trial, and the work directory that it names, if any.
pub(super) fn prepare(
    plan: &TrialPlan,
    tools: &Tools<'_>,
    cpus: &CpuPlan,
    agent: Option<&SubjectAgent>,
) -> Result<(Launch, Option<WorkFolder>)> {
    let (subject, mut configuration) = (&plan.subject, plan.configuration.clone());
    let work = launch::needs_work(subject, &configuration).then(WorkFolder::create).transpose()?;
    configuration.jvm.extend(agent.map(SubjectAgent::option));
    let chosen = jdk::choose_for(subject, configuration.jdk.as_ref(), tools.jdks, tools.clock)?;
    let port = match subject.port {
        Some(port) => port,
        None => free_ports(&subject.host, subject.ports.count)?,
    };
    let image = subject.image.as_ref().map(|image| image::find(&image.name, tools.clock)).transpose()?;
    let folder = work.as_ref().map(WorkFolder::path);
    let place = LaunchPlace { port, work: folder, cpus, jdk: chosen.as_ref(), image: image.as_ref() };
    let mut launch = Launch::new(subject, &configuration, &place)?;
    // Loadline is pinned; an unpinned subject must not inherit its CPUs.
    launch.cpus.get_or_insert_with(|| tools.spawner.cpus.clone());
    launch.ready_status = plan.load.ready_status(&subject.ready);
    launch.reads = plan.load.has_own_work();
    launch.phases = plan.load.own_works().filter_map(|own| own.pattern.clone()).collect();
    Ok((launch, work))
}

/// Starts a plan's subject before all trials, requests common paths, and ends it. Fails if it cannot be started, if no
/// path returns 200, or if the user interrupts.
pub fn first_answer(plan: &TrialPlan, tools: &Tools<'_>, usual: &Usual) -> Result<FirstAnswer> {
    let cpus = CpuPlan::new(&plan.configuration.cpus, &plan.load_cpus, &tools.spawner.cpus)?;
    let (launch, _work) = prepare(plan, tools, &cpus, None)?;
    let mut running = tools.spawner.start(&launch, None)?;
    let found = running.first_answer(usual, plan.subject.ready_within.0, &|| tools.interrupted());
    running.end(plan.subject.end_within.0);
    found
}

impl Trialling<'_> {
    /// Runs marks and phases in order.
    fn go_through(&mut self) -> Result<()> {
        let plan = self.plan;
        let last_work = plan.load.last_work();
        let allocator = self.mark(MarkPoint::Start);
        match (plan.subject.kind, plan.look) {
            (Kind::Jvm, Look::Full) => self.identify(allocator),
            (Kind::Jvm, Look::Outside) => self.describe(),
            (Kind::Native, _) => {}
        }
        self.pass_ready_marker();
        for (index, phase) in plan.load.iter().enumerate() {
            if self.stage.interrupted() {
                return Err(Error::interrupted().at(format!("before phase {}", phase.name)));
            }
            if let Err(error) = self.phase(phase) {
                self.weigh_failed(index, phase);
                return Err(error);
            }
            if last_work == Some(index) {
                // Must precede a mark, which can affect it.
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

    /// Weighs the subject after a failed or interrupted phase, if it is still alive. The trial is not used in any
    /// estimate, but its account shows the memory at the failure.
    ///
    /// Records the phase that failed, and skips the remaining marks. The mark is `loaded` after a phase up to and
    /// including the last work phase, and `rested` after a later one. No mark follows an interrupt, because a
    /// collection would keep the user waiting.
    fn weigh_failed(&mut self, index: usize, phase: &Phase) {
        let last_lines = self.subject.output().tail_texts(KEPT_LINES);
        self.notes.trial.failed_in = Some(FailedIn { phase: phase.name.clone(), last_lines });
        // The guard stops a trial to save time, so a trial that it stopped does not need an account.
        if self.has_died() || self.guard.hopeless().is_some() {
            return;
        }
        self.note_load();
        let is_rest = self.plan.load.last_work().is_some_and(|last| index > last);
        let point = if is_rest { MarkPoint::Rested } else { MarkPoint::Loaded };
        // The marks of a self-driven subject depend on its markers, which will not arrive.
        let is_own = matches!(phase.kind, PhaseKind::Own(_)) && self.plan.look == Look::Full;
        if self.takes(point) || is_own {
            self.mark_as_it_is(point.word());
        }
        if !self.stage.interrupted() {
            self.mark(MarkPoint::Collected);
            self.mark(MarkPoint::Trimmed);
        }
    }

    /// Runs and records a phase. Errors: `Interrupted`; `Subject` if the subject died or no response was correct.
    fn phase(&mut self, phase: &Phase) -> Result<()> {
        match &phase.kind {
            PhaseKind::Own(own) => self.own_work(phase, own),
            PhaseKind::Work(work) => self.load_phase(phase, Some(work), &|trial| trial.work(phase, work)),
            PhaseKind::Driver(driver) => self.load_phase(phase, None, &|trial| trial.driver(&phase.name, driver)),
            PhaseKind::Idle(span) => self.load_phase(phase, None, &|trial| Ok(trial.rest(&phase.name, *span))),
        }
    }

    /// Describes the JVM, checks its options, and adds direct memory to the timeline if Native Memory Tracking reports
    /// it. Runs after the first mark, so that its queries do not affect it; `allocator` is as seen at that mark.
    fn identify(&mut self, allocator: Option<String>) {
        let (plan, cpus, doubts) = (self.plan, self.subject_cpus(), &mut *self.notes.doubts);
        let options = plan.configuration.jvm_options();
        let identity = self.scales.identify(&options, &self.subject.output().complaints(), doubts);
        let Identity { mut jvm, flags, variables } = identity;
        doubts.extend(variables.and_then(|variables| doubts::of_environment(&plan.configuration, &variables)));
        let command = &self.notes.trial.command[..];
        let limit = plan.configuration.limit;
        doubts.extend(flags.and_then(|flags| doubts::of_limit(limit, command, &flags)));
        jvm.options_through = through(&self.subject.launch().options_passed);
        jvm.allocator = allocator;
        let asked = [&options[..], command].concat();
        let cores = self.stage.machine.cores;
        // The user requested a CPU limit that leaves fewer processors.
        let is_limited = plan.configuration.cpu_limit.is_some_and(|limit| limit.processors() <= cpus as u64);
        doubts.extend(doubts::of_collector(&jvm, &asked, cpus, cores).filter(|_| !is_limited));
        self.notes.trial.jvm = Some(jvm);
        // Counters that are readable from outside the JVM make queries unnecessary.
        let asks = plan.configuration.nmt == Nmt::Summary && self.scales.inside().direct.is_none();
        let attached = self.scales.attached().filter(|_| asks);
        attached.into_iter().for_each(|attach| self.reports.watch_direct(attach));
    }

    /// Describes the JVM as far as possible without attaching to it.
    fn describe(&mut self) {
        let options = self.plan.configuration.jvm_options();
        let complaints = self.subject.output().complaints();
        let mut jvm = self.scales.describe_unasked(&options, &complaints, self.notes.doubts);
        jvm.options_through = through(&self.subject.launch().options_passed);
        self.notes.trial.jvm = Some(jvm);
    }

    fn alive_at_the_end(&mut self) -> Result<()> {
        let place = match self.plan.look {
            Look::Full => "at the last mark",
            Look::Outside => "after the last phase",
        };
        match self.death() {
            _ if self.stage.interrupted() => Err(Error::interrupted().at(place)),
            Some(error) if self.plan.load.has_own_work() => Err(error.at(place).hint(ending::LET_IT_WAIT)),
            Some(error) => Err(error.at(place)),
            None => Ok(()),
        }
    }
}

fn through(passed: &OptionsPassed) -> String {
    match passed {
        OptionsPassed::NoneNeeded => "none_needed".to_owned(),
        OptionsPassed::AtPlaceholder => "placeholder".to_owned(),
        OptionsPassed::AfterJava => "command_line".to_owned(),
        OptionsPassed::ByVariable(name) => name.clone(),
    }
}
