//! From trials to the result document: those of one run, of a search, or of several archives side by side. The same
//! right after a run and from its archive.

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

/// Reads an archive as reports take it: its figures are computed again from the marks and the scenario, which is what
/// it keeps.
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

/// Whether these trials are those of a search.
pub fn is_search(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.probe.is_some())
}

/// Whether these trials are those of a tuning.
pub fn is_tuning(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.tuned.is_some())
}

/// The document of a tuning; what its settings have in common with configurations that are compared, its own record
/// says.
pub fn of_tuning(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    Document { tune: tune::found(scenario, trials), ..document(conditions, trials) }
}

/// Adds the smallest limits that were searched after a tuning, whose archives lie in that of the tuning.
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

/// The document of a search. Metrics and comparisons are of trials that ask the same; those of a search do not.
pub fn of_search(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    let find = search::found(scenario, trials);
    let mut of = document(conditions, trials);
    if find.as_ref().is_some_and(|find| find.heap_bytes.is_some()) {
        // The search has tried heaps: no rule of thumb for one stands beside its answer.
        of.findings.retain(|one| !matches!(one.finding, Finding::HeapFarAboveLive { .. }));
    }
    // A server that sets its heap itself may take more than this load needs.
    let reference = trials.iter().find(|trial| trial.heap_typed().is_some());
    let limit = find.as_ref().filter(|find| find.heap_bytes.is_none()).and_then(|find| find.limit_bytes);
    let above = reference.zip(limit).and_then(|(trial, limit)| diagnosis::ceilings_above(trial, limit));
    if above.is_some() {
        of.findings.retain(|one| !matches!(one.finding, Finding::CeilingsAboveLimit { .. }));
        of.findings.extend(above);
    }
    Document { find, ..of }
}

/// The document of searches at each value of one setting. Their trials are in archives of their own.
pub fn over(conditions: &Conditions, over: OverRecord) -> Document {
    Document { over: Some(over), ..document(conditions, &[]) }
}

/// Reads the evidence for the pictures of a document, out of the folders of its archives in their order; nothing where
/// none is at hand.
pub fn evidence(document: &Document, folders: &[PathBuf]) -> Vec<Evidence> {
    // With one archive, all trials are its own.
    let from = |at: usize| document.archives.get(at).map(|archive| archive.index_from);
    let of = |(at, folder): (usize, &PathBuf)| {
        let own = from(at).unwrap_or(0)..from(at + 1).unwrap_or(u32::MAX);
        // Blocks that nodes made are named by the archive, too.
        let last = |name: String| name.rsplit('/').next().unwrap_or_default().to_owned();
        let in_archive = |trial: &Trial| Trial { folder: trial.folder.clone().map(last), ..trial.clone() };
        let trials = document.trials.iter().filter(|trial| own.contains(&trial.index));
        archive::evidence(folder, &trials.map(in_archive).collect::<Vec<_>>())
    };
    folders.iter().enumerate().flat_map(of).collect()
}

/// Returns the document of these trials with their diagnosis. `Judgement::document` adds the parts that need all trials
/// together: metrics, comparisons, budgets.
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
