//! A search as a strategy: plans a trial for the next question, and reads the answer from a trial.

pub use loadline_search::*;

use crate::comparison::{self, Judged};
use crate::doubt::Doubt;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{ProbeRecord, ProbeStage, ProbeVerdict, Trial, Unknowns};
use crate::scenario::{Budget, Change, Configuration, LoadPlan, Look, Pages, Scenario, TrialPlan};
use crate::series::{Made, NextTrial, Strategy};
use crate::units::{Bytes, Span, several};
use std::time::Duration;

/// A thrashing subject does not exit on its own; it is killed after this time.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Searches for the load line of a scenario's only configuration.
#[derive(Debug)]
pub struct Search<'a> {
    scenario: &'a Scenario,
    configuration: &'a Configuration,
    spec: SearchSpec,
}

impl<'a> Search<'a> {
    /// A search in which `limit_max` bytes are ample memory. Errors: `Bug` if the scenario has no configuration.
    pub fn new(scenario: &'a Scenario, limit_max: u64) -> Result<Self> {
        let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
        Ok(Self { scenario, configuration, spec: spec(scenario, configuration, limit_max) })
    }

    /// The ample limit of a search that is being resumed.
    pub fn limit_max_of(trials: &[Trial]) -> Option<u64> {
        trials.iter().find_map(|trial| trial.limit_bytes.filter(|_| is_reference(trial)))
    }

    fn plan(&self, attempt: &Attempt, trials: &[Trial]) -> TrialPlan {
        let is_reference = attempt.stage == ProbeStage::Reference;
        let mut plan = TrialPlan {
            title: title(&self.spec, attempt, trials),
            index: trials.len() as u32,
            // Attaching to a JVM uses memory within its limit.
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

    /// The target at this stage; a start without load only has to become ready.
    fn target(&self, stage: ProbeStage) -> &[Budget] {
        if stage == ProbeStage::HeapStart { &[] } else { &self.scenario.find.target }
    }

    /// The error of the first trial. A limit that is too small outranks all other advice.
    fn of_first_trial(&self, error: Error, trial: &Trial) -> Error {
        if !is_short_of_memory(trial) {
            return error;
        }
        let raise = match (self.scenario.find.limit_max, self.configuration.limit) {
            (None, Some(_)) => "raise `--limit`",
            (None, None) => "free some memory on this machine",
            (Some(_), _) => "raise `--limit-max`",
        };
        let limit = Bytes(trial.limit_bytes.unwrap_or_default());
        let hint = format!("the first trial needs ample memory, but {limit} is too little: {raise}");
        Error { hint: Some(hint), ..error }
    }

    /// Rejects a time budget that is too short to confirm any limit, once a trial's duration is known.
    fn check_time(&self, trials: &[Trial]) -> Result<()> {
        let (Some(minutes), [first]) = (self.scenario.find.minutes, trials) else { return Ok(()) };
        let (least_s, sum) = least_s(&self.spec, first);
        if least_s <= minutes * 60.0 || !is_reference(first) {
            return Ok(());
        }
        Err(Error::request(format!("`--minutes {minutes}` is too short: {sum}")).hint(format!(
            "continue with `--resume ARCHIVE --minutes {:.0}`, or start again with a shorter load (`-d`)",
            (least_s / 60.0).ceil()
        )))
    }

    /// Rejects a target that cannot be measured; repeating the trial would not help.
    fn check_measured(&self, trials: &[Trial]) -> Result<()> {
        let discarded = discarded(trials);
        let Some(trial) = trials.last().filter(|_| discarded > DISCARDED_MAX) else { return Ok(()) };
        let stage = trial.probe.as_ref().map_or(ProbeStage::Reference, |probe| probe.stage);
        match comparison::judge_target(self.target(stage), trial, reference(trials)) {
            Judged::Unmeasured(why) => Err(Error::subject(format!("the target cannot be judged: {why}"))
                .at(format!("discarded: {} in a row", several(discarded as u64, "trial")))
                .hint("use a different target (`--target`)")),
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
            // It failed even with ample memory, so report the subject's own message.
            Some(error) if probe.stage == ProbeStage::Reference => Err(self.of_first_trial(error, trial)),
            // A failed trial is an answer, too.
            _ => Ok(None),
        }
    }
}

/// The trial with ample memory.
fn reference(trials: &[Trial]) -> Option<&Trial> {
    let holds = |trial: &Trial| trial.probe.as_ref().is_some_and(|probe| probe.verdict == ProbeVerdict::Holds);
    trials.iter().find(|trial| is_reference(trial) && holds(trial))
}

fn is_reference(trial: &Trial) -> bool {
    trial.probe.as_ref().is_some_and(|probe| probe.stage == ProbeStage::Reference)
}

/// Rejects a command that sets the heap: every trial would have the same heap.
fn check_heap(trial: &Trial) -> Result<()> {
    let changed = trial.doubts.iter().find_map(|of| match &of.doubt {
        Doubt::FlagChanged { asked, in_force } if asked.contains("-Xmx") => Some((asked, in_force)),
        _ => None,
    });
    match changed {
        Some((asked, in_force)) => Err(Error::request(format!(
            "the server sets its own heap, so Loadline cannot vary it: {asked} was requested, but {in_force} is in \
             effect"
        ))
        .hint("leave the heap unchanged (`--as-is`), or remove the option from its command")),
        None => Ok(()),
    }
}

/// `trial 5 of about 12 to 26, bisecting: limit 96.2 MiB with a heap of 8.0 MiB`.
fn title(spec: &SearchSpec, attempt: &Attempt, trials: &[Trial]) -> String {
    let heap = attempt.heap.map_or_else(String::new, |heap| format!(" with a heap of {}", Bytes(heap)));
    let what = match (attempt.stage, attempt.purpose) {
        (ProbeStage::Reference, _) => "ample memory".to_owned(),
        (ProbeStage::Soak, _) => "limit to set, longer load".to_owned(),
        (_, Some(Stage::Bracket)) if spec.prove.is_some() => "testing".to_owned(),
        (_, Some(Stage::Bracket)) => "bracketing".to_owned(),
        (_, Some(Stage::Bisect)) => "bisecting".to_owned(),
        (ProbeStage::Warm, Some(Stage::Prove)) => "confirming".to_owned(),
        (_, Some(Stage::Prove)) => confirmation(spec, attempt, trials),
        (_, Some(Stage::Recheck)) => "repeating".to_owned(),
        (_, None) => String::new(),
    };
    let number = trials.len() + 1;
    if attempt.stage == ProbeStage::HeapStart {
        return format!("trial {number}, {what}: a start without load{heap}");
    }
    if let Some(rate) = attempt.rate_per_s {
        return format!("trial {number}, {what}: {rate:.1}/s");
    }
    let pages = if attempt.pages == Pages::Warm { ", file pages already cached" } else { "" };
    format!("trial {number}{}, {what}: limit {}{heap}{pages}", of_about(spec, number), Bytes(attempt.limit))
}

/// The usual number of trials in a search for heap and limit, with confirmation: minimum, maximum, and the number of
/// fresh trials that these assume. Measured on servers (`bench/results`).
const TRIALS_USUAL: (u32, u32, u32) = (12, 26, 5);

/// The ` of about 12 to 26` part.
fn of_about(spec: &SearchSpec, number: usize) -> String {
    let (least, most, proofs) = TRIALS_USUAL;
    let [least, most] = [least, most].map(|usual| usual - proofs + spec.proofs);
    let is_usual = spec.unknowns == Unknowns::HeapAndLimit && spec.prove.is_none() && spec.seconds_max.is_none();
    if is_usual && number as u32 <= most { format!(" of about {least} to {most}") } else { String::new() }
}

/// `confirming, 2 of 4`: successive trials that passed with the same values, excluding the one that chose them.
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
    format!("confirming, {number} of {}", spec.proofs.saturating_sub(choosing).max(number))
}
