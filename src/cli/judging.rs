//! The judgement of a result by the options that were typed, and the exit code that answers it.

use super::exit::Code;
use crate::error::Result;
use crate::record::Document;
use crate::report::Progress;
use crate::result::{Bisected, Judgement, JudgementSettings};
use crate::scenario::{Budget, CompareSettings, Scenario};
use clap::{Parser, ValueEnum};

/// Options to judge a result.
#[derive(Debug, Clone, Default, Parser)]
#[command(next_help_heading = "Judging")]
pub(super) struct Judging {
    /// A budget to keep: `rss.loaded<=60MiB`, `p99<=20ms`, or with a baseline `rss.loaded<=+2%`; may be repeated; exit
    /// code 1 if one is broken
    #[arg(long, value_name = "BUDGET")]
    pub(super) budget: Vec<Budget>,
    /// The baseline: a configuration, or an archive [default: the first configuration]
    #[arg(long, value_name = "NAME | ARCHIVE")]
    pub(super) baseline: Option<String>,
    /// Effect of an undecided budget on the exit code
    #[arg(long, value_name = "HOW", default_value = "pass")]
    undecided: Undecided,
    /// A budget on what was not measured is an error (exit code 2)
    #[arg(long)]
    pub(super) strict: bool,
    /// Exit as `git bisect run` expects: 0 where budgets are kept, 1 where one is broken, 125 where that is not known,
    /// 128 where the request is wrong. Without a budget, verdicts are asked
    #[arg(long, conflicts_with_all = ["undecided", "strict"])]
    pub(super) bisect: bool,
}

/// Effect of an undecided budget on the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Undecided {
    /// It does no harm: 0.
    #[default]
    Pass,
    /// It counts as broken: 1.
    Fail,
}

/// How the result of a scenario is judged, with what was typed.
///
/// # Errors
/// As [`Judgement::of`].
pub(super) fn judgement(
    scenario: &Scenario,
    comparing: Option<&CompareSettings>,
    judging: &Judging,
) -> Result<Judgement> {
    let asked = JudgementSettings {
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
