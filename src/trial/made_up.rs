//! A simulated world for tests: a script defines timed events, and time advances without waiting.

use super::conductor::{PreparedTrial, carry_out, conclude};
use super::ending::Conducted;
use super::engine_thread::{Interval, LoadProgress};
use super::event::{Event, Sink};
use super::usage::Spent;
use super::world::{Message, Reports, RunningDriver, Stage, World};
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::kernel::cgroup::{Cgroup, CgroupVersion};
use crate::kernel::cpu_cgroup::Throttled;
use crate::kernel::ports::Ports;
use crate::load::{Control, End, Failures, Outcome, Plan};
use crate::observe::agent::SubjectAgent;
use crate::observe::attach::Attach;
use crate::observe::class_histogram::{ClassHistogram, ClassRow};
use crate::observe::hsperfdata::GcTotal;
use crate::observe::thread_purposes::OwnTimes;
use crate::record::{EndCause, Heap, HeapDumpRecord, Jvm, Machine, Mark, NettyPools, Observer, Sample, Trial};
use crate::scenario::TrialPlan;
use crate::subject::processes::Process;
use crate::subject::{
    Complaint, CpuPlan, DriverEnd, DriverLaunch, Exit, Launch, LaunchPlace, OptionsPassed, SubjectEnd,
};
use crate::subject::{Output, ReadyInfo, RunningSubject};
use crate::units::{Bytes, MIB};
use crate::weigh::{
    Cost, Gate, Identity, Inside, Living, MarkReading, MarkSettings, Moment, Scales, Sources, Spending, Used,
};
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) const PID: u32 = 4711;
/// The durations of a measurement and of a diagnostic command.
pub(super) const WEIGHING: Duration = Duration::from_millis(30);
const ASKING: Duration = Duration::from_millis(5);
const TICK: Duration = Duration::from_millis(100);

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A scripted event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Happening {
    Prints(&'static str),
    /// The process exits.
    Dies(Exit),
    /// The kernel OOM-kills the process.
    OomKill,
    /// The kernel OOM-kills another process of the subject.
    OomKillBeside,
    LosesGuardian,
    /// The user interrupts.
    Interrupt,
}

/// The scripted behavior of a load.
#[derive(Debug, Clone)]
pub(super) struct Answers {
    /// Correct responses and failures per second.
    pub(super) per_s: (u64, u64),
    pub(super) service_ms: u64,
    /// Gives up after this time with this message.
    pub(super) gives_up: Option<(Duration, &'static str)>,
    /// The TLS error, and whether the message contains it.
    pub(super) tls: Option<(&'static str, bool)>,
    /// The time from stop to the last message; `None` means never.
    pub(super) stops_within: Option<Duration>,
    /// The engine cannot start.
    pub(super) error: Option<Error>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum JvmReply {
    Obeys,
    Refuses(&'static str),
    IsDeaf,
}

impl JvmReply {
    /// The scales' reply; calls `obey` if the JVM executes the request.
    fn reply<T>(self, obey: impl FnOnce() -> T) -> std::result::Result<T, String> {
        match self {
            Self::Obeys => Ok(obey()),
            Self::Refuses(why) => Err(why.to_owned()),
            Self::IsDeaf => Err("the JVM cannot be queried".to_owned()),
        }
    }
}

/// An external driver: duration, exit, and output.
#[derive(Debug, Clone)]
pub(super) struct Drives {
    pub(super) ends: Option<Duration>,
    pub(super) exit: Option<Exit>,
    pub(super) text: &'static str,
    pub(super) left: usize,
}

/// A script of events. Times are relative to the start of the command.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// `None` means never.
    pub(super) ready: Option<Duration>,
    pub(super) others: Vec<u32>,
    pub(super) happenings: Vec<(Duration, Happening)>,
    /// Events after the subject's nth permission to continue, with their delays.
    pub(super) on_go: Vec<Vec<(Duration, Happening)>>,
    pub(super) limit: Option<Bytes>,
    /// After SIGTERM; `None` if it must be killed.
    pub(super) ends_within: Option<Duration>,
    /// Processes that could not be killed.
    pub(super) left: usize,
    /// RSS at rest, and the increase under load.
    pub(super) rss: (u64, u64),
    /// The time for RSS to fall after a collection, from the second value of `rss` to 0; `u64::MAX` ms means never.
    pub(super) settles: Duration,
    pub(super) live_bytes: Option<u64>,
    pub(super) asked: JvmReply,
    pub(super) collects_not: Option<&'static str>,
    pub(super) survey: Option<std::result::Result<NettyPools, String>>,
    pub(super) answers: Answers,
    pub(super) drives: Drives,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            ready: Some(ms(500)),
            others: Vec::new(),
            happenings: Vec::new(),
            on_go: Vec::new(),
            limit: None,
            ends_within: Some(ms(40)),
            left: 0,
            rss: (100 * MIB, 50 * MIB),
            settles: ms(150),
            live_bytes: Some(7 * MIB),
            asked: JvmReply::Obeys,
            collects_not: None,
            survey: None,
            answers: Answers {
                per_s: (100, 0),
                service_ms: 2,
                gives_up: None,
                tls: None,
                stops_within: Some(ms(50)),
                error: None,
            },
            drives: Drives { ends: Some(ms(1500)), exit: Some(Exit::Code(0)), text: "", left: 0 },
        }
    }
}

impl Script {
    pub(super) fn with(mut self, at: Duration, happening: Happening) -> Self {
        self.happenings.push((at, happening));
        self
    }
}

/// State shared by all parts of a simulated world.
struct WorldState {
    script: Script,
    clock: Clock,
    interrupt: AtomicBool,
    output: Output,
    launch: Launch,
    cgroup: Cgroup,
    /// Future events.
    due: RefCell<Vec<(Duration, Happening)>>,
    dead: Cell<Option<Exit>>,
    oom_kills: Cell<u64>,
    lost: Cell<bool>,
    loaded: Cell<bool>,
    collected_at: Cell<Option<Duration>>,
    goes: Cell<usize>,
    /// How many times the subject's threads were read, each time with 1 ms more of JIT time.
    threads_noted: Cell<u32>,
    /// All calls, in order.
    calls: RefCell<Vec<String>>,
}

impl WorldState {
    fn call(&self, what: impl Into<String>) {
        self.look();
        self.calls.borrow_mut().push(what.into());
    }

    /// Executes all due events.
    fn look(&self) {
        let now = self.clock.now();
        let mut due = self.due.borrow_mut();
        due.sort_by_key(|(at, _)| *at);
        let ahead = due.partition_point(|(at, _)| *at <= now);
        for (at, happening) in due.drain(..ahead) {
            let dies = |exit| {
                if self.dead.get().is_none() {
                    self.dead.set(Some(exit));
                }
            };
            match happening {
                Happening::Prints(line) if self.dead.get().is_none() => self.output.say(line, at),
                Happening::Prints(_) => {}
                Happening::Dies(exit) => dies(exit),
                Happening::OomKill => {
                    self.oom_kills.set(self.oom_kills.get() + u64::from(self.dead.get().is_none()));
                    dies(Exit::Signal(9));
                }
                Happening::OomKillBeside => self.oom_kills.set(self.oom_kills.get() + 1),
                Happening::LosesGuardian => {
                    self.lost.set(true);
                    dies(Exit::Signal(9));
                }
                Happening::Interrupt => self.interrupt.store(true, Ordering::Relaxed),
            }
        }
    }

    fn lives(&self) -> bool {
        self.look();
        self.dead.get().is_none()
    }

    fn rss(&self) -> Option<u64> {
        let (rests, more) = self.script.rss;
        let left = match self.collected_at.get() {
            None => f64::from(u8::from(self.loaded.get())),
            Some(at) => {
                let past = (self.clock.now() - at).as_secs_f64();
                (1.0 - past / self.script.settles.as_secs_f64().max(1e-9)).max(0.0)
            }
        };
        self.lives().then_some(rests + (more as f64 * left) as u64)
    }
}

struct MadeUpWorld(Rc<WorldState>);
struct Subject(Rc<WorldState>);
struct Weigher(Rc<WorldState>);
struct Driver(Rc<WorldState>, Duration);

/// The timeline and the load.
struct Reporter {
    state: Rc<WorldState>,
    /// `None` after its end.
    sample_due: Option<Duration>,
    samples: u64,
    load: Option<Load>,
}

struct Load {
    plan: Plan,
    control: Arc<Control>,
    began: Duration,
    interval_due: Duration,
    ends: Duration,
    stopped: bool,
    sums: (u64, u64),
    service: Histogram<u64>,
}

impl World for MadeUpWorld {
    fn start(&self, _: &Launch, _: Option<&Path>) -> Result<Box<dyn RunningSubject>> {
        self.0.call("start");
        Ok(Box::new(Subject(Rc::clone(&self.0))))
    }

    fn scales(&self, _: &Sources, _: Option<SubjectAgent>, _: &mut Vec<Doubt>) -> Result<Box<dyn Scales>> {
        match self.0.lives() {
            true => Ok(Box::new(Weigher(Rc::clone(&self.0)))),
            false => Err(Error::subject("it went away before it was weighed")),
        }
    }

    fn reports(&self, _: Sources, _: Inside) -> Box<dyn Reports> {
        let sample_due = Some(self.0.clock.now());
        Box::new(Reporter { state: Rc::clone(&self.0), sample_due, samples: 0, load: None })
    }

    fn start_driver(&self, _: &DriverLaunch) -> Result<Box<dyn RunningDriver>> {
        self.0.call("drive");
        Ok(Box::new(Driver(Rc::clone(&self.0), self.0.clock.now())))
    }

    fn spent(&self) -> Spent {
        Spent { at_ns: self.0.clock.now_ns(), ..Spent::default() }
    }

    fn ports(&self) -> Option<Ports> {
        None
    }
}

impl RunningSubject for Subject {
    fn wait_ready(
        &mut self,
        within: Duration,
        interrupted: &dyn Fn() -> bool,
        _: &mut dyn FnMut(&str),
    ) -> Result<ReadyInfo> {
        let clock = self.0.clock;
        loop {
            match clock.now() {
                _ if !self.0.lives() => return Err(Error::subject("the server ended before it was ready")),
                _ if interrupted() => return Err(Error::interrupted()),
                now if self.0.script.ready.is_some_and(|ready| ready <= now) => break,
                now if now >= within => return Err(Error::subject("the server was not ready in time")),
                _ => clock.sleep(ms(20)),
            }
        }
        self.0.loaded.set(true);
        let address = Some(([127, 0, 0, 1], 8080).into());
        Ok(ReadyInfo { pid: PID, other_pids: self.0.script.others.clone(), address, took: clock.now() })
    }

    fn launch(&self) -> &Launch {
        &self.0.launch
    }

    fn started_at(&self) -> Duration {
        Duration::ZERO
    }

    fn output(&self) -> &Output {
        self.0.look();
        &self.0.output
    }

    fn go(&mut self) {
        self.0.call("go");
        let nth = self.0.goes.replace(self.0.goes.get() + 1);
        let now = self.0.clock.now();
        let more = self.0.script.on_go.get(nth).cloned().unwrap_or_default();
        self.0.due.borrow_mut().extend(more.into_iter().map(|(later, happening)| (now + later, happening)));
    }

    fn cgroup(&self) -> Option<(&Cgroup, Option<Bytes>)> {
        self.0.script.limit.map(|limit| (&self.0.cgroup, Some(limit)))
    }

    fn throttled(&self) -> Option<Throttled> {
        let limit = self.0.launch.cpu_limit?;
        // Simulates demand for one CPU in every other period.
        let elapsed = self.0.clock.now();
        let periods = elapsed.as_millis() as u64 / 100;
        let time = elapsed.mul_f64((1.0 - limit.as_cpus()) / 2.0);
        Some(Throttled { periods, throttled: periods / 2, time })
    }

    fn oom_kills(&self) -> u64 {
        self.0.look();
        self.0.oom_kills.get()
    }

    fn processes(&self) -> Vec<Process> {
        Vec::new()
    }

    fn guardian_pid(&self) -> u32 {
        PID - 2
    }

    fn lost(&self) -> bool {
        self.0.look();
        self.0.lost.get()
    }

    fn ended(&self) -> Option<Exit> {
        self.0.look();
        self.0.dead.get()
    }

    /// Like [`crate::subject::GuardedSubject::end`].
    fn end(self: Box<Self>, within: Duration) -> SubjectEnd {
        self.0.call("end");
        let (state, asked_at) = (&self.0, self.0.clock.now());
        let before = state.dead.get();
        let obeyed = state.script.ends_within.filter(|span| *span <= within);
        if before.is_none() {
            state.clock.sleep(obeyed.unwrap_or(within));
        }
        let cause = match state.output.out_of_memory_error() {
            _ if state.oom_kills.get() > 0 => EndCause::OomKill,
            _ if state.lost.get() => EndCause::GuardianLost,
            Some(_) if before.is_some() => EndCause::OutOfMemoryError,
            _ if before.is_some() => EndCause::ByItself,
            _ if obeyed.is_some() => EndCause::AsAsked,
            _ => EndCause::KilledAfterTerm,
        };
        let exit = before.or(Some(if obeyed.is_some() { Exit::Code(143) } else { Exit::Signal(9) }));
        SubjectEnd {
            exit,
            cause,
            oom_kills: state.oom_kills.get(),
            tail: state.output.tail_texts(200),
            took: state.clock.now() - asked_at,
            left: state.script.left,
        }
    }
}

impl Scales for Weigher {
    fn identify(&mut self, _: &[String], _: &[Complaint], _: &mut Vec<Doubt>) -> Identity {
        self.0.call("identify");
        self.0.clock.sleep(ASKING);
        Identity { jvm: Jvm { pid: PID, ..Jvm::default() }, flags: None, variables: None }
    }

    fn describe_unasked(&mut self, _: &[String], _: &[Complaint], _: &mut Vec<Doubt>) -> Jvm {
        self.0.call("describe");
        Jvm { pid: PID, ..Jvm::default() }
    }

    fn weigh(&mut self, weigh: MarkSettings, mark: &str, _: Living<'_>, _: &mut Vec<Doubt>) -> MarkReading {
        self.0.call(format!("weigh {mark}"));
        self.0.clock.sleep(WEIGHING);
        let rss_bytes = self.0.rss().unwrap_or(0);
        let used_bytes = self.0.script.live_bytes.map(|bytes| bytes + MIB);
        let live_bytes = used_bytes.filter(|_| weigh.moment == Moment::Collected);
        let heap = Heap { used_bytes, live_bytes, ..Heap::default() };
        MarkReading {
            mark: Mark { name: mark.to_owned(), rss_bytes, heap, ..Mark::default() },
            allocator: Some("glibc".to_owned()),
            rss_bytes_peak: Some(rss_bytes).filter(|bytes| *bytes > 0),
            ..MarkReading::default()
        }
    }

    fn survey(&self) -> Option<std::result::Result<NettyPools, String>> {
        self.0.script.survey.clone()
    }

    fn collects_not(&self) -> Option<&'static str> {
        self.0.script.collects_not
    }

    fn tell(
        &mut self,
        command: &str,
        _: &mut Vec<Doubt>,
        _: &mut Vec<String>,
    ) -> Option<std::result::Result<(), String>> {
        self.0.call(command);
        self.0.clock.sleep(ASKING);
        match self.0.script.asked {
            JvmReply::IsDeaf => None,
            _ if !self.0.lives() => Some(Err("it is gone".to_owned())),
            asked => Some(asked.reply(|| self.0.collected_at.set(Some(self.0.clock.now())))),
        }
    }

    fn heap_left(&mut self) -> Option<u64> {
        self.0.script.live_bytes.filter(|_| self.0.lives())
    }

    fn histogram(&mut self, _: &mut Vec<Doubt>) -> std::result::Result<ClassHistogram, String> {
        self.0.call("histogram");
        self.0.clock.sleep(ASKING);
        self.0.script.asked.reply(|| {
            // Each histogram contains one more object.
            let asked = self.0.calls.borrow().iter().filter(|call| *call == "histogram").count() as u64;
            let row = ClassRow { name: "[B".to_owned(), instances: asked, bytes: 16 * asked };
            ClassHistogram { rows: vec![row] }
        })
    }

    fn dump_heap(&mut self, path: &Path, _: &mut Vec<Doubt>) -> std::result::Result<HeapDumpRecord, String> {
        self.0.call("dump");
        let record = || HeapDumpRecord { path: path.display().to_string(), bytes: 4096, seconds: 0.5 };
        self.0.script.asked.reply(record)
    }

    fn used(&mut self, _: Living<'_>, _: &mut Vec<Doubt>) -> Used {
        let gc = GcTotal { count: self.0.clock.now().as_secs(), ns: self.0.clock.now_ns() / 100 };
        let cpu = Some(self.0.clock.now() / 2);
        let own = OwnTimes { jit: self.0.threads_noted.get() * ms(1), gc: ms(gc.count), vm: Duration::ZERO };
        let living = Spending { cpu, own: Some(own), gc: Some(gc), ..Spending::default() };
        let main = if self.0.lives() { living } else { Spending::default() };
        Used { main, ..Used::default() }
    }

    fn glance(&mut self) -> Used {
        self.0.threads_noted.set(self.0.threads_noted.get() + 1);
        self.used(&|| Vec::new(), &mut Vec::new())
    }

    fn lives(&self) -> bool {
        self.0.lives()
    }

    fn rss(&self) -> Option<u64> {
        self.0.rss()
    }

    fn inside(&self) -> Inside {
        Inside::default()
    }

    fn attached(&self) -> Option<Arc<Attach>> {
        None
    }

    fn observer(&self) -> Observer {
        Observer { attach_ms: Some(1.5), ..Observer::default() }
    }
}

impl Reports for Reporter {
    fn next(&mut self, within: Duration) -> Option<Message> {
        let (clock, now) = (self.state.clock, self.state.clock.now());
        self.state.look();
        let stops_within = self.state.script.answers.stops_within;
        if let Some(load) = self.load.as_mut().filter(|load| !load.stopped && load.control.is_stopped()) {
            load.stopped = true;
            load.ends = stops_within.map_or(Duration::MAX, |span| now + span);
        }
        let load_due = self.load.as_ref().map(|load| load.interval_due.min(load.ends));
        let sample_due = self.sample_due.filter(|_| self.state.lives());
        let due = [load_due, sample_due].into_iter().flatten().min();
        let Some(due) = due.filter(|due| *due <= now + within) else {
            clock.sleep(within);
            return None;
        };
        clock.sleep(due.saturating_sub(now));
        if sample_due == Some(due) {
            self.sample_due = Some(due + TICK);
            let rss_bytes = self.state.rss()?;
            self.samples += 1;
            let at_s = due.as_secs_f64();
            let answered =
                |load: &Load| (due - load.began).as_millis() as u64 * self.state.script.answers.per_s.0 / 1000;
            return Some(Message::Sample(Sample {
                at_s,
                rss_bytes,
                anon_bytes: Some(rss_bytes / 2),
                ok: self.load.as_ref().map_or(0, answered),
                ..Sample::default()
            }));
        }
        let lives = self.state.lives();
        let load = self.load.as_mut()?;
        if load.ends <= due {
            let outcome = load.outcome(&self.state.script.answers);
            self.load = None;
            return Some(Message::Load(LoadProgress::Done(Box::new(outcome))));
        }
        load.interval_due += Duration::from_secs(1);
        Some(Message::Load(LoadProgress::Interval(Box::new(load.interval(&self.state.script.answers, due, lives)))))
    }

    fn begin_load(&mut self, plan: Plan, control: Arc<Control>) {
        self.state.call("load");
        let (began, answers) = (self.state.clock.now(), &self.state.script.answers);
        let planned = plan.work.schedule.seconds().map_or(Duration::MAX, |s| began + Duration::from_secs_f64(s));
        let ends = match (&answers.error, answers.gives_up) {
            (Some(_), _) => began,
            (None, Some((span, _))) => planned.min(began + span),
            (None, None) => planned,
        };
        let interval_due = began + Duration::from_secs(1);
        let service = times();
        self.load = Some(Load { plan, control, began, interval_due, ends, stopped: false, sums: (0, 0), service });
    }

    fn end_load(&mut self) {
        self.state.call("load ended");
        assert!(self.load.is_none(), "a load ends only after its last message");
    }

    fn watch_direct(&mut self, _: Arc<Attach>) {}

    fn gate(&self) -> Gate {
        Gate::default()
    }

    fn end(&mut self) -> Cost {
        self.state.call("timeline ended");
        self.sample_due = None;
        Cost { samples: self.samples, ns: 1000 * self.samples, ..Cost::default() }
    }
}

fn times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 2).unwrap()
}

impl Load {
    /// The interval that ends now. A dead subject does not respond.
    fn interval(&mut self, answers: &Answers, end: Duration, lives: bool) -> Interval {
        let (ok, failed) = answers.per_s;
        let (ok, failed) = if lives { (ok, failed) } else { (0, ok + failed) };
        let mut service = times();
        service.record_n(answers.service_ms * 1_000_000, ok).unwrap();
        self.service.add(&service).unwrap();
        self.sums = (self.sums.0 + ok, self.sums.1 + failed);
        let end_ns = end.as_nanos() as u64;
        Interval {
            start_ns: end_ns - 1_000_000_000,
            end_ns,
            service,
            response: None,
            ok,
            failed,
            offered: None,
            bytes_received: 0,
            open_connections: 1,
            queue: 0,
        }
    }

    fn outcome(&self, answers: &Answers) -> Result<Outcome> {
        if let Some(error) = &answers.error {
            return Err(error.clone());
        }
        let ((ok, failed), elapsed) = (self.sums, self.ends - self.began);
        let ended = match answers.gives_up {
            _ if self.stopped => End::Stopped,
            Some((span, why)) if elapsed == span => End::GaveUp(why.to_owned()),
            _ => End::Done,
        };
        Ok(Outcome {
            start_ns: self.began.as_nanos() as u64,
            elapsed_ns: elapsed.as_nanos() as u64,
            requests: ok + failed,
            ok,
            failures: Failures { timeout: failed, ..Failures::default() },
            rate_ok: ok,
            rate_span_ns: elapsed.as_nanos() as u64,
            service: self.service.clone(),
            response: None,
            lag: None,
            offered: None,
            queued: 0,
            queue_max: 0,
            unanswered: times(),
            in_flight: 0,
            connections_asked: 1,
            connections_opened: 1,
            connections_open_max: 1,
            by_request: vec![(ok, failed); self.plan.work.requests().count()],
            never_begun: 0,
            rows: Vec::new(),
            tls_trouble: answers.tls.map(|(words, _)| words.to_owned()),
            tls_told: answers.tls.is_some_and(|(_, told)| told),
            backend: "http/1.1".to_owned(),
            bytes_sent: 0,
            bytes_received: 0,
            wrong_statuses: [].into(),
            ended,
            cpu_ns: 0,
            threads: 1,
        })
    }
}

impl RunningDriver for Driver {
    fn has_ended(&self) -> bool {
        self.0.script.drives.ends.is_some_and(|span| self.1 + span <= self.0.clock.now())
    }

    fn cpu(&self) -> Option<Duration> {
        Some(ms(250))
    }

    fn end(self: Box<Self>) -> DriverEnd {
        self.0.call("driver ended");
        let (ended, Drives { exit, text, left, .. }) = (self.has_ended(), self.0.script.drives.clone());
        DriverEnd { exit: exit.filter(|_| ended), text: text.to_owned(), left, log_trouble: None }
    }
}

pub(super) struct MadeTrial {
    pub(super) trial: Trial,
    pub(super) error: Option<Error>,
    /// All calls, in order.
    pub(super) calls: Vec<String>,
    /// Events that the sink received, without samples.
    pub(super) events: Vec<String>,
    /// Samples with the phase that reported them, or "".
    pub(super) samples: Vec<(String, Sample)>,
    pub(super) took: Duration,
}

#[derive(Default)]
struct Notes {
    events: Vec<String>,
    samples: Vec<(String, Sample)>,
}

impl Sink for Notes {
    fn receive(&mut self, event: &Event<'_>) {
        self.events.push(match event {
            Event::Sample { phase, sample } => {
                return self.samples.push((phase.unwrap_or_default().to_owned(), **sample));
            }
            Event::Starting { .. } => "starting".to_owned(),
            Event::Ready { .. } => "ready".to_owned(),
            Event::PhaseStarted { name, .. } => format!("begin {name}"),
            Event::Interval { phase, .. } => format!("second of {phase}"),
            Event::PhaseEnded(record) => format!("end {}", record.name),
            Event::Marked(mark) => format!("mark {}", mark.name),
            Event::Doubted(doubt) => format!("doubt {}", doubt.text()),
            other => format!("{other:?}"),
        });
    }
}

pub(super) fn carry_out_in(script: Script, plan: &TrialPlan) -> MadeTrial {
    let clock = Clock::made_up();
    let nowhere = PathBuf::from("/nowhere/loadline");
    let cpus = CpuPlan { subject: Some(vec![0]), load: None };
    let place = LaunchPlace { port: 8080, work: None, cpus: &cpus, jdk: None, image: None };
    let (argv, passed) = (plan.subject.command.clone(), OptionsPassed::AtPlaceholder);
    let launch = Launch::of(&plan.subject, &plan.configuration, &place);
    let reads = plan.load.has_own_work();
    let launch = Launch { argv, options_passed: passed, limit: script.limit, reads, ..launch };
    let state = Rc::new(WorldState {
        clock,
        interrupt: AtomicBool::new(false),
        output: Output::made_up(),
        launch: launch.clone(),
        cgroup: Cgroup { version: CgroupVersion::V2, folder: nowhere.clone(), mount: nowhere },
        due: RefCell::new(script.happenings.clone()),
        dead: Cell::new(None),
        oom_kills: Cell::new(0),
        lost: Cell::new(false),
        loaded: Cell::new(false),
        collected_at: Cell::new(None),
        goes: Cell::new(0),
        threads_noted: Cell::new(0),
        calls: RefCell::default(),
        script,
    });
    let machine = Machine { cores: 2, memory_bytes: 1 << 33, cgroup: "v2".to_owned(), ..Machine::default() };
    let (world, mut notes) = (MadeUpWorld(Rc::clone(&state)), Notes::default());
    let stage = Stage { world: &world, clock, interrupt: &state.interrupt, machine: &machine, cpus: &[0] };
    let again = launch.clone();
    let afresh = || Ok((again.clone(), None));
    let prepared = PreparedTrial { launch, agent: None, work: None, shares_cpus: false, afresh: Some(&afresh) };
    let Conducted { trial, error } = conclude(plan, |trial| carry_out(stage, plan, prepared, trial, &mut notes));
    let calls = state.calls.take();
    MadeTrial { trial, error, calls, events: notes.events, samples: notes.samples, took: clock.now() }
}
