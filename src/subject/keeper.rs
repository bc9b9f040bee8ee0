//! Keepers manage subjects that need not descend from Loadline: container tools and Slurm. Each names its container or
//! step, finds the first process, and removes it; `contained` uses them.

use super::container_tool;
use super::launch_image::Container;
use super::protocol::Exit;
use super::slurm_step::{self, Step};
use crate::clock::Clock;
use crate::error::Error;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The exit code for a process killed by SIGKILL, as shells and container tools report it.
const KILLED: i32 = 128 + 9;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Keeper {
    Container(Container),
    Step(Step),
}

/// How to remove the container or step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Removal {
    /// A container, by name and tool.
    Container {
        tool: String,
        name: String,
    },
    Step(Step),
}

impl Removal {
    /// Removes it with its processes; a missing one counts as removed.
    pub(super) fn run(&self, clock: Clock) -> Result<(), String> {
        match self {
            Self::Container { tool, name } => container_tool::remove(tool, name, clock),
            Self::Step(step) => step.remove(clock),
        }
    }
}

impl Keeper {
    pub(super) fn removal(&self) -> Removal {
        match self {
            Self::Container(container) => {
                let (tool, name) = (container.image.tool.tool.word().to_owned(), container.name.clone());
                Removal::Container { tool, name }
            }
            Self::Step(step) => Removal::Step(step.clone()),
        }
    }

    /// The pid of the first process, once it runs.
    pub(super) fn first_pid(&self, clock: Clock) -> Option<u32> {
        match self {
            Self::Container(container) => container.image.tool.ask_pid(&container.name),
            Self::Step(step) => step.task(clock),
        }
    }

    /// Whether orphans are adopted by the parent of the first process, rather than by the first process.
    pub(super) fn adopts(&self) -> bool {
        matches!(self, Self::Step(_))
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Container(_) => "container",
            Self::Step(_) => "step",
        }
    }

    pub(super) fn limit_set(&self, asked: Bytes) -> Bytes {
        match self {
            Self::Container(_) => asked,
            Self::Step(_) => slurm_step::limit_set(asked),
        }
    }

    /// The granularity of limits in bytes, if coarser than a page.
    pub(super) fn limit_grain(&self) -> Option<Bytes> {
        matches!(self, Self::Step(_)).then_some(slurm_step::GRAIN)
    }

    pub(super) fn limit_hint(&self) -> &'static str {
        match self {
            Self::Container(_) => {
                "the container tool cannot set limits on this machine; `podman info` or `docker info` shows the reason"
            }
            Self::Step(_) => {
                "Slurm's cgroup.conf needs `ConstrainRAMSpace=yes`, `AllowedRAMSpace=100`, and a `MinRAMSpace` below \
                 the limit; slurm.conf needs `TaskPlugin=task/cgroup`"
            }
        }
    }

    pub(super) fn swap_hint(&self) -> &'static str {
        match self {
            Self::Container(_) => "turn swap off (`swapoff -a`): with swap, a limit would only make the server slow",
            Self::Step(_) => {
                "turn swap off, or have Slurm forbid it (`ConstrainSwapSpace=yes`, `AllowedSwapSpace=0` in \
                 cgroup.conf): with swap, a limit would only make the server slow"
            }
        }
    }

    /// The error for a first process that is not visible.
    pub(super) fn elsewhere(&self, pid: u32) -> Error {
        let error =
            Error::machine(format!("the {} is running, but its process {pid} is not visible from here", self.word()));
        match self {
            Self::Container(_) => error
                .at("the container tool uses another machine, a virtual machine, or the host of Loadline's own \
                     container")
                .hint("run Loadline on the machine that runs the containers"),
            Self::Step(_) => error.hint("run Loadline on the node itself, not in a container of the job"),
        }
    }

    /// Describes its subject in errors.
    pub(super) fn at(&self) -> String {
        match self {
            Self::Container(container) => format!("image: {}", container.image.name),
            Self::Step(step) => format!("step: {}", step.name()),
        }
    }

    /// Whether the subject was OOM-killed. `counted`: the kernel OOM-killed any process on the machine.
    /// `said`: the last lines of output.
    ///
    /// If the tool does not report it, like podman on cgroup v1, the count decides.
    pub(super) fn was_killed_for_memory(&self, exit: Exit, counted: bool, said: &[String]) -> bool {
        let killed = matches!(exit, Exit::Code(KILLED) | Exit::Signal(9));
        match self {
            Self::Container(container) => {
                killed && (counted || container.image.tool.ask_killed_for_memory(&container.name))
            }
            Self::Step(_) => slurm_step::says_killed_for_memory(said) || (killed && counted),
        }
    }
}
