//! Metrics of watched JVMs: served from the last turn on request, and sent to a collector.

use crate::clock::Clock;
use crate::error::Result;
use crate::record::{WatchDocument, WatchEnds, WatchEvent, WatchedJvm};
use crate::report::Progress;
use crate::report::export::{Exposition, otlp, scrape};
use crate::watch::{Collector, Ends, HttpRequest, HttpResponse, HttpServer, ListenAddress, Pushing, ServerTls, top};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A turn takes a second or two. If none ends within this time or, if longer, three intervals, something is wrong.
const STUCK_AFTER: Duration = Duration::from_secs(60);
/// How long a client waits for the first turn to end. If it has not ended by then, the client gets no JVM metrics.
const FIRST_TURN_WITHIN: Duration = Duration::from_secs(1);

/// The receivers of metrics.
#[derive(Debug, clap::Args)]
pub(super) struct Receivers {
    /// Serve Prometheus metrics on `127.0.0.1:PORT`, `unix:PATH`, or the socket passed by `systemd`
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    listen: Option<ListenAddress>,
    /// TLS and client authentication for `--listen`: a web-config file in the Prometheus exporter format
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(super) web_config: Option<PathBuf>,
    /// Send metrics to an OpenTelemetry collector as OTLP/HTTP JSON [default: from the OTEL_* variables, else
    /// http://localhost:4318/v1/metrics]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    #[arg(conflicts_with = "once")]
    otlp: Option<String>,
}

/// The number of owners per JVM in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owners(usize);

impl FromStr for Owners {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("top:").and_then(|number| number.parse().ok());
        let most = number.filter(|most| (1..=20).contains(most));
        most.map(Self).ok_or_else(|| format!("`{text}` is not a number of owners; write `top:5`, at most `top:20`"))
    }
}

impl fmt::Display for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "top:{}", self.0)
    }
}

pub(super) struct Metrics {
    served: Option<Served>,
    push: Option<Push>,
    clock: Clock,
    owners: usize,
}

impl Metrics {
    /// Opens the receivers before the first turn.
    pub(super) fn open(
        receivers: &Receivers,
        Owners(owners): Owners,
        quiet: bool,
        tls: Option<Arc<ServerTls>>,
        clock: Clock,
        document: Arc<WatchDocument>,
    ) -> Result<Self> {
        let document = bounded(document, owners);
        let served = receivers.listen.as_ref().map(|place| Served::start(place, tls, document, clock)).transpose()?;
        if let Some(served) = &served {
            Progress::new(quiet).step(&format!("metrics at {}", served.server.at));
        }
        let push = receivers.otlp.as_deref().map(|url| Push::start(url, clock)).transpose()?;
        Ok(Self { served, push, clock, owners })
    }

    /// Receives a turn's results; returns messages about earlier ones.
    pub(super) fn take(
        &mut self,
        events: &[WatchEvent],
        document: impl FnOnce() -> Arc<WatchDocument>,
    ) -> Option<String> {
        let (now, owners) = (self.clock.now(), self.owners);
        let document = std::cell::LazyCell::new(|| bounded(document(), owners));
        if let Some(served) = &mut self.served {
            served.ends.take(events, now);
            let mut latest = served.latest.lock();
            (latest.document, latest.ends) = (Arc::clone(&document), served.ends.all());
            drop(latest);
            served.latest.first.notify_all();
        }
        self.push.as_mut()?.offer(|| Arc::clone(&document))
    }

    /// Records the end of a healthy turn.
    pub(super) fn turned(&self) {
        if let Some(served) = &self.served {
            served.latest.lock().turned = self.clock.now();
        }
    }

    /// Ends; returns messages about metrics that were never sent.
    pub(super) fn end(self) -> Vec<String> {
        self.push.map(|push| push.pushing.end()).into_iter().flatten().collect()
    }
}

fn bounded(mut document: Arc<WatchDocument>, owners: usize) -> Arc<WatchDocument> {
    let has = |jvm: &WatchedJvm| jvm.account.as_ref().map_or(0, |account| account.owners.len());
    if document.jvms.iter().any(|jvm| has(jvm) > owners) {
        let jvms = &mut Arc::make_mut(&mut document).jvms;
        for account in jvms.iter_mut().filter_map(|jvm| jvm.account.as_mut()) {
            account.owners = top(std::mem::take(&mut account.owners), owners);
        }
    }
    document
}

/// The results of the last turn.
struct Latest {
    document: Arc<WatchDocument>,
    ends: Vec<WatchEnds>,
    /// When the last turn ended, or else when the watch began.
    turned: Duration,
}

/// The latest results, shared with the threads that respond to requests.
struct SharedLatest {
    latest: Mutex<Latest>,
    first: Condvar,
}

impl SharedLatest {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The results of the last turn, waiting briefly for the first one.
    fn seen(&self) -> (Arc<WatchDocument>, Vec<WatchEnds>) {
        let waited = self.first.wait_timeout_while(self.lock(), FIRST_TURN_WITHIN, |latest| latest.document.turns == 0);
        let latest = waited.unwrap_or_else(PoisonError::into_inner).0;
        (Arc::clone(&latest.document), latest.ends.clone())
    }

    /// Whether turns are still completing, for a supervisor that restarts the watch.
    fn health(&self, now: Duration) -> HttpResponse {
        let latest = self.lock();
        let within = STUCK_AFTER.max(3 * Duration::from_millis(latest.document.every_ms));
        let since = now.saturating_sub(latest.turned);
        let is_well = since < within;
        let (status, word) = if is_well { ("200 OK", "ok") } else { ("503 Service Unavailable", "stuck") };
        let body =
            format!("{word}: the last of {} sampling rounds ended {} s ago\n", latest.document.turns, since.as_secs());
        HttpResponse { status, content_type: "text/plain; charset=utf-8", body }
    }
}

struct Served {
    server: HttpServer,
    latest: Arc<SharedLatest>,
    ends: Ends,
}

impl Served {
    fn start(
        place: &ListenAddress,
        tls: Option<Arc<ServerTls>>,
        document: Arc<WatchDocument>,
        clock: Clock,
    ) -> Result<Self> {
        let latest = Mutex::new(Latest { document, ends: Vec::new(), turned: clock.now() });
        let latest = Arc::new(SharedLatest { latest, first: Condvar::new() });
        let served = Arc::clone(&latest);
        let server = HttpServer::start(place, tls, clock, move |asked: &HttpRequest| {
            if asked.path == "/healthz" {
                return Some(served.health(clock.now()));
            }
            let text = Exposition::of(&asked.accept);
            (asked.path == "/metrics").then(|| {
                let (document, ends) = served.seen();
                HttpResponse {
                    status: "200 OK",
                    content_type: text.content_type(),
                    body: scrape(&document, &ends, text),
                }
            })
        })?;
        Ok(Self { server, latest, ends: Ends::default() })
    }
}

/// Metrics to send to a collector.
struct Push {
    pushing: Pushing,
    resource: Vec<(String, String)>,
    clock: Clock,
}

impl Push {
    fn start(typed: &str, clock: Clock) -> Result<Self> {
        let collector = Collector::of(typed, |name| std::env::var(name).ok())?;
        let mut resource = collector.resource.clone();
        if resource.iter().all(|(key, _)| key != "host.name") {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            resource.push(("host.name".to_owned(), host));
        }
        Ok(Self { pushing: Pushing::start(collector, clock)?, resource, clock })
    }

    fn offer(&mut self, document: impl FnOnce() -> Arc<WatchDocument>) -> Option<String> {
        let at_unix_ns = self.clock.since_epoch(self.clock.now_ns()).as_nanos();
        let resource = &self.resource;
        self.pushing.offer(|| otlp(&document(), resource, at_unix_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(turns: u64) -> SharedLatest {
        let document = Arc::new(WatchDocument { every_ms: 10_000, turns, ..WatchDocument::default() });
        let latest = Latest { document, ends: Vec::new(), turned: Duration::from_secs(100) };
        SharedLatest { latest: Mutex::new(latest), first: Condvar::new() }
    }

    #[test]
    fn requests_before_the_first_turn_are_answered() {
        assert_eq!(shared(0).seen().0.turns, 0);
        let shared = shared(1);
        assert_eq!(shared.seen().0.turns, 1);
    }

    #[test]
    fn a_watch_with_an_overdue_turn_is_unhealthy() {
        let shared = shared(7);
        let status = |at_s| shared.health(Duration::from_secs(at_s)).status;
        assert_eq!([status(100), status(159), status(160)], ["200 OK", "200 OK", "503 Service Unavailable"]);
        Arc::make_mut(&mut shared.lock().document).every_ms = 600_000;
        assert_eq!([status(1899), status(1900)], ["200 OK", "503 Service Unavailable"], "overdue after 1,900 s");
        shared.lock().turned = Duration::from_secs(1900);
        assert!(shared.health(Duration::from_secs(1901)).body.contains("the last of 7 sampling rounds ended 1 s ago"));
    }
}
