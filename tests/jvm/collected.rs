//! The exports of `loadline watch --otlp` from a real JVM, checked against an OTLP/JSON schema. The collector accepts,
//! is busy, rejects, partially accepts, and hangs; at the end, only reported exports are lost.
//! `src/watch/push_tests.rs` counts earlier losses.

use crate::invocation::newest;
use crate::waiting::{LONG, wait_for, wait_until};
use crate::watch::Leaking;
use loadline_test_support::ReceivedRequest;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const TAKES: &str = "200 OK\r\nContent-Length: 21\r\n\r\n{\"partialSuccess\":{}}";
const ANSWERS: [&str; 6] = [
    TAKES,
    "503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    TAKES,
    "400 Bad Request\r\nContent-Length: 38\r\n\r\n{\"code\":3,\"message\":\"too many labels\"}",
    "200 OK\r\nContent-Length: 71\r\n\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"2\",\"errorMessage\":\"too old\"}} ",
    // Sends no response and keeps the connection open.
    "",
];

/// A collector that sends each response once, then accepts all; returns its port, and the received requests.
fn collect() -> (u16, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, received) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
    let own = Arc::clone(&received);
    std::thread::spawn(move || {
        let mut hanging = Vec::new();
        for answer in ANSWERS.iter().chain(std::iter::repeat(&TAKES)) {
            let mut stream = listener.accept().unwrap().0;
            own.lock().unwrap().push(ReceivedRequest::read(&mut BufReader::new(&stream)).unwrap());
            match *answer {
                "" => hanging.push(stream),
                answer => stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap(),
            }
        }
    });
    (port, received)
}

/// A metric's values by its last attribute's value, or an empty string.
fn points(body: &Value, name: &str) -> Vec<(String, u64)> {
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["name"] == name);
    let points = metric.and_then(|metric| metric["sum"]["dataPoints"].as_array());
    let of = |point: &Value| {
        let attribute = point["attributes"].as_array().unwrap().last();
        let label = attribute.and_then(|one| one["value"]["stringValue"].as_str()).unwrap_or_default();
        (label.to_owned(), point["asInt"].as_str().unwrap().parse().unwrap())
    };
    points.into_iter().flatten().map(of).collect()
}

#[test]
fn metrics_are_sent_as_otlp_and_rejections_reported() {
    let Some(release) = newest().pop() else { return };
    let leaking = Leaking::start(release, &[("idle", "rate=0", "-Xmx32m")]);
    let (port, received) = collect();
    let folder = tempfile::tempdir().unwrap();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_loadline"));
    watch.args(["watch", &leaking.pids(), "--every", "100ms", "--account", "never", "--history"]).arg(folder.path());
    watch.arg(format!("--otlp=http://127.0.0.1:{port}"));
    watch.env("OTEL_METRIC_EXPORT_INTERVAL", "200").env("OTEL_EXPORTER_OTLP_TIMEOUT", "500");
    watch.env("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20bWU6eA%3D%3D");
    watch.env("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,zone=a,process.pid=1");
    let mut child = watch.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let count = || received.lock().unwrap().len();
    wait_for("all responses were sent, and two more", LONG, || {
        (count() >= ANSWERS.len() + 2).then_some(()).ok_or(count())
    });
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    wait_until("it ends", LONG, || child.try_wait().unwrap().is_some());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    for piece in [
        "could not be sent: it responded with `503 Service Unavailable`; it will be retried",
        "sending metrics again",
        "could not be sent: it responded with `400 Bad Request`: too many labels; it will not be retried",
        "the collector rejected some metrics: 2 data points were rejected: too old",
        "no response within 500ms; it will be retried",
    ] {
        assert!(said.contains(piece), "{piece}: {said}");
    }
    let schema: Value = serde_json::from_str(include_str!("otlp.schema.json")).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    for ReceivedRequest { head, body } in received.lock().unwrap().iter() {
        let body: Value = serde_json::from_slice(body).unwrap();
        let complaints: Vec<String> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
        assert_eq!(complaints, [] as [&str; 0], "{body:#}");
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
        assert!(head.contains("\r\nAuthorization: Basic bWU6eA==\r\n"), "{head}");
        check(&body, leaking.pid("idle"));
    }
}

/// Checks a request's data about the JVM.
fn check(body: &Value, pid: u32) {
    let attributes = body["resourceMetrics"][0]["resource"]["attributes"].as_array().unwrap();
    let keys: BTreeSet<&str> = attributes.iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), attributes.len(), "a key occurs twice: {body:#}");
    let value = |key: &str| &attributes.iter().find(|one| one["key"] == key).unwrap()["value"];
    assert_eq!(value("service.name")["stringValue"], "shop");
    assert_eq!(value("zone")["stringValue"], "a");
    assert_eq!(value("process.pid")["intValue"], pid.to_string());
    assert!(value("service.instance.id")["stringValue"].as_str().unwrap().starts_with("loadline.subjects.Leaks"));
    let heap: u64 = points(body, "jvm.memory.used").iter().find(|(pool, _)| pool == "heap").unwrap().1;
    assert!(heap > 0 && heap <= 32 << 20, "{body:#}");
    let rss = points(body, "process.memory.usage")[0].1;
    assert!(rss > heap, "{body:#}");
    let owners: u64 = points(body, "loadline.memory.counted").iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(owners, rss, "{body:#}");
    assert_eq!(points(body, "loadline.growth").len(), 1, "{body:#}");
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "the JVM must still run");
}
