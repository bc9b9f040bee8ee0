//! Subjects that die on their own or because of their limit: Loadline gives the reason, and keeps all earlier
//! measurements.

use crate::invocation::{Call, Ran, doubts, mark, mark_names, newest, phase, releases};
use crate::truth::truth;
use loadline::doubt::Doubt;
use loadline::record::{EndCause, Finding, FindingRecord, Outcome, Trial, UnseenCause};
use loadline_test_support::skip;

/// The document's only trial; the archive must match.
fn failed(ran: &Ran) -> Trial {
    let trial = ran.trial();
    let archived = ran.archived();
    assert_eq!((archived.trials.as_slice(), archived.missing.as_slice()), ([trial.clone()].as_slice(), &[][..]));
    trial
}

#[test]
fn a_death_under_load_keeps_the_measurements() {
    for release in releases() {
        // One readiness request, 100 for the warm-up, 49 complete responses, and half of one.
        let call = Call::on(release).with("--warmup 100").with("--connections 5").with("-n 5000");
        let ran = call.subject("DiesAfter", "{port} 150 7").run().expect(3).says(&[
            "error: the server died: exit code 7",
            "in phase steady",
            "its last lines:",
            "| dying with code 7",
        ]);
        let trial = failed(&ran);
        assert_eq!((trial.outcome, mark_names(&trial)), (Outcome::SubjectFailed, vec!["start", "warm"]));
        let end = trial.end.as_ref().unwrap();
        assert_eq!((end.cause, end.exit_code, end.signal), (EndCause::ByItself, Some(7), None));
        assert_eq!(end.last_lines, ["dying with code 7"]);
        assert_eq!(phase(&trial, "warmup").ok, 100);
        let steady = phase(&trial, "steady");
        // A process counts as ended with its first thread, but its sockets close with its last. By then, each of the
        // five connections has failed, or its request was in flight when the load was stopped. The partial response
        // ends normally or in a reset.
        let failed_requests = steady.failed.total();
        assert_eq!(steady.ok, 49, "{steady:?}");
        assert!(steady.failed.short <= 1, "{steady:?}");
        assert!(failed_requests + steady.in_flight.unwrap() >= 5, "{steady:?}");
        assert!(steady.cut_short.is_some() && steady.service_ms.is_some(), "{steady:?}");
        let told_failures = doubts(&trial, |doubt| matches!(doubt, Doubt::LoadFailures { .. }));
        assert_eq!(told_failures, failed_requests > 0, "{:?}", trial.doubts);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::CutShort { .. })), "{:?}", trial.doubts);
        assert!(!ran.timeline().is_empty());
        assert_eq!(ran.subject_log(), "dying with code 7\n");
    }
}

#[test]
fn a_death_at_rest_is_reported_as_such() {
    for release in newest() {
        let call = Call::on(release).with("--rest 60s").with("-n 50");
        let mut started = call.subject("DemoServer", "{port}").start();
        started.until_said("  rest: ");
        let jvm = started.jvm();
        jvm.signal(rustix::process::Signal::KILL);
        let ran = started.wait().expect(3).says(&["the server died: signal 9 (KILL)", "in phase rest"]);
        let trial = failed(&ran);
        assert_eq!(mark_names(&trial), ["start", "warm", "loaded"]);
        assert!(phase(&trial, "rest").seconds < 60.0);
    }
}

#[test]
fn a_failed_configuration_does_not_stop_the_others() {
    for release in newest() {
        let call = Call::on(release).with("--trials 2").with("--warmup none");
        let ran = call.subject("DiesAfter", "{port} 50 9").run().expect(3).says(&["2 of 2 trials failed"]);
        assert_eq!(ran.document().trials.len(), 2);
        assert_eq!(ran.archived().trials.len(), 2);
    }
}

#[test]
fn an_out_of_memory_error_is_reported_even_if_the_jvm_survives() {
    for release in releases() {
        let call = || Call::on(release).with("--heap 16m").with("--gc serial");
        let trial = call().subject("OutOfMemory", "{port} 100").run().expect(0).trial();
        assert_eq!(phase(&trial, "steady").requests, 200);
        let told = trial.doubts.iter().any(|doubt| doubt.text.contains("java.lang.OutOfMemoryError: Java heap space"));
        assert!(told, "JDK {release}: {:?}", trial.doubts);

        let call = call().with("--jvm -XX:+ExitOnOutOfMemoryError").with("-n 100").with("--connections 2");
        let ran = call.subject("OutOfMemory", "{port} 120").run().expect(3);
        let ran = ran.says(&["the server died after", "java.lang.OutOfMemoryError", "exit code 3", "in phase steady"]);
        let end = failed(&ran).end.unwrap();
        assert_eq!((end.cause, end.exit_code), (EndCause::OutOfMemoryError, Some(3)));
    }
}

#[test]
fn a_server_out_of_direct_memory_is_measured_despite_its_failures() {
    for release in releases() {
        let call = Call::weigh()
            .of_jdk(release)
            .with("--ready tcp")
            // The JVM tries for half a second before it gives up, and two of the subject's threads do so
            // simultaneously.
            .with("--connections 2")
            .with("--timeout 60s")
            .with("--warmup 8")
            .with("--jvm -XX:MaxDirectMemorySize=18m");
        let ran = call.subject("DirectExhausted", "{port}").run().expect(3);
        let shown = &ran.stdout;
        for part in ["ended in", "phase warmup", "last lines", "java.lang.OutOfMemoryError", "account, RSS MiB"] {
            assert!(shown.contains(part), "JDK {release}: no `{part}` in\n{shown}");
        }
        let ran = ran.says(&["in phase warmup succeeded", "503 (", "its last lines:"]);
        let trial = ran.archived().trials.remove(0);
        assert_eq!(
            (trial.outcome, trial.failed_in.as_ref().unwrap().phase.as_str()),
            (Outcome::SubjectFailed, "warmup")
        );
        assert_eq!(mark_names(&trial), ["start", "loaded", "collected"]);
        let held = mark(&trial, "loaded").direct.unwrap().bytes();
        assert!(held >= truth("DirectExhausted", "direct_bytes"), "JDK {release}: {held}");
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::OutOfMemoryError { .. })), "{:?}", trial.doubts);
    }
}

#[test]
fn a_trial_within_its_limit_records_its_charge() {
    if !limits_work() {
        return;
    }
    for release in releases() {
        let ran = Call::on(release).with("--limit 96m").subject("DemoServer", "{port}").run().expect(0);
        let (trial, limit) = (ran.trial(), 96 << 20);
        assert_eq!(trial.limit_bytes, Some(limit));
        for mark in &trial.marks {
            let charge = mark.charge_bytes.unwrap();
            // The first process that reads a library or jar is charged for it; this process is charged for the rest.
            assert!(charge > mark.anon_bytes.unwrap() / 2 && charge <= limit, "{mark:?}");
        }
        assert!(ran.timeline().iter().all(|sample| sample.charge_bytes.is_some_and(|charge| charge <= limit)));
        assert!(!doubts(&trial, |doubt| matches!(doubt, Doubt::LimitNotSeen { .. })), "{:?}", trial.doubts);
        assert_no_cgroup(&ran);
    }
}

#[test]
fn an_insufficient_limit_is_reported() {
    if !limits_work() {
        return;
    }
    for release in releases() {
        let call = Call::on(release).with("--limit 16m").subject("DemoServer", "{port}");
        let ran = call.run().expect(3).says(&["limit", "16.0 MiB", "hint: raise the limit"]);
        let trial = failed(&ran);
        assert_eq!((trial.outcome, trial.end.as_ref().unwrap().cause), (Outcome::Killed, EndCause::OomKill));
        assert_no_cgroup(&ran);
    }
}

#[test]
fn a_limit_reached_under_load_is_reported() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        // The heap can outgrow the limit.
        let call = Call::on(release).with("--limit 80m").with("--gc serial").with("--jvm -Xmx400m");
        let call = call.with("--warmup 100").with("-n 1000000").subject("OutOfMemory", "{port} 150");
        let ran = call.run().expect(3).says(&["killed because its memory limit was reached", "in phase steady"]);
        let trial = failed(&ran);
        assert_eq!((trial.outcome, mark_names(&trial)), (Outcome::Killed, vec!["start", "warm"]));
        assert!(mark(&trial, "warm").charge_bytes.unwrap() <= 80 << 20);
        assert_no_cgroup(&ran);
    }
}

/// On cgroup v2, with and without controllers in `/proc/cgroups`: `tests/on-cgroup-v2`.
#[test]
fn an_unseen_limit_is_reported_with_its_cause() {
    if !limits_work() {
        return;
    }
    let listed = std::fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let missing = loadline::kernel::cgroup::unlisted(&listed);
    for release in releases() {
        for share in [None, Some("--jvm -XX:MaxRAMPercentage=50")] {
            let call = Call::on(release).with("--limit 160m").with("--warmup none");
            let call = share.into_iter().fold(call, Call::with);
            let document = call.subject("DemoServer", "{port}").run().expect(0).document();
            let trial = &document.trials[0];
            let unseen = |found: &&FindingRecord| matches!(found.finding, Finding::LimitNotSeen { .. });
            let found = document.findings.iter().find(unseen);
            let jvm = trial.jvm.as_ref().unwrap();
            println!("JDK {:?}, {share:?}, {missing:?}: {:?}", jvm.version, found.map(|found| &found.text));
            // Debian's JDK 17.0.15 reads `/proc/cgroups`; JDK 25 does not.
            let looks = jvm.release().is_some_and(|release| release <= [17, 0, 15]);
            if release >= 25 || missing.is_empty() || looks {
                assert_eq!(found.is_some(), looks && !missing.is_empty(), "{found:?}");
            }
            if let Some(found) = found {
                let cause = UnseenCause::ControllersUnlisted;
                assert!(matches!(found.finding, Finding::LimitNotSeen { cause: of, .. } if of == cause), "{found:?}");
                assert!(missing.iter().all(|name| found.text.contains(&format!("no `{name}`"))), "{found:?}");
            }
            let doubted = doubts(trial, |doubt| matches!(doubt, Doubt::LimitNotSeen { .. }));
            assert_eq!(doubted, found.is_some(), "{:?}", trial.doubts);
        }
    }
}

pub(crate) fn limits_work() -> bool {
    let probed = loadline::subject::limit::probe(loadline::clock::Clock::start());
    probed.inspect_err(|error| skip("LOADLINE_LIMITS", &error.what)).is_ok()
}

/// Checks that no cgroup of this call is left, or only briefly after a sudden death.
#[track_caller]
pub(crate) fn assert_no_cgroup(ran: &Ran) {
    let parent = loadline::subject::limit::probe(loadline::clock::Clock::start()).unwrap().folder;
    let own = format!("loadline-{}-", ran.pid);
    ran.leaves_none("its cgroups are", || {
        let names = std::fs::read_dir(&parent).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&own)).collect::<Vec<_>>()
    });
}
