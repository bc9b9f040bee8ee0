//! Arguments for watching: the verb `watch`.

use super::args::pid;
use crate::units::{Bytes, Span};
use crate::watch::Listening;
use clap::{ArgGroup, Parser};
use std::path::PathBuf;

/// `loadline watch`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
#[command(group = ArgGroup::new("which").required(true).multiple(false).args(WHICH))]
pub(super) struct Watch {
    /// Process ids of JVMs
    #[arg(value_name = "PID", value_parser = pid)]
    pub(super) pids: Vec<u32>,
    /// All JVMs of this machine, those of containers too, as they come and go
    #[arg(long)]
    pub(super) all: bool,
    /// The JVMs in this memory cgroup, by its path below the mount, and in those below it
    #[arg(long, value_name = "PATH")]
    pub(super) cgroup: Option<String>,
    /// The JVMs of this service of systemd
    #[arg(long, value_name = "NAME")]
    pub(super) unit: Option<String>,
    /// Between two samples; every window of the verdict is in proportion
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(super) every: Span,
    /// Folder of histories and accounts [default: /var/lib/loadline for root, else loadline in the folder for state of
    /// the user]
    #[arg(long, value_name = "DIR")]
    pub(super) history: Option<PathBuf>,
    /// Disk space for all of it: the oldest ended lives are removed
    #[arg(long, value_name = "SIZE", default_value = "256m")]
    pub(super) keep: Bytes,
    /// When a JVM is weighed, which holds its threads for milliseconds, and for a tenth of a second with 1,000 of them:
    /// `never`, `on-growth`, `at:75%`, `every:6h`; may be repeated [default: at:66%, at:75% and at:90% of its limit]
    #[arg(long, value_name = "WHEN")]
    pub(super) account: Vec<Weighings>,
    /// Ask each JVM once in its life, by its attach socket, what no outside can tell: Native Memory Tracking where it
    /// is on, and where it keeps what. Nothing is held; a JVM that does not answer is left alone
    #[arg(long, value_name = "WHEN", default_value = "never", hide_default_value = true)]
    pub(super) attach: Attach,
    /// How many owners of the last account metrics have of a JVM, the largest: `top:5`; the rest of them are `other`.
    /// At most 20
    #[arg(long, value_name = "top:N", default_value = "top:5")]
    pub(super) owners: Owners,
    /// Judge what is kept of each, print it, and end. Exit code 1: one of them grows
    #[arg(long)]
    pub(super) once: bool,
    /// Say how a JVM that was watched ended, what it held last, what grew before and what it would have needed
    #[arg(long, value_name = "PID | FILE", conflicts_with_all = ["once", "account", "listen", "otlp", "duration"])]
    pub(super) post_mortem: Option<String>,
    /// Write what `--post-mortem` says to an HTML file, too
    #[arg(long, value_name = "FILE", requires = "post_mortem")]
    pub(super) html: Option<PathBuf>,
    /// Serve metrics to Prometheus at `127.0.0.1:PORT`, `unix:PATH`, or `systemd`, the socket that it hands over
    #[arg(long, value_name = "WHERE", conflicts_with = "once")]
    pub(super) listen: Option<Listening>,
    /// Certificate and key of `--listen`, and who may ask, by a web-config file as Prometheus' exporters have it
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(super) web_config: Option<PathBuf>,
    /// Send metrics to a collector of OpenTelemetry over HTTP, as JSON [default: by its OTEL_ variables, else
    /// http://localhost:4318/v1/metrics]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    #[arg(conflicts_with = "once")]
    pub(super) otlp: Option<String>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", conflicts_with = "once")]
    pub(super) duration: Option<Span>,
    /// Print a document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// No talk on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// Options that name the JVMs; one of them.
const WHICH: [&str; 5] = ["pids", "all", "cgroup", "unit", "post_mortem"];

const EXAMPLES: &str = "\
Examples:
  loadline watch --all
  loadline watch 4711
  loadline watch --unit shop.service --account on-growth
  loadline watch --all --once";

/// When a JVM is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighings {
    Never,
    OnGrowth,
    At(u64),
    Every(Span),
}

impl std::str::FromStr for Weighings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse =
            || format!("`{text}` is no time for an account; write `never`, `on-growth`, `at:75%` or `every:6h`");
        let percent = |text: &str| text.strip_suffix('%')?.parse().ok().filter(|percent| (1..=100).contains(percent));
        match text.split_once(':') {
            None if text == "never" => Ok(Self::Never),
            None if text == "on-growth" => Ok(Self::OnGrowth),
            Some(("at", share)) => percent(share).map(Self::At).ok_or_else(refuse),
            Some(("every", span)) => span.parse().map(Self::Every).map_err(|_| refuse()),
            _ => Err(refuse()),
        }
    }
}

/// Whether JVMs are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Attach {
    Never,
    Once,
}

/// How many owners of a JVM metrics have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owners(pub(super) usize);

impl std::str::FromStr for Owners {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("top:").and_then(|number| number.parse().ok());
        let most = number.filter(|most| (1..=20).contains(most));
        most.map(Self).ok_or_else(|| format!("`{text}` says no number of owners; write `top:5`, at most `top:20`"))
    }
}

impl std::fmt::Display for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "top:{}", self.0)
    }
}
