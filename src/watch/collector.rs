//! An OpenTelemetry collector: its address from options or OpenTelemetry variables, and a request with its result (OTLP
//! 1.x over HTTP, `docs/specification.md` of opentelemetry-proto).

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::scenario::{Url, bracketed};
use crate::tls::{certificates, provider, trusted};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde::Deserialize;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time limit of a request, unless `OTEL_EXPORTER_OTLP_TIMEOUT` overrides it; OpenTelemetry's default.
const WITHIN: Duration = Duration::from_secs(10);
/// The part of that time for connecting to one address.
const CONNECTED_WITHIN: Duration = Duration::from_secs(3);
/// The maximum number of response bytes to read.
const ANSWER_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// The maximum number of characters shown of a collector's message.
const SHOWN_LETTERS: usize = 200;
/// The interval between exports, unless `OTEL_METRIC_EXPORT_INTERVAL` overrides it.
const EVERY: Duration = Duration::from_secs(60);
/// The minimum time limit of a request, and the minimum interval between exports.
const OFTEN: Duration = Duration::from_millis(100);
const PATH: &str = "/v1/metrics";

/// Where to send metrics, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Collector {
    url: Url,
    port: u16,
    headers: Vec<(String, String)>,
    /// Certificate authorities in addition to the machine's.
    authorities: Option<PathBuf>,
    within: Duration,
    /// Attributes of every resource, from `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`.
    pub resource: Vec<(String, String)>,
    /// The interval between exports.
    pub every: Duration,
}

#[derive(Debug, PartialEq)]
pub(super) enum Sent {
    /// Fully accepted.
    Taken,
    /// Accepted, except for a part that the collector names (`partial_success`).
    Partly(String),
    /// Rejected; a retry would be rejected too.
    Refused(String),
    /// Retryable: no response, or a retryable status (429, 502, 503, 504).
    Busy {
        /// The reason.
        why: String,
        /// The delay that the collector requests (`Retry-After`).
        again_after: Option<Duration>,
    },
}

impl Collector {
    /// Reads the options, else OpenTelemetry's variables: `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` unchanged, or
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` with `/v1/metrics` appended; `_HEADERS`, `_TIMEOUT` (ms), and `_CERTIFICATE` of
    /// either; `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`, `OTEL_METRIC_EXPORT_INTERVAL` (ms). Defaults to
    /// `http://localhost:4318`. Errors: `Request` for an invalid URL, pair, or number, or for gRPC.
    pub fn of(typed: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let own = |name: &str| set(name).map(|value| (name.to_owned(), value));
        // The metrics variable takes precedence over the general one; its name is for messages.
        let either = |end: &str| {
            own(&format!("OTEL_EXPORTER_OTLP_METRICS_{end}")).or_else(|| own(&format!("OTEL_EXPORTER_OTLP_{end}")))
        };
        if let Some((name, protocol)) = either("PROTOCOL").filter(|(_, protocol)| protocol.trim() == "grpc") {
            return Err(Error::request(format!("{name} is `{protocol}`, but metrics are sent as JSON over HTTP"))
                .hint("unset it, and use the collector's HTTP port, 4318"));
        }
        let base = |base: String| format!("{}{PATH}", base.trim_end_matches('/'));
        let url = match typed {
            "" => set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
                .or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT").map(base))
                .unwrap_or_else(|| base("http://localhost:4318".to_owned())),
            typed => typed.to_owned(),
        };
        let refuse = |why: &str| {
            Error::request(format!("metrics cannot be sent to `{url}`: {why}"))
                .hint("write `--otlp=http://HOST:4318/v1/metrics`")
        };
        let mut parsed = Url::parse(url.trim()).map_err(|cause| refuse(&cause.what))?;
        let port = parsed.port.ok_or_else(|| refuse("it has no port"))?;
        if !typed.is_empty() && parsed.path == "/" {
            PATH.clone_into(&mut parsed.path);
        }
        if parsed.path.chars().chain(parsed.host.chars()).any(|letter| letter.is_control() || letter == ' ') {
            return Err(refuse("it contains spaces"));
        }
        let milliseconds = |found: Option<(String, String)>, usual: Duration| match found {
            None => Ok(usual),
            Some((name, text)) => text.trim().parse().map(Duration::from_millis).map_err(|_| {
                Error::request(format!("{name} is `{text}`, which is not a number of milliseconds"))
                    .hint(format!("write `{name}=10000`"))
            }),
        };
        let (name, headers) = either("HEADERS").unwrap_or_default();
        let headers = pairs(&name, &headers)?;
        Ok(Self {
            url: parsed,
            port,
            headers: headers.into_iter().map(|(key, value)| header(&name, key, value)).collect::<Result<_>>()?,
            authorities: either("CERTIFICATE").map(|(_, path)| PathBuf::from(path.trim())),
            within: milliseconds(either("TIMEOUT"), WITHIN)?.max(OFTEN),
            resource: resource(&set)?,
            every: milliseconds(own("OTEL_METRIC_EXPORT_INTERVAL"), EVERY)?.max(OFTEN),
        })
    }

    /// TLS that trusts the machine's certificates and those in `OTEL_EXPORTER_OTLP_CERTIFICATE`; `None` for `http`.
    /// Errors: `Machine` if TLS is requested and there are no trusted certificates; `Request` if the file has none.
    pub(super) fn trusted(&self) -> Result<Option<Arc<ClientConfig>>> {
        if !self.url.tls {
            return Ok(None);
        }
        let named = self.authorities.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let roots = trusted(&named);
        if roots.is_empty() {
            return Err(Error::machine(
                "this machine has no trusted CA certificates, so it cannot reach a collector over TLS",
            )
            .hint(
                "install them (the package `ca-certificates`), set OTEL_EXPORTER_OTLP_CERTIFICATE, or use \
                   `http://`",
            ));
        }
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|cause| Error::machine(format!("TLS: {cause}")))?;
        Ok(Some(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// Sends a request and waits for the response.
    pub(super) fn send(&self, body: &str, tls: Option<&Arc<ClientConfig>>, clock: &Clock) -> Sent {
        let exchanged = self.connect(clock).and_then(|stream| match tls {
            None => self.exchange(stream, body),
            Some(tls) => {
                let name = ServerName::try_from(self.url.host.clone()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
                self.exchange(StreamOwned::new(connection, stream), body)
            }
        });
        match exchanged {
            Ok(answer) => judged(&answer),
            Err(cause) => {
                let late = matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                let why = if late { format!("no response within {:?}", self.within) } else { cause.to_string() };
                Sent::Busy { why: format!("{}: {why}", self.authority()), again_after: None }
            }
        }
    }

    /// Host and port as in a URL.
    fn authority(&self) -> String {
        format!("{}:{}", bracketed(&self.url.host), self.port)
    }

    fn connect(&self, clock: &Clock) -> io::Result<Timed> {
        let ends = clock.now() + self.within;
        let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in (self.url.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(clock, ends)?.min(CONNECTED_WITHIN)) {
                Ok(stream) => return Ok(Timed { stream, clock: *clock, ends }),
                Err(cause) => last = cause,
            }
        }
        Err(last)
    }

    fn exchange(&self, mut stream: impl Read + Write, body: &str) -> io::Result<Vec<u8>> {
        let (path, authority) = (&self.url.path, self.authority());
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(concat!("User-Agent: OTLP-Loadline/", env!("CARGO_PKG_VERSION"), "\r\n"));
        head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes())?;
        // A collector that rejects a request early may not read all of it.
        let written = stream.write_all(body.as_bytes()).and_then(|()| stream.flush());
        let mut answer = Vec::new();
        let mut part = [0; 1024];
        while answer.len() < ANSWER_BYTES_MAX && !is_whole(&answer) {
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&part[..read]),
                Err(_) if has_head(&answer) => break,
                Err(cause) => return Err(written.err().unwrap_or(cause)),
            }
        }
        if has_head(&answer) { Ok(answer) } else { Err(written.err().unwrap_or(ErrorKind::UnexpectedEof.into())) }
    }
}

/// A stream with a common deadline for reads and writes.
struct Timed {
    stream: TcpStream,
    clock: Clock,
    ends: Duration,
}

/// The time left, at least a millisecond.
fn left(clock: &Clock, ends: Duration) -> io::Result<Duration> {
    ends.checked_sub(clock.now())
        .filter(|left| left.as_millis() > 0)
        .ok_or_else(|| io::Error::from(ErrorKind::TimedOut))
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(&self.clock, self.ends)?))?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(&self.clock, self.ends)?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn has_head(answer: &[u8]) -> bool {
    answer.windows(4).any(|four| four == b"\r\n\r\n")
}

/// Whether a response with a stated length is complete.
fn is_whole(answer: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = parsed.parse(answer) else { return false };
    let length = of_header(parsed.headers, "content-length").and_then(|text| text.parse::<usize>().ok());
    parsed.code == Some(204) || length.is_some_and(|length| answer.len() - head >= length)
}

fn of_header<'a>(headers: &'a [httparse::Header<'_>], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(found.value).ok().map(str::trim)
}

/// The parsed parts of a response. `ExportMetricsServiceResponse` may contain
/// `{"partialSuccess":{"rejectedDataPoints":"3"}}`. A JSON status is `{"code":3,"message":"…"}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Said {
    partial_success: Partial,
    message: String,
}

/// Protobuf's JSON writes 64-bit numbers as strings, but readers accept numbers too.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Partial {
    rejected_data_points: serde_json::Value,
    error_message: String,
}

fn judged(answer: &[u8]) -> Sent {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = parsed.parse(answer) else {
        return Sent::Refused("its response is not HTTP".to_owned());
    };
    let (code, reason) = (parsed.code.unwrap_or_default(), shown(parsed.reason.unwrap_or_default()));
    // The text between the outer braces is JSON, chunked or not. Protobuf responses are ignored.
    let body = String::from_utf8_lossy(&answer[head..]);
    let json = body.find('{').zip(body.rfind('}')).and_then(|(from, to)| body.get(from..=to));
    let said: Said = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let told = if said.message.is_empty() { String::new() } else { format!(": {}", shown(&said.message)) };
    let why = format!("it responded with `{code} {reason}`{told}");
    match code {
        200..=299 => {
            let Partial { rejected_data_points: points, error_message } = said.partial_success;
            let rejected = points.as_u64().or_else(|| points.as_str()?.parse().ok()).unwrap_or(0);
            match (rejected, error_message.is_empty()) {
                (0, true) => Sent::Taken,
                (0, false) => Sent::Partly(shown(&error_message)),
                _ => Sent::Partly(format!("{rejected} data points were rejected: {}", shown(&error_message))),
            }
        }
        429 | 502 | 503 | 504 => {
            let after = of_header(parsed.headers, "retry-after").and_then(|text| text.parse().ok());
            Sent::Busy { why, again_after: after.map(Duration::from_secs) }
        }
        _ => Sent::Refused(why),
    }
}

/// Untrusted text, limited to one line and a maximum length.
fn shown(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(SHOWN_LETTERS).collect::<String>().trim().to_owned()
}

/// Attributes of every resource; `OTEL_SERVICE_NAME` overrides the name in the general variable.
fn resource(set: &dyn Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>> {
    let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default())?;
    if let Some(name) = set("OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), name));
    }
    Ok(resource)
}

/// Comma-separated `name=value` pairs as in OpenTelemetry's variables; values are percent-encoded if necessary (W3C
/// Baggage): `Authorization=Basic%20bWU6eA%3D%3D`.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let [key, value] = [key, value].map(|text| decoded(text.trim()));
        let plain = |text: &String| !text.chars().any(char::is_control);
        key.filter(|key| !key.is_empty() && plain(key)).zip(value.filter(plain))
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            pair(part).ok_or_else(|| {
                Error::request(format!("`{part}` in {name} is not a name and a value"))
                    .hint(format!("write `{name}=name=value,name=value`, and `%20` for a space"))
            })
        })
        .collect()
}

/// Decodes percent escapes such as `%20`; `None` if the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

fn header(variable: &str, key: String, value: String) -> Result<(String, String)> {
    let token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    if key.chars().all(token) {
        return Ok((key, value));
    }
    Err(Error::request(format!("`{key}` in {variable} is not a header name"))
        .hint(format!("write `{variable}=name=value,name=value`")))
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
