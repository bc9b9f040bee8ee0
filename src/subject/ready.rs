//! Waits until the subject is ready, and says precisely why it is not.

use super::complaint;
use super::launch_image::Container;
use super::output::SAID_LINES;
use super::probe::{self, HttpQuestion, ProbeAnswer};
use super::processes::Process;
use super::protocol::Exit;
use super::running::{GuardedSubject, RunningSubject};
use super::{serving, slurm_step, sockets};
use crate::error::{Error, Result};
use crate::record::Throttling;
use crate::scenario::{Answers, Kind, Ready};
use crate::units::Millicpus;
use std::net::SocketAddr;
use std::time::Duration;

/// First pause between two probes; it doubles up to the last one, so that a fast start is timed well and a slow one
/// is not disturbed.
const PROBE_PAUSE_FIRST: Duration = Duration::from_millis(10);
const PROBE_PAUSE_LAST: Duration = Duration::from_millis(50);
/// The exit code of container tools that could not make a container (podman-run(1), docker run).
const NO_CONTAINER: i32 = 125;
/// Ports whose last answer is shown with an error.
const SEEN_LINES: usize = 5;
/// A limit that holds a start back in this share of its periods leaves it next to nothing else.
const HELD_BACK_MIN: f64 = 0.9;
/// The hints for a command, and for an image, that run something else than a JVM.
const NO_JVM: &str =
    "Loadline weighs HotSpot JVMs that it starts itself; one of a container image is started by `--image`";
const NO_JVM_IN_IMAGE: &str =
    "Loadline weighs images that start a JVM; name what it is to run after `--`, if it has several commands";

/// A subject that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyInfo {
    /// The process that serves: a JVM, where the subject is one; where several do, the one that started last.
    pub pid: u32,
    /// Further JVMs that belong to the subject; further processes of one that is no JVM.
    pub other_pids: Vec<u32>,
    /// The address that answered, the first one where each had to; `None` when readiness was told by the log.
    pub address: Option<SocketAddr>,
    /// From the start of the command.
    pub took: Duration,
}

/// A port that is asked until it answers.
struct Probe {
    port: u16,
    addresses: Vec<SocketAddr>,
    /// The address that answered.
    answered: Option<SocketAddr>,
    /// The last probe that showed no readiness, in words.
    seen: Option<String>,
    /// Whether that was an answer of HTTP.
    other_status: bool,
}

/// Waits for the readiness that the launch names.
pub(super) fn wait(
    running: &mut GuardedSubject,
    within: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<ReadyInfo> {
    let mut probes = probes(running)?;
    let until = running.started_at() + within;
    let mut pause = PROBE_PAUSE_FIRST;
    loop {
        let over = || interrupted() || running.ended().is_some() || running.clock().now() >= until;
        if probe_once(running, &mut probes, &over) {
            return found_ready(running, &probes);
        }
        check_alive(running, interrupted)?;
        let now = running.clock().now();
        if now >= until {
            return Err(not_ready(running, within, &probes));
        }
        running.wait_exit(pause.min(until - now));
        pause = (pause * 2).min(PROBE_PAUSE_LAST);
    }
}

/// An error where waiting for it is over before its time.
pub(super) fn check_alive(running: &mut GuardedSubject, interrupted: &dyn Fn() -> bool) -> Result<()> {
    if interrupted() {
        return Err(Error::interrupted());
    }
    if running.lost() {
        return Err(Error::machine("the guardian of the subject was killed, and the subject with it"));
    }
    let Some(exit) = running.ended() else { return Ok(()) };
    let took = running.clock().now().saturating_sub(running.started_at());
    // The processes that the command left are ended, so that its last words are complete.
    running.close();
    Err(ended_early(running, exit, took))
}

/// The ports to be asked; none where the output tells of readiness.
fn probes(running: &GuardedSubject) -> Result<Vec<Probe>> {
    let launch = running.launch();
    match launch.subject.ready {
        Ready::Http(_) | Ready::Tcp => {}
        Ready::Log(_) | Ready::Phase(_) => return Ok(Vec::new()),
    }
    let resolved = |port| sockets::resolve(&launch.subject.host, port);
    let probe = |port| Ok(Probe { port, addresses: resolved(port)?, answered: None, seen: None, other_status: false });
    launch.subject.ports.from(launch.port).map(probe).collect()
}

/// Probes each port that has not answered yet, once; whether the subject is ready now.
fn probe_once(running: &GuardedSubject, probes: &mut [Probe], over: &dyn Fn() -> bool) -> bool {
    let launch = running.launch();
    match &launch.subject.ready {
        Ready::Log(_) | Ready::Phase(_) => return told_at(running).is_some(),
        Ready::Http(_) | Ready::Tcp => {}
    }
    for probe in probes.iter_mut().filter(|probe| probe.answered.is_none()) {
        for &address in &probe.addresses {
            let answer = match &launch.subject.ready {
                Ready::Http(path) => {
                    let question = HttpQuestion { address, host: &launch.subject.host, path };
                    probe::judge(probe::status_of(question, running.clock(), over), launch.ready_status)
                }
                _ => probe::tcp(address),
            };
            probe.other_status = matches!(answer, ProbeAnswer::OtherStatus(_));
            match answer {
                ProbeAnswer::Ready => {
                    probe.answered = Some(address);
                    break;
                }
                ProbeAnswer::OtherStatus(why) | ProbeAnswer::NotYet(why) => {
                    probe.seen = Some(format!("{address}: {why}"));
                }
            }
        }
        match launch.subject.ports.answers {
            Answers::Any if probe.answered.is_some() => return true,
            _ if over() => break,
            _ => {}
        }
    }
    probes.iter().all(|probe| probe.answered.is_some())
}

/// When its output told of readiness, where it is to tell.
fn told_at(running: &GuardedSubject) -> Option<Duration> {
    match &running.launch().subject.ready {
        Ready::Log(_) => running.output().ready_at(),
        Ready::Phase(name) => running.output().phase_at(name),
        Ready::Http(_) | Ready::Tcp => None,
    }
}

fn found_ready(running: &GuardedSubject, probes: &[Probe]) -> Result<ReadyInfo> {
    let launch = running.launch();
    let took = told_at(running).unwrap_or_else(|| running.clock().now()).saturating_sub(running.started_at());
    let processes = running.processes();
    let answered = || probes.iter().filter(|probe| probe.answered.is_some());
    for probe in answered() {
        if !processes.iter().any(|process| sockets::listens(process.pid, probe.port)) {
            sockets::check_no_stranger(&processes, probe.port)?;
        }
    }
    let (address, port) = answered().next().map_or((None, launch.port), |probe| (probe.answered, probe.port));
    let found = find(running, &processes, port).map_err(|error| running.output().said_in(error))?;
    let (&pid, others) = found.split_first().ok_or_else(|| Error::bug("a search that found a process found none"))?;
    Ok(ReadyInfo { pid, other_pids: others.to_vec(), address, took })
}

/// The processes to be weighed, the one that serves first.
fn find(running: &GuardedSubject, processes: &[Process], port: u16) -> Result<Vec<u32>> {
    let launch = running.launch();
    let found = serving::find(processes, port, launch.subject.kind, launch.subject.processes);
    let image = launch.container.as_ref().map(|container| &container.image);
    found.map_err(|error| match (image, launch.subject.kind) {
        (Some(image), _) => {
            error.at(format!("image: {}, run by {}", image.name, image.tool.tool.word())).hint(NO_JVM_IN_IMAGE)
        }
        (None, Kind::Jvm) => error.hint(NO_JVM),
        (None, Kind::Native) => error,
    })
}

fn ended_early(running: &GuardedSubject, exit: Exit, took: Duration) -> Error {
    let what = format!("the subject ended after {:.1} s with {exit}, before it was ready", took.as_secs_f64());
    // A tool that failed says nothing of the image, and nothing of a limit.
    let of_tool = running.container_never_ran() && is_of_tool(exit, &running.output().tail_texts(SAID_LINES));
    let error = if of_tool { Error::machine(what) } else { Error::subject(what) };
    let mut error = running.output().said_in(error).at(format!("command: {}", running.launch().shown()));
    // The cgroup of a container that ended at once was never seen.
    let limit = running.cgroup().and_then(|(_, limit)| limit).or(running.launch().limit);
    if let Some(limit) = limit.filter(|_| running.oom_kills() > 0) {
        error = error
            .at(format!("the kernel killed a process of it at the limit of {limit}"))
            .hint("raise the limit, or lower the heap");
    }
    let of_image = running.launch().container.as_ref().and_then(|container| why_image(container, exit));
    match of_image.or_else(|| complaint::hint(&running.output().complaints(), Some(exit))) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether srun, a container tool or its runtime failed, and not what it was to run: `Error: OCI runtime error: …`
/// (podman 4.3.1, with the code of a program that cannot be executed).
fn is_of_tool(exit: Exit, said: &[String]) -> bool {
    exit == Exit::Code(NO_CONTAINER)
        || said.iter().any(|line| line.contains("OCI runtime error"))
        || slurm_step::says_not_begun(said)
}

/// Container tools have exit codes of their own for what they could not start (podman-run(1), docker run).
fn why_image(container: &Container, exit: Exit) -> Option<String> {
    let tool = container.image.tool.tool.word();
    let why = match exit {
        Exit::Code(0) => "an image has to start a JVM that stays; name what it is to run after `--`".to_owned(),
        Exit::Code(NO_CONTAINER) => {
            format!("{tool} could not run it; where it may not choose CPUs, `--cpus all` asks for none")
        }
        Exit::Code(126) => format!("{tool} could not start the program of the image: its last line says why"),
        Exit::Code(127) => "the image has no such program; `--` is followed by arguments of its entrypoint".to_owned(),
        _ => return None,
    };
    Some(why)
}

fn not_ready(running: &GuardedSubject, within: Duration, probes: &[Probe]) -> Error {
    let launch = running.launch();
    let awaited = match (&launch.subject.ready, probes) {
        (Ready::Http(path), [only]) => {
            let with = if only.other_status { " with success" } else { "" };
            format!("did not answer on http://{}:{}{path}{with}", launch.subject.host, only.port)
        }
        (Ready::Tcp, [only]) => format!("did not listen on {}:{}", launch.subject.host, only.port),
        (Ready::Log(pattern), _) => format!("printed no line that matches `{pattern}`"),
        (Ready::Phase(name), _) => format!("did not print the marker `loadline: phase={name}`"),
        (Ready::Http(_) | Ready::Tcp, _) => of_several(probes),
    };
    let error = Error::subject(format!("the subject {awaited} within {} s", within.as_secs_f64()));
    let error = held_back(launch.cpu_limit, running.throttled().map(Throttling::from), error);
    let silent = || probes.iter().filter(|probe| probe.answered.is_none());
    let seen: Vec<&String> = silent().filter_map(|probe| probe.seen.as_ref()).collect();
    let mut error = seen.iter().take(SEEN_LINES).fold(error, |error, seen| error.at(format!("last seen: {seen}")));
    if silent().any(|probe| probe.other_status) {
        error = error.hint("it answers with an error status: name another path (`--url`, or `--ready http:/PATH`)");
    }
    let error = describe(running, probes, error).at(format!("command: {}", launch.shown()));
    let more_time = "give it more time (`--ready-within 120s`), or another sign of readiness (`--ready …`)";
    running.output().said_in(error).hint(more_time)
}

/// Names the CPU limit of a subject, where that hardly let it run.
fn held_back(limit: Option<Millicpus>, throttling: Option<Throttling>, error: Error) -> Error {
    match limit.zip(throttling.and_then(|of| of.share())) {
        Some((limit, share)) if share >= HELD_BACK_MIN => error
            .at(format!("its limit of {limit} held it back in {:.0} % of the periods", share * 100.0))
            .hint("raise the CPU limit (`--cpu-limit`), or give it more time (`--ready-within 120s`)"),
        _ => error,
    }
}

/// The ports of a block that did not answer, and those that did: the nodes that never joined, where each has a port.
fn of_several(probes: &[Probe]) -> String {
    let (answered, silent): (Vec<&Probe>, Vec<&Probe>) = probes.iter().partition(|probe| probe.answered.is_some());
    let list = |probes: &[&Probe]| listed(probes.iter().map(|probe| probe.port));
    match answered.as_slice() {
        [] => format!("did not answer on any of its ports {}", list(&silent)),
        some => format!(
            "did not answer on {} of its {} ports: {} (answered: {})",
            silent.len(),
            probes.len(),
            list(&silent),
            list(some)
        ),
    }
}

/// The running program, whether it is a JVM, and the ports that it listens on instead.
fn describe(running: &GuardedSubject, probes: &[Probe], error: Error) -> Error {
    let launch = running.launch();
    let processes = running.processes();
    let found = find(running, &processes, launch.port);
    let error = match (found, launch.subject.kind) {
        (Ok(found), Kind::Jvm) => error.at(format!("it runs, with {}", pids("a JVM as pid", "JVMs as pids", &found))),
        (Ok(found), Kind::Native) => error.at(format!("it runs, as {}", pids("pid", "pids", &found))),
        (Err(none), _) => {
            let error = none.context.into_iter().fold(error.at(none.what), Error::at);
            Error { hint: error.hint.or(none.hint.filter(|_| launch.container.is_some())), ..error }
        }
    };
    let ports = sockets::ports(&processes);
    if probes.iter().all(|probe| ports.contains(&probe.port)) {
        return error;
    }
    let (list, port) = (listed(&ports), launch.port);
    match (ports.as_slice(), probes) {
        ([], _) => error.at("it listens on no port"),
        ([only], [_]) => error
            .at(format!("it listens on port {only}, not on {port}"))
            .hint(format!("use that port in `--url`, or pass `{{port}}` to the command so that it listens on {port}")),
        (_, [_]) => error
            .at(format!("it listens on ports {list}, not on {port}"))
            .hint("use one of those ports in `--url`, or pass `{port}` to the command"),
        _ => error
            .at(format!("it listens on {list}"))
            .hint("the ports are `{port}` and those that follow it, one for each node; look at the log of the node"),
    }
}

fn pids(one: &str, several: &str, pids: &[u32]) -> String {
    match pids {
        [only] => format!("{one} {only}"),
        _ => format!("{several} {}", listed(pids)),
    }
}

fn listed<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_tool_could_not_do_is_not_the_image() {
        let of_tool = |code, said: &str| is_of_tool(Exit::Code(code), &[said.to_owned()]);
        assert!(of_tool(125, "") && of_tool(126, "Error: OCI runtime error: crun: cgroups in hybrid mode"));
        assert!(!of_tool(127, "exec: \"/bin/x\": no such file") && !of_tool(1, ""));
    }

    #[test]
    fn a_limit_that_starved_the_start_is_named() {
        let said = |limit, throttled_periods| {
            let throttling = Throttling { periods: 100, throttled_periods, throttled_s: 0.0 };
            held_back(limit, Some(throttling), Error::subject("x"))
        };
        let starved = said(Some(Millicpus(20)), 98);
        assert_eq!(starved.context, ["its limit of 0.02 CPUs held it back in 98 % of the periods"]);
        assert!(starved.hint.unwrap().starts_with("raise the CPU limit"));
        assert!(said(Some(Millicpus(20)), 60).context.is_empty() && said(None, 98).hint.is_none());
    }

    #[test]
    fn a_node_that_never_joins_is_named_by_its_port() {
        let probe = |port: u16, answers: bool| Probe {
            port,
            addresses: Vec::new(),
            answered: answers.then(|| SocketAddr::from(([127, 0, 0, 1], port))),
            seen: None,
            other_status: false,
        };
        let said = of_several(&[probe(18_080, true), probe(18_081, false), probe(18_082, true)]);
        assert_eq!(said, "did not answer on 1 of its 3 ports: 18081 (answered: 18080, 18082)");
        let said = of_several(&[probe(18_080, false), probe(18_081, false)]);
        assert_eq!(said, "did not answer on any of its ports 18080, 18081");
    }
}
