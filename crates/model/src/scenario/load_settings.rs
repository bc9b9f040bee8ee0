//! The settings of a load, each in one place: its key in a file, its option, or both.

use super::schema;
use super::written::{Named, Scalar, parsed, texts_by_name, texts_or_none_by_name};
use super::{
    Arrivals, Body, Checks, Condition, Cpus, ExpectStatus, Method, PhaseMark, Pool, Protocol, Rate, Request, Schedule,
    Tls, Until, Work, defaults,
};
use crate::error::{Error, Result};
use crate::units::{Bytes, Count, Span, parse_count};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::{ArgAction, Args, ValueEnum};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Defines settings that may all be omitted: first keys of a file alone, then keys that are options as well. They
/// include the settings of one request, for a phase and for each of several requests. serde's `flatten` could add
/// those, but it neither refuses unknown keys nor reports the line of a wrong value.
///
/// An option that is not a key has `#[serde(skip)]`.
macro_rules! settings {
    ($(#[$about:meta])* $name:ident, headers: $headers:tt { $($keys:tt)* } { $($options:tt)* }) => {
        settings! { @all $(#[$about])* $name {
            $($keys)*
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
        } {
            /// GET, HEAD, PUT, POST, PATCH, DELETE or OPTIONS [default: GET]
            #[arg(long, value_name = "METHOD")]
            #[serde(skip)]
            method: Method,
            /// The body of the request; not allowed with GET or HEAD.
            #[command(flatten)]
            body: BodySettings,
            /// Whether the body waits for `100 Continue`, for a second at most.
            #[arg(long, action = ArgAction::SetTrue)]
            #[arg(help = "Wait for `100 Continue`, for a second at most, before sending the body")]
            #[schemars(extend("default" = false))]
            expect_continue: bool,
            #[doc = $headers]
            #[arg(id = "header", long = "header", value_name = "NAME:VALUE", value_parser = header)]
            #[arg(help = "Add a header; may be repeated")]
            #[schemars(with = "Option<Named<Scalar>>")]
            #[schemars(extend("propertyNames" = serde_json::json!({"minLength": 1})))]
            #[serde(default, deserialize_with = "texts_by_name")]
            headers: Vec<(String, String)>,
            /// Send name and password (Basic authentication)
            #[arg(long, short, value_name = "NAME:PASSWORD", value_parser = basic)]
            #[serde(skip)]
            user: String,
            /// The only status of a correct answer, or a map of checks; if omitted, any status from 200 to 299.
            #[command(flatten)]
            #[schemars(with = "Option<ExpectFile>")]
            #[serde(default, deserialize_with = "status_or_more")]
            expect: ExpectSettings,
            $($options)*
        } }
    };
    (@all $(#[$about:meta])* $name:ident
        { $($(#[$of:meta])* $key:ident: $type:ty,)* } { $($(#[$on:meta])* $option:ident: $value:ty,)* }
    ) => {
        #[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(super) struct $name {
            $($(#[$of])* #[arg(skip)] pub(super) $key: Option<$type>,)*
            $($(#[$on])* pub(super) $option: Option<$value>,)*
        }

        impl $name {
            /// The settings that are given.
            pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
                let all = [
                    $((stringify!($key), self.$key.is_some()),)*
                    $((stringify!($option), self.$option.is_some()),)*
                ];
                all.into_iter().filter_map(|(key, given)| given.then_some(key))
            }

            /// The request that its keys name.
            ///
            /// # Errors
            /// `Request` if they name none or several, and as [`Self::apply_to`].
            pub(super) fn request(&self, base: &Path) -> Result<Request> {
                let methods: Vec<Method> = self.given().filter_map(|key| key.parse().ok()).collect();
                let paths = [&self.get, &self.head, &self.put, &self.post, &self.patch, &self.delete, &self.options];
                let ([method], Some(RequestPath(path))) = (&methods[..], paths.into_iter().flatten().next()) else {
                    return Err(Error::request(
                        "a request takes exactly one of `get`, `head`, `put`, `post`, `patch`, `delete`, `options`",
                    ));
                };
                let mut request = Request::new(*method, path);
                self.apply_to(&mut request, base)?;
                request.checks = self.expect.as_ref().map(ExpectSettings::checks).unwrap_or_default();
                Ok(request)
            }

            /// Applies all but path and status to a request; omitted settings keep their values. The file of a body is
            /// relative to `base`.
            ///
            /// # Errors
            /// `Request` if the body does not have exactly one form.
            pub(super) fn apply_to(&self, request: &mut Request, base: &Path) -> Result<()> {
                request.method = self.method.unwrap_or(request.method);
                if let Some(body) = &self.body {
                    request.body = body.resolve(base)?;
                }
                request.headers.extend(self.headers.iter().flatten().cloned());
                request.headers.extend(self.user.iter().map(|user| ("Authorization".to_owned(), user.clone())));
                request.expect_continue |= self.expect_continue.unwrap_or(false);
                if let Some(expect) = &self.expect {
                    expect.apply(&mut request.checks);
                }
                Ok(())
            }
        }
    };
}

settings! {
    /// Exactly one of the models (`closed`, `constant`, `poisson`, `ramp`, `staircase`, `schedule`), `idle` (rest),
    /// `driver` (another program), `phases` (the subject itself), `same` (the work of another phase).
    #[schemars(rename = "PhaseFile", extend("oneOf" = schema::kinds_of_phases()))]
    PhaseSettings, headers: "Further header fields." {
        /// Repeats the work of the phase with this name, so that a warm-up does equal work.
        same: String,
        /// Sends nothing for this long.
        idle: Span,
        /// A command line for `sh -c` that drives the load instead of the engine. It runs in the folder of the scenario
        /// file, on the CPUs of the load. `{url}` (such as `http://127.0.0.1:8080`, without a path), `{host}` and
        /// `{port}` give the address of the subject.
        #[schemars(extend("pattern" = "\\S"))]
        driver: String,
        /// `steady`: the phase `warmup` ends once the subject is warm, at its own end at the latest.
        until: UntilFile,
        /// How long the driver may take (default 10m), the subject to its next marker (default 5m), or the warm-up
        /// until the subject is warm (default 60s).
        within: Span,
        /// The subject works by itself. It prints the marker `loadline: phase=NAME` for each of these names, in this
        /// order, and is weighed at each. Each marker but the last begins a phase of the trial.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
        phases: Vec<Scalar>,
        /// A further form of marker: a regular expression whose first group is the name.
        pattern: String,
        /// Full collections at each marker, before the subject is weighed.
        #[schemars(extend("maximum" = 10, "default" = 0))]
        collect: u32,
        /// How long to wait after the collections before weighing; if omitted, until RSS no longer changes.
        settle: Span,
        /// Whether the phase ends in a mark of its own name: `true`, or `collected` for one after full collections.
        #[schemars(with = "Option<schema::MarkOfPhase>", extend("default" = false))]
        #[serde(default, deserialize_with = "parsed")]
        mark: PhaseMark,
        /// Closed model: each connection sends its next request after the answer to the last.
        closed: ClosedFile,
        /// Open model: requests start at equal intervals, whether or not the server keeps up.
        constant: ConstantFile,
        /// Open model: requests start at random and independently of each other, at this mean rate.
        poisson: ConstantFile,
        /// Open model: the rate rises or falls evenly.
        ramp: RampFile,
        /// Open model: the rate rises or falls in steps.
        staircase: StaircaseFile,
        /// Open model: requests start at the times in a file.
        schedule: ScheduleFile,
        /// Several requests, drawn at random by weight. The phase's `headers` go before their own; its `expect` applies
        /// to those without their own.
        #[schemars(extend("minItems" = 1))]
        requests: Vec<RequestSettings>,
        /// Whether a connection carries more than one request.
        #[schemars(extend("default" = true))]
        keep_alive: bool,
        /// HTTP/2 instead of HTTP/1.1: over TLS with ALPN, in cleartext with prior knowledge.
        http2: Http2File,
    } {
        /// How long one request may take.
        #[arg(long, value_name = "TIME", help = "How long one request may take [default: 10s]")]
        #[schemars(extend("default" = "10s"))]
        timeout: Span,
        /// How long to wait for answers after the planned end; if omitted, as long as `timeout`.
        #[arg(long, value_name = "TIME", help = DRAIN)]
        drain: Span,
        /// Slow senders: bytes per second sent on each connection.
        #[arg(long, value_name = "SIZE", help = "Slow senders: bytes per second sent on each connection")]
        send_rate: Bytes,
        /// Slow readers: bytes per second read from each connection.
        #[arg(long, value_name = "SIZE", help = "Slow readers: bytes per second read from each connection")]
        receive_rate: Bytes,
        /// The phase ends early when one of these conditions holds over about a second.
        #[arg(id = "stop_when", long = "stop-when", value_name = "CONDITION", help = STOP)]
        stop: Vec<Condition>,
    }
}

settings! {
    /// One of several requests.
    #[schemars(rename = "RequestFile", extend("oneOf" = schema::each(&schema::METHODS), "not" = schema::bodiless()))]
    RequestSettings, headers: "Further header fields, after those of the phase." {
        /// How often it is drawn, relative to the others.
        #[schemars(extend("minimum" = 1, "maximum" = 1000000, "default" = 1))]
        weight: u32,
    } {}
}

const DRAIN: &str = "How long to wait for answers after the planned end [default: as long as the timeout]";
const STOP: &str = "End a phase early when this condition holds over a second: `failed>1%`, `p99>2s`; may be repeated";

impl PhaseSettings {
    /// Applies the settings that belong to no single request to the work of a phase; omitted ones keep their values.
    pub(super) fn apply(&self, work: &mut Work) {
        work.keep_alive = self.keep_alive.unwrap_or(work.keep_alive);
        work.timeout = self.timeout.unwrap_or(work.timeout);
        work.drain = self.drain.or(work.drain);
        work.pace.send = self.send_rate.or(work.pace.send);
        work.pace.receive = self.receive_rate.or(work.pace.receive);
        if let Some(stop) = &self.stop {
            work.stop.clone_from(stop);
        }
    }

    /// The only status of a correct answer, if given.
    pub(super) fn status(&self) -> Option<u16> {
        self.expect.as_ref()?.status
    }
}

/// The options of a load, with the same meaning in every verb. They override a file.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// Connections kept busy [default: 25]
    #[arg(long, short, value_name = "N")]
    pub connections: Option<u32>,
    /// Open model: open up to N connections while requests wait
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
    /// Open model: a file with one request start per line, in seconds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "duration", "think"])]
    pub schedule: Option<PathBuf>,
    /// Closed model: how long a connection waits between an answer and its next request
    #[arg(long, value_name = "TIME")]
    pub think: Option<Span>,
    /// Work before the measured phase: `same`, a count, a time, `none`, or `steady`: until the subject is warm, 60 s at
    /// most (`steady:2m`: 2 min) [default: same; with `load` none]
    #[arg(long, value_name = "WORK")]
    pub(super) warmup: Option<Warmup>,
    /// Open a connection for every request
    #[arg(long)]
    pub close: bool,
    /// HTTP/2: over TLS with ALPN, in cleartext with prior knowledge
    #[arg(long)]
    pub http2: bool,
    /// Concurrent requests on an HTTP/2 connection [default: 1]
    #[arg(long, value_name = "N", requires = "http2")]
    pub streams: Option<u32>,
    /// The options that are also keys of a phase in a file.
    #[command(flatten)]
    pub(super) phase: PhaseSettings,
    /// The Unix socket of the server; host and path of the URL are still sent
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// How to check the server's certificate, and which certificate to present.
    #[command(flatten)]
    pub(super) tls: TlsSettings,
    /// CPUs of the load engine; in a trial, also of the rest of Loadline
    #[arg(long, value_name = "CPUS")]
    pub load_cpus: Option<Cpus>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl LoadOptions {
    /// Whether `--warmup` was given.
    pub fn names_warmup(&self) -> bool {
        self.warmup.is_some()
    }
}

/// The default work for a load that gives only a request.
pub(super) fn usual_work(request: Request) -> Work {
    Work::closed(request, defaults::CONNECTIONS, Until::Elapsed(defaults::DURATION))
}

/// The number of connections, and exactly one end: `requests` or `duration`.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[schemars(extend("oneOf" = schema::each(&["requests", "duration"])))]
#[serde(deny_unknown_fields)]
pub(super) struct ClosedFile {
    /// Connections kept busy.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    pub(super) connections: Option<u32>,
    /// Ends after this many requests: `50000`, `50k`, `1.5M`.
    pub(super) requests: Option<Count>,
    /// Ends after this time.
    pub(super) duration: Option<Span>,
    /// How long a connection waits between an answer and its next request.
    #[schemars(extend("default" = "0s"))]
    pub(super) think: Option<Span>,
}

/// Defines an open model: its own keys, and those of the connections that carry it.
macro_rules! open_model {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(super) struct $name {
            $($own)*
            /// Connections that carry the requests at first.
            #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
            connections: Option<u32>,
            /// The most connections to open while requests wait; if omitted, the pool does not grow.
            #[schemars(extend("minimum" = 1, "maximum" = 100000))]
            connections_max: Option<u32>,
        }

        impl $name {
            /// The schedule of these arrivals on its connections.
            pub(super) fn open(&self, arrivals: Arrivals) -> Schedule {
                let connections = self.connections.unwrap_or(defaults::CONNECTIONS);
                let connections_max = self.connections_max.unwrap_or(connections).max(connections);
                Schedule::Open { arrivals, pool: Pool { connections, connections_max } }
            }
        }
    };
}

open_model! {
    /// A rate, and exactly one end: `requests` or `duration`.
    #[schemars(extend("oneOf" = schema::each(&["requests", "duration"])))]
    ConstantFile {
        /// Requests per second.
        pub(super) rate: PerSecond,
        /// Ends after this many requests: `50000`, `50k`, `1.5M`.
        pub(super) requests: Option<Count>,
        /// Ends after this time.
        pub(super) duration: Option<Span>,
    }
}

open_model! {
    /// A rate that rises or falls evenly.
    RampFile {
        /// Rate at the beginning.
        pub(super) from: PerSecond,
        /// Rate at the end.
        pub(super) to: PerSecond,
        /// How long the phase lasts.
        pub(super) duration: Span,
        /// Whether requests start at random within the rate.
        #[schemars(extend("default" = false))]
        pub(super) poisson: Option<bool>,
    }
}

open_model! {
    /// A rate that rises or falls in steps of equal length and height.
    StaircaseFile {
        /// Rate at the beginning.
        pub(super) from: PerSecond,
        /// Rate at the end.
        pub(super) to: PerSecond,
        /// Number of steps, the first and the last included.
        #[schemars(extend("minimum" = 2, "maximum" = 10000))]
        pub(super) steps: u32,
        /// How long the phase lasts.
        pub(super) duration: Span,
        /// Whether requests start at random within the rate.
        #[schemars(extend("default" = false))]
        pub(super) poisson: Option<bool>,
    }
}

open_model! {
    /// Request starts from a file.
    ScheduleFile {
        /// A file with one start per line, in ascending seconds since the beginning of the phase; relative to the
        /// scenario file.
        pub(super) file: PathBuf,
    }
}

/// A single rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerSecond(pub(super) f64);

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Scalar::deserialize(from)?.text();
        match text.parse() {
            Ok(Rate::Constant(rate)) => Ok(Self(rate)),
            Ok(_) => Err(D::Error::custom(format!("`{text}` is no single rate; use `ramp` or `staircase`"))),
            Err(why) => Err(D::Error::custom(why)),
        }
    }
}

/// The path of a request.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[schemars(inline, extend("pattern" = "^/[^\\r\\n]*$"))]
pub(super) struct RequestPath(String);

/// A status, or a map of checks.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a status, or a map such as `{status: 200, length: 12, body: text}`")]
enum ExpectFile {
    Status(u16),
    More(ExpectSettings),
}

fn status_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ExpectSettings>, D::Error> {
    Ok(Option::<ExpectFile>::deserialize(from)?.map(|written| match written {
        ExpectFile::Status(status) => ExpectSettings { status: Some(status), ..ExpectSettings::default() },
        ExpectFile::More(more) => more,
    }))
}

/// `true`, or the number of streams.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "`true`, or a map such as `{streams: 10}`")]
pub(super) enum Http2File {
    Switch(bool),
    Streams {
        /// Concurrent requests on a connection.
        #[schemars(extend("minimum" = 1, "maximum" = 1000))]
        streams: u32,
    },
}

impl Http2File {
    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::Switch(true) => Protocol::Http2 { streams: 1 },
            Self::Streams { streams } => Protocol::Http2 { streams: *streams },
            Self::Switch(false) => Protocol::Http1,
        }
    }
}

/// Exactly one of `size`, `file`, `text`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "BodyFile")]
#[schemars(extend("oneOf" = schema::each(&["size", "file", "text"])))]
#[schemars(extend("dependentRequired" = schema::needs("fill", "size")))]
#[serde(deny_unknown_fields, default)]
pub(super) struct BodySettings {
    /// The contents of this file, relative to the scenario file.
    #[arg(id = "body", long = "body", value_name = "FILE", conflicts_with_all = ["body_size", "body_text"])]
    #[arg(help = "Send this file as the body")]
    file: Option<PathBuf>,
    /// This many bytes of printable pseudo-random text, the same for every request.
    #[arg(id = "body_size", long = "body-size", value_name = "SIZE", conflicts_with = "body_text")]
    #[arg(help = "Send a body of this size")]
    size: Option<Bytes>,
    /// This text. `{seq}` and `{rand LOW HIGH}` stand for numbers.
    #[arg(id = "body_text", long = "body-text", value_name = "TEXT", allow_hyphen_values = true, help = BODY_TEXT)]
    #[schemars(with = "Option<Scalar>")]
    #[serde(deserialize_with = "parsed")]
    text: Option<String>,
    /// The content of a body given by `size`.
    #[arg(
        id = "body_fill",
        long = "body-fill",
        value_name = "WHAT",
        requires = "body_size",
        hide_possible_values = true
    )]
    #[arg(help = "Content of a body given by size: random or zero [default: random]")]
    #[schemars(extend("default" = "random"))]
    fill: Option<Fill>,
}

const BODY_TEXT: &str =
    "Send this text as the body; `{seq}` and `{rand LOW HIGH}` stand for numbers, as in paths and headers";

impl BodySettings {
    /// The body that is given; its file is relative to `base`.
    ///
    /// # Errors
    /// `Request` if it does not have exactly one form.
    fn resolve(&self, base: &Path) -> Result<Body> {
        match (self.size, &self.file, &self.text, self.fill) {
            (Some(size), None, None, None | Some(Fill::Random)) => Ok(Body::Generated(size)),
            (Some(size), None, None, Some(Fill::Zero)) => Ok(Body::Zero(size)),
            (None, Some(file), None, None) => Ok(Body::File(base.join(file))),
            (None, None, Some(text), None) => Ok(Body::Text(text.clone())),
            _ => Err(Error::request("`body` takes exactly one of `size` (with `fill`), `file`, `text`")),
        }
    }
}

/// Checks of an answer; all that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "ExpectMore")]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExpectSettings {
    /// The only correct status; if omitted, any from 200 to 299.
    #[arg(id = "expect_status", long = "expect-status", value_name = "STATUS")]
    #[arg(help = "The only status of a correct answer [default: any of 200-299]")]
    #[schemars(extend("minimum" = 100, "maximum" = 999))]
    status: Option<u16>,
    /// The exact size of the body.
    #[arg(id = "expect_length", long = "expect-length", value_name = "SIZE")]
    #[arg(help = "A correct answer has a body of exactly this size")]
    length: Option<Bytes>,
    /// Headers that must be present; with a value, exactly that value.
    #[arg(id = "expect_header", long = "expect-header", value_name = "NAME[:VALUE]", value_parser = expected_header)]
    #[arg(help = "A correct answer has this header, with exactly this value if one is given; may be repeated")]
    #[schemars(with = "Option<Named<Option<Scalar>>>")]
    #[serde(deserialize_with = "texts_or_none_by_name")]
    headers: Vec<(String, Option<String>)>,
    /// Text that the body must contain.
    #[arg(id = "expect_body", long = "expect-body", value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(help = "The body of a correct answer contains this text")]
    #[schemars(extend("minLength" = 1))]
    body: Option<String>,
}

impl ExpectSettings {
    /// The checks of a request that has no others.
    pub(super) fn checks(&self) -> Checks {
        let mut checks = Checks { status: self.status.map(ExpectStatus::Exactly), ..Checks::default() };
        self.apply(&mut checks);
        checks
    }

    /// Adds all but the status to the existing checks.
    fn apply(&self, checks: &mut Checks) {
        checks.length = self.length.or(checks.length);
        checks.headers.extend(self.headers.iter().cloned());
        checks.body = self.body.clone().or(checks.body.take());
    }
}

/// How to check the certificate of a server, and which certificate to present.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "TlsHow", extend("dependentRequired" = schema::needs("key", "cert")))]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsSettings {
    /// Certificates (PEM) that are trusted in addition to those of the machine; relative to the scenario file.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    #[arg(help = "Certificates (PEM) to trust in addition to those of the machine")]
    pub(super) ca: Option<PathBuf>,
    /// Whether any certificate is accepted.
    #[arg(long, help = "Accept any certificate")]
    pub(super) insecure: bool,
    /// The certificate (PEM) to present to a server that asks for one; relative to the scenario file.
    #[arg(long, value_name = "FILE", help = "The certificate (PEM) to present to a server that asks for one")]
    pub(super) cert: Option<PathBuf>,
    /// The key (PEM) of `cert`; if omitted, the file of the certificate has the key.
    #[arg(long, value_name = "FILE", requires = "cert")]
    #[arg(help = "The key (PEM) of `--cert` [default: in the file of the certificate]")]
    pub(super) key: Option<PathBuf>,
}

impl TlsSettings {
    /// Applies the settings; omitted ones keep their values. Relative paths start from `base`.
    pub(super) fn apply(self, tls: &mut Tls, base: &Path) {
        let file = |path: PathBuf| base.join(path);
        tls.ca = self.ca.map(file).or(tls.ca.take());
        tls.insecure |= self.insecure;
        if self.cert.is_some() {
            (tls.cert, tls.key) = (self.cert.map(file), self.key.map(file));
        }
    }
}

/// The content of a body given by size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fill {
    /// Printable pseudo-random text.
    Random,
    /// Bytes of zero.
    Zero,
}

/// The condition that ends a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UntilFile {
    /// The subject is warm: its compilers are idle, and the cost of a request no longer changes.
    Steady,
}

/// Work before the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmup {
    /// As much work as in the measured phase.
    Same,
    /// No warm-up.
    None,
    /// This many requests.
    Requests(u64),
    /// This long.
    Elapsed(Span),
    /// Until the subject is warm, at most this long.
    Steady(Span),
}

impl FromStr for Warmup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "same" => return Ok(Self::Same),
            "none" => return Ok(Self::None),
            "steady" => return Ok(Self::Steady(defaults::STEADY_WITHIN)),
            _ => {}
        }
        // `5m` is a time, as everywhere else on a command line: a warm-up of five million requests is not plausible.
        if let Ok(count) = parse_count(text)
            && !text.ends_with('m')
        {
            return Ok(Self::Requests(count));
        }
        let refuse = |_| {
            format!(
                "`{text}` is none of `same`, `none`, `steady`, `steady:2m`, a count such as `50k`, a time such as `30s`"
            )
        };
        match text.strip_prefix("steady:") {
            Some(within) => within.parse().map(Self::Steady).map_err(refuse),
            None => text.parse().map(Self::Elapsed).map_err(refuse),
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let refuse = || format!("`{text}` is not a header; write it as `Accept: text/html`");
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
        true => Err(format!("`{text}` is not a header; write it as `Content-Type` or `Content-Type: text/html`")),
        false => Ok((text.to_owned(), None)),
    }
}

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
}

/// The options of a load as they are typed.
#[cfg(test)]
pub(super) fn typed(words: &str) -> LoadOptions {
    #[derive(clap::Parser)]
    struct LoadCommand {
        #[command(flatten)]
        load: LoadOptions,
    }
    let words = format!("loadline {words}");
    <LoadCommand as clap::Parser>::try_parse_from(words.split_whitespace()).unwrap().load
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_takes_words_counts_and_times() {
        assert_eq!("same".parse(), Ok(Warmup::Same));
        assert_eq!("50k".parse(), Ok(Warmup::Requests(50_000)));
        assert_eq!("30s".parse(), Ok(Warmup::Elapsed(Span::seconds(30))));
        assert_eq!("steady".parse(), Ok(Warmup::Steady(defaults::STEADY_WITHIN)));
        assert_eq!("steady:2m".parse(), Ok(Warmup::Steady(Span::seconds(120))));
        for wrong in ["some", "steady:", "steady:soon", "steadily"] {
            assert!(wrong.parse::<Warmup>().unwrap_err().contains(&format!("`{wrong}`")), "{wrong}");
        }
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
}
