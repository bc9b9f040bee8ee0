//! Complete series on simulated servers as snapshots: every trial with its settings, guard, and verdict, and the
//! conclusion. They show every change in a search's rules.

use crate::made_up::{LIMIT_MAX, MadeUpTrials, Mishap, Server};
use crate::whole::{blocks, scenario, series, two};
use loadline::record::{FindRecord, Trial};
use loadline::scenario::{PhaseGuard, Scenario, TrialPlan};
use loadline::series::search::{Search, found};
use loadline::units::MIB;
use serde_json::Value;
use std::fmt::Write;

/// Rounds to six digits, to ignore the last bits of logarithms.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap();
            format!("{exact:.6e}").parse::<f64>().unwrap().into()
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        other => other,
    }
}

fn guard(of: &PhaseGuard) -> String {
    let late: Vec<String> = of
        .late
        .iter()
        .map(|late| format!("{} later than {} ms ({:?})", late.requests_max, late.bound_ms, late.time))
        .collect();
    let numbers = (of.seconds_max, of.failed_max, of.rate_min_per_s);
    let numbers = rounded(serde_json::to_value(numbers).unwrap());
    format!("{}: [seconds, failed, rate] {numbers}, late {late:?}", of.name)
}

/// Describes a trial's input and outcome.
fn told(plan: &TrialPlan, trial: &Trial) -> String {
    let mut text = format!("{} [block {}, trial {}]\n", plan.title, plan.block, plan.index);
    let configuration = &plan.configuration;
    let limit = configuration.limit.map_or(0, |limit| limit.0);
    writeln!(text, "  given: limit {limit}, {}", configuration.jvm_options().join(" ")).unwrap();
    let subject = &plan.subject;
    let (ready, end) = (subject.ready_within.as_s(), subject.end_within.as_s());
    let rate = rounded(plan.load.rate_per_s().into());
    writeln!(
        text,
        "  plan: {:?}, pages {:?}, lists files {}, {} phases, rate {rate}, ready within {ready} s, ends within {end} s",
        plan.look,
        plan.pages,
        plan.list_files,
        plan.load.len()
    )
    .unwrap();
    plan.guard.phases.iter().for_each(|phase| writeln!(text, "  guard: {}", guard(phase)).unwrap());
    if let Some(probe) = &trial.probe {
        writeln!(text, "  probe: {}", rounded(serde_json::to_value(probe).unwrap())).unwrap();
    }
    text
}

/// A series in words, with the conclusion if it is a search.
fn course(made_up: &MadeUpTrials, trials: &[Trial], ended: &str, record: Option<&FindRecord>) -> String {
    let mut text: String = made_up.plans.iter().zip(trials).map(|(plan, trial)| told(plan, trial)).collect();
    writeln!(text, "ended: {ended}").unwrap();
    if let Some(record) = record {
        let record = rounded(serde_json::to_value(record).unwrap());
        writeln!(text, "concluded: {}", serde_json::to_string_pretty(&record).unwrap()).unwrap();
    }
    text
}

fn searched(scenario: &Scenario, limit_max: u64, mut made_up: MadeUpTrials) -> String {
    let (trials, _, ended) = series(&Search::new(scenario, limit_max).unwrap(), &mut made_up);
    let ended = ended.map_or_else(|error| format!("{error}"), |survived| format!("{} errors survived", survived.len()));
    course(&made_up, &trials, &ended, found(scenario, &trials).as_ref())
}

const HEAP: &str = "configurations: {only: {gc: serial}}\ntarget: ['p99<50ms', 'failed==0']\n";

#[test]
fn a_search_for_heap_limit_and_warm_line() {
    let text =
        searched(&scenario(&format!("{HEAP}find: {{warm: true}}")), LIMIT_MAX, MadeUpTrials::of(Server::default()));
    insta::assert_snapshot!(text);
}

#[test]
fn a_search_with_direct_memory() {
    let server = Server { direct: 48 * MIB, ..Server::default() };
    insta::assert_snapshot!(searched(
        &scenario(&format!("{HEAP}find: {{warm: false}}")),
        LIMIT_MAX,
        MadeUpTrials::of(server)
    ));
}

#[test]
fn a_search_in_which_more_heap_saves_cpu() {
    let server = Server { churn: 0.4, noise: 0.002, ..Server::default() };
    let scenario = scenario(&format!("{HEAP}find: {{warm: false, step: 5%, headroom: 20%, proofs: 3}}"));
    insta::assert_snapshot!(searched(&scenario, LIMIT_MAX, MadeUpTrials::of(server)));
}

#[test]
fn a_search_with_the_heap_chosen_by_the_jvm() {
    let server = Server { greed: 40 * MIB, ..Server::default() };
    let more = "configurations: {only: {jvm: ['-XX:MaxRAMPercentage=75']}}\ntarget: ['p90<50ms']\nfind: {warm: false}";
    insta::assert_snapshot!(searched(&scenario(more), LIMIT_MAX, MadeUpTrials::of(server)));
}

#[test]
fn a_search_with_a_given_heap_and_a_noisy_server() {
    let server = Server { noise: 0.01, greed: 64 * MIB, ..Server::default() };
    let more = "configurations: {only: {heap: 64m}}\ntarget: ['service.max<1s', 'failed<0.1%']\nfind: {warm: true}";
    insta::assert_snapshot!(searched(&scenario(more), LIMIT_MAX, MadeUpTrials::of(server)));
}

#[test]
fn a_search_with_random_failures() {
    let made_up = MadeUpTrials::of(Server::default())
        .with(1, Mishap::NoisyMachine)
        .with(3, Mishap::Late)
        .with(6, Mishap::SharedPages(40 * MIB))
        .with(8, Mishap::Unmeasured)
        .with(9, Mishap::Hopeless)
        .with(11, Mishap::Dies);
    insta::assert_snapshot!(searched(&scenario(&format!("{HEAP}find: {{warm: true}}")), LIMIT_MAX, made_up));
}

#[test]
fn proofs_of_one_sufficient_and_one_insufficient_limit() {
    let server = Server { greed: 64 * MIB, ..Server::default() };
    let truth = server.limit_min(64 * MIB);
    let prove = |limit: u64| {
        let more = format!("configurations: {{only: {{heap: 64m}}}}\ntarget: ['p99<50ms']\nfind: {{prove: {limit}}}");
        searched(&scenario(&more), LIMIT_MAX, MadeUpTrials::of(server.clone()))
    };
    insta::assert_snapshot!(format!("{}\n{}", prove(truth + MIB), prove(truth - MIB)));
}

#[test]
fn a_search_for_the_highest_rate() {
    let more = "configurations: {only: {gc: serial, limit: 400m}}\ntarget: ['rate>=98%']\nfind: {max_rate: true}";
    let server = Server { rate_max: 3000.0, ..Server::default() };
    insta::assert_snapshot!(searched(&scenario(more), 400 * MIB, MadeUpTrials::of(server)));
}

#[test]
fn a_search_in_which_no_rate_passes() {
    let more = "configurations: {only: {gc: serial, limit: 400m}}\ntarget: ['rate>=98%']\nfind: {max_rate: true}";
    let server = Server { rate_max: 0.001, ..Server::default() };
    insta::assert_snapshot!(searched(&scenario(more), 400 * MIB, MadeUpTrials::of(server)));
}

#[test]
fn a_search_whose_target_is_always_missed() {
    let more = "configurations: {only: {gc: serial}}\ntarget: ['p99<5ms', 'rate>=98%']\nfind: {warm: false}";
    insta::assert_snapshot!(searched(&scenario(more), LIMIT_MAX, MadeUpTrials::of(Server::default())));
}

#[test]
fn a_search_whose_target_is_met_only_once() {
    let mut made_up = MadeUpTrials::of(Server::default());
    made_up.mishaps.extend((1..100).map(|index| (index, Mishap::Late)));
    insta::assert_snapshot!(searched(&scenario(&format!("{HEAP}find: {{warm: false}}")), 200 * MIB, made_up.clone()));
    insta::assert_snapshot!(searched(&scenario(&format!("{HEAP}find: {{warm: false}}")), 300 * MIB, made_up));
}

#[test]
fn a_search_with_too_few_trials() {
    let scenario = scenario(&format!("{HEAP}find: {{trials_max: 4, limit_min: 90m}}"));
    insta::assert_snapshot!(searched(&scenario, LIMIT_MAX, MadeUpTrials::of(Server::default())));
}

#[test]
fn a_search_that_ends_at_the_minimum_limit() {
    let scenario = scenario(&format!("{HEAP}find: {{limit_min: 150m, warm: false}}"));
    insta::assert_snapshot!(searched(&scenario, LIMIT_MAX, MadeUpTrials::of(Server::default())));
}

#[test]
fn a_comparison_with_disturbed_blocks() {
    let mut scenario = two("trials: 3\nseed: 7");
    (scenario.compare.repeats, scenario.compare.until_sure) = (2, Some(8));
    scenario.compare.metrics = vec!["rss.loaded".to_owned(), "cpu_per_1000.steady".to_owned()];
    let mut made_up = MadeUpTrials::of(Server { noise: 0.02, ..Server::default() })
        .with(2, Mishap::NoisyMachine)
        .with(9, Mishap::NoisyMachine);
    let (trials, _, ended) = blocks(&scenario, &mut made_up);
    let ended = format!("{} errors survived", ended.unwrap().len());
    insta::assert_snapshot!(course(&made_up, &trials, &ended, None));
}
