//! The exit codes, documented in the help and stable for scripts.

use crate::error::ErrorKind;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// Success; if there was a question, the answer is yes.
    Yes = 0,
    /// Success, but the answer is no: a budget is exceeded, or a threshold not met.
    No = 1,
    /// The request is invalid: arguments or scenario. Same as clap's code.
    Request = 2,
    /// The subject failed: it did not start, died, or gave no correct response.
    Subject = 3,
    /// This machine cannot measure it: missing permission, cgroup, or JDK; full disk.
    Machine = 4,
    Bug = 70,
    /// With `--bisect`: unmeasured or undecided; `git bisect run` tries another commit.
    Skipped = 125,
    /// With `--bisect`: an error that other commits would have too; `git bisect run` stops.
    Stopped = 128,
    /// Interrupted; finished trials are in the archive.
    Interrupted = 130,
}

/// The table for `--help`.
pub(super) const HELP: &str = "\
Exit codes:
    0  success
    1  negative result, such as an exceeded budget or a failed `load --require`
    2  invalid arguments or scenario
    3  the server failed: it did not start, it died, or no response was correct
    4  this machine cannot run the measurement: a permission, cgroup, or JDK is missing, or the disk is full
   70  a bug in Loadline; the message says what to report
  125  with `--bisect`, instead of 3 or 4: not measured or not decided, so git skips the commit
  128  with `--bisect`, instead of 2 or 70: stops `git bisect run`
  130  interrupted; prints the results so far and keeps completed trials in the archive";

impl Code {
    /// The code for the answer to a question.
    pub(super) fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// The code for `git bisect run`, which treats 1 to 124 as a bad commit.
    pub(super) fn for_bisect(self) -> Self {
        match self {
            Self::Request | Self::Bug => Self::Stopped,
            Self::Subject | Self::Machine => Self::Skipped,
            Self::Yes | Self::No | Self::Skipped | Self::Stopped | Self::Interrupted => self,
        }
    }
}

impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Request => Self::Request,
            ErrorKind::Subject => Self::Subject,
            ErrorKind::Machine => Self::Machine,
            ErrorKind::Bug => Self::Bug,
            ErrorKind::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_exit_code() {
        let of_bisect = [Code::Skipped, Code::Stopped];
        let usual = [Code::Yes, Code::No, Code::Request, Code::Subject, Code::Machine, Code::Bug, Code::Interrupted];
        for code in usual.into_iter().chain(of_bisect) {
            let line = format!("{:>5}  ", code as u8);
            assert!(HELP.lines().any(|l| l.starts_with(&line)), "{code:?} is missing in the help");
        }
        // 1 to 127 except 125 would blame a commit; at 128 and above, git stops (git-bisect(1), "Bisect run").
        for code in usual.map(Code::for_bisect).map(|code| code as u8) {
            assert!(matches!(code, 0 | 1 | 125 | 128..), "{code}");
        }
    }
}
