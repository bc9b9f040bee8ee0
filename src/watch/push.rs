//! Metrics sent to a collector of OpenTelemetry: OTLP over HTTP with JSON, by a thread of its own, so that a collector
//! that is slow or gone delays no sample. A request that may be sent again is, until a newer one takes its place; what
//! was lost is counted and said.

use super::collector::{Collector, Sent};
use crate::clock::Clock;
use crate::error::Result;
use rustls::ClientConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The first export comes after this time at the latest, so that what is wrong is soon seen.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// Before a request is sent again, where the collector names no time; doubled each time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The most of both.
const AGAIN_WITHIN: Duration = Duration::from_secs(300);
/// Time that a request under way at the end has left.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Sends what it is given, one after another.
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

/// The state that both threads share.
#[derive(Debug, Default)]
struct PushState {
    ends: AtomicBool,
    /// Exports that no collector took, since that was told last.
    lost: AtomicU64,
    /// Exports given to the thread and not yet taken or lost.
    open: AtomicU64,
}

impl PushState {
    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Pushing {
    /// Begins to send there.
    ///
    /// # Errors
    /// `Machine` where TLS is asked for and no certificate is trusted here.
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

    /// Sends a body where it is time for one; returns what is to be told of the earlier ones, each thing once.
    pub fn offer(&mut self, body: impl FnOnce() -> String) -> Option<String> {
        let now = self.clock.now();
        if now >= self.due {
            self.due = now + self.every;
            self.shared.open.fetch_add(1, Ordering::Relaxed);
            // One is under way and one waits: the collector hangs.
            if self.bodies.as_ref().is_some_and(|bodies| bodies.try_send(body()).is_err()) {
                self.shared.open.fetch_sub(1, Ordering::Relaxed);
                self.shared.lose();
            }
        }
        self.says.try_recv().ok()
    }

    /// Lets what is under way end, for three seconds at most; returns what is still to be told.
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

/// The thread that sends.
struct Sending {
    collector: Collector,
    tls: Option<Arc<ClientConfig>>,
    clock: Clock,
    bodies: Receiver<String>,
    tells: Sender<String>,
    shared: Arc<PushState>,
    /// Whether sending fails; a failure is reported once until it works again.
    fails: bool,
    /// The collector's message about points that it did not take, as reported last.
    partly: Option<String>,
}

impl Sending {
    fn go_on(&mut self) {
        while let Ok(body) = self.bodies.recv() {
            self.deliver(body);
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends it until it is taken, refused, or a newer one is there.
    fn deliver(&mut self, mut body: String) {
        let mut after = AGAIN_AFTER;
        loop {
            match self.collector.send(&body, self.tls.as_ref(), &self.clock) {
                Sent::Taken => return self.works(None),
                Sent::Partly(what) => return self.works(Some(what)),
                Sent::Refused(why) => {
                    self.tell_failure(&format!("{why}; it is not sent again"));
                    return self.shared.lose();
                }
                Sent::Busy { why, again_after } => {
                    self.tell_failure(&format!("{why}; it is tried again"));
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

    /// It was taken, all of it or `partly`.
    fn works(&mut self, partly: Option<String>) {
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        if std::mem::take(&mut self.fails) {
            self.tell(format!("metrics are sent again; {} lost", exports(lost)));
        } else if lost > 0 {
            self.tell(format!("the collector is slow: {} lost", exports(lost)));
        }
        if let Some(what) = partly.as_ref().filter(|what| self.partly.as_ref() != Some(what)) {
            self.tell(format!("not all metrics were taken: {what}"));
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
