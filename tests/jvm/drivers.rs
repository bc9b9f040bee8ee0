//! Phases driven by another program: shell scripts, and real tools if they are on the PATH.

use crate::invocation::{Call, Started, doubts, mark, mark_names, marked, newest, phase};
use crate::test_subjects::test_subjects;
use crate::waiting::{LONG, wait_until};
use loadline::doubt::Doubt;
use loadline::record::{EndCause, Model, Outcome, Timing, Tool, Trial};
use loadline_test_support::has;

/// A subject that serves `/hello`, and one phase with its driver.
const SCENARIO: &str = r#"
name: driven
subject:
  command: [java, "{jvm}", -Dmarking=MARKING, -cp, JAR, loadline.subjects.DemoServer, "{port}"]
  ready: {http: /hello, within: 30s}
configurations: {serial: {heap: 16m, gc: serial, jdk: RELEASE}}
load:
  - steady: {driver: "DRIVER"}
  - rest: {idle: 200ms}
"#;

/// Sends 200 requests on one connection with bash, then prints output like wrk's.
const LIKE_WRK: &str = r#"#!/usr/bin/env bash
set -eu
exec 3<> "/dev/tcp/$1/$2"
for _ in $(seq 200); do
  printf 'GET /hello HTTP/1.1\r\nHost: x\r\n\r\n' >&3
  length=0
  while IFS= read -r line <&3; do
    line=${line%$'\r'}
    case ${line,,} in content-length:*) length=${line##*:}; length=${length// /} ;; esac
    [ -n "$line" ] || break
  done
  IFS= read -r -N "$length" body <&3
done
cat <<END
Running 1s test @ http://$1:$2/hello
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   108.51us  203.53us   3.99ms   98.68%
    Req/Sec    55.39k     1.42k   56.42k    90.48%
  200 requests in 2.00s, 20.12KB read
Requests/sec:    100.00
Transfer/sec:     10.06KB
END
"#;

/// `loadline run` with this driver, which may include `within`.
fn run(release: u32, driver: &str, options: &str) -> Call {
    let call = Call::verb("run --json");
    let text = SCENARIO
        .replace("JAR", test_subjects())
        .replace("MARKING", &call.folder().display().to_string())
        .replace("RELEASE", &release.to_string())
        .replace("\"DRIVER\"", driver);
    std::fs::write(call.folder().join("like-wrk.sh"), LIKE_WRK).unwrap();
    let call = call.of_scenario("driven", &text);
    if options.is_empty() { call } else { call.with(options) }
}

/// A long-running command whose words are unique, even across test runs.
fn lasting(n: u32) -> String {
    format!("sleep 432{n}.{}", std::process::id())
}

/// Processes with this text in their command line.
fn left(text: &str) -> Vec<String> {
    marked(text, std::process::id()).iter().map(|process| process.command()).collect()
}

#[test]
fn a_script_drives_the_load_and_its_output_gives_the_figures() {
    for release in newest() {
        let ran = run(release, "\"bash like-wrk.sh {host} {port}\"", "").run().expect(0);
        let trial = ran.trial();
        assert_eq!(
            (trial.outcome, mark_names(&trial)),
            (Outcome::Completed, vec!["start", "loaded", "rested", "collected"])
        );
        let steady = phase(&trial, "steady");
        assert_eq!((steady.model, steady.requests, steady.ok), (Model::Driver, 200, 200));
        assert!((steady.achieved_per_s - 100.0).abs() < 1e-9, "{steady:?}");
        assert_eq!((steady.service_ms, steady.generator), (None, None));
        // The subject was measured throughout.
        assert!(steady.subject.cpu_s.is_some() && steady.subject.rss_bytes_max.is_some(), "{steady:?}");
        let driver = steady.driver.as_ref().unwrap();
        assert!(driver.command.starts_with("bash like-wrk.sh 127.0.0.1 "), "{driver:?}");
        assert!(driver.cpu_s.is_some_and(|cpu_s| cpu_s > 0.0), "{driver:?}");
        let reported = driver.reported.as_ref().unwrap();
        assert_eq!((reported.tool, reported.timing), (Tool::Wrk, Timing::Service));
        assert_eq!((reported.times_ms.max, reported.times_ms.p99), (Some(3.99), None));
        assert_eq!((driver.exit_code, driver.log.as_deref()), (Some(0), Some("driver-steady.log")));
        let log = std::fs::read_to_string(ran.file("driver-steady.log")).unwrap();
        assert!(log.starts_with("Running 1s test @ http://127.0.0.1:"), "{log}");
        assert_eq!(ran.archived().trials, [trial]);
    }
}

#[test]
fn unrecognized_driver_output_is_allowed() {
    for release in newest() {
        let driver = "\"bash like-wrk.sh {host} {port} | grep -v requests; sleep 0.3\"";
        let ran = run(release, driver, "").run().expect(0);
        let trial = ran.trial();
        let steady = phase(&trial, "steady");
        assert_eq!((trial.outcome, steady.requests), (Outcome::Completed, 0));
        assert_eq!(steady.driver.as_ref().unwrap().reported, None);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::DriverNotRead { .. })), "{:?}", trial.doubts);
        assert!(mark(&trial, "loaded").rss_bytes > 0);
        let samples = ran.timeline().iter().filter(|sample| sample.at_s > steady.at_s).count();
        assert!(samples >= 2, "{samples}");
        let shown = Call::verb("report").with_argument(&ran.archive).beside().run().expect(0);
        assert!(shown.stdout.contains("not read"), "{}", shown.stdout);
    }
}

/// The only trial of a run whose driver failed.
fn failed(release: u32, driver: &str, says: &[&str]) -> Trial {
    let ran = run(release, driver, "").run().expect(2).says(says);
    let trial = ran.trial();
    assert_eq!((trial.outcome, mark_names(&trial)), (Outcome::Aborted, vec!["start", "loaded", "collected"]));
    assert_eq!(phase(&trial, "steady").model, Model::Driver);
    assert_eq!(trial.end.as_ref().unwrap().cause, EndCause::AsAsked);
    trial
}

#[test]
fn a_failing_driver_fails_the_trial() {
    for release in newest() {
        let says =
            ["error: the driver failed: exit code 3", "command: echo sorry; exit 3", "in phase steady", "| sorry"];
        let trial = failed(release, "\"echo sorry; exit 3\"", &says);
        assert_eq!(phase(&trial, "steady").driver.as_ref().unwrap().exit_code, Some(3));
        let says = ["error: the driver's command was not found", "command: no-such-load-tool", "hint: install"];
        failed(release, "\"no-such-load-tool {url}/hello\"", &says);
        failed(release, "\"kill -9 $$\"", &["error: the driver failed: signal 9"]);
    }
}

#[test]
fn an_endless_driver_is_ended_with_its_children() {
    for release in newest() {
        let sleep = lasting(1);
        let driver = &format!("\"echo begun; {sleep} & exec {sleep}\", within: 400ms");
        let trial =
            failed(release, driver, &["error: the driver did not finish within 400ms", "| begun", "hint: give it"]);
        let steady = phase(&trial, "steady");
        assert!((0.4..20.0).contains(&steady.seconds), "{steady:?}");
        assert!(steady.cut_short.is_some() && steady.driver.as_ref().unwrap().exit_code.is_none(), "{steady:?}");
        assert_eq!(left(&sleep), [""; 0]);
    }
}

/// A driver that prints a tool's sample output, and exits with this code.
fn saying(sample: &str, code: i32) -> String {
    format!("\"cat '{}/tests/samples/drivers/{sample}'; exit {code}\"", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn crossed_k6_thresholds_raise_a_doubt_but_do_not_fail() {
    for release in newest() {
        let trial = run(release, &saying("k6-threshold.txt", 99), "").run().expect(0).trial();
        assert_eq!((trial.outcome, phase(&trial, "steady").ok), (Outcome::Completed, 24_063));
        let crossed = |doubt: &Doubt| matches!(doubt, Doubt::DriverThresholds { code: 99, .. });
        assert!(doubts(&trial, crossed), "{:?}", trial.doubts);
        // Any other code means that k6 itself failed, regardless of its output.
        failed(release, &saying("k6-threshold.txt", 107), &["error: the driver failed: exit code 107"]);
    }
}

#[test]
fn a_driver_without_responses_fails_the_phase() {
    for release in newest() {
        let says = ["error: none of 10 requests in phase steady succeeded: 10 refused"];
        let trial = run(release, &saying("oha-refused.txt", 0), "").run().expect(3).says(&says).trial();
        assert_eq!((trial.outcome, phase(&trial, "steady").failed.refused), (Outcome::SubjectFailed, 10));
    }
}

/// Waits until the driver is running.
fn driving(started: &mut Started, text: &str) {
    started.until_said("  steady: ");
    wait_until("the driver runs", LONG, || !left(text).is_empty());
}

#[test]
fn ctrl_c_ends_the_driver() {
    for release in newest() {
        let sleep = lasting(2);
        let mut started = run(release, &format!("\"{sleep} & {sleep}\""), "").start();
        driving(&mut started, &sleep);
        started.signal("INT");
        let ran = started.wait().expect(130).says(&["error: interrupted", "in phase steady"]);
        let trial = ran.trial();
        let steady = phase(&trial, "steady");
        assert_eq!(steady.cut_short.as_deref(), Some("it was interrupted"));
        assert_eq!(left(&sleep), [""; 0]);
    }
}

#[test]
fn killing_loadline_ends_the_driver() {
    for release in newest() {
        let sleep = lasting(3);
        let mut started = run(release, &format!("\"{sleep} & {sleep}\""), "").start();
        driving(&mut started, &sleep);
        started.signal("KILL");
        started.wait().leaves_none("its drivers are", || left(&sleep));
    }
}

#[test]
fn the_death_of_the_subject_ends_the_driver() {
    for release in newest() {
        let sleep = lasting(4);
        let mut started = run(release, &format!("\"{sleep}\""), "").start();
        driving(&mut started, &sleep);
        rustix::process::kill_process(pid(started.jvm().pid), rustix::process::Signal::KILL).unwrap();
        let ran = started.wait().expect(3).says(&["error: the server died", "in phase steady"]);
        assert_eq!(phase(&ran.trial(), "steady").cut_short.as_deref(), Some("the server died"));
        assert_eq!(left(&sleep), [""; 0]);
    }
}

fn pid(pid: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(pid.cast_signed()).unwrap()
}

#[test]
fn installed_load_tools_can_drive() {
    let tools = [
        ("wrk", "wrk -t 1 -c 4 -d 1s --latency {url}/hello", Tool::Wrk),
        ("ab", "ab -q -n 500 -c 4 {url}/hello", Tool::Ab),
        ("h2load", "h2load --h1 -n 500 -c 4 {url}/hello", Tool::H2load),
        ("oha", "oha --no-tui -n 500 -c 4 {url}/hello", Tool::Oha),
    ];
    for (program, driver, tool) in tools.into_iter().filter(|(program, ..)| has("LOADLINE_TOOLS", program)) {
        for release in newest() {
            let trial = run(release, &format!("\"{driver}\""), "").run().expect(0).trial();
            let steady = phase(&trial, "steady");
            let reported = steady.driver.as_ref().unwrap().reported.clone().unwrap();
            assert_eq!(reported.tool, tool);
            let asked = if tool == Tool::Wrk { 100..u64::MAX } else { 500..501 };
            assert!(asked.contains(&steady.requests) && steady.ok == steady.requests, "{program}: {steady:?}");
            assert!(steady.achieved_per_s > 0.0 && reported.times_ms.max.is_some(), "{program}: {reported:?}");
        }
    }
}
