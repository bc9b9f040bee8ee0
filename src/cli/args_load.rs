//! What was typed about a load: the options that every verb with a load shares, and the verb `load`.

use crate::scenario::{Condition, Cpus, Method, Rate};
use crate::units::{Bytes, Span, parse_count};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

/// `loadline load`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Load {
    /// Where the load goes: `http://HOST[:PORT][/PATH]`, or `https://`
    #[arg(value_name = "URL")]
    pub(super) url: String,
    #[command(flatten)]
    pub(super) load: LoadOptions,
    #[command(flatten)]
    pub(super) alone: AloneOptions,
    #[command(flatten)]
    pub(super) files: FileOptions,
}

const EXAMPLES: &str = "\
Examples:
  loadline load http://127.0.0.1:8080/hello
  loadline load http://127.0.0.1:8080/hello --rate 500 -d 30s --require 'p99<50ms' --strict
  loadline load http://127.0.0.1:8080/ --plan spike.yaml --hlog spike.hlog --csv spike.csv";

/// What a load is; the same words mean the same wherever they appear. They change what a file says.
#[derive(Debug, PartialEq, Parser)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadOptions {
    /// Connections kept busy [default: 25]
    #[arg(long, short, value_name = "N")]
    pub(super) connections: Option<u32>,
    /// In an open model, open as many connections while requests wait
    #[arg(long, value_name = "N")]
    pub(super) connections_max: Option<u32>,
    /// Requests to send in the measured phase
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count, conflicts_with = "duration")]
    pub(super) requests: Option<u64>,
    /// How long the measured phase lasts [default: 10s]
    #[arg(long, short, value_name = "TIME")]
    pub(super) duration: Option<Span>,
    /// Open model: requests per second, `500`, a ramp `100..1000` or a staircase of ten steps `100..1000:10`
    #[arg(long, value_name = "RATE", conflicts_with_all = ["schedule", "think"], allow_hyphen_values = true)]
    pub(super) rate: Option<Rate>,
    /// Open model: start requests at random within the rate (a Poisson process)
    #[arg(long, conflicts_with = "schedule")]
    pub(super) poisson: bool,
    /// Open model: a file with a start on each line, in seconds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "duration", "think"])]
    pub(super) schedule: Option<PathBuf>,
    /// Closed model: how long a connection waits between an answer and its next request
    #[arg(long, value_name = "TIME")]
    pub(super) think: Option<Span>,
    /// Work before the measured phase: `same`, a count, a time, or `none` [default: same; with `load` none]
    #[arg(long, value_name = "WORK")]
    pub(super) warmup: Option<Warmup>,
    /// Open a connection for every request
    #[arg(long)]
    pub(super) close: bool,
    /// HTTP/2: over TLS by ALPN, in clear with prior knowledge
    #[arg(long)]
    pub(super) http2: bool,
    /// Requests at a time on an HTTP/2 connection [default: 1]
    #[arg(long, value_name = "N", requires = "http2")]
    pub(super) streams: Option<u32>,
    /// GET, HEAD, PUT, POST, PATCH, DELETE or OPTIONS [default: GET]
    #[arg(long, value_name = "METHOD")]
    pub(super) method: Option<Method>,
    /// Send this file as the body
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body_size", "body_text"])]
    pub(super) body: Option<PathBuf>,
    /// Send a body of this size
    #[arg(long, value_name = "SIZE", conflicts_with = "body_text")]
    pub(super) body_size: Option<Bytes>,
    /// Send this text as the body; `{seq}` and `{rand LOW HIGH}` stand for numbers, as in paths and headers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) body_text: Option<String>,
    /// What a body of a size consists of: random or zero [default: random]
    #[arg(long, value_name = "WHAT", requires = "body_size", hide_possible_values = true)]
    pub(super) body_fill: Option<Fill>,
    /// Wait for `100 Continue` before the body is sent, for a second at most
    #[arg(long)]
    pub(super) expect_continue: bool,
    /// Add a header; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    pub(super) header: Vec<(String, String)>,
    /// Send name and password (Basic authentication)
    #[arg(long, short, value_name = "NAME:PASSWORD", value_parser = basic)]
    pub(super) user: Option<String>,
    /// The one status that is a correct answer [default: any of 200-299]
    #[arg(long, value_name = "STATUS")]
    pub(super) expect_status: Option<u16>,
    /// A correct answer has a body of exactly this size
    #[arg(long, value_name = "SIZE")]
    pub(super) expect_length: Option<Bytes>,
    /// A correct answer has this header, with a value exactly that one; may be repeated
    #[arg(long, value_name = "NAME[:VALUE]", value_parser = expected_header)]
    pub(super) expect_header: Vec<(String, Option<String>)>,
    /// The body of a correct answer contains this text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) expect_body: Option<String>,
    /// How long one request may take [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<Span>,
    /// How long after the planned end answers are waited for [default: as long as the timeout]
    #[arg(long, value_name = "TIME")]
    pub(super) drain: Option<Span>,
    /// Slow senders: bytes per second sent on each connection
    #[arg(long, value_name = "SIZE")]
    pub(super) send_rate: Option<Bytes>,
    /// Slow readers: bytes per second read from each connection
    #[arg(long, value_name = "SIZE")]
    pub(super) receive_rate: Option<Bytes>,
    /// End a phase early when this holds over a second: `failed>1%`, `p99>2s`; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub(super) stop_when: Vec<Condition>,
    /// The Unix socket of the server; host and path of the URL are still sent
    #[arg(long, value_name = "PATH")]
    pub(super) unix_socket: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of the machine
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(super) ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub(super) insecure: bool,
    /// The certificate (PEM) shown to a server that asks for one
    #[arg(long, value_name = "FILE")]
    pub(super) cert: Option<PathBuf>,
    /// Its key (PEM) [default: in the file of the certificate]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,
    /// CPUs of the load engine; in a trial, of the rest of Loadline too
    #[arg(long, value_name = "CPUS")]
    pub(super) load_cpus: Option<Cpus>,
    /// Seeds everything drawn at random [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
}

/// What only the verb `load` takes.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Load alone")]
pub(super) struct AloneOptions {
    /// Phases from the `load:` of a file, such as a scenario; options and a path in the URL change them
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,
    /// Threads of the load engine [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: Option<u32>,
    /// Connect to this address instead of the URL's, which is still sent as `Host`
    #[arg(long, value_name = "HOST:PORT", value_parser = endpoint, conflicts_with = "unix_socket")]
    pub(super) connect_to: Option<(String, u16)>,
    /// What must hold, or the exit code is 1: `p99<50ms`, `failed<0.1%`, `rate>=99%`; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub(super) require: Vec<Condition>,
    /// Exit code 1 where the offered rate is missed by more than 1 % or the generator may be the limit
    #[arg(long)]
    pub(super) strict: bool,
}

/// What `load` leaves behind.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct FileOptions {
    /// Print a document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Histograms of every second, as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub(super) hlog: Option<PathBuf>,
    /// The percentile distribution, as HdrHistogram plots it
    #[arg(long, value_name = "FILE")]
    pub(super) hgrm: Option<PathBuf>,
    /// A row for each second
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// A row for each request, or for a fair sample of them
    #[arg(long, value_name = "FILE")]
    pub(super) rows: Option<PathBuf>,
    /// The same in the columns of `ab -g`
    #[arg(long, value_name = "FILE")]
    pub(super) gnuplot: Option<PathBuf>,
    /// At most so many rows of each phase [default: 100k]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(super) rows_max: Option<u64>,
}

/// What a generated body consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Fill {
    Random,
    Zero,
}

/// Work before the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmup {
    Same,
    None,
    Requests(u64),
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

/// `host:80`, `[::1]:80`.
fn endpoint(text: &str) -> Result<(String, u16), String> {
    let refuse = || format!("`{text}` is no address; write it as `127.0.0.1:8080`");
    let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match port.parse() {
        Ok(port) if port > 0 && !host.is_empty() => Ok((host.to_owned(), port)),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_takes_words_counts_and_times() {
        assert_eq!("same".parse(), Ok(Warmup::Same));
        assert_eq!("50k".parse(), Ok(Warmup::Requests(50_000)));
        assert_eq!("30s".parse(), Ok(Warmup::Elapsed(Span::seconds(30))));
        assert!("some".parse::<Warmup>().is_err());
    }

    #[test]
    fn endpoints_and_passwords() {
        assert_eq!(endpoint("[::1]:80"), Ok(("::1".to_owned(), 80)));
        assert!(endpoint("host").is_err() && endpoint("host:0").is_err() && endpoint(":80").is_err());
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
