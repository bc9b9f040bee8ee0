//! Complete series on simulated servers: from the first to the last trial, with everything that can go wrong.

use crate::made_up::{LIMIT_MAX, MadeUpTrials, Mishap, Server};
use loadline::error::{Error, ErrorKind, Result};
use loadline::record::{FailureCause, FindOutcome, FindRecord, Outcome, ProbeStage, ProbeVerdict, Trial};
use loadline::scenario::{Look, Pages, Scenario, TrialPlan, parse};
use loadline::series::search::{Search, found};
use loadline::series::{Blocks, Executor, Made, NextTrial, Strategy, run};
use loadline::trial::{Event, Sink};
use loadline::units::MIB;
use std::path::Path;

/// Records the events.
#[derive(Default)]
pub(crate) struct Notes {
    started: Vec<String>,
    finished: Vec<Trial>,
}

impl Sink for Notes {
    fn receive(&mut self, event: &Event<'_>) {
        match event {
            Event::TrialStarted(plan) => self.started.push(plan.title.clone()),
            Event::TrialFinished(trial) => self.finished.push((*trial).clone()),
            _ => {}
        }
    }

    fn folder(&self) -> Option<String> {
        Some(format!("trial-{:03}", self.finished.len() + 1))
    }
}

pub(crate) fn scenario(more: &str) -> Scenario {
    let text = format!(
        "name: x\nsubject: {{command: [java, '{{jvm}}', -jar, x.jar, '{{port}}'], ready: {{http: /, within: \
         60s}}}}\n{more}\n\
         load:\n  - warmup: {{same: steady}}\n  - steady: {{constant: {{rate: 200, duration: 10s}}, get: /}}\n  \
         - rest: {{idle: 5s}}\n"
    );
    parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn searched(find: &str) -> Scenario {
    scenario(&format!("configurations: {{only: {{gc: serial}}}}\ntarget: ['p99<50ms', 'failed==0']\nfind: {{{find}}}"))
}

/// A complete series: its trials, the notes, and how it ended.
pub(crate) fn series(strategy: &dyn Strategy, executor: &mut dyn Executor) -> (Vec<Trial>, Notes, Result<Vec<Error>>) {
    let (mut trials, mut notes) = (Vec::new(), Notes::default());
    let ended = run(strategy, executor, &mut notes, &mut trials);
    assert_eq!(notes.finished, trials, "the sink and the caller have the same trials");
    assert_eq!(notes.started.len(), trials.len());
    (trials, notes, ended)
}

fn search(scenario: &Scenario, made_up: &mut MadeUpTrials) -> (Vec<Trial>, FindRecord) {
    let (trials, _, ended) = series(&Search::new(scenario, LIMIT_MAX).unwrap(), made_up);
    assert!(ended.unwrap().is_empty());
    let record = found(scenario, &trials).unwrap();
    (trials, record)
}

/// Passes every plan as text to another directory, to which its paths are then relative.
struct Elsewhere(MadeUpTrials);

impl Executor for Elsewhere {
    fn conduct(&mut self, plan: &TrialPlan, sink: &mut dyn Sink) -> Made {
        let handed = serde_json::to_string(&plan.clone().seen_from(Path::new("/x"))).unwrap();
        assert!(!handed.contains("/x\""), "{handed}");
        let arrived: TrialPlan = serde_json::from_str(&handed).unwrap();
        self.0.conduct(&arrived.put_into(Path::new("/x")), sink)
    }
}

#[test]
fn plans_passed_as_text_give_the_same_series() {
    let noisy = Server { noise: 0.002, ..Server::default() };
    let made_up = || MadeUpTrials { seed: 3, ..MadeUpTrials::of(noisy.clone()).with(2, Mishap::NoisyMachine) };
    let mut compared =
        scenario("configurations: {a: {heap: 64m}, b: {heap: 80m, gc: g1}}\ntrials: 5\ncompare: {repeats: 2}");
    compared.configurations[0].inputs = Some("0a".to_owned());
    let (lines, rates) = (
        searched("step: 2%"),
        scenario("configurations: {only: {gc: serial, limit: 512m}}\ntarget: ['p99<50ms']\nfind: {max_rate: true}"),
    );
    let strategies: [&dyn Strategy; 3] = [
        &Blocks::new(&compared, &compared.compare),
        &Search::new(&lines, LIMIT_MAX).unwrap(),
        &Search::new(&rates, LIMIT_MAX).unwrap(),
    ];
    for strategy in strategies {
        let (mut here, mut elsewhere) = (made_up(), Elsewhere(made_up()));
        let (trials, notes, ended) = series(strategy, &mut here);
        let (same, told, too) = series(strategy, &mut elsewhere);
        assert_eq!((here.plans, notes.started), (elsewhere.0.plans, told.started));
        assert_eq!((&trials, ended.is_ok()), (&same, too.is_ok()));
        let inputs = |trial: &Trial| (trial.configuration == "a").then(|| "0a".to_owned());
        assert!(trials.len() > 9 && trials.iter().all(|trial| trial.inputs == inputs(trial)));
    }
}

fn verdicts(trials: &[Trial]) -> Vec<ProbeVerdict> {
    trials.iter().map(|trial| trial.probe.as_ref().unwrap().verdict).collect()
}

#[test]
fn a_search_finds_the_memory_a_server_needs() {
    let (of, scenario) = (Server::default(), searched("warm: true"));
    let mut made_up = MadeUpTrials::of(of.clone());
    let (trials, record) = search(&scenario, &mut made_up);
    let line = record.line.unwrap();
    let heap = line.heap_bytes.unwrap();
    assert!((of.heap_min()..of.heap_min() + 2 * MIB).contains(&heap), "{line:?}");
    let truth = of.limit_min(heap);
    assert!(line.limit_bytes >= truth && line.limit_bytes as f64 <= truth as f64 * 1.0201, "{line:?} {truth}");
    assert_eq!((line.held, line.cause, record.outcome), (5, Some(FailureCause::FilePages), FindOutcome::Found));
    assert!(record.warm.unwrap().limit_bytes < line.limit_bytes);
    assert!(record.text.starts_with("5 of 5 trials in a row passed at"), "{}", record.text);
    assert_eq!(
        trials.iter().map(|trial| trial.index).collect::<Vec<_>>(),
        (0..trials.len() as u32).collect::<Vec<_>>()
    );
}

#[test]
fn only_the_first_trial_has_a_full_look_and_others_are_guarded() {
    let scenario = searched("warm: false");
    let mut made_up = MadeUpTrials::of(Server::default());
    search(&scenario, &mut made_up);
    let (first, others) = made_up.plans.split_first().unwrap();
    assert_eq!((first.look, first.list_files, first.guard.phases.len()), (Look::Full, true, 0));
    assert_eq!((first.load.len(), first.subject.ready_within.as_s()), (3, 60.0));
    for plan in others {
        assert_eq!((plan.look, plan.list_files, plan.load.len()), (Look::Outside, false, 2), "no rest: {}", plan.title);
        assert_eq!(plan.pages, Some(Pages::Cold));
        let names: Vec<&str> = plan.guard.phases.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["warmup", "steady"]);
        assert!(plan.guard.phases[1].late[0].bound_ms == 50.0 && plan.subject.ready_within.as_s() < 60.0);
        assert!(plan.configuration.jvm.last().unwrap().starts_with("-Xmx"), "{:?}", plan.configuration.jvm);
    }
}

fn stages(trials: &[Trial]) -> Vec<ProbeStage> {
    trials.iter().map(|trial| trial.probe.as_ref().unwrap().stage).collect()
}

/// A subject that needs more heap to start than under load: no load is sent with a heap that does not start.
#[test]
fn a_heap_that_fails_to_start_is_followed_by_starts_without_load() {
    let server = Server { start: 60 * MIB, ..Server::default() };
    let mut made_up = MadeUpTrials::of(server.clone());
    let (trials, record) = search(&searched(""), &mut made_up);
    assert_eq!(stages(&trials)[..3], [ProbeStage::Reference, ProbeStage::Heap, ProbeStage::HeapStart]);
    for (plan, trial) in made_up.plans.iter().zip(&trials).skip(2) {
        let probe = trial.probe.as_ref().unwrap();
        let alone = probe.stage == ProbeStage::HeapStart;
        assert_eq!((plan.load.is_empty(), plan.pages == Some(Pages::Warm)), (alone, alone), "{}", plan.title);
        assert!(alone || probe.heap_bytes >= Some(server.start), "{}", plan.title);
        assert_eq!(probe.verdict == ProbeVerdict::Holds, trial.ready_s.is_some() && probe.cause.is_none());
        let within_s = plan.subject.ready_within.as_s();
        assert_eq!(within_s, if alone { 5.0 } else { 10.0 }, "{}", plan.title);
    }
    let heap = record.line.unwrap().heap_bytes.unwrap();
    assert!((server.start..server.start + 2 * MIB).contains(&heap), "{heap}");
    assert!(stages(&trials).iter().filter(|stage| **stage == ProbeStage::Heap).count() == 2, "{:?}", stages(&trials));
}

/// Direct memory that a collection leaves, and what accumulates without collections.
#[test]
fn direct_memory_gets_its_own_ceiling_unless_one_is_given() {
    let (direct, direct_greed, native) = (48 * MIB, 400 * MIB, 110 * MIB);
    let server = Server { direct, direct_greed, native, ..Server::default() };
    let (trials, record) = search(&searched(""), &mut MadeUpTrials::of(server.clone()));
    let line = record.line.unwrap();
    // The ceiling exceeds what a collection leaves by a quarter and 4 MiB.
    let heap = line.heap_bytes.unwrap();
    assert_eq!((line.direct_bytes, heap < server.heap_min() + 3 * MIB), (Some(64 * MIB), true), "{heap}");
    let truth = server.limit_min(heap) + 16 * MIB;
    assert!(line.limit_bytes >= truth && line.limit_bytes as f64 <= truth as f64 * 1.0201, "{line:?} {truth}");
    assert!(trials.len() <= 14, "{}", trials.len());
    let given = "configurations: {only: {gc: serial, jvm: ['-XX:MaxDirectMemorySize=90m']}}\ntarget: ['p99<50ms']";
    let (trials, record) = search(&scenario(given), &mut MadeUpTrials::of(server));
    assert!(trials.iter().all(|trial| trial.probe.as_ref().unwrap().direct_bytes.is_none()));
    assert_eq!(record.line.unwrap().direct_bytes, None);
}

/// The machine disturbs a trial that would have passed: it is repeated, and the line stays the same.
#[test]
fn a_noisy_machine_costs_trials_but_does_not_move_the_line() {
    let scenario = searched("warm: false");
    let (quiet, expect) = search(&scenario, &mut MadeUpTrials::of(Server::default()));
    for at in 0..quiet.len() as u32 {
        let mut made_up = MadeUpTrials::of(Server::default()).with(at, Mishap::NoisyMachine);
        let (trials, record) = search(&scenario, &mut made_up);
        let limits = |record: &FindRecord| record.line.as_ref().map(|line| (line.limit_bytes, line.heap_bytes));
        assert_eq!(limits(&record), limits(&expect), "disturbed: {at}");
        // A trial's failure for lack of memory is not due to noise.
        let failed = verdicts(&quiet)[at as usize] == ProbeVerdict::Fails;
        assert_eq!(trials.len(), quiet.len() + usize::from(!failed), "disturbed: {at}");
    }
}

#[test]
fn a_permanently_noisy_machine_does_not_cause_an_endless_loop() {
    let mut made_up = MadeUpTrials::of(Server::default());
    made_up.mishaps.extend((0..100).map(|index| (index, Mishap::NoisyMachine)));
    let (trials, record) = search(&searched("warm: false"), &mut made_up);
    assert_eq!(verdicts(&trials), [vec![ProbeVerdict::Discarded; 3], vec![ProbeVerdict::Fails]].concat());
    assert_eq!((record.outcome, record.line), (FindOutcome::NotHeld, None));
    assert!(record.text.contains("p99.steady was 812 ms, but the target is p99<50ms"), "{}", record.text);
}

/// A single late trial near the edge is repeated.
#[test]
fn a_single_late_trial_near_the_edge_is_repeated() {
    let scenario = searched("warm: false");
    let (quiet, expect) = search(&scenario, &mut MadeUpTrials::of(Server::default()));
    let last = quiet.len() as u32 - 1;
    let (trials, record) = search(&scenario, &mut MadeUpTrials::of(Server::default()).with(last, Mishap::Late));
    assert!(trials.len() > quiet.len());
    let (line, without) = (record.line.unwrap(), expect.line.unwrap());
    assert!(line.limit_bytes >= without.limit_bytes, "{line:?} {without:?}");
    assert!(line.limit_bytes as f64 <= without.limit_bytes as f64 * 1.1, "{line:?} {without:?}");
}

#[test]
fn a_target_that_cannot_be_measured_ends_the_search() {
    let mut made_up = MadeUpTrials::of(Server::default());
    made_up.mishaps.extend((0..100).map(|index| (index, Mishap::Unmeasured)));
    let (trials, _, ended) = series(&Search::new(&searched("warm: false"), LIMIT_MAX).unwrap(), &mut made_up);
    let error = ended.unwrap_err();
    assert_eq!((error.kind, trials.len()), (ErrorKind::Subject, 4), "{error}");
    assert!(error.what.contains("`p99.warmup` was not measured") || error.what.contains("was not measured"), "{error}");
}

#[test]
fn an_unmeasured_trial_is_repeated() {
    let scenario = searched("warm: false");
    let (quiet, expect) = search(&scenario, &mut MadeUpTrials::of(Server::default()));
    let (trials, record) = search(&scenario, &mut MadeUpTrials::of(Server::default()).with(4, Mishap::Unmeasured));
    assert_eq!((trials.len(), verdicts(&trials)[4]), (quiet.len() + 1, ProbeVerdict::Discarded));
    assert_eq!(record.line.unwrap().limit_bytes, expect.line.unwrap().limit_bytes);
}

#[test]
fn a_pass_with_pages_charged_to_others_does_not_count() {
    let scenario = searched("warm: false");
    let (quiet, _) = search(&scenario, &mut MadeUpTrials::of(Server::default()));
    let (trials, _) =
        search(&scenario, &mut MadeUpTrials::of(Server::default()).with(0, Mishap::SharedPages(40 * MIB)));
    assert_eq!((trials.len(), verdicts(&trials)[0]), (quiet.len() + 1, ProbeVerdict::Discarded));
    assert_eq!(trials[0].probe.as_ref().unwrap().why, ["40.0 MiB of its file pages were charged to other cgroups"]);
}

#[test]
fn a_hopeless_trial_is_a_failure_with_its_measurement() {
    let scenario = searched("warm: false");
    let (trials, _) = search(&scenario, &mut MadeUpTrials::of(Server::default()).with(5, Mishap::Hopeless));
    let probe = trials[5].probe.as_ref().unwrap();
    assert_eq!((probe.verdict, probe.cause), (ProbeVerdict::Fails, Some(FailureCause::Times)));
    assert_eq!((probe.missed.len(), probe.missed[0].value), (1, 22.0));
    assert!(probe.why[0].starts_with("the trial was ended early: response.steady: 22 answers"), "{:?}", probe.why);
}

#[test]
fn a_failed_first_trial_is_an_error_that_names_a_lack_of_memory() {
    let scenario = searched("warm: false, limit_max: 64m");
    let (trials, _, ended) =
        series(&Search::new(&scenario, 64 * MIB).unwrap(), &mut MadeUpTrials::of(Server::default()));
    let error = ended.unwrap_err();
    assert_eq!((trials.len(), trials[0].outcome, error.kind), (1, Outcome::Killed, ErrorKind::Subject));
    assert!(error.hint.as_ref().unwrap().contains("64.0 MiB is too little: raise `--limit-max`"), "{error}");
    let mut made_up = MadeUpTrials::of(Server::default()).with(0, Mishap::Dies);
    let (_, _, ended) = series(&Search::new(&searched("warm: false"), LIMIT_MAX).unwrap(), &mut made_up);
    assert_eq!(ended.unwrap_err().hint, None);
}

/// A search interrupted at any trial resumes to the same result.
#[test]
fn a_search_resumes_after_any_interruption() {
    let scenario = searched("warm: true");
    // At least one trial of each kind.
    let of = Server { noise: 0.004, start: 40 * MIB, direct: 44 * MIB, direct_greed: 90 * MIB, ..Server::default() };
    let (whole, expect) = search(&scenario, &mut MadeUpTrials::of(of.clone()));
    for cut in 0..whole.len() as u32 {
        let strategy = Search::new(&scenario, LIMIT_MAX).unwrap();
        let (mut trials, _, ended) =
            series(&strategy, &mut MadeUpTrials::of(of.clone()).with(cut, Mishap::Interrupted));
        assert_eq!((ended.unwrap_err().kind, trials.len()), (ErrorKind::Interrupted, cut as usize + 1));
        assert_eq!(trials.last().unwrap().probe.as_ref().unwrap().verdict, ProbeVerdict::Discarded);
        let again = Search::new(&scenario, Search::limit_max_of(&trials).unwrap_or(LIMIT_MAX)).unwrap();
        run(&again, &mut MadeUpTrials::of(of.clone()), &mut Notes::default(), &mut trials).unwrap();
        let record = found(&scenario, &trials).unwrap();
        assert_eq!(record.outcome, expect.outcome, "cut: {cut}");
        let (line, same) = (record.line.unwrap(), expect.line.clone().unwrap());
        let ratio = line.limit_bytes as f64 / same.limit_bytes as f64;
        assert!((ratio - 1.0).abs() < 0.05 && line.held == same.held, "cut: {cut}: {line:?} {same:?}");
    }
}

#[test]
fn a_rate_search_keeps_the_limit() {
    let more = "configurations: {only: {gc: serial, limit: 400m}}\ntarget: ['rate>=98%']\nfind: {max_rate: true}";
    let scenario = scenario(more);
    let of = Server { rate_max: 3000.0, ..Server::default() };
    let (trials, _, ended) = series(&Search::new(&scenario, 400 * MIB).unwrap(), &mut MadeUpTrials::of(of));
    ended.unwrap();
    let rate = found(&scenario, &trials).unwrap().rate.unwrap();
    // 98% of the offered rate is required.
    assert!((3000.0 / 1.021..=3000.0 / 0.98 + 1.0).contains(&rate.rate_per_s), "{rate:?}");
    assert!(trials.iter().all(|trial| trial.limit_bytes == Some(400 * MIB)));
    assert!(trials.iter().all(|trial| trial.probe.as_ref().unwrap().stage == ProbeStage::Rate));
}

#[test]
fn one_limit_is_proved_or_refuted() {
    let of = Server { greed: 64 * MIB, ..Server::default() };
    let truth = of.limit_min(64 * MIB);
    let outcome = |limit: u64| {
        let more = format!("configurations: {{only: {{heap: 64m}}}}\ntarget: ['p99<50ms']\nfind: {{prove: {limit}}}");
        let (trials, record) = search(&scenario(&more), &mut MadeUpTrials::of(of.clone()));
        (trials.len(), record.outcome)
    };
    assert_eq!(outcome(truth + MIB), (5, FindOutcome::AtLowerBound));
    assert_eq!(outcome(truth - MIB), (2, FindOutcome::Never));
}

/// A subject that runs with a different flag than requested.
struct ChangesFlag {
    made_up: MadeUpTrials,
    asked: &'static str,
    in_force: &'static str,
}

impl Executor for ChangesFlag {
    fn conduct(&mut self, plan: &TrialPlan, sink: &mut dyn Sink) -> Made {
        let mut made = self.made_up.conduct(plan, sink);
        let (asked, in_force) = (self.asked.to_owned(), self.in_force.to_owned());
        made.trial.doubts.push(loadline::doubt::Doubt::FlagChanged { asked, in_force }.into());
        made
    }
}

#[test]
fn a_heap_set_by_the_command_cannot_be_searched() {
    let mut executor =
        ChangesFlag { made_up: MadeUpTrials::of(Server::default()), asked: "-Xmx26m", in_force: "-Xmx1g" };
    let (trials, _, ended) = series(&Search::new(&searched("warm: false"), LIMIT_MAX).unwrap(), &mut executor);
    let error = ended.unwrap_err();
    assert_eq!((trials.len(), error.kind), (2, ErrorKind::Request), "{error}");
    assert!(error.hint.unwrap().contains("--as-is"));
}

/// A different flag is a doubt, but does not end the search.
#[test]
fn a_different_flag_does_not_end_a_search() {
    let (asked, in_force) = ("-XX:MaxGCPauseMillis=5", "200");
    let mut executor = ChangesFlag { made_up: MadeUpTrials::of(Server::default()), asked, in_force };
    let (_, _, ended) = series(&Search::new(&searched("warm: false"), LIMIT_MAX).unwrap(), &mut executor);
    ended.unwrap();
}

// ---- Blocks ----

pub(crate) fn two(more: &str) -> Scenario {
    scenario(&format!("configurations: {{a: {{heap: 64m}}, b: {{heap: 96m}}}}\n{more}"))
}

pub(crate) fn blocks(scenario: &Scenario, made_up: &mut MadeUpTrials) -> (Vec<Trial>, Notes, Result<Vec<Error>>) {
    series(&Blocks::new(scenario, &scenario.compare), made_up)
}

#[test]
fn every_block_runs_each_configuration_once_in_random_order() {
    let scenario = two("trials: 20\nseed: 3");
    let (trials, notes, ended) = blocks(&scenario, &mut MadeUpTrials::of(Server::default()));
    assert!(ended.unwrap().is_empty());
    assert_eq!(trials.len(), 40);
    let mut firsts = Vec::new();
    for (block, of) in trials.chunks(2).enumerate() {
        assert!(of.iter().all(|trial| trial.block == block as u32 && trial.outcome == Outcome::Completed));
        assert_ne!(of[0].configuration, of[1].configuration);
        firsts.push(of[0].configuration.as_str());
    }
    assert!(firsts.contains(&"a") && firsts.contains(&"b"));
    let place = notes.started[2].split_once(" (").unwrap().1;
    assert!(place.starts_with("3 of 40, about ") && place.ends_with(" left)"), "{place}");
    let again = blocks(&scenario, &mut MadeUpTrials::of(Server::default())).0;
    assert_eq!(trials, again, "the same seed yields the same trials");
}

#[test]
fn single_trials_run_in_the_order_of_the_scenario() {
    for seed in 0..16 {
        let (trials, ..) = blocks(&two(&format!("trials: 1\nseed: {seed}")), &mut MadeUpTrials::of(Server::default()));
        assert_eq!(trials.iter().map(|trial| trial.configuration.as_str()).collect::<Vec<_>>(), ["a", "b"], "{seed}");
    }
}

/// Derived figures are part of each trial as soon as it ends.
#[test]
fn a_trial_is_judged_with_its_figures() {
    let figure = "figures: [{elasticity: {of: rss, base: start, spike: loaded, valley: collected, ideal: 0.8}}]";
    let figures = |more: &str| {
        let (trials, ..) = blocks(&two(more), &mut MadeUpTrials::of(Server::default()));
        trials.iter().map(|trial| trial.figures.len()).collect::<Vec<_>>()
    };
    assert_eq!((figures(&format!("trials: 1\n{figure}")), figures("trials: 1")), (vec![1, 1], vec![0, 0]));
}

#[test]
fn a_failed_subject_does_not_stop_others_but_a_machine_error_does() {
    let scenario = two("trials: 3");
    let (trials, _, ended) = blocks(&scenario, &mut MadeUpTrials::of(Server::default()).with(1, Mishap::Dies));
    let survived = ended.unwrap();
    assert_eq!((trials.len(), survived.len()), (6, 1));
    assert_eq!(trials[1].outcome, Outcome::SubjectFailed);
    for (mishap, kind) in [(Mishap::MachineFails, ErrorKind::Machine), (Mishap::Interrupted, ErrorKind::Interrupted)] {
        let (trials, _, ended) = blocks(&scenario, &mut MadeUpTrials::of(Server::default()).with(2, mishap));
        assert_eq!((ended.unwrap_err().kind, trials.len(), trials[2].outcome), (kind, 3, Outcome::Aborted));
    }
}

/// With seed 3, the candidate is drawn first, but the baseline still runs first.
#[test]
fn blocks_stop_when_nothing_is_left_to_compare() {
    let dies = |more: &str, at: u32| {
        let (trials, _, ended) = blocks(&two(more), &mut MadeUpTrials::of(Server::default()).with(at, Mishap::Dies));
        (trials.iter().map(|trial| trial.configuration.clone()).collect::<Vec<_>>(), ended.map(|all| all.len()))
    };
    for (more, first) in [("trials: 3\nseed: 3", "a"), ("trials: 3\nseed: 3\ncompare: {baseline: b}", "b")] {
        let (ran, ended) = dies(more, 0);
        let error = ended.unwrap_err();
        assert_eq!((ran.as_slice(), error.kind), (&[first.to_owned()][..], ErrorKind::Subject));
        assert!(error.context.iter().any(|line| line.ends_with("nothing is left to compare")), "{error}");
    }
    assert_eq!(dies("trials: 3", 2).1.unwrap(), 1, "later failures do not stop the series");
}

#[test]
fn a_disturbed_block_is_repeated_after_all_others() {
    let mut scenario = two("trials: 3");
    scenario.compare.repeats = 2;
    let (trials, notes, _) = blocks(&scenario, &mut MadeUpTrials::of(Server::default()).with(2, Mishap::NoisyMachine));
    assert_eq!(trials.len(), 8);
    assert!(trials[6..].iter().all(|trial| (trial.block, trial.repeats) == (3, Some(1))), "{:?}", trials[7].repeats);
    for title in &notes.started[6..] {
        assert!(title.contains("(block 4, repeating block 2 (disturbed: "), "{title}");
    }
}

/// More blocks distinguish two similar configurations, up to the allowed number.
#[test]
fn blocks_run_until_the_comparison_is_decided() {
    let mut scenario = two("trials: 3");
    scenario.compare.until_sure = Some(14);
    scenario.compare.metrics = vec!["rss.loaded".to_owned()];
    let ended = |noise: f64| {
        let mut made_up = MadeUpTrials::of(Server { noise, ..Server::default() });
        made_up.seed = 5;
        (blocks(&scenario, &mut made_up).0.len() / 2) as u32
    };
    assert_eq!(ended(0.002), 5, "low noise ends the series at the first check");
    assert_eq!(ended(0.5), 14, "high noise uses all allowed blocks");
}

/// A new kind of series only needs a strategy: here, the smallest of some heaps that works.
#[test]
fn a_custom_strategy_can_be_implemented() {
    struct Smallest<'a>(&'a Scenario, Vec<u64>);
    impl Strategy for Smallest<'_> {
        fn next<'t>(&'t self, trials: &'t [Trial]) -> Option<NextTrial<'t>> {
            let worked = trials.last().is_some_and(|trial| trial.outcome == Outcome::Completed);
            let heap = self.1.get(trials.len()).filter(|_| !worked)?;
            let mut configuration = self.0.configurations[0].clone();
            configuration.jvm.push(format!("-Xmx{}m", heap / MIB));
            let plan = TrialPlan { index: trials.len() as u32, ..TrialPlan::of(self.0, &configuration) };
            Some(NextTrial { plan, judge: Box::new(|_| {}) })
        }

        fn after(&self, _trials: &[Trial], _error: Option<Error>) -> Result<Option<Error>> {
            Ok(None)
        }
    }
    let scenario = searched("warm: false");
    let smallest = Smallest(&scenario, [8, 16, 24, 32, 64].map(|mib| mib * MIB).to_vec());
    let (trials, _, ended) = series(&smallest, &mut MadeUpTrials::of(Server::default()));
    assert!(ended.is_ok());
    let outcomes: Vec<Outcome> = trials.iter().map(|trial| trial.outcome).collect();
    assert_eq!(outcomes, [vec![Outcome::SubjectFailed; 3], vec![Outcome::Completed]].concat(), "it needs 25 MiB");
}
