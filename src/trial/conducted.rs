//! The yield of a trial: its measurements, and the error that stopped it.

use crate::error::Error;
use crate::record::Trial;

/// The yield of a trial, however it ended.
#[derive(Debug)]
pub struct Conducted {
    /// All that was measured before it ended.
    pub trial: Trial,
    /// The error that stopped it before its plan was done.
    pub error: Option<Error>,
}
