//! Complete fleets on simulated servers and nodes that fail, vanish, and repeat entries: from the plan through real
//! searches to the document, with results in any order.

use crate::made_up::{LIMIT_MAX, MadeUpTrials, Mishap, Server, Silence, conditions, scenario};
use loadline::fleet::{self, Plan, Standing, question};
use loadline::numbers::SplitMix64;
use loadline::record::{
    EntryOutcome, EntryResult, FLEET_ENTRY_SCHEMA, FleetDocument, LineVerdict, Machine, NodeRecord, PlanEntry, Task,
    Trial, Why,
};
use loadline::result::{AllBlocks, Judgement, JudgementSettings, NodeBlocks};
use loadline::scenario::{Last, PastLine, Scenario};
use loadline::series::search::{self, Search};
use loadline::series::{self, Blocks};
use loadline::units::{Bytes, MIB, unix_s, utc};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) const MADE: &str = "2026-11-23T01:00:00Z";
pub(crate) const SERVICES: u32 = 300;
pub(crate) const NODES: u32 = 10;
/// The approximate duration of a search on a node.
pub(crate) const SEARCH_S: f64 = 600.0;

/// A third of the services are new, a third are known, and a third have too little memory.
pub(crate) fn plan(services: u32) -> Plan {
    let entry = |index: u32| {
        let name = format!("service-{index:03}");
        let mut scenario = scenario(
            &name,
            "configurations: {only: {gc: serial}}\ntarget: ['p99<50ms', 'failed==0']\nfind: {warm: false}",
        );
        scenario.seed = u64::from(index);
        let night =
            |night: u64| PastLine { at: utc(1_792_000_000.0 + 86_400.0 * night as f64), limit_bytes: 120 * MIB };
        let last = Last {
            proved_at: Some("2026-11-22T01:00:00Z".to_owned()),
            cpu_model: Some("made up".to_owned()),
            past: (0..30).map(night).collect(),
            ..Last::of(Bytes::mib(120))
        };
        PlanEntry {
            index,
            question: question(&scenario).unwrap(),
            name,
            task: Task::Search { why: Why::LongAgo },
            minutes: 60.0,
            declared_bytes: Some(if index.is_multiple_of(3) { 64 * MIB } else { 512 * MIB }),
            last: (!index.is_multiple_of(5)).then_some(last),
            scenario,
        }
    };
    Plan::new("nightly", MADE.to_owned(), (0..services).map(entry).collect()).unwrap()
}

/// A service's server; each needs a different amount.
pub(crate) fn server(index: u32) -> Server {
    Server { native: (40 + u64::from(index) % 37) * MIB, noise: 0.004, ..Server::default() }
}

/// A node's result; an answer contains everything from the search.
pub(crate) fn result(
    plan: &Plan,
    index: u32,
    outcome: EntryOutcome,
    began_s: f64,
    node: u32,
    trials: &[Trial],
) -> EntryResult {
    let entry = plan.entry(index).unwrap();
    let find = (outcome == EntryOutcome::Answered).then(|| search::found(&entry.scenario, trials)).flatten();
    let found = find.as_ref().and_then(|find| find.line.clone());
    let line = found.map(|line| Last {
        heap_bytes: line.heap_bytes,
        direct_bytes: line.direct_bytes,
        proved_at: Some(utc(began_s)),
        searched_at: Some(utc(began_s)),
        question: Some(entry.question.clone()),
        cpu_model: Some("made up".to_owned()),
        ..Last::of(Bytes(line.limit_bytes))
    });
    let machine = Machine {
        cores: 4,
        cpu_model: Some("made up".to_owned()),
        kernel: "6.1.0".to_owned(),
        cgroup: "v2".to_owned(),
        ..Machine::default()
    };
    let name = format!("n{node}");
    EntryResult {
        schema: FLEET_ENTRY_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.header.hash.clone(),
        index,
        name: entry.name.clone(),
        task: entry.task.clone(),
        outcome,
        why: if outcome == EntryOutcome::Answered { Vec::new() } else { vec!["as was rolled".to_owned()] },
        node: NodeRecord { name, cpus: 4, machine, restarts: 0 },
        started: utc(began_s),
        seconds: SEARCH_S,
        find,
        line,
        archives: Vec::new(),
        doubts: Vec::new(),
    }
}

/// The trials of a search on a service's server.
fn searched(scenario: &Scenario, index: u32, seed: u64) -> Vec<Trial> {
    let mut trials = Vec::new();
    let search = Search::new(scenario, LIMIT_MAX).unwrap();
    series::run(&search, &mut MadeUpTrials { seed, ..MadeUpTrials::of(server(index)) }, &mut Silence, &mut trials)
        .unwrap();
    trials
}

/// Simulates ten nodes of an engine on a bad night; returns the contents of their directories.
fn night(plan: &Plan, seed: u64) -> Vec<(PathBuf, EntryResult)> {
    let mut random = SplitMix64::new(seed);
    let mut free_at = vec![unix_s(MADE).unwrap() as f64; NODES as usize];
    let mut queue: Vec<(u32, u32)> = (0..plan.header.entries).rev().map(|index| (index, 0)).collect();
    let mut left: BTreeMap<PathBuf, EntryResult> = BTreeMap::new();
    while let Some((index, starts)) = queue.pop() {
        let node = (0..NODES).min_by(|one, other| free_at[*one as usize].total_cmp(&free_at[*other as usize])).unwrap();
        let began = free_at[node as usize] + 1.0;
        free_at[node as usize] = began + SEARCH_S;
        let folder = PathBuf::from(format!("n{node}/index-{index:06}"));
        // A complete result is left alone.
        if left.contains_key(&folder) {
            continue;
        }
        let mut hand_in = |outcome: EntryOutcome| {
            let seed = u64::from(index) << 8 | u64::from(starts);
            let trials = match outcome {
                EntryOutcome::Answered => searched(&plan.entries[index as usize].scenario, index, seed),
                _ => Vec::new(),
            };
            left.insert(folder.clone(), result(plan, index, outcome, began, node, &trials));
        };
        let mut again = || (starts < 3).then(|| queue.insert(0, (index, starts + 1)));
        match random.below(100) {
            // The node is lost: the engine restarts the index elsewhere, but the first one may continue.
            0..8 => {
                if random.below(2) == 0 {
                    hand_in(EntryOutcome::Answered);
                }
                again();
                free_at[node as usize] += 3600.0;
            }
            8..12 => {
                hand_in(EntryOutcome::NodeUnfit);
                again();
            }
            12..15 => hand_in(EntryOutcome::SubjectFailed),
            15..17 => hand_in(EntryOutcome::OutOfTime),
            // The run is gone, unnoticed by the engine.
            17 => {}
            _ => hand_in(EntryOutcome::Answered),
        }
    }
    left.into_iter().collect()
}

fn shuffled<T>(mut all: Vec<T>, seed: u64) -> Vec<T> {
    let mut random = SplitMix64::new(seed);
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
    all
}

fn merged(plan: &Plan, found: &[(PathBuf, EntryResult)]) -> (Standing, FleetDocument) {
    let mut standing = Standing::of(plan);
    found.iter().for_each(|(folder, result)| standing.add(folder.clone(), result.clone()).unwrap());
    let document = document(plan, &standing);
    (standing, document)
}

fn document(plan: &Plan, standing: &Standing) -> FleetDocument {
    fleet::document(plan, standing, None, unix_s(MADE).unwrap() + 10 * 86_400)
}

#[test]
fn a_merge_after_many_failures_counts_each_result_once() {
    let plan = plan(SERVICES);
    let found = night(&plan, 7);
    let (_, document) = merged(&plan, &found);
    let standing = &document.standing;
    let of = |index: u32| found.iter().map(|(_, result)| result).filter(move |result| result.index == index);
    let is_answered = |result: &&EntryResult| result.outcome == EntryOutcome::Answered;
    assert_eq!(document.services.len(), SERVICES as usize);
    for service in &document.services {
        let index = service.index;
        let answers: Vec<&EntryResult> = of(index).filter(is_answered).collect();
        assert_eq!(service.name, format!("service-{index:03}"));
        assert_eq!(standing.missing.contains(&index), of(index).count() == 0, "{index}");
        assert_eq!(standing.failed.contains(&index), of(index).count() > 0 && answers.is_empty(), "{index}");
        assert_eq!(standing.double.contains(&index), of(index).count() > 1, "{index}");
        let first = answers.iter().min_by_key(|result| result.started.clone());
        let line = first.and_then(|result| result.line.as_ref());
        assert_eq!(service.line.as_ref().map(|line| line.limit_bytes), line.map(|line| line.limit_bytes), "{index}");
        assert_eq!(service.is_below_line(), first.is_some() && index % 3 == 0, "{index}");
    }
    let counted = standing.answered as usize + standing.missing.len() + standing.failed.len();
    assert_eq!(counted, SERVICES as usize);
    assert!(standing.missing.len() > 1 && standing.failed.len() > 5 && standing.double.len() > 5, "{standing:?}");
    assert_eq!(document.nodes.len(), NODES as usize);
    let wasted = document.services.iter().filter_map(|of| of.wasted_bytes).filter(|wasted| *wasted > 0).sum::<i64>();
    assert_eq!(document.wasted_bytes, wasted as u64);
    assert!(wasted as u64 > 150 * 300 * MIB, "{wasted}");
    let any = |verdict| document.services.iter().any(|of| of.verdict == verdict);
    assert!([LineVerdict::First, LineVerdict::Lower, LineVerdict::Higher, LineVerdict::Same].into_iter().all(any));
}

#[test]
fn the_order_of_results_and_earlier_merges_do_not_matter() {
    let plan = plan(SERVICES);
    let found = night(&plan, 8);
    let (_, whole) = merged(&plan, &found);
    for seed in 0..5 {
        let mixed = shuffled(found.clone(), seed);
        assert_eq!(merged(&plan, &mixed).1, whole);
        // One part already has a document; the rest follows, with repetitions.
        let (part, rest) = mixed.split_at(mixed.len() / 3 * seed as usize % mixed.len());
        let (mut standing, document_of_part) = merged(&plan, part);
        assert!(document_of_part.standing.answered <= whole.standing.answered);
        for (folder, result) in rest.iter().chain(part) {
            standing.add(folder.clone(), result.clone()).unwrap();
        }
        assert_eq!(document(&plan, &standing), whole);
    }
    // Copies are not additional results.
    let copied = found.iter().map(|(folder, result)| (Path::new("copy").join(folder), result.clone()));
    let with_copies: Vec<_> = copied.chain(found.clone()).collect();
    assert_eq!(merged(&plan, &with_copies).1, whole);
}

/// A plan executed by many nodes has the same result as one executed by one process.
#[test]
fn many_nodes_give_the_same_fleet_result_as_one_process() {
    let plan = plan(60);
    let by = |nodes: u32, seed: u64| {
        let worked = |entry: &PlanEntry| {
            let (index, node) = (entry.index, entry.index % nodes);
            let began = unix_s(MADE).unwrap() as f64 + f64::from(index / nodes) * SEARCH_S;
            let trials = searched(&entry.scenario, index, u64::from(index));
            let folder = PathBuf::from(format!("n{node}/index-{index:06}"));
            (folder, result(&plan, index, EntryOutcome::Answered, began, node, &trials))
        };
        let found = shuffled(plan.entries.iter().map(worked).collect(), seed);
        merged(&plan, &found).1
    };
    let (one, mut many) = (by(1, 0), by(NODES, 1));
    assert_eq!((one.nodes.len(), many.nodes.len()), (1, NODES as usize));
    for (service, own) in many.services.iter_mut().zip(&one.services) {
        // Only the node and the time may differ.
        service.node.clone_from(&own.node);
        if let (Some(last), Some(own)) = (&mut service.last, &own.last) {
            (last.proved_at, last.searched_at) = (own.proved_at.clone(), own.searched_at.clone());
        }
    }
    assert_eq!(many.services, one.services);
    assert_eq!((many.standing, many.wasted_bytes), (one.standing, one.wasted_bytes));
}

#[test]
fn the_next_plan_has_the_new_line_or_the_previous_one() {
    let plan = plan(30);
    let (_, document) = merged(&plan, &night(&plan, 9));
    for (service, entry) in document.services.iter().zip(&plan.entries) {
        let Some(line) = &service.line else {
            assert_eq!(service.last, entry.last);
            continue;
        };
        let last = service.last.as_ref().unwrap();
        assert_eq!(last.limit_bytes, line.limit_bytes);
        assert_eq!(last.question.as_ref(), Some(&entry.question));
        let Some(before) = &entry.last else {
            assert_eq!(last.past, []);
            continue;
        };
        assert_eq!(last.past.len(), 30, "the oldest past line is dropped");
        assert_eq!(last.past[..29], before.past[1..]);
        let at = before.proved_at.clone().unwrap();
        assert_eq!(last.past[29], PastLine { at, limit_bytes: before.limit_bytes });
    }
}

#[test]
fn results_of_other_plans_are_rejected_and_impossible_ones_skipped() {
    let (plan, other) = (plan(4), plan(5));
    let answered = |plan: &Plan, index| result(plan, index, EntryOutcome::SubjectFailed, 0.0, 1, &[]);
    let mut standing = Standing::of(&plan);
    let error = standing.add(PathBuf::from("b/index-000000"), answered(&other, 0)).unwrap_err().to_string();
    for piece in ["b/index-000000 is from a different plan", &other.header.hash[..12], &plan.header.hash[..12]] {
        assert!(error.contains(piece), "{piece}: {error}");
    }
    let beyond = EntryResult { plan: plan.header.hash.clone(), ..answered(&other, 4) };
    standing.add(PathBuf::from("c"), beyond).unwrap();
    let block = EntryResult { task: Task::Block { first: 0, count: 1 }, ..answered(&plan, 2) };
    standing.add(PathBuf::from("d"), block).unwrap();
    let renamed = EntryResult { name: "\u{1b}[2J".to_owned(), ..answered(&plan, 3) };
    standing.add(PathBuf::from("e"), renamed).unwrap();
    let document = document(&plan, &standing);
    let said: Vec<&str> = document.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
    let beyond = "a result was skipped: c has index 4, but the plan has 4 entries";
    assert_eq!(said, [beyond, "a result was skipped: d does not match the plan's task at its index"]);
    assert_eq!((document.standing.missing, document.standing.failed), (vec![0, 1, 2], vec![3]));
    let of_3: Vec<&str> = document.services[3].doubts.iter().map(|doubt| doubt.text.as_str()).collect();
    assert!(of_3.iter().any(|text| text.starts_with("clocks differ: n1 started ")), "{of_3:?}");
    assert!(of_3.iter().any(|text| text.starts_with("different name: the result for index 3 has ")), "{of_3:?}");
}

/// Blocks of two configurations on a noisy server, one of them disturbed.
fn compared(repeats: u32) -> (Scenario, Vec<Trial>) {
    let more = "configurations: {small: {heap: 64m}, large: {heap: 128m}}\ntrials: 7\n\
                budgets: ['rss.loaded<=200MiB']";
    let mut scenario = scenario("made-up", more);
    scenario.compare.repeats = repeats;
    let mut made_up = MadeUpTrials::of(Server { noise: 0.002, ..Server::default() }).with(4, Mishap::NoisyMachine);
    let mut trials = Vec::new();
    series::run(&Blocks::new(&scenario, &scenario.compare), &mut made_up, &mut Silence, &mut trials).unwrap();
    trials.iter_mut().for_each(|trial| trial.folder = Some(format!("trial-{:03}", trial.index)));
    (scenario, trials)
}

/// A node's part: trials of these blocks, renumbered from 0 as on a node.
fn part(scenario: &Scenario, trials: &[Trial], first: u32, count: u32) -> NodeBlocks {
    let own = trials.iter().filter(|trial| (first..first + count).contains(&trial.block));
    let numbered = own.zip(0..).map(|(trial, index)| Trial { index, block: trial.block - first, ..trial.clone() });
    let archive = loadline::archive::Archive {
        conditions: conditions(scenario),
        scenario: scenario.clone(),
        trials: numbered.collect(),
        missing: Vec::new(),
    };
    let name = format!("index-{first:06}");
    NodeBlocks { archives: vec![(PathBuf::from(&name).join("a"), archive)], name, first, count }
}

#[test]
fn blocks_from_many_nodes_give_the_same_result_as_one_process() {
    let (scenario, trials) = compared(0);
    let judgement = Judgement::of(&scenario, JudgementSettings::default()).unwrap();
    let one = judgement.document(&conditions(&scenario), &trials);
    assert!(!one.comparisons.is_empty() && !one.budgets.is_empty() && one.blocks.len() == 7);
    let parts = || [(0, 2), (2, 3), (5, 1), (6, 1)].map(|(first, count)| part(&scenario, &trials, first, count));
    for seed in 0..4 {
        let all = AllBlocks::of(shuffled(parts().to_vec(), seed), 7, "loadline merge x").unwrap();
        let mut many = judgement.of_blocks(&all);
        let folders: Vec<&String> = many.trials.iter().filter_map(|trial| trial.folder.as_ref()).collect();
        assert_eq!(folders[..2], ["index-000000/a/trial-000", "index-000000/a/trial-001"]);
        let names: Vec<_> = many.archives.iter().map(|of| (of.name.as_str(), of.index_from)).collect();
        let expect = [("index-000000/a", 0), ("index-000002/a", 4), ("index-000005/a", 10), ("index-000006/a", 12)];
        assert_eq!(names, expect);
        assert_eq!(many.conditions.command, "loadline merge x");
        for (trial, own) in many.trials.iter_mut().zip(&trials) {
            trial.folder.clone_from(&own.folder);
        }
        (many.archives, many.conditions) = (Vec::new(), one.conditions.clone());
        assert_eq!(many, one);
    }
}

/// A disturbed block is repeated on its node, so later trials have numbers outside the plan.
#[test]
fn a_repeated_block_replaces_the_disturbed_one_on_its_node() {
    let (scenario, trials) = compared(1);
    assert_eq!(trials.iter().filter_map(|trial| trial.repeats).collect::<Vec<_>>(), [2, 2], "block 2 is repeated");
    let mut first = part(&scenario, &trials, 0, 3);
    let own = &mut first.archives[0].1.trials;
    let again = trials.iter().filter(|trial| trial.repeats.is_some());
    own.extend(again.zip(6..).map(|(trial, index)| Trial { index, block: 3, ..trial.clone() }));
    let nodes = vec![part(&scenario, &trials, 3, 4), first];
    let all = AllBlocks::of(nodes, 7, "").unwrap();
    let numbers: Vec<_> = all.trials.iter().map(|trial| (trial.block, trial.repeats)).collect();
    assert_eq!(numbers[4..10], [(2, None), (2, None), (7, Some(2)), (7, Some(2)), (3, None), (3, None)]);
    let judgement = Judgement::of(&scenario, JudgementSettings::default()).unwrap();
    let (many, one) = (judgement.of_blocks(&all), judgement.document(&conditions(&scenario), &trials));
    assert_eq!(
        many.blocks.iter().map(|of| of.used).collect::<Vec<_>>(),
        one.blocks.iter().map(|of| of.used).collect::<Vec<_>>()
    );
    let medians = |of: &loadline::record::Document| of.metrics.iter().map(|of| of.median).collect::<Vec<_>>();
    assert_eq!(medians(&many), medians(&one));
}

#[test]
fn files_that_differ_between_nodes_are_reported() {
    let (scenario, trials) = compared(0);
    let mut nodes = vec![part(&scenario, &trials, 0, 3), part(&scenario, &trials, 3, 4)];
    for (node, hash) in nodes.iter_mut().zip(["a", "b"]) {
        node.archives[0].1.trials.iter_mut().for_each(|trial| trial.inputs = Some(hash.repeat(64)));
    }
    let judgement = Judgement::of(&scenario, JudgementSettings::default()).unwrap();
    let document = judgement.of_blocks(&AllBlocks::of(nodes, 7, "").unwrap());
    let said = document.doubts.iter().any(|doubt| {
        doubt.text.contains("files of small (SHA-256): aaaaaaaaaaaa | bbbbbbbbbbbb; files of large (SHA-256)")
    });
    assert!(said, "{:?}", document.doubts);
    assert_eq!(AllBlocks::of(Vec::new(), 7, "").map(|all| all.trials.len()), None);
}
