//! Complete tunings on a simulated server: from the first trial to the record.

use super::outcome::{Means, Noise, Observed, Priced};
use super::scheduler::BASELINE;
use super::{Tuner, check, found, settle};
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::numbers::SplitMix64;
use crate::record::{
    AccountRecord, Fate, FlagsRecord, Heap, Jvm, Mark, Model, Outcome, OwnerRecord, PhaseRecord, Quantiles,
    RemedyRecord, SubjectWork, Trial, TuneOutcome, TuneRecord, TuneStage,
};
use crate::scenario::{Phase, PhaseKind, PhaseMark, Scenario, TrialPlan, TuneSettings, parse};
use crate::series::{Executor, Made, run};
use crate::trial::{Event, Sink};
use crate::units::MIB;
use std::collections::BTreeMap;
use std::path::Path;

/// The option that disables C2.
const FIRST: &str = "-XX:TieredStopAtLevel=1";

#[derive(Debug, Clone, Copy)]
enum Cpu {
    Measured,
    Unmeasured,
    /// Varies by this share between trials.
    Noisy(f64),
}

/// A JVM whose heap grows to its ceiling, and whose malloc retains what several arenas freed.
#[derive(Debug, Clone)]
struct SimulatedServer {
    live: u64,
    /// The heap's size without a bound.
    greed: u64,
    retained: u64,
    noise: f64,
    seed: u64,
    /// Whether environment variables do not reach it.
    loses_variables: bool,
    /// A closed model's responses per second.
    rate_max: f64,
    cpu: Cpu,
    /// Trials with an option that has this prefix are not measured; if it is empty, all trials are measured.
    unweighed: &'static str,
    /// The number of trials after which the user interrupts.
    stops_after: usize,
    plans: Vec<TrialPlan>,
}

impl Default for SimulatedServer {
    fn default() -> Self {
        Self {
            live: 20 * MIB,
            greed: 200 * MIB,
            retained: 40 * MIB,
            noise: 0.002,
            seed: 1,
            loses_variables: false,
            rate_max: 4000.0,
            cpu: Cpu::Measured,
            unweighed: "",
            stops_after: usize::MAX,
            plans: Vec::new(),
        }
    }
}

impl SimulatedServer {
    fn has(&self, plan: &TrialPlan, option: &str) -> bool {
        plan.configuration.jvm.iter().any(|word| word.starts_with(option))
    }

    fn heap(&self, plan: &TrialPlan) -> u64 {
        let options = plan.configuration.jvm_options();
        let of = |word: &String| word.strip_prefix("-Xmx")?.parse::<crate::units::Bytes>().ok().map(|bytes| bytes.0);
        options.iter().rev().find_map(of).unwrap_or(self.greed).min(self.greed)
    }

    /// A phase in which a request costs this many times 100 µs.
    fn phase(&self, plan: &TrialPlan, phase: &Phase, cost: f64) -> PhaseRecord {
        let offered = match &phase.kind {
            PhaseKind::Work(work) => work.schedule.rate().map(|rate| rate.max()),
            _ => None,
        };
        let model = match (&phase.kind, offered) {
            (PhaseKind::Idle(_), _) => Model::Idle,
            (_, Some(_)) => Model::Open,
            (_, None) => Model::Closed,
        };
        let rate = offered.unwrap_or(self.rate_max);
        let p99 = if self.has(plan, "-Dbreaks") { 812.0 } else { 8.0 };
        let times = Quantiles { p99, ..Quantiles::default() };
        PhaseRecord {
            name: phase.name.clone(),
            model,
            seconds: 10.0,
            requests: (rate * 10.0) as u64,
            ok: (rate * 10.0) as u64,
            achieved_per_s: rate,
            offered_per_s: offered,
            response_ms: offered.map(|_| times),
            service_ms: Some(times),
            subject: SubjectWork { cpu_s: Some(rate * 10.0 * cost * 1e-4), ..SubjectWork::default() },
            ..PhaseRecord::default()
        }
    }

    fn owners(&self, plan: &TrialPlan, wobble: &mut dyn FnMut(u64) -> u64) -> Vec<OwnerRecord> {
        let arenas = !self.loses_variables && plan.configuration.env.iter().any(|(name, _)| name == "MALLOC_ARENA_MAX");
        let retained = match (self.has(plan, "-XX:TrimNativeHeapInterval"), arenas) {
            (true, _) => 0,
            (false, true) => self.retained / 8,
            (false, false) => self.retained,
        };
        let saves = if self.has(plan, "-Dhelps") { 0 } else { 16 * MIB };
        let held = [
            ("java_heap.used", self.heap(plan)),
            ("malloc.retained", retained),
            ("malloc.mmapped", saves),
            ("code_cache", if self.has(plan, FIRST) { 6 * MIB } else { 18 * MIB }),
            ("libjvm", 20 * MIB),
        ];
        let owner = |(name, bytes): (&str, u64)| OwnerRecord {
            name: name.to_owned(),
            rss_bytes: wobble(bytes),
            ..OwnerRecord::default()
        };
        held.into_iter().map(owner).collect()
    }

    fn trial(&self, plan: &TrialPlan) -> Trial {
        let mut random = SplitMix64::new(self.seed << 20 | u64::from(plan.index));
        let mut wobble = |bytes: u64| (bytes as f64 * (1.0 + self.noise * random.normal())) as u64;
        let mut trial = Trial::new(&plan.configuration.name, plan.block, plan.index);
        if self.has(plan, "-XX:Absent") {
            (trial.outcome, trial.why) = (Outcome::SubjectFailed, Some("Unrecognized VM option 'Absent'".to_owned()));
            return trial;
        }
        let owners = self.owners(plan, &mut wobble);
        let total = owners.iter().map(|owner| owner.rss_bytes).sum();
        let mark = |name: &str, live: Option<u64>| Mark {
            name: name.to_owned(),
            rss_bytes: total,
            anon_bytes: Some(total - 20 * MIB),
            heap: Heap { live_bytes: live, ..Heap::default() },
            account: Some(AccountRecord { owners: owners.clone(), total_bytes: total, ..AccountRecord::default() }),
            ..Mark::default()
        };
        trial.marks =
            plan.marks.iter().map(|of| mark(of.word(), (of.word() == "collected").then_some(self.live))).collect();
        let cost = if self.has(plan, FIRST) { 1.3 } else { 1.0 } + self.live as f64 / self.heap(plan) as f64 * 0.01;
        trial.phases =
            plan.load.iter().map(|phase| self.phase(plan, phase, wobble(MIB) as f64 / MIB as f64 * cost)).collect();
        let noise = if let Cpu::Noisy(share) = self.cpu { 1.0 + share * random.normal() } else { 1.0 };
        for phase in &mut trial.phases {
            let measured = phase.subject.cpu_s.map(|cpu_s| cpu_s * noise);
            phase.subject.cpu_s = measured.filter(|_| !matches!(self.cpu, Cpu::Unmeasured));
        }
        if !self.unweighed.is_empty() && self.has(plan, self.unweighed) {
            trial.marks.clear();
        }
        (trial.outcome, trial.ready_s) = (Outcome::Completed, Some(0.4));
        let known = ["TrimNativeHeapInterval", "TieredStopAtLevel", "UseCompactObjectHeaders", "ArchiveClassesAtExit"];
        let defaults: BTreeMap<String, String> = known.map(|name| (name.to_owned(), "0".to_owned())).into();
        trial.jvm = Some(Jvm {
            version: Some("25.0.3+9".to_owned()),
            collector: Some("Serial".to_owned()),
            allocator: Some("glibc".to_owned()),
            flags_kept: Some(FlagsRecord { set: Vec::new(), defaults }),
            ..Jvm::default()
        });
        if self.loses_variables && !plan.configuration.env.is_empty() {
            let variables = plan.configuration.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            trial.doubts.push(Doubt::VariablesLost { variables }.into());
        }
        trial
    }
}

impl Executor for SimulatedServer {
    fn conduct(&mut self, plan: &TrialPlan, _sink: &mut dyn Sink) -> Made {
        self.plans.push(plan.clone());
        let trial = self.trial(plan);
        let error = (trial.outcome != Outcome::Completed).then(|| Error::subject("it did not start"));
        Made { error, seconds: 30.0, ..Made::new(trial) }
    }

    fn interrupted(&self) -> bool {
        self.plans.len() >= self.stops_after
    }
}

struct Nobody;

impl Sink for Nobody {
    fn receive(&mut self, _: &Event<'_>) {}
}

fn asked(load: &str, typed: TuneSettings) -> Result<Scenario> {
    let text = format!("name: x\nsubject: {{command: [java, '{{jvm}}', -jar, x.jar, '{{port}}']}}\n{load}\n");
    let mut asked = parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    settle(&mut asked, typed).map(|()| asked)
}

const OPEN: &str =
    "configurations: {a: {}}\nload: [steady: {constant: {rate: 200, duration: 10s}, get: /}, rest: {idle: 5s}]";
const CLOSED: &str = "configurations: {a: {}}\nload: [steady: {closed: {duration: 10s}, get: /}, rest: {idle: 5s}]";

/// Continues a tuning after these trials.
fn go_on(server: &mut SimulatedServer, scenario: &Scenario, trials: &mut Vec<Trial>) -> Result<Vec<Error>> {
    run(&Tuner::new(scenario).unwrap(), server, &mut Nobody, trials)
}

fn tuned(server: &mut SimulatedServer, scenario: &Scenario) -> (TuneRecord, Vec<Trial>) {
    let mut trials = Vec::new();
    go_on(server, scenario, &mut trials).unwrap();
    (found(scenario, &trials).unwrap(), trials)
}

/// The same with an open load, which uses so little CPU that only an explicit price matters.
fn tuned_open(mut server: SimulatedServer, typed: TuneSettings) -> (TuneRecord, Vec<Trial>) {
    let price = typed.price.or_else(|| "2%".parse().ok());
    tuned(&mut server, &asked(OPEN, TuneSettings { price, ..typed }).unwrap())
}

fn remedy<'a>(record: &'a TuneRecord, id: &str) -> &'a RemedyRecord {
    record.remedies.iter().find(|of| of.id == id).unwrap_or_else(|| panic!("the record does not list {id}"))
}

#[test]
fn an_unlimited_heap_and_malloc_arenas_are_tuned() {
    let (record, trials) = tuned_open(SimulatedServer::default(), TuneSettings::default());
    assert_eq!(record.outcome, TuneOutcome::Proved, "{record:?}");
    // Trimming has the effect of both on its own, and the tightest heap costs almost nothing.
    assert_eq!(record.answer, ["-Xmx26m", "-XX:TrimNativeHeapInterval=2000"], "{:?}", record.remedies);
    let saved = -record.gains[0].difference / MIB as f64;
    assert!((saved - 214.0).abs() < 2.5, "{saved}");
    assert_eq!(record.owners[0].owner, "java_heap.used");
    assert_eq!(remedy(&record, "compiler.c1").fate, Fate::TooCostly);
    assert!(remedy(&record, "headers.compact").why.contains("JDK-8380060"));
    assert_eq!(remedy(&record, "malloc.arenas+trim").fate, Fate::NotMissed, "{:?}", record.remedies);
    assert!(record.front.len() >= 2 && record.front[0].remedies.is_empty(), "{:?}", record.front);
    assert!(record.front.last().unwrap().remedies.contains(&"compiler.c1".to_owned()), "C1 saves the most memory");
    assert!(record.trials <= 32 && record.trials as usize == trials.len());
    let confirming = trials.iter().filter(|trial| trial.tuned.as_ref().unwrap().stage == TuneStage::Confirmation);
    assert_eq!(confirming.count(), 10);
}

/// Later trials do not change a decision that the first ones led to.
#[test]
fn an_interrupted_tuning_resumes_where_it_stopped() {
    let scenario = asked(OPEN, TuneSettings::default()).unwrap();
    let mut server = SimulatedServer { noise: 0.01, ..SimulatedServer::default() };
    let (_, trials) = tuned(&mut server, &scenario);
    let tuner = Tuner::new(&scenario).unwrap();
    for (count, plan) in server.plans.iter().enumerate() {
        let next = crate::series::Strategy::next(&tuner, &trials[..count]).unwrap();
        assert_eq!(next.plan, *plan, "a search resumed after {count} trials must plan the same next trial");
        // Recording an unfinished tuning does not panic, and proves nothing yet.
        let record = found(&scenario, &trials[..count]).unwrap();
        assert_ne!(record.outcome, TuneOutcome::Proved, "nothing is proved after only {count} trials");
    }
}

#[test]
fn user_tries_are_kept_or_rejected_with_a_reason() {
    let tries = ["-Dhelps=1", "-Dbreaks=1", "-XX:Absent=1", "-Didle=1"].map(|text| text.parse().unwrap()).to_vec();
    let typed = TuneSettings {
        tries,
        skip: vec!["malloc".to_owned(), "heap".to_owned()],
        target: vec!["p99<50ms".parse().unwrap()],
        ..TuneSettings::default()
    };
    let (record, _) = tuned_open(SimulatedServer::default(), typed);
    let fates = ["try.1", "try.2", "try.3", "try.4"].map(|id| remedy(&record, id).fate);
    assert_eq!(fates, [Fate::Kept, Fate::Harmful, Fate::Refused, Fate::NoEffect], "{:?}", record.remedies);
    assert_eq!(record.answer, ["-Dhelps=1"]);
    assert!(remedy(&record, "try.3").why.contains("Unrecognized VM option"));
    assert!(
        remedy(&record, "heap.max").why.contains("--skip") && remedy(&record, "malloc.trim").why.contains("--skip")
    );
}

#[test]
fn a_setting_lost_before_the_process_is_reported_as_not_in_force() {
    let typed = TuneSettings {
        skip: vec!["heap".to_owned(), "malloc.trim".to_owned(), "malloc.arenas+trim".to_owned()],
        ..TuneSettings::default()
    };
    let (record, _) = tuned_open(SimulatedServer { loses_variables: true, ..SimulatedServer::default() }, typed);
    assert_eq!(remedy(&record, "malloc.arenas").fate, Fate::NotInForce, "{:?}", record.remedies);
    assert_eq!(record.outcome, TuneOutcome::NothingProved);
}

#[test]
fn a_closed_model_is_tuned_at_a_constant_rate() {
    let scenario = asked(CLOSED, TuneSettings::default()).unwrap();
    let mut server = SimulatedServer::default();
    let (record, trials) = tuned(&mut server, &scenario);
    assert_eq!((record.rates.len(), record.rates[0].rate_per_s), (1, 3000.0));
    assert_eq!(trials[0].tuned.as_ref().unwrap().stage, TuneStage::Reference);
    assert!(server.plans[1..].iter().all(|plan| plan.load.rate_per_s() == Some(3000.0)));
    assert_eq!(record.outcome, TuneOutcome::Proved);
    let closed = asked(CLOSED, TuneSettings { closed: true, ..TuneSettings::default() }).unwrap();
    let (record, trials) = tuned(&mut SimulatedServer::default(), &closed);
    assert!(record.rates.is_empty() && trials[0].tuned.as_ref().unwrap().stage == TuneStage::Baseline);
}

#[test]
fn a_target_missed_by_the_baseline_ends_the_tuning() {
    let typed = TuneSettings { target: vec!["p99<1ms".parse().unwrap()], ..TuneSettings::default() };
    let (record, trials) = tuned_open(SimulatedServer::default(), typed);
    assert_eq!((record.outcome, trials.len()), (TuneOutcome::NotHeld, 2), "one miss may be chance");
    assert!(record.text.contains("p99.steady was 8"), "{}", record.text);
}

#[test]
fn a_dry_run_only_plans_remedies() {
    let scenario = asked(OPEN, TuneSettings::default()).unwrap();
    let mut trials = Vec::new();
    run(&Tuner::new(&scenario).unwrap().dry(), &mut SimulatedServer::default(), &mut Nobody, &mut trials).unwrap();
    let record = found(&scenario, &trials).unwrap();
    assert_eq!((record.outcome, trials.len()), (TuneOutcome::Planned, BASELINE));
    assert_eq!(remedy(&record, "malloc.arenas+trim").fate, Fate::Planned);
}

#[test]
fn a_dry_run_makes_the_announced_number_of_trials() {
    for load in [OPEN, CLOSED] {
        let scenario = asked(load, TuneSettings::default()).unwrap();
        let (tuner, mut trials) = (Tuner::new(&scenario).unwrap(), Vec::new());
        let announced = tuner.baseline().trials();
        run(&tuner.dry(), &mut SimulatedServer::default(), &mut Nobody, &mut trials).unwrap();
        assert_eq!(trials.len() as u64, announced, "{load}");
    }
}

#[test]
fn a_time_limit_drops_candidates_but_not_the_confirmation() {
    let within = |minutes: f64| TuneSettings { minutes: Some(minutes), ..TuneSettings::default() };
    let (record, trials) = tuned_open(SimulatedServer::default(), within(10.0));
    assert!(trials.len() <= 20 && record.outcome == TuneOutcome::Proved, "{}: {:?}", trials.len(), record.outcome);
    assert!(record.remedies.iter().any(|of| of.why.contains("time ran out")), "{:?}", record.remedies);
    let scenario = asked(OPEN, within(4.0)).unwrap();
    let error = go_on(&mut SimulatedServer::default(), &scenario, &mut Vec::new()).unwrap_err();
    let (what, hint) = (error.what, error.hint.unwrap());
    assert!(what.contains("`--minutes 4` is too short") && hint.contains("--minutes 8"), "{what}: {hint}");
}

#[test]
fn an_interrupted_tuning_gives_preliminary_results() {
    let scenario = asked(OPEN, TuneSettings::default()).unwrap();
    let mut trials = Vec::new();
    let mut server = SimulatedServer { stops_after: 7, ..SimulatedServer::default() };
    go_on(&mut server, &scenario, &mut trials).unwrap_err();
    assert_eq!(found(&scenario, &trials).unwrap().outcome, TuneOutcome::GivenUp);
    server.stops_after = usize::MAX;
    go_on(&mut server, &scenario, &mut trials).unwrap();
    assert_eq!(found(&scenario, &trials).unwrap().outcome, TuneOutcome::Proved);
}

#[test]
fn a_tuning_interrupted_in_its_bundle_is_given_up_not_planned() {
    let scenario = asked(OPEN, TuneSettings::default()).unwrap();
    // The baseline, and one trial of the bundle.
    let mut server = SimulatedServer { stops_after: BASELINE + 1, ..SimulatedServer::default() };
    let mut trials = Vec::new();
    go_on(&mut server, &scenario, &mut trials).unwrap_err();
    assert_eq!(trials.len(), BASELINE + 1);
    let record = found(&scenario, &trials).unwrap();
    assert_eq!(record.outcome, TuneOutcome::GivenUp, "{}", record.text);
    let tried = &trials[BASELINE].tuned.as_ref().unwrap().remedies;
    for id in tried {
        let of = remedy(&record, id);
        assert_eq!((of.fate, of.why.contains("it was tried")), (Fate::NotConfirmed, true), "{of:?}");
    }
    assert!(!tried.is_empty() && record.remedies.iter().any(|of| of.fate == Fate::NotTried));
}

#[test]
fn unmeasured_cpu_time_proves_no_cost() {
    let server = SimulatedServer { cpu: Cpu::Unmeasured, ..SimulatedServer::default() };
    let (record, trials) = tuned_open(server, TuneSettings::default());
    assert_eq!(record.outcome, TuneOutcome::NothingProved, "{}", record.text);
    assert_eq!(record.confirmations.len(), 1, "a second confirmation could not prove another set either");
    assert!(record.confirmations[0].why.contains("the cost is not confirmed"), "{:?}", record.confirmations);
    assert!(record.doubts.iter().any(|doubt| doubt.contains("cost limit cannot be checked")), "{:?}", record.doubts);
    assert!(trials.iter().any(|trial| trial.tuned.as_ref().unwrap().stage == TuneStage::Confirmation));
}

#[test]
fn a_cost_is_proved_by_the_interval_not_its_center() {
    // CPU time varies by a tenth between trials, so in more than half of the tunings, the mean over five blocks is
    // below a price of 2% by chance.
    let (mut proved, mut told) = (0, 0);
    for seed in 1..=8 {
        let server = SimulatedServer { cpu: Cpu::Noisy(0.1), seed, ..SimulatedServer::default() };
        let (record, _) = tuned_open(server, TuneSettings::default());
        let cpu = record.gains.iter().find(|of| of.metric.starts_with("cpu_per_1000."));
        told += usize::from(record.outcome != TuneOutcome::NothingProved);
        if let Some(high) = cpu.and_then(|of| of.ratio_high).filter(|_| record.outcome == TuneOutcome::Proved) {
            proved += 1;
            assert!(high <= 1.02, "seed {seed}: a proved cost of up to {high}");
        }
        for of in record.confirmations.iter().filter(|of| !of.confirmed) {
            let open = of.why.contains("% is possible") || of.why.contains("the price limit is");
            assert!(open && of.why.starts_with("CPU time per request"), "{of:?}");
        }
    }
    // Three unchanged trials may vary less than others, and then every remedy looks expensive.
    assert!(proved <= 2 && told >= 7, "{proved} proved and {told} reported of 8");
}

#[test]
fn a_trial_without_an_account_shows_no_savings_by_owner() {
    let scenario = asked(OPEN, TuneSettings::default()).unwrap();
    let (_, trials) = tuned(&mut SimulatedServer::default(), &scenario);
    let objective = scenario.tune.objective;
    let observed = |trials: &[Trial]| -> Vec<Observed> {
        trials.iter().filter_map(|trial| Observed::of(trial, objective, Priced::Whole)).collect()
    };
    let whole = observed(&trials[..BASELINE]);
    let mut trials = trials[..BASELINE].to_vec();
    trials[1].marks.iter_mut().for_each(|mark| mark.account = None);
    let part = observed(&trials);
    let means = |of: &[Observed]| Means::of(&of.iter().collect::<Vec<_>>());
    let (all, two) = (means(&whole), means(&part));
    assert_eq!((all.trials, two.trials), (3, 2));
    for (owner, bytes) in &all.owners {
        assert!((two.owners[owner] / bytes - 1.0).abs() < 0.02, "{owner:?}: {}, not {bytes}", two.owners[owner]);
    }
    let noise = Noise::of(&part.iter().collect::<Vec<_>>());
    for owner in all.owners.keys() {
        let bytes = noise.of_owners(&[*owner]);
        assert!(bytes < 2.0 * MIB as f64, "{owner:?} differs by {bytes} from trial to trial");
    }
    // An unmeasured trial does not count as zero bytes.
    trials.iter_mut().for_each(|trial| trial.marks.clear());
    let none = observed(&trials);
    assert_eq!((none.len(), means(&none).trials), (3, 0));
}

#[test]
fn a_remedy_with_unmeasured_memory_is_not_chosen() {
    let server = SimulatedServer { unweighed: "-XX:Trim", ..SimulatedServer::default() };
    let (record, _) = tuned_open(server, TuneSettings::default());
    assert!(!record.answer.iter().any(|word| word.contains("Trim")), "{:?}", record.answer);
    assert!(!record.path.iter().any(|of| of.bytes == Some(0.0)), "{:?}", record.path);
}

#[test]
fn untunable_scenarios_are_explained() {
    let refused = |load: &str, typed: TuneSettings| asked(load, typed).unwrap_err().to_string();
    let two = "configurations: {a: {}, b: {heap: 9m}}\nload: [steady: {constant: {rate: 200, duration: 10s}, get: /}]";
    assert!(refused(two, TuneSettings::default()).contains("tuning allows only one configuration"));
    let skip = |id: &str| TuneSettings { skip: vec![id.to_owned()], ..TuneSettings::default() };
    assert!(refused(OPEN, skip("malloc.arena")).contains("did you mean `malloc.arenas`"));
    let target = TuneSettings { target: vec!["rss.loaded<9MiB".parse().unwrap()], ..TuneSettings::default() };
    assert!(refused(OPEN, target).contains("requires querying the JVM"));
    assert!(check(&asked(OPEN, skip("malloc")).unwrap()).is_ok());
}

#[test]
fn the_default_price_is_at_least_ten_millicores() {
    let of = |typed: TuneSettings| tuned(&mut SimulatedServer::default(), &asked(OPEN, typed).unwrap()).0;
    let usual = of(TuneSettings::default());
    assert!((usual.price_cpus.unwrap() - 0.010).abs() < 1e-9 && usual.price > 0.02, "{usual:?}");
    let typed = of(TuneSettings { price: "2%".parse().ok(), ..TuneSettings::default() });
    assert!(typed.price_cpus.unwrap() < 0.010 && (typed.price - 0.02).abs() < 1e-9, "{typed:?}");
}

#[test]
fn an_adaptive_warm_up_runs_at_full_speed_after_the_first_trial() {
    let load = "configurations: {a: {}}\nload:\n  - warmup: {same: steady, until: steady, within: 10s}\n  \
                - steady: {constant: {rate: 200, duration: 10s}, get: /}";
    let mut server = SimulatedServer::default();
    let (record, trials) = tuned(&mut server, &asked(load, TuneSettings::default()).unwrap());
    assert_eq!(trials[0].tuned.as_ref().unwrap().stage, TuneStage::Reference);
    assert_eq!(record.outcome, TuneOutcome::Proved, "{record:?}");
    let warmups = server.plans.iter().map(|plan| &plan.load[0]);
    let warmups: Vec<_> = warmups.map(|of| (of.kind.work().unwrap().schedule.is_open(), of.mark)).collect();
    assert_eq!(warmups[0], (true, PhaseMark::None));
    assert!(warmups[1..].iter().all(|of| *of == (false, PhaseMark::Collected)), "{warmups:?}");
    assert!(server.plans.iter().all(|plan| plan.load[1].kind.work().unwrap().schedule.is_open()));
}
