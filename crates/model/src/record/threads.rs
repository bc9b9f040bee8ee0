//! Threads at a moment, one by one and by pool.

use serde::{Deserialize, Serialize};

/// A live thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadRecord {
    /// Its id, as seen by Loadline.
    pub tid: u32,
    /// Its name, which the kernel truncates to 15 bytes.
    pub name: String,
    /// Resident pages of its stack; `null` if the thread was running when it was examined.
    pub stack_bytes: Option<u64>,
    /// CPU time that it has used since it started.
    pub cpu_s: f64,
    /// Bytes that it has allocated in the Java heap since it started; `null` if it is not a Java thread or they could
    /// not be read.
    pub allocated_bytes: Option<u64>,
}

/// Threads whose names differ only in numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadPoolRecord {
    /// Their name with `*` for the numbers that differ; the kernel truncates names to 15 bytes.
    pub name: String,
    /// Number of live threads.
    pub threads: u64,
    /// Resident pages of their stacks, excluding threads that were running when they were examined.
    pub stack_bytes: u64,
    /// CPU time that the live threads have used so far.
    pub cpu_s: f64,
    /// Bytes that the live threads have allocated in the Java heap so far; `null` if they are not Java threads or the
    /// bytes could not be read.
    pub allocated_bytes: Option<u64>,
}

impl ThreadPoolRecord {
    /// Adds the threads of another pool; a value known for only one of them counts for both.
    pub fn add(&mut self, more: &Self) {
        self.threads = self.threads.saturating_add(more.threads);
        self.stack_bytes = self.stack_bytes.saturating_add(more.stack_bytes);
        self.cpu_s += more.cpu_s;
        if let Some(bytes) = more.allocated_bytes {
            self.allocated_bytes = Some(self.allocated_bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
}
