//! The messages between Loadline, its guardian and the launcher, one line each, over socket pairs.
//!
//! Loadline sends the guardian one [`Order`] and then nothing: the end of the stream is the order to kill. The guardian
//! answers with [`Report`]s. The launcher says nothing when all went well, else one [`Refusal`].

use super::keeper::Removal;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

/// First argument of Loadline when it is to be a guardian.
pub(super) const GUARDIAN_WORD: &str = "__guardian";
/// First argument of Loadline when it is to be a launcher.
pub(super) const LAUNCHER_WORD: &str = "__launch";
/// Set in every process of a subject to its guardian's pid, so that strays can be told from other processes.
pub(super) const GUARDIAN_VARIABLE: &str = "LOADLINE_GUARDIAN";
/// Longest line either side accepts: ten times the largest environment seen.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// The order to start a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Program and arguments; at least one.
    pub argv: Vec<String>,
    /// On top of the inherited environment.
    pub env: Vec<(String, String)>,
    /// Working directory; `None` is Loadline's own.
    pub dir: Option<PathBuf>,
    /// CPUs that the command may run on; `None` is all that Loadline may.
    pub cpus: Option<Vec<u32>>,
    /// Folders of the cgroups of the command, which the guardian removes at the end.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    /// Whether the guardian's standard output is what the command reads.
    #[serde(default)]
    pub reads: bool,
    /// How to remove what the command has somebody else keep, with processes that need not descend from us.
    #[serde(default)]
    pub removal: Option<Removal>,
}

/// A step of starting that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartStep {
    /// Making the launcher process.
    Launcher,
    /// Changing to the working directory.
    Dir,
    /// Setting the affinity.
    Cpus,
    /// Joining the cgroup.
    Cgroup,
    /// Becoming the command.
    Exec,
}

/// Why the command did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// The work that failed.
    pub step: StartStep,
    /// The system's error number, where there is one.
    pub errno: Option<i32>,
    /// The system's words.
    pub text: String,
}

impl Refusal {
    pub(super) fn new(step: StartStep, cause: &std::io::Error) -> Self {
        Self { step, errno: cause.raw_os_error(), text: crate::error::plain(cause) }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// The code, where it ended by itself.
    pub fn code(self) -> Option<i32> {
        if let Self::Code(code) = self { Some(code) } else { None }
    }

    /// The signal that ended it, if one did.
    pub fn signal(self) -> Option<i32> {
        if let Self::Signal(signal) = self { Some(signal) } else { None }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        31 => "SYS",
        _ => return None,
    })
}

/// A report of the guardian to Loadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The command runs under this pid.
    Started(u32),
    /// The command did not start.
    Refused(Refusal),
    /// The command ended.
    Exited(Exit),
    /// How many descendants could not be killed.
    Left(usize),
}

impl Order {
    /// A line for `sh -c`.
    pub(super) fn of_shell(line: &str) -> Self {
        Self { argv: ["sh", "-c", line].map(str::to_owned).to_vec(), ..Self::default() }
    }

    /// The order in the first line of the stream. Nothing follows it, so reading ahead loses nothing.
    pub(super) fn read(from: impl Read) -> io::Result<Self> {
        let mut text = Vec::new();
        BufReader::new(from.take(LINE_BYTES_MAX)).read_until(b'\n', &mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// One line of the protocol.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // The messages hold nothing that JSON cannot.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
