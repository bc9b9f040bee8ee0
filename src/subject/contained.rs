//! A subject that runs in a container: its processes, which need not descend from us, and whether it was killed for
//! want of memory, which is told only as long as somebody keeps count.

use super::guarded::Guarded;
use super::launch_image::Container;
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
/// The exit code of who was killed by KILL, as shells and container tools tell it.
const KILLED: i32 = 128 + 9;

/// The processes in a container of ours.
#[derive(Debug)]
pub(super) struct Contained {
    container: Container,
    /// The first process of the container; `None` where it ended before it was seen.
    first: Option<Process>,
    /// Kills of the whole machine before the container was started.
    kills_before: Option<u64>,
}

impl Contained {
    /// Begins to count, before the container is started.
    pub(super) fn begin(container: &Container) -> Self {
        Self { container: container.clone(), first: None, kills_before: machine::oom_kills() }
    }

    /// Waits for the first process of the container.
    ///
    /// # Errors
    /// `Machine` where there is none in time, or it cannot be seen from here.
    pub(super) fn await_first(&mut self, guarded: &Guarded, clock: Clock) -> Result<()> {
        let tool = &self.container.image.tool;
        let until = clock.now() + START_WITHIN;
        while clock.now() < until {
            let said = tool.ask(&["inspect", "--format", "{{.State.Pid}}", &self.container.name]);
            if let Some(pid) = parse_pid(&said.out).filter(|_| said.is_good()) {
                self.first = Process::read(pid);
                match self.first.is_none() && tool.ask_pid(&self.container.name) == Some(pid) {
                    true => return Err(elsewhere(pid)),
                    false => return Ok(()),
                }
            }
            if guarded.exit().is_some() || guarded.lost() {
                // The output of the tool says why.
                return Ok(());
            }
            guarded.wait_exit(ASK_AGAIN_AFTER);
        }
        Err(Error::machine(format!("no process ran in the container {} s after its start", START_WITHIN.as_secs()))
            .at(format!("image: {}", self.container.image.name)))
    }

    /// The first process of the container.
    pub(super) fn first(&self) -> Option<&Process> {
        self.first.as_ref()
    }

    /// All that live: the first one and what descends from it, since orphans in a container are its children.
    pub(super) fn processes(&self) -> Vec<Process> {
        let Some(first) = self.first_now() else { return Vec::new() };
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

    /// Whether a container that ended so, unasked, was killed because its memory limit was reached. Its cgroup is gone
    /// by then. The tool says so, or does not: podman on cgroup v1 misses it. Then the kernel's count of such kills
    /// decides, which is of the whole machine.
    pub(super) fn was_killed_for_memory(&self, exit: Exit) -> bool {
        if !matches!(exit, Exit::Code(KILLED) | Exit::Signal(9)) {
            return false;
        }
        let said =
            self.container.image.tool.ask(&["inspect", "--format", "{{.State.OOMKilled}}", &self.container.name]);
        let counted = self.kills_before.zip(machine::oom_kills()).is_some_and(|(before, now)| now > before);
        said.out.trim() == "true" || counted
    }
}

impl super::container_tool::FoundTool {
    fn ask_pid(&self, name: &str) -> Option<u32> {
        parse_pid(&self.ask(&["inspect", "--format", "{{.State.Pid}}", name]).out)
    }
}

fn elsewhere(pid: u32) -> Error {
    Error::machine(format!("the container runs, but its process {pid} cannot be seen from here"))
        .at("its tool speaks to another machine, a virtual machine, or the host of the container Loadline runs in")
        .hint("run Loadline where the containers run")
}

/// The pid that a tool printed; 0 is that of a container that does not run.
fn parse_pid(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contained() -> Contained {
        Contained::begin(&Container::new(&super::super::image::sample(&["java"], &[], &[])))
    }

    #[test]
    fn pids_are_read() {
        assert_eq!(["2910\n", "0\n", "", "<no value>", "-1"].map(parse_pid), [Some(2910), None, None, None, None]);
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
        assert!(!contained().was_killed_for_memory(Exit::Code(0)));
        assert!(!contained().was_killed_for_memory(Exit::Code(143)));
    }
}
