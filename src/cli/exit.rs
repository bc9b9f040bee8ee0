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
    /// Interrupted; finished trials are in the archive.
    Interrupted = 130,
}

/// The table as `--help` shows it.
pub(super) const HELP: &str = "\
Exit codes:
    0  done; the answer is yes where one was asked
    1  done; the answer is no: a budget is broken, or `load --require` or `--strict` does not hold
    2  the request is wrong: arguments or scenario
    3  the subject failed: did not start, died, not one correct answer
    4  this machine cannot measure it: permission, no cgroup, missing JDK, full disk
   70  a bug in Loadline, with what to send
  130  interrupted; what was measured is printed, finished trials are in the archive";

impl Code {
    /// Of a question with this answer.
    pub(super) fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
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
        for code in [Code::Yes, Code::No, Code::Request, Code::Subject, Code::Machine, Code::Bug, Code::Interrupted] {
            let line = format!("{:>5}  ", code as u8);
            assert!(HELP.lines().any(|l| l.starts_with(&line)), "{code:?} is missing in the help");
        }
    }
}
