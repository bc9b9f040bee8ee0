//! From trials to the result document: those of one run, of a search, or of several archives side by side. The same
//! right after a run and from its archive.

mod accounts;
mod judgement;
mod merged;
mod recorded;

pub use crate::comparison::Column;
pub use accounts::{changes, ranked};
pub use judgement::{Asked, Judgement};
pub use merged::{Merged, Part};
pub use recorded::read;

use crate::comparison;
use crate::doubt::Doubt;
use crate::findings;
use crate::record::{
    ArchiveRecord, BlockRecord, BudgetRecord, ComparisonRecord, Conditions, Document, DoubtRecord, FindRecord,
    MetricRecord, RESULT_SCHEMA, Trial,
};
use crate::scenario::Scenario;
use crate::series::search;

/// Whether these trials are those of a search.
pub fn is_search(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.probe.is_some())
}

/// The document of a search. Metrics and comparisons are of trials that ask the same; those of a search do not.
pub fn of_search(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    document(conditions, trials, Together { find: search::found(scenario, trials), ..Together::default() })
}

/// What trials say together.
#[derive(Default)]
struct Together {
    archives: Vec<ArchiveRecord>,
    metrics: Vec<MetricRecord>,
    blocks: Vec<BlockRecord>,
    comparisons: Vec<ComparisonRecord>,
    doubts: Vec<Doubt>,
    budgets: Vec<BudgetRecord>,
    find: Option<FindRecord>,
}

fn document(conditions: &Conditions, trials: &[Trial], together: Together) -> Document {
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
        findings: findings::of_trials(trials),
        budgets: together.budgets,
    }
}
