//! Errors that say what happened and where, and suggest a next step.

use std::{fmt, io};

/// The result of a fallible function.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// An error with its context, printed in the same format as Loadline's errors.
#[derive(Debug)]
pub(crate) struct Error {
    /// The exit code, as in Loadline: 2 for an invalid request, 4 for a limitation of the machine.
    pub(crate) code: u8,
    /// What happened: a lowercase sentence with the relevant values and without a period.
    pub(crate) what: String,
    /// A suggested next step.
    pub(crate) hint: Option<&'static str>,
    /// The place where it happened.
    pub(crate) place: Option<String>,
}

impl Error {
    /// An error for invalid arguments or invalid input.
    pub(crate) fn request(what: impl Into<String>) -> Self {
        Self { code: 2, what: what.into(), hint: None, place: None }
    }

    /// An error for a limitation of the machine, in the form `cannot VERB WHAT: CAUSE`.
    pub(crate) fn io(verb: &str, what: impl fmt::Display, cause: &io::Error) -> Self {
        let cause = cause.to_string();
        // Removes Rust's suffix, such as `(os error 28)`, which is useless to users.
        let cause = cause.split(" (os error").next().unwrap_or_default();
        Self { code: 4, ..Self::request(format!("cannot {verb} {what}: {cause}")) }
    }

    /// Adds the place where the error happened.
    pub(crate) fn at(self, place: String) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Adds a next step.
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
