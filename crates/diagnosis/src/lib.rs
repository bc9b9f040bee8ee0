//! The diagnosis of a subject: rules over recorded trials, or over one account, yield findings, each with its evidence,
//! its cost, its cure and the most that the cure may gain; [`remedy`] has the cures that a trial can prove.
//!
//! A rule without its evidence yields nothing. This crate only computes. `docs/findings.md` has the table of rules.

use loadline_base::{numbers, units};
use loadline_jvm::owner;
use loadline_model::{doubt, record, scenario};

pub mod remedy;
pub mod traces;

mod beside;
mod ceilings;
mod charged;
mod classes;
mod collector;
mod compilers;
mod direct;
mod facts;
mod flags;
mod found;
mod heap;
mod humongous;
mod idle_flags;
mod live;
mod loaders;
mod machine;
mod malloc;
mod native;
mod oom;
mod ruled_out;
mod threads;

pub use flags::flags_kept;
pub use idle_flags::COPIED_DEFAULTS;
pub use live::cure_of_holder;
pub use oom::of_oom;

use crate::record::{AccountDocument, FindingRecord, OfTrials, Outcome, ProbeStage, RuledOutRecord, Trial, each_once};
use facts::{Facts, least, share};
use loadline_base::order::Order as _;

/// A weight of more of RSS than this comes before any risk.
const HEAVY_SHARE: f64 = 0.05;

/// A rule that yields at most one finding.
type Rule = fn(&Facts) -> Option<FindingRecord>;

/// Every rule but that of loaders, which yields one for each type.
const RULES: &[Rule] = &[
    direct::at_ceiling,
    native::held_by_garbage,
    direct::waits,
    direct::lives,
    native::library,
    native::program,
    native::mapped_files,
    classes::generated,
    humongous::tails,
    compilers::peak,
    live::statics,
    live::thread_values,
    live::virtual_threads,
    live::finalizers,
    live::unheld,
    beside::children,
    beside::files_in_memory,
    charged::names,
    charged::page_cache,
    malloc::retained,
    heap::free,
    heap::far_above_live,
    collector::g1_on_small_heap,
    collector::serial_unasked,
    classes::code_large,
    threads::pile_up,
    threads::idle,
    direct::netty,
    classes::cds_missing,
    machine::observers,
    machine::huge_pages,
    ceilings::share_unheeded,
    ceilings::not_seen,
    ceilings::above_limit,
    heap::exhausted,
    idle_flags::idle,
];

/// A diagnosis: the causes, and those that were considered and ruled out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Each diagnosis once for each configuration, the most worthwhile first.
    pub findings: Vec<FindingRecord>,
    /// Each cause that was ruled out, once for each configuration.
    pub ruled_out: Vec<RuledOutRecord>,
}

/// Returns the diagnosis of trials. The numbers are those of the first trial that shows it; trials that completed come
/// before those that failed. In a search, only trials in which memory was no concern count: the others are starved on
/// purpose.
pub fn of_trials(trials: &[Trial]) -> Diagnosis {
    let is_probe = |trial: &&Trial| trial.probe.as_ref().is_none_or(|probe| probe.stage == ProbeStage::Reference);
    let mut all: Vec<&Trial> = trials.iter().filter(is_probe).collect();
    let names = each_once(trials.iter().map(|trial| trial.configuration.as_str()));
    all.order_by_key(|trial| trial.outcome != Outcome::Completed);
    let mut diagnosis = Diagnosis::default();
    for configuration in names {
        let own = of_configuration(all.iter().filter(|trial| trial.configuration == configuration).copied());
        diagnosis.findings.extend(own.findings);
        diagnosis.ruled_out.extend(own.ruled_out);
    }
    diagnosis
}

/// The diagnosis of trials of one configuration.
fn of_configuration<'a>(trials: impl Iterator<Item = &'a Trial>) -> Diagnosis {
    let (mut own, mut rss) = (Diagnosis::default(), 0);
    for trial in trials {
        let facts = Facts::of_trial(trial);
        rss = if rss == 0 { facts.rss() } else { rss };
        let every = every(&facts);
        let is_like = |known: &FindingRecord, one: &FindingRecord| known.finding.is_like(&one.finding);
        count(&mut own.findings, every.findings, trial, is_like, |one| &mut one.of);
        count(&mut own.ruled_out, every.ruled_out, trial, |known, one| known.kind == one.kind, |one| &mut one.of);
    }
    // One trial that shows a cause outweighs others that do not.
    let shown: Vec<String> = own.findings.iter().map(|one| one.finding.kind()).collect();
    own.ruled_out.retain(|one| !shown.contains(&one.kind));
    rank(&mut own.findings, rss);
    own
}

/// The finding that all that may grow in a trial is more than this limit, such as the one that a search found.
pub fn ceilings_above(trial: &Trial, limit_bytes: u64) -> Option<FindingRecord> {
    let mut facts = Facts::of_trial(trial);
    facts.limit = Some(limit_bytes);
    let of = OfTrials { configuration: trial.configuration.clone(), trial: trial.index, trials_alike: 1 };
    Some(FindingRecord { of: Some(of), ..ceilings::above_limit(&facts)? })
}

/// Adds what a trial shows to what trials before it have shown; what they have shown already is only counted.
fn count<T>(
    known: &mut Vec<T>,
    shown: Vec<T>,
    trial: &Trial,
    is_like: impl Fn(&T, &T) -> bool,
    of: impl Fn(&mut T) -> &mut Option<OfTrials>,
) {
    for mut one in shown {
        match known.iter_mut().find(|known| is_like(known, &one)).and_then(|known| of(known).as_mut()) {
            Some(trials) => trials.trials_alike += 1,
            None => {
                let configuration = trial.configuration.clone();
                *of(&mut one) = Some(OfTrials { configuration, trial: trial.index, trials_alike: 1 });
                known.push(one);
            }
        }
    }
}

/// Returns the diagnosis of an account.
pub fn of_account(document: &AccountDocument) -> Diagnosis {
    let facts = Facts::of_account(document);
    let mut diagnosis = every(&facts);
    rank(&mut diagnosis.findings, facts.rss());
    diagnosis
}

/// All that is worth saying of one JVM.
fn every(facts: &Facts) -> Diagnosis {
    let loaders = loaders::keep_coming(facts);
    // Loaders that keep coming say why metadata grow.
    let metaspace = if loaders.is_empty() { classes::metaspace_grows(facts) } else { None };
    let many = loaders::many(facts, &loaders);
    let others = RULES.iter().filter_map(|rule| rule(facts));
    let least = least(facts.rss());
    let is_worth = |found: &FindingRecord| found.finding.is_risk() || found.worth_bytes() >= least;
    let found: Vec<FindingRecord> =
        loaders.into_iter().chain(many).chain(metaspace).chain(others).filter(is_worth).collect();
    let against = ruled_out::by_evidence(facts, &found);
    let (findings, outweighed) = with_own_evidence(found);
    Diagnosis { findings, ruled_out: against.into_iter().chain(outweighed).collect() }
}

/// Leaves out what is true of nearly every JVM (a heap larger than what lives in it, freed memory that malloc keeps,
/// idle threads) where a cause was found that weighs more: it would lead away from it.
fn with_own_evidence(found: Vec<FindingRecord>) -> (Vec<FindingRecord>, Vec<RuledOutRecord>) {
    let causes = found.iter().filter(|one| !one.finding.is_habit());
    let heaviest = causes.map(FindingRecord::worth_bytes).max().unwrap_or(0);
    let (told, outweighed): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|one| !one.finding.is_habit() || one.worth_bytes() >= heaviest);
    (told, outweighed.into_iter().map(|one| ruled_out::outweighed(&one, heaviest)).collect())
}

/// Puts causes of much weight first, then what is true of nearly every JVM and weighs much, then risks, then the rest;
/// each the most worthwhile first.
fn rank(found: &mut [FindingRecord], rss: u64) {
    let class = |one: &FindingRecord| match (share(one.worth_bytes(), rss) > HEAVY_SHARE, one.finding.is_habit()) {
        (true, false) => 0,
        (true, true) => 1,
        (false, _) if one.finding.is_risk() => 2,
        (false, _) => 3,
    };
    found.order_by_key(|one| (class(one), std::cmp::Reverse(one.worth_bytes()), std::cmp::Reverse(one.costs_bytes)));
}

#[cfg(test)]
mod laws_tests;
#[cfg(test)]
mod tests;
