//! `loadline load` against a small server in a thread. No test depends on timing: only on counts, codes, words, and
//! file contents.

use crate::called::{Called, loadline_in};
use crate::interval_log::logged;
use crate::schema::Schema;
use crate::server::Server;
use crate::waiting::{LONG, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub(crate) const LOAD: &str = "load.schema.json";

/// Calls `loadline load URL` with these arguments, in an empty directory.
fn load(url: &str, words: &str) -> Called {
    load_in(tempfile::tempdir().unwrap().path(), url, words)
}

fn load_in(folder: &Path, url: &str, words: &str) -> Called {
    let mut arguments = vec!["load", url];
    arguments.extend(words.split_whitespace());
    loadline_in(folder, &arguments)
}

/// The document of a successful call.
fn document(url: &str, words: &str) -> Value {
    let called = load(url, &format!("{words} --json --quiet"));
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{called}");
    Schema::published(LOAD).describes(&called.json(), words);
    called.json()
}

#[track_caller]
fn expect(called: &Called, code: i32, says: &[&str]) {
    assert_eq!(called.code, code, "{called}");
    let text = called.to_string();
    says.iter().for_each(|piece| assert!(text.contains(piece), "`{piece}` is missing: {called}"));
}

// ---- Requests that are sent, and the report on them ----

#[test]
fn a_closed_load_counts_the_servers_requests() {
    let server = Server::start();
    let called = load(&server.url("/hello"), "-n 500 -c 5");
    expect(&called, 0, &["500 ok, none failed", "service time", "Closed model", "5 requested", "http/1.1"]);
    assert!(!called.stdout.contains("response time") && !called.stdout.contains('\x1b'), "{called}");
    assert!(called.stdout.lines().all(|line| line.chars().count() <= 80), "{called}");
    assert_eq!(server.requests(), 500);
    assert_eq!(server.connections(), 6, "five connections send the load, and one checks for a listener");
}

#[test]
fn an_open_load_has_both_times_and_a_queue() {
    let server = Server::start();
    let document = document(&server.url("/hello"), "--rate 1000 --poisson -n 200 -c 3 --connections-max 9 --seed 7");
    let phase = &document["phases"][0];
    assert_eq!((&phase["model"], &phase["ok"]), (&"open".into(), &200.into()));
    assert!(phase["response_ms"]["p9999"].is_number() && phase["service_ms"]["p75"].is_number(), "{phase}");
    assert!(phase["offered_per_s"].is_number() && phase["queue"]["requests"].is_number(), "{phase}");
    assert!(phase["generator"]["lag_ms_max"].is_number(), "{phase}");
    assert_eq!(document["conditions"]["seed"], 7);
    let in_seconds: u64 = document["timeline"].as_array().unwrap().iter().map(|s| s["ok"].as_u64().unwrap()).sum();
    assert_eq!(in_seconds, 200);
}

#[test]
fn a_vanished_server_gives_exit_code_3() {
    let server = Server::start();
    let url = server.url("/hello");
    let ending = std::thread::spawn(move || {
        wait_until("the server has responded", LONG, || server.requests() > 100);
        drop(server);
    });
    let called = load(&url, "-n 1000000 -c 2 --close");
    ending.join().unwrap();
    expect(&called, 3, &["s into steady it refused connections", "`loadline post-mortem`"]);
    assert!(!called.stdout.contains("check the URL") && !called.stdout.contains("Next: `--rate"), "{called}");
}

#[test]
fn every_option_affects_the_request_sent() {
    let server = Server::start();
    let url = server.url("/hello?n={seq}");
    document(&url, "-n 3 -c 1 --method post --body-text n={seq} --header X-Own:{seq} --expect-continue --close");
    let (head, body) = server.last();
    assert!(head.starts_with("POST /hello?n=2 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("X-Own: 2\r\n") && head.contains("Connection: close"), "{head}");
    assert!(head.contains("Expect: 100-continue"), "{head}");
    assert_eq!(body, "n=2".len());
    assert_eq!(server.connections(), 4);
    for (words, length) in [("--body-size 2k", 2048), ("--body-size 1k --body-fill zero", 1024)] {
        document(&server.url("/hello"), &format!("-n 1 --method PUT {words}"));
        assert_eq!(server.last().1, length);
    }
}

#[test]
fn responses_are_checked_against_expectations() {
    let server = Server::start();
    let url = server.url("/hello");
    let right = "--expect-status 200 --expect-length 12 --expect-header X-Kind:plain --expect-body world";
    assert_eq!(document(&url, &format!("-n 10 -c 2 {right}"))["phases"][0]["ok"], 10);
    for wrong in ["--expect-length 13", "--expect-header X-Other", "--expect-header X-Kind:x", "--expect-body moon"] {
        expect(&load(&url, &format!("-n 10 -c 2 {wrong}")), 3, &["10 failed check", "none of 10 requests"]);
    }
    expect(&load(&url, "-n 10 --expect-status 204"), 3, &["10 wrong status (10 x 200)", "`--expect-status`"]);
}

#[test]
fn a_plan_runs_its_phases_in_order() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let plan = "
name: a whole scenario will do
subject: {command: [unused]}
seed: 9
load:
  - warmup: {closed: {connections: 2, requests: 20}, get: /hello}
  - mix: {constant: {rate: 500, requests: 60}, requests: [{get: /hello, weight: 2}, {get: /gone, expect: 404}]}
  - pause: {idle: 20ms}
  - last: {schedule: {file: starts.txt, connections: 2}, get: /hello}
";
    std::fs::write(folder.path().join("plan.yaml"), plan).unwrap();
    std::fs::write(folder.path().join("starts.txt"), "0\n0.01\n0.02\n").unwrap();
    let called = load_in(folder.path(), &server.url(""), "--plan plan.yaml --require failed==0 --json --quiet");
    expect(&called, 0, &[]);
    let document = called.json();
    let names: Vec<_> = document["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str()).collect();
    assert_eq!(names, ["warmup", "mix", "pause", "last"].map(Some));
    assert_eq!(document["conditions"]["seed"], 9);
    let by_request = document["phases"][1]["by_request"].as_array().unwrap();
    let ok: u64 = by_request.iter().map(|request| request["ok"].as_u64().unwrap()).sum();
    assert_eq!((by_request.len(), ok), (2, 60));
    assert_eq!(document["phases"][3]["ok"], 3);
    let judged: Vec<_> = document["thresholds"].as_array().unwrap().iter().map(|one| one["phase"].as_str()).collect();
    assert_eq!(judged, ["mix", "last"].map(Some), "neither the warm-up nor the rest is judged");
    assert_eq!(server.requests(), 83);
}

#[test]
fn options_override_a_plan_and_its_paths() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let plan = "load: [{one: {closed: {requests: 1000000}, get: /gone}}]\n";
    std::fs::write(folder.path().join("plan.yaml"), plan).unwrap();
    let called = load_in(folder.path(), &server.url("/hello"), "--plan plan.yaml -n 30 -c 3 --warmup 10");
    expect(&called, 0, &["30 ok, none failed", "10 ok, none failed"]);
    assert_eq!(server.requests(), 40);
}

#[test]
fn a_server_on_a_unix_socket_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    Server::on_socket(&folder.path().join("s"));
    let called = load_in(folder.path(), "http://anything/hello", "-n 40 -c 2 --unix-socket s --threads 2");
    expect(&called, 0, &["40 ok, none failed", "unix:s", "2 threads"]);
}

// ---- Verdicts ----

#[test]
fn thresholds_decide_the_exit_code() {
    let server = Server::start();
    let url = server.url("/hello");
    let holds = "--require p99<60s --require failed==0 --require rate>=0.001";
    expect(&load(&url, &format!("-n 50 {holds}")), 0, &["p99<1m: met (", "failed==0: met (0)"]);
    let fails = load(&url, "-n 50 --require max<1us --require failed==0");
    expect(&fails, 1, &["max<1us: missed ("]);
    assert!(fails.stdout.starts_with("max<1us: missed ("), "a missed requirement must come first: {fails}");
    let unknown = load(&url, "-n 50 --require response.p99<60s");
    expect(&unknown, 1, &["response.p99<1m: cannot be judged"]);
}

#[test]
fn a_missed_rate_is_shown_first_and_fails_with_strict() {
    let server = Server::start();
    // A connection that is busy for 20 ms serves at most 50 requests per second.
    let words = "--rate 1000 -d 500ms -c 1 --drain 50ms";
    let called = load(&server.url("/slow"), words);
    expect(&called, 0, &["unanswered", "when the phase ended", "of 1,000/s offered"]);
    assert!(called.stdout.starts_with("the load offered 1,000/s in steady, but only "), "{called}");
    expect(&load(&server.url("/slow"), &format!("{words} --strict")), 1, &["--strict: missed"]);
    expect(&load(&server.url("/slow"), &format!("{words} --require rate>=99%")), 1, &["rate>=99%: missed"]);
}

#[test]
fn a_stop_condition_ends_a_phase_early() {
    let server = Server::start();
    let called = load(&server.url("/hello"), "-d 60s -c 1 --stop-when rate>=0.1");
    expect(&called, 0, &["rate>=0.1", "ended early", "early: "]);
}

// ---- Files ----

#[test]
fn the_files_agree_with_the_document() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let files = "--hlog a.hlog --csv a.csv --rows a.rows";
    let called = load_in(folder.path(), &server.url("/hello"), &format!("--rate 2000 -n 300 -c 4 {files}"));
    expect(&called, 0, &["300 ok"]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let counted = logged(&folder.path().join("a.hlog"));
    assert_eq!(counted, BTreeMap::from([("steady-response".to_owned(), 300), ("steady-service".to_owned(), 300)]));
    let seconds = table(&read("a.csv"));
    assert_eq!(seconds.iter().map(|row| row["ok"].parse::<u64>().unwrap()).sum::<u64>(), 300);
    assert!(seconds.iter().all(|row| row["phase"] == "steady" && row["queue"].parse::<u64>().is_ok()), "{seconds:?}");
    let rows = table(&read("a.rows"));
    assert_eq!(rows.len(), 300);
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    for row in &rows {
        assert_eq!((row["status"].as_str(), row["body_bytes"].as_str(), row["failure"].as_str()), ("200", "12", ""));
        assert!(number(row, "started_s") >= number(row, "intended_s"), "{row:?}");
        assert!(number(row, "response_ms") >= number(row, "service_ms"), "{row:?}");
        assert!(number(row, "service_ms") >= number(row, "first_byte_ms"), "{row:?}");
    }
}

/// Rows by column name.
fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines
        .map(|cells| {
            assert_eq!(cells.len(), head.len(), "{cells:?}");
            head.iter().cloned().zip(cells).collect()
        })
        .collect()
}

#[test]
fn rows_beyond_the_maximum_are_sampled_with_a_note() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let called = load_in(folder.path(), &server.url("/hello"), "-n 500 -c 2 --rows a.rows --rows-max 50");
    expect(&called, 0, &["rows: a random sample, 50 of 500 requests"]);
    let rows = table(&std::fs::read_to_string(folder.path().join("a.rows")).unwrap());
    assert_eq!(rows.len(), 50);
    assert!(rows.iter().all(|row| row["response_ms"].is_empty()), "a closed model has no intended start");
}

#[test]
fn a_full_disk_loses_the_file_but_not_the_result() {
    let server = Server::start();
    let called = load(&server.url("/hello"), "-n 50 --csv /dev/full");
    expect(&called, 4, &["50 ok, none failed"]);
    assert_eq!(called.stderr.matches("No space left on device").count(), 1, "{called}");
}

// ---- Wrong options ----

#[test]
fn invalid_load_options_are_rejected_before_anything_is_sent() {
    let server = Server::start();
    let url = server.url("/hello");
    let check = |words: &str, what: &str| {
        let called = load(&url, words);
        expect(&called, 2, &["error: ", what]);
        assert_eq!(called.stdout, "", "{called}");
    };
    check("--rate 0", "a rate of 0/s is not possible");
    check("--rate -5", "`-5` is not a rate");
    check("--rate 1e9", "`1e9` is not a rate");
    check("--rate 99999999", "is not possible");
    check("--rate 5 --think 1s", "cannot be used with");
    check("--poisson", "add one: `--rate 500`");
    check("--schedule no-such", "cannot read the schedule no-such");
    check("-c 0", "between 1 and 100000");
    check("-c many", "invalid value 'many'");
    check("-n 0", "`requests` is 0");
    check("-d 0", "must be greater than 0");
    check("-d soon", "`soon` is not a duration");
    check("-n 5 -d 5s", "cannot be used with");
    check("--timeout 0", "`timeout` must be greater than 0");
    check("--method brew", "`brew` is not one of GET");
    check("--method put --body no-such", "cannot read the body no-such");
    check("--body-text x", "GET requests cannot have a body");
    check("--body-fill zero", "--body-size");
    check("--streams 5", "--http2");
    check("--expect-status 20", "between 100 and 999");
    check("--header broken", "`broken` is not a header");
    check("--require p99<50", "write it as `p99<50ms`");
    check("--stop-when speed>1", "its metric is unknown");
    check("--threads 0", "invalid value '0'");
    check("--load-cpus 4000", "CPU 4000 is not available");
    check("--insecure", "`--insecure` requires HTTPS");
    check("--plan no-such", "cannot read the plan no-such");
    check("--csv no/such/file", "cannot create no/such/file");
    check("--csv a --hlog a", "two outputs would be written to a");
    check("--rows-max 5", "has no effect without `--rows`");
    assert_eq!(server.requests(), 0);
}

#[test]
fn an_unsuitable_load_plan_is_rejected() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let check = |plan: &str, path: &str, what: &str| {
        std::fs::write(folder.path().join("plan.yaml"), plan).unwrap();
        expect(&load_in(folder.path(), &server.url(path), "--plan plan.yaml"), 2, &["error: ", what]);
    };
    check("load: [{a: {idle: 1s}}]", "", "the plan has no load phase");
    check("load: [{a: {driver: wrk}}]", "", "phase a is driven by another program");
    check("load: [{a: {closed: {requests: 1}, gett: /}}]", "", "did you mean `get`?");
    check("phases: []", "", "missing field `load`");
    check("load: [{a: {closed: {requests: 1}, requests: [{get: /}, {get: /b}]}}]", "/x", "has several requests");
}

#[test]
fn an_unusable_url_is_explained() {
    let check = |url: &str, code: i32, what: &str| expect(&load(url, "-n 5"), code, &["error: ", what, "\nhint: "]);
    check("127.0.0.1:8080", 2, "it does not start with `http://`");
    check("ftp://127.0.0.1/", 2, "`ftp` is neither `http` nor `https`");
    check("http://127.0.0.1:0/", 2, "its port is not between 1 and 65535");
    check("http://127.0.0.1:99999/", 2, "its port is not between 1 and 65535");
    check("http://127.0.0.1:{port}/", 2, "write the port on which the server listens");
    check("http://", 2, "it does not have a plain host");
    check("http://no-such-host.invalid/", 2, "`no-such-host.invalid` cannot be resolved");
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    check(&url, 3, &format!("nothing listens on 127.0.0.1:{port}: connection refused"));
}

#[test]
fn a_server_without_correct_responses_gives_exit_code_3() {
    let server = Server::start();
    expect(&load(&server.url("/gone"), "-n 20"), 3, &["20 wrong status (20 x 404)", "check the path of the URL"]);
    let called = load(&server.url("/never"), "-n 3 -c 3 --timeout 100ms");
    expect(&called, 3, &["3 timed out", "does not respond"]);
}

#[test]
fn too_many_connections_for_the_descriptors_are_rejected() {
    let server = Server::start();
    let line =
        format!("ulimit -n 64; exec {} load {} -n 500 -c 200", env!("CARGO_BIN_EXE_loadline"), server.url("/hello"));
    let done = Command::new("sh").args(["-c", &line]).output().unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("200 connections") && stderr.contains("hint: raise the limit with `ulimit -n"), "{stderr}");
}

// ---- Interrupted ----

/// A load that runs until a signal stops it.
fn endless(folder: &TempDir, words: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.arg("load").args(words).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &std::process::Child) {
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn an_interrupt_keeps_the_measurements() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let child = endless(&folder, &[&server.url("/hello"), "-d", "1h", "-c", "2", "--rows", "a.rows"]);
    wait_until("requests arrive", LONG, || server.requests() > 100);
    interrupt(&child);
    let done = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(130), "{stdout}{stderr}");
    assert!(stdout.starts_with("interrupted: the numbers cover only the part that ran"), "{stdout}");
    assert!(stdout.contains("ok, none failed") && stdout.contains("service time"), "{stdout}");
    assert!(stderr.contains("error: interrupted"), "{stderr}");
    assert!(table(&std::fs::read_to_string(folder.path().join("a.rows")).unwrap()).len() > 100);
}

#[test]
fn an_interrupt_ends_a_rest_immediately() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let plan = "load: [{one: {closed: {requests: 20}, get: /hello}}, {pause: {idle: 1h}}]\n";
    std::fs::write(folder.path().join("plan.yaml"), plan).unwrap();
    let child = endless(&folder, &[&server.url(""), "--plan", "plan.yaml", "--json"]);
    wait_until("the first phase is over", LONG, || server.requests() == 20);
    interrupt(&child);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&document["interrupted"], &document["phases"][0]["ok"]), (&true.into(), &20.into()));
}
