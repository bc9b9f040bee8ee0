//! A tuning as a strategy: from what comes next to the plan of a trial, and from a trial to what it says.

use super::course::{Ask, BASELINE, BLOCKS, Course, Finish};
use super::outcome::{Observed, counts};
use super::setting::Setting;
use super::story::Story;
use crate::comparison;
use crate::doubt::Doubt;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Outcome, PhaseRate, ProbeVerdict, Trial, TuneStage, TuneTrialRecord};
use crate::remedy::{Facts, Offered, offers};
use crate::scenario::{Change, Configuration, MarkPoint, Scenario, TrialPlan};
use crate::series::search::{DISCARDED_MAX, Ruling, discarded};
use crate::series::{Made, Strategy};
use crate::units::{Bytes, MIB};

/// Of what a closed model reaches, the constant rate that takes its place: the server keeps up, and is far from idle.
const RATE_SHARE: f64 = 0.75;

/// Tunes the one configuration of a scenario.
#[derive(Debug)]
pub struct Tuner<'a> {
    scenario: &'a Scenario,
    configuration: &'a Configuration,
    /// Whether it ends before anything is tried.
    dry: bool,
}

/// What trials said so far, as a course needs it.
pub(super) struct Known {
    /// All remedies; empty until the baseline is there.
    pub(super) offered: Vec<Offered>,
    pub(super) outcomes: Vec<Observed>,
    /// Constant rates in the place of closed phases.
    pub(super) rates: Vec<PhaseRate>,
}

/// What comes next.
pub(super) enum Next {
    Trial(Ask),
    End(Finish),
}

impl<'a> Tuner<'a> {
    /// Tunes the first configuration.
    ///
    /// # Errors
    /// `Bug` where the scenario has none.
    pub fn new(scenario: &'a Scenario) -> Result<Self> {
        let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
        Ok(Self { scenario, configuration, dry: false })
    }

    /// The same, but it ends before anything is tried.
    pub fn dry(self) -> Self {
        Self { dry: true, ..self }
    }

    pub(super) fn known(&self, trials: &[Trial]) -> Known {
        let tune = &self.scenario.tune;
        let outcomes = trials.iter().filter_map(|trial| Observed::of(trial, tune.objective)).collect();
        let of_stage = |stage: TuneStage| {
            let own = move |trial: &&Trial| trial.tuned.as_ref().is_some_and(|of| of.stage == stage);
            trials.iter().filter(|trial| counts(trial)).filter(own)
        };
        let baseline: Vec<&Trial> = of_stage(TuneStage::Baseline).collect();
        let offered = match baseline.len() >= BASELINE {
            true => {
                let completed: Vec<&Trial> =
                    baseline.into_iter().filter(|trial| trial.outcome == Outcome::Completed).collect();
                offers(&Facts::of(self.scenario, &completed), tune, MIB)
            }
            false => Vec::new(),
        };
        let reference = of_stage(TuneStage::Reference).next().and_then(|trial| trial.tuned.as_ref());
        Known { offered, outcomes, rates: reference.map(|of| of.rates.clone()).unwrap_or_default() }
    }

    pub(super) fn course<'k>(&self, known: &'k Known) -> Course<'k> {
        let tune = &self.scenario.tune;
        Course {
            offered: &known.offered,
            outcomes: &known.outcomes,
            price: tune.price,
            seed: self.scenario.seed,
            trials_max: tune.trials_max as usize,
            seconds_max: tune.minutes.map(|minutes| minutes * 60.0),
        }
    }

    /// What closed phases get a constant rate for.
    fn closed(&self) -> Vec<&str> {
        if self.scenario.tune.closed { Vec::new() } else { self.scenario.load.closed_phases().collect() }
    }

    pub(super) fn next_of(&self, known: &Known, story: &mut Story) -> Next {
        let reference = known.outcomes.iter().find(|of| of.stage == TuneStage::Reference);
        if !self.closed().is_empty() {
            match reference {
                None => {
                    let stage = TuneStage::Reference;
                    return Next::Trial(Ask { stage, setting: Setting::default(), block: 0 });
                }
                Some(of) if !of.holds => return Next::End(Finish::NotHeld),
                Some(_) => {}
            }
        }
        match self.course(known).go(story) {
            Ok(finish) => Next::End(finish),
            Err(ask) => Next::Trial(ask),
        }
    }

    fn plan(&self, ask: &Ask, known: &Known, index: usize) -> TrialPlan {
        let ids = ask.setting.ids(&known.offered);
        let is_measured = !matches!(ask.stage, TuneStage::Training | TuneStage::Reference);
        let is_baseline = ask.stage == TuneStage::Baseline;
        let wanted = |mark: &MarkPoint| match mark {
            MarkPoint::Loaded | MarkPoint::Rested => true,
            MarkPoint::Start | MarkPoint::Warm | MarkPoint::Collected => is_baseline,
            MarkPoint::Trimmed => false,
        };
        let mut plan = TrialPlan {
            title: title(ask.stage, &ids, index),
            index: index as u32,
            block: ask.block,
            ..TrialPlan::of(self.scenario, self.configuration)
        };
        plan.marks = self.scenario.marks_possible().into_iter().filter(wanted).filter(|_| is_measured).collect();
        let changes = match ask.stage {
            TuneStage::Training => training(&ask.setting, &known.offered),
            _ => ask.setting.changes(&known.offered),
        };
        changes.into_iter().for_each(|change| change.apply(&mut plan.configuration));
        if !ids.is_empty() {
            plan.configuration.name = format!("{}+{}", self.configuration.name, ids.join("+"));
        }
        known.rates.iter().for_each(|of| plan.load.open(&of.phase, of.rate_per_s));
        plan
    }

    /// The rates at which closed phases of a trial are driven from here on.
    fn rates(&self, trial: &Trial) -> Vec<PhaseRate> {
        let closed = self.closed();
        let phases = trial.phases.iter().filter(|phase| closed.contains(&phase.name.as_str()));
        let reached = phases.filter(|phase| phase.achieved_per_s > 0.0);
        let rate = |of: f64| (of * RATE_SHARE).max(1.0).floor();
        reached.map(|phase| PhaseRate { phase: phase.name.clone(), rate_per_s: rate(phase.achieved_per_s) }).collect()
    }

    /// What cannot be done in the time that is given, once it is known how long a trial takes.
    fn check_time(&self, trials: &[Trial]) -> Result<()> {
        let Some(minutes) = self.scenario.tune.minutes else { return Ok(()) };
        let known = self.known(trials);
        let baseline = known.outcomes.iter().filter(|of| of.stage == TuneStage::Baseline).count();
        if baseline != BASELINE || known.outcomes.last().is_some_and(|of| of.stage != TuneStage::Baseline) {
            return Ok(());
        }
        let spent: f64 = known.outcomes.iter().map(|of| of.seconds).sum();
        let each = spent / known.outcomes.len().max(1) as f64;
        let needed = (spent + each * f64::from(2 * BLOCKS + 2)) / 60.0;
        if needed <= minutes {
            return Ok(());
        }
        Err(Error::request(format!(
            "{minutes} minutes are too few: a trial takes {each:.0} s, and a confirmation {} of them",
            2 * BLOCKS
        ))
        .hint(format!("give it `--minutes {:.0}` at least, or a shorter load", needed.ceil())))
    }
}

/// The changes of a run that only makes an archive.
fn training(setting: &Setting, offered: &[Offered]) -> Vec<Change> {
    let offers = setting.places().iter().filter_map(|place| offered[*place].offer.as_ref().ok());
    offers.flat_map(|offer| offer.training.clone()).collect()
}

/// The trial in which closed rates were reached.
fn reference(trials: &[Trial]) -> Option<&Trial> {
    let of = |trial: &&Trial| {
        trial.tuned.as_ref().is_some_and(|of| of.remedies.is_empty() && of.verdict == ProbeVerdict::Holds)
    };
    trials.iter().find(of)
}

/// A size that the JVM rounds, to its regions or pages, is in force all the same.
const ROUNDED_BY: f64 = 0.1;

/// Whether an option is in force but for rounding: `-Xmx75m` and `-XX:MaxHeapSize=79691776`.
fn is_rounded(asked: &str, in_force: &str) -> bool {
    let bytes = |option: &str| {
        let value = option.split_once('=').map(|(_, value)| value);
        value.or(option.get(4..)).and_then(|value| value.parse::<Bytes>().ok()).map(|bytes| bytes.0 as f64)
    };
    let near = |one: f64, other: f64| (one / other - 1.0).abs() <= ROUNDED_BY;
    bytes(asked).zip(bytes(in_force)).is_some_and(|(asked, in_force)| near(in_force, asked))
}

/// Changes of a plan that a trial shows not to be in force, as they are typed.
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
    fn next(&self, trials: &[Trial]) -> Option<TrialPlan> {
        let known = self.known(trials);
        match self.next_of(&known, &mut Story::default()) {
            Next::Trial(ask) if self.dry && !ask.setting.is_as_it_is() => None,
            Next::Trial(ask) => Some(self.plan(&ask, &known, trials.len())),
            Next::End(_) => None,
        }
    }

    fn judge(&self, before: &[Trial], made: &mut Made) {
        let known = self.known(before);
        let Next::Trial(ask) = self.next_of(&known, &mut Story::default()) else { return };
        let target = &self.scenario.find.target;
        let Ruling { verdict, why, missed, .. } = Ruling::of(
            comparison::judge_target(target, &made.trial, reference(before)),
            &made.trial,
            discarded(before),
            None,
        );
        let rates = match ask.stage {
            TuneStage::Reference => self.rates(&made.trial),
            _ => known.rates.clone(),
        };
        made.trial.tuned = Some(TuneTrialRecord {
            stage: ask.stage,
            remedies: ask.setting.ids(&known.offered),
            rates,
            verdict,
            why,
            missed,
            not_in_force: not_in_force(&ask.setting.changes(&known.offered), &made.trial),
            seconds: made.seconds,
        });
    }

    fn after(&self, trials: &[Trial], error: Option<Error>) -> Result<Option<Error>> {
        let Some(tuned) = trials.last().and_then(|trial| trial.tuned.as_ref()) else {
            return error.map_or(Ok(None), Err);
        };
        if discarded(trials) > DISCARDED_MAX {
            return Err(Error::subject(format!("nothing can be judged: {}", tuned.why.join("; ")))
                .at(format!("discarded: {} trials in a row", discarded(trials)))
                .hint("tune with another target (`--target`), or on a machine that is quieter"));
        }
        match error {
            Some(error) if error.kind != ErrorKind::Subject => Err(error),
            // As it is: what the subject says is the answer.
            Some(error) if tuned.remedies.is_empty() && tuned.stage != TuneStage::Confirmation => Err(error),
            _ => self.check_time(trials).map(|()| None),
        }
    }
}

/// `trial 5, all free remedies: heap.4x malloc.arenas+trim`.
fn title(stage: TuneStage, ids: &[String], before: usize) -> String {
    let what = match stage {
        TuneStage::Reference => "what it reaches, for a constant rate",
        TuneStage::Baseline => "as it is",
        TuneStage::Bundle => "all free remedies",
        TuneStage::LeaveOut => "one less",
        TuneStage::Race => "one more",
        TuneStage::Training => "to make an archive of classes",
        TuneStage::Confirmation if ids.is_empty() => "to confirm: as it is",
        TuneStage::Confirmation => "to confirm",
    };
    let ids = if ids.is_empty() { String::new() } else { format!(": {}", ids.join(" ")) };
    format!("trial {}, {what}{ids}", before + 1)
}
