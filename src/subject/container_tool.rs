//! The tools that run containers, podman and docker: which of them work here, what they answer, and the containers that
//! a killed Loadline left.

use super::processes::Process;
use crate::clock::Clock;
use crate::error::plain;
use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// A tool answers in a tenth of a second; a daemon on a busy disk can take seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Removing unmounts and deletes; the processes are killed at once.
const REMOVE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// What an image or a container is described in takes some 10 KiB.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// On every container of ours, so that leftovers are found.
pub(super) const LABEL: &str = "loadline";
/// How their names begin; Loadline's pid and a number follow.
pub(super) const PREFIX: &str = "loadline-";

/// A program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Without a daemon.
    Podman,
    /// A client of a daemon.
    Docker,
}

impl Tool {
    /// The one that is asked first comes first.
    pub const ALL: [Self; 2] = [Self::Podman, Self::Docker];

    /// Its name, as a program and in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Where it is installed.
    fn program(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        std::env::split_paths(&path).map(|folder| folder.join(self.word())).find(is_program)
    }
}

/// A tool that is installed here.
#[derive(Debug, Clone)]
pub struct FoundTool {
    /// Which it is.
    pub tool: Tool,
    pub(super) program: PathBuf,
    clock: Clock,
}

impl PartialEq for FoundTool {
    fn eq(&self, other: &Self) -> bool {
        (self.tool, &self.program) == (other.tool, &other.program)
    }
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// `None` where it was ended, by us or by a signal.
    pub code: Option<i32>,
    pub out: String,
    pub errors: String,
}

impl Answer {
    pub(super) fn is_good(&self) -> bool {
        self.code == Some(0)
    }

    /// The last line of what went wrong.
    pub(super) fn why(&self) -> String {
        let said = self.errors.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match (said, self.code) {
            (Some(said), _) => said.to_owned(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "it did not answer in time".to_owned(),
        }
    }
}

impl FoundTool {
    /// The tools that are installed, podman first.
    pub fn installed(clock: Clock) -> Vec<Self> {
        let found = |tool: Tool| tool.program().map(|program| Self { tool, program, clock });
        Tool::ALL.into_iter().filter_map(found).collect()
    }

    /// Asks it something.
    pub(super) fn ask(&self, arguments: &[&str]) -> Answer {
        let argv: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        match run(&self.program, &argv, self.clock, ANSWER_WITHIN) {
            Ok(answer) => answer,
            Err(cause) => Answer { code: None, out: String::new(), errors: plain(&cause) },
        }
    }

    /// What it calls itself, such as `podman 4.3.1`, where it answers, with its daemon if it needs one.
    ///
    /// # Errors
    /// What it says instead.
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

    /// Removes the containers of Loadlines that are gone. How many.
    pub fn sweep(&self) -> usize {
        let filter = format!("label={LABEL}");
        let listed = self.ask(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
        let gone = |name: &&str| maker(name).is_some_and(|pid| Process::read(pid).is_none());
        let left: Vec<&str> = listed.out.split_ascii_whitespace().filter(gone).collect();
        left.into_iter().filter(|name| remove(&self.removal(name), self.clock).is_ok()).count()
    }
}

/// `4.3.1` of `podman version 4.3.1`, `28.2.2` of `Docker version 28.2.2, build e6534b4`.
fn version(said: &str) -> Option<&str> {
    let rest = said.lines().next()?.split_once("version ")?.1;
    rest.split([',', ' ']).next().filter(|version| !version.is_empty())
}

/// The pid of the Loadline that made the container of this name.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Runs the command that removes a container. One that is not there is removed.
pub(super) fn remove(removal: &[String], clock: Clock) -> Result<(), String> {
    let Some((program, arguments)) = removal.split_first() else { return Ok(()) };
    let answer = run(Path::new(program), arguments, clock, REMOVE_WITHIN).map_err(|cause| plain(&cause))?;
    match answer.is_good() || answer.errors.to_lowercase().contains("no such container") {
        true => Ok(()),
        false => Err(answer.why()),
    }
}

/// Runs a program to its end, apart from the terminal: its Ctrl-C is not for this one.
#[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
fn run(program: &Path, arguments: &[String], clock: Clock, within: Duration) -> io::Result<Answer> {
    // Files in memory: a pipe that nobody reads meanwhile could fill up.
    let open = |name: &str| Ok::<_, io::Error>(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?));
    let (out, errors) = (open("out")?, open("errors")?);
    let mut child = std::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(errors.try_clone()?)
        .process_group(0)
        .spawn()?;
    let until = clock.now() + within;
    let code = loop {
        match child.try_wait() {
            Ok(None) if clock.now() < until => clock.sleep(LOOK_AGAIN_AFTER),
            Ok(Some(status)) => break status.code(),
            _ => {
                // Both fail only for a process that has ended.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    Ok(Answer { code, out: text_of(out)?, errors: text_of(errors)? })
}

fn text_of(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A tool for tests.
#[cfg(test)]
pub(super) fn sample() -> FoundTool {
    FoundTool { tool: Tool::Podman, program: PathBuf::from("/usr/bin/podman"), clock: Clock::start() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, within: Duration) -> Answer {
        run(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], Clock::start(), within).unwrap()
    }

    #[test]
    fn both_streams_and_the_code_are_kept() {
        let answer = shell("echo out; echo one >&2; echo; echo 'two ' >&2; exit 3", ANSWER_WITHIN);
        assert_eq!((answer.code, answer.out.as_str(), answer.why().as_str()), (Some(3), "out\n\n", "two"));
        assert!(!answer.is_good() && shell("head -c 300000 /dev/zero", ANSWER_WITHIN).out.len() == 300_000);
        let hung = shell("exec sleep 60", Duration::from_millis(50));
        assert_eq!((hung.code, hung.why().as_str()), (None, "it did not answer in time"));
        assert!(run(Path::new("/nowhere"), &[], Clock::start(), ANSWER_WITHIN).is_err());
    }

    #[test]
    fn versions_and_names_are_taken_apart() {
        assert_eq!(version("podman version 4.3.1\n"), Some("4.3.1"));
        assert_eq!(version("Docker version 28.2.2, build e6534b4\n"), Some("28.2.2"));
        assert_eq!((version("version "), version("")), (None, None));
        let names = ["loadline-42-7", "loadline-x-1", "other", "loadline-", "loadline-7"];
        assert_eq!(names.map(maker), [Some(42), None, None, None, Some(7)]);
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
