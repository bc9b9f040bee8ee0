//! One call of the program: exit code, stdout, stderr.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The exit code and output of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// As the snapshots keep it.
impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code: {}\n---- stdout\n{}---- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Calls the program in this folder of the repository's tests, so that no path of the machine is in what it says.
pub(crate) fn loadline(arguments: &[&str]) -> Called {
    loadline_in(&folder(), arguments)
}

pub(crate) fn loadline_in(folder: &Path, arguments: &[&str]) -> Called {
    loadline_with(folder, arguments, &[])
}

/// The same with these variables, which engines set.
pub(crate) fn loadline_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Called {
    let done = command(folder, arguments, variables).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Called { code: done.status.code().unwrap_or(-1), stdout: text(done.stdout), stderr: text(done.stderr) }
}

/// Every verb but `help`, as the help lists them.
pub(crate) fn verbs() -> Vec<String> {
    let help = loadline(&["--help"]).stdout;
    let list = help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let verbs = list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
    verbs.filter(|verb| verb != "help").collect()
}

/// Starts it, with nobody to read what it says.
pub(crate) fn started(folder: &Path, arguments: &[&str]) -> Child {
    command(folder, arguments, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn command(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    // Variables of a terminal around the tests must not show in the snapshots.
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM"] {
        command.env_remove(name);
    }
    // Nor may an engine that runs the tests be one of these calls'.
    for name in ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "LOADLINE_FIRST", "NODE_NAME", "SLURMD_NODENAME"] {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).envs(variables.iter().copied());
    command
}

/// This folder.
pub(crate) fn folder() -> PathBuf {
    root().join("tests/cli")
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

/// The archives that stand for what users have: names of their folders in `archives`.
pub(crate) const ARCHIVES: [&str; 8] =
    ["nmt", "two", "failed", "interrupted", "account", "compared", "figures", "searched"];
