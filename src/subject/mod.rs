//! Starts a JVM, waits until it is ready, ends it, says why it ended; the only place that starts processes.
