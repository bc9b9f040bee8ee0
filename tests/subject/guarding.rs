//! Sudden deaths: of Loadline, of its guardian, of the command.

use super::support::*;
use crate::skipping::skip;
use loadline::subject::processes::{self, Process};
use loadline::subject::{EndCause, Spawner};
use loadline::units::Bytes;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells [`plays_loadline`] what to run.
const SCRIPT: &str = "LL_TEST_SCRIPT";
/// And with which limit, if any.
const LIMIT: &str = "LL_TEST_LIMIT";

/// Attempts to be faster than the guardian starts its command.
const ATTEMPTS: usize = 20;

#[test]
#[ignore = "the process that another test starts in order to kill it"]
fn plays_loadline() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let limit = std::env::var(LIMIT).ok().and_then(|limit| limit.parse::<Bytes>().ok());
    let launch = match limit {
        Some(limit) => limited(&script, limit),
        None => launch(&["sh", "-c", &script]),
    };
    let _running = Spawner::with_program(env!("CARGO_BIN_EXE_loadline"), spawner().clock).start(&launch, None).unwrap();
    std::thread::sleep(LONG);
}

fn another_loadline(script: &str, limit: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guarding::plays_loadline", "--ignored"]).env(SCRIPT, script);
    if let Some(limit) = limit {
        command.env(LIMIT, limit);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Two processes that write their pids: the command, and a daemon that does not want to end.
fn stubborn(pids: &Path) -> String {
    let tell = format!("echo $$ >> {}", pids.display());
    format!("{} {tell}; trap '' TERM; while :; do sleep 1; done", daemon(&tell))
}

fn kill(process: &Process) {
    process.signal(Signal::KILL);
}

#[test]
fn nothing_outlives_a_killed_loadline() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut loadline = another_loadline(&stubborn(&pids), None);
    let processes = told_in(&pids, 2);
    assert!(processes.iter().all(lives));
    loadline.kill().unwrap();
    loadline.wait().unwrap();
    assert_gone(&processes);
}

#[test]
fn nothing_is_left_where_loadline_is_killed_before_its_command_runs() {
    let before = (0..ATTEMPTS).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let (mark, pids) = (folder.path().display().to_string(), folder.path().join("pids"));
        let mut loadline = another_loadline(&stubborn(&pids), None);
        // Without a pause: between the guardian's start and the command's lie some milliseconds.
        let clock = loadline::clock::Clock::start();
        let is_guarded = |parent: u32| processes::all().iter().any(|process| process.parent == parent);
        while !is_guarded(loadline.id()) {
            assert!(clock.now() < LONG, "no guardian was started");
        }
        loadline.kill().unwrap();
        let was_before = !pids.exists();
        loadline.wait().unwrap();
        let marked =
            || processes::all().into_iter().filter(|process| process.lives && process.command().contains(&mark));
        wait_until("the subject is gone", GONE_WITHIN, || marked().count() == 0);
        was_before
    });
    assert!(before, "in {ATTEMPTS} attempts the command always ran already");
}

#[test]
fn nothing_outlives_a_killed_guardian() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let running = start(&stubborn(&pids));
    let processes = told_in(&pids, 2);
    kill(&Process::read(running.guardian_pid()).unwrap());
    assert_gone(&processes);
    wait_until("the loss is known", LONG, || running.lost());
    let ended = running.end(LONG);
    assert_eq!((ended.cause, ended.left), (EndCause::GuardianLost, 0));
}

#[test]
fn nothing_outlives_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let running = start(&stubborn(&pids));
    let processes = told_in(&pids, 2);
    kill(&Process::read(running.command_pid()).unwrap());
    wait_ended(&running);
    drop(running);
    assert_gone(&processes);
}

#[test]
fn the_cgroup_of_a_killed_loadline_is_removed() {
    if let Err(error) = loadline::subject::limit::probe(loadline::clock::Clock::start()) {
        return skip("LOADLINE_LIMITS", &error.what);
    }
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut loadline = another_loadline(&stubborn(&pids), Some("64m"));
    let processes = told_in(&pids, 2);
    let cgroup = cgroup_of(processes[0].pid);
    assert!(cgroup.is_dir(), "{}", cgroup.display());
    assert!(cgroup.to_str().unwrap().contains(&format!("loadline-{}-", loadline.id())));
    loadline.kill().unwrap();
    loadline.wait().unwrap();
    assert_gone(&processes);
    wait_until("the cgroup is removed", GONE_WITHIN, || !cgroup.exists());
}

/// The folder of a process's memory cgroup, wherever it is mounted.
fn cgroup_of(pid: u32) -> PathBuf {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = text.lines().filter_map(|line| line.rsplit(':').next()).find(|group| group.contains("/loadline-"));
    let name = Path::new(group.unwrap()).file_name().unwrap();
    let parent = loadline::subject::limit::probe(loadline::clock::Clock::start()).unwrap();
    parent.folder.join(name)
}

#[test]
fn the_guardian_is_small() {
    let running = start("exec sleep 60");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.guardian_pid())).unwrap();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    assert_eq!((value("Name:"), value("Threads:")), ("ll-guardian".to_owned(), "1".to_owned()));
    let anonymous_kib: u64 = value("RssAnon:").trim_end_matches(" kB").parse().unwrap();
    assert!(anonymous_kib < 1024, "{status}");
}
