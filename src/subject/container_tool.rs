//! The tools that run containers, podman and docker: which of them work here, what they answer, and the containers that
//! a killed Loadline left.
//!
//! Several Loadlines may share one daemon. So a container of ours has its name, which no other has, as the value of a
//! label, too: only the id that the tool lists for both is ever removed.

use super::names::is_left_behind;
use super::program::{self, Printed};
use crate::clock::Clock;
use crate::error::plain;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Removing unmounts and deletes; the processes are killed at once.
const REMOVE_WITHIN: Duration = Duration::from_secs(10);
/// The label of every container of ours; its value is the container's name.
const LABEL: &str = "loadline";
/// The columns that `ps` prints of each container.
const LISTED: &str = "{{.ID}} {{.Names}}";

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

    /// The path of the tool.
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
        program::ask(&self.program, arguments, self.clock)
    }

    /// The pid of the first process of a container of ours that runs.
    pub(super) fn ask_pid(&self, name: &str) -> Option<u32> {
        parse_pid(&self.inspect(name, "{{.State.Pid}}")?)
    }

    /// Whether the tool says that the kernel killed a container of ours for want of memory.
    pub(super) fn ask_killed_for_memory(&self, name: &str) -> bool {
        self.inspect(name, "{{.State.OOMKilled}}").is_some_and(|said| said == "true")
    }

    /// One word about a container of ours: one that has the label, too.
    fn inspect(&self, name: &str, field: &str) -> Option<String> {
        let format = format!("{field} {{{{index .Config.Labels \"{LABEL}\"}}}}");
        let said = self.ask(&["inspect", "--format", &format, name]);
        let (word, label) = said.out.trim().split_once(' ')?;
        (said.is_good() && label == name).then(|| word.to_owned())
    }

    /// Name and version of the tool, such as `podman 4.3.1`, where it answers, with its daemon if it needs one.
    ///
    /// # Errors
    /// The answer of the tool instead.
    pub fn probe(&self) -> Result<String, String> {
        self.ask(&["ps", "--quiet"]).good()?;
        Ok(match version(&self.ask(&["--version"]).out) {
            Some(version) => format!("{} {version}", self.tool.word()),
            None => self.tool.word().to_owned(),
        })
    }

    /// Removes the containers of Loadlines of this boot and pid namespace that are gone. Returns how many.
    pub fn sweep(&self) -> usize {
        let filter = format!("label={LABEL}");
        let listed = self.ask(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
        let left: Vec<&str> = listed.out.split_ascii_whitespace().filter(|name| is_left_behind(name)).collect();
        left.into_iter().filter(|name| remove(self.tool.word(), name, self.clock).is_ok()).count()
    }
}

/// The label that a container of this name gets.
pub(super) fn label(name: &str) -> String {
    format!("{LABEL}={name}")
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

/// Removes the container of ours with this name, with its processes and volumes, by the id of the one that has the
/// label as well. A container that is not there counts as removed.
pub(super) fn remove(tool: &str, name: &str, clock: Clock) -> Result<(), String> {
    let until = clock.now() + REMOVE_WITHIN;
    let ask = |arguments: &[&str]| {
        let within = until.saturating_sub(clock.now());
        let answer = program::run(Path::new(tool), arguments, clock, within).map_err(|cause| plain(&cause))?;
        let is_gone = answer.errors.to_lowercase().contains("no such container");
        if is_gone { Ok(answer.out) } else { answer.good() }
    };
    let filter = format!("label={}", label(name));
    let listed = ask(&["ps", "--all", "--no-trunc", "--filter", &filter, "--format", LISTED])?;
    let ids = ids_of(&listed, name);
    ids.into_iter().try_for_each(|id| ask(&["rm", "--force", "--volumes", id]).map(drop))
}

/// The ids of the containers that have this name among theirs: `2c7a… loadline-1-…,other/alias`.
fn ids_of<'a>(listed: &'a str, name: &str) -> Vec<&'a str> {
    let of = |line: &'a str| {
        let (id, names) = line.trim().split_once(' ')?;
        names.split(',').any(|known| known == name).then_some(id)
    };
    // The name in a line that was cut could be another's.
    listed.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(of).collect()
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

    fn executable(path: &Path, text: &str) {
        // By a process of its own: what this one has open for writing is open in what other tests start, too, and
        // cannot be executed meanwhile.
        let words = ["-c", r#"printf '%s' "$1" >"$0" && chmod +x "$0""#, path.to_str().unwrap(), text];
        assert!(program::ask(Path::new("/bin/sh"), &words, Clock::start()).is_good());
    }

    #[test]
    fn a_container_is_removed_by_the_id_that_has_its_name_and_its_label() {
        let folder = tempfile::tempdir().unwrap();
        let check = |listed: &str, removal: &str, expect: Result<(), &str>, asked: &str| {
            let (tool, log) = (folder.path().join("tool"), folder.path().join("log"));
            let answers = format!("case $1 in ps) {listed};; rm) {removal};; esac");
            executable(&tool, &format!("#!/bin/sh\necho \"$*\" >> {}\n{answers}\n", log.display()));
            assert_eq!(remove(tool.to_str().unwrap(), "ll-1", Clock::start()), expect.map_err(str::to_owned));
            let said = std::fs::read_to_string(&log).unwrap();
            let (first, rest) = said.split_once('\n').unwrap();
            assert_eq!(first, "ps --all --no-trunc --filter label=loadline=ll-1 --format {{.ID}} {{.Names}}");
            assert_eq!(rest, asked, "{listed}");
            std::fs::remove_file(&log).unwrap();
        };
        let removed = "rm --force --volumes 2c7a\n";
        check("echo 2c7a ll-1", "true", Ok(()), removed);
        check("echo 2c7a ll-1,x/alias; echo 99 ll-10; printf '88 ll-1'", "true", Ok(()), removed);
        check("echo 2c7a ll-1", "echo 'Error: No such container: x' >&2; exit 1", Ok(()), removed);
        check("echo 2c7a ll-1", "echo locked >&2; exit 1", Err("locked"), removed);
        // Nothing of ours is there: another's container of the same name has another label.
        check("true", "true", Ok(()), "");
        check("echo no daemon >&2; exit 1", "true", Err("no daemon"), "");
    }
}
