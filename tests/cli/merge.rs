//! `loadline merge` on synthetic plans and results: what it prints, writes, and rejects.

use crate::called::{Called, loadline_in, report, root};
use crate::schema::Schema;
use loadline::archive;
use loadline::fleet::{Plan, question};
use loadline::record::{
    EntryOutcome, EntryResult, FLEET_ENTRY_SCHEMA, FindOutcome, FindRecord, LineRecord, NodeRecord, PlanEntry, Task,
    Why,
};
use loadline::scenario::{Last, PastLine, parse};
use std::path::Path;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const MADE: &str = "2026-11-20T01:00:00Z";

fn last(limit: u64) -> Last {
    let past = |night: u64| PastLine { at: format!("2026-11-{night}T01:00:00Z"), limit_bytes: (limit + night) * MIB };
    Last {
        limit_bytes: limit * MIB,
        heap_bytes: Some(limit / 2 * MIB),
        direct_bytes: Some(MIB),
        proved_at: Some("2026-11-19T01:00:00Z".to_owned()),
        searched_at: Some("2026-11-19T01:00:00Z".to_owned()),
        question: Some("q".to_owned()),
        inputs: Some("i".to_owned()),
        image_digest: Some("d".to_owned()),
        jdk: Some("17".to_owned()),
        cpu_model: Some("A".to_owned()),
        past: (10..19).map(past).collect(),
    }
}

/// A service of each kind: production limit, last line, and new line, in MiB.
const SERVICES: [(&str, u64, Option<u64>, Option<u64>); 4] = [
    ("account", 512, Some(160), Some(160)),
    ("basket", 256, None, Some(96)),
    ("gateway", 128, Some(90), None),
    ("journal", 1024, Some(200), Some(190)),
];

/// A plan with this many services.
fn plan(services: usize) -> Plan {
    let entry = |(name, declared, before, _): &(&str, u64, Option<u64>, Option<u64>)| {
        let text = format!(
            "name: {name}\nsubject: {{command: [java, '{{jvm}}', -jar, x.jar, '{{port}}']}}\n\
             configurations: {{only: {{gc: serial}}}}\n\
             load: [{{steady: {{constant: {{rate: 200, duration: 10s}}, get: /}}}}]\n"
        );
        let scenario = parse(&text, Path::new("/x"), &[17]).unwrap();
        PlanEntry {
            index: 0,
            name: (*name).to_owned(),
            task: if before.is_some() { Task::Prove } else { Task::Search { why: Why::First } },
            minutes: 60.0,
            declared_bytes: Some(declared * MIB),
            last: before.map(last),
            question: question(&scenario).unwrap(),
            scenario,
        }
    };
    Plan::new("shop", MADE.to_owned(), SERVICES[..services].iter().map(entry).collect()).unwrap()
}

fn result(plan: &Plan, index: u32) -> EntryResult {
    let entry = plan.entry(index).unwrap();
    let (.., line) = SERVICES[index as usize];
    let record = line.map(|limit| LineRecord {
        limit_bytes: limit * MIB,
        heap_bytes: Some(limit / 2 * MIB),
        held: 5,
        failing_share_max: 0.45,
        ..LineRecord::default()
    });
    let find = FindRecord {
        configuration: "only".to_owned(),
        target: vec!["failed==0".to_owned()],
        step: 0.02,
        proofs: 5,
        outcome: if line.is_some() { FindOutcome::Found } else { FindOutcome::NotHeld },
        text: "the target is missed even with ample memory: p99 was 80 ms".to_owned(),
        line: record,
        headroom: 0.1,
        limit_bytes: line.map(|limit| limit * MIB),
        options: vec!["-Xmx48m".to_owned()],
        prove_bytes: line.map(|limit| limit * MIB),
        trials: 14,
        seconds: 500.0,
        cut_short: false,
        ..FindRecord::default()
    };
    let mut node = NodeRecord { name: "n1".to_owned(), cpus: 4, ..NodeRecord::default() };
    (node.machine.cpu_model, node.machine.cgroup) = (Some("A".to_owned()), "v2".to_owned());
    EntryResult {
        schema: FLEET_ENTRY_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.header.hash.clone(),
        index,
        name: entry.name.clone(),
        task: entry.task.clone(),
        outcome: EntryOutcome::Answered,
        why: Vec::new(),
        node,
        started: format!("2026-11-20T0{}:00:00Z", index + 2),
        seconds: 600.0,
        find: Some(find),
        line: line.map(|limit| Last { past: Vec::new(), ..last(limit) }),
        archives: Vec::new(),
        doubts: Vec::new(),
    }
}

fn put(place: &Path, folder: &str, result: &EntryResult) {
    let file = place.join(folder).join(format!("index-{:06}/result.json", result.index));
    loadline_test_support::write(file, serde_json::to_string_pretty(result).unwrap());
}

/// A directory with a plan of this many services, and the results of some.
fn fleet(services: usize, indexes: &[u32]) -> TempDir {
    let (place, plan) = (TempDir::new().unwrap(), plan(services));
    std::fs::write(place.path().join("plan.jsonl"), plan.text().unwrap()).unwrap();
    std::fs::create_dir(place.path().join("results")).unwrap();
    indexes.iter().for_each(|index| put(place.path(), "results", &result(&plan, *index)));
    place
}

fn merge(place: &TempDir, options: &[&str]) -> Called {
    loadline_in(place.path(), &[&["merge"], options].concat())
}

#[test]
fn a_merged_fleet_is_listed_from_failures_to_savings() {
    let called = merge(&fleet(4, &[0, 1, 2]), &["results"]);
    let stdout = called.stdout.replace(&plan(4).header.hash[..12], "HASH");
    insta::assert_snapshot!(Called { stdout, ..called });
}

#[test]
fn the_exit_code_shows_whether_every_line_is_known_and_met() {
    let code = |services: usize, indexes: &[u32]| merge(&fleet(services, indexes), &["results"]).code;
    assert_eq!(code(2, &[0, 1]), 0);
    assert_eq!(code(2, &[0]), 4, "a missing result gives exit code 4");
    assert_eq!(code(3, &[0, 1, 2]), 1, "a missed target gives exit code 1");
    assert_eq!(code(4, &[2]), 1, "a missed target takes precedence over missing results");
    let changed = |change: fn(&mut EntryResult)| {
        let place = fleet(2, &[1]);
        let mut result = result(&plan(2), 0);
        change(&mut result);
        put(place.path(), "results", &result);
        merge(&place, &["results", "--json"])
    };
    let failed = changed(|result| result.outcome = EntryOutcome::NodeUnfit).expect(4);
    assert_eq!(failed.json()["standing"]["failed"][0], 0);
    assert!(failed.stderr.contains("warning: account (0): the node could not measure it"), "{failed}");
    let below = changed(|result| {
        let find = result.find.as_mut().unwrap();
        find.line.as_mut().unwrap().limit_bytes = 600 * MIB;
        result.line.as_mut().unwrap().limit_bytes = 600 * MIB;
    });
    assert_eq!(below.code, 1, "the new limit of 600 MiB exceeds the declared 512 MiB");
}

#[test]
fn every_format_has_every_service() {
    let place = fleet(4, &[0, 1, 2]);
    let [html, markdown, csv, metrics, json] =
        ["f.html", "f.md", "f.csv", "f.txt", "f.json"].map(|name| place.path().join(name).display().to_string());
    let words = [
        "results",
        "--html",
        &html,
        "--markdown",
        &markdown,
        "--csv",
        &csv,
        "--openmetrics",
        &metrics,
        "--json",
        &json,
    ];
    let called = merge(&place, &words);
    assert!(called.code == 1 && called.stdout.contains("2 services could save 486.0 MiB in total"), "{called}");
    for file in [&html, &markdown, &csv, &metrics, &json] {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(SERVICES.iter().all(|(name, ..)| text.contains(name)), "{file}: {text}");
        assert!(called.stderr.contains(file.as_str()) || *file == json, "{called}");
    }
    for format in ["--markdown", "--csv", "--openmetrics", "--html"] {
        let called = merge(&place, &["results", format, "-"]);
        assert!(called.code == 1 && called.stdout.contains("basket"), "{called}");
        assert!(called.stderr.contains("warning: no result yet: 3 (journal)"), "{called}");
    }
}

#[test]
fn a_fleet_document_matches_the_schema() {
    let place = fleet(4, &[0, 1, 2]);
    let mut away = result(&plan(4), 1);
    away.node.machine.cpu_model = Some("B".to_owned());
    away.started = "2026-11-19T01:00:00Z".to_owned();
    put(place.path(), "results/again", &away);
    std::fs::create_dir(place.path().join("results/index-000003")).unwrap();
    let called = merge(&place, &["results", "--json"]);
    let document = called.json();
    Schema::published("fleet-result.schema.json").describes(&document, "four services");
    assert_eq!(document["standing"]["double"][0], 1);
    assert_eq!(document["doubts"][0]["kind"], "result_unread");
    let account = &document["services"][0];
    assert_eq!((&account["verdict"], &account["wasted_bytes"]), (&"proved".into(), &(336 * MIB).into()));
    assert_eq!(account["last"]["past"].as_array().unwrap().len(), 10);
}

#[test]
fn the_order_of_directories_and_copies_does_not_matter() {
    let place = fleet(4, &[0]);
    put(place.path(), "monday", &result(&plan(4), 1));
    put(place.path(), "monday", &result(&plan(4), 0));
    put(place.path(), "tuesday/n2", &result(&plan(4), 2));
    let json = |folders: &[&str]| merge(&place, &[folders, &["--json"]].concat()).json();
    let whole = json(&["results", "monday", "tuesday"]);
    assert_eq!(whole["standing"], serde_json::json!({"answered": 3, "missing": [3], "failed": [], "double": []}));
    assert_eq!(json(&["tuesday", "monday", "results", "monday/index-000001", "tuesday/n2"]), whole);
    // The plan and all those directories are in this one.
    assert_eq!(json(&["."]), whole);
    // Only some of the results, and an entry in progress.
    std::fs::rename(place.path().join("tuesday/n2/index-000002"), place.path().join("tuesday/n2/.index-000002-1"))
        .unwrap();
    assert_eq!(json(&["."])["standing"]["missing"], serde_json::json!([2, 3]));
}

#[test]
fn invalid_merge_input_is_explained_with_a_hint() {
    let place = fleet(2, &[0]);
    let check = |options: &[&str], says: &[&str]| merge(&place, options).refused(says);
    check(&[], &["<DIR>"]);
    check(&["nowhere"], &["nowhere cannot be read", "loadline work --out"]);
    check(&["plan.jsonl"], &["plan.jsonl is not a directory"]);
    check(&["results", "--plan", "none.jsonl"], &["none.jsonl cannot be read", "loadline plan"]);
    check(&["results", "--plan", "results"], &["results cannot be read: Is a directory"]);
    check(&["results", "--json", "--csv", "-"], &["only one output can go to stdout"]);
    check(&["results", "--junit", "x.xml"], &["`--junit` is only for comparisons"]);
    check(&["results", "--github"], &["`--github` is only for comparisons"]);
    std::fs::write(place.path().join("other.jsonl"), plan(3).text().unwrap()).unwrap();
    let other = ["results/index-000000 is from a different plan", &plan(2).header.hash[..12]];
    check(&["results", "--plan", "other.jsonl"], &other);
    let edited = plan(2).text().unwrap().replace("\"minutes\":60.0", "\"minutes\":61.0");
    std::fs::write(place.path().join("edited.jsonl"), edited).unwrap();
    check(&["results", "--plan", "edited.jsonl"], &["do not match its hash", "edited.jsonl"]);
    std::fs::remove_file(place.path().join("plan.jsonl")).unwrap();
    check(&["results"], &["there is no plan.jsonl", "--plan FILE"]);
}

#[test]
fn a_truncated_result_is_named_and_counts_as_missing() {
    let place = fleet(2, &[0, 1]);
    let file = place.path().join("results/index-000001/result.json");
    let whole = std::fs::read(&file).unwrap();
    for cut in (0..whole.len()).step_by(whole.len() / 12) {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let called = merge(&place, &["results"]).expect(4);
        let named = "a result was skipped: results/index-000001 has a result.json that is";
        let text = called.flat();
        assert!(text.contains(named) && text.contains("no result yet: 1 (basket)"), "{cut}: {called}");
    }
    std::fs::write(&file, vec![b'['; 2 << 20]).unwrap();
    let text = merge(&place, &["results"]).flat();
    assert!(text.contains("it is larger than 1 MiB"), "{text}");
}

/// The stored archive as if made by two nodes, three blocks each.
#[test]
fn blocks_from_nodes_are_merged_into_one_comparison() {
    let place = TempDir::new().unwrap();
    let kept = archive::read(&root().join("tests/cli/archives/compared")).unwrap();
    let blocks = kept.trials.iter().map(|trial| trial.block + 1).max().unwrap();
    let (half, scenario) = (blocks / 2, kept.scenario.clone());
    let entry = |(first, count): (u32, u32)| PlanEntry {
        index: 0,
        name: scenario.name.clone(),
        task: Task::Block { first, count },
        minutes: 60.0,
        declared_bytes: None,
        last: None,
        question: "q".to_owned(),
        scenario: scenario.clone(),
    };
    let tasks = [(0, half), (half, blocks - half)];
    let plan = Plan::new(&scenario.name, MADE.to_owned(), tasks.map(entry).to_vec()).unwrap();
    std::fs::write(place.path().join("plan.jsonl"), plan.text().unwrap()).unwrap();
    for (index, (first, count)) in (0..).zip(tasks) {
        let made =
            EntryResult { find: None, line: None, archives: vec!["blocks".to_owned()], ..of_block(&plan, index) };
        put(place.path(), "results", &made);
        let folder = place.path().join(format!("results/index-{index:06}/blocks"));
        let mut writer = archive::Writer::create(&folder, &kept.conditions, &scenario).unwrap();
        let own = kept.trials.iter().filter(|trial| (first..first + count).contains(&trial.block));
        for (at, trial) in (0..).zip(own) {
            let mut trial = loadline::record::Trial { index: at, block: trial.block - first, ..trial.clone() };
            let files = writer.trial(at, &trial.configuration).unwrap();
            trial.folder = Some(files.name().to_owned());
            writer.finished(&trial).unwrap();
        }
        writer.close(false).unwrap();
    }
    let called = merge(&place, &["results", "--json"]);
    let (document, whole) = (called.json(), report("compared", &["--json"]).json());
    for of in ["metrics", "blocks", "comparisons", "pareto", "doubts", "budgets", "findings"] {
        assert_eq!(document["comparison"][of], whole[of], "{of}");
    }
    assert_eq!(called.code, 0, "{called}");
    assert_eq!(Schema::published("fleet-result.schema.json").complaints(&document), [] as [&str; 0]);
    let folder = document["comparison"]["trials"][0]["folder"].as_str().unwrap();
    assert!(folder.starts_with("index-000000/blocks/"), "{folder}");
    let words = ["results", "--html", "f.html", "--csv", "f.csv", "--junit", "f.xml", "--openmetrics", "-"];
    let called = merge(&place, &words);
    assert!(
        called.stdout.contains("loadline_comparison_ratio{") && called.stdout.contains("fleet_entries"),
        "{called}"
    );
    for file in ["f.html", "f.csv", "f.comparisons.csv", "f.xml"] {
        assert!(place.path().join(file).exists(), "{file}");
    }
    let text = merge(&place, &["results"]).stdout;
    assert!(text.contains("2 of 2 have a result") && text.contains(" vs. "), "{text}");
    std::fs::remove_dir_all(place.path().join("results/index-000001/blocks")).unwrap();
    let text = merge(&place, &["results"]).flat();
    assert!(text.contains("results/index-000001 has no archive `blocks` to read"), "{text}");
}

/// A node's result for its blocks, without archives.
fn of_block(plan: &Plan, index: u32) -> EntryResult {
    let entry = plan.entry(index).unwrap();
    let like = result(&self::plan(1), 0);
    EntryResult { plan: plan.header.hash.clone(), index, name: entry.name.clone(), task: entry.task.clone(), ..like }
}
