//! The document of `loadline load` without a server: a made-up one (as a value) on the screen and against its schema.

use crate::schema::Schema;
use crate::schemas::doubts;
use loadline::record::{
    Ages, ConnectionsRecord, DoubtRecord, Failures, Generator, LOAD_SCHEMA, LoadConditions, LoadDocument, Machine,
    Model, PhaseRecord, Quantiles, QueueRecord, RequestRecord, Second, ThresholdRecord, Verdict,
};
use loadline::report;
use serde_json::{Value, json};

pub(crate) const LOAD: &str = "load.schema.json";

fn times(factor: f64) -> Quantiles {
    Quantiles {
        p50: 0.412 * factor,
        p75: Some(0.6 * factor),
        p90: 1.23 * factor,
        p99: 12.3 * factor,
        p999: 20.5 * factor,
        p9999: Some(30.1 * factor),
        max: 42.0 * factor,
        mean: 0.9 * factor,
    }
}

/// A phase of an open model in which every field is set.
pub(crate) fn phase() -> PhaseRecord {
    let request = |request: &str, weight, ok, failed| RequestRecord { request: request.to_owned(), weight, ok, failed };
    PhaseRecord {
        name: "steady".to_owned(),
        model: Model::Open,
        seconds: 10.2,
        requests: 50_000,
        ok: 43_120,
        failed: Failures { timeout: 5999, unanswered: 880, other: 1, ..Failures::default() },
        offered_per_s: Some(5000.0),
        achieved_per_s: 4312.0,
        response_ms: Some(times(10.0)),
        service_ms: Some(times(1.0)),
        generator: Some(Generator {
            cpu_us_per_request: 8.1,
            cpu_share: 0.42,
            lag_ms_p99: Some(0.11),
            lag_ms_p50: Some(0.012),
            lag_ms_max: Some(1.2),
            connections_opened: 31,
            received_bytes: 123 << 20,
            sent_bytes: Some(4 << 20),
            threads: Some(1),
        }),
        wrong_statuses: [(503, 2)].into(),
        tls_trouble: Some("invalid peer certificate: UnknownIssuer".to_owned()),
        backend: Some("http/1.1".to_owned()),
        connections: Some(ConnectionsRecord { asked: 25, opened: 31, open_max: 25 }),
        queue: Some(QueueRecord { requests: 12_034, length_max: 688 }),
        never_begun: Some(412),
        in_flight: Some(3),
        unanswered_ms: Some(Ages { min: 1.2, p50: 512.0, max: 9980.0 }),
        by_request: vec![request("GET /hello", 3, 33_000, 5000), request("PUT /upload", 1, 10_120, 1880)],
        ..PhaseRecord::default()
    }
}

/// Put together by hand: every field is set.
fn made_up() -> LoadDocument {
    let threshold = |condition: &str, verdict, value, shown: Option<&str>| ThresholdRecord {
        condition: condition.to_owned(),
        phase: "steady".to_owned(),
        verdict,
        value,
        shown: shown.map(str::to_owned),
    };
    LoadDocument {
        schema: LOAD_SCHEMA.to_owned(),
        conditions: LoadConditions {
            loadline: "0.1.0".to_owned(),
            url: "http://127.0.0.1:8080/hello".to_owned(),
            address: "127.0.0.1:8080".to_owned(),
            started: "2026-11-22T10:00:00Z".to_owned(),
            machine: Machine {
                cpu_model: Some("EPYC 7763".to_owned()),
                cores: 2,
                memory_bytes: 24 << 30,
                kernel: "6.18.0".to_owned(),
                cgroup: "v2".to_owned(),
                load_average_1m: Some(0.25),
                transparent_huge_pages: Some("madvise".to_owned()),
                swap_used_bytes: Some(0),
            },
            load_cpus: Some(vec![1]),
            threads: 1,
            seed: 1,
            command: "loadline load http://127.0.0.1:8080/hello --rate 5k".to_owned(),
            load: vec!["steady: GET /hello, open, 5000/s, 10s, 25 connections, keep-alive".to_owned()],
        },
        phases: vec![phase()],
        timeline: vec![Second {
            phase: "steady".to_owned(),
            at_s: 1.0,
            seconds: 1.0,
            ok: 4300,
            failed: 2,
            achieved_per_s: 4300.0,
            received_bytes: 1 << 20,
            open_connections: 25,
            queue: Some(12),
            service_ms: Some(times(1.0)),
            response_ms: Some(times(10.0)),
        }],
        thresholds: vec![
            threshold("p99<50ms", Verdict::Fails, Some(123.0), Some("123 ms")),
            threshold("failed<20%", Verdict::Holds, Some(0.1376), Some("13.76 %")),
            threshold("max<1s", Verdict::Unknown, None, None),
        ],
        strict: Some(false),
        interrupted: false,
        doubts: doubts().into_iter().map(DoubtRecord::from).collect(),
    }
}

/// As `--json` prints it.
fn printed() -> Value {
    serde_json::from_str(&report::document(&made_up())).unwrap()
}

#[test]
fn the_document_is_as_described_and_nothing_else_is() {
    let schema = Schema::published(LOAD);
    schema.describes(&printed(), "as it is printed");
    // Only in a trial another program or the subject itself drives, and only there the subject is a known process.
    let of_trials = [
        "DriverRecord.",
        "Reported.",
        "Times.",
        "CpuByPurpose.",
        "PhaseRecord.steady",
        "PhaseRecord.driver",
        "PhaseRecord.counters",
        "SubjectWork.throttling",
        "Throttling.",
    ];
    assert_eq!(schema.unused_but(&[printed()], &of_trials), [] as [&str; 0]);
}

#[test]
fn both_documents_describe_what_they_share_alike() {
    let own = ["", "LoadConditions", "Second", "ThresholdRecord"];
    Schema::published(LOAD).agrees_with(&Schema::published("results.schema.json"), &own);
}

#[test]
fn a_wrong_document_is_refused() {
    let (schema, right) = (Schema::published(LOAD), printed());
    let check = |pointer: &str, wrong| assert!(!schema.accepts_with(&right, pointer, wrong), "{pointer}");
    check("/schema", json!("loadline.load/2"));
    check("/conditions/threads", json!(0));
    check("/phases/0/failed", json!({"status": 0}));
    check("/phases/0/connections", json!({"asked": 1}));
    check("/timeline/0/service_ms/p99", json!("4.2"));
    check("/timeline/0/at_s", json!(-1));
    check("/thresholds/0/verdict", json!("maybe"));
    check("/strict", json!("no"));
    check("/doubts/0", json!({"kind": "shared_cpus", "text": "no next step"}));
}

#[test]
fn readers_may_meet_new_fields() {
    let mut document = printed();
    document["later"] = json!(1);
    document["phases"][0]["later"] = json!(1);
    document["timeline"][0]["later"] = json!(1);
    assert_eq!(Schema::published(LOAD).complaints(&document), [] as [&str; 0]);
}
