//! The published schemas against the program's output and input.

use crate::accounts::ACCOUNT;
use crate::accounts_beside::{ACCOUNTS, CHANGES};
use crate::called::{ARCHIVES, folder, loadline, read, root};
use crate::history::HISTORY;
use crate::load::LOAD;
use crate::schema::Schema;
use loadline::doubt::{Allocation, ClockSlip, Comparing, Doubt, MemoryPool, Merging, Place};
use loadline::error::Result;
use loadline::fleet::Plan;
use loadline::record::{AllocatedBy, DoubtRecord, PlanEntry, Task, Why};
use loadline::scenario::{Last, PastLine, Scenario, TrialPlan, parse, parse_fleet};
use loadline::units::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const RESULTS: &str = "results.schema.json";
const SCENARIO: &str = "scenario.schema.json";
const PLAN: &str = "plan.schema.json";
const FLEET_PLAN: &str = "fleet-plan.schema.json";
const FLEET: &str = "fleet.schema.json";
pub(crate) const FLEET_ENTRY: &str = "fleet-entry.schema.json";
/// The releases that `found` selects in these tests.
const RELEASES: [u32; 2] = [17, 25];

fn document(archive: &str) -> Value {
    loadline(&["report", archive, "--json"]).expect(0).json()
}

#[test]
fn every_result_matches_the_schema() {
    let schema = Schema::published(RESULTS);
    let archives = ARCHIVES.map(|name| format!("archives/{name}"));
    for archive in archives.iter().map(String::as_str).chain(["formats/version-2"]) {
        schema.describes(&document(archive), archive);
    }
}

#[test]
fn every_property_has_a_description() {
    for name in [RESULTS, SCENARIO, ACCOUNT, ACCOUNTS, CHANGES, LOAD, FLEET_ENTRY, HISTORY] {
        for (place, described) in Schema::published(name).described() {
            let text = described["description"].as_str().unwrap_or("");
            assert!(text.ends_with('.') && !text.ends_with(".."), "{name}: {place}: `{text}`");
        }
    }
}

#[test]
fn an_invalid_result_violates_the_schema() {
    let (schema, right) = (Schema::published(RESULTS), document("archives/two"));
    let check = |pointer: &str, wrong| assert!(!schema.accepts_with(&right, pointer, wrong), "{pointer}");
    check("/schema", json!("loadline.result/3"));
    check("/conditions/machine/cgroup", json!("v3"));
    check("/trials/0/outcome", json!("done"));
    check("/trials/0/marks/0/rss_bytes", json!(null));
    check("/trials/0/marks/0/rss_bytes", json!(-1));
    check("/trials/0/marks/0/rss_bytes", json!(1.5));
    check("/trials/0/phases/0/at_s", json!(-1));
    check("/trials/0/phases/0/failed", json!({"status": 0}));
    check("/trials/0/phases/0/service_ms/p99", json!("4.2"));
    check("/trials/0/doubts/0", json!({"kind": "shared_cpus", "text": "no next step"}));
    check("/trials/0/doubts/0", json!({"kind": "swap_in_use", "text": "", "next": ""}));
}

#[test]
fn the_schema_allows_new_fields_and_doubts() {
    let mut document = document("archives/two");
    document["trials"][0]["later"] = json!(1);
    document["trials"][0]["doubts"][0] = json!({"kind": "later", "text": "t", "next": "n", "more": 1});
    assert_eq!(Schema::published(RESULTS).complaints(&document), [] as [&str; 0]);
}

/// Each kind of doubt; `the_schema_describes_every_kind_of_doubt` fails if one is missing.
pub(crate) fn doubts() -> Vec<Doubt> {
    let (phase, why) = (|| "steady".to_owned(), || "why".to_owned());
    [
        Doubt::NoisyMachine {
            phase: phase(),
            foreign_cores: Some(0.5),
            steal_share: 0.1,
            memory_stall_share: Some(0.02),
        },
        Doubt::GeneratorSaturated { phase: phase(), cpu_share: 0.95, subject_share: Some(0.5) },
        Doubt::SharedCpus,
        Doubt::CollectorByCpus { cpus: 1, cores: 2, collector: "Serial".to_owned() },
        Doubt::Throttled { phase: phase(), share: 0.38, cpu_limit_millicpus: 500 },
        Doubt::NoCollection { seconds: 12.0, heap_bytes: 48 << 20 },
        Doubt::NeverWarm { seconds: 60.0, why: vec!["the compilers used 22% of the CPU time".to_owned()] },
        Doubt::FlagsIgnored { flags: vec!["-XX:+UseX".to_owned()] },
        Doubt::FlagChanged { asked: "-XX:X=1".to_owned(), in_force: "-XX:X=2".to_owned() },
        Doubt::LoadFailures { phase: phase(), failed: 1, requests: 2, kinds: "1 reset".to_owned() },
        Doubt::ServerGone { phase: phase(), after_s: 5.0, refused: 541 },
        Doubt::CutShort { phase: phase(), why: why() },
        Doubt::LimitNotSeen { limit_bytes: 1, heap_bytes_max: 2 },
        Doubt::Plateau40Ms { phase: phase(), p50_ms: 40.0 },
        Doubt::HugePagesAlways,
        Doubt::SwapInUse { swap_bytes: 1 },
        Doubt::CountersMissing { why: why() },
        Doubt::AttachMissing { why: why() },
        Doubt::ReadFailed { mark: "warm".to_owned(), why: why() },
        Doubt::AccountPartial { mark: "warm".to_owned(), why: why() },
        Doubt::BundleLacks { what: why() },
        Doubt::MallocUnsplit { mark: "warm".to_owned(), unsplit_bytes: 1, why: why() },
        Doubt::Unexplained { mark: "warm".to_owned(), unexplained_bytes: 1, share: 0.01 },
        Doubt::AccountMoved { mark: "warm".to_owned(), moved_bytes: 1 },
        Doubt::HeapMultiMapped { rss_bytes: 3, pss_bytes: 1 },
        Doubt::HugePagesInUse { huge_bytes: 1 },
        Doubt::OutOfMemoryError {
            error: "java.lang.OutOfMemoryError: Java heap space".to_owned(),
            pool: MemoryPool::Other,
        },
        Doubt::SeveralJvms { pid: 1, others: vec![2] },
        Doubt::ProcessesLeftOut { left_out: 3, most: 200 },
        Doubt::LogIncomplete { why: why() },
        Doubt::StackTraces { count: 1204, first: "java.net.SocketException: Broken pipe".to_owned() },
        Doubt::SubjectSaturated { phase: phase(), subject_share: 0.97 },
        Doubt::AchievedBelowOffered { phase: phase(), offered_per_s: 5000.0, achieved_per_s: 4312.0 },
        Doubt::GeneratorLag { phase: phase(), lag_ms_p99: 1.5 },
        Doubt::PortsNearExhaustion {
            phase: phase(),
            time_wait: 27000,
            ports: 28232,
            tw_reuse: false,
            connects_per_s: 900.0,
        },
        Doubt::DriverThresholds { phase: phase(), tool: "k6".to_owned(), code: 99 },
        Doubt::DriverNotRead { phase: phase() },
        Doubt::OperationsFailed { phase: phase(), failed: 3, operations: 300 },
        Doubt::MarkersNotAwaited { marks: vec!["full".to_owned()], late_ms: 120.5 },
        Doubt::SeveralProcesses { pid: 1, others: vec![2] },
        Doubt::SharedCountedOften { processes: 2, rss_bytes: 3, pss_bytes: 2 },
        Doubt::ProcessEnded { pid: 2, name: "java".to_owned(), at: "mark loaded".to_owned() },
        Doubt::WorkFolderLeft { folder: "/tmp/loadline-work-1-0".to_owned(), why: why() },
        Doubt::Allocation(Allocation::AllocationUnread { why: why() }),
        Doubt::Allocation(Allocation::AllocationRough { phase: phase(), by: AllocatedBy::LivingThreads }),
        Doubt::Allocation(Allocation::AllocationNotWarm { phase: phase(), first_bytes: 2000.0, second_bytes: 1900.0 }),
    ]
    .into_iter()
    .chain(doubts_of_comparisons())
    .chain(doubts_of_merging())
    .collect()
}

/// Doubts about a whole comparison.
fn doubts_of_comparisons() -> Vec<Doubt> {
    let (phase, why) = (|| "steady".to_owned(), || "why".to_owned());
    vec![
        Doubt::Comparing(Comparing::EqualConfigurations { configurations: vec!["g1".to_owned(), "usual".to_owned()] }),
        Doubt::Comparing(Comparing::UnequalWork {
            phase: phase(),
            least: "g1".to_owned(),
            ok_least: 4_000,
            most: "serial".to_owned(),
            ok_most: 5_000,
        }),
        Doubt::Comparing(Comparing::WarmthUnknown { phase: phase(), answers: 800, trials: 10 }),
        Doubt::Comparing(Comparing::DifferentBuilds {
            configuration: "g1".to_owned(),
            versions: vec!["17.0.14".to_owned(), "17.0.15".to_owned()],
        }),
        Doubt::Comparing(Comparing::GeneratorLimit { phase: phase(), configurations: vec!["g1".to_owned()] }),
        Doubt::Comparing(Comparing::FewBlocks { blocks: 3 }),
        Doubt::Comparing(Comparing::NotInterleaved {
            first: "2026-11-20T10:00:00Z".to_owned(),
            second: "2026-11-21T10:00:00Z".to_owned(),
        }),
        Doubt::Comparing(Comparing::NotJudged { reasons: vec![why()] }),
        Doubt::Comparing(Comparing::ArchivesDiffer { differences: vec!["kernel: 6.1 and 6.12".to_owned()] }),
        Doubt::Comparing(Comparing::BaselineDiffers {
            archive: "main".to_owned(),
            differences: vec!["flags: -Xmx256m | -Xmx512m".to_owned()],
        }),
        Doubt::Comparing(Comparing::LeftOut { configuration: "jdk11".to_owned(), why: why() }),
        Doubt::Comparing(Comparing::AnotherProcess { differences: vec!["pid 4711 and 4712".to_owned()] }),
        Doubt::Comparing(Comparing::CompilerMemory {
            configuration: "serial".to_owned(),
            mark: "rested".to_owned(),
            spread_bytes: 17 << 20,
        }),
        Doubt::AllocatorIgnores { allocator: "musl".to_owned(), options: vec!["MALLOC_ARENA_MAX".to_owned()] },
        Doubt::VariablesLost { variables: vec!["MALLOC_ARENA_MAX=1".to_owned()] },
        Doubt::Place(Place::NodeBusy { busy_cores: 1.5, cpus: 8 }),
        Doubt::Place(Place::NodeShared { cpus: 2, online: 8 }),
        Doubt::Place(Place::NodeThrottled { times: 7 }),
        Doubt::Place(Place::NodeSwapped { swap_bytes: 64 << 20 }),
    ]
}

/// Doubts about nodes' results.
fn doubts_of_merging() -> Vec<Doubt> {
    let own = |text: &str| text.to_owned();
    [
        Merging::OtherCpu { before: own("A"), now: own("B") },
        Merging::ClocksDiffer { node: own("n1"), slip: ClockSlip::EndedInTheFuture, seconds: 60.0 },
        Merging::OtherLoadline { node: own("n1"), worked: own("0.1.0"), planned: own("0.2.0") },
        Merging::OtherName { index: 4, said: own("shop"), planned: own("cart") },
        Merging::ResultUnread { folder: own("index-000004"), why: own("has no result.json") },
    ]
    .map(Doubt::Merging)
    .into()
}

/// The published schema is generated from the types, so it has every kind.
#[test]
fn the_schema_describes_every_kind_of_doubt() {
    let schema = Schema::published(RESULTS);
    let mut document = document("archives/failed");
    let all = doubts();
    let mut kinds = BTreeSet::new();
    for doubt in &all {
        assert_eq!(all.iter().filter(|other| doubt.is_like(other)).count(), 1, "{doubt:?} must match only itself");
        let record = json!(DoubtRecord::from(doubt.clone()));
        kinds.insert(record["kind"].as_str().unwrap().to_owned());
        document["trials"][0]["doubts"] = json!([record]);
        schema.describes(&document, &format!("{doubt:?}"));
    }
    assert_eq!(kinds, schema.kinds("DoubtRecord"), "the list and the schema must have the same kinds");
}

// ---- Scenarios ----

fn parsed(text: &str) -> Result<Scenario> {
    parse(text, Path::new("/base"), &RELEASES)
}

/// The schema's objections; text that is not YAML counts as one.
fn complaints(schema: &Schema, text: &str) -> Vec<String> {
    match yaml_serde::from_str::<Value>(text) {
        Ok(value) => schema.complaints(&value),
        Err(cause) => vec![cause.to_string()],
    }
}

/// Every scenario in the repository.
fn scenarios() -> Vec<PathBuf> {
    let mut found = vec![root().join("src/cli/demo.loadline.yaml")];
    let mut folders = vec![root().join("scenarios"), folder().join("archives")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.to_string_lossy().ends_with(".loadline.yaml") => found.push(path),
                false => {}
            }
        }
    }
    assert!(found.len() >= 5, "{found:?}");
    found
}

#[test]
fn every_trial_plan_matches_the_schema() {
    let schema = Schema::published(PLAN);
    for path in scenarios() {
        let scenario = parse(&read(path.clone()), path.parent().unwrap(), &RELEASES).unwrap();
        for configuration in &scenario.configurations {
            let mut plan = TrialPlan::of(&scenario, configuration);
            plan.configuration.inputs = Some("0a1b".to_owned());
            let written = json!(plan);
            schema.describes(&written, &path.display().to_string());
        }
    }
    assert!(!schema.accepts(&json!({"title": "x"})));
}

#[test]
fn every_fleet_plan_matches_the_schema() {
    let schema = Schema::published(FLEET_PLAN);
    let last = Last { past: vec![PastLine { at: "x".to_owned(), limit_bytes: 1 }], ..Last::of(Bytes::mib(9)) };
    let tasks = [Task::Prove, Task::Search { why: Why::Asked }, Task::Block { first: 0, count: 2 }];
    let of = |path: PathBuf| {
        let scenario = parse(&read(path.clone()), path.parent().unwrap(), &RELEASES).unwrap();
        tasks.clone().map(|task| PlanEntry {
            index: 0,
            name: "x".to_owned(),
            task,
            minutes: 15.0,
            declared_bytes: Some(1),
            last: Some(last.clone()),
            question: "0a1b".to_owned(),
            scenario: scenario.clone(),
        })
    };
    let plan = Plan::new("x", "2026-11-22T00:00:00Z".to_owned(), scenarios().into_iter().flat_map(of).collect());
    let text = plan.unwrap().text().unwrap();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(schema.complaints(&line), [] as [&str; 0], "{line:#}");
    }
    for wrong in [json!({}), json!({"schema": "loadline.fleet-plan/2"}), json!({"index": 0, "name": "x"})] {
        assert!(!schema.accepts(&wrong), "{wrong}");
    }
}

#[test]
fn schema_and_parser_agree_on_fleet_files() {
    let schema = Schema::published(FLEET);
    let both = |from: &str, to: &str| {
        assert!(crate::plan::SHOP.contains(from), "{from}");
        let text = crate::plan::SHOP.replace(from, to);
        let value: Value = yaml_serde::from_str(&text).unwrap();
        let one = &mut |_: &Path| parse(PLAIN, Path::new("."), &RELEASES);
        let fits = parse_fleet(&text, Path::new("."), one);
        (schema.complaints(&value), fits)
    };
    for (from, to) in [
        ("name: shop", "name: shop"),
        ("within: 12m", "within: 90"),
        ("rate: 200", "rate: 30/m, duration: 5s, seed: 3, search_every: 3d, url: 'http://127.0.0.1:80/'"),
        ("limit: 300m", "limit: 300m, heap: 64m, direct: 10m"),
        ("  cart: {image: 'cart:1.2'", "  cart: {command: [a, 5], image: 'cart:1.2', rate: 1k"),
    ] {
        let (complaints, parsed) = both(from, to);
        assert!(complaints.is_empty() && parsed.is_ok(), "{to}: {complaints:?} {parsed:?}");
    }
    for (from, to) in [
        ("name: shop", "nam: shop"),
        ("within: 12m", "within: soon"),
        ("within: 12m", "whitin: 12m"),
        ("target: ['p99<50ms']", "target: [p99]"),
        ("rate: 200", "rate: fast"),
        ("limit: 512m", "limit: 6q"),
        ("limit: 512m", "limt: 512m"),
        ("limit: 300m", "heap: 300m"),
        ("2020-01-01", "yesterday"),
        ("image: 'cart:1.2', ", ""),
        ("image: 'cart:1.2'", "image: ''"),
        ("  orders:", "  a/b:"),
    ] {
        let (complaints, parsed) = both(from, to);
        assert!(!complaints.is_empty() && parsed.is_err(), "{to}: {complaints:?} {parsed:?}");
    }
    assert!(!schema.accepts(&json!({"name": "x", "services": {}})));
}

#[test]
fn every_scenario_matches_the_schema() {
    let schema = Schema::published(SCENARIO);
    for path in scenarios() {
        let text = read(&path);
        assert_eq!(complaints(&schema, &text), [] as [&str; 0], "{}", path.display());
        parsed(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

const PLAIN: &str = "\
name: plain
subject:
  command: [java, '{jvm}', -jar, app.jar, '{port}']
  env: {LANG: C}
  ready: {http: /hello, within: 30s}
  end_within: 5s
configurations:
  small: {heap: 6m, gc: serial, jvm: [-Xss256k], jdk: 17, env: {A: 1}, limit: 128m, args: [a], cpus: 0, nmt: off}
load:
  - warmup: {same: steady}
  - steady: {closed: {connections: 25, requests: 5000}, put: /x, headers: {A: b}, body: {size: 1k}, expect: 204}
  - rest: {idle: 5s}
marks: [start, loaded]
trials: 2
seed: 7
sample_hz: 20
classes: true
load_cpus: 1
";

fn changed(from: &str, to: &str) -> String {
    assert!(PLAIN.contains(from), "{from}");
    PLAIN.replacen(from, to, 1)
}

/// The scenario schema, which is used hundreds of times.
static OF_SCENARIOS: LazyLock<Schema> = LazyLock::new(|| Schema::published(SCENARIO));

/// Schema and parser accept the plain scenario with this change.
#[track_caller]
fn right(from: &str, to: &str) {
    let text = changed(from, to);
    assert_eq!(complaints(&OF_SCENARIOS, &text), [] as [&str; 0], "{to}");
    parsed(&text).unwrap_or_else(|error| panic!("{to}: {error}"));
}

#[test]
fn schema_and_parser_accept_phase_marks() {
    right("rest: {idle: 5s}", "rest: {idle: 5s, mark: true}");
    right("rest: {idle: 5s}", "rest: {idle: 5s, mark: collected}");
    right("{same: steady}", "{same: steady, mark: true}");
    right("expect: 204", "expect: 204, mark: collected");
    right("rest: {idle: 5s}", "rest: {driver: 'wrk {url}', within: 1m, mark: true}");
    right("rest: {idle: 5s}", "own: {phases: [empty, full, 3]}");
    right("rest: {idle: 5s}", "own: {phases: [a b], within: 5m, pattern: '== (.+) ==', collect: 2, settle: 1s}");
    right("trials: 2", "collect: {times: 3, settle: 1s}");
    right("trials: 2", "collect: {}");
}

#[test]
fn schema_and_parser_accept_images_with_or_without_a_command() {
    let schema = Schema::published(SCENARIO);
    let text = changed("jdk: 17, ", "");
    let command = "  command: [java, '{jvm}', -jar, app.jar, '{port}']\n";
    assert!(text.contains(command));
    for of_image in ["", "  command: []\n", "  command: ['--port={port}']\n", "  build: make image\n  dir: x\n"] {
        let text = text.replace(command, &format!("  image: app:1\n{of_image}"));
        assert_eq!(complaints(&schema, &text), [] as [&str; 0], "{of_image}");
        parsed(&text).unwrap_or_else(|error| panic!("{of_image}: {error}"));
    }
}

#[test]
fn schema_and_parser_accept_valid_settings() {
    right("name: plain", "name: 2021");
    right("{same: steady}", "{driver: 'wrk -d 10s {url}/hello'}");
    right("{same: steady}", "{driver: ./load.sh, within: 2m}");
    right("heap: 6m", "heap: 6MiB");
    right("heap: 6m", "heap: 6291456");
    right("heap: 6m", "heap: 1.5 g");
    right("gc: serial", "gc: G1GC");
    right("jdk: 17", "jdk: /opt/jdk-17");
    right("jdk: 17", "jdk: '17'");
    right("cpus: 0", "cpus: '0-2,5'");
    right("cpus: 0", "cpus: all");
    right("nmt: off", "nmt: summary");
    right("within: 30s", "within: 90");
    right("within: 30s", "within: 1.5m");
    right("http: /hello", "tcp: true");
    right("http: /hello", "log: 'Started in \\d+'");
    right("http: /hello", "phase: ready");
    right("requests: 5000", "duration: 500ms");
    right("connections: 25, ", "");
    right("http: /hello, ", "");
    right("requests: 5000", "requests: 5k");
    right("marks: [start, loaded]", "marks: [collected, trimmed]");
    right("body: {size: 1k}", "body: {file: a.bin}");
    right("put: /x", "post: /x");
    for method in ["patch", "delete", "options"] {
        right("put: /x", &format!("{method}: '/x?n={{seq}}&r={{rand 1 9}}'"));
    }
    right("put: /x, headers: {A: b}, body: {size: 1k}", "head: /x");
    right(", body: {size: 1k}", ", keep_alive: false, timeout: 2s, drain: 500ms");
    right("body: {size: 1k}", "body: {size: 1k, fill: zero}, expect_continue: true");
    right("body: {size: 1k}", "body: {text: 'n={seq}'}");
    right("expect: 204", "expect: {status: 204, length: 0, headers: {X: , Y: 1}, body: ok}");
    right("expect: 204", "send_rate: 100, receive_rate: 1k, stop: ['failed>1%', 'p99>=500ms', 'rate<90%']");
    right("body: {size: 1k}, expect: 204", "http2: true");
    right("body: {size: 1k}, expect: 204", "http2: {streams: 10}");
    right("requests: 5000", "requests: 5000, think: 20ms");
    let closed = "closed: {connections: 25, requests: 5000}";
    right(closed, "constant: {rate: 500, duration: 10s}");
    right(closed, "constant: {rate: 1.5k/s, requests: 9k, connections: 5, connections_max: 50}");
    right(closed, "poisson: {rate: 30/m, duration: 10s}");
    right(closed, "ramp: {from: 0, to: 1000, duration: 1m, poisson: true}");
    right(closed, "staircase: {from: 100, to: 1k, steps: 10, duration: 1m, connections: 50}");
    right(closed, "schedule: {file: starts.txt, connections: 5}");
    let requests =
        "requests: [{get: /a, weight: 3, expect: {body: hello}}, {post: /b, body: {text: x}, headers: {C: d}}]";
    right("put: /x, headers: {A: b}, body: {size: 1k}", requests);
    right("rest: {idle: 5s}", "rest: {driver: 'wrk {url}'}");
    right("rest: {idle: 5s}", "rest: {driver: 'wrk {url}', within: 1m}");
    right("  env: {LANG: C}\n", "  env: {LANG: C}\n  tls: true\n");
    right("seed: 7", &format!("figures: [{ELASTIC}, {SLOPE}]\nseed: 7"));
    right("seed: 7", "figures: [{slope: {of: malloc.live, per: n, marks: [a, b]}}]\nseed: 7");
    right("seed: 7", "figures: []\nseed: 7");
    right("  env: {LANG: C}\n", "  env: {LANG: C}\n  tls: {ca: ca.pem, insecure: true}\n  socket: a.sock\n");
    right("  env: {LANG: C}\n", "  env: {LANG: C}\n  build: make\n  dir: a\n  host: localhost\n  port: 8080\n");
    let small = PLAIN.lines().find(|line| line.starts_with("  small:")).unwrap();
    let configurations = format!("configurations:\n{small}\n");
    right(&configurations, "");
    right(&configurations, "configurations: {a: {}, b: {gc: z}}\n");
    right(
        &configurations,
        "matrix: {gc: [g1, serial], heap: [6m, 8m], jdk: [17, found], limit: [64m], nmt: [off], exclude: [{gc: g1, jdk: 17}]}\n",
    );
}

const ELASTIC: &str = "{elasticity: {name: e, of: rss, base: a, spike: b, valley: c, ideal: 0.8}}";
const SLOPE: &str = "{slope: {name: bytes_per_instance, of: heap_live, per: instances}}";

#[test]
fn schema_and_parser_reject_invalid_figures() {
    let check = |figure: &str| wrong("seed: 7", &format!("figures: [{figure}]\nseed: 7"));
    check("{}");
    check("{slop: {of: rss, per: n}}");
    check("{slope: {of: rss}}");
    check("{slope: {of: rss, per: n}, elasticity: {of: rss, base: a, spike: b, valley: c}}");
    check(&ELASTIC.replace("0.8", "1.8"));
    check(&ELASTIC.replace("0.8", "high"));
    check(&ELASTIC.replace("base: a, ", ""));
    check(&ELASTIC.replace("base", "bass"));
    check(&ELASTIC.replace("base: a", "base: ' '"));
    check(&ELASTIC.replace("name: e", "name: a.b"));
    check(&ELASTIC.replace("of: rss", "of: 'rss<5'"));
    check(&SLOPE.replace("per: instances", "per: 'a b'"));
    check(&SLOPE.replace("per: instances", "per: instances, marks: []"));
    check(&SLOPE.replace("per: instances", "per: instances, marks: [a]"));
    check(&SLOPE.replace("per: instances", "per: instances, marks: [a, a]"));
}

/// Schema and parser reject the plain scenario with this change.
#[track_caller]
fn wrong(from: &str, to: &str) {
    let text = changed(from, to);
    assert_ne!(complaints(&OF_SCENARIOS, &text), [] as [&str; 0], "the schema must reject: {to}");
    assert!(parsed(&text).is_err(), "the parser must reject: {to}");
}

#[test]
fn schema_and_parser_reject_invalid_settings() {
    // Misspelled keys, at every depth.
    wrong("name:", "nam:");
    wrong("subject:", "subjekt:");
    wrong("command:", "comand:");
    wrong("within:", "whitin:");
    wrong("heap:", "heep:");
    wrong("idle:", "idel:");
    wrong("connections:", "conections:");
    wrong("size:", "sice:");
    wrong("sample_hz:", "sample-hz:");
    wrong("classes:", "clases:");
    // Wrong types.
    wrong("[java, '{jvm}', -jar, app.jar, '{port}']", "java -jar app.jar");
    wrong("env: {LANG: C}", "env: [LANG]");
    wrong("jvm: [-Xss256k]", "jvm: -Xss256k");
    wrong("connections: 25", "connections: many");
    wrong("connections: 25", "connections: 2.5");
    wrong("headers: {A: b}", "headers: [A]");
    wrong("trials: 2", "trials: two");
    wrong("marks: [start, loaded]", "marks: start");
    wrong("load:\n  - warmup: {same: steady}\n", "load:\n  - [warmup]\n");
    // Wrong values.
    wrong("heap: 6m", "heap: 6q");
    wrong("heap: 6m", "heap: -6");
    wrong("gc: serial", "gc: g2");
    wrong("jdk: 17", "jdk: seventeen");
    wrong("cpus: 0", "cpus: first");
    wrong("nmt: off", "nmt: detail");
    wrong("within: 30s", "within: soon");
    wrong("connections: 25", "connections: 0");
    wrong("{same: steady}", "{driver: ' '}");
    wrong("{same: steady}", "{driver: ./load.sh, get: /x}");
    wrong("{same: steady}", "{closed: {requests: 1}, get: /x, driver: ./load.sh}");
    wrong("{same: steady}", "{within: 2m}");
    wrong("requests: 5000", "requests: 0");
    wrong("put: /x", "put: x");
    wrong("expect: 204", "expect: 20");
    wrong("marks: [start, loaded]", "marks: [start, lunch]");
    wrong("trials: 2", "trials: 0");
    wrong("sample_hz: 20", "sample_hz: 1000");
    wrong("classes: true", "classes: many");
    wrong("subject:\n", "subject:\n  port: 0\n");
    wrong("command: [java, '{jvm}', -jar, app.jar, '{port}']", "command: []");
    wrong("command: [java, '{jvm}', -jar, app.jar, '{port}']\n  env", "env");
    wrong("command: [java", "image: ''\n  command: [java");
    // Both or neither of two mutually exclusive keys.
    wrong("requests: 5000", "requests: 5000, duration: 5s");
    wrong(", requests: 5000", "");
    wrong("put: /x", "put: /x, get: /x");
    wrong("put: /x, ", "");
    wrong("put: /x", "get: /x");
    wrong("http: /hello", "http: /hello, tcp: true");
    wrong("body: {size: 1k}", "body: {size: 1k, file: a}");
    wrong("same: steady", "same: steady, get: /x");
    wrong("idle: 5s", "idle: 5s, timeout: 1s");
    wrong("closed: {connections: 25, requests: 5000}, ", "");
    wrong("configurations:\n", "matrix: {gc: [g1]}\nconfigurations:\n");
    wrong("  - rest: {idle: 5s}\n", "  - rest: {idle: 5s}\n    more: {idle: 5s}\n");
    wrong("name: plain\n", "");
    wrong("  command: [java, '{jvm}', -jar, app.jar, '{port}']\n", "");
}

#[test]
fn schema_and_parser_accept_searches() {
    right("seed: 7", "target: ['p99<50ms', 'rate>=98%', 'failed==0']\nseed: 7");
    right("seed: 7", "find: {}\nseed: 7");
    right(
        "seed: 7",
        "find: {step: 1%, proofs: 10, headroom: 0.2, as_is: true, limit_min: 64m, limit_max: 2g, trials_max: 30, \
         minutes: 5, warm: false}\nseed: 7",
    );
    right("seed: 7", "find: {prove: 107m}\nseed: 7");
    right("seed: 7", "find: {max_rate: true}\nseed: 7");
}

#[test]
fn schema_and_parser_reject_invalid_searches() {
    let check = |line: &str| wrong("seed: 7", &format!("{line}\nseed: 7"));
    check("target: p99<50ms");
    check("target: [p99]");
    check("find: [step]");
    check("find: {stepp: 1%}");
    check("find: {step: 2MiB}");
    check("find: {step: 0}");
    check("find: {step: 0.9}");
    check("find: {proofs: 0}");
    check("find: {proofs: many}");
    check("find: {headroom: -0.1}");
    check("find: {headroom: 5ms}");
    check("find: {as_is: 1}");
    check("find: {limit_min: 6q}");
    check("find: {trials_max: 0}");
    check("find: {warm: perhaps}");
    check("find: {prove: all}");
    check("find: {max_rate: 200}");
    check("find: {prove: 64m, max_rate: true}");
    // Only the parser knows relations between values, and the meaning of text.
    for wrong in ["find: {limit_min: 1g, limit_max: 64m}", "find: {step: 90%}", "find: {headroom: 2000%}"] {
        let error = parsed(&changed("seed: 7", &format!("{wrong}\nseed: 7"))).unwrap_err();
        assert!(error.what.contains("find."), "{error}");
    }
}

#[test]
fn schema_and_parser_reject_invalid_loads() {
    wrong("body: {size: 1k}", "body: {file: a, fill: zero}");
    wrong("body: {size: 1k}", "body: {fill: zero}");
    wrong("body: {size: 1k}", "body: {size: 1k, fill: one}");
    wrong("put: /x", "requests: [{put: /x}]");
    wrong("put: /x, headers: {A: b}, body: {size: 1k}", "requests: []");
    wrong("put: /x, headers: {A: b}, body: {size: 1k}", "requests: [{weight: 1}]");
    wrong("put: /x, headers: {A: b}, body: {size: 1k}", "requests: [{get: /x, weight: 0}]");
    wrong("put: /x, headers: {A: b}, body: {size: 1k}", "requests: [{get: /x, put: /x}]");
    wrong("put: /x, headers: {A: b}, body: {size: 1k}", "requests: [{get: /x, wait: 1s}]");
    let closed = "closed: {connections: 25, requests: 5000}";
    wrong(closed, &format!("{closed}, constant: {{rate: 1, requests: 1}}"));
    wrong(closed, "constant: {duration: 10s}");
    wrong(closed, "constant: {rate: 5}");
    wrong(closed, "constant: {rate: -5, duration: 10s}");
    wrong(closed, "constant: {rate: 1e9, duration: 10s}");
    wrong(closed, "constant: {rate: fast, duration: 10s}");
    wrong(closed, "ramp: {from: 1, to: 9}");
    wrong(closed, "ramp: {from: 1, to: 9, requests: 10}");
    wrong(closed, "staircase: {from: 1, to: 9, steps: 1, duration: 1s}");
    wrong(closed, "staircase: {from: 1, to: 9, duration: 1s}");
    wrong(closed, "schedule: {connections: 5}");
    wrong("expect: 204", "expect: {status: 20}");
    wrong("expect: 204", "expect: {stat: 204}");
    wrong("expect: 204", "expect: {body: ''}");
    wrong("expect: 204", "stop: ['p99']");
    wrong("expect: 204", "stop: ['p99<50']");
    wrong("expect: 204", "stop: ['speed<50ms']");
    wrong("expect: 204", "send_rate: -1");
    wrong("expect: 204", "within: 1s");
    wrong("expect: 204", "http2: {streams: 0}");
    wrong("idle: 5s", "driver: wrk, get: /x");
    wrong("idle: 5s", "driver: ' '");
    wrong("idle: 5s", "phases: []");
    wrong("idle: 5s", "phases: [a, a]");
    wrong("idle: 5s", "phases: [a], get: /x");
    wrong("idle: 5s", "phases: [a], mark: true");
    wrong("idle: 5s", "phases: [a], settle: 1s");
    wrong("idle: 5s", "phases: [a], collect: 11");
    wrong("idle: 5s", "idle: 5s, collect: 1");
    wrong("idle: 5s", "idle: 5s, mark: later");
    wrong("expect: 204", "pattern: x");
    wrong("expect: 204", "collect: 1");
    wrong("trials: 2", "collect: {times: 0}");
    wrong("trials: 2", "collect: 2");
    wrong("  env: {LANG: C}\n", "  env: {LANG: C}\n  tls: {key: a}\n");
}
