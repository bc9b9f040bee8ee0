//! Waits until the subject is ready, and explains why it is not.

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
use crate::units::{Millicpus, Span};
use std::net::SocketAddr;
use std::time::Duration;

/// The first pause between probes; it doubles up to the maximum. A fast start is timed precisely, and a slow one is not
/// disturbed.
const PROBE_PAUSE_FIRST: Duration = Duration::from_millis(10);
const PROBE_PAUSE_LAST: Duration = Duration::from_millis(50);
/// Exit code of container tools that could not create a container (podman-run(1), docker run).
const NO_CONTAINER: i32 = 125;
/// Ports whose last response is shown in an error.
const SEEN_LINES: usize = 5;
/// A page that has returned one status for this long, and this often, is probably not warming up. The wait still
/// continues, because application servers return 404 until the application is deployed.
const REFUSES_AFTER: Duration = Duration::from_secs(3);
const REFUSALS_MIN: u32 = 5;
/// Statuses of a server that is busy or not ready (RFC 9110, 6585, 8470).
const WARMING_UP: [u16; 6] = [408, 425, 429, 502, 503, 504];
/// A CPU limit that throttles this share of a start's periods barely lets it run.
const HELD_BACK_MIN: f64 = 0.9;
/// The hints for a command, and for an image, that run something other than a JVM.
const NO_JVM: &str = "Loadline weighs HotSpot JVMs that it starts itself; to start a container image, use `--image`";
const NO_JVM_IN_IMAGE: &str =
    "the image must start a JVM; if it has several commands, specify the JVM's command after `--`";

/// A ready subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyInfo {
    /// The serving process: the JVM if there is one, and the last one started if there are several.
    pub pid: u32,
    /// Other JVMs of the subject, or other processes if it is not a JVM.
    pub other_pids: Vec<u32>,
    /// The address that responded, or the first one if all had to; `None` if the log showed readiness.
    pub address: Option<SocketAddr>,
    /// Time since the start of the command.
    pub took: Duration,
}

/// A port to probe until it responds.
struct Probe {
    port: u16,
    addresses: Vec<SocketAddr>,
    answered: Option<SocketAddr>,
    /// The last probe that showed no readiness.
    seen: Option<(SocketAddr, ProbeAnswer)>,
    /// The HTTP status that it returns repeatedly.
    refusal: Option<Refusal>,
}

impl Probe {
    /// The last probe that showed no readiness, in words.
    fn seen_words(&self) -> Option<String> {
        match &self.seen {
            Some((address, ProbeAnswer::OtherStatus(_, why) | ProbeAnswer::NotYet(why))) => {
                Some(format!("{address}: {why}"))
            }
            Some((_, ProbeAnswer::Ready)) | None => None,
        }
    }

    /// The HTTP status of the last probe, if it got one.
    fn status(&self) -> Option<u16> {
        match self.seen {
            Some((_, ProbeAnswer::OtherStatus(status, _))) => Some(status),
            _ => None,
        }
    }
}

/// The same unsuccessful HTTP status in consecutive probes.
struct Refusal {
    status: u16,
    since: Duration,
    answers: u32,
    told: bool,
}

impl Refusal {
    /// Counts a response with this status; returns true once, when the user should know.
    fn is_news(seen: &mut Option<Self>, status: u16, now: Duration) -> bool {
        if seen.as_ref().is_none_or(|same| same.status != status) {
            *seen = None;
        }
        let same = seen.get_or_insert(Self { status, since: now, answers: 0, told: false });
        same.answers += 1;
        let is_sure = same.answers >= REFUSALS_MIN && now.saturating_sub(same.since) >= REFUSES_AFTER;
        is_sure && !WARMING_UP.contains(&status) && !std::mem::replace(&mut same.told, true)
    }
}

/// Waits for the launch's readiness check; `say` receives advice for the user.
pub(super) fn wait(
    running: &mut GuardedSubject,
    within: Duration,
    interrupted: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> Result<ReadyInfo> {
    let mut probes = probes(running)?;
    let until = running.started_at() + within;
    let mut pause = PROBE_PAUSE_FIRST;
    loop {
        let over = || interrupted() || running.ended().is_some() || running.clock().now() >= until;
        if probe_once(running, &mut probes, &over, &mut |status, path| {
            say(&format!(
                "  not ready yet: GET {path} returns {status}; Loadline waits up to {} (change the path with `--url` \
                 or `--ready http:/PATH`)",
                Span(within)
            ));
        }) {
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

/// Returns an error that ends the wait early.
pub(super) fn check_alive(running: &mut GuardedSubject, interrupted: &dyn Fn() -> bool) -> Result<()> {
    if interrupted() {
        return Err(Error::interrupted());
    }
    if running.lost() {
        return Err(Error::machine("the server's guardian process was killed, and the server with it"));
    }
    let Some(exit) = running.ended() else { return Ok(()) };
    let took = running.clock().now().saturating_sub(running.started_at());
    // Ends leftover processes of the command, so that the output is complete.
    running.close();
    Err(ended_early(running, exit, took))
}

/// The ports to probe; empty if the output shows readiness.
fn probes(running: &GuardedSubject) -> Result<Vec<Probe>> {
    let launch = running.launch();
    match launch.subject.ready {
        Ready::Http(_) | Ready::Tcp => {}
        Ready::Log(_) | Ready::Phase(_) => return Ok(Vec::new()),
    }
    let resolved = |port| sockets::resolve(&launch.subject.host, port);
    let probe = |port| Ok(Probe { port, addresses: resolved(port)?, answered: None, seen: None, refusal: None });
    launch.subject.ports.from(launch.port).map(probe).collect()
}

/// Probes each port that has not responded yet; returns whether the subject is ready. `refuses` receives a status that
/// a page repeats.
fn probe_once(
    running: &GuardedSubject,
    probes: &mut [Probe],
    over: &dyn Fn() -> bool,
    refuses: &mut dyn FnMut(u16, &str),
) -> bool {
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
            if let (ProbeAnswer::OtherStatus(status, _), Ready::Http(path)) = (&answer, &launch.subject.ready)
                && Refusal::is_news(&mut probe.refusal, *status, running.clock().now())
            {
                refuses(*status, path);
            }
            match answer {
                ProbeAnswer::Ready => {
                    probe.answered = Some(address);
                    break;
                }
                other => probe.seen = Some((address, other)),
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

/// When the output showed readiness, if it should.
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
    let (&pid, others) = found.split_first().ok_or_else(|| Error::bug("the search succeeded, but found no process"))?;
    Ok(ReadyInfo { pid, other_pids: others.to_vec(), address, took })
}

/// The processes to measure, the serving one first.
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
    let what = format!("the server exited after {:.1} s with {exit}, before it was ready", took.as_secs_f64());
    // A failing tool says nothing about the image or a limit.
    let of_tool = running.container_never_ran() && is_of_tool(exit, &running.output().tail_texts(SAID_LINES));
    let error = if of_tool { Error::machine(what) } else { Error::subject(what) };
    let mut error = running.output().said_in(error).at(format!("command: {}", running.launch().shown()));
    // The cgroup of a container that ended immediately was never seen.
    let limit = running.cgroup().and_then(|(_, limit)| limit).or(running.launch().limit);
    if let Some(limit) = limit.filter(|_| running.oom_kills() > 0) {
        error = error
            .at(format!("the kernel killed one of its processes at the limit of {limit}"))
            .hint("raise the limit, or lower the heap");
    }
    let of_image = running.launch().container.as_ref().and_then(|container| why_image(container, exit));
    match of_image.or_else(|| complaint::hint(&running.output().complaints(), Some(exit))) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether srun, a container tool, or its runtime failed, rather than the command: `Error: OCI runtime error: …`
/// (podman 4.3.1, with the exit code of a program that cannot be executed).
fn is_of_tool(exit: Exit, said: &[String]) -> bool {
    exit == Exit::Code(NO_CONTAINER)
        || said.iter().any(|line| line.contains("OCI runtime error"))
        || slurm_step::says_not_begun(said)
}

/// Container tools have special exit codes for commands that cannot start (podman-run(1), docker run).
fn why_image(container: &Container, exit: Exit) -> Option<String> {
    let tool = container.image.tool.tool.word();
    let why = match exit {
        Exit::Code(0) => {
            "an image must start a JVM that keeps running; specify the command to run after `--`".to_owned()
        }
        Exit::Code(NO_CONTAINER) => {
            format!("{tool} could not run the image; if {tool} cannot pin CPUs, use `--cpus all`")
        }
        Exit::Code(126) => format!("{tool} could not start the image's program; its last line shows the reason"),
        Exit::Code(127) => "the image does not have that program; words after `--` are arguments of its \
                            entrypoint"
            .to_owned(),
        _ => return None,
    };
    Some(why)
}

fn not_ready(running: &GuardedSubject, within: Duration, probes: &[Probe]) -> Error {
    let launch = running.launch();
    let awaited = match (&launch.subject.ready, probes) {
        (Ready::Http(path), [only]) => {
            let page = format!("http://{}:{}{path}", launch.subject.host, only.port);
            match only.status() {
                Some(status) => {
                    return not_ready_by(running, probes, still_refuses(status, launch.ready_status, &page, within));
                }
                None => format!("did not answer GET {page}"),
            }
        }
        (Ready::Tcp, [only]) => format!("did not listen on {}:{}", launch.subject.host, only.port),
        (Ready::Log(pattern), _) => format!("did not print a line that matches `{pattern}`"),
        (Ready::Phase(name), _) => format!("did not print the marker `loadline: phase={name}`"),
        (Ready::Http(_) | Ready::Tcp, _) => of_several(probes),
    };
    not_ready_by(running, probes, Error::subject(format!("the server {awaited} within {} s", within.as_secs_f64())))
}

/// Adds what is known about a subject that is not ready.
fn not_ready_by(running: &GuardedSubject, probes: &[Probe], mut error: Error) -> Error {
    let launch = running.launch();
    let hint = error.hint.take();
    // A CPU limit that starves the subject explains a page that fails.
    let error = held_back(launch.cpu_limit, running.throttled().map(Throttling::from), error);
    let error = match hint {
        Some(hint) => error.hint(hint),
        None => error,
    };
    // The status of the only page is in the error itself.
    let named = matches!(probes, [only] if only.status().is_some());
    let silent = probes.iter().filter(|probe| probe.answered.is_none() && !named);
    let seen = silent.filter_map(Probe::seen_words).take(SEEN_LINES);
    let error = seen.fold(error, |error, seen| error.at(format!("last seen: {seen}")));
    let error = describe(running, probes, error).at(format!("command: {}", launch.shown()));
    let more_time = "give it more time (`--ready-within 120s`), or another readiness check (`--ready …`)";
    running.output().said_in(error).hint(more_time)
}

/// The error for a page that returns a status other than the expected one.
fn still_refuses(status: u16, expected: Option<u16>, page: &str, within: Duration) -> Error {
    let hint = match status {
        401 | 403 => "use a page that needs no login (`--ready http:/PATH`), or only check the port (`--ready tcp`)",
        404 => "correct the path (`--url`, or `--ready http:/PATH`)",
        _ => "read the server's log; if the page is wrong, use another path (`--url`, or `--ready http:/PATH`)",
    };
    let instead = expected.map(|expected| format!(" instead of {expected}")).unwrap_or_default();
    let what = format!("the server still returned {status}{instead} for GET {page} after {} s", within.as_secs_f64());
    Error::subject(what).hint(hint)
}

/// Names the CPU limit of a subject if the limit hardly let it run.
fn held_back(limit: Option<Millicpus>, throttling: Option<Throttling>, error: Error) -> Error {
    match limit.zip(throttling.and_then(|of| of.share())) {
        Some((limit, share)) if share >= HELD_BACK_MIN => error
            .at(format!("its CPU limit of {limit} throttled it in {:.0}% of the periods", share * 100.0))
            .hint("raise the CPU limit (`--cpu-limit`), or give it more time (`--ready-within 120s`)"),
        _ => error,
    }
}

/// The ports of a block that did not respond, and those that did: nodes that never joined, if each has a port.
fn of_several(probes: &[Probe]) -> String {
    let (answered, silent): (Vec<&Probe>, Vec<&Probe>) = probes.iter().partition(|probe| probe.answered.is_some());
    let list = |probes: &[&Probe]| listed(probes.iter().map(|probe| probe.port));
    match answered.as_slice() {
        [] => format!("did not answer on any of its ports ({})", list(&silent)),
        some => format!(
            "did not answer on {} of its {} ports: {} (answered: {})",
            silent.len(),
            probes.len(),
            list(&silent),
            list(some)
        ),
    }
}

/// Describes the running program, whether it is a JVM, and the ports that it opened instead.
fn describe(running: &GuardedSubject, probes: &[Probe], error: Error) -> Error {
    let launch = running.launch();
    let processes = running.processes();
    let found = find(running, &processes, launch.port);
    let error = match (found, launch.subject.kind) {
        (Ok(found), Kind::Jvm) => {
            error.at(format!("it is running: {}", pids("a JVM with pid", "JVMs with pids", &found)))
        }
        (Ok(found), Kind::Native) => error.at(format!("it is running as {}", pids("pid", "pids", &found))),
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
        ([], _) => error.at("it does not listen on any port"),
        ([only], [_]) => error
            .at(format!("it listens on port {only}, not on {port}"))
            .hint("use that port in `--url`, or pass `{port}` to the command"),
        (_, [_]) => error
            .at(format!("it listens on ports {list}, not on {port}"))
            .hint("use one of those ports in `--url`, or pass `{port}` to the command"),
        _ => error
            .at(format!("it listens on {list}"))
            .hint("each node uses one port, starting at `{port}`; read the log of that node"),
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
    fn failures_of_a_container_tool_are_not_blamed_on_the_image() {
        let of_tool = |code, said: &str| is_of_tool(Exit::Code(code), &[said.to_owned()]);
        assert!(of_tool(125, "") && of_tool(126, "Error: OCI runtime error: crun: cgroups in hybrid mode"));
        assert!(!of_tool(127, "exec: \"/bin/x\": no such file") && !of_tool(1, ""));
    }

    #[test]
    fn a_lasting_error_status_is_reported_once_and_a_brief_one_never() {
        let told = |answers: &[(u64, u16)]| {
            let mut seen = None;
            let news = |(ms, status): &&(u64, u16)| Refusal::is_news(&mut seen, *status, Duration::from_millis(*ms));
            answers.iter().filter(news).copied().collect::<Vec<_>>()
        };
        let every_second = |status: u16| (0..20).map(|at| (at * 1_000, status)).collect::<Vec<_>>();
        assert_eq!(told(&every_second(403)), [(4_000, 403)]);
        assert_eq!(told(&every_second(503)), []);
        // Few responses in a long time, many in a short time, or changing ones are not evidence.
        assert_eq!(told(&[(0, 404), (3_000, 404), (6_000, 404), (9_000, 404)]), []);
        assert_eq!(told(&(0..70).map(|at| (at * 40, 401)).collect::<Vec<_>>()), []);
        assert_eq!(told(&(0..40).map(|at| (at * 1_000, [404, 503][at as usize / 4 % 2])).collect::<Vec<_>>()), []);
    }

    #[test]
    fn a_page_with_a_lasting_error_status_is_named() {
        let error = still_refuses(404, None, "http://127.0.0.1:80/x", Duration::from_secs(60));
        assert_eq!(error.what, "the server still returned 404 for GET http://127.0.0.1:80/x after 60 s");
        assert!(error.hint.unwrap().contains("--ready http:/PATH"));
        assert!(still_refuses(403, Some(200), "x", Duration::ZERO).hint.unwrap().contains("--ready tcp"));
    }

    #[test]
    fn a_cpu_limit_that_throttled_startup_is_named() {
        let said = |limit, throttled_periods| {
            let throttling = Throttling { periods: 100, throttled_periods, throttled_s: 0.0 };
            held_back(limit, Some(throttling), Error::subject("x"))
        };
        let starved = said(Some(Millicpus(20)), 98);
        assert_eq!(starved.context, ["its CPU limit of 0.02 CPUs throttled it in 98% of the periods"]);
        assert!(starved.hint.unwrap().starts_with("raise the CPU limit"));
        assert!(said(Some(Millicpus(20)), 60).context.is_empty() && said(None, 98).hint.is_none());
    }

    #[test]
    fn an_unresponsive_node_is_named_by_its_port() {
        let probe = |port: u16, answers: bool| Probe {
            port,
            addresses: Vec::new(),
            answered: answers.then(|| SocketAddr::from(([127, 0, 0, 1], port))),
            seen: None,
            refusal: None,
        };
        let said = of_several(&[probe(18_080, true), probe(18_081, false), probe(18_082, true)]);
        assert_eq!(said, "did not answer on 1 of its 3 ports: 18081 (answered: 18080, 18082)");
        let said = of_several(&[probe(18_080, false), probe(18_081, false)]);
        assert_eq!(said, "did not answer on any of its ports (18080, 18081)");
    }
}
