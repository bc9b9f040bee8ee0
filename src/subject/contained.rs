//! A subject that runs in a container or a step of Slurm: its processes, which need not descend from us, and whether it
//! was killed for want of memory. Such a kill is known only if kills were counted while the subject ran.

use super::guarded::Guarded;
use super::keeper::Keeper;
use super::processes::{self, Process};
use super::protocol::Exit;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::machine;
use std::time::Duration;

/// From `run` to the first process: half a second, but for an image whose files have to be copied first.
const START_WITHIN: Duration = Duration::from_secs(60);
/// Between two questions for its pid.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The processes in a container of ours.
#[derive(Debug)]
pub(super) struct Contained {
    pub keeper: Keeper,
    /// The first process of the container; `None` where it ended before it was seen.
    pub first: Option<Process>,
    /// Kills of the whole machine before the container was started.
    kills_before: Option<u64>,
}

impl Contained {
    /// Begins to count, before the container is started.
    pub(super) fn begin(keeper: &Keeper) -> Self {
        Self { keeper: keeper.clone(), first: None, kills_before: machine::oom_kills() }
    }

    /// Waits for the first process of the container.
    ///
    /// # Errors
    /// `Machine` where no process starts in time, or where it cannot be seen from here.
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
                // The output of the tool says why.
                return Ok(());
            }
            guarded.wait_exit(ASK_AGAIN_AFTER);
        }
        let (word, within) = (self.keeper.word(), START_WITHIN.as_secs());
        Err(Error::machine(format!("no process ran in the {word} {within} s after its start")).at(self.keeper.at()))
    }

    /// All that live: the first one and what descends from it, since orphans in a container are its children; in a step
    /// they are those of what started it.
    pub(super) fn processes(&self) -> Vec<Process> {
        let Some(first) = self.first_now() else { return Vec::new() };
        if self.keeper.adopts() {
            return processes::descendants(first.parent);
        }
        let below = processes::descendants(first.pid);
        std::iter::once(first).filter(|first| first.lives).chain(below).collect()
    }

    /// The process outside that started the first one, and whose descendants are those of the container.
    pub(super) fn parent(&self) -> Option<u32> {
        Some(self.first_now()?.parent)
    }

    fn first_now(&self) -> Option<Process> {
        self.first.as_ref()?.now()
    }

    /// Whether its first process was seen and is gone.
    pub(super) fn is_over(&self) -> bool {
        self.first.is_some() && !self.first_now().is_some_and(|first| first.lives)
    }

    /// Whether what ended so, unasked, with these last lines, was killed because its memory limit was reached. Its
    /// cgroup is gone by then. The keeper says so, or does not; then the kernel's count of such kills decides, which is
    /// of the whole machine.
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
    fn the_processes_are_the_first_one_and_those_below() {
        let mut here = contained();
        assert!(here.processes().is_empty() && here.parent().is_none());
        here.first = Process::read(std::process::id());
        let first = here.first.clone().unwrap();
        assert_eq!((here.processes()[0].pid, here.parent()), (first.pid, Some(first.parent)));
        // Another process took its id.
        here.first = Some(Process { started_ticks: 0, ..first });
        assert!(here.processes().is_empty());
    }

    #[test]
    fn an_end_of_its_own_is_no_kill() {
        assert!(!contained().was_killed_for_memory(Exit::Code(0), &[]));
        assert!(!contained().was_killed_for_memory(Exit::Code(143), &[]));
    }
}
