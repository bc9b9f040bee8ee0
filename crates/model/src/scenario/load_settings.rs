//! The settings of a load, each defined once as a file key, an option, or both.

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

/// Defines optional settings: first file-only keys, then keys that are also options. They include the settings of a
/// request, for a phase and for each of several requests. serde's `flatten` could add those, but it neither rejects
/// unknown keys nor reports the line of an invalid value.
///
/// An option that is not a key has `#[serde(skip)]`.
macro_rules! settings {
    ($(#[$about:meta])* $name:ident, headers: $headers:tt { $($keys:tt)* } { $($options:tt)* }) => {
        settings! { @all $(#[$about])* $name {
            $($keys)*
            /// Path of a GET. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            get: RequestPath,
            /// Path of a HEAD. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            head: RequestPath,
            /// Path of a PUT. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            put: RequestPath,
            /// Path of a POST. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            post: RequestPath,
            /// Path of a PATCH. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            patch: RequestPath,
            /// Path of a DELETE. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            delete: RequestPath,
            /// Path of an OPTIONS. `{seq}` and `{rand LOW HIGH}` expand to numbers.
            options: RequestPath,
        } {
            /// Request method: GET, HEAD, PUT, POST, PATCH, DELETE, or OPTIONS [default: GET]
            #[arg(long, value_name = "METHOD")]
            #[serde(skip)]
            method: Method,
            /// The body of the request; not allowed with GET or HEAD.
            #[command(flatten)]
            body: BodySettings,
            /// Whether to wait up to 1s for `100 Continue` before sending the body.
            #[arg(long, action = ArgAction::SetTrue)]
            #[arg(help = "Wait up to 1s for `100 Continue` before sending the body")]
            #[schemars(extend("default" = false))]
            expect_continue: bool,
            #[doc = $headers]
            #[arg(id = "header", long = "header", value_name = "NAME:VALUE", value_parser = header)]
            #[arg(help = "Add a request header (repeatable)")]
            #[schemars(with = "Option<Named<Scalar>>")]
            #[schemars(extend("propertyNames" = serde_json::json!({"minLength": 1})))]
            #[serde(default, deserialize_with = "texts_by_name")]
            headers: Vec<(String, String)>,
            /// Credentials for HTTP Basic authentication
            #[arg(long, short, value_name = "NAME:PASSWORD", value_parser = basic)]
            #[serde(skip)]
            user: String,
            /// Required status, or a map of checks; if omitted, any status from 200 to 299.
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
            pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
                let all = [
                    $((stringify!($key), self.$key.is_some()),)*
                    $((stringify!($option), self.$option.is_some()),)*
                ];
                all.into_iter().filter_map(|(key, given)| given.then_some(key))
            }

            /// The request that its keys define. Errors: `Request` if they define none or several, and those of
            /// [`Self::apply_to`].
            pub(super) fn request(&self, base: &Path) -> Result<Request> {
                let methods: Vec<Method> = self.given().filter_map(|key| key.parse().ok()).collect();
                let paths = [&self.get, &self.head, &self.put, &self.post, &self.patch, &self.delete, &self.options];
                let ([method], Some(RequestPath(path))) = (&methods[..], paths.into_iter().flatten().next()) else {
                    return Err(Error::request(
                        "a request needs exactly one of `get`, `head`, `put`, `post`, `patch`, `delete`, or `options`",
                    ));
                };
                let mut request = Request::new(*method, path);
                self.apply_to(&mut request, base)?;
                request.checks = self.expect.as_ref().map(ExpectSettings::checks).unwrap_or_default();
                Ok(request)
            }

            /// Applies everything except path and status to a request; omitted settings keep their values. A body's
            /// file is relative to `base`. Errors: `Request` if the body does not have exactly one form.
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
    /// Exactly one of the load models (`closed`, `constant`, `poisson`, `ramp`, `staircase`, `schedule`), `idle`
    /// (rest), `driver` (an external program), `phases` (the subject's own work), or `same` (the work of another
    /// phase).
    #[schemars(rename = "PhaseFile", extend("oneOf" = schema::kinds_of_phases()))]
    PhaseSettings, headers: "Request headers." {
        /// Repeat the work of the phase with this name, for example as a warm-up.
        same: String,
        /// Send nothing for this long.
        idle: Span,
        /// Command line for `sh -c` that drives the load instead of Loadline. It runs in the scenario file's directory,
        /// on the CPUs of the load. `{url}` (such as `http://127.0.0.1:8080`, without a path), `{host}`, and `{port}`
        /// expand to the subject's address.
        #[schemars(extend("pattern" = "\\S"))]
        driver: String,
        /// `steady`: end the phase `warmup` as soon as the subject is warm.
        until: UntilFile,
        /// Time limit: for the driver (default 10m), for the subject's next marker (default 5m), or for the warm-up
        /// (default 60s).
        within: Span,
        /// The subject generates its own work. It prints the marker `loadline: phase=NAME` for each of these names, in
        /// this order, and is measured at each. Each marker but the last begins a phase of the trial.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
        phases: Vec<Scalar>,
        /// Additional marker format: a regular expression whose first group is the name.
        pattern: String,
        /// Full GCs at each marker, before the measurement.
        #[schemars(extend("maximum" = 10, "default" = 0))]
        collect: u32,
        /// How long to wait after the GCs before the measurement; if omitted, until RSS is stable.
        settle: Span,
        /// Whether the phase ends with a mark of the same name: `true`, or `collected` for one after full GCs.
        #[schemars(with = "Option<schema::MarkOfPhase>", extend("default" = false))]
        #[serde(default, deserialize_with = "parsed")]
        mark: PhaseMark,
        /// Closed model: each connection sends its next request after the previous response.
        closed: ClosedFile,
        /// Open model: requests start at equal intervals, whether or not the server keeps up.
        constant: ConstantFile,
        /// Open model: requests start at random, independently of each other, at this mean rate.
        poisson: ConstantFile,
        /// Open model: the rate changes linearly.
        ramp: RampFile,
        /// Open model: the rate changes in steps.
        staircase: StaircaseFile,
        /// Open model: requests start at the times in a file.
        schedule: ScheduleFile,
        /// Several requests, drawn at random by weight. The phase's `headers` precede their own; its `expect` applies
        /// to requests without one.
        #[schemars(extend("minItems" = 1))]
        requests: Vec<RequestSettings>,
        /// Whether to reuse connections.
        #[schemars(extend("default" = true))]
        keep_alive: bool,
        /// HTTP/2 instead of HTTP/1.1, with ALPN over TLS and prior knowledge in cleartext.
        http2: Http2File,
    } {
        /// Timeout per request.
        #[arg(long, value_name = "TIME", help = "Timeout per request [default: 10s]")]
        #[schemars(extend("default" = "10s"))]
        timeout: Span,
        /// Time to wait for outstanding responses after the planned end; if omitted, `timeout`.
        #[arg(long, value_name = "TIME", help = DRAIN)]
        drain: Span,
        /// Maximum bytes per second to send on each connection.
        #[arg(long, value_name = "SIZE", help = "Throttle sending to this many bytes per second per connection")]
        send_rate: Bytes,
        /// Maximum bytes per second to read from each connection.
        #[arg(long, value_name = "SIZE", help = "Throttle reading to this many bytes per second per connection")]
        receive_rate: Bytes,
        /// End the phase early if one of these conditions holds over about a second.
        #[arg(id = "stop_when", long = "stop-when", value_name = "CONDITION", help = STOP)]
        stop: Vec<Condition>,
    }
}

settings! {
    /// A request of a mix.
    #[schemars(rename = "RequestFile", extend("oneOf" = schema::each(&schema::METHODS), "not" = schema::bodiless()))]
    RequestSettings, headers: "Request headers, after those of the phase." {
        /// Relative frequency of this request.
        #[schemars(extend("minimum" = 1, "maximum" = 1000000, "default" = 1))]
        weight: u32,
    } {}
}

const DRAIN: &str = "Time to wait for outstanding responses after the planned end [default: the timeout]";
const STOP: &str = "End a phase early if this condition holds for one second: `failed>1%`, `p99>2s` (repeatable)";

impl PhaseSettings {
    /// Applies the settings that are not specific to a request; omitted ones keep their values.
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

    /// The only correct status, if given.
    pub(super) fn status(&self) -> Option<u16> {
        self.expect.as_ref()?.status
    }
}

/// The options of a load, with the same meaning in every verb. They override a file.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// Number of concurrent connections [default: 25]
    #[arg(long, short, value_name = "N")]
    pub connections: Option<u32>,
    /// Open up to N connections if requests queue (open model)
    #[arg(long, value_name = "N")]
    pub connections_max: Option<u32>,
    /// Number of requests in the measured phase
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count, conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Duration of the measured phase [default: 10s]
    #[arg(long, short, value_name = "TIME")]
    pub duration: Option<Span>,
    /// Requests per second (open model): constant `500`, ramp `100..1000`, or staircase `100..1000:10`
    #[arg(long, value_name = "RATE", conflicts_with_all = ["schedule", "think"], allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Space requests randomly, as a Poisson process (open model)
    #[arg(long, conflicts_with = "schedule")]
    pub poisson: bool,
    /// Read request start times in seconds from a file, one per line (open model)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "duration", "think"])]
    pub schedule: Option<PathBuf>,
    /// Wait between a response and the connection's next request (closed model)
    #[arg(long, value_name = "TIME")]
    pub think: Option<Span>,
    /// Warm-up before the measured phase: `same`, `none`, a number of requests, a time, or `steady` until the server is
    /// warm, at most 60s (`steady:2m` for 2 min) [default: same; none with `load`]
    #[arg(long, value_name = "WORK")]
    pub(super) warmup: Option<Warmup>,
    /// Open a new connection for every request
    #[arg(long)]
    pub close: bool,
    /// Use HTTP/2, with ALPN over TLS and prior knowledge in cleartext
    #[arg(long)]
    pub http2: bool,
    /// Concurrent requests per HTTP/2 connection [default: 1]
    #[arg(long, value_name = "N", requires = "http2")]
    pub streams: Option<u32>,
    /// The options that are also keys of a phase in a file.
    #[command(flatten)]
    pub(super) phase: PhaseSettings,
    /// Connect to this Unix socket; host and path still come from the URL
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// How to check the server's certificate, and which certificate to present.
    #[command(flatten)]
    pub(super) tls: TlsSettings,
    /// Pin the load generator to these CPUs; in a trial, also the rest of Loadline
    #[arg(long, value_name = "CPUS")]
    pub load_cpus: Option<Cpus>,
    /// Seed for all random choices [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl LoadOptions {
    /// Whether `--warmup` was given.
    pub fn names_warmup(&self) -> bool {
        self.warmup.is_some()
    }
}

pub(super) fn usual_work(request: Request) -> Work {
    Work::closed(request, defaults::CONNECTIONS, Until::Elapsed(defaults::DURATION))
}

/// Number of connections, and either `requests` or `duration`.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[schemars(extend("oneOf" = schema::each(&["requests", "duration"])))]
#[serde(deny_unknown_fields)]
pub(super) struct ClosedFile {
    /// Number of concurrent connections.
    #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
    pub(super) connections: Option<u32>,
    /// Ends after this many requests: `50000`, `50k`, `1.5M`.
    pub(super) requests: Option<Count>,
    /// Ends after this time.
    pub(super) duration: Option<Span>,
    /// Think time of a connection between a response and its next request.
    #[schemars(extend("default" = "0s"))]
    pub(super) think: Option<Span>,
}

/// Defines an open model: its own keys, and those of its connections.
macro_rules! open_model {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(super) struct $name {
            $($own)*
            /// Initial number of connections.
            #[schemars(extend("minimum" = 1, "maximum" = 100000, "default" = 25))]
            connections: Option<u32>,
            /// Maximum number of connections if requests queue; if omitted, the pool does not grow.
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
    /// A rate that changes linearly.
    RampFile {
        /// Initial rate.
        pub(super) from: PerSecond,
        /// Final rate.
        pub(super) to: PerSecond,
        /// Duration of the phase.
        pub(super) duration: Span,
        /// Whether to space requests randomly.
        #[schemars(extend("default" = false))]
        pub(super) poisson: Option<bool>,
    }
}

open_model! {
    /// A rate that changes in steps of equal length and height.
    StaircaseFile {
        /// Initial rate.
        pub(super) from: PerSecond,
        /// Final rate.
        pub(super) to: PerSecond,
        /// Number of steps, including the first and the last.
        #[schemars(extend("minimum" = 2, "maximum" = 10000))]
        pub(super) steps: u32,
        /// Duration of the phase.
        pub(super) duration: Span,
        /// Whether to space requests randomly.
        #[schemars(extend("default" = false))]
        pub(super) poisson: Option<bool>,
    }
}

open_model! {
    /// Request start times from a file.
    ScheduleFile {
        /// File with one start time per line, in ascending seconds since the start of the phase; relative to the
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
            Ok(_) => Err(D::Error::custom(format!("`{text}` is not a single rate; use `ramp` or `staircase`"))),
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
    /// Contents of this file, relative to the scenario file.
    #[arg(id = "body", long = "body", value_name = "FILE", conflicts_with_all = ["body_size", "body_text"])]
    #[arg(help = "Send this file as the request body")]
    file: Option<PathBuf>,
    /// Size of a body of printable pseudo-random text, the same for every request.
    #[arg(id = "body_size", long = "body-size", value_name = "SIZE", conflicts_with = "body_text")]
    #[arg(help = "Send a request body of this size")]
    size: Option<Bytes>,
    /// This text; `{seq}` and `{rand LOW HIGH}` expand to numbers.
    #[arg(id = "body_text", long = "body-text", value_name = "TEXT", allow_hyphen_values = true, help = BODY_TEXT)]
    #[schemars(with = "Option<Scalar>")]
    #[serde(deserialize_with = "parsed")]
    text: Option<String>,
    /// Contents of a body with a `size`.
    #[arg(
        id = "body_fill",
        long = "body-fill",
        value_name = "WHAT",
        requires = "body_size",
        hide_possible_values = true
    )]
    #[arg(help = "Contents of a `--body-size` body: random or zero [default: random]")]
    #[schemars(extend("default" = "random"))]
    fill: Option<Fill>,
}

const BODY_TEXT: &str =
    "Send this text as the request body; `{seq}` and `{rand LOW HIGH}` expand to numbers, as in paths and headers";

impl BodySettings {
    /// The given body; its file is relative to `base`. Errors: `Request` if it does not have exactly one form.
    fn resolve(&self, base: &Path) -> Result<Body> {
        match (self.size, &self.file, &self.text, self.fill) {
            (Some(size), None, None, None | Some(Fill::Random)) => Ok(Body::Generated(size)),
            (Some(size), None, None, Some(Fill::Zero)) => Ok(Body::Zero(size)),
            (None, Some(file), None, None) => Ok(Body::File(base.join(file))),
            (None, None, Some(text), None) => Ok(Body::Text(text.clone())),
            _ => Err(Error::request("`body` needs exactly one of `size` (with `fill`), `file`, or `text`")),
        }
    }
}

/// Checks of a response; all must pass.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "ExpectMore")]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExpectSettings {
    /// Required status; if omitted, any from 200 to 299.
    #[arg(id = "expect_status", long = "expect-status", value_name = "STATUS")]
    #[arg(help = "Require this response status [default: any of 200-299]")]
    #[schemars(extend("minimum" = 100, "maximum" = 999))]
    status: Option<u16>,
    /// Exact size of the response body.
    #[arg(id = "expect_length", long = "expect-length", value_name = "SIZE")]
    #[arg(help = "Require a response body of exactly this size")]
    length: Option<Bytes>,
    /// Required headers, with exactly this value if given.
    #[arg(id = "expect_header", long = "expect-header", value_name = "NAME[:VALUE]", value_parser = expected_header)]
    #[arg(help = "Require this response header, with exactly this value if given (repeatable)")]
    #[schemars(with = "Option<Named<Option<Scalar>>>")]
    #[serde(deserialize_with = "texts_or_none_by_name")]
    headers: Vec<(String, Option<String>)>,
    /// Text that the response body must contain.
    #[arg(id = "expect_body", long = "expect-body", value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(help = "Require the response body to contain this text")]
    #[schemars(extend("minLength" = 1))]
    body: Option<String>,
}

impl ExpectSettings {
    pub(super) fn checks(&self) -> Checks {
        let mut checks = Checks { status: self.status.map(ExpectStatus::Exactly), ..Checks::default() };
        self.apply(&mut checks);
        checks
    }

    /// Adds everything except the status to existing checks.
    fn apply(&self, checks: &mut Checks) {
        checks.length = self.length.or(checks.length);
        checks.headers.extend(self.headers.iter().cloned());
        checks.body = self.body.clone().or(checks.body.take());
    }
}

/// How to check the server's certificate, and which client certificate to present.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args, schemars::JsonSchema)]
#[schemars(rename = "TlsHow", extend("dependentRequired" = schema::needs("key", "cert")))]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsSettings {
    /// CA certificates (PEM) to trust in addition to the system's, relative to the scenario file.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    #[arg(help = "Trust these CA certificates (PEM) in addition to the system's")]
    pub(super) ca: Option<PathBuf>,
    /// Whether to accept any server certificate.
    #[arg(long, help = "Accept any server certificate")]
    pub(super) insecure: bool,
    /// Client certificate (PEM) to present if the server asks for one, relative to the scenario file.
    #[arg(long, value_name = "FILE", help = "Client certificate (PEM) to present if the server asks for one")]
    pub(super) cert: Option<PathBuf>,
    /// Private key (PEM) for `cert`; if omitted, it is read from the certificate file.
    #[arg(long, value_name = "FILE", requires = "cert")]
    #[arg(help = "Private key (PEM) for `--cert` [default: read from the certificate file]")]
    pub(super) key: Option<PathBuf>,
}

impl TlsSettings {
    /// Applies the settings; omitted ones keep their values. Relative paths are resolved against `base`.
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
    /// Zero bytes.
    Zero,
}

/// The condition that ends a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UntilFile {
    /// The subject is warm: its compilers are idle, and the cost per request is stable.
    Steady,
}

/// Work before the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmup {
    /// The same work as in the measured phase.
    Same,
    /// No warm-up.
    None,
    Requests(u64),
    /// For this long.
    Elapsed(Span),
    /// Until the subject is warm, for at most this long.
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
        // `5m` is a time, as everywhere else on a command line; a warm-up of five million requests is implausible.
        if let Ok(count) = parse_count(text)
            && !text.ends_with('m')
        {
            return Ok(Self::Requests(count));
        }
        let refuse = |_| {
            format!(
                "`{text}` is not one of `same`, `none`, `steady`, `steady:2m`, a count such as `50k`, or a time such \
                 as `30s`"
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

/// The `Authorization` value (RFC 7617).
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
    fn warm_up_accepts_words_counts_and_times() {
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
    fn expected_headers_are_parsed_with_or_without_a_value() {
        assert_eq!(expected_header("ETag"), Ok(("ETag".to_owned(), None)));
        assert_eq!(expected_header("A: b c"), Ok(("A".to_owned(), Some("b c".to_owned()))));
        assert!(expected_header("").is_err() && expected_header("a b").is_err() && expected_header(": x").is_err());
    }
}
