//! Keepers of subjects that need not descend from us: container tools, and Slurm. Each names what it keeps, tells its
//! first process and removes it; what is done with that is in `contained`.

use super::container_tool;
use super::launch_image::Container;
use super::protocol::Exit;
use super::slurm_step::{self, Step};
use crate::clock::Clock;
use crate::error::Error;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The exit code of who was killed by KILL, as shells and container tools tell it.
const KILLED: i32 = 128 + 9;

/// A subject that somebody else keeps.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Keeper {
    Container(Container),
    Step(Step),
}

/// How what a keeper keeps is removed; the guardian does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Removal {
    /// The container of this name, by this tool.
    Container {
        tool: String,
        name: String,
    },
    Step(Step),
}

impl Removal {
    /// Removes it, with its processes; if it does not exist, it counts as removed.
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

    /// Whether orphans become children of what started the first process, and not of the first process.
    pub(super) fn adopts(&self) -> bool {
        matches!(self, Self::Step(_))
    }

    /// Its name in a sentence.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Container(_) => "container",
            Self::Step(_) => "step",
        }
    }

    /// The limit that is set where this one is asked for.
    pub(super) fn limit_set(&self, asked: Bytes) -> Bytes {
        match self {
            Self::Container(_) => asked,
            Self::Step(_) => slurm_step::limit_set(asked),
        }
    }

    /// The unit of limits in bytes, where that is more than a page.
    pub(super) fn limit_grain(&self) -> Option<Bytes> {
        matches!(self, Self::Step(_)).then_some(slurm_step::GRAIN)
    }

    /// The hint where the limit is not the one that was asked for.
    pub(super) fn limit_hint(&self) -> &'static str {
        match self {
            Self::Container(_) => "its tool cannot set limits here; `podman info` or `docker info` says why",
            Self::Step(_) => {
                "Slurm's cgroup.conf needs `ConstrainRAMSpace=yes`, `AllowedRAMSpace=100` and a `MinRAMSpace` below \
                 the limit; slurm.conf `TaskPlugin=task/cgroup`"
            }
        }
    }

    /// The hint where its subject may use swap.
    pub(super) fn swap_hint(&self) -> &'static str {
        match self {
            Self::Container(_) => "turn swap off (`swapoff -a`): what a limit takes away would only become slow",
            Self::Step(_) => {
                "turn swap off, or have Slurm forbid it (`ConstrainSwapSpace=yes`, `AllowedSwapSpace=0` in \
                 cgroup.conf): what a limit takes away would only become slow"
            }
        }
    }

    /// A first process that cannot be seen.
    pub(super) fn elsewhere(&self, pid: u32) -> Error {
        let error = Error::machine(format!("the {} runs, but its process {pid} cannot be seen from here", self.word()));
        match self {
            Self::Container(_) => error
                .at("its tool speaks to another machine, a virtual machine, or the host of Loadline's own container")
                .hint("run Loadline where the containers run"),
            Self::Step(_) => error.hint("run Loadline on the node itself, not in a container of the job"),
        }
    }

    /// A description of its subject, for an error.
    pub(super) fn at(&self) -> String {
        match self {
            Self::Container(container) => format!("image: {}", container.image.name),
            Self::Step(step) => format!("step: {}", step.name()),
        }
    }

    /// Whether it says that the kernel killed what ended so for want of memory. `counted` says whether the kernel did
    /// so anywhere on the machine meanwhile, `said` has the last lines of the output.
    ///
    /// A tool says so, or does not: podman on cgroup v1 misses it. Then the count decides.
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
