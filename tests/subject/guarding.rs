//! Sudden deaths of Loadline, its guardian, and the command.

use super::limits::limits_work;
use super::support::*;
use loadline::record::EndCause;
use loadline::subject::Spawner;
use loadline::subject::processes::{self, Process};
use loadline::units::Bytes;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable with the script for [`plays_loadline`].
const SCRIPT: &str = "LL_TEST_SCRIPT";
/// The variable with its limit, if any.
const LIMIT: &str = "LL_TEST_LIMIT";

/// Attempts to act before the guardian starts its command.
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
    another_loadline_with(script, limit, &[])
}

fn another_loadline_with(script: &str, limit: Option<&str>, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guarding::plays_loadline", "--ignored"]).env(SCRIPT, script);
    if let Some(limit) = limit {
        command.env(LIMIT, limit);
    }
    command.envs(variables.iter().copied());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Two processes that write their pids: the command, and a daemon that ignores requests to end.
fn stubborn(pids: &Path) -> String {
    let tell = format!("echo $$ >> {}", pids.display());
    format!("{} {tell}; trap '' TERM; while :; do sleep 1; done", daemon(&tell))
}

fn kill(process: &Process) {
    process.signal(Signal::KILL);
}

#[test]
fn a_subject_ends_with_a_killed_loadline() {
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
fn a_loadline_killed_before_its_command_runs_leaves_no_process() {
    let before = (0..ATTEMPTS).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let (mark, pids) = (folder.path().display().to_string(), folder.path().join("pids"));
        let mut loadline = another_loadline(&stubborn(&pids), None);
        // Polls without a pause, because only a few milliseconds pass between the guardian's start and the command's.
        let clock = loadline::clock::Clock::start();
        let is_guarded = |parent: u32| processes::all().iter().any(|process| process.parent == parent);
        while !is_guarded(loadline.id()) {
            assert!(clock.now() < LONG, "the guardian did not start in time");
        }
        loadline.kill().unwrap();
        let was_before = !pids.exists();
        loadline.wait().unwrap();
        let marked =
            || processes::all().into_iter().filter(|process| process.lives && process.command().contains(&mark));
        wait_until("the server is gone", GONE_WITHIN, || marked().count() == 0);
        was_before
    });
    assert!(before, "the command was already running in all {ATTEMPTS} attempts");
}

#[test]
fn all_processes_end_with_a_killed_guardian() {
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
fn all_processes_end_with_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let running = start(&stubborn(&pids));
    let processes = told_in(&pids, 2);
    kill(&Process::read(running.command_pid()).unwrap());
    wait_ended(&running);
    drop(running);
    assert_gone(&processes);
}

/// Another Loadline with a stubborn limited subject, its processes, and their cgroup; `None` if limits do not work.
fn limited_elsewhere() -> Option<(Child, Vec<Process>, PathBuf)> {
    let folder = limits_work().then(|| tempfile::tempdir().unwrap())?;
    let pids = folder.path().join("pids");
    let loadline = another_loadline(&stubborn(&pids), Some("64m"));
    let processes = told_in(&pids, 2);
    let cgroup = cgroup_of(processes[0].pid);
    Some((loadline, processes, cgroup))
}

#[test]
fn the_cgroup_of_a_killed_loadline_is_removed() {
    let Some((mut loadline, processes, cgroup)) = limited_elsewhere() else { return };
    assert!(cgroup.is_dir(), "{}", cgroup.display());
    assert!(cgroup.to_str().unwrap().contains(&format!("loadline-{}-", loadline.id())));
    loadline.kill().unwrap();
    loadline.wait().unwrap();
    assert_gone(&processes);
    wait_until("the cgroup is removed", GONE_WITHIN, || !cgroup.exists());
}

/// Simulates the out-of-memory kill of a scope, in which neither process can clean up after the other.
#[test]
fn the_next_loadline_kills_what_a_killed_one_left_in_its_cgroup() {
    let Some((mut loadline, processes, cgroup)) = limited_elsewhere() else { return };
    let own = Process::read(loadline.id()).unwrap();
    let is_guardian = |process: &Process| process.parent == own.pid && process.name == "ll-guardian";
    let guardian = processes::all().into_iter().find(is_guardian).unwrap();
    for signal in [Signal::STOP, Signal::KILL] {
        own.signal(signal);
        guardian.signal(signal);
    }
    loadline.wait().unwrap();
    wait_until("the guardian is gone", GONE_WITHIN, || !lives(&guardian));
    loadline::subject::limit::probe(loadline::clock::Clock::start()).unwrap();
    assert_gone(&processes);
    wait_until("the cgroup is removed", GONE_WITHIN, || !cgroup.exists());
}

#[test]
fn ci_secrets_reach_neither_the_subject_nor_its_guardian() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("environment");
    let script = format!("cat /proc/self/environ /proc/$PPID/environ >{0}.new; mv {0}.new {0}", file.display());
    let names = ["LOADLINE_TOKEN", "GITHUB_TOKEN", "CI_JOB_TOKEN", "CI_REPOSITORY_URL", "ACTIONS_RUNTIME_TOKEN"];
    let mut variables = names.map(|name| (name, "secret")).to_vec();
    variables.push(("CI_JOB_NAME", "weigh"));
    let mut loadline = another_loadline_with(&script, None, &variables);
    wait_until("the script wrote what it has", LONG, || file.exists());
    loadline.kill().unwrap();
    loadline.wait().unwrap();
    let seen = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    assert_eq!(seen.matches("CI_JOB_NAME=weigh").count(), 2, "{seen}");
    assert!(!seen.contains("secret"), "{seen}");
}

/// The directory of a process's memory cgroup, wherever it is mounted.
fn cgroup_of(pid: u32) -> PathBuf {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = text.lines().filter_map(|line| line.rsplit(':').next()).find(|group| group.contains("/loadline-"));
    let name = Path::new(group.unwrap()).file_name().unwrap();
    let parent = loadline::subject::limit::probe(loadline::clock::Clock::start()).unwrap();
    parent.folder.join(name)
}

#[test]
fn the_guardian_uses_little_memory() {
    let running = start("exec sleep 60");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.guardian_pid())).unwrap();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    assert_eq!((value("Name:"), value("Threads:")), ("ll-guardian".to_owned(), "1".to_owned()));
    let anonymous_kib: u64 = value("RssAnon:").trim_end_matches(" kB").parse().unwrap();
    // Most of it is relocated pointers, of which an unoptimized program has twice as many.
    assert!(anonymous_kib < 2048, "{status}");
}
