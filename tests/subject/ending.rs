//! How subjects end, and what Loadline reports.

use super::support::*;
use crate::small_disk::SmallDisk;
use loadline::error::ErrorKind;
use loadline::record::EndCause;
use loadline::scenario::{Configuration, Ready};
use loadline::subject::Exit;
use loadline::subject::processes::Process;
use std::time::Duration;

#[test]
fn an_exit_code_is_reported_with_the_last_lines() {
    let running = start("echo one; echo two >&2; printf three; exit 7");
    wait_ended(&running);
    let ended = running.end(LONG);
    assert_eq!((ended.exit, ended.cause), (Some(Exit::Code(7)), EndCause::ByItself));
    assert_eq!(ended.tail, ["one", "two", "three"]);
    assert_eq!(ended.left, 0);
}

#[test]
fn a_signal_is_reported() {
    let running = start("kill -SEGV $$; sleep 60");
    wait_ended(&running);
    let ended = running.end(LONG);
    assert_eq!((ended.exit, ended.cause), (Some(Exit::Signal(11)), EndCause::ByItself));
    assert_eq!(Exit::Signal(11).to_string(), "signal 11 (SEGV)");
}

#[test]
fn a_subject_ends_as_asked() {
    let running = start("trap 'echo bye; exit 3' TERM; echo pid $$; while :; do sleep 0.05; done");
    told(&running, 1);
    let ended = running.end(LONG);
    assert_eq!((ended.exit, ended.cause), (Some(Exit::Code(3)), EndCause::AsAsked));
    assert_eq!(ended.tail.last().map(String::as_str), Some("bye"));
}

#[test]
fn a_subject_that_ignores_term_is_killed_after_the_time_limit() {
    let running = start("trap '' TERM; echo pid $$; sh -c 'echo pid $$; while :; do sleep 0.1; done'");
    let processes = told(&running, 2);
    let ended = running.end(Duration::from_millis(300));
    assert_eq!((ended.exit, ended.cause), (Some(Exit::Signal(9)), EndCause::KilledAfterTerm));
    assert!(ended.took >= Duration::from_millis(300));
    assert_gone(&processes);
}

#[test]
fn a_daemon_in_its_own_session_is_ended() {
    let running = start(&format!("{} echo pid $$; exec sleep 60", daemon("echo pid $$")));
    let processes = told(&running, 2);
    let ended = running.end(Duration::from_millis(200));
    assert_eq!(ended.left, 0);
    assert_gone(&processes);
}

#[test]
fn a_start_script_that_leaves_a_server_has_not_ended() {
    let running = start("(sh -c 'echo pid $$; exec sleep 60' &) ; sleep 0.1");
    let processes = told(&running, 1);
    wait_until("the script itself is gone", LONG, || Process::read(running.command_pid()).is_none());
    assert_eq!(running.ended(), None);
    let ended = running.end(LONG);
    assert_eq!((ended.exit, ended.cause), (Some(Exit::Code(0)), EndCause::AsAsked));
    assert_gone(&processes);
}

#[test]
fn dropping_a_subject_kills_it() {
    let running = start("trap '' TERM; echo pid $$; while :; do sleep 0.1; done");
    let processes = told(&running, 1);
    drop(running);
    assert!(!processes.iter().any(lives));
}

#[test]
fn a_panic_kills_the_subject() {
    let running = start("echo pid $$; exec sleep 60");
    let processes = told(&running, 1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _running = running;
        panic!("simulated");
    }));
    assert!(panicked.is_err());
    assert_gone(&processes);
}

#[test]
fn a_missing_command_is_an_invalid_request() {
    let error = spawner().start(&launch(&["jaaava", "-version"]), None).unwrap_err();
    assert_eq!((error.kind, error.what.as_str()), (ErrorKind::Request, "command not found: `jaaava`"));
    assert!(error.hint.is_some());
}

#[test]
fn an_unexecutable_file_or_missing_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app");
    std::fs::write(&file, "echo").unwrap();
    let error = spawner().start(&launch(&[file.to_str().unwrap()]), None).unwrap_err();
    assert!(error.what.ends_with("Permission denied"), "{error}");
    assert!(error.hint.unwrap().contains("chmod +x"));

    let mut subject = subject(&["true"], Ready::Tcp);
    subject.dir = Some(folder.path().join("missing"));
    let error = spawner().start(&launch_of(&subject, &Configuration::default()), None).unwrap_err();
    assert!(error.what.starts_with("cannot change to the server's directory"), "{error}");
}

#[test]
fn directory_environment_and_cpus_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut subject = subject(
        &["sh", "-c", "pwd -P; echo $GREETING; grep Cpus_allowed_list: /proc/self/status; echo $0"],
        Ready::Tcp,
    );
    subject.dir = Some(folder.path().canonicalize().unwrap());
    let configuration =
        Configuration { env: vec![("GREETING".to_owned(), "hello".to_owned())], ..Configuration::default() };
    let mut launch = launch_of(&subject, &configuration);
    let first = loadline::subject::cpus::available()[0];
    launch.cpus = Some(vec![first]);
    let running = spawner().start(&launch, None).unwrap();
    wait_ended(&running);
    let tail = running.end(LONG).tail;
    assert_eq!(tail[0], folder.path().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(tail[1], "hello");
    assert_eq!(tail[2], format!("Cpus_allowed_list:    {first}"));
}

#[test]
fn a_flood_of_output_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = "head -c 100000000 /dev/zero; echo; head -c 1000000 /dev/urandom; echo; printf 'the end'; exit 5";
    let running = spawner().start(&launch(&["sh", "-c", script]), Some(&log)).unwrap();
    wait_ended(&running);
    let output = running.output().clone();
    let ended = running.end(LONG);
    assert_eq!(ended.exit, Some(Exit::Code(5)));
    assert_eq!(ended.tail.last().map(String::as_str), Some("the end"));
    assert_eq!(output.bytes(), 101_000_000 + 2 + "the end".len() as u64);
    assert_eq!(output.log_trouble().map(|trouble| trouble.to_string()), None);
    let logged = std::fs::metadata(&log).unwrap().len();
    assert!(((64 << 20)..(65 << 20)).contains(&logged), "{logged}");
}

#[test]
fn a_full_disk_stops_the_log_but_not_the_subject() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), "64k") else { return };
    disk.fill_but(0);
    let log = disk.folder.join("subject.log");
    let running = spawner().start(&launch(&["sh", "-c", "echo one; sleep 0.1; echo two"]), Some(&log));
    let running = running.unwrap();
    wait_ended(&running);
    let output = running.output().clone();
    assert_eq!(running.end(LONG).tail, ["one", "two"]);
    assert!(output.log_trouble().is_some());
}

#[test]
fn kill_zero_in_a_script_does_not_reach_the_guardian() {
    let running = start("trap '' TERM; kill -TERM 0; echo still here; exit 4");
    wait_ended(&running);
    assert!(!running.lost());
    let ended = running.end(LONG);
    assert_eq!((ended.exit, ended.cause), (Some(Exit::Code(4)), EndCause::ByItself));
}

#[test]
fn an_end_before_readiness_is_explained() {
    let mut running = start("echo 'Unrecognized VM option UseFoo'; exit 1");
    let error = running.wait_ready(LONG, &|| false, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Subject);
    assert!(error.what.contains("with exit code 1, before it was ready"), "{error}");
    assert_eq!(error.said, ["Unrecognized VM option UseFoo"]);
    assert!(error.hint.unwrap().starts_with("the JVM rejected its options"));
}

#[test]
fn a_subject_not_ready_in_time_is_described() {
    let mut running = start("echo waiting; exec sleep 60");
    told_line(&running, "waiting");
    let error = running.wait_ready(Duration::from_millis(300), &|| false, &mut |_| {}).unwrap_err();
    assert!(error.what.starts_with("the server did not listen on 127.0.0.1:"), "{error}");
    let context = error.context.join("\n");
    assert!(context.contains("connection refused"), "{error}");
    assert!(context.contains("the server is not a JVM: pid "), "{error}");
    assert!(context.contains("it does not listen on any port"), "{error}");
    assert_eq!(error.said, ["waiting"]);
}

#[test]
fn another_process_on_the_port_is_not_mistaken_for_the_subject() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut launch = launch(&["sleep", "60"]);
    launch.port = listener.local_addr().unwrap().port();
    let mut running = spawner().start(&launch, None).unwrap();
    let error = running.wait_ready(LONG, &|| false, &mut |_| {}).unwrap_err();
    assert!(error.what.ends_with("responds, but another process is listening on it"), "{error}");
    assert!(error.context[0].starts_with(&format!("used by pid {}: ", std::process::id())), "{error}");
}

#[test]
fn waiting_for_readiness_can_be_interrupted() {
    let mut running = start("exec sleep 60");
    let error = running.wait_ready(LONG, &|| true, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
}

#[test]
fn a_build_runs_to_completion_or_fails_with_its_output() {
    let folder = tempfile::tempdir().unwrap();
    spawner().build("echo done > made", Some(folder.path()), &|| false).unwrap();
    assert!(folder.path().join("made").exists());
    let error = spawner().build("echo broken; exit 2", None, &|| false).unwrap_err();
    assert_eq!((error.what.as_str(), error.said), ("the build failed with exit code 2", vec!["broken".to_owned()]));
    let error = spawner().build("sleep 60", None, &|| true).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
}

fn told_line(running: &loadline::subject::GuardedSubject, line: &str) {
    wait_until(line, LONG, || running.output().tail_texts(9).iter().any(|said| said == line));
}
