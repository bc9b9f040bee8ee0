//! Threads at one time, individually and by pool.

use serde::{Deserialize, Serialize};

/// A live thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadRecord {
    /// Thread ID, as seen by Loadline.
    pub tid: u32,
    /// Name, which the kernel truncates to 15 bytes.
    pub name: String,
    /// Resident size of its stack; `null` if the thread was running at the time.
    pub stack_bytes: Option<u64>,
    /// CPU time since it started.
    pub cpu_s: f64,
    /// Bytes allocated in the Java heap since it started; `null` for a non-Java thread or if unreadable.
    pub allocated_bytes: Option<u64>,
}

/// Threads whose names differ only in numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadPoolRecord {
    /// Thread name with `*` for varying numbers; the kernel truncates names to 15 bytes.
    pub name: String,
    /// Number of live threads.
    pub threads: u64,
    /// Resident size of their stacks, excluding threads that were running at the time.
    pub stack_bytes: u64,
    /// CPU time of its live threads so far.
    pub cpu_s: f64,
    /// Bytes that its live threads have allocated in the Java heap so far; `null` for non-Java threads or if
    /// unreadable.
    pub allocated_bytes: Option<u64>,
}

impl ThreadPoolRecord {
    /// Adds another pool's threads; a value known for only one pool is used as the sum.
    pub fn add(&mut self, more: &Self) {
        self.threads = self.threads.saturating_add(more.threads);
        self.stack_bytes = self.stack_bytes.saturating_add(more.stack_bytes);
        self.cpu_s += more.cpu_s;
        if let Some(bytes) = more.allocated_bytes {
            self.allocated_bytes = Some(self.allocated_bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
}
