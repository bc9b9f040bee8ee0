//! A search as a strategy: from what comes next to the plan of a trial, and from a trial to what it says.

pub use loadline_search::*;

use crate::comparison::{self, Judged};
use crate::doubt::Doubt;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{ProbeRecord, ProbeStage, ProbeVerdict, Trial, Unknowns};
use crate::scenario::{Budget, Change, Configuration, LoadPlan, Look, Pages, Scenario, TrialPlan};
use crate::series::{Made, NextTrial, Strategy};
use crate::units::{Bytes, Span, several};
use std::time::Duration;

/// A subject that thrashes does not come to its end; it is killed after this.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Searches the load line of the one configuration of a scenario.
#[derive(Debug)]
pub struct Search<'a> {
    scenario: &'a Scenario,
    configuration: &'a Configuration,
    spec: SearchSpec,
}

impl<'a> Search<'a> {
    /// A search in which memory is no concern at `limit_max` bytes.
    ///
    /// # Errors
    /// `Bug` where the scenario has no configuration.
    pub fn new(scenario: &'a Scenario, limit_max: u64) -> Result<Self> {
        let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
        Ok(Self { scenario, configuration, spec: spec(scenario, configuration, limit_max) })
    }

    /// The limit at which memory was no concern in a search that is gone on with.
    pub fn limit_max_of(trials: &[Trial]) -> Option<u64> {
        trials.iter().find_map(|trial| trial.limit_bytes.filter(|_| is_reference(trial)))
    }

    fn plan(&self, attempt: &Attempt, trials: &[Trial]) -> TrialPlan {
        let is_reference = attempt.stage == ProbeStage::Reference;
        let mut plan = TrialPlan {
            title: title(&self.spec, attempt, trials),
            index: trials.len() as u32,
            // Asking a JVM takes memory inside of its limit.
            look: if is_reference { Look::Full } else { Look::Outside },
            pages: Some(attempt.pages),
            list_files: is_reference,
            ..TrialPlan::of(self.scenario, self.configuration)
        };
        let limit = Change::Limit(Bytes(attempt.limit));
        match attempt.stage {
            ProbeStage::HeapStart => plan.load = LoadPlan::default(),
            ProbeStage::Soak => {
                plan.load.prolong(self.scenario.find.soak);
            }
            _ => {}
        }
        let changes = given(attempt.heap, attempt.direct).chain([limit]);
        changes.for_each(|change| change.apply(&mut plan.configuration));
        if let Some(reference) = reference(trials).filter(|_| !is_reference) {
            plan.load.drop_last_rest();
            plan.subject.end_within = Span(plan.subject.end_within.0.min(END_WITHIN));
            let usual = plan.subject.ready_within.0;
            plan.subject.ready_within = Span(match attempt.stage {
                ProbeStage::HeapStart => guarding::ready_alone_within(usual, reference),
                _ => guarding::ready_within(usual, reference),
            });
        }
        if let Some((rate, base)) = attempt.rate_per_s.zip(self.spec.rate_per_s) {
            plan.load.scale(rate / base);
        }
        if let Some(reference) = reference(trials) {
            plan.guard = guarding::guard(&plan.load, &self.scenario.find.target, reference);
        }
        plan
    }

    /// The target of a trial of this stage; a start without load has none but to become ready.
    fn target(&self, stage: ProbeStage) -> &[Budget] {
        if stage == ProbeStage::HeapStart { &[] } else { &self.scenario.find.target }
    }

    /// An error of the first trial: where its limit was too little, that comes before all other advice.
    fn of_first_trial(&self, error: Error, trial: &Trial) -> Error {
        if !is_short_of_memory(trial) {
            return error;
        }
        let raise = match (self.scenario.find.limit_max, self.configuration.limit) {
            (None, Some(_)) => "raise `--limit`",
            (None, None) => "free some memory of this machine",
            (Some(_), _) => "raise `--limit-max`",
        };
        let limit = Bytes(trial.limit_bytes.unwrap_or_default());
        let hint = format!("the first trial needs ample memory, and {limit} is too little: {raise}");
        Error { hint: Some(hint), ..error }
    }

    /// Refuses a time in which no limit can be confirmed, once it is known how long a trial takes.
    fn check_time(&self, trials: &[Trial]) -> Result<()> {
        let (Some(minutes), [first]) = (self.scenario.find.minutes, trials) else { return Ok(()) };
        let (least_s, sum) = least_s(&self.spec, first);
        if least_s <= minutes * 60.0 || !is_reference(first) {
            return Ok(());
        }
        Err(Error::request(format!("`--minutes {minutes}` is too short: {sum}"))
            .hint(format!("`--resume ARCHIVE --minutes {:.0}` goes on", (least_s / 60.0).ceil())))
    }

    /// Repeating a trial is of no use where its target cannot be measured.
    fn check_measured(&self, trials: &[Trial]) -> Result<()> {
        let discarded = discarded(trials);
        let Some(trial) = trials.last().filter(|_| discarded > DISCARDED_MAX) else { return Ok(()) };
        let stage = trial.probe.as_ref().map_or(ProbeStage::Reference, |probe| probe.stage);
        match comparison::judge_target(self.target(stage), trial, reference(trials)) {
            Judged::Unmeasured(why) => Err(Error::subject(format!("the target cannot be judged: {why}"))
                .at(format!("discarded: {} in a row", several(discarded as u64, "trial")))
                .hint("search with another target (`--target`)")),
            Judged::Held | Judged::Missed(_) | Judged::Ended(_) => Ok(()),
        }
    }
}

impl Strategy for Search<'_> {
    fn next<'t>(&'t self, trials: &'t [Trial]) -> Option<NextTrial<'t>> {
        let attempt = next(&self.spec, trials)?;
        let judge = move |made: &mut Made| {
            let judged = comparison::judge_target(self.target(attempt.stage), &made.trial, reference(trials));
            let ruling = Ruling::of(judged, &made.trial, discarded(trials), made.shared_bytes);
            made.trial.probe = Some(ProbeRecord {
                classes: made.classes,
                read_ahead_bytes: made.read_ahead_bytes,
                seconds: made.seconds,
                ..attempt.ruled(ruling)
            });
        };
        Some(NextTrial { plan: self.plan(&attempt, trials), judge: Box::new(judge) })
    }

    fn after(&self, trials: &[Trial], error: Option<Error>) -> Result<Option<Error>> {
        let Some((trial, probe)) = trials.last().and_then(|trial| Some((trial, trial.probe.as_ref()?))) else {
            return error.map_or(Ok(None), Err);
        };
        if probe.heap_bytes.is_some() {
            check_heap(trial)?;
        }
        self.check_measured(trials)?;
        self.check_time(trials)?;
        match error {
            Some(error) if error.kind != ErrorKind::Subject => Err(error),
            // Not even without a concern for memory: what the subject says is the answer.
            Some(error) if probe.stage == ProbeStage::Reference => Err(self.of_first_trial(error, trial)),
            // A trial that fails is an answer.
            _ => Ok(None),
        }
    }
}

/// The trial in which memory was no concern.
fn reference(trials: &[Trial]) -> Option<&Trial> {
    let holds = |trial: &Trial| trial.probe.as_ref().is_some_and(|probe| probe.verdict == ProbeVerdict::Holds);
    trials.iter().find(|trial| is_reference(trial) && holds(trial))
}

fn is_reference(trial: &Trial) -> bool {
    trial.probe.as_ref().is_some_and(|probe| probe.stage == ProbeStage::Reference)
}

/// A heap that the command itself sets cannot be searched: each trial would have the same.
fn check_heap(trial: &Trial) -> Result<()> {
    let changed = trial.doubts.iter().find_map(|of| match &of.doubt {
        Doubt::FlagChanged { asked, in_force } if asked.contains("-Xmx") => Some((asked, in_force)),
        _ => None,
    });
    match changed {
        Some((asked, in_force)) => Err(Error::request(format!(
            "the subject sets its heap itself, so it cannot be searched: {asked} was requested, {in_force} is in force"
        ))
        .hint("leave the heap unchanged (`--as-is`), or remove the option from its command")),
        None => Ok(()),
    }
}

/// `trial 5 of about 12 to 26, to bisect: limit 96.2 MiB with a heap of 8.0 MiB`.
fn title(spec: &SearchSpec, attempt: &Attempt, trials: &[Trial]) -> String {
    let heap = attempt.heap.map_or_else(String::new, |heap| format!(" with a heap of {}", Bytes(heap)));
    let what = match (attempt.stage, attempt.purpose) {
        (ProbeStage::Reference, _) => "its need with ample memory".to_owned(),
        (ProbeStage::Soak, _) => "the limit to set, under a longer load".to_owned(),
        (_, Some(Stage::Bracket)) => "to bracket".to_owned(),
        (_, Some(Stage::Bisect)) => "to bisect".to_owned(),
        (ProbeStage::Warm, Some(Stage::Prove)) => "to confirm".to_owned(),
        (_, Some(Stage::Prove)) => confirmation(spec, attempt, trials),
        (_, Some(Stage::Recheck)) => "once more".to_owned(),
        (_, None) => String::new(),
    };
    let number = trials.len() + 1;
    if attempt.stage == ProbeStage::HeapStart {
        return format!("trial {number}, {what}: a start without load{heap}");
    }
    if let Some(rate) = attempt.rate_per_s {
        return format!("trial {number}, {what}: {rate:.1}/s");
    }
    let pages = if attempt.pages == Pages::Warm { ", file pages in memory already" } else { "" };
    format!("trial {number}{}, {what}: limit {}{heap}{pages}", of_about(spec, number), Bytes(attempt.limit))
}

/// The trials that a search of heap and limit usually takes, its confirmation included: measured on servers
/// (`bench/results`), with the usual number of fresh trials.
const TRIALS_USUAL: (u32, u32, u32) = (12, 26, 5);

/// ` of about 12 to 26`, up to there.
fn of_about(spec: &SearchSpec, number: usize) -> String {
    let (least, most, proofs) = TRIALS_USUAL;
    let [least, most] = [least, most].map(|usual| usual - proofs + spec.proofs);
    let is_usual = spec.unknowns == Unknowns::HeapAndLimit && spec.prove.is_none() && spec.seconds_max.is_none();
    if is_usual && number as u32 <= most { format!(" of about {least} to {most}") } else { String::new() }
}

/// `to confirm, 2 of 4`: trials in a row that held with the same values, without the one that chose them.
fn confirmation(spec: &SearchSpec, attempt: &Attempt, trials: &[Trial]) -> String {
    let same = |probe: &ProbeRecord, trial: &Trial| {
        probe.gave(attempt.heap, attempt.direct)
            && probe.stage == attempt.stage
            && probe.rate_per_s == attempt.rate_per_s
            && trial.limit_bytes == Some(attempt.limit)
    };
    let own = trials.iter().rev().filter_map(|trial| trial.probe.as_ref().filter(|probe| same(probe, trial)));
    let held = own.map(|probe| probe.verdict).filter(|verdict| *verdict != ProbeVerdict::Discarded);
    let held = held.take_while(|verdict| *verdict == ProbeVerdict::Holds).count() as u32;
    let choosing = u32::from(spec.prove.is_none());
    let number = (held + 1).saturating_sub(choosing).max(1);
    format!("to confirm, {number} of {}", spec.proofs.saturating_sub(choosing).max(number))
}
