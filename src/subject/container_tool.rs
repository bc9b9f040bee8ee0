//! The container tools podman and docker: which of them work, their answers, and containers left by a killed Loadline.
//!
//! Several Loadlines can share a daemon. Each container therefore has its unique name as a label value too, and
//! Loadline removes only an ID that matches both.

use super::names::is_left_behind;
use super::program::{self, Printed};
use crate::clock::Clock;
use crate::error::plain;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Removal unmounts and deletes; the processes are killed immediately.
const REMOVE_WITHIN: Duration = Duration::from_secs(10);
/// The label of all Loadline containers; its value is the container's name.
const LABEL: &str = "loadline";
/// The columns of `ps` output.
const LISTED: &str = "{{.ID}} {{.Names}}";

loadline_base::named! {
    /// A program that runs containers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Tool,
    /// The name of the tool, as a program and in words.
    fn word {
        /// Without a daemon.
        Podman = "podman",
        /// A client of a daemon.
        Docker = "docker",
    }
}

impl Tool {
    fn program(self) -> Option<PathBuf> {
        program::on_path(self.word(), &std::env::var_os("PATH")?)
    }
}

/// An installed tool.
#[derive(Debug, Clone)]
pub struct FoundTool {
    /// Its kind.
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
    /// The installed tools, podman first.
    pub fn installed(clock: Clock) -> Vec<Self> {
        let found = |tool: Tool| tool.program().map(|program| Self { tool, program, clock });
        Tool::ALL.into_iter().filter_map(found).collect()
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> Printed {
        program::ask(&self.program, arguments, self.clock)
    }

    /// The pid of the first process in Loadline's running container.
    pub(super) fn ask_pid(&self, name: &str) -> Option<u32> {
        parse_pid(&self.inspect(name, "{{.State.Pid}}")?)
    }

    /// Whether the tool reports that Loadline's container was OOM-killed.
    pub(super) fn ask_killed_for_memory(&self, name: &str) -> bool {
        self.inspect(name, "{{.State.OOMKilled}}").is_some_and(|said| said == "true")
    }

    /// A property of Loadline's container, which must also have the label.
    fn inspect(&self, name: &str, field: &str) -> Option<String> {
        let format = format!("{field} {{{{index .Config.Labels \"{LABEL}\"}}}}");
        let said = self.ask(&["inspect", "--format", &format, name]);
        let (word, label) = said.out.trim().split_once(' ')?;
        (said.is_good() && label == name).then(|| word.to_owned())
    }

    /// The tool's name and version, such as `podman 4.3.1`, if it works, including its daemon. Errors: the tool's
    /// answer.
    pub fn probe(&self) -> Result<String, String> {
        self.ask(&["ps", "--quiet"]).good()?;
        Ok(match version(&self.ask(&["--version"]).out) {
            Some(version) => format!("{} {version}", self.tool.word()),
            None => self.tool.word().to_owned(),
        })
    }

    /// Removes containers of dead Loadlines from this boot and pid namespace. Returns the number removed.
    pub fn sweep(&self) -> usize {
        let filter = format!("label={LABEL}");
        let listed = self.ask(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
        let left: Vec<&str> = listed.out.split_ascii_whitespace().filter(|name| is_left_behind(name)).collect();
        left.into_iter().filter(|name| remove(self.tool.word(), name, self.clock).is_ok()).count()
    }
}

pub(super) fn label(name: &str) -> String {
    format!("{LABEL}={name}")
}

/// The pid that a tool printed; 0 means that the container is not running.
fn parse_pid(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|pid| *pid > 0)
}

/// `4.3.1` in `podman version 4.3.1`, `28.2.2` in `Docker version 28.2.2, build e6534b4`.
fn version(said: &str) -> Option<&str> {
    let rest = said.lines().next()?.split_once("version ")?.1;
    rest.split([',', ' ']).next().filter(|version| !version.is_empty())
}

/// Removes the Loadline container with this name, including its processes and volumes, by the ID of the one that also
/// has the label. A missing container counts as removed.
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

/// The IDs of containers with this name: `2c7a… loadline-1-…,other/alias`.
fn ids_of<'a>(listed: &'a str, name: &str) -> Vec<&'a str> {
    let of = |line: &'a str| {
        let (id, names) = line.trim().split_once(' ')?;
        names.split(',').any(|known| known == name).then_some(id)
    };
    // A name in a truncated line could be another container's.
    listed.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(of).collect()
}

#[cfg(test)]
pub(super) fn sample() -> FoundTool {
    FoundTool { tool: Tool::Podman, program: PathBuf::from("/usr/bin/podman"), clock: Clock::start() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_pids_are_parsed() {
        assert_eq!(["2910\n", "0\n", "", "<no value>", "-1"].map(parse_pid), [Some(2910), None, None, None, None]);
    }

    #[test]
    fn container_tool_versions_are_parsed() {
        assert_eq!(version("podman version 4.3.1\n"), Some("4.3.1"));
        assert_eq!(version("Docker version 28.2.2, build e6534b4\n"), Some("28.2.2"));
        assert_eq!((version("version "), version("")), (None, None));
    }

    fn executable(path: &Path, text: &str) {
        // In a separate process: a file open for writing here is inherited by other tests' processes, and then cannot
        // be executed.
        let words = ["-c", r#"printf '%s' "$1" >"$0" && chmod +x "$0""#, path.to_str().unwrap(), text];
        assert!(program::ask(Path::new("/bin/sh"), &words, Clock::start()).is_good());
    }

    #[test]
    fn a_container_is_removed_by_id_only_if_name_and_label_match() {
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
        // Not found: another user's container with the same name has another label.
        check("true", "true", Ok(()), "");
        check("echo no daemon >&2; exit 1", "true", Err("no daemon"), "");
    }
}
