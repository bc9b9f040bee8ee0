//! What there is to say about recorded trials: conditions first, then the numbers, then the doubts.
//! Pure: the same trials give the same words, from a fresh run or from an archive.

mod account;
mod block;
mod cells;
mod changes;
mod comparison;
mod details;
mod doubts;
mod drivers;
mod facts;
mod figures;
pub(super) mod find;
mod findings;
mod flags;
pub(super) mod fleet;
pub(super) mod history;
mod inside;
mod journey;
mod jvms;
mod loaders;
mod loads;
mod netty;
mod numbers;
mod own;
mod pools;
mod post_mortem;
mod remedies;
mod trial;
pub(super) mod tried;
pub(super) mod tune;
pub(super) mod tune_answer;
pub(super) mod tune_request;
mod watch;

pub use account::summarize_account;
pub use block::{Bar, Bars, Block, Depth, Summary, Table};
pub(super) use cells::mib;
pub use changes::summarize_changes;
pub use details::Detail;
pub(super) use facts::{configurations, host_text, shared_facts, trial_facts};
pub(super) use figures::figures;
pub(super) use findings::{more as more_findings, shown as shown_findings, told as told_finding};
pub use fleet::{summarize_fleet, unanswered};
pub use history::summarize_history;
pub(super) use inside::of_trial as live_objects;
pub(super) use journey::growth_notes;
pub use jvms::summarize_accounts;
pub(super) use loaders::of_trial as loaders;
pub use loads::summarize_load;
pub(super) use netty::{direct_bytes, explanations, shade};
pub(super) use numbers::{by_category, load, weights};
pub(super) use pools::of_trial as thread_pools;
pub use post_mortem::summarize_post_mortem;
pub use remedies::summarize_remedies;
pub use watch::summarize_watch;
pub(super) use watch::{
    counted as counted_jvms, hidden as hidden_processes, holds as what_it_holds, in_full as jvm_in_full,
    lines as lines_of_jvms, nobody as no_jvm, part_name, told as told_growth,
};

use crate::doubt::{Comparing, Doubt};
use crate::record::{Document, DoubtRecord};
use doubts::{doubts, doubts_of_trials};
use facts::repeatable_facts;
use numbers::side_by_side;
use trial::of_trial;

/// What to say of a result. `missing` says what an archive lacks.
///
/// Where several trials of several configurations were made, what they say together stands for them; `depth` asks for
/// more. So it is with the trials of a search for the load line, and with those of a tuning.
pub fn summarize(document: &Document, missing: &[String], depth: Depth) -> Summary {
    let searched = match (&document.tune, &document.find) {
        (Some(tune), _) => Some(tune::blocks(document, tune, depth)),
        (None, Some(find)) => Some(find::blocks(document, find, depth)),
        (None, None) => None,
    };
    if let Some(mut blocks) = searched {
        blocks.extend(lacking(missing));
        return Summary { blocks };
    }
    let (conditions, trials) = (&document.conditions, &document.trials);
    let compares = document.comparisons.iter().any(|row| row.blocks > 1);
    let mut blocks = vec![Block::Failing(comparison::failing(&document.budgets))];
    blocks.push(Block::Heading(format!("{}, weighed by loadline {}", conditions.scenario, conditions.loadline)));
    if compares {
        blocks.extend(comparison::sentences(document).into_iter().map(Block::Text));
    }
    blocks.push(Block::Facts(repeatable_facts(conditions)));
    if compares {
        blocks.extend(together(document, depth));
    }
    if !compares || depth.each {
        for trial in trials {
            blocks.extend(of_trial(trial, trials.len() > 1));
        }
    }
    if !compares && trials.len() > 1 {
        blocks.push(Block::Table(side_by_side(trials)));
    }
    blocks.extend(figures(document).map(Block::Table));
    blocks.extend(comparison::budgets(&document.budgets));
    blocks.extend(findings::blocks("what stands out", &document.findings));
    // Trials that are not shown as a comparison are not too few for one.
    let shown =
        |doubt: &&DoubtRecord| compares || !matches!(doubt.doubt, Doubt::Comparing(Comparing::FewBlocks { .. }));
    let mut all: Vec<DoubtRecord> = document.doubts.iter().filter(shown).cloned().collect();
    if compares && !depth.each {
        all.extend(doubts_of_trials(trials));
    }
    blocks.extend(doubts(&all));
    blocks.extend(lacking(missing));
    Summary { blocks }
}

/// What an archive lacks.
fn lacking(missing: &[String]) -> Vec<Block> {
    let heading = (!missing.is_empty()).then(|| Block::Heading("missing".to_owned()));
    heading.into_iter().chain(missing.iter().map(|what| Block::Text(what.clone()))).collect()
}

/// What the trials say together, in place of each.
fn together(document: &Document, depth: Depth) -> Vec<Block> {
    let mut blocks = vec![Block::Facts(comparison::configuration_facts(document))];
    blocks.extend(comparison::verdicts(document));
    blocks.extend(comparison::pareto(document));
    if depth.details {
        blocks.extend(comparison::details(document));
    }
    if depth.each {
        blocks.extend(comparison::every_value(document));
    }
    blocks.extend(comparison::disturbed(&document.blocks));
    blocks.extend(comparison::incomplete(&document.trials));
    blocks
}
