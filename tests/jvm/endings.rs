//! Subjects that are not JVMs, do not start, or do not end; ports in use.

use crate::invocation::{Call, newest, releases};
use loadline::record::{EndCause, Outcome};
use loadline_test_support::has;
use std::net::TcpListener;

#[test]
fn a_normal_end_is_recorded() {
    for release in releases() {
        let trial = Call::on(release).subject("DemoServer", "{port}").run().expect(0).trial();
        let end = trial.end.unwrap();
        // A JVM exits with 128 + SIGTERM when asked to end.
        assert_eq!((end.cause, end.exit_code, end.signal), (EndCause::AsAsked, Some(143), None));
        assert_eq!((trial.why, trial.outcome), (None, Outcome::Completed));
    }
}

#[test]
fn a_server_that_is_not_a_jvm_is_reported() {
    let call = Call::weigh().with("--ready-within 1s").command(&["sleep", "60", "{port}"]);
    let ran = call.run().expect(3);
    ran.says(&["did not answer GET http://127.0.0.1:", "the server is not a JVM: pid ", "sleep 60"]);

    if !has("LOADLINE_TOOLS", "python3") {
        return;
    }
    let python = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "{port}"];
    let call = Call::weigh().with("--url http://127.0.0.1:{port}/").command(&python);
    call.run().expect(3).says(&["the server is not a JVM: pid ", "-m http.server", "hint: "]);
}

#[test]
fn a_jvm_that_rejects_its_options_is_quoted() {
    for release in releases() {
        let call = Call::on(release).with("--jvm -XX:+NoSuchFlag").subject("DemoServer", "{port}");
        call.run().expect(3).says(&[
            "with exit code 1, before it was ready",
            "-XX:+NoSuchFlag",
            "| Unrecognized VM option 'NoSuchFlag'",
            "hint: the JVM rejected its options",
        ]);
        let call = Call::on(release).with("--heap 100k").subject("DemoServer", "{port}");
        call.run().expect(3).says(&["before it was ready", "heap", "hint: the JVM rejected its options"]);
    }
}

#[test]
fn a_missing_class_or_jar_is_quoted() {
    for release in newest() {
        let call = Call::on(release).subject("NoSuchServer", "{port}");
        call.run().expect(3).says(&["before it was ready", "| Error: Could not find or load main class"]);
        let call = Call::on(release).command(&["java", "-jar", "no-such.jar", "{port}"]);
        call.run().expect(3).says(&["before it was ready", "| Error: Unable to access jarfile no-such.jar"]);
    }
}

#[test]
fn a_missing_jdk_is_a_machine_error() {
    let call = Call::weigh().with("--jdk 12").subject("DemoServer", "{port}");
    call.run().expect(4).says(&["error: no JDK 12 on this machine", "hint: "]);
}

#[test]
fn a_taken_port_is_reported_with_its_holder() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let call = Call::weigh().with(&format!("--url http://127.0.0.1:{port}/hello"));
    call.subject("DemoServer", &port.to_string()).run().expect(2).says(&[
        &format!("error: port {port} is in use"),
        &format!("used by pid {}: ", std::process::id()),
        "hint: ",
    ]);
}

#[test]
fn an_archive_is_never_overwritten() {
    let call = Call::weigh();
    std::fs::create_dir(call.archive()).unwrap();
    let index = call.archive().join("archive.jsonl");
    std::fs::write(&index, "mine").unwrap();
    let ran = call.subject("DemoServer", "{port}").run().expect(2);
    let ran = ran.says(&["already contains an archive", "hint: choose another directory"]);
    assert_eq!(std::fs::read_to_string(ran.archive.join("archive.jsonl")).unwrap(), "mine");
    assert_eq!(ran.stdout, "");
}
