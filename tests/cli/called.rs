//! A call to the program: exit code, stdout, stderr.

use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The exit code and output of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Called {
    /// The call to a program that has ended; a signal counts as -1.
    pub(crate) fn of(ended: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: ended.status.code().unwrap_or(-1), stdout: text(ended.stdout), stderr: text(ended.stderr) }
    }

    /// Its stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|cause| panic!("{cause}: {self}"))
    }

    /// Checks the exit code; prints all output on failure.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// Its stdout without line breaks, to search for sentences that wrap at 80 columns.
    pub(crate) fn flat(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Checks that the request was rejected, with all these words on stderr and an empty stdout.
    #[track_caller]
    pub(crate) fn refused(&self, says: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{self}");
        let said = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_said = |words: &str| self.stderr.contains(words) || said.contains(words);
        says.iter().for_each(|words| assert!(is_said(words), "stderr lacks `{words}`: {self}"));
    }
}

/// The form in snapshots.
impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code: {}\n---- stdout\n{}---- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Calls the program in this directory of the repository, so that its output contains no machine-specific path.
pub(crate) fn loadline(arguments: &[&str]) -> Called {
    loadline_in(&folder(), arguments)
}

pub(crate) fn loadline_in(folder: &Path, arguments: &[&str]) -> Called {
    loadline_with(folder, arguments, &[])
}

/// Like `loadline`, with an engine's variables.
pub(crate) fn loadline_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Called {
    Called::of(command(folder, arguments, variables).output().unwrap())
}

/// `report` on one of [`ARCHIVES`].
pub(crate) fn report(name: &str, options: &[&str]) -> Called {
    loadline(&[&["report", &format!("archives/{name}")], options].concat())
}

/// Calls the program in a directory with a single file. No call may leave another file there.
pub(crate) fn loadline_beside(file: &str, text: &str, arguments: &[&str]) -> Called {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(file), text).unwrap();
    let called = loadline_in(place.path(), arguments);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "the call left a file: {called}");
    called
}

/// Every verb in the help except `help`.
pub(crate) fn verbs() -> Vec<String> {
    let help = loadline(&["--help"]).stdout;
    let list = help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let verbs = list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
    verbs.filter(|verb| verb != "help").collect()
}

/// Starts the program without output.
pub(crate) fn started(folder: &Path, arguments: &[&str]) -> Child {
    command(folder, arguments, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn command(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    // Variables of the surrounding terminal must not affect snapshots.
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM"] {
        command.env_remove(name);
    }
    // An engine that runs the tests must not affect the calls.
    for name in ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "LOADLINE_FIRST", "NODE_NAME", "SLURMD_NODENAME"] {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).envs(variables.iter().copied());
    command
}

/// This directory.
pub(crate) fn folder() -> PathBuf {
    root().join("tests/cli")
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The build directory, which also contains tools fetched by the repository's scripts.
pub(crate) fn products() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The entries of a directory.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The Rust files of `src` and `crates`, except in excluded directories.
pub(crate) fn rust_files(is_left_out: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut folders = vec![root().join("src"), root().join("crates")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let (inner, found): (Vec<_>, Vec<_>) = entries(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(inner.into_iter().filter(|path| !is_left_out(path)));
        files.extend(found.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")));
    }
    files
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

/// Archives that represent users' archives: directory names in `archives`.
pub(crate) const ARCHIVES: [&str; 8] =
    ["nmt", "two", "failed", "interrupted", "account", "compared", "figures", "searched"];
