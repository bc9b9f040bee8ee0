//! The outcome of a trial of a tuning, in numbers; means and noise of several.

use crate::comparison::CPU_WITHOUT_JIT;
use crate::diagnosis::remedy::needs_warmth;
use crate::owner::Owner;
use crate::record::{Mark, Outcome, ProbeVerdict, Trial, TuneStage, TuneTrialRecord};
use crate::scenario::{MarkPoint, Objective};
use crate::series::search::{cpu_per_request, cpu_without_jit_per_request, gc_cpu_per_request};
use std::collections::BTreeMap;

/// The CPU time that a price is of. Decided by the first trial that has any, so that later ones change no decision; a
/// later one without it has no CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priced {
    /// Without the JIT's, which ends once the program is compiled.
    WithoutJit,
    /// All of it, where the JIT's is not told apart.
    Whole,
}

impl Priced {
    pub(super) fn by(trials: &[Trial]) -> Self {
        let first = trials.iter().find(|trial| counts(trial) && cpu_per_request(trial).is_some());
        match first.map(cpu_without_jit_per_request) {
            Some(None) => Self::Whole,
            Some(Some(_)) | None => Self::WithoutJit,
        }
    }

    fn cpu_s(self, trial: &Trial) -> Option<f64> {
        match self {
            Self::WithoutJit => cpu_without_jit_per_request(trial),
            Self::Whole => cpu_per_request(trial),
        }
    }

    /// CPUs that a trial kept busy in its measured phases.
    pub(super) fn cpus(self, trial: &Trial) -> Option<f64> {
        let phases = trial.measured_phases().filter(|phase| phase.ok > 0);
        let (ok, seconds) = phases.fold((0, 0.0), |(ok, seconds), phase| (ok + phase.ok, seconds + phase.seconds));
        self.cpu_s(trial).filter(|_| seconds > 0.0).map(|cpu_s| cpu_s * ok as f64 / seconds)
    }

    /// The family of metrics that is judged.
    pub(super) fn family(self) -> &'static str {
        match self {
            Self::WithoutJit => CPU_WITHOUT_JIT,
            Self::Whole => "cpu_per_1000",
        }
    }
}

/// The outcome of a trial, in numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// Which part of the tuning it was for.
    pub(super) stage: TuneStage,
    /// Ids of the remedies that were set.
    pub(super) remedies: Vec<String>,
    /// The block of a confirmation, counted over all attempts.
    pub(super) block: u32,
    /// Whether the target held.
    pub(super) holds: bool,
    /// Whether the subject did not even become ready.
    pub(super) refused: bool,
    /// The targets that it missed.
    pub(super) why: Vec<String>,
    /// Whether each change was in force, where that is known.
    pub(super) not_in_force: Vec<String>,
    /// The objective in bytes; `None` where it was not weighed.
    pub(super) bytes: Option<f64>,
    /// The bytes of each owner at the same moment.
    pub(super) owners: BTreeMap<Owner, f64>,
    /// The priced CPU time of a request in seconds.
    pub(super) cpu_s: Option<f64>,
    /// The collector's part of it.
    pub(super) gc_s: Option<f64>,
    /// Whether a warm-up that was to end on a warm subject ended before it was.
    pub(super) young: bool,
    /// How long the trial took.
    pub(super) seconds: f64,
}

impl Observed {
    /// The outcome of a trial that counts; `None` for a discarded one, and outside of a tuning.
    pub(super) fn of(trial: &Trial, objective: Objective, priced: Priced) -> Option<Self> {
        let TuneTrialRecord { stage, remedies, verdict, why, not_in_force, seconds, .. } = trial.tuned.clone()?;
        if verdict == ProbeVerdict::Discarded {
            return None;
        }
        let mark = moment(trial, objective);
        let bytes = match objective {
            Objective::Peak => trial.rss_bytes_peak.filter(|_| trial.outcome == Outcome::Completed),
            Objective::Limit => mark.and_then(|mark| mark.anon_bytes),
            Objective::Rss | Objective::Loaded | Objective::Rested => mark.map(|mark| mark.weight().1),
        };
        let account = mark.and_then(|mark| mark.account.as_ref());
        let owners = account.iter().flat_map(|account| &account.owners);
        Some(Self {
            stage,
            remedies,
            block: trial.block,
            holds: verdict == ProbeVerdict::Holds,
            refused: trial.ready_s.is_none(),
            why,
            not_in_force,
            bytes: bytes.map(|bytes| bytes as f64),
            owners: owners.filter_map(|of| Some((Owner::named(&of.name)?, of.rss_bytes as f64))).collect(),
            cpu_s: priced.cpu_s(trial).filter(|_| !hides_price(trial)),
            gc_s: gc_cpu_per_request(trial),
            young: is_young(trial),
            seconds,
        })
    }

    /// Whether it is one of the search, by which settings are chosen.
    pub(super) fn is_of_search(&self) -> bool {
        !matches!(self.stage, TuneStage::Confirmation | TuneStage::Reference | TuneStage::Training)
    }
}

/// Whether a remedy of this trial has a price that a young JVM hides, and the JVM was young.
fn hides_price(trial: &Trial) -> bool {
    is_young(trial) && trial.tuned.iter().flat_map(|of| &of.remedies).any(|id| needs_warmth(id))
}

/// Whether the subject of a trial was not warm when it was measured.
fn is_young(trial: &Trial) -> bool {
    trial.phases.iter().any(|phase| phase.steady == Some(false))
}

/// Whether a trial of a tuning says anything.
pub(super) fn counts(trial: &Trial) -> bool {
    trial.tuned.as_ref().is_some_and(|of| of.verdict != ProbeVerdict::Discarded)
}

/// The mark that an objective is read at. A trial that failed has none, though it may have been weighed.
pub(super) fn moment(trial: &Trial, objective: Objective) -> Option<&Mark> {
    if trial.outcome != Outcome::Completed {
        return None;
    }
    let (loaded, rested) = (trial.at(MarkPoint::Loaded), trial.at(MarkPoint::Rested));
    match objective {
        Objective::Loaded | Objective::Peak => loaded,
        Objective::Rested => rested,
        Objective::Rss => trial.heaviest(),
        Objective::Limit => [loaded, rested].into_iter().flatten().max_by_key(|mark| mark.anon_bytes.unwrap_or(0)),
    }
}

/// The accounts of outcomes, of those that have one.
fn accounts<'a>(outcomes: &[&'a Observed]) -> Vec<&'a BTreeMap<Owner, f64>> {
    outcomes.iter().map(|of| &of.owners).filter(|owners| !owners.is_empty()).collect()
}

/// The bytes of an owner by an account: an owner that it does not name holds nothing.
fn held(account: &BTreeMap<Owner, f64>, owner: Owner) -> f64 {
    account.get(&owner).copied().unwrap_or(0.0)
}

/// The means of several outcomes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Means {
    /// Mean of the objective; says nothing where `trials` is 0.
    pub(super) bytes: f64,
    /// Mean of each owner, by the outcomes that have an account; empty where none has.
    pub(super) owners: BTreeMap<Owner, f64>,
    /// The account of each outcome that has one, in bytes.
    accounts: Vec<BTreeMap<Owner, f64>>,
    /// Mean CPU time of a request; `None` where one of them has none.
    pub(super) cpu_s: Option<f64>,
    /// How many were weighed, with an account where any of them has one.
    pub(super) trials: usize,
}

impl Means {
    /// The means of outcomes. A trial that was not weighed is left out: it does not count as 0.
    pub(super) fn of(outcomes: &[&Observed]) -> Self {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
            if count > 0.0 { sum / count } else { 0.0 }
        };
        let cpu: Option<Vec<f64>> = outcomes.iter().map(|of| of.cpu_s).collect();
        let accounts = accounts(outcomes);
        let held = |owner: Owner| mean(&mut accounts.iter().map(|of| held(of, owner)));
        let weighed = outcomes.iter().filter(|of| of.bytes.is_some()).count();
        Self {
            bytes: mean(&mut outcomes.iter().filter_map(|of| of.bytes)),
            owners: Owner::ALL
                .into_iter()
                .map(|owner| (owner, held(owner)))
                .filter(|(_, bytes)| *bytes > 0.0)
                .collect(),
            cpu_s: cpu.filter(|cpu| !cpu.is_empty()).map(|cpu| mean(&mut cpu.into_iter())),
            trials: if accounts.is_empty() { weighed } else { weighed.min(accounts.len()) },
            accounts: accounts.into_iter().cloned().collect(),
        }
    }

    /// The bytes of these owners; the whole objective where none is named, and where no account names any.
    pub(super) fn held_by(&self, owners: &[Owner]) -> f64 {
        if owners.is_empty() || self.owners.is_empty() {
            return self.bytes;
        }
        owners.iter().filter_map(|owner| self.owners.get(owner)).sum()
    }

    /// The sum of squares by which its trials differ in what these owners hold together, and its degrees of freedom.
    fn spread(&self, owners: &[Owner]) -> (f64, f64) {
        let sums = sums(&self.accounts, owners);
        let free = sums.len().saturating_sub(1) as f64;
        (deviation(&sums).powi(2) * free, free)
    }

    /// CPU time of a request over that of others; 1 where either is not known.
    pub(super) fn cpu_ratio(&self, others: &Self) -> f64 {
        match (self.cpu_s, others.cpu_s) {
            (Some(own), Some(other)) if other > 0.0 => own / other,
            _ => 1.0,
        }
    }
}

/// How far fresh processes of one setting differ: standard deviations of one trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Noise {
    /// Deviation of the objective, in bytes.
    pub(super) bytes: f64,
    /// The account of each trial that has one, in bytes.
    accounts: Vec<BTreeMap<Owner, f64>>,
    /// Deviation of the CPU time of a request, as a share.
    pub(super) cpu: f64,
    /// The least deviation of CPU time that is believed, where the subject was not warm.
    cpu_least: f64,
    /// Whether CPU time was measured at all.
    pub(super) has_cpu: bool,
}

/// A standard deviation of three values may be small by luck: none is believed below this.
const OWNER_MIN: f64 = 0.35 * 1024.0 * 1024.0;
/// The same as a share of the CPU time of a request at a constant rate (measured: 0.7 %).
const CPU_MIN: f64 = 0.004;
/// The same of JVMs that are not warm yet: 9 to 26 % at 50 to 200 requests a second on six servers, where three trials
/// alike showed 6 % (measured 2026-11-27). What is thrown away for its price does not come back.
const CPU_YOUNG: f64 = 0.2;

impl Noise {
    /// The noise of outcomes of one setting.
    pub(super) fn of(outcomes: &[&Observed]) -> Self {
        let means = Means::of(outcomes);
        let values =
            |read: &dyn Fn(&Observed) -> Option<f64>| outcomes.iter().filter_map(|of| read(of)).collect::<Vec<f64>>();
        let cpu = values(&|of| of.cpu_s);
        Self {
            bytes: deviation(&values(&|of| of.bytes)).max(OWNER_MIN),
            accounts: accounts(outcomes).into_iter().cloned().collect(),
            cpu: means.cpu_s.filter(|mean| *mean > 0.0).map_or(CPU_MIN, |mean| (deviation(&cpu) / mean).max(CPU_MIN)),
            cpu_least: if outcomes.iter().any(|of| of.young) { CPU_YOUNG } else { CPU_MIN },
            has_cpu: means.cpu_s.is_some(),
        }
    }

    /// Deviation of the CPU time of a request as a share, as far as so few trials are believed.
    pub(super) fn cpu_believed(&self) -> f64 {
        self.cpu.max(self.cpu_least)
    }

    /// Deviation of the sum of these owners; of the objective if none is named. What one owner has more another has
    /// often less: chunks of the JIT compilers are live or retained, depending on the moment.
    pub(super) fn of_owners(&self, owners: &[Owner]) -> f64 {
        if owners.is_empty() {
            return self.bytes;
        }
        deviation(&sums(&self.accounts, owners)).max(least(owners))
    }

    /// Deviation of the same between two settings. Memory that a setting bounds differs less than as it is: what
    /// differs as it is counts by how much of that memory the larger of both holds. What differs within them counts,
    /// too.
    pub(super) fn between(&self, as_is: &Means, from: &Means, to: &Means, owners: &[Owner]) -> f64 {
        let all = as_is.held_by(owners);
        let share = if all > 0.0 { from.held_by(owners).max(to.held_by(owners)) / all } else { 1.0 };
        let prior = self.of_owners(owners) * share.min(1.0);
        if owners.is_empty() {
            return prior.max(OWNER_MIN);
        }
        let degrees = self.accounts.len().saturating_sub(1) as f64;
        let within = [from, to].map(|means| means.spread(owners));
        let squares = prior.powi(2) * degrees + within.iter().map(|of| of.0).sum::<f64>();
        let free = degrees + within.iter().map(|of| of.1).sum::<f64>();
        let pooled = if free > 0.0 { (squares / free).sqrt() } else { prior };
        pooled.max(least(owners))
    }
}

/// The least deviation of these owners together that is believed.
fn least(owners: &[Owner]) -> f64 {
    OWNER_MIN * (owners.len().max(1) as f64).sqrt()
}

/// What these owners hold together, by each account.
fn sums(accounts: &[BTreeMap<Owner, f64>], owners: &[Owner]) -> Vec<f64> {
    accounts.iter().map(|account| owners.iter().map(|owner| held(account, *owner)).sum()).collect()
}

/// The standard deviation of a sample; 0 below two values.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CpuByPurpose, PhaseRecord, SubjectWork};

    fn tuned(verdict: ProbeVerdict) -> TuneTrialRecord {
        TuneTrialRecord {
            stage: TuneStage::Baseline,
            remedies: Vec::new(),
            rates: Vec::new(),
            verdict,
            why: Vec::new(),
            missed: Vec::new(),
            not_in_force: Vec::new(),
            seconds: 1.0,
        }
    }

    #[test]
    fn a_price_is_without_the_jit_where_the_first_trial_tells_it_apart() {
        let split = CpuByPurpose { app_s: 1.0, jit_s: 2.0, gc_s: 0.5, vm_s: 0.25 };
        let trial = |by_purpose: Option<CpuByPurpose>| {
            let subject = SubjectWork { cpu_s: Some(3.75), cpu_by_purpose: by_purpose, ..SubjectWork::default() };
            let model = crate::record::Model::Open;
            let phase = PhaseRecord { name: "steady".to_owned(), model, ok: 10, subject, ..PhaseRecord::default() };
            Trial { phases: vec![phase], tuned: Some(tuned(ProbeVerdict::Holds)), ..Trial::new("a", 0, 0) }
        };
        let dead = Trial { phases: Vec::new(), ..trial(None) };
        let of = |trials: &[Trial]| {
            let priced = Priced::by(trials);
            trials.iter().map(|trial| priced.cpu_s(trial)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[dead.clone(), trial(Some(split)), trial(None)]), [None, Some(0.175), None]);
        assert_eq!(of(&[dead, trial(None), trial(Some(split))]), [None, Some(0.375), Some(0.375)]);
        assert_eq!(Priced::by(&[]), Priced::WithoutJit);
    }

    #[test]
    fn a_young_jvm_has_no_price_of_a_remedy_that_only_a_warm_one_shows() {
        let cpu = |remedy: &str, steady| {
            let subject = SubjectWork { cpu_s: Some(1.0), ..SubjectWork::default() };
            let model = crate::record::Model::Open;
            let warmup = PhaseRecord { name: "warmup".to_owned(), steady, ..PhaseRecord::default() };
            let phase = PhaseRecord { name: "steady".to_owned(), model, ok: 10, subject, ..PhaseRecord::default() };
            let tuned = TuneTrialRecord { remedies: vec![remedy.to_owned()], ..tuned(ProbeVerdict::Holds) };
            let trial = Trial { phases: vec![warmup, phase], tuned: Some(tuned), ..Trial::new("a", 0, 0) };
            Observed::of(&trial, Objective::Rss, Priced::Whole).unwrap().cpu_s
        };
        assert_eq!(cpu("compiler.c1", Some(false)), None);
        assert_eq!(
            [cpu("compiler.c1", Some(true)), cpu("compiler.c1", None), cpu("gc.serial", Some(false))],
            [Some(0.1); 3]
        );
    }

    /// What malloc held in three trials of a Micronaut service: arenas of the JIT compilers are live or retained.
    #[test]
    fn owners_that_exchange_bytes_differ_less_together() {
        const MIB: f64 = 1024.0 * 1024.0;
        let trial = Trial { tuned: Some(tuned(ProbeVerdict::Holds)), ..Trial::new("a", 0, 0) };
        let of = |live: f64, retained: f64| Observed {
            owners: [(Owner::MallocLive, live * MIB), (Owner::MallocRetained, retained * MIB)].into(),
            ..Observed::of(&trial, Objective::Rss, Priced::Whole).unwrap()
        };
        let trials = [of(12.8, 30.4), of(30.0, 15.2), of(11.3, 31.2)];
        let noise = Noise::of(&trials.iter().collect::<Vec<_>>());
        let differ = |owners: &[Owner]| noise.of_owners(owners) / MIB;
        assert!(differ(&[Owner::MallocLive]) > 8.0 && differ(&[Owner::MallocRetained]) > 8.0);
        assert!(differ(&[Owner::MallocLive, Owner::MallocRetained]) < 2.0);
    }

    /// What malloc held in trials of a Jetty that answers from direct buffers: as it is, with one arena and a ceiling
    /// of the heap, and with a ceiling of direct memory, too.
    #[test]
    fn memory_that_a_setting_bounds_differs_less_than_as_it_is() {
        const MIB: f64 = 1024.0 * 1024.0;
        let trial = Trial { tuned: Some(tuned(ProbeVerdict::Holds)), ..Trial::new("a", 0, 0) };
        let of = |mib: &[f64]| -> Vec<Observed> {
            let observed = |held: &f64| Observed {
                owners: [(Owner::MallocLive, held * MIB)].into(),
                ..Observed::of(&trial, Objective::Rss, Priced::Whole).unwrap()
            };
            mib.iter().map(observed).collect()
        };
        let [as_is, arena, direct] = [&[2104.2, 3263.9, 3279.0][..], &[764.7, 758.6], &[167.8, 160.7]].map(of);
        let [as_is, arena, direct] = [as_is, arena, direct].map(|all| {
            let all: Vec<&Observed> = all.iter().collect();
            (Noise::of(&all), Means::of(&all))
        });
        let differ = |from: &Means, to: &Means| as_is.0.between(&as_is.1, from, to, &[Owner::MallocLive]) / MIB;
        assert!(differ(&as_is.1, &as_is.1) > 600.0, "as it is");
        let bounded = differ(&arena.1, &direct.1);
        assert!((50.0..200.0).contains(&bounded), "{bounded}: by its share, and by what was seen");
        assert!(differ(&direct.1, &direct.1) < 30.0);
    }

    #[test]
    fn a_trial_that_failed_has_no_bytes_although_it_was_weighed() {
        let mark = Mark { name: "loaded".to_owned(), rss_bytes: 100, ..Mark::default() };
        let completed = Trial {
            outcome: Outcome::Completed,
            marks: vec![mark],
            tuned: Some(tuned(ProbeVerdict::Fails)),
            rss_bytes_peak: Some(120),
            ..Trial::new("a", 0, 0)
        };
        let failed = Trial { outcome: Outcome::SubjectFailed, ..completed.clone() };
        for (objective, bytes) in [(Objective::Rss, 100.0), (Objective::Loaded, 100.0), (Objective::Peak, 120.0)] {
            let of = |trial| Observed::of(trial, objective, Priced::Whole).unwrap().bytes;
            assert_eq!((of(&completed), of(&failed)), (Some(bytes), None), "{objective:?}");
        }
    }
}
