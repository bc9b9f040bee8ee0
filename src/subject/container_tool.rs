//! The tools that run containers, podman and docker: which of them work here, what they answer, and the containers that
//! a killed Loadline left.

use super::names::is_left_behind;
use super::program::{self, Printed};
use crate::clock::Clock;
use crate::error::plain;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A tool answers in a tenth of a second; a daemon on a busy disk can take seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Removing unmounts and deletes; the processes are killed at once.
const REMOVE_WITHIN: Duration = Duration::from_secs(10);
/// On every container of ours, so that leftovers are found.
pub(super) const LABEL: &str = "loadline";

/// A program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Without a daemon.
    Podman,
    /// A client of a daemon.
    Docker,
}

impl Tool {
    /// Every tool, the one that is asked first in front.
    pub const ALL: [Self; 2] = [Self::Podman, Self::Docker];

    /// The name of the tool, as a program and in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Where the tool is installed.
    fn program(self) -> Option<PathBuf> {
        program::on_path(self.word(), &std::env::var_os("PATH")?)
    }
}

/// A tool that is installed here.
#[derive(Debug, Clone)]
pub struct FoundTool {
    /// Podman or Docker.
    pub tool: Tool,
    pub(super) program: PathBuf,
    clock: Clock,
}

impl PartialEq for FoundTool {
    fn eq(&self, other: &Self) -> bool {
        (self.tool, &self.program) == (other.tool, &other.program)
    }
}

impl FoundTool {
    /// The tools that are installed, podman first.
    pub fn installed(clock: Clock) -> Vec<Self> {
        let found = |tool: Tool| tool.program().map(|program| Self { tool, program, clock });
        Tool::ALL.into_iter().filter_map(found).collect()
    }

    /// Runs the tool with these arguments.
    pub(super) fn ask(&self, arguments: &[&str]) -> Printed {
        program::run(&self.program, arguments, self.clock, ANSWER_WITHIN).unwrap_or_else(|cause| Printed {
            code: None,
            out: String::new(),
            errors: plain(&cause),
        })
    }

    /// The pid of the first process of a container that runs.
    pub(super) fn ask_pid(&self, name: &str) -> Option<u32> {
        let said = self.ask(&["inspect", "--format", "{{.State.Pid}}", name]);
        parse_pid(&said.out).filter(|_| said.is_good())
    }

    /// Name and version of the tool, such as `podman 4.3.1`, where it answers, with its daemon if it needs one.
    ///
    /// # Errors
    /// What the tool says instead.
    pub fn probe(&self) -> Result<String, String> {
        let listed = self.ask(&["ps", "--quiet"]);
        if !listed.is_good() {
            return Err(listed.why());
        }
        Ok(match version(&self.ask(&["--version"]).out) {
            Some(version) => format!("{} {version}", self.tool.word()),
            None => self.tool.word().to_owned(),
        })
    }

    /// The command that removes a container of ours with its processes and volumes.
    pub(super) fn removal(&self, name: &str) -> Vec<String> {
        [self.tool.word(), "rm", "--force", "--volumes", name].map(str::to_owned).to_vec()
    }

    /// Removes the containers of Loadlines that are gone. Returns how many.
    pub fn sweep(&self) -> usize {
        let filter = format!("label={LABEL}");
        let listed = self.ask(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
        let left: Vec<&str> = listed.out.split_ascii_whitespace().filter(|name| is_left_behind(name)).collect();
        left.into_iter().filter(|name| remove(&self.removal(name), self.clock).is_ok()).count()
    }
}

/// The pid that a tool printed; 0 is that of a container that does not run.
fn parse_pid(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|pid| *pid > 0)
}

/// `4.3.1` of `podman version 4.3.1`, `28.2.2` of `Docker version 28.2.2, build e6534b4`.
fn version(said: &str) -> Option<&str> {
    let rest = said.lines().next()?.split_once("version ")?.1;
    rest.split([',', ' ']).next().filter(|version| !version.is_empty())
}

/// Runs the command that removes a container. A container that is not there counts as removed.
pub(super) fn remove(removal: &[String], clock: Clock) -> Result<(), String> {
    let Some((tool, arguments)) = removal.split_first() else { return Ok(()) };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = program::run(Path::new(tool), &arguments, clock, REMOVE_WITHIN).map_err(|cause| plain(&cause))?;
    match answer.is_good() || answer.errors.to_lowercase().contains("no such container") {
        true => Ok(()),
        false => Err(answer.why()),
    }
}

/// A tool for tests.
#[cfg(test)]
pub(super) fn sample() -> FoundTool {
    FoundTool { tool: Tool::Podman, program: PathBuf::from("/usr/bin/podman"), clock: Clock::start() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_read() {
        assert_eq!(["2910\n", "0\n", "", "<no value>", "-1"].map(parse_pid), [Some(2910), None, None, None, None]);
    }

    #[test]
    fn versions_are_taken_apart() {
        assert_eq!(version("podman version 4.3.1\n"), Some("4.3.1"));
        assert_eq!(version("Docker version 28.2.2, build e6534b4\n"), Some("28.2.2"));
        assert_eq!((version("version "), version("")), (None, None));
    }

    #[test]
    fn a_container_that_is_gone_is_removed() {
        let removal = |script: &str| ["/bin/sh", "-c", script].map(str::to_owned);
        let clock = Clock::start();
        assert_eq!(remove(&removal("true"), clock), Ok(()));
        assert_eq!(remove(&removal("echo 'Error: No such container: x' >&2; exit 1"), clock), Ok(()));
        assert_eq!(remove(&removal("echo locked >&2; exit 1"), clock), Err("locked".to_owned()));
        assert_eq!(remove(&[], clock), Ok(()));
    }
}
