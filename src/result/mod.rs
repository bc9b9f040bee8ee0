//! From trials to the result document: those of one run, of a search, or of several archives side by side. The same
//! right after a run and from its archive.

mod accounts;
mod blocks;
mod commits;
mod history;
mod history_points;
mod judgement;
mod merged;
mod recorded;

pub use crate::comparison::Column;
pub use accounts::{changes, ranked};
pub use blocks::{AllBlocks, NodeBlocks};
pub use commits::Commits;
pub use history::{History, HistoryAsked};
pub use judgement::{Asked, Bisected, Judgement};
pub use merged::{Merged, Part};
pub use recorded::read;

use crate::archive;
use crate::comparison;
use crate::diagnosis;
use crate::doubt::Doubt;
use crate::record::{
    ArchiveRecord, BlockRecord, BudgetRecord, ComparisonRecord, Conditions, Document, DoubtRecord, Evidence,
    FindRecord, LinesRecord, MetricRecord, RESULT_SCHEMA, Trial, TuneRecord,
};
use crate::scenario::Scenario;
use crate::series::{search, tune};
use std::path::{Path, PathBuf};

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
    document(conditions, trials, Together { tune: tune::found(scenario, trials), ..Together::default() })
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
    document(conditions, trials, Together { find: search::found(scenario, trials), ..Together::default() })
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

/// Results that come from all trials together.
#[derive(Default)]
struct Together {
    archives: Vec<ArchiveRecord>,
    metrics: Vec<MetricRecord>,
    blocks: Vec<BlockRecord>,
    comparisons: Vec<ComparisonRecord>,
    doubts: Vec<Doubt>,
    budgets: Vec<BudgetRecord>,
    find: Option<FindRecord>,
    tune: Option<TuneRecord>,
}

fn document(conditions: &Conditions, trials: &[Trial], together: Together) -> Document {
    let diagnosis = diagnosis::of_trials(trials);
    Document {
        schema: RESULT_SCHEMA.to_owned(),
        conditions: conditions.clone(),
        archives: together.archives,
        trials: trials.to_vec(),
        pareto: comparison::pareto(&together.metrics),
        metrics: together.metrics,
        blocks: together.blocks,
        comparisons: together.comparisons,
        doubts: together.doubts.into_iter().map(DoubtRecord::from).collect(),
        find: together.find,
        tune: together.tune,
        findings: diagnosis.findings,
        ruled_out: diagnosis.ruled_out,
        budgets: together.budgets,
    }
}
