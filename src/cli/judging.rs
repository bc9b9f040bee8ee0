//! The judgement of a result by the options that were typed, and the exit code that answers it.

use super::args_compare::{Judging, Undecided};
use super::exit::Code;
use crate::error::Result;
use crate::record::Document;
use crate::report::Progress;
use crate::result::{Asked, Bisected, Judgement};
use crate::scenario::{CompareSettings, Scenario};

/// How the result of a scenario is judged, with what was typed.
///
/// # Errors
/// As [`Judgement::of`].
pub(super) fn judgement(
    scenario: &Scenario,
    comparing: Option<&CompareSettings>,
    judging: &Judging,
) -> Result<Judgement> {
    let asked = Asked {
        comparing: comparing.cloned().unwrap_or_default(),
        budgets: judging.budget.clone(),
        baseline: judging.baseline.clone(),
        undecided_breaks: judging.undecided == Undecided::Fail,
        strict: judging.strict,
        bisect: judging.bisect,
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
