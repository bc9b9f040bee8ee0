//! Ctrl-C in every phase, sudden deaths of Loadline, and a full disk: finished work is kept, and nothing is left over.

use crate::invocation::{Call, GONE_WITHIN, Ran, Started, mark_names, newest, phase};
use crate::small_disk::SmallDisk;
use crate::waiting::{LONG, wait_until};
use loadline::clock::Clock;
use loadline::record::{EndCause, Outcome, Trial};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A call with progress output, so that a test can wait for a phase.
fn call(subject: &str) -> Option<Call> {
    let release = newest().pop()?;
    Some(Call::on(release).with("-n 50").subject(subject, "{port}"))
}

/// Checks a run ended by Ctrl-C: the last trial was aborted, and the archive is closed and records that.
fn interrupted(ran: Ran, context: &str) -> Trial {
    let ran = ran.expect(130).says(&["error: interrupted", context]);
    let archived = ran.archived();
    assert_eq!(archived.missing, ["the run was interrupted"]);
    let trial = archived.trials.last().unwrap().clone();
    assert_eq!((trial.outcome, trial.why.as_deref()), (Outcome::Aborted, Some("interrupted")));
    assert_eq!(trial.end.as_ref().unwrap().cause, EndCause::AsAsked);
    assert_eq!(ran.document().trials, archived.trials);
    trial
}

#[test]
fn ctrl_c_before_readiness_ends_the_trial() {
    let Some(call) = call("NeverReady") else { return };
    let mut started = call.start();
    started.until_said("  start: ");
    wait_until("the JVM runs", LONG, || !started.subjects().is_empty());
    started.signal("INT");
    let trial = interrupted(started.wait(), "configuration: ");
    assert_eq!((trial.marks.len(), trial.phases.len()), (0, 0));
}

#[test]
fn ctrl_c_in_the_warm_up_ends_the_trial() {
    let Some(call) = call("DemoServer") else { return };
    let mut started = call.with("--warmup 60s").start();
    started.until_said("  warmup: ");
    wait_until("something was answered", LONG, || started.answered() > 0);
    started.signal("INT");
    let trial = interrupted(started.wait(), "in phase warmup");
    assert_eq!(mark_names(&trial), ["start", "loaded"], "the subject is measured at the interruption");
    assert!(phase(&trial, "warmup").ok > 0, "responses before the interruption are counted");
}

#[test]
fn ctrl_c_on_the_terminal_ends_the_steady_phase() {
    let Some(call) = call("DemoServer") else { return };
    let mut started = call.without("-n").with("--warmup 50").with("--duration 60s").start();
    started.until_said("  steady: ");
    wait_until("more than the warm-up was answered", LONG, || started.answered() > 50);
    // The terminal signals the foreground process group, which must not include the subject.
    started.signal_group("INT");
    let trial = interrupted(started.wait(), "in phase steady");
    assert_eq!(mark_names(&trial), ["start", "warm", "loaded"]);
    let steady = phase(&trial, "steady");
    assert!(steady.ok > 0 && steady.cut_short.is_some(), "{steady:?}");
}

#[test]
fn term_at_rest_ends_the_trial() {
    let Some(call) = call("DemoServer") else { return };
    let mut started = call.with("--rest 60s").start();
    started.until_said("  rest: ");
    started.signal_group("TERM");
    let trial = interrupted(started.wait(), "in phase rest");
    assert_eq!(mark_names(&trial), ["start", "warm", "loaded", "rested"]);
    assert_eq!(phase(&trial, "steady").ok, 50);
}

#[test]
fn ctrl_c_keeps_earlier_trials() {
    let Some(call) = call("DemoServer") else { return };
    let mut started = call.with("--trials 3").start();
    started.until_said_in_order(&["(2 of 3, ", "mark start"]);
    started.signal("INT");
    let ran = started.wait();
    let trials = ran.archived().trials;
    interrupted(ran, "trial 2");
    assert_eq!(trials.len(), 2);
    assert_eq!((trials[0].outcome, trials[0].marks.len()), (Outcome::Completed, 5));
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_the_subject() {
    let Some(call) = call("IgnoresTerm") else { return };
    let mut started = call.with("--end-within 60s").with("--rest 60s").start();
    started.until_said("  rest: ");
    let processes = started.subjects();
    started.signal("INT");
    let log = processes[0].pid;
    // Its message is only in the archive, so wait until the shutdown hook's thread exists.
    wait_until("TERM has arrived", LONG, || thread_names(log).iter().any(|name| name == "SIGTERM handler"));
    started.signal("INT");
    until_gone(&started);
    assert_eq!(started.wait().code(), Some(130));
}

fn thread_names(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn all_processes_of_a_trial_end_with_a_killed_loadline() {
    let Some(release) = newest().pop() else { return };
    let call = Call::on(release).with("--warmup 60s");
    let script = format!("{} & {} > idle & wait", call.java("IgnoresTerm", "{port}"), call.java("NeverReady", ""));
    let mut started = call.script(&script).start();
    started.until_said("  warmup: ");
    // The shell and two JVMs.
    wait_until("both JVMs run", LONG, || started.subjects().len() == 3);
    started.signal("KILL");
    println!("gone after {:?}", until_gone(&started));
    let ran = started.wait();
    assert_eq!(ran.code(), None);
    let archived = ran.archived();
    assert_eq!((archived.trials.len(), archived.missing.len()), (0, 1), "{:?}", archived.missing);
    Call::verb("report").with_argument(&ran.archive).run().expect(0);
}

/// Waits for the end of its subject; returns the time it took.
fn until_gone(started: &Started) -> Duration {
    let clock = Clock::start();
    wait_until("the server is gone", GONE_WITHIN, || started.subjects().is_empty());
    clock.now()
}

#[test]
fn a_closed_pipe_does_not_panic() {
    let Some(call) = call("DemoServer") else { return };
    let script = format!("{} {} | true", env!("CARGO_BIN_EXE_loadline"), call.shown());
    let said = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(!stderr.contains("panicked") && stderr.contains("archive: "), "{stderr}");
    assert_eq!(loadline::archive::read(&call.archive()).unwrap().missing, [""; 0]);
}

#[test]
fn a_disk_that_fills_up_loses_the_archive_but_not_the_result() {
    let Some(call) = call("DemoServer") else { return };
    // There is room for the header and the reserve, but not for three seconds of a timeline at 100 Hz.
    let Some(disk) = SmallDisk::mount(call.folder(), "304k") else { return };
    let call = call.with("--nmt summary").with("--sample-hz 100").with("--rest 3s");
    let call = call.with(&format!("--out {}", disk.folder.join("archive").display()));
    let ran = call.run().expect(4).says(&[
        "the archive is incomplete from this point on: cannot write ",
        "No space left on device",
        "mark collected: ",
        "error: cannot write ",
        "the result above is complete",
        "hint: free some space",
    ]);
    let trial = ran.trial();
    assert_eq!((trial.outcome, trial.marks.len(), phase(&trial, "steady").ok), (Outcome::Completed, 5, 50));
    // The timeline is truncated; the trial's line used the reserve.
    let archived = loadline::archive::read(&disk.folder.join("archive")).unwrap();
    assert_eq!(archived.trials.len(), 1, "{:?}", archived.missing);
    Call::verb("report").with_argument(&disk.folder.join("archive")).run().expect(0);
}

#[test]
fn request_rows_without_disk_space_affect_nothing_else() {
    let Some(call) = call("DemoServer") else { return };
    // There is room for a short trial with the rows of one phase, but not of two: the first may use everything left.
    let Some(disk) = SmallDisk::mount(call.folder(), "400k") else { return };
    let archive = disk.folder.join("archive");
    let call = call.with("-n 2000").with(&format!("--out {}", archive.display()));
    let ran = call.run().expect(4).says(&["requests.csv: No space left on device", "the result above is complete"]);
    let trial = ran.trial();
    let archived = loadline::archive::read(&archive).unwrap();
    assert_eq!((archived.missing.len(), archived.trials.len()), (0, 1), "{:?}", archived.missing);
    let found = loadline::archive::evidence(&archive, &archived.trials).remove(0);
    assert_eq!(found.timeline.len() as u64, trial.observer.samples);
    assert_eq!(found.intervals.iter().map(|interval| interval.ok).sum::<u64>(), 4000);
    // A phase has all of its rows or none: half of a sample would be biased.
    assert!([0, 2000].contains(&found.requests.len()), "{}", found.requests.len());
    assert!(found.missing.iter().all(|words| words.starts_with("requests.csv")), "{:?}", found.missing);
    assert!(!found.missing.is_empty());
}

#[test]
fn a_full_disk_is_reported_before_anything_starts() {
    let Some(call) = call("DemoServer") else { return };
    let Some(disk) = SmallDisk::mount(call.folder(), "64k") else { return };
    disk.fill_but(0);
    let call = call.with(&format!("--out {}", disk.folder.join("archive").display()));
    let ran = call.run().expect(4).says(&["error: cannot ", "No space left on device", "hint: free some space"]);
    assert!(!ran.stderr.contains("start: "), "{}", ran.stderr);
}
