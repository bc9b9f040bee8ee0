//! `loadline plan`: the entries for a fleet, scenarios, or a comparison, and what is rejected.

use crate::called::{Called, loadline_in, read};
use loadline::fleet::Plan;
use loadline::record::{FLEET_SCHEMA, FleetDocument, LineVerdict, PlanEntry, ServiceRecord, Task, Why};
use loadline::scenario::Last;
use loadline::units::Bytes;
use std::path::Path;
use tempfile::TempDir;

pub(crate) const SHOP: &str = "\
name: shop
defaults: {target: ['p99<50ms'], within: 12m, rate: 200}
services:
  orders: {scenario: orders, only: small, limit: 512m}
  cart: {image: 'cart:1.2', url: 'http://127.0.0.1:8080/cart', limit: 1g}
  users: {command: [java, -jar, users.jar, '{port}'], last: {limit: 300m, at: 2020-01-01}}
";
const ORDERS: &str = "\
name: orders
subject: {command: [java, '{jvm}', -jar, orders.jar], port: 80}
configurations: {small: {heap: 8m}, large: {heap: 64m}}
load: [{steady: {closed: {requests: 1}, get: /}}, {rest: {idle: 1s}}]
";

/// A directory with a fleet and its files.
pub(crate) fn shop() -> TempDir {
    let place = TempDir::new().unwrap();
    let orders = place.path().join("orders");
    std::fs::create_dir(&orders).unwrap();
    for (file, text) in [
        ("fleet.yaml", SHOP),
        ("users.jar", "users"),
        ("orders/orders.loadline.yaml", ORDERS),
        ("orders/orders.jar", "orders"),
    ] {
        write(&place, file, text);
    }
    place
}

fn write(place: &TempDir, file: &str, text: &str) {
    std::fs::write(place.path().join(file), text).unwrap();
}

fn change(place: &TempDir, file: &str, from: &str, to: &str) {
    let text = read(place.path().join(file));
    assert!(text.contains(from), "{from}");
    write(place, file, &text.replace(from, to));
}

pub(crate) fn plan_in(place: &TempDir, words: &[&str]) -> Called {
    loadline_in(place.path(), &[&["plan"], words].concat())
}

/// A successful plan, and its messages.
fn planned(place: &TempDir, words: &[&str]) -> (Plan, String) {
    let called = plan_in(place, words).expect(0);
    (Plan::parse(&called.stdout).unwrap(), called.stderr)
}

#[track_caller]
fn refused(place: &TempDir, words: &[&str], says: &[&str]) {
    plan_in(place, words).refused(says);
}

fn tasks(plan: &Plan) -> Vec<(&str, &Task)> {
    plan.entries.iter().map(|entry| (entry.name.as_str(), &entry.task)).collect()
}

const SEARCH: fn(Why) -> Task = |why| Task::Search { why };

#[test]
fn a_fleet_plan_has_an_entry_for_each_service() {
    let place = shop();
    let (plan, said) = planned(&place, &["fleet.yaml"]);
    assert_eq!(
        said,
        "3 services: 0 to confirm, 3 to search (2 because no load line is known, 1 because the last search was too \
         long ago)\n\
         about 12 min of one node\n"
    );
    assert_eq!((plan.header.name.as_str(), plan.header.entries), ("shop", 3));
    let (first, long_ago) = (SEARCH(Why::First), SEARCH(Why::LongAgo));
    assert_eq!(tasks(&plan), [("orders", &first), ("cart", &first), ("users", &long_ago)]);
    let [orders, cart, users] = plan.entries.as_slice() else { panic!("{plan:?}") };
    assert_eq!((orders.minutes, orders.declared_bytes), (12.0, Some(512 << 20)));
    assert_eq!(orders.scenario.subject.dir.as_deref(), Some(Path::new("orders")));
    assert_eq!(users.scenario.subject.dir.as_deref(), Some(Path::new(".")));
    let targets = |of: &PlanEntry| of.scenario.find.target.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(targets(orders), ["p99<50ms"]);
    // A container's files are not on this machine; the others' are hashed.
    let hash = |of: &PlanEntry| of.scenario.configurations[0].inputs.clone();
    assert_ne!(hash(orders), hash(users));
    assert_eq!(hash(cart), hash(cart));
    assert!(!plan.text().unwrap().contains(place.path().to_str().unwrap()), "the plan contains a path of this machine");
}

#[test]
fn a_printed_plan_does_not_depend_on_the_directory() {
    let lines = |called: Called| called.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (shop(), shop());
    assert_eq!(lines(plan_in(&one, &["fleet.yaml"])), lines(plan_in(&other, &["fleet.yaml"])));
    // Independent of whether the plan goes to a file, and of the working directory.
    let called = loadline_in(
        Path::new("/"),
        &[
            "plan",
            "--quiet",
            one.path().join("fleet.yaml").to_str().unwrap(),
            "--out",
            one.path().join("plan.jsonl").to_str().unwrap(),
        ],
    );
    assert_eq!(called, Called { code: 0, stdout: String::new(), stderr: String::new() });
    let written = read(one.path().join("plan.jsonl"));
    assert_eq!(Plan::parse(&written).unwrap().text().unwrap(), written);
    let lines_of_file: Vec<_> = written.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(lines_of_file, lines(plan_in(&other, &["fleet.yaml"])));
    assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 4, "the call left a file");
}

#[test]
fn files_outside_the_plans_directory_are_reported() {
    let (place, elsewhere) = (shop(), TempDir::new().unwrap());
    let out = elsewhere.path().join("plan.jsonl");
    let called = plan_in(&place, &["fleet.yaml", "--out", out.to_str().unwrap()]);
    let warning = "every node needs the files outside the plan's directory at the same paths, such as ";
    assert!(called.stderr.contains(warning), "{called}");
}

/// The document after a night with these lines.
fn document(plan: &Plan, lines: &[(&str, LineVerdict, Option<Last>)]) -> FleetDocument {
    let service = |(name, verdict, last): &(&str, LineVerdict, Option<Last>)| ServiceRecord {
        name: (*name).to_owned(),
        verdict: *verdict,
        text: "5 of 5 trials held".to_owned(),
        node: "n1".to_owned(),
        trials: 14,
        seconds: 600.0,
        last: last.clone(),
        ..ServiceRecord::default()
    };
    FleetDocument {
        schema: FLEET_SCHEMA.to_owned(),
        plan: plan.header.clone(),
        services: lines.iter().map(service).collect(),
        node_seconds: 1800.0,
        ..FleetDocument::default()
    }
}

/// An entry's line as its search would record it.
fn found(entry: &PlanEntry, made: &str) -> Last {
    Last {
        question: Some(entry.question.clone()),
        inputs: entry.scenario.configurations[0].inputs.clone(),
        searched_at: Some(made.to_owned()),
        proved_at: Some(made.to_owned()),
        heap_bytes: Some(8 << 20),
        ..Last::of(Bytes::mib(200))
    }
}

#[test]
fn unchanged_services_are_proved_the_next_night() {
    let place = shop();
    let (first, _) = planned(&place, &["fleet.yaml"]);
    let [orders, cart, users] = [0, 1, 2].map(|at| found(&first.entries[at], &first.header.made));
    let lines = [
        ("orders", LineVerdict::First, Some(orders.clone())),
        ("cart", LineVerdict::Proved, Some(cart)),
        ("users", LineVerdict::Same, Some(users)),
        ("gone", LineVerdict::Missing, None),
    ];
    write(&place, "night.json", &serde_json::to_string_pretty(&document(&first, &lines)).unwrap());
    let (proofs, said) = planned(&place, &["fleet.yaml", "--last", "night.json", "--nodes", "2"]);
    assert_eq!(
        said,
        "in the earlier results, but not in this fleet: gone\n\
         3 services: 3 to confirm, 0 to search\n\
         about 17 min of one node, 8 min on 2 nodes\n"
    );
    assert!(tasks(&proofs).iter().all(|(_, task)| **task == Task::Prove));
    // If the line fails, an entry searches with its scenario.
    assert_eq!(proofs.entries[0].scenario.find.prove, None);
    assert_eq!(proofs.entries[0].last, Some(orders));
    // A plan contains what is known from the previous night.
    write(&place, "plan.jsonl", &proofs.text().unwrap());
    assert_eq!(tasks(&planned(&place, &["fleet.yaml", "--last", "plan.jsonl"]).0), tasks(&proofs));
    // Lines of changed and requested services are searched for.
    change(&place, "fleet.yaml", "url: 'http://127.0.0.1:8080/cart'", "url: 'http://127.0.0.1:8080/other'");
    write(&place, "users.jar", "newer users");
    let (changed, _) = planned(&place, &["fleet.yaml", "--last", "night.json"]);
    let (asked, files) = (SEARCH(Why::QuestionChanged), SEARCH(Why::InputsChanged));
    assert_eq!(tasks(&changed), [("orders", &Task::Prove), ("cart", &asked), ("users", &files)]);
    let (named, _) = planned(&place, &["fleet.yaml", "--last", "night.json", "--search", "orders"]);
    assert_eq!(named.entries[0].task, SEARCH(Why::Asked));
    let (all, _) = planned(&place, &["fleet.yaml", "--last", "night.json", "--search-all"]);
    assert!(!tasks(&all).iter().any(|(_, task)| **task == Task::Prove));
    refused(&place, &["fleet.yaml", "--search", "order"], &["no service is named `order`", "did you mean `orders`?"]);
    refused(&place, &["fleet.yaml", "--last", "fleet.yaml"], &["this is not a fleet document", "file: fleet.yaml"]);
    refused(&place, &["fleet.yaml", "--last", "none.json"], &["cannot read none.json: No such file"]);
}

#[test]
fn each_scenario_becomes_a_service() {
    let place = shop();
    let one = ORDERS.replace("configurations: {small: {heap: 8m}, large: {heap: 64m}}\n", "");
    write(&place, "one.loadline.yaml", &one.replace("name: orders", "name: one"));
    write(&place, "two.loadline.yaml", &one.replace("name: orders", "name: two"));
    let (plan, _) = planned(&place, &["one.loadline.yaml", "two.loadline.yaml", "--minutes", "30"]);
    let search = SEARCH(Why::First);
    assert_eq!(tasks(&plan), [("one", &search), ("two", &search)]);
    assert_eq!((plan.header.name.as_str(), plan.entries[0].minutes), ("fleet", 30.0));
    // A fleet of one service, with the default target.
    let (plan, _) = planned(&place, &["two.loadline.yaml"]);
    assert_eq!((plan.header.name.as_str(), plan.entries[0].scenario.find.target.len()), ("two", 2));
    refused(&place, &["one.loadline.yaml", "one.loadline.yaml"], &["two services are named `one`"]);
    refused(&place, &["one.loadline.yaml", "orders"], &["`orders` has 2 configurations", "`only: small`"]);
    refused(
        &place,
        &["one.loadline.yaml", "fleet.yaml"],
        &["fleet.yaml is not a scenario", "either one fleet file or scenarios"],
    );
    refused(&place, &["one.loadline.yaml", "--blocks", "5"], &["there is only one configuration"]);
    refused(&place, &["fleet.yaml", "--blocks", "5"], &["`--blocks` would have no effect"]);
}

#[test]
fn a_comparison_is_split_into_blocks_over_nodes() {
    let place = shop();
    let (plan, said) = planned(&place, &["orders", "--blocks", "20", "--nodes", "8"]);
    assert_eq!(said, "2 configurations in 20 blocks: 40 trials, at least 1 minute over 8 nodes\n");
    let blocks = |plan: &Plan| {
        plan.entries
            .iter()
            .map(|entry| match entry.task {
                Task::Block { first, count } => (first, count),
                _ => panic!("{entry:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(blocks(&plan), [(0, 3), (3, 3), (6, 3), (9, 3), (12, 2), (14, 2), (16, 2), (18, 2)]);
    let seeds: Vec<u64> = plan.entries.iter().map(|entry| entry.scenario.seed).collect();
    assert_eq!(seeds, (1..9).collect::<Vec<_>>());
    assert!(plan.entries.iter().all(|entry| entry.name == "orders" && entry.minutes == 15.0));
    assert!(plan.entries.iter().all(|entry| entry.scenario.configurations.iter().all(|of| of.inputs.is_some())));
    // By default, five blocks, each on its own node.
    assert_eq!(blocks(&planned(&place, &["orders"]).0), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(blocks(&planned(&place, &["orders", "--blocks", "2", "--nodes", "9"]).0).len(), 2);
    refused(&place, &["orders", "--last", "x"], &["`--last` would have no effect"]);
    refused(&place, &["orders", "--search-all"], &["`--search` would have no effect"]);
    refused(&place, &["orders", "--blocks", "1001"], &["`trials` is 1001"]);
}

#[test]
fn artifacts_are_built_and_hashed_for_a_plan() {
    let place = shop();
    let text = ORDERS.replace("subject: {", "subject: {build: 'mkdir -p target && echo jar >target/a.jar', ");
    let text = text.replace("orders.jar", "target/a.jar");
    write(&place, "orders/orders.loadline.yaml", &text);
    let (plan, said) = planned(&place, &["fleet.yaml"]);
    assert!(said.contains("build: mkdir") && place.path().join("orders/target/a.jar").exists(), "{said}");
    let (again, said) = planned(&place, &["fleet.yaml"]);
    assert!(said.contains("build: skipped, because nothing has changed"), "{said}");
    assert_eq!(plan.entries, again.entries);
    write(&place, "orders/orders.loadline.yaml", &text.replace("mkdir -p target", "false"));
    let called = plan_in(&place, &["fleet.yaml"]);
    assert_eq!((called.code, called.stdout.as_str()), (3, ""), "{called}");
    assert!(called.stderr.contains("service: orders"), "{called}");
}

#[test]
fn invalid_fleet_files_are_rejected() {
    let place = shop();
    let wrong = |from: &str, to: &str, said: &[&str]| {
        let place = shop();
        change(&place, "fleet.yaml", from, to);
        refused(&place, &["fleet.yaml"], &[said, &["file: fleet.yaml"]].concat());
    };
    wrong("limit: 512m", "limmit: 512m", &["line 4: unknown key `limmit`", "did you mean `limit`?"]);
    wrong("services:", "service:", &["line 3: unknown key `service`", "did you mean `services`?"]);
    wrong("scenario: orders", "scenario: nowhere", &["there is no file `nowhere`", "service: orders"]);
    wrong(", only: small", "", &["`orders` has 2 configurations", "only: small"]);
    wrong("  cart:", "  orders:", &["two services are named `orders`"]);
    wrong("  cart:", "  a/b:", &["`a/b` is not a valid service name"]);
    change(&place, "fleet.yaml", "p99<50ms", "p98<50ms");
    refused(&place, &["fleet.yaml"], &["there is no metric `p98` to search with", "service: orders"]);
    write(&place, "orders/orders.loadline.yaml", &ORDERS.replace("subject:", "subjekt:"));
    refused(&place, &["fleet.yaml"], &["unknown key `subjekt`", "scenario: orders", "service: orders"]);
    for (text, said) in
        [("", "missing field `name`"), ("name: x\nservices: {}\n", "no service"), ("[]", "expected a map")]
    {
        write(&place, "fleet.yaml", text);
        refused(&place, &["fleet.yaml"], &[said]);
    }
    refused(&place, &["none.yaml"], &["cannot read none.yaml: No such file"]);
    refused(&place, &[], &["required"]);
    refused(&place, &["fleet.yaml", "--minutes", "0"], &["`0` is not a number of minutes"]);
    refused(&place, &["fleet.yaml", "--nodes", "0"], &["0 is not in 1.."]);
    let nowhere = plan_in(&shop(), &["fleet.yaml", "--out", "no/such/plan.jsonl"]).expect(4);
    assert!(
        nowhere.stderr.contains("cannot write") && nowhere.stderr.contains("plan.jsonl: No such file"),
        "{nowhere}"
    );
}

#[test]
fn a_damaged_plan_is_rejected() {
    let place = shop();
    let whole = plan_in(&place, &["fleet.yaml"]).stdout;
    let script = ["plan.jsonl", "--slurm"];
    let wrong = |text: &str, said: &str| {
        write(&place, "plan.jsonl", text);
        refused(&place, &script, &[said, "file: plan.jsonl"]);
    };
    wrong(&whole.replace("fleet-plan/1", "fleet-plan/2"), "the plan has the schema `loadline.fleet-plan/2`");
    wrong(&whole.replace("\"minutes\":12.0", "\"minutes\":99.0"), "do not match its hash");
    wrong(&whole.replace("users.jar", "other.jar"), "do not match its hash");
    wrong(&whole.replace("\"entries\":3", "\"entries\":4"), "the plan should have 4 entries, but has 3");
    wrong("{\"schema\": 1}\n", "the first line has no `schema`");
    wrong("{", "this is not a plan");
    let head = whole.find('\n').unwrap();
    for cut in [1, head / 2, head, head + 1, whole.len() / 2, whole.len() - 2, whole.len() - 1] {
        write(&place, "plan.jsonl", &whole[..cut]);
        refused(&place, &script, &["file: plan.jsonl"]);
    }
    write(&place, "plan.jsonl", &whole);
    refused(&place, &["plan.jsonl"], &["this is already a plan"]);
    refused(&place, &["plan.jsonl", "--slurm", "--out", "x"], &["`--out` would have no effect"]);
    refused(&place, &["plan.jsonl", "--slurm", "--search-all"], &["`--search-all` would have no effect"]);
    refused(&place, &["fleet.yaml", "--slurm"], &["so the plan needs a file", "`--out plan.jsonl`"]);
}

#[test]
fn ten_thousand_services_can_be_planned() {
    let place = shop();
    let services: String =
        (0..10_000).map(|n| format!("  s{n}: {{command: [java, -jar, users.jar, '{{port}}'], rate: 5}}\n")).collect();
    write(&place, "fleet.yaml", &format!("name: many\nservices:\n{services}"));
    let (plan, said) = planned(&place, &["fleet.yaml", "--nodes", "100"]);
    assert!(said.contains("10,000 services: 0 to confirm, 10,000 to search"), "{said}");
    assert!(said.contains("about 666.7 node-hours, 7 h on 100 nodes"), "{said}");
    assert_eq!(plan.entry(9_999).unwrap().name, "s9999");
}
