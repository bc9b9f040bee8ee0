//! The load plan as it is written: the list under `load:`, YAML text → [`Phase`]s.

use super::file::{Named, Scalar, explain, nearest, pairs};
use super::*;
use crate::error::{Error, Result};
use crate::units::{Bytes, Count, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file that holds a load plan; what else a scenario has is left alone.
#[derive(Deserialize)]
struct LoadFile {
    load: Vec<Named<PhaseFile>>,
    seed: Option<u64>,
}

/// Parses the load plan of a file: the key `load` as in a scenario, and `seed`. A whole scenario will do.
///
/// `base` is the folder relative paths start from.
///
/// # Errors
/// `Request` with line and nearest valid word.
pub fn parse_load(text: &str, base: &Path) -> Result<(Vec<Phase>, Option<u64>)> {
    let file: LoadFile = yaml_serde::from_str(text).map_err(|cause| explain(text, &cause))?;
    let load = resolve_load(file.load, base)?;
    validate_load(&load)?;
    Ok((load, file.seed))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PhaseFile {
    same: Option<String>,
    idle: Option<Span>,
    driver: Option<String>,
    within: Option<Span>,
    phases: Option<Vec<Scalar>>,
    pattern: Option<String>,
    collect: Option<u32>,
    settle: Option<Span>,
    mark: Option<MarkFile>,
    closed: Option<ClosedFile>,
    constant: Option<ConstantFile>,
    poisson: Option<ConstantFile>,
    ramp: Option<RampFile>,
    staircase: Option<StaircaseFile>,
    schedule: Option<ScheduleFile>,
    get: Option<String>,
    head: Option<String>,
    put: Option<String>,
    post: Option<String>,
    patch: Option<String>,
    delete: Option<String>,
    options: Option<String>,
    headers: Option<Named<Scalar>>,
    body: Option<BodyFile>,
    expect_continue: Option<bool>,
    requests: Option<Vec<RequestFile>>,
    expect: Option<ExpectFile>,
    keep_alive: Option<bool>,
    timeout: Option<Span>,
    drain: Option<Span>,
    http2: Option<Http2File>,
    send_rate: Option<Bytes>,
    receive_rate: Option<Bytes>,
    stop: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClosedFile {
    connections: Option<u32>,
    requests: Option<Count>,
    duration: Option<Span>,
    think: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantFile {
    rate: Scalar,
    requests: Option<Count>,
    duration: Option<Span>,
    connections: Option<u32>,
    connections_max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RampFile {
    from: Scalar,
    to: Scalar,
    duration: Span,
    poisson: Option<bool>,
    connections: Option<u32>,
    connections_max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StaircaseFile {
    from: Scalar,
    to: Scalar,
    steps: u32,
    duration: Span,
    poisson: Option<bool>,
    connections: Option<u32>,
    connections_max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleFile {
    file: PathBuf,
    connections: Option<u32>,
    connections_max: Option<u32>,
}

/// One of several requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    weight: Option<u32>,
    get: Option<String>,
    head: Option<String>,
    put: Option<String>,
    post: Option<String>,
    patch: Option<String>,
    delete: Option<String>,
    options: Option<String>,
    headers: Option<Named<Scalar>>,
    body: Option<BodyFile>,
    expect_continue: Option<bool>,
    expect: Option<ExpectFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyFile {
    size: Option<Bytes>,
    fill: Option<Fill>,
    file: Option<PathBuf>,
    text: Option<Scalar>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Fill {
    Random,
    Zero,
}

/// A status, or more than that.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a status, or a map such as `{status: 200, length: 12, body: text}`")]
enum ExpectFile {
    Status(u16),
    More(ExpectMore),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ExpectMore {
    status: Option<u16>,
    length: Option<Bytes>,
    headers: Option<Named<Option<Scalar>>>,
    body: Option<String>,
}

/// `true`, or after collections.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`true` or `collected`")]
enum MarkFile {
    Switch(bool),
    Word(String),
}

impl MarkFile {
    fn resolve(&self) -> Result<PhaseMark> {
        match self {
            Self::Switch(false) => Ok(PhaseMark::None),
            Self::Switch(true) => Ok(PhaseMark::AsItIs),
            Self::Word(word) if word == "collected" => Ok(PhaseMark::Collected),
            Self::Word(word) => Err(Error::request(format!("`mark` is `true` or `collected`, not `{word}`"))),
        }
    }
}

/// `true`, or with streams.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`true`, or a map such as `{streams: 10}`")]
enum Http2File {
    Switch(bool),
    Streams { streams: u32 },
}

/// Resolves the phases; `same: NAME` repeats the work of another phase, so that a warm-up is equal work.
pub(super) fn resolve_load(phases: Vec<Named<PhaseFile>>, base: &Path) -> Result<Vec<Phase>> {
    let mut resolved: Vec<Resolved> = Vec::new();
    for Named(mut entries) in phases {
        let (1, Some((name, phase))) = (entries.len(), entries.pop()) else {
            return Err(Error::request("each entry of `load` is one phase: `- NAME: {…}`"));
        };
        let at = |error: Error| error.at(format!("phase: {name}"));
        let mark = phase.mark.as_ref().map_or(Ok(PhaseMark::None), MarkFile::resolve).map_err(at)?;
        let kind = match phase.same.clone() {
            Some(other) => phase.stands_alone("same", &["mark"]).map(|()| Err(other)).map_err(at)?,
            None => Ok(phase.resolve(base).map_err(at)?),
        };
        resolved.push(Resolved { name, kind, mark });
    }
    let works: BTreeMap<String, PhaseKind> =
        resolved.iter().filter_map(|phase| Some((phase.name.clone(), phase.kind.as_ref().ok()?.clone()))).collect();
    resolved.into_iter().map(|phase| phase.finish(&works)).collect()
}

/// A phase, or the name of the one whose work it repeats.
struct Resolved {
    name: String,
    kind: std::result::Result<PhaseKind, String>,
    mark: PhaseMark,
}

impl Resolved {
    fn finish(self, works: &BTreeMap<String, PhaseKind>) -> Result<Phase> {
        let Self { name, kind, mark } = self;
        match kind {
            Ok(kind) => Ok(Phase { name, kind, mark }),
            Err(other) => match works.get(&other) {
                Some(kind) => Ok(Phase { name, kind: kind.clone(), mark }),
                None => {
                    let error = Error::request(format!("no phase is named `{other}`")).at(format!("phase: {name}"));
                    Err(match nearest(&other, works.keys().map(String::as_str)) {
                        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                        None => error,
                    })
                }
            },
        }
    }
}

impl PhaseFile {
    /// `same`, `idle`, `driver` and `phases` say all there is; what stood beside them, but for `fitting`, would have no
    /// effect.
    fn stands_alone(&self, key: &str, fitting: &[&str]) -> Result<()> {
        let others = [
            ("same", self.same.is_some()),
            ("idle", self.idle.is_some()),
            ("driver", self.driver.is_some()),
            ("phases", self.phases.is_some()),
            ("within", self.within.is_some()),
            ("pattern", self.pattern.is_some()),
            ("collect", self.collect.is_some()),
            ("settle", self.settle.is_some()),
            ("mark", self.mark.is_some()),
            ("closed", self.closed.is_some()),
            ("constant", self.constant.is_some()),
            ("poisson", self.poisson.is_some()),
            ("ramp", self.ramp.is_some()),
            ("staircase", self.staircase.is_some()),
            ("schedule", self.schedule.is_some()),
            ("get", self.get.is_some()),
            ("head", self.head.is_some()),
            ("put", self.put.is_some()),
            ("post", self.post.is_some()),
            ("patch", self.patch.is_some()),
            ("delete", self.delete.is_some()),
            ("options", self.options.is_some()),
            ("headers", self.headers.is_some()),
            ("body", self.body.is_some()),
            ("expect_continue", self.expect_continue.is_some()),
            ("requests", self.requests.is_some()),
            ("expect", self.expect.is_some()),
            ("keep_alive", self.keep_alive.is_some()),
            ("timeout", self.timeout.is_some()),
            ("drain", self.drain.is_some()),
            ("http2", self.http2.is_some()),
            ("send_rate", self.send_rate.is_some()),
            ("receive_rate", self.receive_rate.is_some()),
            ("stop", self.stop.is_some()),
        ];
        match others.into_iter().find(|(other, given)| *given && *other != key && !fitting.contains(other)) {
            Some((other, _)) => {
                let fitting = fitting.join("`, `");
                let what = format!("a phase with `{key}` takes no other key but `{fitting}`");
                Err(Error::request(format!("{what}; `{other}` would have no effect")))
            }
            None => Ok(()),
        }
    }

    fn resolve(mut self, base: &Path) -> Result<PhaseKind> {
        if let Some(idle) = self.idle {
            self.stands_alone("idle", &["mark"])?;
            return Ok(PhaseKind::Idle(idle));
        }
        if let Some(command) = self.driver.clone() {
            self.stands_alone("driver", &["within", "mark"])?;
            let within = self.within.unwrap_or(defaults::DRIVER_WITHIN);
            return Ok(PhaseKind::Driver(Driver { command, dir: Some(base.to_owned()), within }));
        }
        if let Some(phases) = self.phases.take() {
            self.stands_alone("phases", &["within", "pattern", "collect", "settle"])?;
            return Ok(PhaseKind::Own(OwnWork {
                phases: phases.into_iter().map(Scalar::text).collect(),
                within: self.within.unwrap_or(defaults::MARKER_WITHIN),
                pattern: self.pattern,
                collect: self.collect.unwrap_or(0),
                settle: self.settle,
            }));
        }
        if self.within.is_some() {
            return Err(Error::request("`within` bounds a `driver` or `phases`, which this phase has not"));
        }
        let own = [
            ("pattern", self.pattern.is_some()),
            ("collect", self.collect.is_some()),
            ("settle", self.settle.is_some()),
        ];
        if let Some((key, _)) = own.into_iter().find(|(_, given)| *given) {
            return Err(Error::request(format!("`{key}` belongs to `phases`, which this phase has not")));
        }
        let schedule = self.take_schedule(base)?;
        let status = self.expect.as_ref().and_then(ExpectFile::status);
        let (request, others) = self.take_requests(base)?;
        let protocol = match self.http2 {
            Some(Http2File::Switch(true)) => Protocol::Http2 { streams: 1 },
            Some(Http2File::Streams { streams }) => Protocol::Http2 { streams },
            Some(Http2File::Switch(false)) | None => Protocol::Http1,
        };
        Ok(PhaseKind::Work(Work {
            schedule,
            request,
            others,
            keep_alive: self.keep_alive.unwrap_or(true),
            expect: status.map_or(ExpectStatus::Success, ExpectStatus::Exactly),
            timeout: self.timeout.unwrap_or(defaults::TIMEOUT),
            drain: self.drain,
            protocol,
            pace: Pace { send: self.send_rate, receive: self.receive_rate },
            stop: self.stop.unwrap_or_default(),
        }))
    }

    fn take_schedule(&mut self, base: &Path) -> Result<Schedule> {
        let mut found = Vec::new();
        found.extend(self.closed.take().map(ClosedFile::resolve));
        found.extend(self.constant.take().map(|open| open.resolve(Spacing::Even)));
        found.extend(self.poisson.take().map(|open| open.resolve(Spacing::Poisson)));
        found.extend(self.ramp.take().map(RampFile::resolve));
        found.extend(self.staircase.take().map(StaircaseFile::resolve));
        found.extend(self.schedule.take().map(|file| Ok(file.resolve(base))));
        match (found.pop(), found.is_empty()) {
            (Some(schedule), true) => schedule,
            _ => Err(Error::request(
                "a phase takes one of `closed`, `constant`, `poisson`, `ramp`, `staircase`, `schedule`, `driver`, \
                 `phases`, `idle`, `same`",
            )),
        }
    }

    fn take_requests(self: &mut PhaseFile, base: &Path) -> Result<(Request, Vec<Request>)> {
        let own = RequestFile {
            weight: None,
            get: self.get.take(),
            head: self.head.take(),
            put: self.put.take(),
            post: self.post.take(),
            patch: self.patch.take(),
            delete: self.delete.take(),
            options: self.options.take(),
            headers: self.headers.take(),
            body: self.body.take(),
            expect_continue: self.expect_continue.take(),
            expect: self.expect.take(),
        };
        let Some(several) = self.requests.take() else { return Ok((own.resolve(base)?, Vec::new())) };
        if own.names_request() {
            return Err(Error::request("a phase takes either `requests` or one of `get`, `put`, `post` and the like"));
        }
        let shared = pairs(own.headers);
        let checks = own.expect.map(ExpectFile::checks).unwrap_or_default();
        let mut requests = several.into_iter().map(|request| {
            let expects = request.expect.is_some();
            let mut request = request.resolve(base)?;
            request.headers.splice(0..0, shared.iter().cloned());
            if !expects {
                request.checks = checks.clone();
            }
            Ok(request)
        });
        let first = requests.next().unwrap_or_else(|| Err(Error::request("`requests` is empty")))?;
        Ok((first, requests.collect::<Result<_>>()?))
    }
}

impl RequestFile {
    fn names_request(&self) -> bool {
        let paths = [&self.get, &self.head, &self.put, &self.post, &self.patch, &self.delete, &self.options];
        paths.iter().any(|path| path.is_some()) || self.body.is_some() || self.expect_continue.is_some()
    }

    fn resolve(self, base: &Path) -> Result<Request> {
        let mut named: Vec<(Method, String)> = [
            (Method::Get, self.get),
            (Method::Head, self.head),
            (Method::Put, self.put),
            (Method::Post, self.post),
            (Method::Patch, self.patch),
            (Method::Delete, self.delete),
            (Method::Options, self.options),
        ]
        .into_iter()
        .filter_map(|(method, path)| Some((method, path?)))
        .collect();
        let (Some((method, path)), true) = (named.pop(), named.is_empty()) else {
            return Err(Error::request(
                "a request takes exactly one of `get`, `head`, `put`, `post`, `patch`, `delete`, `options`",
            ));
        };
        Ok(Request {
            method,
            path,
            headers: pairs(self.headers),
            body: self.body.map_or(Ok(Body::None), |body| body.resolve(base))?,
            weight: self.weight.unwrap_or(1),
            expect_continue: self.expect_continue.unwrap_or(false),
            checks: self.expect.map(ExpectFile::checks).unwrap_or_default(),
        })
    }
}

impl BodyFile {
    fn resolve(self, base: &Path) -> Result<Body> {
        match (self.size, self.file, self.text, self.fill) {
            (Some(size), None, None, None | Some(Fill::Random)) => Ok(Body::Generated(size)),
            (Some(size), None, None, Some(Fill::Zero)) => Ok(Body::Zero(size)),
            (None, Some(file), None, None) => Ok(Body::File(base.join(file))),
            (None, None, Some(text), None) => Ok(Body::Text(text.text())),
            _ => Err(Error::request("`body` takes exactly one of `size` (with `fill`), `file`, `text`")),
        }
    }
}

impl ExpectFile {
    fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(*status),
            Self::More(more) => more.status,
        }
    }

    fn checks(self) -> Checks {
        let status = self.status().map(ExpectStatus::Exactly);
        let more = match self {
            Self::Status(_) => ExpectMore::default(),
            Self::More(more) => more,
        };
        let headers = more.headers.map(|named| named.0).unwrap_or_default();
        let headers = headers.into_iter().map(|(name, value)| (name, value.map(Scalar::text))).collect();
        Checks { status, length: more.length, headers, body: more.body }
    }
}

impl ClosedFile {
    fn resolve(self) -> Result<Schedule> {
        Ok(Schedule::Closed {
            connections: self.connections.unwrap_or(defaults::CONNECTIONS),
            until: until("closed", self.requests, self.duration)?,
            think: self.think.unwrap_or_default(),
        })
    }
}

impl ConstantFile {
    fn resolve(self, spacing: Spacing) -> Result<Schedule> {
        let key = if spacing == Spacing::Poisson { "poisson" } else { "constant" };
        let until = until(key, self.requests, self.duration)?;
        let rate = Rate::Constant(per_second(self.rate)?);
        Ok(Schedule::Open {
            arrivals: Arrivals::Rate { rate, spacing, until },
            pool: pool(self.connections, self.connections_max),
        })
    }
}

impl RampFile {
    fn resolve(self) -> Result<Schedule> {
        let rate = Rate::Ramp { from: per_second(self.from)?, to: per_second(self.to)? };
        let spacing = spacing(self.poisson);
        Ok(Schedule::Open {
            arrivals: Arrivals::Rate { rate, spacing, until: Until::Elapsed(self.duration) },
            pool: pool(self.connections, self.connections_max),
        })
    }
}

impl StaircaseFile {
    fn resolve(self) -> Result<Schedule> {
        let rate = Rate::Staircase { from: per_second(self.from)?, to: per_second(self.to)?, steps: self.steps };
        let spacing = spacing(self.poisson);
        Ok(Schedule::Open {
            arrivals: Arrivals::Rate { rate, spacing, until: Until::Elapsed(self.duration) },
            pool: pool(self.connections, self.connections_max),
        })
    }
}

impl ScheduleFile {
    fn resolve(self, base: &Path) -> Schedule {
        Schedule::Open {
            arrivals: Arrivals::File(base.join(self.file)),
            pool: pool(self.connections, self.connections_max),
        }
    }
}

fn until(key: &str, requests: Option<Count>, duration: Option<Span>) -> Result<Until> {
    match (requests, duration) {
        (Some(Count(requests)), None) => Ok(Until::Requests(requests)),
        (None, Some(duration)) => Ok(Until::Elapsed(duration)),
        _ => Err(Error::request(format!("`{key}` takes exactly one of `requests`, `duration`"))),
    }
}

fn per_second(text: Scalar) -> Result<f64> {
    let text = text.text();
    match text.parse() {
        Ok(Rate::Constant(rate)) => Ok(rate),
        Ok(_) => Err(Error::request(format!("`{text}` is no single rate")).hint("use `ramp` or `staircase`")),
        Err(why) => Err(Error::request(why)),
    }
}

fn spacing(poisson: Option<bool>) -> Spacing {
    if poisson == Some(true) { Spacing::Poisson } else { Spacing::Even }
}

fn pool(connections: Option<u32>, connections_max: Option<u32>) -> Pool {
    let connections = connections.unwrap_or(defaults::CONNECTIONS);
    Pool { connections, connections_max: connections_max.unwrap_or(connections).max(connections) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(phases: &str) -> Result<Vec<Phase>> {
        parse_load(&format!("load:\n{phases}"), Path::new("/base")).map(|(load, _)| load)
    }

    fn work(phase: &str) -> Work {
        match load(&format!("  - a: {phase}\n")).unwrap().remove(0).kind {
            PhaseKind::Work(work) => work,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_model_has_a_key() {
        let check = |phase: &str, expect: &str| assert_eq!(work(phase).schedule.to_string(), expect);
        check("{closed: {requests: 9, think: 5ms}, get: /}", "closed, 25 connections, think time 5ms, 9 requests");
        check("{constant: {rate: 500, duration: 20s}, get: /}", "open, 500/s, 20s, 25 connections");
        check("{poisson: {rate: 1k, requests: 10}, get: /}", "open, 1000/s (Poisson), 10 requests, 25 connections");
        let ramp = "{ramp: {from: 1, to: 9, duration: 1m, connections: 5, connections_max: 10}, get: /}";
        check(ramp, "open, 1/s rising to 9/s, 1m, 5 to 10 connections");
        let stairs = "{staircase: {from: 1, to: 9, steps: 3, duration: 1m, poisson: true}, get: /}";
        check(stairs, "open, 1/s to 9/s in 3 steps (Poisson), 1m, 25 connections");
        check("{schedule: {file: s.txt}, get: /}", "open, starts of /base/s.txt, 25 connections");
    }

    #[test]
    fn requests_say_what_is_sent_and_what_is_correct() {
        let several = work(
            "{closed: {requests: 9}, headers: {A: b}, expect: 201, requests: [\
             {get: /a, weight: 3, expect: {status: 200, length: 12, headers: {X: , Y: 1}, body: hello}}, \
             {post: '/b{seq}', body: {text: '{rand 1 9}'}, expect_continue: true}]}",
        );
        let requests: Vec<_> = several.requests().collect();
        assert_eq!((requests[0].weight, requests[1].weight), (3, 1));
        assert_eq!(requests[0].checks.headers, [("X".to_owned(), None), ("Y".to_owned(), Some("1".to_owned()))]);
        assert_eq!(requests[0].checks.status, Some(ExpectStatus::Exactly(200)));
        assert_eq!(requests[1].checks.status, Some(ExpectStatus::Exactly(201)));
        assert_eq!(requests[1].headers, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(requests[1].body, Body::Text("{rand 1 9}".to_owned()));
        let slow = work("{closed: {requests: 1}, put: /, body: {size: 1k, fill: zero}, send_rate: 100, drain: 1s}");
        assert_eq!((slow.request.body.clone(), slow.pace.send), (Body::Zero(Bytes(1024)), Some(Bytes(100))));
        assert_eq!(work("{closed: {requests: 1}, get: /, http2: {streams: 10}}").protocol.streams(), 10);
        assert_eq!(work("{closed: {requests: 1}, get: /, stop: ['failed>1%']}").stop[0].to_string(), "failed>1%");
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let check = |phase: &str, expect: &str| {
            let error = load(&format!("  - a: {phase}\n")).unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
        };
        check("{get: /}", "takes one of `closed`, `constant`");
        check("{closed: {requests: 1}, constant: {rate: 1, requests: 1}, get: /}", "takes one of");
        check("{constant: {rate: 0, duration: 1s}, get: /}", "is not possible");
        check("{constant: {rate: -5, duration: 1s}, get: /}", "is no rate");
        check("{constant: {rate: 1e9, duration: 1s}, get: /}", "is not possible");
        check("{constant: {rate: 5}, get: /}", "exactly one of `requests`, `duration`");
        check("{staircase: {from: 1, to: 2, steps: 1, duration: 1s}, get: /}", "`steps` is 1");
        check("{closed: {requests: 1}, get: /, put: /}", "exactly one of");
        check("{closed: {requests: 1}, get: /, requests: [{get: /}]}", "either `requests` or");
        check("{closed: {requests: 1}, requests: []}", "is empty");
        check("{closed: {requests: 1}, get: /, body: {size: 1}}", "GET takes no body");
        check("{closed: {requests: 1}, get: /, http2: true, send_rate: 1}", "HTTP/1.1 only");
        check("{closed: {requests: 1}, get: /, stop: ['p99']}", "compares nothing");
        check("{driver: wrk, get: /}", "`get` would have no effect");
        check("{driver: ' '}", "no command");
        check("{closed: {requests: 1}, get: /, within: 1s}", "`within` bounds a `driver`");
        check("{closed: {requests: 1, conections: 2}, get: /}", "did you mean `connections`?");
    }
}
