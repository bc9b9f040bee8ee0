//! Finds a subject's address: gets its listening ports from the kernel, and requests common paths there until one
//! returns 200.

use super::probe::{self, HttpQuestion};
use super::running::{GuardedSubject, RunningSubject};
use super::{ready, sockets};
use crate::error::{Error, Result};
use std::time::Duration;

/// The interval between checks of a subject that does not respond yet, and of one that responds with a status other
/// than 200. Each check requests all paths, which the subject may log.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOK_AGAIN_EVERY: Duration = Duration::from_millis(500);
/// How long to wait for a better response after the first: most frameworks open the port last, but not all.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// More ports than a server opens for pages, management, debugging, and JMX.
const PORTS_MAX: usize = 8;
const GOOD: u16 = 200;
const GOOD_OF_HEALTH: std::ops::Range<u16> = 200..300;
/// The status of a server that is not ready (RFC 9110, section 15.6.4).
const NOT_YET: u16 = 503;

/// The requests to try, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usual {
    /// Paths of pages.
    pub pages: Vec<String>,
    /// Paths of health checks; used as a page only if there is no other.
    pub health: Vec<String>,
    /// Whether the command contains the port: others are then tried only if that one is not open.
    pub told_port: bool,
}

/// The address at which a subject responds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAnswer {
    /// The port.
    pub port: u16,
    /// Whether the command contains the port.
    pub told_port: bool,
    /// The path that returned 200.
    pub page: String,
    /// The pages requested, up to this one.
    pub asked: Vec<String>,
    /// A description of the responses.
    pub answered: String,
    /// The health check path that returned 200, if any.
    pub health: Option<String>,
    /// Time since the start of the command.
    pub took: Duration,
}

impl FirstAnswer {
    /// Whether no page returned 200, so the health check is used instead.
    pub fn is_only_health(&self) -> bool {
        self.health.as_ref() == Some(&self.page)
    }
}

/// The response to a request: a status or an error message.
struct PortAnswer {
    port: u16,
    path: String,
    status: std::result::Result<u16, String>,
    is_page: bool,
}

impl PortAnswer {
    /// A page has content; a health check can be empty (204, as in Helidon 4).
    fn is_good(&self) -> bool {
        self.status.as_ref().is_ok_and(|status| *status == GOOD || (!self.is_page && GOOD_OF_HEALTH.contains(status)))
    }
}

#[derive(Default)]
struct PortAnswers(Vec<PortAnswer>);

impl GuardedSubject {
    /// Waits until a common path returns 200, for at most `within` after the start. Fails if the subject ended, does
    /// not return 200 in time, or the user interrupts.
    pub fn first_answer(
        &mut self,
        usual: &Usual,
        within: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<FirstAnswer> {
        let until = self.started_at() + within;
        let mut answered_at = None;
        loop {
            let over = || interrupted() || self.ended().is_some() || self.clock().now() >= until;
            let settled = |now| answered_at.is_some_and(|at| now >= at + SETTLES_WITHIN);
            let last = settled(self.clock().now());
            let answers = ask_ports(self, usual, last, &over);
            if let Some(found) = answers.page(last) {
                return Ok(self.found(found, usual));
            }
            ready::check_alive(self, interrupted)?;
            let now = self.clock().now();
            if now >= until || (last && answers.answers() && !answers.is_starting()) {
                return match answers.health() {
                    Some(found) => Ok(self.found(found, usual)),
                    None => Err(no_answer(self, within, &answers)),
                };
            }
            if answers.answers() {
                answered_at.get_or_insert(now);
            }
            let pause = if answers.answers() { LOOK_AGAIN_EVERY } else { LOOK_EVERY };
            self.wait_exit(pause.min(until - now));
        }
    }

    fn found(&self, found: FirstAnswer, usual: &Usual) -> FirstAnswer {
        let took = self.clock().now().saturating_sub(self.started_at());
        FirstAnswer { took, told_port: usual.told_port && found.port == self.launch().port, ..found }
    }
}

/// Requests all paths on all ports once, stopping at the first page.
fn ask_ports(running: &GuardedSubject, usual: &Usual, last: bool, over: &dyn Fn() -> bool) -> PortAnswers {
    let launch = running.launch();
    let mut ports = sockets::ports(&running.processes());
    if ports.contains(&launch.port) {
        ports = vec![launch.port];
    } else if usual.told_port && !last && !ports.is_empty() {
        // The port from the command may open last, after ports that do not speak HTTP.
        let waiting = |port: &u16| PortAnswer { port: *port, path: String::new(), status: Ok(NOT_YET), is_page: false };
        return PortAnswers(ports.first().map(waiting).into_iter().collect());
    }
    let mut answers = PortAnswers::default();
    let paths = || usual.health.iter().map(|path| (path, false)).chain(usual.pages.iter().map(|path| (path, true)));
    for port in ports.into_iter().take(PORTS_MAX) {
        let addresses = sockets::resolve(&launch.subject.host, port).unwrap_or_default();
        let Some(address) = addresses.first() else { continue };
        for (path, is_page) in paths() {
            if over() {
                return answers;
            }
            let question = HttpQuestion { address: *address, host: &launch.subject.host, path };
            let status = probe::status_of(question, running.clock(), over);
            let (is_silent, is_good) = (status.is_err(), is_page && status == Ok(GOOD));
            answers.0.push(PortAnswer { port, path: path.clone(), status, is_page });
            match () {
                // A port that speaks a different protocol does so for every path.
                () if is_silent => break,
                () if is_good => return answers,
                () => {}
            }
        }
    }
    answers
}

impl PortAnswers {
    /// The page, unless the server is not ready yet and may still become so.
    fn page(&self, last: bool) -> Option<FirstAnswer> {
        self.first(|answer| answer.is_page).filter(|_| last || !self.is_starting())
    }

    /// The health check, if there is no other page.
    fn health(&self) -> Option<FirstAnswer> {
        self.first(|_| true)
    }

    fn first(&self, fits: impl Fn(&PortAnswer) -> bool) -> Option<FirstAnswer> {
        let found = self.0.iter().filter(|answer| answer.is_good()).find(|answer| fits(answer))?;
        let of_port = || self.0.iter().filter(|answer| answer.port == found.port);
        let health = of_port().find(|answer| answer.is_good() && !answer.is_page).map(|answer| answer.path.clone());
        let pages = || of_port().filter(|answer| answer.is_page);
        Some(FirstAnswer {
            port: found.port,
            told_port: false,
            page: found.path.clone(),
            asked: pages().map(|answer| answer.path.clone()).collect(),
            answered: by_status(pages()),
            health,
            took: Duration::ZERO,
        })
    }

    /// Whether any port speaks HTTP.
    fn answers(&self) -> bool {
        self.port().is_some()
    }

    /// The first port that speaks HTTP; others serve a different purpose, such as clustering.
    fn port(&self) -> Option<u16> {
        self.0.iter().find(|answer| answer.status.is_ok()).map(|answer| answer.port)
    }

    fn is_starting(&self) -> bool {
        self.0.iter().any(|answer| !answer.is_page && answer.status == Ok(NOT_YET))
    }

    /// `http://127.0.0.1:8080: 404 on /, /hello; 503 on /health`, one line per port.
    fn lines(&self, host: &str) -> Vec<String> {
        let mut ports: Vec<u16> = self.0.iter().map(|answer| answer.port).collect();
        ports.dedup();
        let of_port = |port: &u16| by_status(self.0.iter().filter(|answer| answer.port == *port));
        ports.iter().map(|port| format!("http://{host}:{port}: {}", of_port(port))).collect()
    }
}

fn by_status<'a>(answers: impl Iterator<Item = &'a PortAnswer>) -> String {
    let mut by_status: Vec<(String, Vec<&str>)> = Vec::new();
    for answer in answers {
        let status = answer.status.as_ref().map_or_else(Clone::clone, u16::to_string);
        match by_status.iter_mut().find(|(known, _)| *known == status) {
            Some((_, paths)) => paths.push(&answer.path),
            None => by_status.push((status, vec![&answer.path])),
        }
    }
    let shown = by_status.iter().map(|(status, paths)| format!("{status} on {}", paths.join(", ")));
    shown.collect::<Vec<_>>().join("; ")
}

fn no_answer(running: &GuardedSubject, within: Duration, answers: &PortAnswers) -> Error {
    let launch = running.launch();
    let ports = sockets::ports(&running.processes());
    let error = match (answers.answers(), ports.first()) {
        (true, _) => Error::subject("none of the usual paths returned 200").hint(format!(
            "specify one that works: `--url 'http://{}:{}/PATH'`",
            launch.subject.host,
            match answers.port() {
                Some(port) if port != launch.port => port.to_string(),
                _ => "{port}".to_owned(),
            }
        )),
        (false, Some(_)) => {
            Error::subject(format!("the server is listening, but ignored plain HTTP for {} s", within.as_secs_f64()))
                .hint("if it uses TLS, specify its URL: `--url https://127.0.0.1:8443/PATH --insecure`")
        }
        (false, None) => {
            Error::subject(format!("the server did not listen on any port within {} s", within.as_secs_f64()))
                .hint("give it more time (`--ready-within 120s`), or specify its URL (`--url`)")
        }
    };
    let error = answers.lines(&launch.subject.host).into_iter().fold(error, Error::at);
    running.output().said_in(error.at(format!("command: {}", launch.shown())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answers: &[(u16, &str, Option<u16>)]) -> PortAnswers {
        let answer = |&(port, path, status): &(u16, &str, Option<u16>)| PortAnswer {
            port,
            path: path.to_owned(),
            status: status.ok_or_else(|| "not HTTP: `x`".to_owned()),
            is_page: !path.contains("health"),
        };
        PortAnswers(answers.iter().map(answer).collect())
    }

    #[test]
    fn a_page_is_preferred_to_the_health_path_which_is_kept() {
        let found =
            answered(&[(80, "/health", Some(200)), (80, "/", Some(404)), (80, "/hello", Some(200))]).page(false);
        let found = found.unwrap();
        assert_eq!((found.page.as_str(), found.health.as_deref()), ("/hello", Some("/health")));
        assert_eq!(found.asked, ["/", "/hello"]);
        let only = answered(&[(80, "/health", Some(200)), (80, "/", Some(302))]);
        assert_eq!(only.page(true), None);
        let only = only.health().unwrap();
        assert_eq!((only.page.as_str(), only.answered.as_str()), ("/health", "302 on /"));
        let silent = answered(&[(80, "/health", Some(204)), (80, "/", Some(204))]);
        assert_eq!((silent.page(true), silent.health().unwrap().page.as_str()), (None, "/health"));
    }

    #[test]
    fn a_health_path_that_is_not_ready_yet_is_waited_for() {
        let starting = answered(&[(80, "/health", Some(503)), (80, "/", Some(200))]);
        assert_eq!(starting.page(false), None);
        assert_eq!(starting.page(true).unwrap().health, None);
    }

    #[test]
    fn responses_are_grouped_by_port_and_status() {
        let answers = [(80, "/", Some(404)), (80, "/a", Some(401)), (80, "/b", Some(404)), (90, "/", None)];
        assert_eq!(
            answered(&answers).lines("h"),
            ["http://h:80: 404 on /, /b; 401 on /a", "http://h:90: not HTTP: `x` on /"]
        );
        assert!(answered(&answers).answers() && !answered(&answers[3..]).answers());
        let behind = [(70, "/", None), (80, "/", Some(404))];
        assert_eq!((answered(&behind).port(), answered(&behind[..1]).port()), (Some(80), None));
    }
}
