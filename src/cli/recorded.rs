//! Archives as reports take them: with the figures that their scenario derives from the marks.

use crate::archive::{self, Archive};
use crate::comparison;
use crate::error::Result;
use crate::record::Trial;
use crate::scenario::Derived;
use std::path::Path;

/// Reads an archive, and computes its figures again: it keeps marks and scenario only.
///
/// # Errors
/// As [`archive::read`].
pub(super) fn read(path: &Path) -> Result<Archive> {
    let mut archive = archive::read(path)?;
    archive.trials.iter_mut().for_each(|trial| add_figures(trial, &archive.scenario.figures));
    Ok(archive)
}

/// Adds what is derived from the marks of a trial.
pub(super) fn add_figures(trial: &mut Trial, asked: &[Derived]) {
    if !asked.is_empty() {
        trial.figures = comparison::figures(asked, trial);
    }
}
