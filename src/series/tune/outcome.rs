//! The outcome of a tuning trial in numbers, and means and noise over several outcomes.

use crate::comparison::CPU_WITHOUT_JIT;
use crate::diagnosis::remedy::needs_warmth;
use crate::owner::Owner;
use crate::record::{Mark, Outcome, ProbeVerdict, Trial, TuneStage, TuneTrialRecord};
use crate::scenario::{MarkPoint, Objective};
use crate::series::search::{cpu_per_request, cpu_without_jit_per_request, gc_cpu_per_request};
use std::collections::BTreeMap;

/// The CPU time that a price refers to. The first trial with CPU time decides, so that later trials change no decision;
/// later trials without this kind count as unmeasured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priced {
    /// Without the JIT compilers, which stop once the program is compiled.
    WithoutJit,
    /// All CPU time, if the JIT's part is unknown.
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

    /// The number of CPUs that a trial kept busy in its measured phases.
    pub(super) fn cpus(self, trial: &Trial) -> Option<f64> {
        let phases = trial.measured_phases().filter(|phase| phase.ok > 0);
        let (ok, seconds) = phases.fold((0, 0.0), |(ok, seconds), phase| (ok + phase.ok, seconds + phase.seconds));
        self.cpu_s(trial).filter(|_| seconds > 0.0).map(|cpu_s| cpu_s * ok as f64 / seconds)
    }

    pub(super) fn family(self) -> &'static str {
        match self {
            Self::WithoutJit => CPU_WITHOUT_JIT,
            Self::Whole => "cpu_per_1000",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    pub(super) stage: TuneStage,
    /// IDs of the applied remedies.
    pub(super) remedies: Vec<String>,
    /// The confirmation block, numbered across all attempts.
    pub(super) block: u32,
    pub(super) holds: bool,
    /// Whether the subject did not become ready.
    pub(super) refused: bool,
    /// The targets that it missed.
    pub(super) why: Vec<String>,
    /// Changes known not to be in effect.
    pub(super) not_in_force: Vec<String>,
    /// The objective in bytes; `None` if not measured.
    pub(super) bytes: Option<f64>,
    /// Bytes per owner at the same mark.
    pub(super) owners: BTreeMap<Owner, f64>,
    /// The priced CPU time per request in seconds.
    pub(super) cpu_s: Option<f64>,
    /// The collector's part of it.
    pub(super) gc_s: Option<f64>,
    /// Whether the warm-up ended too early, before the subject was warm.
    pub(super) young: bool,
    pub(super) seconds: f64,
}

impl Observed {
    /// The outcome of a valid tuning trial; `None` for any other.
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

    pub(super) fn is_of_search(&self) -> bool {
        !matches!(self.stage, TuneStage::Confirmation | TuneStage::Reference | TuneStage::Training)
    }
}

/// Whether the JVM was still warming up and a remedy of this trial has a price that warm-up hides.
fn hides_price(trial: &Trial) -> bool {
    is_young(trial) && trial.tuned.iter().flat_map(|of| &of.remedies).any(|id| needs_warmth(id))
}

/// Whether the subject was measured before it was warm.
fn is_young(trial: &Trial) -> bool {
    trial.phases.iter().any(|phase| phase.steady == Some(false))
}

pub(super) fn counts(trial: &Trial) -> bool {
    trial.tuned.as_ref().is_some_and(|of| of.verdict != ProbeVerdict::Discarded)
}

/// The mark that provides the objective. A failed trial has none, even if it was measured.
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

fn accounts<'a>(outcomes: &[&'a Observed]) -> Vec<&'a BTreeMap<Owner, f64>> {
    outcomes.iter().map(|of| &of.owners).filter(|owners| !owners.is_empty()).collect()
}

/// An owner's bytes; 0 if the account does not list it.
fn held(account: &BTreeMap<Owner, f64>, owner: Owner) -> f64 {
    account.get(&owner).copied().unwrap_or(0.0)
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Means {
    /// Mean of the objective; meaningless if `trials` is 0.
    pub(super) bytes: f64,
    /// Mean of each owner over the outcomes that have an account; empty if none has.
    pub(super) owners: BTreeMap<Owner, f64>,
    accounts: Vec<BTreeMap<Owner, f64>>,
    /// Mean CPU time per request; `None` if any outcome lacks it.
    pub(super) cpu_s: Option<f64>,
    /// The number of measured outcomes, or of those with an account if there are any.
    pub(super) trials: usize,
}

impl Means {
    /// Averages outcomes, skipping those without a measurement.
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

    /// The bytes of these owners; the whole objective if none is given or no account exists.
    pub(super) fn held_by(&self, owners: &[Owner]) -> f64 {
        if owners.is_empty() || self.owners.is_empty() {
            return self.bytes;
        }
        owners.iter().filter_map(|owner| self.owners.get(owner)).sum()
    }

    /// The sum of squared deviations of these owners' total, and its degrees of freedom.
    fn spread(&self, owners: &[Owner]) -> (f64, f64) {
        let sums = sums(&self.accounts, owners);
        let free = sums.len().saturating_sub(1) as f64;
        (deviation(&sums).powi(2) * free, free)
    }

    /// CPU time per request relative to `others`; 1 if either is unknown.
    pub(super) fn cpu_ratio(&self, others: &Self) -> f64 {
        match (self.cpu_s, others.cpu_s) {
            (Some(own), Some(other)) if other > 0.0 => own / other,
            _ => 1.0,
        }
    }
}

/// The noise between fresh processes of one setting: standard deviations of one trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Noise {
    /// Deviation of the objective, in bytes.
    pub(super) bytes: f64,
    /// The available accounts, in bytes.
    accounts: Vec<BTreeMap<Owner, f64>>,
    /// Deviation of the CPU time per request, as a share.
    pub(super) cpu: f64,
    /// The assumed minimum deviation of CPU time if the subject was not warm.
    cpu_least: f64,
    /// Whether CPU time was measured.
    pub(super) has_cpu: bool,
}

/// Three values can underestimate the deviation; a smaller deviation is raised to this.
const OWNER_MIN: f64 = 0.35 * 1024.0 * 1024.0;
/// The same, as a share of the CPU time per request at a constant rate (measured: 0.7%).
const CPU_MIN: f64 = 0.004;
/// The same for JVMs that are still warming up: 9 to 26% at 50 to 200 requests a second on six servers, where three
/// identical trials showed 6% (measured 2026-11-27). It is cautious because a candidate rejected for its price does not
/// return.
const CPU_YOUNG: f64 = 0.2;

impl Noise {
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

    /// Deviation of the CPU time per request as a share, raised to a credible value for so few trials.
    pub(super) fn cpu_believed(&self) -> f64 {
        self.cpu.max(self.cpu_least)
    }

    /// Deviation of the sum of these owners, or of the objective if none is given. Owners trade bytes: the JIT
    /// compilers' chunks are live or retained, depending on timing.
    pub(super) fn of_owners(&self, owners: &[Owner]) -> f64 {
        if owners.is_empty() {
            return self.bytes;
        }
        deviation(&sums(&self.accounts, owners)).max(least(owners))
    }

    /// Deviation of the same sum when comparing two settings. A setting that bounds memory also reduces its noise. So
    /// the unchanged subject's noise is scaled by how much of that memory the larger setting holds, and each setting's
    /// own noise is added.
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

/// The smallest credible deviation of these owners' sum.
fn least(owners: &[Owner]) -> f64 {
    OWNER_MIN * (owners.len().max(1) as f64).sqrt()
}

/// The sum of these owners in each account.
fn sums(accounts: &[BTreeMap<Owner, f64>], owners: &[Owner]) -> Vec<f64> {
    accounts.iter().map(|account| owners.iter().map(|owner| held(account, *owner)).sum()).collect()
}

/// The sample standard deviation; 0 for fewer than two values.
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
    fn cpu_cost_excludes_jit_if_the_first_trial_splits_cpu_time() {
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
    fn a_young_jvm_gives_no_cost_for_remedies_that_need_a_warm_one() {
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

    /// Malloc in three trials of a Micronaut service: the JIT compilers' arenas are live or retained.
    #[test]
    fn owners_that_exchange_bytes_vary_less_in_total() {
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

    /// Malloc in trials of a Jetty server that responds from direct buffers: unchanged, with one arena and a heap
    /// ceiling, and with a ceiling on direct memory too.
    #[test]
    fn memory_bounded_by_a_setting_varies_less_than_the_baseline() {
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
        assert!(differ(&as_is.1, &as_is.1) > 600.0, "the unbounded baseline varies by more than 600 MiB");
        let bounded = differ(&arena.1, &direct.1);
        assert!((50.0..200.0).contains(&bounded), "bounded settings vary by {bounded} MiB");
        assert!(differ(&direct.1, &direct.1) < 30.0);
    }

    #[test]
    fn a_failed_trial_gives_no_bytes_even_if_measured() {
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
