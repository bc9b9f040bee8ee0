//! From the trials of a search to its document: the same right after the search and from its archive.

use crate::record::{Conditions, Document, RESULT_SCHEMA, Trial};
use crate::scenario::Scenario;
use crate::series::search;

/// Whether these trials are those of a search.
pub(super) fn is_search(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.sought.is_some())
}

/// The document of a search. Metrics and comparisons are of trials that ask the same; those of a search do not.
pub(super) fn document(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    Document {
        schema: RESULT_SCHEMA.to_owned(),
        conditions: conditions.clone(),
        trials: trials.to_vec(),
        metrics: Vec::new(),
        blocks: Vec::new(),
        comparisons: Vec::new(),
        pareto: Vec::new(),
        doubts: Vec::new(),
        find: search::found(scenario, trials),
        findings: Vec::new(),
        budgets: Vec::new(),
    }
}
