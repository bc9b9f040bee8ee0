//! A subject in a container or a Slurm step. Its processes need not be descendants of Loadline. Whether it was
//! OOM-killed is known only if kills were counted while the subject ran.

use super::guarded::Guarded;
use super::keeper::Keeper;
use super::processes::{self, Process};
use super::protocol::Exit;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::machine;
use std::time::Duration;

/// Usually half a second from `run` to the first process, but longer if the image's files must be copied first.
const START_WITHIN: Duration = Duration::from_secs(60);
/// The interval between queries for the pid.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Contained {
    pub keeper: Keeper,
    /// The container's first process; `None` if it ended before it was seen.
    pub first: Option<Process>,
    /// OOM kills on the whole machine before the container's start.
    kills_before: Option<u64>,
}

impl Contained {
    /// Starts counting kills, before the container starts.
    pub(super) fn begin(keeper: &Keeper) -> Self {
        Self { keeper: keeper.clone(), first: None, kills_before: machine::oom_kills() }
    }

    /// Waits for the container's first process. Errors: `Machine` if no process starts in time, or if it is not visible
    /// from here.
    pub(super) fn await_first(&mut self, guarded: &Guarded, clock: Clock) -> Result<()> {
        let until = clock.now() + START_WITHIN;
        while clock.now() < until {
            if let Some(pid) = self.keeper.first_pid(clock) {
                self.first = Process::read(pid);
                match self.first.is_none() && self.keeper.first_pid(clock) == Some(pid) {
                    true => return Err(self.keeper.elsewhere(pid)),
                    false => return Ok(()),
                }
            }
            if guarded.exit().is_some() || guarded.lost() {
                // The tool's output shows the reason.
                return Ok(());
            }
            guarded.wait_exit(ASK_AGAIN_AFTER);
        }
        let (word, within) = (self.keeper.word(), START_WITHIN.as_secs());
        Err(Error::machine(format!("no process was running in the {word} {within} s after it started"))
            .at(self.keeper.at()))
    }

    /// All live processes: the first one and its descendants, which adopt orphans in a container; in a step, the
    /// process that started the first one adopts them.
    pub(super) fn processes(&self) -> Vec<Process> {
        let Some(first) = self.first_now() else { return Vec::new() };
        if self.keeper.adopts() {
            return processes::descendants(first.parent);
        }
        let below = processes::descendants(first.pid);
        std::iter::once(first).filter(|first| first.lives).chain(below).collect()
    }

    /// The process outside that started the first one; its descendants are the container's processes.
    pub(super) fn parent(&self) -> Option<u32> {
        Some(self.first_now()?.parent)
    }

    fn first_now(&self) -> Option<Process> {
        self.first.as_ref()?.now()
    }

    /// Whether the first process was seen and has ended.
    pub(super) fn is_over(&self) -> bool {
        self.first.is_some() && !self.first_now().is_some_and(|first| first.lives)
    }

    /// Whether a subject that ended on its own, in this way and with these last lines, was OOM-killed. Its cgroup is
    /// already gone. If the keeper does not report it, the kernel's machine-wide kill count decides.
    pub(super) fn was_killed_for_memory(&self, exit: Exit, said: &[String]) -> bool {
        let counted = self.kills_before.zip(machine::oom_kills()).is_some_and(|(before, now)| now > before);
        self.keeper.was_killed_for_memory(exit, counted, said)
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch_image::Container;
    use super::*;

    fn contained() -> Contained {
        let container = Container::new(&super::super::image::sample(&["java"], &[], &[]));
        Contained::begin(&Keeper::Container(container))
    }

    #[test]
    fn a_containers_processes_are_the_first_and_its_descendants() {
        let mut here = contained();
        assert!(here.processes().is_empty() && here.parent().is_none());
        here.first = Process::read(std::process::id());
        let first = here.first.clone().unwrap();
        assert_eq!((here.processes()[0].pid, here.parent()), (first.pid, Some(first.parent)));
        // Another process reused its pid.
        here.first = Some(Process { started_ticks: 0, ..first });
        assert!(here.processes().is_empty());
    }

    #[test]
    fn a_container_that_exits_was_not_killed_for_memory() {
        assert!(!contained().was_killed_for_memory(Exit::Code(0), &[]));
        assert!(!contained().was_killed_for_memory(Exit::Code(143), &[]));
    }
}
