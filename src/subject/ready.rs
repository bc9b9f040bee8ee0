//! Waits until the subject is ready, and says precisely why it is not.

use super::complaint;
use super::probe::{self, Answer, HttpQuestion};
use super::protocol::Exit;
use super::running::Running;
use super::{jvm, sockets};
use crate::error::{Error, Result};
use crate::scenario::Ready;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

/// First pause between two probes; it doubles up to the last one, so that a fast start is timed well and a slow one
/// is not disturbed.
const PROBE_PAUSE_FIRST: Duration = Duration::from_millis(10);
const PROBE_PAUSE_LAST: Duration = Duration::from_millis(50);
/// Lines of the subject's output shown with an error.
const SAID_LINES: usize = 10;

/// A subject that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyInfo {
    /// The JVM that serves; where several do, the one that started last.
    pub jvm_pid: u32,
    /// Further JVMs that belong to the subject.
    pub other_jvm_pids: Vec<u32>,
    /// The address that answered; `None` when readiness was told by the log.
    pub address: Option<SocketAddr>,
    /// From the start of the command.
    pub took: Duration,
}

/// Why waiting ended.
enum Waited {
    Ready(Option<SocketAddr>),
    Ended(Exit),
    Lost,
    Interrupted,
    TimeOver,
}

/// Waits for the readiness that the launch names.
pub(super) fn wait(running: &mut Running, within: Duration, interrupted: &dyn Fn() -> bool) -> Result<ReadyInfo> {
    let last_seen = RefCell::new(None);
    match poll(running, within, interrupted, &last_seen)? {
        Waited::Ready(address) => found_ready(running, address),
        Waited::Ended(exit) => {
            let took = running.clock().now().saturating_sub(running.started_at());
            // What it left is ended, so that its last words are complete.
            running.close();
            Err(ended_early(running, exit, took))
        }
        Waited::Lost => Err(Error::machine("the guardian of the subject was killed, and the subject with it")),
        Waited::Interrupted => Err(Error::interrupted()),
        Waited::TimeOver => Err(not_ready(running, within, last_seen.take())),
    }
}

fn poll(
    running: &Running,
    within: Duration,
    interrupted: &dyn Fn() -> bool,
    last_seen: &RefCell<Option<String>>,
) -> Result<Waited> {
    let launch = running.launch();
    let addresses = match launch.ready {
        Ready::Http(_) | Ready::Tcp => sockets::resolve(&launch.host, launch.port)?,
        Ready::Log(_) | Ready::Phase(_) => Vec::new(),
    };
    let until = running.started_at() + within;
    let mut pause = PROBE_PAUSE_FIRST;
    loop {
        if let Some(ready) = look(running, &addresses, interrupted, last_seen) {
            return Ok(Waited::Ready(ready));
        }
        if interrupted() {
            return Ok(Waited::Interrupted);
        }
        if running.lost() {
            return Ok(Waited::Lost);
        }
        if let Some(exit) = running.ended() {
            return Ok(Waited::Ended(exit));
        }
        let now = running.clock().now();
        if now >= until {
            return Ok(Waited::TimeOver);
        }
        running.wait_exit(pause.min(until - now));
        pause = (pause * 2).min(PROBE_PAUSE_LAST);
    }
}

/// One look: `Some` when it is ready, with the address that answered.
fn look(
    running: &Running,
    addresses: &[SocketAddr],
    interrupted: &dyn Fn() -> bool,
    last_seen: &RefCell<Option<String>>,
) -> Option<Option<SocketAddr>> {
    let launch = running.launch();
    let abandon = || interrupted() || running.ended().is_some();
    match &launch.ready {
        Ready::Log(_) => return running.output().ready_at().map(|_| None),
        Ready::Phase(name) => return running.output().phase_at(name).map(|_| None),
        Ready::Http(_) | Ready::Tcp => {}
    }
    for &address in addresses {
        let answer = match &launch.ready {
            Ready::Http(path) => {
                probe::http(address, HttpQuestion { host: &launch.host, path }, running.clock(), &abandon)
            }
            _ => probe::tcp(address),
        };
        match answer {
            Answer::Ready => return Some(Some(address)),
            Answer::NotYet(why) => *last_seen.borrow_mut() = Some(format!("{address}: {why}")),
        }
    }
    None
}

fn found_ready(running: &Running, address: Option<SocketAddr>) -> Result<ReadyInfo> {
    let at = match &running.launch().ready {
        Ready::Log(_) => running.output().ready_at(),
        Ready::Phase(name) => running.output().phase_at(name),
        Ready::Http(_) | Ready::Tcp => None,
    };
    let took = at.unwrap_or_else(|| running.clock().now()).saturating_sub(running.started_at());
    let port = running.launch().port;
    let processes = running.processes();
    if address.is_some() && sockets::listening_on(&processes, port).is_empty() {
        sockets::check_no_stranger(&processes, port)?;
    }
    let jvms = jvm::find(&processes, port).map_err(|error| said(running, error))?;
    let (&jvm_pid, others) = jvms.split_first().ok_or_else(|| Error::bug("a search that found a JVM found none"))?;
    Ok(ReadyInfo { jvm_pid, other_jvm_pids: others.to_vec(), address, took })
}

fn said(running: &Running, error: Error) -> Error {
    error.said(running.output().tail_texts(SAID_LINES))
}

fn ended_early(running: &Running, exit: Exit, took: Duration) -> Error {
    let what = format!("the subject ended after {:.1} s with {exit}, before it was ready", took.as_secs_f64());
    let mut error = said(running, Error::subject(what)).at(format!("command: {}", running.launch().shown()));
    if let Some(cgroup) = running.cgroup().filter(|_| running.oom_kills() > 0) {
        error = error
            .at(format!("the kernel killed a process of it at the limit of {}", cgroup.limit))
            .hint("raise the limit, or lower the heap");
    }
    match complaint::hint(&running.output().complaints(), Some(exit)) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn not_ready(running: &Running, within: Duration, last_seen: Option<String>) -> Error {
    let launch = running.launch();
    let awaited = match &launch.ready {
        Ready::Http(path) => format!("did not answer on http://{}:{}{path}", launch.host, launch.port),
        Ready::Tcp => format!("did not listen on {}:{}", launch.host, launch.port),
        Ready::Log(pattern) => format!("printed no line that matches `{pattern}`"),
        Ready::Phase(name) => format!("did not print the marker `loadline: phase={name}`"),
    };
    let error = Error::subject(format!("the subject {awaited} within {} s", within.as_secs_f64()));
    let answers = last_seen.as_ref().is_some_and(|seen| seen.contains(": status "));
    let mut error = last_seen.into_iter().fold(error, |error, seen| error.at(format!("last seen: {seen}")));
    if answers {
        error = error.hint("it answers, but not well there: name another path (`--url`, or `--ready http:/PATH`)");
    }
    let error = describe(running, error).at(format!("command: {}", launch.shown()));
    said(running, error).hint("give it more time (`--ready-within 120s`), or another sign of readiness (`--ready …`)")
}

/// What runs, whether it is a JVM, and where it listens instead.
fn describe(running: &Running, error: Error) -> Error {
    let processes = running.processes();
    let port = running.launch().port;
    let error = match jvm::find(&processes, port) {
        Ok(jvms) => error.at(format!("it runs, with a JVM as pid {}", jvms[0])),
        Err(none) => none.context.into_iter().fold(error.at(none.what), Error::at),
    };
    let ports = sockets::ports(&processes);
    if matches!(running.launch().ready, Ready::Log(_) | Ready::Phase(_)) || ports.contains(&port) {
        return error;
    }
    let listed: Vec<String> = ports.iter().map(u16::to_string).collect();
    match listed.as_slice() {
        [] => error.at("it listens on no port"),
        [only] => error
            .at(format!("it listens on port {only}, not on {port}"))
            .hint(format!("use that port in `--url`, or pass `{{port}}` to the command so that it listens on {port}")),
        _ => error
            .at(format!("it listens on ports {}, not on {port}", listed.join(", ")))
            .hint("use one of those ports in `--url`, or pass `{port}` to the command"),
    }
}
