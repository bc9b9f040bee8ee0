//! From trials to the result document: of a run, a search, or several archives. The result is the same right after a
//! run and from its archive.

mod accounts;
mod blocks;
mod commits;
mod history;
mod history_points;
mod judgement;
mod merged;
mod vpa;

pub use crate::comparison::Column;
pub use accounts::{changes, ranked};
pub use blocks::{AllBlocks, NodeBlocks};
pub use commits::Commits;
pub use history::{History, HistoryAsked};
pub use judgement::{Bisected, Judgement, JudgementSettings, Undecided};
pub use merged::{ArchivePart, Merged};
pub use vpa::{compare_vpa, read_vpa};

use crate::archive::{self, Archive};
use crate::comparison;
use crate::diagnosis;
use crate::error::Result;
use crate::record::{Conditions, Document, Evidence, Finding, LinesRecord, OverRecord, RESULT_SCHEMA, Trial};
use crate::scenario::Scenario;
use crate::series::{search, tune};
use std::path::{Path, PathBuf};

/// Reads an archive for reports, recomputing figures from its marks and scenario.
pub fn read(path: &Path) -> Result<Archive> {
    let mut archive = archive::read(path)?;
    let asked = &archive.scenario.figures;
    if !asked.is_empty() {
        archive.trials.iter_mut().for_each(|trial| trial.figures = comparison::figures(asked, trial));
    }
    Ok(archive)
}

/// Whether these trials belong to a search.
pub fn is_search(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.probe.is_some())
}

/// Whether these trials belong to a tuning.
pub fn is_tuning(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.tuned.is_some())
}

/// The document of a tuning, whose record contains its own comparisons.
pub fn of_tuning(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    Document { tune: tune::found(scenario, trials), ..document(conditions, trials) }
}

/// Adds the limits found after a tuning, from archives within that of the tuning.
pub fn add_lines(document: &mut Document, folder: &Path) {
    let line = |name: &str| {
        let archive = read(&folder.join(name)).ok()?;
        search::found(&archive.scenario, &archive.trials)
    };
    let (as_is, tuned) = (line(tune::LINE_AS_IS), line(tune::LINE_TUNED));
    if let Some(tune) = document.tune.as_mut().filter(|_| as_is.is_some() || tuned.is_some()) {
        tune.lines = Some(LinesRecord { as_is, tuned });
    }
}

/// The document of a search, without metrics and comparisons, because its trials have different settings.
pub fn of_search(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    let find = search::found(scenario, trials);
    let mut of = document(conditions, trials);
    if find.as_ref().is_some_and(|find| find.heap_bytes.is_some()) {
        // The search tried heap sizes, so a rule of thumb adds nothing.
        of.findings.retain(|one| !matches!(one.finding, Finding::HeapFarAboveLive { .. }));
    }
    // A server that sets its own heap may use more than this load needs.
    let reference = trials.iter().find(|trial| trial.heap_typed().is_some());
    let limit = find.as_ref().filter(|find| find.heap_bytes.is_none()).and_then(|find| find.limit_bytes);
    let above = reference.zip(limit).and_then(|(trial, limit)| diagnosis::ceilings_above(trial, limit));
    if above.is_some() {
        of.findings.retain(|one| !matches!(one.finding, Finding::CeilingsAboveLimit { .. }));
        of.findings.extend(above);
    }
    Document { find, ..of }
}

/// The document of several searches, one for each value of a setting. Their trials are in separate archives.
pub fn over(conditions: &Conditions, over: OverRecord) -> Document {
    Document { over: Some(over), ..document(conditions, &[]) }
}

/// Reads plot data for a document from its archives' directories, in order; empty if unavailable.
pub fn evidence(document: &Document, folders: &[PathBuf]) -> Vec<Evidence> {
    // With a single archive, all trials are its own.
    let from = |at: usize| document.archives.get(at).map(|archive| archive.index_from);
    let of = |(at, folder): (usize, &PathBuf)| {
        let own = from(at).unwrap_or(0)..from(at + 1).unwrap_or(u32::MAX);
        // Names of blocks from nodes contain the archive, too.
        let last = |name: String| name.rsplit('/').next().unwrap_or_default().to_owned();
        let in_archive = |trial: &Trial| Trial { folder: trial.folder.clone().map(last), ..trial.clone() };
        let trials = document.trials.iter().filter(|trial| own.contains(&trial.index));
        archive::evidence(folder, &trials.map(in_archive).collect::<Vec<_>>())
    };
    folders.iter().enumerate().flat_map(of).collect()
}

/// The document of these trials with their diagnosis. `Judgement::document` adds metrics, comparisons, and budgets,
/// which need all trials.
fn document(conditions: &Conditions, trials: &[Trial]) -> Document {
    let diagnosis = diagnosis::of_trials(trials);
    Document {
        schema: RESULT_SCHEMA.to_owned(),
        conditions: conditions.clone(),
        trials: trials.to_vec(),
        findings: diagnosis.findings,
        ruled_out: diagnosis.ruled_out,
        ..Document::default()
    }
}
