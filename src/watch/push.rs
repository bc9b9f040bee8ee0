//! Sends metrics to an OpenTelemetry collector: OTLP over HTTP with JSON, on its own thread, so that a slow or missing
//! collector delays no sample. Retryable requests are retried until a newer one replaces them; losses are counted and
//! reported.

use super::collector::{Collector, Sent};
use crate::clock::Clock;
use crate::error::Result;
use rustls::ClientConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The first export follows within this time, so that errors show early.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// The delay before a retry unless the collector requests one; doubles each time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The maximum delay before a retry, even if the collector requests a longer one.
const AGAIN_WITHIN: Duration = Duration::from_secs(300);
/// The time for a running request at the end.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Sends exports in order.
#[derive(Debug)]
pub struct Pushing {
    bodies: Option<SyncSender<String>>,
    says: Receiver<String>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<PushState>,
    clock: Clock,
    every: Duration,
    due: Duration,
}

#[derive(Debug, Default)]
struct PushState {
    ends: AtomicBool,
    /// Lost exports since the last report.
    lost: AtomicU64,
    /// Exports passed to the thread and not yet accepted or lost.
    open: AtomicU64,
}

impl PushState {
    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Pushing {
    /// Starts the thread. Errors: `Machine` if TLS is requested and there are no trusted certificates.
    pub fn start(collector: Collector, clock: Clock) -> Result<Self> {
        let tls = collector.trusted()?;
        let (to, bodies) = sync_channel::<String>(1);
        let (tells, says) = channel();
        let (every, shared) = (collector.every, Arc::new(PushState::default()));
        let mut sending =
            Sending { collector, tls, clock, bodies, tells, shared: Arc::clone(&shared), fails: false, partly: None };
        let thread = std::thread::spawn(move || sending.go_on());
        let due = clock.now() + every.min(FIRST_WITHIN);
        Ok(Self { bodies: Some(to), says, thread: Some(thread), shared, clock, every, due })
    }

    /// Sends a body if one is due; returns new reports about earlier ones.
    pub fn offer(&mut self, body: impl FnOnce() -> String) -> Option<String> {
        let now = self.clock.now();
        if now >= self.due {
            self.due = now + self.every;
            self.shared.open.fetch_add(1, Ordering::Relaxed);
            // One is being sent and one waits: the collector hangs.
            if self.bodies.as_ref().is_some_and(|bodies| bodies.try_send(body()).is_err()) {
                self.shared.open.fetch_sub(1, Ordering::Relaxed);
                self.shared.lose();
            }
        }
        self.says.try_recv().ok()
    }

    /// Waits up to three seconds for the current export; returns the remaining reports.
    pub fn end(mut self) -> Vec<String> {
        self.bodies = None;
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            self.clock.wait_until(ENDS_WITHIN, LOOK_EVERY, || thread.is_finished());
        }
        let mut told: Vec<String> = self.says.try_iter().collect();
        let lost = self.shared.lost.load(Ordering::Relaxed) + self.shared.open.load(Ordering::Relaxed);
        if lost > 0 {
            told.push(format!("{} lost", exports(lost)));
        }
        told
    }
}

struct Sending {
    collector: Collector,
    tls: Option<Arc<ClientConfig>>,
    clock: Clock,
    bodies: Receiver<String>,
    tells: Sender<String>,
    shared: Arc<PushState>,
    /// Whether sending is failing; reported once per outage.
    fails: bool,
    /// The last reported message about rejected points.
    partly: Option<String>,
}

impl Sending {
    fn go_on(&mut self) {
        while let Ok(body) = self.bodies.recv() {
            self.deliver(body);
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Retries until the body is accepted, rejected, or replaced by a newer one.
    fn deliver(&mut self, mut body: String) {
        let mut after = AGAIN_AFTER;
        loop {
            match self.collector.send(&body, self.tls.as_ref(), &self.clock) {
                Sent::Taken => return self.works(None),
                Sent::Partly(what) => return self.works(Some(what)),
                Sent::Refused(why) => {
                    self.tell_failure(&format!("{why}; it will not be retried"));
                    return self.shared.lose();
                }
                Sent::Busy { why, again_after } => {
                    self.tell_failure(&format!("{why}; it will be retried"));
                    self.wait(again_after.unwrap_or(after).min(AGAIN_WITHIN));
                    after = (after * 2).min(AGAIN_WITHIN);
                }
            }
            if self.shared.ends.load(Ordering::Relaxed) {
                return self.shared.lose();
            }
            match self.bodies.try_recv() {
                Ok(newer) => {
                    self.shared.open.fetch_sub(1, Ordering::Relaxed);
                    self.shared.lose();
                    body = newer;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return self.shared.lose(),
            }
        }
    }

    fn wait(&self, span: Duration) {
        let until = self.clock.now() + span;
        while self.clock.now() < until && !self.shared.ends.load(Ordering::Relaxed) {
            self.clock.park(until.saturating_sub(self.clock.now()));
        }
    }

    /// Records success, full or `partly`.
    fn works(&mut self, partly: Option<String>) {
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        if std::mem::take(&mut self.fails) {
            self.tell(format!("sending metrics again; {} lost", exports(lost)));
        } else if lost > 0 {
            self.tell(format!("the collector is slow: {} lost", exports(lost)));
        }
        if let Some(what) = partly.as_ref().filter(|what| self.partly.as_ref() != Some(what)) {
            self.tell(format!("the collector rejected some metrics: {what}"));
        }
        self.partly = partly;
    }

    fn tell_failure(&mut self, why: &str) {
        if !std::mem::replace(&mut self.fails, true) {
            self.tell(format!("metrics could not be sent: {why}"));
        }
    }

    fn tell(&self, what: String) {
        // At the end, the receiver may be gone.
        let _ = self.tells.send(what);
    }
}

/// `1 export was`, `3 exports were`.
fn exports(count: u64) -> String {
    if count == 1 { "1 export was".to_owned() } else { format!("{count} exports were") }
}

#[cfg(test)]
#[path = "push_tests.rs"]
mod tests;
