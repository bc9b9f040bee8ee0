//! All processes of a subject: the serving one and, if the subject consists of several, the others. Finds, measures,
//! commands, and counts them together.

use super::identity::name;
use super::sampler::{Inside, Sources};
use super::scales::{Living, Scales};
use super::sum::{self, WeighedProcess};
use super::used::{Spending, Used};
use super::watched::{Identity, Watched};
use super::weighing::{MarkReading, MarkSettings, Moment, add_news};
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::Result;
use crate::observe::agent::SubjectAgent;
use crate::observe::attach::Attach;
use crate::observe::class_histogram::ClassHistogram;
use crate::observe::heap_info::HeapInfo;
use crate::observe::thread_purposes::OwnThreads;
use crate::record::{HeapDumpRecord, Jvm, NettyPools, Observer};
use crate::scenario::{Asking, Kind};
use crate::subject::Complaint;
use crate::subject::processes::Process;
use crate::subject::serving::is_jvm;
use loadline_jvm::accounting::{self, Allocation};
use std::path::Path;
use std::sync::Arc;

/// More than any subject has; others are not measured.
const OTHERS_MAX: usize = 200;

pub(crate) struct Processes {
    /// Processes of a subject that is not a JVM are never attached to.
    kind: Kind,
    clock: Clock,
    asking: Asking,
    /// Whether the other processes belong to the subject too.
    all: bool,
    /// The serving process. It is kept even after it has ended.
    main: Member,
    others: Vec<Member>,
}

struct Member {
    name: String,
    watched: Watched,
    /// Whether its last full collection was complete, so used heap is live.
    collected: bool,
    /// Whether it is part of a mark.
    weighed: bool,
    /// The JVM's own threads, as opposed to the program's.
    own_threads: OwnThreads,
}

impl Processes {
    /// Opens the serving process; the others are looked up at each measurement. `agent` is the JVM's agent, if any.
    pub(crate) fn open(sources: &Sources, agent: Option<SubjectAgent>, doubts: &mut Vec<Doubt>) -> Result<Self> {
        let Sources { pid, kind, own_cgroup, clock, asking, .. } = *sources;
        let mut watched = Watched::open(pid, own_cgroup, kind, clock, doubts)?;
        watched.agent = agent;
        let main = Member::of(String::new(), watched.asked(asking));
        Ok(Self { kind, clock, asking, all: sources.members.is_some(), main, others: Vec::new() })
    }

    /// Finds the current processes. Reports each measured one that has ended, and when that was noticed.
    fn find(&mut self, living: &[Process], at: &str, doubts: &mut Vec<Doubt>) {
        let lives = |member: &Member| living.iter().any(|process| member.is(process)) && member.watched.lives();
        for member in self.others.iter().filter(|member| !lives(member)) {
            doubts.extend(member.ended(at));
        }
        self.others.retain(lives);
        let mut left_out = 0;
        for process in living {
            if process.pid == self.main.pid() {
                self.main.name.clone_from(&process.name);
                continue;
            }
            let kind = match (self.kind, is_jvm(process.pid)) {
                (Kind::Jvm, Some(true)) => Kind::Jvm,
                _ => Kind::Native,
            };
            let full = self.others.len() >= OTHERS_MAX;
            match self.others.iter_mut().find(|member| member.is(process)) {
                // A launcher became the JVM, or a shell the program it executes.
                Some(known) if known.watched.kind == Kind::Native && kind == Kind::Jvm => {
                    if let Ok(watched) = Watched::open(process.pid, false, kind, self.clock, doubts) {
                        known.watched = watched.asked(self.asking);
                    }
                    known.name.clone_from(&process.name);
                }
                Some(known) => known.name.clone_from(&process.name),
                None if full => left_out += 1,
                // One that has just ended was never measured.
                None => self.others.extend(Member::open(process, kind, (self.clock, self.asking), doubts)),
            }
        }
        let doubt = Doubt::ProcessesLeftOut { left_out, most: OTHERS_MAX as u64 };
        add_news(doubts, (left_out > 0).then_some(doubt));
    }
}

impl Scales for Processes {
    fn identify(&mut self, options: &[String], complaints: &[Complaint], doubts: &mut Vec<Doubt>) -> Identity {
        let mut identity = self.main.watched.identify(options, complaints, doubts);
        let command = self.main.watched.own_identity().command;
        identity.jvm.program = command.map(|command| name(&[], Some(&command), ""));
        identity
    }

    fn describe_unasked(&mut self, options: &[String], complaints: &[Complaint], doubts: &mut Vec<Doubt>) -> Jvm {
        self.main.watched.describe_unasked(options, complaints, doubts)
    }

    fn weigh(&mut self, weigh: MarkSettings, mark: &str, living: Living<'_>, doubts: &mut Vec<Doubt>) -> MarkReading {
        let main = &mut self.main;
        let taken = weigh.weigh(&mut main.watched, mark, doubts);
        if !self.all {
            return taken;
        }
        main.name.clear();
        self.find(&living(), &format!("mark {mark}"), doubts);
        let mut parts = vec![self.main.part(taken)];
        parts.extend(self.others.iter_mut().filter_map(|member| member.weigh(weigh, mark, doubts)));
        let taken = sum::sum(parts);
        add_news(doubts, sum::doubt(&taken.mark));
        taken
    }

    fn survey(&self) -> Option<std::result::Result<NettyPools, String>> {
        self.main.watched.agent.is_some().then(|| self.main.watched.survey())
    }

    fn collects_not(&self) -> Option<&'static str> {
        self.main.watched.collects_not
    }

    fn tell(
        &mut self,
        command: &str,
        doubts: &mut Vec<Doubt>,
        failed: &mut Vec<String>,
    ) -> Option<std::result::Result<(), String>> {
        self.main.watched.attach(doubts);
        let reply = self.main.watched.tell(command)?;
        if reply.is_ok() {
            let jvms = self.others.iter_mut().filter(|member| member.watched.kind == Kind::Jvm);
            failed.extend(jvms.filter_map(|member| member.tell(command, doubts)));
        }
        Some(reply.map(drop))
    }

    fn heap_left(&mut self) -> Option<u64> {
        let watched = &mut self.main.watched;
        let info = HeapInfo::parse(&watched.ask("GC.heap_info").filter(|_| !self.all)?.ok()?).ok()?;
        let left = watched.counters().as_ref().and_then(accounting::left_by_last_gc);
        Some(left.map_or(info.used.0, |left| left.min(info.used.0)))
    }

    fn histogram(&mut self, doubts: &mut Vec<Doubt>) -> std::result::Result<ClassHistogram, String> {
        self.main.watched.attach(doubts);
        self.main.watched.histogram()
    }

    fn dump_heap(&mut self, path: &Path, doubts: &mut Vec<Doubt>) -> std::result::Result<HeapDumpRecord, String> {
        self.main.watched.attach(doubts);
        self.main.watched.dump_heap(path)
    }

    fn used(&mut self, living: Living<'_>, doubts: &mut Vec<Doubt>) -> Used {
        if self.all {
            self.find(&living(), "the end of a phase", doubts);
        }
        let others = self.others.iter_mut().map(|member| (member.identity(), member.used())).collect();
        Used { main: self.main.used(), others }
    }

    fn glance(&mut self) -> Used {
        let others = self.others.iter_mut().map(|member| (member.identity(), member.glance())).collect();
        Used { main: self.main.glance(), others }
    }

    fn lives(&self) -> bool {
        self.main.watched.lives()
    }

    fn rss(&self) -> Option<u64> {
        self.main.watched.process.statm(&self.clock).ok().map(|statm| statm.value.resident.0)
    }

    fn inside(&self) -> Inside {
        let Watched { allocation, direct, .. } = &self.main.watched;
        Inside {
            threads: allocation.as_ref().map(Allocation::threads),
            direct: direct.clone(),
            compilers: self.main.watched.compilers(),
        }
    }

    fn attached(&self) -> Option<Arc<Attach>> {
        self.main.watched.attached()
    }

    fn observer(&self) -> Observer {
        self.main.watched.observer.clone()
    }
}

impl Member {
    fn of(name: String, watched: Watched) -> Self {
        Self { name, watched, collected: false, weighed: false, own_threads: OwnThreads::default() }
    }

    fn open(process: &Process, kind: Kind, (clock, asking): (Clock, Asking), doubts: &mut Vec<Doubt>) -> Option<Self> {
        let mut found = Vec::new();
        let watched = Watched::open(process.pid, false, kind, clock, &mut found).ok()?;
        add_news(doubts, found);
        Some(Self::of(process.name.clone(), watched.asked(asking)))
    }

    fn pid(&self) -> u32 {
        self.watched.process.pid()
    }

    fn identity(&self) -> (u32, u64) {
        (self.pid(), self.watched.process.start_ticks())
    }

    fn is(&self, process: &Process) -> bool {
        self.identity() == (process.pid, process.started_ticks)
    }

    /// A doubt about an ended process that an earlier mark includes, so the next mark is smaller.
    fn ended(&self, at: &str) -> Option<Doubt> {
        let (pid, name, at) = (self.pid(), self.name.clone(), at.to_owned());
        self.weighed.then_some(Doubt::ProcessEnded { pid, name, at })
    }

    /// Measures another process; `None` if it ends first.
    fn weigh(&mut self, weigh: MarkSettings, mark: &str, doubts: &mut Vec<Doubt>) -> Option<WeighedProcess> {
        let moment = if self.collected { weigh.moment } else { Moment::Running };
        let mut found = Vec::new();
        let taken = MarkSettings { moment, ..weigh }.weigh(&mut self.watched, mark, &mut found);
        if !self.watched.lives() || taken.mark.rss_bytes == 0 {
            doubts.extend(self.ended(mark));
            return None;
        }
        self.weighed = true;
        add_news(doubts, found);
        Some(self.part(taken))
    }

    fn part(&self, taken: MarkReading) -> WeighedProcess {
        WeighedProcess { pid: self.pid(), name: self.name.clone(), is_jvm: self.watched.kind == Kind::Jvm, taken }
    }

    /// Sends a diagnostic command to another JVM. Returns the reason if that fails.
    fn tell(&mut self, command: &str, doubts: &mut Vec<Doubt>) -> Option<String> {
        self.watched.attach(doubts);
        if self.watched.collects_not.is_none() && !self.collected {
            // Its own flags may forbid what the other JVM's allow; further doubts about them are not news.
            self.watched.identify(&[], &[], &mut Vec::new());
        }
        let why = match (self.watched.collects_not, self.watched.tell(command)) {
            (Some(why), _) => Some(why.to_owned()),
            (None, Some(reply)) => reply.err(),
            (None, None) => Some("it cannot be queried".to_owned()),
        };
        self.collected = why.is_none();
        why.map(|why| format!("`{command}` failed in the JVM with pid {}: {why}", self.pid()))
    }

    /// The part of its usage so far that is readable from outside the process.
    fn glance(&mut self) -> Spending {
        let sample = self.watched.sample();
        Spending {
            cpu: self.watched.process.cpu_time(&self.watched.clock),
            own: self.own_threads.read(&self.watched.process).filter(|_| self.watched.kind == Kind::Jvm),
            gc: sample.and_then(|sample| sample.gc),
            allocated: self.watched.allocated_unasked(),
            compiled: sample.map(|sample| sample.compiled.0),
        }
    }

    /// Its usage so far. Attaches for allocated bytes if the tables are unreadable.
    fn used(&mut self) -> Spending {
        let glance = self.glance();
        Spending { allocated: glance.allocated.or_else(|| self.watched.allocated()), ..glance }
    }
}
