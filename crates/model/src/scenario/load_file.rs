//! The load plan as it is written: the list under `load:`, YAML text → [`Phase`]s.

use super::load_options::{BodySettings, ExpectSettings};
use super::written::{Named, Scalar, nearest, pairs, parsed};
use super::*;
use crate::error::{Error, Result};
use crate::units::{Bytes, Count, Span};
use serde::Deserialize;
use serde::de::Error as _;
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
    let file: LoadFile = yaml::read(text)?;
    let load = resolve_load(file.load, base)?;
    validate_load(&load)?;
    Ok((load, file.seed))
}

/// A map of keys that may all be left out; to its own keys it gets those that say what one request is.
macro_rules! keys {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        keys! { @all $(#[$about])* $name {
            $($own)*
            /// Path of a GET. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            get: RequestPath,
            /// Path of a HEAD. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            head: RequestPath,
            /// Path of a PUT. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            put: RequestPath,
            /// Path of a POST. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            post: RequestPath,
            /// Path of a PATCH. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            patch: RequestPath,
            /// Path of a DELETE. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            delete: RequestPath,
            /// Path of an OPTIONS. `{seq}` and `{rand LOW HIGH}` stand for numbers.
            options: RequestPath,
            /// The body of the request; not allowed with GET or HEAD.
            body: BodySettings,
            /// Whether the body waits for `100 Continue`, for a second at most.
            #[schemars(extend("default" = false))]
            expect_continue: bool,
            /// The one status that is a correct answer, or more that must hold; any status of 200 to 299 where left
            /// out.
            expect: ExpectFile,
        } }
    };
    (@all $(#[$about:meta])* $name:ident { $($(#[$of:meta])* $key:ident: $type:ty,)* }) => {
        #[derive(Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(super) struct $name {
            $($(#[$of])* $key: Option<$type>,)*
        }

        impl $name {
            /// The keys that are given.
            fn given(&self) -> impl Iterator<Item = &'static str> {
                let all = [$((stringify!($key), self.$key.is_some()),)*];
                all.into_iter().filter_map(|(key, given)| given.then_some(key))
            }

            /// The request that it names.
            fn request(&mut self, base: &Path) -> Result<Request> {
                let methods: Vec<Method> = self.given().filter_map(|key| key.parse().ok()).collect();
                let paths = [&self.get, &self.head, &self.put, &self.post, &self.patch, &self.delete, &self.options];
                let ([method], Some(RequestPath(path))) = (&methods[..], paths.into_iter().flatten().next()) else {
                    return Err(Error::request(
                        "a request takes exactly one of `get`, `head`, `put`, `post`, `patch`, `delete`, `options`",
                    ));
                };
                Ok(Request {
                    headers: pairs(self.headers.take()),
                    body: self.body.take().map_or(Ok(Body::None), |body| body.resolve(base))?,
                    expect_continue: self.expect_continue.unwrap_or(false),
                    checks: self.expect.take().map(ExpectFile::checks).unwrap_or_default(),
                    ..Request::new(*method, path)
                })
            }
        }
    };
}

/// The path of a request.
#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(inline, extend("pattern" = "^/[^\\r\\n]*$"))]
struct RequestPath(String);

keys! {
    /// Exactly one of the models (`closed`, `constant`, `poisson`, `ramp`, `staircase`, `schedule`), `idle` (rest),
    /// `driver` (another program), `phases` (the subject itself), `same` (the work of another phase).
    #[schemars(extend("oneOf" = schema::kinds_of_phases()))]
    PhaseFile {
        /// Repeats the work of the phase of this name, so that a warm-up is equal work.
        same: String,
        /// Nothing is sent for so long.
        idle: Span,
        /// A line for `sh -c` that drives the load instead of the engine, run in the folder of the scenario file on the
        /// CPUs of the load. `{url}` (such as `http://127.0.0.1:8080`, without a path), `{host}` and `{port}` are where
        /// the subject listens.
        #[schemars(extend("pattern" = "\\S"))]
        driver: String,
        /// How long the driver may take (10m where it is not given), or the subject to its next marker (5m).
        within: Span,
        /// The subject works by itself. It prints the marker `loadline: phase=NAME` for each of these names, in this
        /// order; it is weighed at each, and each but the last begins a phase of the trial.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
        phases: Vec<Scalar>,
        /// A further form of marker: a regular expression whose first group is the name.
        pattern: String,
        /// Full collections at each marker, before the subject is weighed.
        #[schemars(extend("maximum" = 10, "default" = 0))]
        collect: u32,
        /// How long the weighing waits after them; where left out, until RSS stands still.
        settle: Span,
        /// Whether the phase ends in a mark of its name: `true`, or `collected` for one after full collections.
        #[schemars(with = "Option<schema::MarkOfPhase>", extend("default" = false))]
        #[serde(default, deserialize_with = "parsed")]
        mark: PhaseMark,
        /// Closed model: each connection sends its next request after the answer to the last.
        closed: ClosedFile,
        /// Open model: requests start at equal distances, whether or not the server keeps up.
        constant: ConstantFile,
        /// Open model: requests start at random and independently of each other, at this mean rate.
        poisson: ConstantFile,
        /// Open model: the rate rises or falls evenly.
        ramp: RampFile,
        /// Open model: the rate rises or falls in steps.
        staircase: StaircaseFile,
        /// Open model: requests start when a file says.
        schedule: ScheduleFile,
        /// Further header fields.
        #[schemars(extend("propertyNames" = serde_json::json!({"minLength": 1})))]
        headers: Named<Scalar>,
        /// Several requests, drawn at random by weight; `headers` and `expect` of the phase hold for those without
        /// their own.
        #[schemars(extend("minItems" = 1))]
        requests: Vec<RequestFile>,
        /// Whether a connection carries more than one request.
        #[schemars(extend("default" = true))]
        keep_alive: bool,
        /// How long one request may take.
        #[schemars(extend("default" = "10s"))]
        timeout: Span,
        /// How long after the planned end answers are waited for; as long as `timeout` where left out.
        drain: Span,
        /// HTTP/2 instead of HTTP/1.1: over TLS by ALPN, in clear with prior knowledge.
        http2: Http2File,
        /// Slow senders: bytes per second sent on each connection.
        send_rate: Bytes,
        /// Slow readers: bytes per second read from each connection.
        receive_rate: Bytes,
        /// The phase ends early when one of these holds over about a second.
        stop: Vec<Condition>,
    }
}

keys! {
    /// One of several requests.
    #[schemars(extend("oneOf" = schema::each(&schema::METHODS), "not" = schema::bodiless()))]
    RequestFile {
        /// How often it is drawn, relative to the others.
        #[schemars(extend("minimum" = 1, "maximum" = 1000000, "default" = 1))]
        weight: u32,
        /// Further header fields, after those of the phase.
        #[schemars(extend("propertyNames" = serde_json::json!({"minLength": 1})))]
        headers: Named<Scalar>,
    }
}

/// How many connections, and exactly one end.
#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(extend("oneOf" = schema::each(&["requests", "duration"])))]
#[serde(deny_unknown_fields)]
struct ClosedFile {
    /// Connections kept busy.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    connections: Option<u32>,
    /// Ends after so many requests: `50000`, `50k`, `1.5M`.
    requests: Option<Count>,
    /// Ends after so long.
    duration: Option<Span>,
    /// How long a connection waits between an answer and its next request.
    #[schemars(extend("default" = "0s"))]
    think: Option<Span>,
}

/// A rate, and exactly one end.
#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(extend("oneOf" = schema::each(&["requests", "duration"])))]
#[serde(deny_unknown_fields)]
struct ConstantFile {
    /// Requests per second.
    rate: PerSecond,
    /// Ends after so many requests: `50000`, `50k`, `1.5M`.
    requests: Option<Count>,
    /// Ends after so long.
    duration: Option<Span>,
    /// Connections that carry the requests, to begin with.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    connections: Option<u32>,
    /// As many may be opened while requests wait; the pool does not grow where left out.
    #[schemars(extend("minimum" = 1, "maximum" = 100000))]
    connections_max: Option<u32>,
}

/// A rate that rises or falls evenly.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct RampFile {
    /// Rate at the beginning.
    from: PerSecond,
    /// Rate at the end.
    to: PerSecond,
    /// How long it takes.
    duration: Span,
    /// Whether requests start at random within the rate.
    #[schemars(extend("default" = false))]
    poisson: Option<bool>,
    /// Connections that carry the requests, to begin with.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    connections: Option<u32>,
    /// As many may be opened while requests wait; the pool does not grow where left out.
    #[schemars(extend("minimum" = 1, "maximum" = 100000))]
    connections_max: Option<u32>,
}

/// A rate that rises or falls in steps of equal length and height.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct StaircaseFile {
    /// Rate at the beginning.
    from: PerSecond,
    /// Rate at the end.
    to: PerSecond,
    /// Number of steps, the first and the last included.
    #[schemars(extend("minimum" = 2, "maximum" = 10000))]
    steps: u32,
    /// How long it takes.
    duration: Span,
    /// Whether requests start at random within the rate.
    #[schemars(extend("default" = false))]
    poisson: Option<bool>,
    /// Connections that carry the requests, to begin with.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    connections: Option<u32>,
    /// As many may be opened while requests wait; the pool does not grow where left out.
    #[schemars(extend("minimum" = 1, "maximum" = 100000))]
    connections_max: Option<u32>,
}

/// Starts that stand in a file.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleFile {
    /// A start on each line, in seconds since the beginning of the phase, ascending; relative to the scenario file.
    file: PathBuf,
    /// Connections that carry the requests, to begin with.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    connections: Option<u32>,
    /// As many may be opened while requests wait; the pool does not grow where left out.
    #[schemars(extend("minimum" = 1, "maximum" = 100000))]
    connections_max: Option<u32>,
}

/// A status, or more than that.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a status, or a map such as `{status: 200, length: 12, body: text}`")]
pub(super) enum ExpectFile {
    Status(u16),
    More(ExpectSettings),
}

/// `true`, or with the number of streams.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "`true`, or a map such as `{streams: 10}`")]
enum Http2File {
    Switch(bool),
    Streams {
        /// Requests at a time on a connection.
        #[schemars(extend("minimum" = 1, "maximum" = 1000))]
        streams: u32,
    },
}

/// A phase with its name.
pub(super) struct OnePhase;

loadline_base::written_as! {
    PerSecond, "rate", |of| {
        "description": "Requests per second: `500`, `1.5k`, `500/s`, `30/m`, `100/h`.",
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 10_000_000},
            {"type": "string", "pattern": r"^ *([0-9]+\.?[0-9]*|\.[0-9]+)[kK]?(/(s|m|min|h))? *$"}
        ],
        "examples": [500, "1.5k", "30/m"]
    };
    ExpectFile, "expect", |of| {
        "anyOf": [{"type": "integer", "minimum": 100, "maximum": 999}, (of.subschema_for::<ExpectSettings>())]
    };
    OnePhase, "one_phase", |of| {
        "description": "One phase: its name and what happens in it.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": (schema::file_names()),
        "additionalProperties": (of.subschema_for::<PhaseFile>())
    };
}

/// Resolves the phases; `same: NAME` repeats the work of another phase, so that a warm-up is equal work.
pub(super) fn resolve_load(phases: Vec<Named<PhaseFile>>, base: &Path) -> Result<Vec<Phase>> {
    let mut resolved: Vec<Resolved> = Vec::new();
    for Named(mut entries) in phases {
        let (1, Some((name, phase))) = (entries.len(), entries.pop()) else {
            return Err(Error::request("each entry of `load` is one phase: `- NAME: {…}`"));
        };
        let at = |error: Error| error.at(format!("phase: {name}"));
        let mark = phase.mark.unwrap_or_default();
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
        match self.given().find(|other| *other != key && !fitting.contains(other)) {
            Some(other) => {
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
        if let Some(key) = self.given().find(|key| ["pattern", "collect", "settle"].contains(key)) {
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

    fn take_requests(&mut self, base: &Path) -> Result<(Request, Vec<Request>)> {
        let Some(several) = self.requests.take() else { return Ok((self.request(base)?, Vec::new())) };
        let of_one = |key: &str| matches!(key, "body" | "expect_continue") || key.parse::<Method>().is_ok();
        if self.given().any(of_one) {
            return Err(Error::request("a phase takes either `requests` or one of `get`, `put`, `post` and the like"));
        }
        let shared = pairs(self.headers.take());
        let checks = self.expect.take().map(ExpectFile::checks).unwrap_or_default();
        let mut requests = several.into_iter().map(|mut written| {
            let (weight, expects) = (written.weight.unwrap_or(1), written.expect.is_some());
            let mut request = Request { weight, ..written.request(base)? };
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

impl ExpectFile {
    fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(*status),
            Self::More(more) => more.status,
        }
    }

    fn checks(self) -> Checks {
        let status = self.status().map(ExpectStatus::Exactly);
        let mut checks = Checks { status, ..Checks::default() };
        if let Self::More(more) = self {
            more.apply(&mut checks);
        }
        checks
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
        let rate = Rate::Constant(self.rate.0);
        Ok(Schedule::Open {
            arrivals: Arrivals::Rate { rate, spacing, until },
            pool: pool(self.connections, self.connections_max),
        })
    }
}

impl RampFile {
    fn resolve(self) -> Result<Schedule> {
        let rate = Rate::Ramp { from: self.from.0, to: self.to.0 };
        let spacing = spacing(self.poisson);
        Ok(Schedule::Open {
            arrivals: Arrivals::Rate { rate, spacing, until: Until::Elapsed(self.duration) },
            pool: pool(self.connections, self.connections_max),
        })
    }
}

impl StaircaseFile {
    fn resolve(self) -> Result<Schedule> {
        let rate = Rate::Staircase { from: self.from.0, to: self.to.0, steps: self.steps };
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

/// A single rate.
pub(super) struct PerSecond(f64);

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = Scalar::deserialize(from)?.text();
        match text.parse() {
            Ok(Rate::Constant(rate)) => Ok(Self(rate)),
            Ok(_) => Err(D::Error::custom(format!("`{text}` is no single rate; use `ramp` or `staircase`"))),
            Err(why) => Err(D::Error::custom(why)),
        }
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
