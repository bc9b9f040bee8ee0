//! A subject from start to finish.

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

/// The interval between checks for the end of the subject.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// The client of a container or step reports the end within two seconds.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(5);
/// Output lines kept after the end.
const TAIL_LINES: usize = 200;

/// A started subject.
pub trait RunningSubject {
    /// Waits until it is ready, for at most `within` after its start; `say` receives advice for the user.
    /// Fails if it ended, is not a JVM, is not ready in time, or the user interrupts.
    fn wait_ready(
        &mut self,
        within: Duration,
        interrupted: &dyn Fn() -> bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<ReadyInfo>;

    /// How it was started.
    fn launch(&self) -> &Launch;

    /// When it was started, relative to the clock's origin.
    fn started_at(&self) -> Duration;

    /// Its output.
    fn output(&self) -> &Output;

    /// Lets it continue if it waits at a marker.
    fn go(&mut self);

    /// Its memory cgroup, if it has its own, with the requested limit, if any.
    fn cgroup(&self) -> Option<(&Cgroup, Option<Bytes>)>;

    /// The granularity of its limit in bytes, if coarser than a page.
    fn limit_grain(&self) -> Option<Bytes> {
        None
    }

    /// How much its CPU limit has throttled it so far; `None` without a limit.
    fn throttled(&self) -> Option<Throttled>;

    /// OOM kills in its cgroup.
    fn oom_kills(&self) -> u64;

    /// All its live processes.
    fn processes(&self) -> Vec<Process>;

    /// The process whose descendants are the subject: the guardian, or the one that started the container.
    fn guardian_pid(&self) -> u32;

    /// The directories on this machine with its container's files; `None` without a container.
    fn layers(&self) -> Option<Vec<PathBuf>> {
        None
    }

    /// Whether its guardian was killed, which also kills the subject.
    fn lost(&self) -> bool;

    /// Its exit, if it has ended. A start script that exits successfully and leaves its server running has not ended.
    fn ended(&self) -> Option<Exit>;

    /// Asks it to end, kills the rest after `within`, and ensures that nothing remains.
    fn end(self: Box<Self>, within: Duration) -> SubjectEnd;
}

/// A subject under a guardian on this machine. Dropping it kills it.
#[derive(Debug)]
pub struct GuardedSubject {
    // Drop order: the guardian ends everything before the cgroup is removed.
    guarded: Guarded,
    cgroup: Option<MemoryCgroup>,
    /// Only if it has a CPU limit.
    quota: Option<CpuCgroup>,
    /// Only if the subject runs in a container or a step.
    contained: Option<Contained>,
    output: Output,
    /// Only if the subject reads.
    stdin: Option<Stdin>,
    launch: Launch,
    clock: Clock,
    started_at: Duration,
    /// Saved before the cgroup was removed.
    oom_kills: u64,
    /// Whether it was asked to end, so Loadline caused the end of its container.
    asked_to_end: bool,
}

/// Slurm limits a step's memory, but not its CPU time.
fn no_quota_in_a_step(limit: Millicpus) -> Error {
    Error::machine(format!("cannot set a limit of {limit}: the server is a Slurm step, which cannot have one"))
        .hint("remove `cpu_limit`, or run Loadline where it can create cgroups")
}

/// The end of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectEnd {
    /// The command's exit; `None` if unknown.
    pub exit: Option<Exit>,
    /// Why it ended.
    pub cause: EndCause,
    /// OOM kills in the subject's cgroup.
    pub oom_kills: u64,
    /// The last output lines, oldest first.
    pub tail: Vec<String>,
    /// The time from the request to end until no process was left.
    pub took: Duration,
    /// Processes that could not be killed: 0 unless a device hangs.
    pub left: usize,
}

impl Spawner {
    /// Starts a subject: its limit, guardian, command, and output reader. Fails if a limit cannot be set here, or if
    /// the command cannot be executed.
    pub fn start(&self, launch: &Launch, log: Option<&Path>) -> Result<GuardedSubject> {
        let clock = self.clock;
        let watch = Watch::new(&launch.subject.ready, &launch.phases)?;
        let (cgroup, keeper) = match (&launch.container, launch.limit) {
            // The tool sets a container's limit.
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
        // On v2, both limits share a cgroup.
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
    fn wait_ready(
        &mut self,
        within: Duration,
        interrupted: &dyn Fn() -> bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<ReadyInfo> {
        ready::wait(self, within, interrupted, say)
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
        // A container's cgroup and kill count end with its first process, so the tool decides.
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
    /// The pid of the command, which need not be the JVM.
    pub fn command_pid(&self) -> u32 {
        self.guarded.command_pid
    }

    /// Finds its container or step, whose start becomes the subject's start: earlier time is not the subject's.
    fn find_kept(&mut self) -> Result<()> {
        let Some(contained) = &mut self.contained else { return Ok(()) };
        contained.await_first(&self.guarded, self.clock)?;
        let Some(first) = &contained.first else { return Ok(()) };
        self.started_at = first.started_at(self.clock).unwrap_or(self.started_at).max(self.started_at);
        let (pid, keeper) = (first.pid, &contained.keeper);
        let counts = self.launch.limit.is_some() || self.launch.is_cgroup();
        let adopted = counts.then(|| MemoryCgroup::adopt(pid, self.launch.limit, keeper)).transpose();
        let limited = self.launch.cpu_limit.map(|limit| CpuCgroup::adopt(pid, limit, keeper)).transpose();
        // If it has already ended, its output shows the reason.
        (self.cgroup, self.quota) = match adopted.and_then(|adopted| Ok((adopted, limited?))) {
            Err(_) if !first.is_there() => (None, None),
            adopted => adopted?,
        };
        Ok(())
    }

    /// Whether no process of its container or step was ever seen.
    pub(super) fn container_never_ran(&self) -> bool {
        self.contained.as_ref().is_some_and(|contained| contained.first.is_none())
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits until the command ends or the time is up.
    pub(super) fn wait_exit(&self, within: Duration) {
        if self.guarded.exit().is_some() {
            // The start script has already exited, so there is no exit to wait for.
            self.clock.sleep(within);
        } else {
            self.guarded.wait_exit(within);
        }
    }

    /// Asks it to end, kills the rest after `within`, and ensures that nothing remains.
    pub fn end(mut self, within: Duration) -> SubjectEnd {
        let asked_at = self.clock.now();
        let lost = self.lost();
        let ended_before = self.ended().is_some();
        self.oom_kills = self.oom_kills();
        self.asked_to_end = true;
        let obeyed = self.ask_to_end(within);
        if obeyed && self.contained.as_ref().is_some_and(|contained| contained.keeper.adopts()) {
            // Its last output arrives through srun.
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

    /// Kills everything and reads the last output. Returns the number of processes that could not be killed.
    pub(super) fn close(&mut self) -> usize {
        // The guardian removes the cgroup and its count.
        self.oom_kills = self.oom_kills();
        self.asked_to_end = true;
        let left = self.guarded.finish();
        self.output.drain();
        left
    }

    /// Sends SIGTERM to every process, including new ones. Returns whether all ended in time.
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
