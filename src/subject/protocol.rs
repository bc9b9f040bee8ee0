//! The messages between Loadline, its guardian, and the launcher: one JSON line each, over socket pairs.
//!
//! Loadline sends the guardian one [`Order`]; if the stream then closes, the guardian kills the command. The
//! guardian sends [`Report`]s. The launcher sends one [`Refusal`] on failure.

use super::keeper::Removal;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

/// Loadline's first argument as a guardian.
pub(super) const GUARDIAN_WORD: &str = "__guardian";
/// Loadline's first argument as a launcher.
pub(super) const LAUNCHER_WORD: &str = "__launch";
/// The guardian's pid, set in every process of a subject to recognize strays.
pub(super) const GUARDIAN_VARIABLE: &str = "LOADLINE_GUARDIAN";
/// Ten times the largest environment seen.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// An order to start a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Program and arguments; not empty.
    pub argv: Vec<String>,
    /// Additions to the inherited environment.
    pub env: Vec<(String, String)>,
    /// Working directory; `None` means Loadline's.
    pub dir: Option<PathBuf>,
    /// CPUs for the command; `None` means all of Loadline's.
    pub cpus: Option<Vec<u32>>,
    /// The command's cgroups, which the guardian removes at the end.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    /// Whether the guardian's stdout is the command's stdin.
    #[serde(default)]
    pub reads: bool,
    /// How to remove a keeper's container or step, whose processes need not descend from Loadline.
    #[serde(default)]
    pub removal: Option<Removal>,
}

/// A step of a start that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartStep {
    /// Creating the launcher process.
    Launcher,
    /// Changing to the working directory.
    Dir,
    /// Setting the CPU affinity.
    Cpus,
    Cgroup,
    /// exec.
    Exec,
}

/// Why the command did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// The step that failed.
    pub step: StartStep,
    /// The system's error number, if any.
    pub errno: Option<i32>,
    /// The system's error message.
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
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// The exit code, unless it was killed.
    pub fn code(self) -> Option<i32> {
        if let Self::Code(code) = self { Some(code) } else { None }
    }

    /// The signal that killed it, if any.
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

/// A report from the guardian to Loadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The command is running with this pid.
    Started(u32),
    /// The command did not start.
    Refused(Refusal),
    /// The command ended.
    Exited(Exit),
    /// The number of descendants that could not be killed.
    Left(usize),
}

impl Order {
    /// An order to run a line with `sh -c`.
    pub(super) fn of_shell(line: &str) -> Self {
        Self { argv: ["sh", "-c", line].map(str::to_owned).to_vec(), ..Self::default() }
    }

    /// Parses the order in the stream's first line. Nothing follows it, so buffered reading is safe.
    pub(super) fn read(from: impl Read) -> io::Result<Self> {
        let mut text = Vec::new();
        BufReader::new(from.take(LINE_BYTES_MAX)).read_until(b'\n', &mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // JSON can represent all messages.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
