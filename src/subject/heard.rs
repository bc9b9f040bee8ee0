//! The output of a program. One thread reads it, so that the program never waits for its reader. A bounded copy goes to
//! a file, and all observers see the part kept so far.

use super::log_file::LogFile;
use crate::clock::Clock;
use crate::error::{Error, Result};
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The size of a pipe: one read empties it.
const READ_BYTES: usize = 64 << 10;
/// How long the end of the output may take to arrive after the last process ended.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// The part of an output that is kept.
pub(super) trait Keeps: Send + 'static {
    /// Takes in what came at this moment of the clock.
    fn take(&mut self, bytes: &[u8], at: Duration);

    /// Nothing comes any more.
    fn end(&mut self, _at: Duration) {}
}

/// An output so far.
#[derive(Debug, Default)]
pub(super) struct Heard<K> {
    state: Mutex<HeardState<K>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct HeardState<K> {
    pub kept: K,
    /// Why the log file is not complete, if it is not for another reason than its bound.
    pub log_trouble: Option<Error>,
    over: bool,
}

impl<K> Heard<K> {
    pub(super) fn lock(&self) -> MutexGuard<'_, HeardState<K>> {
        // The reader leaves no change half done that matters here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything that was written has been read. False when the time is over first.
    pub(super) fn drain(&self) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), DRAIN_WITHIN, |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }
}

impl<K: Keeps> Heard<K> {
    /// Starts to read, with a copy in `log`.
    ///
    /// # Errors
    /// `Machine` where there can be no thread.
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

    /// Takes in the output as soon as it comes, until no process can write any more.
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
