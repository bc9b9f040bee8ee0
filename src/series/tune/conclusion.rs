//! The record of a tuning, computed from its scenario and trials only.

use super::outcome::{Means, Noise, Observed, Priced, moment};
use super::scheduler::{Finish, Replayed, TuneStep};
use super::setting::{Candidate, Setting};
use super::strategy::{Tuner, of_stage, rates};
use crate::comparison::{self, CPU_OF_JIT};
use crate::diagnosis::remedy::{NotOffered, Offered};
use crate::owner::{Owner, place};
use crate::record::{
    Better, ComparisonRecord, Fate, MetricRecord, NO_TIME, NoiseRecord, OwnerBytes, OwnerGain, RemedyRecord,
    SettingRecord, Trial, TuneOutcome, TuneRecord, TuneStage, Unit, ValueRecord,
};
use crate::scenario::{Change, Compare, Scenario};
use crate::units::{Bytes, several};
use loadline_base::order::Order as _;

/// If the CPU time per request of a closed model varies more than this between trials, it is too noisy to judge a
/// price.
const CPU_NOISE_MAX: f64 = 0.03;
/// Owners that changed by fewer bytes are not shown.
const OWNER_MIN: f64 = 100.0 * 1024.0;

/// The record of a tuning; `None` if there is no configuration.
pub(crate) fn found(scenario: &Scenario, trials: &[Trial]) -> Option<TuneRecord> {
    let tuner = Tuner::new(scenario).ok()?;
    let offered = tuner.offered(trials);
    let scheduler = tuner.scheduler(&offered, trials);
    let replayed = scheduler.replay();
    let (priced, outcomes) = (Priced::by(trials), &scheduler.outcomes);
    let price = (scheduler.price, tuner.cpus_as_is(trials));
    Some(Conclusion { scenario, trials, offered: &offered, price, priced, outcomes, replayed }.record())
}

struct Conclusion<'a> {
    scenario: &'a Scenario,
    trials: &'a [Trial],
    offered: &'a [Offered],
    /// The share by which CPU time may rise, and the number of CPUs that the unchanged subject keeps busy.
    price: (f64, Option<f64>),
    priced: Priced,
    outcomes: &'a [Observed],
    replayed: Replayed<'a>,
}

impl Conclusion<'_> {
    fn record(&self) -> TuneRecord {
        let tune = &self.scenario.tune;
        let outcome = self.outcome();
        let winner = match &self.replayed.step {
            TuneStep::Done(Finish::Proved(winner) | Finish::Unpriced(winner)) => winner.clone(),
            _ => Setting::default(),
        };
        let changes = winner.changes();
        let gains = self.gains(&winner);
        let (path, front) = self.path();
        let noise = self.replayed.noise.as_ref();
        TuneRecord {
            outcome,
            text: self.text(outcome, &changes, &gains),
            objective: tune.objective,
            price: self.price.0,
            price_cpus: self.price.1.map(|cpus| cpus * self.price.0),
            target: self.scenario.find.target.iter().map(ToString::to_string).collect(),
            rates: rates(self.trials),
            as_is: path.iter().find(|of| of.remedies.is_empty()).cloned(),
            answer: changes.iter().flat_map(Change::typed).collect(),
            changes,
            owners: self.owners(&winner),
            confirmations: self.replayed.fates.attempts.clone(),
            remedies: self.remedies(outcome, &winner),
            path,
            front,
            lines: None,
            doubts: self.doubts(noise, &gains, &winner),
            gains,
            noise: noise.map(|of| NoiseRecord { bytes: of.bytes, cpu: of.has_cpu.then_some(of.cpu) }),
            trials: self.trials.len() as u32,
            seconds: self.trials.iter().filter_map(|trial| trial.tuned.as_ref()).map(|of| of.seconds).sum(),
        }
    }

    fn outcome(&self) -> TuneOutcome {
        match &self.replayed.step {
            TuneStep::Done(Finish::Proved(_)) => TuneOutcome::Proved,
            TuneStep::Done(Finish::Unpriced(_)) => TuneOutcome::Unpriced,
            TuneStep::Done(Finish::Nothing) => TuneOutcome::NothingProved,
            TuneStep::Done(Finish::NotHeld) => TuneOutcome::NotHeld,
            TuneStep::Next(_) if !self.offered.is_empty() && !self.is_begun() => TuneOutcome::Planned,
            TuneStep::Next(_) => TuneOutcome::GivenUp,
        }
    }

    /// Whether any remedy was tried, even in an interrupted trial.
    fn is_begun(&self) -> bool {
        self.trials.iter().filter_map(|trial| trial.tuned.as_ref()).any(|of| !of.remedies.is_empty())
    }

    /// Number of remedies that were not tried for lack of time.
    fn late(&self) -> usize {
        let is_late = |of: &Candidate<'_>| self.replayed.fates.get(*of).is_some_and(|of| of.why == NO_TIME);
        Candidate::all(self.offered).filter(is_late).count()
    }

    /// Whether a remedy was part of any tried setting.
    fn was_tried(&self, id: &String) -> bool {
        self.trials.iter().filter_map(|trial| trial.tuned.as_ref()).any(|of| of.remedies.contains(id))
    }

    fn text(&self, outcome: TuneOutcome, changes: &[Change], gains: &[ComparisonRecord]) -> String {
        match outcome {
            TuneOutcome::Proved => set_and_saved(changes, gains),
            TuneOutcome::Unpriced => format!("do not {} yet: its cost is not confirmed", set(changes)),
            TuneOutcome::NothingProved if self.replayed.fates.attempts.is_empty() => match self.late() {
                0 => "no savings confirmed: no remedy saved enough to measure".to_owned(),
                _ if !self.is_begun() => {
                    format!("no remedy was tried: time ran out after {}", several(self.trials.len() as u64, "trial"))
                }
                1 => "no savings confirmed yet: time ran out for one remedy".to_owned(),
                late => format!("no savings confirmed yet: time ran out for {late} remedies"),
            },
            TuneOutcome::NothingProved => "no savings confirmed: the settings found by the search were not \
                confirmed"
                .to_owned(),
            TuneOutcome::NotHeld => {
                let why = self.outcomes.iter().find(|of| !of.holds).map(|of| of.why.join("; "));
                format!("the unchanged server misses the target: {}", why.unwrap_or_default())
            }
            TuneOutcome::Planned => "nothing has been tried yet".to_owned(),
            TuneOutcome::GivenUp => format!("no result after {}", several(self.trials.len() as u64, "trial")),
        }
    }

    /// The trials of the successful confirmation: unchanged, and with the winner.
    fn confirming(&self, winner: &Setting<'_>) -> Vec<&Trial> {
        let ids = winner.ids();
        let confirming = || of_stage(self.trials, TuneStage::Confirmation);
        let own = |trial: &&Trial| trial.tuned.as_ref().is_some_and(|of| of.remedies == ids);
        let blocks: Vec<u32> = confirming().filter(own).map(|trial| trial.block).collect();
        confirming().filter(|trial| blocks.contains(&trial.block)).collect()
    }

    /// The winner compared with the unchanged subject in the confirmation only; the objective first.
    fn gains(&self, winner: &Setting<'_>) -> Vec<ComparisonRecord> {
        if winner.is_as_it_is() {
            return Vec::new();
        }
        let trials: Vec<Trial> = self.confirming(winner).into_iter().cloned().collect();
        let Some(as_is) = trials.iter().find(|trial| trial.tuned.as_ref().is_some_and(|of| of.remedies.is_empty()))
        else {
            return Vec::new();
        };
        let mut metrics = comparison::metrics(&trials);
        let own = self.of_objective(&trials);
        let name = own.first().map(|of| of.metric.clone()).unwrap_or_default();
        metrics.retain(|metric| metric.metric != name);
        metrics.extend(own);
        let priced = self.priced.family();
        let cpu = metrics.iter().map(|of| of.metric.as_str()).rfind(|of| comparison::split(of).0 == priced);
        let asked = Compare {
            metrics: [Some(name.clone()), cpu.map(str::to_owned)].into_iter().flatten().collect(),
            baseline: Some(as_is.configuration.clone()),
            ..Compare::default()
        };
        let compared = comparison::compare(&metrics, &asked, self.scenario.seed);
        let is_shown = |metric: &str| {
            let family = comparison::split(metric).0;
            metric == name || [priced, CPU_OF_JIT, "p50", "p99", "rate", "gc_share", "start_up"].contains(&family)
        };
        compared.into_iter().filter(|of| is_shown(&of.metric)).collect()
    }

    fn of_objective(&self, trials: &[Trial]) -> Vec<MetricRecord> {
        let objective = self.scenario.tune.objective;
        let mut metrics: Vec<MetricRecord> = Vec::new();
        for trial in trials {
            let Some(value) = Observed::of(trial, objective, self.priced).and_then(|of| of.bytes) else { continue };
            let value = ValueRecord { trial: trial.index, block: trial.block, value, used: true };
            match metrics.iter_mut().find(|of| of.configuration == trial.configuration) {
                Some(metric) => metric.values.push(value),
                None => metrics.push(MetricRecord {
                    metric: format!("{objective}.tuned"),
                    unit: Unit::Bytes,
                    better: Better::Lower,
                    configuration: trial.configuration.clone(),
                    values: vec![value],
                    median: 0.0,
                    low: None,
                    high: None,
                }),
            }
        }
        for metric in &mut metrics {
            metric.median =
                crate::numbers::median(&metric.values.iter().map(|of| of.value).collect::<Vec<_>>()).unwrap_or(0.0);
        }
        metrics
    }

    fn owners(&self, winner: &Setting<'_>) -> Vec<OwnerGain> {
        let trials = if winner.is_as_it_is() { Vec::new() } else { self.confirming(winner) };
        let held = |owner: Owner, tuned: bool| {
            let own =
                trials.iter().filter(|trial| trial.tuned.as_ref().is_some_and(|of| of.remedies.is_empty() != tuned));
            let values = own
                .filter_map(|trial| moment(trial, self.scenario.tune.objective)?.account.as_ref())
                .map(|account| account.holds(owner.name()) as f64);
            crate::numbers::median(&values.collect::<Vec<_>>())
        };
        let gains = Owner::ALL.into_iter().filter_map(|owner| {
            let (before_bytes, after_bytes) = held(owner, false).zip(held(owner, true))?;
            Some(OwnerGain { owner: owner.name().to_owned(), before_bytes, after_bytes })
        });
        let change = |of: &OwnerGain| (of.before_bytes - of.after_bytes).abs();
        let mut gains: Vec<OwnerGain> = gains.filter(|of| change(of) >= OWNER_MIN).collect();
        gains.order_by(|one, other| change(other).total_cmp(&change(one)));
        gains
    }

    fn remedies(&self, outcome: TuneOutcome, winner: &Setting<'_>) -> Vec<RemedyRecord> {
        let fates = &self.replayed.fates;
        let of = |candidate: Candidate<'_>| {
            let saving = fates.saving(candidate);
            let (mut saved_bytes, mut cpu_ratio) = (saving.map(|of| of.0), saving.and_then(|of| of.1));
            let (fate, why) = match (&candidate.offer, fates.get(candidate)) {
                (Err(reason), _) => (Fate::NotTried, reason.to_string()),
                _ if winner.has(candidate) => (Fate::Kept, String::new()),
                (_, Some(of)) => {
                    (saved_bytes, cpu_ratio) = (of.saved, of.cpu_ratio);
                    (of.fate, of.why.clone())
                }
                _ if outcome == TuneOutcome::Planned => (Fate::Planned, String::new()),
                _ if outcome == TuneOutcome::GivenUp && self.was_tried(&candidate.id) => {
                    (Fate::NotConfirmed, "it was tried, but tuning ended before it could be confirmed".to_owned())
                }
                _ if outcome == TuneOutcome::GivenUp => (Fate::NotTried, "the tuning ended first".to_owned()),
                _ if outcome == TuneOutcome::NotHeld => {
                    (Fate::NotTried, "the unchanged server misses the target".to_owned())
                }
                _ => (Fate::NotTried, "a different level was tried".to_owned()),
            };
            RemedyRecord {
                id: candidate.id.clone(),
                what: candidate.what.clone(),
                options: candidate.changes().iter().flat_map(Change::typed).collect(),
                price: candidate.price,
                gain_bytes_max: match fate {
                    Fate::Planned => self.levels(candidate).filter_map(Candidate::bound).max(),
                    _ => candidate.bound(),
                },
                fate,
                why,
                blames: match &candidate.offer {
                    Err(NotOffered::Blamed(text, _)) => Some(text.clone()),
                    _ => None,
                },
                saved_bytes,
                cpu_ratio,
            }
        };
        Candidate::all(self.offered).filter(|candidate| self.is_told(*candidate, winner)).map(of).collect()
    }

    /// Whether a candidate gets a row: for a ceiling, the levels that were tried, or else the first one.
    fn is_told(&self, candidate: Candidate<'_>, winner: &Setting<'_>) -> bool {
        let is_tried = |level: &Candidate<'_>| {
            self.replayed.fates.get(*level).is_some() || winner.has(*level) || self.was_tried(&level.id)
        };
        let levels = || self.levels(candidate);
        let first = || levels().find(|level| level.rank > 0).or_else(|| levels().next());
        candidate.ceiling.is_none()
            || is_tried(&candidate)
            || !levels().any(|of| is_tried(&of)) && first() == Some(candidate)
    }

    /// The levels of a ceiling, or the candidate itself.
    fn levels(&self, candidate: Candidate<'_>) -> impl Iterator<Item = Candidate<'_>> {
        Candidate::all(self.offered).filter(move |of| match candidate.ceiling {
            Some(_) => of.group == candidate.group && of.ceiling.is_some(),
            None => *of == candidate,
        })
    }

    /// Every setting tried, in order of first trial, and the Pareto front of memory and CPU time.
    fn path(&self) -> (Vec<SettingRecord>, Vec<SettingRecord>) {
        let searched = self.outcomes.iter().filter(|of| of.is_of_search());
        let mut groups: Vec<Vec<&Observed>> = Vec::new();
        for outcome in searched {
            match groups.iter_mut().find(|of| of[0].remedies == outcome.remedies) {
                Some(group) => group.push(outcome),
                None => groups.push(vec![outcome]),
            }
        }
        let base = groups.iter().find(|of| of[0].remedies.is_empty()).map(|of| Means::of(of)).unwrap_or_default();
        let path: Vec<SettingRecord> = groups.iter().map(|of| self.setting(of, &base)).collect();
        // A setting without CPU time cannot be compared with the others.
        let is_priced = path.iter().any(|of| of.cpu_ratio.is_some());
        let costs = |of: &SettingRecord| Some((of.bytes?, if is_priced { of.cpu_ratio? } else { 1.0 }));
        let held: Vec<&SettingRecord> = path.iter().filter(|of| of.holds && of.bytes.is_some()).collect();
        let is_beaten = |of: &SettingRecord| {
            let Some((bytes, cpu)) = costs(of) else { return true };
            held.iter()
                .filter_map(|other| costs(other))
                .any(|(other, price)| other <= bytes && price <= cpu && (other < bytes || price < cpu))
        };
        let mut front: Vec<SettingRecord> =
            held.iter().filter(|of| of.remedies.is_empty() || !is_beaten(of)).map(|of| (*of).clone()).collect();
        front.order_by(|one, other| other.bytes.unwrap_or(0.0).total_cmp(&one.bytes.unwrap_or(0.0)));
        (path, front)
    }

    fn setting(&self, outcomes: &[&Observed], base: &Means) -> SettingRecord {
        let first = outcomes[0];
        let means = Means::of(outcomes);
        let setting = Setting::new(Candidate::all(self.offered).filter(|of| first.remedies.contains(&of.id)));
        let weighed = outcomes.iter().any(|of| of.bytes.is_some());
        let mut owners: Vec<OwnerBytes> = means
            .owners
            .iter()
            .map(|(owner, bytes)| OwnerBytes { owner: owner.name().to_owned(), bytes: *bytes })
            .collect();
        owners.order_by_key(|of| place(&of.owner));
        SettingRecord {
            remedies: first.remedies.clone(),
            options: setting.changes().iter().flat_map(Change::typed).collect(),
            stage: first.stage,
            trials: outcomes.len() as u32,
            holds: outcomes.iter().all(|of| of.holds),
            bytes: weighed.then_some(means.bytes),
            cpu_ratio: (means.cpu_s.is_some() && base.cpu_s.is_some()).then(|| means.cpu_ratio(base)),
            owners,
            why: outcomes.iter().find(|of| !of.holds).map(|of| of.why.clone()).unwrap_or_default(),
        }
    }

    fn doubts(&self, noise: Option<&Noise>, gains: &[ComparisonRecord], winner: &Setting<'_>) -> Vec<String> {
        let mut doubts = Vec::new();
        let (attempts, ids) = (&self.replayed.fates.attempts, winner.ids());
        let price = attempts.iter().find(|of| of.remedies == ids).map_or(self.price.0, |of| of.price);
        let cpu = gains.iter().find(|of| of.primary && comparison::split(&of.metric).0 == self.priced.family());
        if let Some(high) = cpu.and_then(|of| of.ratio_high).filter(|high| *high > 1.0 + price) {
            doubts.push(format!(
                "the confirmation does not rule out that CPU time per request rises by up to {:.1}%, which is more \
                 than `--price` allows; use a longer phase or a lower rate for a clearer result",
                (high - 1.0) * 100.0
            ));
        }
        let Some(noise) = noise else { return doubts };
        if noise.has_cpu && noise.cpu > CPU_NOISE_MAX {
            let closed = self.scenario.tune.closed && self.scenario.load.closed_phases().next().is_some();
            let instead = if closed {
                "use a constant rate (`--rate N`, or without `--closed`)"
            } else {
                "use a longer phase or a quieter machine"
            };
            doubts.push(format!(
                "CPU time per request varies by {:.1}% between trials of the baseline, so a price of {:.1}% is hard \
                    to judge; {instead}",
                noise.cpu * 100.0,
                price * 100.0
            ));
        }
        if noise.has_cpu && self.priced == Priced::Whole {
            doubts.push(
                "the JIT's CPU time could not be separated, so the price covers all CPU time, including the initial \
                    compilation; use HotSpot from JDK 11 to 27 with a readable `/proc/PID/task`"
                    .to_owned(),
            );
        }
        if !noise.has_cpu {
            doubts.push("CPU time per request was not measured, so the cost limit cannot be checked".to_owned());
        }
        doubts
    }
}

/// `set -Xmx64m: it saves 12.0 MiB`.
fn set_and_saved(changes: &[Change], gains: &[ComparisonRecord]) -> String {
    let saved = gains.first().map(|of| Bytes((-of.difference).max(0.0) as u64));
    let saved = saved.map_or_else(String::new, |saved| format!(": it saves {saved}"));
    set(changes) + &saved
}

/// `set -Xmx64m`.
fn set(changes: &[Change]) -> String {
    let words: Vec<String> = changes.iter().flat_map(Change::typed).collect();
    if words.is_empty() { "remove your own options".to_owned() } else { format!("set {}", words.join(" ")) }
}
