//! The diagnosis of a subject: rules turn recorded trials or an account into findings, each with evidence, weight,
//! remedy, and maximum gain; [`remedy`] has the remedies that a trial can test.
//!
//! A rule without evidence yields nothing. This crate does no I/O. `docs/findings.md` lists the rules.

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

/// Heavier findings, as a share of RSS, come before any risk.
const HEAVY_SHARE: f64 = 0.05;

type Rule = fn(&Facts) -> Option<FindingRecord>;

/// All rules except the loaders', which yields one finding per type.
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

/// A diagnosis: the causes found, and those ruled out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Each diagnosis once per configuration, the most worthwhile first.
    pub findings: Vec<FindingRecord>,
    /// Each cause that was ruled out, once per configuration.
    pub ruled_out: Vec<RuledOutRecord>,
}

/// Diagnoses trials. Numbers are from the first trial that shows a finding; completed trials come before failed ones.
/// In a search, only trials with ample memory count, because the others are deliberately starved.
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
    // A trial that shows a cause outweighs others that do not.
    let shown: Vec<String> = own.findings.iter().map(|one| one.finding.kind()).collect();
    own.ruled_out.retain(|one| !shown.contains(&one.kind));
    rank(&mut own.findings, rss);
    own
}

/// The finding that the ceilings in a trial exceed this limit, such as one found by a search.
pub fn ceilings_above(trial: &Trial, limit_bytes: u64) -> Option<FindingRecord> {
    let mut facts = Facts::of_trial(trial);
    facts.limit = Some(limit_bytes);
    let of = OfTrials { configuration: trial.configuration.clone(), trial: trial.index, trials_alike: 1 };
    Some(FindingRecord { of: Some(of), ..ceilings::above_limit(&facts)? })
}

/// Merges a trial's findings into those of earlier trials; repeated ones are only counted.
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

/// Diagnoses an account.
pub fn of_account(document: &AccountDocument) -> Diagnosis {
    let facts = Facts::of_account(document);
    let mut diagnosis = every(&facts);
    rank(&mut diagnosis.findings, facts.rss());
    diagnosis
}

/// All findings about a JVM.
fn every(facts: &Facts) -> Diagnosis {
    let loaders = loaders::keep_coming(facts);
    // If loaders keep coming, they explain the growth of metadata.
    let metaspace = if loaders.is_empty() { classes::metaspace_grows(facts) } else { None };
    let many = loaders::many(facts, &loaders);
    let others = RULES.iter().filter_map(|rule| rule(facts));
    let least = least(facts.rss());
    let is_worth = |found: &FindingRecord| found.finding.is_risk() || found.worth_bytes() >= least;
    let found: Vec<FindingRecord> =
        loaders.into_iter().chain(many).chain(metaspace).chain(others).filter(is_worth).collect();
    Diagnosis { ruled_out: ruled_out::by_evidence(facts, &found), findings: found }
}

/// Sorts by kind: heavy causes, heavy facts true of nearly every JVM, risks, the rest; within each, the most worthwhile
/// first.
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
