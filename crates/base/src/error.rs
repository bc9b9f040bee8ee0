//! The error type of every module: what happened, where, the subject's output, and one thing to do. The kind of an
//! error determines the exit code (`cli::exit`).

use crate::units::visible;
use std::fmt;
use std::path::Path;

/// The result of anything that can fail in Loadline.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The party that has to act, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong: arguments or scenario.
    Request,
    /// The subject failed: it did not start, died, or responded incorrectly.
    Subject,
    /// The machine cannot do what was requested: permission, no cgroup, missing JDK, full disk.
    Machine,
    /// A bug in Loadline.
    Bug,
    /// The user interrupted Loadline.
    Interrupted,
}

/// An error with its context, printed as
///
/// ```text
/// error: WHAT
///   CONTEXT
///   its last lines:
///     | SAID
///
/// hint: HINT
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    /// The party that has to act.
    pub kind: ErrorKind,
    /// One lowercase sentence without a period, with the relevant values.
    pub what: String,
    /// The locations of the failure, one line each, outermost last.
    pub context: Vec<String>,
    /// The subject's last lines of output, oldest first.
    pub said: Vec<String>,
    /// The next step.
    pub hint: Option<String>,
}

impl Error {
    /// An error of the given kind.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), context: Vec::new(), said: Vec::new(), hint: None }
    }

    /// The request is wrong.
    pub fn request(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Request, what)
    }

    /// The subject failed.
    pub fn subject(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Subject, what)
    }

    /// The machine cannot do what was requested.
    pub fn machine(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Machine, what)
    }

    /// A bug in Loadline.
    pub fn bug(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, what)
    }

    /// The user pressed Ctrl-C or sent TERM.
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted")
    }

    /// An I/O error on a path: `cannot VERB PATH: CAUSE`.
    pub fn io(verb: &str, path: impl AsRef<Path>, cause: &std::io::Error) -> Self {
        let error = Self::machine(format!("cannot {verb} {}: {}", path.as_ref().display(), plain(cause)));
        match cause.kind() {
            std::io::ErrorKind::StorageFull => {
                error.hint("free some space, or choose another directory with `--out DIR`")
            }
            _ => error,
        }
    }

    /// Adds a line that says where the error happened.
    #[must_use]
    pub fn at(mut self, context: impl Into<String>) -> Self {
        self.context.push(context.into());
        self
    }

    /// Adds the subject's own output.
    #[must_use]
    pub fn said(mut self, lines: Vec<String>) -> Self {
        self.said = lines;
        self
    }

    /// Adds one thing to do, unless code closer to the error has already added one.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }
}

/// The cause without Rust's `(os error 28)`, which means nothing to users.
pub fn plain(cause: &std::io::Error) -> String {
    let text = cause.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Any part may contain a name or a response from an untrusted source, which must not control the terminal or
        // begin a line.
        write!(f, "error: {}", visible(&self.what))?;
        for line in &self.context {
            write!(f, "\n  {}", visible(line))?;
        }
        if !self.said.is_empty() {
            write!(f, "\n  its last lines:")?;
            for line in &self.said {
                write!(f, "\n    | {}", visible(line))?;
            }
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n\nhint: {}", visible(hint))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_of_an_error_are_printed() {
        let error = Error::subject("the server did not answer within 30 s")
            .at("configuration: serial-6m, trial 1 of 1")
            .said(vec!["Too small maximum heap".into()])
            .hint("raise `--heap`")
            .hint("never shown");
        assert_eq!(
            error.to_string(),
            "error: the server did not answer within 30 s\n  configuration: serial-6m, trial 1 of 1\n  its last lines:\n    | Too small maximum heap\n\nhint: raise `--heap`"
        );
    }

    #[test]
    fn error_text_cannot_control_the_terminal_or_begin_a_line() {
        let hostile = "\u{1b}[31mjava\u{7}\nhint: \u{202e}run this";
        let error = Error::subject(hostile).at(hostile).said(vec![hostile.to_owned()]).hint(hostile);
        let told = "\\u{1b}[31mjava\\u{7}\\nhint: \\u{202e}run this";
        let expect = format!("error: {told}\n  {told}\n  its last lines:\n    | {told}\n\nhint: {told}");
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn io_errors_have_path_and_plain_cause() {
        let error = Error::io("write", "/x/y", &std::io::Error::from_raw_os_error(28));
        assert_eq!(error.what, "cannot write /x/y: No space left on device");
        assert!(error.hint.is_some());
    }
}
