//! Metrics of what is watched: served from the last turn to whoever asks, and sent to a collector.

use super::args_watch::Watch;
use crate::clock::Clock;
use crate::error::Result;
use crate::record::{WatchDocument, WatchEnds, WatchEvent, WatchedJvm};
use crate::report::Progress;
use crate::report::export::{Exposition, otlp, scrape};
use crate::watch::{Answer, Asked, Collector, Ends, Listening, Pushing, Server, ServerTls, top};
use std::sync::{Arc, Mutex, PoisonError};

/// Who gets metrics.
pub(super) struct Metrics {
    served: Option<Served>,
    push: Option<Push>,
    clock: Clock,
    /// How many owners of the last account they have.
    owners: usize,
}

impl Metrics {
    /// Where the verb says, with what the first turn saw.
    pub(super) fn open(
        verb: &Watch,
        tls: Option<Arc<ServerTls>>,
        clock: Clock,
        document: Arc<WatchDocument>,
    ) -> Result<Self> {
        let owners = verb.owners.0;
        let document = bounded(document, owners);
        let served = verb.listen.as_ref().map(|place| Served::start(place, tls, document, clock)).transpose()?;
        if let Some(served) = &served {
            Progress::new(verb.quiet).step(&format!("metrics at {}", served.server.at));
        }
        let push = verb.otlp.as_deref().map(|url| Push::start(url, clock)).transpose()?;
        Ok(Self { served, push, clock, owners })
    }

    /// Takes a turn; what must be known of those before it, where there is something.
    pub(super) fn take(
        &mut self,
        events: &[WatchEvent],
        document: impl FnOnce() -> Arc<WatchDocument>,
    ) -> Option<String> {
        let (now, owners) = (self.clock.now(), self.owners);
        let document = std::cell::LazyCell::new(|| bounded(document(), owners));
        if let Some(served) = &mut self.served {
            served.ends.take(events, now);
            let latest = Latest { document: Arc::clone(&document), ends: served.ends.all() };
            *served.latest.lock().unwrap_or_else(PoisonError::into_inner) = latest;
        }
        self.push.as_mut()?.offer(|| Arc::clone(&document))
    }

    /// Ends; what was never sent is said.
    pub(super) fn end(self) -> Vec<String> {
        self.push.map(|push| push.pushing.end()).into_iter().flatten().collect()
    }
}

/// The document with as many owners of the last account as metrics may have.
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

/// What the last turn saw.
#[derive(Clone)]
struct Latest {
    document: Arc<WatchDocument>,
    ends: Vec<WatchEnds>,
}

/// A server, and what it answers from.
struct Served {
    server: Server,
    latest: Arc<Mutex<Latest>>,
    ends: Ends,
}

impl Served {
    fn start(
        place: &Listening,
        tls: Option<Arc<ServerTls>>,
        document: Arc<WatchDocument>,
        clock: Clock,
    ) -> Result<Self> {
        let latest = Arc::new(Mutex::new(Latest { document, ends: Vec::new() }));
        let served = Arc::clone(&latest);
        let server = Server::start(place, tls, clock, move |asked: &Asked| {
            let latest = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let text = Exposition::of(&asked.accept);
            (asked.path == "/metrics").then(|| Answer {
                status: "200 OK",
                content_type: text.content_type(),
                body: scrape(&latest.document, &latest.ends, text),
            })
        })?;
        Ok(Self { server, latest, ends: Ends::default() })
    }
}

/// Metrics on their way to a collector.
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
