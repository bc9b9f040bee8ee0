//! Archives as reports take them: with the figures that their scenario derives from the marks.

use crate::archive::{self, Archive};
use crate::comparison;
use crate::error::Result;
use std::path::Path;

/// Reads an archive, and computes its figures again: it keeps marks and scenario only.
///
/// # Errors
/// As [`archive::read`].
pub fn read(path: &Path) -> Result<Archive> {
    let mut archive = archive::read(path)?;
    let asked = &archive.scenario.figures;
    if !asked.is_empty() {
        archive.trials.iter_mut().for_each(|trial| trial.figures = comparison::figures(asked, trial));
    }
    Ok(archive)
}
