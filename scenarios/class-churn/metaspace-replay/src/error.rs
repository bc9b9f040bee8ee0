//! What went wrong: what happened, where, one thing to do, and whose turn it is.

use std::{fmt, io};

/// What can fail in this program returns.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// An error with its context, printed as Loadline prints its own.
#[derive(Debug)]
pub(crate) struct Error {
    /// The exit code, as Loadline has it: 2 where the request is wrong, 4 where this machine cannot do it.
    pub(crate) code: u8,
    /// One lower-case sentence without a full stop, with the values that matter.
    pub(crate) what: String,
    /// One thing to do.
    pub(crate) hint: Option<&'static str>,
    /// Where it happened.
    pub(crate) place: Option<String>,
}

impl Error {
    /// The arguments or what they name are wrong.
    pub(crate) fn request(what: impl Into<String>) -> Self {
        Self { code: 2, what: what.into(), hint: None, place: None }
    }

    /// This machine cannot do it: `cannot VERB WHAT: CAUSE`.
    pub(crate) fn io(verb: &str, what: impl fmt::Display, cause: &io::Error) -> Self {
        let cause = cause.to_string();
        // Without Rust's `(os error 28)`, which says nothing to a user.
        let cause = cause.split(" (os error").next().unwrap_or_default();
        Self { code: 4, ..Self::request(format!("cannot {verb} {what}: {cause}")) }
    }

    /// Says where it happened.
    pub(crate) fn at(self, place: String) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Adds one thing to do.
    pub(crate) fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if let Some(place) = &self.place {
            write!(f, "\n  {place}")?;
        }
        if let Some(hint) = self.hint {
            write!(f, "\n\nhint: {hint}")?;
        }
        Ok(())
    }
}
