//! Reads a program's output on a thread, so that the program never blocks on it. A bounded copy goes to a file;
//! observers see the part kept in memory.

use super::log_file::LogFile;
use crate::clock::Clock;
use crate::error::{Error, Result};
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The size of a pipe, so one read empties it.
const READ_BYTES: usize = 64 << 10;
/// How long remaining output may take to arrive after the last process ended.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

pub(super) trait Keeps: Send + 'static {
    /// Adds output that arrived at this time on the clock.
    fn take(&mut self, bytes: &[u8], at: Duration);

    fn end(&mut self, _at: Duration) {}
}

/// The output so far.
#[derive(Debug, Default)]
pub(super) struct Heard<K> {
    state: Mutex<HeardState<K>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct HeardState<K> {
    pub kept: K,
    /// Why the log file is incomplete, apart from its size limit.
    pub log_trouble: Option<Error>,
    over: bool,
}

impl<K> Heard<K> {
    pub(super) fn lock(&self) -> MutexGuard<'_, HeardState<K>> {
        // A panicking reader leaves no inconsistent state that matters here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all output has been read. Returns false on timeout.
    pub(super) fn drain(&self) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), DRAIN_WITHIN, |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }
}

impl<K: Keeps> Heard<K> {
    /// Starts reading, with a copy in `log`. Errors: `Machine` if no thread can be created.
    pub(super) fn begin(
        from: impl Read + Send + 'static,
        kept: K,
        log: Option<LogFile>,
        clock: Clock,
    ) -> Result<Arc<Self>> {
        let state = Mutex::new(HeardState { kept, log_trouble: None, over: false });
        let heard = Arc::new(Self { state, changed: Condvar::new() });
        let own = Arc::clone(&heard);
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(move || own.hear(from, log, clock));
        thread.map_err(|cause| Error::machine(format!("cannot start a thread: {cause}")))?;
        Ok(heard)
    }

    /// Reads output as it arrives, until no process can write to it.
    fn hear(&self, mut from: impl Read, mut log: Option<LogFile>, clock: Clock) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let bytes = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => &buffer[..n],
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let at = clock.now();
            let trouble = log.as_mut().and_then(|log| log.write(bytes).err());
            let mut state = self.lock();
            state.log_trouble = state.log_trouble.take().or(trouble);
            state.kept.take(bytes, at);
        }
        let mut state = self.lock();
        state.kept.end(clock.now());
        state.over = true;
        drop(state);
        self.changed.notify_all();
    }
}
