//! The options of a load, the same for every verb that has one, and how they change its phases.

use super::schema;
use super::written::{Named, Scalar, parsed, texts_or_none_by_name};
use super::{
    Arrivals, Body, Checks, Condition, Cpus, ExpectStatus, Method, Phase, PhaseKind, Pool, Protocol, Rate, Request,
    Schedule, Spacing, Tls, Until, WARMUP, Work, defaults,
};
use crate::error::{Error, Result};
use crate::units::{Bytes, Span, parse_count};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The options of a load, with the same meaning in every verb. They change what a file says.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// Connections kept busy [default: 25]
    #[arg(long, short, value_name = "N")]
    pub connections: Option<u32>,
    /// In an open model, open as many connections while requests wait
    #[arg(long, value_name = "N")]
    pub connections_max: Option<u32>,
    /// Requests to send in the measured phase
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count, conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// How long the measured phase lasts [default: 10s]
    #[arg(long, short, value_name = "TIME")]
    pub duration: Option<Span>,
    /// Open model: requests per second, `500`, a ramp `100..1000` or a staircase of ten steps `100..1000:10`
    #[arg(long, value_name = "RATE", conflicts_with_all = ["schedule", "think"], allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Open model: start requests at random within the rate (a Poisson process)
    #[arg(long, conflicts_with = "schedule")]
    pub poisson: bool,
    /// Open model: a file with a start on each line, in seconds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "duration", "think"])]
    pub schedule: Option<PathBuf>,
    /// Closed model: how long a connection waits between an answer and its next request
    #[arg(long, value_name = "TIME")]
    pub think: Option<Span>,
    /// Work before the measured phase: `same`, a count, a time, or `none` [default: same; with `load` none]
    #[arg(long, value_name = "WORK")]
    pub warmup: Option<Warmup>,
    /// Open a connection for every request
    #[arg(long)]
    pub close: bool,
    /// HTTP/2: over TLS by ALPN, in clear with prior knowledge
    #[arg(long)]
    pub http2: bool,
    /// Requests at a time on an HTTP/2 connection [default: 1]
    #[arg(long, value_name = "N", requires = "http2")]
    pub streams: Option<u32>,
    /// GET, HEAD, PUT, POST, PATCH, DELETE or OPTIONS [default: GET]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<Method>,
    /// The body of a request.
    #[command(flatten)]
    pub body: BodySettings,
    /// Wait for `100 Continue` before the body is sent, for a second at most
    #[arg(long)]
    pub expect_continue: bool,
    /// Add a header; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    pub header: Vec<(String, String)>,
    /// Send name and password (Basic authentication)
    #[arg(long, short, value_name = "NAME:PASSWORD", value_parser = basic)]
    pub user: Option<String>,
    /// The checks of an answer.
    #[command(flatten)]
    pub expect: ExpectSettings,
    /// How long one request may take [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Span>,
    /// How long after the planned end answers are waited for [default: as long as the timeout]
    #[arg(long, value_name = "TIME")]
    pub drain: Option<Span>,
    /// Slow senders: bytes per second sent on each connection
    #[arg(long, value_name = "SIZE")]
    pub send_rate: Option<Bytes>,
    /// Slow readers: bytes per second read from each connection
    #[arg(long, value_name = "SIZE")]
    pub receive_rate: Option<Bytes>,
    /// End a phase early when this holds over a second: `failed>1%`, `p99>2s`; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub stop_when: Vec<Condition>,
    /// The Unix socket of the server; host and path of the URL are still sent
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// How its certificate is checked, and what is shown to it.
    #[command(flatten)]
    pub tls: TlsSettings,
    /// CPUs of the load engine; in a trial, of the rest of Loadline too
    #[arg(long, value_name = "CPUS")]
    pub load_cpus: Option<Cpus>,
    /// Seeds everything drawn at random [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Exactly one of `size`, `file`, `text`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "BodyFile")]
#[schemars(extend("oneOf" = schema::each(&["size", "file", "text"])))]
#[schemars(extend("dependentRequired" = schema::needs("fill", "size")))]
#[serde(deny_unknown_fields, default)]
pub struct BodySettings {
    /// The contents of this file, relative to the scenario file.
    #[arg(id = "body", long = "body", value_name = "FILE", conflicts_with_all = ["body_size", "body_text"])]
    #[arg(help = "Send this file as the body")]
    pub file: Option<PathBuf>,
    /// So many bytes of printable pseudo-random text, the same for every request.
    #[arg(id = "body_size", long = "body-size", value_name = "SIZE", conflicts_with = "body_text")]
    #[arg(help = "Send a body of this size")]
    pub size: Option<Bytes>,
    /// This text. `{seq}` and `{rand LOW HIGH}` stand for numbers.
    #[arg(id = "body_text", long = "body-text", value_name = "TEXT", allow_hyphen_values = true, help = BODY_TEXT)]
    #[schemars(with = "Option<Scalar>")]
    #[serde(deserialize_with = "parsed")]
    pub text: Option<String>,
    /// The content of a body of a `size`.
    #[arg(
        id = "body_fill",
        long = "body-fill",
        value_name = "WHAT",
        requires = "body_size",
        hide_possible_values = true
    )]
    #[arg(help = "What a body of a size consists of: random or zero [default: random]")]
    #[schemars(extend("default" = "random"))]
    pub fill: Option<Fill>,
}

const BODY_TEXT: &str =
    "Send this text as the body; `{seq}` and `{rand LOW HIGH}` stand for numbers, as in paths and headers";

impl BodySettings {
    /// The body that is given; its file lies below `base`.
    ///
    /// # Errors
    /// `Request` where it is not exactly one.
    pub(super) fn resolve(self, base: &Path) -> Result<Body> {
        match (self.size, self.file, self.text, self.fill) {
            (Some(size), None, None, None | Some(Fill::Random)) => Ok(Body::Generated(size)),
            (Some(size), None, None, Some(Fill::Zero)) => Ok(Body::Zero(size)),
            (None, Some(file), None, None) => Ok(Body::File(base.join(file))),
            (None, None, Some(text), None) => Ok(Body::Text(text)),
            _ => Err(Error::request("`body` takes exactly one of `size` (with `fill`), `file`, `text`")),
        }
    }
}

/// Checks of an answer; all that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "ExpectMore")]
#[serde(deny_unknown_fields, default)]
pub struct ExpectSettings {
    /// The one status; any of 200 to 299 where left out.
    #[arg(id = "expect_status", long = "expect-status", value_name = "STATUS")]
    #[arg(help = "The one status that is a correct answer [default: any of 200-299]")]
    #[schemars(extend("minimum" = 100, "maximum" = 999))]
    pub status: Option<u16>,
    /// Exactly so much body.
    #[arg(id = "expect_length", long = "expect-length", value_name = "SIZE")]
    #[arg(help = "A correct answer has a body of exactly this size")]
    pub length: Option<Bytes>,
    /// Headers that are there; with a value, exactly that value.
    #[arg(id = "expect_header", long = "expect-header", value_name = "NAME[:VALUE]", value_parser = expected_header)]
    #[arg(help = "A correct answer has this header, with a value exactly that one; may be repeated")]
    #[schemars(with = "Option<Named<Option<Scalar>>>")]
    #[serde(deserialize_with = "texts_or_none_by_name")]
    pub headers: Vec<(String, Option<String>)>,
    /// Text that the body contains.
    #[arg(id = "expect_body", long = "expect-body", value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(help = "The body of a correct answer contains this text")]
    #[schemars(extend("minLength" = 1))]
    pub body: Option<String>,
}

impl ExpectSettings {
    /// Puts all but the status into what is checked already.
    pub(super) fn apply(self, checks: &mut Checks) {
        checks.length = self.length.or(checks.length);
        checks.headers.extend(self.headers);
        checks.body = self.body.or(checks.body.take());
    }
}

/// How the certificate of a server is checked, and what is shown to it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "TlsHow", extend("dependentRequired" = schema::needs("key", "cert")))]
#[serde(deny_unknown_fields, default)]
pub struct TlsSettings {
    /// Certificates (PEM) that are trusted beside those of the machine; relative to the scenario file.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    #[arg(help = "Certificates (PEM) to trust beside those of the machine")]
    pub ca: Option<PathBuf>,
    /// Whether any certificate is good enough.
    #[arg(long, help = "Take any certificate")]
    pub insecure: bool,
    /// The certificate (PEM) shown to a server that asks for one; relative to the scenario file.
    #[arg(long, value_name = "FILE", help = "The certificate (PEM) shown to a server that asks for one")]
    pub cert: Option<PathBuf>,
    /// Its key (PEM); where left out, the key stands in the file of the certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    #[arg(help = "Its key (PEM) [default: in the file of the certificate]")]
    pub key: Option<PathBuf>,
}

impl TlsSettings {
    /// Puts it into what is known already; what it leaves out stays. Paths in it start from `base`.
    pub(super) fn apply(self, tls: &mut Tls, base: &Path) {
        let file = |path: PathBuf| base.join(path);
        tls.ca = self.ca.map(file).or(tls.ca.take());
        tls.insecure |= self.insecure;
        if self.cert.is_some() {
            (tls.cert, tls.key) = (self.cert.map(file), self.key.map(file));
        }
    }
}

/// The content of a body of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Printable pseudo-random text.
    Random,
    /// Bytes of zero.
    Zero,
}

/// Work before the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// As much as in the measured phase.
    Same,
    /// None at all.
    None,
    /// So many requests.
    Requests(u64),
    /// So long.
    Elapsed(Span),
}

impl FromStr for Warmup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "same" => return Ok(Self::Same),
            "none" => return Ok(Self::None),
            _ => {}
        }
        if let Ok(count) = parse_count(text) {
            return Ok(Self::Requests(count));
        }
        let refuse = |_| format!("`{text}` is none of `same`, `none`, a count such as `50k`, a time such as `30s`");
        text.parse().map(Self::Elapsed).map_err(refuse)
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let refuse = || format!("`{text}` is no header; write it as `Accept: text/html`");
    let (name, value) = text.split_once(':').ok_or_else(refuse)?;
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(refuse());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// The value of `Authorization` (RFC 7617).
fn basic(text: &str) -> Result<String, String> {
    match text.contains(':') {
        true => Ok(format!("Basic {}", BASE64_STANDARD.encode(text))),
        false => Err(format!("`{text}` has no password; write it as `name:password`")),
    }
}

fn expected_header(text: &str) -> Result<(String, Option<String>), String> {
    if text.contains(':') {
        return header(text).map(|(name, value)| (name, Some(value)));
    }
    match text.is_empty() || text.contains(char::is_whitespace) {
        true => Err(format!("`{text}` is no header; write it as `Content-Type` or `Content-Type: text/html`")),
        false => Ok((text.to_owned(), None)),
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
    use super::super::validate_load;
    use super::*;
    use clap::Parser;

    #[test]
    fn warm_up_takes_words_counts_and_times() {
        assert_eq!("same".parse(), Ok(Warmup::Same));
        assert_eq!("50k".parse(), Ok(Warmup::Requests(50_000)));
        assert_eq!("30s".parse(), Ok(Warmup::Elapsed(Span::seconds(30))));
        assert!("some".parse::<Warmup>().is_err());
    }

    #[test]
    fn a_password_is_encoded() {
        assert_eq!(basic("Aladdin:open sesame"), Ok("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned()));
        assert!(basic("name").is_err());
    }

    #[test]
    fn headers_are_expected_with_or_without_a_value() {
        assert_eq!(expected_header("ETag"), Ok(("ETag".to_owned(), None)));
        assert_eq!(expected_header("A: b c"), Ok(("A".to_owned(), Some("b c".to_owned()))));
        assert!(expected_header("").is_err() && expected_header("a b").is_err() && expected_header(": x").is_err());
    }

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
        validate_load(&load)?;
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
