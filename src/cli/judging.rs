//! What was typed about judging a result, as it is asked, and the exit code that answers it.

use super::args_compare::{Comparing, Judging, Undecided};
use super::exit::Code;
use crate::error::Result;
use crate::record::Document;
use crate::report::Progress;
use crate::result::{Asked, Bisected, Judgement};
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
        bisect: judging.bisect,
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

/// The exit code of a result that was shown; for `git bisect` it says on stderr what it stands for.
///
/// # Errors
/// As [`Judgement::passes`].
pub(super) fn code(judgement: &Judgement, result: &Document, progress: &mut Progress) -> Result<Code> {
    if !judgement.is_for_bisect() {
        return judgement.passes(result).map(Code::of);
    }
    Ok(match judgement.bisected(result) {
        Bisected::Good => {
            progress.step("bisect: good");
            Code::Yes
        }
        Bisected::Bad => {
            progress.step("bisect: bad");
            Code::No
        }
        Bisected::Unknown(why) => {
            progress.warn(&format!("bisect: neither good nor bad: {why}"));
            Code::Skipped
        }
    })
}
