//! Readiness: subjects that are ready, that never become ready, or that are ready for something other than requests.

use crate::invocation::{Call, doubts, mark_names, newest, phase, releases};
use loadline::doubt::Doubt;
use loadline::record::{EndCause, Outcome};

/// How long to wait for a subject that never becomes ready; enough for its JVM to start on a busy machine.
const JVM_STARTS_WITHIN: &str = "--ready-within 8s";

#[test]
fn a_server_that_is_never_ready_is_reported_with_observations() {
    for release in releases() {
        let call = Call::on(release).with(JVM_STARTS_WITHIN).subject("NeverReady", "{port}");
        let ran = call.run().expect(3).says(&[
            "error: the server did not answer GET http://127.0.0.1:",
            "within 8 s",
            "connection refused",
            "it is running: a JVM with pid ",
            "it does not listen on any port",
            "its last lines:",
            "| still starting, step ",
            "hint: ",
        ]);
        let trial = ran.trial();
        assert_eq!((trial.outcome, trial.marks.len(), trial.phases.len()), (Outcome::SubjectFailed, 0, 0));
        assert_eq!(trial.end.unwrap().cause, EndCause::AsAsked);
    }
}

#[test]
fn a_server_that_accepts_but_never_responds_is_reported() {
    for release in newest() {
        let call = Call::on(release).with("--ready tcp").with("--timeout 500ms").with("--connections 3");
        let ran = call.subject("ReadyNoAnswer", "{port}").run().expect(3).says(&[
            "phase warmup",
            "timed out",
            "no successful response for 1.5 s",
            "accepts connections but does not respond",
        ]);
        let trial = ran.trial();
        let warmup = phase(&trial, "warmup");
        assert_eq!((warmup.ok, warmup.failed.timeout), (0, warmup.requests), "{warmup:?}");
        assert_eq!(mark_names(&trial), ["start", "loaded", "collected"]);

        let call = Call::on(release).with(JVM_STARTS_WITHIN).subject("ReadyNoAnswer", "{port}");
        call.run().expect(3).says(&["did not answer GET http://", "connected, but no response"]);
    }
}

#[test]
fn garbage_is_not_mistaken_for_http() {
    for release in newest() {
        let call = Call::on(release).with(JVM_STARTS_WITHIN).subject("SpeaksGarbage", "{port}");
        call.run().expect(3).says(&["did not answer GET http://", "not HTTP: `s\\xd5"]);

        let call = Call::on(release).with("--ready tcp").subject("SpeaksGarbage", "{port}");
        let ran = call.run().expect(3).says(&["200 not HTTP", "does not speak HTTP/1.1"]);
        let trial = ran.trial();
        assert_eq!(phase(&trial, "warmup").failed.protocol, 200);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::LoadFailures { failed: 200, .. })));
    }
}

#[test]
fn a_wrong_status_is_neither_ready_nor_a_success() {
    for release in newest() {
        let call = Call::on(release).with(JVM_STARTS_WITHIN).subject("AnswersStatus", "{port} 500");
        call.run().expect(3).says(&["still returned 500 for GET http://"]);

        let call = Call::on(release).with("--ready tcp").subject("AnswersStatus", "{port} 404");
        let ran = call.run().expect(3).says(&["200 wrong status", "404 (200 times)", "--expect-status"]);
        let trial = ran.trial();
        let warmup = phase(&trial, "warmup");
        assert_eq!((warmup.failed.status, warmup.wrong_statuses.get(&404)), (200, Some(&200)));

        let call = Call::on(release).with("--ready tcp").with("--expect-status 404");
        let trial = call.subject("AnswersStatus", "{port} 404").run().expect(0).trial();
        assert_eq!((phase(&trial, "steady").ok, trial.outcome), (200, Outcome::Completed));
    }
}

#[test]
fn a_log_line_or_phase_marker_can_signal_readiness() {
    for release in newest() {
        let call = Call::on(release).with("--ready log:still.*step.3");
        let ran = call.subject("NeverReady", "{port}").run().expect(3).says(&["200 refused"]);
        assert_eq!(mark_names(&ran.trial()), ["start", "loaded", "collected"]);

        // It is self-driven, so it can be measured but not loaded.
        let call = Call::on(release).with("--ready phase:ready");
        let ran = call.subject("PhaseMarker", "30000 {port}").run().expect(3);
        let ran = ran.says(&["phase warmup", "200 refused", "| loadline: phase=ready"]);
        assert_eq!(mark_names(&ran.trial()), ["start", "loaded", "collected"]);
        assert!(ran.trial().ready_s.is_some());

        let call = Call::on(release).with("--ready phase:redy").with(JVM_STARTS_WITHIN);
        let ran = call.subject("PhaseMarker", "30000 {port}").run().expect(3);
        ran.says(&["did not print the marker `loadline: phase=redy` within 8 s", "| loadline: phase=ready"]);
    }
}

#[test]
fn a_server_on_another_port_is_named() {
    for release in newest() {
        let other = loadline::subject::free_port("127.0.0.1").unwrap();
        let call = Call::on(release).with(JVM_STARTS_WITHIN).subject("DemoServer", &format!("{other} {{port}}"));
        call.run().expect(3).says(&["connection refused", &format!("it listens on port {other}, not on ")]);
    }
}
