//! Exit codes, one table: documented in the help, promised to scripts.

use crate::error::ErrorKind;
use std::process::ExitCode;

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// Done; the answer is yes where one was asked.
    Yes = 0,
    /// Done; the answer is no: a budget is broken, a threshold does not hold.
    No = 1,
    /// The request is wrong: arguments or scenario. clap's own code.
    Request = 2,
    /// The subject failed: did not start, died, not one correct answer.
    Subject = 3,
    /// This machine cannot measure it: permission, no cgroup, missing JDK, full disk.
    Machine = 4,
    /// A bug in Loadline.
    Bug = 70,
    /// With `--bisect`: not measured or not decided; `git bisect run` tries another commit.
    Skipped = 125,
    /// With `--bisect`: what no other commit would cure; `git bisect run` stops.
    Stopped = 128,
    /// Interrupted; finished trials are in the archive.
    Interrupted = 130,
}

/// The table as `--help` shows it.
pub(super) const HELP: &str = "\
Exit codes:
    0  done; if something was asked, the answer is yes
    1  done; the answer is no: a budget is broken, or `load --require` or `--strict` does not hold
    2  the request is wrong: arguments or scenario
    3  the subject failed: did not start, died, not one correct answer
    4  this machine cannot measure it: no permission, no cgroup, no such JDK, a full disk
   70  a bug in Loadline, with what to send
  125  with `--bisect`, in place of 3 and 4: not measured, or not decided; this commit is skipped
  128  with `--bisect`, in place of 2 and 70: `git bisect run` stops
  130  interrupted; the measurements so far are printed, finished trials are in the archive";

impl Code {
    /// Returns the code of a question with this answer.
    pub(super) fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// The same for `git bisect run`, to which everything but 0 and what lies from 125 on means a bad commit.
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
    fn the_help_lists_every_code() {
        let of_bisect = [Code::Skipped, Code::Stopped];
        let usual = [Code::Yes, Code::No, Code::Request, Code::Subject, Code::Machine, Code::Bug, Code::Interrupted];
        for code in usual.into_iter().chain(of_bisect) {
            let line = format!("{:>5}  ", code as u8);
            assert!(HELP.lines().any(|l| l.starts_with(&line)), "{code:?} is missing in the help");
        }
        // 1 to 127 but for 125 would blame a commit, from 128 on git stops (git-bisect(1), "Bisect run").
        for code in usual.map(Code::for_bisect).map(|code| code as u8) {
            assert!(matches!(code, 0 | 1 | 125 | 128..), "{code}");
        }
    }
}
