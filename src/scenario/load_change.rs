//! What the options of a load mean: they say where it goes and change its phases, of a scenario or of `load`.

use super::load_options::{BodySettings, LoadOptions, TlsSettings, Warmup};
use super::{
    Arrivals, ExpectStatus, Phase, PhaseKind, Pool, Protocol, Request, Schedule, Spacing, Subject, Tls, Until, Url,
    WARMUP, Work, bracketed, defaults,
};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// Where a load goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// `None` where a free one will be chosen.
    pub port: Option<u16>,
    /// How it is spoken to over TLS, if it is.
    pub tls: Option<Tls>,
    /// The Unix socket it listens on, where the load does not go over TCP.
    pub socket: Option<PathBuf>,
}

impl Server {
    /// The server of a URL.
    pub(super) fn of(url: &Url) -> Self {
        Self { host: url.host.clone(), port: url.port, tls: url.tls.then(Tls::default), socket: None }
    }

    /// The server that a scenario weighs.
    pub(super) fn of_subject(subject: &Subject) -> Self {
        let Subject { host, port, tls, socket, .. } = subject.clone();
        Self { host, port, tls, socket }
    }

    /// The value of the header `Host`: without the port that the scheme has anyway (RFC 9110, section 7.2).
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        let usual = if self.tls.is_some() { 443 } else { 80 };
        match self.port {
            Some(port) if port != usual => format!("{host}:{port}"),
            _ => host,
        }
    }

    /// Puts it back into the scenario.
    pub(super) fn into_subject(self, subject: &mut Subject) {
        (subject.host, subject.port, subject.tls, subject.socket) = (self.host, self.port, self.tls, self.socket);
    }

    /// Changes it by what was typed.
    ///
    /// # Errors
    /// `Request` for certificates without TLS.
    pub(super) fn change(&mut self, typed: &LoadOptions) -> Result<()> {
        self.socket = typed.unix_socket.clone().or(self.socket.take());
        let TlsSettings { ca, insecure, cert, .. } = &typed.tls;
        let about = [("--insecure", *insecure), ("--ca", ca.is_some()), ("--cert", cert.is_some())];
        let Some((option, _)) = about.into_iter().find(|(_, given)| *given) else { return Ok(()) };
        let tls = self.tls.as_mut().ok_or_else(|| {
            Error::request(format!("`{option}` is about certificates, but the load goes over plain HTTP"))
                .hint("write the URL with `https://`, or drop the option")
        })?;
        typed.tls.clone().apply(tls, Path::new(""));
        Ok(())
    }
}

/// The phases that the load engine works in.
fn works(load: &mut [Phase]) -> impl Iterator<Item = (&str, &mut Work)> {
    load.iter_mut().filter_map(|phase| match &mut phase.kind {
        PhaseKind::Work(work) => Some((phase.name.as_str(), work)),
        PhaseKind::Driver(_) | PhaseKind::Own(_) | PhaseKind::Idle(_) => None,
    })
}

fn requests(work: &mut Work) -> impl Iterator<Item = &mut Request> {
    std::iter::once(&mut work.request).chain(&mut work.others)
}

/// Puts the path of a URL in place of those of the phases.
///
/// # Errors
/// `Request` where a phase has several requests, whose paths are what tells them apart.
pub(super) fn change_paths(load: &mut [Phase], path: &str) -> Result<()> {
    for (name, work) in works(load) {
        if !work.others.is_empty() {
            return Err(Error::request(format!(
                "the URL has the path `{path}`, but phase {name} has several requests"
            ))
            .hint("leave the path out of the URL"));
        }
        path.clone_into(&mut work.request.path);
    }
    Ok(())
}

/// Changes the phases by what was typed; the warm-up last, because it repeats the first of them.
///
/// # Errors
/// `Request` for an option that does not fit a phase.
pub(super) fn change_phases(load: &mut Vec<Phase>, typed: &LoadOptions) -> Result<()> {
    for (name, work) in works(load) {
        change_work(work, typed).map_err(|error| error.at(format!("phase: {name}")))?;
    }
    change_warmup(load, typed.warmup)
}

fn change_work(work: &mut Work, typed: &LoadOptions) -> Result<()> {
    change_schedule(work, typed)?;
    work.keep_alive &= !typed.close;
    if typed.http2 {
        work.protocol = Protocol::Http2 { streams: typed.streams.unwrap_or(1) };
    }
    requests(work).try_for_each(|request| change_request(request, typed))?;
    if let Some(status) = typed.expect.status {
        requests(work).for_each(|request| request.checks.status = None);
        work.expect = ExpectStatus::Exactly(status);
    }
    work.timeout = typed.timeout.unwrap_or(work.timeout);
    work.drain = typed.drain.or(work.drain);
    work.pace.send = typed.send_rate.or(work.pace.send);
    work.pace.receive = typed.receive_rate.or(work.pace.receive);
    if !typed.stop_when.is_empty() {
        work.stop.clone_from(&typed.stop_when);
    }
    Ok(())
}

fn change_request(request: &mut Request, typed: &LoadOptions) -> Result<()> {
    request.method = typed.method.unwrap_or(request.method);
    if typed.body != BodySettings::default() {
        request.body = typed.body.clone().resolve(Path::new(""))?;
    }
    request.headers.extend(typed.header.iter().cloned());
    request.headers.extend(typed.user.iter().map(|user| ("Authorization".to_owned(), user.clone())));
    request.expect_continue |= typed.expect_continue;
    typed.expect.clone().apply(&mut request.checks);
    Ok(())
}

/// `--rate` and `--schedule` make a phase open; what it has of connections and of an end it keeps.
fn change_schedule(work: &mut Work, typed: &LoadOptions) -> Result<()> {
    let until = typed.requests.map(Until::Requests).or(typed.duration.map(Until::Elapsed));
    if typed.duration.is_some_and(|duration| duration.0.is_zero()) {
        return Err(Error::request("`--duration` must be longer than 0"));
    }
    let pool = |schedule: &Schedule| match schedule {
        Schedule::Open { pool, .. } => *pool,
        Schedule::Closed { connections, .. } => Pool::fixed(*connections),
    };
    if let Some(rate) = typed.rate {
        let until = work.schedule.until().unwrap_or(Until::Elapsed(defaults::DURATION));
        let spacing = match &work.schedule {
            Schedule::Open { arrivals: Arrivals::Rate { spacing, .. }, .. } => *spacing,
            _ => Spacing::Even,
        };
        let arrivals = Arrivals::Rate { rate, spacing, until };
        work.schedule = Schedule::Open { arrivals, pool: pool(&work.schedule) };
    }
    if let Some(file) = &typed.schedule {
        work.schedule = Schedule::Open { arrivals: Arrivals::File(file.clone()), pool: pool(&work.schedule) };
    }
    if let Some(connections) = typed.connections {
        work.schedule.set_connections(connections);
    }
    if let Some(until) = until {
        if work.schedule.until().is_none() {
            return Err(Error::request("a schedule in a file ends with its last start, not by a count or a time")
                .hint("drop `--requests` and `--duration`, or give a `--rate`"));
        }
        work.schedule.set_until(until);
    }
    change_pool(&mut work.schedule, typed.connections_max)?;
    change_spacing(&mut work.schedule, typed)
}

fn change_pool(schedule: &mut Schedule, connections_max: Option<u32>) -> Result<()> {
    let Some(most) = connections_max else { return Ok(()) };
    match schedule {
        Schedule::Closed { .. } => Err(Error::request("`--connections-max` is for an open model, whose requests wait")
            .hint("give a rate (`--rate 500`), or the number of connections (`--connections`)")),
        Schedule::Open { pool, .. } if most < pool.connections => Err(Error::request(format!(
            "`--connections-max` is {most}, fewer than the {} connections to begin with",
            pool.connections
        ))
        .hint("lower `--connections`, or raise `--connections-max`")),
        Schedule::Open { pool, .. } => {
            pool.connections_max = most;
            Ok(())
        }
    }
}

/// `--poisson` and `--think` belong to one model each.
fn change_spacing(schedule: &mut Schedule, typed: &LoadOptions) -> Result<()> {
    if typed.poisson {
        let Schedule::Open { arrivals: Arrivals::Rate { spacing, .. }, .. } = schedule else {
            return Err(Error::request("`--poisson` says how requests lie within a rate, but there is none")
                .hint("give one: `--rate 500`"));
        };
        *spacing = Spacing::Poisson;
    }
    if let Some(span) = typed.think {
        let Schedule::Closed { think, .. } = schedule else {
            return Err(Error::request("`--think` is for a closed model: in an open one requests start by plan")
                .hint("drop it, or lower the rate"));
        };
        *think = span;
    }
    Ok(())
}

/// The warm-up is the first measured phase with another end, or none.
fn change_warmup(load: &mut Vec<Phase>, typed: Option<Warmup>) -> Result<()> {
    let Some(warmup) = typed else { return Ok(()) };
    load.retain(|phase| !phase.is_warmup());
    let Some(mut work) = works(load).next().map(|(_, work)| work.clone()).filter(|_| warmup != Warmup::None) else {
        return Ok(());
    };
    let until = match warmup {
        Warmup::Requests(requests) => Some(Until::Requests(requests)),
        Warmup::Elapsed(span) => Some(Until::Elapsed(span)),
        Warmup::Same | Warmup::None => None,
    };
    if let Some(until) = until {
        if work.schedule.until().is_none() {
            return Err(Error::request("a schedule in a file cannot be cut to a warm-up")
                .hint("use `--warmup same`, or `--warmup none`"));
        }
        work.schedule.set_until(until);
    }
    load.insert(0, Phase::new(WARMUP, PhaseKind::Work(work)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Body, Method};
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        load: LoadOptions,
    }

    fn load(words: &str) -> Result<Vec<Phase>> {
        let words = format!("loadline {words}");
        let typed = Typed::try_parse_from(words.split_whitespace()).unwrap();
        let work = Work::closed(Request::new(Method::Get, "/"), 25, Until::Elapsed(defaults::DURATION));
        let mut load = vec![Phase::new("steady", PhaseKind::Work(work))];
        change_phases(&mut load, &typed.load)?;
        super::super::validate_load(&load)?;
        Ok(load)
    }

    fn schedule(words: &str) -> String {
        let PhaseKind::Work(work) = load(words).unwrap().remove(0).kind else { panic!("{words}") };
        work.schedule.to_string()
    }

    #[test]
    fn a_rate_opens_the_model_and_keeps_connections_and_end() {
        assert_eq!(schedule(""), "closed, 25 connections, 10s");
        assert_eq!(schedule("--think 5ms -n 9"), "closed, 25 connections, think time 5ms, 9 requests");
        assert_eq!(schedule("--rate 500"), "open, 500/s, 10s, 25 connections");
        assert_eq!(schedule("--rate 1k --poisson -n 50 -c 5"), "open, 1000/s (Poisson), 50 requests, 5 connections");
        let ramp = "open, 1/s rising to 9/s, 1m, 5 to 50 connections";
        assert_eq!(schedule("--rate 1..9 -d 1m -c 5 --connections-max 50"), ramp);
        assert_eq!(schedule("--schedule s.txt -c 5"), "open, starts of s.txt, 5 connections");
    }

    #[test]
    fn options_reach_the_request() {
        let phases =
            load("--method put --body-size 1k --body-fill zero --expect-header A:b --expect-length 2").unwrap();
        let PhaseKind::Work(work) = &phases[0].kind else { panic!("{phases:?}") };
        assert_eq!(work.request.body, Body::Zero(crate::units::Bytes(1024)));
        assert_eq!(work.request.checks.headers, [("A".to_owned(), Some("b".to_owned()))]);
        let phases = load("--http2 --streams 5 --expect-status 204 --stop-when failed>1% --warmup 10").unwrap();
        assert!(phases[0].is_warmup() && phases.len() == 2);
        let PhaseKind::Work(work) = &phases[1].kind else { panic!("{phases:?}") };
        assert_eq!((work.protocol.streams(), work.stop.len()), (5, 1));
        assert_eq!(work.expect, ExpectStatus::Exactly(204));
    }

    #[test]
    fn the_host_is_named_without_the_usual_port() {
        let check = |url: &str, expect: &str| assert_eq!(Server::of(&Url::parse(url).unwrap()).authority(), expect);
        check("http://localhost/x", "localhost");
        check("http://localhost:8080/x", "localhost:8080");
        check("https://localhost:443/", "localhost");
        check("https://localhost:80/", "localhost:80");
        check("http://[::1]:81/", "[::1]:81");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let check = |words: &str, what: &str| {
            let error = load(words).unwrap_err();
            assert!(error.what.contains(what), "{words}: {error}");
        };
        check("--poisson", "`--poisson` says how requests lie within a rate");
        check("--connections-max 50", "`--connections-max` is for an open model");
        check("--rate 5 --connections-max 5", "fewer than the 25 connections to begin with");
        check("--rate 0", "a rate of 0/s is not possible");
        check("--rate 99999999", "is not possible");
        check("--rate 1..9 -n 50", "ends by time");
        check("-d 0", "longer than 0");
        check("-c 0", "between 1 and 100000");
        check("-n 0", "`requests` is 0");
        check("--body-text x", "GET takes no body");
        check("--method post --expect-continue", "needs a body");
        check("--http2 --close", "HTTP/1.1 only");
    }
}
