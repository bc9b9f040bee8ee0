//! A subject from its start to its end.

use super::contained::Contained;
use super::container_files;
use super::guarded::{Guarded, Spawner};
use super::keeper::Keeper;
use super::launch::Launch;
use super::limit::MemoryCgroup;
use super::output::{Output, Watch};
use super::processes::{self, Process};
use super::protocol::Exit;
use super::quota::CpuCgroup;
use super::ready::{self, ReadyInfo};
use super::stdin::Stdin;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::cgroup::Cgroup;
use crate::kernel::cpu_cgroup::Throttled;
use crate::record::EndCause;
use crate::units::{Bytes, Millicpus};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks whether everything ended.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// The client of a container or a step tells its end within two seconds of it.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(5);
/// Lines of the output kept with the end.
const TAIL_LINES: usize = 200;

/// A subject that was started.
pub trait RunningSubject {
    /// Waits until it is ready, at most for `within` from its start.
    ///
    /// # Errors
    /// When it ended, is no JVM, was not ready in time, or `interrupted` says that the user wants to stop.
    fn wait_ready(&mut self, within: Duration, interrupted: &dyn Fn() -> bool) -> Result<ReadyInfo>;

    /// How it was started.
    fn launch(&self) -> &Launch;

    /// When it was started, after the clock's origin.
    fn started_at(&self) -> Duration;

    /// Its output.
    fn output(&self) -> &Output;

    /// Tells it to go on, where it waits for that at a marker.
    fn go(&mut self);

    /// Its memory cgroup, if it has one of its own, with the limit, if one was asked for.
    fn cgroup(&self) -> Option<(&Cgroup, Option<Bytes>)>;

    /// The unit of its limit in bytes, where that is more than a page.
    fn limit_grain(&self) -> Option<Bytes> {
        None
    }

    /// How its CPU limit held it back so far; `None` where it has none.
    fn throttled(&self) -> Option<Throttled>;

    /// Processes the kernel killed for want of memory in its cgroup.
    fn oom_kills(&self) -> u64;

    /// All its living processes.
    fn processes(&self) -> Vec<Process>;

    /// The process whose descendants are the subject: the guardian, or what started the container.
    fn guardian_pid(&self) -> u32;

    /// The folders on this machine that the files in its container lie in; `None` where it runs in none.
    fn layers(&self) -> Option<Vec<PathBuf>> {
        None
    }

    /// Whether its guardian was killed; the subject is then dead too.
    fn lost(&self) -> bool;

    /// How it ended, when it did. A start script that ends well and leaves its server running has not ended.
    fn ended(&self) -> Option<Exit>;

    /// Asks it to end, kills what is left after `within`, and makes sure that nothing of it remains.
    fn end(self: Box<Self>, within: Duration) -> SubjectEnd;
}

/// A subject under a guardian of this machine. Dropping it kills it.
#[derive(Debug)]
pub struct GuardedSubject {
    // Fields are dropped in this order: the guardian ends everything before the cgroup goes.
    guarded: Guarded,
    cgroup: Option<MemoryCgroup>,
    /// Only where it has a CPU limit.
    quota: Option<CpuCgroup>,
    /// Only where the subject runs in a container or a step.
    contained: Option<Contained>,
    output: Output,
    /// Only where the subject reads.
    stdin: Option<Stdin>,
    launch: Launch,
    clock: Clock,
    started_at: Duration,
    /// Kept from when the cgroup was still there.
    oom_kills: u64,
    /// Whether it was asked to end: whatever becomes of its container then is our doing.
    asked_to_end: bool,
}

/// Slurm limits the memory of a step, and no share of its CPU time.
fn no_quota_in_a_step(limit: Millicpus) -> Error {
    Error::machine(format!("cannot set a limit of {limit}: the subject is a step of Slurm, which sets none"))
        .hint("leave `cpu_limit` out, or run Loadline where it may make cgroups")
}

/// How a subject ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectEnd {
    /// The exit of the command; `None` when it could not be learned.
    pub exit: Option<Exit>,
    /// Why.
    pub cause: EndCause,
    /// Processes the kernel killed for want of memory in the subject's cgroup.
    pub oom_kills: u64,
    /// The last lines of the output, oldest first.
    pub tail: Vec<String>,
    /// From being asked to end until nothing was left.
    pub took: Duration,
    /// Processes that could not be killed: none, short of a hanging device.
    pub left: usize,
}

impl Spawner {
    /// Starts a subject: its limit, its guardian, its command, the reading of its output.
    ///
    /// # Errors
    /// When a limit cannot be set here, or the command cannot be executed.
    pub fn start(&self, launch: &Launch, log: Option<&Path>) -> Result<GuardedSubject> {
        let clock = self.clock;
        let watch = Watch::new(&launch.subject.ready, &launch.phases)?;
        let (cgroup, keeper) = match (&launch.container, launch.limit) {
            // A container has its limit from its tool.
            (Some(container), _) => (None, Some(Keeper::Container(container.clone()))),
            (None, Some(limit)) => MemoryCgroup::create_or_find_keeper(limit, clock)?,
            (None, None) if launch.is_cgroup() => (Some(MemoryCgroup::create(None, clock)?), None),
            (None, None) => (None, None),
        };
        let quota = match (&keeper, launch.cpu_limit) {
            (None, Some(limit)) => {
                Some(CpuCgroup::create(limit, cgroup.as_ref().map(|limited| &limited.cgroup), clock)?)
            }
            (Some(Keeper::Step(_)), Some(limit)) => return Err(no_quota_in_a_step(limit)),
            _ => None,
        };
        let contained = keeper.as_ref().map(Contained::begin);
        let started_at = clock.now();
        let (read, stdin) = launch.reads.then(Stdin::open).transpose()?.unzip();
        let limited = [cgroup.as_ref().map(|limited| &limited.cgroup), quota.as_ref().map(|limited| &limited.cgroup)];
        let mut cgroups: Vec<PathBuf> = limited.into_iter().flatten().map(|limited| limited.folder.clone()).collect();
        // On v2 both limits have one.
        cgroups.dedup();
        let order = launch.order(cgroups, keeper.as_ref());
        let (guarded, pipe) = self.guard(&order, read)?;
        let output = Output::read(pipe, watch, log, clock)?;
        let mut running = GuardedSubject {
            guarded,
            cgroup,
            quota,
            contained,
            output,
            stdin,
            launch: launch.clone(),
            clock,
            started_at,
            oom_kills: 0,
            asked_to_end: false,
        };
        running.find_kept()?;
        Ok(running)
    }
}

impl RunningSubject for GuardedSubject {
    fn wait_ready(&mut self, within: Duration, interrupted: &dyn Fn() -> bool) -> Result<ReadyInfo> {
        ready::wait(self, within, interrupted)
    }

    fn launch(&self) -> &Launch {
        &self.launch
    }

    fn started_at(&self) -> Duration {
        self.started_at
    }

    fn output(&self) -> &Output {
        &self.output
    }

    fn go(&mut self) {
        self.stdin.iter_mut().for_each(Stdin::go);
    }

    fn cgroup(&self) -> Option<(&Cgroup, Option<Bytes>)> {
        self.cgroup.as_ref().map(|own| (&own.cgroup, own.limit))
    }

    fn limit_grain(&self) -> Option<Bytes> {
        self.contained.as_ref()?.keeper.limit_grain()
    }

    fn throttled(&self) -> Option<Throttled> {
        self.quota.as_ref()?.throttled()
    }

    fn oom_kills(&self) -> u64 {
        let counted = self.oom_kills.max(self.cgroup.as_ref().map_or(0, MemoryCgroup::oom_kills));
        // The cgroup of a container goes with its first process, and the count with it; who started it has the last
        // word.
        let is_over = self.contained.as_ref().is_some_and(Contained::is_over);
        if is_over && counted == 0 && !self.asked_to_end {
            self.guarded.wait_exit(LAST_WORDS_WITHIN);
        }
        let ended = || Some((self.contained.as_ref()?, self.guarded.exit()?));
        let asks = counted == 0 && !self.asked_to_end && self.launch.limit.is_some();
        match ended().filter(|_| asks) {
            Some((contained, exit)) => {
                u64::from(contained.was_killed_for_memory(exit, &self.output.tail_texts(TAIL_LINES)))
            }
            None => counted,
        }
    }

    fn processes(&self) -> Vec<Process> {
        if let Some(own) = self.cgroup.as_ref().filter(|_| self.launch.is_cgroup()) {
            return processes::living(own.cgroup.all_pids());
        }
        self.contained.as_ref().map_or_else(|| self.guarded.processes(), Contained::processes)
    }

    fn guardian_pid(&self) -> u32 {
        self.contained.as_ref().and_then(Contained::parent).unwrap_or(self.guarded.guardian_pid)
    }

    fn layers(&self) -> Option<Vec<PathBuf>> {
        self.launch.container.as_ref()?;
        let contained = self.contained.as_ref()?;
        Some(contained.first.as_ref().map(|first| container_files::layers(first.pid)).unwrap_or_default())
    }

    fn lost(&self) -> bool {
        self.guarded.lost()
    }

    fn ended(&self) -> Option<Exit> {
        let exit = self.guarded.exit()?;
        (exit != Exit::Code(0) || self.processes().is_empty()).then_some(exit)
    }

    fn end(self: Box<Self>, within: Duration) -> SubjectEnd {
        Self::end(*self, within)
    }
}

impl GuardedSubject {
    /// The process of the command itself, which need not be the JVM.
    pub fn command_pid(&self) -> u32 {
        self.guarded.command_pid
    }

    /// Finds its container or step, and takes its time from there: the time before that is not the subject's.
    fn find_kept(&mut self) -> Result<()> {
        let Some(contained) = &mut self.contained else { return Ok(()) };
        contained.await_first(&self.guarded, self.clock)?;
        let Some(first) = &contained.first else { return Ok(()) };
        self.started_at = first.started_at(self.clock).unwrap_or(self.started_at).max(self.started_at);
        let (pid, keeper) = (first.pid, &contained.keeper);
        let counts = self.launch.limit.is_some() || self.launch.is_cgroup();
        let adopted = counts.then(|| MemoryCgroup::adopt(pid, self.launch.limit, keeper)).transpose();
        let limited = self.launch.cpu_limit.map(|limit| CpuCgroup::adopt(pid, limit, keeper)).transpose();
        // One that has ended already has its words for it.
        (self.cgroup, self.quota) = match adopted.and_then(|adopted| Ok((adopted, limited?))) {
            Err(_) if !first.is_there() => (None, None),
            adopted => adopted?,
        };
        Ok(())
    }

    /// Whether it was to run in a container or a step, and no process of one was seen.
    pub(super) fn container_never_ran(&self) -> bool {
        self.contained.as_ref().is_some_and(|contained| contained.first.is_none())
    }

    /// The clock it was started with.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits until the command ends or the time is over.
    pub(super) fn wait_exit(&self, within: Duration) {
        if self.guarded.exit().is_some() {
            // A start script that has ended sends no second wake-up.
            self.clock.sleep(within);
        } else {
            self.guarded.wait_exit(within);
        }
    }

    /// Asks it to end, kills what is left after `within`, and makes sure that nothing of it remains.
    pub fn end(mut self, within: Duration) -> SubjectEnd {
        let asked_at = self.clock.now();
        let lost = self.lost();
        let ended_before = self.ended().is_some();
        self.oom_kills = self.oom_kills();
        self.asked_to_end = true;
        let obeyed = self.ask_to_end(within);
        if obeyed && self.contained.as_ref().is_some_and(|contained| contained.keeper.adopts()) {
            // Its last output comes by way of srun.
            self.guarded.wait_exit(LAST_WORDS_WITHIN);
        }
        let left = self.close();
        let oom_kills = self.oom_kills;
        let cause = match self.output.out_of_memory_error() {
            _ if oom_kills > 0 => EndCause::OomKill,
            _ if lost => EndCause::GuardianLost,
            Some(_) if ended_before => EndCause::OutOfMemoryError,
            _ if ended_before => EndCause::ByItself,
            _ if obeyed => EndCause::AsAsked,
            _ => EndCause::KilledAfterTerm,
        };
        let (exit, tail) = (self.guarded.exit(), self.output.tail_texts(TAIL_LINES));
        SubjectEnd { exit, cause, oom_kills, tail, took: self.clock.now() - asked_at, left }
    }

    /// Has everything killed and its last words read. Returns how many processes could not be killed.
    pub(super) fn close(&mut self) -> usize {
        // The guardian removes the cgroup, and the count with it.
        self.oom_kills = self.oom_kills();
        self.asked_to_end = true;
        let left = self.guarded.finish();
        self.output.drain();
        left
    }

    /// TERM to every process, those that appear meanwhile included. True when none was left in time.
    fn ask_to_end(&self, within: Duration) -> bool {
        let until = self.clock.now() + within;
        let mut asked = std::collections::HashSet::new();
        loop {
            let processes = self.processes();
            if processes.is_empty() {
                return true;
            }
            if self.clock.now() >= until {
                return false;
            }
            for process in processes.iter().filter(|process| asked.insert((process.pid, process.started_ticks))) {
                process.signal(Signal::TERM);
            }
            self.clock.sleep(LOOK_AGAIN_AFTER.min(until.saturating_sub(self.clock.now())));
        }
    }
}
