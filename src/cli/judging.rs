//! What was typed about judging a result, as it is asked.

use super::args_compare::{Comparing, Judging, Undecided};
use crate::error::Result;
use crate::result::{Asked, Judgement};
use crate::scenario::Scenario;

/// How the result of a scenario is judged, with what was typed.
///
/// # Errors
/// As [`Judgement::of`].
pub(super) fn judgement(scenario: &Scenario, comparing: Option<&Comparing>, judging: &Judging) -> Result<Judgement> {
    let asked = Asked {
        budgets: judging.budget.clone(),
        baseline: judging.baseline.clone(),
        undecided_breaks: judging.undecided == Undecided::Fail,
        strict: judging.strict,
        ..Asked::default()
    };
    let asked = match comparing {
        None => asked,
        Some(typed) => {
            Asked { metrics: typed.metric.clone(), least: typed.least.clone(), confidence: typed.confidence, ..asked }
        }
    };
    Judgement::of(scenario, asked)
}
