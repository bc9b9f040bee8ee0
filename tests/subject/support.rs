//! Shell script subjects, and their leftover processes.

pub(crate) use crate::waiting::{LONG, wait_until};
use loadline::clock::Clock;
use loadline::scenario::{Configuration, Cpus, Ready, Subject};
pub(crate) use loadline::subject::RunningSubject;
use loadline::subject::processes::Process;
use loadline::subject::{CpuPlan, GuardedSubject, Launch, LaunchPlace, Spawner};
use loadline::units::{Bytes, Millicpus, Span};
use std::path::Path;
use std::time::Duration;

/// The guaranteed time until the end after a sudden death.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn spawner() -> Spawner {
    Spawner::with_program(env!("CARGO_BIN_EXE_loadline"), Clock::start())
}

pub(crate) fn subject(command: &[&str], ready: Ready) -> Subject {
    Subject {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        ready,
        end_within: Span::seconds(10),
        ..Subject::default()
    }
}

pub(crate) fn launch_of(subject: &Subject, configuration: &Configuration) -> Launch {
    let cpus = CpuPlan::new(&Cpus::All, &Cpus::All, &[]).unwrap();
    let port = loadline::subject::free_port(&subject.host).unwrap();
    Launch::new(subject, configuration, &LaunchPlace { port, work: None, cpus: &cpus, jdk: None, image: None }).unwrap()
}

pub(crate) fn launch(command: &[&str]) -> Launch {
    launch_of(&subject(command, Ready::Tcp), &Configuration::default())
}

/// Starts `sh -c SCRIPT`.
pub(crate) fn start(script: &str) -> GuardedSubject {
    spawner().start(&launch(&["sh", "-c", script]), None).unwrap()
}

pub(crate) fn limited(script: &str, limit: Bytes) -> Launch {
    let configuration = Configuration { limit: Some(limit), ..Configuration::default() };
    launch_of(&subject(&["sh", "-c", script], Ready::Tcp), &configuration)
}

/// The same with a limit of 0.20 CPUs, and optionally of memory.
pub(crate) fn throttled(script: &str, limit: Option<Bytes>) -> Launch {
    let cpu_limit = Some(Millicpus(200));
    let configuration = Configuration { limit, cpu_limit, ..Configuration::default() };
    launch_of(&subject(&["sh", "-c", script], Ready::Tcp), &configuration)
}

pub(crate) fn wait_ended(running: &GuardedSubject) {
    wait_until("the server ends", LONG, || running.ended().is_some());
}

/// The processes whose pids the script printed.
pub(crate) fn told(running: &GuardedSubject, count: usize) -> Vec<Process> {
    let pids = || -> Vec<u32> {
        let lines = running.output().tail_texts(usize::MAX);
        lines.iter().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
    };
    wait_until("the script prints its pids", LONG, || pids().len() >= count);
    pids().iter().filter_map(|&pid| Process::read(pid)).collect()
}

/// The same from a file that the script appends to.
pub(crate) fn told_in(file: &Path, count: usize) -> Vec<Process> {
    let pids = || -> Vec<u32> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    wait_until("the script writes its pids", LONG, || pids().len() >= count);
    pids().iter().filter_map(|&pid| Process::read(pid)).collect()
}

pub(crate) fn lives(process: &Process) -> bool {
    Process::read(process.pid).is_some_and(|now| now.started_ticks == process.started_ticks && now.lives)
}

pub(crate) fn assert_gone(processes: &[Process]) {
    assert!(!processes.is_empty());
    for process in processes {
        wait_until(&format!("{process:?} is gone"), GONE_WITHIN, || !lives(process));
    }
}

/// A typical daemon: double-forked, in its own session, ignoring SIGTERM and SIGHUP, without its parent's streams.
/// Needs `setsid`; writes its pid with `tell`.
pub(crate) fn daemon(tell: &str) -> String {
    format!("(setsid sh -c 'trap \"\" TERM HUP; {tell}; while :; do sleep 1; done' </dev/null &) ; ")
}
