//! Tuning as a strategy: plans a trial for the next question, and extracts the outcome from a trial.

use super::outcome::{Observed, Priced, counts};
use super::scheduler::{BASELINE, BLOCKS, Scheduler, TrialRequest, TuneStep};
use super::setting::Candidate;
use crate::comparison;
use crate::diagnosis::remedy::{Facts, Offered, offers};
use crate::doubt::Doubt;
use crate::error::{Error, ErrorKind, Result};
use crate::numbers::median;
use crate::record::{Outcome, PhaseRate, ProbeVerdict, Trial, TuneStage, TuneTrialRecord};
use crate::scenario::{Change, Configuration, MarkPoint, Scenario, TrialPlan};
use crate::series::search::{DISCARDED_MAX, Ruling, discarded};
use crate::series::{Extent, Made, NextTrial, Strategy};
use crate::units::{Bytes, MIB, Span, several};

/// The constant rate that replaces a closed model, relative to the measured rate. The server keeps up but is far from
/// idle.
const RATE_SHARE: f64 = 0.75;
/// Minimum connections of a fast warm-up. A single one waits for delayed acknowledgments: a server that writes head and
/// body separately answered 23 requests a second.
const CONNECTIONS_MIN: f64 = 4.0;
/// Multiplies the load's concurrent requests, so that full speed is not slower than the load's own rate.
const UNDER_WAY_TIMES: f64 = 2.0;
/// The time allowed for a JVM to exit when it writes a class archive. A small server on JDK 25 took 1.7 s for its AOT
/// cache, which a child process assembles.
const ASSEMBLED_WITHIN: Span = Span::seconds(120);

#[derive(Debug)]
pub(crate) struct Tuner<'a> {
    scenario: &'a Scenario,
    configuration: &'a Configuration,
    /// Whether to stop before trying anything.
    dry: bool,
}

impl<'a> Tuner<'a> {
    /// Tunes the first configuration.
    pub(crate) fn new(scenario: &'a Scenario) -> Result<Self> {
        let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
        Ok(Self { scenario, configuration, dry: false })
    }

    /// A variant that stops before trying anything.
    pub(crate) fn dry(self) -> Self {
        Self { dry: true, ..self }
    }

    /// The trials of the unchanged subject, which come first.
    pub(crate) fn baseline(&self) -> Extent {
        let trials = BASELINE as u32 + u32::from(self.needs_reference());
        Extent::of(&Scenario { trials, ..self.scenario.clone() })
    }

    /// Whether a trial must first measure the rate of closed phases.
    fn needs_reference(&self) -> bool {
        !self.closed().is_empty() || self.scenario.load.warms_slowly()
    }

    /// All remedies for the subject of these trials; none until the baseline exists.
    pub(super) fn offered(&self, trials: &[Trial]) -> Vec<Offered> {
        let baseline: Vec<&Trial> = of_stage(trials, TuneStage::Baseline).collect();
        if baseline.len() < BASELINE {
            return Vec::new();
        }
        let completed: Vec<&Trial> = baseline.into_iter().filter(|trial| trial.outcome == Outcome::Completed).collect();
        offers(&Facts::of(self.scenario, &completed), &self.scenario.tune, MIB)
    }

    pub(super) fn scheduler<'o>(&self, offered: &'o [Offered], trials: &[Trial]) -> Scheduler<'o> {
        let (tune, priced) = (&self.scenario.tune, Priced::by(trials));
        Scheduler {
            offered,
            outcomes: trials.iter().filter_map(|trial| Observed::of(trial, tune.objective, priced)).collect(),
            needs_reference: self.needs_reference(),
            price: self.price(trials),
            worth: self.cpus_as_is(trials).map_or(0.0, |cpus| tune.cpus_per_byte / cpus),
            seed: self.scenario.seed,
            trials_max: tune.trials_max as usize,
            seconds_max: tune.minutes.map(|minutes| minutes * 60.0),
        }
    }

    /// The allowed increase in CPU time per request: as requested, or `price_cpus` if that allows more.
    pub(super) fn price(&self, trials: &[Trial]) -> f64 {
        let tune = &self.scenario.tune;
        self.cpus_as_is(trials).map_or(tune.price, |cpus| tune.price.max(tune.price_cpus / cpus))
    }

    /// The median number of CPUs that the unchanged subject keeps busy in the baseline.
    pub(super) fn cpus_as_is(&self, trials: &[Trial]) -> Option<f64> {
        let priced = Priced::by(trials);
        let baseline = of_stage(trials, TuneStage::Baseline).take(BASELINE);
        let cpus: Vec<f64> = baseline.filter_map(|trial| priced.cpus(trial)).filter(|cpus| *cpus > 0.0).collect();
        median(&cpus)
    }

    /// The closed phases to run at a constant rate.
    fn closed(&self) -> Vec<&str> {
        if self.scenario.tune.closed { Vec::new() } else { self.scenario.load.closed_phases().collect() }
    }

    fn plan(&self, request: &TrialRequest<'_>, pace: Pace<'_>, index: usize) -> TrialPlan {
        let (stage, ids) = (request.stage, request.setting.ids());
        let is_measured = !matches!(stage, TuneStage::Training | TuneStage::Reference);
        let is_baseline = stage == TuneStage::Baseline;
        let wanted = |mark: &MarkPoint| match mark {
            MarkPoint::Loaded | MarkPoint::Rested => true,
            MarkPoint::Start | MarkPoint::Warm | MarkPoint::Collected => is_baseline,
            MarkPoint::Trimmed => false,
        };
        let mut plan = TrialPlan {
            title: title(stage, &ids, index),
            index: index as u32,
            block: request.block,
            ..TrialPlan::of(self.scenario, self.configuration)
        };
        plan.marks = self.scenario.marks_possible().into_iter().filter(wanted).filter(|_| is_measured).collect();
        let changes: Vec<Change> = match stage {
            TuneStage::Training => request.setting.candidates().flat_map(Candidate::training).cloned().collect(),
            _ => request.setting.changes(),
        };
        changes.into_iter().for_each(|change| change.apply(&mut plan.configuration));
        if stage == TuneStage::Training {
            // The JVM assembles its archive at exit.
            plan.subject.end_within = plan.subject.end_within.max(ASSEMBLED_WITHIN);
        }
        if !ids.is_empty() {
            plan.configuration.name = format!("{}+{}", self.configuration.name, ids.join("+"));
        }
        pace.rates.iter().for_each(|of| plan.load.open(&of.phase, of.rate_per_s));
        if let Some(connections) = pace.connections {
            plan.load.warm_fast(connections);
        }
        plan
    }

    /// The rates for closed phases after this trial.
    fn rates_after(&self, trial: &Trial) -> Vec<PhaseRate> {
        let closed = self.closed();
        let phases = trial.phases.iter().filter(|phase| closed.contains(&phase.name.as_str()));
        let reached = phases.filter(|phase| phase.achieved_per_s > 0.0);
        let rate = |of: f64| (of * RATE_SHARE).max(1.0).floor();
        reached.map(|phase| PhaseRate { phase: phase.name.clone(), rate_per_s: rate(phase.achieved_per_s) }).collect()
    }

    /// Rejects the removal of a flag that the subject does not have, once its flags are known.
    fn check_removals(&self, trials: &[Trial]) -> Result<()> {
        let [trial] = trials else { return Ok(()) };
        Facts::of(self.scenario, &[trial]).check_removals().map_err(|(meant, all)| {
            let all = if all.is_empty() { "none".to_owned() } else { format!("`{}`", all.join("`, `")) };
            Error::request(format!("`--may-remove {meant}`: the server itself does not set this flag"))
                .hint(format!("specify one of the flags it sets: {all}"))
        })
    }

    /// Rejects a time budget that is too short for a confirmation, once a trial's duration is known.
    fn check_time(&self, trials: &[Trial]) -> Result<()> {
        let Some(minutes) = self.scenario.tune.minutes else { return Ok(()) };
        let counted: Vec<&TuneTrialRecord> =
            trials.iter().filter(|trial| counts(trial)).filter_map(|trial| trial.tuned.as_ref()).collect();
        let baseline = counted.iter().filter(|of| of.stage == TuneStage::Baseline).count();
        if baseline < BASELINE || counted.last().is_none_or(|of| of.stage != TuneStage::Baseline) {
            return Ok(());
        }
        let spent: f64 = counted.iter().map(|of| of.seconds).sum();
        let each = spent / counted.len().max(1) as f64;
        let needed = (spent + each * f64::from(2 * BLOCKS + 2)) / 60.0;
        if needed <= minutes {
            return Ok(());
        }
        Err(Error::request(format!(
            "`--minutes {minutes}` is too short: the first {} took {:.1} minutes; one more trial and {} to confirm \
             take {each:.0} s each, for {needed:.1} minutes in total",
            several(counted.len() as u64, "trial"),
            spent / 60.0,
            2 * BLOCKS + 1,
        ))
        .hint(format!("continue with `--resume ARCHIVE --minutes {:.0}`", needed.ceil())))
    }
}

/// The load settings after the first trial.
struct Pace<'a> {
    /// Constant rates that replace closed phases.
    rates: &'a [PhaseRate],
    /// Connections of a warm-up at full speed; `None` in the first trial.
    connections: Option<u32>,
}

/// Connections for a warm-up at full speed: few, because each one adds a thread and buffers that the load may not need.
/// There are still more than the load's concurrency, which is its rate times the response time (Little 1961).
fn connections_to_warm(trial: &Trial) -> u32 {
    let under_way =
        trial.measured_phases().filter_map(|phase| Some(phase.achieved_per_s * phase.service_ms?.mean / 1000.0));
    (UNDER_WAY_TIMES * under_way.fold(0.0, f64::max)).max(CONNECTIONS_MIN).ceil() as u32
}

pub(super) fn of_stage(trials: &[Trial], stage: TuneStage) -> impl Iterator<Item = &Trial> {
    trials.iter().filter(move |trial| counts(trial) && trial.tuned.as_ref().is_some_and(|of| of.stage == stage))
}

/// Constant rates that replace closed phases; empty until the reference trial exists.
pub(super) fn rates(trials: &[Trial]) -> Vec<PhaseRate> {
    let reference = of_stage(trials, TuneStage::Reference).next().and_then(|trial| trial.tuned.as_ref());
    reference.map(|of| of.rates.clone()).unwrap_or_default()
}

/// The trial that measured the closed rates.
fn reference(trials: &[Trial]) -> Option<&Trial> {
    let of = |trial: &&Trial| {
        trial.tuned.as_ref().is_some_and(|of| of.remedies.is_empty() && of.verdict == ProbeVerdict::Holds)
    };
    trials.iter().find(of)
}

/// A size that the JVM rounds to regions or pages still counts as in effect.
const ROUNDED_BY: f64 = 0.1;

/// Whether an option is in effect apart from rounding: `-Xmx75m` and `-XX:MaxHeapSize=79691776`.
fn is_rounded(asked: &str, in_force: &str) -> bool {
    let bytes = |option: &str| {
        let value = option.split_once('=').map(|(_, value)| value);
        value.or(option.get(4..)).and_then(|value| value.parse::<Bytes>().ok()).map(|bytes| bytes.0 as f64)
    };
    let near = |one: f64, other: f64| (one / other - 1.0).abs() <= ROUNDED_BY;
    bytes(asked).zip(bytes(in_force)).is_some_and(|(asked, in_force)| near(in_force, asked))
}

/// Changes that did not take effect in a trial, as they are given on the command line.
fn not_in_force(changes: &[Change], trial: &Trial) -> Vec<String> {
    let words = changes.iter().flat_map(Change::typed);
    let denied = |word: &String| {
        trial.doubts.iter().any(|of| match &of.doubt {
            Doubt::FlagsIgnored { flags } => flags.iter().any(|flag| flag.contains(word.as_str())),
            Doubt::FlagChanged { asked, in_force } => asked == word && !is_rounded(asked, in_force),
            Doubt::VariablesLost { variables } => variables.contains(word),
            _ => false,
        })
    };
    words.filter(denied).collect()
}

impl Strategy for Tuner<'_> {
    fn next<'t>(&'t self, trials: &'t [Trial]) -> Option<NextTrial<'t>> {
        let offered = self.offered(trials);
        let TuneStep::Next(request) = self.scheduler(&offered, trials).replay().step else { return None };
        if self.dry && !request.setting.is_as_it_is() {
            return None;
        }
        let rates = rates(trials);
        let connections = of_stage(trials, TuneStage::Reference).next().map(connections_to_warm);
        let pace = Pace { rates: &rates, connections };
        let plan = self.plan(&request, pace, trials.len());
        let (stage, remedies, changes) = (request.stage, request.setting.ids(), request.setting.changes());
        let judge = move |made: &mut Made| {
            let target = comparison::judge_target(&self.scenario.find.target, &made.trial, reference(trials));
            let Ruling { verdict, why, missed, .. } = Ruling::of(target, &made.trial, discarded(trials), None);
            let is_reference = stage == TuneStage::Reference;
            made.trial.tuned = Some(TuneTrialRecord {
                stage,
                remedies,
                rates: if is_reference { self.rates_after(&made.trial) } else { rates },
                verdict,
                why,
                missed,
                not_in_force: not_in_force(&changes, &made.trial),
                seconds: made.seconds,
            });
        };
        Some(NextTrial { plan, judge: Box::new(judge) })
    }

    fn after(&self, trials: &[Trial], error: Option<Error>) -> Result<Option<Error>> {
        let Some(tuned) = trials.last().and_then(|trial| trial.tuned.as_ref()) else {
            return error.map_or(Ok(None), Err);
        };
        if discarded(trials) > DISCARDED_MAX {
            return Err(Error::subject(format!("nothing can be judged: {}", tuned.why.join("; ")))
                .at(format!("discarded: {} in a row", several(discarded(trials) as u64, "trial")))
                .hint("use a different target (`--target`), or a quieter machine"));
        }
        match error {
            Some(error) if error.kind != ErrorKind::Subject => Err(error),
            // The unchanged subject failed, so report its own message.
            Some(error) if tuned.remedies.is_empty() && tuned.stage != TuneStage::Confirmation => Err(error),
            _ => self.check_removals(trials).and_then(|()| self.check_time(trials)).map(|()| None),
        }
    }
}

/// `trial 5, all free remedies: heap.max.64m malloc.arenas+trim`.
fn title(stage: TuneStage, ids: &[String], before: usize) -> String {
    let what = match stage {
        TuneStage::Reference => "setting the rate for the next trials",
        TuneStage::Baseline => "baseline",
        TuneStage::Bundle => "all free remedies",
        TuneStage::LeaveOut => "one remedy removed",
        TuneStage::Race => "one remedy added",
        TuneStage::Training => "creating a class archive",
        TuneStage::Confirmation if ids.is_empty() => "confirming: baseline",
        TuneStage::Confirmation => "confirming",
    };
    let ids = if ids.is_empty() { String::new() } else { format!(": {}", ids.join(" ")) };
    format!("trial {}, {what}{ids}", before + 1)
}
